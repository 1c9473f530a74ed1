//! The diagnostics of this crate, one function per code.

use monopour_ir::{Diagnostic, Location, Op};

/// C0001: an op that no lowering takes to the llvm dialect.
pub(crate) fn cannot_lower(op: Op) -> Diagnostic {
    let message = format!("op '{}' cannot be compiled to native code", op.name());
    Diagnostic::error("C0001", op.location(), message)
        .with_help("write it with linalg, vector, scf, arith or math ops on static memrefs")
}

/// C0002: a kernel signature that the runtime cannot call.
pub(crate) fn kernel_signature(kernel: Op, what: &str) -> Diagnostic {
    let name = kernel.symbol_name().unwrap_or_default();
    Diagnostic::error("C0002", kernel.location(), format!("kernel @{name} {what}"))
        .with_help("a kernel takes contiguous memrefs of static shape, then at most three tile ids of type index, and returns nothing")
}

/// C0003: a kernel's own buffers do not fit on the stack.
pub(crate) fn local_buffer(location: Location, what: &str) -> Diagnostic {
    Diagnostic::error("C0003", location, format!("a kernel's own buffer {what}"))
        .with_help("smaller task tiles make smaller buffers: give a schedule with `--schedule`")
}

/// C0004: a math function without an expansion.
pub(crate) fn math_function(op: Op) -> Diagnostic {
    let ty = op.results().first().map(|r| r.ty().to_string()).unwrap_or_default();
    Diagnostic::error("C0004", op.location(), format!("'{}' on {ty} has no expansion on the CPU", op.name()))
        .with_help("docs/numerics.md lists the functions of f32 and f64 and their error bounds: use those")
}

/// C0005: an undefined symbol that the runtime does not provide.
pub(crate) fn undefined_symbol(symbol: &str) -> Diagnostic {
    Diagnostic::global("C0005", format!("the compiled code needs `{symbol}`, which the runtime does not offer"))
        .with_help("name a CPU that has the instruction, such as `--target cpu:x86-64-v3`")
}

/// C0006: an unsupported architecture or CPU.
pub(crate) fn architecture(arch: &str) -> Diagnostic {
    Diagnostic::global("C0006", format!("no code generator for architecture '{arch}'"))
        .with_help("the CPU target knows x86_64 and aarch64")
}

/// C0007: not exactly one host function.
pub(crate) fn entry(location: Location, found: usize) -> Diagnostic {
    Diagnostic::error("C0007", location, format!("expected one host function of type (i64) -> (), found {found}"))
        .with_help("the host function is the module's public func.func, after the schedule phase")
}

/// C0008: a call to a function outside of the object and the runtime.
pub(crate) fn foreign_call(op: Op, callee: &str) -> Diagnostic {
    Diagnostic::error(
        "C0008",
        op.location(),
        format!("call of @{callee}, which neither the module nor the runtime defines"),
    )
    .with_help("define the function in the module; nothing is linked in from outside")
}
