//! The report of a compilation.

use monopour_frontend::tuning::Tunable;
use monopour_ir::Diagnostics;

/// Text and numbers of a compilation, in the order of the phases.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Phase, target, milliseconds.
    pub timings: Vec<Timing>,
    /// IR after the requested phases.
    pub dumps: Vec<Dump>,
    /// Remarks, among them every copy that bufferization left.
    pub remarks: Diagnostics,
    /// Decisions of the in-place analysis, over all variants.
    pub in_place: usize,
    /// As above: operands that got a copy.
    pub out_of_place: usize,
    /// With [`crate::CompileOptions::tuning`]: what its kernels may be, by structure.
    pub tunable: Vec<Tunable>,
    /// While kernels are measured: the name of each, and that of its structure.
    pub measured: Vec<(String, String)>,
}

/// Time of one phase.
#[derive(Clone, Debug)]
pub struct Timing {
    /// Name of the phase.
    pub phase: &'static str,
    /// Its target.
    pub target: &'static str,
    /// Wall time.
    pub elapsed_ms: f64,
    /// CPU time of the process meanwhile, of all threads; `None` if unknown.
    pub cpu_ms: Option<f64>,
}

/// Text of one phase.
#[derive(Clone, Debug)]
pub struct Dump {
    /// Name of the phase, or `transforms`, `wgsl`, `spirv`, `llvm`, `object`.
    pub phase: String,
    /// Its target.
    pub target: &'static str,
    /// MLIR text, WGSL, or LLVM IR; disassembled words for binary forms.
    pub text: String,
}
