//! Buffers: binding arguments, local memory, scalar and wide loads and stores at a linear index.

use super::module::{Buffer, Ex, Kernel, Lowered, Shape};
use super::types;
use crate::error;
use monopour_ir::{Block, Diagnostics, Op, Value, WalkOrder};
use monopour_program::{Access, GpuFeature};
use naga::{AddressSpace, BinaryOperator as B, Expression, Scalar, ScalarKind, StorageAccess};

/// The access that an op makes: buffer operand, its position, lanes.
fn accessed(op: Op) -> Option<(Value, u32)> {
    match op.name() {
        "memref.load" => Some((op.operand(0), 1)),
        "memref.store" => Some((op.operand(1), 1)),
        "vector.load" => Some((op.operand(0), lanes_of(op.result(0)))),
        "vector.store" => Some((op.operand(1), lanes_of(op.operand(0)))),
        _ => None,
    }
}

fn lanes_of(value: Value) -> u32 {
    value.ty().shape().map_or(1, |s| s.iter().product::<i64>().clamp(1, 1 << 16) as u32)
}

/// The lane count of each argument: that of its accesses, 1 for an argument that is not accessed.
pub(super) fn argument_lanes(body: Block) -> Result<Vec<u32>, Diagnostics> {
    let mut lanes = vec![0u32; body.num_args()];
    let Some(func) = body.parent_op() else { return Ok(lanes) };
    for op in func.nested(WalkOrder::Pre) {
        let Some((buffer, n)) = accessed(op) else { continue };
        let Some((block, i)) = buffer.as_block_arg() else { continue };
        if block != body {
            continue;
        }
        if lanes[i] != 0 && lanes[i] != n {
            return Err(error::mixed_lanes(op, lanes[i], n));
        }
        lanes[i] = n;
    }
    Ok(lanes.into_iter().map(|n| n.max(1)).collect())
}

/// Declares an argument as a storage buffer.
pub(super) fn bind(
    kernel: &mut Kernel,
    func: Op,
    arg: Value,
    index: u32,
    lanes: u32,
    access: Access,
) -> Result<(), Diagnostics> {
    let memref = arg.ty().as_memref().filter(|m| m.shape.len() == 1 && m.is_identity());
    let Some(memref) = memref else {
        return Err(error::unsupported_type(
            func,
            arg.ty(),
            "a kernel argument is a memref of rank 1 and identity layout",
        ));
    };
    let scalar = types::scalar(kernel, func, memref.element)?;
    if scalar.kind == ScalarKind::Bool {
        return Err(error::unsupported_type(func, arg.ty(), "bools have no layout in a buffer"));
    }
    let base = entry_type(kernel, scalar, lanes);
    let stride_bytes = u32::from(scalar.width) * lanes;
    let ty = kernel.array_type(base, stride_bytes, 0);
    let access = if access == Access::Read { StorageAccess::LOAD } else { StorageAccess::LOAD | StorageAccess::STORE };
    let pointer = kernel.global(format!("arg{index}"), AddressSpace::Storage { access }, Some(index), ty);
    kernel.set_buffer(arg, Buffer { pointer, lanes });
    Ok(())
}

/// The type of one array entry: eight lanes lie in one `vec4<u64>`.
fn entry_type(kernel: &mut Kernel, scalar: Scalar, lanes: u32) -> naga::Handle<naga::Type> {
    if lanes == 8 {
        kernel.features.insert(GpuFeature::Int64);
        return kernel.plane_type(Shape { scalar: Scalar::U64, lanes: 4 });
    }
    kernel.plane_type(Shape { scalar, lanes })
}

pub(super) fn emit(kernel: &mut Kernel, op: Op) -> Result<(), Diagnostics> {
    match op.name() {
        "memref.load" => load(kernel, op, op.operand(0), &op.operands()[1..]),
        "memref.store" => store(kernel, op, op.operand(1), &op.operands()[2..]),
        "memref.alloca" => alloca(kernel, op),
        _ => Err(error::unsupported_op(op)),
    }
}

/// `memref.load` and `vector.load`.
pub(super) fn load(kernel: &mut Kernel, op: Op, buffer: Value, indices: &[Value]) -> Result<(), Diagnostics> {
    let shape = types::shape(kernel, op, op.result(0).ty())?;
    let (buffer, pointer) = entry(kernel, op, buffer, indices, shape.lanes)?;
    let loaded = kernel.load(pointer);
    let lowered = if buffer.lanes == 8 { unpack(kernel, loaded, shape) } else { Lowered::One(loaded) };
    kernel.set(op.result(0), lowered);
    Ok(())
}

/// `memref.store` and `vector.store`; the value is operand 0.
pub(super) fn store(kernel: &mut Kernel, op: Op, buffer: Value, indices: &[Value]) -> Result<(), Diagnostics> {
    let shape = types::shape(kernel, op, op.operand(0).ty())?;
    let (_, pointer) = entry(kernel, op, buffer, indices, shape.lanes)?;
    let value = match kernel.operand(op, 0) {
        Lowered::One(e) => e,
        Lowered::Planes(planes) => pack(kernel, planes),
    };
    kernel.store(pointer, value);
    Ok(())
}

/// Pointer to the array entry that holds the element at `indices`.
fn entry(
    kernel: &mut Kernel,
    op: Op,
    buffer: Value,
    indices: &[Value],
    lanes: u32,
) -> Result<(Buffer, Ex), Diagnostics> {
    let found = kernel
        .buffer(buffer)
        .ok_or_else(|| error::unsupported_type(op, buffer.ty(), "it is neither an argument nor a local allocation"))?;
    if found.lanes != lanes {
        return Err(error::mixed_lanes(op, found.lanes, lanes));
    }
    let &[index] = indices else {
        return Err(error::unsupported_type(op, buffer.ty(), "memory in a kernel has rank 1"));
    };
    let mut index = kernel.one(index);
    if lanes > 1 {
        // Lane counts are powers of two and indices are not negative.
        let shift = kernel.u32(lanes.trailing_zeros());
        index = kernel.binary(B::ShiftRight, index, shift);
    }
    let pointer = kernel.add(Expression::Access { base: found.pointer, index });
    Ok((found, pointer))
}

/// A `vec4<u64>` to the planes of even and odd elements.
fn unpack(kernel: &mut Kernel, packed: Ex, shape: Shape) -> Lowered {
    let low = kernel.convert(packed, ScalarKind::Uint, 4);
    let bits = kernel.u32(32);
    let bits = kernel.splat(bits, 4);
    let high = kernel.binary(B::ShiftRight, packed, bits);
    let high = kernel.convert(high, ScalarKind::Uint, 4);
    let kind = shape.scalar.kind;
    Lowered::Planes([kernel.bitcast(low, kind), kernel.bitcast(high, kind)])
}

fn pack(kernel: &mut Kernel, planes: [Ex; 2]) -> Ex {
    let [low, high] = planes.map(|plane| {
        let bits = kernel.bitcast(plane, ScalarKind::Uint);
        kernel.convert(bits, ScalarKind::Uint, 8)
    });
    let bits = kernel.u32(32);
    let bits = kernel.splat(bits, 4);
    let high = kernel.binary(B::ShiftLeft, high, bits);
    kernel.binary(B::InclusiveOr, low, high)
}

/// Local memory: `#gpu.address_space<workgroup>` is shared by the workgroup, none or private belongs to the invocation.
fn alloca(kernel: &mut Kernel, op: Op) -> Result<(), Diagnostics> {
    let result = op.result(0);
    let memref =
        result.ty().as_memref().filter(|m| m.shape.len() == 1 && m.is_identity() && (1..1 << 24).contains(&m.shape[0]));
    let Some(memref) = memref else {
        return Err(error::unsupported_type(
            op,
            result.ty(),
            "local memory has rank 1, a static size and identity layout",
        ));
    };
    let scalar = types::scalar(kernel, op, memref.element)?;
    let base = kernel.plane_type(Shape { scalar, lanes: 1 });
    let stride_bytes = if scalar.kind == ScalarKind::Bool { 4 } else { u32::from(scalar.width) };
    let ty = kernel.array_type(base, stride_bytes, memref.shape[0] as u32);
    let shared = memref.memory_space.is_some_and(|s| s.to_string().contains("workgroup"));
    let pointer =
        if shared { kernel.global("shared".to_owned(), AddressSpace::WorkGroup, None, ty) } else { kernel.local(ty) };
    kernel.set_buffer(result, Buffer { pointer, lanes: 1 });
    Ok(())
}
