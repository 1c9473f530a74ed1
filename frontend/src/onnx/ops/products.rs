//! Matrix products.

use super::compare::cast_to;
use super::shapes::broadcast_to;
use crate::onnx::operand::Operand;
use crate::onnx::structured::broadcast;
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Expr, Failure, NodeContext, Registry, Results};
use monopour_ir::ops;

pub(super) fn register(registry: &mut Registry) {
    registry.op("MatMul", 1, |b, cx| Ok(vec![matmul(b, cx.operand(0)?, cx.operand(1)?)?]), "");
    registry.op("Gemm", 6, gemm, "");
}

/// NumPy's product: the last two dimensions are matrices, those before them broadcast; one dimension is a row or column.
pub(super) fn matmul<'c>(b: &mut Builder<'c>, x: &Operand<'c>, y: &Operand<'c>) -> Result<Operand<'c>, Failure> {
    matmul_transposed(b, [x, y], [false, false])
}

/// As [`matmul`], of matrices of which each may be read transposed.
pub(super) fn matmul_transposed<'c>(
    b: &mut Builder<'c>,
    [x, y]: [&Operand<'c>; 2],
    transposed: [bool; 2],
) -> Result<Operand<'c>, Failure> {
    if x.rank() == 0 || y.rank() == 0 || x.dtype != y.dtype || x.dtype == DataType::Bool {
        return Err(format!("a product of {} and {} of ranks {} and {}", x.dtype, y.dtype, x.rank(), y.rank()).into());
    }
    let (rows, columns) = (x.rank() > 1, y.rank() > 1);
    let x_batch = &x.shape[..x.rank().saturating_sub(2)];
    let y_batch = &y.shape[..y.rank().saturating_sub(2)];
    let batch = broadcast(&[x_batch, y_batch])?;
    let (x, y) = (&of_batch(b, x, &batch)?, &of_batch(b, y, &batch)?);
    let (x_batch, y_batch) = (x.rank().saturating_sub(2), y.rank().saturating_sub(2));
    // Distance of a dimension of a matrix from the end: of rows, of columns.
    let x_ends = if transposed[0] && rows { [1, 2] } else { [2, 1] };
    let y_ends = if transposed[1] && columns { [1, 2] } else { [2, 1] };
    let (depth, other) = (&x.shape[x.rank() - x_ends[1]], &y.shape[y.rank() - if columns { y_ends[0] } else { 1 }]);
    if let (Some(a), Some(b)) = (depth.as_constant(), other.as_constant())
        && a != b
    {
        return Err(format!("a product over {a} and {b} elements").into());
    }
    let mut shape = batch.clone();
    if rows {
        shape.push(x.shape[x.rank() - x_ends[0]].clone());
    }
    if columns {
        shape.push(y.shape[y.rank() - y_ends[1]].clone());
    }
    // No loops over dimensions of size 1: the last loop is the sum.
    let kept: Vec<usize> = (0..shape.len()).filter(|d| !shape[*d].is(1)).collect();
    let k = kept.len();
    let loop_of = |d: usize| kept.iter().position(|kept| *kept == d);
    let mut side = |operand: &Operand<'c>, own: usize, dims: Vec<Option<usize>>| -> Result<_, Failure> {
        let first = batch.len() - own;
        let of = |d: usize| if d < own { loop_of(first + d) } else { dims[d - own] };
        let keep: Vec<usize> = (0..operand.rank())
            .filter(|d| of(*d).is_some() && (of(*d) == Some(k) || !operand.shape[*d].is(1)))
            .collect();
        let value = b.keep_dims(operand, &keep)?;
        Ok((value, keep.into_iter().filter_map(of).map(Expr::Loop).collect::<Vec<_>>()))
    };
    let order = |dims: [Option<usize>; 2], swapped: bool| if swapped { vec![dims[1], dims[0]] } else { dims.to_vec() };
    let (m, n) = (loop_of(batch.len()), loop_of(batch.len() + usize::from(rows)));
    let left = side(x, x_batch, if rows { order([m, Some(k)], transposed[0]) } else { vec![Some(k)] })?;
    let right = side(y, y_batch, if columns { order([Some(k), n], transposed[1]) } else { vec![Some(k)] })?;
    let inner: Vec<Dim> = kept.iter().map(|d| shape[*d].clone()).collect();
    let result: Vec<usize> = (0..k).collect();
    let product = b.products([left, right], k + 1, x.dtype, (&inner, &result))?;
    b.reshaped(&product, &shape)
}

/// The matrices with those batch dimensions whose size may turn out to be 1.
fn of_batch<'c>(b: &mut Builder<'c>, x: &Operand<'c>, batch: &[Dim]) -> Result<Operand<'c>, Failure> {
    let own = x.rank().saturating_sub(2);
    let mut shape = x.shape.clone();
    for (size, wanted) in shape.iter_mut().zip(&batch[batch.len() - own..]).take(own) {
        if size.may_differ(wanted) {
            size.clone_from(wanted);
        }
    }
    broadcast_to(b, x, shape)
}

fn gemm<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, y) = (cx.operand(0)?, cx.operand(1)?);
    if x.rank() != 2 || y.rank() != 2 || x.dtype != y.dtype {
        return Err("its operands are not two matrices of one type".into());
    }
    if cx.optional(2).is_some_and(|added| added.rank() > 2) {
        return Err("what it adds is of a rank above 2".into());
    }
    let (x_first, y_first) = (cx.flag("transA", false)?, cx.flag("transB", false)?);
    let (alpha, beta) = (cx.float("alpha", 1.0)?, cx.float("beta", 1.0)?);
    if !x.dtype.is_float() && (alpha.fract() != 0.0 || beta.fract() != 0.0) {
        return Err(format!("a factor that is no integer of a product of {}", x.dtype).into());
    }
    let depths = [&x.shape[usize::from(!x_first)], &y.shape[usize::from(y_first)]];
    if let [Some(a), Some(b)] = depths.map(Dim::as_constant)
        && a != b
    {
        return Err(format!("a product over {a} and {b} elements").into());
    }
    let shape = [x.shape[usize::from(x_first)].clone(), y.shape[usize::from(!y_first)].clone()];
    let exprs = |swapped: bool, dims: [usize; 2]| {
        let dims = if swapped { [dims[1], dims[0]] } else { dims };
        dims.into_iter().map(Expr::Loop).collect::<Vec<_>>()
    };
    let left = (b.value(x)?, exprs(x_first, [0, 2]));
    let right = (b.value(y)?, exprs(y_first, [2, 1]));
    let product = b.products([left, right], 3, x.dtype, (&shape, &[0, 1]))?;
    let Some(added) = cx.optional(2).filter(|_| beta != 0.0) else {
        if alpha == 1.0 {
            return Ok(vec![product]);
        }
        return Ok(vec![b.elementwise(&[&product], x.dtype, |b, e| scale(b, e[0], alpha))?]);
    };
    let added = cast_to(b, added, x.dtype)?;
    let result = b.elementwise_of_shape(&[&product, &added], x.dtype, shape.to_vec(), |b, e| {
        let (product, added) = (scale(b, e[0], alpha)?, scale(b, e[1], beta)?);
        let name = if product.ty().is_float() { ops::arith::ADDF } else { ops::arith::ADDI };
        b.binary(name, product, added)
    })?;
    Ok(vec![result])
}

fn scale<'c>(b: &mut Builder<'c>, x: monopour_ir::Value<'c>, by: f64) -> Result<monopour_ir::Value<'c>, Failure> {
    if by == 1.0 {
        return Ok(x);
    }
    let by = b.number(x.ty(), by);
    b.binary(if x.ty().is_float() { ops::arith::MULF } else { ops::arith::MULI }, x, by)
}
