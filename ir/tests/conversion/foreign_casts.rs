//! Casts of the input, casts that patterns create, and copies of casts: ordinary ops, or the driver's.

use super::lower::{CAST, assert_ir, create};
use super::{check, parse, rename};
use monopour_ir::conversion::{ConversionTarget, Mode, PatternSet, TypeConversion, TypeConverter, convert};
use monopour_ir::{Attr, Block, Op, OpSpec, Region, Type};

fn wide<'c>(op: Op<'c>) -> Type<'c> {
    Type::integer(op.context(), 64)
}

/// `from` becomes `to` with results of this type.
fn retype<'p>(patterns: &mut PatternSet<'_, 'p>, from: &'p str, to: &'p str, ty: &'p str) {
    patterns.add_fn(from, move |op, adaptor, rw| {
        let types = vec![Type::parse(op.context(), ty).expect("a type"); op.num_results()];
        let new = create(rw, to, op, adaptor.operands(), &types)?;
        rw.replace_op(op, &new.results());
        Ok(())
    });
}

#[test]
fn a_cast_at_the_address_of_an_erased_one_is_the_drivers() {
    // Each cast of the input is erased before the driver makes one, often at the same address.
    let mut text = String::new();
    for i in 0..200 {
        text += &format!("%a{i} = \"t.def\"() : () -> i8\n");
        text += &format!("%b{i} = builtin.unrealized_conversion_cast %a{i} : i8 to index\n");
        text += &format!("%c{i} = \"t.a\"() : () -> index\n\"t.b\"(%c{i}) : (index) -> ()\n");
    }
    let module = parse(&text);
    let mut target = ConversionTarget::new();
    target.illegal_op(CAST).illegal_op("t.a").illegal_op("t.b");
    let mut patterns = PatternSet::new();
    patterns.add_fn(CAST, |op, _, rw| {
        rw.erase(op);
        Ok(())
    });
    retype(&mut patterns, "t.a", "n.a", "i64");
    patterns.add(rename("t.b", "n.b"));
    let stats = check(module, &target, &patterns, Mode::Full).expect("converts");
    assert_eq!((stats.casts_left, stats.max_live_casts, module.op().find_all(CAST).len()), (0, 1, 0));
    let users = module.op().find_all("n.b");
    assert!(users.iter().all(|user| user.operand(0).ty() == wide(*user)));
}

#[test]
fn casts_that_a_pattern_creates_are_its_own() {
    let module = parse("%0 = \"t.a\"() : () -> index\n\"t.use\"(%0) : (index) -> ()\n\"t.b\"() : () -> ()\n");
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a").illegal_op("t.b");
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        let parts = create(rw, "n.a", op, &[], &[wide(op), wide(op)])?;
        let joined = create(rw, CAST, op, &parts.results(), &[op.result(0).ty()])?;
        rw.replace_op(op, &joined.results());
        Ok(())
    });
    patterns.add_fn("t.b", |op, _, rw| {
        let new = create(rw, "n.b", op, &[], &[wide(op)])?;
        // One that it erases again, and one that it keeps unused.
        let unused = create(rw, CAST, op, &new.results(), &[wide(op), wide(op)])?;
        rw.erase(unused);
        create(rw, CAST, op, &new.results(), &[Type::index(op.context())])?;
        rw.erase(op);
        Ok(())
    });
    let stats = check(module, &target, &patterns, Mode::Full).expect("converts");
    assert_eq!((stats.casts_created, stats.casts_left), (0, 0));
    assert_ir(
        module,
        r#"
%0:2 = "n.a"() : () -> (i64, i64)
%1 = unrealized_conversion_cast %0#0, %0#1 : i64, i64 to index
"t.use"(%1) : (index) -> ()
%2 = "n.b"() : () -> i64
%3 = unrealized_conversion_cast %2 : i64 to index
"#,
    );
}

/// Two copies of the first two ops in a `t.twice`, each in a `t.end`, which becomes an `n.end`.
fn copy_twice(patterns: &mut PatternSet<'_, '_>) {
    patterns.add_fn("t.twice", |op, _, rw| {
        // The body has been fully converted only in the copy's copy: the walk comes here first.
        for name in ["t.end", "t.end"] {
            let body = Region::new();
            let block = Block::new(&[]);
            body.append(block);
            for inner in op.body().expect("a body").ops().into_iter().take(2) {
                rw.set_point(monopour_ir::InsertionPoint::End(block));
                let copy = rw.clone_op(inner, |value| value);
                rw.insert(copy);
            }
            rw.set_point(monopour_ir::InsertionPoint::Before(op));
            rw.create(OpSpec::new(name, op.location()).region(body))?;
        }
        rw.set_attr(op, "done", Attr::unit(op.context()));
        Ok(())
    });
    patterns.add_fn("t.end", |op, _, rw| {
        let body = Region::new();
        rw.take_region(body, op.region(0));
        rw.create(OpSpec::new("n.end", op.location()).region(body))?;
        rw.erase(op);
        Ok(())
    });
}

#[test]
fn copies_of_casts_are_casts_of_the_driver_where_the_originals_are() {
    let module = parse(
        r#"
%0 = "t.a"() : () -> index
%f = "t.def"() : () -> i8
"t.twice"() ({
  %1 = builtin.unrealized_conversion_cast %f : i8 to i16
  %2 = "t.a"() : () -> index
  "t.b"(%0, %2) : (index, index) -> ()
  "t.use"(%1) : (i16) -> ()
}) : () -> ()
"#,
    );
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a").illegal_op("t.b").dynamically_legal_op("t.twice", |op| op.attr("done").is_some());
    target.illegal_op("t.end");
    let mut patterns = PatternSet::new();
    retype(&mut patterns, "t.a", "n.a", "i64");
    retype(&mut patterns, "t.b", "n.b", "i64");
    copy_twice(&mut patterns);
    let stats = check(module, &target, &patterns, Mode::Full).expect("converts");
    assert_eq!(stats.casts_left, 0);
    assert_ir(
        module,
        r#"
%0 = "n.a"() : () -> i64
%1 = "t.def"() : () -> i8
"n.end"() ({
  %2 = builtin.unrealized_conversion_cast %1 : i8 to i16
  %3 = "n.a"() : () -> i64
}) : () -> ()
"n.end"() ({
  %2 = builtin.unrealized_conversion_cast %1 : i8 to i16
  %3 = "n.a"() : () -> i64
}) : () -> ()
"t.twice"() ({
  %2 = builtin.unrealized_conversion_cast %1 : i8 to i16
  %3 = "n.a"() : () -> i64
  "n.b"(%0, %3) : (i64, i64) -> ()
  "t.use"(%2) : (i16) -> ()
}) {done} : () -> ()
"#,
    );
}

#[test]
fn a_copy_of_a_region_with_casts_in_it_is_cleaned_up_like_the_region() {
    let module = parse(
        r#"
%0 = "t.a"() : () -> index
"t.outer"() ({
  "t.wait"(%0, %0) : (index, index) -> ()
  "t.inner"() ({
    %1 = "t.a"() : () -> index
    "t.wait"(%1, %0) : (index, index) -> ()
  }) : () -> ()
  "t.copy"() : () -> ()
  "t.go"() : () -> ()
}) : () -> ()
"#,
    );
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a").illegal_op("t.copy").illegal_op("t.go");
    target.dynamically_legal_op("t.wait", |op| op.attr("go").is_none());
    let mut patterns = PatternSet::new();
    retype(&mut patterns, "t.a", "n.a", "i64");
    retype(&mut patterns, "t.wait", "n.wait", "i64");
    patterns.add_fn("t.copy", |op, _, rw| {
        let inner = op.block().expect("in a block").ops().into_iter().find(|op| op.is("t.inner")).expect("an inner");
        let copy = rw.clone_op(inner, |value| value);
        rw.insert(copy);
        rw.erase(op);
        Ok(())
    });
    patterns.add_fn("t.go", |op, _, rw| {
        for waiting in op.parent().expect("a parent").find_all("t.wait") {
            rw.set_attr(waiting, "go", Attr::unit(op.context()));
        }
        rw.erase(op);
        Ok(())
    });
    let stats = check(module, &target, &patterns, Mode::Full).expect("converts");
    assert_eq!(stats.casts_left, 0);
    assert_ir(
        module,
        r#"
%0 = "n.a"() : () -> i64
"t.outer"() ({
  "n.wait"(%0, %0) : (i64, i64) -> ()
  "t.inner"() ({
    %1 = "n.a"() : () -> i64
    "n.wait"(%1, %0) : (i64, i64) -> ()
  }) : () -> ()
  "t.inner"() ({
    %1 = "n.a"() : () -> i64
    "n.wait"(%1, %0) : (i64, i64) -> ()
  }) : () -> ()
}) : () -> ()
"#,
    );
}

/// `i128` becomes two `i32`, whatever defines it.
fn halves<'c>(module: &monopour_ir::Module<'c>) -> TypeConverter<'c, 'c> {
    let cx = module.context();
    let mut converter = TypeConverter::new();
    converter.keep_others().add(move |ty| {
        (ty.integer_width() == Some(128))
            .then(|| TypeConversion::To(vec![Type::integer(cx, 32), Type::integer(cx, 32)]))
    });
    converter
}

#[test]
fn casts_to_several_types_are_casts_of_the_newest_value() {
    // The value of the first use changes again, after the use; the second must not be mistaken for it.
    let module = parse(
        r#"
%0 = "t.a"() : () -> i128
"t.use"(%0) : (i128) -> ()
"t.again"() : () -> ()
%1 = "t.a"() : () -> i128
"t.use"(%1) : (i128) -> ()
"t.keep"(%1) : (i128) -> ()
"#,
    );
    let converter = halves(module);
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a").illegal_op("t.use").illegal_op("t.again");
    target.dynamically_legal_op("n.a", |op| op.attr("again").is_none());
    let mut patterns = PatternSet::with_converter(&converter);
    retype(&mut patterns, "t.a", "n.a", "i64");
    retype(&mut patterns, "n.a", "m.a", "f32");
    patterns.add_one_to_many_fn("t.use", |op, adaptor, rw| {
        create(rw, "n.use", op, adaptor.operands(), &[])?;
        rw.erase(op);
        Ok(())
    });
    patterns.add_fn("t.again", |op, _, rw| {
        rw.set_attr(op.block().expect("in a block").ops()[0], "again", Attr::unit(op.context()));
        rw.erase(op);
        Ok(())
    });
    let stats = check(module, &target, &patterns, Mode::Partial).expect("converts");
    assert_eq!(stats.casts_left, module.op().find_all(CAST).len());
    assert_ir(
        module,
        r#"
%0 = "m.a"() : () -> f32
%1:2 = unrealized_conversion_cast %0 : f32 to i32, i32
"n.use"(%1#0, %1#1) : (i32, i32) -> ()
%2 = "n.a"() : () -> i64
%3 = unrealized_conversion_cast %2 : i64 to i128
%4:2 = unrealized_conversion_cast %2 : i64 to i32, i32
"n.use"(%4#0, %4#1) : (i32, i32) -> ()
"t.keep"(%3) : (i128) -> ()
"#,
    );
}

#[test]
fn casts_of_parts_are_counted_where_materializations_take_the_whole() {
    let module = parse("%0 = \"t.a\"() : () -> i128\n\"t.narrow\"(%0) : (i128) -> ()\n\"t.keep\"(%0) : (i128) -> ()\n");
    let mut converter = halves(module);
    converter.add_source_materialization(|rw, wanted| {
        (wanted.inputs.len() == 2).then(|| {
            let spec = OpSpec::new("n.join", wanted.location).operands(wanted.inputs).results(wanted.types);
            rw.create(spec).expect("builds").results()
        })
    });
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a").illegal_op("t.narrow");
    let mut patterns = PatternSet::with_converter(&converter);
    patterns.add_fn("t.a", |op, _, rw| {
        let half = Type::integer(op.context(), 32);
        let new = create(rw, "n.a", op, &[], &[half, half])?;
        rw.replace_op_with_many(op, &[new.results()]);
        Ok(())
    });
    patterns.add_one_to_many_fn("t.narrow", |op, _, rw| {
        // A cast of the replaced value itself.
        let narrow = rw.cast(op.operand(0), Type::integer(op.context(), 8));
        create(rw, "n.narrow", op, &[narrow], &[])?;
        rw.erase(op);
        Ok(())
    });
    let stats = check(module, &target, &patterns, Mode::Partial).expect("converts");
    assert_eq!(stats.casts_left, module.op().find_all(CAST).len());
    assert_ir(
        module,
        r#"
%0:2 = "n.a"() : () -> (i32, i32)
%1 = "n.join"(%0#0, %0#1) : (i32, i32) -> i128
%2 = unrealized_conversion_cast %1 : i128 to i8
"n.narrow"(%2) : (i8) -> ()
"t.keep"(%1) : (i128) -> ()
"#,
    );
}

#[test]
fn casts_that_stand_outside_of_what_is_converted_are_left_too() {
    let module =
        parse("%0 = \"t.def\"() : () -> index\n\"t.inner\"() ({\n  \"t.a\"(%0) : (index) -> ()\n}) : () -> ()\n");
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a");
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, adaptor, rw| {
        let cast = rw.cast(adaptor.operand(0), wide(op));
        create(rw, "n.a", op, &[cast], &[])?;
        rw.erase(op);
        Ok(())
    });
    let inner = module.op().find_all("t.inner")[0];
    let errors = convert(inner, &target, &patterns, Mode::Full).expect_err("a cast is left");
    assert_eq!(errors.0[0].message, "a cast from index to i64 is left after a full conversion");
}

#[test]
fn a_cast_takes_no_attribute_along() {
    let module = parse(
        r#"
%0 = "t.a"() : () -> index
"t.b"(%0) : (index) -> ()
%1 = "t.a"() : () -> index
"t.keep"(%1) : (index) -> ()
"#,
    );
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a").illegal_op("t.b");
    let mut patterns = PatternSet::new();
    retype(&mut patterns, "t.a", "n.a", "i64");
    patterns.add_fn("t.b", |op, adaptor, rw| {
        // The cast is one of the users.
        for user in adaptor.operand(0).uses() {
            rw.set_attr(user.op, "seen", Attr::unit(op.context()));
        }
        create(rw, "n.b", op, adaptor.operands(), &[])?;
        rw.erase(op);
        Ok(())
    });
    check(module, &target, &patterns, Mode::Partial).expect("converts");
    assert_ir(
        module,
        r#"
%0 = "n.a"() : () -> i64
"n.b"(%0) : (i64) -> ()
%1 = "n.a"() : () -> i64
%2 = unrealized_conversion_cast %1 : i64 to index
"t.keep"(%2) : (index) -> ()
"#,
    );
}
