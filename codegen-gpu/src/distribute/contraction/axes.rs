//! Sorts the loops of a reduction: one coordinate of the result is rows, one is columns, the others are serial; reductions
//! that collapse to one loop in every input are merged.
//!
//! Before: `out[b, y, x, c] += in[b, y + i, x + j, q] * filter[i, j, q, c]` on a tile `[1, 1, 14, 64]`.
//! After: rows `x`, columns `c`, serial none (extents of 1 need no loop), reductions `i` and `j, q` merged.
//!
//! Where copies in workgroup memory are read, an axis has several coordinates: a tile `[2, 4, 14, 64]` has the rows `b, y, x`,
//! 112 of them, whose coordinates an invocation computes once (`split`).

use super::super::code::{Code, gcd};
use super::super::evaluate::Evaluator;
use super::super::model::{Base, Size, Source, TileOp};
use super::super::strategy::Declined;
use super::super::stride::{Linear, Stride};
use monopour_ir::Value;

/// Iterations of a pass over copies.
const WHOLE_PASS: i64 = 16;

/// Fewer columns leave most lanes idle; another coordinate is preferred.
const FEW_COLUMNS: i64 = 4;

/// Trip count of a loop.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Extent<'c> {
    Known(i64),
    Depends(Size<'c>),
}

impl<'c> Extent<'c> {
    fn of(size: &Size<'c>) -> Self {
        size.exact().map_or(Self::Depends(*size), Self::Known)
    }
    pub(in super::super) fn exact(&self) -> Option<i64> {
        match self {
            Self::Known(n) => Some(*n),
            Self::Depends(_) => None,
        }
    }
    pub(in super::super) fn bound(&self) -> Option<i64> {
        match self {
            Self::Known(n) => Some(*n),
            Self::Depends(size) => size.facts.bound,
        }
    }
    pub(in super::super) fn divisor(&self) -> i64 {
        match self {
            Self::Known(n) => *n,
            Self::Depends(size) => size.facts.divisor,
        }
    }
    pub(in super::super) fn value(&self, code: &mut Code<'c, '_>) -> Value<'c> {
        match self {
            Self::Known(n) => code.c(*n),
            Self::Depends(size) => size.value,
        }
    }
}

/// An input that the op's body reads.
#[derive(Clone, Debug)]
pub(in super::super) struct Input<'c> {
    /// Position among the op's operands.
    pub(in super::super) operand: usize,
    pub(in super::super) slice: usize,
    /// Stride in elements, per loop of the op.
    pub(in super::super) strides: Vec<Stride<'c>>,
    pub(in super::super) constant: i64,
}

/// A reduction, or several merged ones.
#[derive(Clone, Debug)]
pub(in super::super) struct Reduction<'c> {
    pub(in super::super) extent: Extent<'c>,
    /// Stride in elements, per input.
    pub(in super::super) strides: Vec<Stride<'c>>,
}

/// The sorted loops.
#[derive(Clone, Debug)]
pub(in super::super) struct Axes<'c> {
    /// Coordinates of the result; `None`: all extents are 1.
    pub(in super::super) row: Option<usize>,
    pub(in super::super) column: Option<usize>,
    /// Coordinates that are counted with the row, and with the column, which are the fastest.
    pub(in super::super) outer_rows: Vec<usize>,
    pub(in super::super) outer_columns: Vec<usize>,
    pub(in super::super) serial: Vec<usize>,
    /// Per coordinate of the result.
    pub(in super::super) extents: Vec<Extent<'c>>,
    pub(in super::super) reductions: Vec<Reduction<'c>>,
}

impl<'c> Axes<'c> {
    /// Extent of the rows, those that are merged counted at their bounds; 1 if there are none.
    pub(in super::super) fn rows(&self) -> Extent<'c> {
        self.extent(self.row, &self.outer_rows)
    }
    /// Extent of the columns, likewise.
    pub(in super::super) fn columns(&self) -> Extent<'c> {
        self.extent(self.column, &self.outer_columns)
    }
    /// Neighbouring columns that lie along one coordinate: their number is a multiple of this.
    pub(in super::super) fn column_divisor(&self) -> i64 {
        let Some(column) = self.column else { return 1 };
        let whole = if self.outer_columns.is_empty() { 0 } else { self.extents[column].bound().unwrap_or(1) };
        gcd(self.extents[column].divisor(), whole)
    }

    fn extent(&self, last: Option<usize>, outer: &[usize]) -> Extent<'c> {
        let last = last.map_or(Extent::Known(1), |c| self.extents[c]);
        let bound = |extent: Extent| extent.bound().expect("invariant: merged coordinates have bounds").max(1);
        match outer.iter().map(|c| bound(self.extents[*c])).product::<i64>() {
            1 => last,
            others => Extent::Known(others * bound(last)),
        }
    }

    /// The coordinates at a position of merged ones, of which `width` neighbours are accessed: clamped into the tile, and
    /// whether they are in it. The position is less than the product of their bounds.
    pub(in super::super) fn split(
        &self,
        code: &mut Code<'c, '_>,
        (outer, last): (&[usize], usize),
        position: Value<'c>,
        width: i64,
    ) -> Spread<'c> {
        let mut spread = Spread { coordinates: vec![], guard: None };
        let mut rest = position;
        let all = [outer, &[last]].concat();
        for (i, c) in all.into_iter().enumerate().rev() {
            let extent = self.extents[c];
            let bound = code.c(extent.bound().unwrap_or(1).max(1));
            let mut at = if i == 0 { rest } else { code.rem(rest, bound) };
            rest = code.div(rest, bound);
            if extent.exact().is_none() {
                let end = extent.value(code);
                let is_in = code.less(at, end);
                spread.guard = code.both(spread.guard, Some(is_in));
                let most = code.add_const(end, if c == last { -width } else { -1 });
                at = code.min(at, most);
            }
            spread.coordinates.push((c, at));
        }
        spread
    }
}

/// A position of merged coordinates.
#[derive(Clone, Debug)]
pub(in super::super) struct Spread<'c> {
    /// Coordinates of the result and their values, the fastest first.
    pub(in super::super) coordinates: Vec<(usize, Value<'c>)>,
    /// Whether all are in the tile; `None`: statically.
    pub(in super::super) guard: Option<Value<'c>>,
}

impl<'c> Spread<'c> {
    /// The elements up to this position; `strides` as the coordinates, the fastest first.
    pub(in super::super) fn scale(
        &self,
        code: &mut Code<'c, '_>,
        strides: impl Iterator<Item = Stride<'c>>,
    ) -> Value<'c> {
        let mut sum = code.c(0);
        for ((_, at), stride) in self.coordinates.iter().zip(strides) {
            let part = stride.scale(code, *at);
            sum = code.add(sum, part);
        }
        sum
    }
}

/// The inputs that the body reads: buffers that the tile does not write, and the local ones in `padded`.
pub(in super::super) fn inputs<'c>(
    evaluator: &Evaluator<'c, '_>,
    op: &TileOp<'c>,
    written: &[Base],
    padded: &[Base],
) -> Result<Vec<Input<'c>>, Declined> {
    let mut out = Vec::new();
    for (operand, o) in op.operands.iter().enumerate().take(op.num_inputs).filter(|(i, _)| op.reads(*i)) {
        let Source::Slice(slice) = o.source else { continue };
        let base = evaluator.model.slices[slice].base;
        let is_there = matches!(base, Base::Argument(_)) || padded.contains(&base);
        if !is_there || written.contains(&base) {
            return Err(Declined::InputComputed);
        }
        let Some(Linear { factors: strides, constant }) = o.linear.clone() else {
            return Err(Declined::InputNotLinear);
        };
        out.push(Input { operand, slice, strides, constant });
    }
    if out.is_empty() {
        return Err(Declined::NoInput);
    }
    Ok(out)
}

/// Sorts the loops of an op. `lanes` is the number of lanes along the columns; `merges`: whether several coordinates may be
/// one axis.
pub(in super::super) fn axes<'c>(
    op: &TileOp<'c>,
    inputs: &[Input<'c>],
    lanes: i64,
    merges: bool,
) -> Result<Axes<'c>, Declined> {
    let outer = op.outer.clone().ok_or(Declined::ResultNotIndexed)?;
    let inner = op.inner();
    if inner.is_empty() || inner.iter().any(|l| op.parallel[*l]) {
        return Err(Declined::InnerNotReduction);
    }
    let extents: Vec<Extent> = outer.iter().map(|l| Extent::of(&op.sizes[*l])).collect();
    let mut rest: Vec<usize> = (0..outer.len()).filter(|c| extents[*c].exact() != Some(1)).collect();
    let column = column(&rest, &extents, lanes);
    rest.retain(|c| Some(*c) != column);
    // A row that indexes every operand of the columns shares no loads between rows: second choice.
    let shares = |c: usize| {
        inputs.iter().all(|i| i.strides[outer[c]].is(0) || column.is_none_or(|column| i.strides[outer[column]].is(0)))
    };
    let row = rest.iter().rev().copied().find(|c| shares(*c)).or(rest.last().copied());
    rest.retain(|c| Some(*c) != row);
    let is_bounded = |c: usize| extents[c].bound().is_some();
    let mut merged_with = |axis: Option<usize>| -> Vec<usize> {
        let Some(axis) = axis.filter(|axis| merges && is_bounded(*axis)) else { return vec![] };
        // Coordinates that index the same inputs.
        let is_like = |c: usize| inputs.iter().all(|i| i.strides[outer[c]].is(0) == i.strides[outer[axis]].is(0));
        let (merged, others) = rest.iter().partition(|c| is_bounded(**c) && is_like(**c));
        rest = others;
        merged
    };
    let (outer_rows, outer_columns) = (merged_with(row.filter(|r| shares(*r))), merged_with(column));
    let reductions = reductions(op, inputs, &inner, merges);
    Ok(Axes { row, column, outer_rows, outer_columns, serial: rest, extents, reductions })
}

/// The last coordinate, which is contiguous in memory; another one if it is short.
fn column(coordinates: &[usize], extents: &[Extent], lanes: i64) -> Option<usize> {
    let last = *coordinates.last()?;
    let bound = |c: &usize| extents[*c].bound().unwrap_or(i64::MAX);
    if bound(&last) > FEW_COLUMNS.min(lanes / 2) {
        return Some(last);
    }
    coordinates.iter().rev().copied().find(|c| bound(c) >= lanes).or(Some(last))
}

/// The reductions, merged. With copies, the innermost of a window stays apart if it makes whole passes: those of the window's
/// elements share what they copy.
pub(in super::super) fn reductions<'c>(
    op: &TileOp<'c>,
    inputs: &[Input<'c>],
    inner: &[usize],
    is_copied: bool,
) -> Vec<Reduction<'c>> {
    let mut out: Vec<Reduction> = Vec::new();
    for l in inner {
        let extent = Extent::of(&op.sizes[*l]);
        let strides: Vec<Stride> = inputs.iter().map(|i| i.strides[*l]).collect();
        if extent.exact() == Some(1) && inner.len() > 1 {
            continue;
        }
        let is_pass = |n: i64| is_copied && inner.len() > 2 && n % WHOLE_PASS == 0;
        if let (Some(last), Some(n)) = (out.last_mut(), extent.exact().filter(|n| !is_pass(*n)))
            && let Some(outer) = last.extent.exact()
            && last.strides.iter().zip(&strides).all(|(o, i)| o.exact().zip(i.exact()).is_some_and(|(o, i)| o == i * n))
        {
            *last = Reduction { extent: Extent::Known(outer * n), strides };
            continue;
        }
        out.push(Reduction { extent, strides });
    }
    if out.is_empty() {
        // All extents are 1: one pass.
        out.push(Reduction { extent: Extent::Known(1), strides: vec![Stride::ZERO; inputs.len()] });
    }
    out
}
