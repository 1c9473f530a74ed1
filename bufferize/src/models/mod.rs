//! Our models, one file per dialect.

mod arith;
mod bufferization;
mod func;
mod linalg;
mod scf;
mod tensor;
mod ub;
mod vector;

pub(crate) use scf::carried_values;

use crate::op_model::OpModels;

/// Registers every model of this folder.
pub(crate) fn add_all(models: &mut OpModels) {
    arith::add(models);
    bufferization::add(models);
    func::add(models);
    linalg::add(models);
    scf::add(models);
    tensor::add(models);
    ub::add(models);
    vector::add(models);
}

/// Implements the two questions about uses for an op that has no tensor operands.
macro_rules! no_uses {
    () => {
        fn use_of(&self, _op: Op, _operand: usize, _callees: &Callees) -> UseModel {
            UseModel::NONE
        }
        fn aliases(&self, _op: Op, _operand: usize, _callees: &Callees) -> Vec<AliasModel> {
            vec![]
        }
    };
}
pub(crate) use no_uses;
