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
//! Requires: outlined kernels; buffers of static shape and identity layout.
//! Ensures: the op set of [`crate::emit`]; arguments have rank 1; every argument is accessed with one lane count;
//! calls lose their tile ids and reshape their arguments in front of the forall.
//! Limits: bodies that are not tile programs (G0003), a malformed attribute (G0004), intermediates that do not fit in workgroup
//! memory (G0005), too many buffers, invocations or workgroups for the device (G0008).
//!
//! Strategies: `rows` for reductions along rows and chains of them; `contraction` for matrix products and convolutions with their initialisation and elementwise successors; `elementwise` for
//! pointwise bodies, in vectors; `fallback`, scalar loop nests, for everything else. A strategy that declines leaves its reason in the [`Report`].

mod attrs;
mod boundary;
mod code;
mod contraction;
mod elementwise;
mod evaluate;
mod groups;
mod indices;
mod model;
mod rows;

use crate::error;
use attrs::KernelAttr;
use code::Code;
use evaluate::Evaluator;
use model::{Base, Model};
use monopour_ir::conversion::{ConversionTarget, Declined, Mode, PatternSet, convert};
use monopour_ir::{Attr, Diagnostics, Module, Op, OpSpec, Rewriter, Type, Value, run_passes};
use monopour_program::GpuDescription;
use std::cell::RefCell;
use std::collections::HashMap;

/// What became of each kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// In module order.
    pub kernels: Vec<KernelReport>,
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

/// Distributes every kernel function of `module` that is not distributed yet.
///
/// # Errors
/// G0003, G0004, G0005, G0008; see the module documentation.
pub fn run(module: &Module, device: &GpuDescription) -> Result<Report, Diagnostics> {
    let kernels: Vec<Op> = module.functions().into_iter().filter(|f| is_pending(*f)).collect();
    for kernel in &kernels {
        run_passes(*kernel, "func.func(linalg-generalize-named-ops,canonicalize,cse)")?;
    }
    let report = RefCell::new(Report::default());
    let mut target = ConversionTarget::new();
    target.dynamically_legal_op("func.func", |op| !is_pending(op));
    target.dynamically_legal_op("func.call", |op| !boundary::passes_tile_ids(module, op));
    let mut patterns = PatternSet::new();
    patterns.add_fn("func.func", |op, _, rw| {
        let entry = kernel(rw, op, device).map_err(Declined::Failed)?;
        report.borrow_mut().kernels.push(entry);
        Ok(())
    });
    patterns.add_fn("func.call", |op, _, rw| boundary::lower_call(rw, op, device).map_err(Declined::Failed));
    convert(module.op(), &target, &patterns, Mode::Partial)?;
    for kernel in &kernels {
        run_passes(*kernel, "func.func(canonicalize,cse,loop-invariant-code-motion,cse)")?;
        let mut rw = Rewriter::new(kernel.context());
        boundary::set_access(&mut rw, *kernel);
    }
    Ok(report.take())
}

/// Whether a function is a kernel that is not distributed.
fn is_pending(func: Op) -> bool {
    func.is("func.func")
        && func.attr("monopour.kernel").is_some()
        && func.attr("monopour.workgroup_size").is_none()
        && func.body().is_some()
}

fn kernel(rw: &mut Rewriter, func: Op, device: &GpuDescription) -> Result<KernelReport, Diagnostics> {
    let attr = KernelAttr::read(func, device)?;
    let body = func.body().ok_or_else(|| error::not_a_tile(func, "the function has no body"))?;
    let end = body.terminator().ok_or_else(|| error::not_a_tile(func, "the function does not return"))?;
    let ids = boundary::tile_ids(func)?;
    indices::replace_tile_ids(rw, func, &ids)?;
    indices::lower_affine(rw, func)?;
    indices::hoist_constants(rw, func);
    let first = body.first_op().expect("invariant: the body has a terminator");
    let model = model::read(func, &mut Code::before(rw, first))?;
    boundary::flatten_arguments(rw, func, &ids)?;
    boundary::check_buffers(func, device)?;

    let mut code = Code::before(rw, end);
    let (strategy, lanes, declined) = write(&mut code, func, &model, &attr, device)?;
    boundary::count_copies(code.rw, func, &model);
    for op in model.replaced.iter().rev() {
        code.rw.erase(*op);
    }
    let size: Vec<i32> = attr.workgroup_size.iter().map(|s| *s as i32).collect();
    code.rw.set_attr(func, "monopour.workgroup_size", Attr::dense_i32(func.context(), &size));
    Ok(KernelReport { name: func.symbol_name().unwrap_or_default(), strategy, declined, lanes })
}

/// Picks the strategy and writes the kernel's code: its name, the lanes of its accesses, why another was declined.
fn write(
    code: &mut Code,
    func: Op,
    model: &Model,
    attr: &KernelAttr,
    device: &GpuDescription,
) -> Result<(&'static str, u32, String), Diagnostics> {
    let groups = groups::split(model);
    let arguments = func.body().map(|b| b.args()).unwrap_or_default();
    let buffers = arguments.into_iter().enumerate().map(|(i, v)| (Base::Argument(i), v)).collect();
    let mut evaluator = Evaluator { model, buffers, lanes: HashMap::new(), along: None };
    let mut declined = String::new();
    if let "contraction" | "convolution" = attr.class.as_str() {
        match contraction::plan(&mut evaluator, &groups, attr) {
            Ok(plan) => {
                evaluator.lanes = plan.argument_lanes(&evaluator);
                contraction::write(code, &evaluator, &plan, attr)?;
                let strategy = if attr.class == "convolution" { "convolution" } else { "contraction" };
                return Ok((strategy, plan.lanes, declined));
            }
            Err(why) => {
                evaluator.along = None;
                declined = why;
            }
        }
    }
    if attr.class == "row" {
        match rows::plan(&evaluator, attr, device) {
            Ok(plan) => {
                evaluator.lanes = plan.argument_lanes(&evaluator);
                rows::write(code, func, &evaluator, &plan, attr)?;
                return Ok(("rows", plan.lanes, declined));
            }
            Err(why) => declined = why,
        }
    }
    let lanes = elementwise::choose_lanes(&evaluator, &groups, attr);
    let ops: Vec<_> = model.ops.iter().collect();
    evaluator.lanes = elementwise::argument_lanes(&evaluator, &ops, lanes);
    allocate_locals(code, func, &mut evaluator, &groups, device)?;
    elementwise::write(code, &evaluator, &groups, attr, lanes)?;
    let pointwise = groups.len() == 1 && model.ops.iter().all(|op| op.outer.is_some() && op.inner().is_empty());
    Ok((if pointwise { "elementwise" } else { "fallback" }, lanes, declined))
}

/// Workgroup memory for the local buffers that pass values from one group to another.
fn allocate_locals(
    code: &mut Code,
    func: Op,
    evaluator: &mut Evaluator<'_>,
    groups: &[groups::Group],
    device: &GpuDescription,
) -> Result<(), Diagnostics> {
    let mut needed_bytes = 0;
    for (i, local) in evaluator.model.locals.iter().enumerate() {
        let base = Base::Local(i);
        let users = groups.iter().filter(|g| g.touches(base)).count();
        let serial = groups.iter().any(|g| g.serial && g.touches(base));
        if users < 2 && !serial {
            continue;
        }
        needed_bytes += local.elements as u64 * local.element.element_size_bytes().unwrap_or(4).max(4);
        let buffer = workgroup_buffer(code, local.op, local.element, local.elements)?;
        evaluator.buffers.insert(base, buffer);
    }
    let offered_bytes = u64::from(device.limits.max_workgroup_storage_bytes);
    if needed_bytes > offered_bytes {
        return Err(error::workgroup_memory(func, needed_bytes, offered_bytes));
    }
    Ok(())
}

fn workgroup_buffer(code: &mut Code, op: Op, element: Type, elements: i64) -> Result<Value, Diagnostics> {
    let space = Attr::parse(code.cx, "#gpu.address_space<workgroup>");
    let ty = Type::memref(&[elements], element, space);
    let spec = OpSpec::new("memref.alloca", op.location())
        .results(&[ty])
        .attr("operandSegmentSizes", Attr::dense_i32(code.cx, &[0, 0]));
    Ok(code.create(spec)?.result(0))
}
