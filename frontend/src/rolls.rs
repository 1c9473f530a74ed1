//! Two parts of one tensor that are put together, as reads of that tensor.
//!
//! Before / after, of an image of `n` lines that is rolled by `k`:
//!
//! ```text
//! %a = extract_slice %x[k] [n - k]                   %y = generic over (i, ..) {
//! %b = extract_slice %x[0] [k]                         %j = i < n - k ? i + k : i - (n - k)
//! %y = [%a, %b]                                        extract %x[%j, ..]
//!                                                    }
//! ```
//!
//! Elementwise fusion joins it with what reads it, as the windows that shifted windows of images are cut into; both parts were
//! copied before, once for each dimension in which an image is rolled.
//!
//! Requires: slices without steps that are whole but for one dimension; readers that are pointwise, or slices for the next such
//! join. Ensures: the same values. Limits: known sizes; joins of two parts.

use crate::joins::{Join, is_read_by_elements};
use crate::linalg;
use monopour_ir::typed::Slice;
use monopour_ir::typed::arith::CmpIPredicate;
use monopour_ir::typed::linalg::{Operands, generic};
use monopour_ir::{
    AffineMap, Attr, Block, Diagnostics, InsertionPoint, Location, Module, Op, OpSpec, Region, Rewriter, Type, Value,
    ops,
};
use std::collections::HashMap;

/// Rewrites all such joins of `module`.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(crate) fn run<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    let mut known: HashMap<Value, Roll> = HashMap::new();
    for op in module.op().find_all(ops::tensor::INSERT_SLICE) {
        let join = Join::of(op).filter(|join| {
            !join.is_dynamic() && is_read_by_elements(join.value(), &|op| op.is(ops::tensor::EXTRACT_SLICE))
        });
        let Some((join, roll)) = join.and_then(|join| Roll::of(&join).map(|roll| (join, roll))) else { continue };
        let roll = match known.get(&roll.source) {
            Some(first) if first.moves.iter().all(|m| m.axis != roll.moves[0].axis) => {
                Roll { source: first.source, moves: [&first.moves[..], &roll.moves].concat() }
            }
            _ => roll,
        };
        let value = roll.write(&join, rw)?;
        let slices: Vec<Op> = join.parts.iter().filter_map(|(part, _)| part.defining_op()).collect();
        let source = slices[0].operand(0);
        rw.replace_all_uses(join.value(), value);
        join.erase(rw);
        slices.into_iter().for_each(|slice| rw.erase(slice));
        if let (Some(made), true) = (source.defining_op(), known.contains_key(&source) && source.is_unused()) {
            known.remove(&source);
            rw.erase(made);
        }
        known.insert(value, roll);
    }
    Ok(())
}

/// Where the elements of a tensor are in another one.
struct Roll<'c> {
    source: Value<'c>,
    moves: Vec<Move>,
}

/// In one dimension: the first `count` elements are those from `from[0]` on, the others those from `from[1]` on.
#[derive(Clone, Copy)]
struct Move {
    axis: usize,
    count: i64,
    from: [i64; 2],
}

impl<'c> Roll<'c> {
    fn of(join: &Join<'c>) -> Option<Self> {
        let [(first, place), (second, _)] = &join.parts[..] else { return None };
        let source = |part: &Value<'c>| {
            let op = part.defining_op().filter(|op| op.is(ops::tensor::EXTRACT_SLICE) && part.only_use().is_some())?;
            let (slice, shape) = (Slice::of(op)?, part.ty().shape()?);
            let mut whole = op.operand(0).ty().shape()?;
            if whole.len() != shape.len() {
                return None;
            }
            let from = slice.offsets[join.axis].constant()?;
            let mut offsets = vec![0; shape.len()];
            (offsets[join.axis], whole[join.axis]) = (from, shape[join.axis]);
            (slice == Slice::fixed(&offsets, &whole)).then_some((op.operand(0), from))
        };
        let ((x, a), (y, b)) = (source(first)?, source(second)?);
        let moved = Move { axis: join.axis, count: place.sizes[join.axis].constant()?, from: [a, b] };
        (x == y).then(|| Self { source: x, moves: vec![moved] })
    }

    /// The tensor as an op that reads the other one.
    fn write(&self, join: &Join<'c>, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
        let (op, ty, cx) = (join.last(), join.value().ty(), rw.context());
        let (loc, rank) = (op.location(), ty.shape().map_or(0, |shape| shape.len()));
        rw.set_point(InsertionPoint::Before(op));
        let empty = rw.create(OpSpec::new(ops::tensor::EMPTY, loc).results(&[ty]))?.result(0);
        let (region, body) = (Region::new(), Block::new(&[(ty.element(), loc)]));
        region.append(body);
        let kinds = linalg::iterators(cx, &vec![true; rank]);
        let operands = Operands { inputs: &[], outputs: &[empty] };
        let made = rw.create(generic(loc, operands, &[AffineMap::identity(cx, rank)], kinds, region))?;
        rw.set_point(InsertionPoint::End(body));
        let mut place = vec![self.source];
        for dim in 0..rank {
            let index = OpSpec::new(ops::linalg::INDEX, loc).results(&[Type::index(cx)]);
            let index = rw.create(index.attr("dim", Attr::i64(cx, dim as i64)))?.result(0);
            let moved = self.moves.iter().find(|moved| moved.axis == dim);
            place.push(moved.map_or(Ok(index), |moved| moved.index(index, loc, rw))?);
        }
        let element = OpSpec::new(ops::tensor::EXTRACT, loc).operands(&place).results(&[ty.element()]);
        let element = rw.create(element)?.result(0);
        rw.create(OpSpec::new(ops::linalg::YIELD, loc).operands(&[element]))?;
        Ok(made.result(0))
    }
}

impl Move {
    /// Where an element is in the other tensor.
    fn index<'c>(self, index: Value<'c>, loc: Location<'c>, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
        let (cx, ty) = (rw.context(), index.ty());
        let count = rw.const_index(self.count, loc);
        let is_first = OpSpec::new(ops::arith::CMPI, loc)
            .operands(&[index, count])
            .results(&[Type::integer(cx, 1)])
            .attr("predicate", CmpIPredicate::Ult.to_attr(cx));
        let is_first = rw.create(is_first)?.result(0);
        let steps = [self.from[0], self.from[1] - self.count].map(|step| rw.const_index(step, loc));
        let step = OpSpec::new(ops::arith::SELECT, loc).operands(&[is_first, steps[0], steps[1]]).results(&[ty]);
        let step = rw.create(step)?.result(0);
        Ok(rw.create(OpSpec::new(ops::arith::ADDI, loc).operands(&[index, step]).results(&[ty]))?.result(0))
    }
}
