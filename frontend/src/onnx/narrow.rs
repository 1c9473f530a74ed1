//! Elements of less than 16 bits: floats by the bits of their format, integers of 2 and 4 bits one to a byte.
//!
//! ```text
//! in the graph     i8, an element per byte: a float's bits, an integer extended by its sign
//! at the boundary  bytes; of less than 8 bits several elements to a byte, from the low bits on, in one dimension
//! ```
//!
//! Source: the tables of ONNX's Cast; OCP 8-bit floating point and microscaling formats.

use super::DataType;

/// How a number becomes a narrow float.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Narrowing {
    /// Numbers out of range become the largest one, else infinity or NaN.
    pub saturate: bool,
    /// Rounding to an E8M0 float.
    pub round: Round,
}

/// Rounding to a power of two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Round {
    /// Away from zero.
    Up,
    /// Towards zero.
    Down,
    /// To the nearest one.
    Nearest,
}

impl Default for Narrowing {
    fn default() -> Self {
        Self { saturate: true, round: Round::Up }
    }
}

/// A format of sign, exponent and mantissa.
#[derive(Clone, Copy)]
pub(super) struct Format {
    /// Bits of the mantissa.
    pub mantissa: i64,
    /// The exponent's value of 1.
    pub bias: i64,
    /// Bits of the largest finite number.
    pub largest: i64,
    /// Bits of infinity.
    pub infinity: Option<i64>,
    /// Bits of NaN.
    pub nan: i64,
    /// The bit of the sign.
    pub sign: i64,
    /// Whether zero has a sign; else the sign's bit alone is NaN.
    pub signed_zero: bool,
}

impl Format {
    /// The format of a narrow float; `None` for E8M0, which has no mantissa, and other types.
    pub fn of(dtype: DataType) -> Option<Self> {
        let base =
            Self { mantissa: 3, bias: 7, largest: 0x7e, infinity: None, nan: 0x7f, sign: 0x80, signed_zero: true };
        Some(match dtype {
            DataType::F8E4M3FN => base,
            DataType::F8E4M3FNUZ => Self { bias: 8, largest: 0x7f, nan: 0x80, signed_zero: false, ..base },
            DataType::F8E5M2 => Self { mantissa: 2, bias: 15, largest: 0x7b, infinity: Some(0x7c), ..base },
            DataType::F8E5M2FNUZ => {
                Self { mantissa: 2, bias: 16, largest: 0x7f, nan: 0x80, signed_zero: false, ..base }
            }
            // NaN becomes zero: the format has none.
            DataType::F4E2M1 => Self { mantissa: 1, bias: 1, largest: 7, nan: 0, sign: 8, ..base },
            _ => return None,
        })
    }

    fn decoded(self, code: u8) -> f64 {
        let code = i64::from(code);
        let size = code & (self.sign - 1);
        let sign = if code & self.sign == 0 { 1.0 } else { -1.0 };
        let (exponent, fraction) = (size >> self.mantissa, (size & ((1 << self.mantissa) - 1)) as f64);
        let scale = 2f64.powi(-(self.mantissa as i32));
        let bias = self.bias as i32;
        match size {
            _ if !self.signed_zero && code == self.nan => f64::NAN,
            _ if Some(size) == self.infinity => sign * f64::INFINITY,
            _ if size > self.largest => f64::NAN,
            _ if exponent == 0 => sign * fraction * scale * 2f64.powi(1 - bias),
            _ => sign * (1.0 + fraction * scale) * 2f64.powi(exponent as i32 - bias),
        }
    }
}

/// The number of a narrow element, held in a byte as in the graph.
pub fn decoded(dtype: DataType, byte: u8) -> Option<f64> {
    Some(match dtype {
        DataType::F8E8M0 if byte == 0xff => f64::NAN,
        DataType::F8E8M0 => 2f64.powi(i32::from(byte) - 127),
        DataType::I2 => f64::from((byte << 6).cast_signed() >> 6),
        DataType::I4 => f64::from((byte << 4).cast_signed() >> 4),
        DataType::U2 | DataType::U4 => f64::from(byte),
        _ => Format::of(dtype)?.decoded(byte),
    })
}

/// The elements of packed bytes, one to a byte.
pub fn unpacked(dtype: DataType, bytes: &[u8], count: usize) -> Vec<u8> {
    let bits = dtype.bits().unwrap_or(8) as usize;
    let each = |at: usize| (bytes[at * bits / 8] >> (at * bits % 8)) & (0xff >> (8 - bits)) as u8;
    (0..count.min(bytes.len() * 8 / bits)).map(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_floats_have_the_numbers_of_their_formats() {
        let number = |dtype, byte| decoded(dtype, byte).unwrap();
        assert_eq!([0x7e, 0x01, 0xb8].map(|b| number(DataType::F8E4M3FN, b)), [448.0, 2f64.powi(-9), -1.0]);
        assert_eq!([0x7f, 0x01, 0x40].map(|b| number(DataType::F8E4M3FNUZ, b)), [240.0, 2f64.powi(-10), 1.0]);
        assert_eq!([0x7b, 0x7c, 0x3c].map(|b| number(DataType::F8E5M2, b)), [57_344.0, f64::INFINITY, 1.0]);
        assert_eq!([0x7f, 0xc0].map(|b| number(DataType::F8E5M2FNUZ, b)), [57_344.0, -1.0]);
        assert_eq!([0, 1, 2, 7, 15].map(|b| number(DataType::F4E2M1, b)), [0.0, 0.5, 1.0, 6.0, -6.0]);
        assert_eq!([0, 127, 254].map(|b| number(DataType::F8E8M0, b)), [2f64.powi(-127), 1.0, 2f64.powi(127)]);
        for (dtype, byte) in [(DataType::F8E4M3FN, 0x7f), (DataType::F8E5M2FNUZ, 0x80), (DataType::F8E8M0, 0xff)] {
            assert!(number(dtype, byte).is_nan());
        }
    }

    #[test]
    fn packed_elements_start_at_the_low_bits() {
        assert_eq!(unpacked(DataType::U4, &[0x21, 0x03], 3), [1, 2, 3]);
        assert_eq!(unpacked(DataType::I2, &[0b11_10_01_00], 4), [0, 1, 2, 3]);
        assert_eq!([7, 8].map(|b| decoded(DataType::I4, b).unwrap()), [7.0, -8.0]);
    }
}
