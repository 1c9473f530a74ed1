//! Block mappings on the dispatches, and memory spaces as tensor encodings.
//!
//! Before / after (GPU):
//!
//! ```text
//! %r = scf.forall (%i, %j) in (4, 16) ...              %r = scf.forall (%i, %j) in (4, 16) ...
//!   : tensor<64x1000xf32>                                : tensor<64x1000xf32, #gpu.address_space<global>>
//! { monopour.kernel = {...} }                          { mapping = [#gpu.block<y>, #gpu.block<x>], monopour.kernel = {...} }
//! ```
//!
//! On a CPU nothing changes: tasks carry `monopour.kernel` only, and memory has no space.
//! Requires: what [`crate::tile`] ensures.

use crate::target::TargetDescription;
use monopour_contract::attributes;
use monopour_ir::ops;
use monopour_ir::typed::gpu::{self, AddressSpace, Dimension};
use monopour_ir::{Attr, Context, Diagnostic, Diagnostics, Module, Op, Rewriter, Type, Value, WalkOrder};

/// Places the whole program on the target.
///
/// # Errors
/// F0013 for a dispatch with more than three grid dimensions (a user's schedule can make one).
pub fn run(module: &Module, target: &TargetDescription) -> Result<(), Diagnostics> {
    match target {
        TargetDescription::Gpu(_) => place_on_gpu(module),
        TargetDescription::Cpu(_) => Ok(()),
    }
}

fn place_on_gpu(module: &Module) -> Result<(), Diagnostics> {
    let cx = module.context();
    let mut rw = Rewriter::new(cx);
    for forall in module.op().find_all(ops::scf::FORALL) {
        if forall.attr(attributes::KERNEL).is_some() {
            let mapping = block_mapping(forall, cx)?;
            rw.set_attr(forall, "mapping", mapping);
        }
    }
    let space = AddressSpace::Global.to_attr(cx).expect("invariant: the gpu dialect is loaded");
    for op in module.op().nested(WalkOrder::Pre) {
        place_types(op, space, &mut rw);
    }
    Ok(())
}

/// The innermost dimension runs along x.
fn block_mapping<'c>(forall: Op<'c>, cx: Context<'c>) -> Result<Attr<'c>, Diagnostics> {
    let rank = forall.attr("staticUpperBound").and_then(|a| a.as_ints()).map_or(0, |bounds| bounds.len());
    if rank > 3 {
        let message = format!("a dispatch has {rank} grid dimensions, a GPU at most 3");
        let help = "tile fewer loops in the schedule";
        return Err(Diagnostic::error("F0013", forall.location(), message).with_help(help).into());
    }
    let dimensions = [Dimension::Z, Dimension::Y, Dimension::X];
    let blocks = dimensions[3 - rank..].iter().map(|dimension| gpu::block_mapping(cx, *dimension));
    let blocks: Option<Vec<Attr>> = blocks.collect();
    Ok(Attr::array(cx, &blocks.expect("invariant: the gpu dialect is loaded")))
}

fn place_types<'c>(op: Op<'c>, space: Attr<'c>, rw: &mut Rewriter<'c>) {
    let args = op.regions().into_iter().flat_map(|r| r.blocks()).flat_map(|b| b.args());
    let values: Vec<Value> = op.results().into_iter().chain(args).collect();
    for value in values {
        if let Some(ty) = placed(value.ty(), space) {
            rw.set_type(value, ty);
        }
    }
    if op.is(ops::arith::CONSTANT) {
        place_constant(op, rw);
    }
    if let (true, Some((inputs, results))) = (op.is(ops::func::FUNC), op.function_type()) {
        let place = |types: Vec<Type<'c>>| -> Vec<Type<'c>> {
            types.into_iter().map(|t| placed(t, space).unwrap_or(t)).collect()
        };
        let ty = Type::function(op.context(), &place(inputs), &place(results));
        rw.set_attr(op, "function_type", Attr::ty(ty));
    }
}

/// The attribute of a constant has the constant's type.
fn place_constant<'c>(op: Op<'c>, rw: &mut Rewriter<'c>) {
    let ty = op.result(0).ty();
    let value = op.attr("value").filter(|_| ty.is_tensor());
    if let Some(value) = value.and_then(|v| v.elements_with_type(ty)) {
        rw.set_attr(op, "value", value);
    }
}

fn placed<'c>(ty: Type<'c>, space: Attr<'c>) -> Option<Type<'c>> {
    let tensor = ty.as_tensor()?;
    tensor.encoding.is_none().then(|| Type::tensor(&tensor.shape, tensor.element, Some(space)))
}
