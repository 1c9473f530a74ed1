//! Queries which memrefs of a list another one may alias, by counts per origin instead of pairwise comparison.

use std::cell::Cell;
use std::collections::HashMap;

use monopour_ir::{Block, HandleMap, Value};

use super::origins::{Kind, Origin};

/// Counts over a list of memrefs.
#[derive(Debug, Default)]
pub(super) struct Index<'c> {
    members: usize,
    unknown: usize,
    with_arguments: usize,
    by_place: HashMap<u32, Vec<usize>>,
    unknown_members: Vec<usize>,
    argument_members: Vec<usize>,
    by_root: HandleMap<Value<'c>, Vec<usize>>,
    by_single: HashMap<u32, Vec<usize>>,
    /// Number of members allocated in a block, nested ones included.
    inside: HandleMap<Block<'c>, usize>,
    /// Number of members of unknown origin that are arguments of a block.
    unknown_arguments: HandleMap<Block<'c>, usize>,
    arguments_of: HashMap<(u32, Block<'c>), usize>,
    /// Members that are an allocation themselves, and its block.
    allocated: HashMap<u32, (usize, Block<'c>)>,
    /// Blocks, origins and members visited.
    pub(super) steps: Cell<u64>,
}

impl<'c> Index<'c> {
    pub(super) fn of(list: &[Origin<'c>]) -> Self {
        let mut index = Self { members: list.len(), ..Self::default() };
        for (i, origin) in list.iter().enumerate() {
            match origin.kind {
                Kind::Unknown => {
                    index.unknown += 1;
                    index.unknown_members.push(i);
                    if let Some(block) = origin.argument_of {
                        *index.unknown_arguments.entry(block).or_default() += 1;
                    }
                }
                Kind::AllocationsOrArguments => {
                    index.with_arguments += 1;
                    index.argument_members.push(i);
                }
                Kind::Allocations => {}
            }
            index.by_root.entry(origin.root).or_default().push(i);
            if let Some(single) = origin.single() {
                index.by_single.entry(single).or_default().push(i);
            }
            for place in origin.places.iter() {
                index.by_place.entry(*place).or_default().push(i);
                if let Some(block) = origin.argument_of {
                    *index.arguments_of.entry((*place, block)).or_default() += 1;
                }
            }
            if let Some(block) = origin.allocated_in {
                around(block).for_each(|outer| *index.inside.entry(outer).or_default() += 1);
                if let Some(place) = origin.single() {
                    index.allocated.entry(place).or_insert((0, block)).0 += 1;
                }
            }
        }
        index
    }

    fn count(&self, steps: usize) {
        self.steps.set(self.steps.get() + steps as u64);
    }

    /// Whether a memref may alias one of the list. `is_member`: it is in the list itself, and does not count.
    ///
    /// Never aliases: an allocation and a memref whose origins are other allocations or arguments of functions; and a memref
    /// allocated in a block and an argument of an enclosing block, which is older.
    pub(super) fn may_hold(&self, origin: &Origin<'c>, is_member: bool) -> bool {
        let own = usize::from(is_member);
        self.count(1);
        if origin.kind == Kind::Unknown {
            let distinct = origin.argument_of.map_or(0, |block| self.inside.get(&block).copied().unwrap_or(0));
            return self.members - own > distinct;
        }
        let earlier = |count: &dyn Fn(Block<'c>) -> usize| {
            let blocks = origin.allocated_in.into_iter().flat_map(around).inspect(|_| self.count(1));
            blocks.map(count).sum::<usize>()
        };
        let distinct = earlier(&|block| self.unknown_arguments.get(&block).copied().unwrap_or(0));
        if self.unknown > distinct {
            return true;
        }
        if origin.kind == Kind::AllocationsOrArguments && self.with_arguments > own {
            return true;
        }
        origin.places.iter().any(|place| {
            self.count(1);
            let all = self.by_place.get(place).map_or(0, Vec::len);
            let mut distinct = earlier(&|block| self.arguments_of.get(&(*place, block)).copied().unwrap_or(0));
            if let Some(block) = origin.argument_of {
                distinct += self.allocated_inside(*place, block);
            }
            all - own > distinct
        })
    }

    /// Members that are this very allocation, if it is in the block or nested in it.
    fn allocated_inside(&self, place: u32, block: Block<'c>) -> usize {
        match self.allocated.get(&place) {
            Some((count, inner)) if around(*inner).any(|outer| outer == block) => *count,
            _ => 0,
        }
    }

    /// The members that are the same allocation as a memref, provided that no other may alias it.
    pub(super) fn same_if_rest_differs(&self, origin: &Origin<'c>, list: &[Origin<'c>]) -> Vec<usize> {
        let same = self.same(origin);
        if same.is_empty() {
            return same;
        }
        let others =
            |all: usize, counts: &dyn Fn(&Origin<'c>) -> bool| all - same.iter().filter(|i| counts(&list[**i])).count();
        let is_clear = match origin.kind {
            Kind::Unknown => same.len() == self.members,
            kind => {
                let with_arguments = others(self.with_arguments, &|other| other.kind == Kind::AllocationsOrArguments);
                others(self.unknown, &|other| other.kind == Kind::Unknown) == 0
                    && (kind == Kind::Allocations || with_arguments == 0)
                    && origin.places.iter().all(|place| {
                        let all = self.by_place.get(place).map_or(0, Vec::len);
                        others(all, &|other| other.places.binary_search(place).is_ok()) == 0
                    })
            }
        };
        if is_clear { same } else { vec![] }
    }

    /// The members that are certainly the same allocation as a memref.
    pub(super) fn same(&self, origin: &Origin<'c>) -> Vec<usize> {
        let by_single = origin.single().and_then(|single| self.by_single.get(&single));
        let mut same: Vec<usize> =
            self.by_root.get(&origin.root).into_iter().chain(by_single).flatten().copied().collect();
        same.sort_unstable();
        same.dedup();
        same
    }

    /// The members that a memref may alias, in order.
    pub(super) fn possible(&self, origin: &Origin<'c>, list: &[Origin<'c>]) -> Vec<usize> {
        let mut found: Vec<usize> = if origin.kind == Kind::Unknown {
            (0..self.members).collect()
        } else {
            let by_place = origin.places.iter().filter_map(|place| self.by_place.get(place)).flatten();
            let arguments: &[usize] =
                if origin.kind == Kind::AllocationsOrArguments { &self.argument_members } else { &[] };
            by_place.chain(&self.unknown_members).chain(arguments).copied().collect()
        };
        self.count(1 + found.len());
        found.sort_unstable();
        found.dedup();
        found.retain(|i| !are_distinct(origin, &list[*i]) && !are_distinct(&list[*i], origin));
        found
    }
}

/// Whether the first is allocated in a block, or nested in one, whose argument the second is.
fn are_distinct(inner: &Origin, outer: &Origin) -> bool {
    let (Some(inner), Some(outer)) = (inner.allocated_in, outer.argument_of) else { return false };
    around(inner).any(|block| block == outer)
}

/// A block and its enclosing ones.
fn around<'c>(block: Block<'c>) -> impl Iterator<Item = Block<'c>> {
    std::iter::successors(Some(block), |b| b.parent_op().and_then(monopour_ir::Op::block))
}
