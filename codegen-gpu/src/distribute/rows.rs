//! Row reductions, and whole chains of them (softmax, layer norm): a team of invocations per row, the row in registers.
//!
//! Before (one tile of `R` rows; fills, reductions along the rows, elementwise ops on `[R, N]` and on `[R]`):
//! ```mlir
//! linalg.fill outs(%m) ; linalg.generic {max} ins(%x) outs(%m) ; linalg.generic {exp(x - m)} ins(%x, %m) outs(%y) ; ..
//! ```
//! After: a lane of a team holds every `team x lanes`-th vector of its row; each element is loaded once and stored once.
//! ```mlir
//! %v0 = vector.load %x[..] ; %p = arith.maximumf %p, %v0 ; .. ; %s, %ok = gpu.shuffle xor %p, %c1, %c8 ; .. ; vector.store %e0, %y[..]
//! ```
//! A reduction is a partial result per lane, then a butterfly over the lanes of a subgroup (`share = "subgroup"`), or a tree in
//! workgroup memory. Its result is uniform in the team; `[R]` values live in registers and are stored by one lane.
//! Ops are grouped in *sweeps* over the row: a sweep ends where an op reads the result of a reduction of the same sweep.
//! Rows that do not fit in registers are loaded again by each sweep.
//!
//! Requires: class `row`; operands whose index maps are linear; reductions whose body is `combine(accumulator, f(inputs))`.
//! A buffer that is written is accessed through one slice only. Declines otherwise, with a reason.
//! Ensures: sums and products are reassociated in an order that depends on extents and on the kernel attribute only.

mod exchange;
mod forms;
mod write;

use super::code::Code;
use super::combine::{self, Combine};
use super::evaluate::{Evaluator, PACKED, common_lanes, is_vectorizable_with};
use super::fitted::FittedChoice;
use super::iterations;
use super::locals::Scratch;
use super::model::{Base, Model, Size, TileOp};
use super::strategy::{Declined, KernelPlan, Site, Strategy};
use super::types::is_vector_float;
use forms::{Form, Forms, same_sizes, stripped};
use monopour_contract::KernelClass;
use monopour_ir::Diagnostics;
use monopour_ir::ops;
use monopour_program::GpuDescription;
use std::collections::HashMap;

/// Register budget of one lane for rows, in elements and in vectors, whose code is unrolled. Software adapters spill to
/// their cache, but take milliseconds to compile an access.
const CPU_ADAPTER: (i64, i64) = (512, 32);
const HARDWARE: (i64, i64) = (128, 64);
/// Rows of a lane for which a software adapter takes twice as long: the default kernels have fewer, or short ones.
const MANY_HELD_ROWS: i64 = 4;
/// Most unrolled vectors of a sweep that reads nothing of an earlier one; a longer one is a loop.
const MAX_SINGLE_UNROLLED: i64 = 8;
/// Vectors per pass of a loop, to hide latency.
const LOOP_UNROLL: i64 = 4;
const MAX_LOOP_UNROLL: i64 = 64;
/// Vectors per pass of dynamic trip count; each is guarded.
const DYNAMIC_UNROLL: i64 = 8;
/// Most rows of a team per pass.
const MAX_ROWS: i64 = 8;

/// A planned row kernel.
struct Plan<'c, 'm> {
    steps: Vec<Step<'c, 'm>>,
    sweeps: Vec<Sweep>,
    forms: Forms<'c>,
    /// Extents of the rows' space, unit extents left out.
    rows: Vec<Size<'c>>,
    /// Extents of the columns' axes.
    axes: Vec<Axis<'c>>,
    /// Elements of a row, where static.
    columns: Option<i64>,
    /// Lanes of an access along the row.
    lanes: u32,
    team: Team,
    /// Rows of one team per pass, and passes.
    rows_per_team: i64,
    passes: i64,
    /// Whether a row stays in registers from sweep to sweep.
    resident: bool,
    /// Vectors per pass of the loop over a row.
    unroll: i64,
    /// Whether a team without a row skips its turn, instead of computing the last row again. On hardware it computes, so
    /// that shuffles are in uniform control flow.
    idle_teams_skip: bool,
}

/// Neighbouring column dimensions that collapse to one in every operand.
#[derive(Clone, Copy, Debug)]
struct Axis<'c> {
    /// Innermost dimension.
    size: Size<'c>,
    /// Extent, where static.
    extent: Option<i64>,
}

/// The invocations that share a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Team {
    /// Invocations per row, a power of two.
    size: i64,
    /// Teams in the workgroup.
    count: i64,
    /// Whether partial results pass through workgroup memory instead of subgroup shuffles.
    workgroup_memory: bool,
}

/// Iteration space of an op, by rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Elementwise on `[R, N]`.
    Wide,
    /// Elementwise on `[R]`.
    Narrow,
    /// `[R, N]` to `[R]`.
    Reduce,
}

/// An op with its kind.
struct Step<'c, 'm> {
    op: &'m TileOp<'c>,
    kind: Kind,
    /// The op's loop of each row dimension and of each column dimension.
    row_loops: Vec<usize>,
    column_loops: Vec<usize>,
    /// Per operand: its form in [`Plan::forms`]; `None` for scalars and for values that are not read.
    reads: Vec<Option<usize>>,
    /// Form per output.
    writes: Vec<usize>,
    /// Per output of a reduction.
    combines: Vec<Combine<'c>>,
}

/// Positions in [`Plan::steps`].
#[derive(Clone, Default, Debug)]
struct Sweep {
    /// Narrow ops before the loop over the row.
    before: Vec<usize>,
    body: Vec<usize>,
}

/// The strategy.
pub(super) struct Rows;

impl Strategy for Rows {
    fn plan<'c, 'm>(
        &self,
        body: &Evaluator<'c, 'm>,
        kernel: &FittedChoice,
        device: &GpuDescription,
    ) -> Result<Box<dyn KernelPlan<'c, 'm> + 'm>, Declined> {
        if kernel.class != KernelClass::Row {
            return Err(Declined::NotAsked);
        }
        Ok(Box::new(plan(body, kernel, device)?))
    }
}

/// Plans, or declines.
fn plan<'c, 'm>(
    evaluator: &Evaluator<'c, 'm>,
    kernel: &FittedChoice,
    device: &GpuDescription,
) -> Result<Plan<'c, 'm>, Declined> {
    let model: &'m Model = evaluator.model;
    if !model.is_straight() {
        return Err(Declined::ControlFlow);
    }
    let (rows, columns) = space(model)?;
    let mut forms = Forms::default();
    let mut steps = Vec::new();
    for op in &model.ops {
        steps.push(step(model, op, &rows, &columns, &mut forms)?);
    }
    check_memory(&steps, &forms)?;
    let (axes, extent) = axes(&steps, &columns, &mut forms)?;
    let lanes = choose_lanes(evaluator, &steps, &forms, &axes, kernel);
    let sweeps = sweeps(&steps);
    let widths: Vec<Option<u64>> = forms.written(&steps, Kind::Reduce).map(|f| f.element_bytes).collect();
    let team = team(kernel, extent, lanes, widths.iter().all(|w| *w == Some(4)))?;
    let row_bound = rows.iter().try_fold(1i64, |n, r| r.facts.bound.map(|b| n * b.max(1)));
    let row_bound = row_bound.ok_or(Declined::UnboundedRows)?;
    let wanted = kernel.register_tile.first().copied().unwrap_or(1).clamp(1, MAX_ROWS);
    let chunks = extent.map(|e| ceil_div(e, team.size * i64::from(lanes)));
    let (live, local) = forms.live_across(&steps, &sweeps);
    let fits = |rows: i64| chunks.is_some_and(|c| fits_registers(c, live, rows, lanes, device));
    let most = wanted.min(ceil_div(row_bound, team.count));
    // Rows of a loop that holds nothing but partial results share what does not depend on the row.
    let looped = if live == 0 && !device.is_cpu_adapter() { most } else { most.min(2) };
    let rows_per_team = (1..=most).rev().find(|r| fits(*r)).unwrap_or(looped);
    let resident = fits(rows_per_team);
    if !resident && local {
        return Err(Declined::RowNotResident);
    }
    let passes = ceil_div(row_bound, team.count * rows_per_team);
    let looped = if resident { 0 } else { sweeps.iter().filter(|s| !s.body.is_empty()).count() as i64 };
    let plan = Plan {
        unroll: unroll(passes, looped, chunks, device)?,
        passes,
        steps,
        sweeps,
        forms,
        rows,
        axes,
        columns: extent,
        lanes,
        team,
        rows_per_team,
        resident,
        idle_teams_skip: !team.workgroup_memory && device.is_cpu_adapter(),
    };
    let needed = plan.workgroup_bytes(kernel);
    if needed > u64::from(device.limits.max_workgroup_storage_bytes) {
        return Err(Declined::WorkgroupMemory(needed));
    }
    Ok(plan)
}

impl<'c, 'm> KernelPlan<'c, 'm> for Plan<'c, 'm> {
    fn strategy(&self) -> &'static str {
        "rows"
    }

    fn lanes(&self) -> u32 {
        self.lanes
    }

    fn write(&self, code: &mut Code<'c, '_>, site: &Site<'c, '_, 'm>) -> Result<Vec<Scratch>, Diagnostics> {
        let evaluator = Evaluator { lanes: self.argument_lanes(site.body), ..site.body.clone() };
        write::write(code, site.func, &evaluator, self, site.kernel)?;
        Ok(vec![])
    }
}

impl<'c> Plan<'c, '_> {
    /// The lane count of each argument; 1 where an access of it is not wide.
    fn argument_lanes(&self, evaluator: &Evaluator<'c, '_>) -> HashMap<Base, u32> {
        common_lanes(self.forms.all.iter().map(|form| {
            let fits = |f: &Form<'c>| f.is_wide(evaluator, &self.axes, self.lanes) || self.is_paired(evaluator, f);
            let is_wide = matches!(form.base, Base::Argument(_)) && fits(form);
            (form.base, if is_wide { self.lanes } else { 1 })
        }))
    }

    /// Whether a form that is only read has every second element of two wide accesses.
    fn is_paired(&self, evaluator: &Evaluator<'c, '_>, form: &Form<'c>) -> bool {
        let is_written = self.steps.iter().flat_map(|s| &s.writes).any(|f| self.forms.all[*f].base == form.base);
        !is_written && form.is_paired(evaluator, &self.axes, self.lanes)
    }

    /// The reductions of a sweep: step and output.
    fn reductions(&self, sweep: &Sweep) -> Vec<(usize, usize)> {
        let of = |i: &usize| (0..self.steps[*i].combines.len()).map(move |o| (*i, o)).collect::<Vec<_>>();
        sweep.body.iter().flat_map(of).collect()
    }

    /// Whether an invocation stores at the end what another one has loaded: results that start from a buffer's old
    /// values, loaded by all lanes of a team, or by the lanes and teams that are clamped into range.
    fn stores_behind_others(&self, rows_are_clamped: bool, chunks_are_clamped: bool) -> bool {
        let mut written: Vec<usize> = vec![];
        let (mut narrow, mut wide) = (false, false);
        for step in &self.steps {
            let starts = step.writes.iter().filter(|_| step.kind == Kind::Reduce);
            for form in step.reads.iter().flatten().chain(starts).filter(|f| !written.contains(f)) {
                let at = &self.forms.all[*form];
                let is_stored = self.steps.iter().any(|s| s.writes.contains(form));
                if is_stored && matches!(at.base, Base::Argument(_)) {
                    *(if at.is_narrow() { &mut narrow } else { &mut wide }) = true;
                }
            }
            written.extend(&step.writes);
        }
        let shared = narrow && (self.team.size > 1 || rows_are_clamped);
        let clamped = wide && self.resident && (rows_are_clamped || chunks_are_clamped);
        // Skipped turns leave no barrier that all reach; software adapters run a subgroup in lock step.
        !self.idle_teams_skip && (shared || clamped)
    }

    /// Bytes of workgroup memory for partial results: the most of any sweep, at least four bytes per value.
    fn workgroup_bytes(&self, kernel: &FittedChoice) -> u64 {
        if !self.team.workgroup_memory || self.team.size == 1 {
            return 0;
        }
        let bytes = |(step, output): (usize, usize)| {
            let form = &self.forms.all[self.steps[step].writes[output]];
            form.element_bytes.unwrap_or(4).max(4) * self.rows_per_team as u64 * kernel.invocations() as u64
        };
        self.sweeps.iter().map(|s| self.reductions(s).into_iter().map(bytes).sum::<u64>()).max().unwrap_or(0)
    }
}

fn ceil_div(a: i64, b: i64) -> i64 {
    (a + b - 1) / b
}

/// Extents of the rows and of the columns, from the first reduction.
fn space<'c>(model: &Model<'c>) -> Result<(Vec<Size<'c>>, Vec<Size<'c>>), Declined> {
    let first = model.ops.iter().find(|op| op.outer.is_some() && !op.inner().is_empty());
    let first = first.ok_or(Declined::NoReduction)?;
    let rows = first.outer.iter().flatten().map(|l| first.sizes[*l]).collect::<Vec<_>>();
    let columns: Vec<Size> = first.inner().into_iter().map(|l| first.sizes[l]).collect();
    let (rows, columns) = (stripped(&rows), stripped(&columns));
    if columns.is_empty() {
        return Err(Declined::UnitRow);
    }
    if columns.iter().any(|c| c.exact() == Some(0)) {
        return Err(Declined::EmptyRow);
    }
    Ok((rows, columns))
}

/// The axes of the columns, and the elements of a row where that is static.
fn axes<'c>(
    steps: &[Step<'c, '_>],
    columns: &[Size<'c>],
    forms: &mut Forms<'c>,
) -> Result<(Vec<Axis<'c>>, Option<i64>), Declined> {
    let indexed = steps.iter().any(|s| !s.op.op.find_all(ops::linalg::INDEX).is_empty());
    let axes = forms.merge_columns(columns, indexed);
    let extent = axes.iter().try_fold(1i64, |n, a| a.extent.map(|e| n * e));
    if axes.len() > 1 && extent.is_none() {
        return Err(Declined::DynamicRow);
    }
    if forms.rows_are_strided() {
        return Err(Declined::StridedRows);
    }
    Ok((axes, extent))
}

/// The role of an op, or why it has none.
fn step<'c, 'm>(
    model: &Model<'c>,
    op: &'m TileOp<'c>,
    rows: &[Size<'c>],
    columns: &[Size<'c>],
    forms: &mut Forms<'c>,
) -> Result<Step<'c, 'm>, Declined> {
    let outer = op.outer.as_ref().ok_or(Declined::OutputNotIndexed)?;
    let plain = |o: &monopour_ir::Op<'c>| {
        matches!(o.dialect(), "arith" | "math") || matches!(o.name(), ops::linalg::INDEX | ops::linalg::YIELD)
    };
    if !op.body.is_none_or(|b| b.ops().iter().all(plain)) {
        return Err(Declined::NotArithmetic);
    }
    let real =
        |loops: &[usize]| -> Vec<usize> { loops.iter().copied().filter(|l| op.sizes[*l].exact() != Some(1)).collect() };
    let (outer, inner) = (real(outer), real(&op.inner()));
    let sizes = |loops: &[usize]| -> Vec<Size<'c>> { loops.iter().map(|l| op.sizes[*l]).collect() };
    let whole: Vec<Size> = rows.iter().chain(columns).copied().collect();
    let (kind, row_loops, column_loops) = if !op.inner().is_empty() {
        if !same_sizes(&sizes(&outer), rows) || !same_sizes(&sizes(&inner), columns) {
            return Err(Declined::DifferentReductions);
        }
        (Kind::Reduce, outer, inner)
    } else if same_sizes(&sizes(&outer), &whole) {
        (Kind::Wide, outer[..rows.len()].to_vec(), outer[rows.len()..].to_vec())
    } else if same_sizes(&sizes(&outer), rows) {
        (Kind::Narrow, outer, vec![])
    } else {
        return Err(Declined::ForeignExtents);
    };
    let combines = match kind {
        Kind::Reduce => combine::of_reduction(op).ok_or(Declined::NotAssociative)?,
        _ => vec![],
    };
    let mut reads = Vec::new();
    for (i, operand) in op.operands.iter().enumerate() {
        let form = Form::of(model, operand, &row_loops, &column_loops, columns.len())?;
        let form = form.filter(|_| i >= op.num_inputs || op.reads(i)).map(|f| forms.intern(f));
        reads.push(form);
    }
    let writes: Option<Vec<usize>> = reads[op.num_inputs..].iter().copied().collect();
    let writes = writes.ok_or(Declined::OutputNotBuffer)?;
    for (i, read) in reads.iter_mut().enumerate().skip(op.num_inputs) {
        if !op.reads(i) {
            *read = None;
        }
    }
    Ok(Step { op, kind, row_loops, column_loops, reads, writes, combines })
}

/// Checks that every written buffer is accessed through one form, and local ones are written before they are read.
fn check_memory(steps: &[Step<'_, '_>], forms: &Forms) -> Result<(), Declined> {
    for written in steps.iter().flat_map(|s| &s.writes) {
        let base = forms.all[*written].base;
        if forms.all.iter().enumerate().any(|(i, f)| f.base == base && i != *written) {
            return Err(Declined::MixedAccess);
        }
    }
    let mut known: Vec<usize> = vec![];
    for step in steps {
        let local = |f: &usize| matches!(forms.all[*f].base, Base::Local(_));
        if step.reads.iter().flatten().any(|f| local(f) && !known.contains(f)) {
            return Err(Declined::ReadBeforeWrite);
        }
        known.extend(&step.writes);
    }
    Ok(())
}

/// The widest vectors for all ops, if an operand is aligned to them.
fn choose_lanes(
    evaluator: &Evaluator<'_, '_>,
    steps: &[Step<'_, '_>],
    forms: &Forms,
    axes: &[Axis],
    kernel: &FittedChoice,
) -> u32 {
    let divisor = axes.last().map_or(1, |a| a.extent.unwrap_or(a.size.facts.divisor));
    // Numbers that share a word are read by words, and not written.
    let fits_vectors = |(at, f): (usize, &Form)| match f.element.integer_width() {
        Some(width) if PACKED.contains(&width) => !steps.iter().any(|step| step.writes.contains(&at)),
        Some(width) => width == 32,
        None => is_vector_float(f.element),
    };
    let are_vectors = forms.all.iter().enumerate().all(fits_vectors);
    if !steps.iter().all(|s| is_vectorizable_with(s.op, &PACKED)) || !are_vectors {
        return 1;
    }
    let fits =
        |lanes: u32| divisor % i64::from(lanes) == 0 && forms.all.iter().any(|f| f.is_wide(evaluator, axes, lanes));
    [8, 4, 2].into_iter().find(|l| *l <= kernel.vector_width && fits(*l)).unwrap_or(1)
}

/// As many invocations per row as the columns occupy.
fn team(kernel: &FittedChoice, columns: Option<i64>, lanes: u32, shuffles: bool) -> Result<Team, Declined> {
    let invocations = kernel.invocations();
    let subgroup = kernel.shared_lanes.filter(|_| shuffles).map(i64::from);
    let most = subgroup.unwrap_or(1 << invocations.trailing_zeros());
    if invocations % most != 0 {
        return Err(Declined::PartialTeams);
    }
    let useful = columns.map_or(most, |c| ceil_div(c, i64::from(lanes))) as u64;
    let size = most.min(useful.next_power_of_two() as i64);
    Ok(Team { size, count: invocations / size, workgroup_memory: subgroup.is_none() && size > 1 })
}

/// Whether `rows` rows of so many vectors fit in the registers of a lane, times the values that are live across sweeps.
fn fits_registers(chunks: i64, live: i64, rows: i64, lanes: u32, device: &GpuDescription) -> bool {
    let (elements, mut unrolled) = if device.is_cpu_adapter() { CPU_ADAPTER } else { HARDWARE };
    if device.is_cpu_adapter() && rows >= MANY_HELD_ROWS {
        unrolled *= 2;
    }
    match live {
        0 => chunks <= MAX_SINGLE_UNROLLED,
        _ => chunks * live * rows * i64::from(lanes) <= elements && chunks * live * rows <= unrolled,
    }
}

/// Vectors per pass of the loops over a row, of which there are `sweeps` for each of `passes` rows.
fn unroll(passes: i64, sweeps: i64, chunks: Option<i64>, device: &GpuDescription) -> Result<i64, Declined> {
    let Some(chunks) = chunks else { return Ok(DYNAMIC_UNROLL) };
    let fits = |unroll: i64| !device.is_cpu_adapter() || passes * (1 + sweeps * (chunks / unroll)) <= iterations::MOST;
    let mut unroll = LOOP_UNROLL;
    while !fits(unroll) {
        unroll *= 2;
        if unroll > MAX_LOOP_UNROLL {
            return Err(Declined::LongRows);
        }
    }
    Ok(unroll)
}

/// Groups ops into sweeps.
fn sweeps(steps: &[Step<'_, '_>]) -> Vec<Sweep> {
    let mut out = vec![Sweep::default()];
    let (mut pending, mut touched): (Vec<usize>, Vec<usize>) = (vec![], vec![]);
    for (i, step) in steps.iter().enumerate() {
        let waits = step.reads.iter().flatten().chain(&step.writes).any(|f| pending.contains(f));
        // A narrow op moves in front of the open sweep unless it writes what the sweep reads.
        let crosses = step.kind == Kind::Narrow && step.writes.iter().any(|f| touched.contains(f));
        if waits || crosses {
            out.push(Sweep::default());
            pending.clear();
            touched.clear();
        }
        let sweep = out.last_mut().expect("invariant: there is always a sweep");
        if step.kind == Kind::Narrow {
            sweep.before.push(i);
            continue;
        }
        sweep.body.push(i);
        touched.extend(step.reads.iter().flatten().chain(&step.writes));
        if step.kind == Kind::Reduce {
            pending.extend(&step.writes);
        }
    }
    out
}
