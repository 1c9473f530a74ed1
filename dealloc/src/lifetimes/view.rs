//! The context in which a function is decided: summaries of others, and the arguments that they consume.

use std::collections::{BTreeSet, HashMap};

use monopour_analysis::lifetimes::Own;

use crate::models::OwnershipModels;

/// The summary of a function, for its callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    /// For each memref result: whether the caller owns it, and which memref arguments it may be.
    pub(crate) results: Vec<(Own, Vec<usize>)>,
    /// Results that may be the same memory.
    pub(crate) pairs: Vec<(usize, usize)>,
}

/// Summaries by name of the function. One that is not there owns none of its arguments, and gives all results away.
pub(crate) type Summaries = HashMap<String, Summary>;

/// Memref arguments that functions consume: they take the ownership from their callers, by name and number among the memref arguments.
pub(crate) type Consumed = HashMap<String, BTreeSet<usize>>;

/// How a function is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    /// The models of operations.
    pub(crate) models: &'a OwnershipModels,
    /// Indicators pass the ownership of its results to its callers, all known.
    pub(crate) dynamic_ownership: bool,
    /// Ops of unknown effects are taken to use their memrefs as long as these are in scope, and to own what they make.
    pub(crate) allows_unknown: bool,
    /// Arguments that functions consume, those of this one among them.
    pub(crate) consumed: &'a Consumed,
    /// Arguments that callees would consume, if all their callers transferred them.
    pub(crate) consumable: &'a Consumed,
}
