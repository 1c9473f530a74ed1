//! Conversions between f16 and f32 as arithmetic on bits, for CPUs without instructions for them.
//!
//! Before / after:
//!
//! ```text
//! %y = arith.extf %x : f16 to f32     %b = arith.bitcast %x : f16 to i16; .. ; %y = arith.bitcast %r : i32 to f32
//! ```
//!
//! Ensures: every f16 comes from a bitcast or goes to one. Rounds to nearest even; denormals, infinities and NaN are kept.
//! Limits: of f64 through f32, so that a truncation of f64 must come rounded to odd.
//! Source: F. Giesen, "Half to float done quick" and "Float to half".

use crate::Compiler;
use crate::emit::Emit;
use monopour_ir::conversion::{ConversionTarget, Mode, PatternSet, convert};
use monopour_ir::ops;
use monopour_ir::typed::arith::CmpIPredicate;
use monopour_ir::{Diagnostics, Op, Type, Value};

/// The bits of 2^-14 and of 2^16 in f32: the smallest normal f16, and the first power above all of them.
const LEAST_NORMAL: i64 = 113 << 23;
const TOO_LARGE: i64 = 143 << 23;
const INFINITY: i64 = 255 << 23;
/// The bits of infinity and of a NaN in f16.
const HALF_INFINITY: i64 = 0x7c00;
const HALF_NAN: i64 = 0x7e00;

/// Expands the conversions from and to f16 in `root`.
///
/// # Errors
/// The conversion driver's.
pub fn expand_halves(root: Op) -> Result<(), Diagnostics> {
    let is_half = |ty: Type| ty.element() == Type::f16(ty.context());
    let mut target = ConversionTarget::new();
    target.dynamically_legal_op(ops::arith::EXTF, |op| !is_half(op.operand(0).ty()));
    target.dynamically_legal_op(ops::arith::TRUNCF, |op| !is_half(op.result(0).ty()));
    let mut patterns = PatternSet::new();
    patterns.add_fn(ops::arith::EXTF, |op, adaptor, rewriter| {
        let value = extend(&mut Emit::before(op, rewriter, Compiler::Exact), adaptor.operands()[0]);
        rewriter.replace_op(op, &[value]);
        Ok(())
    });
    patterns.add_fn(ops::arith::TRUNCF, |op, adaptor, rewriter| {
        let value = truncate(&mut Emit::before(op, rewriter, Compiler::Exact), adaptor.operands()[0]);
        rewriter.replace_op(op, &[value]);
        Ok(())
    });
    convert(root, &target, &patterns, Mode::Partial).map(drop)
}

/// The exponent is wrong by a power of two, which a product corrects, for denormals too.
fn extend<'c>(e: &mut Emit<'c, '_>, half: Value<'c>) -> Value<'c> {
    let (short, word, single) = (e.integer(16), e.integer(32), e.single());
    let bits = e.op(ops::arith::BITCAST, &[half], short);
    let bits = e.op(ops::arith::EXTUI, &[bits], word);
    let magnitude = with(e, ops::arith::ANDI, bits, 0x7fff);
    let shifted = with(e, ops::arith::SHLI, magnitude, 13);
    let wrong = e.op(ops::arith::BITCAST, &[shifted], single);
    let power = e.constant(2f64.powi(112), single);
    let right = e.op(ops::arith::MULF, &[wrong, power], single);
    let right = e.op(ops::arith::BITCAST, &[right], word);
    // Infinity and NaN have the largest exponent in both types.
    let infinite = with(e, ops::arith::ORI, right, INFINITY);
    let least = e.int_of(HALF_INFINITY, word);
    let is_special = e.compare_int(CmpIPredicate::Uge, magnitude, least);
    let right = e.select(is_special, infinite, right);
    let sign = with(e, ops::arith::ANDI, bits, 0x8000);
    let sign = with(e, ops::arith::SHLI, sign, 16);
    let signed = e.op(ops::arith::ORI, &[right, sign], word);
    let value = e.op(ops::arith::BITCAST, &[signed], single);
    if e.ty == single { value } else { e.extend(value) }
}

fn truncate<'c>(e: &mut Emit<'c, '_>, value: Value<'c>) -> Value<'c> {
    let (short, word, single) = (e.integer(16), e.integer(32), e.single());
    let value = if value.ty() == single { value } else { e.op(ops::arith::TRUNCF, &[value], single) };
    let bits = e.op(ops::arith::BITCAST, &[value], word);
    let magnitude = with(e, ops::arith::ANDI, bits, 0x7fff_ffff);
    // Another exponent, and half a unit less one bit, or all of it where the last bit that stays is odd.
    let odd = with(e, ops::arith::SHRUI, magnitude, 13);
    let odd = with(e, ops::arith::ANDI, odd, 1);
    let normal = with(e, ops::arith::ADDI, magnitude, 0xfff - (112 << 23));
    let normal = e.op(ops::arith::ADDI, &[normal, odd], word);
    let normal = with(e, ops::arith::SHRUI, normal, 13);
    // A unit of 1/2 in f32 is the unit of denormals in f16: the sum rounds.
    let half = e.constant(0.5, single);
    let positive = e.op(ops::arith::BITCAST, &[magnitude], single);
    let sum = e.op(ops::arith::ADDF, &[positive, half], single);
    let sum = e.op(ops::arith::BITCAST, &[sum], word);
    let half = e.op(ops::arith::BITCAST, &[half], word);
    let denormal = e.op(ops::arith::SUBI, &[sum, half], word);
    let [infinity, nan] = [HALF_INFINITY, HALF_NAN].map(|n| e.int_of(n, word));
    let [least, large, infinite] = [LEAST_NORMAL, TOO_LARGE, INFINITY].map(|n| e.int_of(n, word));
    let is_nan = e.compare_int(CmpIPredicate::Ugt, magnitude, infinite);
    let special = e.select(is_nan, nan, infinity);
    let is_denormal = e.compare_int(CmpIPredicate::Ult, magnitude, least);
    let finite = e.select(is_denormal, denormal, normal);
    let is_large = e.compare_int(CmpIPredicate::Uge, magnitude, large);
    let rounded = e.select(is_large, special, finite);
    let sign = with(e, ops::arith::SHRUI, bits, 16);
    let sign = with(e, ops::arith::ANDI, sign, 0x8000);
    let signed = e.op(ops::arith::ORI, &[rounded, sign], word);
    let narrow = e.op(ops::arith::TRUNCI, &[signed], short);
    let ty = e.ty;
    e.op(ops::arith::BITCAST, &[narrow], ty)
}

/// `op` of an integer and a constant.
fn with<'c>(e: &mut Emit<'c, '_>, op: &str, value: Value<'c>, constant: i64) -> Value<'c> {
    let constant = e.int_of(constant, value.ty());
    e.op(op, &[value, constant], value.ty())
}
