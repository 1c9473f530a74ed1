//! Matrix products: a register tile per invocation, operands loaded wide, initialisation and epilogue in registers.
//!
//! Before: `linalg.fill`, `linalg.matmul` (as a generic of any operand order), elementwise generics, all on one tile of the result.
//! After: per invocation `rows` x `columns` accumulators carried through one `scf.for` over k in steps of `reduction_step`; stored once.
//!
//! Two geometries. *Shared*: the lanes of a subgroup lie along n; a row of the left operand is loaded by one lane and handed
//! round by `gpu.shuffle` with constant lanes, so no two lanes load the same value. *Private*: invocations form a grid over
//! the tile and each loads what it needs.
//!
//! Ragged edges: loads are clamped into the slice, stores are guarded; k is finished by one unrolled partial step.
//! Requires: one group that holds exactly one contraction over f32, its other ops pointwise. Declines otherwise, with a reason.

use super::attrs::KernelAttr;
use super::code::{Code, facts, gcd};
use super::evaluate::{Evaluator, Point, Reach, is_vectorizable};
use super::groups::Group;
use super::model::{Base, Size, Source, TileOp};
use monopour_ir::{Diagnostics, Type, Value};
use std::collections::HashMap;

/// Most accumulators (in elements) of one invocation; more only spill.
const MAX_ACCUMULATORS: i64 = 512;

/// A contraction with everything decided.
pub(super) struct Plan<'m> {
    /// Ops before, the contraction, ops after.
    before: Vec<&'m TileOp>,
    op: &'m TileOp,
    after: Vec<&'m TileOp>,
    left: Side,
    right: Side,
    rows: Size,
    columns: Size,
    reduction: i64,
    /// Products added to an accumulator per pass of the loop.
    step: i64,
    /// Lanes of accesses along the columns.
    pub(super) lanes: u32,
    tile: Tile,
}

/// One factor of the product.
#[derive(Clone, Copy, Debug)]
struct Side {
    slice: usize,
    /// Elements between neighbours along m or n.
    outer_stride: i64,
    /// Elements between neighbours along k.
    k_stride: i64,
    /// Lanes of an access, along k if `k_stride` is 1, else along m or n.
    lanes: u32,
}

impl Side {
    fn along_k(&self) -> bool {
        self.k_stride == 1
    }
}

/// How the tile lies over the invocations.
#[derive(Clone, Copy, Debug)]
struct Tile {
    /// Invocations along n, which are the lanes of a subgroup if operands are shared.
    threads_n: i64,
    /// Groups of invocations along m.
    threads_m: i64,
    /// Rows of one invocation.
    rows: i64,
    /// Column groups (of `lanes` columns) of one invocation.
    column_groups: i64,
    /// Times that all invocations together move down and to the right.
    row_passes: i64,
    column_passes: i64,
    shared: Option<u32>,
}

/// Decides, or says why another strategy must do it.
pub(super) fn plan<'m>(evaluator: &Evaluator<'m>, groups: &[Group], attr: &KernelAttr) -> Result<Plan<'m>, String> {
    let [group] = groups else { return Err("the body's ops cannot share their iterations".into()) };
    let ops: Vec<&TileOp> = group.ops.iter().map(|i| &evaluator.model.ops[*i]).collect();
    let mut contractions = ops.iter().enumerate().filter(|(_, op)| !op.inner().is_empty());
    let (Some((at, op)), None) = (contractions.next(), contractions.next()) else {
        return Err("the body has not exactly one reduction".into());
    };
    let (before, after) = (ops[..at].to_vec(), ops[at + 1..].to_vec());
    if !before.iter().chain(&after).all(|op| is_vectorizable(op)) {
        return Err("an op around the product cannot work in vectors".into());
    }
    let [rows, columns] = group.sizes.as_slice() else { return Err("the result has not two dimensions".into()) };
    let (Some(_), Some(_)) = (rows.facts.bound, columns.facts.bound) else {
        return Err("the tile has no known bound".into());
    };
    let (mut left, mut right, reduction) = factors(evaluator, op)?;
    let lanes = column_lanes(evaluator, op, columns, attr);
    let tile = geometry(attr, rows, columns, lanes)?;
    // Whole passes and the last, partial one consist of whole vectors.
    let step = attr.reduction_step;
    let span = gcd(reduction, step);
    left.lanes = side_lanes(evaluator, &left, rows, span, attr.vector_width, tile.rows);
    right.lanes = side_lanes(
        evaluator,
        &right,
        columns,
        span,
        if right.along_k() { attr.vector_width } else { lanes },
        i64::from(lanes),
    );
    if !right.along_k() && right.lanes != lanes {
        right.lanes = 1;
    }
    if !left.along_k() && i64::from(tile.shared.unwrap_or(u32::MAX)) < step {
        return Err("the subgroup is too narrow to share a transposed operand".into());
    }
    Ok(Plan { before, op, after, left, right, rows: *rows, columns: *columns, reduction, step, lanes, tile })
}

/// The two factors, if the body of `op` is `accumulator + a * b` over f32 and its loops are m, n, k.
fn factors(evaluator: &Evaluator<'_>, op: &TileOp) -> Result<(Side, Side, i64), String> {
    let outer = op.outer.clone().ok_or("the result is not indexed by loops")?;
    let (&[m, n], &[k]) = (outer.as_slice(), op.inner().as_slice()) else {
        return Err("its loops are not m, n and k".into());
    };
    if op.num_inputs != 2 || op.outputs().len() != 1 || !is_multiply_add(op) {
        return Err("its body is not a multiply-add of two f32 inputs".into());
    }
    if op.parallel[k] {
        return Err("the loop k is not a reduction".into());
    }
    let reduction = op.sizes[k].exact().ok_or("the extent of k is dynamic")?;
    let side = |operand: usize, outer: usize, other: usize| -> Option<Side> {
        let Source::Slice(slice) = op.operands[operand].source else { return None };
        let (strides, constant) = op.operands[operand].linear.as_ref()?;
        let fits = *constant == 0 && strides[other] == 0 && strides[outer] != 0 && strides[k] != 0;
        fits.then_some(Side { slice, outer_stride: strides[outer], k_stride: strides[k], lanes: 1 })
    };
    let argument = |s: &Side| matches!(evaluator.model.slices[s.slice].base, Base::Argument(_));
    let found = side(0, m, n).zip(side(1, n, m)).or_else(|| side(1, m, n).zip(side(0, n, m)));
    let (left, right) =
        found.filter(|(l, r)| argument(l) && argument(r)).ok_or("the inputs are not one row and one column operand")?;
    Ok((left, right, reduction))
}

/// `yield out + in0 * in1`, in any order of operands.
fn is_multiply_add(op: &TileOp) -> bool {
    let Some(body) = op.body else { return false };
    let f32 = Type::f32(op.op.context());
    let ops = body.ops();
    let [multiply, add, end] = ops.as_slice() else { return false };
    if !multiply.is("arith.mulf") || !add.is("arith.addf") || body.args().iter().any(|a| a.ty() != f32) {
        return false;
    }
    let (a, b, acc) = (body.arg(0), body.arg(1), body.arg(2));
    let (m, s) = (multiply.operands(), add.operands());
    let product = multiply.result(0);
    (m == [a, b] || m == [b, a]) && (s == [acc, product] || s == [product, acc]) && end.operands() == [add.result(0)]
}

/// Lanes along the columns of the result: as many as are aligned, but not so many that lanes of the subgroup stay idle.
fn column_lanes(evaluator: &Evaluator<'_>, op: &TileOp, columns: &Size, attr: &KernelAttr) -> u32 {
    let bound = columns.facts.bound.unwrap_or(1).max(1) as u32;
    let busy = attr.shared_lanes.map_or(u32::MAX, |size| bound.div_ceil(size).next_power_of_two());
    let widest = attr.vector_width.min(busy);
    let output = &op.outputs()[0];
    let Source::Slice(s) = output.source else { return 1 };
    let fits = |lanes: u32| {
        let local = matches!(evaluator.model.slices[s].base, Base::Local(_));
        columns.facts.divisor % i64::from(lanes) == 0 && (local || evaluator.reach(op, output, s, lanes) == Reach::Wide)
    };
    [8, 4, 2].into_iter().find(|l| *l <= widest && fits(*l)).unwrap_or(1)
}

/// The widest aligned access of a factor: along k (in spans of `k_span`), or along its outer dimension if that is the contiguous one.
fn side_lanes(evaluator: &Evaluator<'_>, side: &Side, outer: &Size, k_span: i64, widest: u32, outer_span: i64) -> u32 {
    let slice = &evaluator.model.slices[side.slice];
    let (unit, other, extent) = if side.along_k() {
        (side.k_stride, side.outer_stride, k_span)
    } else {
        // A vector of rows must lie inside the slice or outside of it.
        (side.outer_stride, side.k_stride, gcd(outer.facts.divisor, outer_span))
    };
    let base_elements = evaluator.elements(slice.base);
    let all = gcd(gcd(other, extent), gcd(facts(slice.offset).divisor, base_elements));
    if unit != 1 {
        return 1;
    }
    [8, 4, 2].into_iter().find(|l| *l <= widest && all % i64::from(*l) == 0).unwrap_or(1)
}

fn geometry(attr: &KernelAttr, rows: &Size, columns: &Size, lanes: u32) -> Result<Tile, String> {
    let invocations = attr.invocations();
    let lanes = i64::from(lanes);
    let (m, n) = (rows.facts.bound.unwrap_or(1).max(1), columns.facts.bound.unwrap_or(1).max(1));
    let wanted = |i: usize, default: i64| attr.register_tile.get(i).copied().filter(|t| *t > 0).unwrap_or(default);
    let threads_n = match attr.shared_lanes {
        Some(size) => i64::from(size),
        None => {
            let useful = ceil_div(n, wanted(1, 4).max(lanes));
            (1..=invocations).rev().find(|t| invocations % t == 0 && *t <= useful).unwrap_or(1)
        }
    };
    let threads_m = invocations / threads_n;
    let rows = wanted(0, if attr.shared_lanes.is_some() { 16 } else { 4 }).min(m).clamp(1, MAX_ACCUMULATORS);
    let column_groups = ceil_div(wanted(1, 8), lanes).min(ceil_div(n, threads_n * lanes)).max(1);
    if rows * column_groups * lanes > MAX_ACCUMULATORS {
        return Err("the register tile is too large".into());
    }
    Ok(Tile {
        threads_n,
        threads_m,
        rows,
        column_groups,
        row_passes: ceil_div(m, threads_m * rows),
        column_passes: ceil_div(n, threads_n * lanes * column_groups),
        shared: attr.shared_lanes,
    })
}

fn ceil_div(a: i64, b: i64) -> i64 {
    (a + b - 1) / b
}

impl Plan<'_> {
    /// The lane count of each argument; 1 where two accesses of it differ.
    pub(super) fn argument_lanes(&self, evaluator: &Evaluator<'_>) -> HashMap<Base, u32> {
        let mut out: HashMap<Base, u32> = HashMap::new();
        let mut merge = |slice: usize, lanes: u32| {
            let base = evaluator.model.slices[slice].base;
            let entry = out.entry(base).or_insert(lanes);
            *entry = if *entry == lanes { lanes } else { 1 };
        };
        for side in [&self.left, &self.right] {
            merge(side.slice, side.lanes);
        }
        let pointwise = self.before.iter().chain(&self.after).flat_map(|op| op.operands.iter().map(move |o| (*op, o)));
        for (op, operand) in pointwise.chain([(self.op, &self.op.outputs()[0])]) {
            let Source::Slice(s) = operand.source else { continue };
            let wide = evaluator.reach(op, operand, s, self.lanes) == Reach::Wide;
            merge(s, if wide { self.lanes } else { 1 });
        }
        out
    }

    fn rows_exact(&self) -> bool {
        self.rows.exact() == Some(self.tile.threads_m * self.tile.rows * self.tile.row_passes)
    }
    fn columns_exact(&self) -> bool {
        let t = &self.tile;
        self.columns.exact() == Some(t.threads_n * t.column_groups * t.column_passes * i64::from(self.lanes))
    }
}

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
pub(super) fn write(
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
