//! Sparse segment trees over positions that answer conflict queries for a whole class at once.
//!
//! A *write tree* holds each write at the position of its operation; a *read tree* holds each interval of a read at
//! its canonical nodes. A node keeps three maxima, `high`, `low` and `deep`, each for the best two entries of different
//! colours, so that "the best entry of another colour" is known in constant time.
//! * Writes: `high` is the number of the written value, `low` its complement, `deep` the least depth of a slice that it
//!   can match. The colour is the value whose readers the write cannot disturb, as it writes back what they read.
//! * Reads: `high` is the first number of the slice that the reading operation overwrites, `low` the complement of the last,
//!   `deep` the complement of its depth. The colour is the value that is read. A read without such an exemption has the
//!   largest `high`.
//!
//! A read whose exemption is `first..=last` at a depth conflicts with a write of number `e` unless
//! `first <= e <= last` and the write can match at that depth: comparisons of maxima.
//! Every query visits O(log n) nodes; merging is amortised over all nodes ever made.

use crate::facts::Span;
use crate::forest::Range;
use std::ops::{Index, IndexMut};

/// An entry of a node: a maximum, its owner, and its colour.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    value: u32,
    colour: u32,
    operand: u32,
}

/// No entry; also the colour of entries without an exemption.
pub(crate) const NONE: u32 = u32::MAX;

/// The best two entries of different colours.
#[derive(Clone, Copy, Debug)]
struct Best {
    first: Entry,
    second: Entry,
}

const EMPTY: Best = {
    let none = Entry { value: 0, colour: NONE, operand: NONE };
    Best { first: none, second: none }
};

impl Best {
    fn add(&mut self, entry: Entry) {
        if entry.operand == NONE {
            return;
        }
        let is_set = |entry: &Entry| entry.operand != NONE;
        if is_set(&self.first) && self.first.colour == entry.colour {
            // Entries without a colour are exempt from no query, so the best one suffices for them.
            if entry.value > self.first.value {
                self.first = entry;
            }
        } else if !is_set(&self.first) || entry.value > self.first.value {
            self.second = std::mem::replace(&mut self.first, entry);
        } else if !is_set(&self.second) || entry.value > self.second.value {
            self.second = entry;
        }
    }

    fn join(&mut self, other: &Self) {
        self.add(other.first);
        self.add(other.second);
    }

    /// The best entry of another colour; `NONE` excludes nothing.
    fn other_than(&self, colour: u32) -> Option<Entry> {
        let entry = if colour != NONE && self.first.colour == colour { self.second } else { self.first };
        (entry.operand != NONE).then_some(entry)
    }
}

#[derive(Clone, Copy, Debug)]
struct Node {
    children: [u32; 2],
    high: Best,
    low: Best,
    deep: Best,
}

const NEW_NODE: Node = Node { children: [NONE; 2], high: EMPTY, low: EMPTY, deep: EMPTY };

/// The number of an entry's value, for slices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Number {
    /// Its number: a slice that contains it has an interval around it.
    pub number: u32,
    /// The least depth of a slice that it may match.
    pub least_depth: u32,
}

/// The root of one tree, or [`NONE`].
pub(crate) type Root = u32;

/// Nodes of one block: 80 KiB.
const BLOCK: usize = 1_024;

/// Nodes by index, in blocks that never move: a growing list would take three times its size while it is copied.
#[derive(Clone, Default, Debug)]
struct Nodes(Vec<Vec<Node>>);

impl Nodes {
    /// Adds a node; returns its index.
    fn push(&mut self, node: Node) -> u32 {
        if self.0.last().is_none_or(|block| block.len() == BLOCK) {
            self.0.push(Vec::with_capacity(if self.0.is_empty() { 0 } else { BLOCK }));
        }
        let before = BLOCK * (self.0.len() - 1);
        let block = self.0.last_mut().expect("there is one by now");
        block.push(node);
        u32::try_from(before + block.len() - 1).unwrap_or(NONE)
    }
}

impl Index<u32> for Nodes {
    type Output = Node;
    fn index(&self, node: u32) -> &Node {
        let node = node as usize;
        &self.0[node / BLOCK][node % BLOCK]
    }
}

impl IndexMut<u32> for Nodes {
    fn index_mut(&mut self, node: u32) -> &mut Node {
        let node = node as usize;
        &mut self.0[node / BLOCK][node % BLOCK]
    }
}

/// All trees of one kind over one range of positions.
#[derive(Clone, Debug)]
pub(crate) struct Trees {
    nodes: Nodes,
    free: Vec<u32>,
    last: u32,
    /// Nodes visited or made.
    pub steps: u64,
}

impl Trees {
    /// Trees over positions `0..=last`.
    pub fn new(last: u32) -> Self {
        Self { nodes: Nodes::default(), free: Vec::new(), last, steps: 0 }
    }

    fn make(&mut self) -> u32 {
        if let Some(node) = self.free.pop() {
            self.nodes[node] = NEW_NODE;
            return node;
        }
        self.nodes.push(NEW_NODE)
    }

    fn child(&mut self, node: u32, side: usize) -> u32 {
        let child = self.nodes[node].children[side];
        if child != NONE {
            return child;
        }
        let made = self.make();
        self.nodes[node].children[side] = made;
        made
    }

    /// Add a write to a value at a position. All nodes above it aggregate it.
    pub fn add_write(&mut self, root: &mut Root, position: u32, value: Number, colour: u32, operand: u32) {
        let Number { number, least_depth } = value;
        if *root == NONE {
            *root = self.make();
        }
        let (mut node, mut first, mut last) = (*root, 0, self.last);
        loop {
            self.steps += 1;
            self.put(node, [number, NONE - number, least_depth], colour, operand);
            if first == last {
                return;
            }
            let middle = first + (last - first) / 2;
            let side = usize::from(position > middle);
            (first, last) = if side == 0 { (first, middle) } else { (middle + 1, last) };
            node = self.child(node, side);
        }
    }

    fn put(&mut self, node: u32, [high, low, deep]: [u32; 3], colour: u32, operand: u32) {
        let node = &mut self.nodes[node];
        node.high.add(Entry { value: high, colour, operand });
        node.low.add(Entry { value: low, colour, operand });
        node.deep.add(Entry { value: deep, colour, operand });
    }

    /// Add an interval of a read.
    pub fn add_read(&mut self, root: &mut Root, span: Span, exempt: Option<Range>, colour: u32, operand: u32) {
        if *root == NONE {
            *root = self.make();
        }
        let maxima = exempt.map_or([NONE; 3], |range| [range.first, NONE - range.last, NONE - range.depth]);
        let mut stack = vec![(*root, 0, self.last)];
        while let Some((node, first, last)) = stack.pop() {
            self.steps += 1;
            if span.first <= first && last <= span.last {
                self.put(node, maxima, colour, operand);
                continue;
            }
            let middle = first + (last - first) / 2;
            if span.first <= middle {
                stack.push((self.child(node, 0), first, middle));
            }
            if span.last > middle {
                stack.push((self.child(node, 1), middle + 1, last));
            }
        }
    }

    /// Merge the second tree into the first.
    pub fn merge(&mut self, into: Root, from: Root) -> Root {
        if into == NONE || from == NONE {
            return if into == NONE { from } else { into };
        }
        let mut stack = vec![(into, from)];
        while let Some((to, from)) = stack.pop() {
            self.steps += 1;
            let Node { children, high, low, deep } = self.nodes[from];
            self.nodes[to].high.join(&high);
            self.nodes[to].low.join(&low);
            self.nodes[to].deep.join(&deep);
            for (side, child) in children.into_iter().enumerate().filter(|&(_, child)| child != NONE) {
                match self.nodes[to].children[side] {
                    NONE => self.nodes[to].children[side] = child,
                    own => stack.push((own, child)),
                }
            }
            self.free.push(from);
        }
        into
    }

    /// A write at a position of `span` that is not of `colour` and not exempt.
    pub fn find_write(&mut self, root: Root, span: Span, exempt: Option<Range>, colour: u32) -> Option<u32> {
        let mut stack = vec![(root, 0, self.last)];
        while let Some((node, first, last)) = stack.pop() {
            if node == NONE || span.last < first || last < span.first {
                continue;
            }
            self.steps += 1;
            let Node { children, high, low, deep } = &self.nodes[node];
            if span.first <= first && last <= span.last {
                let (high, low, deep) = (high.other_than(colour), low.other_than(colour), deep.other_than(colour));
                let hit = match exempt {
                    None => high,
                    // After the exempt numbers, or before them, or among them but not matching the slice.
                    Some(range) => high
                        .filter(|entry| entry.value > range.last)
                        .or(low.filter(|entry| NONE - entry.value < range.first))
                        .or(deep.filter(|entry| entry.value > range.depth)),
                };
                if let Some(entry) = hit {
                    return Some(entry.operand);
                }
                continue;
            }
            let middle = first + (last - first) / 2;
            stack.push((children[1], middle + 1, last));
            stack.push((children[0], first, middle));
        }
        None
    }

    /// A read with an interval around `position` that is not of `colour` and does not exempt the value.
    pub fn find_read(&mut self, root: Root, position: u32, value: Number, colour: u32) -> Option<u32> {
        let Number { number, least_depth } = value;
        let (mut node, mut first, mut last) = (root, 0, self.last);
        while node != NONE {
            self.steps += 1;
            let Node { children, high, low, deep } = &self.nodes[node];
            let above = high.other_than(colour).filter(|entry| entry.value > number);
            let below = || low.other_than(colour).filter(|entry| NONE - entry.value < number);
            let deeper = || deep.other_than(colour).filter(|entry| NONE - entry.value < least_depth);
            if let Some(entry) = above.or_else(below).or_else(deeper) {
                return Some(entry.operand);
            }
            if first == last {
                return None;
            }
            let middle = first + (last - first) / 2;
            let side = usize::from(position > middle);
            (first, last) = if side == 0 { (first, middle) } else { (middle + 1, last) };
            node = children[side];
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Span = Span { first: 3, last: 5 };
    const EXEMPT: Range = Range { first: 4, last: 6, depth: 2 };
    /// Values by number and least depth, and whether they conflict with the exemption.
    const CASES: [(u32, u32, bool); 6] =
        [(3, 0, true), (4, 0, false), (6, 2, false), (7, 0, true), (5, 3, true), (1000, 0, true)];

    #[test]
    fn reads_find_writes_beyond_their_exemption() {
        for (number, least_depth, conflicts) in CASES {
            let (mut trees, mut root) = (Trees::new(9), NONE);
            trees.add_write(&mut root, 4, Number { number, least_depth }, 1, 17);
            let found = trees.find_write(root, HERE, Some(EXEMPT), 2);
            assert_eq!(found, conflicts.then_some(17), "{number} {least_depth}");
            assert_eq!(trees.find_write(root, Span { first: 5, last: 9 }, None, 2), None);
            assert_eq!(trees.find_write(root, HERE, None, 1), None, "of its colour");
        }
    }

    #[test]
    fn writes_find_reads_that_do_not_exempt_them() {
        for (number, least_depth, conflicts) in CASES {
            let (mut trees, mut root) = (Trees::new(9), NONE);
            trees.add_read(&mut root, HERE, Some(EXEMPT), 1, 17);
            let found =
                |trees: &mut Trees, position| trees.find_read(root, position, Number { number, least_depth }, 2);
            assert_eq!(found(&mut trees, 4), conflicts.then_some(17), "{number} {least_depth}");
            assert_eq!((found(&mut trees, 2), found(&mut trees, 6)), (None, None));
        }
    }
}
