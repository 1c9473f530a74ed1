//! Possible aliases of each tensor of a random function: an upper bound, tracked while the text is written.
//!
//! Used only to leave out constructs that MLIR 22.1.8 is known to get wrong ([`super::More::defects`]).

use super::{Generator, Scope, Ty};
use std::collections::{BTreeMap, BTreeSet};

/// The origin of a tensor's memory.
#[derive(Clone, Debug, Default)]
struct Origin {
    /// Numbers of its possible allocations.
    memory: BTreeSet<u32>,
    /// The loops around the operation that defined its contents; a view has those of its source.
    loops: usize,
}

/// The origins of a function's tensors, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Origins {
    by_name: BTreeMap<String, Origin>,
    allocations: u32,
}

impl Origins {
    fn memory(&self, names: &[&str]) -> BTreeSet<u32> {
        names.iter().filter_map(|n| self.by_name.get(*n)).flat_map(|o| o.memory.iter().copied()).collect()
    }

    fn loops(&self, names: &[&str]) -> usize {
        names.iter().map(|n| self.by_name.get(*n).map_or(0, |o| o.loops)).min().unwrap_or(0)
    }

    /// Values of a loop of blocks are live after it, where they no longer are redefined per iteration.
    fn leave(&mut self, names: impl Iterator<Item = String>, loops: usize) {
        for name in names {
            if let Some(origin) = self.by_name.get_mut(&name) {
                origin.loops = origin.loops.min(loops);
            }
        }
    }

    /// The memory of these tensors, or new memory if there are none.
    fn add(&mut self, name: &str, from: &[&str], loops: usize) {
        let mut memory = self.memory(from);
        if memory.is_empty() {
            self.allocations += 1;
            memory.insert(self.allocations);
        }
        self.by_name.insert(name.to_owned(), Origin { memory, loops });
    }
}

impl Generator<'_> {
    /// A tensor whose contents are defined here, perhaps in the memory of some of `from`.
    pub(super) fn made(&mut self, scope: &mut Scope, name: String, ty: Ty, from: &[&str]) {
        self.origins.add(&name, from, scope.loops);
        scope.tensors.push((name, ty));
    }

    /// A view of one of `from`.
    pub(super) fn viewed(&mut self, scope: &mut Scope, name: String, ty: Ty, from: &[&str]) {
        let loops = self.origins.loops(from);
        self.origins.add(&name, from, loops);
        scope.tensors.push((name, ty));
    }

    /// A result of regions or blocks.
    pub(super) fn joined(&mut self, scope: &mut Scope, name: String, ty: Ty, from: &[&str]) {
        self.origins.add(&name, from, 0);
        scope.tensors.push((name, ty));
    }

    /// Leaves a loop of blocks, which `scope` no longer counts.
    pub(super) fn leave_loop(&mut self, scope: &Scope) {
        self.origins.leave(scope.tensors.iter().map(|(name, _)| name.clone()), scope.loops);
    }

    /// A copy in new memory.
    pub(super) fn copied(&mut self, scope: &Scope, tensor: &str, ty: Ty) -> String {
        let name = self.name();
        self.line(scope, &format!("{name} = bufferization.alloc_tensor() copy({tensor}) : {ty}"));
        self.origins.add(&name, &[], scope.loops);
        name
    }

    /// Copies values that may alias an earlier one of the list.
    pub(super) fn keep_apart(&mut self, scope: &Scope, values: &mut [(String, Ty)]) {
        if self.shape.more.defects {
            return;
        }
        let mut seen = BTreeSet::new();
        for (name, ty) in values {
            if !seen.is_disjoint(&self.origins.memory(&[name])) {
                *name = self.copied(scope, name, *ty);
            }
            seen.extend(self.origins.memory(&[name]));
        }
    }

    /// A destination for an insertion at these offsets: a copy, if the offsets vary over a tensor from outside the loop.
    pub(super) fn steady(&mut self, scope: &Scope, tensor: String, ty: Ty, at: &str) -> String {
        let moves = at.contains("%v") && self.origins.loops(&[&tensor]) < scope.loops;
        if moves && !self.shape.more.defects { self.copied(scope, &tensor, ty) } else { tensor }
    }

    /// Whether constants are left out, because callers would write to them.
    pub(super) fn is_constant_left_out(&self) -> bool {
        !self.shape.more.defects && self.is_callee
    }
}
