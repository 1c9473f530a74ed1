//! Reductions whose results are neighbours in memory: sums of columns, and products of few rows with a matrix that is
//! contiguous along its columns. The reduction is split over the invocations of a workgroup.
//!
//! Before: `linalg.generic {add} ins(%x) outs(%s)` over `(i, j) -> (i, j), (j)`, one tile of 32 columns.
//! After: invocation `(y, x)` has the vector `x` of the columns, and every `groups`-th element of the reduction from `y` on.
//! ```mlir
//! %p = scf.for %s = 0 to %full iter_args(%v) { vector.load %x[(%s * 4 + 0) * groups + y, ..] ; arith.addf ; .. 3 more }
//! vector.store %p, %shared[..] ; gpu.barrier ; .. a tree over y .. ; vector.store %r, %y[..]
//! ```
//! Other dimensions of the results of more than one element, as rows of a product, are held in registers: what depends on
//! no row is loaded once.
//! Requires: class `column`; one group of ops with one reduction, whose body is `combine(accumulator, f(inputs))`; its other
//! ops pointwise. Declines otherwise, with a reason.
//! Ensures: sums and products are reassociated in an order that depends on extents and on the kernel attribute only. The
//! control flow around barriers is uniform; an invocation behind the end of the reduction or of the columns repeats the
//! last element, and contributes or stores nothing.

mod tree;
mod write;

use super::code::Code;
use super::combine::{self, Combine};
use super::contraction::{are_vectorizable, is_plain};
use super::elementwise::argument_lanes;
use super::evaluate::{Evaluator, Reach};
use super::fitted::FittedChoice;
use super::groups::{self, Fused};
use super::locals::Scratch;
use super::model::{Model, Operand, Size, Source, TileOp};
use super::strategy::{Declined, KernelPlan, Site, Strategy};
use monopour_contract::KernelClass;
use monopour_ir::Diagnostics;
use monopour_program::GpuDescription;

/// Most elements of the results' other dimensions, as a register of each is held.
const MAX_HELD: i64 = 8;

/// A planned reduction of columns.
struct Plan<'c, 'm> {
    fused: Fused<'c, 'm>,
    /// Per result.
    combines: Vec<Combine<'c>>,
    /// The coordinate of the columns, and their number.
    column: usize,
    columns: Size<'c>,
    /// The coordinates that are held, with their extents.
    held: Vec<(usize, i64)>,
    /// Elements of a vector.
    lanes: u32,
    /// Vectors of the columns side by side, and the invocations that share each: powers of two.
    vectors: i64,
    groups: i64,
    /// Partial results that pass through workgroup memory at a time: of whole elements.
    at_once: usize,
}

/// The strategy.
pub(super) struct Columns;

impl Strategy for Columns {
    fn plan<'c, 'm>(
        &self,
        body: &Evaluator<'c, 'm>,
        kernel: &FittedChoice,
        device: &GpuDescription,
    ) -> Result<Box<dyn KernelPlan<'c, 'm> + 'm>, Declined> {
        if kernel.class != KernelClass::Column {
            return Err(Declined::NotAsked);
        }
        Ok(Box::new(plan(body, kernel, device)?))
    }
}

/// Plans, or declines.
fn plan<'c, 'm>(
    body: &Evaluator<'c, 'm>,
    kernel: &FittedChoice,
    device: &GpuDescription,
) -> Result<Plan<'c, 'm>, Declined> {
    let model = body.model;
    if !model.is_straight() {
        return Err(Declined::ControlFlow);
    }
    let groups = groups::split(model);
    let [group] = &groups[..] else { return Err(Declined::SeparateGroups) };
    let fused = Fused::of(model, group).ok_or(Declined::NotOneReduction)?;
    let op = fused.op;
    if group.serial || !is_plain(&fused) {
        return Err(Declined::NotPlain);
    }
    if reads_what_is_written(model, &fused) {
        return Err(Declined::InputComputed);
    }
    let combines = combine::of_reduction(op).ok_or(Declined::NotAssociative)?;
    if op.inner().iter().any(|l| op.sizes[*l].exact() == Some(0)) {
        return Err(Declined::EmptyRow);
    }
    let (column, held) = split_coordinates(&group.sizes)?;
    let columns = group.sizes[column];
    let lanes = choose_lanes(body, &fused, (column, &columns), kernel);
    let bound = columns.facts.bound.ok_or(Declined::UnboundedTile)?.max(1);
    let vectors = ((bound + i64::from(lanes) - 1) / i64::from(lanes)) as u64;
    let (vectors, invocations) = (vectors.next_power_of_two() as i64, kernel.invocations());
    if invocations % vectors != 0 || !(invocations / vectors).is_positive() {
        return Err(Declined::PartialTeams);
    }
    let element = |c: &Combine| c.element.element_size_bytes().unwrap_or(4).max(4);
    let widest = combines.iter().map(element).max().unwrap_or(4);
    // All results of an element pass in one batch.
    let bytes = widest * u64::from(lanes) * invocations as u64 * combines.len() as u64;
    let at_once = (u64::from(device.limits.max_workgroup_storage_bytes) / bytes) as usize * combines.len();
    if at_once == 0 {
        return Err(Declined::WorkgroupMemory(bytes));
    }
    let groups = invocations / vectors;
    Ok(Plan { fused, combines, column, columns, held, lanes, vectors, groups, at_once })
}

/// Whether an input of the reduction lies in a buffer that the group writes.
fn reads_what_is_written<'c>(model: &Model<'c>, fused: &Fused<'c, '_>) -> bool {
    let bases = |operands: &[Operand<'c>]| operands.iter().filter_map(|o| model.base(o.source)).collect::<Vec<_>>();
    let (inputs, outputs) = fused.op.operands.split_at(fused.op.num_inputs);
    let written = [fused.written_before(model), bases(outputs)].concat();
    bases(inputs).iter().any(|base| written.contains(base))
}

/// The coordinate of the columns, the last one of more than one element, and the others of which several are held.
fn split_coordinates(sizes: &[Size]) -> Result<(usize, Vec<(usize, i64)>), Declined> {
    let is_one = |d: &usize| sizes[*d].exact() == Some(1);
    let column = (0..sizes.len()).rev().find(|d| !is_one(d)).unwrap_or(sizes.len().saturating_sub(1));
    let others = (0..sizes.len()).filter(|d| *d != column && !is_one(d));
    let held: Option<Vec<(usize, i64)>> = others.map(|d| Some((d, sizes[d].exact()?))).collect();
    let held = held.filter(|_| !sizes.is_empty()).ok_or(Declined::UnboundedTile)?;
    match held.iter().try_fold(1i64, |n, (_, extent)| n.checked_mul(*extent)) {
        Some(1..=MAX_HELD) => Ok((column, held)),
        _ => Err(Declined::RegisterTile),
    }
}

/// The widest vectors of columns in which all ops can be computed, and that the results, and an input, are accessed by.
fn choose_lanes(
    body: &Evaluator<'_, '_>,
    fused: &Fused,
    (column, columns): (usize, &Size),
    kernel: &FittedChoice,
) -> u32 {
    let evaluator = Evaluator { along: Some(column), ..body.clone() };
    if !are_vectorizable(fused) {
        return 1;
    }
    let (ops, op) = (fused.ops(), fused.op);
    let fits = |lanes: u32| {
        let writes = |o: &&TileOp| o.outputs().iter().all(|output| reach(&evaluator, o, output, lanes) == Reach::Wide);
        let inputs = || op.operands[..op.num_inputs].iter().map(|input| reach(&evaluator, op, input, lanes));
        columns.facts.divisor % i64::from(lanes) == 0
            && ops.iter().all(writes)
            && inputs().any(|r| r == Reach::Wide)
            && !inputs().any(|r| matches!(r, Reach::Strided(_)))
    };
    [4, 2].into_iter().find(|lanes| *lanes <= kernel.vector_width && fits(*lanes)).unwrap_or(1)
}

fn reach<'c>(evaluator: &Evaluator<'c, '_>, op: &TileOp<'c>, operand: &Operand<'c>, lanes: u32) -> Reach<'c> {
    match operand.source {
        Source::Slice(slice) => evaluator.reach(op, operand, slice, lanes),
        Source::Scalar(_) => Reach::Uniform,
    }
}

impl<'c, 'm> KernelPlan<'c, 'm> for Plan<'c, 'm> {
    fn strategy(&self) -> &'static str {
        "columns"
    }

    fn lanes(&self) -> u32 {
        self.lanes
    }

    fn write(&self, code: &mut Code<'c, '_>, site: &Site<'c, '_, 'm>) -> Result<Vec<Scratch>, Diagnostics> {
        let along = Evaluator { along: Some(self.column), ..site.body.clone() };
        let evaluator = Evaluator { lanes: argument_lanes(&along, self.lanes), ..along };
        write::write(code, site, &evaluator, self)?;
        Ok(vec![])
    }
}
