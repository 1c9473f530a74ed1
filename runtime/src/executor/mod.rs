//! Runs a host function: its calls act on logical buffers, which map to pooled ones.
//!
//! Everything that is the same on every target is here (handles, ownership, arguments, checks); what differs is behind
//! [`Backend`].

pub(crate) mod cpu;
pub(crate) mod gpu;

use std::sync::Arc;

use crate::buffer::Shared;
use crate::error::Error;
use crate::ffi::HostFunction;
use crate::host::HostCalls;
use crate::pool::{Loan, Physical, Pool};
use crate::stats::RunCounts;

/// What differs between a GPU and the CPU.
pub(crate) trait Backend: Send {
    /// Physical memory.
    type Buffer: Physical;
    /// How host code is run: see [`Gate`].
    type Gate: Gate;

    fn gate(&self) -> Self::Gate;
    /// Makes memory; the pool keeps the account.
    fn make(&mut self, bytes: u64) -> Result<Self::Buffer, Error>;
    /// The kernel's name and its number of arguments, if there is such a kernel.
    fn kernel(&self, index: usize) -> Option<(&str, usize)>;
    /// Runs or records a kernel; counts it.
    fn dispatch(
        &mut self,
        kernel: usize,
        args: &[Arg<'_, Self::Buffer>],
        grid: [u64; 3],
        counts: &mut RunCounts,
    ) -> Result<(), Error>;
    /// Runs or records a copy of a range that was checked.
    fn copy(&mut self, copy: Copy<'_, Self::Buffer>, counts: &mut RunCounts) -> Result<(), Error>;
    /// Runs or records a fill of a range that was checked.
    fn fill(&mut self, dst: Arg<'_, Self::Buffer>, pattern: u32, counts: &mut RunCounts) -> Result<(), Error>;
    /// Waits until everything that was recorded is done.
    fn finish(&mut self, counts: &mut RunCounts) -> Result<(), Error>;
    /// Drops what was recorded.
    fn abort(&mut self);
    /// Lets go of every buffer that nothing else holds: waits for work that was recorded, and empties caches.
    fn forget_buffers(&mut self) -> Result<(), Error>;
}

/// Brackets a run on the thread that it belongs to.
pub(crate) trait Gate {
    fn run<T: Send>(&self, f: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error>;
}

/// A range of a buffer.
#[derive(Debug)]
pub(crate) struct Arg<'a, B> {
    pub buffer: &'a B,
    pub offset: u64,
    pub bytes: u64,
    /// Why it must not be written, if it must not.
    pub frozen: Option<&'static str>,
}

/// A copy between two ranges of `bytes` bytes.
#[derive(Debug)]
pub(crate) struct Copy<'a, B> {
    pub src: &'a B,
    pub src_offset: u64,
    pub dst: &'a B,
    pub dst_offset: u64,
    pub bytes: u64,
}

/// A loaded variant on one backend.
pub(crate) struct Engine<B: Backend> {
    pub backend: B,
    pub pool: Arc<Pool<B::Buffer>>,
    pub constants: Vec<Constant<B::Buffer>>,
    /// Kept from run to run.
    pub arena: Option<Shared<B::Buffer>>,
}

/// A constant's memory and its size.
pub(crate) struct Constant<B: Physical> {
    pub buffer: Shared<B>,
    pub bytes: u64,
}

/// An input of a run.
pub(crate) struct Input<B: Physical> {
    pub buffer: Shared<B>,
    pub bytes: u64,
    pub donated: bool,
}

/// What a run gives back.
pub(crate) struct Outcome<B: Physical> {
    pub results: Vec<Shared<B>>,
    pub counts: RunCounts,
    /// Allocations that host code neither freed nor returned.
    pub leaked: u64,
}

impl<B: Backend> Engine<B> {
    /// A buffer on loan for data from the host.
    pub fn take(&mut self, bytes: u64) -> Result<Loan<B::Buffer>, Error> {
        let backend = &mut self.backend;
        match self.pool.take(bytes, |bytes| backend.make(bytes)) {
            Err(Error::MemoryLimit { .. }) => {
                self.release_idle()?;
                let backend = &mut self.backend;
                self.pool.take(bytes, |bytes| backend.make(bytes))
            }
            outcome => outcome,
        }
    }

    /// Gives idle buffers back to the device.
    pub fn release_idle(&mut self) -> Result<(), Error> {
        self.backend.forget_buffers()?;
        self.pool.trim();
        Ok(())
    }

    /// Runs `host` on `inputs`; `result_bytes` are the sizes of the results. Waits until the device is done.
    pub fn run(
        &mut self,
        host: &HostFunction,
        inputs: Vec<Input<B::Buffer>>,
        result_bytes: &[u64],
    ) -> Result<Outcome<B::Buffer>, Error> {
        let gate = self.backend.gate();
        let mut run = Run::new(self, inputs, result_bytes);
        let outcome = gate.run(|| {
            host.call(&mut run)?;
            run.engine.backend.finish(&mut run.counts)?;
            run.into_outcome()
        });
        if outcome.is_err() {
            self.backend.abort();
        }
        outcome
    }
}

/// A logical buffer. Its position, from 1, is its handle.
struct Slot<B: Physical> {
    buffer: Option<Shared<B>>,
    bytes: u64,
    origin: Origin,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Input,
    Donated,
    Constant,
    Arena,
    Allocated,
}

impl Origin {
    /// Why a buffer of this origin must not be written, if it must not.
    fn frozen(self) -> Option<&'static str> {
        match self {
            Origin::Input => Some("an input that was not donated"),
            Origin::Constant => Some("a constant"),
            Origin::Donated | Origin::Arena | Origin::Allocated => None,
        }
    }
}

/// A range named by handle.
#[derive(Clone, Copy)]
struct Range {
    slot: usize,
    offset: u64,
    bytes: u64,
}

/// One run of a host function.
struct Run<'e, B: Backend> {
    engine: &'e mut Engine<B>,
    slots: Vec<Slot<B::Buffer>>,
    inputs: usize,
    arena: Option<usize>,
    args: Vec<Range>,
    results: Vec<(u64, Option<Shared<B::Buffer>>)>,
    counts: RunCounts,
}

impl<'e, B: Backend> Run<'e, B> {
    fn new(engine: &'e mut Engine<B>, inputs: Vec<Input<B::Buffer>>, result_bytes: &[u64]) -> Run<'e, B> {
        let input_count = inputs.len();
        let from_inputs = inputs.into_iter().map(|input| Slot {
            buffer: Some(input.buffer),
            bytes: input.bytes,
            origin: if input.donated { Origin::Donated } else { Origin::Input },
        });
        let from_constants = engine.constants.iter().map(|constant| Slot {
            buffer: Some(constant.buffer.clone()),
            bytes: constant.bytes,
            origin: Origin::Constant,
        });
        let slots = from_inputs.chain(from_constants).collect();
        let results = result_bytes.iter().map(|&bytes| (bytes, None)).collect();
        let counts = RunCounts::default();
        Run { engine, slots, inputs: input_count, arena: None, args: Vec::new(), results, counts }
    }

    fn into_outcome(self) -> Result<Outcome<B::Buffer>, Error> {
        let leaked = self.slots.iter().filter(|slot| slot.origin == Origin::Allocated && slot.buffer.is_some());
        let leaked = leaked.count() as u64;
        let results: Option<Vec<_>> = self.results.into_iter().map(|(_, buffer)| buffer).collect();
        let results = results.ok_or_else(|| Error::host_code("a result was not set"))?;
        Ok(Outcome { results, counts: self.counts, leaked })
    }

    fn push(&mut self, buffer: Shared<B::Buffer>, bytes: u64, origin: Origin) -> i64 {
        self.slots.push(Slot { buffer: Some(buffer), bytes, origin });
        self.slots.len() as i64
    }

    /// The slot of a live buffer.
    fn live(&self, handle: i64, doing: &str) -> Result<usize, Error> {
        let slot = usize::try_from(handle).ok().and_then(|handle| handle.checked_sub(1));
        match slot.and_then(|index| self.slots.get(index).map(|slot| (index, slot))) {
            Some((index, Slot { buffer: Some(_), .. })) => Ok(index),
            Some(_) => Err(Error::host_code(format!("{doing}: handle {handle} was freed or returned before"))),
            None => Err(Error::host_code(format!("{doing}: handle {handle} does not exist"))),
        }
    }

    /// A range that lies within a live buffer.
    fn range(&self, handle: i64, offset: i64, bytes: i64, doing: &str) -> Result<Range, Error> {
        let slot = self.live(handle, doing)?;
        let size = self.slots[slot].bytes;
        match (u64::try_from(offset), u64::try_from(bytes)) {
            (Ok(offset), Ok(bytes)) if offset.checked_add(bytes).is_some_and(|end| end <= size) => {
                Ok(Range { slot, offset, bytes })
            }
            _ => Err(Error::host_code(format!("{doing}: {bytes} bytes at {offset} of a buffer of {size} bytes"))),
        }
    }

    /// A range that lies within a live buffer that may be written.
    fn writable_range(&self, handle: i64, offset: i64, bytes: i64, doing: &str) -> Result<Range, Error> {
        let range = self.range(handle, offset, bytes, doing)?;
        match self.slots[range.slot].origin.frozen() {
            Some(why) => Err(Error::host_code(format!("{doing}: writes {why}"))),
            None => Ok(range),
        }
    }
}

/// The memory of a range that [`Run::range`] gave, while the backend is borrowed apart.
fn resolve<B: Physical>(slots: &[Slot<B>], range: Range) -> Arg<'_, B> {
    let slot = &slots[range.slot];
    let buffer = slot.buffer.as_ref().expect("a range is of a live slot: checked when it was named, and again on use");
    Arg { buffer, offset: range.offset, bytes: range.bytes, frozen: slot.origin.frozen() }
}

fn index(value: i64, len: usize, what: &str) -> Result<usize, Error> {
    let position = usize::try_from(value).ok().filter(|&position| position < len);
    position.ok_or_else(|| Error::host_code(format!("{what} {value} of {len}")))
}

fn size(bytes: i64, what: &str) -> Result<u64, Error> {
    u64::try_from(bytes).map_err(|_| Error::host_code(format!("{what} of {bytes} bytes")))
}

impl<B: Backend> HostCalls for Run<'_, B> {
    fn input(&mut self, position: i64) -> Result<i64, Error> {
        Ok(index(position, self.inputs, "input")? as i64 + 1)
    }

    fn constant(&mut self, position: i64) -> Result<i64, Error> {
        let position = index(position, self.engine.constants.len(), "constant")?;
        Ok((self.inputs + position) as i64 + 1)
    }

    fn alloc(&mut self, bytes: i64) -> Result<i64, Error> {
        let bytes = size(bytes, "allocation")?;
        let loan = self.engine.take(bytes)?;
        self.counts.allocations += 1;
        Ok(self.push(Arc::new(loan), bytes, Origin::Allocated))
    }

    fn arena(&mut self, bytes: i64) -> Result<i64, Error> {
        if self.arena.is_some() {
            return Err(Error::host_code("the arena is asked for twice"));
        }
        let bytes = size(bytes, "arena")?;
        let kept = self.engine.arena.take().filter(|arena| arena.bytes() >= bytes);
        let arena = match kept {
            Some(arena) => arena,
            None => Arc::new(self.engine.take(bytes)?),
        };
        self.engine.arena = Some(arena.clone());
        let handle = self.push(arena, bytes, Origin::Arena);
        self.arena = Some(handle as usize - 1);
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
        self.slots[slot].buffer = None;
        Ok(())
    }

    fn result(&mut self, position: i64, handle: i64) -> Result<(), Error> {
        let position = index(position, self.results.len(), "result")?;
        let slot = self.live(handle, "result")?;
        if !matches!(self.slots[slot].origin, Origin::Allocated | Origin::Donated) {
            return Err(Error::host_code(format!("result {position} is neither an allocation nor a donated input")));
        }
        let (bytes, result) = &mut self.results[position];
        if result.is_some() || *bytes > self.slots[slot].bytes {
            let found = self.slots[slot].bytes;
            return Err(Error::host_code(format!(
                "result {position} is set twice or too small: {found} of {bytes} bytes"
            )));
        }
        *result = self.slots[slot].buffer.take();
        Ok(())
    }

    fn arg(&mut self, handle: i64, offset: i64, bytes: i64) -> Result<(), Error> {
        let range = self.range(handle, offset, bytes, "argument")?;
        self.args.push(range);
        Ok(())
    }

    fn dispatch(&mut self, kernel: i64, grid: [i64; 3]) -> Result<(), Error> {
        let ranges = std::mem::take(&mut self.args);
        let position = usize::try_from(kernel).ok();
        let found = position.and_then(|position| self.engine.backend.kernel(position).map(|found| (position, found)));
        let (position, (name, args_len)) =
            found.ok_or_else(|| Error::host_code(format!("dispatch: kernel {kernel} does not exist")))?;
        if ranges.len() != args_len {
            let what = format!("dispatch: kernel `{name}` takes {args_len} arguments, {} given", ranges.len());
            return Err(Error::host_code(what));
        }
        let grid = grid.map(|extent| u64::try_from(extent).map_err(|_| Error::host_code("dispatch: negative grid")));
        let [x, y, z] = grid;
        let grid = [x?, y?, z?];
        if ranges.iter().any(|range| self.slots[range.slot].buffer.is_none()) {
            return Err(Error::host_code("dispatch: an argument was returned before its use"));
        }
        let args: Vec<Arg<'_, B::Buffer>> = ranges.iter().map(|&range| resolve(&self.slots, range)).collect();
        self.engine.backend.dispatch(position, &args, grid, &mut self.counts)
    }

    fn copy(&mut self, src: (i64, i64), dst: (i64, i64), bytes: i64) -> Result<(), Error> {
        let from = self.range(src.0, src.1, bytes, "copy")?;
        let to = self.writable_range(dst.0, dst.1, bytes, "copy")?;
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
        };
        self.engine.backend.copy(copy, &mut self.counts)
    }

    fn fill(&mut self, dst: (i64, i64), bytes: i64, pattern: u32) -> Result<(), Error> {
        let range = self.writable_range(dst.0, dst.1, bytes, "fill")?;
        if range.bytes == 0 {
            return Ok(());
        }
        self.engine.backend.fill(resolve(&self.slots, range), pattern, &mut self.counts)
    }
}
