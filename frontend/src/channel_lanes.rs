//! Depthwise convolutions over short lines, on CPUs: a task has whole images, and puts their channels side by side.
//!
//! Before / after (a padded image, whose padding is left out here):
//!
//! ```text
//! %s = tensor.extract_slice %x[%c, 0, 0] [16, 7, 7]    %t = generic (c, p) %s[c, p] outs %a[p, c] : [49, 16]
//! %r = generic (c, y, x, i, j)                         %r = generic (c, y, x, i, j)
//!        %s[c, y + i, x + j], %w[i, j, c]                     %t[y + i, x + j, c], %w[i, j, c]
//!        outs slice of %o [c, y, x] : [16, 7, 7]              outs %e[y, x, c] : [7, 7, 16]
//!                                                      generic (c, p) %r[p, c] outs slice of %o [c, p] : [16, 49]
//! ```
//!
//! A vector along a line of seven leaves half of its lanes empty, and one of every other element is picked from two. Squares
//! of the image are transposed in registers, in the cache; a layout of its own (`layouts`) would cost two passes over memory.
//! Sums keep their order.
//!
//! Requires: what [`crate::tile`] ensures, and filters whose channels are last (`layouts`). Ensures: the same.
//! Limits: tiles of whole images; operands of the epilogue that have one element per channel at most.

use crate::collapse_lines::{collapsed, expanded};
use crate::pads::Padded;
use crate::{linalg, specialize};
use monopour_contract::attributes;
use monopour_ir::ops;
use monopour_ir::typed::linalg::{IteratorType, Operands, generic, iterator_types_attr};
use monopour_ir::typed::{Index, Slice};
use monopour_ir::{
    AffineExpr, AffineExprKind, AffineMap, Attr, Block, Builder, Context, Diagnostics, InsertionPoint, Location,
    Module, Op, OpSpec, Region, Rewriter, Type, Value,
};

/// Dimensions of an image: channels, height, width.
const IMAGE: usize = 3;

/// Rewrites the dispatches of a module; `lanes` gives the channels side by side of a result's elements.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(crate) fn run(module: &Module, lanes: &dyn Fn(Op) -> i64) -> Result<(), Diagnostics> {
    let mut rw = Rewriter::new(module.context());
    for dispatch in module.op().find_all(ops::scf::FORALL) {
        if let Some(images) = Images::of(dispatch, lanes) {
            images.rewrite(&mut rw)?;
        }
    }
    Ok(())
}

/// A dispatch that can have its channels side by side.
struct Images<'c> {
    /// The slice of the shared output that a tile begins with, and the insertion of its result.
    begun: Op<'c>,
    inserted: Op<'c>,
    fill: Op<'c>,
    /// The convolution, and which operand is its image.
    main: Op<'c>,
    image: usize,
    /// The pointwise ops behind it.
    epilogue: Vec<Op<'c>>,
}

impl<'c> Images<'c> {
    fn of(dispatch: Op<'c>, lanes: &dyn Fn(Op) -> i64) -> Option<Self> {
        dispatch.attr(attributes::KERNEL)?;
        let [inserted] = dispatch.find_all(ops::tensor::PARALLEL_INSERT_SLICE)[..] else { return None };
        let mut chain = vec![];
        let mut value = inserted.operand(0);
        let begun = loop {
            let op = value.defining_op().filter(|op| op.block() == dispatch.body() && value.uses().len() == 1)?;
            if op.is(ops::tensor::EXTRACT_SLICE) {
                break op;
            }
            if !matches!(op.name(), ops::linalg::GENERIC | ops::linalg::FILL) || op.num_results() != 1 {
                return None;
            }
            chain.push(op);
            value = linalg::destination(op, 0);
        };
        let (fill, main) = (chain.pop()?, chain.pop()?);
        chain.reverse();
        let image = windows(main)?;
        let found = Self { begun, inserted, fill, main, image, epilogue: chain };
        (found.begins_with_whole_images() && found.is_by_channels(lanes)).then_some(found)
    }

    fn begins_with_whole_images(&self) -> bool {
        let same = Slice::of(self.begun) == Slice::of(self.inserted);
        let fill = self.fill.is(ops::linalg::FILL) && self.begun.operand(0) == self.inserted.operand(1);
        same && fill && is_whole(self.begun.result(0)) && Source::of(self.main.operand(self.image)).is_some()
    }

    /// Whether every op has vectors of channels.
    fn is_by_channels(&self, lanes: &dyn Fn(Op) -> i64) -> bool {
        let (result, image) = (self.main.result(0).ty(), self.main.operand(self.image).ty());
        let element = result.element();
        let shape = result.shape().unwrap_or_default();
        let lanes = lanes(self.main);
        let channels = shape.len().checked_sub(IMAGE).map_or(0, |at| shape[at]);
        let plain = |op: &Op<'c>| linalg::is_elementwise(*op) && is_per_channel(*op);
        element.is_float()
            && image.element() == element
            && lanes > 1
            && channels > 0
            && channels % lanes == 0
            && self.epilogue.iter().all(plain)
            && self.epilogue.iter().all(|op| op.result(0).ty() == result)
    }

    fn rewrite(&self, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
        let (loc, ty) = (self.main.location(), moved_type(self.begun.result(0).ty()));
        rw.set_point(InsertionPoint::Before(self.main));
        let image = Source::of(self.main.operand(self.image)).expect("invariant: it was asked").by_channels(loc, rw)?;
        let before = self.main.operand(self.image);
        rw.set_operand(self.main, self.image, image);
        erase_unused(before, rw);
        // Beside the convolution, which begins with the value instead of reading it.
        let own = empty(ty, loc, rw)?;
        let filled = specialize::fill(self.fill.operand(0), own, loc, rw)?;
        rw.set_operand(self.main, self.main.num_operands() - 1, filled.result(0));
        rw.erase(self.fill);
        for op in [self.main].iter().chain(&self.epilogue) {
            let inputs = linalg::num_inputs(*op);
            let maps = linalg::indexing_maps(*op).unwrap_or_default().into_iter().enumerate();
            let move_map = |(i, map): (usize, AffineMap<'c>)| {
                let moves = i == inputs || *op == self.main && i == self.image;
                if moves { moved_map(op.context(), map).to_attr() } else { map.to_attr() }
            };
            let maps: Vec<Attr> = maps.map(move_map).collect();
            rw.set_attr(*op, "indexing_maps", Attr::array(op.context(), &maps));
            rw.set_type(op.result(0), ty);
        }
        self.finish(rw)
    }

    /// Writes the result to the slice of the shared output.
    fn finish(&self, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
        let last = self.epilogue.last().unwrap_or(&self.main).result(0);
        let (to, ty) = (self.begun.result(0), self.begun.result(0).ty());
        let front = ty.shape().map_or(0, |shape| shape.len() - IMAGE);
        rw.set_point(InsertionPoint::After(last.defining_op().expect("invariant: a result")));
        let from = collapsed(last, front, rw)?;
        rw.set_point(InsertionPoint::After(from.defining_op().expect("invariant: a reshape")));
        let to = collapsed(to, front + 1, rw)?;
        rw.set_point(InsertionPoint::After(to.defining_op().expect("invariant: a reshape")));
        let written = transposed(from, to, (self.main.location(), front), true, rw)?;
        let written = expanded(written, ty, front + 1, rw)?;
        rw.set_operand(self.inserted, 0, written);
        Ok(())
    }
}

/// The input that an op reads by windows, where its channels are those of its result and no other input depends on a place.
fn windows(op: Op) -> Option<usize> {
    let maps = linalg::indexing_maps(op).filter(|_| op.is(ops::linalg::GENERIC))?;
    let inputs = linalg::num_inputs(op);
    let mut found = (0..inputs).filter(|i| !maps[*i].is_projected_permutation());
    let (image, None) = (found.next()?, found.next()) else { return None };
    let out = maps[inputs].dim_positions().filter(|out| out.len() >= IMAGE)?;
    let front = out.len() - IMAGE;
    let exprs = maps[image].results();
    let alone = |(at, expr): (usize, &AffineExpr)| match at <= front {
        true => matches!(expr.kind(), AffineExprKind::Dim(d) if d == out[at]),
        false => out[..=front].iter().all(|d| !expr.dims().contains(d)),
    };
    let follows = exprs.len() == out.len() && exprs.iter().enumerate().all(alone);
    let places =
        |i: usize| maps[i].dim_positions().is_some_and(|dims| out[front + 1..].iter().any(|d| dims.contains(d)));
    let last = |i: usize| {
        let dims = maps[i].dim_positions().unwrap_or_default();
        !dims.contains(&out[front]) || dims.last() == Some(&out[front])
    };
    let others = (0..inputs).filter(|i| *i != image).all(|i| !places(i) && last(i));
    let plain = op.find_all(ops::linalg::INDEX).is_empty();
    (follows && others && plain).then_some(image)
}

/// Whether no input of a pointwise op depends on a place in the image.
fn is_per_channel(op: Op) -> bool {
    let Some(maps) = linalg::indexing_maps(op) else { return false };
    let inputs = linalg::num_inputs(op);
    let Some(out) = maps[inputs].dim_positions().filter(|out| out.len() >= IMAGE) else { return false };
    let places = &out[out.len() - (IMAGE - 1)..];
    let apart = |map: &AffineMap| map.dim_positions().is_some_and(|dims| !places.iter().any(|d| dims.contains(d)));
    maps[..inputs].iter().all(apart) && op.find_all(ops::linalg::INDEX).is_empty()
}

/// Whether a value is one image per channel, of known size and, if it is a slice, whole.
fn is_whole(value: Value) -> bool {
    let Some(shape) = value.ty().shape().filter(|shape| shape.len() >= IMAGE) else { return false };
    let (front, image) = shape.split_at(shape.len() - IMAGE);
    let known = front.iter().all(|size| *size == 1) && image.iter().all(|size| *size > 0);
    let Some(op) = value.defining_op().filter(|op| op.is(ops::tensor::EXTRACT_SLICE)) else { return known };
    let (Some(slice), Some(whole)) = (Slice::of(op), op.operand(0).ty().shape()) else { return false };
    let lines = shape.len() - (IMAGE - 1)..shape.len();
    let all = |d: usize| slice.offsets[d] == Index::Static(0) && slice.sizes[d] == Index::Static(whole[d]);
    let unit = slice.strides.iter().all(|stride| *stride == Index::Static(1));
    known && unit && whole.len() == shape.len() && lines.into_iter().all(all)
}

/// The image of a tile: as it lies in memory, or within pads.
enum Source<'c> {
    Plain(Value<'c>),
    Padded { part: Value<'c>, value: Value<'c>, slice: Slice<'c>, ty: Type<'c> },
}

impl<'c> Source<'c> {
    fn of(image: Value<'c>) -> Option<Self> {
        let Some(op) = image.defining_op().filter(|op| op.is(ops::tensor::INSERT_SLICE)) else {
            return is_whole(image).then_some(Self::Plain(image));
        };
        let fill = op.operand(1).defining_op().filter(|fill| fill.is(ops::linalg::FILL))?;
        let slice = Slice::of(op)?;
        let known = slice.offsets.iter().chain(&slice.sizes).all(|index| matches!(index, Index::Static(_)));
        let part = op.operand(0);
        let rank = part.ty().shape().map(|shape| shape.len());
        let fits = known && rank == image.ty().shape().map(|shape| shape.len()) && is_whole(part);
        let unit = slice.strides.iter().all(|stride| *stride == Index::Static(1));
        fits.then_some(())?;
        unit.then(|| Self::Padded { part, value: fill.operand(0), slice, ty: image.ty() })
    }

    /// The image with its channels last.
    fn by_channels(self, loc: Location<'c>, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
        let part = match &self {
            Self::Plain(part) | Self::Padded { part, .. } => *part,
        };
        let (ty, front) = (part.ty(), part.ty().shape().map_or(0, |shape| shape.len() - IMAGE));
        let flat = collapsed(part, front + 1, rw)?;
        let shape = flat.ty().shape().unwrap_or_default();
        let turned: Vec<i64> = shape[..front].iter().copied().chain([shape[front + 1], shape[front]]).collect();
        let to = empty(Type::tensor(&turned, ty.element(), None), loc, rw)?;
        let image = transposed(flat, to, (loc, front), false, rw)?;
        let image = expanded(image, moved_type(ty), front, rw)?;
        let Self::Padded { value, slice, ty, .. } = self else { return Ok(image) };
        let place = Slice::new(moved(&slice.offsets), moved(&slice.sizes));
        let shape = moved(&ty.shape().unwrap_or_default());
        Padded { part: image, place, shape, value, lanes: 1 }.create(loc, rw)
    }
}

/// Copies `from`, of dimensions (.., channels, places), to `to`, of dimensions (.., places, channels), or the other way (`back`).
fn transposed<'c>(
    from: Value<'c>,
    to: Value<'c>,
    (loc, front): (Location<'c>, usize),
    back: bool,
    rw: &mut Rewriter<'c>,
) -> Result<Value<'c>, Diagnostics> {
    let (cx, rank, element) = (rw.context(), front + 2, from.ty().element());
    let turned: Vec<usize> = (0..front).chain([front + 1, front]).collect();
    let mut maps = [AffineMap::identity(cx, rank), AffineMap::select(cx, rank, &turned)];
    if back {
        maps.reverse();
    }
    let (body, region) = (Block::new(&[(element, loc), (element, loc)]), Region::new());
    Builder::new(cx, InsertionPoint::End(body))
        .create(OpSpec::new(ops::linalg::YIELD, loc).operands(&[body.arg(0)]))?;
    region.append(body);
    let kinds = iterator_types_attr(cx, &vec![IteratorType::Parallel; rank]);
    Ok(rw.create(generic(loc, Operands { inputs: &[from], outputs: &[to] }, &maps, kinds, region))?.result(0))
}

/// Erases the ops that make a value which nothing reads any more: the padded image, its fill and its tensor.
fn erase_unused<'c>(value: Value<'c>, rw: &mut Rewriter<'c>) {
    let makes = [ops::tensor::INSERT_SLICE, ops::tensor::EXTRACT_SLICE, ops::linalg::FILL, ops::tensor::EMPTY];
    let Some(op) = value.defining_op().filter(|op| makes.contains(&op.name()) && value.uses().is_empty()) else {
        return;
    };
    let operands = op.operands();
    rw.erase(op);
    operands.into_iter().for_each(|operand| erase_unused(operand, rw));
}

fn empty<'c>(ty: Type<'c>, loc: Location<'c>, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
    Ok(rw.create(OpSpec::new(ops::tensor::EMPTY, loc).results(&[ty]))?.result(0))
}

/// What belongs to the dimensions of an image, the channels last.
fn moved<T: Clone>(dims: &[T]) -> Vec<T> {
    let mut dims = dims.to_vec();
    let front = dims.len() - IMAGE;
    dims[front..].rotate_left(1);
    dims
}

fn moved_type(ty: Type) -> Type {
    Type::tensor(&moved(&ty.shape().unwrap_or_default()), ty.element(), None)
}

fn moved_map<'c>(cx: Context<'c>, map: AffineMap<'c>) -> AffineMap<'c> {
    AffineMap::of(cx, map.num_dims(), &moved(&map.results()))
}
