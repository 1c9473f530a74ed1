//! Our models, one file per dialect.

mod arith;
mod bufferization;
mod cf;
pub(crate) mod elementwise;
mod func;
pub(crate) mod interface;
mod linalg;
mod ml_program;
mod scf;
mod scf_branch;
mod scf_while;
mod shape;
mod sizes;
mod sparse_tensor;
mod tensor;
mod tensor_create;
mod tensor_shape;
mod ub;
pub(crate) mod upstream;
mod vector;

pub(crate) use cf::forwarded;
use monopour_ir::{Op, Value};

use crate::op_model::OpModels;

/// A tensor that a loop's terminator hands on to the next region or iteration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandedOn {
    /// The terminator.
    pub terminator: Op,
    /// The position of the tensor among its operands.
    pub index: usize,
    /// The argument of the same region whose buffer it may hand on, if there is one.
    pub argument: Option<Value>,
    /// `scf.condition`: argument and yielded value of the same position in the other region, if there are both.
    pub other_region: Option<(Value, Value)>,
}

/// What a loop's terminators hand on.
pub(crate) fn handed_on(op: Op) -> Vec<HandedOn> {
    match op.name() {
        "scf.for" => scf::handed_on(op),
        "scf.while" => scf_while::handed_on(op),
        _ => vec![],
    }
}

/// Registers every model of this folder.
pub(crate) fn add_all(models: &mut OpModels) {
    arith::add(models);
    bufferization::add(models);
    cf::add(models);
    func::add(models);
    linalg::add(models);
    ml_program::add(models);
    scf::add(models);
    scf_branch::add(models);
    scf_while::add(models);
    shape::add(models);
    sparse_tensor::add(models);
    tensor::add(models);
    tensor_create::add(models);
    tensor_shape::add(models);
    ub::add(models);
    vector::add(models);
}

/// Implements the two questions about uses for an op that uses all of its tensors alike.
macro_rules! uses {
    ($used:expr, $op:ident => $aliases:expr) => {
        fn use_of(&self, _op: Op, _operand: usize, _callees: &Callees) -> UseModel {
            $used
        }
        fn aliases(&self, $op: Op, _operand: usize, _callees: &Callees) -> Vec<AliasModel> {
            $aliases
        }
    };
}
/// [`uses`] of an op that has no tensor operands, or looks at their shapes only.
macro_rules! no_uses {
    () => {
        super::uses!(UseModel::NONE, _op => vec![]);
    };
}
/// [`uses`] of an op that loads from its tensors.
macro_rules! only_reads {
    () => {
        super::uses!(UseModel::READ, _op => vec![]);
    };
}
/// [`uses`] of an op whose result is the buffer of its operand.
macro_rules! is_its_operand {
    () => {
        super::uses!(UseModel::NONE, op => vec![AliasModel::equivalent(op.result(0))]);
    };
}
pub(crate) use {is_its_operand, no_uses, only_reads, uses};
