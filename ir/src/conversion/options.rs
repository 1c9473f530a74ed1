//! Options, statistics and events of a conversion.

use super::WorklistOrder;
use crate::Op;

/// The ops that must be gone at the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Illegal ops. Unknown ops and casts to ops that were not converted may remain.
    Partial,
    /// Illegal ops, unknown ops, and all casts of the driver.
    Full,
}

/// Counts of a conversion.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ConversionStats {
    /// Successful pattern applications.
    pub patterns_applied: usize,
    /// Casts inserted into the IR, from the pool or new.
    pub casts_created: usize,
    /// Most live casts at one time.
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
    /// The root op, unless a pattern replaced it.
    pub root: Option<Op<'c>>,
    /// The driver's casts in the IR now.
    pub live_casts: usize,
}

impl PatternEvent<'_, '_> {
    /// Prints the whole IR to standard error, under a line that names the pattern: `--dump-after-each-pattern`.
    ///
    /// Between two patterns that rewrite ops together (a loop and its yield, a function and its calls) the text does not parse:
    /// a line says so then.
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

/// Hooks and checks of a conversion.
#[derive(Default)]
pub struct ConversionOptions<'a> {
    /// Called after each successful pattern; the IR is valid then, except between patterns that rewrite ops together.
    pub after_each_pattern: Option<&'a mut dyn FnMut(&PatternEvent<'_, '_>)>,
    /// Verify the root after each pattern and stop at the first that breaks it (I0012). Quadratic: for tests and debugging.
    /// Debug builds verify the ops that a pattern created or modified, and their users, anyway.
    pub verify_each: bool,
    /// Compare the printed root before and after a pattern that declines, to detect changes that bypass the rewriter
    /// (I0012). Quadratic: for tests on small modules.
    pub fingerprint: bool,
    /// The order in which created and modified ops are visited.
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
