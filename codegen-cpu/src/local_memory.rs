//! Buffers that a kernel allocates for itself go to its stack.
//!
//! Before: `%t = memref.alloc() : memref<8x32xf32>` in a loop, with a `memref.dealloc`.
//! After: one `memref.alloca` in the kernel's entry block, no dealloc. A kernel calls no allocator.
//! Limits: static shapes, and [`MAX_STACK_BYTES`] per kernel (C0003).

use crate::{abi, error};
use monopour_ir::{Attr, Builder, Diagnostics, InsertionPoint, Module, Op, OpSpec, Rewriter, Type};

/// Most bytes of all own buffers of one kernel: an eighth of the 2 MiB that worker threads get.
pub const MAX_STACK_BYTES: u64 = 256 << 10;
/// Cache line, and the widest vector.
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
    let mut allocations = kernel.find_all("memref.alloc");
    allocations.extend(kernel.find_all("memref.alloca"));
    let mut total = 0u64;
    for alloc in &allocations {
        let ty = alloc.result(0).ty();
        let bytes = ty.static_size_bytes().filter(|_| alloc.num_operands() == 0);
        let Some(bytes) = bytes else {
            return Err(error::local_buffer(alloc.location(), &format!("of type {ty} has no static size")).into());
        };
        total = total.saturating_add(bytes.next_multiple_of(ALIGNMENT as u64));
        if total > MAX_STACK_BYTES {
            let what = format!("of type {ty} does not fit on the stack: {total} of {MAX_STACK_BYTES} bytes");
            return Err(error::local_buffer(alloc.location(), &what).into());
        }
    }
    let cx = kernel.context();
    let mut rewriter = Rewriter::new(cx);
    for dealloc in kernel.find_all("memref.dealloc") {
        rewriter.erase(dealloc);
    }
    let Some(entry) = kernel.body() else { return Ok(()) };
    for alloc in allocations {
        // A buffer whose lifetime ends in the loop may have one home for all iterations: the next one writes before it reads.
        let mut b = Builder::new(cx, InsertionPoint::Start(entry));
        let spec = OpSpec::new("memref.alloca", alloc.location())
            .results(&[alloc.result(0).ty()])
            .attr("operandSegmentSizes", Attr::dense_i32(cx, &[0, 0]))
            .attr("alignment", Attr::int(Type::integer(cx, 64), ALIGNMENT));
        let slot = b.create(spec)?;
        rewriter.replace_op(alloc, &[slot.result(0)]);
    }
    Ok(())
}
