//! Packs panels of a matrix product's right operand that many register tiles read into a buffer of the task.
//!
//! ```text
//! scf.for %i .. {                                        %p = scf.for %k .. iter_args(%q = %e) {
//!   %b = tensor.extract_slice %B[%kb, %j] [256, 32]        %v = vector.transfer_read %b[%k, 0] : vector<32xf32>
//!   linalg.matmul ins(%a, %b) ..                 ==>       vector.transfer_write %v, %q[%k, 0]
//! }                                                      }
//!                                                        scf.for %i .. { linalg.matmul ins(%a, %p) .. }
//! ```
//!
//! The rows of a panel have the stride of the operand. A power of two maps them to the same cache sets, and each row to its
//! own page; a packed panel stays in the first-level cache. A transposed operand is packed in the order of its reads.
//! Limits: panels of static size up to [`MAX_PANEL_BYTES`], read by at least [`MIN_READERS`] tiles; others stay as they are.

use crate::linalg;
use monopour_ir::ops;
use monopour_ir::typed::vector::{self, Place};
use monopour_ir::{
    AffineMap, Attr, Block, Builder, Diagnostics, InsertionPoint, Op, OpSpec, Region, Rewriter, Type, Value,
};

/// Largest panel, which lies on the stack of a task.
const MAX_PANEL_BYTES: u64 = 64 << 10;
/// Fewest readers for which the copy pays.
const MIN_READERS: i64 = 4;

/// Packs the panels of these products, all of which are in loops over register tiles.
pub(crate) fn run<'c>(products: Vec<Op<'c>>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    for product in products {
        if let Some((slice, tiles)) = panel(product) {
            hoist(slice, tiles, rw);
            let packed = pack(slice, is_transposed(product), tiles)?;
            let maps = [[0, 2], [2, 1], [0, 1]].map(|dims| AffineMap::select(product.context(), 3, &dims).to_attr());
            let mut all = product.attr("indexing_maps").and_then(|a| a.as_array()).unwrap_or_else(|| maps.to_vec());
            all[1] = maps[1];
            rw.set_operand(product, 1, packed);
            rw.set_attr(product, "indexing_maps", Attr::array(product.context(), &all));
        }
    }
    Ok(())
}

/// Whether the right operand is transposed.
pub(crate) fn is_transposed(product: Op) -> bool {
    let dims = linalg::indexing_maps(product).and_then(|maps| maps[1].dim_positions());
    dims.is_some_and(|dims| dims == [1, 2])
}

/// The slice of the right operand, and the loop over row tiles in which it is invariant.
fn panel<'c>(product: Op<'c>) -> Option<(Op<'c>, Op<'c>)> {
    let slice = product.operand(1).defining_op().filter(|op| op.is(ops::tensor::EXTRACT_SLICE))?;
    let tiles = product.parent().filter(|op| op.is(ops::scf::FOR))?;
    let trips = trip_count(tiles)?;
    let ty = slice.result(0).ty();
    let small = ty.static_size_bytes().is_some_and(|bytes| bytes <= MAX_PANEL_BYTES) && ty.shape()?.len() == 2;
    let shared = slice.result(0).uses().len() == 1;
    (small && shared && trips >= MIN_READERS && is_invariant(slice, tiles)).then_some((slice, tiles))
}

fn trip_count(tiles: Op) -> Option<i64> {
    let [lower, upper, step] = [0, 1, 2].map(|i| tiles.operand(i).constant_int());
    Some((upper? - lower?) / step.filter(|s| *s > 0)?)
}

/// Whether an op can be hoisted out of a loop: its operands are from outside, or index arithmetic that can be hoisted as
/// well.
fn is_invariant(op: Op, tiles: Op) -> bool {
    op.operands().into_iter().all(|value| match value.defining_op() {
        Some(def) if !def.is_inside(tiles) => true,
        Some(def) => def.dialect() == "affine" && is_invariant(def, tiles),
        None => value.block().and_then(Block::parent_op).is_some_and(|owner| !owner.is_inside(tiles)),
    })
}

fn hoist<'c>(op: Op<'c>, tiles: Op<'c>, rw: &mut Rewriter<'c>) {
    if !op.is_inside(tiles) {
        return;
    }
    for def in op.operands().into_iter().filter_map(Value::defining_op) {
        hoist(def, tiles, rw);
    }
    rw.move_before(op, tiles);
}

/// The loop that copies the panel, one row of the reduction at a time, in front of the loop over row tiles.
fn pack<'c>(slice: Op<'c>, transposed: bool, tiles: Op<'c>) -> Result<Value<'c>, Diagnostics> {
    let (cx, loc) = (slice.context(), slice.location());
    let source = slice.result(0);
    let element = source.ty().element();
    let mut shape = source.ty().shape().expect("invariant: panel checked the type");
    if transposed {
        shape.reverse();
    }
    let packed = Type::tensor(&shape, element, None);
    let mut b = Builder::before(tiles);
    let empty = b.create(OpSpec::new(ops::tensor::EMPTY, loc).results(&[packed]))?.result(0);
    let [zero, end, one] = [0, shape[0], 1].map(|v| b.const_index(v, loc));
    let padding = b.constant(Attr::float(element, 0.0), element, loc);
    let body = Block::new(&[(Type::index(cx), loc), (packed, loc)]);
    let (k, destination) = (body.arg(0), body.arg(1));
    let mut inner = Builder::new(cx, InsertionPoint::End(body));
    let row = Type::vector(&[shape[1]], element);
    let (indices, dim) = if transposed { ([zero, k], 0) } else { ([k, zero], 1) };
    let row_along = |base, indices, dim| Place { base, indices, permutation_map: AffineMap::select(cx, 2, &[dim]) };
    let read = vector::transfer_read(loc, &row_along(source, &indices, dim), padding, row);
    let read = inner.create(read)?.result(0);
    let write = vector::transfer_write(loc, read, &row_along(destination, &[k, zero], 1));
    let write = inner.create(write)?.result(0);
    inner.create(OpSpec::new(ops::scf::YIELD, loc).operands(&[write]))?;
    let region = Region::new();
    region.append(body);
    let copy = OpSpec::new(ops::scf::FOR, loc).operands(&[zero, end, one, empty]).results(&[packed]).region(region);
    Ok(b.create(copy)?.result(0))
}
