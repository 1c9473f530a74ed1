//! The decisions on one function: placements, and the equivalences, alias classes and copies that follow from them.

use crate::alias_sets::AliasSets;
use crate::definitions::Definitions;
use crate::dominance::Structure;
use crate::equivalence;
use crate::facts::Facts;
use crate::index::{IndexVec, OperandId, ValueId};
use crate::placement::{Copy, Placement, Reason};

/// The queries of a rewrite into buffers.
pub trait InPlaceAnalysis {
    /// Whether the operand is in place.
    fn is_in_place(&self, operand: OperandId) -> bool;
    /// Whether the values are equivalent: the same buffer, offset, sizes and strides.
    fn are_equivalent(&self, a: ValueId, b: ValueId) -> bool;
    /// Whether the values may alias.
    fn may_alias(&self, a: ValueId, b: ValueId) -> bool;
    /// The copy for an operand; `None` if it is in place.
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

/// A claim of decisions that can be false.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The contents of the operand's copy are not needed.
    NoContents(OperandId),
    /// The values are equivalent.
    Equivalent(ValueId, ValueId),
}

/// Numbers of placements.
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

    /// The same decisions without the contents of a copy, or with another equivalence: to test checkers of decisions.
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

    /// The reason why the operand is out of place; `None` if it is in place.
    pub fn reason(&self, operand: OperandId) -> Option<Reason> {
        self.reasons[operand]
    }

    /// A representative of the value's alias class.
    pub fn alias_class(&self, value: ValueId) -> ValueId {
        self.aliases[value]
    }

    /// A representative of the value's equivalence class.
    pub fn equivalence_class(&self, value: ValueId) -> ValueId {
        self.equivalents[value]
    }

    /// Numbers of uses in place and out of place.
    pub fn counts(&self) -> Counts {
        let in_place = self.placements.iter().filter(|&&placement| placement == Placement::InPlace).count();
        let out_of_place = self.placements.len() - in_place;
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Counts { in_place: count(in_place), out_of_place: count(out_of_place) }
    }

    /// The work of the decisions in elementary steps, which complexity tests count instead of seconds.
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

/// Decisions from given placements: equivalences, alias classes and copies follow from them.
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
/// And values declared to share memory.
pub(crate) fn common_aliases(facts: &Facts) -> impl Iterator<Item = (ValueId, ValueId)> {
    let pairs = |operand| facts.aliasing_values(operand).windows(2).map(|pair| (pair[0].value, pair[1].value));
    facts.operands().ids().flat_map(pairs).chain(facts.shared_values().iter().copied())
}

/// Equivalences, alias classes and copies of placements.
pub(crate) fn complete(
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
