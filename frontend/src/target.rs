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

impl TargetDescription {
    /// The GPU, if it is one.
    pub fn gpu(&self) -> Option<&GpuDescription> {
        match self {
            Self::Gpu(gpu) => Some(gpu),
            Self::Cpu(_) => None,
        }
    }
}
