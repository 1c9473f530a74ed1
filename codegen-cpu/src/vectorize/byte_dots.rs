//! Instructions that add the products of four pairs of bytes to each lane of 32 bits.
//!
//! `vpdpbusd` takes one factor without a sign and one with, `sdot` and `udot` two alike, `usdot` as the first. All are exact modulo
//! 2^32. Where there is no `usdot`, a factor without a sign becomes one with a sign:
//!
//! ```text
//! dot(u, s) = sdot(u - 128, s) - sdot(-128, s)       // the second one is the same for all that s is multiplied with
//! ```

use super::emit::Emit;
use monopour_ir::{Attr, Type, Value, ops};
use monopour_program::CpuTarget;

/// What a target has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ByteDots {
    /// x86's VNNI.
    Vnni,
    /// Arm's FEAT_DotProd.
    DotProd,
    /// Arm's FEAT_I8MM besides.
    I8mm,
}

impl ByteDots {
    pub(super) fn of(cpu: &CpuTarget) -> Option<Self> {
        match () {
            () if cpu.has("i8mm") => Some(Self::I8mm),
            () if cpu.has("dotprod") => Some(Self::DotProd),
            () => cpu.adds_bytes(false).then_some(Self::Vnni),
        }
    }

    /// `sum` plus, in each lane, the sum of four products; `unsigned` are the factors without a sign. `None` where no instruction
    /// has so many lanes, or takes such factors.
    pub(super) fn add<'c>(
        self,
        e: &mut Emit<'c>,
        sum: Value<'c>,
        factors: [Value<'c>; 2],
        unsigned: [bool; 2],
    ) -> Option<Value<'c>> {
        let lanes = sum.ty().as_vector()?.shape[0];
        // Instructions for both take the factor without a sign first.
        let [first, second] = if unsigned[1] { [factors[1], factors[0]] } else { factors };
        let alike = unsigned[0] == unsigned[1];
        let name = match (self, lanes) {
            (Self::Vnni, _) if alike => return None,
            (Self::Vnni, 4) => "llvm.x86.avx512.vpdpbusd.128",
            (Self::Vnni, 8) => "llvm.x86.avx512.vpdpbusd.256",
            (Self::Vnni, 16) => "llvm.x86.avx512.vpdpbusd.512",
            (Self::DotProd | Self::I8mm, 2 | 4) if alike && unsigned[0] => "llvm.aarch64.neon.udot",
            (Self::DotProd | Self::I8mm, 2 | 4) if alike => SDOT,
            (Self::I8mm, 2 | 4) => "llvm.aarch64.neon.usdot",
            (Self::DotProd, 2 | 4) => return Some(add_less_half(e, sum, [first, second])),
            _ => return None,
        };
        Some(e.intrinsic(name, &[sum, first, second], sum.ty()))
    }
}

const SDOT: &str = "llvm.aarch64.neon.sdot";

/// The products of a factor without a sign and one with, as those of two with.
fn add_less_half<'c>(e: &mut Emit<'c>, sum: Value<'c>, [u, s]: [Value<'c>; 2]) -> Value<'c> {
    let (byte, count) = (Type::integer(e.cx, 8), u.ty().as_vector().map_or(1, |ty| ty.shape[0]));
    let (word, lanes) = (Type::integer(e.cx, 32), sum.ty().as_vector().map_or(1, |ty| ty.shape[0]));
    // As a number without a sign half of the range, as one with less that.
    let half = e.constant(Attr::int(byte, i64::from(i8::MIN)), byte, count);
    let zeros = e.constant(Attr::int(word, 0), word, lanes);
    let less = e.intrinsic(SDOT, &[zeros, half, s], sum.ty());
    let rest = e.op(ops::arith::SUBI, &[sum, less], sum.ty());
    let u = e.op(ops::arith::XORI, &[u, half], u.ty());
    e.intrinsic(SDOT, &[rest, u, s], sum.ty())
}
