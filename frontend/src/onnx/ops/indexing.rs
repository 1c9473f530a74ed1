//! Elements chosen by their indices: gathers of single elements, triangles, one-hot vectors, reversed sequences.

use super::compare::convert;
use super::movement::in_range;
use super::shapes::scalar;
use crate::onnx::operand::Operand;
use crate::onnx::predicate::CmpI;
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Expr, Failure, LoopKind, NodeContext, Registry, Results, Structured, structured};
use monopour_ir::{Type, Value, ops};

pub(super) fn register(registry: &mut Registry) {
    registry.op("GatherElements", 11, gather_elements, "");
    registry.op("GatherND", 11, gather_nd, "index tuples of unknown length");
    registry.op("OneHot", 9, one_hot, "");
    registry.op("EyeLike", 9, eye_like, "");
    registry.op("Trilu", 14, triangle, "");
    registry.op("ReverseSequence", 10, reverse_sequence, "");
}

fn gather_elements<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, indices) = (cx.operand(0)?, cx.operand(1)?);
    let axis = cx.axis_attribute(0, x.rank())?;
    if indices.rank() != x.rank() {
        return Err("its operands are of different ranks".into());
    }
    let (source, at) = (b.value(x)?, b.value(indices)?);
    let size = b.index(&x.shape[axis])?;
    let (out, rank) = (b.empty(x.dtype, &indices.shape)?, x.rank());
    let op = Structured {
        loops: vec![LoopKind::Parallel; rank],
        inputs: vec![(at, structured::identity(rank))],
        outputs: vec![(out, structured::identity(rank))],
    };
    let value = b.structured(&op, |b, e| {
        let mut place: Vec<Value> = (0..rank).map(|d| b.loop_index(d)).collect::<Result<_, _>>()?;
        place[axis] = in_range(b, e[0], size)?;
        Ok(vec![b.read(source, &place)?])
    })?[0];
    Ok(vec![Operand::value(x.dtype, indices.shape.clone(), value)])
}

fn gather_nd<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, indices) = (cx.operand(0)?, cx.operand(1)?);
    let batch = cx.int("batch_dims", 0)?.max(0) as usize;
    let (last, outer) = indices.shape.split_last().ok_or("its indices have no dimension")?;
    let count = last.as_constant().ok_or("the length of its index tuples is unknown")? as usize;
    if batch + count > x.rank() || batch > outer.len() {
        return Err(format!("{count} indices do not fit an operand of rank {}", x.rank()).into());
    }
    let shape: Vec<Dim> = [outer, &x.shape[batch + count..]].concat();
    let (source, at) = (b.value(x)?, b.value(indices)?);
    let sizes: Vec<Value> = x.shape[batch..batch + count].iter().map(|d| b.index(d)).collect::<Result<_, _>>()?;
    let result = b.computed(x.dtype, &shape, |b, loops| {
        let (tuple, inner) = loops.split_at(outer.len());
        let mut place = tuple[..batch].to_vec();
        for (k, size) in sizes.iter().enumerate() {
            let k = b.int(size.ty(), k as i64);
            let index = b.read(at, &[tuple, &[k]].concat())?;
            place.push(in_range(b, index, *size)?);
        }
        place.extend(inner);
        b.read(source, &place)
    })?;
    Ok(vec![result])
}

fn one_hot<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (indices, depth, values) = (cx.operand(0)?, cx.operand(1)?, cx.operand(2)?);
    let axis = cx.axis_attribute(-1, indices.rank() + 1)?;
    let depth = match depth.as_scalar() {
        Some(number) => Dim::constant(number as i64),
        None => {
            let element = scalar(b, depth)?;
            let whole = convert(b, cx.operand(1)?.dtype, DataType::I64, element)?;
            let index = b.op(ops::arith::INDEX_CAST, &[whole], Type::index(b.context()))?;
            b.new_symbol(index)
        }
    };
    let mut shape = indices.shape.clone();
    shape.insert(axis, depth.clone());
    let (at, source, size) = (b.value(indices)?, b.value(values)?, b.index(&depth)?);
    let out = b.empty(values.dtype, &shape)?;
    let op = Structured {
        loops: vec![LoopKind::Parallel; shape.len()],
        inputs: vec![(at, (0..shape.len()).filter(|d| *d != axis).map(Expr::Loop).collect())],
        outputs: vec![(out, structured::identity(shape.len()))],
    };
    let from = indices.dtype;
    let value = b.structured(&op, |b, e| {
        let at = convert(b, from, DataType::I64, e[0])?;
        let (place, own) = (in_range(b, at, size)?, b.loop_index(axis)?);
        let is_hot = b.compare(CmpI::Eq, place, own)?;
        let (zero, one) = (b.int(own.ty(), 0), b.int(own.ty(), 1));
        let which = b.select(is_hot, one, zero)?;
        Ok(vec![b.read(source, &[which])?])
    })?[0];
    Ok(vec![Operand::value(values.dtype, shape, value)])
}

fn eye_like<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let (dtype, k) = (cx.data_type("dtype")?.unwrap_or(x.dtype), cx.int("k", 0)?);
    if x.rank() != 2 {
        return Err("its operand is not of rank 2".into());
    }
    let element = b.element(dtype)?;
    let result = b.computed(dtype, &x.shape, |b, at| {
        let k = b.int(at[0].ty(), k);
        let diagonal = b.binary(ops::arith::ADDI, at[0], k)?;
        let is_on = b.compare(CmpI::Eq, at[1], diagonal)?;
        let (one, zero) = (b.number(element, 1.0), b.number(element, 0.0));
        b.select(is_on, one, zero)
    })?;
    Ok(vec![result])
}

fn triangle<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let (upper, rank) = (cx.flag("upper", true)?, x.rank());
    if rank < 2 {
        return Err("its operand is of a rank below 2".into());
    }
    let index = Type::index(b.context());
    let k = match cx.optional(1) {
        Some(k) => b.elements_of(k)?.first().copied().ok_or("its diagonal is missing")?,
        None => b.int(index, 0),
    };
    // An operand of one known element is a constant of the body.
    let result = b.elementwise(&[x], x.dtype, |b, e| {
        let (row, column) = (b.loop_index(rank - 2)?, b.loop_index(rank - 1)?);
        let diagonal = b.binary(ops::arith::ADDI, row, k)?;
        let stays = b.compare(if upper { CmpI::Sge } else { CmpI::Sle }, column, diagonal)?;
        let zero = b.number(e[0].ty(), 0.0);
        b.select(stays, e[0], zero)
    })?;
    Ok(vec![result])
}

fn reverse_sequence<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, lengths) = (cx.operand(0)?, cx.operand(1)?);
    let time = cx.axis(cx.int("time_axis", 0)?, x.rank())?;
    let batch = cx.axis(cx.int("batch_axis", 1)?, x.rank())?;
    let (source, lengths) = (b.value(x)?, b.value(lengths)?);
    let result = b.computed(x.dtype, &x.shape, |b, at| {
        let length = b.read(lengths, &[at[batch]])?;
        let length = b.op(ops::arith::INDEX_CAST, &[length], Type::index(b.context()))?;
        let one = b.int(length.ty(), 1);
        let last = b.binary(ops::arith::SUBI, length, one)?;
        let back = b.binary(ops::arith::SUBI, last, at[time])?;
        let is_inside = b.compare(CmpI::Slt, at[time], length)?;
        let mut place = at.to_vec();
        place[time] = b.select(is_inside, back, at[time])?;
        b.read(source, &place)
    })?;
    Ok(vec![result])
}

/// The element of another type, as an index.
pub(super) fn as_index<'c>(b: &mut Builder<'c>, x: Value<'c>) -> Result<Value<'c>, Failure> {
    b.op(ops::arith::INDEX_CAST, &[x], Type::index(b.context()))
}
