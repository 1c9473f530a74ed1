//! The state at a point: holders and aliases.

use std::collections::{BTreeMap, BTreeSet};

use crate::index::ValueId;
use crate::ownership::Ownership;

/// Memrefs that may alias, both ways. Memory that is never freed is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pairs {
    of: BTreeMap<ValueId, BTreeSet<ValueId>>,
}

impl Pairs {
    pub fn of(&self, value: ValueId) -> impl Iterator<Item = ValueId> {
        self.of.get(&value).into_iter().flatten().copied()
    }

    pub fn contains(&self, a: ValueId, b: ValueId) -> bool {
        self.of.get(&a).is_some_and(|with| with.contains(&b))
    }

    pub fn add(&mut self, a: ValueId, b: ValueId) {
        if a != b {
            self.of.entry(a).or_default().insert(b);
            self.of.entry(b).or_default().insert(a);
        }
    }

    /// `new` may alias `old` and all aliases of `old`.
    pub fn alias(&mut self, new: ValueId, old: ValueId) {
        let with: Vec<ValueId> = self.of(old).collect();
        self.add(new, old);
        with.into_iter().for_each(|other| self.add(new, other));
    }

    pub fn remove(&mut self, value: ValueId) {
        for other in self.of.remove(&value).unwrap_or_default() {
            if let Some(with) = self.of.get_mut(&other) {
                with.remove(&value);
                if with.is_empty() {
                    self.of.remove(&other);
                }
            }
        }
    }

    /// The pairs with both members kept.
    pub fn kept(&self, keep: impl Fn(ValueId) -> bool) -> Self {
        let of = self.of.iter().filter(|(value, _)| keep(**value)).filter_map(|(value, with)| {
            let with: BTreeSet<ValueId> = with.iter().copied().filter(|other| keep(*other)).collect();
            (!with.is_empty()).then_some((*value, with))
        });
        Self { of: of.collect() }
    }

    /// Adds all pairs of another set.
    pub fn extend(&mut self, other: &Self) {
        for (value, with) in &other.of {
            self.of.entry(*value).or_default().extend(with);
        }
    }
}

/// The state at a point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// Memrefs of this region that are holders, at least sometimes.
    pub held: BTreeMap<ValueId, Ownership<u32>>,
    pub pairs: Pairs,
}

impl State {
    /// The number of its entries.
    pub fn size(&self) -> u64 {
        (self.held.len() + self.pairs.of.values().map(BTreeSet::len).sum::<usize>()) as u64
    }

    pub fn own(&self, value: ValueId) -> Ownership<u32> {
        self.held.get(&value).copied().unwrap_or(Ownership::NotOwned)
    }

    pub fn set(&mut self, value: ValueId, own: Ownership<u32>) {
        if own == Ownership::NotOwned {
            self.held.remove(&value);
        } else {
            self.held.insert(value, own);
        }
    }
}
