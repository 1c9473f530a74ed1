//! Memory of local buffers: registers, workgroup memory, or scratch.
//!
//! Before: `memref.alloc() : memref<128x128xf32>` in a kernel, written by one group of ops and read by another.
//! After: an element of `memref.alloca() : memref<16384xf32, workgroup>`; on a device with too little workgroup memory, the
//! workgroup's part of an argument that the caller allocates before the dispatch and frees after it.
//! Limits: an extent that is computed on the device (G0005).

use super::boundary::Border;
use super::code::{Code, facts};
use super::evaluate::Evaluator;
use super::groups::Group;
use super::model::{Base, Local, Model};
use crate::emit::WORKGROUP_UNIT_BYTES;
use crate::error;
use monopour_contract::KernelClass;
use monopour_ir::ops;
use monopour_ir::typed::{gpu::AddressSpace, memref};
use monopour_ir::{Block, DYNAMIC, Diagnostics, InsertionPoint, Op, OpSpec, Rewriter, Type, Value};
use monopour_program::GpuDescription;

/// Most bytes of scratch of a dispatch, where workgroups can take turns.
const BUDGET_BYTES: u64 = 64 << 20;
/// Workgroups in flight where the host computes the size of the scratch.
const WORKGROUPS: i64 = 256;

/// An argument with the local buffers of all workgroups in flight.
#[derive(Clone, Debug)]
pub(super) struct Scratch {
    /// The argument's type as text, because the caller may lie in another context.
    ty: String,
    /// Elements of all workgroups together, if dynamic.
    elements: Amount,
}

/// A number that the host computes from the call's operands.
#[derive(Clone, Debug)]
enum Amount {
    Constant(i64),
    /// An operand of the call.
    Passed(usize),
    Of(&'static str, Box<[Amount; 2]>),
}

/// A bound on the workgroups in flight, for kernels whose local buffers may not fit in workgroup memory.
pub(super) fn most_workgroups(func: Op, class: KernelClass, device: &GpuDescription) -> Option<i64> {
    // The strategy of attention keeps no local buffer in memory.
    if class == KernelClass::Attention {
        return None;
    }
    let mut bytes = Some(0u64);
    for op in func.find_all(ops::memref::ALLOC) {
        let mut dynamic = op.operands().into_iter();
        let ty = op.result(0).ty();
        let mut size = Some(ty.element_size_bytes().unwrap_or(4).max(4));
        for d in ty.shape().unwrap_or_default() {
            let extent = if d == DYNAMIC { dynamic.next().and_then(|v| facts(v).bound) } else { Some(d) };
            size = size.zip(extent).and_then(|(s, e)| s.checked_mul(u64::try_from(e).ok()?));
        }
        bytes = bytes.zip(size).and_then(|(b, s)| b.checked_add(rounded(s)?));
    }
    match bytes {
        Some(bytes) if bytes <= u64::from(device.limits.max_workgroup_storage_bytes) => None,
        Some(bytes) => Some((BUDGET_BYTES.min(device.limits.max_binding_bytes) / bytes).clamp(1, 65_535) as i64),
        None => Some(WORKGROUPS),
    }
}

/// Bytes that a buffer of `bytes` takes of workgroup memory: the unit is WebGPU's. `None` beyond a u64.
pub(super) fn rounded(bytes: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(WORKGROUP_UNIT_BYTES)
}

/// The local buffers that need memory; `accessed` have single loads or stores.
pub(super) fn in_memory(model: &Model, groups: &[Group], accessed: &[Base]) -> Vec<Base> {
    let needs = |i: &usize| needs_memory(&model.locals[*i], Base::Local(*i), groups, accessed);
    (0..model.locals.len()).filter(needs).map(Base::Local).collect()
}

/// Whether a local buffer needs memory: its values pass between groups, or between iterations.
fn needs_memory(local: &Local, base: Base, groups: &[Group], accessed: &[Base]) -> bool {
    let users: Vec<&Group> = groups.iter().filter(|g| g.touches(base)).collect();
    let outlives = |g: &Group| local.op.block() != Some(g.block);
    users.len() > 1 || accessed.contains(&base) || users.iter().any(|g| g.serial || g.gathers(base) || outlives(g))
}

/// Allocates the local buffers in `bases`: in workgroup memory, and as scratch where that is full.
pub(super) fn allocate<'c>(
    code: &mut Code<'c, '_>,
    func: Op<'c>,
    evaluator: &mut Evaluator<'c, '_>,
    bases: &[Base],
    place: &Place<'c, '_>,
) -> Result<Vec<Scratch>, Diagnostics> {
    let body = func.body().ok_or_else(|| error::not_a_tile(func, "the function has no body"))?;
    let mut left_bytes = u64::from(place.device.limits.max_workgroup_storage_bytes);
    let mut scratch = Vec::new();
    let outer = code.point();
    for base in bases {
        let Base::Local(l) = *base else { continue };
        let local = &evaluator.model.locals[l];
        let width = local.element.element_size_bytes().unwrap_or(4).max(4);
        let bytes = u64::try_from(local.elements).ok().and_then(|e| rounded(e.checked_mul(width)?));
        if let Some(bytes) = bytes.filter(|b| *b <= left_bytes) {
            left_bytes -= bytes;
            code.at(InsertionPoint::Before(body.first_op().expect("invariant: the body has a terminator")));
            let buffer = code.workgroup_buffer(local.op.location(), local.element, local.elements)?;
            evaluator.buffers.insert(*base, buffer);
            continue;
        }
        // The extents dominate the allocation, and nothing uses it before.
        code.at(InsertionPoint::Before(local.op));
        let (argument, per_workgroup) = extend(code, func, body, local, place, &mut scratch)?;
        let origin = code.mul(place.worker, per_workgroup);
        evaluator.buffers.insert(*base, argument);
        evaluator.origins.insert(*base, origin);
    }
    code.at(outer);
    Ok(scratch)
}

/// The kernel's code, and the workgroups that run it.
pub(super) struct Place<'c, 'a> {
    pub(super) device: &'a GpuDescription,
    /// The end of the tile's code.
    pub(super) end: Op<'c>,
    /// The workgroup id.
    pub(super) worker: Value<'c>,
    pub(super) at_once: Option<i64>,
    /// Number of the kernel's buffers without scratch.
    pub(super) buffers: usize,
    /// Number of buffers and scalars that the caller passes.
    pub(super) passed: usize,
}

/// Adds the argument for a local buffer; returns it and the elements of one workgroup.
fn extend<'c>(
    code: &mut Code<'c, '_>,
    func: Op<'c>,
    body: Block<'c>,
    local: &Local<'c>,
    place: &Place<'c, '_>,
    scratch: &mut Vec<Scratch>,
) -> Result<(Value<'c>, Value<'c>), Diagnostics> {
    let at_once = place.at_once.unwrap_or(WORKGROUPS).max(1);
    let space = AddressSpace::Global.to_attr(code.cx);
    let (elements, per_workgroup, extent) = if local.elements >= 0 {
        let all = local.elements.checked_mul(at_once).filter(|a| *a < i64::from(i32::MAX));
        let all = all.ok_or_else(|| error::workgroup_memory(func, u64::MAX, place.device.limits.max_binding_bytes))?;
        (Amount::Constant(all), code.c(local.elements), all)
    } else {
        let mut amount = Amount::Constant(at_once);
        let mut product = code.c(1);
        for size in &local.sizes {
            let passed = |position: usize| {
                // Positions of the caller's operands: scratch so far is not among them.
                let position = if position < place.buffers { position } else { position - scratch.len() };
                (position < place.passed).then_some(Amount::Passed(position))
            };
            let bound = bound(size.value, body, &passed).ok_or_else(|| error::unknown_extent(local.op))?;
            product = code.mul(product, size.value);
            amount = Amount::Of(ops::arith::MULI, Box::new([amount, bound]));
        }
        (amount, product, DYNAMIC)
    };
    let ty = Type::memref(&[extent], local.element, space);
    let argument = code.rw.insert_block_arg(body, place.buffers + scratch.len(), ty, func.location());
    scratch.push(Scratch { ty: ty.to_string(), elements });
    Ok((argument, per_workgroup))
}

/// An upper bound of an extent in terms of the kernel's arguments. Sums, products and extrema of extents are monotonic.
fn bound(value: Value, body: Block, passed: &dyn Fn(usize) -> Option<Amount>) -> Option<Amount> {
    if let Some(c) = value.constant_int() {
        return Some(Amount::Constant(c));
    }
    if let Some((block, position)) = value.as_block_arg() {
        return passed(position).filter(|_| block == body);
    }
    let op = value.defining_op()?;
    let part = |index: usize| bound(op.operand(index), body, passed);
    let both = |name: &'static str| Some(Amount::Of(name, Box::new([part(0)?, part(1)?])));
    match op.name() {
        ops::arith::MINSI => both(ops::arith::MINSI).or_else(|| part(0).or_else(|| part(1))),
        ops::arith::ADDI => both(ops::arith::ADDI),
        ops::arith::MULI => both(ops::arith::MULI),
        ops::arith::MAXSI => both(ops::arith::MAXSI),
        _ => None,
    }
}

/// Allocates the scratch of a call in front of its forall.
pub(super) fn allocate_scratch<'c>(
    rw: &mut Rewriter<'c>,
    call: Op<'c>,
    border: &Border,
) -> Result<Vec<Value<'c>>, Diagnostics> {
    let mut out = Vec::new();
    for scratch in &border.scratch {
        let ty = Type::parse(call.context(), &scratch.ty).expect("invariant: a printed type can be parsed");
        let mut sizes = Vec::new();
        if ty.shape() == Some(vec![DYNAMIC]) {
            sizes.push(compute(rw, call, &scratch.elements)?);
        }
        out.push(rw.create(memref::alloc(call.location(), &sizes, ty))?.result(0));
    }
    Ok(out)
}

fn compute<'c>(rw: &mut Rewriter<'c>, call: Op<'c>, amount: &Amount) -> Result<Value<'c>, Diagnostics> {
    Ok(match amount {
        Amount::Constant(c) => rw.const_index(*c, call.location()),
        Amount::Passed(position) => {
            let passed = call.operands().get(*position).copied().filter(|v| v.ty().is_index());
            passed.ok_or_else(|| error::unknown_extent(call))?
        }
        Amount::Of(name, parts) => {
            let left = compute(rw, call, &parts[0])?;
            let right = compute(rw, call, &parts[1])?;
            let index = Type::index(call.context());
            rw.create(OpSpec::new(name, call.location()).operands(&[left, right]).results(&[index]))?.result(0)
        }
    })
}
