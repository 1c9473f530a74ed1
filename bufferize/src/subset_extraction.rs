//! Extract, before an insertion, the slice of its destination that it will overwrite.
//!
//! ```text
//! %r = tensor.insert_slice %a into %d[8] [4] [1]     %s = tensor.extract_slice %d[8] [4] [1]
//! linalg.copy ins(%a) outs(%d)                       %d itself
//! materialize_in_destination %a in %m (a memref)     %s = bufferization.to_tensor %m restrict writable
//! ```
//!
//! Requires: tensors. Ensures: the slice dominates its use; every change is an [`Edit`], and can be undone.
//! Pure operations that the slice depends on are moved up if only that is missing; whole dispatches on demand, behind the
//! assertions that guard them.
//! Source: MLIR's `SubsetInsertionOpInterface` and `eliminate-empty-tensors`, LLVM 22.

use monopour_ir::ops;
use std::collections::HashSet;

use monopour_ir::typed::{Index, Slice, tensor};
use monopour_ir::{
    Attr, Block, Diagnostics, InsertionPoint, Op, OpSpec, Rewriter, Type, Use, Value, WalkOrder, interfaces,
};

use crate::block_order::BlockOrder;
use crate::part_sizes::part_sizes;

/// How many operations may be moved for one destination: beyond it, the moves cost more than they can save.
const MOST_MOVES: usize = 64;

/// A change of the IR, in order.
pub(crate) enum Edit<'c> {
    /// An operand was replaced.
    Use {
        /// The operand.
        used: Use<'c>,
        /// Its old value.
        old: Value<'c>,
        /// The insertion that it serves.
        insertion: Op<'c>,
    },
    /// A later reader of the source reads the result.
    Reader {
        /// Its operand.
        used: Use<'c>,
        /// The source.
        old: Value<'c>,
    },
    /// An operation was created.
    Made(Op<'c>),
    /// An operation was moved up from before this one.
    Moved {
        /// The operation.
        op: Op<'c>,
        /// The op that followed it.
        next: Op<'c>,
    },
    /// The unit attribute `restrict` was moved from an operation to another one.
    Released(Op<'c>),
}

/// Undoes changes, the last one first.
pub(crate) fn undo<'c>(rw: &mut Rewriter<'c>, order: &mut BlockOrder<'c>, edits: Vec<Edit<'c>>) {
    for edit in edits.into_iter().rev() {
        match edit {
            Edit::Use { used, old, .. } | Edit::Reader { used, old } => rw.set_operand(used.op, used.index, old),
            Edit::Made(op) => {
                // Its address may be used again.
                order.forget();
                rw.erase(op);
            }
            Edit::Moved { op, next } => {
                order.forget();
                rw.move_before(op, next);
            }
            Edit::Released(op) => rw.set_attr(op, "restrict", Attr::unit(rw.context())),
        }
    }
}

/// The positions of source and destination of an operation that overwrites a slice of a tensor or buffer by a tensor.
pub(crate) fn insertion_operands(op: Op) -> Option<(usize, usize)> {
    let known =
        [ops::tensor::INSERT_SLICE, ops::tensor::PARALLEL_INSERT_SLICE, ops::bufferization::MATERIALIZE_IN_DESTINATION]
            .contains(&op.name());
    (known || (op.is(ops::linalg::COPY) && op.num_results() == 1)).then_some((0, 1))
}

/// The operands that the slice depends on.
pub(crate) fn needed_values<'c>(insertion: Op<'c>) -> Vec<Value<'c>> {
    let skipped = usize::from(!insertion.is(ops::linalg::COPY));
    let all = insertion.operands();
    // For a copy only the destination; for others all but the source, which comes first.
    if skipped == 0 { all[1..2].to_vec() } else { all[1..].to_vec() }
}

/// The slice of the destination, at the insertion point; `None` if it is not available.
///
/// # Errors
/// MLIR's diagnostics for the op.
pub(crate) fn extract<'c>(
    rw: &mut Rewriter<'c>,
    insertion: Op<'c>,
    edits: &mut Vec<Edit<'c>>,
) -> Result<Option<Value<'c>>, Diagnostics> {
    match insertion.name() {
        ops::linalg::COPY => Ok(Some(insertion.operand(1))),
        ops::bufferization::MATERIALIZE_IN_DESTINATION => whole(rw, insertion, edits),
        _ => {
            // The slice has the encoding of the source, and must have that of the destination.
            let encoding = |i: usize| insertion.operand(i).ty().as_tensor().map(|t| t.encoding);
            if encoding(0) == encoding(1) { slice(rw, insertion, edits).map(Some) } else { Ok(None) }
        }
    }
}

/// Lets the readers of the source that follow an insertion read the slice of its result. Read as the source, a slice of it would
/// conflict with the insertion, which overwrites it (with the same elements).
///
/// # Errors
/// MLIR's diagnostics for the op.
pub(crate) fn read_from_result<'c>(
    rw: &mut Rewriter<'c>,
    order: &mut BlockOrder<'c>,
    insertion: Op<'c>,
    edits: &mut Vec<Edit<'c>>,
) -> Result<(), Diagnostics> {
    let Some(parts) = Slice::of(insertion).filter(|_| insertion.is(ops::tensor::INSERT_SLICE)) else { return Ok(()) };
    let (source, readers) = (insertion.operand(0), late_readers(order, insertion));
    if readers.is_empty() {
        return Ok(());
    }
    rw.set_point(InsertionPoint::After(insertion));
    let slice = tensor::extract_slice(insertion.location(), insertion.result(0), &parts, source.ty());
    let slice = rw.create(slice)?;
    edits.push(Edit::Made(slice));
    for used in readers {
        rw.set_operand(used.op, used.index, slice.result(0));
        edits.push(Edit::Reader { used, old: source });
    }
    Ok(())
}

/// Uses of the source of an insertion that follow it.
fn late_readers<'c>(order: &mut BlockOrder<'c>, insertion: Op<'c>) -> Vec<Use<'c>> {
    let mut readers = insertion.operand(0).uses();
    readers.retain(|u| u.op != insertion && !u.op.is_terminator() && dominates(order, insertion, u.op));
    readers
}

/// Whether the source of an insertion has readers that follow it.
pub(crate) fn has_late_readers<'c>(order: &mut BlockOrder<'c>, insertion: Op<'c>) -> bool {
    insertion.is(ops::tensor::INSERT_SLICE) && !late_readers(order, insertion).is_empty()
}

/// Moves the readers of the source that follow the insertion before it, each with the op of the insertion's block that it is in, where
/// that can be.
pub(crate) fn move_late_readers<'c>(
    rw: &mut Rewriter<'c>,
    order: &mut BlockOrder<'c>,
    insertion: Op<'c>,
    edits: &mut Vec<Edit<'c>>,
) {
    for reader in late_readers(order, insertion).into_iter().filter_map(|used| used.op.beside(insertion)) {
        if order.is_before(insertion, reader) {
            move_before(rw, order, (reader, Movable::Nested), insertion, edits);
        }
    }
}

fn whole<'c>(
    rw: &mut Rewriter<'c>,
    insertion: Op<'c>,
    edits: &mut Vec<Edit<'c>>,
) -> Result<Option<Value<'c>>, Diagnostics> {
    let destination = insertion.operand(1);
    if destination.ty().is_tensor() {
        return Ok(Some(destination));
    }
    // Only one tensor may be the buffer: from now on the one created here.
    if insertion.attr("restrict").is_none() || destination.ty().shape().is_none() {
        return Ok(None);
    }
    let unit = Attr::unit(rw.context());
    let spec = OpSpec::new(ops::bufferization::TO_TENSOR, insertion.location())
        .operands(&[destination])
        .results(&[insertion.operand(0).ty()])
        .attr("restrict", unit)
        .attr("writable", unit);
    let tensor = rw.create(spec)?;
    edits.push(Edit::Made(tensor));
    rw.remove_attr(insertion, "restrict");
    edits.push(Edit::Released(insertion));
    Ok(Some(tensor.result(0)))
}

fn slice<'c>(rw: &mut Rewriter<'c>, insertion: Op<'c>, edits: &mut Vec<Edit<'c>>) -> Result<Value<'c>, Diagnostics> {
    let parts = Slice::of(insertion).expect("invariant: the op inserts a slice");
    let (source, destination) = (insertion.operand(0), insertion.operand(1));
    let slice = rw.create(tensor::extract_slice(insertion.location(), destination, &parts, source.ty()))?;
    edits.push(Edit::Made(slice));
    Ok(slice.result(0))
}

/// The insertion point for `used`, a use of the result of `empty`: at `empty`, or right after a needed value.
pub(crate) fn point_behind<'c>(
    order: &mut BlockOrder<'c>,
    empty: Op<'c>,
    used: Use<'c>,
    needed: &[Value<'c>],
) -> Option<InsertionPoint<'c>> {
    let behind = |value: &Value<'c>| match (value.defining_op(), value.block()) {
        (Some(op), _) => op.next().map(InsertionPoint::Before),
        (None, Some(block)) => block.first_op().map(InsertionPoint::Before),
        (None, None) => None,
    };
    let points = std::iter::once(Some(InsertionPoint::Before(empty))).chain(needed.iter().map(behind)).flatten();
    points.into_iter().find(|point| {
        let InsertionPoint::Before(at) = point else { return false };
        needed.iter().all(|v| is_there(order, *v, *at)) && (*at == used.op || dominates(order, *at, used.op))
    })
}

/// The operations that may be moved up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Movable {
    /// Pure ones without regions, as upstream does.
    Simple,
    /// Also linalg ops, branches, counted loops and dispatches of which every op is pure.
    Nested,
}

/// Moves the definitions of the needed values before the operation; whether all dominate it now.
///
/// Moves none if one cannot be moved.
pub(crate) fn move_before_use<'c>(
    rw: &mut Rewriter<'c>,
    order: &mut BlockOrder<'c>,
    user: Op<'c>,
    (needed, movable): (&[Value<'c>], Movable),
    edits: &mut Vec<Edit<'c>>,
) -> bool {
    let mut moves = Vec::new();
    needed.iter().all(|v| plan_moves(order, *v, user, movable, &mut moves)) && move_all(rw, order, user, moves, edits)
}

/// Moves an op and the definitions of its operands before another op of its block; false, and nothing is moved, if one cannot be.
/// An assertion moves as a pure op does.
pub(crate) fn move_before<'c>(
    rw: &mut Rewriter<'c>,
    order: &mut BlockOrder<'c>,
    (op, movable): (Op<'c>, Movable),
    to: Op<'c>,
    edits: &mut Vec<Edit<'c>>,
) -> bool {
    let mut moves = Vec::new();
    op.next().is_some() && plan_op(order, op, to, movable, &mut moves) && move_all(rw, order, to, moves, edits)
}

/// Moves ops, each before the op of its block that is or contains `user`; false, and nothing is moved, if one cannot be.
fn move_all<'c>(
    rw: &mut Rewriter<'c>,
    order: &mut BlockOrder<'c>,
    user: Op<'c>,
    moves: Vec<Op<'c>>,
    edits: &mut Vec<Edit<'c>>,
) -> bool {
    let planned: Option<Vec<(Op, Op)>> = moves.into_iter().map(|op| Some((op, user.beside(op)?))).collect();
    let Some(planned) = planned.filter(|all| all.iter().all(|(op, _)| op.next().is_some())) else { return false };
    for (op, anchor) in planned {
        if let Some(next) = op.next() {
            order.move_before(op, anchor);
            rw.move_before(op, anchor);
            edits.push(Edit::Moved { op, next });
        }
    }
    true
}

/// Whether `value` dominates `at`.
fn is_there<'c>(order: &mut BlockOrder<'c>, value: Value<'c>, at: Op<'c>) -> bool {
    match (value.defining_op(), value.block()) {
        (Some(op), _) => op != at && dominates(order, op, at),
        (None, Some(block)) => encloses(block, at).is_some_and(|inner| {
            inner.block() == Some(block) || inner.block().is_some_and(|other| block_dominates(block, other))
        }),
        (None, None) => false,
    }
}

/// Whether `first` dominates `second`; false for the op itself and its nested ops.
fn dominates<'c>(order: &mut BlockOrder<'c>, first: Op<'c>, second: Op<'c>) -> bool {
    let Some(block) = first.block() else { return false };
    let Some(anchor) = encloses(block, second) else { return false };
    match anchor.block() {
        Some(other) if other == block => anchor != first && order.is_before(first, anchor),
        Some(other) => block_dominates(block, other),
        None => false,
    }
}

/// The operation in the region of `block` that is or contains `inner`.
fn encloses<'c>(block: Block<'c>, inner: Op<'c>) -> Option<Op<'c>> {
    let region = block.region();
    let mut at = inner;
    while at.block().and_then(|b| b.region()) != region {
        at = at.parent()?;
    }
    Some(at)
}

/// Whether `block` dominates `to`.
fn block_dominates(block: Block, to: Block) -> bool {
    let Some(entry) = block.region().and_then(|r| r.entry()) else { return false };
    if block == entry || block == to {
        return true;
    }
    let (mut reached, mut waiting) = (HashSet::from([entry]), vec![entry]);
    while let Some(at) = waiting.pop() {
        if at == to {
            return false;
        }
        waiting.extend(at.successors().into_iter().filter(|next| *next != block && reached.insert(*next)));
    }
    true
}

/// Whether `value` dominates `user` once the operations in `moves` have been moved; appends to them, in order.
fn plan_moves<'c>(
    order: &mut BlockOrder<'c>,
    value: Value<'c>,
    user: Op<'c>,
    movable: Movable,
    moves: &mut Vec<Op<'c>>,
) -> bool {
    let Some(op) = value.defining_op().filter(|op| !moves.contains(op)) else {
        return value.defining_op().is_some() || is_there(order, value, user);
    };
    if is_there(order, value, user) {
        return true;
    }
    let Some(anchor) = user.beside(op).filter(|anchor| *anchor != op) else { return false };
    plan_op(order, op, anchor, movable, moves)
}

/// Whether `op` can move before `anchor`, an op of its block, with what it needs, and, with [`Movable::Nested`], behind the
/// assertions between the two, which may guard it; appends the moves, in order.
fn plan_op<'c>(
    order: &mut BlockOrder<'c>,
    op: Op<'c>,
    anchor: Op<'c>,
    movable: Movable,
    moves: &mut Vec<Op<'c>>,
) -> bool {
    if moves.len() >= MOST_MOVES || !(op.is(ops::cf::ASSERT) || may_move(op, movable)) {
        return false;
    }
    if !read_values(op).into_iter().all(|v| plan_moves(order, v, anchor, movable, moves)) {
        return false;
    }
    if movable == Movable::Nested && reads_elements(op) {
        for guard in order.asserts_between(Some(anchor), op) {
            if !moves.contains(&guard) && !plan_op(order, guard, anchor, movable, moves) {
                return false;
            }
        }
    }
    moves.push(op);
    true
}

/// Whether an op, if run unchecked, may leave a tensor.
fn reads_elements(op: Op) -> bool {
    !op.is(ops::tensor::DIM) && read_values(op).iter().any(|value| value.ty().is_tensor())
}

/// Whether the order of `op` and its neighbours does not matter; with [`Movable::Nested`] also for an op with others in
/// it.
pub(crate) fn may_move(op: Op, movable: Movable) -> bool {
    if op.regions().is_empty() {
        return interfaces::is_pure(op);
    }
    // Their effects are those of the ops inside of them, which are looked at, too.
    let is_border = |op: Op| {
        let names = [ops::scf::FORALL, ops::scf::FORALL_IN_PARALLEL, ops::tensor::PARALLEL_INSERT_SLICE];
        names.contains(&op.name()) || [ops::scf::IF, ops::scf::FOR].contains(&op.name())
    };
    movable == Movable::Nested && op.nested(WalkOrder::Pre).into_iter().all(|o| is_border(o) || interfaces::is_pure(o))
}

/// The operands of `op`, and the values that its regions capture.
pub(crate) fn read_values<'c>(op: Op<'c>) -> Vec<Value<'c>> {
    if op.regions().is_empty() {
        return op.operands();
    }
    let is_outside = |v: &Value<'c>| !v.block().and_then(Block::parent_op).is_some_and(|owner| owner.is_inside(op));
    let mut seen = HashSet::new();
    let read = op.nested(WalkOrder::Pre).into_iter().flat_map(Op::operands);
    read.filter(|v| is_outside(v) && seen.insert(*v)).collect()
}

/// The same elements in the shape before a reshape: `value` has the type of the reshape's result; `like`, if there is one, has the
/// sizes before it.
///
/// `None` if the layout of `value`'s buffer may not allow it, or the sizes are not known.
///
/// # Errors
/// MLIR's diagnostics for the op.
pub(crate) fn reshape_back<'c>(
    rw: &mut Rewriter<'c>,
    reshape: Op<'c>,
    (value, like): (Value<'c>, Option<Value<'c>>),
    edits: &mut Vec<Edit<'c>>,
) -> Result<Option<Value<'c>>, Diagnostics> {
    let (from, to) = (reshape.result(0).ty(), reshape.operand(0).ty());
    let (Some(shape), Some(groups)) = (to.shape(), reshape.attr("reassociation")) else { return Ok(None) };
    let mut operands = vec![value];
    let made = if reshape.is(ops::tensor::EXPAND_SHAPE) {
        if value.ty() != from || !(is_of_units(reshape) || lies_without_gaps(value, reshape)) {
            return Ok(None);
        }
        OpSpec::new(ops::tensor::COLLAPSE_SHAPE, reshape.location())
    } else {
        if value.ty() != from {
            return Ok(None);
        }
        let Some(sizes) = part_sizes(rw, reshape, (value, like), edits)? else { return Ok(None) };
        operands.extend(sizes);
        let sizes = Attr::dense_i64(rw.context(), &shape);
        OpSpec::new(ops::tensor::EXPAND_SHAPE, reshape.location()).attr("static_output_shape", sizes)
    };
    let made = rw.create(made.operands(&operands).results(&[to]).attr("reassociation", groups))?;
    edits.push(Edit::Made(made));
    Ok(Some(made.result(0)))
}

/// Whether the dimensions of each group of an expansion lie without gaps in the buffer of `value`: only the first one of a
/// group is sliced, all the way up to a new tensor.
fn lies_without_gaps<'c>(value: Value<'c>, expand: Op<'c>) -> bool {
    let groups = expand.attr("reassociation").and_then(|a| a.as_array()).unwrap_or_default();
    let inner: Vec<i64> = groups.iter().filter_map(|g| g.as_ints()).flat_map(|g| g.into_iter().skip(1)).collect();
    let is_whole = |slice: Op<'c>| {
        let (Some(parts), Some(shape)) = (Slice::of(slice), slice.operand(0).ty().shape()) else { return false };
        let whole = |d: usize| parts.sizes[d] == Index::Static(shape[d]) && parts.strides[d] == Index::Static(1);
        slice.result(0).ty().shape().is_some_and(|own| own.len() == shape.len())
            && inner.iter().all(|d| usize::try_from(*d).is_ok_and(whole))
    };
    let mut value = value;
    loop {
        let Some(op) = value.defining_op() else { return false };
        value = match op.name() {
            ops::tensor::EMPTY => return true,
            // A reshaped new tensor is a new tensor.
            ops::tensor::COLLAPSE_SHAPE | ops::tensor::EXPAND_SHAPE => {
                return op.operand(0).defining_op().is_some_and(|op| op.is(ops::tensor::EMPTY));
            }
            ops::tensor::EXTRACT_SLICE if is_whole(op) => op.operand(0),
            ops::tensor::INSERT_SLICE | ops::linalg::FILL => op.operand(1),
            ops::scf::FORALL => {
                let at = (0..op.num_results()).find(|i| op.result(*i) == value);
                match at {
                    Some(at) => op.operand(op.num_operands() - op.num_results() + at),
                    None => return false,
                }
            }
            _ => return false,
        };
    }
}

/// Whether each group of dimensions has at most one not of size 1: it is contiguous, whatever the strides.
fn is_of_units(expand: Op) -> bool {
    let shape = expand.result(0).ty().shape().unwrap_or_default();
    let groups = expand.attr("reassociation").and_then(|a| a.as_array()).unwrap_or_default();
    groups.iter().filter_map(Attr::as_ints).all(|group| {
        let size = |d: &i64| usize::try_from(*d).ok().and_then(|d| shape.get(d)).copied();
        group.iter().filter(|d| size(d) != Some(1)).count() <= 1
    })
}

/// Whether the types are ranked tensors of which one can be cast to the other.
pub(crate) fn may_cast(from: Type, to: Type) -> bool {
    let (Some(a), Some(b)) = (from.as_tensor(), to.as_tensor()) else { return false };
    a.element == b.element && a.encoding == b.encoding && a.shape.len() == b.shape.len()
}
