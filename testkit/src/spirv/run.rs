//! Blocks of a function, in lock step.
//!
//! Of the blocks in which lanes are, the first of the module's order runs next, with the lanes that are there. Merge
//! blocks come after what they merge, so that lanes wait there for the others.

use spirv::{Op, StorageClass};

use super::error::{Error, FaultKind};
use super::reader::Instruction;
use super::state::{Frame, Machine, Mask, Stop};
use super::values::{UNDEFINED, lanes};

/// The block of a lane that has left the function.
const LEFT: u32 = u32::MAX;
/// Calls within calls, a bound against recursion.
const MOST_CALLS: u32 = 64;

impl Machine<'_> {
    /// Puts the subgroup at the beginning of the entry point.
    pub fn start_subgroup(&mut self) -> Result<(), Error> {
        self.subgroup.registers.fill(UNDEFINED);
        self.subgroup.private.fill(0xa5);
        self.active = self.subgroup.exists;
        self.subgroup.frame = self.enter(self.module.entry, 0, 0);
        self.initialize(usize::MAX)?;
        self.initialize(self.module.entry)
    }

    /// A frame at the beginning of a function, for the active lanes.
    fn enter(&self, function: usize, result: u32, depth: u32) -> Frame {
        let mut blocks = vec![LEFT; self.lanes];
        lanes(self.active).for_each(|lane| blocks[lane] = 0);
        Frame { function, blocks, previous: vec![LEFT; self.lanes], result, depth, ..Frame::default() }
    }

    /// Gives the variables of a function their first values.
    fn initialize(&mut self, function: usize) -> Result<(), Error> {
        for variable in self.module.variables.iter().filter(|v| v.function == function) {
            let is_own = matches!(variable.class, StorageClass::Function | StorageClass::Private);
            if let Some(initializer) = variable.initializer.filter(|_| is_own) {
                self.store(variable.id, initializer, Op::Variable)?;
            }
        }
        Ok(())
    }

    /// Runs the subgroup to the next barrier or the end.
    pub fn resume(&mut self) -> Result<Stop, Error> {
        let mut frame = std::mem::take(&mut self.subgroup.frame);
        let stop = self.run(&mut frame);
        self.subgroup.frame = frame;
        stop
    }

    fn run(&mut self, frame: &mut Frame) -> Result<Stop, Error> {
        let module = self.module;
        loop {
            if frame.at == 0 {
                let Some(block) = frame.blocks.iter().copied().filter(|block| *block != LEFT).min() else {
                    return Ok(Stop::End);
                };
                let here = |(_, at): &(usize, &u32)| **at == block;
                frame.active = frame.blocks.iter().enumerate().filter(here).fold(0, |mask, (lane, _)| mask | 1 << lane);
                frame.block = block;
                self.active = frame.active;
                frame.at = self.phis(frame)?;
            }
            let block = module.functions[frame.function].blocks.get(frame.block as usize);
            let block = block.ok_or(Error::Malformed { word: self.word, what: "a block does not exist" })?;
            self.active = frame.active;
            while let Some(instruction) = block.code.get(frame.at) {
                self.word = instruction.word;
                self.counts.instructions += 1;
                if self.counts.instructions > self.launch.limit {
                    return Err(Error::Steps { limit: self.launch.limit });
                }
                frame.at += 1;
                if let Some(stop) = self.step(instruction, frame)? {
                    return Ok(stop);
                }
                if frame.at == 0 {
                    break;
                }
            }
            if frame.at != 0 {
                return Err(Error::Malformed { word: self.word, what: "a block has no end" });
            }
        }
    }

    /// Sets the phis of a block, all at once; returns their number.
    fn phis(&mut self, frame: &Frame) -> Result<usize, Error> {
        let module = self.module;
        let function = &module.functions[frame.function];
        let Some(block) = function.blocks.get(frame.block as usize) else { return Ok(0) };
        let count = block.code.iter().take_while(|i| i.op == Op::Phi).count();
        let mut rows = vec![];
        for phi in &block.code[..count] {
            self.word = phi.word;
            for scalar in 0..self.scalars(phi.result) {
                let mut row = vec![0; self.lanes];
                for lane in lanes(self.active) {
                    let from = function.blocks.get(frame.previous[lane] as usize).map(|block| block.label);
                    let pair = phi.operands.chunks_exact(2).find(|pair| Some(pair[1]) == from);
                    let pair = pair.ok_or(Error::Malformed { word: phi.word, what: "a phi lacks a block" })?;
                    row[lane] = self.row(pair[0], scalar)?[lane];
                }
                rows.push((phi.result, scalar, row));
            }
        }
        rows.iter().try_for_each(|(id, scalar, row)| self.set_row(*id, *scalar, row))?;
        // A block of phis alone has an end, too.
        Ok(count)
    }

    /// Runs an instruction; control flow sets the lanes' blocks and ends the block.
    fn step(&mut self, instruction: &Instruction, frame: &mut Frame) -> Result<Option<Stop>, Error> {
        let operand = |index: usize| instruction.operand(index);
        match instruction.op {
            Op::Branch => {
                let target = operand(0)?;
                self.go(frame, self.active, target)?;
            }
            Op::BranchConditional => {
                let condition = self.row(operand(0)?, 0)?;
                let taken =
                    lanes(self.active).filter(|lane| condition[*lane] != 0).fold(0, |mask, lane| mask | 1 << lane);
                self.go(frame, taken, operand(1)?)?;
                self.go(frame, self.active & !taken, operand(2)?)?;
            }
            Op::Switch => self.switch(instruction, frame)?,
            Op::Return | Op::Kill => self.leave(frame),
            Op::ReturnValue => {
                self.copy(operand(0)?, frame.result)?;
                self.leave(frame);
            }
            Op::Unreachable => return Err(Error::Malformed { word: self.word, what: "the unreachable is reached" }),
            Op::FunctionCall => self.call(instruction, frame.depth)?,
            Op::ControlBarrier => return self.barrier(instruction, frame),
            Op::SelectionMerge | Op::LoopMerge | Op::MemoryBarrier | Op::Line | Op::NoLine | Op::Nop => {}
            _ => self.compute(instruction)?,
        }
        Ok(None)
    }

    fn go(&self, frame: &mut Frame, mask: Mask, label: u32) -> Result<(), Error> {
        let target = self.module.functions[frame.function].labels.get(&label).copied();
        let target = target.ok_or(Error::Malformed { word: self.word, what: "a branch has no target" })?;
        for lane in lanes(mask) {
            frame.previous[lane] = frame.block;
            frame.blocks[lane] = target;
        }
        frame.at = 0;
        Ok(())
    }

    fn leave(&self, frame: &mut Frame) {
        lanes(self.active).for_each(|lane| frame.blocks[lane] = LEFT);
        frame.at = 0;
    }

    fn switch(&mut self, instruction: &Instruction, frame: &mut Frame) -> Result<(), Error> {
        let selector = instruction.operand(0)?;
        if self.scalar_of(selector)?.bits() > 32 {
            return Err(instruction.unsupported());
        }
        let values = self.row(selector, 0)?.to_vec();
        let cases = instruction.operands.get(2..).unwrap_or_default();
        for lane in lanes(self.active) {
            let case = cases.chunks_exact(2).find(|case| u64::from(case[0]) == values[lane]);
            let target = case.map_or(instruction.operand(1)?, |case| case[1]);
            self.go(frame, 1 << lane, target)?;
        }
        Ok(())
    }

    /// Runs a function to its end.
    fn call(&mut self, instruction: &Instruction, depth: u32) -> Result<(), Error> {
        let id = instruction.operand(0)?;
        let position = self.module.functions.iter().position(|f| f.id == id);
        let position = position.ok_or(Error::Malformed { word: self.word, what: "a call has no function" })?;
        if depth >= MOST_CALLS {
            return Err(Error::Malformed { word: self.word, what: "calls are too deep" });
        }
        for (at, parameter) in self.module.functions[position].parameters.iter().enumerate() {
            self.copy(instruction.operand(at + 1)?, *parameter)?;
        }
        self.initialize(position)?;
        let active = self.active;
        let mut frame = self.enter(position, instruction.result, depth + 1);
        self.run(&mut frame)?;
        self.active = active;
        Ok(())
    }

    fn barrier(&mut self, instruction: &Instruction, frame: &Frame) -> Result<Option<Stop>, Error> {
        let constant = |index: usize| {
            instruction
                .operand(index)
                .and_then(|id| self.module.constant(id, instruction.word))
                .map(|value| value as u32)
        };
        let kind = (constant(0)?, constant(1)?, constant(2)?);
        if frame.depth > 0 || kind.0 != spirv::Scope::Workgroup as u32 {
            return Err(instruction.unsupported());
        }
        if self.active != self.subgroup.exists {
            let lane = lanes(self.active).next().unwrap_or(0);
            return Err(self.fault(FaultKind::DivergentBarrier, instruction.op, lane));
        }
        Ok(Some(Stop::Barrier { word: instruction.word, kind }))
    }
}
