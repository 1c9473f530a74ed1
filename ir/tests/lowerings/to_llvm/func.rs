//! `func` to the LLVM dialect: several results are packed into one struct.

use super::{convert_type, copy_discardable_attrs, join, pack, parse_attr};
use monopour_ir::conversion::{Adaptor, ConversionRewriter, Declined, PatternSet, TypeConverter};
use monopour_ir::{Attr, Context, HandleMap, InsertionPoint, Op, OpSpec, Type, Value};
use std::cell::RefCell;
use std::rc::Rc;

/// Attributes that need more than a 1:1 replacement.
const REFUSED: &[&str] = &["llvm.emit_c_interface", "llvm.linkage", "llvm.readnone", "func.varargs"];

/// Types and attributes that many ops share.
struct Signatures<'c, 'p> {
    cx: Context<'c>,
    converter: &'p TypeConverter<'c, 'p>,
    external: Attr<'c>,
    pointer: Type<'c>,
    no_bundles: Attr<'c>,
    /// By function type: the type of `llvm.func`.
    functions: RefCell<HandleMap<Type<'c>, Type<'c>>>,
}

impl<'c> Signatures<'c, '_> {
    fn convert_all(&self, types: impl Iterator<Item = Type<'c>>) -> Result<Vec<Type<'c>>, Declined> {
        types.map(|ty| convert_type(self.converter, ty)).collect()
    }
    fn function(&self, ty: Type<'c>) -> Result<Type<'c>, Declined> {
        if let Some(known) = self.functions.borrow().get(&ty) {
            return Ok(*known);
        }
        let (inputs, results) = ty.as_function().expect("func.func has a function type: verified");
        let inputs = self.convert_all(inputs.into_iter())?;
        let results = self.convert_all(results.into_iter())?;
        let result = if results.is_empty() { "void".to_owned() } else { pack(self.cx, &results).to_string() };
        let text = format!("!llvm.func<{result} ({})>", join(&inputs));
        let function = Type::parse(self.cx, &text).expect("a function of converted types");
        self.functions.borrow_mut().insert(ty, function);
        Ok(function)
    }
}

/// Adds the patterns of `func`.
pub fn add_func<'c, 'p>(set: &mut PatternSet<'c, 'p>, cx: Context<'c>, converter: &'p TypeConverter<'c, 'p>) {
    let signatures = Rc::new(Signatures {
        cx,
        converter,
        external: parse_attr(cx, "#llvm.linkage<external>"),
        pointer: Type::parse(cx, "!llvm.ptr").expect("the LLVM dialect is loaded"),
        no_bundles: Attr::dense_i32(cx, &[]),
        functions: RefCell::default(),
    });
    let s = signatures.clone();
    set.add_fn("func.func", move |op, _, rw| convert_func(&s, op, rw));
    for name in ["func.call", "func.call_indirect"] {
        let s = signatures.clone();
        set.add_fn(name, move |op, adaptor, rw| convert_call(&s, op, adaptor, rw));
    }
    set.add_fn("func.constant", move |op, _, rw| {
        let new = rw.create(OpSpec::new("llvm.mlir.addressof", op.location()).results(&[signatures.pointer]))?;
        rw.set_attr(new, "global_name", op.attr("value").expect("func.constant names a function: verified"));
        copy_discardable_attrs(rw, op, new);
        rw.replace_op(op, &[new.result(0)]);
        Ok(())
    });
}

/// All blocks change their signatures with the function, so branches may be converted before or after it.
/// Its returns change with it: they are valid only in a function of their dialect.
fn convert_func<'c>(
    signatures: &Signatures<'c, '_>,
    op: Op<'c>,
    rw: &mut ConversionRewriter<'c>,
) -> Result<(), Declined> {
    if let Some(name) = REFUSED.iter().find(|name| op.attr(name).is_some()) {
        return Err(Declined::no_match(format!("'{name}' needs more than a function")));
    }
    let ty = op.attr("function_type").and_then(|ty| ty.as_type()).expect("func.func has a type: verified");
    let function = signatures.function(ty)?;
    let body = op.region(0);
    rw.convert_region_types(body, signatures.converter)?;
    for block in body.blocks() {
        if let Some(end) = block.terminator().filter(|end| end.is("func.return")) {
            convert_return(signatures, end, rw)?;
        }
    }
    rw.set_point(InsertionPoint::Before(op));
    let attrs = op.attrs();
    let is_packed = ty.as_function().is_some_and(|(_, results)| results.len() > 1);
    let mut spec = OpSpec::new("llvm.func", op.location()).region(monopour_ir::Region::new());
    for (name, value) in &attrs {
        match *name {
            "function_type" => spec = spec.attr(name, Attr::ty(function)),
            // An attribute of one result does not apply to the struct of all.
            "res_attrs" if is_packed => {}
            _ => spec = spec.attr(name, *value),
        }
    }
    let new = rw.create(spec.attr("linkage", signatures.external))?;
    rw.take_region(new.region(0), op.region(0));
    rw.erase(op);
    Ok(())
}

fn convert_return<'c>(
    signatures: &Signatures<'c, '_>,
    op: Op<'c>,
    rw: &mut ConversionRewriter<'c>,
) -> Result<(), Declined> {
    let mut values = op.operands();
    for value in &mut values {
        *value = rw.cast(*value, convert_type(signatures.converter, value.ty())?);
    }
    rw.set_point(InsertionPoint::Before(op));
    if values.len() > 1 {
        values = vec![pack_values(signatures.cx, op, &values, rw)?];
    }
    let new = rw.create(OpSpec::new("llvm.return", op.location()).operands(&values))?;
    copy_discardable_attrs(rw, op, new);
    rw.erase(op);
    Ok(())
}

/// One struct of several values.
fn pack_values<'c>(
    cx: Context<'c>,
    op: Op<'c>,
    values: &[Value<'c>],
    rw: &mut ConversionRewriter<'c>,
) -> Result<Value<'c>, Declined> {
    let ty = pack(cx, &values.iter().map(|value| value.ty()).collect::<Vec<_>>());
    let mut all = rw.create(OpSpec::new("llvm.mlir.poison", op.location()).results(&[ty]))?.result(0);
    for (i, value) in (0..).zip(values) {
        let insert =
            rw.create(OpSpec::new("llvm.insertvalue", op.location()).operands(&[all, *value]).results(&[ty]))?;
        rw.set_attr(insert, "position", Attr::dense_i64(cx, &[i]));
        all = insert.result(0);
    }
    Ok(all)
}

/// The fields of a struct.
pub(super) fn unpack<'c>(
    rw: &mut ConversionRewriter<'c>,
    packed: Value<'c>,
    types: &[Type<'c>],
    like: Op<'c>,
) -> Result<Vec<Value<'c>>, Declined> {
    let mut values = Vec::with_capacity(types.len());
    for (i, ty) in (0..).zip(types) {
        let extract =
            rw.create(OpSpec::new("llvm.extractvalue", like.location()).operands(&[packed]).results(&[*ty]))?;
        rw.set_attr(extract, "position", Attr::dense_i64(like.context(), &[i]));
        values.push(extract.result(0));
    }
    Ok(values)
}

fn convert_call<'c>(
    signatures: &Signatures<'c, '_>,
    op: Op<'c>,
    adaptor: &Adaptor<'c, '_>,
    rw: &mut ConversionRewriter<'c>,
) -> Result<(), Declined> {
    let cx = signatures.cx;
    let types = signatures.convert_all((0..op.num_results()).map(|i| op.result(i).ty()))?;
    let count = i32::try_from(op.num_operands()).expect("operands fit 32 bits");
    let mut spec = OpSpec::new("llvm.call", op.location())
        .operands(adaptor.operands())
        .attr("operandSegmentSizes", Attr::dense_i32(cx, &[count, 0]))
        .attr("op_bundle_sizes", signatures.no_bundles)
        .attrs(&op.attrs());
    if !types.is_empty() {
        spec = spec.results(&[pack(cx, &types)]);
    }
    let new = rw.create(spec)?;
    match types.len() {
        0 | 1 => rw.replace_op(op, &new.results()),
        _ => {
            let values = unpack(rw, new.result(0), &types, op)?;
            rw.replace_op(op, &values);
        }
    }
    Ok(())
}
