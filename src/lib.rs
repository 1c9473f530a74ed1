//! monopour: a GPU-targeting end-to-end tensor compiler, and the runtime that goes with it.
//!
//! With the feature `compiler` (the default), [`compile`] takes MLIR to a [`Program`]; without it, programs that were
//! compiled elsewhere run all the same, and nothing of LLVM is linked.

pub mod explain;
pub mod npy;
#[cfg(feature = "compiler")]
pub mod options;
#[cfg(feature = "compiler")]
pub mod pipeline;
#[cfg(feature = "compiler")]
pub mod report;

#[cfg(feature = "compiler")]
pub use monopour_ir::Diagnostics;
pub use monopour_program as program;
pub use monopour_program::Program;
pub use monopour_runtime as runtime;
#[cfg(feature = "compiler")]
pub use options::{CompileOptions, TargetDescription};
#[cfg(feature = "compiler")]
pub use pipeline::{Compiled, compile, compile_file};
