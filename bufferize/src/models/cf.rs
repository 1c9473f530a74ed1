//! `cf`: a branch passes its operands to the arguments of its successors.
//!
//! ```text
//! cf.cond_br %c, ^a(%t : tensor<4xf32>), ^b           cf.cond_br %c, ^a(%m : memref<4xf32>), ^b
//! ^a(%x: tensor<4xf32>):                       ==>    ^a(%x: memref<4xf32>):
//! ```
//!
//! Each operand is cast to its own argument's type, so that one branch may name a block several times.
//! If the parent operation stays on tensors (a function without function boundaries), so do its branches.

use monopour_ir::conversion::{ConversionRewriter, Declined};
use monopour_ir::ops;
use monopour_ir::{Op, Value};

use crate::boundary::Callees;
use crate::op_model::{AliasModel, Buffers, OpModel, OpModels, UseModel};
use crate::rewriting::Rewriting;

pub(super) fn add(models: &mut OpModels) {
    for name in BRANCHES {
        models.add(name, Branch);
    }
}

const BRANCHES: &[&str] = &[ops::cf::BR, ops::cf::COND_BR, ops::cf::SWITCH];

/// The operands that a branch forwards, by position, each with its block argument.
pub(crate) fn forwarded<'c>(op: Op<'c>) -> Vec<(usize, Value<'c>)> {
    if !BRANCHES.contains(&op.name()) {
        return vec![];
    }
    // The condition or the flag comes first, then the operands of each successor.
    let first = usize::from(!op.is(ops::cf::BR));
    let arguments = op.successors().into_iter().flat_map(|block| block.args());
    (first..op.num_operands()).zip(arguments).collect()
}

struct Branch;

impl OpModel for Branch {
    super::no_uses!();
    fn passes_to_blocks<'c>(&self, op: Op<'c>) -> Vec<(usize, Value<'c>)> {
        forwarded(op)
    }
    fn follows_blocks(&self, _op: Op) -> bool {
        true
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let mut values = buffers.operands().to_vec();
        for (index, argument) in forwarded(op) {
            let ty = pass.types.of(argument);
            if ty.is_memref() {
                values[index] = pass.cast_or_copy(rw, op, values[index], ty)?;
            }
        }
        rw.set_operands(op, &values);
        Ok(())
    }
}
