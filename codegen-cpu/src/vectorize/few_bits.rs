//! Numbers of a few bits, several to a byte, or of a byte each, that a sum reads.
//!
//! ```text
//! %at = linalg.index p, %by = muli (index_cast %at), 4          // p: two places in a byte
//! %number = andi (shrui %byte, %by), 15
//! ```
//!
//! An op of the body is the number where it is for every byte and place, whatever integer ops it is written as.

use super::emit::Position;
use super::nest::{Nest, Operand};
use monopour_ir::{Op, Value, ops};
use std::cmp::Reverse;
use std::collections::HashMap;

/// The loops over numbers of a few bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FewBits {
    /// The loop over bytes.
    pub(super) bytes: usize,
    /// The loop over the numbers of a byte, where there are several.
    pub(super) places: Option<usize>,
    /// Bits of a number.
    pub(super) bits: i64,
    /// The input that has them.
    pub(super) input: usize,
}

/// How a value of the body depends on the numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Not at all.
    Same,
    /// On a number alone.
    Number,
    /// On where it is, too.
    Apart,
}

impl FewBits {
    /// The loops of a nest that may be such, of several numbers to a byte.
    pub(super) fn all(nest: &Nest) -> Vec<Self> {
        let reductions = nest.reductions();
        let of = |places: usize, input: usize| {
            let bits = nest.loops[places].extent.filter(|count| matches!(count, 2 | 4)).map(|count| 8 / count)?;
            let operand = &nest.inputs[input];
            let is_byte = operand.element().integer_width() == Some(8) && operand.unit_stride;
            let along = |d: &usize| operand.stride_bytes(*d) == Some(1) && is_byte;
            let bytes = reductions.iter().copied().find(along).filter(|_| !operand.uses(places))?;
            Some(Self { bytes, places: Some(places), bits, input })
        };
        let inputs = |places: &usize| (0..nest.inputs.len()).map(|input| (*places, input)).collect::<Vec<_>>();
        reductions.iter().flat_map(inputs).filter_map(|(places, input)| of(places, input)).collect()
    }

    /// Those of a byte each; the larger input first, as far as it is known, since both factors may be bytes.
    pub(super) fn bytes(nest: &Nest) -> Vec<Self> {
        let reductions = nest.reductions();
        let of = |(input, operand): (usize, &Operand)| {
            let is_byte = operand.element().integer_width() == Some(8) && operand.unit_stride;
            let bytes = reductions.iter().copied().find(|d| is_byte && operand.stride_bytes(*d) == Some(1))?;
            Some(Self { bytes, places: None, bits: 8, input })
        };
        let elements = |few: &Self| -> i64 {
            let used = nest.loops.iter().enumerate().filter(|(dim, _)| nest.inputs[few.input].uses(*dim));
            used.filter_map(|(_, of)| of.extent).fold(1, i64::saturating_mul)
        };
        let mut all: Vec<Self> = nest.inputs.iter().enumerate().filter_map(of).collect();
        all.sort_by_key(|few| Reverse(elements(few)));
        all
    }

    /// Whether a loop is over bytes or over the numbers of one.
    pub(super) fn has(&self, dim: usize) -> bool {
        dim == self.bytes || self.places == Some(dim)
    }

    /// Makes a position that of a number of a byte.
    pub(super) fn set_place<'c>(&self, at: &mut [Position<'c>], place: i64) {
        if let Some(places) = self.places {
            at[places] = Position::at(place);
        }
    }

    /// Numbers of a byte.
    pub(super) fn per_byte(&self) -> i64 {
        8 / self.bits
    }

    /// The largest number.
    pub(super) fn mask(&self) -> i64 {
        (1 << self.bits) - 1
    }

    /// The number, in the body; `None` where there is none.
    pub(super) fn number<'c>(&self, nest: &Nest<'c>) -> Option<Value<'c>> {
        if self.places.is_none() {
            return Some(nest.body.arg(self.input));
        }
        nest.body.ops().into_iter().find(|op| self.is_number(nest, *op)).map(|op| op.result(0))
    }

    /// How the values of the body depend on the numbers.
    pub(super) fn kinds<'c>(&self, nest: &Nest<'c>, number: Value<'c>) -> HashMap<Value<'c>, Kind> {
        let varies = |o: &Operand| o.uses(self.bytes) || self.places.is_some_and(|places| o.uses(places));
        let of_input = |input: usize| if varies(&nest.inputs[input]) { Kind::Apart } else { Kind::Same };
        let mut kinds: HashMap<Value, Kind> =
            (0..nest.inputs.len()).map(|input| (nest.body.arg(input), of_input(input))).collect();
        if self.places.is_none() {
            kinds.insert(number, Kind::Number);
        }
        for op in nest.body.ops() {
            let dim = op.attr("dim").and_then(|dim| usize::try_from(dim.as_int()?).ok());
            let own = if dim.is_some_and(|dim| self.has(dim)) { Kind::Apart } else { Kind::Same };
            let of = |value: &Value<'c>| kinds.get(value).copied().unwrap_or(Kind::Same);
            let kind = op.operands().iter().map(of).fold(own, Kind::max);
            for result in op.results() {
                kinds.insert(result, if result == number { Kind::Number } else { kind });
            }
        }
        kinds
    }

    /// Whether an op takes the number out of its byte.
    fn is_number(&self, nest: &Nest, op: Op) -> bool {
        let takes = |byte: i64, place: i64| {
            let at = Bits { few: self, arg: nest.body.arg(self.input), byte, place };
            op.results().len() == 1 && at.of(op.result(0)) == Some(byte >> (self.bits * place) & self.mask())
        };
        op.dialect() == "arith" && (0..self.per_byte()).all(|place| (0..256).all(|byte| takes(byte, place)))
    }
}

/// A byte, and the place of a number in it: what integer ops of the body come to.
struct Bits<'c, 'a> {
    few: &'a FewBits,
    arg: Value<'c>,
    byte: i64,
    place: i64,
}

impl<'c> Bits<'c, '_> {
    /// The bits of a value; `None` where it depends on anything else.
    fn of(&self, value: Value<'c>) -> Option<i64> {
        if value == self.arg {
            return Some(self.byte);
        }
        let op = value.defining_op()?;
        let width = value.ty().integer_width().unwrap_or(64);
        let mask = if width < 64 { (1 << width) - 1 } else { i64::MAX };
        let operand = |n: usize| self.of(op.operand(n));
        let bits = match op.name() {
            ops::arith::CONSTANT => op.attr("value")?.as_int()?,
            ops::linalg::INDEX => {
                let dim = usize::try_from(op.attr("dim")?.as_int()?).ok();
                Some(self.place).filter(|_| dim.is_some() && dim == self.few.places)?
            }
            ops::arith::INDEX_CAST | ops::arith::INDEX_CASTUI if value.ty().is_index() => return None,
            ops::arith::INDEX_CAST | ops::arith::INDEX_CASTUI | ops::arith::EXTUI | ops::arith::TRUNCI => operand(0)?,
            ops::arith::ANDI => operand(0)? & operand(1)?,
            ops::arith::SHRUI => operand(0)?.checked_shr(operand(1)?.try_into().ok()?)?,
            ops::arith::SHLI => operand(0)?.checked_shl(operand(1)?.try_into().ok()?)?,
            ops::arith::MULI => operand(0)?.checked_mul(operand(1)?)?,
            ops::arith::ADDI => operand(0)?.checked_add(operand(1)?)?,
            _ => return None,
        };
        Some(bits & mask)
    }
}
