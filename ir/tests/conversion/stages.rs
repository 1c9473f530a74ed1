//! Conversions in stages: the order of functions, branches and arithmetic does not matter.

use super::lower::{CAST, assert_ir, body_text, converter, create};
use super::{parse, rename};
use monopour_ir::conversion::{
    ConversionOptions, ConversionTarget, Declined, Mode, PatternSet, Stage, TypeConverter, convert_in_stages,
};
use monopour_ir::{Attr, Module, Op, OpSpec, Region, Type, Value};

/// Index and i64 block arguments, a loop of blocks, and a branch with one block as both successors.
const TEXT: &str = r#"
func.func @f(%n: index, %c: i1, %k: i64) -> index {
  %0 = arith.addi %n, %n : index
  cf.br ^bb1(%0, %k : index, i64)
^bb1(%a: index, %b: i64):
  %1 = arith.muli %a, %n : index
  %2 = arith.addi %b, %k : i64
  cf.cond_br %c, ^bb1(%1, %2 : index, i64), ^bb2(%a : index)
^bb2(%r: index):
  %3 = arith.addi %r, %1 : index
  cf.cond_br %c, ^bb3(%3, %r : index, index), ^bb3(%1, %3 : index, index)
^bb3(%x: index, %y: index):
  %4 = arith.muli %x, %y : index
  return %4 : index
}
func.func @g(%a: index) -> index {
  return %a : index
}
"#;

/// The target and patterns for one of the dialects.
struct Lowering<'c, 'a> {
    name: &'static str,
    target: ConversionTarget<'c, 'a>,
    patterns: PatternSet<'c, 'a>,
}

fn stage<'c, 'a>(lowering: &'a Lowering<'c, 'a>) -> Stage<'c, 'a> {
    let Lowering { name, target, patterns } = lowering;
    Stage { name, target, patterns, mode: Mode::Partial }
}

/// `func.func` becomes `llvm.func`, with its returns; of its blocks only the entry changes.
fn func<'c, 'a>(converter: &'a TypeConverter<'c, 'a>) -> Lowering<'c, 'a> {
    let mut lowering = of_dialect("func", converter);
    func_patterns(&mut lowering.patterns, converter);
    lowering
}

fn of_dialect<'c, 'a>(name: &'static str, converter: &'a TypeConverter<'c, 'a>) -> Lowering<'c, 'a> {
    let mut target = ConversionTarget::new();
    target.illegal_dialect(name);
    Lowering { name, target, patterns: PatternSet::with_converter(converter) }
}

fn func_patterns<'c, 'a>(patterns: &mut PatternSet<'c, 'a>, converter: &'a TypeConverter<'c, 'a>) {
    patterns.add_fn("func.func", move |op, _, rw| lower_function(op, converter, rw));
}

fn lower_function<'c>(
    op: Op<'c>,
    converter: &TypeConverter<'c, '_>,
    rw: &mut monopour_ir::conversion::ConversionRewriter<'c>,
) -> Result<(), Declined> {
    let (inputs, results) = op.function_type().expect("a function has a type");
    let (inputs, results) = (converter.convert_all(&inputs), converter.convert_all(&results));
    let (Some(inputs), Some(results)) = (inputs, results) else { return Err(Declined::no_match("a type")) };
    let entry = op.body().ok_or_else(|| Declined::no_match("only a declaration"))?;
    rw.convert_block_signature(entry, &inputs.iter().map(|ty| vec![*ty]).collect::<Vec<_>>())?;
    for end in op.find_all("func.return") {
        let values: Vec<Value> = end.operands().iter().zip(&results).map(|(v, ty)| rw.cast(*v, *ty)).collect();
        rw.set_point(monopour_ir::InsertionPoint::Before(end));
        create(rw, "llvm.return", end, &values, &[])?;
        rw.erase(end);
    }
    let body = Region::new();
    rw.take_region(body, op.region(0));
    rw.set_point(monopour_ir::InsertionPoint::Before(op));
    let list = |types: &[Type<'c>]| types.iter().map(|ty| ty.to_string()).collect::<Vec<_>>().join(", ");
    let ty = format!("!llvm.func<{} ({})>", list(&results), list(&inputs));
    let ty = Attr::ty(Type::parse(op.context(), &ty).expect("a function type"));
    let linkage = Attr::parse(op.context(), "#llvm.linkage<external>").expect("a linkage");
    let name = op.attr("sym_name").expect("a function has a name");
    let spec = OpSpec::new("llvm.func", op.location()).attr("function_type", ty).attr("linkage", linkage);
    rw.create(spec.attr("sym_name", name).region(body))?;
    rw.erase(op);
    Ok(())
}

/// Branches change with their successors.
fn cf<'c, 'a>(converter: &'a TypeConverter<'c, 'a>) -> Lowering<'c, 'a> {
    let mut lowering = of_dialect("cf", converter);
    cf_patterns(&mut lowering.patterns, converter);
    lowering
}

fn cf_patterns<'c, 'a>(patterns: &mut PatternSet<'c, 'a>, converter: &'a TypeConverter<'c, 'a>) {
    for (from, to) in [("cf.br", "llvm.br"), ("cf.cond_br", "llvm.cond_br")] {
        patterns.add_fn(from, move |op, adaptor, rw| {
            for block in op.successors() {
                let types = block.args().into_iter().map(|arg| converter.convert(arg.ty()).map(|types| types.to_vec()));
                let types: Option<Vec<Vec<Type>>> = types.collect();
                rw.convert_block_signature(block, &types.ok_or_else(|| Declined::no_match("a type"))?)?;
            }
            let mut spec = OpSpec::new(to, op.location()).operands(adaptor.operands());
            if let Some(sizes) = op.attr("operandSegmentSizes") {
                spec = spec.attr("operandSegmentSizes", sizes);
            }
            rw.create(op.successors().into_iter().fold(spec, OpSpec::successor))?;
            rw.erase(op);
            Ok(())
        });
    }
}

fn arith<'c, 'a>(converter: &'a TypeConverter<'c, 'a>) -> Lowering<'c, 'a> {
    let mut lowering = of_dialect("arith", converter);
    arith_patterns(&mut lowering.patterns, converter);
    lowering
}

fn arith_patterns<'c, 'a>(patterns: &mut PatternSet<'c, 'a>, converter: &'a TypeConverter<'c, 'a>) {
    for (from, to) in [("arith.addi", "llvm.add"), ("arith.muli", "llvm.mul")] {
        patterns.add_fn(from, move |op, adaptor, rw| {
            let ty = converter.convert_to_one(op.result(0).ty()).ok_or_else(|| Declined::no_match("a type"))?;
            let new = create(rw, to, op, adaptor.operands(), &[ty])?;
            rw.replace_op(op, &new.results());
            Ok(())
        });
    }
}

/// Casts of earlier stages that go there and back, or are unused.
fn reconcile<'c, 'a>() -> Lowering<'c, 'a> {
    let mut target = ConversionTarget::new();
    target.dynamically_legal_op(CAST, |op| !op.result(0).is_unused() && there_and_back(op).is_none());
    let mut patterns = PatternSet::new();
    patterns.add_fn(CAST, |op, _, rw| {
        // The cast before this one may have lost its last use: it is visited again.
        let before = op.operand(0).defining_op().filter(|def| def.is(CAST));
        if let Some(source) = there_and_back(op) {
            rw.replace_op(op, &[source]);
        } else {
            rw.erase(op);
        }
        rw.note(before.map(monopour_ir::Change::Modified));
        Ok(())
    });
    Lowering { name: "reconcile", target, patterns }
}

/// The source of a cast there and back to the same type.
fn there_and_back<'c>(cast: Op<'c>) -> Option<Value<'c>> {
    let before = cast.operand(0).defining_op().filter(|def| def.is(CAST))?;
    Some(before.operand(0)).filter(|source| source.ty() == cast.result(0).ty())
}

/// Converts in this order, verified after every pattern; returns the number of casts after each stage.
fn convert(module: &Module, names: &[&str]) -> Vec<usize> {
    let converter = converter(module.context());
    let lowerings = [func(&converter), cf(&converter), arith(&converter), reconcile()];
    let find = |name: &&str| lowerings.iter().find(|l| l.name == *name).expect("a lowering");
    let stages: Vec<Stage<'_, '_>> = names.iter().map(|name| stage(find(name))).collect();
    let verified = || ConversionOptions { verify_each: true, ..Default::default() };
    let stats = convert_in_stages(module.op(), &stages, verified).expect("converts");
    stats.iter().map(|stats| stats.casts_left).collect()
}

const ORDERS: [[&str; 3]; 6] = [
    ["func", "cf", "arith"],
    ["cf", "func", "arith"],
    ["func", "arith", "cf"],
    ["cf", "arith", "func"],
    ["arith", "func", "cf"],
    ["arith", "cf", "func"],
];

#[test]
fn the_order_of_stages_does_not_matter() {
    let results = ORDERS.map(|[first, second, third]| {
        let module = parse(TEXT);
        convert(module, &[first, second, third, "reconcile"]);
        assert_eq!(module.op().find_all(CAST).len(), 0, "{first}, {second}, {third}");
        module
    });
    for (result, order) in results.iter().zip(ORDERS) {
        assert_eq!(body_text(result), body_text(results[0]), "{order:?}");
    }
    assert_ir(
        results[0],
        r#"
llvm.func @f(%arg0: i64, %arg1: i1, %arg2: i64) -> i64 {
  %0 = llvm.add %arg0, %arg0 : i64
  llvm.br ^bb1(%0, %arg2 : i64, i64)
^bb1(%1: i64, %2: i64):  // 2 preds: ^bb0, ^bb1
  %3 = llvm.mul %1, %arg0 : i64
  %4 = llvm.add %2, %arg2 : i64
  llvm.cond_br %arg1, ^bb1(%3, %4 : i64, i64), ^bb2(%1 : i64)
^bb2(%5: i64):  // pred: ^bb1
  %6 = llvm.add %5, %3 : i64
  llvm.cond_br %arg1, ^bb3(%6, %5 : i64, i64), ^bb3(%3, %6 : i64, i64)
^bb3(%7: i64, %8: i64):  // 2 preds: ^bb2, ^bb2
  %9 = llvm.mul %7, %8 : i64
  llvm.return %9 : i64
}
llvm.func @g(%arg0: i64) -> i64 {
  llvm.return %arg0 : i64
}
"#,
    );
}

#[test]
fn functions_and_branches_alone_leave_casts_to_the_ops_between_them() {
    let text = |order: &[&str]| {
        let module = parse(TEXT);
        convert(module, order);
        (body_text(module), module)
    };
    let (func_first, module) = text(&["func", "cf", "reconcile"]);
    let (cf_first, _) = text(&["cf", "func", "reconcile"]);
    assert_eq!(func_first, cf_first);
    // One per block argument that changed, and one per result that a branch or a return reads.
    assert_eq!(module.op().find_all(CAST).len(), 5 + 4);
    assert!(module.op().find_all("func.func").is_empty() && module.op().find_all("cf.br").is_empty());
}

#[test]
fn one_stage_for_all_gives_the_same_without_reconciling() {
    let module = parse(TEXT);
    let converter = converter(module.context());
    let mut target = ConversionTarget::new();
    target.illegal_dialect("func").illegal_dialect("cf").illegal_dialect("arith");
    let mut patterns = PatternSet::with_converter(&converter);
    func_patterns(&mut patterns, &converter);
    cf_patterns(&mut patterns, &converter);
    arith_patterns(&mut patterns, &converter);
    let stats = super::check(module, &target, &patterns, Mode::Full).expect("converts");
    assert_eq!(stats.casts_left, 0);
    let in_stages = parse(TEXT);
    convert(in_stages, &["func", "cf", "arith", "reconcile"]);
    assert_eq!(body_text(module), body_text(in_stages));
}

#[test]
fn a_note_names_the_stage_that_fails_and_later_stages_do_not_run() {
    let module = parse("\"t.a\"() : () -> ()\n\"t.c\"() : () -> ()\n");
    let mut targets = [ConversionTarget::new(), ConversionTarget::new(), ConversionTarget::new()];
    targets[0].illegal_op("t.a");
    targets[1].illegal_op("t.b").illegal_op("t.c");
    targets[2].illegal_op("t.d");
    let mut patterns = PatternSet::new();
    patterns.add(rename("t.a", "t.b")).add(rename("t.c", "t.d")).add(rename("t.d", "t.e"));
    let names = ["first", "second", "third"];
    let stages: Vec<Stage<'_, '_>> = names
        .iter()
        .zip(&targets)
        .map(|(name, target)| Stage { name, target, patterns: &patterns, mode: Mode::Full })
        .collect();
    let errors = convert_in_stages(module.op(), &stages, ConversionOptions::default).expect_err("t.b stays");
    assert_eq!(
        errors.to_string(),
        r#"
error[I0010]: 't.b' is illegal in the conversion target and no pattern converts it
  --> test.mlir:1:1
  note: no pattern has 't.b' as its root
  note: in the stage 'second'
"#
        .trim_matches('\n'),
        "the diagnostics are:\n{errors}\n"
    );
    assert_ir(module, "\"t.b\"() : () -> ()\n\"t.d\"() : () -> ()");
}
