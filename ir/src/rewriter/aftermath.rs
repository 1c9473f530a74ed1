//! Patterns whose changes need no visits: the driver then skips the journal.

use crate::Op;

/// Size of the direct-mapped cache of names.
const NAMES: usize = 64;

/// Counts the changes of the running pattern that need no visit: ops created with a name that is always legal, modified ops that
/// are legal or the pattern's own, and erased ops.
#[derive(Debug)]
pub(crate) struct Aftermath<'c> {
    /// Number of such changes.
    known: usize,
    is_root_changed: bool,
    is_root_gone: bool,
    /// Addresses of names of which every op is legal.
    legal_names: [usize; NAMES],
    /// The latest op of such a name: most often the function, which each of its patterns modifies.
    legal_op: Option<Op<'c>>,
}

impl<'c> Aftermath<'c> {
    pub(super) fn new() -> Self {
        Self { known: 0, is_root_changed: false, is_root_gone: false, legal_names: [0; NAMES], legal_op: None }
    }
    /// Resets the counts for a pattern.
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
    /// Counts the creation of an op without regions.
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
    /// Whether only erased ops need processing. `changes`: the total number of changes.
    #[inline]
    pub(crate) fn is_little(&self, changes: usize) -> bool {
        self.known == changes && (!self.is_root_changed || self.is_root_gone)
    }
}

#[inline]
fn slot(name: usize) -> usize {
    (name >> 4) % NAMES
}
