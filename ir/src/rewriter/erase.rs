//! Erasing ops, and the contract of conversion patterns about it.

use super::Rewriter;
use crate::conversion::plain::{self, Surroundings};
use crate::{Block, Change, InsertionPoint, Op, OpParts, OpTemplate, Value};
use smallvec::SmallVec;

impl<'c> Rewriter<'c> {
    /// Erases an op and its nested ops. Its results must be unused.
    ///
    /// A conversion pattern that erases an op which is neither its own nor created by it, or is still used, breaks its
    /// contract: nothing is erased then, and the driver reports I0012.
    pub fn erase(&mut self, op: Op<'c>) {
        if self.erase_plainly(op) {
            return;
        }
        if self.watch.is_some() && !self.may_erase(op) {
            return;
        }
        debug_assert!((0..op.num_results()).all(|i| op.result(i).is_unused()), "erased op {} is unused", op.name());
        if op.num_regions() == 0 {
            self.let_go(op);
        } else {
            let mut inner = Vec::new();
            op.walk(crate::WalkOrder::Post, |o| inner.push(o));
            for o in inner {
                match self.watch.as_mut().filter(|watch| watch.casts.is_own(o)) {
                    // Its users are erased right after it.
                    Some(watch) => watch.casts.retire(o),
                    None => self.let_go(o),
                }
            }
            if let Some(watch) = &mut self.watch {
                watch.casts.forget_released_in(op);
            }
        }
        self.step_over(op);
        let raw = op.raw();
        op.note_erasing();
        c!(mlirOperationDestroy(raw));
    }
    /// The fast path, by one shim call; whether it erased the op.
    fn erase_plainly(&mut self, op: Op<'c>) -> bool {
        let Some(watch) = self.watch.as_mut().filter(|watch| watch.casts.is_plain()) else { return false };
        let erased = watch.root.and_then(|root| plain::erase(op, root, &mut watch.casts));
        let Some(around) = erased else { return false };
        self.note_erased(op, around);
        true
    }
    fn note_erased(&mut self, op: Op<'c>, around: Surroundings) {
        if self.is_point_at(op) {
            // The insertion point moves to the erased op's position.
            let next = Op::non_null(around.op).map(InsertionPoint::Before);
            self.set_point(next.unwrap_or(InsertionPoint::End(Block::from_raw(around.block))));
        }
        if let Some(watch) = &mut self.watch {
            watch.aftermath.note_gone(op, watch.root);
        }
        self.journal.push(Change::Erased(op));
    }
    /// The running pattern's op, if all casts are plain and none is live.
    fn root_without_casts(&self) -> Option<Op<'c>> {
        let watch = self.watch.as_ref().filter(|watch| watch.casts.is_plain() && watch.casts.live() == 0)?;
        watch.root
    }
    /// Replaces an op's results by values of the same types and erases it by one shim call; whether it did.
    pub(crate) fn replace_and_erase(&mut self, op: Op<'c>, values: &[Value<'c>]) -> bool {
        let around = self.root_without_casts().and_then(|root| plain::replace_and_erase(op, root, values));
        let Some(around) = around else { return false };
        if let Some(watch) = &mut self.watch {
            watch.redirections += 1;
        }
        self.note_erased(op, around);
        true
    }
    /// Replaces an op without results, such as a terminator, by one like a template: with its location, and its operands after the
    /// given ones. An insertion point at the op moves after the new op. A conversion pattern's rights are as in [`Self::erase`];
    /// without them nothing changes, and the op itself is returned.
    ///
    /// # Panics
    /// If the op is in no block.
    pub fn turn_into(
        &mut self,
        op: Op<'c>,
        template: &OpTemplate<'c>,
        lead: &[Value<'c>],
        successors: &[Block<'c>],
    ) -> Op<'c> {
        let root = self.root_without_casts();
        if let Some((made, around)) = root.and_then(|root| plain::turn_into(op, root, template.op(), lead, successors))
        {
            self.note_like(made, template);
            self.note_erased(op, around);
            return made;
        }
        self.turn_stepwise(op, template, lead, successors)
    }
    fn turn_stepwise(
        &mut self,
        op: Op<'c>,
        template: &OpTemplate<'c>,
        lead: &[Value<'c>],
        successors: &[Block<'c>],
    ) -> Op<'c> {
        assert_eq!(op.num_results(), 0, "{} has no results", op.name());
        if self.watch.is_some() && !self.may_erase(op) {
            return op;
        }
        let point = self.point();
        let mut operands: SmallVec<[Value; 8]> = SmallVec::from_slice(lead);
        operands.extend(op.operand_values());
        self.set_point(InsertionPoint::Before(op));
        let made = self.create_like(template, op.location(), OpParts { operands: &operands, successors, results: &[] });
        match point {
            Some(point) => self.set_point(point),
            None => self.builder = None,
        }
        self.erase(op);
        made
    }
    fn let_go(&mut self, op: Op<'c>) {
        if let Some(watch) = &mut self.watch {
            watch.casts.forget_foreign(op);
            for value in op.operand_list() {
                watch.casts.release(value);
            }
            watch.aftermath.note_gone(op, watch.root);
        }
        self.journal.push(Change::Erased(op));
    }
    /// Whether the running pattern may erase the op; if not, notes a violation. The driver's casts are detached here.
    fn may_erase(&mut self, op: Op<'c>) -> bool {
        let Some(watch) = self.watch.as_deref_mut() else { return true };
        if watch.casts.is_own(op) {
            // Uses keep it; without any it is detached after the pattern.
            op.results().first().into_iter().for_each(|result| watch.casts.release(*result));
            return false;
        }
        for result in op.result_list() {
            if result.is_unused() {
                continue;
            }
            for user in result.uses() {
                if watch.casts.is_own(user.op) && user.op.results().iter().all(|r| r.is_unused()) {
                    // An N:1 cast may use this one twice.
                    if user.op.block().is_some() {
                        watch.casts.retire(user.op);
                    }
                    continue;
                }
                watch.violations.push(format!("erases '{}', which '{}' still uses", op.name(), user.op.name()));
                return false;
            }
        }
        if watch.top == op {
            watch.violations.push(format!("erases '{}', which hangs in no block and is its owner's", op.name()));
            return false;
        }
        if watch.root == Some(op) {
            return true;
        }
        let Some(root) = watch.root else { return true };
        let is_own = |op: Op<'c>| {
            op == root
                || self.journal.iter().rev().any(|change| *change == Change::Created(op))
                || op.block().is_some_and(|block| watch.adopted.contains(&block))
        };
        let mut around = Some(op);
        while let Some(at) = around {
            if is_own(at) {
                return true;
            }
            // A detached op belongs to the pattern.
            if at.block().is_none() && at != watch.top {
                return true;
            }
            around = at.parent();
            if around.is_none() && at.block().is_some() {
                return true;
            }
        }
        let text = format!("erases '{}', which it neither matched nor made", op.name());
        watch.violations.push(text);
        false
    }
    /// Moves an insertion point at or in an op that is about to be erased to the op's position.
    pub(super) fn step_over(&mut self, op: Op<'c>) {
        // The insertion point of a rewriter outside the driver may be at an erased op.
        let may_be_inside = self.watch.is_some() && op.num_regions() > 0;
        let is_at = match self.point() {
            Some(InsertionPoint::After(at) | InsertionPoint::Before(at)) => {
                at == op || (may_be_inside && at.is_inside(op))
            }
            Some(InsertionPoint::Start(block) | InsertionPoint::End(block)) => {
                may_be_inside && block.parent_op().is_some_and(|at| at.is_inside(op))
            }
            None => false,
        };
        if !is_at {
            return;
        }
        match (op.next(), op.block()) {
            (Some(next), _) => self.set_point(InsertionPoint::Before(next)),
            (None, Some(block)) => self.set_point(InsertionPoint::End(block)),
            (None, None) => self.builder = None,
        }
    }
}
