//! Decide where each allocation of a function on memrefs is freed, in any control-flow graph.
//!
//! ```text
//! before                                after
//! ^a: %0 = alloc; cond_br ^b, ^c(%0)    ^a: %0 = alloc; cond_br ^b, ^c(%0, true)
//! ^b: %1 = alloc; br ^c(%arg)           ^b: dealloc %0; %1 = alloc; dealloc %1; br ^c(%arg, false)
//! ^c(%p): use(%p); return               ^c(%p, %own): use(%p); if %own { dealloc %p }; return
//! ```
//!
//! Each buffer that is to be freed has one *holder* at a time, a memref that is in scope. A memref holds what it allocates.
//! Who holds, hands over:
//! - A holder without another use that is passed to a block, a region or an op's result hands over to that.
//! - A holder without another use waits for memrefs of its region that may be the same memory, and is freed when those
//!   have no use either: right behind the last use through any alias, on each path.
//! - A holder that goes out of scope while others may be the same memory compares pointers with these.
//!
//! Whether a memref holds is known, or an *indicator*: an `i1` that a comparison makes, or that is passed beside the memref.
//! Where paths meet on which one memref holds and does not, blocks get one more argument.
//!
//! Two holders are never the same memory. Memory of outside is never held inside of a region: what a region holds was
//! allocated there, or handed over when nothing outside uses it any more. So only memrefs of one region are compared.
//!
//! What may be the same memory is followed along the flow, in pairs: a new allocation is no memref that was there before.
//! Requires: definitions dominate uses. Ensures: each allocation is freed once on each path, or returned.
//! Time: each block is looked at once, and again when what is known at its beginning changed; that only rises.

mod facts;
mod graph;
mod solve;
mod state;
mod transfer;

pub use facts::{Edge, Flow, Kind, LifetimeFacts, Origins, Set};

use std::collections::{BTreeMap, BTreeSet};

use crate::index::{BlockId, OpId, ValueId};

/// Whether a memref holds its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Own {
    /// It does not.
    No,
    /// It does.
    Yes,
    /// If the indicator with this number is set.
    Indicator(u32),
}

/// Where something is inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// At the start of a block.
    Start(BlockId),
    /// Right before an operation.
    Before(OpId),
    /// Right behind an operation.
    After(OpId),
    /// On the way from a terminator to its successor with this number.
    Edge(OpId, u32),
}

/// A memref that takes over what another one held, if both are the same memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Take {
    /// The memref.
    pub value: ValueId,
    /// Whether it held something before.
    pub had: Own,
    /// The number of the indicator that says so afterwards.
    pub makes: u32,
}

/// What is inserted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The buffer is freed if `own` says so, and if it is none of those that take it over.
    Release {
        /// What held it.
        value: ValueId,
        /// Whether it did.
        own: Own,
        /// What may be the same memory, in order; the first that is takes it over.
        to: Vec<Take>,
    },
    /// The program frees `freed`: `taken.value` does not hold it any more if it is the same memory.
    Consume {
        /// What the program frees.
        freed: ValueId,
        /// What may be the same memory.
        taken: Take,
    },
}

/// How an indicator comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// An argument of the block, beside the memref.
    Argument(BlockId, ValueId),
    /// Passed beside the memref: an argument of a region, a result of an operation.
    Beside(ValueId),
    /// An action at the place makes it.
    Made(Place, ValueId, u32),
}

/// The decisions on one function.
#[derive(Clone, Debug, Default)]
pub struct Lifetimes {
    /// What is inserted, in the order of each place.
    pub actions: Vec<(Place, Action)>,
    /// The blocks of each region that something leads to, each behind those that dominate it.
    pub order: Vec<Vec<BlockId>>,
    /// How each indicator comes about.
    pub versions: Vec<Version>,
    /// Indicators that each block takes besides, by memref.
    pub block_arguments: BTreeMap<BlockId, Vec<(ValueId, u32)>>,
    /// What each edge passes for these.
    pub edge_operands: BTreeMap<(OpId, u32), Vec<Own>>,
    /// Arguments of regions and results of operations that come with an indicator.
    pub beside: BTreeMap<ValueId, u32>,
    /// Whether what an operation or a terminator passes on is handed over, for each of its sources.
    pub passed: BTreeMap<OpId, Vec<Own>>,
    /// Whether a result of the function is handed over, on all paths.
    pub results: Vec<Own>,
    /// Arguments of the function that each result may be.
    pub result_aliases: Vec<Vec<ValueId>>,
    /// Transfers that are possible: the memref owns its buffer for certain, and nothing uses its memory behind the operation, but what
    /// the operation itself makes of it.
    pub transferred: BTreeSet<(OpId, ValueId)>,
    /// How much was looked at: operations, and memrefs that hold something where blocks begin and meet.
    pub steps: u64,
    /// Results that may be the same memory, the smaller number first.
    pub result_pairs: Vec<(usize, usize)>,
}
