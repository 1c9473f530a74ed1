//! Results too large for any cache are written past the caches.
//!
//! An ordinary store first reads the line that it overwrites: half as much traffic again for a sum of two arrays. What is
//! written past the caches is read from memory by the next dispatch, as most of so large a result would be anyway.
//!
//! Squares of registers that are transposed write a line here and a line there; they gain nothing, and stay.
//!
//! Such stores need whole lines of the caches at their places. Whether the result begins at one is known at run time alone:
//! both forms are there. They are not ordered with other stores, so that a task ends with a fence.
//!
//! Measured with a last-level cache of 32 MB, layer norm and a sum that reads its result: 0.62 of the time of ordinary stores
//! for results of 16 MB, 0.75 for 32 and 64 MB, and 1.1 times that of ordinary stores for 8 MB.

use super::choose::Choice;
use super::emit::{CACHE_LINE_BYTES, Emit, Position, element_bytes};
use super::nest::{Access, Nest};
use monopour_ir::control_flow::{view_source, viewed};
use monopour_ir::{DYNAMIC, Value};

/// Least bytes of a result, and of all buffers of its kernel, of which a last-level cache keeps no useful part: 16 to 32 MB are
/// common.
const LEAST_BYTES: u64 = 16 << 20;
const LEAST_TOUCHED_BYTES: u64 = 32 << 20;

/// Whether the form of a nest without reductions suits stores past the caches: one large result in whole lines, of which
/// nothing is read.
pub(super) fn suits(nest: &Nest, choice: &Choice) -> bool {
    let [result] = &nest.outputs[..] else { return false };
    let is_plain = nest.reductions().is_empty() && nest.start.is_none();
    if !is_plain || !nest.output_arg(0).is_unused() || result.access(choice.dim) != Access::Contiguous {
        return false;
    }
    let buffer = viewed(result.value);
    let inputs = nest.inputs.iter().chain(nest.after.iter().flat_map(|after| &after.inputs));
    let is_read = inputs.filter(|input| input.is_memory()).any(|input| viewed(input.value) == buffer);
    let line = CACHE_LINE_BYTES / element_bytes(result).max(1);
    let Some(ty) = result.value.ty().as_memref() else { return false };
    let whole = |d: usize| match nest.loops[d].extent {
        Some(extent) if d == choice.dim => extent % line == 0,
        Some(_) => result.stride_bytes(d).is_some_and(|bytes| bytes % CACHE_LINE_BYTES == 0),
        None => false,
    };
    // Small floats are held as other types later.
    let is_held = result.element().float_width().is_none_or(|bits| bits >= 32);
    let known = ty.strides.iter().all(|stride| *stride != DYNAMIC);
    is_large(result.value)
        && is_held
        && !is_read
        && is_written_alone(buffer, nest)
        && known
        && line > 1
        && (0..nest.loops.len()).all(whole)
}

/// Whether no other op of the kernel touches a buffer: what one reads again belongs in the caches.
fn is_written_alone<'c>(buffer: Value<'c>, nest: &Nest<'c>) -> bool {
    let mut views = vec![buffer];
    while let Some(view) = views.pop() {
        for used in view.uses() {
            if view_source(used.op) == Some(view) {
                views.extend(used.op.results());
            } else if used.op != nest.op && !nest.after.iter().any(|after| after.op == used.op) {
                return false;
            }
        }
    }
    true
}

/// Whether a value is a part of an argument of a kernel, and that is large.
pub(super) fn is_large(result: Value) -> bool {
    let bytes = |value: Value| value.ty().static_size_bytes().unwrap_or(0);
    let buffer = viewed(result);
    let touched = buffer.as_block_arg().map(|(block, _)| block.args().into_iter().map(bytes).sum::<u64>());
    bytes(buffer) >= LEAST_BYTES && touched.is_some_and(|touched| touched >= LEAST_TOUCHED_BYTES)
}

/// Writes the loops by `form`, past the caches where the result begins with a line.
pub(super) fn write<'c>(e: &mut Emit<'c>, nest: &Nest<'c>, form: &dyn Fn(&mut Emit<'c>)) {
    let begins = e.begins_a_line(&nest.outputs[0], &vec![Position::at(0); nest.loops.len()]);
    let mut past = |e: &mut Emit<'c>| {
        e.passes_caches = true;
        form(e);
        e.passes_caches = false;
    };
    e.either(begins, &mut past, &mut |e| form(e));
    let (kernel, _) = viewed(nest.outputs[0].value).as_block_arg().expect("invariant: it is large");
    e.order_stores(kernel);
}
