//! `bufferization`: explicit allocations and copies on tensors.

use monopour_analysis::facts::Definition;
use monopour_ir::conversion::{ConversionRewriter, Declined};
use monopour_ir::ops;
use monopour_ir::typed::bufferization;
use monopour_ir::{Diagnostic, Diagnostics, Op, Type, Value};

use crate::boundary::Callees;
use crate::buffer_type::BufferTypes;
use crate::op_model::{AliasModel, BufferInfo, Buffers, OpModel, OpModels, SubsetModel, UseModel};
use crate::options::Options;
use crate::rewriting::Rewriting;

pub(super) fn add(models: &mut OpModels) {
    models.add(ops::bufferization::ALLOC_TENSOR, AllocTensor);
    models.add(ops::bufferization::MATERIALIZE_IN_DESTINATION, Materialize);
    models.add(ops::bufferization::DEALLOC_TENSOR, DeallocTensor);
    models.add(ops::bufferization::TO_TENSOR, ToTensor);
    models.add(ops::bufferization::TO_BUFFER, ToBuffer);
}

/// The `copy` operand of an alloc_tensor.
pub(crate) fn copied_operand(op: Op) -> Option<usize> {
    bufferization::AllocTensor::of(op)?.copy_position()
}

struct AllocTensor;

impl AllocTensor {
    /// Row-major, in its own memory space; a copy is in that of its source.
    fn ty<'c>(op: Op<'c>, identity: Type<'c>, copied: Option<Type<'c>>) -> Type<'c> {
        let copied = || copied.and_then(|ty| ty.as_memref()).and_then(|memref| memref.memory_space);
        match (op.attr("memory_space").or_else(copied), identity.as_memref()) {
            (Some(space), Some(memref)) => Type::memref(&memref.shape, memref.element, Some(space)),
            _ => identity,
        }
    }
}

impl OpModel for AllocTensor {
    fn use_of<'c>(&self, op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> UseModel<'c> {
        UseModel::reading(copied_operand(op) == Some(operand))
    }
    fn aliases<'c>(&self, _op: Op<'c>, _operand: usize, _callees: &Callees<'c>) -> Vec<AliasModel<'c>> {
        vec![]
    }
    fn result(&self, op: Op, _result: usize) -> BufferInfo {
        let definition = if copied_operand(op).is_some() { Definition::Always } else { Definition::Never };
        BufferInfo { definition, allocates: true, ..BufferInfo::default() }
    }
    fn buffer_types<'c>(&self, op: Op<'c>, types: &mut BufferTypes<'c, '_>) -> Result<(), Diagnostics> {
        let copied = copied_operand(op).map(|i| types.of(op.operand(i)));
        let ty = Self::ty(op, types.identity(op.result(0).ty()), copied);
        types.set(op.result(0), ty);
        Ok(())
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        if op.result(0).is_unused() {
            rw.erase(op);
            return Ok(());
        }
        let ty = pass.types.of(op.result(0));
        let copied = copied_operand(op).map(|i| buffers.operand(i));
        let sizes: Vec<Value> = match copied {
            Some(source) => pass.dynamic_sizes(rw, op, source)?,
            None => {
                let count = ty.shape().unwrap_or_default().iter().filter(|d| **d == monopour_ir::DYNAMIC).count();
                op.operands()[..count.min(op.num_operands())].to_vec()
            }
        };
        let buffer = pass.alloc(rw, op, ty, &sizes)?;
        if let Some(source) = copied {
            pass.copy(rw, op, source, buffer)?;
        }
        rw.replace_op(op, &[buffer]);
        Ok(())
    }
}

/// Copies the source into the buffer of the destination, a tensor or a memref.
struct Materialize;

impl OpModel for Materialize {
    fn use_of<'c>(&self, _op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> UseModel<'c> {
        let used = if operand == 0 { UseModel::READ } else { UseModel::WRITE };
        UseModel { must_in_place: true, elementwise: true, ..used }
    }
    fn aliases<'c>(&self, op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> Vec<AliasModel<'c>> {
        if operand == 1 && op.num_results() == 1 { vec![AliasModel::equivalent(op.result(0))] } else { vec![] }
    }
    fn subset<'c>(&self, op: Op<'c>) -> Option<SubsetModel<'c>> {
        op.operand(1).ty().is_tensor().then_some(SubsetModel::Insertion {
            source: Some(0),
            destination: 1,
            slice: None,
        })
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        if op.operand(1).ty().is_memref() && op.attr("writable").is_none() {
            return Err(pass.unsupported(op, "a memref destination without 'writable'").into());
        }
        if !pass.is_self_copy(op) {
            pass.copy(rw, op, buffers.operand(0), buffers.operand(1))?;
        }
        let results: Vec<Value> = op.results().iter().map(|_| buffers.operand(1)).collect();
        rw.replace_op(op, &results);
        Ok(())
    }
}

struct DeallocTensor;

impl OpModel for DeallocTensor {
    super::no_uses!();
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        _pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        rw.create(monopour_ir::OpSpec::new(ops::memref::DEALLOC, op.location()).operands(&[buffers.operand(0)]))?;
        rw.replace_op(op, &[]);
        Ok(())
    }
}

/// A memref viewed as a tensor. It is a bridge already: the rewrite looks through it, and drops it when unused.
struct ToTensor;

impl OpModel for ToTensor {
    super::no_uses!();
    /// Upstream's analysis allows one tensor per buffer; `shared_memory` handles several.
    fn refuse(&self, op: Op, options: &Options) -> Option<Diagnostic> {
        if options.extensions || options.copy_before_write || op.attr("restrict").is_some() || op.result(0).is_unused()
        {
            return None;
        }
        let message =
            "'bufferization.to_tensor' op to_tensor ops without `restrict` are not supported by One-Shot Analysis";
        let help = "add 'restrict' if no other tensor is the same memory, or copy the memref before";
        Some(Diagnostic::error("B0122", op.location(), message).with_help(help))
    }
    fn result(&self, op: Op, _result: usize) -> BufferInfo {
        BufferInfo { writable: op.attr("writable").is_some(), ..BufferInfo::default() }
    }
    fn buffer_types<'c>(&self, op: Op<'c>, types: &mut BufferTypes<'c, '_>) -> Result<(), Diagnostics> {
        types.set(op.result(0), op.operand(0).ty());
        Ok(())
    }
    fn rewrite<'c>(
        &self,
        _op: Op<'c>,
        _buffers: &Buffers<'c, '_>,
        _rw: &mut ConversionRewriter<'c>,
        _pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        Ok(())
    }
}

/// A tensor's buffer. It is a bridge already: with a `to_tensor` before it, it is folded at the end.
struct ToBuffer;

impl OpModel for ToBuffer {
    fn use_of<'c>(&self, op: Op<'c>, _operand: usize, _callees: &Callees<'c>) -> UseModel<'c> {
        if op.attr("read_only").is_some() { UseModel::READ } else { UseModel::READ_WRITE }
    }
    fn aliases<'c>(&self, _op: Op<'c>, _operand: usize, _callees: &Callees<'c>) -> Vec<AliasModel<'c>> {
        vec![]
    }
    fn keeps_tensors(&self, _op: Op) -> bool {
        true
    }
    fn rewrite<'c>(
        &self,
        _op: Op<'c>,
        _buffers: &Buffers<'c, '_>,
        _rw: &mut ConversionRewriter<'c>,
        _pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        Ok(())
    }
}
