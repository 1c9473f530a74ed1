//! `arith`: constants become read-only globals; casts and selects of tensors become those of memrefs.

use monopour_ir::conversion::{ConversionRewriter, Declined};
use monopour_ir::ops;
use monopour_ir::{Diagnostic, Diagnostics, Op, OpSpec};

use super::no_uses;
use crate::boundary::Callees;
use crate::buffer_type::BufferTypes;
use crate::op_model::{AliasModel, BufferInfo, Buffers, OpModel, OpModels, UseModel};
use crate::rewriting::Rewriting;

pub(super) fn add(models: &mut OpModels) {
    models.add(ops::arith::CONSTANT, Constant);
    models.add(ops::arith::INDEX_CAST, IndexCast);
    models.add(ops::arith::SELECT, Select);
}

struct Constant;

impl OpModel for Constant {
    no_uses!();
    fn result(&self, _op: Op, _result: usize) -> BufferInfo {
        BufferInfo { writable: false, ..BufferInfo::default() }
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        _buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let Some(value) = op.attr("value") else { return Err(Declined::no_match("a constant without a value")) };
        let ty = pass.identity(op.result(0).ty());
        let global = pass.global(rw, op, value, ty)?;
        let buffer = pass.get_global(rw, op, global, ty)?;
        rw.replace_op(op, &[buffer]);
        Ok(())
    }
}

/// `arith.index_cast` of a tensor: the same cast of its buffer.
///
/// Upstream's form, though elements of the two types differ in size; with `extensions` it is an element-wise operation.
struct IndexCast;

impl OpModel for IndexCast {
    super::is_its_operand!();
    fn buffer_types<'c>(&self, op: Op<'c>, types: &mut BufferTypes<'c, '_>) -> Result<(), Diagnostics> {
        let element = op.result(0).ty().element();
        let ty = types.of(op.operand(0)).with_element(element);
        types.set(op.result(0), ty);
        Ok(())
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        _pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let ty = buffers.operand(0).ty().with_element(op.result(0).ty().element());
        let cast =
            rw.create(OpSpec::new(ops::arith::INDEX_CAST, op.location()).operands(buffers.operands()).results(&[ty]))?;
        rw.replace_op(op, &[cast.result(0)]);
        Ok(())
    }
}

/// `arith.select` by one bit; with `extensions`, one by a tensor of bits is an element-wise operation.
struct Select;

impl OpModel for Select {
    fn use_of<'c>(&self, _op: Op<'c>, _operand: usize, _callees: &Callees<'c>) -> UseModel<'c> {
        UseModel::NONE
    }
    fn aliases<'c>(&self, op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> Vec<AliasModel<'c>> {
        if operand == 0 { vec![] } else { vec![AliasModel::maybe_equivalent(op.result(0))] }
    }
    fn buffer_types<'c>(&self, op: Op<'c>, types: &mut BufferTypes<'c, '_>) -> Result<(), Diagnostics> {
        let (on_true, on_false) = (types.of(op.operand(1)), types.of(op.operand(2)));
        if !types.extensions() && on_true.memref_space() != on_false.memref_space() {
            let message = "inconsistent memory space on true/false operands";
            let help = "copy one of them with bufferization.alloc_tensor copy(..) into the other's space";
            return Err(Diagnostic::error("B0108", op.location(), message).with_help(help).into());
        }
        let ty = types.unify(op, on_true, on_false)?;
        types.set(op.result(0), ty);
        Ok(())
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        if op.operand(0).ty().is_tensor() {
            let what = "a tensor of conditions";
            return Err(pass.refuse(op, "only i1 condition values are supported", what).into());
        }
        let ty = pass.types.of(op.result(0));
        let on_true = pass.cast_or_copy(rw, op, buffers.operand(1), ty)?;
        let on_false = pass.cast_or_copy(rw, op, buffers.operand(2), ty)?;
        let spec =
            OpSpec::new(ops::arith::SELECT, op.location()).operands(&[op.operand(0), on_true, on_false]).results(&[ty]);
        let select = rw.create(spec)?;
        rw.replace_op(op, &[select.result(0)]);
        Ok(())
    }
}
