//! Why our decisions on a function differ from upstream's: the known reasons, each recognised by the conflict that we found.

use crate::differential::Annotations;
use monopour_analysis::facts::{Facts, Relation, Subset};
use monopour_analysis::index::{BlockId, Id, OpId, OperandId, RegionId, ValueId};
use monopour_analysis::one_shot::{InPlaceAnalysis, Reason};
use monopour_bufferize::{AnalysisHeuristic, FunctionAnalysis};
use std::collections::HashSet;

/// Why a function was decided otherwise.
pub enum Difference {
    /// One of the known reasons.
    Known(&'static str),
    /// None of them.
    Unknown(String),
}

/// Finds the first operand, in the order of visits, that was decided otherwise, and says why. All else may follow from it.
pub fn explain(ours: &FunctionAnalysis, theirs: &Annotations, heuristic: AnalysisHeuristic) -> Difference {
    let theirs = theirs.in_place();
    let facts = &ours.facts;
    if theirs.len() != facts.operands().len() {
        return Difference::Unknown("another number of operands".to_owned());
    }
    if heuristic != AnalysisHeuristic::BottomUp {
        return Difference::Unknown("in an order that is not explained".to_owned());
    }
    let differs = |id: &OperandId| ours.decisions.is_in_place(*id) != theirs[id.index()];
    let Some(first) = bottom_up(facts).into_iter().find(differs) else {
        return Difference::Unknown("only the boundary".to_owned());
    };
    if ours.decisions.is_in_place(first) {
        return Difference::Unknown(format!("operand {first} is in place"));
    }
    match ours.decisions.reason(first) {
        Some(Reason::ReadAfterWrite { read, write, definition }) => conflict(facts, read, write, definition)
            .map_or_else(
                || Difference::Unknown(format!("operand {first}: read {read}, write {write}")),
                Difference::Known,
            ),
        other => Difference::Unknown(format!("operand {first} is copied for {other:?}")),
    }
}

/// What upstream overlooks in a conflict, if it is one of the known things.
fn conflict(facts: &Facts, read: OperandId, write: OperandId, definition: ValueId) -> Option<&'static str> {
    let (used, stored) = (&facts.operands()[read], &facts.operands()[write]);
    if used.op == stored.op && used.elementwise && stored.elementwise {
        let parts = has_part(facts, used.value) || has_part(facts, stored.value);
        return parts.then_some("elementwise over tensors that may overlap in part");
    }
    let is_graph = |op: OpId| facts.regions()[facts.region_of(op)].info.graph;
    if used.op != stored.op && is_graph(used.op) && is_graph(stored.op) {
        return Some("insertions of a parallel loop, one reads what the other writes");
    }
    let block = facts.defining_block(definition);
    let is_argument = facts.defining_op(definition).is_none();
    if is_argument
        && facts.blocks_of(facts.defining_region(definition)).len() > 1
        && !is_inside(facts, stored.op, block)
    {
        return Some("argument of a block, written in another block");
    }
    let (r, w) = common_blocks(facts, used.op, stored.op)?;
    let nested = facts.region_of(used.op) != facts.region_of(stored.op);
    (nested && reaches(facts, r, w) && reaches(facts, w, r)).then_some("loop of blocks, written or read in a region")
}

/// Operations last to first, each before what is nested in it; operands left to right.
fn bottom_up(facts: &Facts) -> Vec<OperandId> {
    fn visit(facts: &Facts, region: RegionId, order: &mut Vec<OpId>) {
        for &block in facts.blocks_of(region) {
            for &op in facts.ops_of(block) {
                for &region in facts.regions_of(op) {
                    visit(facts, region, order);
                }
                order.push(op);
            }
        }
    }
    let mut order = Vec::new();
    let root = facts.regions().ids().next();
    if let Some(root) = root {
        visit(facts, root, &mut order);
    }
    order.into_iter().rev().flat_map(|op| facts.operands_of(op).iter().copied()).collect()
}

/// Whether something behind the value may be a part of a buffer.
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

/// The blocks around two operations in the innermost region around both.
fn common_blocks(facts: &Facts, a: OpId, b: OpId) -> Option<(BlockId, BlockId)> {
    let mut first = Some(a);
    while let Some(above) = first {
        let mut second = Some(b);
        while let Some(other) = second {
            if facts.region_of(above) == facts.region_of(other) {
                return Some((facts.ops()[above].block, facts.ops()[other].block));
            }
            second = facts.parent_of(other);
        }
        first = facts.parent_of(above);
    }
    None
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
