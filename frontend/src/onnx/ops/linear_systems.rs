//! Determinants, by elimination with pivots.

use super::compare::cast_to;
use super::scalars::{div, element, like, mul, sub, wide};
use crate::onnx::operand::Operand;
use crate::onnx::predicate::{CmpF, CmpI};
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Expr, Failure, LoopKind, NodeContext, Registry, Results, Structured};
use monopour_ir::{Type, Value, ops};

pub(super) fn register(registry: &mut Registry) {
    registry.op("Det", 11, det, "matrices of unknown size or of more than 64 rows");
}

/// Most rows: elimination is a few ops for each.
const MAX_ROWS: i64 = 64;

fn det<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let rank = x.rank();
    if rank < 2 || x.shape[rank - 1] != x.shape[rank - 2] || !x.dtype.is_float() {
        return Err("its operand is not square matrices of floats".into());
    }
    let size = x.shape[rank - 1].as_constant().filter(|n| (1..=MAX_ROWS).contains(n));
    let size = size.ok_or("its matrices are of unknown size or of more than 64 rows")?;
    let (batch, sum) = (&x.shape[..rank - 2], wide(x.dtype));
    let count = batch.iter().fold(Dim::constant(1), |n, d| n.mul(d));
    let mut matrix = cast_to(b, x, sum)?;
    matrix = b.reshaped(&matrix, &[count.clone(), size.into(), size.into()])?;
    let mut product: Option<Operand<'c>> = None;
    for rows in (1..=size).rev() {
        let pivot = pivot(b, &matrix)?;
        let (source, at) = ((b.value(&matrix)?, sum), (b.value(&pivot)?, DataType::I32));
        let so_far = product.as_ref().map(|p| b.value(p)).transpose()?;
        product = Some(b.computed(sum, std::slice::from_ref(&count), |b, i| {
            let (row, zero) = (pivot_row(b, at, i[0])?, like(b, i[0], 0.0));
            let value = element(b, source, &[i[0], row, zero], sum)?;
            // Rows that change places change the sign.
            let (negated, stays) = (b.unary(ops::arith::NEGF, value)?, b.compare(CmpI::Eq, row, zero)?);
            let value = b.select(stays, value, negated)?;
            match so_far {
                Some(so_far) => {
                    let so_far = element(b, (so_far, sum), &i[..1], sum)?;
                    mul(b, so_far, value)
                }
                None => Ok(value),
            }
        })?);
        if rows > 1 {
            matrix = eliminated(b, (source, at), &count, rows - 1)?;
        }
    }
    let product = product.ok_or("its matrices are empty")?;
    let result = cast_to(b, &product, x.dtype)?;
    Ok(vec![b.reshaped(&result, batch)?])
}

/// The row of the largest element of the first column.
fn pivot<'c>(b: &mut Builder<'c>, matrix: &Operand<'c>) -> Result<Operand<'c>, Failure> {
    let shape = matrix.shape[..1].to_vec();
    let best = b.filled(matrix.dtype, &shape, -1.0)?;
    let place = b.filled(DataType::I32, &shape, 0.0)?;
    let column = [shape[0].clone(), matrix.shape[1].clone(), 1.into()];
    let column = b.slice(matrix, &vec![Dim::default(); 3], &column, &[1; 3])?;
    let column = b.reshaped(&column, &matrix.shape[..2])?;
    let op = Structured {
        loops: vec![LoopKind::Parallel, LoopKind::Reduction],
        inputs: vec![(b.value(&column)?, vec![Expr::Loop(0), Expr::Loop(1)])],
        outputs: vec![(best, vec![Expr::Loop(0)]), (place, vec![Expr::Loop(0)])],
    };
    let results = b.structured(&op, |b, e| {
        let at = b.loop_index(1)?;
        let at = b.op(ops::arith::INDEX_CAST, &[at], e[2].ty())?;
        let size = b.unary(ops::math::ABSF, e[0])?;
        let better = b.compare(CmpF::Olt, e[1], size)?;
        Ok(vec![b.select(better, size, e[1])?, b.select(better, at, e[2])?])
    })?;
    Ok(Operand::value(DataType::I32, shape, results[1]))
}

fn pivot_row<'c>(
    b: &mut Builder<'c>,
    (pivots, _): (Value<'c>, DataType),
    matrix: Value<'c>,
) -> Result<Value<'c>, Failure> {
    let row = b.read(pivots, &[matrix])?;
    b.op(ops::arith::INDEX_CAST, &[row], Type::index(b.context()))
}

/// The rows without the pivot's, less its multiples, without the first column.
fn eliminated<'c>(
    b: &mut Builder<'c>,
    (source, pivots): ((Value<'c>, DataType), (Value<'c>, DataType)),
    count: &Dim,
    rows: i64,
) -> Result<Operand<'c>, Failure> {
    let sum = source.1;
    b.computed(sum, &[count.clone(), rows.into(), rows.into()], |b, at| {
        let (zero, one) = (like(b, at[0], 0.0), like(b, at[0], 1.0));
        let pivot = pivot_row(b, pivots, at[0])?;
        let (row, column) = (super::scalars::add(b, at[1], one)?, super::scalars::add(b, at[2], one)?);
        // The first row is where the pivot's was.
        let is_pivot = b.compare(CmpI::Eq, row, pivot)?;
        let row = b.select(is_pivot, zero, row)?;
        let value = element(b, source, &[at[0], row, column], sum)?;
        let first = element(b, source, &[at[0], row, zero], sum)?;
        let (above, by) =
            (element(b, source, &[at[0], pivot, column], sum)?, element(b, source, &[at[0], pivot, zero], sum)?);
        let (factor, none) = (div(b, first, by)?, like(b, by, 0.0));
        let is_singular = b.compare(CmpF::Oeq, by, none)?;
        let factor = b.select(is_singular, none, factor)?;
        let part = mul(b, factor, above)?;
        sub(b, value, part)
    })
}
