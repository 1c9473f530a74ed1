//! `shape`: an assumption hands on the buffers that its body yields.

use monopour_ir::conversion::{ConversionRewriter, Declined};
use monopour_ir::{Diagnostics, Op, Type};

use super::no_uses;
use crate::boundary::Callees;
use crate::buffer_type::BufferTypes;
use crate::op_model::{AliasModel, Buffers, OpModel, OpModels, UseModel};
use crate::rewriting::Rewriting;

pub(super) fn add(models: &mut OpModels) {
    models.add("shape.assuming", Assuming);
    models.add("shape.assuming_yield", AssumingYield);
}

struct Assuming;

impl OpModel for Assuming {
    no_uses!();
    fn buffer_types(&self, op: Op, types: &mut BufferTypes<'_>) -> Result<(), Diagnostics> {
        let Some(body) = op.body() else { return Ok(()) };
        types.walk(body)?;
        let yielded = body.terminator().map(Op::operands).unwrap_or_default();
        for (result, value) in op.results().into_iter().zip(yielded).filter(|(r, _)| r.ty().is_tensor()) {
            let ty = types.of(value);
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
        let results: Vec<Type> = op.results().into_iter().map(|r| pass.types.of(r)).collect();
        let new = pass.recreate(rw, op, buffers.operands(), &results)?;
        rw.replace_op(op, &new.results());
        Ok(())
    }
}

struct AssumingYield;

impl OpModel for AssumingYield {
    fn use_of(&self, _op: Op, _operand: usize, _callees: &Callees) -> UseModel {
        UseModel { must_in_place: true, ..UseModel::READ }
    }
    fn aliases(&self, op: Op, operand: usize, _callees: &Callees) -> Vec<AliasModel> {
        let parent = op.parent().filter(|p| operand < p.num_results());
        parent.map(|p| AliasModel::equivalent(p.result(operand))).into_iter().collect()
    }
    fn rewrite(
        &self,
        op: Op,
        buffers: &Buffers<'_>,
        rw: &mut ConversionRewriter,
        _pass: &Rewriting<'_>,
    ) -> Result<(), Declined> {
        rw.set_operands(op, buffers.operands());
        Ok(())
    }
}
