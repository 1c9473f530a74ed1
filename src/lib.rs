//! monopour: a GPU-targeting end-to-end tensor compiler, and the runtime that goes with it.
//!
//! With the feature `compiler` (the default), [`compile`] takes MLIR, and [`compile_onnx`] an ONNX model, to a [`Program`]; without it, compiled programs run,
//! and nothing of LLVM is linked.
//!
//! * `pipeline`: the table of phases. Under it: `phases` (the steps), `stages` (their types), `legal_ir`, `emit` (the last
//!   phase), `signature` (inputs and results), `copies` (their reasons).
//! * [`Error`]: any failure of a compilation or a run, shown with its code and advice.
//! * `options`, `report`: input and output of a compilation besides the program.
//! * [`onnx`]: models, tensors and the registry of ops.
//! * [`explain`]: copies, allocations and memory over time; [`npy`]: NumPy's files.
//! * [`tune`]: kernels chosen by measurement.
//! * `trust`: what this process compiled may run here.
//! * `bin/monopour/`: the command line, one file per command.

mod error;
pub mod explain;
pub mod npy;
#[cfg(feature = "compiler")]
pub mod onnx;
#[cfg(feature = "compiler")]
pub mod options;
#[cfg(feature = "compiler")]
pub mod pipeline;
#[cfg(feature = "compiler")]
pub mod report;
#[cfg(feature = "compiler")]
mod trust;
#[cfg(feature = "compiler")]
pub mod tune;

pub use error::Error;
#[cfg(feature = "compiler")]
pub use monopour_ir::Diagnostics;
pub use monopour_program as program;
pub use monopour_program::Program;
pub use monopour_runtime as runtime;
#[cfg(feature = "compiler")]
pub use options::{CompileOptions, TargetDescription};
#[cfg(feature = "compiler")]
pub use pipeline::{Compiled, compile, compile_file, compile_onnx};

/// The version of monopour: compile again what another one has compiled.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
