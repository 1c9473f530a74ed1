//! The form of pointwise ops of which one input lies across the others: its squares are transposed in registers.
//!
//! ```text
//! for j, i (L lanes at a time):
//!   columns = transpose(in[j + v, i .. i + L] for v in 0 .. L)
//!   for u in 0 .. L: out[i + u, j .. j + L] = body(columns[u], ..)
//! ```
//!
//! What is left of either loop is a square that begins in the one before it, or else is loaded element by element.

use super::body::{self, Place, Values};
use super::choose::{Choice, Declined, widest_bits};
use super::emit::{Emit, Position, Width};
use super::form::Form;
use super::merge;
use super::nest::{Access, Nest, Operand};
use super::pack;
use super::segments::Segment;
use monopour_ir::Value;
use monopour_program::CpuTarget;

/// Most rows of a square: as many vectors are alive at once.
const MAX_LANES: i64 = 16;

/// The form.
pub(super) struct Transposes;

impl Form for Transposes {
    fn plan(&self, nest: &Nest, cpu: &CpuTarget) -> Result<Choice, Declined> {
        let lanes = (i64::from(cpu.vector_bits) / widest_bits(nest)).clamp(1, MAX_LANES);
        if lanes < 2 || !nest.reductions().is_empty() {
            return Err(Declined::NotAsked);
        }
        let long = |d: usize| nest.loops[d].extent.is_none_or(|extent| extent >= lanes);
        let lines = |d: &usize| long(*d) && nest.outputs.iter().all(|o| o.access(*d) == Access::Contiguous);
        let dim = (0..nest.loops.len()).find(lines).ok_or(Declined::NotAsked)?;
        let input = crossing(nest, dim).ok_or(Declined::NotAsked)?;
        let along = |d: &usize| *d != dim && long(*d) && nest.inputs[input].access(*d) == Access::Contiguous;
        let rows = (0..nest.loops.len()).find(along).ok_or(Declined::NotAsked)?;
        Ok(Choice { least: lanes, rows: Some((rows, lanes)), ..Choice::vectors(dim, lanes, 1, cpu) })
    }

    fn updates_in_blocks(&self, _: &Choice) -> bool {
        false
    }

    fn write<'c>(&self, e: &mut Emit<'c>, nest: &Nest<'c>, choice: &Choice) {
        let (rows, _) = choice.rows.expect("invariant: the plan has rows");
        let input = crossing(nest, choice.dim).expect("invariant: the plan found it");
        let order = (0..nest.loops.len()).rev().filter(|d| *d != choice.dim && *d != rows).collect();
        let mut at = vec![Position::at(0); nest.loops.len()];
        let is_move = is_move(nest);
        Squares { nest, dim: choice.dim, lanes: choice.lanes, rows, input, is_move }.outer(e, order, &mut at);
    }
}

/// The only input that is strided along `dim`.
fn crossing(nest: &Nest, dim: usize) -> Option<usize> {
    let mut strided = (0..nest.inputs.len()).filter(|i| nest.inputs[*i].access(dim) == Access::Strided);
    strided.next().filter(|_| strided.next().is_none())
}

/// Whether the outputs do not depend on what is in them: each input lies in another buffer.
fn is_move(nest: &Nest) -> bool {
    let apart = |o: &Operand| {
        !o.is_memory() || nest.outputs.iter().all(|output| merge::in_other_buffers(o.value, output.value))
    };
    (0..nest.outputs.len()).all(|output| nest.output_arg(output).is_unused()) && nest.inputs.iter().all(apart)
}

struct Squares<'c, 'a> {
    nest: &'a Nest<'c>,
    dim: usize,
    lanes: i64,
    /// The loop along which the input is contiguous.
    rows: usize,
    input: usize,
    /// Whether no output is read, nor memory that one may lie in.
    is_move: bool,
}

impl<'c> Squares<'c, '_> {
    /// The loops in `order`, the last first, then the squares.
    fn outer(&self, e: &mut Emit<'c>, mut order: Vec<usize>, at: &mut [Position<'c>]) {
        let next = order.pop();
        let dim = next.unwrap_or(self.dim);
        let segments = match next {
            Some(_) => vec![e.whole(&self.nest.loops[dim])],
            None => self.segments(e, dim),
        };
        for segment in segments {
            e.for_each(segment, &[], &mut |e, here, _| {
                at[dim] = here;
                match next {
                    Some(_) => self.outer(e, order.clone(), at),
                    None => self.lines(e, at, segment.step),
                }
                vec![]
            });
        }
    }

    /// Squares, and what is left of a loop: one that begins in the square before it, where elements may be written twice.
    fn segments(&self, e: &mut Emit<'c>, dim: usize) -> Vec<Segment<'c>> {
        let sizes = [self.lanes, 1];
        match self.is_move {
            true => e.segments_twice(&self.nest.loops[dim], &sizes, self.lanes),
            false => e.segments(&self.nest.loops[dim], &sizes),
        }
    }

    /// The rows of `width` elements.
    fn lines(&self, e: &mut Emit<'c>, at: &mut [Position<'c>], width: Width) {
        let segments = match width == self.lanes {
            true => self.segments(e, self.rows),
            false => vec![e.whole(&self.nest.loops[self.rows])],
        };
        for segment in segments {
            e.for_each(segment, &[], &mut |e, here, _| {
                at[self.rows] = here;
                let columns = if segment.step > 1 { self.square(e, at) } else { vec![] };
                for row in 0..segment.step {
                    at[self.rows] = here.plus(row);
                    self.row(e, at, width, columns.get(row as usize).copied());
                }
                vec![]
            });
        }
    }

    /// The input's values for as many rows as lanes.
    fn square(&self, e: &mut Emit<'c>, at: &[Position<'c>]) -> Vec<Value<'c>> {
        let across = (0..self.lanes).map(|lane| {
            let mut at = at.to_vec();
            at[self.dim] = at[self.dim].plus(lane);
            e.load(&self.nest.inputs[self.input], &at, self.rows, self.lanes)
        });
        let across = across.collect();
        pack::transpose(e, across)
    }

    /// One copy of the body.
    fn row(&self, e: &mut Emit<'c>, at: &[Position<'c>], width: Width, column: Option<Value<'c>>) {
        let mut values = Values::new();
        let operands = self.nest.inputs.iter().chain(&self.nest.outputs).enumerate();
        for (i, operand) in operands.filter(|(i, _)| !self.nest.body.arg(*i).is_unused()) {
            let value = match column.filter(|_| i == self.input) {
                Some(column) => column,
                None => e.load(operand, at, self.dim, width),
            };
            values.insert(self.nest.body.arg(i), value);
        }
        let place = Place { at, dim: self.dim, width };
        let yielded = body::emit(e, self.nest, place, &mut values, &self.nest.yielded());
        for (output, value) in self.nest.outputs.iter().zip(yielded) {
            let value = e.splat(value, width);
            e.store(value, output, at);
        }
    }
}
