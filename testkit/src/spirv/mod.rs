//! An interpreter of SPIR-V: runs a compute shader as hardware with subgroups of any size would, and looks for faults.
//!
//! Subgroups run in lock step, one after another between barriers, in an order that follows from a seed. Blocks are
//! taken in the order of the module, so that invocations of a subgroup that part meet again at the merge block.
//! Errors: races within and between workgroups, accesses out of bounds, loads of workgroup memory that was not written,
//! barriers and subgroup operations that not all invocations reach, divisions without a result.
//! A result that SPIR-V leaves undefined, as that of a shift by the width, is [`UNDEFINED`], which shows in what is
//! computed from it. Counts: [`Counts`].
//!
//! Limits: one entry point, compute; no images, no barrier in a called function, no barrier of a subgroup
//! ([`Error::Unsupported`]). Lanes are the invocations of a workgroup in order.
//! Differs: functions of floats are rounded from f64; drivers are less accurate.
//!
//! - `reader`: instructions from words; `types`, `module`: what they declare. `error`: what can go wrong.
//! - `state`: what a dispatch has; `machine`: workgroups and their subgroups; `run`: blocks of a function.
//! - `values`: scalars of a subgroup; `integers`, `floats`, `extended`, `composites`: what computes; `groups`: subgroup
//!   operations; `matrices`: cooperative matrices.
//! - `memory`: loads, stores, atomics; `shadow`: races; `counts`: costs.
//! - [`faults`]: the same module with a defect.

mod composites;
mod counts;
mod error;
mod extended;
pub mod faults;
mod floats;
mod groups;
mod integers;
mod machine;
mod matrices;
mod memory;
mod module;
mod reader;
mod run;
mod shadow;
mod state;
mod types;
mod values;

pub use counts::{Banked, Barrier, Counts, Traffic};
pub use error::{Error, Fault, FaultKind, Place};
pub use machine::launch;
pub use module::Module;
pub use state::{Launch, Window};
pub use values::UNDEFINED;
