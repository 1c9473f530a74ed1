//! Sinks the requests for handles of inputs and constants to their first use.
//!
//! Before / after (`monopour_rt_` left out of the names):
//! ```mlir
//! %w0 = call @constant(%cx, %c0)                       %x = call @input(%cx, %c0)
//! %w1 = call @constant(%cx, %c1)                       %w0 = call @constant(%cx, %c0)
//! %x = call @input(%cx, %c0)                           call @arg(%cx, %x, ..) call @arg(%cx, %w0, ..) call @dispatch(..)
//! call @arg(%cx, %x, ..) call @arg(%cx, %w0, ..) ..    %w1 = call @constant(%cx, %c1)
//! call @arg(%cx, %w1, ..) ..                           call @arg(%cx, %w1, ..) ..
//! ```
//! A handle requested at the start is live across every call until its use. LLVM's register allocator compares each live
//! value with each of these calls: with a weight per layer, quadratic in the layers.
//! Requires: a scheduled host function. Ensures: the same calls in each block; those that moved have no effects.

use monopour_contract::RuntimeFunction;
use monopour_ir::ops;
use monopour_ir::{Block, Op, Rewriter, Value};
use std::collections::HashMap;

/// Runtime functions that return the handle of a buffer and have no effects.
const HANDLES: [RuntimeFunction; 2] = [RuntimeFunction::Input, RuntimeFunction::Constant];

/// Moves the calls of `block` and of the blocks in it.
pub(crate) fn run<'c>(block: Block<'c>, rw: &mut Rewriter<'c>) {
    let ops = block.ops();
    let places: HashMap<Op, usize> = ops.iter().copied().zip(0..).collect();
    for op in &ops {
        op.regions().into_iter().flat_map(|r| r.blocks()).for_each(|inner| run(inner, rw));
    }
    for op in ops.iter().copied().filter(|op| is_handle(*op)) {
        let first = first_use(op, &places).map(|place| ops[place]);
        // The index constant moves along.
        let index =
            op.operand(1).defining_op().filter(|c| c.is(ops::arith::CONSTANT) && c.result(0).only_use().is_some());
        if let Some(first) = first {
            index.into_iter().chain([op]).for_each(|moved| rw.move_before(moved, first));
        }
    }
}

fn is_handle(op: Op) -> bool {
    op.is(ops::func::CALL) && op.callee().is_some_and(|name| HANDLES.iter().any(|f| f.name() == name))
}

/// Position of the first op of the block that uses the result, itself or in its regions.
fn first_use(op: Op, places: &HashMap<Op, usize>) -> Option<usize> {
    op.results().into_iter().flat_map(Value::uses).filter_map(|u| place(u.op, places)).min()
}

fn place(op: Op, places: &HashMap<Op, usize>) -> Option<usize> {
    std::iter::successors(Some(op), |op| op.parent()).find_map(|op| places.get(&op).copied())
}
