//! The steps of a small window, written out, such that rows of a register tile whose windows overlap share their vectors.
//!
//! ```text
//! for i, j:                                            for the lines y + r of all rows, for j:
//!   acc[row] += in[y + row + i, x + j ..] * w[i, j]      v = in[y + r, x + j ..]
//!                                                        acc[row] += v * w[r - row, j]    // each row whose window has it
//! ```
//!
//! A vector within a line begins anywhere in a line of the cache, and most take two: loads are what a depthwise convolution and
//! a pool wait for. Each accumulator has its terms in the order of the loops.
//!
//! The maximum that passes NaNs on is four instructions, one after the other. Here it is one that drops them, and a mask of the
//! lanes that met one, two terms at a time, beside it.

use super::combine::{self, Combiner};
use super::emit::{Emit, Position};
use super::nest::{Nest, Operand, Panel};
use monopour_ir::typed::arith::CmpFPredicate;
use monopour_ir::{Attr, LinearForm, Value, ops};

/// Most steps of a window, and most copies of the body in a tile.
const MOST_STEPS: i64 = 25;
const MOST_COPIES: usize = 256;

/// A copy of the body: which row, and where.
pub(super) struct Step<'c> {
    pub(super) row: usize,
    pub(super) at: Vec<Position<'c>>,
}

/// The input whose windows overlap between iterations of a loop.
pub(super) fn overlapping(nest: &Nest, row: usize) -> Option<usize> {
    let window = |factors: &[i64]| {
        let reductions = || nest.reductions().into_iter().filter(|d| factors[*d] != 0);
        factors[row] != 0
            && reductions().any(|d| nest.loops[d].extent.is_some_and(|extent| extent > factors[row].abs()))
    };
    let overlaps = |o: &Operand| o.subscripts.iter().any(|s| window(&s.factors));
    (0..nest.inputs.len()).find(|i| !nest.body.arg(*i).is_unused() && overlaps(&nest.inputs[*i]))
}

/// The constant parts of an operand's subscripts at a position: what tells apart elements at positions of the same values.
pub(super) fn offsets(operand: &Operand, at: &[Position]) -> Vec<i64> {
    let place = |dim: usize| match operand.panel {
        Some(Panel::Vector(vector)) if vector == dim => at[at.len() - 1].offset,
        _ => at[dim].offset,
    };
    let of =
        |s: &LinearForm| s.constant + s.factors.iter().enumerate().map(|(d, factor)| factor * place(d)).sum::<i64>();
    operand.subscripts.iter().map(of).collect()
}

/// Iterations of the loops of a window, if these are few and sums need no other loop.
fn iterations(nest: &Nest) -> Option<Vec<Vec<(usize, i64)>>> {
    let mut all = vec![vec![]];
    let mut count = 1;
    for dim in nest.reductions() {
        let extent = nest.loops[dim].extent?;
        count = extent.checked_mul(count).filter(|count| *count <= MOST_STEPS)?;
        all = all
            .into_iter()
            .flat_map(|before: Vec<(usize, i64)>| (0..extent).map(move |i| [&before[..], &[(dim, i)]].concat()))
            .collect();
    }
    Some(all)
}

/// The steps of a window, if these are few.
pub(super) fn steps_of(nest: &Nest) -> Option<i64> {
    iterations(nest).filter(|all| all.len() > 1).map(|all| all.len() as i64)
}

/// Whether the steps of a window are few.
pub(super) fn is_small(nest: &Nest) -> bool {
    !nest.reductions().is_empty() && iterations(nest).is_some()
}

/// The copies of the body for all rows, in the order of what they read; `None` where loops are better.
pub(super) fn steps<'c>(nest: &Nest<'c>, row: usize, rows: &[Vec<Position<'c>>]) -> Option<Vec<Step<'c>>> {
    let input = overlapping(nest, row)?;
    let all = iterations(nest).filter(|all| all.len() > 1 && all.len() * rows.len() <= MOST_COPIES)?;
    let copy = |row: usize, step: &Vec<(usize, i64)>| {
        let mut at = rows[row].clone();
        step.iter().for_each(|(dim, i)| at[*dim] = Position::at(*i));
        at
    };
    let mut copies: Vec<(Vec<i64>, usize, usize)> = vec![];
    for (number, step) in all.iter().enumerate() {
        copies.extend((0..rows.len()).map(|row| (offsets(&nest.inputs[input], &copy(row, step)), number, row)));
    }
    copies.sort();
    let mut next = vec![0; rows.len()];
    let in_order = copies.iter().all(|(_, number, row)| {
        next[*row] += 1;
        next[*row] == number + 1
    });
    in_order.then(|| copies.into_iter().map(|(_, number, row)| Step { row, at: copy(row, &all[number]) }).collect())
}

/// Rows of a tile of which each has a vector, where the window's filter is in registers besides.
pub(super) fn most_rows(room: i64) -> i64 {
    (room / 3).max(1)
}

/// Maxima or minima of windows, which pass NaNs on.
pub(super) struct Extremes<'c> {
    combiner: Combiner<'c>,
    stays: CmpFPredicate,
    /// Per row, the term whose test waits for another one, and the lanes that met a NaN.
    waiting: Vec<Option<Value<'c>>>,
    met: Vec<Option<Value<'c>>>,
}

impl<'c> Extremes<'c> {
    /// Those of a nest with one output that begins with a number.
    pub(super) fn of(nest: &Nest<'c>, rows: usize) -> Option<Self> {
        let [combiner] = combine::of(nest)?[..] else { return None };
        let stays = combiner.outlasts().filter(|_| nest.start.is_some_and(combine::is_number))?;
        Some(Self { combiner, stays, waiting: vec![None; rows], met: vec![None; rows] })
    }

    /// The value of the body that a row's accumulator meets.
    pub(super) fn term(&self) -> Value<'c> {
        self.combiner.term
    }

    /// The accumulator of a row after a term.
    pub(super) fn add(&mut self, e: &mut Emit<'c>, row: usize, sum: Value<'c>, term: Value<'c>) -> Value<'c> {
        match self.waiting[row].take() {
            None => self.waiting[row] = Some(term),
            Some(other) => self.test(e, row, other, term),
        }
        let stays = e.compare(self.stays, sum, term);
        e.op(ops::arith::SELECT, &[stays, sum, term], sum.ty())
    }

    /// The result of a row.
    pub(super) fn finish(&mut self, e: &mut Emit<'c>, row: usize, sum: Value<'c>) -> Value<'c> {
        if let Some(term) = self.waiting[row].take() {
            self.test(e, row, term, term);
        }
        let Some(met) = self.met[row] else { return sum };
        let width = sum.ty().as_vector().map_or(1, |vector| vector.shape[0]);
        let nan = e.constant(Attr::float(self.combiner.ty(), f64::NAN), self.combiner.ty(), width);
        e.op(ops::arith::SELECT, &[met, nan, sum], sum.ty())
    }

    fn test(&mut self, e: &mut Emit<'c>, row: usize, a: Value<'c>, b: Value<'c>) {
        let met = e.compare(CmpFPredicate::Uno, a, b);
        let all = self.met[row].map(|before| e.op(ops::arith::ORI, &[before, met], met.ty()));
        self.met[row] = Some(all.unwrap_or(met));
    }
}
