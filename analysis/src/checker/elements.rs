//! Slices as numbers: the values of symbols, and the elements of a slice.

use std::rc::Rc;

use super::{Cell, Machine};
use crate::facts::{Affine, Facts};
use crate::index::{RegionId, SliceId};
use crate::terms::{Elements, Part, TermId};

/// Symbols are numbers from 2, so that no size of them is one, which a type may leave out.
const MOST_VALUES: u32 = 7;

/// How often a symbol gets the next number instead of any.
const CONSECUTIVE_PERCENT: u32 = 60;

/// One more than the largest symbol of a slice.
pub(super) fn symbol_count(facts: &Facts) -> u32 {
    let numbers =
        facts.slices().iter().flat_map(|slice| slice.offsets.iter().chain(&slice.sizes).chain(&slice.strides));
    let symbols = numbers.flat_map(|number| &number.terms).map(|(symbol, _)| symbol.saturating_add(1));
    symbols.max().unwrap_or(0)
}

impl Machine<'_> {
    /// Gives the symbols of a region values; those without a region are of the function.
    pub(super) fn draw_symbols(&mut self, region: RegionId) {
        for index in 0..self.symbol_count {
            let scope = self.facts.symbol_scope(index).unwrap_or(RegionId::new(0));
            if scope == region {
                let before = self.symbols.get(&index).copied();
                let next = before.filter(|_| self.paths.next_number(100) < CONSECUTIVE_PERCENT).map(|value| value + 1);
                let drawn = i64::from(2 + self.paths.next_number(MOST_VALUES));
                self.symbols.insert(index, next.unwrap_or(drawn));
            }
        }
    }

    /// A slice of a value as it is now. `None` for all of the value.
    pub(super) fn slice(&mut self, slice: SliceId, of: &Cell) -> Option<Part> {
        if !self.by_element {
            return Some(Part::Named(slice));
        }
        let slice = &self.facts.slices()[slice];
        let value = |number: &Affine| {
            let terms = number.terms.iter().map(|(symbol, coefficient)| {
                self.symbols.get(symbol).copied().unwrap_or_default().saturating_mul(*coefficient)
            });
            terms.fold(number.constant, i64::saturating_add)
        };
        let numbers = slice.offsets.iter().zip(&slice.sizes).zip(&slice.strides);
        let side = |((offset, size), stride): ((&Affine, &Affine), &Affine)| Elements {
            offset: value(offset),
            size: value(size),
            stride: value(stride),
        };
        let sides: Vec<Elements> = numbers.map(side).collect();
        let sizes = of.sizes.as_ref().filter(|sizes| sizes.len() == sides.len());
        let size_of = |dimension: usize| sizes.map_or(i64::MAX, |sizes| sizes[dimension]);
        if sides.iter().enumerate().any(|(dimension, side)| !side.is_within(size_of(dimension))) {
            self.leave();
            return None;
        }
        if sizes.is_some_and(|sizes| sides.iter().zip(sizes.iter()).all(|(side, size)| side.size == *size)) {
            return None;
        }
        Some(self.terms.slice(of.shape, sides))
    }

    /// The sizes of what is stored to a part of a value, or to all of it, if they are known.
    pub(super) fn stored_sizes(&self, of: &Cell, part: Option<Part>) -> Option<Rc<[i64]>> {
        match part {
            Some(part) => Some(self.terms.sides(part)?.iter().map(|side| side.size).collect()),
            None => of.sizes.clone(),
        }
    }

    /// As many elements of a value's contents as are stored, should the value's size be unknown.
    pub(super) fn first(&mut self, of: &Cell, contents: TermId, sizes: Option<&[i64]>) -> TermId {
        let Some(sizes) = sizes else { return contents };
        if let Some(own) = &of.sizes {
            // Another rank: the value's type leaves out dimensions of size 1.
            if own.len() == sizes.len() && own[..] != *sizes {
                self.leave();
            }
            return contents;
        }
        let first = sizes.iter().map(|&size| Elements { offset: 0, size, stride: 1 }).collect();
        let first = self.terms.slice(of.shape, first);
        self.terms.extract(contents, first)
    }
}
