//! What is to be placed, and a placement.

use crate::index::{BufferId, IndexVec};
use crate::liveness::{Interval, peak_bytes};

/// A buffer to be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its lifetime.
    pub live: Interval,
    /// Its size.
    pub size_bytes: u64,
}

/// What is to be placed.
pub(super) struct Instance<'a> {
    pub(super) requests: &'a IndexVec<BufferId, Request>,
    /// Sizes as multiples of the alignment.
    pub(super) sizes: IndexVec<BufferId, u64>,
    /// For each buffer, the most bytes that are live at a position of its own.
    pub(super) pressures: IndexVec<BufferId, u64>,
    pub(super) lower_bound_bytes: u64,
}

impl<'a> Instance<'a> {
    pub(super) fn new(requests: &'a IndexVec<BufferId, Request>, align: u64) -> Self {
        let rounded = |bytes: u64| bytes.div_ceil(align).saturating_mul(align);
        let sizes: IndexVec<BufferId, u64> = requests.iter().map(|request| rounded(request.size_bytes)).collect();
        let lower_bound_bytes =
            peak_bytes(requests.iter().zip(sizes.iter()).map(|(request, &bytes)| (request.live, bytes)));
        Self { requests, pressures: pressures(requests, &sizes), sizes, lower_bound_bytes }
    }
}

/// An offset for each buffer.
pub(super) struct Placement {
    pub(super) peak_bytes: u64,
    pub(super) offsets: IndexVec<BufferId, u64>,
}

impl Placement {
    /// Takes the other one if it needs less.
    pub(super) fn improve(&mut self, other: Self) {
        if other.peak_bytes < self.peak_bytes {
            *self = other;
        }
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
