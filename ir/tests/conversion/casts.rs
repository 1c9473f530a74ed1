//! The driver's casts: how many live at a time, whatever patterns do to them.

use super::lower::{CAST, assert_ir, converter, converts_fully, create, retarget, structured, structured_target};
use super::parse;
use monopour_ir::conversion::{
    ConversionOptions, ConversionTarget, Mode, PatternEvent, PatternSet, TypeConverter, convert_with,
};
use monopour_ir::{Module, Op, Type};
use std::cell::Cell;

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

/// A value becomes two: `t.pair` gives `n.lo` and `n.hi`.
fn split(patterns: &mut PatternSet<'_, '_>) {
    patterns.add_fn("t.pair", |op, _, rw| {
        let parts = [create(rw, "n.lo", op, &[], &[wide(op)])?, create(rw, "n.hi", op, &[], &[wide(op)])?];
        rw.replace_op_with_many(op, &[parts.iter().map(|part| part.result(0)).collect()]);
        Ok(())
    });
}

/// `t.use` becomes `n.use` of the converted values of its operands.
fn use_all(patterns: &mut PatternSet<'_, '_>) {
    patterns.add_one_to_many_fn("t.use", |op, adaptor, rw| {
        create(rw, "n.use", op, adaptor.operands(), &[])?;
        rw.erase(op);
        Ok(())
    });
}

const PAIR: &str = "%0 = \"t.pair\"() : () -> i128\n\"t.use\"(%0) : (i128) -> ()\n\"t.keep\"(%0) : (i128) -> ()\n";

#[test]
fn parts_of_a_value_that_change_later_stay_parts_of_it() {
    let module = parse(PAIR);
    let mut target = ConversionTarget::new();
    target.illegal_op("t.pair").illegal_op("t.use").illegal_op("n.lo").illegal_op("n.hi");
    let mut patterns = PatternSet::new();
    split(&mut patterns);
    use_all(&mut patterns);
    retype(&mut patterns, "n.lo", "m.lo", "i32");
    retype(&mut patterns, "n.hi", "m.hi", "i64");
    super::check(module, &target, &patterns, Mode::Partial).expect("converts");
    assert_ir(
        module,
        r#"
%0 = "m.lo"() : () -> i32
%1 = "m.hi"() : () -> i64
%2 = unrealized_conversion_cast %0, %1 : i32, i64 to i128
"n.use"(%0, %1) : (i32, i64) -> ()
"t.keep"(%2) : (i128) -> ()
"#,
    );
}

#[test]
fn parts_of_a_value_may_become_several_again() {
    let module = parse(PAIR);
    let mut target = ConversionTarget::new();
    target.illegal_op("t.pair").illegal_op("t.use").illegal_op("n.lo").illegal_op("n.hi");
    let mut patterns = PatternSet::new();
    split(&mut patterns);
    use_all(&mut patterns);
    patterns.add_fn("n.lo", |op, _, rw| {
        rw.replace_op_with_many(op, &[vec![]]);
        Ok(())
    });
    patterns.add_fn("n.hi", |op, _, rw| {
        let half = Type::integer(op.context(), 32);
        let new = create(rw, "m.hi", op, &[], &[half, half])?;
        rw.replace_op_with_many(op, &[new.results()]);
        Ok(())
    });
    super::check(module, &target, &patterns, Mode::Partial).expect("converts");
    assert_ir(
        module,
        r#"
%0 = unrealized_conversion_cast to i64
%1:2 = "m.hi"() : () -> (i32, i32)
%2 = unrealized_conversion_cast %1#0, %1#1 : i32, i32 to i64
%3 = unrealized_conversion_cast %0, %2 : i64, i64 to i128
"n.use"(%1#0, %1#1) : (i32, i32) -> ()
"t.keep"(%3) : (i128) -> ()
"#,
    );
}

#[test]
fn parts_are_cast_one_by_one_to_the_types_of_the_converter() {
    let module = parse("%0 = \"t.pair\"() : () -> i128\n\"t.use\"(%0) : (i128) -> ()\n");
    let cx = module.context();
    let mut converter = TypeConverter::new();
    converter.keep_others().add(move |ty| {
        let is_pair = ty.integer_width() == Some(128);
        is_pair.then(|| monopour_ir::conversion::TypeConversion::To(vec![Type::integer(cx, 64), Type::index(cx)]))
    });
    let mut target = ConversionTarget::new();
    target.illegal_op("t.pair").illegal_op("t.use");
    let mut patterns = PatternSet::with_converter(&converter);
    split(&mut patterns);
    use_all(&mut patterns);
    super::check(module, &target, &patterns, Mode::Partial).expect("converts");
    assert_ir(
        module,
        r#"
%0 = "n.lo"() : () -> i64
%1 = "n.hi"() : () -> i64
%2 = unrealized_conversion_cast %1 : i64 to index
"n.use"(%0, %2) : (i64, index) -> ()
"#,
    );
}

#[test]
fn a_cast_is_never_made_a_cast_of_itself() {
    let module = parse("%0 = \"t.a\"() : () -> index\n\"t.keep\"(%0, %0) : (index, index) -> ()\n");
    let mut target = ConversionTarget::new();
    target.dynamically_legal_op("t.a", |op| op.attr("done").is_some());
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        let cast = rw.cast(op.result(0), wide(op));
        // All users, the cast among them.
        for user in op.result(0).uses() {
            rw.set_operand(user.op, user.index, cast);
        }
        rw.set_attr(op, "done", monopour_ir::Attr::unit(op.context()));
        Ok(())
    });
    super::check(module, &target, &patterns, Mode::Partial).expect("converts");
    assert_ir(
        module,
        r#"
%0 = "t.a"() {done} : () -> index
%1 = unrealized_conversion_cast %0 : index to i64
"t.keep"(%1, %1) : (i64, i64) -> ()
"#,
    );
}

#[test]
fn a_pattern_that_erases_casts_erases_what_nobody_uses() {
    let module = parse("%0 = \"t.a\"() : () -> index\n\"t.keep\"(%0) : (index) -> ()\n");
    let mut target = ConversionTarget::new();
    target.dynamically_legal_op("t.a", |op| op.attr("done").is_some());
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        let used = rw.cast(op.result(0), wide(op));
        rw.cast_to_many(op.result(0), &[]);
        create(rw, "n.a", op.result(0).uses()[0].op, &[], &[])?;
        rw.set_point(monopour_ir::InsertionPoint::After(used.defining_op().expect("a cast")));
        create(rw, "n.b", op, &[used], &[])?;
        for user in op.result(0).uses().into_iter().filter(|user| user.op.is(CAST)) {
            rw.erase(user.op);
        }
        rw.set_attr(op, "done", monopour_ir::Attr::unit(op.context()));
        Ok(())
    });
    super::check(module, &target, &patterns, Mode::Partial).expect("converts");
    assert_ir(
        module,
        r#"
"n.a"() : () -> ()
%0 = "t.a"() {done} : () -> index
%1 = unrealized_conversion_cast %0 : index to i64
"n.b"(%1) : (i64) -> ()
"t.keep"(%0) : (index) -> ()
"#,
    );
}

/// `t.a` has many users, each converted by its own pattern.
fn fan_out(users: usize) -> &'static Module<'static> {
    let mut text = "%0 = \"t.a\"() : () -> index\n".to_owned();
    text += &"\"t.b\"(%0) : (index) -> ()\n".repeat(users);
    parse(&text)
}

/// Each op reads the result of the one before.
fn chain(length: usize) -> &'static Module<'static> {
    let mut text = "%0 = \"t.a\"() : () -> index\n".to_owned();
    for i in 1..length {
        text += &format!("%{i} = \"t.c\"(%{}) : (index) -> index\n", i - 1);
    }
    text += &format!("\"t.b\"(%{}) : (index) -> ()\n", length - 1);
    parse(&text)
}

/// Nested loops, each with an iteration argument.
fn nest(depth: usize) -> &'static Module<'static> {
    let mut text = "func.func @f(%lb: i32) {\n%x0 = \"t.a\"() : () -> index\n".to_owned();
    for i in 0..depth {
        text += &format!(
            "%r{i} = scf.for %i{i} = %lb to %lb step %lb iter_args(%x{} = %x{i}) -> (index) : i32 {{\n",
            i + 1
        );
    }
    text += &format!("%s{depth} = \"t.c\"(%x{depth}) : (index) -> index\nscf.yield %s{depth} : index\n}}\n");
    for i in (0..depth - 1).rev() {
        text += &format!("scf.yield %r{} : index\n}}\n", i + 1);
    }
    text += "\"t.b\"(%r0) : (index) -> ()\nreturn\n}\n";
    parse(&text)
}

/// Converts in full mode; the most casts live after a pattern, and at any time.
fn live_casts(module: &Module) -> (usize, usize) {
    let converter = converter(module.context());
    let mut target = ConversionTarget::new();
    target.illegal_dialect("t");
    structured_target(&mut target, &converter);
    let mut patterns = PatternSet::with_converter(&converter);
    for (from, to) in [("t.a", "n.a"), ("t.b", "n.b"), ("t.c", "n.c")] {
        retarget(&mut patterns, &converter, from, to);
    }
    structured(&mut patterns, &converter);
    let most = Cell::new(0);
    let mut hook = |event: &PatternEvent<'_, '_>| {
        // The count matches the IR.
        let there = event.root.expect("a module").find_all(CAST).len();
        assert_eq!(event.live_casts, there);
        most.set(most.get().max(there));
    };
    let options = ConversionOptions { after_each_pattern: Some(&mut hook), ..Default::default() };
    let stats = convert_with(module.op(), &target, &patterns, Mode::Full, options).expect("converts");
    assert_eq!((stats.casts_left, module.op().find_all(CAST).len()), (0, 0));
    (most.get(), stats.max_live_casts)
}

#[test]
fn a_chain_has_one_cast_at_a_time_however_long_it_is() {
    // After a pattern: the cast of the newest value. During a pattern: that of its operand too.
    for length in [2, 10, 300] {
        assert_eq!(live_casts(chain(length)), (1, 2), "a chain of {length}");
    }
}

#[test]
fn a_thousand_users_share_one_cast() {
    for users in [1, 10, 1_000] {
        assert_eq!(live_casts(fan_out(users)), (1, 1), "{users} users");
    }
}

#[test]
fn a_loop_nest_has_a_few_casts_however_deep_it_is() {
    // After a pattern: the iteration argument that the inner loop reads, the inner loop's result for the yield, and the outermost result.
    // During a pattern, also the casts that it is about to make redundant.
    let counts = [1, 2, 5, 20].map(|depth| live_casts(nest(depth)));
    assert_eq!(counts, [(3, 4), (3, 5), (3, 5), (3, 5)]);
}

#[test]
fn casts_of_one_value_to_many_types_are_one_per_type() {
    let mut text = "%0 = \"t.a\"() : () -> index\n".to_owned();
    for _ in 0..50 {
        text += "\"t.i8\"(%0) : (index) -> ()\n\"t.i16\"(%0) : (index) -> ()\n\"t.i32\"(%0) : (index) -> ()\n";
    }
    let module = parse(&text);
    let mut target = ConversionTarget::new();
    target.illegal_dialect("t");
    let mut patterns = PatternSet::new();
    retype(&mut patterns, "t.a", "n.a", "i64");
    for (name, ty) in [("t.i8", "i8"), ("t.i16", "i16"), ("t.i32", "i32")] {
        patterns.add_fn(name, move |op, adaptor, rw| {
            let narrow = rw.cast(adaptor.operand(0), Type::parse(op.context(), ty).expect("a type"));
            create(rw, "n.use", op, &[narrow], &[])?;
            rw.erase(op);
            Ok(())
        });
    }
    let stats = super::check(module, &target, &patterns, Mode::Partial).expect("converts");
    // One to the old type, for a remaining user, and one to each of the three.
    assert_eq!((stats.max_live_casts, stats.casts_created, stats.casts_left), (4, 4, 3));
}

#[test]
fn full_mode_leaves_no_cast_of_several_values() {
    let mut text = String::new();
    for i in 0..10 {
        text += &format!(
            "%{i} = \"t.c\"() : () -> complex<f32>\n\"t.b\"(%{i}, %{i}) : (complex<f32>, complex<f32>) -> ()\n"
        );
    }
    let module = parse(&text);
    let converter = converter(module.context());
    let mut target = ConversionTarget::new();
    target.illegal_dialect("t");
    let mut patterns = PatternSet::with_converter(&converter);
    retarget(&mut patterns, &converter, "t.b", "n.b");
    retarget(&mut patterns, &converter, "t.c", "n.c");
    let stats = converts_fully(module, &target, &patterns);
    assert_eq!((stats.patterns_applied, stats.casts_created, stats.max_live_casts), (20, 10, 1));
}

#[test]
fn a_value_that_stands_twice_for_another_may_go_again() {
    let module = parse("%0 = \"t.a\"() : () -> index\n\"t.keep\"(%0) : (index) -> ()\n");
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a");
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        let user = op.result(0).uses()[0].op;
        let part = create(rw, "n.part", op, &[], &[wide(op)])?;
        rw.replace_all_uses_with_many(op.result(0), &[part.result(0), part.result(0)]);
        // A second replacement: the two are unused again.
        let whole = create(rw, "n.a", op, &[], &[op.result(0).ty()])?;
        rw.set_operand(user, 0, whole.result(0));
        rw.erase(part);
        rw.erase(op);
        Ok(())
    });
    converts_fully(module, &target, &patterns);
    assert_ir(
        module,
        r#"
%0 = "n.a"() : () -> index
"t.keep"(%0) : (index) -> ()
"#,
    );
}
