//! A dealloc of several memrefs by lists of pointers and indicators, which loops compare.

use monopour_ir::ops;
use monopour_ir::typed::arith::CmpIPredicate;
use monopour_ir::typed::memref;
use monopour_ir::{Attr, Block, Diagnostics, InsertionPoint, Location, Op, OpSpec, Region, Rewriter, Type, Value};

use super::{Dealloc, compare, free_if, pointer_of};
use crate::indicators::{If, if_owned};

/// The lists that the loops read and write.
#[derive(Clone, Copy)]
pub(super) struct Lists<'c> {
    /// Pointers of the memrefs to free, and their indicators.
    pub(super) pointers: Value<'c>,
    pub(super) conditions: Value<'c>,
    /// Pointers of the retained memrefs.
    pub(super) retained: Value<'c>,
    /// Whether each memref is to be freed.
    pub(super) frees: Value<'c>,
    /// The indicators of the retained memrefs.
    pub(super) owned: Value<'c>,
}

/// Whether a memref equal to an earlier one is not freed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Earlier {
    /// Always, as in upstream's helper function.
    Keeps,
    /// If the earlier one is freed or retained: an owner after an alias without ownership still frees the memory.
    KeepsIfOwned,
}

/// Upstream's form: five lists on the heap, and a call.
pub(super) fn lower<'c>(
    op: Op<'c>,
    parts: &Dealloc<'c>,
    helper: &str,
    rw: &mut Rewriter<'c>,
) -> Result<Vec<Value<'c>>, Diagnostics> {
    let (cx, loc) = (op.context(), op.location());
    let (index, bit) = (Type::index(cx), Type::integer(cx, 1));
    let (count, kept) = (parts.memrefs.len(), parts.retained.len());
    let pointers = list(memref::alloc, loc, count, index, rw)?;
    let conditions = list(memref::alloc, loc, count, bit, rw)?;
    let retained = list(memref::alloc, loc, kept, index, rw)?;
    fill(op, parts, (pointers, conditions, retained), rw)?;
    let given = dynamic(loc, pointers, rw)?;
    let flags = dynamic(loc, conditions, rw)?;
    let mut given = vec![given, dynamic(loc, retained, rw)?, flags];
    let frees = list(memref::alloc, loc, count, bit, rw)?;
    let owned = list(memref::alloc, loc, kept, bit, rw)?;
    for memref in [frees, owned] {
        given.push(dynamic(loc, memref, rw)?);
    }
    rw.create(OpSpec::new(ops::func::CALL, loc).operands(&given).attr("callee", Attr::symbol(cx, helper)))?;
    let results = free_listed(op, parts, frees, owned, rw)?;
    for memref in [pointers, retained, conditions, frees, owned] {
        rw.create(OpSpec::new(ops::memref::DEALLOC, loc).operands(&[memref]))?;
    }
    Ok(results)
}

/// The same without a call, with lists in the scope around the operation.
pub(super) fn lower_on_stack<'c>(
    op: Op<'c>,
    parts: &Dealloc<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<Vec<Value<'c>>, Diagnostics> {
    let (cx, loc) = (op.context(), op.location());
    let (index, bit) = (Type::index(cx), Type::integer(cx, 1));
    let (count, kept) = (parts.memrefs.len(), parts.retained.len());
    // Once per call of the function, not once per iteration of a loop around the operation.
    if let Some(entry) = scope_of(op) {
        rw.set_point(InsertionPoint::Start(entry));
    }
    let pointers = list(memref::alloca, loc, count, index, rw)?;
    let conditions = list(memref::alloca, loc, count, bit, rw)?;
    let retained = list(memref::alloca, loc, kept, index, rw)?;
    let frees = list(memref::alloca, loc, count, bit, rw)?;
    let owned = list(memref::alloca, loc, kept, bit, rw)?;
    rw.set_point(InsertionPoint::Before(op));
    fill(op, parts, (pointers, conditions, retained), rw)?;
    let lists = Lists { pointers, conditions, retained, frees, owned };
    compare_all(loc, lists, Earlier::KeepsIfOwned, rw)?;
    rw.set_point(InsertionPoint::Before(op));
    free_listed(op, parts, frees, owned, rw)
}

/// The entry block of the allocation scope.
fn scope_of<'c>(op: Op<'c>) -> Option<Block<'c>> {
    const SCOPES: &[&str] =
        &[ops::scf::FORALL, ops::scf::PARALLEL, ops::gpu::LAUNCH, ops::memref::ALLOCA_SCOPE, ops::r#async::EXECUTE];
    let mut at = op.parent();
    while let Some(around) = at {
        if SCOPES.contains(&around.name()) || monopour_ir::control_flow::Traits::of(around).is_function() {
            return around.body();
        }
        at = around.parent();
    }
    None
}

fn list<'c>(
    room: impl Fn(Location<'c>, &[Value<'c>], Type<'c>) -> OpSpec<'c, 'static>,
    loc: Location<'c>,
    count: usize,
    element: Type<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<Value<'c>, Diagnostics> {
    let length = i64::try_from(count).unwrap_or(i64::MAX);
    let spec = room(loc, &[], Type::memref(&[length], element, None));
    Ok(rw.create(spec)?.result(0))
}

fn dynamic<'c>(loc: Location<'c>, memref: Value<'c>, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
    let ty = memref.ty().memref_of_shape(&[monopour_ir::DYNAMIC]);
    Ok(rw.create(OpSpec::new(ops::memref::CAST, loc).operands(&[memref]).results(&[ty]))?.result(0))
}

fn fill<'c>(
    op: Op<'c>,
    parts: &Dealloc<'c>,
    to: (Value<'c>, Value<'c>, Value<'c>),
    rw: &mut Rewriter<'c>,
) -> Result<(), Diagnostics> {
    let (pointers, conditions, retained) = to;
    for (i, memref) in parts.memrefs.iter().enumerate() {
        let pointer = pointer_of(op, *memref, rw)?;
        store_at(op.location(), pointer, pointers, i, rw)?;
    }
    for (i, condition) in parts.conditions.iter().enumerate() {
        store_at(op.location(), *condition, conditions, i, rw)?;
    }
    for (i, memref) in parts.retained.iter().enumerate() {
        let pointer = pointer_of(op, *memref, rw)?;
        store_at(op.location(), pointer, retained, i, rw)?;
    }
    Ok(())
}

/// Frees by the result of the loops, and reads the indicators of the retained memrefs.
fn free_listed<'c>(
    op: Op<'c>,
    parts: &Dealloc<'c>,
    frees: Value<'c>,
    owned: Value<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<Vec<Value<'c>>, Diagnostics> {
    let loc = op.location();
    for (i, memref) in parts.memrefs.iter().enumerate() {
        let frees = load_at(loc, frees, i, rw)?;
        free_if(op, frees, *memref, rw)?;
    }
    (0..parts.retained.len()).map(|i| load_at(loc, owned, i, rw)).collect()
}

fn number(position: usize) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}

fn store_at<'c>(
    loc: Location<'c>,
    value: Value<'c>,
    list: Value<'c>,
    at: usize,
    rw: &mut Rewriter<'c>,
) -> Result<(), Diagnostics> {
    let at = rw.const_index(number(at), loc);
    store(loc, value, list, at, rw)
}

fn store<'c>(
    loc: Location<'c>,
    value: Value<'c>,
    list: Value<'c>,
    at: Value<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<(), Diagnostics> {
    rw.create(OpSpec::new(ops::memref::STORE, loc).operands(&[value, list, at]))?;
    Ok(())
}

fn load_at<'c>(loc: Location<'c>, list: Value<'c>, at: usize, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
    let at = rw.const_index(number(at), loc);
    load(loc, list, at, rw)
}

fn load<'c>(
    loc: Location<'c>,
    list: Value<'c>,
    at: Value<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<Value<'c>, Diagnostics> {
    let spec = OpSpec::new(ops::memref::LOAD, loc).operands(&[list, at]).results(&[list.ty().element()]);
    Ok(rw.create(spec)?.result(0))
}

/// The loops that compare each pointer with all retained ones and with the earlier ones.
pub(super) fn compare_all<'c>(
    loc: Location<'c>,
    lists: Lists<'c>,
    earlier: Earlier,
    rw: &mut Rewriter<'c>,
) -> Result<(), Diagnostics> {
    let zero = rw.const_index(0, loc);
    let one = rw.const_index(1, loc);
    let always = rw.const_bool(true, loc);
    let never = rw.const_bool(false, loc);
    let length = |list: Value<'c>, rw: &mut Rewriter<'c>| {
        let spec = OpSpec::new(ops::memref::DIM, loc).operands(&[list, zero]).results(&[zero.ty()]);
        rw.create(spec).map(|op| op.result(0))
    };
    let count = length(lists.pointers, rw)?;
    let kept = length(lists.retained, rw)?;
    let to_kept = Range { loc, from: zero, to: kept, step: one };
    each(to_kept, None, rw, |i, _, rw| store(loc, never, lists.owned, i, rw).map(|()| None))?;
    each(Range { to: count, ..to_kept }, None, rw, |i, _, rw| {
        let pointer = load(loc, lists.pointers, i, rw)?;
        let condition = load(loc, lists.conditions, i, rw)?;
        let is_new = each(to_kept, Some(always), rw, |j, so_far, rw| {
            let other = load(loc, lists.retained, j, rw)?;
            let same = compare(CmpIPredicate::Eq, loc, other, pointer, rw)?;
            let note = |rw: &mut Rewriter<'c>| {
                let before = load(loc, lists.owned, j, rw)?;
                let now = rw.binary(ops::arith::ORI, before, condition, loc)?;
                store(loc, now, lists.owned, j, rw).map(|()| vec![])
            };
            let at = body_end(j);
            if_owned(rw, If::new(at, loc, same, &[]), note, |_| Ok(vec![]))?;
            both_differ(loc, (other, pointer), so_far, None, rw)
        })?;
        let goes = each(Range { to: i, ..to_kept }, is_new, rw, |j, so_far, rw| {
            let other = load(loc, lists.pointers, j, rw)?;
            let owns = match earlier {
                Earlier::Keeps => None,
                Earlier::KeepsIfOwned => Some(load(loc, lists.conditions, j, rw)?),
            };
            both_differ(loc, (other, pointer), so_far, owns, rw)
        })?;
        let frees = match goes {
            Some(goes) => rw.binary(ops::arith::ANDI, goes, condition, loc)?,
            None => condition,
        };
        store(loc, frees, lists.frees, i, rw).map(|()| None)
    })?;
    Ok(())
}

/// Whether the pointers differ, or the other has no owner, and `before` holds.
fn both_differ<'c>(
    loc: Location<'c>,
    (other, pointer): (Value<'c>, Value<'c>),
    so_far: Option<Value<'c>>,
    owns: Option<Value<'c>>,
    rw: &mut Rewriter<'c>,
) -> Result<Option<Value<'c>>, Diagnostics> {
    let mut differs = compare(CmpIPredicate::Ne, loc, other, pointer, rw)?;
    if let Some(owns) = owns {
        let always = rw.const_bool(true, loc);
        let is_idle = rw.binary(ops::arith::XORI, owns, always, loc)?;
        differs = rw.binary(ops::arith::ORI, differs, is_idle, loc)?;
    }
    match so_far {
        Some(so_far) => rw.binary(ops::arith::ANDI, so_far, differs, loc).map(Some),
        None => Ok(Some(differs)),
    }
}

/// The bounds of a loop.
#[derive(Clone, Copy)]
struct Range<'c> {
    loc: Location<'c>,
    from: Value<'c>,
    to: Value<'c>,
    step: Value<'c>,
}

/// The end of the loop body with this induction variable.
fn body_end<'c>(index: Value<'c>) -> InsertionPoint<'c> {
    let (block, _) = index.as_block_arg().expect("invariant: a loop's index is an argument of its body");
    InsertionPoint::End(block)
}

/// `scf.for` at the insertion point, which moves after it.
fn each<'c>(
    range: Range<'c>,
    init: Option<Value<'c>>,
    rw: &mut Rewriter<'c>,
    body: impl FnOnce(Value<'c>, Option<Value<'c>>, &mut Rewriter<'c>) -> Result<Option<Value<'c>>, Diagnostics>,
) -> Result<Option<Value<'c>>, Diagnostics> {
    let Range { loc, from, to, step } = range;
    let index = Type::index(rw.context());
    let mut args = vec![(index, loc)];
    args.extend(init.map(|value| (value.ty(), loc)));
    let region = Region::new();
    let block = Block::new(&args);
    region.append(block);
    let inits: Vec<Value> = init.into_iter().collect();
    let results: Vec<Type> = inits.iter().map(|value| value.ty()).collect();
    let spec =
        OpSpec::new(ops::scf::FOR, loc).operands(&[from, to, step]).operands(&inits).results(&results).region(region);
    let op = rw.create(spec)?;
    rw.set_point(InsertionPoint::End(block));
    let yielded: Vec<Value> = body(block.arg(0), init.map(|_| block.arg(1)), rw)?.into_iter().collect();
    rw.set_point(InsertionPoint::End(block));
    rw.create(OpSpec::new(ops::scf::YIELD, loc).operands(&yielded))?;
    rw.set_point(InsertionPoint::After(op));
    Ok(op.results().first().copied())
}
