//! Products of an unknown number of rows and weights that are computed: those of a single row are code of their own, and of a few.
//!
//! Before / after:
//!
//! ```text
//! %w = generic ins(%packed, %scales)              %y = scf.if (rows == 1) {
//! %y = product ins(%x, %w) : tensor<?x2816xf32>     %one = tensor.cast %x : tensor<?x1024xf32> to tensor<1x1024xf32>
//!                                                   %w = generic ins(%packed, %scales)
//!                                                   product ins(%one, %w) : tensor<1x2816xf32>
//!                                                 } else { as before }
//! ```
//!
//! Elementwise fusion makes the weights a part of a product of one row, which reads each of them once; for more rows they are
//! computed before the product, into memory. A language model that takes any number of tokens takes one in most of its runs.
//! Of integers that lie along the terms a few rows compute the weights, too: `rows <= 16` is a third branch, marked for fusion.
//!
//! Requires: no dispatches yet. Ensures: the same values, up to the order of a product's terms.
//! Limits: weights of constants, not those that are just extended (fusion makes these a part of the product); known sizes of all other loops.

use crate::{linalg, products, stored_order};
use monopour_contract::attributes;
use monopour_ir::typed::arith::CmpIPredicate;
use monopour_ir::{
    AffineMap, Attr, Block, DYNAMIC, Diagnostics, InsertionPoint, Location, Module, Op, OpSpec, Region, Rewriter, Type,
    Value, ops,
};
use std::collections::HashMap;
use tracing::trace;

/// Rewrites all such products of `module`.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(crate) fn run<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    let mut all = module.op().find_all(ops::linalg::GENERIC);
    // Those that finish one are gone with it.
    all.retain(|op| products::contraction_loops(*op).is_some() && op.attr(attributes::ROUNDED_ROWS).is_none());
    for op in all {
        if let Some(form) = Form::of(op) {
            trace!(target: "fuse", "{}: a product of one row is code of its own", op.location());
            form.rewrite(rw)?;
        }
    }
    Ok(())
}

/// A product, and what computes its weights.
struct Form<'c> {
    product: Op<'c>,
    /// The operand of rows, and its dimensions of unknown size.
    rows: (Value<'c>, Vec<usize>),
    /// What computes the weights, and moves them, in order.
    weights: Vec<Op<'c>>,
    /// What fills the result, if anything does.
    fill: Option<Op<'c>>,
    /// Pointwise ops that finish the result, one after the other.
    after: Vec<Op<'c>>,
}

impl<'c> Form<'c> {
    fn of(product: Op<'c>) -> Option<Self> {
        let found = products::contraction_loops(product).filter(|_| linalg::num_inputs(product) == 2)?;
        let extents = linalg::loop_extents(product)?;
        let is_row = |d: &usize| found.m.contains(d);
        let known = (0..extents.len()).filter(|d| !is_row(d)).all(|d| extents[d] != DYNAMIC);
        let dims = linalg::indexing_maps(product)?.get(found.lhs)?.dim_positions()?;
        let value = product.operand(found.lhs);
        let unknown = dims.iter().enumerate().filter(|(_, d)| is_row(d) && extents[**d] == DYNAMIC);
        let rows = (value, unknown.map(|(position, _)| position).collect::<Vec<_>>());
        let single = found.m.iter().all(|d| matches!(extents[*d], DYNAMIC | 1));
        let fits = known && single && !rows.1.is_empty() && product.num_results() == 1;
        let weights = computed(product.operand(1 - found.lhs)).filter(|_| fits)?;
        let fill = linalg::destination(product, 0).defining_op().filter(|op| op.is(ops::linalg::GENERIC));
        let is_fill = |op: &Op<'c>| op.operands()[..linalg::num_inputs(*op)].iter().all(|v| v.ty().shape().is_none());
        let fill = fill.filter(is_fill);
        let empty = fill.map_or(linalg::destination(product, 0), |fill| linalg::destination(fill, 0));
        empty.defining_op().filter(|op| op.is(ops::tensor::EMPTY))?;
        Some(Self { product, rows, weights, fill, after: after(product) })
    }

    /// The op whose result the branches have.
    fn last(&self) -> Op<'c> {
        self.after.last().copied().unwrap_or(self.product)
    }

    fn rewrite(&self, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
        let last = self.last();
        rw.set_point(InsertionPoint::Before(last));
        let count = self.count(rw)?;
        let mut arms = vec![(self.compare(CmpIPredicate::Eq, (count, 1), rw)?, Rows::One)];
        let weights = usize::from(self.product.operand(0) == self.rows.0);
        let per_byte = stored_order::FEW_ROWS_PER_BYTE;
        if stored_order::lies_along_terms(self.product, weights, per_byte).is_some() {
            arms.push((self.compare(CmpIPredicate::Ule, (count, stored_order::FEW_ROWS), rw)?, Rows::Few));
        }
        let made = self.branches(&arms, InsertionPoint::Before(last), rw)?;
        rw.replace_op(last, &[made]);
        for op in self.after.iter().rev().skip(1).chain((last != self.product).then_some(&self.product)) {
            rw.erase(*op);
        }
        Ok(())
    }

    /// The ops for the first condition that holds, else for any number of rows.
    fn branches(
        &self,
        arms: &[(Value<'c>, Rows)],
        point: InsertionPoint<'c>,
        rw: &mut Rewriter<'c>,
    ) -> Result<Value<'c>, Diagnostics> {
        let Some(((condition, rows), others)) = arms.split_first() else {
            rw.set_point(point);
            return self.copy(Rows::Any, rw);
        };
        let loc = self.product.location();
        let mut spec = OpSpec::new(ops::scf::IF, loc).operands(&[*condition]).results(&[self.last().result(0).ty()]);
        for holds in [true, false] {
            let (region, block) = (Region::new(), Block::new(&[]));
            region.append(block);
            rw.set_point(InsertionPoint::End(block));
            let made =
                if holds { self.copy(*rows, rw)? } else { self.branches(others, InsertionPoint::End(block), rw)? };
            rw.set_point(InsertionPoint::End(block));
            rw.create(OpSpec::new(ops::scf::YIELD, loc).operands(&[made]))?;
            spec = spec.region(region);
        }
        rw.set_point(point);
        Ok(rw.create(spec)?.result(0))
    }

    /// The number of rows.
    fn count(&self, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
        let (loc, index) = (self.product.location(), Type::index(rw.context()));
        let (value, dims) = &self.rows;
        let mut count = None;
        for dim in dims {
            let position = rw.const_index(*dim as i64, loc);
            let size = OpSpec::new(ops::tensor::DIM, loc).operands(&[*value, position]).results(&[index]);
            let size = rw.create(size)?.result(0);
            count = Some(match count {
                None => size,
                Some(count) => {
                    let spec = OpSpec::new(ops::arith::MULI, loc).operands(&[count, size]).results(&[index]);
                    rw.create(spec)?.result(0)
                }
            });
        }
        Ok(count.expect("invariant: there are rows"))
    }

    fn compare(
        &self,
        predicate: CmpIPredicate,
        (count, number): (Value<'c>, i64),
        rw: &mut Rewriter<'c>,
    ) -> Result<Value<'c>, Diagnostics> {
        let loc = self.product.location();
        let number = rw.const_index(number, loc);
        let truth = Type::integer(rw.context(), 1);
        let spec = OpSpec::new(ops::arith::CMPI, loc).operands(&[count, number]).results(&[truth]);
        Ok(rw.create(spec.attr("predicate", predicate.to_attr(rw.context())))?.result(0))
    }

    /// The ops for so many rows.
    fn copy(&self, rows: Rows, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
        let single = rows == Rows::One;
        let (loc, ty) = (self.product.location(), self.last().result(0).ty());
        let mut known: HashMap<Value<'c>, Value<'c>> = HashMap::new();
        let is_unknown = |ty: Type<'c>| ty.shape().is_some_and(|shape| shape.contains(&DYNAMIC));
        let own = |ty: Type<'c>| if single && is_unknown(ty) { of_one(ty) } else { ty };
        for op in self.weights.iter().chain(&self.fill).chain([&self.product]).chain(&self.after).copied() {
            let is_stored = self.weights.contains(&op);
            for value in op.operands().into_iter().filter(|_| !is_stored) {
                if known.contains_key(&value) || own(value.ty()) == value.ty() {
                    continue;
                }
                let empty = value.defining_op().filter(|def| def.is(ops::tensor::EMPTY));
                let made = match empty {
                    Some(_) => {
                        let spec = OpSpec::new(ops::tensor::EMPTY, loc).results(&[own(value.ty())]);
                        rw.create(spec)?.result(0)
                    }
                    None => cast(value, own(value.ty()), loc, rw)?,
                };
                known.insert(value, made);
            }
            let copy = rw.clone_op(op, |value| known.get(&value).copied().unwrap_or(value));
            rw.insert(copy);
            rw.set_type(copy.result(0), own(op.result(0).ty()));
            if rows == Rows::Few && op == self.product {
                rw.set_attr(copy, attributes::FEW_ROWS, Attr::unit(op.context()));
            }
            known.insert(op.result(0), copy.result(0));
        }
        let result = known[&self.last().result(0)];
        if single { cast(result, ty, loc, rw) } else { Ok(result) }
    }
}

/// How many rows a branch is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rows {
    One,
    /// At most [`stored_order::FEW_ROWS`].
    Few,
    Any,
}

/// Pointwise ops with the sizes of a product's result, of which the first alone reads that, and each the one before.
fn after(product: Op<'_>) -> Vec<Op<'_>> {
    let mut ops = vec![];
    let mut value = product.result(0);
    let shape = value.ty().shape();
    while let Some(reader) = value.only_use().map(|reader| reader.op) {
        let empty = |op: Op| linalg::destination(op, 0).defining_op().is_some_and(|def| def.is(ops::tensor::EMPTY));
        // Its loops are the result's dimensions; so are those of whatever has an unknown size.
        let in_order = |(operand, map): (Value, &AffineMap)| {
            operand.ty().shape().is_some_and(|sizes| !sizes.contains(&DYNAMIC)) || map.is_identity()
        };
        let maps = linalg::indexing_maps(reader).unwrap_or_default();
        let fits = linalg::is_elementwise(reader)
            && reader.num_results() == 1
            && reader.block() == product.block()
            && reader.result(0).ty().shape() == shape
            && reader.operands().into_iter().zip(&maps).all(in_order)
            && empty(reader);
        if !fits {
            break;
        }
        ops.push(reader);
        value = reader.result(0);
    }
    ops
}

/// What computes a factor of constants, and the reshapes and transposes behind it, in order.
fn computed(factor: Value<'_>) -> Option<Vec<Op<'_>>> {
    let mut chain = vec![];
    let mut value = factor;
    loop {
        let op = value.defining_op()?;
        chain.insert(0, op);
        match op.name() {
            ops::tensor::EXPAND_SHAPE | ops::tensor::COLLAPSE_SHAPE => value = op.operand(0),
            ops::linalg::GENERIC if linalg::is_data_movement(op) && linalg::num_inputs(op) == 1 => {
                value = op.operand(0);
            }
            ops::linalg::GENERIC => break,
            _ => return None,
        }
    }
    let stored = |v: &Value| v.defining_op().is_some_and(|def| def.is(ops::arith::CONSTANT));
    let (maker, inputs) = (chain[0], linalg::num_inputs(chain[0]));
    let of_constants = inputs > 0 && maker.operands()[..inputs].iter().all(stored);
    let pointwise = linalg::parallel_loops(maker).is_some_and(|loops| loops.iter().all(|parallel| *parallel));
    let is_known = chain.iter().all(|op| op.num_results() == 1 && op.result(0).ty().static_size_bytes().is_some());
    let stays = matches!(chain[..], [only] if linalg::is_extension(only));
    (of_constants && pointwise && is_known && !stays).then_some(chain)
}

/// The type with one element along each dimension of unknown size.
fn of_one(ty: Type<'_>) -> Type<'_> {
    let shape = ty.shape().unwrap_or_default().into_iter().map(|size| if size == DYNAMIC { 1 } else { size });
    Type::tensor(&shape.collect::<Vec<_>>(), ty.element(), None)
}

fn cast<'c>(
    value: Value<'c>,
    ty: Type<'c>,
    loc: Location<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<Value<'c>, Diagnostics> {
    Ok(rw.create(OpSpec::new(ops::tensor::CAST, loc).operands(&[value]).results(&[ty]))?.result(0))
}
