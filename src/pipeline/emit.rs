//! The last step: kernels to WGSL, SPIR-V or native code, the host function to native code.

use super::State;
use crate::options::{TargetDescription, target_kind};
use crate::report::Dump;
use monopour_codegen_cpu as cpu;
use monopour_codegen_gpu as gpu;
use monopour_contract::{KernelChoice, attributes};
use monopour_ir::parallel::{MANY, map_parts};
use monopour_ir::{Diagnostics, Module, Op};
use monopour_program::{
    AllocationNote, CpuKernel, CpuTarget, GpuDescription, GpuKernel, GpuLimits, GpuRequirements, GpuTarget, Kernel,
    MemoryPlan, NativeCode, Target, Transient, Variant,
};
use monopour_split::schedule;
use std::collections::HashMap;

/// Emits the scheduled module as a variant.
pub(super) fn emit_variant(state: &mut State<'_>) -> Result<Variant, Diagnostics> {
    match state.target {
        TargetDescription::Gpu(description) => emit_gpu(state, description),
        TargetDescription::Cpu(target) => emit_cpu(state, target),
    }
}

fn emit_gpu(state: &mut State<'_>, description: &GpuDescription) -> Result<Variant, Diagnostics> {
    let funcs = kernel_functions(state);
    let choice = |func: &Op| KernelChoice::decode(|entry| func.attr(attributes::KERNEL)?.field(entry)).ok();
    let assumed = |func: &Op| choice(func)?.subgroup_size;
    let subgroup_size = funcs.iter().find_map(assumed).map(|size| size as u32);
    let host_module = schedule::host_only(state.module(), &state.entry);
    // Host code of a GPU program is a few calls: the architecture's baseline runs everywhere.
    let baseline = cpu::object::baseline();
    let (kernels, host) = if funcs.len() < MANY {
        (gpu::emit::run_all(state.module(), &funcs)?, cpu::object::emit(&host_module, &baseline)?)
    } else {
        beside(&host_module, &baseline, || gpu::emit::run_all(state.module(), &funcs))?
    };
    for kernel in &kernels {
        dump(state, "wgsl", || kernel.wgsl.clone());
        dump(state, "spirv", || words(&kernel.spirv));
    }
    let listing = listing(state, &host_module, &baseline)?;
    dump_native(state, listing, &host);
    let requires = requirements(state, &kernels, subgroup_size);
    let target = Target::Gpu(GpuTarget { name: description.name.clone(), backend: None, requires });
    let kernels = kernels.into_iter().map(Kernel::Gpu).collect();
    Ok(variant(state, target, kernels, host))
}

/// The kernels that the schedule names, in its order.
fn kernel_functions(state: &State<'_>) -> Vec<Op> {
    let symbols = state.module().symbols();
    let find = |name: &String| *symbols.get(name).expect("the schedule names kernels of the module");
    state.scheduled.kernels.iter().map(find).collect()
}

fn emit_cpu(state: &mut State<'_>, target: &CpuTarget) -> Result<Variant, Diagnostics> {
    let found = cpu::object::kernels(state.module())?;
    let mut found: HashMap<String, CpuKernel> = found.into_iter().map(|k| (k.symbol.clone(), k)).collect();
    let kernels = state.scheduled.kernels.iter().filter_map(|name| found.remove(name)).map(Kernel::Cpu).collect();
    let host = cpu::object::emit(state.module(), target)?;
    let listing = listing(state, state.module(), target)?;
    dump_native(state, listing, &host);
    let target = Target::Cpu(target.clone());
    Ok(variant(state, target, kernels, host))
}

fn variant(state: &mut State<'_>, target: Target, kernels: Vec<Kernel>, host: NativeCode) -> Variant {
    let note = |pooled: &monopour_split::plan::Pooled| AllocationNote {
        reason: pooled.reason.to_owned(),
        location: pooled.location.clone(),
        bytes: pooled.size_bytes,
    };
    let allocations = state.pooled.iter().map(note).collect();
    Variant {
        target,
        kernels,
        dispatches: std::mem::take(&mut state.scheduled.dispatches),
        host,
        plan: memory_plan(state),
        copies: std::mem::take(&mut state.copies),
        allocations,
    }
}

/// The host's native code, made in a thread of its own while `kernels` runs.
fn beside(
    host: &Module,
    target: &CpuTarget,
    kernels: impl FnOnce() -> Result<Vec<GpuKernel>, Diagnostics>,
) -> Result<(Vec<GpuKernel>, NativeCode), Diagnostics> {
    let mut code = None;
    let keep = |made| {
        code = Some(made);
        Ok(())
    };
    let (kernels, done) =
        map_parts(&[host.op().to_bytecode()], |_, host| cpu::object::emit(host, target), kernels, keep);
    let kernels = kernels?;
    done.map(|()| (kernels, code.expect("invariant: the one part was made")))
}

/// The optimised LLVM IR, if it is asked for.
fn listing(state: &State<'_>, module: &Module, target: &CpuTarget) -> Result<Option<String>, Diagnostics> {
    let is_wanted = wants(state, "llvm");
    is_wanted.then(|| cpu::object::listing(module, target, cpu::object::Listing::OptimizedIr)).transpose()
}

fn dump_native(state: &mut State<'_>, listing: Option<String>, code: &NativeCode) {
    dump(state, "llvm", || listing.unwrap_or_default());
    dump(state, "object", || code.objects.iter().map(|object| bytes(object)).collect());
}

fn wants(state: &State<'_>, what: &str) -> bool {
    state.options.dump_after.iter().any(|p| p == what)
}

fn dump(state: &mut State<'_>, what: &str, text: impl FnOnce() -> String) {
    if wants(state, what) {
        state.report.dumps.push(Dump { phase: what.to_owned(), target: target_kind(state.target), text: text() });
    }
}

fn words(spirv: &[u32]) -> String {
    spirv.chunks(8).map(|c| c.iter().map(|w| format!("{w:08x}")).collect::<Vec<_>>().join(" ") + "\n").collect()
}

fn bytes(object: &[u8]) -> String {
    object.chunks(32).map(|c| c.iter().map(|b| format!("{b:02x}")).collect::<String>() + "\n").collect()
}

fn requirements(state: &State<'_>, kernels: &[GpuKernel], subgroup_size: Option<u32>) -> GpuRequirements {
    let mut features: Vec<_> = kernels.iter().flat_map(|k| k.features.iter().copied()).collect();
    features.sort_by_key(|f| format!("{f:?}"));
    features.dedup();
    let max = |f: fn(&GpuKernel) -> u32| kernels.iter().map(f).max().unwrap_or(0);
    let limits = GpuLimits {
        max_storage_buffers: max(|k| k.bindings.len() as u32),
        max_binding_bytes: largest_buffer(state),
        max_immediate_bytes: max(GpuKernel::immediate_bytes),
        max_workgroup_invocations: max(|k| k.workgroup_size.iter().product()),
        max_workgroup_size: [max(|k| k.workgroup_size[0]), max(|k| k.workgroup_size[1]), max(|k| k.workgroup_size[2])],
        ..GpuLimits::default()
    };
    GpuRequirements { features, subgroup_size, limits }
}

/// Bytes of the largest buffer that a kernel binds.
fn largest_buffer(state: &State<'_>) -> u64 {
    let types = kernel_functions(state).into_iter().filter_map(|k| k.function_type()).flat_map(|t| t.0);
    types.filter_map(|t| t.static_size_bytes()).max().unwrap_or(0)
}

fn memory_plan(state: &State<'_>) -> MemoryPlan {
    let transients = state.plan.transients.iter().enumerate().map(|(i, t)| Transient {
        name: if t.location.is_empty() { format!("transient{i}") } else { t.location.clone() },
        offset: t.offset_bytes,
        size_bytes: t.size_bytes,
        first: t.first,
        last: t.last,
    });
    MemoryPlan {
        arena_bytes: state.plan.arena_bytes,
        planned_bytes: state.plan.arena_bytes,
        lower_bound_bytes: state.plan.lower_bound_bytes,
        transients: transients.collect(),
    }
}
