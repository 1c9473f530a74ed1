//! Dimensions of one element that upstream's passes leave between ops, which fusion would take for reshapes.
//!
//! Before / after:
//!
//! ```text
//! %p = linalg.batch_matmul 1x50x64, 1x64x192             %p = linalg.matmul 50x64, 64x192
//! %c = tensor.collapse_shape %p : 50x192                 %s = linalg.generic (i, j) + %bias
//! %s = linalg.generic (i, j) + %bias
//! %m = linalg.reduce max 1x4x50x50 : 1x4x50              %m = linalg.generic max 1x4x50x50 : 1x4x50
//! %e = tensor.expand_shape %m : 1x4x50x1                 %r = linalg.generic (h, i, j) - (h, i)
//! %r = linalg.generic (b, h, i, j) - (b, h, i, 0)        %x = tensor.expand_shape %r : 1x4x50x50
//! ```
//!
//! Inputs of generics lose the dimensions of one element that no loop indexes (`(i, j) -> (0, j)` of `1x192`), and reshapes of
//! constants are constants.

use crate::linalg;
use monopour_ir::typed::linalg::{Operands, matmul};
use monopour_ir::{
    AffineExpr, AffineExprKind, AffineMap, Attr, CANONICALIZE, DYNAMIC, Diagnostics, InsertionPoint, Location, Module,
    Op, OpSpec, Region, Rewriter, Type, Value, drop_added_units, ops, run_passes,
};

/// Rewrites all such ops.
///
/// # Errors
/// MLIR's, none on verified IR.
pub(super) fn drop(module: &Module) -> Result<(), Diagnostics> {
    let mut rw = Rewriter::new(module.context());
    for op in module.op().find_all(ops::linalg::BATCH_MATMUL) {
        product(&mut rw, op)?;
    }
    let simplify = || run_passes(module.op(), &format!("builtin.module(func.func({CANONICALIZE},cse))"));
    simplify()?;
    drop_added_units(module.op());
    simplify()?;
    for op in linalg::structured_ops(module.op()) {
        broadcasts(&mut rw, op)?;
    }
    for op in module.op().find_all(ops::tensor::COLLAPSE_SHAPE) {
        source(&mut rw, op)?;
    }
    Ok(())
}

/// A product of one batch is one of matrices.
fn product<'c>(rw: &mut Rewriter<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    let shapes: Vec<Vec<i64>> = op.operands().iter().filter_map(|v| v.ty().shape()).collect();
    if shapes.len() != 3 || shapes.iter().any(|shape| shape.first() != Some(&1)) {
        return Ok(());
    }
    let (cx, loc) = (op.context(), op.location());
    let groups = Attr::parse(cx, "[[0, 1], [2]]").expect("invariant: an array of arrays parses");
    rw.set_point(InsertionPoint::Before(op));
    let mut matrices = vec![];
    for value in op.operands() {
        matrices.push(collapsed(rw, value, &[1, 2], loc)?);
    }
    let maps = [[0, 2], [2, 1], [0, 1]].map(|dims| AffineMap::select(cx, 3, &dims));
    let region = Region::new();
    rw.take_region(region, op.region(0));
    let operands = Operands { inputs: &matrices[..2], outputs: &matrices[2..] };
    let made = rw.create(matmul(loc, operands, &maps, region))?.result(0);
    let result = op.result(0).ty();
    // The size of a dimension that is not known is that of the destination.
    let mut sizes = vec![];
    for (dim, _) in shapes[2].iter().enumerate().filter(|(_, size)| **size == DYNAMIC) {
        let at = rw.const_index(dim as i64, loc);
        let spec = OpSpec::new(ops::tensor::DIM, loc).operands(&[op.operand(2), at]).results(&[Type::index(cx)]);
        sizes.push(rw.create(spec)?.result(0));
    }
    let spec = OpSpec::new(ops::tensor::EXPAND_SHAPE, loc)
        .operands(&[made])
        .operands(&sizes)
        .results(&[result])
        .attr("reassociation", groups)
        .attr("static_output_shape", Attr::dense_i64(cx, &shapes[2]));
    let expanded = rw.create(spec)?.result(0);
    rw.replace_op(op, &[expanded]);
    Ok(())
}

/// Inputs lose the dimensions of one element that no loop indexes.
fn broadcasts<'c>(rw: &mut Rewriter<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    let Some(mut maps) = linalg::indexing_maps(op).filter(|_| op.is(ops::linalg::GENERIC)) else { return Ok(()) };
    let mut is_changed = false;
    for (index, map) in maps.iter_mut().enumerate().take(linalg::num_inputs(op)) {
        let (value, exprs) = (op.operand(index), map.results());
        let Some(shape) = value.ty().shape() else { continue };
        let is_kept = |d: &usize| shape[*d] != 1 || !matches!(exprs[*d].kind(), AffineExprKind::Constant(_));
        let kept: Vec<usize> = (0..shape.len()).filter(is_kept).collect();
        if kept.len() == shape.len() {
            continue;
        }
        rw.set_point(InsertionPoint::Before(op));
        let collapsed = collapsed(rw, value, &kept, op.location())?;
        rw.set_operand(op, index, collapsed);
        let exprs: Vec<AffineExpr> = kept.iter().map(|d| exprs[*d]).collect();
        *map = AffineMap::of(op.context(), map.num_dims(), &exprs);
        is_changed = true;
    }
    if is_changed {
        let maps: Vec<Attr> = maps.into_iter().map(AffineMap::to_attr).collect();
        rw.set_attr(op, "indexing_maps", Attr::array(op.context(), &maps));
    }
    Ok(())
}

/// The tensor without the dimensions of one element that are not `kept`.
fn collapsed<'c>(
    rw: &mut Rewriter<'c>,
    value: Value<'c>,
    kept: &[usize],
    loc: Location<'c>,
) -> Result<Value<'c>, Diagnostics> {
    let (cx, shape) = (value.ty().context(), value.ty().shape().unwrap_or_default());
    let sizes: Vec<i64> = kept.iter().map(|d| shape[*d]).collect();
    let spec = OpSpec::new(ops::tensor::COLLAPSE_SHAPE, loc)
        .operands(&[value])
        .results(&[Type::tensor(&sizes, value.ty().element(), None)])
        .attr("reassociation", linalg::groups_around(cx, kept, shape.len()));
    Ok(rw.create(spec)?.result(0))
}

/// A reshape of a constant is a constant, one of a tensor without values is another such tensor.
fn source<'c>(rw: &mut Rewriter<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    let (ty, loc) = (op.result(0).ty(), op.location());
    let Some(made) = op.operand(0).defining_op() else { return Ok(()) };
    let spec = if made.is(ops::tensor::EMPTY) && made.num_operands() == 0 {
        OpSpec::new(ops::tensor::EMPTY, loc).results(&[ty])
    } else {
        let value = made.attr("value").filter(|_| made.is(ops::arith::CONSTANT));
        let Some(value) = value.and_then(|value| value.elements_with_type(ty)) else { return Ok(()) };
        OpSpec::new(ops::arith::CONSTANT, loc).results(&[ty]).attr("value", value)
    };
    rw.set_point(InsertionPoint::Before(op));
    let reshaped = rw.create(spec)?.result(0);
    rw.replace_op(op, &[reshaped]);
    Ok(())
}
