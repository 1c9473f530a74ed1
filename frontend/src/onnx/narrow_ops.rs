//! Conversions of narrow elements, and their packing, as ops.

use super::DataType;
use super::builder::{Builder, Failure};
use super::narrow::{Format, Narrowing, Round};
use super::operand::Operand;
use super::predicate::{CmpF, CmpI};
use super::structured::{Iterator as LoopKind, Structured, identity};
use super::symbolic::Dim;
use monopour_ir::{Type, Value, ops};

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
            let is_least = self.compare(CmpI::Eq, code, zero)?;
            let bits = self.select(is_least, least, exponent)?;
            let number = self.op(ops::arith::BITCAST, &[bits], float)?;
            let is_nan = self.compare(CmpI::Eq, code, ones)?;
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
        let is_small = self.compare(CmpI::Slt, size, first)?;
        let mut number = self.select(is_small, small, normal)?;
        let mut last = format.largest;
        if let Some(infinity) = format.infinity {
            last = infinity;
            let (code, value) = (self.int(int, infinity), self.number(float, f64::INFINITY));
            let is_infinite = self.compare(CmpI::Eq, size, code)?;
            number = self.select(is_infinite, value, number)?;
        }
        if format.signed_zero && last < format.sign - 1 {
            let last = self.int(int, last);
            let is_nan = self.compare(CmpI::Sgt, size, last)?;
            number = self.select(is_nan, nan, number)?;
        }
        let sign = self.int(int, format.sign);
        let (is_negative, negated) = (self.compare(CmpI::Sge, code, sign)?, self.unary(ops::arith::NEGF, number)?);
        number = self.select(is_negative, negated, number)?;
        if !format.signed_zero {
            let is_nan = self.compare(CmpI::Eq, code, sign)?;
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
        let is_negative = self.compare(CmpI::Slt, raw, zero)?;
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
        let is_small = self.compare(CmpI::Slt, size, least)?;
        let nothing = self.number(float, 0.0);
        let small = self.select(is_small, positive, nothing)?;
        let unit = self.number(float, 2f64.powi((format.bias + format.mantissa - 1) as i32));
        let small = self.binary(ops::arith::MULF, small, unit)?;
        let small = self.unary(ops::math::ROUNDEVEN, small)?;
        let small = self.op(ops::arith::FPTOSI, &[small], int)?;
        let code = self.select(is_small, small, normal)?;
        let largest = self.int(int, format.largest);
        let beyond = self.compare(CmpI::Sgt, code, largest)?;
        let limit = if by.saturate { format.largest } else { format.infinity.unwrap_or(format.nan) };
        let limit = self.int(int, limit);
        let code = self.select(beyond, limit, code)?;
        let sign = self.int(int, format.sign);
        let negated = self.binary(ops::arith::ORI, code, sign)?;
        let mut signed = self.select(is_negative, negated, code)?;
        if !format.signed_zero {
            let is_zero = self.compare(CmpI::Eq, code, zero)?;
            signed = self.select(is_zero, zero, signed)?;
        }
        // Unordered with itself.
        let (is_nan, nan) = (self.compare(CmpF::Uno, x, x)?, self.int(int, format.nan));
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
                Some(self.compare(CmpI::Sgt, fraction, zero)?)
            }
            Round::Nearest => {
                let half = self.int(int, 1 << 22);
                Some(self.compare(CmpI::Sge, fraction, half)?)
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
        let is_special = self.compare(CmpI::Eq, exponent, ones)?;
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
            let held = b.read(packed, &[place])?;
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
                let is_inside = b.compare(CmpI::Slt, place, size)?;
                let place = b.select(is_inside, place, first)?;
                let element = b.read(source, &[place])?;
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
