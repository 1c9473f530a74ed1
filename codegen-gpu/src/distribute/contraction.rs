//! Products and other reductions with register tiles: matrix products in any layout, batches, matrix times vector, convolutions.
//!
//! Before: `linalg.fill`, one op with reductions (a matrix product or a convolution as a generic), elementwise generics, all on one
//! tile of the result.
//! After: per invocation `rows` x `columns` accumulators carried through a nest of `scf.for` over the reductions, the stepped one in
//! steps of `reduction_step`; stored once.
//!
//! One coordinate of the result is the rows, one the columns (`axes`); the others are serial. An input is a value per row (a
//! scalar), per column (a vector of neighbours), or per both, as a depthwise convolution's; any body is computed from these.
//! The loads of each input and the stepped reduction are the choice of least cost (`sides`).
//!
//! Two geometries. *Shared*: the lanes of a subgroup lie along the columns; one lane loads each value of a row and
//! `gpu.shuffle` with constant lanes broadcasts it, so no value is loaded twice. *Private*: invocations form a grid over the
//! tile and each loads its operands, from the inputs or from copies in workgroup memory (`stage`).
//!
//! Several products of one input are one op with as many results: an accumulator each, and one load of what they share;
//! on software adapters one result after the other.
//!
//! Groups in front of it that fill and copy to local buffers compute inputs in workgroup memory, before a barrier: the tiles of
//! padded inputs.
//!
//! Ragged edges: loads are clamped into the slice, stores are guarded; the reduction is finished by one partial step.
//! Requires: a last group that holds exactly one op with reductions, its other ops pointwise. Declines otherwise, with a reason.

pub(super) mod axes;
mod load;
mod nest;
mod plan;
mod sides;
mod stage;
mod tile;
mod write;

use super::code::Code;
use super::elementwise;
use super::evaluate::{Evaluator, PACKED, Reach, common_lanes, is_vectorizable_with};
use super::fitted::FittedChoice;
use super::groups::{self, Fused, Group};
use super::iterations;
use super::locals::{self, Scratch};
use super::model::{Base, Local, Model, Operand, Source, TileOp};
use super::strategy::{Declined, KernelPlan, Site, Strategy};
use super::types::is_short_float;
use axes::{Axes, Extent, Input};
use monopour_contract::KernelClass;
use monopour_ir::{Diagnostics, Op, Type, ops};
use monopour_program::GpuDescription;
use plan::Plan;
use sides::{Choice, Setting, Side};
use stage::Stage;
use std::collections::HashMap;
use tile::{Tile, ceil_div};

/// Most accumulators (in elements) of one invocation; more would spill.
const MAX_ACCUMULATORS: i64 = 512;

/// The strategy.
pub(super) struct Contraction;

impl Strategy for Contraction {
    fn plan<'c, 'm>(
        &self,
        body: &Evaluator<'c, 'm>,
        kernel: &FittedChoice,
        device: &GpuDescription,
    ) -> Result<Box<dyn KernelPlan<'c, 'm> + 'm>, Declined> {
        match kernel.class {
            KernelClass::Contraction | KernelClass::Convolution => {}
            _ => return Err(Declined::NotAsked),
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
    let Some((group, before_tile)) = groups.split_last() else { return Err(Declined::NotOneReduction) };
    let padded = padded_inputs(model, before_tile)?;
    let fused = Fused::of(model, group).ok_or(Declined::NotOneReduction)?;
    let op = fused.op;
    if !is_plain(&fused) {
        return Err(Declined::NotPlain);
    }
    let written = fused.written_before(model);
    let inputs = axes::inputs(body, op, &written, &padded)?;
    let (axes, shared_lanes) = shared_axes(body, op, &inputs, kernel)?;
    let evaluator = &Evaluator { along: axes.column, ..body.clone() };
    let (rows, columns) = (axes.rows(), axes.columns());
    let widest = widest_lanes(&fused, kernel);
    let lanes = column_lanes(evaluator, fused.last(), &axes, shared_lanes, widest);
    let in_turn = device.is_cpu_adapter();
    let results = if in_turn { 1 } else { op.outputs().len() };
    let tile = geometry(kernel, shared_lanes, &rows, &columns, (lanes, results))?;
    let most_iterations = if device.is_cpu_adapter() { iterations::MOST } else { i64::MAX };
    let setting = Setting { evaluator, op, axes: &axes, inputs: &inputs, kernel, tile, lanes, widest, most_iterations };
    let choice = setting.choose();
    let is_staged = kernel.staged && (tile.row_passes, tile.column_passes) == (1, 1);
    let stages = if is_staged { staged(&setting, &choice, &padded, device) } else { vec![None; choice.sides.len()] };
    let prologue = before_tile.to_vec();
    Ok(Plan { class: kernel.class, prologue, padded, fused, axes, rows, columns, choice, lanes, tile, in_turn, stages })
}

/// Whether all bodies can be computed on vectors, also of 8 and 16 bits, which are packed.
pub(super) fn are_vectorizable(fused: &Fused) -> bool {
    let mut around = fused.before.iter().chain(&fused.after);
    is_vectorizable_with(fused.op, &PACKED) && around.all(|op| is_vectorizable_with(op, &PACKED))
}

/// The most lanes of an access that the bodies allow.
fn widest_lanes(fused: &Fused, kernel: &FittedChoice) -> u32 {
    match are_vectorizable(fused) {
        // Workgroup memory has no wider vectors.
        true if kernel.staged => kernel.vector_width.min(4),
        true => kernel.vector_width,
        false => 1,
    }
}

/// The axes, and the lanes that share operands: those without columns are shuffled between them.
fn shared_axes<'c>(
    body: &Evaluator<'c, '_>,
    op: &TileOp<'c>,
    inputs: &[Input<'c>],
    kernel: &FittedChoice,
) -> Result<(Axes<'c>, Option<u32>), Declined> {
    let outer = op.outer.clone().unwrap_or_default();
    if let Some(lanes) = kernel.shared_lanes {
        let axes = axes::axes(op, inputs, i64::from(lanes), false)?;
        let of_rows = |i: &&Input| axes.column.is_none_or(|column| i.strides[outer[column]].is(0));
        if inputs.iter().filter(of_rows).all(|i| shuffles(body, i, kernel.native_halves)) {
            return Ok((axes, Some(lanes)));
        }
    }
    Ok((axes::axes(op, inputs, kernel.invocations(), kernel.staged)?, None))
}

/// The copies of inputs in workgroup memory; none if it cannot hold all of them. Local buffers are there already.
fn staged<'c>(
    setting: &Setting<'c, '_, '_>,
    choice: &Choice<'c>,
    padded: &[Base],
    device: &GpuDescription,
) -> Vec<Option<Stage<'c>>> {
    let model = setting.evaluator.model;
    let is_packed = |s: &Side<'c>| model.slices[s.slice].element.integer_width().is_some_and(|w| PACKED.contains(&w));
    let is_local = |s: &Side<'c>| padded.contains(&model.slices[s.slice].base);
    let stage = |s: &Side<'c>| {
        let is_word = model.slices[s.slice].element.element_size_bytes() == Some(4);
        stage::stage(s, &setting.tile, setting.lanes, choice.step, is_word).filter(|_| !is_local(s) && !is_packed(s))
    };
    let stages: Vec<Option<Stage<'c>>> = choice.sides.iter().map(stage).collect();
    let bytes = |s: &Stage| locals::rounded(s.elements as u64 * element_bytes(setting.evaluator, s.side.slice));
    let needed = stages.iter().flatten().map(bytes).sum::<Option<u64>>().zip(local_bytes(model, padded));
    let offered = u64::from(device.limits.max_workgroup_storage_bytes);
    let fits = needed.is_some_and(|(copies, locals)| copies.saturating_add(locals) <= offered);
    if fits { stages } else { vec![None; choice.sides.len()] }
}

/// Bytes of local buffers in workgroup memory.
fn local_bytes(model: &Model, bases: &[Base]) -> Option<u64> {
    let locals = bases.iter().filter_map(|base| match base {
        Base::Local(local) => Some(&model.locals[*local]),
        Base::Argument(_) => None,
    });
    let bytes = |local: &Local| local.elements.max(0) as u64 * local.element.element_size_bytes().unwrap_or(4).max(4);
    locals.map(|local| locals::rounded(bytes(local))).sum()
}

/// Bytes of an element in workgroup memory.
fn element_bytes(evaluator: &Evaluator<'_, '_>, slice: usize) -> u64 {
    evaluator.model.slices[slice].element.element_size_bytes().unwrap_or(4).max(4)
}

/// Whether all ops are arithmetic on scalars outside of loops, and the results of the one with reductions indexed alike.
pub(super) fn is_plain(fused: &Fused) -> bool {
    let is_arithmetic = |op: &Op| op.is(ops::linalg::YIELD) || matches!(op.dialect(), "arith" | "math");
    are_alike(fused.op.outputs())
        && fused.ops().iter().all(|op| op.body.is_none_or(|body| body.ops().iter().all(is_arithmetic)))
}

/// Whether all results are indexed by the loops of the first.
fn are_alike(outputs: &[Operand]) -> bool {
    let same =
        |o: &Operand| o.map.len() == outputs[0].map.len() && o.map.iter().zip(&outputs[0].map).all(|(a, b)| a == b);
    !outputs.is_empty() && outputs.iter().all(same)
}

/// Whether an input's elements can be shuffled between lanes.
fn shuffles(evaluator: &Evaluator<'_, '_>, input: &Input<'_>, native_halves: bool) -> bool {
    let element: Type = evaluator.model.slices[input.slice].element;
    element.float_width() == Some(32) || element.integer_width() == Some(32) || is_short_float(element, native_halves)
}

/// Lanes along the columns of the result: as many as are aligned, but without idle lanes in the subgroup.
fn column_lanes(evaluator: &Evaluator<'_, '_>, writer: &TileOp, axes: &Axes, shared: Option<u32>, widest: u32) -> u32 {
    let bound = axes.columns().bound().unwrap_or(1).max(1) as u32;
    let busy = shared.map_or(u32::MAX, |size| bound.div_ceil(size).next_power_of_two());
    let widest = widest.min(busy);
    let output = &writer.outputs()[0];
    let Source::Slice(s) = output.source else { return 1 };
    let fits = |lanes: u32| {
        let local = matches!(evaluator.model.slices[s].base, Base::Local(_));
        axes.column_divisor() % i64::from(lanes) == 0
            && (local || evaluator.reach(writer, output, s, lanes) == Reach::Wide)
    };
    [8, 4, 2].into_iter().find(|l| *l <= widest && fits(*l)).unwrap_or(1)
}

fn geometry(
    kernel: &FittedChoice,
    shared: Option<u32>,
    rows: &Extent,
    columns: &Extent,
    (lanes, results): (u32, usize),
) -> Result<Tile, Declined> {
    let (Some(m), Some(n)) = (rows.bound(), columns.bound()) else { return Err(Declined::UnboundedTile) };
    let invocations = kernel.invocations();
    let lanes = i64::from(lanes);
    let (m, n) = (m.max(1), n.max(1));
    // The last two are those of the rows and of the columns.
    let asked = |back: usize| kernel.register_tile.len().checked_sub(back).map(|i| kernel.register_tile[i]);
    let wanted = |back: usize, default: i64| {
        if kernel.register_tile.len() < 2 { default } else { asked(back).filter(|t| *t > 0).unwrap_or(default) }
    };
    let threads_n = match shared {
        Some(size) => i64::from(size),
        None => {
            let useful = ceil_div(n, wanted(1, 4).max(lanes));
            (useful..invocations).find(|t| invocations % t == 0).unwrap_or(invocations)
        }
    };
    let threads_m = invocations / threads_n;
    let rows = wanted(2, if shared.is_some() { 16 } else { 4 }).min(m).clamp(1, MAX_ACCUMULATORS);
    let column_groups = ceil_div(wanted(1, 8), lanes).min(ceil_div(n, threads_n * lanes)).max(1);
    if rows * column_groups * lanes * results as i64 > MAX_ACCUMULATORS {
        return Err(Declined::RegisterTile);
    }
    Ok(Tile {
        threads_n,
        threads_m,
        rows,
        column_groups,
        row_passes: ceil_div(m, threads_m * rows),
        column_passes: ceil_div(n, threads_n * lanes * column_groups),
        shared,
    })
}

impl<'c, 'm> KernelPlan<'c, 'm> for Plan<'c, 'm> {
    fn strategy(&self) -> &'static str {
        self.class.as_str()
    }

    fn lanes(&self) -> u32 {
        self.lanes
    }

    fn write(&self, code: &mut Code<'c, '_>, site: &Site<'c, '_, 'm>) -> Result<Vec<Scratch>, Diagnostics> {
        let mut evaluator = Evaluator { along: self.axes.column, ..site.body.clone() };
        let scratch = self.compute_inputs(code, site, &mut evaluator)?;
        evaluator.lanes = self.argument_lanes(&evaluator);
        // Tiles of padded inputs are written element by element.
        evaluator.lanes.extend(self.padded.iter().map(|base| (*base, 1)));
        write::write(code, &evaluator, self, site.kernel)?;
        Ok(scratch)
    }
}

/// The local buffers that groups before the one with the reduction fill and copy to; the tiles of padded inputs.
fn padded_inputs(model: &Model, groups: &[Group]) -> Result<Vec<Base>, Declined> {
    let mut bases = vec![];
    for op in groups.iter().flat_map(|group| &group.ops).map(|i| &model.ops[*i]) {
        let [output] = op.outputs() else { return Err(Declined::SeparateGroups) };
        let Source::Slice(slice) = output.source else { return Err(Declined::SeparateGroups) };
        let base = model.slices[slice].base;
        if !matches!(base, Base::Local(_)) || !op.inner().is_empty() || op.outer.is_none() {
            return Err(Declined::SeparateGroups);
        }
        if !bases.contains(&base) {
            bases.push(base);
        }
    }
    Ok(bases)
}

impl<'c> Plan<'c, '_> {
    /// Writes the groups before the reduction; the local buffers get memory.
    fn compute_inputs(
        &self,
        code: &mut Code<'c, '_>,
        site: &Site<'c, '_, '_>,
        evaluator: &mut Evaluator<'c, '_>,
    ) -> Result<Vec<Scratch>, Diagnostics> {
        if self.prologue.is_empty() {
            return Ok(vec![]);
        }
        let scratch = locals::allocate(code, site.func, evaluator, &self.padded, site.place)?;
        let linear = code.linear_id(site.kernel.workgroup_size);
        let plain = Evaluator { along: None, lanes: HashMap::new(), ..evaluator.clone() };
        elementwise::write_groups(code, &plain, &self.prologue, site.kernel, (linear, 1), &|_| true)?;
        code.barrier()?;
        Ok(scratch)
    }
    /// The lane count of each argument; 1 where two accesses of it differ.
    fn argument_lanes(&self, evaluator: &Evaluator<'c, '_>) -> HashMap<Base, u32> {
        let model = evaluator.model;
        let loads = self.choice.sides.iter().map(|side| (model.slices[side.slice].base, side.lanes));
        let others = self.fused.pointwise().filter_map(|(op, operand)| evaluator.access(op, operand, self.lanes));
        common_lanes(loads.chain(others))
    }
}
