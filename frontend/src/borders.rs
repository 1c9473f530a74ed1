//! Marks the dispatches that fill a tensor of which insertions leave a border, such as the pads of a convolution.
//!
//! ```text
//! %f = scf.forall .. { linalg.fill ins(%zero) .. } {monopour.kernel = ..}     the same with
//! %p = tensor.insert_slice %x into %f[0, 1, 1] [16, 56, 56] [1, 1, 1]         monopour.border = {slices = [[0, 1, 1, 16, 56, 56]], value = 0.0}
//! ```
//!
//! Every run writes the slices as a whole before it reads them, and the same value outside of them. A buffer that no other
//! tensor takes between two runs keeps the border: `split/src/borders.rs` decides that on memrefs, and the fill runs once.
//!
//! Requires: what [`crate::tile`] ensures. Ensures: attributes only.
//! Limits: constants as the value; slices of unit strides and static place, but for dimensions of unknown size that they have all
//! of; fills that one chain of insertions overwrites.

use monopour_contract::attributes;
use monopour_ir::typed::{Index, Slice};
use monopour_ir::{Attr, Block, DYNAMIC, Module, Op, Rewriter, Value, ops};

/// Marks the fills of a module.
pub fn run(module: &Module) {
    let cx = module.context();
    let mut rw = Rewriter::new(cx);
    for dispatch in module.op().find_all(ops::scf::FORALL) {
        if dispatch.attr(attributes::KERNEL).is_none() || dispatch.num_results() != 1 {
            continue;
        }
        let value = filled_value(dispatch).and_then(Value::defining_op).and_then(|constant| constant.attr("value"));
        let (Some(value), Some(slices)) = (value, inserted_slices(dispatch)) else { continue };
        let slices: Vec<Attr> = slices.iter().map(|slice| Attr::dense_i64(cx, slice)).collect();
        let border = Attr::dict(cx, &[("slices", Attr::array(cx, &slices)), ("value", value)]);
        rw.set_attr(dispatch, attributes::BORDER, border);
    }
}

/// The constant that a dispatch writes to the elements of a new tensor, if it does nothing else.
pub(crate) fn filled_value<'c>(dispatch: Op<'c>) -> Option<Value<'c>> {
    let fresh = |op: Op| op.is(ops::tensor::EMPTY);
    let body: Vec<Op> = dispatch.body().map(Block::ops)?;
    let mut fills = body.iter().filter(|op| op.is(ops::linalg::FILL));
    let (fill, None) = (fills.next()?, fills.next()) else { return None };
    let moves = |op: &Op| {
        matches!(op.name(), ops::linalg::FILL | ops::tensor::EXTRACT_SLICE | ops::scf::FORALL_IN_PARALLEL)
            || matches!(op.dialect(), "affine" | "arith")
    };
    let starts_fresh = dispatch.operands().last()?.defining_op().is_some_and(fresh);
    let is_constant = fill.operand(0).defining_op().is_some_and(|op| op.is(ops::arith::CONSTANT));
    (is_constant && starts_fresh && body.iter().all(moves)).then(|| fill.operand(0))
}

/// The slices that insertions overwrite, one after the other, before the tensor is read: offsets, then sizes.
fn inserted_slices<'c>(dispatch: Op<'c>) -> Option<Vec<Vec<i64>>> {
    let mut slices = vec![];
    let mut tensor = dispatch.result(0);
    loop {
        let uses = tensor.uses();
        let next = uses.first().filter(|u| uses.len() == 1 && u.op.is(ops::tensor::INSERT_SLICE) && u.index == 1);
        let Some(insertion) = next.map(|u| u.op).filter(|op| op.block() == dispatch.block()) else { break };
        slices.push(slice_of(insertion)?);
        tensor = insertion.result(0);
    }
    (!slices.is_empty()).then_some(slices)
}

/// Offsets, then sizes, of a slice of unit strides and static place; a dimension of unknown size that it has all of is 0 and
/// [`DYNAMIC`].
fn slice_of(insertion: Op) -> Option<Vec<i64>> {
    let slice = Slice::of(insertion)?;
    let unit = slice.strides.iter().all(|stride| *stride == Index::Static(1));
    let whole = |d: usize, size: Value| {
        slice.offsets[d] == Index::Static(0) && size_of_new(insertion.operand(1), d) == Some(size)
    };
    let sizes = slice.sizes.iter().enumerate().map(|(d, size)| match size {
        Index::Static(size) => Some(*size),
        Index::Dynamic(size) => whole(d, *size).then_some(DYNAMIC),
    });
    let offsets = slice.offsets.iter().map(|offset| match offset {
        Index::Static(offset) => Some(*offset),
        Index::Dynamic(_) => None,
    });
    offsets.chain(sizes).collect::<Option<Vec<i64>>>().filter(|_| unit)
}

/// The size of dimension `d` of a tensor, if that is computed: what a dispatch and insertions make of a `tensor.empty`.
pub(crate) fn size_of_new<'c>(tensor: Value<'c>, d: usize) -> Option<Value<'c>> {
    let mut tensor = tensor;
    while let Some(op) = tensor.defining_op() {
        tensor = match op.name() {
            ops::scf::FORALL if op.num_results() == 1 => op.operands().last().copied()?,
            ops::tensor::INSERT_SLICE => op.operand(1),
            ops::tensor::EMPTY => {
                let shape = tensor.ty().shape()?;
                let before = shape[..d].iter().filter(|size| **size == DYNAMIC).count();
                return (shape[d] == DYNAMIC).then(|| op.operand(before));
            }
            _ => return None,
        };
    }
    None
}
