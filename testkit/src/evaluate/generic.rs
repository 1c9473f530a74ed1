//! `linalg.generic`: any affine maps, any body of scalar ops.

use super::body::Body;
use super::scalar::Scalar;
use super::{
    Datum, Interpreter, Result, advance, element, element_count, position, set_element, strides_of, undefined,
    unsupported,
};
use crate::host_tensor::{Data, HostTensor};
use monopour_ir::ops;
use monopour_ir::typed::linalg::Structured;
use monopour_ir::{AffineExprKind, AffineMap, LinearForm, Op};
use std::rc::Rc;

/// The access of an operand at an iteration.
enum Access<'c> {
    /// A scalar operand.
    Scalar(Scalar),
    /// A linear map: position = offset + sum of stride * iteration, bounds-checked once.
    Linear { tensor: usize, offset: i64, strides: Vec<i64> },
    /// A map with division or remainder, evaluated and checked at each iteration.
    Mapped { tensor: usize, map: AffineMap<'c> },
}

/// The operands of one op: inputs, then inits.
struct Operands<'c> {
    inputs: usize,
    tensors: Vec<Rc<HostTensor>>,
    outputs: Vec<HostTensor>,
    accesses: Vec<Access<'c>>,
}

impl<'c> Interpreter<'c, '_> {
    pub(super) fn generic(&mut self, op: Op<'c>) -> Result<Vec<Datum>> {
        let maps = indexing_maps(op)?;
        let inputs = Structured::of(op).ok_or_else(|| unsupported(ops::linalg::GENERIC, op))?.num_inputs();
        let data = self.contents(op)?;
        if maps.len() != data.len() {
            return Err(unsupported("linalg.generic without a map per operand", op));
        }
        let ranges = loop_ranges(op, &maps, &data)?;
        let count = element_count(&ranges).or_else(|_| checked_iterations(&ranges))?;
        self.tick(count as u64)?;
        let mut operands = Operands::new(op, data, &maps, &ranges, inputs, count)?;
        if count > 0 {
            self.iterate(op, &mut operands, &ranges)?;
        }
        if op.num_results() > 0 {
            return Ok(operands.outputs.into_iter().map(|t| Datum::Tensor(Rc::new(t))).collect());
        }
        for (position, output) in operands.outputs.iter().enumerate() {
            let view = self.memref(op, inputs + position)?;
            self.memory.write(op, &view, output)?;
        }
        Ok(vec![])
    }

    /// The operands; a memref as its contents.
    fn contents(&self, op: Op<'c>) -> Result<Vec<Datum>> {
        let read = |i: usize| match self.operand(op, i)? {
            Datum::MemRef(_) => self.tensor(op, i).map(Datum::Tensor),
            other => Ok(other),
        };
        (0..op.num_operands()).map(read).collect()
    }

    fn iterate(&mut self, op: Op<'c>, operands: &mut Operands<'c>, ranges: &[usize]) -> Result<()> {
        let block = op.body().ok_or_else(|| unsupported("linalg.generic without a body", op))?;
        let Some(mut body) = Body::compile(self, block) else {
            return self.iterate_interpreted(op, operands, ranges);
        };
        if multiply_add(&body, operands, ranges) {
            return Ok(());
        }
        let mut index = vec![0i64; ranges.len()];
        loop {
            for i in 0..operands.accesses.len() {
                body.set(i, operands.read(op, i, &index)?);
            }
            body.run(&index).map_err(|at| undefined(at.name(), at))?;
            for result in 0..operands.outputs.len() {
                let value = body.get(body.yields[result]);
                operands.write(op, result, &index, value)?;
            }
            if !advance(&mut index, ranges) {
                return Ok(());
            }
        }
    }

    /// The interpreter, for a body with regions.
    fn iterate_interpreted(&mut self, op: Op<'c>, operands: &mut Operands<'c>, ranges: &[usize]) -> Result<()> {
        let block = op.body().ok_or_else(|| unsupported("linalg.generic without a body", op))?;
        let mut index = vec![0i64; ranges.len()];
        loop {
            let arguments = (0..operands.accesses.len())
                .map(|i| operands.read(op, i, &index).map(Datum::Scalar))
                .collect::<Result<Vec<_>>>()?;
            self.indices.push(index.clone());
            let yielded = self.run_block(block, arguments);
            self.indices.pop();
            for (result, value) in yielded?.1.into_iter().enumerate() {
                let Datum::Scalar(value) = value else { return Err(unsupported("a body that yields a tensor", op)) };
                operands.write(op, result, &index, value)?;
            }
            if !advance(&mut index, ranges) {
                return Ok(());
            }
        }
    }
}

impl<'c> Operands<'c> {
    fn new(
        op: Op<'c>,
        data: Vec<Datum>,
        maps: &[AffineMap<'c>],
        ranges: &[usize],
        inputs: usize,
        count: usize,
    ) -> Result<Self> {
        let (mut tensors, mut outputs, mut accesses) = (vec![], vec![], vec![]);
        for (i, (datum, map)) in data.into_iter().zip(maps).enumerate() {
            let tensor = match datum {
                Datum::Scalar(s) if i < inputs => {
                    accesses.push(Access::Scalar(s));
                    continue;
                }
                Datum::Scalar(_) | Datum::MemRef(_) => return Err(unsupported("a scalar init", op)),
                Datum::Tensor(t) => t,
            };
            let slot = if i < inputs { tensors.len() } else { outputs.len() };
            accesses.push(access(op, slot, &tensor.shape, *map, ranges, count)?);
            if i < inputs { tensors.push(tensor) } else { outputs.push(Rc::unwrap_or_clone(tensor)) }
        }
        Ok(Self { inputs, tensors, outputs, accesses })
    }

    fn tensor(&self, operand: usize, slot: usize) -> &HostTensor {
        if operand < self.inputs { &self.tensors[slot] } else { &self.outputs[slot] }
    }

    fn read(&self, op: Op<'c>, operand: usize, index: &[i64]) -> Result<Scalar> {
        match &self.accesses[operand] {
            Access::Scalar(s) => Ok(*s),
            access => {
                let (slot, at) = self.locate(op, operand, access, index)?;
                Ok(element(self.tensor(operand, slot), at))
            }
        }
    }

    fn write(&mut self, op: Op<'c>, result: usize, index: &[i64], value: Scalar) -> Result<()> {
        let operand = self.inputs + result;
        let (slot, at) = self.locate(op, operand, &self.accesses[operand], index)?;
        set_element(&mut self.outputs[slot], at, value);
        Ok(())
    }

    fn locate(&self, op: Op<'c>, operand: usize, access: &Access<'c>, index: &[i64]) -> Result<(usize, usize)> {
        match access {
            Access::Linear { tensor, offset, strides } => {
                let at = offset + strides.iter().zip(index).map(|(s, i)| s * i).sum::<i64>();
                Ok((*tensor, at as usize))
            }
            Access::Mapped { tensor, map } => {
                let at = position(&self.tensor(operand, *tensor).shape, &map.eval(index, &[]));
                Ok((*tensor, at.ok_or_else(|| undefined("an access outside of an operand", op))?))
            }
            Access::Scalar(_) => Err(unsupported("a write to a scalar", op)),
        }
    }
}

/// The number of iterations: may exceed a tensor's elements, as in a matrix product; bounded by the step limit.
fn checked_iterations(ranges: &[usize]) -> Result<usize> {
    let count = ranges.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
    count.ok_or_else(|| super::EvalError::Limit(format!("{ranges:?} iterations")))
}

fn indexing_maps<'c>(op: Op<'c>) -> Result<Vec<AffineMap<'c>>> {
    let maps = op.attr("indexing_maps").and_then(|a| a.as_array());
    let maps = maps.and_then(|m| m.iter().map(|a| a.as_affine_map()).collect::<Option<Vec<_>>>());
    maps.ok_or_else(|| unsupported("linalg.generic without indexing maps", op))
}

/// Each dimension's range, from an operand dimension that it indexes alone.
fn loop_ranges(op: Op, maps: &[AffineMap], data: &[Datum]) -> Result<Vec<usize>> {
    let dims = maps.first().map_or(0, |m| m.num_dims());
    let mut ranges = vec![None; dims];
    for (map, datum) in maps.iter().zip(data) {
        let Datum::Tensor(tensor) = datum else { continue };
        for (expr, size) in map.results().into_iter().zip(&tensor.shape) {
            if let AffineExprKind::Dim(d) = expr.kind() {
                let range = ranges[d].get_or_insert(*size);
                if *range != *size {
                    return Err(undefined(&format!("dimension {d} is {range} and {size}"), op));
                }
            }
        }
    }
    ranges
        .into_iter()
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| unsupported("a dimension that no operand gives a range", op))
}

fn access<'c>(
    op: Op<'c>,
    tensor: usize,
    shape: &[usize],
    map: AffineMap<'c>,
    ranges: &[usize],
    count: usize,
) -> Result<Access<'c>> {
    let results = map.results();
    let linear = results.iter().map(|e| e.linear(ranges.len())).collect::<Option<Vec<_>>>();
    let Some(linear) = linear else { return Ok(Access::Mapped { tensor, map }) };
    let mut offset = 0i64;
    let mut strides = vec![0i64; ranges.len()];
    for ((LinearForm { factors, constant }, size), stride) in linear.iter().zip(shape).zip(strides_of(shape)) {
        let reach = |sign: i64| -> i64 {
            factors.iter().zip(ranges).map(|(c, r)| (c * sign).max(0) * sign * (*r as i64 - 1)).sum()
        };
        // A map that is out of bounds anywhere is an error, even for a masked element.
        if count > 0 && (constant + reach(-1) < 0 || constant + reach(1) >= *size as i64) {
            return Err(undefined("an access outside of an operand", op));
        }
        offset += constant * stride as i64;
        for (s, c) in strides.iter_mut().zip(factors) {
            *s += c * stride as i64;
        }
    }
    Ok(Access::Linear { tensor, offset, strides })
}

/// A fast path for contractions, without the register machine; returns whether it applied.
fn multiply_add<'c>(body: &Body<'c>, operands: &mut Operands<'c>, ranges: &[usize]) -> bool {
    let Some((a, b)) = body.as_multiply_add(operands.accesses.len()) else { return false };
    let acc = operands.accesses.len() - 1;
    let Operands { tensors, outputs, accesses, .. } = operands;
    let linear = |i: usize| {
        if let Access::Linear { tensor, offset, strides } = &accesses[i] {
            Some((*tensor, *offset, strides))
        } else {
            None
        }
    };
    let (Some((ta, oa, sa)), Some((tb, ob, sb)), Some((_, oc, sc))) = (linear(a), linear(b), linear(acc)) else {
        return false;
    };
    let [output] = outputs.as_mut_slice() else { return false };
    let (Data::Float(a), Data::Float(b), Data::Float(c)) = (&tensors[ta].data, &tensors[tb].data, &mut output.data)
    else {
        return false;
    };
    let Some((inner, outer)) = ranges.split_last() else { return false };
    let last = ranges.len() - 1;
    let step = (sa[last], sb[last], sc[last]);
    let mut index = vec![0i64; outer.len()];
    loop {
        let at = |offset: i64, strides: &[i64]| offset + strides.iter().zip(&index).map(|(s, i)| s * i).sum::<i64>();
        let (pa, pb, pc) = (at(oa, sa), at(ob, sb), at(oc, sc));
        for k in 0..*inner as i64 {
            c[(pc + k * step.2) as usize] += a[(pa + k * step.0) as usize] * b[(pb + k * step.1) as usize];
        }
        if !advance(&mut index, outer) {
            return true;
        }
    }
}
