//! The legal IR after each phase.

use crate::options::TargetDescription;
use monopour_ir::LegalIr;
use monopour_ir::ops;

const SCALAR: [&str; 9] = ["func", "arith", "math", "scf", "affine", "ub", "vector", "linalg", "tensor"];

/// Linalg on tensors, before tiling.
pub(super) fn on_tensors(_: &TargetDescription) -> LegalIr {
    LegalIr {
        dialects: &["func", "linalg", "tensor", "arith", "math", "scf", "affine"],
        ops: &[
            ops::cf::ASSERT,
            ops::bufferization::TO_TENSOR,
            ops::bufferization::TO_BUFFER,
            ops::bufferization::MATERIALIZE_IN_DESTINATION,
            ops::bufferization::ALLOC_TENSOR,
        ],
        tensors: true,
        memrefs: false,
    }
}

/// Tiles on tensors.
pub(super) fn tiled(_: &TargetDescription) -> LegalIr {
    LegalIr {
        dialects: &SCALAR,
        ops: &[ops::bufferization::ALLOC_TENSOR, ops::cf::ASSERT],
        tensors: true,
        memrefs: false,
    }
}

/// Memrefs only.
pub(super) fn on_memrefs(_: &TargetDescription) -> LegalIr {
    LegalIr {
        dialects: &["func", "arith", "math", "scf", "affine", "ub", "vector", "linalg", "memref"],
        ops: &[ops::cf::ASSERT],
        tensors: false,
        memrefs: true,
    }
}

/// Kernels of a GPU without linalg; those of a CPU are vectorized by its code generator.
pub(super) fn distributed(target: &TargetDescription) -> LegalIr {
    match target {
        TargetDescription::Gpu(_) => LegalIr {
            dialects: &["func", "arith", "math", "scf", "memref", "vector", "gpu", "ub"],
            ops: &[ops::cf::ASSERT],
            tensors: false,
            memrefs: true,
        },
        TargetDescription::Cpu(_) => on_memrefs(target),
    }
}
