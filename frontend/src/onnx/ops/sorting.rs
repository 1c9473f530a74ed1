//! Orders along a dimension: the largest elements, the distinct ones.
//!
//! ```text
//! up to 1024 elements  an element's place is the number of those that come before it: two dispatches
//! more                 so within blocks; then pairs of sorted blocks are merged, a dispatch per doubling
//! ```
//!
//! A merged element finds its place by halving (merge path), so that every step is a gather. Equal elements stay in order,
//! NaN is larger than all.

use super::cumulative::{around_axis, lower_bound, running_sum, set_positions};
use super::indexing::as_index;
use super::scalars::clamped;
use super::slices::indexed;
use crate::onnx::operand::Operand;
use crate::onnx::predicate::{CmpF, CmpI, Predicate};
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Expr, Failure, LoopKind, NodeContext, Registry, Results, Structured, structured};
use monopour_ir::{Type, Value, ops};

/// Most elements whose places are counted among all.
const MAX_COUNTED: i64 = 1024;
/// Elements of a block of a longer dimension.
const BLOCK: i64 = 512;

pub(super) fn register(registry: &mut Registry) {
    registry.op("TopK", 1, top_k, "");
    registry.op("Unique", 11, unique, "");
}

/// An order of elements.
#[derive(Clone, Copy)]
pub(super) struct Order {
    pub dtype: DataType,
    /// The largest first.
    pub descending: bool,
}

/// An element with its index.
type Keyed<'c> = (Value<'c>, Value<'c>);

impl Order {
    /// Whether `x` comes before `y` by their values.
    pub fn before<'c>(self, b: &mut Builder<'c>, x: Value<'c>, y: Value<'c>) -> Result<Value<'c>, Failure> {
        if self.dtype.is_float() {
            // NaN is put in its place afterwards.
            let strictly = b.compare(if self.descending { CmpF::Ugt } else { CmpF::Ult }, x, y)?;
            let other = if self.descending { y } else { x };
            let is_number = b.compare(CmpF::Ord, other, other)?;
            return b.binary(ops::arith::ANDI, strictly, is_number);
        }
        b.compare(if self.descending { Predicate::greater(self.dtype) } else { Predicate::less(self.dtype) }, x, y)
    }
    /// Whether `x` comes before `y`, of equal ones that of the smaller index.
    fn precedes<'c>(self, b: &mut Builder<'c>, x: Keyed<'c>, y: Keyed<'c>) -> Result<Value<'c>, Failure> {
        let (before, after) = (self.before(b, x.0, y.0)?, self.before(b, y.0, x.0)?);
        let first = b.compare(CmpI::Slt, x.1, y.1)?;
        // Before, or not after and of a smaller index.
        let ones = b.int(first.ty(), 1);
        let not_after = b.binary(ops::arith::XORI, after, ones)?;
        let equal_first = b.binary(ops::arith::ANDI, not_after, first)?;
        b.binary(ops::arith::ORI, before, equal_first)
    }
}

/// The indices of the first `count` elements along the middle one of three dimensions, as i32.
pub(super) fn order_along<'c>(
    b: &mut Builder<'c>,
    x: &Operand<'c>,
    order: Order,
    count: &Dim,
) -> Result<Operand<'c>, Failure> {
    match x.shape[1].as_constant() {
        Some(n) if n > MAX_COUNTED => merged(b, x, order, count),
        _ => {
            let places = places(b, x, order)?;
            inverse(b, &places, count)
        }
    }
}

/// For every element the number of those that come before it.
fn places<'c>(b: &mut Builder<'c>, x: &Operand<'c>, order: Order) -> Result<Operand<'c>, Failure> {
    let (source, out) = (b.value(x)?, b.filled(DataType::I32, &x.shape, 0.0)?);
    let map = |d: usize| [0, d, 2].map(Expr::Loop).to_vec();
    let op = Structured {
        loops: vec![LoopKind::Parallel, LoopKind::Parallel, LoopKind::Parallel, LoopKind::Reduction],
        inputs: vec![(source, map(1)), (source, map(3))],
        outputs: vec![(out, map(1))],
    };
    let value = b.structured(&op, |b, e| {
        let (own, other) = (b.loop_index(1)?, b.loop_index(3)?);
        let precedes = order.precedes(b, (e[1], other), (e[0], own))?;
        Ok(vec![counted(b, e[2], precedes)?])
    })?[0];
    Ok(Operand::value(DataType::I32, x.shape.clone(), value))
}

/// One more where a flag is set.
fn counted<'c>(b: &mut Builder<'c>, count: Value<'c>, flag: Value<'c>) -> Result<Value<'c>, Failure> {
    let more = b.op(ops::arith::EXTUI, &[flag], count.ty())?;
    b.binary(ops::arith::ADDI, count, more)
}

/// The indices of the elements at the first `count` places.
fn inverse<'c>(b: &mut Builder<'c>, places: &Operand<'c>, count: &Dim) -> Result<Operand<'c>, Failure> {
    let mut shape = places.shape.clone();
    shape[1] = count.clone();
    let (source, out) = (b.value(places)?, b.filled(DataType::I32, &shape, 0.0)?);
    let map = |d: usize| [0, d, 2].map(Expr::Loop).to_vec();
    let op = Structured {
        loops: vec![LoopKind::Parallel, LoopKind::Parallel, LoopKind::Parallel, LoopKind::Reduction],
        inputs: vec![(source, map(3))],
        outputs: vec![(out, map(1))],
    };
    let value = b.structured(&op, |b, e| {
        let (place, index) = (b.loop_index(1)?, b.loop_index(3)?);
        let place = b.op(ops::arith::INDEX_CAST, &[place], e[0].ty())?;
        let index = b.op(ops::arith::INDEX_CAST, &[index], e[0].ty())?;
        Ok(vec![taken(b, e[1], (e[0], place), index)?])
    })?[0];
    Ok(Operand::value(DataType::I32, shape, value))
}

/// A sum with `index` where two places are equal.
fn taken<'c>(
    b: &mut Builder<'c>,
    sum: Value<'c>,
    (x, y): (Value<'c>, Value<'c>),
    index: Value<'c>,
) -> Result<Value<'c>, Failure> {
    let (is_it, zero) = (b.compare(CmpI::Eq, x, y)?, b.int(sum.ty(), 0));
    let index = b.select(is_it, index, zero)?;
    b.binary(ops::arith::ADDI, sum, index)
}

/// A long dimension of known size, with elements behind its end that come last.
#[derive(Clone, Copy)]
struct Long<'c> {
    source: Value<'c>,
    order: Order,
    size: i64,
}

impl<'c> Long<'c> {
    /// In a body: whether the element of index `x` comes before that of index `y`, both of type index.
    fn precedes(
        self,
        b: &mut Builder<'c>,
        row: [Value<'c>; 2],
        x: Value<'c>,
        y: Value<'c>,
    ) -> Result<Value<'c>, Failure> {
        let (size, last) = (b.int(x.ty(), self.size), b.int(x.ty(), self.size - 1));
        let mut element = |at: Value<'c>| -> Result<Value<'c>, Failure> {
            let at = b.binary(ops::arith::MINUI, at, last)?;
            b.read(self.source, &[row[0], at, row[1]])
        };
        let (left, right) = (element(x)?, element(y)?);
        let by_value = self.order.precedes(b, (left, x), (right, y))?;
        let larger = b.binary(ops::arith::MAXSI, x, y)?;
        let is_behind = b.compare(CmpI::Sge, larger, size)?;
        let by_index = b.compare(CmpI::Slt, x, y)?;
        b.select(is_behind, by_index, by_value)
    }
}

/// Blocks sorted by counting, then merged.
fn merged<'c>(b: &mut Builder<'c>, x: &Operand<'c>, order: Order, count: &Dim) -> Result<Operand<'c>, Failure> {
    let size = x.shape[1].as_constant().unwrap_or(0);
    let blocks = size.div_euclid(BLOCK) + i64::from(size % BLOCK != 0);
    let long = Long { source: b.value(x)?, order, size };
    let (rows, columns) = (x.shape[0].clone(), x.shape[2].clone());
    let apart = [rows.clone(), blocks.into(), BLOCK.into(), columns.clone()];
    let places = block_places(b, long, &apart)?;
    let mut sorted = block_inverse(b, &places)?;
    sorted = b.reshaped(&sorted, &[rows, (blocks * BLOCK).into(), columns])?;
    let mut width = BLOCK;
    while width < blocks * BLOCK {
        let is_last = 2 * width >= blocks * BLOCK;
        let wanted = if is_last { count.clone() } else { sorted.shape[1].clone() };
        sorted = merge(b, long, &sorted, width, wanted)?;
        width *= 2;
    }
    Ok(sorted)
}

fn block_places<'c>(b: &mut Builder<'c>, long: Long<'c>, shape: &[Dim]) -> Result<Operand<'c>, Failure> {
    let out = b.filled(DataType::I32, shape, 0.0)?;
    // An operand that is not read tells the size of the last loop.
    let block = b.empty(DataType::I32, &[BLOCK.into()])?;
    let op = Structured {
        loops: [&[LoopKind::Parallel; 4][..], &[LoopKind::Reduction]].concat(),
        inputs: vec![(block, vec![Expr::Loop(4)])],
        outputs: vec![(out, structured::identity(4))],
    };
    let value = b.structured(&op, |b, e| {
        let at: Vec<Value> = (0..5).map(|d| b.loop_index(d)).collect::<Result<_, _>>()?;
        let block = b.int(at[1].ty(), BLOCK);
        let first = b.binary(ops::arith::MULI, at[1], block)?;
        let (own, other) = (b.binary(ops::arith::ADDI, first, at[2])?, b.binary(ops::arith::ADDI, first, at[4])?);
        let precedes = long.precedes(b, [at[0], at[3]], other, own)?;
        Ok(vec![counted(b, e[1], precedes)?])
    })?[0];
    Ok(Operand::value(DataType::I32, shape.to_vec(), value))
}

fn block_inverse<'c>(b: &mut Builder<'c>, places: &Operand<'c>) -> Result<Operand<'c>, Failure> {
    let (source, out) = (b.value(places)?, b.filled(DataType::I32, &places.shape, 0.0)?);
    let op = Structured {
        loops: [&[LoopKind::Parallel; 4][..], &[LoopKind::Reduction]].concat(),
        inputs: vec![(source, [0, 1, 4, 3].map(Expr::Loop).to_vec())],
        outputs: vec![(out, structured::identity(4))],
    };
    let value = b.structured(&op, |b, e| {
        let (block, place, index) = (b.loop_index(1)?, b.loop_index(2)?, b.loop_index(4)?);
        let size = b.int(block.ty(), BLOCK);
        let first = b.binary(ops::arith::MULI, block, size)?;
        let index = b.binary(ops::arith::ADDI, first, index)?;
        let place = b.op(ops::arith::INDEX_CAST, &[place], e[0].ty())?;
        let index = b.op(ops::arith::INDEX_CAST, &[index], e[0].ty())?;
        Ok(vec![taken(b, e[1], (e[0], place), index)?])
    })?[0];
    Ok(Operand::value(DataType::I32, places.shape.clone(), value))
}

/// Pairs of sorted runs of `width` as sorted runs, of which the first `wanted` elements are computed.
fn merge<'c>(
    b: &mut Builder<'c>,
    long: Long<'c>,
    sorted: &Operand<'c>,
    width: i64,
    wanted: Dim,
) -> Result<Operand<'c>, Failure> {
    let (source, total) = (b.value(sorted)?, b.index(&sorted.shape[1])?);
    let shape = [sorted.shape[0].clone(), wanted, sorted.shape[2].clone()];
    b.computed(DataType::I32, &shape, |b, at| {
        let ty = at[1].ty();
        let row = [at[0], at[2]];
        let (zero, one, two) = (b.int(ty, 0), b.int(ty, 1), b.int(ty, 2));
        let (run, pair) = (b.int(ty, width), b.int(ty, 2 * width));
        let place = b.binary(ops::arith::REMUI, at[1], pair)?;
        let left = b.binary(ops::arith::SUBI, at[1], place)?;
        let right = b.binary(ops::arith::ADDI, left, run)?;
        // The last run may have no other, or a shorter one.
        let rest = b.binary(ops::arith::SUBI, total, right)?;
        let rest = b.binary(ops::arith::MAXSI, rest, zero)?;
        let rest = b.binary(ops::arith::MINSI, rest, run)?;
        let index = |b: &mut Builder<'c>, first: Value<'c>, at: Value<'c>| -> Result<Value<'c>, Failure> {
            let at = b.binary(ops::arith::ADDI, first, at)?;
            let at = clamped(b, at, total)?;
            let index = b.read(source, &[row[0], at, row[1]])?;
            as_index(b, index)
        };
        // The number of elements of the left run among those before this place.
        let low = b.binary(ops::arith::SUBI, place, rest)?;
        let mut low = b.binary(ops::arith::MAXSI, low, zero)?;
        let mut high = b.binary(ops::arith::MINSI, place, run)?;
        for _ in 0..=width.ilog2() {
            let sum = b.binary(ops::arith::ADDI, low, high)?;
            let middle = b.binary(ops::arith::DIVUI, sum, two)?;
            let other = b.binary(ops::arith::SUBI, place, middle)?;
            let other = b.binary(ops::arith::SUBI, other, one)?;
            let (x, y) = (index(b, left, middle)?, index(b, right, other)?);
            let precedes = long.precedes(b, row, x, y)?;
            let is_open = b.compare(CmpI::Slt, low, high)?;
            let up = b.binary(ops::arith::ANDI, precedes, is_open)?;
            let next = b.binary(ops::arith::ADDI, middle, one)?;
            low = b.select(up, next, low)?;
            high = b.select(up, high, middle)?;
        }
        let other = b.binary(ops::arith::SUBI, place, low)?;
        let (x, y) = (index(b, left, low)?, index(b, right, other)?);
        let precedes = long.precedes(b, row, x, y)?;
        let (has_left, has_right) = (b.compare(CmpI::Slt, low, run)?, b.compare(CmpI::Slt, other, rest)?);
        let is_left = b.binary(ops::arith::ANDI, has_left, precedes)?;
        let chosen = b.select(is_left, x, y)?;
        let chosen = b.select(has_right, chosen, x)?;
        b.op(ops::arith::INDEX_CAST, &[chosen], Type::integer(b.context(), 32))
    })
}

fn top_k<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let axis = cx.axis_attribute(-1, x.rank())?;
    let count = if cx.opset() < 10 {
        Dim::constant(cx.int("k", 0)?)
    } else {
        b.sizes_of(cx.operand(1)?)?.first().cloned().ok_or("its number of elements is missing")?
    };
    if let (Some(n), Some(k)) = (x.shape[axis].as_constant(), count.as_constant())
        && !(0..=n).contains(&k)
    {
        return Err(format!("a dimension of size {n} does not have {k} elements").into());
    }
    let mut shape = x.shape.clone();
    shape[axis] = count.clone();
    let apart = b.reshaped(x, &around_axis(&x.shape, axis))?;
    let order = Order { dtype: x.dtype, descending: cx.flag("largest", true)? };
    let places = order_along(b, &apart, order, &count)?;
    let (at, source) = (b.value(&places)?, b.value(&apart)?);
    let values = indexed(b, x, places.shape.clone(), |b, loops| {
        let place = b.read(at, loops)?;
        let place = as_index(b, place)?;
        Ok((source, vec![loops[0], place, loops[2]]))
    })?;
    let indices = super::compare::cast_to(b, &places, DataType::I64)?;
    Ok(vec![b.reshaped(&values, &shape)?, b.reshaped(&indices, &shape)?])
}

/// The elements to be told apart: of a vector, or the slices along an axis.
struct Items<'c> {
    /// `[items, elements of an item]`.
    rows: Operand<'c>,
    order: Order,
}

impl<'c> Items<'c> {
    fn count(&self) -> &Dim {
        &self.rows.shape[0]
    }
    /// The indices in ascending order, as a vector of i32.
    fn sorted(&self, b: &mut Builder<'c>) -> Result<Operand<'c>, Failure> {
        let one = Dim::constant(1);
        let n = self.count().clone();
        if self.rows.shape[1].is(1) {
            let apart = b.reshaped(&self.rows, &[one.clone(), n.clone(), one])?;
            let sorted = order_along(b, &apart, self.order, &n)?;
            return b.reshaped(&sorted, &[n]);
        }
        let differ = self.first_difference(b)?;
        let (differ, source, width) = (b.value(&differ)?, b.value(&self.rows)?, b.index(&self.rows.shape[1])?);
        let out = b.filled(DataType::I32, std::slice::from_ref(&n), 0.0)?;
        let op = Structured {
            loops: vec![LoopKind::Parallel, LoopKind::Reduction],
            inputs: vec![(differ, structured::identity(2))],
            outputs: vec![(out, structured::identity(1))],
        };
        let places = b.structured(&op, |b, e| {
            let (own, other) = (b.loop_index(0)?, b.loop_index(1)?);
            let at = as_index(b, e[0])?;
            let one = b.int(width.ty(), 1);
            let last = b.binary(ops::arith::SUBI, width, one)?;
            let at = b.binary(ops::arith::MINSI, at, last)?;
            let (x, y) = (b.read(source, &[other, at])?, b.read(source, &[own, at])?);
            let precedes = self.order.precedes(b, (x, other), (y, own))?;
            Ok(vec![counted(b, e[1], precedes)?])
        })?[0];
        let places = Operand::value(DataType::I32, vec![n.clone()], places);
        let places = b.reshaped(&places, &[one.clone(), n.clone(), one])?;
        let sorted = inverse(b, &places, &n)?;
        b.reshaped(&sorted, &[n])
    }
    /// For each two items the first element in which they differ; the number of elements if there is none.
    fn first_difference(&self, b: &mut Builder<'c>) -> Result<Operand<'c>, Failure> {
        let shape = [self.count().clone(), self.count().clone()];
        let (source, width) = (b.value(&self.rows)?, b.index(&self.rows.shape[1])?);
        let out = b.filled(DataType::I32, &shape, f64::from(i32::MAX))?;
        let op = Structured {
            loops: vec![LoopKind::Parallel, LoopKind::Parallel, LoopKind::Reduction],
            inputs: vec![(source, [0, 2].map(Expr::Loop).to_vec()), (source, [1, 2].map(Expr::Loop).to_vec())],
            outputs: vec![(out, structured::identity(2))],
        };
        let value = b.structured(&op, |b, e| {
            let (before, after) = (self.order.before(b, e[0], e[1])?, self.order.before(b, e[1], e[0])?);
            let differs = b.binary(ops::arith::ORI, before, after)?;
            let at = b.loop_index(2)?;
            let at = b.select(differs, at, width)?;
            let at = b.op(ops::arith::INDEX_CAST, &[at], e[2].ty())?;
            Ok(vec![b.binary(ops::arith::MINSI, e[2], at)?])
        })?[0];
        Ok(Operand::value(DataType::I32, shape.to_vec(), value))
    }
    /// For each place of the order whether its item differs from the one before, as i32.
    fn starts(&self, b: &mut Builder<'c>, sorted: &Operand<'c>) -> Result<Operand<'c>, Failure> {
        let (source, order) = (b.value(&self.rows)?, b.value(sorted)?);
        let shape = [self.count().clone(), self.rows.shape[1].clone()];
        let differs = b.computed(DataType::I32, &shape, |b, at| {
            let (zero, one) = (b.int(at[0].ty(), 0), b.int(at[0].ty(), 1));
            let before = b.binary(ops::arith::SUBI, at[0], one)?;
            let before = b.binary(ops::arith::MAXSI, before, zero)?;
            let (own, other) = (b.read(order, &[at[0]])?, b.read(order, &[before])?);
            let (own, other) = (as_index(b, own)?, as_index(b, other)?);
            let (x, y) = (b.read(source, &[other, at[1]])?, b.read(source, &[own, at[1]])?);
            let differs = self.order.before(b, x, y)?;
            let after = self.order.before(b, y, x)?;
            let differs = b.binary(ops::arith::ORI, differs, after)?;
            let is_first = b.compare(CmpI::Eq, at[0], zero)?;
            let starts = b.binary(ops::arith::ORI, differs, is_first)?;
            b.op(ops::arith::EXTUI, &[starts], Type::integer(b.context(), 32))
        })?;
        if self.rows.shape[1].is(1) {
            return b.reshaped(&differs, &[self.count().clone()]);
        }
        b.reduce(&differs, &[1], (DataType::I32, 0.0), |b, e, most| b.binary(ops::arith::MAXSI, e, most))
    }
}

fn unique<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let axis = cx.int_given("axis")?.map(|axis| cx.axis(axis, x.rank())).transpose()?;
    let one = Dim::constant(1);
    // Items first.
    let order: Vec<usize> = axis.into_iter().chain((0..x.rank()).filter(|d| Some(*d) != axis)).collect();
    let front = if axis.is_some() { b.permuted(x, &order)? } else { x.clone() };
    let count = axis.map_or_else(|| x.elements(), |axis| x.shape[axis].clone());
    let width = if axis.is_some() { front.shape[1..].iter().fold(one, |n, d| n.mul(d)) } else { one };
    let rows = b.reshaped(&front, &[count.clone(), width.clone()])?;
    let items = Items { rows, order: Order { dtype: x.dtype, descending: false } };
    let found = distinct(b, &items, cx.flag("sorted", true)?)?;
    let (firsts, source) = (b.value(&found.firsts)?, b.value(&items.rows)?);
    let shape = vec![found.firsts.shape[0].clone(), width];
    let kept = indexed(b, x, shape, |b, at| {
        let item = b.read(firsts, &[at[0]])?;
        Ok((source, vec![as_index(b, item)?, at[1]]))
    })?;
    let mut back = front.shape.clone();
    let values = if axis.is_some() {
        back[0] = found.firsts.shape[0].clone();
        let kept = b.reshaped(&kept, &back)?;
        let places: Vec<usize> = (0..x.rank()).map(|d| order.iter().position(|o| *o == d).unwrap_or(d)).collect();
        b.permuted(&kept, &places)?
    } else {
        b.reshaped(&kept, &found.firsts.shape)?
    };
    let mut results = vec![values];
    for vector in [&found.firsts, &found.groups, &found.counts] {
        results.push(super::compare::cast_to(b, vector, DataType::I64)?);
    }
    Ok(results)
}

/// The groups of equal items, as vectors of i32.
struct Distinct<'c> {
    /// The first item of each group.
    firsts: Operand<'c>,
    /// The group of each item.
    groups: Operand<'c>,
    /// Items of each group.
    counts: Operand<'c>,
}

fn distinct<'c>(b: &mut Builder<'c>, items: &Items<'c>, sorted: bool) -> Result<Distinct<'c>, Failure> {
    let (n, int) = (items.count().clone(), Type::integer(b.context(), 32));
    let order = items.sorted(b)?;
    let starts = items.starts(b, &order)?;
    let begins = set_positions(b, &starts)?;
    let numbers = running_sum(b, &starts)?;
    // The group of an item, by the place of the item in the order.
    let places = order_along_vector(b, &order)?;
    let (place_of, number_of) = (b.value(&places)?, b.value(&numbers)?);
    let groups = b.computed(DataType::I32, std::slice::from_ref(&n), |b, at| {
        let place = b.read(place_of, at)?;
        let place = as_index(b, place)?;
        let number = b.read(number_of, &[place])?;
        let one = b.int(int, 1);
        b.binary(ops::arith::SUBI, number, one)
    })?;
    let (begin_of, item_of) = (b.value(&begins)?, b.value(&order)?);
    let firsts = b.computed(DataType::I32, &begins.shape, |b, at| {
        let begin = b.read(begin_of, at)?;
        let begin = as_index(b, begin)?;
        b.read(item_of, &[begin])
    })?;
    let (size, all) = (b.index(&begins.shape[0])?, b.index(&n)?);
    let counts = b.computed(DataType::I32, &begins.shape, |b, at| {
        let one = b.int(size.ty(), 1);
        let next = b.binary(ops::arith::ADDI, at[0], one)?;
        let last = b.binary(ops::arith::SUBI, size, one)?;
        let inside = b.binary(ops::arith::MINSI, next, last)?;
        let (begin, end) = (b.read(begin_of, at)?, b.read(begin_of, &[inside])?);
        let all = b.op(ops::arith::INDEX_CAST, &[all], int)?;
        let has_next = b.compare(CmpI::Slt, next, size)?;
        let end = b.select(has_next, end, all)?;
        b.binary(ops::arith::SUBI, end, begin)
    })?;
    let found = Distinct { firsts, groups, counts };
    if sorted { Ok(found) } else { by_occurrence(b, &found) }
}

/// The groups in the order of their first items.
fn by_occurrence<'c>(b: &mut Builder<'c>, found: &Distinct<'c>) -> Result<Distinct<'c>, Failure> {
    let (n, int) = (found.groups.shape[0].clone(), Type::integer(b.context(), 32));
    let (group_of, first_of, count_of) = (b.value(&found.groups)?, b.value(&found.firsts)?, b.value(&found.counts)?);
    // The items that are the first of their groups.
    let flags = b.computed(DataType::I32, &[n], |b, at| {
        let group = b.read(group_of, at)?;
        let group = as_index(b, group)?;
        let first = b.read(first_of, &[group])?;
        let first = as_index(b, first)?;
        let is_first = b.compare(CmpI::Eq, first, at[0])?;
        b.op(ops::arith::EXTUI, &[is_first], int)
    })?;
    // As many as there were groups before.
    let sums = running_sum(b, &flags)?;
    let sum_of = b.value(&sums)?;
    let firsts = b.computed(DataType::I32, &found.firsts.shape, |b, at| {
        let at = b.op(ops::arith::INDEX_CAST, &[at[0]], int)?;
        let place = lower_bound(b, &sums.shape[0], |b, place| {
            let sum = b.read(sum_of, &[place])?;
            // At most.
            b.compare(CmpI::Sle, sum, at)
        })?;
        b.op(ops::arith::INDEX_CAST, &[place], int)
    })?;
    let groups = b.computed(DataType::I32, &found.groups.shape, |b, at| {
        let group = b.read(group_of, at)?;
        let group = as_index(b, group)?;
        let first = b.read(first_of, &[group])?;
        let first = as_index(b, first)?;
        let (sum, one) = (b.read(sum_of, &[first])?, b.int(int, 1));
        b.binary(ops::arith::SUBI, sum, one)
    })?;
    let new_first_of = b.value(&firsts)?;
    let counts = b.computed(DataType::I32, &found.counts.shape, |b, at| {
        let first = b.read(new_first_of, at)?;
        let first = as_index(b, first)?;
        let group = b.read(group_of, &[first])?;
        let group = as_index(b, group)?;
        b.read(count_of, &[group])
    })?;
    Ok(Distinct { firsts, groups, counts })
}

/// The inverse of a permutation: the order of its elements.
fn order_along_vector<'c>(b: &mut Builder<'c>, x: &Operand<'c>) -> Result<Operand<'c>, Failure> {
    let (n, one) = (x.shape[0].clone(), Dim::constant(1));
    let apart = b.reshaped(x, &[one.clone(), n.clone(), one])?;
    let order = Order { dtype: DataType::I32, descending: false };
    let places = order_along(b, &apart, order, &n)?;
    b.reshaped(&places, &[n])
}
