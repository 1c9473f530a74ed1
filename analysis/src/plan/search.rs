//! Search for offsets within a capacity, by what can lie on the ground of a valley.
//!
//! ```text
//! capacity 4   . . . . .      Height of what is placed, over time. b and c begin at the left end of the valley
//!              a a . . .      and are no longer than it: one of them lies on its ground, or nothing does there,
//!              a a . d d      and both have to lie on something else, if ever.
//! ```
//!
//! Each placement can be let down until every buffer lies on the ground or on another one, so only such are sought.
//! A valley is an interval of time with one height, and more on both sides.
//! A buffer can lie on its ground only if it is live nowhere else, and whatever does not lies as high as the lower side;
//! so the options in a valley are the buffers that begin where the first of them begins, or none of them.
//! These options exclude each other and miss nothing, whatever is decided in other valleys: the search goes on in the
//! valley with the fewest of them (ties: the fullest), and conflicts show where they were made.
//!
//! A node is cut off when the buffers of a position, stacked from their least offsets on, exceed the capacity;
//! when a buffer without support could be let down; and when its parts failed before.
//! It splits where no buffer crosses. The search starts anew again and again, each turn with more steps and another order:
//! by pressure, area, lifetime or size with noise, and by how often a buffer was part of an excess.
//!
//! Ensures: an answer depends on the buffers, the capacity and the number of steps, never on time.
//! `Impossible` is a proof, but for failed nodes known by a hash of 64 bits: a collision could hide a placement.
//! Source: Moffitt, MiniMalloc, ASPLOS 2023, for bounds of positions, splits and turns of orders.
//! Differs: MiniMalloc places buffers by increasing offset over all of time, so that decisions far apart alternate;
//! such a search put 43 of 60 cut rectangles together where this one does 55 (docs/measurements/memory-plan.md).

use super::instance::{Instance, Placement};
use super::node::{Item, Node, Valley};
use crate::index::{BufferId, IndexVec};
use crate::random::Random;
use std::cmp::Reverse;
use std::collections::HashSet;

/// Steps of the first turn, at least: enough for one descent of 400 buffers, which takes at most half of the square of
/// their number, and some returns. A step is a look at one buffer in one node.
const FIRST_TURN: u64 = 40_000;

/// Noise in an order, in its lengths: less leaves many instances unsolved, as all turns then begin with the same mistake.
const NOISE: u32 = 10;

/// Units that all buffers together may take: sums of two offsets fit into 32 bits.
const MOST_UNITS: u64 = 1 << 30;

/// Improves a placement within so many steps: the lower bound first, then capacities between it and the placement's.
pub(super) fn improve(instance: &Instance, placement: &mut Placement, steps: u64) {
    let Some(mut search) = Search::new(instance) else { return };
    let lower_bound = (instance.lower_bound_bytes / search.unit_bytes) as u32;
    if search.run(lower_bound, steps / 2) == Outcome::Found {
        placement.improve(search.placement(instance));
        return;
    }
    let mut below = lower_bound;
    // A try that ends without an answer counts as a failure: more room is more promising.
    while search.steps < steps {
        let above = placement.peak_bytes.div_ceil(search.unit_bytes) as u32;
        if above - below <= 1 {
            return;
        }
        let capacity = below + (above - below) / 2;
        let rest = steps - search.steps;
        match search.run(capacity, rest.div_ceil(4)) {
            Outcome::Found => placement.improve(search.placement(instance)),
            Outcome::Impossible | Outcome::OutOfSteps => below = capacity,
        }
    }
}

/// What became of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// All offsets are known.
    Found,
    /// No offsets do.
    Impossible,
    /// Unknown.
    OutOfSteps,
}

struct Search {
    /// The buffers that take memory, by their beginning.
    ids: Vec<BufferId>,
    items: Vec<Item>,
    /// The greatest common divisor of all sizes: other offsets need not be tried.
    unit_bytes: u64,
    /// For each order, the rank of each item.
    orders: Vec<Vec<u32>>,
    capacity: u32,
    offsets: Vec<u32>,
    steps: u64,
    /// The turn ends there.
    limit: u64,
    /// How high the buffers of each section are at least, in the last node that was checked there. Signed, as the
    /// maximum of signed numbers is one vector instruction on each CPU, and [`MOST_UNITS`] fit.
    tops: Vec<i32>,
    /// How often each item was in a section with too much in it, recent turns more than others.
    conflicts: Vec<u64>,
    /// Hashes of nodes that are impossible with this capacity.
    failed: HashSet<u64>,
    /// For each check: least offset and position of each item.
    stack: Vec<u64>,
}

impl Search {
    /// None if there is nothing to place, or in too many units.
    fn new(instance: &Instance) -> Option<Self> {
        let (requests, sizes) = (instance.requests, &instance.sizes);
        let mut ids: Vec<BufferId> = requests.ids().filter(|id| sizes[*id] > 0).collect();
        ids.sort_by_key(|id| (requests[*id].live, *id));
        let unit_bytes = ids.iter().fold(0, |unit, id| greatest_common_divisor(unit, sizes[*id]));
        let sum_bytes = sizes.iter().fold(0_u64, |sum, size| sum.saturating_add(*size));
        if unit_bytes == 0 || sum_bytes / unit_bytes > MOST_UNITS {
            return None;
        }
        let sections = sections(instance, &ids);
        let item = |(id, index): (&BufferId, u32)| {
            let live = requests[*id].live;
            let first = sections.partition_point(|section| *section < live.first) as u32;
            let last = sections.partition_point(|section| *section <= live.last) as u32 - 1;
            Item { first, last, size: (sizes[*id] / unit_bytes) as u32, index, ..Item::default() }
        };
        let count = ids.len();
        Some(Self {
            items: ids.iter().zip(0..).map(item).collect(),
            orders: orders(instance, &ids),
            ids,
            unit_bytes,
            capacity: 0,
            offsets: vec![0; count],
            steps: 0,
            limit: 0,
            tops: vec![0; sections.len()],
            conflicts: vec![0; count],
            failed: HashSet::new(),
            stack: vec![],
        })
    }

    /// The placement that was found.
    fn placement(&self, instance: &Instance) -> Placement {
        let mut offsets = IndexVec::filled(0_u64, instance.requests.len());
        for (id, offset) in self.ids.iter().zip(&self.offsets) {
            offsets[*id] = u64::from(*offset) * self.unit_bytes;
        }
        let peak_bytes = self.ids.iter().map(|id| offsets[*id] + instance.sizes[*id]).max().unwrap_or(0);
        Placement { peak_bytes, offsets }
    }

    /// Turns until there is an answer, or so many steps are done.
    fn run(&mut self, capacity: u32, steps: u64) -> Outcome {
        self.capacity = capacity;
        self.failed.clear();
        let end = self.steps + steps;
        let mut random = Random::new(1);
        let count = self.items.len() as u64;
        let mut turn_steps = FIRST_TURN.max(count * count / 4);
        for turn in 0.. {
            self.limit = end.min(self.steps + turn_steps);
            let items = self.ranked(turn, &mut random);
            let outcome = self.solve_parts(Node { items, heights: vec![0; self.tops.len()], low: 0 });
            if outcome != Outcome::OutOfSteps || self.steps >= end {
                return outcome;
            }
            self.conflicts.iter_mut().for_each(|count| *count -= *count / 4);
            // After a turn with each order.
            if (turn + 1) % (2 * self.orders.len()) == 0 {
                turn_steps += turn_steps / 2;
            }
        }
        Outcome::OutOfSteps
    }

    /// The items with their ranks for a turn: by an order, or by conflicts, in turn, both with noise.
    fn ranked(&self, turn: usize, random: &mut Random) -> Vec<Item> {
        let count = self.items.len() as u32;
        let mut keys: Vec<(u64, u32)> = if turn.is_multiple_of(2) {
            let order = &self.orders[turn / 2 % self.orders.len()];
            order.iter().zip(0..).map(|(rank, i)| (u64::from(rank + random.below(NOISE * count)), i)).collect()
        } else {
            let noisy = |count: u64| count.saturating_mul(u64::from(1000 + random.below(1000)));
            self.conflicts.iter().copied().map(noisy).map(|key| u64::MAX - key).zip(0..).collect()
        };
        keys.sort_unstable();
        let mut items = self.items.clone();
        for ((_, i), rank) in keys.into_iter().zip(0..) {
            items[i as usize].rank = rank;
        }
        items
    }

    /// Solves the parts of a node between which no item is live: the fullest first, as it is the likeliest to fail.
    fn solve_parts(&mut self, node: Node) -> Outcome {
        if node.items.is_empty() {
            return Outcome::Found;
        }
        if self.steps > self.limit {
            return Outcome::OutOfSteps;
        }
        if self.is_too_full(&node) {
            return Outcome::Impossible;
        }
        let ends = node.part_ends();
        if ends.len() == 1 {
            return self.solve(node);
        }
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let mut parts: Vec<(i32, usize, usize)> = starts.zip(&ends).map(|(start, end)| (0, start, *end)).collect();
        for (room, start, end) in &mut parts {
            let (first, last) = node.sections_of(*start..*end);
            *room = self.capacity as i32 - self.tops[first..=last].iter().copied().max().unwrap_or(0);
        }
        parts.sort_unstable();
        for (_, start, end) in parts {
            let outcome = self.solve(node.part(start..end));
            if outcome != Outcome::Found {
                return outcome;
            }
        }
        Outcome::Found
    }

    /// Solves a node in which items are live everywhere.
    fn solve(&mut self, node: Node) -> Outcome {
        if let [item] = node.items[..] {
            self.offsets[item.index as usize] = item.offset;
            return Outcome::Found;
        }
        let hash = node.hash();
        if self.failed.contains(&hash) {
            return Outcome::Impossible;
        }
        let outcome = self.decide(node);
        if outcome == Outcome::Impossible {
            self.failed.insert(hash);
        }
        outcome
    }

    /// Tries the options of one valley after another.
    fn decide(&mut self, mut node: Node) -> Outcome {
        while let Some(Valley { height, mut options }) = node.narrowest(&self.tops) {
            options.sort_unstable_by_key(|option| node.items[*option].rank);
            for option in &options {
                let chosen = node.items[*option];
                self.offsets[chosen.index as usize] = height;
                let outcome = self.solve_parts(node.with(chosen));
                if outcome != Outcome::Impossible {
                    return outcome;
                }
            }
            if !node.without(&options, height) || self.is_too_full(&node) {
                return Outcome::Impossible;
            }
        }
        Outcome::Impossible
    }

    /// Whether the items of a section exceed the capacity, each being no lower than it can be, nor below one that can
    /// be lower than it.
    fn is_too_full(&mut self, node: &Node) -> bool {
        self.steps += node.items.len() as u64;
        let sections = node.low as usize..node.low as usize + node.heights.len();
        self.tops[sections.clone()].fill(0);
        self.stack.clear();
        self.stack.extend(node.items.iter().zip(0..).map(|(item, i)| u64::from(item.least_offset()) << 32 | i));
        self.stack.sort_unstable();
        for entry in &self.stack {
            let (offset, item) = ((entry >> 32) as i32, &node.items[*entry as u32 as usize]);
            for top in &mut self.tops[item.first as usize..=item.last as usize] {
                *top = (*top).max(offset) + item.size as i32;
            }
        }
        let Some(full) = self.tops[sections].iter().position(|top| *top > self.capacity as i32) else { return false };
        let full = node.low + full as u32;
        for item in node.items.iter().filter(|item| item.first <= full && full <= item.last) {
            self.conflicts[item.index as usize] += 1;
        }
        true
    }
}

/// For each order of turns, the rank of each buffer, which decides between the options of a valley.
fn orders(instance: &Instance, ids: &[BufferId]) -> Vec<Vec<u32>> {
    let key = |order: usize, id: BufferId| {
        let live = instance.requests[id].live;
        let (size, length) = (instance.sizes[id], u64::from(live.last - live.first) + 1);
        let (pressure, area) = (instance.pressures[id], size.saturating_mul(length));
        match order {
            0 => [pressure, area, length],
            1 => [length, area, pressure],
            2 => [area, pressure, length],
            _ => [size, pressure, length],
        }
    };
    let ranks = |order: usize| {
        let mut sorted: Vec<usize> = (0..ids.len()).collect();
        sorted.sort_by_key(|i| (Reverse(key(order, ids[*i])), *i));
        let mut ranks = vec![0; ids.len()];
        sorted.into_iter().zip(0..).for_each(|(i, rank)| ranks[i] = rank);
        ranks
    };
    (0..4).map(ranks).collect()
}

/// The positions at which something begins that no other begins after before something ends: buffers that are live
/// together are so at one of these.
fn sections(instance: &Instance, ids: &[BufferId]) -> Vec<u32> {
    let mut firsts: Vec<u32> = ids.iter().map(|id| instance.requests[*id].live.first).collect();
    let mut lasts: Vec<u32> = ids.iter().map(|id| instance.requests[*id].live.last).collect();
    firsts.sort_unstable();
    firsts.dedup();
    lasts.sort_unstable();
    let ends_before = |first: u32, next: u32| {
        let end = lasts.partition_point(|last| *last < first);
        lasts.get(end).is_some_and(|last| *last < next)
    };
    let nexts = firsts.iter().skip(1).copied().map(Some).chain([None]);
    let is_section = |(first, next): &(u32, Option<u32>)| next.is_none_or(|next| ends_before(*first, next));
    firsts.iter().copied().zip(nexts).filter(is_section).map(|(first, _)| first).collect()
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::liveness::Interval;
    use crate::plan::instance::Request;
    use crate::plan::made::cut;

    /// Whether some order of buffers, each put onto what is live with it, stays within the capacity.
    fn fits(rest: &[Request], placed: &mut Vec<(Request, u64)>, capacity: u64) -> bool {
        rest.is_empty()
            || rest.iter().enumerate().any(|(i, next)| {
                let below = placed.iter().filter(|(other, _)| other.live.overlaps(next.live));
                let offset = below.map(|(other, offset)| offset + other.size_bytes).max().unwrap_or(0);
                let others: Vec<Request> = rest.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, r)| *r).collect();
                placed.push((*next, offset));
                let fit = offset + next.size_bytes <= capacity && fits(&others, placed, capacity);
                placed.pop();
                fit
            })
    }

    /// Lifetimes and sizes that fill 9 units over 14 positions, but for three that are gone.
    fn nearly_full(random: &mut Random) -> IndexVec<BufferId, Request> {
        let mut parts = cut(random, 11, 9, 14);
        for left in [11, 10, 9] {
            parts.swap_remove(random.below(left) as usize);
        }
        parts.into_iter().collect()
    }

    /// Greedy orders solve most of these as well: here the search is alone.
    #[test]
    fn search_finds_what_fits_and_nothing_else() {
        let mut random = Random::new(6);
        let mut returns = 0;
        for _ in 0..8000 {
            let requests = nearly_full(&mut random);
            let instance = Instance::new(&requests, 1);
            let all: Vec<Request> = requests.iter().copied().collect();
            let mut search = Search::new(&instance).expect("sizes are not 0");
            let capacity = instance.lower_bound_bytes;
            let outcome = search.run((capacity / search.unit_bytes) as u32, 100_000);
            let expected = if fits(&all, &mut vec![], capacity) { Outcome::Found } else { Outcome::Impossible };
            assert_eq!(outcome, expected, "{all:?} in {capacity}");
            assert!(outcome == Outcome::Impossible || search.placement(&instance).peak_bytes <= capacity);
            returns += usize::from(!search.failed.is_empty());
        }
        assert!(returns > 0, "the search never had to return");
    }

    #[test]
    fn sections_are_where_no_more_begins_before_an_end() {
        let request = |first, last| Request { live: Interval::new(first, last), size_bytes: 1 };
        let requests: IndexVec<BufferId, Request> =
            [request(0, 4), request(2, 3), request(4, 9), request(5, 5), request(7, 9), request(8, 8)]
                .into_iter()
                .collect();
        let ids: Vec<BufferId> = requests.ids().collect();
        assert_eq!(sections(&Instance::new(&requests, 1), &ids), [2, 4, 5, 8]);
    }
}
