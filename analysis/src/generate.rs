//! Random functions for property tests: every kind of operation, nested to a small depth.

use crate::blocks::{Graph, NONE, dominators};
use crate::builder::FactsBuilder;
use crate::facts::{
    Affine, Alias, BufferInfo, Definition, Facts, Reads, RegionInfo, Relation, Slice, Subset, Use, ValueInfo,
};
use crate::index::{BlockId, OpId, OperandId, RegionId, SliceId, ValueId};
use crate::random::Random;

/// Features of a generated function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// The approximate number of operations.
    pub ops: u32,
    /// The depth of nested regions.
    pub depth: u32,
    /// Operations whose effects are unknown, and several blocks in a region.
    pub wild: bool,
    /// More slices, of which many do not overlap, by symbols of the loops around them.
    pub parts: bool,
}

/// A random function.
pub(crate) fn function(seed: u64, shape: Shape) -> Facts {
    let mut generator =
        Generator { b: FactsBuilder::new(), random: Random::new(seed), left: shape.ops, shape, symbols: vec![] };
    let root = generator.b.region(None, RegionInfo::default());
    generator.symbol(root);
    let block = generator.b.block(root);
    let mut scope = Vec::new();
    for index in 0..1 + generator.random.below(2) {
        let info = ValueInfo {
            buffer: BufferInfo { writable: generator.random.percent(60), ..BufferInfo::default() },
            label: index,
            ..ValueInfo::default()
        };
        scope.push(generator.b.argument(block, info));
    }
    generator.body(block, &mut scope, 0);
    let end = generator.b.op(block, 0);
    let result = generator.pick(&scope);
    generator.b.operand(end, result, Use::READ);
    generator.b.finish().expect("generated facts are consistent")
}

struct Generator {
    b: FactsBuilder,
    random: Random,
    left: u32,
    shape: Shape,
    /// The symbols of the regions around, if there are parts.
    symbols: Vec<u32>,
}

/// The first symbol of a region.
const FIRST_SYMBOL: u32 = 10;

impl Generator {
    fn pick(&mut self, scope: &[ValueId]) -> ValueId {
        // Recent values more often, for chains of uses.
        let len = u32::try_from(scope.len()).expect("small");
        let back = if self.random.percent(60) { self.random.below(len.min(3)) } else { self.random.below(len) };
        scope[(len - 1 - back) as usize]
    }

    /// A symbol of a region.
    fn symbol(&mut self, region: RegionId) {
        if self.shape.parts {
            let symbol = FIRST_SYMBOL + region.number();
            self.b.symbol(symbol, region);
            self.symbols.push(symbol);
        }
    }

    fn part(&mut self) -> SliceId {
        let mut offset = Affine::constant(i64::from(self.random.below(4)));
        if self.random.percent(50) {
            let count = u32::try_from(self.symbols.len()).expect("small");
            offset.terms.push((self.symbols[self.random.below(count) as usize], 1));
        }
        let size = match self.random.below(4) {
            0 => Affine::symbol(self.symbols[0]),
            size => Affine::constant(i64::from(size)),
        };
        let stride = Affine::constant(if self.random.percent(20) { 2 } else { 1 });
        self.b.slice(Slice { offsets: vec![offset], sizes: vec![size], strides: vec![stride] })
    }

    fn slice(&mut self) -> SliceId {
        if self.shape.parts {
            return self.part();
        }
        let offset = self.random.below(3);
        let offset = if offset == 2 { Affine::symbol(7) } else { Affine::constant(i64::from(offset)) };
        let one = || vec![Affine::constant(1)];
        self.b.slice(Slice { offsets: vec![offset], sizes: one(), strides: one() })
    }

    fn result(&mut self, op: OpId) -> ValueId {
        self.b.result(op, ValueInfo::default())
    }

    /// The body of a region, which may use the region's symbol.
    fn loop_body(&mut self, region: RegionId, block: BlockId, scope: &mut Vec<ValueId>, depth: u32) {
        self.symbol(region);
        self.body(block, scope, depth);
        self.symbols.truncate(self.symbols.len() - usize::from(self.shape.parts));
    }

    fn body(&mut self, block: BlockId, scope: &mut Vec<ValueId>, depth: u32) {
        let count = if depth == 0 { self.shape.ops } else { self.random.below(5) };
        for _ in 0..count {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            let nested = depth < self.shape.depth && self.random.percent(30);
            match if nested { 100 + self.random.below(7) } else { self.random.below(13) } {
                0 => self.allocation(block, scope),
                1 | 2 => self.fill(block, scope),
                3 | 4 => self.generic(block, scope),
                5 | 6 => self.extract(block, scope),
                7 | 8 => self.insert(block, scope),
                9 => self.select(block, scope),
                10 => {
                    let value = self.pick(scope);
                    let op = self.b.op(block, 0);
                    self.b.operand(op, value, Use::READ);
                }
                11 if self.shape.wild => self.unknown(block, scope),
                11 | 12 => self.cast_or_copy(block, scope),
                100 | 101 => self.branch(block, scope, depth),
                102 => self.loop_of_values(block, scope, depth),
                103 => self.while_loop(block, scope, depth),
                104 | 105 if self.shape.wild => self.blocks(block, scope, depth),
                _ => self.forall(block, scope, depth),
            }
        }
    }

    fn allocation(&mut self, block: BlockId, scope: &mut Vec<ValueId>) {
        let op = self.b.op(block, 0);
        let constant = self.random.percent(30);
        let definition = if constant { Definition::Inferred } else { Definition::Never };
        let info = ValueInfo {
            buffer: BufferInfo { writable: !constant, definition, allocates: !constant },
            ..ValueInfo::default()
        };
        scope.push(self.b.result(op, info));
    }

    fn destination(&mut self, op: OpId, value: ValueId, used: Use, scope: &mut Vec<ValueId>) -> OperandId {
        let operand = self.b.operand(op, value, used);
        let result = self.result(op);
        self.b.alias(operand, Alias::equivalent(result));
        scope.push(result);
        operand
    }

    fn fill(&mut self, block: BlockId, scope: &mut Vec<ValueId>) {
        let value = self.pick(scope);
        let op = self.b.op(block, 0);
        self.destination(op, value, Use { elementwise: true, ..Use::WRITE }, scope);
    }

    fn generic(&mut self, block: BlockId, scope: &mut Vec<ValueId>) {
        let op = self.b.op(block, 0);
        let ins: Vec<_> = (0..1 + self.random.below(2)).map(|_| self.pick(scope)).collect();
        let outs: Vec<_> = (0..1 + self.random.below(2)).map(|_| self.pick(scope)).collect();
        for value in ins {
            let elementwise = self.random.percent(60);
            self.b.operand(op, value, Use { elementwise, ..Use::READ });
        }
        for value in outs {
            let elementwise = self.random.percent(60);
            let reads = if self.random.percent(50) { Reads::Yes } else { Reads::No };
            self.destination(op, value, Use { elementwise, reads, ..Use::WRITE }, scope);
        }
    }

    fn extract(&mut self, block: BlockId, scope: &mut Vec<ValueId>) {
        let value = self.pick(scope);
        let (slice, op) = (self.slice(), self.b.op(block, 0));
        let container = self.b.operand(op, value, Use::NONE);
        let result = self.result(op);
        self.b.alias(container, Alias::unknown(result));
        self.b.subset(op, Subset::Extraction { container, result, slice });
        scope.push(result);
    }

    fn insert(&mut self, block: BlockId, scope: &mut Vec<ValueId>) {
        let (from, to) = (self.pick(scope), self.pick(scope));
        let (slice, op) = (self.slice(), self.b.op(block, 0));
        let source = self.b.operand(op, from, Use::READ);
        let whole = self.random.percent(10);
        let used = if whole { Use::WRITE } else { Use::READ_WRITE };
        let destination = self.destination(op, to, used, scope);
        let slice = Some(slice).filter(|_| !whole);
        self.b.subset(op, Subset::Insertion { source: Some(source), destination, slice });
    }

    fn select(&mut self, block: BlockId, scope: &mut Vec<ValueId>) {
        let (first, second) = (self.pick(scope), self.pick(scope));
        let op = self.b.op(block, 0);
        let operands = [self.b.operand(op, first, Use::NONE), self.b.operand(op, second, Use::NONE)];
        let result = self.result(op);
        for operand in operands {
            self.b.alias(operand, Alias::maybe_equivalent(result));
        }
        scope.push(result);
    }

    fn cast_or_copy(&mut self, block: BlockId, scope: &mut Vec<ValueId>) {
        let value = self.pick(scope);
        let op = self.b.op(block, 0);
        let reads = if self.random.percent(20) { Reads::Yes } else { Reads::No };
        let operand = self.b.operand(op, value, Use { reads, ..Use::NONE });
        let result = self.result(op);
        let retypes = self.random.percent(30);
        self.b.alias(operand, Alias { retypes, ..Alias::equivalent(result) });
        scope.push(result);
    }

    fn unknown(&mut self, block: BlockId, scope: &mut Vec<ValueId>) {
        let op = self.b.op(block, 0);
        let values: Vec<_> = (0..1 + self.random.below(2)).map(|_| self.pick(scope)).collect();
        let operands: Vec<_> = values.into_iter().map(|value| self.b.operand(op, value, Use::READ_WRITE)).collect();
        for _ in 0..self.random.below(3) {
            let result = self.result(op);
            for &operand in &operands {
                self.b.alias(operand, Alias { definite: false, ..Alias::unknown(result) });
            }
            scope.push(result);
        }
    }

    /// `scf.if`, `scf.index_switch`.
    fn branch(&mut self, block: BlockId, scope: &mut Vec<ValueId>, depth: u32) {
        let op = self.b.op(block, 0);
        self.b.region_branch(op);
        let result = self.result(op);
        for _ in 0..2 + self.random.below(2) {
            let region = self.b.region(Some(op), RegionInfo::default());
            let inner = self.b.block(region);
            let mut inner_scope = scope.clone();
            self.loop_body(region, inner, &mut inner_scope, depth + 1);
            let value = self.pick(&inner_scope);
            let end = self.b.op(inner, 0);
            let yielded = self.b.operand(end, value, Use::TERMINATOR);
            self.b.alias(yielded, Alias::maybe_equivalent(result));
            self.b.flow(yielded, result);
        }
        scope.push(result);
    }

    /// `scf.for`.
    fn loop_of_values(&mut self, block: BlockId, scope: &mut Vec<ValueId>, depth: u32) {
        let inits: Vec<_> = (0..self.random.below(3)).map(|_| self.pick(scope)).collect();
        let op = self.b.op(block, 0);
        self.b.region_branch(op);
        let region = self.b.region(Some(op), RegionInfo { repetitive: true, ..RegionInfo::default() });
        self.b.region_successor(region, region);
        let inner = self.b.block(region);
        let mut inner_scope = scope.clone();
        let arguments: Vec<_> = inits.iter().map(|_| self.b.argument(inner, ValueInfo::default())).collect();
        inner_scope.extend(&arguments);
        let certain = self.random.percent(50);
        let operands: Vec<_> = inits
            .iter()
            .zip(&arguments)
            .map(|(&init, &argument)| {
                let reads = if certain { Reads::IfRead(argument) } else { Reads::Yes };
                self.b.operand(op, init, Use { reads, ..Use::WRITE })
            })
            .collect();
        let results: Vec<_> = inits.iter().map(|_| self.result(op)).collect();
        self.loop_body(region, inner, &mut inner_scope, depth + 1);
        let end = self.b.op(inner, 0);
        for index in 0..inits.len() {
            let value = if self.random.percent(30) { arguments[index] } else { self.pick(&inner_scope) };
            let yielded = self.b.operand(end, value, Use::TERMINATOR);
            self.b.alias(operands[index], Alias::equivalent_if(results[index], (arguments[index], value)));
            self.b.flow(operands[index], arguments[index]);
            self.b.flow(yielded, arguments[index]);
            self.b.flow(yielded, results[index]);
            // A loop that may run zero times returns its initial value.
            if !certain {
                self.b.flow(operands[index], results[index]);
            }
        }
        scope.extend(&results);
    }

    /// `scf.while` with one value.
    fn while_loop(&mut self, block: BlockId, scope: &mut Vec<ValueId>, depth: u32) {
        let init = self.pick(scope);
        let op = self.b.op(block, 0);
        self.b.region_branch(op);
        let operand = self.b.operand(op, init, Use::READ_WRITE);
        let result = self.result(op);
        let looping = RegionInfo { repetitive: true, ..RegionInfo::default() };
        let regions = [self.b.region(Some(op), looping), self.b.region(Some(op), looping)];
        self.b.region_successor(regions[0], regions[1]);
        self.b.region_successor(regions[1], regions[0]);
        let mut pairs = Vec::new();
        let mut ends = Vec::new();
        for region in regions {
            let inner = self.b.block(region);
            let mut inner_scope = scope.clone();
            let argument = self.b.argument(inner, ValueInfo::default());
            inner_scope.push(argument);
            self.loop_body(region, inner, &mut inner_scope, depth + 1);
            let value = self.pick(&inner_scope);
            let end = self.b.op(inner, 0);
            ends.push(self.b.operand(end, value, Use::TERMINATOR));
            pairs.push((argument, value));
        }
        let relation = Relation::EquivalentIf { first: pairs[0], second: Some(pairs[1]) };
        self.b.alias(operand, Alias { relation, ..Alias::equivalent(result) });
        self.b.flow(operand, pairs[0].0);
        self.b.flow(ends[1], pairs[0].0);
        self.b.flow(ends[0], pairs[1].0);
        self.b.flow(ends[0], result);
        scope.push(result);
    }

    /// `scf.forall`.
    fn forall(&mut self, block: BlockId, scope: &mut Vec<ValueId>, depth: u32) {
        let init = self.pick(scope);
        let op = self.b.op(block, 0);
        self.b.region_branch(op);
        let operand = self.b.operand(op, init, Use::READ_WRITE);
        let result = self.result(op);
        self.b.alias(operand, Alias::equivalent(result));
        let info = RegionInfo { repetitive: true, parallel: true, ..RegionInfo::default() };
        let region = self.b.region(Some(op), info);
        self.b.region_successor(region, region);
        let inner = self.b.block(region);
        let argument = self.b.argument(inner, ValueInfo::default());
        self.b.flow(operand, argument);
        let mut inner_scope = scope.clone();
        inner_scope.push(argument);
        self.loop_body(region, inner, &mut inner_scope, depth + 1);
        let end = self.b.op(inner, 0);
        let graph = self.b.region(Some(end), RegionInfo { graph: true, ..RegionInfo::default() });
        let combining = self.b.block(graph);
        for _ in 0..1 + self.random.below(2) {
            let value = self.pick(&inner_scope);
            let (slice, insert) = (self.slice(), self.b.op(combining, 0));
            let source = self.b.operand(insert, value, Use::READ);
            let destination = self.b.operand(insert, argument, Use { must_in_place: true, ..Use::READ_WRITE });
            self.b.subset(insert, Subset::Insertion { source: Some(source), destination, slice: Some(slice) });
            self.b.flow(destination, result);
        }
        scope.push(result);
    }

    /// `scf.execute_region` with any control flow between its blocks.
    fn blocks(&mut self, block: BlockId, scope: &mut Vec<ValueId>, depth: u32) {
        let op = self.b.op(block, 0);
        if self.random.percent(50) {
            self.b.region_branch(op);
        }
        let result = self.result(op);
        let region = self.b.region(Some(op), RegionInfo::default());
        let count = 2 + self.random.below(5);
        let blocks: Vec<_> = (0..count).map(|_| self.b.block(region)).collect();
        let arguments: Vec<Vec<ValueId>> = blocks
            .iter()
            .map(|&block| {
                let count = if block == blocks[0] { 0 } else { self.random.below(3) };
                (0..count).map(|_| self.b.argument(block, ValueInfo::default())).collect()
            })
            .collect();
        let mut edges = Vec::new();
        for from in 0..count {
            for _ in 0..self.random.below(3) {
                let forwards = self.random.percent(70) && from + 1 < count;
                let to =
                    if forwards { from + 1 + self.random.below(count - from - 1) } else { self.random.below(count) };
                if to != 0 && !edges.contains(&(from, to)) {
                    edges.push((from, to));
                    self.b.block_successor(blocks[from as usize], blocks[to as usize]);
                }
            }
        }
        let found = dominators(&Graph::new(blocks.len(), &edges));
        let unreachable = (1..count).filter(|&number| found.parents[number as usize] == NONE);
        let mut scopes = vec![scope.clone(); blocks.len()];
        for number in found.reverse_post_order.iter().copied().chain(unreachable) {
            let at = number as usize;
            if found.parents[at] != NONE {
                scopes[at] = scopes[found.parents[at] as usize].clone();
            }
            scopes[at].extend(&arguments[at]);
            let mut inner = std::mem::take(&mut scopes[at]);
            self.body(blocks[at], &mut inner, depth + 1);
            let end = self.b.op(blocks[at], 0);
            for &(_, to) in edges.iter().filter(|(from, _)| *from == number) {
                for &argument in &arguments[to as usize] {
                    let value = self.pick(&inner);
                    let passed = self.b.operand(end, value, Use::NONE);
                    self.b.alias(passed, Alias::maybe_equivalent(argument));
                }
            }
            if edges.iter().all(|(from, _)| *from != number) {
                let value = self.pick(&inner);
                let yielded = self.b.operand(end, value, Use::TERMINATOR);
                self.b.alias(yielded, Alias::maybe_equivalent(result));
                self.b.flow(yielded, result);
            }
            scopes[at] = inner;
        }
        scope.push(result);
    }
}
