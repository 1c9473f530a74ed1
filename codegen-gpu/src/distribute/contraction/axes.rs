//! Sorts the loops of a reduction: one coordinate of the result is rows, one is columns, the others are serial; reductions
//! that collapse to one loop in every input are merged.
//!
//! Before: `out[b, y, x, c] += in[b, y + i, x + j, q] * filter[i, j, q, c]` on a tile `[1, 1, 14, 64]`.
//! After: rows `x`, columns `c`, serial none (extents of 1 need no loop), reductions `i` and `j, q` merged.

use super::super::code::Code;
use super::super::evaluate::Evaluator;
use super::super::model::{Base, Size, Source, TileOp};
use super::super::strategy::Declined;
use super::super::stride::{Linear, Stride};
use monopour_ir::Value;

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
    pub(in super::super) serial: Vec<usize>,
    /// Per coordinate of the result.
    pub(in super::super) extents: Vec<Extent<'c>>,
    pub(in super::super) reductions: Vec<Reduction<'c>>,
}

impl<'c> Axes<'c> {
    /// Extent of rows or columns; 1 if there are none.
    pub(in super::super) fn extent(&self, coordinate: Option<usize>) -> Extent<'c> {
        coordinate.map_or(Extent::Known(1), |c| self.extents[c])
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

/// Sorts the loops of an op. `lanes` is the number of lanes along the columns.
pub(in super::super) fn axes<'c>(op: &TileOp<'c>, inputs: &[Input<'c>], lanes: i64) -> Result<Axes<'c>, Declined> {
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
    Ok(Axes { row, column, serial: rest, extents, reductions: reductions(op, inputs, &inner) })
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

fn reductions<'c>(op: &TileOp<'c>, inputs: &[Input<'c>], inner: &[usize]) -> Vec<Reduction<'c>> {
    let mut out: Vec<Reduction> = Vec::new();
    for l in inner {
        let extent = Extent::of(&op.sizes[*l]);
        let strides: Vec<Stride> = inputs.iter().map(|i| i.strides[*l]).collect();
        if extent.exact() == Some(1) && inner.len() > 1 {
            continue;
        }
        if let (Some(last), Some(n)) = (out.last_mut(), extent.exact())
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
