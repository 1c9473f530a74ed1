//! The scalar ops of host code: a result for every operand, or none where the run has to end.
//!
//! Integers wrap. Floats of 16 bits are computed in f32, and those of `math` functions in f64, each result rounded to its
//! type; `math` is the same on every machine.

use monopour_program::host::{HostType, ScalarOp};

/// The value of an op; `None` for a division without a result, and a shift by the width or more. The types are those that
/// the op's rule allows.
pub fn compute(op: ScalarOp, types: (HostType, HostType), operands: &[u64]) -> Option<u64> {
    let (ty, to) = types;
    let at = |index: usize| operands.get(index).copied().unwrap_or(0);
    let bits = if ty.is_int() || op == ScalarOp::Select {
        of_ints(op, ty, to, [at(0), at(1), at(2)])?
    } else {
        of_floats(op, ty, to, [at(0), at(1), at(2)])
    };
    Some(bits & to.mask())
}

/// The number that the low bits are, with its sign.
fn signed(bits: u64, ty: HostType) -> i64 {
    let unused = 64 - u32::from(ty.bits());
    ((bits << unused) as i64) >> unused
}

/// Ops whose first operand is an integer; the result may have too many bits.
fn of_ints(op: ScalarOp, ty: HostType, to: HostType, [a, b, c]: [u64; 3]) -> Option<u64> {
    use ScalarOp::*;
    let width = u64::from(ty.bits());
    let (sa, sb) = (signed(a, ty), signed(b, ty));
    let (wide_a, wide_b) = (i128::from(sa), i128::from(sb));
    let smallest = i64::MIN >> (64 - width);
    let divides = b != 0 && !(sa == smallest && sb == -1);
    let truth = |holds: bool| Some(u64::from(holds));
    match op {
        AddI => Some(a.wrapping_add(b)),
        SubI => Some(a.wrapping_sub(b)),
        MulI => Some(a.wrapping_mul(b)),
        MulHighS => Some(((wide_a * wide_b) >> width) as u64),
        MulHighU => Some(((u128::from(a) * u128::from(b)) >> width) as u64),
        DivS => divides.then(|| sa.wrapping_div(sb) as u64),
        RemS => divides.then(|| sa.wrapping_rem(sb) as u64),
        FloorDivS => divides.then(|| (sa.wrapping_div(sb) - i64::from(sa % sb != 0 && (sa < 0) != (sb < 0))) as u64),
        CeilDivS => divides.then(|| (sa.wrapping_div(sb) + i64::from(sa % sb != 0 && (sa < 0) == (sb < 0))) as u64),
        DivU => a.checked_div(b),
        RemU => a.checked_rem(b),
        CeilDivU => (b != 0).then(|| a.div_ceil(b)),
        And => Some(a & b),
        Or => Some(a | b),
        Xor => Some(a ^ b),
        Shl => (b < width).then(|| a << b),
        ShrU => (b < width).then(|| a >> b),
        ShrS => (b < width).then(|| (sa >> b) as u64),
        MaxS => Some(if sa > sb { a } else { b }),
        MinS => Some(if sa < sb { a } else { b }),
        MaxU => Some(a.max(b)),
        MinU => Some(a.min(b)),
        AbsI => Some(sa.unsigned_abs()),
        Ctlz => Some(u64::from(a.leading_zeros()) - (64 - width)),
        Cttz => Some(u64::from(a.trailing_zeros()).min(width)),
        Ctpop => Some(u64::from(a.count_ones())),
        CmpEq => truth(a == b),
        CmpNe => truth(a != b),
        CmpSlt => truth(sa < sb),
        CmpSle => truth(sa <= sb),
        CmpSgt => truth(sa > sb),
        CmpSge => truth(sa >= sb),
        CmpUlt => truth(a < b),
        CmpUle => truth(a <= b),
        CmpUgt => truth(a > b),
        CmpUge => truth(a >= b),
        Select => Some(if a != 0 { b } else { c }),
        ExtS => Some(sa as u64),
        SToF => Some(from_int(to, wide_a)),
        UToF => Some(from_int(to, i128::from(a))),
        // Wider, narrower, or the same bits.
        _ => Some(a),
    }
}

/// The float of type `to` that is nearest to an integer of at most 64 bits.
fn from_int(to: HostType, value: i128) -> u64 {
    match to {
        HostType::F64 => (value as f64).to_bits(),
        // What f32 rounds is too large for f16; bf16 is rounded twice, as native code does.
        _ => to.bits_of(f64::from(value as f32)),
    }
}

/// Ops whose first operand is a float.
fn of_floats(op: ScalarOp, ty: HostType, to: HostType, [a, b, c]: [u64; 3]) -> u64 {
    use ScalarOp::*;
    let (x, y, z) = (ty.float_of(a), ty.float_of(b), ty.float_of(c));
    let sign = 1u64 << (ty.bits() - 1);
    match op {
        Bitcast => a,
        NegF => a ^ sign,
        AbsF => a & !sign,
        CopySign => (a & !sign) | (b & sign),
        ExtF | TruncF => to.bits_of(x),
        FToS => match to.bits() {
            64 => (x as i64) as u64,
            bits => (x as i64).clamp(-(1 << (bits - 1)), (1 << (bits - 1)) - 1) as u64,
        },
        FToU => (x as u64).min(to.mask()),
        FPowI => ty.bits_of(power(x, signed(b, HostType::WORD))),
        Fma => match ty {
            HostType::F64 => x.mul_add(y, z).to_bits(),
            _ => ty.bits_of(f64::from((x as f32).mul_add(y as f32, z as f32))),
        },
        Clamp => ty.bits_of(if x < y {
            y
        } else if x > z {
            z
        } else {
            x
        }),
        IsNan => u64::from(x.is_nan()),
        IsInf => u64::from(x.is_infinite()),
        IsFinite => u64::from(x.is_finite()),
        IsNormal => u64::from(is_normal(ty, a)),
        _ => match (compare(op, x, y), exact(op, x, y)) {
            (Some(holds), _) => u64::from(holds),
            // Of f32 and narrower, f64 holds enough bits that rounding its result once more changes nothing.
            (None, Some(value)) => ty.bits_of(value),
            (None, None) => ty.bits_of(function(op, x, y)),
        },
    }
}

/// Comparisons.
fn compare(op: ScalarOp, x: f64, y: f64) -> Option<bool> {
    use ScalarOp::*;
    let unordered = x.is_nan() || y.is_nan();
    Some(match op {
        CmpOeq => x == y,
        CmpOgt => x > y,
        CmpOge => x >= y,
        CmpOlt => x < y,
        CmpOle => x <= y,
        CmpOne => !unordered && x != y,
        CmpOrd => !unordered,
        CmpUeq => unordered || x == y,
        CmpFUgt => unordered || x > y,
        CmpFUge => unordered || x >= y,
        CmpFUlt => unordered || x < y,
        CmpFUle => unordered || x <= y,
        CmpUne => x != y,
        CmpUno => unordered,
        _ => return None,
    })
}

/// Ops whose result IEEE 754 defines.
fn exact(op: ScalarOp, x: f64, y: f64) -> Option<f64> {
    use ScalarOp::*;
    Some(match op {
        AddF => x + y,
        SubF => x - y,
        MulF => x * y,
        DivF => x / y,
        RemF => x % y,
        MaximumF => greater(x, y),
        MinimumF => -greater(-x, -y),
        MaxNumF | MinNumF if x.is_nan() => y,
        MaxNumF | MinNumF if y.is_nan() => x,
        MaxNumF => greater(x, y),
        MinNumF => -greater(-x, -y),
        Ceil => x.ceil(),
        Floor => x.floor(),
        Trunc => x.trunc(),
        Round => x.round(),
        RoundEven => x.round_ties_even(),
        Sqrt => x.sqrt(),
        _ => return None,
    })
}

/// The greater one; NaN if one is, and +0 of zeros of both signs.
fn greater(x: f64, y: f64) -> f64 {
    match x.partial_cmp(&y) {
        None => x + y,
        Some(std::cmp::Ordering::Greater) => x,
        Some(std::cmp::Ordering::Less) => y,
        Some(std::cmp::Ordering::Equal) if x.is_sign_negative() => y,
        Some(std::cmp::Ordering::Equal) => x,
    }
}

/// Functions, the same on every machine.
fn function(op: ScalarOp, x: f64, y: f64) -> f64 {
    use ScalarOp::*;
    match op {
        Rsqrt => 1.0 / x.sqrt(),
        Cbrt => libm::cbrt(x),
        Exp => libm::exp(x),
        Exp2 => libm::exp2(x),
        ExpM1 => libm::expm1(x),
        Log => libm::log(x),
        Log2 => libm::log2(x),
        Log10 => libm::log10(x),
        Log1p => libm::log1p(x),
        Sin => libm::sin(x),
        Cos => libm::cos(x),
        Tan => libm::tan(x),
        Asin => libm::asin(x),
        Acos => libm::acos(x),
        Atan => libm::atan(x),
        Sinh => libm::sinh(x),
        Cosh => libm::cosh(x),
        Tanh => libm::tanh(x),
        Asinh => libm::asinh(x),
        Acosh => libm::acosh(x),
        Atanh => libm::atanh(x),
        Erf => libm::erf(x),
        Erfc => libm::erfc(x),
        Atan2 => libm::atan2(x, y),
        Pow => libm::pow(x, y),
        // Every other op of floats is in one of the matches above.
        _ => f64::NAN,
    }
}

/// A power with an integer exponent, by squaring.
fn power(base: f64, exponent: i64) -> f64 {
    let (mut result, mut square, mut left) = (1.0, base, exponent.unsigned_abs());
    while left > 0 {
        if left & 1 == 1 {
            result *= square;
        }
        square *= square;
        left >>= 1;
    }
    if exponent < 0 { 1.0 / result } else { result }
}

fn is_normal(ty: HostType, bits: u64) -> bool {
    match ty {
        HostType::F64 => f64::from_bits(bits).is_normal(),
        HostType::F16 => !matches!(bits >> 10 & 0x1f, 0 | 0x1f),
        HostType::Bf16 => f32::from_bits((bits as u32) << 16).is_normal(),
        _ => f32::from_bits(bits as u32).is_normal(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use HostType::{Bf16, F16, F32, F64, Int};

    fn int(op: ScalarOp, bits: u8, a: i64, b: i64) -> Option<u64> {
        let ty = Int(bits);
        compute(op, (ty, ty), &[a as u64 & ty.mask(), b as u64 & ty.mask()])
    }

    #[test]
    fn divisions_without_a_result_have_none() {
        use ScalarOp::*;
        for op in [DivS, RemS, FloorDivS, CeilDivS, DivU, RemU, CeilDivU] {
            for bits in [1, 8, 31, 32, 64] {
                assert_eq!(int(op, bits, 1, 0), None, "{op:?} of {bits} bits");
            }
        }
        for op in [DivS, RemS, FloorDivS, CeilDivS] {
            assert_eq!(int(op, 8, -128, -1), None, "{op:?}");
            assert_eq!(int(op, 64, i64::MIN, -1), None, "{op:?}");
            assert!(int(op, 8, -127, -1).is_some(), "{op:?}");
        }
        for op in [Shl, ShrS, ShrU] {
            assert_eq!(int(op, 8, 1, 8), None, "{op:?}");
            assert_eq!(int(op, 64, 1, 64), None, "{op:?}");
            assert!(int(op, 64, 1, 63).is_some(), "{op:?}");
        }
    }

    /// Every pair of 8-bit numbers against Rust's arithmetic of them.
    #[test]
    fn small_integers_compute_as_rust_does() {
        use ScalarOp::*;
        for (a, b) in (0..=255u8).flat_map(|a| (0..=255u8).map(move |b| (a, b))) {
            let (sa, sb) = (a as i8, b as i8);
            let check = |op: ScalarOp, expected: Option<u8>| {
                let found = compute(op, (Int(8), Int(8)), &[a.into(), b.into()]);
                assert_eq!(found, expected.map(u64::from), "{op:?} of {a} and {b}");
            };
            check(AddI, Some(a.wrapping_add(b)));
            check(SubI, Some(a.wrapping_sub(b)));
            check(MulI, Some(a.wrapping_mul(b)));
            check(MulHighS, Some(((i16::from(sa) * i16::from(sb)) >> 8) as u8));
            check(MulHighU, Some(((u16::from(a) * u16::from(b)) >> 8) as u8));
            check(DivS, sa.checked_div(sb).map(|q| q as u8));
            check(RemS, sa.checked_rem(sb).map(|q| q as u8));
            let exact = sa.checked_div(sb).map(|_| f64::from(sa) / f64::from(sb));
            check(FloorDivS, exact.map(|q| q.floor() as i8 as u8));
            check(CeilDivS, exact.map(|q| q.ceil() as i8 as u8));
            check(CeilDivU, (b != 0).then(|| a.div_ceil(b.max(1))));
            check(ShrS, (b < 8).then(|| (sa >> (b & 7)) as u8));
            check(Shl, (b < 8).then(|| a << (b & 7)));
            check(MaxS, Some(sa.max(sb) as u8));
            check(MinU, Some(a.min(b)));
            check(AbsI, Some(sa.wrapping_abs() as u8));
            check(Ctlz, Some(a.leading_zeros() as u8));
            check(Cttz, Some(a.trailing_zeros() as u8));
        }
    }

    #[test]
    fn floats_follow_their_definitions() {
        use ScalarOp::*;
        let f32_of = |op, x: f32, y: f32| {
            let bits = compute(op, (F32, F32), &[x.to_bits().into(), y.to_bits().into()]).expect("floats have results");
            f32::from_bits(bits as u32)
        };
        assert_eq!(f32_of(AddF, 0.1, 0.2), 0.1 + 0.2);
        assert_eq!(f32_of(MaximumF, -0.0, 0.0).to_bits(), 0);
        assert_eq!(f32_of(MinimumF, -0.0, 0.0).to_bits(), 1 << 31);
        assert!(f32_of(MaximumF, f32::NAN, 1.0).is_nan() && f32_of(MinimumF, 1.0, f32::NAN).is_nan());
        assert_eq!((f32_of(MaxNumF, f32::NAN, 1.0), f32_of(MinNumF, 1.0, f32::NAN)), (1.0, 1.0));
        assert_eq!((f32_of(RoundEven, 2.5, 0.0), f32_of(Round, 2.5, 0.0)), (2.0, 3.0));
        assert_eq!(compute(FToS, (F64, Int(8)), &[1e9f64.to_bits()]), Some(127));
        assert_eq!(compute(FToS, (F64, Int(8)), &[f64::NAN.to_bits()]), Some(0));
        assert_eq!(compute(FToU, (F64, Int(8)), &[(-1f64).to_bits()]), Some(0));
        assert_eq!(compute(SToF, (Int(8), F16), &[0xff]), Some(0xbc00));
        assert_eq!(compute(CmpOlt, (F64, HostType::BOOL), &[f64::NAN.to_bits(), 0]), Some(0));
        assert_eq!(compute(CmpFUlt, (F64, HostType::BOOL), &[f64::NAN.to_bits(), 0]), Some(1));
        assert_eq!(compute(FPowI, (F64, F64), &[2f64.to_bits(), (-2i64) as u64]), Some(0.25f64.to_bits()));
    }

    /// Any bits as operands of any op with any types: no panic, and no bit outside of the result's type.
    #[test]
    fn every_op_is_total() {
        let types = [Int(1), Int(7), Int(32), Int(64), F16, Bf16, F32, F64];
        let mut values = vec![0, 1, 2, 63, 64, u64::MAX, 1 << 63, 0x7ff0 << 48, 0x7ff8 << 48, 0x7f80_0000, 0x7c00];
        let mut next = 0x9e37_79b9_7f4a_7c15u64;
        values.extend((0..40).map(|_| {
            next = next.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
            next
        }));
        let pairs = || types.into_iter().flat_map(move |from| types.into_iter().map(move |to| (from, to)));
        for (op, (from, to)) in ScalarOp::ALL.iter().flat_map(|op| pairs().map(move |pair| (*op, pair))) {
            for (a, b) in values.iter().flat_map(|a| values.iter().map(move |b| (*a, *b))) {
                let operands = [a & from.mask(), b & from.mask(), (a ^ b) & from.mask()];
                let result = compute(op, (from, to), &operands);
                assert!(result.is_none_or(|bits| bits & !to.mask() == 0), "{op:?} {from:?} {to:?} {operands:x?}");
                assert!(result.is_some() || op.may_trap(), "{op:?} {from:?} {operands:x?}");
            }
        }
    }
}
