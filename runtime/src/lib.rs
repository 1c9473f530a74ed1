//! Loads a program and runs it: wgpu devices, pools, CPU threads. No LLVM.
//!
//! ```no_run
//! use std::sync::Arc;
//! use monopour_program::Program;
//! use monopour_runtime::{Device, DeviceChoice, HostTensor, Options, Session};
//!
//! # fn main() -> Result<(), monopour_runtime::Error> {
//! let program = Arc::new(Program::open("model.mpr".as_ref())?);
//! let device = Device::open(&DeviceChoice::Auto)?;
//! let mut session = Session::load(&device, program, &Options::default())?;
//! let outputs = session.run(&[HostTensor::from_f32(vec![2], &[1.0, 2.0])?])?;
//! # Ok(()) }
//! ```
//! A program from a file is not trusted: it runs on a GPU, its kernels validated and its host function interpreted, unless the
//! caller vouches for it with `Program::trust`. Without the feature `native` (on by default) no machine code runs at all.
//!
//! [`Session::load`] makes a [`Model`] of its own. Several sessions of one model share its kernels and constants. An
//! application with a wgpu device of its own hands it over with [`Device::from_wgpu`], and keeps its callbacks and error scopes.
//!
//! [`Session::record`] writes a run into an encoder of the application, over its buffers, and neither submits nor waits.
//! [`Session::submit`] hands a run to a thread and returns a [`Run`]: a future, with a limit for waits, and to be cancelled.
//! [`Session::begin`] is for a run that [`Run::advance`] spreads over time.
//!
//! Inputs and results may be slices of the caller ([`Session::run_into`]), and its threads may compute ([`TaskPool`]).
//!
//! For consecutive runs, [`Session::upload`], [`Session::execute`] and [`Session::readback`] are the three
//! steps of [`Session::run`]: inputs stay on the device, and outputs are loans that return to the session's pool on drop.
//!
//! With the feature `tracing` (off by default) there are spans and events of the crate of that name, all with the target
//! `monopour`: the spans `load`, `run` and `record` (`DEBUG`) with the program's entry and the device, and an event
//! `dispatch` (`TRACE`) for every kernel with its source op and location. Without it, or without a subscriber that asks for
//! events, no source is looked up.
//!
//! The modules, lowest first:
//!
//! * `error`, `stats`, `trace`: errors, measurements, spans for `--trace`; `sites`: the sources of dispatches.
//! * `spans`: spans and events of the crate `tracing`; `no_spans` is in its place without that feature.
//! * `pool`, `buffer`: pooled buffers, tensors on host and device.
//! * `device`, `hal`, `disk_cache`: devices of the machine and of the caller, unchecked wgpu calls, the driver's pipeline cache.
//! * `pipeline_cache`, `kernels`: pipelines and bind groups, building them on all cores.
//! * `upload`, `readback`, `timing`: transfers, timestamps.
//! * `memory`: memory of the CPU target.
//! * `cancel`: the signs that a run is to end, and how far it may go.
//! * `native`, `relocate`, `ffi`: the loader of native code, ELF relocations, calls to and from native code; `no_native` is in
//!   their place without the feature `native`, and where the system is no Unix.
//! * `validate`: kernels of programs that are not trusted.
//! * `scalar`, `interpret`, `host_function`: host code that is data, and the choice of a form.
//! * `host`, `executor/`: the calls of host code, and their execution on GPU and CPU, one run in `executor/run`, its memory
//!   in `executor/meter`, runs that repeat the calls of the run before in `executor/repeat`; `threads`: the CPU's threads, or the application's.
//! * `choice`, `model`: the variant that runs, and a program loaded on a device, once for all sessions.
//! * `session`: a model with the memory of its runs; `session/core`: that memory and the runs; `session/measured`: measurements;
//!   `session/named`: runs by the names of inputs and results; `session/borrowed`: runs on the caller's slices;
//!   `session/record`: runs in the caller's encoders; `session/run`: runs in flight.

mod buffer;
mod cancel;
mod choice;
mod device;
mod disk_cache;
mod error;
mod executor;
#[cfg(all(feature = "native", unix))]
mod ffi;
#[cfg(not(all(feature = "native", unix)))]
#[path = "no_native.rs"]
mod ffi;
mod hal;
mod host;
mod host_function;
mod interpret;
mod kernels;
mod memory;
mod model;
#[cfg(all(feature = "native", unix))]
mod native;
mod pipeline_cache;
mod pool;
mod readback;
#[cfg(all(feature = "native", unix))]
mod relocate;
mod scalar;
mod session;
mod sites;
#[cfg(feature = "tracing")]
mod spans;
#[cfg(not(feature = "tracing"))]
#[path = "no_spans.rs"]
mod spans;
mod stats;
mod threads;
mod timing;
mod trace;
mod upload;
mod validate;

pub use buffer::{BufferSlice, DeviceTensor, HostSlice, HostTensor, RecordInput, RecordedResult};
pub use device::{Device, DeviceChoice, DeviceInfo, DeviceKind, InternalCounters, devices};
pub use error::Error;
pub use executor::planned_bytes;
pub use host_function::HostForm;
pub use model::Model;
pub use scalar::compute as compute_scalar;
pub use session::{LeakReport, Options, Run, Session};
pub use stats::{GpuTimes, Memory, RunCounts, RunTimes, Stats, SteadyState};
pub use threads::TaskPool;
pub use trace::Span;
/// The device API, in the version that [`Device::from_wgpu`] takes.
pub use wgpu;
