//! Known reasons for differences from upstream's decisions, each recognised by the conflict in our decisions.

use crate::differential::Annotations;
use monopour_analysis::facts::{Facts, Relation, Subset};
use monopour_analysis::index::{BlockId, Id, OpId, OperandId, ValueId};
use monopour_analysis::one_shot::{Heuristic, InPlaceAnalysis, Reason, visiting_order};
use monopour_bufferize::FunctionAnalysis;
use std::collections::{HashMap, HashSet};

/// Upstream assumes that a vector as large as the tensor overwrites all of it.
const MASKED: &str = "vector that is written under a mask, which keeps the rest";

/// The reason of a different decision.
pub enum Difference {
    /// One of the known reasons.
    Known(&'static str),
    /// None of them.
    Unknown(String),
}

/// Explains the first operand, in the order of visits, with a different decision. Later differences may follow from it.
pub fn explain(ours: &FunctionAnalysis, theirs: &Annotations, heuristic: Heuristic) -> Difference {
    let annotated = theirs;
    let theirs = theirs.in_place();
    let facts = &ours.facts;
    if theirs.len() != facts.operands().len() {
        return Difference::Unknown("another number of operands".to_owned());
    }
    let differs = |id: &OperandId| ours.decisions.is_in_place(*id) != theirs[id.index()];
    let Some(first) = visiting_order(facts, heuristic).into_iter().find(differs) else {
        if annotated.masked.contains(&true) {
            return Difference::Known(MASKED);
        }
        return Difference::Unknown("only the boundary".to_owned());
    };
    if ours.decisions.is_in_place(first) {
        return Difference::Unknown(format!("operand {first} is in place"));
    }
    match ours.decisions.reason(first) {
        Some(Reason::ReadAfterWrite { read, write, definition }) => {
            conflict(facts, read, write, definition).or_else(|| overlooked(facts, annotated, read, write)).map_or_else(
                || Difference::Unknown(format!("operand {first}: read {read}, write {write}")),
                Difference::Known,
            )
        }
        other => Difference::Unknown(format!("operand {first} is copied for {other:?}")),
    }
}

/// The known difference at the operands of a conflict, if any.
fn overlooked(facts: &Facts, theirs: &Annotations, read: OperandId, write: OperandId) -> Option<&'static str> {
    let in_place = theirs.in_place();
    let (used, stored) = (&facts.operands()[read], &facts.operands()[write]);
    // Of the ops directly in a switch, only the terminator has no result.
    let is_terminator = facts.results_of(used.op).is_empty() && facts.regions_of(used.op).is_empty();
    if is_terminator && theirs.around[read.index()] == "scf.index_switch" {
        return Some("result of a switch, no alias of what is yielded");
    }
    // Upstream detects that only at the destination, and then does not copy it.
    if facts.is_collected(write) && !in_place[write.index()] {
        return Some("destination of a parallel loop's insertion, given up");
    }
    if theirs.masked[read.index()] && facts.operands()[read].writes {
        return Some(MASKED);
    }
    let shared = |common| may_share(facts, &in_place, common, used.value, stored.value);
    (shared(true) && !shared(false)).then_some("results that may both be the copy of one operand")
}

/// Whether two values may alias after decisions; `common`: also through a copied operand.
fn may_share(facts: &Facts, in_place: &[bool], common: bool, a: ValueId, b: ValueId) -> bool {
    let mut near: HashMap<ValueId, Vec<ValueId>> = HashMap::new();
    for (id, used) in facts.operands().iter_enumerated() {
        let aliases = facts.aliasing_values(id).iter().map(|alias| alias.value);
        let kept = (in_place[id.index()]).then_some(used.value);
        let group: Vec<ValueId> = aliases.chain(kept).collect();
        for pair in group.windows(2).filter(|_| common || kept.is_some()) {
            near.entry(pair[0]).or_default().push(pair[1]);
            near.entry(pair[1]).or_default().push(pair[0]);
        }
    }
    let (mut seen, mut work) = (HashSet::new(), vec![a]);
    while let Some(value) = work.pop() {
        if seen.insert(value) {
            work.extend(near.get(&value).into_iter().flatten());
        }
    }
    seen.contains(&b)
}

/// The part of a conflict that upstream ignores, if known.
fn conflict(facts: &Facts, read: OperandId, write: OperandId, definition: ValueId) -> Option<&'static str> {
    let (used, stored) = (&facts.operands()[read], &facts.operands()[write]);
    if facts.is_collected(read) {
        return Some("insertion of a parallel loop, which keeps what it does not overwrite");
    }
    let is_graph = |op: OpId| facts.regions()[facts.region_of(op)].info.graph;
    if used.op != stored.op && is_graph(used.op) && is_graph(stored.op) {
        return Some("insertions of a parallel loop, one reads what the other writes");
    }
    if arguments_behind(facts, used.value).into_iter().any(|value| is_written_elsewhere(facts, value, stored.op)) {
        return Some("argument of a block, written in another block");
    }
    if is_in_loop_of_blocks(facts, used.op, stored.op) {
        return Some("loop of blocks, written or read in a region");
    }
    let makes = |id| facts.aliasing_values(id).iter().any(|alias| alias.value == definition);
    let others = || facts.operands_of(stored.op).iter().filter(|id| **id != write && facts.operands()[**id].writes);
    if facts.defining_op(definition) == Some(stored.op) && makes(write) && others().any(|id| makes(*id)) {
        return Some("two writes of one operation that may both make its result");
    }
    let elementwise = used.op == stored.op && used.elementwise && stored.elementwise;
    let parts = || has_part(facts, used.value) || has_part(facts, stored.value);
    (elementwise && parts()).then_some("elementwise over tensors that may overlap in part")
}

/// The block arguments among the origins of a value.
fn arguments_behind(facts: &Facts, value: ValueId) -> Vec<ValueId> {
    let (mut seen, mut work, mut found) = (HashSet::new(), vec![value], vec![]);
    while let Some(value) = work.pop() {
        let sources = facts.sources(value).iter().map(|s| &facts.operands()[s.operand]);
        if !seen.insert(value) {
        } else if facts.defining_op(value).is_none() {
            found.push(value);
        } else if sources.clone().all(|used| !used.writes) {
            work.extend(sources.map(|used| used.value));
        }
    }
    found
}

/// Whether the operation is outside of the block of an argument, in a region of several blocks.
fn is_written_elsewhere(facts: &Facts, argument: ValueId, op: OpId) -> bool {
    facts.blocks_of(facts.defining_region(argument)).len() > 1 && !is_inside(facts, op, facts.defining_block(argument))
}

/// Whether an origin of the value may be a part of a buffer.
fn has_part(facts: &Facts, value: ValueId) -> bool {
    let (mut seen, mut work) = (HashSet::new(), vec![value]);
    while let Some(value) = work.pop() {
        if !seen.insert(value) {
            continue;
        }
        let extracted = |op: OpId| matches!(facts.ops()[op].subset, Some(Subset::Extraction { .. }));
        if facts.defining_op(value).is_some_and(extracted)
            || facts.sources(value).iter().any(|s| s.relation == Relation::Unknown)
        {
            return true;
        }
        work.extend(facts.sources(value).iter().map(|s| facts.operands()[s.operand].value));
    }
    false
}

fn is_inside(facts: &Facts, op: OpId, block: BlockId) -> bool {
    let mut op = Some(op);
    while let Some(current) = op {
        if facts.ops()[current].block == block {
            return true;
        }
        op = facts.parent_of(current);
    }
    false
}

/// Whether a common region has a cycle of blocks, and does not hold both operations directly.
fn is_in_loop_of_blocks(facts: &Facts, a: OpId, b: OpId) -> bool {
    let around = |op: OpId| std::iter::successors(Some(op), |op| facts.parent_of(*op));
    around(a).any(|above| {
        let other = around(b).find(|other| facts.region_of(*other) == facts.region_of(above));
        other.is_some_and(|other| {
            let (r, w) = (facts.ops()[above].block, facts.ops()[other].block);
            (above, other) != (a, b) && reaches(facts, r, w) && reaches(facts, w, r)
        })
    })
}

/// Whether a path of at least one edge leads from a block to another.
fn reaches(facts: &Facts, from: BlockId, to: BlockId) -> bool {
    let (mut seen, mut work) = (HashSet::new(), facts.successors(from).to_vec());
    while let Some(block) = work.pop() {
        if block == to {
            return true;
        }
        if seen.insert(block) {
            work.extend(facts.successors(block));
        }
    }
    false
}
