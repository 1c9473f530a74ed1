//! The tensor dialect, and the bufferization ops on tensors.

use super::body::Body;
use super::scalar::{Scalar, dtype_of};
use super::{
    Datum, Interpreter, Result, advance, checked_shape, element, element_count, filled, int, nearest, poison_of,
    position, set_element, strides_of, undefined, unsupported,
};
use crate::host_tensor::{Data, Dtype, HostTensor};
use monopour_ir::ops;
use monopour_ir::typed::bufferization::AllocTensor;
use monopour_ir::{Block, DYNAMIC, Op};
use std::rc::Rc;

impl<'c> Interpreter<'c, '_> {
    pub(super) fn tensor_op(&mut self, op: Op<'c>) -> Result<Vec<Datum>> {
        let result = match op.name() {
            ops::tensor::EMPTY => self.empty(op, 0)?,
            ops::bufferization::ALLOC_TENSOR => self.alloc_tensor(op)?,
            ops::bufferization::MATERIALIZE_IN_DESTINATION if op.num_results() == 1 => {
                return Ok(vec![self.operand(op, 0)?]);
            }
            ops::tensor::CAST => return self.cast(op),
            ops::tensor::BITCAST => {
                let tensor = self.tensor(op, 0)?;
                let dtype = dtype_of(op.result(0).ty()).ok_or_else(|| unsupported("its element type", op))?;
                HostTensor::from_bytes(dtype, &tensor.shape, &tensor.to_bytes())
                    .ok_or_else(|| undefined("tensor.bitcast to another width", op))?
            }
            ops::tensor::DIM => {
                let (tensor, dim) = (self.tensor(op, 0)?, self.index(op, 1)?);
                let size = usize::try_from(dim).ok().and_then(|d| tensor.shape.get(d));
                return Ok(vec![int(*size.ok_or_else(|| undefined("tensor.dim out of range", op))? as i64)]);
            }
            ops::tensor::RANK => return Ok(vec![int(self.tensor(op, 0)?.shape.len() as i64)]),
            ops::tensor::EXTRACT => {
                let (tensor, index) = (self.tensor(op, 0)?, self.indices_from(op, 1)?);
                if !self.indices.is_empty() {
                    return Ok(vec![Datum::Scalar(nearest(&tensor, &index))]);
                }
                let at = position(&tensor.shape, &index).ok_or_else(|| undefined("tensor.extract out of range", op))?;
                return Ok(vec![Datum::Scalar(element(&tensor, at))]);
            }
            ops::tensor::INSERT => self.insert(op)?,
            ops::tensor::FROM_ELEMENTS => self.elements(op)?,
            ops::tensor::SPLAT => {
                let (dtype, shape) = self.result_shape(op, 1)?;
                filled(dtype, shape, self.scalar(op, 0)?)
            }
            ops::tensor::EXTRACT_SLICE => self.extract_slice(op)?,
            ops::tensor::INSERT_SLICE => {
                let mut into = Rc::unwrap_or_clone(self.tensor(op, 1)?);
                Slice::of(self, op, 2)?.insert(op, &*self.tensor(op, 0)?, &mut into)?;
                into
            }
            ops::tensor::COLLAPSE_SHAPE | ops::tensor::EXPAND_SHAPE | ops::tensor::RESHAPE => self.reshape(op)?,
            ops::tensor::CONCAT => self.concat(op)?,
            ops::tensor::GATHER => self.gather_slices(op)?,
            ops::tensor::SCATTER => self.scatter_slices(op)?,
            ops::tensor::PAD => self.pad(op)?,
            ops::tensor::GENERATE => {
                let (dtype, shape) = self.result_shape(op, 0)?;
                self.generate(op, filled(dtype, shape, Scalar::Int(0)), |_| true)?
            }
            _ => return Err(unsupported(op.name(), op)),
        };
        Ok(vec![Datum::Tensor(Rc::new(result))])
    }

    fn indices_from(&self, op: Op<'c>, first: usize) -> Result<Vec<i64>> {
        (first..op.num_operands()).map(|i| self.index(op, i)).collect()
    }

    /// Type and shape of the result, dynamic sizes read from the operands that start at `next`.
    fn result_shape(&self, op: Op<'c>, mut next: usize) -> Result<(Dtype, Vec<usize>)> {
        let ty = op.result(0).ty();
        let dtype = dtype_of(ty).ok_or_else(|| unsupported(&format!("type {ty}"), op))?;
        let shape = ty.shape().ok_or_else(|| unsupported(&format!("type {ty}"), op))?;
        Ok((dtype, checked_shape(op, &self.mixed(op, &shape, &mut next)?)?))
    }

    fn empty(&self, op: Op<'c>, sizes: usize) -> Result<HostTensor> {
        let (dtype, shape) = self.result_shape(op, sizes)?;
        Ok(filled(dtype, shape, poison_of(dtype)))
    }

    fn alloc_tensor(&self, op: Op<'c>) -> Result<HostTensor> {
        match AllocTensor::of(op).and_then(AllocTensor::copy_position) {
            Some(copied) => Ok(Rc::unwrap_or_clone(self.tensor(op, copied)?)),
            None => self.empty(op, 0),
        }
    }

    fn cast(&self, op: Op<'c>) -> Result<Vec<Datum>> {
        let tensor = self.tensor(op, 0)?;
        let shape = op.result(0).ty().shape().unwrap_or_else(|| tensor.shape.iter().map(|d| *d as i64).collect());
        let fits = shape.len() == tensor.shape.len()
            && shape.iter().zip(&tensor.shape).all(|(a, b)| *a == DYNAMIC || *a == *b as i64);
        if fits { Ok(vec![Datum::Tensor(tensor)]) } else { Err(undefined("tensor.cast to another shape", op)) }
    }

    fn insert(&self, op: Op<'c>) -> Result<HostTensor> {
        let mut into = Rc::unwrap_or_clone(self.tensor(op, 1)?);
        let at = position(&into.shape, &self.indices_from(op, 2)?)
            .ok_or_else(|| undefined("tensor.insert out of range", op))?;
        set_element(&mut into, at, self.scalar(op, 0)?);
        Ok(into)
    }

    fn elements(&self, op: Op<'c>) -> Result<HostTensor> {
        let (dtype, shape) = self.result_shape(op, op.num_operands())?;
        let mut out = filled(dtype, shape, Scalar::Int(0));
        for i in 0..op.num_operands().min(out.len()) {
            set_element(&mut out, i, self.scalar(op, i)?);
        }
        Ok(out)
    }

    fn extract_slice(&self, op: Op<'c>) -> Result<HostTensor> {
        let source = self.tensor(op, 0)?;
        let slice = Slice::of(self, op, 1)?;
        let positions = slice.positions(op, &source.shape)?;
        let data = match &source.data {
            Data::Float(v) => Data::Float(positions.iter().map(|p| v[*p]).collect()),
            Data::Int(v) => Data::Int(positions.iter().map(|p| v[*p]).collect()),
        };
        let ty = op.result(0).ty().shape().ok_or_else(|| unsupported("an unranked slice", op))?;
        Ok(HostTensor { dtype: source.dtype, shape: reduce_rank(op, &slice.sizes, &ty)?, data })
    }

    fn reshape(&self, op: Op<'c>) -> Result<HostTensor> {
        let source = self.tensor(op, 0)?;
        let ty = op.result(0).ty().shape().ok_or_else(|| unsupported("an unranked reshape", op))?;
        let shape = match op.name() {
            ops::tensor::RESHAPE => self.tensor(op, 1)?.to_f64().iter().map(|v| *v as i64).collect(),
            ops::tensor::EXPAND_SHAPE => {
                self.mixed(op, &op.attr("static_output_shape").and_then(|a| a.as_ints()).unwrap_or(ty), &mut 1)?
            }
            _ => collapsed(op, &source.shape)?,
        };
        let shape = checked_shape(op, &shape)?;
        if shape.iter().product::<usize>() != source.len() {
            return Err(undefined("a reshape to another number of elements", op));
        }
        Ok(HostTensor { dtype: source.dtype, shape, data: source.data.clone() })
    }

    fn concat(&self, op: Op<'c>) -> Result<HostTensor> {
        let dim = super::attr_int(op, "dim")? as usize;
        let parts = (0..op.num_operands()).map(|i| self.tensor(op, i)).collect::<Result<Vec<_>>>()?;
        let first =
            parts.first().filter(|p| dim < p.shape.len()).ok_or_else(|| unsupported(ops::tensor::CONCAT, op))?;
        let mut shape = first.shape.clone();
        shape[dim] = parts.iter().map(|p| p.shape.get(dim).copied().unwrap_or(0)).sum();
        element_count(&shape)?;
        let mut out = filled(first.dtype, shape, Scalar::Int(0));
        let mut offset = 0;
        for part in &parts {
            let mut offsets = vec![0; part.shape.len()];
            offsets[dim] = offset;
            offset += part.shape[dim] as i64;
            let slice = Slice {
                offsets,
                sizes: part.shape.iter().map(|d| *d as i64).collect(),
                strides: vec![1; part.shape.len()],
            };
            slice.insert(op, part, &mut out)?;
        }
        Ok(out)
    }

    fn pad(&mut self, op: Op<'c>) -> Result<HostTensor> {
        let source = self.tensor(op, 0)?;
        let mut next = 1;
        let mut bounds = |name: &str| {
            let fixed = op.attr(name).and_then(|a| a.as_ints()).ok_or_else(|| unsupported(ops::tensor::PAD, op))?;
            self.mixed(op, &fixed, &mut next)
        };
        let (low, high) = (bounds("static_low")?, bounds("static_high")?);
        let sizes: Vec<i64> = source.shape.iter().map(|d| *d as i64).collect();
        let shape: Vec<i64> = sizes.iter().zip(&low).zip(&high).map(|((d, l), h)| d + l + h).collect();
        let out = filled(source.dtype, checked_shape(op, &shape)?, Scalar::Int(0));
        let inside = |index: &[i64]| index.iter().zip(&low).zip(&sizes).all(|((i, l), s)| (0..*s).contains(&(i - l)));
        let mut out = self.generate(op, out, |index| !inside(index))?;
        // A negative pad removes elements.
        let mut index = vec![0i64; source.shape.len()];
        for place in 0..source.len() {
            let to: Vec<i64> = index.iter().zip(&low).map(|(i, low)| i + low).collect();
            if let Some(to) = position(&out.shape, &to) {
                set_element(&mut out, to, element(&source, place));
            }
            advance(&mut index, &source.shape);
        }
        Ok(out)
    }

    /// Sets the elements for which `wanted` holds to the op's body at their index.
    fn generate(&mut self, op: Op<'c>, mut out: HostTensor, wanted: impl Fn(&[i64]) -> bool) -> Result<HostTensor> {
        let block = op.body().ok_or_else(|| unsupported("an op without a body", op))?;
        if out.is_empty() {
            return Ok(out);
        }
        self.tick(out.len() as u64)?;
        let mut body = Body::compile(self, block);
        let shape = out.shape.clone();
        let mut index = vec![0i64; shape.len()];
        let mut at = 0;
        loop {
            if wanted(&index) {
                let value = match &mut body {
                    Some(body) => run_compiled(body, &index)?,
                    None => self.run_interpreted(op, block, &index)?,
                };
                set_element(&mut out, at, value);
            }
            at += 1;
            if !advance(&mut index, &shape) {
                return Ok(out);
            }
        }
    }

    fn run_interpreted(&mut self, op: Op<'c>, block: Block<'c>, index: &[i64]) -> Result<Scalar> {
        self.indices.push(index.to_vec());
        let yielded = self.run_block(block, index.iter().map(|i| int(*i)).collect());
        self.indices.pop();
        match yielded?.1.first() {
            Some(Datum::Scalar(s)) => Ok(*s),
            _ => Err(unsupported("a body that yields no scalar", op)),
        }
    }
}

fn run_compiled(body: &mut Body, index: &[i64]) -> Result<Scalar> {
    for (i, value) in index.iter().enumerate() {
        body.set(i, Scalar::Int(*value));
    }
    body.run(index).map_err(|at| undefined(at.name(), at))?;
    Ok(body.get(body.yields[0]))
}

/// Offsets, sizes and strides of a slice, one each per dimension of the big tensor.
pub(super) struct Slice {
    offsets: Vec<i64>,
    sizes: Vec<i64>,
    strides: Vec<i64>,
}

impl Slice {
    /// Reads the slice of an op whose dynamic operands start at `next`.
    pub(super) fn of(interpreter: &Interpreter<'_, '_>, op: Op, mut next: usize) -> Result<Self> {
        let mut part = |name: &str| {
            let fixed = op.attr(name).and_then(|a| a.as_ints()).ok_or_else(|| unsupported(op.name(), op))?;
            interpreter.mixed(op, &fixed, &mut next)
        };
        Ok(Self { offsets: part("static_offsets")?, sizes: part("static_sizes")?, strides: part("static_strides")? })
    }

    /// Row-major positions of the slice's elements in a tensor of `shape`.
    fn positions(&self, op: Op, shape: &[usize]) -> Result<Vec<usize>> {
        let sizes = checked_shape(op, &self.sizes)?;
        let mut out = Vec::with_capacity(element_count(&sizes)?);
        if sizes.contains(&0) {
            return Ok(out);
        }
        let ends = self.offsets.iter().zip(&self.sizes).zip(&self.strides).map(|((o, s), t)| o + (s - 1) * t);
        let outside = |i: i64, size: usize| i < 0 || i >= size as i64;
        if self.offsets.iter().zip(ends).zip(shape).any(|((o, e), s)| outside(*o, *s) || outside(e, *s)) {
            return Err(undefined(
                &format!("slice {:?} {:?} {:?} of {shape:?}", self.offsets, self.sizes, self.strides),
                op,
            ));
        }
        let strides: Vec<i64> = strides_of(shape).iter().zip(&self.strides).map(|(a, b)| *a as i64 * b).collect();
        let base: i64 = strides_of(shape).iter().zip(&self.offsets).map(|(a, b)| *a as i64 * b).sum();
        let mut index = vec![0i64; sizes.len()];
        loop {
            out.push((base + index.iter().zip(&strides).map(|(i, s)| i * s).sum::<i64>()) as usize);
            if !advance(&mut index, &sizes) {
                return Ok(out);
            }
        }
    }

    /// Writes `source` over the slice of `into`.
    pub(super) fn insert(&self, op: Op, source: &HostTensor, into: &mut HostTensor) -> Result<()> {
        let positions = self.positions(op, &into.shape)?;
        if positions.len() != source.len() {
            return Err(undefined(
                &format!("{} elements inserted in a slice of {}", source.len(), positions.len()),
                op,
            ));
        }
        for (from, to) in positions.into_iter().enumerate() {
            set_element(into, to, element(source, from));
        }
        Ok(())
    }
}

/// Drops unit dimensions until the shape fits the result type.
fn reduce_rank(op: Op, sizes: &[i64], ty: &[i64]) -> Result<Vec<usize>> {
    let mut kept = vec![];
    let mut wanted = ty.iter().peekable();
    for (i, size) in sizes.iter().enumerate() {
        let left = sizes.len() - i;
        let fits = wanted.peek().is_some_and(|w| **w == DYNAMIC || **w == *size);
        // A unit dimension is kept where it fits and no later one has to be dropped instead.
        if fits && (*size != 1 || wanted.len() <= left) {
            kept.push(*size);
            wanted.next();
        } else if *size != 1 {
            return Err(unsupported("a rank-reducing slice that drops a dimension", op));
        }
    }
    if wanted.next().is_some() {
        return Err(unsupported("a rank-reducing slice", op));
    }
    checked_shape(op, &kept)
}

fn collapsed(op: Op, shape: &[usize]) -> Result<Vec<i64>> {
    let groups = op.attr("reassociation").and_then(|a| a.as_array()).ok_or_else(|| unsupported(op.name(), op))?;
    let product =
        |group: Vec<i64>| group.iter().map(|d| shape.get(*d as usize).map(|s| *s as i64)).product::<Option<i64>>();
    groups.iter().map(|g| g.as_ints().and_then(product).ok_or_else(|| unsupported(op.name(), op))).collect()
}
