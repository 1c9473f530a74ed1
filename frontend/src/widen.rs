//! Widens the constant filters of convolutions to the type in which they are multiplied, for CPUs.
//!
//! Before / after:
//!
//! ```text
//! %w = arith.constant dense_resource<w> : tensor<64x32xf16>     %w = arith.constant dense_resource<f32_w> : tensor<64x32xf32>
//! generic (o, p, c) ins(%image, %w) {                           generic (o, p, c) ins(%image, %w) {
//!   %a = arith.extf %i; %b = arith.extf %f                        %a = arith.extf %i
//!   addf(%o, mulf(%a, %b))                                        addf(%o, mulf(%a, %f))
//! ```
//!
//! A filter's element is broadcast to the lanes of an image: one conversion per element and vector. A right operand is widened
//! as code generation packs it, and stays narrow in memory: it is half as many bytes.
//! Limits: constants of f16 and bf16 that are operands themselves.

use crate::import::WeightTable;
use crate::products;
use monopour_ir::ops;
use monopour_ir::{Attr, Diagnostics, InsertionPoint, Module, Op, OpSpec, Rewriter, Type};
use monopour_program::DType;
use std::collections::HashMap;

/// Widens the filters of all convolutions and of products with a constant left operand; `weights` gets the new elements.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub fn run(module: &Module, weights: &mut WeightTable) -> Result<(), Diagnostics> {
    let mut filters = Filters { weights, wide: HashMap::new() };
    let mut rw = Rewriter::new(module.context());
    for op in module.op().find_all(ops::linalg::GENERIC) {
        if let Some(filter) = filter(op) {
            filters.widen(op, filter, &mut rw)?;
        }
    }
    Ok(())
}

/// The operand of which each element meets all lanes of the other.
fn filter(op: Op) -> Option<usize> {
    let convolution = products::convolution_loops(op).map(|loops| 1 - loops.input);
    convolution.or_else(|| products::contraction_loops(op).filter(|loops| !loops.n.is_empty()).map(|loops| loops.lhs))
}

/// The extension to f32 that alone reads the operand's element.
fn only_extension<'c>(op: Op<'c>, operand: usize) -> Option<Op<'c>> {
    let [only] = op.body()?.arg(operand).uses()[..] else { return None };
    Some(only.op).filter(|op| op.is(ops::arith::EXTF) && op.result(0).ty() == Type::f32(op.context()))
}

/// The weights, and the wide value of each narrow one.
struct Filters<'c, 'a> {
    weights: &'a mut WeightTable,
    wide: HashMap<Attr<'c>, Attr<'c>>,
}

impl<'c> Filters<'c, '_> {
    fn widen(&mut self, op: Op<'c>, filter: usize, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
        let constant = op.operand(filter).defining_op().filter(|def| def.is(ops::arith::CONSTANT));
        let value = constant.and_then(|op| op.attr("value"));
        let (Some(value), Some(extension)) = (value, only_extension(op, filter)) else { return Ok(()) };
        let Some(attr) = self.wide_value(value, extension.result(0).ty()) else { return Ok(()) };
        rw.set_point(InsertionPoint::Before(op));
        let spec = OpSpec::new(ops::arith::CONSTANT, op.location()).results(&[attr.value_type()]);
        let made = rw.create(spec.attr("value", attr))?;
        rw.set_operand(op, filter, made.result(0));
        let element = extension.operand(0);
        rw.set_type(element, extension.result(0).ty());
        rw.replace_op(extension, &[element]);
        Ok(())
    }

    /// The elements as f32: a weight of its own where the narrow one is, else inline.
    fn wide_value(&mut self, narrow: Attr<'c>, element: Type<'c>) -> Option<Attr<'c>> {
        if let Some(wide) = self.wide.get(&narrow) {
            return Some(*wide);
        }
        let narrow_ty = narrow.value_type();
        let dtype = DType::parse(&narrow_ty.element().to_string())?;
        let ty = Type::tensor(&narrow_ty.shape()?, element, None);
        let bytes = to_f32(dtype, &self.weights.bytes_of(narrow)?)?;
        let wide = self.weights.derive(narrow, "f32", DType::F32, ty, bytes)?;
        self.wide.insert(narrow, wide);
        Some(wide)
    }
}

/// Elements of f16 or bf16 as f32, little endian.
fn to_f32(dtype: DType, bytes: &[u8]) -> Option<Vec<u8>> {
    let wide: fn(u16) -> f32 = match dtype {
        DType::F16 => f16_to_f32,
        DType::Bf16 => |bits| f32::from_bits(u32::from(bits) << 16),
        _ => return None,
    };
    Some(bytes.chunks_exact(2).flat_map(|b| wide(u16::from_le_bytes([b[0], b[1]])).to_le_bytes()).collect())
}

fn f16_to_f32(bits: u16) -> f32 {
    let (sign, size) = (u32::from(bits & 0x8000) << 16, u32::from(bits & 0x7fff) << 13);
    let wide = match size {
        // Infinity and NaN keep the largest exponent.
        0x0f80_0000.. => f32::from_bits(size | 0x7f80_0000),
        // The exponent's bias is 112 less; denormals become normal.
        _ => f32::from_bits(size) * f32::from_bits(239 << 23),
    };
    f32::from_bits(wide.to_bits() | sign)
}

#[cfg(test)]
mod tests {
    use super::f16_to_f32;

    #[test]
    fn halves_have_their_value_in_f32() {
        let value = |bits: u16| {
            let (exponent, fraction) = (i32::from(bits >> 10 & 31), f32::from(bits & 0x3ff));
            let size =
                if exponent == 0 { fraction * 2f32.powi(-24) } else { (1024.0 + fraction) * 2f32.powi(exponent - 25) };
            if bits & 0x8000 == 0 { size } else { -size }
        };
        for bits in (0..=u16::MAX).filter(|bits| bits >> 10 & 31 != 31) {
            assert_eq!(f16_to_f32(bits).to_bits(), value(bits).to_bits(), "{bits:#x}");
        }
        assert_eq!((f16_to_f32(0x7c00), f16_to_f32(0xfc00)), (f32::INFINITY, f32::NEG_INFINITY));
        assert!(f16_to_f32(0x7e00).is_nan() && f16_to_f32(0xfc01).is_nan());
    }
}
