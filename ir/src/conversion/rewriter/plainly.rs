//! What most patterns ask of a rewriter, in few calls. Each function does all or nothing.

use super::super::plain::{self, Idle, Replaced, Retyped};
use super::ConversionRewriter;
use crate::{InsertionPoint, Op, Type, Value};

impl<'c> ConversionRewriter<'c> {
    /// A new cast, right behind the definition of what it casts; its result. Whether it is used for certain.
    pub(super) fn make_cast(&mut self, source: Value<'c>, ty: Type<'c>, is_used: bool) -> Value<'c> {
        let op = self.state_mut().casts.take_spare();
        let (result, definition) = plain::place_cast(op, source, ty);
        self.state_mut().casts.note_made(op, source, ty, is_used);
        // What was to come right behind the definition comes behind the cast.
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
    /// Replaces an op's results where no cast but one to the old type is concerned; whether it did.
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
    /// Whether all casts are the driver's, of one value to one type.
    pub(in crate::conversion) fn is_plain(&self) -> bool {
        self.bridges.is_none() && self.casts().is_plain()
    }
    /// Retypes a value that no cast reads, where nothing is to be inserted right behind its definition; whether it did.
    /// The caller says that the op around changed.
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
    /// Takes a cast of one value that nothing reads out of the IR; `None` where that is for the caller to find out.
    /// Whether it was taken out, else.
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
