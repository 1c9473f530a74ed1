//! Conversions written out in C++ for the bench's modules: what MLIR itself costs, without a driver.

use crate::Op;
use mlir_sys::MlirOperation;

/// Converts a module of the conversion bench, and no other: `scf` to `cf` where it is structured, else to the LLVM dialect.
/// There is no driver and no cast; each op is made, put in the place of another, and erased, in one walk.
pub fn convert_without_driver(module: Op, is_structured: bool) {
    // SAFETY: defined in the shim; the module is live (crate invariant).
    unsafe { monopour_shim_floor(module.raw(), is_structured) };
}

unsafe extern "C" {
    // Converts all functions of a module, which hold ops of the bench only.
    fn monopour_shim_floor(module: MlirOperation, is_structured: bool);
}
