//! A planned reduction, as data.

use super::super::groups::{Fused, Group};
use super::super::model::Base;
use super::axes::{Axes, Extent};
use super::sides::Choice;
use super::stage::Stage;
use super::tile::Tile;
use monopour_contract::KernelClass;

/// A planned reduction.
pub(super) struct Plan<'c, 'm> {
    /// Contraction or convolution, for the report.
    pub(super) class: KernelClass,
    /// Groups that compute inputs in local buffers, and these buffers.
    pub(super) prologue: Vec<Group<'c>>,
    pub(super) padded: Vec<Base>,
    pub(super) fused: Fused<'c, 'm>,
    pub(super) axes: Axes<'c>,
    pub(super) rows: Extent<'c>,
    pub(super) columns: Extent<'c>,
    pub(super) choice: Choice<'c>,
    /// Lanes of accesses along the columns.
    pub(super) lanes: u32,
    pub(super) tile: Tile,
    /// Whether the results are accumulated one after the other: registers are few, and loads from the caches near.
    pub(super) in_turn: bool,
    /// Per side of the choice.
    pub(super) stages: Vec<Option<Stage<'c>>>,
}

impl<'c> Plan<'c, '_> {
    pub(super) fn rows_exact(&self) -> bool {
        self.rows.exact() == Some(self.tile.threads_m * self.tile.rows * self.tile.row_passes)
    }
    pub(super) fn columns_exact(&self) -> bool {
        let t = &self.tile;
        self.columns.exact() == Some(t.threads_n * t.column_groups * t.column_passes * i64::from(self.lanes))
    }
    pub(super) fn stepped(&self) -> Extent<'c> {
        self.axes.reductions[self.choice.stepped].extent
    }
}
