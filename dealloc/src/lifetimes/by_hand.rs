//! Decide which explicit frees of a program stay, and which the analysis replaces.
//!
//! ```text
//! %a = memref.alloc()                              %a = memref.alloc()
//! "use"(%a)                                        "use"(%a)
//! scf.if %c { memref.dealloc %a }          ==>     memref.dealloc %a
//! ```
//!
//! Near: a `memref.dealloc` or `memref.realloc` in the region that defines all memrefs that it may free. It stays; on paths
//! without it the buffer is freed after its last use.
//! Dropped: a `memref.dealloc` elsewhere, or a `bufferization.dealloc`, of memory of this function only; with it near
//! frees of the same memory. Its results become false.
//! Left: all others. The program owns all memrefs that they may free.
//! Ensures: the memory of a dropped free has a holder, so that it is freed once on each path.
//! Limits: a free of a possible argument is refused (D0102).

use monopour_ir::ops;
use std::collections::{BTreeSet, HashMap, HashSet};

use monopour_analysis::index::{Id, OpId, ValueId};
use monopour_analysis::lifetimes::{Kind, LifetimeFacts};
use monopour_ir::typed::bufferization::Dealloc;
use monopour_ir::{Diagnostic, Diagnostics, Op, WalkOrder};

use super::collect::Collected;

/// Whether an operation frees its operands.
pub(super) fn is_free(op: Op) -> bool {
    is_conditional(op) || op.is(ops::memref::DEALLOC) || op.is(ops::memref::REALLOC)
}

/// Whether the op frees by conditions and retained memrefs.
fn is_conditional(op: Op) -> bool {
    op.is(ops::bufferization::DEALLOC)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Near,
    Dropped,
    Left,
}

/// An explicit free.
struct Free<'c> {
    at: OpId,
    op: Op<'c>,
    freed: Vec<ValueId>,
    /// The memrefs that it may free.
    origins: BTreeSet<ValueId>,
    fate: Fate,
    /// Whether it could be dropped: all memrefs that it may free would be freed after the last use.
    is_ours: bool,
}

/// Decides on all frees of a function, and updates its facts. Frees of arguments are returned as D0102.
pub(super) fn settle(collected: &mut Collected) -> Diagnostics {
    let mut errors = Diagnostics::default();
    let mut frees = frees(collected);
    let arguments = foreign_arguments(collected);
    for free in frees.iter().filter(|free| !free.origins.is_disjoint(&arguments)) {
        let message = format!("{} frees an argument, which belongs to the caller", free.op.name());
        let error = Diagnostic::error("D0102", free.op.location(), message)
            .with_help("free in the caller, or give the argument the attribute monopour.donate");
        errors.0.push(error);
    }
    leave(&mut frees);
    drop_alike(&mut frees);
    for free in &frees {
        if free.fate == Fate::Dropped {
            collected.dropped.push(free.at);
            continue;
        }
        let operands: BTreeSet<ValueId> = free.op.operands().iter().filter_map(|v| collected.root(*v)).collect();
        operands.into_iter().for_each(|v| collected.facts.uses(free.at, v));
        match free.fate {
            Fate::Near => free.freed.iter().for_each(|v| collected.facts.frees(free.at, *v)),
            _ => belongs_to_program(&mut collected.facts, &free.origins),
        }
    }
    errors
}

fn belongs_to_program(facts: &mut LifetimeFacts, origins: &BTreeSet<ValueId>) {
    for value in origins {
        if facts.kind(*value) != Kind::Passed {
            facts.set_kind(*value, Kind::Foreign);
        }
    }
}

/// Arguments that the function does not own.
fn foreign_arguments(collected: &Collected) -> BTreeSet<ValueId> {
    let args = collected.blocks.first().map_or(vec![], |b| b.args());
    let roots = args.iter().filter_map(|a| collected.root(*a));
    roots.filter(|v| collected.facts.kind(*v) == Kind::Foreign).collect()
}

/// All frees, each with its fate by itself.
fn frees<'c>(collected: &Collected<'c>) -> Vec<Free<'c>> {
    let mut found = Vec::new();
    let ids = (0..collected.ops.len()).map(OpId::from_index);
    let mut ids = ids.filter(|id| is_free(collected.ops[id.index()])).peekable();
    if ids.peek().is_none() {
        return found;
    }
    let (facts, sources) = (&collected.facts, collected.facts.origins());
    for at in ids {
        let op = collected.ops[at.index()];
        let freed: Vec<ValueId> =
            op.operands().into_iter().take(freed_operands(op)).filter_map(|v| collected.root(v)).collect();
        let origins = sources.of(&freed);
        let region = facts.region_of_op(at);
        let is_near = !is_conditional(op) && origins.iter().all(|v| facts.region_of(*v) == region);
        let is_ours = !op.is(ops::memref::REALLOC)
            && origins.iter().all(|v| facts.kind(*v) != Kind::Foreign && !collected.unknown.contains(v));
        let fate = if is_near {
            Fate::Near
        } else if is_ours {
            Fate::Dropped
        } else {
            Fate::Left
        };
        found.push(Free { at, op, freed, origins, fate, is_ours });
    }
    found
}

/// The number of leading operands that are freed.
fn freed_operands(op: Op) -> usize {
    Dealloc::of(op).map_or(1, |dealloc| dealloc.memref_positions().len())
}

/// Leaves frees that may free the memory of one that is left, and a `bufferization.dealloc` whose results have other
/// users: a free that stays, or an op that is no free.
fn leave(frees: &mut [Free]) {
    let numbers: HashMap<Op, usize> = frees.iter().enumerate().map(|(number, free)| (free.op, number)).collect();
    let mut needed_by: Vec<Vec<usize>> = vec![Vec::new(); frees.len()];
    let mut work: Vec<usize> = (0..frees.len()).filter(|number| frees[*number].fate != Fate::Dropped).collect();
    for (number, free) in frees.iter().enumerate().filter(|(_, free)| free.fate == Fate::Dropped) {
        for user in free.op.results().iter().flat_map(|r| r.uses()).map(|u| u.op).collect::<HashSet<_>>() {
            match frees_behind(user, &numbers) {
                Some(inner) => inner.into_iter().for_each(|other| needed_by[other].push(number)),
                None => work.push(number),
            }
        }
    }
    let mut freeing = by_origin(frees, |free| free.fate == Fate::Dropped);
    let mut seen = vec![false; frees.len()];
    while let Some(number) = work.pop() {
        if std::mem::replace(&mut seen[number], true) {
            continue;
        }
        work.append(&mut needed_by[number]);
        if frees[number].fate != Fate::Near {
            frees[number].fate = Fate::Left;
            work.extend(frees[number].origins.iter().filter_map(|v| freeing.remove(v)).flatten());
        }
    }
}

/// The frees behind a user of a condition; `None` if it has other uses, too.
fn frees_behind(user: Op, numbers: &HashMap<Op, usize>) -> Option<Vec<usize>> {
    if let Some(number) = numbers.get(&user) {
        return Some(vec![*number]);
    }
    if !user.is(ops::scf::IF) || user.num_results() > 0 {
        return None;
    }
    let inner = user.nested(WalkOrder::Pre).into_iter().filter(|op| *op != user && !op.is(ops::scf::YIELD));
    inner.map(|op| numbers.get(&op).copied()).collect()
}

/// Drops near frees of the same memory as dropped ones, unless it may also be that of frees that are left.
fn drop_alike(frees: &mut [Free]) {
    let left: BTreeSet<ValueId> =
        frees.iter().filter(|free| free.fate == Fate::Left).flat_map(|free| free.origins.iter().copied()).collect();
    let mut freeing =
        by_origin(frees, |free| free.fate == Fate::Near && free.is_ours && free.origins.is_disjoint(&left));
    let mut work: Vec<usize> = (0..frees.len()).filter(|number| frees[*number].fate == Fate::Dropped).collect();
    while let Some(number) = work.pop() {
        let reached: Vec<usize> = frees[number].origins.iter().filter_map(|v| freeing.remove(v)).flatten().collect();
        for other in reached {
            if frees[other].fate == Fate::Near {
                frees[other].fate = Fate::Dropped;
                work.push(other);
            }
        }
    }
}

/// Numbers of some frees, by the memrefs that they may free.
fn by_origin<'c>(frees: &[Free<'c>], is_meant: impl Fn(&Free<'c>) -> bool) -> HashMap<ValueId, Vec<usize>> {
    let mut found: HashMap<ValueId, Vec<usize>> = HashMap::new();
    for (number, free) in frees.iter().enumerate().filter(|(_, free)| is_meant(free)) {
        free.origins.iter().for_each(|v| found.entry(*v).or_default().push(number));
    }
    found
}
