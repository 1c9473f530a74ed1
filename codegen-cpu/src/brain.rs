//! bf16 without LLVM's: arithmetic in f32, each result rounded to nearest even, and moves as 16-bit integers.
//!
//! Before / after:
//!
//! ```text
//! %s = arith.addf %a, %b : vector<8xbf16>      %x = arith.shli (arith.extui %a); ..; %s = arith.addf %x, %y : vector<8xf32>
//! memref.store .. : memref<64xbf16>            .. : memref<64xi16>
//! ```
//!
//! LLVM lowers bf16 arithmetic to library calls on most CPUs, and may move a bf16 by converting it to f32 and back.

use monopour_ir::ops;
use monopour_ir::{Attr, Diagnostics, Module, Rewriter, Type, Value, WalkOrder, run_passes};

/// Emulates bf16 arithmetic in f32.
const EMULATE: &str = "builtin.module(func.func(arith-emulate-unsupported-floats{source-types=bf16 target-type=f32}))";
/// Expands the conversions that are left to integer arithmetic.
const EXPAND: &str = "builtin.module(func.func(arith-expand{include-bf16=true}))";

/// Whether a type, or its element type, is `bf16`: the one float type of 16 bits beside f16.
pub(crate) fn is(ty: Type) -> bool {
    let element = ty.element();
    element.float_width() == Some(16) && element != Type::f16(ty.context())
}

/// Removes bf16 from `module`. Requires: no linalg op, and no math function of bf16.
///
/// # Errors
/// MLIR's: an op that needs the type.
pub(crate) fn run(module: &Module) -> Result<(), Diagnostics> {
    if !occurs(module) {
        return Ok(());
    }
    run_passes(module.op(), EMULATE)?;
    round_each(module);
    run_passes(module.op(), EXPAND)?;
    retype(module)
}

fn occurs(module: &Module) -> bool {
    let mut found = false;
    module.op().walk(WalkOrder::Pre, |op| {
        let args = op.regions().into_iter().flat_map(|r| r.blocks()).flat_map(|b| b.args());
        found |= op.results().into_iter().chain(args).any(|v| is(v.ty()));
    });
    found
}

/// Keeps each rounding: upstream folds a truncation and the extension behind it, so that a sum of three would be rounded
/// once.
fn round_each(module: &Module) {
    let cx = module.context();
    let none = Attr::parse(cx, "#arith.fastmath<none>").expect("the attribute of arith parses");
    let mut rw = Rewriter::new(cx);
    for name in [ops::arith::EXTF, ops::arith::TRUNCF] {
        for op in module.op().find_all(name) {
            if is(op.operand(0).ty()) || is(op.result(0).ty()) {
                rw.set_attr(op, "fastmath", none);
            }
        }
    }
}

/// The same type with element type `i16`.
fn plain<'c>(ty: Type<'c>) -> Option<Type<'c>> {
    let text = ty.to_string();
    text.contains("bf16").then(|| Type::parse(ty.context(), &text.replace("bf16", "i16")))?
}

fn retype(module: &Module) -> Result<(), Diagnostics> {
    let mut rw = Rewriter::new(module.context());
    let ops = module.op().nested(WalkOrder::Pre);
    for op in &ops {
        let args = op.regions().into_iter().flat_map(|r| r.blocks()).flat_map(|b| b.args());
        let values: Vec<Value> = op.results().into_iter().chain(args).collect();
        for value in values.into_iter().filter(|v| is(v.ty())) {
            if let Some(ty) = plain(value.ty()) {
                rw.set_type(value, ty);
            }
        }
        for (name, attr) in op.attrs() {
            if let Some(attr) = retyped(&attr) {
                rw.set_attr(*op, name, attr);
            }
        }
    }
    for op in ops.into_iter().filter(|op| op.is(ops::arith::BITCAST) && op.operand(0).ty() == op.result(0).ty()) {
        rw.replace_op(op, &[op.operand(0)]);
    }
    module.op().verify_with_diagnostics()
}

/// A type or constant attribute with bf16, retyped.
fn retyped<'c>(attr: &Attr<'c>) -> Option<Attr<'c>> {
    if let Some(ty) = attr.as_type() {
        return plain(ty).map(Attr::ty);
    }
    let ty = attr.value_type();
    if !is(ty) {
        return None;
    }
    match attr.as_float() {
        Some(value) => {
            let bits = (value as f32).to_bits() >> 16;
            Some(Attr::int(plain(ty)?, i64::from(bits as u16 as i16)))
        }
        None => attr.elements_with_type(plain(ty)?),
    }
}
