//! Products that fill a GPU alone: their tiles are large, because these load less for each product.

use crate::products;
use monopour_ir::DYNAMIC;
use monopour_program::GpuDescription;

/// Columns of a large tile of a product, which has half as many rows: an invocation has 8 of each. On cooperative matrices also
/// its rows.
pub(crate) const LARGE_TILE: i64 = 128;
/// Tiles on cooperative matrices from which on they are large: about as many as the largest GPUs have room for at once, two on
/// each of 132 units, less what the smaller ones need.
pub(crate) const MANY_TILES: i64 = 192;
/// Likewise pairs of tiles of scalar sums: an H200 multiplies 512x4096x4096 with 128 pairs in 0.76 of the time of small tiles.
pub(crate) const MANY_PAIRS: i64 = 128;

/// Whether a product's tiles are large on a GPU: it has at least so many squares of [`LARGE_TILE`], which fill the device.
pub(crate) fn is_large_product(
    roles: &products::ContractionLoops,
    extents: &[i64],
    (gpu, least): (&GpuDescription, i64),
) -> bool {
    let of = |dims: &[usize]| dims.iter().map(|d| extents[*d]).collect::<Vec<_>>();
    !gpu.is_cpu_adapter() && squares(&of(&roles.batch), &of(&roles.m), &of(&roles.n)) >= least
}

/// Squares of [`LARGE_TILE`] rows and columns of a product of static sizes; 0 where one is not known.
fn squares(batch: &[i64], rows: &[i64], columns: &[i64]) -> i64 {
    // Rows in several dimensions become one.
    let tiles = |dims: &[i64]| if dims.is_empty() { 0 } else { dims.iter().product::<i64>() / LARGE_TILE };
    if [batch, rows, columns].concat().contains(&DYNAMIC) {
        return 0;
    }
    batch.iter().product::<i64>().saturating_mul(tiles(rows)).saturating_mul(tiles(columns))
}
