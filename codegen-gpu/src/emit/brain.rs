//! bf16: an f32 in registers whose low half is zero, the upper half of one in memory. Every op rounds its result.

use super::module::{Ex, Kernel};
use monopour_ir::Type;
use naga::{BinaryOperator as B, ScalarKind};

/// Whether a type, or its element type, is `bf16`: the one float type of 16 bits beside f16.
pub(super) fn is(ty: Type) -> bool {
    let element = ty.element();
    element.float_width() == Some(16) && element != Type::f16(ty.context())
}

/// Rounds an f32 to bf16, to nearest even; a NaN stays one.
pub(super) fn round(k: &mut Kernel, x: Ex, lanes: u32) -> Ex {
    let bits = k.bitcast(x, ScalarKind::Uint);
    let last = shifted_right(k, bits, lanes);
    let one = all(k, 1, lanes);
    let last = k.binary(B::And, last, one);
    // Half of the last place, one less where the last place is even.
    let half = all(k, 0x7fff, lanes);
    let up = k.binary(B::Add, half, last);
    let moved = k.binary(B::Add, bits, up);
    let quiet = all(k, 0x0040_0000, lanes);
    let nan = k.binary(B::InclusiveOr, bits, quiet);
    let (sign, infinity) = (all(k, 0x7fff_ffff, lanes), all(k, 0x7f80_0000, lanes));
    let magnitude = k.binary(B::And, bits, sign);
    let is_nan = k.binary(B::Greater, magnitude, infinity);
    let chosen = k.select(is_nan, nan, moved);
    let mask = all(k, 0xffff_0000, lanes);
    let kept = k.binary(B::And, chosen, mask);
    k.bitcast(kept, ScalarKind::Float)
}

/// The value whose bits are the low half of a word.
pub(super) fn from_word(k: &mut Kernel, word: Ex, lanes: u32) -> Ex {
    let shift = all(k, 16, lanes);
    let bits = k.binary(B::ShiftLeft, word, shift);
    k.bitcast(bits, ScalarKind::Float)
}

/// The bits of a value as the low half of a word.
pub(super) fn to_word(k: &mut Kernel, x: Ex, lanes: u32) -> Ex {
    let bits = k.bitcast(x, ScalarKind::Uint);
    shifted_right(k, bits, lanes)
}

fn shifted_right(k: &mut Kernel, bits: Ex, lanes: u32) -> Ex {
    let shift = all(k, 16, lanes);
    k.binary(B::ShiftRight, bits, shift)
}

fn all(k: &mut Kernel, value: u32, lanes: u32) -> Ex {
    let value = k.u32(value);
    k.splat(value, lanes)
}
