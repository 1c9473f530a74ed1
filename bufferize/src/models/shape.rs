//! `shape`: the results of an assuming region are the yielded buffers.

use monopour_ir::conversion::{ConversionRewriter, Declined};
use monopour_ir::ops;
use monopour_ir::{Diagnostics, Op, Type};

use super::no_uses;
use crate::boundary::Callees;
use crate::buffer_type::BufferTypes;
use crate::op_model::{AliasModel, Buffers, OpModel, OpModels, UseModel};
use crate::rewriting::Rewriting;

pub(super) fn add(models: &mut OpModels) {
    models.add(ops::shape::ASSUMING, Assuming);
    models.add(ops::shape::ASSUMING_YIELD, AssumingYield);
}

struct Assuming;

impl OpModel for Assuming {
    no_uses!();
    fn buffer_types<'c>(&self, op: Op<'c>, types: &mut BufferTypes<'c, '_>) -> Result<(), Diagnostics> {
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
        let results: Vec<Type> = op.results().into_iter().map(|r| pass.types.of(r)).collect();
        let new = rw.recreate(op, buffers.operands(), &results)?;
        rw.replace_op(op, &new.results());
        Ok(())
    }
}

struct AssumingYield;

impl OpModel for AssumingYield {
    super::uses!(UseModel::TERMINATOR, op, operand => {
        let result = op.parent().and_then(|p| p.get_result(operand));
        result.map(AliasModel::equivalent).into_iter().collect()
    });
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        _pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        rw.set_operands(op, buffers.operands());
        Ok(())
    }
}
