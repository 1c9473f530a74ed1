//! The cost model for GPUs: which kernel a dispatch becomes, and of which sizes. Everything after `tile` obeys what is chosen here.
//!
//! The numbers are measured ones. On software adapters (subgroups of 8 lanes, run one after another) what counts is the order in
//! which a subgroup touches memory and the number of load instructions; workgroup memory and barriers cost more than they save.

use crate::linalg::{self, Loops};
use monopour_ir::{Attr, Context, Op, Type};
use monopour_program::GpuDescription;

/// Workgroups per dimension that every API takes.
const MAX_GRID: i64 = 65_535;
/// Dimensions of a grid.
const MAX_GRID_RANK: usize = 3;

/// What a dispatch computes; decides which strategies distribution tries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    Elementwise,
    Contraction,
    Generic,
}

impl Class {
    fn as_str(self) -> &'static str {
        match self {
            Class::Elementwise => "elementwise",
            Class::Contraction => "contraction",
            Class::Generic => "generic",
        }
    }
}

/// The ops of one dispatch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dispatch {
    pub number: i64,
    pub root: Op,
    /// The contraction that the root reads, where that is another op.
    pub producer: Option<Op>,
}

impl Dispatch {
    /// The matrix product of the dispatch.
    pub fn contraction(&self) -> Option<Op> {
        self.producer.or(self.root.is("linalg.matmul").then_some(self.root))
    }
    pub fn class(&self) -> Class {
        if self.contraction().is_some() {
            Class::Contraction
        } else if self.root.is("linalg.fill") || linalg::is_elementwise(self.root) {
            Class::Elementwise
        } else {
            Class::Generic
        }
    }
}

/// The choice for one dispatch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Kernel {
    pub class: Class,
    /// Per loop of the root: the tile size, or 0 for a loop that is not cut.
    pub tile: Vec<i64>,
    pub workgroup_size: [i32; 3],
    pub register_tile: Vec<i64>,
    pub reduction_step: i64,
    pub vector_width: i64,
    /// Whether operands are shared by subgroup shuffles.
    pub shuffles: bool,
    pub subgroup_size: Option<i64>,
}

impl Kernel {
    /// The fallback loop nest over tiles of one element in `rank` grid dimensions.
    pub fn generic(rank: usize, invocations: i32) -> Self {
        Self {
            class: Class::Generic,
            tile: vec![1; rank],
            workgroup_size: [invocations, 1, 1],
            register_tile: vec![1],
            reduction_step: 1,
            vector_width: 1,
            shuffles: false,
            subgroup_size: None,
        }
    }
    /// Tile sizes of the loops that the grid runs over.
    pub fn grid_tile(&self) -> Vec<i64> {
        self.tile.iter().copied().filter(|t| *t > 0).collect()
    }
    /// `monopour.kernel`.
    pub fn to_attr(&self, cx: Context) -> Attr {
        let mut entries = vec![
            ("class", Attr::string(cx, self.class.as_str())),
            ("reduction_step", Attr::i64(cx, self.reduction_step)),
            ("register_tile", Attr::dense_i64(cx, &self.register_tile)),
            ("share", Attr::string(cx, if self.shuffles { "subgroup" } else { "none" })),
            ("tile", Attr::dense_i64(cx, &self.grid_tile())),
            ("vector_width", Attr::i64(cx, self.vector_width)),
            ("workgroup_size", Attr::dense_i32(cx, &self.workgroup_size)),
        ];
        if let Some(size) = self.subgroup_size {
            entries.push(("subgroup_size", Attr::i64(cx, size)));
        }
        Attr::dict(cx, &entries)
    }
}

/// Chooses for a GPU.
pub(crate) fn for_gpu(dispatch: &Dispatch, loops: &Loops, gpu: &GpuDescription) -> Kernel {
    let mut kernel = match dispatch.class() {
        Class::Contraction => gpu_contraction(dispatch, loops, gpu),
        Class::Elementwise => gpu_elementwise(dispatch, loops, gpu),
        Class::Generic => gpu_generic(loops, gpu),
    };
    fit_grid(&mut kernel.tile, loops);
    kernel
}

fn gpu_contraction(dispatch: &Dispatch, loops: &Loops, gpu: &GpuDescription) -> Kernel {
    let op = dispatch.contraction().expect("invariant: the class says that there is one");
    let (n, k) = (loops.extents[1], linalg::matmul_reduction(op).unwrap_or(1));
    // The widest access that any operand allows; distribution narrows those whose rows are not multiples of it.
    let width = |wanted: i64| [wanted, 4, 2, 1].into_iter().find(|w| n % w == 0 || k % w == 0).unwrap_or(1);
    let shuffles = gpu.is_cpu_adapter() && gpu.exact_subgroup_size() == Some(8);
    if shuffles {
        return Kernel {
            class: Class::Contraction,
            tile: cut(loops, &[16, 64]),
            workgroup_size: [8, 1, 1],
            register_tile: vec![16, 8],
            reduction_step: 8,
            vector_width: width(8),
            shuffles,
            subgroup_size: Some(8),
        };
    }
    Kernel {
        class: Class::Contraction,
        tile: cut(loops, &[64, 64]),
        workgroup_size: [16, 16, 1],
        register_tile: vec![4, 4],
        reduction_step: 4,
        vector_width: width(4),
        shuffles,
        subgroup_size: None,
    }
}

fn gpu_elementwise(dispatch: &Dispatch, loops: &Loops, gpu: &GpuDescription) -> Kernel {
    // One subgroup walks a long contiguous range on a software adapter; hardware hides latency by many invocations.
    let (invocations, widest, target) =
        if gpu.is_cpu_adapter() { (8, 8, task_elements(loops, 16_384)) } else { (256, 4, 1_024) };
    let tile = contiguous_tile(loops, target);
    let width = elementwise_width(dispatch.root, loops, &tile, widest);
    Kernel {
        class: Class::Elementwise,
        tile,
        workgroup_size: [invocations, 1, 1],
        register_tile: vec![width],
        reduction_step: 1,
        vector_width: width,
        shuffles: false,
        subgroup_size: None,
    }
}

/// Lanes of one access: every run of contiguous elements of a tile must begin and end at a multiple of it.
fn elementwise_width(root: Op, loops: &Loops, tile: &[i64], widest: i64) -> i64 {
    let four_bytes = root.result(0).ty().element_size_bytes() == Some(4)
        && root.result(0).ty().element() == Type::f32(root.context());
    let (Some(extent), Some(cut), true) = (loops.extents.last(), tile.last(), four_bytes) else { return 1 };
    let run = if *cut == 0 { *extent } else { *cut };
    [widest, 4, 2, 1].into_iter().find(|w| extent % w == 0 && run % w == 0).unwrap_or(1)
}

fn gpu_generic(loops: &Loops, gpu: &GpuDescription) -> Kernel {
    let target = if gpu.is_cpu_adapter() { task_elements(loops, 1_024) } else { 256 };
    Kernel {
        class: Class::Generic,
        tile: contiguous_tile(loops, target),
        workgroup_size: [64, 1, 1],
        register_tile: vec![1],
        reduction_step: 1,
        vector_width: 1,
        shuffles: false,
        subgroup_size: None,
    }
}

/// Elements per tile: at most `most`, but at least about sixteen tiles while they stay worth starting.
pub(crate) fn task_elements(loops: &Loops, most: i64) -> i64 {
    let total: i64 = loops.extents.iter().zip(&loops.tileable).filter(|(_, t)| **t).map(|(e, _)| *e).product();
    let share = ((total / 16).max(1) + 63) / 64 * 64;
    share.clamp(64.min(most), most)
}

/// The first loops cut to `sizes`, the others whole.
fn cut(loops: &Loops, sizes: &[i64]) -> Vec<i64> {
    let size = |i: usize| sizes.get(i).map_or(0, |s| *s.min(&loops.extents[i]));
    (0..loops.extents.len()).map(size).collect()
}

/// A tile of about `target` elements that is contiguous in row-major order: inner loops whole, one cut, outer ones by 1.
pub(crate) fn contiguous_tile(loops: &Loops, target: i64) -> Vec<i64> {
    let rank = loops.extents.len();
    let mut tile = vec![0; rank];
    let mut room = target.max(1);
    for i in (0..rank).rev().filter(|i| loops.tileable[*i]) {
        let extent = loops.extents[i];
        if extent <= room {
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
        tile[i] = loops.extents[i];
    }
    tile
}

/// At most three loops in the grid, none with more tiles than an API takes.
pub(crate) fn fit_grid(tile: &mut [i64], loops: &Loops) {
    while tile.iter().filter(|t| **t > 0).count() > MAX_GRID_RANK {
        let cuts = (0..tile.len()).filter(|i| tile[*i] > 0);
        let least = cuts.min_by_key(|i| loops.extents[*i]).expect("invariant: more than three are cut");
        tile[least] = 0;
    }
    for (t, extent) in tile.iter_mut().zip(&loops.extents) {
        if *t > 0 && (extent + *t - 1) / *t > MAX_GRID {
            *t = (*t).max((extent + MAX_GRID - 1) / MAX_GRID);
        }
    }
}
