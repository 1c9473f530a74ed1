//! Lower the highest buffer of a placement, again and again.
//!
//! ```text
//! x is on top: it takes the place of a and b, a finds a gap, b takes the place of c, c finds a gap
//! ```
//!
//! A buffer without a gap below the peak takes the place of those that matter least there (size times lifetime, more for
//! each time that they had to go), and these look for another place in turn.
//! Ensures: the placement is valid, and its peak is no higher than before.
//! Limits: ends at the lower bound, when a chain gets longer than [`LONGEST_CHAIN`], or when all allowed pairs were looked at.

use super::greedy::Fit;
use super::instance::{Instance, Placement};
use super::placed::Placed;
use crate::index::{BufferId, IndexVec};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Moves for one buffer on top: chains among 40,000 buffers that end mostly do so within some hundred.
const LONGEST_CHAIN: usize = 4_000;

/// Moves for each buffer in a chain: of few buffers, all were soon moved in vain.
const MOVES_PER_BUFFER: usize = 20;

/// A placement under repair.
pub(super) struct Repair<'a> {
    instance: &'a Instance<'a>,
    placement: &'a mut Placement,
    placed: Placed,
    /// How often each buffer had to go.
    gone: IndexVec<BufferId, u64>,
    /// Pairs that may still be looked at.
    budget: u64,
}

impl<'a> Repair<'a> {
    pub(super) fn new(instance: &'a Instance<'a>, placement: &'a mut Placement, budget: u64) -> Self {
        let mut placed = Placed::among(instance.requests, &instance.sizes);
        for id in instance.requests.ids() {
            placed.add(id, instance.requests[id].live, placement.offsets[id], instance.sizes[id]);
        }
        let gone = IndexVec::filled(0, instance.requests.len());
        Self { instance, placement, placed, gone, budget }
    }

    fn top(&self, id: BufferId) -> u64 {
        self.placement.offsets[id].saturating_add(self.instance.sizes[id])
    }

    /// Lowers the peak as long as it can; the pairs that are left.
    pub(super) fn run(mut self) -> u64 {
        loop {
            let highest = self.instance.requests.ids().max_by_key(|id| (self.top(*id), Reverse(*id)));
            let Some(highest) = highest else { return self.budget };
            self.placement.peak_bytes = self.top(highest);
            if self.placement.peak_bytes == self.instance.lower_bound_bytes || !self.lower(highest) {
                return self.budget;
            }
        }
    }

    /// Whether the highest buffer, and all that was moved for it, is now below its former top; else nothing changed.
    fn lower(&mut self, highest: BufferId) -> bool {
        let mut former: BTreeMap<BufferId, u64> = BTreeMap::new();
        let mut out = vec![];
        self.take_out(highest, &mut out, &mut former);
        for _ in 0..LONGEST_CHAIN.min(MOVES_PER_BUFFER * self.instance.requests.len()) {
            // The largest first: the others fit around it.
            let weight = |id: BufferId| (self.weight(id), id);
            let Some(next) = (0..out.len()).max_by_key(|i| weight(out[*i])) else { return true };
            let next = out.swap_remove(next);
            let offset = self.offset_below(next);
            for id in self.at(next, offset) {
                self.gone[id] += 1;
                self.take_out(id, &mut out, &mut former);
            }
            self.put(next, offset);
            if self.budget == 0 {
                break;
            }
        }
        for id in former.keys().filter(|id| !out.contains(id)) {
            self.placed.remove(*id, self.instance.requests[*id].live);
        }
        former.into_iter().for_each(|(id, offset)| self.put(id, offset));
        false
    }

    fn put(&mut self, id: BufferId, offset: u64) {
        self.placement.offsets[id] = offset;
        self.placed.add(id, self.instance.requests[id].live, offset, self.instance.sizes[id]);
    }

    fn take_out(&mut self, id: BufferId, out: &mut Vec<BufferId>, former: &mut BTreeMap<BufferId, u64>) {
        former.entry(id).or_insert(self.placement.offsets[id]);
        self.placed.remove(id, self.instance.requests[id].live);
        out.push(id);
    }

    /// What it costs that a buffer has to go.
    fn weight(&self, id: BufferId) -> u64 {
        let live = self.instance.requests[id].live;
        let area = self.instance.sizes[id].saturating_mul(u64::from(live.last - live.first) + 1);
        area.saturating_mul(1 + self.gone[id])
    }

    /// An offset with a top below the peak: that of a gap, or where what has to go costs least.
    fn offset_below(&mut self, id: BufferId) -> u64 {
        let (live, size) = (self.instance.requests[id].live, self.instance.sizes[id]);
        let offset = self.placed.gap(live, size, Fit::First);
        self.budget = self.budget.saturating_sub(self.placed.looked_at());
        let peak_bytes = self.placement.peak_bytes;
        if offset.saturating_add(size) < peak_bytes {
            return offset;
        }
        let around: Vec<(u64, u64, u64)> =
            self.placed.entries(live).map(|entry| (entry.offset, entry.end, self.weight(entry.id))).collect();
        self.budget = self.budget.saturating_sub(around.len() as u64);
        let mut begins: Vec<(u64, u64)> = around.iter().map(|(offset, _, weight)| (*offset, *weight)).collect();
        let mut ends: Vec<(u64, u64)> = around.iter().map(|(_, end, weight)| (*end, *weight)).collect();
        begins.sort_unstable();
        ends.sort_unstable();
        // Between these two runs are those that an offset meets: begun before its top, and not ended at it.
        let (mut begun, mut ended) = (begins.iter().peekable(), ends.iter().peekable());
        let (mut cost, mut best) = (0_u128, (u128::MAX, 0));
        for offset in std::iter::once(0).chain(ends.iter().map(|(end, _)| *end)) {
            if offset.saturating_add(size) >= peak_bytes {
                break;
            }
            while let Some((_, weight)) = begun.next_if(|(begin, _)| *begin < offset + size) {
                cost += u128::from(*weight);
            }
            while let Some((_, weight)) = ended.next_if(|(end, _)| *end <= offset) {
                cost -= u128::from(*weight);
            }
            best = best.min((cost, offset));
        }
        best.1
    }

    /// The buffers that meet another one, were it at this offset.
    fn at(&self, id: BufferId, offset: u64) -> Vec<BufferId> {
        let end = offset + self.instance.sizes[id];
        let entries = self.placed.entries(self.instance.requests[id].live);
        entries.filter(|entry| entry.offset < end && offset < entry.end).map(|entry| entry.id).collect()
    }
}
