//! The analysis, as a part that can be replaced: what decides which operands use their tensor's own buffer.
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
//! [`Greedy`] is One-Shot Bufferize's own, [`CopyBeforeWrite`] the one that is surely right. What an analysis of your own
//! says is carried out as it is: [`monopour_analysis::checker::check`] says whether it is right.
//! Which values then are one buffer, which may share memory and what a copy must hold all follows from the placements.

use monopour_analysis::facts::Facts;
use monopour_analysis::index::OperandId;
use monopour_analysis::one_shot::{
    self, DecideError, Decisions, InPlaceAnalysis, Placement, decisions_from_placements,
};

use crate::one_shot::{Chooser, settings};
use crate::options::Options;

/// Decides which operands use their tensor's own buffer.
pub trait Analysis {
    /// Looks at one function, before it is asked about the function's operands.
    ///
    /// Callees come before their callers. Functions that call each other come again, with facts that say more about the
    /// calls, until what is known about them no longer grows.
    ///
    /// # Errors
    /// An operand that cannot be in place cannot be copied either.
    fn begin(&mut self, function: &str, facts: &Facts) -> Result<(), DecideError>;

    /// Whether an operand of that function uses the buffer of its tensor, and not a copy.
    fn is_in_place(&self, operand: OperandId) -> bool;

    /// All answers for that function, with what follows from them.
    fn decisions(&mut self, facts: &Facts) -> Decisions {
        let place = |id| if self.is_in_place(id) { Placement::InPlace } else { Placement::OutOfPlace };
        decisions_from_placements(facts, facts.operands().ids().map(place).collect())
    }
}

/// In place, unless that is in conflict with what is in place already (One-Shot Bufferize).
#[derive(Clone, Debug, Default)]
pub struct Greedy {
    settings: one_shot::Options,
    decisions: Option<Decisions>,
}

impl Greedy {
    /// The analysis that these options ask for.
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
        // Kept with its reasons; nobody asks twice.
        self.decisions.take().unwrap_or_else(|| decisions_from_placements(facts, [].into_iter().collect()))
    }
}

/// In place, unless the operand is written, or would see a write that cannot be in a copy.
#[derive(Clone, Debug, Default)]
pub struct CopyBeforeWrite {
    inner: Greedy,
}

impl CopyBeforeWrite {
    /// As these options have it: upstream's face looks at no operand that reads.
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

/// What [`Greedy`] decides, as a callback changes it.
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
