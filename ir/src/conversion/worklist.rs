//! The worklist: the walk over the input, and a stack of created and modified ops.
//!
//! Nothing is looked up for an op that its own pattern replaces: the positions in the walk are indexed only when a pattern
//! first touches another op. A slot of the walk is emptied when its op is erased, so that a later op at the same address
//! is never mistaken for it.

use super::OpMap;
use crate::Op;
use mlir_sys::MlirOperation;
use std::collections::HashMap;

/// The placeholder in the walk for an erased op. It has no other use.
fn gone<'c>() -> Op<'c> {
    Op::from_raw(MlirOperation { ptr: std::ptr::null_mut() })
}

/// How many entries right after the latest hit are compared first.
const AT_ONCE: usize = 2;
/// How many entries are compared before all are indexed: fewer than the ops of a function, it makes no difference.
const NEAR: usize = 2_048;
/// How many entries are compared after the latest hit, and after the current visit.
const VERY_NEAR: usize = 16;

/// The order in which created and modified ops are visited. The result does not depend on it if patterns read their op and adaptor only,
/// types change by a type converter, and no op becomes recursively legal during the conversion.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum WorklistOrder {
    /// In the order of the changes, each followed by all its consequences.
    #[default]
    DepthFirst,
    /// The last change first.
    LastFirst,
    /// Shuffled by this seed. For tests.
    Shuffled(u64),
}

/// One visit of an op.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit<'c> {
    pub(super) op: Op<'c>,
    /// The application that made or changed the op.
    pub(super) origin: Option<u32>,
    /// The op of the input from which it follows, by position in the walk.
    pub(super) input: u32,
}

#[derive(Debug)]
pub(super) struct Worklist<'c> {
    walk: Vec<Op<'c>>,
    next: usize,
    /// Number of ops in earlier walks.
    before: usize,
    /// Positions of ops in the walk, built at the first lookup that needs it. Entries before `next` have been visited.
    positions: Option<OpMap<'c, usize>>,
    /// The position after the latest hit.
    hint: usize,
    stack: Vec<(Visit<'c>, usize)>,
    /// The number of the latest visit of an op on the stack.
    queued: OpMap<'c, usize>,
    pushed: usize,
    order: WorklistOrder,
    random: u64,
}

impl<'c> Worklist<'c> {
    pub(super) fn new(walk: Vec<Op<'c>>, order: WorklistOrder) -> Self {
        let random = match order {
            WorklistOrder::Shuffled(seed) => seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            _ => 1,
        };
        let (stack, queued) = (vec![], HashMap::default());
        Self { walk, next: 0, before: 0, positions: None, hint: 0, stack, queued, pushed: 0, order, random }
    }

    /// The ops that the walk has not reached.
    pub(super) fn ahead(&self) -> Vec<Op<'c>> {
        self.walk[self.next..].iter().copied().filter(|op| *op != gone()).collect()
    }
    /// Starts the next walk after the previous one is done. `list` fills the empty list that it is given.
    pub(super) fn walk_on(&mut self, list: impl FnOnce(&mut Vec<Op<'c>>)) {
        self.before += self.walk.len();
        self.walk.clear();
        list(&mut self.walk);
        (self.next, self.hint, self.positions) = (0, 0, None);
    }
    /// The next visit.
    pub(super) fn pop(&mut self) -> Option<Visit<'c>> {
        while let Some((visit, number)) = self.stack.pop() {
            if self.queued.get(&visit.op) == Some(&number) {
                self.queued.remove(&visit.op);
                return Some(visit);
            }
        }
        while self.next < self.walk.len() {
            let input = u32::try_from(self.before + self.next).expect("ops fit 32 bits");
            let op = self.walk[self.next];
            self.next += 1;
            if op != gone() {
                return Some(Visit { op, origin: None, input });
            }
        }
        None
    }

    /// Adds the ops that one pattern created or modified, in the order of the changes. Ops that the walk has not reached wait for it.
    pub(super) fn push(&mut self, batch: &mut Vec<Visit<'c>>) {
        match self.order {
            WorklistOrder::DepthFirst => batch.reverse(),
            WorklistOrder::LastFirst => {}
            WorklistOrder::Shuffled(_) => self.shuffle(batch),
        }
        for visit in batch.drain(..) {
            if self.queued.contains_key(&visit.op) {
                continue;
            }
            self.pushed += 1;
            self.queued.insert(visit.op, self.pushed);
            self.stack.push((visit, self.pushed));
        }
    }
    fn shuffle(&mut self, batch: &mut [Visit<'c>]) {
        for i in (1..batch.len()).rev() {
            // Xorshift.
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            batch.swap(i, (self.random % (i as u64 + 1)) as usize);
        }
    }

    /// Whether the walk has not reached the op.
    pub(super) fn is_ahead(&mut self, op: Op<'c>) -> bool {
        self.position(op).is_some()
    }
    /// Forgets an erased op; whether the walk had not reached it. `is_root`: it is the op of the current visit.
    pub(super) fn forget(&mut self, op: Op<'c>, is_root: bool) -> bool {
        if !self.queued.is_empty() {
            self.queued.remove(&op);
        }
        let position = if is_root { None } else { self.position(op) };
        if let Some(position) = position {
            self.walk[position] = gone();
            self.positions.as_mut().and_then(|positions| positions.remove(&op));
        }
        position.is_some()
    }
    /// As [`Self::forget`] for an op close ahead in the walk, if nothing is queued and there is no index to update; whether that is so.
    #[inline]
    pub(super) fn forget_near(&mut self, op: Op<'c>) -> bool {
        if !self.queued.is_empty() || self.positions.is_some() {
            return false;
        }
        let end = self.walk.len().min(self.next + VERY_NEAR);
        let slot = self.walk[self.next..end].iter_mut().find(|at| **at == op);
        slot.map(|slot| *slot = gone()).is_some()
    }
    /// The op's position ahead in the walk. Patterns touch nearby ops, often in the order of the walk (a region that gets another
    /// parent op), so it is searched right after the latest hit, near the current visit, and then a little further.
    fn position(&mut self, op: Op<'c>) -> Option<usize> {
        if self.positions.is_none() {
            let behind = |start: usize, count: usize| {
                let end = self.walk.len().min(start + count);
                (start..end).find(|position| self.walk[*position] == op)
            };
            let (visit, hint) = (self.next, self.hint.max(self.next));
            let found = behind(hint, AT_ONCE).or_else(|| behind(visit, VERY_NEAR));
            let found = found.or_else(|| behind(hint, VERY_NEAR)).or_else(|| behind(visit, NEAR));
            if let Some(position) = found {
                self.hint = position + 1;
                return Some(position);
            }
        }
        let next = self.next;
        self.positions().get(&op).copied().filter(|position| *position >= next)
    }
    fn positions(&mut self) -> &mut OpMap<'c, usize> {
        let (walk, next) = (&self.walk, self.next);
        self.positions.get_or_insert_with(|| {
            let rest = walk.iter().enumerate().skip(next);
            rest.filter(|(_, op)| **op != gone()).map(|(position, op)| (*op, position)).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Worklist, WorklistOrder};
    use crate::Op;
    use mlir_sys::MlirOperation;

    /// Handles that are compared and never read.
    fn op<'c>(address: usize) -> Op<'c> {
        Op::from_raw(MlirOperation { ptr: std::ptr::without_provenance_mut(address) })
    }

    #[test]
    fn what_is_forgotten_is_not_ahead_with_an_index_and_without() {
        let [a, b, c, unknown] = [16, 32, 48, 64].map(op);
        let mut work = Worklist::new(vec![a, b, c], WorklistOrder::default());
        assert_eq!(work.pop().map(|visit| visit.op), Some(a));
        assert!(work.forget_near(b));
        assert!(!work.is_ahead(b) && work.is_ahead(c));

        let mut work = Worklist::new(vec![a, b, c], WorklistOrder::default());
        work.pop();
        assert!(!work.forget_near(unknown));
        assert!(!work.forget(unknown, false), "all are indexed to find that out");
        assert!(!work.forget_near(b), "the index would still name it");
        assert!(work.forget(b, false));
        assert!(!work.is_ahead(b) && work.is_ahead(c));
        assert_eq!(work.pop().map(|visit| visit.op), Some(c));
    }
}
