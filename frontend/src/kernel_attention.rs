//! The choice for attention on GPUs: rows of queries of a tile, and how its invocations share keys.

use crate::attention;
use crate::deviation::{Deviation, Scale};
use crate::dispatch::Dispatch;
use crate::kernel::shuffled_subgroup;
use crate::kernel_matrices;
use crate::large_tiles::MANY_TILES;
use crate::linalg::known;
use monopour_contract::{KernelChoice, KernelClass, Sharing};
use monopour_ir::DYNAMIC;
use monopour_program::GpuDescription;

/// Vectors of an attention's rows that one subgroup holds: queries, scores and sums, 24 KiB.
const HELD_BY_SUBGROUP: i64 = 768;

/// Rows of queries that share keys; all keys in turn. With shuffles one subgroup holds the rows in registers, else the
/// scores of a block of keys pass through workgroup memory.
pub(crate) fn choose(dispatch: &Dispatch, gpu: &GpuDescription, by: Deviation) -> (Vec<i64>, KernelChoice) {
    let shape = attention::Shape::of(dispatch).expect("invariant: the class says that it has one");
    if let Some(kernel) = kernel_matrices::attention(dispatch, &shape, gpu).filter(|_| !by.is_plain) {
        return kernel;
    }
    let queries = shape.query.map_or(1, |row| known(shape.rows[row]));
    let shuffled = shuffled_subgroup(gpu);
    let (most, block) = match shuffled {
        Some(lanes) => {
            let per_lane = if known(shape.keys) > 2 * lanes { 4 } else { (known(shape.keys) + lanes - 1) / lanes };
            let held = |rows: i64| rows * ((shape.size + shape.width + 2 * lanes - 2) / lanes + per_lane);
            // Loads from dynamic shapes are of single elements, each of which takes a driver's time to compile.
            let sizes: &[i64] = match by.size {
                _ if shape.rows.contains(&DYNAMIC) => &[8, 4, 2],
                Scale::More => &[32, 16, 8, 4, 2],
                _ => &[16, 8, 4, 2],
            };
            let room = if by.size == Scale::More { 2 * HELD_BY_SUBGROUP } else { HELD_BY_SUBGROUP };
            (sizes.iter().copied().find(|rows| held(*rows) <= room).unwrap_or(1), per_lane)
        }
        None => {
            let others = shape.rows.iter().enumerate().filter(|(row, _)| Some(*row) != shape.query);
            let heads: i64 = others.map(|(_, extent)| known(*extent)).product();
            if let Some(lanes) = team_lanes(gpu).filter(|_| !by.is_plain) {
                return of_teams(&shape, (heads, queries), (lanes, gpu, by));
            }
            // Where tiles of 64 rows leave units of a device without one, smaller ones do not: 0.67 of the time on an H200.
            let is_scarce = !gpu.is_cpu_adapter() && heads.saturating_mul((queries + 63) / 64) < MANY_TILES;
            (if shape.width <= 64 && !is_scarce { 64 } else { 32 }, 32)
        }
    };
    let most = if by.size == Scale::Less { by.size.of(most) } else { most };
    // Tiles of about one size.
    let tiles = (queries + most - 1) / most;
    let rows = (queries + tiles - 1) / tiles;
    let mut tile = vec![1; shape.rows.len()];
    if let Some(row) = shape.query {
        tile[row] = rows;
    }
    let choice = KernelChoice {
        class: KernelClass::Attention,
        workgroup_size: [if shuffled.is_some() { 8 } else { 64 }, 1, 1],
        register_tile: vec![rows, block],
        vector_width: if shuffled.is_some() { 8 } else { 4 },
        sharing: if shuffled.is_some() { Sharing::Subgroup } else { Sharing::Workgroup },
        subgroup_size: shuffled,
        ..KernelChoice::default()
    };
    (tile, choice)
}

/// The subgroup size of a device whose subgroups are of whole teams of eight.
fn team_lanes(gpu: &GpuDescription) -> Option<i64> {
    gpu.exact_subgroup_size().map(i64::from).filter(|size| !gpu.is_cpu_adapter() && size % 8 == 0)
}

/// Teams of eight invocations: with several rows each where there are many, else as many as share the keys of a row.
fn of_teams(
    shape: &attention::Shape,
    (heads, queries): (i64, i64),
    (lanes, gpu, by): (i64, &GpuDescription, Deviation),
) -> (Vec<i64>, KernelChoice) {
    let tiles = |rows: i64| heads.saturating_mul((queries + rows - 1) / rows);
    let (rows, invocations, block) = match queries {
        // Less than a row for each team of a workgroup.
        ..16 => (queries.max(1), 256, if known(shape.keys) > 1_024 { 32 } else { 8 }),
        _ if shape.width <= 64 && tiles(64) >= MANY_TILES => (64, 64, 32),
        _ if tiles(32) >= MANY_TILES => (32, 64, 32),
        _ => (16, 64, 32),
    };
    let rows = if queries < 16 { rows } else { by.size.of(rows).min(64) };
    let mut invocations = by.step.of(invocations).clamp(lanes.max(64), 256);
    // Powers of a block, and where teams share a row what each of them found, are in workgroup memory.
    let words = |invocations: i64| invocations / 8 * (block + block / 8 + shape.width + 4);
    while invocations > lanes.max(64) && 4 * words(invocations) > i64::from(gpu.limits.max_workgroup_storage_bytes) {
        invocations /= 2;
    }
    // Tiles of about one size.
    let count = (queries + rows - 1) / rows;
    let rows = (queries + count - 1) / count.max(1);
    let mut tile = vec![1; shape.rows.len()];
    if let Some(row) = shape.query {
        tile[row] = rows;
    }
    let choice = KernelChoice {
        class: KernelClass::Attention,
        workgroup_size: [i32::try_from(invocations).unwrap_or(64), 1, 1],
        register_tile: vec![rows, block],
        vector_width: 4,
        sharing: Sharing::Subgroup,
        subgroup_size: Some(lanes),
        ..KernelChoice::default()
    };
    (tile, choice)
}
