//! Cooperative matrices: `gpu.subgroup_mma_*`.
//!
//! Naga has neither the elements of a matrix that an invocation holds nor conversions of matrices. Both are written as stores to
//! and loads from an invocation's own arrays, which [`super::fragments`] makes variables of matrices.

use super::module::{Ex, Kernel, Lowered};
use super::types;
use super::{fragments, memref};
use crate::error;
use monopour_ir::ops;
use monopour_ir::typed::gpu::{MatrixRole, MatrixType};
use monopour_ir::{Diagnostics, Op, Type, Value};
use monopour_program::GpuFeature;
use naga::{CooperativeData, CooperativeRole, CooperativeSize, Expression, Handle, Statement, TypeInner};

/// Rows and columns of the matrices that the feature promises.
const SIZE: i64 = 16;

/// The naga type of a matrix; `None` for other types.
pub(super) fn matrix_type<'c>(
    kernel: &mut Kernel<'c>,
    op: Op<'c>,
    ty: Type<'c>,
) -> Result<Option<Handle<naga::Type>>, Diagnostics> {
    let Some(matrix) = MatrixType::of(ty) else { return Ok(None) };
    if matrix.size != SIZE {
        return Err(error::unsupported_type(op, ty, "cooperative matrices have 16 rows and columns"));
    }
    kernel.features.insert(GpuFeature::CooperativeMatrix);
    let scalar = types::scalar(kernel, op, matrix.element)?;
    let (columns, rows, role) = (CooperativeSize::Sixteen, CooperativeSize::Sixteen, role(matrix.role));
    Ok(Some(kernel.ty(TypeInner::CooperativeMatrix { columns, rows, scalar, role })))
}

fn role(role: MatrixRole) -> CooperativeRole {
    match role {
        MatrixRole::A => CooperativeRole::A,
        MatrixRole::B => CooperativeRole::B,
        MatrixRole::C => CooperativeRole::C,
    }
}

pub(super) fn emit<'c>(kernel: &mut Kernel<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    match op.name() {
        ops::gpu::SUBGROUP_MMA_CONSTANT_MATRIX => constant(kernel, op),
        ops::gpu::SUBGROUP_MMA_LOAD_MATRIX => load(kernel, op),
        ops::gpu::SUBGROUP_MMA_COMPUTE => {
            let [a, b, c] = [0, 1, 2].map(|i| matrix(kernel, op.operand(i)));
            let sum = kernel.add(Expression::CooperativeMultiplyAdd { a, b, c });
            // Drivers copy matrices that a loop carries; one that nothing else reads is updated where it is.
            match kernel.matrix(op.operand(2)).filter(|_| op.operand(2).uses().len() == 1) {
                Some(variable) => {
                    kernel.store(variable, sum);
                    kernel.set_matrix(op.result(0), variable);
                }
                None => kernel.set(op.result(0), Lowered::One(sum)),
            }
            Ok(())
        }
        ops::gpu::SUBGROUP_MMA_ELEMENTWISE => {
            let to = MatrixType::of(op.result(0).ty()).ok_or_else(|| error::unsupported_op(op))?;
            let widened = convert(kernel, op, op.operand(0), to.element)?;
            kernel.set(op.result(0), Lowered::One(widened));
            Ok(())
        }
        _ => {
            let target = convert(kernel, op, op.operand(0), op.operand(1).ty().element())?;
            let data = data(kernel, op, op.operand(1), op.operand(2))?;
            kernel.push(Statement::CooperativeStore { target, data });
            Ok(())
        }
    }
}

/// A matrix as an expression.
fn matrix<'c>(kernel: &mut Kernel<'c>, value: Value<'c>) -> Ex {
    match kernel.matrix(value) {
        Some(variable) => kernel.load(variable),
        None => kernel.one(value),
    }
}

/// Only zero has an expression.
fn constant<'c>(kernel: &mut Kernel<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    let value = op.operand(0).defining_op().filter(|c| c.is(ops::arith::CONSTANT)).and_then(|c| c.attr("value"));
    let is_zero = value.and_then(|v| v.as_float()).is_some_and(|v| v.to_bits() == 0);
    let ty = matrix_type(kernel, op, op.result(0).ty())?.filter(|_| is_zero);
    let ty = ty.ok_or_else(|| error::unsupported_op(op))?;
    let zero = kernel.add(Expression::ZeroValue(ty));
    kernel.set(op.result(0), Lowered::One(zero));
    Ok(())
}

fn load<'c>(kernel: &mut Kernel<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    let ty = op.result(0).ty();
    matrix_type(kernel, op, ty)?;
    let matrix = MatrixType::of(ty).ok_or_else(|| error::unsupported_op(op))?;
    let data = data(kernel, op, op.operand(0), op.operand(1))?;
    let (columns, rows, role) = (CooperativeSize::Sixteen, CooperativeSize::Sixteen, role(matrix.role));
    let loaded = kernel.add(Expression::CooperativeLoad { columns, rows, role, data });
    kernel.set(op.result(0), Lowered::One(loaded));
    Ok(())
}

/// A matrix as one with these elements. Sums of f16 and f32 are stored as an array of one type, and loaded as one of the other.
fn convert<'c>(kernel: &mut Kernel<'c>, op: Op<'c>, value: Value<'c>, element: Type<'c>) -> Result<Ex, Diagnostics> {
    let target = matrix(kernel, value);
    let from = MatrixType::of(value.ty()).ok_or_else(|| error::unsupported_op(op))?;
    if from.element == element {
        return Ok(target);
    }
    let width = |ty: Type| ty.float_width().filter(|_| from.role == MatrixRole::C);
    let (Some(from @ (16 | 32)), Some(to @ (16 | 32))) = (width(from.element), width(element)) else {
        return Err(error::unsupported_op(op));
    };
    kernel.use_f16();
    let variable = fragments::variable(kernel);
    let stride = kernel.u32(1);
    let place = |kernel: &mut Kernel<'c>, width: u32| {
        let array = kernel.add(Expression::AccessIndex { base: variable, index: u32::from(width == 16) });
        let pointer = kernel.add(Expression::AccessIndex { base: array, index: 0 });
        CooperativeData { pointer, stride, row_major: true }
    };
    let data = place(kernel, from);
    kernel.push(Statement::CooperativeStore { target, data });
    let (columns, rows, role) = (CooperativeSize::Sixteen, CooperativeSize::Sixteen, CooperativeRole::C);
    let data = place(kernel, to);
    Ok(kernel.add(Expression::CooperativeLoad { columns, rows, role, data }))
}

/// The first element of a matrix in memory, and the distance of its lines, both in entries of the array.
fn data<'c>(
    kernel: &mut Kernel<'c>,
    op: Op<'c>,
    buffer: Value<'c>,
    index: Value<'c>,
) -> Result<CooperativeData, Diagnostics> {
    let (pointer, lanes) = memref::matrix_entry(kernel, op, buffer, index)?;
    let pitch = op.attr("leadDimension").and_then(|a| a.as_int()).unwrap_or(0);
    let pitch = u32::try_from(pitch).ok().filter(|pitch| pitch % lanes == 0);
    let pitch = pitch.ok_or_else(|| error::mixed_lanes(op, lanes, 1))?;
    let stride = kernel.u32(pitch / lanes);
    Ok(CooperativeData { pointer, stride, row_major: op.attr("transpose").is_none() })
}
