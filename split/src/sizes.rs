//! Dynamic sizes of buffers, as one value each: kernels see which of them are equal.
//!
//! Before: two dispatches and the host ask for the size of dimension 0 of `%a`, an argument, in three ways.
//! After: one `memref.dim %a, %c0` behind the definition of `%a`; for an allocation its operand.

use monopour_ir::ops;
use monopour_ir::typed::Index;
use monopour_ir::{DYNAMIC, Diagnostics, InsertionPoint, Location, Op, OpSpec, Rewriter, Type, Value};
use std::collections::HashMap;

/// The sizes that the host and dispatches of a function ask for.
#[derive(Default)]
pub(crate) struct Sizes<'c> {
    sizes: HashMap<(Value<'c>, usize), Value<'c>>,
}

impl<'c> Sizes<'c> {
    /// Gives one value to all on the host who ask for the same size.
    ///
    /// # Errors
    /// MLIR's, none on verified IR.
    pub(crate) fn of(rw: &mut Rewriter<'c>, func: Op<'c>) -> Result<Self, Diagnostics> {
        let mut sizes = Self::default();
        for dim in func.find_all(ops::memref::DIM) {
            let position = dim.operand(1).constant_int().and_then(|d| usize::try_from(d).ok());
            let Some(d) = position.filter(|_| dim.ancestor(ops::scf::FORALL).is_none()) else { continue };
            let size = sizes.size(rw, dim.operand(0), d, dim.location())?;
            rw.replace_op(dim, &[size]);
        }
        Ok(sizes)
    }

    /// The size of dimension `d`, behind the buffer's definition.
    ///
    /// # Errors
    /// MLIR's, none on verified IR.
    pub(crate) fn size(
        &mut self,
        rw: &mut Rewriter<'c>,
        buffer: Value<'c>,
        d: usize,
        loc: Location<'c>,
    ) -> Result<Value<'c>, Diagnostics> {
        if let Some(size) = self.sizes.get(&(buffer, d)).copied().or_else(|| allocated(buffer, d)) {
            return Ok(size);
        }
        rw.set_point(match (buffer.defining_op(), buffer.block()) {
            (Some(op), _) => InsertionPoint::After(op),
            (None, block) => InsertionPoint::Start(block.expect("invariant: a value has an op or a block")),
        });
        let position = rw.const_index(d as i64, loc);
        let index = Type::index(rw.context());
        let spec = OpSpec::new(ops::memref::DIM, loc).operands(&[buffer, position]).results(&[index]);
        let size = rw.create(spec)?.result(0);
        self.sizes.insert((buffer, d), size);
        Ok(size)
    }
}

/// The operand of an allocation that is the size of its dimension `d`.
fn allocated<'c>(buffer: Value<'c>, d: usize) -> Option<Value<'c>> {
    let alloc = buffer.defining_op().filter(|op| op.is(ops::memref::ALLOC))?;
    let shape = buffer.ty().shape()?;
    let before = shape[..d].iter().filter(|extent| **extent == DYNAMIC).count();
    (shape[d] == DYNAMIC).then(|| alloc.operand(before))
}

/// The strides of a buffer without gaps, from its sizes, at the insertion point.
///
/// # Errors
/// MLIR's, none on verified IR.
pub(crate) fn strides<'c>(
    rw: &mut Rewriter<'c>,
    sizes: &[Index<'c>],
    loc: Location<'c>,
) -> Result<Vec<Index<'c>>, Diagnostics> {
    let mut stride = Index::Static(1);
    let mut out = vec![stride];
    for size in sizes.iter().skip(1).rev() {
        stride = match (stride, *size) {
            (Index::Static(a), Index::Static(b)) => Index::Static(a * b),
            (Index::Static(1), only) | (only, Index::Static(1)) => only,
            (a, b) => {
                let mut value = |index| match index {
                    Index::Static(n) => rw.const_index(n, loc),
                    Index::Dynamic(value) => value,
                };
                let factors = [value(a), value(b)];
                let index = Type::index(rw.context());
                Index::Dynamic(
                    rw.create(OpSpec::new(ops::arith::MULI, loc).operands(&factors).results(&[index]))?.result(0),
                )
            }
        };
        out.push(stride);
    }
    out.reverse();
    Ok(out)
}
