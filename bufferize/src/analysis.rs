//! The in-place analysis as a trait, which callers can replace.
//!
//! ```text
//! struct NeverInPlace;
//! impl Analysis for NeverInPlace {
//!     fn begin(&mut self, _: &str, _: &Facts) -> Result<(), DecideError> { Ok(()) }
//!     fn is_in_place(&self, operand: OperandId) -> bool { false }
//! }
//! run_with_analysis(module, &options, &mut NeverInPlace)?;
//! ```
//!
//! [`Greedy`] is One-Shot Bufferize's own, [`CopyBeforeWrite`] the trivially right one. Decisions of other analyses
//! are carried out unchecked: [`monopour_analysis::checker::check`] judges them.
//! Equivalences, alias sets and the contents of copies follow from the placements.

use monopour_analysis::facts::Facts;
use monopour_analysis::index::OperandId;
use monopour_analysis::one_shot::{
    self, DecideError, Decisions, InPlaceAnalysis, Placement, decisions_from_placements,
};

use crate::one_shot::{Chooser, settings};
use crate::options::Options;

/// Decides which operands bufferize in place.
pub trait Analysis {
    /// Analyses one function, before the queries on its operands.
    ///
    /// Callees come before their callers. Recursive functions are analysed again, with summaries of their calls that grow,
    /// until the summaries no longer change.
    ///
    /// # Errors
    /// An operand that cannot be in place cannot be copied either.
    fn begin(&mut self, function: &str, facts: &Facts) -> Result<(), DecideError>;

    /// Whether an operand of that function is in place.
    fn is_in_place(&self, operand: OperandId) -> bool;

    /// The decisions for that function, with their consequences.
    fn decisions(&mut self, facts: &Facts) -> Decisions {
        let place = |id| if self.is_in_place(id) { Placement::InPlace } else { Placement::OutOfPlace };
        decisions_from_placements(facts, facts.operands().ids().map(place).collect())
    }
}

/// In place, unless that conflicts with the operands already in place (One-Shot Bufferize).
#[derive(Clone, Debug, Default)]
pub struct Greedy {
    settings: one_shot::Options,
    decisions: Option<Decisions>,
}

impl Greedy {
    /// The analysis of these options.
    pub fn new(options: &Options) -> Self {
        Self { settings: settings(options), decisions: None }
    }
}

impl Analysis for Greedy {
    fn begin(&mut self, _function: &str, facts: &Facts) -> Result<(), DecideError> {
        self.decisions = Some(one_shot::decide(facts, &self.settings)?);
        Ok(())
    }
    fn is_in_place(&self, operand: OperandId) -> bool {
        self.decisions.as_ref().is_some_and(|decisions| decisions.is_in_place(operand))
    }
    fn decisions(&mut self, facts: &Facts) -> Decisions {
        // Kept with its reasons; it is taken once.
        self.decisions.take().unwrap_or_else(|| decisions_from_placements(facts, [].into_iter().collect()))
    }
}

/// In place, unless the operand is written, or would see a write that must be in place.
#[derive(Clone, Debug, Default)]
pub struct CopyBeforeWrite {
    inner: Greedy,
}

impl CopyBeforeWrite {
    /// By these options: in upstream's form, operands that only read are never tested.
    pub(crate) fn new(options: &Options) -> Self {
        Self { inner: Greedy::new(options) }
    }
}

impl Analysis for CopyBeforeWrite {
    fn begin(&mut self, function: &str, facts: &Facts) -> Result<(), DecideError> {
        self.inner.settings.copy_before_write = true;
        self.inner.begin(function, facts)
    }
    fn is_in_place(&self, operand: OperandId) -> bool {
        self.inner.is_in_place(operand)
    }
    fn decisions(&mut self, facts: &Facts) -> Decisions {
        self.inner.decisions(facts)
    }
}

/// The decisions of [`Greedy`], changed by a callback.
pub(crate) struct Changed<'a, 'b> {
    inner: Greedy,
    choose: &'a mut Chooser<'b>,
}

impl<'a, 'b> Changed<'a, 'b> {
    pub(crate) fn new(options: &Options, choose: &'a mut Chooser<'b>) -> Self {
        Self { inner: Greedy::new(options), choose }
    }
}

impl Analysis for Changed<'_, '_> {
    fn begin(&mut self, function: &str, facts: &Facts) -> Result<(), DecideError> {
        self.inner.begin(function, facts)?;
        let decided = self.inner.decisions(facts);
        self.inner.decisions = Some((self.choose)(function, facts, decided));
        Ok(())
    }
    fn is_in_place(&self, operand: OperandId) -> bool {
        self.inner.is_in_place(operand)
    }
    fn decisions(&mut self, facts: &Facts) -> Decisions {
        self.inner.decisions(facts)
    }
}
