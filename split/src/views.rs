//! Views and copies that stay on the host.

use monopour_contract::attributes;
use monopour_ir::conversion::{ConversionTarget, Declined, Mode, PatternSet, convert};
use monopour_ir::ops;
use monopour_ir::typed::gpu::{self, Dimension};
use monopour_ir::typed::scf::{self, Bounds};
use monopour_ir::typed::{self, Index, Slice};
use monopour_ir::{
    Attr, Block, CANONICALIZE, DYNAMIC, Diagnostics, InsertionPoint, MemRefType, Op, OpSpec, Region, Rewriter, Type,
    Value, open_dynamic_expansions, run_passes,
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
/// Distribution of a copy over a GPU's invocations: one row per workgroup.
const COPY_KERNEL: &str = "{class = \"elementwise\", reduction_step = 1 : i64, register_tile = array<i64: 1>, \
    share = \"none\", tile = array<i64: 1>, vector_width = 1 : i64, workgroup_size = array<i64: 64, 1, 1>}";

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

/// One task per slice along the first dimension.
fn dispatch<'c>(rw: &mut Rewriter<'c>, copy: Op<'c>) -> Result<(), Diagnostics> {
    let (cx, loc) = (copy.context(), copy.location());
    let index = Type::index(cx);
    let shape = copy.operand(0).ty().shape().unwrap_or_default();
    let upper = if shape.len() > 1 { shape[0] } else { 1 };
    let mut bound = Index::Static(upper);
    if upper == DYNAMIC {
        let zero = rw.const_index(0, loc);
        let spec = OpSpec::new(ops::memref::DIM, loc).operands(&[copy.operand(0), zero]).results(&[index]);
        bound = Index::Dynamic(rw.create(spec)?.result(0));
    }
    let block = Block::new(&[(index, loc)]);
    let region = Region::new();
    region.append(block);
    let in_parallel = Region::new();
    in_parallel.append(Block::new(&[]));
    let space = copy.operand(1).ty().as_memref().and_then(|m| m.memory_space);
    let kernel = Attr::parse(cx, COPY_KERNEL).expect("invariant: the text is an attribute");
    let mut spec = scf::forall(loc, &Bounds::upto(vec![bound]), &[], region).attr(attributes::KERNEL, kernel);
    if space.is_some() {
        let block_x = gpu::block_mapping(cx, Dimension::X).expect("invariant: the gpu dialect is loaded");
        spec = spec.attr("mapping", Attr::array(cx, &[block_x]));
    }
    rw.create(spec)?;
    rw.set_point(InsertionPoint::End(block));
    let from = row(rw, copy, copy.operand(0), block.arg(0))?;
    let to = row(rw, copy, copy.operand(1), block.arg(0))?;
    rw.create(OpSpec::new(ops::memref::COPY, loc).operands(&[from, to]))?;
    rw.create(OpSpec::new(ops::scf::FORALL_IN_PARALLEL, loc).region(in_parallel))?;
    Ok(())
}

/// The slice at `at` along the first of several dimensions.
fn row<'c>(rw: &mut Rewriter<'c>, copy: Op<'c>, value: Value<'c>, at: Value<'c>) -> Result<Value<'c>, Diagnostics> {
    let (cx, loc) = (copy.context(), copy.location());
    let memref = value.ty().as_memref().expect("invariant: copies are of memrefs");
    let rank = memref.shape.len();
    if rank < 2 {
        return Ok(value);
    }
    let mut sizes: Vec<Index> = memref.shape.iter().copied().map(Index::Static).collect();
    sizes[0] = Index::Static(1);
    for (dim, size) in sizes.iter_mut().enumerate().filter(|(_, size)| **size == Index::Static(DYNAMIC)) {
        let dim = rw.const_index(dim as i64, loc);
        let spec = OpSpec::new(ops::memref::DIM, loc).operands(&[value, dim]).results(&[Type::index(cx)]);
        *size = Index::Dynamic(rw.create(spec)?.result(0));
    }
    let mut shape = memref.shape.clone();
    shape[0] = 1;
    let mut offsets = vec![Index::Static(0); rank];
    offsets[0] = Index::Dynamic(at);
    let ty = Type::strided_memref(&shape, memref.element, DYNAMIC, &memref.strides, memref.memory_space);
    Ok(rw.create(typed::memref::subview(loc, value, &Slice::new(offsets, sizes), ty))?.result(0))
}
