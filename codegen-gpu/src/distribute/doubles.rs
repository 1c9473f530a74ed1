//! Expands functions of f64, which shading languages lack, to arithmetic.
//!
//! Before / after: `%y = math.exp %x : f64`; `arith` ops, `math.fma` and rounding ops of f64, and its exponent as an i64.
//! Ensures: the CPU's values without fused multiply-add, up to the driver's contraction of products and sums.
//! Limits: devices without 64-bit integers (G0002); functions without an expansion in `monopour-math` are left to `emit`.

use crate::error;
use monopour_ir::{Diagnostics, Op, WalkOrder};
use monopour_math::{Compiler, DOUBLE, expand};
use monopour_program::{GpuDescription, GpuFeature};

/// Expands the functions of f64 in a distributed kernel.
pub(super) fn run(func: Op, device: &GpuDescription) -> Result<(), Diagnostics> {
    let is_expanded = |op: &Op| DOUBLE.iter().any(|function| function.takes(*op));
    let Some(first) = func.nested(WalkOrder::Pre).into_iter().find(is_expanded) else { return Ok(()) };
    if !device.has(GpuFeature::Int64) {
        return Err(error::unsupported_type(first, first.result(0).ty(), super::types::NO_BITS));
    }
    expand(func, &[DOUBLE], Compiler::Loose)
}
