//! Values that a function computes from its arguments alone, computed again by its callers.

use std::collections::HashSet;

use monopour_ir::interfaces::is_pure;
use monopour_ir::{Block, Op, Rewriter, Value};

/// Most ops repeated in a caller for one value: beyond that it is cheaper to pass it.
const MAX_OPS: usize = 32;

/// The ops that compute a value from arguments of a function, in order.
#[derive(Clone, Debug)]
pub(crate) struct Recipe<'c> {
    ops: Vec<Op<'c>>,
    value: Value<'c>,
}

/// The recipe of `value` from arguments of the function with this entry block; `None` if it depends on more.
pub(crate) fn recipe<'c>(value: Value<'c>, entry: Block<'c>) -> Option<Recipe<'c>> {
    let (mut ops, mut seen) = (Vec::new(), HashSet::new());
    // Each entry: a value, and whether its operands are in the list already.
    let mut open = vec![(value, false)];
    while let Some((at, is_ready)) = open.pop() {
        if let Some((block, _)) = at.as_block_arg() {
            if block != entry {
                return None;
            }
            continue;
        }
        let op = at.defining_op()?;
        if is_ready {
            ops.push(op);
            continue;
        }
        if !seen.insert(op) {
            continue;
        }
        if !is_pure(op) || op.num_regions() > 0 || seen.len() > MAX_OPS {
            return None;
        }
        open.push((at, true));
        open.extend(op.operands().into_iter().map(|v| (v, false)));
    }
    Some(Recipe { ops, value })
}

impl<'c> Recipe<'c> {
    /// The value itself.
    pub fn value(&self) -> Value<'c> {
        self.value
    }

    /// Computes the value at the insertion point from the operands of a call.
    pub fn replay(&self, rw: &mut Rewriter<'c>, args: &[Value<'c>]) -> Value<'c> {
        let mut made: Vec<(Value, Value)> = Vec::new();
        let find = |made: &[(Value<'c>, Value<'c>)], v: Value<'c>| match v.as_block_arg() {
            Some((_, index)) => args[index],
            None => made.iter().find(|(from, _)| *from == v).map_or(v, |(_, to)| *to),
        };
        for op in &self.ops {
            let copy = rw.clone_op(*op, |v| find(&made, v));
            rw.insert(copy);
            made.extend(op.results().into_iter().zip(copy.results()));
        }
        find(&made, self.value)
    }
}
