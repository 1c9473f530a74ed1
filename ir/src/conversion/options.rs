//! What a conversion is asked to do, and what it tells.

use super::WorklistOrder;
use crate::Op;

/// What must be gone at the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Ops that the target calls illegal. Unknown ops and casts to ops that were not converted may remain.
    Partial,
    /// Ops that the target calls illegal, unknown ops, and all casts of the driver's.
    Full,
}

/// What a conversion cost.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ConversionStats {
    /// Successful pattern applications.
    pub patterns_applied: usize,
    /// Casts that were put into the IR, those from the pool included.
    pub casts_created: usize,
    /// Most casts that were alive at one time.
    pub max_live_casts: usize,
    /// Casts that are left: 0 after a full conversion.
    pub casts_left: usize,
}

/// One successful pattern application, as [`ConversionOptions::after_each_pattern`] sees it.
#[derive(Debug)]
pub struct PatternEvent<'c, 'a> {
    /// The pattern.
    pub pattern: &'a str,
    /// Name of the op that it was applied to.
    pub op_name: &'a str,
    /// What is being converted, unless a pattern replaced it as a whole.
    pub root: Option<Op<'c>>,
    /// Casts of the driver's that are in the IR now.
    pub live_casts: usize,
}

impl PatternEvent<'_, '_> {
    /// Prints the whole IR to standard error, under a line that names the pattern: `--dump-after-each-pattern`.
    ///
    /// What two patterns change together (a loop and its yield, a function and its calls) is no IR that a parser takes between
    /// the two: a line says so then.
    pub fn dump(&self) {
        eprintln!("// after pattern '{}' on '{}'", self.pattern, self.op_name);
        let Some(root) = self.root else { return };
        let whole = std::iter::successors(Some(root), |op| op.parent()).last().unwrap_or(root);
        match whole.verify_with_diagnostics() {
            Ok(()) => eprintln!("{whole}"),
            Err(_) => eprintln!("// not printed: valid only together with a pattern that follows"),
        }
    }
}

/// What a conversion does besides converting.
#[derive(Default)]
pub struct ConversionOptions<'a> {
    /// Called after each successful pattern; the IR is valid then, but for what patterns change together.
    pub after_each_pattern: Option<&'a mut dyn FnMut(&PatternEvent<'_, '_>)>,
    /// Verify the root after each pattern and stop at the first that breaks it (I0012). Quadratic: for tests and debugging.
    /// In debug builds, what a pattern made or changed and its users are verified anyway.
    pub verify_each: bool,
    /// Compare the printed root before and after a pattern that declines, and notice changes that went around the rewriter
    /// (I0012). Quadratic: for tests on small modules.
    pub fingerprint: bool,
    /// In which order what a pattern made is visited.
    pub worklist_order: WorklistOrder,
}

impl std::fmt::Debug for ConversionOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConversionOptions")
            .field("verify_each", &self.verify_each)
            .field("fingerprint", &self.fingerprint)
            .field("worklist_order", &self.worklist_order)
            .finish_non_exhaustive()
    }
}
