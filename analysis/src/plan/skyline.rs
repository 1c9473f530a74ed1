//! The height of what is placed, over time, for buffers that never go below another.

use super::instance::Request;
use crate::index::{BufferId, IndexVec};
use crate::liveness::Interval;

/// A segment tree over the positions at which a buffer begins; heights only grow. Its leaves are in the second half.
pub(super) struct Skyline {
    points: Vec<u32>,
    /// The greatest height in the interval of a node, as far as it or a node below was raised.
    most: Vec<u64>,
    /// The height of the whole interval of a node.
    whole: Vec<u64>,
}

impl Skyline {
    /// Nothing placed at any position of `requests`.
    pub(super) fn over(requests: &IndexVec<BufferId, Request>) -> Self {
        let mut points: Vec<u32> = requests.iter().map(|request| request.live.first).collect();
        points.sort_unstable();
        points.dedup();
        let nodes = 2 * points.len();
        Self { points, most: vec![0; nodes], whole: vec![0; nodes] }
    }

    /// The leaves of an interval that begins at a point: the first, and the one behind the last.
    fn leaves(&self, live: Interval) -> (usize, usize) {
        let leaf = |behind: usize| self.points.len() + behind;
        (
            leaf(self.points.partition_point(|point| *point < live.first)),
            leaf(self.points.partition_point(|point| *point <= live.last)),
        )
    }

    /// The greatest height in an interval.
    pub(super) fn height(&self, live: Interval) -> u64 {
        let (first, end) = self.leaves(live);
        let inside = covers(first, end).map(|node| self.most[node]);
        let around = [first, end - 1].into_iter().flat_map(above).map(|node| self.whole[node]);
        inside.chain(around).max().unwrap_or(0)
    }

    /// The height of an interval, no less than the greatest in it.
    pub(super) fn raise(&mut self, live: Interval, height: u64) {
        let (first, end) = self.leaves(live);
        for node in covers(first, end) {
            self.most[node] = height;
            self.whole[node] = height;
        }
        for node in [first, end - 1].into_iter().flat_map(above) {
            self.most[node] = self.most[node].max(self.most[2 * node]).max(self.most[2 * node + 1]);
        }
    }
}

/// The nodes that together cover the leaves from `first` to before `end`.
pub(super) fn covers(first: usize, end: usize) -> impl Iterator<Item = usize> {
    let (mut from, mut to) = (first, end);
    std::iter::from_fn(move || {
        (from < to).then(|| {
            let pair = [(from % 2 == 1).then_some(from), (to % 2 == 1).then(|| to - 1)];
            (from, to) = (from.div_ceil(2), to / 2);
            pair
        })
    })
    .flatten()
    .flatten()
}

/// The nodes above a node, from below.
pub(super) fn above(node: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(node / 2), |node| Some(node / 2)).take_while(|node| *node > 0)
}
