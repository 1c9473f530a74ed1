//! `func`: returns, and calls by the summary of the callee.

use monopour_ir::conversion::{ConversionRewriter, Declined};
use monopour_ir::ops;
use monopour_ir::{Diagnostics, Op, OpSpec, Value};

use crate::boundary::Callees;
use crate::buffer_type::BufferTypes;
use crate::memref_types::is_cast_safe;
use crate::op_model::{AliasModel, Buffers, OpModel, OpModels, ReadModel, UseModel};
use crate::rewriting::Rewriting;

pub(super) fn add(models: &mut OpModels) {
    models.add(ops::func::RETURN, Return);
    models.add(ops::func::CALL, Call);
}

struct Return;

impl OpModel for Return {
    super::only_reads!();
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let function = op.parent().and_then(Op::function_type);
        let results = function.map(|(_, results)| results).unwrap_or_default();
        let mut values = Vec::with_capacity(op.num_operands());
        for (i, ty) in results.into_iter().enumerate() {
            let value = buffers.operand(i);
            values.push(if ty.is_memref() { pass.cast_or_copy(rw, op, value, ty)? } else { value });
        }
        rw.set_operands(op, &values);
        Ok(())
    }
}

struct Call;

impl OpModel for Call {
    fn use_of<'c>(&self, op: Op<'c>, operand: usize, callees: &Callees<'c>) -> UseModel<'c> {
        let Some(known) = callees.summary_of(op).and_then(|s| s.arguments.get(operand)) else {
            return UseModel::READ_WRITE;
        };
        let reads = if known.reads { ReadModel::Yes } else { ReadModel::No };
        UseModel { reads, writes: known.writes, ..UseModel::NONE }
    }
    fn aliases<'c>(&self, op: Op<'c>, operand: usize, callees: &Callees<'c>) -> Vec<AliasModel<'c>> {
        let alias = |result: usize| AliasModel { definite: false, ..AliasModel::unknown(op.result(result)) };
        let tensors = |i: &usize| *i < op.num_results() && op.result(*i).ty().is_tensor();
        let Some(known) = callees.summary_of(op) else {
            return (0..op.num_results()).filter(tensors).map(alias).collect();
        };
        let Some(argument) = known.arguments.get(operand) else { return vec![] };
        let results = argument.aliasing_results.iter().map(|r| *r as usize).filter(tensors);
        let is_equivalent = |result: usize| known.is_equivalent(number(operand), number(result));
        results.map(|r| if is_equivalent(r) { AliasModel::equivalent(op.result(r)) } else { alias(r) }).collect()
    }
    fn shared_results(&self, op: Op, callees: &Callees) -> Vec<(usize, usize)> {
        match callees.summary_of(op) {
            Some(known) => known.shared_results().map(|(a, b)| (a as usize, b as usize)).collect(),
            None => {
                let tensors: Vec<_> = (0..op.num_results()).filter(|i| op.result(*i).ty().is_tensor()).collect();
                tensors.windows(2).map(|pair| (pair[0], pair[1])).collect()
            }
        }
    }
    fn is_result_writable(&self, op: Op, result: usize, callees: &Callees) -> bool {
        callees.summary_of(op).is_some_and(|known| !known.read_only_results.contains(&number(result)))
    }
    fn copies_for_layout<'c>(&self, op: Op<'c>, operand: usize, types: &BufferTypes<'c, '_>) -> bool {
        let wanted = types.callees().callee(op).and_then(|f| types.signature(f).0.get(operand).copied());
        wanted.is_some_and(|ty| ty.is_memref() && !is_cast_safe(types.of(op.operand(operand)), ty))
    }
    fn buffer_types<'c>(&self, op: Op<'c>, types: &mut BufferTypes<'c, '_>) -> Result<(), Diagnostics> {
        for (i, result) in op.results().into_iter().enumerate().filter(|(_, r)| r.ty().is_tensor()) {
            let ty = types.callee_result(op, i, result.ty());
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
        let Some(callee) = pass.types.callees().callee(op) else {
            return Err(pass.unsupported(op, "a call of a function of another module").into());
        };
        let inputs = pass.argument_types(callee);
        let mut operands: Vec<Value> = Vec::with_capacity(op.num_operands());
        for (i, ty) in inputs.into_iter().enumerate() {
            let value = buffers.operand(i);
            operands.push(if ty.is_memref() { pass.cast_or_copy(rw, op, value, ty)? } else { value });
        }
        let results: Vec<_> = op.results().into_iter().map(|r| pass.types.of(r)).collect();
        let spec = OpSpec::new(ops::func::CALL, op.location()).operands(&operands).results(&results);
        let call = rw.create(spec.attrs(&op.attrs()))?;
        rw.replace_op(op, &call.results());
        Ok(())
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
