//! The GPU target: calls are recorded into one encoder and submitted once.

use std::collections::HashMap;

use monopour_program::{Access, Binding, GpuKernel};

use super::{Arg, Backend, Copy, Gate};
use crate::buffer::GpuBuffer;
use crate::device::GpuDevice;
use crate::error::Error;
use crate::pipeline_cache::{BindGroups, Pipeline};
use crate::pool::SharedAccount;
use crate::stats::RunCounts;
use crate::timing::Timing;
use crate::trace::{Recorder, Span};

/// Copies and clears count in words.
const WORD_BYTES: u64 = 4;
const FILL_WGSL: &str = include_str!("../../../shaders/runtime/fill.wgsl");
/// Invocations per workgroup of the fill kernel.
const FILL_WORKGROUP: u64 = 256;

/// Kernels and the recording of a run.
pub(crate) struct GpuBackend {
    pub gpu: GpuDevice,
    pipelines: Vec<Pipeline>,
    /// Utility pipelines by fill pattern; their numbers follow those of the kernels.
    fills: HashMap<u32, (u64, Pipeline)>,
    pub bind_groups: BindGroups,
    pub pipelines_created: u64,
    next_uid: u64,
    recording: Option<Recording>,
    /// Submissions of this run that made room for further buffers.
    early_submits: u64,
    /// Intermediate buffers of copies within one buffer, until the run is done.
    scratch: Vec<GpuBuffer>,
    account: SharedAccount,
    pub timing: Option<Timing>,
    /// Device time of the last run.
    pub last_gpu_ms: Option<f64>,
    pub recorder: Recorder,
    /// Names of the dispatches of this run, for the trace.
    dispatched: Vec<String>,
}

/// What is recorded and not yet submitted.
struct Recording {
    encoder: wgpu::CommandEncoder,
    pass: Option<wgpu::ComputePass<'static>>,
}

impl Recording {
    fn new(gpu: &GpuDevice) -> Recording {
        let descriptor = wgpu::CommandEncoderDescriptor { label: None };
        Recording { encoder: gpu.device.create_command_encoder(&descriptor), pass: None }
    }

    /// The encoder outside of a pass.
    fn commands(&mut self) -> &mut wgpu::CommandEncoder {
        self.pass = None;
        &mut self.encoder
    }

    /// The open pass; opens one if need be.
    fn pass(&mut self, timing: Option<&mut Timing>) -> &mut wgpu::ComputePass<'static> {
        let encoder = &mut self.encoder;
        self.pass.get_or_insert_with(|| {
            let timing = timing.filter(|timing| !timing.per_dispatch);
            let timestamp_writes = timing.and_then(|timing| {
                let at = timing.pair()?;
                Some(wgpu::ComputePassTimestampWrites {
                    query_set: &timing.set,
                    beginning_of_pass_write_index: Some(at),
                    end_of_pass_write_index: Some(at + 1),
                })
            });
            encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes }).forget_lifetime()
        })
    }
}

impl GpuBackend {
    /// Builds the pipelines of `kernels`.
    pub fn new<'k>(
        gpu: GpuDevice,
        kernels: impl Iterator<Item = &'k GpuKernel>,
        account: SharedAccount,
        (with_timing, with_trace): (bool, bool),
    ) -> Result<GpuBackend, Error> {
        let pipelines = kernels.map(|kernel| Pipeline::new(&gpu, kernel)).collect::<Result<Vec<_>, _>>()?;
        let timing = if with_timing || with_trace { Timing::new(&gpu, with_trace, &account)? } else { None };
        Ok(GpuBackend {
            pipelines_created: pipelines.len() as u64,
            gpu,
            pipelines,
            fills: HashMap::new(),
            bind_groups: BindGroups::default(),
            next_uid: 0,
            recording: None,
            early_submits: 0,
            scratch: Vec::new(),
            account,
            timing,
            last_gpu_ms: None,
            recorder: Recorder::new(with_trace),
            dispatched: Vec::new(),
        })
    }

    fn create(&mut self, bytes: u64, usage: wgpu::BufferUsages) -> Result<GpuBuffer, Error> {
        let offered = self.gpu.limits.max_buffer_size;
        if bytes > offered {
            let subject = format!("a buffer of {bytes} bytes");
            return Err(Error::Limit { subject, limit: "buffer size", needed: bytes, offered });
        }
        let descriptor = wgpu::BufferDescriptor { label: None, size: bytes, usage, mapped_at_creation: false };
        let buffer = self.gpu.device.create_buffer(&descriptor);
        self.next_uid += 1;
        Ok(GpuBuffer { buffer, uid: self.next_uid })
    }

    fn recording(&mut self) -> &mut Recording {
        self.recording.get_or_insert_with(|| Recording::new(&self.gpu))
    }

    /// Records a dispatch of pipeline `id` that was checked.
    fn record(&mut self, id: PipelineId, args: &[Arg<'_, GpuBuffer>], [x, y, z]: [u32; 3]) {
        let (number, pipeline) = match id {
            PipelineId::Kernel(index) => (index as u64, &self.pipelines[index]),
            PipelineId::Fill(pattern) => {
                let (number, pipeline) = &self.fills[&pattern];
                (*number, pipeline)
            }
        };
        let group = self.bind_groups.get(&self.gpu, number, pipeline, args);
        let gpu = &self.gpu;
        let recording = self.recording.get_or_insert_with(|| Recording::new(gpu));
        let pass = recording.pass(self.timing.as_mut());
        let stamps = self.timing.as_mut().filter(|timing| timing.per_dispatch).and_then(|timing| {
            let at = timing.pair()?;
            pass.write_timestamp(&timing.set, at);
            Some((&timing.set, at + 1))
        });
        pass.set_pipeline(&pipeline.pipeline);
        pass.set_bind_group(0, group, &[]);
        pass.dispatch_workgroups(x, y, z);
        if let Some((set, at)) = stamps {
            pass.write_timestamp(set, at);
            self.dispatched.push(pipeline.kernel.name.clone());
        }
    }

    /// Checks what wgpu would reject, in the program's own words.
    fn check(&self, pipeline: &Pipeline, args: &[Arg<'_, GpuBuffer>], grid: [u64; 3]) -> Result<(), Error> {
        let kernel = &pipeline.kernel;
        let limits = &self.gpu.limits;
        let limit = |limit: &'static str, needed: u64, offered: u64| {
            let subject = format!("kernel `{}`", kernel.name);
            if needed > offered { Err(Error::Limit { subject, limit, needed, offered }) } else { Ok(()) }
        };
        for extent in grid {
            limit("workgroups per dimension", extent, limits.max_compute_workgroups_per_dimension.into())?;
        }
        let fault = |at: usize, what: &str| {
            let what = format!("argument {at} {what}");
            Err(Error::Access { kernel: kernel.name.clone(), what })
        };
        for (at, (arg, binding)) in args.iter().zip(&kernel.bindings).enumerate() {
            limit("binding size", pipeline.bound_bytes(arg), limits.max_storage_buffer_binding_size)?;
            if !arg.offset.is_multiple_of(limits.min_storage_buffer_offset_alignment.into()) {
                return fault(at, &format!("begins at byte {}, which is not aligned", arg.offset));
            }
            if let Some(why) = arg.frozen.filter(|_| binding.access.is_written()) {
                return fault(at, &format!("is written and is {why}"));
            }
            // wgpu takes one buffer several times in a dispatch only if all its bindings are of one kind.
            for (other, (first, its)) in args.iter().zip(&kernel.bindings).enumerate().take(at) {
                if first.buffer.uid == arg.buffer.uid && its.access.is_written() != binding.access.is_written() {
                    return fault(
                        at,
                        &format!("shares its buffer with argument {other}, and only one of them is written"),
                    );
                }
            }
        }
        Ok(())
    }

    /// Makes the pipeline that fills with `pattern`.
    fn prepare_fill(&mut self, pattern: u32) {
        if self.fills.contains_key(&pattern) {
            return;
        }
        let kernel = GpuKernel {
            name: "fill".into(),
            wgsl: FILL_WGSL.into(),
            workgroup_size: [FILL_WORKGROUP as u32, 1, 1],
            bindings: vec![Binding { access: Access::Write }],
            ..GpuKernel::default()
        };
        let pipeline = Pipeline::utility(&self.gpu, &kernel, &[("pattern", f64::from(pattern))]);
        let number = (self.pipelines.len() + self.fills.len()) as u64;
        self.pipelines_created += 1;
        self.fills.insert(pattern, (number, pipeline));
    }

    /// Reads the run's timestamps and books its trace.
    fn book_time(&mut self) -> Result<(), Error> {
        let Some(timing) = &mut self.timing else { return Ok(()) };
        let pairs = timing.read(&self.gpu)?;
        timing.reset();
        self.last_gpu_ms = pairs.as_ref().map(|pairs| pairs.iter().map(|(_, ns)| ns).sum::<f64>() / 1e6);
        let names = std::mem::take(&mut self.dispatched);
        for ((start, length), name) in pairs.into_iter().flatten().zip(names) {
            self.recorder.add(Span { name, track: "device", start_us: start / 1e3, duration_us: length / 1e3 });
        }
        Ok(())
    }

    fn release_scratch(&mut self) {
        for buffer in self.scratch.drain(..) {
            self.account.release(buffer.buffer.size());
        }
    }
}

#[derive(Clone, Copy)]
enum PipelineId {
    Kernel(usize),
    Fill(u32),
}

impl Gate for GpuDevice {
    fn run<T: Send>(&self, f: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
        self.scoped("a run", f)
    }
}

impl Backend for GpuBackend {
    type Buffer = GpuBuffer;
    type Gate = GpuDevice;

    fn gate(&self) -> GpuDevice {
        self.gpu.clone()
    }

    fn make(&mut self, bytes: u64) -> Result<GpuBuffer, Error> {
        use wgpu::BufferUsages as Usages;
        self.create(bytes, Usages::STORAGE | Usages::COPY_SRC | Usages::COPY_DST)
    }

    fn kernel(&self, index: usize) -> Option<(&str, usize)> {
        self.pipelines.get(index).map(|pipeline| (pipeline.kernel.name.as_str(), pipeline.kernel.bindings.len()))
    }

    fn dispatch(
        &mut self,
        kernel: usize,
        args: &[Arg<'_, GpuBuffer>],
        grid: [u64; 3],
        counts: &mut RunCounts,
    ) -> Result<(), Error> {
        let described = &self.pipelines[kernel].kernel;
        self.check(&self.pipelines[kernel], args, grid)?;
        counts.copies += u64::from(described.copies);
        counts.copied_bytes += described.copied_bytes;
        counts.dispatches += 1;
        if grid.contains(&0) {
            return Ok(());
        }
        // The limits, checked above, fit 32 bits.
        self.record(PipelineId::Kernel(kernel), args, grid.map(|extent| extent as u32));
        Ok(())
    }

    fn copy(&mut self, copy: Copy<'_, GpuBuffer>, counts: &mut RunCounts) -> Result<(), Error> {
        let Copy { src, src_offset, dst, dst_offset, bytes } = copy;
        if !(src_offset | dst_offset).is_multiple_of(WORD_BYTES) {
            return Err(Error::host_code(format!("copy: offsets {src_offset} and {dst_offset} are not whole words")));
        }
        // Buffers end on whole words, and only the end of a tensor is ragged: what is copied beyond it is padding.
        let words = bytes.next_multiple_of(WORD_BYTES);
        if src.uid != dst.uid {
            let commands = self.recording().commands();
            commands.copy_buffer_to_buffer(&src.buffer, src_offset, &dst.buffer, dst_offset, Some(words));
            counts.copies += 1;
            counts.copied_bytes += bytes;
            return Ok(());
        }
        // The device API copies only between two buffers; by way of a third one, overlap is no question either.
        self.account.reserve(words)?;
        let between = match self.create(words, wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST) {
            Ok(between) => between,
            Err(error) => {
                self.account.release(words);
                return Err(error);
            }
        };
        let commands = self.recording().commands();
        commands.copy_buffer_to_buffer(&src.buffer, src_offset, &between.buffer, 0, Some(words));
        commands.copy_buffer_to_buffer(&between.buffer, 0, &dst.buffer, dst_offset, Some(words));
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
            let commands = self.recording().commands();
            commands.clear_buffer(&dst.buffer.buffer, dst.offset, Some(words));
            return Ok(());
        }
        if !aligned {
            return Err(Error::host_code(format!("fill: offset {} is not aligned", dst.offset)));
        }
        self.prepare_fill(pattern);
        let most = u64::from(self.gpu.limits.max_compute_workgroups_per_dimension);
        let groups = (words / WORD_BYTES).div_ceil(FILL_WORKGROUP).min(most) as u32;
        self.record(PipelineId::Fill(pattern), &[dst], [groups, 1, 1]);
        counts.dispatches += 1;
        Ok(())
    }

    fn finish(&mut self, counts: &mut RunCounts) -> Result<(), Error> {
        counts.submits += std::mem::take(&mut self.early_submits);
        let Some(mut recording) = self.recording.take() else { return Ok(()) };
        let commands = recording.commands();
        if let Some(timing) = &self.timing {
            timing.resolve(commands);
        }
        let submission = self.gpu.queue.submit([recording.encoder.finish()]);
        counts.submits += 1;
        self.gpu.wait(Some(submission))?;
        self.release_scratch();
        Ok(())
    }

    fn forget_buffers(&mut self) -> Result<(), Error> {
        // What is recorded holds its buffers until it has run: only then is their memory free.
        if let Some(mut recording) = self.recording.take() {
            recording.commands();
            let submission = self.gpu.queue.submit([recording.encoder.finish()]);
            self.early_submits += 1;
            self.gpu.wait(Some(submission))?;
        }
        self.bind_groups.clear();
        Ok(())
    }

    fn abort(&mut self) {
        self.recording = None;
        self.early_submits = 0;
        self.release_scratch();
        self.dispatched.clear();
        if let Some(timing) = &mut self.timing {
            timing.reset();
        }
    }
}

impl GpuBackend {
    /// After a run, outside of what is timed: reads the device's own times.
    pub fn after_run(&mut self) -> Result<(), Error> {
        let gpu = self.gpu.clone();
        gpu.scoped("reading timestamps", || self.book_time())
    }
}
