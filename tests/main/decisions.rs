//! In-place decisions, judged by running what they make: random functions on the CPU.
//!
//! What is decided must give, bit for bit, what a copy before every write gives. And the checker must see what running sees:
//! decisions are made wrong at random, and whichever changes a value must be one that the checker rejects.

use crate::batch::{Batch, Outcome};
use monopour_analysis::checker;
use monopour_analysis::facts::Facts;
use monopour_analysis::index::OperandId;
use monopour_analysis::one_shot::{Decisions, InPlaceAnalysis, Placement, decisions_from_placements};
use monopour_bufferize::{FunctionBoundaryTypeConversion, Options, analyse, run_one_shot, run_with_decisions};
use monopour_ir::{Context, Module};
use monopour_testkit::device::full_is_asked_for;
use monopour_testkit::generate_functions::{self, Shape};
use monopour_testkit::random::Rng;

/// Functions whose decisions were wrong once.
const FOUND_WRONG: [u64; 4] = [115, 142, 180, 630];
/// Functions that are compiled together.
const BATCH: u64 = 40;

fn function(seed: u64) -> String {
    generate_functions::module(seed, Shape::of_seed(seed))
}

fn options() -> Options {
    Options {
        allow_return_allocs_from_loops: true,
        bufferize_function_boundaries: true,
        function_boundary_type_conversion: FunctionBoundaryTypeConversion::Identity,
        // Iterations of a parallel loop do not read what others write.
        extensions: true,
        ..Options::default()
    }
}

fn parse(cx: Context, text: &str) -> Module {
    Module::parse(cx, text.as_bytes(), "random.mlir").unwrap_or_else(|d| panic!("{d}\n{text}"))
}

/// Which arguments of `@main` must not be written.
fn frozen(module: &Module) -> Vec<bool> {
    let main = module.symbol("main").expect("the generator makes @main");
    let attrs = main.attr("arg_attrs").and_then(|a| a.as_array()).unwrap_or_default();
    let count = main.function_type().map_or(0, |t| t.0.len());
    let writable = |i: usize| attrs.get(i).and_then(|a| a.get("bufferization.writable")).and_then(|w| w.as_bool());
    (0..count).map(|i| writable(i) == Some(false)).collect()
}

/// Where the decisions come from.
enum Made {
    AsDecided,
    CopyBeforeWrite,
    Otherwise(Decisions),
}

/// Bufferizes, and adds the result to the batch.
fn add(batch: &mut Batch, text: &str, made: Made) -> Result<usize, String> {
    Context::scope(|cx| {
        let module = parse(cx, text);
        let frozen = frozen(&module);
        let done = match made {
            Made::AsDecided => run_one_shot(module.op(), &options()),
            Made::CopyBeforeWrite => run_one_shot(module.op(), &Options { copy_before_write: true, ..options() }),
            Made::Otherwise(decisions) => {
                let mut main = Some(decisions);
                run_with_decisions(module.op(), &options(), &mut |name, _, made| match name {
                    "main" => main.take().unwrap_or(made),
                    _ => made,
                })
            }
        };
        done.map_err(|d| d.to_string())?;
        batch.add(&module, &frozen)
    })
}

#[test]
fn in_place_results_equal_copy_before_write() {
    let functions = if full_is_asked_for() { 2_000 } else { 120 };
    for start in (0..functions).step_by(BATCH as usize) {
        let mut batch = Batch::default();
        let mut seeds: Vec<u64> = (start..functions.min(start + BATCH)).collect();
        if start == 0 {
            seeds.extend(FOUND_WRONG.iter().filter(|seed| **seed >= functions));
        }
        for &seed in &seeds {
            let text = function(seed);
            for made in [Made::AsDecided, Made::CopyBeforeWrite] {
                add(&mut batch, &text, made).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
            }
        }
        let outcomes = batch.run().unwrap_or_else(|e| panic!("seeds from {start}: {e}"));
        for (pair, seed) in outcomes.chunks(2).zip(seeds) {
            assert_eq!(pair[0], pair[1], "seed {seed}\n{}", function(seed));
        }
    }
}

/// A function that was bufferized as decided and with a decision made wrong.
struct Mutant {
    seed: u64,
    right: usize,
    wrong: usize,
    flipped: OperandId,
    rejected: bool,
}

/// Puts one operand in place that was to be copied.
fn flip(facts: &Facts, decisions: &Decisions, rng: &mut Rng) -> Option<(OperandId, Decisions)> {
    let copied: Vec<OperandId> = facts.operands().ids().filter(|id| !decisions.is_in_place(*id)).collect();
    if copied.is_empty() {
        return None;
    }
    let flipped = *rng.pick(&copied);
    let mut placements = decisions.placements().clone();
    placements[flipped] = Placement::InPlace;
    Some((flipped, decisions_from_placements(facts, placements)))
}

fn mutate(batch: &mut Batch, seed: u64) -> Option<Mutant> {
    let text = function(seed);
    let analysed = Context::scope(|cx| analyse(parse(cx, &text).op(), &options()));
    let analysed = analysed.unwrap_or_else(|d| panic!("seed {seed}: {d}\n{text}"));
    let main = analysed.into_iter().find(|f| f.name == "main").expect("the generator makes @main");
    let (flipped, wrong) = flip(&main.facts, &main.decisions, &mut Rng::new(seed ^ 0x5eed))?;
    let rejected = checker::check(&main.facts, &wrong).is_err();
    // Decisions that cannot be carried out make no program.
    let wrong = add(batch, &text, Made::Otherwise(wrong)).ok()?;
    let right = add(batch, &text, Made::AsDecided).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
    Some(Mutant { seed, right, wrong, flipped, rejected })
}

#[test]
fn the_checker_rejects_every_decision_that_changes_a_value() {
    let (wanted, most) = if full_is_asked_for() { (200, 20_000) } else { (20, 2_000) };
    let (mut changed, mut start) = (0, 0);
    while changed < wanted && start < most {
        let mut batch = Batch::default();
        let mutants: Vec<Mutant> = (start..start + BATCH).filter_map(|seed| mutate(&mut batch, seed)).collect();
        let outcomes: Vec<Outcome> = batch.run().unwrap_or_else(|e| panic!("seeds from {start}: {e}"));
        for mutant in mutants.iter().filter(|m| outcomes[m.right] != outcomes[m.wrong]) {
            changed += 1;
            let text = function(mutant.seed);
            assert!(mutant.rejected, "seed {}: operand {} in place\n{text}", mutant.seed, mutant.flipped);
        }
        start += BATCH;
    }
    assert!(changed >= wanted, "only {changed} decisions of {start} functions changed a value");
}
