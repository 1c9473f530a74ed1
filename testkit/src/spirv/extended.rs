//! The extended instructions `GLSL.std.450`.

use spirv::GlslStd450Op as G;

use super::error::Error;
use super::floats::{decode, encode, fused};
use super::integers::{mask, signed};
use super::reader::Instruction;
use super::state::Machine;

impl Machine<'_> {
    /// An extended instruction.
    pub fn extended(&mut self, instruction: &Instruction) -> Result<bool, Error> {
        let number = instruction.operand(1)?;
        let named = |name: String| Error::Unsupported { word: instruction.word, instruction: name };
        let op = G::from_u32(number).ok_or_else(|| named(format!("GLSL.std.450 {number}")))?;
        if instruction.operand(0)? != self.module.extended {
            return Err(instruction.unsupported());
        }
        let arguments = &instruction.operands[2..];
        let bits = arguments.first().map_or(Ok(0), |id| Ok(self.scalar_of(*id)?.bits()))?;
        let own = mask(self.scalar_of(instruction.result)?.bits());
        match *arguments {
            [a] if is_packing(op) => self.pack(instruction, op, a)?,
            [a] if matches!(op, G::ModfStruct | G::FrexpStruct) => self.split(instruction, op, a)?,
            [a] if matches!(op, G::Length | G::Normalize) => self.norm(instruction, op, a)?,
            [a] => match (integer1(op), float1(op)) {
                (Some(f), _) => self.map(instruction, [a], |[x]| f(bits, x) & own)?,
                (None, Some(f)) => self.map(instruction, [a], |[x]| encode(bits, f(decode(bits, x))))?,
                _ => return Err(named(format!("{op:?}"))),
            },
            [a, b] if op == G::Ldexp => {
                let exponent = self.scalar_of(b)?.bits();
                self.map(instruction, [a, b], |[x, y]| encode(bits, scale(decode(bits, x), signed(exponent, y))))?;
            }
            [a, b] => match (integer2(op), float2(op)) {
                (Some(f), _) => self.map(instruction, [a, b], |[x, y]| f(bits, x, y) & own)?,
                (None, Some(f)) => {
                    self.map(instruction, [a, b], |[x, y]| encode(bits, f(decode(bits, x), decode(bits, y))))?;
                }
                _ => return Err(named(format!("{op:?}"))),
            },
            [a, b, c] => self.of_three(instruction, op, [a, b, c], bits)?,
            _ => return Err(named(format!("{op:?}"))),
        }
        Ok(true)
    }

    fn of_three(&mut self, instruction: &Instruction, op: G, operands: [u32; 3], bits: u32) -> Result<(), Error> {
        let number = |x: u64| decode(bits, x);
        let (min, max) = match op {
            G::UClamp => (G::UMin, G::UMax),
            G::SClamp => (G::SMin, G::SMax),
            _ => (G::FMin, G::FMax),
        };
        match (op, integer2(min), integer2(max)) {
            (G::Fma, ..) => {
                self.count_products(instruction.result);
                match bits {
                    32 => self.map(instruction, operands, |values| fused(32, values)),
                    _ => self.map(instruction, operands, |values| fused(bits, values)),
                }
            }
            (G::FClamp | G::NClamp, ..) => self.map(instruction, operands, |[x, low, high]| {
                encode(bits, number(x).max(number(low)).min(number(high)))
            }),
            (G::UClamp | G::SClamp, Some(min), Some(max)) => {
                self.map(instruction, operands, |[x, low, high]| min(bits, max(bits, x, low), high))
            }
            (G::FMix, ..) => self.map(instruction, operands, |[x, y, a]| {
                encode(bits, number(x) * (1.0 - number(a)) + number(y) * number(a))
            }),
            (G::SmoothStep, ..) => self.map(instruction, operands, |[low, high, x]| {
                let t = ((number(x) - number(low)) / (number(high) - number(low))).clamp(0.0, 1.0);
                encode(bits, t * t * (3.0 - 2.0 * t))
            }),
            _ => Err(Error::Unsupported { word: instruction.word, instruction: format!("{op:?}") }),
        }
    }

    /// Numbers packed in a word, and words unpacked.
    fn pack(&mut self, instruction: &Instruction, op: G, a: u32) -> Result<(), Error> {
        let (parts, width) = match op {
            G::PackHalf2x16 | G::UnpackHalf2x16 | G::PackSnorm2x16 | G::UnpackSnorm2x16 => (2, 16),
            G::PackUnorm2x16 | G::UnpackUnorm2x16 => (2, 16),
            _ => (4, 8),
        };
        let most = f64::from((1u32 << (width - u32::from(is_signed_norm(op)))) - 1);
        let is_half = matches!(op, G::PackHalf2x16 | G::UnpackHalf2x16);
        let least = if is_signed_norm(op) { -1.0 } else { 0.0 };
        if instruction_packs(op) {
            let mut out = vec![0; self.lanes];
            for part in 0..parts {
                let row = self.row(a, part)?;
                let bits = |x: u64| match is_half {
                    true => encode(16, decode(32, x)),
                    false => ((decode(32, x).clamp(least, 1.0) * most).round() as i64) as u64 & mask(width),
                };
                out.iter_mut().zip(row).for_each(|(o, x)| *o |= bits(*x) << (part * width));
            }
            return self.set_row(instruction.result, 0, &out);
        }
        for part in 0..parts {
            let number = |x: &u64| {
                let field = x >> (part * width) & mask(width);
                match (is_half, is_signed_norm(op)) {
                    (true, _) => decode(16, field),
                    (_, true) => (signed(width, field) as f64 / most).max(-1.0),
                    _ => field as f64 / most,
                }
            };
            let out: Vec<u64> = self.row(a, 0)?.iter().map(|x| encode(32, number(x))).collect();
            self.set_row(instruction.result, part, &out)?;
        }
        Ok(())
    }

    /// A float in two parts.
    fn split(&mut self, instruction: &Instruction, op: G, a: u32) -> Result<(), Error> {
        let (bits, count) = (self.scalar_of(a)?.bits(), self.scalars(a));
        for scalar in 0..count {
            let parts = self.row(a, scalar)?.iter().map(|x| {
                let x = decode(bits, *x);
                match op {
                    G::ModfStruct => (encode(bits, x.fract()), encode(bits, x.trunc())),
                    _ => {
                        let (fraction, exponent) = fraction_and_exponent(x);
                        (encode(bits, fraction), u64::from(exponent as u32))
                    }
                }
            });
            let (first, second): (Vec<u64>, Vec<u64>) = parts.unzip();
            self.set_row(instruction.result, scalar, &first)?;
            self.set_row(instruction.result, count + scalar, &second)?;
        }
        Ok(())
    }

    fn norm(&mut self, instruction: &Instruction, op: G, a: u32) -> Result<(), Error> {
        let (bits, count) = (self.scalar_of(a)?.bits(), self.scalars(a));
        let mut squares = vec![0f64; self.lanes];
        for scalar in 0..count {
            self.row(a, scalar)?.iter().zip(&mut squares).for_each(|(x, sum)| *sum += decode(bits, *x).powi(2));
        }
        for scalar in 0..self.scalars(instruction.result) {
            let value = |(x, sum): (&u64, &f64)| match op {
                G::Length => sum.sqrt(),
                _ => decode(bits, *x) / sum.sqrt(),
            };
            let out: Vec<u64> = self.row(a, scalar)?.iter().zip(&squares).map(|p| encode(bits, value(p))).collect();
            self.set_row(instruction.result, scalar, &out)?;
        }
        Ok(())
    }
}

fn is_packing(op: G) -> bool {
    instruction_packs(op)
        || matches!(op, G::UnpackHalf2x16 | G::UnpackSnorm2x16 | G::UnpackUnorm2x16)
        || matches!(op, G::UnpackSnorm4x8 | G::UnpackUnorm4x8)
}

fn instruction_packs(op: G) -> bool {
    matches!(op, G::PackHalf2x16 | G::PackSnorm2x16 | G::PackUnorm2x16 | G::PackSnorm4x8 | G::PackUnorm4x8)
}

fn is_signed_norm(op: G) -> bool {
    matches!(op, G::PackSnorm2x16 | G::UnpackSnorm2x16 | G::PackSnorm4x8 | G::UnpackSnorm4x8)
}

/// A fraction of magnitude at least one half and below one, and the power of two that it is to be scaled by.
fn fraction_and_exponent(x: f64) -> (f64, i32) {
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    // 2^54 makes a denormal normal.
    let (normal, by) = if x.abs() < f64::MIN_POSITIVE { (x * 2f64.powi(54), -54) } else { (x, 0) };
    let bits = normal.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1022;
    (f64::from_bits(bits & !(0x7ff << 52) | 1022 << 52), exponent + by)
}

/// `x * 2^by` without an overflow on the way.
fn scale(x: f64, by: i64) -> f64 {
    let by = by.clamp(-4000, 4000) as i32;
    let half = by / 2;
    x * 2f64.powi(half) * 2f64.powi(by - half)
}

fn integer1(op: G) -> Option<fn(u32, u64) -> u64> {
    Some(match op {
        G::SAbs => |bits, x| signed(bits, x).unsigned_abs(),
        G::SSign => |bits, x| signed(bits, x).signum() as u64,
        G::FindILsb => |_, x| if x == 0 { u64::MAX } else { x.trailing_zeros().into() },
        G::FindUMsb => |_, x| if x == 0 { u64::MAX } else { (63 - x.leading_zeros()).into() },
        G::FindSMsb => |bits, x| {
            let value = if signed(bits, x) < 0 { !x & mask(bits) } else { x };
            if value == 0 { u64::MAX } else { (63 - value.leading_zeros()).into() }
        },
        _ => return None,
    })
}

fn integer2(op: G) -> Option<fn(u32, u64, u64) -> u64> {
    Some(match op {
        G::UMin => |_, x, y| x.min(y),
        G::UMax => |_, x, y| x.max(y),
        G::SMin => |bits, x, y| signed(bits, x).min(signed(bits, y)) as u64 & mask(bits),
        G::SMax => |bits, x, y| signed(bits, x).max(signed(bits, y)) as u64 & mask(bits),
        _ => return None,
    })
}

fn float1(op: G) -> Option<fn(f64) -> f64> {
    Some(match op {
        G::Round => |x| x.round(),
        G::RoundEven => f64::round_ties_even,
        G::Trunc => f64::trunc,
        G::FAbs => f64::abs,
        G::FSign => |x| {
            if x > 0.0 {
                1.0
            } else if x < 0.0 {
                -1.0
            } else {
                0.0
            }
        },
        G::Floor => f64::floor,
        G::Ceil => f64::ceil,
        G::Fract => |x| x - x.floor(),
        G::Radians => f64::to_radians,
        G::Degrees => f64::to_degrees,
        G::Sin => f64::sin,
        G::Cos => f64::cos,
        G::Tan => f64::tan,
        G::Asin => f64::asin,
        G::Acos => f64::acos,
        G::Atan => f64::atan,
        G::Sinh => f64::sinh,
        G::Cosh => f64::cosh,
        G::Tanh => f64::tanh,
        G::Asinh => f64::asinh,
        G::Acosh => f64::acosh,
        G::Atanh => f64::atanh,
        G::Exp => f64::exp,
        G::Log => f64::ln,
        G::Exp2 => f64::exp2,
        G::Log2 => f64::log2,
        G::Sqrt => f64::sqrt,
        G::InverseSqrt => |x| 1.0 / x.sqrt(),
        _ => return None,
    })
}

fn float2(op: G) -> Option<fn(f64, f64) -> f64> {
    Some(match op {
        // With a NaN either operand may be the result of `FMin`, the number is that of `NMin`.
        G::FMin | G::NMin => f64::min,
        G::FMax | G::NMax => f64::max,
        G::Atan2 => f64::atan2,
        G::Pow => |x, y| if x < 0.0 { f64::NAN } else { x.powf(y) },
        G::Step => |edge, x| f64::from(u8::from(x >= edge)),
        _ => return None,
    })
}
