//! Kernels of halves on cooperative matrices: which products and attentions take them, and their tiles.

use crate::attention::{self, Shape};
use crate::dispatch::Dispatch;
use crate::large_tiles::{LARGE_TILE, MANY_TILES, is_large_product};
use crate::linalg::{self, Loops, known};
use crate::{kernel_images, products};
use monopour_contract::{KernelChoice, KernelClass, Sharing};
use monopour_ir::{DYNAMIC, Op, Type, Value};
use monopour_program::GpuDescription;

/// Whether a value is of halves.
pub(crate) fn is_half(value: Value) -> bool {
    value.ty().element() == Type::f16(value.ty().context())
}

/// A product of halves on cooperative matrices, of enough rows and columns: their tiles.
pub(crate) fn product(
    op: Op,
    roles: &products::ContractionLoops,
    extents: &[i64],
    gpu: &GpuDescription,
) -> Option<(i64, KernelChoice)> {
    let lanes = i64::from(gpu.cooperative_lanes()?);
    let of_halves = op.num_results() == 1
        && linalg::num_inputs(op) == 2
        && (0..2).all(|i| is_half(op.operand(i)))
        && op.result(0).ty().element().float_width() == Some(32);
    let count =
        |dims: &[usize]| dims.iter().try_fold(1i64, |n, d| Some(n * extents.get(*d).filter(|e| **e != DYNAMIC)?));
    let (rows, columns, depth) = (count(&roles.m)?, count(&roles.n)?, count(&roles.k)?);
    // Half of a small tile must not be idle, and a step of the reduction not be padding. Columns that lie along the reduction are
    // copied so.
    let right = linalg::indexing_maps(op).and_then(|maps| maps[1 - roles.lhs.min(1)].dim_positions());
    let along_k = right.is_some_and(|dims| dims.last() == roles.k.last());
    let fits = rows >= 48 && columns >= 48 && depth >= 16 && (along_k || columns % 4 == 0) && depth % 4 == 0;
    if !of_halves || !fits {
        return None;
    }
    let is_large = is_large_product(roles, extents, (gpu, MANY_TILES));
    let tile = if is_large { LARGE_TILE } else { 64 };
    // Sums of large ragged tiles pass through workgroup memory, beside which smaller copies of the factors let more workgroups run:
    // on an H200 a product of 4096 takes 0.66 of the time.
    let is_whole = |dims: &[usize]| dims.last().is_some_and(|d| extents[*d] % tile == 0);
    let reduction_step = if !is_large || is_whole(&roles.m) && is_whole(&roles.n) { 32 } else { 16 };
    let choice = KernelChoice {
        class: KernelClass::Contraction,
        workgroup_size: [4 * lanes as i32, 1, 1],
        // Of the scalar kernel, where distribution finds factors that are not contiguous.
        register_tile: vec![8, 8],
        reduction_step,
        vector_width: 4,
        sharing: Sharing::Cooperative,
        subgroup_size: Some(lanes),
        ..KernelChoice::default()
    };
    Some((tile, choice))
}

/// A convolution of halves on cooperative matrices, channels last: positions of images are the rows of a product. Also a product
/// whose rows lie in lines too short for a tile, as [`kernel_images::of_product`] sees it.
pub(crate) fn convolution(
    op: Op,
    roles: &products::ConvolutionLoops,
    loops: &Loops,
    gpu: &GpuDescription,
) -> Option<(Vec<i64>, KernelChoice)> {
    let lanes = i64::from(gpu.cooperative_lanes()?);
    let of_halves = linalg::num_inputs(op) == 2
        && (0..2).all(|i| is_half(op.operand(i)))
        && op.result(0).ty().element().float_width() == Some(32);
    let all = linalg::loops(op)?.extents;
    let extent = |d: &usize| all.get(*d).copied().filter(|extent| *extent != DYNAMIC);
    let [channel] = roles.channels[..] else { return None };
    let positions: Vec<usize> = roles.batch.iter().chain(&roles.image).copied().collect();
    let sizes = positions.iter().map(extent).collect::<Option<Vec<i64>>>()?;
    let (channels, inputs) = (extent(&channel)?, extent(roles.k.last()?)?);
    let line = inputs * roles.window.last().map_or(Some(1), extent)?;
    let parts = roles.depth.iter().map(extent).product::<Option<i64>>()?;
    let is_last = positions.iter().chain(&roles.depth).all(|d| *d < channel) && roles.depth.len() < 2;
    let tiled = positions.iter().chain([&channel]).chain(&roles.depth).all(|d| loops.tileable.get(*d) == Some(&true));
    let fits = channels >= 48 && channels % 4 == 0 && inputs % 4 == 0 && line % 16 == 0;
    if !(of_halves && is_last && tiled && fits && sizes.iter().product::<i64>() >= 48) {
        return None;
    }
    let of_size = |tile: i64| {
        let columns = (channels + tile - 1) / tile * parts;
        // Rows of a tile are a multiple of 64, some of them idle.
        let rows = |boxed: &[i64]| (boxed.iter().product::<i64>() + 63) / 64 * 64;
        let time = |boxed: &Vec<i64>| kernel_images::tiles(&sizes, boxed) * columns * rows(boxed);
        let boxed = kernel_images::boxes(&sizes, (tile, 1)).into_iter().min_by_key(time)?;
        Some((kernel_images::tiles(&sizes, &boxed) * columns, boxed, tile))
    };
    let large = of_size(LARGE_TILE).filter(|(tiles, ..)| channels >= LARGE_TILE && *tiles >= MANY_TILES);
    let (_, boxed, size) = large.or_else(|| of_size(64))?;
    let mut tile = vec![0; loops.extents.len()];
    for (d, size) in positions.iter().zip(&boxed) {
        tile[*d] = *size;
    }
    roles.depth.iter().for_each(|d| tile[*d] = 1);
    tile[channel] = size.min(channels);
    let choice = KernelChoice {
        class: KernelClass::Convolution,
        workgroup_size: [4 * lanes as i32, 1, 1],
        register_tile: vec![8, 8],
        reduction_step: if line % 32 == 0 { 32 } else { 16 },
        vector_width: 4,
        sharing: Sharing::Cooperative,
        subgroup_size: Some(lanes),
        ..KernelChoice::default()
    };
    Some((tile, choice))
}

/// Attention of halves on cooperative matrices: sixteen rows of queries for each subgroup.
pub(crate) fn attention(dispatch: &Dispatch, shape: &Shape, gpu: &GpuDescription) -> Option<(Vec<i64>, KernelChoice)> {
    // Two invocations have a row.
    let lanes = gpu.cooperative_lanes().filter(|lanes| *lanes == 32).map(i64::from)?;
    let query = shape.query.filter(|query| shape.rows[*query] >= 16)?;
    let sizes = [shape.size, shape.width];
    let of_matrices = sizes.iter().all(|size| matches!(size, 32 | 64 | 96 | 128)) && shape.keys > 0;
    if !of_matrices || !attention::is_of_halves(dispatch) {
        return None;
    }
    let rows = |subgroups: i64| subgroups * 16;
    let heads: i64 = shape.rows.iter().enumerate().filter(|(row, _)| *row != query).map(|(_, n)| known(*n)).product();
    let tiles = |subgroups: i64| heads.saturating_mul((shape.rows[query] + rows(subgroups) - 1) / rows(subgroups));
    let subgroups = if tiles(8) >= MANY_TILES || shape.rows[query] > rows(8) && tiles(4) >= MANY_TILES { 8 } else { 4 };
    let mut tile = vec![1; shape.rows.len()];
    tile[query] = rows(subgroups).min(shape.rows[query]);
    let choice = KernelChoice {
        class: KernelClass::Attention,
        workgroup_size: [(subgroups * lanes) as i32, 1, 1],
        register_tile: vec![16, 32],
        vector_width: 4,
        sharing: Sharing::Cooperative,
        subgroup_size: Some(lanes),
        ..KernelChoice::default()
    };
    Some((tile, choice))
}
