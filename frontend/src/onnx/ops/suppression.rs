//! NonMaxSuppression: the best boxes of each class, without those that overlap a better one.
//!
//! All batches and classes go on at once: an iteration takes the best box that is left of each and removes what overlaps it.
//! It ends when no box is left, so there are as many iterations as boxes kept of a class.

use super::control::{Loop, Made};
use super::cumulative::set_positions;
use super::indexing::as_index;
use super::shapes::scalar;
use crate::onnx::operand::Operand;
use crate::onnx::predicate::{CmpF, CmpI};
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Expr, Failure, LoopKind, NodeContext, Registry, Results, Structured, structured};
use monopour_ir::{Type, Value, ops};

pub(super) fn register(registry: &mut Registry) {
    registry.op("NonMaxSuppression", 10, suppress, "");
}

/// The boxes, and what overlaps.
struct Boxes<'c> {
    /// `[batches, boxes, 4]`.
    source: Value<'c>,
    centers: bool,
    threshold: Value<'c>,
}

impl<'c> Boxes<'c> {
    /// In a body: the low and high ends of a box in both directions, and its area.
    fn corners(&self, b: &mut Builder<'c>, at: [Value<'c>; 2]) -> Result<([Value<'c>; 4], Value<'c>), Failure> {
        let mut number = |k: i64| {
            let k = b.int(at[0].ty(), k);
            b.read(self.source, &[at[0], at[1], k])
        };
        let [p, q, r, s] = [number(0)?, number(1)?, number(2)?, number(3)?];
        let corners = if self.centers {
            let half = b.number(p.ty(), 0.5);
            let mut ends = |center, size| -> Result<[Value<'c>; 2], Failure> {
                let reach = b.binary(ops::arith::MULF, size, half)?;
                Ok([b.binary(ops::arith::SUBF, center, reach)?, b.binary(ops::arith::ADDF, center, reach)?])
            };
            let ([x0, x1], [y0, y1]) = (ends(p, r)?, ends(q, s)?);
            [x0, y0, x1, y1]
        } else {
            // Any two opposite corners.
            let mut ends = |v, w| -> Result<[Value<'c>; 2], Failure> {
                Ok([b.binary(ops::arith::MINIMUMF, v, w)?, b.binary(ops::arith::MAXIMUMF, v, w)?])
            };
            let ([y0, y1], [x0, x1]) = (ends(p, r)?, ends(q, s)?);
            [x0, y0, x1, y1]
        };
        let [x0, y0, x1, y1] = corners;
        let (width, height) = (b.binary(ops::arith::SUBF, x1, x0)?, b.binary(ops::arith::SUBF, y1, y0)?);
        Ok((corners, b.binary(ops::arith::MULF, width, height)?))
    }

    /// In a body: whether two boxes overlap by more than the threshold.
    fn overlap(&self, b: &mut Builder<'c>, batch: Value<'c>, [i, j]: [Value<'c>; 2]) -> Result<Value<'c>, Failure> {
        let ((p, p_area), (q, q_area)) = (self.corners(b, [batch, i])?, self.corners(b, [batch, j])?);
        let zero = b.number(p_area.ty(), 0.0);
        let mut side = |low: usize| -> Result<Value<'c>, Failure> {
            let from = b.binary(ops::arith::MAXIMUMF, p[low], q[low])?;
            let to = b.binary(ops::arith::MINIMUMF, p[low + 2], q[low + 2])?;
            let length = b.binary(ops::arith::SUBF, to, from)?;
            b.binary(ops::arith::MAXIMUMF, length, zero)
        };
        let (width, height) = (side(0)?, side(1)?);
        let common = b.binary(ops::arith::MULF, width, height)?;
        let both = b.binary(ops::arith::ADDF, p_area, q_area)?;
        let union = b.binary(ops::arith::SUBF, both, common)?;
        let share = b.binary(ops::arith::DIVF, common, union)?;
        let (is_above, is_some) = (b.compare(CmpF::Ogt, share, self.threshold)?, b.compare(CmpF::Ogt, union, zero)?);
        b.binary(ops::arith::ANDI, is_above, is_some)
    }
}

fn suppress<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (boxes, scores) = (cx.operand(0)?, cx.operand(1)?);
    if boxes.rank() != 3 || scores.rank() != 3 || boxes.dtype != DataType::F32 || scores.dtype != DataType::F32 {
        return Err("its boxes and scores are not of rank 3 and f32".into());
    }
    let differs = |a: &Dim, b: &Dim| a.as_constant().zip(b.as_constant()).is_some_and(|(a, b)| a != b);
    if differs(&boxes.shape[1], &scores.shape[2]) || differs(&boxes.shape[2], &4.into()) {
        return Err("its boxes are not four numbers each, or not as many as its scores".into());
    }
    let most = match cx.optional(2) {
        Some(most) => b.sizes_of(most)?.first().cloned().ok_or("its number of boxes is missing")?,
        None => Dim::default(),
    };
    let float = Type::f32(b.context());
    let threshold = match cx.optional(3) {
        Some(threshold) => scalar(b, threshold)?,
        None => b.number(float, 0.0),
    };
    let least = cx.optional(4).map(|least| scalar(b, least)).transpose()?;
    let all = Boxes { source: b.value(boxes)?, centers: cx.int("center_point_box", 0)? != 0, threshold };
    // A box that is out has the lowest score.
    let scores = match least {
        None => Operand::value(DataType::F32, scores.shape.clone(), b.value(scores)?),
        Some(least) => b.elementwise_of_shape(&[scores], DataType::F32, scores.shape.clone(), |b, e| {
            let (stays, out) = (b.compare(CmpF::Ogt, e[0], least)?, b.number(e[0].ty(), f64::NEG_INFINITY));
            b.select(stays, e[0], out)
        })?,
    };
    let iteration = |b: &mut Builder<'c>, _: &Dim, _: Option<&Operand<'c>>, values: &[Operand<'c>]| {
        let (best, place) = best(b, &values[0])?;
        let left = remaining(b, &all, &values[0], &place)?;
        let out = f64::NEG_INFINITY;
        let highest =
            b.reduce(&left, &[0, 1, 2], (DataType::F32, out), |b, e, most| b.binary(ops::arith::MAXIMUMF, e, most))?;
        let goes_on = b.elementwise(&[&highest], DataType::Bool, |b, e| {
            let out = b.number(e[0].ty(), out);
            b.compare(CmpF::Ogt, e[0], out)
        })?;
        let chosen = b.elementwise(&[&best, &place], DataType::I32, |b, e| {
            let (lowest, none) = (b.number(e[0].ty(), out), b.int(e[1].ty(), -1));
            let is_some = b.compare(CmpF::Ogt, e[0], lowest)?;
            b.select(is_some, e[1], none)
        })?;
        Ok(Made { goes_on: Some(goes_on), carried: vec![left], stacked: vec![chosen] })
    };
    let count = most.at_most(&boxes.shape[1]);
    let stacks = Loop::new(count, vec![scores], vec![(2, false)], &iteration).lower(b)?;
    Ok(vec![listed(b, &stacks[1])?])
}

/// The best score of each class and its box, of equal ones the first.
fn best<'c>(b: &mut Builder<'c>, scores: &Operand<'c>) -> Result<(Operand<'c>, Operand<'c>), Failure> {
    let shape = scores.shape[..2].to_vec();
    let (best, place) = (b.filled(DataType::F32, &shape, f64::NEG_INFINITY)?, b.filled(DataType::I32, &shape, 0.0)?);
    let map = [0, 1].map(Expr::Loop).to_vec();
    let op = Structured {
        loops: vec![LoopKind::Parallel, LoopKind::Parallel, LoopKind::Reduction],
        inputs: vec![(b.value(scores)?, structured::identity(3))],
        outputs: vec![(best, map.clone()), (place, map)],
    };
    let results = b.structured(&op, |b, e| {
        let at = b.loop_index(2)?;
        let at = b.op(ops::arith::INDEX_CAST, &[at], e[2].ty())?;
        let better = b.compare(CmpF::Ogt, e[0], e[1])?;
        Ok(vec![b.select(better, e[0], e[1])?, b.select(better, at, e[2])?])
    })?;
    let [best, place] = results[..] else { return Err("a reduction has two results".into()) };
    Ok((Operand::value(DataType::F32, shape.clone(), best), Operand::value(DataType::I32, shape, place)))
}

/// The scores, lowest for the chosen boxes and what overlaps them.
fn remaining<'c>(
    b: &mut Builder<'c>,
    boxes: &Boxes<'c>,
    scores: &Operand<'c>,
    place: &Operand<'c>,
) -> Result<Operand<'c>, Failure> {
    let (source, chosen) = (b.value(scores)?, b.value(place)?);
    b.computed(DataType::F32, &scores.shape, |b, at| {
        let own = b.read(chosen, &at[..2])?;
        let own = as_index(b, own)?;
        let (is_it, overlaps) = (b.compare(CmpI::Eq, own, at[2])?, boxes.overlap(b, at[0], [own, at[2]])?);
        let is_out = b.binary(ops::arith::ORI, is_it, overlaps)?;
        let (score, out) = (b.read(source, at)?, b.number(Type::f32(b.context()), f64::NEG_INFINITY));
        b.select(is_out, out, score)
    })
}

/// The chosen boxes as rows of batch, class and box.
fn listed<'c>(b: &mut Builder<'c>, chosen: &Operand<'c>) -> Result<Operand<'c>, Failure> {
    let flat = b.reshaped(chosen, &[chosen.elements()])?;
    let flags = b.elementwise(&[&flat], DataType::I32, |b, e| {
        let zero = b.int(e[0].ty(), 0);
        let is_some = b.compare(CmpI::Sge, e[0], zero)?;
        b.op(ops::arith::EXTUI, &[is_some], e[0].ty())
    })?;
    let found = set_positions(b, &flags)?;
    let (places, source) = (b.value(&found)?, b.value(&flat)?);
    let (classes, kept) = (b.index(&chosen.shape[1])?, b.index(&chosen.shape[2])?);
    b.computed(DataType::I64, &[found.shape[0].clone(), 3.into()], |b, at| {
        let place = b.read(places, &at[..1])?;
        let place = as_index(b, place)?;
        let row = b.read(source, &[place])?;
        let row = as_index(b, row)?;
        let (zero, one) = (b.int(place.ty(), 0), b.int(place.ty(), 1));
        let outer = b.binary(ops::arith::DIVUI, place, kept)?;
        let (batch, class) =
            (b.binary(ops::arith::DIVUI, outer, classes)?, b.binary(ops::arith::REMUI, outer, classes)?);
        let (is_batch, is_class) = (b.compare(CmpI::Eq, at[1], zero)?, b.compare(CmpI::Eq, at[1], one)?);
        let rest = b.select(is_class, class, row)?;
        let chosen = b.select(is_batch, batch, rest)?;
        b.op(ops::arith::INDEX_CAST, &[chosen], Type::integer(b.context(), 64))
    })
}
