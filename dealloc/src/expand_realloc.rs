//! `memref.realloc` in terms of allocations and copies.
//!
//! ```text
//! %r = memref.realloc %a(%n) :             %d = memref.dim %a, %c0
//!      memref<?xf32> to memref<?xf32>      %grows = arith.cmpi ult, %d, %n
//!                                   ==>    %r = scf.if %grows -> (memref<?xf32>) {
//!                                            %new = memref.alloc(%n); copy of %a to its front; dealloc of %a
//!                                            scf.yield %new
//!                                          } else {
//!                                            the first elements of %a: memref.reinterpret_cast
//!                                          }
//! ```
//!
//! Requires: memrefs of rank 1 and identity layout, as the operation itself does.
//! Ensures: no `memref.realloc`; without `emit_deallocs`, nothing is freed.
//! Source: MLIR's expand-realloc, LLVM 22.
//! Differs: no branch if memory certainly does not grow, for which upstream makes invalid code.

use monopour_ir::conversion::{ConversionTarget, Mode, PatternSet, convert};
use monopour_ir::ops;
use monopour_ir::typed::{Index, Slice, arith::CmpIPredicate, memref};
use monopour_ir::{DYNAMIC, Diagnostics, InsertionPoint, Op, OpSpec, Rewriter, Type, Value};

use crate::indicators::{If, if_owned};

/// Expands every `memref.realloc` in an operation, and returns their number.
///
/// # Errors
/// Those of the conversion driver.
pub fn expand_realloc(root: Op, emit_deallocs: bool) -> Result<u32, Diagnostics> {
    let mut target = ConversionTarget::new();
    target.illegal_op(ops::memref::REALLOC);
    let mut patterns = PatternSet::new();
    patterns.add_fn(ops::memref::REALLOC, |op, _, rw| {
        let new = expand(op, emit_deallocs, rw)?;
        rw.replace_op(op, &[new]);
        Ok(())
    });
    let stats = convert(root, &target, &patterns, Mode::Partial)?;
    Ok(u32::try_from(stats.patterns_applied).unwrap_or(u32::MAX))
}

/// A size in elements: known, or a value.
#[derive(Clone, Copy)]
struct Size<'c> {
    fixed: i64,
    value: Value<'c>,
}

fn expand<'c>(op: Op<'c>, emit_deallocs: bool, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
    let (cx, loc, old, at) = (op.context(), op.location(), op.operand(0), InsertionPoint::Before(op));
    let ty = op.result(0).ty();
    rw.set_point(at);
    let extent = |ty: Type<'c>| ty.shape().and_then(|shape| shape.first().copied()).unwrap_or(DYNAMIC);
    let (from, to) = (extent(old.ty()), extent(ty));
    if from != DYNAMIC && to != DYNAMIC && from >= to {
        let wanted = Size { fixed: to, value: old };
        return shrunk(op, wanted, rw);
    }
    let current = if from == DYNAMIC {
        let zero = rw.const_index(0, loc);
        let spec = OpSpec::new(ops::memref::DIM, loc).operands(&[old, zero]).results(&[Type::index(cx)]);
        rw.create(spec)?.result(0)
    } else {
        rw.const_index(from, loc)
    };
    let wanted = if to == DYNAMIC { op.operand(1) } else { rw.const_index(to, loc) };
    let (current, wanted) = (Size { fixed: from, value: current }, Size { fixed: to, value: wanted });
    let spec = OpSpec::new(ops::arith::CMPI, loc)
        .operands(&[current.value, wanted.value])
        .results(&[Type::integer(cx, 1)])
        .attr("predicate", CmpIPredicate::Ult.to_attr(cx));
    let grows = rw.create(spec)?.result(0);
    let larger = |rw: &mut Rewriter<'c>| grown(op, current, wanted, emit_deallocs, rw).map(|v| vec![v]);
    let front = |rw: &mut Rewriter<'c>| shrunk(op, wanted, rw).map(|v| vec![v]);
    Ok(if_owned(rw, If::new(at, loc, grows, &[ty]), larger, front)?.result(0))
}

fn grown<'c>(
    op: Op<'c>,
    current: Size<'c>,
    wanted: Size<'c>,
    emit_deallocs: bool,
    rw: &mut Rewriter<'c>,
) -> Result<Value<'c>, Diagnostics> {
    let (loc, old, ty) = (op.location(), op.operand(0), op.result(0).ty());
    let sizes: Vec<Value> = if wanted.fixed == DYNAMIC { vec![wanted.value] } else { vec![] };
    let mut alloc = memref::alloc(loc, &sizes, ty);
    if let Some(alignment) = op.attr("alignment") {
        alloc = alloc.attr("alignment", alignment);
    }
    let new = rw.create(alloc)?.result(0);
    let part = Type::strided_memref(&[current.fixed], ty.element(), 0, &[1], ty.memref_space());
    let front = rw.create(memref::subview(loc, new, &front(current), part))?.result(0);
    rw.create(OpSpec::new(ops::memref::COPY, loc).operands(&[old, front]))?;
    if emit_deallocs {
        rw.create(OpSpec::new(ops::memref::DEALLOC, loc).operands(&[old]))?;
    }
    Ok(new)
}

fn shrunk<'c>(op: Op<'c>, wanted: Size<'c>, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
    let cast = memref::reinterpret_cast(op.location(), op.operand(0), &front(wanted), op.result(0).ty());
    Ok(rw.create(cast)?.result(0))
}

/// The slice of the first elements.
fn front<'c>(size: Size<'c>) -> Slice<'c> {
    let size = if size.fixed == DYNAMIC { Index::Dynamic(size.value) } else { Index::Static(size.fixed) };
    Slice::new(vec![Index::Static(0)], vec![size])
}
