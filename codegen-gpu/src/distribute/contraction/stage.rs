//! Stages inputs in workgroup memory: the invocations copy them together before each pass, and all read the copies.
//!
//! Before: every invocation loads its rows and columns, which its neighbours load too.
//! After: `barrier; copy of rows x step and step x columns; barrier;` and loads from the copies, per pass.
//! Requires: one pass of rows and of columns over the tile, so that a copy serves the whole workgroup.
//! Ensures: a copy has the layout of its loads: vectors along the reduction, or along the rows or columns.

use super::super::code::Code;
use super::super::evaluate::{Evaluator, Reach};
use super::super::stride::Stride;
use super::Plan;
use super::sides::{Access, Side};
use super::tile::{Tile, ceil_div};
use super::write::Place;
use monopour_ir::typed::{gpu::AddressSpace, memref};
use monopour_ir::{Diagnostics, Type, Value};

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

/// The copy of an input, if invocations share its values.
pub(super) fn stage<'c>(side: &Side<'c>, tile: &Tile, lanes: u32, step: i64) -> Option<Stage<'c>> {
    let of_rows = !side.has_columns() && !side.row.is(0);
    let of_columns = side.has_columns() && side.row.is(0);
    if side.k.is(0) || !(of_rows || of_columns) {
        return None;
    }
    let width = i64::from(lanes);
    let positions = if of_rows { tile.threads_m * tile.rows } else { tile.threads_n * tile.column_groups * width };
    let (position_stride, k, elements) = match side.access {
        Access::AlongK => {
            // Padded by one vector per row where invocations of several rows load at once: the rows begin in other
            // banks.
            let is_one_row = of_rows && tile.threads_n * i64::from(side.lanes) >= BANKS;
            let stride = step + if is_one_row { 0 } else { i64::from(side.lanes) };
            (stride, 1, positions * stride)
        }
        _ => (1, positions, positions * step),
    };
    let along = |stride: Stride<'c>| if stride.is(0) { stride } else { Stride::Known(position_stride) };
    let access = match side.access {
        Access::AlongColumns(Reach::Strided(_)) => Access::AlongColumns(Reach::Strided(Stride::Known(1))),
        other => other,
    };
    let copy = Side {
        row: along(side.row),
        column: along(side.column),
        k: Stride::Known(k),
        nest: vec![Stride::ZERO; side.nest.len()],
        serial: vec![Stride::ZERO; side.serial.len()],
        constant: 0,
        access,
        ..side.clone()
    };
    Some(Stage { side: copy, elements, positions })
}

/// Workgroup memory for a copy.
pub(super) fn buffer<'c>(
    code: &mut Code<'c, '_>,
    evaluator: &Evaluator<'c, '_>,
    stage: &Stage<'c>,
) -> Result<Value<'c>, Diagnostics> {
    let element = evaluator.model.slices[stage.side.slice].element;
    let ty = Type::memref(&[stage.elements], element, AddressSpace::Workgroup.to_attr(code.cx));
    Ok(code.create(memref::alloca(code.loc, &[], ty))?.result(0))
}

/// Context of filling a copy.
pub(super) struct Fill<'c, 'p> {
    pub(super) stage: &'p Stage<'c>,
    pub(super) source: &'p Side<'c>,
    pub(super) buffer: Value<'c>,
    /// First element of the input for this tile.
    pub(super) base: Value<'c>,
}

impl<'c> Fill<'c, '_> {
    /// Copies the values of one pass: all invocations take vectors in turn.
    pub(super) fn write(
        &self,
        code: &mut Code<'c, '_>,
        evaluator: &Evaluator<'c, '_>,
        plan: &Plan<'c, '_>,
        place: &Place<'c>,
        (part, k): (Value<'c>, Value<'c>),
    ) -> Result<(), Diagnostics> {
        let (step, lanes) = (plan.choice.step, i64::from(self.source.lanes));
        let along_k = self.source.access == Access::AlongK;
        // Vectors per row of the copy, and its rows.
        let (per_row, rows) =
            if along_k { (step / lanes, self.stage.positions) } else { (self.stage.positions / lanes, step) };
        let total = per_row * rows;
        let invocations = place.invocations;
        for round in 0..ceil_div(total, invocations) {
            let item = code.add_const(place.linear, round * invocations);
            let whole = (round + 1) * invocations <= total;
            let end = code.c(total);
            let guard = (!whole).then(|| code.less(item, end));
            code.guarded(guard, |code| {
                let per_row = code.c(per_row);
                let (row, vector) = (code.div(item, per_row), code.rem(item, per_row));
                let vector = code.mul_const(vector, lanes);
                let (position, q) = if along_k { (row, vector) } else { (vector, row) };
                self.copy(code, evaluator, plan, (part, k), (position, q))
            })?;
        }
        Ok(())
    }

    /// One vector: loads are clamped into the input.
    fn copy(
        &self,
        code: &mut Code<'c, '_>,
        evaluator: &Evaluator<'c, '_>,
        plan: &Plan<'c, '_>,
        (part, k): (Value<'c>, Value<'c>),
        (position, q): (Value<'c>, Value<'c>),
    ) -> Result<(), Diagnostics> {
        let (source, copy) = (self.source, &self.stage.side);
        let lanes = i64::from(source.lanes);
        let along_k = source.access == Access::AlongK;
        let (extent, source_stride, copy_stride) = match source.has_columns() {
            true => (plan.columns, source.column, copy.column),
            false => (plan.rows, source.row, copy.row),
        };
        let mut from = position;
        if extent.exact() != Some(self.stage.positions) {
            let end = extent.value(code);
            let last = code.add_const(end, if along_k { -1 } else { -lanes });
            from = code.min(position, last);
        }
        let mut from_k = code.add(k, q);
        let reduction = plan.stepped();
        if reduction.divisor() % plan.choice.step != 0 {
            let end = reduction.value(code);
            let last = code.add_const(end, if along_k { -lanes } else { -1 });
            from_k = code.min(from_k, last);
        }
        let mut at = code.add(self.base, part);
        for (value, stride) in [(from, source_stride), (from_k, source.k)] {
            let scaled = stride.scale(code, value);
            at = code.add(at, scaled);
        }
        let reach = if lanes == 1 { Reach::Uniform } else { Reach::Wide };
        let value = evaluator.load(code, source.slice, at, reach, source.lanes);
        let to = copy_stride.scale(code, position);
        let to_k = copy.k.scale(code, q);
        let to = code.add(to, to_k);
        code.store(value, self.buffer, to)
    }
}
