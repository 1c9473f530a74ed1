//! Chooses the loads of each input and the stepped reduction, by the least cost of loads.

use super::super::code::{facts, gcd};
use super::super::evaluate::{Evaluator, Reach};
use super::super::fitted::FittedChoice;
use super::super::model::TileOp;
use super::super::stride::Stride;
use super::axes::{Axes, Extent, Input};
use super::tile::{Tile, ceil_div};
use std::collections::BTreeSet;

/// Measured on a software adapter, in tenths of a nanosecond: a load, each of its elements, an accumulator per pass, a pass.
const LOAD_COST: i64 = 95;
const ELEMENT_COST: i64 = 20;
const ACCUMULATOR_COST: i64 = 3;
const PASS_COST: i64 = 20;

/// An input and how it is loaded.
#[derive(Clone, Debug)]
pub(super) struct Side<'c> {
    /// Position among the op's operands.
    pub(super) operand: usize,
    pub(super) slice: usize,
    /// Strides in elements along rows, columns, the stepped reduction, the others, and the serial coordinates.
    pub(super) row: Stride<'c>,
    pub(super) column: Stride<'c>,
    pub(super) k: Stride<'c>,
    /// Along the coordinates that are merged with the row and with the column; none in a copy.
    pub(super) outer_rows: Vec<Stride<'c>>,
    pub(super) outer_columns: Vec<Stride<'c>>,
    pub(super) nest: Vec<Stride<'c>>,
    pub(super) serial: Vec<Stride<'c>>,
    pub(super) constant: i64,
    pub(super) access: Access<'c>,
    /// Elements per load.
    pub(super) lanes: u32,
}

/// The elements of one load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Access<'c> {
    /// Consecutive iterations of the reduction, of one row or column.
    AlongK,
    /// Consecutive rows.
    AlongRows,
    /// Consecutive columns, as many as the accumulators have.
    AlongColumns(Reach<'c>),
}

impl Side<'_> {
    /// Whether the value differs between columns; else it is a scalar per row.
    pub(super) fn has_columns(&self) -> bool {
        !self.column.is(0)
    }
}

/// The stepped reduction, and the inputs along it.
#[derive(Clone, Debug)]
pub(super) struct Choice<'c> {
    /// Position of the stepped reduction.
    pub(super) stepped: usize,
    /// Iterations of it per pass.
    pub(super) step: i64,
    pub(super) sides: Vec<Side<'c>>,
}

/// Inputs of the choice.
pub(super) struct Setting<'c, 'a, 'm> {
    pub(super) evaluator: &'a Evaluator<'c, 'm>,
    pub(super) op: &'a TileOp<'c>,
    pub(super) axes: &'a Axes<'c>,
    pub(super) inputs: &'a [Input<'c>],
    pub(super) kernel: &'a FittedChoice,
    pub(super) tile: Tile,
    /// Elements per accumulator.
    pub(super) lanes: u32,
    /// Widest load.
    pub(super) widest: u32,
    /// Most iterations of all loops of an invocation.
    pub(super) most_iterations: i64,
}

/// In place of a stride that depends on the sizes: so far that all elements of a pass differ.
const FAR: i64 = 1_000_003;

/// Longest pass: its loads and products are unrolled.
const LONGEST_STEP: i64 = 256;

impl<'c> Setting<'c, '_, '_> {
    /// The cheapest choice; the innermost of equal ones. Passes are longer than in the kernel choice where there would be
    /// too many.
    pub(super) fn choose(&self) -> Choice<'c> {
        let mut step = self.kernel.reduction_step;
        loop {
            let choices = (0..self.axes.reductions.len()).map(|k| self.choice(k, step));
            let best = choices.rev().min_by_key(|c| self.cost(c)).expect("invariant: there is a reduction");
            if step >= LONGEST_STEP || self.iterations(&best) <= self.most_iterations {
                return best;
            }
            step *= 2;
        }
    }

    /// Iterations of an invocation's loops, as far as they are static.
    fn iterations(&self, choice: &Choice<'c>) -> i64 {
        let mut around = self.tile.row_passes * self.tile.column_passes;
        for coordinate in &self.axes.serial {
            around = around.saturating_mul(self.axes.extents[*coordinate].bound().unwrap_or(1).max(1));
        }
        let mut total = around;
        let others = self.axes.reductions.iter().enumerate().filter(|(r, _)| *r != choice.stepped);
        for (_, reduction) in others {
            around = around.saturating_mul(reduction.extent.bound().unwrap_or(1).max(1));
            total = total.saturating_add(around);
        }
        let passes = self.axes.reductions[choice.stepped].extent.bound().unwrap_or(1).max(1) / choice.step;
        total.saturating_add(around.saturating_mul(passes.max(1)))
    }

    fn choice(&self, stepped: usize, step: i64) -> Choice<'c> {
        let extent = self.axes.reductions[stepped].extent;
        let step = extent.exact().map_or(step, |e| step.min(e.max(1)));
        // Whole passes and the last, partial one consist of whole vectors.
        let span = match extent {
            Extent::Known(e) => gcd(e, step),
            Extent::Depends(size) if size.facts.divisor % step == 0 => step,
            Extent::Depends(_) => 1,
        };
        let sides = (0..self.inputs.len()).map(|i| self.side(i, stepped, step, span)).collect();
        Choice { stepped, step, sides }
    }

    fn side(&self, index: usize, stepped: usize, step: i64, span: i64) -> Side<'c> {
        let (axes, input) = (self.axes, &self.inputs[index]);
        let outer = self.op.outer.clone().unwrap_or_default();
        let along = |coordinate: Option<usize>| coordinate.map_or(Stride::ZERO, |c| input.strides[outer[c]]);
        let others = axes.reductions.iter().enumerate().filter(|(r, _)| *r != stepped);
        let all_along = |coordinates: &[usize]| coordinates.iter().map(|c| along(Some(*c))).collect::<Vec<_>>();
        let mut side = Side {
            operand: input.operand,
            slice: input.slice,
            row: along(axes.row),
            column: along(axes.column),
            k: axes.reductions[stepped].strides[index],
            outer_rows: all_along(&axes.outer_rows),
            outer_columns: all_along(&axes.outer_columns),
            nest: others.map(|(_, r)| r.strides[index]).collect(),
            serial: all_along(&axes.serial),
            constant: input.constant,
            access: Access::AlongK,
            lanes: 1,
        };
        (side.access, side.lanes) = self.access(&side, step, span);
        side
    }

    fn access(&self, side: &Side<'c>, step: i64, span: i64) -> (Access<'c>, u32) {
        let along_k = if side.k.is(1) { self.aligned(side, &[side.row, side.column, Stride::Known(span)]) } else { 1 };
        if side.has_columns() {
            let operand = &self.op.operands[side.operand];
            let reach = self.evaluator.reach(self.op, operand, side.slice, self.lanes);
            return match reach {
                Reach::Wide => (Access::AlongColumns(reach), self.lanes),
                _ if along_k > 1 => (Access::AlongK, along_k),
                _ => (Access::AlongColumns(reach), 1),
            };
        }
        if side.row.is(0) || along_k > 1 {
            return (Access::AlongK, along_k);
        }
        // Each lane takes a reduction iteration of the step: the subgroup must be as large.
        let lanes_reach = self.tile.shared.is_none_or(|size| i64::from(size) >= step);
        let is_one = self.axes.outer_rows.is_empty();
        let rows = if is_one { gcd(self.axes.rows().divisor(), self.tile.rows) } else { 1 };
        let along_rows = if side.row.is(1) { self.aligned(side, &[side.k, Stride::Known(rows)]) } else { 1 };
        if lanes_reach && (along_rows > 1 || !side.k.is(1)) {
            (Access::AlongRows, along_rows)
        } else {
            (Access::AlongK, 1)
        }
    }

    /// The widest load whose address stays aligned at these distances and along the loops around it.
    fn aligned(&self, side: &Side<'c>, distances: &[Stride<'c>]) -> u32 {
        let slice = &self.evaluator.model.slices[side.slice];
        let start = gcd(facts(slice.offset).divisor, self.evaluator.elements(slice.base));
        let all = distances
            .iter()
            .chain(&side.outer_rows)
            .chain(&side.outer_columns)
            .chain(&side.nest)
            .chain(&side.serial)
            .fold(gcd(start, side.constant), |g, d| gcd(g, d.divisor()));
        // Packed elements are accessed in whole words.
        let bytes = slice.element.element_size_bytes().unwrap_or(4);
        let fits = |lanes: u32| all % i64::from(lanes) == 0 && (u64::from(lanes) * bytes).is_multiple_of(4);
        [8, 4, 2].into_iter().find(|l| *l <= self.widest && fits(*l)).unwrap_or(1)
    }

    /// Cost of one iteration of the stepped reduction, in a thousandth of the unit.
    fn cost(&self, choice: &Choice<'c>) -> i64 {
        let tile = &self.tile;
        let loads =
            choice.sides.iter().map(|s| self.loads(s, choice.step) * (LOAD_COST + ELEMENT_COST * i64::from(s.lanes)));
        let results = self.op.outputs().len() as i64;
        let accumulators = tile.rows * tile.column_groups * i64::from(self.lanes) * results;
        (loads.sum::<i64>() + accumulators * ACCUMULATOR_COST + PASS_COST) * 1000 / choice.step
    }

    /// Loads per pass, those at equal addresses counted once.
    fn loads(&self, side: &Side<'c>, step: i64) -> i64 {
        let tile = &self.tile;
        let lanes = i64::from(side.lanes);
        let sharing = tile.shared.map_or(1, i64::from);
        let per_k = if side.k.is(0) { 1 } else { step / lanes.min(step) };
        match (side.access, side.has_columns()) {
            (Access::AlongRows, _) if tile.shared.is_some() => ceil_div(tile.rows, lanes),
            (Access::AlongRows, _) => ceil_div(tile.rows, lanes) * step,
            (Access::AlongK, false) if side.row.is(0) => per_k,
            (Access::AlongK, false) => ceil_div(tile.rows, sharing) * per_k,
            (Access::AlongK, true) => self.places(side) * i64::from(self.lanes) * per_k,
            (Access::AlongColumns(reach), _) => {
                let elements = if reach == Reach::Wide { 1 } else { i64::from(self.lanes) };
                let rows = if side.row.is(0) { 1 } else { tile.rows };
                let [row, column, k] = [side.row, side.column, side.k].map(|s| s.exact().unwrap_or(FAR));
                let mut addresses = BTreeSet::new();
                for (r, e) in (0..rows).flat_map(|r| (0..elements).map(move |e| (r, e))) {
                    addresses.extend((0..step).map(|q| r * row + e * column + q * k));
                }
                addresses.len() as i64 * tile.column_groups
            }
        }
    }

    /// Number of rows and column groups that differ for an input.
    fn places(&self, side: &Side<'c>) -> i64 {
        self.tile.column_groups * if side.row.is(0) { 1 } else { self.tile.rows }
    }
}
