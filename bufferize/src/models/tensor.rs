//! `tensor`: slices become subviews, inserts become copies into subviews, elements become loads and stores.

use monopour_ir::conversion::{ConversionRewriter, Declined};
use monopour_ir::ops;
use monopour_ir::{InsertionPoint, Op, OpSpec, Value};

use crate::boundary::Callees;
use crate::buffer_type::BufferTypes;
use crate::memref_types::subview_type;
use crate::op_model::{AliasModel, Buffers, Index, OpModel, OpModels, SubsetModel, UseModel};
use crate::rewriting::Rewriting;
use crate::slices::slice_of;

pub(super) fn add(models: &mut OpModels) {
    models.add(ops::tensor::EXTRACT_SLICE, ExtractSlice);
    models.add(ops::tensor::INSERT_SLICE, InsertSlice);
    models.add(ops::tensor::PARALLEL_INSERT_SLICE, ParallelInsertSlice);
    models.add(ops::tensor::EXTRACT, Extract);
    models.add(ops::tensor::INSERT, Insert);
    models.add(ops::tensor::DIM, Dim { to: ops::memref::DIM });
    models.add(ops::tensor::RANK, Dim { to: ops::memref::RANK });
}

struct ExtractSlice;

impl OpModel for ExtractSlice {
    fn use_of<'c>(&self, _op: Op<'c>, _operand: usize, _callees: &Callees<'c>) -> UseModel<'c> {
        UseModel::NONE
    }
    fn aliases<'c>(&self, op: Op<'c>, _operand: usize, _callees: &Callees<'c>) -> Vec<AliasModel<'c>> {
        vec![AliasModel::unknown(op.result(0))]
    }
    fn subset<'c>(&self, op: Op<'c>) -> Option<SubsetModel<'c>> {
        Some(SubsetModel::Extraction { container: 0, result: op.result(0), slice: slice_of(op)? })
    }
    fn buffer_types<'c>(&self, op: Op<'c>, types: &mut BufferTypes<'c, '_>) -> Result<(), monopour_ir::Diagnostics> {
        let shape = op.result(0).ty().shape().unwrap_or_default();
        if let (Some(source), Some(slice)) = (types.of(op.operand(0)).as_memref(), slice_of(op)) {
            types.set(op.result(0), subview_type(&source, &slice, &shape));
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
        let shape = op.result(0).ty().shape().unwrap_or_default();
        let Some(slice) = slice_of(op) else { return Err(pass.unsupported(op, "malformed offsets").into()) };
        let view = pass.subview(rw, op, buffers.operand(0), &slice, &shape)?;
        rw.replace_op(op, &[view]);
        Ok(())
    }
}

/// Whether an insert overwrites every element of its destination.
fn overwrites_everything(op: Op) -> bool {
    let (Some(slice), Some(shape)) = (slice_of(op), op.operand(1).ty().shape()) else { return false };
    slice.offsets.iter().all(|o| *o == Index::Static(0))
        && slice.strides.iter().all(|s| *s == Index::Static(1))
        && slice.sizes.iter().zip(&shape).all(|(size, dim)| *dim >= 0 && *size == Index::Static(*dim))
}

fn insert_use<'c>(op: Op<'c>, operand: usize) -> UseModel<'c> {
    match operand {
        0 => UseModel::READ,
        _ if overwrites_everything(op) => UseModel::WRITE,
        _ => UseModel::READ_WRITE,
    }
}

fn insertion<'c>(op: Op<'c>) -> Option<SubsetModel<'c>> {
    Some(SubsetModel::Insertion { source: Some(0), destination: 1, slice: Some(slice_of(op)?) })
}

/// A subview of the destination, and a copy into it unless the source already is that subview.
fn copy_into_slice<'c>(
    op: Op<'c>,
    buffers: &Buffers<'c, '_>,
    rw: &mut ConversionRewriter<'c>,
    pass: &Rewriting<'c, '_>,
) -> Result<(), Declined> {
    if pass.is_self_copy(op) {
        return Ok(());
    }
    let shape = op.operand(0).ty().shape().unwrap_or_default();
    let Some(slice) = slice_of(op) else { return Err(pass.unsupported(op, "malformed offsets").into()) };
    let view = pass.subview(rw, op, buffers.operand(1), &slice, &shape)?;
    pass.copy(rw, op, buffers.operand(0), view)?;
    Ok(())
}

struct InsertSlice;

impl OpModel for InsertSlice {
    fn use_of<'c>(&self, op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> UseModel<'c> {
        insert_use(op, operand)
    }
    fn aliases<'c>(&self, op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> Vec<AliasModel<'c>> {
        if operand == 1 { vec![AliasModel::equivalent(op.result(0))] } else { vec![] }
    }
    fn subset<'c>(&self, op: Op<'c>) -> Option<SubsetModel<'c>> {
        insertion(op)
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        copy_into_slice(op, buffers, rw, pass)?;
        rw.replace_op(op, &[buffers.operand(1)]);
        Ok(())
    }
}

struct ParallelInsertSlice;

/// The parent loop of a parallel insert, and the index of the written output.
fn written_output<'c>(op: Op<'c>) -> Option<(Op<'c>, usize)> {
    let (body, index) = op.operand(1).as_block_arg()?;
    let forall = body.parent_op()?;
    let first = body.num_args() - forall.num_results().min(body.num_args());
    Some((forall, index.checked_sub(first)?))
}

/// Whether a parallel insert overwrites every element of the loop's output, also with sizes by `tensor.dim` of the output.
fn overwrites_output(op: Op) -> bool {
    let (Some(slice), Some(shape)) = (slice_of(op), op.operand(1).ty().shape()) else { return false };
    let given = written_output(op).map(|(forall, i)| forall.operand(forall.num_operands() - forall.num_results() + i));
    let is_size = |value: Value, dim: usize| {
        let asked = value.defining_op().filter(|op| op.is(ops::tensor::DIM) && op.num_operands() == 2);
        asked.is_some_and(|asked| {
            let tensor = asked.operand(0);
            let number = asked.operand(1).constant_int().and_then(|n| usize::try_from(n).ok());
            number == Some(dim) && (tensor == op.operand(1) || Some(tensor) == given)
        })
    };
    slice.offsets.iter().all(|o| *o == Index::Static(0))
        && slice.strides.iter().all(|s| *s == Index::Static(1))
        && slice.sizes.iter().zip(shape).enumerate().all(|(dim, (size, extent))| match *size {
            Index::Static(size) => size == extent,
            Index::Dynamic(value) => is_size(value, dim),
        })
}

impl OpModel for ParallelInsertSlice {
    fn use_of<'c>(&self, op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> UseModel<'c> {
        match operand {
            0 => UseModel::READ,
            // The rest of the destination is kept, and the write would be lost in a copy.
            // (Upstream treats the rest as not needed: LLVM 22 writes an output in place though a part of it must be kept.)
            _ if overwrites_output(op) => UseModel { must_in_place: true, ..UseModel::WRITE },
            _ => UseModel { must_in_place: true, ..UseModel::READ_WRITE },
        }
    }
    fn aliases<'c>(&self, _op: Op<'c>, _operand: usize, _callees: &Callees<'c>) -> Vec<AliasModel<'c>> {
        vec![]
    }
    fn flows<'c>(&self, op: Op<'c>, operand: usize) -> Vec<Value<'c>> {
        written_output(op).filter(|_| operand == 1).map(|(forall, i)| forall.result(i)).into_iter().collect()
    }
    fn subset<'c>(&self, op: Op<'c>) -> Option<SubsetModel<'c>> {
        insertion(op)
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        // The terminator may hold only such inserts; the copy goes before it.
        if let Some(terminator) = op.parent() {
            rw.set_point(InsertionPoint::Before(terminator));
        }
        copy_into_slice(op, buffers, rw, pass)?;
        rw.replace_op(op, &[]);
        Ok(())
    }
}

struct Extract;

impl OpModel for Extract {
    super::only_reads!();
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        _pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let spec =
            OpSpec::new(ops::memref::LOAD, op.location()).operands(buffers.operands()).results(&[op.result(0).ty()]);
        let load = rw.create(spec)?;
        rw.replace_op(op, &[load.result(0)]);
        Ok(())
    }
}

struct Insert;

impl OpModel for Insert {
    fn use_of<'c>(&self, _op: Op<'c>, _operand: usize, _callees: &Callees<'c>) -> UseModel<'c> {
        UseModel::READ_WRITE
    }
    fn aliases<'c>(&self, op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> Vec<AliasModel<'c>> {
        if operand == 1 { vec![AliasModel::equivalent(op.result(0))] } else { vec![] }
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        _pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        rw.create(OpSpec::new(ops::memref::STORE, op.location()).operands(buffers.operands()))?;
        rw.replace_op(op, &[buffers.operand(1)]);
        Ok(())
    }
}

/// `tensor.dim` and `tensor.rank` read the shape only.
struct Dim {
    to: &'static str,
}

impl OpModel for Dim {
    super::no_uses!();
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        _pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let ty = op.result(0).ty();
        let dim = rw.create(OpSpec::new(self.to, op.location()).operands(buffers.operands()).results(&[ty]))?;
        rw.replace_op(op, &[dim.result(0)]);
        Ok(())
    }
}
