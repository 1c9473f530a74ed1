//! Fuses a reduction with the fill before it and the pointwise ops after it.
//!
//! ```text
//! linalg.fill ins(%z) outs(%c)                          for %i, %j (a register tile at a time) {
//! linalg.generic { c += a * b } outs(%c)         ==>      %acc = splat %z; sum over %k; max(%acc + bias[%j], 0)
//! linalg.generic { c = max(c + bias, 0) } outs(%c)        store %c }
//! ```
//!
//! Requires: between the ops, in one block, only ops that touch no memory. Sound because each element of the result is
//! filled, reduced and finished once, at one point of the parallel loops, and because the epilogue's other operands lie in
//! other buffers than the result: they are values of tensors that the reduction has not overwritten.

use super::nest::{Nest, Operand};
use monopour_ir::ops;
use monopour_ir::{LinearForm, Op, Value};

/// Ops that are fused into the loops of a reduction.
pub(super) struct Merged<'c> {
    /// The fill, the epilogues, and the reduction.
    pub(super) ops: Vec<Op<'c>>,
    /// The last of them, where the loops are inserted.
    pub(super) last: Op<'c>,
}

/// The reduction alone.
pub(super) fn none<'c>(nest: &Nest<'c>) -> Merged<'c> {
    Merged { ops: vec![nest.op], last: nest.op }
}

/// Finds the fill before the sum and the pointwise ops after it; adds them to `nest`.
pub(super) fn around<'c>(nest: &mut Nest<'c>, epilogues: bool) -> Merged<'c> {
    let mut merged = none(nest);
    let Some(output) = whole_output(nest).filter(|_| !nest.reductions().is_empty()) else { return merged };
    let reads_fill = nest.inputs.iter().any(|i| !is_apart(i, &output));
    if let Some((fill, value)) = previous(nest.op).filter(|_| !reads_fill).and_then(|op| fill_of(op, output.value)) {
        nest.start = Some(value);
        merged.ops.push(fill);
    }
    while let Some(next) = next(merged.last).filter(|_| epilogues) {
        let Some(after) = Nest::of(next).and_then(|n| epilogue(nest, &output, n)) else { break };
        nest.after.push(after);
        merged.ops.push(next);
        merged.last = next;
    }
    merged
}

/// The op that fills the output of a nest which [`around`] found one for.
pub(super) fn fill<'c>(nest: &Nest<'c>) -> Option<Op<'c>> {
    nest.start.and_then(|_| previous(nest.op))
}

/// The only output, if its subscripts are distinct loops: the op then writes the whole memref.
fn whole_output<'c>(nest: &Nest<'c>) -> Option<Operand<'c>> {
    let [output] = &nest.outputs[..] else { return None };
    let dims: Vec<usize> = output.subscripts.iter().map(LinearForm::as_dim).collect::<Option<_>>()?;
    let distinct = dims.iter().all(|d| dims.iter().filter(|o| *o == d).count() == 1);
    distinct.then(|| output.clone())
}

fn fill_of<'c>(op: Op<'c>, target: Value<'c>) -> Option<(Op<'c>, Value<'c>)> {
    let nest = Nest::of(op)?;
    let output = whole_output(&nest).filter(|o| o.value == target && o.subscripts.len() == nest.loops.len())?;
    let yielded = *nest.yielded().first()?;
    let value = match nest.inputs.iter().enumerate().find(|(i, _)| nest.body.arg(*i) == yielded) {
        Some((_, input)) => Some(input.value).filter(|_| !input.is_memory()),
        None => Some(yielded).filter(|v| v.block() != Some(nest.body)),
    };
    value.filter(|v| v.ty() == output.element()).map(|v| (op, v))
}

/// `after` with its loops renamed to those of `nest`.
fn epilogue<'c>(nest: &Nest<'c>, output: &Operand<'c>, mut after: Nest<'c>) -> Option<Nest<'c>> {
    let target = whole_output(&after).filter(|o| o.value == output.value)?;
    let pointwise = after.reductions().is_empty() && after.loops.len() == target.subscripts.len();
    let apart = after.inputs.iter().all(|i| is_apart(i, output));
    let positions = after.body.ops().iter().any(|op| op.is(ops::linalg::INDEX) || op.is(ops::memref::LOAD));
    if !pointwise || !apart || positions {
        return None;
    }
    let mut names = vec![0; after.loops.len()];
    for (theirs, ours) in target.subscripts.iter().zip(&output.subscripts) {
        names[theirs.as_dim()?] = ours.as_dim()?;
    }
    for operand in after.inputs.iter_mut().chain(&mut after.outputs) {
        for subscript in &mut operand.subscripts {
            let mut factors = vec![0; nest.loops.len()];
            for (theirs, factor) in subscript.factors.iter().enumerate() {
                factors[names[theirs]] = *factor;
            }
            subscript.factors = factors;
        }
    }
    Some(after)
}

/// Whether an operand is a scalar, or lies in another buffer than the output.
fn is_apart(operand: &Operand, output: &Operand) -> bool {
    !operand.is_memory() || in_other_buffers(operand.value, output.value)
}

/// Whether two memrefs are views of distinct known buffers.
pub(super) fn in_other_buffers<'c>(a: Value<'c>, b: Value<'c>) -> bool {
    matches!((base(a), base(b)), (Some(a), Some(b)) if a != b)
}

/// The buffer that a memref is a view of: an argument of the kernel, an allocation or a constant. `None` for a value of a
/// loop or select.
fn base<'c>(mut value: Value<'c>) -> Option<Value<'c>> {
    while let Some(op) = value.defining_op() {
        if matches!(op.name(), ops::memref::ALLOC | ops::memref::ALLOCA | ops::memref::GET_GLOBAL) {
            return Some(value);
        }
        let source = op.operands().into_iter().next().filter(|v| v.ty().is_memref());
        value = source.filter(|_| op.dialect() == "memref")?;
    }
    let (block, _) = value.as_block_arg()?;
    block.parent_op().filter(|op| op.is(ops::func::FUNC)).map(|_| value)
}

/// The generic after `op`, if nothing between them touches memory.
fn next<'c>(op: Op<'c>) -> Option<Op<'c>> {
    let mut next = op.next()?;
    while is_pure(next) {
        next = next.next()?;
    }
    next.is(ops::linalg::GENERIC).then_some(next)
}

/// The generic before `op`, if nothing between them touches memory.
fn previous<'c>(op: Op<'c>) -> Option<Op<'c>> {
    let ops = op.block()?.ops();
    let at = ops.iter().position(|o| *o == op)?;
    ops[..at].iter().rev().find(|o| !is_pure(**o)).copied().filter(|o| o.is(ops::linalg::GENERIC))
}

fn is_pure(op: Op) -> bool {
    let views = [
        ops::memref::SUBVIEW,
        ops::memref::CAST,
        ops::memref::DIM,
        ops::memref::EXPAND_SHAPE,
        ops::memref::COLLAPSE_SHAPE,
    ];
    matches!(op.dialect(), "arith" | "affine") && op.regions().is_empty() || views.contains(&op.name())
}
