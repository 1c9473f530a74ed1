//! Guards indices and divisors in kernels: cases that the source leaves undefined get one meaning on all devices, so that no
//! kernel leaves its buffers or ends the process.
//!
//! Before / after, in the body of a linalg op:
//!
//! ```text
//! %v = tensor.extract %t[%i] : tensor<6xf32>      %a = arith.minsi %i, %c5; %b = arith.maxsi %a, %c0
//!                                                 %v = tensor.extract %t[%b]
//! %q = arith.divsi %x, %y                         %d = arith.select %y is 0 or -1, %c1, %y; %r = arith.divsi %x, %d
//!                                                 %n = arith.subi %c0, %x; %q = arith.select %y is -1, %n, %r
//! ```
//!
//! An index out of range names the nearest element; a tensor without elements gives 0. A divisor of 0 counts as 1, and -1
//! negates, which wraps.
//! Requires: what `decompose` ensures.
//! Ensures: the above; an index or divisor that is provably in range stays as it is (`ranges.rs`).

use super::ranges;
use crate::linalg;
use monopour_ir::ops;
use monopour_ir::typed::arith::CmpIPredicate;
use monopour_ir::{
    Attr, DYNAMIC, Diagnostics, InsertionPoint, Location, Module, Op, OpSpec, Rewriter, Type, Value, WalkOrder,
};

/// Guards the bodies of all linalg ops of `module`.
///
/// # Errors
/// MLIR's, none on verified IR.
pub(super) fn run(module: &Module) -> Result<(), Diagnostics> {
    let mut guard = Guard { rw: Rewriter::new(module.context()) };
    for kernel in linalg::structured_ops(module.op()) {
        for op in kernel.nested(WalkOrder::Post) {
            match op.name() {
                ops::tensor::EXTRACT => guard.extract(kernel, op)?,
                name if is_division(name) => guard.division(op)?,
                _ => {}
            }
        }
    }
    Ok(())
}

/// Integer ops that are undefined for some operands.
pub(super) fn is_division(name: &str) -> bool {
    is_signed_quotient(name)
        || matches!(name, ops::arith::REMSI | ops::arith::DIVUI | ops::arith::REMUI | ops::arith::CEILDIVUI)
}

fn is_signed_quotient(name: &str) -> bool {
    matches!(name, ops::arith::DIVSI | ops::arith::FLOORDIVSI | ops::arith::CEILDIVSI)
}

/// Shifts, which are undefined from the width on.
pub(super) fn is_shift(name: &str) -> bool {
    matches!(name, ops::arith::SHLI | ops::arith::SHRSI | ops::arith::SHRUI)
}

/// Bits of a scalar integer; an index of host code has 64.
pub(super) fn bits(ty: Type) -> Option<u32> {
    if ty.is_index() { Some(64) } else { ty.integer_width() }
}

/// Whether a divisor is provably neither 0 nor, of a signed op, -1.
pub(super) fn is_safe_divisor(op: Op) -> bool {
    let signed = op.name().ends_with("si");
    let excludes_zero = |r: ranges::Range| r.low > 0 || r.high < if signed { -1 } else { 0 };
    ranges::of(op.operand(1)).is_some_and(excludes_zero)
}

/// Creates ops at the insertion point.
pub(super) struct Guard<'c> {
    pub(super) rw: Rewriter<'c>,
}

impl<'c> Guard<'c> {
    /// An op with one result.
    pub(super) fn op(
        &mut self,
        name: &str,
        loc: Location<'c>,
        operands: &[Value<'c>],
        ty: Type<'c>,
    ) -> Result<Value<'c>, Diagnostics> {
        Ok(self.rw.create(OpSpec::new(name, loc).operands(operands).results(&[ty]))?.result(0))
    }

    /// A constant of an integer type, index or a float type.
    pub(super) fn constant(&mut self, loc: Location<'c>, ty: Type<'c>, value: i64) -> Result<Value<'c>, Diagnostics> {
        let attr = if ty.is_float() { Attr::float(ty, value as f64) } else { Attr::int(ty, value) };
        let spec = OpSpec::new(ops::arith::CONSTANT, loc).attr("value", attr).results(&[ty]);
        Ok(self.rw.create(spec)?.result(0))
    }

    /// `arith.cmpi`.
    pub(super) fn compare(
        &mut self,
        loc: Location<'c>,
        predicate: CmpIPredicate,
        left: Value<'c>,
        right: Value<'c>,
    ) -> Result<Value<'c>, Diagnostics> {
        let cx = self.rw.context();
        let spec = OpSpec::new(ops::arith::CMPI, loc)
            .attr("predicate", predicate.to_attr(cx))
            .operands(&[left, right])
            .results(&[Type::integer(cx, 1)]);
        Ok(self.rw.create(spec)?.result(0))
    }

    /// Size of a dimension.
    pub(super) fn size(&mut self, loc: Location<'c>, tensor: Value<'c>, dim: usize) -> Result<Value<'c>, Diagnostics> {
        let known = tensor.ty().shape().and_then(|shape| shape.get(dim).copied()).filter(|size| *size != DYNAMIC);
        let index = Type::index(self.rw.context());
        if let Some(known) = known {
            return self.constant(loc, index, known);
        }
        let at = self.constant(loc, index, dim as i64)?;
        self.op(ops::tensor::DIM, loc, &[tensor, at], index)
    }

    fn extract(&mut self, kernel: Op<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
        let tensor = op.operand(0);
        let shape = tensor.ty().shape().unwrap_or_default();
        let loc = op.location();
        if shape.contains(&0) {
            self.rw.set_point(InsertionPoint::Before(op));
            let zero = self.constant(loc, op.result(0).ty(), 0)?;
            self.rw.replace_op(op, &[zero]);
            return Ok(());
        }
        let inside = |(at, index): (usize, Value<'c>)| in_range(tensor, shape[at], at, index);
        let indices: Vec<Value> = op.operands().split_off(1);
        if indices.iter().copied().enumerate().all(inside) {
            return Ok(());
        }
        // Sizes are computed once, in front of the loops.
        self.rw.set_point(InsertionPoint::Before(kernel));
        let mut sizes = vec![];
        for at in 0..shape.len() {
            sizes.push(self.size(loc, tensor, at)?);
        }
        self.rw.set_point(InsertionPoint::Before(op));
        let empty = self.is_empty(loc, &shape, &sizes)?;
        for (at, index) in indices.iter().enumerate() {
            if !inside((at, *index)) || empty.is_some() {
                let last = self.last(loc, shape[at], sizes[at], empty)?;
                let clamped = self.clamp(loc, *index, last)?;
                self.rw.set_operand(op, at + 1, clamped);
            }
        }
        let Some(empty) = empty else { return Ok(()) };
        self.rw.set_point(InsertionPoint::Before(op));
        let copy = self.rw.clone_op(op, |v| v);
        self.rw.insert(copy);
        let zero = self.constant(loc, op.result(0).ty(), 0)?;
        let value = self.op(ops::arith::SELECT, loc, &[empty, zero, copy.result(0)], op.result(0).ty())?;
        self.rw.replace_op(op, &[value]);
        Ok(())
    }

    /// Whether a tensor of dynamic sizes has no element.
    fn is_empty(
        &mut self,
        loc: Location<'c>,
        shape: &[i64],
        sizes: &[Value<'c>],
    ) -> Result<Option<Value<'c>>, Diagnostics> {
        let index = Type::index(self.rw.context());
        let bool_ty = Type::integer(self.rw.context(), 1);
        let mut empty = None;
        for (size, _) in sizes.iter().zip(shape).filter(|(_, known)| **known == DYNAMIC) {
            let zero = self.constant(loc, index, 0)?;
            let none = self.compare(loc, CmpIPredicate::Eq, *size, zero)?;
            empty = Some(match empty {
                Some(before) => self.op(ops::arith::ORI, loc, &[before, none], bool_ty)?,
                None => none,
            });
        }
        Ok(empty)
    }

    /// The last index of a dimension; 0 where the tensor has no element, as its buffer is never smaller than one.
    fn last(
        &mut self,
        loc: Location<'c>,
        known: i64,
        size: Value<'c>,
        empty: Option<Value<'c>>,
    ) -> Result<Value<'c>, Diagnostics> {
        let index = Type::index(self.rw.context());
        let last = if known == DYNAMIC {
            let one = self.constant(loc, index, 1)?;
            self.op(ops::arith::SUBI, loc, &[size, one], index)?
        } else {
            self.constant(loc, index, known - 1)?
        };
        let Some(empty) = empty else { return Ok(last) };
        let zero = self.constant(loc, index, 0)?;
        self.op(ops::arith::SELECT, loc, &[empty, zero, last], index)
    }

    /// The nearest index from 0 to `last`. A number with more bits than a GPU's index is clamped before it is truncated.
    fn clamp(&mut self, loc: Location<'c>, index: Value<'c>, last: Value<'c>) -> Result<Value<'c>, Diagnostics> {
        let ty = index.ty();
        let cast =
            index.defining_op().filter(|op| matches!(op.name(), ops::arith::INDEX_CAST | ops::arith::INDEX_CASTUI));
        let Some(cast) = cast.filter(|cast| loses_bits(*cast)) else {
            return self.clamp_signed(loc, index, last);
        };
        let from = cast.operand(0);
        let last = self.op(ops::arith::INDEX_CAST, loc, &[last], from.ty())?;
        let clamped = if cast.is(ops::arith::INDEX_CASTUI) {
            self.op(ops::arith::MINUI, loc, &[from, last], from.ty())?
        } else {
            self.clamp_signed(loc, from, last)?
        };
        self.op(cast.name(), loc, &[clamped], ty)
    }

    fn clamp_signed(&mut self, loc: Location<'c>, index: Value<'c>, last: Value<'c>) -> Result<Value<'c>, Diagnostics> {
        let zero = self.constant(loc, index.ty(), 0)?;
        let below = self.op(ops::arith::MINSI, loc, &[index, last], index.ty())?;
        self.op(ops::arith::MAXSI, loc, &[below, zero], index.ty())
    }

    /// Gives a division a result for every divisor.
    pub(super) fn division(&mut self, op: Op<'c>) -> Result<(), Diagnostics> {
        if is_safe_divisor(op) || !(op.result(0).ty().is_index() || op.result(0).ty().integer_width().is_some()) {
            return Ok(());
        }
        let (loc, ty) = (op.location(), op.result(0).ty());
        self.rw.set_point(InsertionPoint::Before(op));
        if ty.integer_width() == Some(1) {
            // In one bit, 1 and -1 are the same number: the quotient is the dividend.
            let remainder = op.is(ops::arith::REMSI) || op.is(ops::arith::REMUI);
            let value = if remainder { self.constant(loc, ty, 0)? } else { op.operand(0) };
            self.rw.replace_op(op, &[value]);
            return Ok(());
        }
        let (dividend, divisor) = (op.operand(0), op.operand(1));
        let safe = self.safe_divisor(op)?;
        self.rw.set_operand(op, 1, safe);
        if !is_signed_quotient(op.name()) {
            return Ok(());
        }
        let copy = self.rw.clone_op(op, |v| v);
        self.rw.insert(copy);
        let (zero, minus_one) = (self.constant(loc, ty, 0)?, self.constant(loc, ty, -1)?);
        let negated = self.op(ops::arith::SUBI, loc, &[zero, dividend], ty)?;
        let negates = self.compare(loc, CmpIPredicate::Eq, divisor, minus_one)?;
        let value = self.op(ops::arith::SELECT, loc, &[negates, negated, copy.result(0)], ty)?;
        self.rw.replace_op(op, &[value]);
        Ok(())
    }

    /// Whether a shift is by less than the width of its scalar operands; `None` if that is known.
    pub(super) fn fits(&mut self, op: Op<'c>) -> Result<Option<Value<'c>>, Diagnostics> {
        let (loc, amount) = (op.location(), op.operand(1));
        let Some(bits) = bits(amount.ty()) else { return Ok(None) };
        if ranges::of(amount).is_some_and(|range| range.low >= 0 && range.high < i64::from(bits)) {
            return Ok(None);
        }
        // In one bit the width itself is no number: nothing but 0 is less.
        let width = self.constant(loc, amount.ty(), if bits == 1 { -1 } else { i64::from(bits) })?;
        self.compare(loc, CmpIPredicate::Ult, amount, width).map(Some)
    }

    /// Shifts by 0 where the amount is the width or more. Host code goes on after a failed check: its result is defined.
    pub(super) fn shift(&mut self, op: Op<'c>) -> Result<(), Diagnostics> {
        let (loc, amount) = (op.location(), op.operand(1));
        self.rw.set_point(InsertionPoint::Before(op));
        let Some(fits) = self.fits(op)? else { return Ok(()) };
        let zero = self.constant(loc, amount.ty(), 0)?;
        let safe = self.op(ops::arith::SELECT, loc, &[fits, amount, zero], amount.ty())?;
        self.rw.set_operand(op, 1, safe);
        Ok(())
    }

    /// The divisor of `op`, or 1 where that would be 0 or, of a signed op, -1.
    pub(super) fn safe_divisor(&mut self, op: Op<'c>) -> Result<Value<'c>, Diagnostics> {
        let (loc, divisor) = (op.location(), op.operand(1));
        let ty = divisor.ty();
        let one = self.constant(loc, ty, 1)?;
        if !op.name().ends_with("si") {
            return self.op(ops::arith::MAXUI, loc, &[divisor, one], ty);
        }
        // 0 and -1 are the two numbers whose successors are 0 or 1.
        let next = self.op(ops::arith::ADDI, loc, &[divisor, one], ty)?;
        let unsafe_divisor = self.compare(loc, CmpIPredicate::Ule, next, one)?;
        self.op(ops::arith::SELECT, loc, &[unsafe_divisor, one, divisor], ty)
    }
}

/// Whether an `index_cast` may lose bits on a GPU, whose index is a signed 32-bit integer.
fn loses_bits(cast: Op) -> bool {
    let from = cast.operand(0);
    let extended = from.defining_op().is_some_and(|op| op.is(ops::arith::EXTSI));
    match from.ty().integer_width() {
        Some(64) => !extended,
        Some(32) => cast.is(ops::arith::INDEX_CASTUI),
        _ => false,
    }
}

/// Whether an index is provably within dimension `at` of a tensor, which has `size` elements.
fn in_range(tensor: Value, size: i64, at: usize, index: Value) -> bool {
    let along = || ranges::counter(index).is_some_and(|(owner, dim)| ranges::runs_along(owner, dim, tensor, at));
    let within = || size != DYNAMIC && ranges::is_at_least_zero(index) && ranges::is_below(index, size);
    along() || within()
}
