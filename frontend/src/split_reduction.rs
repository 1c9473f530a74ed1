//! Splits long reductions to one element in two: parallel partial results, and their reduction.
//!
//! Before / after:
//!
//! ```text
//! %r = generic add (i) -> (i), ()        %p = generic add (i, j) -> (i, j), (i) ins(%x as [1024, 16384]) outs(%zeros)
//!      ins(%x) outs(%f)                  %r = generic add (i) -> (i), () ins(%p) outs(%f)
//! ```
//!
//! Float sums and products are reassociated. Without a useful divisor of the extent there is a remainder, which a third
//! reduction takes in.
//! Limits: one result, static extents, and a body that ends in an associative and commutative op on the old value.

use crate::{linalg, specialize};
use monopour_ir::ops;
use monopour_ir::typed::linalg::Operands;
use monopour_ir::typed::{self, Slice, tensor};
use monopour_ir::{
    AffineMap, Associative, Attr, Block, Builder, Diagnostics, InsertionPoint, Module, Op, OpSpec, Region, Rewriter,
    Type, Value,
};

/// Most elements of a reduction that is not split.
const MAX_WHOLE: i64 = 1 << 16;
/// Approximate elements per part.
const PART: i64 = 1 << 14;
/// Fewest and most parts.
const PARTS: [i64; 2] = [16, 1_024];

/// Splits all long reductions to one element.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(crate) fn run<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    for op in module.op().find_all(ops::linalg::GENERIC) {
        let (Some(extents), Some(fold)) = (long_reduction(op), fold(op)) else { continue };
        let leading = leading_loops(&extents);
        let identity = |m: &AffineMap<'c>| m.is_identity();
        let maps = linalg::indexing_maps(op).unwrap_or_default();
        if let Some(leading) = leading {
            let inputs = op.operands()[..linalg::num_inputs(op)].to_vec();
            let last = split(op, &fold, &inputs, &extents, leading, rw)?;
            rw.replace_op(op, &[last]);
        } else if maps[..linalg::num_inputs(op)].iter().all(identity) {
            let last = split_flat(op, &fold, &extents, rw)?;
            rw.replace_op(op, &[last]);
        }
    }
    Ok(())
}

/// The combining op of a reduction, and its neutral element.
struct Fold<'c> {
    op: Op<'c>,
    neutral: Attr<'c>,
}

/// Trip counts of a reduction to one element that pays to split.
fn long_reduction(op: Op) -> Option<Vec<i64>> {
    let extents = linalg::loop_extents(op).filter(|e| e.iter().all(|extent| *extent > 0))?;
    let none_parallel = linalg::parallel_loops(op)?.iter().all(|p| !p);
    let single =
        op.num_results() == 1 && op.ancestor(ops::scf::FORALL).is_none() && op.result(0).ty().shape()?.is_empty();
    let counted = !op.find_all(ops::linalg::INDEX).is_empty();
    let total = extents.iter().try_fold(1_i64, |total, e| total.checked_mul(*e))?;
    (none_parallel && single && !counted && total > MAX_WHOLE).then_some(extents)
}

fn fold<'c>(op: Op<'c>) -> Option<Fold<'c>> {
    let body = op.body()?;
    let old = body.arg(body.num_args() - 1);
    let fold = body.terminator()?.operand(0).defining_op()?;
    let uses = old.uses();
    let [only] = uses[..] else { return None };
    let ty = old.ty();
    // Parts of NaNs alone would end as infinities.
    let kind = Associative::of(fold).filter(|kind| !kind.drops_nans)?;
    let is_number = ty.is_float() || ty.integer_width().is_some();
    let once = only.op == fold && fold.operand(0) != fold.operand(1);
    (once && is_number).then(|| Fold { op: fold, neutral: kind.identity(ty) })
}

/// Number of leading loops with a useful number of parts.
fn leading_loops(extents: &[i64]) -> Option<usize> {
    let parts = |n: &usize| extents[..*n].iter().product::<i64>();
    let total: i64 = extents.iter().product();
    (1..extents.len()).find(|n| parts(n) >= PARTS[0]).filter(|n| parts(n) <= MAX_WHOLE && total / parts(n) >= 64)
}

/// Both reductions: the first loops are parallel in the first one.
fn split<'c>(
    op: Op<'c>,
    fold: &Fold<'c>,
    inputs: &[Value<'c>],
    extents: &[i64],
    leading: usize,
    rw: &mut Rewriter<'c>,
) -> Result<Value<'c>, Diagnostics> {
    let (cx, loc) = (op.context(), op.location());
    let element = op.result(0).ty().element();
    let ty = Type::tensor(&extents[..leading], element, None);
    rw.set_point(InsertionPoint::Before(op));
    let empty = rw.create(OpSpec::new(ops::tensor::EMPTY, loc).results(&[ty]))?.result(0);
    let neutral = OpSpec::new(ops::arith::CONSTANT, loc).results(&[element]).attr("value", fold.neutral);
    let neutral = rw.create(neutral)?.result(0);
    let parts = specialize::fill(neutral, empty, loc, rw)?.result(0);
    let partial = rw.clone_op(op, |v| v);
    rw.insert(partial);
    for (i, value) in inputs.iter().chain([&parts]).enumerate() {
        rw.set_operand(partial, i, *value);
    }
    rw.set_type(partial.result(0), ty);
    let mut maps = linalg::indexing_maps(op).unwrap_or_default();
    if maps[0].num_dims() != extents.len() {
        maps = vec![AffineMap::identity(cx, extents.len()); maps.len()];
    }
    if let Some(out) = maps.last_mut() {
        *out = AffineMap::select(cx, extents.len(), &(0..leading).collect::<Vec<_>>());
    }
    let maps: Vec<Attr> = maps.into_iter().map(AffineMap::to_attr).collect();
    rw.set_attr(partial, "indexing_maps", Attr::array(cx, &maps));
    let kinds: Vec<bool> = (0..extents.len()).map(|d| d < leading).collect();
    rw.set_attr(partial, "iterator_types", linalg::iterators(op.context(), &kinds));
    combine(op, fold, partial.result(0), linalg::destination(op, 0), rw)
}

/// The reduction of all elements of `parts` onto `destination`.
fn combine<'c>(
    op: Op<'c>,
    fold: &Fold<'c>,
    parts: Value<'c>,
    destination: Value<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<Value<'c>, Diagnostics> {
    let (cx, loc) = (op.context(), op.location());
    let element = destination.ty().element();
    let rank = parts.ty().shape().map_or(0, |s| s.len());
    let body = Block::new(&[(element, loc), (element, loc)]);
    let step = rw.clone_op(fold.op, |v| v);
    let mut b = Builder::new(cx, InsertionPoint::End(body));
    b.insert(step);
    rw.set_operand(step, 0, body.arg(0));
    rw.set_operand(step, 1, body.arg(1));
    b.create(OpSpec::new(ops::linalg::YIELD, loc).operands(&[step.result(0)]))?;
    let region = Region::new();
    region.append(body);
    let maps = [AffineMap::identity(cx, rank), AffineMap::select(cx, rank, &[])];
    rw.set_point(InsertionPoint::Before(op));
    let operands = Operands { inputs: &[parts], outputs: &[destination] };
    let spec =
        typed::linalg::generic(loc, operands, &maps, linalg::iterators(op.context(), &vec![false; rank]), region);
    Ok(rw.create(spec)?.result(0))
}

/// As [`split`], for inputs that are read in order: as rows of equal length, and a remainder.
fn split_flat<'c>(
    op: Op<'c>,
    fold: &Fold<'c>,
    extents: &[i64],
    rw: &mut Rewriter<'c>,
) -> Result<Value<'c>, Diagnostics> {
    let total: i64 = extents.iter().product();
    let wanted = (total / PART).clamp(PARTS[0], PARTS[1]);
    let even = (wanted / 2..=wanted * 2).filter(|p| total % p == 0).min_by_key(|p| (p - wanted).abs());
    let parts = even.unwrap_or(wanted);
    let (length, whole) = (total / parts, total / parts * parts);
    let flat: Vec<Value> = op.operands()[..linalg::num_inputs(op)].to_vec();
    let flat = flat.into_iter().map(|v| flatten(v, total, op, rw)).collect::<Result<Vec<_>, _>>()?;
    let mut rows = vec![];
    for value in &flat {
        let body = if whole < total { slice(*value, 0, whole, op, rw)? } else { *value };
        let ty = Type::tensor(&[parts, length], value.ty().element(), None);
        rw.set_point(InsertionPoint::Before(op));
        let groups = Attr::parse(op.context(), "[[0, 1]]").expect("invariant: an array of arrays parses");
        let spec = OpSpec::new(ops::tensor::EXPAND_SHAPE, op.location())
            .operands(&[body])
            .results(&[ty])
            .attr("reassociation", groups)
            .attr("static_output_shape", Attr::dense_i64(op.context(), &[parts, length]));
        rows.push(rw.create(spec)?.result(0));
    }
    let combined = split(op, fold, &rows, &[parts, length], 1, rw)?;
    if whole == total {
        return Ok(combined);
    }
    let mut operands = vec![];
    for value in flat {
        operands.push(slice(value, whole, total - whole, op, rw)?);
    }
    operands.push(combined);
    let cx = op.context();
    rw.set_point(InsertionPoint::Before(op));
    let rest = rw.clone_op(op, |v| v);
    rw.insert(rest);
    operands.iter().enumerate().for_each(|(i, v)| rw.set_operand(rest, i, *v));
    let mut maps = vec![AffineMap::identity(cx, 1).to_attr(); operands.len()];
    maps[operands.len() - 1] = AffineMap::select(cx, 1, &[]).to_attr();
    rw.set_attr(rest, "indexing_maps", Attr::array(cx, &maps));
    rw.set_attr(rest, "iterator_types", linalg::iterators(op.context(), &[false]));
    Ok(rest.result(0))
}

fn flatten<'c>(value: Value<'c>, total: i64, op: Op<'c>, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
    let rank = value.ty().shape().map_or(1, |s| s.len());
    if rank == 1 {
        return Ok(value);
    }
    let dims: Vec<String> = (0..rank).map(|d| d.to_string()).collect();
    let text = format!("[[{}]]", dims.join(", "));
    let groups = Attr::parse(op.context(), &text).expect("invariant: an array of arrays parses");
    rw.set_point(InsertionPoint::Before(op));
    let ty = Type::tensor(&[total], value.ty().element(), None);
    let spec = OpSpec::new(ops::tensor::COLLAPSE_SHAPE, op.location()).operands(&[value]).results(&[ty]);
    Ok(rw.create(spec.attr("reassociation", groups))?.result(0))
}

fn slice<'c>(
    value: Value<'c>,
    offset: i64,
    size: i64,
    op: Op<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<Value<'c>, Diagnostics> {
    rw.set_point(InsertionPoint::Before(op));
    let ty = Type::tensor(&[size], value.ty().element(), None);
    let spec = tensor::extract_slice(op.location(), value, &Slice::fixed(&[offset], &[size]), ty);
    Ok(rw.create(spec)?.result(0))
}
