//! Elements chosen by their values: those that are not zero, those with a flag.

use super::compare::convert;
use super::cumulative::set_positions;
use super::indexing::as_index;
use super::slices::indexed;
use crate::onnx::operand::Operand;
use crate::onnx::predicate::CmpI;
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Failure, NodeContext, Registry, Results, Tensor};
use monopour_ir::{Type, Value, ops};
use std::rc::Rc;

pub(super) fn register(registry: &mut Registry) {
    registry.op("NonZero", 9, non_zero, "");
    registry.op("Compress", 9, compress, "");
}

/// The elements as flags of i32.
fn flags<'c>(b: &mut Builder<'c>, x: &Operand<'c>) -> Result<Operand<'c>, Failure> {
    let flat = b.reshaped(x, &[x.elements()])?;
    let from = x.dtype;
    b.elementwise(&[&flat], DataType::I32, |b, e| {
        let truth = convert(b, from, DataType::Bool, e[0])?;
        b.op(ops::arith::EXTUI, &[truth], Type::integer(b.context(), 32))
    })
}

fn non_zero<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    if x.elements().is(0) {
        return Ok(vec![Operand::constant(Rc::new(Tensor::ints(vec![x.rank() as i64, 0], &[])))]);
    }
    // A scalar counts as a vector of one element.
    let shape = if x.rank() == 0 { vec![Dim::constant(1)] } else { x.shape.clone() };
    let flags = flags(b, x)?;
    let found = set_positions(b, &flags)?;
    let places = b.value(&found)?;
    let sizes: Vec<Value> = shape.iter().map(|d| b.index(d)).collect::<Result<_, _>>()?;
    let result = b.computed(DataType::I64, &[(shape.len() as i64).into(), found.shape[0].clone()], |b, at| {
        let place = b.read(places, &[at[1]])?;
        let mut rest = as_index(b, place)?;
        let mut chosen = rest;
        for (d, size) in sizes.iter().enumerate().rev() {
            let own = b.int(at[0].ty(), d as i64);
            let (is_it, coordinate) = (b.compare(CmpI::Eq, at[0], own)?, b.binary(ops::arith::REMUI, rest, *size)?);
            chosen = b.select(is_it, coordinate, chosen)?;
            rest = b.binary(ops::arith::DIVUI, rest, *size)?;
        }
        b.op(ops::arith::INDEX_CAST, &[chosen], Type::integer(b.context(), 64))
    })?;
    Ok(vec![result])
}

fn compress<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, condition) = (cx.operand(0)?, cx.operand(1)?);
    let flags = flags(b, condition)?;
    let found = set_positions(b, &flags)?;
    let (x, axis) = match cx.int_given("axis")? {
        Some(axis) => (x.clone(), cx.axis(axis, x.rank())?),
        None => (b.reshaped(x, &[x.elements()])?, 0),
    };
    let mut shape = x.shape.clone();
    shape[axis] = found.shape[0].clone();
    let (source, places) = (b.value(&x)?, b.value(&found)?);
    let result = indexed(b, &x, shape, |b, at| {
        let place = b.read(places, &[at[axis]])?;
        let mut from = at.to_vec();
        from[axis] = as_index(b, place)?;
        Ok((source, from))
    })?;
    Ok(vec![result])
}
