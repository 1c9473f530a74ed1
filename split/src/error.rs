//! The diagnostics of this crate, each with its page under `docs/errors/`.

use monopour_ir::{Diagnostic, Op};

/// A dispatch takes a value that no kernel argument can carry.
pub(crate) fn captured(op: Op, ty: &str) -> Diagnostic {
    Diagnostic::error("S0001", op.location(), format!("a dispatch captures a value of type {ty}")).with_help(
        "kernels take memrefs, integers of 1 to 64 bits, floats and index values: compute the value inside the dispatch",
    )
}

/// A dispatch with a grid that is not normalised.
pub(crate) fn dynamic_grid(op: Op) -> Diagnostic {
    Diagnostic::error(
        "S0002",
        op.location(),
        "the grid of a dispatch is not from 0, by step 1, in at most three dimensions",
    )
    .with_help("normalise the scf.forall: lower bounds 0, steps 1, at most three dimensions")
}

/// A host op outside the schedule's op set.
pub(crate) fn not_schedulable(op: Op) -> Diagnostic {
    Diagnostic::error("S0003", op.location(), format!("'{}' cannot run on the host", op.name()))
        .with_help("host code allocates, frees, copies, reads and writes elements, computes with scalars, loops, branches and dispatches kernels; anything else must be inside a dispatch")
}

/// A buffer with a size or layout that the host does not support.
pub(crate) fn not_contiguous(op: Op, ty: &str) -> Diagnostic {
    Diagnostic::error(
        "S0004",
        op.location(),
        format!("'{}' cannot work on a buffer of type {ty} on the host", op.name()),
    )
    .with_help("give results and constants a contiguous layout that begins their buffer")
}

/// A constant whose data is not in the module nor among the weights.
pub(crate) fn no_data(op: Op, name: &str) -> Diagnostic {
    Diagnostic::error("S0005", op.location(), format!("constant '{name}' has no data"))
        .with_help("give its value with --weights FILE.safetensors, or embed it as a dialect resource")
}

/// A host op that has no form as data.
pub(crate) fn no_data_form(op: Op, why: &str) -> Diagnostic {
    Diagnostic::error("S0006", op.location(), format!("'{}' on the host has no form as data: {why}", op.name()))
        .with_help(
            "compute with integers of at most 64 bits and floats of 16, 32 or 64, or compute it inside of a dispatch",
        )
}
