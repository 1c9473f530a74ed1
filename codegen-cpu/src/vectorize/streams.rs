//! The form of a product of a vector and a matrix: the matrix is read once, in the order in which it lies in memory.
//!
//! ```text
//! for k ([`ROWS`] at a time):
//!   for j (W lanes at a time):
//!     acc = out[j .. j + W]
//!     for u in 0 .. ROWS: acc = body(x[k + u], m[k + u, j .. j + W], acc)
//!     out[j .. j + W] = acc
//! ```
//!
//! Each row is a stream that the prefetcher follows, and the result stays in the first-level cache. Reading down a few
//! columns instead takes another page per load: 4096 x 4096 took twice the time of reading it. Each element has its terms in
//! the order of the reduction, as in the form with accumulators.

use super::body::{self, Place, Values};
use super::choose::{Choice, Declined, choose};
use super::emit::{Emit, Position, Width};
use super::form::Form;
use super::nest::{Access, Nest};
use monopour_ir::Value;
use monopour_program::CpuTarget;

/// Rows read side by side: few enough for the prefetcher, and enough that the result's traffic does not count.
const ROWS: i64 = 8;
/// Registers of a vector.
const REGISTERS: i64 = 2;

/// The form.
pub(super) struct Streams;

impl Form for Streams {
    fn plan(&self, nest: &Nest, cpu: &CpuTarget) -> Result<Choice, Declined> {
        let choice = choose(nest, cpu)?;
        let rows = reduction(nest).filter(|_| !nest.loops[choice.dim].reduction && choice.pack.is_none());
        let is_vector = |d: usize| d == choice.dim || nest.loops[d].reduction || nest.loops[d].extent == Some(1);
        let contiguous = |access: Access| matches!(access, Access::Invariant | Access::Contiguous);
        let plain = nest.outputs.len() == 1 && nest.inputs.iter().all(|o| contiguous(o.access(choice.dim)));
        let asked = rows.filter(|_| plain && (0..nest.loops.len()).all(is_vector));
        let choice = Choice { registers: choice.registers.min(REGISTERS), rows: None, ..choice };
        asked.filter(|rows| is_strided(nest, *rows, &choice)).map(|_| choice).ok_or(Declined::NotAsked)
    }

    fn updates_in_blocks(&self, _: &Choice) -> bool {
        true
    }

    fn write<'c>(&self, e: &mut Emit<'c>, nest: &Nest<'c>, choice: &Choice) {
        let rows = reduction(nest).expect("invariant: the plan asked for it");
        let mut at = vec![Position::at(0); nest.loops.len()];
        for segment in e.segments(&nest.loops[rows], &[ROWS, 1]) {
            e.for_each(segment, &[], &mut |e, here, _| {
                at[rows] = here;
                Block { nest, choice, rows, count: segment.step }.write(e, &mut at);
                vec![]
            });
        }
    }
}

/// The one reduction of more than one iteration.
fn reduction(nest: &Nest) -> Option<usize> {
    let mut long = nest.reductions().into_iter().filter(|d| nest.loops[*d].extent != Some(1));
    long.next().filter(|_| long.next().is_none())
}

/// Whether a row of some input is longer than a vector.
fn is_strided(nest: &Nest, rows: usize, choice: &Choice) -> bool {
    nest.inputs.iter().filter(|o| o.access(choice.dim) == Access::Contiguous && o.uses(rows)).any(|o| {
        let size = o.element().element_size_bytes().map_or(8, |bytes| bytes as i64);
        o.stride_bytes(rows).is_none_or(|bytes| bytes > choice.registers * choice.lanes * size)
    })
}

/// Some rows of the reduction, added to the whole result.
struct Block<'c, 'a> {
    nest: &'a Nest<'c>,
    choice: &'a Choice,
    rows: usize,
    count: i64,
}

impl<'c> Block<'c, '_> {
    fn write(&self, e: &mut Emit<'c>, at: &mut [Position<'c>]) {
        let first = at[self.rows];
        let places: Vec<Vec<Position>> = (0..self.count)
            .map(|row| {
                at[self.rows] = first.plus(row);
                at.to_vec()
            })
            .collect();
        let shared: Vec<Values> = places.iter().map(|at| self.shared(e, at)).collect();
        let dim = self.choice.dim;
        for segment in e.segments(&self.nest.loops[dim], &self.choice.widths(self.nest)) {
            e.for_each(segment, &[], &mut |e, here, _| {
                let mut places = places.clone();
                places.iter_mut().for_each(|at| at[dim] = here);
                let out = &self.nest.outputs[0];
                let start = e.load(out, &places[0], dim, segment.step);
                let rows = places.iter().zip(&shared);
                let sum = rows.fold(start, |sum, (at, shared)| self.row(e, at, shared.clone(), sum, segment.step));
                e.store(sum, out, &places[0]);
                vec![]
            });
        }
    }

    /// The inputs of a row that are one element.
    fn shared(&self, e: &mut Emit<'c>, at: &[Position<'c>]) -> Values<'c> {
        let mut values = Values::new();
        for (i, input) in self.nest.inputs.iter().enumerate() {
            if !input.uses(self.choice.dim) {
                values.insert(self.nest.body.arg(i), e.load(input, at, self.choice.dim, 1));
            }
        }
        values
    }

    /// One copy of the body.
    fn row(
        &self,
        e: &mut Emit<'c>,
        at: &[Position<'c>],
        mut values: Values<'c>,
        sum: Value<'c>,
        width: Width,
    ) -> Value<'c> {
        let dim = self.choice.dim;
        for (i, input) in self.nest.inputs.iter().enumerate() {
            if input.uses(dim) {
                values.insert(self.nest.body.arg(i), e.load(input, at, dim, width));
            }
        }
        values.insert(self.nest.output_arg(0), sum);
        let yielded = body::emit(e, self.nest, Place { at, dim, width }, &mut values, &self.nest.yielded());
        e.splat(yielded[0], width)
    }
}
