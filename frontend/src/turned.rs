//! Brings epilogues that write a product's result in another order into the product's loops, on CPUs: they become a part of its
//! dispatch.
//!
//! Before / after:
//!
//! ```text
//! %p = generic (c, y, x, i, k) .. : [56, 56, 32]                %p = generic (y, x, c, i, k) .. : [56, 56, 32]
//! %q = tensor.expand_shape %p : [1, 56, 56, 32]                 %r = generic (y, x, c) %p[y, x, c], %b[c]
//! %r = generic (b, c, y, x) %q[b, y, x, c], %b[c]                      outs %e[c, y, x] : [32, 56, 56]
//!        outs %e[b, c, y, x] : [1, 32, 56, 56]                  %s = tensor.expand_shape %r : [1, 32, 56, 56]
//! ```
//!
//! A task transposes its tile while that is in the cache, where a dispatch of its own would read it from memory (3x3, 64
//! channels at 56: a twelfth of the time).
//!
//! Requires: what elementwise fusion leaves. Ensures: the same.
//! Limits: pointwise ops of one result, with a destination that they do not read; at most one dimension of one element in
//! front of the product's result.

use crate::collapse_lines::{collapsed, expanded};
use crate::grid::MAX_GRID_RANK;
use crate::{linalg, products};
use monopour_ir::ops;
use monopour_ir::typed::linalg::{IteratorType, Operands, generic, iterator_types_attr};
use monopour_ir::{AffineMap, DYNAMIC, Diagnostics, InsertionPoint, Module, Op, Region, Rewriter, Value};
use std::collections::HashSet;

/// Rewrites the epilogues of a module, and returns them.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(crate) fn run<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) -> Result<HashSet<Op<'c>>, Diagnostics> {
    let found: Vec<Turned> = module.op().find_all(ops::linalg::GENERIC).into_iter().filter_map(Turned::of).collect();
    found.into_iter().map(|turned| turned.rewrite(rw)).collect()
}

/// An epilogue that writes a product's result in another order.
struct Turned<'c> {
    op: Op<'c>,
    /// The operand that is the product's result, or a reshape of it.
    input: usize,
    result: Value<'c>,
    /// The reshape that puts a dimension of one element in front.
    reshape: Option<Op<'c>>,
    maps: Vec<AffineMap<'c>>,
}

impl<'c> Turned<'c> {
    fn of(op: Op<'c>) -> Option<Self> {
        let inputs = linalg::num_inputs(op);
        let maps = linalg::indexing_maps(op).filter(|_| op.num_results() == 1 && linalg::is_elementwise(op))?;
        op.ancestor(ops::scf::FORALL).is_none().then_some(())?;
        let overwritten = op.operand(inputs).defining_op().filter(|def| def.is(ops::tensor::EMPTY));
        overwritten.filter(|_| op.body().is_some_and(|body| body.arg(inputs).is_unused()))?;
        (0..inputs).rev().find_map(|input| {
            let value = only_used(op.operand(input)).filter(|_| maps[input].is_permutation())?;
            let reshape = value.defining_op().filter(|def| def.is(ops::tensor::EXPAND_SHAPE));
            let result = reshape.map_or(Some(value), |reshape| only_used(reshape.operand(0)))?;
            let product = result.defining_op().filter(|def| def.block() == op.block())?;
            let is_product =
                products::contraction_loops(product).is_some() || products::convolution_loops(product).is_some();
            let one = usize::from(reshape.is_some());
            let shape = value.ty().shape()?;
            let front = shape.len() > one && shape[one..] == result.ty().shape()? && shape[..one] == [1][..one];
            let found = Self { op, input, result, reshape, maps: maps.clone() };
            (is_product && front && found.fits_stack() && found.turns() && found.keeps_dimensions()).then_some(found)
        })
    }

    /// Whether a grid cuts all dimensions of unknown size: a task's part of the product is on its stack.
    fn fits_stack(&self) -> bool {
        let shape = self.result.ty().shape().unwrap_or_default();
        shape.iter().filter(|size| **size == DYNAMIC).count() <= MAX_GRID_RANK
    }

    /// The loops in the order of the product's dimensions; without that of the reshape.
    fn loops(&self) -> Vec<usize> {
        let loops = self.maps[self.input].dim_positions().unwrap_or_default();
        loops[usize::from(self.reshape.is_some())..].to_vec()
    }

    /// The loop of the reshape's dimension.
    fn dropped(&self) -> Option<usize> {
        self.reshape.and_then(|_| self.maps[self.input].dim_positions()?.first().copied())
    }

    /// Whether the result's order is another than the product's.
    fn turns(&self) -> bool {
        let mut out = self.maps.last().and_then(|map| map.dim_positions()).unwrap_or_default();
        out.retain(|d| Some(*d) != self.dropped());
        out != self.loops()
    }

    /// Whether each operand has dimensions besides that of the reshape.
    fn keeps_dimensions(&self) -> bool {
        self.maps.iter().all(|map| {
            let dims = map.dim_positions().unwrap_or_default();
            dims.len() > 1 || !dims.iter().any(|d| Some(*d) == self.dropped())
        })
    }

    fn rewrite(&self, rw: &mut Rewriter<'c>) -> Result<Op<'c>, Diagnostics> {
        let (op, cx, loops) = (self.op, self.op.context(), self.loops());
        rw.set_point(InsertionPoint::Before(op));
        let (mut operands, mut maps) = (vec![], vec![]);
        for (index, map) in self.maps.iter().enumerate() {
            let dims = map.dim_positions().unwrap_or_default();
            let place = dims.iter().position(|d| Some(*d) == self.dropped());
            operands.push(match place {
                _ if index == self.input => self.result,
                Some(at) => collapsed(op.operand(index), merged(at, dims.len()), rw)?,
                None => op.operand(index),
            });
            let kept: Vec<usize> = dims.iter().filter_map(|d| loops.iter().position(|l| l == d)).collect();
            maps.push(AffineMap::select(cx, loops.len(), &kept));
        }
        let region = Region::new();
        rw.take_region(region, op.region(0));
        let kinds = iterator_types_attr(cx, &vec![IteratorType::Parallel; loops.len()]);
        let (inputs, outputs) = operands.split_at(operands.len() - 1);
        let made = rw.create(generic(op.location(), Operands { inputs, outputs }, &maps, kinds, region))?;
        let (mut value, ty) = (made.result(0), op.result(0).ty());
        if value.ty() != ty {
            let dims = self.maps.last().and_then(|map| map.dim_positions()).unwrap_or_default();
            let at = dims.iter().position(|d| Some(*d) == self.dropped()).unwrap_or(0);
            value = expanded(value, ty, merged(at, dims.len()), rw)?;
        }
        rw.replace_op(op, &[value]);
        if let Some(reshape) = self.reshape {
            rw.erase(reshape);
        }
        Ok(made)
    }
}

/// The first of two dimensions to merge, of which one is `at`, of one element.
fn merged(at: usize, rank: usize) -> usize {
    at.min(rank - 2)
}

/// A value that is read once.
fn only_used(value: Value) -> Option<Value> {
    value.only_use().map(|_| value)
}
