//! `func`: returns, and calls by what is known about the callee.

use monopour_ir::conversion::{ConversionRewriter, Declined};
use monopour_ir::{Diagnostics, Op, OpSpec, Value};

use crate::boundary::{Callees, callee_of};
use crate::buffer_type::{BufferTypes, is_cast_safe};
use crate::op_model::{AliasModel, Buffers, OpModel, OpModels, ReadModel, UseModel};
use crate::rewrite::Rewriting;

pub(super) fn add(models: &mut OpModels) {
    models.add("func.return", Return);
    models.add("func.call", Call);
}

struct Return;

impl OpModel for Return {
    fn use_of(&self, _op: Op, _operand: usize, _callees: &Callees) -> UseModel {
        UseModel::READ
    }
    fn aliases(&self, _op: Op, _operand: usize, _callees: &Callees) -> Vec<AliasModel> {
        vec![]
    }
    fn rewrite(
        &self,
        op: Op,
        buffers: &Buffers<'_>,
        rw: &mut ConversionRewriter,
        pass: &Rewriting<'_>,
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
    fn use_of(&self, op: Op, operand: usize, callees: &Callees) -> UseModel {
        let known = callee_of(op).and_then(|name| callees.argument(&name, operand).cloned());
        let Some(known) = known else { return UseModel::READ_WRITE };
        let reads = if known.read { ReadModel::Yes } else { ReadModel::No };
        UseModel { reads, writes: known.written, ..UseModel::NONE }
    }
    fn aliases(&self, op: Op, operand: usize, callees: &Callees) -> Vec<AliasModel> {
        let known = callee_of(op).and_then(|name| callees.argument(&name, operand).cloned());
        let tensors = |i: &usize| op.results().get(*i).is_some_and(|r| r.ty().is_tensor());
        let Some(known) = known else {
            return (0..op.num_results())
                .filter(tensors)
                .map(|i| AliasModel { definite: false, ..AliasModel::unknown(op.result(i)) })
                .collect();
        };
        if let Some(result) = known.equivalent.filter(tensors) {
            return vec![AliasModel::equivalent(op.result(result))];
        }
        known
            .aliases
            .iter()
            .filter(|i| tensors(i))
            .map(|i| AliasModel { definite: false, ..AliasModel::unknown(op.result(*i)) })
            .collect()
    }
    fn shared_results(&self, op: Op, callees: &Callees) -> Vec<(usize, usize)> {
        match callee_of(op).and_then(|name| callees.summary(&name)) {
            Some(known) => known.shared_results.clone(),
            // Nothing is known about a function that is not decided yet: recursion, or no body.
            None => {
                let tensors: Vec<_> = (0..op.num_results()).filter(|i| op.result(*i).ty().is_tensor()).collect();
                tensors.windows(2).map(|pair| (pair[0], pair[1])).collect()
            }
        }
    }
    fn is_result_writable(&self, op: Op, result: usize, callees: &Callees) -> bool {
        let name = callee_of(op).unwrap_or_default();
        match callees.summary(&name) {
            Some(known) => !known.frozen_results.contains(&result),
            // A function without a body returns what may be written, by agreement.
            None => callees.function(&name).is_none_or(|f| f.body().is_none()),
        }
    }
    fn copies_for_layout(&self, op: Op, operand: usize, types: &BufferTypes<'_>) -> bool {
        let callee = callee_of(op).and_then(|name| types.callees().function(&name));
        let wanted = callee.and_then(|f| types.signature(f).0.get(operand).copied());
        wanted.is_some_and(|ty| ty.is_memref() && !is_cast_safe(types.of(op.operand(operand)), ty))
    }
    fn buffer_types(&self, op: Op, types: &mut BufferTypes<'_>) -> Result<(), Diagnostics> {
        for (i, result) in op.results().into_iter().enumerate().filter(|(_, r)| r.ty().is_tensor()) {
            let ty = types.callee_result(op, i, result.ty());
            types.set(result, ty);
        }
        Ok(())
    }
    fn rewrite(
        &self,
        op: Op,
        buffers: &Buffers<'_>,
        rw: &mut ConversionRewriter,
        pass: &Rewriting<'_>,
    ) -> Result<(), Declined> {
        let callee = callee_of(op).and_then(|name| pass.types.callees().function(&name));
        let Some(callee) = callee else {
            return Err(pass.unsupported(op, "a call of a function of another module").into());
        };
        let inputs = pass.argument_types(callee);
        let mut operands: Vec<Value> = Vec::with_capacity(op.num_operands());
        for (i, ty) in inputs.into_iter().enumerate() {
            let value = buffers.operand(i);
            operands.push(if ty.is_memref() { pass.cast_or_copy(rw, op, value, ty)? } else { value });
        }
        let results: Vec<_> = op.results().into_iter().map(|r| pass.types.of(r)).collect();
        let attrs = op.attrs();
        let mut spec = OpSpec::new("func.call", op.location()).operands(&operands).results(&results);
        for (name, value) in &attrs {
            spec = spec.attr(name, *value);
        }
        let call = rw.create(spec)?;
        rw.replace_op(op, &call.results());
        Ok(())
    }
}
