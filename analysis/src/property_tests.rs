//! Properties of decisions on random functions.

use crate::classes::{Classes, SMALL};
use crate::facts::Facts;
use crate::generate::{Shape, function};
use crate::one_shot::{Decisions, Heuristic, decide_in_order, visiting_order};
use crate::reference::PairwiseClasses;

fn placements(decisions: Result<Decisions, crate::one_shot::DecideError>) -> Result<String, String> {
    let letter = |placement: &crate::one_shot::Placement| match placement {
        crate::one_shot::Placement::InPlace => 'i',
        crate::one_shot::Placement::OutOfPlace => 'o',
    };
    match decisions {
        Ok(decisions) => Ok(decisions.placements().iter().map(letter).collect()),
        Err(error) => Err(format!("{}", error.operand())),
    }
}

fn assert_agree(facts: &Facts, seed: u64, heuristic: Heuristic) {
    let order = visiting_order(facts, heuristic);
    let literal = placements(decide_in_order(facts, &order, PairwiseClasses::new(facts, true)));
    for small in [0, SMALL] {
        let fast = placements(decide_in_order(facts, &order, Classes::new(facts, true, small)));
        assert_eq!(fast, literal, "seed {seed}, {heuristic:?}, lists of up to {small}\n{facts:#?}");
    }
}

#[test]
fn indexed_decisions_are_the_literal_ones() {
    let functions = 2500;
    for seed in 0..functions {
        let shape = Shape { ops: 6 + (seed % 20) as u32, depth: (seed % 4) as u32, wild: seed % 5 == 0 };
        let facts = function(seed, shape);
        assert_agree(&facts, seed, Heuristic::BottomUp);
        assert_agree(&facts, seed, if seed % 2 == 0 { Heuristic::TopDown } else { Heuristic::Fuzzer(seed) });
    }
}
