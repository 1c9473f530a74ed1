//! `arith.select`: the owner of the memref that is selected is selected alike.

use monopour_ir::{Diagnostics, InsertionPoint, Op, OpSpec};

use super::OwnershipModel;
use crate::ownership::Ownership;
use crate::state::State;

/// `arith.select`.
pub(super) struct Select;

impl OwnershipModel for Select {
    fn process(&self, op: Op, state: &mut State<'_>) -> Result<Op, Diagnostics> {
        let (Some(block), true) = (op.block(), op.result(0).ty().is_memref()) else { return Ok(op) };
        let sides = (state.ownership(op.operand(1), block), state.ownership(op.operand(2), block));
        let (Ownership::Unique(on_true), Ownership::Unique(on_false)) = sides else { return Ok(op) };
        // One indicator for both needs no choice.
        if sides.0.join(sides.1) == sides.0 {
            state.set(op.result(0), block, sides.0);
            return Ok(op);
        }
        let spec = OpSpec::new("arith.select", op.location())
            .operands(&[op.operand(0), on_true, on_false])
            .results(&[on_true.ty()]);
        state.rewriter().set_point(InsertionPoint::After(op));
        let indicator = state.rewriter().create(spec)?.result(0);
        state.set(op.result(0), block, Ownership::Unique(indicator));
        Ok(op)
    }
}
