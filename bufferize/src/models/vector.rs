//! `vector`: transfers between tensors and vectors, and masks around them.

use monopour_ir::conversion::{ConversionRewriter, Declined};
use monopour_ir::ops;
use monopour_ir::{Op, Value};

use crate::boundary::Callees;
use crate::op_model::{AliasModel, Buffers, Index, OpModel, OpModels, ReadModel, SliceModel, SubsetModel, UseModel};
use crate::rewriting::Rewriting;

pub(super) fn add(models: &mut OpModels) {
    models.add(ops::vector::TRANSFER_READ, Load { base: 0 });
    models.add(ops::vector::GATHER, Load { base: 0 });
    models.add(ops::vector::LOAD, Load { base: 0 });
    models.add(ops::vector::TRANSFER_WRITE, TransferWrite);
    models.add(ops::vector::SCATTER, Scatter);
    models.add(ops::vector::MASK, Mask);
    models.add(ops::vector::YIELD, Yield);
}

/// Reads a tensor into a vector.
struct Load {
    base: usize,
}

impl OpModel for Load {
    fn use_of<'c>(&self, _op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> UseModel<'c> {
        UseModel::reading(operand == self.base)
    }
    fn aliases<'c>(&self, _op: Op<'c>, _operand: usize, _callees: &Callees<'c>) -> Vec<AliasModel<'c>> {
        vec![]
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        _pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let results: Vec<_> = op.results().iter().map(|r| r.ty()).collect();
        let new = rw.recreate(op, buffers.operands(), &results)?;
        rw.replace_op(op, &new.results());
        Ok(())
    }
}

struct TransferWrite;

fn is_masked(op: Op, rank: usize) -> bool {
    op.num_operands() != 2 + rank || op.parent().is_some_and(|p| p.is(ops::vector::MASK))
}

/// Whether the vector dimensions are the last ones, in order.
fn is_minor_identity(op: Op) -> bool {
    op.attr("permutation_map").and_then(|a| a.as_affine_map()).is_none_or(|map| {
        map.dim_positions().is_some_and(|p| p.iter().enumerate().all(|(i, d)| *d == i + map.num_dims() - p.len()))
    })
}

/// The slice that a transfer writes, if it writes all of it.
fn written<'c>(op: Op<'c>) -> Option<SliceModel<'c>> {
    let rank = op.operand(1).ty().shape()?.len();
    let vector = op.operand(0).ty().as_vector()?;
    if op.operand(0).ty().is_scalable_vector()
        || is_masked(op, rank)
        || !is_minor_identity(op)
        || vector.shape.len() > rank
    {
        return None;
    }
    let index = |v: &Value<'c>| v.constant_int().map_or(Index::Dynamic(*v), Index::Static);
    let offsets = op.operands()[2..].iter().map(index).collect();
    let lanes = vector.shape.iter().map(|n| Index::Static(*n));
    let sizes = std::iter::repeat_n(Index::Static(1), rank - vector.shape.len()).chain(lanes).collect();
    Some(SliceModel { offsets, sizes, strides: vec![Index::Static(1); rank] })
}

/// Whether every element of the destination is written: static shape, indices 0, no mask, the vector at least as large.
///
/// Differs: upstream ignores mask operands, and vectors of a lower rank, and loses the elements that they do not write.
fn writes_everything(op: Op) -> bool {
    let destination = op.operand(1).ty();
    let (Some(shape), Some(vector)) = (destination.shape(), op.operand(0).ty().as_vector()) else { return false };
    !is_masked(op, shape.len())
        && is_minor_identity(op)
        && shape.len() == vector.shape.len()
        && op.operands()[2..].iter().all(|index| index.constant_int() == Some(0))
        && shape.iter().zip(&vector.shape).all(|(size, lanes)| *size >= 0 && lanes >= size)
}

impl OpModel for TransferWrite {
    fn use_of<'c>(&self, op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> UseModel<'c> {
        if operand != 1 {
            return UseModel::READ;
        }
        let reads = if writes_everything(op) { ReadModel::No } else { ReadModel::Yes };
        UseModel { reads, ..UseModel::WRITE }
    }
    fn aliases<'c>(&self, op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> Vec<AliasModel<'c>> {
        if operand == 1 { vec![AliasModel::equivalent(op.result(0))] } else { vec![] }
    }
    fn subset<'c>(&self, op: Op<'c>) -> Option<SubsetModel<'c>> {
        Some(SubsetModel::Insertion { source: Some(0), destination: 1, slice: Some(written(op)?) })
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        _pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        rw.recreate(op, buffers.operands(), &[])?;
        rw.replace_op(op, &[buffers.operand(1)]);
        Ok(())
    }
}

/// Writes some elements of a tensor.
struct Scatter;

impl OpModel for Scatter {
    fn use_of<'c>(&self, _op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> UseModel<'c> {
        if operand == 0 { UseModel::READ_WRITE } else { UseModel::READ }
    }
    fn aliases<'c>(&self, op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> Vec<AliasModel<'c>> {
        op.results().into_iter().filter(|_| operand == 0).map(AliasModel::equivalent).collect()
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        _pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        rw.recreate(op, buffers.operands(), &[])?;
        rw.replace_op(op, &[buffers.operand(0)]);
        Ok(())
    }
}

/// `vector.mask`: its tensor results are the tensors that its body yields.
struct Mask;

impl OpModel for Mask {
    super::only_reads!();
    fn buffer_types<'c>(
        &self,
        op: Op<'c>,
        types: &mut crate::buffer_type::BufferTypes<'c, '_>,
    ) -> Result<(), monopour_ir::Diagnostics> {
        let Some(body) = op.body() else { return Ok(()) };
        types.walk(body)?;
        let yielded = body.terminator().map(Op::operands).unwrap_or_default();
        for (result, value) in op.results().into_iter().zip(yielded).filter(|(r, _)| r.ty().is_tensor()) {
            let ty = types.of(value);
            types.set(result, ty);
        }
        Ok(())
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let Some(body) = op.body() else { return Err(Declined::no_match("a mask without a body")) };
        // The body is not rewritten yet: a yielded tensor is the destination of the write in it, defined outside.
        let yielded = body.terminator().map(Op::operands).unwrap_or_default();
        let mut kept = Vec::new();
        let mut outside = Vec::new();
        for value in yielded {
            let destination =
                value.defining_op().filter(|w| w.is(ops::vector::TRANSFER_WRITE) && w.block() == Some(body));
            match destination {
                Some(write) if value.ty().is_tensor() => outside.push(Some(write.operand(1))),
                _ if value.ty().is_tensor() && value.block() == Some(body) => {
                    return Err(pass.unsupported(op, "a masked op that is not a transfer").into());
                }
                _ if value.ty().is_tensor() => outside.push(Some(value)),
                _ => {
                    outside.push(None);
                    kept.push(value.ty());
                }
            }
        }
        let new = rw.recreate(op, buffers.operands(), &kept)?;
        let mut vectors = new.results().into_iter();
        let mut replacements: Vec<Value> = Vec::with_capacity(op.num_results());
        for value in outside {
            replacements.push(match value {
                Some(tensor) => {
                    let value = rw.converted(tensor);
                    if value.ty().is_tensor() { rw.cast(value, pass.types.of(tensor)) } else { value }
                }
                None => vectors.next().expect("invariant: one kept result per yielded vector"),
            });
        }
        rw.replace_op(op, &replacements);
        Ok(())
    }
}

struct Yield;

impl OpModel for Yield {
    super::uses!(UseModel::TERMINATOR, op, operand => {
        let mask = op.parent().filter(|p| p.is(ops::vector::MASK));
        mask.and_then(|p| p.get_result(operand)).map(AliasModel::equivalent).into_iter().collect()
    });
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        _pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let kept: Vec<Value> =
            buffers.operands().iter().copied().filter(|v| !v.ty().is_memref() && !v.ty().is_tensor()).collect();
        rw.set_operands(op, &kept);
        Ok(())
    }
}
