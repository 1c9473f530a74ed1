//! After a successful pattern: which ops it created, modified and erased, and which of them are visited.

use super::super::report::Application;
use super::super::worklist::Visit;
use super::super::{OpMap, PatternEvent, observe};
use super::Driver;
use crate::op::Descent;
use crate::{Change, Diagnostic, Diagnostics, Op, WalkOrder};

/// Longest journal that is searched without a table.
const FEW: usize = 16;

impl<'c> Driver<'c, '_, '_> {
    /// After a successful pattern: settles the casts, then schedules the created and modified ops.
    pub(super) fn absorb(&mut self, visit: Visit<'c>, application: &Application<'c>) -> Result<(), Diagnostics> {
        self.rw.settle();
        if self.closed.is_empty() && self.rw.state().aftermath.is_little(self.rw.journal().len()) {
            if cfg!(debug_assertions) {
                self.check_little();
            }
            self.forget_gone(visit.op);
        } else {
            self.follow_up(visit, application);
        }
        // Debug builds verify the ops of the pattern.
        if cfg!(debug_assertions) || self.is_watched { self.tell(application) } else { Ok(()) }
    }
    /// Schedules the created and modified ops.
    #[inline(never)]
    fn follow_up(&mut self, visit: Visit<'c>, application: &Application<'c>) {
        self.survive(visit.op);
        let from = Visit { origin: self.log.upcoming(), ..visit };
        let survivors = std::mem::take(&mut self.survivors);
        // Legality depends on an op and its body: ops that move stay legal, unless an enclosing op made them recursively legal.
        let may_keep = self.failures.is_empty() && !self.target.has_recursive_rules();
        for &(op, is_new) in &survivors {
            // The body of a new op may be new too; changes in the body of a modified op are in the journal itself.
            if is_new && op.num_regions() > 0 && !(may_keep && self.rw.holds_what_was_there(op)) {
                op.walk_names(|nested, name| {
                    self.schedule(nested, name, from, false);
                    Descent::Into
                });
                continue;
            }
            self.schedule(op, op.name_address(), from, is_new);
            self.open(op, from);
        }
        self.survivors = survivors;
        if !self.batch.is_empty() {
            self.log.push(*application);
            self.work.push(&mut self.batch);
        }
    }
    /// Verifies the IR, then calls the hook.
    fn tell(&mut self, application: &Application<'c>) -> Result<(), Diagnostics> {
        let verified = if self.rw.is_bridging() { Ok(()) } else { verify(&self.unverified) };
        if self.is_observed || self.options.after_each_pattern.is_some() {
            let pattern = self.patterns.get(application.pattern).name();
            let live_casts = self.rw.state().casts.live();
            let event = PatternEvent { pattern: &pattern, op_name: application.op_name, root: self.root, live_casts };
            if let Some(hook) = &mut self.options.after_each_pattern {
                hook(&event);
            }
            observe::tell(&event);
        }
        let whole = self.root.filter(|_| self.options.verify_each && verified.is_ok());
        let verified = verified.and_then(|()| whole.map_or(Ok(()), Op::verify_with_diagnostics));
        verified.map_err(|mut diagnostics| {
            let text = format!("the IR is invalid after {}", application.describe(self.patterns));
            diagnostics.0.push(Diagnostic::error("I0012", application.location, text));
            diagnostics
        })
    }

    /// `from`: the visit that it follows from.
    fn schedule(&mut self, op: Op<'c>, name: usize, from: Visit<'c>, is_new: bool) {
        let kind = self.kinds.of_name(name, op);
        if self.kinds.get(kind).is_always_legal() || self.rw.state().casts.is_own(op) {
            return;
        }
        if is_new || op == from.op || !self.work.is_ahead(op) {
            self.batch.push(Visit { op, ..from });
        }
    }

    /// Schedules the body of an op that is no longer recursively legal.
    fn open(&mut self, op: Op<'c>, from: Visit<'c>) {
        if !self.closed.is_empty() && self.closed.contains_key(&op) && !self.target.is_recursively_legal(op) {
            self.closed.remove(&op);
            for nested in op.nested(WalkOrder::Pre).into_iter().skip(1) {
                self.schedule(nested, nested.name_address(), from, false);
            }
        }
    }

    /// Ops that the journal lists as created, modified or moved, and not erased afterwards, in that order.
    /// Only these may be read: a handle of an erased op stands for its identity, until a new op takes its address.
    /// The flag says whether the op is new. Ops that need no visit may be left out; debug builds verify them too.
    pub(super) fn survive(&mut self, root: Op<'c>) {
        self.survivors.clear();
        let journal = self.rw.take_journal();
        self.unverified.clear();
        // A short journal is searched without a table.
        if journal.len() > FEW || !self.survive_few(&journal, root) {
            self.survive_by_table(&journal, root);
        }
        self.rw.reuse_journal(journal);
    }
    /// Processes a journal that should need no further visits.
    fn check_little(&mut self) {
        let journal = self.rw.take_journal();
        self.survivors.clear();
        self.unverified.clear();
        self.sift(&journal);
        self.list_sifted();
        assert!(self.survivors.is_empty(), "something is to be done");
        self.rw.note(journal);
    }
    /// Forgets erased ops; modified ops need no visit.
    fn forget_gone(&mut self, root: Op<'c>) {
        let journal = self.rw.take_journal();
        if journal.len() > FEW {
            self.sift(&journal);
            self.forget_sifted(root);
            return self.rw.reuse_journal(journal);
        }
        for change in &journal {
            let Change::Erased(op) = *change else { continue };
            // Most often the walk would have reached it soon, and it is in no other table.
            let is_done = self.failures.is_empty()
                && self.root != Some(op)
                && (op == root && self.is_root_listed || self.work.forget_near(op));
            // Ops that the pattern created and erased were never listed.
            let is_made = || {
                let mut before = journal.iter().take_while(|other| !std::ptr::eq(*other, change));
                before.any(|other| *other == Change::Created(op))
            };
            if !is_done && !is_made() {
                self.forget(op, root);
            }
        }
        self.rw.reuse_journal(journal);
    }
    /// As [`Self::survive_by_table`], if no op that the pattern created was erased; whether that is so.
    fn survive_few(&mut self, journal: &[Change<'c>], root: Op<'c>) -> bool {
        let mut gone = std::mem::take(&mut self.gone);
        gone.clear();
        // A few bits of each address distinguish most ops.
        let bit = |op: Op<'c>| 1u64 << ((op.address() >> 4) % 64);
        let mut made = 0;
        for change in journal {
            match *change {
                Change::Created(op) => made |= bit(op),
                Change::Erased(op) => gone.push(op),
                Change::Modified(_) | Change::Moved(_) => {}
            }
        }
        // A new op may also have the address of an erased one.
        let is_new = |op: &Op<'c>| made & bit(*op) != 0 && journal.contains(&Change::Created(*op));
        let is_simple = !gone.iter().any(is_new);
        if is_simple {
            gone.iter().for_each(|op| self.forget(*op, root));
            for change in journal {
                match *change {
                    Change::Created(op) => self.list(op, true),
                    Change::Erased(_) => {}
                    Change::Modified(op) | Change::Moved(op) => {
                        if !gone.contains(&op) {
                            self.list(op, false);
                        }
                    }
                }
            }
        }
        self.gone = gone;
        is_simple
    }
    /// Lists a survivor. One that was modified before it was inserted may be listed twice.
    #[inline(always)]
    fn list(&mut self, op: Op<'c>, is_new: bool) {
        if cfg!(debug_assertions) {
            self.unverified.push(op);
        }
        let is_known = || !is_new && self.survivors.iter().any(|(known, _)| *known == op);
        if !is_known() && self.follows(op, is_new) {
            self.survivors.push((op, is_new));
        }
    }
    /// Whether a survivor or its body may need a visit.
    #[inline(always)]
    fn follows(&mut self, op: Op<'c>, is_new: bool) -> bool {
        // The body of a new op may be new too.
        let name = if is_new { op.name_if_flat() } else { Some(op.name_address()) };
        let Some(name) = name.filter(|_| self.closed.is_empty()) else { return true };
        let kind = self.kinds.of_name(name, op);
        if !self.kinds.get(kind).is_always_legal() {
            return true;
        }
        let aftermath = &mut self.rw.state_mut().aftermath;
        if is_new {
            aftermath.note_legal_name(name)
        } else {
            aftermath.note_legal_op(op)
        }
        false
    }
    fn survive_by_table(&mut self, journal: &[Change<'c>], root: Op<'c>) {
        self.sift(journal);
        self.forget_sifted(root);
        self.list_sifted();
    }
    fn forget_sifted(&mut self, root: Op<'c>) {
        let gone = std::mem::take(&mut self.gone);
        gone.iter().for_each(|op| self.forget(*op, root));
        self.gone = gone;
    }
    /// Separates the surviving ops from the erased ones.
    fn sift(&mut self, journal: &[Change<'c>]) {
        let mut table = OpMap::<usize>::default();
        let (order, gone) = (&mut self.order, &mut self.gone);
        order.clear();
        gone.clear();
        for change in journal {
            let op = change.op();
            if matches!(change, Change::Erased(_)) {
                if !table.remove(&op).and_then(|position| order[position].take()).is_some_and(|(_, is_new)| is_new) {
                    gone.push(op);
                }
                continue;
            }
            let next = order.len();
            if *table.entry(op).or_insert(next) == next {
                order.push(Some((op, matches!(change, Change::Created(_)))));
            }
        }
    }
    fn list_sifted(&mut self) {
        let order = std::mem::take(&mut self.order);
        for &(op, is_new) in order.iter().flatten() {
            if cfg!(debug_assertions) {
                self.unverified.push(op);
            }
            if self.follows(op, is_new) {
                self.survivors.push((op, is_new));
            }
        }
        self.order = order;
    }
    fn forget(&mut self, op: Op<'c>, root: Op<'c>) {
        // Its entries in the walk are ahead of that.
        let is_listed = self.work.forget(op, op == root) || op == root && self.is_root_listed;
        if !self.failures.is_empty() {
            self.failures.remove(&op);
        }
        if !self.closed.is_empty() {
            self.closed.remove(&op);
        }
        if !is_listed && !self.is_ahead.is_empty() {
            self.is_ahead.remove(&op);
        }
        if self.root == Some(op) {
            self.root = None;
        }
    }
}

/// Verifies the ops and the users of their results, each without its regions.
fn verify(ops: &[Op]) -> Result<(), Diagnostics> {
    for op in ops {
        op.verify_shallow()?;
        for i in 0..op.num_results() {
            for user in op.result(i).uses() {
                user.op.verify_shallow()?;
            }
        }
    }
    Ok(())
}
