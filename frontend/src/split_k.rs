//! Split-K on discrete GPUs: products and convolutions whose tiles leave most units of a device without work, as parts of their
//! reduction side by side and the sum of these.
//!
//! Before / after:
//!
//! ```text
//! %r = generic (m, n, k) -> (m, k), (k, n), (m, n)      %x = expand_shape %a : 128x3072 into 128x8x384
//!      ins(%a: 128x3072, %b: 3072x768) outs(%z)         %p = generic (s, m, n, k) -> (m, s, k), (s, k, n), (s, m, n)
//!                                                       %r = generic {addf} (m, n, s) -> (s, m, n), (m, n) ins(%p) outs(%z)
//! ```
//!
//! A tile alone on a unit waits for memory at each step of its reduction: on an H200 0.5 to 1 us for 16 terms, whatever the number
//! of tiles that run beside it. What finishes the product finishes the sum of the parts.
//!
//! Requires: what [`crate::products::normalize`] ensures. Ensures: so too. Float sums are reassociated.
//! Limits: static sizes, sums of f32; products without batches, none of an attention, and none that special kernels for few rows or
//! columns take.

use crate::deviation::Deviation;
use crate::dispatch::{Dispatch, Role};
use crate::large_tiles::{LARGE_TILE, MANY_PAIRS, MANY_TILES, is_large_product};
use crate::linalg::{self, Loops};
use crate::{joined_op, kernel, kernel_images, kernel_matrices, products, rows, side_by_side, specialize};
use monopour_ir::typed::linalg::{Operands, generic};
use monopour_ir::{
    AffineExpr, AffineExprKind, AffineMap, Attr, Block, DYNAMIC, Diagnostics, InsertionPoint, Module, Op, OpSpec,
    Region, Rewriter, Type, Value, ops,
};
use monopour_program::{DeviceType, GpuDescription};
use std::collections::HashMap;
use tracing::trace;

/// Units of the largest GPUs, and workgroups that hide the latencies of each: of large tiles fewer, as they have registers for.
const UNITS: i64 = 132;
const BUSY: i64 = 3 * UNITS;
const BUSY_WITH_LARGE: i64 = 2 * UNITS;
/// Elements of a large tile.
const LARGE: i64 = 8_192;
/// Fewest terms of a part: its sums are written and read once for them.
const FEWEST_TERMS: i64 = 96;
/// Readers and makers of a product that are looked at for a softmax.
const NEAR: usize = 3;

/// Splits where that pays; returns the number of products.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(crate) fn run<'c>(
    module: &'c Module<'c>,
    gpu: &GpuDescription,
    rw: &mut Rewriter<'c>,
) -> Result<usize, Diagnostics> {
    // Others have few units, which few tiles fill.
    if gpu.device_type != DeviceType::Discrete {
        return Ok(0);
    }
    let mut count = 0;
    for op in linalg::structured_ops(module.op()) {
        if let Some(split) = Split::of(op, gpu) {
            trace!(target: "fuse", "{}: {} parts of its reduction side by side", op.location(), split.parts);
            split.apply(rw)?;
            count += 1;
        }
    }
    Ok(count)
}

/// A product to be split.
struct Split<'c> {
    op: Op<'c>,
    maps: Vec<AffineMap<'c>>,
    parallel: Vec<bool>,
    /// The loop that is split, and into how many parts.
    at: usize,
    parts: i64,
}

impl<'c> Split<'c> {
    fn of(op: Op<'c>, gpu: &GpuDescription) -> Option<Self> {
        if op.num_results() != 1 || op.ancestor(ops::scf::FORALL).is_some() || linalg::num_inputs(op) != 2 {
            return None;
        }
        let contraction = products::contraction_loops(op);
        let loops = match &contraction {
            Some(roles) if roles.batch.is_empty() => roles.k.clone(),
            Some(_) => return None,
            None => products::convolution_loops(op).filter(|roles| roles.depth.is_empty())?.k,
        };
        let is_named = op.is(ops::linalg::MATMUL);
        let extents = linalg::loops(op)?.extents;
        let parallel = if is_named { vec![true, true, false] } else { linalg::parallel_loops(op)? };
        let of_f32 = op.result(0).ty().element() == Type::f32(op.context());
        if !of_f32 || extents.iter().any(|extent| *extent == DYNAMIC || *extent < 1) || is_in_softmax(op) {
            return None;
        }
        let maps = side_by_side::maps_of(op)?;
        let reductions = extents.iter().zip(&parallel).filter(|(_, parallel)| !**parallel);
        let most = reductions.map(|(extent, _)| extent).product::<i64>() / FEWEST_TERMS;
        let grid = Grid::of(op, gpu).filter(Grid::is_small)?;
        let parts = |extent: i64| (2..=most.min(extent)).rev().find(|n| extent % n == 0 && grid.has_room_for(*n));
        // Rather the outer one of several loops: what is left of the inner one is contiguous.
        let parted: Vec<_> = loops.into_iter().filter_map(|d| Some((d, parts(extents[d])?))).collect();
        let largest = parted.iter().map(|(_, parts)| *parts).max()?;
        let (at, parts) = *parted.iter().find(|(_, parts)| 2 * parts > largest)?;
        Some(Self { op, maps, parallel, at, parts })
    }

    fn apply(&self, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
        let (op, cx, loc) = (self.op, self.op.context(), self.op.location());
        let rank = self.parallel.len() + 1;
        // The parts are the first loop.
        let dims: Vec<AffineExpr> = (1..rank).map(|d| AffineExpr::dim(cx, d)).collect();
        let moved = AffineMap::of(cx, rank, &dims);
        let first = AffineExpr::dim(cx, 0);
        rw.set_point(InsertionPoint::Before(op));
        let (mut inputs, mut maps) = (vec![], vec![]);
        for (index, map) in self.maps[..2].iter().enumerate() {
            let mut results = map.compose(moved).results();
            let place = map.results().iter().position(|e| matches!(e.kind(), AffineExprKind::Dim(d) if d == self.at));
            let place = place.expect("invariant: a reduction of a product is in both factors");
            results.insert(place, first);
            inputs.push(self.expanded(op.operand(index), place, rw)?);
            maps.push(AffineMap::of(cx, rank, &results));
        }
        let result = op.result(0).ty();
        let shape = result.shape().expect("invariant: its sizes are static");
        let ty = Type::tensor(&[&[self.parts], &shape[..]].concat(), result.element(), None);
        let zero = OpSpec::new(ops::arith::CONSTANT, loc).results(&[result.element()]);
        let zero = rw.create(zero.attr("value", Attr::float(result.element(), 0.0)))?.result(0);
        let empty = rw.create(OpSpec::new(ops::tensor::EMPTY, loc).results(&[ty]))?.result(0);
        let sums = specialize::fill(zero, empty, loc, rw)?.result(0);
        let of_result = self.maps[2].compose(moved).results();
        maps.push(AffineMap::of(cx, rank, &[&[first], &of_result[..]].concat()));
        let kinds = [&[true], &self.parallel[..]].concat();
        let body = op.body().expect("invariant: a product has a body");
        let types: Vec<_> = body.args().iter().map(|arg| (arg.ty(), loc)).collect();
        let (block, region) = (Block::new(&types), Region::new());
        region.append(block);
        rw.set_point(InsertionPoint::End(block));
        let mut arguments: HashMap<Value, Value> = body.args().into_iter().zip(block.args()).collect();
        let terms = joined_op::copy_body(body, &mut arguments, rw);
        rw.create(OpSpec::new(ops::linalg::YIELD, loc).operands(&terms))?;
        rw.set_point(InsertionPoint::Before(op));
        let operands = Operands { inputs: &inputs, outputs: &[sums] };
        let parts = rw.create(generic(loc, operands, &maps, linalg::iterators(cx, &kinds), region))?.result(0);
        let whole = sum_of_parts(op, parts, rw)?;
        rw.replace_op(op, &[whole]);
        Ok(())
    }

    /// A factor with a dimension of the parts before `place`.
    fn expanded(&self, value: Value<'c>, place: usize, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
        let mut shape = value.ty().shape().expect("invariant: its sizes are static");
        let groups = (0..shape.len()).map(|d| match d.cmp(&place) {
            std::cmp::Ordering::Less => format!("[{d}]"),
            std::cmp::Ordering::Equal => format!("[{d}, {}]", d + 1),
            std::cmp::Ordering::Greater => format!("[{}]", d + 1),
        });
        let groups = format!("[{}]", groups.collect::<Vec<_>>().join(", "));
        let groups = Attr::parse(self.op.context(), &groups).expect("invariant: an array of arrays parses");
        shape[place] /= self.parts;
        shape.insert(place, self.parts);
        let spec = OpSpec::new(ops::tensor::EXPAND_SHAPE, self.op.location())
            .operands(&[value])
            .results(&[Type::tensor(&shape, value.ty().element(), None)])
            .attr("reassociation", groups)
            .attr("static_output_shape", Attr::dense_i64(self.op.context(), &shape));
        Ok(rw.create(spec)?.result(0))
    }
}

/// The tiles of a product's result.
enum Grid {
    /// So many rows and columns of one matrix.
    Matrix { rows: i64, columns: i64, is_large: bool },
    /// Positions of images.
    Images { roles: products::ConvolutionLoops, extents: Vec<i64> },
}

impl Grid {
    /// That of the kernel that the cost model chooses; `None` for kernels of few rows or columns, which cut the reduction themselves.
    fn of(op: Op, gpu: &GpuDescription) -> Option<Self> {
        let dispatch = Dispatch { number: 0, root: op, ops: vec![(op, Role::Root)] };
        let loops = linalg::loops(op)?;
        if !kernel::for_gpu(&dispatch, &loops, gpu, Deviation::default()).may_be_cut() {
            return None;
        }
        let extents = loops.extents;
        let Some(roles) = products::contraction_loops(op) else {
            return Some(Self::Images { roles: products::convolution_loops(op)?, extents });
        };
        // Lines within another tensor stay apart, others become one (`collapse_lines.rs`).
        let is_within = |value: Value| value.uses().iter().any(|u| u.op.is(ops::tensor::INSERT_SLICE));
        let finished = op.result(0).uses().into_iter().flat_map(|u| u.op.results());
        if let Some(roles) = kernel_images::of_product(&roles, &extents)
            && (is_within(op.result(0)) || finished.into_iter().any(is_within))
        {
            return Some(Self::Images { roles, extents });
        }
        let count = |dims: &[usize]| dims.iter().map(|d| extents[*d]).product();
        let has_matrices = kernel_matrices::product(op, &roles, &extents, gpu).is_some();
        let many = if has_matrices { MANY_TILES } else { MANY_PAIRS };
        let is_large = is_large_product(&roles, &extents, (gpu, many));
        Some(Self::Matrix { rows: count(&roles.m), columns: count(&roles.n), is_large })
    }

    /// Whether most units of the device are without work.
    fn is_small(&self) -> bool {
        self.workgroups(1).is_some_and(|(workgroups, _)| workgroups < UNITS)
    }

    /// Whether the device has room for the workgroups of so many parts.
    fn has_room_for(&self, parts: i64) -> bool {
        let busy = |is_large: bool| if is_large { BUSY_WITH_LARGE } else { BUSY };
        self.workgroups(parts).is_some_and(|(workgroups, is_large)| workgroups <= busy(is_large))
    }

    /// The workgroups of so many parts, and whether their tiles are large.
    fn workgroups(&self, parts: i64) -> Option<(i64, bool)> {
        match self {
            Self::Matrix { rows, columns, is_large } => {
                let size = if *is_large { LARGE_TILE } else { 64 };
                let tiles = |extent: i64| (extent + size - 1) / size;
                Some((tiles(*rows) * tiles(*columns) * parts, *is_large))
            }
            Self::Images { roles, extents } => {
                // The parts are the first loop.
                let moved = |dims: &[usize]| dims.iter().map(|d| d + 1).collect();
                let roles = products::ConvolutionLoops {
                    input: roles.input,
                    batch: moved(&roles.batch),
                    image: moved(&roles.image),
                    channels: moved(&roles.channels),
                    depth: vec![0],
                    window: moved(&roles.window),
                    k: moved(&roles.k),
                };
                let extents = [&[parts], &extents[..]].concat();
                let loops = Loops { tileable: vec![true; extents.len()], extents };
                let image = kernel_images::tile(&roles, &loops)?;
                let cut = || image.tile.iter().zip(&loops.extents).filter(|(tile, _)| **tile > 0);
                let workgroups = cut().map(|(tile, extent)| (extent + tile - 1) / tile).product();
                Some((workgroups, cut().map(|(tile, _)| tile).product::<i64>() > LARGE))
            }
        }
    }
}

/// Whether a maximum over rows is near, before or behind: scores or weights of a softmax, which may become an attention.
fn is_in_softmax(op: Op) -> bool {
    linalg::neighbours(op, NEAR).into_iter().any(|near| {
        let result = near.body().and_then(Block::terminator).and_then(|done| done.operand(0).defining_op());
        let takes_most = result.is_some_and(|op| matches!(op.name(), ops::arith::MAXIMUMF | ops::arith::MAXNUMF));
        takes_most && rows::reduced_rows(near).is_some()
    })
}

/// The sum over the first dimension, onto the destination of `op`.
fn sum_of_parts<'c>(op: Op<'c>, parts: Value<'c>, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
    let (cx, loc) = (op.context(), op.location());
    let destination = linalg::destination(op, 0);
    let (element, rank) = (destination.ty().element(), destination.ty().shape().map_or(0, |shape| shape.len()));
    let body = Block::new(&[(element, loc), (element, loc)]);
    rw.set_point(InsertionPoint::End(body));
    let add = OpSpec::new(ops::arith::ADDF, loc).operands(&[body.arg(1), body.arg(0)]).results(&[element]);
    let sum = rw.create(add)?.result(0);
    rw.create(OpSpec::new(ops::linalg::YIELD, loc).operands(&[sum]))?;
    let region = Region::new();
    region.append(body);
    rw.set_point(InsertionPoint::Before(op));
    let order: Vec<usize> = (0..rank).collect();
    let maps =
        [AffineMap::select(cx, rank + 1, &[&[rank], &order[..]].concat()), AffineMap::select(cx, rank + 1, &order)];
    let kinds = [vec![true; rank], vec![false]].concat();
    let operands = Operands { inputs: &[parts], outputs: &[destination] };
    Ok(rw.create(generic(loc, operands, &maps, linalg::iterators(cx, &kinds), region))?.result(0))
}
