//! Runs a host function: its calls act on logical buffers, which map to pooled ones.
//!
//! The parts common to all targets are here (handles, ownership, arguments, checks); the others are behind
//! [`Backend`].

pub(crate) mod cpu;
pub(crate) mod gpu;
mod meter;
pub(crate) mod numbers;
mod repeat;
mod run;
mod transients;

use std::collections::HashSet;
use std::sync::Arc;

use monopour_program::TensorDesc;

use crate::buffer::Shared;
use crate::cancel::Cancel;
use crate::error::Error;
use crate::host_function::LoadedHost;
use crate::pool::{Loan, Physical, Pool};
use crate::sites::{Site, Turns};
use crate::stats::RunCounts;
pub(crate) use repeat::{Mark, Notes};
use run::Run;
pub(crate) use transients::Plans;
pub use transients::planned_bytes;

/// The parts that differ between GPU and CPU.
pub(crate) trait Backend: Send {
    /// Physical memory.
    type Buffer: Physical;
    /// The wrapper of host code: see [`Gate`].
    type Gate: Gate;
    /// Commands given to the device.
    type Submission: Send;

    fn gate(&self) -> Self::Gate;
    /// Allocates memory; the pool keeps the account.
    fn make(&mut self, bytes: u64) -> Result<Self::Buffer, Error>;
    /// The size of the largest buffer.
    fn most_buffer_bytes(&self) -> u64 {
        u64::MAX
    }
    /// The kernel's name and its numbers of buffers and of scalars, if it exists.
    fn kernel(&self, index: usize) -> Option<(&str, usize, usize)>;
    /// Runs or records a kernel; counts it.
    fn dispatch(
        &mut self,
        launch: Launch<'_>,
        args: &[Arg<'_, Self::Buffer>],
        scalars: &[u64],
        grid: [u64; 3],
        counts: &mut RunCounts,
    ) -> Result<(), Error>;
    /// Reads the range, at most 8 bytes, into the low bytes; waits for its writes.
    fn read(&mut self, src: Arg<'_, Self::Buffer>, counts: &mut RunCounts) -> Result<u64, Error>;
    /// Runs or records a write of the low bytes to the range, at most 8 bytes.
    fn write(&mut self, dst: Arg<'_, Self::Buffer>, bits: u64, counts: &mut RunCounts) -> Result<(), Error>;
    /// Runs or records a checked copy.
    fn copy(&mut self, copy: Copy<'_, Self::Buffer>, counts: &mut RunCounts) -> Result<(), Error>;
    /// Runs or records a checked fill.
    fn fill(&mut self, dst: Arg<'_, Self::Buffer>, pattern: u32, counts: &mut RunCounts) -> Result<(), Error>;
    /// Gives all recorded commands to the device.
    fn submit(&mut self, counts: &mut RunCounts) -> Result<Self::Submission, Error>;
    /// Whether commands are recorded for another encoder: nothing may be submitted.
    fn is_recording(&self) -> bool;
    /// The next run ends with `cancel`.
    fn watch(&mut self, cancel: &Cancel);
    /// Gives what is recorded to the device before the run waits.
    fn pause(&mut self) -> Result<(), Error>;
    /// Drops the recorded commands.
    fn abort(&mut self);
    /// Counts a run, and lets go of buffers with these ids, which their pool has freed.
    fn end_run(&mut self, freed: &HashSet<u64>);
    /// The position in what is recorded of this run; `None` for a backend that records nothing, or not the same again.
    fn mark(&self) -> Option<Mark> {
        None
    }

    /// Records what the run before has recorded there, if this run is at its start and it is still there: the same kernels with
    /// the same arguments. False if not, and nothing is recorded.
    fn repeat(&mut self, _recorded: &std::ops::Range<Mark>) -> bool {
        false
    }

    /// Releases all buffers without other holders: waits for recorded work, and empties caches.
    fn forget_buffers(&mut self) -> Result<(), Error>;
}

/// A kernel to run.
#[derive(Clone, Copy)]
pub(crate) struct Launch<'a> {
    pub kernel: usize,
    /// Its source, if someone asks.
    pub site: Option<&'a Arc<Site>>,
}

/// Brackets a run, on the thread that it needs.
pub(crate) trait Gate {
    fn run<T>(&self, f: impl FnOnce() -> Result<T, Error>) -> Result<T, Error>;
}

/// A range of a buffer.
#[derive(Debug)]
pub(crate) struct Arg<'a, B> {
    pub buffer: &'a B,
    pub offset: u64,
    pub bytes: u64,
    /// The reason why it is read-only, if it is.
    pub frozen: Option<&'static str>,
}

impl<B> Clone for Arg<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> std::marker::Copy for Arg<'_, B> {}

/// A copy between two ranges of `bytes` bytes.
#[derive(Debug)]
pub(crate) struct Copy<'a, B> {
    pub src: &'a B,
    pub src_offset: u64,
    pub dst: &'a B,
    pub dst_offset: u64,
    pub bytes: u64,
    /// Whether the range ends with the destination, up to the next whole word: the rest is padding.
    pub to_end: bool,
}

/// A loaded variant on one backend.
pub(crate) struct Engine<B: Backend> {
    pub backend: B,
    pub pool: Arc<Pool<B::Buffer>>,
    pub constants: Vec<Constant<B::Buffer>>,
    /// Kept between runs.
    pub arena: Option<Arena<B::Buffer>>,
    /// The sources of dispatches.
    pub turns: Turns,
    /// What is known of the runs before.
    pub notes: Notes,
    /// Where transients lie whose sizes follow from the inputs'.
    pub plans: Plans,
}

/// The memory of transients.
pub(crate) struct Arena<B: Physical> {
    pub buffer: Shared<B>,
    /// Whether a run on it has succeeded: it holds what [`HostCalls::dispatch_once`] writes.
    pub is_prepared: bool,
}

/// A constant's memory and its size.
#[derive(Debug)]
pub(crate) struct Constant<B: Physical> {
    pub buffer: Shared<B>,
    pub bytes: u64,
}

impl<B: Physical> Clone for Constant<B> {
    fn clone(&self) -> Self {
        Constant { buffer: self.buffer.clone(), bytes: self.bytes }
    }
}

/// An input of a run.
pub(crate) struct Input<B: Physical> {
    pub value: Value<B>,
    pub bytes: u64,
    /// Sizes of the dimensions.
    pub shape: Vec<u64>,
    pub donated: bool,
}

/// An input or result of a run: a tensor's memory, or a scalar's bits.
pub(crate) enum Value<B: Physical> {
    Buffer(Place<B>),
    Scalar(u64),
}

/// Where a tensor begins.
pub(crate) struct Place<B: Physical> {
    pub buffer: Shared<B>,
    pub offset: u64,
    /// Whether what lies behind it in the buffer is the caller's.
    pub is_foreign: bool,
}

impl<B: Physical> Place<B> {
    /// A buffer of the pool.
    pub fn own(buffer: Shared<B>) -> Place<B> {
        Place { buffer, offset: 0, is_foreign: false }
    }
}

/// The output of a run.
pub(crate) struct Outcome<B: Physical> {
    /// The results with their sizes.
    pub results: Vec<(Value<B>, Vec<u64>)>,
    pub counts: RunCounts,
    /// Allocations that host code neither freed nor returned.
    pub leaked: u64,
}

impl<B: Backend> Engine<B> {
    /// A buffer on loan for data from the host.
    pub fn take(&mut self, bytes: u64) -> Result<Loan<B::Buffer>, Error> {
        let backend = &mut self.backend;
        match self.pool.take(bytes, |bytes| backend.make(bytes)) {
            Err(Error::MemoryLimit { .. }) if !backend.is_recording() => {
                self.release_idle()?;
                let backend = &mut self.backend;
                self.pool.take(bytes, |bytes| backend.make(bytes))
            }
            outcome => outcome,
        }
    }

    /// Frees idle buffers.
    pub fn release_idle(&mut self) -> Result<(), Error> {
        self.backend.forget_buffers()?;
        self.pool.trim();
        Ok(())
    }

    /// Runs `host` on `inputs` and gives its commands to the device; `results` describes its results.
    pub fn start(
        &mut self,
        host: &mut LoadedHost,
        (inputs, results): (Vec<Input<B::Buffer>>, &[TensorDesc]),
        cancel: &Cancel,
    ) -> Result<(Outcome<B::Buffer>, B::Submission), Error> {
        let gate = self.backend.gate();
        self.backend.watch(cancel);
        let outcome = gate.run(|| {
            let mut outcome = self.call(host, (inputs, results), cancel)?;
            let submission = self.backend.submit(&mut outcome.counts)?;
            Ok((outcome, submission))
        });
        if outcome.is_err() {
            self.backend.abort();
        } else if let Some(arena) = &mut self.arena {
            arena.is_prepared = true;
        }
        outcome
    }

    /// Runs `host`, or what is known of it, and leaves its commands in the backend.
    pub fn call(
        &mut self,
        host: &mut LoadedHost,
        (inputs, results): (Vec<Input<B::Buffer>>, &[TensorDesc]),
        cancel: &Cancel,
    ) -> Result<Outcome<B::Buffer>, Error> {
        let mut run = Run::new(self, (inputs, results), cancel);
        if run.is_known() {
            run.repeat()?;
        } else {
            host.call(&mut run)?;
        }
        run.into_outcome()
    }
}
