//! Insert a copy for every operand decided out of place.
//!
//! ```text
//! %1 = linalg.fill ins(%z) outs(%0)          %c = bufferization.alloc_tensor() copy(%0)
//! %2 = tensor.extract %0[%i]           ==>   %1 = linalg.fill ins(%z) outs(%c)
//!                                            %2 = tensor.extract %0[%i]
//! ```
//!
//! Requires: decisions for this function. Ensures: every use that remains is in place.
//! The copy is of the result if that is a slice, and has no contents if they are not read.
//! Tensors that loops carry are copied, too, by [`crate::loop_copies`].

use monopour_analysis::index::{OperandId, ValueId};
use monopour_analysis::one_shot::{Decisions, InPlaceAnalysis, Reason};
use monopour_ir::ops;
use monopour_ir::typed::bufferization;
use monopour_ir::{DYNAMIC, Diagnostic, Diagnostics, InsertionPoint, Op, OpSpec, Rewriter, Type, Use, Value};
use tracing::trace;

use crate::collect::{Collected, inserts_into_what_stays};
use crate::failures::location_of;
use crate::loop_copies::copied_in_loops;
use crate::memref_types::memory_space;
use crate::op_model::OpModels;
use crate::options::Options;
use crate::remarks::{Remarks, bytes};

/// Inserts the copies of one function and returns a remark for each.
pub(crate) fn run<'c>(
    collected: &Collected<'c>,
    decisions: &Decisions,
    models: &OpModels,
    options: &Options,
    takes_part: impl Fn(Op<'c>) -> bool,
) -> Result<Remarks, Diagnostics> {
    let Some(first) = collected.ops.iter().next() else { return Ok(Remarks::default()) };
    let mut rw = Rewriter::new(first.context());
    let mut remarks = Remarks::default();
    // Decided on the original tensors; the loop below changes them.
    let escaping = copied_in_loops(collected, decisions, models, options, &takes_part);
    // An op that stays on tensors gets its copies when it is bufferized.
    for (id, used) in collected.operands.iter_enumerated().filter(|(_, used)| takes_part(used.op)) {
        let Some(copy) = decisions.copy(id) else {
            let (op, index) = (used.op, used.index);
            trace!(target: "bufferize", "{}: operand {index} of {} in place", op.location(), op.name());
            continue;
        };
        if inserts_into_what_stays(used.op, used.index, &takes_part) {
            continue;
        }
        // Tensor-like types of other dialects copy themselves in their rewrite, as upstream does.
        let ty = used.op.operand(used.index).ty();
        if ty.as_tensor().is_none() && !ty.is_unranked_tensor() {
            continue;
        }
        if let Some(reason) = decisions.reason(id) {
            let copied = copy.result.map_or_else(|| used.op.operand(used.index), |result| collected.values[result]);
            let size = if copy.contents { copied.ty().static_size_bytes() } else { Some(0) };
            remarks.push(explain(collected, id, reason, copied.ty(), copy.contents), size);
        }
        // A slice is copied instead of its larger source, unless it cannot be copied.
        match copy.result.filter(|result| !collected.values[*result].ty().is_unranked_tensor()) {
            Some(result) => copy_result(&mut rw, collected.values[result], copy.contents, options)?,
            None => copy_operand(&mut rw, *used, copy.contents, options)?,
        }
    }
    for used in escaping {
        let ty = used.op.operand(used.index).ty();
        copy_operand(&mut rw, used, true, options)?;
        let message =
            format!("copied {} that the loop yields: it may be memory of something else that lives on", bytes(ty));
        remarks.push(Diagnostic::remark("B0203", used.op.location(), message), ty.static_size_bytes());
    }
    Ok(remarks)
}

fn copy_operand<'c>(
    rw: &mut Rewriter<'c>,
    used: Use<'c>,
    contents: bool,
    options: &Options,
) -> Result<(), Diagnostics> {
    if !options.extensions && used.op.parent().is_some_and(|p| p.is(ops::vector::MASK)) {
        let location = used.op.parent().map_or(used.op.location(), Op::location);
        let help = "write into a tensor that nobody reads afterwards, or copy it before the mask";
        let message = "'vector.mask' op body must bufferize in-place";
        return Err(Diagnostic::error("B0105", location, message).with_help(help).into());
    }
    // A forall's terminator may hold only inserts, and a mask one operation.
    let anchor =
        used.op.parent().filter(|p| p.is(ops::scf::FORALL_IN_PARALLEL) || p.is(ops::vector::MASK)).unwrap_or(used.op);
    rw.set_point(InsertionPoint::Before(anchor));
    let copy = allocate(rw, used.op, used.op.operand(used.index), contents, options)?;
    rw.set_operand(used.op, used.index, copy);
    Ok(())
}

/// Copies a result for all of its uses.
pub(crate) fn copy_result<'c>(
    rw: &mut Rewriter<'c>,
    result: Value<'c>,
    contents: bool,
    options: &Options,
) -> Result<(), Diagnostics> {
    let Some(op) = result.defining_op() else { return Ok(()) };
    // `tensor.dim` can read the original.
    let users: Vec<Use> = result.uses().into_iter().filter(|u| !u.op.is(ops::tensor::DIM)).collect();
    rw.set_point(InsertionPoint::After(op));
    let copy = allocate(rw, op, result, contents, options)?;
    for used in users {
        rw.set_operand(used.op, used.index, copy);
    }
    Ok(())
}

/// `bufferization.alloc_tensor`, as a copy or with undefined contents.
fn allocate<'c>(
    rw: &mut Rewriter<'c>,
    at: Op<'c>,
    tensor: Value<'c>,
    contents: bool,
    options: &Options,
) -> Result<Value<'c>, Diagnostics> {
    if tensor.ty().is_unranked_tensor() {
        let help = "cast it to a ranked tensor before";
        let message = "copying of unranked tensors is not implemented";
        return Err(Diagnostic::error("B0123", at.location(), message).with_help(help).into());
    }
    let sizes = if contents { vec![] } else { dynamic_sizes(rw, at, tensor)? };
    let mut spec = bufferization::alloc_tensor(at.location(), &sizes, contents.then_some(tensor), tensor.ty());
    // A copy is in its original's memory space, unless the type names one.
    if let Some(space) = memory_space(options, tensor.ty()).filter(|_| !options.must_infer_memory_space) {
        spec = spec.attr("memory_space", space);
    }
    Ok(rw.create(spec)?.result(0))
}

/// The dynamic sizes of a tensor, from its defining op if that has them.
fn dynamic_sizes<'c>(rw: &mut Rewriter<'c>, at: Op<'c>, tensor: Value<'c>) -> Result<Vec<Value<'c>>, Diagnostics> {
    if let Some(empty) = tensor.defining_op().filter(|op| op.is(ops::tensor::EMPTY)) {
        return Ok(empty.operands());
    }
    let index = Type::index(rw.context());
    let shape = tensor.ty().shape().unwrap_or_default();
    let mut sizes = Vec::new();
    for (dim, _) in shape.iter().enumerate().filter(|(_, size)| **size == DYNAMIC) {
        let number = rw.const_index(i64::try_from(dim).unwrap_or(i64::MAX), at.location());
        let dim =
            rw.create(OpSpec::new(ops::tensor::DIM, at.location()).operands(&[tensor, number]).results(&[index]))?;
        sizes.push(dim.result(0));
    }
    Ok(sizes)
}

fn place(op: Op) -> String {
    match op.location().position() {
        Some((file, line, column)) => format!("{} at {file}:{line}:{column}", op.name()),
        None => op.name().to_owned(),
    }
}

/// Help that makes a value's buffer writable.
fn make_writable(value: Value) -> String {
    let argument = value.as_block_arg().filter(|(block, _)| block.parent_op().is_some_and(|op| op.is(ops::func::FUNC)));
    match argument {
        Some((_, index)) => {
            format!("donate the input if it is not needed afterwards: `monopour.donate` on argument {index}")
        }
        None => "write into a tensor that is computed".to_owned(),
    }
}

/// The reason of a copy, as a sentence.
pub(crate) fn explain(
    collected: &Collected,
    id: OperandId,
    reason: Reason,
    copied: Type,
    contents: bool,
) -> Diagnostic {
    let used = collected.operands[id];
    let what = bytes(copied);
    let verb = if contents { "copied" } else { "allocated" };
    let op_of = |id: OperandId| place(collected.operands[id].op);
    let value_of = |id: ValueId| {
        let value = collected.values[id];
        match (value.defining_op(), location_of(value)) {
            (Some(op), _) => place(op),
            (None, Some(loc)) => format!("an argument of the region at {loc}"),
            (None, None) => "an argument".to_owned(),
        }
    };
    let remark = |message: String| Diagnostic::remark("B0201", used.op.location(), message);
    let head = format!("{verb} {what} for operand {} of {}", used.index, used.op.name());
    match reason {
        Reason::NotWritable { write, value } => remark(format!("{head}: it may be in memory that must not be written"))
            .with_note(format!("written by {}", op_of(write)))
            .with_note(format!("not writable: {}", value_of(value)))
            .with_help(make_writable(collected.values[value])),
        Reason::SharedByParallelIterations { read, write } => {
            remark(format!("{head}: parallel iterations would share it"))
                .with_note(format!("read by {}", op_of(read)))
                .with_note(format!("written by {}", op_of(write)))
                .with_help("let each iteration write a tensor of its own, made inside of the loop")
        }
        Reason::ReadAfterWrite { read, write, definition } => {
            remark(format!("{head}: its contents are read after the write"))
                .with_note(format!("read by {}", op_of(read)))
                .with_note(format!("written by {}", op_of(write)))
                .with_note(format!("contents from {}", value_of(definition)))
                .with_help("read before the write, or write into another tensor")
        }
        _ => remark(format!("{head}: every write is copied")),
    }
}
