//! Indicators, pointers and frees as operations.

use crate::state::first_element;
use monopour_ir::control_flow::viewed;
use monopour_ir::ops;
use monopour_ir::typed;
use monopour_ir::{Diagnostics, InsertionPoint, Location, Op, OpSpec, Rewriter, Type, Value};

use crate::indicators::{If, if_owned};

type Made<'c> = Result<Value<'c>, Diagnostics>;

pub(super) fn bit<'c>(rw: &Rewriter<'c>) -> Type<'c> {
    Type::integer(rw.context(), 1)
}

/// The conjunction; the second if the first always holds.
pub(super) fn and<'c>(rw: &mut Rewriter<'c>, loc: Location<'c>, a: Option<Value<'c>>, b: Value<'c>) -> Made<'c> {
    match a {
        None => Ok(b),
        Some(a) => rw.binary(ops::arith::ANDI, a, b, loc),
    }
}

pub(super) fn or<'c>(rw: &mut Rewriter<'c>, loc: Location<'c>, a: Value<'c>, b: Value<'c>) -> Made<'c> {
    rw.binary(ops::arith::ORI, a, b, loc)
}

pub(super) fn not<'c>(rw: &mut Rewriter<'c>, loc: Location<'c>, a: Value<'c>) -> Made<'c> {
    let always = rw.const_bool(true, loc);
    rw.binary(ops::arith::XORI, a, always, loc)
}

/// The base buffer of a memref, as an allocation returned it.
fn base<'c>(rw: &mut Rewriter<'c>, loc: Location<'c>, value: Value<'c>) -> Made<'c> {
    let ty = value.ty();
    let index = Type::index(rw.context());
    let Some(memref) = ty.as_memref() else {
        if ty.shape().is_some() {
            return Ok(value);
        }
        // For an unranked memref the first element suffices.
        let first = Type::memref(&[], ty.element(), ty.memref_space());
        let spec = typed::memref::reinterpret_cast(loc, value, &first_element(), first);
        return Ok(rw.create(spec)?.result(0));
    };
    if memref.is_identity() {
        return Ok(value);
    }
    let mut results = vec![Type::memref(&[], memref.element, memref.memory_space), index];
    results.extend(std::iter::repeat_n(index, 2 * memref.shape.len()));
    let spec = OpSpec::new(ops::memref::EXTRACT_STRIDED_METADATA, loc).operands(&[value]).results(&results);
    Ok(rw.create(spec)?.result(0))
}

fn allocation<'c>(value: Value<'c>) -> Option<Op<'c>> {
    viewed(value).defining_op().filter(|op| op.is(ops::memref::ALLOC))
}

/// The condition under which a select of two allocations is this buffer; whether it must hold.
fn condition<'c>(selected: Value<'c>, buffer: Value<'c>) -> Option<(Value<'c>, bool)> {
    let select = viewed(selected).defining_op().filter(|op| op.is(ops::arith::SELECT))?;
    let of = [allocation(select.operand(1))?, allocation(select.operand(2))?];
    let at = of.iter().position(|alloc| Some(*alloc) == allocation(buffer))?;
    (of[0] != of[1]).then(|| (select.operand(0), at == 0))
}

/// Whether two memrefs are (parts of) one buffer: by the condition of a select if known, else by their addresses.
pub(super) fn same<'c>(rw: &mut Rewriter<'c>, loc: Location<'c>, a: Value<'c>, b: Value<'c>) -> Made<'c> {
    if let Some((condition, holds)) = condition(a, b).or_else(|| condition(b, a)) {
        return if holds { Ok(condition) } else { not(rw, loc, condition) };
    }
    let index = Type::index(rw.context());
    let mut pointer = |value| -> Made<'c> {
        let base = base(rw, loc, value)?;
        let spec = OpSpec::new(ops::memref::EXTRACT_ALIGNED_POINTER_AS_INDEX, loc).operands(&[base]).results(&[index]);
        Ok(rw.create(spec)?.result(0))
    };
    let (a, b) = (pointer(a)?, pointer(b)?);
    let equal = typed::arith::CmpIPredicate::Eq.to_attr(rw.context());
    let spec = OpSpec::new(ops::arith::CMPI, loc).operands(&[a, b]).results(&[bit(rw)]).attr("predicate", equal);
    Ok(rw.create(spec)?.result(0))
}

/// Frees the buffer of a memref before an operation, if the indicator is set.
pub(super) fn free<'c>(
    rw: &mut Rewriter<'c>,
    before: Op<'c>,
    value: Value<'c>,
    indicator: Option<Value<'c>>,
) -> Result<(), Diagnostics> {
    let (loc, point) = (before.location(), InsertionPoint::Before(before));
    let free = |rw: &mut Rewriter<'c>| {
        let base = base(rw, loc, value)?;
        rw.create(OpSpec::new(ops::memref::DEALLOC, loc).operands(&[base]))
    };
    rw.set_point(point);
    match indicator {
        None => free(rw).map(|_| ()),
        Some(indicator) => {
            let freed = |rw: &mut Rewriter<'c>| free(rw).map(|_| vec![]);
            if_owned(rw, If::new(point, loc, indicator, &[]), freed, |_| Ok(vec![])).map(|_| ())
        }
    }
}
