//! Arithmetic of floats, comparisons, conversions.
//!
//! Values are widened to f64, computed there and rounded once: sums, products, quotients and roots of f32 and f16 are
//! exact but for that rounding.

use std::sync::LazyLock;

use spirv::Op;

use super::error::Error;
use super::integers::{mask, signed};
use super::reader::Instruction;
use super::state::Machine;
use super::types::Scalar;
use super::values::UNDEFINED;
use crate::host_tensor::{Dtype, decode_float, encode_float};

/// All halves.
static HALVES: LazyLock<Vec<f64>> = LazyLock::new(|| (0..1 << 16).map(|bits| decode_float(Dtype::F16, bits)).collect());

/// The number of a float's bits.
pub(super) fn decode(bits: u32, value: u64) -> f64 {
    match bits {
        16 => HALVES[(value & 0xffff) as usize],
        32 => f64::from(f32::from_bits(value as u32)),
        _ => f64::from_bits(value),
    }
}

/// The bits of the nearest float.
pub(super) fn encode(bits: u32, value: f64) -> u64 {
    match bits {
        16 => encode_float(Dtype::F16, value),
        32 => u64::from((value as f32).to_bits()),
        _ => value.to_bits(),
    }
}

/// `a * b + c`, rounded once for f32 and f64.
pub(super) fn fused(bits: u32, [a, b, c]: [u64; 3]) -> u64 {
    let of = |value: u64| f32::from_bits(value as u32);
    match bits {
        32 => u64::from(of(a).mul_add(of(b), of(c)).to_bits()),
        _ => encode(bits, decode(bits, a).mul_add(decode(bits, b), decode(bits, c))),
    }
}

impl Machine<'_> {
    /// Instructions on floats; false for another one.
    pub fn float(&mut self, instruction: &Instruction) -> Result<bool, Error> {
        let op = instruction.op;
        let operand = |index: usize| instruction.operand(index);
        match op {
            Op::FNegate => {
                let a = operand(0)?;
                let sign = 1 << (self.scalar_of(a)?.bits() - 1);
                self.map(instruction, [a], |[x]| x ^ sign)?;
            }
            Op::FAdd => self.float2(instruction, |x, y| x + y)?,
            Op::FSub => self.float2(instruction, |x, y| x - y)?,
            Op::FMul | Op::VectorTimesScalar => {
                self.count_products(instruction.result);
                self.float2(instruction, |x, y| x * y)?;
            }
            Op::FDiv => self.float2(instruction, |x, y| x / y)?,
            Op::FRem => self.float2(instruction, |x, y| x % y)?,
            Op::Dot => self.dot(instruction)?,
            Op::IsNan | Op::IsInf => {
                let a = operand(0)?;
                let bits = self.scalar_of(a)?.bits();
                let test = if op == Op::IsNan { f64::is_nan } else { f64::is_infinite };
                self.map(instruction, [a], |[x]| u64::from(test(decode(bits, x))))?;
            }
            Op::FConvert if self.is_matrix(instruction.result) => return Ok(false),
            Op::FConvert | Op::ConvertFToS | Op::ConvertFToU | Op::ConvertSToF | Op::ConvertUToF => {
                let a = operand(0)?;
                let (from, to) = (self.scalar_of(a)?, self.scalar_of(instruction.result)?);
                self.map(instruction, [a], |[x]| convert(op, from, to, x))?;
            }
            Op::QuantizeToF16 => {
                let a = operand(0)?;
                self.map(instruction, [a], |[x]| encode(32, decode(16, encode(16, decode(32, x)))))?;
            }
            Op::ExtInst => return self.extended(instruction),
            _ => {
                let Some(compare) = comparison(op) else { return Ok(false) };
                let operands = [operand(0)?, operand(1)?];
                let bits = self.scalar_of(operands[0])?.bits();
                self.map(instruction, operands, |[x, y]| u64::from(compare(decode(bits, x), decode(bits, y))))?;
            }
        }
        Ok(true)
    }

    /// Counts the components of a product.
    pub fn count_products(&mut self, result: u32) {
        self.counts.products += u64::from(self.scalars(result)) * u64::from(self.active.count_ones());
    }

    /// Computes in f64, with a loop for each width.
    fn float2(&mut self, instruction: &Instruction, f: impl Fn(f64, f64) -> f64 + Copy) -> Result<(), Error> {
        let operands = [instruction.operand(0)?, instruction.operand(1)?];
        match self.scalar_of(instruction.result)?.bits() {
            16 => self.map(instruction, operands, |[x, y]| encode(16, f(decode(16, x), decode(16, y)))),
            32 => self.map(instruction, operands, |[x, y]| encode(32, f(decode(32, x), decode(32, y)))),
            _ => self.map(instruction, operands, |[x, y]| encode(64, f(decode(64, x), decode(64, y)))),
        }
    }

    fn dot(&mut self, instruction: &Instruction) -> Result<(), Error> {
        let [a, b] = [instruction.operand(0)?, instruction.operand(1)?];
        let bits = self.scalar_of(a)?.bits();
        let mut sums = vec![0f64; self.lanes];
        for scalar in 0..self.scalars(a) {
            let (x, y) = (self.row(a, scalar)?, self.row(b, scalar)?);
            sums.iter_mut().zip(x.iter().zip(y)).for_each(|(s, (x, y))| *s += decode(bits, *x) * decode(bits, *y));
        }
        let out: Vec<u64> = sums.iter().map(|sum| encode(bits, *sum)).collect();
        self.set_row(instruction.result, 0, &out)
    }
}

/// A conversion; undefined if the number is not of the integer type.
fn convert(op: Op, from: Scalar, to: Scalar, x: u64) -> u64 {
    let (from, to) = (from.bits(), to.bits());
    match op {
        Op::FConvert => encode(to, decode(from, x)),
        Op::ConvertSToF => of_integer(to, i128::from(signed(from, x))),
        Op::ConvertUToF => of_integer(to, i128::from(x)),
        _ => {
            let value = decode(from, x).trunc();
            let is_signed = op == Op::ConvertFToS;
            let end = 2f64.powi(if is_signed { to as i32 - 1 } else { to as i32 });
            let least = if is_signed { -end } else { 0.0 };
            let fits = value >= least && value < end;
            let whole = if is_signed { value as i64 as u64 } else { value as u64 };
            (if fits { whole } else { UNDEFINED }) & mask(to)
        }
    }
}

/// The nearest float.
fn of_integer(bits: u32, value: i128) -> u64 {
    match bits {
        32 => u64::from((value as f32).to_bits()),
        64 => (value as f64).to_bits(),
        // What f64 rounds is too large for a half.
        _ => encode(bits, value as f64),
    }
}

fn comparison(op: Op) -> Option<fn(f64, f64) -> bool> {
    Some(match op {
        Op::FOrdEqual => |x, y| x == y,
        Op::FOrdNotEqual => |x, y| x != y && !x.is_nan() && !y.is_nan(),
        Op::FOrdLessThan => |x, y| x < y,
        Op::FOrdLessThanEqual => |x, y| x <= y,
        Op::FOrdGreaterThan => |x, y| x > y,
        Op::FOrdGreaterThanEqual => |x, y| x >= y,
        Op::FUnordEqual => |x, y| x == y || x.is_nan() || y.is_nan(),
        Op::FUnordNotEqual => |x, y| x != y,
        Op::FUnordLessThan => |x, y| x < y || x.is_nan() || y.is_nan(),
        Op::FUnordLessThanEqual => |x, y| x <= y || x.is_nan() || y.is_nan(),
        Op::FUnordGreaterThan => |x, y| x > y || x.is_nan() || y.is_nan(),
        Op::FUnordGreaterThanEqual => |x, y| x >= y || x.is_nan() || y.is_nan(),
        Op::Ordered => |x, y| !x.is_nan() && !y.is_nan(),
        Op::Unordered => |x, y| x.is_nan() || y.is_nan(),
        _ => return None,
    })
}
