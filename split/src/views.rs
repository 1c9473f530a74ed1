//! Views and copies that stay on the host.

use monopour_contract::attributes;
use monopour_ir::conversion::{ConversionTarget, Declined, Mode, PatternSet, convert};
use monopour_ir::ops;
use monopour_ir::typed::gpu::{self, Dimension};
use monopour_ir::typed::scf::{self, Bounds};
use monopour_ir::typed::{self, Index, Slice};
use monopour_ir::{
    Attr, Block, CANONICALIZE, DYNAMIC, Diagnostics, InsertionPoint, Location, MemRefType, Op, OpSpec, Region,
    Rewriter, Type, Value, open_dynamic_expansions, run_passes,
};

/// Ops that [`expand`] lowers.
const EXPANDED: [&str; 6] = [
    ops::affine::APPLY,
    ops::affine::MAX,
    ops::affine::MIN,
    ops::memref::COLLAPSE_SHAPE,
    ops::memref::EXPAND_SHAPE,
    ops::memref::SUBVIEW,
];
/// Distribution of a copy over a GPU's invocations: vectors where source and target have them.
const COPY_KERNEL: &str = "class = \"elementwise\", reduction_step = 1 : i64, register_tile = array<i64: 1>, \
    share = \"none\", vector_width = 4 : i64, workgroup_size = array<i64: 64, 1, 1>";
/// Elements of a GPU's tile of a copy: of rows of 16 KiB that were one tile each, a cache of keys took 59 us on an H200.
const COPY_TILE: i64 = 512;
/// Dimensions of a grid, and tiles along each, that every API takes.
const MAX_GRID_RANK: usize = 3;
const MAX_GRID: i64 = 65_535;

/// Expands views of the host to offsets, sizes and strides, computed by `arith`.
///
/// # Errors
/// Upstream's, none on verified IR.
pub(crate) fn expand(func: Op) -> Result<(), Diagnostics> {
    if EXPANDED.iter().all(|name| func.find_all(name).is_empty()) {
        return Ok(());
    }
    // First drops views that only kernels used.
    run_passes(func, &format!("func.func({CANONICALIZE},cse)"))?;
    open_dynamic_expansions(func)?;
    run_passes(func, &format!("func.func(expand-strided-metadata,lower-affine,{CANONICALIZE},cse)"))
}

/// Whether the elements are contiguous.
pub(crate) fn is_contiguous(memref: &MemRefType) -> bool {
    let mut expected = Some(1i64);
    for (size, stride) in memref.shape.iter().zip(&memref.strides).rev() {
        // The stride of a unit dimension is never used.
        if *size != 1 && expected != Some(*stride) {
            return false;
        }
        expected = match (*size, expected) {
            (1, expected) => expected,
            (DYNAMIC, _) | (_, None) => None,
            (size, Some(stride)) => size.checked_mul(stride),
        };
    }
    true
}

/// Whether a memref is contiguous, or has the identity layout.
pub(crate) fn lies_without_gaps(ty: Type) -> bool {
    let is_identity = ty.memref_layout().is_some_and(|layout| layout.is_identity());
    is_identity || ty.as_memref().is_some_and(|m| is_contiguous(&m))
}

/// Turns strided copies on the host into dispatches.
///
/// # Errors
/// MLIR's, none on verified IR.
pub(crate) fn dispatch_copies(func: Op) -> Result<(), Diagnostics> {
    let gaps =
        |op: Op| op.ancestor(ops::scf::FORALL).is_none() && !op.operands().iter().all(|v| lies_without_gaps(v.ty()));
    let mut target = ConversionTarget::new();
    target.dynamically_legal_op(ops::memref::COPY, move |op| !gaps(op));
    let mut patterns = PatternSet::new();
    patterns.add_fn(ops::memref::COPY, |op, _, rw| {
        dispatch(rw, op).map_err(Declined::Failed)?;
        rw.erase(op);
        Ok(())
    });
    convert(func, &target, &patterns, Mode::Partial).map(|_| ())
}

/// On CPUs one task per slice along the first dimension, on GPUs tiles.
fn dispatch<'c>(rw: &mut Rewriter<'c>, copy: Op<'c>) -> Result<(), Diagnostics> {
    let (cx, loc) = (copy.context(), copy.location());
    let index = Type::index(cx);
    let shape = copy.operand(0).ty().shape().unwrap_or_default();
    let space = copy.operand(1).ty().as_memref().and_then(|m| m.memory_space);
    let tile = if space.is_some() { tile_of(&shape) } else { first_slices(&shape) };
    let cut = cut_dimensions(&shape, &tile);
    let mut bounds = vec![];
    for d in &cut {
        bounds.push(if shape[*d] == DYNAMIC {
            let position = rw.const_index(*d as i64, loc);
            let spec = OpSpec::new(ops::memref::DIM, loc).operands(&[copy.operand(0), position]).results(&[index]);
            Index::Dynamic(rw.create(spec)?.result(0))
        } else {
            Index::Static(shape[*d] / tile[*d])
        });
    }
    if cut.is_empty() {
        bounds.push(Index::Static(1));
    }
    let block = Block::new(&vec![(index, loc); bounds.len()]);
    let region = Region::new();
    region.append(block);
    let in_parallel = Region::new();
    in_parallel.append(Block::new(&[]));
    let sizes: Vec<String> = cut.iter().map(|d| tile[*d].to_string()).collect();
    let sizes = if cut.is_empty() { "1".to_owned() } else { sizes.join(", ") };
    let kernel = Attr::parse(cx, &format!("{{{COPY_KERNEL}, tile = array<i64: {sizes}>}}"));
    let kernel = kernel.expect("invariant: the text is an attribute");
    let mut spec = scf::forall(loc, &Bounds::upto(bounds.clone()), &[], region).attr(attributes::KERNEL, kernel);
    if space.is_some() {
        let dimensions = [Dimension::Z, Dimension::Y, Dimension::X];
        let blocks = dimensions[MAX_GRID_RANK - bounds.len()..].iter().map(|d| gpu::block_mapping(cx, *d));
        let blocks: Option<Vec<Attr>> = blocks.collect();
        spec = spec.attr("mapping", Attr::array(cx, &blocks.expect("invariant: the gpu dialect is loaded")));
    }
    rw.create(spec)?;
    rw.set_point(InsertionPoint::End(block));
    let mut offsets = vec![Index::Static(0); shape.len()];
    for (at, d) in cut.iter().enumerate() {
        let size = rw.const_index(tile[*d], loc);
        let spec = OpSpec::new(ops::arith::MULI, loc).operands(&[block.arg(at), size]).results(&[index]);
        offsets[*d] = Index::Dynamic(if tile[*d] == 1 { block.arg(at) } else { rw.create(spec)?.result(0) });
    }
    let from = slice(rw, copy.operand(0), (&offsets, &tile), loc)?;
    let to = slice(rw, copy.operand(1), (&offsets, &tile), loc)?;
    rw.create(OpSpec::new(ops::memref::COPY, loc).operands(&[from, to]))?;
    rw.create(OpSpec::new(ops::scf::FORALL_IN_PARALLEL, loc).region(in_parallel))?;
    Ok(())
}

/// The dimensions of several tiles; an unknown size is one of several tiles of one element, or of one tile.
fn cut_dimensions(shape: &[i64], tile: &[i64]) -> Vec<usize> {
    (0..shape.len()).filter(|d| tile[*d] != shape[*d]).collect()
}

/// Tiles of one slice along the first of several dimensions.
fn first_slices(shape: &[i64]) -> Vec<i64> {
    let mut tile = shape.to_vec();
    if shape.len() > 1 {
        tile[0] = 1;
    }
    tile
}

/// Tiles of about [`COPY_TILE`] elements that divide their dimensions: inner ones whole, one cut, those before it of one element.
/// Of a grid's rank, and no more of them than an API takes; what has unknown sizes is cut along its first dimension alone.
fn tile_of(shape: &[i64]) -> Vec<i64> {
    if shape.contains(&DYNAMIC) {
        return first_slices(shape);
    }
    let mut tile = shape.to_vec();
    let mut room = COPY_TILE;
    for d in (0..shape.len()).rev() {
        let divides = |size: &i64| shape[d] % size == 0 && shape[d] / size <= MAX_GRID;
        let within = (1..=room.min(shape[d])).rev().find(divides);
        // Of a dimension with small divisors alone a larger one, and of a long one one that leaves few enough tiles.
        let least = room.max(shape[d] / MAX_GRID);
        let beyond = || (least..shape[d].min(8 * least + 1)).find(divides);
        let is_small = within.is_none_or(|size| size < room / 8);
        tile[d] = if is_small { beyond().or(within) } else { within }.unwrap_or(shape[d]);
        room = if tile[d] == shape[d] { (room / shape[d].max(1)).max(1) } else { 1 };
    }
    while let Some(smallest) = smallest_of_many(shape, &tile) {
        tile[smallest] = shape[smallest];
    }
    tile
}

/// The dimension of fewest tiles, where more dimensions are cut than a grid has.
fn smallest_of_many(shape: &[i64], tile: &[i64]) -> Option<usize> {
    let cut = (0..shape.len()).filter(|d| tile[*d] != shape[*d]);
    (cut.clone().count() > MAX_GRID_RANK).then(|| cut.min_by_key(|d| shape[*d] / tile[*d]))?
}

/// The slice of these sizes at these offsets.
fn slice<'c>(
    rw: &mut Rewriter<'c>,
    value: Value<'c>,
    (offsets, tile): (&[Index<'c>], &[i64]),
    loc: Location<'c>,
) -> Result<Value<'c>, Diagnostics> {
    let cx = value.ty().context();
    let memref = value.ty().as_memref().expect("invariant: copies are of memrefs");
    if offsets.iter().all(|offset| *offset == Index::Static(0)) {
        return Ok(value);
    }
    let mut sizes: Vec<Index> = tile.iter().copied().map(Index::Static).collect();
    for (dim, size) in sizes.iter_mut().enumerate().filter(|(_, size)| **size == Index::Static(DYNAMIC)) {
        let dim = rw.const_index(dim as i64, loc);
        let spec = OpSpec::new(ops::memref::DIM, loc).operands(&[value, dim]).results(&[Type::index(cx)]);
        *size = Index::Dynamic(rw.create(spec)?.result(0));
    }
    let ty = Type::strided_memref(tile, memref.element, DYNAMIC, &memref.strides, memref.memory_space);
    Ok(rw.create(typed::memref::subview(loc, value, &Slice::new(offsets.to_vec(), sizes), ty))?.result(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_of_copies_divide_their_dimensions() {
        assert_eq!(tile_of(&[12, 128, 64]), [1, 8, 64], "rows of 8,192 elements");
        assert_eq!(tile_of(&[32, 3, 224, 224]), [1, 1, 2, 224]);
        assert_eq!(tile_of(&[8, 50_257]), [1, 1_733], "a row of 29 times so many elements");
        assert_eq!(tile_of(&[1 << 20]), [512]);
        assert_eq!(tile_of(&[3]), [3]);
        assert_eq!(tile_of(&[2, 3, 5, 7, 600]), [2, 1, 1, 1, 600], "five dimensions would be cut");
        assert_eq!(tile_of(&[1 << 26, 2]), [1 << 11, 2], "more tiles than an API takes");
        assert_eq!(tile_of(&[DYNAMIC, 4]), [1, 4]);
        assert_eq!(tile_of(&[2_147_483_629]), [2_147_483_629], "a prime");
    }

    #[test]
    fn a_line_of_unknown_length_is_one_tile() {
        let cut = |shape: &[i64]| cut_dimensions(shape, &tile_of(shape));
        assert_eq!(cut(&[DYNAMIC]), [0; 0]);
        assert_eq!(cut(&[DYNAMIC, 4]), [0]);
        assert_eq!(cut(&[3, DYNAMIC]), [0]);
        assert_eq!(cut(&[1, DYNAMIC]), [0; 0]);
        assert_eq!(cut(&[12, 128, 64]), [0, 1]);
    }
}
