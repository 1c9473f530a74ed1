//! Forms row groups: each is grown from a reduction, along the values of the group.
//!
//! A group is convex: no op outside it both depends on one of its values and is read by it.
//! Decides only; [`crate::fuse_form`] carries it out.

use crate::block_graph::BlockGraph;
use crate::fuse_form::Rules;
use crate::rows::{self, Kind};
use crate::{fuse_limits, linalg};
use monopour_ir::{DYNAMIC, Op, Value, WalkOrder, ops};
use std::collections::HashSet;
use tracing::trace;

/// Longest rows of a group with fewer rows than [`FEW_ROWS`]: longer ones would leave a device idle.
const MAX_LONE_ROW: i64 = 1 << 16;
const FEW_ROWS: i64 = 8;

/// A row group.
#[derive(Clone, Debug)]
pub(crate) struct Group<'c> {
    /// In program order; the last one is the root.
    pub members: Vec<Op<'c>>,
    /// Values that their last reader overwrites: the reader, and which of its operands.
    pub chained: Vec<(Op<'c>, usize)>,
}

/// The groups of a block, in program order of their reductions; `taken` are ops of other dispatches. Each keeps to the rules.
pub(crate) fn run<'c>(graph: &mut BlockGraph<'c>, taken: &HashSet<Op<'c>>, rules: &Rules<'c>) -> Vec<Group<'c>> {
    let mut taken = taken.clone();
    let mut groups = vec![];
    for op in graph.ops().to_vec() {
        if taken.contains(&op) {
            continue;
        }
        if let Some(rows) = rows::reduced_rows(op) {
            let extents = linalg::loop_extents(op).unwrap_or_default();
            let group = grow(graph, op, &Space { rows, extents, rules }, &taken);
            taken.extend(group.members.iter().copied());
            graph.unite(&group.members);
            groups.push(group);
        }
    }
    groups
}

fn grow<'c>(graph: &BlockGraph<'c>, seed: Op<'c>, space: &Space<'c, '_>, taken: &HashSet<Op<'c>>) -> Group<'c> {
    let rows = space.rows;
    let mut members: HashSet<Op> = HashSet::from([seed]);
    let mut refused: HashSet<Op> = taken.clone();
    let mut refusals: Vec<(Op, &str)> = vec![];
    loop {
        let next = candidates(graph, &members).into_iter().find(|op| !members.contains(op) && !refused.contains(op));
        let Some(op) = next else { break };
        let fits = if !space.takes(op) {
            Err("its loops are not those of the rows")
        } else if !joins(op, rows, &members) {
            Err("it computes nothing, or reads more than its own rows")
        } else {
            Ok(())
        };
        members.insert(op);
        match fits.and_then(|()| runs_as_one(graph, &members, space)) {
            Ok(()) => {
                // Candidates refused before may join with this one.
                refused.clone_from(taken);
                refusals.clear();
            }
            Err(why) => {
                members.remove(&op);
                refused.insert(op);
                refusals.push((op, why));
            }
        }
    }
    for (op, why) in refusals {
        trace!(target: "fuse", "{}: {} not fused with the rows of {}: {why}", op.location(), op.name(), seed.location());
    }
    let ordered = in_order(graph, &members);
    let chained = homes(&ordered, &members, space).unwrap_or_default();
    Group { members: ordered, chained }
}

/// Whether the members are convex in their block, have destinations for their values, and bind no more buffers than there are.
fn runs_as_one<'c>(
    graph: &BlockGraph<'c>,
    members: &HashSet<Op<'c>>,
    space: &Space<'c, '_>,
) -> Result<(), &'static str> {
    if !graph.is_convex(members) {
        return Err("an op outside depends on the group and is read by it");
    }
    if !fuse_limits::rows_fit(members, space.rules.most_buffers) {
        return Err("together they read and write more buffers than the device binds");
    }
    homes(&in_order(graph, members), members, space).map(|_| ()).ok_or("its value has no place in the group's results")
}

fn in_order<'c>(graph: &BlockGraph<'c>, members: &HashSet<Op<'c>>) -> Vec<Op<'c>> {
    let mut ordered: Vec<Op> = members.iter().copied().collect();
    ordered.sort_by_key(|op| graph.position(*op));
    ordered
}

/// The iteration space of a group's seed, and what a dispatch may bind.
struct Space<'c, 'a> {
    rows: usize,
    extents: Vec<i64>,
    rules: &'a Rules<'c>,
}

impl Space<'_, '_> {
    /// Whether a row without a place in a result may be a temporary of its tile.
    fn may_be_held(&self) -> bool {
        let length =
            self.extents[self.rows..].iter().try_fold(1i64, |n, e| (*e != DYNAMIC).then(|| n.saturating_mul(*e)));
        length.is_some_and(|length| length <= self.rules.longest_held)
    }

    fn takes(&self, op: Op) -> bool {
        let extents = linalg::loop_extents(op).unwrap_or_default();
        let inner = &self.extents[self.rows..];
        let count: i64 = self.extents[..self.rows].iter().map(|e| linalg::known(*e)).product();
        let length: i64 = inner.iter().map(|e| linalg::known(*e)).product();
        let lone = count < FEW_ROWS && length > MAX_LONE_ROW;
        if !self.rules.gathers && !op.find_all(ops::tensor::EXTRACT).is_empty() {
            return false;
        }
        match rows::kind(op, self.rows) {
            Some(Kind::Rows) => extents == self.extents[..self.rows],
            Some(Kind::Full) => extents == self.extents && !lone,
            Some(Kind::Reduction) => extents == self.extents && rows::reduced_rows(op) == Some(self.rows),
            None => false,
        }
    }
}

/// Producers and consumers of the group's values, and reductions of its inputs, in program order.
fn candidates<'c>(graph: &BlockGraph<'c>, members: &HashSet<Op<'c>>) -> Vec<Op<'c>> {
    let mut found: HashSet<usize> = HashSet::new();
    for op in members {
        let readers = op.results().into_iter().flat_map(|r| r.uses());
        found.extend(readers.filter_map(|u| graph.position(u.op)));
        for value in &op.operands()[..linalg::num_inputs(*op)] {
            found.extend(value.defining_op().and_then(|d| graph.position(d)));
            let siblings = value.uses().into_iter().filter(|u| rows::reduced_rows(u.op).is_some());
            found.extend(siblings.filter_map(|u| graph.position(u.op)));
        }
    }
    let mut found: Vec<usize> = found.into_iter().collect();
    found.sort_unstable();
    found.into_iter().map(|i| graph.ops()[i]).collect()
}

/// Whether the op computes something, and it and the members read each other's values at their own rows only.
fn joins(op: Op, rows: usize, members: &HashSet<Op>) -> bool {
    if linalg::is_data_movement(op) && linalg::num_inputs(op) == 0 {
        return false;
    }
    let own = |reader: Op, of: &dyn Fn(Op) -> bool| {
        let maps = linalg::indexing_maps(reader).unwrap_or_default();
        let pairs = reader.operands().into_iter().zip(maps);
        pairs.filter(|(v, _)| v.defining_op().is_some_and(of)).all(|(_, map)| rows::reads_own_row(map, rows))
    };
    let captures = |reader: Op, of: &dyn Fn(Op) -> bool| {
        let inside = reader.nested(WalkOrder::Pre).into_iter().filter(|o| *o != reader);
        inside.flat_map(Op::operands).filter_map(Value::defining_op).any(of)
    };
    own(op, &|def| members.contains(&def))
        && members.iter().all(|m| own(*m, &|def| def == op))
        && !captures(op, &|def| members.contains(&def))
        && !members.iter().any(|m| captures(*m, &|def| def == op))
}

/// The chained destinations of a group; `None` where a value `[rows.., inner..]` has none and must not be a temporary.
fn homes<'c>(ordered: &[Op<'c>], members: &HashSet<Op<'c>>, space: &Space<'c, '_>) -> Option<Vec<(Op<'c>, usize)>> {
    let mut chained: Vec<(Op, usize)> = vec![];
    for op in ordered {
        for value in op.results() {
            let uses = value.uses();
            if uses.is_empty() || uses.iter().any(|u| !members.contains(&u.op)) {
                continue;
            }
            let last = ordered.iter().rev().find(|m| uses.iter().any(|u| u.op == **m)).copied();
            let place = last.and_then(|reader| overwritten(reader, value).map(|operand| (reader, operand)));
            match place.filter(|(reader, _)| chained.iter().all(|(other, _)| other != reader)) {
                Some(place) => chained.push(place),
                None if rows::kind(*op, space.rows) == Some(Kind::Full) && !space.may_be_held() => return None,
                None => {}
            }
        }
    }
    Some(chained)
}

/// The operand by which a pointwise op reads `value`, nowhere else, and could overwrite it.
fn overwritten(reader: Op, value: Value) -> Option<usize> {
    let mut reads = (0..reader.num_operands()).filter(|i| reader.operand(*i) == value);
    let (operand, once) = (reads.next()?, reads.next().is_none());
    (once && linalg::overwritable_inputs(reader).contains(&operand)).then_some(operand)
}
