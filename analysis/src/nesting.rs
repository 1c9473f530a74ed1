//! The nesting of operations in a function on memrefs, and the consistency of its facts.

use crate::index::{BlockId, IndexVec, Lists, OpId, ValueId};
use crate::ownership::{ForwardTo, OwnershipError, OwnershipFacts};

/// Pre-order numbers of operations and the last operation of each block.
pub(crate) struct Tree {
    pub spans: IndexVec<OpId, (u32, u32)>,
    pub last_op: IndexVec<BlockId, Option<OpId>>,
    pub order: Vec<OpId>,
}

impl Tree {
    pub fn new(facts: &OwnershipFacts) -> Result<Self, OwnershipError> {
        let unknown = |table, number| Err(OwnershipError::UnknownId(table, number));
        let in_block: Vec<_> = facts.ops.iter_enumerated().map(|(op, &block)| (block, op)).collect();
        if let Some(&(block, _)) = in_block.iter().find(|(block, _)| facts.blocks.get(*block).is_none()) {
            return unknown("block", block.number());
        }
        let owned: Vec<_> = facts.blocks.iter_enumerated().filter_map(|(block, op)| Some(((*op)?, block))).collect();
        if let Some(&(op, _)) = owned.iter().find(|(op, _)| facts.ops.get(*op).is_none()) {
            return unknown("operation", op.number());
        }
        let ops_of = Lists::group(facts.blocks.len(), &in_block);
        let blocks_of = Lists::group(facts.ops.len(), &owned);
        let last_op = facts.blocks.ids().map(|block| ops_of.of(block).last().copied()).collect();
        let mut this = Self { spans: IndexVec::filled((u32::MAX, 0), facts.ops.len()), last_op, order: Vec::new() };
        let roots = facts.blocks.iter_enumerated().filter(|(_, op)| op.is_none()).map(|(block, _)| block);
        let mut stack: Vec<(OpId, bool)> =
            roots.flat_map(|block| ops_of.of(block).iter().map(|&op| (op, false))).collect();
        stack.reverse();
        while let Some((op, leaving)) = stack.pop() {
            let next = u32::try_from(this.order.len()).unwrap_or(u32::MAX);
            if leaving {
                this.spans[op].1 = next - 1;
                continue;
            }
            this.spans[op].0 = next;
            this.order.push(op);
            stack.push((op, true));
            for &block in blocks_of.of(op).iter().rev() {
                stack.extend(ops_of.of(block).iter().rev().map(|&op| (op, false)));
            }
        }
        let missed = this.spans.ids().find(|&op| this.spans[op].0 == u32::MAX);
        missed.map_or(Ok(this), |op| Err(OwnershipError::Unreachable(op)))
    }

    pub fn check(&self, facts: &OwnershipFacts) -> Result<(), OwnershipError> {
        let known = |value: ValueId| {
            let unknown = OwnershipError::UnknownId("value", value.number());
            facts.memrefs.get(value).map(|_| ()).ok_or(unknown)
        };
        if let Some(memref) = facts.memrefs.iter().find(|memref| facts.blocks.get(memref.block).is_none()) {
            return Err(OwnershipError::UnknownId("block", memref.block.number()));
        }
        for &(value, source) in &facts.sources {
            known(value)?;
            known(source)?;
        }
        let forwarded = facts.forwards.iter().map(|forward| (forward.value, forward.terminator));
        for (value, op) in facts.uses.iter().copied().chain(forwarded) {
            known(value)?;
            facts.ops.get(op).ok_or(OwnershipError::UnknownId("operation", op.number()))?;
            if self.op_in_block(facts, facts.memrefs[value].block, op).is_none() {
                return Err(OwnershipError::NotVisible(value, op));
            }
        }
        for forward in &facts.forwards {
            if let ForwardTo::Value(to) = forward.to {
                known(to)?;
            }
            if self.last_op[facts.ops[forward.terminator]] != Some(forward.terminator) {
                return Err(OwnershipError::NotATerminator(forward.terminator));
            }
        }
        Ok(())
    }

    /// The operation of `block` that is or encloses `op`.
    pub fn op_in_block(&self, facts: &OwnershipFacts, block: BlockId, op: OpId) -> Option<OpId> {
        let mut op = op;
        while facts.ops[op] != block {
            op = facts.blocks[facts.ops[op]]?;
        }
        Some(op)
    }
}
