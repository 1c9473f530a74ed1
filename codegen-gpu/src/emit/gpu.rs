//! `gpu`: ids, subgroup operations, barriers.

use super::module::{Ex, Kernel, Lowered};
use super::short_float::ShortFloat;
use super::{cooperative, types};
use crate::error;
use monopour_ir::ops;
use monopour_ir::typed::gpu::{AllReduceOperation as A, Dimension, ShuffleMode, dimension};
use monopour_ir::{Diagnostics, Op};
use monopour_program::GpuFeature;
use naga::{
    BuiltIn, CollectiveOperation, Expression, GatherMode, Literal, ScalarKind, Statement, SubgroupOperation as S,
};

pub(super) fn emit<'c>(kernel: &mut Kernel<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    match op.name() {
        ops::gpu::BARRIER => {
            kernel.push(Statement::ControlBarrier(kernel.ordered));
            Ok(())
        }
        ops::gpu::SHUFFLE => shuffle(kernel, op),
        ops::gpu::SUBGROUP_REDUCE => reduce(kernel, op),
        ops::gpu::SUBGROUP_BROADCAST => broadcast(kernel, op),
        ops::gpu::SUBGROUP_MMA_CONSTANT_MATRIX
        | ops::gpu::SUBGROUP_MMA_LOAD_MATRIX
        | ops::gpu::SUBGROUP_MMA_COMPUTE
        | ops::gpu::SUBGROUP_MMA_ELEMENTWISE
        | ops::gpu::SUBGROUP_MMA_STORE_MATRIX => cooperative::emit(kernel, op),
        _ => id(kernel, op),
    }
}

fn id<'c>(kernel: &mut Kernel<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    let id = match op.name() {
        ops::gpu::BLOCK_ID => component(kernel, op, BuiltIn::WorkGroupId, "workgroup"),
        ops::gpu::THREAD_ID => component(kernel, op, BuiltIn::LocalInvocationId, "invocation"),
        ops::gpu::GRID_DIM => component(kernel, op, BuiltIn::NumWorkGroups, "workgroups"),
        ops::gpu::LANE_ID => subgroup_builtin(kernel, BuiltIn::SubgroupInvocationId, "lane"),
        ops::gpu::SUBGROUP_ID => subgroup_builtin(kernel, BuiltIn::SubgroupId, "subgroup"),
        ops::gpu::SUBGROUP_SIZE => subgroup_builtin(kernel, BuiltIn::SubgroupSize, "subgroup_size"),
        _ => return Err(error::unsupported_op(op)),
    };
    // Ids are far below 2^31.
    let index = kernel.convert(id, ScalarKind::Sint, 4);
    kernel.set(op.result(0), Lowered::One(index));
    Ok(())
}

fn subgroup_builtin(kernel: &mut Kernel, builtin: BuiltIn, name: &str) -> Ex {
    kernel.features.insert(GpuFeature::Subgroup);
    kernel.builtin(builtin, name, false)
}

/// `#gpu<dim x>` and so on; x is the fastest.
fn component<'c>(kernel: &mut Kernel<'c>, op: Op<'c>, builtin: BuiltIn, name: &str) -> Ex {
    let index = match dimension(op).expect("ids have a dimension: verified") {
        Dimension::X => 0,
        Dimension::Y => 1,
        Dimension::Z => 2,
    };
    let base = kernel.builtin(builtin, name, true);
    kernel.add(Expression::AccessIndex { base, index })
}

fn shuffle<'c>(kernel: &mut Kernel<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    let mode = op.attr("mode").and_then(ShuffleMode::of).expect("a shuffle has a mode: verified");
    let offset = kernel.one(op.operand(1));
    let lane = kernel.bitcast(offset, ScalarKind::Uint);
    let gather = match mode {
        ShuffleMode::Xor => GatherMode::ShuffleXor(lane),
        ShuffleMode::Up => GatherMode::ShuffleUp(lane),
        ShuffleMode::Down => GatherMode::ShuffleDown(lane),
        ShuffleMode::Idx => GatherMode::Shuffle(lane),
    };
    if !op.result(1).is_unused() {
        // The second result is whether the lane exists; kernels here only shuffle from lanes that do.
        let valid = kernel.literal(Literal::Bool(true));
        kernel.set(op.result(1), Lowered::One(valid));
    }
    gather_value(kernel, op, gather)
}

fn broadcast<'c>(kernel: &mut Kernel<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    let mode = if op.num_operands() > 1 {
        let lane = kernel.one(op.operand(1));
        GatherMode::Shuffle(kernel.bitcast(lane, ScalarKind::Uint))
    } else {
        GatherMode::BroadcastFirst
    };
    gather_value(kernel, op, mode)
}

fn gather_value<'c>(kernel: &mut Kernel<'c>, op: Op<'c>, mode: GatherMode) -> Result<(), Diagnostics> {
    let mut shape = types::shape(kernel, op, op.operand(0).ty())?;
    shape.lanes = shape.lanes.min(4);
    let value = kernel.operand(op, 0);
    let lowered = kernel.map(value, |k, argument| {
        let result = k.subgroup_result(shape);
        k.push(Statement::SubgroupGather { mode, argument, result });
        result
    });
    kernel.set(op.result(0), lowered);
    Ok(())
}

fn reduce<'c>(kernel: &mut Kernel<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    let operation = match op.attr("op").and_then(A::of) {
        Some(A::Add) => S::Add,
        Some(A::Mul) => S::Mul,
        Some(A::MinSI | A::MinNumF) => S::Min,
        Some(A::MaxSI | A::MaxNumF) => S::Max,
        Some(A::And) => S::And,
        Some(A::Or) => S::Or,
        Some(A::Xor) => S::Xor,
        _ => return Err(error::unsupported_op(op)),
    };
    let mut shape = types::shape(kernel, op, op.operand(0).ty())?;
    shape.lanes = shape.lanes.min(4);
    let value = kernel.operand(op, 0);
    let short = ShortFloat::of(kernel, op.result(0).ty());
    let lowered = kernel.map(value, |k, argument| {
        let result = k.subgroup_result(shape);
        k.push(Statement::SubgroupCollectiveOperation {
            op: operation,
            collective_op: CollectiveOperation::Reduce,
            argument,
            result,
        });
        short.map_or(result, |short| short.round(k, result, shape.lanes))
    });
    kernel.set(op.result(0), lowered);
    Ok(())
}
