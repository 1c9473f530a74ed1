//! Chooses the layouts of images, for CPUs: channels in blocks, or last, where convolutions gain more by it than copies at
//! the borders cost.
//!
//! Before / after (a block of 32 channels, two registers of the target):
//!
//! ```text
//! %r = generic (o, y, x, c, i, j)                        %r = generic (o, y, x, o', c, i, j, c')
//!        %image[c, y + i, x + j] : [64, 58, 58]                 %image[c, y + i, x + j, c'] : [2, 58, 58, 32]
//!        %w[o, c, i, j]          : [128, 64, 3, 3]              %w[o, c, i, j, c', o']      : [4, 2, 3, 3, 32, 32]
//!        %r[o, y, x]             : [128, 56, 56]                %r[o, y, x, o']             : [4, 56, 56, 32]
//! ```
//!
//! A vector is then of channels, whatever the length of a line and its stride: lines of 14 and 7 leave no lane empty. The
//! elements of a line are near each other, and those of a filter are read in the order in which they lie in memory.
//! Channels that no block divides are last, in one block.
//!
//! Decide, then rewrite: `groups` puts values that must share a layout into groups and weighs each, `rewrite` retypes the
//! values of those that gain. Weights get their layout here, once.
//!
//! Requires: what [`crate::import`] ensures. Ensures: the same; signatures keep their types.
//! Images of 16-bit floats, and rows that meet constant weights, are stored as f32 (`wide`); lines get a row (`lines`), the planes of
//! volumes are in front of their channels (`volumes`), tokens are transposed as images (`tokens`).
//! Limits: known sizes but of batches, constant filters, integers, and floats of 32 bits and more. Everything that is not known
//! to follow (returns, reshapes, calls, nested regions) reads a copy in the old layout.

mod copies;
mod filters;
mod groups;
mod lines;
mod rewrite;
mod spread;
mod tokens;
mod volumes;
mod wide;

pub(crate) use groups::REGISTERS;

use crate::import::WeightTable;
use monopour_ir::{Diagnostics, Module, Rewriter, run_passes};
use monopour_program::{CpuTarget, GpuDescription};

/// How the dimensions `[.., channels, height, width]` of an image lie in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Layout {
    /// `[.., height, width, channels]`
    Last,
    /// `[.., channels / n, height, width, n]`
    Blocks(i64),
}

impl Layout {
    /// The dimensions of an image in this layout.
    fn shape(self, shape: &[i64]) -> Vec<i64> {
        let (front, [channels, height, width]) = parts(shape);
        let blocks = match self {
            Self::Last => None,
            Self::Blocks(size) => Some(channels / size),
        };
        let last = blocks.map_or(channels, |blocks| channels / blocks.max(1));
        front.iter().copied().chain(blocks).chain([height, width, last]).collect()
    }
}

/// The dimensions in front of an image's three, and those.
fn parts<T: Copy>(shape: &[T]) -> (&[T], [T; 3]) {
    let (front, image) = shape.split_at(shape.len() - 3);
    (front, [image[0], image[1], image[2]])
}

/// Chooses the layouts of a module's images; `weights` gets the filters in theirs.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub fn run(module: &Module, weights: &mut WeightTable, cpu: &CpuTarget) -> Result<(), Diagnostics> {
    run_passes(module.op(), "builtin.module(func.func(linalg-generalize-named-ops))")?;
    let mut rw = Rewriter::new(module.context());
    crate::widen::run(module, weights)?;
    wide::run(module, &mut rw)?;
    groups::unshare(module, &mut rw);
    tokens::run(module, &mut rw)?;
    spread::run::<lines::Rows>(module, &mut rw)?;
    spread::run::<volumes::Planes>(module, &mut rw)?;
    let decided = groups::decide(module, Some(cpu));
    if !decided.layouts.is_empty() {
        rewrite::run(&decided, weights, &mut rw)?;
    }
    filters::run(module, weights, cpu, &mut rw)
}

/// Puts the channels of images last, for hardware GPUs: positions are then rows of a product whose reduction and columns are
/// contiguous.
///
/// # Errors
/// As [`run`].
pub fn run_on_gpu(module: &Module, weights: &mut WeightTable, gpu: &GpuDescription) -> Result<(), Diagnostics> {
    if gpu.is_cpu_adapter() {
        return Ok(());
    }
    run_passes(module.op(), "builtin.module(func.func(linalg-generalize-named-ops))")?;
    let mut rw = Rewriter::new(module.context());
    groups::unshare(module, &mut rw);
    let decided = groups::decide(module, None);
    if decided.layouts.is_empty() { Ok(()) } else { rewrite::run(&decided, weights, &mut rw) }
}
