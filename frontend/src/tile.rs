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
//! Ensures: every linalg op is inside a forall with `monopour.kernel`, whose loops run from 0 by 1; the
//! first op of a body writes the slice of the shared output, and each later one its predecessor's value; a product whose
//! epilogue has another type writes a tile of its own.
//! Each dispatch is tiled in a function of its own (`isolate.rs`), because upstream's transforms walk all that surrounds it;
//! one that upstream refuses becomes one tile. Dispatches of equal structure are tiled once.

use crate::dispatch::{self, Dispatch, Role};
use crate::effort::Effort;
use crate::fuse::unshare;
use crate::grid::MAX_GRID_RANK;
use crate::isolate::{Border, Isolated};
use crate::kernel::{self, Kernel};
use crate::kernel_cpu;
use crate::target::TargetDescription;
use crate::transforms::{self, Plan, SEQUENCE};
use crate::tuning::{Tunable, Tuning};
use crate::{channel_lanes, grid, isolate, kept_sizes, linalg, padded_inputs, padded_results, rows_tile};
use monopour_contract::{KernelClass, attributes};
use monopour_ir::ops;
use monopour_ir::parallel::{MANY, map_parts};
use monopour_ir::{
    Attr, CANONICALIZE, Context, DYNAMIC, Diagnostic, Diagnostics, InsertionPoint, Module, Op, OpSpec, Rewriter,
    StructuralKey, Type, WalkOrder, apply_named_sequence, run_passes,
};
use std::collections::HashMap;
use tracing::{Level, enabled, trace};

/// Options of [`run`].
#[derive(Debug)]
pub struct TileOptions<'c> {
    /// The target.
    pub target: TargetDescription,
    /// The user's transform script with the sequence `__transform_main`, applied instead of the generated one. Dispatches
    /// that it does not tile are tiled by the generated one.
    pub schedule: Option<Module<'c>>,
    /// Measured choices, for a GPU.
    pub tuning: Option<Tuning>,
    /// What kernels are worth, for a GPU.
    pub effort: Effort,
}

/// Statistics of [`run`].
#[derive(Clone, Debug, Default)]
pub struct TileReport {
    /// The transform scripts, in the order in which they were applied.
    pub scripts: Vec<String>,
    /// Dispatches of distinct structure; each was tiled once.
    pub distinct: usize,
    /// Payload ops that upstream's transforms were given, over all scripts: in proportion to the distinct dispatches.
    pub payload_ops: usize,
    /// The structures of dispatches with the kernels that they may take, each once; empty without [`TileOptions::tuning`].
    pub tunable: Vec<Tunable>,
}

/// Tiles every dispatch.
///
/// # Errors
/// F0009 for a schedule that fails, and what upstream's transforms and passes report.
pub fn run(module: &Module, options: &TileOptions) -> Result<TileReport, Diagnostics> {
    let clone = module.duplicate();
    let mut report = TileReport::default();
    if let Some(schedule) = &options.schedule {
        apply_schedule(&clone, schedule)?;
        report.scripts.push(schedule.op().to_string());
        adopt(&clone, options);
    }
    tile_dispatches(&clone, options, &mut report)?;
    tell_apart(&clone);
    kept_sizes::run(&clone)?;
    run_passes(clone.op(), &format!("builtin.module({CANONICALIZE},cse)"))?;
    finish(&clone)?;
    padded_inputs::run(&clone, &options.target)?;
    if let TargetDescription::Cpu(cpu) = &options.target {
        padded_results::run(&clone)?;
        channel_lanes::run(&clone, &|op| kernel_cpu::channel_lanes(op, cpu).unwrap_or(0))?;
    }
    replace_body(module, clone);
    log(module);
    Ok(report)
}

/// Logs the grid and tile sizes of each dispatch.
fn log(module: &Module) {
    if !enabled!(target: "tile", Level::TRACE) {
        return;
    }
    for forall in module.op().find_all(ops::scf::FORALL) {
        let Some(kernel) = forall.attr(attributes::KERNEL) else { continue };
        let grid = forall.attr("staticUpperBound").and_then(|a| a.as_ints()).unwrap_or_default();
        let extent = |n: &i64| if *n == DYNAMIC { "?".to_owned() } else { n.to_string() };
        let grid: Vec<String> = grid.iter().map(extent).collect();
        trace!(target: "tile", "{}: {} tiles, {kernel}", forall.location(), grid.join("x"));
    }
}

/// Numbers the foralls, so that CSE does not compare the bodies of those with equal operands.
fn tell_apart(module: &Module) {
    let mut rw = Rewriter::new(module.context());
    for (number, forall) in module.op().find_all(ops::scf::FORALL).into_iter().enumerate() {
        rw.set_attr(forall, attributes::DISPATCH, Attr::i64(module.context(), number as i64));
    }
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

/// Makes a user's forall without `monopour.kernel` a dispatch of class generic.
fn adopt(module: &Module, options: &TileOptions) {
    let mut rw = Rewriter::new(module.context());
    for forall in module.op().find_all(ops::scf::FORALL) {
        let nested = forall.ancestor(ops::scf::FORALL).is_some();
        if !nested && forall.attr(attributes::KERNEL).is_none() {
            rw.set_attr(forall, attributes::KERNEL, generic_kernel(forall, options).to_attr(module.context()));
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

fn tile_dispatches<'c>(
    module: &'c Module<'c>,
    options: &TileOptions<'c>,
    report: &mut TileReport,
) -> Result<(), Diagnostics> {
    let rw = &mut Rewriter::new(module.context());
    let dispatches = dispatch::collect(module);
    let mut distinct = Distinct::default();
    let mut ways = vec![];
    for dispatch in &dispatches {
        ways.push(match linalg::loops(dispatch.root) {
            Some(loops) if matches!(dispatch.class(), KernelClass::Row | KernelClass::Attention) => {
                Way::Rows(tuned(dispatch, &loops, (options, report), rw)?, loops)
            }
            // Upstream fuses one result of a producer.
            Some(loops) if dispatch.contraction().is_some_and(|op| op.num_results() > 1) => {
                Way::Rows(tuned(dispatch, &loops, (options, report), rw)?, loops)
            }
            Some(loops) if loops.tileable.contains(&true) => {
                let chosen = tuned(dispatch, &loops, (options, report), rw)?;
                let isolated = Isolated::of(dispatch, rw)?;
                Way::Cut(
                    distinct.add(isolated.key(), isolated.module, || plan(dispatch, chosen, &loops, options)),
                    isolated.border,
                )
            }
            // No loop can be tiled: one tile.
            _ => Way::Whole,
        });
    }
    let tiled = distinct.cut(module.context())?;
    for (dispatch, way) in dispatches.iter().zip(ways) {
        match way {
            Way::Rows(chosen, loops) => rows(dispatch, chosen, &loops, options, rw)?,
            Way::Whole => whole(dispatch, options, rw, "none of its loops can be tiled")?,
            Way::Cut(index, border) => match &tiled[index].module {
                Some(body) => isolate::splice(body, dispatch, &border, rw),
                None => whole(dispatch, options, rw, "upstream's transforms refuse to tile it")?,
            },
        }
    }
    report.distinct = tiled.len();
    report.scripts.extend(tiled.iter().flat_map(|t| t.scripts.iter().cloned()));
    report.payload_ops = tiled.iter().map(|t| t.payload_ops).sum();
    Ok(())
}

/// How a dispatch is tiled.
enum Way<'c> {
    /// As a row group, by this kernel if one was chosen before.
    Rows(Option<Kernel>, linalg::Loops),
    /// By upstream's transforms: the index of its structure.
    Cut(usize, Border<'c>),
    /// Not at all.
    Whole,
}

/// Functions of one dispatch each, by structure.
#[derive(Default)]
struct Distinct<'c> {
    numbers: HashMap<StructuralKey, usize>,
    functions: Vec<(Module<'c>, Plan)>,
}

impl<'c> Distinct<'c> {
    /// The index of the dispatch's structure.
    fn add(&mut self, key: StructuralKey, module: Module<'c>, plan: impl FnOnce() -> Plan) -> usize {
        *self.numbers.entry(key).or_insert_with(|| {
            self.functions.push((module, plan()));
            self.functions.len() - 1
        })
    }

    /// Tiles each function, in parallel where there are many.
    fn cut(self, cx: Context<'c>) -> Result<Vec<Tiled<'c>>, Diagnostics> {
        if self.functions.len() < MANY {
            return self.functions.into_iter().map(|(module, plan)| Tiled::of(module, &plan)).collect();
        }
        let (modules, plans): (Vec<Module>, Vec<Plan>) = self.functions.into_iter().unzip();
        let parts: Vec<Vec<u8>> = modules.into_iter().map(|module| module.op().to_bytecode()).collect();
        let work = |index: usize, part: &Module| {
            let tiled = Tiled::of(part.duplicate(), &plans[index])?;
            Ok((tiled.module.map(|module| module.op().to_bytecode()), tiled.scripts, tiled.payload_ops))
        };
        let mut all = vec![];
        let take = |(bytes, scripts, payload_ops): (Option<Vec<u8>>, _, _)| {
            let module = bytes.map(|bytes| Module::from_bytecode(cx, &bytes)).transpose()?;
            all.push(Tiled { module, scripts, payload_ops });
            Ok(())
        };
        map_parts(&parts, work, || (), take).1?;
        Ok(all)
    }
}

/// A function of one tiled dispatch.
#[derive(Default)]
struct Tiled<'c> {
    /// `None` where upstream refuses to tile.
    module: Option<Module<'c>>,
    scripts: Vec<String>,
    payload_ops: usize,
}

impl<'c> Tiled<'c> {
    /// Tiles the dispatch of `module`.
    fn of(module: Module<'c>, plan: &Plan) -> Result<Self, Diagnostics> {
        let mut tiled = Self::default();
        tiled.module = tiled.cut(module, plan)?;
        Ok(tiled)
    }

    fn cut(&mut self, module: Module<'c>, plan: &Plan) -> Result<Option<Module<'c>>, Diagnostics> {
        let plans = std::slice::from_ref(plan);
        if !self.apply(&module, transforms::tiling(module.context(), plans)) {
            return Ok(None);
        }
        grid::merge(&module, &mut Rewriter::new(module.context()))?;
        run_passes(module.op(), &format!("builtin.module({CANONICALIZE},cse)"))?;
        Ok(Some(module))
    }

    /// Applies a script, and keeps its text; false where upstream refuses.
    fn apply(&mut self, module: &Module<'c>, script: String) -> bool {
        module.op().walk(WalkOrder::Pre, |_| self.payload_ops += 1);
        let done = apply_text(module, &script).is_ok();
        if done {
            self.scripts.push(script);
        }
        done
    }
}

/// The whole dispatch as one tile of class generic.
fn whole<'c>(
    dispatch: &Dispatch<'c>,
    options: &TileOptions<'c>,
    rw: &mut Rewriter<'c>,
    why: &str,
) -> Result<(), Diagnostics> {
    trace!(target: "tile", "{}: one tile: {why}", dispatch.root.location());
    let kernel = Kernel::generic(1, fallback_invocations(options)).to_attr(dispatch.root.context());
    rows_tile::run(dispatch, &[], kernel, rw).map(|_| ())
}

/// A row group as tiles of rows.
fn rows<'c>(
    dispatch: &Dispatch<'c>,
    chosen: Option<Kernel>,
    loops: &linalg::Loops,
    options: &TileOptions<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<(), Diagnostics> {
    let mut kernel = chosen.unwrap_or_else(|| choose(dispatch, loops, options));
    if dispatch.class() == KernelClass::Contraction {
        // Whole loops are one tile.
        let sizes = kernel.tile.iter().zip(&loops.extents).zip(&loops.tileable).filter(|(_, can)| **can);
        let sizes = sizes.map(|((size, extent), _)| if *size == 0 { linalg::known(*extent) } else { *size }).collect();
        kernel = kernel.over(sizes);
    }
    let tile = kernel.tile.clone();
    let merged = (tile.len() + 1).saturating_sub(MAX_GRID_RANK);
    if merged > 1 && !grid::may_merge(&loops.extents[..merged]) {
        return whole(dispatch, options, rw, "loops of unknown extent would have to be merged into one");
    }
    // A grid has a dimension also where there is a single row.
    let kernel = if tile.is_empty() { kernel.over(vec![1]) } else { kernel };
    rows_tile::run(dispatch, &tile, kernel.to_attr(dispatch.root.context()), rw).map(|_| ())
}

fn plan(dispatch: &Dispatch, chosen: Option<Kernel>, loops: &linalg::Loops, options: &TileOptions) -> Plan {
    let kernel = chosen.unwrap_or_else(|| choose(dispatch, loops, options));
    let mut fused = vec![];
    fused.extend(dispatch.find(Role::Producer).map(|_| Role::Producer.as_str()));
    fused.extend(dispatch.find(Role::Init).map(|_| Role::Init.as_str()));
    Plan { number: dispatch.number, fused, kernel }
}

/// The kernel by measurement; notes those that the dispatch may take. `None` where nothing is measured.
fn tuned<'c>(
    dispatch: &Dispatch<'c>,
    loops: &linalg::Loops,
    (options, report): (&TileOptions, &mut TileReport),
    rw: &mut Rewriter<'c>,
) -> Result<Option<Kernel>, Diagnostics> {
    let Some(tuning) = &options.tuning else { return Ok(None) };
    let (kernel, tunable) = tuning.choose(dispatch, loops, options.effort, rw)?;
    if report.tunable.iter().all(|known| known.key != tunable.key) {
        report.tunable.push(tunable);
    }
    Ok(Some(kernel))
}

fn choose(dispatch: &Dispatch, loops: &linalg::Loops, options: &TileOptions) -> Kernel {
    match &options.target {
        TargetDescription::Gpu(gpu) => kernel::for_gpu(dispatch, loops, gpu, options.effort.deviation(dispatch, gpu)),
        TargetDescription::Cpu(cpu) => kernel_cpu::choose(dispatch, loops, cpu),
    }
}

fn apply_text(module: &Module, text: &str) -> Result<(), Diagnostics> {
    let script = Module::parse(module.context(), text.as_bytes(), "<generated schedule>")?;
    apply_named_sequence(module.op(), &script, SEQUENCE)
}

/// Removes markers, gives each use its own destination again after the last cse, and restores whole slices.
fn finish(module: &Module) -> Result<(), Diagnostics> {
    let mut rw = Rewriter::new(module.context());
    unshare(module, &mut rw);
    own_tiles(module, &mut rw)?;
    for op in module.op().nested(WalkOrder::Pre) {
        for name in [attributes::DISPATCH, attributes::ROLE, attributes::MEMBER, attributes::UNFOLDED] {
            if op.attr(name).is_some() {
                rw.remove_attr(op, name);
            }
        }
    }
    crate::whole_slices::run(module, &mut rw)
}

/// Makes tiles of an empty tensor tensors of their own: the result of a product whose epilogue has another type.
fn own_tiles<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    for slice in module.op().find_all(ops::tensor::EXTRACT_SLICE) {
        let Some(whole) = slice.operand(0).defining_op().filter(|op| op.is(ops::tensor::EMPTY)) else { continue };
        let ty = slice.result(0).ty();
        let rank = |ty: Type| ty.shape().map(|shape| shape.len());
        if slice.ancestor(ops::scf::FORALL).is_none() || rank(ty) != rank(slice.operand(0).ty()) {
            continue;
        }
        let open = |name| slice.attr(name).and_then(|a| a.as_ints()).unwrap_or_default();
        let count = |name| open(name).into_iter().filter(|size| *size == DYNAMIC).count();
        let first = 1 + count("static_offsets");
        let sizes = &slice.operands()[first..first + count("static_sizes")];
        rw.set_point(InsertionPoint::Before(slice));
        let tile = rw.create(OpSpec::new(ops::tensor::EMPTY, slice.location()).operands(sizes).results(&[ty]))?;
        rw.replace_op(slice, &[tile.result(0)]);
        if whole.result(0).is_unused() {
            rw.erase(whole);
        }
    }
    Ok(())
}

fn replace_body<'c>(module: &'c Module<'c>, tiled: Module<'c>) {
    let mut rw = Rewriter::new(module.context());
    for op in module.body().ops() {
        rw.erase(op);
    }
    rw.absorb(tiled, module.body());
}
