//! Loops over the steps of a sequence.

use crate::onnx::operand::Operand;
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, Failure};
use monopour_ir::{Block, InsertionPoint, OpSpec, Region, Type, Value, ops};

/// An `scf.for` over the indices below `count`; `body` takes the index and the values so far, and returns those after it.
///
/// # Errors
/// What `body` returns.
pub(super) fn for_each<'c>(
    b: &mut Builder<'c>,
    count: &Dim,
    first: &[Value<'c>],
    body: impl FnOnce(&mut Builder<'c>, Value<'c>, &[Value<'c>]) -> Result<Vec<Value<'c>>, Failure>,
) -> Result<Vec<Value<'c>>, Failure> {
    let (index, loc) = (Type::index(b.context()), b.loc);
    let (zero, one) = (b.int(index, 0), b.int(index, 1));
    if count.is(1) {
        return body(b, zero, first);
    }
    let end = b.index(count)?;
    let mut arguments = vec![(index, loc)];
    arguments.extend(first.iter().map(|v| (v.ty(), loc)));
    let block = Block::new(&arguments);
    let region = Region::new();
    region.append(block);
    b.inside(InsertionPoint::End(block), |b| {
        let arguments = block.args();
        let results = body(b, arguments[0], &arguments[1..])?;
        b.create(OpSpec::new(ops::scf::YIELD, loc).operands(&results))
    })?;
    let types: Vec<Type> = first.iter().map(|v| v.ty()).collect();
    let spec = OpSpec::new(ops::scf::FOR, loc).operands(&[zero, end, one]).operands(first).results(&types);
    Ok(b.create(spec.region(region))?.results())
}

/// Whether a dimension has the indices of a range, as far as sizes are known.
fn has_range(x: &Operand, axis: usize, from: &Dim, size: &Dim) -> Result<(), Failure> {
    let whole = x.shape.get(axis).ok_or_else(|| format!("an operand of rank {} has no dimension {axis}", x.rank()))?;
    let beyond = from.add(size).sub(whole).as_constant().is_some_and(|n| n > 0);
    if beyond {
        return Err(format!("dimension {axis} of size {whole} has no {size} elements from {from} on").into());
    }
    Ok(())
}

/// The part of a tensor at one index of a dimension, without that dimension.
pub(super) fn at<'c>(b: &mut Builder<'c>, x: &Operand<'c>, axis: usize, index: &Dim) -> Result<Operand<'c>, Failure> {
    has_range(x, axis, index, &Dim::constant(1))?;
    let (mut first, mut shape) = (vec![Dim::default(); x.rank()], x.shape.clone());
    (first[axis], shape[axis]) = (index.clone(), Dim::constant(1));
    let part = b.slice(x, &first, &shape, &vec![1; x.rank()])?;
    shape.remove(axis);
    b.reshaped(&part, &shape)
}

/// A tensor with a part written at one index of a dimension, which the part lacks.
pub(super) fn with<'c>(
    b: &mut Builder<'c>,
    into: Value<'c>,
    part: &Operand<'c>,
    axis: usize,
    index: &Dim,
) -> Result<Value<'c>, Failure> {
    let (mut first, mut shape) = (vec![Dim::default(); part.rank() + 1], part.shape.clone());
    shape.insert(axis, Dim::constant(1));
    first[axis] = index.clone();
    let part = b.reshaped(part, &shape)?;
    b.insert(&part, into, &first)
}

/// `count` parts of a dimension, one after the other.
pub(super) fn parts<'c>(
    b: &mut Builder<'c>,
    x: &Operand<'c>,
    axis: usize,
    size: &Dim,
    count: i64,
) -> Result<Vec<Operand<'c>>, Failure> {
    (0..count).map(|part| range(b, x, axis, &size.times(part), size)).collect()
}

/// A range of a dimension.
///
/// # Errors
/// For one beyond the end.
pub(super) fn range<'c>(
    b: &mut Builder<'c>,
    x: &Operand<'c>,
    axis: usize,
    from: &Dim,
    size: &Dim,
) -> Result<Operand<'c>, Failure> {
    has_range(x, axis, from, size)?;
    if from.is(0) && x.shape[axis] == *size {
        return Ok(x.clone());
    }
    let (mut first, mut shape) = (vec![Dim::default(); x.rank()], x.shape.clone());
    (first[axis], shape[axis]) = (from.clone(), size.clone());
    b.slice(x, &first, &shape, &vec![1; x.rank()])
}
