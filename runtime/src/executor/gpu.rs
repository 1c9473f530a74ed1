//! The GPU target: calls are recorded into one encoder and submitted once.

mod copies;
mod foreign;
mod parts;
mod recording;
mod utilities;

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use monopour_program::GpuKernel;

use super::numbers::Numbers;
use super::{Arg, Backend, Copy, Gate, Launch, Mark};
use crate::buffer::GpuBuffer;
use crate::cancel::Cancel;
use crate::device::GpuDevice;
use crate::error::Error;
use crate::kernels::Kernels;
use crate::pipeline_cache::{BindGroups, Bound, Pipeline};
use crate::pool::SharedAccount;
use crate::sites::Site;
use crate::stats::RunCounts;
use crate::timing::{Timing, map_to_vec};
use crate::trace::{Recorder, Span};
use foreign::{Foreign, Recorded};
use parts::Parts;
use recording::{Clear, Group, Recording, Transfer};
use utilities::{PipelineId, Utilities};

/// Granularity of copies and clears.
const WORD_BYTES: u64 = 4;
/// Bytes of the staging buffer for reads: 8 bytes at any offset touch three words at most.
const STAGING_BYTES: u64 = 16;
/// Bytes of one window of the write kernel, which binds two: any device's binding offsets are multiples.
const WRITE_WINDOW: u64 = 256;
/// Most commands for an encoder of the caller.
const MOST_RECORDED: usize = 1 << 24;
/// Invocations per workgroup of the fill kernel.
const FILL_WORKGROUP: u64 = 256;

/// A buffer for tensors.
///
/// # Errors
/// [`Error::Limit`].
pub(crate) fn make_buffer(gpu: &GpuDevice, bytes: u64) -> Result<GpuBuffer, Error> {
    use wgpu::BufferUsages as Usages;
    create(gpu, bytes, Usages::STORAGE | Usages::COPY_SRC | Usages::COPY_DST)
}

fn create(gpu: &GpuDevice, bytes: u64, usage: wgpu::BufferUsages) -> Result<GpuBuffer, Error> {
    let offered = gpu.limits.max_buffer_size;
    if bytes > offered {
        let subject = format!("a buffer of {bytes} bytes");
        return Err(Error::Limit { subject, limit: "buffer size", needed: bytes, offered });
    }
    let descriptor = wgpu::BufferDescriptor { label: None, size: bytes, usage, mapped_at_creation: false };
    Ok(GpuBuffer::new(gpu.device.create_buffer(&descriptor)))
}

/// Kernels and the recording of a run.
pub(crate) struct GpuBackend {
    pub gpu: GpuDevice,
    kernels: Arc<Kernels>,
    utilities: Utilities,
    /// The staging buffer for reads.
    staging: Option<wgpu::Buffer>,
    /// Scalars of kernels without immediates.
    numbers: Option<Numbers>,
    pub bind_groups: BindGroups,
    pub pipelines_created: u64,
    /// Time to create them.
    pub kernels_ms: f64,
    recording: Recording,
    recorded: Recorded,
    foreign: Foreign,
    /// Submissions of this run before its last, and the last of them.
    early_submits: u64,
    submitted: Option<wgpu::SubmissionIndex>,
    parts: Parts,
    /// Intermediate buffers of copies within one buffer, until the run is done.
    scratch: Vec<GpuBuffer>,
    /// Such buffers of earlier runs, for reuse, with the runs since their last use.
    idle_scratch: Vec<(GpuBuffer, u64)>,
    account: SharedAccount,
    pub timing: Option<Timing>,
    /// Device time of the last run.
    pub last_gpu_ms: Option<f64>,
    pub recorder: Recorder,
    /// Names and sources of the dispatches of this run, for the trace.
    dispatched: Vec<(String, Option<Arc<Site>>)>,
}

impl GpuBackend {
    /// A backend that runs `kernels`, for a host function whose text has this many dispatches.
    pub fn new(
        (gpu, kernels, dispatches): (GpuDevice, Arc<Kernels>, u64),
        account: SharedAccount,
        (with_timing, with_trace): (bool, bool),
    ) -> Result<GpuBackend, Error> {
        let timing = || if with_timing || with_trace { Timing::new(&gpu, with_trace, &account) } else { Ok(None) };
        let timing = gpu.scoped("timestamps", timing)?;
        Ok(GpuBackend {
            pipelines_created: kernels.count,
            kernels_ms: kernels.elapsed_ms,
            gpu,
            kernels,
            utilities: Utilities::default(),
            staging: None,
            numbers: None,
            bind_groups: BindGroups::default(),
            recording: Recording::default(),
            recorded: Recorded::default(),
            foreign: Foreign::default(),
            early_submits: 0,
            submitted: None,
            parts: Parts::new(dispatches),
            scratch: Vec::new(),
            idle_scratch: Vec::new(),
            account,
            timing,
            last_gpu_ms: None,
            recorder: Recorder::new(with_trace),
            dispatched: Vec::new(),
        })
    }

    /// The kernel of a prepared pipeline.
    fn kernel_of(&self, id: PipelineId) -> &GpuKernel {
        &self.utilities.prepared(&self.kernels, id).kernel
    }

    /// Places the scalars of a dispatch in the number buffer, if the kernel reads that.
    fn place_numbers(&mut self, id: PipelineId, bytes: &[u8]) -> Result<Option<u32>, Error> {
        if bytes.is_empty() || !self.kernel_of(id).takes_number_buffer() {
            return Ok(None);
        }
        if self.numbers.is_none() {
            self.numbers = Some(Numbers::new(&self.gpu, &self.account)?);
        }
        let gpu = self.gpu.clone();
        let place = |this: &mut Self| this.numbers.as_mut().and_then(|numbers| numbers.place(&gpu, bytes));
        if let Some(at) = place(self) {
            return Ok(Some(at));
        }
        if self.recorded.is_on {
            let (subject, needed) = ("a recorded run".to_owned(), Numbers::BYTES + bytes.len() as u64);
            return Err(Error::Limit { subject, limit: "bytes of scalars", needed, offered: Numbers::BYTES });
        }
        // Submitted dispatches no longer need their scalars here.
        self.submit_early()?;
        Ok(place(self))
    }

    /// Records a dispatch of pipeline `id`, with its scalars laid out.
    fn record(
        &mut self,
        id: PipelineId,
        args: &[Arg<'_, GpuBuffer>],
        scalars: &[u8],
        grid: [u32; 3],
    ) -> Result<(), Error> {
        self.make_room()?;
        let offset = self.place_numbers(id, scalars)?;
        let number = self.utilities.number(id);
        let bound = match self.bind_groups.next(number, args) {
            Some(bound) => bound,
            None => self.bind_anew(id, args, offset.is_some())?,
        };
        if !self.recording.is_next_of((number, bound.is_shared)) {
            let pipeline = self.utilities.prepared(&self.kernels, id);
            let pipeline = if bound.is_shared { pipeline.shared(&self.gpu).0 } else { pipeline };
            self.recording.set_pipeline((number, bound.is_shared), &pipeline.pipeline);
        }
        // Not a clone of the bind group, whose holders would be counted up and down again for every dispatch.
        let group = match bound.stays {
            true => Group::Trail(bound.at as u32),
            false => self.recording.own(self.bind_groups.group(bound.at)),
        };
        let immediates = if offset.is_none() { scalars } else { &[] };
        let numbers = self.recording.keep(immediates);
        self.recording.dispatch(group, (offset, numbers), grid);
        if self.timing.as_ref().is_some_and(|timing| timing.per_dispatch) {
            let name = self.kernel_of(id).name.clone();
            self.dispatched.push((name, None));
        }
        Ok(())
    }

    /// Checks arguments and binds them; their kernel, buffers and ranges decide the outcome, so that dispatches whose bind
    /// groups are known were checked.
    fn bind_anew(&mut self, id: PipelineId, args: &[Arg<'_, GpuBuffer>], reads_numbers: bool) -> Result<Bound, Error> {
        let mut pipeline = self.utilities.prepared(&self.kernels, id);
        if matches!(id, PipelineId::Kernel(_)) {
            self.check_ranges(pipeline, args)?;
        }
        let is_shared = Self::shares(pipeline, args);
        if is_shared {
            let start = Instant::now();
            let (shared, is_new) = pipeline.shared(&self.gpu);
            if is_new {
                self.pipelines_created += 1;
                self.kernels_ms += start.elapsed().as_secs_f64() * 1e3;
            }
            pipeline = shared;
        }
        let numbers = self.numbers.as_ref().filter(|_| reads_numbers).map(|numbers| &numbers.buffer);
        Ok(self.bind_groups.bind(&self.gpu, (pipeline, is_shared), args, numbers))
    }

    /// Checks wgpu's requirements on ranges, with errors in the program's terms.
    fn check_ranges(&self, pipeline: &Pipeline, args: &[Arg<'_, GpuBuffer>]) -> Result<(), Error> {
        for (at, arg) in args.iter().enumerate() {
            let offered = self.gpu.limits.max_storage_buffer_binding_size;
            limit(&pipeline.kernel, ("binding size", pipeline.bound(arg).1, offered))?;
            if !arg.offset.is_multiple_of(self.gpu.limits.min_storage_buffer_offset_alignment.into()) {
                return Err(fault(
                    &pipeline.kernel,
                    at,
                    &format!("begins at byte {}, which is not aligned", arg.offset),
                ));
            }
        }
        Ok(())
    }

    /// Checks what the bind group does not decide.
    fn check(&self, kernel: &GpuKernel, args: &[Arg<'_, GpuBuffer>], grid: [u64; 3]) -> Result<(), Error> {
        for extent in grid {
            let offered = self.gpu.limits.max_compute_workgroups_per_dimension;
            limit(kernel, ("workgroups per dimension", extent, offered.into()))?;
        }
        for (at, (arg, binding)) in args.iter().zip(&kernel.bindings).enumerate() {
            if let Some(why) = arg.frozen.filter(|_| binding.is_written) {
                return Err(fault(kernel, at, &format!("is written and is {why}")));
            }
        }
        Ok(())
    }

    /// Whether a buffer is bound both for reading and for writing.
    fn shares(pipeline: &Pipeline, args: &[Arg<'_, GpuBuffer>]) -> bool {
        let written = || args.iter().zip(&pipeline.kernel.bindings).filter(|(_, b)| b.access.is_written());
        let mut read = args.iter().zip(&pipeline.kernel.bindings).filter(|(_, b)| !b.access.is_written());
        read.any(|(arg, _)| written().any(|(other, _)| other.buffer.uid == arg.buffer.uid))
    }

    /// Submits a long recording, once the device is done with the one before.
    fn make_room(&mut self) -> Result<(), Error> {
        let recorded = self.recording.len();
        if self.recorded.is_on {
            let (subject, needed, offered) = ("a recorded run".to_owned(), recorded as u64 + 1, MOST_RECORDED as u64);
            return if needed <= offered {
                Ok(())
            } else {
                Err(Error::Limit { subject, limit: "commands", needed, offered })
            };
        }
        if !self.parts.is_full(recorded, self.early_submits == 0) {
            return Ok(());
        }
        let (before, given) = (self.submitted.clone(), self.parts.given());
        self.submit_early()?;
        if let Some(before) = before {
            self.gpu.wait(Some(before))?;
            given.into_iter().for_each(|given| self.parts.finish(given, Instant::now()));
        }
        Ok(())
    }

    /// Submits the recording and starts an empty one.
    fn submit_early(&mut self) -> Result<Option<wgpu::SubmissionIndex>, Error> {
        if !self.recording.is_empty() {
            self.early_submits += 1;
            self.submit_recording(false)?;
        }
        Ok(self.submitted.clone())
    }

    fn submit_recording(&mut self, is_last: bool) -> Result<(), Error> {
        let descriptor = wgpu::CommandEncoderDescriptor { label: None };
        let mut encoder = self.gpu.device.create_command_encoder(&descriptor);
        self.recording.encode(&mut encoder, &self.bind_groups, self.timing.as_mut());
        if let Some(timing) = self.timing.as_ref().filter(|_| is_last) {
            timing.resolve(&mut encoder);
        }
        self.flush_numbers();
        self.submitted = Some(self.gpu.submit(Some(encoder.finish()))?);
        self.parts.give(Instant::now());
        Ok(())
    }

    /// Writes the scalars of the next submission.
    fn flush_numbers(&mut self) {
        if let Some(numbers) = &mut self.numbers {
            numbers.flush(&self.gpu.queue);
        }
    }

    /// The staging buffer for reads, created once.
    fn staging(&mut self) -> Result<wgpu::Buffer, Error> {
        if let Some(staging) = &self.staging {
            return Ok(staging.clone());
        }
        self.account.reserve(STAGING_BYTES)?;
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let staging = match create(&self.gpu, STAGING_BYTES, usage) {
            Ok(staging) => staging.buffer,
            Err(error) => {
                self.account.release(STAGING_BYTES);
                return Err(error);
            }
        };
        self.staging = Some(staging.clone());
        Ok(staging)
    }

    /// Reads the run's timestamps and records its trace.
    fn book_time(&mut self) -> Result<(), Error> {
        let Some(timing) = &mut self.timing else { return Ok(()) };
        let pairs = timing.read(&self.gpu)?;
        timing.reset();
        self.last_gpu_ms = pairs.as_ref().map(|pairs| pairs.iter().map(|(_, ns)| ns).sum::<f64>() / 1e6);
        let names = std::mem::take(&mut self.dispatched);
        for ((start, length), (name, site)) in pairs.into_iter().flatten().zip(names) {
            self.recorder.add(Span::at(name, "device", (start / 1e3, length / 1e3), site.as_deref()));
        }
        Ok(())
    }
}

/// Checks a limit of the device, by its name with what a kernel needs of it.
fn limit(kernel: &GpuKernel, (limit, needed, offered): (&'static str, u64, u64)) -> Result<(), Error> {
    if needed <= offered {
        return Ok(());
    }
    // The text is for the error alone: this runs for each dispatch.
    Err(Error::Limit { subject: format!("kernel `{}`", kernel.name), limit, needed, offered })
}

fn fault(kernel: &GpuKernel, at: usize, what: &str) -> Error {
    Error::Access { kernel: kernel.name.clone(), what: format!("argument {at} {what}") }
}

impl Gate for GpuDevice {
    fn run<T>(&self, f: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        self.scoped("a run", f)
    }
}

/// Whether no word is both read and written.
fn are_apart(copy: &Copy<'_, GpuBuffer>) -> bool {
    let words = |offset: u64| (offset / WORD_BYTES, (offset + copy.bytes).div_ceil(WORD_BYTES));
    let ((src, src_end), (dst, dst_end)) = (words(copy.src_offset), words(copy.dst_offset));
    copy.src.uid != copy.dst.uid || src_end <= dst || dst_end <= src
}

impl Backend for GpuBackend {
    type Buffer = GpuBuffer;
    type Gate = GpuDevice;
    type Submission = Option<wgpu::SubmissionIndex>;

    fn gate(&self) -> GpuDevice {
        self.gpu.clone()
    }

    fn make(&mut self, bytes: u64) -> Result<GpuBuffer, Error> {
        make_buffer(&self.gpu, bytes)
    }

    fn most_buffer_bytes(&self) -> u64 {
        self.gpu.limits.max_buffer_size
    }

    fn kernel(&self, index: usize) -> Option<(&str, usize, usize)> {
        let kernel = &self.kernels.pipelines.get(index)?.kernel;
        Some((kernel.name.as_str(), kernel.bindings.len(), kernel.scalars.len()))
    }

    fn dispatch(
        &mut self,
        Launch { kernel, site }: Launch<'_>,
        args: &[Arg<'_, GpuBuffer>],
        scalars: &[u64],
        grid: [u64; 3],
        counts: &mut RunCounts,
    ) -> Result<(), Error> {
        let described = &self.kernels.pipelines[kernel].kernel;
        self.check(described, args, grid)?;
        counts.copies += u64::from(described.copies.count);
        counts.copied_bytes += described.copies.bytes_of(scalars);
        counts.dispatches += 1;
        if grid.contains(&0) {
            return Ok(());
        }
        if self.recorded.is_on {
            self.note(kernel, args);
        }
        // The limits, checked above, fit 32 bits.
        let numbers = self.kernels.pipelines[kernel].kernel.numbers(scalars);
        self.record(PipelineId::Kernel(kernel), args, &numbers, grid.map(|extent| extent as u32))?;
        if let Some((_, last)) = self.dispatched.last_mut().filter(|_| site.is_some()) {
            *last = site.cloned();
        }
        Ok(())
    }

    fn read(&mut self, src: Arg<'_, GpuBuffer>, counts: &mut RunCounts) -> Result<u64, Error> {
        if self.recorded.is_on {
            return Err(self.reads_back(&src));
        }
        let staging = self.staging()?;
        let start = src.offset / WORD_BYTES * WORD_BYTES;
        let words = (src.offset + src.bytes).next_multiple_of(WORD_BYTES) - start;
        self.recording.copy((&src.buffer.buffer, start), (&staging, 0), words);
        let submission = self.submit_early()?;
        self.gpu.wait(submission)?;
        let data = map_to_vec(&self.gpu, &staging, words)?;
        counts.scalar_reads += 1;
        let (from, len) = ((src.offset - start) as usize, src.bytes as usize);
        let mut bits = [0; 8];
        bits[..len].copy_from_slice(&data[from..from + len]);
        Ok(u64::from_le_bytes(bits))
    }

    fn write(&mut self, dst: Arg<'_, GpuBuffer>, bits: u64, counts: &mut RunCounts) -> Result<(), Error> {
        // The words that contain the bytes; their other bytes are preserved.
        let start = dst.offset / WORD_BYTES * WORD_BYTES;
        let shift = (dst.offset - start) * 8;
        let kept = if dst.bytes < 8 { u64::MAX >> (64 - 8 * dst.bytes) } else { u64::MAX };
        let (mask, value) = (u128::from(kept) << shift, u128::from(bits & kept) << shift);
        let at = start / WRITE_WINDOW * WRITE_WINDOW;
        let word = |of: u128, i: u32| (of >> (32 * i)) as u32;
        let mut words = vec![((start - at) / WORD_BYTES) as u32];
        words.extend((0..3).map(|i| word(mask, i)));
        words.extend((0..3).map(|i| word(value, i)));
        self.prepare_write();
        let numbers: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        // Two windows, so that a scalar across their border is within the binding, which ends with the buffer.
        let window = Arg { buffer: dst.buffer, offset: at, bytes: 2 * WRITE_WINDOW, frozen: None };
        self.record(PipelineId::Write, &[window], &numbers, [1, 1, 1])?;
        counts.dispatches += 1;
        Ok(())
    }

    fn copy(&mut self, copy: Copy<'_, GpuBuffer>, counts: &mut RunCounts) -> Result<(), Error> {
        let Copy { src, src_offset, dst, dst_offset, bytes, to_end } = copy;
        if !(src_offset | dst_offset).is_multiple_of(WORD_BYTES) || !(bytes.is_multiple_of(WORD_BYTES) || to_end) {
            return self.copy_bytes(copy, counts);
        }
        self.make_room()?;
        let words = bytes.next_multiple_of(WORD_BYTES);
        if src.uid != dst.uid {
            self.recording.copy((&src.buffer, src_offset), (&dst.buffer, dst_offset), words);
            counts.copies += 1;
            counts.copied_bytes += bytes;
            return Ok(());
        }
        // The device API copies only between two buffers: a kernel copies within one; where the two places overlap, a third buffer
        // is between them.
        if are_apart(&copy) {
            return self.copy_bytes(copy, counts);
        }
        let between = self.between(src, src_offset, words)?;
        self.recording.copy((&between.buffer, 0), (&dst.buffer, dst_offset), words);
        self.scratch.push(between);
        counts.copies += 2;
        counts.copied_bytes += 2 * bytes;
        Ok(())
    }

    fn fill(&mut self, dst: Arg<'_, GpuBuffer>, pattern: u32, counts: &mut RunCounts) -> Result<(), Error> {
        if !(dst.offset | dst.bytes).is_multiple_of(WORD_BYTES) && pattern != 0 {
            return Err(Error::host_code("fill: a range that is not whole words"));
        }
        let words = dst.bytes.next_multiple_of(WORD_BYTES);
        let aligned = dst.offset.is_multiple_of(self.gpu.limits.min_storage_buffer_offset_alignment.into());
        if pattern == 0 {
            self.make_room()?;
            let clear = Clear { dst: (dst.buffer.buffer.clone(), dst.offset), bytes: words };
            self.recording.transfer(Transfer::Clear(clear));
            return Ok(());
        }
        if !aligned {
            return Err(Error::host_code(format!("fill: offset {} is not aligned", dst.offset)));
        }
        self.prepare_fill(pattern);
        let most = u64::from(self.gpu.limits.max_compute_workgroups_per_dimension);
        let groups = (words / WORD_BYTES).div_ceil(FILL_WORKGROUP).min(most) as u32;
        self.record(PipelineId::Fill(pattern), &[dst], &[], [groups, 1, 1])?;
        counts.dispatches += 1;
        Ok(())
    }

    fn submit(&mut self, counts: &mut RunCounts) -> Result<Option<wgpu::SubmissionIndex>, Error> {
        if !self.recording.is_empty() {
            counts.submits += 1;
            self.submit_recording(true)?;
        }
        counts.submits += std::mem::take(&mut self.early_submits);
        self.retire_scratch();
        Ok(self.submitted.take())
    }

    fn is_recording(&self) -> bool {
        self.recorded.is_on
    }

    fn mark(&self) -> Option<Mark> {
        if self.timing.as_ref().is_some_and(|timing| timing.per_dispatch) {
            return None;
        }
        let (commands, numbers, encoded) = self.recording.position();
        let placed = self.numbers.as_ref().map_or(0, Numbers::placed);
        Some(Mark { commands, trail: self.bind_groups.position(), numbers, placed, encoded })
    }

    fn repeat(&mut self, Range { start, end }: &Range<Mark>) -> bool {
        let here = self.mark().map(|mark| Mark { encoded: start.encoded, ..mark });
        let is_there = here == Some(*start) && self.bind_groups.has(end.trail) && self.recording.repeat(end);
        if is_there {
            self.bind_groups.skip_to(end.trail);
        }
        is_there
    }

    fn watch(&mut self, _cancel: &Cancel) {
        self.bind_groups.begin_run();
    }

    fn pause(&mut self) -> Result<(), Error> {
        self.submit_early().map(drop)
    }

    fn forget_buffers(&mut self) -> Result<(), Error> {
        // Recorded commands hold their buffers until they have run: only then is their memory free.
        if let Some(submission) = self.submit_early()? {
            self.gpu.wait(Some(submission))?;
        }
        for (buffer, _) in self.idle_scratch.drain(..) {
            self.account.release(buffer.buffer.size());
        }
        self.bind_groups.clear();
        Ok(())
    }

    fn end_run(&mut self, freed: &HashSet<u64>) {
        self.bind_groups.forget(freed);
        self.bind_groups.end_run();
        self.age_scratch();
    }

    fn abort(&mut self) {
        self.recording.clear();
        self.early_submits = 0;
        self.submitted = None;
        if let Some(numbers) = &mut self.numbers {
            numbers.forget();
        }
        self.release_scratch();
        self.dispatched.clear();
        if let Some(timing) = &mut self.timing {
            timing.reset();
        }
    }
}

impl GpuBackend {
    /// Gives back what numbers pass through, and intermediate buffers.
    pub fn release_staging(&mut self) {
        self.release_scratch();
        if self.staging.take().is_some() {
            self.account.release(STAGING_BYTES);
        }
        if let Some(numbers) = self.numbers.take() {
            self.bind_groups.clear();
            numbers.release(&self.account);
        }
    }

    /// After a run, outside of the timed part: reads the device's own times.
    pub fn after_run(&mut self) -> Result<(), Error> {
        let gpu = self.gpu.clone();
        gpu.scoped("reading timestamps", || self.book_time())
    }
}
