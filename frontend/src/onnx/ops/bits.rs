//! Bits of elements: shifts, and elements read as another type.

use crate::onnx::operand::{Known, Operand};
use crate::onnx::predicate::CmpI;
use crate::onnx::{Builder, DataType, Failure, NodeContext, Registry, Results, Tensor};
use monopour_ir::{Type, Value, ops};
use std::rc::Rc;

pub(super) fn register(registry: &mut Registry) {
    registry.op("BitShift", 11, shift, "");
    registry.op("BitCast", 26, cast, "");
}

fn shift<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, y) = (cx.operand(0)?, cx.operand(1)?);
    let right = match cx.string("direction", "")?.as_str() {
        "RIGHT" => true,
        "LEFT" => false,
        other => return Err(format!("direction '{other}' does not exist").into()),
    };
    if x.dtype != y.dtype || !x.dtype.is_integer() || x.dtype.is_narrow() {
        return Err(format!("operands of {} and {} are not supported", x.dtype, y.dtype).into());
    }
    let (arithmetic, bits) = (right && !x.dtype.is_unsigned(), i64::from(x.dtype.bits().unwrap_or(8)));
    let result = b.elementwise(&[x, y], x.dtype, |b, e| {
        let ty = e[0].ty();
        let (zero, width, last) = (b.int(ty, 0), b.int(ty, bits), b.int(ty, bits - 1));
        // Negative ones are large, read as unsigned.
        let inside = b.compare(CmpI::Ult, e[1], width)?;
        let name = match (right, arithmetic) {
            (false, _) => ops::arith::SHLI,
            (true, false) => ops::arith::SHRUI,
            (true, true) => ops::arith::SHRSI,
        };
        let by = b.select(inside, e[1], if arithmetic { last } else { zero })?;
        let moved = b.binary(name, e[0], by)?;
        if arithmetic { Ok(moved) } else { b.select(inside, moved, zero) }
    })?;
    Ok(vec![result])
}

fn cast<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let (from, to) = (x.dtype, cx.data_type("to")?.ok_or("attribute 'to' is missing")?);
    if from.bits() != to.bits() {
        return Err(format!("elements of {from} and {to} are of different widths").into());
    }
    if let Some(Known::Elements(tensor)) = &x.known
        && to != DataType::Bool
    {
        let tensor = Tensor { dtype: to, ..(**tensor).clone() };
        return Ok(vec![Operand::constant(Rc::new(tensor))]);
    }
    Ok(vec![b.elementwise(&[x], to, |b, e| reread(b, to, e[0]))?])
}

/// An element with the bits of another, which is equally wide.
fn reread<'c>(b: &mut Builder<'c>, to: DataType, x: Value<'c>) -> Result<Value<'c>, Failure> {
    let ty = b.element(to)?;
    let truth = Type::integer(b.context(), 1);
    if to.is_packed() {
        return b.wrap(to, x);
    }
    if x.ty() == ty {
        return Ok(x);
    }
    if x.ty() == truth {
        return b.op(ops::arith::EXTUI, &[x], ty);
    }
    if ty == truth {
        let zero = b.int(x.ty(), 0);
        return b.compare(CmpI::Ne, x, zero);
    }
    b.op(ops::arith::BITCAST, &[x], ty)
}
