//! The contract between phases and runtime, stated once and as plain data: no IR, no LLVM, no device.
//!
//! | module | contents |
//! |---|---|
//! | [`attributes`] | names of the discardable attributes that phases set for later ones |
//! | [`field`] | values of a dictionary attribute |
//! | [`kernel`] | the attribute `monopour.kernel`: class, tile sizes and sharing of a dispatch, with its codec |
//! | [`runtime`] | the functions that host code calls, their signatures and addresses, and the codes of traps |

pub mod attributes;
pub mod field;
pub mod kernel;
pub mod runtime;

pub use field::Field;
pub use kernel::{
    KernelChoice, KernelClass, MAX_INTERLEAVED, MOST_ATTENTION_BYTES, MOST_ATTENTION_KEYS, MOST_LINE_PANEL_BYTES,
    MOST_TASK_BUFFER_BYTES, MOST_TASK_BYTES, Sharing, WIDE_TILE_BITS, WIDE_TILE_REGISTERS,
};
pub use runtime::{Kind, LibraryFunction, MOST_REQUESTS, RuntimeFunction, RuntimeTable, Trap};
