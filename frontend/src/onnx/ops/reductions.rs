//! Reductions over axes.

use super::compare::{cast_to, convert};
use super::scalars::wide;
use crate::onnx::operand::Operand;
use crate::onnx::predicate::{CmpF, Predicate};
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Expr, Failure, LoopKind, NodeContext, Registry, Results, Structured};
use monopour_ir::{Type, Value, ops};

/// A reduction: elements before it, the reduction itself, results after it.
#[derive(Clone, Copy)]
struct Reduction {
    before: Step,
    kind: Kind,
    after: Step,
}

/// A function of each element.
#[derive(Clone, Copy, PartialEq)]
enum Step {
    Same,
    Abs,
    Square,
    Sqrt,
    Log,
    /// Divided by the number of elements.
    Mean,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Sum,
    Product,
    Max,
    Min,
}

/// The version of an op since which axes are an operand.
struct Since(i64);

pub(super) fn register(registry: &mut Registry) {
    registry.op("ReduceSum", 1, |b, cx| reduction(b, cx, Since(13), Step::Same, Kind::Sum, Step::Same), "");
    registry.op("ReduceMean", 1, |b, cx| reduction(b, cx, Since(18), Step::Same, Kind::Sum, Step::Mean), "");
    registry.op("ReduceProd", 1, |b, cx| reduction(b, cx, Since(18), Step::Same, Kind::Product, Step::Same), "");
    registry.op("ReduceMax", 1, |b, cx| reduction(b, cx, Since(18), Step::Same, Kind::Max, Step::Same), "");
    registry.op("ReduceMin", 1, |b, cx| reduction(b, cx, Since(18), Step::Same, Kind::Min, Step::Same), "");
    registry.op("ReduceL1", 1, |b, cx| reduction(b, cx, Since(18), Step::Abs, Kind::Sum, Step::Same), "");
    registry.op("ReduceL2", 1, |b, cx| reduction(b, cx, Since(18), Step::Square, Kind::Sum, Step::Sqrt), "");
    registry.op("ReduceSumSquare", 1, |b, cx| reduction(b, cx, Since(18), Step::Square, Kind::Sum, Step::Same), "");
    registry.op("ReduceLogSum", 1, |b, cx| reduction(b, cx, Since(18), Step::Same, Kind::Sum, Step::Log), "");
    registry.op("ReduceLogSumExp", 1, log_sum_exp, "");
    registry.op("ArgMax", 1, |b, cx| arg(b, cx, true), "");
    registry.op("ArgMin", 1, |b, cx| arg(b, cx, false), "");
}

/// The axes of a reduction; `None`: the operand stays as it is.
fn axes(cx: &NodeContext, since: &Since, rank: usize) -> Result<Option<Vec<usize>>, Failure> {
    let given = cx.ints_since(since.0, 1, "axes")?.filter(|axes| !axes.is_empty());
    if given.is_none() && cx.flag("noop_with_empty_axes", false)? {
        return Ok(None);
    }
    cx.axes(given, rank).map(Some)
}

fn reduction<'c>(
    b: &mut Builder<'c>,
    cx: &NodeContext<'_, 'c>,
    since: Since,
    before: Step,
    kind: Kind,
    after: Step,
) -> Results<'c> {
    let x = cx.operand(0)?;
    let reduction = Reduction { before, kind, after };
    if cx.is_read(since.0, 1) {
        return reduce_by_data(b, cx, |b, x, axes| reduce_read(b, x, axes, reduction));
    }
    let axes = axes(cx, &since, x.rank())?.unwrap_or_default();
    let reduced = reduce(b, x, &axes, reduction)?;
    let keep = cx.flag("keepdims", true)?;
    Ok(vec![if keep { kept(b, &reduced, x, &axes)? } else { reduced }])
}

/// The result with dimensions of size 1 where it was reduced.
pub(super) fn kept<'c>(
    b: &mut Builder<'c>,
    reduced: &Operand<'c>,
    x: &Operand<'c>,
    axes: &[usize],
) -> Result<Operand<'c>, Failure> {
    let size = |d: usize| if axes.contains(&d) { Dim::constant(1) } else { x.shape[d].clone() };
    b.reshaped(reduced, &(0..x.rank()).map(size).collect::<Vec<_>>())
}

/// A reduction whose axes are read at run time: `f` keeps them, of size 1.
fn reduce_by_data<'c>(
    b: &mut Builder<'c>,
    cx: &NodeContext<'_, 'c>,
    f: impl FnOnce(&mut Builder<'c>, &Operand<'c>, &[Value<'c>]) -> Result<Operand<'c>, Failure>,
) -> Results<'c> {
    let (x, given) = (cx.operand(0)?, cx.operand(1)?);
    let axes = b.axes_of(given, x.rank())?;
    let result = f(b, x, &axes)?;
    if cx.flag("keepdims", true)? {
        return Ok(vec![result]);
    }
    let count = x.rank().checked_sub(axes.len()).ok_or("it has more axes than dimensions")?;
    let reduced = b.among(&axes, x.rank())?;
    let sizes: Vec<Value> = x.shape.iter().map(|d| b.index(d)).collect::<Result<_, _>>()?;
    let shape = b.without(&sizes, &reduced, count)?;
    Ok(vec![b.reshaped(&result, &shape)?])
}

/// As [`reduce`], with axes that are read at run time, and kept: each dimension has a loop over the result and one that
/// reduces, of which one has a single iteration.
fn reduce_read<'c>(
    b: &mut Builder<'c>,
    x: &Operand<'c>,
    axes: &[Value<'c>],
    Reduction { before, kind, after }: Reduction,
) -> Result<Operand<'c>, Failure> {
    let (rank, dtype) = (x.rank(), x.dtype);
    let among = b.among(axes, rank)?;
    let one = b.int(Type::index(b.context()), 1);
    let (mut shape, mut extents, mut count) = (vec![], vec![], one);
    for (size, is_reduced) in x.shape.iter().zip(among) {
        let size = b.index(size)?;
        let (left, along) = (b.select(is_reduced, one, size)?, b.select(is_reduced, size, one)?);
        shape.push(b.new_symbol(left));
        extents.push(b.new_symbol(along));
        count = b.binary(ops::arith::MULI, count, along)?;
    }
    let count = b.new_symbol(count);
    let sum = accumulator(kind, dtype);
    let start = first(b, kind, sum)?;
    let (value, out) = (b.value(x)?, b.filled_with(sum, &shape, start)?);
    let extents = b.empty(dtype, &extents)?;
    let index = (0..rank).map(|d| Expr::Sum(vec![(d, 1), (rank + d, 1)], 0)).collect();
    let op = Structured {
        loops: [vec![LoopKind::Parallel; rank], vec![LoopKind::Reduction; rank]].concat(),
        inputs: vec![(value, index), (extents, (rank..2 * rank).map(Expr::Loop).collect())],
        outputs: vec![(out, (0..rank).map(Expr::Loop).collect())],
    };
    let value = b.structured(&op, |b, e| {
        let element = convert(b, dtype, sum, e[0])?;
        let element = step(b, before, sum, element)?;
        Ok(vec![combine(b, kind, sum, e[2], element)?])
    })?[0];
    let reduced = Operand::value(sum, shape, value);
    finish(b, &reduced, (after, &count), sum, dtype)
}

fn reduce<'c>(
    b: &mut Builder<'c>,
    x: &Operand<'c>,
    axes: &[usize],
    Reduction { before, kind, after }: Reduction,
) -> Result<Operand<'c>, Failure> {
    if let Some(folded) = folded(x, axes, kind).filter(|_| before == Step::Same && after == Step::Same) {
        return Ok(folded);
    }
    let dtype = x.dtype;
    let count = axes.iter().fold(Dim::constant(1), |n, d| n.mul(&x.shape[*d]));
    let sum = accumulator(kind, dtype);
    let first = first(b, kind, sum)?;
    let reduced = b.reduce_from(x, axes, (sum, first), |b, e, so_far| {
        let e = convert(b, dtype, sum, e)?;
        let e = step(b, before, sum, e)?;
        combine(b, kind, sum, so_far, e)
    })?;
    finish(b, &reduced, (after, &count), sum, dtype)
}

/// The last step of a reduction of `count` elements each, and the result's type.
fn finish<'c>(
    b: &mut Builder<'c>,
    reduced: &Operand<'c>,
    (after, count): (Step, &Dim),
    sum: DataType,
    dtype: DataType,
) -> Result<Operand<'c>, Failure> {
    if after == Step::Same && sum == dtype {
        return Ok(reduced.clone());
    }
    let element = b.element(sum)?;
    let divisor = match after {
        Step::Mean => Some(number(b, count, element)?),
        _ => None,
    };
    b.elementwise(&[reduced], dtype, |b, e| {
        let y = match divisor {
            Some(count) if sum.is_float() => b.binary(ops::arith::DIVF, e[0], count)?,
            Some(count) if sum.is_unsigned() => b.binary(ops::arith::DIVUI, e[0], count)?,
            Some(count) => b.binary(ops::arith::DIVSI, e[0], count)?,
            None => step(b, after, sum, e[0])?,
        };
        convert(b, sum, dtype, y)
    })
}

/// A size as a number of that type.
pub(super) fn number<'c>(b: &mut Builder<'c>, size: &Dim, ty: Type<'c>) -> Result<Value<'c>, Failure> {
    if let Some(size) = size.as_constant() {
        return Ok(b.number(ty, size as f64));
    }
    let index = b.index(size)?;
    let (i64, is_float) = (Type::integer(b.context(), 64), ty.is_float());
    let integer = b.op(ops::arith::INDEX_CAST, &[index], if is_float { i64 } else { ty })?;
    if is_float { b.op(ops::arith::SITOFP, &[integer], ty) } else { Ok(integer) }
}

/// The product or sum of known sizes.
fn folded<'c>(x: &Operand<'c>, axes: &[usize], kind: Kind) -> Option<Operand<'c>> {
    let sizes = x.as_sizes().filter(|s| !s.is_empty() && axes.len() == x.rank() && x.dtype.is_integer())?;
    let pairwise = |a: Dim, b: &Dim| match kind {
        Kind::Sum => a.add(b),
        Kind::Product => a.mul(b),
        Kind::Max => a.at_least(b),
        Kind::Min => a.at_most(b),
    };
    let (first, rest) = sizes.split_first()?;
    Some(Operand::sizes(x.dtype, vec![], vec![rest.iter().fold(first.clone(), pairwise)]))
}

/// The value with which a reduction starts.
pub(super) fn first<'c>(b: &mut Builder<'c>, kind: Kind, dtype: DataType) -> Result<Value<'c>, Failure> {
    let element = b.element(dtype)?;
    if dtype.is_float() {
        return Ok(b.number(
            element,
            match kind {
                Kind::Sum => 0.0,
                Kind::Product => 1.0,
                Kind::Max => f64::NEG_INFINITY,
                Kind::Min => f64::INFINITY,
            },
        ));
    }
    let unused = 64 - dtype.bits().unwrap_or(64).min(64);
    let (low, high) = match dtype {
        DataType::Bool => (0, 1),
        // All bits.
        _ if dtype.is_unsigned() => (0, -1),
        _ => (i64::MIN >> unused, i64::MAX >> unused),
    };
    Ok(b.int(
        element,
        match kind {
            Kind::Sum => 0,
            Kind::Product => 1,
            Kind::Max => low,
            Kind::Min => high,
        },
    ))
}

/// The type in which elements are summed or multiplied: halves as f32.
fn accumulator(kind: Kind, dtype: DataType) -> DataType {
    let is_half = matches!(dtype, DataType::F16 | DataType::Bf16);
    if is_half && matches!(kind, Kind::Sum | Kind::Product) { DataType::F32 } else { dtype }
}

/// Two elements combined.
pub(super) fn combine<'c>(
    b: &mut Builder<'c>,
    kind: Kind,
    dtype: DataType,
    so_far: Value<'c>,
    e: Value<'c>,
) -> Result<Value<'c>, Failure> {
    let unsigned = dtype.is_unsigned() || dtype == DataType::Bool;
    let name = match (kind, dtype.is_float(), unsigned) {
        (Kind::Sum, true, _) => ops::arith::ADDF,
        (Kind::Sum, false, _) => ops::arith::ADDI,
        (Kind::Product, true, _) => ops::arith::MULF,
        (Kind::Product, false, _) => ops::arith::MULI,
        (Kind::Max, true, _) => ops::arith::MAXIMUMF,
        (Kind::Max, false, true) => ops::arith::MAXUI,
        (Kind::Max, false, false) => ops::arith::MAXSI,
        (Kind::Min, true, _) => ops::arith::MINIMUMF,
        (Kind::Min, false, true) => ops::arith::MINUI,
        (Kind::Min, false, false) => ops::arith::MINSI,
    };
    b.binary(name, so_far, e)
}

fn step<'c>(b: &mut Builder<'c>, step: Step, dtype: DataType, e: Value<'c>) -> Result<Value<'c>, Failure> {
    let multiply = if dtype.is_float() { ops::arith::MULF } else { ops::arith::MULI };
    match step {
        Step::Same | Step::Mean => Ok(e),
        Step::Abs if dtype.is_unsigned() => Ok(e),
        Step::Abs if dtype.is_float() => b.unary(ops::math::ABSF, e),
        Step::Abs => b.unary(ops::math::ABSI, e),
        Step::Square => b.binary(multiply, e, e),
        Step::Sqrt | Step::Log => {
            let name = match step {
                Step::Sqrt => ops::math::SQRT,
                _ => ops::math::LOG,
            };
            // Of integers: as f64, rounded towards zero.
            let float = if dtype.is_float() { dtype } else { DataType::F64 };
            let x = convert(b, dtype, float, e)?;
            let y = b.unary(name, x)?;
            convert(b, float, dtype, y)
        }
    }
}

/// `log(sum(exp(x - max))) + max`, halves as f32.
fn log_sum_exp<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let dtype = cx.operand(0)?.dtype;
    if !dtype.is_float() {
        return Err(format!("operands of {dtype} are not supported").into());
    }
    let x = cast_to(b, cx.operand(0)?, wide(dtype))?;
    let plain = |kind| Reduction { before: Step::Same, kind, after: Step::Same };
    if cx.is_read(18, 1) {
        return reduce_by_data(b, cx, |b, _, axes| {
            let most = reduce_read(b, &x, axes, plain(Kind::Max))?;
            let (most, powers) = powers_of_rest(b, &x, &most)?;
            let sum = reduce_read(b, &powers, axes, plain(Kind::Sum))?;
            log_plus(b, &sum, &most, dtype)
        });
    }
    let axes = axes(cx, &Since(18), x.rank())?.unwrap_or_default();
    let most = reduce(b, &x, &axes, plain(Kind::Max))?;
    let most = kept(b, &most, &x, &axes)?;
    let (most, powers) = powers_of_rest(b, &x, &most)?;
    let sum = reduce(b, &powers, &axes, plain(Kind::Sum))?;
    let sum = kept(b, &sum, &x, &axes)?;
    let result = log_plus(b, &sum, &most, dtype)?;
    if cx.flag("keepdims", true)? {
        return Ok(vec![result]);
    }
    let shape: Vec<Dim> = (0..x.rank()).filter(|d| !axes.contains(d)).map(|d| x.shape[d].clone()).collect();
    Ok(vec![b.reshaped(&result, &shape)?])
}

/// The maximum, 0 where it is not finite, and `exp(x - max)` with that.
fn powers_of_rest<'c>(
    b: &mut Builder<'c>,
    x: &Operand<'c>,
    most: &Operand<'c>,
) -> Result<(Operand<'c>, Operand<'c>), Failure> {
    let most = b.elementwise(&[most], x.dtype, |b, e| {
        let (size, infinity, zero) =
            (b.unary(ops::math::ABSF, e[0])?, b.number(e[0].ty(), f64::INFINITY), b.number(e[0].ty(), 0.0));
        let is_finite = b.compare(CmpF::Olt, size, infinity)?;
        b.select(is_finite, e[0], zero)
    })?;
    let powers = b.elementwise_of_shape(&[x, &most], x.dtype, x.shape.clone(), |b, e| {
        let rest = b.binary(ops::arith::SUBF, e[0], e[1])?;
        b.unary(ops::math::EXP, rest)
    })?;
    Ok((most, powers))
}

/// `log(sum) + most`.
fn log_plus<'c>(
    b: &mut Builder<'c>,
    sum: &Operand<'c>,
    most: &Operand<'c>,
    dtype: DataType,
) -> Result<Operand<'c>, Failure> {
    b.elementwise(&[sum, most], dtype, |b, e| {
        let log = b.unary(ops::math::LOG, e[0])?;
        let result = b.binary(ops::arith::ADDF, log, e[1])?;
        convert(b, sum.dtype, dtype, result)
    })
}

/// The sum over axes, or another reduction, without the axes.
pub(super) fn over<'c>(
    b: &mut Builder<'c>,
    x: &Operand<'c>,
    axes: &[usize],
    kind: Kind,
) -> Result<Operand<'c>, Failure> {
    reduce(b, x, axes, Reduction { before: Step::Same, kind, after: Step::Same })
}

/// The mean over axes, without the axes.
pub(super) fn mean<'c>(b: &mut Builder<'c>, x: &Operand<'c>, axes: &[usize]) -> Result<Operand<'c>, Failure> {
    reduce(b, x, axes, Reduction { before: Step::Same, kind: Kind::Sum, after: Step::Mean })
}

fn arg<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>, largest: bool) -> Results<'c> {
    let x = cx.operand(0)?;
    let axis = cx.axis_attribute(0, x.rank())?;
    let last = cx.flag("select_last_index", false)?;
    let kept_dims: Vec<usize> = (0..x.rank()).filter(|d| *d != axis).collect();
    let shape: Vec<Dim> = kept_dims.iter().map(|d| x.shape[*d].clone()).collect();
    let kind = if largest { Kind::Max } else { Kind::Min };
    let start = first(b, kind, x.dtype)?;
    let best = b.filled_with(x.dtype, &shape, start)?;
    let place = b.filled(DataType::I64, &shape, 0.0)?;
    let value = b.value(x)?;
    let out: Vec<Expr> = kept_dims.iter().map(|d| Expr::Loop(*d)).collect();
    let all = (0..x.rank()).map(Expr::Loop).collect();
    let op = Structured {
        loops: (0..x.rank()).map(|d| if d == axis { LoopKind::Reduction } else { LoopKind::Parallel }).collect(),
        inputs: vec![(value, all)],
        outputs: vec![(best, out.clone()), (place, out)],
    };
    let predicate = match (largest, last) {
        (true, false) => Predicate::greater(x.dtype),
        (true, true) => Predicate::greater_or_equal(x.dtype),
        (false, false) => Predicate::less(x.dtype),
        (false, true) => Predicate::less_or_equal(x.dtype),
    };
    let results = b.structured(&op, |b, e| {
        let at = b.loop_index(axis)?;
        let at = b.op(ops::arith::INDEX_CAST, &[at], e[2].ty())?;
        let better = b.compare(predicate, e[0], e[1])?;
        Ok(vec![b.select(better, e[0], e[1])?, b.select(better, at, e[2])?])
    })?;
    let result = Operand::value(DataType::I64, shape, results[1]);
    Ok(vec![if cx.flag("keepdims", true)? { kept(b, &result, x, &[axis])? } else { result }])
}
