//! Give short-lived buffers offsets in one arena.
//!
//! ```text
//! a: live 0..3, 100 bytes      a at 0
//! b: live 2..5, 100 bytes      b at 256
//! c: live 4..9, 300 bytes      c does not fit between: at 512; or, c first: c at 0, b at 512, a at 0
//! ```
//!
//! The problem (dynamic storage allocation) is NP-hard.
//! `greedy` places buffers in several orders, each in the lowest or the tightest gap, and `repair` lowers its peak.
//! Where that misses the lower bound (the most bytes live at one position), and for at most [`MOST_SEARCHED`] buffers,
//! `search` looks for offsets within the lower bound, and then within capacities between it and the best placement.
//! [`Effort`] bounds it by steps, not by time: same requests, same offsets.
//!
//! Invariants: buffers that are live at the same time do not overlap; every offset is aligned;
//! `lower_bound <= peak <= sum of the aligned sizes`.
//!
//! * `greedy`: orders, fits and stacks; `repair`: chains of moves; `placed`: gaps between placed buffers; `skyline`: heights
//!   over time.
//! * `search`: turns, bounds and splits; `node`: what one node of the search has to place, and its valleys.
//! * `instance`: what is to be placed, and a placement; [`made`]: instances for tests and measurements.

mod greedy;
mod instance;
pub mod made;
mod node;
mod placed;
mod repair;
mod search;
mod skyline;

use crate::index::{BufferId, IndexVec};
use instance::Instance;

pub use instance::Request;

/// The alignment of bindings on every device.
pub const ALIGNMENT_BYTES: u64 = 256;

/// More buffers are not searched for: a first descent would take too much of the steps.
pub const MOST_SEARCHED: usize = 2_000;

/// How long to look for a smaller arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// Less than about 10 ms: for a run on sizes that are new.
    Run,
    /// Less than about 0.15 s: for a compilation.
    #[default]
    Compile,
    /// Less than about 1 s: for a memory plan that is worth a wait.
    Thorough,
}

impl Effort {
    /// A step is a look at one buffer in one node of the search, some 30 ns.
    const fn steps(self) -> u64 {
        match self {
            Self::Run => 200_000,
            Self::Compile => 3_000_000,
            Self::Thorough => 25_000_000,
        }
    }
}

/// The offsets of all buffers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryPlan {
    /// The offset of each buffer in bytes, a multiple of the alignment.
    pub offsets: IndexVec<BufferId, u64>,
    /// The size of the arena in bytes.
    pub peak_bytes: u64,
    /// A lower bound on the peak of any plan with this alignment.
    pub lower_bound_bytes: u64,
    /// The size of all buffers together: an arena without reuse.
    pub sum_bytes: u64,
}

/// Plan with the alignment of bindings.
pub fn plan(requests: &IndexVec<BufferId, Request>) -> MemoryPlan {
    plan_aligned(requests, ALIGNMENT_BYTES)
}

/// Plan with another alignment (0 counts as 1).
///
/// Sizes are rounded up to the alignment; sizes beyond `u64` saturate, which no device has anyway.
pub fn plan_aligned(requests: &IndexVec<BufferId, Request>, alignment_bytes: u64) -> MemoryPlan {
    plan_with_effort(requests, alignment_bytes, Effort::Compile)
}

/// [`plan_aligned`] with as much search as wanted.
pub fn plan_with_effort(requests: &IndexVec<BufferId, Request>, alignment_bytes: u64, effort: Effort) -> MemoryPlan {
    plan_within(requests, alignment_bytes, effort.steps())
}

/// [`plan_with_effort`] of so many steps.
pub(crate) fn plan_within(requests: &IndexVec<BufferId, Request>, alignment_bytes: u64, steps: u64) -> MemoryPlan {
    let instance = Instance::new(requests, alignment_bytes.max(1));
    let mut placement = greedy::place(&instance);
    if placement.peak_bytes > instance.lower_bound_bytes && requests.len() <= MOST_SEARCHED {
        search::improve(&instance, &mut placement, steps);
    }
    MemoryPlan {
        offsets: placement.offsets,
        peak_bytes: placement.peak_bytes,
        lower_bound_bytes: instance.lower_bound_bytes,
        sum_bytes: instance.sizes.iter().fold(0_u64, |sum, &bytes| sum.saturating_add(bytes)),
    }
}
