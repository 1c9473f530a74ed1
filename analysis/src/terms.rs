//! Contents of tensors and buffers as hash-consed terms, and a memory of such contents.
//!
//! Two equal terms are equal contents. `insert` and `extract` are kept in a normal form, so that overwriting a slice
//! with its own contents changes nothing, and reading back a slice gives the written contents:
//! * `extract(insert(b, s, x), t)` is a part of `x` if `t` is within `s`, and `extract(b, t)` if the two are apart;
//! * `insert(insert(b, s, x), t, y) = insert(b, t, y)` if `s` is within `t`, and `insert(b, s, extract(b, s)) = b`;
//! * insertions of slices that are apart commute; those into a part of a part are insertions into a part.
//!
//! A slice may be numbers ([`crate::checker`] gives each symbol a value): whether two are apart is seen element by element, in
//! each dimension. Slices that share some elements, slices known by name alone, and unknown parts do not commute. Where slices
//! share some elements, the form is not normal: [`Terms::matches`] then compares element by element.

use std::collections::HashMap;

use crate::index::{OpId, SliceId, ValueId};

/// A part of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Part {
    /// A slice of known elements, by its number among the [`Terms`].
    Slice(u32),
    /// A slice of which only equality is known.
    Named(SliceId),
    /// An unknown part, identified by the value that is it.
    View(ValueId),
}

/// The elements of a slice in one dimension: `size` of them, `stride` apart, from `offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Elements {
    pub offset: i64,
    pub size: i64,
    /// At least 1.
    pub stride: i64,
}

impl Elements {
    fn each(self) -> impl Iterator<Item = i64> {
        (0..self.size.min(MOST_ELEMENTS))
            .map(move |index| self.offset.saturating_add(index.saturating_mul(self.stride)))
    }

    /// The place of a position among the elements.
    fn find(self, position: i64) -> Option<i64> {
        let distance = position.checked_sub(self.offset)?;
        let index = distance / self.stride;
        (distance % self.stride == 0 && (0..self.size).contains(&index)).then_some(index)
    }

    /// Whether two have no element in common; long ones, by their ends alone.
    fn is_apart_from(self, other: Self) -> bool {
        let last = |of: Self| of.offset.saturating_add((of.size - 1).saturating_mul(of.stride));
        if self.size <= 0 || other.size <= 0 || last(self) < other.offset || last(other) < self.offset {
            return true;
        }
        self.size <= MOST_ELEMENTS && self.each().all(|position| other.find(position).is_none())
    }

    /// The elements as places among others that have them all.
    fn among(self, other: Self) -> Option<Self> {
        if self.size <= 0 || self.size > MOST_ELEMENTS {
            return None;
        }
        let places = self.each().map(|position| other.find(position)).collect::<Option<Vec<i64>>>()?;
        let stride = places.get(1).map_or(1, |second| second - places[0]);
        Some(Self { offset: places[0], size: self.size, stride })
    }

    /// Whether they are elements of a dimension of this size.
    pub fn is_within(self, size: i64) -> bool {
        let last = self.offset.saturating_add((self.size - 1).saturating_mul(self.stride));
        self.offset >= 0 && self.size > 0 && self.stride > 0 && last < size
    }

    /// Those of these elements that a slice of them has.
    fn part(self, slice: Self) -> Self {
        let position = self.offset.saturating_add(slice.offset.saturating_mul(self.stride));
        Self { offset: position, size: slice.size, stride: self.stride.saturating_mul(slice.stride) }
    }
}

/// How many elements of a dimension are compared one by one: a longer slice is compared by its ends.
const MOST_ELEMENTS: i64 = 4096;

/// How many insertions are looked through.
const MOST_INSERTIONS: usize = 64;

/// How two parts lie to each other.
enum Relation {
    Same,
    Apart,
    /// The first is this part of the second.
    Within(Part),
    /// The second is this part of the first.
    Around(Part),
    Unknown,
}

/// Elements by number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Slice {
    /// The value of another shape whose positions these are (a reshape), if they are not those of the tensor.
    shape: Option<ValueId>,
    sides: Vec<Elements>,
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
    slices: Vec<Slice>,
    slice_ids: HashMap<Slice, u32>,
}

impl Terms {
    pub fn new() -> Self {
        Self {
            terms: vec![Term::Undefined],
            ids: HashMap::from([(Term::Undefined, UNDEFINED)]),
            uniques: 0,
            slices: Vec::new(),
            slice_ids: HashMap::new(),
        }
    }

    fn intern(&mut self, term: Term) -> TermId {
        let Self { terms, ids, .. } = self;
        *ids.entry(term).or_insert_with_key(|term| {
            terms.push(term.clone());
            TermId::try_from(terms.len() - 1).unwrap_or(TermId::MAX)
        })
    }

    /// A slice as a part, with the positions of the tensor, or those of a value of another shape.
    pub fn slice(&mut self, shape: Option<ValueId>, sides: Vec<Elements>) -> Part {
        let Self { slices, slice_ids, .. } = self;
        let id = slice_ids.entry(Slice { shape, sides }).or_insert_with_key(|slice| {
            slices.push(slice.clone());
            u32::try_from(slices.len() - 1).unwrap_or(u32::MAX)
        });
        Part::Slice(*id)
    }

    fn known(&self, part: Part) -> Option<&Slice> {
        match part {
            Part::Slice(id) => self.slices.get(id as usize),
            Part::Named(_) | Part::View(_) => None,
        }
    }

    pub fn sides(&self, part: Part) -> Option<&[Elements]> {
        self.known(part).map(|slice| slice.sides.as_slice())
    }

    fn relation(&mut self, a: Part, b: Part) -> Relation {
        if a == b {
            return Relation::Same;
        }
        let (Some(first), Some(second)) = (self.known(a), self.known(b)) else { return Relation::Unknown };
        if first.shape != second.shape || first.sides.len() != second.sides.len() {
            return Relation::Unknown;
        }
        let (first, second) = (&first.sides, &second.sides);
        let pairs = || first.iter().copied().zip(second.iter().copied());
        if pairs().any(|(a, b)| a.is_apart_from(b)) {
            return Relation::Apart;
        }
        let within: Option<Vec<Elements>> = pairs().map(|(a, b)| a.among(b)).collect();
        let around: Option<Vec<Elements>> = pairs().map(|(a, b)| b.among(a)).collect();
        match (within, around) {
            (Some(sides), _) => Relation::Within(self.slice(None, sides)),
            (None, Some(sides)) => Relation::Around(self.slice(None, sides)),
            (None, None) => Relation::Unknown,
        }
    }

    /// The part of a part, if both are slices.
    pub fn part_of(&mut self, part: Part, inner: Part) -> Option<Part> {
        let Slice { shape, sides: outer } = self.known(part)?;
        let Slice { shape: None, sides: inner } = self.known(inner)? else { return None };
        let shape = *shape;
        // The type of a slice may leave out dimensions of size 1.
        let leaves_out = outer.len() != inner.len();
        let kept = outer.iter().filter(|side| !leaves_out || side.size != 1).count();
        if kept != inner.len() {
            return None;
        }
        let mut inner = inner.iter();
        let compose = |side: &Elements| match leaves_out && side.size == 1 {
            true => Some(*side),
            false => inner.next().map(|slice| side.part(*slice)),
        };
        let sides = outer.iter().map(compose).collect::<Option<Vec<_>>>()?;
        Some(self.slice(shape, sides))
    }

    pub fn unique(&mut self) -> TermId {
        self.uniques += 1;
        self.intern(Term::Unique(self.uniques))
    }

    pub fn computed(&mut self, op: OpId, output: u32, inputs: Vec<TermId>) -> TermId {
        self.intern(Term::Computed(op, output, inputs))
    }

    pub fn extract(&mut self, base: TermId, part: Part) -> TermId {
        let mut base = base;
        // Insertions that share elements with the part, the last one first.
        let mut shared = Vec::new();
        for _ in 0..MOST_INSERTIONS {
            let Term::Insert(below, other, contents) = self.terms[base as usize] else { break };
            match self.relation(part, other) {
                Relation::Same if shared.is_empty() => return contents,
                Relation::Within(inner) if shared.is_empty() => return self.extract(contents, inner),
                Relation::Around(inner) if shared.is_empty() => {
                    let around = self.extract(below, part);
                    return self.insert(around, inner, contents);
                }
                Relation::Apart => {}
                _ => shared.push((other, contents)),
            }
            base = below;
        }
        if shared.is_empty() && base == UNDEFINED {
            return UNDEFINED;
        }
        if shared.is_empty()
            && let Term::Extract(below, outer) = self.terms[base as usize]
            && let Some(composed) = self.part_of(outer, part)
        {
            return self.extract(below, composed);
        }
        let base = shared
            .into_iter()
            .rev()
            .fold(base, |base, (other, contents)| self.intern(Term::Insert(base, other, contents)));
        self.intern(Term::Extract(base, part))
    }

    pub fn insert(&mut self, base: TermId, part: Part, contents: TermId) -> TermId {
        // A part of the inserted part is a part of the whole.
        if let Term::Insert(below, inner, stored) = self.terms[contents as usize]
            && let Some(composed) = self.part_of(part, inner)
        {
            let base = self.insert(base, part, below);
            return self.insert(base, composed, stored);
        }
        // Down to where it belongs; what it overwrites goes.
        let (mut base, mut passed) = (base, Vec::new());
        for _ in 0..MOST_INSERTIONS {
            let Term::Insert(below, other, stored) = self.terms[base as usize] else { break };
            match self.relation(other, part) {
                Relation::Same | Relation::Within(_) => {}
                Relation::Apart => passed.push((other, stored)),
                _ => break,
            }
            base = below;
        }
        // All of a slice.
        if let Term::Extract(_, outer) = self.terms[base as usize]
            && self.part_of(outer, part) == Some(outer)
        {
            return contents;
        }
        if self.extract(base, part) != contents {
            let place = passed.iter().position(|(other, _)| *other < part).unwrap_or(passed.len());
            passed.insert(place, (part, contents));
        }
        passed.into_iter().rev().fold(base, |base, (part, contents)| self.intern(Term::Insert(base, part, contents)))
    }

    /// Whether `actual` equals the expected contents wherever those are defined.
    pub fn matches(&mut self, expected: TermId, actual: TermId) -> bool {
        self.matches_by_part(expected, actual) || self.matches_by_element(expected, actual).unwrap_or(false)
    }

    /// As [`Terms::matches`], by the normal form. It leaves slices in place that share some elements.
    fn matches_by_part(&mut self, expected: TermId, actual: TermId) -> bool {
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

    /// As [`Terms::matches`], element by element: of all of a slice, or of what was inserted into the same contents.
    /// `None` if the positions are not known, or too many.
    fn matches_by_element(&self, expected: TermId, actual: TermId) -> Option<bool> {
        let mut slices = Vec::new();
        let bases = [expected, actual].map(|term| self.under_insertions(term, &mut slices));
        let [base, other] = bases.map(|base| self.size_of_slice(base));
        match base.or(other) {
            Some(sizes) => slices = vec![sizes.iter().map(|&size| Elements { offset: 0, size, stride: 1 }).collect()],
            None if bases[0] == bases[1] || bases[0] == UNDEFINED => {}
            None => return None,
        }
        let count: i64 = slices.iter().map(|sides| sides.iter().map(|side| side.size).product::<i64>()).sum();
        if count > MOST_ELEMENTS {
            return None;
        }
        let matches = |position: Vec<i64>| {
            let from = self.element(expected, position.clone());
            from.0 == UNDEFINED || from == self.element(actual, position)
        };
        Some(slices.iter().flat_map(|sides| positions(sides)).all(matches))
    }

    /// The contents below all insertions of slices, whose elements are added to the list.
    fn under_insertions(&self, term: TermId, slices: &mut Vec<Vec<Elements>>) -> TermId {
        let mut term = term;
        while let Term::Insert(below, part, _) = self.terms[term as usize]
            && let Some(Slice { shape: None, sides }) = self.known(part)
        {
            slices.push(sides.clone());
            term = below;
        }
        term
    }

    /// The sizes of contents that are a slice.
    fn size_of_slice(&self, term: TermId) -> Option<Vec<i64>> {
        let Term::Extract(_, part) = self.terms[term as usize] else { return None };
        Some(self.sides(part)?.iter().map(|side| side.size).collect())
    }

    /// The contents that an element comes from, as far down as is known, and its position there.
    fn element(&self, term: TermId, position: Vec<i64>) -> (TermId, Vec<i64>) {
        let (mut term, mut position) = (term, position);
        loop {
            let (part, below, inserted) = match self.terms[term as usize] {
                Term::Insert(below, part, inserted) => (part, below, Some(inserted)),
                Term::Extract(below, part) => (part, below, None),
                _ => return (term, position),
            };
            let Some(Slice { shape: None, sides }) = self.known(part) else { return (term, position) };
            if sides.len() != position.len() {
                return (term, position);
            }
            let pairs = || sides.iter().zip(&position);
            match inserted {
                None => {
                    position = pairs().map(|(side, at)| side.offset + at * side.stride).collect();
                    term = below;
                }
                Some(inserted) => match pairs().map(|(side, at)| side.find(*at)).collect() {
                    Some(inner) => (term, position) = (inserted, inner),
                    None => term = below,
                },
            }
        }
    }
}

/// All positions of a slice, the last dimension fastest.
fn positions(sides: &[Elements]) -> Vec<Vec<i64>> {
    sides.iter().fold(vec![vec![]], |outer, side| {
        let each = |position: &Vec<i64>| {
            side.each().map(|at| position.iter().copied().chain([at]).collect()).collect::<Vec<Vec<i64>>>()
        };
        outer.iter().flat_map(each).collect()
    })
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
    pub fn part(&self, terms: &mut Terms, part: Part) -> Self {
        let mut path = self.path.clone();
        let composed = path.last().and_then(|last| terms.part_of(*last, part));
        if composed.is_some() {
            path.pop();
        }
        path.push(composed.unwrap_or(part));
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
