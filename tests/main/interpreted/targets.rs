//! Descriptions of GPUs that no machine of the tests has, written by hand.
//!
//! Limits are those that the vendors' Vulkan drivers report, cut to what wgpu offers.

use monopour::program::{Backend, DeviceType, GpuDescription, GpuFeature, GpuLimits};

/// A description, and the sizes of subgroups that a pipeline may get there.
#[derive(Clone, Debug)]
pub struct Target {
    pub name: &'static str,
    pub description: GpuDescription,
    pub sizes: Vec<u32>,
}

/// Features of all vendors' desktop drivers.
const USUAL: [GpuFeature; 5] =
    [GpuFeature::Subgroup, GpuFeature::F16, GpuFeature::Int16, GpuFeature::Int64, GpuFeature::Immediates];

fn described(name: &'static str, device_type: DeviceType, (least, most): (u32, u32), shared: u32) -> Target {
    let limits = GpuLimits {
        max_storage_buffers: 64,
        max_binding_bytes: (2 << 30) - 4,
        max_buffer_bytes: 4 << 30,
        max_workgroup_storage_bytes: shared,
        max_workgroup_invocations: 1024,
        max_workgroup_size: [1024, 1024, 64],
        max_workgroups_per_dimension: 65_535,
        max_immediate_bytes: 128,
    };
    let description = GpuDescription {
        name: name.to_owned(),
        backend: Some(Backend::Vulkan),
        device_type,
        driver: String::new(),
        features: USUAL.to_vec(),
        limits,
        subgroup_min_size: least,
        subgroup_max_size: most,
    };
    let sizes = (0..8).map(|power| 1 << power).filter(|size| (least..=most).contains(size)).collect();
    Target { name, description, sizes }
}

fn with(mut target: Target, features: &[GpuFeature]) -> Target {
    target.description.features.extend(features);
    target.description.features.sort_unstable();
    target
}

/// NVIDIA's H200: subgroups of 32, 64-bit floats, cooperative matrices.
pub fn h200() -> Target {
    let features = [GpuFeature::F64, GpuFeature::CooperativeMatrix, GpuFeature::PassthroughShaders];
    with(described("H200", DeviceType::Discrete, (32, 32), 48 << 10), &features)
}

/// AMD's RDNA3: subgroups of 32 or 64.
pub fn rdna3() -> Target {
    with(described("RDNA3", DeviceType::Discrete, (32, 64), 64 << 10), &[GpuFeature::F64])
}

/// Intel's Xe: subgroups of 8 to 32, no 64-bit floats.
pub fn intel() -> Target {
    described("Intel", DeviceType::Integrated, (8, 32), 32 << 10)
}

/// Apple's M2, through Metal: subgroups of 4 to 64, no 64-bit floats, no 16-bit integers in buffers.
pub fn apple() -> Target {
    let mut target = described("Apple", DeviceType::Integrated, (4, 64), 32 << 10);
    target.description.backend = Some(Backend::Metal);
    target
}

/// Any WebGPU device; the size of its subgroups shows in nothing.
pub fn portable() -> Target {
    Target { name: "portable", description: GpuDescription::portable(), sizes: vec![32] }
}
