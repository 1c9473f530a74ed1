//! Calls: the caller owns the results, or gets an indicator for each.

use monopour_ir::control_flow::Traits;
use monopour_ir::{Diagnostics, Op};

use super::OwnershipModel;
use crate::ownership::BlockOwnership;
use crate::state::State;

/// `CallOpInterface`.
pub(super) struct Call;

impl OwnershipModel for Call {
    fn describes(&self, _op: Op, traits: Traits) -> bool {
        traits.is_call()
    }

    fn process<'c>(&self, op: Op<'c>, state: &mut State<'c, '_>) -> Result<Op<'c>, Diagnostics> {
        let Some(block) = op.block() else { return Ok(op) };
        let count = op.num_results();
        let memrefs: Vec<usize> = (0..count).filter(|i| op.result(*i).ty().is_memref()).collect();
        let is_dynamic = state.callee_passes_indicators(op);
        let new = if is_dynamic { state.append_results(op, memrefs.len())? } else { op };
        for (extra, index) in memrefs.into_iter().enumerate() {
            let indicator = if is_dynamic { new.result(count + extra) } else { state.constant(block, true) };
            state.set(new.result(index), block, BlockOwnership::Unique(indicator));
            state.add_candidate(new.result(index), block);
        }
        Ok(new)
    }
}
