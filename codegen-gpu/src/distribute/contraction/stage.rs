//! Stages inputs in workgroup memory: the invocations copy them together before each pass, and all read the copies.
//!
//! Before: every invocation loads its rows and columns, which its neighbours load too.
//! After: `barrier; copy of rows x step and step x columns; barrier;` and loads from the copies, per pass. Elements of a word are
//! loaded one pass ahead, into registers.
//! Requires: one pass of rows and of columns over the tile, so that a copy serves the whole workgroup.
//! Ensures: a copy of elements of a word is read in vectors of rows or of columns, whatever lies side by side in the input; other
//! ones have the layout of their loads.

use super::super::code::Code;
use super::super::evaluate::{Evaluator, Reach};
use super::super::stride::Stride;
use super::plan::Plan;
use super::sides::{Access, Side};
use super::tile::{Place, Tile, ceil_div};
use monopour_ir::{Diagnostics, Value};

/// Banks of workgroup memory, of a word each, on GPUs of every vendor.
const BANKS: i64 = 32;

/// The copy of an input.
#[derive(Clone, Debug)]
pub(super) struct Stage<'c> {
    /// The input with the copy's layout.
    pub(super) side: Side<'c>,
    /// Elements of the copy.
    pub(super) elements: i64,
    /// Rows or columns of the copy.
    positions: i64,
}

/// The copy of an input, if invocations share its values. `is_word`: of elements of a word.
pub(super) fn stage<'c>(side: &Side<'c>, tile: &Tile, lanes: u32, step: i64, is_word: bool) -> Option<Stage<'c>> {
    let of_rows = !side.has_columns() && !side.row.is(0);
    let of_columns = side.has_columns() && side.row.is(0);
    if side.k.is(0) || !(of_rows || of_columns) {
        return None;
    }
    let width = i64::from(lanes);
    let positions = if of_rows { tile.threads_m * tile.rows } else { tile.threads_n * tile.column_groups * width };
    let across = across(side, tile, lanes).filter(|_| is_word);
    let (position_stride, k) = match (side.access, across) {
        // The next iteration's elements begin in other banks.
        (Access::AlongK, Some(_)) => (1, positions + 4),
        (Access::AlongK, None) => {
            // Padded by one vector per row where invocations of several rows load at once: the rows begin in other
            // banks.
            let is_one_row = of_rows && tile.threads_n * i64::from(side.lanes) >= BANKS;
            (step + if is_one_row { 0 } else { i64::from(side.lanes) }, 1)
        }
        _ => (1, positions),
    };
    let elements = if k == 1 { positions * position_stride } else { k * step };
    let along = |stride: Stride<'c>| if stride.is(0) { stride } else { Stride::Known(position_stride) };
    let (access, lanes) = match (side.access, across) {
        (_, Some(across)) => across,
        (Access::AlongColumns(Reach::Strided(_)), None) => {
            (Access::AlongColumns(Reach::Strided(Stride::Known(1))), side.lanes)
        }
        (other, None) => (other, side.lanes),
    };
    let copy = Side {
        row: along(side.row),
        column: along(side.column),
        k: Stride::Known(k),
        outer_rows: vec![],
        outer_columns: vec![],
        nest: vec![Stride::ZERO; side.nest.len()],
        serial: vec![Stride::ZERO; side.serial.len()],
        constant: 0,
        access,
        lanes,
        ..side.clone()
    };
    Some(Stage { side: copy, elements, positions })
}

/// Loads of vectors of rows or of columns from a copy; `None`: an invocation has no whole ones.
fn across<'c>(side: &Side<'c>, tile: &Tile, lanes: u32) -> Option<(Access<'c>, u32)> {
    if side.has_columns() {
        return (lanes > 1).then_some((Access::AlongColumns(Reach::Wide), lanes));
    }
    (tile.rows % 4 == 0).then_some((Access::AlongRows, 4))
}

/// Workgroup memory for a copy.
pub(super) fn buffer<'c>(
    code: &mut Code<'c, '_>,
    evaluator: &Evaluator<'c, '_>,
    stage: &Stage<'c>,
) -> Result<Value<'c>, Diagnostics> {
    let element = evaluator.model.slices[stage.side.slice].element;
    code.workgroup_buffer(code.loc, element, stage.elements)
}

/// The vectors that an invocation copies in each pass; the addresses without the terms of the reductions.
pub(super) struct Fill<'c, 'p> {
    source: &'p Side<'c>,
    buffer: Value<'c>,
    items: Vec<Item<'c>>,
    /// The distance in the copy between the elements of a vector, if these are stored alone.
    apart: Option<i64>,
}

/// A vector of a copy.
struct Item<'c> {
    /// Where it lies in the input, at the start of the reduction, and in the copy.
    from: Value<'c>,
    to: Value<'c>,
    /// Iteration of the pass.
    q: Value<'c>,
    /// Whether there is one for this invocation; `None`: statically.
    guard: Option<Value<'c>>,
}

impl<'c, 'p> Fill<'c, 'p> {
    /// All invocations take vectors in turn; those without one load the last one again. `base` is the first element of the
    /// input for this tile.
    pub(super) fn new(
        code: &mut Code<'c, '_>,
        plan: &Plan<'c, '_>,
        place: &Place<'c>,
        (stage, source): (&Stage<'c>, &'p Side<'c>),
        (base, buffer): (Value<'c>, Value<'c>),
    ) -> Self {
        let (step, lanes) = (plan.choice.step, i64::from(source.lanes));
        let along_k = source.access == Access::AlongK;
        // Vectors per row of the copy, and its rows.
        let (per_row, rows) = if along_k { (step / lanes, stage.positions) } else { (stage.positions / lanes, step) };
        let is_turned = along_k && stage.side.access != Access::AlongK;
        let total = per_row * rows;
        let invocations = place.invocations;
        let mut items = vec![];
        for round in 0..ceil_div(total, invocations) {
            let mut item = code.add_const(place.linear, round * invocations);
            let mut guard = None;
            if (round + 1) * invocations > total {
                let end = code.c(total);
                guard = Some(code.less(item, end));
                let last = code.c(total - 1);
                item = code.min(item, last);
            }
            let (row, vector) = place_of(code, item, (rows, per_row), if is_turned { 8 / lanes } else { per_row });
            let vector = code.mul_const(vector, lanes);
            let (position, q) = if along_k { (row, vector) } else { (vector, row) };
            let at = position_in(code, plan, (stage, source), position);
            let from = code.add(base, at);
            let copy = &stage.side;
            let to = if source.has_columns() { copy.column } else { copy.row }.scale(code, position);
            let to_k = copy.k.scale(code, q);
            items.push(Item { from, to: code.add(to, to_k), q, guard });
        }
        let apart = match is_turned {
            true => stage.side.k.exact(),
            false => (source.lanes != stage.side.lanes).then_some(1),
        };
        Self { source, buffer, items, apart }
    }

    /// Loads the vectors of the pass at `k`; `part` is the other reductions' term of the address. Those of the last pass, which
    /// is not whole, are clamped into the input.
    pub(super) fn load(
        &self,
        code: &mut Code<'c, '_>,
        evaluator: &Evaluator<'c, '_>,
        plan: &Plan<'c, '_>,
        (part, k): (Value<'c>, Value<'c>),
        is_whole: bool,
    ) -> Vec<Value<'c>> {
        let source = self.source;
        let lanes = i64::from(source.lanes);
        let reach = if lanes == 1 { Reach::Uniform } else { Reach::Wide };
        let most = if source.access == Access::AlongK { -lanes } else { -1 };
        let along = source.k.scale(code, k);
        let uniform = code.add(part, along);
        let mut one = |item: &Item<'c>| {
            // The part that differs between invocations is the same in all whole passes.
            let (own, uniform) = if is_whole {
                (source.k.scale(code, item.q), uniform)
            } else {
                let end = plan.stepped().value(code);
                let last = code.add_const(end, most);
                let from_k = code.add(k, item.q);
                let from_k = code.min(from_k, last);
                (source.k.scale(code, from_k), part)
            };
            let own = code.add(item.from, own);
            let at = code.add(own, uniform);
            evaluator.load(code, source.slice, at, reach, source.lanes)
        };
        self.items.iter().map(&mut one).collect()
    }

    /// Stores them to the copy.
    pub(super) fn store(&self, code: &mut Code<'c, '_>, values: &[Value<'c>]) -> Result<(), Diagnostics> {
        for (item, value) in self.items.iter().zip(values) {
            code.guarded(item.guard, |code| self.store_one(code, item, *value))?;
        }
        Ok(())
    }

    fn store_one(&self, code: &mut Code<'c, '_>, item: &Item<'c>, value: Value<'c>) -> Result<(), Diagnostics> {
        let Some(apart) = self.apart else { return code.store(value, self.buffer, item.to) };
        for lane in 0..self.source.lanes {
            let element = code.extract(value, lane);
            let to = code.add_const(item.to, i64::from(lane) * apart);
            code.store(element, self.buffer, to)?;
        }
        Ok(())
    }

    /// Vectors of a pass.
    pub(super) fn count(&self) -> usize {
        self.items.len()
    }

    /// Elements of a pass in the registers of an invocation.
    pub(super) fn held(&self) -> usize {
        self.items.len() * self.source.lanes as usize
    }
}

/// The row of the vector `item` of `rows` of `per_row` each, and its position there: `side_by_side` of them, then those of
/// the next row, as far as they divide a row. Eight words of a row are a sector of memory, and in a turned copy lie in
/// other banks than their neighbours in the next rows.
fn place_of<'c>(
    code: &mut Code<'c, '_>,
    item: Value<'c>,
    (rows, per_row): (i64, i64),
    side_by_side: i64,
) -> (Value<'c>, Value<'c>) {
    let width = code.c(if per_row % side_by_side == 0 { side_by_side } else { per_row });
    let (line, at) = (code.div(item, width), code.rem(item, width));
    if width.constant_int() == Some(per_row) {
        return (line, at);
    }
    let rows = code.c(rows);
    let (block, row) = (code.div(line, rows), code.rem(line, rows));
    let first = code.mul(block, width);
    (row, code.add(first, at))
}

/// The elements from a tile's first to a row or column of a copy, clamped into the input.
fn position_in<'c>(
    code: &mut Code<'c, '_>,
    plan: &Plan<'c, '_>,
    (stage, source): (&Stage<'c>, &Side<'c>),
    position: Value<'c>,
) -> Value<'c> {
    let (extent, stride) = if source.has_columns() { (plan.columns, source.column) } else { (plan.rows, source.row) };
    let mut from = position;
    let width = if source.access == Access::AlongK { 1 } else { i64::from(source.lanes) };
    if extent.exact() != Some(stage.positions) {
        let end = extent.value(code);
        let last = code.add_const(end, -width);
        from = code.min(position, last);
    }
    let axes = &plan.axes;
    let (last, outer, outer_strides) = match source.has_columns() {
        true => (axes.column, &axes.outer_columns, &source.outer_columns),
        false => (axes.row, &axes.outer_rows, &source.outer_rows),
    };
    let Some(last) = last.filter(|_| !outer.is_empty()) else { return stride.scale(code, from) };
    let strides = [stride].into_iter().chain(outer_strides.iter().rev().copied());
    axes.split(code, (outer, last), from, width).scale(code, strides)
}
