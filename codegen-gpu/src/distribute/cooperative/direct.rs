//! Results that matrices are stored as, without workgroup memory: whole tiles whose epilogue needs no places.
//!
//! Before: a matrix of sums, and elementwise ops on its elements, on elements of matrices of the same place in memory and on
//! rows or columns of them.
//! After: what the epilogue reads is loaded as matrices of sums, lines of which may be one line (a pitch of 0); each invocation
//! computes on the elements that it holds; matrices of the results are stored.
//!
//! On an H200 (driver 580) a product of 4096 takes 0.54 ms so and 0.59 to 0.90 through workgroup memory.

use super::super::code::{Code, facts};
use super::super::evaluate::{Evaluator, Point, is_vectorizable};
use super::super::groups::Fused;
use super::super::matrices::{self, MATRIX};
use super::super::model::{Base, Operand, Source, TileOp};
use super::super::stride::{Linear, Stride};
use super::{Axes, Extent, Tile};
use monopour_ir::typed::gpu::MatrixRole;
use monopour_ir::{Diagnostics, Type, Value, ops};

/// Bytes that lines of a matrix in memory begin at multiples of.
const ALIGNMENT: i64 = 16;

/// A matrix in an argument, at a place of the tile.
#[derive(Clone, Debug)]
struct Part<'c> {
    slice: usize,
    base: Base,
    element: Type<'c>,
    /// Elements between rows, and between columns: one of them is a line's.
    row: i64,
    column: i64,
    constant: i64,
}

/// What is read and written.
#[derive(Clone, Debug)]
pub(super) struct Direct<'c> {
    reads: Vec<Part<'c>>,
    writes: Vec<Part<'c>>,
    /// Whether the results are the sums, but for their type.
    is_plain: bool,
}

/// The results of a product, if they can be stored so.
pub(super) fn plan<'c>(
    evaluator: &Evaluator<'c, '_>,
    fused: &Fused<'c, '_>,
    (axes, rows, columns): (&Axes<'c>, &Extent<'c>, &Extent<'c>),
    tile: &Tile,
    most_bytes: u64,
) -> Option<Direct<'c>> {
    let is_whole = rows.exact() == Some(tile.rows) && columns.exact() == Some(tile.columns);
    let pointwise = || fused.before.iter().chain(&fused.after);
    let fits = is_whole && pointwise().all(|op| is_vectorizable(op) && op.gathered.is_empty() && op.inner().is_empty());
    let (Some(row), Some(column)) = (axes.row.filter(|_| fits), axes.column) else { return None };
    let [reads, writes] = accesses(evaluator, fused, (row, column))?;
    // What is read of a buffer that is written is read at the same places.
    let offset = |part: &Part| evaluator.model.slices[part.slice].offset;
    let is_same = |a: &Part, b: &Part| {
        (a.row, a.column, a.constant, a.element) == (b.row, b.column, b.constant, b.element) && offset(a) == offset(b)
    };
    let overlaps = |read: &Part, write: &Part| read.base == write.base && !is_same(read, write);
    // A buffer of several bindings is accessed by elements.
    let is_one = |part: &Part| {
        let elements = u64::try_from(evaluator.elements(part.base)).unwrap_or(0);
        elements.saturating_mul(part.element.element_size_bytes().unwrap_or(4)) <= most_bytes
    };
    if !reads.iter().chain(&writes).all(is_one) {
        return None;
    }
    if writes.is_empty() || reads.iter().any(|read| writes.iter().any(|write| overlaps(read, write))) {
        return None;
    }
    let is_plain = reads.is_empty()
        && fused.before.iter().all(|op| is_fill_of_zero(op))
        && fused.after.iter().all(|op| is_narrowing(op));
    Some(Direct { reads, writes, is_plain })
}

/// The matrices that the ops of a product read beside its factors, and those that they write.
fn accesses<'c>(
    evaluator: &Evaluator<'c, '_>,
    fused: &Fused<'c, '_>,
    coordinates: (usize, usize),
) -> Option<[Vec<Part<'c>>; 2]> {
    let part = |op: &TileOp<'c>, operand: &Operand<'c>| Part::of(evaluator, op, operand, coordinates);
    // Slices that an op before has written, of which registers hold the elements.
    let mut written: Vec<usize> = vec![];
    let (mut reads, mut writes): (Vec<Part>, Vec<Part>) = (vec![], vec![]);
    let factors: Vec<Base> =
        fused.op.operands[..2].iter().filter_map(|factor| evaluator.model.base(factor.source)).collect();
    for op in fused.ops() {
        let is_sum = std::ptr::eq(op, fused.op);
        for (i, operand) in op.operands.iter().enumerate() {
            let Source::Slice(slice) = operand.source else { continue };
            if is_sum && i < op.num_inputs || !(is_sum || op.reads(i)) {
                continue;
            }
            if written.contains(&slice) {
                if !evaluator.is_pointwise(op, operand) {
                    return None;
                }
            } else if reads.iter().all(|read| read.slice != slice) {
                let read = part(op, operand)?;
                // Factors are loaded otherwise.
                if factors.contains(&read.base) {
                    return None;
                }
                reads.push(read);
            }
        }
        for output in op.outputs() {
            let Source::Slice(slice) = output.source else { return None };
            written.push(slice);
            let is_stored = matches!(evaluator.model.slices[slice].base, Base::Argument(_));
            if is_stored && writes.iter().all(|write| write.slice != slice) {
                writes.push(part(op, output).filter(|write| write.row == 1 || write.column == 1)?);
            }
        }
    }
    Some([reads, writes])
}

/// Whether an op fills with zero.
fn is_fill_of_zero(op: &TileOp) -> bool {
    let zero = |source: Source| match source {
        Source::Scalar(value) => {
            value.defining_op().and_then(|op| op.attr("value")?.as_float()).is_some_and(|v| v.to_bits() == 0)
        }
        Source::Slice(_) => false,
    };
    let is_copied = op
        .body
        .is_none_or(|body| body.ops().len() == 1 && body.terminator().is_some_and(|y| y.operand(0) == body.arg(0)));
    op.num_inputs == 1 && zero(op.operands[0].source) && is_copied
}

/// Whether an op converts f32 to f16, and does nothing else.
fn is_narrowing(op: &TileOp) -> bool {
    let Some(body) = op.body.filter(|_| op.num_inputs == 1 && op.outputs().len() == 1) else { return false };
    let converted = body.terminator().and_then(|y| y.operand(0).defining_op());
    converted.is_some_and(|op| op.is(ops::arith::TRUNCF) && op.operand(0) == body.arg(0)) && body.ops().len() == 2
}

impl<'c> Part<'c> {
    /// An operand of `op`, of f16 or f32, whose lines are aligned.
    fn of(
        evaluator: &Evaluator<'c, '_>,
        op: &TileOp<'c>,
        operand: &Operand<'c>,
        (row, column): (usize, usize),
    ) -> Option<Self> {
        let (Source::Slice(slice), Some(Linear { factors, constant })) = (operand.source, &operand.linear) else {
            return None;
        };
        let found = &evaluator.model.slices[slice];
        let Base::Argument(_) = found.base else { return None };
        let width = i64::from(found.element.float_width().filter(|_| found.element.is_float())?);
        let is_known = found.element == Type::f16(found.element.context()) || width == 32;
        let outer = op.outer.as_ref()?;
        let stride = |coordinate: usize| factors.get(*outer.get(coordinate)?).and_then(Stride::exact);
        let (row, column) = (stride(row)?, stride(column)?);
        let pitch = match (row, column) {
            (pitch, 1) | (1, pitch) => pitch,
            _ => return None,
        };
        let aligned = |elements: i64| elements * (width / 8) % ALIGNMENT == 0;
        let at = facts(found.offset).divisor;
        let is_aligned = aligned(pitch) && aligned(at) && aligned(*constant);
        let fits = is_known && pitch >= 0 && is_aligned;
        fits.then_some(Self { slice, base: found.base, element: found.element, row, column, constant: *constant })
    }

    /// Its first element at a place of the tile.
    fn at(&self, code: &mut Code<'c, '_>, evaluator: &Evaluator<'c, '_>, place: (Value<'c>, Value<'c>)) -> Value<'c> {
        let first = evaluator.origin(code, &evaluator.model.slices[self.slice]);
        let (row, column) = (code.mul_const(place.0, self.row), code.mul_const(place.1, self.column));
        let at = code.add(first, row);
        let at = code.add(at, column);
        code.add_const(at, self.constant)
    }

    /// The pitch of its lines, and whether they are columns.
    fn lines(&self) -> (i64, bool) {
        if self.column == 1 { (self.row, false) } else { (self.column, true) }
    }
}

/// Writes the results of a subgroup.
pub(super) struct Results<'c, 'a, 'm> {
    pub(super) evaluator: &'a Evaluator<'c, 'm>,
    pub(super) fused: &'a Fused<'c, 'm>,
    pub(super) direct: &'a Direct<'c>,
    /// Lanes of a subgroup, and coordinates of the ops.
    pub(super) lanes: i64,
    pub(super) rank: usize,
}

impl<'c> Results<'c, '_, '_> {
    /// The results of a matrix of sums at a place of the tile.
    pub(super) fn write(
        &self,
        code: &mut Code<'c, '_>,
        place: (Value<'c>, Value<'c>),
        sums: Value<'c>,
    ) -> Result<(), Diagnostics> {
        let results =
            if self.direct.is_plain { vec![sums; self.direct.writes.len()] } else { self.computed(code, place, sums)? };
        for (write, result) in self.direct.writes.iter().zip(results) {
            let at = write.at(code, self.evaluator, place);
            matrices::store_lines(code, result, (self.evaluator.buffers[&write.base], at), write.lines())?;
        }
        Ok(())
    }

    /// The results by element, as matrices of f32.
    fn computed(
        &self,
        code: &mut Code<'c, '_>,
        place: (Value<'c>, Value<'c>),
        sums: Value<'c>,
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let single = Type::f32(code.cx);
        let (zero, one) = (code.c(0), code.c(1));
        let own = |code: &mut Code<'c, '_>, matrix: Value<'c>| {
            let elements = matrices::elements(code, self.lanes)?;
            matrices::store(code, matrix, (elements, zero), MATRIX)?;
            Ok::<_, Diagnostics>(elements)
        };
        let of_sums = own(code, sums)?;
        let mut read = vec![];
        for part in &self.direct.reads {
            let (buffer, at) = (self.evaluator.buffers[&part.base], part.at(code, self.evaluator, place));
            let matrix = matrices::load(code, MatrixRole::C, (buffer, at), part.lines())?;
            let matrix = matrices::widened(code, matrix)?;
            read.push(own(code, matrix)?);
        }
        let results = self.direct.writes.iter().map(|_| matrices::elements(code, self.lanes));
        let results = results.collect::<Result<Vec<_>, _>>()?;
        let count = code.c(MATRIX * MATRIX / self.lanes);
        code.for_loop([zero, count, one], &[], |code, element, _| {
            let mut point = Point::new(vec![zero; self.rank], 1);
            for (part, own) in self.direct.reads.iter().zip(&read) {
                let value = code.load(*own, element, 1);
                let value = as_type(code, value, part.element);
                let is_written = self.direct.writes.iter().any(|write| write.slice == part.slice);
                if is_written {
                    point.held.insert(part.slice, value)
                } else {
                    point.given.insert(part.slice, value)
                };
            }
            let sum = code.load(of_sums, element, 1);
            self.evaluate(code, &mut point, sum)?;
            for (write, to) in self.direct.writes.iter().zip(&results) {
                let value = as_type(code, point.held[&write.slice], single);
                code.store(value, *to, element)?;
            }
            Ok(vec![])
        })?;
        results.into_iter().map(|own| matrices::load(code, MatrixRole::C, (own, zero), (MATRIX, false))).collect()
    }

    /// All ops on one element.
    fn evaluate(&self, code: &mut Code<'c, '_>, point: &mut Point<'c>, sum: Value<'c>) -> Result<(), Diagnostics> {
        for op in &self.fused.before {
            self.evaluator.evaluate(code, op, point)?;
        }
        let op = self.fused.op;
        let (zero, output) = (code.c(0), &op.outputs()[0]);
        let initial = self.evaluator.operand(code, op, output, &vec![zero; op.sizes.len()], point)?;
        let sum = code.op1(ops::arith::ADDF, &[initial, sum], sum.ty());
        if let Source::Slice(slice) = output.source {
            point.held.insert(slice, sum);
        }
        for op in &self.fused.after {
            self.evaluator.evaluate(code, op, point)?;
        }
        Ok(())
    }
}

/// A number as f16 or f32.
fn as_type<'c>(code: &mut Code<'c, '_>, value: Value<'c>, ty: Type<'c>) -> Value<'c> {
    match (value.ty().float_width(), ty.float_width()) {
        (Some(from), Some(to)) if from < to => code.op1(ops::arith::EXTF, &[value], ty),
        (Some(from), Some(to)) if from > to => code.op1(ops::arith::TRUNCF, &[value], ty),
        _ => value,
    }
}
