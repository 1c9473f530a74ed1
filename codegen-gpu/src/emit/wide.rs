//! Ops of f64 that work on its bits, and so need 64-bit integers.

use monopour_ir::ops;
use monopour_ir::typed::arith::CmpFPredicate;
use monopour_ir::{Op, Type};

/// Whether the code of `op` holds the bits of an f64 as an integer.
pub(crate) fn works_on_bits(op: Op) -> bool {
    match op.name() {
        ops::arith::CONSTANT => is_double(op.result(0).ty()) && !is_finite(op),
        ops::arith::MAXIMUMF
        | ops::arith::MINIMUMF
        | ops::math::COPYSIGN
        | ops::math::ISNAN
        | ops::math::ISINF
        | ops::math::ISFINITE => is_double(op.operand(0).ty()),
        // Tests for NaN.
        ops::arith::CMPF => {
            let is_test = matches!(CmpFPredicate::of(op), Some(CmpFPredicate::Ord | CmpFPredicate::Uno));
            is_double(op.operand(0).ty()) && is_test
        }
        _ => false,
    }
}

/// f64, or a vector or buffer of it.
pub(crate) fn is_double(ty: Type) -> bool {
    ty.element().float_width() == Some(64)
}

fn is_finite(constant: Op) -> bool {
    let value = constant.attr("value").expect("arith.constant has a value");
    value.splat_value().unwrap_or(value).as_float().is_some_and(f64::is_finite)
}
