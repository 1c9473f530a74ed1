//! Products read weights that are computed in the order in which these are stored, and have a loop over rows.
//!
//! Before / after:
//!
//! ```text
//! %w = generic ins(%bytes, %scales)                          %w = generic ins(%bytes, %scales)
//! %c = collapse_shape %w : [2816, 32, 16, 2] to [2816, 1024] %c = collapse_shape %w
//! %t = transpose %c                                          %x1 = expand_shape %x : [1024] to [1, 1024]
//! %y = generic (n, k) %x[k], %t[k, n] : [2816]               %y1 = generic (m, n, k) %x1[m, k], %c[n, k] : [1, 2816]
//!                                                            %y = collapse_shape %y1
//! ```
//!
//! Weights in blocks lie along a product's terms, whose matrix a model may have the other way round. Fusion makes what computes
//! them a part of the product only where no transpose is between the two; and it moves a dimension of one row, which others add to
//! the result, into the product before that, where weights that are reshaped would get it too.
//!
//! Requires: generics alone; no dispatches yet. Ensures: the same values.
//! Limits: weights of constants; a row is added to results of rank 1 and of known sizes.

use crate::{linalg, products};
use monopour_contract::attributes;
use monopour_ir::typed::linalg::{IteratorType, iterator_types, iterator_types_attr};
use monopour_ir::{
    AffineMap, Attr, DYNAMIC, Diagnostics, InsertionPoint, Module, Op, OpSpec, Rewriter, Type, Value, ops,
};
use tracing::trace;

/// Rewrites all such products of `module`.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(crate) fn run<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    for op in module.op().find_all(ops::linalg::GENERIC) {
        let Some(found) = products::contraction_loops(op).filter(|_| linalg::num_inputs(op) == 2) else { continue };
        let weights = 1 - found.lhs;
        let Some((stored, order)) = stored(op.operand(weights)) else { continue };
        let mut maps = linalg::indexing_maps(op).unwrap_or_default();
        if !order.is_sorted() {
            trace!(target: "fuse", "{}: reads weights as they are stored", op.location());
            let Some(dims) = maps[weights].dim_positions() else { continue };
            let dims: Vec<usize> = order.iter().map(|d| dims[*d]).collect();
            maps[weights] = AffineMap::select(op.context(), maps[weights].num_dims(), &dims);
            rw.set_operand(op, weights, stored);
            rw.set_attr(op, "indexing_maps", attr(op, &maps));
        }
        let is_reshaped = stored.defining_op().is_some_and(|def| def.is(ops::tensor::COLLAPSE_SHAPE));
        if is_reshaped && found.m.is_empty() && found.batch.is_empty() {
            add_row(op, found.lhs, &maps, rw)?;
        }
    }
    Ok(())
}

fn attr<'c>(op: Op<'c>, maps: &[AffineMap<'c>]) -> Attr<'c> {
    Attr::array(op.context(), &maps.iter().map(|map| map.to_attr()).collect::<Vec<_>>())
}

/// The value of computed weights that transposes of it lead to, and the dimension of the given value for each of its.
fn stored<'c>(mut value: Value<'c>) -> Option<(Value<'c>, Vec<usize>)> {
    let mut order: Vec<usize> = (0..value.ty().shape()?.len()).collect();
    loop {
        let op = value.defining_op()?;
        if is_computed(op) || op.is(ops::tensor::COLLAPSE_SHAPE) && op.operand(0).defining_op().is_some_and(is_computed)
        {
            return Some((value, order));
        }
        if !linalg::is_data_movement(op) || linalg::num_inputs(op) != 1 {
            return None;
        }
        let maps = linalg::indexing_maps(op)?;
        if !maps.iter().all(|map| map.is_permutation()) {
            return None;
        }
        let (from, to) = (maps[0].dim_positions()?, maps[1].dim_positions()?);
        let place = |l: &usize| to.iter().position(|of| of == l).map(|result| order[result]);
        order = from.iter().map(place).collect::<Option<_>>()?;
        value = op.operand(0);
    }
}

/// Most rows that compute integer weights as they read them: more have them computed before, in memory (on 512-bit registers, 4 bits,
/// as fast at 25 rows).
pub(crate) const FEW_ROWS: i64 = 16;

/// Most numbers of a byte whose weights a few rows compute: more are taken apart element by element.
pub(crate) const FEW_ROWS_PER_BYTE: i64 = 2;

/// Least bytes of a line of such weights: a block's, a vector of 512 bits of floats.
const LEAST_LINE: i64 = 16;

/// Whether a product has few rows, known or marked as such, of a factor that is computed of integers and lies along the terms.
pub(crate) fn has_few_rows(op: Op, factor: usize) -> bool {
    let extents = linalg::loop_extents(op).unwrap_or_default();
    let marked = op.attr(attributes::FEW_ROWS).is_some();
    lies_along_terms(op, factor, FEW_ROWS_PER_BYTE).is_some_and(|rows| {
        let known = rows.iter().map(|d| if marked && extents[*d] == DYNAMIC { 1 } else { extents[*d] });
        { known }.try_fold(1i64, |all, rows| all.checked_mul(rows)).is_some_and(|rows| (1..=FEW_ROWS).contains(&rows))
    })
}

/// The loops over rows of a product one of whose factors is computed of integers, at most so many to a byte, and stored along the
/// terms.
pub(crate) fn lies_along_terms(op: Op, factor: usize, per_byte: i64) -> Option<Vec<usize>> {
    let found = products::contraction_loops(op).filter(|found| found.lhs != factor && found.batch.is_empty())?;
    let mut value = op.operand(factor);
    if let Some(reshape) = value.defining_op().filter(|def| def.is(ops::tensor::COLLAPSE_SHAPE)) {
        value = reshape.operand(0);
    }
    let maker = value.defining_op().filter(|maker| is_computed(*maker))?;
    let (bytes, numbers) = (maker.operand(0).ty(), maker.result(0).ty());
    let narrow = bytes.element().integer_width().is_some_and(|width| width <= 8)
        && bytes.shape()?.last().is_some_and(|size| *size >= LEAST_LINE)
        && numbers.shape()?.iter().product::<i64>() <= per_byte * bytes.shape()?.iter().product::<i64>();
    let last = *linalg::indexing_maps(op)?.get(factor)?.dim_positions()?.last()?;
    (narrow && found.k.contains(&last)).then_some(found.m)
}

/// Whether an op computes each element of constants.
pub(crate) fn is_computed(op: Op) -> bool {
    let inputs = if op.is(ops::linalg::GENERIC) { linalg::num_inputs(op) } else { 0 };
    let constant = |v: &Value| v.defining_op().is_some_and(|def| def.is(ops::arith::CONSTANT));
    let pointwise = || linalg::parallel_loops(op).is_some_and(|loops| loops.iter().all(|parallel| *parallel));
    inputs > 0 && !linalg::is_data_movement(op) && pointwise() && op.operands()[..inputs].iter().all(constant)
}

/// Gives a product a loop over one row.
fn add_row<'c>(op: Op<'c>, lhs: usize, maps: &[AffineMap<'c>], rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    let (loc, cx, old) = (op.location(), op.context(), linalg::destination(op, 0));
    let Some(fill) = old.defining_op().filter(|fill| is_fill(*fill)) else { return Ok(()) };
    let is_known = |value: Value| value.ty().static_size_bytes().is_some();
    let is_vector = op.result(0).ty().shape().is_some_and(|shape| shape.len() == 1);
    if !is_vector || !is_known(op.result(0)) || !is_known(op.operand(lhs)) {
        return Ok(());
    }
    rw.set_point(InsertionPoint::Before(op));
    let ty = of_row(op.result(0).ty());
    let empty = rw.create(OpSpec::new(ops::tensor::EMPTY, loc).results(&[ty]))?.result(0);
    let fill_maps: Vec<AffineMap> = (0..linalg::num_inputs(fill))
        .map(|_| AffineMap::select(cx, 2, &[]))
        .chain([AffineMap::identity(cx, 2)])
        .collect();
    let filled = copy_of_row(fill, |v| if v == linalg::destination(fill, 0) { empty } else { v }, &fill_maps, rw);
    let (row, sizes) = (op.operand(lhs), of_row(op.operand(lhs).ty()));
    let shape = sizes.shape().unwrap_or_default();
    let spec = OpSpec::new(ops::tensor::EXPAND_SHAPE, loc).operands(&[row]).results(&[sizes]);
    let spec = spec.attr("reassociation", first_two(op, shape.len()));
    let wide = rw.create(spec.attr("static_output_shape", Attr::dense_i64(cx, &shape)))?.result(0);
    let with_row = |index: usize, map: &AffineMap<'c>| {
        let dims = map.dim_positions().unwrap_or_default().into_iter().map(|d| d + 1);
        let dims: Vec<usize> = if index == 1 - lhs { dims.collect() } else { [0].into_iter().chain(dims).collect() };
        AffineMap::select(cx, map.num_dims() + 1, &dims)
    };
    let maps: Vec<AffineMap> = maps.iter().enumerate().map(|(index, map)| with_row(index, map)).collect();
    let operand = |v: Value<'c>| match v {
        v if v == row => wide,
        v if v == old => filled,
        v => v,
    };
    let product = copy_of_row(op, operand, &maps, rw);
    let spec = OpSpec::new(ops::tensor::COLLAPSE_SHAPE, loc).operands(&[product]).results(&[op.result(0).ty()]);
    let collapsed = rw.create(spec.attr("reassociation", first_two(op, 2)))?.result(0);
    rw.replace_op(op, &[collapsed]);
    Ok(())
}

/// A copy of a generic, of other operands and with a first loop of one iteration; its result.
fn copy_of_row<'c>(
    op: Op<'c>,
    operand: impl FnMut(Value<'c>) -> Value<'c>,
    maps: &[AffineMap<'c>],
    rw: &mut Rewriter<'c>,
) -> Value<'c> {
    let copy = rw.clone_op(op, operand);
    rw.insert(copy);
    let mut kinds = iterator_types(op).unwrap_or_default();
    kinds.insert(0, IteratorType::Parallel);
    rw.set_attr(copy, "indexing_maps", attr(op, maps));
    rw.set_attr(copy, "iterator_types", iterator_types_attr(op.context(), &kinds));
    rw.set_type(copy.result(0), of_row(op.result(0).ty()));
    copy.result(0)
}

/// The reassociation whose first group is two of `rank` dimensions, and the others one each.
fn first_two<'c>(op: Op<'c>, rank: usize) -> Attr<'c> {
    let group =
        |dims: &[i64]| Attr::array(op.context(), &dims.iter().map(|d| Attr::i64(op.context(), *d)).collect::<Vec<_>>());
    let groups: Vec<Attr> = [group(&[0, 1])].into_iter().chain((2..rank).map(|d| group(&[d as i64]))).collect();
    Attr::array(op.context(), &groups)
}

/// Whether an op writes a scalar to all of a tensor.
fn is_fill(op: Op) -> bool {
    let scalars = || op.operands()[..linalg::num_inputs(op)].iter().all(|v| v.ty().shape().is_none());
    op.is(ops::linalg::GENERIC) && op.num_results() == 1 && linalg::is_data_movement(op) && scalars()
}

/// The type with a first dimension of one element.
fn of_row(ty: Type<'_>) -> Type<'_> {
    let shape: Vec<i64> = [1].into_iter().chain(ty.shape().unwrap_or_default()).collect();
    Type::tensor(&shape, ty.element(), None)
}
