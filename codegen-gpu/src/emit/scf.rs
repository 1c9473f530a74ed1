//! Structured control flow. Values that cross a region's boundary are in local variables.

use super::module::{Ex, Kernel, Lowered};
use super::{cooperative, emit_block, types};
use crate::error;
use monopour_contract::attributes;
use monopour_ir::ops;
use monopour_ir::{Block, Diagnostics, Op, Value};
use naga::{BinaryOperator as B, Statement};

/// Local variables that hold one MLIR value, one per plane.
struct Slot<'c> {
    value: Value<'c>,
    planes: Vec<Ex>,
    /// A cooperative matrix, which is read where it is used.
    is_matrix: bool,
}

pub(super) fn emit<'c>(kernel: &mut Kernel<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    match op.name() {
        ops::scf::FOR => emit_for(kernel, op),
        ops::scf::IF => emit_if(kernel, op),
        ops::scf::WHILE => emit_while(kernel, op),
        _ => Err(error::unsupported_op(op)),
    }
}

/// One slot per value, of the value's type.
fn slots<'c>(kernel: &mut Kernel<'c>, op: Op<'c>, values: &[Value<'c>]) -> Result<Vec<Slot<'c>>, Diagnostics> {
    values
        .iter()
        .map(|value| {
            if let Some(ty) = cooperative::matrix_type(kernel, op, value.ty())? {
                return Ok(Slot { value: *value, planes: vec![kernel.local(ty)], is_matrix: true });
            }
            let shape = types::shape(kernel, op, value.ty())?;
            let ty = kernel.plane_type(shape);
            let count = if shape.lanes == 8 { 2 } else { 1 };
            Ok(Slot { value: *value, planes: (0..count).map(|_| kernel.local(ty)).collect(), is_matrix: false })
        })
        .collect()
}

fn write<'c>(kernel: &mut Kernel<'c>, slots: &[Slot<'c>], values: &[Value<'c>]) {
    for (slot, value) in slots.iter().zip(values) {
        let held = kernel.matrix(*value);
        if held == Some(slot.planes[0]) {
            continue;
        }
        let planes = match held {
            Some(variable) => vec![kernel.load(variable)],
            None => match kernel.get(*value) {
                Lowered::One(e) => vec![e],
                Lowered::Planes(e) => e.to_vec(),
            },
        };
        for (pointer, plane) in slot.planes.iter().zip(planes) {
            kernel.store(*pointer, plane);
        }
    }
}

/// Loads every slot as `values[i]`.
fn read<'c>(kernel: &mut Kernel<'c>, slots: &[Slot<'c>], values: &[Value<'c>]) {
    for (slot, value) in slots.iter().zip(values) {
        if slot.is_matrix {
            kernel.set_matrix(*value, slot.planes[0]);
            continue;
        }
        let loaded: Vec<Ex> = slot.planes.iter().map(|p| kernel.load(*p)).collect();
        let lowered = if loaded.len() == 2 { Lowered::Planes([loaded[0], loaded[1]]) } else { Lowered::One(loaded[0]) };
        kernel.set(*value, lowered);
    }
}

fn read_own<'c>(kernel: &mut Kernel<'c>, slots: &[Slot<'c>]) {
    let values: Vec<Value> = slots.iter().map(|s| s.value).collect();
    read(kernel, slots, &values);
}

fn block_of<'c>(op: Op<'c>, region: usize) -> Block<'c> {
    op.region(region).entry().expect("the region has a block: verified")
}

fn terminator<'c>(block: Block<'c>) -> Op<'c> {
    block.terminator().expect("the block has a terminator: verified")
}

fn emit_for<'c>(kernel: &mut Kernel<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    let body = block_of(op, 0);
    let args = body.args();
    let (upper, step) = (kernel.one(op.operand(1)), kernel.one(op.operand(2)));
    let counter = slots(kernel, op, &args[..1])?;
    let carried = slots(kernel, op, &args[1..])?;
    write(kernel, &counter, &op.operands()[..1]);
    write(kernel, &carried, &op.operands()[3..]);

    // Copies of the body per iteration.
    let copies = op.attr(attributes::UNROLL).and_then(|a| a.as_int()).unwrap_or(1).clamp(1, 64);
    kernel.open_block();
    for copy in 1..=copies {
        read_own(kernel, &counter);
        let induction = kernel.one(args[0]);
        let running = kernel.binary(B::Less, induction, upper);
        break_unless(kernel, running);
        read_own(kernel, &carried);
        emit_block(kernel, body)?;
        write(kernel, &carried, &terminator(body).operands());
        if copy < copies {
            advance(kernel, &counter[0], step);
        }
    }
    let looped = kernel.close_block();

    kernel.open_block();
    advance(kernel, &counter[0], step);
    let continuing = kernel.close_block();
    kernel.push(Statement::Loop { body: looped, continuing, break_if: None });
    read(kernel, &carried, &op.results());
    Ok(())
}

/// Advances a loop's counter.
fn advance<'c>(kernel: &mut Kernel<'c>, counter: &Slot<'c>, step: Ex) {
    let current = kernel.load(counter.planes[0]);
    let next = kernel.binary(B::Add, current, step);
    kernel.store(counter.planes[0], next);
}

fn break_unless(kernel: &mut Kernel, condition: Ex) {
    let mut reject = naga::Block::new();
    reject.push(Statement::Break, naga::Span::UNDEFINED);
    kernel.push(Statement::If { condition, accept: naga::Block::new(), reject });
}

fn emit_if<'c>(kernel: &mut Kernel<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    let condition = kernel.one(op.operand(0));
    let results = slots(kernel, op, &op.results())?;
    let mut branches = Vec::new();
    for region in op.regions() {
        kernel.open_block();
        if let Some(block) = region.entry() {
            emit_block(kernel, block)?;
            if let Some(end) = block.terminator() {
                write(kernel, &results, &end.operands());
            }
        }
        branches.push(kernel.close_block());
    }
    let reject = branches.pop().unwrap_or_default();
    let accept = branches.pop().unwrap_or_default();
    kernel.push(Statement::If { condition, accept, reject });
    read_own(kernel, &results);
    Ok(())
}

fn emit_while<'c>(kernel: &mut Kernel<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    let (before, after) = (block_of(op, 0), block_of(op, 1));
    let carried = slots(kernel, op, &before.args())?;
    let forwarded = slots(kernel, op, &op.results())?;
    write(kernel, &carried, &op.operands());

    kernel.open_block();
    read_own(kernel, &carried);
    emit_block(kernel, before)?;
    let condition = terminator(before).operands();
    write(kernel, &forwarded, &condition[1..]);
    let running = kernel.one(condition[0]);
    break_unless(kernel, running);
    read(kernel, &forwarded, &after.args());
    emit_block(kernel, after)?;
    write(kernel, &carried, &terminator(after).operands());
    let body = kernel.close_block();
    kernel.push(Statement::Loop { body, continuing: naga::Block::new(), break_if: None });
    read_own(kernel, &forwarded);
    Ok(())
}
