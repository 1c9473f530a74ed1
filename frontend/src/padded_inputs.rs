//! Products over a padded input of a program, or what would be copied like one: each tile pads the part that it reads.
//!
//! ```text
//! %f = scf.forall .. { linalg.fill ins(%zero) .. }        %r = scf.forall .. {
//! %p = tensor.insert_slice %x into %f[0, 3, 3] ..           %f = linalg.fill ins(%zero) outs(%e : tensor<3x7x33xf32>)
//! %r = scf.forall .. {                                      %s = tensor.extract_slice %x[0, max(%i - 3, 0), ..] ..
//!   %s = tensor.extract_slice %p[0, %i, %j] ..              %p = tensor.insert_slice %s into %f[0, max(3 - %i, 0), ..] ..
//!   linalg.generic ins(%s, %w) ..                           linalg.generic ins(%p, %w) ..
//! ```
//!
//! What a program computes is written where it is padded; an input lies where it is, and would be copied. So would what is
//! taken with dimensions merged, as groups of channels behind a product are, or an image that a 1x1 convolution reads too.
//!
//! Requires: what [`crate::tile`] ensures. Ensures: the same.
//! Limits: constants as pads; tiles of bounded size, at most [`MOST_ON_GPU`] or [`MOST_ON_CPU`] elements, in every padded
//! dimension at least as long as its pads; dispatches of class contraction or convolution, and on CPUs generic ones
//! (pools).

use crate::borders::{filled_value, size_of_new};
use crate::kernel_cpu;
use crate::pads::Padded;
use crate::rows_slice::affine;
use crate::specialize;
use crate::target::TargetDescription;
use monopour_contract::{KernelChoice, KernelClass, attributes};
use monopour_ir::typed::tensor::{extract_slice, insert_slice};
use monopour_ir::typed::{Index, Slice};
use monopour_ir::{
    AffineExpr, AffineExprKind, DYNAMIC, Diagnostics, InsertionPoint, Location, Module, Op, OpSpec, Rewriter, Type,
    Use, Value, ops,
};

/// Most elements of a padded tile: it shares workgroup memory with nothing else.
const MOST_ON_GPU: i64 = 2_048;
/// The same on the stack of a task, and in the first-level cache.
const MOST_ON_CPU: i64 = 8_192;

/// Pads the tiles of a module.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(crate) fn run(module: &Module, target: &TargetDescription) -> Result<(), Diagnostics> {
    let mut rw = Rewriter::new(module.context());
    for insertion in module.op().find_all(ops::tensor::INSERT_SLICE) {
        let Some(padding) = Padding::of(insertion, target) else { continue };
        let readers: Vec<Op> = insertion.result(0).uses().into_iter().map(|u| u.op).collect();
        if readers.is_empty() || !readers.iter().all(|reader| padding.fits(*reader, target)) {
            continue;
        }
        for reader in readers {
            pad_tile(&padding, reader, target, &mut rw)?;
        }
        rw.erase(insertion);
        if padding.filled.result(0).is_unused() {
            rw.erase(padding.filled);
        }
    }
    Ok(())
}

/// An input within a filled tensor.
struct Padding<'c> {
    input: Value<'c>,
    /// The dispatch that fills the tensor, and the value.
    filled: Op<'c>,
    value: Value<'c>,
    /// Per dimension: the pad in front of the input, the input's size, the pad behind it. One of unknown size has no pads.
    dims: Vec<[i64; 3]>,
}

impl<'c> Padding<'c> {
    fn of(insertion: Op<'c>, target: &TargetDescription) -> Option<Self> {
        let (input, dest) = (insertion.operand(0), insertion.operand(1));
        let filled =
            dest.defining_op().filter(|op| op.is(ops::scf::FORALL) && op.attr(attributes::KERNEL).is_some())?;
        let value = filled_value(filled)?;
        let whole = dest.ty().shape()?;
        let slice = Slice::of(insertion)?;
        let rank = whole.len();
        let unit = slice.strides.iter().all(|stride| *stride == Index::Static(1));
        if !unit || !is_copied(input, target) || input.ty().shape()?.len() != rank || dest.uses().len() != 1 {
            return None;
        }
        let dims = (0..rank).map(|d| match (slice.offsets[d], slice.sizes[d]) {
            (Index::Static(low), Index::Static(size)) if whole[d] != DYNAMIC => {
                Some([low, size, whole[d] - low - size])
            }
            (Index::Static(0), Index::Dynamic(size)) if size_of_new(dest, d) == Some(size) => Some([0, DYNAMIC, 0]),
            _ => None,
        });
        Some(Self { input, filled, value, dims: dims.collect::<Option<_>>()? })
    }

    /// Whether an op takes a tile of the padded tensor for a product.
    fn fits(&self, reader: Op, target: &TargetDescription) -> bool {
        let most = match target {
            TargetDescription::Gpu(_) => MOST_ON_GPU,
            TargetDescription::Cpu(_) => MOST_ON_CPU,
        };
        let (Some(slice), Some(dispatch)) = (Slice::of(reader), reader.ancestor(ops::scf::FORALL)) else {
            return false;
        };
        let choice = dispatch.attr(attributes::KERNEL).and_then(|a| KernelChoice::decode(|entry| a.field(entry)).ok());
        let has_windows = |class| match class {
            KernelClass::Contraction | KernelClass::Convolution => true,
            KernelClass::Generic => matches!(target, TargetDescription::Cpu(_)),
            _ => false,
        };
        let Some(sizes) = most_sizes(&slice).filter(|sizes| sizes.len() == self.dims.len()) else { return false };
        reader.is(ops::tensor::EXTRACT_SLICE)
            && reader.parent() == Some(dispatch)
            && reader.result(0).ty().shape().is_some_and(|shape| shape.len() == sizes.len())
            && choice.is_some_and(|choice| has_windows(choice.class))
            && slice.strides.iter().all(|stride| *stride == Index::Static(1))
            && sizes.iter().product::<i64>() <= most
            && sizes.iter().zip(&self.dims).all(|(size, [low, _, high])| size >= low.max(high))
    }
}

/// Whether a reader takes a value with dimensions merged.
fn merges(value: Value) -> bool {
    let merged = |reader: &Use| match reader.op.name() {
        ops::tensor::COLLAPSE_SHAPE => true,
        ops::tensor::EXPAND_SHAPE => merges(reader.op.result(0)),
        _ => false,
    };
    value.uses().iter().any(merged)
}

/// Whether a value would be copied to where it is padded: a function's parameter, or a reshape of one; on CPUs, whose tasks pad at
/// the speed of their caches, also the result of a dispatch that it, or another reader, takes with dimensions merged: within a
/// padded tensor they are not contiguous.
fn is_copied(value: Value, target: &TargetDescription) -> bool {
    let (mut source, mut is_merged) = (value, merges(value));
    while let Some(op) = source.defining_op() {
        if !op.is(ops::tensor::COLLAPSE_SHAPE) && !op.is(ops::tensor::EXPAND_SHAPE) {
            return is_merged && op.is(ops::scf::FORALL) && matches!(target, TargetDescription::Cpu(_));
        }
        source = op.operand(0);
        is_merged |= merges(source);
    }
    source.as_block_arg().and_then(|(block, _)| block.parent_op()).is_some_and(|op| op.is(ops::func::FUNC))
}

/// Replaces a tile of the padded tensor by a padded tile of the input.
fn pad_tile<'c>(
    padding: &Padding<'c>,
    tile: Op<'c>,
    target: &TargetDescription,
    rw: &mut Rewriter<'c>,
) -> Result<(), Diagnostics> {
    let lanes = match target {
        TargetDescription::Gpu(_) => None,
        // What is transposed first is padded afterwards.
        TargetDescription::Cpu(cpu) => {
            let turned = |reader: &Use| kernel_cpu::channel_lanes(reader.op, cpu).is_some();
            Some(kernel_cpu::lanes(tile, cpu)).filter(|_| !tile.result(0).uses().iter().any(turned))
        }
    };
    let (loc, element) = (tile.location(), tile.result(0).ty().element());
    let (Some(slice), Some(most)) = (Slice::of(tile), Slice::of(tile).and_then(|slice| most_sizes(&slice))) else {
        return Ok(());
    };
    rw.set_point(InsertionPoint::Before(tile));
    let (mut source, mut inner) = (vec![], vec![]);
    let mut sizes = vec![];
    for (d, dim) in padding.dims.iter().enumerate() {
        let [from, to, size] = part(*dim, (slice.offsets[d], slice.sizes[d], most[d]), loc, rw)?;
        source.push(from);
        inner.push(to);
        sizes.push(size);
    }
    let numbers: Vec<i64> = sizes.iter().map(|size| size.number()).collect();
    let ty = Type::tensor(&numbers, element, None);
    let part = rw.create(extract_slice(loc, padding.input, &Slice::new(source, sizes.clone()), ty))?.result(0);
    let place = Slice::new(inner, sizes);
    let mut padded = match lanes {
        Some(lanes) => Padded { part, place, shape: most.clone(), value: padding.value, lanes }.create(loc, rw)?,
        None => {
            let ty = Type::tensor(&most, element, None);
            let empty = rw.create(OpSpec::new(ops::tensor::EMPTY, loc).results(&[ty]))?.result(0);
            let filled = specialize::fill(padding.value, empty, loc, rw)?.result(0);
            rw.create(insert_slice(loc, part, filled, &place))?.result(0)
        }
    };
    if padded.ty() != tile.result(0).ty() {
        let zeros = vec![Index::Static(0); most.len()];
        let used = Slice::new(zeros, slice.sizes);
        padded = rw.create(extract_slice(loc, padded, &used, tile.result(0).ty()))?.result(0);
    }
    rw.replace_op(tile, &[padded]);
    Ok(())
}

/// Where a tile's part of the input begins, in the input and in the tile, and its size. The tile is `most` long: one at the
/// end of the grid may be shorter.
fn part<'c>(
    [low, extent, high]: [i64; 3],
    (offset, size, most): (Index<'c>, Index<'c>, i64),
    loc: Location<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<[Index<'c>; 3], Diagnostics> {
    let at = match offset {
        _ if (low, high) == (0, 0) => return Ok([offset, Index::Static(0), size]),
        Index::Static(at) => {
            let (from, to) = ((at - low).clamp(0, extent), (low - at).max(0));
            return Ok([from, to, (most - to).min(extent - from)].map(Index::Static));
        }
        Index::Dynamic(at) => at,
    };
    let mut bound = |name, map: String, operands: &[Value<'c>]| affine(name, &map, operands, loc, rw);
    let from = bound(ops::affine::MAX, format!("affine_map<(d0) -> (d0 - {low}, 0)>"), &[at])?;
    let from = bound(ops::affine::MIN, format!("affine_map<(d0) -> (d0, {extent})>"), &[from])?;
    let to = bound(ops::affine::MAX, format!("affine_map<(d0) -> ({low} - d0, 0)>"), &[at])?;
    let map = format!("affine_map<(d0, d1) -> ({most} - d1, {extent} - d0)>");
    let size = bound(ops::affine::MIN, map, &[from, to])?;
    Ok([from, to, size].map(Index::Dynamic))
}

/// The largest sizes of a slice at any tile; `None` if one is unknown.
fn most_sizes(slice: &Slice) -> Option<Vec<i64>> {
    let most = |size: &Index| match size {
        Index::Static(size) => Some(*size),
        Index::Dynamic(size) => upper_bound(*size),
    };
    slice.sizes.iter().map(most).collect()
}

/// A bound of a size that tiling computes: minima with constants, and sums of products of these.
fn upper_bound(value: Value) -> Option<i64> {
    let op = value.defining_op()?;
    let map = op.attr("map").and_then(|attr| attr.as_affine_map())?;
    let bounds: Vec<Option<i64>> = op.operands().into_iter().map(upper_bound).collect();
    let of_results = || map.results().into_iter().map(|expr| bound_of(expr, map.num_dims(), &bounds));
    match op.name() {
        ops::affine::APPLY => of_results().next()?,
        ops::affine::MIN => of_results().flatten().min(),
        _ => None,
    }
}

fn bound_of(expr: AffineExpr, dims: usize, bounds: &[Option<i64>]) -> Option<i64> {
    let bound = |expr| bound_of(expr, dims, bounds);
    match expr.kind() {
        AffineExprKind::Constant(number) => Some(number),
        AffineExprKind::Dim(position) => *bounds.get(position)?,
        AffineExprKind::Symbol(position) => *bounds.get(dims + position)?,
        AffineExprKind::Add(left, right) => bound(left)?.checked_add(bound(right)?),
        AffineExprKind::Mul(left, right) => match right.kind() {
            AffineExprKind::Constant(factor) if factor >= 0 => bound(left)?.checked_mul(factor),
            _ => None,
        },
        _ => None,
    }
}
