//! Arithmetic of integers and truth values, and their conversions.

use spirv::Op;

use super::error::Error;
use super::reader::Instruction;
use super::state::Machine;
use super::types::Scalar;
use super::values::UNDEFINED;

/// The number of the low bits, with its sign.
pub(super) fn signed(bits: u32, value: u64) -> i64 {
    let unused = 64 - bits;
    ((value << unused) as i64) >> unused
}

/// The bits that a value of this width may have.
pub(super) fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits.clamp(1, 64))
}

impl Machine<'_> {
    /// An instruction that computes; those of other files are asked in turn.
    pub fn compute(&mut self, instruction: &Instruction) -> Result<(), Error> {
        let done = self.access(instruction)?
            || self.arithmetic(instruction)?
            || self.logic(instruction)?
            || self.float(instruction)?
            || self.composite(instruction)?
            || self.group(instruction)?
            || self.matrix(instruction)?;
        if done { Ok(()) } else { Err(instruction.unsupported()) }
    }

    /// Arithmetic of integers; false for another instruction.
    fn arithmetic(&mut self, instruction: &Instruction) -> Result<bool, Error> {
        let op = instruction.op;
        let is_unary =
            matches!(op, Op::SNegate | Op::Not | Op::BitCount | Op::BitReverse | Op::UConvert | Op::SConvert);
        let is_binary = matches!(op, Op::IAdd | Op::ISub | Op::IMul | Op::BitwiseAnd | Op::BitwiseOr | Op::BitwiseXor)
            || matches!(op, Op::ShiftLeftLogical | Op::ShiftRightLogical | Op::ShiftRightArithmetic);
        let is_division = matches!(op, Op::UDiv | Op::SDiv | Op::UMod | Op::SMod | Op::SRem);
        if !(is_unary || is_binary || is_division || matches!(op, Op::Bitcast | Op::CopyObject)) {
            return self.wide(instruction);
        }
        let (a, to) = (instruction.operand(0)?, self.scalar_of(instruction.result)?);
        let from = self.scalar_of(a)?;
        let (bits, own) = (from.bits(), to.mask());
        match op {
            Op::CopyObject => self.copy(a, instruction.result)?,
            Op::Bitcast => self.bitcast(instruction, from, to)?,
            _ if is_unary => self.map(instruction, [a], |[x]| unary(op, bits, x) & own)?,
            _ if is_division => {
                let b = instruction.operand(1)?;
                self.try_map(instruction, [a, b], |x, y| divide(op, bits, x, y).map(|value| value & own))?;
            }
            _ => self.binary(instruction, bits, own)?,
        }
        Ok(true)
    }

    /// One loop for each op.
    fn binary(&mut self, instruction: &Instruction, bits: u32, own: u64) -> Result<(), Error> {
        let operands = [instruction.operand(0)?, instruction.operand(1)?];
        let width = u64::from(bits);
        // The undefined one may be no mask's victim: it is cut to the type.
        let shift = |by: u64, value: u64| if by < width { value & own } else { UNDEFINED & own };
        match instruction.op {
            Op::IAdd => self.map(instruction, operands, |[x, y]| x.wrapping_add(y) & own),
            Op::ISub => self.map(instruction, operands, |[x, y]| x.wrapping_sub(y) & own),
            Op::IMul => self.map(instruction, operands, |[x, y]| x.wrapping_mul(y) & own),
            Op::BitwiseAnd => self.map(instruction, operands, |[x, y]| x & y),
            Op::BitwiseOr => self.map(instruction, operands, |[x, y]| x | y),
            Op::BitwiseXor => self.map(instruction, operands, |[x, y]| x ^ y),
            Op::ShiftLeftLogical => self.map(instruction, operands, |[x, y]| shift(y, x.wrapping_shl(y as u32))),
            Op::ShiftRightLogical => self.map(instruction, operands, |[x, y]| shift(y, x.wrapping_shr(y as u32))),
            _ => self.map(instruction, operands, |[x, y]| shift(y, signed(bits, x).wrapping_shr(y as u32) as u64)),
        }
    }

    /// Products of twice the width, and bit fields; false for another instruction.
    fn wide(&mut self, instruction: &Instruction) -> Result<bool, Error> {
        let op = instruction.op;
        match op {
            Op::UMulExtended | Op::SMulExtended | Op::IAddCarry | Op::ISubBorrow => {
                let [a, b] = [instruction.operand(0)?, instruction.operand(1)?];
                let bits = self.scalar_of(a)?.bits();
                let count = self.scalars(a);
                for scalar in 0..count {
                    let (x, y) = (self.row(a, scalar)?, self.row(b, scalar)?);
                    let both: Vec<_> = x.iter().zip(y).map(|(x, y)| extended(op, bits, *x, *y)).collect();
                    let [low, high]: [Vec<u64>; 2] = [
                        both.iter().map(|b| b.0 & mask(bits)).collect(),
                        both.iter().map(|b| b.1 & mask(bits)).collect(),
                    ];
                    self.set_row(instruction.result, scalar, &low)?;
                    self.set_row(instruction.result, count + scalar, &high)?;
                }
            }
            Op::BitFieldUExtract | Op::BitFieldSExtract => {
                let operands = [instruction.operand(0)?, instruction.operand(1)?, instruction.operand(2)?];
                let bits = self.scalar_of(operands[0])?.bits();
                self.map(instruction, operands, |[value, offset, count]| {
                    extract_field(op == Op::BitFieldSExtract, bits, value, (offset, count))
                })?;
            }
            Op::BitFieldInsert => {
                let operand = |index: usize| instruction.operand(index);
                let operands = [operand(0)?, operand(1)?, operand(2)?, operand(3)?];
                let bits = self.scalar_of(operands[0])?.bits();
                self.map(instruction, operands, |[base, insert, offset, count]| {
                    let undefined = offset.saturating_add(count) > u64::from(bits);
                    let field = if count == 0 { 0 } else { mask(count as u32).wrapping_shl(offset as u32) };
                    let inserted = base & !field | insert.wrapping_shl(offset as u32) & field;
                    if undefined { UNDEFINED & mask(bits) } else { inserted & mask(bits) }
                })?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Truth values, comparisons of integers, choices; false for another instruction.
    fn logic(&mut self, instruction: &Instruction) -> Result<bool, Error> {
        let op = instruction.op;
        match op {
            Op::LogicalNot => self.map(instruction, [instruction.operand(0)?], |[x]| x ^ 1)?,
            Op::Any | Op::All => {
                let a = instruction.operand(0)?;
                let mut out = vec![u64::from(op == Op::All); self.lanes];
                for scalar in 0..self.scalars(a) {
                    let row = self.row(a, scalar)?;
                    let join = |(o, x): (&mut u64, &u64)| *o = if op == Op::All { *o & x } else { *o | x };
                    out.iter_mut().zip(row).for_each(join);
                }
                self.set_row(instruction.result, 0, &out)?;
            }
            Op::Select => {
                let operands = [instruction.operand(0)?, instruction.operand(1)?, instruction.operand(2)?];
                self.map(instruction, operands, |[c, x, y]| if c != 0 { x } else { y })?;
            }
            _ => {
                let Some(compare) = comparison(op) else { return Ok(false) };
                let operands = [instruction.operand(0)?, instruction.operand(1)?];
                let bits = self.scalar_of(operands[0])?.bits();
                self.map(instruction, operands, |[x, y]| u64::from(compare(bits, x, y)))?;
            }
        }
        Ok(true)
    }

    /// The same bits: scalars of one width one by one, else wider ones joined from narrow ones, or split into them.
    fn bitcast(&mut self, instruction: &Instruction, from: Scalar, to: Scalar) -> Result<(), Error> {
        let (a, result) = (instruction.operand(0)?, instruction.result);
        let (narrow, wide) = (from.bits().min(to.bits()), from.bits().max(to.bits()));
        let parts = wide / narrow;
        if parts == 1 {
            return self.copy(a, result);
        }
        if self.scalars(a) * from.bits() != self.scalars(result) * to.bits() {
            return Err(instruction.unsupported());
        }
        for scalar in 0..self.scalars(result) {
            let mut out = vec![0; self.lanes];
            if from.bits() < to.bits() {
                for part in 0..parts {
                    let row = self.row(a, scalar * parts + part)?;
                    out.iter_mut().zip(row).for_each(|(o, x)| *o |= x << (part * narrow));
                }
            } else {
                let row = self.row(a, scalar / parts)?;
                let by = scalar % parts * narrow;
                out.iter_mut().zip(row).for_each(|(o, x)| *o = x >> by & mask(narrow));
            }
            self.set_row(result, scalar, &out)?;
        }
        Ok(())
    }
}

fn unary(op: Op, bits: u32, x: u64) -> u64 {
    match op {
        Op::SNegate => x.wrapping_neg(),
        Op::Not => !x,
        Op::BitCount => u64::from(x.count_ones()),
        Op::BitReverse => x.reverse_bits() >> (64 - bits),
        Op::SConvert => signed(bits, x) as u64,
        _ => x,
    }
}

/// The result of a division, if it has one.
fn divide(op: Op, bits: u32, x: u64, y: u64) -> Option<u64> {
    let (a, b) = (signed(bits, x), signed(bits, y));
    let overflows = a == i64::MIN >> (64 - bits) && b == -1;
    match op {
        Op::UDiv => x.checked_div(y),
        Op::UMod => x.checked_rem(y),
        _ if b == 0 || overflows => None,
        Op::SDiv => Some((a / b) as u64),
        Op::SRem => Some((a % b) as u64),
        _ => Some((a.wrapping_rem(b).wrapping_add(if a % b != 0 && (a < 0) != (b < 0) { b } else { 0 })) as u64),
    }
}

/// The low and the high half of a result, or the result and its carry.
fn extended(op: Op, bits: u32, x: u64, y: u64) -> (u64, u64) {
    match op {
        Op::UMulExtended => {
            let product = u128::from(x) * u128::from(y);
            (product as u64, (product >> bits) as u64)
        }
        Op::SMulExtended => {
            let product = i128::from(signed(bits, x)) * i128::from(signed(bits, y));
            (product as u64, (product >> bits) as u64)
        }
        Op::IAddCarry => {
            let sum = u128::from(x) + u128::from(y);
            (sum as u64, (sum >> bits) as u64)
        }
        _ => (x.wrapping_sub(y), u64::from(x < y)),
    }
}

fn extract_field(is_signed: bool, bits: u32, value: u64, (offset, count): (u64, u64)) -> u64 {
    if offset.saturating_add(count) > u64::from(bits) {
        return UNDEFINED & mask(bits);
    }
    if count == 0 {
        return 0;
    }
    let field = value >> offset & mask(count as u32);
    if is_signed { signed(count as u32, field) as u64 & mask(bits) } else { field }
}

/// A comparison of integers or truth values of this many bits.
fn comparison(op: Op) -> Option<fn(u32, u64, u64) -> bool> {
    Some(match op {
        Op::IEqual | Op::LogicalEqual => |_, x, y| x == y,
        Op::INotEqual | Op::LogicalNotEqual => |_, x, y| x != y,
        Op::LogicalAnd => |_, x, y| x & y != 0,
        Op::LogicalOr => |_, x, y| x | y != 0,
        Op::ULessThan => |_, x, y| x < y,
        Op::ULessThanEqual => |_, x, y| x <= y,
        Op::UGreaterThan => |_, x, y| x > y,
        Op::UGreaterThanEqual => |_, x, y| x >= y,
        Op::SLessThan => |bits, x, y| signed(bits, x) < signed(bits, y),
        Op::SLessThanEqual => |bits, x, y| signed(bits, x) <= signed(bits, y),
        Op::SGreaterThan => |bits, x, y| signed(bits, x) > signed(bits, y),
        Op::SGreaterThanEqual => |bits, x, y| signed(bits, x) >= signed(bits, y),
        _ => return None,
    })
}
