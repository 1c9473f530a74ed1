//! The control-flow graph of a region: dominators and cycles.
//!
//! Blocks have numbers from 0, the entry; an edge is a pair of numbers.
//! Dominators are found with the algorithm of Lengauer and Tarjan (1979), the simple form: O(edges * log blocks).
//! They use explicit stacks instead of recursion, as a region may have as many blocks as there is input.

use crate::components::components;

/// No block.
pub(crate) const NONE: u32 = u32::MAX;

/// Edges of a graph on `0..len`, by origin.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    starts: Vec<u32>,
    targets: Vec<u32>,
}

impl Graph {
    /// A graph of `len` blocks; all ends of edges are below `len`.
    pub fn new(len: usize, edges: &[(u32, u32)]) -> Self {
        let mut starts = vec![0_u32; len + 1];
        for &(from, _) in edges {
            starts[from as usize + 1] += 1;
        }
        for index in 0..len {
            starts[index + 1] += starts[index];
        }
        let mut next = starts.clone();
        let mut targets = vec![0; edges.len()];
        for &(from, to) in edges {
            targets[next[from as usize] as usize] = to;
            next[from as usize] += 1;
        }
        Self { starts, targets }
    }

    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    pub fn successors(&self, block: u32) -> &[u32] {
        &self.targets[self.starts[block as usize] as usize..self.starts[block as usize + 1] as usize]
    }
}

/// The tree of immediate dominators.
#[derive(Clone, Debug)]
pub(crate) struct Dominators {
    /// The immediate dominator of each block; [`NONE`] for the entry and for unreachable blocks.
    pub parents: Vec<u32>,
    /// The reachable blocks, each before its successors except along back edges.
    pub reverse_post_order: Vec<u32>,
}

/// The dominators of all blocks reachable from block 0.
pub(crate) fn dominators(graph: &Graph) -> Dominators {
    let len = graph.len();
    let mut search = Search::new(len);
    let post_order = search.run(graph);
    let mut predecessors = vec![Vec::new(); search.blocks.len()];
    for (number, &block) in search.blocks.iter().enumerate() {
        for &next in graph.successors(block) {
            predecessors[search.numbers[next as usize] as usize].push(number as u32);
        }
    }
    let by_number = search.immediate(&predecessors);
    let mut parents = vec![NONE; len];
    for (number, &block) in search.blocks.iter().enumerate().skip(1) {
        parents[block as usize] = search.blocks[by_number[number] as usize];
    }
    let reverse_post_order = post_order.into_iter().rev().collect();
    Dominators { parents, reverse_post_order }
}

/// A depth-first search from block 0; the other fields number blocks in the order of the search.
struct Search {
    /// The number of each block, or [`NONE`].
    numbers: Vec<u32>,
    blocks: Vec<u32>,
    parents: Vec<u32>,
    /// The forest of the algorithm: ancestors along linked paths, and the best block on each.
    ancestors: Vec<u32>,
    labels: Vec<u32>,
    semi: Vec<u32>,
}

impl Search {
    fn new(len: usize) -> Self {
        let (numbers, empty) = (vec![NONE; len], Vec::new);
        Self { numbers, blocks: empty(), parents: empty(), ancestors: empty(), labels: empty(), semi: empty() }
    }

    /// Returns the blocks in post-order.
    fn run(&mut self, graph: &Graph) -> Vec<u32> {
        let mut post_order = Vec::new();
        if graph.len() == 0 {
            return post_order;
        }
        self.enter(0, NONE);
        let mut stack = vec![(0, 0)];
        while let Some((block, index)) = stack.last_mut() {
            let Some(&next) = graph.successors(*block).get(*index) else {
                post_order.push(*block);
                stack.pop();
                continue;
            };
            *index += 1;
            if self.numbers[next as usize] == NONE {
                let parent = self.numbers[*block as usize];
                self.enter(next, parent);
                stack.push((next, 0));
            }
        }
        post_order
    }

    fn enter(&mut self, block: u32, parent: u32) {
        let number = self.blocks.len() as u32;
        self.numbers[block as usize] = number;
        self.blocks.push(block);
        self.parents.push(parent);
        self.ancestors.push(NONE);
        self.labels.push(number);
        self.semi.push(number);
    }

    /// The immediate dominators, by number.
    fn immediate(&mut self, predecessors: &[Vec<u32>]) -> Vec<u32> {
        let len = self.blocks.len();
        let mut immediate = vec![0; len];
        let mut waiting = vec![Vec::new(); len];
        for number in (1..len).rev() {
            for &before in &predecessors[number] {
                let best = self.best(before);
                self.semi[number] = self.semi[number].min(self.semi[best as usize]);
            }
            let (parent, number) = (self.parents[number], number as u32);
            waiting[self.semi[number as usize] as usize].push(number);
            self.ancestors[number as usize] = parent;
            for block in std::mem::take(&mut waiting[parent as usize]) {
                let best = self.best(block);
                let is_lower = self.semi[best as usize] < self.semi[block as usize];
                immediate[block as usize] = if is_lower { best } else { parent };
            }
        }
        for number in 1..len {
            if immediate[number] != self.semi[number] {
                immediate[number] = immediate[immediate[number] as usize];
            }
        }
        immediate
    }

    /// The block of least semi-dominator on the linked path above, which is compressed.
    fn best(&mut self, block: u32) -> u32 {
        let mut path = vec![block];
        let mut current = block;
        while self.ancestors[current as usize] != NONE {
            current = self.ancestors[current as usize];
            path.push(current);
        }
        // The topmost block is a root and keeps its own label; each block below takes the better of its own and the one above, top down.
        path.pop();
        for index in (0..path.len().saturating_sub(1)).rev() {
            let (below, above) = (path[index] as usize, path[index + 1] as usize);
            if self.semi[self.labels[above] as usize] < self.semi[self.labels[below] as usize] {
                self.labels[below] = self.labels[above];
            }
            self.ancestors[below] = self.ancestors[above];
        }
        self.labels[block as usize]
    }
}

/// Strongly connected components.
#[derive(Clone, Debug)]
pub(crate) struct Components {
    /// The component of each block; [`NONE`] for excluded blocks and for blocks on no cycle.
    pub of: Vec<u32>,
}

/// The cycles among the blocks for which `allowed` holds.
pub(crate) fn cycles(graph: &Graph, allowed: impl Fn(u32) -> bool) -> Components {
    let mut of = vec![NONE; graph.len()];
    let mut count = 0;
    // An excluded block has no successors, and an edge to one becomes a self-edge, which makes no component larger.
    let next = |block: usize, at: usize| {
        let successors = if allowed(block as u32) { graph.successors(block as u32) } else { &[] };
        successors.get(at).map(|&to| if allowed(to) { to as usize } else { block })
    };
    for members in components(graph.len(), next) {
        let first = members[0] as u32;
        // A single block is a cycle only if it is its own successor.
        if members.len() > 1 || (allowed(first) && graph.successors(first).contains(&first)) {
            members.iter().for_each(|member| of[*member] = count);
            count += 1;
        }
    }
    Components { of }
}

#[cfg(test)]
mod tests {
    use super::{Graph, NONE, cycles, dominators};
    use crate::random::Random;

    fn reachable(graph: &Graph, from: u32, without: u32) -> Vec<bool> {
        let mut seen = vec![false; graph.len()];
        let mut work = if from == without { vec![] } else { vec![from] };
        while let Some(block) = work.pop() {
            if !std::mem::replace(&mut seen[block as usize], true) {
                work.extend(graph.successors(block).iter().copied().filter(|&next| next != without));
            }
        }
        seen
    }

    fn random_graph(seed: u64) -> Graph {
        let mut random = Random::new(seed);
        let len = 1 + random.below(9);
        let edges: Vec<_> = (0..random.below(2 * len + 1)).map(|_| (random.below(len), random.below(len))).collect();
        Graph::new(len as usize, &edges)
    }

    #[test]
    fn dominators_are_the_blocks_that_cannot_be_left_out() {
        for seed in 0..2000 {
            let graph = random_graph(seed);
            let found = dominators(&graph);
            let all = reachable(&graph, 0, NONE);
            for block in 0..graph.len() as u32 {
                let mut above = vec![false; graph.len()];
                let mut current = block;
                while all[block as usize] && current != NONE {
                    above[current as usize] = true;
                    current = found.parents[current as usize];
                }
                for other in 0..graph.len() as u32 {
                    let dominates = all[block as usize] && !reachable(&graph, 0, other)[block as usize];
                    assert_eq!(above[other as usize], dominates, "seed {seed}: {other} above {block} in {graph:?}");
                }
            }
            assert_eq!(found.reverse_post_order.len(), all.iter().filter(|&&is| is).count());
        }
    }

    #[test]
    fn cycles_are_what_leads_back() {
        for seed in 0..2000 {
            let graph = random_graph(seed);
            let without = Random::new(seed).below(graph.len() as u32 + 1);
            let found = cycles(&graph, |block| block != without);
            let leads = |from: u32, to: u32| {
                from != without
                    && graph.successors(from).iter().any(|&next| reachable(&graph, next, without)[to as usize])
            };
            for a in 0..graph.len() as u32 {
                for b in 0..graph.len() as u32 {
                    let together = found.of[a as usize] != NONE && found.of[a as usize] == found.of[b as usize];
                    assert_eq!(together, leads(a, b) && leads(b, a), "seed {seed}: {a}, {b} in {graph:?}");
                }
            }
        }
    }
}
