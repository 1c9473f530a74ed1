//! Distributes each kernel's tile over the invocations of a workgroup.
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
//! Ensures: the op set of [`crate::emit`]; buffer arguments have rank 1, unknown extents are dynamic; every argument is
//! accessed with one lane count; calls lose their tile ids and reshape their buffers in front of the forall. A kernel may
//! get more arguments: scratch after the buffers, allocated before the forall and freed after it, and the dynamic extents of
//! its grid at the end. A kernel with `monopour.linear_grid` computes its tile ids from a linear workgroup id
//! (`monopour_program::fold_grid`).
//! Limits: bodies that are not tile programs (G0003), a malformed attribute (G0004), intermediates whose size the host cannot
//! compute (G0005), types that the device lacks (G0002), too many buffers, scalars, invocations, workgroups or bytes of workgroup
//! memory for it (G0008).
//!
//! Strategies (the traits are in `strategy`; tried in the order of the list below): `cooperative` for products of halves on
//! cooperative matrices; `contraction` for matrix products and convolutions with fill and epilogue;
//! `rows` for reductions along rows and chains of them; `columns` for reductions across rows;
//! `attention` for a softmax between two products; `steps` for bodies with control flow; `elementwise` for pointwise
//! bodies, in vectors, and, as scalar loop nests, for everything else. A strategy plans without a change, or declines; the
//! reason of the one for the kernel's class is in the [`Report`].
//!
//! The other files, in the order of use: `fitted` (the kernel choice, fitted to the device), `indices` (affine to arith),
//! `grid` (tile ids), `model/` (the body as data), `stride` (static and dynamic ones), `groups` (ops between barriers),
//! `evaluate` and `body` (tile ops as code), `code` (the builder), `combine` (combining ops of reductions), `locals` (memory of local buffers),
//! `matrices` (cooperative matrices), `doubles`,
//! `iterations` and `types` (device limits), `parts` (buffers larger than a binding), `twins` (kernels that gain nothing),
//! `boundary` (arguments and calls).

mod attention;
mod body;
mod boundary;
mod code;
mod columns;
mod combine;
mod contraction;
mod cooperative;
mod doubles;
mod elementwise;
mod evaluate;
mod fitted;
mod grid;
mod groups;
mod indices;
mod iterations;
mod locals;
mod matrices;
mod model;
mod parts;
mod rows;
mod steps;
mod strategy;
mod stride;
mod twins;
mod types;

use crate::error;
use boundary::{Border, Signature};
use code::Code;
use evaluate::Evaluator;
use fitted::FittedChoice;
use grid::Grid;
use locals::{Place, Scratch};
use model::Model;
use monopour_contract::attributes;
use monopour_ir::conversion::{ConversionTarget, Declined, Mode, PatternSet, convert};
use monopour_ir::ops;
use monopour_ir::parallel::{MANY, map_parts, part_of};
use monopour_ir::{Attr, Diagnostics, Module, Op, Rewriter, run_passes};
use monopour_program::GpuDescription;
use std::collections::HashMap;
use strategy::{KernelPlan, Site, Strategy};
use tracing::trace;

/// Kernels per part.
const GROUP: usize = 4;

/// All strategies, in order.
const STRATEGIES: [&dyn Strategy; 7] = [
    &cooperative::Cooperative,
    &contraction::Contraction,
    &rows::Rows,
    &columns::Columns,
    &attention::Attention,
    &steps::Stepwise,
    &elementwise::Elementwise,
];

/// The plan of the first strategy that takes the body; and the reason of the one for the kernel's class, if it declined.
fn plan<'c, 'm>(
    body: &Evaluator<'c, 'm>,
    kernel: &FittedChoice,
    device: &GpuDescription,
) -> (Box<dyn KernelPlan<'c, 'm> + 'm>, Option<strategy::Declined>) {
    let mut declined = None;
    for strategy in STRATEGIES {
        match strategy.plan(body, kernel, device) {
            Ok(plan) => return (plan, declined),
            Err(strategy::Declined::NotAsked) => {}
            Err(why) => declined = Some(why),
        }
    }
    unreachable!("invariant: of the last two strategies one takes straight bodies, and the other all others")
}

/// The strategies of all kernels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// In module order.
    pub kernels: Vec<KernelReport>,
}

impl Report {
    /// A remark for each kernel that runs by another strategy than that of its class.
    pub fn remarks(&self, module: &Module) -> Diagnostics {
        let declined = self.kernels.iter().filter(|k| !k.declined.is_empty());
        let found = declined.filter_map(|k| Some(error::declined(module.symbol(&k.name)?, k.strategy, &k.declined)));
        Diagnostics(found.collect())
    }
}

/// The strategy of one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelReport {
    /// The function.
    pub name: String,
    /// `cooperative`, `contraction`, `convolution`, `attention`, `rows`, `columns`, `elementwise` or `fallback`.
    pub strategy: &'static str,
    /// The reason why the strategy of the kernel's class declined; empty if it did not.
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
    let mut done = if pending.len() < MANY {
        kernels(module, &grids, device)?
    } else {
        on_all_cores(module, &pending, &grids, device)?
    };
    twins::drop_equal(module, &mut done);
    // Calls are lowered last: the operands follow from the kernels' arguments.
    let borders: HashMap<&str, &Border> = done.iter().map(|(entry, border)| (entry.name.as_str(), border)).collect();
    let symbols = module.symbols();
    done.iter().for_each(|(entry, _)| entry.log(&symbols));
    let border_of = |call: Op| borders.get(call.callee()?).copied();
    let mut target = ConversionTarget::new();
    target.dynamically_legal_op(ops::func::CALL, |op| border_of(op).is_none() || !boundary::is_outlined(&symbols, op));
    let mut patterns = PatternSet::new();
    patterns.add_fn(ops::func::CALL, |op, _, rw| {
        let border = border_of(op).ok_or_else(|| Declined::no_match("it calls no kernel"))?;
        boundary::lower_call(rw, op, border).map_err(Declined::Failed)
    });
    convert(module.op(), &target, &patterns, Mode::Partial)?;
    drop(patterns);
    drop(target);
    Ok(Report { kernels: done.into_iter().map(|(entry, _)| entry).collect() })
}

/// [`kernels`] in several threads; the returned functions replace those that were sent.
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
        for (new, old) in rw.absorb(part, module.body()).into_iter().zip(&mut left) {
            rw.move_before(new, *old);
            rw.erase(*old);
        }
        all.extend(entries);
        Ok(())
    };
    map_parts(&parts, work, || (), take).1?;
    Ok(all)
}

/// Distributes the kernels of one module, without their calls.
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
        types::mark_short_floats(&mut rw, *kernel, device);
        types::check(*kernel, device)?;
        boundary::check_workgroup_memory(*kernel, device)?;
    }
    Ok(done)
}

/// Whether a function is a kernel before distribution.
fn is_pending(func: Op) -> bool {
    func.is(ops::func::FUNC)
        && func.attr(attributes::KERNEL).is_some()
        && func.attr(attributes::WORKGROUP_SIZE).is_none()
        && func.body().is_some()
}

fn kernel<'c>(
    rw: &mut Rewriter<'c>,
    grids: &HashMap<String, Vec<i64>>,
    func: Op<'c>,
    device: &GpuDescription,
) -> Result<(KernelReport, Border), Diagnostics> {
    let kernel = FittedChoice::read(func, device)?;
    let signature = Signature::read(func)?;
    let args = func.body().map(|b| b.args()).unwrap_or_default();
    let unknown: Vec<bool> = args[..signature.buffers].iter().map(|a| boundary::is_base(*a)).collect();
    indices::lower_affine(rw, func)?;
    let most = locals::most_workgroups(func, kernel.class, device);
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
    let (entry, scratch) = write(&mut code, func, &model, &kernel, &place)?;
    if grid.most.is_some() {
        // The next tile reuses the memory.
        code.barrier()?;
    }
    boundary::count_copies(code.rw, func, &model);
    for op in model.replaced.iter().rev() {
        code.rw.erase(*op);
    }
    let parts = parts::split(&mut code, func, device)?;
    boundary::set_function_type(code.rw, func);
    boundary::place_arguments(code.rw, func, device)?;
    let size: Vec<i32> = kernel.workgroup_size.iter().map(|s| *s as i32).collect();
    code.rw.set_attr(func, attributes::WORKGROUP_SIZE, Attr::dense_i32(func.context(), &size));
    Ok((entry, Border { signature, grid, unknown, scratch, parts }))
}

/// Plans and writes the kernel's code; returns the report, and the scratch that it needs.
fn write<'c>(
    code: &mut Code<'c, '_>,
    func: Op<'c>,
    model: &Model<'c>,
    kernel: &FittedChoice,
    place: &Place<'c, '_>,
) -> Result<(KernelReport, Vec<Scratch>), Diagnostics> {
    let body = Evaluator::new(model, &func.body().map(|b| b.args()).unwrap_or_default());
    let (plan, declined) = plan(&body, kernel, place.device);
    let scratch = plan.write(code, &Site { func, body: &body, kernel, place })?;
    let report = KernelReport {
        name: func.symbol_name().unwrap_or_default(),
        strategy: plan.strategy(),
        declined: declined.map(|why| why.to_string()).unwrap_or_default(),
        lanes: plan.lanes(),
    };
    Ok((report, scratch))
}
