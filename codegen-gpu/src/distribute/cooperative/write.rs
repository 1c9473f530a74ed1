//! Emits a planned product: copies, matrices, epilogue.

use super::super::code::Code;
use super::super::contraction::axes::Spread;
use super::super::evaluate::{Evaluator, Point, Reach};
use super::super::fitted::FittedChoice;
use super::super::matrices::{self, HALVES, MATRIX};
use super::super::model::{Base, Source};
use super::direct::Results;
use super::{Extent, Factor, Plan};
use monopour_ir::typed::gpu::MatrixRole;
use monopour_ir::{Diagnostics, Type, Value, ops};

/// A factor in workgroup memory, and an invocation's part of copying it.
struct Copied<'c> {
    buffer: Value<'c>,
    /// The invocation's vectors, one per round.
    vectors: Vec<Vector<'c>>,
}

/// A vector that an invocation copies in each step.
struct Vector<'c> {
    /// Its place in the argument, in the first step.
    from: Value<'c>,
    /// Its first iteration of the reduction within a step.
    k: Value<'c>,
    /// Its place in the copy.
    to: Value<'c>,
}

/// The workgroup's memory, and the part of the tile that the subgroup has.
struct Writer<'c, 'a, 'm> {
    evaluator: &'a Evaluator<'c, 'm>,
    plan: &'a Plan<'c, 'm>,
    copies: [Copied<'c>; 2],
    lane: Value<'c>,
    subgroup: Value<'c>,
    first_row: Value<'c>,
    first_column: Value<'c>,
}

/// Writes the kernel.
pub(super) fn write<'c>(
    code: &mut Code<'c, '_>,
    evaluator: &Evaluator<'c, '_>,
    plan: &Plan<'c, '_>,
    kernel: &FittedChoice,
) -> Result<(), Diagnostics> {
    let tile = &plan.tile;
    let linear = code.linear_id(kernel.workgroup_size);
    let index = code.index;
    let (subgroup, lane) = (code.op1(ops::gpu::SUBGROUP_ID, &[], index), code.op1(ops::gpu::LANE_ID, &[], index));
    let across = code.c(tile.across);
    let (down, over) = (code.div(subgroup, across), code.rem(subgroup, across));
    let first_row = code.mul_const(down, tile.rows_each);
    let first_column = code.mul_const(over, tile.columns_each);
    let copies = [copied(code, evaluator, plan, linear, 0)?, copied(code, evaluator, plan, linear, 1)?];
    let writer = Writer { evaluator, plan, copies, lane, subgroup, first_row, first_column };
    let Some(direct) = &plan.direct else {
        let memory = code.workgroup_buffer(code.loc, Type::f32(code.cx), plan.summed())?;
        let sums = writer.products(code)?;
        return writer.finish(code, memory, &sums);
    };
    let sums = writer.products(code)?;
    let rank = plan.axes.extents.len();
    let results = Results { evaluator, fused: &plan.fused, direct, lanes: tile.lanes, rank };
    let over = writer.matrices().1;
    for (at, sums) in (0i64..).zip(sums) {
        let row = code.add_const(first_row, at / over * MATRIX);
        let column = code.add_const(first_column, at % over * MATRIX);
        results.write(code, (row, column), sums)?;
    }
    Ok(())
}

/// Where the invocation `linear` copies a factor from and to.
fn copied<'c>(
    code: &mut Code<'c, '_>,
    evaluator: &Evaluator<'c, '_>,
    plan: &Plan<'c, '_>,
    linear: Value<'c>,
    which: usize,
) -> Result<Copied<'c>, Diagnostics> {
    let buffer = code.workgroup_buffer(code.loc, Type::f16(code.cx), plan.copied(which))?;
    let factor = &plan.factors[which];
    let (extent, positions) = if which == 0 { (plan.rows, plan.tile.rows) } else { (plan.columns, plan.tile.columns) };
    let (lines, run) = plan.lines(which);
    let origin = evaluator.origin(code, &evaluator.model.slices[factor.slice]);
    let origin = code.add_const(origin, factor.constant);
    let per_line = code.c(run / HALVES);
    let (first, along) = (code.div(linear, per_line), code.rem(linear, per_line));
    let along = code.mul_const(along, HALVES);
    // All rounds have the same part of their lines.
    let lines_apart = plan.tile.invocations * HALVES / run;
    let is_whole = extent.exact() == Some(positions);
    let to = code.mul_const(first, plan.pitch(which));
    let to = code.add(to, along);
    let mut vectors = vec![];
    for round in 0..lines * run / (plan.tile.invocations * HALVES) {
        let line = code.add_const(first, round * lines_apart);
        let (position, k) = if factor.along_k { (line, along) } else { (along, line) };
        let from = if !factor.outer_positions.is_empty() {
            let position = clamped(code, &extent, position, 1);
            let spread = plan.axes.split(code, (&plan.axes.outer_rows, plan.row()), position, 1);
            let strides = [factor.position].into_iter().chain(factor.outer_positions.iter().copied());
            let (at, depth) = (spread.scale(code, strides), factor.k.scale(code, k));
            let at = code.add(origin, at);
            code.add(at, depth)
        } else if is_whole {
            let (position, k) = if factor.along_k { (first, along) } else { (along, first) };
            let at = place(code, factor, origin, (position, k));
            let apart = if factor.along_k { factor.position } else { factor.k };
            apart.from(code, at, round * lines_apart)
        } else {
            let position = clamped(code, &extent, position, if factor.along_k { 1 } else { HALVES });
            place(code, factor, origin, (position, k))
        };
        let to = code.add_const(to, round * lines_apart * plan.pitch(which));
        vectors.push(Vector { from, k, to });
    }
    Ok(Copied { buffer, vectors })
}

/// The element of a factor at a position and an iteration of the first step.
fn place<'c>(
    code: &mut Code<'c, '_>,
    factor: &Factor<'c>,
    origin: Value<'c>,
    (position, k): (Value<'c>, Value<'c>),
) -> Value<'c> {
    let (at, depth) = (factor.position.scale(code, position), factor.k.scale(code, k));
    let at = code.add(origin, at);
    code.add(at, depth)
}

/// `at + by`, a constant of `at` added last.
fn moved_by<'c>(code: &mut Code<'c, '_>, at: Value<'c>, by: Value<'c>) -> Value<'c> {
    let sum = at.defining_op().filter(|op| op.is(ops::arith::ADDI)).map(|op| (op.operand(0), op.operand(1)));
    match sum.and_then(|(rest, constant)| Some((rest, constant.constant_int()?))) {
        Some((rest, constant)) => {
            let moved = code.add(rest, by);
            code.add_const(moved, constant)
        }
        None => code.add(at, by),
    }
}

/// A position, not beyond the last `width` of the extent.
fn clamped<'c>(code: &mut Code<'c, '_>, extent: &Extent<'c>, position: Value<'c>, width: i64) -> Value<'c> {
    let end = extent.value(code);
    let last = code.add_const(end, -width);
    code.min(position, last)
}

impl<'c> Writer<'c, '_, '_> {
    /// Matrices along the rows and along the columns of a subgroup's part.
    fn matrices(&self) -> (i64, i64) {
        (self.plan.tile.rows_each / MATRIX, self.plan.tile.columns_each / MATRIX)
    }

    /// The sums of the subgroup's part, by rows.
    fn products(&self, code: &mut Code<'c, '_>) -> Result<Vec<Value<'c>>, Diagnostics> {
        let (down, over) = self.matrices();
        let zero = matrices::zero(code);
        let (step, depth) = (self.plan.tile.step, self.plan.depth);
        let first = code.c(0);
        let mut carried = self.load(code, first);
        let loaded = carried.len();
        carried.extend(vec![zero; (down * over) as usize]);
        let bounds = [code.c(0), code.c(depth), code.c(step)];
        let out = code.for_loop(bounds, &carried, |code, k, carried| {
            // The step before must have read what is overwritten.
            code.barrier()?;
            self.store(code, &carried[..loaded])?;
            code.barrier()?;
            let next = code.add_const(k, step);
            let last = code.c((depth - 1) / step * step);
            let next = code.min(next, last);
            let mut out = self.load(code, next);
            out.extend(self.step(code, &carried[loaded..])?);
            Ok(out)
        })?;
        Ok(out[loaded..].to_vec())
    }

    /// What the invocation copies in the step at `k`.
    fn load(&self, code: &mut Code<'c, '_>, k: Value<'c>) -> Vec<Value<'c>> {
        let (step, depth) = (self.plan.tile.step, self.plan.depth);
        let mut out = vec![];
        for (factor, copy) in self.plan.factors.iter().zip(&self.copies) {
            for vector in &copy.vectors {
                let inside = (depth % step != 0).then(|| {
                    let at = code.add(k, vector.k);
                    let end = code.c(depth);
                    code.less(at, end)
                });
                let moved = self.moved(code, factor, k);
                let mut at = moved_by(code, vector.from, moved);
                if let Some(inside) = inside {
                    let zero = code.c(0);
                    at = code.op1(ops::arith::SELECT, &[inside, at, zero], code.index);
                }
                let mut value = self.evaluator.load(code, factor.slice, at, Reach::Wide, HALVES as u32);
                if let Some(inside) = inside {
                    let zero = code.zero(Type::f16(code.cx));
                    let zero = code.broadcast(zero, HALVES as u32);
                    value = code.op1(ops::arith::SELECT, &[inside, value, zero], value.ty());
                }
                out.push(value);
            }
        }
        out
    }

    /// The elements of a factor up to the step at `k`.
    fn moved(&self, code: &mut Code<'c, '_>, factor: &Factor<'c>, k: Value<'c>) -> Value<'c> {
        if self.plan.inner_depth == self.plan.depth {
            return factor.k.scale(code, k);
        }
        let length = code.c(self.plan.inner_depth);
        let (outer, inner) = (code.div(k, length), code.rem(k, length));
        let (outer, inner) = (factor.outer_k.scale(code, outer), factor.k.scale(code, inner));
        code.add(outer, inner)
    }

    /// Copies what was loaded.
    fn store(&self, code: &mut Code<'c, '_>, loaded: &[Value<'c>]) -> Result<(), Diagnostics> {
        let places = self.copies.iter().flat_map(|copy| copy.vectors.iter().map(move |v| (copy.buffer, v.to)));
        for ((buffer, to), value) in places.zip(loaded) {
            code.store(*value, buffer, to)?;
        }
        Ok(())
    }

    /// Adds the products of a step.
    fn step(&self, code: &mut Code<'c, '_>, sums: &[Value<'c>]) -> Result<Vec<Value<'c>>, Diagnostics> {
        let (down, over) = self.matrices();
        let mut sums = sums.to_vec();
        for k in (0..self.plan.tile.step).step_by(MATRIX as usize) {
            let mut left = vec![];
            for i in 0..down {
                left.push(self.part(code, 0, i * MATRIX, k)?);
            }
            for j in 0..over {
                let right = self.part(code, 1, j * MATRIX, k)?;
                for i in 0..down {
                    let sum = &mut sums[(i * over + j) as usize];
                    *sum = matrices::multiply_add(code, [left[i as usize], right, *sum]);
                }
            }
        }
        Ok(sums)
    }

    /// The matrix of a factor at a position of the subgroup's part, and an iteration of the step.
    fn part(&self, code: &mut Code<'c, '_>, which: usize, position: i64, k: i64) -> Result<Value<'c>, Diagnostics> {
        let first = if which == 0 { self.first_row } else { self.first_column };
        let pitch = self.plan.pitch(which);
        let along_k = self.plan.factors[which].along_k;
        let at = if along_k { code.mul_const(first, pitch) } else { first };
        let at = code.add_const(at, if along_k { position * pitch + k } else { position + k * pitch });
        let role = if which == 0 { MatrixRole::A } else { MatrixRole::B };
        // Rows of the left matrix are positions, those of the right one iterations.
        let is_transposed = along_k != (which == 0);
        matrices::load(code, role, (self.copies[which].buffer, at), (pitch, is_transposed))
    }

    /// Computes the epilogue and stores the results, few matrices at a time.
    fn finish(&self, code: &mut Code<'c, '_>, memory: Value<'c>, sums: &[Value<'c>]) -> Result<(), Diagnostics> {
        let plan = self.plan;
        let own = code.mul_const(self.subgroup, MATRIX * plan.sums_pitch());
        let (over, at_once) = (self.matrices().1, plan.summed_columns() / MATRIX);
        for (i, sums) in (0i64..).zip(sums.chunks(at_once as usize)) {
            let (row, column) = (i * at_once / over * MATRIX, i * at_once % over * MATRIX);
            // The sums before must have been read.
            code.barrier()?;
            for (j, sum) in (0i64..).zip(sums) {
                let at = code.add_const(own, j * MATRIX);
                matrices::store(code, *sum, (memory, at), plan.sums_pitch())?;
            }
            code.barrier()?;
            self.results(code, (memory, own), (row, column))?;
        }
        Ok(())
    }

    /// Stores the results of the sums that are in workgroup memory, which begin at a row and a column of the subgroup's part.
    fn results(
        &self,
        code: &mut Code<'c, '_>,
        (memory, own): (Value<'c>, Value<'c>),
        (row, column): (i64, i64),
    ) -> Result<(), Diagnostics> {
        let plan = self.plan;
        let (lanes, columns) = (i64::from(plan.lanes), plan.summed_columns());
        let first_row = code.add_const(self.first_row, row);
        let first_column = code.add_const(self.first_column, column);
        let rounds = code.c(MATRIX * columns / (plan.tile.lanes * lanes));
        code.repeat(rounds, |code, round| {
            let item = code.mul_const(round, plan.tile.lanes);
            let item = code.add(item, self.lane);
            let per_row = code.c(columns / lanes);
            let (row, column) = (code.div(item, per_row), code.rem(item, per_row));
            let column = code.mul_const(column, lanes);
            let at = code.mul_const(row, plan.sums_pitch());
            let at = code.add(at, column);
            let at = code.add(own, at);
            let sum = code.load(memory, at, plan.lanes);
            let row = code.add(first_row, row);
            let column = code.add(first_column, column);
            self.result(code, (row, column), sum)
        })
    }

    /// The epilogue at a place of the tile, which may lie beyond the edge.
    fn result(
        &self,
        code: &mut Code<'c, '_>,
        (row, column): (Value<'c>, Value<'c>),
        sum: Value<'c>,
    ) -> Result<(), Diagnostics> {
        let plan = self.plan;
        let inside = |code: &mut Code<'c, '_>, extent: &Extent<'c>, whole: i64, at: Value<'c>| {
            if extent.exact() == Some(whole) {
                return None;
            }
            let end = extent.value(code);
            Some(code.less(at, end))
        };
        let rows = inside(code, &plan.rows, plan.tile.rows, row);
        let columns = inside(code, &plan.columns, plan.tile.columns, column);
        let guard = code.both(rows, columns);
        let spread = if plan.axes.outer_rows.is_empty() {
            Spread { coordinates: vec![(plan.row(), row)], guard: None }
        } else {
            let row = clamped(code, &plan.rows, row, 1);
            plan.axes.split(code, (&plan.axes.outer_rows, plan.row()), row, 1)
        };
        let guard = code.both(guard, spread.guard);
        code.guarded(guard, |code| {
            let zero = code.c(0);
            let mut coordinates = vec![zero; plan.axes.extents.len()];
            let of_column = plan.axes.column.map(|c| (c, column));
            for (c, at) in spread.coordinates.iter().copied().chain(of_column) {
                coordinates[c] = at;
            }
            let mut point = Point::new(coordinates, plan.lanes);
            for op in &plan.fused.before {
                self.evaluator.evaluate(code, op, &mut point)?;
            }
            let sum = self.with_initial(code, &point, sum)?;
            if let Source::Slice(result) = plan.fused.op.outputs()[0].source {
                point.held.insert(result, sum);
            }
            for op in &plan.fused.after {
                self.evaluator.evaluate(code, op, &mut point)?;
            }
            let writers = plan.fused.ops();
            // There are no later groups, so local buffers need no memory.
            self.evaluator.store(code, &writers, &point, |base| matches!(base, Base::Argument(_)))
        })
    }

    /// The sum and what the result held before: what an op before wrote, else loaded.
    fn with_initial(
        &self,
        code: &mut Code<'c, '_>,
        point: &Point<'c>,
        sum: Value<'c>,
    ) -> Result<Value<'c>, Diagnostics> {
        let op = self.plan.fused.op;
        let outer = op.outer.as_ref().expect("invariant: planned");
        let zero = code.c(0);
        let mut loops = vec![zero; op.sizes.len()];
        for (l, c) in outer.iter().zip(&point.coordinates) {
            loops[*l] = *c;
        }
        let initial = self.evaluator.operand(code, op, &op.outputs()[0], &loops, point)?;
        let initial = code.broadcast(initial, self.plan.lanes);
        Ok(code.op1(ops::arith::ADDF, &[initial, sum], sum.ty()))
    }
}
