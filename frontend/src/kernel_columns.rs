//! The choice for reductions on hardware whose results are neighbours in memory: sums of columns, and products of few rows
//! with a matrix that is contiguous along its columns.
//!
//! A subgroup reads whole lines of memory; the reduction is split over as many groups of invocations as fill the device.

use crate::dispatch::Dispatch;
use crate::kernel::FEW_COLUMNS;
use crate::linalg::{self, Loops, known};
use crate::products;
use monopour_contract::{KernelChoice, KernelClass};
use monopour_ir::{AffineMap, DYNAMIC, Op, Type, bodies, ops};
use monopour_program::GpuDescription;

/// Bytes of a line of memory, which neighbouring invocations read together.
const LINE_BYTES: i64 = 128;
/// Bytes that a device reads from memory at least.
const SECTOR_BYTES: i64 = 32;
/// Units of the largest GPUs.
const UNITS: i64 = 132;
/// Invocations of a full device: the largest GPUs have room for so many.
const FULL: i64 = 1 << 17;
/// Least invocations of a workgroup.
const LEAST: i64 = 64;
/// Elements of the reduction from which on it is split, and the fewest for each invocation.
const LONG: i64 = 32;
const FEWEST: i64 = 4;
/// Sums of a product that an invocation holds: of each row and result.
const MAX_ROWS: i64 = 8;

/// The tile and the choice of a reduction across rows; `None` for other dispatches.
pub(crate) fn choose(dispatch: &Dispatch, loops: &Loops, gpu: &GpuDescription) -> Option<(Vec<i64>, KernelChoice)> {
    let op = dispatch.main();
    if gpu.is_cpu_adapter() || !reduces_across(op) {
        return None;
    }
    let (extents, parallel) = (linalg::loops(op)?.extents, linalg::parallel_loops(op)?);
    let reductions = extents.iter().zip(parallel).filter(|(_, parallel)| !parallel);
    let length = reductions.map(|(extent, _)| known(*extent)).product();
    let column = (0..loops.extents.len()).rev().find(|d| loops.tileable[*d])?;
    let tile = loops.tileable.iter().map(|can| i64::from(*can)).collect();
    split(op, tile, (column, loops), (length, 1), gpu)
}

/// The tile and the choice of a product of few rows with a matrix that is contiguous along its columns.
pub(crate) fn choose_product(
    op: Op,
    (roles, all): (&products::ContractionLoops, &[i64]),
    loops: &Loops,
    gpu: &GpuDescription,
) -> Option<(Vec<i64>, KernelChoice)> {
    let column = *roles.n.last()?;
    let rows: i64 = roles.m.iter().map(|d| known(loops.extents[*d])).product();
    let is_static = roles.m.iter().all(|d| loops.extents[*d] != DYNAMIC);
    // The reduction is the last loop of the named op, which states no kinds of loops.
    let across = match linalg::indexing_maps(op) {
        Some(maps) if op.is(ops::linalg::MATMUL) => {
            let last = |map: AffineMap| map.dim_positions().and_then(|dims| dims.last().copied());
            [last(maps[1]), last(maps[2])] == [Some(1); 2]
        }
        Some(_) => reduces_across(op) || is_across_packed(op),
        None => true,
    };
    let columns: i64 = roles.n.iter().map(|d| known(loops.extents[*d])).product();
    let held = rows * op.num_results() as i64;
    let is_skinny = is_static && held <= MAX_ROWS && columns > FEW_COLUMNS;
    if gpu.is_cpu_adapter() || !across || !is_skinny || !loops.tileable[column] {
        return None;
    }
    let length = roles.k.iter().map(|d| all.get(*d).map_or(1, |e| known(*e))).product();
    let mut tile = vec![0; loops.extents.len()];
    for d in roles.batch.iter().chain(&roles.n) {
        tile[*d] = 1;
    }
    for d in &roles.m {
        tile[*d] = known(loops.extents[*d]);
    }
    split(op, tile, (column, loops), (length, held), gpu)
}

/// Tiles of as many columns as a line of memory has, of the given sizes along the other loops, and invocations that fill
/// the device. `None` for a short reduction, and where the device has no room for the partial results.
fn split(
    op: Op,
    mut tile: Vec<i64>,
    (column, loops): (usize, &Loops),
    (length, held): (i64, i64),
    gpu: &GpuDescription,
) -> Option<(Vec<i64>, KernelChoice)> {
    let columns = loops.extents[column];
    let width = [4, 2, 1].into_iter().find(|w| columns == DYNAMIC || columns % w == 0).unwrap_or(1);
    let bytes = element_bytes(op)?;
    let all = power_of_two((known(columns) + width - 1) / width);
    let mut vectors = (LINE_BYTES / (width * bytes)).clamp(1, 32).min(all);
    let mut workgroups = |vectors: i64| -> i64 {
        tile[column] = vectors * width;
        let cut = tile.iter().zip(&loops.extents).filter(|(t, _)| **t > 0);
        cut.map(|(t, extent)| (known(*extent) + t - 1) / t).product()
    };
    // Parts of a line where whole ones would leave most units of a device without work, and parts begin where sectors do.
    let is_aligned = columns != DYNAMIC && columns * bytes % SECTOR_BYTES == 0;
    while is_aligned && vectors * width * bytes > SECTOR_BYTES && vectors > 1 && workgroups(vectors) < UNITS {
        vectors /= 2;
    }
    let workgroups = workgroups(vectors);
    let of_memory = i64::from(gpu.limits.max_workgroup_storage_bytes) / partial_bytes(op, width);
    let most = of_memory.min(i64::from(gpu.limits.max_workgroup_invocations)).min(1_024);
    // With several sums of each the registers of fewer invocations are the limit.
    let most = if held > 2 { most.min(256) } else { most };
    if length < LONG || most < vectors {
        return None;
    }
    let filling = FULL / (workgroups * vectors).max(1);
    let groups = filling.max(LEAST / vectors).min(most / vectors).min(length / FEWEST);
    let groups = 1 << groups.ilog2();
    let choice = KernelChoice {
        class: KernelClass::Column,
        workgroup_size: [i32::try_from(vectors * groups).ok()?, 1, 1],
        register_tile: vec![width],
        vector_width: width,
        ..KernelChoice::default()
    };
    Some((tile, choice))
}

fn power_of_two(n: i64) -> i64 {
    (n.max(1) as u64).next_power_of_two() as i64
}

/// Bytes of an invocation's partial results in workgroup memory: vectors of so many elements, which are scalars if they
/// have more than four bytes.
fn partial_bytes(op: Op, width: i64) -> i64 {
    let bytes = |ty: Type| ty.element().element_size_bytes().map_or(4, |bytes| bytes.max(4) as i64);
    let widest = op.results().iter().map(|result| bytes(result.ty())).max().unwrap_or(4);
    (4 * width).max(widest) * op.num_results() as i64
}

/// Bytes of an element of the largest input.
fn element_bytes(op: Op) -> Option<i64> {
    let inputs = op.operands().into_iter().take(linalg::num_inputs(op));
    let size = |shape: Vec<i64>| shape.into_iter().map(known).product::<i64>();
    let largest = inputs.max_by_key(|v| v.ty().shape().map_or(0, size))?;
    Some(largest.ty().element().element_size_bytes().map_or(4, |bytes| bytes as i64))
}

/// Whether an op combines by associative ops over loops of which an input's innermost one is none, but the last one of the
/// results is.
fn reduces_across(op: Op) -> bool {
    let (Some(maps), Some(parallel)) = (linalg::indexing_maps(op), linalg::parallel_loops(op)) else { return false };
    let (inputs, outputs) = maps.split_at(linalg::num_inputs(op));
    let Some(last) = outputs.first().and_then(|map| map.dim_positions()?.last().copied()) else { return false };
    let dims = |map: &AffineMap| map.dim_positions().unwrap_or_default();
    let reads_across = |map: &AffineMap| {
        let dims = dims(map);
        dims.last() == Some(&last) && dims.iter().any(|d| !parallel[*d])
    };
    let is_along = |map: &AffineMap| dims(map).contains(&last) && dims(map).last() != Some(&last);
    maps.iter().all(|map| map.is_projected_permutation())
        && outputs.iter().all(|map| *map == outputs[0])
        && parallel.contains(&false)
        && inputs.iter().any(reads_across)
        && !inputs.iter().any(is_along)
        && combines(op)
}

/// Whether the maps of a product of packed weights have the last dimension of the result last, or not at all.
fn is_across_packed(op: Op) -> bool {
    let Some(maps) = linalg::indexing_maps(op) else { return false };
    let (inputs, outputs) = maps.split_at(linalg::num_inputs(op));
    let Some(last) = outputs.first().and_then(|map| map.dim_positions()?.last().copied()) else { return false };
    let is_only_last = |map: &AffineMap| {
        let positions = map.results();
        positions.split_last().is_none_or(|(_, before)| before.iter().all(|e| !e.dims().contains(&last)))
    };
    inputs.len() > 2 && inputs.iter().all(is_only_last) && combines(op) && op.find_all(ops::linalg::INDEX).is_empty()
}

/// Whether every result is combined by an associative op.
fn combines(op: Op) -> bool {
    op.body().is_some_and(|body| (0..op.num_results()).all(|result| bodies::combination(body, result).is_some()))
}
