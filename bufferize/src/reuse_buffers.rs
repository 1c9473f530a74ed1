//! Make tensors in buffers that have served their purpose.
//!
//! ```text
//! %1 = scf.forall .. shared_outs(%o = %0) { .. %x .. }        %1 = scf.forall .. shared_outs(%o = %0) { .. %x .. }
//! %2 = tensor.empty() : tensor<8xf32>                   ==>   %3 = scf.forall .. shared_outs(%o = %x) { .. %1 .. }
//! %3 = scf.forall .. shared_outs(%o = %2) { .. %1 .. }
//! ```
//!
//! `%x` is a donated input that nothing uses any more. [`monopour_analysis::reuse`] chooses; a change that the in-place
//! analysis copies an operand for is undone. A dispatch may also take the buffer of a tensor that it reads
//! (`own_tiles.rs`), and the slice that it reads of a tensor if its result is inserted there.
//!
//! Requires: functions on tensors, before bufferization. Ensures: the same values, and no more copies.
//! Limits: tensors of static size, destinations that are a `tensor.empty` and nothing else.

use std::collections::{HashMap, HashSet};

use monopour_analysis::index::{IndexVec, ValueId};
use monopour_analysis::one_shot::InPlaceAnalysis;
use monopour_analysis::reuse::{OwnParts, reuses};
use monopour_ir::typed::scf::ForAll;
use monopour_ir::{Block, Diagnostics, Op, Rewriter, Type, Use, Value, ops};
use tracing::trace;

use crate::copied::{Copied, copied};
use crate::eliminate_empty_tensors::Analysed;
use crate::improve::{Analyse, trials};
use crate::own_tiles::{self, OwnTile, own_tiles};
use crate::slices::{Symbols, key, slice_of};

/// How many sets of changes are tried, each with an analysis of its own: all together, then halves of sets that cost copies.
const MOST_TRIALS: usize = 16;

/// Replaces new tensors of a function, and returns what was changed. The analysis is of the function as it is then; values that
/// were replaced are still there until [`Reused::finish`].
///
/// # Errors
/// As [`crate::run_one_shot`], for programs that it would refuse.
pub(crate) fn reuse_buffers<'c>(
    function: Op<'c>,
    analysed: &mut Analysed<'c>,
    analyse: Analyse<'c, '_>,
) -> Result<Reused<'c>, Diagnostics> {
    let (changes, left, least) = (changes(analysed), trials(analysed, MOST_TRIALS), copied(analysed));
    let (rw, kept) = (Rewriter::new(function.context()), Reused { empties: vec![], made: vec![] });
    let mut search = Trials { rw, analyse, left, least, analysed, kept };
    search.run(changes)?;
    // A dispatch may read several tensors: the second one, if the first is not free.
    for number in 0..2 {
        let changes = changes_in_branches(search.analysed, number);
        search.run(changes)?;
    }
    Ok(search.kept)
}

/// What [`reuse_buffers`] changed.
pub(crate) struct Reused<'c> {
    /// New tensors that other values are used for.
    pub(crate) empties: Vec<Value<'c>>,
    made: Vec<Made<'c>>,
}

impl<'c> Reused<'c> {
    /// Ends the changes.
    ///
    /// # Errors
    /// MLIR's, for an op that does not build.
    pub(crate) fn finish(self, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
        self.made.into_iter().try_for_each(|made| made.keep(rw))
    }
}

/// A use of a new tensor, and the value to use instead.
struct Change<'c> {
    used: Use<'c>,
    empty: Value<'c>,
    value: Value<'c>,
    /// If the op reads the value.
    tile: Option<OwnTile<'c>>,
}

/// A change that was made.
enum Made<'c> {
    Operand(Use<'c>, Value<'c>),
    Tile(own_tiles::Made<'c>),
}

impl<'c> Change<'c> {
    /// What the op results in at the place of the operand.
    fn result(&self) -> Option<Value<'c>> {
        let forall = ForAll::of(self.used.op)?;
        let at = forall.output_positions().position(|position| position == self.used.index)?;
        Some(self.used.op.result(at))
    }

    fn make(&self, rw: &mut Rewriter<'c>) -> Result<Made<'c>, Diagnostics> {
        if let Some(tile) = self.tile {
            return tile.make(rw).map(Made::Tile);
        }
        rw.set_operand(self.used.op, self.used.index, self.value);
        Ok(Made::Operand(self.used, self.empty))
    }
}

impl<'c> Made<'c> {
    fn undo(self, rw: &mut Rewriter<'c>) {
        match self {
            Self::Operand(used, old) => rw.set_operand(used.op, used.index, old),
            Self::Tile(made) => made.undo(rw),
        }
    }

    fn keep(self, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
        match self {
            Self::Operand(..) => Ok(()),
            Self::Tile(made) => made.keep(rw),
        }
    }
}

fn changes<'c>(analysed: &Analysed<'c>) -> Vec<Change<'c>> {
    let Analysed { collected, decisions } = analysed;
    let mut numbers: HashMap<Type, u32> = HashMap::new();
    let mut kind = |value: &Value<'c>| {
        value.ty().static_size_bytes().filter(|bytes| *bytes > 0)?;
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        Some(*numbers.entry(value.ty()).or_insert(next))
    };
    let kinds: IndexVec<_, _> = collected.values.iter().map(&mut kind).collect();
    let tiles: Vec<OwnTile> =
        collected.ops.iter().filter(|op| op.is(ops::scf::FORALL)).flat_map(|op| own_tiles(*op)).collect();
    let own = tiles.iter().filter_map(|tile| {
        let operand = *collected.operand_ids.get(&(tile.used.op, tile.used.index))?;
        Some(OwnParts { operand, value: collected.id(tile.value)? })
    });
    let key = |used: Use<'c>, value: Value<'c>| (used.op, used.index, value);
    let by_use: HashMap<_, OwnTile> = tiles.iter().rev().map(|tile| (key(tile.used, tile.value), *tile)).collect();
    let change = |reuse: monopour_analysis::reuse::Reuse| {
        let (used, value) = (collected.operands[reuse.operand], collected.values[reuse.value]);
        let tile = by_use.get(&key(used, value)).copied();
        Change { used, empty: used.op.operand(used.index), value, tile }
    };
    let mut found: Vec<Change> =
        reuses(&collected.facts, decisions, &kinds, &own.collect::<Vec<_>>()).into_iter().map(change).collect();
    let mut by_result: HashMap<(Op, usize), Vec<OwnTile>> = HashMap::new();
    for tile in &tiles {
        by_result.entry((tile.used.op, tile.used.index)).or_default().push(*tile);
    }
    found.iter().for_each(|change| drop(by_result.remove(&(change.used.op, change.used.index))));
    found.extend(collected.ops.iter().filter_map(|op| update(*op, &by_result)));
    let returned = Returned::of(analysed);
    found.retain(|change| !(is_one_of_several(change.value) && returned.has(change.empty)));
    found
}

/// What a function may return.
struct Returned<'c, 'a> {
    analysed: &'a Analysed<'c>,
    classes: HashSet<ValueId>,
}

impl<'c, 'a> Returned<'c, 'a> {
    fn of(analysed: &'a Analysed<'c>) -> Self {
        let mut returned = Self { analysed, classes: HashSet::new() };
        let ends = analysed.collected.ops.iter().filter(|op| op.is(ops::func::RETURN));
        returned.classes = ends.flat_map(|op| op.operands()).filter_map(|value| returned.class(value)).collect();
        returned
    }

    fn class(&self, value: Value<'c>) -> Option<ValueId> {
        Some(self.analysed.decisions.alias_class(self.analysed.collected.id(value)?))
    }

    fn has(&self, value: Value<'c>) -> bool {
        self.class(value).is_some_and(|class| self.classes.contains(&class))
    }
}

/// Whether a branch results in a tensor made before it, or in another one. As a result of the function it would have an owner that a
/// run decides, so that memory could be planned for neither.
fn is_one_of_several(value: Value) -> bool {
    let branch = value.defining_op().filter(|op| op.is(ops::scf::IF));
    let (Some(branch), Some(at)) = (branch, value.result_index()) else { return false };
    let ends = branch.regions().into_iter().filter_map(|region| region.entry()?.terminator());
    ends.map(|end| end.operand(at)).any(|value| {
        let is_before = value.defining_op().is_some_and(|op| !op.is_inside(branch));
        is_before || is_one_of_several(value)
    })
}

/// The changes by which dispatches of branches make what the branch yields in a tensor from outside of it: that of the other branch,
/// or of what is read for the last time. `number`: which of the tensors that a dispatch reads.
///
/// ```text
/// %r = scf.if %c {
///   %d = scf.forall .. shared_outs(%o = %e) { .. %x .. }          shared_outs(%o = %x)
///   scf.yield %d
/// } else {
///   scf.yield %x                                                  one buffer for both, whose owner is known
/// }
/// ```
///
/// A branch of what the function returns does so if the others yield the same tensor, or the tensor is the caller's: else the result
/// would have an owner that a run decides, so that memory could be planned for neither.
fn changes_in_branches<'c>(analysed: &Analysed<'c>, number: usize) -> Vec<Change<'c>> {
    let (mut found, returned): (Vec<Change>, _) = (vec![], Returned::of(analysed));
    for op in analysed.collected.ops.iter().copied().filter(|op| op.is(ops::scf::FORALL)) {
        let Some(branch) = op.parent().filter(|parent| parent.is(ops::scf::IF)) else { continue };
        let is_yielded = op.results().iter().all(|result| result.uses().iter().any(|used| used.op.is(ops::scf::YIELD)));
        let comes_from_outside = |value: Value<'c>| {
            let owner = value.defining_op().or_else(|| value.block().and_then(Block::parent_op));
            owner.is_some_and(|owner| owner != branch && !owner.is_inside(branch))
        };
        let mut tiles = own_tiles(op).into_iter().filter(|tile| is_yielded && comes_from_outside(tile.value));
        let tile = tiles.nth(number);
        found.extend(tile.map(|tile| {
            let (used, value) = (tile.used, tile.value);
            Change { used, empty: used.op.operand(used.index), value, tile: Some(tile) }
        }));
    }
    let made: HashMap<Value, Value> =
        found.iter().filter_map(|change| Some((change.result()?, change.value))).collect();
    let is_of_caller = |value: Value<'c>| {
        value.as_block_arg().and_then(|(block, _)| block.parent_op()).is_some_and(|op| op.is(ops::func::FUNC))
    };
    let is_one = |change: &Change<'c>| {
        let same = |yielded: &Value<'c>| made.get(yielded).copied().unwrap_or(*yielded) == change.value;
        change.result().is_some_and(|result| yielded_in_its_place(result).iter().all(same))
    };
    let may_be = found.iter().map(|change| is_of_caller(change.value) || !returned.has(change.empty) || is_one(change));
    let may_be: Vec<bool> = may_be.collect();
    found.into_iter().zip(may_be).filter_map(|(change, may_be)| may_be.then_some(change)).collect()
}

/// What the branches of an `scf.if` yield where one of them yields a value.
fn yielded_in_its_place<'c>(value: Value<'c>) -> Vec<Value<'c>> {
    let ends = value.uses().into_iter().filter(|used| used.op.is(ops::scf::YIELD));
    let branches = ends.filter_map(|end| Some((end.op.parent().filter(|op| op.is(ops::scf::IF))?, end.index)));
    let ends_of = |op: Op<'c>| op.regions().into_iter().filter_map(|region| region.entry()?.terminator());
    branches.flat_map(|(op, at)| ends_of(op).map(move |end| end.operand(at))).collect()
}

/// The change by which a dispatch makes what is inserted in the slice that it reads, if the insertion overwrites that:
///
/// ```text
/// %p = tensor.extract_slice %x[8] [4] [1]
/// %d = scf.forall .. shared_outs(%o = %e) { .. %p .. }          shared_outs(%o = %p)
/// %r = tensor.insert_slice %d into %x[8] [4] [1]                copies nothing
/// ```
fn update<'c>(insertion: Op<'c>, tiles: &HashMap<(Op<'c>, usize), Vec<OwnTile<'c>>>) -> Option<Change<'c>> {
    if !insertion.is(ops::tensor::INSERT_SLICE) {
        return None;
    }
    let (source, destination) = (insertion.operand(0), insertion.operand(1));
    let forall = source.defining_op().and_then(ForAll::of)?;
    let index = forall.output_positions().nth(source.result_index()?)?;
    let overwrites = |value: Value<'c>| {
        let slice = value.defining_op().filter(|op| op.is(ops::tensor::EXTRACT_SLICE));
        let mut symbols = Symbols::default();
        let mut key = |op| slice_of(op).map(|slice| key(&mut symbols, &slice));
        slice.is_some_and(|op| op.operand(0) == destination && key(op) == key(insertion))
    };
    let tile = *tiles.get(&(source.defining_op()?, index))?.iter().find(|tile| overwrites(tile.value))?;
    let (used, value) = (tile.used, tile.value);
    Some(Change { used, empty: used.op.operand(used.index), value, tile: Some(tile) })
}

/// The search for changes that cost no copies.
struct Trials<'c, 'a> {
    rw: Rewriter<'c>,
    analyse: Analyse<'c, 'a>,
    /// Analyses that may still be made.
    left: usize,
    /// What is copied without the changes.
    least: Copied,
    /// The function with the changes that are kept.
    analysed: &'a mut Analysed<'c>,
    kept: Reused<'c>,
}

impl<'c> Trials<'c, '_> {
    /// Keeps all of the changes if they cost nothing, else those of each half that do not.
    fn run(&mut self, mut changes: Vec<Change<'c>>) -> Result<(), Diagnostics> {
        if changes.is_empty() || self.left == 0 {
            return Ok(());
        }
        self.left -= 1;
        let mut all = Vec::new();
        for change in &changes {
            all.push(change.make(&mut self.rw)?);
        }
        if let Some(after) = (self.analyse)().ok().filter(|after| self.is_kept(after, &changes)) {
            for change in changes {
                let (op, place) = (change.used.op, change.used.op.location());
                trace!(target: "bufferize", "{place}: {} is made in a buffer that is free by then", op.name());
                self.kept.empties.push(change.empty);
            }
            self.kept.made.extend(all);
            *self.analysed = after;
            return Ok(());
        }
        all.into_iter().rev().for_each(|made| made.undo(&mut self.rw));
        if changes.len() == 1 {
            return Ok(());
        }
        let second = changes.split_off(changes.len() / 2);
        self.run(changes)?;
        self.run(second)
    }

    fn is_kept(&self, analysed: &Analysed<'c>, changes: &[Change<'c>]) -> bool {
        let is_in_place = |change: &Change<'c>| {
            let id = analysed.collected.operand_ids.get(&(change.used.op, change.used.index));
            id.is_some_and(|id| analysed.decisions.is_in_place(*id))
        };
        copied(analysed) <= self.least && changes.iter().all(is_in_place)
    }
}
