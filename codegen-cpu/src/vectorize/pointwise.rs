//! Ops whose vector loop is parallel: register tiles of accumulators, or no accumulator at all.
//!
//! ```text
//! for rows i (U at a time), for j (W lanes at a time):
//!   acc[u] = out[i + u, j .. j + W]
//!   for the loops that sum: acc[u] = body(in .., acc[u])
//!   out[i + u, j .. j + W] = acc[u]
//! ```

use super::body::{self, Place, Values};
use super::choose::Choice;
use super::emit::{Emit, Position, Width};
use super::nest::{Nest, Operand};
use super::pack;
use monopour_ir::Value;

/// Writes the loops.
pub(super) fn emit(e: &mut Emit, nest: &Nest, choice: &Choice) {
    let mut order: Vec<usize> = (0..nest.loops.len())
        .filter(|d| !nest.loops[*d].reduction && *d != choice.dim && choice.rows.is_none_or(|(rows, _)| rows != *d))
        .collect();
    order.reverse();
    let mut at = vec![Position::at(0); nest.loops.len()];
    let panel = pack::buffer(e, nest, choice);
    outer(e, nest, &Plan { choice, panel }, order, &mut at);
}

struct Plan<'a> {
    choice: &'a Choice,
    /// Where an input that is packed goes.
    panel: Option<Operand>,
}

/// The loops in `order`, the last first, then the tile.
fn outer(e: &mut Emit, nest: &Nest, plan: &Plan<'_>, mut order: Vec<usize>, at: &mut [Position]) {
    let Some(dim) = order.pop() else { return vectors(e, nest, plan, at) };
    let segment = e.whole(&nest.loops[dim]);
    e.for_each(segment, &[], &mut |e, here, _| {
        at[dim] = here;
        outer(e, nest, plan, order.clone(), at);
        vec![]
    });
}

/// Vectors outside, rows inside: what the rows share stays in the first-level cache.
fn vectors(e: &mut Emit, nest: &Nest, plan: &Plan<'_>, at: &mut [Position]) {
    let choice = plan.choice;
    let mut packed = nest.clone();
    if let (Some(input), Some(panel)) = (choice.pack, &plan.panel) {
        packed.inputs[input] = panel.clone();
    }
    for segment in e.segments(&nest.loops[choice.dim], &choice.widths(nest)) {
        e.for_each(segment, &[], &mut |e, here, _| {
            at[choice.dim] = here;
            if let Some(panel) = &plan.panel {
                pack::fill(e, nest, choice, panel, at, segment.step);
            }
            rows(e, &packed, choice, at, segment.step);
            vec![]
        });
    }
}

fn rows(e: &mut Emit, nest: &Nest, choice: &Choice, at: &mut [Position], width: Width) {
    let Some((dim, count)) = choice.rows else { return tile(e, nest, choice, &[at.to_vec()], width) };
    let l = &nest.loops[dim];
    let mut sizes = vec![count];
    // What is left over of a known number is one smaller tile.
    sizes.extend(l.extent.map(|extent| extent % count).filter(|rest| *rest > 1));
    sizes.push(1);
    for segment in e.segments(l, &sizes) {
        e.for_each(segment, &[], &mut |e, here, _| {
            at[dim] = here;
            let rows: Vec<Vec<Position>> = (0..segment.step)
                .map(|row| {
                    let mut at = at.to_vec();
                    at[dim] = here.plus(row);
                    at
                })
                .collect();
            tile(e, nest, choice, &rows, width);
            vec![]
        });
    }
}

/// One register tile: `rows` are the places of its rows.
fn tile(e: &mut Emit, nest: &Nest, choice: &Choice, rows: &[Vec<Position>], width: Width) {
    let reductions = nest.reductions();
    let slots: Vec<usize> = (0..nest.outputs.len())
        .filter(|output| !reductions.is_empty() || !nest.output_arg(*output).is_unused())
        .collect();
    let mut inits = vec![];
    for at in rows {
        for output in &slots {
            inits.push(match nest.start {
                Some(value) => e.splat(value, width),
                None => e.load(&nest.outputs[*output], at, choice.dim, width),
            });
        }
    }
    let tile = Tile { nest, choice, slots: &slots, width };
    let results = tile.sum(e, &reductions, rows.to_vec(), &inits);
    for (at, values) in rows.iter().zip(results.chunks(nest.outputs.len())) {
        let mut values = values.to_vec();
        for after in &nest.after {
            let slots: Vec<usize> = (0..values.len()).collect();
            values = Tile { nest: after, choice, slots: &slots, width }.row(e, at, &values, &mut vec![]);
        }
        tile.store(e, at, &values);
    }
}

struct Tile<'a> {
    nest: &'a Nest,
    choice: &'a Choice,
    /// The outputs that have an accumulator.
    slots: &'a [usize],
    width: Width,
}

impl Tile<'_> {
    /// The loops that sum, outermost first. `state` holds the accumulators of the rows, one row after the other; the results are
    /// all outputs of the rows.
    fn sum(&self, e: &mut Emit, loops: &[usize], rows: Vec<Vec<Position>>, state: &[Value]) -> Vec<Value> {
        let Some((dim, inner)) = loops.split_first() else {
            let (mut cache, n) = (vec![], self.slots.len());
            let row = |(i, at): (usize, &Vec<Position>)| self.row(e, at, &state[i * n..(i + 1) * n], &mut cache);
            return rows.iter().enumerate().flat_map(row).collect();
        };
        let segment = e.whole(&self.nest.loops[*dim]);
        e.for_each(segment, state, &mut |e, here, accumulators| {
            let mut rows = rows.clone();
            for at in &mut rows {
                at[*dim] = here;
            }
            self.sum(e, inner, rows, accumulators)
        })
    }

    /// One copy of the body. `cache` holds what other rows have loaded.
    fn row(&self, e: &mut Emit, at: &[Position], accumulators: &[Value], cache: &mut Cache) -> Vec<Value> {
        let mut values = Values::new();
        for (i, input) in self.nest.inputs.iter().enumerate() {
            let arg = self.nest.body.arg(i);
            if !arg.is_unused() {
                values.insert(arg, self.load_shared(e, i, input, at, cache));
            }
        }
        for (output, value) in self.slots.iter().zip(accumulators) {
            values.insert(self.nest.output_arg(*output), *value);
        }
        let place = Place { at, dim: self.choice.dim, width: self.width };
        let yielded = body::emit(e, self.nest, place, &mut values, &self.nest.yielded());
        yielded.into_iter().map(|v| e.splat(v, self.width)).collect()
    }

    /// An input that does not move along the rows is loaded once for all of them.
    fn load_shared(&self, e: &mut Emit, i: usize, input: &Operand, at: &[Position], cache: &mut Cache) -> Value {
        let shared = self.choice.rows.is_none_or(|(dim, _)| !input.uses(dim));
        if let Some((_, value)) = cache.iter().find(|(input, _)| shared && *input == i) {
            return *value;
        }
        let value = e.load(input, at, self.choice.dim, self.width);
        if shared {
            cache.push((i, value));
        }
        value
    }

    fn store(&self, e: &mut Emit, at: &[Position], values: &[Value]) {
        for (output, value) in self.nest.outputs.iter().zip(values) {
            e.store(*value, output, at);
        }
    }
}

/// Inputs that all rows of a tile share, and their values.
type Cache = Vec<(usize, Value)>;
