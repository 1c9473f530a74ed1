//! Matrix products.

use super::compare::cast_to;
use crate::onnx::operand::Operand;
use crate::onnx::structured::broadcast;
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, Expr, Failure, NodeContext, Registry, Results};
use monopour_ir::ops;

pub(super) fn register(registry: &mut Registry) {
    registry.op("MatMul", 1, |b, cx| Ok(vec![matmul(b, cx.operand(0)?, cx.operand(1)?)?]), "");
    registry.op("Gemm", 7, gemm, "");
}

/// NumPy's product: the last two dimensions are matrices, those before them broadcast; one dimension is a row or column.
pub(super) fn matmul<'c>(b: &mut Builder<'c>, x: &Operand<'c>, y: &Operand<'c>) -> Result<Operand<'c>, Failure> {
    if x.rank() == 0 || y.rank() == 0 || x.dtype != y.dtype {
        return Err(format!("a product of {} and {} of ranks {} and {}", x.dtype, y.dtype, x.rank(), y.rank()).into());
    }
    let (rows, columns) = (x.rank() > 1, y.rank() > 1);
    let x_batch = &x.shape[..x.rank().saturating_sub(2)];
    let y_batch = &y.shape[..y.rank().saturating_sub(2)];
    let batch = broadcast(&[x_batch, y_batch])?;
    let (depth, other) = (&x.shape[x.rank() - 1], &y.shape[y.rank() - if columns { 2 } else { 1 }]);
    if let (Some(a), Some(b)) = (depth.as_constant(), other.as_constant())
        && a != b
    {
        return Err(format!("a product over {a} and {b} elements").into());
    }
    let mut shape = batch.clone();
    let (m, n) = (batch.len(), batch.len() + usize::from(rows));
    let k = n + usize::from(columns);
    if rows {
        shape.push(x.shape[x.rank() - 2].clone());
    }
    if columns {
        shape.push(y.shape[y.rank() - 1].clone());
    }
    // Dimensions of size 1 that are broadcast are dropped.
    let mut side = |operand: &Operand<'c>, own: &[Dim], matrix: Vec<usize>| -> Result<_, Failure> {
        let first = batch.len() - own.len();
        let kept: Vec<usize> = (0..own.len()).filter(|d| !own[*d].is(1) || batch[first + d].is(1)).collect();
        let keep: Vec<usize> = kept.iter().copied().chain(own.len()..operand.rank()).collect();
        let value = b.keep_dims(operand, &keep)?;
        let loops = kept.iter().map(|d| first + d).chain(matrix);
        Ok((value, loops.map(Expr::Loop).collect::<Vec<_>>()))
    };
    let left = side(x, x_batch, if rows { vec![m, k] } else { vec![k] })?;
    let right = side(y, y_batch, if columns { vec![k, n] } else { vec![k] })?;
    let result: Vec<usize> = (0..shape.len()).collect();
    b.products([left, right], k + 1, x.dtype, (&shape, &result))
}

fn gemm<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, y) = (cx.operand(0)?, cx.operand(1)?);
    if x.rank() != 2 || y.rank() != 2 || x.dtype != y.dtype {
        return Err("its operands are not two matrices of one type".into());
    }
    let (x_first, y_first) = (cx.flag("transA", false)?, cx.flag("transB", false)?);
    let (alpha, beta) = (cx.float("alpha", 1.0)?, cx.float("beta", 1.0)?);
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
