//! Binary ops before version 7, where attributes say how the second operand is broadcast.

use super::activations::prelu;
use super::compare::{AND, Comparison, EQUAL, GREATER, LESS, OR, XOR, comparison};
use super::elementwise::{ADD, DIV, Function, MUL, SUB, apply_to_two, pow};
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, Failure, NodeContext, Registry, Results};

/// The last version of these forms.
const LAST: i64 = 6;

pub(super) fn register(registry: &mut Registry) {
    let mut op = |name: &str, lowering| registry.add("", name, 1..=LAST, lowering, "");
    op("Add", |b, cx| by_axis(b, cx, ADD));
    op("Sub", |b, cx| by_axis(b, cx, SUB));
    op("Mul", |b, cx| by_axis(b, cx, MUL));
    op("Div", |b, cx| by_axis(b, cx, DIV));
    op("And", |b, cx| by_axis(b, cx, AND));
    op("Or", |b, cx| by_axis(b, cx, OR));
    op("Xor", |b, cx| by_axis(b, cx, XOR));
    op("Equal", |b, cx| compared(b, cx, EQUAL));
    op("Less", |b, cx| compared(b, cx, LESS));
    op("Greater", |b, cx| compared(b, cx, GREATER));
    op("Pow", |b, cx| {
        let axis = cx.int_given("axis")?;
        let cx = aligned(b, cx, axis)?;
        pow(b, &cx)
    });
    op("PRelu", |b, cx| {
        // One slope for each channel.
        let axis = (cx.operand(1)?.rank() == 1 && cx.operand(0)?.rank() > 1).then_some(1);
        let cx = aligned(b, cx, axis)?;
        prelu(b, &cx)
    });
}

fn by_axis<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>, function: Function) -> Results<'c> {
    let axis = cx.int_given("axis")?;
    let cx = aligned(b, cx, axis)?;
    apply_to_two(b, &cx, function)
}

fn compared<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>, predicate: Comparison) -> Results<'c> {
    let axis = cx.int_given("axis")?;
    let cx = aligned(b, cx, axis)?;
    comparison(b, &cx, predicate)
}

/// The node with the first dimension of its second operand at `axis` of the first one, at the end unless given.
fn aligned<'a, 'c>(
    b: &mut Builder<'c>,
    cx: &NodeContext<'a, 'c>,
    axis: Option<i64>,
) -> Result<NodeContext<'a, 'c>, Failure> {
    let (x, y) = (cx.operand(0)?, cx.operand(1)?);
    let mut operands = cx.operands.clone();
    if let Some(axis) = axis.filter(|_| y.rank() > 0 && !y.elements().is(1)) {
        let axis = cx.axis(axis, x.rank())?;
        let behind = (x.rank() - axis).checked_sub(y.rank()).ok_or("its second operand has too many dimensions")?;
        let shape = [&y.shape[..], &vec![Dim::constant(1); behind]].concat();
        operands[1] = Some(b.reshaped(y, &shape)?);
    }
    Ok(NodeContext { node: cx.node, operands })
}
