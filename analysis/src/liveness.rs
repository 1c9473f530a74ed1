//! Lifetimes as intervals of positions in a linear order of operations.

/// The positions at which a buffer is live: from its first to its last use, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interval {
    /// The first position.
    pub first: u32,
    /// The last position; never before the first.
    pub last: u32,
}

impl Interval {
    /// The interval of these two positions, in either order.
    pub const fn new(a: u32, b: u32) -> Self {
        if a <= b { Self { first: a, last: b } } else { Self { first: b, last: a } }
    }

    /// The interval of all positions, if there is one.
    pub fn hull(positions: impl IntoIterator<Item = u32>) -> Option<Self> {
        positions.into_iter().fold(None, |hull: Option<Self>, position| {
            Some(hull.map_or(Self::new(position, position), |hull| Self {
                first: hull.first.min(position),
                last: hull.last.max(position),
            }))
        })
    }

    /// Whether the intervals have a common position.
    pub const fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// Widen to a whole loop: a buffer that is allocated outside the loop and used inside it must keep its contents
    /// from one iteration to the next.
    pub fn widened_to_loop(self, body: Self) -> Self {
        let allocated_inside = body.first <= self.first && self.last <= body.last;
        if allocated_inside || !self.overlaps(body) {
            return self;
        }
        Self { first: self.first, last: self.last.max(body.last) }
    }
}

/// The most bytes that are live at one position: a lower bound for any plan.
///
/// `requests`: interval and size in bytes. Time O(n log n).
pub fn peak_bytes(requests: impl IntoIterator<Item = (Interval, u64)>) -> u64 {
    // Ends after starts at the same position: both ends are included.
    let mut events: Vec<(u32, bool, u64)> = requests
        .into_iter()
        .flat_map(|(interval, bytes)| [(interval.first, false, bytes), (interval.last, true, bytes)])
        .collect();
    events.sort_unstable();
    let (mut live, mut peak) = (0_u64, 0_u64);
    for (_, ends, bytes) in events {
        live = if ends { live.saturating_sub(bytes) } else { live.saturating_add(bytes) };
        peak = peak.max(live);
    }
    peak
}
