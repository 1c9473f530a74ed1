//! What follows from a pattern, where that is little: the driver need not look at each change then.

use crate::Op;

/// Names that are remembered, by a few bits of the address.
const NAMES: usize = 64;

/// The changes of the running pattern of which it is known that nothing is to be done for them: ops were made that are legal whatever
/// they are, legal ops or the pattern's own changed, and ops went.
#[derive(Debug)]
pub(crate) struct Aftermath<'c> {
    /// How many changes these are.
    known: usize,
    is_root_changed: bool,
    is_root_gone: bool,
    /// Where MLIR keeps names of which every op is legal.
    legal_names: [usize; NAMES],
    /// An op of such a name: most often the function, which each of its patterns changes.
    legal_op: Option<Op<'c>>,
}

impl<'c> Aftermath<'c> {
    pub(super) fn new() -> Self {
        Self { known: 0, is_root_changed: false, is_root_gone: false, legal_names: [0; NAMES], legal_op: None }
    }
    /// Nothing has changed yet.
    pub(crate) fn begin(&mut self) {
        (self.known, self.is_root_changed, self.is_root_gone) = (0, false, false);
    }
    /// Every op of the name that is kept at this address is legal.
    pub(crate) fn note_legal_name(&mut self, name: usize) {
        self.legal_names[slot(name)] = name;
    }
    /// As [`Self::note_legal_name`], of the op's name.
    pub(crate) fn note_legal_op(&mut self, op: Op<'c>) {
        self.legal_op = Some(op);
    }
    /// An op without regions was made.
    #[inline]
    pub(crate) fn note_made(&mut self, name: usize) {
        self.known += usize::from(self.legal_names[slot(name)] == name);
    }
    #[inline]
    pub(super) fn note_changed(&mut self, op: Op<'c>, root: Option<Op<'c>>) {
        if self.legal_op == Some(op) {
            self.known += 1;
        } else if root == Some(op) {
            self.known += 1;
            self.is_root_changed = true;
        }
    }
    #[inline]
    pub(super) fn note_gone(&mut self, op: Op<'c>, root: Option<Op<'c>>) {
        self.known += 1;
        self.is_root_gone |= root == Some(op);
        // Another op may take its address.
        if self.legal_op == Some(op) {
            self.legal_op = None;
        }
    }
    /// Whether nothing is to be done but to forget the ops that are gone. `changes`: how many there are in all.
    #[inline]
    pub(crate) fn is_little(&self, changes: usize) -> bool {
        self.known == changes && (!self.is_root_changed || self.is_root_gone)
    }
}

#[inline]
fn slot(name: usize) -> usize {
    (name >> 4) % NAMES
}
