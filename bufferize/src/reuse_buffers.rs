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
//! (`own_tiles.rs`).
//!
//! Requires: functions on tensors, before bufferization. Ensures: the same values, and no more copies.
//! Limits: tensors of static size, destinations that are a `tensor.empty` and nothing else.

use std::collections::HashMap;

use monopour_analysis::index::IndexVec;
use monopour_analysis::one_shot::InPlaceAnalysis;
use monopour_analysis::reuse::{OwnParts, reuses};
use monopour_ir::{Diagnostics, Op, Rewriter, Type, Use, Value, ops};
use tracing::trace;

use crate::eliminate_empty_tensors::{Analysed, cost};
use crate::improve::{Analyse, improve, trials};
use crate::options::Options;
use crate::own_tiles::{self, OwnTile, own_tiles};

/// How many sets of changes are tried, each with an analysis of its own: all together, then halves of sets that cost copies.
const MOST_TRIALS: usize = 16;

/// Replaces new tensors of a module's functions; returns how many. Nothing is done but with
/// [`crate::Strategy::Minimal`].
///
/// # Errors
/// As [`crate::run_one_shot`], for programs that it would refuse.
pub fn reuse_buffers(root: Op, options: &Options) -> Result<usize, Diagnostics> {
    improve(root, options, |function, analyse| {
        let mut analysed = analyse()?;
        let changes = changes(&analysed);
        let mut search = Trials {
            rw: Rewriter::new(function.context()),
            analyse,
            left: trials(&analysed, MOST_TRIALS),
            least: cost(&analysed),
        };
        let made = search.run(&changes)?;
        if made > 0 {
            analysed = analyse()?;
        }
        Ok((made, analysed))
    })
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

fn changes<'c>(Analysed { collected, decisions }: &Analysed<'c>) -> Vec<Change<'c>> {
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
    let change = |reuse: monopour_analysis::reuse::Reuse| {
        let (used, value) = (collected.operands[reuse.operand], collected.values[reuse.value]);
        let tile = tiles.iter().find(|tile| tile.used == used && tile.value == value).copied();
        Change { used, empty: used.op.operand(used.index), value, tile }
    };
    reuses(&collected.facts, decisions, &kinds, &own.collect::<Vec<_>>()).into_iter().map(change).collect()
}

/// The search for changes that cost no copies.
struct Trials<'c, 'a> {
    rw: Rewriter<'c>,
    analyse: Analyse<'c, 'a>,
    /// Analyses that may still be made.
    left: usize,
    /// Copies without the changes.
    least: usize,
}

impl<'c> Trials<'c, '_> {
    /// Keeps all of the changes if they cost nothing, else those of each half that do not; returns how many.
    fn run(&mut self, changes: &[Change<'c>]) -> Result<usize, Diagnostics> {
        if changes.is_empty() || self.left == 0 {
            return Ok(0);
        }
        self.left -= 1;
        let mut all = Vec::new();
        for change in changes {
            all.push(change.make(&mut self.rw)?);
        }
        if (self.analyse)().is_ok_and(|analysed| self.is_kept(&analysed, changes)) {
            for (change, made) in changes.iter().zip(all) {
                let (op, place) = (change.used.op, change.used.op.location());
                trace!(target: "bufferize", "{place}: {} is made in a buffer that is free by then", op.name());
                made.keep(&mut self.rw)?;
                if let Some(empty) = change.empty.defining_op().filter(|_| change.empty.is_unused()) {
                    self.rw.erase(empty);
                }
            }
            return Ok(changes.len());
        }
        all.into_iter().rev().for_each(|made| made.undo(&mut self.rw));
        if changes.len() == 1 {
            return Ok(0);
        }
        let (first, second) = changes.split_at(changes.len() / 2);
        Ok(self.run(first)? + self.run(second)?)
    }

    fn is_kept(&self, analysed: &Analysed<'c>, changes: &[Change<'c>]) -> bool {
        let is_in_place = |change: &Change<'c>| {
            let id = analysed.collected.operand_ids.get(&(change.used.op, change.used.index));
            id.is_some_and(|id| analysed.decisions.is_in_place(*id))
        };
        cost(analysed) <= self.least && changes.iter().all(is_in_place)
    }
}
