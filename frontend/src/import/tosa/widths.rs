//! Integers of 4 and 48 bits, which TOSA has for weights and for sums, in the next type that devices have.
//!
//! Before / after:
//!
//! ```text
//! %w = arith.constant dense<[3, -8]> : tensor<2xi4>     %w = arith.constant dense<[3, -8]> : tensor<2xi8>
//! %s = arith.addi %a, %b : i48                          %s = arith.addi %a, %b : i64
//! ```
//!
//! TOSA leaves sums beyond 48 bits undefined, and computes nothing in 4 bits.
//! Requires: no op of TOSA. Ensures: no such type is left, but in resources.

use monopour_ir::{Attr, Diagnostics, Module, Op, Rewriter, Type, Value, WalkOrder, ops};

/// Conversions between integer types.
const CASTS: [&str; 3] = [ops::arith::EXTSI, ops::arith::EXTUI, ops::arith::TRUNCI];

/// Widens the types of all values of `entry`.
///
/// # Errors
/// The verifier's error for an op that needs the narrower type.
pub(super) fn widen(module: &Module, entry: Op) -> Result<(), Diagnostics> {
    let mut rw = Rewriter::new(module.context());
    let mut is_changed = widen_signature(&mut rw, entry);
    let all = entry.nested(WalkOrder::Pre);
    for op in &all {
        let arguments = op.regions().into_iter().flat_map(|r| r.blocks()).flat_map(|b| b.args());
        let values: Vec<Value> = op.results().into_iter().chain(arguments).collect();
        let constant = op.attr("value").filter(|_| op.is(ops::arith::CONSTANT));
        if let Some(constant) = constant
            && let Some(ty) = wide(constant.value_type())
        {
            let Some(value) = extended(constant, ty) else { continue };
            rw.set_attr(*op, "value", value);
        }
        for value in values {
            if let Some(ty) = wide(value.ty()) {
                rw.set_type(value, ty);
                is_changed = true;
            }
        }
    }
    if !is_changed {
        return Ok(());
    }
    for op in all {
        if CASTS.contains(&op.name()) && op.operand(0).ty() == op.result(0).ty() {
            let from = op.operand(0);
            rw.replace_op(op, &[from]);
        }
    }
    module.op().verify_with_diagnostics()
}

/// The type of wider integers, if these are such.
fn wide<'c>(ty: Type<'c>) -> Option<Type<'c>> {
    let element = match ty.element().integer_width()? {
        4 => Type::integer(ty.context(), 8),
        48 => Type::integer(ty.context(), 64),
        _ => return None,
    };
    match ty.as_tensor() {
        Some(tensor) => Some(Type::tensor(&tensor.shape, element, tensor.encoding)),
        None => (ty.element() == ty).then_some(element),
    }
}

/// A constant in the wider type; `None` for resources.
fn extended<'c>(constant: Attr<'c>, ty: Type<'c>) -> Option<Attr<'c>> {
    match constant.as_int() {
        Some(value) => Some(Attr::int(ty, value)),
        None => constant.elements_extended(ty.element()),
    }
}

/// Whether the type of the entry changed.
fn widen_signature<'c>(rw: &mut Rewriter<'c>, entry: Op<'c>) -> bool {
    let (inputs, results) = entry.function_type().expect("a function has a type");
    let widened = |types: &[Type<'c>]| types.iter().map(|ty| wide(*ty).unwrap_or(*ty)).collect::<Vec<_>>();
    let (wide_inputs, wide_results) = (widened(&inputs), widened(&results));
    if wide_inputs == inputs && wide_results == results {
        return false;
    }
    rw.set_attr(entry, "function_type", Attr::ty(Type::function(entry.context(), &wide_inputs, &wide_results)));
    true
}
