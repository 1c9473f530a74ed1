//! Numbers of a few bits, several to a byte, that a sum reads.
//!
//! ```text
//! %at = linalg.index p, %by = muli (index_cast %at), 4          // p: two places in a byte
//! %number = andi (shrui %byte, %by), 15
//! ```
//!
//! An op of the body is the number where it is for every byte and place, whatever integer ops it is written as.

use super::emit::{Emit, Position, element_bytes};
use super::nest::{Nest, Operand};
use monopour_ir::{Op, Value, ops};
use std::collections::HashMap;

/// The loops over numbers of a few bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FewBits {
    /// The loop over bytes.
    pub(super) bytes: usize,
    /// The loop over the numbers of a byte.
    pub(super) places: usize,
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
    /// The loops of a nest that may be such.
    pub(super) fn all(nest: &Nest) -> Vec<Self> {
        let reductions = nest.reductions();
        let of = |places: usize, input: usize| {
            let bits = nest.loops[places].extent.filter(|count| matches!(count, 2 | 4)).map(|count| 8 / count)?;
            let operand = &nest.inputs[input];
            let is_byte = operand.element().integer_width() == Some(8) && operand.unit_stride;
            let along = |d: &usize| operand.stride_bytes(*d) == Some(1) && is_byte;
            let bytes = reductions.iter().copied().find(along).filter(|_| !operand.uses(places))?;
            Some(Self { bytes, places, bits, input })
        };
        let inputs = |places: &usize| (0..nest.inputs.len()).map(|input| (*places, input)).collect::<Vec<_>>();
        reductions.iter().flat_map(inputs).filter_map(|(places, input)| of(places, input)).collect()
    }

    /// Numbers of a byte.
    pub(super) fn per_byte(&self) -> i64 {
        8 / self.bits
    }

    /// The largest number.
    pub(super) fn mask(&self) -> i64 {
        (1 << self.bits) - 1
    }

    /// The loop over blocks whose bytes follow each other.
    pub(super) fn blocks(&self, nest: &Nest) -> Option<usize> {
        let bytes = nest.loops[self.bytes].extent?;
        nest.reductions().into_iter().find(|d| nest.inputs[self.input].stride_bytes(*d) == Some(bytes))
    }

    /// Columns of numbers that positions are of.
    pub(super) fn columns<'c>(&self, nest: &Nest<'c>, rows: &[Vec<Position<'c>>]) -> i64 {
        let places: Vec<_> = rows.iter().map(|at| place(nest, &[self.input], at)).collect();
        (0..places.len()).filter(|n| !places[..*n].contains(&places[*n])).count() as i64
    }

    /// The loop over columns.
    pub(super) fn column(&self, nest: &Nest) -> Option<usize> {
        (0..nest.loops.len()).rfind(|d| !nest.loops[*d].reduction && nest.inputs[self.input].uses(*d))
    }

    /// Fetches what the next tile of some columns reads of an input along a loop, while this one is at a position of it: so many
    /// elements for each of its iterations and columns, of `step` iterations. In the order of memory, as one stream: columns are
    /// short ones, which end before the prefetcher follows them.
    pub(super) fn fetch_ahead<'c>(
        &self,
        e: &mut Emit<'c>,
        (nest, input): (&Nest<'c>, usize),
        at: &[Position<'c>],
        (along, here): (usize, Position<'c>),
        [elements, step, columns]: [i64; 3],
    ) {
        let operand = &nest.inputs[input];
        let size = element_bytes(operand);
        let Some(row) = self.column(nest).and_then(|column| operand.stride_bytes(column)).filter(|row| *row > 0) else {
            return;
        };
        let mut at = at.to_vec();
        at[along] = e.times(here, elements * columns).plus(columns * row / size);
        e.prefetch_soon(operand, &at, along, elements * step * columns);
    }

    /// The number, in the body; `None` where there is none.
    pub(super) fn number<'c>(&self, nest: &Nest<'c>) -> Option<Value<'c>> {
        nest.body.ops().into_iter().find(|op| self.is_number(nest, *op)).map(|op| op.result(0))
    }

    /// How the values of the body depend on the numbers.
    pub(super) fn kinds<'c>(&self, nest: &Nest<'c>, number: Value<'c>) -> HashMap<Value<'c>, Kind> {
        let varies = |o: &Operand| o.uses(self.bytes) || o.uses(self.places);
        let of_input = |input: usize| if varies(&nest.inputs[input]) { Kind::Apart } else { Kind::Same };
        let mut kinds: HashMap<Value, Kind> =
            (0..nest.inputs.len()).map(|input| (nest.body.arg(input), of_input(input))).collect();
        for op in nest.body.ops() {
            let dim = op.attr("dim").and_then(|dim| usize::try_from(dim.as_int()?).ok());
            let own =
                if dim.is_some_and(|dim| dim == self.bytes || dim == self.places) { Kind::Apart } else { Kind::Same };
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
                Some(self.place).filter(|_| dim == Some(self.few.places))?
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

/// What several rows read, by a value of the body and a place.
pub(super) struct Known<'c, T>(Vec<(Value<'c>, Vec<Position<'c>>, T)>);

impl<'c, T: Clone> Known<'c, T> {
    /// Nothing.
    pub(super) fn new() -> Self {
        Self(vec![])
    }

    /// What stands for a value of the body at a place, made where it is not known.
    pub(super) fn at(
        &mut self,
        e: &mut Emit<'c>,
        of: Value<'c>,
        place: Vec<Position<'c>>,
        make: impl FnOnce(&mut Emit<'c>) -> T,
    ) -> T {
        if let Some((.., value)) = self.0.iter().find(|(known, at, _)| *known == of && *at == place) {
            return value.clone();
        }
        let value = make(e);
        self.0.push((of, place, value.clone()));
        value
    }
}

/// The positions of the loops that some inputs depend on.
pub(super) fn place<'c>(nest: &Nest<'c>, inputs: &[usize], at: &[Position<'c>]) -> Vec<Position<'c>> {
    let uses = |d: &usize| inputs.iter().any(|input| nest.inputs[*input].uses(*d));
    (0..nest.loops.len()).filter(uses).map(|d| at[d]).collect()
}
