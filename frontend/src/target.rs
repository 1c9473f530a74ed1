//! What a model is compiled for.

use monopour_program::{CpuTarget, GpuDescription};

/// The target of a compilation.
#[derive(Clone, Debug)]
pub enum TargetDescription {
    /// A GPU through wgpu.
    Gpu(GpuDescription),
    /// Native code on a CPU.
    Cpu(CpuTarget),
}
