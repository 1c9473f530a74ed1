//! The orders in which operations are visited.
//!
//! ```text
//! %0 = fill %a        bottom-up: return, for, yield, insert, fill     top-down: fill, insert, yield, for, return
//! %1 = for %0 {       from terminators: yield, insert, for's return: return, for, fill
//!   %2 = insert %x
//!   yield %2
//! }
//! return %1
//! ```
//!
//! Source: the orders of MLIR's One-Shot Bufferize (LLVM 22), inferred from its decisions; the fuzzer's is
//! `llvm::shuffle` with `std::mt19937`, over the operations with tensors and the function itself (the last).

use crate::facts::{Facts, ValueDef};
use crate::index::{IndexVec, OpId, OperandId, RegionId};
use crate::placement::Heuristic;
use crate::random::MersenneTwister;

/// The operands in the order of a heuristic.
pub fn visiting_order(facts: &Facts, heuristic: Heuristic) -> Vec<OperandId> {
    let ops: Vec<OpId> = match heuristic {
        Heuristic::BottomUp => post_order(facts).into_iter().rev().collect(),
        Heuristic::BottomUpFromTerminators => from_terminators(facts),
        Heuristic::TopDown => post_order(facts),
        Heuristic::Fuzzer(seed) => shuffled(facts, seed),
    };
    ops.into_iter().flat_map(|op| facts.operands_of(op).iter().copied()).collect()
}

/// Nested operations before their parent; otherwise first to last, in the order of the text.
pub(crate) fn post_order(facts: &Facts) -> Vec<OpId> {
    walk(facts, false)
}

fn walk(facts: &Facts, backwards: bool) -> Vec<OpId> {
    let mut ops = Vec::with_capacity(facts.ops().len());
    let mut stack: Vec<(OpId, bool)> = Vec::new();
    push_ops(facts, &mut stack, &[RegionId::new(0)], backwards);
    while let Some((op, is_done)) = stack.pop() {
        if is_done {
            ops.push(op);
            continue;
        }
        stack.push((op, true));
        push_ops(facts, &mut stack, facts.regions_of(op), backwards);
    }
    ops
}

/// Push the operations of regions, to be popped first to last (or last to first).
fn push_ops(facts: &Facts, stack: &mut Vec<(OpId, bool)>, regions: &[RegionId], backwards: bool) {
    let start = stack.len();
    for &region in regions {
        for &block in facts.blocks_of(region) {
            stack.extend(facts.ops_of(block).iter().map(|&op| (op, false)));
        }
    }
    if !backwards {
        stack[start..].reverse();
    }
}

/// Nested operations before their parent; otherwise by position, so that definitions come before uses.
pub(crate) fn dominance_post_order(facts: &Facts) -> Vec<OpId> {
    let mut ops = Vec::with_capacity(facts.ops().len());
    let mut open: Vec<OpId> = Vec::new();
    for &op in &facts.order {
        while open.last().is_some_and(|&outer| facts.span(outer).last < facts.span(op).first) {
            ops.extend(open.pop());
        }
        open.push(op);
    }
    ops.extend(open.into_iter().rev());
    ops
}

/// From each terminator backwards along aliases, within its region (one step out of it included); the rest
/// last to first, nested operations before their parent.
fn from_terminators(facts: &Facts) -> Vec<OpId> {
    let mut is_known = IndexVec::filled(false, facts.ops().len());
    let mut ops = Vec::with_capacity(facts.ops().len());
    let made_by = |operand: OperandId| match facts.values()[facts.operands()[operand].value].def {
        ValueDef::Result(op) => Some((op, facts.operands()[operand].value)),
        ValueDef::Argument(_) => None,
    };
    for terminator in post_order(facts).into_iter().filter(|&op| facts.ops()[op].gives_out) {
        if std::mem::replace(&mut is_known[terminator], true) {
            continue;
        }
        ops.push(terminator);
        let region = facts.region_spans[facts.region_of(terminator)];
        let mut work: Vec<_> = facts.operands_of(terminator).iter().filter_map(|&operand| made_by(operand)).collect();
        while let Some((op, value)) = work.pop() {
            if std::mem::replace(&mut is_known[op], true) {
                continue;
            }
            ops.push(op);
            if region.contains(facts.span(op).first) {
                work.extend(facts.sources(value).iter().filter_map(|source| made_by(source.operand)));
            }
        }
    }
    ops.extend(walk(facts, true).into_iter().filter(|&op| !is_known[op]));
    ops
}

/// A shuffle of the operations with tensors, and of the function.
fn shuffled(facts: &Facts, seed: u64) -> Vec<OpId> {
    let has_arguments = |region: &RegionId| facts.blocks_of(*region).iter().any(|b| !facts.arguments_of(*b).is_empty());
    let has_tensors = |op: &OpId| {
        !facts.operands_of(*op).is_empty()
            || !facts.results_of(*op).is_empty()
            || facts.regions_of(*op).iter().any(has_arguments)
    };
    let mut ops: Vec<Option<OpId>> = post_order(facts).into_iter().filter(has_tensors).map(Some).collect();
    let root = RegionId::new(0);
    let entry = facts.blocks_of(root).first();
    let takes_tensors = entry.is_some_and(|&block| !facts.arguments_of(block).is_empty());
    let returns = |op: &OpId| facts.ops()[*op].gives_out && !facts.operands_of(*op).is_empty();
    let gives_tensors = || facts.blocks_of(root).iter().any(|&block| facts.ops_of(block).last().is_some_and(returns));
    if takes_tensors || gives_tensors() {
        ops.push(None);
    }
    let mut random = MersenneTwister::new(seed);
    for first in 0..ops.len() {
        let left = u32::try_from(ops.len() - first).unwrap_or(u32::MAX);
        if left > 1 {
            ops.swap(first, first + (random.next() % left) as usize);
        }
    }
    ops.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::visiting_order;
    use crate::one_shot::Heuristic;
    use crate::text;

    const TEXT: &str = "block(%a)
        %0 = fill w%a>%0
        %1 = for branch w%0(%x=%2)%1^%x {
          region repeat next 0 {
            block(%x)
            %q = inner w%a>%q
            %2 = insert rw%x>%2
            yield ends rm%2^%x^%1
          }
        }
        return ends r%1";

    fn check(heuristic: Heuristic, expected: Expect) {
        let (facts, names) = text::parse(&TEXT.replace("w%0(%x", "w%0>(%x")).expect("facts are well-formed");
        let name = |operand| names.get(facts.ops()[facts.operands()[operand].op].label).unwrap_or("?");
        let order: Vec<_> = visiting_order(&facts, heuristic).into_iter().map(name).collect();
        expected.assert_eq(&order.join(" "));
    }

    #[test]
    fn orders() {
        check(Heuristic::BottomUp, expect!["return for yield insert inner fill"]);
        check(Heuristic::BottomUpFromTerminators, expect!["yield insert return for fill inner"]);
        check(Heuristic::TopDown, expect!["fill inner insert yield for return"]);
        check(Heuristic::Fuzzer(1), expect!["fill inner yield return insert for"]);
        check(Heuristic::Fuzzer(2), expect!["insert for yield fill inner return"]);
    }
}
