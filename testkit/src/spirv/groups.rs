//! Operations of subgroups.

use spirv::{GroupOperation, Op};

use super::error::{Error, FaultKind};
use super::floats::{decode, encode};
use super::integers::{mask, signed};
use super::reader::Instruction;
use super::state::Machine;
use super::types::Scalar;
use super::values::{UNDEFINED, lanes};

impl Machine<'_> {
    /// Operations of subgroups; false for another instruction.
    pub fn group(&mut self, instruction: &Instruction) -> Result<bool, Error> {
        let op = instruction.op;
        let Some(kind) = Kind::of(op) else { return Ok(false) };
        if self.module.constant(instruction.operand(0)?, self.word)? != u64::from(spirv::Scope::Subgroup as u32) {
            return Err(instruction.unsupported());
        }
        if self.active != self.subgroup.exists {
            let lane = lanes(self.active).next().unwrap_or(0);
            return Err(self.fault(FaultKind::DivergentSubgroup, op, lane));
        }
        self.counts.subgroup_ops += 1;
        match kind {
            Kind::Gather => self.gather(instruction)?,
            Kind::Vote => self.vote(instruction)?,
            Kind::Reduce => self.reduce(instruction)?,
        }
        Ok(true)
    }

    /// Values of other lanes.
    fn gather(&mut self, instruction: &Instruction) -> Result<(), Error> {
        let value = instruction.operand(1)?;
        let by = match instruction.operands.get(2) {
            Some(id) => self.row(*id, 0)?.to_vec(),
            None => vec![0; self.lanes],
        };
        let first = u64::from(self.active.trailing_zeros());
        for scalar in 0..self.scalars(instruction.result) {
            let row = self.row(value, scalar)?;
            let mut out = vec![UNDEFINED; self.lanes];
            for lane in lanes(self.active) {
                let (own, by) = (lane as u64, by[lane]);
                let from = match instruction.op {
                    Op::GroupNonUniformBroadcastFirst => first,
                    Op::GroupNonUniformShuffleXor => own ^ by,
                    Op::GroupNonUniformShuffleUp => own.wrapping_sub(by),
                    Op::GroupNonUniformShuffleDown => own.wrapping_add(by),
                    Op::GroupNonUniformQuadBroadcast => own & !3 | by & 3,
                    _ => by,
                };
                let exists = from < self.lanes as u64 && self.active >> from & 1 == 1;
                if !exists {
                    return Err(self.fault(FaultKind::AbsentLane { lane: from }, instruction.op, lane));
                }
                out[lane] = row[from as usize];
            }
            self.set_row(instruction.result, scalar, &out)?;
        }
        Ok(())
    }

    /// Truth values of all lanes.
    fn vote(&mut self, instruction: &Instruction) -> Result<(), Error> {
        let active = self.active;
        if instruction.op == Op::GroupNonUniformElect {
            let first = active.trailing_zeros();
            let out: Vec<u64> = (0..self.lanes as u32).map(|lane| u64::from(lane == first)).collect();
            return self.set_row(instruction.result, 0, &out);
        }
        let row = self.row(instruction.operand(1)?, 0)?;
        let ballot = lanes(active).filter(|lane| row[*lane] != 0).fold(0u128, |bits, lane| bits | 1 << lane);
        match instruction.op {
            Op::GroupNonUniformAll => {
                self.set_row(instruction.result, 0, &vec![u64::from(ballot == active); self.lanes])
            }
            Op::GroupNonUniformAny => self.set_row(instruction.result, 0, &vec![u64::from(ballot != 0); self.lanes]),
            _ => (0..4).try_for_each(|word| {
                let bits = (ballot >> (32 * word)) as u32;
                self.set_row(instruction.result, word, &vec![bits.into(); self.lanes])
            }),
        }
    }

    /// Reductions and scans over the active lanes, in order.
    fn reduce(&mut self, instruction: &Instruction) -> Result<(), Error> {
        let (operation, value) = (instruction.operand(1)?, instruction.operand(2)?);
        let operation = GroupOperation::from_u32(operation).ok_or_else(|| instruction.unsupported())?;
        let scalar_type = self.scalar_of(value)?;
        let join = |a: u64, b: u64| combine(instruction.op, scalar_type, a, b);
        for scalar in 0..self.scalars(instruction.result) {
            let row = self.row(value, scalar)?;
            let mut out = vec![UNDEFINED; self.lanes];
            let mut all: Option<u64> = None;
            for lane in lanes(self.active) {
                let before = all;
                let after = all.map_or(row[lane], |all| join(all, row[lane]));
                all = Some(after);
                out[lane] = match operation {
                    GroupOperation::ExclusiveScan => before.unwrap_or(identity(instruction.op, scalar_type)),
                    _ => after,
                };
            }
            match operation {
                GroupOperation::Reduce => out.fill(all.unwrap_or(UNDEFINED)),
                GroupOperation::InclusiveScan | GroupOperation::ExclusiveScan => {}
                _ => return Err(instruction.unsupported()),
            }
            self.set_row(instruction.result, scalar, &out)?;
        }
        Ok(())
    }
}

/// The kinds of operations.
#[derive(Clone, Copy)]
enum Kind {
    Gather,
    Vote,
    Reduce,
}

impl Kind {
    fn of(op: Op) -> Option<Kind> {
        use Op::*;
        match op {
            GroupNonUniformBroadcast | GroupNonUniformBroadcastFirst | GroupNonUniformShuffle => Some(Kind::Gather),
            GroupNonUniformShuffleXor | GroupNonUniformShuffleUp | GroupNonUniformShuffleDown => Some(Kind::Gather),
            GroupNonUniformQuadBroadcast => Some(Kind::Gather),
            GroupNonUniformElect | GroupNonUniformAll | GroupNonUniformAny => Some(Kind::Vote),
            GroupNonUniformBallot => Some(Kind::Vote),
            GroupNonUniformIAdd | GroupNonUniformFAdd | GroupNonUniformIMul => Some(Kind::Reduce),
            GroupNonUniformFMul | GroupNonUniformSMin | GroupNonUniformUMin => Some(Kind::Reduce),
            GroupNonUniformFMin | GroupNonUniformSMax | GroupNonUniformUMax => Some(Kind::Reduce),
            GroupNonUniformFMax | GroupNonUniformBitwiseAnd | GroupNonUniformBitwiseOr => Some(Kind::Reduce),
            GroupNonUniformBitwiseXor | GroupNonUniformLogicalAnd => Some(Kind::Reduce),
            GroupNonUniformLogicalOr | GroupNonUniformLogicalXor => Some(Kind::Reduce),
            _ => None,
        }
    }
}

fn combine(op: Op, scalar: Scalar, a: u64, b: u64) -> u64 {
    let bits = scalar.bits();
    let (x, y) = (signed(bits, a), signed(bits, b));
    let floats = |f: fn(f64, f64) -> f64| encode(bits, f(decode(bits, a), decode(bits, b)));
    match op {
        Op::GroupNonUniformIAdd => a.wrapping_add(b) & mask(bits),
        Op::GroupNonUniformIMul => a.wrapping_mul(b) & mask(bits),
        Op::GroupNonUniformFAdd => floats(|x, y| x + y),
        Op::GroupNonUniformFMul => floats(|x, y| x * y),
        Op::GroupNonUniformFMin => floats(f64::min),
        Op::GroupNonUniformFMax => floats(f64::max),
        Op::GroupNonUniformUMin => a.min(b),
        Op::GroupNonUniformUMax => a.max(b),
        Op::GroupNonUniformSMin => x.min(y) as u64 & mask(bits),
        Op::GroupNonUniformSMax => x.max(y) as u64 & mask(bits),
        Op::GroupNonUniformBitwiseAnd | Op::GroupNonUniformLogicalAnd => a & b,
        Op::GroupNonUniformBitwiseOr | Op::GroupNonUniformLogicalOr => a | b,
        _ => a ^ b,
    }
}

/// What an exclusive scan has in its first lane.
fn identity(op: Op, scalar: Scalar) -> u64 {
    let bits = scalar.bits();
    match op {
        Op::GroupNonUniformIMul => 1,
        Op::GroupNonUniformFMul => encode(bits, 1.0),
        Op::GroupNonUniformFMin => encode(bits, f64::INFINITY),
        Op::GroupNonUniformFMax => encode(bits, f64::NEG_INFINITY),
        Op::GroupNonUniformSMin => mask(bits) >> 1,
        Op::GroupNonUniformSMax => mask(bits) ^ mask(bits) >> 1,
        Op::GroupNonUniformUMin | Op::GroupNonUniformBitwiseAnd | Op::GroupNonUniformLogicalAnd => mask(bits),
        _ => 0,
    }
}
