//! `monopour inspect`: inputs and results of a model; for an artifact, also its contents.

use std::path::PathBuf;

use clap::Args;
use monopour::Program;
use monopour::program::{DYNAMIC, InputSize, Kernel, TensorDesc, Variant};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::{model, stdout};

/// Show the inputs and results of a model; for an artifact also its kernels, constants and memory plan.
#[derive(Args)]
#[command(after_help = "Example: monopour inspect mlp.mpr --json")]
pub struct InspectArgs {
    /// The model: .mlir, .mlirbc, .onnx, or .mpr.
    model: PathBuf,
    /// Also print the host function of each variant of an artifact, as data.
    #[arg(long)]
    host: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[cfg(feature = "compiler")]
    #[command(flatten)]
    source: crate::source::SourceArgs,
}

/// Runs the command.
pub fn run(args: &InspectArgs) -> Result<(), Failure> {
    #[cfg(feature = "compiler")]
    if monopour::pipeline::is_onnx(&args.model) {
        return crate::inspect_onnx::run(&args.model, args.json, &crate::source::dims(&args.source)?);
    }
    #[cfg(feature = "compiler")]
    let program = model::load(&args.model, &args.source, &[])?;
    #[cfg(not(feature = "compiler"))]
    let program = model::load_artifact(&args.model)?;
    // The code of a source depends on the target: only its signature is shown.
    let whole = model::is_artifact(&args.model);
    if args.json {
        return stdout::print(&format!("{:#}", object(&program, whole, args.host)));
    }
    stdout::print(&text(&program, whole, args.host))
}

/// Sizes of the dimensions, null for dynamic ones.
fn shape(tensor: &TensorDesc) -> Vec<Option<u64>> {
    tensor.shape.iter().map(|extent| Some(*extent).filter(|extent| *extent != DYNAMIC)).collect()
}

fn object(program: &Program, whole: bool, with_host: bool) -> Value {
    let tensors = |list: &[TensorDesc]| -> Vec<Value> {
        let each = list.iter().map(|tensor| {
            json!({
                "name": tensor.name, "dtype": tensor.dtype, "shape": shape(tensor),
                "bytes": tensor.is_static().then(|| tensor.size_bytes()), "donated": tensor.donated,
                "scalar": tensor.scalar,
            })
        });
        each.collect()
    };
    let mut object = json!({
        "entry": program.entry,
        "inputs": tensors(&program.signature.inputs),
        "results": tensors(&program.signature.results),
        "sizes": program.signature.sizes,
    });
    if whole {
        object["producer"] = json!(program.producer);
        let constants = program.constants.iter().map(|constant| {
            let bytes = constant.data.bytes().len();
            json!({ "name": constant.name, "dtype": constant.dtype, "shape": constant.shape, "bytes": bytes })
        });
        object["constants"] = constants.collect();
        object["variants"] = program.variants.iter().map(|variant| variant_object(variant, with_host)).collect();
    }
    object
}

fn variant_object(variant: &Variant, with_host: bool) -> Value {
    let kernels = variant.kernels.iter().map(|kernel| match kernel {
        Kernel::Gpu(kernel) => json!({
            "name": kernel.name, "workgroup_size": kernel.workgroup_size, "bindings": kernel.bindings,
            "features": kernel.features, "wgsl_bytes": kernel.wgsl.len(), "spirv_bytes": 4 * kernel.spirv.len(),
        }),
        Kernel::Cpu(kernel) => json!({ "name": kernel.symbol, "args": kernel.args, "ids": kernel.ids }),
    });
    let (host, data) = (&variant.host, &variant.host_data);
    let mut object = json!({
        "label": variant.target.label(),
        "target": variant.target,
        "kernels": kernels.collect::<Vec<_>>(),
        "dispatches": variant.dispatches,
        "host": { "arch": host.arch, "features": host.features, "object_bytes": host.size_bytes(), "entry": host.entry },
        "host_data": { "ops": data.ops_len(), "registers": data.registers_len() },
        "plan": variant.plan,
        "copies": variant.copies,
    });
    if with_host {
        object["host_data"]["code"] = json!(data.to_string());
    }
    object
}

fn text(program: &Program, whole: bool, with_host: bool) -> String {
    let mut lines = vec![format!("entry    {}", program.entry)];
    for input in &program.signature.inputs {
        lines.push(format!("input    {input}{}", if input.donated { "  donated" } else { "" }));
    }
    lines.extend(program.signature.results.iter().map(|result| format!("result   {result}")));
    let sizes = &program.signature.sizes;
    let text = |size: &InputSize| program.signature.size_text(*size);
    lines.extend(
        sizes.equal.iter().map(|class| format!("equal    {}", class.iter().map(text).collect::<Vec<_>>().join(", "))),
    );
    lines.extend(sizes.fixed.iter().map(|(size, needed)| format!("fixed    {}: {needed}", text(size))));
    if whole {
        lines.push(format!("producer {}", program.producer));
        for constant in &program.constants {
            let desc = TensorDesc::tensor(constant.name.clone(), constant.dtype, constant.shape.clone());
            lines.push(format!("constant {desc}  {} B", constant.data.bytes().len()));
        }
        program.variants.iter().for_each(|variant| variant_text(variant, with_host, &mut lines));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn variant_text(variant: &Variant, with_host: bool, lines: &mut Vec<String>) {
    let dispatches: u32 = variant.dispatches.iter().sum();
    let counts = format!("{dispatches} dispatches of {} kernels", variant.kernels.len());
    lines.push(format!("variant  {}  {counts}", variant.target.label()));
    for (kernel, times) in variant.kernels.iter().zip(&variant.dispatches) {
        let kernel = match kernel {
            Kernel::Gpu(kernel) => {
                let [x, y, z] = kernel.workgroup_size;
                let features: String = kernel.features.iter().map(|feature| format!(" {}", feature.as_str())).collect();
                format!("  kernel {}  workgroup {x}x{y}x{z}, {} bindings{features}", kernel.name, kernel.bindings.len())
            }
            Kernel::Cpu(kernel) => {
                format!("  kernel {}  {} arguments, {} tile ids", kernel.symbol, kernel.args, kernel.ids)
            }
        };
        lines.push(format!("{kernel}, dispatched {times} times"));
    }
    let (host, plan) = (&variant.host, &variant.plan);
    let ops = variant.host_data.ops_len();
    lines.push(format!("  host   {} {} {} B, {ops} ops as data", host.entry, host.arch, host.size_bytes()));
    if with_host {
        lines.extend(variant.host_data.to_string().lines().map(|line| format!("    {line}")));
    }
    lines.push(format!(
        "  plan   arena {} B, planned {} B, lower bound {} B, {} transients",
        plan.arena_bytes,
        plan.planned_bytes,
        plan.lower_bound_bytes,
        plan.transients.len()
    ));
    lines.push(format!("  copies {}", variant.copies.len()));
}
