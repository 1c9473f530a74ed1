//! Give short-lived buffers offsets in one arena.
//!
//! ```text
//! a: live 0..3, 100 bytes      a at 0
//! b: live 2..5, 100 bytes      b at 256
//! c: live 4..9, 300 bytes      c does not fit between: at 512; or, c first: c at 0, b at 512, a at 0
//! ```
//!
//! The problem (dynamic storage allocation) is NP-hard.
//! Several greedy orders are tried; in each, a buffer gets the lowest gap that no buffer placed earlier and live
//! at the same time occupies (or the tightest such gap); the smallest arena wins, ties by order of the strategies.
//! When a strategy meets the lower bound (the most bytes live at one position), the search stops.
//!
//! Invariants: buffers that are live at the same time do not overlap; every offset is aligned;
//! `lower_bound <= peak <= sum of the aligned sizes`.
//! Time O(strategies * n * (log n + k log k)) with k the most buffers that are live together with one buffer.

use crate::index::{BufferId, IndexVec};
use crate::liveness::{Interval, peak_bytes};
use std::collections::BTreeMap;
use std::ops::Bound;

/// The alignment of bindings on every device.
pub const ALIGNMENT_BYTES: u64 = 256;

/// A buffer to be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its lifetime.
    pub live: Interval,
    /// Its size.
    pub size_bytes: u64,
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
    let align = alignment_bytes.max(1);
    let rounded = |bytes: u64| bytes.div_ceil(align).saturating_mul(align);
    let sizes: IndexVec<BufferId, u64> = requests.iter().map(|request| rounded(request.size_bytes)).collect();
    let lower_bound_bytes =
        peak_bytes(requests.iter().zip(sizes.iter()).map(|(request, &bytes)| (request.live, bytes)));
    let sum_bytes = sizes.iter().fold(0_u64, |sum, &bytes| sum.saturating_add(bytes));
    let mut best: Option<(u64, IndexVec<BufferId, u64>)> = None;
    for strategy in STRATEGIES {
        let order = strategy.order(requests, &sizes);
        for fit in [Fit::First, Fit::Best] {
            let (peak, offsets) = place(requests, &sizes, &order, fit);
            if best.as_ref().is_none_or(|(least, _)| peak < *least) {
                best = Some((peak, offsets));
            }
            if peak == lower_bound_bytes {
                break;
            }
        }
        if best.as_ref().is_some_and(|(least, _)| *least == lower_bound_bytes) {
            break;
        }
    }
    let (peak_bytes, offsets) = best.unwrap_or_default();
    MemoryPlan { offsets, peak_bytes, lower_bound_bytes, sum_bytes }
}

/// The gap that a buffer takes.
#[derive(Clone, Copy)]
enum Fit {
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
    /// In the order of their first use, as a stack or a pool would.
    Start,
    /// Buffers that are live when most bytes are live first.
    Pressure,
}

const STRATEGIES: [Strategy; 5] =
    [Strategy::Size, Strategy::Pressure, Strategy::Area, Strategy::Length, Strategy::Start];

impl Strategy {
    fn order(self, requests: &IndexVec<BufferId, Request>, sizes: &IndexVec<BufferId, u64>) -> Vec<BufferId> {
        let length = |id: BufferId| u64::from(requests[id].live.last - requests[id].live.first) + 1;
        let pressure = if matches!(self, Self::Pressure) { pressures(requests, sizes) } else { IndexVec::new() };
        let mut order: Vec<BufferId> = requests.ids().collect();
        // Ties: the larger, then the earlier, then the lower id, so that the plan depends on the input only.
        order.sort_by_key(|&id| {
            let rank = match self {
                Self::Size => sizes[id],
                Self::Area => sizes[id].saturating_mul(length(id)),
                Self::Length => length(id),
                Self::Start => u64::MAX - u64::from(requests[id].live.first),
                Self::Pressure => pressure[id],
            };
            (std::cmp::Reverse(rank), std::cmp::Reverse(sizes[id]), requests[id].live, id)
        });
        order
    }
}

/// For each buffer, the most bytes that are live at a position of its own, by a table of running maxima.
fn pressures(requests: &IndexVec<BufferId, Request>, sizes: &IndexVec<BufferId, u64>) -> IndexVec<BufferId, u64> {
    let mut points: Vec<u32> = requests.iter().flat_map(|request| [request.live.first, request.live.last]).collect();
    points.sort_unstable();
    points.dedup();
    let index = |position: u32| points.partition_point(|&point| point < position);
    let mut load = vec![0_i128; points.len() + 1];
    for (request, &bytes) in requests.iter().zip(sizes.iter()) {
        load[index(request.live.first)] += i128::from(bytes);
        load[index(request.live.last) + 1] -= i128::from(bytes);
    }
    let mut live = 0_i128;
    for bytes in &mut load {
        live += *bytes;
        *bytes = live;
    }
    let most = Maxima::new(load);
    requests.iter().map(|request| most.over(index(request.live.first), index(request.live.last))).collect()
}

/// Maxima over ranges in constant time, from a table of powers of two.
struct Maxima(Vec<Vec<i128>>);

impl Maxima {
    fn new(values: Vec<i128>) -> Self {
        let mut levels = vec![values];
        let mut width = 1;
        while let Some(last) = levels.last().filter(|last| last.len() > width) {
            let next = (0..last.len() - width).map(|start| last[start].max(last[start + width])).collect();
            levels.push(next);
            width *= 2;
        }
        Self(levels)
    }

    fn over(&self, first: usize, last: usize) -> u64 {
        let level = (last - first + 1).ilog2() as usize;
        let row = &self.0[level];
        u64::try_from(row[first].max(row[last + 1 - (1 << level)])).unwrap_or(u64::MAX)
    }
}

fn place(
    requests: &IndexVec<BufferId, Request>,
    sizes: &IndexVec<BufferId, u64>,
    order: &[BufferId],
    fit: Fit,
) -> (u64, IndexVec<BufferId, u64>) {
    let mut offsets = IndexVec::filled(0_u64, requests.len());
    let mut placed = Placed::among(requests);
    let mut neighbours: Vec<(u64, BufferId)> = vec![];
    let mut peak = 0_u64;
    for &id in order {
        let live = requests[id].live;
        neighbours.clear();
        neighbours.extend(placed.overlapping(live).map(|other| (offsets[other], other)));
        neighbours.sort_unstable();
        let offset = gap(neighbours.iter().map(|&(at, other)| (at, sizes[other])), sizes[id], fit);
        offsets[id] = offset;
        peak = peak.max(offset.saturating_add(sizes[id]));
        placed.add(id, live);
    }
    (peak, offsets)
}

/// The placed buffers, by lifetime: a buffer that overlaps an interval is live at its first position, or begins
/// later in it.
struct Placed {
    /// Positions at which a buffer becomes live.
    points: Vec<u32>,
    /// A segment tree over `points`, its leaves in the second half: a buffer is listed in the nodes that cover its interval.
    nodes: Vec<Vec<BufferId>>,
    by_first: BTreeMap<u32, Vec<BufferId>>,
}

impl Placed {
    /// No buffer of `requests` yet.
    fn among(requests: &IndexVec<BufferId, Request>) -> Self {
        let mut points: Vec<u32> = requests.iter().map(|request| request.live.first).collect();
        points.sort_unstable();
        points.dedup();
        let nodes = vec![vec![]; 2 * points.len()];
        Self { points, nodes, by_first: BTreeMap::new() }
    }

    /// Leaf of the first point from `position` on.
    fn leaf(&self, position: u32) -> usize {
        self.points.len() + self.points.partition_point(|&point| point < position)
    }

    fn add(&mut self, id: BufferId, live: Interval) {
        self.by_first.entry(live.first).or_default().push(id);
        let (mut from, mut to) =
            (self.leaf(live.first), self.points.len() + self.points.partition_point(|&p| p <= live.last));
        while from < to {
            if from % 2 == 1 {
                self.nodes[from].push(id);
                from += 1;
            }
            if to % 2 == 1 {
                to -= 1;
                self.nodes[to].push(id);
            }
            (from, to) = (from / 2, to / 2);
        }
    }

    /// Buffers that overlap `live`, which begins at a point; unordered.
    fn overlapping(&self, live: Interval) -> impl Iterator<Item = BufferId> {
        let up = std::iter::successors(Some(self.leaf(live.first)), |node| Some(node / 2)).take_while(|node| *node > 0);
        let at_first = up.flat_map(|node| self.nodes[node].iter().copied());
        // Not for a single position, where the range would have equal bounds, one of them excluded.
        let later = (live.first < live.last).then_some((Bound::Excluded(live.first), Bound::Included(live.last)));
        let later = later.into_iter().flat_map(|range| self.by_first.range(range));
        at_first.chain(later.flat_map(|(_, ids)| ids.iter().copied()))
    }
}

/// The offset at which `size` bytes fit between `neighbours` (offset and size, by offset).
fn gap(neighbours: impl Iterator<Item = (u64, u64)>, size: u64, fit: Fit) -> u64 {
    let (mut end, mut best) = (0_u64, None);
    for (at, bytes) in neighbours {
        let room = at.saturating_sub(end);
        if at >= end && room >= size && best.is_none_or(|(least, _)| room < least) {
            best = Some((room, end));
            if matches!(fit, Fit::First) {
                break;
            }
        }
        end = end.max(at.saturating_add(bytes));
    }
    best.map_or(end, |(_, at)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn what_overlaps_is_what_a_comparison_with_each_finds() {
        let mut random = Random::new(7);
        let mut found = 0;
        for round in 0..200 {
            let interval = |random: &mut Random| {
                let first = random.below(30);
                Interval::new(first, first + random.below(1 + round % 12))
            };
            let requests: IndexVec<BufferId, Request> =
                (0..25).map(|_| Request { live: interval(&mut random), size_bytes: 1 }).collect();
            let mut placed = Placed::among(&requests);
            let mut before: Vec<BufferId> = vec![];
            for id in requests.ids() {
                let live = requests[id].live;
                let mut overlapping: Vec<BufferId> = placed.overlapping(live).collect();
                overlapping.sort_unstable();
                let expected = before.iter().copied().filter(|other| requests[*other].live.overlaps(live));
                assert_eq!(overlapping, expected.collect::<Vec<_>>());
                found += overlapping.len();
                placed.add(id, live);
                before.push(id);
            }
        }
        assert!(found > 1000, "{found}");
    }
}
