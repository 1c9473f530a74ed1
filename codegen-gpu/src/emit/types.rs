//! MLIR types to naga's.

use super::module::{Kernel, Shape};
use crate::error;
use monopour_ir::{Diagnostics, Op, Type};
use monopour_program::GpuFeature;
use naga::{Scalar, ScalarKind};

/// The naga scalar of an element type; records the feature that it needs.
pub(super) fn scalar<'c>(kernel: &mut Kernel<'c>, op: Op<'c>, ty: Type<'c>) -> Result<Scalar, Diagnostics> {
    if ty.is_index() {
        return Ok(Scalar::I32);
    }
    let (result, feature) = match (ty.float_width(), ty.integer_width()) {
        (Some(32), _) => (Scalar::F32, None),
        (_, Some(2..=32)) => (Scalar::I32, None),
        (_, Some(1)) => (Scalar::BOOL, None),
        (Some(64), _) => (Scalar::F64, Some(GpuFeature::F64)),
        (_, Some(64)) => (Scalar { kind: ScalarKind::Sint, width: 8 }, Some(GpuFeature::Int64)),
        (Some(16), _) if ty == Type::f16(ty.context()) && !kernel.wide_halves => {
            (Scalar { kind: ScalarKind::Float, width: 2 }, Some(GpuFeature::F16))
        }
        (Some(16), _) => (Scalar::F32, None),
        _ => return Err(error::unsupported_type(op, ty, "no shader type has this width")),
    };
    kernel.features.extend(feature);
    if feature == Some(GpuFeature::F16) {
        kernel.use_f16();
    }
    Ok(result)
}

/// Scalar and lane count of a value's type.
pub(super) fn shape<'c>(kernel: &mut Kernel<'c>, op: Op<'c>, ty: Type<'c>) -> Result<Shape, Diagnostics> {
    let Some(vector) = ty.as_vector() else {
        return Ok(Shape { scalar: scalar(kernel, op, ty)?, lanes: 1 });
    };
    let element = scalar(kernel, op, vector.element)?;
    match vector.shape.as_slice() {
        [2] => Ok(Shape { scalar: element, lanes: 2 }),
        [4] => Ok(Shape { scalar: element, lanes: 4 }),
        [8] if element.kind == ScalarKind::Bool || element.width == 4 => Ok(Shape { scalar: element, lanes: 8 }),
        _ => Err(error::unsupported_type(op, ty, "vectors have 2 or 4 lanes, or 8 of 32 bits")),
    }
}
