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
    /// All buffers by their first position, `None` where one has no place: a pass reads long stretches of it.
    begun: Vec<Option<Entry>>,
    /// Where the buffers of each point start in `begun`, and its length.
    starts: Vec<usize>,
    /// The place of each buffer in `begun`.
    numbers: IndexVec<BufferId, usize>,
    /// The buffers around the last gap.
    neighbours: Neighbours,
}

/// Offsets and ends of buffers.
enum Neighbours {
    /// In units of two to the power of the number, the offset in the upper half: sorted in half the time of pairs.
    Packed(u32, Vec<u64>),
    /// Of sizes without a unit that makes 32 bits enough.
    Pairs(Vec<(u64, u64)>),
}

impl Neighbours {
    /// None yet, of buffers of these sizes: no offset is above their sum.
    fn of(sizes: impl Iterator<Item = u64> + Clone) -> Self {
        let unit = sizes.clone().fold(0, |bits, size| bits | size).trailing_zeros().min(u64::BITS - 1);
        let most = sizes.fold(0_u64, u64::saturating_add) >> unit;
        if u32::try_from(most).is_ok() { Self::Packed(unit, vec![]) } else { Self::Pairs(vec![]) }
    }

    fn len(&self) -> usize {
        match self {
            Self::Packed(_, list) => list.len(),
            Self::Pairs(list) => list.len(),
        }
    }
}

impl Placed {
    /// No buffer of `requests` yet, of which each takes so many bytes.
    pub(super) fn among(requests: &IndexVec<BufferId, Request>, sizes: &IndexVec<BufferId, u64>) -> Self {
        let mut order: Vec<BufferId> = requests.ids().collect();
        order.sort_unstable_by_key(|id| (requests[*id].live.first, *id));
        let (mut points, mut starts) = (vec![], vec![]);
        let mut numbers = IndexVec::filled(0, requests.len());
        for (number, id) in order.iter().enumerate() {
            let first = requests[*id].live.first;
            if points.last() != Some(&first) {
                points.push(first);
                starts.push(number);
            }
            numbers[*id] = number;
        }
        starts.push(order.len());
        let (nodes, begun) = (vec![vec![]; 2 * points.len()], vec![None; order.len()]);
        let neighbours = Neighbours::of(sizes.iter().copied());
        Self { points, nodes, begun, starts, numbers, neighbours }
    }

    /// The points of an interval that begins at one: the first, and the one behind the last.
    fn range(&self, live: Interval) -> (usize, usize) {
        let first = self.points.partition_point(|point| *point < live.first);
        (first, first + self.points[first..].partition_point(|point| *point <= live.last))
    }

    pub(super) fn add(&mut self, id: BufferId, live: Interval, offset: u64, size: u64) {
        let (first, end) = self.range(live);
        let entry = Entry { offset, end: offset.saturating_add(size), id };
        self.begun[self.numbers[id]] = Some(entry);
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
        self.begun[self.numbers[id]] = None;
        covers(leaves + first, leaves + end).for_each(|node| forget(&mut self.nodes[node]));
    }

    /// Buffers that overlap `live`, which begins at a point; unordered.
    pub(super) fn entries(&self, live: Interval) -> impl Iterator<Item = &Entry> {
        let (first, end) = self.range(live);
        let leaf = self.points.len() + first;
        let at_first = std::iter::once(leaf).chain(above(leaf)).flat_map(|node| &self.nodes[node]);
        at_first.chain(self.begun[self.starts[first + 1]..self.starts[end]].iter().flatten())
    }

    /// The offset at which `size` bytes fit in all of `live`, which begins at a point.
    ///
    /// The lowest gap is sought from below: buffers above it are not sorted.
    pub(super) fn gap(&mut self, live: Interval, size: u64, fit: Fit) -> u64 {
        let mut neighbours = std::mem::replace(&mut self.neighbours, Neighbours::Pairs(vec![]));
        let gap = match &mut neighbours {
            Neighbours::Packed(unit, list) => {
                let unit = *unit;
                list.clear();
                list.extend(self.entries(live).map(|entry| entry.offset >> unit << 32 | entry.end >> unit));
                Gaps::new(size >> unit, fit).lowest(list, |packed| (packed >> 32, packed & u64::from(u32::MAX))) << unit
            }
            Neighbours::Pairs(list) => {
                list.clear();
                list.extend(self.entries(live).map(|entry| (entry.offset, entry.end)));
                Gaps::new(size, fit).lowest(list, |pair| pair)
            }
        };
        self.neighbours = neighbours;
        gap
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
    fn new(size: u64, fit: Fit) -> Self {
        Self { size, fit, end: 0, best: None }
    }

    /// The offset of the best gap between buffers, whose order is that of their offsets.
    fn lowest<T: Copy + Ord>(mut self, mut rest: &mut [T], ends: impl Fn(T) -> (u64, u64)) -> u64 {
        for part in [8, 3, 1] {
            let count = if rest.len() <= FEW_NEIGHBOURS { rest.len() } else { rest.len() / part };
            if count < rest.len() {
                rest.select_nth_unstable(count);
            }
            let (low, high) = rest.split_at_mut(count);
            low.sort_unstable();
            if self.seek(low.iter().map(|neighbour| ends(*neighbour))) {
                break;
            }
            rest = high;
        }
        self.best.map_or(self.end, |(_, at)| at)
    }

    /// Goes on with the next buffers, sorted; whether no other gap is better.
    fn seek(&mut self, neighbours: impl Iterator<Item = (u64, u64)>) -> bool {
        for (at, next) in neighbours {
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
            let sizes = IndexVec::filled(1, requests.len());
            let mut placed = Placed::among(&requests, &sizes);
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

    /// A size of 2^60 bytes leaves no unit for 32 bits: the gaps are the same without it.
    #[test]
    fn gaps_are_the_same_for_sizes_of_any_magnitude() {
        let mut random = Random::new(11);
        for _ in 0..50 {
            let request = |random: &mut Random| {
                let first = random.below(40);
                let size_bytes = u64::from(1 + random.below(90)) * 64;
                Request { live: Interval::new(first, first + random.below(30)), size_bytes }
            };
            let few: IndexVec<BufferId, Request> = (0..150).map(|_| request(&mut random)).collect();
            let huge = Request { live: Interval::new(1000, 1000), size_bytes: (1 << 60) + 64 };
            let more: IndexVec<BufferId, Request> = few.iter().copied().chain([huge]).collect();
            let [mut packed, mut pairs] = [&few, &more]
                .map(|requests| Placed::among(requests, &requests.iter().map(|request| request.size_bytes).collect()));
            assert!(
                matches!(packed.neighbours, Neighbours::Packed(..)) && matches!(pairs.neighbours, Neighbours::Pairs(_))
            );
            for id in few.ids() {
                let (live, size) = (few[id].live, few[id].size_bytes);
                let best = packed.gap(live, size, Fit::Best);
                assert_eq!(best, pairs.gap(live, size, Fit::Best));
                let offset = packed.gap(live, size, Fit::First);
                assert_eq!(offset, pairs.gap(live, size, Fit::First));
                assert!(offset <= best && offset.is_multiple_of(64));
                packed.add(id, live, offset, size);
                pairs.add(id, live, offset, size);
            }
        }
    }
}
