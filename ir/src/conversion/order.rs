//! The order of the remaining casts: by their operands, not by creation.
//!
//! ```text
//! %n:2 = "new.op"(..) : i64, i32
//! %a = builtin.unrealized_conversion_cast %n#0 : i64 to i8          by position of the value, then by the text of the types
//! %b:2 = builtin.unrealized_conversion_cast %n#0 : i64 to i8, i8
//! %c = builtin.unrealized_conversion_cast %b#1 : i8 to i1           casts of a cast right after it
//! %d = builtin.unrealized_conversion_cast %n#1 : i32 to index
//! ```
//!
//! So the result does not depend on the order of visits. N:1 casts stay where they are: each has its own position.

use super::ConversionRewriter;
use crate::{Block, Builder, HandleMap, InsertionPoint, Op, Value};

/// Casts of one value by the op or block that defines it.
#[derive(Default)]
struct Behind<'c> {
    ops: HandleMap<Op<'c>, Vec<Op<'c>>>,
    blocks: HandleMap<Block<'c>, Vec<Op<'c>>>,
}

/// Orders casts, given in the order of the IR.
pub(super) fn order_casts(rw: &ConversionRewriter, casts: &[Op]) {
    let mut behind = Behind::default();
    let (mut ops, mut blocks) = (Vec::new(), Vec::new());
    for cast in casts.iter().copied().filter(|cast| cast.num_operands() == 1) {
        let value = cast.operand(0);
        match (value.defining_op(), value.as_block_arg()) {
            (Some(op), _) => {
                ops.push(op);
                behind.ops.entry(op).or_default().push(cast);
            }
            (None, Some((block, _))) => {
                blocks.push(block);
                behind.blocks.entry(block).or_default().push(cast);
            }
            (None, None) => unreachable!("a value is an op result or a block argument"),
        }
    }
    for block in blocks {
        let casts = behind.blocks.remove(&block).unwrap_or_default();
        place(rw, &mut behind, casts, InsertionPoint::Start(block));
    }
    // 1:1 casts of a cast follow it wherever it goes.
    for op in ops.into_iter().filter(|op| !(rw.state().casts.is_own(*op) && op.num_operands() == 1)) {
        let casts = behind.ops.remove(&op).unwrap_or_default();
        place(rw, &mut behind, casts, InsertionPoint::After(op));
    }
}

/// Moves the casts of one definition to a point, each followed by its own casts; returns the end.
fn place<'c>(
    rw: &ConversionRewriter<'c>,
    behind: &mut Behind<'c>,
    mut casts: Vec<Op<'c>>,
    mut at: InsertionPoint<'c>,
) -> InsertionPoint<'c> {
    casts.sort_by_cached_key(|cast| {
        let types: Vec<String> = cast.results().iter().map(|r| r.ty().to_string()).collect();
        (position(cast.operand(0)), types)
    });
    for cast in casts {
        c!(mlirOperationRemoveFromParent(cast.raw()));
        Builder::new(rw.context(), at).insert(cast);
        let of_it = behind.ops.remove(&cast).unwrap_or_default();
        at = place(rw, behind, of_it, InsertionPoint::After(cast));
    }
    at
}

fn position(value: Value) -> Option<usize> {
    value.result_index().or_else(|| value.as_block_arg().map(|(_, index)| index))
}
