//! One `scf.forall` over workgroup or task tiles per dispatch, by a generated transform script.
//!
//! Before / after:
//!
//! ```text
//! %f = linalg.fill ... outs(%e)                    %r = scf.forall (%i, %j) in (4, 16) shared_outs(%o = %e) {
//! %m = linalg.matmul ins(%x, %w) outs(%f)            %os = tensor.extract_slice %o[%i * 16, %j * 64] [16, 64] [1, 1]
//! %r = linalg.generic ins(%b) outs(%m)               %f = linalg.fill ... outs(%os)
//!                                                    %m = linalg.matmul ins(%xs, %ws) outs(%f)
//!                                                    %g = linalg.generic ins(%bs) outs(%m)
//!                                                    tensor.parallel_insert_slice %g into %o[...]
//!                                                  } {monopour.kernel = {class = "contraction", ...}}
//! ```
//!
//! Requires: what [`crate::fuse`] ensures.
//! Ensures: every linalg op is inside a forall with `monopour.kernel`, whose loops run from 0 by 1 over static trip counts; the
//! first op of a body writes the slice of the shared output, and each later one its predecessor's value.
//! The scripts run on a clone: one that fails leaves the module as it was.

use crate::dispatch::{self, Class, Dispatch, Role};
use crate::fuse::{DISPATCH, MEMBER, ROLE, unshare};
use crate::kernel::{self, Kernel, MAX_GRID_RANK};
use crate::kernel_cpu::{self, Inner};
use crate::transforms::{self, Plan, SEQUENCE, VECTORIZE};
use crate::{grid, linalg, pack, rows_tile};
use monopour_ir::{
    Attr, CANONICALIZE, DYNAMIC, Diagnostic, Diagnostics, Module, Op, Rewriter, Value, WalkOrder, apply_named_sequence,
    run_passes,
};
use monopour_program::{CpuTarget, GpuDescription};
use std::collections::HashSet;

/// What is compiled for.
#[derive(Clone, Debug)]
pub enum TargetDescription {
    /// A GPU through wgpu.
    Gpu(GpuDescription),
    /// Native code on a CPU.
    Cpu(CpuTarget),
}

/// Options of [`run`].
#[derive(Debug)]
pub struct TileOptions {
    /// What is compiled for.
    pub target: TargetDescription,
    /// A transform script of the user's, with the sequence `__transform_main`, applied instead of the generated one. Dispatches
    /// that it leaves alone are tiled by the generated one.
    pub schedule: Option<Module>,
}

/// What [`run`] did.
#[derive(Clone, Debug, Default)]
pub struct TileReport {
    /// The transform scripts, in the order in which they were applied.
    pub scripts: Vec<String>,
}

/// Tiles every dispatch.
///
/// # Errors
/// F0009 for a schedule that fails, and what upstream's transforms and passes report.
pub fn run(module: &Module, options: &TileOptions) -> Result<TileReport, Diagnostics> {
    let clone = module.duplicate();
    let mut report = TileReport::default();
    let mut rw = Rewriter::new(module.context());
    if let Some(schedule) = &options.schedule {
        apply_schedule(&clone, schedule)?;
        report.scripts.push(schedule.op().to_string());
        adopt(&clone, options, &mut rw);
    }
    tile_dispatches(&clone, options, &mut report, &mut rw)?;
    run_passes(clone.op(), &format!("builtin.module({CANONICALIZE},cse)"))?;
    finish(&clone, &mut rw);
    crate::whole_slices::run(&clone, &mut rw)?;
    replace_body(module, &clone, &mut rw);
    Ok(report)
}

fn apply_schedule(module: &Module, schedule: &Module) -> Result<(), Diagnostics> {
    apply_named_sequence(module.op(), schedule, SEQUENCE).map_err(|inner| {
        let mut error = Diagnostic::global("F0009", "the schedule cannot be applied");
        error.notes = inner.0.iter().map(|d| format!("{}: {}", d.location, d.message)).collect();
        let help =
            format!("a schedule is a module with `transform.named_sequence @{SEQUENCE}(%module: !transform.any_op)`");
        error.with_help(help).into()
    })
}

/// A user's forall without `monopour.kernel` becomes a dispatch of the class that always works.
fn adopt(module: &Module, options: &TileOptions, rw: &mut Rewriter) {
    for forall in module.op().find_all("scf.forall") {
        let nested = forall.ancestor("scf.forall").is_some();
        if !nested && forall.attr("monopour.kernel").is_none() {
            rw.set_attr(forall, "monopour.kernel", generic_kernel(forall, options).to_attr(module.context()));
        }
    }
}

fn generic_kernel(forall: Op, options: &TileOptions) -> Kernel {
    let rank = forall.attr("staticUpperBound").and_then(|a| a.as_ints()).map_or(1, |bounds| bounds.len());
    Kernel::generic(rank, fallback_invocations(options))
}

/// Invocations per workgroup of the fallback loop nest.
fn fallback_invocations(options: &TileOptions) -> i32 {
    if matches!(options.target, TargetDescription::Gpu(_)) { 64 } else { 1 }
}

fn tile_dispatches(
    module: &Module,
    options: &TileOptions,
    report: &mut TileReport,
    rw: &mut Rewriter,
) -> Result<(), Diagnostics> {
    let mut plans = vec![];
    for dispatch in dispatch::collect(module) {
        match linalg::loops(dispatch.root) {
            Some(loops) if dispatch.class() == Class::Row => rows(&dispatch, &loops, options, rw)?,
            Some(loops) if loops.tileable.contains(&true) => plans.push(plan(&dispatch, &loops, options)),
            // Nothing to cut: one tile.
            _ => whole(&dispatch, options, rw)?,
        }
    }
    if plans.is_empty() {
        return Ok(());
    }
    cut(module, &plans, options, report, rw)?;
    grid::merge(module, rw)?;
    run_passes(module.op(), &format!("builtin.module({CANONICALIZE},cse)"))?;
    pack::run(blocked_products(module, &plans), rw)?;
    let marked = mark_vectors(module, &plans, rw);
    plans.retain(|plan| marked.contains(&plan.number));
    vectorize(module, &plans, report, rw)
}

/// The matrix products whose reduction is cut into blocks.
fn blocked_products(module: &Module, plans: &[Plan]) -> Vec<Op> {
    let is_blocked = |plan: &&Plan| matches!(plan.inner, Inner::Contraction { block: Some(_), .. });
    let numbers: HashSet<i64> = plans.iter().filter(is_blocked).map(|plan| plan.number).collect();
    let products = module.op().find_all("linalg.matmul").into_iter();
    products.filter(|op| op.attr(DISPATCH).and_then(|a| a.as_int()).is_some_and(|n| numbers.contains(&n))).collect()
}

/// The whole dispatch as one tile of the class that always works.
fn whole(dispatch: &Dispatch, options: &TileOptions, rw: &mut Rewriter) -> Result<(), Diagnostics> {
    let kernel = Kernel::generic(1, fallback_invocations(options)).to_attr(dispatch.root.context());
    rows_tile::run(dispatch, &[], kernel, rw).map(|_| ())
}

/// A row group as tiles of rows.
fn rows(
    dispatch: &Dispatch,
    loops: &linalg::Loops,
    options: &TileOptions,
    rw: &mut Rewriter,
) -> Result<(), Diagnostics> {
    let (mut kernel, _) = choose(dispatch, loops, options);
    let tile = std::mem::take(&mut kernel.tile);
    // The first loops of more than a grid has become one, which needs their extents.
    let merged = (tile.len() + 1).saturating_sub(MAX_GRID_RANK);
    if merged > 1 && loops.extents[..merged].contains(&DYNAMIC) {
        return whole(dispatch, options, rw);
    }
    kernel.tile = if tile.is_empty() { vec![1] } else { tile.clone() };
    rows_tile::run(dispatch, &tile, kernel.to_attr(dispatch.root.context()), rw).map(|_| ())
}

/// Cuts all dispatches at once; where upstream refuses one, one after the other, and the refused ones become one tile each.
fn cut(
    module: &Module,
    plans: &[Plan],
    options: &TileOptions,
    report: &mut TileReport,
    rw: &mut Rewriter,
) -> Result<(), Diagnostics> {
    let clone = module.duplicate();
    let text = transforms::tiling(module.context(), plans);
    match apply_text(&clone, &text) {
        Ok(()) => {
            replace_body(module, &clone, rw);
            report.scripts.push(text);
        }
        Err(_) if plans.len() > 1 => {
            for plan in plans {
                cut(module, std::slice::from_ref(plan), options, report, rw)?;
            }
        }
        Err(_) => {
            let refused = dispatch::collect(module).into_iter().find(|d| d.number == plans[0].number);
            whole(&refused.expect("invariant: the failed script ran on a clone"), options, rw)?;
        }
    }
    Ok(())
}

/// Vectorises all at once; where upstream refuses an op, one dispatch after the other, and the refused ones stay scalar loops.
fn vectorize(module: &Module, plans: &[Plan], report: &mut TileReport, rw: &mut Rewriter) -> Result<(), Diagnostics> {
    if plans.is_empty() {
        return Ok(());
    }
    let clone = module.duplicate();
    let text = transforms::vectorizing(module.context(), plans);
    match apply_text(&clone, &text) {
        Ok(()) => {
            replace_body(module, &clone, rw);
            report.scripts.push(text);
        }
        Err(_) if plans.len() > 1 => {
            for plan in plans {
                vectorize(module, std::slice::from_ref(plan), report, rw)?;
            }
        }
        Err(_) => {}
    }
    Ok(())
}

fn plan(dispatch: &Dispatch, loops: &linalg::Loops, options: &TileOptions) -> Plan {
    let (kernel, inner) = choose(dispatch, loops, options);
    let mut fused = vec![];
    fused.extend(dispatch.find(Role::Producer).map(|_| Role::Producer.as_str()));
    fused.extend(dispatch.find(Role::Init).map(|_| Role::Init.as_str()));
    let extent = |(tile, extent): (&i64, &i64)| match (*tile, *extent) {
        (0, extent) => Some(extent).filter(|e| *e != DYNAMIC),
        (tile, extent) => (extent != DYNAMIC && extent % tile == 0).then_some(tile),
    };
    let task = kernel.tile.iter().zip(&loops.extents).map(extent).collect();
    let reduction = dispatch.matmul().and_then(linalg::matmul_reduction).unwrap_or(1);
    Plan { number: dispatch.number, fused, kernel, inner, task, reduction }
}

/// Marks the ops of tiles that become vectors: static shapes, elements that lie in vectors as in memory. Returns the numbers of
/// the dispatches that have any.
fn mark_vectors(module: &Module, plans: &[Plan], rw: &mut Rewriter) -> HashSet<i64> {
    let vectors = plans.iter().filter(|p| p.inner != Inner::Plain).map(|p| p.number).collect::<HashSet<_>>();
    let mut marked = HashSet::new();
    for op in module.op().nested(WalkOrder::Pre).into_iter().filter(|op| linalg::is_structured(*op)) {
        let number = op.attr(DISPATCH).and_then(|a| a.as_int()).filter(|n| vectors.contains(n));
        let Some(number) = number else { continue };
        let is_static = |v: &Value| !v.ty().shape().is_some_and(|shape| shape.contains(&DYNAMIC));
        if op.operands().iter().all(is_static) && kernel_cpu::can_vectorize(op) {
            rw.set_attr(op, VECTORIZE, Attr::unit(module.context()));
            marked.insert(number);
        }
    }
    marked
}

fn choose(dispatch: &Dispatch, loops: &linalg::Loops, options: &TileOptions) -> (Kernel, Inner) {
    match &options.target {
        TargetDescription::Gpu(gpu) => (kernel::for_gpu(dispatch, loops, gpu), Inner::Plain),
        TargetDescription::Cpu(cpu) => kernel_cpu::choose(dispatch, loops, cpu),
    }
}

fn apply_text(module: &Module, text: &str) -> Result<(), Diagnostics> {
    let script = Module::parse(module.context(), text.as_bytes(), "<generated schedule>")?;
    apply_named_sequence(module.op(), &script, SEQUENCE)
}

/// Markers go, and shared destinations are split again after the last cse.
fn finish(module: &Module, rw: &mut Rewriter) {
    unshare(module, rw);
    for op in module.op().nested(WalkOrder::Pre) {
        for name in [DISPATCH, ROLE, MEMBER, VECTORIZE] {
            if op.attr(name).is_some() {
                rw.remove_attr(op, name);
            }
        }
    }
}

fn replace_body(module: &Module, tiled: &Module, rw: &mut Rewriter) {
    for op in module.body().ops() {
        rw.erase(op);
    }
    for op in tiled.body().ops() {
        rw.move_to_end(op, module.body());
    }
}
