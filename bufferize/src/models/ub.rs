//! `ub`: a poison tensor has no contents, so any buffer fits.

use monopour_analysis::facts::Definition;
use monopour_ir::Op;
use monopour_ir::conversion::{ConversionRewriter, Declined};
use monopour_ir::ops;

use super::no_uses;
use crate::boundary::Callees;
use crate::op_model::{AliasModel, BufferInfo, Buffers, OpModel, OpModels, UseModel};
use crate::rewriting::Rewriting;

pub(super) fn add(models: &mut OpModels) {
    models.add(ops::ub::POISON, Poison);
}

struct Poison;

impl OpModel for Poison {
    no_uses!();
    fn result(&self, _op: Op, _result: usize) -> BufferInfo {
        BufferInfo { definition: Definition::Never, allocates: true, ..BufferInfo::default() }
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        _buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let buffer = pass.alloc(rw, op, pass.identity(op.result(0).ty()), &[])?;
        rw.replace_op(op, &[buffer]);
        Ok(())
    }
}
