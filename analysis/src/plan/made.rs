//! Buffers with a known best plan, for tests and measurements.

use super::instance::Request;
use crate::liveness::Interval;
use crate::random::Random;

/// A rectangle of `bytes` by `positions`, cut again and again: the buffers fit into `bytes` without a gap.
pub fn cut(random: &mut Random, count: usize, bytes: u32, positions: u32) -> Vec<Request> {
    let mut parts = vec![(0, positions, bytes)];
    while parts.len() < count {
        let i = random.below(parts.len() as u32) as usize;
        let (first, end, size) = parts[i];
        if random.percent(50) && size > 1 {
            let lower = 1 + random.below(size - 1);
            parts[i].2 = lower;
            parts.push((first, end, size - lower));
        } else if end - first > 1 {
            let middle = first + 1 + random.below(end - first - 1);
            parts[i].1 = middle;
            parts.push((middle, end, size));
        }
    }
    let request = |(first, end, size)| Request { live: Interval::new(first, end - 1), size_bytes: u64::from(size) };
    parts.into_iter().map(request).collect()
}
