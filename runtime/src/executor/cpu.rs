//! The CPU target: kernels run at once, with their tasks on several threads.

use std::collections::HashSet;

use monopour_program::{CpuKernel, Kernel};

use super::{Arg, Backend, Copy, Gate, Launch};
use crate::cancel::Cancel;
use crate::error::Error;
use crate::ffi::NativeKernel;
use crate::memory::HostMemory;
use crate::stats::RunCounts;
use crate::threads::{Cost, Threads};
use crate::trace::Recorder;

/// The most tasks of one dispatch: their number must fit a `usize` on every machine.
const MAX_TASKS: u64 = u32::MAX as u64;

/// Native kernels and their threads.
pub(crate) struct CpuBackend {
    pub threads: Threads,
    /// The loaded kernels with their descriptions, and the time of their tasks.
    pub kernels: Vec<(NativeKernel, CpuKernel, Cost)>,
    pub recorder: Recorder,
    /// Ends the tasks of the run.
    pub cancel: Cancel,
}

impl CpuBackend {
    /// The kernels of a variant, all of which are native.
    pub fn describe(kernels: &[Kernel]) -> Vec<&CpuKernel> {
        kernels.iter().filter_map(|kernel| if let Kernel::Cpu(kernel) = kernel { Some(kernel) } else { None }).collect()
    }
}

impl Gate for Threads {
    fn run<T>(&self, f: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        self.enter(f)
    }
}

impl Backend for CpuBackend {
    type Buffer = HostMemory;
    type Gate = Threads;
    type Submission = ();

    fn gate(&self) -> Threads {
        self.threads.clone()
    }

    fn make(&mut self, bytes: u64) -> Result<HostMemory, Error> {
        HostMemory::new(bytes)
    }

    fn kernel(&self, index: usize) -> Option<(&str, usize, usize)> {
        let found = self.kernels.get(index);
        found.map(|(_, kernel, _)| (kernel.symbol.as_str(), kernel.args as usize, kernel.scalars as usize))
    }

    fn dispatch(
        &mut self,
        Launch { kernel, site }: Launch<'_>,
        args: &[Arg<'_, HostMemory>],
        scalars: &[u64],
        [x, y, z]: [u64; 3],
        counts: &mut RunCounts,
    ) -> Result<(), Error> {
        let (native, described, cost) = &mut self.kernels[kernel];
        let tasks = x.checked_mul(y).and_then(|tasks| tasks.checked_mul(z)).filter(|&tasks| tasks <= MAX_TASKS);
        let Some(tasks) = tasks else {
            let subject = format!("kernel `{}`", described.symbol);
            let needed = x.saturating_mul(y).saturating_mul(z);
            return Err(Error::Limit { subject, limit: "tasks of one dispatch", needed, offered: MAX_TASKS });
        };
        let addresses = args.iter().map(|arg| (arg.buffer.address() + arg.offset as usize) as u64);
        let slots: Vec<u64> = addresses.chain(scalars.iter().copied()).collect();
        let ids = described.ids as usize;
        let span = self.recorder.start();
        let (native, cancel) = (native.clone(), self.cancel.clone());
        self.threads.for_each(tasks as usize, cost, move |task| {
            // The other tasks pass quickly: a run that is cancelled ends with the tasks that run.
            if cancel.is_set() {
                return;
            }
            // The innermost dimension varies fastest: neighbouring tasks touch neighbouring memory.
            let task = task as u64;
            let all = [(task / x / y) as i64, (task / x % y) as i64, (task % x) as i64];
            native.call(&slots, &all[3 - ids..]);
        });
        self.recorder.end(span, &described.symbol, site.map(|site| &**site));
        counts.dispatches += 1;
        counts.copies += u64::from(described.copies.count);
        counts.copied_bytes += described.copies.bytes_of(scalars);
        Ok(())
    }

    fn read(&mut self, src: Arg<'_, HostMemory>, _counts: &mut RunCounts) -> Result<u64, Error> {
        let mut bits = [0; 8];
        src.buffer.read_at(src.offset as usize, &mut bits[..src.bytes as usize]);
        Ok(u64::from_le_bytes(bits))
    }

    fn write(&mut self, dst: Arg<'_, HostMemory>, bits: u64, _counts: &mut RunCounts) -> Result<(), Error> {
        dst.buffer.write_at(dst.offset as usize, &bits.to_le_bytes()[..dst.bytes as usize]);
        Ok(())
    }

    fn copy(&mut self, copy: Copy<'_, HostMemory>, counts: &mut RunCounts) -> Result<(), Error> {
        copy.dst.copy_from(copy.dst_offset as usize, copy.src, copy.src_offset as usize, copy.bytes as usize);
        counts.copies += 1;
        counts.copied_bytes += copy.bytes;
        Ok(())
    }

    fn fill(&mut self, dst: Arg<'_, HostMemory>, pattern: u32, _counts: &mut RunCounts) -> Result<(), Error> {
        dst.buffer.fill(dst.offset as usize, dst.bytes as usize, pattern);
        Ok(())
    }

    fn submit(&mut self, _counts: &mut RunCounts) -> Result<(), Error> {
        // Tasks that were passed over have left holes in the results.
        self.cancel.check()
    }

    fn is_recording(&self) -> bool {
        false
    }

    fn watch(&mut self, cancel: &Cancel) {
        self.cancel = cancel.clone();
    }

    fn pause(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn abort(&mut self) {}

    fn end_run(&mut self, _freed: &HashSet<u64>) {}

    fn forget_buffers(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
