//! Offsets, sizes and strides as normal forms over SSA values, so that equal slices get equal keys.

use monopour_ir::ops;
use std::collections::HashMap;

use monopour_analysis::facts::Affine;
use monopour_ir::typed::Slice;
use monopour_ir::{AffineExpr, AffineExprKind, HandleMap, Op, Value};

use crate::effects::{Index, SliceModel};

/// Longest chain of index arithmetic that is followed: beyond it a value is a symbol of its own.
const MAX_DEPTH: usize = 16;

/// Numbers for SSA index values and for terms that are not affine.
#[derive(Default)]
pub(crate) struct Symbols<'c> {
    values: HandleMap<Value<'c>, u32>,
    terms: HashMap<Term, u32>,
    /// By number.
    origins: Vec<Origin<'c>>,
}

/// What a number stands for.
#[derive(Clone)]
pub(crate) enum Origin<'c> {
    /// An SSA value.
    Value(Value<'c>),
    /// A term of these numbers.
    Term(Vec<u32>),
}

/// A term that is not affine: equal operations on equal operands are equal numbers.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Term {
    Binary(&'static str, Affine, Affine),
    MinMax(String, Vec<Affine>),
}

impl<'c> Symbols<'c> {
    /// The normal form of an index.
    pub(crate) fn affine(&mut self, index: Index<'c>) -> Affine {
        match index {
            Index::Static(value) => Affine::constant(value),
            Index::Dynamic(value) => self.value(value, 0),
        }
    }

    /// What the numbers stand for, by number; a term comes behind its own numbers.
    pub(crate) fn origins(&self) -> &[Origin<'c>] {
        &self.origins
    }

    fn fresh(&mut self, origin: Origin<'c>) -> u32 {
        self.origins.push(origin);
        u32::try_from(self.origins.len() - 1).unwrap_or(u32::MAX)
    }

    fn opaque(&mut self, value: Value<'c>) -> Affine {
        if let Some(id) = self.values.get(&value) {
            return Affine::symbol(*id);
        }
        let id = self.fresh(Origin::Value(value));
        self.values.insert(value, id);
        Affine::symbol(id)
    }

    fn term(&mut self, term: Term) -> Affine {
        if let Some(id) = self.terms.get(&term) {
            return Affine::symbol(*id);
        }
        let numbers: Vec<&Affine> = match &term {
            Term::Binary(_, a, b) => vec![a, b],
            Term::MinMax(_, all) => all.iter().collect(),
        };
        let symbols = numbers.into_iter().flat_map(|number| &number.terms).map(|(symbol, _)| *symbol).collect();
        let id = self.fresh(Origin::Term(symbols));
        self.terms.insert(term, id);
        Affine::symbol(id)
    }

    fn value(&mut self, value: Value<'c>, depth: usize) -> Affine {
        if let Some(constant) = value.constant_int() {
            return Affine::constant(constant);
        }
        let Some(op) = value.defining_op().filter(|_| depth < MAX_DEPTH) else { return self.opaque(value) };
        let known = match op.name() {
            ops::affine::APPLY => self.applied(op, depth).and_then(|r| r.into_iter().next()),
            ops::affine::MIN | ops::affine::MAX => {
                self.applied(op, depth).map(|r| self.term(Term::MinMax(op.name().to_owned(), r)))
            }
            ops::arith::ADDI => self.pair(op, depth).and_then(|(a, b)| sum(a, b)),
            ops::arith::SUBI => self.pair(op, depth).and_then(|(a, b)| sum(a, scaled(b, -1)?)),
            ops::arith::MULI => self.pair(op, depth).and_then(|(a, b)| product(a, b)),
            _ => None,
        };
        known.unwrap_or_else(|| self.opaque(value))
    }

    fn pair(&mut self, op: Op<'c>, depth: usize) -> Option<(Affine, Affine)> {
        Some((self.value(op.operand(0), depth + 1), self.value(op.operand(1), depth + 1)))
    }

    fn applied(&mut self, op: Op<'c>, depth: usize) -> Option<Vec<Affine>> {
        let map = op.attr("map")?.as_affine_map()?;
        let operands: Vec<Affine> = op.operands().into_iter().map(|v| self.value(v, depth + 1)).collect();
        let dims = map.num_dims();
        map.results().into_iter().map(|e| self.expr(e, &operands, dims)).collect()
    }

    fn expr(&mut self, expr: AffineExpr<'c>, operands: &[Affine], dims: usize) -> Option<Affine> {
        match expr.kind() {
            AffineExprKind::Dim(p) => operands.get(p).cloned(),
            AffineExprKind::Symbol(p) => operands.get(dims + p).cloned(),
            AffineExprKind::Constant(v) => Some(Affine::constant(v)),
            AffineExprKind::Add(a, b) => sum(self.expr(a, operands, dims)?, self.expr(b, operands, dims)?),
            AffineExprKind::Mul(a, b) => product(self.expr(a, operands, dims)?, self.expr(b, operands, dims)?),
            AffineExprKind::Mod(a, b) => self.binary("mod", a, b, operands, dims),
            AffineExprKind::FloorDiv(a, b) => self.binary("floordiv", a, b, operands, dims),
            AffineExprKind::CeilDiv(a, b) => self.binary("ceildiv", a, b, operands, dims),
        }
    }

    fn binary(
        &mut self,
        name: &'static str,
        a: AffineExpr<'c>,
        b: AffineExpr<'c>,
        operands: &[Affine],
        dims: usize,
    ) -> Option<Affine> {
        let (a, b) = (self.expr(a, operands, dims)?, self.expr(b, operands, dims)?);
        Some(self.term(Term::Binary(name, a, b)))
    }
}

fn scaled(mut a: Affine, factor: i64) -> Option<Affine> {
    a.constant = a.constant.checked_mul(factor)?;
    for (_, coefficient) in &mut a.terms {
        *coefficient = coefficient.checked_mul(factor)?;
    }
    Some(a.normalised())
}

fn sum(mut a: Affine, b: Affine) -> Option<Affine> {
    a.constant = a.constant.checked_add(b.constant)?;
    a.terms.extend(b.terms);
    Some(a.normalised())
}

fn product(a: Affine, b: Affine) -> Option<Affine> {
    if a.terms.is_empty() {
        return scaled(b, a.constant);
    }
    if b.terms.is_empty() { scaled(a, b.constant) } else { None }
}

/// The slice of an op of `OffsetSizeAndStrideOpInterface`; `None` for another op.
pub(crate) fn slice_of<'c>(op: Op<'c>) -> Option<SliceModel<'c>> {
    let Slice { offsets, sizes, strides } = Slice::of(op)?;
    Some(SliceModel { offsets, sizes, strides })
}

/// The normal forms of offsets, sizes and strides.
pub(crate) type Key = [Vec<Affine>; 3];

/// The normal forms of a slice: equal slices have equal ones.
pub(crate) fn key<'c>(symbols: &mut Symbols<'c>, slice: &SliceModel<'c>) -> Key {
    let mut numbers =
        |list: &[Index<'c>]| -> Vec<Affine> { list.iter().map(|i| symbols.affine(*i).normalised()).collect() };
    [numbers(&slice.offsets), numbers(&slice.sizes), numbers(&slice.strides)]
}

#[cfg(test)]
mod tests {
    use monopour_ir::{Context, Module};

    use super::*;

    /// The normal forms of the results of these operations, in order.
    fn forms(body: &str) -> Vec<Affine> {
        let text = format!("func.func @f(%a: index, %b: index, %c: index) {{\n{body}\nreturn\n}}");
        let module = Module::parse(Context::new(), text.as_bytes(), "test.mlir").unwrap_or_else(|e| panic!("{e}"));
        let function = module.symbol("f").expect("it is there");
        let ops = function.body().expect("a body").ops();
        let mut symbols = Symbols::default();
        ops.into_iter()
            .filter(|op| op.num_results() > 0)
            .map(|op| symbols.affine(Index::Dynamic(op.result(0))))
            .collect()
    }

    #[test]
    fn equal_terms_have_one_symbol_and_others_their_own() {
        let found = forms(
            "%0 = affine.min affine_map<(d0) -> (d0, 4)>(%a)
             %1 = affine.max affine_map<(d0) -> (d0, 4)>(%a)
             %2 = affine.apply affine_map<(d0) -> (d0 mod 4)>(%a)
             %3 = affine.apply affine_map<(d0) -> (d0)>(%a)
             %4 = affine.apply affine_map<(d0) -> (d0)>(%b)
             %5 = affine.apply affine_map<(d0) -> (d0)>(%c)
             %6 = affine.min affine_map<(d0) -> (d0, 4)>(%a)",
        );
        assert_eq!(found[6], found[0]);
        for (i, one) in found[..6].iter().enumerate() {
            assert!(!found[..i].contains(one), "{i}: {found:?}");
        }
    }

    #[test]
    fn arithmetic_is_followed_to_a_depth() {
        let apply = |i: usize, of: &str| format!("%{i} = affine.apply affine_map<(d0) -> (d0 + 1)>({of})");
        let add = |i: usize, of: &str| format!("%{i} = arith.addi {of}, %one : index");
        for step in [&apply as &dyn Fn(usize, &str) -> String, &add] {
            let mut lines = vec!["%one = arith.constant 1 : index".to_owned(), step(0, "%a")];
            lines.extend((1..2 * MAX_DEPTH).map(|i| step(i, &format!("%{}", i - 1))));
            let last = forms(&lines.join("\n")).pop().expect("the last");
            assert_eq!((last.terms.len(), last.constant), (1, MAX_DEPTH as i64));
        }
    }
}
