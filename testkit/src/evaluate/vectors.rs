//! The vector dialect on tensors: transfers, gather, scatter, masks. A vector is held as a tensor of its shape.

use super::{
    Datum, Interpreter, Result, Scalar, advance, element, element_count, filled, position, set_element, undefined,
    unsupported,
};
use crate::host_tensor::HostTensor;
use monopour_ir::ops;
use monopour_ir::typed::vector;
use monopour_ir::{AffineExprKind, AffineMap, Block, InsertionPoint, Module, Op, OpSpec, Region, Rewriter};
use std::rc::Rc;

/// Positions of a transferred vector's elements, per dimension of the vector.
struct Transfer {
    /// First index in the tensor.
    first: Vec<i64>,
    /// The dimension of the tensor that a dimension of the vector runs along; `None` repeats one element.
    along: Vec<Option<usize>>,
    in_bounds: Vec<bool>,
    mask: Option<Rc<HostTensor>>,
}

/// Puts a region around a value that is read and then written under a mask.
///
/// MLIR 22 folds a write of a whole tensor's read to that tensor, whatever the masks of the two, in every pass that rewrites
/// greedily, the generalisation of named ops included.
pub(super) fn keep_masks(module: &Module) -> Result<()> {
    let has_mask = |op: Op| {
        vector::Transfer::of(op).and_then(|t| t.mask_position()).is_some()
            || op.parent().is_some_and(|p| p.is(ops::vector::MASK))
    };
    for write in module.op().find_all(ops::vector::TRANSFER_WRITE) {
        let read = write.operand(0).defining_op().filter(|op| op.is(ops::vector::TRANSFER_READ));
        let Some(read) = read.filter(|read| has_mask(*read) || has_mask(write)) else { continue };
        let (mut rw, region, block) = (Rewriter::new(write.context()), Region::new(), Block::new(&[]));
        region.append(block);
        rw.set_point(InsertionPoint::After(read));
        let spec =
            OpSpec::new(ops::scf::EXECUTE_REGION, write.location()).results(&[read.result(0).ty()]).region(region);
        let around = rw.create(spec).map_err(|_| unsupported("a region around a read", write))?;
        rw.set_point(InsertionPoint::End(block));
        let inner = OpSpec::new(ops::scf::YIELD, write.location()).operands(&[read.result(0)]);
        rw.create(inner).map_err(|_| unsupported("a region around a read", write))?;
        rw.set_operand(write, 0, around.result(0));
    }
    Ok(())
}

impl<'c> Interpreter<'c, '_> {
    pub(super) fn vector_op(&mut self, op: Op<'c>) -> Result<Vec<Datum>> {
        let result = match op.name() {
            ops::vector::TRANSFER_READ => self.transfer_read(op)?,
            ops::vector::TRANSFER_WRITE => self.transfer_write(op)?,
            ops::vector::GATHER => self.gather(op)?,
            ops::vector::SCATTER => self.scatter(op)?,
            ops::vector::MASK => return self.masked(op),
            ops::vector::CREATE_MASK => {
                let sizes = (0..op.num_operands()).map(|i| self.index(op, i)).collect::<Result<Vec<_>>>()?;
                mask(op, &sizes)?
            }
            ops::vector::CONSTANT_MASK => {
                mask(op, &op.attr("mask_dim_sizes").and_then(|a| a.as_ints()).unwrap_or_default())?
            }
            ops::vector::BROADCAST if !op.operand(0).ty().is_vector() => {
                let value = self.scalar(op, 0)?;
                self.vector_of(op, |_| value)?
            }
            ops::vector::STEP => self.vector_of(op, |index| Scalar::Int(index[0]))?,
            ops::vector::EXTRACT if op.num_operands() == 1 => return self.extract_from_vector(op),
            _ => return Err(unsupported(op.name(), op)),
        };
        Ok(vec![Datum::Tensor(Rc::new(result))])
    }

    fn vector_of(&self, op: Op<'c>, value: impl Fn(&[i64]) -> Scalar) -> Result<HostTensor> {
        let mut out = empty_vector(op)?;
        for_each(&out.shape.clone(), |at, index| set_element(&mut out, at, value(index)));
        Ok(out)
    }

    fn transfer(&self, op: Op<'c>) -> Result<Transfer> {
        let transfer = vector::Transfer::of(op).ok_or_else(|| unsupported(op.name(), op))?;
        let first = transfer.index_positions().map(|i| self.index(op, i)).collect::<Result<Vec<_>>>()?;
        let along = transfer.permutation_map().and_then(along).ok_or_else(|| unsupported(op.name(), op))?;
        let in_bounds = transfer.in_bounds(along.len());
        let own = transfer.mask_position().map(|i| self.tensor(op, i)).transpose()?;
        Ok(Transfer { first, along, in_bounds, mask: own.or_else(|| self.mask.clone()) })
    }

    fn transfer_read(&mut self, op: Op<'c>) -> Result<HostTensor> {
        let (source, transfer) = (self.tensor(op, 0)?, self.transfer(op)?);
        let padding = self.scalar(op, 1 + transfer.first.len())?;
        let mut out = empty_vector(op)?;
        let shape = out.shape.clone();
        let mut outcome = Ok(());
        for_each(&shape, |at, index| {
            let value = match transfer.locate(op, &source.shape, index) {
                Ok(found) => found.map_or(padding, |from| element(&source, from)),
                Err(e) => return outcome = Err(e),
            };
            set_element(&mut out, at, value);
        });
        outcome.map(|()| out)
    }

    fn transfer_write(&mut self, op: Op<'c>) -> Result<HostTensor> {
        let (vector, transfer) = (self.tensor(op, 0)?, self.transfer(op)?);
        let mut into = Rc::unwrap_or_clone(self.tensor(op, 1)?);
        let shape = into.shape.clone();
        let mut outcome = Ok(());
        for_each(&vector.shape, |at, index| match transfer.locate(op, &shape, index) {
            Ok(Some(to)) => set_element(&mut into, to, element(&vector, at)),
            Ok(None) => {}
            Err(e) => outcome = Err(e),
        });
        outcome.map(|()| into)
    }

    /// Runs the masked op with this mask.
    fn masked(&mut self, op: Op<'c>) -> Result<Vec<Datum>> {
        let block = op.body().ok_or_else(|| unsupported("vector.mask without a body", op))?;
        if op.num_operands() != 1 || block.ops().len() > 2 {
            return Err(unsupported("vector.mask with a passthru or with several ops", op));
        }
        let outer = self.mask.replace(self.tensor(op, 0)?);
        let results = self.run_block(block, vec![]);
        self.mask = outer;
        Ok(results?.1)
    }

    fn gather(&self, op: Op<'c>) -> Result<HostTensor> {
        let base = self.tensor(op, 0)?;
        let operands = op.num_operands();
        let (which, mask) = (self.tensor(op, operands - 3)?, self.tensor(op, operands - 2)?);
        let mut out = Rc::unwrap_or_clone(self.tensor(op, operands - 1)?);
        for at in (0..which.len()).filter(|at| element(&mask, *at).int() & 1 == 1) {
            let from = self.scattered(op, &base.shape, element(&which, at).int(), 1)?;
            set_element(&mut out, at, element(&base, from));
        }
        Ok(out)
    }

    fn scatter(&self, op: Op<'c>) -> Result<HostTensor> {
        let mut base = Rc::unwrap_or_clone(self.tensor(op, 0)?);
        let operands = op.num_operands();
        let (which, mask) = (self.tensor(op, operands - 3)?, self.tensor(op, operands - 2)?);
        let values = self.tensor(op, operands - 1)?;
        for at in (0..which.len()).filter(|at| element(&mask, *at).int() & 1 == 1) {
            let to = self.scattered(op, &base.shape, element(&which, at).int(), 1)?;
            set_element(&mut base, to, element(&values, at));
        }
        Ok(base)
    }

    /// The offsets of gather and scatter are along the innermost dimension.
    fn scattered(&self, op: Op<'c>, shape: &[usize], offset: i64, first: usize) -> Result<usize> {
        let mut index = (first..first + shape.len()).map(|i| self.index(op, i)).collect::<Result<Vec<_>>>()?;
        if let Some(last) = index.last_mut() {
            *last += offset;
        }
        position(shape, &index).ok_or_else(|| undefined(op.name(), op))
    }

    fn extract_from_vector(&self, op: Op<'c>) -> Result<Vec<Datum>> {
        let at = op.attr("static_position").and_then(|a| a.as_ints()).unwrap_or_default();
        let vector = self.tensor(op, 0)?;
        if at.len() != vector.shape.len() {
            return Err(unsupported("vector.extract of a vector", op));
        }
        let at = position(&vector.shape, &at).ok_or_else(|| undefined(op.name(), op))?;
        Ok(vec![Datum::Scalar(element(&vector, at))])
    }
}

impl Transfer {
    /// Position of an element in the tensor; `None` for one that is masked or out of bounds.
    fn locate(&self, op: Op, shape: &[usize], index: &[i64]) -> Result<Option<usize>> {
        if !self.is_set(index) {
            return Ok(None);
        }
        let mut at = self.first.clone();
        for (dim, i) in self.along.iter().zip(index) {
            if let Some(dim) = dim {
                at[*dim] += i;
            }
        }
        let found = position(shape, &at);
        let checked = |(dim, free): (&Option<usize>, &bool)| {
            // `in_bounds` is a promise: leaving the tensor is undefined.
            dim.is_some_and(|d| *free && !(0..shape[d] as i64).contains(&at[d]))
        };
        if found.is_none() && self.along.iter().zip(&self.in_bounds).any(checked) {
            return Err(undefined("a transfer outside of its tensor", op));
        }
        Ok(found)
    }

    /// A mask has the transferred dimensions, in the order of the tensor.
    fn is_set(&self, index: &[i64]) -> bool {
        let Some(mask) = &self.mask else { return true };
        let mut dims: Vec<(usize, i64)> =
            self.along.iter().zip(index).filter_map(|(dim, i)| dim.map(|d| (d, *i))).collect();
        dims.sort_unstable();
        let at: Vec<i64> = dims.into_iter().map(|(_, i)| i).collect();
        position(&mask.shape, &at).is_some_and(|at| element(mask, at).int() & 1 == 1)
    }
}

fn along(map: AffineMap) -> Option<Vec<Option<usize>>> {
    map.results()
        .into_iter()
        .map(|e| match e.kind() {
            AffineExprKind::Dim(d) => Some(Some(d)),
            AffineExprKind::Constant(0) => Some(None),
            _ => None,
        })
        .collect()
}

fn empty_vector(op: Op) -> Result<HostTensor> {
    let ty = op.result(0).ty();
    let shape = ty.shape().ok_or_else(|| unsupported(op.name(), op))?;
    let dtype = super::dtype_of(ty).ok_or_else(|| unsupported(op.name(), op))?;
    Ok(filled(dtype, super::checked_shape(op, &shape)?, Scalar::Int(0)))
}

fn mask(op: Op, sizes: &[i64]) -> Result<HostTensor> {
    let mut out = empty_vector(op)?;
    let shape = out.shape.clone();
    for_each(&shape, |at, index| {
        let inside = index.iter().zip(sizes).all(|(i, size)| i < size);
        set_element(&mut out, at, Scalar::Int(i64::from(inside)));
    });
    Ok(out)
}

fn for_each(shape: &[usize], mut f: impl FnMut(usize, &[i64])) {
    let Ok(count) = element_count(shape) else { return };
    let mut index = vec![0; shape.len()];
    for at in 0..count {
        f(at, &index);
        advance(&mut index, shape);
    }
}
