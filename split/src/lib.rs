//! Kernels out of the host function; one memory plan; the host schedule.
//!
//! Three phases, in this order (`distribute` of the GPU code generator comes between the first two):
//! [`outline`] gives each dispatch a kernel function of a tile id, [`plan`] places what lives and dies within a run into one
//! arena, [`schedule`] lowers what is left of the host function to a closed set of runtime calls on handles.
//! [`copies`] says which copies a run makes. [`constants`] takes the weights out of the IR, into the program.

mod buffers;
mod captures;
pub mod constants;
pub mod copies;
mod error;
mod merge;
pub mod outline;
pub mod plan;
mod regions;
mod scalars;
pub mod schedule;
mod sink;
mod views;

/// The attribute that marks a dispatch (an `scf.forall`) and then its kernel function.
pub const KERNEL_ATTR: &str = "monopour.kernel";
/// Number of tile ids, the last arguments of a kernel function.
pub const GRID_RANK_ATTR: &str = "monopour.grid_rank";
/// Marks a kernel that numbers its workgroups through: `id.x + id.y * grid.x`. Its grid is folded when it is dispatched.
pub const LINEAR_GRID_ATTR: &str = "monopour.linear_grid";
/// Argument attribute of a kernel: `"read"`, `"write"` or `"read_write"`.
pub const ACCESS_ATTR: &str = "monopour.access";
/// Marks the one allocation of the arena.
pub const ARENA_ATTR: &str = "monopour.arena";
