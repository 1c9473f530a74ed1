//! Convolutions of lines, such as audio, as convolutions of images of one row.
//!
//! Before / after:
//!
//! ```text
//! %r = generic (o, x, c, j)                         %r = generic (o, y, x, c, j)
//!        %line[c, x * 2 + j] : [512, 3199]                 %line[c, y, x * 2 + j] : [512, 1, 3199]
//!        %w[o, c, j]         : [512, 512, 3]               %w[o, c, j]            : [512, 512, 3]
//!        %r[o, x]            : [512, 1599]                 %r[o, y, x]            : [512, 1, 1599]
//! ```
//!
//! What is around them and works on lines alone (pointwise ops, pads, convolutions by windows of one element, depthwise ones)
//! follows; reshapes are at the borders. Images then get their layouts as all others do.
//!
//! Requires: fills and `tensor.empty` of one use. Ensures: the same values.
//! Limits: known sizes; constant filters.

use super::spread::Form;
use crate::collapse_lines::{collapsed, expanded};
use crate::linalg;
use crate::products::{contraction_loops, convolution_loops};
use monopour_ir::typed::linalg::{IteratorType, iterator_types, iterator_types_attr};
use monopour_ir::{AffineExpr, AffineExprKind, AffineMap, Attr, Diagnostics, Op, Rewriter, Type, Value, ops};

/// Multiplications for each element of a result that gain more than other layouts of it and of what is read cost.
pub(super) const LEAST_WORK: i64 = 180;

/// Lines as images of one row.
pub(super) struct Rows;

impl Form for Rows {
    fn gains(op: Op) -> bool {
        is_heavy(op)
    }

    fn follows(op: Op) -> bool {
        linalg::is_elementwise(op) || is_of_lines(op)
    }

    fn operands(op: Op) -> Option<Vec<usize>> {
        lines_of(op)
    }

    fn rewrite<'c>(op: Op<'c>, operands: &[usize], rw: &mut Rewriter<'c>) {
        with_row(op, operands, rw);
    }

    fn slice(list: &mut Vec<i64>, of_one: i64) {
        list.insert(list.len() - 1, of_one);
    }

    fn ty<'c>(plain: Type<'c>) -> Type<'c> {
        let mut shape = plain.shape().unwrap_or_default();
        shape.insert(shape.len() - 1, 1);
        Type::tensor(&shape, plain.element(), None)
    }

    fn reads<'c>(_: Op<'c>, _: usize, _: &mut Rewriter<'c>) -> bool {
        false
    }

    fn into<'c>(plain: Value<'c>, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
        let rank = plain.ty().shape().map_or(0, |shape| shape.len());
        expanded(plain, Self::ty(plain.ty()), rank - 1, rw)
    }

    fn out_of<'c>(value: Value<'c>, plain: Type<'c>, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
        let rank = plain.shape().map_or(0, |shape| shape.len());
        collapsed(value, rank - 1, rw)
    }
}

/// Whether a convolution of lines gains by another layout. Depthwise ones do not sum over channels.
fn is_heavy(op: Op) -> bool {
    let Some(found) = convolution_loops(op).filter(|found| is_of_lines(op) && found.image.len() == 1) else {
        return false;
    };
    let extents = linalg::loop_extents(op).unwrap_or_default();
    let sums: i64 = found.k.iter().chain(&found.window).map(|d| extents[*d].max(1)).product();
    found.depth.is_empty() && found.channels.len() == 1 && sums >= LEAST_WORK
}

/// Whether an op is a convolution of `[.., channels, places]` with a constant filter.
fn is_of_lines(op: Op) -> bool {
    let stored = |i: usize| op.operand(i).defining_op().is_some_and(|def| def.is(ops::arith::CONSTANT));
    if let Some(found) = convolution_loops(op) {
        let out = linalg::indexing_maps(op).and_then(|maps| maps.last()?.dim_positions()).unwrap_or_default();
        let channels = out.iter().rev().nth(1).is_some_and(|d| found.channels.contains(d) || found.depth.contains(d));
        return found.image.len() == 1 && found.image.last() == out.last() && channels && stored(1 - found.input);
    }
    let Some((found, maps)) = contraction_loops(op).zip(linalg::indexing_maps(op)).filter(|(_, maps)| maps.len() == 3)
    else {
        return false;
    };
    let [[m], [n], [k]] = [&found.m[..], &found.n[..], &found.k[..]] else { return false };
    let of = |i: usize| maps[i].dim_positions();
    let pointwise = of(found.lhs) == Some(vec![*m, *k]) && of(1 - found.lhs) == Some(vec![*k, *n]);
    pointwise && of(2) == Some(vec![*m, *n]) && stored(found.lhs)
}

/// The operands of an op that get a row if its results do; none of an op that reads places in another way.
fn lines_of(op: Op) -> Option<Vec<usize>> {
    let rank = op.get_result(0)?.ty().as_tensor()?.shape.len();
    let of_lines = |value: Value| value.ty().as_tensor().is_some_and(|ty| ty.shape.len() == rank);
    let known = |value: Value| value.ty().shape().is_none_or(|shape| shape.iter().all(|size| *size > 0));
    if !(2..=3).contains(&rank) || !op.operands().into_iter().chain(op.results()).all(known) {
        return None;
    }
    match op.name() {
        ops::tensor::EMPTY => return Some(vec![]),
        ops::linalg::FILL => return Some(vec![1]),
        ops::tensor::EXTRACT_SLICE | ops::tensor::INSERT_SLICE => {
            let lines: Vec<usize> = (0..op.num_operands()).collect();
            return lines.iter().all(|i| of_lines(op.operand(*i))).then_some(lines);
        }
        _ => (),
    }
    let (maps, inputs) = (linalg::indexing_maps(op)?, linalg::num_inputs(op));
    let place = *maps[inputs].dim_positions()?.last()?;
    if !op.find_all(ops::linalg::INDEX).is_empty() || !maps[inputs..].iter().all(|map| *map == maps[inputs]) {
        return None;
    }
    let mut lines = vec![];
    for (i, map) in maps.iter().enumerate() {
        let results = map.results();
        let reads = |e: &AffineExpr| e.dims().contains(&place);
        match results.iter().filter(|e| reads(e)).count() {
            0 => (),
            1 if results.len() == 1 && matches!(results[0].kind(), AffineExprKind::Dim(_)) => (),
            1 if results.last().is_some_and(reads) && of_lines(op.operand(i)) => lines.push(i),
            _ => return None,
        }
    }
    Some(lines)
}

/// Gives a generic a loop of one iteration, the row, in front of that of the places.
fn with_row<'c>(op: Op<'c>, lines: &[usize], rw: &mut Rewriter<'c>) {
    let (cx, maps) = (op.context(), linalg::indexing_maps(op).expect("invariant: a generic has maps"));
    let out = maps[linalg::num_inputs(op)];
    let places = out.dim_positions().expect("invariant: asked before");
    let row = *places.last().expect("invariant: asked before");
    let mut kinds = iterator_types(op).unwrap_or_default();
    let old = kinds.len();
    kinds.insert(row, IteratorType::Parallel);
    let names: Vec<AffineExpr> = (0..old).map(|d| AffineExpr::dim(cx, d + usize::from(d >= row))).collect();
    let renaming = AffineMap::of(cx, old + 1, &names);
    let maps: Vec<Attr> = (maps.iter().enumerate())
        .map(|(i, map)| {
            let mut results = map.compose(renaming).results();
            if lines.contains(&i) {
                results.insert(results.len() - 1, AffineExpr::dim(cx, row));
            }
            AffineMap::of(cx, old + 1, &results).to_attr()
        })
        .collect();
    rw.set_attr(op, "indexing_maps", Attr::array(cx, &maps));
    rw.set_attr(op, "iterator_types", iterator_types_attr(cx, &kinds));
}
