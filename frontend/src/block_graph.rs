//! Dependence graph of the ops of a block, some of them united to run as one.
//!
//! Ops with effects keep their order: each depends on the one before. A structured op depends on the last `cf.assert` before
//! it, which may guard its bounds.

use crate::linalg;
use monopour_ir::ops;
use monopour_ir::{Block, Op, Rewriter, Value, WalkOrder, interfaces};
use std::collections::{BTreeSet, HashMap, HashSet};

/// The ops of a block in program order, and the positions of those that each depends on.
pub(crate) struct BlockGraph<'c> {
    ops: Vec<Op<'c>>,
    position: HashMap<Op<'c>, usize>,
    depends: Vec<Vec<usize>>,
    readers: Vec<Vec<usize>>,
    /// The unit of an op, by position.
    unit: HashMap<usize, usize>,
    units: Vec<Vec<usize>>,
}

impl<'c> BlockGraph<'c> {
    /// The graph of a block, nothing united.
    pub fn new(block: Block<'c>) -> Self {
        let ops = block.ops();
        let position: HashMap<Op, usize> = ops.iter().enumerate().map(|(i, op)| (*op, i)).collect();
        let mut readers = vec![vec![]; ops.len()];
        let mut depends = vec![];
        let mut last_effect = None;
        let mut last_check = None;
        for (i, op) in ops.iter().enumerate() {
            let nested = op.nested(WalkOrder::Pre);
            let defs = nested.iter().flat_map(|o| o.operands()).filter_map(Value::defining_op);
            let mut before: BTreeSet<usize> = defs.filter_map(|d| position.get(&d).copied()).collect();
            before.remove(&i);
            if !interfaces::is_memory_effect_free(*op) {
                before.extend(last_effect.replace(i));
            }
            if op.is(ops::cf::ASSERT) {
                last_check = Some(i);
            } else if nested.iter().any(|o| linalg::is_structured(*o)) {
                before.extend(last_check);
            }
            before.iter().for_each(|d| readers[*d].push(i));
            depends.push(before.into_iter().collect());
        }
        Self { ops, position, depends, readers, unit: HashMap::new(), units: vec![] }
    }

    /// All ops, in program order.
    pub fn ops(&self) -> &[Op<'c>] {
        &self.ops
    }

    /// Where an op stands; `None` for one of another block.
    pub fn position(&self, op: Op<'c>) -> Option<usize> {
        self.position.get(&op).copied()
    }

    /// Makes the ops a unit, which runs as one.
    pub fn unite(&mut self, ops: &[Op<'c>]) {
        let unit: Vec<usize> = ops.iter().filter_map(|op| self.position(*op)).collect();
        self.unit.extend(unit.iter().map(|i| (*i, self.units.len())));
        self.units.push(unit);
    }

    fn with_unit(&self, i: usize) -> &[usize] {
        self.unit.get(&i).map_or(&[], |u| &self.units[*u])
    }

    /// Whether the members can run as one: no path between two of them leaves the set.
    pub fn is_convex(&self, members: &HashSet<Op<'c>>) -> bool {
        let inside: HashSet<usize> = members.iter().filter_map(|op| self.position(*op)).collect();
        let mut seen: HashSet<usize> = HashSet::new();
        let mut next: Vec<usize> = inside.iter().flat_map(|i| &self.readers[*i]).copied().collect();
        next.retain(|i| !inside.contains(i));
        while let Some(i) = next.pop() {
            if inside.contains(&i) {
                return false;
            }
            if seen.insert(i) {
                next.extend(&self.readers[i]);
                next.extend(self.with_unit(i).iter().filter(|j| !seen.contains(j)));
            }
        }
        true
    }

    /// Moves the ops so that units are contiguous and follow all that they depend on; others keep their order where
    /// possible.
    pub fn order(&self, rw: &mut Rewriter<'c>) {
        let order = self.sorted();
        let Some((last, rest)) = self.ops.split_last() else { return };
        if order.iter().copied().eq(0..self.ops.len()) || order.last() != Some(&rest.len()) {
            return;
        }
        for i in &order[..rest.len()] {
            rw.move_before(self.ops[*i], *last);
        }
    }

    /// Topological order by depth-first search over dependences, a unit as one node.
    fn sorted(&self) -> Vec<usize> {
        let mut done = vec![false; self.ops.len()];
        let mut order = vec![];
        // A unit is visited at its last op, so that it moves as little as possible.
        for i in 0..self.ops.len() {
            if self.with_unit(i).last().is_none_or(|last| *last == i) {
                self.visit(i, &mut done, &mut order);
            }
        }
        order
    }

    fn visit(&self, start: usize, done: &mut [bool], order: &mut Vec<usize>) {
        let mut stack = vec![(start, false)];
        while let Some((i, ready)) = stack.pop() {
            if done[i] {
                continue;
            }
            let own = [i];
            let ops = if self.with_unit(i).is_empty() { &own[..] } else { self.with_unit(i) };
            let missing = ops.iter().flat_map(|j| &self.depends[*j]).filter(|d| !done[**d] && !ops.contains(d));
            let missing: Vec<usize> = missing.copied().collect();
            if missing.is_empty() || ready {
                for j in ops {
                    done[*j] = true;
                    order.push(*j);
                }
            } else {
                stack.push((i, true));
                stack.extend(missing.into_iter().rev().map(|d| (d, false)));
            }
        }
    }
}
