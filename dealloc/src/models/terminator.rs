//! Terminators that leave a region: owned memrefs that they do not forward are freed before them.

use monopour_ir::control_flow::{Traits, forwarded_operands};
use monopour_ir::{Diagnostics, Op, Value};

use super::OwnershipModel;
use crate::state::State;

/// `RegionBranchTerminatorOpInterface`: an indicator goes with each memref, unless the function's results are always owned.
pub(super) struct RegionBranchTerminator;

impl OwnershipModel for RegionBranchTerminator {
    fn describes(&self, _op: Op, traits: Traits) -> bool {
        traits.is_region_branch_terminator()
    }

    fn process<'c>(&self, op: Op<'c>, state: &mut State<'c, '_>) -> Result<Op<'c>, Diagnostics> {
        let promises = op.parent().is_some_and(|parent| state.promises_results(parent));
        if promises {
            for index in (0..op.num_operands()).filter(|i| op.operand(*i).ty().is_memref()) {
                let owned = state.owned(op, op.operand(index))?;
                state.rewriter().set_operand(op, index, owned);
            }
        }
        let mut forwarded = forwarded_operands(op).map_or(vec![], |operands| operands.of(op));
        let memrefs: Vec<Value> = forwarded.iter().copied().filter(|v| v.ty().is_memref()).collect();
        let indicators = state.free_rest(op, &memrefs)?;
        if !promises && !indicators.is_empty() {
            forwarded.extend(indicators);
            state.rewriter().set_forwarded_operands(op, &forwarded);
        }
        Ok(op)
    }
}

/// Terminators that forward no memref.
pub(super) struct ForwardsNothing;

impl OwnershipModel for ForwardsNothing {
    fn process<'c>(&self, op: Op<'c>, state: &mut State<'c, '_>) -> Result<Op<'c>, Diagnostics> {
        state.free_rest(op, &[])?;
        Ok(op)
    }
}
