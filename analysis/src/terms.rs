//! Contents of tensors and buffers as hash-consed terms, and a memory of such contents.
//!
//! Two equal terms are equal contents. `insert` and `extract` are kept in a normal form, so that overwriting a slice
//! with its own contents changes nothing, and reading back a slice gives the written contents:
//! * `extract(insert(b, s, x), s) = x`
//! * `insert(insert(b, s, x), s, y) = insert(b, s, y)` and `insert(b, s, extract(b, s)) = b`
//!
//! Different slices are assumed to overlap: their insertions do not commute.

use std::collections::HashMap;

use crate::index::{OpId, SliceId, ValueId};

/// A part of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    /// A known slice.
    Slice(SliceId),
    /// An unknown part, identified by the value that is it.
    View(ValueId),
}

/// The number of a term.
pub(crate) type TermId = u32;

/// Undefined contents, which match everything.
pub(crate) const UNDEFINED: TermId = 0;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Term {
    Undefined,
    /// Contents equal to no others.
    Unique(u32),
    /// The result of an operation on contents; the number is that of the output.
    Computed(OpId, u32, Vec<TermId>),
    Insert(TermId, Part, TermId),
    Extract(TermId, Part),
}

#[derive(Clone, Debug)]
pub(crate) struct Terms {
    terms: Vec<Term>,
    ids: HashMap<Term, TermId>,
    uniques: u32,
}

impl Terms {
    pub fn new() -> Self {
        Self { terms: vec![Term::Undefined], ids: HashMap::from([(Term::Undefined, UNDEFINED)]), uniques: 0 }
    }

    fn intern(&mut self, term: Term) -> TermId {
        let Self { terms, ids, .. } = self;
        *ids.entry(term).or_insert_with_key(|term| {
            terms.push(term.clone());
            TermId::try_from(terms.len() - 1).unwrap_or(TermId::MAX)
        })
    }

    pub fn unique(&mut self) -> TermId {
        self.uniques += 1;
        self.intern(Term::Unique(self.uniques))
    }

    pub fn computed(&mut self, op: OpId, output: u32, inputs: Vec<TermId>) -> TermId {
        self.intern(Term::Computed(op, output, inputs))
    }

    pub fn extract(&mut self, base: TermId, part: Part) -> TermId {
        match &self.terms[base as usize] {
            Term::Undefined => UNDEFINED,
            Term::Insert(_, other, contents) if *other == part => *contents,
            _ => self.intern(Term::Extract(base, part)),
        }
    }

    pub fn insert(&mut self, base: TermId, part: Part, contents: TermId) -> TermId {
        let base = match &self.terms[base as usize] {
            Term::Insert(below, other, _) if *other == part => *below,
            _ => base,
        };
        if self.extract(base, part) == contents {
            return base;
        }
        self.intern(Term::Insert(base, part, contents))
    }

    /// Whether `actual` equals the expected contents wherever those are defined.
    pub fn matches(&mut self, expected: TermId, actual: TermId) -> bool {
        let mut work = vec![(expected, actual)];
        while let Some((expected, actual)) = work.pop() {
            if expected == actual || expected == UNDEFINED {
                continue;
            }
            // Equal parts of matching contents match.
            if let (Term::Extract(a, part), Term::Extract(b, other)) =
                (&self.terms[expected as usize], &self.terms[actual as usize])
                && part == other
            {
                work.push((*a, *b));
                continue;
            }
            // Only insertions into undefined contents are partly undefined.
            let Term::Insert(base, part, contents) = self.terms[expected as usize] else { return false };
            let inside = self.extract(actual, part);
            work.push((contents, inside));
            if base != UNDEFINED {
                let mark = self.intern(Term::Unique(0));
                let (a, b) = (self.insert(base, part, mark), self.insert(actual, part, mark));
                let below = |this: &Self, term: TermId| match this.terms[term as usize] {
                    Term::Insert(below, ..) => below,
                    _ => term,
                };
                let (a, b) = (below(self, a), below(self, b));
                work.push((a, b));
            }
        }
        true
    }
}

/// A place in memory: an allocation and a path of parts into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    pub allocation: u32,
    pub path: Vec<Part>,
    /// The parallel region that owns this memory exclusively.
    pub owner: Option<u32>,
}

impl Location {
    pub fn part(&self, part: Part) -> Self {
        let mut path = self.path.clone();
        path.push(part);
        Self { path, ..*self }
    }

    pub fn is_same(&self, other: &Self) -> bool {
        self.allocation == other.allocation && self.path == other.path
    }
}

#[derive(Clone, Debug)]
struct Allocation {
    contents: TermId,
    writable: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    allocations: Vec<Allocation>,
}

impl Memory {
    pub fn allocate(&mut self, contents: TermId, writable: bool, owner: Option<u32>) -> Location {
        self.allocations.push(Allocation { contents, writable });
        let allocation = u32::try_from(self.allocations.len() - 1).unwrap_or(u32::MAX);
        Location { allocation, path: Vec::new(), owner }
    }

    pub fn is_writable(&self, location: &Location) -> bool {
        self.allocations[location.allocation as usize].writable
    }

    pub fn read(&self, terms: &mut Terms, location: &Location) -> TermId {
        let base = self.allocations[location.allocation as usize].contents;
        location.path.iter().fold(base, |base, &part| terms.extract(base, part))
    }

    pub fn write(&mut self, terms: &mut Terms, location: &Location, contents: TermId) {
        let base = self.allocations[location.allocation as usize].contents;
        // Contents along the path, outermost first; then written back from the inside out.
        let mut bases = Vec::with_capacity(location.path.len());
        let mut current = base;
        for &part in &location.path {
            bases.push(current);
            current = terms.extract(current, part);
        }
        let parts = location.path.iter().zip(&bases).rev();
        let new = parts.fold(contents, |inner, (&part, &base)| terms.insert(base, part, inner));
        self.allocations[location.allocation as usize].contents = new;
    }
}
