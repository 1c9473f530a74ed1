//! The form whose vector loop is a reduction: several vectors of partial results, combined at the end.
//!
//! ```text
//! for i:
//!   part[r] = neutral, rest = out[i]
//!   for the other loops that sum:
//!     for j (R vectors at a time): part[r] = combine(part[r], body(in[i, j + r L .. j + (r + 1) L]))
//!     for what is left of j:       rest = combine(rest, body(in[i, j])), or of known length, a vector that ends with the row
//!   out[i] = combine(rest, all lanes of part)
//! ```
//!
//! Rows that read the same elements of some input, as those of a product with a vector, are summed side by side: loads are
//! shared, and short rows have too few partial results to hide the latency of an addition. Long rows of a matrix that no cache
//! of a core holds are read one after the other: the prefetcher follows one stream at a time to the end of the matrix, where two
//! rows side by side are two that end with each row (50257 x 768 of f16: 20 GB/s, 38 one after the other, and 50 where lines are
//! fetched [`AHEAD_BYTES`] ahead, too).
//! Rows of a product whose other factor is computed of integers are a tile with some of its columns: all of them read what is computed
//! once (8 rows and weights of 4 bits, 1024 x 2816: 0.73 ms, 1.6 one row after the other).
//! The lane of each element follows from the shape and the target alone, so that the result does not depend on threads.

use super::block_dots;
use super::body::{self, Place, Values};
use super::choose::{Choice, Declined, Numbers, choose, even};
use super::columns;
use super::combine::{self, Combiner};
use super::emit::{Emit, Position, WIDE_ELEMENT_BYTES, Width, element_bytes};
use super::form::Form;
use super::lookups;
use super::nest::{Access, Nest, Operand};
use monopour_ir::{Value, ops};
use monopour_program::CpuTarget;

/// Most rows side by side, and partial results of all of them.
const ROWS: i64 = 4;
const PARTS: i64 = 8;
/// Rows, and those of the other loop, of a tile that shares computed elements: of 32 registers, of 16.
const COMPUTED_TILES: [[i64; 2]; 2] = [[4, 4], [2, 4]];
/// Most columns that are few, and sums of a tile of them and rows: of 32 registers, of 16.
const MOST_FEW: i64 = 3;
const FEW_SUMS: [i64; 2] = [18, 9];
/// Most columns of few bits that are multiplied by one row, and bytes of them: they are read from memory as one stream, a tile after
/// the other (78 MB of a step of Llama's: 2.7 ms with tiles of 4 KB, 3.1 with 8, 6.0 with 8 columns as so many streams).
const MOST_COLUMNS: i64 = 8;
const COLUMN_BYTES: i64 = 4 << 10;
/// Longest row of which several are summed side by side though they share nothing: adding up its lanes takes as long.
const SHORT: i64 = 256;
/// Most iterations of a loop that is written out.
const FEW: i64 = 4;
/// Least bytes of a row of a streamed matrix, and of the matrix.
const STREAMED_ROW_BYTES: i64 = 1 << 10;
const STREAMED_BYTES: i64 = 256 << 10;
/// Bytes between a line that is read and the line that is fetched then.
const AHEAD_BYTES: i64 = 8 << 10;

/// The form.
pub(super) struct Sums;

impl Form for Sums {
    fn plan(&self, nest: &Nest, cpu: &CpuTarget) -> Result<Choice, Declined> {
        if nest.reductions().is_empty() {
            return Err(Declined::NotAsked);
        }
        if let Some(choice) = few_bits(nest, cpu) {
            return Ok(choice);
        }
        let choice = choose(nest, cpu)?;
        if !nest.loops[choice.dim].reduction {
            return Err(Declined::NotAsked);
        }
        let together = (PARTS / choice.registers).min(ROWS);
        let is_streamed = |row: &usize| nest.inputs.iter().any(|o| is_streamed(nest, o, choice.dim, *row));
        let row = row(nest, choice.dim, together).filter(|row| !is_streamed(row));
        let rows = row.map(|row| (row, together));
        let choice = Choice { rows, ..choice };
        let shared = computed_rows(nest, &choice, cpu).or_else(|| few_columns(nest, &choice, cpu));
        Ok(shared.unwrap_or(choice))
    }

    fn updates_in_blocks(&self, _: &Choice) -> bool {
        false
    }

    fn write<'c>(&self, e: &mut Emit<'c>, nest: &Nest<'c>, choice: &Choice) {
        emit(e, nest, choice);
    }
}

/// The last parallel loop of at least `least` iterations that read the same of some input along `dim`, or of short rows.
fn row(nest: &Nest, dim: usize, least: i64) -> Option<usize> {
    let long = |d: &usize| !nest.loops[*d].reduction && nest.loops[*d].extent.is_none_or(|extent| extent >= least);
    let shares = |d: &usize| nest.inputs.iter().any(|o| o.uses(dim) && !o.uses(*d));
    let short = nest.loops[dim].extent.is_some_and(|extent| extent <= SHORT);
    let mut rows = (0..nest.loops.len()).rev().filter(long);
    rows.clone().find(shares).or_else(|| rows.next().filter(|_| short)).filter(|_| least > 1)
}

/// The tile of two loops where iterations of the other one share what the body computes of integers, such as weights of few bits.
fn computed_rows(nest: &Nest, choice: &Choice, cpu: &CpuTarget) -> Option<Choice> {
    let (row, _) = choice.rows.filter(|_| nest.outputs.len() == 1 && nest.outputs[0].element().is_float())?;
    let is_shared = |d: usize| {
        let narrow = |o: &Operand| o.element().integer_width().is_some_and(|width| width <= 8);
        nest.inputs.iter().any(|o| narrow(o) && o.uses(choice.dim) && o.uses(row) && !o.uses(d))
    };
    let several = |d: usize| nest.loops[d].extent != Some(1) && !nest.loops[d].reduction;
    let more = (0..nest.loops.len()).rfind(|d| *d != row && several(*d) && is_shared(*d))?;
    let many_registers = cpu.vector_bits >= 512 || cpu.arch == "aarch64";
    let [beside, most] = if many_registers { COMPUTED_TILES[0] } else { COMPUTED_TILES[1] };
    let count = nest.loops[more].extent.map_or(most, |extent| even(extent, most));
    Some(Choice { registers: 1, rows: Some((row, beside)), more_rows: Some((more, count)), ..choice.clone() })
}

/// The tile of a product of floats with a few columns, such as the colours that a convolution makes: each vector of a row is read
/// once for all of them, and those of the columns once for several rows.
fn few_columns(nest: &Nest, choice: &Choice, cpu: &CpuTarget) -> Option<Choice> {
    let [a, b] = &nest.inputs[..] else { return None };
    let plain = |o: &Operand| o.element().is_float() && o.access(choice.dim) == Access::Contiguous;
    let is_sum = nest.outputs.len() == 1 && plain(a) && plain(b) && nest.reductions().len() > 1;
    let is_tile = |d: usize, by: &Operand, other: &Operand| !nest.loops[d].reduction && by.uses(d) && !other.uses(d);
    let count = |d: usize| nest.loops[d].extent.filter(|extent| *extent > 1);
    let few = |of: &Operand, other: &Operand| {
        let mut columns = (0..nest.loops.len()).filter(|d| is_tile(*d, of, other) && count(*d).is_some());
        columns.next().filter(|d| columns.next().is_none() && count(*d).is_some_and(|count| count <= MOST_FEW))
    };
    let (column, image, filter) = match (few(a, b), few(b, a)) {
        (Some(column), None) => (column, b, a),
        (None, Some(column)) => (column, a, b),
        _ => return None,
    };
    let row = (0..nest.loops.len()).rfind(|d| is_tile(*d, image, filter) && count(*d).is_some())?;
    let many_registers = cpu.vector_bits >= 512 || cpu.arch == "aarch64";
    let (columns, room) = (count(column)?, FEW_SUMS[usize::from(!many_registers)]);
    let rows = even(count(row)?, (room / columns).max(1));
    is_sum.then(|| Choice {
        registers: 1,
        rows: Some((row, rows)),
        more_rows: Some((column, columns)),
        ..choice.clone()
    })
}

/// A tile of columns of numbers of few bits, and of rows where there are several.
fn few_bits(nest: &Nest, cpu: &CpuTarget) -> Option<Choice> {
    let dots = block_dots::of(nest, cpu).map(Numbers::Dots);
    let numbers = dots.or_else(|| lookups::of(nest, cpu).map(Numbers::Lookup))?;
    let (few, lanes) = match numbers {
        Numbers::Dots(dots) => (dots.few, dots.lanes),
        Numbers::Lookup(lookup) => (lookup.0, lookups::LANES),
    };
    let numbers_of = &nest.inputs[few.input];
    let has_column = |d: &usize| numbers_of.uses(*d);
    let several = |d: &usize| !nest.loops[*d].reduction && nest.loops[*d].extent != Some(1);
    let count = |d: usize, most: i64| nest.loops[d].extent.map_or(most, |extent| even(extent, most));
    let column = (0..nest.loops.len()).rfind(|d| several(d) && has_column(d));
    let row = (0..nest.loops.len()).rfind(|d| several(d) && !has_column(d)).filter(|_| column.is_some());
    let line = column.and_then(|d| numbers_of.stride_bytes(d)).filter(|bytes| *bytes > 0);
    let (registers, columns, rows) = match numbers {
        Numbers::Dots(_) if row.is_none() => {
            (1, line.map_or(2, |bytes| COLUMN_BYTES / bytes).clamp(MOST_COLUMNS / 4, MOST_COLUMNS), 1)
        }
        // Two vectors of each row, too.
        Numbers::Dots(_) => (1, ROWS, ROWS / 2),
        Numbers::Lookup(lookup) => {
            let steps = nest.loops[few.bytes].extent? / lookup.bytes_of_step();
            (if row.is_none() && steps % 2 == 0 { 2 } else { 1 }, ROWS, ROWS)
        }
    };
    Some(Choice {
        rows: column.map(|d| (d, count(d, columns))),
        more_rows: row.map(|d| (d, count(d, rows))),
        numbers: Some(numbers),
        ..Choice::vectors(few.bytes, lanes, registers, cpu)
    })
}

/// Whether an input is a matrix of floats, its rows along `dim`, that no cache of a core holds.
fn is_streamed(nest: &Nest, input: &Operand, dim: usize, row: usize) -> bool {
    let elements = |dims: &[usize]| dims.iter().map(|d| nest.loops[*d].extent).product::<Option<i64>>();
    let bytes = |dims: &[usize]| elements(dims).map(|elements| elements.saturating_mul(element_bytes(input)));
    let long = bytes(&[dim]).is_none_or(|bytes| bytes >= STREAMED_ROW_BYTES);
    let large = bytes(&[dim, row]).is_none_or(|bytes| bytes >= STREAMED_BYTES);
    let rows = input.access(dim) == Access::Contiguous && input.uses(row);
    input.element().is_float() && rows && long && large
}

/// Writes the loops.
fn emit<'c>(e: &mut Emit<'c>, nest: &Nest<'c>, choice: &Choice) {
    let combiners = combine::of(nest).expect("invariant: the choice asked for combiners");
    let mut order: Vec<usize> = (0..nest.loops.len()).filter(|d| !nest.loops[*d].reduction).collect();
    order.reverse();
    // The loops of a tile are the last ones.
    if let (Some((row, _)), Some((more, _))) = (choice.rows, choice.more_rows) {
        order.sort_by_key(|d| if *d == more { 0 } else { 1 + u8::from(*d != row) });
    }
    let mut at = vec![Position::at(0); nest.loops.len()];
    Sum { nest, choice, combiners }.outer(e, order, &mut at);
}

struct Sum<'c, 'a> {
    nest: &'a Nest<'c>,
    choice: &'a Choice,
    combiners: Vec<Combiner<'c>>,
}

impl<'c> Sum<'c, '_> {
    fn outer(&self, e: &mut Emit<'c>, mut order: Vec<usize>, at: &mut [Position<'c>]) {
        let Some(dim) = order.pop() else { return self.several(e, &[at.to_vec()]) };
        match self.choice.rows.filter(|(row, _)| *row == dim) {
            Some((row, together))
                if order.iter().all(|d| self.choice.more_rows.is_some_and(|(more, _)| more == *d)) =>
            {
                for segment in e.segments(&self.nest.loops[row], &[together, 1]) {
                    e.for_each(segment, &[], &mut |e, here, _| {
                        let place = |n: i64| {
                            let mut at = at.to_vec();
                            at[row] = here.plus(n);
                            at
                        };
                        self.tile(e, &(0..segment.step).map(place).collect::<Vec<_>>());
                        vec![]
                    });
                }
            }
            _ => {
                let segment = e.whole(&self.nest.loops[dim]);
                e.for_each(segment, &[], &mut |e, here, _| {
                    at[dim] = here;
                    self.outer(e, order.clone(), at);
                    vec![]
                });
            }
        }
    }

    /// Some rows, and those of the other loop of the tile.
    fn tile(&self, e: &mut Emit<'c>, rows: &[Vec<Position<'c>>]) {
        let Some((more, together)) = self.choice.more_rows else { return self.several(e, rows) };
        let mut sizes: Vec<i64> =
            std::iter::successors(Some(together), |size| Some(size / 2)).take_while(|size| *size > 0).collect();
        sizes.dedup();
        for segment in e.segments(&self.nest.loops[more], &sizes) {
            e.for_each(segment, &[], &mut |e, here, _| {
                let place = |at: &Vec<Position<'c>>, n: i64| {
                    let mut at = at.clone();
                    at[more] = here.plus(n);
                    at
                };
                let all: Vec<_> = (0..segment.step).flat_map(|n| rows.iter().map(move |at| place(at, n))).collect();
                self.several(e, &all);
                vec![]
            });
        }
    }

    /// One element of each output for each of some rows. The state is, per row and output, the partial vectors and then the
    /// scalar.
    fn several(&self, e: &mut Emit<'c>, rows: &[Vec<Position<'c>>]) {
        let (dim, registers) = (self.choice.dim, self.choice.registers);
        let mut state = vec![];
        for at in rows {
            for (output, combiner) in self.nest.outputs.iter().zip(&self.combiners) {
                let start = self.nest.start.unwrap_or_else(|| e.load(output, at, dim, 1));
                let lanes = if combiner.is_idempotent() {
                    e.splat(start, self.choice.lanes)
                } else {
                    e.constant(combiner.neutral(), combiner.ty(), self.choice.lanes)
                };
                state.extend(vec![lanes; registers as usize]);
                state.push(start);
            }
        }
        let is_inner = |d: &usize| match self.choice.numbers {
            Some(Numbers::Dots(dots)) => dots.has(*d),
            Some(Numbers::Lookup(lookup)) => lookup.0.has(*d),
            None => *d == dim,
        };
        let others: Vec<usize> = self.nest.reductions().into_iter().filter(|d| !is_inner(d)).collect();
        let state = self.sum(e, &others, rows.to_vec(), &state);
        let per_output = registers as usize + 1;
        let outputs = self.nest.outputs.len();
        for (i, parts) in state.chunks(per_output).enumerate() {
            let value = self.gather(e, i % outputs, parts);
            e.store(value, &self.nest.outputs[i % outputs], &rows[i / outputs]);
        }
    }

    /// The other reductions, outermost first.
    fn sum(
        &self,
        e: &mut Emit<'c>,
        loops: &[usize],
        rows: Vec<Vec<Position<'c>>>,
        state: &[Value<'c>],
    ) -> Vec<Value<'c>> {
        let Some((outer, inner)) = loops.split_first() else { return self.along(e, rows, state) };
        // A few iterations one by one: what depends on their number alone is a constant.
        let few = self.nest.loops[*outer].extent.filter(|extent| inner.is_empty() && *extent <= FEW);
        if let Some(few) = few {
            return (0..few).fold(state.to_vec(), |state, here| {
                let mut rows = rows.clone();
                rows.iter_mut().for_each(|at| at[*outer] = Position::at(here));
                self.sum(e, inner, rows, &state)
            });
        }
        let segment = e.whole(&self.nest.loops[*outer]);
        e.for_each(segment, state, &mut |e, here, state| {
            let mut rows = rows.clone();
            rows.iter_mut().for_each(|at| at[*outer] = here);
            self.sum(e, inner, rows, state)
        })
    }

    /// The vector loop.
    fn along(&self, e: &mut Emit<'c>, rows: Vec<Vec<Position<'c>>>, state: &[Value<'c>]) -> Vec<Value<'c>> {
        let add = |e: &mut Emit<'c>, sum, term| self.combine(e, 0, sum, term);
        match self.choice.numbers {
            Some(Numbers::Dots(dots)) => return dots.along(e, self.nest, &rows, state, &add),
            Some(Numbers::Lookup(lookup)) => {
                return lookup.along(e, (self.nest, self.choice.registers), &rows, state, &add);
            }
            None => (),
        }
        let (dim, lanes, registers) = (self.choice.dim, self.choice.lanes, self.choice.registers);
        let per_output = registers as usize + 1;
        let mut state = state.to_vec();
        let mut sizes = vec![registers * lanes, lanes, 1];
        sizes.dedup();
        for segment in e.segments(&self.nest.loops[dim], &sizes) {
            // The part of the state that a step updates.
            let slots: Vec<usize> = match segment.step {
                1 => vec![per_output - 1],
                step => (0..(step / lanes) as usize).collect(),
            };
            let width = if segment.step == 1 { 1 } else { lanes };
            if width == 1 && segment.steps() > 1 && self.fills_a_vector() {
                self.rest(e, &rows, &mut state, segment.steps());
                continue;
            }
            state = e.for_each(segment, &state, &mut |e, here, state| {
                if segment.step == registers * lanes {
                    self.fetch_ahead(e, &rows, here);
                    self.fetch_columns(e, &rows, here);
                }
                let mut next = state.to_vec();
                for slot in &slots {
                    let mut shared = Values::new();
                    for (row, at) in rows.iter().enumerate() {
                        let mut at = at.clone();
                        at[dim] = here.plus(if width == 1 { 0 } else { *slot as i64 * lanes });
                        for (i, term) in self.terms(e, &at, width, &mut shared).into_iter().enumerate() {
                            let part = &mut next[(row * self.nest.outputs.len() + i) * per_output + slot];
                            *part = self.combine(e, i, *part, term);
                        }
                    }
                }
                next
            });
        }
        state
    }

    /// Fetches what the vector loop reads of streamed rows some steps later: of this row, or of those behind it.
    fn fetch_ahead(&self, e: &mut Emit<'c>, rows: &[Vec<Position<'c>>], here: Position<'c>) {
        let (dim, width) = (self.choice.dim, self.choice.registers * self.choice.lanes);
        let parallel = (0..self.nest.loops.len()).rev().find(|d| !self.nest.loops[*d].reduction);
        let (Some(row), [at]) = (parallel, rows) else { return };
        let is_ahead = |o: &&Operand| element_bytes(o) < WIDE_ELEMENT_BYTES && is_streamed(self.nest, o, dim, row);
        for input in self.nest.inputs.iter().filter(is_ahead) {
            let mut at = at.clone();
            at[dim] = here.plus(AHEAD_BYTES / element_bytes(input));
            e.prefetch_soon(input, &at, dim, width);
        }
    }

    /// Fetches what the vector loop reads of bytes some columns later.
    fn fetch_columns(&self, e: &mut Emit<'c>, rows: &[Vec<Position<'c>>], here: Position<'c>) {
        let (dim, step) = (self.choice.dim, self.choice.registers * self.choice.lanes);
        for (input, operand) in self.nest.inputs.iter().enumerate() {
            let is_byte = operand.element().integer_width() == Some(8) && !self.nest.body.arg(input).is_unused();
            if is_byte && operand.access(dim) == Access::Contiguous {
                columns::fetch_bytes_ahead(e, (self.nest, input), rows, (dim, here), step);
            }
        }
    }

    /// Whether rows are of known length, which fills a vector, and are read in vectors.
    fn fills_a_vector(&self) -> bool {
        let plain = |o: &Operand| matches!(o.access(self.choice.dim), Access::Invariant | Access::Contiguous);
        let extent = self.nest.loops[self.choice.dim].extent;
        extent.is_some_and(|extent| extent >= self.choice.lanes) && self.nest.inputs.iter().all(plain)
    }

    /// The last `rest` elements of rows of known length: a vector that ends with the row, whose other lanes add nothing.
    fn rest(&self, e: &mut Emit<'c>, rows: &[Vec<Position<'c>>], state: &mut [Value<'c>], rest: i64) {
        let (dim, lanes) = (self.choice.dim, self.choice.lanes);
        let extent = self.nest.loops[dim].extent.expect("invariant: it was asked");
        let (outputs, per_output) = (self.nest.outputs.len(), self.choice.registers as usize + 1);
        let mask: Vec<i64> = (0..lanes).map(|lane| if lane < lanes - rest { lane } else { lanes + lane }).collect();
        let mut shared = Values::new();
        for (row, at) in rows.iter().enumerate() {
            let mut at = at.clone();
            at[dim] = Position::at(extent - lanes);
            for (i, term) in self.terms(e, &at, lanes, &mut shared).into_iter().enumerate() {
                let combiner = &self.combiners[i];
                let term = match combiner.is_idempotent() {
                    true => term,
                    false => {
                        let nothing = e.constant(combiner.neutral(), combiner.ty(), lanes);
                        e.shuffle(nothing, term, &mask)
                    }
                };
                // The last part: it has fewer terms than the first.
                let part = &mut state[(row * outputs + i) * per_output + per_output - 2];
                *part = self.combine(e, i, *part, term);
            }
        }
    }

    /// The terms that each output's accumulator is combined with. `shared` holds what all rows read.
    fn terms(&self, e: &mut Emit<'c>, at: &[Position<'c>], width: Width, shared: &mut Values<'c>) -> Vec<Value<'c>> {
        let mut values = shared.clone();
        for (i, input) in self.nest.inputs.iter().enumerate() {
            let arg = self.nest.body.arg(i);
            if !arg.is_unused() && !values.contains_key(&arg) {
                let value = e.load(input, at, self.choice.dim, width);
                values.insert(arg, value);
                let differs = |rows: Option<(usize, i64)>| rows.is_some_and(|(row, _)| input.uses(row));
                if self.choice.rows.is_some() && !differs(self.choice.rows) && !differs(self.choice.more_rows) {
                    shared.insert(arg, value);
                }
            }
        }
        let wanted: Vec<Value> = self.combiners.iter().map(|c| c.term).collect();
        let place = Place { at, dim: self.choice.dim, width };
        let terms = body::emit(e, self.nest, place, &mut values, &wanted);
        terms.into_iter().map(|v| e.splat(v, width)).collect()
    }

    /// `sum` is the accumulator, or a part of it.
    fn combine(&self, e: &mut Emit<'c>, output: usize, sum: Value<'c>, term: Value<'c>) -> Value<'c> {
        let combiner = &self.combiners[output];
        match combiner.outdoes().filter(|_| self.nest.start.is_some_and(combine::is_number)) {
            // No accumulator is NaN: a comparison, which picks it where the term is.
            Some(predicate) => {
                let picks = e.compare(predicate, term, sum);
                e.op(ops::arith::SELECT, &[picks, term, sum], sum.ty())
            }
            None => e.recreate(combiner.op, &[sum, term], &[sum.ty()]).result(0),
        }
    }

    /// Reduces the partial vectors and the scalar to one value.
    fn gather(&self, e: &mut Emit<'c>, output: usize, parts: &[Value<'c>]) -> Value<'c> {
        let (rest, vectors) = parts.split_last().expect("invariant: the state has a scalar");
        let mut vectors = vectors.to_vec();
        // Pairwise: a tree is shallow, and rounds less.
        while vectors.len() > 1 {
            vectors = vectors
                .chunks(2)
                .map(|pair| pair.get(1).map_or(pair[0], |second| self.combine(e, output, pair[0], *second)))
                .collect();
        }
        let mut vector = vectors[0];
        let mut lanes = self.choice.lanes;
        while lanes > 1 {
            lanes /= 2;
            let (low, high) = (e.lanes(vector, 0, lanes), e.lanes(vector, lanes, lanes));
            vector = self.combine(e, output, low, high);
        }
        self.combine(e, output, *rest, vector)
    }
}
