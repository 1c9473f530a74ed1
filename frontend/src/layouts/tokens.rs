//! Images that are tokens before or behind convolutions: transformers keep a row of channels for each place.
//!
//! Before / after:
//!
//! ```text
//! %t = generic %tokens : [3136, 256] -> [256, 3136]        %p = expand_shape %tokens : [3136, 256] -> [56, 56, 256]
//! %i = expand_shape %t : [256, 3136] -> [256, 56, 56]      %i = generic %p : [56, 56, 256] -> [256, 56, 56]
//! %c = convolution of %i                                   %c = convolution of %i
//! %f = collapse_shape %c : [256, 56, 56] -> [256, 3136]    %r = generic %c : [256, 56, 56] -> [56, 56, 256]
//! %r = generic %f : [256, 3136] -> [3136, 256]             %q = collapse_shape %r : [56, 56, 256] -> [3136, 256]
//! ```
//!
//! Transpositions are then of images, and cost nothing that a copy to another layout would not: tokens have their channels last.
//!
//! Ensures: the same values.
//! Limits: known sizes; images that convolutions read or make, also padded or behind pointwise ops.

use super::copies::{behind, copy};
use crate::collapse_lines::{collapsed, expanded};
use crate::linalg;
use crate::products::convolution_loops;
use monopour_ir::{AffineMap, Diagnostics, Module, Op, Rewriter, Type, Value, ops};

/// Ops between a convolution and its image at most.
const NEAR: usize = 4;

/// Brings the transpositions of tokens to images.
///
/// # Errors
/// What MLIR's op builders report.
pub(super) fn run<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    for op in module.op().find_all(ops::linalg::GENERIC) {
        if !turns(op) {
            continue;
        }
        if let Some(image) = opened_next(op).filter(|image| is_read_by_convolution(*image, NEAR)) {
            let shape = image.ty().shape().unwrap_or_default();
            let source = op.operand(0);
            let open = expanded_type(&shape, source.ty());
            behind(source, rw);
            let places = expanded(source, open, shape.len() - 3, rw)?;
            behind(op.result(0), rw);
            let turned = copy(places, &shape, &[to_last(rw, shape.len()), identity(rw, shape.len())], places, rw)?;
            rw.replace_all_uses(image, turned);
            [image.defining_op(), Some(op)].into_iter().flatten().for_each(|op| rw.erase(op));
        } else if let Some((image, collapse)) =
            closed_before(op).filter(|(image, _)| is_made_by_convolution(*image, NEAR))
        {
            let shape = image.ty().shape().unwrap_or_default();
            let open = expanded_type(&shape, image.ty());
            behind(op.result(0), rw);
            let maps = [identity(rw, shape.len()), to_last(rw, shape.len())];
            let places = copy(image, &open.shape().unwrap_or_default(), &maps, image, rw)?;
            let tokens = collapsed(places, shape.len() - 3, rw)?;
            rw.replace_all_uses(op.result(0), tokens);
            [op, collapse].into_iter().for_each(|op| rw.erase(op));
        }
    }
    Ok(())
}

/// Which of the operand (0) and the result (1) of a transposition is an image: the other one has its channels last.
pub(super) fn image_side(op: Op) -> Option<usize> {
    let maps = linalg::indexing_maps(op).filter(|maps| maps.len() == 2 && linalg::is_data_movement(op))?;
    let dims = [maps[0].dim_positions()?, maps[1].dim_positions()?];
    let rank = dims[0].len();
    if rank < 3 || dims[1].len() != rank || dims[0][..rank - 3] != dims[1][..rank - 3] {
        return None;
    }
    let is_image = |side: usize| {
        let (image, other) = (&dims[side][rank - 3..], &dims[1 - side][rank - 3..]);
        [image[1], image[2], image[0]] == *other
    };
    match [is_image(0), is_image(1)] {
        [true, false] => Some(0),
        [false, true] => Some(1),
        _ => None,
    }
}

/// Whether an op transposes the last two dimensions of a tensor of known sizes.
fn turns(op: Op) -> bool {
    let Some(maps) = linalg::indexing_maps(op).filter(|maps| maps.len() == 2) else { return false };
    let mut order: Vec<usize> = (0..maps[0].num_dims()).collect();
    let Some(at) = order.len().checked_sub(2) else { return false };
    order.swap(at, at + 1);
    let known = op.result(0).ty().shape().is_some_and(|shape| shape.iter().all(|size| *size > 0));
    known
        && linalg::is_data_movement(op)
        && maps[0].dim_positions() == Some(order)
        && maps[1] == AffineMap::identity(op.context(), maps[1].num_dims())
}

/// An image whose places are the last dimension of what an op makes, and that alone reads it.
fn opened_next<'c>(op: Op<'c>) -> Option<Value<'c>> {
    let expand = op.result(0).only_use().map(|used| used.op).filter(|op| op.is(ops::tensor::EXPAND_SHAPE))?;
    let (flat, open) = (op.result(0).ty().shape()?, expand.result(0).ty().shape()?);
    (open.len() == flat.len() + 1 && open.len() >= 3 && open[..flat.len() - 1] == flat[..flat.len() - 1])
        .then(|| expand.result(0))
}

/// An image whose places are the last dimension of what an op reads, and that nothing else reads so, and the reshape.
fn closed_before<'c>(op: Op<'c>) -> Option<(Value<'c>, Op<'c>)> {
    let collapse = op.operand(0).defining_op().filter(|op| op.is(ops::tensor::COLLAPSE_SHAPE))?;
    collapse.result(0).only_use()?;
    let (open, flat) = (collapse.operand(0).ty().shape()?, collapse.result(0).ty().shape()?);
    (open.len() == flat.len() + 1 && open.len() >= 3 && open[..flat.len() - 1] == flat[..flat.len() - 1])
        .then(|| (collapse.operand(0), collapse))
}

/// The type of an image's places with their channels last.
fn expanded_type<'c>(image: &[i64], like: Type<'c>) -> Type<'c> {
    let (front, last) = image.split_at(image.len() - 3);
    let shape: Vec<i64> = front.iter().copied().chain([last[1], last[2], last[0]]).collect();
    Type::tensor(&shape, like.element(), None)
}

fn identity<'c>(rw: &Rewriter<'c>, rank: usize) -> AffineMap<'c> {
    AffineMap::identity(rw.context(), rank)
}

/// Of the loops of an image, the places and then the channels.
fn to_last<'c>(rw: &Rewriter<'c>, rank: usize) -> AffineMap<'c> {
    let order: Vec<usize> = (0..rank - 3).chain([rank - 2, rank - 1, rank - 3]).collect();
    AffineMap::select(rw.context(), rank, &order)
}

fn is_read_by_convolution(image: Value, near: usize) -> bool {
    near > 0
        && image.uses().into_iter().any(|used| match used.op.name() {
            ops::linalg::GENERIC if convolution_loops(used.op).is_some() => true,
            ops::tensor::INSERT_SLICE => is_read_by_convolution(used.op.result(0), near - 1),
            ops::linalg::GENERIC => {
                linalg::is_elementwise(used.op) && is_read_by_convolution(used.op.result(0), near - 1)
            }
            _ => false,
        })
}

fn is_made_by_convolution(image: Value, near: usize) -> bool {
    let Some(op) = image.defining_op().filter(|op| near > 0 && op.is(ops::linalg::GENERIC)) else { return false };
    let pointwise = || linalg::is_elementwise(op) && linalg::num_inputs(op) > 0;
    convolution_loops(op).is_some()
        || pointwise() && op.operands().into_iter().any(|value| is_made_by_convolution(value, near - 1))
}
