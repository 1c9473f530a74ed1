//! `sparse_tensor`: analysed like other operations, and refused: only the sparsifier knows their memory.

use monopour_ir::conversion::{ConversionRewriter, Declined};
use monopour_ir::ops;
use monopour_ir::{Diagnostics, Op};

use crate::boundary::Callees;
use crate::buffer_type::BufferTypes;
use crate::op_model::{AliasModel, BufferInfo, Buffers, OpModel, OpModels, ReadModel, UseModel};
use crate::rewriting::Rewriting;

/// Operations with results of their own, or none.
const READING: &[&str] = &[
    "concatenate",
    "convert",
    "coordinates",
    "coordinates_buffer",
    "disassemble",
    "foreach",
    "new",
    "number_of_entries",
    "positions",
    "values",
];

pub(super) fn add(models: &mut OpModels) {
    for name in READING {
        models.add(&format!("sparse_tensor.{name}"), Sparse { passes_on: Passes::Nothing });
    }
    models.add(ops::sparse_tensor::LOAD, Sparse { passes_on: Passes::Operand });
    models.add(ops::sparse_tensor::ASSEMBLE, Sparse { passes_on: Passes::Parts });
}

/// The relation of the result to the operands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Passes {
    /// They are read.
    Nothing,
    /// The result is equivalent to the operand.
    Operand,
    /// The result is composed of them.
    Parts,
}

struct Sparse {
    passes_on: Passes,
}

impl OpModel for Sparse {
    fn use_of<'c>(&self, op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> UseModel<'c> {
        // The buffers of a disassembled tensor follow the tensor.
        let writes = op.is(ops::sparse_tensor::DISASSEMBLE) && operand > 0;
        let reads = if self.passes_on == Passes::Nothing && !writes { ReadModel::Yes } else { ReadModel::No };
        UseModel { reads, writes, ..UseModel::NONE }
    }
    fn aliases<'c>(&self, op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> Vec<AliasModel<'c>> {
        match self.passes_on {
            Passes::Operand => vec![AliasModel::equivalent(op.result(0))],
            Passes::Parts => vec![AliasModel::unknown(op.result(0))],
            Passes::Nothing if op.is(ops::sparse_tensor::DISASSEMBLE) && operand > 0 => {
                let result = op.get_result(operand - 1);
                result.filter(|r| r.ty().is_tensor()).map(AliasModel::equivalent).into_iter().collect()
            }
            Passes::Nothing => vec![],
        }
    }
    fn result(&self, op: Op, _result: usize) -> BufferInfo {
        let name = op.name();
        let allocates = ["convert", "concatenate", "new"].iter().any(|n| name.ends_with(n));
        BufferInfo { allocates, ..BufferInfo::default() }
    }
    fn buffer_types<'c>(&self, _op: Op<'c>, _types: &mut BufferTypes<'c, '_>) -> Result<(), Diagnostics> {
        Ok(())
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        _buffers: &Buffers<'c, '_>,
        _rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let upstream = "sparse_tensor ops must be bufferized with the sparsifier";
        Err(pass.refuse(op, upstream, "a sparse tensor").with_help("run the sparsifier before").into())
    }
}
