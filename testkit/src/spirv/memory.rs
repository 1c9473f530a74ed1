//! Addresses, loads, stores, atomics: every access is checked, noted and counted.
//!
//! A pointer is the position of a variable, and bytes from its beginning in the low [`OFFSET_BITS`] bits. An offset
//! that would be negative wraps to one outside of any memory.

use spirv::{Op, StorageClass};

use super::error::{Error, FaultKind, Place};
use super::integers::{mask, signed};
use super::module::{OFFSET_BITS, Variable};
use super::reader::Instruction;
use super::shadow::{Access, Moment, Other};
use super::state::Machine;
use super::types::{Leaf, Scalar, Type, TypeInfo};
use super::values::lanes;

const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;

/// An access of the active lanes.
pub(super) struct Accessed {
    /// The variable's position.
    pub variable: usize,
    /// By lane: bytes from the variable's beginning; 0 for those that do not take part.
    pub offsets: Vec<u64>,
    /// Bytes of one lane's access.
    pub bytes: u64,
}

impl Machine<'_> {
    /// Instructions on memory; false for another one.
    pub fn access(&mut self, instruction: &Instruction) -> Result<bool, Error> {
        match instruction.op {
            Op::Load => self.load(instruction)?,
            Op::Store => self.store(instruction.operand(0)?, instruction.operand(1)?, Op::Store)?,
            Op::AccessChain | Op::InBoundsAccessChain => self.chain(instruction)?,
            Op::ArrayLength => self.length(instruction)?,
            Op::AtomicLoad | Op::AtomicStore | Op::AtomicExchange | Op::AtomicCompareExchange => {
                self.atomic(instruction)?;
            }
            Op::AtomicIAdd | Op::AtomicISub | Op::AtomicAnd | Op::AtomicOr | Op::AtomicXor => {
                self.atomic(instruction)?
            }
            Op::AtomicSMin | Op::AtomicUMin | Op::AtomicSMax | Op::AtomicUMax => self.atomic(instruction)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The type that a pointer points to.
    pub fn pointee(&self, id: u32) -> Result<(u32, &TypeInfo), Error> {
        match self.module.value_type(id, self.word)?.ty {
            Type::Pointer(pointee) => Ok((pointee, self.module.info(pointee, self.word)?)),
            _ => Err(Error::Malformed { word: self.word, what: "an operand is no pointer" }),
        }
    }

    fn chain(&mut self, instruction: &Instruction) -> Result<(), Error> {
        let module = self.module;
        let base = instruction.operand(0)?;
        let mut deltas = vec![0i64; self.lanes];
        let mut ty = self.pointee(base)?.0;
        for index in &instruction.operands[1..] {
            let wrong = Error::Malformed { word: self.word, what: "an index has nothing to index" };
            ty = match &module.info(ty, self.word)?.ty {
                Type::Struct(members) => {
                    let member = module.constant(*index, self.word)?;
                    let (member, offset) = *members.get(member as usize).ok_or(wrong)?;
                    deltas.iter_mut().for_each(|delta| *delta = delta.wrapping_add(offset.into()));
                    member
                }
                Type::Array(element, _, stride) | Type::RuntimeArray(element, stride) => {
                    let bits = self.scalar_of(*index)?.bits();
                    let row = self.row(*index, 0)?;
                    let step = |index: u64| signed(bits, index).wrapping_mul(i64::from(*stride));
                    deltas.iter_mut().zip(row).for_each(|(delta, index)| *delta = delta.wrapping_add(step(*index)));
                    *element
                }
                // An element that the lane holds.
                Type::Matrix(matrix) => {
                    let bits = self.scalar_of(*index)?.bits();
                    let (row, step) = (self.row(*index, 0)?, i64::from(matrix.scalar.bytes()));
                    let moved = |delta: &mut i64, index: u64| {
                        *delta = delta.wrapping_add(signed(bits, index).wrapping_mul(step));
                    };
                    deltas.iter_mut().zip(row).for_each(|(delta, index)| moved(delta, *index));
                    self.pointee(instruction.result)?.0
                }
                _ => return Err(wrong),
            };
        }
        let moved = |(pointer, delta): (&u64, &i64)| {
            pointer & !OFFSET_MASK | (pointer & OFFSET_MASK).wrapping_add(*delta as u64) & OFFSET_MASK
        };
        let row: Vec<u64> = self.row(base, 0)?.iter().zip(&deltas).map(moved).collect();
        self.set_row(instruction.result, 0, &row)
    }

    /// The number of elements of a runtime array: the rest of the window.
    fn length(&mut self, instruction: &Instruction) -> Result<(), Error> {
        let (base, member) = (instruction.operand(0)?, instruction.operand(1)? as usize);
        let wrong = Error::Malformed { word: self.word, what: "no runtime array has this length" };
        let Type::Struct(members) = &self.pointee(base)?.1.ty else { return Err(wrong) };
        let (array, offset) = *members.get(member).ok_or(wrong.clone())?;
        let Type::RuntimeArray(_, stride) = self.module.info(array, self.word)?.ty else { return Err(wrong) };
        let pointer = self.row(base, 0)?[0];
        let size = self.size((pointer >> OFFSET_BITS) as usize);
        let length = size.saturating_sub(offset.into()) / u64::from(stride.max(1));
        self.set_row(instruction.result, 0, &vec![length; self.lanes])
    }

    /// The variable and the offsets of an access, all within bounds.
    fn accessed(&self, pointer: u32, info: &TypeInfo, op: Op) -> Result<Accessed, Error> {
        let bytes = info.leaves.iter().map(|leaf| leaf.offset + leaf.scalar.bytes()).max().unwrap_or(0);
        let row = self.row(pointer, 0)?;
        let first = lanes(self.active).next().unwrap_or(0);
        let (variable, _) = place_of(row[first]);
        let mut accessed = Accessed { variable, offsets: vec![0; self.lanes], bytes: bytes.into() };
        if variable >= self.module.variables.len() || bytes == 0 {
            return Err(Error::Malformed { word: self.word, what: "an access has no variable or no size" });
        }
        use StorageClass as S;
        let class = self.module.variables[variable].class;
        let is_invocation = matches!(class, S::Function | S::Private | S::Input);
        let is_common = matches!(class, S::StorageBuffer | S::Uniform | S::PushConstant | S::Workgroup);
        if !is_invocation && (!is_common || matches!(info.ty, Type::Matrix(_))) {
            return Err(Error::Unsupported { word: self.word, instruction: format!("{op:?} of {class:?}") });
        }
        for lane in lanes(self.active) {
            let (own, offset) = place_of(row[lane]);
            if own != variable {
                return Err(Error::Unsupported { word: self.word, instruction: format!("{op:?} of two variables") });
            }
            accessed.offsets[lane] = offset;
        }
        self.check_bounds(&accessed, op)?;
        Ok(accessed)
    }

    /// Whether the active lanes stay in the variable.
    pub fn check_bounds(&self, accessed: &Accessed, op: Op) -> Result<(), Error> {
        let size = self.size(accessed.variable);
        let outside = |lane: &usize| accessed.offsets[*lane] + accessed.bytes > size;
        let Some(lane) = lanes(self.active).find(outside) else { return Ok(()) };
        let place = place(&self.module.variables[accessed.variable], accessed.variable);
        Err(self.fault(FaultKind::OutOfBounds { place, offset: accessed.offsets[lane], size }, op, lane))
    }

    /// The first byte of a variable in its buffer, or among those of its class.
    pub fn base(&self, variable: &Variable) -> u64 {
        match variable.class {
            StorageClass::StorageBuffer => self.launch.windows[variable.number as usize].offset,
            _ => variable.base.into(),
        }
    }

    /// Bytes of a variable.
    fn size(&self, variable: usize) -> u64 {
        let Some(variable) = self.module.variables.get(variable) else { return 0 };
        match variable.class {
            StorageClass::StorageBuffer | StorageClass::Uniform => {
                self.launch.windows.get(variable.number as usize).map_or(0, |window| window.bytes)
            }
            StorageClass::PushConstant => self.launch.immediates.len() as u64,
            _ => self.module.types.get(&variable.ty).map_or(0, |info| info.bytes.into()),
        }
    }

    /// The memory that a variable is in, and where it begins there.
    pub fn memory(&self, variable: &Variable, lane: usize) -> (&[u8], usize) {
        match variable.class {
            StorageClass::StorageBuffer | StorageClass::Uniform => {
                let window = self.launch.windows[variable.number as usize];
                (&self.buffers[window.buffer], window.offset as usize)
            }
            StorageClass::PushConstant => (self.launch.immediates, 0),
            StorageClass::Workgroup => (&self.workgroup.memory, variable.base as usize),
            _ => {
                let own = lane * self.module.private_bytes as usize;
                (&self.subgroup.private, own + variable.base as usize)
            }
        }
    }

    pub fn memory_mut(&mut self, variable: &Variable, lane: usize) -> (&mut [u8], usize) {
        match variable.class {
            StorageClass::StorageBuffer => {
                let window = self.launch.windows[variable.number as usize];
                (&mut self.buffers[window.buffer], window.offset as usize)
            }
            StorageClass::Workgroup => (&mut self.workgroup.memory, variable.base as usize),
            _ => {
                let own = lane * self.module.private_bytes as usize;
                (&mut self.subgroup.private, own + variable.base as usize)
            }
        }
    }

    fn load(&mut self, instruction: &Instruction) -> Result<(), Error> {
        let module = self.module;
        let info = module.info(instruction.ty, self.word)?;
        let pointer = instruction.operand(0)?;
        let accessed = self.accessed(pointer, info, instruction.op)?;
        let variable = &module.variables[accessed.variable];
        if variable.class == StorageClass::Input {
            return self.load_builtin(instruction, info, accessed.variable, pointer);
        }
        self.note(&accessed, Access::Load, instruction.op, info)?;
        for (scalar, leaf) in info.leaves.iter().enumerate() {
            let mut out = vec![0; self.lanes];
            for lane in lanes(self.active) {
                let (memory, base) = self.memory(variable, lane);
                out[lane] = read(memory, base + accessed.offsets[lane] as usize, *leaf);
            }
            self.set_row(instruction.result, scalar as u32, &out)?;
        }
        Ok(())
    }

    /// Loads an input, or one component of it.
    fn load_builtin(
        &mut self,
        instruction: &Instruction,
        info: &TypeInfo,
        variable: usize,
        pointer: u32,
    ) -> Result<(), Error> {
        let number = self.module.variables[variable].number;
        let first = self.row(pointer, 0)?[lanes(self.active).next().unwrap_or(0)] & OFFSET_MASK;
        for scalar in 0..info.leaves.len() as u32 {
            let row = self.builtin(number, (first / 4) as u32 + scalar)?;
            self.set_row(instruction.result, scalar, &row)?;
        }
        Ok(())
    }

    /// Stores a value through a pointer, on behalf of `op`.
    pub fn store(&mut self, pointer: u32, value: u32, op: Op) -> Result<(), Error> {
        let module = self.module;
        let info = module.info(self.pointee(pointer)?.0, self.word)?;
        let accessed = self.accessed(pointer, info, op)?;
        let variable = &module.variables[accessed.variable];
        if matches!(variable.class, StorageClass::Input | StorageClass::Uniform | StorageClass::PushConstant) {
            return Err(Error::Malformed { word: self.word, what: "a store is to memory that is read only" });
        }
        self.note(&accessed, Access::Store, op, info)?;
        for (scalar, leaf) in info.leaves.iter().enumerate() {
            let row = self.row(value, scalar as u32)?.to_vec();
            for lane in lanes(self.active) {
                let (memory, base) = self.memory_mut(variable, lane);
                write(memory, base + accessed.offsets[lane] as usize, *leaf, row[lane]);
            }
        }
        Ok(())
    }

    /// As [`Machine::check_races`], and counts the access.
    fn note(&mut self, accessed: &Accessed, access: Access, op: Op, info: &TypeInfo) -> Result<(), Error> {
        self.check_races(accessed, access, op)?;
        let variable = &self.module.variables[accessed.variable];
        let addresses = || -> Vec<u64> {
            let base = self.base(variable);
            lanes(self.active).map(|lane| base + accessed.offsets[lane]).collect()
        };
        match variable.class {
            StorageClass::StorageBuffer => {
                let mut addresses = addresses();
                if !addresses.is_sorted() {
                    addresses.sort_unstable();
                }
                match access {
                    Access::Load => self.counts.loads.count(&addresses, accessed.bytes),
                    Access::Store => self.counts.stores.count(&addresses, accessed.bytes),
                    Access::Atomic => self.counts.atomics += addresses.len() as u64,
                }
            }
            StorageClass::Workgroup => {
                let addresses = addresses();
                let elements = info.leaves.len() as u64;
                match access {
                    Access::Load => self.counts.shared_loads.count(&addresses, accessed.bytes, elements),
                    _ => self.counts.shared_stores.count(&addresses, accessed.bytes, elements),
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Notes an access where invocations may meet; a race is a fault, and a load of what nobody wrote.
    pub fn check_races(&mut self, accessed: &Accessed, access: Access, op: Op) -> Result<(), Error> {
        let variable = &self.module.variables[accessed.variable];
        let is_workgroup = variable.class == StorageClass::Workgroup;
        let is_noted =
            variable.class == StorageClass::StorageBuffer && self.is_shadowed.get(&variable.number) == Some(&true);
        if !is_workgroup && !is_noted {
            return Ok(());
        }
        let (base, start) = (self.base(variable), self.workgroup.shared.1);
        for lane in lanes(self.active) {
            let offset = accessed.offsets[lane];
            let range = (base + offset, accessed.bytes);
            let is_read = is_workgroup && access != Access::Store;
            if is_read && !self.workgroup.shadow.is_written(range.0, range.1, start) {
                return Err(self.fault(FaultKind::Unwritten { offset }, op, lane));
            }
            self.meet_others(accessed.variable, access, range, (op, lane))?;
        }
        Ok(())
    }

    /// Notes an access of one lane; a race is a fault.
    fn meet_others(
        &mut self,
        variable: usize,
        access: Access,
        range: (u64, u64),
        (op, lane): (Op, usize),
    ) -> Result<(), Error> {
        let own = &self.module.variables[variable];
        let invocation = self.workgroup.first_invocation + self.subgroup.first + lane as u32;
        let (now, start, shadow, base) = match own.class {
            StorageClass::Workgroup => {
                let (now, start) = self.workgroup.shared;
                (now, start, Some(&mut self.workgroup.shadow), u64::from(own.base))
            }
            _ => {
                let window = self.launch.windows[own.number as usize];
                let (now, start) = self.workgroup.storage;
                (now, start, self.shadows.get_mut(&window.buffer), window.offset)
            }
        };
        let Some(shadow) = shadow else { return Ok(()) };
        shadow.access(access, range, Moment { invocation, epoch: now, start }).map_err(|Other(other)| {
            let place = place(own, variable);
            self.fault(FaultKind::Race { place, offset: range.0 - base, other }, op, lane)
        })
    }

    /// Atomics, lane by lane.
    fn atomic(&mut self, instruction: &Instruction) -> Result<(), Error> {
        let module = self.module;
        let op = instruction.op;
        let pointer = instruction.operand(0)?;
        let info = module.info(self.pointee(pointer)?.0, self.word)?;
        let [leaf] = info.leaves[..] else { return Err(instruction.unsupported()) };
        let accessed = self.accessed(pointer, info, op)?;
        let variable = &module.variables[accessed.variable];
        if !matches!(variable.class, StorageClass::StorageBuffer | StorageClass::Workgroup) {
            return Err(instruction.unsupported());
        }
        self.note(&accessed, Access::Atomic, op, info)?;
        let value = match op {
            Op::AtomicLoad => None,
            Op::AtomicCompareExchange => Some(instruction.operand(4)?),
            _ => Some(instruction.operand(3)?),
        };
        let comparator = if op == Op::AtomicCompareExchange { Some(instruction.operand(5)?) } else { None };
        let row = |id: Option<u32>| id.map_or(Ok(vec![0; self.lanes]), |id| self.row(id, 0).map(<[u64]>::to_vec));
        let (values, comparators) = (row(value)?, row(comparator)?);
        let mut out = vec![0; self.lanes];
        for lane in lanes(self.active) {
            let at = accessed.offsets[lane] as usize;
            let (memory, base) = self.memory_mut(variable, lane);
            out[lane] = read(memory, base + at, leaf);
            let new = exchanged(op, leaf.scalar, [out[lane], values[lane], comparators[lane]]);
            write(memory, base + at, leaf, new);
        }
        if instruction.result == 0 { Ok(()) } else { self.set_row(instruction.result, 0, &out) }
    }
}

/// What an atomic leaves in memory: of the old value, the operand and the comparator.
fn exchanged(op: Op, scalar: Scalar, [old, value, comparator]: [u64; 3]) -> u64 {
    let bits = scalar.bits();
    let (x, y) = (signed(bits, old), signed(bits, value));
    let new = match op {
        Op::AtomicLoad => old,
        Op::AtomicCompareExchange if old != comparator => old,
        Op::AtomicIAdd => old.wrapping_add(value),
        Op::AtomicISub => old.wrapping_sub(value),
        Op::AtomicAnd => old & value,
        Op::AtomicOr => old | value,
        Op::AtomicXor => old ^ value,
        Op::AtomicSMin => x.min(y) as u64,
        Op::AtomicSMax => x.max(y) as u64,
        Op::AtomicUMin => old.min(value),
        Op::AtomicUMax => old.max(value),
        _ => value,
    };
    new & mask(bits)
}

/// The variable of a pointer, and the bytes from its beginning.
pub(super) fn place_of(pointer: u64) -> (usize, u64) {
    ((pointer >> OFFSET_BITS) as usize, pointer & OFFSET_MASK)
}

/// The name of a variable's memory.
pub(super) fn place(variable: &Variable, position: usize) -> Place {
    match variable.class {
        StorageClass::StorageBuffer | StorageClass::Uniform => Place::Binding(variable.number),
        StorageClass::PushConstant => Place::Immediates,
        StorageClass::Workgroup => Place::Workgroup(position as u32),
        _ => Place::Private(position as u32),
    }
}

pub(super) fn read(memory: &[u8], at: usize, leaf: Leaf) -> u64 {
    let (at, bytes) = (at + leaf.offset as usize, leaf.scalar.bytes() as usize);
    let mut word = [0; 8];
    word[..bytes].copy_from_slice(&memory[at..at + bytes]);
    let value = u64::from_le_bytes(word);
    if leaf.scalar == Scalar::Bool { u64::from(value != 0) } else { value }
}

pub(super) fn write(memory: &mut [u8], at: usize, leaf: Leaf, value: u64) {
    let (at, bytes) = (at + leaf.offset as usize, leaf.scalar.bytes() as usize);
    memory[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
}
