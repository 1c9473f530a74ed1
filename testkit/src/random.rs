//! A small seeded generator, the same on every machine, and the seeds of a test.

use std::ops::Range;

use crate::device::full_is_asked_for;

/// The seeds of `MONOPOUR_TEST_SEEDS=100..200`.
///
/// # Panics
/// When the variable is not such a range.
pub fn asked_seeds() -> Option<Range<u64>> {
    let asked = std::env::var("MONOPOUR_TEST_SEEDS").ok()?;
    let range = asked.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    Some(range.unwrap_or_else(|| panic!("MONOPOUR_TEST_SEEDS is a..b, not {asked}")))
}

/// The seeds of a random test: those of the variable, else all in the full mode, else a sample.
///
/// # Panics
/// As [`asked_seeds`].
pub fn seeds(sample: u64, all: u64) -> Range<u64> {
    asked_seeds().unwrap_or(0..if full_is_asked_for() { all } else { sample })
}

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// A generator whose whole output follows from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }
    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// A number below `bound`; 0 for a bound of 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64 }
    }
    /// A number in [-1, 1).
    pub fn symmetric(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
    /// One of the elements of a slice that is not empty.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        assert!(!items.is_empty(), "something to pick from");
        &items[self.below(items.len() as u64) as usize]
    }
}
