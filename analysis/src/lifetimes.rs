//! Decide where each allocation of a function on memrefs is freed, in any control-flow graph.
//!
//! ```text
//! before                                after
//! ^a: %0 = alloc; cond_br ^b, ^c(%0)    ^a: %0 = alloc; cond_br ^b, ^c(%0, true)
//! ^b: %1 = alloc; br ^c(%arg)           ^b: dealloc %0; %1 = alloc; dealloc %1; br ^c(%arg, false)
//! ^c(%p): use(%p); return               ^c(%p, %own): use(%p); if %own { dealloc %p }; return
//! ```
//!
//! Each buffer that is to be freed has one *holder* at a time, the memref in scope that owns it. An allocation is held by its result.
//! A holder hands over:
//! - Without another use and passed to a block, a region or an op's result, it hands over to that.
//! - Without another use, it waits for memrefs of its region that may alias it, and is freed when those
//!   have no use either: right after the last use through any alias, on each path.
//! - Going out of scope while others may alias it, it compares pointers with these.
//!
//! Whether a memref is a holder is known, or given by an *indicator*: an `i1` from a comparison, or passed beside the memref.
//! Where paths meet of which only some make a memref a holder, blocks get one more argument.
//!
//! Two holders never alias. Memory from outside a region is never held inside: a region's holders were
//! allocated there, or handed over when their last use outside had passed. So only memrefs of one region are compared.
//!
//! Aliases are followed along the flow, in pairs: a new allocation aliases no memref that was there before.
//! Requires: definitions dominate uses. Ensures: each allocation is freed once on each path, or returned.
//! Time: each block is processed once, and again when its entry state changed, which only rises.

mod facts;
mod graph;
mod solve;
mod state;
mod transfer;

pub use facts::{Edge, Flow, Kind, LifetimeFacts, Origins, Set};

use std::collections::{BTreeMap, BTreeSet};

use crate::index::{BlockId, OpId, ValueId};
use crate::ownership::Ownership;

/// An insertion point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// At the start of a block.
    Start(BlockId),
    /// Right before an operation.
    Before(OpId),
    /// Right after an operation.
    After(OpId),
    /// On the edge from a terminator to its successor with this number.
    Edge(OpId, u32),
}

/// A memref that takes a buffer over if it aliases the holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Take {
    /// The memref.
    pub value: ValueId,
    /// Whether it was a holder before.
    pub had: Ownership<u32>,
    /// The number of its indicator afterwards.
    pub makes: u32,
}

/// An insertion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Frees the buffer if `own` holds and it aliases no taker.
    Release {
        /// The holder.
        value: ValueId,
        /// Whether it is one.
        own: Ownership<u32>,
        /// Memrefs that may alias it, in order; the first that does takes the buffer over.
        to: Vec<Take>,
    },
    /// The program frees `freed`: `taken.value` stops being a holder if it is the same memory.
    Consume {
        /// The memref that the program frees.
        freed: ValueId,
        /// A memref that may alias it.
        taken: Take,
    },
}

/// The origin of an indicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// An argument of the block, beside the memref.
    Argument(BlockId, ValueId),
    /// Passed beside the memref: an argument of a region, a result of an operation.
    Beside(ValueId),
    /// The result of an action at the place.
    Made(Place, ValueId, u32),
}

/// The decisions on one function.
#[derive(Clone, Debug, Default)]
pub struct Lifetimes {
    /// The insertions, in order at each place.
    pub actions: Vec<(Place, Action)>,
    /// The reachable blocks of each region, each after its dominators.
    pub order: Vec<Vec<BlockId>>,
    /// The origin of each indicator.
    pub versions: Vec<Version>,
    /// Indicators that each block takes as additional arguments, by memref.
    pub block_arguments: BTreeMap<BlockId, Vec<(ValueId, u32)>>,
    /// The operands of each edge for these.
    pub edge_operands: BTreeMap<(OpId, u32), Vec<Ownership<u32>>>,
    /// Region arguments and operation results that come with an indicator.
    pub beside: BTreeMap<ValueId, u32>,
    /// Whether each source that an operation or a terminator forwards is handed over.
    pub passed: BTreeMap<OpId, Vec<Ownership<u32>>>,
    /// Whether a result of the function is handed over, over all paths.
    pub results: Vec<Ownership<u32>>,
    /// Arguments of the function that each result may alias.
    pub result_aliases: Vec<Vec<ValueId>>,
    /// Possible transfers: the memref certainly owns its buffer, whose memory has no use after the operation, except through the
    /// operation's own results.
    pub transferred: BTreeSet<(OpId, ValueId)>,
    /// Work done: operations, and holders at the beginnings and joins of blocks.
    pub steps: u64,
    /// Results that may alias, the smaller number first.
    pub result_pairs: Vec<(usize, usize)>,
}
