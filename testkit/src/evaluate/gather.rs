//! `tensor.gather` and `tensor.scatter`: slices of a tensor at coordinates from a tensor.

use super::scalar::{Scalar, bits_as, dtype_of};
use super::{
    Datum, Interpreter, Result, advance, element, filled, nearest, position, set_element, undefined, unsupported,
};
use crate::host_tensor::HostTensor;
use monopour_ir::Op;
use std::rc::Rc;

/// Iteration space of a gather or scatter: coordinates, then the elements of a slice.
struct Walk {
    at: Rc<HostTensor>,
    /// Dimensions of the source tensor that a coordinate indexes, in its order.
    named: Vec<usize>,
    /// Sizes of the dimensions of the coordinates, without the last.
    batch: Vec<usize>,
    /// Position in a slice of each dimension of the source; `None` for one that the slice drops.
    places: Vec<Option<usize>>,
}

impl Walk {
    fn of(op: Op, at: Rc<HostTensor>, name: &str, rank: usize, part_rank: usize) -> Result<Self> {
        let named = op.attr(name).and_then(|a| a.as_ints()).ok_or_else(|| unsupported(op.name(), op))?;
        let named: Vec<usize> = named.into_iter().filter_map(|d| usize::try_from(d).ok()).collect();
        let batch = at.shape[..at.shape.len() - 1].to_vec();
        let is_full = part_rank == batch.len() + rank;
        let mut next = 0;
        let mut place = |dim: usize| {
            (is_full || !named.contains(&dim)).then(|| {
                next += 1;
                next - 1
            })
        };
        let places = (0..rank).map(&mut place).collect();
        Ok(Self { at, named, batch, places })
    }

    /// The source index of an element of the small tensor.
    fn whole(&self, index: &[i64]) -> Vec<i64> {
        let (batch, slice) = index.split_at(self.batch.len());
        let coordinate = |part: usize| {
            let at = [batch, &[part as i64]].concat();
            position(&self.at.shape, &at).map_or(0, |p| element(&self.at, p).int())
        };
        let each = self.places.iter().enumerate().map(|(dim, place)| {
            let part = self.named.iter().position(|n| *n == dim);
            part.map_or_else(|| place.map_or(0, |p| slice[p]), coordinate)
        });
        each.collect()
    }
}

impl<'c> Interpreter<'c, '_> {
    /// A coordinate out of range is clamped.
    pub(super) fn gather_slices(&self, op: Op<'c>) -> Result<HostTensor> {
        let (source, at) = (self.tensor(op, 0)?, self.tensor(op, 1)?);
        let ty = op.result(0).ty().shape().ok_or_else(|| unsupported("an unranked gather", op))?;
        let walk = Walk::of(op, at, "gather_dims", source.shape.len(), ty.len())?;
        let mut shape = walk.batch.clone();
        for (dim, place) in walk.places.iter().enumerate() {
            if place.is_some() {
                shape.push(if walk.named.contains(&dim) { 1 } else { source.shape[dim] });
            }
        }
        let mut out = filled(source.dtype, shape.clone(), Scalar::Int(0));
        let mut index = vec![0i64; shape.len()];
        for place in 0..out.len() {
            set_element(&mut out, place, nearest(&source, &walk.whole(&index)));
            advance(&mut index, &shape);
        }
        Ok(out)
    }

    /// A coordinate out of range writes nothing; of several updates of an element the last one counts.
    pub(super) fn scatter_slices(&self, op: Op<'c>) -> Result<HostTensor> {
        let (part, at) = (self.tensor(op, 0)?, self.tensor(op, 2)?);
        let mut into = Rc::unwrap_or_clone(self.tensor(op, 1)?);
        let walk = Walk::of(op, at, "scatter_dims", into.shape.len(), part.shape.len())?;
        let mut index = vec![0i64; part.shape.len()];
        for place in 0..part.len() {
            if let Some(to) = position(&into.shape, &walk.whole(&index)) {
                set_element(&mut into, to, element(&part, place));
            }
            advance(&mut index, &part.shape);
        }
        Ok(into)
    }

    /// Bitcasts each element.
    pub(super) fn tensor_bitcast(&mut self, op: Op<'c>) -> Result<Vec<Datum>> {
        let source = self.tensor(op, 0)?;
        let dtype = dtype_of(op.result(0).ty()).ok_or_else(|| unsupported("a bitcast to this type", op))?;
        let mut out = filled(dtype, source.shape.clone(), Scalar::Int(0));
        for place in 0..out.len() {
            set_element(&mut out, place, bits_as(source.dtype, dtype, element(&source, place)));
        }
        Ok(vec![Datum::Tensor(Rc::new(out))])
    }

    /// `cf.assert`: a false condition ends the program.
    pub(super) fn assert(&self, op: Op<'c>) -> Result<Vec<Datum>> {
        if self.index(op, 0)? & 1 == 1 {
            return Ok(vec![]);
        }
        let message = op.attr("msg").and_then(|a| a.as_string().map(str::to_owned)).unwrap_or_default();
        Err(undefined(&format!("cf.assert \"{message}\""), op))
    }
}
