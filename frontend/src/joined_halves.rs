//! Two halves that are put together, for ops that read them element by element, as a choice between the two.
//!
//! Before / after, of the rotation in rotary embeddings of a size `d`:
//!
//! ```text
//! %a = extract_slice %x[0] [d / 2]                     %c = generic over (h, i) ins(%b', %a) { h == 0 ? %b' : %a }
//! %b = extract_slice %x[d / 2] [d / 2]                 %j = tensor.collapse_shape %c : [h, i] -> [d]
//! %b' = generic ins(%b) { negf }                       %y = generic ins(%j, %sin) { mulf }
//! %j = [%b', %a]
//! %y = generic ins(%j, %sin) { mulf }
//! ```
//!
//! Elementwise fusion then joins all of them: a rotation is one dispatch, in which no half is copied. Equal halves, as
//! tables of sines and cosines are put together of, are a broadcast.
//! Requires: halves of one size that are slices, or computed of one by pointwise ops, or one value; readers that are pointwise.
//! Ensures: the same values.
//! Limits: joins of two parts. Each element reads both halves, so that they should lie near one another.

use crate::collapse_lines::collapsed;
use crate::joins::{Join, is_read_by_elements, is_reshape};
use crate::linalg;
use monopour_ir::typed::arith::CmpIPredicate;
use monopour_ir::typed::linalg::{Operands, generic};
use monopour_ir::{
    AffineMap, Attr, Block, Diagnostics, InsertionPoint, Location, Module, OpSpec, Region, Rewriter, Type, Value, ops,
};

/// Rewrites all such joins of `module`.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(crate) fn run<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    for op in module.op().find_all(ops::tensor::INSERT_SLICE) {
        let join = Join::of(op).filter(|join| has_near_halves(join) && is_read_by_elements(join.value(), &|_| false));
        if let Some(join) = join {
            rewrite(&join, rw)?;
        }
    }
    Ok(())
}

/// Whether a join is of two halves that are cheap to read twice.
fn has_near_halves(join: &Join) -> bool {
    let [(first, _), (second, _)] = join.parts[..] else { return false };
    first == second || (first.ty() == second.ty() && is_near(first) && is_near(second))
}

/// Whether a value is a slice, or computed of one by pointwise ops that read nothing else.
fn is_near(mut value: Value) -> bool {
    while let Some(op) = value.defining_op() {
        let is_pointwise = linalg::is_elementwise(op) && (linalg::num_inputs(op), op.num_results()) == (1, 1);
        match op {
            _ if op.is(ops::tensor::EXTRACT_SLICE) => return true,
            _ if is_reshape(op) || (is_pointwise && value.only_use().is_some()) => value = op.operand(0),
            _ => return false,
        }
    }
    false
}

fn rewrite<'c>(join: &Join<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    let (op, axis, cx) = (join.last(), join.axis, rw.context());
    let (loc, ty) = (op.location(), join.value().ty());
    let mut shape = ty.shape().expect("invariant: a tensor");
    shape[axis] /= 2;
    shape.insert(axis, 2);
    rw.set_point(InsertionPoint::Before(op));
    let mut inputs: Vec<Value> = join.parts.iter().map(|(part, _)| *part).collect();
    inputs.dedup();
    // Those of the destination.
    let sizes: Vec<Value> = join.parts[0].1.values().collect();
    let empty = OpSpec::new(ops::tensor::EMPTY, loc).operands(&sizes);
    let empty = rw.create(empty.results(&[Type::tensor(&shape, ty.element(), None)]))?.result(0);
    let others: Vec<usize> = (0..shape.len()).filter(|d| *d != axis).collect();
    let mut maps = vec![AffineMap::select(cx, shape.len(), &others); inputs.len()];
    maps.push(AffineMap::identity(cx, shape.len()));
    let region = Region::new();
    let body = Block::new(&vec![(ty.element(), loc); maps.len()]);
    region.append(body);
    let operands = Operands { inputs: &inputs, outputs: &[empty] };
    let kinds = linalg::iterators(cx, &vec![true; shape.len()]);
    let made = rw.create(generic(loc, operands, &maps, kinds, region))?;
    rw.set_point(InsertionPoint::End(body));
    let value = if inputs.len() == 1 { body.arg(0) } else { choice(body, axis, loc, rw)? };
    rw.create(OpSpec::new(ops::linalg::YIELD, loc).operands(&[value]))?;
    rw.set_point(InsertionPoint::Before(op));
    let whole = collapsed(made.result(0), axis, rw)?;
    rw.replace_all_uses(join.value(), whole);
    join.erase(rw);
    Ok(())
}

/// The element of the first half where the index is 0, else that of the second.
fn choice<'c>(
    body: Block<'c>,
    axis: usize,
    loc: Location<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<Value<'c>, Diagnostics> {
    let (cx, first) = (rw.context(), body.arg(0));
    let index = Type::index(cx);
    let half = OpSpec::new(ops::linalg::INDEX, loc).results(&[index]).attr("dim", Attr::i64(cx, axis as i64));
    let half = rw.create(half)?.result(0);
    let zero = rw.const_index(0, loc);
    let is_first = OpSpec::new(ops::arith::CMPI, loc)
        .operands(&[half, zero])
        .results(&[Type::integer(cx, 1)])
        .attr("predicate", CmpIPredicate::Eq.to_attr(cx));
    let is_first = rw.create(is_first)?.result(0);
    let chosen = OpSpec::new(ops::arith::SELECT, loc).operands(&[is_first, first, body.arg(1)]);
    Ok(rw.create(chosen.results(&[first.ty()]))?.result(0))
}
