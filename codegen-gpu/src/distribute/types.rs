//! Checks types that only some devices have.

use crate::emit::{is_double, works_on_bits};
use crate::error;
use monopour_contract::attributes;
use monopour_ir::{Attr, Diagnostics, Op, Rewriter, Type, Value, WalkOrder};
use monopour_program::{GpuDescription, GpuFeature};

/// The reason for an op of f64 on a device without 64-bit integers.
pub(super) const NO_BITS: &str = "this takes 64-bit integers, and the adapter has none";

/// Marks a kernel with floats of 16 bits: how it computes with f16, and how it stores single ones.
pub(super) fn mark_short_floats<'c>(rw: &mut Rewriter<'c>, func: Op<'c>, device: &GpuDescription) {
    let is_short = |value: &Value| value.ty().element().float_width() == Some(16);
    let args = func.body().map(|b| b.args()).unwrap_or_default();
    let results = || func.nested(WalkOrder::Pre).into_iter().flat_map(|op| op.results());
    if !args.iter().any(is_short) && !results().any(|value| is_short(&value)) {
        return;
    }
    let marks = [
        (attributes::WIDE_HALVES, device.has_wide_halves()),
        (attributes::SHORT_ENTRIES, device.has(GpuFeature::Int16)),
    ];
    for (mark, _) in marks.into_iter().filter(|(_, holds)| *holds) {
        rw.set_attr(func, mark, Attr::unit(func.context()));
    }
}

/// Whether a type is a float of 16 bits that is f32 in registers.
pub(super) fn is_short_float(ty: Type, native_halves: bool) -> bool {
    ty.float_width() == Some(16) && !(native_halves && ty == Type::f16(ty.context()))
}

/// Whether vectors have elements of this float type: of 32 bits, or of 16 in whatever form.
pub(super) fn is_vector_float(ty: Type) -> bool {
    matches!(ty.float_width(), Some(16 | 32))
}

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
        (Some(64), _) => (GpuFeature::F64, "the adapter has no 64-bit floats"),
        (_, Some(33..)) => (GpuFeature::Int64, "the adapter has no 64-bit integers"),
        _ => return None,
    };
    (!device.has(feature)).then_some(why)
}
