//! Random programs, run with checked buffers: no leak, no double free, no use after free,
//! and the values are those of the program before deallocation. Every branch is taken both ways.
//!
//! 20,000 programs with `MONOPOUR_TEST_FULL=1`, a sample otherwise; `MONOPOUR_TEST_SEEDS=a..b` takes others.

use std::ops::Range;

use monopour_dealloc::{Options, run_ownership};
use monopour_ir::{Context, InsertionPoint, Module, OpSpec, Rewriter, WalkOrder};
use monopour_testkit::evaluate::lifetimes::{Program, Watch, same_values};
use monopour_testkit::generate_memrefs::{Shape, inputs, module};
use monopour_testkit::random::seeds;
use monopour_testkit::{Data, Defect, Dtype, EvalError, HostTensor};

use crate::support::EXTENSIONS;

/// Counts over many programs.
#[derive(Default, Debug)]
struct Totals {
    runs: u64,
    allocations: u64,
    copied_elements: u64,
    frees: usize,
}

fn parse<'c>(cx: Context<'c>, text: &str) -> Module<'c> {
    Module::parse(cx, text.as_bytes(), "random.mlir").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn deallocated<'c>(cx: Context<'c>, text: &str) -> Result<Module<'c>, String> {
    let module = parse(cx, text);
    run_ownership(module.op(), &EXTENSIONS).map_err(|e| e.to_string())?;
    module.op().verify_with_diagnostics().map_err(|e| format!("{e}\n{}", module.op()))?;
    Ok(module)
}

/// Runs a program before and after deallocation, with every choice.
fn check(cx: Context, seed: u64, text: &str, totals: &mut Totals) -> Result<(), String> {
    let before = Program::new(&parse(cx, text)).map_err(|e| e.to_string())?;
    let module = deallocated(cx, text)?;
    let after = Program::new(&module).map_err(|e| e.to_string())?;
    for (choice, inputs) in inputs(seed).iter().enumerate() {
        let expected = before.run("main", inputs, Watch::Accesses).map_err(|e| format!("the program itself: {e}"))?;
        let fail = |e: String| format!("choice {choice}: {e}\n{}", module.op());
        let found = after.run("main", inputs, Watch::Owners).map_err(|e| fail(e.to_string()))?;
        same_values(&expected, &found).map_err(fail)?;
        totals.runs += 1;
        totals.allocations += found.cost.allocations;
        totals.copied_elements += found.cost.copied_elements.saturating_sub(expected.cost.copied_elements);
        totals.frees += found.cost.freeing.len();
    }
    Ok(())
}

fn check_all(seeds: Range<u64>, shape: fn(u64) -> Shape) {
    let cx = Context::new();
    let mut totals = Totals::default();
    let mut failed = Vec::new();
    let count = seeds.end - seeds.start;
    for seed in seeds {
        let text = module(seed, shape(seed));
        if let Err(e) = check(cx, seed, &text, &mut totals) {
            if failed.len() < 3 {
                eprintln!("seed {seed}: {e}\nfrom\n{text}");
            }
            failed.push((seed, e.lines().next().unwrap_or_default().to_owned()));
        }
    }
    println!("{count} programs: {totals:?}");
    assert!(
        failed.is_empty(),
        "{} of {count} programs, among them {:?}",
        failed.len(),
        &failed[..failed.len().min(12)]
    );
    assert!(totals.runs < 1000 || totals.frees as u64 > totals.runs, "programs free what they allocate: {totals:?}");
}

#[test]
fn structured_programs_own_their_buffers() {
    check_all(seeds(200, 20_000), Shape::structured);
}

#[test]
fn programs_of_any_control_flow_own_their_buffers() {
    check_all(seeds(300, 20_000), Shape::whole);
}

/// Most arguments of calls have no later use: private functions consume them, return them, and transfer them on.
#[test]
fn programs_that_give_buffers_away_own_their_buffers() {
    check_all(seeds(200, 20_000), Shape::giving);
}

/// MLIR would cast a row-major copy of dynamic size to the strides of the view, which would address other elements.
#[test]
fn copies_have_the_layout_of_the_view() {
    let cx = Context::new();
    for (sizes, view) in [
        ("[4, 6] [1, 1]", "memref<4x6xf32, strided<[6, 1], offset: 6>>"),
        ("[4, 2] [1, 3]", "memref<4x2xf32, strided<[6, 3], offset: 6>>"),
        ("[%n, %n] [1, 1]", "memref<?x?xf32, strided<[6, 1], offset: 6>>"),
        ("[%n, %n] [1, %n]", "memref<?x?xf32, strided<[6, ?], offset: 6>>"),
    ] {
        let text = format!(
            "func.func @main(%t: memref<6x6xf32>, %n: index) -> {view} {{
            %v = memref.subview %t[1, 0] {sizes} : memref<6x6xf32> to {view}
            return %v : {view}
            }}"
        );
        let before = Program::new(&parse(cx, &text)).expect("it runs");
        let after = Program::new(&deallocated(cx, &text).unwrap_or_else(|e| panic!("{e}"))).expect("it runs");
        for n in 0..3 {
            let count = HostTensor { dtype: Dtype::Index, shape: vec![], data: Data::Int(vec![n]) };
            let inputs = [HostTensor::random(Dtype::F32, &[6, 6], 1), count];
            if n == 0 && view.contains("strided<[6, ?]") {
                // A stride of 0 is excluded.
                continue;
            }
            let expected = before.run("main", &inputs, Watch::Accesses).expect("it runs");
            let found = after.run("main", &inputs, Watch::Owners).unwrap_or_else(|e| panic!("{view}: {e}"));
            same_values(&expected, &found).unwrap_or_else(|e| panic!("{view}: {e}"));
            assert_eq!(found.cost.allocations, 1, "{view}");
        }
    }
}

/// One file for each kind of program, with the whole output.
#[test]
fn files() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lifetimes");
    let pass = |_: &str, options: &str, module: &Module| {
        let options = Options { allow_unknown_effects: options.contains("allow-unknown-effects"), ..EXTENSIONS };
        match run_ownership(module.op(), &options) {
            Err(errors) => errors.to_string(),
            Ok(_) => match module.op().verify_with_diagnostics() {
                Err(errors) => errors.to_string(),
                Ok(()) => module.op().to_string(),
            },
        }
    };
    monopour_testkit::runner::run(&folder, pass).assert_passed();
}

/// A change of one `memref.dealloc`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mutation {
    Dropped,
    Doubled,
    /// Moved right after the definition of its operand.
    MovedUp,
}

/// The module with one `memref.dealloc` changed; `None` if there is no such change.
fn mutated<'c>(module: &Module<'c>, number: usize, mutation: Mutation) -> Option<Module<'c>> {
    let module = module.duplicate();
    mutate(&module, number, mutation)?;
    Some(module)
}

/// Changes one `memref.dealloc`; `None` if there is no such change.
fn mutate(module: &Module, number: usize, mutation: Mutation) -> Option<()> {
    let mut rw = Rewriter::new(module.context());
    let dealloc = module.op().nested(WalkOrder::Pre).into_iter().filter(|op| op.is("memref.dealloc")).nth(number)?;
    let value = dealloc.operand(0);
    match mutation {
        Mutation::Dropped => rw.erase(dealloc),
        Mutation::Doubled => {
            rw.set_point(InsertionPoint::After(dealloc));
            rw.create(OpSpec::new("memref.dealloc", dealloc.location()).operands(&[value])).ok()?;
        }
        Mutation::MovedUp => {
            let alloc = value.defining_op().filter(|op| op.is("memref.alloc") && op.block() == dealloc.block())?;
            // The buffer is filled right after.
            alloc.next().filter(|op| op.is("linalg.fill") && op.operands().contains(&value))?;
            rw.move_after(dealloc, alloc);
        }
    }
    Some(())
}

/// The defect that a change must cause.
fn is_caught(mutation: Mutation, error: &EvalError) -> bool {
    match (mutation, error.defect()) {
        (Mutation::Dropped, defect) => defect == Some(Defect::Leak),
        (Mutation::Doubled, defect) => defect == Some(Defect::DoubleFree),
        (Mutation::MovedUp, defect) => defect == Some(Defect::UseAfterFree),
    }
}

/// Every dealloc that is dropped, doubled or moved up is detected, in every program that executes it.
#[test]
fn every_changed_dealloc_is_caught() {
    let cx = Context::new();
    let mut caught = [0; 3];
    for seed in seeds(60, 400) {
        let text = module(seed, Shape::whole(seed));
        let module = deallocated(cx, &text).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let program = Program::new(&module).expect("it runs");
        let runs: Vec<_> = inputs(seed)
            .into_iter()
            .map(|i| {
                let run = program.run("main", &i, Watch::Owners).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
                (i, run.cost.freeing)
            })
            .collect();
        let count = module.op().nested(WalkOrder::Pre).iter().filter(|op| op.is("memref.dealloc")).count();
        for number in 0..count {
            for (at, mutation) in [Mutation::Dropped, Mutation::Doubled, Mutation::MovedUp].into_iter().enumerate() {
                let Some(changed) = mutated(&module, number, mutation) else { continue };
                let changed = Program::new(&changed).expect("it runs");
                for (inputs, _) in runs.iter().filter(|(_, freeing)| freeing.contains(&number)).take(2) {
                    let Err(error) = changed.run("main", inputs, Watch::Owners) else {
                        panic!("seed {seed}: dealloc {number} {mutation:?} is not noticed\n{}", module.op())
                    };
                    assert!(is_caught(mutation, &error), "seed {seed}: dealloc {number} {mutation:?}: {error}");
                    caught[at] += 1;
                }
            }
        }
    }
    println!("caught (dropped, doubled, moved up): {caught:?}");
    assert!(caught.iter().all(|n| *n > 50), "{caught:?}");
}
