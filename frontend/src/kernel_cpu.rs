//! The cost model for CPUs: task tiles. Code generation chooses register tiles, and blocks of the reduction.
//!
//! Extents are static, so that a tile that divides them leaves no remainder inside a task; a loop without such a tile is not
//! cut.

use crate::attention::Shape;
use crate::dispatch::Dispatch;
use crate::grid::MAX_GRID_RANK;
use crate::kernel::{self, Kernel};
use crate::linalg::{self, Loops};
use crate::products::{self, ConvolutionLoops};
use monopour_contract::{
    KernelChoice, KernelClass, MAX_INTERLEAVED, MOST_LINE_PANEL_BYTES, MOST_TASK_BUFFER_BYTES, WIDE_TILE_BITS,
    WIDE_TILE_REGISTERS,
};
use monopour_ir::ops;
use monopour_ir::{DYNAMIC, Op};
use monopour_program::CpuTarget;
use std::collections::BTreeSet;

/// Rows and columns of a task of a matrix product: a square reads the least of both operands, and its parts of them stay in
/// the second-level cache.
pub(crate) const TASK_SIDE: i64 = 128;
/// Fewest rows of a product whose tasks follow the widest register tile.
const FEWEST_TILE_ROWS: i64 = 32;
/// Tasks of which more are not worth shorter ones.
const ENOUGH_TASKS: i64 = 8;
/// Tasks of a plain product of which fewer are cut.
const FEW_TASKS: i64 = 4;
/// Least multiply-adds of a task that is cut off: some times what it costs to hand it to another thread.
const LEAST_TASK: i64 = 1 << 19;
/// Iterations of a loop of unknown extent that its tasks are made for.
const FEW_ROWS: i64 = 16;
/// Rows of a task of a product without columns.
const COLUMN_ROWS: i64 = 32;
/// Channels of a task of a convolution: behind the image, contiguous; and before it, sharing the loads of an image vector.
const TASK_CHANNELS: [i64; 2] = [256, 16];
/// Output channels of a task that packs a line for them, and most bytes of their filters, a part of the second-level cache.
const PACKED_CHANNELS: i64 = 256;
const FILTER_BYTES: i64 = 512 << 10;
/// Most elements of a line that is not cut.
const LONGEST_LINE: i64 = 1_024;
/// Most elements of a padded image of which a task puts the channels of a register side by side: two thirds of the first-level cache.
const CHANNEL_PIXELS: i64 = 384;
/// Columns of a task of a product of one row: a page of each row of the matrix.
const STREAM_COLUMNS: i64 = 1_024;
/// A loop without a dividing tile is cut all the same beyond this extent; the remainder of its last tile is not vectorised.
const MAX_WHOLE: i64 = 8_192;
/// Elements of an elementwise task.
const TASK_ELEMENTS: i64 = 65_536;
/// Elements of a task with producers and consumers: its intermediates stay in the first-level cache.
const LINE_ELEMENTS: i64 = 4_096;
/// Least elements of a row that code generation takes through all ops by itself; where there are so many tasks of such rows, they
/// have more elements: each whose results pass the caches ends with a fence.
const LONG_ROW: i64 = 512;
const MANY_TASKS: i64 = 256;
const MANY_ELEMENTS: i64 = 4 * LINE_ELEMENTS;
/// Most elements of lines that stay whole beside a longer one that is cut.
const SHORT_LINE: i64 = 128;
/// Elements of a line of an image.
const LINE: i64 = 64;

/// Chooses for a CPU.
pub(crate) fn choose(dispatch: &Dispatch, loops: &Loops, cpu: &CpuTarget) -> Kernel {
    let lanes = lanes(dispatch.main(), cpu);
    let class = dispatch.class();
    let mut tile = match class {
        KernelClass::Contraction => product(dispatch, loops, cpu),
        KernelClass::Convolution => convolution(dispatch, loops, cpu),
        KernelClass::Row => rows(dispatch, loops),
        KernelClass::Elementwise => transposed(dispatch, loops).unwrap_or_else(|| contiguous(loops, TASK_ELEMENTS)),
        KernelClass::Attention => attention(dispatch),
        KernelClass::Generic | KernelClass::Column => {
            let computed = || computed_columns(dispatch, loops);
            pool(dispatch, loops).or_else(computed).unwrap_or_else(|| contiguous(loops, LINE_ELEMENTS))
        }
    };
    if matches!(class, KernelClass::Contraction | KernelClass::Convolution) {
        share(dispatch.main(), loops, &mut tile);
    }
    // Code generation chooses the register tiles.
    let register_tile = vec![1];
    let choice =
        KernelChoice { class, register_tile, reduction_step: 1, vector_width: lanes, ..KernelChoice::default() };
    Kernel::new(tile, choice)
}

/// Elements of the result's type in one vector register.
pub(crate) fn lanes(op: Op, cpu: &CpuTarget) -> i64 {
    let bits = op.result(0).ty().element_size_bytes().map_or(64, |bytes| bytes * 8);
    i64::from(cpu.vector_bits) / i64::try_from(bits).unwrap_or(64).max(8)
}

fn contiguous(loops: &Loops, elements: i64) -> Vec<i64> {
    let mut tile = kernel::contiguous_tile(loops, kernel::task_elements(loops, elements));
    for (t, extent) in tile.iter_mut().zip(&loops.extents).filter(|(t, _)| **t > 0) {
        *t = known_tile(*extent, *t);
    }
    finish(tile, loops)
}

/// Tile of an op that transposes: whole lines of each operand, as squares of registers need them; a part of one that is too long beside
/// short ones.
fn transposed(dispatch: &Dispatch, loops: &Loops) -> Option<Vec<i64>> {
    let maps = linalg::indexing_maps(dispatch.root)?;
    let lines: BTreeSet<usize> = maps.iter().filter_map(|map| map.dim_positions()?.last().copied()).collect();
    if lines.len() < 2 || !loops.extents.iter().all(|extent| *extent > 0) {
        return None;
    }
    let mut tile = loops.extents.clone();
    let elements = |tile: &[i64]| lines.iter().map(|d| tile[*d]).fold(1, i64::saturating_mul);
    if elements(&tile) > TASK_ELEMENTS {
        let longest = *lines.iter().max_by_key(|d| tile[**d])?;
        let short = elements(&tile) / tile[longest];
        tile[longest] = Some(short)
            .filter(|short| *short <= SHORT_LINE)
            .map(|_| known_tile(tile[longest], TASK_ELEMENTS / short))?;
    }
    let mut room = (TASK_ELEMENTS / elements(&tile)).max(1);
    for d in (0..tile.len()).rev().filter(|d| !lines.contains(d)) {
        tile[d] = known_tile(loops.extents[d], room);
        room = (room / tile[d]).max(1);
    }
    Some(finish(tile, loops))
}

/// Tile of a batched or otherwise general contraction: one batch, some rows, and columns that share them.
fn product(dispatch: &Dispatch, loops: &Loops, cpu: &CpuTarget) -> Vec<i64> {
    let lanes = lanes(dispatch.main(), cpu);
    let found = products::contraction_loops(dispatch.main()).expect("invariant: the class says that there is one");
    let mut tile = vec![0; loops.extents.len()];
    let set = |dims: &[usize], (wanted, unit): (i64, i64), tile: &mut [i64]| {
        // The last loop that is one: those of one iteration are cut without effect.
        let (dims, single): (Vec<usize>, Vec<usize>) = dims.iter().partition(|d| loops.extents[**d] != 1);
        single.iter().for_each(|d| tile[*d] = 1);
        if let Some((last, outer)) = dims.split_last() {
            outer.iter().for_each(|d| tile[*d] = 1);
            let extent = loops.extents[*last];
            let unit = if extent != DYNAMIC && extent % unit == 0 { unit } else { 1 };
            let register = if unit == 1 { lanes } else { 1 };
            tile[*last] = match extent {
                DYNAMIC => wanted / unit,
                _ => task_tile((extent / unit).max(1), (wanted / unit).max(1), register),
            } * unit;
        }
    };
    found.batch.iter().for_each(|d| tile[*d] = 1);
    // Without rows, columns are read once: long tasks, of which there are enough.
    let rows = if found.n.is_empty() { COLUMN_ROWS } else { TASK_SIDE };
    set(&found.m, (rows, 1), &mut tile);
    let columns = match line(dispatch) {
        Some(line) => (columns(&found, loops), line),
        None => wide_columns(dispatch, &found, loops, cpu).unwrap_or((columns(&found, loops), 1)),
    };
    set(&found.n, columns, &mut tile);
    if found.m.len() > 1 {
        widen(&found.m, loops, &mut tile);
        widen(&found.n, loops, &mut tile);
        let rows = found.m.iter().any(|d| loops.extents[*d] != 1);
        if let (true, [column], (_, 1)) = (rows, &found.n[..], columns) {
            halve(*column, 4 * lanes, loops, &mut tile);
        }
    } else if reads_panels(dispatch.main(), &found) {
        let mut wide = tile.clone();
        widen(&found.n, loops, &mut wide);
        tile = if tasks(&wide, loops) >= ENOUGH_TASKS { wide } else { tile };
    }
    if let [.., row] = found.m[..]
        && loops.extents[row] == DYNAMIC
    {
        tile[row] = tile[row].min(converted_rows(dispatch, row, &tile));
    }
    finish(tile, loops)
}

/// Tile of a product that computes its columns of integers, such as weights of few bits: all rows share what it computes.
fn computed_columns(dispatch: &Dispatch, loops: &Loops) -> Option<Vec<i64>> {
    let main = dispatch.main();
    let (maps, rank) = (linalg::indexing_maps(main)?, loops.extents.len());
    let parallel = linalg::parallel_loops(main)?;
    let sums = |dims: &[usize]| dims.iter().any(|d| !parallel[*d]);
    let (column, outer) =
        (0..rank).filter(|d| parallel[*d]).collect::<Vec<_>>().split_last().map(|(c, o)| (*c, o.to_vec()))?;
    let row = outer.into_iter().rfind(|d| loops.extents[*d] != 1)?;
    let is_integer = |i: usize| main.operand(i).ty().element().integer_width().is_some();
    let shares = |i: usize| {
        let dims = maps[i].dim_positions().unwrap_or_default();
        is_integer(i) && sums(&dims) && dims.contains(&column) && !dims.contains(&row)
    };
    let float = main.result(0).ty().element().is_float();
    (float && (0..linalg::num_inputs(main)).any(shares)).then(|| {
        let mut tile = vec![0; rank];
        (0..rank).filter(|d| parallel[*d]).for_each(|d| tile[d] = 1);
        tile[row] = known_tile(loops.extents[row], TASK_SIDE / 2);
        tile[column] = known_tile(loops.extents[column], TASK_SIDE);
        finish(tile, loops)
    })
}

/// Most rows of a task whose sums are of another type than its result: they are on its stack.
fn converted_rows(dispatch: &Dispatch, row: usize, tile: &[i64]) -> i64 {
    let [sums, result] = [dispatch.main(), dispatch.root].map(|op| op.result(0).ty().element());
    let bytes = sums.element_size_bytes().unwrap_or(8)
        * tile.iter().enumerate().filter(|(d, _)| *d != row).map(|(_, t)| (*t).max(1) as u64).product::<u64>();
    if sums == result { i64::MAX } else { (MOST_TASK_BUFFER_BYTES / 2 / bytes.max(1)).max(1) as i64 }
}

/// Whether the right factor lies in panels of columns (`panels.rs`): a task of several fetches the next one while it works.
fn reads_panels(op: Op, found: &products::ContractionLoops) -> bool {
    let maps = linalg::indexing_maps(op).unwrap_or_default();
    let right = 1_usize.checked_sub(found.lhs).and_then(|right| maps.get(right));
    let dims = right.and_then(|map| map.dim_positions()).unwrap_or_default();
    let ([.., outer, last], [first, .., depth, within]) = (&found.n[..], &dims[..]) else { return false };
    first == outer && found.k.contains(depth) && within == last
}

/// Tiles of a grid.
fn tasks(tile: &[i64], loops: &Loops) -> i64 {
    let along = |(tile, extent): (&i64, &i64)| if *tile > 0 { linalg::known(*extent) / tile } else { 1 };
    tile.iter().zip(&loops.extents).map(along).map(|tasks| tasks.max(1)).fold(1, i64::saturating_mul)
}

/// Cuts the outermost loop of a grid of few tasks, so that several threads have work, where each task keeps enough of it.
fn share(op: Op, loops: &Loops, tile: &mut [i64]) {
    // Loops of unknown extent may be short.
    let few = |extent: &i64| if *extent == DYNAMIC { FEW_ROWS } else { (*extent).max(1) };
    let all = linalg::loop_extents(op).unwrap_or_default().iter().map(few).fold(1, i64::saturating_mul);
    let along = |(tile, extent): (&i64, &i64)| if *tile > 0 { (few(extent) / tile).max(1) } else { 1 };
    let now = tile.iter().zip(&loops.extents).map(along).fold(1, i64::saturating_mul);
    let is_cut = |d: &usize| tile[*d] > 1 && loops.extents[*d] != DYNAMIC;
    let Some(d) = (0..tile.len().saturating_sub(1)).find(is_cut) else { return };
    // Of a plain product, tasks of fewer rows each pack the same columns again.
    if now >= if tile.len() == 2 { FEW_TASKS } else { ENOUGH_TASKS } {
        return;
    }
    let whole = tile[d];
    let mut parts = (1..=whole).filter(|parts| whole % parts == 0 && all / (now * parts) >= LEAST_TASK);
    let enough = parts.clone().find(|parts| now * parts >= ENOUGH_TASKS);
    tile[d] = whole / enough.or_else(|| parts.next_back()).unwrap_or(1);
}

/// Takes several iterations of the loop outside of the last one, if that is whole and short: lines of an image, or blocks of
/// channels. The task fetches the filters of a block while it works on the one before.
fn widen(dims: &[usize], loops: &Loops, tile: &mut [i64]) {
    if let [.., outer, last] = dims[..]
        && loops.extents[outer] != DYNAMIC
        && loops.extents[last] != DYNAMIC
        && tile[last] == loops.extents[last]
    {
        tile[outer] = known_tile(loops.extents[outer], (TASK_SIDE / tile[last].max(1)).max(1));
    }
}

/// Halves the columns of tasks that are few, while `least` are left: tasks of fewer lines of an image would each read the same columns
/// again.
fn halve(column: usize, least: i64, loops: &Loops, tile: &mut [i64]) {
    while tasks(tile, loops) < ENOUGH_TASKS && tile[column] % 2 == 0 && tile[column] / 2 >= least {
        tile[column] /= 2;
    }
}

/// Columns of a task. Rows that are few, or may be, stream the matrix: longer lines of it are prefetched better.
fn columns(found: &products::ContractionLoops, loops: &Loops) -> i64 {
    let rows = |is: fn(i64) -> bool| found.m.iter().map(|d| loops.extents[*d]).filter(|rows| is(*rows)).count();
    if rows(|rows| rows != 1) == 0 {
        STREAM_COLUMNS
    } else if rows(|rows| rows == DYNAMIC) > 0 {
        found.n.last().map_or(TASK_SIDE, |d| (loops.extents[*d] / 2).clamp(TASK_SIDE, STREAM_COLUMNS / 2))
    } else {
        TASK_SIDE
    }
}

/// Columns of a task whose register tiles are [`WIDE_TILE_REGISTERS`] wide, and the unit of them: many, since each task reads its
/// rows again for each vector, where enough tasks are left. `None` where vectors are of fewer registers.
fn wide_columns(
    dispatch: &Dispatch,
    found: &products::ContractionLoops,
    loops: &Loops,
    cpu: &CpuTarget,
) -> Option<(i64, i64)> {
    let ([.., row], [.., column]) = (&found.m[..], &found.n[..]) else { return None };
    let (rows, extent) = (loops.extents[*row], loops.extents[*column]);
    let float = dispatch.main().result(0).ty().element().is_float();
    if cpu.vector_bits < WIDE_TILE_BITS || !float || extent == DYNAMIC || rows == DYNAMIC || rows < FEWEST_TILE_ROWS {
        return None;
    }
    let unit = WIDE_TILE_REGISTERS * i64::from(cpu.vector_bits) / 32;
    let tasks = |columns: i64| linalg::known(extent / columns).max(1) * (rows / TASK_SIDE).max(1);
    Some(match extent % unit {
        0 if tasks(4 * unit) >= ENOUGH_TASKS => (4 * unit, unit),
        0 => (2 * unit, unit),
        _ if tasks(2 * TASK_SIDE) >= ENOUGH_TASKS => (2 * TASK_SIDE, 1),
        _ => (TASK_SIDE, 1),
    })
}

/// Elements of a line of the image that a result's lines become, where nothing else reads them: tiles of whole lines can be
/// written to a padded image (`padded_results.rs`).
fn line(dispatch: &Dispatch) -> Option<i64> {
    let result = dispatch.root.result(0);
    let [only] = result.uses()[..] else { return None };
    let (from, to) = (result.ty().shape()?, only.op.results().first()?.ty().shape()?);
    let width = to.last().copied().filter(|width| *width > 0 && to.len() == from.len() + 1);
    // Not where another dimension is split.
    let width = width.filter(|width| from.last() != Some(width));
    width.filter(|_| only.op.is(ops::tensor::EXPAND_SHAPE))
}

/// Whether code generation packs the windows of a strided convolution's line, for all channels of a task.
pub(crate) fn packs_line(op: Op, found: &ConvolutionLoops, extents: &[i64], cpu: &CpuTarget) -> bool {
    let before = !found.channels.is_empty() && found.channels.iter().all(|d| found.image.iter().all(|line| d < line));
    let interleaved = line_stride(op, found).is_some_and(|stride| (2..=MAX_INTERLEAVED).contains(&stride));
    let fits = line_bytes(op, found, extents, cpu).is_some_and(|bytes| bytes <= MOST_LINE_PANEL_BYTES);
    before && interleaved && fits
}

/// Bytes of the windows of a line of a convolution's image, in whole registers; `None` if that is not known.
fn line_bytes(op: Op, found: &ConvolutionLoops, extents: &[i64], cpu: &CpuTarget) -> Option<i64> {
    let bytes = op.result(0).ty().element_size_bytes().and_then(|bytes| i64::try_from(bytes).ok())?;
    let known = |d: &usize| Some(extents[*d]).filter(|extent| *extent != DYNAMIC);
    let (line, lanes) = (known(found.image.last()?)?, lanes(op, cpu));
    let row = line.checked_add(lanes - 1)? / lanes * lanes;
    let mut sizes = found.k.iter().chain(&found.window).map(known).chain([Some(bytes)]);
    sizes.try_fold(row, |product, size| product.checked_mul(size?))
}

/// Elements between the windows of a line of the image.
pub(crate) fn line_stride(op: Op, found: &ConvolutionLoops) -> Option<i64> {
    let map = linalg::indexing_maps(op)?[found.input];
    Some(map.results().last()?.linear(map.num_dims())?.factors[*found.image.last()?])
}

/// Tile of a convolution: a line of the image, and the channels that share its windows.
fn convolution(dispatch: &Dispatch, loops: &Loops, cpu: &CpuTarget) -> Vec<i64> {
    let op = dispatch.main();
    let found = products::convolution_loops(op).expect("invariant: the class says that there is one");
    let packed = linalg::loop_extents(op)
        .filter(|extents| is_narrow(op) && !found.channels.is_empty() || packs_line(op, &found, extents, cpu));
    let mut tile = vec![0; loops.extents.len()];
    found.batch.iter().chain(&found.image).for_each(|d| tile[*d] = 1);
    if let (Some(lanes), Some(channel)) = (channel_lanes(op, cpu), found.depth.last()) {
        found.image.iter().for_each(|d| tile[*d] = loops.extents[*d]);
        tile[*channel] = lanes;
        return finish(tile, loops);
    }
    if let Some(line) = found.image.last() {
        tile[*line] = known_tile(loops.extents[*line], LINE);
    }
    let inner = |d: &usize| found.image.last().is_some_and(|line| d > line);
    let blocks = found.channels.iter().chain(&found.depth).any(inner);
    for d in found.channels.iter().chain(&found.depth) {
        let [behind, before] = TASK_CHANNELS;
        let wanted = match &packed {
            _ if inner(d) => behind,
            Some(extents) => packed_channels(op, &found, extents),
            None => before,
        };
        tile[*d] = known_tile(loops.extents[*d], wanted);
    }
    if blocks {
        [&found.image, &found.channels, &found.depth].iter().for_each(|dims| widen(dims, loops, &mut tile));
    } else if let ([], [.., channel], [.., row, line]) = (&found.channels[..], &found.depth[..], &found.image[..]) {
        planes([*channel, *row, *line], line_stride(op, &found).unwrap_or(0), loops, &mut tile);
    }
    finish(tile, loops)
}

/// The channels of a task of a depthwise convolution that puts them side by side (`channel_lanes.rs`): its lines are shorter than two
/// registers, and padded images of a register's channels stay in the first-level cache.
pub(crate) fn channel_lanes(op: Op, cpu: &CpuTarget) -> Option<i64> {
    let found = products::convolution_loops(op)?;
    let ([_, _], [channel], []) = (&found.image[..], &found.depth[..], &found.channels[..]) else { return None };
    let (extents, lanes) = (linalg::loop_extents(op)?, lanes(op, cpu));
    let element = op.result(0).ty().element();
    let plain = element.float_width().is_some_and(|bits| bits >= 32)
        && (0..2).all(|operand| op.operand(operand).ty().element() == element);
    let before = found.image.iter().all(|d| channel < d) && found.batch.iter().all(|d| d < channel);
    let shape = op.operand(found.input).ty().shape()?;
    let [.., height, width] = shape[..] else { return None };
    let line = extents[*found.image.last()?];
    let known = extents.iter().all(|extent| *extent > 0) && height > 0 && width > 0;
    let fits = height.saturating_mul(width) <= CHANNEL_PIXELS;
    (plain && before && known && fits && lanes > 1 && line < 2 * lanes && extents[*channel] % lanes == 0)
        .then_some(lanes)
}

/// Tile of a pool of images whose channels are in front.
fn pool(dispatch: &Dispatch, loops: &Loops) -> Option<Vec<i64>> {
    let op = dispatch.main();
    let maps = linalg::indexing_maps(op)?;
    let inputs = linalg::num_inputs(op);
    let image = maps[..inputs].iter().find(|map| !map.is_projected_permutation())?;
    let out = maps[inputs..].first()?.dim_positions().filter(|_| op == dispatch.root)?;
    let [ref front @ .., channel, row, line] = out[..] else { return None };
    let stride = image.results().last()?.linear(image.num_dims())?.factors[line];
    let mut tile = vec![0; loops.extents.len()];
    front.iter().for_each(|d| tile[*d] = 1);
    planes([channel, row, line], stride, loops, &mut tile).then(|| finish(tile, loops))
}

/// Makes the tile of a depthwise convolution or a pool of whole lines, as many as the first-level cache holds beside their windows, and
/// then of channels: tiles of few lines read those between them several times, and pad them.
fn planes([channel, row, line]: [usize; 3], stride: i64, loops: &Loops, tile: &mut [i64]) -> bool {
    let [channels, rows, width] = [channel, row, line].map(|d| loops.extents[d]);
    if rows == DYNAMIC || channels == DYNAMIC || !(1..=LONGEST_LINE).contains(&width) || stride < 1 {
        return false;
    }
    // Elements of the image for each line of the result.
    let elements = width * stride * stride;
    tile[line] = width;
    tile[row] = known_tile(rows, (LINE_ELEMENTS / elements).max(1));
    tile[channel] = known_tile(channels, (LINE_ELEMENTS / (elements * tile[row])).clamp(1, TASK_CHANNELS[1]));
    true
}

/// Channels whose filters stay in the cache for all lines.
fn packed_channels(op: Op, found: &ConvolutionLoops, extents: &[i64]) -> i64 {
    let size = op.operand(1 - found.input).ty().element().element_size_bytes().map_or(4, |bytes| bytes as i64);
    let sizes = found.k.iter().chain(&found.window).map(|d| extents[*d]);
    let filter = sizes.fold(size, i64::saturating_mul).max(1);
    (FILTER_BYTES / filter).clamp(TASK_CHANNELS[1], PACKED_CHANNELS)
}

/// Whether both factors are integers of at most 16 bits: code generation packs groups of their terms.
fn is_narrow(op: Op) -> bool {
    (0..2).all(|input| op.operand(input).ty().element().integer_width().is_some_and(|bits| bits <= 16))
}

/// As [`task_tile`]; a loop of dynamic extent is cut by `wanted`.
fn known_tile(extent: i64, wanted: i64) -> i64 {
    if extent == DYNAMIC { wanted } else { task_tile(extent.max(1), wanted, 1) }
}

/// Keeps loops that cannot be tiled whole, and the grid within its limits.
fn finish(mut tile: Vec<i64>, loops: &Loops) -> Vec<i64> {
    for (t, can) in tile.iter_mut().zip(&loops.tileable) {
        *t = if *can { *t } else { 0 };
    }
    // Loops whole in a tile first: the grid has nothing of them.
    let whole = (0..tile.len()).filter(|d| loops.extents[*d] > 0 && tile[*d] >= loops.extents[*d]).collect::<Vec<_>>();
    for d in whole.into_iter().rev() {
        if tile.iter().filter(|t| **t > 0).count() > MAX_GRID_RANK {
            tile[d] = 0;
        }
    }
    kernel::fit_grid(&mut tile, loops);
    keep_one_cut(&mut tile, loops);
    tile
}

/// One row of the first loops, and about a task's elements of the last: a divisor, so that intermediates of a task have
/// static sizes.
fn rows(dispatch: &Dispatch, loops: &Loops) -> Vec<i64> {
    let rank = dispatch.row_loops().unwrap_or(0);
    let length: i64 = dispatch.inner_extents().iter().map(|e| linalg::known(*e)).product();
    let mut tile = vec![1; rank];
    if let (Some(last), Some(extent)) = (tile.last_mut(), loops.extents[..rank].last()) {
        let extent = if *extent == DYNAMIC { 1 } else { linalg::known(*extent) };
        let rows = |elements: i64| {
            let wanted = (elements / length.max(1)).max(1);
            (1..=(2 * wanted).min(extent)).rev().find(|d| extent % d == 0).unwrap_or(1)
        };
        let few = rows(LINE_ELEMENTS);
        *last = if length >= LONG_ROW && extent / few >= MANY_TASKS { rows(MANY_ELEMENTS) } else { few };
    }
    tile
}

/// One row of each loop, and of queries those whose scores a task holds.
fn attention(dispatch: &Dispatch) -> Vec<i64> {
    let shape = Shape::of(dispatch).expect("invariant: the class says that it has one");
    let mut tile = vec![1; shape.rows.len()];
    if let Some(query) = shape.query {
        tile[query] = shape.task_rows().expect("invariant: it was asked before the dispatches were joined");
    }
    tile
}

fn keep_one_cut(tile: &mut [i64], loops: &Loops) {
    if tile.iter().all(|t| *t == 0) {
        let last = (0..tile.len()).rev().find(|i| loops.tileable[*i]);
        if let Some(i) = last {
            tile[i] = linalg::known(loops.extents[i]);
        }
    }
}

/// A tile of about `wanted` that divides `extent`; else the whole extent, else `wanted`.
fn task_tile(extent: i64, wanted: i64, register: i64) -> i64 {
    if extent <= wanted + wanted / 2 {
        return extent;
    }
    let whole = if extent <= MAX_WHOLE { extent } else { wanted };
    even_tile(extent, wanted, register).unwrap_or(whole)
}

/// The divisor of `extent` between half and twice `wanted` whose rest beyond whole registers takes the smallest share of
/// vectors, one for each power of two in it; of equal ones the closest to `wanted`.
fn even_tile(extent: i64, wanted: i64, register: i64) -> Option<i64> {
    let candidates = ((wanted / 2).max(1)..=wanted * 2).filter(|d| extent % d == 0);
    let empty = |d: i64| i64::from((d % register).count_ones()) * register - d % register;
    candidates.min_by_key(|d| (empty(*d) * 64 / d, (d - wanted).abs()))
}
