//! A tiny seeded generator (SplitMix64) for shuffled orders and for tests.

/// A stream of numbers that depends on its seed only.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 if the bound is 0.
    pub const fn below(&mut self, bound: u32) -> u32 {
        if bound == 0 { 0 } else { (self.next() % bound as u64) as u32 }
    }

    /// True about `percent` times of a hundred.
    pub const fn percent(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }
}
