//! Hash maps keyed by handles.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Hashes a pointer so that objects adjacent in memory are adjacent in the table: a pass visits ops in that order, and a table
/// larger than the caches is read line by line, not at random.
#[derive(Clone, Debug, Default)]
pub struct PointerHasher(u64);

/// 2^64 by the golden ratio: Fibonacci hashing.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
/// Each page is placed as a whole.
const PAGE_BITS: u32 = 12;
/// No op is smaller than this.
const OP_BITS: u32 = 6;

impl Hasher for PointerHasher {
    fn finish(&self) -> u64 {
        let place = (self.0 >> OP_BITS) & ((1 << (PAGE_BITS - OP_BITS)) - 1);
        let page = (self.0 >> PAGE_BITS).wrapping_mul(GOLDEN).rotate_left(26);
        // The table takes the position from the lower bits, and the tag from the upper seven: those of the pointer in its page.
        page.wrapping_add(place).wrapping_add(self.0 << 53)
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0u8; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
    fn write_u64(&mut self, word: u64) {
        // A second key part, such as an operand index, moves the page.
        self.0 ^= if self.0 == 0 { word } else { word.wrapping_mul(GOLDEN).rotate_left(26) };
    }
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

/// A hash map by handles. Its order is that of addresses: never let it reach output.
pub type HandleMap<K, V> = HashMap<K, V, BuildHasherDefault<PointerHasher>>;

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, BuildHasherDefault};

    use super::{HandleMap, PointerHasher};

    fn hash<T: std::hash::Hash>(key: T) -> u64 {
        BuildHasherDefault::<PointerHasher>::default().hash_one(key)
    }

    /// Keys per stretch of 64 slots in a table that is half full, at most.
    fn fullest(keys: impl Iterator<Item = u64>) -> usize {
        let mut count = vec![0; 2 * KEYS / 64];
        keys.for_each(|hash| count[(hash as usize % (2 * KEYS)) / 64] += 1);
        count.into_iter().max().unwrap_or(0)
    }

    const KEYS: usize = 1 << 14;
    const FIRST: usize = 0x7f3a_1c40_2000;

    #[test]
    fn pointers_at_any_distance_spread() {
        // 32 is the mean.
        for stride in [64, 80, 96, 128, 1000, 1024, 2048, 4096, 1 << 14, 1 << 16, 1 << 20] {
            let fullest = fullest((0..KEYS).map(|i| hash(FIRST + i * stride)));
            assert!(fullest <= 6 * 64, "{fullest} of {KEYS} keys at a distance of {stride} bytes in 64 slots");
        }
    }

    #[test]
    fn operands_of_one_op_spread() {
        let fullest = fullest((0..KEYS).map(|i| hash((FIRST, i))));
        assert!(fullest <= 6 * 64, "{fullest} of {KEYS} operands in 64 slots");
    }

    #[test]
    fn neighbours_stand_in_a_row_and_are_told_apart() {
        let [a, b] = [hash(FIRST), hash(FIRST + 64)];
        assert_eq!((b - a) & 0xFFFF, 1, "slots of neighbours");
        assert_ne!(hash(FIRST) >> 57, hash(FIRST + 16) >> 57, "two results of one op");
        let map: HandleMap<usize, usize> = (0..KEYS).map(|i| (FIRST + 16 * i, i)).collect();
        assert!((0..KEYS).all(|i| map[&(FIRST + 16 * i)] == i));
    }
}
