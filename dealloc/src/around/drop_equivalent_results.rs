//! Drop function results that are equivalent to an argument.
//!
//! ```text
//! func.func private @f(%a) -> memref<4xf32> {           func.func private @f(%a) {
//!   "use"(%a)                                             "use"(%a)
//!   return %a                                   ==>       return
//! }                                                     }
//! %r = call @f(%b); "use"(%r)                           call @f(%b); "use"(%b)
//! ```
//!
//! Requires: a module. Only private functions that are only called directly change.
//! With extensions also results that are a view of an argument at offsets computed from arguments, and results that become equivalent
//! once a callee has lost a result.
//! Source: the pass `drop-equivalent-buffer-results` of MLIR.

use monopour_ir::ops;
use std::collections::HashSet;

use monopour_ir::{Block, Diagnostics, InsertionPoint, Op, OpSpec, Rewriter, Value};

use super::calls::{Calls, change_call, change_signature, is_private, returns};
use super::recompute::{Recipe, recipe};

/// Drops the results that callers already have, and returns their number.
///
/// # Errors
/// MLIR's diagnostics for the new ops.
pub fn drop_equivalent_results(module: Op, extensions: bool) -> Result<u32, Diagnostics> {
    let mut calls = Calls::new(module);
    let mut rw = Rewriter::new(module.context());
    let mut dropped = 0;
    let mut open: Vec<Op> = calls.functions.iter().rev().copied().collect();
    let mut is_open: HashSet<Op> = open.iter().copied().collect();
    while let Some(function) = open.pop() {
        is_open.remove(&function);
        if !is_private(function) || !calls.are_all(function) {
            continue;
        }
        let recipes = equivalents(function, extensions);
        let count = recipes.iter().filter(|r| r.is_some()).count();
        if count == 0 {
            continue;
        }
        dropped += u32::try_from(count).unwrap_or(u32::MAX);
        let mut made = Vec::new();
        for call in calls.of(function) {
            let new = rewrite_call(&mut rw, *call, &recipes)?;
            made.push(new);
            // The caller may return an operand of its call.
            open.extend(new.ancestor(ops::func::FUNC).filter(|caller| extensions && is_open.insert(*caller)));
        }
        calls.set(function, made);
        let keep: Vec<usize> = (0..recipes.len()).filter(|i| recipes[*i].is_none()).collect();
        change_signature(&mut rw, function, &keep, &[]);
    }
    Ok(dropped)
}

/// For each result its recipe from the arguments; `None` if it has to be returned.
fn equivalents<'c>(function: Op<'c>, extensions: bool) -> Vec<Option<Recipe<'c>>> {
    let (returns, results) = (returns(function), function.function_type().map(|t| t.1.len()).unwrap_or_default());
    let Some(entry) = function.body() else { return vec![None; results] };
    (0..results).map(|index| equivalent(&returns, index, entry, extensions)).collect()
}

fn equivalent<'c>(returns: &[Op<'c>], index: usize, entry: Block<'c>, extensions: bool) -> Option<Recipe<'c>> {
    let (first, others) = returns.split_first()?;
    let found = recipe(first.operand(index), entry)?;
    let is_memref = first.operand(index).ty().is_memref();
    let base = uncast(first.operand(index));
    let is_argument = base.as_block_arg().is_some_and(|(block, _)| block == entry);
    let is_known = is_argument || (extensions && is_memref);
    let is_same = |op: &Op<'c>| {
        let value = op.operand(index);
        value == first.operand(index) || (is_argument && uncast(value) == base)
    };
    (is_known && others.iter().all(is_same)).then_some(found)
}

/// The source of a chain of casts.
fn uncast<'c>(mut value: Value<'c>) -> Value<'c> {
    while let Some(op) = value.defining_op().filter(|op| op.is(ops::memref::CAST)) {
        value = op.operand(0);
    }
    value
}

fn rewrite_call<'c>(
    rw: &mut Rewriter<'c>,
    call: Op<'c>,
    recipes: &[Option<Recipe<'c>>],
) -> Result<Op<'c>, Diagnostics> {
    let operands = call.operands();
    let keep: Vec<usize> = (0..recipes.len()).filter(|i| recipes[*i].is_none()).collect();
    let new = change_call(rw, call, &operands, &keep)?;
    for (result, recipe) in call.results().into_iter().zip(recipes) {
        let Some(recipe) = recipe else { continue };
        if result.is_unused() {
            continue;
        }
        rw.set_point(InsertionPoint::Before(call));
        let value = match uncast(recipe.value()).as_block_arg() {
            Some((_, index)) => cast(rw, call, operands[index], result)?,
            None => recipe.replay(rw, &operands),
        };
        rw.replace_all_uses(result, value);
    }
    rw.erase(call);
    Ok(new)
}

/// The operand with the type of the result.
fn cast<'c>(
    rw: &mut Rewriter<'c>,
    call: Op<'c>,
    operand: Value<'c>,
    result: Value<'c>,
) -> Result<Value<'c>, Diagnostics> {
    if operand.ty() == result.ty() {
        return Ok(operand);
    }
    let spec = OpSpec::new(ops::memref::CAST, call.location()).operands(&[operand]).results(&[result.ty()]);
    Ok(rw.create(spec)?.result(0))
}
