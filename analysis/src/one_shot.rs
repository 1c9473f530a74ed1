//! Decide which operands are updated in place (One-Shot analysis).
//!
//! ```text
//! before                                        after
//! %1 = linalg.fill outs(%0)                     operand 0: in place
//! %2 = tensor.insert %f into %1[%c0]            operand 1: out of place, because ...
//! %3 = tensor.extract %1[%c0]                     ... this read of %1 would see the value of %2
//! ```
//!
//! Uses are visited in the order of a heuristic, operands left to right.
//! Each is put in place unless that would store to a buffer that is not writable, make parallel iterations share a
//! buffer that each must own, or let some read see a later write.
//! Nothing is revised, so the order decides which of two conflicting uses is copied, never whether the result is right.
//!
//! Source: MLIR's One-Shot Bufferize (LLVM 22), in its decisions; the method is that of `classes`, near-linear, and tested against the rules word by word.
//! Differs:
//! * An elementwise operation may overwrite what it possibly reads only if both are whole buffers: two slices of one
//!   buffer may overlap.
//! * Inside a loop, the value that entered it is not written to in place, even if its contents were undefined.
//! * Equality of slices is equality of normal forms, not a query to a constraint solver.
//! * What a block argument holds may be lost by a write in any block that its block dominates, not only in its own.
//! * Blocks on a cycle repeat what is nested in them, too.
//! * Values that alias one operand share memory even if the operand is copied: they share the copy.
//! * Of two writes of one operation that may both make its result, neither does if they may be to one buffer.
//! * A use that may be copied is copied where the reference stops because it "cannot avoid a RaW conflict"
//!   ([`check_forced`] finds those).

use std::fmt;

use crate::alias_sets::AliasSets;
use crate::classes::{Classes, SMALL};
use crate::definitions::Definitions;
use crate::dominance::Structure;
use crate::equivalence;
use crate::facts::{Facts, Label};
use crate::index::{IndexVec, OperandId, ValueId};
pub use crate::order::visiting_order;

/// In which order uses are visited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Heuristic {
    /// Operations last to first, an operation before what is nested in it.
    #[default]
    BottomUp,
    /// First what each region's terminator gives out, and what that was made from; then the rest, last to first.
    BottomUpFromTerminators,
    /// Operations first to last, what is nested in an operation before it.
    TopDown,
    /// A shuffle from a seed: any order must give right programs, only the copies may differ.
    /// The reference's shuffle, from the low 32 bits.
    Fuzzer(u64),
}

/// How to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The order of visits.
    pub heuristic: Heuristic,
    /// Every use that writes is copied, unless it must be in place; no other use is, but for those that would then see
    /// such a write (the reference analyses nothing, and lets them).
    pub copy_before_write: bool,
    /// Give each iteration of a parallel region its own copy of what it writes and reads.
    pub check_parallel_regions: bool,
    /// Take operations of a graph region (`scf.forall.in_parallel`) as unordered, so that reads there never see writes
    /// there. The reference does, and then runs them in order: two insertions that exchange two slices of one output
    /// lose one. Off, they are ordered as anywhere else, except that destinations of such insertions may share a tensor.
    pub unordered_graph_regions: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            heuristic: Heuristic::BottomUp,
            copy_before_write: false,
            check_parallel_regions: true,
            unordered_graph_regions: false,
        }
    }
}

/// The decision on one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The operation uses the buffer of the value itself.
    InPlace,
    /// The operation uses a copy.
    OutOfPlace,
}

/// Why a use is out of place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The write would store to a buffer that may be this value's, which is not writable.
    NotWritable {
        /// The write: the use itself, or one that would come to share the buffer.
        write: OperandId,
        /// The value that is not writable.
        value: ValueId,
    },
    /// Parallel iterations would share the buffer that the write stores to, and something reads it.
    SharedByParallelIterations {
        /// The read.
        read: OperandId,
        /// The write.
        write: OperandId,
    },
    /// The read would see the contents that the write stores.
    ReadAfterWrite {
        /// The read.
        read: OperandId,
        /// The write.
        write: OperandId,
        /// A value that fixed the contents which the read expects.
        definition: ValueId,
    },
    /// Nothing was analysed: every write is copied.
    CopyBeforeWrite,
}

/// What to copy for a use that is out of place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Copy this result of the operation instead of its operand (a slice is smaller than its container).
    pub result: Option<ValueId>,
    /// Whether the contents are needed; if not, a fresh buffer will do.
    pub contents: bool,
}

/// Facts that cannot be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecideError {
    /// An operand that cannot be copied cannot be in place either.
    MustBeInPlace {
        /// The operand.
        operand: OperandId,
        /// Why it cannot.
        reason: Reason,
    },
    /// A use needs a copy of a tensor of unknown rank.
    UnrankedCopy {
        /// The operand.
        operand: OperandId,
        /// Why it cannot be in place.
        reason: Reason,
    },
}

impl DecideError {
    /// The operand that it is about.
    pub const fn operand(&self) -> OperandId {
        match self {
            Self::MustBeInPlace { operand, .. } | Self::UnrankedCopy { operand, .. } => *operand,
        }
    }

    /// Why the operand cannot be in place.
    pub const fn reason(&self) -> Reason {
        match self {
            Self::MustBeInPlace { reason, .. } | Self::UnrankedCopy { reason, .. } => *reason,
        }
    }
}

impl fmt::Display for DecideError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MustBeInPlace { operand, .. } => {
                write!(f, "operand {operand} must be in place and cannot be")
            }
            Self::UnrankedCopy { operand, .. } => {
                write!(f, "operand {operand} needs a copy of an unranked tensor")
            }
        }
    }
}

impl std::error::Error for DecideError {}

/// What a rewrite into buffers asks; decisions of every kind answer it.
pub trait InPlaceAnalysis {
    /// Whether the operation uses the buffer of the operand's value itself.
    fn is_in_place(&self, operand: OperandId) -> bool;
    /// Whether the values certainly are the same buffer, with the same offset, sizes and strides.
    fn are_equivalent(&self, a: ValueId, b: ValueId) -> bool;
    /// Whether the values may share memory.
    fn may_alias(&self, a: ValueId, b: ValueId) -> bool;
    /// What to copy for an operand; none if it is in place.
    fn copy(&self, operand: OperandId) -> Option<Copy>;
}

/// The decisions on one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decisions {
    pub(crate) placements: IndexVec<OperandId, Placement>,
    pub(crate) reasons: IndexVec<OperandId, Option<Reason>>,
    pub(crate) copies: IndexVec<OperandId, Option<Copy>>,
    pub(crate) aliases: IndexVec<ValueId, ValueId>,
    pub(crate) equivalents: IndexVec<ValueId, ValueId>,
    pub(crate) steps: u64,
}

/// Something that decisions say and that need not be true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Nobody needs the contents of the operand's copy.
    NoContents(OperandId),
    /// The values are the same buffer.
    Equivalent(ValueId, ValueId),
}

/// How many uses were decided in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Uses in place.
    pub in_place: u32,
    /// Uses out of place.
    pub out_of_place: u32,
}

impl Decisions {
    /// The decision on each operand.
    pub const fn placements(&self) -> &IndexVec<OperandId, Placement> {
        &self.placements
    }

    /// The same decisions but for one operand; equivalences, alias classes and copies follow, reasons stay.
    pub fn with(&self, facts: &Facts, operand: OperandId, placement: Placement) -> Self {
        let mut placements = self.placements.clone();
        placements[operand] = placement;
        let mut changed = decisions_from_placements(facts, placements);
        changed.reasons = self.reasons.clone();
        changed.reasons[operand] = None;
        changed
    }

    /// The same decisions but for the contents of a copy, or for a claim that two values are the same buffer: what a judge
    /// of decisions is tried with.
    pub fn with_claim(&self, claim: Claim) -> Self {
        let mut changed = self.clone();
        match claim {
            Claim::NoContents(operand) => {
                changed.copies[operand] = self.copies[operand].map(|copy| Copy { contents: false, ..copy });
            }
            Claim::Equivalent(a, b) => {
                let (from, to) = (self.equivalents[a], self.equivalents[b]);
                let class = |&class: &ValueId| if class == from { to } else { class };
                changed.equivalents = self.equivalents.iter().map(class).collect();
            }
        }
        changed
    }

    /// Why the operand is out of place; none if it is in place.
    pub fn reason(&self, operand: OperandId) -> Option<Reason> {
        self.reasons[operand]
    }

    /// A representative of the values that may share memory with this one.
    pub fn alias_class(&self, value: ValueId) -> ValueId {
        self.aliases[value]
    }

    /// A representative of the values that certainly are this one's buffer.
    pub fn equivalence_class(&self, value: ValueId) -> ValueId {
        self.equivalents[value]
    }

    /// How many uses are in place and out of place.
    pub fn counts(&self) -> Counts {
        let in_place = self.placements.iter().filter(|&&placement| placement == Placement::InPlace).count();
        let out_of_place = self.placements.len() - in_place;
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Counts { in_place: count(in_place), out_of_place: count(out_of_place) }
    }

    /// How much work the decisions took, in elementary steps: what tests of complexity count instead of seconds.
    pub const fn steps(&self) -> u64 {
        self.steps
    }
}

impl InPlaceAnalysis for Decisions {
    fn is_in_place(&self, operand: OperandId) -> bool {
        self.placements[operand] == Placement::InPlace
    }

    fn are_equivalent(&self, a: ValueId, b: ValueId) -> bool {
        self.equivalents[a] == self.equivalents[b]
    }

    fn may_alias(&self, a: ValueId, b: ValueId) -> bool {
        self.aliases[a] == self.aliases[b]
    }

    fn copy(&self, operand: OperandId) -> Option<Copy> {
        self.copies[operand]
    }
}

/// Something that can say whether a use may be in place, given those that already are.
pub(crate) trait ConflictTest {
    /// Why the use cannot join the uses in place.
    fn test(&mut self, operand: OperandId) -> Result<(), Reason>;
    /// Two values may share memory whatever is decided. Called before anything is accepted.
    fn join(&mut self, a: ValueId, b: ValueId);
    /// Put the use in place.
    fn accept(&mut self, operand: OperandId);
    /// The values that may share memory, and the steps taken.
    fn finish(self) -> (AliasSets, u64);
}

/// Decide every operand of a function.
///
/// # Errors
/// A use that must be in place cannot be, or a use of a tensor that cannot be copied must be copied.
pub fn decide(facts: &Facts, options: &Options) -> Result<Decisions, DecideError> {
    if options.copy_before_write && (options.unordered_graph_regions || !has_forced_write(facts)) {
        return Ok(copy_every_write(facts));
    }
    let order = visiting_order(facts, options.heuristic);
    decide_in_order(facts, &order, Classes::new(facts, options, SMALL), options.copy_before_write)
}

/// Whether some use writes that cannot be copied.
fn has_forced_write(facts: &Facts) -> bool {
    facts.operands().iter().any(|used| used.must_in_place && used.writes)
}

/// Find what no decision can help: before any, with only the uses in place that must be.
///
/// The reference asks each use in turn whether the uses in place would conflict if it were in place, too, even if it
/// may be copied, and gives up at the first one. [`decide`] copies that use instead, so only a caller that wants the
/// reference's errors has to ask.
///
/// # Errors
/// The first such use, in the order of the text, what is nested in an operation first. The reason is
/// [`Reason::NotWritable`] for a use in place that would write to a buffer that is not writable, else a conflict.
pub fn check_forced(facts: &Facts, options: &Options) -> Result<(), DecideError> {
    // The reference would copy the destination of an insertion without a result (and then does not).
    let must = |id: &OperandId| facts.operands()[*id].must_in_place && !facts.is_collected(*id);
    // Without a write in place there is nothing to conflict with.
    if options.copy_before_write || !facts.operands().ids().any(|id| must(&id) && facts.operands()[id].writes) {
        return Ok(());
    }
    let order = visiting_order(facts, Heuristic::TopDown);
    let mut classes = Classes::new(facts, options, SMALL);
    for &operand in order.iter().filter(|operand| must(operand)) {
        classes.force(operand);
    }
    order.into_iter().try_for_each(|operand| {
        classes.test_forced(operand).map_err(|reason| DecideError::MustBeInPlace { operand, reason })
    })
}

/// Decide the operands in a given order with a given test; `copies_writes`: those that write are copied, if they can be.
pub(crate) fn decide_in_order(
    facts: &Facts,
    order: &[OperandId],
    mut classes: impl ConflictTest,
    copies_writes: bool,
) -> Result<Decisions, DecideError> {
    let mut placements = IndexVec::filled(Placement::InPlace, facts.operands().len());
    let mut reasons = IndexVec::filled(None, facts.operands().len());
    for (a, b) in common_aliases(facts) {
        classes.join(a, b);
    }
    for operand in facts.operands().ids().filter(|&operand| facts.operands()[operand].must_in_place) {
        classes.test(operand).map_err(|reason| DecideError::MustBeInPlace { operand, reason })?;
        classes.accept(operand);
    }
    for &operand in order.iter().filter(|&&operand| !facts.operands()[operand].must_in_place) {
        if copies_writes && facts.operands()[operand].writes {
            placements[operand] = Placement::OutOfPlace;
            reasons[operand] = Some(Reason::CopyBeforeWrite);
            continue;
        }
        match classes.test(operand) {
            Ok(()) => classes.accept(operand),
            Err(reason) => {
                if !facts.values()[facts.operands()[operand].value].info.ranked {
                    return Err(DecideError::UnrankedCopy { operand, reason });
                }
                placements[operand] = Placement::OutOfPlace;
                reasons[operand] = Some(reason);
            }
        }
    }
    let (mut sets, steps) = classes.finish();
    Ok(complete(facts, placements, reasons, &mut sets, steps))
}

/// Take placements that somebody else chose: equivalences, alias classes and copies follow from them.
///
/// The placements are not checked; [`crate::checker::check`] does that.
pub fn decisions_from_placements(facts: &Facts, placements: IndexVec<OperandId, Placement>) -> Decisions {
    let mut placements = placements;
    while placements.len() < facts.operands().len() {
        placements.push(Placement::OutOfPlace);
    }
    let mut sets = AliasSets::new(facts.values().len());
    for (operand, used) in facts.operands().iter_enumerated() {
        if placements[operand] == Placement::InPlace {
            for alias in facts.aliasing_values(operand) {
                sets.union(used.value, alias.value);
            }
        }
    }
    for (a, b) in common_aliases(facts) {
        sets.union(a, b);
    }
    let reasons = IndexVec::filled(None, placements.len());
    complete(facts, placements, reasons, &mut sets, 0)
}

/// Values that alias one operand: in place or not, they may be one buffer (that of the operand, or its copy).
/// And values that are said to share memory.
fn common_aliases(facts: &Facts) -> impl Iterator<Item = (ValueId, ValueId)> {
    let pairs = |operand| facts.aliasing_values(operand).windows(2).map(|pair| (pair[0].value, pair[1].value));
    facts.operands().ids().flat_map(pairs).chain(facts.shared_values().iter().copied())
}

fn copy_every_write(facts: &Facts) -> Decisions {
    let keep = |writes: bool, must: bool| !writes || must;
    let placements: IndexVec<_, _> = facts
        .operands()
        .iter()
        .map(|used| if keep(used.writes, used.must_in_place) { Placement::InPlace } else { Placement::OutOfPlace })
        .collect();
    let mut decisions = decisions_from_placements(facts, placements);
    for operand in facts.operands().ids() {
        if !decisions.is_in_place(operand) {
            decisions.reasons[operand] = Some(Reason::CopyBeforeWrite);
        }
    }
    decisions
}

fn complete(
    facts: &Facts,
    placements: IndexVec<OperandId, Placement>,
    reasons: IndexVec<OperandId, Option<Reason>>,
    sets: &mut AliasSets,
    steps: u64,
) -> Decisions {
    let definitions = Definitions::new(facts, &Structure::new(facts));
    let copies = facts
        .operands()
        .iter_enumerated()
        .map(|(operand, used)| match placements[operand] {
            Placement::InPlace => None,
            Placement::OutOfPlace => Some(equivalence::copy_for(facts, operand, definitions.summaries[used.value].any)),
        })
        .collect();
    let equivalents = equivalence::classes(facts, &placements);
    let aliases = facts.values().ids().map(|value| sets.find(value)).collect();
    Decisions { placements, reasons, copies, aliases, equivalents, steps }
}

/// A label to name the operation of an operand in messages.
pub fn label_of(facts: &Facts, operand: OperandId) -> Label {
    facts.ops()[facts.operands()[operand].op].label
}
