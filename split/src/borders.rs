//! Checks that a buffer keeps the border that one dispatch fills: then the fill runs once per arena, not once per run.
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
//! after it. [`crate::plan`] gives such a buffer a place that no other buffer takes, or removes the attribute.
//! The slices are written as a whole before they are read: known of the tensors, by the phase that set the attribute.

use crate::plan::VIEW_LIKE;
use monopour_contract::attributes;
use monopour_ir::typed::{Index, Slice};
use monopour_ir::{Block, Op, Rewriter, Value, interfaces, ops};

/// Removes the attribute from the dispatches of `host` whose buffer does not keep its border.
pub fn run(host: Op) {
    let Some(block) = host.body() else { return };
    let mut rw = Rewriter::new(host.context());
    for fill in host.find_all(ops::scf::FORALL) {
        if fill.attr(attributes::BORDER).is_some() && !(fill.block() == Some(block) && keeps_border(fill, block)) {
            rw.remove_attr(fill, attributes::BORDER);
        }
    }
}

fn keeps_border(fill: Op, block: Block) -> bool {
    let slices = fill.attr(attributes::BORDER).and_then(|border| border.get("slices")?.as_array());
    let slices: Option<Vec<Vec<i64>>> = slices.and_then(|all| all.iter().map(|slice| slice.as_ints()).collect());
    let written = fill.find_all(ops::linalg::FILL).first().and_then(|op| root(op.operands().last().copied()?));
    let (Some(slices), Some(alloc)) = (slices, written) else { return false };
    let mut work = vec![(alloc.result(0), Access::Whole)];
    while let Some((buffer, access)) = work.pop() {
        for used in buffer.uses() {
            if VIEW_LIKE.contains(&used.op.name()) && used.index == 0 {
                let is_slice = access == Access::Whole && is_one_of(used.op, &slices);
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
