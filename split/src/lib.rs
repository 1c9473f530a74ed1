//! Kernels out of the host function; one memory plan; the host schedule.
//!
//! Three phases, in this order (`distribute` of the GPU code generator comes between the first two):
//! [`outline`] gives each dispatch a kernel function of a tile id, [`plan`] places what lives and dies within a run into one
//! arena, [`schedule`] lowers what is left of the host function to a closed set of runtime calls on handles.
//! [`constants`] takes the weights out of the IR, into the program.

pub mod constants;
mod error;
pub mod outline;
pub mod plan;
pub mod schedule;

/// The attribute that marks a dispatch (an `scf.forall`) and then its kernel function.
pub const KERNEL_ATTR: &str = "monopour.kernel";
/// Argument attribute of a kernel: `"read"`, `"write"` or `"read_write"`.
pub const ACCESS_ATTR: &str = "monopour.access";
/// Marks the one allocation of the arena.
pub const ARENA_ATTR: &str = "monopour.arena";
