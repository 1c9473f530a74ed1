//! Loads of a pass, and the factors of each row and column.

use super::super::code::Code;
use super::super::evaluate::{Evaluator, Reach, load_from};
use super::super::stride::Stride;
use super::axes::Extent;
use super::axes::Spread;
use super::plan::Plan;
use super::sides::{Access, Side};
use super::tile::{Place, Spot, ceil_div};
use monopour_ir::Value;

/// The loads of one input: addresses without the terms of the reductions.
pub(super) struct Stream<'c, 'p> {
    side: &'p Side<'c>,
    spots: Vec<Spot<'c>>,
    /// Spots of one row.
    per_row: usize,
    lane: Value<'c>,
    /// The copy in workgroup memory.
    copy: Option<Value<'c>>,
}

/// Loaded values of one pass: `values[spot][load]`.
pub(super) struct Loaded<'c> {
    values: Vec<Vec<Value<'c>>>,
    /// For an input of columns alone: `[group][q]`.
    columns: Vec<Vec<Value<'c>>>,
}

impl<'c, 'p> Stream<'c, 'p> {
    pub(super) fn new(
        code: &mut Code<'c, '_>,
        evaluator: &Evaluator<'c, '_>,
        plan: &Plan<'c, '_>,
        side: &'p Side<'c>,
        place: &Place<'c>,
        copy: Option<Value<'c>>,
    ) -> Self {
        let base = if copy.is_some() { code.c(0) } else { base(code, evaluator, plan, side, place) };
        let none = [Spot { at: code.c(0), plus: 0 }];
        let rows = match (&side.outer_rows[..], side.row.is(0)) {
            (_, true) => none.to_vec(),
            // A copy has all rows of the tile, those beyond the slice as well.
            ([], false) if copy.is_some() && side.access == Access::AlongRows => {
                let lanes = i64::from(side.lanes);
                let first = |r| Spot { at: place.first_row, plus: r * lanes };
                (0..plan.tile.rows / lanes).map(|r| scaled(code, &side.row, &first(r))).collect()
            }
            ([], false) => rows(code, plan, side, place).iter().map(|row| scaled(code, &side.row, row)).collect(),
            (outer, false) => spread(code, &place.row_spreads, (side.row, outer)),
        };
        let columns = match (&side.outer_columns[..], side.has_columns()) {
            (_, false) => none.to_vec(),
            ([], true) => place.columns.iter().map(|column| scaled(code, &side.column, column)).collect(),
            (outer, true) => spread(code, &place.column_spreads, (side.column, outer)),
        };
        let split = if side.has_columns() && side.access == Access::AlongK { i64::from(plan.lanes) } else { 1 };
        let mut spots = Vec::new();
        for (row, column) in rows.iter().flat_map(|r| columns.iter().map(move |c| (r, c))) {
            let at = code.add(base, row.at);
            let at = code.add(at, column.at);
            let at = Spot { at, plus: side.constant + row.plus + column.plus };
            for lane in 0..split {
                spots.push(at.on(code, &side.column, lane));
            }
        }
        Self { side, spots, per_row: columns.len() * split as usize, lane: place.lane, copy }
    }

    /// Iterations of a load.
    pub(super) fn iterations(&self) -> i64 {
        if self.side.access == Access::AlongK { i64::from(self.side.lanes) } else { 1 }
    }

    /// Loads the operands of `count` iterations from `k` on; `part` is the other reductions' term of the address.
    pub(super) fn load(
        &self,
        code: &mut Code<'c, '_>,
        evaluator: &Evaluator<'c, '_>,
        plan: &Plan<'c, '_>,
        part: Value<'c>,
        k: Value<'c>,
        count: i64,
    ) -> Loaded<'c> {
        let side = self.side;
        let lanes = i64::from(side.lanes);
        // Iterations at which a load starts; lane q of a subgroup takes those of k + q.
        let lane_takes = side.access == Access::AlongRows && plan.tile.shared.is_some();
        let starts: Vec<i64> = match side.access {
            _ if side.k.is(0) || lane_takes => vec![0],
            Access::AlongK => (0..count / lanes).map(|t| t * lanes).collect(),
            _ => (0..count).collect(),
        };
        let k = if lane_takes { self.lane_k(code, plan, k, count) } else { k };
        let along = side.k.scale(code, k);
        let along = code.add(part, along);
        let reach = match side.access {
            Access::AlongColumns(reach) => reach,
            _ if lanes == 1 => Reach::Uniform,
            _ => Reach::Wide,
        };
        let width = if matches!(side.access, Access::AlongColumns(_)) { plan.lanes } else { side.lanes };
        let mut one = |spot: &Spot<'c>, start: i64| {
            let at = Spot { at: code.add(spot.at, along), ..*spot }.on(code, &side.k, start);
            let at = code.add_const(at.at, at.plus);
            match self.copy {
                Some(buffer) => load_from(code, buffer, true, at, (reach, width)),
                None => evaluator.load(code, side.slice, at, reach, width),
            }
        };
        let values: Vec<Vec<Value>> =
            self.spots.iter().map(|spot| starts.iter().map(|start| one(spot, *start)).collect()).collect();
        let mut loaded = Loaded { values, columns: vec![] };
        if side.has_columns() && side.row.is(0) {
            loaded.columns = (0..plan.tile.column_groups as usize)
                .map(|g| (0..count).map(|q| self.of_columns(code, plan, &loaded, 0, g, q as usize)).collect())
                .collect();
        }
        loaded
    }

    /// The iteration whose values a lane loads; lanes beyond the step load an existing one.
    fn lane_k(&self, code: &mut Code<'c, '_>, plan: &Plan<'c, '_>, k: Value<'c>, count: i64) -> Value<'c> {
        let at = code.add(k, self.lane);
        if count >= i64::from(plan.tile.shared.unwrap_or(1)) {
            return at;
        }
        let extent = plan.stepped().value(code);
        let last = code.add_const(extent, -1);
        code.min(at, last)
    }

    /// The operand at a row, a column group and an iteration of the pass.
    pub(super) fn factor(
        &self,
        code: &mut Code<'c, '_>,
        plan: &Plan<'c, '_>,
        loaded: &Loaded<'c>,
        row: usize,
        group: usize,
        q: usize,
    ) -> Value<'c> {
        match (self.side.has_columns(), self.side.row.is(0)) {
            (true, true) => loaded.columns[group][q],
            (true, false) => self.of_columns(code, plan, loaded, row, group, q),
            (false, _) => self.of_row(code, plan, loaded, row, q),
        }
    }

    fn of_columns(
        &self,
        code: &mut Code<'c, '_>,
        plan: &Plan<'c, '_>,
        loaded: &Loaded<'c>,
        row: usize,
        group: usize,
        q: usize,
    ) -> Value<'c> {
        let first = row * self.per_row;
        if self.side.access != Access::AlongK {
            let loads = &loaded.values[first + group];
            return loads[q.min(loads.len() - 1)];
        }
        let (width, per_group) = (self.side.lanes as usize, plan.lanes as usize);
        let elements: Vec<Value> = (0..per_group)
            .map(|lane| {
                let loads = &loaded.values[first + group * per_group + lane];
                code.extract(loads[q / width], (q % width) as u32)
            })
            .collect();
        code.vector_of(&elements)
    }

    fn of_row(
        &self,
        code: &mut Code<'c, '_>,
        plan: &Plan<'c, '_>,
        loaded: &Loaded<'c>,
        row: usize,
        q: usize,
    ) -> Value<'c> {
        let width = self.side.lanes as usize;
        let pick = |code: &mut Code<'c, '_>, loads: &[Value<'c>], position: usize| {
            // An input that is invariant along the reduction has one load.
            code.extract(loads[(position / width).min(loads.len() - 1)], (position % width) as u32)
        };
        let values = &loaded.values;
        match (self.side.access, plan.tile.shared) {
            _ if self.side.row.is(0) => pick(code, &values[0], q),
            (Access::AlongK, None) => pick(code, &values[row], q),
            (Access::AlongK, Some(size)) => {
                let value = pick(code, &values[row / size as usize], q);
                code.shuffle(value, row as u32 % size, size)
            }
            (_, None) => {
                let loads = &values[row / width];
                code.extract(loads[q.min(loads.len() - 1)], (row % width) as u32)
            }
            (_, Some(size)) => {
                let value = code.extract(values[row / width][0], (row % width) as u32);
                code.shuffle(value, q as u32, size)
            }
        }
    }
}

/// The elements up to a position along one coordinate.
fn scaled<'c>(code: &mut Code<'c, '_>, stride: &Stride<'c>, position: &Spot<'c>) -> Spot<'c> {
    let at = stride.scale(code, position.at);
    Spot { at, plus: 0 }.on(code, stride, position.plus)
}

/// The elements up to positions along merged coordinates.
fn spread<'c>(
    code: &mut Code<'c, '_>,
    positions: &[Spread<'c>],
    (stride, outer): (Stride<'c>, &[Stride<'c>]),
) -> Vec<Spot<'c>> {
    let strides = || [stride].into_iter().chain(outer.iter().rev().copied());
    positions.iter().map(|position| Spot { at: position.scale(code, strides()), plus: 0 }).collect()
}

/// The first element of an input for a tile, without its constant term.
fn base<'c>(
    code: &mut Code<'c, '_>,
    evaluator: &Evaluator<'c, '_>,
    plan: &Plan<'c, '_>,
    side: &Side<'c>,
    place: &Place<'c>,
) -> Value<'c> {
    let mut base = evaluator.model.slices[side.slice].offset;
    for (coordinate, stride) in plan.axes.serial.iter().zip(&side.serial) {
        let part = stride.scale(code, place.coordinates[*coordinate]);
        base = code.add(base, part);
    }
    base
}

/// As [`base`], with the constant term.
pub(super) fn first<'c>(
    code: &mut Code<'c, '_>,
    evaluator: &Evaluator<'c, '_>,
    plan: &Plan<'c, '_>,
    side: &Side<'c>,
    place: &Place<'c>,
) -> Value<'c> {
    let base = base(code, evaluator, plan, side, place);
    code.add_const(base, side.constant)
}

/// The rows at which loads of an input start.
fn rows<'c>(code: &mut Code<'c, '_>, plan: &Plan<'c, '_>, side: &Side<'c>, place: &Place<'c>) -> Vec<Spot<'c>> {
    if side.has_columns() {
        return place.rows.clone();
    }
    let last = |code: &mut Code<'c, '_>, extent: Extent<'c>, count: i64| {
        let extent = extent.value(code);
        code.add_const(extent, -count)
    };
    if side.access == Access::AlongRows {
        // A vector beyond the slice is clamped: its results are not stored.
        let lanes = i64::from(side.lanes);
        return spots(code, place.first_row, ceil_div(plan.tile.rows, lanes), lanes, plan.rows_exact(), |code| {
            last(code, plan.rows, lanes)
        });
    }
    let Some(size) = plan.tile.shared.map(i64::from) else { return place.rows.clone() };
    let first = code.add(place.first_row, place.lane);
    let fits = plan.rows_exact() && plan.tile.rows % size == 0;
    spots(code, first, ceil_div(plan.tile.rows, size), size, fits, |code| last(code, plan.rows, 1))
}

/// `count` rows, `distance` apart; clamped unless they are in range.
fn spots<'c>(
    code: &mut Code<'c, '_>,
    first: Value<'c>,
    count: i64,
    distance: i64,
    fits: bool,
    last: impl FnOnce(&mut Code<'c, '_>) -> Value<'c>,
) -> Vec<Spot<'c>> {
    if fits {
        return (0..count).map(|r| Spot { at: first, plus: r * distance }).collect();
    }
    let last = last(code);
    (0..count)
        .map(|r| {
            let row = code.add_const(first, r * distance);
            Spot { at: code.min(row, last), plus: 0 }
        })
        .collect()
}
