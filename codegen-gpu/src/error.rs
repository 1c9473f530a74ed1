//! The diagnostics of this crate, one constructor per code.

use monopour_ir::{Diagnostic, Diagnostics, Op, Type};

/// G0001: an op outside of the kernel op set.
pub(crate) fn unsupported_op(op: Op) -> Diagnostics {
    Diagnostic::error("G0001", op.location(), format!("'{}' is not an op that a GPU kernel can contain", op.name()))
        .with_help("rewrite it with arith and math ops, or keep it outside the fused kernel")
        .into()
}

/// G0002: a type that a shader cannot hold.
pub(crate) fn unsupported_type(op: Op, ty: Type, why: &str) -> Diagnostics {
    Diagnostic::error(
        "G0002",
        op.location(),
        format!("type {ty} of '{}' has no counterpart on the device: {why}", op.name()),
    )
    .with_help("f32, i32, i16, i8, i1 and index always work; f16, i64 and f64 where the adapter has them")
    .into()
}

/// G0003: a kernel body that is not a tile program.
pub(crate) fn not_a_tile(op: Op, why: &str) -> Diagnostics {
    Diagnostic::error("G0003", op.location(), format!("'{}' cannot be spread over invocations: {why}", op.name()))
        .with_help("a kernel body holds index arithmetic, views, memref.alloc, linalg ops, loads and stores, and scf.for, scf.if and scf.while around them")
        .into()
}

/// G0004: `monopour.kernel` is missing or malformed.
pub(crate) fn bad_kernel_attr(op: Op, why: &str) -> Diagnostics {
    Diagnostic::error("G0004", op.location(), format!("attribute 'monopour.kernel': {why}"))
        .with_help("it is a dictionary; workgroup_size is required, as array<i32: x, y, z>")
        .into()
}

/// G0005: intermediates do not fit in workgroup memory.
pub(crate) fn workgroup_memory(op: Op, needed_bytes: u64, offered_bytes: u64) -> Diagnostics {
    let message =
        format!("the kernel's intermediates need {needed_bytes} bytes of scratch, the device offers {offered_bytes}");
    Diagnostic::error("G0005", op.location(), message).with_help("choose a smaller tile").into()
}

/// G0005: the size of an intermediate is computed on the device.
pub(crate) fn unknown_extent(op: Op) -> Diagnostics {
    let message = "the extent of this intermediate cannot be computed before the kernel runs";
    Diagnostic::error("G0005", op.location(), message)
        .with_help("give it an extent that follows from the shapes of the kernel's operands")
        .into()
}

/// G0006: naga refused the module.
pub(crate) fn invalid_module(op: Op, message: String) -> Diagnostics {
    Diagnostic::error("G0006", op.location(), format!("the shader validator rejects the kernel: {message}"))
        .with_help("this is a defect of the compiler; the IR after `distribute` shows the kernel")
        .into()
}

/// G0007: one buffer accessed with two lane counts.
pub(crate) fn mixed_lanes(op: Op, first: u32, second: u32) -> Diagnostics {
    let message =
        format!("a buffer is accessed {second} lanes wide here and {first} lanes wide elsewhere in the kernel");
    Diagnostic::error("G0007", op.location(), message)
        .with_help("use one lane count for all accesses of a buffer")
        .into()
}

/// G0008: the device cannot bind or launch the kernel.
pub(crate) fn over_limit(op: Op, what: &str, needed: u64, offered: u64) -> Diagnostics {
    Diagnostic::error("G0008", op.location(), format!("the kernel needs {needed} {what}, the device offers {offered}"))
        .with_help("choose a smaller tile or fuse less; a tensor that is too large for a binding takes several")
        .into()
}

/// G0009: a remark: a kernel runs by another strategy than that of its class.
pub(crate) fn declined(kernel: Op, strategy: &str, why: &str) -> Diagnostic {
    let message = format!("kernel '{}' runs as '{strategy}': {why}", kernel.symbol_name().unwrap_or_default());
    Diagnostic::remark("G0009", kernel.location(), message)
        .with_help("another tile or layout may allow the faster strategy; the result is the same")
}
