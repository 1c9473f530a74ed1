//! Expansions of ops that are instructions on many machines, for those without.

use crate::Function;
use crate::emit::Emit;
use monopour_ir::Value;
use monopour_ir::ops;
use monopour_ir::typed::arith::CmpFPredicate;

/// Every type.
const ALL: &[u32] = &[16, 32, 64];

/// The fused multiply-add as two ops: the error bounds of its users allow for two roundings.
pub const FUSED: &[Function] = &[Function::new(ops::math::FMA, ALL, split_fma)];
/// `math.isinf`, which upstream does not lower.
pub const INFINITE: &[Function] = &[Function::new(ops::math::ISINF, ALL, is_infinite)];

fn split_fma<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let product = e.mul(operands[0], operands[1]);
    e.add(product, operands[2])
}

fn is_infinite<'c>(e: &mut Emit<'c, '_>, operands: &[Value<'c>]) -> Value<'c> {
    let size = e.abs(operands[0]);
    e.compare_c(CmpFPredicate::Oeq, size, f64::INFINITY)
}
