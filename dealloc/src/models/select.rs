//! `arith.select`: the indicators are selected like the memrefs, on request.

use monopour_ir::ops;
use monopour_ir::{Diagnostics, Op, OpSpec, Value};

use super::OwnershipModel;
use crate::ownership::BlockOwnership;
use crate::state::State;

/// `arith.select`.
pub(super) struct Select;

impl OwnershipModel for Select {
    /// The result may be either operand, until [`Self::indicator`] is called.
    fn process<'c>(&self, op: Op<'c>, _state: &mut State<'c, '_>) -> Result<Op<'c>, Diagnostics> {
        Ok(op)
    }

    fn indicator<'c>(
        &self,
        op: Op<'c>,
        at: Op<'c>,
        state: &mut State<'c, '_>,
    ) -> Result<Option<Value<'c>>, Diagnostics> {
        let Some(block) = at.block() else { return Ok(None) };
        let sides = (state.ownership(op.operand(1), block), state.ownership(op.operand(2), block));
        let (BlockOwnership::Unique(on_true), BlockOwnership::Unique(on_false)) = sides else { return Ok(None) };
        let spec = OpSpec::new(ops::arith::SELECT, op.location())
            .operands(&[op.operand(0), on_true, on_false])
            .results(&[on_true.ty()]);
        Ok(Some(state.create_before(at, spec)?.result(0)))
    }
}
