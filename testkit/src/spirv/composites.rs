//! Vectors, arrays and structs: values are lists of scalars.

use spirv::Op;

use super::error::Error;
use super::reader::Instruction;
use super::state::Machine;
use super::types::Type;
use super::values::UNDEFINED;

impl Machine<'_> {
    /// Instructions on composites; false for another one.
    pub fn composite(&mut self, instruction: &Instruction) -> Result<bool, Error> {
        match instruction.op {
            // One number for all elements.
            Op::CompositeConstruct if self.is_matrix(instruction.result) => {
                let row = self.row(instruction.operand(0)?, 0)?.to_vec();
                (0..self.scalars(instruction.result)).try_for_each(|at| self.set_row(instruction.result, at, &row))?;
            }
            Op::CompositeConstruct => {
                let mut at = 0;
                for id in &instruction.operands {
                    for scalar in 0..self.scalars(*id) {
                        let row = self.row(*id, scalar)?.to_vec();
                        self.set_row(instruction.result, at, &row)?;
                        at += 1;
                    }
                }
            }
            Op::CompositeExtract => {
                let from = instruction.operand(0)?;
                let first = self.position(from, &instruction.operands[1..])?;
                for scalar in 0..self.scalars(instruction.result) {
                    let row = self.row(from, first + scalar)?.to_vec();
                    self.set_row(instruction.result, scalar, &row)?;
                }
            }
            Op::CompositeInsert => {
                let [part, into] = [instruction.operand(0)?, instruction.operand(1)?];
                let first = self.position(into, &instruction.operands[2..])?;
                self.copy(into, instruction.result)?;
                for scalar in 0..self.scalars(part) {
                    let row = self.row(part, scalar)?.to_vec();
                    self.set_row(instruction.result, first + scalar, &row)?;
                }
            }
            Op::VectorShuffle => {
                let [a, b] = [instruction.operand(0)?, instruction.operand(1)?];
                let count = self.scalars(a);
                for (at, from) in instruction.operands[2..].iter().enumerate() {
                    let row = match from.checked_sub(count) {
                        _ if *from == u32::MAX => vec![UNDEFINED; self.lanes],
                        None => self.row(a, *from)?.to_vec(),
                        Some(from) => self.row(b, from)?.to_vec(),
                    };
                    self.set_row(instruction.result, at as u32, &row)?;
                }
            }
            Op::VectorExtractDynamic | Op::VectorInsertDynamic => self.dynamic(instruction)?,
            Op::Undef => {
                let row = vec![UNDEFINED; self.lanes];
                (0..self.scalars(instruction.result)).try_for_each(|at| self.set_row(instruction.result, at, &row))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub fn is_matrix(&self, id: u32) -> bool {
        self.module.value_type(id, self.word).is_ok_and(|info| matches!(info.ty, Type::Matrix(_)))
    }

    /// A component of a vector by a number that is no constant.
    fn dynamic(&mut self, instruction: &Instruction) -> Result<(), Error> {
        if instruction.op == Op::VectorExtractDynamic {
            let [vector, index] = [instruction.operand(0)?, instruction.operand(1)?];
            let at = self.row(index, 0)?.to_vec();
            let mut out = vec![UNDEFINED; self.lanes];
            for scalar in 0..self.scalars(vector) {
                let row = self.row(vector, scalar)?;
                (0..self.lanes).filter(|lane| at[*lane] == u64::from(scalar)).for_each(|lane| out[lane] = row[lane]);
            }
            self.set_row(instruction.result, 0, &out)?;
            return Ok(());
        }
        let operand = |index: usize| instruction.operand(index);
        let [vector, part, index] = [operand(0)?, operand(1)?, operand(2)?];
        let (at, value) = (self.row(index, 0)?.to_vec(), self.row(part, 0)?.to_vec());
        for scalar in 0..self.scalars(vector) {
            let mut row = self.row(vector, scalar)?.to_vec();
            (0..self.lanes).filter(|l| at[*l] == u64::from(scalar)).for_each(|lane| row[lane] = value[lane]);
            self.set_row(instruction.result, scalar, &row)?;
        }
        Ok(())
    }

    /// The position of the first scalar of a part.
    fn position(&self, id: u32, indices: &[u32]) -> Result<u32, Error> {
        let module = self.module;
        let missing = Error::Malformed { word: self.word, what: "a composite lacks a part" };
        let mut info = module.value_type(id, self.word)?;
        let mut first = 0;
        for index in indices {
            let part = match &info.ty {
                Type::Array(element, count, _) if index < count => {
                    let element = module.info(*element, self.word)?;
                    first += index * element.leaves.len() as u32;
                    element
                }
                Type::Struct(members) => {
                    let (member, _) = members.get(*index as usize).ok_or(missing.clone())?;
                    for (before, _) in &members[..*index as usize] {
                        first += module.info(*before, self.word)?.leaves.len() as u32;
                    }
                    module.info(*member, self.word)?
                }
                _ => return Err(missing),
            };
            info = part;
        }
        Ok(first)
    }
}
