//! Type converters: rules by type and by value, illegal types, and materializations of the casts that are left.

use super::lower::{assert_ir, create, fails_with};
use super::{check, parse, rename};
use monopour_ir::conversion::{
    ConversionTarget, Declined, Materialization, Mode, PatternSet, TypeConversion, TypeConverter,
};
use monopour_ir::{Context, Op, OpSpec, Type, Value};

/// `index` becomes `i64`.
fn widening<'c>(cx: Context<'c>) -> TypeConverter<'c, 'c> {
    let mut converter = TypeConverter::new();
    converter.keep_others().add(move |ty| ty.is_index().then(|| TypeConversion::one(Type::integer(cx, 64))));
    converter
}

/// An op of this name from the inputs to the requested types.
fn through<'c>(
    name: &'static str,
) -> impl Fn(&mut monopour_ir::conversion::ConversionRewriter<'c>, &Materialization<'c, '_>) -> Option<Vec<Value<'c>>> {
    move |rw, wanted| {
        let spec = OpSpec::new(name, wanted.location).operands(wanted.inputs).results(wanted.types);
        Some(rw.create(spec).expect("builds").results())
    }
}

/// `from` becomes `to` in the types of the adaptor, with i64 results.
fn widen<'p>(patterns: &mut PatternSet<'_, 'p>, from: &'p str, to: &'p str) {
    patterns.add_fn(from, move |op: Op, adaptor, rw| {
        let types = vec![Type::integer(op.context(), 64); op.num_results()];
        let new = create(rw, to, op, adaptor.operands(), &types)?;
        rw.replace_op(op, &new.results());
        Ok(())
    });
}

/// `t.a` and `t.b` are converted, `t.def` and `t.use` stay.
const TEXT: &str = r#"
%0 = "t.def"() : () -> index
%1 = "t.a"(%0) : (index) -> index
"t.use"(%0, %1) : (index, index) -> ()
"t.b"(%0, %1) : (index, index) -> ()
"#;

fn target<'c>() -> ConversionTarget<'c, 'static> {
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a").illegal_op("t.b").illegal_op("t.cast");
    target
}

fn patterns<'c, 'p>(converter: &'p TypeConverter<'c, 'p>) -> PatternSet<'c, 'p> {
    let mut patterns = PatternSet::with_converter(converter);
    widen(&mut patterns, "t.a", "n.a");
    widen(&mut patterns, "t.b", "n.b");
    patterns
}

#[test]
fn casts_to_and_from_ops_that_stay_become_ops() {
    let module = parse(TEXT);
    let mut converter = widening(module.context());
    converter.add_source_materialization(through("n.to_old")).add_target_materialization(through("n.to_new"));
    let stats = check(module, &target(), &patterns(&converter), Mode::Full).expect("converts");
    assert_eq!(stats.casts_left, 0);
    assert_ir(
        module,
        r#"
%0 = "t.def"() : () -> index
%1 = "n.to_new"(%0) : (index) -> i64
%2 = "n.a"(%1) : (i64) -> i64
%3 = "n.to_old"(%2) : (i64) -> index
"t.use"(%0, %3) : (index, index) -> ()
"n.b"(%1, %2) : (i64, i64) -> ()
"#,
    );
}

#[test]
fn the_last_materialization_is_asked_first_and_may_pass() {
    let module = parse(TEXT);
    let mut converter = widening(module.context());
    converter.add_source_materialization(through("n.first")).add_source_materialization(|_, _| None);
    converter.add_target_materialization(through("n.first")).add_target_materialization(through("n.second"));
    check(module, &target(), &patterns(&converter), Mode::Full).expect("converts");
    assert_ir(
        module,
        r#"
%0 = "t.def"() : () -> index
%1 = "n.second"(%0) : (index) -> i64
%2 = "n.a"(%1) : (i64) -> i64
%3 = "n.first"(%2) : (i64) -> index
"t.use"(%0, %3) : (index, index) -> ()
"n.b"(%1, %2) : (i64, i64) -> ()
"#,
    );
}

#[test]
fn what_a_materialization_makes_is_converted_further() {
    let module = parse(TEXT);
    let mut converter = widening(module.context());
    converter.add_source_materialization(through("t.cast")).add_target_materialization(through("t.cast"));
    let mut patterns = patterns(&converter);
    patterns.add_fn("t.cast", |op, _, rw| {
        let types: Vec<Type> = op.results().iter().map(|r| r.ty()).collect();
        let half = create(rw, "n.half", op, &op.operands(), &types)?;
        let new = create(rw, "n.cast", op, &half.results(), &types)?;
        rw.replace_op(op, &new.results());
        Ok(())
    });
    check(module, &target(), &patterns, Mode::Full).expect("converts");
    assert_ir(
        module,
        r#"
%0 = "t.def"() : () -> index
%1 = "n.half"(%0) : (index) -> i64
%2 = "n.cast"(%1) : (i64) -> i64
%3 = "n.a"(%2) : (i64) -> i64
%4 = "n.half"(%3) : (i64) -> index
%5 = "n.cast"(%4) : (index) -> index
"t.use"(%0, %5) : (index, index) -> ()
"n.b"(%2, %3) : (i64, i64) -> ()
"#,
    );
}

#[test]
fn casts_that_no_materialization_takes_are_left() {
    let module = parse(TEXT);
    let mut converter = widening(module.context());
    // Values of other types than the requested ones, and the cast itself, are not accepted.
    converter.add_source_materialization(|_, wanted| Some(wanted.inputs.to_vec()));
    converter.add_target_materialization(|rw, wanted| Some(vec![rw.cast(wanted.inputs[0], wanted.types[0])]));
    let stats = check(module, &target(), &patterns(&converter), Mode::Partial).expect("converts");
    assert_eq!(stats.casts_left, 2);
    assert_ir(
        module,
        r#"
%0 = "t.def"() : () -> index
%1 = unrealized_conversion_cast %0 : index to i64
%2 = "n.a"(%1) : (i64) -> i64
%3 = unrealized_conversion_cast %2 : i64 to index
"t.use"(%0, %3) : (index, index) -> ()
"n.b"(%1, %2) : (i64, i64) -> ()
"#,
    );
}

#[test]
fn one_direction_is_enough_for_one_direction() {
    let module = parse(TEXT);
    let mut converter = widening(module.context());
    converter.add_target_materialization(through("n.to_new"));
    let errors = check(module, &target(), &patterns(&converter), Mode::Full).expect_err("a cast is left");
    assert_eq!(
        errors.to_string(),
        r#"
error[I0013]: a cast from i64 to index is left after a full conversion
  --> test.mlir:3:6
  note: 't.use' reads it as operand 1 at test.mlir:4:1
  help: convert these users too, or call the conversion in partial mode"#
            .trim_start()
    );
}

#[test]
fn materializations_that_a_pattern_undoes_are_stopped() {
    let module = parse(TEXT);
    let mut converter = widening(module.context());
    converter.add_source_materialization(through("t.cast"));
    let mut patterns = patterns(&converter);
    patterns.add_fn("t.cast", |op, adaptor, rw| {
        rw.replace_op(op, adaptor.operands());
        Ok(())
    });
    fails_with(
        module,
        &target(),
        &patterns,
        r#"
error[I0011]: patterns keep undoing the materialization of a cast from i64 to index
  --> test.mlir:3:6
  help: make the op that the materialization creates legal in the target, or let the pattern decline
"#,
    );
}

#[test]
fn a_materialization_that_erases_what_is_not_its_own_is_stopped() {
    let module = parse(TEXT);
    let mut converter = widening(module.context());
    converter.add_target_materialization(|rw, wanted| {
        rw.erase(wanted.inputs[0].uses()[0].op.block().expect("in a block").ops()[0]);
        None
    });
    fails_with(
        module,
        &target(),
        &patterns(&converter),
        r#"
error[I0012]: a materialization erases 't.def', which 't.use' still uses
  --> test.mlir:2:6
"#,
    );
}

/// As [`through`], after creating and erasing an op.
fn with_a_trial<'c>(
    rw: &mut monopour_ir::conversion::ConversionRewriter<'c>,
    wanted: &Materialization<'c, '_>,
) -> Option<Vec<Value<'c>>> {
    let trial = rw.create(OpSpec::new("t.a", wanted.location)).expect("builds");
    rw.erase(trial);
    through("n.cast")(rw, wanted)
}

#[test]
fn a_materialization_may_erase_what_it_made() {
    let module = parse(TEXT);
    let mut converter = widening(module.context());
    converter.add_source_materialization(with_a_trial).add_target_materialization(with_a_trial);
    check(module, &target(), &patterns(&converter), Mode::Full).expect("converts");
    assert_ir(
        module,
        r#"
%0 = "t.def"() : () -> index
%1 = "n.cast"(%0) : (index) -> i64
%2 = "n.a"(%1) : (i64) -> i64
%3 = "n.cast"(%2) : (i64) -> index
"t.use"(%0, %3) : (index, index) -> ()
"n.b"(%1, %2) : (i64, i64) -> ()
"#,
    );
}

#[test]
fn several_values_are_materialized_as_one_and_one_as_several() {
    let module = parse(
        r#"
%0 = "t.def"() : () -> complex<f32>
%1 = "t.a"(%0) : (complex<f32>) -> complex<f32>
"t.use"(%1) : (complex<f32>) -> ()
"#,
    );
    let mut converter = super::lower::converter(module.context());
    converter.add_source_materialization(through("n.join")).add_target_materialization(through("n.split"));
    let mut patterns = PatternSet::with_converter(&converter);
    super::lower::retarget(&mut patterns, &converter, "t.a", "n.a");
    check(module, &target(), &patterns, Mode::Full).expect("converts");
    assert_ir(
        module,
        r#"
%0 = "t.def"() : () -> complex<f32>
%1:2 = "n.split"(%0) : (complex<f32>) -> (f32, f32)
%2:2 = "n.a"(%1#0, %1#1) : (f32, f32) -> (f32, f32)
%3 = "n.join"(%2#0, %2#1) : (f32, f32) -> complex<f32>
"t.use"(%3) : (complex<f32>) -> ()
"#,
    );
}

#[test]
fn a_rule_may_look_at_the_value() {
    // Indices defined by a constant fit eight bits, all others 64.
    let module = parse(
        r#"
%c = arith.constant 3 : index
%0 = "t.def"() : () -> index
"t.b"(%c, %0) : (index, index) -> ()
"#,
    );
    let cx = module.context();
    let mut converter = widening(cx);
    converter.add_for_values(move |value| {
        value.constant_int().filter(|n| *n < 128)?;
        Some(TypeConversion::one(Type::integer(cx, 8)))
    });
    let constant = module.op().find_all("arith.constant")[0].result(0);
    let types = |value| converter.convert_value(value).map(|types| types[0].to_string());
    assert_eq!(types(constant).as_deref(), Some("i8"));
    assert_eq!(types(module.op().find_all("t.def")[0].result(0)).as_deref(), Some("i64"));
    // Such rules are skipped for a type without a value.
    assert_eq!(converter.convert_to_one(constant.ty()).map(|ty| ty.to_string()).as_deref(), Some("i64"));
    check(module, &target(), &patterns(&converter), Mode::Partial).expect("converts");
    assert_ir(
        module,
        r#"
%c3 = arith.constant 3 : index
%0 = unrealized_conversion_cast %c3 : index to i8
%1 = "t.def"() : () -> index
%2 = unrealized_conversion_cast %1 : index to i64
"n.b"(%0, %2) : (i8, i64) -> ()
"#,
    );
}

#[test]
fn an_operand_of_a_type_that_is_not_converted_is_the_reason() {
    let module = parse("%0 = \"t.def\"() : () -> f32\n%1 = \"t.a\"(%0) : (f32) -> index\n");
    let mut converter = widening(module.context());
    converter.add(|ty| ty.is_float().then_some(TypeConversion::Illegal));
    fails_with(
        module,
        &target(),
        &patterns(&converter),
        r#"
error[I0010]: 't.a' is illegal in the conversion target and no pattern converts it
  --> test.mlir:2:6
  note: operand 0 has type f32, which the type converter does not convert
"#,
    );
}

#[test]
fn a_block_argument_of_a_type_that_is_not_converted_keeps_all_signatures() {
    let module = parse(
        "func.func @f(%a: index) {\n  %0 = \"t.def\"() : () -> f32\n  cf.br ^bb1(%0 : f32)\n^bb1(%b: f32):\n  return\n}\n",
    );
    let before = module.op().to_string();
    let mut converter = widening(module.context());
    converter.add(|ty| ty.is_float().then_some(TypeConversion::Illegal));
    let mut target = target();
    target.illegal_op("func.func");
    let mut patterns = PatternSet::with_converter(&converter);
    patterns.add_fn("func.func", |op, _, rw| rw.convert_region_types(op.region(0), &converter));
    fails_with(
        module,
        &target,
        &patterns,
        r#"
error[I0010]: 'func.func' is illegal in the conversion target and no pattern converts it
  --> test.mlir:1:1
  note: pattern 'convert func.func' declined: a block argument has type f32, which is not converted
"#,
    );
    assert_eq!(module.op().to_string(), before);
}

#[test]
fn the_last_rule_that_knows_a_type_wins_and_none_means_illegal() {
    let cx = Context::new();
    let (index, i64_ty, i32_ty) = (Type::index(cx), Type::integer(cx, 64), Type::integer(cx, 32));
    let mut converter = TypeConverter::new();
    assert_eq!(converter.convert(index), None);
    converter.add(move |ty| ty.is_index().then(|| TypeConversion::one(i64_ty)));
    assert_eq!(converter.convert_to_one(index), Some(i64_ty));
    converter.add(move |ty| ty.is_index().then(|| TypeConversion::one(i32_ty)));
    assert_eq!(converter.convert_to_one(index), Some(i32_ty));
    converter.add(|ty| ty.is_index().then_some(TypeConversion::Illegal));
    assert_eq!((converter.convert(index), converter.convert_all(&[index])), (None, None));
    converter.add(move |ty| ty.is_index().then(|| TypeConversion::To(vec![i32_ty, i32_ty])));
    assert_eq!(converter.convert_all(&[index, index]), Some(vec![i32_ty; 4]));
    assert_eq!((converter.convert_to_one(index), converter.convert(i32_ty)), (None, None));
    converter.keep_others();
    assert!(converter.is_legal(i32_ty) && !converter.is_legal(index));
}

#[test]
fn without_a_converter_the_newest_value_is_seen() {
    let module = parse(TEXT);
    let mut patterns = PatternSet::new();
    widen(&mut patterns, "t.a", "n.a");
    patterns.add_fn("t.b", |op, adaptor, _| {
        let (old, new) = (op.operand(1).ty(), adaptor.operand(1).ty());
        Err(Declined::no_match(format!("{old} became {new}, {} stays", adaptor.operand(0).ty())))
    });
    patterns.add(rename("t.b", "n.b"));
    check(module, &target(), &patterns, Mode::Partial).expect("converts");
    assert_ir(
        module,
        r#"
%0 = "t.def"() : () -> index
%1 = "n.a"(%0) : (index) -> i64
%2 = unrealized_conversion_cast %1 : i64 to index
"t.use"(%0, %2) : (index, index) -> ()
"n.b"(%0, %1) : (index, i64) -> ()
"#,
    );
}
