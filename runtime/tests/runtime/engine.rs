//! An application with a device of its own, and programs for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use monopour_contract::RuntimeFunction as F;
use monopour_program::*;
use monopour_runtime::{Device, HostTensor, Model, Options, wgpu};

use crate::support::*;

pub const ADD: &str = "
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;
@compute @workgroup_size(64)
fn add(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&c)) { c[id.x] = a[id.x] + b[id.x]; }
}
";

/// Elements of the tensors of these programs.
pub const LEN: u64 = 256;
pub const BYTES: u64 = 4 * LEN;

/// The caller's engine: a device of its own, with everything that the adapter offers, and its callbacks.
pub struct Engine {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    /// Errors outside of any scope.
    pub uncaught: Arc<Mutex<Vec<String>>>,
    /// Whether the device was lost.
    pub lost: Arc<AtomicUsize>,
}

/// `None`, counted as a skip, if there is no adapter and none is required.
pub fn engine() -> Option<Engine> {
    engine_with(|adapter| (adapter.features(), adapter.limits()))
}

pub fn engine_with(wanted: impl FnOnce(&wgpu::Adapter) -> (wgpu::Features, wgpu::Limits)) -> Option<Engine> {
    gpu()?;
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
    let instance = wgpu::Instance::new(descriptor);
    let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default())).unwrap();
    let (required_features, required_limits) = wanted(&adapter);
    // What is experimental has to be unlocked first.
    let required_features = required_features - wgpu::Features::all_experimental_mask();
    let descriptor = wgpu::DeviceDescriptor { required_features, required_limits, ..Default::default() };
    let (device, queue) = pollster::block_on(adapter.request_device(&descriptor)).unwrap();
    let uncaught = Arc::new(Mutex::new(Vec::new()));
    let list = uncaught.clone();
    device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| list.lock().unwrap().push(error.to_string())));
    let lost = Arc::new(AtomicUsize::new(0));
    let count = lost.clone();
    device.set_device_lost_callback(move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    Some(Engine { device, queue, uncaught, lost })
}

impl Engine {
    pub fn device(&self) -> Device {
        Device::from_wgpu(self.device.clone(), self.queue.clone()).unwrap()
    }

    pub fn buffer(&self, data: &[f32]) -> wgpu::Buffer {
        use wgpu::BufferUsages as Usages;
        let buffer = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: 4 * data.len() as u64,
            usage: Usages::STORAGE | Usages::COPY_SRC | Usages::COPY_DST,
            mapped_at_creation: false,
        });
        let bytes: Vec<u8> = data.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.queue.write_buffer(&buffer, 0, &bytes);
        buffer
    }

    /// The values of a buffer, and of all that was submitted before.
    pub fn read(&self, buffer: &wgpu::Buffer) -> Vec<f32> {
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let descriptor = wgpu::BufferDescriptor { label: None, size: buffer.size(), usage, mapped_at_creation: false };
        let staging = self.device.create_buffer(&descriptor);
        let mut encoder = self.device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, None);
        self.queue.submit([encoder.finish()]);
        staging.map_async(wgpu::MapMode::Read, .., |outcome| outcome.unwrap());
        self.device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
        let view = staging.get_mapped_range(..).unwrap();
        view.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    }

    /// The number of the next submission, as the device API counts them.
    pub fn submissions(&self) -> u64 {
        let text = format!("{:?}", self.queue.submit([]));
        let digits: String = text.chars().filter(char::is_ascii_digit).collect();
        digits.parse().unwrap()
    }

    /// The engine's own dispatch: doubles a buffer in place.
    pub fn double(&self, encoder: &mut wgpu::CommandEncoder, buffer: &wgpu::Buffer) {
        const DOUBLE: &str = "@group(0) @binding(0) var<storage, read_write> a: array<f32>;
            @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
                if (id.x < arrayLength(&a)) { a[id.x] = 2.0 * a[id.x]; }
            }";
        let source = wgpu::ShaderSource::Wgsl(DOUBLE.into());
        let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: None,
            compilation_options: Default::default(),
            cache: None,
        });
        let entries = [wgpu::BindGroupEntry { binding: 0, resource: buffer.as_entire_binding() }];
        let layout = &pipeline.get_bind_group_layout(0);
        let group =
            self.device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout, entries: &entries });
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups((buffer.size() / 256 + 1) as u32, 1, 1);
    }

    /// An error of validation, which goes where the engine expects it.
    pub fn mistake(&self) {
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::MAP_WRITE;
        let size = self.device.limits().max_buffer_size + 4;
        let _ =
            self.device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false });
    }

    pub fn uncaught(&self) -> usize {
        self.uncaught.lock().unwrap().len()
    }
}

/// `result0 = arg0 + c`, then `dispatches - 1` times `+ c`, through the arena; `c` holds `LEN` times `constant`.
pub fn adding(dispatches: u64, constant: f32) -> Program {
    let mut code = Code::constants(&[0, BYTES, LEN / 64, 1, 2 * BYTES]);
    let (x, c) = (code.call(0, F::Input, &[0]), code.call(0, F::Constant, &[0]));
    let (t, y) = (code.call(0, F::Arena, &[4]), code.call(0, F::Alloc, &[1]));
    let mut from = (x, 0);
    for n in 0..dispatches {
        // Alternates between the halves of the arena.
        let to = if n + 1 == dispatches { (y, 0) } else { (t, n as u32 % 2) };
        for (buffer, half) in [from, (c, 0), to] {
            code.call(0, F::Arg, &[buffer, half, 1]);
        }
        code.call(0, F::Dispatch, &[0, 2, 3, 3]);
        from = to;
    }
    code.call(0, F::Result, &[0, y]);
    let add = ADD.replace("var<storage, read> a", "var<storage, read_write> a");
    let mut kernel = gpu_kernel("add", &add, &[Access::ReadWrite, Access::Read, Access::ReadWrite]);
    if let Kernel::Gpu(kernel) = &mut kernel {
        // Bound for writing, because it may be the arena; it is not written.
        kernel.bindings[0].is_written = false;
    }
    let mut variant = gpu_variant(vec![], vec![kernel]);
    variant.host = NativeCode::default();
    variant.host_data = code.0;
    let mut program = program(&[LEN], &[LEN], variant);
    let data: Vec<u8> = [constant; LEN as usize].iter().flat_map(|value| value.to_le_bytes()).collect();
    program.constants.push(Constant { name: "c".into(), dtype: DType::F32, shape: vec![LEN], data: data.into() });
    program
}

pub fn ramp(from: f32) -> Vec<f32> {
    (0..LEN).map(|i| from + i as f32).collect()
}

pub fn tensor_of(values: &[f32]) -> HostTensor {
    HostTensor::from_f32(vec![values.len() as u64], values).unwrap()
}

pub fn model(device: &Device, program: Program) -> Arc<Model> {
    Arc::new(Model::load(device, Arc::new(program), &Options::default()).unwrap())
}
