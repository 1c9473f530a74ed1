//! The cost model for GPUs: kernel class and tile sizes of a dispatch. Later phases obey the choice.
//!
//! The constants are measured. On software adapters (subgroups of 8 lanes, run one after another) the order of a subgroup's
//! accesses and the number of load instructions count; workgroup memory and barriers cost more than they save.

use crate::deviation::{Deviation, Scale};
use crate::dispatch::Dispatch;
use crate::grid::MAX_GRID_RANK;
use crate::kernel_images::{self, ImageTile};
use crate::kernel_matrices;
use crate::large_tiles::{LARGE_TILE, MANY_PAIRS, is_large_product};
use crate::linalg::{self, Loops, known};
use crate::{kernel_attention, kernel_columns, kernel_rows, products};
use monopour_contract::{KernelChoice, KernelClass, Sharing};
use monopour_ir::{Attr, Context, DYNAMIC, Op};
use monopour_program::GpuDescription;

/// Workgroups per dimension that every API takes.
const MAX_GRID: i64 = 65_535;
/// Columns of a product that leave most lanes idle.
pub(crate) const FEW_COLUMNS: i64 = 4;
/// Rows and columns of a tile that is transposed: a subgroup's accesses of four bytes are whole lines on both sides.
const TRANSPOSED_TILE: i64 = 32;
/// Rows of a product that one invocation has all of.
const FEW_ROWS: i64 = 8;
/// Elements of a pointwise tile on hardware: a vector for each of its invocations. Twice and four times as many where
/// that leaves [`MANY_WORKGROUPS`]: the largest GPUs have room for about 1,000 at once.
const POINTWISE_TILE: i64 = 1_024;
const MANY_WORKGROUPS: i64 = 4_096;
/// Most vectors of a pointwise tile that an invocation has in flight.
const MAX_VECTORS: i64 = 4;

/// The kernel of one dispatch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Kernel {
    /// Per loop of the root: the tile size, or 0 for a loop that is not tiled.
    pub tile: Vec<i64>,
    /// The choice for later phases; its tile is that of the grid.
    choice: KernelChoice,
}

impl Kernel {
    /// A kernel of this choice over tiles of these loops.
    pub fn new(tile: Vec<i64>, choice: KernelChoice) -> Self {
        Self { choice: KernelChoice { tile: grid_tile(&tile), ..choice }, tile }
    }
    /// The same choice over other tiles.
    pub fn over(self, tile: Vec<i64>) -> Self {
        Self::new(tile, self.choice)
    }
    /// The fallback loop nest over tiles of one element in `rank` grid dimensions.
    pub fn generic(rank: usize, invocations: i32) -> Self {
        let choice = KernelChoice {
            workgroup_size: [invocations, 1, 1],
            register_tile: vec![1],
            reduction_step: 1,
            ..KernelChoice::default()
        };
        Self::new(vec![1; rank], choice)
    }
    /// The tile and the choice, as text.
    pub fn text(&self, cx: Context<'_>) -> String {
        format!("{:?} {}", self.tile, self.to_attr(cx))
    }
    /// The same kernel under a name, by which its time is found.
    pub fn measured_as(self, key: &str) -> Self {
        Self { choice: KernelChoice { measured_as: Some(key.to_owned()), ..self.choice }, ..self }
    }
    /// Whether invocations share what they read of the factors of a product, whose reduction may be cut: windows on matrices are
    /// whole.
    pub fn may_be_cut(&self) -> bool {
        match (self.choice.class, self.choice.sharing) {
            (KernelClass::Contraction, Sharing::Workgroup | Sharing::Cooperative) => true,
            (KernelClass::Convolution, sharing) => sharing == Sharing::Workgroup,
            _ => false,
        }
    }
    /// `monopour.kernel`.
    pub fn to_attr<'c>(&self, cx: Context<'c>) -> Attr<'c> {
        Attr::from_fields(cx, &self.choice.encode())
    }
}

/// Tile sizes of the grid's dimensions; the first loops merged where there are more than three.
fn grid_tile(tile: &[i64]) -> Vec<i64> {
    let cut: Vec<i64> = tile.iter().copied().filter(|t| *t > 0).collect();
    let merged = (cut.len() + 1).saturating_sub(MAX_GRID_RANK);
    if merged < 2 { cut } else { [&[cut[..merged].iter().product()], &cut[merged..]].concat() }
}

/// Chooses for a GPU: what the cost model says, or a deviation from it.
pub(crate) fn for_gpu(dispatch: &Dispatch, loops: &Loops, gpu: &GpuDescription, by: Deviation) -> Kernel {
    let (mut tile, choice) = match dispatch.class() {
        KernelClass::Contraction => gpu_contraction(dispatch, loops, gpu, by),
        KernelClass::Convolution => gpu_convolution(dispatch, loops, gpu, by),
        KernelClass::Row => kernel_rows::choose(dispatch, loops, gpu, by),
        KernelClass::Elementwise => gpu_elementwise(dispatch, loops, gpu, by),
        KernelClass::Attention => kernel_attention::choose(dispatch, gpu, by),
        KernelClass::Generic | KernelClass::Column => {
            let columns = if by.is_plain { None } else { kernel_columns::choose(dispatch, loops, gpu) };
            columns.unwrap_or_else(|| gpu_generic(loops, gpu, by))
        }
    };
    // `rows_tile` merges the loops of its forall itself.
    if !matches!(dispatch.class(), KernelClass::Row | KernelClass::Attention) {
        fit_grid(&mut tile, loops);
    }
    Kernel::new(tile, choice)
}

/// The subgroup size, where it is known and shuffles are the best way to share operands.
pub(crate) fn shuffled_subgroup(gpu: &GpuDescription) -> Option<i64> {
    (gpu.is_cpu_adapter() && gpu.exact_subgroup_size() == Some(8)).then_some(8)
}

/// How operands are shared without shuffles: barriers cost more than they save on software adapters.
fn unshuffled(gpu: &GpuDescription) -> Sharing {
    if gpu.is_cpu_adapter() { Sharing::None } else { Sharing::Workgroup }
}

/// The widest access of at most `wanted` elements that divides one of the extents, as a dynamic one may.
pub(crate) fn common_width(wanted: i64, extents: &[i64]) -> i64 {
    let divides = |w: i64| extents.iter().any(|e| *e == DYNAMIC || e % w == 0);
    [wanted, 4, 2, 1].into_iter().find(|w| divides(*w)).unwrap_or(1)
}

fn gpu_contraction(
    dispatch: &Dispatch,
    loops: &Loops,
    gpu: &GpuDescription,
    by: Deviation,
) -> (Vec<i64>, KernelChoice) {
    let op = dispatch.contraction().expect("invariant: the class says that there is one");
    let roles = products::contraction_loops(op).expect("invariant: a contraction");
    let all = linalg::loops(op).map(|l| l.extents).unwrap_or_default();
    let results = op.num_results() as i64;
    let extent = |d: Option<&usize>| d.and_then(|d| all.get(*d)).copied().unwrap_or(1);
    // An upper bound of the access width; distribution narrows it for rows that are not multiples of it.
    let contiguous = [extent(roles.n.last()), extent(roles.k.last())];
    if !by.is_plain {
        let skinny = kernel_rows::choose_product(dispatch, (&roles, &all), loops, (gpu, by));
        if let Some(kernel) = skinny.or_else(|| kernel_columns::choose_product(op, (&roles, &all), loops, gpu)) {
            return kernel;
        }
    }
    // With few columns, lanes lie along the rows.
    let few = roles.n.is_empty() || roles.n.iter().map(|d| known(loops.extents[*d])).product::<i64>() <= FEW_COLUMNS;
    // Batches and all but the last rows and columns are tiled by one.
    let sized = |rows: i64, columns: i64| {
        let rows = if few { columns } else { rows };
        let mut tile = vec![0; loops.extents.len()];
        let set = |tile: &mut Vec<i64>, dims: &[usize], size: i64| {
            for (i, d) in dims.iter().enumerate() {
                tile[*d] = if i + 1 == dims.len() { size.min(known(loops.extents[*d])) } else { 1 };
            }
        };
        set(&mut tile, &roles.batch, 1);
        set(&mut tile, &roles.m, rows);
        set(&mut tile, &roles.n, columns);
        tile
    };
    if shuffled_subgroup(gpu).is_some() {
        let is_tall = roles.m.last().is_some_and(|d| known(loops.extents[*d]) >= 32);
        let ([rows, columns], choice) = shuffled_tile((few, is_tall), results, common_width(8, &contiguous), by);
        return (sized(rows, columns), choice);
    }
    let rows: i64 = roles.m.iter().map(|d| known(loops.extents[*d])).product();
    if rows <= FEW_ROWS && !few && !gpu.is_cpu_adapter() {
        // About as many accumulators for several products as for one, and as many workgroups.
        let columns = by.size.of(4 / (results as u64).next_power_of_two().min(4) as i64);
        let choice = few_rows(rows, columns, common_width(columns, &contiguous));
        return (sized(rows, 64 * columns), KernelChoice { reduction_step: by.step.of(8), ..choice });
    }
    if let Some(kernel) = product_of_images(op, &roles, loops, (gpu, by)) {
        return kernel;
    }
    if let Some((tile, choice)) = kernel_matrices::product(op, &roles, &all, gpu).filter(|_| !by.is_plain) {
        let tile = by.size.choose([64, tile, LARGE_TILE]);
        return (sized(tile, tile), KernelChoice { reduction_step: by.step.of(choice.reduction_step), ..choice });
    }
    let is_large = by.size.choose([false, is_large_product(&roles, &loops.extents, (gpu, MANY_PAIRS)), true]);
    let ([rows, columns], choice) = workgroup_product(results, is_large, common_width(4, &contiguous), gpu);
    (sized(rows, columns), KernelChoice { reduction_step: by.step.of(choice.reduction_step), ..choice })
}

/// A product on hardware whose rows or columns are positions of images: tiles of several lines.
fn product_of_images(
    op: Op,
    roles: &products::ContractionLoops,
    loops: &Loops,
    (gpu, by): (&GpuDescription, Deviation),
) -> Option<(Vec<i64>, KernelChoice)> {
    if by.is_plain || gpu.is_cpu_adapter() || op.num_results() > 1 || linalg::num_inputs(op) > 2 {
        return None;
    }
    let roles = kernel_images::of_product(roles, &loops.extents)?;
    let (tile, choice) = match kernel_matrices::convolution(op, &roles, loops, gpu) {
        Some(kernel) => kernel,
        None => hardware_convolution(op, &roles, (kernel_images::tile(&roles, loops)?, loops), (gpu, by)),
    };
    Some((tile, KernelChoice { class: KernelClass::Contraction, ..choice }))
}

/// Rows and columns of a product whose factors pass through workgroup memory, and its kernel.
fn workgroup_product(results: i64, is_large: bool, width: i64, gpu: &GpuDescription) -> ([i64; 2], KernelChoice) {
    if results > 1 {
        let choice = staged_product(4, 16, width, gpu);
        return ([64, 32], KernelChoice { workgroup_size: [8, 16, 1], ..choice });
    }
    // Twice the rows and columns of an invocation halve what it loads from workgroup memory for each product.
    if is_large {
        let choice = staged_product(8, 16, width, gpu);
        return ([64, LARGE_TILE], KernelChoice { workgroup_size: [16, 8, 1], ..choice });
    }
    ([64, 64], staged_product(4, 16, width, gpu))
}

/// A product whose factors pass through workgroup memory; each invocation has a square of the result.
fn staged_product(registers: i64, step: i64, vector_width: i64, gpu: &GpuDescription) -> KernelChoice {
    KernelChoice {
        class: KernelClass::Contraction,
        workgroup_size: [16, 16, 1],
        register_tile: vec![registers, registers],
        reduction_step: step,
        vector_width,
        sharing: unshuffled(gpu),
        ..KernelChoice::default()
    }
}

/// Rows and columns of a product whose factors are shuffled, and its kernel; `few`: of columns, `is_tall`: of 32 rows or more.
fn shuffled_tile((few, is_tall): (bool, bool), results: i64, width: i64, by: Deviation) -> ([i64; 2], KernelChoice) {
    // Several products are as many loops: a shorter pass keeps the driver's time to compile them near that of one.
    let step = by.step.of(if results > 1 { 4 } else { 8 });
    let choice = KernelChoice { reduction_step: step, ..shuffled_product(width) };
    if few {
        // Each row is a stream of memory, half of whose cache lines would be lost among 64 streams.
        return ([32, 32], KernelChoice { reduction_step: by.step.of(16), ..choice });
    }
    // Loads of single elements cost the most: a square has the fewest, 16 rows of 64 columns a quarter more.
    let is_square = width == 1 && is_tall;
    match by.size {
        Scale::Less => ([8, 64], KernelChoice { register_tile: vec![8, 8], ..choice }),
        size if is_square == (size == Scale::AsIs) => ([32, 32], KernelChoice { register_tile: vec![32, 4], ..choice }),
        _ => ([16, 64], choice),
    }
}

/// A product whose factors are shuffled between the lanes of a subgroup.
fn shuffled_product(vector_width: i64) -> KernelChoice {
    KernelChoice {
        class: KernelClass::Contraction,
        workgroup_size: [8, 1, 1],
        register_tile: vec![16, 8],
        reduction_step: 8,
        vector_width,
        sharing: Sharing::Subgroup,
        subgroup_size: Some(8),
        ..KernelChoice::default()
    }
}

/// A product of few rows on hardware: each invocation has columns of its own, and all rows, so that copies in workgroup
/// memory would have one reader.
fn few_rows(rows: i64, columns: i64, vector_width: i64) -> KernelChoice {
    KernelChoice {
        class: KernelClass::Contraction,
        workgroup_size: [64, 1, 1],
        register_tile: vec![rows, columns],
        reduction_step: 8,
        vector_width,
        sharing: Sharing::None,
        ..KernelChoice::default()
    }
}

/// Part of an image row, and a block of channels.
fn gpu_convolution(
    dispatch: &Dispatch,
    loops: &Loops,
    gpu: &GpuDescription,
    by: Deviation,
) -> (Vec<i64>, KernelChoice) {
    let op = dispatch.main();
    let roles = products::convolution_loops(op).expect("invariant: the class says that it is one");
    let is_asked = !gpu.is_cpu_adapter() && !by.is_plain;
    if let Some(kernel) = kernel_matrices::convolution(op, &roles, loops, gpu).filter(|_| is_asked) {
        return kernel;
    }
    if let Some(image) = kernel_images::tile(&roles, loops).filter(|_| is_asked) {
        return hardware_convolution(op, &roles, (image, loops), (gpu, by));
    }
    let (channels, shuffled) = ([&roles.channels[..], &roles.depth[..]].concat(), shuffled_subgroup(gpu).is_some());
    let mut tile: Vec<i64> = loops.tileable.iter().map(|t| i64::from(*t)).collect();
    let mut set = |d: Option<&usize>, size: i64| {
        if let Some(d) = d.filter(|d| tile[**d] > 0) {
            tile[*d] = size.min(known(loops.extents[*d]));
        }
    };
    let positions = if shuffled { by.size.of(14) } else { 32 };
    set(roles.image.last(), positions);
    set(channels.last(), 64);
    let run = channels.last().map_or(1, |d| loops.extents[*d]);
    let choice = KernelChoice {
        class: KernelClass::Convolution,
        workgroup_size: if shuffled { [8, 1, 1] } else { [16, 16, 1] },
        register_tile: if shuffled { vec![positions, 8] } else { vec![2, 4] },
        reduction_step: by.step.of(if shuffled { 8 } else { 16 }),
        vector_width: common_width(if shuffled { 8 } else { 4 }, &[run]),
        sharing: if shuffled { Sharing::Subgroup } else { unshuffled(gpu) },
        subgroup_size: shuffled.then_some(8),
        ..KernelChoice::default()
    };
    (tile, choice)
}

/// Positions of images by channels, as the rows and columns of a product whose factors are copied to workgroup memory.
fn hardware_convolution(
    op: Op,
    roles: &products::ConvolutionLoops,
    (image, loops): (ImageTile, &Loops),
    (gpu, by): (&GpuDescription, Deviation),
) -> (Vec<i64>, KernelChoice) {
    let all = linalg::loops(op).map(|l| l.extents).unwrap_or_default();
    let extent = |dims: &[usize]| dims.last().and_then(|d| all.get(*d)).map_or(1, |e| known(*e));
    // A line of a window with few channels is one pass.
    let (channels, line) = (extent(&roles.k), extent(&roles.k) * extent(&roles.window));
    let [down, across] = image.positions_and_channels();
    let step = match channels {
        32.. if down + across <= 96 => 32,
        ..16 if line <= 32 => line,
        _ => 16,
    };
    // Copies of both factors, rows of the one padded by a vector.
    let room = i64::from(gpu.limits.max_workgroup_storage_bytes) / 4 - 4 * down.max(across);
    let step = by.step.of(step).min(room / (down + across)).max(1);
    let channels_last = roles.channels.last() > roles.image.last();
    let [positions, columns] = image.layout.registers;
    let contiguous = if channels_last { roles.channels.last() } else { roles.image.last() };
    let run = contiguous.map_or(1, |d| loops.extents[*d]);
    let choice = KernelChoice {
        class: KernelClass::Convolution,
        workgroup_size: [i32::try_from(image.layout.invocations.iter().product::<i64>()).unwrap_or(64), 1, 1],
        register_tile: if channels_last { vec![positions, columns] } else { vec![columns, positions] },
        reduction_step: step,
        vector_width: common_width(4, &[run, channels]),
        sharing: Sharing::Workgroup,
        ..KernelChoice::default()
    };
    (image.tile, choice)
}

fn gpu_elementwise(
    dispatch: &Dispatch,
    loops: &Loops,
    gpu: &GpuDescription,
    by: Deviation,
) -> (Vec<i64>, KernelChoice) {
    if let Some(turned) = turned_loop(dispatch, loops).filter(|_| !gpu.is_cpu_adapter() && !by.is_plain) {
        return gpu_transpose(turned, loops);
    }
    // On a software adapter one subgroup walks a long contiguous range; hardware hides latency by many invocations.
    let (invocations, widest, target) = if gpu.is_cpu_adapter() {
        (8, 8, task_elements(loops, by.size.of(16_384)))
    } else {
        (256, 4, pointwise_tile(loops))
    };
    // A vector for each invocation is the least.
    let target = if gpu.is_cpu_adapter() { target } else { by.size.of(target).max(POINTWISE_TILE) };
    let tile = contiguous_tile(loops, target);
    let width = elementwise_width(dispatch.root, loops, (&tile, widest));
    let is_large = !gpu.is_cpu_adapter() && target > POINTWISE_TILE;
    let vectors = if is_large { (target / (i64::from(invocations) * width)).min(MAX_VECTORS) } else { 1 };
    let choice = KernelChoice {
        class: KernelClass::Elementwise,
        workgroup_size: [invocations, 1, 1],
        register_tile: vec![width * vectors],
        reduction_step: 1,
        vector_width: width,
        ..KernelChoice::default()
    };
    (tile, choice)
}

/// Elements of a pointwise tile on hardware.
fn pointwise_tile(loops: &Loops) -> i64 {
    let tileable = loops.extents.iter().zip(&loops.tileable).filter(|(_, t)| **t).map(|(extent, _)| *extent);
    // Tiles of unknown extents are guarded: one vector each.
    let total = tileable.fold(1i64, |total, e| if e == DYNAMIC { 0 } else { total.saturating_mul(e) });
    let fits = |vectors: &i64| total / (vectors * POINTWISE_TILE) >= MANY_WORKGROUPS;
    POINTWISE_TILE * [MAX_VECTORS, 2].into_iter().find(fits).unwrap_or(1)
}

/// The loop along which an input is contiguous, if that is another one than the last, along which the result is.
fn turned_loop(dispatch: &Dispatch, loops: &Loops) -> Option<usize> {
    let root = dispatch.root;
    let maps = linalg::indexing_maps(root).filter(|_| linalg::is_elementwise(root) && root.num_results() == 1)?;
    let (inputs, result) = maps.split_at(linalg::num_inputs(root));
    let last = loops.extents.len().checked_sub(1).filter(|_| result.iter().all(|m| m.is_identity()))?;
    let innermost = inputs.iter().filter_map(|map| {
        let dims = map.dim_positions()?;
        dims.last().copied().filter(|d| *d != last && dims.contains(&last))
    });
    innermost.into_iter().next().filter(|d| loops.tileable[*d] && loops.tileable[last])
}

/// A transposed input: square tiles, whose elements pass through workgroup memory.
fn gpu_transpose(turned: usize, loops: &Loops) -> (Vec<i64>, KernelChoice) {
    let last = loops.extents.len() - 1;
    let mut tile: Vec<i64> = loops.tileable.iter().map(|t| i64::from(*t)).collect();
    for d in [turned, last] {
        tile[d] = TRANSPOSED_TILE.min(known(loops.extents[d]));
    }
    let choice = KernelChoice {
        class: KernelClass::Elementwise,
        workgroup_size: [256, 1, 1],
        register_tile: vec![1],
        reduction_step: 1,
        vector_width: 1,
        sharing: Sharing::Workgroup,
        ..KernelChoice::default()
    };
    (tile, choice)
}

/// Lanes of one access: a divisor of every contiguous run of a tile, and of where it begins.
fn elementwise_width(root: Op, loops: &Loops, (tile, widest): (&[i64], i64)) -> i64 {
    let in_vectors = matches!(root.result(0).ty().element().float_width(), Some(16 | 32));
    let (Some(extent), Some(cut), true) = (loops.extents.last(), tile.last(), in_vectors) else { return 1 };
    if *extent == DYNAMIC {
        return 1;
    }
    let run = if *cut == 0 { *extent } else { *cut };
    [widest, 4, 2, 1].into_iter().find(|w| extent % w == 0 && run % w == 0).unwrap_or(1)
}

fn gpu_generic(loops: &Loops, gpu: &GpuDescription, by: Deviation) -> (Vec<i64>, KernelChoice) {
    let target = if gpu.is_cpu_adapter() { task_elements(loops, by.size.of(1_024)) } else { by.size.of(256) };
    let choice = KernelChoice {
        class: KernelClass::Generic,
        workgroup_size: [64, 1, 1],
        register_tile: vec![1],
        reduction_step: 1,
        // An upper bound: distribution uses what is aligned, for column reductions and windows over channels.
        vector_width: if gpu.is_cpu_adapter() { 8 } else { 4 },
        ..KernelChoice::default()
    };
    (contiguous_tile(loops, target), choice)
}

/// Elements per tile: at most `most`, but at least about sixteen tiles while they stay worth starting.
pub(crate) fn task_elements(loops: &Loops, most: i64) -> i64 {
    let tileable = loops.extents.iter().zip(&loops.tileable).filter(|(_, t)| **t);
    // Loops of unknown extent count as long ones: many of them have no product.
    let total = tileable.fold(1i64, |total, (extent, _)| total.saturating_mul(known(*extent)));
    let share = ((total / 16).max(1) + 63) / 64 * 64;
    share.clamp(64.min(most), most)
}

/// A tile of about `target` elements, contiguous in row-major order: inner loops whole, one cut, outer ones by 1.
pub(crate) fn contiguous_tile(loops: &Loops, target: i64) -> Vec<i64> {
    let rank = loops.extents.len();
    let mut tile = vec![0; rank];
    let mut room = target.max(1);
    for i in (0..rank).rev().filter(|i| loops.tileable[*i]) {
        let extent = known(loops.extents[i]);
        // A loop of dynamic extent is always cut: its tile would be unbounded.
        if extent <= room && loops.extents[i] != DYNAMIC {
            room /= extent;
            continue;
        }
        // A cut in the innermost loop keeps accesses of eight lanes aligned.
        let step = if i + 1 == rank && room >= 8 { room / 8 * 8 } else { room };
        tile[i] = step;
        room = 1;
    }
    // A tile that covers everything still needs one loop to run over.
    let first = (0..rank).find(|i| loops.tileable[*i]);
    if let (true, Some(i)) = (tile.iter().all(|t| *t == 0), first) {
        tile[i] = known(loops.extents[i]);
    }
    tile
}

/// At most three loops in the grid where they cannot be merged ([`crate::grid`]), none with more tiles than an API takes.
pub(crate) fn fit_grid(tile: &mut [i64], loops: &Loops) {
    while tile.iter().filter(|t| **t > 0).count() > MAX_GRID_RANK {
        let cuts = (0..tile.len()).filter(|i| tile[*i] > 0);
        let merged = cuts.clone().count() + 1 - MAX_GRID_RANK;
        if cuts.clone().take(merged).skip(1).all(|i| loops.extents[i] != DYNAMIC) {
            break;
        }
        let least = cuts.min_by_key(|i| known(loops.extents[*i])).expect("invariant: more than three are cut");
        tile[least] = 0;
    }
    for (t, extent) in tile.iter_mut().zip(&loops.extents) {
        // By doubling, a tile stays a multiple of what its invocations access at once.
        while *t > 0 && (known(*extent) + *t - 1) / *t > MAX_GRID {
            *t *= 2;
        }
    }
}
