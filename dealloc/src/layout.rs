//! Copies with the layout of a view, gaps included.
//!
//! ```text
//! %v : memref<4xf32, strided<[6], offset: 1>>    ==>    %b = memref.alloc(%len) : memref<?xf32>    // 1 + 3 * 6 + 1
//!                                                       %c = memref.reinterpret_cast %b to offset: [1], sizes: [4], strides: [6]
//!                                                       memref.copy %v, %c
//! ```
//!
//! As large as the part of the view's buffer up to its last element. Limits: strides that are not negative.

use monopour_ir::ops;
use monopour_ir::typed::memref;
use monopour_ir::{Attr, DYNAMIC, Diagnostics, MemRefType, Op, OpSpec, Rewriter, Type, Value};

/// A copy of a ranked memref with the same type, at the insertion point.
pub(crate) fn copy_in_layout<'c>(
    rw: &mut Rewriter<'c>,
    at: Op<'c>,
    value: Value<'c>,
    ty: &MemRefType<'c>,
) -> Result<Value<'c>, Diagnostics> {
    let (cx, loc, rank) = (rw.context(), at.location(), ty.shape.len());
    let index = Type::index(cx);
    let mut results = vec![Type::memref(&[], ty.element, ty.memory_space), index];
    results.extend(std::iter::repeat_n(index, 2 * rank));
    let found =
        rw.create(OpSpec::new(ops::memref::EXTRACT_STRIDED_METADATA, loc).operands(&[value]).results(&results))?;
    let numbers: Vec<Value> = found.results()[1..].to_vec();
    let (offset, sizes, strides) = (numbers[0], &numbers[1..=rank], &numbers[1 + rank..]);
    let one = rw.const_index(1, loc);
    let mut length = rw.binary(ops::arith::ADDI, offset, one, loc)?;
    for (size, stride) in sizes.iter().zip(strides) {
        let last = rw.binary(ops::arith::SUBI, *size, one, loc)?;
        let distance = rw.binary(ops::arith::MULI, last, *stride, loc)?;
        length = rw.binary(ops::arith::ADDI, length, distance, loc)?;
    }
    // Without elements it may be negative.
    let none = rw.const_index(0, loc);
    length = rw.binary(ops::arith::MAXSI, length, none, loc)?;
    let buffer = rw.create(
        memref::alloc(loc, &[length], Type::memref(&[DYNAMIC], ty.element, ty.memory_space))
            .attr("alignment", Attr::i64(cx, 64)),
    )?;
    let dynamic = |known: &[i64], values: &[Value<'c>]| -> Vec<Value<'c>> {
        known.iter().zip(values).filter(|(k, _)| **k == DYNAMIC).map(|(_, v)| *v).collect()
    };
    let parts = (dynamic(&[ty.offset], &[offset]), dynamic(&ty.shape, sizes), dynamic(&ty.strides, strides));
    let slice = ty.to_slice(parts.0, parts.1, parts.2).expect("invariant: a value per dynamic number");
    let view = rw.create(memref::reinterpret_cast(loc, buffer.result(0), &slice, value.ty()))?;
    rw.create(OpSpec::new(ops::memref::COPY, loc).operands(&[value, view.result(0)]))?;
    Ok(view.result(0))
}
