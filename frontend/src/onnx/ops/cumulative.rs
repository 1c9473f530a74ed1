//! Sums and products of the elements so far, and what follows from sums of flags: the positions of those that are set.
//!
//! A short dimension is one dispatch, which sums for each element all before it. A long one takes a dispatch per doubling:
//! after step `k` an element holds the sum of the `2^k` up to it.

use crate::onnx::operand::Operand;
use crate::onnx::predicate::CmpI;
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Expr, Failure, LoopKind, NodeContext, Registry, Results, Structured, structured};
use monopour_ir::{Block, InsertionPoint, OpSpec, Region, Type, Value, ops};

/// Beyond this a dimension is summed by doubling.
const MAX_DIRECT: i64 = 256;
/// Doublings of a dimension of unknown size.
const MAX_DOUBLINGS: i64 = 31;

pub(super) fn register(registry: &mut Registry) {
    registry.op("CumSum", 11, |b, cx| along_axis(b, cx, false), "");
    registry.op("CumProd", 26, |b, cx| along_axis(b, cx, true), "");
}

/// Which elements are combined, and how.
#[derive(Clone, Copy)]
struct Kind {
    product: bool,
    /// Without the element itself.
    exclusive: bool,
    /// From the end on.
    reverse: bool,
}

impl Kind {
    fn combine<'c>(
        self,
        b: &mut Builder<'c>,
        dtype: DataType,
        x: Value<'c>,
        y: Value<'c>,
    ) -> Result<Value<'c>, Failure> {
        let name = match (self.product, dtype.is_float()) {
            (false, true) => ops::arith::ADDF,
            (false, false) => ops::arith::ADDI,
            (true, true) => ops::arith::MULF,
            (true, false) => ops::arith::MULI,
        };
        b.binary(name, x, y)
    }
    /// The value that changes nothing.
    fn neutral(self) -> f64 {
        f64::from(u8::from(self.product))
    }
}

/// The shape as the dimensions before an axis, the axis, and those behind it.
pub(super) fn around_axis(shape: &[Dim], axis: usize) -> [Dim; 3] {
    let product = |dims: &[Dim]| dims.iter().fold(Dim::constant(1), |n, d| n.mul(d));
    [product(&shape[..axis]), shape[axis].clone(), product(&shape[axis + 1..])]
}

fn along_axis<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>, product: bool) -> Results<'c> {
    let x = cx.operand(0)?;
    let kind = Kind { product, exclusive: cx.flag("exclusive", false)?, reverse: cx.flag("reverse", false)? };
    if let Some(axis) = cx.operand(1)?.as_ints() {
        let axis = cx.axis(axis.first().copied().ok_or("its axis is missing")?, x.rank())?;
        let apart = b.reshaped(x, &around_axis(&x.shape, axis))?;
        let result = cumulative(b, &apart, kind)?;
        return Ok(vec![b.reshaped(&result, &x.shape)?]);
    }
    // The axis is read at run time: of all results the one of that axis is taken.
    let at = b.elements_of(cx.operand(1)?)?.first().copied().ok_or("its axis is missing")?;
    let (zero, rank) = (b.int(at.ty(), 0), b.int(at.ty(), x.rank() as i64));
    let counted = b.binary(ops::arith::ADDI, at, rank)?;
    let at = b.where_less([at, zero], [counted, at])?;
    let mut chosen: Option<Operand> = None;
    for axis in 0..x.rank() {
        let apart = b.reshaped(x, &around_axis(&x.shape, axis))?;
        let result = cumulative(b, &apart, kind)?;
        let result = b.reshaped(&result, &x.shape)?;
        chosen = Some(match chosen {
            None => result,
            Some(other) => {
                let axis = b.int(at.ty(), axis as i64);
                let is_it = b.compare(CmpI::Eq, at, axis)?;
                b.elementwise(&[&result, &other], x.dtype, |b, e| b.select(is_it, e[0], e[1]))?
            }
        });
    }
    Ok(vec![chosen.ok_or("its operand has no axis")?])
}

/// Along the middle one of three dimensions.
fn cumulative<'c>(b: &mut Builder<'c>, x: &Operand<'c>, kind: Kind) -> Result<Operand<'c>, Failure> {
    if x.shape[1].as_constant().is_some_and(|n| n <= MAX_DIRECT) { direct(b, x, kind) } else { doubled(b, x, kind) }
}

/// Each element combines all before it.
fn direct<'c>(b: &mut Builder<'c>, x: &Operand<'c>, kind: Kind) -> Result<Operand<'c>, Failure> {
    let (source, out) = (b.value(x)?, b.filled(x.dtype, &x.shape, kind.neutral())?);
    let map = |d: usize| [0, d, 2].map(Expr::Loop).to_vec();
    let op = Structured {
        loops: vec![LoopKind::Parallel, LoopKind::Parallel, LoopKind::Parallel, LoopKind::Reduction],
        inputs: vec![(source, map(3))],
        outputs: vec![(out, map(1))],
    };
    let results = b.structured(&op, |b, e| {
        let (at, from) = (b.loop_index(1)?, b.loop_index(3)?);
        let (first, last) = if kind.reverse { (at, from) } else { (from, at) };
        let counts = b.compare(if kind.exclusive { CmpI::Slt } else { CmpI::Sle }, first, last)?;
        let neutral = b.number(e[0].ty(), kind.neutral());
        let element = b.select(counts, e[0], neutral)?;
        Ok(vec![kind.combine(b, x.dtype, e[1], element)?])
    })?;
    Ok(Operand::value(x.dtype, x.shape.clone(), results[0]))
}

/// The index from the other end where the order is reversed.
fn from_end<'c>(b: &mut Builder<'c>, at: Value<'c>, size: Value<'c>, reverse: bool) -> Result<Value<'c>, Failure> {
    if !reverse {
        return Ok(at);
    }
    let one = b.int(at.ty(), 1);
    let last = b.binary(ops::arith::SUBI, size, one)?;
    b.binary(ops::arith::SUBI, last, at)
}

fn doubled<'c>(b: &mut Builder<'c>, x: &Operand<'c>, kind: Kind) -> Result<Operand<'c>, Failure> {
    let (source, size) = (b.value(x)?, b.index(&x.shape[1])?);
    let mut sums = x.clone();
    if kind.exclusive || kind.reverse {
        sums = b.computed(x.dtype, &x.shape, |b, at| {
            let (zero, one) = (b.int(size.ty(), 0), b.int(size.ty(), 1));
            if !kind.exclusive {
                let place = from_end(b, at[1], size, kind.reverse)?;
                return b.read(source, &[at[0], place, at[2]]);
            }
            let before = b.binary(ops::arith::SUBI, at[1], one)?;
            let inside = b.binary(ops::arith::MAXSI, before, zero)?;
            let place = from_end(b, inside, size, kind.reverse)?;
            let element = b.read(source, &[at[0], place, at[2]])?;
            let neutral = b.number(element.ty(), kind.neutral());
            let is_first = b.compare(CmpI::Eq, at[1], zero)?;
            b.select(is_first, neutral, element)
        })?;
    }
    sums = match x.shape[1].as_constant() {
        Some(n) => {
            let mut by = 1;
            while by < n {
                let distance = b.int(size.ty(), by);
                sums = step(b, &sums, distance, kind)?;
                by *= 2;
            }
            sums
        }
        None => doublings(b, &sums, size, kind)?,
    };
    if !kind.reverse {
        return Ok(sums);
    }
    let source = b.value(&sums)?;
    b.computed(x.dtype, &x.shape, |b, at| {
        let place = from_end(b, at[1], size, true)?;
        b.read(source, &[at[0], place, at[2]])
    })
}

/// Every element combined with the one at a distance before it.
fn step<'c>(b: &mut Builder<'c>, x: &Operand<'c>, by: Value<'c>, kind: Kind) -> Result<Operand<'c>, Failure> {
    let (source, out) = (b.value(x)?, b.empty(x.dtype, &x.shape)?);
    let op = Structured {
        loops: vec![LoopKind::Parallel; 3],
        inputs: vec![(source, structured::identity(3))],
        outputs: vec![(out, structured::identity(3))],
    };
    let value = b.structured(&op, |b, e| {
        let (row, at, column) = (b.loop_index(0)?, b.loop_index(1)?, b.loop_index(2)?);
        let zero = b.int(at.ty(), 0);
        let before = b.binary(ops::arith::SUBI, at, by)?;
        let is_first = b.compare(CmpI::Slt, before, zero)?;
        let place = b.binary(ops::arith::MAXSI, before, zero)?;
        let other = b.read(source, &[row, place, column])?;
        let sum = kind.combine(b, x.dtype, other, e[0])?;
        Ok(vec![b.select(is_first, e[0], sum)?])
    })?[0];
    Ok(Operand::value(x.dtype, x.shape.clone(), value))
}

/// The steps of a dimension of a size that is known at run time.
fn doublings<'c>(b: &mut Builder<'c>, x: &Operand<'c>, size: Value<'c>, kind: Kind) -> Result<Operand<'c>, Failure> {
    let index = Type::index(b.context());
    let (zero, one) = (b.int(index, 0), b.int(index, 1));
    let mut count = zero;
    for k in 0..MAX_DOUBLINGS {
        let by = b.int(index, 1 << k);
        let is_more = b.compare(CmpI::Sgt, size, by)?;
        let more = b.int(index, k + 1);
        count = b.select(is_more, more, count)?;
    }
    let (first, loc) = (b.value(x)?, b.loc);
    let block = Block::new(&[(index, loc), (first.ty(), loc)]);
    let region = Region::new();
    region.append(block);
    b.inside(InsertionPoint::End(block), |b| {
        let arguments = block.args();
        let by = b.binary(ops::arith::SHLI, one, arguments[0])?;
        let sums = Operand::value(x.dtype, x.shape.clone(), arguments[1]);
        let sums = step(b, &sums, by, kind)?;
        let value = b.value(&sums)?;
        b.create(OpSpec::new(ops::scf::YIELD, loc).operands(&[value]))
    })?;
    let spec =
        OpSpec::new(ops::scf::FOR, loc).operands(&[zero, count, one, first]).results(&[first.ty()]).region(region);
    let value = b.create(spec)?.result(0);
    Ok(Operand::value(x.dtype, x.shape.clone(), value))
}

/// The sums of a vector of integers, each with the elements before it.
pub(super) fn running_sum<'c>(b: &mut Builder<'c>, x: &Operand<'c>) -> Result<Operand<'c>, Failure> {
    let one = Dim::constant(1);
    let apart = b.reshaped(x, &[one.clone(), x.shape[0].clone(), one])?;
    let kind = Kind { product: false, exclusive: false, reverse: false };
    let sums = cumulative(b, &apart, kind)?;
    b.reshaped(&sums, &x.shape)
}

/// In a body: the first position of a sorted vector whose element is not less, found by halving; its size if there is none.
///
/// `less` tells whether the element at a position is less.
pub(super) fn lower_bound<'c>(
    b: &mut Builder<'c>,
    size: &Dim,
    less: impl Fn(&mut Builder<'c>, Value<'c>) -> Result<Value<'c>, Failure>,
) -> Result<Value<'c>, Failure> {
    let count = b.index(size)?;
    let (zero, one) = (b.int(count.ty(), 0), b.int(count.ty(), 1));
    let last = b.binary(ops::arith::SUBI, count, one)?;
    let most = size.as_constant().unwrap_or((1 << MAX_DOUBLINGS) - 1).max(1);
    let mut found = zero;
    for k in (0..=most.ilog2()).rev() {
        let by = b.int(count.ty(), 1 << k);
        let next = b.binary(ops::arith::ADDI, found, by)?;
        let probe = b.binary(ops::arith::SUBI, next, one)?;
        let inside = b.binary(ops::arith::MINSI, probe, last)?;
        let is_less = less(b, inside)?;
        let fits = b.compare(CmpI::Sle, next, count)?;
        let moves = b.binary(ops::arith::ANDI, is_less, fits)?;
        found = b.select(moves, next, found)?;
    }
    Ok(found)
}

/// The positions of the set flags of a vector of i32, and their number, which is read at run time.
pub(super) fn set_positions<'c>(b: &mut Builder<'c>, flags: &Operand<'c>) -> Result<Operand<'c>, Failure> {
    let total = b.reduce(flags, &[0], (DataType::I32, 0.0), |b, e, sum| b.binary(ops::arith::ADDI, sum, e))?;
    let total = b.value(&total)?;
    let (count, index) = (b.read(total, &[])?, Type::index(b.context()));
    let count = b.op(ops::arith::INDEX_CAST, &[count], index)?;
    let count = b.new_symbol(count);
    let sums = running_sum(b, flags)?;
    let sums = b.value(&sums)?;
    b.computed(DataType::I32, &[count], |b, at| {
        let int = Type::integer(b.context(), 32);
        let at = b.op(ops::arith::INDEX_CAST, &[at[0]], int)?;
        let found = lower_bound(b, &flags.shape[0], |b, place| {
            // The element number `at` is the first behind more than `at` set flags.
            let sum = b.read(sums, &[place])?;
            b.compare(CmpI::Sle, sum, at)
        })?;
        b.op(ops::arith::INDEX_CAST, &[found], int)
    })
}
