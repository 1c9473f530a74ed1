//! The choice for rows: reductions along them, and matrices times a vector, whose rows are contiguous, on hardware.
//!
//! A team of invocations reduces a row, or several in turn: a subgroup where its size is known, by shuffles, else a workgroup.

use crate::deviation::Deviation;
use crate::dispatch::Dispatch;
use crate::kernel::common_width;
use crate::linalg::{self, Loops, known};
use crate::products;
use monopour_contract::{KernelChoice, KernelClass, Sharing};
use monopour_ir::{DYNAMIC, Op};
use monopour_program::GpuDescription;

/// Rows of a matrix that fill a device by a subgroup each, and most rows of one subgroup.
const MANY_ROWS: i64 = 1_024;
const MAX_HELD_ROWS: i64 = 4;
/// Invocations of a workgroup that reduces rows, where those of the cost model are not taken.
const LEAST_INVOCATIONS: i64 = 64;
const MAX_INVOCATIONS: i64 = 256;

/// Whole rows: one subgroup per row where its size is known, else one workgroup.
pub(crate) fn choose(
    dispatch: &Dispatch,
    loops: &Loops,
    gpu: &GpuDescription,
    by: Deviation,
) -> (Vec<i64>, KernelChoice) {
    let rank = dispatch.row_loops().expect("invariant: the class says that they are rows");
    let rows = known(loops.extents[..rank].iter().map(|e| known(*e)).product());
    let length: i64 = dispatch.inner_extents().iter().map(|e| known(*e)).product();
    let inner = dispatch.inner_extents().last().copied().unwrap_or(1);
    let (team, width) = row_team(rows, (length, inner), gpu);
    let team = team.deviating(by);
    let mut tile = vec![1; rank];
    if let (Some(last), Some(extent)) = (tile.last_mut(), loops.extents[..rank].last()) {
        *last = (team.rows * team.held).clamp(1, known(*extent));
    }
    (tile, row_choice(&team, width))
}

/// The invocations of a workgroup that reduces rows.
struct Team {
    invocations: i64,
    /// Rows that are reduced side by side, and by one team.
    rows: i64,
    held: i64,
    /// The subgroup size, where partial results pass by shuffles.
    subgroup: Option<i64>,
}

impl Team {
    /// Other numbers of rows of one team, and of teams of subgroups in a workgroup or of invocations of one for a row.
    fn deviating(self, by: Deviation) -> Self {
        let held = by.size.of(self.held).min(MAX_HELD_ROWS);
        let least = self.subgroup.unwrap_or(LEAST_INVOCATIONS);
        let invocations = by.step.of(self.invocations).clamp(least, MAX_INVOCATIONS.max(least));
        // Rows that one invocation of a workgroup has, or a subgroup.
        let rows = (self.rows * invocations / self.invocations).max(1);
        Self { invocations, rows, held, ..self }
    }
}

/// Teams for rows of `length` elements, the last dimension of which has `inner`, and the width of their accesses: of a
/// subgroup where its size is known, else of a workgroup. Short rows leave room for several.
fn row_team(rows: i64, (length, inner): (i64, i64), gpu: &GpuDescription) -> (Team, i64) {
    let software = gpu.is_cpu_adapter();
    let width = common_width(if software { 8 } else { 4 }, &[inner]);
    let subgroup = gpu.exact_subgroup_size().map(i64::from).filter(|size| *size > 1);
    if let Some(size) = subgroup.filter(|_| software) {
        // Starting a row should cost little beside its elements.
        let held = match length {
            ..=128 => 4,
            129..=1_024 => 2,
            _ => 1,
        };
        let invocations = if rows >= 128 { 64 } else { size };
        return (Team { invocations, rows: invocations / size, held, subgroup }, width);
    }
    let subgroup = subgroup.filter(|size| length <= 32 * size);
    let invocations = match (subgroup, length) {
        (Some(size), _) => 4 * size,
        (None, ..=64) => 64,
        (None, ..=1_024) => 128,
        _ => 256,
    };
    let most = subgroup.unwrap_or(invocations);
    let busy = ((length + width - 1) / width).max(1) as u64;
    let rows = invocations / most.min(busy.next_power_of_two() as i64);
    (Team { invocations, rows, held: 1, subgroup }, width)
}

fn row_choice(team: &Team, width: i64) -> KernelChoice {
    KernelChoice {
        class: KernelClass::Row,
        workgroup_size: [i32::try_from(team.invocations).unwrap_or(64), 1, 1],
        register_tile: vec![team.held],
        reduction_step: 1,
        vector_width: width,
        sharing: if team.subgroup.is_some() { Sharing::Subgroup } else { Sharing::None },
        subgroup_size: team.subgroup,
        ..KernelChoice::default()
    }
}

/// A matrix times a vector on hardware, the matrix contiguous along the reduction: rows, each reduced by a team. The matrix
/// is the left factor or, transposed, the right one.
pub(crate) fn choose_product(
    dispatch: &Dispatch,
    (roles, all): (&products::ContractionLoops, &[i64]),
    loops: &Loops,
    (gpu, by): (&GpuDescription, Deviation),
) -> Option<(Vec<i64>, KernelChoice)> {
    // Software adapters take 1.3 times as long for rows as for a register tile.
    let op = dispatch.contraction().filter(|_| !gpu.is_cpu_adapter())?;
    let is_one = |dims: &[usize]| dims.iter().all(|d| loops.extents[*d] == 1);
    let (of_matrix, of_vector, matrix) = match (is_one(&roles.n), is_one(&roles.m)) {
        (true, _) => (&roles.m, &roles.n, roles.lhs),
        (_, true) if linalg::num_inputs(op) == 2 => (&roles.n, &roles.m, 1 - roles.lhs),
        (_, true) => (&roles.n, &roles.m, packed_factor(op)?),
        _ => return None,
    };
    let last = *of_matrix.last()?;
    let length = roles.k.iter().try_fold(1i64, |n, d| all.get(*d).filter(|e| **e != DYNAMIC).map(|e| n * e))?;
    let along_k = match linalg::indexing_maps(op) {
        // Several numbers of one byte lie along a loop of their own.
        Some(maps) if linalg::num_inputs(op) > 2 => roles.k.contains(maps[matrix].dim_positions()?.last()?),
        Some(maps) => maps[matrix].dim_positions()?.last() == roles.k.last(),
        None => matrix == 0,
    };
    if !along_k || length <= 1 {
        return None;
    }
    let rows = roles.batch.iter().chain(of_matrix).map(|d| known(loops.extents[*d])).product();
    let is_narrow = op.operand(matrix).ty().element().element_size_bytes().is_some_and(|bytes| bytes < 4);
    let held = if is_narrow { MAX_HELD_ROWS / 2 } else { MAX_HELD_ROWS };
    let (team, width) = matvec_team(rows, (length, *all.get(*roles.k.last()?)?), (gpu, held));
    let team = team.deviating(by);
    let mut tile = vec![0; loops.extents.len()];
    for d in roles.batch.iter().chain(of_matrix).chain(of_vector) {
        tile[*d] = 1;
    }
    tile[last] = (team.rows * team.held).clamp(1, known(loops.extents[last]));
    Some((tile, row_choice(&team, width)))
}

/// The operand with the packed numbers of a dequantised factor: the one of most dimensions.
fn packed_factor(op: Op) -> Option<usize> {
    let rank = |i: usize| op.operand(i).ty().shape().map_or(0, |shape| shape.len());
    let is_packed = |i: &usize| op.operand(*i).ty().element().integer_width().is_some_and(|width| width <= 16);
    (0..linalg::num_inputs(op)).filter(is_packed).max_by_key(|i| rank(*i))
}

/// Teams for the rows of a matrix times a vector: subgroups, each with several rows, so that what it loads of the vector is
/// used for each; of [`row_team`] where there are too few rows to fill a device by subgroups. Of numbers of fewer than 32 bits, at
/// most half as many rows: on an H200 0.85 of the time of four of f16, 0.62 of four bits.
fn matvec_team(rows: i64, (length, inner): (i64, i64), (gpu, most): (&GpuDescription, i64)) -> (Team, i64) {
    let width = common_width(4, &[inner]);
    match gpu.exact_subgroup_size().map(i64::from).filter(|size| *size > 1) {
        Some(size) if rows >= MANY_ROWS && length > size * width => {
            let held = (rows / MANY_ROWS).min(most);
            let held = 1 << held.ilog2();
            (Team { invocations: 4 * size, rows: 4, held, subgroup: Some(size) }, width)
        }
        _ => row_team(rows, (length, inner), gpu),
    }
}
