//! Tensors that are put together of the same parts, and of more each time, are parts of the last of them.
//!
//! Before / after, of what a dense block computes:
//!
//! ```text
//! %a = [%x, %y]                                      %d = tensor.empty                   // for all of them
//! %z = f(%a)                                         %a = [%x, %y] in %d, of which the first parts
//! %b = [%x, %y, %z]                                  %z = f(%a)
//! %w = g(%b)                                         %b = %z behind them in %d, ..
//! %c = [%x, %y, %z, %w]
//! ```
//!
//! `[..]` are insertions into a `tensor.empty`, one behind the other along a dimension (`tensor.concat`). What `f` reads and
//! what is inserted later have no element in common, so that all of them are one buffer, and each part is computed in it:
//! DenseNet-121 copied 531 tensors, of 35 MB.
//!
//! Limits: known sizes; one block. Parts that are put together in two ways go on in the first of them. What else than linalg
//! ops and insertions reads stays a tensor of its own.

use crate::joins::Join;
use monopour_ir::typed::{Slice, tensor};
use monopour_ir::{
    Block, CANONICALIZE_PROGRAM, Diagnostics, InsertionPoint, Module, Op, OpSpec, Rewriter, Value, WalkOrder, ops,
    run_passes,
};
use std::collections::HashMap;

/// Rewrites all blocks of `module`.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(super) fn run(module: &Module) -> Result<(), Diagnostics> {
    let mut rw = Rewriter::new(module.context());
    let mut blocks: Vec<Block> = vec![];
    for op in module.op().nested(WalkOrder::Pre).into_iter().filter(|op| op.is(ops::tensor::INSERT_SLICE)) {
        blocks.extend(op.block().filter(|block| !blocks.contains(block)));
    }
    let chains: Vec<Vec<Join>> = blocks.into_iter().flat_map(|block| chains(joins(block))).collect();
    if chains.is_empty() {
        return Ok(());
    }
    chains.iter().try_for_each(|chain| rewrite(chain, &mut rw))?;
    run_passes(module.op(), &format!("builtin.module({CANONICALIZE_PROGRAM},cse)"))
}

/// Whether `other` has all parts of a join, and others behind them.
fn goes_on_as<'c>(join: &Join<'c>, other: &Join<'c>) -> bool {
    join.axis == other.axis && other.parts.len() > join.parts.len() && other.parts.starts_with(&join.parts)
}

/// Whether a part of a larger tensor does for all that read it.
fn may_be_a_part(join: &Join) -> bool {
    let takes = |op: Op| op.dialect() == "linalg" || op.is(ops::tensor::INSERT_SLICE);
    !join.is_dynamic() && join.value().uses().iter().all(|used| takes(used.op))
}

/// The joins of a block, in order.
fn joins<'c>(block: Block<'c>) -> Vec<Join<'c>> {
    let mut found: Vec<Join> = vec![];
    let mut by_value = HashMap::new();
    for op in block.ops() {
        let goes_on =
            |op: Op<'c>| op.result(0).uses().iter().any(|u| u.op.is(ops::tensor::INSERT_SLICE) && u.index == 1);
        if !op.is(ops::tensor::INSERT_SLICE) || goes_on(op) {
            continue;
        }
        let Some(mut join) = Join::of(op) else { continue };
        // Parts of the first part have the same places.
        let first = by_value.get(&join.parts[0].0).map(|at: &usize| &found[*at]);
        if let Some(inner) = first.filter(|inner| inner.axis == join.axis) {
            let mut parts: Vec<(Value, Slice)> = inner.parts.clone();
            parts.extend(join.parts.drain(1..));
            join.parts = parts;
        }
        by_value.insert(join.value(), found.len());
        found.push(join);
    }
    found
}

/// Joins of which each goes on as the next.
fn chains(joins: Vec<Join<'_>>) -> Vec<Vec<Join<'_>>> {
    let mut next = vec![None; joins.len()];
    let mut is_next = vec![false; joins.len()];
    // The longest before: each goes on as the nearest that no longer one goes on as.
    for at in (0..joins.len()).rev().filter(|at| may_be_a_part(&joins[*at])) {
        let after = (at + 1..joins.len()).find(|after| !is_next[*after] && goes_on_as(&joins[at], &joins[*after]));
        if let Some(after) = after {
            next[at] = Some(after);
            is_next[after] = true;
        }
    }
    let mut joins: Vec<Option<Join>> = joins.into_iter().map(Some).collect();
    let mut chains = vec![];
    for first in (0..joins.len()).filter(|at| next[*at].is_some() && !is_next[*at]) {
        let order = std::iter::successors(Some(first), |at| next[*at]);
        chains.push(order.filter_map(|at| joins[at].take()).collect());
    }
    chains
}

fn rewrite<'c>(chain: &[Join<'c>], rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    let Some((whole, others)) = chain.split_last() else { return Ok(()) };
    let ty = whole.value().ty();
    rw.set_point(InsertionPoint::Before(chain[0].last()));
    let empty = OpSpec::new(ops::tensor::EMPTY, chain[0].last().location()).results(&[ty]);
    let mut value = rw.create(empty)?.result(0);
    let mut done = 0;
    for join in chain {
        let (last, of) = (join.last(), join.value().ty());
        rw.set_point(InsertionPoint::Before(last));
        for (part, slice) in &join.parts[done..] {
            value = rw.create(tensor::insert_slice(last.location(), *part, value, slice))?.result(0);
        }
        done = join.parts.len();
        let shape = of.shape().expect("invariant: its sizes are known");
        let slice = Slice::fixed(&vec![0; shape.len()], &shape);
        let whole = if of == ty {
            value
        } else {
            rw.create(tensor::extract_slice(last.location(), value, &slice, of))?.result(0)
        };
        rw.replace_all_uses(join.value(), whole);
    }
    others.iter().chain([whole]).for_each(|join| join.erase(rw));
    Ok(())
}
