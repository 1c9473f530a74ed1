//! The last phase: kernels to WGSL, SPIR-V or native code, the host function to native code.

use super::Job;
use super::stages::{Emitted, Planned, Scheduled, Stage};
use crate::options::TargetDescription;
use monopour_codegen_cpu as cpu;
use monopour_codegen_gpu as gpu;
use monopour_contract::{KernelChoice, attributes};
use monopour_ir::parallel::{MANY, map_parts};
use monopour_ir::{Diagnostics, Module, Op};
use monopour_program::{
    AllocationNote, CpuKernel, CpuTarget, GpuDescription, GpuKernel, GpuLimits, GpuRequirements, GpuTarget, Kernel,
    MemoryPlan, NativeCode, Target, Transient, Variant,
};
use monopour_split::{self as split, plan, schedule};
use std::collections::HashMap;

/// The code of a variant, and the target with its requirements.
struct Code {
    target: Target,
    kernels: Vec<Kernel>,
    host: NativeCode,
}

/// Emits the scheduled module as a variant.
pub(super) fn emit<'c>(job: &mut Job<'c, '_>, stage: Scheduled<'c>) -> Result<Emitted<'c>, Diagnostics> {
    let Code { target, kernels, host } = match job.target {
        TargetDescription::Gpu(description) => emit_gpu(job, &stage, description)?,
        TargetDescription::Cpu(target) => emit_cpu(job, &stage, target)?,
    };
    let host_data = split::host_data::run(stage.planned.model.host())?;
    job.dump("host", || host_data.to_string());
    let Scheduled { planned: Planned { model, copies, plan, pooled, lives, kernel_ops }, schedule } = stage;
    let sources = split::sources::run(&schedule.sites, &schedule.kernels, &kernel_ops);
    let variant = Variant {
        target,
        kernels,
        dispatches: schedule.dispatches,
        host,
        host_data,
        plan: memory_plan(plan),
        copies,
        allocations: pooled.into_iter().map(allocation).collect(),
        lives,
        sources,
    };
    Ok(Emitted { model, variant, constants: schedule.constants })
}

fn emit_gpu<'c>(
    job: &mut Job<'c, '_>,
    stage: &Scheduled<'c>,
    description: &GpuDescription,
) -> Result<Code, Diagnostics> {
    let module = stage.module();
    let funcs = kernel_functions(stage);
    let host_module = schedule::host_only(module, &stage.planned.model.entry);
    // The host code of a GPU program is a few calls: the architecture's baseline runs everywhere.
    let baseline = cpu::object::baseline();
    let (kernels, host) = if funcs.len() < MANY {
        (gpu::emit::run_all(module, &funcs)?, cpu::object::emit(&host_module, &baseline, job.objects)?)
    } else {
        beside(&host_module, &baseline, job.objects, || gpu::emit::run_all(module, &funcs))?
    };
    for kernel in &kernels {
        job.dump("wgsl", || kernel.wgsl.clone());
        job.dump("spirv", || words(&kernel.spirv));
    }
    let listing = listing(job, &host_module, &baseline)?;
    dump_native(job, listing, &host);
    let requires = requirements(&funcs, &kernels)?;
    let target = Target::Gpu(GpuTarget { name: description.name.clone(), backend: None, requires });
    Ok(Code { target, kernels: kernels.into_iter().map(Kernel::Gpu).collect(), host })
}

/// The kernels of the schedule, in order.
fn kernel_functions<'c>(stage: &'c Scheduled<'c>) -> Vec<Op<'c>> {
    let symbols = stage.module().symbols();
    let find = |name: &String| *symbols.get(name).expect("the schedule names kernels of the module");
    stage.schedule.kernels.iter().map(find).collect()
}

fn emit_cpu<'c>(job: &mut Job<'c, '_>, stage: &Scheduled<'c>, target: &CpuTarget) -> Result<Code, Diagnostics> {
    let module = stage.module();
    let found = cpu::object::kernels(module)?;
    let mut found: HashMap<String, CpuKernel> = found.into_iter().map(|k| (k.symbol.clone(), k)).collect();
    let kernels = stage.schedule.kernels.iter().filter_map(|name| found.remove(name)).map(Kernel::Cpu).collect();
    let host = cpu::object::emit(module, target, job.objects)?;
    let listing = listing(job, module, target)?;
    dump_native(job, listing, &host);
    Ok(Code { target: Target::Cpu(target.clone()), kernels, host })
}

fn allocation(pooled: plan::Pooled) -> AllocationNote {
    AllocationNote { reason: pooled.reason.to_owned(), location: pooled.location, bytes: pooled.size_bytes }
}

/// Compiles the host's native code in a thread while `kernels` runs.
fn beside(
    host: &Module,
    target: &CpuTarget,
    objects: Option<&cpu::objects::Objects>,
    kernels: impl FnOnce() -> Result<Vec<GpuKernel>, Diagnostics>,
) -> Result<(Vec<GpuKernel>, NativeCode), Diagnostics> {
    let mut code = None;
    let keep = |made| {
        code = Some(made);
        Ok(())
    };
    let (kernels, done) =
        map_parts(&[host.op().to_bytecode()], |_, host| cpu::object::emit(host, target, objects), kernels, keep);
    let kernels = kernels?;
    done.map(|()| (kernels, code.expect("invariant: the one part was made")))
}

/// The optimised LLVM IR, if requested.
fn listing(job: &Job<'_, '_>, module: &Module, target: &CpuTarget) -> Result<Option<String>, Diagnostics> {
    let is_wanted = job.wants("llvm");
    is_wanted.then(|| cpu::object::listing(module, target, cpu::object::Listing::OptimizedIr)).transpose()
}

fn dump_native(job: &mut Job<'_, '_>, listing: Option<String>, code: &NativeCode) {
    job.dump("llvm", || listing.unwrap_or_default());
    job.dump("object", || code.objects.iter().map(|object| bytes(object)).collect());
}

fn words(spirv: &[u32]) -> String {
    spirv.chunks(8).map(|c| c.iter().map(|w| format!("{w:08x}")).collect::<Vec<_>>().join(" ") + "\n").collect()
}

fn bytes(object: &[u8]) -> String {
    object.chunks(32).map(|c| c.iter().map(|b| format!("{b:02x}")).collect::<String>() + "\n").collect()
}

/// Features and limits of the kernels, from their functions and code.
fn requirements(funcs: &[Op], kernels: &[GpuKernel]) -> Result<GpuRequirements, Diagnostics> {
    let choice = |func: &Op| KernelChoice::decode(|entry| func.attr(attributes::KERNEL)?.field(entry)).ok();
    let assumed = |func: &Op| choice(func)?.subgroup_size;
    let subgroup_size = funcs.iter().find_map(assumed).map(|size| size as u32);
    let mut features: Vec<_> = kernels.iter().flat_map(|k| k.features.iter().copied()).collect();
    features.sort_by_key(|f| format!("{f:?}"));
    features.dedup();
    let max = |f: fn(&GpuKernel) -> u32| kernels.iter().map(f).max().unwrap_or(0);
    let shared = funcs.iter().map(|func| gpu::emit::workgroup_bytes(*func)).collect::<Result<Vec<_>, _>>()?;
    let shared = shared.into_iter().max().unwrap_or(0);
    let limits = GpuLimits {
        max_storage_buffers: max(|k| k.bindings.len() as u32),
        max_binding_bytes: largest_buffer(funcs),
        // wgpu does not check it.
        max_workgroup_storage_bytes: u32::try_from(shared).unwrap_or(u32::MAX),
        max_immediate_bytes: max(GpuKernel::immediate_bytes),
        max_workgroup_invocations: max(|k| k.workgroup_size.iter().product()),
        max_workgroup_size: [max(|k| k.workgroup_size[0]), max(|k| k.workgroup_size[1]), max(|k| k.workgroup_size[2])],
        ..GpuLimits::default()
    };
    Ok(GpuRequirements { features, subgroup_size, limits })
}

/// Bytes of the largest buffer of static size that a kernel binds.
fn largest_buffer(funcs: &[Op]) -> u64 {
    let types = funcs.iter().filter_map(|k| k.function_type()).flat_map(|t| t.0);
    types.filter_map(|t| t.static_size_bytes()).max().unwrap_or(0)
}

fn memory_plan(plan: plan::Report) -> MemoryPlan {
    let transients = plan.transients.into_iter().enumerate().map(|(i, t)| Transient {
        name: if t.location.is_empty() { format!("transient{i}") } else { t.location },
        offset: t.offset_bytes,
        size_bytes: t.size_bytes,
        first: t.first,
        last: t.last,
    });
    MemoryPlan {
        arena_bytes: plan.arena_bytes,
        planned_bytes: plan.arena_bytes,
        lower_bound_bytes: plan.lower_bound_bytes,
        transients: transients.collect(),
    }
}
