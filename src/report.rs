//! What a compilation says about itself.

use monopour_ir::Diagnostics;

/// Text and numbers gathered while compiling, in the order in which they came to be.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Phase, target, milliseconds.
    pub timings: Vec<Timing>,
    /// IR after phases that were asked for.
    pub dumps: Vec<Dump>,
    /// Every copy that bufferization left, and other remarks.
    pub remarks: Diagnostics,
    /// Decisions of the in-place analysis, over all variants.
    pub in_place: usize,
    /// As above: operands that got a copy.
    pub out_of_place: usize,
}

/// Time of one phase.
#[derive(Clone, Debug)]
pub struct Timing {
    /// Name of the phase.
    pub phase: &'static str,
    /// Target it ran for.
    pub target: &'static str,
    /// Wall time.
    pub elapsed_ms: f64,
    /// CPU time of the process meanwhile, all its threads together; `None` where the system does not say.
    pub cpu_ms: Option<f64>,
}

/// Text of one phase.
#[derive(Clone, Debug)]
pub struct Dump {
    /// Name of the phase, or `transforms`, `wgsl`, `spirv`, `llvm`, `object`.
    pub phase: String,
    /// Target it ran for.
    pub target: &'static str,
    /// MLIR text, WGSL, or LLVM IR; disassembled words for binary forms.
    pub text: String,
}
