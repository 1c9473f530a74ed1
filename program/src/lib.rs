//! The compiled artifact: the seam between compile time and run time.
//!
//! A [`Program`] holds everything that the runtime needs and nothing of the compiler: its signature, its constants, and one
//! [`Variant`] per target (kernels, native host code, memory plan).
//! [`Program::encode`] and [`Program::decode`] are the `.mpr` file format; [`Program::open`] maps a file, so that weights are
//! never copied on the host.
//! The crate knows neither LLVM nor wgpu.

pub mod constants;
mod decode;
pub mod dtype;
mod encode;
pub mod error;
pub mod kernel;
pub mod map;
mod program;
pub mod target;
mod verify;

pub use constants::{Constant, ConstantData};
pub use dtype::DType;
pub use encode::{VERSION, write_atomically};
pub use error::Error;
pub use kernel::{Access, Binding, CpuKernel, GRID_ROW, GpuKernel, Kernel, MAX_NUMBER_BYTES, fold_grid};
pub use map::Map;
pub use program::{
    AllocationNote, CopyNote, DYNAMIC, InputSize, MemoryPlan, NativeCode, Program, Signature, SizeRules, TensorDesc,
    Transient, Variant,
};
pub use target::{
    Backend, CpuTarget, DeviceType, GpuDescription, GpuFeature, GpuLimits, GpuRequirements, GpuTarget, Target,
};
