//! Floats of registers as f64, which holds every one exactly, and back.

use super::HostType;

impl HostType {
    /// The float that the bits are; of an integer type, as of [`HostType::F32`].
    pub fn float_of(self, bits: u64) -> f64 {
        match self {
            HostType::F64 => f64::from_bits(bits),
            HostType::F16 => half_to_f64(bits as u16),
            HostType::Bf16 => f64::from(f32::from_bits((bits as u32) << 16)),
            HostType::F32 | HostType::Int(_) => f64::from(f32::from_bits(bits as u32)),
        }
    }

    /// The bits of the float that is nearest, ties to even; of an integer type, as of [`HostType::F32`].
    pub fn bits_of(self, value: f64) -> u64 {
        match self {
            HostType::F64 => value.to_bits(),
            HostType::F16 => u64::from(half_from_f64(value)),
            HostType::Bf16 => u64::from(brain_from_f64(value)),
            HostType::F32 | HostType::Int(_) => u64::from((value as f32).to_bits()),
        }
    }
}

fn half_to_f64(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-24),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits & 0x8000 == 0 { magnitude } else { -magnitude }
}

fn half_from_f64(value: f64) -> u16 {
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let magnitude = value.abs();
    if magnitude.is_nan() {
        return sign | 0x7e00;
    }
    // Half way between the largest number and the next power of two.
    if magnitude >= 65_520.0 {
        return sign | 0x7c00;
    }
    // The exponent of the last digit: of denormals always the same.
    let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(-14);
    let digits = (magnitude * 2f64.powi(10 - exponent)).round_ties_even() as u32;
    // A carry out of the fraction goes into the exponent.
    let bits = if digits >= 1024 { (((exponent + 14) as u32) << 10) + digits } else { digits };
    sign | bits as u16
}

/// Rounds f64 to bf16 once: through an f32 that keeps the sticky bit.
fn brain_from_f64(value: f64) -> u16 {
    let mut single = value as f32;
    if single.is_nan() {
        return 0x7fc0 | ((single.to_bits() >> 16) as u16 & 0x8000);
    }
    let mut bits = single.to_bits();
    if single.is_finite() && f64::from(single) != value {
        // To odd: the last bit says that something was cut off.
        if f64::from(single).abs() > value.abs() {
            bits -= 1;
        }
        bits |= 1;
        single = f32::from_bits(bits);
    }
    let bits = single.to_bits();
    let round = 0x7fff + (bits >> 16 & 1);
    (bits.wrapping_add(round) >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_read_back_and_round_to_nearest_even() {
        for bits in 0..=u16::MAX {
            let value = half_to_f64(bits);
            if !value.is_nan() {
                assert_eq!(half_from_f64(value), bits, "{value}");
            }
        }
        // Half way between two numbers, and a little more.
        assert_eq!(half_from_f64(1.0 + 2f64.powi(-11)), 0x3c00);
        assert_eq!(half_from_f64(1.0 + 2f64.powi(-11) + 2f64.powi(-40)), 0x3c01);
        assert_eq!(half_from_f64(65_519.9), 0x7bff);
        assert_eq!(half_from_f64(2f64.powi(-25)), 0);
        assert_eq!(half_from_f64(2f64.powi(-25) * 1.0001), 1);
        assert_eq!(half_from_f64(2f64.powi(-14) * (1.0 - 2f64.powi(-12))), 0x0400);
    }

    #[test]
    fn brain_floats_round_once() {
        for bits in 0..=u16::MAX {
            let value = HostType::Bf16.float_of(bits.into());
            if !value.is_nan() {
                assert_eq!(brain_from_f64(value), bits, "{value}");
            }
        }
        let half_way = 1.0 + 2f64.powi(-8);
        assert_eq!(brain_from_f64(half_way), 0x3f80);
        assert_eq!(brain_from_f64(half_way + 2f64.powi(-40)), 0x3f81);
        assert_eq!(brain_from_f64(half_way - 2f64.powi(-40)), 0x3f80);
        assert_eq!(brain_from_f64(-(half_way + 2f64.powi(-40))), 0xbf81);
    }
}
