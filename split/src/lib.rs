//! Kernels out of the host function; one memory plan; the host schedule.
//!
//! Three phases, in this order (`distribute` of the GPU code generator comes between the first two):
//! [`outline`] gives each dispatch a kernel function of a tile id, [`plan`] places what lives and dies within a run into one
//! arena, [`schedule`] lowers what is left of the host function to a closed set of runtime calls on handles.
//! [`copies`] says which copies a run makes. [`constants`] takes the weights out of the IR, into the program.

mod buffers;
mod captures;
mod checks;
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
