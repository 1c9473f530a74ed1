//! Checks types that only some devices have.

use crate::emit::{is_double, works_on_bits};
use crate::error;
use monopour_ir::{Diagnostics, Op, Type, WalkOrder};
use monopour_program::{GpuDescription, GpuFeature};

/// The reason for an op of f64 on a device without 64-bit integers.
pub(super) const NO_BITS: &str = "this takes 64-bit integers, and the adapter has none";

/// Checks that every type of a distributed kernel exists on the device.
pub(super) fn check(func: Op, device: &GpuDescription) -> Result<(), Diagnostics> {
    let of = |op: Op, ty: Type| match missing(ty.element(), device) {
        Some(why) => Err(error::unsupported_type(op, ty, why)),
        None => Ok(()),
    };
    for arg in func.body().map(|b| b.args()).unwrap_or_default() {
        of(func, arg.ty())?;
        // A scalar is passed as the words of its bits.
        if is_double(arg.ty()) && !arg.ty().is_memref() && !device.has(GpuFeature::Int64) {
            return Err(error::unsupported_type(func, arg.ty(), NO_BITS));
        }
    }
    for op in func.nested(WalkOrder::Pre) {
        if works_on_bits(op) && !device.has(GpuFeature::Int64) {
            let double = op.operands().first().map_or(op.result(0).ty(), |v| v.ty());
            return Err(error::unsupported_type(op, double, NO_BITS));
        }
        for result in op.results() {
            of(op, result.ty())?;
        }
    }
    Ok(())
}

fn missing(ty: Type, device: &GpuDescription) -> Option<&'static str> {
    let (feature, why) = match (ty.float_width(), ty.integer_width()) {
        // bf16 lies in words, and is computed in f32.
        (Some(16), _) if ty == Type::f16(ty.context()) => (GpuFeature::F16, "the adapter has no 16-bit floats"),
        (Some(64), _) => (GpuFeature::F64, "the adapter has no 64-bit floats"),
        (_, Some(33..)) => (GpuFeature::Int64, "the adapter has no 64-bit integers"),
        _ => return None,
    };
    (!device.has(feature)).then_some(why)
}
