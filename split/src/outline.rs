//! Outlines each dispatch into a kernel function of its tile id.
//!
//! Before:
//! ```mlir
//! scf.forall (%i, %j) in (4, 16) {
//!   %s = memref.subview %a[%i, 0] [16, 8] [1, 1] : ...
//!   linalg.fill ins(%cst : f32) outs(%s : ...)
//! } {monopour.kernel = {class = "elementwise"}}
//! ```
//! After:
//! ```mlir
//! func.func private @main_dispatch_0(%a: memref<..>, %i: index, %j: index) attributes {monopour.kernel = {..}} { .. }
//! scf.forall (%i, %j) in (4, 16) { func.call @main_dispatch_0(%a, %i, %j) }
//! ```
//! Requires: memrefs only; foralls from 0 by 1; tiles' own buffers inside.
//! Ensures: a kernel's arguments are buffers in the order of their first use, then scalars, then the tile ids, outermost
//! dimension first; `monopour.grid_rank` says how many ids there are. A buffer is a whole one, because it is bound once per
//! dispatch: views that the body uses move into it. One of dynamic sizes or strides that a view does not explain comes as its
//! base of rank 0, with its offset, sizes and strides as scalars. A host copy with gaps is a dispatch of its own. Left on the host are
//! views in strided form (`views.rs`). Dispatches whose kernels would be equal share one (`merge.rs`).
//! Limits: captured values other than memrefs and scalars (S0001), grids of more than three dimensions (S0002).

use crate::captures::{self, Captures};
use crate::sizes::Sizes;
use crate::{error, merge, views};
use monopour_contract::attributes;
use monopour_ir::ops;
use monopour_ir::{
    Attr, Block, DYNAMIC, Diagnostics, InsertionPoint, Module, Op, OpSpec, Region, Rewriter, Type, Value,
};
use std::collections::HashMap;

/// Largest rank of a grid: workgroup ids have three components.
const MAX_GRID_RANK: usize = 3;

/// Statistics of outlining.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Dispatches found.
    pub dispatches: usize,
    /// Kernel functions that they call, each of another structure.
    pub kernels: usize,
}

/// Outlines every dispatch of every function of `module`.
///
/// # Errors
/// S0001, S0002; see the module documentation.
pub fn run(module: &Module) -> Result<Stats, Diagnostics> {
    run_for(module, u64::MAX)
}

/// As [`run`], for a device that binds at most `most_binding_bytes` at once: a contiguous window of a larger buffer at a
/// static offset is an argument of its own, with the offset in its type.
///
/// # Errors
/// As [`run`].
pub fn run_for(module: &Module, most_binding_bytes: u64) -> Result<Stats, Diagnostics> {
    let mut stats = Stats::default();
    for func in module.functions() {
        views::dispatch_copies(func)?;
        stats.dispatches += outline_function(func, most_binding_bytes)?;
        views::expand(func)?;
    }
    stats.kernels = merge::run(module);
    Ok(stats)
}

fn outline_function<'c>(func: Op<'c>, most_bytes: u64) -> Result<usize, Diagnostics> {
    let around = |op: Op<'c>| std::iter::successors(op.parent(), |op| op.parent()).take_while(|op| *op != func);
    let dispatches: Vec<Op> = func.find_all(ops::scf::FORALL).into_iter().filter(|op| is_pending(*op)).collect();
    let outermost = dispatches.into_iter().filter(|op| !around(*op).any(is_pending)).collect::<Vec<_>>();
    let base = func.symbol_name().unwrap_or_default();
    let mut rw = Rewriter::new(func.context());
    let mut sizes = Sizes::of(&mut rw, func)?;
    for (number, forall) in outermost.iter().enumerate() {
        let rank = grid(*forall).ok_or_else(|| error::dynamic_grid(*forall))?.len();
        let captures = captures::collect(*forall, most_bytes)?;
        let passed = captures::pass(&mut rw, *forall, &captures, &mut sizes)?;
        let name = format!("{base}_dispatch_{number}");
        build_kernel(&mut rw, func, *forall, (&name, rank), &captures, &passed)?;
        replace_body(&mut rw, *forall, &name, &passed.operands(), rank)?;
    }
    Ok(outermost.len())
}

/// Whether an op is a dispatch without a kernel function.
fn is_pending(op: Op) -> bool {
    op.is(ops::scf::FORALL) && op.attr(attributes::KERNEL).is_some() && !is_outlined(op)
}

/// Whether the body is one call.
fn is_outlined(forall: Op) -> bool {
    let ops = forall.body().map(Block::ops).unwrap_or_default();
    ops.len() == 2 && ops[0].is(ops::func::CALL)
}

/// One extent of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent<'c> {
    /// Static.
    Static(i64),
    /// An index.
    Dynamic(Value<'c>),
}

/// Upper bounds of a normalised forall.
pub(crate) fn grid<'c>(forall: Op<'c>) -> Option<Vec<Extent<'c>>> {
    let all = |name: &str, value: i64| Some(forall.attr(name)?.as_ints()?.iter().all(|v| *v == value));
    if !all("staticLowerBound", 0)? || !all("staticStep", 1)? || forall.num_results() > 0 {
        return None;
    }
    let mut dynamic = forall.operands().into_iter();
    let upper = forall.attr("staticUpperBound")?.as_ints()?;
    let extents = upper.into_iter().map(|bound| match bound {
        DYNAMIC => dynamic.next().map(Extent::Dynamic),
        bound => (bound >= 0).then_some(Extent::Static(bound)),
    });
    let extents: Option<Vec<Extent>> = extents.collect();
    extents.filter(|extents| extents.len() <= MAX_GRID_RANK)
}

fn build_kernel<'c>(
    rw: &mut Rewriter<'c>,
    func: Op<'c>,
    forall: Op<'c>,
    (name, rank): (&str, usize),
    captures: &Captures<'c>,
    passed: &captures::Passed<'c>,
) -> Result<(), Diagnostics> {
    let cx = forall.context();
    let loc = forall.location();
    let body = forall.body().expect("a forall has a body");
    let ids: Vec<Value> = body.args();
    let operands = passed.operands();
    let types: Vec<Type> = operands.iter().chain(&ids).map(|v| v.ty()).collect();
    let block = Block::new(&types.iter().map(|t| (*t, loc)).collect::<Vec<_>>());
    let region = Region::new();
    region.append(block);

    let mut map: HashMap<Value, Value> = HashMap::new();
    let args = block.args();
    map.extend(operands.iter().chain(&ids).zip(&args).map(|(from, to)| (*from, *to)));
    rw.set_point(InsertionPoint::End(block));
    for constant in &captures.constants {
        clone_into(rw, *constant, &mut map);
    }
    captures::rebuild(rw, passed, &mut map)?;
    for view in &captures.views {
        clone_into(rw, *view, &mut map);
    }
    for op in body.ops() {
        if !op.is_terminator() {
            clone_into(rw, op, &mut map);
        }
    }
    rw.create(OpSpec::new(ops::func::RETURN, loc))?;

    let mut spec = OpSpec::new(ops::func::FUNC, loc)
        .attr("sym_name", Attr::string(cx, name))
        .attr("function_type", Attr::ty(Type::function(cx, &types, &[])))
        .attr("sym_visibility", Attr::string(cx, "private"))
        .attr(attributes::GRID_RANK, Attr::i64(cx, rank as i64))
        .region(region);
    if let Some(kernel) = forall.attr(attributes::KERNEL) {
        spec = spec.attr(attributes::KERNEL, kernel);
    }
    rw.set_point(InsertionPoint::Before(func));
    rw.create(spec)?;
    Ok(())
}

pub(crate) fn clone_into<'c>(rw: &mut Rewriter<'c>, op: Op<'c>, map: &mut HashMap<Value<'c>, Value<'c>>) {
    let copy = rw.clone_op(op, |v| map.get(&v).copied().unwrap_or(v));
    rw.insert(copy);
    map.extend(op.results().into_iter().zip(copy.results()));
}

fn replace_body<'c>(
    rw: &mut Rewriter<'c>,
    forall: Op<'c>,
    name: &str,
    operands: &[Value<'c>],
    rank: usize,
) -> Result<(), Diagnostics> {
    let body = forall.body().expect("a forall has a body");
    let mut old: Vec<Op> = body.ops();
    let terminator = old.pop().expect("a forall body has a terminator");
    for op in old.into_iter().rev() {
        rw.erase(op);
    }
    let mut args = operands.to_vec();
    args.extend(body.args().into_iter().take(rank));
    rw.set_point(InsertionPoint::Before(terminator));
    let callee = Attr::symbol(forall.context(), name);
    rw.create(OpSpec::new(ops::func::CALL, forall.location()).attr("callee", callee).operands(&args))?;
    Ok(())
}
