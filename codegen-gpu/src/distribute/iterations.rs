//! Unrolls loops for software adapters, which silently leave every loop once an invocation has taken 65,535 iterations in
//! total.
//!
//! Before: `scf.for` nests of 300 by 300 iterations in one invocation.
//! After: the inner loop has `monopour.unroll = 2 : i64`: `emit` writes its body twice per iteration.
//! Ensures: loops of static lengths stay below the limit; those of dynamic length are unrolled to reach far beyond it.
//! Limits: more iterations than unrolling can remove (G0008).

use crate::error;
use monopour_contract::attributes;
use monopour_ir::ops;
use monopour_ir::{Attr, Block, Diagnostics, Op, Rewriter, Value};
use monopour_program::GpuDescription;

/// Most iterations of all loops of an invocation. Software adapters leave the loops, silently, after 65,535: conditions and
/// rounding cost some.
pub(super) const MOST: i64 = 60_000;
/// Assumed extent of a loop of dynamic length.
const USUAL: f64 = 400_000.0;
/// Most copies of a body by a loop and those around it, with all lengths static, and with a dynamic one.
const COPIES: [u32; 2] = [64, 8];
/// Most copies of an innermost body in a nest, so that code does not grow with the number of loops.
const NEST_COPIES: [u32; 2] = [512, 8];

struct Loop<'c> {
    op: Op<'c>,
    parent: Option<usize>,
    /// Trip count, if static.
    length: Option<f64>,
    /// Trip count, assumed where it is not static.
    usual: f64,
    copies: u32,
}

/// Marks the loops of a distributed kernel that must be unrolled on `device`.
pub(super) fn limit<'c>(rw: &mut Rewriter<'c>, func: Op<'c>, device: &GpuDescription) -> Result<(), Diagnostics> {
    let Some(body) = func.body().filter(|_| device.is_cpu_adapter()) else { return Ok(()) };
    let mut loops = Vec::new();
    collect(body, None, &mut loops);
    let known = loops.iter().all(|l| l.length.is_some());
    let (most_copies, most_in_nest) = (COPIES[usize::from(!known)], NEST_COPIES[usize::from(!known)]);
    loop {
        let counts: Vec<f64> = (0..loops.len()).map(|l| count(&loops, l)).collect();
        let total: f64 = counts.iter().sum();
        if total <= MOST as f64 {
            break;
        }
        let can_grow = |l: &usize| {
            let longer = loops[*l].usual > f64::from(loops[*l].copies);
            let fits = copies(&loops, *l) * 2 <= most_copies && nest_copies(&loops, *l) * 2 <= most_in_nest;
            longer && loops[*l].op.is(ops::scf::FOR) && fits
        };
        let candidates = (0..loops.len()).filter(can_grow);
        match candidates.max_by(|a, b| counts[*a].total_cmp(&counts[*b])) {
            Some(l) => loops[l].copies *= 2,
            None if known => {
                return Err(error::over_limit(func, "loop iterations in one invocation", total as u64, MOST as u64));
            }
            None => break,
        }
    }
    for l in loops.iter().filter(|l| l.copies > 1) {
        rw.set_attr(l.op, attributes::UNROLL, Attr::i64(func.context(), l.copies.into()));
    }
    Ok(())
}

fn collect<'c>(block: Block<'c>, parent: Option<usize>, out: &mut Vec<Loop<'c>>) {
    for op in block.ops() {
        let mut inside = parent;
        if matches!(op.name(), ops::scf::FOR | ops::scf::WHILE) {
            inside = Some(out.len());
            let length = length(op);
            out.push(Loop { op, parent, length, usual: length.unwrap_or_else(|| usual(op)), copies: 1 });
        }
        for nested in op.regions().into_iter().flat_map(|r| r.blocks()) {
            collect(nested, inside, out);
        }
    }
}

fn length(op: Op) -> Option<f64> {
    if !op.is(ops::scf::FOR) {
        return None;
    }
    let facts = super::code::facts(op.operand(1)).bound?;
    let step = op.operand(2).constant_int().unwrap_or(1).max(1);
    let extent = facts - op.operand(0).constant_int().unwrap_or(0);
    Some(((extent + step - 1) / step).max(0) as f64)
}

/// Assumed trip count of a loop of dynamic length: of its usual extent, or of the rest behind a loop of whole steps.
fn usual(op: Op) -> f64 {
    if !op.is(ops::scf::FOR) {
        return USUAL;
    }
    let rest = defined(op.operand(0), ops::arith::MULI).and_then(|whole| {
        let quotient = defined(whole.operand(0), ops::arith::DIVUI).filter(|q| q.operand(0) == op.operand(1))?;
        let steps = [quotient.operand(1), whole.operand(1)].map(|by| by.constant_int());
        steps[0].filter(|by| steps[1] == Some(*by))
    });
    match (rest, op.operand(2).constant_int().filter(|step| *step > 0)) {
        (Some(rest), _) => rest as f64,
        (None, Some(step)) => USUAL / step as f64,
        (None, None) => USUAL,
    }
}

/// The op that defines a value, if it has this name.
fn defined<'c>(value: Value<'c>, name: &str) -> Option<Op<'c>> {
    value.defining_op().filter(|op| op.is(name))
}

/// Total iterations of loop `l` in an invocation.
fn count(loops: &[Loop], l: usize) -> f64 {
    let own = (loops[l].usual / f64::from(loops[l].copies)).ceil();
    own * loops[l].parent.map_or(1.0, |p| count_entries(loops, p))
}

/// Total runs of the body of loop `l`.
fn count_entries(loops: &[Loop], l: usize) -> f64 {
    let own = loops[l].usual;
    own * loops[l].parent.map_or(1.0, |p| count_entries(loops, p))
}

/// The most copies of a body inside of loop `l`, or of its own.
fn nest_copies(loops: &[Loop], l: usize) -> u32 {
    let is_inside = |inner: &usize| std::iter::successors(Some(*inner), |i| loops[*i].parent).any(|i| i == l);
    (l..loops.len()).filter(is_inside).map(|inner| copies(loops, inner)).max().unwrap_or(1)
}

/// Copies of the body of loop `l` in the code.
fn copies(loops: &[Loop], l: usize) -> u32 {
    loops[l].copies * loops[l].parent.map_or(1, |p| copies(loops, p))
}
