//! The layout of a contraction's tile over the invocations of a workgroup, and the place of one of them.

use super::super::code::Code;
use super::super::stride::Stride;
use super::axes::Spread;
use monopour_ir::Value;

/// The layout of the tile over the invocations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tile {
    /// Invocations along the columns, which are the lanes of a subgroup if operands are shared.
    pub(super) threads_n: i64,
    /// Groups of invocations along the rows.
    pub(super) threads_m: i64,
    /// Rows of one invocation.
    pub(super) rows: i64,
    /// Column groups (of `lanes` columns) of one invocation.
    pub(super) column_groups: i64,
    /// Passes of all invocations over the rows, and over the columns.
    pub(super) row_passes: i64,
    pub(super) column_passes: i64,
    pub(super) shared: Option<u32>,
}

/// `a / b`, rounded up.
pub(super) fn ceil_div(a: i64, b: i64) -> i64 {
    (a + b - 1) / b
}

/// A position as a value plus a constant, which makes equal addresses visible.
#[derive(Clone, Copy)]
pub(super) struct Spot<'c> {
    pub(super) at: Value<'c>,
    pub(super) plus: i64,
}

impl<'c> Spot<'c> {
    /// This many strides on.
    pub(super) fn on(self, code: &mut Code<'c, '_>, stride: &Stride<'c>, strides: i64) -> Self {
        match stride.times(code, strides) {
            Stride::Known(distance) => Self { plus: self.plus + distance, ..self },
            Stride::Depends(distance) => Self { at: code.add(self.at, distance), ..self },
        }
    }
}

/// Position of an invocation in the tile.
pub(super) struct Place<'c> {
    /// Invocation index in the workgroup, and the number of invocations.
    pub(super) linear: Value<'c>,
    pub(super) invocations: i64,
    /// Lane along the columns.
    pub(super) lane: Value<'c>,
    /// Rows of the invocation: the first one, and each one, clamped.
    pub(super) first_row: Value<'c>,
    pub(super) rows: Vec<Spot<'c>>,
    /// Whether each row is in range; `None`: statically.
    pub(super) row_guards: Vec<Option<Value<'c>>>,
    /// First column of each group, clamped, and whether it is in range.
    pub(super) columns: Vec<Spot<'c>>,
    pub(super) column_guards: Vec<Option<Value<'c>>>,
    /// The coordinates of each row and of each column where several are merged; else none.
    pub(super) row_spreads: Vec<Spread<'c>>,
    pub(super) column_spreads: Vec<Spread<'c>>,
    /// Coordinates of the result; rows and columns are still 0.
    pub(super) coordinates: Vec<Value<'c>>,
}

impl<'c> Place<'c> {
    /// Whether a point, by rows, is in range; `None` if all are.
    pub(super) fn guard(&self, code: &mut Code<'c, '_>, point: usize) -> Option<Value<'c>> {
        let groups = self.columns.len();
        code.both(self.row_guards[point / groups], self.column_guards[point % groups])
    }
}
