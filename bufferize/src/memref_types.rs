//! Memref types: of tensor types under the options, of slices, and the casts between them.

use monopour_contract::attributes;
use monopour_ir::{Attr, DYNAMIC, MemRefType, Type, bufferizable};

use crate::effects::{Index, SliceModel};
use crate::options::{FunctionBoundaryTypeConversion, Options};

/// Whether memrefs can hold an element type; dialects can declare that, so MLIR is queried.
pub(crate) fn is_memref_element(element: Type) -> bool {
    let cx = element.context();
    cx.with_diagnostics(|| Type::parse(cx, &format!("memref<{element}>"))).0.is_some()
}

/// The memory space of a tensor type under the options.
pub(crate) fn memory_space<'c>(options: &Options, tensor: Type<'c>) -> Option<Attr<'c>> {
    if options.must_infer_memory_space {
        return Some(Attr::string(tensor.context(), attributes::UNKNOWN_SPACE));
    }
    tensor.as_tensor().and_then(|t| t.encoding).filter(|_| options.use_encoding_for_memory_space)
}

/// The row-major memref of a tensor type.
pub(crate) fn identity<'c>(options: &Options, tensor: Type<'c>) -> Type<'c> {
    if tensor.is_unranked_tensor() {
        return Type::unranked_memref(tensor.element(), memory_space(options, tensor));
    }
    if tensor.as_tensor().is_none() {
        // A type of another dialect gives its buffer type by its interface.
        return bufferizable::buffer_like_type(tensor, &options.for_interface()).unwrap_or(tensor);
    }
    Type::memref(&tensor.shape().unwrap_or_default(), tensor.element(), memory_space(options, tensor))
}

/// The memref type of a function's argument.
pub(crate) fn boundary_type<'c>(options: &Options, tensor: Type<'c>) -> Type<'c> {
    let identity = identity(options, tensor);
    match (options.function_boundary_type_conversion, identity.as_memref()) {
        (FunctionBoundaryTypeConversion::Identity, _) | (_, None) => identity,
        (_, Some(memref)) => dynamic_layout(&memref),
    }
}

/// The same memref with dynamic strides and offset.
pub(crate) fn dynamic_layout<'c>(memref: &MemRefType<'c>) -> Type<'c> {
    let strides = vec![DYNAMIC; memref.shape.len()];
    Type::strided_memref(&memref.shape, memref.element, DYNAMIC, &strides, memref.memory_space)
}

/// Whether `memref.cast` from one type to the other cannot fail, and accesses by the result's type reach the same
/// elements: no dynamic part becomes static, and a row-major result has a row-major source.
pub(crate) fn is_cast_safe(from: Type, to: Type) -> bool {
    let (Some(a), Some(b)) = (from.as_memref(), to.as_memref()) else { return false };
    // Strides outside of a dynamic size print as `?` in an identity layout too, but they follow from the sizes.
    if has_identity_layout(to) && !has_identity_layout(from) && !is_row_major(&a) {
        return false;
    }
    let widens = |x: i64, y: i64| x == y || y == DYNAMIC;
    a.element == b.element
        && a.memory_space == b.memory_space
        && a.shape.len() == b.shape.len()
        && a.shape.iter().zip(&b.shape).all(|(x, y)| widens(*x, *y))
        && a.strides.iter().zip(&b.strides).all(|(x, y)| widens(*x, *y))
        && widens(a.offset, b.offset)
}

/// Whether the layout is the identity map, which MLIR requires for the source of a reshape: `strided<[1]>` is, `strided<[6, 1]>` not.
pub(crate) fn has_identity_layout(ty: Type) -> bool {
    ty.memref_layout().is_some_and(|map| map.is_identity())
}

/// Whether the strides certainly are row-major. A dimension of size 1 may have any.
fn is_row_major(memref: &MemRefType) -> bool {
    let mut expected = 1;
    for (size, stride) in memref.shape.iter().zip(&memref.strides).rev() {
        if *size != 1 && (expected == DYNAMIC || *stride != expected) {
            return false;
        }
        expected = times(expected, *size);
    }
    true
}

/// A product of numbers that may be dynamic; 0 times anything is 0. It wraps, as MLIR's do.
pub(crate) fn times(a: i64, b: i64) -> i64 {
    match (a, b) {
        (0, _) | (_, 0) => 0,
        (DYNAMIC, _) | (_, DYNAMIC) => DYNAMIC,
        _ => a.wrapping_mul(b),
    }
}

/// The type of `memref.subview` of `source`; dimensions of size 1 that `shape` lacks are dropped.
pub(crate) fn subview_type<'c>(source: &MemRefType<'c>, slice: &SliceModel<'c>, shape: &[i64]) -> Type<'c> {
    let number = |index: &Index<'c>| index.number();
    let plus = |a: i64, b: i64| if a == DYNAMIC || b == DYNAMIC { DYNAMIC } else { a.wrapping_add(b) };
    let mut offset = source.offset;
    for (first, stride) in slice.offsets.iter().zip(&source.strides) {
        offset = plus(offset, times(number(first), *stride));
    }
    let strides: Vec<i64> = slice.strides.iter().zip(&source.strides).map(|(a, b)| times(number(a), *b)).collect();
    let sizes: Vec<i64> = slice.sizes.iter().map(number).collect();
    let kept = kept_dims(&sizes, shape);
    let pick = |all: &[i64]| kept.iter().map(|d| all[*d]).collect::<Vec<_>>();
    Type::strided_memref(&pick(&sizes), source.element, offset, &pick(&strides), source.memory_space)
}

/// The dimensions of `sizes` that remain in `shape`: greedily the first that fit, the others have size 1.
fn kept_dims(sizes: &[i64], shape: &[i64]) -> Vec<usize> {
    if sizes.len() == shape.len() {
        return (0..sizes.len()).collect();
    }
    let mut kept = Vec::with_capacity(shape.len());
    for (dim, size) in sizes.iter().enumerate() {
        let remaining = sizes.len() - dim;
        let wanted = shape.len() - kept.len();
        let fits = shape.get(kept.len()).is_some_and(|s| s == size);
        if fits && (*size != 1 || remaining == wanted || shape.len() > kept.len()) {
            kept.push(dim);
        }
    }
    kept.truncate(shape.len());
    kept
}

#[cfg(test)]
mod tests {
    use super::kept_dims;

    #[test]
    fn dimensions_of_size_one_are_dropped() {
        assert_eq!(kept_dims(&[1, 8, 1, 4], &[8, 4]), [1, 3]);
        assert_eq!(kept_dims(&[1, 8, 1], &[1, 8]), [0, 1]);
        assert_eq!(kept_dims(&[4, 4], &[4, 4]), [0, 1]);
        assert_eq!(kept_dims(&[1, 1], &[]), [0usize; 0]);
    }
}
