//! Moves signs of integer types from the types to attributes of the entry function.
//!
//! Before / after:
//!
//! ```text
//! func.func @main(%x: tensor<4xui8>) {                     func.func @main(%x: tensor<4xi8> {monopour.dtype = "ui8"}) {
//!   %0 = tensor.bitcast %x : tensor<4xui8> to tensor<4xi8>   ... linalg.generic ins(%x) { arith.uitofp .. }
//! ```
//!
//! Ops of `arith` take signless integers and choose the reading themselves, so a sign in a type matters only at the
//! boundary.
//! Requires: no calls. Ensures: no integer type with a sign is left; `monopour.dtype` names the unsigned type of an argument or result.

use monopour_contract::attributes;
use monopour_ir::ops;
use monopour_ir::{Attr, Diagnostics, Module, Op, Rewriter, Type, Value, WalkOrder};

/// Casts that change nothing but a sign.
const CASTS: [&str; 2] = [ops::tensor::BITCAST, ops::builtin::UNREALIZED_CONVERSION_CAST];

/// Makes every integer type signless.
///
/// # Errors
/// The verifier's error for an op that needs the sign.
pub(super) fn erase(module: &Module, entry: Op) -> Result<(), Diagnostics> {
    let mut changed = false;
    let mut rw = Rewriter::new(module.context());
    let mut ops = vec![];
    entry.walk(WalkOrder::Pre, |op| ops.push(op));
    changed |= erase_signature(&mut rw, entry);
    for op in &ops {
        let args = op.regions().into_iter().flat_map(|r| r.blocks()).flat_map(|b| b.args());
        let values: Vec<Value> = op.results().into_iter().chain(args).collect();
        for value in values {
            if let Some(ty) = signless(value.ty()) {
                rw.set_type(value, ty);
                changed = true;
            }
        }
        for (constant, name) in [(ops::arith::CONSTANT, "value"), (ops::tosa::CONST, "values")] {
            if op.is(constant) {
                erase_constant(&mut rw, *op, name)?;
            }
        }
    }
    if !changed {
        return Ok(());
    }
    for op in ops {
        if CASTS.contains(&op.name()) && op.num_operands() == 1 && op.num_results() == 1 {
            let from = op.operand(0);
            if from.ty() == op.result(0).ty() {
                rw.replace_op(op, &[from]);
            }
        }
    }
    module.op().verify_with_diagnostics()
}

/// The same type with signless integers, if it differs.
fn signless<'c>(ty: Type<'c>) -> Option<Type<'c>> {
    let element = ty.element();
    let cx = ty.context();
    let plain = Type::integer(cx, element.integer_width()?);
    if plain == element {
        return None;
    }
    match ty.as_tensor() {
        Some(tensor) => Some(Type::tensor(&tensor.shape, plain, tensor.encoding)),
        None => (element == ty).then_some(plain),
    }
}

fn erase_constant<'c>(rw: &mut Rewriter<'c>, op: Op<'c>, name: &str) -> Result<(), Diagnostics> {
    let Some(value) = op.attr(name) else { return Ok(()) };
    let Some(ty) = signless(value.value_type()) else { return Ok(()) };
    match value.elements_with_type(ty) {
        Some(plain) => rw.set_property(op, name, plain),
        None => Ok(()),
    }
}

/// Whether the entry's type changed; unsigned types are recorded at their argument or result.
fn erase_signature<'c>(rw: &mut Rewriter<'c>, entry: Op<'c>) -> bool {
    let (inputs, results) = entry.function_type().expect("a function has a type");
    let plain = |types: &[Type<'c>]| types.iter().map(|ty| signless(*ty).unwrap_or(*ty)).collect::<Vec<_>>();
    let (plain_inputs, plain_results) = (plain(&inputs), plain(&results));
    if plain_inputs == inputs && plain_results == results {
        return false;
    }
    note(rw, entry, "arg_attrs", &inputs);
    note(rw, entry, "res_attrs", &results);
    let ty = Type::function(entry.context(), &plain_inputs, &plain_results);
    rw.set_attr(entry, "function_type", Attr::ty(ty));
    true
}

fn note<'c>(rw: &mut Rewriter<'c>, entry: Op<'c>, list: &str, types: &[Type<'c>]) {
    let cx = entry.context();
    let names: Vec<String> = types.iter().map(|ty| ty.element().to_string()).collect();
    if !names.iter().any(|name| name.starts_with("ui")) {
        return;
    }
    let given = entry.attr(list).and_then(|a| a.as_array()).unwrap_or_default();
    let dicts = names.iter().enumerate().map(|(i, name)| {
        let mut entries = given.get(i).and_then(|d| d.as_dict()).unwrap_or_default();
        entries.retain(|(key, _)| key != attributes::DTYPE);
        if name.starts_with("ui") {
            entries.push((attributes::DTYPE.to_owned(), Attr::string(cx, name)));
        }
        Attr::dict(cx, &entries.iter().map(|(key, value)| (key.as_str(), *value)).collect::<Vec<_>>())
    });
    let dicts: Vec<Attr> = dicts.collect();
    rw.set_attr(entry, list, Attr::array(cx, &dicts));
}
