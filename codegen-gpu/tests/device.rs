//! One wgpu device for all tests, and a run of a single kernel on it.

use monopour_program::{Access, DeviceType, GpuDescription, GpuFeature, GpuKernel};
use std::sync::OnceLock;
use wgpu::util::{BufferInitDescriptor, DeviceExt};

/// An adapter of this machine.
pub struct Device {
    device: wgpu::Device,
    queue: wgpu::Queue,
    pub description: GpuDescription,
}

/// The device, or `None` (counted and reported) on a machine without one.
pub fn device() -> Option<&'static Device> {
    static DEVICE: OnceLock<Option<Device>> = OnceLock::new();
    let found = DEVICE.get_or_init(open).as_ref();
    if found.is_none() {
        monopour_testkit::device::skip_without_adapter("no Vulkan, Metal or DX12 adapter");
    }
    found
}

fn open() -> Option<Device> {
    let backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = backends;
    let instance = wgpu::Instance::new(descriptor);
    let adapter = pollster::block_on(instance.enumerate_adapters(backends)).into_iter().next()?;
    let wanted = wgpu::Features::SHADER_INT64
        | wgpu::Features::SUBGROUP
        | wgpu::Features::SHADER_F16
        | wgpu::Features::IMMEDIATES
        | wgpu::Features::SHADER_F64;
    let features = adapter.features() & wanted;
    let descriptor =
        wgpu::DeviceDescriptor { required_features: features, required_limits: adapter.limits(), ..Default::default() };
    let (device, queue) = pollster::block_on(adapter.request_device(&descriptor)).ok()?;
    let description = describe(&adapter, features);
    Some(Device { device, queue, description })
}

fn describe(adapter: &wgpu::Adapter, features: wgpu::Features) -> GpuDescription {
    let (info, limits) = (adapter.get_info(), adapter.limits());
    let mut d = GpuDescription::portable();
    d.name = info.name.clone();
    d.device_type = if info.device_type == wgpu::DeviceType::Cpu { DeviceType::Cpu } else { DeviceType::Other };
    let pairs = [
        (wgpu::Features::SUBGROUP, GpuFeature::Subgroup),
        (wgpu::Features::SHADER_INT64, GpuFeature::Int64),
        (wgpu::Features::SHADER_F16, GpuFeature::F16),
        (wgpu::Features::IMMEDIATES, GpuFeature::Immediates),
        (wgpu::Features::SHADER_F64, GpuFeature::F64),
    ];
    d.features = pairs.into_iter().filter(|(f, _)| features.contains(*f)).map(|(_, f)| f).collect();
    d.features.sort();
    (d.subgroup_min_size, d.subgroup_max_size) = (info.subgroup_min_size, info.subgroup_max_size);
    d.limits.max_storage_buffers = limits.max_storage_buffers_per_shader_stage;
    d.limits.max_workgroup_invocations = limits.max_compute_invocations_per_workgroup;
    d.limits.max_workgroup_storage_bytes = limits.max_compute_workgroup_storage_size;
    d.limits.max_immediate_bytes = limits.max_immediate_size;
    d
}

impl Device {
    /// Runs `kernel` on buffers of these initial contents (4-byte elements), and returns their contents afterwards.
    pub fn run(&self, kernel: &GpuKernel, grid: [u32; 3], contents: &[Vec<u32>]) -> Vec<Vec<u32>> {
        self.run_with(kernel, grid, contents, &[])
    }

    /// As [`Device::run`], with the bits of the kernel's scalars.
    pub fn run_with(
        &self,
        kernel: &GpuKernel,
        grid: [u32; 3],
        contents: &[Vec<u32>],
        scalars: &[u64],
    ) -> Vec<Vec<u32>> {
        let layout = self.layout(kernel);
        let pipeline = self.pipeline(kernel, &layout);
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC;
        let buffers: Vec<wgpu::Buffer> = contents
            .iter()
            .map(|c| {
                self.device.create_buffer_init(&BufferInitDescriptor {
                    label: None,
                    contents: bytemuck::cast_slice(c),
                    usage,
                })
            })
            .collect();
        let entries: Vec<_> = buffers
            .iter()
            .enumerate()
            .map(|(i, b)| wgpu::BindGroupEntry { binding: i as u32, resource: b.as_entire_binding() })
            .collect();
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &layout,
            entries: &entries,
        });
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            pass.set_pipeline(&pipeline);
            pass.set_bind_group(0, &group, &[]);
            if !kernel.scalars.is_empty() {
                pass.set_immediates(0, &kernel.numbers(scalars));
            }
            pass.dispatch_workgroups(grid[0], grid[1], grid[2]);
        }
        let staging: Vec<wgpu::Buffer> = buffers.iter().map(|b| self.staging(&mut encoder, b)).collect();
        self.queue.submit([encoder.finish()]);
        staging.iter().for_each(|s| s.slice(..).map_async(wgpu::MapMode::Read, |r| r.expect("the buffer maps")));
        self.device.poll(wgpu::PollType::wait_indefinitely()).expect("the device answers");
        staging
            .iter()
            .map(|s| bytemuck::cast_slice(&s.slice(..).get_mapped_range().expect("the buffer is mapped")).to_vec())
            .collect()
    }

    fn pipeline(&self, kernel: &GpuKernel, layout: &wgpu::BindGroupLayout) -> wgpu::ComputePipeline {
        let source = wgpu::ShaderSource::Wgsl(kernel.wgsl.as_str().into());
        let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
        let layout = self.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(layout)],
            immediate_size: kernel.immediate_bytes(),
        });
        self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: Some(&layout),
            module: &module,
            entry_point: Some(&kernel.name),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        })
    }

    fn layout(&self, kernel: &GpuKernel) -> wgpu::BindGroupLayout {
        let entry = |(i, read_only): (usize, bool)| wgpu::BindGroupLayoutEntry {
            binding: i as u32,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty: wgpu::BufferBindingType::Storage { read_only },
                has_dynamic_offset: false,
                min_binding_size: None,
            },
            count: None,
        };
        let entries: Vec<_> = kernel.bindings.iter().map(|b| b.access == Access::Read).enumerate().map(entry).collect();
        self.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries })
    }

    fn staging(&self, encoder: &mut wgpu::CommandEncoder, from: &wgpu::Buffer) -> wgpu::Buffer {
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let to = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: from.size(),
            usage,
            mapped_at_creation: false,
        });
        encoder.copy_buffer_to_buffer(from, 0, &to, 0, from.size());
        to
    }
}
