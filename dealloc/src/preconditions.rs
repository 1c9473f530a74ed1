//! Programs that are refused before any change.

use monopour_ir::control_flow::Traits;
use monopour_ir::interfaces::{EffectKind, memory_effects};
use monopour_ir::ops;
use monopour_ir::{Block, Diagnostic, Diagnostics, Op, WalkOrder};

use crate::control_flow::{back_edges, in_dominance_order};
use crate::models::OwnershipModels;
use crate::state::has_memrefs;

/// Marks an allocation with an explicit free, and that free.
pub(crate) const MANUAL_DEALLOCATION: &str = ops::attributes::bufferization::MANUAL_DEALLOCATION;

/// Refuses a function whose memrefs cannot be given owners.
///
/// # Errors
/// The first of D0102, D0103 and D0106 to D0109, in upstream's order: loops of branches, then block by block from the inside.
pub(crate) fn check(function: Op, models: &OwnershipModels) -> Result<(), Diagnostics> {
    let mut has_loops = false;
    function.walk(WalkOrder::Pre, |op| {
        has_loops = has_loops || op.regions().into_iter().any(|region| !back_edges(region).is_empty());
    });
    if has_loops {
        let message = "Only structured control-flow loops are supported";
        let error = Diagnostic::error("D0106", function.location(), message)
            .with_help("lift branches to scf.for and scf.while (pass lift-cf-to-scf), or turn on `extensions`");
        return Err(error.into());
    }
    check_regions(function, models)
}

fn check_regions(op: Op, models: &OwnershipModels) -> Result<(), Diagnostics> {
    for region in op.regions() {
        for block in in_dominance_order(region) {
            check_block(block, models)?;
        }
    }
    Ok(())
}

fn check_block(block: Block, models: &OwnershipModels) -> Result<(), Diagnostics> {
    let ops = block.ops();
    for op in ops.iter().filter(|op| op.num_regions() > 0) {
        check_regions(*op, models)?;
    }
    for op in ops.into_iter().filter(|op| models.by_name(*op).is_none()) {
        if let Some(error) = refusal(op) {
            return Err(error.into());
        }
    }
    Ok(())
}

/// The reason why the owners of an operation's memrefs cannot be decided.
fn refusal(op: Op) -> Option<Diagnostic> {
    let traits = Traits::of(op);
    let effects = if traits.has_memory_effects() { memory_effects(op).unwrap_or_default() } else { vec![] };
    let touches_memory = effects.iter().any(|e| matches!(e.kind, EffectKind::Allocate | EffectKind::Free));
    let is_harmless = if traits.has_memory_effects() { !touches_memory } else { traits.has_recursive_effects() };
    let error = |code, message: &str, help: &str| Some(Diagnostic::error(code, op.location(), message).with_help(help));
    if !has_memrefs(op) && is_harmless {
        // It forwards no memref, and yet the frees before it depend on its successor.
        if traits.is_branch() && op.successors().len() > 1 {
            let message = "BranchOpInterface operations with multiple successors are not supported yet";
            return error("D0109", message, "use cf.cond_br, or turn on `extensions`");
        }
        return None;
    }
    if op.is(ops::bufferization::DEALLOC) {
        let message = "No deallocation operations must be present when running this pass!";
        return error("D0102", message, "run this pass once, on the output of bufferization");
    }
    if !traits.has_memory_effects() && !traits.has_recursive_effects() && !traits.is_call() {
        let message = "ops with unknown memory side effects are not supported";
        return error("D0107", message, "give the op memory effects");
    }
    let regions = op.num_regions();
    if ((regions == 1 && op.num_results() > 0) || regions > 1) && !traits.is_region_branch() {
        let message = "All operations with attached regions need to implement the RegionBranchOpInterface.";
        return error("D0108", message, "use scf.if, scf.for or scf.while");
    }
    if traits.has_no_terminator() {
        return error("D0109", "NoTerminator trait is not supported", "use an op whose blocks end with a terminator");
    }
    if traits.is_terminator() && traits.is_branch() == traits.is_region_branch_terminator() {
        let message =
            "Terminators must implement either BranchOpInterface or RegionBranchTerminatorOpInterface (but not both)!";
        return error("D0109", message, "end the block with an op that says what it hands on");
    }
    if traits.is_terminator() && op.successors().len() > 1 {
        let message = "Terminators with more than one successor are not supported!";
        return error("D0109", message, "use cf.cond_br, or turn on `extensions`");
    }
    let frees = effects.iter().any(|e| {
        let is_operand = e.value.is_some_and(|v| v.ty().is_memref() && v.defining_op() != Some(op));
        e.kind == EffectKind::Free && is_operand
    });
    if frees && op.attr(MANUAL_DEALLOCATION).is_none() {
        let message = "memory free side-effect on MemRef value not supported!";
        return error(
            "D0102",
            message,
            "run this pass once, on the output of bufferization; run expand-realloc before",
        );
    }
    None
}
