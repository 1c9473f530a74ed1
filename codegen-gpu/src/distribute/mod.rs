//! Spread each kernel's tile over the invocations of a workgroup.
//!
//! Before (the body is a list of linalg ops on slices; `%i`, `%j` are the tile ids):
//! ```mlir
//! func.func private @main_dispatch_0(%a: memref<64x784xf32, #g>, %b: memref<784x1024xf32, #g>, %c: memref<64x1024xf32, #g>, %i: index, %j: index)
//!     attributes {monopour.kernel = {class = "contraction", workgroup_size = array<i32: 8, 1, 1>, ..}} { .. linalg.matmul .. }
//! ```
//! After (code of one invocation; tile ids are `gpu.block_id`, the innermost dimension of the forall is x):
//! ```mlir
//! func.func private @main_dispatch_0(%a: memref<50176xf32, #g> {monopour.access = "read"}, .., %c: memref<65536xf32, #g> {monopour.access = "write"})
//!     attributes {monopour.workgroup_size = array<i32: 8, 1, 1>, ..} { .. vector.load .. scf.for .. gpu.shuffle .. vector.store .. }
//! ```
//! Requires: outlined kernels, whose arguments are buffers (static and contiguous, or the base of a `memref.reinterpret_cast`),
//! scalars, and `monopour.grid_rank` tile ids.
//! Ensures: the op set of [`crate::emit`]; buffer arguments have rank 1, unknown extents are dynamic; every argument is accessed
//! with one lane count; calls lose their tile ids and reshape their buffers in front of the forall. A kernel may have grown
//! arguments: scratch after the buffers, which is allocated before the forall and freed after it, and the dynamic extents of
//! its grid at the end. A kernel with `monopour.linear_grid` numbers its workgroups through (`monopour_program::fold_grid`).
//! Limits: bodies that are not tile programs (G0003), a malformed attribute (G0004), intermediates whose size the host cannot
//! compute (G0005), types that the device lacks (G0002), too many buffers, scalars, invocations or workgroups for it (G0008).
//!
//! Strategies: `rows` for reductions along rows and chains of them; `contraction` for matrix products and convolutions with their initialisation and elementwise successors; `elementwise` for
//! pointwise bodies, in vectors; `fallback`, scalar loop nests, for everything else. A strategy that declines leaves its reason in the [`Report`].

mod attrs;
mod body;
mod boundary;
mod code;
mod contraction;
mod doubles;
mod elementwise;
mod evaluate;
mod grid;
mod groups;
mod indices;
mod iterations;
mod locals;
mod model;
mod parts;
mod rows;
mod steps;
mod types;

use crate::error;
use attrs::KernelAttr;
use boundary::{Border, Signature};
use code::Code;
use evaluate::Evaluator;
use grid::Grid;
use locals::{Place, Scratch};
use model::{Base, Model};
use monopour_ir::conversion::{ConversionTarget, Declined, Mode, PatternSet, convert};
use monopour_ir::parallel::{MANY, map_parts, part_of};
use monopour_ir::{Attr, Diagnostics, InsertionPoint, Module, Op, Rewriter, run_passes};
use monopour_program::GpuDescription;
use std::collections::HashMap;
use tracing::trace;

/// Kernels of one part.
const GROUP: usize = 4;

/// What became of each kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// In module order.
    pub kernels: Vec<KernelReport>,
}

impl Report {
    /// A remark for each kernel that does not run as its class asks for.
    pub fn remarks(&self, module: &Module) -> Diagnostics {
        let declined = self.kernels.iter().filter(|k| !k.declined.is_empty());
        let found = declined.filter_map(|k| Some(error::declined(module.symbol(&k.name)?, k.strategy, &k.declined)));
        Diagnostics(found.collect())
    }
}

/// What became of one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelReport {
    /// The function.
    pub name: String,
    /// `contraction`, `convolution`, `elementwise` or `fallback`.
    pub strategy: &'static str,
    /// Why the strategy that the kernel's class asks for was not taken; empty if it was.
    pub declined: String,
    /// Elements per access of the results.
    pub lanes: u32,
}

impl KernelReport {
    fn log(&self, symbols: &HashMap<String, Op>) {
        let Self { name, strategy, declined, lanes } = self;
        let Some(kernel) = symbols.get(name) else { return };
        if declined.is_empty() {
            trace!(target: "distribute", "{}: @{name} by {strategy}, {lanes} lanes", kernel.location());
        } else {
            trace!(target: "distribute", "{}: @{name} by {strategy}, {lanes} lanes: {declined}", kernel.location());
        }
    }
}

/// Distributes every kernel function of `module` that is not distributed yet.
///
/// # Errors
/// G0002 to G0005, G0008; see the module documentation.
pub fn run(module: &Module, device: &GpuDescription) -> Result<Report, Diagnostics> {
    let pending: Vec<Op> = module.functions().into_iter().filter(|f| is_pending(*f)).collect();
    let grids = grid::extents(module);
    let done = if pending.len() < MANY {
        kernels(module, &grids, device)?
    } else {
        on_all_cores(module, &pending, &grids, device)?
    };
    // The calls know what to pass only when the kernels say what they take.
    let borders: HashMap<&str, &Border> = done.iter().map(|(entry, border)| (entry.name.as_str(), border)).collect();
    let symbols = module.symbols();
    done.iter().for_each(|(entry, _)| entry.log(&symbols));
    let border_of = |call: Op| borders.get(call.attr("callee")?.as_symbol()?).copied();
    let mut target = ConversionTarget::new();
    target.dynamically_legal_op("func.call", |op| border_of(op).is_none() || !boundary::is_outlined(&symbols, op));
    let mut patterns = PatternSet::new();
    patterns.add_fn("func.call", |op, _, rw| {
        let border = border_of(op).ok_or_else(|| Declined::no_match("it calls no kernel"))?;
        boundary::lower_call(rw, op, border).map_err(Declined::Failed)
    });
    convert(module.op(), &target, &patterns, Mode::Partial)?;
    drop(patterns);
    drop(target);
    Ok(Report { kernels: done.into_iter().map(|(entry, _)| entry).collect() })
}

/// [`kernels`] in several threads; the functions that come back take the places of those that were sent.
fn on_all_cores(
    module: &Module,
    pending: &[Op],
    grids: &HashMap<String, Vec<i64>>,
    device: &GpuDescription,
) -> Result<Vec<(KernelReport, Border)>, Diagnostics> {
    let parts: Vec<Vec<u8>> = pending.chunks(GROUP).map(|group| part_of(module, group)).collect();
    let work = |_: usize, part: &Module| Ok((kernels(part, grids, device)?, part.op().to_bytecode()));
    let mut rw = Rewriter::new(module.context());
    let mut all = vec![];
    let mut left = pending.iter();
    let take = |(entries, bytes): (Vec<_>, Vec<u8>)| {
        let part = Module::from_bytecode(module.context(), &bytes)?;
        for (new, old) in part.functions().into_iter().zip(&mut left) {
            rw.move_before(new, *old);
            rw.erase(*old);
        }
        all.extend(entries);
        Ok(())
    };
    map_parts(&parts, work, || (), take).1?;
    Ok(all)
}

/// Distributes the kernels of one module, and leaves the calls as they are.
fn kernels(
    module: &Module,
    grids: &HashMap<String, Vec<i64>>,
    device: &GpuDescription,
) -> Result<Vec<(KernelReport, Border)>, Diagnostics> {
    let pending: Vec<Op> = module.functions().into_iter().filter(|f| is_pending(*f)).collect();
    for kernel in &pending {
        run_passes(*kernel, "func.func(scf-forall-to-for,linalg-generalize-named-ops,canonicalize,cse)")?;
    }
    let mut rw = Rewriter::new(module.context());
    let done = pending.iter().map(|func| kernel(&mut rw, grids, *func, device)).collect::<Result<Vec<_>, _>>()?;
    for kernel in &pending {
        doubles::run(*kernel, device)?;
        run_passes(*kernel, "func.func(canonicalize,cse,loop-invariant-code-motion,cse)")?;
        let mut rw = Rewriter::new(kernel.context());
        boundary::set_access(&mut rw, *kernel);
        iterations::limit(&mut rw, *kernel, device)?;
        types::check(*kernel, device)?;
    }
    Ok(done)
}

/// Whether a function is a kernel that is not distributed.
fn is_pending(func: Op) -> bool {
    func.is("func.func")
        && func.attr("monopour.kernel").is_some()
        && func.attr("monopour.workgroup_size").is_none()
        && func.body().is_some()
}

fn kernel(
    rw: &mut Rewriter,
    grids: &HashMap<String, Vec<i64>>,
    func: Op,
    device: &GpuDescription,
) -> Result<(KernelReport, Border), Diagnostics> {
    let attr = KernelAttr::read(func, device)?;
    let signature = Signature::read(func)?;
    let args = func.body().map(|b| b.args()).unwrap_or_default();
    let unknown: Vec<bool> = args[..signature.buffers].iter().map(|a| boundary::is_base(*a)).collect();
    indices::lower_affine(rw, func)?;
    let most = locals::most_workgroups(func, device);
    let extents = func.symbol_name().and_then(|name| grids.get(&name));
    let grid = Grid::read(func, extents, signature.ids.len(), most, device)?;
    let (block, worker) = grid.enter(rw, func, &signature)?;
    indices::hoist_constants(rw, func);
    let end = block.terminator().ok_or_else(|| error::not_a_tile(func, "the function does not return"))?;
    let first = func.body().and_then(|b| b.first_op()).expect("invariant: the body has a terminator");
    let model = model::read(func, block, &mut Code::before(rw, first))?;
    boundary::flatten_arguments(rw, func, &signature, &unknown)?;

    let mut code = Code::before(rw, end);
    let place =
        Place { device, worker, end, at_once: grid.at_once(), buffers: signature.buffers, passed: signature.ids.start };
    let (entry, scratch) = write(&mut code, func, &model, &attr, &place)?;
    if grid.most.is_some() {
        // The next tile takes the same memory.
        code.barrier()?;
    }
    boundary::count_copies(code.rw, func, &model);
    for op in model.replaced.iter().rev() {
        code.rw.erase(*op);
    }
    let parts = parts::split(&mut code, func, device)?;
    boundary::set_function_type(code.rw, func);
    boundary::place_arguments(code.rw, func, device)?;
    let size: Vec<i32> = attr.workgroup_size.iter().map(|s| *s as i32).collect();
    code.rw.set_attr(func, "monopour.workgroup_size", Attr::dense_i32(func.context(), &size));
    Ok((entry, Border { signature, grid, unknown, scratch, parts }))
}

/// Picks the strategy and writes the kernel's code; returns what became of it, and the scratch that it takes.
fn write(
    code: &mut Code,
    func: Op,
    model: &Model,
    attr: &KernelAttr,
    place: &Place<'_>,
) -> Result<(KernelReport, Vec<Scratch>), Diagnostics> {
    let arguments = func.body().map(|b| b.args()).unwrap_or_default();
    let buffers = arguments.into_iter().enumerate().filter(|(_, v)| v.ty().is_memref());
    let buffers = buffers.map(|(i, v)| (Base::Argument(i), v)).collect();
    let mut evaluator = Evaluator { model, buffers, origins: HashMap::new(), lanes: HashMap::new(), along: None };
    let name = func.symbol_name().unwrap_or_default();
    let report = |strategy, lanes, declined| KernelReport { name, strategy, declined, lanes };
    let mut declined = String::new();
    let groups = if model.is_straight() { groups::split(model) } else { steps::groups(model) };
    if !model.is_straight() {
        if let "contraction" | "convolution" | "row" = attr.class.as_str() {
            declined = "the body has control flow or single accesses".into();
        }
    } else if let "contraction" | "convolution" = attr.class.as_str() {
        match contraction::plan(&mut evaluator, &groups, attr, place.device) {
            Ok(plan) => {
                evaluator.lanes = plan.argument_lanes(&evaluator);
                contraction::write(code, &evaluator, &plan, attr)?;
                let strategy = if attr.class == "convolution" { "convolution" } else { "contraction" };
                return Ok((report(strategy, plan.lanes, declined), vec![]));
            }
            Err(why) => {
                evaluator.along = None;
                declined = why;
            }
        }
    }
    if model.is_straight() && attr.class == "row" {
        match rows::plan(&evaluator, attr, place.device) {
            Ok(plan) => {
                evaluator.lanes = plan.argument_lanes(&evaluator);
                rows::write(code, func, &evaluator, &plan, attr)?;
                return Ok((report("rows", plan.lanes, declined), vec![]));
            }
            Err(why) => declined = why,
        }
    }
    let accessed = steps::accessed(model);
    let needs = |i: &usize| locals::needs_memory(&model.locals[*i], Base::Local(*i), &groups, &accessed);
    let bases: Vec<Base> = (0..model.locals.len()).filter(needs).map(Base::Local).collect();
    if !model.is_straight() {
        let scratch = locals::allocate(code, func, &mut evaluator, &bases, place)?;
        let first = func.body().and_then(|b| b.first_op()).expect("invariant: the body has a terminator");
        let linear = Code::before(code.rw, first).linear_id(attr.workgroup_size);
        steps::Writer { evaluator: &evaluator, attr, linear, pending: false }.steps(code, &model.steps)?;
        code.at(InsertionPoint::Before(place.end));
        return Ok((report("fallback", 1, declined), scratch));
    }
    let lanes = elementwise::choose_lanes(&evaluator, &groups, attr);
    let ops: Vec<_> = model.ops.iter().collect();
    evaluator.lanes = elementwise::argument_lanes(&evaluator, &ops, lanes);
    let scratch = locals::allocate(code, func, &mut evaluator, &bases, place)?;
    elementwise::write(code, &evaluator, &groups, attr, lanes)?;
    let pointwise = groups.len() == 1 && model.ops.iter().all(|op| op.outer.is_some() && op.inner().is_empty());
    Ok((report(if pointwise { "elementwise" } else { "fallback" }, lanes, declined), scratch))
}
