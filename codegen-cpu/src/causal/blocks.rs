//! Writes the loops over blocks of keys.

use super::Attention;
use monopour_ir::causal::UNDERFLOW;
use monopour_ir::typed::arith::CmpFPredicate;
use monopour_ir::typed::{Index, Slice, memref};
use monopour_ir::{
    Attr, Block, DYNAMIC, Diagnostics, InsertionPoint, Location, Op, OpSpec, Region, Rewriter, Type, Value, ops,
};
use std::collections::HashMap;

/// Puts the ops of an attention into loops, where its last op is.
pub(super) fn rewrite<'c>(attention: &Attention<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    let anchor = attention.values;
    let mut w = Writer { attention, loc: anchor.location(), point: InsertionPoint::Before(anchor), rw };
    let (zero, seen) = (w.index(0), w.seen()?);
    let end = match attention.mask.least {
        f64::NEG_INFINITY => {
            w.scores([zero, seen])?;
            seen
        }
        // The second time, all other keys where they count.
        _ => {
            let (two, one, all) = (w.index(2), w.index(1), w.index(attention.keys));
            let passes = w.for_loop([zero, two, one], &[zero, seen], |w, _, range| {
                w.scores([range[0], range[1]])?;
                let high = w.are_high()?;
                let index = Type::index(w.rw.context());
                let end = w.op(ops::arith::SELECT, &[high, range[1], all], index)?;
                Ok(vec![range[1], end])
            })?;
            passes[1]
        }
    };
    w.copy(&attention.weights, Keys { first: zero, count: Index::Dynamic(end) })?;
    w.blocks(&[attention.values], [zero, end])?;
    let mut gone: Vec<Op> = std::iter::once(attention.fill).chain(attention.ops()).collect();
    while let Some(op) = gone.pop() {
        rw.erase(op);
    }
    Ok(())
}

/// Keys that are neighbours.
#[derive(Clone, Copy)]
struct Keys<'c> {
    first: Value<'c>,
    count: Index<'c>,
}

/// Creates ops one after the other.
struct Writer<'c, 'a> {
    attention: &'a Attention<'c>,
    loc: Location<'c>,
    point: InsertionPoint<'c>,
    rw: &'a mut Rewriter<'c>,
}

impl<'c> Writer<'c, '_> {
    fn create(&mut self, spec: OpSpec<'c, '_>) -> Result<Op<'c>, Diagnostics> {
        self.rw.set_point(self.point);
        self.rw.create(spec)
    }

    fn op(&mut self, name: &str, operands: &[Value<'c>], ty: Type<'c>) -> Result<Value<'c>, Diagnostics> {
        Ok(self.create(OpSpec::new(name, self.loc).operands(operands).results(&[ty]))?.result(0))
    }

    fn index(&mut self, value: i64) -> Value<'c> {
        self.rw.set_point(self.point);
        self.rw.const_index(value, self.loc)
    }

    /// An op of an index and a constant.
    fn with_const(&mut self, name: &str, value: Value<'c>, constant: i64) -> Result<Value<'c>, Diagnostics> {
        let constant = self.index(constant);
        self.op(name, &[value, constant], value.ty())
    }

    /// `scf.for` over `[from, to, step]`; the body takes its place and the values that it returns.
    fn for_loop(
        &mut self,
        bounds: [Value<'c>; 3],
        inits: &[Value<'c>],
        body: impl FnOnce(&mut Self, Value<'c>, &[Value<'c>]) -> Result<Vec<Value<'c>>, Diagnostics>,
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let types: Vec<Type> = inits.iter().map(|value| value.ty()).collect();
        let args = std::iter::once(Type::index(self.rw.context())).chain(types.iter().copied());
        let block = Block::new(&args.map(|ty| (ty, self.loc)).collect::<Vec<_>>());
        let region = Region::new();
        region.append(block);
        let spec = OpSpec::new(ops::scf::FOR, self.loc).operands(&bounds).operands(inits).results(&types);
        let op = self.create(spec.region(region))?;
        let outside = std::mem::replace(&mut self.point, InsertionPoint::End(block));
        let next = body(self, block.arg(0), &block.args()[1..])?;
        self.create(OpSpec::new(ops::scf::YIELD, self.loc).operands(&next))?;
        self.point = outside;
        Ok(op.results())
    }

    /// The end of the keys that the task's rows see, in whole blocks: at least one.
    fn seen(&mut self) -> Result<Value<'c>, Diagnostics> {
        let (attention, block) = (self.attention, self.attention.block());
        let first = self.index(attention.first_unseen());
        let index = first.ty();
        let offsets = attention.mask.offsets.iter();
        let end = offsets.copied().try_fold(first, |end, offset| self.op(ops::arith::ADDI, &[end, offset], index))?;
        let end = self.with_const(ops::arith::MAXSI, end, 1)?;
        let end = self.with_const(ops::arith::ADDI, end, block - 1)?;
        let blocks = self.with_const(ops::arith::DIVUI, end, block)?;
        let end = self.with_const(ops::arith::MULI, blocks, block)?;
        self.with_const(ops::arith::MINSI, end, attention.keys)
    }

    /// The scores of a range of whole blocks, or up to the last key, and the maxima of all so far.
    fn scores(&mut self, [from, to]: [Value<'c>; 2]) -> Result<(), Diagnostics> {
        let attention = self.attention;
        self.blocks(&attention.scores, [from, to])?;
        let count = self.op(ops::arith::SUBI, &[to, from], to.ty())?;
        self.copy(&[attention.most_of_row], Keys { first: from, count: Index::Dynamic(count) })
    }

    /// Runs ops over the blocks of a range.
    fn blocks(&mut self, ops: &[Op<'c>], [from, to]: [Value<'c>; 2]) -> Result<(), Diagnostics> {
        let (keys, block) = (self.attention.keys, self.attention.block());
        let (whole, rest) = (keys / block * block, keys % block);
        let end = if rest == 0 { to } else { self.with_const(ops::arith::MINSI, to, whole)? };
        let step = self.index(block);
        self.for_loop([from, end, step], &[], |w, at, _| {
            w.copy(ops, Keys { first: at, count: Index::Static(block) })?;
            Ok(vec![])
        })?;
        if rest == 0 {
            return Ok(());
        }
        // Once at most: a range that begins behind the whole blocks is empty.
        let from = self.with_const(ops::arith::MAXSI, from, whole)?;
        let step = self.index(rest);
        self.for_loop([from, to, step], &[], |w, at, _| {
            w.copy(ops, Keys { first: at, count: Index::Static(rest) })?;
            Ok(vec![])
        })?;
        Ok(())
    }

    /// The ops over some keys.
    fn copy(&mut self, ops: &[Op<'c>], keys: Keys<'c>) -> Result<(), Diagnostics> {
        let mut views = HashMap::new();
        for op in ops {
            if *op == self.attention.scores[0] {
                self.copy_one(self.attention.fill, keys, &mut views)?;
            }
            self.copy_one(*op, keys, &mut views)?;
        }
        Ok(())
    }

    fn copy_one(
        &mut self,
        op: Op<'c>,
        keys: Keys<'c>,
        views: &mut HashMap<(Value<'c>, usize), Value<'c>>,
    ) -> Result<(), Diagnostics> {
        let key = self.attention.key_loop(op);
        let mut operands = op.operands();
        for (i, value) in operands.iter_mut().enumerate() {
            let Some(dim) = self.key_dim(op, i, key) else { continue };
            *value = match views.get(&(*value, dim)) {
                Some(view) => *view,
                None => {
                    let view = self.view(*value, dim, keys)?;
                    views.insert((*value, dim), view);
                    view
                }
            };
        }
        let copy = self.rw.clone_op(op, |value| value);
        self.rw.set_point(self.point);
        self.rw.insert(copy);
        self.rw.set_operands(copy, &operands);
        for place in copy.find_all(ops::linalg::INDEX) {
            if place.attr("dim").and_then(|dim| usize::try_from(dim.as_int()?).ok()) == Some(key) {
                self.shift(place, keys.first)?;
            }
        }
        Ok(())
    }

    /// The dimension of an operand that is the keys.
    fn key_dim(&self, op: Op<'c>, operand: usize, key: usize) -> Option<usize> {
        if op == self.attention.fill {
            return (op.operand(operand) == self.attention.buffer).then_some(key);
        }
        let map = op.attr("indexing_maps")?.as_array()?[operand].as_affine_map()?;
        map.results().into_iter().position(|result| result.dims().contains(&key))
    }

    /// The elements of some keys.
    fn view(&mut self, value: Value<'c>, dim: usize, keys: Keys<'c>) -> Result<Value<'c>, Diagnostics> {
        let ty = value.ty().as_memref().expect("invariant: it has a dimension");
        let mut shape = ty.shape.clone();
        let mut slice = Slice::fixed(&vec![0; shape.len()], &shape);
        (slice.offsets[dim], slice.sizes[dim]) = (Index::Dynamic(keys.first), keys.count);
        shape[dim] = keys.count.number();
        let ty = Type::strided_memref(&shape, ty.element, DYNAMIC, &ty.strides, ty.memory_space);
        Ok(self.create(memref::subview(self.loc, value, &slice, ty))?.result(0))
    }

    /// Adds the block's first key to a place within it.
    fn shift(&mut self, place: Op<'c>, at: Value<'c>) -> Result<(), Diagnostics> {
        let place_in_block = place.result(0);
        let uses = place_in_block.uses();
        let outside = std::mem::replace(&mut self.point, InsertionPoint::After(place));
        let sum = self.op(ops::arith::ADDI, &[place_in_block, at], at.ty())?;
        self.point = outside;
        uses.into_iter().for_each(|user| self.rw.set_operand(user.op, user.index, sum));
        Ok(())
    }

    /// Whether the largest scores of all rows are so far above the mask's that its powers are 0: no NaN is.
    fn are_high(&mut self) -> Result<Value<'c>, Diagnostics> {
        let (attention, bit) = (self.attention, Type::integer(self.rw.context(), 1));
        let element = attention.most.ty().element();
        let bound = Attr::float(element, attention.mask.least + UNDERFLOW);
        let bound =
            self.create(OpSpec::new(ops::arith::CONSTANT, self.loc).results(&[element]).attr("value", bound))?;
        let yes = OpSpec::new(ops::arith::CONSTANT, self.loc).results(&[bit]);
        let yes = self.create(yes.attr("value", Attr::bool(self.rw.context(), true)))?.result(0);
        let bounds = [0, attention.rows, 1].map(|bound| self.index(bound));
        let (rank, zero) = (attention.most.ty().shape().map_or(0, |shape| shape.len()), bounds[0]);
        let high = self.for_loop(bounds, &[yes], |w, row, so_far| {
            let place = (0..rank).map(|dim| if dim == attention.row { row } else { zero });
            let operands: Vec<Value> = std::iter::once(attention.most).chain(place).collect();
            let most = w.op(ops::memref::LOAD, &operands, element)?;
            let spec = OpSpec::new(ops::arith::CMPF, w.loc).operands(&[most, bound.result(0)]).results(&[bit]);
            let is_high = w.create(spec.attr("predicate", CmpFPredicate::Ogt.to_attr(w.rw.context())))?.result(0);
            Ok(vec![w.op(ops::arith::ANDI, &[so_far[0], is_high], bit)?])
        })?;
        Ok(high[0])
    }
}
