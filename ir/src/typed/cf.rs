//! Ops of the dialect `cf`.

use crate::ops;
use std::ops::Range;

view! {
    /// `cf.cond_br`.
    CondBranch, ops::cf::COND_BR
}

impl CondBranch<'_> {
    /// The positions of the operands of a successor: 0 is taken if the condition is true.
    pub fn successor_operands(self, successor: usize) -> Range<usize> {
        self.0.operand_segment(1 + successor)
    }
}

view! {
    /// `cf.switch`.
    Switch, ops::cf::SWITCH
}

impl Switch<'_> {
    /// The positions of the default's operands.
    pub fn default_operands(self) -> Range<usize> {
        self.0.operand_segment(1)
    }
    /// The positions of a case's operands; `None` without such a case.
    pub fn case_operands(self, case: usize) -> Option<Range<usize>> {
        let counts = self.0.attr("case_operand_segments")?.as_ints()?;
        let count = |n: &i64| usize::try_from(*n).unwrap_or(0);
        let start = self.default_operands().end + counts.iter().take(case).map(count).sum::<usize>();
        let end = start + counts.get(case).map(count)?;
        (end <= self.0.num_operands()).then_some(start..end)
    }
}
