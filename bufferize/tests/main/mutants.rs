//! The checker of decisions against execution: random wrong decisions that change a value
//! must be rejected by the checker.

use crate::execute::{frozen, function, inputs, options};
use monopour_analysis::checker;
use monopour_analysis::facts::Facts;
use monopour_analysis::index::{OperandId, ValueId};
use monopour_analysis::one_shot::{Claim, Decisions, InPlaceAnalysis, Placement};
use monopour_bufferize::{analyse, run_with_decisions};
use monopour_ir::{Context, Module};
use monopour_testkit::batch::Batch;
use monopour_testkit::device::full_is_asked_for;
use monopour_testkit::random::{Rng, seeds};

/// Functions compiled together.
const BATCH: u64 = 40;

/// Whether a function is recursive: its facts then depend on its own decisions, and those of the right
/// ones do not judge the wrong.
fn calls_itself(module: &Module, name: &str) -> bool {
    let mut reached: Vec<String> = vec![name.to_owned()];
    let mut next = 0;
    while let Some(function) = reached.get(next).and_then(|name| module.symbol(name)) {
        next += 1;
        for call in function.find_all("func.call") {
            let callee = call.attr("callee").and_then(|callee| callee.as_symbol().map(str::to_owned));
            let callee = callee.expect("a call names its callee: verified");
            if callee == name {
                return true;
            }
            if !reached.contains(&callee) {
                reached.push(callee);
            }
        }
    }
    false
}

/// A module bufferized as decided and with a wrong decision.
struct Mutant {
    seed: u64,
    right: usize,
    wrong: usize,
    how: String,
    rejected: bool,
}

/// Makes decisions wrong, in one of four ways, and describes it.
fn spoil(facts: &Facts, decisions: &Decisions, rng: &mut Rng) -> Option<(String, Decisions)> {
    let copied: Vec<OperandId> = facts.operands().ids().filter(|id| !decisions.is_in_place(*id)).collect();
    let values: Vec<ValueId> = facts.values().ids().collect();
    match rng.below(8) {
        // Several out-of-place operands are put in place: each may hide the other.
        0 | 1 if copied.len() > 1 => {
            let some: Vec<_> = copied.iter().copied().filter(|_| rng.below(2) == 0).collect();
            let wrong = some.iter().fold(decisions.clone(), |d, &id| d.with(facts, id, Placement::InPlace));
            Some((format!("{some:?} in place"), wrong))
        }
        2 if !copied.is_empty() => {
            let empty = *rng.pick(&copied);
            Some((format!("nothing in the copy of {empty}"), decisions.with_claim(Claim::NoContents(empty))))
        }
        3 if values.len() > 1 => {
            let (a, b) = (*rng.pick(&values), *rng.pick(&values));
            Some((format!("{a} and {b} one buffer"), decisions.with_claim(Claim::Equivalent(a, b))))
        }
        _ if copied.is_empty() => None,
        _ => {
            let flipped = *rng.pick(&copied);
            Some((format!("{flipped} in place"), decisions.with(facts, flipped, Placement::InPlace)))
        }
    }
}

/// Adds a module as decided and with a wrong decision; `None` if there is none to change, or the result cannot
/// be carried out.
fn mutate(batch: &mut Batch, seed: u64) -> Option<Mutant> {
    Context::scope(|cx| {
        let module = Module::parse(cx, function(seed).as_bytes(), "random.mlir").expect("the generator makes modules");
        let (inputs, frozen, options) = (inputs(&module, seed), frozen(&module), options(seed));
        let analysed = analyse(module.duplicate().op(), &options).ok()?;
        let mut rng = Rng::new(seed ^ 0x5eed);
        let target = rng.pick(&analysed);
        let (how, wrong) = spoil(&target.facts, &target.decisions, &mut rng)?;
        if calls_itself(&module, &target.name) {
            return None;
        }
        let rejected = checker::check(&target.facts, &wrong).is_err();
        let mut added = [true, false].into_iter().map(|as_decided| {
            let module = module.duplicate();
            let done = run_with_decisions(module.op(), &options, &mut |name, _, made| match name == target.name {
                true if !as_decided => wrong.clone(),
                _ => made,
            });
            done.ok().and_then(|_| batch.add(&module, &inputs, &frozen).ok())
        });
        let (right, wrong) = (added.next()??, added.next()??);
        let how = format!("{how} in @{}", target.name);
        Some(Mutant { seed, right, wrong, how, rejected })
    })
}

#[test]
fn the_checker_rejects_every_decision_that_changes_a_value() {
    let seeds = seeds(2_000, 20_000);
    let wanted = if full_is_asked_for() { 500 } else { 12 };
    let (mut changed, mut run, mut missed, mut cautious, mut start) = (0, 0, vec![], 0, seeds.start);
    while changed < wanted && start < seeds.end {
        let mut batch = Batch::with_writable_constants();
        let mutants: Vec<Mutant> = (start..start + BATCH).filter_map(|seed| mutate(&mut batch, seed)).collect();
        let outcomes = batch.run().unwrap_or_else(|e| panic!("seeds from {start}: {e}"));
        run += mutants.len();
        for mutant in mutants {
            if outcomes[mutant.right] == outcomes[mutant.wrong] {
                cautious += usize::from(mutant.rejected);
                continue;
            }
            changed += 1;
            if !mutant.rejected {
                missed.push(format!("seed {}: {}", mutant.seed, mutant.how));
            }
        }
        start += BATCH;
    }
    println!(
        "{changed} of {run} changes of a decision changed a value, {} unseen; {cautious} rejected besides",
        missed.len()
    );
    assert!(missed.is_empty(), "{} of {changed} unseen\n{}", missed.len(), missed.join("\n"));
    assert!(changed >= wanted, "only {changed} decisions of {run} functions changed a value");
}
