//! Splits buffers larger than a binding into several; each access selects the one with its element.
//!
//! Before / after (192 MiB, a binding has at most 128):
//! ```mlir
//! func.func private @k(%a: memref<50331648xf32, #g>) { %x = memref.load %a[%i] .. }
//!
//! func.func private @k(%a0: memref<33554432xf32, strided<[1]>, #g>, %a1: memref<16777216xf32, strided<[1], offset: 33554432>, #g>) {
//!   %low = arith.cmpi slt, %i, %c33554432
//!   %x = scf.if %low { memref.load %a0[%i] } else { %j = arith.subi %i, %c33554432; memref.load %a1[%j] } .. }
//! ```
//! Requires: flat arguments, and loads and stores as their only uses; an access of several lanes begins at a multiple of these.
//! Ensures: no argument of static extent is larger than a binding. The caller passes windows of one buffer ([`windows`]).

use super::code::Code;
use crate::error;
use monopour_ir::ops;
use monopour_ir::typed::{Slice, memref};
use monopour_ir::{Block, Diagnostics, InsertionPoint, Op, OpSpec, Region, Rewriter, Type, Value};
use monopour_program::GpuDescription;
use std::ops::Range;

/// Alignment of a binding's offset on every device; no lane count is larger.
const ALIGNMENT_BYTES: u64 = 256;

/// The element ranges of a buffer's bindings; none for one binding of the whole.
pub(super) type Parts = Vec<Range<i64>>;

/// The parts of a buffer of type `ty`; `None` if one binding holds it, or if its extent is unknown.
fn plan(ty: Type, most_bytes: u64) -> Option<Parts> {
    let (bytes, element) = (ty.static_size_bytes()?, ty.element_size_bytes()?.max(1));
    let part = i64::try_from(most_bytes / ALIGNMENT_BYTES * ALIGNMENT_BYTES / element).ok().filter(|p| *p > 0)?;
    let elements = i64::try_from(bytes / element).ok()?;
    let starts = (0..elements).step_by(usize::try_from(part).ok()?);
    (bytes > most_bytes).then(|| starts.map(|start| start..(start + part).min(elements)).collect())
}

/// Splits the arguments of a written kernel that exceed `device`'s bindings; returns the parts of each buffer.
///
/// # Errors
/// G0008 for an argument that something other than a load or store uses.
pub(super) fn split<'c>(
    code: &mut Code<'c, '_>,
    func: Op<'c>,
    device: &GpuDescription,
) -> Result<Vec<Parts>, Diagnostics> {
    let Some(body) = func.body() else { return Ok(vec![]) };
    let buffers: Vec<Value> = body.args().into_iter().take_while(|a| a.ty().is_memref()).collect();
    let mut out = vec![Parts::new(); buffers.len()];
    // In reverse, which keeps earlier positions valid.
    for (at, buffer) in buffers.into_iter().enumerate().rev() {
        let Some(parts) = plan(buffer.ty(), device.limits.max_binding_bytes) else { continue };
        let types: Vec<Type> = parts.iter().map(|part| window_type(buffer.ty(), part)).collect();
        let windows: Vec<(Value, i64)> = parts
            .iter()
            .zip(types)
            .enumerate()
            .map(|(i, (part, ty))| (code.rw.insert_block_arg(body, at + 1 + i, ty, func.location()), part.start))
            .collect();
        for u in buffer.uses() {
            redirect(code, u.op, buffer, &windows)?;
        }
        code.rw.erase_block_arg(body, at);
        out[at] = parts;
    }
    Ok(out)
}

/// The type of a part, with its place in the buffer as offset.
fn window_type<'c>(whole: Type<'c>, part: &Range<i64>) -> Type<'c> {
    let memref = whole.as_memref().expect("invariant: a buffer is a memref");
    let (extent, offset) = (part.end - part.start, memref.offset + part.start);
    Type::strided_memref(&[extent], memref.element, offset, &[1], memref.memory_space)
}

/// Redirects a load or store to the part with the element.
fn redirect<'c>(
    code: &mut Code<'c, '_>,
    op: Op<'c>,
    buffer: Value<'c>,
    windows: &[(Value<'c>, i64)],
) -> Result<(), Diagnostics> {
    let at = match op.name() {
        ops::memref::LOAD | ops::vector::LOAD => 0,
        ops::memref::STORE | ops::vector::STORE => 1,
        _ => return Err(error::not_a_tile(op, "it passes on a buffer that is larger than a binding")),
    };
    debug_assert_eq!(op.operand(at), buffer, "a buffer is not stored");
    code.at(InsertionPoint::Before(op));
    let access = Access { op, at, index: op.operand(at + 1) };
    let results = access.write(code, windows)?;
    code.rw.replace_op(op, &results);
    Ok(())
}

/// A load or store: the position of its buffer among the operands, and the index.
struct Access<'c> {
    op: Op<'c>,
    at: usize,
    index: Value<'c>,
}

impl<'c> Access<'c> {
    /// An access in the first window if the index is below the start of the second one, else in one of the others.
    fn write(&self, code: &mut Code<'c, '_>, windows: &[(Value<'c>, i64)]) -> Result<Vec<Value<'c>>, Diagnostics> {
        let ((window, start), rest) = windows.split_first().expect("invariant: a split buffer has parts");
        let Some((_, next)) = rest.first() else { return Ok(self.in_window(code, *window, *start)) };
        let next = code.c(*next);
        let low = code.less(self.index, next);
        let types: Vec<Type> = self.op.results().iter().map(|r| r.ty()).collect();
        let accept = branch(code, |code| Ok(self.in_window(code, *window, *start)))?;
        let reject = branch(code, |code| self.write(code, rest))?;
        let spec = OpSpec::new(ops::scf::IF, code.loc).operands(&[low]).results(&types).region(accept).region(reject);
        Ok(code.create(spec)?.results())
    }

    fn in_window(&self, code: &mut Code<'c, '_>, window: Value<'c>, start: i64) -> Vec<Value<'c>> {
        let index = code.add_const(self.index, -start);
        let copy = code.rw.clone_op(self.op, |v| v);
        code.rw.insert(copy);
        code.rw.set_operand(copy, self.at, window);
        code.rw.set_operand(copy, self.at + 1, index);
        copy.results()
    }
}

/// A region that yields what `body` returns.
fn branch<'c>(
    code: &mut Code<'c, '_>,
    body: impl FnOnce(&mut Code<'c, '_>) -> Result<Vec<Value<'c>>, Diagnostics>,
) -> Result<Region<'c>, Diagnostics> {
    let block = Block::new(&[]);
    let region = Region::new();
    region.append(block);
    let outer = code.point();
    code.at(InsertionPoint::End(block));
    let results = body(code);
    if let Ok(results) = &results {
        code.create(OpSpec::new(ops::scf::YIELD, code.loc).operands(results))?;
    }
    code.at(outer);
    results.map(|_| region)
}

/// The caller's operands for a flat buffer with these parts.
pub(super) fn windows<'c>(
    rw: &mut Rewriter<'c>,
    call: Op<'c>,
    flat: Value<'c>,
    parts: &Parts,
) -> Result<Vec<Value<'c>>, Diagnostics> {
    if parts.is_empty() {
        return Ok(vec![flat]);
    }
    let window = |part: &Range<i64>| {
        let slice = Slice::fixed(&[part.start], &[part.end - part.start]);
        let spec = memref::subview(call.location(), flat, &slice, window_type(flat.ty(), part));
        Ok(rw.create(spec)?.result(0))
    };
    parts.iter().map(window).collect()
}
