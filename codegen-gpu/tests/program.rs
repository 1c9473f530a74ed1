//! Outlined modules as text, compiled to kernels and run.

use crate::device::Device;
use monopour_codegen_gpu::distribute::{self, Report};
use monopour_codegen_gpu::emit;
use monopour_ir::{Context, Diagnostics, Module};
use monopour_program::{GpuDescription, GpuKernel};
use std::io::Write;
use std::process::Command;

/// A description of lavapipe, for tests that need no device.
pub fn lavapipe() -> GpuDescription {
    use monopour_program::{DeviceType, GpuFeature};
    let mut d = GpuDescription::portable();
    d.device_type = DeviceType::Cpu;
    d.features = vec![GpuFeature::Subgroup, GpuFeature::Int64, GpuFeature::Immediates];
    (d.subgroup_min_size, d.subgroup_max_size) = (8, 8);
    d.limits.max_storage_buffers = 32;
    d.limits.max_immediate_bytes = 128;
    d.limits.max_workgroup_invocations = 1024;
    d
}

/// An outlined module of one dispatch: `args` are buffer types, `body` the kernel's ops over `%a0, %a1, ..` and tile ids `%i0, ..`.
pub fn outlined(args: &[String], grid: &[i64], kernel: &str, body: &str) -> String {
    let typed: Vec<String> = args.iter().enumerate().map(|(i, t)| format!("%a{i}: {t}")).collect();
    let ids: Vec<String> = (0..grid.len()).map(|i| format!("%i{i}")).collect();
    let names: Vec<String> = (0..args.len()).map(|i| format!("%a{i}")).chain(ids.iter().cloned()).collect();
    let types: Vec<String> = args.iter().cloned().chain(ids.iter().map(|_| "index".to_owned())).collect();
    let grid: Vec<String> = grid.iter().map(i64::to_string).collect();
    let id_params: Vec<String> = ids.iter().map(|i| format!("{i}: index")).collect();
    format!(
        "func.func @main({typed}) {{\n  scf.forall ({ids}) in ({grid}) {{\n    func.call @kernel({names}) : ({types}) -> ()\n  }}\n  return\n}}\n\
         func.func private @kernel({params}) attributes {{monopour.kernel = {{{kernel}}}}} {{\n{body}\n  return\n}}\n",
        typed = typed.join(", "),
        ids = ids.join(", "),
        grid = grid.join(", "),
        names = names.join(", "),
        types = types.join(", "),
        params = typed.iter().chain(&id_params).cloned().collect::<Vec<_>>().join(", "),
    )
}

/// `memref<AxBx..xf32, global>`.
pub fn buffer(shape: &[i64]) -> String {
    let dims: String = shape.iter().map(|d| format!("{d}x")).collect();
    format!("memref<{dims}f32, #gpu.address_space<global>>")
}

/// Distributes and emits the kernel of a module; checks that upstream verifies the IR, that barriers separate dependent
/// accesses to shared memory, and that the SPIR-V is valid.
pub fn compile(text: &str, device: &GpuDescription) -> Result<(GpuKernel, Report, String), Diagnostics> {
    let cx = Context::new();
    let module = Module::parse(cx, text.as_bytes(), "test.mlir").unwrap_or_else(|d| panic!("{d}\n{text}"));
    let report = distribute::run(&module, device)?;
    module.op().verify_with_diagnostics()?;
    let ir = module.op().to_string();
    let races = monopour_testkit::barriers::check(&module).races;
    assert!(races.is_empty(), "{}\n{ir}", races.join("\n"));
    let kernel = emit::run(&module, module.symbol("kernel").expect("the kernel is there"))?;
    validate(&kernel);
    Ok((kernel, report, ir))
}

/// Runs `spirv-val`, where the machine has it.
pub fn validate(kernel: &GpuKernel) {
    let path =
        std::env::temp_dir().join(format!("monopour-{}-{:?}.spv", std::process::id(), std::thread::current().id()));
    let mut file = std::fs::File::create(&path).expect("the temporary folder is writable");
    file.write_all(bytemuck::cast_slice(&kernel.spirv)).expect("the file is writable");
    drop(file);
    let result = Command::new("spirv-val").args(["--target-env", "vulkan1.3"]).arg(&path).output();
    let _ = std::fs::remove_file(&path);
    let Ok(output) = result else { return };
    assert!(output.status.success(), "spirv-val: {}\n{}", String::from_utf8_lossy(&output.stderr), kernel.wgsl);
}

/// Compiles for the device, runs on f32 data, returns all buffers and the report.
pub fn execute(device: &Device, text: &str, grid: &[i64], inputs: &[Vec<f32>]) -> (Vec<Vec<f32>>, Report) {
    execute_as(device, &device.description, text, grid, inputs)
}

/// As [`execute`], compiled for a device that is described by `description`.
pub fn execute_as(
    device: &Device,
    description: &GpuDescription,
    text: &str,
    grid: &[i64],
    inputs: &[Vec<f32>],
) -> (Vec<Vec<f32>>, Report) {
    let (kernel, report, _) = compile(text, description).unwrap_or_else(|d| panic!("{d}\n{text}"));
    let size = |axis: usize| grid.iter().rev().nth(axis).map_or(1, |g| *g as u32);
    let bits: Vec<Vec<u32>> = inputs.iter().map(|v| v.iter().map(|x| x.to_bits()).collect()).collect();
    let out = device.run(&kernel, [size(0), size(1), size(2)], &bits);
    (out.into_iter().map(|v| v.into_iter().map(f32::from_bits).collect()).collect(), report)
}

/// Deterministic numbers between -1 and 1.
pub fn numbers(count: i64, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..count)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        })
        .collect()
}

/// Asserts that two results agree.
pub fn assert_close(found: &[f32], expected: &[f32], tolerance: f32, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}: length");
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        let fine = f == e || (f - e).abs() <= tolerance * e.abs().max(1.0) || (f.is_nan() && e.is_nan());
        assert!(fine, "{what}: element {i} is {f}, expected {e}");
    }
}
