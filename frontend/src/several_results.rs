//! Joins an elementwise op to the one that makes a value which others read, too: one dispatch that writes both results.
//!
//! Before / after, where `%y` and `%z` are returned:
//!
//! ```text
//! %y = generic ins(%m, %b) { addf }           %r:2 = generic ins(%m, %b) { addf; maximumf of the sum; yield both }
//! %z = generic ins(%y) { maximumf }
//! ```
//!
//! So too where both read the same product, and where the value is the product itself, which the new op then yields as
//! it is. The op is the epilogue of the product, or a dispatch of its own.
//!
//! Requires: elementwise fusion is done: a value with one reader is fused into it.
//! Limits: values of static shape; no op that rows are reduced of, or that finishes another product: these have
//! dispatches to join. The dispatch binds no more buffers than the device has.

use crate::{joined_op, linalg, rows};
use monopour_ir::typed::linalg::{Operands, generic};
use monopour_ir::{
    AffineMap, Block, Builder, DYNAMIC, Diagnostics, InsertionPoint, Module, Op, OpSpec, Region, Rewriter, Value,
    WalkOrder, ops,
};
use std::cmp::Ordering;
use std::collections::HashSet;
use tracing::trace;

/// Joins where possible; returns the number of new ops. `most_buffers`: what a dispatch may bind.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(crate) fn run<'c>(module: &'c Module<'c>, most_buffers: u32, rw: &mut Rewriter<'c>) -> Result<usize, Diagnostics> {
    let (mut count, mut gone) = (0, HashSet::new());
    for mut op in linalg::structured_ops(module.op()) {
        while !gone.contains(&op) {
            let Some(pair) = Pair::of(op, most_buffers) else { break };
            gone.extend([pair.first, Some(pair.second)].into_iter().flatten());
            let joined = pair.join(rw)?;
            trace!(target: "fuse", "{}: an op of {} results", joined.location(), joined.num_results());
            // A product has its readers joined until there is one.
            op = if gone.contains(&op) { joined } else { op };
            count += 1;
        }
    }
    Ok(count)
}

/// Two ops that become one.
struct Pair<'c> {
    /// `None`: `value` itself, as it is.
    first: Option<Op<'c>>,
    second: Op<'c>,
    /// What the second one reads of the first, or both read.
    value: Value<'c>,
    /// Whether they become one in the place of the second op, else of the first.
    late: bool,
}

impl<'c> Pair<'c> {
    /// The op, or a reader of it, and the next reader that fits.
    fn of(op: Op<'c>, most_buffers: u32) -> Option<Self> {
        let reduces = linalg::parallel_loops(op).is_some_and(|parallel| parallel.contains(&false));
        let pairs: Vec<Self> = if reduces || op.is(ops::linalg::MATMUL) {
            Self::of_reduction(op).into_iter().collect()
        } else if is_pointwise(op) {
            let values = op.results().into_iter();
            let pairs = values.flat_map(|value| whole_readers(value).into_iter().map(move |second| (value, second)));
            pairs.filter_map(|(value, second)| Self::at(Some(op), second, value)).collect()
        } else {
            vec![]
        };
        pairs.into_iter().find(|pair| pair.is_apart() && pair.buffers() <= most_buffers as usize)
    }

    /// The first two readers of a product, or the only one and the value itself, which others read.
    fn of_reduction(op: Op<'c>) -> Option<Self> {
        let value = Some(op.results()).filter(|results| results.len() == 1)?[0];
        match whole_readers(value)[..] {
            [] => None,
            [second] if value.uses().iter().all(|u| u.op == second) => None,
            [second] => Self::at(None, second, value),
            [first, second, ..] => Self::at(Some(first), second, value),
        }
    }

    /// The pair in the place of the second op, else of the first, as what it reads and what reads it allow.
    fn at(first: Option<Op<'c>>, second: Op<'c>, value: Value<'c>) -> Option<Self> {
        let maker = first.or(value.defining_op())?;
        let made: Vec<Value> = first.map_or(vec![value], |op| op.results());
        let later = |reader: Op<'c>| {
            reader == second || stands_in(second, reader).is_some_and(|r| second.is_before_in_block(r))
        };
        let earlier = |v: &Value<'c>| {
            let inside = v.defining_op().and_then(|def| stands_in(maker, def).map(|d| (def, d)));
            made.contains(v) || inside.is_none_or(|(def, d)| d.is_before_in_block(maker) || def.is(ops::tensor::EMPTY))
        };
        let late = made.iter().flat_map(|v| v.uses()).all(|u| later(u.op));
        (late || operands_of(second).iter().all(earlier)).then_some(Self { first, second, value, late })
    }

    /// Whether neither op has another dispatch to join: rows, or another product that it finishes.
    fn is_apart(&self) -> bool {
        let both: Vec<Op> = self.first.into_iter().chain([self.second]).collect();
        let values = both.iter().flat_map(|op| op.results()).chain([self.value]);
        let read_by_rows = values.flat_map(|v| v.uses()).any(|u| rows::reduced_rows(u.op).is_some());
        let defs = both.iter().flat_map(|op| op.operands()).filter_map(Value::defining_op);
        let reads_rows = defs.into_iter().any(|def| rows::reduced_rows(def).is_some());
        let finished: HashSet<Value> = both.iter().flat_map(|op| finished(*op)).chain(reduced(self.value)).collect();
        !read_by_rows && !reads_rows && finished.len() <= 1
    }

    /// Buffers that the dispatch binds.
    fn buffers(&self) -> usize {
        let both: Vec<Op> = self.first.into_iter().chain([self.second]).collect();
        let own: HashSet<Value> = both.iter().flat_map(|op| op.operands()).collect();
        let inside = |v: &Value<'c>| both.iter().any(|op| op.results().contains(v));
        let product = own.iter().chain([&self.value]).filter_map(|v| reduced(*v)).filter_map(Value::defining_op).next();
        let read: HashSet<Value> = product.into_iter().flat_map(|op| op.operands()).collect();
        let all = own.iter().filter(|v| !inside(v) && reduced(**v).is_none()).chain(&read);
        all.collect::<HashSet<_>>().len() + usize::from(self.first.is_none())
    }

    fn join(self, rw: &mut Rewriter<'c>) -> Result<Op<'c>, Diagnostics> {
        let Self { first, second, value, late } = self;
        let first = match (first, value.defining_op().filter(|_| !late)) {
            (Some(op), _) => op,
            (None, Some(maker)) => copy_of(value, second, InsertionPoint::After(maker), rw)?,
            (None, None) => copy_of(value, second, InsertionPoint::Before(second), rw)?,
        };
        let place = if late { second } else { first };
        for destination in second.operands().split_off(linalg::num_inputs(second)) {
            if let Some(empty) = destination.defining_op().filter(|def| !late && def.is(ops::tensor::EMPTY)) {
                rw.move_before(empty, first);
            }
        }
        joined_op::join(&[first, second], InsertionPoint::Before(place), rw)
    }
}

/// An op that yields `value`; all readers but `reader` get its result.
fn copy_of<'c>(
    value: Value<'c>,
    reader: Op<'c>,
    point: InsertionPoint<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<Op<'c>, Diagnostics> {
    let (cx, loc, element) = (rw.context(), reader.location(), value.ty().element());
    rw.set_point(point);
    let others: Vec<_> = value.uses().into_iter().filter(|u| u.op != reader).collect();
    let empty = rw.create(OpSpec::new(ops::tensor::EMPTY, loc).results(&[value.ty()]))?.result(0);
    let block = Block::new(&[(element, loc), (element, loc)]);
    let region = Region::new();
    region.append(block);
    Builder::new(cx, InsertionPoint::End(block))
        .create(OpSpec::new(ops::linalg::YIELD, loc).operands(&[block.arg(0)]))?;
    let rank = value.ty().shape().map_or(0, |shape| shape.len());
    let maps = [AffineMap::select(cx, rank, &(0..rank).collect::<Vec<_>>()); 2];
    let iterators = reader.attr("iterator_types").expect("invariant: a generic has iterators");
    let operands = Operands { inputs: &[value], outputs: &[empty] };
    let copy = rw.create(generic(loc, operands, &maps, iterators, region))?;
    for use_ in others {
        rw.set_operand(use_.op, use_.index, copy.result(0));
    }
    Ok(copy)
}

/// Whether an op of static sizes is elementwise, writes by its loops and does not read its destinations.
fn is_pointwise(op: Op) -> bool {
    let (Some(maps), Some(extents)) = (linalg::indexing_maps(op), linalg::loop_extents(op)) else { return false };
    let inputs = linalg::num_inputs(op);
    let unread = |body: Block| (inputs..op.num_operands()).all(|i| body.arg(i).is_unused());
    linalg::is_elementwise(op)
        && inputs > 0
        && op.num_results() > 0
        && maps[inputs..].iter().all(|m| m.is_identity())
        && !extents.contains(&DYNAMIC)
        && !extents.contains(&0)
        && op.body().is_some_and(unread)
}

/// The pointwise ops that read a value by their loops alone, in program order.
fn whole_readers<'c>(value: Value<'c>) -> Vec<Op<'c>> {
    let block = value.block();
    let mut found: Vec<Op> = vec![];
    for reader in value.uses() {
        let op = reader.op;
        if !found.contains(&op) && op.block() == block && is_pointwise(op) && reads_whole(op, value) {
            found.push(op);
        }
    }
    found.sort_by(|a, b| if a.is_before_in_block(*b) { Ordering::Less } else { Ordering::Greater });
    found
}

/// Whether an op reads a value by the identity, wherever it reads it.
fn reads_whole(op: Op, value: Value) -> bool {
    let maps = linalg::indexing_maps(op).unwrap_or_default();
    op.operands().iter().zip(maps).filter(|(v, _)| **v == value).all(|(_, map)| map.is_identity())
}

/// What an op and its body read.
fn operands_of<'c>(op: Op<'c>) -> Vec<Value<'c>> {
    let inside = |v: &Value<'c>| match v.defining_op() {
        Some(def) => def != op && def.is_inside(op),
        None => v.block().and_then(Block::parent_op) == Some(op),
    };
    op.nested(WalkOrder::Pre).into_iter().flat_map(Op::operands).filter(|v| !inside(v)).collect()
}

/// The op of `near`'s block that an op is, or is nested in.
fn stands_in<'c>(near: Op<'c>, op: Op<'c>) -> Option<Op<'c>> {
    let mut at = Some(op);
    while let Some(found) = at {
        if found.block() == near.block() {
            return Some(found);
        }
        at = found.parent();
    }
    None
}

/// The value, if it is the result of a reduction.
fn reduced(value: Value<'_>) -> Option<Value<'_>> {
    let reduces =
        |def: &Op| linalg::parallel_loops(*def).is_some_and(|p| p.contains(&false)) || def.is(ops::linalg::MATMUL);
    value.defining_op().filter(|def| linalg::is_structured(*def) && reduces(def)).map(|_| value)
}

/// The results of reductions that an op may finish: it reads them by its loops.
fn finished<'c>(op: Op<'c>) -> Vec<Value<'c>> {
    let inputs = &op.operands()[..linalg::num_inputs(op)];
    inputs.iter().copied().filter_map(reduced).filter(|v| reads_whole(op, *v)).collect()
}
