//! What follows from a pattern that succeeded: which ops it made, changed and erased, and which of them are visited.

use super::super::OpMap;
use super::super::report::Application;
use super::super::worklist::Visit;
use super::Driver;
use crate::op::Descent;
use crate::{Change, Diagnostics, Op, WalkOrder};

impl Driver<'_, '_> {
    /// After a successful pattern: tidies the casts, then schedules what was created or changed.
    pub(super) fn absorb(&mut self, visit: Visit, application: Application) -> Result<(), Diagnostics> {
        let root = visit.op;
        self.rw.settle();
        self.survive(root);
        let verifies = cfg!(debug_assertions) && !self.rw.is_bridging();
        let verified = if verifies { verify(&self.survivors) } else { Ok(()) };
        let from = Visit { origin: self.log.upcoming(), ..visit };
        let survivors = std::mem::take(&mut self.survivors);
        // Legality is read off an op and what it holds: ops that move stay legal, but for those around that made them so.
        let may_keep = self.failures.is_empty() && !self.target.has_recursive_rules();
        for &(op, is_new) in &survivors {
            // What a new op holds may be new too; what a changed op holds is in the journal itself.
            if is_new && op.num_regions() > 0 && !(may_keep && self.rw.holds_what_was_there(op)) {
                op.walk_names(|nested, name| {
                    self.schedule(nested, name, from, false);
                    Descent::Into
                });
            } else {
                self.schedule(op, op.name_address(), from, is_new);
                self.open(op, from);
            }
        }
        self.survivors = survivors;
        if !self.batch.is_empty() {
            self.log.push(application);
            self.work.push(&mut self.batch);
        }
        self.tell(verified, application)
    }

    /// `from`: the visit that it follows from.
    fn schedule(&mut self, op: Op, name: usize, from: Visit, is_new: bool) {
        let kind = self.kinds.of_name(name, op);
        if self.kinds.get(kind).is_always_legal() || self.rw.state().casts.is_own(op) {
            return;
        }
        if is_new || op == from.op || !self.work.is_ahead(op) {
            self.batch.push(Visit { op, ..from });
        }
    }

    /// Schedules what an op holds that no longer makes it legal.
    fn open(&mut self, op: Op, from: Visit) {
        if !self.closed.is_empty() && self.closed.contains_key(&op) && !self.target.is_recursively_legal(op) {
            self.closed.remove(&op);
            for nested in op.nested(WalkOrder::Pre).into_iter().skip(1) {
                self.schedule(nested, nested.name_address(), from, false);
            }
        }
    }

    /// Ops that the journal says were created, changed or moved and not erased afterwards, in that order.
    /// Only these may be read: a handle of an erased op stands for its identity, until a new op takes its address.
    /// The flag says whether the op is new.
    pub(super) fn survive(&mut self, root: Op) {
        let journal = self.rw.take_journal();
        if let [Change::Created(new), Change::Erased(old)] = journal[..]
            && new != old
        {
            // One op for another, as most patterns do.
            self.forget(old, root);
            self.survivors.clear();
            self.survivors.push((new, true));
            self.rw.reuse_journal(journal);
            return;
        }
        // A few ops are found faster without a table. One that was changed before it was inserted may be listed twice then.
        let mut table = (journal.len() > 16).then(OpMap::<usize>::default);
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        for change in &journal {
            let op = change.op();
            let is_new = matches!(change, Change::Created(_));
            if matches!(change, Change::Erased(_)) {
                let was_new = match &mut table {
                    Some(table) => {
                        table.remove(&op).and_then(|position| order[position].take()).is_some_and(|(_, n)| n)
                    }
                    None => strike(&mut order, op),
                };
                if !was_new {
                    self.forget(op, root);
                }
                continue;
            }
            let is_known = match &mut table {
                Some(table) => {
                    let next = order.len();
                    *table.entry(op).or_insert(next) != next
                }
                None => !is_new && order.iter().flatten().any(|(o, _)| *o == op),
            };
            if !is_known {
                order.push(Some((op, is_new)));
            }
        }
        self.survivors.clear();
        self.survivors.extend(order.iter().flatten());
        self.order = order;
        self.rw.reuse_journal(journal);
    }
    fn forget(&mut self, op: Op, root: Op) {
        self.work.forget(op, op == root);
        if !self.failures.is_empty() {
            self.failures.remove(&op);
        }
        if !self.closed.is_empty() {
            self.closed.remove(&op);
        }
        if !self.is_ahead.is_empty() {
            self.is_ahead.remove(&op);
        }
        if self.root == Some(op) {
            self.root = None;
        }
    }
}

/// Takes an op out of a list; whether it was new.
fn strike(order: &mut [Option<(Op, bool)>], op: Op) -> bool {
    let mut was_new = false;
    for entry in order.iter_mut().filter(|entry| entry.is_some_and(|(o, _)| o == op)) {
        was_new |= entry.take().is_some_and(|(_, is_new)| is_new);
    }
    was_new
}

/// The ops and the users of their results, each without what it holds.
fn verify(ops: &[(Op, bool)]) -> Result<(), Diagnostics> {
    for (op, _) in ops {
        op.verify_shallow()?;
        for i in 0..op.num_results() {
            for user in op.result(i).uses() {
                user.op.verify_shallow()?;
            }
        }
    }
    Ok(())
}
