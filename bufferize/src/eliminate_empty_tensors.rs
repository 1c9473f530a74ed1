//! Compute a tensor that is inserted into another one directly in its destination.
//!
//! ```text
//! %e = tensor.empty() : tensor<4xf32>                  %s = tensor.extract_slice %d[8] [4] [1]
//! %a = linalg.exp ins(%x) outs(%e)                ==>  %a = linalg.exp ins(%x) outs(%s)
//! %r = tensor.insert_slice %a into %d[8] [4] [1]       %r = tensor.insert_slice %a into %d[8] [4] [1]
//! ```
//!
//! The contents of a `tensor.empty` are undefined, so any other tensor may replace it. With the slice of the destination
//! bufferization finds the source of the insertion already in place, without a copy.
//!
//! Requires: functions on tensors, before bufferization. Ensures: the same values. One analysis of each function decides;
//! with `extensions`, a second one measures the saved copies, and changes that save none are undone.
//! The use chain is followed through destination operands, casts, loops that keep their buffer, and branches of a conditional;
//! the destination and its indices are moved up if only that is missing, with `extensions` also a dispatch that makes it. With
//! `extensions` an assertion that guards the insertion guards the slice, too (`place_guards.rs`).
//! Limits: reshapes are followed with `extensions` only, back to a known layout.
//! Source: MLIR's `eliminate-empty-tensors`, LLVM 22.
//! Differs with `extensions`: the gain is measured, not assumed; both branches of a conditional; reshapes; ops with regions move;
//! readers of the source behind the insertion read the result, or move before it.

use monopour_ir::ops;
use std::collections::HashSet;

use monopour_analysis::one_shot::{Decisions, InPlaceAnalysis};
use monopour_ir::{Diagnostics, InsertionPoint, Op, OpSpec, Rewriter, Use, Value};

use crate::analysis::Greedy;
use crate::block_order::BlockOrder;
use crate::boundary::{Callees, callees_first};
use crate::collect::{Collected, collect};
use crate::copied::{Copied, copied, inserted_bytes};
use crate::empty_origins::{EmptyOrigins, Ends, Origin};
use crate::expansions::can_be_collapsed;
use crate::insert_copies::explain;
use crate::one_shot::{Stats, Unit, analyse_all, decide};
use crate::op_model::OpModels;
use crate::options::Options;
use crate::place_guards::guard_place;
use crate::remarks::Remarks;
use crate::subset_extraction::{
    Edit, Movable, extract, has_late_readers, insertion_operands, may_cast, move_before_use, move_late_readers,
    needed_values, point_behind, read_from_result, reshape_back, undo,
};
use crate::summaries::summarise;
use crate::{order_insertions, own_empties, shared_outputs};

/// How many sets of insertions are tried, each with an analysis of its own: all together, and halves of sets of which some save
/// no copy.
const MOST_TRIALS: usize = 64;

/// Counts of the pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Eliminated {
    /// Replaced uses of a `tensor.empty`.
    pub uses: usize,
    /// Operands that the analysis decided in place.
    pub in_place: usize,
    /// Operands that the analysis decided out of place.
    pub out_of_place: usize,
}

/// Replaces tensors in a module, or in one function; returns the number of replaced uses of a `tensor.empty`.
///
/// # Errors
/// As [`crate::run_one_shot`], for programs that it would refuse.
pub fn eliminate_empty_tensors(root: Op, options: &Options) -> Result<Eliminated, Diagnostics> {
    let mut done = Eliminated::default();
    eliminate_empty_tensors_into(root, options, &mut done).map(|()| done)
}

/// As [`eliminate_empty_tensors`]; decisions before an error count in `done`.
///
/// # Errors
/// As [`eliminate_empty_tensors`].
pub fn eliminate_empty_tensors_into(root: Op, options: &Options, done: &mut Eliminated) -> Result<(), Diagnostics> {
    options.check()?;
    let models = OpModels::upstream();
    if !options.extensions {
        return as_upstream(root, &models, options, done);
    }
    let functions = if root.is(ops::func::FUNC) { vec![root] } else { root.find_all(ops::func::FUNC) };
    let mut callees = Callees::new(&functions);
    for function in callees_first(&functions).into_iter().filter(|f| f.body().is_some()) {
        shared_outputs::run(function);
        own_empties::run(function);
        order_insertions::run(function);
        let mut analysed = analyse(function, &models, &callees, options)?;
        for id in analysed.collected.operands.ids() {
            let count = if analysed.decisions.is_in_place(id) { &mut done.in_place } else { &mut done.out_of_place };
            *count += 1;
        }
        let again = || analyse(function, &models, &callees, options);
        let edits = improve(function, &mut analysed, &again, None)?;
        callees.insert(function, summarise(function, &analysed.collected, &analysed.decisions));
        done.uses += replaced(&edits).count();
        erase_unused(&mut Rewriter::new(function.context()), replaced(&edits));
    }
    Ok(())
}

/// One analysis of all functions, then all replacements, whatever the gain.
fn as_upstream(root: Op, models: &OpModels, options: &Options, done: &mut Eliminated) -> Result<(), Diagnostics> {
    let mut stats = Stats::default();
    let analysed = analyse_all(root, options, models, &mut Greedy::new(options), &mut stats);
    (done.in_place, done.out_of_place) = (stats.in_place as usize, stats.out_of_place as usize);
    for Unit { root, collected, decisions, .. } in &analysed?.units {
        done.uses += replace_all(*root, collected, decisions)?;
    }
    Ok(())
}

/// A function's facts and decisions.
pub(crate) struct Analysed<'c> {
    pub(crate) collected: Collected<'c>,
    pub(crate) decisions: Decisions,
}

pub(crate) fn analyse<'c>(
    function: Op<'c>,
    models: &OpModels,
    callees: &Callees<'c>,
    options: &Options,
) -> Result<Analysed<'c>, Diagnostics> {
    let collected = collect(function, models, callees, options)?;
    let decisions = decide(&collected, options)?;
    Ok(Analysed { collected, decisions })
}

/// Replaces one use of each new tensor that can be replaced by the destination's slice.
fn replace_all(function: Op, collected: &Collected, decisions: &Decisions) -> Result<usize, Diagnostics> {
    let mut origins = EmptyOrigins::new(collected, decisions, Ends::Some);
    let (mut rw, mut order) = (Rewriter::new(function.context()), BlockOrder::default());
    let mut count = 0;
    for insertion in collected.ops.iter().copied() {
        let source = insertion_operands(insertion).and_then(|(s, _)| collected.operand_ids.get(&(insertion, s)));
        let Some(source) = source.copied().filter(|s| decisions.is_in_place(*s)) else { continue };
        let found = origins.of(collected.facts.operands()[source].value);
        // The source itself may be a new tensor.
        let itself = Origin { operand: source, is_copied: false, reshapes: None };
        let mut replaced = HashSet::new();
        for origin in found.iter().flat_map(|f| f.iter()).rev().chain([&itself]) {
            let used = collected.operands[origin.operand];
            let empty = used.op.operand(used.index).defining_op().filter(|op| op.is(ops::tensor::EMPTY));
            let Some(empty) = empty.filter(|op| replaced.insert(*op)) else { continue };
            let needed = needed_values(insertion);
            let mut edits = Vec::new();
            let point = match point_behind(&mut order, empty, used, &needed) {
                Some(point) => point,
                None if move_before_use(&mut rw, &mut order, used.op, (&needed, Movable::Simple), &mut edits) => {
                    InsertionPoint::Before(used.op)
                }
                None => continue,
            };
            rw.set_point(point);
            if replace(&mut rw, insertion, used, origin, &mut edits)? {
                count += 1;
            } else {
                undo(&mut rw, &mut order, edits);
            }
        }
    }
    Ok(count)
}

/// An insertion, and the uses of new tensors in which its source is computed.
struct Candidate<'c> {
    insertion: Op<'c>,
    uses: Vec<(Use<'c>, Origin<'c>)>,
}

fn candidates<'c>(analysed: &Analysed<'c>, ends: Ends) -> Vec<Candidate<'c>> {
    let Analysed { collected, decisions } = analysed;
    let mut origins = EmptyOrigins::new(collected, decisions, ends);
    let mut taken = HashSet::new();
    let mut found = Vec::new();
    for insertion in collected.ops.iter().copied() {
        let source = insertion_operands(insertion).and_then(|(s, _)| collected.operand_ids.get(&(insertion, s)));
        let Some(source) = source else { continue };
        let Some(uses) = origins.of(collected.facts.operands()[*source].value) else { continue };
        if !uses.is_empty() && uses.iter().all(|u| taken.insert(u.operand)) {
            let uses = uses.iter().map(|u| (collected.operands[u.operand], u.clone())).collect();
            found.push(Candidate { insertion, uses });
        }
    }
    // The last insertion first: the slice of its destination may be the destination of those before it. Reshapes come behind
    // them: whether they need a copy depends on the buffers that the others choose.
    let reshapes = |c: &Candidate| c.uses.iter().any(|(_, origin)| origin.reshapes.is_some());
    let (reshaped, mut plain): (Vec<_>, Vec<_>) = found.into_iter().partition(reshapes);
    plain.reverse();
    plain.extend(reshaped);
    plain
}

/// Applies the candidates that save copies, and returns what was changed. The analysis is of the function as it is then; values
/// that were replaced are still there. With `remarks`, operands that are copied are copied to where their results go, too; a remark
/// says why.
pub(crate) fn improve<'c>(
    function: Op<'c>,
    analysed: &mut Analysed<'c>,
    analyse: &dyn Fn() -> Result<Analysed<'c>, Diagnostics>,
    remarks: Option<&mut Remarks>,
) -> Result<Vec<Edit<'c>>, Diagnostics> {
    let ends = if remarks.is_some() { Ends::EmptyOrCopied } else { Ends::Empty };
    let (candidates, least) = (candidates(analysed, ends), copied(analysed));
    let mut search = Search {
        rw: Rewriter::new(function.context()),
        order: BlockOrder::default(),
        analyse,
        trials: MOST_TRIALS,
        least,
        analysed,
        kept: vec![],
        remarks: Remarks::default(),
    };
    search.run(&candidates)?;
    let Search { kept, remarks: reasons, .. } = search;
    if let Some(remarks) = remarks {
        remarks.append(reasons);
    }
    Ok(kept)
}

/// What becomes of readers of the source behind the insertion.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LateReaders {
    /// They read the slice of its result: the order stays.
    ReadResult,
    /// Those that can move before it, where a later write of the result's buffer may be in their way; the others as above.
    Move,
}

/// The search for candidates that save copies.
struct Search<'c, 'a> {
    rw: Rewriter<'c>,
    order: BlockOrder<'c>,
    analyse: &'a dyn Fn() -> Result<Analysed<'c>, Diagnostics>,
    /// Analyses that may still be made.
    trials: usize,
    /// What is copied with the kept edits.
    least: Copied,
    /// The function with the kept edits.
    analysed: &'a mut Analysed<'c>,
    kept: Vec<Edit<'c>>,
    /// Why operands are copied to where their results go.
    remarks: Remarks,
}

impl<'c> Search<'c, '_> {
    /// Keeps all of the candidates if each of them saves a copy, else those of each half that do.
    fn run(&mut self, candidates: &[Candidate<'c>]) -> Result<(), Diagnostics> {
        let count = self.attempt(candidates, LateReaders::ReadResult)?;
        if count == 0 || self.trials == 0 {
            return Ok(());
        }
        match candidates {
            [one] if has_late_readers(&mut self.order, one.insertion) => {
                self.attempt(candidates, LateReaders::Move).map(|_| ())
            }
            [] | [_] => Ok(()),
            _ => {
                let (first, second) = candidates.split_at(candidates.len() / 2);
                self.run(first)?;
                self.run(second)
            }
        }
    }

    /// Keeps the candidates if each of them saves its copy, or one of them bytes; else the number of those that could be prepared.
    fn attempt(&mut self, candidates: &[Candidate<'c>], readers: LateReaders) -> Result<usize, Diagnostics> {
        let (mut edits, mut remarks) = (Vec::new(), Remarks::default());
        for candidate in candidates {
            let before = edits.len();
            apply(&mut self.rw, &mut self.order, (candidate, readers), &mut edits)?;
            if edits.len() > before {
                self.explain(candidate, &mut remarks);
            }
        }
        let applied = applied(&edits);
        let count = applied.len();
        if count > 0 && self.trials > 0 {
            self.trials -= 1;
            let own = inserted_bytes(&self.analysed.collected, applied.into_iter());
            let after = (self.analyse)().ok().map(|after| (copied(&after), after));
            if let Some((least, after)) = after.filter(|(after, _)| self.is_kept(*after, own, count)) {
                (self.least, *self.analysed) = (least, after);
                self.kept.extend(edits);
                self.remarks.append(remarks);
                return Ok(0);
            }
        }
        undo(&mut self.rw, &mut self.order, edits);
        Ok(count)
    }

    /// Why operands are copied, as decided before the change.
    fn explain(&self, candidate: &Candidate<'c>, remarks: &mut Remarks) {
        let Analysed { collected, decisions } = &*self.analysed;
        for (used, _) in candidate.uses.iter().filter(|(_, origin)| origin.is_copied) {
            let operand = collected.operand_ids.get(&(used.op, used.index)).copied();
            if let Some((id, reason)) = operand.and_then(|id| Some((id, decisions.reason(id)?))) {
                let ty = collected.values[collected.facts.operands()[id].value].ty();
                remarks.push(explain(collected, id, reason, ty, true), ty.static_size_bytes());
            }
        }
    }

    /// Whether `count` changes that are to save `own` bytes together save them, and one less copy each; or one change saves any.
    fn is_kept(&self, after: Copied, own: u64, count: usize) -> bool {
        let all = after.bytes.saturating_add(own) <= self.least.bytes && after.count + count <= self.least.count;
        all || (count == 1 && after.bytes < self.least.bytes && after.dynamic <= self.least.dynamic)
    }
}

/// The prepared insertions.
fn applied<'c>(edits: &[Edit<'c>]) -> HashSet<Op<'c>> {
    edits.iter().filter_map(|e| if let Edit::Use { insertion, .. } = e { Some(*insertion) } else { None }).collect()
}

/// The values whose uses were replaced, one for each use.
pub(crate) fn replaced<'c>(edits: &[Edit<'c>]) -> impl Iterator<Item = Value<'c>> {
    edits.iter().filter_map(|edit| if let Edit::Use { old, .. } = edit { Some(*old) } else { None })
}

/// Erases the ops of values that nothing uses any more.
pub(crate) fn erase_unused<'c>(rw: &mut Rewriter<'c>, values: impl Iterator<Item = Value<'c>>) {
    let mut seen = HashSet::new();
    for op in values.filter_map(Value::defining_op) {
        if seen.insert(op) && op.result(0).is_unused() {
            rw.erase(op);
        }
    }
}

/// Replaces the uses by the slice that the insertion overwrites; all of them, or none.
fn apply<'c>(
    rw: &mut Rewriter<'c>,
    order: &mut BlockOrder<'c>,
    (candidate, readers): (&Candidate<'c>, LateReaders),
    edits: &mut Vec<Edit<'c>>,
) -> Result<(), Diagnostics> {
    let mut own = Vec::new();
    for (used, origin) in &candidate.uses {
        let needed = needed_values(candidate.insertion);
        let there = move_before_use(rw, order, used.op, (&needed, Movable::Nested), &mut own);
        let old = used.op.operand(used.index);
        rw.set_point(InsertionPoint::Before(used.op));
        let done = there && replace(rw, candidate.insertion, *used, origin, &mut own)? && {
            let ends = (candidate.insertion, used.op);
            guard_place(rw, order, ends, (old, used.op.operand(used.index)), &mut own)?
                && (!origin.is_copied || copy_there(rw, *used, old, &mut own)?)
        };
        if !done {
            undo(rw, order, own);
            return Ok(());
        }
    }
    if readers == LateReaders::Move {
        move_late_readers(rw, order, candidate.insertion, &mut own);
    }
    read_from_result(rw, order, candidate.insertion, &mut own)?;
    edits.extend(own);
    Ok(())
}

/// Copies the value `old` of an operand to the slice that is the operand now.
fn copy_there<'c>(
    rw: &mut Rewriter<'c>,
    used: Use<'c>,
    old: Value<'c>,
    edits: &mut Vec<Edit<'c>>,
) -> Result<bool, Diagnostics> {
    let place = used.op.operand(used.index);
    rw.set_point(InsertionPoint::Before(used.op));
    let copy = OpSpec::new(ops::bufferization::MATERIALIZE_IN_DESTINATION, used.op.location());
    let copy = rw.create(copy.operands(&[old, place]).results(&[place.ty()]))?;
    edits.push(Edit::Made(copy));
    rw.set_operand(used.op, used.index, copy.result(0));
    edits.push(Edit::Reader { used, old: place });
    Ok(true)
}

/// Replaces one use, at the insertion point; false, with edits to undo, if the types do not fit, or a reshape
/// would copy.
fn replace<'c>(
    rw: &mut Rewriter<'c>,
    insertion: Op<'c>,
    used: Use<'c>,
    origin: &Origin<'c>,
    edits: &mut Vec<Edit<'c>>,
) -> Result<bool, Diagnostics> {
    let old = used.op.operand(used.index);
    let Some(mut value) = extract(rw, insertion, edits)? else { return Ok(false) };
    let mut reshapes = origin.reshapes.clone();
    while let Some(reshape) = reshapes {
        match cast(rw, value, reshape.op.result(0), used, edits)? {
            Some(fitting) => value = fitting,
            None => return Ok(false),
        }
        // Before the first reshape the sizes are those of the tensor that is replaced.
        let like = Some(old).filter(|old| reshape.before.is_none() && may_cast(reshape.op.operand(0).ty(), old.ty()));
        match reshape_back(rw, reshape.op, (value, like), edits)? {
            Some(reshaped) => value = reshaped,
            None => return Ok(false),
        }
        reshapes = reshape.before.clone();
    }
    let Some(value) = cast(rw, value, old, used, edits)? else { return Ok(false) };
    rw.set_operand(used.op, used.index, value);
    edits.push(Edit::Use { used, old, insertion });
    let reshapes = std::iter::successors(origin.reshapes.as_deref(), |r| r.before.as_deref());
    let mut collapses = reshapes.map(|r| r.op).filter(|op| op.is(ops::tensor::COLLAPSE_SHAPE));
    Ok(collapses.all(can_be_collapsed))
}

/// `value` cast to the type of `like`; `None` if no cast can.
fn cast<'c>(
    rw: &mut Rewriter<'c>,
    value: Value<'c>,
    like: Value<'c>,
    used: Use<'c>,
    edits: &mut Vec<Edit<'c>>,
) -> Result<Option<Value<'c>>, Diagnostics> {
    if value.ty() == like.ty() {
        return Ok(Some(value));
    }
    if !may_cast(value.ty(), like.ty()) {
        return Ok(None);
    }
    let cast = OpSpec::new(ops::tensor::CAST, used.op.location()).operands(&[value]).results(&[like.ty()]);
    let cast = rw.create(cast)?;
    edits.push(Edit::Made(cast));
    Ok(Some(cast.result(0)))
}
