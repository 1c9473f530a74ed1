//! What follows from a pattern, where that is little: the driver need not look at each change then.

use crate::Op;

/// Names that are remembered, by a few bits of the address.
const NAMES: usize = 64;

/// The changes of the running pattern of which it is known that nothing is to be done for them: ops were made that are legal whatever
/// they are, legal ops or the pattern's own changed, and ops went.
#[derive(Debug)]
pub(crate) struct Aftermath {
    /// How many changes these are.
    known: usize,
    /// A few bits of the address of each op that was made.
    made: u64,
    gone: Vec<Op>,
    is_root_changed: bool,
    /// Where MLIR keeps names of which every op is legal.
    legal_names: [usize; NAMES],
    /// An op of such a name: most often the function, which each of its patterns changes.
    legal_op: Option<Op>,
}

impl Aftermath {
    pub(super) fn new() -> Self {
        Self { known: 0, made: 0, gone: vec![], is_root_changed: false, legal_names: [0; NAMES], legal_op: None }
    }
    /// Nothing has changed yet.
    pub(crate) fn begin(&mut self) {
        (self.known, self.made, self.is_root_changed) = (0, 0, false);
        self.gone.clear();
    }
    /// Every op of the name that is kept at this address is legal.
    pub(crate) fn note_legal_name(&mut self, name: usize) {
        self.legal_names[slot(name)] = name;
    }
    /// As [`Self::note_legal_name`], of the op's name.
    pub(crate) fn note_legal_op(&mut self, op: Op) {
        self.legal_op = Some(op);
    }
    /// An op without regions was made.
    pub(crate) fn note_made(&mut self, op: Op, name: usize) {
        if self.legal_names[slot(name)] == name {
            self.known += 1;
            self.made |= bit(op);
        }
    }
    pub(super) fn note_changed(&mut self, op: Op, root: Option<Op>) {
        if self.legal_op == Some(op) {
            self.known += 1;
        } else if root == Some(op) {
            self.known += 1;
            self.is_root_changed = true;
        }
    }
    pub(super) fn note_gone(&mut self, op: Op) {
        self.known += 1;
        self.gone.push(op);
        // Another op may take its address.
        if self.legal_op == Some(op) {
            self.legal_op = None;
        }
    }
    /// Whether nothing is to be done but to forget the ops that are gone. `changes`: how many there are in all.
    pub(crate) fn is_little(&self, changes: usize, root: Op) -> bool {
        let may_be_new = |op: &Op| self.made & bit(*op) != 0;
        self.known == changes
            && !self.gone.iter().any(may_be_new)
            && (!self.is_root_changed || self.gone.contains(&root))
    }
    /// What is gone; the list is given back for its memory.
    pub(crate) fn take_gone(&mut self) -> Vec<Op> {
        std::mem::take(&mut self.gone)
    }
    pub(crate) fn reuse_gone(&mut self, mut gone: Vec<Op>) {
        gone.clear();
        self.gone = gone;
    }
}

fn slot(name: usize) -> usize {
    (name >> 4) % NAMES
}

fn bit(op: Op) -> u64 {
    1 << ((op.address() >> 4) % 64)
}
