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

mod write;

use super::attrs::KernelAttr;
use super::code::{facts, gcd};
use super::evaluate::{Evaluator, Reach, is_vectorizable};
use super::groups::Group;
use super::model::{Base, Size, Source, TileOp};
use monopour_ir::Type;
use std::collections::HashMap;
pub(super) use write::write;

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
