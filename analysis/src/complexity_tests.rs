//! Counted steps, not seconds: the work of decisions on growing functions of many shapes.

use crate::builder::FactsBuilder;
use crate::facts::{Affine, Alias, Facts, RegionInfo, Slice, Subset, Use, ValueInfo};
use crate::index::{BlockId, OpId, RegionId, SliceId, ValueId};
use crate::one_shot::{Options, decide};

struct Shape {
    b: FactsBuilder,
    block: BlockId,
    value: ValueId,
}

impl Shape {
    fn new() -> Self {
        let mut b = FactsBuilder::new();
        let region = b.region(None, RegionInfo::default());
        let block = b.block(region);
        let value = b.argument(block, ValueInfo::default());
        Self { b, block, value }
    }

    fn destination(&mut self, block: BlockId, value: ValueId, used: Use) -> (OpId, ValueId) {
        let op = self.b.op(block, 0);
        let operand = self.b.operand(op, value, used);
        let result = self.b.result(op, ValueInfo::default());
        self.b.alias(operand, Alias::equivalent(result));
        (op, result)
    }

    /// A new tensor.
    fn made(&mut self) -> ValueId {
        let op = self.b.op(self.block, 0);
        self.b.result(op, ValueInfo::default())
    }

    /// One of the values.
    fn pass(&mut self, block: BlockId, values: &[ValueId]) -> ValueId {
        let op = self.b.op(block, 0);
        let operands: Vec<_> = values.iter().map(|&value| self.b.operand(op, value, Use::NONE)).collect();
        let result = self.b.result(op, ValueInfo::default());
        for operand in operands {
            self.b.alias(operand, Alias::maybe_equivalent(result));
        }
        result
    }

    fn read(&mut self, block: BlockId, value: ValueId) {
        let op = self.b.op(block, 0);
        self.b.operand(op, value, Use::READ);
    }

    fn slice(&mut self, offset: u32) -> SliceId {
        let one = || vec![Affine::constant(1)];
        self.b.slice(Slice { offsets: vec![Affine::constant(offset.into())], sizes: one(), strides: one() })
    }

    fn extract(&mut self, block: BlockId, value: ValueId, slice: SliceId) -> ValueId {
        let op = self.b.op(block, 0);
        let container = self.b.operand(op, value, Use::NONE);
        let result = self.b.result(op, ValueInfo::default());
        self.b.alias(container, Alias::unknown(result));
        self.b.subset(op, Subset::Extraction { container, result, slice });
        result
    }

    fn insert(&mut self, block: BlockId, source: ValueId, into: ValueId, slice: SliceId) -> ValueId {
        let op = self.b.op(block, 0);
        let source = self.b.operand(op, source, Use::READ);
        let destination = self.b.operand(op, into, Use::READ_WRITE);
        let result = self.b.result(op, ValueInfo::default());
        self.b.alias(destination, Alias::equivalent(result));
        self.b.subset(op, Subset::Insertion { source: Some(source), destination, slice: Some(slice) });
        result
    }

    fn region(&mut self, op: OpId, info: RegionInfo) -> BlockId {
        let region = self.b.region(Some(op), info);
        if info.repetitive {
            self.b.region_successor(region, region);
        }
        self.b.block(region)
    }

    fn branch(&mut self) -> OpId {
        let op = self.b.op(self.block, 0);
        self.b.region_branch(op);
        op
    }

    fn finish(self) -> Facts {
        self.b.finish().expect("the shape is consistent")
    }
}

/// Steps at three sizes, each four times the one before: near-linear growth is a factor of little more than four.
fn assert_near_linear(name: &str, shape: impl Fn(u32) -> Facts) {
    let steps = [500, 2000, 8000].map(|size| {
        let facts = shape(size);
        decide(&facts, &Options::default()).expect("the shape can be decided").steps()
    });
    for pair in steps.windows(2) {
        assert!(pair[1] < pair[0].saturating_mul(6), "{name}: steps {steps:?}");
    }
}

#[test]
fn chains_are_near_linear() {
    assert_near_linear("chain of insertions", |size| {
        let mut s = Shape::new();
        for index in 0..size {
            let slice = s.slice(index);
            let source = s.destination(s.block, s.value, Use::WRITE).1;
            s.value = s.insert(s.block, source, s.value, slice);
        }
        s.finish()
    });
    assert_near_linear("extract, fill, insert", |size| {
        let mut s = Shape::new();
        for index in 0..size {
            let slice = s.slice(index);
            let part = s.extract(s.block, s.value, slice);
            let filled = s.destination(s.block, part, Use::WRITE).1;
            s.value = s.insert(s.block, filled, s.value, slice);
        }
        s.finish()
    });
    assert_near_linear("read, then write", |size| {
        let mut s = Shape::new();
        for _ in 0..size {
            s.read(s.block, s.value);
            s.value = s.destination(s.block, s.value, Use::READ_WRITE).1;
        }
        s.finish()
    });
}

#[test]
fn copies_are_near_linear() {
    assert_near_linear("every write copied", |size| {
        let mut s = Shape::new();
        for _ in 0..size {
            let made = s.destination(s.block, s.value, Use::WRITE).1;
            s.read(s.block, made);
        }
        s.read(s.block, s.value);
        s.finish()
    });
    assert_near_linear("every write copied in a loop", |size| {
        let mut s = Shape::new();
        let op = s.branch();
        let inner = s.region(op, RegionInfo { repetitive: true, ..RegionInfo::default() });
        for _ in 0..size {
            s.read(inner, s.value);
            s.destination(inner, s.value, Use::WRITE);
        }
        s.finish()
    });
    assert_near_linear("stale reads", |size| {
        let mut s = Shape::new();
        for _ in 0..size {
            let next = s.destination(s.block, s.value, Use::READ_WRITE).1;
            s.read(s.block, s.value);
            s.value = next;
        }
        s.finish()
    });
}

#[test]
fn regions_are_near_linear() {
    assert_near_linear("writes in one branch, reads in the other", |size| {
        let mut s = Shape::new();
        let op = s.branch();
        let (writes, reads) = (s.region(op, RegionInfo::default()), s.region(op, RegionInfo::default()));
        let mut value = s.value;
        for _ in 0..size {
            value = s.destination(writes, value, Use::READ_WRITE).1;
            s.read(reads, s.value);
        }
        s.finish()
    });
    assert_near_linear("switch with a read and a write in each case", |size| {
        let mut s = Shape::new();
        let op = s.branch();
        for _ in 0..size {
            let case = s.region(op, RegionInfo::default());
            s.read(case, s.value);
            s.destination(case, s.value, Use::WRITE);
        }
        s.finish()
    });
    assert_near_linear("loop with many values", |size| {
        let mut s = Shape::new();
        let inits: Vec<_> = (0..size).map(|_| s.destination(s.block, s.value, Use::WRITE).1).collect();
        let op = s.branch();
        let inner = s.region(op, RegionInfo { repetitive: true, ..RegionInfo::default() });
        let arguments: Vec<_> = inits.iter().map(|_| s.b.argument(inner, ValueInfo::default())).collect();
        let operands: Vec<_> = inits.iter().map(|&init| s.b.operand(op, init, Use::READ_WRITE)).collect();
        for (&operand, &argument) in operands.iter().zip(&arguments) {
            let result = s.b.result(op, ValueInfo::default());
            s.b.alias(operand, Alias::equivalent_if(result, (argument, argument)));
        }
        let end = s.b.op(inner, 0);
        for &argument in &arguments {
            s.b.operand(end, argument, Use::TERMINATOR);
        }
        s.finish()
    });
    assert_near_linear("loops that capture one tensor", |size| {
        let mut s = Shape::new();
        for _ in 0..size {
            let op = s.branch();
            let inner = s.region(op, RegionInfo { repetitive: true, ..RegionInfo::default() });
            s.read(inner, s.value);
            s.destination(inner, s.value, Use::WRITE);
        }
        s.finish()
    });
}

/// Classes of equal size that cannot merge, for the reason that is tested last.
#[test]
fn failing_merges_are_near_linear() {
    assert_near_linear("failing merges", |size| {
        let mut s = Shape::new();
        let groups = size.isqrt();
        let mut values = Vec::new();
        for _ in 0..groups {
            let op = s.b.op(s.block, 0);
            let mut value = s.b.result(op, ValueInfo::default());
            let first = value;
            for _ in 0..groups {
                value = s.destination(s.block, value, Use::READ_WRITE).1;
            }
            values.push((first, value));
        }
        for _ in 0..2 {
            for index in 1..values.len() {
                // A select between two groups: the second one is written after the first one was defined.
                let op = s.b.op(s.block, 0);
                let pair = [values[0].1, values[index].1].map(|value| s.b.operand(op, value, Use::NONE));
                let result = s.b.result(op, ValueInfo::default());
                for operand in pair {
                    s.b.alias(operand, Alias::maybe_equivalent(result));
                }
                s.read(s.block, result);
            }
        }
        s.finish()
    });
}

/// Slices, and values that are one slice through many paths.
#[test]
fn slices_are_near_linear() {
    assert_near_linear("slices of one tensor into another", |size| {
        let mut s = Shape::new();
        let from = s.value;
        s.value = s.made();
        for index in 0..size {
            let slice = s.slice(index);
            let part = s.extract(s.block, from, slice);
            s.value = s.insert(s.block, part, s.value, slice);
        }
        s.finish()
    });
    assert_near_linear("a ladder of selects that meet again and again", |size| {
        let mut s = Shape::new();
        let (whole, slice) = (s.value, s.slice(0));
        s.value = s.extract(s.block, whole, slice);
        for _ in 0..size {
            let passed = s.pass(s.block, &[s.value]);
            s.value = s.pass(s.block, &[passed, s.value]);
        }
        s.value = s.destination(s.block, s.value, Use::READ_WRITE).1;
        s.insert(s.block, s.value, whole, slice);
        s.finish()
    });
    assert_near_linear("selects, each read", |size| {
        let mut s = Shape::new();
        for _ in 0..size {
            let other = s.made();
            s.value = s.pass(s.block, &[other, s.value]);
            s.read(s.block, s.value);
        }
        s.finish()
    });
}

#[test]
fn wide_operations_are_near_linear() {
    assert_near_linear("one operation that reads and writes many tensors", |size| {
        let mut s = Shape::new();
        let values: Vec<_> = (0..size).map(|_| s.made()).collect();
        let op = s.b.op(s.block, 0);
        for value in values {
            s.b.operand(op, value, Use::READ);
            let operand = s.b.operand(op, value, Use::READ_WRITE);
            let result = s.b.result(op, ValueInfo::default());
            s.b.alias(operand, Alias::equivalent(result));
        }
        s.finish()
    });
}

/// Each block passes the tensor on to the next one, reads it and writes it.
fn passed_on(size: u32, back: impl Fn(u32) -> Option<u32>) -> Facts {
    let mut s = Shape::new();
    let (mut blocks, mut values) = (vec![s.block], vec![s.value]);
    for _ in 0..size {
        let block = s.b.block(RegionId::new(0));
        values.push(s.b.argument(block, ValueInfo::default()));
        blocks.push(block);
    }
    for (number, (&block, &value)) in (0..).zip(blocks.iter().zip(&values)) {
        s.read(block, value);
        let made = s.destination(block, value, Use::READ_WRITE).1;
        let end = s.b.op(block, 0);
        for next in [Some(number + 1), back(number)].into_iter().flatten().filter(|&next| next <= size) {
            s.b.block_successor(block, blocks[next as usize]);
            let operand = s.b.operand(end, made, Use::NONE);
            s.b.alias(operand, Alias::maybe_equivalent(values[next as usize]));
        }
    }
    s.finish()
}

#[test]
fn blocks_are_near_linear() {
    assert_near_linear("a chain of blocks", |size| passed_on(size, |_| None));
    assert_near_linear("loops of three blocks in sequence", |size| {
        passed_on(size, |number| (number > 3 && number % 3 == 0).then(|| number - 2))
    });
    assert_near_linear("blocks that may be left out", |size| {
        passed_on(size, |number| (number % 2 == 0).then_some(number + 2))
    });
    assert_near_linear("a switch to many blocks that join again", |size| {
        let mut s = Shape::new();
        let root = RegionId::new(0);
        let cases: Vec<_> = (0..size).map(|_| s.b.block(root)).collect();
        let last = s.b.block(root);
        let argument = s.b.argument(last, ValueInfo::default());
        for case in cases {
            s.b.block_successor(s.block, case);
            s.b.block_successor(case, last);
            s.read(case, s.value);
            let made = s.destination(case, s.value, Use::WRITE).1;
            let end = s.b.op(case, 0);
            let operand = s.b.operand(end, made, Use::NONE);
            s.b.alias(operand, Alias::maybe_equivalent(argument));
        }
        s.read(last, argument);
        s.finish()
    });
    assert_near_linear("one loop of many blocks that captures a tensor", |size| {
        let mut s = Shape::new();
        let mut before = s.block;
        let blocks: Vec<_> = (0..size).map(|_| s.b.block(RegionId::new(0))).collect();
        for &block in &blocks {
            s.b.block_successor(before, block);
            s.read(block, s.value);
            s.destination(block, s.value, Use::WRITE);
            before = block;
        }
        s.b.block_successor(before, blocks[0]);
        s.finish()
    });
}

/// Deep nests: [`deep_nests_are_quadratic_at_most`] has ifs; here loops that forward a tensor in and out.
#[test]
fn nests_of_loops_are_quadratic_at_most() {
    let steps = [15, 30, 60, 120].map(|depth| {
        let mut s = Shape::new();
        let mut open = Vec::new();
        for _ in 0..depth {
            let op = s.branch();
            let operand = s.b.operand(op, s.value, Use::READ_WRITE);
            let result = s.b.result(op, ValueInfo::default());
            s.block = s.region(op, RegionInfo { repetitive: true, ..RegionInfo::default() });
            s.value = s.b.argument(s.block, ValueInfo::default());
            s.read(s.block, s.value);
            open.push((operand, result, s.block, s.value));
        }
        s.value = s.destination(s.block, s.value, Use::READ_WRITE).1;
        for (operand, result, block, argument) in open.into_iter().rev() {
            let end = s.b.op(block, 0);
            s.b.operand(end, s.value, Use::TERMINATOR);
            s.b.alias(operand, Alias::equivalent_if(result, (argument, s.value)));
            s.value = result;
        }
        decide(&s.finish(), &Options::default()).expect("the nest can be decided").steps()
    });
    for pair in steps.windows(2) {
        assert!(pair[1] < pair[0].saturating_mul(5), "steps {steps:?}");
    }
}

/// Intervals are proportional to depth: quadratic in a function of nested regions only, and no worse.
#[test]
fn deep_nests_are_quadratic_at_most() {
    let steps = [50, 100, 200, 400].map(|depth| {
        let mut s = Shape::new();
        for _ in 0..depth {
            let op = s.branch();
            let (first, second) = (s.region(op, RegionInfo::default()), s.region(op, RegionInfo::default()));
            s.read(first, s.value);
            s.destination(first, s.value, Use::WRITE);
            s.read(second, s.value);
            s.block = second;
        }
        decide(&s.finish(), &Options::default()).expect("the nest can be decided").steps()
    });
    for pair in steps.windows(2) {
        assert!(pair[1] < pair[0].saturating_mul(5), "steps {steps:?}");
    }
}
