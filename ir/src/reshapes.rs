//! Reshapes that upstream's passes crash on, or make slow.
//!
//! Before / after:
//!
//! ```text
//! %y = memref.expand_shape %x [[0, 1]]          %b, %o, %n, %s = memref.extract_strided_metadata %x
//!   output_shape [%p, %q]                       %t = arith.muli %s, %q
//!                                               %y = memref.reinterpret_cast %b to offset: [%o], sizes: [%p, %q],
//!                                                 strides: [%t, %s]
//! ```
//!
//! The pass divides the size of the one dimension by the known sizes of its group to find the unknown one; with two unknown
//! ones it reads a missing attribute and ends the process. The op has both sizes as operands, so none has to be computed.
//!
//! `memref.collapse_shape` becomes the like where its result's layout is known: `fold-memref-alias-ops` divides each index of
//! an access to find those of the source, in the innermost loop.

use crate::ops;
use crate::typed::memref;
use crate::{Attr, DYNAMIC, Diagnostics, InsertionPoint, MemRefType, Op, OpSpec, Rewriter, Type, Value};

/// Rewrites every `memref.expand_shape` in `root` that expands one dimension into several of unknown size.
///
/// # Errors
/// MLIR's, none on verified IR.
pub fn open_dynamic_expansions(root: Op) -> Result<(), Diagnostics> {
    let mut rw = Rewriter::new(root.context());
    for op in root.find_all(ops::memref::EXPAND_SHAPE) {
        let shape = op.result(0).ty().shape().unwrap_or_default();
        let is_unknown = |dim: &&usize| shape.get(**dim) == Some(&DYNAMIC);
        if groups(op).iter().any(|group| group.iter().filter(is_unknown).count() > 1) {
            open(&mut rw, op)?;
        }
    }
    Ok(())
}

/// Moves `tensor.expand_shape` ops that add dimensions of one element behind the generics and reductions in `root` that read
/// their results; dimensions of one element vanish from these (upstream's `linalg::dropUnitDims`).
pub fn drop_added_units(root: Op) {
    // SAFETY: defined in the shim; the op is live, and no handle to an op that is replaced is held here.
    unsafe { monopour_shim_drop_added_units(root.raw()) };
}

unsafe extern "C" {
    fn monopour_shim_drop_added_units(root: mlir_sys::MlirOperation);
}

/// Rewrites every `memref.collapse_shape` in `root` whose result has known sizes and strides.
///
/// # Errors
/// MLIR's, none on verified IR.
pub fn open_collapses(root: Op) -> Result<(), Diagnostics> {
    let mut rw = Rewriter::new(root.context());
    for op in root.find_all(ops::memref::COLLAPSE_SHAPE) {
        let (source, ty) = (op.operand(0), op.result(0).ty());
        let Some(result) = ty.as_memref() else { continue };
        let is_known = result.shape.iter().chain(&result.strides).all(|n| *n != DYNAMIC);
        let Some(from) = source.ty().as_memref().filter(|_| is_known) else { continue };
        rw.set_point(InsertionPoint::Before(op));
        let parts = parts(&mut rw, op, &from)?;
        let offset = unknown(&[result.offset], &parts[1..2]);
        let slice = result.to_slice(offset, vec![], vec![]).expect("invariant: only the offset may be unknown");
        let open = rw.create(memref::reinterpret_cast(op.location(), parts[0], &slice, ty))?.result(0);
        rw.replace_op(op, &[open]);
    }
    Ok(())
}

/// Base, offset, sizes and strides of the memref of a reshape.
fn parts<'c>(rw: &mut Rewriter<'c>, op: Op<'c>, source: &MemRefType<'c>) -> Result<Vec<Value<'c>>, Diagnostics> {
    let mut parts = vec![Type::memref(&[], source.element, source.memory_space)];
    parts.extend(std::iter::repeat_n(Type::index(op.context()), 1 + 2 * source.shape.len()));
    let spec = OpSpec::new(ops::memref::EXTRACT_STRIDED_METADATA, op.location());
    Ok(rw.create(spec.operands(&[op.operand(0)]).results(&parts))?.results())
}

fn groups(op: Op) -> Vec<Vec<usize>> {
    let groups = op.attr("reassociation").and_then(|a| a.as_array()).unwrap_or_default();
    let dims = |group: Attr| -> Vec<usize> {
        let dims = group.as_array().unwrap_or_default().into_iter();
        dims.filter_map(|d| d.as_int().and_then(|d| usize::try_from(d).ok())).collect()
    };
    groups.into_iter().map(dims).collect()
}

fn open<'c>(rw: &mut Rewriter<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    let (cx, loc) = (op.context(), op.location());
    let index = Type::index(cx);
    let source = op.operand(0).ty().as_memref().expect("invariant: expand_shape is of a ranked memref");
    let result = op.result(0).ty().as_memref().expect("invariant: expand_shape gives a ranked memref");
    let rank = source.shape.len();
    rw.set_point(InsertionPoint::Before(op));
    let parts = parts(rw, op, &source)?;
    let mut dynamic = op.operands().into_iter().skip(1);
    let known = op.attr("static_output_shape").and_then(|a| a.as_ints()).unwrap_or_else(|| result.shape.clone());
    let mut sizes = vec![];
    for size in known {
        let given = if size == DYNAMIC { dynamic.next() } else { None };
        sizes.push(given.unwrap_or_else(|| rw.const_index(size, loc)));
    }
    let mut strides = vec![None; sizes.len()];
    for (group, stride) in groups(op).into_iter().zip(&parts[2 + rank..]) {
        let mut stride = *stride;
        for dim in group.into_iter().rev() {
            strides[dim] = Some(stride);
            let product = OpSpec::new(ops::arith::MULI, loc).operands(&[stride, sizes[dim]]).results(&[index]);
            stride = rw.create(product)?.result(0);
        }
    }
    let unit = rw.const_index(1, loc);
    let strides: Vec<Value> = strides.into_iter().map(|stride| stride.unwrap_or(unit)).collect();
    let offset = unknown(&[result.offset], &parts[1..2]);
    let (sizes, strides) = (unknown(&result.shape, &sizes), unknown(&result.strides, &strides));
    let slice = result.to_slice(offset, sizes, strides).expect("invariant: a value per dynamic number");
    let spec = memref::reinterpret_cast(loc, parts[0], &slice, op.result(0).ty());
    let open = rw.create(spec)?.result(0);
    rw.replace_op(op, &[open]);
    Ok(())
}

/// The values of the dynamic entries.
fn unknown<'c>(known: &[i64], values: &[Value<'c>]) -> Vec<Value<'c>> {
    known.iter().zip(values).filter(|(k, _)| **k == DYNAMIC).map(|(_, v)| *v).collect()
}
