//! Which op has which lowering: an open table. Another crate adds its ops to [`Registry::default`].

use super::builder::{Builder, Failure};
use super::node::NodeContext;
use super::operand::Operand;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// The results of a node; those that are not wanted at the end may be left out.
pub type Results<'c> = Result<Vec<Operand<'c>>, Failure>;

/// Makes the results of a node.
pub type Lowering = for<'c> fn(&mut Builder<'c>, &NodeContext<'_, 'c>) -> Results<'c>;

/// A lowering, for some versions of an op.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Versions of the operator set.
    pub versions: RangeInclusive<i64>,
    /// The lowering.
    pub lowering: Lowering,
    /// What of the op is not supported, a sentence for users; empty: nothing.
    pub missing: &'static str,
}

/// The table.
#[derive(Clone, Debug)]
pub struct Registry(BTreeMap<(String, String), Vec<Entry>>);

impl Registry {
    /// A table without ops; [`Registry::default`] has all of this crate.
    pub fn new() -> Self {
        Self(BTreeMap::new())
    }
    /// Adds an op of a domain, empty for ai.onnx. Of several entries for a version the last one is taken.
    pub fn add(
        &mut self,
        domain: &str,
        op: &str,
        versions: RangeInclusive<i64>,
        lowering: Lowering,
        missing: &'static str,
    ) {
        let entries = self.0.entry((domain.to_owned(), op.to_owned())).or_default();
        entries.push(Entry { versions, lowering, missing });
    }
    /// Adds an op of ai.onnx with one lowering for all versions from `since` on.
    pub fn op(&mut self, op: &str, since: i64, lowering: Lowering, missing: &'static str) {
        self.add("", op, since..=i64::MAX, lowering, missing);
    }
    /// The lowering of an op of a version.
    pub fn get(&self, domain: &str, op: &str, version: i64) -> Option<&Entry> {
        let entries = self.0.get(&(domain.to_owned(), op.to_owned()))?;
        entries.iter().rev().find(|e| e.versions.contains(&version))
    }
    /// All entries: domain, op, entry.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &str, &Entry)> {
        self.0.iter().flat_map(|((domain, op), entries)| entries.iter().map(move |e| (domain.as_str(), op.as_str(), e)))
    }
}
