//! The context of a decision: summaries of other functions, and the arguments that they consume.

use std::collections::{BTreeSet, HashMap};

use monopour_analysis::ownership::Ownership;

use crate::models::OwnershipModels;

/// The summary of a function, for its callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    /// For each memref result: whether the caller owns it, and the memref arguments that it may alias.
    pub(crate) results: Vec<(Ownership<u32>, Vec<usize>)>,
    /// Results that may alias.
    pub(crate) pairs: Vec<(usize, usize)>,
}

/// Summaries by function name. By default a function owns none of its arguments, and transfers all results.
pub(crate) type Summaries = HashMap<String, Summary>;

/// Memref arguments that functions consume: their ownership moves from the callers, by name and number among the memref arguments.
pub(crate) type Consumed = HashMap<String, BTreeSet<usize>>;

/// The context in which a function is decided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    /// The models of operations.
    pub(crate) models: &'a OwnershipModels,
    /// Indicators pass the ownership of its results to its callers, which are all known.
    pub(crate) dynamic_ownership: bool,
    /// Ops of unknown effects are assumed to use their memrefs as long as these are in scope, and to own their results.
    pub(crate) allows_unknown: bool,
    /// Arguments that functions consume, those of this one among them.
    pub(crate) consumed: &'a Consumed,
    /// Arguments that callees would consume if all their callers transferred them.
    pub(crate) consumable: &'a Consumed,
}
