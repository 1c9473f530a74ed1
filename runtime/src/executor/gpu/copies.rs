//! Copies that the device API does not offer: within one buffer, and of bytes that are not whole words.

use std::collections::HashSet;

use monopour_program::{Access, Binding, GpuKernel};

use super::{FILL_WORKGROUP, GpuBackend, PipelineId, WORD_BYTES, WRITE_WINDOW, are_apart, make_buffer};
use crate::buffer::GpuBuffer;
use crate::error::Error;
use crate::executor::{Arg, Copy};
use crate::pool::DISUSE_RUNS;
use crate::stats::RunCounts;

const COPY_WGSL: &str = include_str!("../../../../shaders/runtime/copy.wgsl");
/// Bytes that one dispatch of the copy kernel moves: every device binds as much.
const COPY_PIECE: u64 = 64 << 20;

impl GpuBackend {
    /// A copy of whole words of `src`, until the run is done.
    pub(super) fn between(&mut self, src: &GpuBuffer, start: u64, words: u64) -> Result<GpuBuffer, Error> {
        // The smallest that will do, so that the same copies find the same buffers in every run.
        let fitting = self.idle_scratch.iter().enumerate().filter(|(_, (idle, _))| idle.buffer.size() >= words);
        let found = fitting.min_by_key(|(_, (idle, _))| idle.buffer.size()).map(|(at, _)| at);
        if let Some(at) = found {
            let (between, _) = self.idle_scratch.swap_remove(at);
            self.recording.copy((&src.buffer, start), (&between.buffer, 0), words);
            return Ok(between);
        }
        self.account.reserve(words)?;
        let between = match make_buffer(&self.gpu, words) {
            Ok(between) => between,
            Err(error) => {
                self.account.release(words);
                return Err(error);
            }
        };
        self.recording.copy((&src.buffer, start), (&between.buffer, 0), words);
        Ok(between)
    }

    /// Copies within a buffer, or between places that are not whole words: by a kernel, in pieces that a binding can hold.
    pub(super) fn copy_bytes(&mut self, copy: Copy<'_, GpuBuffer>, counts: &mut RunCounts) -> Result<(), Error> {
        let Copy { src, mut src_offset, dst, dst_offset, bytes, .. } = copy;
        counts.copies += 1;
        counts.copied_bytes += bytes;
        let mut overlapped = None;
        if src.uid == dst.uid && !are_apart(&copy) {
            let start = src_offset / WORD_BYTES * WORD_BYTES;
            let words = (src_offset + bytes).next_multiple_of(WORD_BYTES) - start;
            overlapped = Some(self.between(src, start, words)?);
            src_offset -= start;
        }
        let from = overlapped.as_ref().unwrap_or(src);
        let mut done = 0;
        while done < bytes {
            let piece = Copy {
                src: from,
                src_offset: src_offset + done,
                dst,
                dst_offset: dst_offset + done,
                bytes: (bytes - done).min(COPY_PIECE),
                to_end: false,
            };
            done += piece.bytes;
            self.copy_piece(&piece, counts)?;
        }
        self.scratch.extend(overlapped);
        Ok(())
    }

    fn copy_piece(&mut self, piece: &Copy<'_, GpuBuffer>, counts: &mut RunCounts) -> Result<(), Error> {
        let Copy { src, src_offset, dst, dst_offset, bytes, .. } = *piece;
        if self.utilities.copy.is_none() {
            let kernel = GpuKernel {
                name: "copy_bytes".into(),
                wgsl: COPY_WGSL.into(),
                workgroup_size: [FILL_WORKGROUP as u32, 1, 1],
                bindings: vec![Binding::of(Access::Read), Binding::of(Access::ReadWrite)],
                scalars: vec![4; 3],
                ..GpuKernel::default()
            };
            self.utilities.copy = Some(self.numbers_utility("copy", kernel));
        }
        let window = |buffer: &GpuBuffer, offset: u64| {
            let at = offset / WRITE_WINDOW * WRITE_WINDOW;
            (at, (offset + bytes).next_multiple_of(WORD_BYTES).min(buffer.buffer.size()) - at)
        };
        let ((src_at, src_bytes), (dst_at, dst_bytes)) = (window(src, src_offset), window(dst, dst_offset));
        let args = [
            Arg { buffer: src, offset: src_at, bytes: src_bytes, frozen: None },
            Arg { buffer: dst, offset: dst_at, bytes: dst_bytes, frozen: None },
        ];
        let numbers = [src_offset - src_at, dst_offset - dst_at, bytes];
        let numbers: Vec<u8> = numbers.iter().flat_map(|n| (*n as u32).to_le_bytes()).collect();
        let most = u64::from(self.gpu.limits.max_compute_workgroups_per_dimension);
        let groups = (bytes / WORD_BYTES + 2).div_ceil(FILL_WORKGROUP).min(most) as u32;
        self.record(PipelineId::Copy, &args, &numbers, [groups, 1, 1])?;
        counts.dispatches += 1;
        Ok(())
    }

    /// The device is done with intermediate buffers: the next run may have them.
    pub(super) fn retire_scratch(&mut self) {
        self.idle_scratch.extend(self.scratch.drain(..).map(|buffer| (buffer, 0)));
    }

    /// Bytes of intermediate buffers.
    pub(crate) fn scratch_bytes(&self) -> u64 {
        self.scratch.iter().chain(self.idle_scratch.iter().map(|(buffer, _)| buffer)).map(|b| b.buffer.size()).sum()
    }

    /// Frees intermediate buffers that no run of late has used.
    pub(super) fn age_scratch(&mut self) {
        let (account, groups) = (&self.account, &mut self.bind_groups);
        self.idle_scratch.retain_mut(|(buffer, unused)| {
            *unused += 1;
            if *unused <= DISUSE_RUNS {
                return true;
            }
            account.release(buffer.buffer.size());
            groups.forget(&HashSet::from([buffer.uid]));
            false
        });
    }

    /// Gives intermediate buffers back to the device.
    pub(super) fn release_scratch(&mut self) {
        self.retire_scratch();
        for (buffer, _) in self.idle_scratch.drain(..) {
            self.account.release(buffer.buffer.size());
        }
    }
}
