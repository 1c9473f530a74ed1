//! Conversions of listed ops, with bridge ops between old and new types instead of casts.

use super::lower::{CAST, assert_ir, create};
use super::parse;
use monopour_ir::conversion::{Bridges, ConversionTarget, Declined, Legality, PatternSet, convert_bridged};
use monopour_ir::{Op, Type};

const BRIDGES: Bridges = Bridges { to_old: "t.to_old", to_new: "t.to_new" };

fn wide<'c>(op: Op<'c>) -> Type<'c> {
    Type::integer(op.context(), 64)
}

/// `t.a` becomes `n.a`, an `i64`; `t.b` becomes `n.b` that reads `i64`.
fn patterns<'c, 'p>() -> PatternSet<'c, 'p> {
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        let new = create(rw, "n.a", op, &[], &[wide(op)])?;
        rw.replace_op(op, &new.results());
        Ok(())
    });
    patterns.add_fn("t.b", |op, adaptor, rw| {
        let operands: Vec<_> = adaptor.operands().iter().map(|value| rw.cast(*value, wide(op))).collect();
        let new = create(rw, "n.b", op, &operands, &[])?;
        rw.replace_op(op, &new.results());
        Ok(())
    });
    patterns
}

fn target<'c, 't>() -> ConversionTarget<'c, 't> {
    let mut target = ConversionTarget::new();
    target.unknown_is(|op| if op.name().starts_with("t.") { Legality::Unknown } else { Legality::Legal });
    target
}

#[test]
fn operands_are_read_through_bridges_and_requests_share_none() {
    let module = parse(
        "%x = \"f.x\"() : () -> index\n%a = \"t.a\"() : () -> index\n\"t.b\"(%a, %x, %x) : (index, index, index) -> ()\n",
    );
    let ops = [module.op().find_all("t.a"), module.op().find_all("t.b")].concat();
    let stats = convert_bridged(module.op(), ops, BRIDGES, &target(), &patterns()).expect("converts");
    assert_eq!((stats.patterns_applied, stats.casts_created), (2, 0));
    assert_ir(
        module,
        r#"
%0 = "f.x"() : () -> index
%1 = "t.to_new"(%0) : (index) -> i64
%2 = "t.to_new"(%0) : (index) -> i64
%3 = "n.a"() : () -> i64
%4 = "t.to_old"(%3) : (i64) -> index
"n.b"(%3, %2, %1) : (i64, i64, i64) -> ()
"#,
    );
}

#[test]
fn ops_that_are_not_listed_and_casts_of_the_input_stay() {
    let module = parse(
        "%a = \"t.a\"() : () -> index\n%c = builtin.unrealized_conversion_cast %a : index to i64\n\"t.b\"(%a) : (index) -> ()\n",
    );
    let ops = module.op().find_all("t.a");
    convert_bridged(module.op(), ops, BRIDGES, &target(), &patterns()).expect("converts");
    assert_eq!(module.op().find_all(CAST).len(), 1, "an unused cast of the input is none of the conversion's business");
    let user = module.op().find_all("t.b");
    assert!(user[0].operand(0).defining_op().is_some_and(|op| op.is("t.to_old")));
}

#[test]
fn what_a_pattern_made_is_visited_and_contracts_hold() {
    let module = parse("%a = \"t.a\"() : () -> index\n\"t.b\"(%a) : (index) -> ()\n");
    let mut patterns = patterns();
    patterns.add_fn("n.b", |op, _, rw| {
        rw.erase(op);
        Ok(())
    });
    let mut all = ConversionTarget::new();
    all.unknown_is(|op| match op.name() {
        "t.a" | "t.b" | "n.b" => Legality::Unknown,
        _ => Legality::Legal,
    });
    let ops = module.op().find_all("t.b");
    let stats = convert_bridged(module.op(), ops, BRIDGES, &all, &patterns).expect("converts");
    assert_eq!((stats.patterns_applied, module.op().find_all("n.b").len()), (2, 0));

    let mut broken = PatternSet::new();
    broken.add_fn("t.a", |op, _, rw| {
        rw.const_index(0, op.location());
        Err(Declined::no_match("too late"))
    });
    let ops = module.op().find_all("t.a");
    let error = convert_bridged(module.op(), ops, BRIDGES, &all, &broken).expect_err("is noticed");
    assert!(error.to_string().contains("I0012"), "{error}");
}
