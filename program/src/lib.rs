//! The compiled artifact: the seam between compile time and run time.
//!
//! A [`Program`] holds all that the runtime needs and nothing of the compiler: its signature, its constants, and one
//! [`Variant`] per target (kernels, native host code, memory plan). The crate knows neither LLVM nor wgpu.
//!
//! * `program`: the program with its signature and variants; [`constants`], [`dtype`]: tensor data, element types.
//! * [`kernel`], [`target`]: kernels as data; targets and descriptions of machines.
//! * [`host`]: the host function as data. `host/`: its `scalar` ops, `floats`, its own `verify`, its `text`.
//! * `trust`: who vouches for machine code.
//! * `verify`: consistency of a program; [`error`]: errors of artifacts.
//! * `encode`, `decode`: the `.mpr` file format ([`Program::encode`], [`Program::decode`]).
//! * [`cache`]: files that outlive a process and may be lost.
//! * [`map`]: mapped files, so that [`Program::open`] never copies weights on the host.

pub mod cache;
pub mod constants;
mod decode;
pub mod dtype;
mod encode;
pub mod error;
pub mod host;
pub mod kernel;
pub mod map;
mod program;
pub mod target;
mod trust;
mod verify;

pub use constants::{Constant, ConstantData, OwnedBytes};
pub use dtype::DType;
pub use encode::{VERSION, write_atomically};
pub use error::Error;
pub use host::HostCode;
pub use kernel::{
    Access, Binding, CopiedSize, CpuKernel, DispatchCopies, GRID_ROW, GpuKernel, Kernel, MAX_NUMBER_BYTES, fold_grid,
};
pub use map::Map;
pub use program::{
    AllocationNote, Bounds, CopyNote, DYNAMIC, InputSize, Life, LifeStep, Lives, MemoryPlan, NativeCode, Program,
    Signature, SizeRules, Source, TensorDesc, Transient, Variant,
};
pub use target::{
    Backend, CpuTarget, DeviceType, GpuDescription, GpuFeature, GpuLimits, GpuRequirements, GpuTarget, Target,
};
pub use trust::Trust;
