//! Caches of pipelines and bind groups.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use monopour_program::{Access, Backend, GpuFeature, GpuKernel, MAX_NUMBER_BYTES};

use crate::buffer::GpuBuffer;
use crate::device::GpuDevice;
use crate::error::Error;
use crate::executor::Arg;
use crate::executor::numbers::Numbers;
use crate::hal;
use crate::pool::DISUSE_RUNS;

/// Bind groups kept at once. Reaching it drops them all: a program that never repeats a combination would otherwise keep
/// all its buffers.
const MAX_BIND_GROUPS: usize = 1 << 14;
/// Kernels' bindings are rounded up to this, so that the widest vector load (eight 32-bit lanes) has one whole element.
pub(crate) const KERNEL_GRANULARITY: u64 = 32;
/// A utility kernel processes every bound word, so it gets no more than its range.
const UTILITY_GRANULARITY: u64 = 4;

/// A kernel ready to run.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub pipeline: wgpu::ComputePipeline,
    layout: wgpu::BindGroupLayout,
    pub kernel: GpuKernel,
    /// The same kernel with every binding writable, for buffers bound twice; see [`Pipeline::shared`].
    shared: OnceLock<Box<Pipeline>>,
    module: wgpu::ShaderModule,
    /// Bindings are rounded up to a multiple of this.
    granularity: u64,
    is_trusted: bool,
}

/// How a pipeline is built.
struct PipelineOptions<'a> {
    /// Values of its pipeline constants.
    constants: &'a [(&'a str, f64)],
    granularity: u64,
    is_trusted: bool,
}

impl Pipeline {
    /// Builds the pipeline of `kernel`, with wgpu's run-time checks if its program is not trusted.
    pub fn new(gpu: &GpuDevice, kernel: &GpuKernel, is_trusted: bool) -> Result<Pipeline, Error> {
        let offered = gpu.limits.max_storage_buffers_per_shader_stage;
        let (immediates, most) = (kernel.immediate_bytes().into(), gpu.limits.max_immediate_size.into());
        if immediates > most {
            let subject = format!("kernel `{}`", kernel.name);
            return Err(Error::Limit { subject, limit: "immediate bytes", needed: immediates, offered: most });
        }
        let in_buffer = if kernel.takes_number_buffer() { kernel.number_bytes() } else { 0 };
        if in_buffer > MAX_NUMBER_BYTES {
            let subject = format!("kernel `{}`", kernel.name);
            let (needed, offered) = (in_buffer.into(), MAX_NUMBER_BYTES.into());
            return Err(Error::Limit { subject, limit: "bytes of scalars", needed, offered });
        }
        if kernel.bindings.len() > offered as usize {
            let subject = format!("kernel `{}`", kernel.name);
            let needed = kernel.bindings.len() as u64;
            return Err(Error::Limit { subject, limit: "storage buffers", needed, offered: offered.into() });
        }
        let built = gpu.scoped(&format!("kernel `{}`", kernel.name), || {
            let module = if takes_spirv(gpu, kernel, is_trusted) {
                hal::passthrough_module(&gpu.device, kernel)
            } else {
                wgsl_module(gpu, kernel, is_trusted)
            };
            let options = PipelineOptions { constants: &[], granularity: KERNEL_GRANULARITY, is_trusted };
            Ok(Pipeline::with_module(gpu, kernel, &module, options))
        });
        built.map_err(|error| match error {
            Error::Rejected { message, .. } if !is_trusted => {
                Error::Kernel { kernel: kernel.name.clone(), what: message }
            }
            error => error,
        })
    }

    /// Builds a utility pipeline of the runtime, from WGSL and the values of its pipeline constants.
    pub fn utility(gpu: &GpuDevice, kernel: &GpuKernel, constants: &[(&str, f64)]) -> Pipeline {
        let module = hal::trusted_module(&gpu.device, &kernel.name, &kernel.wgsl);
        let options = PipelineOptions { constants, granularity: UTILITY_GRANULARITY, is_trusted: true };
        Pipeline::with_module(gpu, kernel, &module, options)
    }

    fn with_module(
        gpu: &GpuDevice,
        kernel: &GpuKernel,
        module: &wgpu::ShaderModule,
        options: PipelineOptions<'_>,
    ) -> Pipeline {
        let mut entries: Vec<_> = kernel.bindings.iter().zip(0..).map(|(b, at)| layout_entry(at, b.access)).collect();
        if kernel.takes_number_buffer() {
            entries.push(numbers_entry(entries.len() as u32));
        }
        let label = Some(kernel.name.as_str());
        let layout = gpu.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label, entries: &entries });
        let pipeline_layout = gpu.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label,
            bind_group_layouts: &[Some(&layout)],
            immediate_size: kernel.immediate_bytes(),
        });
        let pipeline = gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label,
            layout: Some(&pipeline_layout),
            module,
            entry_point: Some(&kernel.name),
            compilation_options: wgpu::PipelineCompilationOptions {
                constants: options.constants,
                // Generated kernels write workgroup memory before they read it; others could read what a program before left.
                zero_initialize_workgroup_memory: !options.is_trusted,
            },
            cache: gpu.disk_cache.as_ref().map(|disk| &disk.cache),
        });
        let PipelineOptions { granularity, is_trusted, .. } = options;
        let module = module.clone();
        Pipeline { pipeline, layout, kernel: kernel.clone(), shared: OnceLock::new(), module, granularity, is_trusted }
    }

    /// The same pipeline for a kernel of the same code.
    pub fn of(&self, kernel: &GpuKernel) -> Pipeline {
        Pipeline {
            pipeline: self.pipeline.clone(),
            layout: self.layout.clone(),
            kernel: kernel.clone(),
            shared: OnceLock::new(),
            module: self.module.clone(),
            granularity: self.granularity,
            is_trusted: self.is_trusted,
        }
    }

    /// The kernel with every binding writable, and whether this call created it: wgpu allows one buffer several times in a
    /// dispatch only if all its bindings are of one kind.
    pub fn shared(&self, gpu: &GpuDevice) -> (&Pipeline, bool) {
        let mut is_new = false;
        let shared = self.shared.get_or_init(|| {
            is_new = true;
            let mut kernel = self.kernel.clone();
            kernel.bindings.iter_mut().for_each(|binding| binding.access = Access::ReadWrite);
            let (granularity, is_trusted) = (self.granularity, self.is_trusted);
            let options = PipelineOptions { constants: &[], granularity, is_trusted };
            if takes_spirv(gpu, &kernel, is_trusted) {
                return Box::new(Pipeline::with_module(gpu, &kernel, &self.module, options));
            }
            // The bindings of WGSL have to be of the layout's kind.
            for read_only in ["var<storage>", "var<storage, read>"] {
                kernel.wgsl = kernel.wgsl.replace(read_only, "var<storage, read_write>");
            }
            Box::new(Pipeline::with_module(gpu, &kernel, &wgsl_module(gpu, &kernel, is_trusted), options))
        });
        (shared, is_new)
    }

    /// Offset and bytes bound for a range: never no bytes, and a multiple of the granularity if the buffer is long enough.
    /// An empty range at the end of its buffer is bound at the start, as a binding needs some bytes.
    pub fn bound(&self, arg: &Arg<'_, GpuBuffer>) -> (u64, u64) {
        let size = arg.buffer.buffer.size();
        let offset = if arg.offset < size { arg.offset } else { 0 };
        (offset, arg.bytes.max(1).next_multiple_of(self.granularity).min(size - offset))
    }
}

/// Whether the kernel's SPIR-V goes to the driver as it is.
fn takes_spirv(gpu: &GpuDevice, kernel: &GpuKernel, is_trusted: bool) -> bool {
    is_trusted
        && gpu.description.backend == Some(Backend::Vulkan)
        && gpu.description.has(GpuFeature::PassthroughShaders)
        && !kernel.spirv.is_empty()
}

/// A module from the kernel's WGSL; of a program that is not trusted, with the device API's checks.
fn wgsl_module(gpu: &GpuDevice, kernel: &GpuKernel, is_trusted: bool) -> wgpu::ShaderModule {
    if is_trusted {
        return hal::trusted_module(&gpu.device, &kernel.name, &kernel.wgsl);
    }
    let source = wgpu::ShaderSource::Wgsl(Cow::Borrowed(&kernel.wgsl));
    gpu.device.create_shader_module(wgpu::ShaderModuleDescriptor { label: Some(&kernel.name), source })
}

fn layout_entry(binding: u32, access: Access) -> wgpu::BindGroupLayoutEntry {
    let ty = wgpu::BufferBindingType::Storage { read_only: !access.is_written() };
    wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
        count: None,
    }
}

/// Scalars in a buffer: each dispatch has its own dynamic offset, so that all share a bind group.
fn numbers_entry(binding: u32) -> wgpu::BindGroupLayoutEntry {
    wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty: wgpu::BufferBindingType::Uniform,
            has_dynamic_offset: true,
            min_binding_size: None,
        },
        count: None,
    }
}

/// Bind groups by kernel and bound ranges.
///
/// Runs mostly bind what the run before bound, in the same order: its trail is looked at first, which costs a comparison
/// where the map costs a hash of some hundred bytes.
#[derive(Debug, Default)]
pub(crate) struct BindGroups {
    /// With the run that last looked them up.
    groups: HashMap<Vec<u64>, (wgpu::BindGroup, u64)>,
    /// The keys of the trail, one after another.
    trail_keys: Vec<u64>,
    /// The key of what is bound anew.
    key: Vec<u64>,
    trail: Vec<Step>,
    /// The position in the trail.
    at: usize,
    /// Runs so far.
    runs: u64,
    /// Number of bind groups created.
    pub created: u64,
}

/// A step of the trail.
#[derive(Debug)]
struct Step {
    /// The end of its key.
    end: usize,
    group: wgpu::BindGroup,
    is_shared: bool,
}

/// What a dispatch binds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    /// The bind group's position in the trail.
    pub at: usize,
    /// Whether later dispatches of the run leave it there: the trail is not endless.
    pub stays: bool,
    /// Whether it is for [`Pipeline::shared`].
    pub is_shared: bool,
}

impl BindGroups {
    /// The next lookup is the first of a run.
    pub fn begin_run(&mut self) {
        self.at = 0;
        self.runs += 1;
    }

    /// After a run: now and then drops the bind groups that runs of late had no use for. A program of dynamic sizes has others
    /// for every size.
    pub fn end_run(&mut self) {
        if !self.runs.is_multiple_of(DISUSE_RUNS) {
            return;
        }
        self.trail_keys.truncate(self.start());
        self.trail.truncate(self.at);
        // Those of the trail are in use, though no one has looked them up.
        let mut start = 0;
        for step in &self.trail {
            if let Some((_, used)) = self.groups.get_mut(&self.trail_keys[start..step.end]) {
                *used = self.runs;
            }
            start = step.end;
        }
        self.groups.retain(|_, (_, used)| *used + DISUSE_RUNS > self.runs);
    }

    /// What the dispatch of pipeline `id` over `args` binds, if the run before bound the same here. If not,
    /// [`BindGroups::bind`] comes next.
    pub fn next(&mut self, id: u64, args: &[Arg<'_, GpuBuffer>]) -> Option<Bound> {
        // Not in the order of `Arg`: merged into one load of both, the comparison would wait for the two stores before it.
        let part = |arg: &Arg<'_, GpuBuffer>| [arg.buffer.uid, arg.bytes, arg.offset];
        let is_of = |arg: &Arg<'_, GpuBuffer>, [uid, bytes, offset]: &[u64; 3]| {
            arg.buffer.uid == *uid && arg.bytes == *bytes && arg.offset == *offset
        };
        if let Some(step) = self.trail.get(self.at) {
            // Compared where it is: the key of a new bind group alone is put together.
            let (of, parts) = self.trail_keys[self.start()..step.end].split_first()?;
            let (parts, is_shared) = (parts.as_chunks::<3>().0, step.is_shared);
            if *of == id && parts.len() == args.len() && args.iter().zip(parts).all(|(arg, key)| is_of(arg, key)) {
                return Some(self.advance(is_shared));
            }
        }
        self.key.clear();
        self.key.push(id);
        self.key.extend(args.iter().flat_map(part));
        None
    }

    /// Binds what [`BindGroups::next`] was asked for: `args` and, if the kernel reads it, the `numbers` buffer, of which there
    /// is one.
    pub fn bind(
        &mut self,
        gpu: &GpuDevice,
        (pipeline, is_shared): (&Pipeline, bool),
        args: &[Arg<'_, GpuBuffer>],
        numbers: Option<&wgpu::Buffer>,
    ) -> Bound {
        let (start, end) = (self.start(), self.start() + self.key.len());
        let group = self.look_up(gpu, pipeline, args, numbers);
        let step = Step { end, group, is_shared };
        match self.trail.get_mut(self.at) {
            // In its place: what comes after it may be as before.
            Some(place) if place.end == end => {
                *place = step;
                self.trail_keys[start..end].copy_from_slice(&self.key);
            }
            _ => {
                self.trail.truncate(self.at);
                self.trail_keys.truncate(start);
                self.trail_keys.extend(&self.key);
                self.trail.push(step);
            }
        }
        self.advance(is_shared)
    }

    /// The position in the trail.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Whether the trail has as many steps.
    pub fn has(&self, steps: usize) -> bool {
        steps <= self.trail.len()
    }

    /// Binds what the run before bound, up to the step `end` of the trail.
    pub fn skip_to(&mut self, end: usize) {
        self.at = end;
    }

    /// The bind group of a dispatch of this run.
    pub fn group(&self, at: usize) -> &wgpu::BindGroup {
        &self.trail[at].group
    }

    /// The start of the current key in those of the trail.
    fn start(&self) -> usize {
        if self.at == 0 { 0 } else { self.trail[self.at - 1].end }
    }

    fn advance(&mut self, is_shared: bool) -> Bound {
        let (at, stays) = (self.at, self.at + 1 < MAX_BIND_GROUPS);
        self.at += usize::from(stays);
        Bound { at, stays, is_shared }
    }

    /// The bind group of the current key.
    fn look_up(
        &mut self,
        gpu: &GpuDevice,
        pipeline: &Pipeline,
        args: &[Arg<'_, GpuBuffer>],
        numbers: Option<&wgpu::Buffer>,
    ) -> wgpu::BindGroup {
        if let Some((group, used)) = self.groups.get_mut(&self.key) {
            *used = self.runs;
            return group.clone();
        }
        if self.groups.len() >= MAX_BIND_GROUPS {
            self.groups.clear();
        }
        let mut entries: Vec<_> = args.iter().zip(0..).map(|(arg, at)| entry(at, pipeline, arg)).collect();
        if let Some(buffer) = numbers {
            let size = std::num::NonZeroU64::new(Numbers::bound_bytes(pipeline.kernel.number_bytes()));
            let resource = wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer, offset: 0, size });
            entries.push(wgpu::BindGroupEntry { binding: entries.len() as u32, resource });
        }
        let descriptor = wgpu::BindGroupDescriptor { label: None, layout: &pipeline.layout, entries: &entries };
        self.created += 1;
        let group = gpu.device.create_bind_group(&descriptor);
        self.groups.insert(self.key.clone(), (group.clone(), self.runs));
        group
    }

    /// Drops the bind groups over buffers with these ids.
    pub fn forget(&mut self, uids: &HashSet<u64>) {
        if !uids.is_empty() {
            self.groups.retain(|key, _| !key[1..].iter().step_by(3).any(|uid| uids.contains(uid)));
            self.forget_trail();
        }
    }

    /// Drops all bind groups, and with them their hold on buffers.
    pub fn clear(&mut self) {
        self.groups.clear();
        self.forget_trail();
    }

    fn forget_trail(&mut self) {
        self.trail.clear();
        self.trail_keys.clear();
        self.at = 0;
    }
}

fn entry<'a>(binding: u32, pipeline: &Pipeline, arg: &Arg<'a, GpuBuffer>) -> wgpu::BindGroupEntry<'a> {
    let (offset, bytes) = pipeline.bound(arg);
    let (buffer, size) = (&arg.buffer.buffer, std::num::NonZeroU64::new(bytes));
    let resource = wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer, offset, size });
    wgpu::BindGroupEntry { binding, resource }
}
