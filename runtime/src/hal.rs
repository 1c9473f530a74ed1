//! Shader modules without the device API's own checks, pipeline caches, and a silent driver loader.
#![allow(unsafe_code, reason = "unchecked shader modules and pipeline caches are unsafe to create")]

use std::borrow::Cow;

use monopour_program::GpuKernel;

/// A module from the kernel's SPIR-V, unchanged. The device must have passthrough shaders.
pub(crate) fn passthrough_module(device: &wgpu::Device, kernel: &GpuKernel) -> wgpu::ShaderModule {
    let [x, y, z] = kernel.workgroup_size;
    let entry = wgpu::PassthroughShaderEntryPoint { name: Cow::Borrowed(&kernel.name), workgroup_size: (x, y, z) };
    let descriptor = wgpu::ShaderModuleDescriptorPassthrough {
        label: Some(&kernel.name),
        entry_points: Cow::Owned(vec![entry]),
        spirv: Some(Cow::Borrowed(&kernel.spirv)),
        ..Default::default()
    };
    // SAFETY: only kernels of trusted programs come here: the compiler validated the module that it wrote the words from, and
    // keeps every access within the bindings, whose sizes the executor checks.
    unsafe { device.create_shader_module_passthrough(descriptor) }
}

/// Leave to ask for features that the device API calls experimental: cooperative matrices are one.
pub(crate) fn experimental_features() -> wgpu::ExperimentalFeatures {
    // SAFETY: only kernels of trusted programs use them, which the compiler has validated; others are refused.
    unsafe { wgpu::ExperimentalFeatures::enabled() }
}

/// A module from WGSL, validated, without run-time checks.
pub(crate) fn trusted_module(device: &wgpu::Device, name: &str, wgsl: &str) -> wgpu::ShaderModule {
    let source = wgpu::ShaderSource::Wgsl(Cow::Borrowed(wgsl));
    let descriptor = wgpu::ShaderModuleDescriptor { label: Some(name), source };
    // SAFETY: kernels of trusted programs keep their accesses within their bindings and bound their loops; the runtime's own
    // do too.
    unsafe { device.create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked()) }
}

/// The driver's cache, initialized with `data` if the driver accepts it.
pub(crate) fn pipeline_cache(device: &wgpu::Device, data: Option<&[u8]>) -> wgpu::PipelineCache {
    let descriptor = wgpu::PipelineCacheDescriptor { label: Some("monopour"), data, fallback: true };
    // SAFETY: `data` is from `PipelineCache::get_data` of an earlier process, behind a hash that was checked; wgpu checks
    // that it is this driver's.
    unsafe { device.create_pipeline_cache(&descriptor) }
}

/// Turns Mesa's device selection layer off without a session to query: it would print to standard error.
///
/// Only while this process has a single thread: the environment is shared by all.
pub(crate) fn quiet_loader() {
    const LAYER_OFF: &str = "NODEVICE_SELECT";
    let has_session = std::env::var_os("XDG_RUNTIME_DIR").is_some_and(|dir| std::path::Path::new(&dir).is_absolute());
    // A user who chooses a device through the layer needs it.
    let is_used =
        ["MESA_VK_DEVICE_SELECT", "DRI_PRIME", LAYER_OFF].into_iter().any(|name| std::env::var_os(name).is_some());
    let is_alone = || std::fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() == 1);
    if !has_session && !is_used && is_alone() {
        // SAFETY: no other thread reads or writes the environment: there is none.
        unsafe { std::env::set_var(LAYER_OFF, "1") };
    }
}
