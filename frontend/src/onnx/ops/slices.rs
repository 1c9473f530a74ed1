//! Parts of tensors: slices, splits, concatenations.

use crate::onnx::operand::Operand;
use crate::onnx::predicate::CmpI;
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, Failure, NodeContext, Registry, Results, fold};
use monopour_ir::{Type, Value, ops};

pub(super) fn register(registry: &mut Registry) {
    registry.op("Slice", 1, slice, "");
    registry.op("Split", 2, split, "");
    registry.op("Concat", 4, concat, "");
}

/// Bounds of a slice along one axis.
struct Bounds {
    axis: usize,
    start: Dim,
    end: Dim,
    step: i64,
}

/// Beyond this a bound means the end of any dimension.
const FAR: i64 = 1 << 31;

/// A bound counted from the end where negative, and clamped.
fn bound(value: &Dim, size: &Dim, low: i64, high: &Dim) -> Result<Dim, Failure> {
    let counted = match value.as_constant() {
        Some(v) if v >= FAR - 1 => return Ok(high.clone()),
        Some(v) if v <= 1 - FAR => return Ok(Dim::constant(low)),
        Some(v) if v < 0 => size.plus(v),
        Some(_) => value.clone(),
        None if value.is_not_negative() => value.clone(),
        // A difference of sizes may be negative only where it is written so.
        None if value.times(-1).is_not_negative() => size.add(value),
        None => return Err("a bound may be negative or not, which is not supported".into()),
    };
    Ok(counted.at_least(&Dim::constant(low)).at_most(high))
}

fn slice<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let given = |at: usize, name: &str| -> Result<Option<Vec<Dim>>, Failure> {
        if cx.opset() < 10 {
            return Ok(cx.ints(name)?.map(|v| v.into_iter().map(Dim::constant).collect()));
        }
        Ok(cx.optional(at).and_then(|o| o.as_sizes()))
    };
    if cx.opset() >= 10 && [1, 2, 3, 4].iter().any(|at| cx.optional(*at).is_some_and(|o| o.as_sizes().is_none())) {
        return slice_by_data(b, cx);
    }
    let starts = given(1, "starts")?.ok_or("its starts are missing")?;
    let ends = given(2, "ends")?.ok_or("its ends are missing")?;
    let numbers = |dims: Vec<Dim>| dims.iter().map(Dim::as_constant).collect::<Option<Vec<i64>>>();
    let axes = match given(3, "axes")? {
        Some(axes) => numbers(axes).ok_or("its axes follow from sizes")?,
        None => (0..starts.len() as i64).collect(),
    };
    let steps = match given(4, "steps")? {
        Some(steps) => numbers(steps).ok_or("its steps follow from sizes")?,
        None => vec![1; starts.len()],
    };
    if [ends.len(), axes.len(), steps.len()].iter().any(|n| *n != starts.len()) {
        return Err("its bounds, axes and steps are not equally many".into());
    }
    let mut all = vec![];
    for (at, axis) in axes.iter().enumerate() {
        let axis = cx.axis(*axis, x.rank())?;
        all.push(bounds(&starts[at], &ends[at], &x.shape[axis], axis, steps[at])?);
    }
    Ok(vec![slice_by(b, x, &all)?])
}

/// The start and number of elements of a slice along an axis, computed at run time.
fn span<'c>(
    b: &mut Builder<'c>,
    size: Value<'c>,
    [start, end, step]: [Value<'c>; 3],
) -> Result<(Value<'c>, Value<'c>), Failure> {
    let (zero, one) = (b.int(size.ty(), 0), b.int(size.ty(), 1));
    let minus = b.int(size.ty(), -1);
    let last = b.binary(ops::arith::SUBI, size, one)?;
    // Backwards a slice starts at most at the last element, and ends at most before the first.
    let high = b.where_less([step, zero], [last, size])?;
    let low = b.where_less([step, zero], [minus, zero])?;
    let mut clamped = |at: Value<'c>, low| -> Result<Value<'c>, Failure> {
        let counted = b.binary(ops::arith::ADDI, at, size)?;
        let at = b.where_less([at, zero], [counted, at])?;
        let at = b.binary(ops::arith::MAXSI, at, low)?;
        b.binary(ops::arith::MINSI, at, high)
    };
    let (start, end) = (clamped(start, zero)?, clamped(end, low)?);
    let span = b.binary(ops::arith::SUBI, end, start)?;
    let count = b.binary(ops::arith::CEILDIVSI, span, step)?;
    Ok((start, b.binary(ops::arith::MAXSI, count, zero)?))
}

/// A slice whose bounds or steps are read at run time.
fn slice_by_data<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let (starts, ends) = (b.elements_of(cx.operand(1)?)?, b.elements_of(cx.operand(2)?)?);
    let index = Type::index(b.context());
    let axes = match cx.optional(3) {
        Some(axes) => b.axes_of(axes, x.rank())?,
        None => (0..starts.len() as i64).map(|d| b.int(index, d)).collect(),
    };
    let steps = match cx.optional(4) {
        Some(steps) => b.elements_of(steps)?,
        None => vec![b.int(index, 1); starts.len()],
    };
    if [ends.len(), axes.len(), steps.len()].iter().any(|n| *n != starts.len()) {
        return Err("its bounds, axes and steps are not equally many".into());
    }
    let (zero, one) = (b.int(index, 0), b.int(index, 1));
    let mut shape = x.shape.clone();
    let (mut first, mut by) = (vec![zero; x.rank()], vec![one; x.rank()]);
    for d in 0..x.rank() {
        let place = b.int(index, d as i64);
        // Axes that are constants: the others are whole.
        let of_d: Vec<usize> =
            (0..axes.len()).filter(|i| axes[*i].constant_int().is_none_or(|axis| axis == d as i64)).collect();
        if of_d.is_empty() {
            continue;
        }
        let size = b.index(&x.shape[d])?;
        let mut all = [zero, size, one];
        for i in of_d {
            let here = b.compare(CmpI::Eq, axes[i], place)?;
            for (known, given) in all.iter_mut().zip([starts[i], ends[i], steps[i]]) {
                *known = if axes[i].constant_int().is_some() { given } else { b.select(here, given, *known)? };
            }
        }
        let (start, count) = span(b, size, all)?;
        shape[d] = b.new_symbol(count);
        (first[d], by[d]) = (start, all[2]);
    }
    if by.iter().all(|step| step.constant_int() == Some(1)) {
        let first: Vec<Dim> = first.into_iter().map(|start| b.size(start)).collect();
        return Ok(vec![b.slice(x, &first, &shape, &vec![1; x.rank()])?]);
    }
    Ok(vec![stepped(b, x, shape, &first, &by)?])
}

/// The elements of an operand from `first` on, by steps that may be negative.
fn stepped<'c>(
    b: &mut Builder<'c>,
    x: &Operand<'c>,
    shape: Vec<Dim>,
    first: &[Value<'c>],
    steps: &[Value<'c>],
) -> Result<Operand<'c>, Failure> {
    let source = b.value(x)?;
    indexed(b, x, shape, |b, at| {
        let mut place = vec![];
        for ((at, first), step) in at.iter().zip(first).zip(steps) {
            let moved = b.binary(ops::arith::MULI, *at, *step)?;
            place.push(b.binary(ops::arith::ADDI, *first, moved)?);
        }
        Ok((source, place))
    })
}

fn bounds(start: &Dim, end: &Dim, size: &Dim, axis: usize, step: i64) -> Result<Bounds, Failure> {
    let last = size.plus(-1);
    let (start, end) = match step {
        0 => return Err("a step is 0".into()),
        1.. => (bound(start, size, 0, size)?, bound(end, size, 0, size)?),
        _ => {
            let from = bound(start, size, 0, &last)?;
            // One before the first element: not counted from the end.
            let to = match end.as_constant() {
                Some(v) if v <= 1 - FAR => Dim::constant(-1),
                _ => bound(end, size, -1, &last)?,
            };
            (from, to)
        }
    };
    Ok(Bounds { axis, start, end, step })
}

fn slice_by<'c>(b: &mut Builder<'c>, x: &Operand<'c>, all: &[Bounds]) -> Result<Operand<'c>, Failure> {
    let (mut first, mut shape, mut steps) = (vec![Dim::default(); x.rank()], x.shape.clone(), vec![1; x.rank()]);
    for bounds in all {
        let span = if bounds.step > 0 { bounds.end.sub(&bounds.start) } else { bounds.start.sub(&bounds.end) };
        // Larger steps end every dimension alike.
        let step = bounds.step.clamp(-i64::MAX / 2, i64::MAX / 2);
        let count = span.ceil_div(step.abs()).unwrap_or_default().at_least(&Dim::constant(0));
        first[bounds.axis] = bounds.start.clone();
        shape[bounds.axis] = count;
        steps[bounds.axis] = step;
    }
    if let Some(folded) = folded(x, &first, &shape, &steps) {
        return Ok(folded);
    }
    if shape == x.shape && steps.iter().all(|s| *s == 1) {
        return Ok(x.clone());
    }
    if shape.iter().any(|d| d.is(0)) {
        let value = b.empty(x.dtype, &shape)?;
        return Ok(Operand::value(x.dtype, shape, value));
    }
    if steps.iter().all(|s| *s > 0) {
        return b.slice(x, &first, &shape, &steps);
    }
    let first: Vec<Value> = first.iter().map(|d| b.index(d)).collect::<Result<_, _>>()?;
    let index = Type::index(b.context());
    let steps: Vec<Value> = steps.iter().map(|step| b.int(index, *step)).collect();
    stepped(b, x, shape, &first, &steps)
}

/// A tensor whose element at the loops' indices is one of a tensor, at indices that `place` makes of them.
pub(super) fn indexed<'c>(
    b: &mut Builder<'c>,
    like: &Operand<'c>,
    shape: Vec<Dim>,
    place: impl FnOnce(&mut Builder<'c>, &[Value<'c>]) -> Result<(Value<'c>, Vec<Value<'c>>), Failure>,
) -> Result<Operand<'c>, Failure> {
    let rank = shape.len();
    b.elementwise_of_shape(&[], like.dtype, shape, |b, _| {
        let at: Vec<Value> = (0..rank).map(|d| b.loop_index(d)).collect::<Result<_, _>>()?;
        let (source, place) = place(b, &at)?;
        b.read(source, &place)
    })
}

fn folded<'c>(x: &Operand<'c>, first: &[Dim], shape: &[Dim], steps: &[i64]) -> Option<Operand<'c>> {
    let own = x.static_shape()?;
    let numbers = |dims: &[Dim]| dims.iter().map(Dim::as_constant).collect::<Option<Vec<i64>>>();
    let (first, shape) = (numbers(first)?, numbers(shape)?);
    let strides = fold::strides(&own);
    let offset = first.iter().zip(&strides).map(|(f, s)| f * s).sum();
    let moved: Vec<i64> = strides.iter().zip(steps).map(|(stride, step)| stride.wrapping_mul(*step)).collect();
    fold::pick(x, &shape, fold::positions(&shape, &moved, offset))
}

fn split<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let axis = cx.axis_attribute(0, x.rank())?;
    let size = &x.shape[axis];
    let given = if cx.opset() < 13 {
        cx.ints("split")?.map(|v| v.into_iter().map(Dim::constant).collect())
    } else {
        cx.optional(1).map(|o| b.sizes_of(o)).transpose()?
    };
    let parts = cx.num_results() as i64;
    let sizes: Vec<Dim> = match given {
        Some(sizes) => sizes,
        None => {
            // Equal parts, of which the last may be smaller.
            let each = size.ceil_div(parts).unwrap_or_default();
            let last = size.sub(&each.times(parts - 1));
            (0..parts).map(|at| if at + 1 < parts { each.clone() } else { last.clone() }).collect()
        }
    };
    let sum = sizes.iter().fold(Dim::default(), |sum, part| sum.add(part));
    if sum.as_constant().zip(size.as_constant()).is_some_and(|(sum, size)| sum != size) {
        return Err(format!("its parts of {sum} elements are not the {size} of dimension {axis}").into());
    }
    let mut from = Dim::default();
    let mut results = vec![];
    for size in sizes {
        let end = from.add(&size);
        let part = Bounds { axis, start: from, end: end.clone(), step: 1 };
        results.push(slice_by(b, x, &[part])?);
        from = end;
    }
    Ok(results)
}

fn concat<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let operands = cx.all()?;
    let first = *operands.first().ok_or("it has no operands")?;
    let axis = cx.axis_attribute(1, first.rank())?;
    if operands.iter().any(|o| o.rank() != first.rank() || o.dtype != first.dtype) {
        return Err("its operands are of different ranks or types".into());
    }
    Ok(vec![join(b, &operands, axis)?])
}

/// The operands one after the other along an axis.
pub(super) fn join<'c>(b: &mut Builder<'c>, operands: &[&Operand<'c>], axis: usize) -> Result<Operand<'c>, Failure> {
    let first = operands[0];
    if operands.iter().any(|o| o.rank() != first.rank()) || axis >= first.rank() {
        return Err("its operands are of different ranks".into());
    }
    let mut shape = first.shape.clone();
    shape[axis] = operands.iter().fold(Dim::default(), |n, o| n.add(&o.shape[axis]));
    for (at, size) in shape.iter_mut().enumerate().filter(|(at, _)| *at != axis) {
        // A number is known better than a symbol.
        if let Some(known) = operands.iter().find(|o| o.shape[at].as_constant().is_some()) {
            size.clone_from(&known.shape[at]);
        }
        let differs = |o: &&&Operand| o.shape[at].as_constant().zip(size.as_constant()).is_some_and(|(a, b)| a != b);
        if let Some(other) = operands.iter().find(differs) {
            return Err(format!("dimension {at} is of size {size} and {}", other.shape[at]).into());
        }
    }
    if first.rank() == 1
        && let Some(sizes) = operands.iter().map(|o| o.as_sizes()).collect::<Option<Vec<_>>>()
        && sizes.iter().map(Vec::len).sum::<usize>() <= 1024
    {
        let sizes = sizes.concat();
        return Ok(Operand::sizes(first.dtype, vec![sizes.len() as i64], sizes));
    }
    let filled: Vec<&&Operand> = operands.iter().filter(|o| !o.shape[axis].is(0)).collect();
    if let [only] = filled[..] {
        return Ok((*only).clone());
    }
    let mut value = b.empty(first.dtype, &shape)?;
    let mut place = vec![Dim::default(); shape.len()];
    for operand in filled {
        value = b.insert(operand, value, &place)?;
        place[axis] = place[axis].add(&operand.shape[axis]);
    }
    Ok(Operand::value(first.dtype, shape, value))
}
