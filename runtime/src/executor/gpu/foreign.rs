//! Recording into an encoder of the caller, with its buffers.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{GpuBackend, WORD_BYTES};
use crate::buffer::{BufferSlice, GpuBuffer};
use crate::error::Error;
use crate::executor::{Arg, Backend, Copy, Place};
use crate::pipeline_cache::KERNEL_GRANULARITY;
use crate::pool::Loan;
use crate::stats::RunCounts;

/// Recorded runs after which the caller's buffers, if unused, are forgotten: the bind groups over them keep them alive.
const FORGET_AFTER: u64 = 64;

/// The caller's buffers by their ids in bind groups, with the number of the last run that used them.
#[derive(Debug, Default)]
pub(super) struct Foreign {
    known: HashMap<wgpu::Buffer, (u64, u64)>,
    runs: u64,
}

/// What records into another's encoder.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    /// Whether commands are recorded for an encoder of the caller.
    pub is_on: bool,
    /// The kernels of the dispatches so far, with the ids of what each writes.
    pub writers: Vec<(u64, usize)>,
    /// Scalars of all dispatches, on a device without immediates.
    numbers: Option<wgpu::Buffer>,
}

impl GpuBackend {
    /// The next commands are for an encoder of the caller.
    pub fn begin_recording(&mut self) {
        self.recorded.is_on = true;
        self.bind_groups.begin_run();
        self.foreign.runs += 1;
        if self.foreign.runs.is_multiple_of(FORGET_AFTER) {
            let oldest = self.foreign.runs - FORGET_AFTER;
            let mut forgotten = HashSet::new();
            self.foreign.known.retain(|_, (uid, used)| *used >= oldest || !forgotten.insert(*uid));
            self.bind_groups.forget(&forgotten);
        }
    }

    /// Moves the recorded commands into the caller's encoder; without one drops them.
    pub fn end_recording(&mut self, encoder: Option<&mut wgpu::CommandEncoder>) {
        if let Some(encoder) = encoder {
            if let (Some(numbers), Some(staged)) = (&self.numbers, self.recorded.numbers.take()) {
                encoder.copy_buffer_to_buffer(&staged, 0, &numbers.buffer, 0, Some(staged.size()));
            }
            self.recording.encode(encoder, &self.bind_groups, None);
            self.retire_scratch();
        } else {
            self.abort();
        }
        self.dispatched.clear();
        self.recorded = Recorded::default();
    }

    /// Prepares what [`GpuBackend::end_recording`] needs.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn stage_numbers(&mut self) -> Result<(), Error> {
        if let Some(numbers) = &mut self.numbers {
            self.recorded.numbers = numbers.stage(&self.gpu)?;
        }
        Ok(())
    }

    /// A buffer of the caller.
    fn adopt(&mut self, buffer: &wgpu::Buffer) -> Loan<GpuBuffer> {
        let run = self.foreign.runs;
        if let Some((uid, used)) = self.foreign.known.get_mut(buffer) {
            *used = run;
            return Loan::foreign(GpuBuffer { buffer: buffer.clone(), uid: *uid });
        }
        let adopted = GpuBuffer::new(buffer.clone());
        self.foreign.known.insert(buffer.clone(), (adopted.uid, run));
        Loan::foreign(adopted)
    }

    /// The place of an input of `bytes` bytes; `None` where kernels cannot be bound to it, and [`GpuBackend::copy_in`] brings
    /// it to a buffer of ours.
    pub fn bind(&mut self, slice: &BufferSlice, (bytes, is_donated): (u64, bool)) -> Option<Place<GpuBuffer>> {
        let alignment = u64::from(self.gpu.limits.min_storage_buffer_offset_alignment);
        // What lies behind a range may be read, where bindings are rounded up, but not be bound for writing.
        let is_exact = (bytes | alignment).is_multiple_of(KERNEL_GRANULARITY);
        let buffer = slice.buffer();
        let fits = buffer.usage().contains(wgpu::BufferUsages::STORAGE)
            && slice.offset_bytes().is_multiple_of(alignment)
            // Bindings are whole words, and so is the least that kernels write.
            && (buffer.size() | bytes).is_multiple_of(WORD_BYTES)
            && bytes > 0
            && (is_exact || !is_donated);
        let place = || Place { buffer: Arc::new(self.adopt(buffer)), offset: slice.offset_bytes(), is_foreign: true };
        fits.then(place)
    }

    /// Copies an input to a buffer of ours.
    ///
    /// # Errors
    /// [`Error::Tensor`].
    pub fn copy_in(
        &mut self,
        slice: &BufferSlice,
        dst: &GpuBuffer,
        (bytes, counts): (u64, &mut RunCounts),
    ) -> Result<(), Error> {
        let words = bytes.next_multiple_of(WORD_BYTES);
        let (offset, room) = (slice.offset_bytes(), slice.buffer().size() - slice.offset_bytes());
        if !slice.buffer().usage().contains(wgpu::BufferUsages::COPY_SRC) {
            return Err(unusable(format!("an input at byte {offset} of a buffer without STORAGE and COPY_SRC")));
        }
        if !offset.is_multiple_of(WORD_BYTES) || words > room {
            return Err(unusable(format!(
                "an input of {bytes} bytes at byte {offset} of its buffer is not whole words"
            )));
        }
        if bytes > 0 {
            self.recording.copy((slice.buffer(), offset), (&dst.buffer, 0), words);
            counts.copies += 1;
            counts.copied_bytes += bytes;
        }
        Ok(())
    }

    /// Copies a result of `bytes` bytes to where the caller wants it.
    ///
    /// # Errors
    /// [`Error::Tensor`].
    pub fn copy_out(
        &mut self,
        result: &Place<GpuBuffer>,
        slice: &BufferSlice,
        (bytes, counts): (u64, &mut RunCounts),
    ) -> Result<(), Error> {
        if bytes > slice.size_bytes() {
            return Err(unusable(format!("a result of {bytes} bytes, for which {} were given", slice.size_bytes())));
        }
        let offset = slice.offset_bytes();
        // Donated state that stays where it is.
        if bytes == 0 || (result.buffer.buffer == *slice.buffer() && result.offset == offset) {
            return Ok(());
        }
        let mut needed = wgpu::BufferUsages::COPY_DST;
        if !(offset | bytes).is_multiple_of(WORD_BYTES) {
            // By a kernel, which keeps the other bytes of the words.
            needed = wgpu::BufferUsages::STORAGE;
        }
        if !slice.buffer().usage().contains(needed) {
            return Err(unusable(format!("a result of {bytes} bytes at byte {offset} of a buffer without {needed:?}")));
        }
        let target = self.adopt(slice.buffer());
        let (src, src_offset) = (&*result.buffer, result.offset);
        self.copy(Copy { src, src_offset, dst: &target, dst_offset: offset, bytes, to_end: false }, counts)
    }

    /// Notes which kernel writes what, for the error of a later read.
    pub(super) fn note(&mut self, kernel: usize, args: &[Arg<'_, GpuBuffer>]) {
        let written = args.iter().zip(&self.kernels.pipelines[kernel].kernel.bindings).filter(|(_, b)| b.is_written);
        self.recorded.writers.extend(written.map(|(arg, _)| (arg.buffer.uid, kernel)));
    }

    /// The error of host code that reads while it is recorded.
    pub(super) fn reads_back(&self, src: &Arg<'_, GpuBuffer>) -> Error {
        let writer = self.recorded.writers.iter().rev().find(|(uid, _)| *uid == src.buffer.uid);
        let of = match writer {
            Some((_, kernel)) => format!("that kernel `{}` writes", self.kernels.pipelines[*kernel].kernel.name),
            None => "of an input or a constant".to_owned(),
        };
        Error::Record { what: format!("host code reads {} bytes {of}", src.bytes) }
    }
}

fn unusable(what: String) -> Error {
    Error::Tensor { what }
}
