//! The buffers that have a place, by lifetime, and the gaps between them.

use super::greedy::Fit;
use super::instance::Request;
use super::skyline::{above, covers};
use crate::index::{BufferId, IndexVec};
use crate::liveness::Interval;

/// So many neighbours are sorted at once.
const FEW_NEIGHBOURS: usize = 64;

/// A buffer with its place. Offsets lie here, beside each other: a pass looks at millions of them.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) offset: u64,
    pub(super) end: u64,
    pub(super) id: BufferId,
}

/// The placed buffers: one that overlaps an interval is live at its first position, or begins later in it.
pub(super) struct Placed {
    /// Positions at which a buffer becomes live.
    points: Vec<u32>,
    /// A segment tree over `points`, its leaves in the second half: a buffer is listed in the nodes that cover its interval.
    nodes: Vec<Vec<Entry>>,
    /// The buffers that begin at each point.
    begun: Vec<Vec<Entry>>,
    /// Offsets and ends of the buffers around the last gap.
    neighbours: Vec<(u64, u64)>,
}

impl Placed {
    /// No buffer of `requests` yet.
    pub(super) fn among(requests: &IndexVec<BufferId, Request>) -> Self {
        let mut points: Vec<u32> = requests.iter().map(|request| request.live.first).collect();
        points.sort_unstable();
        points.dedup();
        let (nodes, begun) = (vec![vec![]; 2 * points.len()], vec![vec![]; points.len()]);
        Self { points, nodes, begun, neighbours: vec![] }
    }

    /// The points of an interval that begins at one: the first, and the one behind the last.
    fn range(&self, live: Interval) -> (usize, usize) {
        let first = self.points.partition_point(|point| *point < live.first);
        (first, first + self.points[first..].partition_point(|point| *point <= live.last))
    }

    pub(super) fn add(&mut self, id: BufferId, live: Interval, offset: u64, size: u64) {
        let (first, end) = self.range(live);
        let entry = Entry { offset, end: offset.saturating_add(size), id };
        self.begun[first].push(entry);
        let leaves = self.points.len();
        covers(leaves + first, leaves + end).for_each(|node| self.nodes[node].push(entry));
    }

    pub(super) fn remove(&mut self, id: BufferId, live: Interval) {
        let (first, end) = self.range(live);
        let leaves = self.points.len();
        let forget = |list: &mut Vec<Entry>| {
            let at = list.iter().position(|entry| entry.id == id).expect("a buffer that is taken out was placed");
            list.swap_remove(at);
        };
        forget(&mut self.begun[first]);
        covers(leaves + first, leaves + end).for_each(|node| forget(&mut self.nodes[node]));
    }

    /// Buffers that overlap `live`, which begins at a point; unordered.
    pub(super) fn entries(&self, live: Interval) -> impl Iterator<Item = &Entry> {
        let (first, end) = self.range(live);
        let leaf = self.points.len() + first;
        let at_first = std::iter::once(leaf).chain(above(leaf)).flat_map(|node| &self.nodes[node]);
        at_first.chain(self.begun[first + 1..end].iter().flatten())
    }

    /// The offset at which `size` bytes fit in all of `live`, which begins at a point.
    ///
    /// The lowest gap is sought from below: buffers above it are not sorted.
    pub(super) fn gap(&mut self, live: Interval, size: u64, fit: Fit) -> u64 {
        let mut neighbours = std::mem::take(&mut self.neighbours);
        neighbours.clear();
        neighbours.extend(self.entries(live).map(|entry| (entry.offset, entry.end)));
        let mut gaps = Gaps { size, fit, end: 0, best: None };
        let mut rest = &mut neighbours[..];
        for part in [8, 3, 1] {
            let count = if rest.len() <= FEW_NEIGHBOURS { rest.len() } else { rest.len() / part };
            if count < rest.len() {
                rest.select_nth_unstable_by_key(count, |(offset, _)| *offset);
            }
            let (low, high) = rest.split_at_mut(count);
            low.sort_unstable_by_key(|(offset, _)| *offset);
            if gaps.seek(low) {
                break;
            }
            rest = high;
        }
        self.neighbours = neighbours;
        gaps.best.map_or(gaps.end, |(_, at)| at)
    }

    /// How many buffers the last gap was sought among.
    pub(super) fn looked_at(&self) -> u64 {
        self.neighbours.len() as u64
    }
}

/// The gaps between buffers, from the lowest offset up.
struct Gaps {
    size: u64,
    fit: Fit,
    /// Where the buffers that were seen end.
    end: u64,
    /// The room and the offset of the best gap.
    best: Option<(u64, u64)>,
}

impl Gaps {
    /// Goes on with the next buffers, sorted; whether no other gap is better.
    fn seek(&mut self, neighbours: &[(u64, u64)]) -> bool {
        for &(at, next) in neighbours {
            let room = at.saturating_sub(self.end);
            if at >= self.end && room >= self.size && self.best.is_none_or(|(least, _)| room < least) {
                self.best = Some((room, self.end));
                if matches!(self.fit, Fit::First) {
                    return true;
                }
            }
            self.end = self.end.max(next);
        }
        false
    }
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
                let mut overlapping: Vec<BufferId> = placed.entries(live).map(|entry| entry.id).collect();
                overlapping.sort_unstable();
                let expected = before.iter().copied().filter(|other| requests[*other].live.overlaps(live));
                assert_eq!(overlapping, expected.collect::<Vec<_>>());
                found += overlapping.len();
                placed.add(id, live, 0, 1);
                before.push(id);
                if random.percent(20) {
                    let gone = before.remove(random.below(before.len() as u32) as usize);
                    placed.remove(gone, requests[gone].live);
                }
            }
        }
        assert!(found > 1000, "{found}");
    }
}
