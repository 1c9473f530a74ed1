//! The scalar bodies of attention, as fusion recognizes them and as kernels compute them:
//!
//! ```text
//! out + a * b                        products of queries and keys, and of weights and values
//! exp(x - m), exp(x - guarded(m))    powers of scores relative to their maximum
//! p / d, p * d                       weights; d depends on the sum of powers alone
//! ```
//!
//! `guarded(m)` is `m`, and 0 where `m` is negative infinity.

use crate::typed::arith::CmpFPredicate;
use crate::{Block, Op, Value, ops};
use std::collections::BTreeSet;

/// The body `out + a * b` of a sum of products; `out` is the last argument, and no factor depends on it.
#[derive(Clone, Copy, Debug)]
pub struct MultiplyAdd<'c> {
    /// The factors.
    pub factors: [Value<'c>; 2],
}

impl<'c> MultiplyAdd<'c> {
    /// The body's factors; `None` for another body.
    pub fn of(body: Block<'c>) -> Option<Self> {
        let add = yielded(body)?.defining_op().filter(|op| op.is(ops::arith::ADDF))?;
        let last = body.num_args().checked_sub(1)?;
        let product = other(add, body.arg(last))?.defining_op().filter(|op| op.is(ops::arith::MULF))?;
        let factors = [product.operand(0), product.operand(1)];
        let free = |value: &Value<'c>| arguments(body, *value).is_some_and(|found| !found.contains(&last));
        factors.iter().all(free).then_some(Self { factors })
    }
}

/// The body `exp(x - m)` or `exp(x - guarded(m))`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Power {
    /// Position of the argument `x`.
    pub score: usize,
    /// Position of the argument `m`.
    pub most: usize,
    /// Whether `m` is guarded.
    pub guarded: bool,
}

impl Power {
    /// The body as a power; `None` for another body.
    pub fn of(body: Block) -> Option<Self> {
        let exp = yielded(body)?.defining_op().filter(|op| op.is(ops::math::EXP))?;
        let difference = exp.operand(0).defining_op().filter(|op| op.is(ops::arith::SUBF))?;
        let score = argument(body, difference.operand(0))?;
        let shift = difference.operand(1);
        if let Some(most) = argument(body, shift) {
            return (most != score).then_some(Self { score, most, guarded: false });
        }
        let select = shift.defining_op().filter(|op| op.is(ops::arith::SELECT))?;
        let test = select.operand(0).defining_op()?;
        let most = argument(body, select.operand(2))?;
        let is_least = CmpFPredicate::of(test) == Some(CmpFPredicate::Oeq)
            && other(test, select.operand(2)).and_then(constant) == Some(f64::NEG_INFINITY);
        let guarded = test.is(ops::arith::CMPF) && is_least && constant(select.operand(1)) == Some(0.0);
        (guarded && most != score).then_some(Self { score, most, guarded })
    }
}

/// The body `p / d` or `p * d`, where `d` depends on the sum alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quotient {
    /// Position of the argument `p`.
    pub power: usize,
    /// Position of the sum.
    pub sum: usize,
    /// Whether a power of 0 over a sum of 0 is NaN.
    pub is_plain: bool,
}

impl Quotient {
    /// The body as a quotient; `None` for another body.
    pub fn of(body: Block) -> Option<Self> {
        let op = yielded(body)?.defining_op()?;
        let sides = match op.name() {
            ops::arith::DIVF => vec![(op.operand(0), op.operand(1))],
            ops::arith::MULF => vec![(op.operand(0), op.operand(1)), (op.operand(1), op.operand(0))],
            _ => return None,
        };
        let is_plain = body.ops().iter().all(|op| {
            matches!(op.name(), ops::arith::DIVF | ops::arith::MULF | ops::arith::CONSTANT) || op.is_terminator()
        });
        sides.into_iter().find_map(|(power, divisor)| {
            let power = argument(body, power)?;
            let read = arguments(body, divisor)?;
            let sum = *read.first().filter(|_| read.len() == 1)?;
            (sum != power).then_some(Self { power, sum, is_plain })
        })
    }
}

/// The arguments of a body, by position, from which a value is computed by `arith` and `math` ops; `None` where other ops
/// take part.
pub fn arguments<'c>(body: Block<'c>, value: Value<'c>) -> Option<BTreeSet<usize>> {
    let mut found = BTreeSet::new();
    let mut next = vec![value];
    while let Some(value) = next.pop() {
        if let Some(position) = argument(body, value) {
            found.insert(position);
            continue;
        }
        let Some(op) = value.defining_op().filter(|op| op.block() == Some(body)) else { continue };
        if !matches!(op.dialect(), "arith" | "math") {
            return None;
        }
        next.extend(op.operands());
    }
    Some(found)
}

/// The number that a value is, if it is a constant.
pub fn constant(value: Value) -> Option<f64> {
    let op = value.defining_op().filter(|op| op.is(ops::arith::CONSTANT))?;
    op.attr("value")?.as_float()
}

fn yielded(body: Block<'_>) -> Option<Value<'_>> {
    let end = body.terminator()?;
    (end.num_operands() == 1).then(|| end.operand(0))
}

fn argument<'c>(body: Block<'c>, value: Value<'c>) -> Option<usize> {
    value.as_block_arg().filter(|(block, _)| *block == body).map(|(_, position)| position)
}

/// The other operand of a binary op that has `value` once.
fn other<'c>(op: Op<'c>, value: Value<'c>) -> Option<Value<'c>> {
    match (op.operand(0) == value, op.operand(1) == value) {
        (true, false) => Some(op.operand(1)),
        (false, true) => Some(op.operand(0)),
        _ => None,
    }
}
