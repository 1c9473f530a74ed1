//! Value ranges of integers in the bodies of linalg ops.
//!
//! ```text
//! %i = linalg.index 0 : index          0 to 7, where the loop has eight iterations
//! %n = arith.addi %i, %one             1 to 8
//! %r = arith.remui %x, %eight          0 to 7
//! %a = arith.index_cast %data          -2^31 to 2^31 - 1, from i32
//! ```
//!
//! Limits: intervals, by the ops that indices are made of; a value that may leave 32 bits, the width of a GPU's index, is
//! unknown.

use monopour_ir::interfaces::indexing_maps;
use monopour_ir::ops;
use monopour_ir::{AffineExpr, AffineExprKind, Op, Value};

/// Most definitions that a value is followed through.
const MAX_DEPTH: usize = 24;

/// Smallest and largest value, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    /// Smallest.
    pub(super) low: i64,
    /// Largest.
    pub(super) high: i64,
}

impl Range {
    fn new(low: i64, high: i64) -> Option<Self> {
        let fits = |v: i64| i32::try_from(v).is_ok();
        (low <= high && fits(low) && fits(high)).then_some(Self { low, high })
    }

    /// The hull of `f` over the ends.
    fn ends(self, other: Self, f: impl Fn(i64, i64) -> i64) -> Option<Self> {
        // Ends have 32 bits, so that no product or sum of two overflows.
        let all = [f(self.low, other.low), f(self.low, other.high), f(self.high, other.low), f(self.high, other.high)];
        Self::new(all.into_iter().min()?, all.into_iter().max()?)
    }

    fn hull(self, other: Self) -> Option<Self> {
        Self::new(self.low.min(other.low), self.high.max(other.high))
    }
}

/// The range of an integer or index; `None` where nothing is known.
pub(super) fn of(value: Value) -> Option<Range> {
    follow(value, MAX_DEPTH)
}

/// Whether a value is never negative. A maximum is bounded by one of its operands, whatever the other is.
pub(super) fn is_at_least_zero(value: Value) -> bool {
    holds(value, MAX_DEPTH, ops::arith::MAXSI, ops::arith::MINSI, &|range| range.low >= 0)
}

/// Whether a number of host code is provably a size: not negative.
pub(super) fn is_size(value: Value) -> bool {
    let is_dim = value.defining_op().is_some_and(|op| matches!(op.name(), ops::tensor::DIM | ops::tensor::RANK));
    is_dim || is_at_least_zero(value)
}

/// Whether a value is always less than `size`. A minimum is bounded by one of its operands, whatever the other is.
pub(super) fn is_below(value: Value, size: i64) -> bool {
    holds(value, MAX_DEPTH, ops::arith::MINSI, ops::arith::MAXSI, &|range| range.high < size)
}

/// Whether `test` holds for the range of a value, or of one operand of an `any` op, or of both operands of an `all` op.
fn holds(value: Value, depth: usize, any: &str, all: &str, test: &dyn Fn(Range) -> bool) -> bool {
    if follow(value, depth).is_some_and(test) {
        return true;
    }
    let Some(op) = value.defining_op().filter(|_| depth > 0) else { return false };
    let operand = |i: usize| holds(op.operand(i), depth - 1, any, all, test);
    (op.is(any) && (operand(0) || operand(1))) || (op.is(all) && operand(0) && operand(1))
}

/// The linalg op and the number of its loop whose `linalg.index` a value is.
pub(super) fn counter<'c>(value: Value<'c>) -> Option<(Op<'c>, usize)> {
    let op = value.defining_op().filter(|op| op.is(ops::linalg::INDEX))?;
    let dim = usize::try_from(op.attr("dim")?.as_int()?).ok()?;
    let mut owner = op.parent()?;
    while indexing_maps(owner).is_none() {
        owner = owner.parent()?;
    }
    Some((owner, dim))
}

fn follow(value: Value, depth: usize) -> Option<Range> {
    if let Some(known) = value.constant_int() {
        return Range::new(known, known);
    }
    let fits = || of_type(value);
    let Some(op) = value.defining_op().filter(|_| depth > 0) else { return fits() };
    let operand = |i: usize| follow(op.operand(i), depth - 1);
    let found = match op.name() {
        ops::linalg::INDEX => {
            counter(value).and_then(|(owner, dim)| extent(owner, dim)).and_then(|n| Range::new(0, n - 1))
        }
        ops::arith::ADDI => both(&operand, |a, b| a.ends(b, |x, y| x + y)),
        ops::arith::SUBI => both(&operand, |a, b| a.ends(b, |x, y| x - y)),
        ops::arith::MULI => both(&operand, |a, b| a.ends(b, |x, y| x * y)),
        ops::arith::MAXSI => both(&operand, |a, b| a.ends(b, i64::max)),
        ops::arith::MINSI => both(&operand, |a, b| a.ends(b, i64::min)),
        ops::arith::SELECT => both(&|i| operand(i + 1), Range::hull),
        ops::arith::REMUI | ops::arith::REMSI => remainder(&op, operand(0), operand(1)),
        ops::arith::DIVUI | ops::arith::DIVSI | ops::arith::FLOORDIVSI => {
            let positive = |r: &Range| r.low >= 0;
            let (a, b) = (operand(0).filter(positive)?, operand(1).filter(|r| r.low > 0)?);
            a.ends(b, |x, y| x / y)
        }
        ops::arith::ANDI => match (operand(0), operand(1)) {
            (_, Some(mask)) | (Some(mask), _) if mask.low >= 0 => Range::new(0, mask.high),
            _ => None,
        },
        ops::arith::EXTSI | ops::arith::INDEX_CAST if op.operand(0).ty().integer_width() != Some(1) => operand(0),
        ops::arith::EXTUI | ops::arith::INDEX_CASTUI => match op.operand(0).ty().integer_width() {
            Some(width @ 1..=16) => Range::new(0, (1 << width) - 1),
            _ => operand(0).filter(|r| r.low >= 0),
        },
        ops::affine::APPLY => affine(op, &operand),
        _ => None,
    };
    // A narrow type may wrap.
    match (found, fits()) {
        (Some(found), Some(all)) if found.low < all.low || found.high > all.high => Some(all),
        (Some(found), _) => Some(found),
        (None, all) => all,
    }
}

fn both(operand: &impl Fn(usize) -> Option<Range>, f: impl Fn(Range, Range) -> Option<Range>) -> Option<Range> {
    f(operand(0)?, operand(1)?)
}

/// The range of a remainder by a positive number.
fn remainder(op: &Op, of: Option<Range>, by: Option<Range>) -> Option<Range> {
    let by = by.filter(|by| by.low > 0)?;
    match of {
        Some(of) if of.low >= 0 => Range::new(0, of.high.min(by.high - 1)),
        _ if op.is(ops::arith::REMUI) => Range::new(0, by.high - 1),
        _ => Range::new(1 - by.high, by.high - 1),
    }
}

fn of_type(value: Value) -> Option<Range> {
    match value.ty().integer_width()? {
        1 => Range::new(-1, 0),
        width @ 2..=32 => Range::new(-(1 << (width - 1)), (1 << (width - 1)) - 1),
        _ => None,
    }
}

fn affine(op: Op, operand: &impl Fn(usize) -> Option<Range>) -> Option<Range> {
    let map = op.attr("map")?.as_affine_map()?;
    let [result] = map.results()[..] else { return None };
    expression(result, map.num_dims(), operand)
}

fn expression(expr: AffineExpr, dims: usize, operand: &impl Fn(usize) -> Option<Range>) -> Option<Range> {
    let sub = |e: AffineExpr| expression(e, dims, operand);
    match expr.kind() {
        AffineExprKind::Dim(d) => operand(d),
        AffineExprKind::Symbol(s) => operand(dims + s),
        AffineExprKind::Constant(c) => Range::new(c, c),
        AffineExprKind::Add(l, r) => sub(l)?.ends(sub(r)?, |x, y| x + y),
        AffineExprKind::Mul(l, r) => sub(l)?.ends(sub(r)?, |x, y| x * y),
        AffineExprKind::Mod(_, r) => Range::new(0, sub(r).filter(|r| r.low > 0)?.high - 1),
        AffineExprKind::FloorDiv(l, r) => sub(l)?.ends(sub(r).filter(|r| r.low > 0)?, i64::div_euclid),
        AffineExprKind::CeilDiv(l, r) => sub(l)?.ends(sub(r).filter(|r| r.low > 0)?, |x, y| -(-x).div_euclid(y)),
    }
}

/// Static trip count of a loop.
pub(super) fn extent(owner: Op, dim: usize) -> Option<i64> {
    let maps = indexing_maps(owner)?;
    maps.into_iter().zip(owner.operands()).find_map(|(map, operand)| {
        let shape = operand.ty().shape().unwrap_or_default();
        let at = map.results().into_iter().position(|e| matches!(e.kind(), AffineExprKind::Dim(d) if d == dim))?;
        shape.get(at).copied().filter(|n| *n > 0)
    })
}

/// Whether a loop has the extent of dimension `at` of `tensor`.
pub(super) fn runs_along(owner: Op, dim: usize, tensor: Value, at: usize) -> bool {
    let maps = indexing_maps(owner).unwrap_or_default();
    maps.into_iter().zip(owner.operands()).any(|(map, operand)| {
        let expr = map.results().get(at).map(|e| e.kind());
        operand == tensor && matches!(expr, Some(AffineExprKind::Dim(d)) if d == dim)
    })
}
