//! Disjoint sets of values (union-find by size, with path halving).

use crate::index::{Id, IndexVec, ValueId};

/// A partition of values. Sets only merge; all operations are amortised near-constant.
#[derive(Clone, Debug)]
pub struct AliasSets {
    parents: IndexVec<ValueId, ValueId>,
    sizes: IndexVec<ValueId, u32>,
}

impl AliasSets {
    /// Each value in a set of its own.
    pub fn new(len: usize) -> Self {
        Self { parents: (0..len).map(ValueId::from_index).collect(), sizes: IndexVec::filled(1, len) }
    }

    /// Put each of the values in a set of its own. All values of their sets must be among them.
    pub fn reset(&mut self, values: &[ValueId]) {
        for &value in values {
            (self.parents[value], self.sizes[value]) = (value, 1);
        }
    }

    /// The representative of the value's set.
    pub fn find(&mut self, value: ValueId) -> ValueId {
        let mut current = value;
        while self.parents[current] != current {
            let next = self.parents[self.parents[current]];
            self.parents[current] = next;
            current = next;
        }
        current
    }

    /// The representative of the value's set, without path halving (O(log n): union is by size).
    pub fn find_unchanged(&self, value: ValueId) -> ValueId {
        let mut current = value;
        while self.parents[current] != current {
            current = self.parents[current];
        }
        current
    }

    /// Merge two sets and return the representative of the union.
    pub fn union(&mut self, a: ValueId, b: ValueId) -> ValueId {
        let (a, b) = (self.find(a), self.find(b));
        if a == b {
            return a;
        }
        let (large, small) = if self.sizes[a] >= self.sizes[b] { (a, b) } else { (b, a) };
        self.parents[small] = large;
        self.sizes[large] += self.sizes[small];
        large
    }
}
