//! Buffers: binding arguments, local memory, scalar and wide loads and stores at a linear index.

use super::module::{Buffer, Ex, Kernel, Layout, Lowered, Shape};
use super::short_float::ShortFloat;
use super::{packed, types};
use crate::error;
use monopour_ir::ops;
use monopour_ir::typed::gpu;
use monopour_ir::{Block, Diagnostics, Op, Type, Value, WalkOrder};
use monopour_program::{Access, GpuFeature};
use naga::{AddressSpace, Barrier, BinaryOperator as B, Expression, Scalar, ScalarKind, StorageAccess, TypeInner};

/// The entry of a buffer of single 16-bit floats.
const U16: Scalar = Scalar { kind: ScalarKind::Uint, width: 2 };

/// The access of an op: buffer operand, its position, lanes.
fn accessed<'c>(op: Op<'c>) -> Option<(Value<'c>, u32)> {
    match op.name() {
        ops::memref::LOAD => Some((op.operand(0), 1)),
        ops::memref::STORE => Some((op.operand(1), 1)),
        ops::vector::LOAD => Some((op.operand(0), lanes_of(op.result(0)))),
        ops::vector::STORE => Some((op.operand(1), lanes_of(op.operand(0)))),
        _ => None,
    }
}

fn lanes_of(value: Value) -> u32 {
    value.ty().shape().map_or(1, |s| s.iter().product::<i64>().clamp(1, 1 << 16) as u32)
}

/// The layout of each argument: lanes are those of its accesses, 0 for an unused one. Types narrower than a word lie in
/// arrays of words, which are atomic where single elements are stored.
pub(super) fn argument_forms(kernel: &Kernel, body: Block) -> Result<Vec<Form>, Diagnostics> {
    let mut forms: Vec<Form> = body.args().into_iter().map(|a| Form::new(kernel, a.ty())).collect();
    let Some(func) = body.parent_op() else { return Ok(forms) };
    for op in func.nested(WalkOrder::Pre) {
        let Some((buffer, n)) = accessed(op) else { continue };
        let Some((block, i)) = buffer.as_block_arg() else { continue };
        if block != body {
            continue;
        }
        let form = &mut forms[i];
        if let Some(bits) = form.packed_bits {
            form.atomic |= op.name().ends_with(".store") && n * bits < 32;
            form.mixed |= form.lanes != 0 && form.lanes != n;
            form.lanes = n;
        } else if form.lanes != 0 && form.lanes != n {
            return Err(error::mixed_lanes(op, form.lanes, n));
        } else {
            form.lanes = n;
        }
    }
    Ok(forms)
}

/// The layout of an argument in its binding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    /// Elements of one array entry; 0 if nothing accesses the argument.
    lanes: u32,
    /// Bits of an element that shares a word with others.
    packed_bits: Option<u32>,
    /// Whether single elements are stored, by atomics.
    atomic: bool,
    /// Whether accesses of packed elements differ in their lanes.
    mixed: bool,
}

impl Form {
    fn new(kernel: &Kernel, ty: Type) -> Self {
        let packed_bits = match ty.element().integer_width() {
            Some(1 | 8) => Some(8),
            Some(16) => Some(16),
            _ => ShortFloat::of(kernel, ty).map(|_| 16),
        };
        Self { lanes: 0, packed_bits, atomic: false, mixed: false }
    }

    /// Words of one array entry of packed elements: those of an access, if all are alike.
    fn words(self, bits: u32) -> u32 {
        match self.lanes * bits / 32 {
            words @ (2 | 4) if !self.mixed => words,
            _ => 1,
        }
    }
}

/// The memory through which the invocations of a workgroup exchange values: its own, and storage where an argument is
/// both loaded and stored.
pub(super) fn exchanged(func: Op, body: Block) -> Barrier {
    let is_workgroup = |op: &Op| {
        op.result(0).ty().memref_space().and_then(gpu::AddressSpace::of) == Some(gpu::AddressSpace::Workgroup)
    };
    let is_exchanged = |arg: Value| {
        let uses = arg.uses();
        uses.iter().any(|u| gpu::is_load(u.op)) && uses.iter().any(|u| gpu::is_store(u.op))
    };
    let mut ordered = Barrier::empty();
    ordered.set(Barrier::WORK_GROUP, func.find_all(ops::memref::ALLOCA).iter().any(is_workgroup));
    ordered.set(Barrier::STORAGE, body.args().into_iter().any(is_exchanged));
    if ordered.is_empty() { Barrier::WORK_GROUP } else { ordered }
}

/// Declares an argument as a storage buffer.
pub(super) fn bind<'c>(
    kernel: &mut Kernel<'c>,
    func: Op<'c>,
    arg: Value<'c>,
    index: u32,
    form: Form,
    access: Access,
) -> Result<(), Diagnostics> {
    // The binding begins at the offset of a window.
    let memref =
        arg.ty().as_memref().filter(|m| m.shape.len() == 1 && (m.is_identity() || m.is_static_and_contiguous()));
    let Some(memref) = memref else {
        return Err(error::unsupported_type(func, arg.ty(), "a kernel argument is a memref of rank 1 without gaps"));
    };
    let scalar = types::scalar(kernel, func, memref.element)?;
    let lanes = form.lanes.max(1);
    let single = kernel.short_entries && lanes == 1 && !form.mixed;
    let short = ShortFloat::of(kernel, memref.element).filter(|_| single);
    let (base, stride_bytes, layout) = if let Some(short) = short {
        kernel.features.insert(GpuFeature::Int16);
        (kernel.plane_type(Shape { scalar: U16, lanes: 1 }), 2, Layout::Short(short))
    } else if let Some(bits) = form.packed_bits {
        let words = form.words(bits);
        let base = match form.atomic {
            true => kernel.ty(TypeInner::Atomic(Scalar::U32)),
            false => kernel.plane_type(Shape { scalar: Scalar::U32, lanes: words }),
        };
        (base, 4 * words, Layout::Packed { bits, words })
    } else if memref.element.is_index() {
        (kernel.plane_type(Shape { scalar: Scalar::I32, lanes: 2 }), 8, Layout::Index)
    } else if matches!(memref.element.integer_width(), Some(2..=31)) {
        return Err(error::unsupported_type(func, arg.ty(), "integers in memory have 1, 8, 16, 32 or 64 bits"));
    } else {
        (entry_type(kernel, scalar, lanes), u32::from(scalar.width) * lanes, Layout::Plain)
    };
    if layout == Layout::Index && lanes > 1 {
        return Err(error::unsupported_type(func, arg.ty(), "index is accessed one element at a time"));
    }
    let ty = kernel.array_type(base, stride_bytes, 0);
    let access = if access == Access::Read { StorageAccess::LOAD } else { StorageAccess::LOAD | StorageAccess::STORE };
    let pointer = kernel.global(format!("arg{index}"), AddressSpace::Storage { access }, Some(index), ty);
    kernel.set_buffer(arg, Buffer { pointer, lanes, layout });
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

pub(super) fn emit<'c>(kernel: &mut Kernel<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    match op.name() {
        ops::memref::LOAD => load(kernel, op, op.operand(0), &op.operands()[1..]),
        ops::memref::STORE => store(kernel, op, op.operand(1), &op.operands()[2..]),
        ops::memref::ALLOCA => alloca(kernel, op),
        _ => Err(error::unsupported_op(op)),
    }
}

/// `memref.load` and `vector.load`.
pub(super) fn load<'c>(
    kernel: &mut Kernel<'c>,
    op: Op<'c>,
    buffer: Value<'c>,
    indices: &[Value<'c>],
) -> Result<(), Diagnostics> {
    let shape = types::shape(kernel, op, op.result(0).ty())?;
    let (buffer, index) = found(kernel, op, buffer, indices)?;
    if let Layout::Packed { bits, words } = buffer.layout {
        let index = kernel.one(index);
        let place = packed::Place { array: buffer.pointer, index, bits, words };
        let short = ShortFloat::of(kernel, op.result(0).ty());
        let lowered = packed::load(kernel, op, place, (shape, short))?;
        kernel.set(op.result(0), lowered);
        return Ok(());
    }
    let pointer = entry(kernel, op, buffer, index, shape.lanes)?;
    let loaded = kernel.load(pointer);
    let lowered = match buffer.layout {
        Layout::Short(short) => {
            let word = kernel.convert(loaded, ScalarKind::Uint, 4);
            Lowered::One(short.of_word(kernel, word, 1))
        }
        Layout::Index => Lowered::One(kernel.add(Expression::AccessIndex { base: loaded, index: 0 })),
        _ if buffer.lanes == 8 => unpack(kernel, loaded, shape),
        _ => Lowered::One(loaded),
    };
    kernel.set(op.result(0), lowered);
    Ok(())
}

/// `memref.store` and `vector.store`; the value is operand 0.
pub(super) fn store<'c>(
    kernel: &mut Kernel<'c>,
    op: Op<'c>,
    buffer: Value<'c>,
    indices: &[Value<'c>],
) -> Result<(), Diagnostics> {
    let shape = types::shape(kernel, op, op.operand(0).ty())?;
    let (buffer, index) = found(kernel, op, buffer, indices)?;
    let value = kernel.operand(op, 0);
    if let Layout::Packed { bits, words } = buffer.layout {
        let index = kernel.one(index);
        let place = packed::Place { array: buffer.pointer, index, bits, words };
        let short = ShortFloat::of(kernel, op.operand(0).ty());
        return packed::store(kernel, op, place, value, (shape, short));
    }
    let pointer = entry(kernel, op, buffer, index, shape.lanes)?;
    let value = match value {
        Lowered::One(e) if buffer.layout == Layout::Index => index_words(kernel, e),
        Lowered::One(e) => match buffer.layout {
            Layout::Short(short) => {
                let word = short.to_word(kernel, e, 1);
                kernel.convert(word, ScalarKind::Uint, 2)
            }
            _ => e,
        },
        Lowered::Planes(planes) => pack(kernel, planes),
    };
    kernel.store(pointer, value);
    Ok(())
}

/// An index in memory: 64 bits.
fn index_words(kernel: &mut Kernel, low: Ex) -> Ex {
    let shift = kernel.u32(31);
    let high = kernel.binary(B::ShiftRight, low, shift);
    let ty = kernel.plane_type(Shape { scalar: Scalar::I32, lanes: 2 });
    kernel.add(Expression::Compose { ty, components: vec![low, high] })
}

/// The buffer and its linear index.
fn found<'c>(
    kernel: &Kernel<'c>,
    op: Op<'c>,
    buffer: Value<'c>,
    indices: &[Value<'c>],
) -> Result<(Buffer, Value<'c>), Diagnostics> {
    let found = kernel
        .buffer(buffer)
        .ok_or_else(|| error::unsupported_type(op, buffer.ty(), "it is neither an argument nor a local allocation"))?;
    let &[index] = indices else {
        return Err(error::unsupported_type(op, buffer.ty(), "memory in a kernel has rank 1"));
    };
    Ok((found, index))
}

/// Pointer to the array entry that holds the element at `index`.
fn entry<'c>(
    kernel: &mut Kernel<'c>,
    op: Op<'c>,
    buffer: Buffer,
    index: Value<'c>,
    lanes: u32,
) -> Result<Ex, Diagnostics> {
    let is_part = lanes == 1 && matches!(buffer.lanes, 2 | 4) && buffer.layout == Layout::Plain;
    if buffer.lanes != lanes && !is_part {
        return Err(error::mixed_lanes(op, buffer.lanes, lanes));
    }
    let at = if buffer.lanes == 1 { kernel.one(index) } else { in_vectors(kernel, index, buffer.lanes) };
    let entry = kernel.add(Expression::Access { base: buffer.pointer, index: at });
    if !is_part {
        return Ok(entry);
    }
    let (index, mask) = (kernel.one(index), kernel.i32(buffer.lanes as i32 - 1));
    let index = kernel.binary(B::And, index, mask);
    Ok(kernel.add(Expression::Access { base: entry, index }))
}

/// An index in vectors of so many elements, a power of two; no index is negative. What is added at last is divided for
/// itself: drivers make it an offset of the access, so that accesses side by side share an address.
fn in_vectors<'c>(kernel: &mut Kernel<'c>, index: Value<'c>, lanes: u32) -> Ex {
    let sum = index.defining_op().filter(|op| op.is(ops::arith::ADDI)).map(|op| (op.operand(0), op.operand(1)));
    let parts = sum.and_then(|(a, b)| Some((a, b.constant_int()?)).or_else(|| Some((b, a.constant_int()?))));
    let whole = parts.filter(|(_, added)| *added > 0 && added % i64::from(lanes) == 0);
    if let Some((rest, added)) = whole {
        let rest = in_vectors(kernel, rest, lanes);
        let added = kernel.i32((added / i64::from(lanes)) as i32);
        return kernel.binary(B::Add, rest, added);
    }
    let index = kernel.one(index);
    let shift = kernel.u32(lanes.trailing_zeros());
    kernel.binary(B::ShiftRight, index, shift)
}

/// Pointer to the array entry in which a matrix begins, and the elements of an entry.
pub(super) fn matrix_entry<'c>(
    kernel: &mut Kernel<'c>,
    op: Op<'c>,
    buffer: Value<'c>,
    index: Value<'c>,
) -> Result<(Ex, u32), Diagnostics> {
    let (found, index) = found(kernel, op, buffer, &[index])?;
    let pointer = entry(kernel, op, found, index, found.lanes)?;
    Ok((pointer, found.lanes))
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
fn alloca<'c>(kernel: &mut Kernel<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
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
    let lanes = local_lanes(result, memref.shape[0]);
    let base = kernel.plane_type(Shape { scalar, lanes });
    let stride_bytes = local_bytes(scalar);
    let ty = kernel.array_type(base, stride_bytes * lanes, memref.shape[0] as u32 / lanes);
    let pointer = if is_shared(result.ty()) {
        kernel.global("shared".to_owned(), AddressSpace::WorkGroup, None, ty)
    } else {
        kernel.local(ty)
    };
    kernel.set_buffer(result, Buffer { pointer, lanes, layout: Layout::Plain });
    Ok(())
}

/// Bytes of an element of local memory.
fn local_bytes(scalar: Scalar) -> u32 {
    if scalar.kind == ScalarKind::Bool { 4 } else { u32::from(scalar.width) }
}

fn is_shared(ty: Type) -> bool {
    let space = ty.as_memref().and_then(|memref| memref.memory_space).and_then(gpu::AddressSpace::of);
    space == Some(gpu::AddressSpace::Workgroup)
}

/// Bytes of a buffer in workgroup memory; `None` for one of an invocation.
pub(super) fn shared_bytes<'c>(kernel: &mut Kernel<'c>, alloca: Op<'c>) -> Result<Option<u64>, Diagnostics> {
    let ty = alloca.result(0).ty();
    if !is_shared(ty) {
        return Ok(None);
    }
    let bytes = local_bytes(types::scalar(kernel, alloca, ty.element())?);
    let elements = ty.shape().unwrap_or_default().into_iter().product::<i64>();
    Ok(Some(u64::try_from(elements).unwrap_or(0).saturating_mul(bytes.into())))
}

/// The lanes of the widest accesses of local memory, if they make a vector and all others are of single elements; else 1.
fn local_lanes(buffer: Value, elements: i64) -> u32 {
    let lanes: Vec<u32> = buffer.uses().into_iter().filter_map(|u| accessed(u.op)).map(|(_, lanes)| lanes).collect();
    let widest = lanes.iter().copied().max().unwrap_or(1);
    let vector = matches!(widest, 2 | 4) && elements % i64::from(widest) == 0;
    if vector && lanes.iter().all(|l| *l == widest || *l == 1) { widest } else { 1 }
}
