//! `vector`: building and extracting. Element i of eight is in plane i % 2 at position i / 2.

use super::module::{Ex, Kernel, Lowered, Shape};
use super::short_float::ShortFloat;
use super::{memref, types};
use crate::error;
use monopour_ir::ops;
use monopour_ir::{Diagnostics, Op, Value};
use naga::{Expression, MathFunction as M};

pub(super) fn emit<'c>(kernel: &mut Kernel<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    match op.name() {
        ops::vector::LOAD => return memref::load(kernel, op, op.operand(0), &op.operands()[1..]),
        ops::vector::STORE => return memref::store(kernel, op, op.operand(1), &op.operands()[2..]),
        _ => {}
    }
    if op.num_results() != 1 {
        return Err(error::unsupported_op(op));
    }
    let shape = types::shape(kernel, op, op.result(0).ty())?;
    let lowered = match op.name() {
        ops::vector::BROADCAST if !op.operand(0).ty().is_vector() => {
            let scalar = kernel.one(op.operand(0));
            kernel.splat_value(scalar, shape.lanes)
        }
        ops::vector::BROADCAST if op.operand(0).ty() == op.result(0).ty() => kernel.operand(op, 0),
        ops::vector::FROM_ELEMENTS => {
            let lanes: Vec<Ex> = op.operands().into_iter().map(|v| kernel.one(v)).collect();
            compose(kernel, shape, &lanes)
        }
        ops::vector::EXTRACT => Lowered::One(extract_op(kernel, op)?),
        ops::vector::INSERT => insert(kernel, op, shape)?,
        ops::vector::SHUFFLE => shuffle(kernel, op, shape)?,
        ops::vector::BITCAST => bitcast(kernel, op, shape)?,
        ops::vector::FMA => {
            let value = fma(kernel, op);
            match ShortFloat::of(kernel, op.result(0).ty()) {
                Some(short) => kernel.map(value, |k, a| short.round(k, a, shape.lanes)),
                None => value,
            }
        }
        _ => return Err(error::unsupported_op(op)),
    };
    kernel.set(op.result(0), lowered);
    Ok(())
}

/// A vector from its lanes.
pub(super) fn compose(kernel: &mut Kernel, shape: Shape, lanes: &[Ex]) -> Lowered {
    let ty = kernel.plane_type(shape);
    let plane = |kernel: &mut Kernel, components: Vec<Ex>| kernel.add(Expression::Compose { ty, components });
    match lanes.len() {
        1 => Lowered::One(lanes[0]),
        8 => {
            let even = lanes.iter().copied().step_by(2).collect();
            let odd = lanes.iter().copied().skip(1).step_by(2).collect();
            Lowered::Planes([plane(kernel, even), plane(kernel, odd)])
        }
        _ => Lowered::One(plane(kernel, lanes.to_vec())),
    }
}

/// One lane.
fn lane(kernel: &mut Kernel, value: Lowered, index: u32) -> Ex {
    match value {
        Lowered::One(base) => kernel.add(Expression::AccessIndex { base, index }),
        Lowered::Planes(planes) => {
            kernel.add(Expression::AccessIndex { base: planes[index as usize % 2], index: index / 2 })
        }
    }
}

/// All lanes of an operand.
pub(super) fn lanes<'c>(kernel: &mut Kernel<'c>, op: Op<'c>, value: Value<'c>) -> Result<Vec<Ex>, Diagnostics> {
    let shape = types::shape(kernel, op, value.ty())?;
    let lowered = kernel.get(value);
    if shape.lanes == 1 {
        return Ok(vec![kernel.one(value)]);
    }
    Ok((0..shape.lanes).map(|i| lane(kernel, lowered, i)).collect())
}

/// The constant position of an extract or insert.
fn position(op: Op) -> Option<u32> {
    match op.attr("static_position")?.as_ints()?.as_slice() {
        [p] => u32::try_from(*p).ok(),
        _ => None,
    }
}

fn extract_op<'c>(kernel: &mut Kernel<'c>, op: Op<'c>) -> Result<Ex, Diagnostics> {
    let index = position(op).ok_or_else(|| error::unsupported_op(op))?;
    let value = kernel.operand(op, 0);
    Ok(lane(kernel, value, index))
}

fn insert<'c>(kernel: &mut Kernel<'c>, op: Op<'c>, shape: Shape) -> Result<Lowered, Diagnostics> {
    let index = position(op).ok_or_else(|| error::unsupported_op(op))?;
    let mut all = lanes(kernel, op, op.operand(1))?;
    all[index as usize] = kernel.one(op.operand(0));
    Ok(compose(kernel, shape, &all))
}

fn shuffle<'c>(kernel: &mut Kernel<'c>, op: Op<'c>, shape: Shape) -> Result<Lowered, Diagnostics> {
    let mask = op.attr("mask").and_then(|a| a.as_ints()).ok_or_else(|| error::unsupported_op(op))?;
    let mut all = lanes(kernel, op, op.operand(0))?;
    all.extend(lanes(kernel, op, op.operand(1))?);
    // A mask of -1 allows any lane.
    let picked: Vec<Ex> = mask.iter().map(|m| all[(*m).max(0) as usize]).collect();
    Ok(compose(kernel, shape, &picked))
}

fn bitcast<'c>(kernel: &mut Kernel<'c>, op: Op<'c>, shape: Shape) -> Result<Lowered, Diagnostics> {
    let from = types::shape(kernel, op, op.operand(0).ty())?;
    if from.lanes != shape.lanes
        || ShortFloat::of(kernel, op.operand(0).ty()) != ShortFloat::of(kernel, op.result(0).ty())
    {
        return Err(error::unsupported_op(op));
    }
    let a = kernel.operand(op, 0);
    Ok(kernel.map(a, |k, a| if from.scalar.kind == shape.scalar.kind { a } else { k.bitcast(a, shape.scalar.kind) }))
}

fn fma<'c>(kernel: &mut Kernel<'c>, op: Op<'c>) -> Lowered {
    match (kernel.operand(op, 0), kernel.operand(op, 1), kernel.operand(op, 2)) {
        (Lowered::Planes(a), Lowered::Planes(b), Lowered::Planes(c)) => {
            Lowered::Planes([kernel.math(M::Fma, &[a[0], b[0], c[0]]), kernel.math(M::Fma, &[a[1], b[1], c[1]])])
        }
        (Lowered::One(a), Lowered::One(b), Lowered::One(c)) => Lowered::One(kernel.math(M::Fma, &[a, b, c])),
        _ => unreachable!("vector.fma has operands of one shape: verified"),
    }
}
