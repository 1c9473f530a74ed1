//! Our models, one file per dialect.

mod arith;
mod bufferization;
mod cf;
mod elementwise;
mod func;
mod interface;
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
mod upstream;
mod uses;
mod vector;

use std::rc::Rc;

use crate::op_model::{GeneralModels, OpModels};
use elementwise::Elementwise;
use interface::DestinationStyle;
use upstream::Upstream;
pub(crate) use uses::{is_its_operand, no_uses, only_reads, uses};

impl Default for OpModels {
    fn default() -> Self {
        Self::with_general(GeneralModels {
            elementwise: Rc::new(Elementwise),
            by_upstream: Rc::new(Upstream),
            by_interface: Rc::new(DestinationStyle),
        })
    }
}

impl OpModels {
    /// No models.
    pub fn new() -> Self {
        Self::default()
    }
    /// The models of upstream's dialects.
    pub fn upstream() -> Self {
        let mut models = Self::new();
        add_all(&mut models);
        models
    }
}

/// Registers every model of this folder.
fn add_all(models: &mut OpModels) {
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
