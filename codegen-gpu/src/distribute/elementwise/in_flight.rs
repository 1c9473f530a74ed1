//! Several points of an invocation at once: the loads of all of them before the first store, which no load could pass.
//!
//! Before: `scf.for { load; compute; store }`, one vector each.
//! After: `load; compute; load; compute; ..; store; store; ..`, [`vectors`] of them, `invocations` items apart.
//! Requires: one pointwise group of static extents on hardware.
//! Ensures: a point behind the end of a tile repeats the last one, and is not stored.

use super::super::code::Code;
use super::super::evaluate::{Evaluator, Point};
use super::super::fitted::FittedChoice;
use super::super::groups::Group;
use super::super::model::{Base, Model, Source, TileOp};
use super::{coordinates, space};
use monopour_ir::{Diagnostics, Value};

/// Most ops of all points together: more would be slow to compile, and hide the latency of the loads by themselves.
const MAX_OPS: usize = 96;

/// The vectors of `lanes` elements that an invocation has in flight: those of the choice, where the tile has them.
pub(super) fn vectors(model: &Model, group: &Group, kernel: &FittedChoice, lanes: u32) -> i64 {
    let asked = kernel.register_tile.first().map_or(1, |elements| elements / i64::from(lanes)).max(1);
    let elements = group.sizes.iter().try_fold(1i64, |n, size| Some(n * size.facts.bound?)).unwrap_or(0);
    let whole = group.sizes.iter().try_fold(1i64, |n, size| Some(n * size.exact()?));
    let per_round = kernel.invocations() * i64::from(lanes);
    let ops = group.ops.iter().map(|i| model.ops[*i].body.map_or(0, |body| body.ops().len())).sum::<usize>();
    let room = (MAX_OPS / ops.max(1)).max(1) as i64;
    let vectors = asked.min(elements / per_round).min(room).max(1);
    // A repeated point would read what another invocation writes.
    let is_exact = whole.is_some_and(|whole| whole % (per_round * vectors) == 0);
    if is_exact || !overwrites(model, group) { vectors } else { 1 }
}

/// Whether the group reads memory of an argument that it writes: what an op before has written is in a register.
fn overwrites(model: &Model, group: &Group) -> bool {
    let ops: Vec<&TileOp> = group.ops.iter().map(|i| &model.ops[*i]).collect();
    let base = |source: Source| match source {
        Source::Slice(slice) => Some(model.slices[slice].base).filter(|base| matches!(base, Base::Argument(_))),
        Source::Scalar(_) => None,
    };
    let written = |ops: &[&TileOp]| -> Vec<Base> {
        ops.iter().flat_map(|op| op.outputs()).filter_map(|o| base(o.source)).collect()
    };
    let all = written(&ops);
    ops.iter().enumerate().any(|(at, op)| {
        let before = written(&ops[..at]);
        let gathered = op.gathered.iter().map(|slice| model.slices[*slice].base);
        let operands = op.operands.iter().enumerate().filter(|(i, _)| op.reads(*i)).filter_map(|(_, o)| base(o.source));
        operands.filter(|read| !before.contains(read)).chain(gathered).any(|read| all.contains(&read))
    })
}

/// Emits a pointwise group, `vectors` points at a time; `by` is the invocation's index and its lanes.
pub(super) fn spread<'c>(
    code: &mut Code<'c, '_>,
    evaluator: &Evaluator<'c, '_>,
    group: &Group<'c>,
    (kernel, vectors): (&FittedChoice, i64),
    (linear, lanes): (Value<'c>, u32),
    keep: &dyn Fn(Base) -> bool,
) -> Result<(), Diagnostics> {
    let ops: Vec<&TileOp> = group.ops.iter().map(|i| &evaluator.model.ops[*i]).collect();
    let (axes, extents, total) = space(code, &ops, group, lanes);
    let invocations = kernel.invocations();
    let step = invocations * vectors;
    let rounds = code.ceil_div_const(total, step);
    let exact = total.constant_int().is_some_and(|total| total % step == 0);
    code.repeat(rounds, |code, round| {
        let start = code.mul_const(round, step);
        let mut points = vec![];
        for vector in 0..vectors {
            let first = code.add_const(start, vector * invocations);
            let mut item = code.add(first, linear);
            let guard = (!exact).then(|| code.less(item, total));
            if guard.is_some() {
                let last = code.add_const(total, -1);
                item = code.min(item, last);
            }
            let mut point = Point::new(coordinates(code, item, &extents, &axes, lanes), lanes);
            for op in &ops {
                evaluator.evaluate(code, op, &mut point)?;
            }
            points.push((guard, point));
        }
        points
            .into_iter()
            .try_for_each(|(guard, point)| code.guarded(guard, |code| evaluator.store(code, &ops, &point, keep)))
    })
}
