//! Moves the buffers that a kernel allocates to its stack.
//!
//! Before: `%t = memref.alloc() : memref<8x32xf32>` in a loop, with a `memref.dealloc`.
//! After: one `memref.alloca` in the kernel's entry block, no dealloc. A kernel calls no allocator.
//! Limits: static shapes, and [`MOST_TASK_BYTES`] per kernel (C0003).

use crate::{abi, error};
use monopour_contract::MOST_TASK_BYTES;
use monopour_ir::conversion::{Adaptor, ConversionRewriter, ConversionTarget, Declined, Mode, PatternSet, convert};
use monopour_ir::ops;
use monopour_ir::typed::memref;
use monopour_ir::{Attr, Block, Diagnostics, InsertionPoint, Module, Op, Type};

/// Cache line, and the widest vector, in bytes.
const ALIGNMENT: i64 = 64;

/// Moves the allocations of all kernels.
///
/// # Errors
/// C0003.
pub(crate) fn run(module: &Module) -> Result<(), Diagnostics> {
    let mut diagnostics = Diagnostics::default();
    for kernel in module.functions().into_iter().filter(|f| abi::is_kernel(*f)) {
        if let Err(d) = promote(kernel) {
            diagnostics.0.extend(d.0);
        }
    }
    if diagnostics.0.is_empty() { Ok(()) } else { Err(diagnostics) }
}

fn promote(kernel: Op) -> Result<(), Diagnostics> {
    let mut allocations = kernel.find_all(ops::memref::ALLOC);
    allocations.extend(kernel.find_all(ops::memref::ALLOCA));
    let mut total = 0u64;
    for alloc in &allocations {
        let ty = alloc.result(0).ty();
        let bytes = ty.static_size_bytes().filter(|_| alloc.num_operands() == 0);
        let Some(bytes) = bytes else {
            return Err(error::local_buffer(alloc.location(), &format!("of type {ty} has no static size")).into());
        };
        total = total.saturating_add(bytes.next_multiple_of(ALIGNMENT as u64));
        if total > MOST_TASK_BYTES {
            let what = format!("of type {ty} does not fit on the stack: {total} of {MOST_TASK_BYTES} bytes");
            return Err(error::local_buffer(alloc.location(), &what).into());
        }
    }
    let Some(entry) = kernel.body() else { return Ok(()) };
    to_stack(kernel, entry)
}

fn to_stack<'c>(kernel: Op<'c>, entry: Block<'c>) -> Result<(), Diagnostics> {
    let is_slot = move |op: Op| {
        op.block() == Some(entry) && op.attr("alignment").and_then(|a| a.as_int()).is_some_and(|a| a >= ALIGNMENT)
    };
    let slot = move |op: Op<'c>, _: &Adaptor<'c, '_>, rw: &mut ConversionRewriter<'c>| {
        // One alloca serves all iterations of a loop: each writes before it reads.
        rw.set_point(InsertionPoint::Start(entry));
        let cx = op.context();
        let spec = memref::alloca(op.location(), &[], op.result(0).ty())
            .attr("alignment", Attr::int(Type::integer(cx, 64), ALIGNMENT));
        let slot = rw.create(spec).map_err(Declined::Failed)?;
        rw.replace_op(op, &[slot.result(0)]);
        Ok(())
    };
    let mut target = ConversionTarget::new();
    target
        .illegal_op(ops::memref::ALLOC)
        .illegal_op(ops::memref::DEALLOC)
        .dynamically_legal_op(ops::memref::ALLOCA, is_slot);
    let mut patterns = PatternSet::new();
    patterns.add_fn(ops::memref::ALLOC, slot).add_fn(ops::memref::ALLOCA, slot);
    patterns.add_fn(ops::memref::DEALLOC, |op, _, rw| {
        rw.erase(op);
        Ok(())
    });
    convert(kernel, &target, &patterns, Mode::Partial)?;
    Ok(())
}
