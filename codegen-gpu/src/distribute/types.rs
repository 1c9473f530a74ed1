//! Types that only some devices have.

use crate::error;
use monopour_ir::{Diagnostics, Op, Type, WalkOrder};
use monopour_program::{GpuDescription, GpuFeature};

/// Every type of a distributed kernel exists on the device.
pub(super) fn check(func: Op, device: &GpuDescription) -> Result<(), Diagnostics> {
    let of = |op: Op, ty: Type| match missing(ty.element(), device) {
        Some(why) => Err(error::unsupported_type(op, ty, why)),
        None => Ok(()),
    };
    for arg in func.body().map(|b| b.args()).unwrap_or_default() {
        of(func, arg.ty())?;
    }
    for op in func.nested(WalkOrder::Pre) {
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
