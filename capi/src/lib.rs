//! The runtime for C and C++: `include/monopour.h`.
//!
//! * `status`: statuses, the last error of a thread, and the wall that no panic crosses.
//! * `structs`: structs with sizes, as C sees them.
//! * `program`, `device`, `session`: the functions, by what they make.

// Every function takes pointers of the caller. What each needs of them is in its own documentation, which is the header's.
#![allow(unsafe_code, reason = "the boundary with C")]

mod device;
mod program;
mod session;
mod status;
mod structs;

/// The version of this interface: it grows when functions or members are added.
pub const MONOPOUR_ABI_VERSION: u32 = 1;

/// The [`MONOPOUR_ABI_VERSION`] of the library, which may be newer than that of the header.
#[unsafe(no_mangle)]
pub extern "C" fn monopour_abi_version() -> u32 {
    MONOPOUR_ABI_VERSION
}
