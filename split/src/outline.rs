//! Give each dispatch a kernel function of its tile id.
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
//! Requires: memrefs only; static normalised foralls; captured memrefs are whole, contiguous and static.
//! Ensures: a kernel's arguments are the captured memrefs in the order of their first use, then the tile ids, outermost
//! dimension first; one memref is one argument however often the body uses it, because a buffer is bound once per dispatch.
//! Limits: captured scalars other than constants (S0001), grids that are not static (S0002).

use crate::{KERNEL_ATTR, error};
use monopour_ir::conversion::{ConversionRewriter, ConversionTarget, Declined, Mode, PatternSet, convert};
use monopour_ir::{
    Attr, Block, Diagnostics, InsertionPoint, Module, Op, OpSpec, Region, Rewriter, Type, Value, WalkOrder,
};
use std::cell::Cell;
use std::collections::HashMap;

/// Largest rank of a grid: workgroup ids have three components.
const MAX_GRID_RANK: usize = 3;

/// What outlining did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Kernel functions made.
    pub kernels: usize,
}

/// Outlines every dispatch of every function of `module`.
///
/// # Errors
/// S0001, S0002; see the module documentation.
pub fn run(module: &Module) -> Result<Stats, Diagnostics> {
    let mut stats = Stats::default();
    for func in module.functions() {
        stats.kernels += outline_function(func)?;
    }
    Ok(stats)
}

fn outline_function(func: Op) -> Result<usize, Diagnostics> {
    let mut target = ConversionTarget::new();
    target.dynamically_legal_op("scf.forall", |op| op.attr(KERNEL_ATTR).is_none() || is_outlined(op));
    let count = Cell::new(0usize);
    let base = func.symbol_name().unwrap_or_default();
    let mut patterns = PatternSet::new();
    patterns.add_fn("scf.forall", |op, _, rw| {
        let name = format!("{base}_dispatch_{}", count.get());
        outline(rw, func, op, &name).map_err(Declined::Failed)?;
        count.set(count.get() + 1);
        Ok(())
    });
    convert(func, &target, &patterns, Mode::Partial)?;
    Ok(count.get())
}

/// Whether the body is already one call.
fn is_outlined(forall: Op) -> bool {
    let ops = forall.body().map(Block::ops).unwrap_or_default();
    ops.len() == 2 && ops[0].is("func.call")
}

/// Upper bounds of a static, normalised forall.
pub(crate) fn grid(forall: Op) -> Option<Vec<i64>> {
    let all = |name: &str, value: i64| Some(forall.attr(name)?.as_ints()?.iter().all(|v| *v == value));
    if !all("staticLowerBound", 0)? || !all("staticStep", 1)? {
        return None;
    }
    let upper = forall.attr("staticUpperBound")?.as_ints()?;
    let ok = forall.num_operands() == 0 && upper.len() <= MAX_GRID_RANK && upper.iter().all(|u| *u >= 0);
    ok.then_some(upper)
}

/// What a body uses from outside, split by how it gets into the kernel.
#[derive(Default)]
struct Captures {
    memrefs: Vec<Value>,
    constants: Vec<Op>,
}

fn captures(forall: Op) -> Result<Captures, Diagnostics> {
    let mut out = Captures::default();
    for op in forall.nested(WalkOrder::Pre) {
        if op == forall {
            continue;
        }
        for value in op.operands() {
            if is_defined_inside(value, forall) {
                continue;
            }
            capture(&mut out, op, value)?;
        }
    }
    Ok(out)
}

fn is_defined_inside(value: Value, forall: Op) -> bool {
    let owner = value.block().and_then(Block::parent_op);
    owner.is_some_and(|o| o.is_inside(forall))
}

fn capture(out: &mut Captures, user: Op, value: Value) -> Result<(), Diagnostics> {
    let ty = value.ty();
    if let Some(memref) = ty.as_memref() {
        if !memref.is_identity() || ty.static_size_bytes().is_none() {
            return Err(error::captured(user, &ty.to_string()).into());
        }
        if !out.memrefs.contains(&value) {
            out.memrefs.push(value);
        }
        return Ok(());
    }
    match value.defining_op() {
        Some(op) if op.is("arith.constant") || op.is("ub.poison") => {
            if !out.constants.contains(&op) {
                out.constants.push(op);
            }
            Ok(())
        }
        _ => Err(error::captured(user, &ty.to_string()).into()),
    }
}

fn outline(rw: &mut ConversionRewriter, func: Op, forall: Op, name: &str) -> Result<(), Diagnostics> {
    let grid = grid(forall).ok_or_else(|| error::dynamic_grid(forall))?;
    let captures = captures(forall)?;
    build_kernel(rw, func, forall, name, &captures)?;
    replace_body(rw, forall, name, &captures.memrefs, grid.len())
}

fn build_kernel(rw: &mut Rewriter, func: Op, forall: Op, name: &str, captures: &Captures) -> Result<(), Diagnostics> {
    let cx = forall.context();
    let loc = forall.location();
    let body = forall.body().expect("a forall has a body");
    let ids: Vec<Value> = body.args();
    let mut types: Vec<Type> = captures.memrefs.iter().map(|v| v.ty()).collect();
    types.extend(ids.iter().map(|v| v.ty()));
    let block = Block::new(&types.iter().map(|t| (*t, loc)).collect::<Vec<_>>());
    let region = Region::new();
    region.append(block);

    let mut map: HashMap<Value, Value> = HashMap::new();
    let outer = captures.memrefs.iter().chain(&ids);
    map.extend(outer.zip(block.args()).map(|(from, to)| (*from, to)));
    rw.set_point(InsertionPoint::End(block));
    for constant in &captures.constants {
        clone_into(rw, *constant, &mut map);
    }
    for op in body.ops() {
        if !op.is_terminator() {
            clone_into(rw, op, &mut map);
        }
    }
    rw.create(OpSpec::new("func.return", loc))?;

    let mut spec = OpSpec::new("func.func", loc)
        .attr("sym_name", Attr::string(cx, name))
        .attr("function_type", Attr::ty(Type::function(cx, &types, &[])))
        .attr("sym_visibility", Attr::string(cx, "private"))
        .region(region);
    if let Some(kernel) = forall.attr(KERNEL_ATTR) {
        spec = spec.attr(KERNEL_ATTR, kernel);
    }
    rw.set_point(InsertionPoint::Before(func));
    rw.create(spec)?;
    Ok(())
}

fn clone_into(rw: &mut Rewriter, op: Op, map: &mut HashMap<Value, Value>) {
    let copy = rw.clone_op(op, |v| map.get(&v).copied().unwrap_or(v));
    rw.insert(copy);
    map.extend(op.results().into_iter().zip(copy.results()));
}

fn replace_body(rw: &mut Rewriter, forall: Op, name: &str, memrefs: &[Value], rank: usize) -> Result<(), Diagnostics> {
    let body = forall.body().expect("a forall has a body");
    let mut old: Vec<Op> = body.ops();
    let terminator = old.pop().expect("a forall body has a terminator");
    for op in old.into_iter().rev() {
        rw.erase(op);
    }
    let mut args = memrefs.to_vec();
    args.extend(body.args().into_iter().take(rank));
    rw.set_point(InsertionPoint::Before(terminator));
    let callee = Attr::symbol(forall.context(), name);
    rw.create(OpSpec::new("func.call", forall.location()).attr("callee", callee).operands(&args))?;
    let marker = forall.attr(KERNEL_ATTR).expect("only marked foralls are outlined");
    // Named as modified so that the driver sees that the root changed.
    rw.set_attr(forall, KERNEL_ATTR, marker);
    Ok(())
}
