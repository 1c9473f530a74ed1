//! Counts of bits, and magnitudes, of integers of any width.
//!
//! The shading languages count in 32-bit words: a narrower integer is counted without the bits above it, a wider one by
//! halves.

use super::module::{Ex, Kernel, Lowered, Shape};
use super::{convert, narrow, types};
use monopour_ir::ops;
use monopour_ir::{Diagnostics, Op};
use naga::{BinaryOperator as B, MathFunction as M, ScalarKind, UnaryOperator as U};

/// The ops that [`emit`] knows.
pub(super) const OPS: [&str; 4] = [ops::math::ABSI, ops::math::CTLZ, ops::math::CTPOP, ops::math::CTTZ];

pub(super) fn emit<'c>(kernel: &mut Kernel<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    let shape = types::shape(kernel, op, op.result(0).ty())?;
    let fun = match op.name() {
        ops::math::ABSI => M::Abs,
        ops::math::CTLZ => M::CountLeadingZeros,
        ops::math::CTTZ => M::CountTrailingZeros,
        _ => M::CountOneBits,
    };
    let operand = kernel.operand(op, 0);
    let lowered = if shape.scalar.kind == ScalarKind::Bool {
        of_bits(kernel, fun, operand)
    } else if let Some(bits) = narrow::bits(op.result(0).ty()) {
        kernel.map(operand, |k, a| {
            let result = of_narrow(k, fun, a, bits, shape.lanes);
            narrow::sign_extend(k, result, bits, shape.lanes)
        })
    } else if shape.scalar.width == 8 && fun != M::Abs {
        kernel.map(operand, |k, a| of_wide(k, fun, a, shape))
    } else {
        kernel.map(operand, |k, a| k.math(fun, &[a]))
    };
    kernel.set(op.result(0), lowered);
    Ok(())
}

/// Of one bit: a set bit has no zeros before or behind it.
fn of_bits(kernel: &mut Kernel, fun: M, a: Lowered) -> Lowered {
    match fun {
        M::CountLeadingZeros | M::CountTrailingZeros => kernel.map(a, |k, a| k.unary(U::LogicalNot, a)),
        _ => a,
    }
}

/// Of the lowest `bits` bits of a word.
fn of_narrow(k: &mut Kernel, fun: M, a: Ex, bits: u32, lanes: u32) -> Ex {
    match fun {
        M::CountOneBits => {
            let number = narrow::zero_extend(k, a, bits, lanes);
            k.math(fun, &[number])
        }
        M::CountLeadingZeros => {
            let number = narrow::zero_extend(k, a, bits, lanes);
            let count = k.math(fun, &[number]);
            let above = all(k, 32 - bits as i32, lanes);
            k.binary(B::Subtract, count, above)
        }
        M::CountTrailingZeros => {
            // The first bit above the type ends the zeros of 0.
            let end = all(k, 1i32 << bits, lanes);
            let number = k.binary(B::InclusiveOr, a, end);
            k.math(fun, &[number])
        }
        _ => k.math(fun, &[a]),
    }
}

/// Of 64 bits, by halves.
fn of_wide(k: &mut Kernel, fun: M, a: Ex, shape: Shape) -> Ex {
    let lanes = shape.lanes;
    let amount = k.u32(32);
    let amount = k.splat(amount, lanes);
    let upper = k.binary(B::ShiftRight, a, amount);
    let (low, high) = (k.convert(a, ScalarKind::Sint, 4), k.convert(upper, ScalarKind::Sint, 4));
    let (in_low, in_high) = (k.math(fun, &[low]), k.math(fun, &[high]));
    let count = match fun {
        M::CountOneBits => k.binary(B::Add, in_low, in_high),
        M::CountLeadingZeros => behind(k, (high, in_high), in_low, lanes),
        _ => behind(k, (low, in_low), in_high, lanes),
    };
    convert::widen_signed(k, count, lanes)
}

/// The count of the first half, or 32 plus that of the next half if no bit of the first is set.
fn behind(k: &mut Kernel, (first, in_first): (Ex, Ex), in_next: Ex, lanes: u32) -> Ex {
    let (zero, word) = (all(k, 0, lanes), all(k, 32, lanes));
    let is_empty = k.binary(B::Equal, first, zero);
    let more = k.binary(B::Add, in_next, word);
    k.select(is_empty, more, in_first)
}

fn all(k: &mut Kernel, value: i32, lanes: u32) -> Ex {
    let value = k.i32(value);
    k.splat(value, lanes)
}
