//! Options of deallocation, and its statistics.

use monopour_ir::Diagnostics;

/// Options of [`run_ownership`](crate::run_ownership).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `private-function-dynamic-ownership`: private functions return indicators of their results. With
    /// `extensions` they always do where it saves a copy.
    pub private_function_dynamic_ownership: bool,
    /// Behaviour beyond upstream: plain frees after the last use; bodies of dispatches are left to later phases.
    pub extensions: bool,
    /// With `extensions`: allows operations of unknown effects. They are assumed to use their memrefs as long as these
    /// are in scope, and to own their results.
    pub allow_unknown_effects: bool,
}

/// Counts and remarks of the pass.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// `memref.dealloc` or `bufferization.dealloc` operations.
    pub deallocs: u32,
    /// Copies of memory that is returned without being owned.
    pub clones: u32,
    /// Memrefs that got an owner, once per block that sees them (upstream's form only).
    pub memrefs: u32,
    /// Memrefs visited, once for each block and each dealloc: the time is proportional (upstream's form only).
    pub steps: u64,
    /// The reason of each copy (D0201).
    pub remarks: Diagnostics,
    /// Bytes that each remark's copy moves; `None` if known at run time only.
    pub remark_bytes: Vec<Option<u64>>,
}
