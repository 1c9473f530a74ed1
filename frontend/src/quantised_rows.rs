//! Products whose model allows rows of 8 bits round them to integers, with a scale for each block of terms.
//!
//! Before / after, of weights in blocks of two numbers to a byte:
//!
//! ```text
//! %y = generic (m, n, k) %x[m, k], %w[n, k]     %e = expand_shape %x : [M, K] to [M, B, I, 2]
//!      {monopour.rounded_rows}                  %a = generic (m, b, i, p) max(|%e|) : [M, B]
//!                                               %q = generic (m, b, i, p) round(%e * (127 / %a)) : [M, B, 2, I] of i8
//!                                               %r = generic (m, b, i, p) %q[m, b, p, i] * (%a / 127)
//!                                               %y = generic (m, n, k) collapse_shape %r [m, k], %w[n, k]
//! ```
//!
//! Fusion makes `%r` and what computes the weights a part of the product, which adds products of integers before it scales them.
//! ONNX Runtime rounds so, too (MatMulNBits of accuracy level 4). The numbers of a byte's places lie apart, as shifts of the bytes
//! leave those of the weights.
//!
//! Requires: generics alone; no dispatches yet. Ensures: values within the rounding of each block to 1 / 127 of its largest.
//! Limits: f32; blocks of whole vectors of 16 bytes, which have 4, 2 or 1 numbers each.

use crate::collapse_lines::dynamic_sizes;
use crate::{TargetDescription, linalg, products, stored_order};
use monopour_contract::attributes;
use monopour_ir::typed::arith::CmpFPredicate;
use monopour_ir::typed::linalg::{Operands, generic};
use monopour_ir::{
    AffineMap, Attr, Block, Context, DYNAMIC, Diagnostics, InsertionPoint, Location, Module, Op, OpSpec, Region,
    Rewriter, Type, Value, ops,
};
use tracing::trace;

/// Bytes of a block are a multiple of these.
const VECTOR_BYTES: i64 = 16;
/// Most rows that are rounded for weights of 8 bits in blocks of 32: at 32 rows integers take 0.7 of the time of floats, at 256 rows
/// 1.15 (AVX-512).
const MOST_ROWS_OF_BYTES: i64 = 64;
/// Most bytes of a block: sums of their products are integers of 32 bits.
const MOST_BYTES: i64 = 1 << 15;
/// Most numbers of a byte.
const MOST_PER_BYTE: i64 = 4;
/// The largest integer of a block.
const LARGEST: f64 = 127.0;

/// Allows all products of `module` to round their rows; those of which nothing comes lose the mark again when they are fused.
pub fn allow(module: &Module) {
    let mut rw = Rewriter::new(module.context());
    for op in module.op().find_all(ops::linalg::GENERIC) {
        if products::contraction_loops(op).is_some() {
            rw.set_attr(op, attributes::ROUNDED_ROWS, Attr::unit(op.context()));
        }
    }
}

/// Rewrites such products of `module` where integers are faster, and takes the marks of the others away. GPUs multiply floats.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(crate) fn run<'c>(
    module: &'c Module<'c>,
    target: Option<&TargetDescription>,
    rw: &mut Rewriter<'c>,
) -> Result<(), Diagnostics> {
    for op in module.op().find_all(ops::linalg::GENERIC) {
        if op.attr(attributes::ROUNDED_ROWS).is_none() {
            continue;
        }
        match Rows::of(op).filter(|rows| target.is_none_or(|target| rows.are_faster(target))) {
            Some(rows) => {
                trace!(target: "fuse", "{}: rounds its rows to 8 bits", op.location());
                rows.rewrite(rw)?;
            }
            // A mark alone decides nothing.
            None => _ = rw.remove_attr(op, attributes::ROUNDED_ROWS),
        }
    }
    Ok(())
}

/// Rows that are rounded.
struct Rows<'c> {
    product: Op<'c>,
    /// The operand.
    operand: usize,
    /// Blocks of a row, bytes of a block of weights, numbers of a byte.
    blocks: [i64; 3],
}

impl<'c> Rows<'c> {
    fn of(product: Op<'c>) -> Option<Self> {
        let found = products::contraction_loops(product).filter(|_| linalg::num_inputs(product) == 2)?;
        let weights = 1 - found.lhs;
        stored_order::lies_along_terms(product, weights, MOST_PER_BYTE)?;
        let made = product.operand(weights).defining_op().filter(|op| op.is(ops::tensor::COLLAPSE_SHAPE))?;
        let &[_, count, bytes, places] = &made.operand(0).ty().shape()?[..] else { return None };
        let ty = product.operand(found.lhs).ty();
        let last = linalg::indexing_maps(product)?.get(found.lhs)?.dim_positions()?.last().copied();
        let fits = ty.element().float_width() == Some(32)
            && found.k.len() == 1
            && last == found.k.first().copied()
            && ty.shape()?.last() == Some(&(count * bytes * places))
            && matches!(places, 1 | 2 | 4)
            && bytes % VECTOR_BYTES == 0
            && bytes <= MOST_BYTES;
        fits.then_some(Self { product, operand: found.lhs, blocks: [count, bytes, places] })
    }

    /// Whether a target adds products of integers faster than those of floats: of 8 bits where it has an instruction for four of
    /// them, and where rows are few enough that weights are not better made floats once.
    fn are_faster(&self, target: &TargetDescription) -> bool {
        let TargetDescription::Cpu(cpu) = target else { return false };
        let rows = self.product.operand(self.operand).ty().shape().unwrap_or_default();
        let is_few = rows.contains(&DYNAMIC) || rows[..rows.len() - 1].iter().product::<i64>() <= MOST_ROWS_OF_BYTES;
        self.blocks[2] > 1 || is_few && cpu.adds_bytes(false)
    }

    fn rewrite(&self, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
        let (x, [count, bytes, places]) = (self.product.operand(self.operand), self.blocks);
        let (cx, loc) = (self.product.context(), self.product.location());
        let (single, byte) = (Type::f32(cx), Type::integer(cx, 8));
        let make = Make { cx, loc, before: self.product };
        rw.set_point(InsertionPoint::Before(self.product));
        let sizes = dynamic_sizes(x, rw)?;
        let mut rows = x.ty().shape().expect("invariant: a tensor");
        rows.pop();
        let of = |dims: &[i64], element| Type::tensor(&[&rows, dims].concat(), element, None);
        let rank = rows.len() + 3;
        let groups = make.groups(rank, 3);
        let apart = of(&[count, bytes, places], single);
        let spec = OpSpec::new(ops::tensor::EXPAND_SHAPE, loc).operands(&[x]).operands(&sizes).results(&[apart]);
        let shape = Attr::dense_i64(cx, &apart.shape().expect("invariant: a tensor"));
        let spec = spec.attr("reassociation", groups).attr("static_output_shape", shape);
        let each = rw.create(spec)?.result(0);
        // Loops: those of the rows, the blocks, the bytes, the places.
        let all: Vec<usize> = (0..rank).collect();
        let lines = [&all[..rank - 2], &[rank - 1, rank - 2]].concat();
        let [whole, lines, blocks] = [&all, &lines, &all[..rank - 2]].map(|dims| AffineMap::select(cx, rank, dims));
        let zero = make.number(0.0, rw);
        let out = make.empty(&sizes, of(&[count], single), rw)?;
        let filled = make.generic((&[], out), &[AffineMap::identity(cx, rank - 2)], rank - 2, rw, |_, _| Ok(zero))?;
        let largest = make.generic((&[each], filled), &[whole, blocks], rank - 2, rw, |args, rw| {
            let size = make.op(ops::math::ABSF, &[args[0]], single, rw)?;
            make.op(ops::arith::MAXIMUMF, &[args[1], size], single, rw)
        })?;
        let out = make.empty(&sizes, of(&[count, places, bytes], byte), rw)?;
        let maps = [whole, blocks, lines];
        let rounded = make.generic((&[each, largest], out), &maps, rank, rw, |args, rw| make.rounded(args, rw))?;
        let out = make.empty(&sizes, apart, rw)?;
        let maps = [lines, blocks, whole];
        let scaled = make.generic((&[rounded, largest], out), &maps, rank, rw, |args, rw| make.scaled(args, rw))?;
        let spec = OpSpec::new(ops::tensor::COLLAPSE_SHAPE, loc).operands(&[scaled]).results(&[x.ty()]);
        let row = rw.create(spec.attr("reassociation", groups))?.result(0);
        rw.set_operand(self.product, self.operand, row);
        Ok(())
    }
}

/// Creates ops at one location, before an op.
#[derive(Clone, Copy)]
struct Make<'c> {
    cx: Context<'c>,
    loc: Location<'c>,
    before: Op<'c>,
}

impl<'c> Make<'c> {
    fn op(
        self,
        name: &str,
        operands: &[Value<'c>],
        ty: Type<'c>,
        rw: &mut Rewriter<'c>,
    ) -> Result<Value<'c>, Diagnostics> {
        Ok(rw.create(OpSpec::new(name, self.loc).operands(operands).results(&[ty]))?.result(0))
    }

    fn empty(self, sizes: &[Value<'c>], ty: Type<'c>, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
        self.op(ops::tensor::EMPTY, sizes, ty, rw)
    }

    fn number(self, value: f64, rw: &mut Rewriter<'c>) -> Value<'c> {
        let ty = Type::f32(self.cx);
        let spec = OpSpec::new(ops::arith::CONSTANT, self.loc).results(&[ty]).attr("value", Attr::float(ty, value));
        rw.create(spec).expect("invariant: a constant of its type builds").result(0)
    }

    /// The reassociation whose last group is of `last` dimensions, and the others of one each.
    fn groups(self, rank: usize, last: usize) -> Attr<'c> {
        let single = (0..rank - last).map(|d| vec![d]);
        let group = |dims: Vec<usize>| {
            Attr::array(self.cx, &dims.into_iter().map(|d| Attr::i64(self.cx, d as i64)).collect::<Vec<_>>())
        };
        Attr::array(self.cx, &single.chain([(rank - last..rank).collect()]).map(group).collect::<Vec<_>>())
    }

    /// A generic whose first loops are parallel, so many, and the others sums.
    fn generic(
        self,
        (inputs, out): (&[Value<'c>], Value<'c>),
        maps: &[AffineMap<'c>],
        parallel: usize,
        rw: &mut Rewriter<'c>,
        body: impl FnOnce(&[Value<'c>], &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics>,
    ) -> Result<Value<'c>, Diagnostics> {
        let arguments: Vec<_> = inputs.iter().chain([&out]).map(|v| (v.ty().element(), self.loc)).collect();
        let (block, region) = (Block::new(&arguments), Region::new());
        region.append(block);
        rw.set_point(InsertionPoint::End(block));
        let value = body(&block.args(), rw)?;
        rw.create(OpSpec::new(ops::linalg::YIELD, self.loc).operands(&[value]))?;
        rw.set_point(InsertionPoint::Before(self.before));
        let loops = maps[0].num_dims();
        let kinds = linalg::iterators(self.cx, &(0..loops).map(|d| d < parallel).collect::<Vec<_>>());
        let operands = Operands { inputs, outputs: &[out] };
        Ok(rw.create(generic(self.loc, operands, maps, kinds, region))?.result(0))
    }

    /// `round(x * (127 / largest))`, a byte; 0 where all are. A NaN is any number: its block's scale is NaN.
    fn rounded(self, args: &[Value<'c>], rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
        let (x, largest) = (args[0], args[1]);
        let (single, truth) = (x.ty(), Type::integer(self.cx, 1));
        let [zero, least, most] = [0.0, -LARGEST, LARGEST].map(|number| self.number(number, rw));
        let is_scaled = OpSpec::new(ops::arith::CMPF, self.loc).operands(&[largest, zero]).results(&[truth]);
        let is_scaled = rw.create(is_scaled.attr("predicate", CmpFPredicate::Ogt.to_attr(self.cx)))?.result(0);
        let by = self.op(ops::arith::DIVF, &[most, largest], single, rw)?;
        let by = self.op(ops::arith::SELECT, &[is_scaled, by, zero], single, rw)?;
        let scaled = self.op(ops::arith::MULF, &[x, by], single, rw)?;
        let rounded = self.op(ops::math::ROUNDEVEN, &[scaled], single, rw)?;
        let bounded = self.op(ops::arith::MAXNUMF, &[rounded, least], single, rw)?;
        let bounded = self.op(ops::arith::MINNUMF, &[bounded, most], single, rw)?;
        self.op(ops::arith::FPTOSI, &[bounded], Type::integer(self.cx, 8), rw)
    }

    /// The number that a byte stands for.
    fn scaled(self, args: &[Value<'c>], rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
        let single = Type::f32(self.cx);
        let unit = self.number(1.0 / LARGEST, rw);
        let number = self.op(ops::arith::SITOFP, &[args[0]], single, rw)?;
        let scale = self.op(ops::arith::MULF, &[args[1], unit], single, rw)?;
        self.op(ops::arith::MULF, &[number, scale], single, rw)
    }
}
