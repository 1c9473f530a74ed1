//! Writes a planned contraction: places, loads, the loop over k, the epilogue, the stores.

use super::super::attrs::KernelAttr;
use super::super::code::Code;
use super::super::evaluate::{Evaluator, Point, Reach};
use super::super::model::{Base, Source, TileOp};
use super::{Plan, Side, ceil_div};
use monopour_ir::{Diagnostics, Value};
use std::collections::HashMap;

/// Where an invocation stands in the tile.
struct Place {
    /// Lane along n.
    lane: Value,
    /// Rows of the invocation: first one, and each one clamped.
    first_row: Value,
    rows: Vec<Value>,
    /// Whether each row exists; `None`: known.
    row_guards: Vec<Option<Value>>,
    /// First column of each group, clamped, and whether it exists.
    columns: Vec<Value>,
    column_guards: Vec<Option<Value>>,
}

/// Writes the kernel.
pub(in crate::distribute) fn write(
    code: &mut Code,
    evaluator: &Evaluator<'_>,
    plan: &Plan<'_>,
    attr: &KernelAttr,
) -> Result<(), Diagnostics> {
    let linear = code.linear_id(attr.workgroup_size);
    let threads_n = code.c(plan.tile.threads_n);
    let whole = plan.tile.threads_m == 1;
    let lane = if whole { linear } else { code.rem(linear, threads_n) };
    let group = if whole { code.c(0) } else { code.div(linear, threads_n) };
    let (row_passes, column_passes) = (code.c(plan.tile.row_passes), code.c(plan.tile.column_passes));
    code.repeat(row_passes, |code, row_pass| {
        code.repeat(column_passes, |code, column_pass| {
            let place = place(code, plan, lane, group, row_pass, column_pass);
            register_tile(code, evaluator, plan, &place)
        })
    })
}

fn place(code: &mut Code, plan: &Plan<'_>, lane: Value, group: Value, row_pass: Value, column_pass: Value) -> Place {
    let tile = &plan.tile;
    let block = code.mul_const(row_pass, tile.threads_m);
    let block = code.add(block, group);
    let first_row = code.mul_const(block, tile.rows);
    let last_row = code.add_const(plan.rows.value, -1);
    let (mut rows, mut row_guards) = (Vec::new(), Vec::new());
    for r in 0..tile.rows {
        let row = code.add_const(first_row, r);
        let exact = plan.rows_exact();
        row_guards.push((!exact).then(|| code.less(row, plan.rows.value)));
        rows.push(if exact { row } else { code.min(row, last_row) });
    }
    let lanes = i64::from(plan.lanes);
    let last_group = code.add_const(plan.columns.value, -lanes);
    let (mut columns, mut column_guards) = (Vec::new(), Vec::new());
    for g in 0..tile.column_groups {
        let pass = code.mul_const(column_pass, tile.column_groups);
        let pass = code.add_const(pass, g);
        let position = code.mul_const(pass, tile.threads_n);
        let position = code.add(position, lane);
        let column = code.mul_const(position, lanes);
        let exact = plan.columns_exact();
        column_guards.push((!exact).then(|| code.less(column, plan.columns.value)));
        // Extents are multiples of the lanes: a group of columns exists as a whole or not at all.
        columns.push(if exact { column } else { code.min(column, last_group) });
    }
    Place { lane, first_row, rows, row_guards, columns, column_guards }
}

fn register_tile(
    code: &mut Code,
    evaluator: &Evaluator<'_>,
    plan: &Plan<'_>,
    place: &Place,
) -> Result<(), Diagnostics> {
    let mut points = Vec::new();
    for row in &place.rows {
        for column in &place.columns {
            points.push(Point { coordinates: vec![*row, *column], lanes: plan.lanes, held: HashMap::new() });
        }
    }
    for point in &mut points {
        for op in &plan.before {
            evaluator.evaluate(code, op, point)?;
        }
    }
    let initial = points.iter().map(|p| initial(code, evaluator, plan, p)).collect::<Result<Vec<_>, _>>()?;
    let sums = accumulate(code, evaluator, plan, place, initial)?;
    let Source::Slice(result) = plan.op.outputs()[0].source else { return Ok(()) };
    for (point, sum) in points.iter_mut().zip(sums) {
        point.held.insert(result, sum);
        for op in &plan.after {
            evaluator.evaluate(code, op, point)?;
        }
    }
    let writers: Vec<&TileOp> = plan.before.iter().chain([&plan.op]).chain(&plan.after).copied().collect();
    let groups = place.columns.len();
    for (i, point) in points.iter().enumerate() {
        let guard = code.both(place.row_guards[i / groups], place.column_guards[i % groups]);
        // Later groups do not exist, so local buffers need no memory.
        code.guarded(guard, |code| evaluator.store(code, &writers, point, |base| matches!(base, Base::Argument(_))))?;
    }
    Ok(())
}

/// The accumulator's first value: what was written before, else what memory holds.
fn initial(code: &mut Code, evaluator: &Evaluator<'_>, plan: &Plan<'_>, point: &Point) -> Result<Value, Diagnostics> {
    let outer = plan.op.outer.as_ref().expect("invariant: planned");
    let zero = code.c(0);
    let mut loops = vec![zero; plan.op.sizes.len()];
    for (l, c) in outer.iter().zip(&point.coordinates) {
        loops[*l] = *c;
    }
    let value = evaluator.operand(code, plan.op, &plan.op.outputs()[0], &loops, point)?;
    Ok(code.broadcast(value, plan.lanes))
}

/// The loop over k. Accumulators are vectors along n, or scalars where the right operand is contiguous along k.
fn accumulate(
    code: &mut Code,
    evaluator: &Evaluator<'_>,
    plan: &Plan<'_>,
    place: &Place,
    initial: Vec<Value>,
) -> Result<Vec<Value>, Diagnostics> {
    let split = plan.right.along_k() && plan.lanes > 1;
    let mut carried = if split {
        initial.iter().flat_map(|v| (0..plan.lanes).map(|l| code.extract(*v, l)).collect::<Vec<_>>()).collect()
    } else {
        initial
    };
    let offsets = Offsets::new(code, evaluator, plan, place);
    let whole_steps = plan.reduction / plan.step * plan.step;
    if whole_steps > 0 {
        let bounds = [code.c(0), code.c(whole_steps), code.c(plan.step)];
        carried = code.for_loop(bounds, &carried, |code, k, carried| {
            Ok(step(code, evaluator, plan, &offsets, k, plan.step, carried))
        })?;
    }
    if plan.reduction > whole_steps {
        let k = code.c(whole_steps);
        carried = step(code, evaluator, plan, &offsets, k, plan.reduction - whole_steps, &carried);
    }
    if split {
        carried = carried.chunks(plan.lanes as usize).map(|lanes| code.vector_of(lanes)).collect();
    }
    Ok(carried)
}

/// Parts of addresses that do not depend on k.
struct Offsets {
    /// Left operand: per register of rows (shared) or per row.
    left: Vec<Value>,
    /// Right operand: per column group, or per column where it is contiguous along k.
    right: Vec<Value>,
    /// Lane along n, which is also the lane along k of a shared transposed left operand.
    lane: Value,
}

impl Offsets {
    fn new(code: &mut Code, evaluator: &Evaluator<'_>, plan: &Plan<'_>, place: &Place) -> Self {
        let slices = &evaluator.model.slices;
        let (left, right) = (&plan.left, &plan.right);
        let at = |code: &mut Code, side: &Side, position: Value| {
            let scaled = code.mul_const(position, side.outer_stride);
            code.add(slices[side.slice].offset, scaled)
        };
        let left_rows = left_rows(code, plan, place);
        let left_offsets = left_rows.into_iter().map(|row| at(code, left, row)).collect();
        let mut right_offsets = Vec::new();
        for column in &place.columns {
            let per_column = if right.along_k() { i64::from(plan.lanes) } else { 1 };
            for c in 0..per_column {
                let column = code.add_const(*column, c);
                right_offsets.push(at(code, right, column));
            }
        }
        Self { left: left_offsets, right: right_offsets, lane: place.lane }
    }
}

/// The first rows of the loads of the left operand.
fn left_rows(code: &mut Code, plan: &Plan<'_>, place: &Place) -> Vec<Value> {
    let side = &plan.left;
    if !side.along_k() {
        // Vectors along m; a vector lies inside the slice or its values are not stored.
        let lanes = i64::from(side.lanes);
        let last = code.add_const(plan.rows.value, -lanes);
        return (0..ceil_div(plan.tile.rows, lanes))
            .map(|t| {
                let row = code.add_const(place.first_row, t * lanes);
                if plan.rows_exact() { row } else { code.min(row, last) }
            })
            .collect();
    }
    let Some(size) = plan.tile.shared else { return place.rows.clone() };
    let size = i64::from(size);
    let last = code.add_const(plan.rows.value, -1);
    let fits = plan.rows_exact() && plan.tile.rows % size == 0;
    (0..ceil_div(plan.tile.rows, size))
        .map(|r| {
            let row = code.add_const(place.first_row, r * size);
            let row = code.add(row, place.lane);
            if fits { row } else { code.min(row, last) }
        })
        .collect()
}

/// `count` products for every accumulator, starting at `k`.
fn step(
    code: &mut Code,
    evaluator: &Evaluator<'_>,
    plan: &Plan<'_>,
    offsets: &Offsets,
    k: Value,
    count: i64,
    carried: &[Value],
) -> Vec<Value> {
    let left = load_left(code, evaluator, plan, offsets, k, count);
    let right = load_right(code, evaluator, plan, offsets, k, count);
    let (rows, per_row) = (plan.tile.rows as usize, carried.len() / plan.tile.rows as usize);
    let mut out = Vec::with_capacity(carried.len());
    for row in 0..rows {
        let factors: Vec<Value> = (0..count).map(|q| left_element(code, plan, &left, row as u32, q as u32)).collect();
        for c in 0..per_row {
            let mut sum = carried[row * per_row + c];
            let ty = sum.ty();
            for (q, factor) in factors.iter().enumerate() {
                let other = right_element(code, plan, &right, c, q as u32);
                let factor = if ty.is_vector() { code.broadcast(*factor, plan.lanes) } else { *factor };
                let product = code.op1("arith.mulf", &[factor, other], ty);
                sum = code.op1("arith.addf", &[sum, product], ty);
            }
            out.push(sum);
        }
    }
    out
}

/// Loaded values of a factor: `loads[i][j]`.
struct Loaded {
    loads: Vec<Vec<Value>>,
}

fn load_left(
    code: &mut Code,
    evaluator: &Evaluator<'_>,
    plan: &Plan<'_>,
    offsets: &Offsets,
    k: Value,
    count: i64,
) -> Loaded {
    let side = &plan.left;
    if side.along_k() {
        return Loaded { loads: offsets.left.iter().map(|o| along_k(code, evaluator, side, *o, k, count)).collect() };
    }
    let load_at = |code: &mut Code, k: Value| -> Vec<Value> {
        let scaled = code.mul_const(k, side.k_stride);
        offsets
            .left
            .iter()
            .map(|o| {
                let at = code.add(*o, scaled);
                load(code, evaluator, side, at)
            })
            .collect()
    };
    if plan.tile.shared.is_none() {
        return Loaded {
            loads: (0..count)
                .map(|q| {
                    let k = code.add_const(k, q);
                    load_at(code, k)
                })
                .collect(),
        };
    }
    // Lane q loads the rows of k + q; lanes beyond the step must still load something that exists.
    let mut at = code.add(k, offsets.lane);
    if count < i64::from(plan.tile.shared.unwrap_or(1)) {
        let last = code.c(plan.reduction - 1);
        at = code.min(at, last);
    }
    Loaded { loads: vec![load_at(code, at)] }
}

fn load_right(
    code: &mut Code,
    evaluator: &Evaluator<'_>,
    plan: &Plan<'_>,
    offsets: &Offsets,
    k: Value,
    count: i64,
) -> Loaded {
    let side = &plan.right;
    if side.along_k() {
        return Loaded { loads: offsets.right.iter().map(|o| along_k(code, evaluator, side, *o, k, count)).collect() };
    }
    let reach = if side.outer_stride == 1 { Reach::Wide } else { Reach::Strided(side.outer_stride) };
    Loaded {
        loads: (0..count)
            .map(|q| {
                let k = code.add_const(k, q);
                let scaled = code.mul_const(k, side.k_stride);
                offsets
                    .right
                    .iter()
                    .map(|o| {
                        let at = code.add(*o, scaled);
                        let lanes = if plan.lanes == 1 { Reach::Uniform } else { reach };
                        evaluator.load(code, side.slice, at, lanes, plan.lanes)
                    })
                    .collect()
            })
            .collect(),
    }
}

/// `count` values along k in vectors of the side's lanes.
fn along_k(code: &mut Code, evaluator: &Evaluator<'_>, side: &Side, offset: Value, k: Value, count: i64) -> Vec<Value> {
    let start = code.add(offset, k);
    (0..count / i64::from(side.lanes))
        .map(|t| {
            let at = code.add_const(start, t * i64::from(side.lanes));
            load(code, evaluator, side, at)
        })
        .collect()
}

fn load(code: &mut Code, evaluator: &Evaluator<'_>, side: &Side, at: Value) -> Value {
    let reach = if side.lanes == 1 { Reach::Uniform } else { Reach::Wide };
    evaluator.load(code, side.slice, at, reach, side.lanes)
}

/// Left factor of a row and of the step's k number `q`: a scalar.
fn left_element(code: &mut Code, plan: &Plan<'_>, left: &Loaded, row: u32, q: u32) -> Value {
    let lanes = plan.left.lanes;
    let pick = |code: &mut Code, vectors: &[Value], position: u32| {
        code.extract(vectors[(position / lanes) as usize], position % lanes)
    };
    match (plan.left.along_k(), plan.tile.shared) {
        (true, Some(size)) => {
            let value = pick(code, &left.loads[(row / size) as usize], q);
            code.shuffle(value, row % size, size)
        }
        (true, None) => pick(code, &left.loads[row as usize], q),
        (false, Some(size)) => {
            let value = pick(code, &left.loads[0], row);
            code.shuffle(value, q, size)
        }
        (false, None) => pick(code, &left.loads[q as usize], row),
    }
}

/// Right factor of accumulator `c` of a row: a scalar where the operand is contiguous along k, else a vector of columns.
fn right_element(code: &mut Code, plan: &Plan<'_>, right: &Loaded, c: usize, q: u32) -> Value {
    let lanes = plan.right.lanes;
    if plan.right.along_k() {
        return code.extract(right.loads[c][(q / lanes) as usize], q % lanes);
    }
    right.loads[q as usize][c]
}
