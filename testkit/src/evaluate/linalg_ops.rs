//! linalg ops that are not structured loops: `softmax`, `pack`, `unpack`.

use super::scalar::{Scalar, dtype_of};
use super::{
    Datum, Interpreter, Result, advance, attr_int, element, filled, poison_of, position, set_element, undefined,
    unsupported,
};
use crate::host_tensor::{Data, HostTensor};
use monopour_ir::Op;
use monopour_ir::ops;
use monopour_ir::typed::linalg::Pack;
use std::rc::Rc;

/// The tiled dimensions of the plain tensor, and the order of the outer dimensions.
struct Layout {
    inner: Vec<usize>,
    outer: Vec<usize>,
}

impl Layout {
    fn of(op: Op, rank: usize) -> Result<Self> {
        let list = |name: &str| -> Option<Vec<usize>> {
            op.attr(name)?.as_ints()?.into_iter().map(|d| usize::try_from(d).ok().filter(|d| *d < rank)).collect()
        };
        let inner = list("inner_dims_pos").ok_or_else(|| unsupported(op.name(), op))?;
        let outer = list("outer_dims_perm").filter(|p| p.len() == rank).unwrap_or_else(|| (0..rank).collect());
        Ok(Self { inner, outer })
    }

    /// The plain index of a packed one.
    fn plain(&self, packed: &[i64], tiles: &[usize]) -> Vec<i64> {
        let mut index = vec![0; self.outer.len()];
        for (at, dim) in self.outer.iter().enumerate() {
            index[*dim] = packed[at];
        }
        for ((dim, tile), within) in self.inner.iter().zip(tiles).zip(&packed[self.outer.len()..]) {
            index[*dim] = index[*dim] * *tile as i64 + within;
        }
        index
    }
}

impl<'c> Interpreter<'c, '_> {
    pub(super) fn linalg_op(&mut self, op: Op<'c>) -> Result<Vec<Datum>> {
        let result = match op.name() {
            ops::linalg::SOFTMAX => self.softmax(op)?,
            ops::linalg::PACK => self.pack(op)?,
            ops::linalg::UNPACK => self.unpack(op)?,
            _ => return Err(unsupported(op.name(), op)),
        };
        self.tick(result.len() as u64)?;
        Ok(vec![Datum::Tensor(Rc::new(result))])
    }

    /// In f64; rounded once.
    fn softmax(&self, op: Op<'c>) -> Result<HostTensor> {
        let mut out = Rc::unwrap_or_clone(self.tensor(op, 0)?);
        let dim = usize::try_from(attr_int(op, "dimension")?).unwrap_or(usize::MAX);
        let (Some(extent), Data::Float(values)) = (out.shape.get(dim).copied(), &mut out.data) else {
            return Err(unsupported(ops::linalg::SOFTMAX, op));
        };
        let stride: usize = out.shape[dim + 1..].iter().product();
        for first in (0..values.len()).filter(|at| extent > 0 && (at / stride).is_multiple_of(extent)) {
            let line = || (0..extent).map(|i| first + i * stride);
            let top = line().map(|at| values[at]).fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = line().map(|at| (values[at] - top).exp()).sum();
            for at in line() {
                let value = Scalar::Float((values[at] - top).exp() / sum);
                values[at] = self.precision.round(op, value).float();
            }
        }
        Ok(out)
    }

    fn pack(&self, op: Op<'c>) -> Result<HostTensor> {
        let (source, dest) = (self.tensor(op, 0)?, self.tensor(op, 1)?);
        let rank = source.shape.len();
        let layout = Layout::of(op, rank)?;
        let tiles = dest.shape.get(rank..).unwrap_or_default().to_vec();
        let padding = match Pack::of(op).and_then(Pack::padding_position) {
            Some(position) => self.scalar(op, position)?,
            None => poison_of(dtype_of(op.result(0).ty()).ok_or_else(|| unsupported(op.name(), op))?),
        };
        let mut out = filled(dest.dtype, dest.shape.clone(), padding);
        for_each(&dest.shape, |at, index| {
            if let Some(from) = position(&source.shape, &layout.plain(index, &tiles)) {
                set_element(&mut out, at, element(&source, from));
            }
        });
        Ok(out)
    }

    fn unpack(&self, op: Op<'c>) -> Result<HostTensor> {
        let (source, dest) = (self.tensor(op, 0)?, self.tensor(op, 1)?);
        let rank = dest.shape.len();
        let layout = Layout::of(op, rank)?;
        let tiles = source.shape.get(rank..).unwrap_or_default().to_vec();
        let mut out = filled(dest.dtype, dest.shape.clone(), Scalar::Int(0));
        let mut written = 0;
        for_each(&source.shape, |at, index| {
            if let Some(to) = position(&dest.shape, &layout.plain(index, &tiles)) {
                set_element(&mut out, to, element(&source, at));
                written += 1;
            }
        });
        if written == out.len() { Ok(out) } else { Err(undefined("linalg.unpack of fewer elements", op)) }
    }
}

/// Calls `f` with each position of a shape and its multi-index.
fn for_each(shape: &[usize], mut f: impl FnMut(usize, &[i64])) {
    let mut index = vec![0; shape.len()];
    for at in 0..shape.iter().product() {
        f(at, &index);
        advance(&mut index, shape);
    }
}
