//! Products that fill a GPU alone: their tiles are large, because these load less for each product.

use crate::products;
use monopour_ir::DYNAMIC;
use monopour_program::GpuDescription;

/// Columns of a large tile of a product, which has half as many rows: an invocation has 8 of each. On cooperative matrices also
/// its rows.
pub(crate) const LARGE_TILE: i64 = 128;
/// Pairs of tiles from which on they are large: about as many as the largest GPUs have room for at once, two on each of 132
/// units, less what the smaller ones need.
pub(crate) const MANY_TILES: i64 = 192;

/// Whether a product's tiles are large on a GPU: it fills the device alone.
pub(crate) fn is_large_product(roles: &products::ContractionLoops, extents: &[i64], gpu: &GpuDescription) -> bool {
    let of = |dims: &[usize]| dims.iter().map(|d| extents[*d]).collect::<Vec<_>>();
    !gpu.is_cpu_adapter() && has_large_tiles(&of(&roles.batch), &of(&roles.m), &of(&roles.n))
}

/// Whether a product of static sizes has enough pairs of large tiles, of [`LARGE_TILE`] rows and columns, for all units of a
/// GPU.
fn has_large_tiles(batch: &[i64], rows: &[i64], columns: &[i64]) -> bool {
    let tiles = |dims: &[i64]| match dims.split_last() {
        Some((last, others)) => others.iter().product::<i64>() * (last / LARGE_TILE),
        None => 0,
    };
    let is_static = ![batch, rows, columns].concat().contains(&DYNAMIC);
    is_static && batch.iter().product::<i64>().saturating_mul(tiles(rows)).saturating_mul(tiles(columns)) >= MANY_TILES
}
