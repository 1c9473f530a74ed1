//! How long a driver may take to compile a kernel that then runs faster.

use crate::deviation::{Deviation, Scale};
use crate::dispatch::Dispatch;
use crate::linalg::{self, known};
use monopour_contract::KernelClass;
use monopour_ir::Op;
use monopour_program::GpuDescription;

/// Longest rows of which a subgroup holds twice as many as the cost model says.
const MAX_ROW: i64 = 1_024;

/// The effort that kernels are worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Effort {
    /// A driver compiles each kernel in at most about half a second.
    #[default]
    Default,
    /// Up to about twice as long where a kernel is faster for it: on software adapters, more rows at once of an attention, and of what
    /// reads the same row for each, as a layer norm its scale.
    Max,
}

impl Effort {
    /// The kernel beside the cost model's default that a dispatch takes.
    pub(crate) fn deviation(self, dispatch: &Dispatch, gpu: &GpuDescription) -> Deviation {
        let length = || dispatch.inner_extents().iter().map(|e| known(*e)).product::<i64>();
        let is_worth_it = match dispatch.class() {
            KernelClass::Row => length() <= MAX_ROW && has_shared_row(dispatch),
            KernelClass::Attention => true,
            _ => false,
        };
        match self {
            Effort::Max if gpu.is_cpu_adapter() && is_worth_it => {
                Deviation { size: Scale::More, ..Deviation::default() }
            }
            _ => Deviation::default(),
        }
    }
}

/// Whether an op of the dispatch reads a tensor by the elements of a row alone.
fn has_shared_row(dispatch: &Dispatch) -> bool {
    let rows = dispatch.row_loops().unwrap_or(0);
    let is_shared = |dims: &[usize]| !dims.is_empty() && dims.iter().all(|d| *d >= rows);
    let shares = |op: Op| {
        let maps = linalg::indexing_maps(op).unwrap_or_default();
        let inputs = maps.into_iter().take(linalg::num_inputs(op));
        inputs.filter_map(|map| map.dim_positions()).any(|dims| is_shared(&dims))
    };
    dispatch.ops.iter().any(|(op, _)| shares(*op))
}
