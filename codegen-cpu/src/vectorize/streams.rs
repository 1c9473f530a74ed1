//! The form of a product of few rows and a matrix: the matrix is read once, in the order in which it lies in memory.
//!
//! ```text
//! for k ([`ROWS`] at a time):
//!   for j (W lanes at a time):
//!     for i:
//!       acc = out[i, j .. j + W]
//!       for u in 0 .. ROWS: acc = body(x[i, k + u], m[k + u, j .. j + W], acc)
//!       out[i, j .. j + W] = acc
//! ```
//!
//! Each row of the matrix is a stream that the prefetcher follows, and the result stays in the first-level cache. Reading down
//! a few columns instead takes another page per load: 4096 x 4096 took twice the time of reading it. Each element has its
//! terms in the order of the reductions, as in the form with accumulators.

use super::body::{self, Place, Values};
use super::choose::{Choice, Declined, choose};
use super::emit::{Emit, Position, WIDE_ELEMENT_BYTES, Width, element_bytes};
use super::form::Form;
use super::nest::{Access, Nest, Operand, Range};
use monopour_ir::{LinearForm, ops};
use monopour_program::CpuTarget;

/// Rows of the matrix read side by side: few enough for the prefetcher, and enough that the result's traffic does not count.
const ROWS: i64 = 8;
/// The same of a single row of the product times elements of fewer bytes than [`WIDE_ELEMENT_BYTES`]: lines are fetched so many
/// rows ahead, too (768 x 3072 of f16: 20 GB/s, 30 with both; 27 with [`ROWS`]).
const NARROW_ROWS: i64 = 4;
/// Registers of a vector.
const REGISTERS: i64 = 2;

/// The form.
pub(super) struct Streams;

impl Form for Streams {
    fn plan(&self, nest: &Nest, cpu: &CpuTarget) -> Result<Choice, Declined> {
        let choice = choose(nest, cpu)?;
        let contiguous = |access: Access| matches!(access, Access::Invariant | Access::Contiguous);
        let plain = nest.outputs.len() == 1 && nest.inputs.iter().all(|o| contiguous(o.access(choice.dim)));
        let shape = Shape::of(nest, &choice).filter(|_| plain && !nest.loops[choice.dim].reduction);
        let few = |shape: &Shape| shape.row.is_none_or(|row| nest.loops[row].range == Range::Few);
        shape.filter(few).map(|_| choice).ok_or(Declined::NotAsked)
    }

    fn updates_in_blocks(&self, _: &Choice) -> bool {
        true
    }

    fn write<'c>(&self, e: &mut Emit<'c>, nest: &Nest<'c>, choice: &Choice) {
        let shape = Shape::of(nest, choice).expect("invariant: the plan asked for it");
        let streamed =
            Choice { registers: choice.registers.min(REGISTERS), rows: None, pack: None, dots: None, ..*choice };
        let mut at = vec![Position::at(0); nest.loops.len()];
        Stream { nest, choice: &streamed, shape: &shape }.outer(e, &shape.reductions, &mut at);
    }
}

/// The loops of more than one iteration besides the vector loop.
struct Shape {
    /// The loop over the rows of the product, if there is one.
    row: Option<usize>,
    /// Parallel loops over columns of the matrix.
    columns: Vec<usize>,
    /// At least one.
    reductions: Vec<usize>,
}

impl Shape {
    /// `None` if no matrix has rows that are longer than a vector, there are several loops over rows, or windows slide over what is read.
    fn of(nest: &Nest, choice: &Choice) -> Option<Self> {
        let long = |d: &usize| *d != choice.dim && nest.loops[*d].extent != Some(1);
        // What windows read again stays in the first-level cache, and their sums in registers.
        let slides = |s: &LinearForm| (0..nest.loops.len()).filter(|d| s.factors[*d] != 0 && long(d)).count() > 1;
        if nest.inputs.iter().any(|o| o.subscripts.iter().any(slides)) {
            return None;
        }
        let (reductions, parallel): (Vec<usize>, Vec<usize>) =
            (0..nest.loops.len()).filter(long).partition(|d| nest.loops[*d].reduction);
        let depth = *reductions.last()?;
        let matrix = nest.inputs.iter().find(|o| {
            let size = element_bytes(o);
            let vector = choice.registers * choice.lanes * size;
            let strided = o.stride_bytes(depth).is_none_or(|bytes| bytes > vector);
            o.access(choice.dim) == Access::Contiguous && o.uses(depth) && strided
        })?;
        let (columns, rows): (Vec<usize>, Vec<usize>) = parallel.into_iter().partition(|d| matrix.uses(*d));
        (rows.len() < 2).then(|| Self { row: rows.first().copied(), columns, reductions })
    }
}

/// Points of the iteration space, per iteration of the reduction.
type Places<'c> = Vec<Vec<Position<'c>>>;

struct Stream<'c, 'a> {
    nest: &'a Nest<'c>,
    choice: &'a Choice,
    shape: &'a Shape,
}

impl<'c> Stream<'c, '_> {
    /// The reductions; the last one several iterations at a time.
    fn outer(&self, e: &mut Emit<'c>, loops: &[usize], at: &mut [Position<'c>]) {
        let Some((dim, inner)) = loops.split_first() else { return };
        let most = if self.is_narrow() { NARROW_ROWS } else { ROWS };
        let sizes: &[i64] = if inner.is_empty() { &[most, 1] } else { &[1] };
        for segment in e.segments(&self.nest.loops[*dim], sizes) {
            e.for_each(segment, &[], &mut |e, here, _| {
                at[*dim] = here;
                if inner.is_empty() {
                    self.columns(e, &self.shape.columns, (*dim, segment.step), at);
                } else {
                    self.outer(e, inner, at);
                }
                vec![]
            });
        }
    }

    /// Loops over columns outside the vector loop.
    fn columns(&self, e: &mut Emit<'c>, loops: &[usize], depth: (usize, i64), at: &mut [Position<'c>]) {
        let Some((dim, inner)) = loops.split_first() else { return self.block(e, depth, at) };
        let segment = e.whole(&self.nest.loops[*dim]);
        e.for_each(segment, &[], &mut |e, here, _| {
            at[*dim] = here;
            self.columns(e, inner, depth, at);
            vec![]
        });
    }

    /// Some iterations of the reduction `depth`, added to the result.
    fn block(&self, e: &mut Emit<'c>, (depth, count): (usize, i64), at: &[Position<'c>]) {
        let place = |n: i64| {
            let mut at = at.to_vec();
            at[depth] = at[depth].plus(n);
            at
        };
        let places: Places = (0..count).map(place).collect();
        let dim = self.choice.dim;
        let by_row = |i: usize| self.shape.row.is_some_and(|row| self.nest.inputs[i].uses(row));
        let by_lane = |i: usize| self.nest.inputs[i].uses(dim);
        let mut shared = vec![Values::new(); places.len()];
        self.load(e, &places, 1, &mut shared, &|i| !by_row(i) && !by_lane(i));
        for segment in e.segments(&self.nest.loops[dim], &self.choice.widths(self.nest)) {
            e.for_each(segment, &[], &mut |e, here, _| {
                let (mut places, mut shared) = (places.clone(), shared.clone());
                places.iter_mut().for_each(|at| at[dim] = here);
                self.load(e, &places, segment.step, &mut shared, &|i| !by_row(i) && by_lane(i));
                self.fetch_ahead(e, &places, depth, segment.step);
                self.each_row(e, places, &mut |e, places| {
                    let mut values = shared.clone();
                    self.load(e, &places, segment.step, &mut values, &by_row);
                    self.add(e, &places, values, segment.step);
                });
                vec![]
            });
        }
    }

    /// Whether a single row is multiplied, by elements of few bytes.
    fn is_narrow(&self) -> bool {
        let narrow = |o: &Operand| o.uses(self.choice.dim) && element_bytes(o) < WIDE_ELEMENT_BYTES;
        self.shape.row.is_none() && self.nest.inputs.iter().any(narrow)
    }

    /// Fetches the same columns of the next rows of the matrix, where there may be several rows of the product: the additions
    /// hide how long that takes. A single row waits for memory alone, and does better with the prefetcher, which elements of
    /// few bytes are too many loads for.
    fn fetch_ahead(&self, e: &mut Emit<'c>, places: &[Vec<Position<'c>>], depth: usize, width: Width) {
        let (dim, l) = (self.choice.dim, &self.nest.loops[depth]);
        let Some(extent) = l.extent.filter(|_| self.shape.row.is_some() || self.is_narrow()) else { return };
        let last = e.index(extent - 1);
        let steps = [0, places.len() as i64].map(|step| e.index(step));
        let step = match self.shape.row {
            Some(row) => {
                let single = e.is_at_most(&self.nest.loops[row], 1);
                e.op(ops::arith::SELECT, &[single, steps[0], steps[1]], last.ty())
            }
            None => steps[1],
        };
        for at in places {
            let here = e.position(at[depth]);
            let next = e.op(ops::arith::ADDI, &[here, step], last.ty());
            let next = e.op(ops::arith::MINUI, &[next, last], last.ty());
            let mut at = at.clone();
            at[depth] = Position { base: Some(next), offset: 0 };
            let by_row = |o: &&Operand| self.shape.row.is_some_and(|row| o.uses(row));
            for input in self.nest.inputs.iter().filter(|o| o.uses(dim) && o.uses(depth) && !by_row(o)) {
                match self.shape.row {
                    Some(_) => e.prefetch(input, &at, dim, width),
                    None => e.prefetch_soon(input, &at, dim, width),
                }
            }
        }
    }

    fn each_row(&self, e: &mut Emit<'c>, places: Places<'c>, body: &mut dyn FnMut(&mut Emit<'c>, Places<'c>)) {
        let Some(row) = self.shape.row else { return body(e, places) };
        let segment = e.whole(&self.nest.loops[row]);
        e.for_each(segment, &[], &mut |e, here, _| {
            let mut places = places.clone();
            places.iter_mut().for_each(|at| at[row] = here);
            body(e, places);
            vec![]
        });
    }

    /// Loads the inputs that `wanted` names, at each place.
    fn load(
        &self,
        e: &mut Emit<'c>,
        places: &[Vec<Position<'c>>],
        width: Width,
        values: &mut [Values<'c>],
        wanted: &dyn Fn(usize) -> bool,
    ) {
        for (at, values) in places.iter().zip(values) {
            for (i, input) in self.nest.inputs.iter().enumerate().filter(|(i, _)| wanted(*i)) {
                values.insert(self.nest.body.arg(i), e.load(input, at, self.choice.dim, width));
            }
        }
    }

    /// One copy of the body per place, on one vector of the result.
    fn add(&self, e: &mut Emit<'c>, places: &[Vec<Position<'c>>], values: Vec<Values<'c>>, width: Width) {
        let (dim, out) = (self.choice.dim, &self.nest.outputs[0]);
        let start = e.load(out, &places[0], dim, width);
        let sum = places.iter().zip(values).fold(start, |sum, (at, mut values)| {
            values.insert(self.nest.output_arg(0), sum);
            let yielded = body::emit(e, self.nest, Place { at, dim, width }, &mut values, &self.nest.yielded());
            e.splat(yielded[0], width)
        });
        e.store(sum, out, &places[0]);
    }
}
