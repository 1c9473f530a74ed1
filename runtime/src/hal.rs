//! Shader modules that skip the device API's own checks.
#![allow(unsafe_code, reason = "unchecked shader modules are unsafe to create")]

use std::borrow::Cow;

use monopour_program::GpuKernel;

/// A module from the kernel's SPIR-V, taken as it is. The device must have passthrough shaders.
pub(crate) fn passthrough_module(device: &wgpu::Device, kernel: &GpuKernel) -> wgpu::ShaderModule {
    let [x, y, z] = kernel.workgroup_size;
    let entry = wgpu::PassthroughShaderEntryPoint { name: Cow::Borrowed(&kernel.name), workgroup_size: (x, y, z) };
    let descriptor = wgpu::ShaderModuleDescriptorPassthrough {
        label: Some(&kernel.name),
        entry_points: Cow::Owned(vec![entry]),
        spirv: Some(Cow::Borrowed(&kernel.spirv)),
        ..Default::default()
    };
    // SAFETY: the words come from an artifact whose hash was checked; the compiler validated the module that it wrote them
    // from, and keeps every access within the bindings whose sizes the executor checks.
    unsafe { device.create_shader_module_passthrough(descriptor) }
}

/// A module from WGSL, validated, without checks at run time.
pub(crate) fn trusted_module(device: &wgpu::Device, name: &str, wgsl: &str) -> wgpu::ShaderModule {
    let source = wgpu::ShaderSource::Wgsl(Cow::Borrowed(wgsl));
    let descriptor = wgpu::ShaderModuleDescriptor { label: Some(name), source };
    // SAFETY: generated kernels keep their accesses within their bindings and bound their loops; the runtime's own do too.
    unsafe { device.create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked()) }
}
