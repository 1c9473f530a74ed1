//! Free every buffer right after its last use through any alias.
//!
//! ```text
//! %a = memref.alloc() : memref<8xf32>                 %a = memref.alloc() : memref<8xf32>
//! %v = memref.subview %a[0] [4] [1]                   %v = memref.subview %a[0] [4] [1]
//! linalg.fill ins(%x) outs(%v)                 ==>    linalg.fill ins(%x) outs(%v)
//! linalg.fill ins(%x) outs(%b)                        memref.dealloc %a : memref<8xf32>
//! return %b                                           linalg.fill ins(%x) outs(%b)
//! ```
//!
//! Ensures: a returned memref is owned by the caller and does not alias an argument, a global or another result:
//! else a copy is returned. Bodies of dispatches are left to later phases.
//! Where a branch or a loop decides the owner of a buffer at run time, an indicator travels beside it.
//! Where one of several buffers is forwarded, or one buffer twice, a copy is forwarded instead (D0201 for results of functions).

use monopour_analysis::index::Id;
use monopour_analysis::ownership::{Condition, ForwardTo, Owners, Ownership, Place, Placement, Transfer};
use monopour_ir::ops;
use monopour_ir::typed::memref;
use monopour_ir::{Attr, DYNAMIC, Diagnostic, Diagnostics, InsertionPoint, Op, OpSpec, Rewriter, Type, Value};
use tracing::trace;

use crate::Stats;
use crate::collect::{Collected, collect, covers, has_memrefs};
use crate::indicators::{Give, If, Indicators, gives, if_owned};
use crate::layout::copy_in_layout;

/// The decisions on one function.
pub(crate) struct Decided<'c> {
    function: Op<'c>,
    collected: Collected<'c>,
    owners: Owners,
}

/// Decides without changes; `None` for a function that is not covered.
pub(crate) fn decide<'c>(function: Op<'c>) -> Option<Decided<'c>> {
    if !covers(function) {
        return None;
    }
    let collected =
        collect(function).expect("invariant: a walk over verified IR meets each operation once, in its block");
    let owners = collected
        .facts
        .decide(Placement::LastUse)
        .expect("invariant: verified IR uses what it sees, and terminators end blocks");
    Some(Decided { function, collected, owners })
}

impl Decided<'_> {
    /// Whether all owners are statically known, and only results of public functions are copied: a copy inside of a function
    /// would be another buffer for its writers.
    pub(crate) fn is_static(&self) -> bool {
        let is_public = self.function.is_public();
        let (gives, _) = gives(&self.collected, &self.owners);
        let is_given = |(transfer, give): (&Transfer, Give)| match transfer.forward.to {
            ForwardTo::Caller => is_public || give == Give::Always,
            ForwardTo::Value(_) => transfer.ownership != Some(Ownership::Owned) || give == Give::Always,
        };
        self.owners.is_static()
            && self.owners.transfers.iter().zip(gives).all(is_given)
            && !self.function.find_all(ops::scf::WHILE).into_iter().any(has_memrefs)
    }
}

/// Inserts the frees.
pub(crate) fn insert<'c>(decided: Decided<'c>, stats: &mut Stats) -> Result<(), Diagnostics> {
    let Decided { function, mut collected, owners } = decided;
    let mut rw = Rewriter::new(function.context());
    let indicators = Indicators::add(&mut rw, &mut collected, &owners)?;
    // Copies first: they use their operand, before any free at the end of a block.
    for (position, transfer) in owners.transfers.iter().enumerate().filter(|(_, t)| t.forward.to == ForwardTo::Caller) {
        let give = indicators.give(position);
        if give != Give::Always {
            own_result(&mut rw, &collected, &indicators, transfer, give, stats)?;
        }
    }
    for free in
        owners.frees.iter().filter(|f| f.condition != Condition::UnlessForwarded || !indicators.is_given(f.value))
    {
        let value = collected.values[free.value.index()];
        let loc = value.defining_op().map_or(function.location(), Op::location);
        let point = match free.place {
            Place::After(op) => InsertionPoint::After(collected.ops[op.index()]),
            Place::End(block) => match collected.blocks[block.index()].terminator() {
                Some(terminator) => InsertionPoint::Before(terminator),
                None => continue,
            },
        };
        rw.set_point(point);
        match free.place {
            Place::After(op) => {
                let op = collected.ops[op.index()];
                trace!(target: "dealloc", "{loc}: freed after {} at {}", op.name(), op.location());
            }
            Place::End(_) => trace!(target: "dealloc", "{loc}: freed at the end of its block"),
        }
        // A forwarded memref has been copied unless its ownership was transferred, so only the owner counts.
        let indicator =
            if owners.ownership[free.value] == Some(Ownership::AT_RUN_TIME) { indicators.of(free.value) } else { None };
        match indicator {
            None => {
                rw.create(OpSpec::new(ops::memref::DEALLOC, loc).operands(&[value]))?;
            }
            Some(indicator) => {
                let free_it = |rw: &mut Rewriter<'c>| {
                    rw.create(OpSpec::new(ops::memref::DEALLOC, loc).operands(&[value])).map(|_| vec![])
                };
                if_owned(&mut rw, If::new(point, loc, indicator, &[]), free_it, |_| Ok(vec![]))?;
            }
        }
        stats.deallocs += 1;
    }
    for op in function.find_all(ops::scf::WHILE) {
        give_to_loop(&mut rw, op, stats)?;
    }
    Ok(())
}

/// The first iteration of an `scf.while` owns its operand: an allocation without later uses, else a copy.
fn give_to_loop<'c>(rw: &mut Rewriter<'c>, op: Op<'c>, stats: &mut Stats) -> Result<(), Diagnostics> {
    for index in (0..op.num_operands()).filter(|i| op.operand(*i).ty().is_memref()) {
        let value = op.operand(index);
        if let Some(dealloc) = last_owner(op, value) {
            rw.erase(dealloc);
            stats.deallocs -= 1;
            continue;
        }
        rw.set_point(InsertionPoint::Before(op));
        let copy = copy_of(rw, op, value)?;
        rw.set_operand(op, index, copy);
        let message = format!("copied {} for a loop that frees or replaces what it gets", size_text(value.ty()));
        stats.remarks.0.push(Diagnostic::remark("D0201", op.location(), message));
        stats.remark_bytes.push(value.ty().static_size_bytes());
        stats.clones += 1;
    }
    Ok(())
}

/// The dealloc of an allocation whose last use is this loop.
fn last_owner<'c>(op: Op<'c>, value: Value<'c>) -> Option<Op<'c>> {
    value.defining_op().filter(|d| d.is(ops::memref::ALLOC) && d.block() == op.block())?;
    let uses = value.uses();
    let has_views = uses.iter().any(|u| u.op.results().iter().any(|r| r.ty().is_memref()) && u.op != op);
    let inside = uses.iter().any(|u| u.op != op && u.op.is_inside(op));
    let given_once = uses.iter().filter(|u| u.op == op).count() == 1;
    let mut deallocs = uses.iter().filter(|u| u.op.is(ops::memref::DEALLOC));
    let (dealloc, None) = (deallocs.next()?.op, deallocs.next()) else { return None };
    let is_after = dealloc.block() == op.block() && op.is_before_in_block(dealloc);
    let used_later = uses.iter().any(|u| {
        let mut at = Some(u.op);
        while let Some(o) = at.filter(|o| o.block() != op.block()) {
            at = o.parent();
        }
        at.is_none_or(|o| o != dealloc && o != op && !o.is_before_in_block(op))
    });
    (given_once && is_after && !has_views && !inside && !used_later).then_some(dealloc)
}

pub(crate) fn size_text(ty: Type) -> String {
    ty.static_size_bytes().map_or_else(|| "a buffer of dynamic size".to_owned(), |b| format!("{b} bytes"))
}

/// Returns a copy of memory that the function does not own.
fn own_result<'c>(
    rw: &mut Rewriter<'c>,
    collected: &Collected<'c>,
    indicators: &Indicators<'c>,
    transfer: &Transfer,
    give: Give,
    stats: &mut Stats,
) -> Result<(), Diagnostics> {
    let terminator = collected.ops[transfer.forward.terminator.index()];
    let value = collected.values[transfer.forward.value.index()];
    // The same value may be returned twice: the first result that is not owned yet gets the copy last, so from the end.
    let Some(index) = (0..terminator.num_operands()).rev().find(|i| terminator.operand(*i) == value) else {
        return Ok(());
    };
    let copy = indicators.owned(rw, terminator, value, give)?;
    rw.set_operand(terminator, index, copy);
    let size = size_text(value.ty());
    let unless = if matches!(give, Give::If(_)) { ", unless it turns out to be owned" } else { "" };
    let message = if terminator.is(ops::func::RETURN) {
        format!(
            "copied {size} for result {index}{unless}: a caller owns its results, and this one is an argument, a constant or another result"
        )
    } else {
        format!("copied {size} for operand {index} of {}{unless}: an iteration owns what it gets", terminator.name())
    };
    stats.remarks.0.push(Diagnostic::remark("D0201", terminator.location(), message));
    stats.remark_bytes.push(value.ty().static_size_bytes());
    stats.clones += 1;
    Ok(())
}

/// The row-major type of a copy; `None` if a copy cannot replace a memref of this type.
///
/// A dynamic stride is not cast to a number, though MLIR allows it: a row-major copy has another one.
pub(crate) fn copied_type<'c>(ty: Type<'c>) -> Option<Type<'c>> {
    let memref = ty.as_memref()?;
    let fresh = Type::memref(&memref.shape, memref.element, memref.memory_space);
    let made = fresh.as_memref()?;
    let fits = |from: i64, to: i64| from == to || to == DYNAMIC;
    let fit = made.strides.iter().zip(&memref.strides).all(|(from, to)| fits(*from, *to));
    (fit && fits(made.offset, memref.offset)).then_some(fresh)
}

/// A copy of the buffer, at the insertion point.
///
/// # Errors
/// D0105 for a layout that a copy does not have; MLIR's diagnostics for the new ops.
pub(crate) fn copy_of<'c>(rw: &mut Rewriter<'c>, at: Op<'c>, value: Value<'c>) -> Result<Value<'c>, Diagnostics> {
    let cx = rw.context();
    let ty = value.ty();
    let Some(fresh) = copied_type(ty) else {
        if let Some(memref) = ty.as_memref().filter(|m| m.strides.iter().all(|s| *s >= 0 || *s == DYNAMIC)) {
            return copy_in_layout(rw, at, value, &memref);
        }
        let message = format!("{} needs a copy of a {ty}, and a copy cannot be made to have that type", at.name());
        let help = "cast it to a memref with a rank and strides, or copy it before";
        return Err(Diagnostic::error("D0105", at.location(), message).with_help(help).into());
    };
    let shape = ty.shape().unwrap_or_default();
    let mut sizes = Vec::new();
    for (dim, _) in shape.iter().enumerate().filter(|(_, size)| **size == DYNAMIC) {
        let number = rw.const_index(i64::try_from(dim).unwrap_or(i64::MAX), at.location());
        let spec = OpSpec::new(ops::memref::DIM, at.location()).operands(&[value, number]).results(&[Type::index(cx)]);
        sizes.push(rw.create(spec)?.result(0));
    }
    let alloc = memref::alloc(at.location(), &sizes, fresh).attr("alignment", Attr::i64(cx, 64));
    let buffer = rw.create(alloc)?.result(0);
    rw.create(OpSpec::new(ops::memref::COPY, at.location()).operands(&[value, buffer]))?;
    if fresh == ty {
        return Ok(buffer);
    }
    Ok(rw.create(OpSpec::new(ops::memref::CAST, at.location()).operands(&[buffer]).results(&[ty]))?.result(0))
}
