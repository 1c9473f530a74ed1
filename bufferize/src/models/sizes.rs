//! Sizes and offsets as sums: constants if known, else one `affine.apply`.

use monopour_ir::conversion::{ConversionRewriter, Declined};
use monopour_ir::ops;
use monopour_ir::{Attr, DYNAMIC, Diagnostics, Op, OpSpec, Type, Value};

use crate::op_model::Index;

/// Most terms of one `affine.apply`; longer sums are nested.
const MAX_TERMS: usize = 16;

/// The numbers of a mixed static and dynamic list, and its number of operands; constants count as static.
pub(super) fn mixed<'c>(op: Op<'c>, attr: &str, first: usize) -> Option<(Vec<Index<'c>>, usize)> {
    let mut at = first;
    let numbers = op.attr(attr)?.as_ints()?.into_iter().map(|number| {
        if number != DYNAMIC {
            return Some(Index::Static(number));
        }
        at += 1;
        (at <= op.num_operands()).then(|| known(op.operand(at - 1)))
    });
    let numbers = numbers.collect::<Option<Vec<_>>>()?;
    Some((numbers, at - first))
}

fn known<'c>(value: Value<'c>) -> Index<'c> {
    value.constant_int().map_or(Index::Dynamic(value), Index::Static)
}

/// A number as an SSA value.
pub(super) fn as_value<'c>(rw: &mut ConversionRewriter<'c>, op: Op<'c>, index: Index<'c>) -> Value<'c> {
    match index {
        Index::Static(number) => rw.const_index(number, op.location()),
        Index::Dynamic(value) => value,
    }
}

/// `memref.dim`, or the static size of the type.
pub(super) fn size_of<'c>(
    rw: &mut ConversionRewriter<'c>,
    op: Op<'c>,
    memref: Value<'c>,
    dim: usize,
) -> Result<Index<'c>, Diagnostics> {
    match memref.ty().shape().unwrap_or_default().get(dim) {
        Some(size) if *size != DYNAMIC => Ok(Index::Static(*size)),
        _ => {
            let number = rw.const_index(i64::try_from(dim).unwrap_or(i64::MAX), op.location());
            let ty = Type::index(rw.context());
            let spec = OpSpec::new(ops::memref::DIM, op.location()).operands(&[memref, number]).results(&[ty]);
            Ok(Index::Dynamic(rw.create(spec)?.result(0)))
        }
    }
}

/// A sum of index values and a number, made into operations on demand.
#[derive(Clone, Default)]
pub(super) struct Sum<'c> {
    constant: i64,
    terms: Vec<Value<'c>>,
}

impl<'c> Sum<'c> {
    /// The sum of these.
    pub(super) fn of(indices: &[Index<'c>]) -> Self {
        let mut sum = Self::default();
        indices.iter().for_each(|i| sum.push(*i));
        sum
    }
    /// Adds one more.
    pub(super) fn push(&mut self, index: Index<'c>) {
        match index {
            Index::Static(number) => self.constant = self.constant.saturating_add(number),
            Index::Dynamic(value) => self.terms.push(value),
        }
    }
    /// Adds one more to a sum that has been made: upstream puts the new term first.
    pub(super) fn push_composed(&mut self, index: Index<'c>) {
        match index {
            Index::Dynamic(value) if self.terms.len() > 1 => self.terms.insert(0, value),
            other => self.push(other),
        }
    }
    /// The sum as a number or a value.
    ///
    /// # Errors
    /// `Declined` where MLIR refuses the operation.
    pub(super) fn make(&mut self, rw: &mut ConversionRewriter<'c>, op: Op<'c>) -> Result<Index<'c>, Declined> {
        match self.terms.as_slice() {
            [] => return Ok(Index::Static(self.constant)),
            [term] if self.constant == 0 => return Ok(Index::Dynamic(*term)),
            _ => {}
        }
        let mut symbols: Vec<Value> = Vec::new();
        let mut factors: Vec<usize> = Vec::new();
        for term in &self.terms {
            match symbols.iter().position(|s| s == term) {
                Some(at) => factors[at] += 1,
                None => {
                    symbols.push(*term);
                    factors.push(1);
                }
            }
        }
        let names: Vec<String> = (0..symbols.len()).map(|i| format!("s{i}")).collect();
        let factor = |f: usize| if f == 1 { String::new() } else { format!(" * {f}") };
        let mut addends: Vec<String> = names.iter().zip(factors).map(|(n, f)| n.clone() + &factor(f)).collect();
        if self.constant != 0 {
            addends.push(self.constant.to_string());
        }
        let text = format!("affine_map<()[{}] -> ({})>", names.join(", "), addends.join(" + "));
        let Some(map) = Attr::parse(rw.context(), &text) else { return Err(Declined::no_match("an affine map")) };
        let ty = Type::index(rw.context());
        let spec = OpSpec::new(ops::affine::APPLY, op.location()).operands(&symbols).results(&[ty]).attr("map", map);
        let value = rw.create(spec)?.result(0);
        if symbols.len() >= MAX_TERMS {
            *self = Self { constant: 0, terms: vec![value] };
        }
        Ok(Index::Dynamic(value))
    }
}
