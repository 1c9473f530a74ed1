//! Conversion in place, on a clone, and as an analysis.

use super::lower::{assert_ir, body_text, converter, create, functions, functions_target, retarget, snapshot};
use super::{parse, rename};
use monopour_ir::conversion::{ConversionOptions, convert_with};
use monopour_ir::conversion::{
    ConversionTarget, Declined, Mode, PatternSet, WorklistOrder, analyze_conversion, convert, on_clone,
};
use monopour_ir::{Attr, Module, Op, WalkOrder};

const TEXT: &str = r#"
module attributes {t.before = 1 : i64, t.stays} {
  func.func @f(%x: complex<f32>, %y: index) -> index {
    %0 = "t.a"(%x, %y) {large = dense<[1, 2, 3]> : tensor<3xi64>} : (complex<f32>, index) -> index
    "t.b"() ({
      "t.a"() : () -> ()
    }) : () -> ()
    %1 = call @f(%x, %0) : (complex<f32>, index) -> index
    return %1 : index
  }
}
"#;

/// Converts functions and `t.a`; `t.b` only if `with_b`.
fn convert_all(root: Op, with_b: bool) -> Result<(), monopour_ir::Diagnostics> {
    let converter = converter(root.context());
    let mut target = ConversionTarget::new();
    target.illegal_dialect("t");
    functions_target(&mut target, &converter);
    let mut patterns = PatternSet::with_converter(&converter);
    functions(&mut patterns, &converter);
    retarget(&mut patterns, &converter, "t.a", "n.a");
    if with_b {
        patterns.add_fn("t.b", |op, _, rw| {
            let body = monopour_ir::Region::new();
            rw.take_region(body, op.region(0));
            rw.create(monopour_ir::OpSpec::new("n.b", op.location()).region(body))?;
            rw.erase(op);
            // The module's own attributes change too.
            let module = op_of_module(rw);
            rw.remove_attr(module, "t.before");
            rw.set_attr(module, "t.after", Attr::i64(module.context(), 2));
            Ok(())
        });
    }
    convert(root, &target, &patterns, Mode::Full).map(|_| ())
}

/// The module that the newest op is in.
fn op_of_module<'c>(rw: &monopour_ir::Rewriter<'c>) -> Op<'c> {
    let newest = rw.journal().iter().rev().find_map(|change| match change {
        monopour_ir::Change::Created(op) => Some(*op),
        _ => None,
    });
    newest.expect("an op was created").ancestor("builtin.module").expect("in a module")
}

#[test]
fn a_clone_that_fails_leaves_the_input_bit_for_bit() {
    let module = parse(TEXT);
    let before = snapshot(module);
    let handles = module.op().nested(WalkOrder::Pre);
    let errors = on_clone(module.op(), |clone| convert_all(clone, false)).expect_err("t.b cannot be converted");
    assert_eq!(errors.0.len(), 1);
    assert_eq!(snapshot(module), before);
    // The ops are the same objects.
    assert_eq!(module.op().nested(WalkOrder::Pre), handles);
    // In place, the rest has been converted, and is valid.
    convert_all(module.op(), false).expect_err("t.b cannot be converted");
    module.op().verify_with_diagnostics().expect("valid");
    assert_eq!((module.op().find_all("n.a").len(), module.op().find_all("t.b").len()), (2, 1));
}

#[test]
fn a_clone_that_succeeds_is_what_in_place_gives() {
    let (on_copy, in_place) = (parse(TEXT), parse(TEXT));
    let root = on_copy.op();
    on_clone(root, |clone| convert_all(clone, true)).expect("converts");
    convert_all(in_place.op(), true).expect("converts");
    assert_eq!(snapshot(on_copy), snapshot(in_place));
    assert_eq!(on_copy.op(), root, "the module is the same op");
    let attrs: Vec<&str> = root.attrs().into_iter().map(|(name, _)| name).collect();
    assert_eq!(attrs, ["t.after", "t.stays"]);
    assert_ir(
        on_copy,
        r#"
func.func @f(%arg0: f32, %arg1: f32, %arg2: i64) -> i64 {
  %0 = "n.a"(%arg0, %arg1, %arg2) : (f32, f32, i64) -> i64
  "n.b"() ({
    "n.a"() : () -> ()
  }) : () -> ()
  %1 = call @f(%arg0, %arg1, %0) : (f32, f32, i64) -> i64
  return %1 : i64
}
"#,
    );
}

#[test]
fn a_conversion_on_a_clone_may_fail_at_its_last_stage() {
    let module = parse("\"t.a\"() : () -> ()\n");
    let before = snapshot(module);
    let (mut first, mut second) = (ConversionTarget::new(), ConversionTarget::new());
    first.illegal_op("t.a");
    second.illegal_op("t.b");
    let mut patterns = PatternSet::new();
    patterns.add(rename("t.a", "t.b"));
    let errors = on_clone(module.op(), |clone| {
        convert(clone, &first, &patterns, Mode::Full)?;
        convert(clone, &second, &patterns, Mode::Full)
    });
    assert_eq!(errors.expect_err("t.b stays").0[0].code, "I0010");
    assert_eq!(snapshot(module), before);
}

/// The result of the analysis: the names and positions of ops.
fn analyzed<'c>(module: &'c Module<'c>, target: &ConversionTarget<'c, '_>, patterns: &PatternSet<'c, '_>) -> String {
    let before = snapshot(module);
    let analysis = analyze_conversion(module.op(), target, patterns).expect("no contract is broken");
    assert_eq!(snapshot(module), before, "nothing changes");
    let list = |ops: &[Op<'c>]| {
        let names: Vec<String> = ops.iter().map(|op| format!("{} {}", op.name(), op.location())).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    format!(
        "convertible: {}\nblocked: {}\n{}",
        list(&analysis.convertible),
        list(&analysis.blocked),
        analysis.diagnostics
    )
    .trim()
    .to_owned()
}

#[test]
fn the_analysis_says_what_would_be_converted_and_what_would_not() {
    let module = parse(
        r#"
"t.a"() : () -> ()
"t.b"() ({
  "t.a"() : () -> ()
  "t.c"() : () -> ()
}) : () -> ()
"t.x"() : () -> ()
"t.d"() : () -> ()
"#,
    );
    let mut target = ConversionTarget::new();
    target.illegal_dialect("t").legal_op("t.x");
    let mut patterns = PatternSet::new();
    patterns.add(rename("t.a", "n.a"));
    patterns.add_fn("t.b", |_, _, _| Err(Declined::no_match("has a region")));
    // Its result is illegal and cannot be converted: the op is blocked.
    patterns.add(rename("t.c", "t.never")).add(rename("t.d", "t.a"));
    let text = analyzed(module, &target, &patterns);
    assert_eq!(
        text,
        r#"
convertible: t.a test.mlir:2:1, t.a test.mlir:4:3, t.d test.mlir:8:1
blocked: t.b test.mlir:3:1, t.c test.mlir:5:3
error[I0010]: 't.b' is illegal in the conversion target and no pattern converts it
  --> test.mlir:3:1
  note: pattern 'convert t.b' declined: has a region
error[I0010]: 't.never' is illegal in the conversion target and no pattern converts it
  --> test.mlir:5:3
  note: no pattern has 't.never' as its root
  note: created or changed by pattern 'rename to t.never' on 't.c'
"#
        .trim_matches('\n'),
        "the text is:\n{text}\n"
    );
}

#[test]
fn the_analysis_lists_unknown_ops_only_where_a_pattern_converts_them() {
    let module = parse("\"t.a\"() : () -> ()\n\"t.b\"() : () -> ()\n\"t.c\"() : () -> ()\n");
    let mut target = ConversionTarget::new();
    target.unknown_is_legal(false).legal_dialect("n").illegal_op("t.c").legal_dialect("builtin");
    let mut patterns = PatternSet::new();
    patterns.add(rename("t.a", "n.a")).add(rename("t.c", "t.b"));
    let text = analyzed(module, &target, &patterns);
    assert_eq!(
        text,
        r#"
convertible: t.a test.mlir:1:1, t.c test.mlir:3:1
blocked: none
"#
        .trim_matches('\n'),
        "the text is:\n{text}\n"
    );
}

#[test]
fn the_analysis_does_not_blame_an_op_for_what_a_materialization_makes() {
    let module = parse("%0 = \"t.a\"() : () -> index\n\"t.use\"(%0) : (index) -> ()\n");
    let mut converter = converter(module.context());
    converter.add_source_materialization(|rw, wanted| {
        let spec = monopour_ir::OpSpec::new("t.never", wanted.location).operands(wanted.inputs).results(wanted.types);
        Some(rw.create(spec).expect("builds").results())
    });
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a").illegal_op("t.never");
    let mut patterns = PatternSet::with_converter(&converter);
    retarget(&mut patterns, &converter, "t.a", "n.a");
    let text = analyzed(module, &target, &patterns);
    assert_eq!(
        text,
        r#"
convertible: t.a test.mlir:1:6
blocked: none
error[I0010]: 't.never' is illegal in the conversion target and no pattern converts it
  --> test.mlir:1:6
  note: no pattern has 't.never' as its root
"#
        .trim_matches('\n'),
        "the text is:\n{text}\n"
    );
}

#[test]
fn the_analysis_stops_at_a_pattern_that_breaks_its_contract() {
    let module = parse("\"t.a\"() : () -> ()\n");
    let before = snapshot(module);
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a");
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |_, _, _| Ok(()));
    let errors = analyze_conversion(module.op(), &target, &patterns).expect_err("a broken contract");
    assert_eq!(errors.0[0].code, "I0012");
    assert_eq!(snapshot(module), before);
}

#[test]
fn the_result_does_not_depend_on_the_order_of_the_worklist() {
    let text = "%0 = \"t.a\"() : () -> index\n%1 = \"t.a\"() : () -> index\n\"t.b\"(%0, %1) : (index, index) -> ()\n";
    let in_order = |order: WorklistOrder| {
        let module = parse(text);
        let mut target = ConversionTarget::new();
        target.illegal_dialect("t");
        let mut patterns = PatternSet::new();
        for (from, to) in [("t.a", "t.c"), ("t.c", "n.c")] {
            patterns.add_fn(from, move |op, adaptor, rw| {
                let wide = monopour_ir::Type::integer(op.context(), if to == "n.c" { 64 } else { 32 });
                create(rw, "t.d", op, &[], &[])?;
                let new = create(rw, to, op, adaptor.operands(), &[wide])?;
                create(rw, "t.d", op, &[], &[])?;
                rw.replace_op(op, &new.results());
                Ok(())
            });
        }
        patterns.add(rename("t.b", "n.b")).add(rename("t.d", "n.d"));
        let options = ConversionOptions { worklist_order: order, verify_each: true, ..Default::default() };
        convert_with(module.op(), &target, &patterns, Mode::Full, options).expect("converts");
        body_text(module)
    };
    let depth_first = in_order(WorklistOrder::DepthFirst);
    assert_eq!(in_order(WorklistOrder::LastFirst), depth_first);
    for seed in 0..20 {
        assert_eq!(in_order(WorklistOrder::Shuffled(seed)), depth_first);
    }
}

#[test]
fn the_ir_is_printed_after_every_pattern() {
    let module =
        parse("%0 = \"t.a\"() : () -> index\n%1 = \"t.c\"(%0) : (index) -> index\n\"t.b\"(%1) : (index) -> ()\n");
    let converter = converter(module.context());
    let mut target = ConversionTarget::new();
    target.illegal_dialect("t");
    let mut patterns = PatternSet::with_converter(&converter);
    for (from, to) in [("t.a", "n.a"), ("t.b", "n.b"), ("t.c", "n.c")] {
        retarget(&mut patterns, &converter, from, to);
    }
    let mut text = String::new();
    let mut hook = |event: &monopour_ir::conversion::PatternEvent<'_, '_>| {
        let root = event.root.expect("a module");
        root.verify_with_diagnostics().expect("valid");
        let ir = root.to_string();
        text += &format!("// {} on {}, {} casts\n{ir}", event.pattern, event.op_name, event.live_casts);
    };
    let options = ConversionOptions { after_each_pattern: Some(&mut hook), ..Default::default() };
    convert_with(module.op(), &target, &patterns, Mode::Full, options).expect("converts");
    assert_eq!(
        text.trim(),
        r#"
// convert t.a on t.a, 1 casts
module {
  %0 = "n.a"() : () -> i64
  %1 = unrealized_conversion_cast %0 : i64 to index
  %2 = "t.c"(%1) : (index) -> index
  "t.b"(%2) : (index) -> ()
}
// convert t.c on t.c, 1 casts
module {
  %0 = "n.a"() : () -> i64
  %1 = "n.c"(%0) : (i64) -> i64
  %2 = unrealized_conversion_cast %1 : i64 to index
  "t.b"(%2) : (index) -> ()
}
// convert t.b on t.b, 0 casts
module {
  %0 = "n.a"() : () -> i64
  %1 = "n.c"(%0) : (i64) -> i64
  "n.b"(%1) : (i64) -> ()
}
"#
        .trim_matches('\n'),
        "the text is:\n{}\n",
        text.trim()
    );
}
