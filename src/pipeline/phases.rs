//! The phases, in order: each takes the stage before it and returns the next.

use super::stages::{Model, OnMemrefs, OnTensors, Outlined, Planned, Scheduled, Source, Tiled};
use super::{Job, constants, copies, signature};
use crate::options::{Strategy, TargetDescription};
use monopour_bufferize::{
    Options, Stats, Strategy as Footprints, eliminate_empty_tensors, improve, order_dispatches, run_one_shot,
};
use monopour_contract::attributes;
use monopour_frontend as frontend;
use monopour_frontend::tuning::Tuning;
use monopour_ir::{Attr, CANONICALIZE, Context, Diagnostics, Module, Op, Rewriter, ops, run_passes};
use monopour_program::CopyNote;
use monopour_split as split;
use std::path::Path;

pub(super) use super::emit::emit;

pub(super) fn import<'c>(job: &mut Job<'c, '_>, source: Source<'_>) -> Result<OnTensors<'c>, Diagnostics> {
    let options = frontend::import::ImportOptions {
        entry: job.options.entry.clone(),
        weights: job.options.weights.clone(),
        donate: job.options.donate.clone(),
        dims: job.options.dims.clone(),
        ..frontend::ImportOptions::default()
    };
    let imported = match source {
        Source::Mlir { bytes, file } => frontend::import::run(job.cx, bytes, file, &options)?,
        Source::Mapped { map, file } => frontend::import::run_mapped(job.cx, map, file, &options)?,
        Source::Onnx(model) => frontend::import::run_onnx(job.cx, model, &options)?,
        Source::Constants { bytecode, weights } => return constants::import(job.cx, bytecode, weights.clone()),
    };
    let host = imported.module.symbol(&imported.entry).expect("the entry is a function of the module");
    let signature = signature::of(host, imported.sizes)?;
    let mut model = Model { module: imported.module, entry: imported.entry, signature, weights: imported.weights };
    constants::compute(&mut model, job.options)?;
    Ok(OnTensors { model })
}

pub(super) fn fuse<'c>(job: &mut Job<'c, '_>, mut stage: OnTensors<'c>) -> Result<OnTensors<'c>, Diagnostics> {
    if let TargetDescription::Cpu(cpu) = job.target {
        frontend::narrow::run(&stage.model.module, &mut stage.model.weights, cpu)?;
        frontend::layouts::run(&stage.model.module, &mut stage.model.weights, cpu)?;
        frontend::grouped::run(&stage.model.module, &mut stage.model.weights, cpu)?;
        frontend::unfold::run(&stage.model.module, cpu)?;
        frontend::widen::run(&stage.model.module, &mut stage.model.weights)?;
    }
    let gpu = if let TargetDescription::Gpu(gpu) = job.target { Some(gpu) } else { None };
    if let Some(gpu) = gpu {
        frontend::layouts::run_on_gpu(&stage.model.module, &mut stage.model.weights, gpu)?;
    }
    if job.options.rounded_rows {
        frontend::quantised_rows::allow(&stage.model.module);
    }
    frontend::fuse::run_for(&stage.model.module, Some(job.target))?;
    if let TargetDescription::Cpu(cpu) = job.target {
        frontend::collapse_lines::run(&stage.model.module, cpu)?;
    }
    frontend::attention::run(&stage.model.module, job.target)?;
    if let TargetDescription::Gpu(gpu) = job.target {
        frontend::collapse_lines::run_on_gpu(&stage.model.module, gpu)?;
    }
    if let TargetDescription::Cpu(cpu) = job.target {
        frontend::ragged_columns::run(&stage.model.module, cpu)?;
        frontend::panels::run(&stage.model.module, &mut stage.model.weights, cpu)?;
    }
    Ok(stage)
}

pub(super) fn tile<'c>(job: &mut Job<'c, '_>, OnTensors { model }: OnTensors<'c>) -> Result<Tiled<'c>, Diagnostics> {
    let schedule = job.options.schedule.as_ref().map(|path| read_schedule(job.cx, path)).transpose()?;
    let is_measured = |tuning: &&Tuning| matches!(job.target, TargetDescription::Gpu(gpu) if *gpu == tuning.device);
    let tuning = job.options.tuning.as_ref().filter(is_measured).cloned();
    let effort = job.options.effort;
    let options = frontend::TileOptions { target: job.target.clone(), schedule, tuning, effort };
    if let TargetDescription::Gpu(description) = job.target {
        frontend::windows::run(&model.module, description)?;
    }
    let tiled = frontend::tile::run(&model.module, &options)?;
    for script in tiled.scripts {
        job.dump("transforms", || script);
    }
    job.report.tunable.extend(tiled.tunable);
    Ok(Tiled { model })
}

fn read_schedule<'c>(cx: Context<'c>, path: &Path) -> Result<Module<'c>, Diagnostics> {
    let source = super::read(path)?;
    Module::parse(cx, &source, &path.display().to_string())
}

pub(super) fn place<'c>(job: &mut Job<'c, '_>, stage: Tiled<'c>) -> Result<Tiled<'c>, Diagnostics> {
    frontend::place::run(&stage.model.module, job.target)?;
    frontend::borders::run(&stage.model.module);
    Ok(stage)
}

pub(super) fn bufferize<'c>(job: &mut Job<'c, '_>, Tiled { model }: Tiled<'c>) -> Result<OnMemrefs<'c>, Diagnostics> {
    let root = model.module.op();
    let strategy = job.options.strategy;
    let options = Options {
        use_encoding_for_memory_space: job.is_gpu(),
        copy_before_write: strategy == Strategy::CopyBeforeWrite,
        strategy: match strategy {
            Strategy::Minimal => Footprints::Minimal,
            _ => Footprints::Greedy,
        },
        ..Options::pipeline()
    };
    let mut inserted = vec![];
    let stats = match strategy {
        Strategy::Upstream => {
            upstreams_bufferization(model.host(), root, &options)?;
            Stats::default()
        }
        Strategy::CopyBeforeWrite => run_one_shot(root, &options)?,
        Strategy::Greedy => {
            eliminate_empty_tensors(root, &options)?;
            run_one_shot(root, &options)?
        }
        Strategy::Minimal => {
            order_dispatches(root, &options);
            let improved = improve(root, &options)?;
            inserted = note_copies(job, improved.remarks, &improved.remark_bytes);
            run_one_shot(root, &options)?
        }
    };
    job.report.in_place += stats.in_place as usize;
    job.report.out_of_place += stats.out_of_place as usize;
    inserted.extend(note_copies(job, stats.remarks, &stats.remark_bytes));
    // Subviews of one slice become one value, and a copy of a slice to itself folds away.
    run_passes(root, &format!("builtin.module({CANONICALIZE},cse,{CANONICALIZE})"))?;
    Ok(OnMemrefs { model, inserted })
}

/// Upstream's passes, under the same rules for the entry's arguments.
fn upstreams_bufferization(host: Op, root: Op, options: &Options) -> Result<(), Diagnostics> {
    let cx = root.context();
    let mut rw = Rewriter::new(cx);
    let given = host.attr("arg_attrs").and_then(|attrs| attrs.as_array()).unwrap_or_default();
    let writable = |i: usize| {
        let own = given.get(i).copied();
        let donated = own.is_some_and(|attrs| attrs.get(attributes::DONATE).is_some());
        let mut entries: Vec<(&str, Attr)> = vec![];
        if donated {
            entries.push((attributes::DONATE, Attr::unit(cx)));
        }
        entries.push((ops::attributes::bufferization::WRITABLE, Attr::bool(cx, donated)));
        Attr::dict(cx, &entries)
    };
    let count = host.body().map_or(0, |body| body.args().len());
    let attrs: Vec<Attr> = (0..count).map(writable).collect();
    rw.set_attr(host, "arg_attrs", Attr::array(cx, &attrs));
    let in_spaces = options.use_encoding_for_memory_space;
    let passes = format!(
        "builtin.module(eliminate-empty-tensors,one-shot-bufferize{{allow-return-allocs-from-loops \
         bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map \
         use-encoding-for-memory-space={in_spaces}}})"
    );
    run_passes(root, &passes)
}

/// Every copy that a phase inserted, with its reason; a new buffer without contents is not one.
fn note_copies(job: &mut Job<'_, '_>, remarks: Diagnostics, bytes: &[Option<u64>]) -> Vec<CopyNote> {
    let inserted = copies::inserted(&remarks, bytes);
    job.report.remarks.0.extend(remarks.0);
    inserted
}

pub(super) fn dealloc<'c>(job: &mut Job<'c, '_>, mut stage: OnMemrefs<'c>) -> Result<OnMemrefs<'c>, Diagnostics> {
    let root = stage.model.module.op();
    let options = monopour_dealloc::Options { extensions: true, ..Default::default() };
    let stats = monopour_dealloc::run_ownership(root, &options)?;
    stage.inserted.extend(note_copies(job, stats.remarks, &stats.remark_bytes));
    if !job.is_gpu() {
        monopour_dealloc::promote::run(root)?;
    }
    Ok(stage)
}

pub(super) fn outline<'c>(job: &mut Job<'c, '_>, stage: OnMemrefs<'c>) -> Result<Outlined<'c>, Diagnostics> {
    let OnMemrefs { model, inserted } = stage;
    let most_binding_bytes = match job.target {
        TargetDescription::Gpu(description) => description.limits.max_binding_bytes,
        TargetDescription::Cpu(_) => u64::MAX,
    };
    split::borders::run(model.host(), !job.is_gpu());
    split::outline::run_for(&model.module, most_binding_bytes)?;
    if job.is_gpu() {
        split::twins::run(&model.module)?;
    }
    job.report.measured.extend(measured(&model.module));
    let kernel_copies = split::copies::of_kernels(&model.module);
    let kernel_ops = split::sources::of_kernels(&model.module);
    Ok(Outlined { model, inserted, kernel_copies, kernel_ops })
}

/// The names of the kernels that are measured, and of their structures.
fn measured(module: &Module) -> Vec<(String, String)> {
    let named = module.functions().into_iter().filter_map(|function| {
        let choice = function.attr(attributes::KERNEL)?;
        Some((function.symbol_name()?, choice.field("measured_as")?.text()?.to_owned()))
    });
    named.collect()
}

pub(super) fn distribute<'c>(job: &mut Job<'c, '_>, stage: Outlined<'c>) -> Result<Outlined<'c>, Diagnostics> {
    if let TargetDescription::Gpu(description) = job.target {
        let module = &stage.model.module;
        let report = monopour_codegen_gpu::distribute::run(module, description)?;
        job.report.remarks.0.extend(report.remarks(module).0);
    }
    Ok(stage)
}

pub(super) fn plan<'c>(job: &mut Job<'c, '_>, stage: Outlined<'c>) -> Result<Planned<'c>, Diagnostics> {
    let Outlined { model, inserted, kernel_copies, kernel_ops } = stage;
    let mut lives = split::lives::run(&model.module, model.host(), &model.signature);
    let most_bytes = match job.target {
        TargetDescription::Gpu(description) => description.limits.max_buffer_bytes,
        TargetDescription::Cpu(_) => u64::MAX,
    };
    let plan = split::plan::run(&model.module, model.host(), most_bytes, job.options.poison)?;
    split::lives::place(&mut lives, &plan);
    let pooled = split::plan::pooled(model.host());
    let sites = split::copies::of_host(&model.module, model.host(), &kernel_copies, job.is_gpu());
    let copies = copies::explained(&sites, inserted);
    Ok(Planned { model, copies, plan, pooled, lives, kernel_ops })
}

pub(super) fn schedule<'c>(job: &mut Job<'c, '_>, planned: Planned<'c>) -> Result<Scheduled<'c>, Diagnostics> {
    let model = &planned.model;
    let weights = |name: &str| model.weights.get(name).map(frontend::Weight::data);
    let known = split::constants::Known::of(&model.module, job.known_constants, &weights);
    let schedule = split::schedule::run(&model.module, model.host(), known, job.options.poison)?;
    Ok(Scheduled { planned, schedule })
}
