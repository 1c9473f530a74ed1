//! Finish partial bufferization: fold bridges between tensors and buffers, and fail if a tensor remains.
//!
//! ```text
//! %t = bufferization.to_tensor %m : memref<4xf32> to tensor<4xf32>
//! %b = bufferization.to_buffer %t : tensor<4xf32> to memref<4xf32>
//! memref.store %x, %b[%i] : memref<4xf32>                           ==>   memref.store %x, %m[%i] : memref<4xf32>
//! ```
//!
//! Requires: partial runs (`dialect-filter`, `allow-unknown-ops`) that together bufferize all ops, functions included.
//! Ensures: no tensors; else an error for each operation with one (B0124), and the module unchanged except for the folds.
//! Source: `-finalizing-bufferize` of MLIR's older bufferization document; LLVM 22 has dropped it.
//! Differs: if layouts differ the buffer is cast, and if the cast may fail the operation stays, with its error.

use monopour_ir::conversion::{ConversionTarget, Declined, Mode, PatternSet, convert};
use monopour_ir::ops;
use monopour_ir::{Diagnostic, Diagnostics, Op, OpSpec, Value, WalkOrder};

use crate::memref_types::is_cast_safe;
use crate::scope::has_tensors;

/// Counts of the pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Finalized {
    /// `to_buffer`s replaced by the memref of their `to_tensor`.
    pub folded: u32,
}

/// Folds the bridges in an operation and checks that no tensor is left.
///
/// # Errors
/// B0124 for each operation in it that still has tensors.
pub fn finalize(root: Op) -> Result<Finalized, Diagnostics> {
    let done = Finalized { folded: fold_bridges(root)? };
    drop_idle_bridges(root)?;
    let left: Vec<Op> = root.nested(WalkOrder::Pre).into_iter().filter(|op| has_tensors(*op)).collect();
    // A bridge or a function is reported only if no other op is: for a tensor without other uses.
    let is_border = |op: &Op| {
        op.is(ops::func::FUNC) || op.is(ops::bufferization::TO_TENSOR) || op.is(ops::bufferization::TO_BUFFER)
    };
    let others = left.iter().any(|op| !is_border(op));
    let errors: Vec<_> = left.into_iter().filter(|op| !others || !is_border(op)).map(still_on_tensors).collect();
    if errors.is_empty() { Ok(done) } else { Err(Diagnostics(errors)) }
}

/// Replaces each `to_buffer` by the memref of its tensor if possible; returns their number.
fn fold_bridges(root: Op) -> Result<u32, Diagnostics> {
    let mut target = ConversionTarget::new();
    target.dynamically_legal_op(ops::bufferization::TO_BUFFER, |op| foldable(op).is_none());
    let mut patterns = PatternSet::new();
    patterns.add_fn(ops::bufferization::TO_BUFFER, |op, _, rw| {
        let memref = foldable(op).ok_or_else(|| Declined::no_match("no memref is behind its tensor"))?;
        let wanted = op.result(0).ty();
        if memref.ty() == wanted {
            rw.replace_op(op, &[memref]);
            return Ok(());
        }
        let cast = rw.create(OpSpec::new(ops::memref::CAST, op.location()).operands(&[memref]).results(&[wanted]))?;
        rw.replace_op(op, &cast.results());
        Ok(())
    });
    let stats = convert(root, &target, &patterns, Mode::Partial)?;
    Ok(u32::try_from(stats.patterns_applied).unwrap_or(u32::MAX))
}

/// The memref behind a `to_buffer`, if it may replace the result.
fn foldable<'c>(op: Op<'c>) -> Option<Value<'c>> {
    let tensor = op.operand(0).defining_op().filter(|t| t.is(ops::bufferization::TO_TENSOR))?;
    let (memref, wanted) = (tensor.operand(0), op.result(0).ty());
    let to_unranked = wanted.is_memref() && wanted.shape().is_none();
    (memref.ty() == wanted || to_unranked || is_cast_safe(memref.ty(), wanted)).then_some(memref)
}

/// Erases unused `to_tensor`s: a stage of its own, because they come before their users.
fn drop_idle_bridges(root: Op) -> Result<(), Diagnostics> {
    let mut target = ConversionTarget::new();
    target.dynamically_legal_op(ops::bufferization::TO_TENSOR, |op| !op.result(0).is_unused());
    let mut patterns = PatternSet::new();
    patterns.add_fn(ops::bufferization::TO_TENSOR, |op, _, rw| {
        rw.erase(op);
        Ok(())
    });
    convert(root, &target, &patterns, Mode::Partial).map(drop)
}

fn still_on_tensors(op: Op) -> Diagnostic {
    // The message of the conversion driver that upstream's pass used.
    let message = format!("failed to legalize operation '{}'", op.name());
    Diagnostic::error("B0124", op.location(), message)
        .with_help("bufferize it before: add its dialect to a dialect-filter, or turn on bufferize-function-boundaries")
}
