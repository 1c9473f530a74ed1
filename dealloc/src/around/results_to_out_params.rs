//! Turn returned buffers into arguments that the function writes.
//!
//! ```text
//! func.func private @f() -> memref<4xf32> {             func.func private @f(%o: memref<4xf32>) {
//!   %a = memref.alloc()                                   %a = memref.alloc()
//!   "fill"(%a)                                  ==>       "fill"(%a)
//!   return %a                                             memref.copy %a, %o
//! }                                                       return
//! %r = call @f()                                        }
//!                                                       %r = memref.alloc(); call @f(%r)
//! ```
//!
//! With `hoist-static-allocs` and `hoist-dynamic-allocs` the allocation itself becomes the argument, without a copy.
//! Requires: a module. Functions without a body, and those used other than by calls, are unchanged.
//! Limits: layouts that are neither row-major nor dynamic throughout (D0120); dynamic sizes other than arguments of the function,
//! and those without `hoist-dynamic-allocs` (D0121). With extensions such a result stays a result, as does one that may alias an
//! argument or another result: a copy of it would be another buffer. Sizes are computed again in the caller where they depend only
//! on arguments, and the caller's buffer has the alignment of the function's.
//! Source: the pass `buffer-results-to-out-params` of MLIR.
//! Differs: an allocation becomes the argument only if every return has it for this result; upstream merges different ones.

use monopour_ir::ops;
use monopour_ir::typed;
use monopour_ir::{Attr, Block, DYNAMIC, Diagnostic, Diagnostics, InsertionPoint, Op, OpSpec, Rewriter, Type, Value};

use super::calls::{Calls, change_call, change_signature, is_private, returns};
use super::places::Places;
use super::recompute::{Recipe, recipe};

/// Options of [`results_to_out_params`], by upstream's names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutParamOptions {
    /// `add-result-attr`: new arguments get `bufferize.result`.
    pub add_result_attr: bool,
    /// `hoist-dynamic-allocs`: allocations of dynamic size become arguments.
    pub hoist_dynamic_allocs: bool,
    /// `hoist-static-allocs`: allocations of static size become arguments.
    pub hoist_static_allocs: bool,
    /// `modify-public-functions`: public functions change, too.
    pub modify_public_functions: bool,
    /// Extensions: sizes computed from arguments; results that cannot be passed stay results.
    pub extensions: bool,
}

/// Counts of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutParamStats {
    /// Results that became arguments.
    pub params: u32,
    /// Copies into them; the others are computed in place.
    pub copies: u32,
}

/// A result that becomes an argument.
struct Param<'c> {
    index: usize,
    ty: Type<'c>,
    /// The allocation of every return.
    alloc: Option<Op<'c>>,
    /// Whether the allocation becomes the argument.
    is_hoisted: bool,
    /// The dynamic sizes as recipes from the arguments; `None` if they depend on more.
    sizes: Option<Vec<Recipe<'c>>>,
}

/// Changes functions and their calls.
///
/// # Errors
/// D0120 and D0121, without extensions.
pub fn results_to_out_params(module: Op, options: &OutParamOptions) -> Result<OutParamStats, Diagnostics> {
    let mut calls = Calls::new(module);
    let mut plan = Vec::new();
    let mut errors = Diagnostics::default();
    for function in calls.functions.clone() {
        if !calls.are_all(function) || !(is_private(function) || options.modify_public_functions) {
            continue;
        }
        match params(function, options) {
            Ok(params) => {
                errors.0.extend(calls.of(function).iter().flat_map(|call| refusals(*call, &params, options)));
                plan.push((function, params));
            }
            Err(error) => errors.0.push(error),
        }
    }
    if errors.has_errors() {
        return Err(errors);
    }
    let mut rw = Rewriter::new(module.context());
    let mut stats = OutParamStats::default();
    for (function, params) in plan.into_iter().filter(|(_, params)| !params.is_empty()) {
        let made = calls.of(function).iter().map(|call| rewrite_call(&mut rw, *call, &params, options));
        let made = made.collect::<Result<Vec<Op>, _>>()?;
        calls.set(function, made);
        rewrite_function(&mut rw, function, &params, options, &mut stats)?;
    }
    Ok(stats)
}

fn params<'c>(function: Op<'c>, options: &OutParamOptions) -> Result<Vec<Param<'c>>, Diagnostic> {
    let (Some((_, results)), Some(entry)) = (function.function_type(), function.body()) else { return Ok(vec![]) };
    let (returns, places) = (returns(function), Places::new(function));
    let mut out: Vec<Param> = Vec::new();
    for (index, ty) in results.into_iter().enumerate().filter(|(_, ty)| ty.is_memref() && ty.shape().is_some()) {
        if !has_known_layout(ty) {
            if options.extensions {
                continue;
            }
            let message = "cannot create out param for result with unsupported layout";
            let help = "give results row-major or fully dynamic layouts, or set extensions";
            return Err(Diagnostic::error("D0120", function.location(), message).with_help(help));
        }
        let alloc = only_alloc(&returns, index);
        let wants = if ty.shape().is_some_and(|s| s.contains(&DYNAMIC)) {
            options.hoist_dynamic_allocs
        } else {
            options.hoist_static_allocs
        };
        // One buffer is one argument, and each iteration of a loop needs its own.
        let is_free = |a: &Op<'c>| {
            a.result(0).ty() == ty
                && !out.iter().any(|p| p.is_hoisted && p.alloc == Some(*a))
                && a.block().is_some_and(|b| !places.is_on_cycle(b))
        };
        let is_hoisted = wants && alloc.as_ref().is_some_and(is_free);
        let sizes = alloc.and_then(|a| sizes(a, ty, entry, options));
        // A copy of a buffer that the caller also has as an argument or another result would be another buffer.
        let is_fresh = is_hoisted || is_fresh(&returns, index);
        if !options.extensions || (is_fresh && (sizes.is_some() || is_static(ty))) {
            out.push(Param { index, ty, alloc, is_hoisted, sizes });
        }
    }
    Ok(out)
}

/// Whether every return has a buffer for the result that it does not return elsewhere.
fn is_fresh(returns: &[Op], index: usize) -> bool {
    returns.iter().all(|op| {
        let alloc = behind_casts(op.operand(index));
        let count = returns.iter().filter(|r| behind_casts(r.operand(index)) == alloc).count();
        alloc.is_some_and(|alloc| is_returned(alloc, count, returns))
    })
}

/// Whether the buffer is returned exactly so often, and is otherwise only cast.
fn is_returned(alloc: Op, count: usize, returns: &[Op]) -> bool {
    let mut value = alloc.result(0);
    loop {
        let users: Vec<Op> = value.uses().iter().map(|u| u.op).collect();
        let (returned, others): (Vec<Op>, Vec<Op>) = users.into_iter().partition(|op| returns.contains(op));
        let passes_on = |op: &Op| op.is_terminator() || op.results().iter().any(|r| r.ty().is_memref());
        let makers: Vec<Op> = others.into_iter().filter(passes_on).collect();
        match makers[..] {
            [] => return returned.len() == count,
            [cast] if cast.is(ops::memref::CAST) && returned.is_empty() => value = cast.result(0),
            _ => return false,
        }
    }
}

fn is_static(ty: Type) -> bool {
    ty.shape().is_some_and(|shape| !shape.contains(&DYNAMIC))
}

/// Row-major, or strides and offset all dynamic: a cast of a row-major buffer has that type.
fn has_known_layout(ty: Type) -> bool {
    let Some(memref) = ty.as_memref() else { return false };
    let is_dynamic = memref.offset == DYNAMIC && memref.strides.iter().all(|s| *s == DYNAMIC);
    is_dynamic || ty == Type::memref(&memref.shape, memref.element, memref.memory_space)
}

/// The allocation that every return has for a result, behind casts.
fn only_alloc<'c>(returns: &[Op<'c>], index: usize) -> Option<Op<'c>> {
    let (first, others) = returns.split_first()?;
    let value = first.operand(index);
    let is_same = others.iter().all(|op| op.operand(index) == value);
    behind_casts(value).filter(|_| is_same)
}

/// The allocation behind casts of it.
fn behind_casts<'c>(mut value: Value<'c>) -> Option<Op<'c>> {
    while let Some(op) = value.defining_op().filter(|op| op.is(ops::memref::CAST)) {
        value = op.operand(0);
    }
    value.defining_op().filter(|op| op.is(ops::memref::ALLOC))
}

/// Recipes of the caller's dynamic sizes from arguments of the function.
fn sizes<'c>(alloc: Op<'c>, ty: Type<'c>, entry: Block<'c>, options: &OutParamOptions) -> Option<Vec<Recipe<'c>>> {
    if !options.hoist_dynamic_allocs && !options.extensions {
        return None;
    }
    // Behind a cast, other sizes may be dynamic.
    let is_same_shape = alloc.result(0).ty().shape() == ty.shape();
    let count = ty.shape()?.iter().filter(|s| **s == DYNAMIC).count();
    let dynamic = alloc.operands().into_iter().take(count).filter(|_| is_same_shape);
    let found: Option<Vec<Recipe>> = dynamic.map(|size| recipe(size, entry)).collect();
    let is_argument = |r: &Recipe<'c>| r.value().as_block_arg().is_some();
    found.filter(|f| f.len() == count && (options.extensions || f.iter().all(is_argument)))
}

/// The reasons why the call cannot pass a buffer for some result.
fn refusals(call: Op, params: &[Param], options: &OutParamOptions) -> Vec<Diagnostic> {
    let has_no_size = |p: &&Param| !is_static(p.ty) && (p.sizes.is_none() || (!p.is_hoisted && !options.extensions));
    let refuse = |_: &Param| {
        Diagnostic::error("D0121", call.location(), "cannot create out param for dynamically shaped result")
            .with_help("set hoist-dynamic-allocs where the sizes are arguments of the function, or extensions")
    };
    params.iter().filter(has_no_size).take(1).map(refuse).collect()
}

fn rewrite_call<'c>(
    rw: &mut Rewriter<'c>,
    call: Op<'c>,
    params: &[Param<'c>],
    options: &OutParamOptions,
) -> Result<Op<'c>, Diagnostics> {
    let given = call.operands();
    let mut operands = given.clone();
    for param in params {
        rw.set_point(InsertionPoint::Before(call));
        let buffer = make_buffer(rw, call, param, &given, options)?;
        rw.replace_all_uses(call.result(param.index), buffer);
        operands.push(buffer);
    }
    let keep: Vec<usize> = (0..call.num_results()).filter(|i| params.iter().all(|p| p.index != *i)).collect();
    let new = change_call(rw, call, &operands, &keep)?;
    rw.erase(call);
    Ok(new)
}

/// The caller's buffer, with the type of the result.
fn make_buffer<'c>(
    rw: &mut Rewriter<'c>,
    call: Op<'c>,
    param: &Param<'c>,
    given: &[Value<'c>],
    options: &OutParamOptions,
) -> Result<Value<'c>, Diagnostics> {
    let loc = call.location();
    let Some(memref) = param.ty.as_memref() else { return Ok(call.result(param.index)) };
    let sizes: Vec<Value> = param.sizes.iter().flatten().map(|size| size.replay(rw, given)).collect();
    let sizes = if is_static(param.ty) { vec![] } else { sizes };
    let dense = Type::memref(&memref.shape, memref.element, memref.memory_space);
    let mut spec = typed::memref::alloc(loc, &sizes, dense);
    if let Some(alignment) = param.alloc.and_then(|a| a.attr("alignment")).filter(|_| options.extensions) {
        spec = spec.attr("alignment", alignment);
    }
    let buffer = rw.create(spec)?.result(0);
    if dense == param.ty {
        return Ok(buffer);
    }
    Ok(rw.create(OpSpec::new(ops::memref::CAST, loc).operands(&[buffer]).results(&[param.ty]))?.result(0))
}

fn rewrite_function<'c>(
    rw: &mut Rewriter<'c>,
    function: Op<'c>,
    params: &[Param<'c>],
    options: &OutParamOptions,
    stats: &mut OutParamStats,
) -> Result<(), Diagnostics> {
    let (cx, Some(entry)) = (rw.context(), function.body()) else { return Ok(()) };
    let results = function.function_type().map(|t| t.1.len()).unwrap_or_default();
    let res_attrs = function.attr("res_attrs").and_then(|a| a.as_array()).unwrap_or_default();
    let mut args = Vec::new();
    for param in params {
        let arg = rw.add_block_arg(entry, param.ty, function.location());
        let given = res_attrs.get(param.index).and_then(|a| a.as_dict()).unwrap_or_default();
        let mut attrs: Vec<(&str, Attr)> = given.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        if options.add_result_attr {
            attrs.push(("bufferize.result", Attr::unit(cx)));
        }
        args.push((param.ty, Attr::dict(cx, &attrs)));
        stats.params += 1;
        if let Some(alloc) = param.alloc.filter(|_| param.is_hoisted) {
            rw.replace_op(alloc, &[arg]);
        }
    }
    let first = entry.num_args() - params.len();
    for op in returns(function) {
        for (position, param) in params.iter().enumerate().filter(|(_, p)| !p.is_hoisted) {
            rw.set_point(InsertionPoint::Before(op));
            let operands = [op.operand(param.index), entry.arg(first + position)];
            rw.create(OpSpec::new(ops::memref::COPY, op.location()).operands(&operands))?;
            stats.copies += 1;
        }
    }
    let keep: Vec<usize> = (0..results).filter(|i| params.iter().all(|p| p.index != *i)).collect();
    change_signature(rw, function, &keep, &args);
    Ok(())
}
