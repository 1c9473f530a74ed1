//! Factors of products that are computed of packed integers, in blocks of the reduction or several to a byte, as parts of
//! the product: the blocks become loops, and the numbers of a byte terms.
//!
//! Before / after, with weights of 4 bits, two to a byte, and a scale per 32 of them:
//!
//! ```text
//! %d = generic (g, j, h, n) ins(%w[g, j, n], %s[g, n])              %y = generic (m, n, g, j)
//!   { (%w >> 4 * index(h) & 15) * %s } : tensor<4x16x2x72xf32>        ins(%x[m, g * 32 + j * 2], %x[m, g * 32 + j * 2 + 1],
//! %f = collapse_shape %d [[0, 1, 2], [3]] : tensor<128x72xf32>            %w[g, j, n], %s[g, n])
//! %y = generic (m, n, k) ins(%x[m, k], %f[k, n]) { out + x * f }      { out + x0 * ((%w & 15) * %s) + x1 * ((%w >> 4 & 15) * %s) }
//! ```
//!
//! Requires: the factor has no other readers; elementwise fusion left it alone ([`is_apart`]).
//! Ensures: no float of the factor is in memory; an input of a byte is read once for all of its numbers.
//! Limits: static sizes; one loop of the product is split, a reduction; no other tensor is read at computed positions.

use crate::{collapse_lines, linalg, products};
use monopour_ir::bodies::MultiplyAdd;
use monopour_ir::typed::linalg::{IteratorType, Operands, generic, iterator_types, iterator_types_attr};
use monopour_ir::{
    AffineExpr, AffineExprKind, AffineMap, Attr, Block, DYNAMIC, Diagnostics, InsertionPoint, LinearForm, Module, Op,
    OpSpec, Region, Rewriter, Type, Value, ops,
};
use std::collections::{BTreeSet, HashMap};
use tracing::trace;

/// Numbers of a byte at most.
const MOST_TERMS: i64 = 8;

/// Makes the factors parts of their products; returns how many.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(crate) fn run<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) -> Result<usize, Diagnostics> {
    let mut count = 0;
    for op in module.op().find_all(ops::linalg::GENERIC) {
        if let Some(form) = (0..2).find_map(|factor| Form::of(op, factor)) {
            trace!(target: "fuse", "{}: computed in the product at {}", form.maker.location(), op.location());
            form.join(rw)?;
            count += 1;
        }
    }
    Ok(count)
}

/// Whether input `factor` of a product can become a part of it here, and not by elementwise fusion.
pub(crate) fn is_apart(op: Op, factor: usize) -> bool {
    Form::of(op, factor).is_some()
}

/// Whether an op computes floats of at most half of their bytes, stored as integers of at most 16 bits, for one reader.
pub(crate) fn shrinks(op: Op) -> bool {
    let bytes = |value: Value| value.ty().static_size_bytes();
    let inputs = &op.operands()[..linalg::num_inputs(op)];
    let all: Option<u64> = inputs.iter().map(|value| bytes(*value)).sum();
    let packed = |value: &Value| value.ty().element().integer_width().is_some_and(|width| width <= 16);
    op.num_results() == 1
        && op.result(0).only_use().is_some()
        && op.result(0).ty().element().is_float()
        && inputs.iter().any(packed)
        && all.zip(bytes(op.result(0))).is_some_and(|(read, made)| read.saturating_mul(2) <= made)
}

/// An operand, and how it is read.
type Input<'c> = (Value<'c>, AffineMap<'c>);

/// A product, the op that makes one of its factors, and how the loop between them is split.
struct Form<'c> {
    product: Op<'c>,
    factor: usize,
    maker: Op<'c>,
    /// Per loop of the maker: the product's loop that it is, or a part of, with its stride there.
    places: Vec<(usize, i64)>,
    /// Extents of the maker's loops.
    extents: Vec<i64>,
    /// The product's loop that is split.
    split: usize,
    /// Strides of the loops in its place, from the smallest, and its extent.
    bounds: Vec<i64>,
    /// Terms of an iteration: the loop of stride 1 is one if there are several.
    terms: i64,
}

impl<'c> Form<'c> {
    fn of(product: Op<'c>, factor: usize) -> Option<Self> {
        if !product.is(ops::linalg::GENERIC) || linalg::num_inputs(product) != 2 {
            return None;
        }
        MultiplyAdd::of(product.body()?)?;
        let loops = products::contraction_loops(product)?;
        let map = linalg::indexing_maps(product)?[factor].dim_positions()?;
        let (maker, groups) = maker_of(product.operand(factor))?;
        let extents = linalg::loop_extents(maker)?;
        let reductions = || map.iter().zip(&groups).filter(|(d, _)| loops.k.contains(d));
        // The loop of several parts, else the only one: that of the numbers of a byte.
        let several = reductions().find(|(_, group)| group.len() > 1);
        let split = *several.or(reductions().next())?.0;
        let mut places = vec![];
        for (d, group) in map.iter().zip(&groups) {
            if group.len() != 1 && *d != split {
                return None;
            }
            let mut stride: i64 = group.iter().map(|l| extents[*l]).product();
            for l in group {
                stride /= extents[*l];
                places.push((*d, stride));
            }
        }
        let form = Self { product, factor, maker, places, extents, split, bounds: vec![], terms: 1 };
        [1, 2, 4, 8].into_iter().find_map(|terms| form.split_by(terms))
    }

    /// With so many terms of each iteration.
    fn split_by(&self, terms: i64) -> Option<Self> {
        let mut bounds: BTreeSet<i64> = [1, terms].into();
        for ((d, stride), extent) in self.places.iter().zip(&self.extents) {
            if *d == self.split {
                bounds.extend([*stride, stride * extent]);
            }
        }
        for (l, by) in linalg::indexing_maps(self.maker)?.iter().flat_map(|m| m.results()).flat_map(divisors) {
            let (d, stride) = *self.places.get(l)?;
            (d == self.split).then_some(())?;
            bounds.insert(stride * by);
        }
        let bounds: Vec<i64> = bounds.into_iter().collect();
        let fits = bounds.windows(2).all(|pair| pair[1] % pair[0] == 0);
        let is_first = terms == 1 || bounds.get(1) == Some(&terms);
        if !fits || !is_first || terms > MOST_TERMS || (terms == 1 && bounds.len() == 2) {
            return None;
        }
        let split = Self { bounds, terms, places: self.places.clone(), extents: self.extents.clone(), ..*self };
        ((0..terms).all(|term| split.is_computable(term)) && split.has_extents()).then_some(split)
    }

    /// Whether each of the loops in the place of the split one is a dimension of some input.
    fn has_extents(&self) -> bool {
        let extents = self.new_extents();
        let mut read: BTreeSet<usize> = BTreeSet::new();
        let maps = linalg::indexing_maps(self.maker).unwrap_or_default();
        for (operand, map) in self.maker.operands().iter().zip(maps).take(linalg::num_inputs(self.maker)) {
            let exprs = self.map(map, true, 0).map(AffineMap::results).unwrap_or_default();
            for (expr, size) in exprs.into_iter().zip(operand.ty().shape().unwrap_or_default()) {
                let Some(form) = expr.linear(extents.len()) else { continue };
                read.extend(form.as_dim());
                read.extend(parts_of(&form, size, &extents).into_iter().flatten());
            }
        }
        (self.first_part()..self.first_part() + self.parts()).all(|part| read.contains(&part))
    }

    /// Number of loops of the product, once split.
    fn num_loops(&self) -> usize {
        self.first_part() + self.parts() + self.num_old() - self.split - 1
    }
    fn num_old(&self) -> usize {
        linalg::parallel_loops(self.product).map_or(0, |loops| loops.len())
    }
    fn first_part(&self) -> usize {
        self.split
    }
    /// Loops in the place of the split one.
    fn parts(&self) -> usize {
        self.bounds.len() - 1 - usize::from(self.terms > 1)
    }
    /// Strides of these loops, from the largest.
    fn strides(&self) -> Vec<i64> {
        let inner = usize::from(self.terms > 1);
        self.bounds[inner..self.bounds.len() - 1].iter().rev().copied().collect()
    }
    /// Extents of the new loops; of those that are not split a number larger than any.
    fn new_extents(&self) -> Vec<i64> {
        let mut extents = vec![i64::MAX; self.num_loops()];
        for (part, stride) in self.strides().iter().enumerate() {
            let at = self.bounds.iter().position(|bound| bound == stride).unwrap_or(0);
            extents[self.first_part() + part] = self.bounds[at + 1] / stride;
        }
        extents
    }

    /// A part of one of the product's loops, from `stride` to `end`, in the new loops and a term.
    fn old_loop(&self, (d, stride, end): (usize, i64, i64), term: i64) -> LinearForm {
        let count = self.num_loops();
        if d != self.split {
            return LinearForm::dim(if d < self.split { d } else { d - 1 + self.parts() }, count);
        }
        let mut form = LinearForm::constant(if stride == 1 { term % end } else { 0 }, count);
        for (part, by) in self.strides().into_iter().enumerate().filter(|(_, by)| (stride..end).contains(by)) {
            form.factors[self.first_part() + part] = by / stride;
        }
        form
    }

    /// A loop of the maker.
    fn maker_loop(&self, l: usize, term: i64) -> LinearForm {
        let (d, stride) = self.places[l];
        self.old_loop((d, stride, stride * self.extents[l]), term)
    }

    /// A map of the maker's (`of_maker`) or the product's, for a term.
    fn map(&self, map: AffineMap<'c>, of_maker: bool, term: i64) -> Option<AffineMap<'c>> {
        let whole = |d: usize| self.old_loop((d, 1, i64::MAX), term);
        let at = |l: usize| if of_maker { self.maker_loop(l, term) } else { whole(l) };
        let extents = self.new_extents();
        let forms: Option<Vec<LinearForm>> =
            map.results().into_iter().map(|expr| linear(expr, &at, &extents)).collect();
        let text: Vec<String> = forms?.iter().map(written).collect();
        let dims: Vec<String> = (0..self.num_loops()).map(|d| format!("d{d}")).collect();
        let text = format!("affine_map<({}) -> ({})>", dims.join(", "), text.join(", "));
        Attr::parse(self.product.context(), &text)?.as_affine_map()
    }

    /// The integers of the maker's body that positions alone decide.
    fn positions(&self, term: i64) -> HashMap<Value<'c>, LinearForm> {
        let mut known: HashMap<Value, LinearForm> = HashMap::new();
        let (count, extents) = (self.num_loops(), self.new_extents());
        for op in self.maker.body().into_iter().flat_map(Block::ops) {
            let of = |i: usize| {
                let value = op.operand(i);
                let constant = || value.constant_int().map(|c| LinearForm::constant(c, count));
                known.get(&value).cloned().or_else(constant)
            };
            let number = |i: usize| of(i).and_then(|form| form.as_constant()).filter(|c| *c > 0);
            let form = match op.name() {
                ops::linalg::INDEX => {
                    op.attr("dim").and_then(|a| a.as_int()).map(|l| self.maker_loop(l as usize, term))
                }
                ops::arith::ADDI => of(0).zip(of(1)).and_then(|(a, b)| a.plus(&b)),
                ops::arith::MULI => of(0).zip(number(1)).and_then(|(a, by)| a.times(by)),
                ops::arith::REMSI | ops::arith::REMUI => {
                    of(0).zip(number(1)).and_then(|(a, by)| remainder(&a, by, &extents))
                }
                ops::arith::DIVSI | ops::arith::DIVUI => {
                    of(0).zip(number(1)).and_then(|(a, by)| quotient(&a, by, &extents))
                }
                ops::arith::ANDI => {
                    let mask = number(1).filter(|mask| (mask + 1).count_ones() == 1);
                    of(0).zip(mask).and_then(|(a, mask)| remainder(&a, mask + 1, &extents))
                }
                ops::arith::INDEX_CAST | ops::arith::INDEX_CASTUI => {
                    let wide = op.result(0).ty().integer_width().is_none_or(|width| width >= 32);
                    of(0).filter(|form| wide || form.as_constant().is_some_and(|c| (0..128).contains(&c)))
                }
                _ => None,
            };
            if let Some(form) = form {
                known.insert(op.result(0), form);
            }
        }
        known
    }

    /// Whether the maker's maps are linear in the new loops, and its body depends on no position once a term is chosen.
    fn is_computable(&self, term: i64) -> bool {
        let known = self.positions(term);
        let is_number = |value: &Value| known.get(value).is_none_or(|form| form.as_constant().is_some());
        let mut rest = self
            .maker
            .body()
            .into_iter()
            .flat_map(Block::ops)
            .filter(|op| op.num_results() == 0 || !known.contains_key(&op.result(0)));
        let maps = linalg::indexing_maps(self.maker).unwrap_or_default();
        rest.all(|op| !op.is(ops::linalg::INDEX) && op.operands().iter().all(is_number))
            && maps.into_iter().all(|map| self.map(map, true, term).is_some())
    }

    /// The new op's inputs with their maps; per term the place of the other factor, then those of the maker's inputs.
    fn inputs(&self, rw: &mut Rewriter<'c>) -> Result<(Vec<Input<'c>>, Vec<Vec<usize>>), Diagnostics> {
        let other = 1 - self.factor;
        let map = linalg::indexing_maps(self.product).expect("invariant: a generic has maps")[other];
        let maker_maps = linalg::indexing_maps(self.maker).expect("invariant: a generic has maps");
        let own: Vec<Input> = self.maker.operands().into_iter().zip(maker_maps).collect();
        let mut inputs: Vec<Input> = vec![];
        let mut place = |input: Input<'c>| {
            let known = inputs.iter().position(|known| *known == input);
            known.unwrap_or_else(|| {
                inputs.push(input);
                inputs.len() - 1
            })
        };
        let mut places: Vec<Vec<usize>> = vec![];
        let mut read: HashMap<usize, (AffineMap, Input)> = HashMap::new();
        for term in 0..self.terms {
            let of = |map: AffineMap<'c>, of_maker: bool| {
                self.map(map, of_maker, term).expect("invariant: its maps were computed before")
            };
            let mut here = vec![place((self.product.operand(other), of(map, false)))];
            for (i, (value, map)) in own.iter().enumerate().take(linalg::num_inputs(self.maker)) {
                let map = of(*map, true);
                let parts = match read.get(&i) {
                    // Terms of a byte read the same one.
                    Some((of, parts)) if *of == map => *parts,
                    _ => self.in_parts(*value, map, rw)?,
                };
                read.insert(i, (map, parts));
                here.push(place(parts));
            }
            places.push(here);
        }
        Ok((inputs, places))
    }

    fn join(&self, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
        let (product, cx, loc) = (self.product, rw.context(), self.product.location());
        let maps = linalg::indexing_maps(product).expect("invariant: a generic has maps");
        let (inputs, places) = self.inputs(rw)?;
        let out = self.map(maps[2], false, 0).expect("invariant: a result has no reduction");
        let all: Vec<AffineMap> = inputs.iter().map(|(_, map)| *map).chain([out]).collect();
        let inputs: Vec<Value> = inputs.iter().map(|(value, _)| *value).collect();
        let destination = product.operand(2);
        let arguments: Vec<_> = inputs.iter().chain([&destination]).map(|v| (v.ty().element(), loc)).collect();
        let block = Block::new(&arguments);
        let region = Region::new();
        region.append(block);
        rw.set_point(InsertionPoint::End(block));
        let mut sum = block.arg(inputs.len());
        for (term, places) in places.iter().enumerate() {
            let args: Vec<Value> = places[1..].iter().map(|place| block.arg(*place)).collect();
            let made = self.copy_maker(term as i64, &args, rw);
            let body = product.body().expect("invariant: a generic has a body");
            let map =
                [(1 - self.factor, block.arg(places[0])), (self.factor, made), (2, sum)].map(|(i, v)| (body.arg(i), v));
            sum = copy_body(body, &mut map.into(), rw);
        }
        rw.create(OpSpec::new(ops::linalg::YIELD, loc).operands(&[sum]))?;
        let mut kinds = iterator_types(product).unwrap_or_default();
        kinds.splice(self.split..=self.split, vec![IteratorType::Reduction; self.parts()]);
        let operands = Operands { inputs: &inputs, outputs: &[destination] };
        rw.set_point(InsertionPoint::Before(product));
        let joined = rw.create(generic(loc, operands, &all, iterator_types_attr(cx, &kinds), region))?;
        let mut unread = product.operand(self.factor).defining_op();
        rw.replace_op(product, &[joined.result(0)]);
        while let Some(op) = unread.filter(|op| op.result(0).is_unused()) {
            unread = op.operand(0).defining_op().filter(|_| op != self.maker);
            rw.erase(op);
        }
        Ok(())
    }

    /// An input whose dimensions are read by one loop each: those that the loops in the place of the split one index
    /// together are expanded.
    fn in_parts(&self, value: Value<'c>, map: AffineMap<'c>, rw: &mut Rewriter<'c>) -> Result<Input<'c>, Diagnostics> {
        let (mut value, extents) = (value, self.new_extents());
        let mut results: Vec<AffineExpr> = vec![];
        for expr in map.results() {
            let at = results.len();
            let size = value.ty().shape().map_or(0, |shape| shape[at]);
            let Some(loops) = expr.linear(extents.len()).and_then(|form| parts_of(&form, size, &extents)) else {
                results.push(expr);
                continue;
            };
            for (i, l) in loops.iter().enumerate() {
                if i + 1 < loops.len() {
                    let mut shape = value.ty().shape().unwrap_or_default();
                    shape[at + i] /= extents[*l];
                    shape.insert(at + i, extents[*l]);
                    let ty = Type::tensor(&shape, value.ty().element(), None);
                    rw.set_point(InsertionPoint::Before(self.product));
                    value = collapse_lines::expanded(value, ty, at + i, rw)?;
                }
                results.push(AffineExpr::dim(rw.context(), *l));
            }
        }
        Ok((value, AffineMap::of(rw.context(), extents.len(), &results)))
    }

    /// Copies the maker's body for a term, on these inputs; returns what it yields.
    fn copy_maker(&self, term: i64, args: &[Value<'c>], rw: &mut Rewriter<'c>) -> Value<'c> {
        let body = self.maker.body().expect("invariant: a generic has a body");
        let known = self.positions(term);
        let mut map: HashMap<Value, Value> = args.iter().enumerate().map(|(i, v)| (body.arg(i), *v)).collect();
        for (value, form) in known.iter().filter(|(value, _)| !value.is_unused()) {
            let Some(constant) = form.as_constant() else { continue };
            let (ty, loc) = (value.ty(), self.maker.location());
            let attr = if ty.integer_width().is_some() {
                Attr::int(ty, constant)
            } else {
                Attr::index(rw.context(), constant)
            };
            let spec = OpSpec::new(ops::arith::CONSTANT, loc).results(&[ty]).attr("value", attr);
            map.insert(*value, rw.create(spec).expect("arith.constant of a matching type always builds").result(0));
        }
        let decided: Vec<Op> = known.keys().filter_map(|value| value.defining_op()).collect();
        let rest = body.ops().into_iter().filter(|op| !decided.contains(op));
        copy_ops(rest, &mut map, rw)
    }
}

fn copy_body<'c>(body: Block<'c>, map: &mut HashMap<Value<'c>, Value<'c>>, rw: &mut Rewriter<'c>) -> Value<'c> {
    copy_ops(body.ops().into_iter(), map, rw)
}

/// Copies the ops of a body up to its `linalg.yield`; returns what that yields.
fn copy_ops<'c>(
    ops: impl Iterator<Item = Op<'c>>,
    map: &mut HashMap<Value<'c>, Value<'c>>,
    rw: &mut Rewriter<'c>,
) -> Value<'c> {
    for op in ops {
        if op.is(ops::linalg::YIELD) {
            return map.get(&op.operand(0)).copied().unwrap_or(op.operand(0));
        }
        let copy = rw.clone_op(op, |v| map.get(&v).copied().unwrap_or(v));
        rw.insert(copy);
        map.extend(op.results().into_iter().zip(copy.results()));
    }
    unreachable!("invariant: a body of linalg yields")
}

/// The op that makes a factor, and its loops behind each dimension of it: one each, or several that are collapsed.
fn maker_of<'c>(factor: Value<'c>) -> Option<(Op<'c>, Vec<Vec<usize>>)> {
    let op = factor.defining_op().filter(|_| factor.only_use().is_some())?;
    let (maker, groups) = if op.is(ops::tensor::COLLAPSE_SHAPE) {
        let dims = |group: Attr| -> Option<Vec<usize>> {
            group.as_array()?.iter().map(|d| d.as_int().map(|d| d as usize)).collect()
        };
        let groups: Option<Vec<Vec<usize>>> = op.attr("reassociation")?.as_array()?.into_iter().map(dims).collect();
        (op.operand(0).defining_op()?, groups?)
    } else {
        let rank = factor.ty().shape()?.len();
        (op, (0..rank).map(|d| vec![d]).collect())
    };
    let inputs = if maker.is(ops::linalg::GENERIC) { linalg::num_inputs(maker) } else { return None };
    let (maps, loops) = (linalg::indexing_maps(maker)?, linalg::parallel_loops(maker)?);
    let is_static = maker.operands().iter().all(|v| v.ty().shape().is_none_or(|shape| !shape.contains(&DYNAMIC)));
    let is_pointwise = loops.iter().all(|parallel| *parallel) && maps.last()?.is_identity();
    let writes_only = maker.body()?.arg(inputs).is_unused();
    let reads_elsewhere = !maker.find_all(ops::tensor::EXTRACT).is_empty();
    let fits = shrinks(maker) && is_static && is_pointwise && writes_only && !reads_elsewhere;
    fits.then_some((maker, groups)).filter(|_| maker.block() == op.block())
}

/// The quotients and remainders of bare dimensions in an expression: the dimension, and the divisor.
fn divisors(expr: AffineExpr) -> Vec<(usize, i64)> {
    match expr.kind() {
        AffineExprKind::FloorDiv(l, r) | AffineExprKind::Mod(l, r) => match (l.kind(), r.kind()) {
            (AffineExprKind::Dim(d), AffineExprKind::Constant(by)) if by > 0 => vec![(d, by)],
            _ => [divisors(l), divisors(r)].concat(),
        },
        AffineExprKind::Add(l, r) | AffineExprKind::Mul(l, r) | AffineExprKind::CeilDiv(l, r) => {
            [divisors(l), divisors(r)].concat()
        }
        _ => vec![],
    }
}

/// An expression in the new loops, where dimension `d` is `at(d)`.
fn linear(expr: AffineExpr, at: &impl Fn(usize) -> LinearForm, extents: &[i64]) -> Option<LinearForm> {
    let of = |expr: AffineExpr| linear(expr, at, extents);
    match expr.kind() {
        AffineExprKind::Dim(d) => Some(at(d)),
        AffineExprKind::Constant(c) => Some(LinearForm::constant(c, extents.len())),
        AffineExprKind::Add(l, r) => of(l)?.plus(&of(r)?),
        AffineExprKind::Mul(l, r) => of(l)?.times(of(r)?.as_constant()?),
        AffineExprKind::FloorDiv(l, r) => quotient(&of(l)?, of(r)?.as_constant().filter(|by| *by > 0)?, extents),
        AffineExprKind::Mod(l, r) => remainder(&of(l)?, of(r)?.as_constant().filter(|by| *by > 0)?, extents),
        _ => None,
    }
}

/// A form as a multiple of `by`, and the rest, which is less; `None` where that depends on the iteration.
fn divided(form: &LinearForm, by: i64, extents: &[i64]) -> Option<(LinearForm, LinearForm)> {
    let dims = extents.len();
    let mut whole = LinearForm::constant(form.constant.div_euclid(by), dims);
    let mut rest = LinearForm::constant(form.constant.rem_euclid(by), dims);
    let mut largest = rest.constant;
    for (d, factor) in form.factors.iter().enumerate() {
        if factor % by == 0 {
            whole.factors[d] = factor / by;
        } else {
            rest.factors[d] = *factor;
            largest = largest.checked_add(factor.checked_mul(extents[d] - 1).filter(|most| *most >= 0)?)?;
        }
    }
    (largest < by).then_some((whole, rest))
}

fn quotient(form: &LinearForm, by: i64, extents: &[i64]) -> Option<LinearForm> {
    divided(form, by, extents).map(|(whole, _)| whole)
}

fn remainder(form: &LinearForm, by: i64, extents: &[i64]) -> Option<LinearForm> {
    divided(form, by, extents).map(|(_, rest)| rest)
}

/// The loops that index a dimension of this size together, each element once, from the outermost.
fn parts_of(form: &LinearForm, size: i64, extents: &[i64]) -> Option<Vec<usize>> {
    let mut loops: Vec<usize> = (0..extents.len()).filter(|d| form.factors[*d] != 0).collect();
    loops.sort_by_key(|d| std::cmp::Reverse(form.factors[*d]));
    let mut rest = size;
    for d in &loops {
        let inner = form.factors[*d];
        (inner.checked_mul(extents[*d]) == Some(rest)).then_some(())?;
        rest = inner;
    }
    (rest == 1 && form.constant == 0 && loops.len() > 1).then_some(loops)
}

/// The text of a form in an affine map.
fn written(form: &LinearForm) -> String {
    let terms = form.factors.iter().enumerate().filter(|(_, factor)| **factor != 0);
    let mut terms: Vec<String> = terms.map(|(d, factor)| format!("d{d} * {factor}")).collect();
    terms.push(form.constant.to_string());
    terms.join(" + ")
}
