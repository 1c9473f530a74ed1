//! `ml_program`: globals on tensors become globals on memrefs, loads become views of them, stores become copies.
//!
//! Differs from upstream: a store reads its tensor. Upstream's does not, and may store undefined contents.

use monopour_ir::conversion::{ConversionRewriter, Declined};
use monopour_ir::ops;
use monopour_ir::{Attr, Op, OpSpec, Type};

use super::{no_uses, only_reads};
use crate::boundary::Callees;
use crate::op_model::{AliasModel, BufferInfo, Buffers, OpModel, OpModels, UseModel};
use crate::rewriting::Rewriting;

pub(super) fn add(models: &mut OpModels) {
    models.add(ops::ml_program::GLOBAL, Global);
    models.add(ops::ml_program::GLOBAL_LOAD, GlobalLoad);
    models.add(ops::ml_program::GLOBAL_STORE, GlobalStore);
}

/// The tensor appears in attributes only.
struct Global;

impl OpModel for Global {
    no_uses!();
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        _buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let Some(tensor) = op.attr("type").and_then(|a| a.as_type()) else {
            return Err(Declined::no_match("a global without a type"));
        };
        let Some(value) = op.attr("value") else {
            return Err(pass.refuse(op, "global op must have a value", "no value").into());
        };
        // An external value cannot be the value of a memref.
        let known = value.is_dense_elements() || value.is_resource();
        let fits = |ty: Type<'c>| ty.is_tensor() && ty.shape() == tensor.shape() && ty.element() == tensor.element();
        if known && !fits(value.value_type()) {
            return Err(pass.unsupported(op, "an initial value of another type").into());
        }
        let ty = pass.identity(tensor);
        pass.check_static(op, ty)?;
        let mut spec = OpSpec::new(ops::memref::GLOBAL, op.location()).attr("type", Attr::ty(ty));
        for name in ["sym_name", "sym_visibility"] {
            if let Some(kept) = op.attr(name) {
                spec = spec.attr(name, kept);
            }
        }
        if known {
            spec = spec.attr("initial_value", value);
        }
        if op.attr("is_mutable").is_none() {
            spec = spec.attr("constant", Attr::unit(rw.context()));
        }
        rw.create(spec)?;
        rw.replace_op(op, &[]);
        Ok(())
    }
}

struct GlobalLoad;

impl OpModel for GlobalLoad {
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
        let Some(name) = op.attr("global") else { return Err(Declined::no_match("a load without a name")) };
        let buffer = pass.get_global(rw, op, name, pass.identity(op.result(0).ty()))?;
        rw.replace_op(op, &[buffer]);
        Ok(())
    }
}

struct GlobalStore;

impl OpModel for GlobalStore {
    only_reads!();
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let Some(name) = op.attr("global") else { return Err(Declined::no_match("a store without a name")) };
        let buffer = pass.get_global(rw, op, name, pass.identity(op.operand(0).ty()))?;
        pass.copy(rw, op, buffers.operand(0), buffer)?;
        rw.replace_op(op, &[]);
        Ok(())
    }
}
