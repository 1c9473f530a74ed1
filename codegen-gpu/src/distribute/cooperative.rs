//! Products of halves on cooperative matrices: matrices of 16 x 16 that a subgroup holds, multiplied as one.
//!
//! Before: `linalg.fill`, one product of two f16 factors that is summed in f32, elementwise generics, all on one tile.
//! After: a loop over the reduction in steps; per step the invocations copy both factors to workgroup memory, and each
//! subgroup loads matrices of them and adds their products to its part of the tile. The next step's values are loaded into
//! registers before the products, so that memory works meanwhile. At the end whole tiles are computed and stored by matrices
//! (`direct`). The sums of others pass through workgroup memory, one or two matrices of each subgroup at a time, because no
//! invocation knows the places of the elements that it holds; there the epilogue is computed, in vectors of neighbours.
//!
//! Workgroup memory is kept small: on an H200 (driver 580) one workgroup of 36 KiB is on a unit at a time where two of 35 KiB
//! are, and takes 1.7 times as long.
//!
//! A factor is copied in the order that it has in memory, along its rows or along its columns, and loaded in that order.
//! Lines in workgroup memory are sixteen bytes apart from a power of two, and begin in other banks.
//!
//! Ragged edges: rows and columns are clamped into range, and what is out of it is not stored; of the reduction, zeros are
//! copied.
//! Requires: subgroups of one known size, f16 and [`monopour_program::GpuFeature::CooperativeMatrix`]; a static reduction; both factors
//! contiguous in vectors of four. Declines otherwise.

mod direct;
mod write;

use super::code::Code;
use super::contraction::axes::{self, Axes, Extent, Input};
use super::evaluate::{Evaluator, Reach, common_lanes, is_vectorizable};
use super::fitted::FittedChoice;
use super::groups::{self, Fused};
use super::locals::Scratch;
use super::matrices::{HALVES, MATRIX, SKEW, SUMS_SKEW};
use super::model::{Base, Source, TileOp};
use super::strategy::{Declined, KernelPlan, Site, Strategy};
use super::stride::Stride;
use direct::Direct;
use monopour_contract::KernelClass;
use monopour_ir::Diagnostics;
use monopour_ir::bodies::{self, MultiplyAdd};
use monopour_program::GpuDescription;
use std::collections::HashMap;

/// Rows of a tile of which several coordinates are counted together: a multiple.
const BOX_ROWS: i64 = 64;
/// Most matrices of a subgroup whose sums are in workgroup memory at once.
const MOST_SUMMED: i64 = 2;

/// One factor.
#[derive(Clone, Debug)]
struct Factor<'c> {
    slice: usize,
    /// Strides in elements along its rows or columns of the result, and along the reduction.
    position: Stride<'c>,
    /// Along coordinates that are counted with the rows, the fastest first.
    outer_positions: Vec<Stride<'c>>,
    k: Stride<'c>,
    /// Likewise along the outer reduction, if there are two.
    outer_k: Stride<'c>,
    constant: i64,
    /// Whether neighbours lie along the reduction.
    along_k: bool,
}

/// The tile, and the parts of its subgroups.
#[derive(Clone, Copy, Debug)]
struct Tile {
    rows: i64,
    columns: i64,
    /// Iterations of the reduction per step.
    step: i64,
    invocations: i64,
    lanes: i64,
    /// Subgroups along the columns.
    across: i64,
    /// Rows and columns of a subgroup.
    rows_each: i64,
    columns_each: i64,
}

impl Tile {
    fn subgroups(&self) -> i64 {
        self.invocations / self.lanes
    }
}

/// A planned product.
struct Plan<'c, 'm> {
    fused: Fused<'c, 'm>,
    axes: Axes<'c>,
    rows: Extent<'c>,
    columns: Extent<'c>,
    /// Iterations of the reductions together, and of the inner one, which whole steps make.
    depth: i64,
    inner_depth: i64,
    /// Of the rows, and of the columns.
    factors: [Factor<'c>; 2],
    tile: Tile,
    /// Elements per access of the results.
    lanes: u32,
    /// Results that are stored as matrices.
    direct: Option<Direct<'c>>,
}

/// The strategy.
pub(super) struct Cooperative;

impl Strategy for Cooperative {
    fn plan<'c, 'm>(
        &self,
        body: &Evaluator<'c, 'm>,
        kernel: &FittedChoice,
        device: &GpuDescription,
    ) -> Result<Box<dyn KernelPlan<'c, 'm> + 'm>, Declined> {
        let is_product = matches!(kernel.class, KernelClass::Contraction | KernelClass::Convolution);
        let Some(lanes) = kernel.cooperative.filter(|_| is_product) else { return Err(Declined::NotAsked) };
        let plan = plan(body, kernel, lanes, device)?;
        let needed = plan.bytes();
        if needed > u64::from(device.limits.max_workgroup_storage_bytes) {
            return Err(Declined::WorkgroupMemory(needed));
        }
        Ok(Box::new(plan))
    }
}

fn plan<'c, 'm>(
    body: &Evaluator<'c, 'm>,
    kernel: &FittedChoice,
    subgroup: i64,
    device: &GpuDescription,
) -> Result<Plan<'c, 'm>, Declined> {
    let model = body.model;
    if !model.is_straight() {
        return Err(Declined::ControlFlow);
    }
    let groups = groups::split(model);
    let [group] = groups.as_slice() else { return Err(Declined::SeparateGroups) };
    let fused = Fused::of(model, group).ok_or(Declined::NotOneReduction)?;
    let op = fused.op;
    if !is_product_of_halves(op) {
        return Err(Declined::NotHalves);
    }
    let written = fused.written_before(model);
    let inputs = axes::inputs(body, op, &written, &[])?;
    let mut axes = axes::axes(op, &inputs, kernel.invocations(), true)?;
    axes.reductions = axes::reductions(op, &inputs, &op.inner(), false);
    let (Some(row), Some(column), [], []) = (axes.row, axes.column, &axes.serial[..], &axes.outer_columns[..]) else {
        return Err(Declined::ResultNotIndexed);
    };
    let depths: Option<Vec<i64>> = axes.reductions.iter().map(|r| r.extent.exact().filter(|d| *d > 0)).collect();
    let depths = depths.ok_or(Declined::UnboundedTile)?;
    let (1..=2, Some(inner_depth)) = (depths.len(), depths.last().copied()) else {
        return Err(Declined::InnerNotReduction);
    };
    let depth = depths.iter().product();
    let (rows, columns) = (axes.rows(), axes.columns());
    let outer = op.outer.clone().unwrap_or_default();
    let loops = (outer[row], outer[column], op.inner());
    let factors = factors(body, op, (&inputs, &axes), &loops, (&rows, &columns, inner_depth))?;
    // Boxes of positions have any number, and their parts are even.
    let unit = if axes.outer_rows.is_empty() { MATRIX } else { BOX_ROWS };
    let tile = tile(kernel, subgroup, (&rows, &columns), (&factors, unit))?;
    if depths.len() > 1 && inner_depth % tile.step != 0 {
        return Err(Declined::InnerNotReduction);
    }
    let evaluator = Evaluator { along: axes.column, ..body.clone() };
    let lanes = result_lanes(&evaluator, &fused, &columns);
    let is_one_row = axes.outer_rows.is_empty();
    let direct = direct::plan(body, &fused, (&axes, &rows, &columns), &tile, device.limits.max_binding_bytes);
    let direct = direct.filter(|_| is_one_row);
    Ok(Plan { fused, axes, rows, columns, depth, inner_depth, factors, tile, lanes, direct })
}

/// Whether a body is `out + f32(a) * f32(b)`, of f16 factors.
fn is_product_of_halves(op: &TileOp) -> bool {
    let Some(body) = op.body.filter(|body| body.num_args() == 3 && op.num_inputs == 2) else { return false };
    let factors = MultiplyAdd::of(body).map(|product| product.factors.map(|f| bodies::extended_half(body, f)));
    let is_of_both = matches!(factors, Some([Some(0), Some(1)] | [Some(1), Some(0)]));
    is_of_both && body.arg(2).ty().float_width() == Some(32)
}

/// The factor of the rows and that of the columns.
fn factors<'c>(
    body: &Evaluator<'c, '_>,
    op: &TileOp<'c>,
    (inputs, axes): (&[Input<'c>], &Axes<'c>),
    (row, column, inner): &(usize, usize, Vec<usize>),
    (rows, columns, depth): (&Extent<'c>, &Extent<'c>, i64),
) -> Result<[Factor<'c>; 2], Declined> {
    let factor = |input: &Input<'c>, position: usize, extent: &Extent<'c>| {
        let operand = &op.operands[input.operand];
        let wide = |along: usize| body.reach_along(operand, input.slice, Some(along), HALVES as u32) == Reach::Wide;
        // Merged reductions are contiguous along the last one that is no single iteration.
        let last = inner.iter().rev().copied().find(|l| op.sizes[*l].exact() != Some(1)).or(inner.last().copied());
        let k = last.ok_or(Declined::InnerNotReduction)?;
        let along_k = wide(k) && depth % HALVES == 0;
        let outer = op.outer.as_deref().unwrap_or_default();
        let of_rows = outer.get(axes.row.unwrap_or(0)) == Some(&position);
        let merged: &[usize] = if of_rows { &axes.outer_rows } else { &[] };
        let outer_positions = merged.iter().rev().map(|c| input.strides[outer[*c]]).collect();
        // Neighbours among merged rows may lie on different lines.
        let along_position = wide(position) && extent.divisor() % HALVES == 0 && merged.is_empty();
        if !(along_k || along_position) {
            return Err(Declined::NotInVectors);
        }
        let number = inputs.iter().position(|i| i.operand == input.operand).expect("invariant: it is one of them");
        let along = |reduction: Option<&axes::Reduction<'c>>| reduction.map_or(Stride::ZERO, |r| r.strides[number]);
        let outer_k = along(axes.reductions.split_last().and_then(|(_, outer)| outer.first()));
        let (position, k) = (input.strides[position], along(axes.reductions.last()));
        Ok(Factor { slice: input.slice, position, outer_positions, k, outer_k, constant: input.constant, along_k })
    };
    let of = |own: usize, other: usize| {
        let mut found = inputs.iter().filter(|i| !i.strides[own].is(0) && i.strides[other].is(0));
        match (found.next(), found.next()) {
            (Some(input), None) => Ok(input),
            _ => Err(Declined::ResultNotIndexed),
        }
    };
    Ok([factor(of(*row, *column)?, *row, rows)?, factor(of(*column, *row)?, *column, columns)?])
}

/// The parts of the subgroups: as square as they can be.
fn tile(
    kernel: &FittedChoice,
    lanes: i64,
    (rows, columns): (&Extent, &Extent),
    (factors, unit): (&[Factor; 2], i64),
) -> Result<Tile, Declined> {
    let (Some(m), Some(n)) = (rows.bound(), columns.bound()) else { return Err(Declined::UnboundedTile) };
    let whole = |extent: i64, unit: i64| (extent.max(1) + unit - 1) / unit * unit;
    let (rows, columns) = (whole(m, unit), whole(n, MATRIX));
    let invocations = kernel.invocations();
    let subgroups = invocations / lanes;
    let parts = |across: &i64| {
        let down = subgroups / across;
        let fits = subgroups % across == 0 && columns % (across * MATRIX) == 0 && rows % (down * MATRIX) == 0;
        fits.then(|| (rows / down, columns / across))
    };
    let across = (1..=subgroups).filter(|across| parts(across).is_some());
    let across = across.min_by_key(|across| parts(across).map(|(rows, columns)| rows + columns));
    let across = across.ok_or(Declined::UnevenSubgroups)?;
    let (rows_each, columns_each) = parts(&across).ok_or(Declined::UnevenSubgroups)?;
    let step = (kernel.reduction_step / MATRIX * MATRIX).max(MATRIX);
    let tile = Tile { rows, columns, step, invocations, lanes, across, rows_each, columns_each };
    // Each invocation copies as many vectors as the others, and writes as many of the sums.
    let even = |elements: i64, run: i64| elements % (invocations * HALVES) == 0 && invocations * HALVES % run == 0;
    let sums = MATRIX * MATRIX % (lanes * HALVES) == 0;
    let fits = [rows, columns]
        .iter()
        .zip(factors)
        .all(|(positions, factor)| even(positions * step, if factor.along_k { step } else { *positions }));
    if fits && sums { Ok(tile) } else { Err(Declined::UnevenSubgroups) }
}

/// Elements per access of the results and of what the epilogue reads: four, or one.
fn result_lanes<'c>(evaluator: &Evaluator<'c, '_>, fused: &Fused<'c, '_>, columns: &Extent) -> u32 {
    let (lanes, writer) = (HALVES as u32, fused.last());
    let output = &writer.outputs()[0];
    let Source::Slice(slice) = output.source else { return 1 };
    let fits = columns.divisor() % HALVES == 0
        && fused.before.iter().chain(&fused.after).all(|op| is_vectorizable(op))
        && evaluator.reach(writer, output, slice, lanes) == Reach::Wide;
    if fits { lanes } else { 1 }
}

impl Plan<'_, '_> {
    /// The coordinate of the rows, the fastest of several.
    fn row(&self) -> usize {
        self.axes.row.expect("invariant: planned")
    }
    /// Lines of the copy of a factor, and the halves of a line: in the order of memory.
    fn lines(&self, factor: usize) -> (i64, i64) {
        let positions = if factor == 0 { self.tile.rows } else { self.tile.columns };
        if self.factors[factor].along_k { (positions, self.tile.step) } else { (self.tile.step, positions) }
    }
    /// Halves from one line to the next.
    fn pitch(&self, factor: usize) -> i64 {
        self.lines(factor).1 + SKEW
    }
    /// Elements from one line of the sums to the next.
    fn sums_pitch(&self) -> i64 {
        self.summed_columns() + SUMS_SKEW
    }
    /// Columns of a subgroup whose sums are in workgroup memory at once.
    fn summed_columns(&self) -> i64 {
        let matrices = self.tile.columns_each / MATRIX;
        if matrices % MOST_SUMMED == 0 { MOST_SUMMED * MATRIX } else { MATRIX }
    }
    /// Elements of the copy of a factor.
    fn copied(&self, factor: usize) -> i64 {
        self.lines(factor).0 * self.pitch(factor)
    }
    /// Elements of the sums that are in workgroup memory at once.
    fn summed(&self) -> i64 {
        self.tile.subgroups() * MATRIX * self.sums_pitch()
    }
    /// Bytes of workgroup memory.
    fn bytes(&self) -> u64 {
        let halves = self.copied(0) + self.copied(1);
        let summed = if self.direct.is_some() { 0 } else { self.summed() };
        (halves * 2 + summed * 4) as u64
    }
    /// The lane count of each argument; 1 where two accesses of it differ.
    fn argument_lanes(&self, evaluator: &Evaluator<'_, '_>) -> HashMap<Base, u32> {
        let model = evaluator.model;
        let loads = self.factors.iter().map(|factor| (model.slices[factor.slice].base, HALVES as u32));
        let by_element = self.fused.pointwise().filter(|_| self.direct.is_none());
        let others = by_element.filter_map(|(op, operand)| evaluator.access(op, operand, self.lanes));
        common_lanes(loads.chain(others))
    }
}

impl<'c, 'm> KernelPlan<'c, 'm> for Plan<'c, 'm> {
    fn strategy(&self) -> &'static str {
        "cooperative"
    }

    fn lanes(&self) -> u32 {
        if self.direct.is_some() { HALVES as u32 } else { self.lanes }
    }

    fn write(&self, code: &mut Code<'c, '_>, site: &Site<'c, '_, 'm>) -> Result<Vec<Scratch>, Diagnostics> {
        let mut evaluator = Evaluator { along: self.axes.column, ..site.body.clone() };
        evaluator.lanes = self.argument_lanes(&evaluator);
        write::write(code, &evaluator, self, site.kernel)?;
        Ok(vec![])
    }
}
