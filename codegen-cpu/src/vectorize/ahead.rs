//! Fetches to the second-level cache what a register tile reads next from memory: the next filters, image and outputs.
//!
//! Before / after, for a tile of 14 pixels and 32 output channels, whose innermost reduction is over 32 channels:
//!
//! ```text
//! for k in 0 .. 32:                              for k in 0 .. 32:
//!   acc[p] += image[p, k] * filters[k, ..]         prefetch next_filters[part], next_image[line k], output[line k]
//!                                                  acc[p] += image[p, k] * filters[k, ..]
//! ```
//!
//! Images with channels in blocks are many short streams, too short for the processor to fetch them ahead by itself: without
//! this, 1x1 convolutions of images beyond the second-level cache take 1.1 to 1.3 times as long. Filters beyond it are fetched
//! evenly over all tiles that read those before them: fetched by the first of these alone, they take all of the core's fill
//! buffers, and its loads from the second-level cache wait (ResNet-50's last stages: 1.2 times as long). What panels copy is not
//! fetched: products of 128 rows took 1.1 times as long with it.

use super::choose::Choice;
use super::emit::{CACHE_LINE_BYTES, Emit, Position, Width, element_bytes};
use super::nest::{Access, Nest, Operand};
use monopour_ir::{LinearForm, Value, ops};

/// What is fetched in one copy of the body.
pub(super) struct Ahead<'c, 'a> {
    pub(super) nest: &'a Nest<'c>,
    pub(super) choice: &'a Choice,
    /// The blocked loop, and the length of this block.
    pub(super) block: Option<(usize, i64)>,
    pub(super) width: Width,
}

/// What a step fetches of the next filters.
#[derive(Clone, Copy)]
enum Part {
    /// So many elements.
    Elements(i64),
    /// As many as the tiles of `count` rows leave it, on one line of the caches: the number of rows is not known.
    Line { row: usize, count: i64 },
}

impl<'c> Ahead<'c, '_> {
    /// Fetches for the tile at `places`, in the order of its rows.
    pub(super) fn fetch(&self, e: &mut Emit<'c>, places: &[Vec<Position<'c>>]) {
        let (Some((row, count)), Some(first)) = (self.choice.rows, places.first()) else { return };
        if !self.choice.reads_memory() {
            return;
        }
        self.filters(e, row, first);
        // A tile of a few rows has no time for the others.
        let full = count * self.choice.more_rows.map_or(1, |(_, more)| more);
        let is_cut = |step: &usize| self.block.is_some_and(|(cut, _)| cut == *step);
        let step = self.nest.reductions().last().copied().filter(|step| !is_cut(step) && self.choice.dots.is_none());
        if let Some(step) = step.filter(|_| 2 * places.len() as i64 > full) {
            self.image(e, (row, step), places);
            self.outputs(e, step, first);
        }
    }

    /// What the next block, or else the next channels, read of the filters.
    fn filters(&self, e: &mut Emit<'c>, row: usize, at: &[Position<'c>]) {
        let mut read = self.nest.inputs.iter().filter(|o| o.uses(self.choice.dim));
        let (Some(input), None) = (read.next(), read.next()) else { return };
        let long = |d: usize| !self.nest.loops[d].reduction && d != self.choice.dim && self.is_long(d);
        let next = (0..self.nest.loops.len()).find(|d| long(*d) && input.uses(*d)).map(|d| (d, 1));
        let Some(cut) = self.block.or(next).filter(|_| !input.uses(row)) else { return };
        match self.part_of(input) {
            Some(part) => self.part(e, input, at, cut, part),
            None => {
                if let Some(at) = self.further(e, at, cut) {
                    e.prefetch(input, &at, self.choice.dim, self.width);
                }
            }
        }
    }

    /// What each step of each tile that reads the filters fetches of them, so that all are; `None` where they are not one run, or
    /// other loops than that over rows have unknown sizes.
    fn part_of(&self, filters: &Operand) -> Option<Part> {
        let (mut steps, mut elements) = (1, self.width);
        for dim in self.nest.reductions().into_iter().rev() {
            let extent = self.extent(dim)?;
            if extent > 1 && filters.stride_bytes(dim)? != elements * element_bytes(filters) {
                return None;
            }
            (steps, elements) = (steps * extent, elements * extent);
        }
        let tiles = self.tiles(filters);
        if let [(row, count)] = tiles[..]
            && self.nest.loops[row].extent.is_none()
        {
            return Some(Part::Line { row, count });
        }
        for (dim, rows) in tiles {
            steps *= (self.nest.loops[dim].extent? + rows - 1) / rows;
        }
        Some(Part::Elements((elements + steps - 1) / steps))
    }

    /// The loops over the tiles that read the same filters, outermost first, each with its step.
    fn tiles(&self, filters: &Operand) -> Vec<(usize, i64)> {
        let in_tile: Vec<_> = [self.choice.more_rows, self.choice.rows].into_iter().flatten().collect();
        let others = |d: &usize| !self.nest.loops[*d].reduction && *d != self.choice.dim && !filters.uses(*d);
        let outside = (0..self.nest.loops.len()).filter(|d| others(d) && in_tile.iter().all(|(row, _)| row != d));
        outside.map(|d| (d, 1)).chain(in_tile.iter().copied()).collect()
    }

    /// Iterations of a loop in a block.
    fn extent(&self, dim: usize) -> Option<i64> {
        self.block.filter(|(cut, _)| *cut == dim).map(|(_, length)| length).or(self.nest.loops[dim].extent)
    }

    /// Fetches this step's part of the filters that are `cut` further on. All steps of all tiles fetch one: many fetches in a row
    /// from memory hold up the loads of the caches for as long as they take.
    fn part(
        &self,
        e: &mut Emit<'c>,
        filters: &Operand<'c>,
        at: &[Position<'c>],
        (cut, length): (usize, i64),
        part: Part,
    ) {
        let tiles = self.tiles(filters).into_iter().map(|(dim, rows)| (dim, rows, false));
        let steps = self.nest.reductions().into_iter().map(|dim| (dim, 1, true));
        let (mut next, mut number) = (at.to_vec(), Position::at(0));
        for (dim, rows, is_step) in tiles.chain(steps) {
            // The only loop of unknown size is the first.
            let extent = self.extent(dim).unwrap_or(rows);
            let mut here = at[dim];
            if is_step && self.block.is_some_and(|(cut, _)| cut == dim) {
                here = at[self.nest.loops.len()];
                let (absolute, relative) = (e.position(at[dim]), e.position(here));
                let start = e.op(ops::arith::SUBI, &[absolute, relative], absolute.ty());
                next[dim] = Position { base: Some(start), offset: 0 };
            } else if is_step {
                next[dim] = Position::at(0);
            }
            let (before, here) = (e.times(number, (extent + rows - 1) / rows), e.divided(here, rows));
            number = e.sum(before, here);
        }
        next[cut] = next[cut].plus(length);
        let (further, elements) = match part {
            Part::Elements(elements) => (e.times(number, elements), elements),
            Part::Line { row, count } => {
                let most = self.width.min(CACHE_LINE_BYTES / element_bytes(filters));
                let elements = self.elements_by_rows(e, (row, count), most);
                let number = e.position(number);
                let further = e.op(ops::arith::MULI, &[number, elements], elements.ty());
                (Position { base: Some(further), offset: 0 }, most)
            }
        };
        next[self.choice.dim] = e.sum(next[self.choice.dim], further);
        e.prefetch(filters, &next, self.choice.dim, elements);
    }

    /// The elements of each part, at most `most`, where as many tiles of `count` rows as there are read the same filters.
    fn elements_by_rows(&self, e: &mut Emit<'c>, (row, count): (usize, i64), most: i64) -> Value<'c> {
        let rows = e.iterations(&self.nest.loops[row]);
        let tiles = e.op_with(ops::arith::CEILDIVUI, rows, count);
        let all = e.index(self.width);
        let each = e.op(ops::arith::CEILDIVUI, &[all, tiles], all.ty());
        e.op_with(ops::arith::MINUI, each, most)
    }

    /// A line of the image's rows: those of the next tile, or of the same tile in the next block of channels where windows
    /// overlap.
    fn image(&self, e: &mut Emit<'c>, (row, step): (usize, usize), places: &[Vec<Position<'c>>]) {
        let is_image = |o: &&Operand| o.uses(row) && !o.uses(self.choice.dim) && o.access(step) == Access::Contiguous;
        let mut images = self.nest.inputs.iter().filter(is_image);
        let (Some(image), None, Some(first), Some(last)) =
            (images.next(), images.next(), places.first(), places.last())
        else {
            return;
        };
        if !self.nest.loops[step].extent.is_some_and(|elements| self.is_one_run(image, elements, step)) {
            return;
        }
        let windows = !image.subscripts.iter().all(|s| self.is_plain(s));
        let at = if windows {
            self.block.filter(|(cut, _)| image.uses(*cut)).and_then(|cut| self.further(e, first, cut))
        } else {
            let mut next = last.clone();
            next[row] = next[row].plus(1);
            Some(next)
        };
        if let Some(at) = at {
            fetch_line(e, image, at, (step, step));
        }
    }

    /// A line of what the tile's epilogue reads and writes.
    fn outputs(&self, e: &mut Emit<'c>, step: usize, at: &[Position<'c>]) {
        let read = self.nest.after.iter().flat_map(|after| &after.inputs);
        for operand in self.nest.outputs.iter().chain(read) {
            let dim = self.choice.dim;
            let is_plain =
                operand.access(dim) == Access::Contiguous && operand.subscripts.iter().all(|s| self.is_plain(s));
            if is_plain && self.is_one_run(operand, self.choice.registers * self.choice.lanes, step) {
                fetch_line(e, operand, at.to_vec(), (step, dim));
            }
        }
    }

    /// Whether the tile's rows, each of so many elements, lie side by side in an operand, on at most as many cache lines as the
    /// loop `step` has iterations.
    fn is_one_run(&self, operand: &Operand, elements: i64, step: usize) -> bool {
        let mut bytes = elements * element_bytes(operand);
        for (dim, count) in [self.choice.rows, self.choice.more_rows].into_iter().flatten() {
            if operand.stride_bytes(dim) != Some(bytes) {
                return false;
            }
            bytes *= count;
        }
        let steps = self.nest.loops[step].extent;
        operand.is_memory() && steps.is_some_and(|steps| bytes <= steps * CACHE_LINE_BYTES)
    }

    /// Whether a subscript has one loop of several iterations at most: no window.
    fn is_plain(&self, subscript: &LinearForm) -> bool {
        (0..subscript.factors.len()).filter(|d| subscript.factors[*d] != 0 && self.is_long(*d)).count() < 2
    }

    fn is_long(&self, dim: usize) -> bool {
        self.nest.loops.get(dim).is_some_and(|l| l.extent != Some(1))
    }

    /// `at`, so many iterations of a loop further on, or at its last one.
    fn further(&self, e: &mut Emit<'c>, at: &[Position<'c>], (dim, length): (usize, i64)) -> Option<Vec<Position<'c>>> {
        let (next, last) = (e.position(at[dim].plus(length)), e.index(self.nest.loops[dim].extent? - 1));
        let next = e.op(ops::arith::MINUI, &[next, last], last.ty());
        let mut at = at.to_vec();
        at[dim] = Position { base: Some(next), offset: 0 };
        Some(at)
    }
}

/// Fetches the line of the iteration of loop `step`, of those that begin at `at` and go on along `dim`.
fn fetch_line<'c>(e: &mut Emit<'c>, operand: &Operand<'c>, mut at: Vec<Position<'c>>, (step, dim): (usize, usize)) {
    let element = e.times(at[step], CACHE_LINE_BYTES / element_bytes(operand));
    at[dim] = if dim == step { element } else { e.sum(at[dim], element) };
    e.prefetch_line(operand, &at);
}
