//! Specializes generics that are a fill or a matrix product to `linalg.fill` and `linalg.matmul`, in any order of loops and
//! operands.
//!
//! Before / after:
//!
//! ```text
//! %0 = linalg.generic {maps = [(n, m, k) -> (n, k), (m, k), (m, n)], ...} ins(%b, %a) outs(%c) { mulf; addf }
//! %0 = linalg.matmul indexing_maps = [(m, n, k) -> (m, k), (n, k), (m, n)] ins(%a, %b) outs(%c)
//! ```
//!
//! Ensures: loops of a matmul are rows, columns, reduction; its result map is (rows, columns).
//! Limits: f32 only; batched, broadcast and mixed-precision products stay generic.

use crate::{linalg, products};
use monopour_ir::conversion::{ConversionRewriter, ConversionTarget, Mode, PatternSet, convert};
use monopour_ir::ops;
use monopour_ir::typed;
use monopour_ir::{
    AffineMap, Block, Builder, Context, Diagnostics, InsertionPoint, Location, Module, Op, OpSpec, Region, Rewriter,
    Type, Value,
};

/// Replaces every generic that is a fill or a matrix product.
///
/// # Errors
/// None of its own; what the conversion driver and MLIR's op builders report.
pub(crate) fn run(module: &Module) -> Result<(), Diagnostics> {
    let mut target = ConversionTarget::new();
    target.dynamically_legal_op(ops::linalg::GENERIC, |op| recognize(op).is_none());
    let mut patterns = PatternSet::new();
    patterns.add_fn(ops::linalg::GENERIC, |op, _, rw| {
        if let Some(named) = recognize(op) {
            replace(op, &named, rw)?;
        }
        Ok(())
    });
    convert(module.op(), &target, &patterns, Mode::Partial).map(|_| ())
}

/// The named form of a generic.
enum Named<'c> {
    /// `linalg.fill` of this scalar.
    Fill(Value<'c>),
    /// `linalg.matmul` of these operands, under these maps.
    Matmul { lhs: (Value<'c>, [usize; 2]), rhs: (Value<'c>, [usize; 2]) },
}

fn recognize<'c>(op: Op<'c>) -> Option<Named<'c>> {
    if !op.is(ops::linalg::GENERIC) || op.num_results() != 1 {
        return None;
    }
    recognize_fill(op).map(Named::Fill).or_else(|| recognize_matmul(op))
}

fn recognize_fill<'c>(op: Op<'c>) -> Option<Value<'c>> {
    let maps = linalg::indexing_maps(op)?;
    let body = op.body()?;
    if linalg::num_inputs(op) != 0 || !maps[0].is_identity() || body.ops().len() != 1 {
        return None;
    }
    let value = body.terminator()?.operand(0);
    (value.block() != Some(body)).then_some(value)
}

fn recognize_matmul<'c>(op: Op<'c>) -> Option<Named<'c>> {
    if linalg::num_inputs(op) != 2 || !(is_f32(op) && products::is_multiply_add(op)) {
        return None;
    }
    let maps = linalg::indexing_maps(op)?;
    let parallel = linalg::parallel_loops(op)?;
    let result = maps[2].dim_positions()?;
    let k = parallel.iter().position(|p| !p)?;
    if parallel.len() != 3 || result.len() != 2 || result[0] == result[1] || result.contains(&k) {
        return None;
    }
    // Loops renamed to (rows, columns, reduction) = (0, 1, 2).
    let rename = |map: &AffineMap<'c>| -> Option<[usize; 2]> {
        let dims = map.dim_positions()?;
        let renamed: Vec<usize> = dims.iter().map(|d| result.iter().position(|r| r == d).unwrap_or(2)).collect();
        <[usize; 2]>::try_from(renamed).ok()
    };
    let (first, second) = (rename(&maps[0])?, rename(&maps[1])?);
    let is_lhs = |m: [usize; 2]| m == [0, 2] || m == [2, 0];
    let is_rhs = |m: [usize; 2]| m == [2, 1] || m == [1, 2];
    let operands = (op.operand(0), op.operand(1));
    if is_lhs(first) && is_rhs(second) {
        return Some(Named::Matmul { lhs: (operands.0, first), rhs: (operands.1, second) });
    }
    // Multiplication commutes, so the operand that has the rows can come first.
    (is_lhs(second) && is_rhs(first)).then_some(Named::Matmul { lhs: (operands.1, second), rhs: (operands.0, first) })
}

/// Whether the op computes on f32 alone.
fn is_f32(op: Op) -> bool {
    let f32 = Type::f32(op.context());
    op.operands().iter().all(|v| v.ty().element() == f32)
}

fn replace<'c>(op: Op<'c>, named: &Named<'c>, rw: &mut ConversionRewriter<'c>) -> Result<(), Diagnostics> {
    let new = match named {
        Named::Fill(value) => fill(*value, linalg::destination(op, 0), op.location(), rw)?,
        Named::Matmul { lhs, rhs } => create_matmul(op, *lhs, *rhs, rw)?,
    };
    rw.replace_op(op, &[new.result(0)]);
    Ok(())
}

/// `linalg.fill` of `out` with `value`.
pub(crate) fn fill<'c>(
    value: Value<'c>,
    out: Value<'c>,
    loc: Location<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<Op<'c>, Diagnostics> {
    let cx = rw.context();
    let body = Block::new(&[(value.ty(), loc), (value.ty(), loc)]);
    append_op(body, OpSpec::new(ops::linalg::YIELD, loc).operands(&[body.arg(0)]), cx)?;
    let region = Region::new();
    region.append(body);
    rw.create(typed::linalg::fill(loc, value, out, region))
}

fn create_matmul<'c>(
    op: Op<'c>,
    lhs: (Value<'c>, [usize; 2]),
    rhs: (Value<'c>, [usize; 2]),
    rw: &mut Rewriter<'c>,
) -> Result<Op<'c>, Diagnostics> {
    let cx = op.context();
    let (loc, out, f32) = (op.location(), linalg::destination(op, 0), Type::f32(cx));
    let body = Block::new(&[(f32, loc); 3]);
    let mul =
        append(body, OpSpec::new(ops::arith::MULF, loc).operands(&[body.arg(0), body.arg(1)]).results(&[f32]), cx)?;
    let add = append(body, OpSpec::new(ops::arith::ADDF, loc).operands(&[body.arg(2), mul]).results(&[f32]), cx)?;
    append_op(body, OpSpec::new(ops::linalg::YIELD, loc).operands(&[add]), cx)?;
    let region = Region::new();
    region.append(body);
    let maps = [lhs.1, rhs.1, [0, 1]].map(|dims| AffineMap::select(cx, 3, &dims));
    let operands = typed::linalg::Operands { inputs: &[lhs.0, rhs.0], outputs: &[out] };
    rw.create(typed::linalg::matmul(loc, operands, &maps, region))
}

fn append<'c>(block: Block<'c>, spec: OpSpec<'c, '_>, cx: Context<'c>) -> Result<Value<'c>, Diagnostics> {
    Ok(append_op(block, spec, cx)?.result(0))
}

fn append_op<'c>(block: Block<'c>, spec: OpSpec<'c, '_>, cx: Context<'c>) -> Result<Op<'c>, Diagnostics> {
    Builder::new(cx, InsertionPoint::End(block)).create(spec)
}
