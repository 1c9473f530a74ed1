//! Scalars of a subgroup: each has a row with a number for each lane, in its low bits.

use spirv::Op;

use super::error::{Error, Fault, FaultKind};
use super::reader::Instruction;
use super::state::{Machine, Mask};
use super::types::Scalar;

/// The bits of a result that SPIR-V leaves undefined, cut to its type: far from any number of a test.
pub const UNDEFINED: u64 = 0xdead_beef_dead_beef;

/// The lanes of a mask.
pub(super) fn lanes(mask: Mask) -> impl Iterator<Item = usize> {
    let mut left = mask;
    std::iter::from_fn(move || {
        let lane = left.trailing_zeros();
        left &= left.wrapping_sub(1);
        (lane < Mask::BITS).then_some(lane as usize)
    })
}

/// The mask of the first lanes.
pub(super) fn first_lanes(count: u32) -> Mask {
    if count >= Mask::BITS { Mask::MAX } else { (1 << count) - 1 }
}

impl Machine<'_> {
    /// The row of a scalar of an id.
    pub fn row(&self, id: u32, scalar: u32) -> Result<&[u64], Error> {
        let slot = self.module.slots.get(id as usize).copied().unwrap_or_default();
        if scalar >= slot.scalars {
            return Err(Error::Malformed { word: self.word, what: "an operand has too few scalars" });
        }
        let (lanes, at) = (self.lanes, (slot.base + scalar) as usize);
        let file = if slot.is_constant { &self.constants } else { &self.subgroup.registers };
        Ok(&file[at * lanes..(at + 1) * lanes])
    }

    /// The number of scalars of an id.
    pub fn scalars(&self, id: u32) -> u32 {
        self.module.slots.get(id as usize).map_or(0, |slot| slot.scalars)
    }

    /// The type of the first scalar of an id.
    pub fn scalar_of(&self, id: u32) -> Result<Scalar, Error> {
        let first = self.module.value_type(id, self.word)?.first();
        first.ok_or(Error::Malformed { word: self.word, what: "an operand has no scalars" })
    }

    /// Sets a scalar of an id in the active lanes.
    pub fn set_row(&mut self, id: u32, scalar: u32, row: &[u64]) -> Result<(), Error> {
        let slot = self.module.slots.get(id as usize).copied().unwrap_or_default();
        if scalar >= slot.scalars || slot.is_constant {
            return Err(Error::Malformed { word: self.word, what: "a result has too few scalars" });
        }
        let (lanes, at) = (self.lanes, (slot.base + scalar) as usize);
        let target = &mut self.subgroup.registers[at * lanes..(at + 1) * lanes];
        if self.active == first_lanes(lanes as u32) {
            target.copy_from_slice(row);
        } else {
            self::lanes(self.active).for_each(|lane| target[lane] = row[lane]);
        }
        Ok(())
    }

    /// Computes each scalar of the result from those of the operands; an operand of one scalar stands for all.
    pub fn map<const N: usize>(
        &mut self,
        instruction: &Instruction,
        operands: [u32; N],
        f: impl Fn([u64; N]) -> u64,
    ) -> Result<(), Error> {
        let mut out = std::mem::take(&mut self.scratch);
        for scalar in 0..self.scalars(instruction.result) {
            let mut rows: [&[u64]; N] = [&[]; N];
            for (row, id) in rows.iter_mut().zip(operands) {
                *row = self.row(id, if self.scalars(id) == 1 { 0 } else { scalar })?;
            }
            for lane in 0..self.lanes {
                out[lane] = f(rows.map(|row| row[lane]));
            }
            self.set_row(instruction.result, scalar, &out)?;
        }
        self.scratch = out;
        Ok(())
    }

    /// As [`Machine::map`], of two operands and the result's number of bits; `None` in an active lane is the fault of a
    /// division.
    pub fn try_map(
        &mut self,
        instruction: &Instruction,
        operands: [u32; 2],
        f: impl Fn(u64, u64) -> Option<u64>,
    ) -> Result<(), Error> {
        let mut out = vec![0; self.lanes];
        for scalar in 0..self.scalars(instruction.result) {
            for lane in lanes(self.active) {
                let [a, b] = [self.row(operands[0], scalar)?[lane], self.row(operands[1], scalar)?[lane]];
                let value = f(a, b);
                out[lane] = value.ok_or_else(|| self.fault(FaultKind::Division, instruction.op, lane))?;
            }
            self.set_row(instruction.result, scalar, &out)?;
        }
        Ok(())
    }

    /// Copies all scalars of an id to another one.
    pub fn copy(&mut self, from: u32, to: u32) -> Result<(), Error> {
        for scalar in 0..self.scalars(to) {
            let row = self.row(from, scalar)?.to_vec();
            self.set_row(to, scalar, &row)?;
        }
        Ok(())
    }

    /// The error of a fault at the current instruction.
    pub fn fault(&self, kind: FaultKind, op: Op, lane: usize) -> Error {
        Error::Fault(Box::new(Fault {
            kind,
            word: self.word,
            instruction: format!("{op:?}"),
            workgroup: self.workgroup.id,
            invocation: self.subgroup.first + lane as u32,
        }))
    }
}
