//! Scalar arguments: words of the kernel's immediates, or of a uniform buffer behind its other bindings.

use super::module::{Ex, Kernel, Lowered, Shape};
use super::{narrow, types};
use crate::error;
use monopour_contract::attributes;
use monopour_ir::{Block, Diagnostics, Op, Type};
use monopour_program::GpuFeature;
use naga::{AddressSpace, BinaryOperator as B, Expression, Scalar, ScalarKind, StructMember, TypeInner};

/// Bytes of a scalar among the numbers.
pub(crate) fn size_bytes(ty: Type) -> u8 {
    let bits = ty.integer_width().or_else(|| ty.float_width()).unwrap_or(32);
    if bits > 32 { 8 } else { 4 }
}

/// Declares the scalar arguments and defines each by a load; returns their sizes. `binding` is the first free one.
pub(super) fn bind<'c>(
    kernel: &mut Kernel<'c>,
    func: Op<'c>,
    body: Block<'c>,
    binding: u32,
) -> Result<Vec<u8>, Diagnostics> {
    let scalars: Vec<_> = body.args().into_iter().filter(|a| !a.ty().is_memref()).collect();
    if scalars.is_empty() {
        return Ok(vec![]);
    }
    let place = if func.attr(attributes::NUMBER_BUFFER).is_some() {
        (AddressSpace::Uniform, Some(binding))
    } else {
        kernel.features.insert(GpuFeature::Immediates);
        (AddressSpace::Immediate, None)
    };
    let sizes: Vec<u8> = scalars.iter().map(|a| size_bytes(a.ty())).collect();
    let (mut first_words, mut words) = (Vec::new(), 0u32);
    for size in &sizes {
        let count = u32::from(*size) / 4;
        words = words.next_multiple_of(count);
        first_words.push(words);
        words += count;
    }
    let base = declare(kernel, words, place);
    for (arg, first) in scalars.into_iter().zip(first_words) {
        if arg.is_unused() {
            continue;
        }
        let scalar = types::scalar(kernel, func, arg.ty())?;
        if arg.ty().is_vector() {
            return Err(error::unsupported_type(func, arg.ty(), "a scalar argument is one number"));
        }
        let low = word(kernel, base, first);
        let value = if size_bytes(arg.ty()) == 8 {
            let high = word(kernel, base, first + 1);
            wide(kernel, scalar, low, high)
        } else {
            narrow::from_word(kernel, arg.ty(), scalar, low)
        };
        kernel.set(arg, Lowered::One(value));
    }
    Ok(sizes)
}

/// A struct of words: arrays are not allowed among immediates everywhere, and have strides of 16 bytes in uniform buffers.
fn declare(kernel: &mut Kernel, words: u32, (space, binding): (AddressSpace, Option<u32>)) -> Ex {
    let u32_type = kernel.plane_type(Shape { scalar: Scalar::U32, lanes: 1 });
    let member = |i: u32| StructMember { name: Some(format!("word{i}")), ty: u32_type, binding: None, offset: i * 4 };
    let inner = TypeInner::Struct { members: (0..words).map(member).collect(), span: words * 4 };
    let ty = kernel.named_ty("Scalars", inner);
    kernel.global("scalars".to_owned(), space, binding, ty)
}

fn word(kernel: &mut Kernel, base: Ex, index: u32) -> Ex {
    let pointer = kernel.add(Expression::AccessIndex { base, index });
    kernel.load(pointer)
}

/// A 64-bit number from its halves.
fn wide(kernel: &mut Kernel, scalar: Scalar, low: Ex, high: Ex) -> Ex {
    let (low, high) = (kernel.convert(low, ScalarKind::Uint, 8), kernel.convert(high, ScalarKind::Uint, 8));
    let shift = kernel.u32(32);
    let high = kernel.binary(B::ShiftLeft, high, shift);
    let bits = kernel.binary(B::InclusiveOr, low, high);
    kernel.features.insert(GpuFeature::Int64);
    kernel.bitcast(bits, scalar.kind)
}
