//! The layout of a contraction's tile over the invocations of a workgroup.

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
