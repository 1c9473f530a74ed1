//! Free every buffer right after its last use, through whatever alias.
//!
//! ```text
//! %a = memref.alloc() : memref<8xf32>                 %a = memref.alloc() : memref<8xf32>
//! %v = memref.subview %a[0] [4] [1]                   %v = memref.subview %a[0] [4] [1]
//! linalg.fill ins(%x) outs(%v)                 ==>    linalg.fill ins(%x) outs(%v)
//! linalg.fill ins(%x) outs(%b)                        memref.dealloc %a : memref<8xf32>
//! return %b                                           linalg.fill ins(%x) outs(%b)
//! ```
//!
//! Ensures: what is returned is owned by the caller and shares no memory with an argument, a global or another result:
//! a copy is made where it would. Bodies of dispatches are left to later phases.
//! Limits: an owner that is known at run time only (D0104).

use monopour_analysis::index::Id;
use monopour_analysis::ownership::{Condition, ForwardTo, Ownership, Owners, Place, Placement};
use monopour_ir::{Attr, DYNAMIC, Diagnostic, Diagnostics, InsertionPoint, Op, OpSpec, Rewriter, Type, Value};

use crate::Stats;
use crate::collect::{Collected, check, collect};

/// The decisions on one function.
pub(crate) struct Decided {
    function: Op,
    collected: Collected,
    owners: Owners,
}

/// Decides, touching nothing.
pub(crate) fn decide(function: Op) -> Result<Decided, Diagnostics> {
    check(function, true)?;
    let inconsistent = |error| {
        Diagnostics::from(Diagnostic::error("D0105", function.location(), format!("the memrefs of this function do not fit together: {error}"))
            .with_help("please report this program"))
    };
    let collected = collect(function).map_err(inconsistent)?;
    let owners = collected.facts.decide(Placement::LastUse).map_err(inconsistent)?;
    let mut errors = Diagnostics::default();
    for free in owners.frees.iter().filter(|f| f.condition != Condition::Always) {
        errors.0.push(at_run_time(&collected, collected.values[free.value.index()]));
    }
    for transfer in owners.transfers.iter().filter(|t| t.ownership == Ownership::AtRunTime && t.forward.to != ForwardTo::Caller) {
        errors.0.push(at_run_time(&collected, collected.values[transfer.forward.value.index()]));
    }
    if errors.has_errors() {
        errors.0.truncate(1);
        return Err(errors);
    }
    Ok(Decided { function, collected, owners })
}

fn at_run_time(collected: &Collected, value: Value) -> Diagnostic {
    let op = value.defining_op().or_else(|| value.as_block_arg().and_then(|(b, _)| b.parent_op()));
    let op = op.unwrap_or(collected.ops[0]);
    Diagnostic::error("D0104", op.location(), format!("which of several buffers {} gives away is known at run time only", op.name()))
        .with_help("let every branch, or every iteration, yield a buffer of its own or none of them")
}

/// Inserts what was decided.
pub(crate) fn insert(decided: Decided, stats: &mut Stats) -> Result<(), Diagnostics> {
    let Decided { function, collected, owners } = decided;
    let mut rw = Rewriter::new(function.context());
    // Copies first: they use what they copy, before anything is freed at the end of a block.
    for transfer in owners.transfers.iter().filter(|t| t.forward.to == ForwardTo::Caller && t.ownership != Ownership::Owned) {
        let terminator = collected.ops[transfer.forward.terminator.index()];
        let value = collected.values[transfer.forward.value.index()];
        own_result(&mut rw, terminator, value, stats)?;
    }
    for free in &owners.frees {
        let value = collected.values[free.value.index()];
        match free.place {
            Place::After(op) => rw.set_point(InsertionPoint::After(collected.ops[op.index()])),
            Place::End(block) => match collected.blocks[block.index()].terminator() {
                Some(terminator) => rw.set_point(InsertionPoint::Before(terminator)),
                None => continue,
            },
        }
        let loc = value.defining_op().map_or(function.location(), Op::location);
        rw.create(OpSpec::new("memref.dealloc", loc).operands(&[value]))?;
        stats.deallocs += 1;
    }
    Ok(())
}

/// Returns a copy where the memory is not the function's to give away.
fn own_result(rw: &mut Rewriter, terminator: Op, value: Value, stats: &mut Stats) -> Result<(), Diagnostics> {
    // The same value may be returned twice: the first result that is not owned yet gets the copy last, so from the end.
    let Some(index) = (0..terminator.num_operands()).rev().find(|i| terminator.operand(*i) == value) else { return Ok(()) };
    rw.set_point(InsertionPoint::Before(terminator));
    let copy = copy_of(rw, terminator, value)?;
    rw.set_operand(terminator, index, copy);
    let size = value.ty().static_size_bytes().map_or_else(|| "a buffer of dynamic size".to_owned(), |b| format!("{b} bytes"));
    let message = format!("copied {size} for result {index}: a caller owns its results, and this one is an argument, a constant or another result");
    stats.remarks.0.push(Diagnostic::remark("D0201", terminator.location(), message));
    stats.clones += 1;
    Ok(())
}

fn copy_of(rw: &mut Rewriter, at: Op, value: Value) -> Result<Value, Diagnostics> {
    let cx = rw.context();
    let ty = value.ty();
    let shape = ty.shape().unwrap_or_default();
    let space = ty.as_memref().and_then(|m| m.memory_space);
    let fresh = Type::memref(&shape, ty.element(), space);
    let mut sizes = Vec::new();
    for (dim, _) in shape.iter().enumerate().filter(|(_, size)| **size == DYNAMIC) {
        let number = rw.const_index(i64::try_from(dim).unwrap_or(i64::MAX), at.location());
        let spec = OpSpec::new("memref.dim", at.location()).operands(&[value, number]).results(&[Type::index(cx)]);
        sizes.push(rw.create(spec)?.result(0));
    }
    let count = i32::try_from(sizes.len()).unwrap_or(i32::MAX);
    let alloc = OpSpec::new("memref.alloc", at.location()).operands(&sizes).results(&[fresh])
        .attr("alignment", Attr::i64(cx, 64)).attr("operandSegmentSizes", Attr::dense_i32(cx, &[count, 0]));
    let buffer = rw.create(alloc)?.result(0);
    rw.create(OpSpec::new("memref.copy", at.location()).operands(&[value, buffer]))?;
    if fresh == ty {
        return Ok(buffer);
    }
    Ok(rw.create(OpSpec::new("memref.cast", at.location()).operands(&[buffer]).results(&[ty]))?.result(0))
}
