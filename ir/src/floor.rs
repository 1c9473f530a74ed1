//! Conversions written out in C++ for the bench's modules: MLIR's own cost, without a driver.

use crate::Op;
use mlir_sys::MlirOperation;

/// Converts a module of the conversion bench, and no other: `scf` to `cf` if structured, else to the LLVM dialect.
/// No driver and no casts: one walk that creates, replaces and erases.
pub fn convert_without_driver(module: Op, is_structured: bool) {
    // SAFETY: defined in the shim; the module is live (crate invariant).
    unsafe { monopour_shim_floor(module.raw(), is_structured) };
}

unsafe extern "C" {
    // Converts all functions of a module with ops of the bench only.
    fn monopour_shim_floor(module: MlirOperation, is_structured: bool);
}
