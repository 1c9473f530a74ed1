//! Tables by handles.

use crate::Op;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Hashes a pointer by one multiplication: the driver looks up every op that it visits.
#[derive(Clone, Debug, Default)]
pub struct PointerHasher(u64);

impl Hasher for PointerHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0u8; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
    fn write_u64(&mut self, word: u64) {
        // Fibonacci hashing; the rotation brings the mixed upper bits to where the table looks.
        self.0 = (self.0 ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(26);
    }
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

/// A map by handles, for what is looked up for every op. Its order is that of addresses: never let it reach output.
pub type HandleMap<K, V> = HashMap<K, V, BuildHasherDefault<PointerHasher>>;
pub(super) type OpMap<V> = HandleMap<Op, V>;
