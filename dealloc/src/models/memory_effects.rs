//! Operations with memory effects: the block of an allocation owns it.

use monopour_ir::control_flow::{Traits, allocates_in_scope};
use monopour_ir::interfaces::{EffectKind, memory_effects};
use monopour_ir::ops;
use monopour_ir::{Attr, Diagnostics, Op, OpSpec};

use super::{OwnershipModel, ResultMemory};
use crate::ownership::BlockOwnership;
use crate::preconditions::MANUAL_DEALLOCATION;
use crate::state::{State, has_memrefs};

/// `MemoryEffectOpInterface`.
pub(super) struct MemoryEffects;

impl OwnershipModel for MemoryEffects {
    fn describes(&self, op: Op, traits: Traits) -> bool {
        traits.has_memory_effects() && has_memrefs(op)
    }

    fn process<'c>(&self, op: Op<'c>, state: &mut State<'c, '_>) -> Result<Op<'c>, Diagnostics> {
        let Some(block) = op.block() else { return Ok(op) };
        for effect in memory_effects(op).unwrap_or_default() {
            let Some(value) = effect.value.filter(|v| v.ty().is_memref()) else { continue };
            match effect.kind {
                // Only under `manual_deallocation`: others were refused before.
                EffectKind::Free => assert_not_owned(op, state.ownership(value, block), state)?,
                EffectKind::Allocate if value.defining_op() == Some(op) => {
                    let is_ours = !allocates_in_scope(op, value) && op.attr(MANUAL_DEALLOCATION).is_none();
                    let indicator = state.constant(block, is_ours);
                    state.set(value, block, BlockOwnership::Unique(indicator));
                    if is_ours {
                        state.add_candidate(value, block);
                    }
                }
                _ => {}
            }
        }
        Ok(op)
    }

    fn result_memory(&self, op: Op) -> Option<ResultMemory> {
        let effects = memory_effects(op).unwrap_or_default();
        let allocates = |value| effects.iter().any(|e| e.kind == EffectKind::Allocate && e.value == Some(value));
        let memrefs: Vec<_> = op.results().into_iter().filter(|r| r.ty().is_memref()).collect();
        if memrefs.is_empty() || !memrefs.iter().all(|m| allocates(*m)) {
            return None;
        }
        let is_freed_otherwise = |m| allocates_in_scope(op, m) || op.attr(MANUAL_DEALLOCATION).is_some();
        let is_foreign = memrefs.into_iter().any(is_freed_otherwise);
        Some(if is_foreign { ResultMemory::Foreign } else { ResultMemory::Fresh })
    }
}

/// An explicitly freed memref must not be freed by the block as well: asserted at run time, because an alias may have been freed.
fn assert_not_owned<'c>(
    op: Op<'c>,
    ownership: BlockOwnership<'c>,
    state: &mut State<'c, '_>,
) -> Result<(), Diagnostics> {
    let (Some(indicator), Some(block)) = (ownership.indicator(), op.block()) else { return Ok(()) };
    let always = state.constant(block, true);
    let spec = OpSpec::new(ops::arith::XORI, op.location()).operands(&[indicator, always]).results(&[always.ty()]);
    let free = state.create_before(op, spec)?.result(0);
    let message = Attr::string(op.context(), "expected that the block does not have ownership");
    state.create_before(op, OpSpec::new(ops::cf::ASSERT, op.location()).operands(&[free]).attr("msg", message))?;
    Ok(())
}
