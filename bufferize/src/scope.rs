//! The operations to bufferize: those with tensors, outside of nested symbol tables.

use monopour_ir::ops;
use std::collections::HashSet;

use monopour_ir::{Op, WalkOrder};

use crate::options::Options;

/// Whether the operation has a tensor operand or result, or a block with a tensor argument.
pub fn has_tensors(op: Op) -> bool {
    // Called several times per operation: without lists.
    (0..op.num_operands()).any(|i| op.operand(i).ty().is_tensor())
        || (0..op.num_results()).any(|i| op.result(i).ty().is_tensor())
        || op.regions().iter().flat_map(|r| r.blocks()).flat_map(|b| b.args()).any(|v| v.ty().is_tensor())
        || is_global_tensor(op)
}

/// A global has its tensor in an attribute only.
fn is_global_tensor(op: Op) -> bool {
    op.num_operands() == 0
        && op.is(ops::ml_program::GLOBAL)
        && op.attr("type").and_then(|a| a.as_type()).is_some_and(|ty| ty.is_tensor())
}

/// The functions directly in an op's body.
pub(crate) fn functions_of<'c>(root: Op<'c>) -> Vec<Op<'c>> {
    top(root).filter(|op| op.is(ops::func::FUNC)).collect()
}

/// Whether the op holds a symbol table of its own.
fn is_symbol_table(op: Op) -> bool {
    op.is(ops::builtin::MODULE) || (op.attr("sym_name").is_some() && op.function_type().is_none())
}

/// Whether an op is excluded from its surroundings: with function boundaries, functions are decided by themselves,
/// and nested symbol tables are unchanged.
pub(crate) fn is_apart(op: Op, options: &Options) -> bool {
    options.bufferize_function_boundaries && op.num_regions() > 0 && (op.is(ops::func::FUNC) || is_symbol_table(op))
}

pub(crate) fn top<'c>(root: Op<'c>) -> impl Iterator<Item = Op<'c>> {
    root.regions().into_iter().flat_map(|r| r.blocks()).flat_map(|b| b.ops())
}

/// Whether there are tensors outside of functions and nested symbol tables.
pub(crate) fn has_loose_tensors(root: Op, options: &Options) -> bool {
    let loose = top(root).filter(|op| !is_apart(*op, options));
    let mut ops = Vec::new();
    loose.for_each(|op| without_apart(op, options, WalkOrder::Pre, &mut ops));
    ops.into_iter().any(has_tensors)
}

/// All operations that are bufferized.
///
/// With function boundaries, those in nested symbol tables are unchanged, and so are functions that are not directly in
/// the root: only an unknown operation can hold one, and it may be a symbol table.
pub(crate) fn ops_in_scope<'c>(root: Op<'c>, options: &Options, order: WalkOrder) -> Vec<Op<'c>> {
    let mut ops = Vec::new();
    for op in top(root) {
        if op.is(ops::func::FUNC) {
            ops.extend(Some(op).filter(|_| order == WalkOrder::Pre));
            top(op).for_each(|inner| without_apart(inner, options, order, &mut ops));
            ops.extend(Some(op).filter(|_| order == WalkOrder::Post));
        } else {
            without_apart(op, options, order, &mut ops);
        }
    }
    ops
}

/// The operations to bufferize for which `keep` holds, in pre-order and in post-order.
pub(crate) fn both_orders<'c>(
    root: Op<'c>,
    options: &Options,
    keep: impl Fn(&Op<'c>) -> bool,
) -> (Vec<Op<'c>>, Vec<Op<'c>>) {
    let (mut pre, mut post, mut found) = (Vec::new(), Vec::new(), Vec::new());
    for outer in top(root) {
        let function = Some(outer).filter(|op| op.is(ops::func::FUNC));
        let roots = function.map_or_else(|| vec![outer], |f| top(f).collect());
        pre.extend(function.filter(&keep));
        for op in roots {
            found.clear();
            without_apart(op, options, WalkOrder::Pre, &mut found);
            found.retain(&keep);
            pre.extend_from_slice(&found);
            // A single op is in both.
            if found.len() > 1 {
                found.clear();
                without_apart(op, options, WalkOrder::Post, &mut found);
                found.retain(&keep);
            }
            post.extend_from_slice(&found);
        }
        post.extend(function.filter(&keep));
    }
    (pre, post)
}

/// Lists an operation and its nested ones, excluded ones aside.
fn without_apart<'c>(op: Op<'c>, options: &Options, order: WalkOrder, ops: &mut Vec<Op<'c>>) {
    if op.num_regions() == 0 {
        ops.push(op);
        return;
    }
    if order == WalkOrder::Pre {
        op.walk_selected(|inner| {
            let is_inside = !is_apart(inner, options);
            ops.extend(Some(inner).filter(|_| is_inside));
            is_inside
        });
        return;
    }
    let (first, mut has_apart) = (ops.len(), false);
    op.walk(order, |inner| {
        has_apart |= is_apart(inner, options);
        ops.push(inner);
    });
    if has_apart {
        let mut inside = Vec::new();
        without_apart(op, options, WalkOrder::Pre, &mut inside);
        let inside: HashSet<Op> = inside.into_iter().collect();
        let listed = ops.split_off(first);
        ops.extend(listed.into_iter().filter(|op| inside.contains(op)));
    }
}
