//! Host function and CPU kernels through LLVM to object code.
//!
//! Input: a module with the scheduled host function and, for a CPU target, the outlined kernels on memrefs.
//! Output: ELF relocatables that the runtime loads from memory, whose only undefined symbols are the runtime's.
//! [`object::emit`] is the entry. The stages, in order:
//! - `parts` splits the module, so that kernels are compiled on all cores;
//! - [`objects`] keeps the objects of earlier compilations on disk;
//! - `host_loops` lets a run end in a counted loop of the host function; `host_parts` cuts a long one;
//! - [`local_memory`] puts a kernel's own buffers on the stack;
//! - `copies` turns strided copies into loops;
//! - `causal` leaves out the keys that an attention's rows do not see;
//! - `quantisation` makes products of divisions whose results are rounded, and single instructions of clamps;
//! - [`vectorize`] makes vectors of leftover linalg ops;
//! - [`loop_order`] orders the loops of those that it leaves;
//! - [`math`] replaces math library functions, [`small_floats`] bf16, and f16 on old CPUs;
//! - [`to_llvm`] holds the order, and runs upstream's lowerings to the llvm dialect;
//! - [`abi`] gives each kernel the signature that the runtime calls.
//!
//! [`error`] has the diagnostics.

pub mod abi;
mod causal;
mod copies;
pub mod error;
mod host_loops;
mod host_parts;
pub mod local_memory;
pub mod loop_order;
pub mod math;
pub mod object;
pub mod objects;
mod parts;
mod quantisation;
pub mod small_floats;
pub mod to_llvm;
pub mod vectorize;
