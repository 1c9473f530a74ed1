//! Floats of 16 bits that are f32 in registers and halves of words in memory: bf16, and f16 where a kernel asks for it
//! ([`attributes::WIDE_HALVES`](monopour_contract::attributes::WIDE_HALVES)). Every op rounds its result.

use super::module::{Ex, Kernel, Shape};
use monopour_ir::Type;
use naga::{BinaryOperator as B, Expression, MathFunction as M, Scalar, ScalarKind};

/// A format that is f32 in registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ShortFloat {
    /// bf16: an f32 whose low half is zero, the upper half of one in memory.
    Brain,
    /// f16.
    Half,
}

impl ShortFloat {
    /// The format of a type, or of its elements.
    pub(super) fn of(kernel: &Kernel, ty: Type) -> Option<Self> {
        let element = ty.element();
        let short = element.float_width() == Some(16);
        match (short, element == Type::f16(ty.context())) {
            (false, _) => None,
            (true, false) => Some(Self::Brain),
            (true, true) => kernel.wide_halves.then_some(Self::Half),
        }
    }

    /// Rounds an f32 to the format, to nearest even; a NaN stays one.
    pub(super) fn round(self, k: &mut Kernel, x: Ex, lanes: u32) -> Ex {
        match self {
            Self::Brain => round_to_brain(k, x, lanes),
            Self::Half => round_to_half(k, x, lanes),
        }
    }

    /// The value whose bits are the low half of a word.
    pub(super) fn of_word(self, k: &mut Kernel, word: Ex, lanes: u32) -> Ex {
        match self {
            Self::Brain => {
                let shift = all(k, 16, lanes);
                let bits = k.binary(B::ShiftLeft, word, shift);
                k.bitcast(bits, ScalarKind::Float)
            }
            _ => each_lane(k, word, lanes, ScalarKind::Float, |k, word| {
                let pair = k.math(M::Unpack2x16float, &[word]);
                k.add(Expression::AccessIndex { base: pair, index: 0 })
            }),
        }
    }

    /// The values of both halves of each word: the low ones, and the high ones.
    pub(super) fn of_words(self, k: &mut Kernel, words: &[Ex]) -> [Vec<Ex>; 2] {
        let pairs = words.iter().map(|word| match self {
            Self::Brain => {
                let (shift, mask) = (k.u32(16), k.u32(0xffff_0000));
                [k.binary(B::ShiftLeft, *word, shift), k.binary(B::And, *word, mask)]
                    .map(|bits| k.bitcast(bits, ScalarKind::Float))
            }
            _ => {
                let pair = k.math(M::Unpack2x16float, &[*word]);
                [0, 1].map(|index| k.add(Expression::AccessIndex { base: pair, index }))
            }
        });
        let (low, high) = pairs.map(|[low, high]| (low, high)).unzip();
        [low, high]
    }

    /// The bits of a value as the low half of a word.
    pub(super) fn to_word(self, k: &mut Kernel, x: Ex, lanes: u32) -> Ex {
        match self {
            Self::Brain => {
                let bits = k.bitcast(x, ScalarKind::Uint);
                shifted_right(k, bits, 16, lanes)
            }
            _ => each_lane(k, x, lanes, ScalarKind::Uint, |k, x| {
                let zero = k.f32(0.0);
                half_word(k, x, zero)
            }),
        }
    }

    /// A word of two values, the first in its low half.
    pub(super) fn pair_to_word(self, k: &mut Kernel, low: Ex, high: Ex) -> Ex {
        match self {
            Self::Brain => {
                let low = self.to_word(k, low, 1);
                let mask = k.u32(0xffff_0000);
                let high = k.bitcast(high, ScalarKind::Uint);
                let high = k.binary(B::And, high, mask);
                k.binary(B::InclusiveOr, low, high)
            }
            _ => half_word(k, low, high),
        }
    }
}

/// Exact: the values are f16 already.
fn half_word(k: &mut Kernel, low: Ex, high: Ex) -> Ex {
    let ty = k.plane_type(Shape { scalar: Scalar::F32, lanes: 2 });
    let pair = k.add(Expression::Compose { ty, components: vec![low, high] });
    k.math(M::Pack2x16float, &[pair])
}

/// Applies a scalar function to each lane of a plane.
fn each_lane(k: &mut Kernel, plane: Ex, lanes: u32, to: ScalarKind, mut f: impl FnMut(&mut Kernel, Ex) -> Ex) -> Ex {
    if lanes == 1 {
        return f(k, plane);
    }
    let components = (0..lanes)
        .map(|index| {
            let lane = k.add(Expression::AccessIndex { base: plane, index });
            f(k, lane)
        })
        .collect();
    let ty = k.plane_type(Shape { scalar: Scalar { kind: to, width: 4 }, lanes });
    k.add(Expression::Compose { ty, components })
}

fn round_to_brain(k: &mut Kernel, x: Ex, lanes: u32) -> Ex {
    let bits = k.bitcast(x, ScalarKind::Uint);
    let chosen = dropped(k, bits, 16, lanes);
    k.bitcast(chosen, ScalarKind::Float)
}

/// The bits of an f32 without the last `count` ones, rounded to nearest even; a NaN stays one.
fn dropped(k: &mut Kernel, bits: Ex, count: u32, lanes: u32) -> Ex {
    let last = shifted_right(k, bits, count, lanes);
    let one = all(k, 1, lanes);
    let last = k.binary(B::And, last, one);
    // Half of the last place, one less where the last place is even.
    let half = all(k, (1 << (count - 1)) - 1, lanes);
    let up = k.binary(B::Add, half, last);
    let moved = k.binary(B::Add, bits, up);
    let quiet = all(k, 0x0040_0000, lanes);
    let nan = k.binary(B::InclusiveOr, bits, quiet);
    let (sign, infinity) = (all(k, 0x7fff_ffff, lanes), all(k, 0x7f80_0000, lanes));
    let magnitude = k.binary(B::And, bits, sign);
    let is_nan = k.binary(B::Greater, magnitude, infinity);
    let chosen = k.select(is_nan, nan, moved);
    let mask = all(k, !((1 << count) - 1), lanes);
    k.binary(B::And, chosen, mask)
}

/// By integers: the conversions of software adapters are calls for each lane. Below 2^-14 the values of f16 are the multiples of 2^-24; from 65,520 on they are infinite.
fn round_to_half(k: &mut Kernel, x: Ex, lanes: u32) -> Ex {
    let bits = k.bitcast(x, ScalarKind::Uint);
    let normal = dropped(k, bits, 13, lanes);
    let mask = all(k, 0x7fff_ffff, lanes);
    let magnitude = k.binary(B::And, bits, mask);
    let mask = all(k, 0x8000_0000, lanes);
    let sign = k.binary(B::And, bits, mask);
    let infinity = all(k, 0x7f80_0000, lanes);
    let infinite = k.binary(B::InclusiveOr, sign, infinity);
    let (first, end) = (all(k, 65_520.0f32.to_bits(), lanes), all(k, 0x7f80_0001, lanes));
    let (over, number) = (k.binary(B::GreaterEqual, magnitude, first), k.binary(B::Less, magnitude, end));
    let over = k.binary(B::And, over, number);
    let normal = k.select(over, infinite, normal);
    let (up, down) = (k.f32(16_777_216.0), k.f32(1.0 / 16_777_216.0));
    let (up, down) = (k.splat(up, lanes), k.splat(down, lanes));
    let steps = k.binary(B::Multiply, x, up);
    let steps = k.math(M::Round, &[steps]);
    let small = k.binary(B::Multiply, steps, down);
    let small = k.bitcast(small, ScalarKind::Uint);
    let small = k.binary(B::InclusiveOr, small, sign);
    let least = all(k, (2.0f32.powi(-14)).to_bits(), lanes);
    let is_small = k.binary(B::Less, magnitude, least);
    let chosen = k.select(is_small, small, normal);
    k.bitcast(chosen, ScalarKind::Float)
}

fn shifted_right(k: &mut Kernel, bits: Ex, by: u32, lanes: u32) -> Ex {
    let shift = all(k, by, lanes);
    k.binary(B::ShiftRight, bits, shift)
}

fn all(k: &mut Kernel, value: u32, lanes: u32) -> Ex {
    let value = k.u32(value);
    k.splat(value, lanes)
}
