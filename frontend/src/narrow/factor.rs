//! Factors in few bits, and what their elements can be.

use crate::linalg;
use monopour_ir::ops;
use monopour_ir::{Op, Type, Value};

/// Smallest and largest value, both included.
type Range = (i64, i64);

const I16: Range = (i16::MIN as i64, i16::MAX as i64);

/// A factor in fewer bits.
#[derive(Clone, Copy)]
pub(super) struct Narrow<'c> {
    pub(super) value: Value<'c>,
    /// `arith.extsi` or `arith.extui`.
    pub(super) extension: &'static str,
}

impl<'c> Narrow<'c> {
    /// One with a sign.
    pub(super) fn signed(value: Value<'c>) -> Self {
        Self { value, extension: ops::arith::EXTSI }
    }

    /// Values that the elements can have.
    pub(super) fn holds(&self) -> Range {
        let bits = self.value.ty().element().integer_width().unwrap_or(32);
        if self.extension == ops::arith::EXTUI {
            (0, (1 << bits) - 1)
        } else {
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        }
    }
}

/// A zero point.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Zero<'c> {
    Constant(i64),
    /// A tensor of rank 0, and how its element is extended.
    Tensor(Value<'c>, &'static str),
}

/// A factor of 8 bits with its zero point.
pub(super) struct Raw<'c> {
    pub(super) factor: Narrow<'c>,
    pub(super) zero: Zero<'c>,
}

impl<'c> Raw<'c> {
    /// Of an elementwise op that extends a whole tensor, and takes off one number.
    pub(super) fn of(op: Op<'c>) -> Option<Self> {
        let yielded =
            op.body().filter(|_| op.num_results() == 1 && linalg::is_elementwise(op))?.terminator()?.operand(0);
        let difference = yielded.defining_op().filter(|def| def.is(ops::arith::SUBI))?;
        let (minuend, name) = extension(difference.operand(0))?;
        let (block, input) = minuend.as_block_arg()?;
        if op.body() != Some(block) || !linalg::whole_inputs(op).contains(&input) {
            return None;
        }
        let subtrahend = difference.operand(1);
        let zero = match range(subtrahend)? {
            (low, high) if low == high => Zero::Constant(low),
            _ => {
                let (zero, name) = extension(subtrahend)?;
                let (block, input) = zero.as_block_arg().filter(|(block, _)| op.body() == Some(*block))?;
                let scalar = block.parent_op()?.operand(input);
                Zero::Tensor(Some(scalar).filter(|v| v.ty().shape().is_some_and(|shape| shape.is_empty()))?, name)
            }
        };
        Some(Self { factor: Narrow { value: op.operand(input), extension: name }, zero })
    }
}

/// A whole tensor of 8 bits, extended, less a constant zero point.
pub(super) struct Factor<'c> {
    pub(super) source: Value<'c>,
    pub(super) extension: &'static str,
    /// 0 without one.
    pub(super) zero: i64,
}

impl<'c> Factor<'c> {
    pub(super) fn of(op: Op<'c>, value: Value<'c>) -> Option<Self> {
        if let Some(Raw { factor, zero: Zero::Constant(zero) }) = Raw::of(op) {
            return Some(Self { source: factor.value, extension: factor.extension, zero });
        }
        let (arg, name) = extension(value)?;
        let (block, input) = arg.as_block_arg()?;
        let whole = op.body() == Some(block) && linalg::whole_inputs(op).contains(&input);
        whole.then(|| Self { source: op.operand(input), extension: name, zero: 0 })
    }
}

/// The number that fills a tensor, and the empty tensor under it.
pub(super) fn filled<'c>(value: Value<'c>) -> Option<(Value<'c>, Op<'c>)> {
    let op = value.defining_op().filter(|op| linalg::is_structured(*op))?;
    let number = match op.is(ops::linalg::FILL) {
        true => op.operand(0),
        false => op.body()?.terminator()?.operand(0),
    };
    let empty = op.operands().last()?.defining_op().filter(|def| def.is(ops::tensor::EMPTY))?;
    // A generic yields the scalar that it captures, or its input's.
    let number = match number.as_block_arg().filter(|(block, _)| op.body() == Some(*block)) {
        Some((_, input)) => op.operand(input),
        None => number,
    };
    Some((number, empty))
}

/// Whether 16 bits hold a value.
pub(super) fn fits_i16(value: Value) -> bool {
    range(value).is_some_and(|(low, high)| I16.0 <= low && high <= I16.1)
}

/// The type of a tensor with other elements.
pub(super) fn of_element<'c>(tensor: Value<'c>, element: Type<'c>) -> Type<'c> {
    Type::tensor(&tensor.ty().shape().unwrap_or_default(), element, None)
}

/// The 8 bits that a value extends, and the op that does.
fn extension(value: Value) -> Option<(Value, &'static str)> {
    let op = value.defining_op()?;
    let name = [ops::arith::EXTSI, ops::arith::EXTUI].into_iter().find(|name| op.is(name))?;
    (op.operand(0).ty().integer_width() == Some(8)).then(|| (op.operand(0), name))
}

/// The values that constants, elements of 8 bits and differences of these can have; `None` for others.
fn range(value: Value) -> Option<Range> {
    if let Some(constant) = value.constant_int() {
        return Some((constant, constant));
    }
    if let Some((narrow, name)) = extension(value) {
        let unsigned = name == ops::arith::EXTUI;
        return Some(match narrow.constant_int() {
            Some(constant) if unsigned => (constant & 0xff, constant & 0xff),
            Some(constant) => (constant, constant),
            None if unsigned => (0, 255),
            None => (-128, 127),
        });
    }
    let op = value.defining_op().filter(|op| op.is(ops::arith::SUBI))?;
    let ((a, b), (c, d)) = (range(op.operand(0))?, range(op.operand(1))?);
    Some((a.checked_sub(d)?, b.checked_sub(c)?))
}
