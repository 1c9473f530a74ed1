//! Cooperative matrices in workgroup memory: numbers that a subgroup holds together, factors of f16 and sums of f32.
//!
//! No invocation knows which elements of a matrix it holds. What needs their places passes through workgroup memory; what does
//! not is computed by each invocation on the elements that it holds, which matrices of one type hold in one order.

use super::code::Code;
use monopour_ir::typed::gpu::{MatrixRole, MatrixType};
use monopour_ir::typed::memref;
use monopour_ir::{Attr, Diagnostics, OpSpec, Type, Value, ops};

/// Rows and columns of a matrix.
pub(super) const MATRIX: i64 = 16;
/// Elements of one access of an invocation, of halves or of sums.
pub(super) const HALVES: i64 = 4;
/// Halves between lines, beyond their length: lines begin in other banks, at multiples of sixteen bytes.
pub(super) const SKEW: i64 = 8;
/// Likewise of f32.
pub(super) const SUMS_SKEW: i64 = 4;

fn matrix_type<'c>(code: &Code<'c, '_>, role: MatrixRole) -> Type<'c> {
    type_of(if role == MatrixRole::C { Type::f32(code.cx) } else { Type::f16(code.cx) }, role)
}

/// Of f16 or f32.
fn type_of(element: Type, role: MatrixRole) -> Type {
    MatrixType { size: MATRIX, element, role }.to_type().expect("invariant: MLIR has matrices of f16 and f32")
}

/// Sums of zero.
pub(super) fn zero<'c>(code: &mut Code<'c, '_>) -> Value<'c> {
    let zero = code.zero(Type::f32(code.cx));
    let ty = matrix_type(code, MatrixRole::C);
    code.op1(ops::gpu::SUBGROUP_MMA_CONSTANT_MATRIX, &[zero], ty)
}

/// The matrix at an element of a buffer, whose lines are `pitch` apart; `turned`: lines are columns. Factors are f16, sums are of
/// the buffer's type.
pub(super) fn load<'c>(
    code: &mut Code<'c, '_>,
    role: MatrixRole,
    (buffer, at): (Value<'c>, Value<'c>),
    (pitch, turned): (i64, bool),
) -> Result<Value<'c>, Diagnostics> {
    let ty = type_of(buffer.ty().element(), role);
    let mut spec = OpSpec::new(ops::gpu::SUBGROUP_MMA_LOAD_MATRIX, code.loc)
        .operands(&[buffer, at])
        .results(&[ty])
        .attr("leadDimension", Attr::int(code.index, pitch));
    if turned {
        spec = spec.attr("transpose", Attr::unit(code.cx));
    }
    Ok(code.create(spec)?.result(0))
}

/// Stores a matrix of sums at an element of a buffer, in lines that are `pitch` apart.
pub(super) fn store<'c>(
    code: &mut Code<'c, '_>,
    sums: Value<'c>,
    to: (Value<'c>, Value<'c>),
    pitch: i64,
) -> Result<(), Diagnostics> {
    store_lines(code, sums, to, (pitch, false))
}

/// As [`store`]; `turned`: lines are columns. Sums of f32 are rounded to the buffer's type, for which MLIR's elementwise op has
/// no name.
pub(super) fn store_lines<'c>(
    code: &mut Code<'c, '_>,
    sums: Value<'c>,
    (buffer, at): (Value<'c>, Value<'c>),
    (pitch, turned): (i64, bool),
) -> Result<(), Diagnostics> {
    let mut spec = OpSpec::new(ops::gpu::SUBGROUP_MMA_STORE_MATRIX, code.loc)
        .operands(&[sums, buffer, at])
        .attr("leadDimension", Attr::int(code.index, pitch));
    if turned {
        spec = spec.attr("transpose", Attr::unit(code.cx));
    }
    code.create(spec).map(|_| ())
}

/// A matrix of f16 or f32 as one of f32.
pub(super) fn widened<'c>(code: &mut Code<'c, '_>, matrix: Value<'c>) -> Result<Value<'c>, Diagnostics> {
    let ty = matrix_type(code, MatrixRole::C);
    if matrix.ty() == ty {
        return Ok(matrix);
    }
    let op = Attr::parse(code.cx, "#gpu<mma_element_wise extf>").expect("invariant: MLIR has this op");
    let spec = OpSpec::new(ops::gpu::SUBGROUP_MMA_ELEMENTWISE, code.loc).operands(&[matrix]).results(&[ty]);
    Ok(code.create(spec.attr("opType", op))?.result(0))
}

/// Memory of an invocation for its elements of a matrix of sums: stored there, a matrix is what the invocation holds of it,
/// whatever the pitch.
pub(super) fn elements<'c>(code: &mut Code<'c, '_>, lanes: i64) -> Result<Value<'c>, Diagnostics> {
    let ty = Type::memref(&[MATRIX * MATRIX / lanes], Type::f32(code.cx), None);
    Ok(code.create(memref::alloca(code.loc, &[], ty))?.result(0))
}

/// `sum + left * right`.
pub(super) fn multiply_add<'c>(code: &mut Code<'c, '_>, [left, right, sum]: [Value<'c>; 3]) -> Value<'c> {
    code.op1(ops::gpu::SUBGROUP_MMA_COMPUTE, &[left, right, sum], sum.ty())
}
