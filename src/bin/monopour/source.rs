//! Sources and targets on the command line: flags that several commands share.

use crate::failure::Failure;
use crate::names::split_once;
use clap::{Args, ValueEnum};
use monopour::options::{CompileOptions, TargetDescription, target_of};
use monopour::program::{CpuTarget, GpuDescription};
use monopour::runtime::{Device, DeviceChoice};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Flags about the model's source.
#[derive(Args, Clone, Debug, Default)]
pub struct SourceArgs {
    /// The function to compile; default: main, or the only public one.
    #[arg(long, value_name = "FUNC")]
    pub entry: Option<String>,
    /// Values for dense_resource constants without a blob: a safetensors file, or a folder that holds them;
    /// default: the module's monopour.weights attribute.
    #[arg(long, value_name = "DIR|FILE.safetensors")]
    pub weights: Option<PathBuf>,
    /// This input may be overwritten, and may become a result; repeat for each.
    #[arg(long, value_name = "NAME")]
    pub donate: Vec<String>,
    /// The size of a symbolic dimension of an ONNX model; repeat for each. `inspect` shows the names.
    #[arg(long, value_name = "NAME=N", value_parser = dim)]
    pub dim: Vec<(String, i64)>,
    /// Accuracy of rows that weights of 2 to 8 bits in blocks multiply, as MatMulNBits counts it: with 4, CPUs round all of them to 8
    /// bits, a scale for each block; with 0 those alone for which the model says so.
    #[arg(long, value_enum, value_name = "0|4", default_value = "0", hide_possible_values = true)]
    pub accuracy_level: AccuracyLevel,
}

/// `accuracy_level` of MatMulNBits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum AccuracyLevel {
    /// What the model says.
    #[default]
    #[value(name = "0")]
    Unset,
    /// Integers of 8 bits.
    #[value(name = "4")]
    Int8,
}

/// A dimension's name and size.
fn dim(text: &str) -> Result<(String, i64), String> {
    // The last `=`: a name may hold one.
    let (name, size) = text.rsplit_once('=').ok_or("give NAME=N")?;
    let size = size.parse::<u32>().map_err(|_| format!("`{size}` is not a size"))?;
    Ok((name.to_owned(), i64::from(size)))
}

/// The sizes of `--dim` by name.
pub fn dims(args: &SourceArgs) -> Result<BTreeMap<String, i64>, Failure> {
    let mut sizes = BTreeMap::new();
    for (name, size) in &args.dim {
        if sizes.insert(name.clone(), *size).is_some() {
            return Err(Failure::usage(format!("--dim gives the size of `{name}` twice")));
        }
    }
    Ok(sizes)
}

/// The compiler's options for these flags.
pub fn options(args: &SourceArgs, targets: &[TargetDescription]) -> Result<CompileOptions, Failure> {
    Ok(CompileOptions {
        targets: targets.to_vec(),
        entry: args.entry.clone(),
        weights: args.weights.clone(),
        donate: args.donate.clone(),
        dims: dims(args)?,
        rounded_rows: args.accuracy_level == AccuracyLevel::Int8,
        object_cache: monopour::program::cache::folder().map(|caches| caches.join("objects")),
        ..CompileOptions::default()
    })
}

/// Steps of a compilation for this many targets: its phases.
pub fn steps(targets: usize) -> usize {
    targets * monopour::pipeline::PHASES.len()
}

/// The targets of `--target`; without any, that of the device that `auto` takes.
pub fn targets(names: &[OsString]) -> Result<Vec<TargetDescription>, Failure> {
    if names.is_empty() {
        let device = Device::open(&DeviceChoice::Auto).map_err(Failure::from)?;
        return Ok(vec![target_of(&device)]);
    }
    let mut out = Vec::new();
    for name in names {
        let unknown = || {
            let name = name.display();
            Failure::usage(format!("no target is called '{name}': gpu[:FILE.json|portable] or cpu[:CPU,...]"))
        };
        let (kind, which) = match split_once(name, ':') {
            Some(parts) => parts,
            None => (name.to_str().ok_or_else(unknown)?, PathBuf::new()),
        };
        match (kind, which.to_str()) {
            ("gpu", _) => out.push(gpu_target(&which)?),
            ("cpu", Some(which)) => {
                for cpu in if which.is_empty() { "host" } else { which }.split(',') {
                    out.push(cpu_target(cpu)?);
                }
            }
            _ => return Err(unknown()),
        }
    }
    Ok(out)
}

fn gpu_target(which: &Path) -> Result<TargetDescription, Failure> {
    let description = match which.to_str() {
        // Bare `gpu`: the adapter that `--device gpu` takes here, else portable.
        Some("") => match Device::open(&DeviceChoice::Gpu) {
            Ok(device) => device.description().cloned().unwrap_or_else(GpuDescription::portable),
            Err(_) => GpuDescription::portable(),
        },
        Some("portable") => GpuDescription::portable(),
        _ => read_description(which)?,
    };
    Ok(TargetDescription::Gpu(description))
}

fn read_description(file: &Path) -> Result<GpuDescription, Failure> {
    let text = std::fs::read_to_string(file).map_err(|e| {
        let file = file.display();
        Failure::input(format!("error[I0031]: cannot read {file}: {e}\n  help: check the path and its permissions"))
    })?;
    let wrong = |what: &dyn std::fmt::Display| {
        Failure::input(format!(
            "error[I0033]: {} is not a device description: {what}\n  help: write one with `monopour devices --json`",
            file.display()
        ))
    };
    let description: GpuDescription = serde_json::from_str(&text).map_err(|e| wrong(&e))?;
    description.check().map_err(|what| wrong(&what))?;
    Ok(description)
}

fn cpu_target(name: &str) -> Result<TargetDescription, Failure> {
    let unknown = || {
        Failure::usage(format!(
            "no CPU is called '{name}': host, x86-64, x86-64-v2, x86-64-v3, x86-64-v3-vnni, x86-64-v4, x86-64-v4-vnni, x86-64-v4-amx, \
             aarch64, aarch64-dotprod, aarch64-i8mm, generic"
        ))
    };
    CpuTarget::parse(name)
        .or_else(|| (name == "host").then(CpuTarget::host))
        .map(TargetDescription::Cpu)
        .ok_or_else(unknown)
}
