//! Equalities between the sizes of inputs that a program requires.
//!
//! Before / after:
//!
//! ```text
//! %s = arith.addf %x, %y : tensor<?xf32>                          x[0] = y[0]
//! %m = linalg.matmul ins(%a, %b : tensor<?x?xf32>, ...)           a[1] = b[0]
//! %c = tensor.cast %z : tensor<?xf32> to tensor<8xf32>            z[0] = 8
//! ```
//!
//! Union-find over (value, dimension): each op of the entry block joins the sizes that it requires or makes equal. A loop's
//! result has the sizes of its initial values where the body keeps them.
//!
//! Requires: calls inlined, elementwise ops in linalg form.
//! Ensures: a run whose inputs break a rule has no right result; no rule comes from an op that a run may skip.
//! Limits: equalities alone, which a run checks before it begins. Ranges (slices, windows of convolutions, products of
//! reshapes), and what ops in branches and loops need, are checked where they run (`checks.rs`).

use crate::linalg;
use monopour_ir::interfaces::indexing_maps;
use monopour_ir::ops;
use monopour_ir::{AffineExprKind, AffineMap, Attr, Block, DYNAMIC, Op, Value};
use monopour_program::{InputSize, SizeRules};
use std::collections::{BTreeMap, HashMap};

/// A size.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Key<'c> {
    Constant(i64),
    /// A dynamic dimension.
    Dim(Value<'c>, usize),
    /// The number itself.
    Number(Value<'c>),
}

/// The rules of an entry function.
pub(super) fn rules(entry: Op) -> SizeRules {
    let mut sizes = Sizes::default();
    let Some(block) = entry.body() else { return SizeRules::default() };
    let mut inputs: Vec<(InputSize, Key)> = vec![];
    for (input, arg) in (0u32..).zip(block.args()) {
        for (dim, key) in (0u32..).zip(extents(arg)) {
            let dim = matches!(key, Key::Dim(..)).then_some(dim);
            sizes.node(key);
            if !matches!(key, Key::Constant(_)) {
                inputs.push((InputSize { input, dim }, key));
            }
        }
    }
    if inputs.is_empty() {
        return SizeRules::default();
    }
    sizes.block(block);
    sizes.rules(&inputs)
}

/// Sizes of a tensor, or an integer that may be a size; none of anything else.
fn extents<'c>(value: Value<'c>) -> Vec<Key<'c>> {
    let ty = value.ty();
    if ty.is_tensor() {
        let shape = ty.shape().unwrap_or_default().into_iter().enumerate();
        return shape.map(|(i, n)| if n == DYNAMIC { Key::Dim(value, i) } else { Key::Constant(n) }).collect();
    }
    let is_number = ty.is_index() || ty.integer_width().is_some_and(|width| width > 1);
    if is_number { vec![number(value)] } else { vec![] }
}

fn number<'c>(value: Value<'c>) -> Key<'c> {
    value.constant_int().map_or(Key::Number(value), Key::Constant)
}

/// The dynamic sizes of a tensor.
fn dynamic<'c>(value: Value<'c>) -> impl Iterator<Item = Key<'c>> {
    extents(value).into_iter().filter(|key| matches!(key, Key::Dim(..)))
}

/// Classes of equal sizes. The root of a class is a constant if it has one, else its oldest member.
#[derive(Clone, Default)]
struct Sizes<'c> {
    nodes: HashMap<Key<'c>, usize>,
    keys: Vec<Key<'c>>,
    parents: Vec<usize>,
}

impl<'c> Sizes<'c> {
    fn node(&mut self, key: Key<'c>) -> usize {
        let next = self.keys.len();
        let node = *self.nodes.entry(key).or_insert(next);
        if node == next {
            self.keys.push(key);
            self.parents.push(node);
        }
        node
    }

    fn root(&mut self, key: Key<'c>) -> usize {
        let mut node = self.node(key);
        while self.parents[node] != node {
            self.parents[node] = self.parents[self.parents[node]];
            node = self.parents[node];
        }
        node
    }

    fn join(&mut self, a: Key<'c>, b: Key<'c>) {
        let (a, b) = (self.root(a), self.root(b));
        let rank = |node: usize| (!matches!(self.keys[node], Key::Constant(_)), node);
        let (root, child) = if rank(a) <= rank(b) { (a, b) } else { (b, a) };
        self.parents[child] = root;
    }

    fn join_all(&mut self, a: impl IntoIterator<Item = Key<'c>>, b: impl IntoIterator<Item = Key<'c>>) {
        a.into_iter().zip(b).for_each(|(a, b)| self.join(a, b));
    }

    /// Two values of one rank have the same sizes.
    fn tie(&mut self, a: Value<'c>, b: Value<'c>) {
        let (a, b) = (extents(a), extents(b));
        if a.len() == b.len() {
            self.join_all(a, b);
        }
    }

    fn rules(&mut self, inputs: &[(InputSize, Key<'c>)]) -> SizeRules {
        let constants: Vec<Key> = self.keys.iter().copied().filter(|key| matches!(key, Key::Constant(_))).collect();
        let mut fixed_by: BTreeMap<usize, Vec<i64>> = BTreeMap::new();
        for key in constants {
            let root = self.root(key);
            if let Key::Constant(size) = key {
                fixed_by.entry(root).or_default().push(size);
            }
        }
        let mut rules = SizeRules::default();
        let mut classes: Vec<(usize, Vec<InputSize>)> = vec![];
        for (size, key) in inputs {
            let root = self.root(*key);
            if let Some(needed) = fixed_by.get(&root) {
                rules.fixed.extend(needed.iter().map(|needed| (*size, *needed)));
                continue;
            }
            match classes.iter_mut().find(|(other, _)| *other == root) {
                Some((_, class)) => class.push(*size),
                None => classes.push((root, vec![*size])),
            }
        }
        rules.equal = classes.into_iter().map(|(_, class)| class).filter(|class| class.len() > 1).collect();
        rules
    }

    fn block(&mut self, block: Block<'c>) {
        block.ops().into_iter().for_each(|op| self.op(op));
    }

    fn op(&mut self, op: Op<'c>) {
        if let Some(maps) = indexing_maps(op) {
            self.structured(op, maps);
            return;
        }
        match op.name() {
            ops::tensor::CAST => self.tie(op.operand(0), op.result(0)),
            ops::tensor::DIM => self.dim(op),
            ops::arith::INDEX_CAST | ops::arith::EXTSI => {
                // A narrowing cast may change the number.
                let width = |value: Value<'c>| value.ty().integer_width().unwrap_or(64);
                if width(op.operand(0)) <= width(op.result(0)) {
                    self.tie(op.operand(0), op.result(0));
                }
            }
            ops::tensor::EMPTY | ops::tensor::GENERATE => self.join_all(dynamic(op.result(0)), numbers(&op.operands())),
            ops::tensor::SPLAT => self.join_all(dynamic(op.result(0)), numbers(&op.operands()[1..])),
            ops::tensor::INSERT | ops::linalg::PACK | ops::linalg::UNPACK => self.tie(op.operand(1), op.result(0)),
            ops::linalg::SOFTMAX => {
                self.tie(op.operand(0), op.operand(1));
                self.tie(op.operand(1), op.result(0));
            }
            ops::tensor::EXTRACT_SLICE => self.join_all(dynamic(op.result(0)), slice_sizes(op, 1)),
            ops::tensor::INSERT_SLICE => {
                self.join_all(dynamic(op.operand(0)), slice_sizes(op, 2));
                self.tie(op.operand(1), op.result(0));
            }
            ops::tensor::EXPAND_SHAPE => {
                self.join_all(dynamic(op.result(0)), numbers(&op.operands()[1..]));
                self.reshape(op, op.operand(0), op.result(0));
            }
            ops::tensor::COLLAPSE_SHAPE => self.reshape(op, op.result(0), op.operand(0)),
            ops::tensor::PAD => self.pad(op),
            ops::tensor::CONCAT => self.concat(op),
            ops::arith::SELECT if op.result(0).ty().is_tensor() => self.select(op),
            ops::scf::FORALL => {
                let first = op.num_operands() - op.num_results();
                (0..op.num_results()).for_each(|i| self.tie(op.operand(first + i), op.result(i)));
            }
            ops::scf::EXECUTE_REGION => self.execute_region(op),
            ops::scf::IF => self.branches(op),
            ops::scf::FOR => self.counted_loop(op),
            ops::scf::WHILE => self.while_loop(op),
            _ => {}
        }
    }

    /// Dimensions that one loop indexes have one size.
    fn structured(&mut self, op: Op<'c>, maps: Vec<AffineMap<'c>>) {
        let mut loops: HashMap<usize, Key> = HashMap::new();
        for (map, operand) in maps.into_iter().zip(op.operands()) {
            for (expr, key) in map.results().into_iter().zip(extents(operand)) {
                if let AffineExprKind::Dim(at) = expr.kind() {
                    let first = *loops.entry(at).or_insert(key);
                    self.join(first, key);
                }
            }
        }
        (0..op.num_results()).for_each(|i| self.tie(op.result(i), linalg::destination(op, i)));
    }

    fn dim(&mut self, op: Op<'c>) {
        let at = op.operand(1).constant_int().and_then(|at| usize::try_from(at).ok());
        if let Some(key) = at.and_then(|at| extents(op.operand(0)).get(at).copied()) {
            self.join(number(op.result(0)), key);
        }
    }

    /// Sizes that both sides have.
    fn select(&mut self, op: Op<'c>) {
        let sides = extents(op.operand(1)).into_iter().zip(extents(op.operand(2)));
        for ((a, b), result) in sides.zip(extents(op.result(0))) {
            if self.root(a) == self.root(b) {
                self.join(a, result);
            }
        }
    }

    /// A group of dimensions of which all but one have one element is that one.
    fn reshape(&mut self, op: Op<'c>, collapsed: Value<'c>, expanded: Value<'c>) {
        let groups = op.attr("reassociation").and_then(|a| a.as_array()).unwrap_or_default();
        let expanded = extents(expanded);
        for (key, group) in extents(collapsed).into_iter().zip(groups) {
            let group: Vec<Key> = positions(group).into_iter().filter_map(|at| expanded.get(at).copied()).collect();
            let mut others = group.iter().copied().filter(|key| *key != Key::Constant(1));
            if let (Some(only), None) = (others.next(), others.next()) {
                self.join(key, only);
            }
        }
    }

    fn pad(&mut self, op: Op<'c>) {
        let sides = ["static_low", "static_high"].map(|name| op.attr(name).and_then(|a| a.as_ints()));
        let [Some(low), Some(high)] = sides else { return };
        let both = extents(op.operand(0)).into_iter().zip(extents(op.result(0)));
        for ((from, to), _) in both.zip(low.into_iter().zip(high)).filter(|(_, pads)| *pads == (0, 0)) {
            self.join(from, to);
        }
    }

    fn concat(&mut self, op: Op<'c>) {
        let Some(along) = op.attr("dim").and_then(|a| a.as_int()).and_then(|d| usize::try_from(d).ok()) else { return };
        let across = |value: Value<'c>| extents(value).into_iter().enumerate().filter(move |(i, _)| *i != along);
        let keys = |value: Value<'c>| across(value).map(|(_, key)| key).collect::<Vec<_>>();
        for operand in op.operands() {
            self.join_all(keys(op.result(0)), keys(operand));
        }
    }

    fn execute_region(&mut self, op: Op<'c>) {
        // With several blocks, some may not run.
        let [block] = op.region(0).blocks()[..] else { return };
        self.block(block);
        let yielded = block.terminator().map(Op::operands).unwrap_or_default();
        yielded.into_iter().zip(op.results()).for_each(|(from, to)| self.tie(from, to));
    }

    /// A member of an inner size's class that is known in this scope.
    fn outside(&self, inner: &mut Sizes<'c>, key: Key<'c>) -> Option<Key<'c>> {
        let root = inner.root(key);
        let found = inner.keys[root];
        (matches!(found, Key::Constant(_)) || root < self.keys.len()).then_some(found)
    }

    /// A result has a size that both branches give it.
    fn branches(&mut self, op: Op<'c>) {
        let mut sides: Vec<Vec<Option<Key>>> = vec![];
        for block in op.regions().into_iter().filter_map(|region| region.entry()) {
            let mut inner = self.clone();
            inner.block(block);
            let yielded = block.terminator().map(Op::operands).unwrap_or_default();
            let keys: Vec<Key> = yielded.into_iter().flat_map(extents).collect();
            sides.push(keys.into_iter().map(|key| self.outside(&mut inner, key)).collect());
        }
        let [one, other] = &sides[..] else { return };
        // Both branches yield the types of the results: the sizes stand in the same order.
        let results: Vec<Key> = op.results().into_iter().flat_map(extents).collect();
        for ((one, other), result) in one.iter().zip(other).zip(results) {
            if let (Some(one), true) = (one, one == other) {
                self.join(*one, result);
            }
        }
    }

    /// The carried sizes that the body keeps, as pairs of a body argument's and the initial one. `last` walks the body and
    /// returns the sizes of the next iteration.
    fn kept(
        &self,
        carried: Vec<(Key<'c>, Key<'c>)>,
        last: impl Fn(&mut Sizes<'c>) -> Vec<Key<'c>>,
    ) -> Vec<(usize, Key<'c>, Key<'c>)> {
        let mut kept: Vec<(usize, Key, Key)> = (0..).zip(carried).map(|(i, (arg, init))| (i, arg, init)).collect();
        // Optimistic fixed point: all are kept until one is seen to change, on which others may depend.
        loop {
            let mut inner = self.clone();
            kept.iter().for_each(|(_, arg, init)| inner.join(*arg, *init));
            let next = last(&mut inner);
            let before = kept.len();
            kept.retain(|(i, arg, _)| next.get(*i).is_some_and(|next| inner.root(*next) == inner.root(*arg)));
            if kept.len() == before {
                return kept;
            }
        }
    }

    fn counted_loop(&mut self, op: Op<'c>) {
        let Some(body) = op.body() else { return };
        let args = body.args().into_iter().skip(1).flat_map(extents);
        let inits: Vec<Key> = op.operands().into_iter().skip(3).flat_map(extents).collect();
        let carried = args.zip(inits).collect();
        let kept = self.kept(carried, |inner| {
            inner.block(body);
            body.terminator().map(Op::operands).unwrap_or_default().into_iter().flat_map(extents).collect()
        });
        let results: Vec<Key> = op.results().into_iter().flat_map(extents).collect();
        kept.into_iter().for_each(|(i, _, init)| self.join(init, results[i]));
    }

    fn while_loop(&mut self, op: Op<'c>) {
        let regions = op.regions();
        let blocks: Vec<Block> = regions.into_iter().filter_map(|region| region.entry()).collect();
        let [before, after] = blocks[..] else { return };
        let Some(condition) = before.terminator() else { return };
        let passed: Vec<Key> = condition.operands().into_iter().skip(1).flat_map(extents).collect();
        let args = before.args().into_iter().flat_map(extents);
        let carried = args.zip(op.operands().into_iter().flat_map(extents)).collect();
        let kept = self.kept(carried, |inner| {
            inner.block(before);
            inner.join_all(passed.iter().copied(), after.args().into_iter().flat_map(extents));
            inner.block(after);
            after.terminator().map(Op::operands).unwrap_or_default().into_iter().flat_map(extents).collect()
        });
        // The results are the operands of `scf.condition`: the other region may not have run.
        let mut inner = self.clone();
        kept.iter().for_each(|(_, arg, init)| inner.join(*arg, *init));
        inner.block(before);
        for (passed, result) in passed.into_iter().zip(op.results().into_iter().flat_map(extents)) {
            if let Some(known) = self.outside(&mut inner, passed) {
                self.join(known, result);
            }
        }
    }
}

fn numbers<'c>(values: &[Value<'c>]) -> Vec<Key<'c>> {
    values.iter().map(|value| number(*value)).collect()
}

/// The dynamic sizes of a slice, which follow the offsets behind `tensors` operands.
fn slice_sizes<'c>(op: Op<'c>, tensors: usize) -> Vec<Key<'c>> {
    let count = |name: &str| {
        let fixed = op.attr(name).and_then(|a| a.as_ints()).unwrap_or_default();
        fixed.into_iter().filter(|n| *n == DYNAMIC).count()
    };
    let sizes = op.operands().into_iter().skip(tensors + count("static_offsets")).take(count("static_sizes"));
    sizes.map(number).collect()
}

fn positions(group: Attr) -> Vec<usize> {
    let each = group.as_array().unwrap_or_default().into_iter();
    each.filter_map(|at| at.as_int().and_then(|at| usize::try_from(at).ok())).collect()
}
