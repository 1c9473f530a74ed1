//! Restores the slice of a tile that is the whole output.
//!
//! Before / after:
//!
//! ```text
//! scf.forall (%i) in (1) shared_outs(%o = %e) {        scf.forall (%i) in (1) shared_outs(%o = %e) {
//!                                                        %s = tensor.extract_slice %o[0] [7] [1]
//!   %r = linalg.generic ... outs(%o)                     %r = linalg.generic ... outs(%s)
//!   scf.forall.in_parallel {                             scf.forall.in_parallel {
//!     tensor.parallel_insert_slice %r into %o[0] [7] [1]   tensor.parallel_insert_slice %r into %o[0] [7] [1]
//! ```
//!
//! Canonicalization drops the extraction of a whole tensor, but the in-place analysis needs a matching extraction to see
//! that the insertion writes back the same elements; without one it copies the tile.
//! Requires: dispatches of static shape. Ensures: no shared output is used but by extractions and insertions.

use monopour_ir::ops;
use monopour_ir::typed::{Slice, tensor};
use monopour_ir::{Diagnostics, InsertionPoint, Module, Rewriter, Value};

/// Restores the slices of all dispatches.
///
/// # Errors
/// MLIR's diagnostics when a slice cannot be built.
pub(crate) fn run<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    for forall in module.op().find_all(ops::scf::FORALL) {
        let body = forall.body().expect("invariant: scf.forall has a body");
        let ids = body.num_args() - forall.num_results();
        for output in body.args().split_off(ids) {
            restore(output, rw)?;
        }
    }
    Ok(())
}

fn restore<'c>(output: Value<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    let inside: Vec<_> = output.uses().into_iter().filter(|u| !u.op.is(ops::tensor::PARALLEL_INSERT_SLICE)).collect();
    let bare = inside.iter().find(|u| !(u.op.is(ops::tensor::EXTRACT_SLICE) && u.index == 0)).copied();
    let shape = output.ty().shape().filter(|s| s.iter().all(|d| *d >= 0));
    let (Some(shape), Some((block, _)), Some(first)) = (shape, output.as_block_arg(), bare) else {
        return Ok(());
    };
    rw.set_point(InsertionPoint::Start(block));
    let whole = Slice::fixed(&vec![0; shape.len()], &shape);
    let slice = rw.create(tensor::extract_slice(first.op.location(), output, &whole, output.ty()))?;
    // All uses: a slice of the output beside the whole slice would be another value than a slice of that.
    for u in inside {
        rw.set_operand(u.op, u.index, slice.result(0));
    }
    Ok(())
}
