//! Forms the dispatches of each block: contractions and convolutions with their epilogues, then row groups, then other
//! reductions with their epilogues; every other op alone.

use crate::block_graph::BlockGraph;
use crate::dispatch::Role;
use crate::rows_form::{self, Group};
use crate::{fuse_limits, linalg, products};
use monopour_contract::attributes;
use monopour_ir::ops;
use monopour_ir::typed;
use monopour_ir::{
    AffineMap, Attr, Block, Diagnostics, InsertionPoint, Module, Op, OpSpec, Region, Rewriter, Value, WalkOrder,
};
use std::collections::{HashMap, HashSet};
use tracing::trace;

/// Ops of one dispatch in program order, without the fills.
type Formed<'c> = Vec<(Op<'c>, Role)>;

/// What a dispatch may be.
pub(crate) struct Rules<'c> {
    /// Buffers that it may bind.
    pub(crate) most_buffers: usize,
    /// Whether an op that reads elements at computed positions may be one of rows: on GPUs these are loop nests then.
    pub(crate) gathers: bool,
    /// Elements of the longest row that a dispatch may hold without a place in a result: in registers.
    pub(crate) longest_held: i64,
    /// Epilogues that write in another order than they read.
    pub(crate) turned: HashSet<Op<'c>>,
}

/// Forms the dispatches, and marks the ops.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(crate) fn run<'c>(module: &'c Module<'c>, rules: &Rules<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    let mut formed: HashMap<Op, Formed> = HashMap::new();
    for block in blocks(module) {
        for dispatch in form_block(block, rules, rw)? {
            let root = dispatch.last().expect("invariant: a dispatch has a root").0;
            formed.insert(root, dispatch);
        }
    }
    let cx = module.context();
    let mut number = 0;
    for root in module.op().nested(WalkOrder::Pre) {
        let Some(dispatch) = formed.remove(&root) else { continue };
        trace!(target: "fuse", "{}: dispatch {number}: {}", root.location(), described(&dispatch));
        let mut position = 0;
        let mut mark = |op: Op<'c>, role: Role| {
            rw.set_attr(op, attributes::DISPATCH, Attr::i64(cx, number));
            rw.set_attr(op, attributes::ROLE, Attr::string(cx, role.as_str()));
            rw.set_attr(op, attributes::MEMBER, Attr::i64(cx, position));
            position += 1;
        };
        for (op, role) in dispatch {
            inits_of(op).into_iter().for_each(|fill| mark(fill, Role::Init));
            mark(op, role);
        }
        number += 1;
    }
    Ok(())
}

/// The ops of a dispatch with their roles and places.
fn described(dispatch: &Formed) -> String {
    let each = dispatch.iter().map(|(op, role)| format!("{} {} at {}", role.as_str(), op.name(), op.location()));
    each.collect::<Vec<_>>().join(", ")
}

/// The blocks that hold linalg ops outside of any forall, in order.
pub(crate) fn blocks<'c>(module: &'c Module<'c>) -> Vec<Block<'c>> {
    let mut seen = HashSet::new();
    let ops = module.op().nested(WalkOrder::Pre).into_iter();
    let ops = ops.filter(|op| linalg::is_structured(*op) && op.ancestor(ops::scf::FORALL).is_none());
    ops.filter_map(Op::block).filter(|b| b.first_op().is_some_and(|first| seen.insert(first))).collect()
}

fn form_block<'c>(block: Block<'c>, rules: &Rules<'c>, rw: &mut Rewriter<'c>) -> Result<Vec<Formed<'c>>, Diagnostics> {
    let mut graph = BlockGraph::new(block);
    let mut taken: HashSet<Op> = HashSet::new();
    let is_product =
        |op: Op<'c>| products::contraction_loops(op).is_some() || products::convolution_loops(op).is_some();
    let joint = find_joint(&graph, &mut taken, is_product);
    let mut epilogues = find_epilogues(&graph, &mut taken, rules, is_product);
    taken.extend(graph.ops().iter().copied().filter(|op| !linalg::is_structured(*op) || is_product(*op)));
    let groups = rows_form::run(&mut graph, &taken, rules);
    let mut left: HashSet<Op> = taken.iter().copied().filter(|op| !is_product(*op)).collect();
    left.extend(groups.iter().flat_map(|g| g.members.iter().copied()));
    epilogues.extend(find_epilogues(&graph, &mut left, rules, |op| {
        op.is(ops::linalg::GENERIC) && linalg::parallel_loops(op).is_some_and(|p| p.contains(&false)) && !is_product(op)
    }));
    graph.order(rw);
    let mut formed = carry_out_joint(&joint, rw)?;
    formed.extend(carry_out(&graph, &groups, (&epilogues, &joint), rw)?);
    Ok(formed)
}

/// Products side by side, each with the op that finishes them.
fn find_joint<'c>(
    graph: &BlockGraph<'c>,
    taken: &mut HashSet<Op<'c>>,
    is_product: impl Fn(Op<'c>) -> bool,
) -> Vec<(Op<'c>, Op<'c>)> {
    let mut found = vec![];
    for op in graph.ops().iter().filter(|op| linalg::is_structured(**op) && op.num_results() > 1 && is_product(**op)) {
        let readers = op.results().into_iter().filter_map(|value| Some((value, value.only_use()?.op)));
        let finishes = |(value, reader): &(Value<'c>, Op<'c>)| {
            let whole = linalg::inputs_of_all_loops(*reader);
            graph.position(*reader).is_some() && whole.iter().any(|i| reader.operand(*i) == *value)
        };
        if let Some((_, reader)) = readers.into_iter().find(finishes).filter(|(_, reader)| !taken.contains(reader)) {
            taken.extend([*op, reader]);
            found.push((*op, reader));
        }
    }
    found
}

/// The results of products side by side are overwritten by what finishes them, as far as their types allow.
fn carry_out_joint<'c>(joint: &[(Op<'c>, Op<'c>)], rw: &mut Rewriter<'c>) -> Result<Vec<Formed<'c>>, Diagnostics> {
    let mut formed = vec![];
    for (product, finisher) in joint {
        let mut root = *finisher;
        for value in product.results() {
            let reads = |i: &usize| root.operand(*i) == value;
            let input = (0..linalg::num_inputs(root)).find(reads).filter(|_| value.only_use().is_some());
            if let Some(input) = input.filter(|_| free_result(root, value).is_some()) {
                root = chain_destination(root, input, rw)?;
            }
        }
        formed.push(vec![(*product, Role::Producer), (root, Role::Root)]);
    }
    Ok(formed)
}

/// An epilogue, and the operand by which it reads the reduction's result.
type Epilogue<'c> = (Op<'c>, usize);

/// From the end, so that the last of several readers is met first.
fn find_epilogues<'c>(
    graph: &BlockGraph<'c>,
    taken: &mut HashSet<Op<'c>>,
    rules: &Rules<'c>,
    accepts: impl Fn(Op<'c>) -> bool,
) -> Vec<Epilogue<'c>> {
    let mut found = vec![];
    for op in graph.ops().iter().rev().filter(|op| linalg::is_structured(**op)) {
        if taken.contains(op) || !fuse_limits::epilogue_fits(*op, rules.most_buffers) {
            continue;
        }
        let here = |p: Op<'c>| accepts(p) && graph.position(p).is_some();
        if let Some(input) = read_input(*op, rules, |p| here(p) && !taken.contains(&p)) {
            taken.extend(op.operand(input).defining_op());
            taken.insert(*op);
            found.push((*op, input));
        }
    }
    found
}

fn carry_out<'c>(
    graph: &BlockGraph<'c>,
    groups: &[Group<'c>],
    (epilogues, joint): (&[Epilogue<'c>], &[(Op<'c>, Op<'c>)]),
    rw: &mut Rewriter<'c>,
) -> Result<Vec<Formed<'c>>, Diagnostics> {
    let mut formed = vec![];
    let mut done: HashSet<Op> = joint.iter().flat_map(|(product, finisher)| [*product, *finisher]).collect();
    for group in groups {
        done.extend(group.members.iter().copied());
        let mut ops = vec![];
        for op in &group.members {
            let chained = group.chained.iter().find(|(reader, _)| reader == op);
            ops.push(chained.map_or(Ok(*op), |(_, operand)| chain_destination(*op, *operand, rw))?);
        }
        let last = ops.len() - 1;
        let role = |i: usize| if i == last { Role::Root } else { Role::Member };
        formed.push(ops.iter().enumerate().map(|(i, op)| (*op, role(i))).collect());
    }
    for (op, input) in epilogues {
        let producer = op.operand(*input).defining_op().expect("invariant: found by its producer");
        done.extend([*op, producer]);
        // An epilogue of another type or order has a destination of its own.
        let in_order = linalg::inputs_of_all_loops(*op).contains(input);
        let overwrites = in_order && op.results().iter().any(|result| op.operand(*input).ty() == result.ty());
        let root = if overwrites { chain_destination(*op, *input, rw)? } else { *op };
        formed.push(vec![(producer, Role::Producer), (root, Role::Root)]);
    }
    let fills = |op: &Op<'c>| op.is(ops::linalg::FILL) && is_init(*op);
    let alone = graph.ops().iter().filter(|op| !done.contains(op) && linalg::is_structured(**op) && !fills(op));
    formed.extend(alone.map(|op| vec![(*op, Role::Root)]));
    Ok(formed)
}

/// Whether a fill belongs to the dispatch of its only reader, which accumulates on it.
fn is_init(fill: Op) -> bool {
    let uses = fill.results().into_iter().flat_map(|r| r.uses()).collect::<Vec<_>>();
    let [only] = uses[..] else { return false };
    linalg::is_structured(only.op) && only.op.block() == fill.block() && only.index >= linalg::num_inputs(only.op)
}

/// The fills under an op that nothing else reads.
fn inits_of<'c>(op: Op<'c>) -> Vec<Op<'c>> {
    let destinations = op.operands().split_off(linalg::num_inputs(op));
    let fills = destinations.into_iter().filter_map(Value::defining_op);
    fills.filter(|fill| fill.is(ops::linalg::FILL) && !op.is(ops::linalg::FILL) && is_init(*fill)).collect()
}

/// The input that a pointwise op can overwrite or reads by its loops alone, if it is the result of an accepted op without other readers.
fn read_input<'c>(op: Op<'c>, rules: &Rules<'c>, accepts: impl Fn(Op<'c>) -> bool) -> Option<usize> {
    let fits = |i: &usize| {
        let value = op.operand(*i);
        let producer = value.defining_op().filter(|p| p.num_results() == 1);
        value.uses().len() == 1 && producer.is_some_and(|p| writes_in_order(p) && accepts(p))
    };
    // The last of several: the others are dispatches before this one.
    let inputs = if rules.turned.contains(&op) { read_in_order(op) } else { linalg::inputs_of_all_loops(op) };
    inputs.into_iter().rev().find(fits)
}

/// The inputs that are read by the loops in order.
fn read_in_order(op: Op) -> Vec<usize> {
    let maps = linalg::indexing_maps(op).unwrap_or_default();
    (0..linalg::num_inputs(op)).filter(|i| maps[*i].is_identity()).collect()
}

/// Whether the result's dimensions are the first loops, in order.
fn writes_in_order(op: Op) -> bool {
    if op.is(ops::linalg::MATMUL) {
        return true;
    }
    let map = linalg::indexing_maps(op).and_then(|maps| maps.last().copied());
    map.and_then(|m| m.dim_positions()).is_some_and(|d| d.iter().copied().eq(0..d.len()))
}

/// The first result of a value's type whose destination the op does not read.
fn free_result<'c>(op: Op<'c>, value: Value<'c>) -> Option<usize> {
    let (body, inputs) = (op.body()?, linalg::num_inputs(op));
    (0..op.num_results()).find(|i| op.result(*i).ty() == value.ty() && body.arg(inputs + i).is_unused())
}

/// Rewrites `op` with `input` as the destination of the first result of its type, read there.
pub(crate) fn chain_destination<'c>(op: Op<'c>, input: usize, rw: &mut Rewriter<'c>) -> Result<Op<'c>, Diagnostics> {
    let inputs = linalg::num_inputs(op);
    let destination = op.operand(input);
    let body = op.body().expect("invariant: a generic has a body");
    let result = free_result(op, destination).unwrap_or(0);
    let mut operands: Vec<Value> = op.operands();
    operands[inputs + result] = destination;
    operands.remove(input);
    let mut maps = linalg::indexing_maps(op).expect("invariant: a generic has maps");
    maps.remove(input);
    rw.replace_all_uses(body.arg(input), body.arg(inputs + result));
    rw.erase_block_arg(body, input);
    let region = Region::new();
    rw.take_region(region, op.region(0));
    rw.set_point(InsertionPoint::Before(op));
    let new = rw.create(generic_spec(op, &operands, &maps, region))?;
    rw.replace_op(op, &new.results());
    Ok(new)
}

fn generic_spec<'c, 'a>(
    op: Op<'c>,
    operands: &[Value<'c>],
    maps: &[AffineMap<'c>],
    region: Region<'c>,
) -> OpSpec<'c, 'a> {
    let iterators = op.attr("iterator_types").expect("invariant: a generic has iterators");
    let (inputs, outputs) = operands.split_at(operands.len() - op.num_results());
    typed::linalg::generic(op.location(), typed::linalg::Operands { inputs, outputs }, maps, iterators, region)
}
