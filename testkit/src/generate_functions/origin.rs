//! What each tensor of a random function may share memory with: an upper bound, known while the text is written.
//!
//! Only used to leave out what MLIR 22.1.8 is known to get wrong ([`super::More::defects`]).

use super::{Generator, Scope, Ty};
use std::collections::{BTreeMap, BTreeSet};

/// Where the memory of a tensor comes from.
#[derive(Clone, Debug, Default)]
struct Origin {
    /// Numbers of allocations that it may be.
    memory: BTreeSet<u32>,
    /// The loops around the operation that made its contents; views are as their source.
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

    /// What a loop of blocks made is seen after it, where it no longer is made anew in each round.
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
    /// A tensor whose contents are made here, perhaps in the memory of some of `from`.
    pub(super) fn made(&mut self, scope: &mut Scope, name: String, ty: Ty, from: &[&str]) {
        self.origins.add(&name, from, scope.loops);
        scope.tensors.push((name, ty));
    }

    /// A tensor that is one of `from`, or a part of one.
    pub(super) fn viewed(&mut self, scope: &mut Scope, name: String, ty: Ty, from: &[&str]) {
        let loops = self.origins.loops(from);
        self.origins.add(&name, from, loops);
        scope.tensors.push((name, ty));
    }

    /// A tensor that regions or blocks handed out.
    pub(super) fn joined(&mut self, scope: &mut Scope, name: String, ty: Ty, from: &[&str]) {
        self.origins.add(&name, from, 0);
        scope.tensors.push((name, ty));
    }

    /// What is seen when a loop of blocks is left, which `scope` no longer counts.
    pub(super) fn leave_loop(&mut self, scope: &Scope) {
        self.origins.leave(scope.tensors.iter().map(|(name, _)| name.clone()), scope.loops);
    }

    /// The contents in new memory.
    pub(super) fn copied(&mut self, scope: &Scope, tensor: &str, ty: Ty) -> String {
        let name = self.name();
        self.line(scope, &format!("{name} = bufferization.alloc_tensor() copy({tensor}) : {ty}"));
        self.origins.add(&name, &[], scope.loops);
        name
    }

    /// Copies of what may share memory with an earlier one of the list.
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

    /// A destination for an insertion at these offsets: its own copy, if the offsets move over a tensor that was made
    /// around the loop.
    pub(super) fn steady(&mut self, scope: &Scope, tensor: String, ty: Ty, at: &str) -> String {
        let moves = at.contains("%v") && self.origins.loops(&[&tensor]) < scope.loops;
        if moves && !self.shape.more.defects { self.copied(scope, &tensor, ty) } else { tensor }
    }

    /// Whether constants are left out, since callers would write to them.
    pub(super) fn is_constant_left_out(&self) -> bool {
        !self.shape.more.defects && self.is_callee
    }
}
