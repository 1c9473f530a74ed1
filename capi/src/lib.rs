//! The runtime for C and C++: `include/monopour.h`.
//!
//! There is no form of `Device::from_wgpu`: the handles of wgpu-native are another library's, with a wgpu of its own,
//! and no two copies of wgpu share a device. An engine in C opens a device of the runtime's own beside its own.
//!
//! * `status`: statuses, the last error of a thread, and the wall that no panic crosses.
//! * `structs`: structs with sizes, as C sees them.
//! * `options`, `tensor`: what functions take and return.
//! * `program`, `device`, `model`, `session`, `run`: the functions, by what they make.

// Every function takes pointers of the caller. What each needs of them is in its own documentation, which is the
// header's.
#![allow(unsafe_code, reason = "the boundary with C")]

mod device;
mod model;
mod options;
mod program;
mod run;
mod session;
mod status;
mod structs;
mod tensor;

/// The version of this interface: it grows when functions or members are added.
pub const MONOPOUR_ABI_VERSION: u32 = 2;

/// The [`MONOPOUR_ABI_VERSION`] of the library, which may be newer than that of the header.
#[unsafe(no_mangle)]
pub extern "C" fn monopour_abi_version() -> u32 {
    MONOPOUR_ABI_VERSION
}
