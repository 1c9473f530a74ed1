//! Slices before they are transposed: each reader of a slice then folds the transpose into its maps.
//!
//! Before / after, for queries, keys and values of one product:
//!
//! ```text
//! %t = transpose %x : 50x3x4x16 to 3x4x50x16                %s = tensor.extract_slice %x[0, 0, 0, 0] .. to 50x4x16
//! %q = tensor.extract_slice %t[0, 0, 0, 0] .. to 1x4x50x16  %q = expand_shape (transpose %s : 50x4x16 to 4x50x16)
//! %k = tensor.extract_slice %t[1, 0, 0, 0] .. to 1x4x50x16  ... of %x[0, 1, 0, 0]
//! ```
//!
//! The transposed tensor is not in memory, and what reads the slices may be an attention.
//! Requires: what `linalg-generalize-named-ops` leaves.
//! Limits: all readers are slices, a few, that keep the rank, and pointwise ops.

use crate::linalg;
use monopour_ir::typed::linalg::{Operands, generic};
use monopour_ir::typed::{Index, Slice, tensor};
use monopour_ir::{
    AffineMap, Attr, Block, Diagnostics, InsertionPoint, Module, Op, OpSpec, Region, Rewriter, Type, Value, ops,
};

/// Most slices: each could become a dispatch of its own.
const MOST_SLICES: usize = 8;

/// Rewrites all such transposes of a module; whether there were any.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(crate) fn run<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) -> Result<bool, Diagnostics> {
    let mut is_changed = false;
    for op in module.op().find_all(ops::linalg::GENERIC) {
        let Some((slices, order)) = slices_of(op) else { continue };
        for slice in slices {
            rewrite(op, slice, &order, rw)?;
            is_changed = true;
        }
    }
    Ok(is_changed)
}

/// The slices that read a transpose, and its loops by dimension of its input; `None` where something reads it that would not
/// fold it.
fn slices_of<'c>(op: Op<'c>) -> Option<(Vec<Op<'c>>, Vec<usize>)> {
    let maps = linalg::indexing_maps(op)?;
    let is_transpose = linalg::is_data_movement(op) && linalg::num_inputs(op) == 1 && maps.len() == 2;
    if !is_transpose || !maps[0].is_permutation() || maps[0].is_identity() || !maps[1].is_identity() {
        return None;
    }
    let order = maps[0].dim_positions()?;
    let body = op.body()?;
    if body.terminator()?.operand(0) != body.arg(0) {
        return None;
    }
    let uses = op.result(0).uses().into_iter();
    let (folding, slices): (Vec<_>, Vec<_>) = uses.partition(|u| linalg::reads_elementwise(u.op, u.index));
    let keeps_rank = |op: Op<'c>| {
        let rank = |op: Op| op.result(0).ty().shape().map(|shape| shape.len());
        op.is(ops::tensor::EXTRACT_SLICE) && rank(op) == Some(order.len())
    };
    let all = slices.iter().all(|u| u.index == 0 && keeps_rank(u.op));
    let is_few = !slices.is_empty() && slices.len() + folding.len() <= MOST_SLICES;
    (all && is_few).then(|| (slices.into_iter().map(|u| u.op).collect(), order))
}

/// A transpose of the slice of the input in place of `slice`, of dimensions of more than one element alone: so products and rows
/// that read it have the same loops.
fn rewrite<'c>(op: Op<'c>, slice: Op<'c>, order: &[usize], rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    let given = Slice::of(slice).expect("invariant: it is a slice");
    let by_input = |list: &[Index<'c>]| order.iter().map(|d| list[*d]).collect::<Vec<_>>();
    let turned =
        Slice { offsets: by_input(&given.offsets), sizes: by_input(&given.sizes), strides: by_input(&given.strides) };
    let (cx, loc, result) = (slice.context(), slice.location(), slice.result(0).ty());
    let (element, shape) = (result.element(), result.shape().expect("invariant: it is a tensor"));
    let several: Vec<usize> = (0..shape.len()).filter(|d| shape[*d] != 1).collect();
    let kept = if several.is_empty() { vec![shape.len() - 1] } else { several };
    // The loop of each dimension of the slice of the input.
    let loops: Vec<usize> = order.iter().filter_map(|d| kept.iter().position(|k| k == d)).collect();
    let sizes = |dims: &[usize]| dims.iter().map(|d| shape[kept[*d]]).collect::<Vec<_>>();
    let all: Vec<usize> = (0..kept.len()).collect();
    let dynamic: Vec<Value> = given.sizes.iter().filter_map(|size| size.value()).collect();
    rw.set_point(InsertionPoint::Before(slice));
    let ty = Type::tensor(&sizes(&loops), element, None);
    let mut value = rw.create(tensor::extract_slice(loc, op.operand(0), &turned, ty))?.result(0);
    if loops != all {
        let ty = Type::tensor(&sizes(&all), element, None);
        let empty = rw.create(OpSpec::new(ops::tensor::EMPTY, loc).operands(&dynamic).results(&[ty]))?.result(0);
        let (block, region) = (Block::new(&[(element, loc); 2]), Region::new());
        region.append(block);
        rw.set_point(InsertionPoint::End(block));
        rw.create(OpSpec::new(ops::linalg::YIELD, loc).operands(&[block.arg(0)]))?;
        rw.set_point(InsertionPoint::Before(slice));
        let operands = Operands { inputs: &[value], outputs: &[empty] };
        let maps = [&loops, &all].map(|dims| AffineMap::select(cx, all.len(), dims));
        let kinds = linalg::iterators(cx, &vec![true; all.len()]);
        value = rw.create(generic(loc, operands, &maps, kinds, region))?.result(0);
    }
    if kept.len() < shape.len() {
        let spec = OpSpec::new(ops::tensor::EXPAND_SHAPE, loc)
            .operands(&[value])
            .operands(&dynamic)
            .results(&[result])
            .attr("reassociation", linalg::groups_around(cx, &kept, shape.len()))
            .attr("static_output_shape", Attr::dense_i64(cx, &shape));
        value = rw.create(spec)?.result(0);
    }
    rw.replace_op(slice, &[value]);
    Ok(())
}
