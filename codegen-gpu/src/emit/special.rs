//! Functions of f32 at arguments where drivers, or expansions by logarithm, give another value than C does: infinities, NaN,
//! signed zeros, and what is outside of the domain.
//!
//! Tests are on the bits: drivers may assume that no NaN occurs.

use super::arith::is_nan;
use super::math::{copysign, is_infinite, magnitude_bits, number};
use super::module::{Ex, Kernel, Shape};
use monopour_ir::ops;
use naga::BinaryOperator as B;
use std::f32::consts::PI;

/// Whether [`corrected`] changes the values of a function.
pub(super) fn is_corrected(name: &str) -> bool {
    [
        ops::math::ACOS,
        ops::math::ACOSH,
        ops::math::ASIN,
        ops::math::ATAN,
        ops::math::ATAN2,
        ops::math::CBRT,
        ops::math::POWF,
    ]
    .contains(&name)
}

/// The value of a function of `x`, and `y` if it has two arguments, where `value` is right but for such arguments.
pub(super) fn corrected(k: &mut Kernel, name: &str, (x, y): (Ex, Ex), value: Ex, shape: Shape) -> Ex {
    match name {
        ops::math::ASIN | ops::math::ACOS => {
            let outside = compare_bits(k, x, (B::Greater, 1.0), shape);
            undefined_where(k, outside, value, shape)
        }
        ops::math::ATAN => {
            let nan = is_nan(k, x, shape);
            undefined_where(k, nan, value, shape)
        }
        ops::math::ACOSH => {
            let (one, nan) = (number(k, 1.0, shape), is_nan(k, x, shape));
            let below = k.binary(B::Less, x, one);
            let outside = k.binary(B::InclusiveOr, below, nan);
            undefined_where(k, outside, value, shape)
        }
        ops::math::ATAN2 => of_zeros_and_nan(k, (x, y), value, shape),
        // Newton's step divides infinities.
        ops::math::CBRT => {
            let infinite = is_infinite(k, x, shape);
            k.select(infinite, x, value)
        }
        ops::math::POWF => {
            let (one, zero) = (number(k, 1.0, shape), number(k, 0.0, shape));
            let nan = any_nan(k, x, y, shape);
            let undefined = undefined_where(k, nan, value, shape);
            // 1 to any power, any number to the power of 0, and -1 to an infinite one.
            let (unit, endless) = (compare_bits(k, x, (B::Equal, 1.0), shape), is_infinite(k, y, shape));
            let turned = k.binary(B::And, unit, endless);
            let (of_one, to_zero) = (k.binary(B::Equal, x, one), k.binary(B::Equal, y, zero));
            let is_one = k.binary(B::InclusiveOr, of_one, to_zero);
            let is_one = k.binary(B::InclusiveOr, is_one, turned);
            k.select(is_one, one, undefined)
        }
        _ => value,
    }
}

/// The angle of two zeros is that of their signs.
fn of_zeros_and_nan(k: &mut Kernel, (x, y): (Ex, Ex), value: Ex, shape: Shape) -> Ex {
    let (zero, half_turn) = (number(k, 0.0, shape), number(k, PI, shape));
    let [no_x, no_y] = [x, y].map(|of| compare_bits(k, of, (B::Equal, 0.0), shape));
    let both = k.binary(B::And, no_x, no_y);
    let bits = k.bitcast(y, naga::ScalarKind::Uint);
    let positive = k.u32(0);
    let positive = k.splat(positive, shape.lanes);
    let is_positive = k.binary(B::Equal, bits, positive);
    let angle = k.select(is_positive, zero, half_turn);
    let angle = copysign(k, angle, x, shape);
    let value = k.select(both, angle, value);
    let nan = any_nan(k, x, y, shape);
    undefined_where(k, nan, value, shape)
}

fn any_nan(k: &mut Kernel, x: Ex, y: Ex, shape: Shape) -> Ex {
    let (x, y) = (is_nan(k, x, shape), is_nan(k, y, shape));
    k.binary(B::InclusiveOr, x, y)
}

fn undefined_where(k: &mut Kernel, condition: Ex, value: Ex, shape: Shape) -> Ex {
    let nan = number(k, f32::NAN, shape);
    k.select(condition, nan, value)
}

/// The magnitude compared with a number that is not negative, as unsigned bits: NaN is the largest.
fn compare_bits(k: &mut Kernel, x: Ex, (operator, with): (B, f32), shape: Shape) -> Ex {
    let (magnitude, with) = (magnitude_bits(k, x, shape), k.u32(with.to_bits()));
    let with = k.splat(with, shape.lanes);
    k.binary(operator, magnitude, with)
}
