//! Casts of casts: folded whichever is made first, and never confused with those of the input.

use super::{check, parse, rename};
use monopour_ir::conversion::{
    ConversionOptions, ConversionRewriter, ConversionTarget, Declined, Mode, PatternSet, TypeConversion, TypeConverter,
    WorklistOrder, convert_with,
};
use monopour_ir::{Attr, Module, Op, OpSpec, Type, Value};

fn int<'c>(op: Op<'c>, width: u32) -> Type<'c> {
    Type::integer(op.context(), width)
}

fn create<'c>(
    rw: &mut ConversionRewriter<'c>,
    name: &str,
    at: Op<'c>,
    operands: &[Value<'c>],
    widths: &[u32],
) -> Result<Op<'c>, Declined> {
    let types: Vec<Type> = widths.iter().map(|width| int(at, *width)).collect();
    Ok(rw.create(OpSpec::new(name, at.location()).operands(operands).results(&types))?)
}

/// i64 to a pair of i32; all else stays.
fn halves<'c>() -> TypeConverter<'c, 'static> {
    let mut converter = TypeConverter::new();
    converter.keep_others().add(|ty| {
        let half = Type::integer(ty.context(), 32);
        (ty.integer_width() == Some(64)).then(|| TypeConversion::To(vec![half, half]))
    });
    converter
}

fn body(module: &Module) -> Vec<String> {
    let text = module.op().to_string();
    text.lines().map(str::trim).filter(|l| l.contains('%') || l.contains('^')).map(str::to_owned).collect()
}

#[test]
fn a_join_keeps_its_parts_when_one_of_them_is_converted() {
    let module = parse("%0 = \"t.def\"() : () -> i64\n\"t.use\"(%0) : (i64) -> ()\n");
    let mut target = ConversionTarget::new();
    target.illegal_op("t.def").illegal_op("t.low");
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.def", |op, _, rw| {
        let (low, high) = (create(rw, "t.low", op, &[], &[32])?, create(rw, "n.high", op, &[], &[32])?);
        rw.replace_op_with_many(op, &[vec![low.result(0), high.result(0)]]);
        Ok(())
    });
    patterns.add(rename("t.low", "n.low"));
    check(module, &target, &patterns, Mode::Partial).expect("converts");
    assert_eq!(
        body(module),
        [
            "%0 = \"n.low\"() : () -> i32",
            "%1 = \"n.high\"() : () -> i32",
            "%2 = unrealized_conversion_cast %0, %1 : i32, i32 to i64",
            "\"t.use\"(%2) : (i64) -> ()",
        ]
    );
}

#[test]
fn parts_that_are_joined_again_are_the_value_itself() {
    // The parts replace the result directly, and through an op that converts to just them.
    for through in [None, Some("t.pass")] {
        let module =
            parse("%0 = \"t.def\"() : () -> i64\n%1 = \"t.same\"(%0) : (i64) -> i64\n\"t.use\"(%1) : (i64) -> ()\n");
        let mut target = ConversionTarget::new();
        target.illegal_op("t.same").illegal_op("t.pass");
        let converter = halves();
        let mut patterns = PatternSet::with_converter(&converter);
        patterns.add_one_to_many_fn("t.same", move |op, adaptor, rw| {
            let mut values = adaptor.operand_values(0).to_vec();
            if let Some(name) = through {
                values = create(rw, name, op, &values, &[32, 32])?.results();
            }
            rw.replace_op_with_many(op, &[values]);
            Ok(())
        });
        patterns.add_fn("t.pass", |op, adaptor, rw| {
            rw.replace_op(op, adaptor.operands());
            Ok(())
        });
        check(module, &target, &patterns, Mode::Full).expect("no cast is left");
        assert_eq!(body(module), ["%0 = \"t.def\"() : () -> i64", "\"t.use\"(%0) : (i64) -> ()"]);
    }
}

#[test]
fn a_cast_to_many_does_not_stack_on_a_cast_to_one() {
    let module = parse("%0 = \"t.def\"() : () -> i64\n\"t.use\"(%0) : (i64) -> ()\n");
    let mut target = ConversionTarget::new();
    target.illegal_op("t.def").illegal_op("t.use");
    let converter = halves();
    let mut patterns = PatternSet::with_converter(&converter);
    // The pattern's type, i8, is not the converter's.
    patterns.add_fn("t.def", |op, _, rw| {
        let new = create(rw, "n.def", op, &[], &[8])?;
        rw.replace_op(op, &new.results());
        Ok(())
    });
    patterns.add_one_to_many_fn("t.use", |op, adaptor, rw| {
        create(rw, "n.use", op, adaptor.operands(), &[])?;
        rw.erase(op);
        Ok(())
    });
    check(module, &target, &patterns, Mode::Partial).expect("converts");
    assert_eq!(
        body(module),
        [
            "%0 = \"n.def\"() : () -> i8",
            "%1:2 = unrealized_conversion_cast %0 : i8 to i32, i32",
            "\"n.use\"(%1#0, %1#1) : (i32, i32) -> ()",
        ]
    );
}

#[test]
fn a_block_converted_before_those_that_branch_to_it_is_handed_new_values() {
    let module = parse(
        "func.func @f(%a: index) {\n  cf.br ^bb2(%a : index)\n^bb1(%b: index):\n  return\n^bb2(%c: index):\n  cf.br ^bb1(%c : index)\n}\n",
    );
    let mut converter = TypeConverter::new();
    converter.keep_others().add(|ty| ty.is_index().then(|| TypeConversion::one(Type::integer(ty.context(), 64))));
    let mut target = ConversionTarget::new();
    target.dynamically_legal_op("func.func", |op| converter.is_legal_signature(op));
    let mut patterns = PatternSet::with_converter(&converter);
    patterns.add_fn("func.func", |op, _, rw| {
        rw.convert_region_types(op.region(0), &converter)?;
        let ty = Type::function(op.context(), &[int(op, 64)], &[]);
        rw.set_attr(op, "function_type", Attr::ty(ty));
        Ok(())
    });
    check(module, &target, &patterns, Mode::Full).expect("no cast is left");
    assert_eq!(
        body(module),
        [
            "func.func @f(%arg0: i64) {",
            "cf.br ^bb2(%arg0 : i64)",
            "^bb1(%0: i64):  // pred: ^bb2",
            "^bb2(%1: i64):  // pred: ^bb0",
            "cf.br ^bb1(%1 : i64)",
        ]
    );
}

#[test]
fn casts_of_the_input_that_no_visit_reaches_are_left_alone() {
    let module = parse(
        "%0 = \"t.old\"() : () -> i64\n\"t.all\"() ({\n  %1 = builtin.unrealized_conversion_cast %0 : i64 to i8\n  \"t.use\"(%1) : (i8) -> ()\n}) : () -> ()\n",
    );
    let mut target = ConversionTarget::new();
    target.legal_op("t.all").recursively_legal_op("t.all").illegal_op("t.use").illegal_op("t.old");
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.old", |op, _, rw| {
        let new = create(rw, "n.old", op, &[], &[32])?;
        rw.replace_op(op, &new.results());
        Ok(())
    });
    let errors = check(module, &target, &patterns, Mode::Full).expect_err("a cast is left");
    let said: Vec<_> = errors.0.iter().map(|error| error.message.as_str()).collect();
    assert_eq!(said, ["a cast from i32 to i64 is left after a full conversion"]);
    assert_eq!(
        body(module),
        [
            "%0 = \"n.old\"() : () -> i32",
            "%1 = unrealized_conversion_cast %0 : i32 to i64",
            "%2 = builtin.unrealized_conversion_cast %1 : i64 to i8",
            "\"t.use\"(%2) : (i8) -> ()",
        ]
    );
}

#[test]
fn a_cast_at_the_address_of_an_erased_one_of_the_input_is_the_drivers() {
    let drop = "\"t.drop\"() ({\n  %1 = builtin.unrealized_conversion_cast %0 : i64 to i8\n}) : () -> ()\n";
    let old = "%1 = \"t.old\"() : () -> i64\n\"t.use\"(%1) : (i64) -> ()\n".replace("%1", "%x");
    let olds: String = (0..100).map(|i| old.replace("%x", &format!("%x{i}"))).collect();
    let module = parse(&format!("%0 = \"t.def\"() : () -> i64\n{}{olds}", drop.repeat(100)));
    let mut target = ConversionTarget::new();
    target.illegal_op("t.drop").illegal_op("t.old");
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.drop", |op, _, rw| {
        rw.erase(op);
        Ok(())
    });
    patterns.add_fn("t.old", |op, _, rw| {
        let new = create(rw, "n.old", op, &[], &[32])?;
        rw.replace_op(op, &new.results());
        Ok(())
    });
    let errors = check(module, &target, &patterns, Mode::Full).expect_err("100 casts are left");
    assert_eq!(errors.0.iter().filter(|error| error.code == "I0013").count(), 100);
}

#[test]
fn casts_of_the_parts_of_a_cast_become_casts_of_what_replaces_them() {
    // A part of %0 is cast again, to i8, for t.part before %0 itself is replaced.
    let module = parse("%0 = \"t.def\"() : () -> i64\n\"t.use\"(%0, %0) : (i64, i64) -> ()\n");
    let mut target = ConversionTarget::new();
    target.illegal_op("t.use").illegal_op("t.part");
    let mut converter = halves();
    converter.add(|ty| (ty.integer_width() == Some(32)).then(|| TypeConversion::one(Type::integer(ty.context(), 8))));
    let mut patterns = PatternSet::with_converter(&converter);
    patterns.add_one_to_many_fn("t.use", |op, adaptor, rw| {
        create(rw, "t.part", op, &adaptor.operands()[..1], &[])?;
        create(rw, "t.late", op, adaptor.operands(), &[])?;
        rw.erase(op);
        Ok(())
    });
    patterns.add_fn("t.part", |op, adaptor, rw| {
        create(rw, "n.part", op, adaptor.operands(), &[])?;
        let def = op.block().and_then(|block| block.first_op()).expect("a definition");
        rw.set_point(monopour_ir::InsertionPoint::Before(def));
        let new = create(rw, "n.def", op, &[], &[32, 32])?;
        rw.replace_all_uses_with_many(def.result(0), &new.results());
        rw.erase(op);
        Ok(())
    });
    check(module, &target, &patterns, Mode::Partial).expect("converts");
    assert_eq!(
        body(module),
        [
            "%0:2 = \"n.def\"() : () -> (i32, i32)",
            "%1 = unrealized_conversion_cast %0#0 : i32 to i8",
            "%2 = \"t.def\"() : () -> i64",
            "\"n.part\"(%1) : (i8) -> ()",
            "\"t.late\"(%0#0, %0#1, %0#0, %0#1) : (i32, i32, i32, i32) -> ()",
        ]
    );
}

#[test]
fn casts_that_are_left_stand_in_one_order() {
    let mut texts = Vec::new();
    for worklist_order in [WorklistOrder::DepthFirst, WorklistOrder::LastFirst] {
        let module = parse("%0:2 = \"t.def\"() : () -> (i64, i64)\n\"t.use\"(%0#0, %0#1) : (i64, i64) -> ()\n");
        let mut target = ConversionTarget::new();
        target.illegal_op("t.use").illegal_op("t.one");
        let mut patterns = PatternSet::new();
        patterns.add_fn("t.use", |op, adaptor, rw| {
            for value in adaptor.operands() {
                create(rw, "t.one", op, &[*value], &[])?;
            }
            rw.erase(op);
            Ok(())
        });
        patterns.add_fn("t.one", |op, adaptor, rw| {
            let narrow = [32, 16].map(|width| rw.cast(adaptor.operand(0), int(op, width)));
            create(rw, "n.one", op, &narrow, &[])?;
            rw.erase(op);
            Ok(())
        });
        let options = ConversionOptions { worklist_order, ..Default::default() };
        convert_with(module.op(), &target, &patterns, Mode::Partial, options).expect("converts");
        texts.push(body(module));
    }
    assert_eq!(texts[0], texts[1]);
    assert_eq!(
        texts[0],
        [
            "%0:2 = \"t.def\"() : () -> (i64, i64)",
            "%1 = unrealized_conversion_cast %0#0 : i64 to i16",
            "%2 = unrealized_conversion_cast %0#0 : i64 to i32",
            "%3 = unrealized_conversion_cast %0#1 : i64 to i16",
            "%4 = unrealized_conversion_cast %0#1 : i64 to i32",
            "\"n.one\"(%2, %1) : (i32, i16) -> ()",
            "\"n.one\"(%4, %3) : (i32, i16) -> ()",
        ]
    );
}
