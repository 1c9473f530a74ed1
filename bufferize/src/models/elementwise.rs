//! Elementwise mappable operations on tensors (`arith.addf`, `math.exp`).
//!
//! ```text
//! %r = arith.addf %a, %b : tensor<4xf32>
//!   ==>
//! %m = memref.alloc() : memref<4xf32>
//! linalg.generic ins(%a, %b : memref<4xf32>, memref<4xf32>) outs(%m : memref<4xf32>) { %s = arith.addf %x, %y : f32 .. }
//! ```
//!
//! With `extensions` only: upstream refuses them. An `arith.select` by one bit is no such operation.
//! Limits: unranked tensors are not described (B0101).

use monopour_ir::conversion::{ConversionRewriter, Declined};
use monopour_ir::ops;
use monopour_ir::typed::linalg::{self, IteratorType};
use monopour_ir::{AffineMap, Block, InsertionPoint, Op, OpSpec, Region, Value, interfaces};

use crate::boundary::Callees;
use crate::op_model::{AliasModel, BufferInfo, Buffers, OpModel, UseModel};
use crate::options::Options;
use crate::rewriting::Rewriting;

/// Reads its operands into new buffers.
pub(crate) struct Elementwise;

/// Whether the operation is element-wise on ranked tensors.
fn is_elementwise(op: Op) -> bool {
    let ranked = |v: Value| !v.ty().is_tensor() || v.ty().as_tensor().is_some();
    op.num_results() > 0
        && op.result(0).ty().is_tensor()
        && (!op.is(ops::arith::SELECT) || op.operand(0).ty().is_tensor())
        && op.operands().into_iter().chain(op.results()).all(ranked)
        && interfaces::is_elementwise(op)
}

impl OpModel for Elementwise {
    fn describes(&self, op: Op, options: &Options) -> bool {
        options.extensions && is_elementwise(op)
    }
    super::only_reads!();
    fn result(&self, _op: Op, _result: usize) -> BufferInfo {
        BufferInfo { allocates: true, ..BufferInfo::default() }
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let is_tensor = |i: &usize| op.operand(*i).ty().is_tensor();
        let inputs: Vec<usize> = (0..op.num_operands()).filter(is_tensor).collect();
        let Some(first) = inputs.first().map(|i| buffers.operand(*i)) else {
            return Err(pass.unsupported(op, "no tensor operand").into());
        };
        let mut outputs = Vec::new();
        for result in op.results() {
            let sizes = pass.dynamic_sizes(rw, op, first)?;
            outputs.push(pass.alloc(rw, op, pass.identity(result.ty()), &sizes)?);
        }
        let memrefs: Vec<Value> = inputs.iter().map(|i| buffers.operand(*i)).chain(outputs.iter().copied()).collect();
        let generic = loop_over(rw, op, &memrefs, inputs.len())?;
        let body = generic.body().expect("invariant: made with one block");
        rw.set_point(InsertionPoint::End(body));
        let mut elements = body.args().into_iter();
        let scalars: Vec<Value> = op
            .operands()
            .into_iter()
            .map(|v| if v.ty().is_tensor() { elements.next().unwrap_or(v) } else { v })
            .collect();
        let results: Vec<_> = op.results().iter().map(|r| r.ty().element()).collect();
        let spec = OpSpec::new(op.name(), op.location()).operands(&scalars).results(&results);
        let scalar = rw.create(spec.attrs(&op.attrs()))?;
        rw.create(OpSpec::new(ops::linalg::YIELD, op.location()).operands(&scalar.results()))?;
        rw.replace_op(op, &outputs);
        Ok(())
    }
}

/// `linalg.generic` over memrefs of one shape, the first `inputs` of which are read; its block is empty.
fn loop_over<'c>(
    rw: &mut ConversionRewriter<'c>,
    op: Op<'c>,
    memrefs: &[Value<'c>],
    inputs: usize,
) -> Result<Op<'c>, Declined> {
    let cx = rw.context();
    let rank = op.result(0).ty().shape().unwrap_or_default().len();
    let arguments: Vec<_> = memrefs.iter().map(|m| (m.ty().element(), op.location())).collect();
    let region = Region::new();
    region.append(Block::new(&arguments));
    let (inputs, outputs) = memrefs.split_at(inputs);
    let maps = vec![AffineMap::identity(cx, rank); memrefs.len()];
    let iterators = linalg::iterator_types_attr(cx, &vec![IteratorType::Parallel; rank]);
    let operands = linalg::Operands { inputs, outputs };
    Ok(rw.create(linalg::generic(op.location(), operands, &maps, iterators, region))?)
}
