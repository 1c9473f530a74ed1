//! What a run of the scheduled host function copies and allocates, from its data form.
//!
//! ```text
//! for %i = 0 to 6 { copy(%x, 0, %y, %i * 20, 20) }      one site: 6 times, 120 bytes
//! if %c { copy(%x, 0, %y, 0, 80) }                      one site: as often as a run comes by, if %c is not known
//! ```
//! The function is executed on known numbers: constants, and the sizes and scalars of the inputs as far as they are given.
//! A branch on an unknown number is followed both ways, a loop of unknown length once; what they execute has unknown times.
//! Requires: verified host code. Ensures: a site whose times and bytes are known counts what every run on such inputs counts.
//! Limits: a loop of more than [`MOST_STEPS`] steps is followed once, with its trips as times.

use monopour_program::host::{BlockId, HostCode, HostOp, HostType, Register, RuntimeFunction, ScalarOp};
use monopour_program::{Kernel, Program, Variant};
use monopour_runtime::{compute_scalar, planned_bytes};
use std::collections::BTreeMap;

/// Ops that are executed one by one: some 10 ms.
const MOST_STEPS: u64 = 200_000;
/// Granularity of a GPU's copy command.
const WORD_BYTES: u64 = 4;

/// The sizes and value of an input, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownInput {
    /// Sizes of the dimensions.
    pub shape: Vec<Option<u64>>,
    /// The bits of a scalar.
    pub bits: Option<u64>,
}

/// A buffer of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Buffer {
    Input(u64),
    Constant(u64),
    Arena,
    /// The one of the transients that a run plans.
    Planned,
    /// Made by the call of this number, in the order of execution.
    Made(u32),
}

/// How often a call is executed, and with how many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Site {
    pub kind: Kind,
    /// Executions in a run; `None` if a run decides.
    pub times: Option<u64>,
    /// Bytes each time; `None` if they are not known or differ.
    pub bytes: Option<u64>,
    /// Bytes of all times together.
    pub total_bytes: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A copy by the host function.
    Copy,
    /// A dispatch of a kernel that copies.
    Dispatch {
        kernel: usize,
    },
    Alloc,
}

/// What a run does.
#[derive(Clone, Debug, Default)]
pub(super) struct Account {
    /// In the order of the host function's text.
    pub sites: Vec<Site>,
    /// By result: the site of its allocation, or the input that it is; `None` if a run decides, and for a scalar.
    pub results: Vec<Option<Owner>>,
    /// Most bytes at once of allocations that are no results; `None` if one is not known.
    pub pool_bytes: Option<u64>,
}

/// Where the memory of a result comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The position of its allocation in [`Account::sites`].
    Site(usize),
    Input(u64),
}

/// Follows the host function of a variant; `None` where it has no data form.
pub(super) fn follow(program: &Program, variant: &Variant, inputs: &[KnownInput]) -> Option<Account> {
    let code = &variant.host_data;
    if code.is_empty() {
        return None;
    }
    let known = code.constants.iter().map(|constant| Some(constant.bits));
    let mut run = Run {
        code,
        variant,
        program,
        inputs,
        registers: known.chain(code.registers.iter().map(|_| None)).collect(),
        handles: vec![],
        scalars: vec![],
        sites: BTreeMap::new(),
        results: vec![None; program.signature.results.len()],
        made: vec![],
        requests: vec![],
        places: vec![],
        times: Some(1),
        steps: 0,
        is_certain: true,
    };
    run.block(0);
    Some(run.into_account())
}

/// An allocation: its place in the code, its size, and the calls between which it is alive.
struct Made {
    site: (BlockId, usize),
    bytes: Option<u64>,
    since: u64,
    until: Option<u64>,
    is_result: bool,
}

struct Run<'a> {
    code: &'a HostCode,
    variant: &'a Variant,
    program: &'a Program,
    inputs: &'a [KnownInput],
    registers: Vec<Option<u64>>,
    /// By handle, from 1.
    handles: Vec<Buffer>,
    /// Scalar arguments of the next dispatch.
    scalars: Vec<Option<u64>>,
    /// By block and position in it: the order of the text, since blocks are numbered in it.
    sites: BTreeMap<(BlockId, usize), Site>,
    results: Vec<Option<Buffer>>,
    made: Vec<Made>,
    /// Transients that a run plans: bytes, and the positions of the ops that use them first and last.
    requests: Vec<Option<(u64, [u32; 2])>>,
    /// Their handles, once one was asked for.
    places: Vec<u64>,
    /// Executions of what is followed now.
    times: Option<u64>,
    steps: u64,
    /// Whether every allocation so far is of known owner.
    is_certain: bool,
}

impl Run<'_> {
    fn block(&mut self, id: BlockId) {
        let code = self.code;
        for (at, op) in code.blocks[id as usize].ops.iter().enumerate() {
            self.steps += 1;
            self.op(op, (id, at));
        }
    }

    fn op(&mut self, op: &HostOp, at: (BlockId, usize)) {
        match op {
            HostOp::Call { function, arguments, result } => {
                let value = self.call(*function, arguments, at);
                if let Some(result) = result {
                    self.registers[*result as usize] = value;
                }
            }
            HostOp::Scalar { op, operands, result, .. } => {
                self.registers[*result as usize] = self.scalar(*op, operands, *result);
            }
            HostOp::If { condition, then, otherwise, results } => match self.read(*condition) {
                Some(bits) => {
                    let chosen = if bits != 0 { Some(*then) } else { *otherwise };
                    let Some(chosen) = chosen else { return };
                    self.block(chosen);
                    let values = self.values(&self.code.blocks[chosen as usize].results);
                    self.set(results, &values);
                }
                None => self.both(*then, *otherwise, results),
            },
            HostOp::For { is_unsigned, lower, upper, step, inits, body, results, .. } => {
                self.count_up(*is_unsigned, [*lower, *upper, *step], inits, *body, results);
            }
            HostOp::While { inits, before, after, results } => self.repeat(inits, *before, *after, results),
        }
    }

    fn scalar(&self, op: ScalarOp, operands: &[Register], result: Register) -> Option<u64> {
        let types = (self.code.type_of(operands[0])?, self.code.type_of(result)?);
        if op == ScalarOp::Select {
            // One operand of a selection may stay unknown.
            let chosen = if self.read(operands[0])? != 0 { operands[1] } else { operands[2] };
            return self.read(chosen);
        }
        let values: Option<Vec<u64>> = operands.iter().map(|operand| self.read(*operand)).collect();
        compute_scalar(op, types, &values?)
    }

    /// Follows both blocks: one of them runs.
    fn both(&mut self, then: BlockId, otherwise: Option<BlockId>, results: &[Register]) {
        let outer = self.times.take();
        self.block(then);
        let first = self.values(&self.code.blocks[then as usize].results);
        let mut merged = first;
        if let Some(otherwise) = otherwise {
            self.block(otherwise);
            let second = self.values(&self.code.blocks[otherwise as usize].results);
            merged = merged.iter().zip(second).map(|(a, b)| a.filter(|_| *a == b)).collect();
        }
        self.times = outer;
        self.set(results, &merged);
    }

    fn count_up(
        &mut self,
        is_unsigned: bool,
        bounds: [Register; 3],
        inits: &[Register],
        body: BlockId,
        results: &[Register],
    ) {
        let ty = self.code.type_of(bounds[0]).unwrap_or(HostType::WORD);
        let number = |bits: u64| {
            let unused = 64 - u32::from(ty.bits());
            if is_unsigned { i128::from(bits) } else { i128::from((bits << unused) as i64 >> unused) }
        };
        let [lower, upper, step] = bounds.map(|bound| self.read(bound).map(number));
        let code = self.code;
        let block = &code.blocks[body as usize];
        let (counter, carried) = block.arguments.split_at(1);
        let first = self.values(inits);
        let trips = match (lower, upper, step.filter(|step| *step > 0)) {
            (Some(lower), Some(upper), Some(step)) => {
                u64::try_from((upper - lower).max(0).unsigned_abs().div_ceil(step.unsigned_abs())).ok()
            }
            _ => None,
        };
        let ops = block.ops.len() as u64 + 1;
        let fits = |trips: u64| trips.saturating_mul(ops).saturating_add(self.steps) <= MOST_STEPS;
        match (trips, lower, step) {
            (Some(trips), Some(mut at), Some(step)) if fits(trips) => {
                self.set(carried, &first);
                for _ in 0..trips {
                    self.registers[counter[0] as usize] = Some(at as u64 & ty.mask());
                    self.block(body);
                    let values = self.values(&block.results);
                    self.set(carried, &values);
                    at += step;
                }
                let values = self.values(carried);
                self.set(results, &values);
            }
            (trips, ..) => {
                let outer = self.times;
                self.times = outer.zip(trips).and_then(|(times, trips)| times.checked_mul(trips));
                // What the loop changes is not known after it.
                self.set(carried, &vec![None; carried.len()]);
                self.registers[counter[0] as usize] = None;
                self.block(body);
                self.times = outer;
                self.set(results, &vec![None; results.len()]);
                self.is_certain &= carried.is_empty();
            }
        }
    }

    fn repeat(&mut self, inits: &[Register], before: BlockId, after: BlockId, results: &[Register]) {
        let code = self.code;
        let (first, second) = (&code.blocks[before as usize], &code.blocks[after as usize]);
        let values = self.values(inits);
        self.set(&first.arguments, &values);
        while self.steps < MOST_STEPS {
            // A condition that only this turn's values decide: the block runs in any case.
            self.block(before);
            let values = self.values(&first.results);
            match first.condition.map(|condition| self.read(condition)) {
                Some(Some(0)) | None => return self.set(results, &values),
                Some(None) => break,
                Some(Some(_)) => {}
            }
            self.set(&second.arguments, &values);
            self.block(after);
            let values = self.values(&second.results);
            self.set(&first.arguments, &values);
        }
        // From here on a run decides.
        let outer = self.times.take();
        self.is_certain &= results.is_empty();
        self.set(&second.arguments, &vec![None; second.arguments.len()]);
        self.block(after);
        self.set(&first.arguments, &vec![None; first.arguments.len()]);
        self.block(before);
        self.times = outer;
        self.set(results, &vec![None; results.len()]);
    }

    fn read(&self, register: Register) -> Option<u64> {
        self.registers[register as usize]
    }

    fn values(&self, registers: &[Register]) -> Vec<Option<u64>> {
        registers.iter().map(|register| self.read(*register)).collect()
    }

    fn set(&mut self, registers: &[Register], values: &[Option<u64>]) {
        for (register, value) in registers.iter().zip(values) {
            self.registers[*register as usize] = *value;
        }
    }

    fn handle(&mut self, buffer: Buffer) -> Option<u64> {
        self.handles.push(buffer);
        Some(self.handles.len() as u64)
    }

    fn buffer(&self, handle: Option<u64>) -> Option<Buffer> {
        self.handles.get(usize::try_from(handle?).ok()?.checked_sub(1)?).copied()
    }

    fn call(&mut self, function: RuntimeFunction, arguments: &[Register], at: (BlockId, usize)) -> Option<u64> {
        use RuntimeFunction as F;
        let values = self.values(arguments);
        let input = |position: Option<u64>| self.inputs.get(usize::try_from(position?).ok()?);
        match function {
            F::Input => self.handle(Buffer::Input(values[0]?)),
            F::Constant => self.handle(Buffer::Constant(values[0]?)),
            F::Arena => self.handle(Buffer::Arena),
            F::Alloc => self.alloc(values[0], at),
            F::Request => {
                let position = |at: usize| u32::try_from(values[at]?).ok();
                self.requests.push((|| Some((values[0]?, [position(1)?, position(2)?])))());
                None
            }
            F::Place => self.place(values[0], at),
            F::Free => {
                self.free(values[0]);
                None
            }
            F::InputScalar => input(values[0])?.bits,
            F::InputDim => *input(values[0])?.shape.get(usize::try_from(values[1]?).ok()?)?,
            F::Ok => Some(1),
            // A dispatch that runs once per arena fills borders, and copies nothing.
            F::Dispatch | F::DispatchOnce => {
                self.dispatch(values[0], at);
                None
            }
            F::Scalar => {
                self.scalars.push(values[0]);
                None
            }
            F::Copy => {
                self.copy(&values, at);
                None
            }
            F::Result => {
                self.result(values[0], values[1]);
                None
            }
            _ => None,
        }
    }

    fn alloc(&mut self, bytes: Option<u64>, at: (BlockId, usize)) -> Option<u64> {
        let (times, number) = (self.times, self.made.len() as u32);
        self.count(at, Kind::Alloc, times, bytes);
        let since = self.steps;
        self.made.push(Made { site: at, bytes, since, until: None, is_result: false });
        self.handle(Buffer::Made(number))
    }

    /// All transients that a run plans are one allocation, from the first place on.
    fn place(&mut self, request: Option<u64>, at: (BlockId, usize)) -> Option<u64> {
        if self.places.is_empty() {
            let requests: Option<Vec<_>> = self.requests.iter().copied().collect();
            let bytes = requests.map(|requests| planned_bytes(&requests));
            self.count(at, Kind::Alloc, Some(1), bytes);
            self.made.push(Made { site: at, bytes, since: self.steps, until: Some(u64::MAX), is_result: false });
            self.places = self.requests.iter().map(|_| 0).collect();
        }
        let number = usize::try_from(request?).ok()?;
        if *self.places.get(number)? == 0 {
            self.places[number] = self.handle(Buffer::Planned)?;
        }
        Some(self.places[number])
    }

    fn free(&mut self, handle: Option<u64>) {
        match self.buffer(handle) {
            Some(Buffer::Made(number)) => self.made[number as usize].until = Some(self.steps),
            Some(_) => {}
            None => self.is_certain = false,
        }
    }

    fn dispatch(&mut self, kernel: Option<u64>, at: (BlockId, usize)) {
        let scalars = std::mem::take(&mut self.scalars);
        let Some(kernel) = kernel.and_then(|kernel| usize::try_from(kernel).ok()) else { return };
        let Some(copies) = self.variant.kernels.get(kernel).map(Kernel::copies) else { return };
        if copies.count > 0 {
            self.count(at, Kind::Dispatch { kernel }, self.times, copies.bytes_by(&scalars));
        }
    }

    fn copy(&mut self, values: &[Option<u64>], at: (BlockId, usize)) {
        let bytes = values[4];
        let is_gpu = matches!(self.variant.target, monopour_program::Target::Gpu(_));
        let (from, to) = (self.buffer(values[0]), self.buffer(values[2]));
        let in_words = [values[1], values[3], bytes].iter().flatten().all(|n| n.is_multiple_of(WORD_BYTES));
        // Within one buffer a kernel copies; what overlaps goes through another one.
        let is_within = is_gpu && from.is_some() && from == to && in_words;
        let copies = match (values[1], values[3], bytes) {
            // Nothing is copied.
            (_, _, Some(0)) => Some(0),
            _ if !is_within => Some(1),
            (Some(from), Some(to), Some(bytes)) => Some(1 + u64::from(from.abs_diff(to) < bytes)),
            _ => None,
        };
        let times = self.times.zip(copies).and_then(|(times, copies)| times.checked_mul(copies));
        self.count(at, Kind::Copy, times, bytes);
    }

    fn result(&mut self, position: Option<u64>, handle: Option<u64>) {
        let Some(position) = position.and_then(|position| usize::try_from(position).ok()) else { return };
        let buffer = self.buffer(handle);
        if let Some(Buffer::Made(number)) = buffer {
            self.made[number as usize].is_result = true;
        }
        self.is_certain &= buffer.is_some();
        if let Some(result) = self.results.get_mut(position) {
            *result = buffer;
        }
    }

    fn count(&mut self, at: (BlockId, usize), kind: Kind, times: Option<u64>, bytes: Option<u64>) {
        let total = times.zip(bytes).and_then(|(times, bytes)| times.checked_mul(bytes));
        let Some(site) = self.sites.get_mut(&at) else {
            self.sites.insert(at, Site { kind, times, bytes, total_bytes: total });
            return;
        };
        site.times = site.times.zip(times).and_then(|(a, b)| a.checked_add(b));
        site.total_bytes = site.total_bytes.zip(total).and_then(|(a, b)| a.checked_add(b));
        site.bytes = site.bytes.filter(|_| site.bytes == bytes);
    }

    fn into_account(self) -> Account {
        let pool_bytes = if self.is_certain { most_at_once(&self.made) } else { None };
        let order: Vec<(BlockId, usize)> =
            text_order(self.code).into_iter().filter(|at| self.sites.contains_key(at)).collect();
        let position = |at: &(BlockId, usize)| order.iter().position(|known| known == at);
        let owner = |buffer: &Option<Buffer>| match (*buffer)? {
            Buffer::Input(input) => Some(Owner::Input(input)),
            Buffer::Made(number) => Some(Owner::Site(position(&self.made[number as usize].site)?)),
            Buffer::Constant(_) | Buffer::Arena | Buffer::Planned => None,
        };
        let results = self.results.iter().map(owner).collect();
        debug_assert_eq!(self.results.len(), self.program.signature.results.len(), "invariant: one each");
        Account { sites: order.iter().map(|at| self.sites[at]).collect(), results, pool_bytes }
    }
}

/// The most bytes of allocations alive at once that are no results.
fn most_at_once(made: &[Made]) -> Option<u64> {
    let mut changes: Vec<(u64, bool, u64)> = vec![];
    for made in made.iter().filter(|made| !made.is_result) {
        let bytes = made.bytes?;
        changes.push((made.since, true, bytes));
        changes.extend(made.until.map(|until| (until, false, bytes)));
    }
    changes.sort_unstable();
    let (mut now, mut most) = (0u64, 0u64);
    for (_, begins, bytes) in changes {
        now = if begins { now.saturating_add(bytes) } else { now.saturating_sub(bytes) };
        most = most.max(now);
    }
    Some(most)
}

/// Every op of the code, in the order of its text: a block where the op that runs it stands.
fn text_order(code: &HostCode) -> Vec<(BlockId, usize)> {
    fn visit(code: &HostCode, id: BlockId, order: &mut Vec<(BlockId, usize)>) {
        for (at, op) in code.blocks[id as usize].ops.iter().enumerate() {
            order.push((id, at));
            let inner = match op {
                HostOp::If { then, otherwise, .. } => [Some(*then), *otherwise],
                HostOp::For { body, .. } => [Some(*body), None],
                HostOp::While { before, after, .. } => [Some(*before), Some(*after)],
                HostOp::Call { .. } | HostOp::Scalar { .. } => [None, None],
            };
            inner.into_iter().flatten().for_each(|block| visit(code, block, order));
        }
    }
    let mut order = vec![];
    visit(code, 0, &mut order);
    order
}
