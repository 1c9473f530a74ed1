//! One run of a host function: its calls act on logical buffers, which map to pooled ones and the caller's.

use std::sync::Arc;

use monopour_program::{DType, TensorDesc};

use super::meter::Meter;
use super::repeat::{Call, Notes, Question};
use super::transients::Transients;
use super::{Arena, Arg, Backend, Copy, Engine, Input, Launch, Outcome, Place, Value};
use crate::buffer::Shared;
use crate::cancel::Cancel;
use crate::error::Error;
use crate::host::HostCalls;
use crate::pool::Physical;
use crate::spans;
use crate::stats::RunCounts;

/// A result that a run has to set.
struct Owed<B: Physical> {
    dtype: DType,
    scalar: bool,
    /// Sizes; a dynamic one until host code sets it.
    shape: Vec<u64>,
    value: Option<Value<B>>,
    /// Bytes of the buffer.
    bytes: u64,
}

/// A logical buffer. Its handle is its position, from 1, and above it the number of earlier uses of the position.
pub(super) struct Slot<B: Physical> {
    place: Option<Place<B>>,
    pub(super) bytes: u64,
    origin: Origin,
    generation: u32,
}

impl<B: Physical> Slot<B> {
    /// The buffer's id and where the slot begins in it; of a number, no buffer's.
    pub(super) fn id(&self) -> (u64, u64) {
        self.place.as_ref().map_or((0, 0), |place| (place.buffer.uid(), place.offset))
    }
}

/// Longest message of a trap, in bytes.
const MAX_MESSAGE: usize = 4096;
/// Most buffers, and most scalars, of one dispatch: host code that pushes more is defective.
const MAX_ARGS: usize = 1 << 16;

/// Arguments of most dispatches.
const FEW_ARGS: usize = 8;

/// Bits of a handle that hold the position.
const POSITION_BITS: u32 = 32;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Input,
    Donated,
    Constant,
    Arena,
    Allocated,
}

impl Origin {
    /// The reason why a buffer of this origin is read-only, if it is.
    fn frozen(self) -> Option<&'static str> {
        match self {
            Origin::Input => Some("an input that was not donated"),
            Origin::Constant => Some("a constant"),
            Origin::Donated | Origin::Arena | Origin::Allocated => None,
        }
    }
}

/// A range named by handle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    slot: usize,
    offset: u64,
    bytes: u64,
}

/// One run of a host function.
pub(super) struct Run<'e, B: Backend> {
    pub(super) engine: &'e mut Engine<B>,
    pub(super) slots: Vec<Slot<B::Buffer>>,
    /// Positions of freed allocations: a loop that allocates reuses them.
    vacant: Vec<usize>,
    pub(super) inputs: Vec<(Option<u64>, Vec<u64>)>,
    arena: Option<usize>,
    pub(super) transients: Transients,
    /// The buffers of transients that this run has planned.
    pub(super) planned: Vec<Shared<B::Buffer>>,
    pub(super) args: Vec<Range>,
    pub(super) scalars: Vec<u64>,
    /// The message of the next trap so far.
    message: Vec<u8>,
    results: Vec<Owed<B::Buffer>>,
    pub(super) counts: RunCounts,
    /// Allocations in bytes asked for, and in bytes by size class; the arena's bytes.
    pub(super) asked: Meter,
    pub(super) by_class: Meter,
    arena_bytes: u64,
    pub(super) cancel: &'e Cancel,
    /// What is known of the runs before; lost with a run that fails.
    pub(super) notes: Notes,
}

impl<'e, B: Backend> Run<'e, B> {
    pub fn new(
        engine: &'e mut Engine<B>,
        (inputs, results): (Vec<Input<B::Buffer>>, &[TensorDesc]),
        cancel: &'e Cancel,
    ) -> Run<'e, B> {
        let mut known = Vec::with_capacity(inputs.len());
        let mut slots = Vec::with_capacity(inputs.len() + engine.constants.len());
        for input in inputs {
            let origin = if input.donated { Origin::Donated } else { Origin::Input };
            let (place, bits) = match input.value {
                Value::Buffer(place) => (Some(place), None),
                Value::Scalar(bits) => (None, Some(bits)),
            };
            known.push((bits, input.shape));
            slots.push(Slot { place, bytes: input.bytes, origin, generation: 0 });
        }
        slots.extend(engine.constants.iter().map(|constant| Slot {
            place: Some(Place::own(constant.buffer.clone())),
            bytes: constant.bytes,
            origin: Origin::Constant,
            generation: 0,
        }));
        let owed = |desc: &TensorDesc| Owed {
            dtype: desc.dtype,
            scalar: desc.scalar,
            shape: desc.shape.clone(),
            value: None,
            bytes: 0,
        };
        engine.turns.begin();
        let notes = std::mem::take(&mut engine.notes);
        Run {
            engine,
            notes,
            slots,
            vacant: Vec::new(),
            inputs: known,
            arena: None,
            transients: Transients::default(),
            planned: Vec::new(),
            args: Vec::new(),
            scalars: Vec::new(),
            message: Vec::new(),
            results: results.iter().map(owed).collect(),
            counts: RunCounts::default(),
            asked: Meter::default(),
            by_class: Meter::default(),
            arena_bytes: 0,
            cancel,
        }
    }

    pub fn into_outcome(mut self) -> Result<Outcome<B::Buffer>, Error> {
        self.end_transients();
        self.counts.pool_bytes = self.by_class.most_freed();
        self.counts.result_bytes = self.by_class.kept();
        let parts = [self.arena_bytes, self.asked.most_freed(), self.asked.kept()];
        self.counts.fresh_bytes = parts.into_iter().fold(0, u64::saturating_add);
        let leaked = self.slots.iter().filter(|slot| slot.origin == Origin::Allocated && slot.place.is_some());
        let leaked = leaked.count() as u64;
        let results = self.results.into_iter().enumerate().map(|(position, owed)| {
            let sizes = owed.shape.iter().try_fold(owed.dtype.size_bytes(), |bytes, &size| bytes.checked_mul(size));
            let value = owed.value.ok_or_else(|| Error::host_code(format!("result {position} was not set")))?;
            if !owed.scalar && sizes.is_none_or(|bytes| bytes > owed.bytes) {
                let what = format!("result {position} is too small: {} bytes for sizes {:?}", owed.bytes, owed.shape);
                return Err(Error::host_code(what));
            }
            Ok((value, owed.shape))
        });
        let results = results.collect::<Result<Vec<_>, Error>>()?;
        self.engine.notes = self.notes.end(self.engine.backend.mark().map_or(0, |mark| mark.encoded));
        Ok(Outcome { results, counts: self.counts, leaked })
    }

    pub(super) fn push(&mut self, place: Place<B::Buffer>, bytes: u64, origin: Origin) -> i64 {
        self.notes.buffer((place.buffer.uid(), place.offset));
        let position = match self.vacant.pop() {
            Some(position) => {
                let generation = self.slots[position].generation.wrapping_add(1) & (i32::MAX as u32);
                self.slots[position] = Slot { place: Some(place), bytes, origin, generation };
                position
            }
            None => {
                self.slots.push(Slot { place: Some(place), bytes, origin, generation: 0 });
                self.slots.len() - 1
            }
        };
        i64::from(self.slots[position].generation) << POSITION_BITS | (position as i64 + 1)
    }

    /// The slot of a result that is not set yet.
    fn owed(&mut self, position: i64, scalar: bool) -> Result<&mut Owed<B::Buffer>, Error> {
        let position = index(position, self.results.len(), "result")?;
        let owed = &mut self.results[position];
        if owed.value.is_some() || owed.scalar != scalar {
            return Err(Error::host_code(format!("result {position} is set twice, or to a value of another kind")));
        }
        Ok(owed)
    }

    /// The slot of a live buffer.
    fn live(&self, handle: i64, doing: &str) -> Result<usize, Error> {
        let slot = usize::try_from(handle & i64::from(u32::MAX)).ok().and_then(|handle| handle.checked_sub(1));
        let generation = handle >> POSITION_BITS;
        match slot.and_then(|index| self.slots.get(index).map(|slot| (index, slot))) {
            Some((index, Slot { place: Some(_), generation: its, .. })) if i64::from(*its) == generation => Ok(index),
            Some(_) => Err(Error::host_code(format!("{doing}: handle {handle} was freed or returned before"))),
            None => Err(Error::host_code(format!("{doing}: handle {handle} does not exist"))),
        }
    }

    /// A range of `bytes` bytes, if it is within a live buffer: the short way, without the reason why not.
    fn fitting(&self, handle: i64, offset: i64, bytes: i64) -> Option<Range> {
        let slot = ((handle & i64::from(u32::MAX)) as usize).checked_sub(1)?;
        let found = self.slots.get(slot)?;
        let is_live = found.place.is_some() && i64::from(found.generation) == handle >> POSITION_BITS;
        let (offset, bytes) = (u64::try_from(offset).ok()?, u64::try_from(bytes).ok()?);
        (is_live && offset.checked_add(bytes)? <= found.bytes).then_some(Range { slot, offset, bytes })
    }

    /// A range within a live buffer.
    fn range(&self, handle: i64, offset: i64, bytes: i64, doing: &str) -> Result<Range, Error> {
        let slot = self.live(handle, doing)?;
        let size = self.slots[slot].bytes;
        // -1: all bytes after the offset.
        let bytes = if bytes == -1 { (size as i64).saturating_sub(offset) } else { bytes };
        match (u64::try_from(offset), u64::try_from(bytes)) {
            (Ok(offset), Ok(bytes)) if offset.checked_add(bytes).is_some_and(|end| end <= size) => {
                Ok(Range { slot, offset, bytes })
            }
            _ => Err(Error::host_code(format!("{doing}: {bytes} bytes at {offset} of a buffer of {size} bytes"))),
        }
    }

    /// Waits until the run may make its next dispatch.
    fn keep_pace(&mut self) -> Result<(), Error> {
        if !self.cancel.take() {
            self.engine.backend.pause()?;
            self.cancel.wait();
        }
        self.cancel.check()
    }

    /// Drops the arguments and scalars of a dispatch.
    pub(super) fn drop_pushed(&mut self) {
        self.args.clear();
        self.scalars.clear();
    }

    /// Runs a kernel with the pushed arguments.
    pub(super) fn dispatch_pushed(&mut self, kernel: i64, grid: [i64; 3]) -> Result<(), Error> {
        let position = usize::try_from(kernel).ok();
        let found = position.and_then(|position| self.engine.backend.kernel(position).map(|found| (position, found)));
        let (position, (name, args_len, scalars_len)) =
            found.ok_or_else(|| Error::host_code(format!("dispatch: kernel {kernel} does not exist")))?;
        if self.args.len() != args_len {
            let what = format!("dispatch: kernel `{name}` takes {args_len} arguments, {} given", self.args.len());
            return Err(Error::host_code(what));
        }
        if self.scalars.len() != scalars_len {
            let what = format!("dispatch: kernel `{name}` takes {scalars_len} scalars, {} given", self.scalars.len());
            return Err(Error::host_code(what));
        }
        // Before they are converted: three results with errors are a fifth of a kilobyte to move.
        if grid.iter().any(|extent| extent.is_negative()) {
            return Err(Error::host_code("dispatch: negative grid"));
        }
        let grid = grid.map(i64::cast_unsigned);
        if self.args.iter().any(|range| self.slots[range.slot].place.is_none()) {
            return Err(Error::host_code("dispatch: an argument was returned before its use"));
        }
        let site = self.engine.turns.next(position);
        let launch = Launch { kernel: position, site: site.as_ref() };
        // Without an allocation, and without more to set than there is: this is most of the host's time.
        match self.args.len() {
            2 => self.launch::<2>(launch, grid),
            3 => self.launch::<3>(launch, grid),
            4 => self.launch::<4>(launch, grid),
            1..=FEW_ARGS => self.launch::<FEW_ARGS>(launch, grid),
            _ => {
                let args: Vec<_> = self.args.iter().map(|&range| resolve(&self.slots, range)).collect();
                self.engine.backend.dispatch(launch, &args, &self.scalars, grid, &mut self.counts)
            }
        }?;
        if self.engine.turns.is_on() {
            let name = self.engine.backend.kernel(position).map_or("", |(name, ..)| name);
            let source = site.as_ref().map_or(("", ""), |site| (&site.op, &site.location));
            spans::dispatched(name, source, grid);
        }
        Ok(())
    }

    /// Runs a kernel with one to `MOST` arguments.
    fn launch<const MOST: usize>(&mut self, launch: Launch<'_>, grid: [u64; 3]) -> Result<(), Error> {
        let (slots, pushed) = (&self.slots, &self.args);
        let args: [_; MOST] = std::array::from_fn(|at| resolve(slots, *pushed.get(at).unwrap_or(&pushed[0])));
        self.engine.backend.dispatch(launch, &args[..pushed.len()], &self.scalars, grid, &mut self.counts)
    }

    /// Whether what lies behind a slot is the caller's.
    fn is_foreign(&self, slot: usize) -> bool {
        self.slots[slot].place.as_ref().is_some_and(|place| place.is_foreign)
    }

    /// A range within a live buffer that is writable.
    fn writable_range(&self, handle: i64, offset: i64, bytes: i64, doing: &str) -> Result<Range, Error> {
        let range = self.range(handle, offset, bytes, doing)?;
        match self.slots[range.slot].origin.frozen() {
            Some(why) => Err(Error::host_code(format!("{doing}: writes {why}"))),
            None => Ok(range),
        }
    }
}

/// The memory of a range from [`Run::range`], while the backend is borrowed separately.
fn resolve<B: Physical>(slots: &[Slot<B>], range: Range) -> Arg<'_, B> {
    let slot = &slots[range.slot];
    let place = slot.place.as_ref().expect("a range is of a live slot: checked when it was named, and again on use");
    let offset = place.offset + range.offset;
    Arg { buffer: &place.buffer, offset, bytes: range.bytes, frozen: slot.origin.frozen() }
}

fn index(value: i64, len: usize, what: &str) -> Result<usize, Error> {
    let position = usize::try_from(value).ok().filter(|&position| position < len);
    position.ok_or_else(|| Error::host_code(format!("{what} {value} of {len}")))
}

fn size(bytes: i64, what: &str) -> Result<u64, Error> {
    u64::try_from(bytes).map_err(|_| Error::host_code(format!("{what} of {bytes} bytes")))
}

/// Room for one more argument.
fn room(pushed: usize) -> Result<(), Error> {
    if pushed < MAX_ARGS { Ok(()) } else { Err(Error::host_code(format!("more than {MAX_ARGS} arguments"))) }
}

/// Bytes of one element.
fn scalar_bytes(bytes: i64) -> Result<i64, Error> {
    if (1..=8).contains(&bytes) { Ok(bytes) } else { Err(Error::host_code(format!("an element of {bytes} bytes"))) }
}

impl<B: Backend> HostCalls for Run<'_, B> {
    fn check(&self) -> Result<(), Error> {
        self.cancel.check()
    }

    fn input(&mut self, position: i64) -> Result<i64, Error> {
        Ok(index(position, self.inputs.len(), "input")? as i64 + 1)
    }

    fn constant(&mut self, position: i64) -> Result<i64, Error> {
        let position = index(position, self.engine.constants.len(), "constant")?;
        Ok((self.inputs.len() + position) as i64 + 1)
    }

    fn alloc(&mut self, bytes: i64) -> Result<i64, Error> {
        let bytes = size(bytes, "allocation")?;
        let loan = self.engine.take(bytes)?;
        self.counts.allocations += 1;
        let taken = loan.bytes();
        let handle = self.push(Place::own(Arc::new(loan)), bytes, Origin::Allocated);
        self.notes.call(Call::Alloc(bytes as i64));
        self.asked.made(handle as u64, bytes);
        self.by_class.made(handle as u64, taken);
        Ok(handle)
    }

    fn arena(&mut self, bytes: i64) -> Result<i64, Error> {
        if self.arena.is_some() {
            return Err(Error::host_code("the arena is asked for twice"));
        }
        let bytes = size(bytes, "arena")?;
        self.arena_bytes = bytes;
        let kept = self.engine.arena.take().filter(|arena| arena.buffer.bytes() >= bytes);
        let arena = match kept {
            Some(arena) => arena,
            None => Arena { buffer: Arc::new(self.engine.take(bytes)?), is_prepared: false },
        };
        let buffer = arena.buffer.clone();
        self.engine.arena = Some(arena);
        let handle = self.push(Place::own(buffer), bytes, Origin::Arena);
        self.arena = Some(handle as usize - 1);
        self.notes.call(Call::Arena(bytes as i64));
        Ok(handle)
    }

    fn request(&mut self, bytes: i64, lives: [i64; 2]) -> Result<(), Error> {
        self.request_place(bytes, lives)?;
        self.notes.call(Call::Request(bytes, lives));
        Ok(())
    }

    fn place(&mut self, request: i64) -> Result<i64, Error> {
        let (handle, is_new) = self.take_place(request)?;
        if is_new {
            self.notes.call(Call::Place(request));
        }
        Ok(handle)
    }

    fn free(&mut self, handle: i64) -> Result<(), Error> {
        let slot = self.live(handle, "free")?;
        if !matches!(self.slots[slot].origin, Origin::Allocated | Origin::Donated) {
            return Err(Error::host_code(format!("free: handle {handle} is not an allocation")));
        }
        if self.args.iter().any(|arg| arg.slot == slot) {
            return Err(Error::host_code(format!("free: handle {handle} is a pending argument")));
        }
        self.slots[slot].place = None;
        self.notes.call(Call::Free(handle));
        if self.slots[slot].origin == Origin::Allocated {
            self.vacant.push(slot);
            self.asked.freed(handle as u64);
            self.by_class.freed(handle as u64);
        }
        Ok(())
    }

    fn input_scalar(&mut self, position: i64) -> Result<i64, Error> {
        let position = index(position, self.inputs.len(), "input")?;
        let bits = self.inputs[position].0.map(|bits| bits as i64);
        let bits = bits.ok_or_else(|| Error::host_code(format!("input {position} is not a number")))?;
        self.notes.answer(Question::Scalar(position as i64), bits);
        Ok(bits)
    }

    fn input_dim(&mut self, position: i64, dim: i64) -> Result<i64, Error> {
        let position = index(position, self.inputs.len(), "input")?;
        let shape = &self.inputs[position].1;
        let size = shape[index(dim, shape.len(), "dimension")?];
        let size = i64::try_from(size).map_err(|_| Error::host_code(format!("a dimension of {size} elements")))?;
        self.notes.answer(Question::Dim(position as i64, dim), size);
        Ok(size)
    }

    fn result_scalar(&mut self, position: i64, bits: i64) -> Result<(), Error> {
        let owed = self.owed(position, true)?;
        let kept = if owed.dtype.size_bytes() < 8 { u64::MAX >> (64 - 8 * owed.dtype.size_bytes()) } else { u64::MAX };
        owed.value = Some(Value::Scalar(bits as u64 & kept));
        self.notes.call(Call::ResultScalar(position, bits));
        Ok(())
    }

    fn result_dim(&mut self, position: i64, dim: i64, extent: i64) -> Result<(), Error> {
        let position = index(position, self.results.len(), "result")?;
        let shape = &mut self.results[position].shape;
        let len = shape.len();
        shape[index(dim, len, "dimension")?] = size(extent, "a dimension")?;
        self.notes.call(Call::ResultDim(position as i64, dim, extent));
        Ok(())
    }

    fn scalar(&mut self, bits: i64) -> Result<(), Error> {
        room(self.scalars.len())?;
        self.scalars.push(bits as u64);
        Ok(())
    }

    fn read(&mut self, handle: i64, offset: i64, bytes: i64) -> Result<i64, Error> {
        let range = self.range(handle, offset, scalar_bytes(bytes)?, "read")?;
        // The next run may read another value.
        self.notes.stop();
        Ok(self.engine.backend.read(resolve(&self.slots, range), &mut self.counts)? as i64)
    }

    fn write(&mut self, handle: i64, offset: i64, bytes: i64, bits: i64) -> Result<(), Error> {
        let range = self.writable_range(handle, offset, scalar_bytes(bytes)?, "write")?;
        self.notes.call(Call::Write([handle, offset, bytes, bits]));
        self.engine.backend.write(resolve(&self.slots, range), bits as u64, &mut self.counts)
    }

    fn message(&mut self, bytes: i64) -> Result<(), Error> {
        let room = MAX_MESSAGE.saturating_sub(self.message.len());
        self.message.extend(bytes.to_le_bytes().into_iter().filter(|byte| *byte != 0).take(room));
        Ok(())
    }

    fn trap(&mut self, code: i64) -> Result<(), Error> {
        let message = String::from_utf8_lossy(&self.message).into_owned();
        Err(Error::Trap { code, message })
    }

    fn result(&mut self, position: i64, handle: i64) -> Result<(), Error> {
        let slot = self.live(handle, "result")?;
        if !matches!(self.slots[slot].origin, Origin::Allocated | Origin::Donated) {
            return Err(Error::host_code(format!("result {position} is neither an allocation nor a donated input")));
        }
        let bytes = self.slots[slot].bytes;
        self.owed(position, false)?.bytes = bytes;
        let place = self.slots[slot].place.take();
        self.owed(position, false)?.value = place.map(Value::Buffer);
        self.notes.call(Call::Result(position, handle));
        Ok(())
    }

    fn args(&mut self, args: &[[i64; 3]]) -> Result<(), Error> {
        for &[handle, offset, bytes] in args {
            let range = match self.fitting(handle, offset, bytes) {
                Some(range) => range,
                None => self.range(handle, offset, bytes, "argument")?,
            };
            room(self.args.len())?;
            self.args.push(range);
        }
        Ok(())
    }

    fn dispatch(&mut self, kernel: i64, grid: [i64; 3]) -> Result<(), Error> {
        self.keep_pace()?;
        let outcome = match self.notes.takes_calls() {
            true => self.dispatch_noted(kernel, grid),
            false => self.dispatch_pushed(kernel, grid),
        };
        self.drop_pushed();
        outcome
    }

    fn dispatch_once(&mut self, kernel: i64, grid: [i64; 3]) -> Result<(), Error> {
        self.notes.once((kernel, grid), (&self.args, &self.scalars));
        let mut outcome = Ok(());
        if self.engine.arena.as_ref().is_none_or(|arena| !arena.is_prepared) {
            self.keep_pace()?;
            outcome = self.dispatch_pushed(kernel, grid);
        } else {
            // It keeps its place among the sources.
            usize::try_from(kernel).ok().and_then(|kernel| self.engine.turns.next(kernel));
        }
        self.drop_pushed();
        outcome
    }

    fn copy(&mut self, src: (i64, i64), dst: (i64, i64), bytes: i64) -> Result<(), Error> {
        let from = self.range(src.0, src.1, bytes, "copy")?;
        let to = self.writable_range(dst.0, dst.1, bytes, "copy")?;
        self.notes.call(Call::Copy(src, dst, bytes));
        let (src, dst) = (resolve(&self.slots, from), resolve(&self.slots, to));
        if from.bytes == 0 {
            return Ok(());
        }
        let copy = Copy {
            src: src.buffer,
            src_offset: src.offset,
            dst: dst.buffer,
            dst_offset: dst.offset,
            bytes: from.bytes,
            to_end: to.offset + to.bytes == self.slots[to.slot].bytes && !self.is_foreign(to.slot),
        };
        self.engine.backend.copy(copy, &mut self.counts)
    }

    fn fill(&mut self, dst: (i64, i64), bytes: i64, pattern: u32) -> Result<(), Error> {
        let mut range = self.writable_range(dst.0, dst.1, bytes, "fill")?;
        self.notes.call(Call::Fill(dst, bytes, pattern));
        if bytes == -1 {
            range.bytes -= range.bytes % size_of_val(&pattern) as u64;
        }
        if range.bytes == 0 {
            return Ok(());
        }
        self.engine.backend.fill(resolve(&self.slots, range), pattern, &mut self.counts)
    }
}
