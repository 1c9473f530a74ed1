//! Follows a program's host function as data; its kernels run in the interpreter of SPIR-V.

use monopour::program::host::{BlockId, HostCode, HostOp, HostType, Register, RuntimeFunction};
use monopour::program::{GpuKernel, Kernel, Program, Variant};
use monopour::runtime::compute_scalar;
use monopour_testkit::spirv::{Counts, Launch, Module, Window, launch};
use std::collections::HashMap;

/// The most instructions of one dispatch, in subgroups: some minutes.
const MOST_INSTRUCTIONS: u64 = 1 << 30;
/// Bindings are rounded up to this, as the runtime does: the widest load has one whole element.
const GRANULARITY: u64 = 32;
/// What a fresh buffer holds: NaN in every float type, -1 as an integer.
const FRESH: u8 = 0xff;

/// How kernels run.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub subgroup_size: u32,
    pub seed: u64,
}

/// An input: its bytes, or a number's bits, and its sizes.
#[derive(Clone, Debug)]
pub struct Input {
    pub bytes: Vec<u8>,
    pub bits: u64,
    pub shape: Vec<u64>,
}

/// The end of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Bytes and sizes of the results.
    pub results: Vec<(Vec<u8>, Vec<u64>)>,
    /// By kernel, what its dispatches did.
    pub counts: Vec<Counts>,
    pub dispatches: u64,
    pub copies: u64,
}

struct Host<'a> {
    program: &'a Program,
    variant: &'a Variant,
    settings: Settings,
    modules: Vec<Option<Module>>,
    inputs: &'a [Input],
    registers: Vec<u64>,
    /// Buffers by handle, from 1: inputs, constants, then those of the run.
    buffers: Vec<Vec<u8>>,
    sizes: Vec<u64>,
    /// Bytes of transients, and the handles of those that took their place.
    requests: Vec<(u64, Option<u64>)>,
    pushed: Vec<Window>,
    scalars: Vec<u64>,
    message: Vec<u8>,
    shapes: HashMap<(usize, usize), u64>,
    given: HashMap<usize, Vec<u8>>,
    outcome: Outcome,
}

/// Runs the first variant of a program.
pub fn run(program: &Program, inputs: &[Input], settings: Settings) -> Result<Outcome, String> {
    let variant = &program.variants[0];
    let code = &variant.host_data;
    let mut registers: Vec<u64> = code.constants.iter().map(|constant| constant.bits).collect();
    registers.resize(code.registers_len(), 0);
    let mut host = Host {
        program,
        variant,
        settings,
        modules: variant.kernels.iter().map(|_| None).collect(),
        inputs,
        registers,
        buffers: vec![],
        sizes: vec![],
        requests: vec![],
        pushed: vec![],
        scalars: vec![],
        message: vec![],
        shapes: HashMap::new(),
        given: HashMap::new(),
        outcome: Outcome { counts: vec![Counts::default(); variant.kernels.len()], ..Outcome::default() },
    };
    for bytes in inputs.iter().map(|input| &*input.bytes).chain(program.constants.iter().map(|c| c.data.bytes())) {
        host.add(bytes.to_vec());
    }
    host.block(code, 0)?;
    host.finish()
}

impl Host<'_> {
    /// A buffer of these bytes; returns its handle.
    fn add(&mut self, mut bytes: Vec<u8>) -> u64 {
        self.sizes.push(bytes.len() as u64);
        bytes.resize(bytes.len().max(1).next_multiple_of(GRANULARITY as usize), FRESH);
        self.buffers.push(bytes);
        self.buffers.len() as u64
    }

    fn finish(mut self) -> Result<Outcome, String> {
        for (at, desc) in self.program.signature.results.iter().enumerate() {
            let shape: Vec<u64> =
                desc.shape.iter().enumerate().map(|(dim, size)| *self.shapes.get(&(at, dim)).unwrap_or(size)).collect();
            let mut bytes = self.given.remove(&at).ok_or_else(|| format!("result {at} was not set"))?;
            let length = desc.dtype.size_bytes() * shape.iter().product::<u64>();
            bytes.truncate(length as usize);
            self.outcome.results.push((bytes, shape));
        }
        Ok(self.outcome)
    }

    fn block(&mut self, code: &HostCode, id: BlockId) -> Result<(), String> {
        code.blocks[id as usize].ops.iter().try_for_each(|op| self.op(code, op))
    }

    fn read(&self, register: Register) -> u64 {
        self.registers[register as usize]
    }

    fn pass(&mut self, from: &[Register], to: &[Register]) {
        let values: Vec<u64> = from.iter().map(|register| self.read(*register)).collect();
        to.iter().zip(values).for_each(|(register, value)| self.registers[*register as usize] = value);
    }

    fn op(&mut self, code: &HostCode, op: &HostOp) -> Result<(), String> {
        let type_of = |register: Register| code.type_of(register).unwrap_or(HostType::WORD);
        match op {
            HostOp::Call { function, arguments, result } => {
                let arguments: Vec<u64> = arguments.iter().map(|register| self.read(*register)).collect();
                let value = self.call(*function, &arguments)?;
                if let Some(result) = result {
                    self.registers[*result as usize] = value;
                }
            }
            HostOp::Scalar { op, operands, result, .. } => {
                let values: Vec<u64> = operands.iter().map(|register| self.read(*register)).collect();
                let bits = compute_scalar(*op, (type_of(operands[0]), type_of(*result)), &values);
                self.registers[*result as usize] = bits.ok_or_else(|| format!("'{}' has no result", op.name()))?;
            }
            HostOp::If { condition, then, otherwise, results } => {
                let chosen = if self.read(*condition) != 0 { Some(*then) } else { *otherwise };
                if let Some(chosen) = chosen {
                    self.block(code, chosen)?;
                    self.pass(&code.blocks[chosen as usize].results, results);
                }
            }
            HostOp::For { .. } => self.count_up(code, op)?,
            HostOp::While { inits, before, after, results } => {
                let (first, second) = (&code.blocks[*before as usize], &code.blocks[*after as usize]);
                self.pass(inits, &first.arguments);
                loop {
                    self.block(code, *before)?;
                    if first.condition.is_none_or(|condition| self.read(condition) == 0) {
                        self.pass(&first.results, results);
                        break;
                    }
                    self.pass(&first.results, &second.arguments);
                    self.block(code, *after)?;
                    self.pass(&second.results, &first.arguments);
                }
            }
        }
        Ok(())
    }

    fn count_up(&mut self, code: &HostCode, op: &HostOp) -> Result<(), String> {
        let HostOp::For { is_unsigned, lower, upper, step, inits, body, results, .. } = op else { return Ok(()) };
        let ty = code.type_of(*lower).unwrap_or(HostType::WORD);
        let number = |bits: u64| {
            let unused = 64 - u32::from(ty.bits());
            if *is_unsigned { i128::from(bits) } else { i128::from((bits << unused) as i64 >> unused) }
        };
        let [mut at, end, step] = [*lower, *upper, *step].map(|register| number(self.read(register)));
        if step <= 0 {
            return Err("a loop has a step that is not positive".to_owned());
        }
        let block = &code.blocks[*body as usize];
        let (counter, carried) = block.arguments.split_at(1);
        self.pass(inits, carried);
        while at < end {
            self.registers[counter[0] as usize] = at as u64 & ty.mask();
            self.block(code, *body)?;
            self.pass(&block.results, carried);
            at += step;
        }
        self.pass(carried, results);
        Ok(())
    }

    /// A range of a buffer: -1 bytes are the rest.
    fn window(&self, handle: u64, offset: u64, bytes: u64) -> Result<Window, String> {
        let buffer = (handle as usize).checked_sub(1).filter(|at| *at < self.buffers.len());
        let buffer = buffer.ok_or_else(|| format!("buffer {handle} does not exist"))?;
        let bytes = if bytes == u64::MAX { self.sizes[buffer].saturating_sub(offset) } else { bytes };
        if offset.checked_add(bytes).is_none_or(|end| end > self.sizes[buffer]) {
            return Err(format!("{bytes} bytes at {offset} of a buffer of {}", self.sizes[buffer]));
        }
        Ok(Window { buffer, offset, bytes })
    }

    fn bytes(&mut self, window: Window) -> &mut [u8] {
        &mut self.buffers[window.buffer][window.offset as usize..(window.offset + window.bytes) as usize]
    }

    fn call(&mut self, function: RuntimeFunction, arguments: &[u64]) -> Result<u64, String> {
        use RuntimeFunction as F;
        let at = |index: usize| arguments[index];
        match function {
            F::Input => return Ok(at(0) + 1),
            F::Constant => return Ok(self.inputs.len() as u64 + at(0) + 1),
            F::Alloc | F::Arena => return Ok(self.add(vec![FRESH; at(0) as usize])),
            F::Request => self.requests.push((at(0), None)),
            F::Place => {
                // A buffer of its own.
                let (bytes, place) = self.requests[at(0) as usize];
                let place = place.unwrap_or_else(|| self.add(vec![FRESH; bytes as usize]));
                self.requests[at(0) as usize].1 = Some(place);
                return Ok(place);
            }
            F::InputScalar => return Ok(self.inputs[at(0) as usize].bits),
            F::InputDim => return Ok(self.inputs[at(0) as usize].shape[at(1) as usize]),
            F::Read => {
                let window = self.window(at(0), at(1), at(2))?;
                let mut word = [0; 8];
                word[..window.bytes as usize].copy_from_slice(self.bytes(window));
                return Ok(u64::from_le_bytes(word));
            }
            F::Ok => return Ok(1),
            F::Result => {
                let bytes = self.buffers[at(1) as usize - 1].clone();
                self.given.insert(at(0) as usize, bytes);
            }
            F::Free => self.buffers[at(0) as usize - 1].fill(FRESH),
            F::Arg => {
                let window = self.window(at(0), at(1), at(2))?;
                self.pushed.push(window);
            }
            F::Scalar => self.scalars.push(at(0)),
            F::Dispatch | F::DispatchOnce => self.dispatch(at(0) as usize, [at(1), at(2), at(3)])?,
            F::Copy => {
                let (from, to) = (self.window(at(0), at(1), at(4))?, self.window(at(2), at(3), at(4))?);
                let moved = self.bytes(from).to_vec();
                self.bytes(to).copy_from_slice(&moved);
                self.outcome.copies += u64::from(!moved.is_empty());
            }
            F::Fill => {
                let window = self.window(at(0), at(1), at(2))?;
                let pattern = (at(3) as u32).to_le_bytes();
                self.bytes(window).iter_mut().zip(pattern.iter().cycle()).for_each(|(byte, value)| *byte = *value);
            }
            F::ResultScalar => drop(self.given.insert(at(0) as usize, at(1).to_le_bytes().to_vec())),
            F::ResultDim => drop(self.shapes.insert((at(0) as usize, at(1) as usize), at(2))),
            F::Write => {
                let window = self.window(at(0), at(1), at(2))?;
                let word = at(3).to_le_bytes();
                self.bytes(window).copy_from_slice(&word[..window.bytes as usize]);
            }
            F::Message => self.message.extend(at(0).to_le_bytes().into_iter().filter(|byte| *byte != 0)),
            F::Trap => return Err(format!("trap {}: {}", at(0), String::from_utf8_lossy(&self.message))),
        }
        Ok(0)
    }

    fn dispatch(&mut self, number: usize, grid: [u64; 3]) -> Result<(), String> {
        let (mut windows, scalars) = (std::mem::take(&mut self.pushed), std::mem::take(&mut self.scalars));
        let Kernel::Gpu(kernel) = &self.variant.kernels[number] else {
            return Err("a kernel is native code".to_owned());
        };
        self.outcome.dispatches += 1;
        self.outcome.copies += u64::from(kernel.copies.count);
        if grid.contains(&0) {
            return Ok(());
        }
        if self.modules[number].is_none() {
            let module = Module::parse_for(&kernel.spirv, self.settings.subgroup_size)
                .map_err(|e| format!("kernel `{}`: {e}", kernel.name))?;
            self.modules[number] = Some(module);
        }
        for window in &mut windows {
            let rest = self.buffers[window.buffer].len() as u64 - window.offset;
            window.bytes = window.bytes.max(1).next_multiple_of(GRANULARITY).min(rest);
        }
        let numbers = kernel.numbers(&scalars);
        let in_buffer = kernel.takes_number_buffer();
        if in_buffer {
            let bytes = numbers.len().next_multiple_of(16);
            self.buffers.push(numbers.iter().copied().chain(std::iter::repeat(0)).take(bytes).collect());
            windows.push(Window { buffer: self.buffers.len() - 1, offset: 0, bytes: bytes as u64 });
        }
        let counts = self.interpret(kernel, number, &windows, (grid.map(|extent| extent as u32), &numbers));
        if in_buffer {
            self.buffers.pop();
        }
        self.outcome.counts[number].add(&counts?);
        Ok(())
    }

    fn interpret(
        &mut self,
        kernel: &GpuKernel,
        number: usize,
        windows: &[Window],
        (grid, immediates): ([u32; 3], &[u8]),
    ) -> Result<Counts, String> {
        let Settings { subgroup_size, seed } = self.settings;
        let seed = seed ^ self.outcome.dispatches << 32;
        let settings = Launch { grid, subgroup_size, seed, windows, immediates, limit: MOST_INSTRUCTIONS };
        let module = self.modules[number].as_ref().expect("it was parsed before");
        launch(module, &settings, &mut self.buffers).map_err(|e| format!("kernel `{}`: {e}", kernel.name))
    }
}
