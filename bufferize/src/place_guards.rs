//! Check the place of an insertion before what is computed there.
//!
//! ```text
//! %t = "dispatch" outs(%e)                           %s = tensor.extract_slice %d[%o] [64] [1]
//! cf.assert %fits                                    cf.assert %fits
//! %r = tensor.insert_slice %t into %d[%o] [64]  ==>  %t = "dispatch" outs(%s)
//!                                                    cf.assert %fits
//!                                                    %r = tensor.insert_slice %t into %d[%o] [64]
//! ```
//!
//! A failed assertion ends the run, and what comes behind it has no effect. The dispatch comes before the assertion that guards the
//! insertion, and would write outside of its destination. The assertion itself stays: it may ask for sizes of what is inserted.
//!
//! Requires: the slice stands before its use, and is undefined only where an assertion before the insertion fails. Ensures: the use
//! comes behind an assertion that the slice lies in its tensor and has the sizes of the tensor that it replaces.
//! Limits: slices of unit strides; uses in the block of the insertion, or nested in an op of it.

use monopour_ir::typed::arith::CmpIPredicate;
use monopour_ir::typed::{Index, Slice};
use monopour_ir::{Attr, Diagnostics, InsertionPoint, Op, OpSpec, Rewriter, Type, Value, ops};

use crate::block_order::BlockOrder;
use crate::index_ops::IndexOps;
use crate::subset_extraction::Edit;

/// Asserts before `user` that the place of an insertion lies in its tensor, and that the two tensors have the same sizes, where
/// assertions between the two may guard that; false, with edits to undo, where that cannot be said there.
///
/// # Errors
/// MLIR's diagnostics for the ops.
pub(crate) fn guard_place<'c>(
    rw: &mut Rewriter<'c>,
    order: &mut BlockOrder<'c>,
    (insertion, user): (Op<'c>, Op<'c>),
    (replaced, by): (Value<'c>, Value<'c>),
    edits: &mut Vec<Edit<'c>>,
) -> Result<bool, Diagnostics> {
    // The assertion of a parallel insertion stands before the op around it.
    let guarded = insertion.parent().filter(|parent| parent.is(ops::scf::FORALL_IN_PARALLEL)).unwrap_or(insertion);
    let anchor = user.beside(guarded);
    if order.asserts_between(anchor, guarded).is_empty() {
        return Ok(true);
    }
    rw.set_point(InsertionPoint::Before(user));
    let mut guard = Guard { ops: IndexOps::new(rw, edits, insertion.location()), conditions: vec![] };
    if let Some(slice) = Slice::of(insertion)
        && !guard.place(&slice, insertion.operand(1))?
    {
        return Ok(false);
    }
    guard.same_sizes(replaced, by)?;
    if guard.conditions.is_empty() {
        return Ok(true);
    }
    let assert = guard.assert(insertion)?;
    order.place_before(assert, user);
    // In a block around that of the insertion, which may not be reached, the assertion must not end the run.
    Ok(anchor.is_some())
}

/// Creates the conditions at the insertion point.
struct Guard<'c, 'a> {
    ops: IndexOps<'c, 'a>,
    conditions: Vec<Value<'c>>,
}

impl<'c> Guard<'c, '_> {
    /// Each interval lies in the tensor's; false for steps that are not one. Compared as unsigned, so that negative numbers are too
    /// large.
    fn place(&mut self, slice: &Slice<'c>, of: Value<'c>) -> Result<bool, Diagnostics> {
        for (at, offset) in slice.offsets.iter().enumerate() {
            let (size, stride, extent) = (slice.sizes[at], slice.strides[at], self.ops.size(of, at)?);
            if [*offset, size, stride, extent].into_iter().all(|index| index.constant().is_some()) {
                continue;
            }
            if stride != Index::Static(1) {
                return Ok(false);
            }
            let mut rest = extent;
            if offset.constant() != Some(0) {
                self.require(CmpIPredicate::Ule, *offset, extent)?;
                let (extent, offset) = (self.ops.value(extent)?, self.ops.value(*offset)?);
                rest = Index::Dynamic(self.ops.op(ops::arith::SUBI, &[extent, offset])?);
            }
            if size != rest {
                self.require(CmpIPredicate::Ule, size, rest)?;
            }
        }
        Ok(true)
    }

    /// Two tensors of one rank have the same sizes.
    fn same_sizes(&mut self, one: Value<'c>, other: Value<'c>) -> Result<(), Diagnostics> {
        for at in 0..one.ty().shape().map_or(0, |shape| shape.len()) {
            let (one, other) = (self.ops.size(one, at)?, self.ops.size(other, at)?);
            if one != other {
                self.require(CmpIPredicate::Eq, one, other)?;
            }
        }
        Ok(())
    }

    fn require(&mut self, predicate: CmpIPredicate, left: Index<'c>, right: Index<'c>) -> Result<(), Diagnostics> {
        let (left, right, cx) = (self.ops.value(left)?, self.ops.value(right)?, self.ops.context());
        let spec = OpSpec::new(ops::arith::CMPI, self.ops.loc).attr("predicate", predicate.to_attr(cx));
        let condition = self.ops.made(spec.operands(&[left, right]).results(&[Type::integer(cx, 1)]))?.result(0);
        self.conditions.push(condition);
        Ok(())
    }

    fn assert(&mut self, insertion: Op<'c>) -> Result<Op<'c>, Diagnostics> {
        let mut conditions = std::mem::take(&mut self.conditions).into_iter();
        let mut all = conditions.next().expect("invariant: there is a condition");
        for condition in conditions {
            let both = OpSpec::new(ops::arith::ANDI, self.ops.loc).operands(&[all, condition]).results(&[all.ty()]);
            all = self.ops.made(both)?.result(0);
        }
        let at = self.ops.loc.position().map(|(_, line, column)| format!(" at {line}:{column}")).unwrap_or_default();
        let message = format!("'{}'{at} leaves its tensor, or inserts one of another size", insertion.name());
        let message = Attr::string(self.ops.context(), &message);
        self.ops.made(OpSpec::new(ops::cf::ASSERT, self.ops.loc).operands(&[all]).attr("msg", message))
    }
}
