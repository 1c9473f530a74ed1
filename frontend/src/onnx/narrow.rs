//! Elements of less than 16 bits: floats by the bits of their format, integers of 2 and 4 bits one to a byte.
//!
//! ```text
//! in the graph     i8, an element per byte: a float's bits, an integer extended by its sign
//! at the boundary  bytes; of less than 8 bits several elements to a byte, from the low bits on, in one dimension
//! ```
//!
//! Source: the tables of ONNX's Cast; OCP 8-bit floating point and microscaling formats.

use super::DataType;
use super::builder::{Builder, Failure};
use super::operand::Operand;
use super::structured::{Iterator as LoopKind, Structured, identity};
use super::symbolic::Dim;
use monopour_ir::{Type, Value, ops};

/// Predicates of integers.
const EQUAL: i64 = 0;
const LESS: i64 = 2;
const GREATER: i64 = 4;
const GREATER_OR_EQUAL: i64 = 5;

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
struct Format {
    /// Bits of the mantissa.
    mantissa: i64,
    bias: i64,
    /// Bits of the largest finite number.
    largest: i64,
    infinity: Option<i64>,
    nan: i64,
    /// The bit of the sign.
    sign: i64,
    /// Whether zero has a sign; else the sign's bit alone is NaN.
    signed_zero: bool,
}

impl Format {
    fn of(dtype: DataType) -> Option<Self> {
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

impl<'c> Builder<'c> {
    /// The number of a narrow float's bits, as f32.
    ///
    /// # Errors
    /// MLIR's diagnostics.
    pub fn decode(&mut self, dtype: DataType, x: Value<'c>) -> Result<Value<'c>, Failure> {
        let (int, float) = (Type::integer(self.context(), 32), Type::f32(self.context()));
        let code = self.op(ops::arith::EXTUI, &[x], int)?;
        let nan = self.number(float, f64::NAN);
        let Some(format) = Format::of(dtype) else {
            // E8M0: the exponent's bits of an f32, of which 0 is half the smallest normal number.
            let exponent = self.shifted(ops::arith::SHLI, code, 23)?;
            let (zero, least, ones) = (self.int(int, 0), self.int(int, 1 << 22), self.int(int, 0xff));
            let is_least = self.compare(EQUAL, code, zero)?;
            let bits = self.select(is_least, least, exponent)?;
            let number = self.op(ops::arith::BITCAST, &[bits], float)?;
            let is_nan = self.compare(EQUAL, code, ones)?;
            return self.select(is_nan, nan, number);
        };
        let sizes = self.int(int, format.sign - 1);
        let size = self.binary(ops::arith::ANDI, code, sizes)?;
        // Numbers without a leading one: a multiple of the smallest number.
        let whole = self.op(ops::arith::UITOFP, &[size], float)?;
        let unit = self.number(float, 2f64.powi((1 - format.bias - format.mantissa) as i32));
        let small = self.binary(ops::arith::MULF, whole, unit)?;
        let bits = self.shifted(ops::arith::SHLI, size, 23 - format.mantissa)?;
        let rebias = self.int(int, (127 - format.bias) << 23);
        let bits = self.binary(ops::arith::ADDI, bits, rebias)?;
        let normal = self.op(ops::arith::BITCAST, &[bits], float)?;
        let first = self.int(int, 1 << format.mantissa);
        let is_small = self.compare(LESS, size, first)?;
        let mut number = self.select(is_small, small, normal)?;
        let mut last = format.largest;
        if let Some(infinity) = format.infinity {
            last = infinity;
            let (code, value) = (self.int(int, infinity), self.number(float, f64::INFINITY));
            let is_infinite = self.compare(EQUAL, size, code)?;
            number = self.select(is_infinite, value, number)?;
        }
        if format.signed_zero && last < format.sign - 1 {
            let last = self.int(int, last);
            let is_nan = self.compare(GREATER, size, last)?;
            number = self.select(is_nan, nan, number)?;
        }
        let sign = self.int(int, format.sign);
        let (is_negative, negated) =
            (self.compare(GREATER_OR_EQUAL, code, sign)?, self.unary(ops::arith::NEGF, number)?);
        number = self.select(is_negative, negated, number)?;
        if !format.signed_zero {
            let is_nan = self.compare(EQUAL, code, sign)?;
            number = self.select(is_nan, nan, number)?;
        }
        Ok(number)
    }

    fn shifted(&mut self, name: &str, x: Value<'c>, by: i64) -> Result<Value<'c>, Failure> {
        let by = self.int(x.ty(), by);
        self.binary(name, x, by)
    }

    /// The bits of the narrow float nearest to an f32 or f64, ties to even.
    ///
    /// # Errors
    /// MLIR's diagnostics.
    pub fn encode(&mut self, dtype: DataType, x: Value<'c>, by: Narrowing) -> Result<Value<'c>, Failure> {
        let (width, bits, bias) = if x.ty().float_width() == Some(64) { (64, 52, 1023) } else { (32, 23, 127) };
        let (int, float, byte) = (Type::integer(self.context(), width), x.ty(), Type::integer(self.context(), 8));
        let Some(format) = Format::of(dtype) else { return self.encode_exponent(x, by) };
        let raw = self.op(ops::arith::BITCAST, &[x], int)?;
        let zero = self.int(int, 0);
        let is_negative = self.compare(LESS, raw, zero)?;
        let positive = self.unary(ops::math::ABSF, x)?;
        let size = self.op(ops::arith::BITCAST, &[positive], int)?;
        // A number with a leading one, rounded on its bits.
        let shift = bits - format.mantissa;
        let (half, one) = (self.int(int, (1 << (shift - 1)) - 1), self.int(int, 1));
        let last = self.shifted(ops::arith::SHRUI, size, shift)?;
        let odd = self.binary(ops::arith::ANDI, last, one)?;
        let rounded = self.binary(ops::arith::ADDI, size, half)?;
        let rounded = self.binary(ops::arith::ADDI, rounded, odd)?;
        let rounded = self.shifted(ops::arith::SHRUI, rounded, shift)?;
        let normal = self.shifted(ops::arith::SUBI, rounded, (bias - format.bias) << format.mantissa)?;
        // One without: a multiple of the smallest number.
        let least = self.int(int, (bias - format.bias + 1) << bits);
        let is_small = self.compare(LESS, size, least)?;
        let nothing = self.number(float, 0.0);
        let small = self.select(is_small, positive, nothing)?;
        let unit = self.number(float, 2f64.powi((format.bias + format.mantissa - 1) as i32));
        let small = self.binary(ops::arith::MULF, small, unit)?;
        let small = self.unary(ops::math::ROUNDEVEN, small)?;
        let small = self.op(ops::arith::FPTOSI, &[small], int)?;
        let code = self.select(is_small, small, normal)?;
        let largest = self.int(int, format.largest);
        let beyond = self.compare(GREATER, code, largest)?;
        let limit = if by.saturate { format.largest } else { format.infinity.unwrap_or(format.nan) };
        let limit = self.int(int, limit);
        let code = self.select(beyond, limit, code)?;
        let sign = self.int(int, format.sign);
        let negated = self.binary(ops::arith::ORI, code, sign)?;
        let mut signed = self.select(is_negative, negated, code)?;
        if !format.signed_zero {
            let is_zero = self.compare(EQUAL, code, zero)?;
            signed = self.select(is_zero, zero, signed)?;
        }
        // Unordered with itself.
        let (is_nan, nan) = (self.compare(14, x, x)?, self.int(int, format.nan));
        let signed = self.select(is_nan, nan, signed)?;
        self.op(ops::arith::TRUNCI, &[signed], byte)
    }

    /// The exponent of an f32 or f64 as E8M0.
    fn encode_exponent(&mut self, x: Value<'c>, by: Narrowing) -> Result<Value<'c>, Failure> {
        let (int, float, byte) =
            (Type::integer(self.context(), 32), Type::f32(self.context()), Type::integer(self.context(), 8));
        let x = if x.ty() == float { x } else { self.op(ops::arith::TRUNCF, &[x], float)? };
        let bits = self.op(ops::arith::BITCAST, &[x], int)?;
        let (ones, fractions) = (self.int(int, 0xff), self.int(int, (1 << 23) - 1));
        let exponent = self.shifted(ops::arith::SHRUI, bits, 23)?;
        let exponent = self.binary(ops::arith::ANDI, exponent, ones)?;
        let fraction = self.binary(ops::arith::ANDI, bits, fractions)?;
        let up = match by.round {
            Round::Down => None,
            Round::Up => {
                let zero = self.int(int, 0);
                Some(self.compare(GREATER, fraction, zero)?)
            }
            Round::Nearest => {
                let half = self.int(int, 1 << 22);
                Some(self.compare(GREATER_OR_EQUAL, fraction, half)?)
            }
        };
        let mut code = exponent;
        if let Some(up) = up {
            let one = self.int(int, 1);
            let more = self.binary(ops::arith::ADDI, exponent, one)?;
            code = self.select(up, more, exponent)?;
        }
        if by.saturate {
            let largest = self.int(int, 0xfe);
            code = self.binary(ops::arith::MINSI, code, largest)?;
        }
        // Infinity and NaN.
        let is_special = self.compare(EQUAL, exponent, ones)?;
        let code = self.select(is_special, ones, code)?;
        self.op(ops::arith::TRUNCI, &[code], byte)
    }

    /// The low bits of an i8 or wider integer as an element of 2 or 4 bits in a byte.
    ///
    /// # Errors
    /// MLIR's diagnostics.
    pub fn wrap(&mut self, dtype: DataType, x: Value<'c>) -> Result<Value<'c>, Failure> {
        let bits = i64::from(dtype.bits().unwrap_or(8));
        let byte = Type::integer(self.context(), 8);
        let x = if x.ty() == byte { x } else { self.op(ops::arith::TRUNCI, &[x], byte)? };
        let up = self.shifted(ops::arith::SHLI, x, 8 - bits)?;
        let signed = matches!(dtype, DataType::I2 | DataType::I4);
        self.shifted(if signed { ops::arith::SHRSI } else { ops::arith::SHRUI }, up, 8 - bits)
    }

    /// The elements of packed bytes, under a shape.
    ///
    /// # Errors
    /// MLIR's diagnostics.
    pub fn unpack(&mut self, packed: Value<'c>, dtype: DataType, shape: &[Dim]) -> Result<Value<'c>, Failure> {
        let bits = i64::from(dtype.bits().unwrap_or(8));
        let count = vec![shape.iter().fold(Dim::constant(1), |n, d| n.mul(d))];
        let out = self.empty(dtype, &count)?;
        let op = Structured { loops: vec![LoopKind::Parallel], inputs: vec![], outputs: vec![(out, identity(1))] };
        let flat = self.structured(&op, |b, _| {
            let (byte, at) = (Type::integer(b.context(), 8), b.loop_index(0)?);
            let per = b.int(at.ty(), 8 / bits);
            let (place, within) = (b.binary(ops::arith::DIVUI, at, per)?, b.binary(ops::arith::REMUI, at, per)?);
            let held = b.op(ops::tensor::EXTRACT, &[packed, place], byte)?;
            let within = b.op(ops::arith::INDEX_CAST, &[within], byte)?;
            let width = b.int(byte, bits);
            let shift = b.binary(ops::arith::MULI, within, width)?;
            let element = b.binary(ops::arith::SHRUI, held, shift)?;
            Ok(vec![b.wrap(dtype, element)?])
        })?[0];
        let shaped = self.reshaped(&Operand::value(dtype, count, flat), shape)?;
        self.value(&shaped)
    }

    /// The elements as packed bytes, in one dimension.
    ///
    /// # Errors
    /// MLIR's diagnostics.
    pub fn pack(&mut self, x: &Operand<'c>) -> Result<Value<'c>, Failure> {
        let bits = i64::from(x.dtype.bits().unwrap_or(8));
        let count = x.elements();
        let flat = self.reshaped(x, std::slice::from_ref(&count))?;
        let (source, size) = (self.value(&flat)?, self.index(&count)?);
        let out = self.empty(DataType::U8, &[count.ceil_div(8 / bits).unwrap_or_default()])?;
        let op = Structured { loops: vec![LoopKind::Parallel], inputs: vec![], outputs: vec![(out, identity(1))] };
        let packed = self.structured(&op, |b, _| {
            let (byte, at) = (Type::integer(b.context(), 8), b.loop_index(0)?);
            let (per, none, first) = (b.int(at.ty(), 8 / bits), b.int(byte, 0), b.int(at.ty(), 0));
            let (from, mask) = (b.binary(ops::arith::MULI, at, per)?, b.int(byte, (1 << bits) - 1));
            let mut held = none;
            for k in 0..8 / bits {
                let k_index = b.int(at.ty(), k);
                let place = b.binary(ops::arith::ADDI, from, k_index)?;
                let is_inside = b.compare(LESS, place, size)?;
                let place = b.select(is_inside, place, first)?;
                let element = b.op(ops::tensor::EXTRACT, &[source, place], byte)?;
                let element = b.binary(ops::arith::ANDI, element, mask)?;
                let element = b.select(is_inside, element, none)?;
                let element = b.shifted(ops::arith::SHLI, element, k * bits)?;
                held = b.binary(ops::arith::ORI, held, element)?;
            }
            Ok(vec![held])
        })?;
        Ok(packed[0])
    }
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
