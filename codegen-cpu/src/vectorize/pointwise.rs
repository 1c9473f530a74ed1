//! The form with a parallel vector loop: register tiles of accumulators, or none for pointwise ops.
//!
//! ```text
//! for rows i (U at a time), for j (W lanes at a time):
//!   acc[u] = out[i + u, j .. j + W]
//!   for the loops that sum: acc[u] = body(in .., acc[u])
//!   out[i + u, j .. j + W] = acc[u]
//! ```

use super::body::{self, Place, Values};
use super::choose::{Choice, Declined, choose};
use super::emit::{Bound, Emit, Position, Segment, Width};
use super::form::Form;
use super::nest::{Loop, Nest, Operand};
use super::pack::{self, Panels};
use monopour_ir::Value;
use monopour_program::CpuTarget;

/// The form.
pub(super) struct Pointwise;

impl Form for Pointwise {
    fn plan(&self, nest: &Nest, cpu: &CpuTarget) -> Result<Choice, Declined> {
        let choice = choose(nest, cpu)?;
        if nest.loops[choice.dim].reduction { Err(Declined::NotAsked) } else { Ok(choice) }
    }

    fn updates_in_blocks(&self, choice: &Choice) -> bool {
        choice.pack.is_some_and(|p| p.block.is_some())
    }

    fn write<'c>(&self, e: &mut Emit<'c>, nest: &Nest<'c>, choice: &Choice) {
        emit(e, nest, choice);
    }
}

/// Writes the loops.
fn emit<'c>(e: &mut Emit<'c>, nest: &Nest<'c>, choice: &Choice) {
    let mut order: Vec<usize> = (0..nest.loops.len())
        .filter(|d| !nest.loops[*d].reduction && *d != choice.dim && choice.rows.is_none_or(|(rows, _)| rows != *d))
        .collect();
    order.reverse();
    // The last is the position within a block.
    let mut at = vec![Position::at(0); nest.loops.len() + 1];
    let panels = Panels::new(e, nest, choice);
    let packed = panels.packed();
    outer(e, &Plan { nest, choice, panels, packed }, order, &mut at);
}

struct Plan<'c, 'a> {
    nest: &'a Nest<'c>,
    choice: &'a Choice,
    panels: Panels<'c, 'a>,
    /// The nest that reads the panels.
    packed: Nest<'c>,
}

/// The loops in `order`, the last first, then the blocks.
fn outer<'c>(e: &mut Emit<'c>, plan: &Plan<'c, '_>, mut order: Vec<usize>, at: &mut [Position<'c>]) {
    let Some(dim) = order.pop() else { return blocks(e, plan, at) };
    let segment = e.whole(&plan.nest.loops[dim]);
    e.for_each(segment, &[], &mut |e, here, _| {
        at[dim] = here;
        outer(e, plan, order.clone(), at);
        vec![]
    });
}

/// The blocks of a long reduction, each with its panels.
fn blocks<'c>(e: &mut Emit<'c>, plan: &Plan<'c, '_>, at: &mut [Position<'c>]) {
    let Some((dim, size)) = plan.panels.block() else { return vectors(e, plan, at, 0) };
    let l = &plan.nest.loops[dim];
    for segment in e.segments(l, &with_rest(l, size)) {
        e.for_each(segment, &[], &mut |e, here, _| {
            at[dim] = here;
            vectors(e, plan, at, segment.step);
            vec![]
        });
    }
}

/// Vectors outside, rows inside: loads that the rows share stay in the first-level cache.
fn vectors<'c>(e: &mut Emit<'c>, plan: &Plan<'c, '_>, at: &mut [Position<'c>], length: i64) {
    let (choice, nest) = (plan.choice, plan.nest);
    let l = &nest.loops[choice.dim];
    plan.panels.fill_left(e, at, length);
    // Elements that are filled, reduced and finished at once can be computed twice.
    let segments = match nest.start {
        Some(_) => e.segments_twice(l, &choice.widths(nest), choice.least),
        None => e.segments(l, &choice.widths(nest)),
    };
    for segment in segments {
        e.for_each(segment, &[], &mut |e, here, _| {
            at[choice.dim] = here;
            plan.panels.fill_right(e, at, segment.step, length);
            rows(e, &plan.packed, choice, at, segment.step, length);
            vec![]
        });
    }
}

/// Steps of `size`, and a static remainder as one smaller step.
fn with_rest(l: &Loop, size: i64) -> Vec<i64> {
    let rest = l.extent.map(|extent| extent % size).filter(|rest| *rest > 1);
    [size].into_iter().chain(rest).chain([1]).collect()
}

fn rows<'c>(e: &mut Emit<'c>, nest: &Nest<'c>, choice: &Choice, at: &mut [Position<'c>], width: Width, length: i64) {
    let Some((dim, count)) = choice.rows else { return tile(e, nest, choice, &[at.to_vec()], width, length) };
    let l = &nest.loops[dim];
    let counts = match l.extent {
        Some(_) => with_rest(l, count),
        // Few rows at a time, not one after the other: each has too few independent sums to hide their latency.
        None => std::iter::successors(Some(count), |count| Some(count / 2).filter(|half| *half > 0)).collect(),
    };
    for segment in e.segments(l, &counts) {
        e.for_each(segment, &[], &mut |e, here, _| {
            at[dim] = here;
            let rows: Vec<Vec<Position>> = (0..segment.step)
                .map(|row| {
                    let mut at = at.to_vec();
                    at[dim] = here.plus(row);
                    at
                })
                .collect();
            tile(e, nest, choice, &rows, width, length);
            vec![]
        });
    }
}

/// One register tile: `rows` are the places of its rows.
fn tile<'c>(e: &mut Emit<'c>, nest: &Nest<'c>, choice: &Choice, rows: &[Vec<Position<'c>>], width: Width, length: i64) {
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
    let block = choice.pack.and_then(|p| p.block).map(|(dim, _)| (dim, length));
    let tile = Tile { nest, choice, slots: &slots, width, block };
    let results = tile.sum(e, &reductions, rows.to_vec(), &inits);
    for (at, values) in rows.iter().zip(results.chunks(nest.outputs.len())) {
        let mut values = values.to_vec();
        for after in &nest.after {
            let slots: Vec<usize> = (0..values.len()).collect();
            values = Tile { nest: after, choice, slots: &slots, width, block: None }.row(e, at, &values, &mut vec![]);
        }
        tile.store(e, at, &values);
    }
}

struct Tile<'c, 'a> {
    nest: &'a Nest<'c>,
    choice: &'a Choice,
    /// The outputs that have an accumulator.
    slots: &'a [usize],
    width: Width,
    /// The blocked loop, and the length of this block, which begins at the position of the rows.
    block: Option<(usize, i64)>,
}

impl<'c> Tile<'c, '_> {
    /// The reductions, outermost first. `state` holds the accumulators row by row; the results are all outputs of the rows.
    fn sum(
        &self,
        e: &mut Emit<'c>,
        loops: &[usize],
        rows: Vec<Vec<Position<'c>>>,
        state: &[Value<'c>],
    ) -> Vec<Value<'c>> {
        let Some((dim, inner)) = loops.split_first() else {
            let (mut cache, n) = (vec![], self.slots.len());
            let row = |(i, at): (usize, &Vec<Position<'c>>)| self.row(e, at, &state[i * n..(i + 1) * n], &mut cache);
            return rows.iter().enumerate().flat_map(row).collect();
        };
        let blocked = self.block.filter(|(cut, _)| cut == dim);
        let segment = match blocked {
            Some((_, length)) => Segment { from: Bound::Static(0), to: Bound::Static(length), step: 1 },
            None => e.whole(&self.nest.loops[*dim]),
        };
        e.for_each(segment, state, &mut |e, here, accumulators| {
            let rows = rows.iter().map(|at| pack::within(e, at, *dim, here, blocked.is_some())).collect();
            self.sum(e, inner, rows, accumulators)
        })
    }

    /// One copy of the body. `cache` holds loads shared with other rows.
    fn row(
        &self,
        e: &mut Emit<'c>,
        at: &[Position<'c>],
        accumulators: &[Value<'c>],
        cache: &mut Cache<'c>,
    ) -> Vec<Value<'c>> {
        let mut values = Values::new();
        for (i, input) in self.nest.inputs.iter().enumerate() {
            let arg = self.nest.body.arg(i);
            if !arg.is_unused() {
                values.insert(input.holds.unwrap_or(arg), self.load_shared(e, i, input, at, cache));
            }
        }
        for (output, value) in self.slots.iter().zip(accumulators) {
            values.insert(self.nest.output_arg(*output), *value);
        }
        let place = Place { at, dim: self.choice.dim, width: self.width };
        let yielded = body::emit(e, self.nest, place, &mut values, &self.nest.yielded());
        yielded.into_iter().map(|v| e.splat(v, self.width)).collect()
    }

    /// Loads an input that is invariant along the rows once for all of them.
    fn load_shared(
        &self,
        e: &mut Emit<'c>,
        i: usize,
        input: &Operand<'c>,
        at: &[Position<'c>],
        cache: &mut Cache<'c>,
    ) -> Value<'c> {
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

    fn store(&self, e: &mut Emit<'c>, at: &[Position<'c>], values: &[Value<'c>]) {
        for (output, value) in self.nest.outputs.iter().zip(values) {
            e.store(*value, output, at);
        }
    }
}

/// Inputs that all rows of a tile share, and their values.
type Cache<'c> = Vec<(usize, Value<'c>)>;
