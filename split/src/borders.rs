//! Checks that a buffer keeps the border that one dispatch fills: then the fill runs once per arena, not once per run, and
//! need not write the slice inside.
//!
//! ```mlir
//! %a = memref.alloc() : memref<16x58x58xf32>
//! scf.forall .. { linalg.fill .. %a } {monopour.border = {slices = [[0, 1, 1, 16, 56, 56]], value = 0.0}}
//! %s = memref.subview %a[0, 1, 1] [16, 56, 56] [1, 1, 1]       // each run writes this slice as a whole, then reads it
//! scf.forall .. { .. writes %s .. }
//! scf.forall .. { .. reads %a .. }
//! ```
//!
//! Requires: memrefs, every allocation with its owner, dispatches not outlined yet.
//! Ensures: the attribute is left on a fill of an allocation of the host block of which nothing but the slices is written
//! after it, and on CPUs such a fill around one slice writes what is around it: on each side of a dimension a box as wide as
//! the border. Of a padded image of 112 lines that is a thirtieth. [`crate::plan`] gives such a buffer a place that no other
//! buffer takes, or removes the attribute.
//! The slices are written as a whole before they are read: known of the tensors, by the phase that set the attribute.

use crate::plan::VIEW_LIKE;
use monopour_contract::attributes;
use monopour_ir::typed::{Index, Slice, memref};
use monopour_ir::{Block, DYNAMIC, InsertionPoint, Op, OpSpec, Rewriter, Type, Value, interfaces, ops};

/// Removes the attribute from the dispatches of `host` whose buffer does not keep its border; with `narrow`, the others fill
/// nothing but the border.
pub fn run(host: Op, narrow: bool) {
    let Some(block) = host.body() else { return };
    let mut rw = Rewriter::new(host.context());
    for fill in host.find_all(ops::scf::FORALL) {
        let Some(slices) = slices(fill) else { continue };
        if fill.block() != Some(block) || !keeps_border(fill, block, &slices) {
            rw.remove_attr(fill, attributes::BORDER);
        } else if let ([slice], true) = (&slices[..], narrow) {
            fill_around(&mut rw, fill, slice);
        }
    }
}

/// The slices of which a dispatch fills the border: offsets, then sizes, 0 and [`DYNAMIC`] for all of an unknown size.
fn slices(fill: Op) -> Option<Vec<Vec<i64>>> {
    fill.attr(attributes::BORDER)?.get("slices")?.as_array()?.iter().map(|slice| slice.as_ints()).collect()
}

fn keeps_border(fill: Op, block: Block, slices: &[Vec<i64>]) -> bool {
    let written = fill.find_all(ops::linalg::FILL).first().and_then(|op| root(op.operands().last().copied()?));
    let Some(alloc) = written else { return false };
    let mut work = vec![(alloc.result(0), Access::Whole)];
    while let Some((buffer, access)) = work.pop() {
        for used in buffer.uses() {
            if VIEW_LIKE.contains(&used.op.name()) && used.index == 0 {
                let is_slice = access == Access::Whole && is_one_of(used.op, slices);
                let access = if is_slice { Access::Slice } else { access.of_view(used.op) };
                work.push((used.op.result(0), access));
                continue;
            }
            let allowed =
                used.op.is(ops::memref::DEALLOC) || access == Access::Slice || only_reads(used.op, used.index);
            let follows = is_behind(used.op, fill, block);
            if !used.op.is_inside(fill) && (!follows || !allowed) {
                return false;
            }
        }
    }
    alloc.block() == Some(block)
}

/// Replaces the fill of a tile by fills of what the tile has of the boxes around the slice.
fn fill_around<'c>(rw: &mut Rewriter<'c>, dispatch: Op<'c>, slice: &[i64]) {
    let [fill] = dispatch.find_all(ops::linalg::FILL)[..] else { return };
    let Some(tile) = fill.operand(1).defining_op() else { return };
    let whole = if tile.is(ops::memref::SUBVIEW) { tile.operand(0) } else { tile.result(0) };
    let is_alloc = whole.defining_op().is_some_and(|op| op.is(ops::memref::ALLOC));
    let Some(ty) = whole.ty().as_memref().filter(|ty| is_alloc && slice.len() == 2 * ty.shape.len()) else { return };
    let place = Slice::of(tile).unwrap_or_else(|| Slice::fixed(&vec![0; ty.shape.len()], &ty.shape));
    let keeps_rank = tile.result(0).ty().shape().is_some_and(|shape| shape.len() == ty.shape.len());
    if !keeps_rank || place.strides.iter().any(|stride| *stride != Index::Static(1)) {
        return;
    }
    rw.set_point(InsertionPoint::Before(fill));
    for bounds in around(&ty.shape, slice) {
        let Some(part) = within(rw, fill, &place, &bounds) else { continue };
        let numbers = |all: &[Index]| all.iter().map(|index| index.number()).collect::<Vec<i64>>();
        let offsets = numbers(&part.offsets);
        let offset = match offsets.contains(&DYNAMIC) {
            true => DYNAMIC,
            false => offsets.iter().zip(&ty.strides).map(|(offset, stride)| offset * stride).sum(),
        };
        let view = Type::strided_memref(&numbers(&part.sizes), ty.element, offset, &ty.strides, ty.memory_space);
        let view = memref::subview(fill.location(), whole, &part, view);
        let view = rw.create(view).expect("invariant: a slice of a slice").result(0);
        let output = fill.operand(1);
        let part = rw.clone_op(fill, |value| if value == output { view } else { value });
        rw.insert(part);
    }
    rw.erase(fill);
    if tile.result(0).is_unused() {
        rw.erase(tile);
    }
}

/// The boxes around a slice: bounds per dimension, `None` for all of it.
fn around(shape: &[i64], slice: &[i64]) -> Vec<Vec<Option<(i64, i64)>>> {
    let (offsets, sizes) = slice.split_at(shape.len());
    let (mut boxes, mut inside) = (vec![], vec![None; shape.len()]);
    for (d, extent) in shape.iter().enumerate().filter(|(_, extent)| **extent != DYNAMIC) {
        let (from, to) = (offsets[d], offsets[d] + sizes[d]);
        for side in [(0, from), (to, *extent)] {
            let mut bounds = inside.clone();
            bounds[d] = Some(side);
            boxes.extend((side.0 < side.1).then_some(bounds));
        }
        // The boxes of later dimensions lie beside the slice in this one.
        inside[d] = Some((from, to)).filter(|_| from > 0 || to < *extent);
    }
    boxes
}

/// What a tile has of a box; `None` if that is known to be nothing.
fn within<'c>(
    rw: &mut Rewriter<'c>,
    fill: Op<'c>,
    tile: &Slice<'c>,
    bounds: &[Option<(i64, i64)>],
) -> Option<Slice<'c>> {
    let (mut offsets, mut sizes) = (tile.offsets.clone(), tile.sizes.clone());
    for (d, (from, to)) in bounds.iter().enumerate().filter_map(|(d, bounds)| Some((d, (*bounds)?))) {
        if let (Some(offset), Some(size)) = (offsets[d].constant(), sizes[d].constant()) {
            let start = offset.max(from);
            let size = (offset + size).min(to) - start;
            (offsets[d], sizes[d]) = (Index::Static(start), Index::Static(size));
            if size <= 0 {
                return None;
            }
            continue;
        }
        let loc = fill.location();
        let mut op = |name, operands: [Index<'c>; 2]| {
            let operands = operands.map(|index| match index {
                Index::Static(number) => rw.const_index(number, loc),
                Index::Dynamic(value) => value,
            });
            let spec = OpSpec::new(name, loc).operands(&operands).results(&[Type::index(fill.context())]);
            Index::Dynamic(rw.create(spec).expect("invariant: an op of indices builds").result(0))
        };
        let end = op(ops::arith::ADDI, [offsets[d], sizes[d]]);
        let start = op(ops::arith::MAXSI, [offsets[d], Index::Static(from)]);
        let end = op(ops::arith::MINSI, [end, Index::Static(to)]);
        let size = op(ops::arith::SUBI, [end, start]);
        (offsets[d], sizes[d]) = (start, op(ops::arith::MAXSI, [size, Index::Static(0)]));
    }
    Some(Slice::new(offsets, sizes))
}

/// The part of the buffer that a value is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// All of it.
    Whole,
    /// Some other view.
    View,
    /// One of the slices that each run writes.
    Slice,
}

impl Access {
    /// The part that a view of this part is.
    fn of_view(self, view: Op) -> Self {
        // A base buffer, and what is cast from it, may reach beyond the slice.
        let widens = matches!(view.name(), ops::memref::EXTRACT_STRIDED_METADATA | ops::memref::REINTERPRET_CAST);
        if self == Access::Slice && !widens { Access::Slice } else { Access::View }
    }
}

/// The allocation that a value is a view of.
pub(crate) fn root(mut value: Value) -> Option<Op> {
    loop {
        let op = value.defining_op()?;
        if op.is(ops::memref::ALLOC) {
            return Some(op);
        }
        if !VIEW_LIKE.contains(&op.name()) {
            return None;
        }
        value = op.operand(0);
    }
}

fn is_one_of(view: Op, slices: &[Vec<i64>]) -> bool {
    let Some(slice) = Slice::of(view).filter(|_| view.is(ops::memref::SUBVIEW)) else { return false };
    let unit = slice.strides.iter().all(|stride| *stride == Index::Static(1));
    let numbers: Vec<i64> = slice.offsets.iter().chain(&slice.sizes).map(|index| index.number()).collect();
    unit && slices.contains(&numbers)
}

/// Whether `op` is, or is inside of, an op of `block` behind `fill`.
fn is_behind(op: Op, fill: Op, block: Block) -> bool {
    let around = std::iter::successors(Some(op), |op| op.parent()).find(|op| op.block() == Some(block));
    around.is_some_and(|op| fill.is_before_in_block(op))
}

/// Whether an op only reads the buffer that is its operand.
fn only_reads(op: Op, operand: usize) -> bool {
    match op.name() {
        ops::memref::LOAD | ops::memref::DIM | ops::vector::TRANSFER_READ | ops::vector::LOAD => true,
        ops::memref::COPY => operand == 0,
        _ => op.dialect() == "linalg" && !interfaces::dps_inits(op).contains(&operand),
    }
}
