//! The order of operations in a block while operations are moved up.
//!
//! MLIR renumbers a block after each move. Here a moved operation gets a number between its new neighbours:
//! a query costs one look-up, a move `O(log n)`, and a block is renumbered only where numbers have run out.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use monopour_ir::{Block, HandleMap, Op, ops};

/// Distance of neighbours when a block is numbered: it can be halved 32 times in one place.
const GAP: u64 = 1 << 32;

/// Numbers of the operations of the queried blocks.
#[derive(Default)]
pub(crate) struct BlockOrder<'c> {
    numbers: HandleMap<Op<'c>, u64>,
    taken: HandleMap<Block<'c>, BTreeSet<u64>>,
    asserts: HandleMap<Block<'c>, BTreeMap<u64, Op<'c>>>,
    /// Number of numbers assigned: the work done.
    #[cfg(test)]
    pub(crate) steps: usize,
}

impl<'c> BlockOrder<'c> {
    /// Whether `a` comes before `b`, an operation of the same block.
    pub(crate) fn is_before(&mut self, a: Op<'c>, b: Op<'c>) -> bool {
        match (self.numbers.get(&a), self.numbers.get(&b)) {
            (Some(a), Some(b)) => a < b,
            _ => {
                // One of them is newer than the numbering.
                a.block().into_iter().for_each(|block| self.number(block));
                self.numbers.get(&a) < self.numbers.get(&b)
            }
        }
    }

    /// The assertions before `last` in its block, and behind `first`, an op of that block; all before `last` without one.
    pub(crate) fn asserts_between(&mut self, first: Option<Op<'c>>, last: Op<'c>) -> Vec<Op<'c>> {
        let Some(block) = last.block() else { return vec![] };
        if [Some(last), first].into_iter().flatten().any(|op| !self.numbers.contains_key(&op)) {
            self.number(block);
        }
        let Some(asserts) = self.asserts.get(&block).filter(|asserts| !asserts.is_empty()) else { return vec![] };
        let number = |op: Op<'c>| self.numbers.get(&op).copied();
        let from = first.and_then(number).map_or(Bound::Unbounded, Bound::Excluded);
        match (from, number(last)) {
            (Bound::Excluded(from), Some(to)) if from >= to => vec![],
            (from, Some(to)) => asserts.range((from, Bound::Excluded(to))).map(|(_, op)| *op).collect(),
            (_, None) => vec![],
        }
    }

    /// Numbers `op` right before `anchor`, an operation of the same block; called before the move.
    pub(crate) fn move_before(&mut self, op: Op<'c>, anchor: Op<'c>) {
        match (self.numbers.get(&op).copied(), op.block()) {
            (Some(old), Some(block)) => {
                self.taken.entry(block).or_default().remove(&old);
                self.asserts.entry(block).or_default().remove(&old);
                self.place_before(op, anchor);
            }
            _ => self.forget(),
        }
    }

    /// Numbers an operation without a number right before `anchor`, an operation of the same block.
    pub(crate) fn place_before(&mut self, op: Op<'c>, anchor: Op<'c>) {
        let Some(block) = anchor.block() else { return };
        let Some(upper) = self.numbers.get(&anchor).copied() else {
            self.forget();
            return;
        };
        let taken = self.taken.entry(block).or_default();
        let lower = taken.range(..upper).next_back().copied().unwrap_or(0);
        let number = lower + (upper - lower) / 2;
        if number == lower {
            self.forget();
            return;
        }
        taken.insert(number);
        self.numbers.insert(op, number);
        if op.is(ops::cf::ASSERT) {
            self.asserts.entry(block).or_default().insert(number, op);
        }
    }

    /// Drops all numbers, after moves or erasures that were not reported.
    pub(crate) fn forget(&mut self) {
        self.numbers.clear();
        self.taken.clear();
        self.asserts.clear();
    }

    fn number(&mut self, block: Block<'c>) {
        let (taken, asserts) = (self.taken.entry(block).or_default(), self.asserts.entry(block).or_default());
        taken.clear();
        asserts.clear();
        let mut number = 0;
        for op in block.ops() {
            number += GAP;
            taken.insert(number);
            self.numbers.insert(op, number);
            if op.is(ops::cf::ASSERT) {
                asserts.insert(number, op);
            }
            #[cfg(test)]
            {
                self.steps += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::BlockOrder;
    use monopour_ir::{Context, Module, Rewriter};

    #[test]
    fn a_moved_op_comes_before_its_anchor_and_nothing_is_numbered_anew() {
        let lines: String = (0..400).map(|i| format!("%{i} = arith.constant {i} : index\n")).collect();
        let text = format!("func.func @f() {{ {lines} return }}");
        let module = Module::parse(Context::new(), text.as_bytes(), "t.mlir").expect("parses");
        let block = module.op().find_all("func.func")[0].body().expect("a body");
        let (ops, mut order) = (block.ops(), BlockOrder::default());
        let mut rw = Rewriter::new(module.op().context());
        assert!(order.is_before(ops[0], ops[1]) && !order.is_before(ops[1], ops[0]));
        for pair in ops[..400].chunks(2) {
            order.move_before(pair[1], pair[0]);
            rw.move_before(pair[1], pair[0]);
        }
        for (at, pair) in block.ops().windows(2).enumerate() {
            assert!(order.is_before(pair[0], pair[1]), "at {at}");
        }
        assert_eq!(order.steps, 401);
    }
}
