//! The contracts of the phases: which ops and types may be left after each.

use crate::options::TargetDescription;
use monopour_ir::Contract;

const SCALAR: [&str; 9] = ["func", "arith", "math", "scf", "affine", "ub", "vector", "linalg", "tensor"];

/// Linalg on tensors, before tiling.
pub(super) fn on_tensors(_: &TargetDescription) -> Contract {
    Contract {
        dialects: &["func", "linalg", "tensor", "arith", "math", "scf", "affine"],
        ops: &[
            "cf.assert",
            "bufferization.to_tensor",
            "bufferization.to_buffer",
            "bufferization.materialize_in_destination",
            "bufferization.alloc_tensor",
        ],
        tensors: true,
        memrefs: false,
    }
}

/// Tiles on tensors.
pub(super) fn tiled(_: &TargetDescription) -> Contract {
    Contract { dialects: &SCALAR, ops: &["bufferization.alloc_tensor", "cf.assert"], tensors: true, memrefs: false }
}

/// Memrefs only.
pub(super) fn on_memrefs(_: &TargetDescription) -> Contract {
    Contract {
        dialects: &["func", "arith", "math", "scf", "affine", "ub", "vector", "linalg", "memref"],
        ops: &["cf.assert"],
        tensors: false,
        memrefs: true,
    }
}

/// Kernels of a GPU without linalg; those of a CPU are vectorized by its code generator.
pub(super) fn distributed(target: &TargetDescription) -> Contract {
    match target {
        TargetDescription::Gpu(_) => Contract {
            dialects: &["func", "arith", "math", "scf", "memref", "vector", "gpu", "ub"],
            ops: &["cf.assert"],
            tensors: false,
            memrefs: true,
        },
        TargetDescription::Cpu(_) => on_memrefs(target),
    }
}
