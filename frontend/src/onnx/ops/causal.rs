//! Causal convolutions: each result sees its own element and those before it.

use super::activations::swish_of;
use super::convolution::per_channel;
use super::slices::join;
use crate::onnx::operand::Operand;
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, Expr, NodeContext, Registry, Results};
use monopour_ir::ops;

pub(super) fn register(registry: &mut Registry) {
    registry.op("CausalConvWithState", 27, causal_conv, "");
}

/// A convolution of each channel with the last elements of the sequence before; these of the whole are the second result.
fn causal_conv<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, filters) = (cx.operand(0)?, cx.operand(1)?);
    if x.rank() != 3 || filters.rank() != 3 || x.dtype != filters.dtype {
        return Err("its operand and filters are not of one type and rank 3".into());
    }
    let taps = &filters.shape[2];
    let before = taps.plus(-1);
    let past = match cx.optional(3) {
        Some(past) if past.rank() != 3 => return Err("its state is not of rank 3".into()),
        Some(past) => past.clone(),
        None => {
            let shape = vec![x.shape[0].clone(), x.shape[1].clone(), before.clone()];
            Operand::value(x.dtype, shape.clone(), b.filled(x.dtype, &shape, 0.0)?)
        }
    };
    let whole = join(b, &[&past, x], 2)?;
    let filter = b.reshaped(filters, &[filters.shape[0].clone(), taps.clone()])?;
    let windows = vec![Expr::Loop(0), Expr::Loop(1), Expr::Sum(vec![(2, 1), (3, 1)], 0)];
    let operands = [(b.value(&whole)?, windows), (b.value(&filter)?, vec![Expr::Loop(1), Expr::Loop(3)])];
    let y = b.products(operands, 4, x.dtype, (&x.shape, &[0, 1, 2]))?;
    let swish = match cx.string("activation", "none")?.as_str() {
        "none" => false,
        "silu" | "swish" => true,
        other => return Err(format!("attribute 'activation' is '{other}'").into()),
    };
    let bias = cx.optional(2).map(|bias| per_channel(b, bias, 3)).transpose()?;
    let operands: Vec<&Operand> = [Some(&y), bias.as_ref()].into_iter().flatten().collect();
    let y = b.elementwise(&operands, x.dtype, |b, e| {
        let y = match e {
            [y, bias] => b.binary(ops::arith::ADDF, *y, *bias)?,
            _ => e[0],
        };
        if swish { swish_of(b, y, 1.0) } else { Ok(y) }
    })?;
    let shape = [x.shape[0].clone(), x.shape[1].clone(), before];
    let first = [Dim::default(), Dim::default(), x.shape[2].clone()];
    let state = b.slice(&whole, &first, &shape, &[1, 1, 1])?;
    Ok(vec![y, state])
}
