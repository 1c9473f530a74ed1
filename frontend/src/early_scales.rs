//! Computes with the elements of a tensor before they are repeated.
//!
//! Before / after, of keys of which a head is read by several heads of queries:
//!
//! ```text
//! %b = broadcast %k over heads of queries                %s = generic ins(%k) { mulf %in, %scale }
//! %t = transpose of a reshape of %b                      %b = broadcast %s over heads of queries
//! %s = generic ins(%t) { mulf %in, %scale }              %t = transpose of a reshape of %b
//! ```
//!
//! A product reads a broadcast as it is, without what is repeated; between the two, a pointwise op would have it in memory. So
//! PyTorch exports attentions of grouped heads, whose queries and keys are both scaled.
//! Requires: pointwise ops of one tensor, whose body has no `linalg.index`; values that nothing else reads.
//! Ensures: the same values.

use crate::collapse_lines::dynamic_sizes;
use crate::linalg;
use monopour_ir::typed::linalg::{Operands, generic};
use monopour_ir::{AffineMap, Diagnostics, InsertionPoint, Module, Op, OpSpec, Region, Rewriter, Type, Value, ops};

/// Rewrites all such ops of `module`.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(crate) fn run<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    for op in module.op().find_all(ops::linalg::GENERIC) {
        if let Some((first, source)) = repeated(op) {
            rewrite(op, first, source, rw)?;
        }
    }
    Ok(())
}

/// The first of the moves between a pointwise op and a tensor that they repeat, and the tensor.
fn repeated<'c>(op: Op<'c>) -> Option<(Op<'c>, Value<'c>)> {
    let maps = linalg::indexing_maps(op)?;
    let is_plain = linalg::is_elementwise(op)
        && !linalg::is_data_movement(op)
        && (linalg::num_inputs(op), op.num_results()) == (1, 1)
        && maps.iter().all(|map| map.is_identity());
    let body = op.body().filter(|body| is_plain && body.arg(1).is_unused())?;
    let ty = op.operand(0).ty();
    if ty.element() != op.result(0).ty().element() || body.terminator()?.operand(0) == body.arg(0) {
        return None;
    }
    let (mut value, mut first, mut repeats) = (op.operand(0), None, false);
    while let Some(made) = value.defining_op().filter(|_| value.only_use().is_some()) {
        let is_reshape = made.is(ops::tensor::EXPAND_SHAPE) || made.is(ops::tensor::COLLAPSE_SHAPE);
        let moves = linalg::is_elementwise(made) && linalg::is_data_movement(made) && linalg::num_inputs(made) == 1;
        let body = made.body().filter(|_| moves);
        if !is_reshape && body.is_none_or(|body| body.terminator().map(|end| end.operand(0)) != Some(body.arg(0))) {
            break;
        }
        repeats |= moves && repeats_elements(made);
        (first, value) = (Some(made), made.operand(0));
    }
    first.filter(|_| repeats).map(|first| (first, value))
}

/// Whether an op of one input reads its elements in several iterations.
fn repeats_elements(op: Op) -> bool {
    let read = linalg::indexing_maps(op).and_then(|maps| maps.first()?.dim_positions()).unwrap_or_default();
    let extents = linalg::loop_extents(op).unwrap_or_default();
    extents.iter().enumerate().any(|(d, extent)| *extent != 1 && !read.contains(&d))
}

fn rewrite<'c>(op: Op<'c>, first: Op<'c>, source: Value<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    let (loc, ty) = (op.location(), source.ty());
    let shape = ty.shape().expect("invariant: it is a tensor");
    rw.set_point(InsertionPoint::Before(first));
    let (ty, sizes) = (Type::tensor(&shape, ty.element(), None), dynamic_sizes(source, rw)?);
    let empty = rw.create(OpSpec::new(ops::tensor::EMPTY, loc).operands(&sizes).results(&[ty]))?.result(0);
    let region = Region::new();
    rw.take_region(region, op.region(0));
    let maps = [AffineMap::identity(op.context(), shape.len()); 2];
    let kinds = linalg::iterators(op.context(), &vec![true; shape.len()]);
    let operands = Operands { inputs: &[source], outputs: &[empty] };
    let made = rw.create(generic(loc, operands, &maps, kinds, region))?.result(0);
    rw.set_operand(first, 0, made);
    rw.replace_op(op, &[op.operand(0)]);
    Ok(())
}
