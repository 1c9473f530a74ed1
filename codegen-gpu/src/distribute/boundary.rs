//! The boundary of a kernel: its arguments, its attributes, and its call.

use super::grid::Grid;
use super::model::{Base, Model, Operand, Source};
use super::parts::{self, Parts};
use crate::error;
use monopour_contract::attributes;
use monopour_ir::ops;
use monopour_ir::typed::gpu;
use monopour_ir::typed::{Index, Slice, memref};
use monopour_ir::{Attr, DYNAMIC, Diagnostics, InsertionPoint, MemRefType, Op, OpSpec, Rewriter, Type, Value};
use monopour_program::{GpuDescription, GpuFeature, GpuKernel, MAX_NUMBER_BYTES};
use std::collections::HashMap;
use std::ops::Range;

/// The kinds of a kernel's arguments: buffers first, then scalars, then the tile ids.
#[derive(Clone, Debug)]
pub(super) struct Signature {
    pub(super) buffers: usize,
    pub(super) ids: Range<usize>,
}

impl Signature {
    /// Reads the arguments. `monopour.grid_rank` is the number of ids; without it all trailing indices are ids.
    pub(super) fn read(func: Op) -> Result<Self, Diagnostics> {
        let args = func.body().map(|b| b.args()).unwrap_or_default();
        let buffers = args.iter().position(|a| !a.ty().is_memref()).unwrap_or(args.len());
        let indices = args.iter().rev().take_while(|a| a.ty().is_index()).count();
        let rank =
            func.attr(attributes::GRID_RANK).and_then(|a| a.as_int()).map(|r| usize::try_from(r).unwrap_or(usize::MAX));
        let rank = rank.unwrap_or(indices);
        let scalar = |ty: Type| ty.is_index() || ty.integer_width().is_some() || ty.is_float();
        if rank > indices || !args[buffers..].iter().all(|a| scalar(a.ty())) {
            return Err(error::not_a_tile(func, "its arguments are not buffers, then scalars, then tile ids"));
        }
        Ok(Self { buffers, ids: args.len() - rank..args.len() })
    }
}

/// The interface of a distributed kernel, for its callers.
#[derive(Clone, Debug)]
pub(super) struct Border {
    pub(super) signature: Signature,
    pub(super) grid: Grid,
    /// Buffers of unknown extent, of which only the base is passed.
    pub(super) unknown: Vec<bool>,
    pub(super) scratch: Vec<super::locals::Scratch>,
    /// The bindings of each buffer, scratch included.
    pub(super) parts: Vec<Parts>,
}

/// Whether an argument is the base of a buffer of unknown extent.
pub(super) fn is_base(arg: Value) -> bool {
    let uses = arg.uses();
    arg.ty().shape().is_some_and(|s| s.is_empty())
        && !uses.is_empty()
        && uses.iter().all(|u| u.op.is(ops::memref::REINTERPRET_CAST))
}

/// The rank-1 type of a buffer.
fn flat_type<'c>(op: Op<'c>, ty: Type<'c>, unknown: bool) -> Result<Type<'c>, Diagnostics> {
    let memref = ty.as_memref().filter(MemRefType::is_static_and_contiguous);
    let memref =
        memref.ok_or_else(|| error::not_a_tile(op, &format!("argument type {ty} is not static and contiguous")))?;
    let extent = if unknown { DYNAMIC } else { memref.shape.iter().product() };
    // Upstream keeps an identity layout through reshapes.
    if ty.memref_layout().is_some_and(|layout| !layout.is_identity()) {
        return Ok(Type::strided_memref(&[extent], memref.element, memref.offset, &[1], memref.memory_space));
    }
    Ok(Type::memref(&[extent], memref.element, memref.memory_space))
}

/// Flattens every memref argument to rank 1 and drops the unused tile ids.
pub(super) fn flatten_arguments<'c>(
    rw: &mut Rewriter<'c>,
    func: Op<'c>,
    signature: &Signature,
    unknown: &[bool],
) -> Result<(), Diagnostics> {
    let Some(body) = func.body() else { return Ok(()) };
    for id in signature.ids.clone().rev() {
        rw.erase_block_arg(body, id);
    }
    for (i, unknown) in unknown.iter().enumerate() {
        let ty = flat_type(func, body.arg(i).ty(), *unknown)?;
        rw.set_type(body.arg(i), ty);
    }
    rw.remove_attr(func, "arg_attrs");
    Ok(())
}

/// Sets the function's type to the arguments of its body.
pub(super) fn set_function_type<'c>(rw: &mut Rewriter<'c>, func: Op<'c>) {
    let types: Vec<Type> = func.body().map(|b| b.args()).unwrap_or_default().into_iter().map(Value::ty).collect();
    rw.set_attr(func, "function_type", Attr::ty(Type::function(func.context(), &types, &[])));
}

/// Checks that the device can bind all arguments; scalars beyond its immediates go into a uniform buffer.
pub(super) fn place_arguments<'c>(
    rw: &mut Rewriter<'c>,
    func: Op<'c>,
    device: &GpuDescription,
) -> Result<(), Diagnostics> {
    let args = func.body().map(|b| b.args()).unwrap_or_default();
    let (buffers, scalars): (Vec<Value>, Vec<Value>) = args.into_iter().partition(|a| a.ty().is_memref());
    let (needed, offered) = (buffers.len() as u64, u64::from(device.limits.max_storage_buffers));
    if needed > offered {
        return Err(error::over_limit(func, "storage buffers", needed, offered));
    }
    for arg in buffers {
        let bytes = arg.ty().static_size_bytes().unwrap_or(0);
        if bytes > device.limits.max_binding_bytes {
            return Err(error::over_limit(func, "bytes in one binding", bytes, device.limits.max_binding_bytes));
        }
    }
    let scalars = scalars.into_iter().map(|s| crate::emit::scalar_bytes(s.ty())).collect();
    let needed = GpuKernel { scalars, ..GpuKernel::default() }.number_bytes();
    let offered = if device.has(GpuFeature::Immediates) { device.limits.max_immediate_bytes } else { 0 };
    if needed > offered {
        rw.set_attr(func, attributes::NUMBER_BUFFER, Attr::unit(func.context()));
    }
    if needed > MAX_NUMBER_BYTES {
        return Err(error::over_limit(func, "bytes of scalars", needed.into(), MAX_NUMBER_BYTES.into()));
    }
    Ok(())
}

/// Checks that the device has the kernel's workgroup memory, which wgpu does not: strategies choose what fits.
pub(super) fn check_workgroup_memory(func: Op, device: &GpuDescription) -> Result<(), Diagnostics> {
    let (needed, offered) = (crate::emit::workgroup_bytes(func)?, device.limits.max_workgroup_storage_bytes);
    if needed > u64::from(offered) {
        return Err(error::over_limit(func, "bytes of workgroup memory", needed, offered.into()));
    }
    Ok(())
}

/// Records the access to each buffer: `read`, `write` or `read_write`.
pub(super) fn set_access<'c>(rw: &mut Rewriter<'c>, func: Op<'c>) {
    let cx = func.context();
    let args = func.body().map(|b| b.args()).unwrap_or_default();
    let entry = |arg: Value<'c>| {
        if !arg.ty().is_memref() {
            return Attr::dict(cx, &[]);
        }
        Attr::dict(cx, &[(attributes::ACCESS, Attr::string(cx, access(arg)))])
    };
    let attrs: Vec<Attr> = args.into_iter().map(entry).collect();
    rw.set_attr(func, "arg_attrs", Attr::array(cx, &attrs));
}

fn access(arg: Value) -> &'static str {
    let uses = arg.uses();
    let stored = uses.iter().any(|u| gpu::is_store(u.op));
    let loaded = uses.iter().any(|u| gpu::is_load(u.op));
    match (loaded, stored) {
        (true, true) => "read_write",
        (false, true) => "write",
        _ => "read",
    }
}

/// Counts the body's copies between buffers, for the statistics of a run. Copies from a local allocation do not count: it
/// lies in registers or in workgroup memory.
pub(super) fn count_copies<'c>(rw: &mut Rewriter<'c>, func: Op<'c>, model: &Model<'c>) {
    let argument = |operand: &Operand<'c>| match operand.source {
        Source::Slice(s) => match model.slices[s].base {
            Base::Argument(i) => Some(i),
            Base::Local(_) => None,
        },
        Source::Scalar(_) => None,
    };
    let whole_bytes = |i: usize| func.body().map_or(0, |b| b.arg(i).ty().static_size_bytes().unwrap_or(0));
    let (mut copies, mut bytes, mut sizes) = (0i64, 0u64, vec![]);
    for op in model.ops.iter().filter(|op| op.op.is(ops::memref::COPY)) {
        if let (Some(_), Some(to)) = (argument(&op.operands[0]), argument(&op.operands[1])) {
            copies += 1;
            if let Some(by_scalars) = op.op.attr(attributes::COPIED_SIZES) {
                sizes.push(by_scalars);
                continue;
            }
            let known = op.op.attr(attributes::COPIED_BYTES).and_then(|a| u64::try_from(a.as_int()?).ok());
            bytes += known.unwrap_or_else(|| whole_bytes(to));
        }
    }
    if copies > 0 {
        rw.set_attr(func, attributes::COPIES, Attr::i64(func.context(), copies));
        rw.set_attr(func, attributes::COPIED_BYTES, Attr::i64(func.context(), bytes as i64));
    }
    if !sizes.is_empty() {
        rw.set_attr(func, attributes::COPIED_SIZES, Attr::array(func.context(), &sizes));
    }
}

/// Whether a call still has the form of an outlined kernel.
pub(super) fn is_outlined(symbols: &HashMap<String, Op>, call: Op) -> bool {
    let callee = call.callee().and_then(|name| symbols.get(name).copied());
    let kernel = callee.filter(|f| f.attr(attributes::KERNEL).is_some());
    let types: Vec<Type> = call.operands().into_iter().map(Value::ty).collect();
    // A dynamic extent in place of a tile id leaves the types unchanged; the id of a single tile may be a constant.
    let ids = call.parent().and_then(Op::body).map(|b| b.args()).unwrap_or_default();
    let passes_ids = call.operands().iter().any(|v| ids.contains(v));
    kernel.and_then(Op::function_type).is_some_and(|(inputs, _)| inputs != types || passes_ids)
}

/// Drops the tile ids of a call and passes the added arguments; buffers are reshaped, and scratch is allocated and freed,
/// around the forall, which stays a single call.
pub(super) fn lower_call<'c>(rw: &mut Rewriter<'c>, call: Op<'c>, border: &Border) -> Result<(), Diagnostics> {
    let forall = call
        .parent()
        .filter(|p| p.is(ops::scf::FORALL))
        .ok_or_else(|| error::not_a_tile(call, "its call is not in a forall"))?;
    rw.set_point(InsertionPoint::Before(forall));
    let passed = call.operands();
    let mut flat = Vec::new();
    for (value, unknown) in passed[..border.signature.buffers].iter().zip(&border.unknown) {
        flat.push(flatten(rw, call, *value, *unknown)?);
    }
    let scratch = super::locals::allocate_scratch(rw, call, border)?;
    flat.extend(&scratch);
    let mut operands = Vec::new();
    for (value, parts) in flat.into_iter().zip(&border.parts) {
        operands.extend(parts::windows(rw, call, value, parts)?);
    }
    operands.extend(&passed[border.signature.buffers..border.signature.ids.start]);
    if border.grid.num_dynamic() > 0 {
        let bounds = forall.operands();
        // Lower bounds and steps of a normalised forall are static: its first operands are the dynamic upper bounds.
        operands.extend(bounds.into_iter().take(border.grid.num_dynamic()));
    }
    rw.set_point(InsertionPoint::After(forall));
    for buffer in scratch {
        rw.create(OpSpec::new(ops::memref::DEALLOC, call.location()).operands(&[buffer]))?;
    }
    rw.set_point(InsertionPoint::Before(call));
    rw.create(OpSpec::new(ops::func::CALL, call.location()).operands(&operands).attrs(&call.attrs()))?;
    rw.erase(call);
    Ok(())
}

fn flatten<'c>(rw: &mut Rewriter<'c>, call: Op<'c>, value: Value<'c>, unknown: bool) -> Result<Value<'c>, Diagnostics> {
    let ty = flat_type(call, value.ty(), unknown)?;
    let rank = value.ty().shape().map_or(0, |s| s.len());
    if rank == 1 {
        // The window at the start of a rank-1 buffer has an explicit identity layout.
        let spec = OpSpec::new(ops::memref::CAST, call.location()).operands(&[value]).results(&[ty]);
        return if value.ty() == ty { Ok(value) } else { Ok(rw.create(spec)?.result(0)) };
    }
    let cx = call.context();
    if unknown {
        // All elements from the base on: the size stated here is not read.
        let size = rw.const_index(1, call.location());
        let whole = Slice::new(vec![Index::Static(0)], vec![Index::Dynamic(size)]);
        let spec = memref::reinterpret_cast(call.location(), value, &whole, ty).attr(attributes::WHOLE, Attr::unit(cx));
        return Ok(rw.create(spec)?.result(0));
    }
    let spec = if rank == 0 {
        OpSpec::new(ops::memref::EXPAND_SHAPE, call.location())
            .attr("reassociation", Attr::array(cx, &[]))
            .attr("static_output_shape", Attr::dense_i64(cx, &[1]))
    } else {
        let dims: Vec<Attr> = (0..rank as i64).map(|d| Attr::i64(cx, d)).collect();
        OpSpec::new(ops::memref::COLLAPSE_SHAPE, call.location())
            .attr("reassociation", Attr::array(cx, &[Attr::array(cx, &dims)]))
    };
    Ok(rw.create(spec.operands(&[value]).results(&[ty]))?.result(0))
}
