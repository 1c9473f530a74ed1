//! Values that certainly are the same slice: a dominator tree over the reversed aliases.
//!
//! An insertion overwrites a *key*: a slice of a destination value.
//! A value is exactly that slice if every walk backwards from it passes an extraction with that key.
//! All extractions with one key share a node; any other value is a node below the lowest common ancestor of its
//! sources. So "every walk passes the key" is "the value's node is below the key's node", one comparison
//! of numbers.
//!
//! The reference's walk treats a value that it meets twice as a leaf, unless that is the slice itself. So values
//! have a least depth ([`crate::revisits`]): they match no slice above it.
//!
//! For "exactly" instead of "within", no walk may pass another edge to a part: nodes count such edges.
//! Slices of the slice are no such parts: an insertion's source has as many elements as the slice that it overwrites, so each
//! of them has all elements of the one before.
//!
//! A value that is its own transitive source (a block argument, around a loop of blocks) is below the root:
//! nothing is proved about it.
//! Time O(edges * log n), memory O(values).

use std::collections::HashMap;

use crate::blocks::{Graph, NONE, cycles};
use crate::equivalence::holds_by_identity;
use crate::facts::{Facts, Relation, Source, Subset, ValueDef};
use crate::forest::{Forest, Node, ROOT, Range};
use crate::index::{BlockId, Id, IndexVec, OpId, OperandId, SliceId, ValueId};
use crate::order::dominance_post_order;
use crate::revisits::least_depths;
use crate::trees::Number;

/// The most values visited to test whether one may be another: longer chains are rare, and a missed
/// answer only adds a copy.
const MOST_ALTERNATIVES: usize = 64;

/// More edges than any walk has: the sources of the value are unknown.
const OPEN: u32 = 1 << 30;

/// Answers about slices and about chains of equivalent values.
#[derive(Clone, Debug)]
pub(crate) struct Subsets {
    /// The number of each value.
    numbers: IndexVec<ValueId, u32>,
    /// The least depth of a slice that each value may match.
    least_depths: IndexVec<ValueId, u32>,
    /// The slice that is overwritten, by operation with an insertion.
    overwritten: IndexVec<OpId, Option<Range>>,
    /// The insertion writes back the present contents.
    rewrites: IndexVec<OpId, bool>,
    /// The numbers of all values that are within each value.
    ranges: IndexVec<ValueId, Range>,
    /// The most edges that change buffer or type, on a walk from the value to the root.
    breaks: IndexVec<ValueId, u32>,
    /// The value is no part of a buffer, as far as is known.
    is_whole: IndexVec<ValueId, bool>,
    /// Elementary steps of the walks that search for values met twice.
    pub steps: u64,
}

impl Subsets {
    pub fn new(facts: &Facts) -> Self {
        let Walk { order: values, looped } = walk(facts);
        let is_part = |edge: &Source| edge.relation == Relation::Unknown;
        let parts = most_edges(facts, &values, &looped, |edge| is_part(edge) && !facts.is_extraction(edge));
        let mut open = looped.clone();
        for &(a, b) in facts.shared_values() {
            (open[a], open[b]) = (true, true);
        }
        let wholes = most_edges(facts, &values, &open, is_part);
        let breaks = most_edges(facts, &values, &looped, |edge| !keeps_buffer(edge));
        let mut tree = Tree::new(facts, looped, parts);
        for &value in &values {
            tree.add(facts, value);
        }
        let insertions: Vec<_> = facts
            .ops()
            .iter_enumerated()
            .filter_map(|(op, info)| match info.subset {
                Some(Subset::Insertion { source, destination, slice }) => {
                    let value = facts.operands()[destination].value;
                    let key = tree.key_node(facts, value, slice)?;
                    Some((op, source, key, Some(value).filter(|_| slice.is_none())))
                }
                _ => None,
            })
            .collect();
        let ranges = tree.forest.ranges();
        let revisits = least_depths(facts, &tree.forest, &tree.nodes, &values);
        let mut this = Self {
            least_depths: revisits.least_depths,
            steps: revisits.steps,
            numbers: tree.nodes.iter().map(|&node| ranges[node as usize].first).collect(),
            overwritten: IndexVec::filled(None, facts.ops().len()),
            rewrites: IndexVec::filled(false, facts.ops().len()),
            ranges: tree.nodes.iter().map(|&node| ranges[node as usize]).collect(),
            breaks,
            is_whole: wholes.iter().map(|&parts| parts == 0).collect(),
        };
        for (op, source, key, whole) in insertions {
            let mut range = ranges[key as usize];
            range.depth += u32::from(whole.is_some());
            this.overwritten[op] = Some(range);
            this.rewrites[op] = source.map(|source| facts.operands()[source].value).is_some_and(|source| {
                this.matches(source, range)
                    && tree.parts[source] == tree.node_parts[key as usize]
                    && whole.is_none_or(|whole| wholes[source] == wholes[whole])
            });
        }
        this
    }

    /// The number and least depth of a value, as the trees compare them.
    pub fn number(&self, value: ValueId) -> Number {
        Number { number: self.numbers[value], least_depth: self.least_depths[value] }
    }

    /// Whether the value matches the slice.
    pub fn matches(&self, value: ValueId, slice: Range) -> bool {
        slice.contains(self.numbers[value]) && self.least_depths[value] <= slice.depth
    }

    /// For the destination of an insertion: the numbers of the values that match the overwritten slice.
    pub fn overwritten_by(&self, facts: &Facts, operand: OperandId) -> Option<Range> {
        let op = facts.operands()[operand].op;
        let range = self.overwritten[op]?;
        match facts.ops()[op].subset {
            Some(Subset::Insertion { destination, .. }) if destination == operand => Some(range),
            _ => None,
        }
    }

    /// For the destination of an insertion that writes back the present contents: the source operand.
    pub fn rewritten_source(&self, facts: &Facts, operand: OperandId) -> Option<OperandId> {
        let op = facts.operands()[operand].op;
        match facts.ops()[op].subset {
            Some(Subset::Insertion { source, destination, .. }) if destination == operand && self.rewrites[op] => {
                source
            }
            _ => None,
        }
    }

    /// Whether an elementwise operation may overwrite one value while it reads the other.
    ///
    /// Either one of them certainly is the other's buffer, with the same type: all walks from one of them lead to the
    /// other over edges that keep buffer and type. Or one of them may be the other's buffer, and both are whole
    /// buffers: then they are one buffer or share nothing. (Two slices of a buffer might share a part.)
    pub fn are_same_buffer(&self, facts: &Facts, a: ValueId, b: ValueId) -> bool {
        let leads = |from: ValueId, to: ValueId| self.ranges[to].contains(self.numbers[from]);
        let certainly = |from, to| self.breaks[a] == self.breaks[b] && leads(from, to);
        // Two extractions of one slice are one node: only the reference's walk distinguishes them.
        let alone = |value| facts.extracted(value).is_none();
        if a == b || (certainly(a, b) && alone(b)) || (certainly(b, a) && alone(a)) {
            return true;
        }
        let is_safe = certainly(a, b) || certainly(b, a) || (self.is_whole[a] && self.is_whole[b]);
        is_safe && (may_be(facts, a, b) || may_be(facts, b, a))
    }
}

/// Whether the edge keeps buffer and type.
fn keeps_buffer(edge: &Source) -> bool {
    !edge.retypes && holds_by_identity(edge.relation)
}

/// Whether a short backward walk, over edges that keep buffer and type, leads from one value to another
/// one.
fn may_be(facts: &Facts, from: ValueId, to: ValueId) -> bool {
    let (mut seen, mut next) = (vec![from], 0);
    while next < seen.len() && seen.len() <= MOST_ALTERNATIVES {
        for source in facts.sources(seen[next]).iter().filter(|source| keeps_buffer(source)) {
            let other = facts.operands()[source.operand].value;
            if other == to {
                return true;
            }
            if !seen.contains(&other) {
                seen.push(other);
            }
        }
        next += 1;
    }
    false
}

/// A backward walk over all values.
pub(crate) struct Walk {
    /// Values after their sources (except around loops of blocks).
    pub order: Vec<ValueId>,
    /// Values that close a loop: each loop has one.
    pub looped: IndexVec<ValueId, bool>,
}

pub(crate) fn walk(facts: &Facts) -> Walk {
    // Arguments depend on operands of the parent operation or of branches; results on nested operations.
    // A depth-first walk along the edges backwards orders both kinds. State 1: open, all on the way to the current one.
    let mut state = IndexVec::<ValueId, u8>::filled(0, facts.values().len());
    let mut looped = looped_arguments(facts);
    let mut order = Vec::with_capacity(facts.values().len());
    let results = dominance_post_order(facts).into_iter().flat_map(|op| facts.results_of(op).iter().copied());
    let mut stack: Vec<ValueId> = Vec::new();
    for start in results.chain(facts.values().ids()) {
        stack.push(start);
        while let Some(&value) = stack.last() {
            if state[value] == 0 {
                state[value] = 1;
                let sources = if looped[value] { &[] } else { facts.sources(value) };
                for source in sources {
                    let other = facts.operands()[source.operand].value;
                    // Only unreachable blocks have other loops.
                    looped[other] |= state[other] == 1;
                    if state[other] == 0 {
                        stack.push(other);
                    }
                }
                continue;
            }
            stack.pop();
            if state[value] == 1 {
                state[value] = 2;
                order.push(value);
            }
        }
    }
    Walk { order, looped }
}

/// Arguments of blocks that are on a loop of values, and are entered by a back edge.
///
/// A value's blocks dominate the block of its use, so each loop of values has such an argument.
fn looped_arguments(facts: &Facts) -> IndexVec<ValueId, bool> {
    let number = |block: BlockId| facts.places[block].number;
    let goes_back = |value: ValueId| match facts.values()[value].def {
        ValueDef::Result(_) => false,
        ValueDef::Argument(block) => facts.sources(value).iter().any(|source| {
            let from = facts.ops()[facts.operands()[source.operand].op].block;
            facts.blocks()[from].region == facts.blocks()[block].region && number(from) >= number(block)
        }),
    };
    let mut looped: IndexVec<ValueId, bool> = facts.values().ids().map(goes_back).collect();
    if looped.iter().any(|&is| is) {
        let edges = facts.values().ids().flat_map(|value| {
            let behind = facts.sources(value).iter().map(|source| facts.operands()[source.operand].value);
            behind.map(move |other| (value.number(), other.number()))
        });
        let graph = Graph::new(facts.values().len(), &edges.collect::<Vec<_>>());
        let found = cycles(&graph, |_| true);
        for value in facts.values().ids() {
            looped[value] &= found.of[value.index()] != NONE;
        }
    }
    looped
}

/// For each value the most edges of a kind on a backward walk; [`OPEN`] and more if it passes an open value.
fn most_edges(
    facts: &Facts,
    order: &[ValueId],
    open: &IndexVec<ValueId, bool>,
    counts: impl Fn(&Source) -> bool,
) -> IndexVec<ValueId, u32> {
    let mut most = IndexVec::filled(0, facts.values().len());
    for &value in order {
        if open[value] {
            most[value] = OPEN;
            continue;
        }
        let through = |edge: &Source| most[facts.operands()[edge.operand].value] + u32::from(counts(edge));
        most[value] = facts.sources(value).iter().map(through).max().unwrap_or(0);
    }
    most
}

struct Tree {
    forest: Forest,
    nodes: IndexVec<ValueId, Node>,
    keys: HashMap<(ValueId, SliceId), Node>,
    /// Values that close a loop.
    looped: IndexVec<ValueId, bool>,
    /// The most edges to a part, on a walk from the value to the root; the same by node.
    parts: IndexVec<ValueId, u32>,
    node_parts: Vec<u32>,
}

impl Tree {
    fn new(facts: &Facts, looped: IndexVec<ValueId, bool>, parts: IndexVec<ValueId, u32>) -> Self {
        let count = facts.values().len();
        Self {
            forest: Forest::new(),
            nodes: IndexVec::filled(ROOT, count),
            keys: HashMap::new(),
            looped,
            parts,
            node_parts: vec![0],
        }
    }

    fn add(&mut self, facts: &Facts, value: ValueId) {
        self.add_node(facts, value);
        if self.nodes[value] as usize == self.node_parts.len() {
            self.node_parts.push(self.parts[value]);
        }
    }

    fn add_node(&mut self, facts: &Facts, value: ValueId) {
        if let Some((container, slice)) = facts.extracted(value) {
            let parent = self.nodes[container];
            let forest = &mut self.forest;
            self.nodes[value] = *self.keys.entry((container, slice)).or_insert_with(|| forest.add(parent));
            return;
        }
        let sources = facts.sources(value);
        let parent = match sources {
            [] => ROOT,
            _ if self.looped[value] => ROOT,
            [first, rest @ ..] => {
                let node = |operand: OperandId| self.nodes[facts.operands()[operand].value];
                rest.iter().fold(node(first.operand), |common, source| {
                    self.forest.common_ancestor(common, node(source.operand))
                })
            }
        };
        self.nodes[value] = self.forest.add(parent);
    }

    /// The node of a key; `None` if no value can match it.
    fn key_node(&self, facts: &Facts, destination: ValueId, slice: Option<SliceId>) -> Option<Node> {
        match slice {
            Some(slice) => self.keys.get(&(destination, slice)).copied(),
            // The whole destination: only results are compared, as arguments may stand for several buffers.
            None => facts.defining_op(destination).map(|_| self.nodes[destination]),
        }
    }
}
