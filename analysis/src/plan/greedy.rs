//! Place buffers one after another, in several orders, and keep the best placement.
//!
//! ```text
//! order: c, b, a      c at 0, b above it, a in the lowest gap between those that are live with it
//! stack: c, b, a      each above all before it that are live with it, gaps or not
//! ```
//!
//! Ensures: the best placement of all that were tried, repaired (`repair`); the lower bound ends the attempts.
//! Up to [`FEW`] buffers each order is tried with each fit.
//! Beyond, one order is, unless a stack is nearly as low as the lower bound, and others while that takes little time.
//! A pass over gaps takes O(n log n + p log k): p pairs of buffers that are live together, k the most with one buffer.
//! A stack takes O(n log n), and is right for what a backward pass keeps: lifetimes within each other, where each
//! buffer is live with each, and p is too much.

use super::instance::{Instance, Placement};
use super::placed::Placed;
use super::repair::Repair;
use super::skyline::Skyline;
use crate::index::{BufferId, IndexVec};
use std::cmp::Reverse;

/// For at most so many buffers every order is tried: 0.1 s at worst.
const FEW: usize = 2_000;

/// Pairs in a pass over gaps that is worth its time, about 4 s, where stacks are high.
const MOST_PAIRS: u64 = 150_000_000;

/// Pairs that passes and repairs of many buffers look at, but for one pass: some 0.3 s.
const PAIRS: u64 = 6_000_000;

/// Pairs that repairs of few buffers look at: some 10 ms.
const REPAIR_PAIRS: u64 = 400_000;

/// The gap that a buffer takes.
#[derive(Clone, Copy)]
pub(super) enum Fit {
    /// The lowest.
    First,
    /// The smallest.
    Best,
}

/// The order in which buffers are placed.
#[derive(Clone, Copy)]
enum Strategy {
    /// Large buffers first.
    Size,
    /// Large size times lifetime first.
    Area,
    /// Long-lived buffers first.
    Length,
    /// Long-lived buffers first, where twice as long is longer.
    Scale,
    /// In the order of their first use, as a stack or a pool would.
    Start,
    /// Buffers that are live when most bytes are live first.
    Pressure,
}

const STRATEGIES: [Strategy; 6] =
    [Strategy::Size, Strategy::Pressure, Strategy::Area, Strategy::Length, Strategy::Start, Strategy::Scale];

impl Strategy {
    /// Larger is earlier.
    fn rank(self, instance: &Instance, id: BufferId) -> u64 {
        let live = instance.requests[id].live;
        let length = u64::from(live.last - live.first) + 1;
        match self {
            Self::Size => instance.sizes[id],
            Self::Area => instance.sizes[id].saturating_mul(length),
            Self::Length => length,
            Self::Scale => u64::from(length.ilog2()),
            Self::Start => u64::MAX - u64::from(live.first),
            Self::Pressure => instance.pressures[id],
        }
    }

    fn sort(self, instance: &Instance, ids: &mut [BufferId]) {
        // Ties: the larger, then the earlier, then the lower id, so that the plan depends on the input only.
        ids.sort_by_cached_key(|&id| {
            (Reverse(self.rank(instance, id)), Reverse(instance.sizes[id]), instance.requests[id].live, id)
        });
    }

    fn order(self, instance: &Instance) -> Vec<BufferId> {
        let mut order: Vec<BufferId> = instance.requests.ids().collect();
        self.sort(instance, &mut order);
        order
    }
}

/// The best placement that is found.
pub(super) fn place(instance: &Instance) -> Placement {
    if instance.requests.len() > FEW {
        return place_many(instance, pairs(instance));
    }
    let mut best = place_few(instance);
    Repair::new(instance, &mut best, REPAIR_PAIRS).run();
    best
}

fn place_few(instance: &Instance) -> Placement {
    let first = STRATEGIES[0].order(instance);
    let mut best = place_in_gaps(instance, &first, Fit::First);
    let others = STRATEGIES.into_iter().flat_map(|strategy| [(strategy, Fit::First), (strategy, Fit::Best)]).skip(1);
    for (strategy, fit) in others {
        if best.peak_bytes == instance.lower_bound_bytes {
            break;
        }
        best.improve(place_in_gaps(instance, &strategy.order(instance), fit));
    }
    best
}

fn place_many(instance: &Instance, pairs: u64) -> Placement {
    let mut best = stack(instance, &Strategy::Length.order(instance));
    best.improve(stack(instance, &Strategy::Scale.order(instance)));
    // A stack this good leaves little to gain for its time.
    let is_good = best.peak_bytes - instance.lower_bound_bytes <= instance.lower_bound_bytes / 200;
    if is_good || pairs > MOST_PAIRS {
        return best;
    }
    let mut rest = PAIRS;
    for strategy in [Strategy::Size, Strategy::Scale, Strategy::Area, Strategy::Pressure] {
        let mut placement = place_in_gaps(instance, &strategy.order(instance), Fit::First);
        // A repair finds most after a pass that looks at more than all that is left.
        let budget = if pairs > PAIRS { PAIRS } else { rest.saturating_sub(pairs).max(PAIRS / 4) };
        rest = Repair::new(instance, &mut placement, budget).run();
        best.improve(placement);
        if best.peak_bytes == instance.lower_bound_bytes || rest < pairs {
            break;
        }
    }
    best
}

/// How many pairs of buffers are live together.
fn pairs(instance: &Instance) -> u64 {
    let mut firsts: Vec<u32> = instance.requests.iter().map(|request| request.live.first).collect();
    firsts.sort_unstable();
    let begun = |position: u32| firsts.partition_point(|first| *first <= position) as u64;
    let before = |position: u32| firsts.partition_point(|first| *first < position) as u64;
    // A later buffer of a pair begins while the earlier one is live; of those that begin together, each counts the other.
    instance.requests.iter().map(|request| begun(request.live.last) - before(request.live.first) - 1).sum()
}

/// Each buffer in a gap between the buffers before it.
fn place_in_gaps(instance: &Instance, order: &[BufferId], fit: Fit) -> Placement {
    let mut offsets = IndexVec::filled(0_u64, instance.requests.len());
    let mut placed = Placed::among(instance.requests, &instance.sizes);
    let mut peak_bytes = 0_u64;
    for &id in order {
        let (live, size) = (instance.requests[id].live, instance.sizes[id]);
        let offset = placed.gap(live, size, fit);
        offsets[id] = offset;
        peak_bytes = peak_bytes.max(offset.saturating_add(size));
        placed.add(id, live, offset, size);
    }
    Placement { peak_bytes, offsets }
}

/// Each buffer above all buffers before it that are live with it.
fn stack(instance: &Instance, order: &[BufferId]) -> Placement {
    let mut offsets = IndexVec::filled(0_u64, instance.requests.len());
    let mut skyline = Skyline::over(instance.requests);
    let mut peak_bytes = 0_u64;
    for &id in order {
        let live = instance.requests[id].live;
        offsets[id] = skyline.height(live);
        let top = offsets[id].saturating_add(instance.sizes[id]);
        peak_bytes = peak_bytes.max(top);
        skyline.raise(live, top);
    }
    Placement { peak_bytes, offsets }
}
