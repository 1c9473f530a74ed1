//! `monopour devices`: adapters, their features, and the one that `auto` takes.

use clap::Args;
use monopour::program::GpuFeature;
use monopour::runtime::{DeviceInfo, DeviceKind, devices};

use crate::failure::Failure;
use crate::stdout;

/// List devices, what they can do, and which one auto takes.
#[derive(Args)]
#[command(
    after_help = "Example: monopour devices --json > gpu.json; monopour compile m.mlir -o m.mpr --target gpu:gpu.json"
)]
pub struct DevicesArgs {
    /// Print one JSON object: the description of the best GPU, as --target reads it, and the list of all devices.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &DevicesArgs) -> Result<(), Failure> {
    let devices = devices();
    if args.json {
        return stdout::print(&format!("{:#}", object(&devices)?));
    }
    stdout::print(&devices.iter().map(describe).collect::<Vec<_>>().join("\n"))
}

/// The best GPU's description at the top level, so that the file serves as `--target gpu:FILE.json`, and all devices.
fn object(devices: &[DeviceInfo]) -> Result<serde_json::Value, Failure> {
    let failed = |error: serde_json::Error| Failure::machine(format!("error: {error}"));
    let gpu = devices.iter().find_map(|device| if let DeviceKind::Gpu(gpu) = &device.kind { Some(gpu) } else { None });
    let mut object = match gpu {
        Some(gpu) => serde_json::to_value(gpu).map_err(failed)?,
        None => serde_json::json!({}),
    };
    object["devices"] = serde_json::to_value(devices).map_err(failed)?;
    Ok(object)
}

fn describe(device: &DeviceInfo) -> String {
    let auto = if device.auto { "  (auto)" } else { "" };
    let head = format!("{}  {}{auto}", device.index, device.name);
    match &device.kind {
        DeviceKind::Cpu(cpu) => {
            format!("{head}\n     cpu, {}, {}, {}-bit vectors", cpu.arch, cpu.cpu, cpu.vector_bits)
        }
        DeviceKind::Gpu(gpu) => {
            let kind = if gpu.is_cpu_adapter() { "software adapter" } else { "gpu" };
            let backend = gpu.backend.map_or("any backend", |backend| backend.as_str());
            let features: Vec<&str> = gpu.features.iter().copied().map(GpuFeature::as_str).collect();
            let subgroups = match (gpu.subgroup_min_size, gpu.subgroup_max_size) {
                (0, _) => "none".to_owned(),
                (min, max) if min == max => min.to_string(),
                (min, max) => format!("{min} to {max}"),
            };
            format!(
                "{head}\n     {kind}, {backend}, {}\n     features: {}\n     subgroups: {subgroups}, workgroup: {} invocations, {} B; binding: {} MiB, {} buffers",
                gpu.driver,
                features.join(" "),
                gpu.limits.max_workgroup_invocations,
                gpu.limits.max_workgroup_storage_bytes,
                gpu.limits.max_binding_bytes >> 20,
                gpu.limits.max_storage_buffers,
            )
        }
    }
}
