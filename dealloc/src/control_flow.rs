//! The order of blocks, back edges, and memrefs live into blocks.

use std::collections::HashSet;

use monopour_ir::{Block, HandleMap, Op, Region, Value, WalkOrder};

/// The blocks of a region, each after its dominators; unreachable blocks come last.
pub fn in_dominance_order<'c>(region: Region<'c>) -> Vec<Block<'c>> {
    let blocks = region.blocks();
    if blocks.len() < 2 {
        return blocks;
    }
    let mut search = Search::default();
    for block in &blocks {
        search.run(*block);
    }
    // Reverse post-order. The blocks of each new search are not reachable from those of the searches before.
    let mut ordered = Vec::with_capacity(blocks.len());
    for mut tree in search.trees {
        tree.reverse();
        ordered.append(&mut tree);
    }
    ordered
}

/// The back edges, as branches with the number of the successor.
pub fn back_edges<'c>(region: Region<'c>) -> Vec<(Op<'c>, usize)> {
    let blocks = region.blocks();
    // A single block may still be its own successor.
    if blocks.len() < 2 && blocks.first().is_none_or(|b| b.successors().is_empty()) {
        return vec![];
    }
    let mut search = Search::default();
    for block in blocks {
        search.run(block);
    }
    search.back_edges
}

/// A depth-first search, which visits each block and each edge once.
#[derive(Default)]
struct Search<'c> {
    /// Whether the search is still below the block; absent if not visited.
    open: HandleMap<Block<'c>, bool>,
    /// Blocks in post-order, by the root of their search.
    trees: Vec<Vec<Block<'c>>>,
    back_edges: Vec<(Op<'c>, usize)>,
    /// Edges visited.
    steps: u64,
}

impl<'c> Search<'c> {
    fn run(&mut self, root: Block<'c>) {
        if self.open.contains_key(&root) {
            return;
        }
        let mut left = Vec::new();
        let mut stack = vec![(root, root.successors(), 0)];
        self.open.insert(root, true);
        while let Some((block, successors, next)) = stack.last_mut() {
            let (block, number) = (*block, *next);
            let Some(successor) = successors.get(number).copied() else {
                self.open.insert(block, false);
                left.push(block);
                stack.pop();
                continue;
            };
            *next += 1;
            self.steps += 1;
            match self.open.get(&successor) {
                None => {
                    self.open.insert(successor, true);
                    stack.push((successor, successor.successors(), 0));
                }
                Some(true) => self.back_edges.extend(block.terminator().map(|branch| (branch, number))),
                Some(false) => {}
            }
        }
        self.trees.push(left);
    }
}

/// Memrefs defined elsewhere that are used in a block or in one reachable from it.
///
/// Values are kept by number, because passes replace the ops that define them: see [`Liveness::replace`].
#[derive(Debug, Default)]
pub struct Liveness<'c> {
    values: Vec<Value<'c>>,
    numbers: HandleMap<Value<'c>, usize>,
    live_in: HandleMap<Block<'c>, Vec<usize>>,
    /// Blocks visited, once per memref.
    pub(crate) steps: u64,
}

impl<'c> Liveness<'c> {
    /// For all regions in a function that have several blocks. Takes time in proportion to the result.
    pub fn of(function: Op<'c>) -> Self {
        let mut found = Collect::default();
        function.walk(WalkOrder::Pre, |op| found.definitions(op));
        if !found.is_flat {
            function.walk(WalkOrder::Pre, |op| found.uses(op));
        }
        let mut live_in = found.live_in;
        live_in.values_mut().for_each(|numbers| numbers.sort_by_key(|n| found.order[*n]));
        Self { values: found.values, numbers: found.numbers, live_in, steps: found.steps }
    }
    /// The memrefs live into a block of a multi-block region: block arguments first, then results, in the order of the text.
    pub fn live_in(&self, block: Block<'c>) -> Vec<Value<'c>> {
        self.live_in.get(&block).map_or(vec![], |numbers| numbers.iter().map(|n| self.values[*n]).collect())
    }
    /// Replaces a value whose op is about to be erased.
    pub fn replace(&mut self, old: Value<'c>, new: Value<'c>) {
        if let Some(number) = self.numbers.remove(&old) {
            self.values[number] = new;
            self.numbers.insert(new, number);
        }
    }
}

struct Collect<'c> {
    /// Every region has one block.
    is_flat: bool,
    values: Vec<Value<'c>>,
    /// Arguments before results, each in the order of the text.
    order: Vec<(bool, usize)>,
    numbers: HandleMap<Value<'c>, usize>,
    predecessors: HandleMap<Block<'c>, Vec<Block<'c>>>,
    /// Blocks of multi-block regions.
    several: HashSet<Block<'c>>,
    live_in: HandleMap<Block<'c>, Vec<usize>>,
    seen: HashSet<(usize, Block<'c>)>,
    steps: u64,
}

impl Default for Collect<'_> {
    fn default() -> Self {
        Self {
            is_flat: true,
            values: vec![],
            order: vec![],
            numbers: HandleMap::default(),
            predecessors: HandleMap::default(),
            several: HashSet::new(),
            live_in: HandleMap::default(),
            seen: HashSet::new(),
            steps: 0,
        }
    }
}

impl<'c> Collect<'c> {
    fn definitions(&mut self, op: Op<'c>) {
        for result in op.results().into_iter().filter(|v| v.ty().is_memref()) {
            self.number(result, true);
        }
        for region in op.regions() {
            let blocks = region.blocks();
            for block in &blocks {
                for arg in block.args().into_iter().filter(|v| v.ty().is_memref()) {
                    self.number(arg, false);
                }
            }
            if blocks.len() > 1 {
                self.is_flat = false;
                for block in blocks {
                    self.several.insert(block);
                    for successor in block.successors() {
                        self.predecessors.entry(successor).or_default().push(block);
                    }
                }
            }
        }
    }

    fn number(&mut self, value: Value<'c>, is_result: bool) {
        let number = self.values.len();
        self.values.push(value);
        self.order.push((is_result, number));
        self.numbers.insert(value, number);
    }

    fn uses(&mut self, op: Op<'c>) {
        for value in op.operands().into_iter().filter(|v| v.ty().is_memref()) {
            let Some(number) = self.numbers.get(&value).copied() else { continue };
            let (defined_in, mut at) = (value.block(), op.block());
            while let Some(block) = at.filter(|block| Some(*block) != defined_in) {
                if self.several.contains(&block) {
                    self.flow_up(number, block, defined_in);
                }
                // In the region of the definition, the walk ends.
                let is_beside = defined_in.is_some_and(|d| d.region() == block.region());
                at = if is_beside { None } else { block.parent_op().and_then(Op::block) };
            }
        }
    }

    fn flow_up(&mut self, number: usize, used_in: Block<'c>, defined_in: Option<Block<'c>>) {
        let mut work = vec![used_in];
        while let Some(block) = work.pop() {
            self.steps += 1;
            if Some(block) == defined_in || !self.seen.insert((number, block)) {
                continue;
            }
            self.live_in.entry(block).or_default().push(number);
            work.extend(self.predecessors.get(&block).into_iter().flatten());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use monopour_ir::{Context, Module};

    /// An unreachable block may still be its own successor.
    #[test]
    fn a_loop_that_is_never_entered_leads_back() {
        let cx = Context::new();
        let text = "func.func @f() {\nreturn\n^never: cf.br ^never\n}";
        let module = Module::parse(cx, text.as_bytes(), "never.mlir").expect("parses");
        let region = module.op().find_all("func.func")[0].region(0);
        assert_eq!(back_edges(region), [(module.op().find_all("cf.br")[0], 0)]);
    }

    /// Upstream follows every path: two to the power of the number of diamonds.
    #[test]
    fn each_edge_of_diamonds_is_looked_at_once() {
        for (diamonds, has_loop) in [(1, false), (200, false), (200, true)] {
            let mut text = "func.func @f(%c: i1) {\ncf.br ^b0\n".to_owned();
            for i in 0..diamonds {
                let next = i + 1;
                text += &format!("^b{i}: cf.cond_br %c, ^l{i}, ^r{i}\n^l{i}: cf.br ^b{next}\n^r{i}: cf.br ^b{next}\n");
            }
            text += &format!("^b{diamonds}: ");
            text += if has_loop { "cf.cond_br %c, ^b7, ^end\n^end: return }" } else { "return }" };
            let cx = Context::new();
            let module = Module::parse(cx, text.as_bytes(), "diamonds.mlir").expect("parses");
            let region = module.op().find_all("func.func")[0].region(0);
            let mut search = Search::default();
            search.run(region.entry().expect("has blocks"));
            assert_eq!(search.steps, 1 + 4 * diamonds + if has_loop { 2 } else { 0 });
            assert_eq!(back_edges(region).len(), usize::from(has_loop));
            let order = in_dominance_order(region);
            assert_eq!(order.len(), region.blocks().len());
            let position = |block: &Block| order.iter().position(|b| b == block).expect("each block is there");
            let edges = order.iter().flat_map(|b| b.successors().into_iter().map(move |s| (*b, s)));
            let backwards = edges.filter(|(from, to)| position(to) <= position(from)).count();
            assert_eq!(backwards, usize::from(has_loop));
        }
    }
}
