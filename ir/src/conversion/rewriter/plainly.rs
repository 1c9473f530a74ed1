//! Fast paths of the rewriter for most patterns, in few shim calls. Each function does all or nothing.

use super::super::plain::{self, Idle, Replaced, Retyped};
use super::ConversionRewriter;
use crate::{InsertionPoint, Op, Type, Value};

impl<'c> ConversionRewriter<'c> {
    /// Inserts a new cast right after the definition of its operand, and returns its result. `is_used`: whether it is used for certain.
    pub(super) fn make_cast(&mut self, source: Value<'c>, ty: Type<'c>, is_used: bool) -> Value<'c> {
        let op = self.state_mut().casts.take_spare();
        let (result, definition) = plain::place_cast(op, source, ty);
        self.state_mut().casts.note_made(op, source, ty, is_used);
        // An insertion point right after the definition moves after the cast.
        let is_behind = match self.rewriter.point() {
            Some(InsertionPoint::After(at)) => at.raw().ptr == definition.op.ptr,
            Some(InsertionPoint::Start(at)) => at.raw().ptr == definition.block.ptr,
            _ => false,
        };
        if is_behind {
            self.rewriter.set_point(InsertionPoint::After(op));
        }
        result
    }
    /// Replaces an op's results if no cast but one to the old type is involved; whether it did.
    pub(super) fn replace_plainly(&mut self, op: Op<'c>, values: &[Value<'c>]) -> bool {
        if !self.is_plain() {
            return false;
        }
        match plain::replace(op, values, self.casts()) {
            Replaced::No => return false,
            Replaced::All => {}
            Replaced::NeedsCast => {
                let (old, new) = (op.result(0), values[0]);
                let ty = old.ty();
                let known = self.casts().find(new, ty).map(|cast| cast.result(0));
                let stand_in = known.unwrap_or_else(|| self.make_cast(new, ty, true));
                c!(mlirValueReplaceAllUsesOfWith(old.raw(), stand_in.raw()));
            }
        }
        self.state_mut().redirections += 1;
        true
    }
    /// Whether all casts are the driver's and 1:1.
    pub(in crate::conversion) fn is_plain(&self) -> bool {
        self.bridges.is_none() && self.casts().is_plain()
    }
    /// Retypes a value that no cast uses, if the insertion point is not right after its definition; whether it did.
    /// The caller records the parent op as modified.
    pub(in crate::conversion) fn retype_plainly(&mut self, value: Value<'c>, old_ty: Type<'c>, ty: Type<'c>) -> bool {
        if !self.is_plain() || !matches!(self.rewriter.point(), None | Some(InsertionPoint::Before(_))) {
            return false;
        }
        let cast = self.state_mut().casts.take_spare();
        let retyped = plain::retype(value, ty, cast, self.casts());
        if retyped == Retyped::Cast {
            self.state_mut().casts.note_made(cast, value, old_ty, true);
        } else {
            self.state_mut().casts.put_spare(cast);
        }
        retyped != Retyped::No
    }
    /// Detaches an unused 1:1 cast; whether it was detached, or `None` if the slow path must decide.
    pub(super) fn retire_plainly(&mut self, cast: Op<'c>) -> Option<bool> {
        if self.rewriter.is_point_at(cast) {
            return None;
        }
        match plain::retire_idle(cast, self.casts()) {
            Idle::No => Some(false),
            Idle::Perhaps => None,
            Idle::Retired(retired) => {
                self.state_mut().casts.note_retired(cast, retired);
                Some(true)
            }
        }
    }
}
