//! Elementwise fusion, then dispatches: the ops that run as one kernel, each with its role and its destination.
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
//! Ensures: every linalg op outside a forall is a `fill`, a `matmul` (f32, of rank 2) or a `generic` and belongs to one dispatch,
//! all of whose ops are in one block; transposes and broadcasts are folded into maps; no two ops share a `fill` or a
//! `tensor.empty`; the ops between those of a dispatch neither read its values nor are read by it through one another.
//! Batched, transposed and lower-rank products are generics: `products.rs` says which of their loops are which.
//! The loops of a reduction with one result are its result's dimensions, then the reductions.
//!
//! The forms of a dispatch, with the roles of its ops in program order (`monopour.member` counts them):
//!
//! | class | ops |
//! |---|---|
//! | elementwise | a pointwise `root` |
//! | contraction, convolution | \[`init`\], then the product as `root`, or the product as `producer` and a pointwise `root` that overwrites its result: it has the result as `outs`, read and written by the identity; one of another type, and on CPUs one that writes in another order, reads the result and has a destination of its own |
//! | row | a chain of `init` and `member`, then `root`: `rows.rs` |
//! | generic | any op as `root`, or another reduction as `producer` and a pointwise `root` as in a contraction |
//!
//! [`crate::attention`] joins three of them to one of the class attention, whose first product has the role `scores`.
//!
//! An epilogue's result may have many readers; the product's has one.
//! Differs from upstream's greedy fusion: a producer that computes is fused into a reduction only where the reduction reads each
//! of its elements once. Long reductions to one element are split (`split_reduction.rs`).

use crate::fuse_form::Rules;
use crate::{
    TargetDescription, computed_tables, early_joins, early_scales, fuse_form, fuse_limits, grouped_rows, joined_halves,
    linalg, merged_reductions, odd_products, packed_factors, products, quantised_rows, rolls, rounded_weights,
    several_results, siblings, side_by_side, single_rows, sliced_transposes, softmax_maximum, specialize,
    split_division, split_k, split_reduction, stored_order, turned,
};
use monopour_contract::attributes;
use monopour_ir::ops;
use monopour_ir::{
    AffineMap, CANONICALIZE_PROGRAM, Diagnostics, InsertionPoint, Module, Op, OpSpec, Rewriter, Value,
    drop_added_units, run_passes,
};
use std::collections::HashSet;
use tracing::{Level, enabled, trace};

/// Elements of a row that hardware GPUs hold in registers: 128 of each lane of a subgroup.
const MOST_HELD: i64 = 4_096;

/// Fuses, and forms the dispatches.
///
/// # Errors
/// Only what upstream's passes report.
pub fn run(module: &Module) -> Result<(), Diagnostics> {
    run_for(module, None)
}

/// As [`run`], for a target, of which nothing is known else; for a GPU, products read factors that are computed of fewer bytes, such as dequantised weights, as they
/// are stored, and compute them, and dispatches have several results where others read what they make on the way.
///
/// # Errors
/// As [`run`].
pub fn run_for(module: &Module, target: Option<&TargetDescription>) -> Result<(), Diagnostics> {
    let gpu = target.and_then(TargetDescription::gpu);
    let mut rw = Rewriter::new(module.context());
    drop_empty_loops(module, &mut rw);
    // Dims are resolved to inputs, so that a `tensor.dim` keeps no intermediate alive.
    let first = "func.func(linalg-generalize-named-ops),resolve-ranked-shaped-type-result-dims";
    run_passes(module.op(), &format!("builtin.module({first},{CANONICALIZE_PROGRAM},cse)"))?;
    prepare(module, target, &mut rw)?;
    let most_buffers = gpu.map_or(usize::MAX, |gpu| gpu.limits.max_storage_buffers as usize);
    let guarded = [guard_reductions(module, gpu.is_some(), &mut rw)?, guard_results(module, &mut rw)?];
    let guarded = guarded.into_iter().sum::<usize>() + guard_inputs(module, &mut rw)?;
    let anchors = guarded + guard_buffers(module, most_buffers, &mut rw)?;
    let fuse = format!("builtin.module(func.func(linalg-fuse-elementwise-ops),{CANONICALIZE_PROGRAM},cse)");
    let ops = enabled!(target: "fuse", Level::TRACE).then(|| count_ops(module));
    run_passes(module.op(), &fuse)?;
    if !module.op().find_all(ops::tensor::DIM).is_empty() {
        // The first round leaves a `tensor.dim` of intermediates, each of which is a second reader.
        let sizes = "resolve-ranked-shaped-type-result-dims";
        run_passes(module.op(), &format!("builtin.module({sizes},{CANONICALIZE_PROGRAM},cse)"))?;
        run_passes(module.op(), &fuse)?;
    }
    if siblings::run(module, &mut rw)? > 0 {
        // Operands that are read twice become one, and the value a part of the op.
        run_passes(module.op(), &format!("builtin.module({CANONICALIZE_PROGRAM},cse)"))?;
        run_passes(module.op(), &fuse)?;
    }
    if let Some(ops) = ops {
        let (loc, left) = (module.op().location(), count_ops(module));
        trace!(target: "fuse", "{loc}: elementwise fusion made {left} linalg ops of {ops}");
    }
    for anchor in find_anchors(module, anchors) {
        rw.erase(anchor);
    }
    if gpu.is_some() {
        packed_factors::run(module, &mut rw)?;
    }
    specialize::run(module)?;
    run_passes(module.op(), &format!("builtin.module({CANONICALIZE_PROGRAM},cse)"))?;
    products::normalize(module, &mut rw);
    merged_reductions::run(module, &mut rw)?;
    grouped_rows::run(module, &mut rw)?;
    softmax_maximum::run(module, &mut rw)?;
    split_reduction::run(module, &mut rw)?;
    rounded_weights::run(module, &mut rw)?;
    if let Some(gpu) = gpu {
        several_results::run(module, gpu.limits.max_storage_buffers, &mut rw)?;
        side_by_side::run(module, gpu, &mut rw)?;
        odd_products::run(module, gpu, &mut rw)?;
        split_k::run(module, gpu, &mut rw)?;
    }
    let turned = if gpu.is_none() { turned::run(module, &mut rw)? } else { HashSet::new() };
    unshare(module, &mut rw);
    let longest_held = gpu.filter(|gpu| !gpu.is_cpu_adapter()).map_or(0, |_| MOST_HELD);
    fuse_form::run(module, &Rules { most_buffers, gathers: gpu.is_none(), longest_held, turned }, &mut rw)
}

/// What makes fusion find more.
fn prepare<'c>(
    module: &'c Module<'c>,
    target: Option<&TargetDescription>,
    rw: &mut Rewriter<'c>,
) -> Result<(), Diagnostics> {
    stored_order::run(module, rw)?;
    computed_tables::run(module, rw)?;
    split_division::run(module, rw)?;
    early_scales::run(module, rw)?;
    joined_halves::run(module, rw)?;
    rolls::run(module, rw)?;
    early_joins::run(module, rw)?;
    slice_before_transposing(module, rw)?;
    quantised_rows::run(module, target, rw)?;
    if target.and_then(TargetDescription::gpu).is_none() {
        single_rows::run(module, rw)?;
    }
    duplicate_data_movement(module, rw);
    Ok(())
}

/// Slices of transposes as transposed slices.
fn slice_before_transposing<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    if !sliced_transposes::run(module, rw)? {
        return Ok(());
    }
    let simplify = || run_passes(module.op(), &format!("builtin.module({CANONICALIZE_PROGRAM},cse)"));
    simplify()?;
    // What reads the slices has the dimensions of one element that they had.
    drop_added_units(module.op());
    simplify()
}

fn count_ops(module: &Module) -> usize {
    linalg::structured_ops(module.op()).len()
}

/// Replaces the results of an op with an empty iteration space by its destinations.
fn drop_empty_loops<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) {
    for op in linalg::structured_ops(module.op()) {
        let empty = |v: &Value<'c>| v.ty().shape().is_some_and(|shape| shape.contains(&0));
        if op.num_results() > 0 && op.operands().iter().any(empty) {
            let destinations = op.operands().split_off(linalg::num_inputs(op));
            rw.replace_op(op, &destinations);
        }
    }
}

/// Gives each reader of a transpose or broadcast its own copy, so that all of them can fold it.
fn duplicate_data_movement<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) {
    for op in module.op().find_all(ops::linalg::GENERIC) {
        if linalg::is_data_movement(op) && linalg::num_inputs(op) > 0 {
            duplicate_per_use(op, rw);
        }
    }
}

pub(crate) fn duplicate_per_use<'c>(op: Op<'c>, rw: &mut Rewriter<'c>) {
    for use_ in op.result(0).uses().into_iter().skip(1) {
        rw.set_point(InsertionPoint::Before(op));
        let copy = rw.clone_op(op, |v| v);
        rw.insert(copy);
        rw.set_operand(use_.op, use_.index, copy.result(0));
    }
}

/// A second reader: `linalg-fuse-elementwise-ops` fuses producers with one reader only.
const ANCHOR: &str = ops::bufferization::DEALLOC_TENSOR;

/// Gives a second reader to each producer that computes something, or that [`crate::unfold`] made, and is read by a reduction
/// more than once per element. Weights that are computed of constants alone are fused also where the loops that do not index
/// them have one iteration: a product of one row unpacks them as it reads them.
fn guard_reductions<'c>(module: &'c Module<'c>, unpacks: bool, rw: &mut Rewriter<'c>) -> Result<usize, Diagnostics> {
    let mut count = 0;
    for op in module.op().find_all(ops::linalg::GENERIC) {
        if linalg::parallel_loops(op).is_none_or(|p| p.iter().all(|parallel| *parallel)) {
            continue;
        }
        let maps = linalg::indexing_maps(op).unwrap_or_default();
        let extents = linalg::loop_extents(op).unwrap_or_default();
        for (index, (value, map)) in op.operands().iter().zip(&maps[..linalg::num_inputs(op)]).enumerate() {
            let is_apart = unpacks && packed_factors::is_apart(op, index);
            let stays = |p: &Op<'c>| p.is(ops::linalg::GENERIC) && (!linalg::is_data_movement(*p) || is_unfolded(*p));
            let source = moved(*value);
            let Some(producer) = source.defining_op().filter(stays) else { continue };
            let stored = |v: &Value| v.defining_op().is_some_and(|def| def.is(ops::arith::CONSTANT));
            let weights = producer.operands()[..linalg::num_inputs(producer)].iter().all(stored);
            // Of a GPU's products those that shrink, of a CPU's those that are just extended.
            let is_narrow = if unpacks { shrinks(producer) } else { weights && linalg::is_extension(producer) };
            let is_part = is_narrow && source == *value && products::contraction_loops(op).is_some();
            let is_few = !unpacks && weights && stored_order::has_few_rows(op, index);
            let is_rounded = !unpacks && op.attr(attributes::ROUNDED_ROWS).is_some();
            let is_once = AffineMap::is_permutation(*map) || weights && reads_once(*map, &extents);
            if is_rounded && !weights {
                // Numbers are a part of the product, and how they were rounded is not; nor have those that make rows their blocks.
                let numbers = producer.operand(0);
                let blocks = numbers.defining_op().and_then(|op| op.operand(0).defining_op());
                rw.set_point(InsertionPoint::Before(op));
                for value in [numbers].into_iter().chain(blocks.map(|expand| expand.operand(0))) {
                    rw.create(OpSpec::new(ANCHOR, op.location()).operands(&[value]))?;
                    count += 1;
                }
            }
            if (is_few || is_rounded || is_once || is_part) && !is_apart {
                continue;
            }
            rw.set_point(InsertionPoint::Before(op));
            trace!(target: "fuse", "{}: not fused into the reduction at {}: it reads each element several times", producer.location(), op.location());
            // The reshape of weights stays too: their blocks would become loops of the reduction, and of what reads it.
            let is_whole = (weights || is_apart) && source != *value;
            for value in [source].into_iter().chain(is_whole.then_some(*value)) {
                rw.create(OpSpec::new(ANCHOR, op.location()).operands(&[value]))?;
                count += 1;
            }
        }
    }
    Ok(count)
}

/// Whether an op computes floats of fewer bytes elementwise, without `linalg.index`.
fn shrinks(op: Op) -> bool {
    linalg::is_elementwise(op) && packed_factors::shrinks(op) && op.find_all(ops::linalg::INDEX).is_empty()
}

/// Whether each element is read at one point: all loops of several iterations index it.
fn reads_once(map: AffineMap, extents: &[i64]) -> bool {
    let dims = map.dim_positions().filter(|_| map.is_projected_permutation());
    dims.is_some_and(|dims| (0..extents.len()).all(|d| extents[d] == 1 || dims.contains(&d)))
}

/// The value whose elements a reshape or a transpose has: fusion moves reshapes out of its way, and folds transposes.
fn moved(mut value: Value) -> Value {
    let moves = |op: &Op| match op.name() {
        ops::tensor::EXPAND_SHAPE | ops::tensor::COLLAPSE_SHAPE => true,
        ops::linalg::GENERIC => linalg::is_data_movement(*op) && linalg::num_inputs(*op) == 1 && !is_unfolded(*op),
        _ => false,
    };
    while let Some(op) = value.defining_op().filter(moves) {
        value = op.operand(0);
    }
    value
}

fn is_unfolded(op: Op) -> bool {
    op.attr(attributes::UNFOLDED).is_some()
}

/// Gives a second reader to what a result of the program is a reshape of: fusion would give a pointwise op the result's
/// dimensions, and leave the reshape between it and the convolution that it finishes; or the product of weights and values,
/// and leave it behind the softmax.
fn guard_results<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) -> Result<usize, Diagnostics> {
    let mut count = 0;
    for reshape in module.op().find_all(ops::tensor::EXPAND_SHAPE) {
        let returned = reshape.result(0).only_use().is_some_and(|reader| reader.op.is(ops::func::RETURN));
        let source = reshape.operand(0);
        let stays = |op: Op<'c>| linalg::is_elementwise(op) || is_batched_product(op) && adds_ones(reshape);
        if returned && source.defining_op().is_some_and(stays) {
            rw.set_point(InsertionPoint::Before(reshape));
            rw.create(OpSpec::new(ANCHOR, reshape.location()).operands(&[source]))?;
            count += 1;
        }
    }
    Ok(count)
}

/// Gives a second reader to each input without its dimensions of one element that a batched product reads, as it is or
/// transposed: fusion would give the product of queries and keys the input's dimensions, and leave a reshape between it and the
/// softmax.
fn guard_inputs<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) -> Result<usize, Diagnostics> {
    let mut count = 0;
    for reshape in module.op().find_all(ops::tensor::COLLAPSE_SHAPE) {
        let result = reshape.result(0);
        let drops_ones = reshape.operand(0).as_block_arg().is_some() && adds_ones(reshape);
        let read = result.only_use().filter(|_| drops_ones).map(|reader| reader.op);
        let moved = read.filter(|op| linalg::is_data_movement(*op) && linalg::num_inputs(*op) == 1);
        let reader = moved.map_or(read, |op| op.result(0).only_use().map(|reader| reader.op));
        if reader.is_some_and(is_batched_product) {
            rw.set_point(InsertionPoint::After(reshape));
            rw.create(OpSpec::new(ANCHOR, reshape.location()).operands(&[result]))?;
            count += 1;
        }
    }
    Ok(count)
}

/// Gives a second reader to each value with which its reader would bind more buffers than there are.
fn guard_buffers<'c>(module: &'c Module<'c>, most: usize, rw: &mut Rewriter<'c>) -> Result<usize, Diagnostics> {
    let crowded = fuse_limits::crowded(module, most);
    for (value, reader) in &crowded {
        trace!(target: "fuse", "{}: not fused into its reader: together they read more buffers than the device binds", reader.location());
        rw.set_point(InsertionPoint::Before(*reader));
        rw.create(OpSpec::new(ANCHOR, reader.location()).operands(&[*value]))?;
    }
    Ok(crowded.len())
}

/// Whether a reshape adds or drops dimensions of one element alone.
fn adds_ones(reshape: Op) -> bool {
    let several = |value: Value| value.ty().shape().unwrap_or_default().iter().filter(|e| **e != 1).count();
    several(reshape.operand(0)) == several(reshape.result(0))
}

fn is_batched_product(op: Op) -> bool {
    let loops = Some(op).filter(|op| op.is(ops::linalg::GENERIC)).and_then(products::contraction_loops);
    loops.is_some_and(|loops| !loops.batch.is_empty())
}

fn find_anchors<'c>(module: &'c Module<'c>, count: usize) -> Vec<Op<'c>> {
    if count == 0 { vec![] } else { module.op().find_all(ANCHOR) }
}

/// Every use of a `fill` or `tensor.empty` gets its own, in the branch or loop that uses it: a shared one is read after it was
/// overwritten, which costs a copy, one of two branches would be allocated for both, and one that a loop overwrites is copied in each
/// iteration.
pub(crate) fn unshare<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) {
    // Fills first: the copies of a fill share its `tensor.empty`.
    for name in [ops::linalg::FILL, ops::tensor::EMPTY] {
        for op in module.op().find_all(name) {
            if op.num_results() == 1 {
                duplicate_per_use(op, rw);
            }
        }
        for op in module.op().find_all(name) {
            if let Some(place) = place_of_use(op) {
                rw.move_before(op, place);
            }
        }
    }
}

/// The op before which an op with one use can move, into the innermost branches and loops around the use; into a loop only if that
/// overwrites it.
fn place_of_use<'c>(op: Op<'c>) -> Option<Op<'c>> {
    let [used] = op.results().first()?.uses()[..] else { return None };
    // A fill in a loop is repeated.
    let is_overwritten = match used.op.name() {
        _ if op.is(ops::tensor::EMPTY) => true,
        ops::tensor::INSERT_SLICE => used.index == 1,
        ops::tensor::EXTRACT_SLICE => false,
        _ => !linalg::is_structured(used.op) || used.index >= linalg::num_inputs(used.op),
    };
    let around: Vec<Op> = std::iter::successors(Some(used.op), |op| op.parent()).collect();
    let beside = around.iter().position(|around| around.block() == op.block())?;
    let is_entered = |op: &&Op| match op.name() {
        ops::scf::IF | ops::scf::INDEX_SWITCH => true,
        ops::scf::FOR | ops::scf::WHILE => is_overwritten,
        _ => false,
    };
    let entered = around[..=beside].iter().rev().take_while(is_entered).count().min(beside);
    (entered > 0).then(|| around[beside - entered])
}
