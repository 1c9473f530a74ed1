//! Elementwise fusion, then dispatches: each root gets the producers that are computed with it, and its destination.
//!
//! Before / after:
//!
//! ```text
//! %f = linalg.fill ins(%z) outs(%e)              %f = linalg.fill {monopour.dispatch = 0, monopour.role = "init"} ...
//! %m = linalg.matmul ins(%x, %w) outs(%f)        %m = linalg.matmul {dispatch = 0, role = "producer"} ... outs(%f)
//! %a = linalg.generic ins(%m, %b) outs(%e)       %r = linalg.generic {dispatch = 0, role = "root"} ins(%b) outs(%m)
//! %r = linalg.generic ins(%a) outs(%e)
//! ```
//!
//! Requires: what [`crate::import`] ensures.
//! Ensures: every linalg op is a `fill`, a `matmul` or a `generic` and belongs to one dispatch; transposes are folded into maps;
//! an epilogue overwrites the result of its contraction in place; no two ops share a `fill` or a `tensor.empty`.
//! Differs from upstream's greedy fusion: a producer that computes is never fused into a reduction, which would repeat it.

use crate::{linalg, specialize};
use monopour_ir::{
    Attr, Context, Diagnostics, InsertionPoint, Module, Op, OpSpec, Region, Rewriter, Value, WalkOrder, run_passes,
};
use std::collections::HashSet;

/// Number of the dispatch that a linalg op belongs to.
pub(crate) const DISPATCH: &str = "monopour.dispatch";
/// What an op is in its dispatch: `root`, `producer` (its contraction) or `init` (a fill under either).
pub(crate) const ROLE: &str = "monopour.role";

/// Fuses, and forms the dispatches.
///
/// # Errors
/// Only what upstream's passes report.
pub fn run(module: &Module) -> Result<(), Diagnostics> {
    run_passes(module.op(), "builtin.module(func.func(linalg-generalize-named-ops),canonicalize,cse)")?;
    let mut rw = Rewriter::new(module.context());
    duplicate_data_movement(module, &mut rw);
    let anchors = guard_reductions(module, &mut rw)?;
    run_passes(module.op(), "builtin.module(func.func(linalg-fuse-elementwise-ops),canonicalize,cse)")?;
    for anchor in find_anchors(module, anchors) {
        rw.erase(anchor);
    }
    specialize::run(module)?;
    run_passes(module.op(), "builtin.module(canonicalize,cse)")?;
    unshare(module, &mut rw);
    form_dispatches(module, &mut rw)
}

/// A transpose or broadcast with several readers gets a copy for each, so that all of them can fold it.
fn duplicate_data_movement(module: &Module, rw: &mut Rewriter) {
    for op in module.op().find_all("linalg.generic") {
        if linalg::is_data_movement(op) && linalg::num_inputs(op) > 0 {
            duplicate_per_use(op, rw);
        }
    }
}

fn duplicate_per_use(op: Op, rw: &mut Rewriter) {
    for use_ in op.result(0).uses().into_iter().skip(1) {
        rw.set_point(InsertionPoint::Before(op));
        let copy = rw.clone_op(op, |v| v);
        rw.insert(copy);
        rw.set_operand(use_.op, use_.index, copy.result(0));
    }
}

/// The op that stands for a second reader; `linalg-fuse-elementwise-ops` fuses producers with one reader only.
const ANCHOR: &str = "bufferization.dealloc_tensor";

/// Gives a second reader to each producer that computes something and is read by a reduction.
fn guard_reductions(module: &Module, rw: &mut Rewriter) -> Result<usize, Diagnostics> {
    let mut count = 0;
    for op in module.op().find_all("linalg.generic") {
        if linalg::parallel_loops(op).is_none_or(|p| p.iter().all(|parallel| *parallel)) {
            continue;
        }
        for value in &op.operands()[..linalg::num_inputs(op)] {
            let computes = |p: &Op| p.is("linalg.generic") && !linalg::is_data_movement(*p);
            if value.defining_op().as_ref().is_some_and(computes) {
                rw.set_point(InsertionPoint::Before(op));
                rw.create(OpSpec::new(ANCHOR, op.location()).operands(&[*value]))?;
                count += 1;
            }
        }
    }
    Ok(count)
}

fn find_anchors(module: &Module, count: usize) -> Vec<Op> {
    if count == 0 { vec![] } else { module.op().find_all(ANCHOR) }
}

/// Every use of a `fill` or `tensor.empty` gets its own: a shared one is read after it was overwritten, which costs a copy.
pub(crate) fn unshare(module: &Module, rw: &mut Rewriter) {
    // Fills first: the copies of a fill share its `tensor.empty`.
    for name in ["linalg.fill", "tensor.empty"] {
        for op in module.op().find_all(name) {
            if op.num_results() == 1 {
                duplicate_per_use(op, rw);
            }
        }
    }
}

fn form_dispatches(module: &Module, rw: &mut Rewriter) -> Result<(), Diagnostics> {
    let mut taken: HashSet<Op> = HashSet::new();
    let mut groups: Vec<Vec<(Op, &'static str)>> = vec![];
    let ops: Vec<Op> = module.op().nested(WalkOrder::Pre).into_iter().filter(|o| linalg::is_structured(*o)).collect();
    // From the end: a root is met before the producers that it takes.
    for op in ops.into_iter().rev() {
        if taken.contains(&op) {
            continue;
        }
        let group = form_one(op, rw)?;
        taken.extend(group.iter().map(|(member, _)| *member));
        groups.push(group);
    }
    let cx = module.context();
    for (number, group) in groups.into_iter().rev().enumerate() {
        for (op, role) in group {
            rw.set_attr(op, DISPATCH, Attr::i64(cx, number as i64));
            rw.set_attr(op, ROLE, Attr::string(cx, role));
        }
    }
    Ok(())
}

fn form_one(op: Op, rw: &mut Rewriter) -> Result<Vec<(Op, &'static str)>, Diagnostics> {
    if let Some(input) = contraction_input(op) {
        let contraction = op.operand(input).defining_op().expect("invariant: contraction_input checked it");
        let root = chain_destination(op, input, rw)?;
        let mut group = vec![(root, "root"), (contraction, "producer")];
        group.extend(init_of(contraction).map(|fill| (fill, "init")));
        return Ok(group);
    }
    let mut group = vec![(op, "root")];
    group.extend(init_of(op).map(|fill| (fill, "init")));
    Ok(group)
}

/// The fill under an op that nothing else reads.
fn init_of(op: Op) -> Option<Op> {
    let fill = linalg::destination(op, 0).defining_op()?;
    (op.num_results() == 1 && fill.is("linalg.fill") && fill.result(0).uses().len() == 1).then_some(fill)
}

/// The input of an elementwise op that it can overwrite: the result of a contraction that nothing else reads, read with the
/// map and type of the op's own result, whose old destination it does not look at.
fn contraction_input(op: Op) -> Option<usize> {
    if !linalg::is_elementwise(op) || op.num_results() != 1 {
        return None;
    }
    let maps = linalg::indexing_maps(op)?;
    let inputs = linalg::num_inputs(op);
    let reads_destination = !op.body()?.arg(inputs).is_unused();
    let fits = |i: &usize| {
        let value = op.operand(*i);
        maps[*i] == maps[inputs]
            && maps[*i].is_identity()
            && value.ty() == op.result(0).ty()
            && value.uses().len() == 1
            && value.defining_op().is_some_and(|p| p.is("linalg.matmul"))
    };
    // The last of several: the others are dispatches before this one.
    if reads_destination { None } else { (0..inputs).rev().find(fits) }
}

/// Rewrites `op` to take `input` as its destination and read it there.
fn chain_destination(op: Op, input: usize, rw: &mut Rewriter) -> Result<Op, Diagnostics> {
    let cx = op.context();
    let inputs = linalg::num_inputs(op);
    let destination = op.operand(input);
    let mut operands: Vec<Value> = op.operands()[..inputs].to_vec();
    operands.remove(input);
    operands.push(destination);
    let mut maps = op.attr("indexing_maps").and_then(|a| a.as_array()).expect("invariant: a generic has maps");
    maps.remove(input);
    let body = op.body().expect("invariant: a generic has a body");
    rw.replace_all_uses(body.arg(input), body.arg(inputs));
    rw.erase_block_arg(body, input);
    let region = Region::new();
    rw.take_region(region, op.region(0));
    rw.set_point(InsertionPoint::Before(op));
    let new = rw.create(generic_spec(op, cx, &operands, &maps, region))?;
    rw.replace_op(op, &[new.result(0)]);
    Ok(new)
}

fn generic_spec<'a>(op: Op, cx: Context, operands: &[Value], maps: &[Attr], region: Region) -> OpSpec<'a> {
    let inputs = i32::try_from(operands.len() - 1).expect("invariant: fewer operands than i32 holds");
    let iterators = op.attr("iterator_types").expect("invariant: a generic has iterators");
    OpSpec::new("linalg.generic", op.location())
        .operands(operands)
        .results(&[op.result(0).ty()])
        .attr("operandSegmentSizes", Attr::dense_i32(cx, &[inputs, 1]))
        .attr("indexing_maps", Attr::array(cx, maps))
        .attr("iterator_types", iterators)
        .region(region)
}
