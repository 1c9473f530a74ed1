//! Properties of a linalg op: its operands by role, its maps, its iterators.

use monopour_ir::ops;
use monopour_ir::typed::linalg::{IteratorType, iterator_types, iterator_types_attr};
use monopour_ir::{AffineExpr, AffineExprKind, AffineMap, Attr, Context, DYNAMIC, Op, Value, WalkOrder};
use std::collections::HashSet;

/// Ops of the linalg dialect that are not structured ops on tensors.
const NOT_STRUCTURED: [&str; 6] = [
    ops::linalg::PACK,
    ops::linalg::UNPACK,
    ops::linalg::SOFTMAX,
    ops::linalg::WINOGRAD_FILTER_TRANSFORM,
    ops::linalg::WINOGRAD_INPUT_TRANSFORM,
    ops::linalg::WINOGRAD_OUTPUT_TRANSFORM,
];

/// Whether this linalg op (or terminator of one) is supported.
pub(crate) fn is_supported(op: Op) -> bool {
    op.dialect() == "linalg" && !NOT_STRUCTURED.contains(&op.name())
}

/// A structured linalg op on tensors (not `linalg.yield` or `linalg.index`).
pub(crate) fn is_structured(op: Op) -> bool {
    op.dialect() == "linalg" && !matches!(op.name(), ops::linalg::YIELD | ops::linalg::INDEX)
}

/// All structured linalg ops in `root`, in pre-order, listed before any of them is rewritten.
pub(crate) fn structured_ops<'c>(root: Op<'c>) -> Vec<Op<'c>> {
    root.nested(WalkOrder::Pre).into_iter().filter(|op| is_structured(*op)).collect()
}

/// Number of operands before the destinations, of which there is one per result.
pub(crate) fn num_inputs(op: Op) -> usize {
    op.num_operands() - op.num_results()
}

/// Destination operand of a result.
pub(crate) fn destination<'c>(op: Op<'c>, result: usize) -> Value<'c> {
    op.operand(num_inputs(op) + result)
}

/// Indexing maps of a generic, or of a named op that carries them.
pub(crate) fn indexing_maps<'c>(op: Op<'c>) -> Option<Vec<AffineMap<'c>>> {
    op.attr("indexing_maps")?.as_array()?.iter().map(|a| a.as_affine_map()).collect()
}

/// Which loops of a generic are parallel.
pub(crate) fn parallel_loops(op: Op) -> Option<Vec<bool>> {
    Some(iterator_types(op)?.into_iter().map(|ty| ty == IteratorType::Parallel).collect())
}

/// Iterator types of parallel loops and of reductions.
pub(crate) fn iterators<'c>(cx: Context<'c>, parallel: &[bool]) -> Attr<'c> {
    let kind = |p: &bool| if *p { IteratorType::Parallel } else { IteratorType::Reduction };
    iterator_types_attr(cx, &parallel.iter().map(kind).collect::<Vec<_>>())
}

/// The ops that at most `steps` uses lead to from the results of `op`, or definitions from its operands.
pub(crate) fn neighbours<'c>(op: Op<'c>, steps: usize) -> HashSet<Op<'c>> {
    let mut found = near(op, steps, |op| op.results().into_iter().flat_map(|v| v.uses()).map(|u| u.op).collect());
    found.extend(near(op, steps, |op| op.operands().into_iter().filter_map(|v| v.defining_op()).collect()));
    found
}

/// The ops that at most so many steps lead to.
fn near<'c>(op: Op<'c>, steps: usize, step: impl Fn(Op<'c>) -> Vec<Op<'c>>) -> HashSet<Op<'c>> {
    let (mut found, mut last) = (HashSet::new(), vec![op]);
    for _ in 0..steps {
        last = last.into_iter().flat_map(&step).filter(|next| found.insert(*next)).collect();
    }
    found
}

/// Trip counts of a generic's loops: the extent that some operand gives each bare dimension.
pub(crate) fn loop_extents(op: Op) -> Option<Vec<i64>> {
    let maps = indexing_maps(op)?;
    let mut extents = vec![None; maps.first()?.num_dims()];
    for (map, operand) in maps.iter().zip(op.operands()) {
        let shape = operand.ty().shape().unwrap_or_default();
        for (expr, extent) in map.results().into_iter().zip(shape) {
            if let AffineExprKind::Dim(d) = expr.kind() {
                extents[d] = Some(extent);
            }
        }
    }
    extents.into_iter().collect()
}

/// Whether an op extends floats of 16 bits alone.
pub(crate) fn is_extension(op: Op) -> bool {
    let body = op.body().map(|body| body.ops()).unwrap_or_default();
    let extends = |op: &Op| op.is(ops::arith::EXTF) && op.operand(0).ty().float_width() == Some(16);
    is_elementwise(op) && matches!(&body[..], [first, _] if extends(first))
}

/// Whether all loops are parallel, results are written through permutations, operands are read through distinct dims, and
/// the body has neither `linalg.index` nor reads of other tensors.
pub(crate) fn is_elementwise(op: Op) -> bool {
    let (Some(maps), Some(parallel)) = (indexing_maps(op), parallel_loops(op)) else { return false };
    let inputs = num_inputs(op);
    op.is(ops::linalg::GENERIC)
        && parallel.iter().all(|p| *p)
        && maps.iter().all(|m| m.is_projected_permutation())
        && maps[inputs..].iter().all(|m| m.is_permutation())
        && op.find_all(ops::linalg::INDEX).is_empty()
        && op.find_all(ops::tensor::EXTRACT).is_empty()
}

/// Whether an op is elementwise, and operand `index` an input of it.
pub(crate) fn reads_elementwise(op: Op, index: usize) -> bool {
    is_elementwise(op) && index < num_inputs(op)
}

/// The inputs that a pointwise op of one result reads by the result's map, the identity. None if it reads its destination.
pub(crate) fn whole_inputs(op: Op) -> Vec<usize> {
    if op.num_results() == 1 { inputs_of_all_loops(op) } else { vec![] }
}

/// As [`whole_inputs`], of an op of several results, too.
pub(crate) fn inputs_of_all_loops(op: Op) -> Vec<usize> {
    let (Some(maps), Some(body)) = (indexing_maps(op), op.body()) else { return vec![] };
    let inputs = num_inputs(op);
    let reads_destinations = (inputs..op.num_operands()).any(|i| !body.arg(i).is_unused());
    if op.num_results() == 0 || !is_elementwise(op) || reads_destinations {
        return vec![];
    }
    let in_order = maps[inputs..].iter().all(|map| map.is_identity());
    (0..inputs).filter(|i| in_order && maps[*i].is_identity()).collect()
}

/// Of [`whole_inputs`] those of the result's type, which it can overwrite.
pub(crate) fn overwritable_inputs(op: Op) -> Vec<usize> {
    whole_inputs(op).into_iter().filter(|i| op.operand(*i).ty() == op.result(0).ty()).collect()
}

/// Whether the body only moves data: it yields its arguments and computes nothing.
pub(crate) fn is_data_movement(op: Op) -> bool {
    op.is(ops::linalg::GENERIC) && op.body().is_some_and(|b| b.ops().len() == 1)
}

/// The loops that may be tiled: those for which upstream's tiling computes the right slices.
///
/// It evaluates each map at the first and last iteration of the tile, untiled loops included: right for bare dimensions and
/// for sums of dimensions with positive factors. An op with any other expression (a reversed dimension, an offset, a
/// remainder) is not tiled.
pub(crate) fn can_tile_loops(op: Op) -> Vec<bool> {
    let maps = indexing_maps(op).unwrap_or_default();
    let can = maps.iter().flat_map(|m| m.results()).all(|e| is_positive_sum(e) || is_constant(e));
    vec![can; maps.first().map_or(0, |m| m.num_dims())]
}

/// As [`can_tile_loops`] for the parallel loops, if no other one is tiled: a dimension that only reductions index is read
/// whole.
fn can_tile_parallel_loops(op: Op, parallel: &[bool]) -> bool {
    let maps = indexing_maps(op).unwrap_or_default();
    let is_whole = |e: AffineExpr| e.dims().iter().all(|d| !parallel[*d]);
    maps.iter().flat_map(|m| m.results()).all(|e| is_positive_sum(e) || is_constant(e) || is_whole(e))
}

fn is_positive_sum(expr: AffineExpr) -> bool {
    match expr.kind() {
        AffineExprKind::Dim(_) => true,
        AffineExprKind::Add(l, r) => is_positive_sum(l) && is_positive_sum(r),
        AffineExprKind::Mul(l, r) => {
            matches!(r.kind(), AffineExprKind::Constant(c) if c > 0) && matches!(l.kind(), AffineExprKind::Dim(_))
        }
        _ => false,
    }
}

fn is_constant(expr: AffineExpr) -> bool {
    matches!(expr.kind(), AffineExprKind::Constant(_))
}

/// The loops of a fill, matmul or generic.
#[derive(Clone, Debug)]
pub(crate) struct Loops {
    /// Trip counts.
    pub extents: Vec<i64>,
    /// The loops that may be tiled: parallel, and in maps that upstream's tiling slices correctly.
    pub tileable: Vec<bool>,
}

/// The loops of an op; `None` where the trip count of one cannot be read from a bare dimension.
pub(crate) fn loops(op: Op) -> Option<Loops> {
    match op.name() {
        ops::linalg::FILL => {
            let extents = op.result(0).ty().shape()?;
            Some(Loops { tileable: vec![true; extents.len()], extents })
        }
        ops::linalg::MATMUL => {
            let mut extents = op.result(0).ty().shape()?;
            extents.push(matmul_reduction(op)?);
            Some(Loops { extents, tileable: vec![true, true, false] })
        }
        _ => {
            let parallel = parallel_loops(op)?;
            let can = can_tile_parallel_loops(op, &parallel);
            let tileable = parallel.into_iter().map(|parallel| can && parallel).collect();
            Some(Loops { extents: loop_extents(op)?, tileable })
        }
    }
}

/// Trip count of a matmul's reduction.
pub(crate) fn matmul_reduction(op: Op) -> Option<i64> {
    let shape = op.operand(0).ty().shape()?;
    // Without maps the reduction is the last dimension of the left operand.
    let positions = match indexing_maps(op) {
        Some(maps) => maps[0].dim_positions()?,
        None => vec![0, 2],
    };
    positions.iter().position(|d| *d == 2).map(|i| shape[i])
}

/// An extent for the cost model: a middling one for a dynamic extent, at least one.
pub(crate) fn known(extent: i64) -> i64 {
    if extent == DYNAMIC { 1_024 } else { extent.max(1) }
}

/// The reassociation of a reshape that leaves out, or adds, all dimensions of one element that are not `kept`, of `rank`: a group
/// begins with the dimension that is kept, the first one with those before it.
pub(crate) fn groups_around<'c>(cx: Context<'c>, kept: &[usize], rank: usize) -> Attr<'c> {
    let begin = |group: usize| if group == 0 { 0 } else { kept[group] };
    let end = |group: usize| kept.get(group + 1).copied().unwrap_or(rank);
    let group = |g: usize| Attr::array(cx, &(begin(g)..end(g)).map(|d| Attr::i64(cx, d as i64)).collect::<Vec<_>>());
    Attr::array(cx, &(0..kept.len()).map(group).collect::<Vec<_>>())
}
