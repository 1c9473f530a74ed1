//! The form with a parallel vector loop: register tiles of accumulators, or none for pointwise ops.
//!
//! ```text
//! for rows i (U at a time), for j (W lanes at a time):
//!   acc[u] = out[i + u, j .. j + W]
//!   for the loops that sum: acc[u] = body(in .., acc[u])
//!   out[i + u, j .. j + W] = acc[u]
//! ```
//!
//! Inputs that are strided or narrow are read from panels (`pack`). Lines of images have a tile of several vectors
//! (`Lines`).

use super::ahead::Ahead;
use super::body::{self, Place, Values};
use super::choose::{Choice, Declined, Line, choose};
use super::dots::Dots;
use super::emit::{Emit, Position, Width, element_bytes, upper_half};
use super::form::Form;
use super::nest::{Access, Loop, Nest, Operand};
use super::pack::{self, OTHER_POSITIONS, Panels, is_whole};
use super::past_caches;
use super::segments::{Bound, Segment};
use super::tiles::{COLUMNS, Grid, Held, Tiles};
use super::windows::{self, Extremes, Step};
use monopour_ir::{Value, ops};
use monopour_program::CpuTarget;

/// Most bytes of a row that is fetched to the first-level cache.
const SHORT_ROW_BYTES: i64 = 8 << 10;

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
        if past_caches::suits(nest, choice) {
            return past_caches::write(e, nest, &|e| emit(e, nest, choice));
        }
        emit(e, nest, choice);
    }
}

/// Writes the loops.
fn emit<'c>(e: &mut Emit<'c>, nest: &Nest<'c>, choice: &Choice) {
    let counted = choice.dots.map(|dots| dots.counted(nest));
    let nest = counted.as_ref().unwrap_or(nest);
    let in_tile =
        |d: usize| d == choice.dim || [choice.rows, choice.more_rows].iter().flatten().any(|(row, _)| *row == d);
    let mut order: Vec<usize> = (0..nest.loops.len()).filter(|d| !nest.loops[*d].reduction && !in_tile(*d)).collect();
    order.reverse();
    let mut at = vec![Position::at(0); nest.loops.len() + OTHER_POSITIONS];
    let panels = Panels::new(e, nest, choice);
    let packed = panels.packed();
    // Loops that share the right panel run while it is in the first-level cache.
    let right = choice.pack.filter(|p| p.left.is_none() && choice.line.is_none()).and_then(|p| p.right);
    let shares = |input: Option<usize>, d: usize| input.is_some_and(|input| !nest.inputs[input].uses(d));
    let (inner, order): (Vec<usize>, Vec<usize>) = order.into_iter().partition(|d| shares(right, *d));
    // As do those that share the left panel, which is filled once for all of them.
    let left = choice.pack.filter(|_| choice.line.is_none()).and_then(|p| p.left);
    let (columns, order): (Vec<usize>, Vec<usize>) = order.into_iter().partition(|d| shares(left, *d));
    let sums = choice.tiles.map(|tiles| tiles.buffer(e, nest));
    let plan = Plan { sums, nest, choice, panels, packed, inner, columns };
    if choice.pack.is_some_and(|p| p.right.is_none() && p.left.is_none()) {
        // What a block reads stays in the first-level cache for all rows.
        let read = |d: &usize| nest.inputs.iter().any(|o| o.uses(choice.dim) && o.uses(*d));
        let (order, shared): (Vec<usize>, Vec<usize>) = order.into_iter().partition(read);
        return outer(e, &plan, order, &mut at, &mut |e, at| {
            blocks(e, &plan, at, &mut |e, at, length| {
                outer(e, &plan, shared.clone(), at, &mut |e, at| vectors(e, &plan, at, length));
            });
        });
    }
    outer(e, &plan, order, &mut at, &mut |e, at| {
        blocks(e, &plan, at, &mut |e, at, length| vectors(e, &plan, at, length));
    });
}

struct Plan<'c, 'a> {
    /// The buffer of tile registers' sums.
    sums: Option<Value<'c>>,
    nest: &'a Nest<'c>,
    choice: &'a Choice,
    panels: Panels<'c, 'a>,
    /// The nest that reads the panels.
    packed: Nest<'c>,
    /// Loops inside of those over vectors, the last outermost.
    inner: Vec<usize>,
    /// Loops that share the left panel, around those over vectors.
    columns: Vec<usize>,
}

/// The loops in `order`, the last first, then `body`.
fn outer<'c>(
    e: &mut Emit<'c>,
    plan: &Plan<'c, '_>,
    mut order: Vec<usize>,
    at: &mut [Position<'c>],
    body: &mut dyn FnMut(&mut Emit<'c>, &mut [Position<'c>]),
) {
    let Some(dim) = order.pop() else { return body(e, at) };
    let segment = e.whole(&plan.nest.loops[dim]);
    e.for_each(segment, &[], &mut |e, here, _| {
        at[dim] = here;
        outer(e, plan, order.clone(), at, body);
        vec![]
    });
}

/// The blocks of a long reduction, each with its length.
fn blocks<'c>(
    e: &mut Emit<'c>,
    plan: &Plan<'c, '_>,
    at: &mut [Position<'c>],
    body: &mut dyn FnMut(&mut Emit<'c>, &mut [Position<'c>], i64),
) {
    let Some((dim, size)) = plan.panels.block() else { return body(e, at, 0) };
    let l = &plan.nest.loops[dim];
    for segment in e.segments(l, &with_rest(l, size)) {
        e.for_each(segment, &[], &mut |e, here, _| {
            at[dim] = here;
            body(e, at, segment.step);
            vec![]
        });
    }
}

/// Vectors outside, rows inside: loads that the rows share stay in the first-level cache.
fn vectors<'c>(e: &mut Emit<'c>, plan: &Plan<'c, '_>, at: &mut [Position<'c>], length: i64) {
    plan.panels.fill_left(e, at, length);
    plan.panels.fill_line(e, at);
    if let Some(line) = plan.choice.line.and_then(|line| Lines::of(plan.nest, plan.choice, line)) {
        return line.write(e, &plan.packed, plan.choice, at);
    }
    outer(e, plan, plan.columns.clone(), at, &mut |e, at| panels(e, plan, at, length));
}

/// The right panels, one after another, and what reads them.
fn panels<'c>(e: &mut Emit<'c>, plan: &Plan<'c, '_>, at: &mut [Position<'c>], length: i64) {
    let (choice, nest) = (plan.choice, plan.nest);
    let l = &nest.loops[choice.dim];
    // Of groups in memory no more can be read than are there.
    let is_packed = choice.dots.is_some_and(|dots| !dots.is_grouped);
    let short = l.extent.filter(|extent| is_packed && (choice.lanes / 2 + 1..choice.lanes).contains(extent));
    if let Some(used) = short {
        at[choice.dim] = Position::at(0);
        plan.panels.fill_right(e, at, (choice.lanes, used), length);
        return inner(e, plan, at, &Strip { offsets: vec![0], width: choice.lanes, used, length, sums: plan.sums });
    }
    // Elements that are filled, reduced and finished at once can be computed twice.
    let segments = match nest.start {
        Some(_) => e.segments_twice(l, &choice.widths(nest), choice.least),
        None => e.segments(l, &choice.widths(nest)),
    };
    for segment in segments {
        e.for_each(segment, &[], &mut |e, here, _| {
            at[choice.dim] = here;
            plan.panels.fill_right(e, at, (segment.step, segment.step), length);
            inner(e, plan, at, &Strip { sums: plan.sums, ..Strip::of(choice, segment.step, length) });
            vec![]
        });
    }
}

/// The loops that share the right panel, then the rows.
fn inner<'c>(e: &mut Emit<'c>, plan: &Plan<'c, '_>, at: &mut [Position<'c>], strip: &Strip<'c>) {
    outer(e, plan, plan.inner.clone(), at, &mut |e, at| rows(e, &plan.packed, plan.choice, at, strip));
}

/// Steps of `size`, and a static remainder as one smaller step.
fn with_rest(l: &Loop, size: i64) -> Vec<i64> {
    let rest = l.extent.map(|extent| extent % size).filter(|rest| *rest > 1);
    [size].into_iter().chain(rest).chain([1]).collect()
}

/// Lines of vectors, of which the last may begin in the one before it; a line shorter than a register is one vector.
struct Lines {
    extent: i64,
    width: Width,
    vectors: i64,
    rows: (usize, i64),
}

impl Lines {
    /// `None` where elements cannot be computed twice, but have to be; or loaded one by one.
    fn of(nest: &Nest, choice: &Choice, line: Line) -> Option<Self> {
        let extent = nest.loops[choice.dim].extent?;
        let width = pack::short_width(choice.lanes, extent);
        let read = nest.inputs.iter().chain(nest.after.iter().flat_map(|after| &after.inputs));
        let fits = match extent < width {
            true => width >= 4 && read.into_iter().all(|o| o.access(choice.dim) != Access::Strided),
            false => nest.start.is_some() || extent % width == 0,
        };
        fits.then_some(Self { extent, width, vectors: line.vectors, rows: line.rows })
    }

    fn write<'c>(&self, e: &mut Emit<'c>, nest: &Nest<'c>, choice: &Choice, at: &mut [Position<'c>]) {
        let choice = Choice { rows: Some(self.rows), more_rows: None, ..*choice };
        let (width, step) = (self.width, self.vectors * self.width);
        let whole = self.extent / step * step;
        let strip = |length: i64| Strip {
            offsets: (0..length).step_by(width as usize).map(|lane| lane.min((length - width).max(-whole))).collect(),
            width,
            used: width.min(self.extent),
            length: 0,
            sums: None,
        };
        let segment = Segment { from: Bound::Static(0), to: Bound::Static(whole), step };
        e.for_each(segment, &[], &mut |e, here, _| {
            at[choice.dim] = here;
            rows(e, nest, &choice, at, &strip(step));
            vec![]
        });
        if self.extent > whole {
            at[choice.dim] = Position::at(whole);
            rows(e, nest, &choice, at, &strip(self.extent - whole));
        }
    }
}

/// The vectors of a register tile along the vector loop.
struct Strip<'c> {
    /// Their first lanes, from the position.
    offsets: Vec<i64>,
    width: Width,
    /// Lanes that lie in memory.
    used: Width,
    /// Iterations of the block, if a reduction is cut.
    length: i64,
    /// Where tile registers leave their sums.
    sums: Option<Value<'c>>,
}

impl Strip<'_> {
    /// One vector; groups, and three registers, take a vector for each.
    fn of(choice: &Choice, step: i64, length: i64) -> Self {
        let apart = choice.dots.is_some() || !is_whole(step);
        let width = if apart { step.min(choice.lanes) } else { step };
        Self { offsets: (0..step).step_by(width as usize).collect(), width, used: width, length, sums: None }
    }
}

fn rows<'c>(e: &mut Emit<'c>, nest: &Nest<'c>, choice: &Choice, at: &mut [Position<'c>], strip: &Strip<'c>) {
    let Some((dim, count)) = choice.more_rows else { return rows_at(e, nest, choice, &[at.to_vec()], strip) };
    let l = &nest.loops[dim];
    for segment in e.segments(l, &with_rest(l, count)) {
        e.for_each(segment, &[], &mut |e, here, _| {
            let more = |n: i64| {
                let mut at = at.to_vec();
                at[dim] = here.plus(n);
                at
            };
            rows_at(e, nest, choice, &(0..segment.step).map(more).collect::<Vec<_>>(), strip);
            vec![]
        });
    }
}

/// The rows at each of some places.
fn rows_at<'c>(e: &mut Emit<'c>, nest: &Nest<'c>, choice: &Choice, places: &[Vec<Position<'c>>], strip: &Strip<'c>) {
    let vectors = |at: &[Position<'c>]| -> Vec<Vec<Position<'c>>> {
        let vector = |offset: &i64| {
            let mut at = at.to_vec();
            at[choice.dim] = at[choice.dim].plus(*offset);
            // Within a panel.
            at[nest.loops.len() + 1] = Position::at(*offset);
            at
        };
        strip.offsets.iter().map(vector).collect()
    };
    let Some((dim, count)) = choice.rows else { return tile(e, nest, choice, &vectors(&places[0]), strip) };
    let l = &nest.loops[dim];
    let in_memory = choice.dots.is_some_and(|dots| dots.in_place);
    let tiles = choice.tiles.zip(strip.sums).filter(|_| !in_memory || strip.width == COLUMNS);
    let mut end = None;
    let segments = match (tiles, l.extent) {
        (Some((tiles, _)), _) => tiles.segments(e, nest, l),
        (None, Some(_)) => e.segments(l, &with_rest(l, count)),
        // Few rows at a time, not one after the other: each has too few independent sums to hide their latency.
        (None, None) => {
            let halves = std::iter::successors(Some(count), |count| Some(count / 2).filter(|half| *half > 0));
            let halves: Vec<i64> = halves.collect();
            if nest.start.is_some() {
                let (segments, extent) = e.segments_to_end(l, &halves);
                end = Some(extent);
                segments
            } else {
                e.segments(l, &halves)
            }
        }
    };
    for segment in segments {
        e.for_each(segment, &[], &mut |e, here, _| {
            let here = end.map_or(here, |end| e.at_most_before(here, end, segment.step));
            let row = |(at, row): (&Vec<Position<'c>>, i64)| {
                let mut at = at.clone();
                at[dim] = here.plus(row);
                vectors(&at)
            };
            let all = places.iter().flat_map(|at| (0..segment.step).map(move |row| (at, row)));
            match tiles.filter(|(tiles, _)| segment.step >= tiles.rows) {
                Some(tiles) => byte_tiles(e, (nest, choice), tiles, (&places[0], here, segment.step), strip),
                None => tile(e, nest, choice, &all.flat_map(row).collect::<Vec<_>>(), strip),
            }
            vec![]
        });
    }
}

/// One register tile: `places` are those of its vectors.
fn tile<'c>(e: &mut Emit<'c>, nest: &Nest<'c>, choice: &Choice, places: &[Vec<Position<'c>>], strip: &Strip<'c>) {
    let mut reductions = nest.reductions();
    // Groups last: in most layouts they lie side by side.
    reductions.sort_by_key(|d| choice.dots.is_some_and(|dots| dots.dim == *d));
    let slots: Vec<usize> = (0..nest.outputs.len())
        .filter(|output| !reductions.is_empty() || !nest.output_arg(*output).is_unused())
        .collect();
    let tile = Tile::of(nest, choice, &slots, strip);
    let mut inits = vec![];
    for at in places {
        for output in &slots {
            inits.push(tile.start(e, *output, at));
        }
    }
    let results = tile.sum(e, &reductions, places.to_vec(), &inits);
    for (at, values) in places.iter().zip(results.chunks(nest.outputs.len())) {
        tile.finish(e, at, values.to_vec());
    }
}

/// Rows of a product of bytes, as many as `count`, in tile registers.
fn byte_tiles<'c>(
    e: &mut Emit<'c>,
    (nest, choice): (&Nest<'c>, &Choice),
    (tiles, buffer): (Tiles, Value<'c>),
    (at, first, count): (&[Position<'c>], Position<'c>, i64),
    strip: &Strip<'c>,
) {
    let (dim, _) = choice.rows.expect("invariant: tiles have rows");
    let tile = Tile::of(nest, choice, &[0], strip);
    let each = |e: &mut Emit<'c>, body: &mut dyn FnMut(&mut Emit<'c>, &[Position<'c>], Held<'c>)| {
        let rows = Segment { from: Bound::Static(0), to: Bound::Static(count), step: 1 };
        e.for_each(rows, &[], &mut |e, row, _| {
            let mut at = at.to_vec();
            at[dim] = e.sum(first, row);
            let row = e.position(row);
            for offset in &strip.offsets {
                let mut at = at.clone();
                at[choice.dim] = at[choice.dim].plus(*offset);
                let place = [buffer, row, e.index(*offset)];
                body(e, &at, Held { place, width: strip.width });
            }
            vec![]
        });
    };
    let starts_at_zero = nest.start.is_some_and(is_zero);
    if !starts_at_zero {
        each(e, &mut |e, at, held| {
            let value = tile.start(e, 0, at);
            held.store(e, value);
        });
    }
    let mut origin = at.to_vec();
    origin[dim] = first;
    let grid = Grid { rows: count / tiles.rows, columns: strip.offsets.len() as i64, length: strip.length };
    tiles.sum(e, (nest, choice), &origin, grid, (buffer, starts_at_zero));
    each(e, &mut |e, at, held| {
        let sum = held.load(e);
        tile.finish(e, at, vec![sum]);
    });
}

fn is_zero(value: Value) -> bool {
    let constant = value.defining_op().filter(|op| op.is(ops::arith::CONSTANT));
    constant.and_then(|op| op.attr("value")?.as_int()) == Some(0)
}

struct Tile<'c, 'a> {
    nest: &'a Nest<'c>,
    choice: &'a Choice,
    /// The outputs that have an accumulator.
    slots: &'a [usize],
    width: Width,
    /// Lanes that lie in memory; more than half.
    used: Width,
    /// The blocked loop, and the length of this block, which begins at the position of the rows.
    block: Option<(usize, i64)>,
}

impl<'c, 'a> Tile<'c, 'a> {
    fn of(nest: &'a Nest<'c>, choice: &'a Choice, slots: &'a [usize], strip: &Strip<'c>) -> Self {
        let block = choice.pack.and_then(|p| p.block).map(|(dim, _)| (dim, strip.length));
        Self { nest, choice, slots, width: strip.width, used: strip.used, block }
    }

    /// What an accumulator of an output begins with.
    fn start(&self, e: &mut Emit<'c>, output: usize, at: &[Position<'c>]) -> Value<'c> {
        match self.nest.start {
            Some(value) => e.splat(value, self.width),
            None => self.load(e, &self.nest.outputs[output], at),
        }
    }

    /// Puts the results of the reductions through the epilogues, and stores them.
    fn finish(&self, e: &mut Emit<'c>, at: &[Position<'c>], mut values: Vec<Value<'c>>) {
        for after in &self.nest.after {
            let slots: Vec<usize> = (0..values.len()).collect();
            let epilogue = Tile { nest: after, slots: &slots, block: None, ..*self };
            values = epilogue.row(e, at, &values, &mut vec![]);
        }
        self.store(e, at, &values);
    }

    /// The reductions, outermost first. `state` holds the accumulators row by row; the results are all outputs of the rows.
    fn sum(
        &self,
        e: &mut Emit<'c>,
        loops: &[usize],
        rows: Vec<Vec<Position<'c>>>,
        state: &[Value<'c>],
    ) -> Vec<Value<'c>> {
        if loops.len() > 1
            && loops.len() == self.nest.reductions().len()
            && let Some((row, _)) = self.choice.rows.filter(|_| self.choice.reads_plainly())
            && let Some(steps) = windows::steps(self.nest, row, &rows)
        {
            return self.window(e, &steps, state);
        }
        let Some((dim, inner)) = loops.split_first() else {
            Ahead { nest: self.nest, choice: self.choice, block: self.block, width: self.width }.fetch(e, &rows);
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

    /// The reductions of a small window.
    fn window(&self, e: &mut Emit<'c>, steps: &[Step<'c>], state: &[Value<'c>]) -> Vec<Value<'c>> {
        let (mut cache, mut state, n) = (vec![], state.to_vec(), self.slots.len());
        let mut extremes = Extremes::of(self.nest, state.len()).filter(|_| n == 1);
        for Step { row, at } in steps {
            if let Some(extremes) = &mut extremes {
                let term = self.values(e, at, &[], &mut cache, &[extremes.term()])[0];
                state[*row] = extremes.add(e, *row, state[*row], term);
                continue;
            }
            let part = row * n..(row + 1) * n;
            let next = self.row(e, at, &state[part.clone()], &mut cache);
            state.splice(part, next);
        }
        let Some(mut extremes) = extremes else { return state };
        state.iter().enumerate().map(|(row, sum)| extremes.finish(e, row, *sum)).collect()
    }

    /// One copy of the body. `cache` holds loads shared with other rows.
    fn row(
        &self,
        e: &mut Emit<'c>,
        at: &[Position<'c>],
        accumulators: &[Value<'c>],
        cache: &mut Cache<'c>,
    ) -> Vec<Value<'c>> {
        if let Some(dots) = &self.choice.dots.filter(|_| !self.nest.reductions().is_empty()) {
            let sum = accumulators[0];
            return vec![self.add_dots(e, dots, at, sum, cache)];
        }
        self.values(e, at, accumulators, cache, &self.nest.yielded())
    }

    /// Values of the body at a place.
    fn values(
        &self,
        e: &mut Emit<'c>,
        at: &[Position<'c>],
        accumulators: &[Value<'c>],
        cache: &mut Cache<'c>,
        wanted: &[Value<'c>],
    ) -> Vec<Value<'c>> {
        let mut values = Values::new();
        for (i, input) in self.nest.inputs.iter().enumerate() {
            let arg = self.nest.body.arg(i);
            if self.nest.fetched.contains(&i) {
                self.fetch(e, input, at);
            } else if !arg.is_unused() {
                values.insert(input.holds.unwrap_or(arg), self.load_shared(e, i, input, at, cache));
            }
        }
        for (output, value) in self.slots.iter().zip(accumulators) {
            values.insert(self.nest.output_arg(*output), *value);
        }
        let place = Place { at, dim: self.choice.dim, width: self.width };
        let wanted = body::emit(e, self.nest, place, &mut values, wanted);
        wanted.into_iter().map(|v| e.splat(v, self.width)).collect()
    }

    /// Fetches a row that is read next: to the first-level cache, if that holds it beside this one.
    fn fetch(&self, e: &mut Emit<'c>, row: &Operand<'c>, at: &[Position<'c>]) {
        let dim = self.choice.dim;
        let bytes = self.nest.loops[dim].extent.map(|extent| extent.saturating_mul(element_bytes(row)));
        match bytes.is_some_and(|bytes| bytes <= SHORT_ROW_BYTES) {
            true => e.prefetch_soon(row, at, dim, self.width),
            false => e.prefetch(row, at, dim, self.width),
        }
    }

    /// Adds the products of a group. A row's group serves all vectors, a vector's groups all rows.
    fn add_dots(
        &self,
        e: &mut Emit<'c>,
        dots: &Dots,
        at: &[Position<'c>],
        sum: Value<'c>,
        cache: &mut Cache<'c>,
    ) -> Value<'c> {
        let row = self.choice.rows.map(|(dim, _)| at[dim].offset).into_iter().collect::<Vec<_>>();
        let lanes = vec![at[self.nest.loops.len() + 1].offset];
        let mut shared = |key: (usize, Vec<i64>), load: &mut dyn FnMut() -> Value<'c>| {
            if let Some((_, value)) = cache.iter().find(|(known, _)| *known == key) {
                return *value;
            }
            let value = load();
            cache.push((key, value));
            value
        };
        let left = shared((dots.left, row), &mut || dots.left(e, self.nest, at, self.width));
        let right = shared((dots.right, lanes), &mut || dots.right(e, self.nest, at, self.width));
        dots.add(e, self.nest, [left, right], sum, self.width)
    }

    /// Loads an input once for all places of the tile between which it does not differ.
    fn load_shared(
        &self,
        e: &mut Emit<'c>,
        i: usize,
        input: &Operand<'c>,
        at: &[Position<'c>],
        cache: &mut Cache<'c>,
    ) -> Value<'c> {
        let here = windows::offsets(input, at);
        if let Some((_, value)) = cache.iter().find(|(key, _)| key.0 == i && key.1 == here) {
            return *value;
        }
        let value = self.load(e, input, at);
        cache.push(((i, here), value));
        value
    }

    fn load(&self, e: &mut Emit<'c>, operand: &Operand<'c>, at: &[Position<'c>]) -> Value<'c> {
        e.load_short(operand, at, self.choice.dim, (self.width, self.used))
    }

    fn store(&self, e: &mut Emit<'c>, at: &[Position<'c>], values: &[Value<'c>]) {
        for (output, value) in self.nest.outputs.iter().zip(values) {
            if self.used == self.width {
                e.store(*value, output, at);
                continue;
            }
            let (half, high) = (self.width / 2, upper_half(at, self.choice.dim, (self.width, self.used)));
            for (from, at) in [(0, at), (self.used - half, &high)] {
                let part = e.lanes(*value, from, half);
                e.store(part, output, at);
            }
        }
    }
}

/// Inputs at the offsets of a tile's rows and vectors, and their values.
type Cache<'c> = Vec<((usize, Vec<i64>), Value<'c>)>;
