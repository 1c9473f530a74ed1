//! Kernels out of the host function; one memory plan; the host schedule.
//!
//! The phases, in order (`distribute` of the GPU code generator comes after the first):
//!
//! * [`borders`]: fills that run once, because their buffer keeps the border.
//! * [`outline`]: a kernel function of a tile id per dispatch. `captures`: its arguments; `sizes`: one value
//!   per dynamic size; `merge`: kernels of equal
//!   structure as one; `views`: views and copies that stay on the host.
//! * [`twins`]: on GPUs, kernels for dynamic sizes that are multiples of the vector width.
//! * [`plan`]: transients as offsets of one arena. `transients`: which buffers these are, and when each is alive; `flows`: the names
//!   of a buffer; `poison`: buffers filled where their contents begin and end, for tests.
//! * [`schedule`]: the host function as runtime calls on handles. `buffers`: memrefs as numbers; `scalars`: their bits;
//!   `regions`: loops and branches; `allocations`: buffers; `checks`: run-time checks; `sink`: handles at their first use.
//!
//! * [`host_data`]: the scheduled host function as data.
//!
//! Besides: [`copies`] lists the copies of a run, [`lives`] what is alive when with lower bounds, [`sources`] the ops of dispatches,
//! [`constants`] moves the weights into the program, `error` has the diagnostics.

mod allocations;
pub mod borders;
mod buffers;
mod captures;
mod checks;
pub mod constants;
pub mod copies;
mod error;
mod flows;
pub mod host_data;
pub mod lives;
mod merge;
pub mod outline;
pub mod plan;
mod poison;
mod regions;
mod scalars;
pub mod schedule;
mod sink;
mod sizes;
pub mod sources;
mod transients;
pub mod twins;
mod views;
