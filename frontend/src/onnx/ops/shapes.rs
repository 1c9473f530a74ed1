//! Shapes, views and constants.

use super::compare::cast_to;
use super::normalization::stash_type;
use crate::onnx::operand::Operand;
use crate::onnx::predicate::CmpI;
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Failure, NodeContext, Registry, Results, Structured, Tensor, fold};
use crate::onnx::{LoopKind, structured};
use monopour_ir::{Type, Value, ops};
use std::rc::Rc;

pub(super) fn register(registry: &mut Registry) {
    registry.op("Identity", 1, |_, cx| Ok(vec![cx.operand(0)?.clone()]), "sequences");
    registry.op("Dropout", 6, dropout, "training");
    registry.op("Constant", 1, constant, "strings, sparse tensors");
    registry.op("ConstantOfShape", 9, constant_of_shape, "");
    registry.op("Shape", 1, shape, "");
    registry.op(
        "Size",
        1,
        |_, cx| Ok(vec![Operand::sizes(DataType::I64, vec![], vec![cx.operand(0)?.elements()])]),
        "",
    );
    registry.op("Reshape", 5, reshape, "");
    registry.op("Flatten", 1, flatten, "");
    registry.op("Squeeze", 1, squeeze, "");
    registry.op("Unsqueeze", 1, unsqueeze, "");
    registry.op("Expand", 8, expand, "");
    registry.op("Range", 11, range, "");
}

fn dropout<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let trains = cx.opset() >= 12 && cx.optional(2).is_some();
    if trains && cx.optional(2).and_then(|t| t.as_ints()) != Some(vec![0]) {
        return Err("training is not supported".into());
    }
    // Before version 7 a node says that it does not train.
    if cx.opset() < 7 && !cx.flag("is_test", false)? {
        return Err("training is not supported".into());
    }
    let mut results = vec![x.clone()];
    if cx.wants(1) {
        let dtype = if cx.opset() < 10 { x.dtype } else { DataType::Bool };
        let mask = b.filled(dtype, &x.shape, 1.0)?;
        results.push(Operand::value(dtype, x.shape.clone(), mask));
    }
    Ok(results)
}

fn constant<'c>(_: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let made = if let Some(tensor) = cx.tensor("value")? {
        Some(tensor)
    } else if let Some(value) = cx.int_given("value_int")? {
        Some(Rc::new(Tensor::ints(vec![], &[value])))
    } else if let Some(values) = cx.ints("value_ints")? {
        Some(Rc::new(Tensor::ints(vec![values.len() as i64], &values)))
    } else if let Some(values) = cx.floats("value_floats")? {
        Tensor::from_f64(DataType::F32, vec![values.len() as i64], &values).map(Rc::new)
    } else if cx.node.attributes.contains_key("value_float") {
        Tensor::from_f64(DataType::F32, vec![], &[cx.float("value_float", 0.0)?]).map(Rc::new)
    } else {
        None
    };
    let tensor = made.ok_or("it has no value that is supported")?;
    Ok(vec![Operand::constant(tensor)])
}

fn constant_of_shape<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let shape = b.sizes_of(cx.operand(0)?)?;
    let value = match cx.tensor("value")? {
        Some(tensor) => tensor,
        None => Rc::new(Tensor::new(DataType::F32, vec![1], vec![0; 4])),
    };
    Ok(vec![splat(b, &Operand::constant(value), shape)?])
}

/// One element at all places of a shape.
fn splat<'c>(b: &mut Builder<'c>, x: &Operand<'c>, shape: Vec<Dim>) -> Result<Operand<'c>, Failure> {
    let small = shape.iter().map(Dim::as_constant).collect::<Option<Vec<i64>>>();
    if let Some(shape) = small
        && let Some(folded) = fold::pick(x, &shape, fold::positions(&shape, &vec![0; shape.len()], 0))
    {
        return Ok(folded);
    }
    b.elementwise_of_shape(&[x], x.dtype, shape, |_, e| Ok(e[0]))
}

fn shape<'c>(_: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let rank = x.rank() as i64;
    let bound = |value: i64| (if value < 0 { value + rank } else { value }).clamp(0, rank) as usize;
    let start = bound(cx.int("start", 0)?);
    let end = bound(cx.int("end", rank)?).max(start);
    let sizes = x.shape[start..end].to_vec();
    Ok(vec![Operand::sizes(DataType::I64, vec![sizes.len() as i64], sizes)])
}

fn reshape<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let Some(wanted) = cx.operand(1)?.as_sizes() else { return reshape_by_data(b, cx) };
    let copies = !cx.flag("allowzero", false)?;
    let mut shape = vec![];
    let mut open = None;
    for (at, size) in wanted.iter().enumerate() {
        if size.is(0) && copies {
            shape.push(x.shape.get(at).cloned().ok_or("its shape copies a dimension that the operand does not have")?);
        } else if size.is(-1) {
            if open.replace(at).is_some() {
                return Err("its shape has two sizes that are to be computed".into());
            }
            shape.push(Dim::constant(1));
        } else {
            shape.push(size.clone());
        }
    }
    let (total, given) = (x.elements(), Dim::product(&shape));
    if let Some(at) = open {
        shape[at] = total.floor_div(&given).unwrap_or_default();
    }
    if let (Some(a), Some(b)) = (total.as_constant(), Dim::product(&shape).as_constant())
        && a != b
    {
        return Err(format!("{a} elements do not have the shape {}", crate::onnx::operand_shape(&wanted)).into());
    }
    Ok(vec![b.reshaped(x, &shape)?])
}

/// A reshape to sizes that are read at run time.
fn reshape_by_data<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, copies) = (cx.operand(0)?, !cx.flag("allowzero", false)?);
    let given = b.elements_of(cx.operand(1)?)?;
    let total = b.index(&x.elements())?;
    let (zero, one) = (b.int(total.ty(), 0), b.int(total.ty(), 1));
    let (mut sizes, mut product) = (vec![], one);
    for (at, size) in given.into_iter().enumerate() {
        let size = match x.shape.get(at).filter(|_| copies) {
            Some(own) => {
                let own = b.index(own)?;
                let is_zero = b.compare(CmpI::Eq, size, zero)?;
                b.select(is_zero, own, size)?
            }
            None => size,
        };
        let counted = b.where_less([size, zero], [one, size])?;
        product = b.binary(ops::arith::MULI, product, counted)?;
        sizes.push(size);
    }
    // No division by zero where there are no elements.
    let product = b.binary(ops::arith::MAXSI, product, one)?;
    let rest = b.binary(ops::arith::DIVSI, total, product)?;
    let mut shape = vec![];
    for size in sizes {
        let size = b.where_less([size, zero], [rest, size])?;
        shape.push(b.new_symbol(size));
    }
    Ok(vec![b.reshaped(x, &shape)?])
}

fn flatten<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let axis = cx.int("axis", 1)?;
    let axis = if axis == x.rank() as i64 { x.rank() } else { cx.axis(axis, x.rank().max(1))? };
    let shape = [Dim::product(&x.shape[..axis]), Dim::product(&x.shape[axis..])];
    Ok(vec![b.reshaped(x, &shape)?])
}

fn squeeze<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    if cx.is_read(13, 1) {
        let axes = b.axes_of(cx.operand(1)?, x.rank())?;
        let dropped = b.among(&axes, x.rank())?;
        let sizes: Vec<Value> = x.shape.iter().map(|d| b.index(d)).collect::<Result<_, _>>()?;
        let count = x.rank().checked_sub(axes.len()).ok_or("it has more axes than dimensions")?;
        let shape = b.without(&sizes, &dropped, count)?;
        return Ok(vec![b.reshaped(x, &shape)?]);
    }
    let axes = match cx.ints_since(13, 1, "axes")? {
        Some(given) => cx.axes(Some(given), x.rank())?,
        None => (0..x.rank()).filter(|d| x.shape[*d].is(1)).collect(),
    };
    if let Some(axis) = axes.iter().find(|a| x.shape[**a].as_constant().is_some_and(|size| size != 1)) {
        return Err(format!("dimension {axis} of size {} cannot be dropped", x.shape[*axis]).into());
    }
    let shape: Vec<Dim> = (0..x.rank()).filter(|d| !axes.contains(d)).map(|d| x.shape[d].clone()).collect();
    Ok(vec![b.reshaped(x, &shape)?])
}

fn unsqueeze<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    if cx.is_read(13, 1) {
        return unsqueeze_by_data(b, x, cx.operand(1)?);
    }
    let given = cx.ints_since(13, 1, "axes")?.ok_or("its axes are missing")?;
    let rank = x.rank() + given.len();
    let axes = cx.axes(Some(given), rank)?;
    let mut sizes = x.shape.iter();
    let shape: Vec<Dim> = (0..rank)
        .map(|d| if axes.contains(&d) { Some(Dim::constant(1)) } else { sizes.next().cloned() })
        .collect::<Option<_>>()
        .ok_or("an axis is given twice")?;
    Ok(vec![b.reshaped(x, &shape)?])
}

/// Each new dimension takes the next size of the operand, or 1 if it is among the axes.
fn unsqueeze_by_data<'c>(b: &mut Builder<'c>, x: &Operand<'c>, axes: &Operand<'c>) -> Results<'c> {
    let count = axes.elements().as_constant().ok_or("its axes are of unknown number")?;
    let rank = x.rank() + usize::try_from(count).unwrap_or(0);
    let axes = b.axes_of(axes, rank)?;
    let added = b.among(&axes, rank)?;
    let index = Type::index(b.context());
    let (zero, one) = (b.int(index, 0), b.int(index, 1));
    let (mut place, mut shape) = (zero, vec![]);
    for is_new in added {
        let mut size = one;
        for (at, own) in x.shape.iter().enumerate() {
            let (own, at) = (b.index(own)?, b.int(index, at as i64));
            let here = b.compare(CmpI::Eq, place, at)?;
            size = b.select(here, own, size)?;
        }
        let size = b.select(is_new, one, size)?;
        shape.push(b.new_symbol(size));
        let next = b.binary(ops::arith::ADDI, place, one)?;
        place = b.select(is_new, place, next)?;
    }
    Ok(vec![b.reshaped(x, &shape)?])
}

fn expand<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let wanted = b.sizes_of(cx.operand(1)?)?;
    let shape = structured::broadcast(&[&x.shape, &wanted])?;
    Ok(vec![broadcast_to(b, x, shape)?])
}

/// The operand repeated along dimensions of size 1.
pub(super) fn broadcast_to<'c>(b: &mut Builder<'c>, x: &Operand<'c>, shape: Vec<Dim>) -> Result<Operand<'c>, Failure> {
    if shape == x.shape {
        return Ok(x.clone());
    }
    let sizes: Option<Vec<i64>> = shape.iter().map(Dim::as_constant).collect();
    if let (Some(sizes), Some(own)) = (sizes, x.static_shape()) {
        let strides = fold::broadcast_strides(&own, sizes.len());
        if let Some(folded) = fold::pick(x, &sizes, fold::positions(&sizes, &strides, 0)) {
            return Ok(folded);
        }
    }
    b.elementwise_of_shape(&[x], x.dtype, shape, |_, e| Ok(e[0]))
}

fn range<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let dtype = cx.operand(0)?.dtype;
    let stash = match dtype {
        DataType::F16 | DataType::Bf16 => stash_type(cx, dtype)?,
        _ => dtype,
    };
    let mut bounds = vec![];
    for at in 0..3 {
        bounds.push(cast_to(b, cx.operand(at)?, stash)?);
    }
    let result = range_of(b, stash, [&bounds[0], &bounds[1], &bounds[2]])?;
    Ok(vec![cast_to(b, &result, dtype)?])
}

fn range_of<'c>(
    b: &mut Builder<'c>,
    dtype: DataType,
    [start, limit, delta]: [&Operand<'c>; 3],
) -> Result<Operand<'c>, Failure> {
    if dtype.is_float() {
        let [s, l, d] = [start, limit, delta].map(|o| o.as_scalar());
        let (Some(s), Some(l), Some(d)) = (s, l, d) else { return range_by_data(b, dtype, [start, limit, delta]) };
        if d == 0.0 {
            return Err("its step is 0".into());
        }
        let count = ((l - s) / d).ceil().max(0.0) as i64;
        return ramp(b, dtype, count.into(), (start, delta));
    }
    let first = |o: &Operand| o.as_sizes().and_then(|s| s.first().cloned());
    let (Some(s), Some(l), Some(step)) = (first(start), first(limit), first(delta).and_then(|d| d.as_constant()))
    else {
        return range_by_data(b, dtype, [start, limit, delta]);
    };
    if step == 0 {
        return Err("its step is 0".into());
    }
    let (from, to) = if step > 0 { (&s, &l) } else { (&l, &s) };
    let is_far = from.as_constant().zip(to.as_constant()).is_some_and(|(from, to)| to.checked_sub(from).is_none());
    let size = step.checked_abs().filter(|_| !is_far).ok_or("its span or step does not fit 63 bits")?;
    let count = to.sub(from).ceil_div(size).unwrap_or_default().at_least(&0.into());
    if let Some(n) = count.as_constant().filter(|n| *n <= 4096) {
        let values = (0..n).map(|i| s.plus(i.wrapping_mul(step))).collect();
        return Ok(Operand::sizes(dtype, vec![n], values));
    }
    ramp(b, dtype, count, (start, delta))
}

/// The number of elements is computed at run time.
fn range_by_data<'c>(
    b: &mut Builder<'c>,
    dtype: DataType,
    [start, limit, delta]: [&Operand<'c>; 3],
) -> Result<Operand<'c>, Failure> {
    let index = Type::index(b.context());
    let [s, l, d] = [scalar(b, start)?, scalar(b, limit)?, scalar(b, delta)?];
    let count = if dtype.is_float() {
        let span = b.binary(ops::arith::SUBF, l, s)?;
        let steps = b.binary(ops::arith::DIVF, span, d)?;
        let steps = b.unary(ops::math::CEIL, steps)?;
        let whole = b.op(ops::arith::FPTOSI, &[steps], Type::integer(b.context(), 64))?;
        b.op(ops::arith::INDEX_CAST, &[whole], index)?
    } else {
        let mut wide = |v| b.op(ops::arith::INDEX_CAST, &[v], index);
        let (s, l, d) = (wide(s)?, wide(l)?, wide(d)?);
        let span = b.binary(ops::arith::SUBI, l, s)?;
        b.binary(ops::arith::CEILDIVSI, span, d)?
    };
    let zero = b.int(index, 0);
    let count = b.binary(ops::arith::MAXSI, count, zero)?;
    let count = b.new_symbol(count);
    ramp(b, dtype, count, (start, delta))
}

/// `start + i * delta`.
fn ramp<'c>(
    b: &mut Builder<'c>,
    dtype: DataType,
    count: Dim,
    (start, delta): (&Operand<'c>, &Operand<'c>),
) -> Result<Operand<'c>, Failure> {
    let element = b.element(dtype)?;
    let (start, delta) = (scalar(b, start)?, scalar(b, delta)?);
    let shape = vec![count];
    let out = b.empty(dtype, &shape)?;
    let outputs = vec![(out, structured::identity(1))];
    let op = Structured { loops: vec![LoopKind::Parallel], inputs: vec![], outputs };
    let value = b.structured(&op, |b, _| {
        let at = b.loop_index(0)?;
        if !dtype.is_float() {
            let at = b.op(ops::arith::INDEX_CAST, &[at], element)?;
            let moved = b.binary(ops::arith::MULI, at, delta)?;
            return Ok(vec![b.binary(ops::arith::ADDI, start, moved)?]);
        }
        let at = b.op(ops::arith::INDEX_CAST, &[at], Type::integer(b.context(), 32))?;
        let at = b.op(ops::arith::SITOFP, &[at], element)?;
        let moved = b.binary(ops::arith::MULF, at, delta)?;
        Ok(vec![b.binary(ops::arith::ADDF, start, moved)?])
    })?[0];
    Ok(Operand::value(dtype, shape, value))
}

/// The one element of an operand, as a scalar.
pub(super) fn scalar<'c>(b: &mut Builder<'c>, x: &Operand<'c>) -> Result<Value<'c>, Failure> {
    if let Some(constant) = b.scalar(x)? {
        return Ok(constant);
    }
    let flat = b.reshaped(x, &[])?;
    let value = b.value(&flat)?;
    b.read(value, &[])
}
