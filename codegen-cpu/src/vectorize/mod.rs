//! Lowers leftover linalg ops of kernels to loops over vectors.
//!
//! Before: `linalg.generic` on memrefs, any extents, static or not.
//!
//! ```text
//! linalg.generic {(i, j) -> (i, j), (i)} ins(%x) outs(%s) { maximumf }      // reduction along j
//! ```
//!
//! After:
//!
//! ```text
//! scf.for %i {
//!   %v:4 = scf.for %j .. step 64 iter_args(4 x vector<16xf32>) { vector.load %x[%i, %j + ..]; arith.maximumf }
//!   scf.for the rest of %j; the lanes as one; memref.store %s[%i]
//! }
//! ```
//!
//! Ensures: a declined op is left as it is, for scalar loops. Outputs without a reduction along the vector loop get their
//! terms in the order of the loops; the others in an order that follows from the shape and the target alone.
//! A product whose number of rows is not known is code of its own for few rows and for many, where their plans differ.
//! Limits: subscripts that are sums of loops; bodies of `arith` and `math`, and of loads where nothing is summed; no `i1` in
//! memory; reductions along the vector loop by one associative and commutative op.
//!
//! The files: `nest` (a generic as data), `choose` (vector loop and register tile), `form` (the trait), `sums`, `streams`,
//! `transposes`, `zips` and `pointwise` (the forms), `pack` (panels), `dots` (those of narrow integers), `byte_dots` (their
//! instructions) and `tiles` (AMX), `windows` (small ones, written out), `few_bits`, `lookups` and `block_dots` (numbers of few
//! bits), `rows` (each through all ops before the next), `ahead` and `columns` (what is fetched early), `past_caches` (results too
//! large for them), `flat` (lines as one), `merge` (fills and epilogues), `segments` (parts of loops), `body`, `combine` and `emit`
//! (builders), `instructions` (exp on AVX-512, divisions), `near` (elements of a line by their places).

mod ahead;
mod block_dots;
mod body;
mod byte_dots;
mod choose;
mod columns;
mod combine;
mod dots;
mod emit;
mod few_bits;
mod flat;
mod form;
mod instructions;
mod lookups;
mod merge;
mod near;
mod nest;
mod pack;
mod past_caches;
mod pointwise;
mod rows;
mod segments;
mod streams;
mod sums;
mod tiles;
mod transposes;
mod windows;
mod zips;

use crate::abi;
use choose::{Choice, Declined};
use emit::Emit;
use form::Form;
use monopour_ir::ops;
use monopour_ir::{Diagnostics, Module, Op, Rewriter, run_passes};
use monopour_program::CpuTarget;
use nest::{FEW_ROWS, Nest, Range};
use std::collections::HashSet;

/// All forms, in order.
const FORMS: [&dyn Form; 5] =
    [&sums::Sums, &streams::Streams, &transposes::Transposes, &zips::Zips, &pointwise::Pointwise];

/// The first form that takes the op, by its number, with its choice; else the reason of the last.
fn plan(nest: &Nest, cpu: &CpuTarget) -> Result<Planned, Declined> {
    let mut declined = Declined::NotAsked;
    for (form, of) in FORMS.iter().enumerate() {
        match of.plan(nest, cpu) {
            Ok(choice) => return Ok((form, choice)),
            Err(why) => declined = why,
        }
    }
    Err(declined)
}

/// Rewrites the linalg ops of all kernels.
///
/// # Errors
/// None on verified IR.
pub(crate) fn run(module: &Module, cpu: &CpuTarget) -> Result<(), Diagnostics> {
    run_passes(module.op(), "builtin.module(func.func(linalg-generalize-named-ops),lower-affine)")?;
    let mut rewriter = Rewriter::new(module.context());
    for kernel in module.functions().into_iter().filter(|f| abi::is_kernel(*f)) {
        rows::run(kernel, cpu, &mut rewriter)?;
        // Reductions first: they are fused with the ops around them.
        let mut gone = HashSet::new();
        for sums in [true, false] {
            for op in kernel.find_all(ops::linalg::GENERIC) {
                if !gone.contains(&op) {
                    flat::run(op, &mut rewriter)?;
                    gone.extend(vectorize(op, sums, cpu, &mut rewriter));
                }
            }
        }
    }
    Ok(())
}

/// Lowers `op` if it is a reduction (or not, by `sums`) and a form takes it; returns the ops that are gone.
fn vectorize<'c>(op: Op<'c>, sums: bool, cpu: &CpuTarget, rewriter: &mut Rewriter<'c>) -> Vec<Op<'c>> {
    let Some(mut nest) = Nest::of(op).filter(|n| n.reductions().is_empty() != sums) else { return vec![] };
    let by_rows = nest.unknown_rows().and_then(|row| Some((row, ByRows::of(&nest, row, cpu)?)));
    if let Some((row, by_rows)) = by_rows {
        let merged = merge::around(&mut nest, true);
        let mut e = Emit::before(merged.last, cpu);
        let is_few = e.is_at_most(&nest.loops[row], FEW_ROWS);
        let branch = |range: Range, planned: Planned| {
            let nest = nest.with_range(row, range);
            move |e: &mut Emit<'c>| write_apart(e, &nest, &planned)
        };
        e.either(is_few, &mut branch(Range::Few, by_rows.few), &mut branch(Range::Many, by_rows.many));
        merged.ops.iter().for_each(|op| rewriter.erase(*op));
        return merged.ops;
    }
    let Ok((form, choice)) = plan(&nest, cpu) else { return vec![] };
    let (form, along) = (FORMS[form], nest.loops[choice.dim].reduction);
    let merged = if form.updates_in_blocks(&choice) { merge::none(&nest) } else { merge::around(&mut nest, !along) };
    let mut e = Emit::before(merged.last, cpu);
    form.write(&mut e, &nest, &choice);
    for op in &merged.ops {
        rewriter.erase(*op);
    }
    merged.ops
}

/// A form of [`FORMS`] with its choice.
type Planned = (usize, Choice);

/// What a product of an unknown number of rows does with few of them, and with many: each is code of its own.
struct ByRows {
    few: Planned,
    many: Planned,
}

impl ByRows {
    /// `None` where both are the same.
    fn of(nest: &Nest, row: usize, cpu: &CpuTarget) -> Option<Self> {
        let [few, many] = [Range::Few, Range::Many].map(|range| plan(&nest.with_range(row, range), cpu).ok());
        let (few, many) = (few?, many?);
        (few != many).then_some(Self { few, many })
    }
}

/// Writes a reduction with what [`merge::around`] found, as a form's loops or beside them.
fn write_apart<'c>(e: &mut Emit<'c>, nest: &Nest<'c>, (form, choice): &Planned) {
    let form = FORMS[*form];
    let fills = !form.updates_in_blocks(choice);
    let finishes = fills && !nest.loops[choice.dim].reduction;
    let mut own = nest.clone();
    if !fills {
        merge::fill(nest).into_iter().for_each(|op| e.copy(op));
        own.start = None;
    }
    if !finishes {
        own.after.clear();
    }
    form.write(e, &own, choice);
    if !finishes {
        nest.after.iter().for_each(|after| e.copy(after.op));
    }
}
