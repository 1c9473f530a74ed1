//! How a function is looked at: what is known of others, and what they take over.

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

/// Memref arguments that functions take over from their callers, by name and number among the memref arguments.
pub(crate) type Takes = HashMap<String, BTreeSet<usize>>;

/// How a function is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    /// The models of operations.
    pub(crate) models: &'a OwnershipModels,
    /// Its callers, all known, are told who owns its results.
    pub(crate) tells: bool,
    /// Ops of unknown effects are taken to use their memrefs as long as these are in scope, and to own what they make.
    pub(crate) allows_unknown: bool,
    /// Arguments that functions take over, those of this one among them.
    pub(crate) takes: &'a Takes,
    /// Arguments that callees would take over, if all their callers let go of it.
    pub(crate) wishes: &'a Takes,
}
