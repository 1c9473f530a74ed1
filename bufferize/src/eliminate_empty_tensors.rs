//! Let what is computed into a new tensor and then inserted into another one be computed right in its place.
//!
//! ```text
//! %e = tensor.empty() : tensor<4xf32>                  %s = tensor.extract_slice %d[8] [4] [1]
//! %a = linalg.exp ins(%x) outs(%e)                ==>  %a = linalg.exp ins(%x) outs(%s)
//! %r = tensor.insert_slice %a into %d[8] [4] [1]       %r = tensor.insert_slice %a into %d[8] [4] [1]
//! ```
//!
//! The contents of a `tensor.empty` are undefined, so any other tensor may stand for it. The one that is chosen makes
//! bufferization find the source of the insertion where it belongs, and there is nothing to copy.
//!
//! Requires: functions on tensors, before bufferization. Ensures: the same values, and strictly fewer copies by the
//! analysis' own count for every tensor that is replaced; what does not save a copy is taken back.
//! Followed are destination operands, casts, loops that keep their buffer, and both branches of a conditional;
//! the destination and its indices are moved up, if that is all that is missing.
//! Limits: reshapes between the new tensor and the insertion are not followed.
//! Source: MLIR's `eliminate-empty-tensors`, LLVM 22.
//! Differs: the gain is measured, not assumed; conditionals.

use std::collections::HashSet;

use monopour_analysis::facts::{Relation, Source, Subset};
use monopour_analysis::index::{OperandId, ValueId};
use monopour_analysis::one_shot::{Decisions, InPlaceAnalysis};
use monopour_ir::{Diagnostics, InsertionPoint, Op, OpSpec, Rewriter, Type, Use, Value, interfaces};

use crate::boundary::{Callees, callees_first, summarise};
use crate::collect::{Collected, collect};
use crate::one_shot::decide;
use crate::op_model::OpModels;
use crate::options::Options;
use crate::own_place::inserts_in_place;
use crate::shared_outputs;

/// How many insertions are tried one by one, each with an analysis of its own, when all together do not pay.
const MOST_TRIALS: usize = 48;

/// How many operations may be moved for one destination.
const MOST_MOVES: usize = 64;

/// Replaces tensors in all functions of a module; returns how many uses of a `tensor.empty` are gone.
///
/// # Errors
/// As [`crate::run_one_shot`], for programs that it would refuse.
pub fn eliminate_empty_tensors(module: Op, options: &Options) -> Result<usize, Diagnostics> {
    options.check()?;
    let models = OpModels::upstream();
    let functions = module.find_all("func.func");
    let mut callees = Callees::new(&functions);
    let mut replaced = 0;
    for function in callees_first(&functions).into_iter().filter(|f| f.body().is_some()) {
        shared_outputs::run(function);
        let mut analysed = analyse(function, &models, &callees, options)?;
        let candidates = candidates(&analysed);
        if !candidates.is_empty() {
            let done = improve(function, &candidates, &analysed, &|| analyse(function, &models, &callees, options))?;
            if done > 0 {
                analysed = analyse(function, &models, &callees, options)?;
            }
            replaced += done;
        }
        callees.insert(function, summarise(function, &analysed.collected, &analysed.decisions));
    }
    Ok(replaced)
}

/// A function's facts and decisions.
struct Analysed {
    collected: Collected,
    decisions: Decisions,
}

fn analyse(function: Op, models: &OpModels, callees: &Callees, options: &Options) -> Result<Analysed, Diagnostics> {
    let collected = collect(function, models, callees, options)?;
    let decisions = decide(&collected, options)?;
    Ok(Analysed { collected, decisions })
}

/// Copies of contents that the rewrite would make: for operands out of place, and at insertions.
fn cost(analysed: &Analysed) -> usize {
    let Analysed { collected, decisions } = analysed;
    let copied = collected.operands.ids().filter(|id| decisions.copy(*id).is_some_and(|c| c.contents)).count();
    let insertions = collected.ops.iter().filter(|op| destination_of(**op).is_some()).count();
    copied + insertions - inserts_in_place(collected, decisions).len()
}

/// The source and destination operands of an insertion that this looks at.
fn destination_of(op: Op) -> Option<(usize, usize)> {
    let known = ["tensor.insert_slice", "tensor.parallel_insert_slice"].contains(&op.name());
    known.then_some((0, 1))
}

/// An insertion, and the uses of new tensors that its source is made in.
struct Candidate {
    insertion: Op,
    uses: Vec<Use>,
}

fn candidates(analysed: &Analysed) -> Vec<Candidate> {
    let mut taken = HashSet::new();
    let mut found = Vec::new();
    for (id, op) in analysed.collected.facts.ops().iter_enumerated() {
        let Some(Subset::Insertion { source: Some(source), .. }) = op.subset else { continue };
        let insertion = analysed.collected.ops[id];
        if destination_of(insertion).is_none() {
            continue;
        }
        let mut uses = Vec::new();
        let value = analysed.collected.facts.operands()[source].value;
        let starts_here = ends_in_empty(analysed, value, source, &mut HashSet::new(), &mut uses);
        // A new tensor that is inserted as it is has nothing to be computed in it.
        let is_computed = !uses.contains(&source);
        if starts_here && is_computed && uses.iter().all(|u| taken.insert(*u)) {
            let uses = uses.into_iter().map(|u| analysed.collected.operands[u]).collect();
            found.push(Candidate { insertion, uses });
        }
    }
    found
}

/// Whether `value`, used by `user`, is made in new tensors only; collects the uses of those.
fn ends_in_empty(
    analysed: &Analysed,
    value: ValueId,
    user: OperandId,
    visited: &mut HashSet<ValueId>,
    uses: &mut Vec<OperandId>,
) -> bool {
    if !visited.insert(value) {
        return false;
    }
    if analysed.collected.values[value].defining_op().is_some_and(|op| op.is("tensor.empty")) {
        uses.push(user);
        return true;
    }
    let facts = &analysed.collected.facts;
    let sources = facts.sources(value);
    !sources.is_empty()
        && sources.iter().all(|source| {
            is_same_buffer(&analysed.decisions, source)
                && ends_in_empty(analysed, facts.operands()[source.operand].value, source.operand, visited, uses)
        })
}

fn is_same_buffer(decisions: &Decisions, source: &Source) -> bool {
    // A new buffer without contents is no reason to stop: it is what is to be replaced.
    let stays = decisions.copy(source.operand).is_none_or(|c| !c.contents && c.result.is_none());
    stays
        && !source.retypes
        && match source.relation {
            Relation::Equivalent => true,
            Relation::Unknown => false,
            Relation::EquivalentIf { first, second } => {
                [Some(first), second].into_iter().flatten().all(|(a, b)| decisions.are_equivalent(a, b))
            }
        }
}

/// Applies the candidates that save copies.
fn improve(
    function: Op,
    candidates: &[Candidate],
    before: &Analysed,
    analyse: &dyn Fn() -> Result<Analysed, Diagnostics>,
) -> Result<usize, Diagnostics> {
    let mut rw = Rewriter::new(function.context());
    let mut edits = Vec::new();
    let mut least = cost(before);
    for candidate in candidates {
        apply(&mut rw, candidate, &mut edits)?;
    }
    let expected = edits.iter().filter(|e| matches!(e, Edit::Use { .. })).count();
    if expected == 0 {
        undo(&mut rw, edits);
        return Ok(0);
    }
    // All of them together, or else those that pay by themselves.
    if analyse().is_ok_and(|after| cost(&after) + applied(&edits) <= least) {
        return Ok(finish(&mut rw, edits));
    }
    undo(&mut rw, edits);
    let mut kept = Vec::new();
    for candidate in candidates.iter().take(MOST_TRIALS) {
        let mut edits = Vec::new();
        apply(&mut rw, candidate, &mut edits)?;
        let after = if applied(&edits) > 0 { analyse().ok().map(|a| cost(&a)) } else { None };
        match after.filter(|after| *after < least) {
            Some(after) => {
                least = after;
                kept.extend(edits);
            }
            None => undo(&mut rw, edits),
        }
    }
    Ok(finish(&mut rw, kept))
}

/// What was done to the IR, in order.
enum Edit {
    /// An operand was replaced.
    Use { used: Use, old: Value, insertion: Op },
    /// An operation was made.
    Made(Op),
    /// An operation was moved up from before this one.
    Moved { op: Op, next: Op },
}

/// Number of insertions that were prepared.
fn applied(edits: &[Edit]) -> usize {
    let insertions =
        edits.iter().filter_map(|e| if let Edit::Use { insertion, .. } = e { Some(*insertion) } else { None });
    insertions.collect::<HashSet<_>>().len()
}

fn undo(rw: &mut Rewriter, edits: Vec<Edit>) {
    for edit in edits.into_iter().rev() {
        match edit {
            Edit::Use { used, old, .. } => rw.set_operand(used.op, used.index, old),
            Edit::Made(op) => rw.erase(op),
            Edit::Moved { op, next } => rw.move_before(op, next),
        }
    }
}

/// Erases the tensors that nothing uses any more.
fn finish(rw: &mut Rewriter, edits: Vec<Edit>) -> usize {
    let mut erased = HashSet::new();
    let mut count = 0;
    for edit in edits {
        let Edit::Use { old, .. } = edit else { continue };
        count += 1;
        if let Some(op) = old.defining_op().filter(|op| !erased.contains(op) && op.result(0).is_unused()) {
            erased.insert(op);
            rw.erase(op);
        }
    }
    count
}

/// Replaces the uses by the slice that the insertion overwrites; all of them, or none.
fn apply(rw: &mut Rewriter, candidate: &Candidate, edits: &mut Vec<Edit>) -> Result<(), Diagnostics> {
    let mut own = Vec::new();
    for used in &candidate.uses {
        if !replace(rw, candidate.insertion, *used, &mut own)? {
            undo(rw, own);
            return Ok(());
        }
    }
    edits.extend(own);
    Ok(())
}

fn replace(rw: &mut Rewriter, insertion: Op, used: Use, edits: &mut Vec<Edit>) -> Result<bool, Diagnostics> {
    let old = used.op.operand(used.index);
    let Some((source, destination)) = destination_of(insertion) else { return Ok(false) };
    let slice_type = insertion.operand(source).ty();
    let (Some(slice_tensor), Some(old_tensor)) = (slice_type.as_tensor(), old.ty().as_tensor()) else {
        return Ok(false);
    };
    let fits = slice_tensor.element == old_tensor.element
        && slice_tensor.encoding == old_tensor.encoding
        && insertion.operand(destination).ty().as_tensor().is_some_and(|t| t.encoding == old_tensor.encoding)
        && slice_tensor.shape.len() == old_tensor.shape.len();
    if !fits {
        return Ok(false);
    }
    let needed: Vec<Value> =
        insertion.operands().into_iter().enumerate().filter(|(i, _)| *i != source).map(|(_, v)| v).collect();
    let mut moves = Vec::new();
    if !needed.iter().all(|v| plan_moves(*v, used.op, &mut moves)) {
        return Ok(false);
    }
    for op in moves {
        let (Some(anchor), Some(next)) = (ancestor_in_block_of(used.op, op), op.next()) else { return Ok(false) };
        rw.move_before(op, anchor);
        edits.push(Edit::Moved { op, next });
    }
    rw.set_point(InsertionPoint::Before(used.op));
    let mut value = extract(rw, insertion, needed, slice_type, edits)?;
    if value.ty() != old.ty() {
        let cast = OpSpec::new("tensor.cast", used.op.location()).operands(&[value]).results(&[old.ty()]);
        let cast = rw.create(cast)?;
        edits.push(Edit::Made(cast));
        value = cast.result(0);
    }
    rw.set_operand(used.op, used.index, value);
    edits.push(Edit::Use { used, old, insertion });
    Ok(true)
}

/// The slice that an insertion overwrites.
fn extract(
    rw: &mut Rewriter,
    insertion: Op,
    operands: Vec<Value>,
    ty: Type,
    edits: &mut Vec<Edit>,
) -> Result<Value, Diagnostics> {
    let mut segments = insertion.attr("operandSegmentSizes").and_then(|a| a.as_ints()).unwrap_or_default();
    segments.remove(0);
    let segments: Vec<i32> = segments.into_iter().map(|n| i32::try_from(n).unwrap_or(0)).collect();
    let mut spec = OpSpec::new("tensor.extract_slice", insertion.location()).operands(&operands).results(&[ty]);
    for name in ["static_offsets", "static_sizes", "static_strides"] {
        if let Some(numbers) = insertion.attr(name) {
            spec = spec.attr(name, numbers);
        }
    }
    spec = spec.attr("operandSegmentSizes", monopour_ir::Attr::dense_i32(rw.context(), &segments));
    let slice = rw.create(spec)?;
    edits.push(Edit::Made(slice));
    Ok(slice.result(0))
}

/// The operation in the block of `op` that is `inner` or holds it.
fn ancestor_in_block_of(inner: Op, op: Op) -> Option<Op> {
    let mut at = inner;
    while at.block() != op.block() {
        at = at.parent()?;
    }
    Some(at)
}

/// Whether `value` is there before `user`, once the operations in `moves` have been moved; appends to them, in order.
fn plan_moves(value: Value, user: Op, moves: &mut Vec<Op>) -> bool {
    let Some(op) = value.defining_op() else {
        // An argument is there wherever its block is around.
        let mut at = Some(user);
        while let Some(inner) = at {
            if inner.block() == value.block() {
                return true;
            }
            at = inner.parent();
        }
        return false;
    };
    if moves.contains(&op) {
        return true;
    }
    let Some(anchor) = ancestor_in_block_of(user, op) else { return false };
    if anchor != op && op.is_before_in_block(anchor) {
        return true;
    }
    let movable = anchor != op && op.regions().is_empty() && interfaces::is_pure(op) && moves.len() < MOST_MOVES;
    if !movable || !op.operands().into_iter().all(|v| plan_moves(v, anchor, moves)) {
        return false;
    }
    moves.push(op);
    true
}
