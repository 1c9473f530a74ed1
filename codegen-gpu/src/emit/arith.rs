//! `arith`: numbers, comparisons, conversions. All ops work lane by lane.

use super::module::{Ex, Kernel, Lowered, Shape};
use super::remainder::remainder;
use super::short_float::ShortFloat;
use super::{convert, narrow, types};
use crate::error;
use monopour_ir::ops;
use monopour_ir::typed::arith::{CmpFPredicate, CmpIPredicate};
use monopour_ir::{Attr, Diagnostics, Op};
use monopour_program::GpuFeature;
use naga::{BinaryOperator as B, Literal, MathFunction as M, Scalar, ScalarKind, UnaryOperator as U};

pub(super) fn emit<'c>(kernel: &mut Kernel<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    let shape = types::shape(kernel, op, op.result(0).ty())?;
    let lowered = match op.name() {
        ops::arith::CONSTANT => constant(kernel, op, shape)?,
        ops::arith::SELECT => select(kernel, op, shape),
        ops::arith::CMPI | ops::arith::CMPF => compare(kernel, op)?,
        ops::arith::NEGF => {
            let a = kernel.operand(op, 0);
            kernel.map(a, |k, a| k.unary(U::Negate, a))
        }
        ops::arith::ADDUI_EXTENDED if shape.scalar.kind != ScalarKind::Bool => {
            add_extended(kernel, op, shape);
            return Ok(());
        }
        name if op.num_operands() == 2 => binary(kernel, op, name, shape)?,
        _ => convert::emit(kernel, op, shape)?,
    };
    let lowered = wrap(kernel, op, lowered, shape);
    kernel.set(op.result(0), lowered);
    Ok(())
}

/// The sum, which overflows where it is less than an operand; sign-extended numbers keep their unsigned order.
fn add_extended<'c>(kernel: &mut Kernel<'c>, op: Op<'c>, shape: Shape) {
    let (a, b) = (kernel.operand(op, 0), kernel.operand(op, 1));
    let sum = kernel.zip(a, b, |k, a, b| k.binary(B::Add, a, b));
    let sum = wrap(kernel, op, sum, shape);
    let overflow = kernel.zip(sum, a, |k, sum, a| {
        let (sum, a) = (k.bitcast(sum, ScalarKind::Uint), k.bitcast(a, ScalarKind::Uint));
        k.binary(B::Less, sum, a)
    });
    kernel.set(op.result(0), sum);
    kernel.set(op.result(1), overflow);
}

/// Wraps a result of a narrow integer type into its range.
fn wrap<'c>(kernel: &mut Kernel<'c>, op: Op<'c>, value: Lowered, shape: Shape) -> Lowered {
    const STAY: [&str; 15] = [
        ops::arith::CONSTANT,
        ops::arith::SELECT,
        ops::arith::ANDI,
        ops::arith::ORI,
        ops::arith::XORI,
        ops::arith::MAXSI,
        ops::arith::MINSI,
        ops::arith::REMSI,
        ops::arith::SHRSI,
        ops::arith::EXTSI,
        ops::arith::NEGF,
        ops::arith::MAXIMUMF,
        ops::arith::MINIMUMF,
        ops::arith::MAXNUMF,
        ops::arith::MINNUMF,
    ];
    if STAY.contains(&op.name()) {
        return value;
    }
    if let Some(short) = ShortFloat::of(kernel, op.result(0).ty()) {
        return kernel.map(value, |k, a| short.round(k, a, shape.lanes));
    }
    match narrow::bits(op.result(0).ty()).filter(|_| !narrow::is_positive(op.result(0))) {
        Some(bits) => kernel.map(value, |k, a| narrow::sign_extend(k, a, bits, shape.lanes)),
        None => value,
    }
}

/// An operand as an unsigned number.
pub(super) fn unsigned_operand<'c>(kernel: &mut Kernel<'c>, op: Op<'c>, index: usize, lanes: u32) -> Lowered {
    let value = kernel.operand(op, index);
    match narrow::bits(op.operand(index).ty()).filter(|_| !narrow::is_positive(op.operand(index))) {
        Some(bits) => kernel.map(value, |k, a| narrow::zero_extend(k, a, bits, lanes)),
        None => value,
    }
}

fn constant<'c>(kernel: &mut Kernel<'c>, op: Op<'c>, shape: Shape) -> Result<Lowered, Diagnostics> {
    let value = op.attr("value").expect("arith.constant has a value");
    if value.is_dense_elements() && !value.is_splat() {
        return dense(kernel, op, shape, &value);
    }
    let scalar = value.splat_value().unwrap_or(value);
    let e = scalar_constant(kernel, shape.scalar, &scalar);
    Ok(kernel.splat_value(e, shape.lanes))
}

fn dense<'c>(kernel: &mut Kernel<'c>, op: Op<'c>, shape: Shape, value: &Attr<'c>) -> Result<Lowered, Diagnostics> {
    let bytes = value.elements_bytes().filter(|_| {
        let ty = op.result(0).ty();
        let short = ShortFloat::of(kernel, ty).is_some();
        shape.scalar.width == 4 && !ty.element().is_index() && narrow::bits(ty).is_none() && !short
    });
    let Some(bytes) = bytes else {
        return Err(error::unsupported_type(
            op,
            op.result(0).ty(),
            "a vector constant has 32-bit elements or one value",
        ));
    };
    let lanes = bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect::<Vec<_>>();
    let lanes: Vec<Ex> = lanes.into_iter().map(|bits| scalar_bits(kernel, shape.scalar, bits)).collect();
    Ok(super::vector::compose(kernel, shape, &lanes))
}

fn scalar_bits(kernel: &mut Kernel, scalar: Scalar, bits: u32) -> Ex {
    match scalar.kind {
        ScalarKind::Float => float32(kernel, f32::from_bits(bits)),
        _ => kernel.i32(bits as i32),
    }
}

fn scalar_constant<'c>(kernel: &mut Kernel<'c>, scalar: Scalar, value: &Attr<'c>) -> Ex {
    let int = value.as_int().unwrap_or(0);
    let float = value.as_float().unwrap_or(0.0);
    match (scalar.kind, scalar.width) {
        (ScalarKind::Bool, _) => kernel.literal(Literal::Bool(int != 0)),
        (ScalarKind::Float, 4) => float32(kernel, float as f32),
        (ScalarKind::Float, 8) if float.is_finite() => kernel.literal(Literal::F64(float)),
        (ScalarKind::Float, 8) => {
            kernel.features.insert(GpuFeature::Int64);
            let bits = kernel.literal(Literal::U64(float.to_bits()));
            kernel.bitcast(bits, ScalarKind::Float)
        }
        (ScalarKind::Float, _) => {
            // Every f16, the infinities included, is the conversion of an f32.
            let wide = float32(kernel, float as f32);
            kernel.convert(wide, ScalarKind::Float, 2)
        }
        (_, 8) => kernel.literal(Literal::I64(int)),
        _ => kernel.i32(int as i32),
    }
}

/// An f32 constant; naga has no literal for infinities and NaN, so these come from their bits.
pub(super) fn float32(kernel: &mut Kernel, value: f32) -> Ex {
    if value.is_finite() {
        return kernel.f32(value);
    }
    let bits = kernel.u32(value.to_bits());
    kernel.bitcast(bits, ScalarKind::Float)
}

fn select<'c>(kernel: &mut Kernel<'c>, op: Op<'c>, shape: Shape) -> Lowered {
    let (accept, reject) = (kernel.operand(op, 1), kernel.operand(op, 2));
    let mut condition = kernel.operand(op, 0);
    if !op.operand(0).ty().is_vector() {
        // One condition for all lanes.
        condition = match condition {
            Lowered::One(c) => kernel.splat_value(c, shape.lanes),
            planes @ Lowered::Planes(_) => planes,
        };
    }
    match (condition, accept, reject) {
        (Lowered::One(c), Lowered::One(a), Lowered::One(r)) => Lowered::One(kernel.select(c, a, r)),
        (Lowered::Planes(c), Lowered::Planes(a), Lowered::Planes(r)) => {
            Lowered::Planes([kernel.select(c[0], a[0], r[0]), kernel.select(c[1], a[1], r[1])])
        }
        _ => unreachable!("arith.select has operands of one shape: verified"),
    }
}

fn binary<'c>(kernel: &mut Kernel<'c>, op: Op<'c>, name: &str, shape: Shape) -> Result<Lowered, Diagnostics> {
    let (a, b) = if name.ends_with("ui") {
        (unsigned_operand(kernel, op, 0, shape.lanes), unsigned_operand(kernel, op, 1, shape.lanes))
    } else {
        (kernel.operand(op, 0), kernel.operand(op, 1))
    };
    let bool_result = shape.scalar.kind == ScalarKind::Bool;
    if let Some(operator) = direct(name, bool_result) {
        return Ok(kernel.zip(a, b, |k, a, b| k.binary(operator, a, b)));
    }
    if let Some((fun, unsigned)) = min_max(name) {
        return Ok(kernel.zip(a, b, |k, a, b| {
            if unsigned { on_unsigned(k, a, b, |k, a, b| k.math(fun, &[a, b])) } else { k.math(fun, &[a, b]) }
        }));
    }
    match name {
        ops::arith::MAXIMUMF | ops::arith::MINIMUMF => {
            let fun = if name == ops::arith::MAXIMUMF { M::Max } else { M::Min };
            // An operand that is a constant number needs no NaN test.
            let test = [maybe_nan(op, 0), maybe_nan(op, 1)];
            Ok(kernel.zip(a, b, |k, a, b| nan_propagating(k, fun, a, b, shape, test)))
        }
        ops::arith::DIVUI => Ok(kernel.zip(a, b, |k, a, b| on_unsigned(k, a, b, |k, a, b| k.binary(B::Divide, a, b)))),
        ops::arith::REMUI => Ok(kernel.zip(a, b, |k, a, b| on_unsigned(k, a, b, |k, a, b| k.binary(B::Modulo, a, b)))),
        ops::arith::SHLI | ops::arith::SHRSI => {
            let operator = if name == ops::arith::SHLI { B::ShiftLeft } else { B::ShiftRight };
            let amount = shift_amount(op);
            Ok(kernel.zip(a, b, |k, a, b| shift(k, operator, (a, b), amount, shape)))
        }
        ops::arith::SHRUI if shape.scalar.width == 8 => {
            let amount = shift_amount(op);
            Ok(kernel.zip(a, b, |k, a, b| {
                let bits = k.bitcast(a, ScalarKind::Uint);
                let shifted = shift(k, B::ShiftRight, (bits, b), amount, shape);
                k.bitcast(shifted, ScalarKind::Sint)
            }))
        }
        ops::arith::SHRUI => {
            Ok(kernel.zip(a, b, |k, a, b| on_unsigned(k, a, b, |k, a, b| k.binary(B::ShiftRight, a, b))))
        }
        ops::arith::FLOORDIVSI | ops::arith::CEILDIVSI => {
            Ok(kernel.zip(a, b, |k, a, b| rounded_division(k, a, b, shape, name == ops::arith::FLOORDIVSI)))
        }
        ops::arith::REMF => Ok(kernel.zip(a, b, |k, a, b| float_remainder(k, a, b, shape))),
        ops::arith::CEILDIVUI => Ok(kernel.zip(a, b, |k, a, b| unsigned_ceil_division(k, a, b, shape))),
        _ => Err(error::unsupported_op(op)),
    }
}

/// Ops that are a single operator in naga.
fn direct(name: &str, bool_result: bool) -> Option<B> {
    Some(match name {
        ops::arith::ADDF => B::Add,
        ops::arith::SUBF => B::Subtract,
        ops::arith::MULF => B::Multiply,
        ops::arith::DIVF => B::Divide,
        ops::arith::REMSI => B::Modulo,
        ops::arith::DIVSI => B::Divide,
        // On one bit, addition and subtraction are the exclusive or, which naga has for bools as `!=`.
        ops::arith::ADDI | ops::arith::SUBI | ops::arith::XORI if bool_result => B::NotEqual,
        // A signed one-bit 1 is -1.
        ops::arith::MULI | ops::arith::MAXSI | ops::arith::MINUI if bool_result => B::And,
        ops::arith::MINSI | ops::arith::MAXUI if bool_result => B::InclusiveOr,
        ops::arith::ADDI => B::Add,
        ops::arith::SUBI => B::Subtract,
        ops::arith::MULI => B::Multiply,
        ops::arith::ANDI => B::And,
        ops::arith::ORI => B::InclusiveOr,
        ops::arith::XORI => B::ExclusiveOr,
        _ => return None,
    })
}

/// Function, and whether it compares unsigned.
fn min_max(name: &str) -> Option<(M, bool)> {
    Some(match name {
        ops::arith::MAXNUMF | ops::arith::MAXSI => (M::Max, false),
        ops::arith::MINNUMF | ops::arith::MINSI => (M::Min, false),
        ops::arith::MAXUI => (M::Max, true),
        ops::arith::MINUI => (M::Min, true),
        _ => return None,
    })
}

fn on_unsigned<'c>(k: &mut Kernel<'c>, a: Ex, b: Ex, f: impl FnOnce(&mut Kernel<'c>, Ex, Ex) -> Ex) -> Ex {
    let (a, b) = (k.bitcast(a, ScalarKind::Uint), k.bitcast(b, ScalarKind::Uint));
    let r = f(k, a, b);
    k.bitcast(r, ScalarKind::Sint)
}

/// A constant amount, uniform across lanes: naga does not convert 64-bit literals.
fn shift_amount(op: Op) -> Option<u32> {
    let constant = op.operand(1).defining_op().filter(|d| d.is(ops::arith::CONSTANT))?.attr("value")?;
    u32::try_from(constant.splat_value().unwrap_or(constant).as_int()?).ok()
}

/// Amounts are of 32 bits in the shading languages.
fn shift(k: &mut Kernel, op: B, (a, b): (Ex, Ex), constant: Option<u32>, shape: Shape) -> Ex {
    let amount = match constant {
        Some(bits) => {
            let bits = k.u32(bits);
            k.splat(bits, shape.lanes)
        }
        None => k.convert(b, ScalarKind::Uint, 4),
    };
    k.binary(op, a, amount)
}

/// The quotient, plus one for a remainder: no sum that could overflow.
fn unsigned_ceil_division(k: &mut Kernel, a: Ex, b: Ex, shape: Shape) -> Ex {
    let zero = if shape.scalar.width == 8 { k.literal(Literal::I64(0)) } else { k.i32(0) };
    let one = if shape.scalar.width == 8 { k.literal(Literal::I64(1)) } else { k.i32(1) };
    let (zero, one) = (k.splat(zero, shape.lanes), k.splat(one, shape.lanes));
    let quotient = on_unsigned(k, a, b, |k, a, b| k.binary(B::Divide, a, b));
    let rest = on_unsigned(k, a, b, |k, a, b| k.binary(B::Modulo, a, b));
    let inexact = k.binary(B::NotEqual, rest, zero);
    let next = k.binary(B::Add, quotient, one);
    k.select(inexact, next, quotient)
}

fn rounded_division(k: &mut Kernel, a: Ex, b: Ex, shape: Shape, floor: bool) -> Ex {
    let zero = if shape.scalar.width == 8 { k.literal(Literal::I64(0)) } else { k.i32(0) };
    let one = if shape.scalar.width == 8 { k.literal(Literal::I64(1)) } else { k.i32(1) };
    let (zero, one) = (k.splat(zero, shape.lanes), k.splat(one, shape.lanes));
    let quotient = k.binary(B::Divide, a, b);
    let product = k.binary(B::Multiply, quotient, b);
    let inexact = k.binary(B::NotEqual, product, a);
    let (a_negative, b_negative) = (k.binary(B::Less, a, zero), k.binary(B::Less, b, zero));
    let wrong_way = k.binary(if floor { B::NotEqual } else { B::Equal }, a_negative, b_negative);
    let adjust = k.binary(B::And, inexact, wrong_way);
    let adjusted = k.binary(if floor { B::Subtract } else { B::Add }, quotient, one);
    k.select(adjust, adjusted, quotient)
}

/// f16 through f32, where the remainder is exact; of f64 the driver's.
fn float_remainder(k: &mut Kernel, a: Ex, b: Ex, shape: Shape) -> Ex {
    match shape.scalar.width {
        8 => k.binary(B::Modulo, a, b),
        4 => remainder(k, a, b, shape),
        _ => {
            let [a, b] = [a, b].map(|e| k.convert(e, ScalarKind::Float, 4));
            let wide = remainder(k, a, b, Shape { scalar: Scalar::F32, ..shape });
            k.convert(wide, ScalarKind::Float, 2)
        }
    }
}

fn maybe_nan(op: Op, index: usize) -> bool {
    let constant = op.operand(index).defining_op().filter(|d| d.is(ops::arith::CONSTANT)).and_then(|d| d.attr("value"));
    let number = constant.and_then(|v| v.splat_value().unwrap_or(v).as_float());
    number.is_none_or(f64::is_nan)
}

/// `max` and `min` of the shading languages may drop a NaN operand; these propagate it.
fn nan_propagating(k: &mut Kernel, fun: M, a: Ex, b: Ex, shape: Shape, test: [bool; 2]) -> Ex {
    let mut result = k.math(fun, &[a, b]);
    for (operand, test) in [(b, test[1]), (a, test[0])] {
        if test {
            let nan = is_nan(k, operand, shape);
            result = k.select(nan, operand, result);
        }
    }
    result
}

/// A NaN test on the bits, except for f16: naga writes `!=` as an ordered comparison and drivers may assume that NaN never
/// occurs.
pub(super) fn is_nan(k: &mut Kernel, a: Ex, shape: Shape) -> Ex {
    if shape.scalar.width == 2 {
        let equal = k.binary(B::Equal, a, a);
        return k.unary(U::LogicalNot, equal);
    }
    if shape.scalar.width == 8 {
        let bits = super::math::magnitude_bits(k, a, shape);
        let infinity = k.literal(Literal::U64(f64::INFINITY.to_bits()));
        let infinity = k.splat(infinity, shape.lanes);
        return k.binary(B::Greater, bits, infinity);
    }
    let bits = k.bitcast(a, ScalarKind::Uint);
    let (magnitude, infinity) = (k.u32(0x7fff_ffff), k.u32(0x7f80_0000));
    let (magnitude, infinity) = (k.splat(magnitude, shape.lanes), k.splat(infinity, shape.lanes));
    let bits = k.binary(B::And, bits, magnitude);
    k.binary(B::Greater, bits, infinity)
}

fn compare<'c>(kernel: &mut Kernel<'c>, op: Op<'c>) -> Result<Lowered, Diagnostics> {
    let shape = types::shape(kernel, op, op.operand(0).ty())?;
    if op.is(ops::arith::CMPF) {
        let predicate = CmpFPredicate::of(op).expect("comparisons have a predicate: verified");
        let (a, b) = (kernel.operand(op, 0), kernel.operand(op, 1));
        return Ok(kernel.zip(a, b, |k, a, b| compare_float(k, predicate, a, b, shape)));
    }
    let predicate = CmpIPredicate::of(op).expect("comparisons have a predicate: verified");
    let (a, b) = if predicate.is_unsigned() {
        (unsigned_operand(kernel, op, 0, shape.lanes), unsigned_operand(kernel, op, 1, shape.lanes))
    } else {
        (kernel.operand(op, 0), kernel.operand(op, 1))
    };
    Ok(kernel.zip(a, b, |k, a, b| compare_int(k, predicate, a, b, shape)))
}

fn compare_int(k: &mut Kernel, predicate: CmpIPredicate, a: Ex, b: Ex, shape: Shape) -> Ex {
    use CmpIPredicate as P;
    let operator = match predicate {
        P::Eq => B::Equal,
        P::Ne => B::NotEqual,
        P::Slt | P::Ult => B::Less,
        P::Sle | P::Ule => B::LessEqual,
        P::Sgt | P::Ugt => B::Greater,
        P::Sge | P::Uge => B::GreaterEqual,
    };
    if matches!(predicate, P::Eq | P::Ne) {
        return k.binary(operator, a, b);
    }
    // Bools have no order; as numbers, a signed one-bit 1 is -1.
    let (mut a, mut b) = (a, b);
    if shape.scalar.kind == ScalarKind::Bool {
        (a, b) = (k.convert(a, ScalarKind::Uint, 4), k.convert(b, ScalarKind::Uint, 4));
        return if predicate.is_unsigned() { k.binary(operator, a, b) } else { k.binary(operator, b, a) };
    }
    if predicate.is_unsigned() {
        (a, b) = (k.bitcast(a, ScalarKind::Uint), k.bitcast(b, ScalarKind::Uint));
    }
    k.binary(operator, a, b)
}

/// An unordered predicate is the negation of the opposite ordered one.
fn compare_float(k: &mut Kernel, predicate: CmpFPredicate, a: Ex, b: Ex, shape: Shape) -> Ex {
    use CmpFPredicate as P;
    let not = |k: &mut Kernel, e: Ex| k.unary(U::LogicalNot, e);
    let opposite = |k: &mut Kernel, operator| {
        let e = k.binary(operator, a, b);
        not(k, e)
    };
    match predicate {
        P::AlwaysFalse | P::AlwaysTrue => {
            let e = k.literal(Literal::Bool(predicate == P::AlwaysTrue));
            k.splat(e, shape.lanes)
        }
        P::Oeq => k.binary(B::Equal, a, b),
        P::Ogt => k.binary(B::Greater, a, b),
        P::Oge => k.binary(B::GreaterEqual, a, b),
        P::Olt => k.binary(B::Less, a, b),
        P::Ole => k.binary(B::LessEqual, a, b),
        P::One | P::Ueq => {
            let (less, greater) = (k.binary(B::Less, a, b), k.binary(B::Greater, a, b));
            let different = k.binary(B::InclusiveOr, less, greater);
            if predicate == P::One { different } else { not(k, different) }
        }
        P::Ord | P::Uno => {
            let (x, y) = (is_nan(k, a, shape), is_nan(k, b, shape));
            let unordered = k.binary(B::InclusiveOr, x, y);
            if predicate == P::Uno { unordered } else { not(k, unordered) }
        }
        P::Ugt => opposite(k, B::LessEqual),
        P::Uge => opposite(k, B::Less),
        P::Ult => opposite(k, B::GreaterEqual),
        P::Ule => opposite(k, B::Greater),
        P::Une => opposite(k, B::Equal),
    }
}
