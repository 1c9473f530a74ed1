//! Operations without a model in destination style (`DestinationStyleOpInterface`).
//!
//! ```text
//! %r = other.op ins(%a : tensor<4xf32>) outs(%b : tensor<4xf32>) -> tensor<4xf32>
//!   ==>
//! other.op ins(%a : memref<4xf32>) outs(%b : memref<4xf32>)              every use of %r becomes %b
//! ```
//!
//! Inputs are read, destinations are read and written, result i is equivalent to destination i.
//! Requires: an operation that accepts memrefs, and has no results then (else B0104).
//! Limits: tensors with an encoding, unranked tensors, and blocks with tensor arguments are not described (B0101).

use monopour_ir::conversion::{ConversionRewriter, Declined};
use monopour_ir::{Op, Value, interfaces};

use crate::boundary::Callees;
use crate::op_model::{AliasModel, Buffers, OpModel, RegionInfo, UseModel};
use crate::options::Options;
use crate::rewriting::Rewriting;

/// The model of the interface.
pub(crate) struct DestinationStyle;

/// Positions of the destinations that are tensors: one for each result, in order.
fn destinations(op: Op) -> Vec<usize> {
    interfaces::dps_inits(op).into_iter().filter(|i| op.operand(*i).ty().is_tensor()).collect()
}

/// Whether the interface describes the operation completely.
fn is_described(op: Op, options: &Options) -> bool {
    let args = || op.regions().into_iter().flat_map(|r| r.blocks()).flat_map(|b| b.args());
    let plain = |value: Value| {
        // An encoding that is not a memory space gives the tensor another layout: sparse tensors.
        let ty = value.ty();
        !ty.is_tensor() || ty.as_tensor().is_some_and(|t| t.encoding.is_none() || options.use_encoding_for_memory_space)
    };
    let tensors = op.operands().into_iter().chain(op.results()).any(|v| v.ty().is_tensor());
    tensors
        && interfaces::dps_inits_if_any(op).is_some()
        && destinations(op).len() == op.num_results()
        && op.operands().into_iter().chain(op.results()).all(plain)
        && !args().any(|a| a.ty().is_tensor())
}

impl OpModel for DestinationStyle {
    fn describes(&self, op: Op, options: &Options) -> bool {
        options.extensions && is_described(op, options)
    }
    fn use_of<'c>(&self, op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> UseModel<'c> {
        if destinations(op).contains(&operand) { UseModel::READ_WRITE } else { UseModel::READ }
    }
    fn aliases<'c>(&self, op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> Vec<AliasModel<'c>> {
        let position = destinations(op).into_iter().position(|i| i == operand);
        position.map(|i| AliasModel::equivalent(op.result(i))).into_iter().collect()
    }
    /// The execution of a region is unknown.
    fn region(&self, _op: Op, _region: usize) -> RegionInfo {
        RegionInfo { repetitive: true, parallel: true, ..RegionInfo::default() }
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let replacements: Vec<Value> = destinations(op).into_iter().map(|i| buffers.operand(i)).collect();
        let new = rw.recreate(op, buffers.operands(), &[])?;
        pass.verify_later(new);
        rw.replace_op(op, &replacements);
        Ok(())
    }
}
