//! Pointwise groups and the fallback: the iterations of a group, as elements or vectors, over the invocations.
//!
//! Before: `linalg.generic` ops over a tile of `sizes`.
//! After: `scf.for %i = 0 to ceil(total / invocations)`: invocation `l` computes element (or vector) `%i * invocations + l`.
//! Inputs that are read across the rows of the tile pass through workgroup memory first ([`across`]); large pointwise tiles
//! on hardware have several points of an invocation in flight ([`in_flight`]).
//! Ensures: groups are separated by barriers; an intermediate of one group never reaches memory unless a later group reads it.

mod across;
mod in_flight;

use super::code::Code;
use super::evaluate::{Evaluator, Point, Reach, common_lanes, is_vectorizable_beside_indices};
use super::fitted::FittedChoice;
use super::groups::{self, Group};
use super::locals::{self, Scratch};
use super::model::{Base, Size, Source, TileOp};
use super::strategy::{Declined, KernelPlan, Site, Strategy};
use across::Across;
use monopour_ir::ops;
use monopour_ir::{Diagnostics, Value};
use monopour_program::GpuDescription;
use std::collections::HashMap;

/// The strategy, which takes every straight body.
pub(super) struct Elementwise;

impl Strategy for Elementwise {
    fn plan<'c, 'm>(
        &self,
        body: &Evaluator<'c, 'm>,
        kernel: &FittedChoice,
        device: &GpuDescription,
    ) -> Result<Box<dyn KernelPlan<'c, 'm> + 'm>, Declined> {
        let model = body.model;
        if !model.is_straight() {
            return Err(Declined::NotAsked);
        }
        let groups = groups::split(model);
        let across = Across::of(body, &groups, kernel, device);
        let lanes = if across.is_some() { 1 } else { choose_lanes(body, &groups, kernel) };
        let pointwise = groups.len() == 1 && model.ops.iter().all(|op| op.outer.is_some() && op.inner().is_empty());
        let is_alone = pointwise && across.is_none() && !device.is_cpu_adapter();
        let vectors = if is_alone { in_flight::vectors(model, &groups[0], kernel, lanes) } else { 1 };
        let in_memory = locals::in_memory(model, &groups, &[]);
        Ok(Box::new(Plan { lanes, vectors, pointwise, in_memory, groups, across }))
    }
}

/// Groups of ops, each distributed over the invocations.
struct Plan<'c> {
    groups: Vec<Group<'c>>,
    /// Whether the body is one group of pointwise ops.
    pointwise: bool,
    lanes: u32,
    /// Vectors that an invocation loads before it stores the first.
    vectors: i64,
    /// Local buffers that need memory.
    in_memory: Vec<Base>,
    across: Option<Across<'c>>,
}

impl<'c, 'm> KernelPlan<'c, 'm> for Plan<'c> {
    fn strategy(&self) -> &'static str {
        if self.pointwise { "elementwise" } else { "fallback" }
    }

    fn lanes(&self) -> u32 {
        self.lanes
    }

    fn write(&self, code: &mut Code<'c, '_>, site: &Site<'c, '_, 'm>) -> Result<Vec<Scratch>, Diagnostics> {
        let mut evaluator = Evaluator { lanes: argument_lanes(site.body, self.lanes), ..site.body.clone() };
        let scratch = locals::allocate(code, site.func, &mut evaluator, &self.in_memory, site.place)?;
        let linear = code.linear_id(site.kernel.workgroup_size);
        // A local buffer that stays in registers is not stored.
        let keep = |base: Base| evaluator.buffers.contains_key(&base);
        match (&self.across, &self.groups[..]) {
            (Some(across), [group]) => {
                let copies = across.copy(code, site.func, &evaluator, (linear, site.kernel.invocations()))?;
                let given = |code: &mut Code<'c, '_>, at: &[Value<'c>]| across.load(code, &copies, at);
                spread(code, &evaluator, group, site.kernel, (linear, 1), (&keep, &given))?;
            }
            (None, [group]) if self.vectors > 1 => {
                in_flight::spread(code, &evaluator, group, (site.kernel, self.vectors), (linear, self.lanes), &keep)?;
            }
            _ => write_groups(code, &evaluator, &self.groups, site.kernel, (linear, self.lanes), &keep)?,
        }
        Ok(scratch)
    }
}

/// The widest vectors in which all ops of a single group can be computed; 1 for several groups, or for sequential loops
/// other than column reductions.
fn choose_lanes(evaluator: &Evaluator<'_, '_>, groups: &[Group], kernel: &FittedChoice) -> u32 {
    let [group] = groups else { return 1 };
    let ops: Vec<&TileOp> = group.ops.iter().map(|i| &evaluator.model.ops[*i]).collect();
    let in_vectors = !group.serial && ops.iter().all(|op| is_vectorizable_beside_indices(op));
    let Some(last) = group.sizes.last().filter(|_| in_vectors) else { return 1 };
    let fits = |lanes: u32| {
        last.facts.divisor % i64::from(lanes) == 0
            && ops.iter().any(|op| writes_wide(evaluator, op, lanes))
            && ops.iter().all(|op| op.inner().is_empty() || reduces_columns(evaluator, op, lanes))
    };
    [8, 4, 2].into_iter().find(|lanes| *lanes <= kernel.vector_width && fits(*lanes)).unwrap_or(1)
}

/// Whether the lanes are neighbouring results with neighbouring inputs: a reduction along the columns of its input.
fn reduces_columns(evaluator: &Evaluator<'_, '_>, op: &TileOp, lanes: u32) -> bool {
    op.operands.iter().all(|o| match o.source {
        Source::Slice(s) => !matches!(evaluator.reach(op, o, s, lanes), Reach::Strided(_)),
        Source::Scalar(_) => true,
    })
}

fn writes_wide(evaluator: &Evaluator<'_, '_>, op: &TileOp, lanes: u32) -> bool {
    op.outputs().iter().any(|o| match o.source {
        Source::Slice(s) => evaluator.reach(op, o, s, lanes) == Reach::Wide,
        Source::Scalar(_) => false,
    })
}

/// The lane count of each buffer: `lanes` for an argument if every access of it is wide, else 1.
pub(super) fn argument_lanes(evaluator: &Evaluator<'_, '_>, lanes: u32) -> HashMap<Base, u32> {
    let operands = evaluator.model.ops.iter().flat_map(|op| op.operands.iter().map(move |operand| (op, operand)));
    let accesses = operands.filter_map(|(op, operand)| evaluator.access(op, operand, lanes));
    common_lanes(accesses.map(|(base, lanes)| (base, if matches!(base, Base::Argument(_)) { lanes } else { 1 })))
}

/// Emits the groups of a run; `by` is the invocation's index and its lanes.
pub(super) fn write_groups<'c>(
    code: &mut Code<'c, '_>,
    evaluator: &Evaluator<'c, '_>,
    groups: &[Group<'c>],
    kernel: &FittedChoice,
    by: (Value<'c>, u32),
    keep: &dyn Fn(Base) -> bool,
) -> Result<(), Diagnostics> {
    let mut since_barrier: Vec<&Group> = Vec::new();
    for group in groups {
        if since_barrier.iter().any(|earlier| group.depends_on(earlier)) {
            code.barrier()?;
            since_barrier.clear();
        }
        since_barrier.push(group);
        if group.serial {
            serial(code, evaluator, &evaluator.model.ops[group.ops[0]], by.0)?;
        } else {
            spread(code, evaluator, group, kernel, by, (keep, &|_, _| HashMap::new()))?;
        }
    }
    Ok(())
}

/// The values of slices that are known at a point before its ops are computed.
type Given<'c, 'a> = dyn Fn(&mut Code<'c, '_>, &[Value<'c>]) -> HashMap<usize, Value<'c>> + 'a;

fn spread<'c>(
    code: &mut Code<'c, '_>,
    evaluator: &Evaluator<'c, '_>,
    group: &Group<'c>,
    kernel: &FittedChoice,
    (linear, lanes): (Value<'c>, u32),
    (keep, given): (&dyn Fn(Base) -> bool, &Given<'c, '_>),
) -> Result<(), Diagnostics> {
    let ops: Vec<&TileOp> = group.ops.iter().map(|i| &evaluator.model.ops[*i]).collect();
    let (axes, extents, total) = space(code, &ops, group, lanes);
    if total.constant_int() == Some(0) {
        return Ok(());
    }
    let invocations = kernel.invocations();
    let rounds = code.ceil_div_const(total, invocations);
    code.repeat(rounds, |code, round| {
        let start = code.mul_const(round, invocations);
        let item = code.add(start, linear);
        let exact = total.constant_int().is_some_and(|t| t % invocations == 0);
        let condition = (!exact).then(|| code.less(item, total));
        code.guarded(condition, |code| {
            let coordinates = coordinates(code, item, &extents, &axes, lanes);
            let given = given(code, &coordinates);
            let mut point = Point { given, ..Point::new(coordinates, lanes) };
            for op in &ops {
                evaluator.evaluate(code, op, &mut point)?;
            }
            evaluator.store(code, &ops, &point, keep)
        })
    })
}

/// The axes of a group's points, their extents, and the number of points of `lanes` elements.
#[allow(clippy::type_complexity, reason = "a value of three parts, taken apart at once")]
fn space<'c>(
    code: &mut Code<'c, '_>,
    ops: &[&TileOp],
    group: &Group<'c>,
    lanes: u32,
) -> (Vec<Vec<usize>>, Vec<Value<'c>>, Value<'c>) {
    let axes = axes(ops, &group.sizes);
    let mut extents: Vec<Value> = axes.iter().map(|axis| axis_extent(code, &group.sizes, axis)).collect();
    if let Some(last) = extents.last_mut() {
        let width = code.c(i64::from(lanes));
        *last = code.div(*last, width);
    }
    let mut total = code.c(1);
    for extent in &extents {
        total = code.mul(total, *extent);
    }
    (axes, extents, total)
}

/// Runs of dimensions that collapse to one in every operand; each run is one axis.
fn axes(ops: &[&TileOp], sizes: &[Size]) -> Vec<Vec<usize>> {
    let mut out: Vec<Vec<usize>> = Vec::new();
    for d in 0..sizes.len() {
        match out.last_mut() {
            Some(axis) if merges(ops, sizes, d) => axis.push(d),
            _ => out.push(vec![d]),
        }
    }
    out
}

/// Whether dimensions `d - 1` and `d` collapse to one in every operand.
fn merges(ops: &[&TileOp], sizes: &[Size], d: usize) -> bool {
    let Some(extent) = sizes[d].exact() else { return false };
    ops.iter().all(|op| {
        let Some(outer) = &op.outer else { return false };
        let uses_index =
            op.body.is_some_and(|b| b.parent_op().is_some_and(|p| !p.find_all(ops::linalg::INDEX).is_empty()));
        !uses_index
            && op.operands.iter().all(|o| {
                o.linear.as_ref().is_some_and(|i| {
                    let of = |d: usize| i.factors[outer[d]].exact();
                    of(d - 1).zip(of(d)).is_some_and(|(outside, inside)| outside == inside * extent)
                })
            })
    })
}

fn axis_extent<'c>(code: &mut Code<'c, '_>, sizes: &[Size<'c>], axis: &[usize]) -> Value<'c> {
    let mut extent = code.c(1);
    for d in axis {
        extent = code.mul(extent, sizes[*d].value);
    }
    extent
}

/// Delinearizes an item's index. The last dimension of an axis carries its whole coordinate, the others stay 0.
fn coordinates<'c>(
    code: &mut Code<'c, '_>,
    item: Value<'c>,
    extents: &[Value<'c>],
    axes: &[Vec<usize>],
    lanes: u32,
) -> Vec<Value<'c>> {
    let rank = axes.iter().map(Vec::len).sum();
    let zero = code.c(0);
    let mut out = vec![zero; rank];
    let mut rest = item;
    for (a, axis) in axes.iter().enumerate().rev() {
        let mut coordinate = rest;
        if a > 0 {
            coordinate = code.rem(rest, extents[a]);
            rest = code.div(rest, extents[a]);
        }
        if a + 1 == axes.len() {
            coordinate = code.mul_const(coordinate, i64::from(lanes));
        }
        out[*axis.last().expect("invariant: an axis has a dimension")] = coordinate;
    }
    out
}

/// The whole loop nest in invocation 0, for ops whose iterations may write the same element.
fn serial<'c>(
    code: &mut Code<'c, '_>,
    evaluator: &Evaluator<'c, '_>,
    op: &TileOp<'c>,
    linear: Value<'c>,
) -> Result<(), Diagnostics> {
    let one = code.c(1);
    let first = code.less(linear, one);
    code.guarded(Some(first), |code| evaluator.nest(code, op))
}
