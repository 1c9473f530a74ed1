//! Positions in a function: numbers of ops, and the dominator tree of its blocks.
//!
//! The parent of an entry block is the block of its parent op, so that the common ancestor of blocks of different regions is
//! the last block that dominates all of them.

use monopour_analysis::components::components;
use monopour_ir::interfaces::{has_parallel_region, is_loop_like, is_region_branch, is_repetitive_region};
use monopour_ir::{Block, HandleMap, Op, Region, Value};

use super::graph::Forest;

/// A block in the tree.
struct Node<'c> {
    block: Block<'c>,
    /// The nearest block at or above this one out of which an allocation must not move: its parent is a loop, a parallel region,
    /// or another function.
    limit: usize,
    is_on_cycle: bool,
}

/// Numbers and dominators of one function.
pub(crate) struct Places<'c> {
    function: Op<'c>,
    numbers: HandleMap<Op<'c>, usize>,
    ops: Vec<Op<'c>>,
    ids: HandleMap<Block<'c>, usize>,
    nodes: Vec<Node<'c>>,
    tree: Forest,
    /// Post-dominators, per region below a node for the exit.
    exits: HandleMap<Block<'c>, usize>,
    exit_tree: Forest,
}

impl<'c> Places<'c> {
    /// Walks `function` once.
    pub fn new(function: Op<'c>) -> Self {
        let mut this = Self {
            function,
            numbers: HandleMap::default(),
            ops: vec![],
            ids: HandleMap::default(),
            nodes: vec![],
            tree: Forest::default(),
            exits: HandleMap::default(),
            exit_tree: Forest::default(),
        };
        this.enter(function);
        this
    }

    fn enter(&mut self, op: Op<'c>) {
        let number = self.ops.len();
        self.ops.push(op);
        self.numbers.insert(op, number);
        for (index, region) in op.regions().into_iter().enumerate() {
            self.region(op, index, region);
            for op in region.blocks().into_iter().flat_map(Block::ops) {
                self.enter(op);
            }
        }
    }

    /// Adds the blocks of a region to the tree, dominators first.
    fn region(&mut self, op: Op<'c>, index: usize, region: Region<'c>) {
        let blocks = region.blocks();
        let Some(entry) = blocks.first() else { return };
        let local: HandleMap<Block, usize> = blocks.iter().enumerate().map(|(i, b)| (*b, i)).collect();
        let next: Vec<Vec<usize>> =
            blocks.iter().map(|b| b.successors().iter().filter_map(|s| local.get(s).copied()).collect()).collect();
        let around = op.block().filter(|_| op != self.function).and_then(|b| self.ids.get(&b).copied());
        let entry_id = self.tree.add(around);
        self.ids.insert(*entry, entry_id);
        let is_barrier =
            is_loop(op) || is_repetitive_region(op, index) || has_parallel_region(op) || !is_region_branch(op);
        let limit = match around {
            Some(around) if !is_barrier => self.nodes[around].limit,
            _ => entry_id,
        };
        self.nodes.push(Node { block: *entry, limit, is_on_cycle: false });
        for (block, dominator) in dominators(&next) {
            let above = self.ids[&blocks[dominator]];
            let id = self.tree.add(Some(above));
            self.ids.insert(blocks[block], id);
            self.nodes.push(Node { block: blocks[block], limit, is_on_cycle: false });
        }
        self.exits_of(&blocks, &next);
        for members in components(next.len(), |n, at| next[n].get(at).copied())
            .iter()
            .filter(|m| m.len() > 1 || next[m[0]].contains(&m[0]))
        {
            for id in members.iter().map(|m| self.ids[&blocks[*m]]) {
                self.nodes[id].is_on_cycle = true;
                // The buffers of two iterations may be live at the same time.
                self.nodes[id].limit = id;
            }
        }
    }

    /// Adds the blocks of a region to the post-dominator tree.
    fn exits_of(&mut self, blocks: &[Block<'c>], next: &[Vec<usize>]) {
        // Node 0 is the exit, after all blocks without successors.
        let mut before = vec![vec![]; next.len() + 1];
        for (block, successors) in next.iter().enumerate() {
            successors.iter().for_each(|s| before[s + 1].push(block + 1));
            if successors.is_empty() {
                before[0].push(block + 1);
            }
        }
        let mut ids = vec![self.exit_tree.add(None); next.len() + 1];
        for (block, after) in dominators(&before) {
            ids[block] = self.exit_tree.add(Some(ids[after]));
            self.exits.insert(blocks[block - 1], ids[block]);
        }
    }

    /// Whether `a` dominates `b`.
    pub fn dominates(&self, a: Block<'c>, b: Block<'c>) -> bool {
        let (a, b) = (self.ids[&a], self.ids[&b]);
        self.tree.common_ancestor(a, b) == a
    }

    /// Whether `a`, a block of the same region, post-dominates `b`.
    pub fn post_dominates(&self, a: Block<'c>, b: Block<'c>) -> bool {
        let (a, b) = (self.exits[&a], self.exits[&b]);
        self.exit_tree.common_ancestor(a, b) == a
    }

    /// The number of an op, in pre-order.
    pub fn number(&self, op: Op<'c>) -> usize {
        self.numbers[&op]
    }

    /// The op with a number.
    pub fn op(&self, number: usize) -> Op<'c> {
        self.ops[number]
    }

    /// The number of the op that defines a value. For an argument of an entry block that of the parent op, for one of a later
    /// block that of the block's first op.
    pub fn definition(&self, value: Value<'c>) -> usize {
        let owner = || {
            let block = value.block()?;
            if block.region().and_then(Region::entry) == Some(block) { block.parent_op() } else { block.first_op() }
        };
        value.defining_op().or_else(owner).and_then(|op| self.numbers.get(&op).copied()).unwrap_or(0)
    }

    /// The node of the block that defines a value; the function's entry for values from outside.
    pub fn node_of(&self, value: Value<'c>) -> usize {
        value.block().and_then(|b| self.ids.get(&b).copied()).unwrap_or(0)
    }

    /// The node of a block of the function.
    pub fn node(&self, block: Block<'c>) -> usize {
        self.ids[&block]
    }

    /// The block of a node.
    pub fn block(&self, node: usize) -> Block<'c> {
        self.nodes[node].block
    }

    /// The nearest common dominator.
    pub fn common_dominator(&self, a: usize, b: usize) -> usize {
        self.tree.common_ancestor(a, b)
    }

    /// Of two nodes the one that the other dominates.
    pub fn lower(&self, a: usize, b: usize) -> usize {
        if self.tree.depth(a) < self.tree.depth(b) { b } else { a }
    }

    /// The nearest node at or above this one out of which an allocation must not move.
    pub fn limit(&self, node: usize) -> usize {
        self.nodes[node].limit
    }

    /// Whether the block is on a cycle.
    pub fn is_on_cycle(&self, block: Block<'c>) -> bool {
        self.nodes[self.ids[&block]].is_on_cycle
    }

    /// The op of `block` that is or contains `op`; `None` if it is not in the block.
    pub fn ancestor_in(&self, block: Block<'c>, op: Op<'c>) -> Option<Op<'c>> {
        std::iter::successors(Some(op), |op| op.parent())
            .take_while(|o| *o != self.function)
            .find(|o| o.block() == Some(block))
    }
}

/// Whether the op repeats its body sequentially.
pub(crate) fn is_loop(op: Op) -> bool {
    is_loop_like(op) && !has_parallel_region(op)
}

/// The immediate dominator of each block but the first, dominators first.
/// An unreachable block counts as dominated by the first.
fn dominators(next: &[Vec<usize>]) -> Vec<(usize, usize)> {
    let order = reverse_postorder(next);
    let mut rank = vec![usize::MAX; next.len()];
    order.iter().enumerate().for_each(|(i, b)| rank[*b] = i);
    let mut before = vec![vec![]; next.len()];
    for block in &order {
        next[*block].iter().for_each(|n| before[rank[*n]].push(rank[*block]));
    }
    // The immediate dominator by rank, refined until nothing changes (Cooper, Harvey and Kennedy).
    let mut above = vec![usize::MAX; order.len()];
    above[0] = 0;
    let mut changed = true;
    while changed {
        changed = false;
        for block in 1..order.len() {
            let known = before[block].iter().copied().filter(|p| above[*p] != usize::MAX);
            let found = known.reduce(|a, b| meet(&above, a, b)).unwrap_or(0);
            changed |= above[block] != found;
            above[block] = found;
        }
    }
    let reached = (1..order.len()).map(|r| (order[r], order[above[r]]));
    let unreached = (1..next.len()).filter(|b| rank[*b] == usize::MAX).map(|b| (b, 0));
    reached.chain(unreached).collect()
}

fn meet(above: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        if a > b {
            a = above[a];
        } else {
            b = above[b];
        }
    }
    a
}

fn reverse_postorder(next: &[Vec<usize>]) -> Vec<usize> {
    let mut order = Vec::new();
    let mut seen = vec![false; next.len()];
    let mut path = vec![(0, 0)];
    seen[0] = true;
    while let Some((block, looked)) = path.last_mut() {
        let successor = next[*block].get(*looked).copied();
        *looked += 1;
        match successor {
            Some(s) if !seen[s] => {
                seen[s] = true;
                path.push((s, 0));
            }
            Some(_) => {}
            None => {
                order.push(*block);
                path.pop();
            }
        }
    }
    order.reverse();
    order
}

#[cfg(test)]
mod tests {
    use super::dominators;

    #[test]
    fn diamonds_and_loops() {
        // 0 -> 1, 2 -> 3 -> 4 -> 3, 5; 6 is unreachable.
        let next = [vec![1, 2], vec![3], vec![3], vec![4], vec![3, 5], vec![], vec![5]];
        let mut found = dominators(&next);
        found.sort_unstable();
        assert_eq!(found, [(1, 0), (2, 0), (3, 0), (4, 3), (5, 4), (6, 0)]);
    }
}
