//! Lower the remaining ops of the bufferization dialect, clones and deallocs, to memref operations.
//!
//! ```text
//! %b = bufferization.clone %a : memref<?xf32>           %d = memref.dim %a, %c0
//!                                                ==>    %b = memref.alloc(%d) : memref<?xf32>
//!                                                       memref.copy %a, %b
//! ```
//!
//! Ensures: no operation of the bufferization dialect, else an error (D0114); deallocs as by [`crate::lower`].
//! Limits: a clone whose type a row-major buffer does not have.
//! Source: MLIR's convert-bufferization-to-memref, LLVM 22.
//! Differs: a dynamic stride is not cast to a number, though MLIR allows it: a row-major copy has another one.

use monopour_ir::conversion::{ConversionTarget, Mode, PatternSet, convert};
use monopour_ir::ops;
use monopour_ir::typed::memref;
use monopour_ir::{
    Block, DYNAMIC, Diagnostic, Diagnostics, InsertionPoint, Op, OpSpec, Region, Rewriter, Type, Value, WalkOrder,
};

use crate::frees::copied_type;
use crate::lower::{self, Helpers, LowerOptions};

/// Converts every operation of the bufferization dialect, and returns their number.
///
/// # Errors
/// D0112 as for [`lower::lower_deallocations`]; D0114 for an operation that has no form on memrefs.
pub fn convert_bufferization_to_memref(root: Op, options: &LowerOptions) -> Result<u32, Diagnostics> {
    let helpers = Helpers::needed_in(root, options.extensions)?;
    let mut refused = None;
    root.walk(WalkOrder::Pre, |op| {
        if refused.is_none() && op.dialect() == "bufferization" && !is_convertible(op) {
            let message = format!("failed to legalize operation '{}' that was explicitly marked illegal", op.name());
            refused = Some(Diagnostic::error("D0114", op.location(), message));
        }
    });
    if let Some(error) = refused {
        let help = "bufferize everything before; let a clone have a row-major type, or dynamic strides and offset";
        return Err(error.with_help(help).into());
    }
    let mut target = ConversionTarget::new();
    target.illegal_dialect("bufferization");
    let mut patterns = PatternSet::new();
    lower::add_pattern(&mut patterns, &helpers);
    patterns.add_fn(ops::bufferization::CLONE, |op, _, rw| {
        let copy = copied(op, rw)?;
        rw.replace_op(op, &[copy]);
        Ok(())
    });
    let stats = convert(root, &target, &patterns, Mode::Partial)?;
    Ok(u32::try_from(stats.patterns_applied).unwrap_or(u32::MAX))
}

fn is_convertible(op: Op) -> bool {
    let is_copyable = |ty: Type| ty.shape().is_none() || copied_type(ty).is_some();
    op.is(ops::bufferization::DEALLOC) || (op.is(ops::bufferization::CLONE) && is_copyable(op.result(0).ty()))
}

/// A new buffer with the contents of a clone's operand.
fn copied<'c>(op: Op<'c>, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
    let (loc, from, ty) = (op.location(), op.operand(0), op.result(0).ty());
    let new = match ty.shape() {
        Some(shape) => ranked(op, &shape, rw)?,
        None => unranked(op, rw)?,
    };
    rw.create(OpSpec::new(ops::memref::COPY, loc).operands(&[from, new]))?;
    Ok(new)
}

fn ranked<'c>(op: Op<'c>, shape: &[i64], rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
    let (loc, from, ty) = (op.location(), op.operand(0), op.result(0).ty());
    let mut sizes = Vec::new();
    for (dim, _) in shape.iter().enumerate().filter(|(_, size)| **size == DYNAMIC) {
        let dim = rw.const_index(i64::try_from(dim).unwrap_or(i64::MAX), loc);
        sizes.push(size_of(op, from, dim, rw)?);
    }
    let fresh = copied_type(ty).unwrap_or(ty);
    let buffer = rw.create(memref::alloc(op.location(), &sizes, fresh))?.result(0);
    if fresh == ty {
        return Ok(buffer);
    }
    Ok(rw.create(OpSpec::new(ops::memref::CAST, loc).operands(&[buffer]).results(&[ty]))?.result(0))
}

/// All elements in sequence, viewed in the shape of the operand, which a loop over its rank collects.
fn unranked<'c>(op: Op<'c>, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
    let (cx, loc, from, ty) = (op.context(), op.location(), op.operand(0), op.result(0).ty());
    let index = Type::index(cx);
    let zero = rw.const_index(0, loc);
    let one = rw.const_index(1, loc);
    let rank = rw.create(OpSpec::new(ops::memref::RANK, loc).operands(&[from]).results(&[index]))?.result(0);
    let shape = rw.create(memref::alloca(loc, &[rank], Type::memref(&[DYNAMIC], index, None)))?.result(0);
    let region = Region::new();
    let body = Block::new(&[(index, loc), (index, loc)]);
    region.append(body);
    let spec = OpSpec::new(ops::scf::FOR, loc).operands(&[zero, rank, one, one]).results(&[index]).region(region);
    let count = rw.create(spec)?.result(0);
    rw.set_point(InsertionPoint::End(body));
    let size = size_of(op, from, body.arg(0), rw)?;
    rw.create(OpSpec::new(ops::memref::STORE, loc).operands(&[size, shape, body.arg(0)]))?;
    let spec = OpSpec::new(ops::arith::MULI, loc).operands(&[body.arg(1), size]).results(&[index]);
    let product = rw.create(spec)?.result(0);
    rw.create(OpSpec::new(ops::scf::YIELD, loc).operands(&[product]))?;
    rw.set_point(InsertionPoint::Before(op));
    let row = Type::memref(&[DYNAMIC], ty.element(), ty.memref_space());
    let buffer = rw.create(memref::alloc(loc, &[count], row))?.result(0);
    let spec = OpSpec::new(ops::memref::RESHAPE, loc).operands(&[buffer, shape]).results(&[ty]);
    Ok(rw.create(spec)?.result(0))
}

fn size_of<'c>(op: Op<'c>, memref: Value<'c>, dim: Value<'c>, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
    let spec =
        OpSpec::new(ops::memref::DIM, op.location()).operands(&[memref, dim]).results(&[Type::index(op.context())]);
    Ok(rw.create(spec)?.result(0))
}
