//! The border of a kernel: its arguments, its attributes, and the call.

use super::model::{Base, Model, Operand, Source};
use crate::error;
use monopour_ir::{Attr, Diagnostics, InsertionPoint, Module, Op, OpSpec, Rewriter, Type, Value};
use monopour_program::GpuDescription;

/// Positions of the tile ids among the arguments; they come last.
pub(super) fn tile_ids(func: Op) -> Result<Vec<usize>, Diagnostics> {
    let args = func.body().map(|b| b.args()).unwrap_or_default();
    let first = args.iter().position(|a| a.ty().is_index()).unwrap_or(args.len());
    let split = args.iter().enumerate().all(|(i, a)| if i < first { a.ty().is_memref() } else { a.ty().is_index() });
    if !split {
        return Err(error::not_a_tile(func, "its arguments are not memrefs followed by tile ids"));
    }
    Ok((first..args.len()).collect())
}

/// The rank-1 type of a buffer.
fn flat_type(op: Op, ty: Type) -> Result<Type, Diagnostics> {
    let memref = ty.as_memref().filter(|m| m.is_identity() && m.shape.iter().all(|d| *d >= 0));
    let memref =
        memref.ok_or_else(|| error::not_a_tile(op, &format!("argument type {ty} is not static and contiguous")))?;
    Ok(Type::memref(&[memref.shape.iter().product()], memref.element, memref.memory_space))
}

/// Gives every memref argument rank 1 and drops the tile ids, which nothing uses any more.
pub(super) fn flatten_arguments(rw: &mut Rewriter, func: Op, ids: &[usize]) -> Result<(), Diagnostics> {
    let Some(body) = func.body() else { return Ok(()) };
    for id in ids.iter().rev() {
        rw.erase_block_arg(body, *id);
    }
    let types = body.args().into_iter().map(|a| flat_type(func, a.ty())).collect::<Result<Vec<_>, _>>()?;
    for (arg, ty) in body.args().into_iter().zip(&types) {
        rw.set_type(arg, *ty);
    }
    rw.remove_attr(func, "arg_attrs");
    rw.set_attr(func, "function_type", Attr::ty(Type::function(func.context(), &types, &[])));
    Ok(())
}

/// The device can bind all arguments.
pub(super) fn check_buffers(func: Op, device: &GpuDescription) -> Result<(), Diagnostics> {
    let args = func.body().map(|b| b.args()).unwrap_or_default();
    let (needed, offered) = (args.len() as u64, u64::from(device.limits.max_storage_buffers));
    if needed > offered {
        return Err(error::over_limit(func, "storage buffers", needed, offered));
    }
    for arg in args {
        let bytes = arg.ty().static_size_bytes().unwrap_or(0);
        if bytes > device.limits.max_binding_bytes {
            return Err(error::over_limit(func, "bytes in one binding", bytes, device.limits.max_binding_bytes));
        }
    }
    Ok(())
}

/// Records how the written code accesses each argument: `read`, `write` or `read_write`.
pub(super) fn set_access(rw: &mut Rewriter, func: Op) {
    let cx = func.context();
    let args = func.body().map(|b| b.args()).unwrap_or_default();
    let attrs: Vec<Attr> =
        args.into_iter().map(|arg| Attr::dict(cx, &[("monopour.access", Attr::string(cx, access(arg)))])).collect();
    rw.set_attr(func, "arg_attrs", Attr::array(cx, &attrs));
}

fn access(arg: Value) -> &'static str {
    let uses = arg.uses();
    let stored = uses.iter().any(|u| u.op.name().ends_with(".store"));
    let loaded = uses.iter().any(|u| u.op.name().ends_with(".load"));
    match (loaded, stored) {
        (true, true) => "read_write",
        (false, true) => "write",
        _ => "read",
    }
}

/// Counts the body's copies between buffers, for the statistics of a run. What comes from a local allocation is no such copy:
/// it lies in registers or in workgroup memory.
pub(super) fn count_copies(rw: &mut Rewriter, func: Op, model: &Model) {
    let argument = |operand: &Operand| match operand.source {
        Source::Slice(s) => match model.slices[s].base {
            Base::Argument(i) => Some(i),
            Base::Local(_) => None,
        },
        Source::Scalar(_) => None,
    };
    let whole_bytes = |i: usize| func.body().map_or(0, |b| b.arg(i).ty().static_size_bytes().unwrap_or(0));
    let (mut copies, mut bytes) = (0i64, 0u64);
    for op in model.ops.iter().filter(|op| op.op.is("memref.copy")) {
        if let (Some(_), Some(to)) = (argument(&op.operands[0]), argument(&op.operands[1])) {
            copies += 1;
            bytes += whole_bytes(to);
        }
    }
    if copies > 0 {
        rw.set_attr(func, "monopour.copies", Attr::i64(func.context(), copies));
        rw.set_attr(func, "monopour.copied_bytes", Attr::i64(func.context(), bytes as i64));
    }
}

/// Whether a call still has the form of an outlined kernel.
pub(super) fn passes_tile_ids(module: &Module, call: Op) -> bool {
    let callee = call.attr("callee").and_then(|c| module.symbol(c.as_symbol()?));
    let is_kernel = callee.is_some_and(|f| f.attr("monopour.kernel").is_some());
    is_kernel && call.operands().iter().any(|v| v.ty().is_index())
}

/// Drops the tile ids of a call; its buffers are reshaped in front of the forall, which stays a single call.
pub(super) fn lower_call(rw: &mut Rewriter, call: Op, device: &GpuDescription) -> Result<(), Diagnostics> {
    let forall = call
        .parent()
        .filter(|p| p.is("scf.forall"))
        .ok_or_else(|| error::not_a_tile(call, "its call is not in a forall"))?;
    let grid = forall.attr("staticUpperBound").and_then(|a| a.as_ints()).unwrap_or_default();
    let offered = i64::from(device.limits.max_workgroups_per_dimension);
    if let Some(extent) = grid.iter().find(|g| **g > offered) {
        return Err(error::over_limit(call, "workgroups in one dimension", *extent as u64, offered as u64));
    }
    rw.set_point(InsertionPoint::Before(forall));
    let buffers = call.operands().into_iter().filter(|v| v.ty().is_memref());
    let operands = buffers.map(|v| flatten(rw, call, v)).collect::<Result<Vec<_>, _>>()?;
    rw.set_point(InsertionPoint::Before(call));
    let mut spec = OpSpec::new("func.call", call.location()).operands(&operands);
    let attrs = call.attrs();
    for (name, value) in &attrs {
        spec = spec.attr(name, *value);
    }
    rw.create(spec)?;
    rw.erase(call);
    Ok(())
}

fn flatten(rw: &mut Rewriter, call: Op, value: Value) -> Result<Value, Diagnostics> {
    let ty = flat_type(call, value.ty())?;
    let rank = value.ty().shape().map_or(0, |s| s.len());
    if rank == 1 {
        return Ok(value);
    }
    let cx = call.context();
    let spec = if rank == 0 {
        OpSpec::new("memref.expand_shape", call.location())
            .attr("reassociation", Attr::array(cx, &[]))
            .attr("static_output_shape", Attr::dense_i64(cx, &[1]))
    } else {
        let dims: Vec<Attr> = (0..rank as i64).map(|d| Attr::i64(cx, d)).collect();
        OpSpec::new("memref.collapse_shape", call.location())
            .attr("reassociation", Attr::array(cx, &[Attr::array(cx, &dims)]))
    };
    Ok(rw.create(spec.operands(&[value]).results(&[ty]))?.result(0))
}
