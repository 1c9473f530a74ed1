//! Scalar arithmetic in bodies, and tensors whose elements a body computes from their indices.

use crate::onnx::predicate::CmpI;
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Failure};
use monopour_ir::{Type, Value, ops};

/// A value, or why there is none.
pub(super) type Made<'c> = Result<Value<'c>, Failure>;

macro_rules! binary {
    ($($name:ident $float:ident $int:ident;)*) => {
        $(
            pub(super) fn $name<'c>(b: &mut Builder<'c>, x: Value<'c>, y: Value<'c>) -> Made<'c> {
                b.binary(if x.ty().is_float() { ops::arith::$float } else { ops::arith::$int }, x, y)
            }
        )*
    };
}

binary! {
    add ADDF ADDI;
    sub SUBF SUBI;
    mul MULF MULI;
    div DIVF DIVSI;
    least MINNUMF MINSI;
    most MAXNUMF MAXSI;
}

/// Both truth values.
pub(super) fn both<'c>(b: &mut Builder<'c>, x: Value<'c>, y: Value<'c>) -> Made<'c> {
    b.binary(ops::arith::ANDI, x, y)
}

/// A constant of a value's type.
pub(super) fn like<'c>(b: &mut Builder<'c>, x: Value<'c>, number: f64) -> Value<'c> {
    b.number(x.ty(), number)
}

/// An index as a float.
pub(super) fn to_float<'c>(b: &mut Builder<'c>, at: Value<'c>, ty: Type<'c>) -> Made<'c> {
    let narrow = b.op(ops::arith::INDEX_CAST, &[at], Type::integer(b.context(), 32))?;
    b.op(ops::arith::SITOFP, &[narrow], ty)
}

/// A float between two others; NaN is the lower one.
pub(super) fn between<'c>(b: &mut Builder<'c>, x: Value<'c>, [low, high]: [Value<'c>; 2]) -> Made<'c> {
    let x = most(b, x, low)?;
    least(b, x, high)
}

/// A whole number in the range of 32 bits as an index.
pub(super) fn to_index<'c>(b: &mut Builder<'c>, x: Value<'c>) -> Made<'c> {
    let narrow = b.op(ops::arith::FPTOSI, &[x], Type::integer(b.context(), 32))?;
    b.op(ops::arith::INDEX_CAST, &[narrow], Type::index(b.context()))
}

/// An index that is at least 0 and less than `size`, which is not 0.
pub(super) fn clamped<'c>(b: &mut Builder<'c>, at: Value<'c>, size: Value<'c>) -> Made<'c> {
    let (zero, one) = (like(b, at, 0.0), like(b, at, 1.0));
    let last = sub(b, size, one)?;
    let at = least(b, at, last)?;
    most(b, at, zero)
}

/// The elements around a place, which is kept in a range, with their weights.
pub(super) fn neighbours<'c>(
    b: &mut Builder<'c>,
    place: Value<'c>,
    range: [Value<'c>; 2],
    size: Value<'c>,
) -> Result<[(Value<'c>, Value<'c>); 2], Failure> {
    let place = between(b, place, range)?;
    let floor = b.unary(ops::math::FLOOR, place)?;
    let ratio = sub(b, place, floor)?;
    let one = like(b, ratio, 1.0);
    let rest = sub(b, one, ratio)?;
    let low = to_index(b, floor)?;
    let one = like(b, low, 1.0);
    let high = add(b, low, one)?;
    Ok([(low, rest), (clamped(b, high, size)?, ratio)])
}

/// Whether an index is at least 0 and less than `size`.
pub(super) fn is_inside<'c>(b: &mut Builder<'c>, at: Value<'c>, size: Value<'c>) -> Made<'c> {
    // Unsigned less.
    b.compare(CmpI::Ult, at, size)
}

/// The values of sizes.
pub(super) fn indices<'c>(b: &mut Builder<'c>, sizes: &[Dim]) -> Result<Vec<Value<'c>>, Failure> {
    sizes.iter().map(|size| b.index(size)).collect()
}

/// The type in which elements are weighted and summed: floats of at least 32 bits.
pub(super) fn wide(dtype: DataType) -> DataType {
    if dtype == DataType::F64 { DataType::F64 } else { DataType::F32 }
}

/// An element of a tensor in another type.
pub(super) fn element<'c>(
    b: &mut Builder<'c>,
    (source, from): (Value<'c>, DataType),
    at: &[Value<'c>],
    to: DataType,
) -> Made<'c> {
    let read = b.read(source, at)?;
    super::compare::convert(b, from, to, read)
}

/// A float in another type; integers are rounded towards zero, within their range.
pub(super) fn narrowed<'c>(b: &mut Builder<'c>, x: Value<'c>, from: DataType, to: DataType) -> Made<'c> {
    let x = match to.bits().filter(|_| to.is_integer()) {
        Some(bits) => {
            let (low, high) = bounds(bits, to.is_unsigned());
            let range = [like(b, x, low), like(b, x, high)];
            between(b, x, range)?
        }
        None => x,
    };
    super::compare::convert(b, from, to, x)
}

/// The least and the greatest integer; the latter as an f32 where that is smaller.
pub(super) fn bounds(bits: u32, unsigned: bool) -> (f64, f64) {
    let magnitude = 2f64.powi(if unsigned { bits } else { bits - 1 } as i32);
    let greatest = if bits >= 32 { magnitude * (1.0 - 2f64.powi(-24)) } else { magnitude - 1.0 };
    (if unsigned { 0.0 } else { -magnitude }, greatest)
}
