//! Ops from a template and from a spec: the same text.

use super::conversion::parse;
use monopour_ir::{
    Attr, Builder, Context, InsertionPoint, Location, Module, Op, OpParts, OpSpec, OpTemplate, Rewriter, Type,
};

fn spec<'c>(module: &'c Module<'c>, name: &'static str) -> OpSpec<'c, 'static> {
    OpSpec::new(name, module.op().location())
}

fn first<'c>(module: &'c Module<'c>) -> Op<'c> {
    module.body().first_op().expect("the module holds an op")
}

fn template<'c>(module: &'c Module<'c>, spec: OpSpec<'c, '_>) -> OpTemplate<'c> {
    OpTemplate::new(module.op().context(), spec).expect("builds")
}

#[test]
fn properties_and_other_attributes_are_those_of_the_template() {
    let module = parse("%0 = \"t.def\"() : () -> i32\n");
    let (def, cx) = (first(module), module.op().context());
    let attrs =
        |spec: OpSpec<'static, 'static>| spec.attr("predicate", Attr::i64(cx, 2)).attr("t.mark", Attr::unit(cx));
    let less = template(module, attrs(spec(module, "arith.cmpi")));
    let (value, i1) = (def.result(0), Type::integer(cx, 1));
    let mut rw = Rewriter::new(cx);
    rw.set_point(InsertionPoint::After(def));
    let parts = OpParts { operands: &[value, value], results: &[i1], ..OpParts::default() };
    let like = rw.create_like(&less, def.location(), parts);
    let built = rw.create(attrs(spec(module, "arith.cmpi")).operands(&[value, value]).results(&[i1])).expect("builds");
    assert_eq!(rw.journal().len(), 2);
    assert!(module.op().verify());
    let texts = [like, built].map(|op| op.to_string().split_once('=').expect("has a result").1.to_owned());
    assert_eq!(texts[0], " arith.cmpi slt, %0, %0 {t.mark} : i32");
    assert_eq!(texts[0], texts[1]);
}

#[test]
fn a_property_that_is_no_attribute_is_taken_over() {
    let module = parse("%0 = \"t.def\"() : () -> i32\n");
    let (def, cx) = (first(module), module.op().context());
    let bits = Attr::int(Type::integer(cx, 32), 1);
    let add = template(module, spec(module, "llvm.add")).with_property("overflowFlags", bits).expect("fits");
    let mut builder = Builder::new(cx, InsertionPoint::After(def));
    let (value, ty) = (def.result(0), def.result(0).ty());
    let parts = OpParts { operands: &[value, value], results: &[ty], ..OpParts::default() };
    let new = builder.create_like(&add, def.location(), parts);
    assert_eq!(new.to_string(), "%1 = llvm.add %0, %0 overflow<nsw> : i32");
}

#[test]
fn a_property_that_does_not_fit_is_refused() {
    let module = parse("\"t.a\"() : () -> ()\n");
    let add = template(module, spec(module, "llvm.add"));
    let refused = add.with_property("overflowFlags", Attr::unit(module.op().context()));
    assert!(refused.expect_err("is no number").to_string().contains("overflowFlags"));
}

#[test]
fn each_insertion_point_is_heeded() {
    let module = parse("\"t.a\"() : () -> ()\n");
    let (op, cx, body) = (first(module), module.op().context(), module.body());
    let points = [
        (InsertionPoint::Before(op), "t.before"),
        (InsertionPoint::After(op), "t.after"),
        (InsertionPoint::Start(body), "t.start"),
        (InsertionPoint::End(body), "t.end"),
    ];
    for (point, name) in points {
        let made = template(module, spec(module, name));
        let mut builder = Builder::new(cx, point);
        builder.create_like(&made, op.location(), OpParts::default());
        builder.create_like(&made, op.location(), OpParts::default());
    }
    let names: Vec<_> = body.ops().iter().map(|op| op.name()).collect();
    let expected = ["t.start", "t.start", "t.before", "t.before", "t.a", "t.after", "t.after", "t.end", "t.end"];
    assert_eq!(names, expected);
}

#[test]
fn successors_are_those_of_the_op() {
    let text = "func.func @f() {\n  cf.br ^bb1\n^bb1:\n  return\n}\n";
    let module = Module::parse(Context::new(), text.as_bytes(), "f.mlir").expect("parses");
    let (cx, old) = (module.op().context(), module.op().find_all("cf.br")[0]);
    let branch = template(&module, spec(&module, "cf.br"));
    let mut rw = Rewriter::new(cx);
    rw.set_point(InsertionPoint::Before(old));
    let parts = OpParts { successors: &[old.successor(0)], ..OpParts::default() };
    let new = rw.create_like(&branch, Location::unknown(cx), parts);
    rw.erase(old);
    assert_eq!(new.successors(), new.block().expect("in a block").successors());
    assert!(module.op().verify());
}

#[test]
fn attributes_of_a_spec_are_properties_where_the_op_has_them() {
    let module = parse("\"t.a\"() : () -> ()\n");
    let (op, cx) = (first(module), module.op().context());
    let mut builder = Builder::new(cx, InsertionPoint::After(op));
    let i32_ty = Type::integer(cx, 32);
    let spec = |name| spec(module, name).attr("value", Attr::int(i32_ty, 7)).attr("t.mark", Attr::unit(cx));
    let known = builder.create(spec("arith.constant").results(&[i32_ty])).expect("builds");
    let unknown = builder.create(spec("t.constant")).expect("builds");
    assert_eq!(known.discardable_attrs().len(), 1);
    assert_eq!(known.attr("value"), Some(Attr::int(i32_ty, 7)));
    assert_eq!(unknown.to_string(), "\"t.constant\"() {t.mark, value = 7 : i32} : () -> ()");
}
