//! Convolutions of volumes, such as video, as convolutions of a batch of planes.
//!
//! Before / after:
//!
//! ```text
//! %r = generic (o, z, y, x, c, k, i, j)                 %r = generic (z, o, y, x, c, k, i, j)
//!        %v[c, z + k, y + i, x + j] : [64, 10, 58, 58]         %v[z + k, c, y + i, x + j] : [10, 64, 58, 58]
//!        %w[o, c, k, i, j]          : [64, 64, 3, 3, 3]        %w[o, c, k, i, j]          : [64, 64, 3, 3, 3]
//!        %r[o, z, y, x]             : [64, 8, 56, 56]          %r[z, o, y, x]             : [8, 64, 56, 56]
//! ```
//!
//! What is around them (pointwise ops, pads, pools, slices) follows; transpositions are at the borders, and other ops read
//! the planes where they are now. The planes then get their layouts as images do.
//!
//! Requires: fills and `tensor.empty` of one use. Ensures: the same values.
//! Limits: known sizes; constant filters.

use super::copies;
use super::lines::LEAST_WORK;
use super::spread::Form;
use crate::collapse_lines::{collapsed, expanded};
use crate::linalg;
use crate::products::{contraction_loops, convolution_loops};
use monopour_ir::{AffineExpr, AffineExprKind, AffineMap, Attr, Context, Diagnostics, Op, Rewriter, Type, Value, ops};

/// Dimensions of a volume: its channels, planes, lines and places.
const DIMS: usize = 4;

/// Volumes as planes of channels.
pub(super) struct Planes;

impl Form for Planes {
    fn gains(op: Op) -> bool {
        let Some(found) = convolution_loops(op).filter(|_| is_product_of_volumes(op)) else { return false };
        let extents = linalg::loop_extents(op).unwrap_or_default();
        let sums = found.k.iter().chain(&found.window).map(|d| extents[*d].max(1)).fold(1, i64::saturating_mul);
        found.depth.is_empty() && sums >= LEAST_WORK
    }

    fn follows(op: Op) -> bool {
        linalg::is_elementwise(op) || is_product_of_volumes(op) || is_pool(op)
    }

    fn operands(op: Op) -> Option<Vec<usize>> {
        let rank = op.get_result(0)?.ty().as_tensor()?.shape.len();
        let of_rank = |value: Value| value.ty().as_tensor().is_some_and(|ty| ty.shape.len() == rank);
        let known = |value: Value| value.ty().shape().is_none_or(|shape| shape.iter().all(|size| *size > 0));
        if rank < DIMS || !op.operands().into_iter().chain(op.results()).all(known) {
            return None;
        }
        let all: Vec<usize> = (0..op.num_operands()).collect();
        match op.name() {
            ops::tensor::EMPTY => return Some(vec![]),
            ops::linalg::FILL => return Some(vec![1]),
            ops::tensor::EXTRACT_SLICE | ops::tensor::INSERT_SLICE => {
                return all.iter().all(|i| of_rank(op.operand(*i))).then_some(all);
            }
            _ => (),
        }
        let (maps, inputs) = (linalg::indexing_maps(op)?, linalg::num_inputs(op));
        let out = maps[inputs].dim_positions()?;
        let alike = maps[inputs..].iter().all(|map| *map == maps[inputs]);
        if !alike || !op.find_all(ops::linalg::INDEX).is_empty() {
            return None;
        }
        // Those that are read by planes, and not one element for all of them.
        let plane = out[rank - DIMS + 1];
        let reads = |i: usize| maps[i].results()[rank - DIMS + 1].dims().contains(&plane);
        Some(all.into_iter().filter(|i| of_rank(op.operand(*i)) && reads(*i)).collect())
    }

    /// The loops of the planes and the channels change places, too.
    fn rewrite<'c>(op: Op<'c>, operands: &[usize], rw: &mut Rewriter<'c>) {
        let (cx, maps) = (op.context(), linalg::indexing_maps(op).expect("invariant: a generic has maps"));
        let out = maps[linalg::num_inputs(op)].dim_positions().expect("invariant: asked before");
        let mut names: Vec<AffineExpr> = (0..maps[0].num_dims()).map(|d| AffineExpr::dim(cx, d)).collect();
        names.swap(out[out.len() - DIMS], out[out.len() - DIMS + 1]);
        let renaming = AffineMap::of(cx, names.len(), &names);
        let turned = |(i, map): (usize, &AffineMap<'c>)| {
            let map = map.compose(renaming);
            if operands.contains(&i) { turned_map(cx, map).to_attr() } else { map.to_attr() }
        };
        let maps: Vec<Attr> = maps.iter().enumerate().map(turned).collect();
        rw.set_attr(op, "indexing_maps", Attr::array(cx, &maps));
    }

    fn slice(list: &mut Vec<i64>, _: i64) {
        turn(list);
    }

    fn ty<'c>(plain: Type<'c>) -> Type<'c> {
        let mut shape = plain.shape().unwrap_or_default();
        turn(&mut shape);
        Type::tensor(&shape, plain.element(), None)
    }

    fn reads<'c>(op: Op<'c>, input: usize, rw: &mut Rewriter<'c>) -> bool {
        let Some(mut maps) = linalg::indexing_maps(op).filter(|_| input < linalg::num_inputs(op)) else { return false };
        maps[input] = turned_map(op.context(), maps[input]);
        let maps: Vec<Attr> = maps.into_iter().map(AffineMap::to_attr).collect();
        rw.set_attr(op, "indexing_maps", Attr::array(op.context(), &maps));
        true
    }

    fn into<'c>(plain: Value<'c>, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
        turned_value(plain, Self::ty(plain.ty()), rw)
    }

    fn out_of<'c>(value: Value<'c>, plain: Type<'c>, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
        turned_value(value, plain, rw)
    }
}

/// Whether an op is a convolution of `[.., channels, planes, lines, places]` with a constant filter, by windows or of single
/// elements.
fn is_product_of_volumes(op: Op) -> bool {
    let stored = |i: usize| op.operand(i).defining_op().is_some_and(|def| def.is(ops::arith::CONSTANT));
    let Some(maps) = linalg::indexing_maps(op) else { return false };
    let out = maps.last().and_then(|map| map.dim_positions()).unwrap_or_default();
    let [front @ .., channel, _, _, _] = &out[..] else { return false };
    if let Some(found) = convolution_loops(op) {
        let channels = found.channels == [*channel] || found.channels.is_empty() && found.depth == [*channel];
        return channels && front.iter().all(|d| found.batch.contains(d)) && stored(1 - found.input);
    }
    let Some(found) = contraction_loops(op) else { return false };
    let single = found.m == [*channel] && found.k.len() == 1 && found.batch.is_empty() && found.n == out[1..];
    single && front.is_empty() && stored(found.lhs)
}

/// Whether an op reduces windows of volumes, each channel by itself.
fn is_pool(op: Op) -> bool {
    let Some(maps) = linalg::indexing_maps(op).filter(|_| op.num_results() == 1) else { return false };
    let out = maps.last().and_then(|map| map.dim_positions()).unwrap_or_default();
    let is_dim = |e: &AffineExpr, of: &dyn Fn(usize) -> bool| matches!(e.kind(), AffineExprKind::Dim(d) if of(d));
    // The operands of which windows are read.
    let images = maps.iter().map(|map| map.results()).filter(|image| image.iter().any(|e| !is_dim(e, &|_| true)));
    let images: Vec<Vec<AffineExpr>> = images.collect();
    let own = |image: &Vec<AffineExpr>| {
        image.len() == out.len() && (0..=out.len() - DIMS).all(|at| is_dim(&image[at], &|d| d == out[at]))
    };
    out.len() >= DIMS && !images.is_empty() && images.iter().all(own)
}

/// Channels and planes in each other's place.
fn turn<T>(list: &mut [T]) {
    if let Some(at) = list.len().checked_sub(DIMS) {
        list.swap(at, at + 1);
    }
}

fn turned_map<'c>(cx: Context<'c>, map: AffineMap<'c>) -> AffineMap<'c> {
    let mut results = map.results();
    turn(&mut results);
    AffineMap::of(cx, map.num_dims(), &results)
}

/// A value with its channels and planes in each other's place; one of either is a reshape.
fn turned_value<'c>(value: Value<'c>, ty: Type<'c>, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
    let shape = value.ty().shape().unwrap_or_default();
    let at = shape.len() - DIMS;
    if shape[at] == 1 || shape[at + 1] == 1 {
        let flat = collapsed(value, at, rw)?;
        return expanded(flat, ty, at, rw);
    }
    let mut order: Vec<usize> = (0..shape.len()).collect();
    turn(&mut order);
    let maps = [AffineMap::identity(rw.context(), shape.len()), AffineMap::select(rw.context(), shape.len(), &order)];
    copies::copy(value, &ty.shape().unwrap_or_default(), &maps, value, rw)
}
