//! Devices: enumeration, choice and description.

use monopour_program::{Backend, CpuTarget, DeviceType, GpuDescription, GpuFeature, GpuLimits};
use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};
use wgpu::Features;

use crate::error::Error;
use crate::hal;
use crate::pool::SharedAccount;

pub(crate) use gpu::GpuDevice;

mod gpu;
mod scopes;

/// Other backends are left out: a silent fall-back to software GL would hide a missing driver.
const BACKENDS: wgpu::Backends = wgpu::Backends::VULKAN.union(wgpu::Backends::METAL).union(wgpu::Backends::DX12);

/// Each feature of kernels or the runtime, with wgpu's name.
const FEATURES: [(GpuFeature, Features); 11] = [
    (GpuFeature::Subgroup, Features::SUBGROUP),
    (GpuFeature::SubgroupBarrier, Features::SUBGROUP_BARRIER),
    (GpuFeature::F16, Features::SHADER_F16),
    (GpuFeature::F64, Features::SHADER_F64),
    (GpuFeature::Int16, Features::SHADER_I16),
    (GpuFeature::Int64, Features::SHADER_INT64),
    (GpuFeature::Immediates, Features::IMMEDIATES),
    (GpuFeature::Float32Atomic, Features::SHADER_FLOAT32_ATOMIC),
    (GpuFeature::CooperativeMatrix, Features::EXPERIMENTAL_COOPERATIVE_MATRIX),
    (GpuFeature::Timestamps, Features::TIMESTAMP_QUERY),
    (GpuFeature::PassthroughShaders, Features::PASSTHROUGH_SHADERS),
];

/// One device of this machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceInfo {
    /// The number for `--device INDEX`.
    pub index: usize,
    /// The adapter's or the CPU's name.
    pub name: String,
    /// Whether `--device auto` takes it.
    pub auto: bool,
    /// Its kind and capabilities.
    #[serde(flatten)]
    pub kind: DeviceKind,
}

/// The kind of a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// A GPU, or a software adapter.
    Gpu(GpuDescription),
    /// The CPU, by native kernels.
    Cpu(CpuTarget),
}

/// The choice of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The best hardware GPU, else the CPU.
    Auto,
    /// The best GPU, software adapters included.
    Gpu,
    /// The CPU.
    Cpu,
    /// A position in [`devices`].
    Index(usize),
    /// A name in [`devices`], or a part of one, in any case.
    Name(String),
}

impl DeviceChoice {
    /// Reads `auto`, `gpu`, `cpu`, an index or a name.
    pub fn parse(text: &str) -> DeviceChoice {
        match text {
            "auto" => DeviceChoice::Auto,
            "gpu" => DeviceChoice::Gpu,
            "cpu" => DeviceChoice::Cpu,
            _ => text.parse().map_or_else(|_| DeviceChoice::Name(text.to_owned()), DeviceChoice::Index),
        }
    }
}

/// The devices of this machine: GPUs first, best first, the CPU last.
pub fn devices() -> Vec<DeviceInfo> {
    let adapters = adapters();
    let auto = auto_index(&adapters);
    let gpus = adapters.iter().map(|(_, description)| DeviceKind::Gpu(description.clone()));
    gpus.chain([DeviceKind::Cpu(CpuTarget::host())])
        .enumerate()
        .map(|(index, kind)| {
            let name = match &kind {
                DeviceKind::Gpu(description) => description.name.clone(),
                DeviceKind::Cpu(_) => cpu_name(),
            };
            DeviceInfo { index, name, auto: index == auto, kind }
        })
        .collect()
}

/// The index that `auto` takes: a hardware GPU if the first adapter is one, else the CPU, the last index.
fn auto_index(adapters: &[(wgpu::Adapter, GpuDescription)]) -> usize {
    match adapters.first() {
        Some((_, description)) if !description.is_cpu_adapter() => 0,
        _ => adapters.len(),
    }
}

/// All adapters with their descriptions, best first.
fn adapters() -> Vec<(wgpu::Adapter, GpuDescription)> {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = BACKENDS;
    hal::quiet_loader();
    let instance = wgpu::Instance::new(descriptor);
    let mut adapters: Vec<_> = pollster::block_on(instance.enumerate_adapters(BACKENDS))
        .into_iter()
        .filter_map(|adapter| describe(&adapter).map(|description| (adapter, description)))
        .collect();
    adapters.sort_by_key(|(_, description)| rank(description.device_type));
    adapters
}

fn rank(device_type: DeviceType) -> u32 {
    match device_type {
        DeviceType::Discrete => 0,
        DeviceType::Integrated => 1,
        DeviceType::Virtual => 2,
        DeviceType::Other => 3,
        DeviceType::Cpu => 4,
    }
}

/// The description of an adapter; `None` for one of an unused backend.
fn describe(adapter: &wgpu::Adapter) -> Option<GpuDescription> {
    let mut features = adapter.features();
    features.set(Features::EXPERIMENTAL_COOPERATIVE_MATRIX, has_matrices_of_halves(adapter));
    let description = describe_as(&adapter.get_info(), features, &adapter.limits());
    description.backend.is_some().then_some(description)
}

/// Whether a subgroup multiplies matrices of f16, of 16 rows and columns, and sums in f32.
fn has_matrices_of_halves(adapter: &wgpu::Adapter) -> bool {
    let is_offered = adapter.features().contains(Features::EXPERIMENTAL_COOPERATIVE_MATRIX);
    let fits = |shape: &wgpu::CooperativeMatrixProperties| {
        let types = (shape.ab_type, shape.cr_type);
        [shape.m_size, shape.n_size, shape.k_size] == [16; 3]
            && types == (wgpu::CooperativeScalarType::F16, wgpu::CooperativeScalarType::F32)
    };
    is_offered && adapter.cooperative_matrix_properties().iter().any(fits)
}

/// The description of a device with these features and limits.
fn describe_as(info: &wgpu::AdapterInfo, features: Features, limits: &wgpu::Limits) -> GpuDescription {
    let backend = match info.backend {
        wgpu::Backend::Vulkan => Some(Backend::Vulkan),
        wgpu::Backend::Metal => Some(Backend::Metal),
        wgpu::Backend::Dx12 => Some(Backend::Dx12),
        _ => None,
    };
    let has_subgroups = features.contains(Features::SUBGROUP);
    let mut names: Vec<GpuFeature> =
        FEATURES.iter().filter(|(_, bit)| features.contains(*bit)).map(|(name, _)| *name).collect();
    names.sort();
    GpuDescription {
        name: info.name.clone(),
        backend,
        device_type: match info.device_type {
            wgpu::DeviceType::DiscreteGpu => DeviceType::Discrete,
            wgpu::DeviceType::IntegratedGpu => DeviceType::Integrated,
            wgpu::DeviceType::VirtualGpu => DeviceType::Virtual,
            wgpu::DeviceType::Cpu => DeviceType::Cpu,
            wgpu::DeviceType::Other => DeviceType::Other,
        },
        driver: format!("{} {}", info.driver, info.driver_info).trim().to_owned(),
        features: names,
        limits: limits_of(limits),
        subgroup_min_size: if has_subgroups { info.subgroup_min_size } else { 0 },
        subgroup_max_size: if has_subgroups { info.subgroup_max_size } else { 0 },
    }
}

fn limits_of(limits: &wgpu::Limits) -> GpuLimits {
    GpuLimits {
        max_storage_buffers: limits.max_storage_buffers_per_shader_stage,
        max_binding_bytes: limits.max_storage_buffer_binding_size,
        max_buffer_bytes: limits.max_buffer_size,
        max_workgroup_storage_bytes: limits.max_compute_workgroup_storage_size,
        max_workgroup_invocations: limits.max_compute_invocations_per_workgroup,
        max_workgroup_size: [
            limits.max_compute_workgroup_size_x,
            limits.max_compute_workgroup_size_y,
            limits.max_compute_workgroup_size_z,
        ],
        max_workgroups_per_dimension: limits.max_compute_workgroups_per_dimension,
        max_immediate_bytes: limits.max_immediate_size,
    }
}

/// The CPU's marketing name if the system has it, else its architecture level.
fn cpu_name() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split_once(": ")).map_or_else(|| CpuTarget::host().cpu, |(_, name)| name.to_owned())
}

/// An open device. Clones share it; several sessions may use it at once.
#[derive(Clone, Debug)]
pub struct Device {
    pub(crate) kind: Opened,
    name: String,
    /// Distinguishes tensors of different devices.
    pub(crate) id: u64,
    /// The memory of all models and sessions.
    pub(crate) account: SharedAccount,
}

/// The device behind a [`Device`].
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one per device")]
pub(crate) enum Opened {
    Gpu(GpuDevice),
    Cpu,
}

impl Device {
    /// Opens a device.
    ///
    /// # Errors
    /// [`Error::NoAdapter`], [`Error::NoSuchDevice`], [`Error::DeviceRequest`].
    pub fn open(choice: &DeviceChoice) -> Result<Device, Error> {
        if *choice == DeviceChoice::Cpu {
            return Ok(Device::new(Opened::Cpu, cpu_name()));
        }
        let mut adapters = adapters();
        let index = match choice {
            DeviceChoice::Cpu => adapters.len(),
            DeviceChoice::Auto => auto_index(&adapters),
            DeviceChoice::Gpu if adapters.is_empty() => return Err(Error::NoAdapter),
            DeviceChoice::Gpu => 0,
            DeviceChoice::Index(index) if *index <= adapters.len() => *index,
            DeviceChoice::Index(index) => return Err(no_such_device(&index.to_string(), &adapters)),
            DeviceChoice::Name(name) => named(name, &adapters)?,
        };
        if index == adapters.len() {
            return Ok(Device::new(Opened::Cpu, cpu_name()));
        }
        let (adapter, description) = adapters.swap_remove(index);
        let name = description.name.clone();
        Ok(Device::new(Opened::Gpu(GpuDevice::request(&adapter, description)?), name))
    }

    /// Opens the best GPU with the capabilities of every WebGPU device only: no optional feature, the
    /// default limits. A program that runs there runs wherever [`GpuDescription::portable`] does.
    ///
    /// # Errors
    /// [`Error::NoAdapter`], [`Error::DeviceRequest`].
    pub fn open_portable() -> Result<Device, Error> {
        let (adapter, description) = adapters().into_iter().next().ok_or(Error::NoAdapter)?;
        let GpuDescription { name, backend, device_type, driver, .. } = description;
        let description =
            GpuDescription { name: name.clone(), backend, device_type, driver, ..GpuDescription::portable() };
        let gpu = GpuDevice::request_with(&adapter, description, Features::empty(), wgpu::Limits::default())?;
        Ok(Device::new(Opened::Gpu(gpu), name))
    }

    /// The caller's own device and its queue, on which models run as guests.
    ///
    /// The caller keeps its error scopes, its handler of uncaptured errors, its callbacks and its limits; nothing waits for its
    /// work. What the device offers decides which programs run: request it with `device.features()` and limits that they need.
    /// A lost device shows as [`Error::DeviceLost`] with the next wait, as the callback for it is the caller's.
    ///
    /// # Errors
    /// [`Error::Limit`] (R0015) when its limits leave no room for kernels at all. Limits that a program needs and the device
    /// lacks are [`Error::NoVariant`] (R0004) of [`Model::load`](crate::Model::load).
    pub fn from_wgpu(device: wgpu::Device, queue: wgpu::Queue) -> Result<Device, Error> {
        let gpu = GpuDevice::adopt(device, queue)?;
        let name = gpu.description.name.clone();
        Ok(Device::new(Opened::Gpu(gpu), name))
    }

    /// Limits the bytes that all models and sessions together take from the device, those of earlier ones included; `None`:
    /// no limit. Beyond it they get [`Error::MemoryLimit`].
    pub fn limit_memory(&self, limit_bytes: Option<u64>) {
        self.account.lock().limit = limit_bytes;
    }

    /// Bytes that all models and sessions hold.
    pub fn used_bytes(&self) -> u64 {
        self.account.lock().used
    }

    fn new(kind: Opened, name: String) -> Device {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let account = SharedAccount::default();
        Device { kind, name, id: NEXT.fetch_add(1, Ordering::Relaxed), account }
    }

    /// The adapter's or the CPU's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `gpu` or `cpu`.
    pub fn kind_name(&self) -> &'static str {
        match self.kind {
            Opened::Gpu(_) => "gpu",
            Opened::Cpu => "cpu",
        }
    }

    /// The description of the GPU; `None` for the CPU.
    pub fn description(&self) -> Option<&GpuDescription> {
        match &self.kind {
            Opened::Gpu(gpu) => Some(&gpu.description),
            Opened::Cpu => None,
        }
    }

    /// The device API's own counts of live objects; `None` for the CPU. For tests of this crate's numbers.
    pub fn internal_counters(&self) -> Option<InternalCounters> {
        let Opened::Gpu(gpu) = &self.kind else { return None };
        let counters = gpu.device.get_internal_counters().hal;
        Some(InternalCounters {
            buffers: counters.buffers.read() as i64,
            buffer_bytes: counters.buffer_memory.read() as i64,
            bind_groups: counters.bind_groups.read() as i64,
            compute_pipelines: counters.compute_pipelines.read() as i64,
        })
    }
}

/// Live objects of a device, by wgpu's own count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InternalCounters {
    /// Buffers, wgpu's own included.
    pub buffers: i64,
    /// Memory of the buffers, in bytes.
    pub buffer_bytes: i64,
    /// Bind groups.
    pub bind_groups: i64,
    /// Compute pipelines.
    pub compute_pipelines: i64,
}

fn named(name: &str, adapters: &[(wgpu::Adapter, GpuDescription)]) -> Result<usize, Error> {
    let wanted = name.trim().to_lowercase();
    // An empty name would be a part of every name.
    if wanted.is_empty() {
        return Err(no_such_device(name, adapters));
    }
    let position = |is_match: &dyn Fn(&str) -> bool| {
        adapters.iter().position(|(_, description)| is_match(&description.name.to_lowercase()))
    };
    position(&|name| name == wanted)
        .or_else(|| position(&|name| name.contains(&wanted)))
        .or_else(|| cpu_name().to_lowercase().contains(&wanted).then_some(adapters.len()))
        .ok_or_else(|| no_such_device(name, adapters))
}

fn no_such_device(asked: &str, adapters: &[(wgpu::Adapter, GpuDescription)]) -> Error {
    let names = adapters.iter().map(|(_, description)| description.name.clone());
    let present = names.chain([cpu_name()]).enumerate().map(|(index, name)| format!("{index} `{name}`")).collect();
    Error::NoSuchDevice { asked: asked.to_owned(), present }
}

/// What the runtime uses of the features that an adapter offers.
fn features_of(offered: Features) -> Features {
    let used = Features::TIMESTAMP_QUERY_INSIDE_PASSES | Features::PIPELINE_CACHE;
    FEATURES.iter().fold(used, |all, (_, bit)| all | *bit) & offered
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first adapter; `None`, counted as a skip, if there is none and none is required.
    fn adapter() -> Option<(wgpu::Adapter, GpuDescription)> {
        let adapter = adapters().into_iter().next();
        if adapter.is_none() {
            assert!(std::env::var_os("REQUIRE_GPU").is_none_or(|v| v != "1"), "a GPU is required");
            println!("skipped: no adapter");
        }
        adapter
    }

    #[test]
    fn only_offered_features_that_are_used_are_requested() {
        let offered = Features::SHADER_F16 | Features::PIPELINE_CACHE | Features::TEXTURE_COMPRESSION_BC;
        assert_eq!(features_of(offered), Features::SHADER_F16 | Features::PIPELINE_CACHE);
        assert_eq!(features_of(Features::empty()), Features::empty());
    }

    #[test]
    fn a_refused_request_names_the_adapter() {
        let Some((adapter, description)) = adapter() else { return };
        let name = description.name.clone();
        // Experimental features must be unlocked first, which this request does not.
        let wanted = Features::EXPERIMENTAL_COOPERATIVE_MATRIX;
        let refused = GpuDevice::request_with(&adapter, description, wanted, adapter.limits());
        let error = refused.map(|_| ()).unwrap_err();
        assert_eq!(error.code(), "R0003");
        assert!(error.to_string().contains(&name) && error.is_machine_failure(), "{error}");
    }

    #[test]
    fn a_lost_device_is_an_error_from_then_on() {
        let Some((adapter, description)) = adapter() else { return };
        let gpu = GpuDevice::request(&adapter, description).unwrap();
        gpu.scoped("nothing", || Ok(())).unwrap();
        gpu.device.destroy();
        let error = gpu.scoped("waiting", || gpu.wait(None)).unwrap_err();
        assert_eq!(error.code(), "R0012", "{error}");
    }
}
