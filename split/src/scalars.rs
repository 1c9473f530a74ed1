//! Scalars between host code and the runtime, as the low bits of an `i64`.

use monopour_ir::ops;
use monopour_ir::typed::arith::{CmpFPredicate, CmpIPredicate};
use monopour_ir::{Attr, Builder, Diagnostics, Location, OpSpec, Type, Value};

/// The value of type `ty` in the low bits of `bits`.
///
/// # Errors
/// MLIR's, none for integers of up to 64 bits, floats and index.
pub(crate) fn from_bits<'c>(
    b: &mut Builder<'c>,
    loc: Location<'c>,
    bits: Value<'c>,
    ty: Type<'c>,
) -> Result<Value<'c>, Diagnostics> {
    let cx = b.context();
    if ty.is_index() {
        return unary(b, loc, ops::arith::INDEX_CAST, bits, ty);
    }
    let width = ty.integer_width().or(ty.float_width()).unwrap_or(64);
    let mut value = bits;
    if width < 64 {
        value = unary(b, loc, ops::arith::TRUNCI, value, Type::integer(cx, width))?;
    }
    if ty.is_float() {
        value = unary(b, loc, ops::arith::BITCAST, value, ty)?;
    }
    Ok(value)
}

/// The bits of `value`, zero-extended (index: as it is).
///
/// # Errors
/// As [`from_bits`].
pub(crate) fn to_bits<'c>(b: &mut Builder<'c>, loc: Location<'c>, value: Value<'c>) -> Result<Value<'c>, Diagnostics> {
    let cx = b.context();
    let (ty, i64_ty) = (value.ty(), Type::integer(cx, 64));
    if ty.is_index() {
        return unary(b, loc, ops::arith::INDEX_CAST, value, i64_ty);
    }
    let mut bits = value;
    if let Some(width) = ty.float_width() {
        bits = unary(b, loc, ops::arith::BITCAST, bits, Type::integer(cx, width))?;
    }
    if bits.ty().integer_width() != Some(64) {
        bits = unary(b, loc, ops::arith::EXTUI, bits, i64_ty)?;
    }
    Ok(bits)
}

/// `arith.cmpi` by the name of its predicate.
///
/// # Errors
/// MLIR's, none for two integers of one type.
pub(crate) fn compare<'c>(
    b: &mut Builder<'c>,
    loc: Location<'c>,
    predicate: CmpIPredicate,
    left: Value<'c>,
    right: Value<'c>,
) -> Result<Value<'c>, Diagnostics> {
    let cx = b.context();
    let spec = OpSpec::new(ops::arith::CMPI, loc)
        .attr("predicate", predicate.to_attr(cx))
        .operands(&[left, right])
        .results(&[Type::integer(cx, 1)]);
    Ok(b.create(spec)?.result(0))
}

/// Whether an f64 is at least `limit`.
///
/// # Errors
/// As [`from_bits`].
pub(crate) fn at_least<'c>(
    b: &mut Builder<'c>,
    loc: Location<'c>,
    value: Value<'c>,
    limit: f64,
) -> Result<Value<'c>, Diagnostics> {
    let cx = b.context();
    let f64_ty = Type::f64(cx);
    let limit = b.constant(Attr::float(f64_ty, limit), f64_ty, loc);
    let spec = OpSpec::new(ops::arith::CMPF, loc)
        .attr("predicate", CmpFPredicate::Oge.to_attr(cx))
        .operands(&[value, limit])
        .results(&[Type::integer(cx, 1)]);
    Ok(b.create(spec)?.result(0))
}

fn unary<'c>(
    b: &mut Builder<'c>,
    loc: Location<'c>,
    name: &str,
    value: Value<'c>,
    ty: Type<'c>,
) -> Result<Value<'c>, Diagnostics> {
    Ok(b.create(OpSpec::new(name, loc).operands(&[value]).results(&[ty]))?.result(0))
}
