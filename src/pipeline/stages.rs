//! The stages: one type per form of a variant between phases.
//!
//! ```text
//! Source -import-> OnTensors -tile-> Tiled -bufferize-> OnMemrefs -outline-> Outlined -plan-> Planned
//!        -schedule-> Scheduled -emit-> Emitted
//! ```

use monopour_frontend::{WeightTable, onnx};
use monopour_ir::{Module, Op};
use monopour_program::{CopyNote, Map, Signature, Variant};
use monopour_split as split;
use std::sync::Arc;

/// A model as it is given.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    /// MLIR text or bytecode; `file` is its name in diagnostics, and weights are searched beside it.
    Mlir { bytes: &'a [u8], file: &'a str },
    /// Mapped bytecode, whose resources stay in the file.
    Mapped { map: &'a Arc<Map>, file: &'a str },
    /// An open ONNX file.
    Onnx(&'a onnx::Model),
    /// What a model computes of constants alone: bytecode of linalg on tensors, and the model's weights.
    Constants { bytecode: &'a [u8], weights: &'a WeightTable },
}

/// The module, and facts about the model from import on.
pub(super) struct Model<'c> {
    pub(super) module: Module<'c>,
    /// Name of the entry function.
    pub(super) entry: String,
    pub(super) signature: Signature,
    pub(super) weights: WeightTable,
}

impl<'c> Model<'c> {
    /// The function that the host runs.
    pub(super) fn host(&self) -> Op<'_> {
        self.module.symbol(&self.entry).expect("phases keep the entry function")
    }
}

/// Linalg on tensors.
pub(super) struct OnTensors<'c> {
    pub(super) model: Model<'c>,
}

/// One `scf.forall` over tiles per dispatch, on tensors.
pub(super) struct Tiled<'c> {
    pub(super) model: Model<'c>,
}

/// Tiles on memrefs.
pub(super) struct OnMemrefs<'c> {
    pub(super) model: Model<'c>,
    /// The copies that bufferization and deallocation inserted.
    pub(super) inserted: Vec<CopyNote>,
}

/// A host function that calls kernels.
pub(super) struct Outlined<'c> {
    pub(super) model: Model<'c>,
    pub(super) inserted: Vec<CopyNote>,
    /// The copies in each kernel.
    pub(super) kernel_copies: split::copies::KernelCopies,
    /// The op of each kernel.
    pub(super) kernel_ops: split::sources::KernelOps,
}

/// A host function with the transients in one arena.
pub(super) struct Planned<'c> {
    pub(super) model: Model<'c>,
    /// The copies of a run, with their reasons.
    pub(super) copies: Vec<CopyNote>,
    pub(super) plan: split::plan::Report,
    /// The allocations outside of the arena.
    pub(super) pooled: Vec<split::plan::Pooled>,
    /// What is alive when, and lower bounds.
    pub(super) lives: monopour_program::Lives,
    /// The op of each kernel.
    pub(super) kernel_ops: split::sources::KernelOps,
}

/// A host function of runtime calls.
pub(super) struct Scheduled<'c> {
    pub(super) planned: Planned<'c>,
    pub(super) schedule: split::schedule::Scheduled,
}

/// The finished variant, and the module with its constants.
pub(super) struct Emitted<'c> {
    pub(super) model: Model<'c>,
    pub(super) variant: Variant,
    /// Symbols of the constants that no variant before has, in the order of their indices.
    pub(super) constants: Vec<String>,
}

/// A stage with a module.
pub(super) trait Stage<'c> {
    /// The module as the phase left it.
    fn module(&self) -> &Module<'c>;
}

macro_rules! stages {
    ($($stage:ident),*) => {
        $(impl<'c> Stage<'c> for $stage<'c> {
            fn module(&self) -> &Module<'c> {
                &self.model.module
            }
        })*
    };
}

stages!(OnTensors, Tiled, OnMemrefs, Outlined, Planned, Emitted);

impl<'c> Stage<'c> for Scheduled<'c> {
    fn module(&self) -> &Module<'c> {
        &self.planned.model.module
    }
}
