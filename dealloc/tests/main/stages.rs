//! Upstream's form, run with checked buffers after every pass of the chain: owners, simplification, lowering.
//!
//! Random programs with any control flow that upstream's form takes; loops of branches, switches and frees by hand are refused.
//! All of 4,000 programs with `MONOPOUR_TEST_FULL=1`, a sample otherwise.

use monopour_dealloc::lower::{LowerOptions, lower_deallocations};
use monopour_dealloc::models::OwnershipModels;
use monopour_dealloc::simplify::simplify;
use monopour_dealloc::{Options, convert_bufferization_to_memref, run_ownership_with};
use monopour_ir::{Context, Module, run_passes};
use monopour_testkit::Defect;
use monopour_testkit::evaluate::lifetimes::{Program, Run, Watch, same_values};
use monopour_testkit::generate_memrefs::{Shape, inputs, module};
use monopour_testkit::random::seeds;

use crate::support::UPSTREAM;

/// Codes of programs that upstream's form refuses.
const REFUSED: [&str; 3] = ["D0102", "D0106", "D0109"];

struct Checked {
    programs: u32,
    /// Programs with a switch between blocks.
    switches: u32,
    runs: u32,
    deallocs_gone: u64,
}

/// A program through the stages of upstream's form, with the results of earlier stages.
struct Chain<'c> {
    seed: u64,
    before: Program<'c>,
    /// The program's results after the first stage, by choice; `None` if they share a buffer.
    owned: Vec<Option<Run>>,
}

impl<'c> Chain<'c> {
    /// Runs the output of a stage with every choice; returns the number of runs.
    fn check(&mut self, stage: &str, made: &Module<'c>) -> u32 {
        let seed = self.seed;
        let verified = made.op().verify_with_diagnostics();
        assert!(verified.is_ok(), "seed {seed}, {stage}: {verified:?}\n{}", made.op());
        let after = Program::new(made).unwrap_or_else(|e| panic!("seed {seed}, {stage}: {e}"));
        let is_first = self.owned.is_empty();
        let mut runs = 0;
        for (choice, inputs) in inputs(seed).iter().enumerate() {
            let fail = |e: String| -> ! { panic!("seed {seed}, {stage}, choice {choice}: {e}\n{}", made.op()) };
            let found = match after.run("main", inputs, Watch::Owners) {
                Ok(found) => Some(found),
                // Two results may be one buffer in upstream's form: the caller compares them before it frees.
                Err(e) if e.defect() == Some(Defect::ResultShared) => None,
                Err(e) => fail(e.to_string()),
            };
            runs += u32::from(found.is_some());
            if is_first {
                let expected = self.before.run("main", inputs, Watch::Accesses).expect("the program itself runs");
                // A clone is another buffer once it is written.
                if let Some(found) = found.as_ref().filter(|f| f.cost.clones == 0) {
                    same_values(&expected, found).unwrap_or_else(|e| fail(e));
                }
                self.owned.push(found);
            } else if let (Some(expected), Some(found)) = (&self.owned[choice], found) {
                same_values(expected, &found).unwrap_or_else(|e| fail(e));
            }
        }
        runs
    }
}

fn run_chain(cx: Context, seed: u64, shape: Shape, options: &Options, checked: &mut Checked) {
    let text = module(seed, shape);
    // A result cannot be named as an argument of a branch in the text.
    let Ok(made) = Module::parse(cx, text.as_bytes(), "random.mlir") else { return };
    let before = Program::new(&made).expect("it runs");
    let mut chain = Chain { seed, before, owned: vec![] };
    // `cf.switch` is beyond upstream.
    let models = if seed.is_multiple_of(2) { OwnershipModels::upstream() } else { OwnershipModels::extended() };
    if let Err(errors) = run_ownership_with(made.op(), options, &models) {
        assert!(errors.0.iter().all(|e| REFUSED.contains(&e.code)), "seed {seed}: {errors}\n{text}");
        return;
    }
    checked.programs += 1;
    checked.switches += u32::from(text.contains("cf.switch"));
    checked.runs += chain.check("owners", &made);
    let count = |module: &Module| {
        let deallocs = module.op().find_all("bufferization.dealloc");
        deallocs.iter().map(|op| op.num_operands() as u64).sum::<u64>()
    };
    let was = count(&made);
    simplify(made.op()).expect("simplifies");
    checked.deallocs_gone += was - count(&made);
    checked.runs += chain.check("simplified", &made);
    for extensions in [false, true] {
        let lowered = made.duplicate();
        if seed.is_multiple_of(2) {
            lower_deallocations(lowered.op(), &LowerOptions { extensions }).expect("lowers");
        } else {
            convert_bufferization_to_memref(lowered.op(), &LowerOptions { extensions }).expect("converts");
        }
        assert!(lowered.op().find_all("bufferization.dealloc").is_empty());
        let calls = lowered.op().find_all("func.call");
        let asks = calls.iter().any(|op| op.attr("callee").is_some_and(|c| c.to_string().contains("dealloc_helper")));
        assert!(!(extensions && asks), "seed {seed}: nothing is called");
        checked.runs += chain.check(if extensions { "in registers" } else { "by lists" }, &lowered);
    }
    // The whole pipeline, as in `buffer-deallocation-pipeline`.
    let canonical = made.duplicate();
    run_passes(canonical.op(), "builtin.module(canonicalize)").expect("canonicalizes");
    lower_deallocations(canonical.op(), &LowerOptions::default()).expect("lowers");
    run_passes(canonical.op(), "builtin.module(cse,canonicalize)").expect("canonicalizes");
    checked.runs += chain.check("canonical", &canonical);
}

#[test]
fn every_stage_frees_what_it_owns_and_nothing_else() {
    let cx = Context::new();
    let mut checked = Checked { programs: 0, switches: 0, runs: 0, deallocs_gone: 0 };
    let seeds = seeds(60, 2000);
    let count = seeds.end - seeds.start;
    for seed in seeds {
        let dynamic = Options { private_function_dynamic_ownership: seed % 3 == 0, ..UPSTREAM };
        run_chain(cx, seed, Shape::structured(seed), &dynamic, &mut checked);
        run_chain(cx, seed, Shape::whole(seed), &dynamic, &mut checked);
    }
    let Checked { programs, switches, runs, deallocs_gone } = checked;
    println!("{programs} programs ({switches} with switches), {runs} runs, {deallocs_gone} operands of deallocs gone");
    assert!(u64::from(programs) > count && switches > 0 && deallocs_gone > 10 * count, "most programs are taken");
}

/// An alias without ownership may precede the owner; lists that are too long for registers go to the stack.
#[test]
fn many_memrefs_of_one_dealloc() {
    for (count, on_stack) in [(3, false), (12, true)] {
        let names = |prefix: &str, n: usize| (0..n).map(|i| format!("%{prefix}{i}")).collect::<Vec<_>>();
        let (allocs, views) = (names("a", count), names("v", count - 1));
        let mut text = "func.func @main(%m: memref<4xf32>, %n: memref<4xf32>, %c: i1, %d: i1, %k: index, %s: i32) -> memref<4xf32> {
            %true = arith.constant true
            %false = arith.constant false\n"
            .to_owned();
        for name in &allocs {
            text += &format!(
                "{name} = memref.alloc() : memref<4xf32>\nmemref.copy %m, {name} : memref<4xf32> to memref<4xf32>\n"
            );
        }
        for (i, name) in views.iter().enumerate() {
            text += &format!("{name} = arith.select %c, %a{i}, %a{} : memref<4xf32>\n", i + 1);
        }
        let all = [views.clone(), allocs.clone()].concat().join(", ");
        let types = vec!["memref<4xf32>"; 2 * count - 1].join(", ");
        let conditions = [vec!["%false"; count - 1], vec!["%true"; count]].concat().join(", ");
        text += &format!(
            "%r = bufferization.dealloc ({all} : {types}) if ({conditions}) retain (%v1 : memref<4xf32>)
            %q = bufferization.clone %v1 : memref<4xf32> to memref<4xf32>
            scf.if %r {{ memref.dealloc %v1 : memref<4xf32> }}
            return %q : memref<4xf32>\n}}"
        );
        let cx = Context::new();
        let lowered = Module::parse(cx, text.as_bytes(), "many.mlir").unwrap_or_else(|e| panic!("{e}\n{text}"));
        lower_deallocations(lowered.op(), &LowerOptions { extensions: true }).expect("lowers");
        assert_eq!(lowered.op().find_all("memref.alloca").is_empty(), !on_stack);
        assert_eq!(lowered.op().find_all("memref.alloc").len(), count, "nothing else on the heap");
        let program = Program::new(&lowered).expect("it runs");
        for inputs in inputs(1) {
            program.run("main", &inputs, Watch::Owners).unwrap_or_else(|e| panic!("{e}\n{}", lowered.op()));
        }
    }
}
