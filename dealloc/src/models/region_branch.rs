//! Operations that forward memrefs through regions: an indicator goes with each, as operand, argument and result.

use monopour_ir::control_flow::{Traits, entry_operands};
use monopour_ir::{Diagnostics, Op};

use super::OwnershipModel;
use crate::ownership::BlockOwnership;
use crate::state::State;

/// `RegionBranchOpInterface`.
pub(super) struct RegionBranch;

impl OwnershipModel for RegionBranch {
    fn describes(&self, _op: Op, traits: Traits) -> bool {
        traits.is_region_branch()
    }

    fn process<'c>(&self, op: Op<'c>, state: &mut State<'c, '_>) -> Result<Op<'c>, Diagnostics> {
        let Some(block) = op.block() else { return Ok(op) };
        pass_in(op, state);
        let count = op.num_results();
        let memrefs: Vec<usize> = (0..count).filter(|i| op.result(*i).ty().is_memref()).collect();
        let new = state.append_results(op, memrefs.len())?;
        for (extra, index) in memrefs.into_iter().enumerate() {
            state.set(new.result(index), block, BlockOwnership::Unique(new.result(count + extra)));
            state.add_candidate(new.result(index), block);
        }
        Ok(new)
    }
}

/// Regions never own memrefs from outside: the outer owner keeps them.
fn pass_in<'c>(op: Op<'c>, state: &mut State<'c, '_>) {
    let (Some(entry), Some(block)) = (entry_operands(op), op.block()) else { return };
    let count = entry.of(op).iter().filter(|v| v.ty().is_memref()).count();
    if count == 0 {
        return;
    }
    let never = state.constant(block, false);
    let mut operands = op.operands();
    let end = entry.first + entry.count;
    operands.splice(end..end, std::iter::repeat_n(never, count));
    // The segment that ends with the forwarded operands takes the indicators.
    let sizes = op.operand_segments();
    state.rewriter().set_operands(op, &operands);
    if let Some(mut sizes) = sizes {
        let mut at = 0;
        for size in &mut sizes {
            at += *size;
            if at == end && *size > 0 {
                *size += count;
                break;
            }
        }
        state.rewriter().set_operand_segments(op, &sizes);
    }
}
