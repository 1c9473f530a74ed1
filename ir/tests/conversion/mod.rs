//! The conversion driver: order, types, casts, failures.

mod block_args;
mod branches;
mod bridges;
mod casts;
mod contracts;
mod control_flow;
mod endless;
mod erasures;
mod failures;
mod folding;
mod foreign_casts;
mod lower;
mod materializations;
mod modes;
mod random;
mod splits;
mod stages;
mod targets;
mod turns;
mod types;
mod upstream;
mod visibility;

use monopour_ir::conversion::{
    ConversionOptions, ConversionTarget, Mode, PatternEvent, PatternSet, convert, convert_with,
};
use monopour_ir::conversion::{ConversionPattern, ConversionRewriter, ConversionStats, Declined};
use monopour_ir::{Context, Diagnostics, Module, Op, OpSpec, Value};

/// Parses a module with unregistered dialects; it is never freed, like its context, as targets and patterns are used for several.
pub(crate) fn parse(text: &str) -> &'static Module<'static> {
    let cx = Context::new();
    cx.allow_unregistered_dialects(true);
    Box::leak(Box::new(Module::parse(cx, text.as_bytes(), "test.mlir").expect("parses")))
}

/// Converts with verification after every pattern.
pub(crate) fn check<'c>(
    module: &'c Module<'c>,
    target: &ConversionTarget<'c, '_>,
    patterns: &PatternSet<'c, '_>,
    mode: Mode,
) -> Result<ConversionStats, Diagnostics> {
    let options = ConversionOptions { verify_each: true, ..Default::default() };
    convert_with(module.op(), target, patterns, mode, options)
}

/// Creates an op of this name with one result per type.
pub(crate) fn make<'c>(
    rw: &mut ConversionRewriter<'c>,
    name: &str,
    like: Op<'c>,
    operands: &[Value<'c>],
) -> Result<Op<'c>, Declined> {
    let types: Vec<_> = like.results().iter().map(|r| r.ty()).collect();
    Ok(rw.create(OpSpec::new(name, like.location()).operands(operands).results(&types))?)
}

/// A pattern that renames `from` to `to`, with a benefit.
pub(crate) struct Rename {
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
    pub(crate) benefit: u32,
    pub(crate) declines: bool,
}

impl<'c> ConversionPattern<'c> for Rename {
    fn root(&self) -> &str {
        self.from
    }
    fn benefit(&self) -> u32 {
        self.benefit
    }
    fn name(&self) -> String {
        format!("rename to {}", self.to)
    }
    fn rewrite(
        &self,
        op: Op<'c>,
        adaptor: &monopour_ir::conversion::Adaptor<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
    ) -> Result<(), Declined> {
        if self.declines {
            return Err(Declined::no_match("it is told to"));
        }
        let new = make(rw, self.to, op, adaptor.operands())?;
        rw.replace_op(op, &new.results());
        Ok(())
    }
}

pub(crate) fn rename(from: &'static str, to: &'static str) -> Rename {
    Rename { from, to, benefit: 1, declines: false }
}

fn names<'c>(module: &'c Module<'c>) -> Vec<&'c str> {
    module.op().nested(monopour_ir::WalkOrder::Pre).iter().map(|op| op.name()).filter(|n| n.starts_with("t.")).collect()
}

#[test]
fn higher_benefit_is_tried_first_and_a_fallback_takes_over() {
    let module = parse("\"t.a\"() : () -> ()\n");
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a");
    let mut patterns = PatternSet::new();
    patterns.add(rename("t.a", "t.low"));
    patterns.add(Rename { benefit: 5, declines: true, ..rename("t.a", "t.high") });
    patterns.add(Rename { benefit: 3, ..rename("t.a", "t.middle") });
    check(module, &target, &patterns, Mode::Partial).expect("converts");
    assert_eq!(names(module), ["t.middle"]);
}

#[test]
fn equal_benefits_go_by_registration() {
    let module = parse("\"t.a\"() : () -> ()\n");
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a");
    let mut patterns = PatternSet::new();
    patterns.add(rename("t.a", "t.first")).add(rename("t.a", "t.second"));
    check(module, &target, &patterns, Mode::Partial).expect("converts");
    assert_eq!(names(module), ["t.first"]);
}

#[test]
fn an_expansion_is_converted_further_depth_first() {
    let module = parse("\"t.a\"() : () -> ()\n\"t.a\"() : () -> ()\n");
    let mut target = ConversionTarget::new();
    target.illegal_op("t.a").illegal_op("t.b").illegal_op("t.c");
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        make(rw, "t.b", op, &[])?;
        make(rw, "t.b", op, &[])?;
        rw.erase(op);
        Ok(())
    });
    patterns.add(rename("t.b", "t.c")).add(rename("t.c", "t.d"));
    let mut order = Vec::new();
    let mut hook = |event: &PatternEvent<'_, '_>| order.push(event.op_name.to_owned());
    let options = ConversionOptions { after_each_pattern: Some(&mut hook), verify_each: true, ..Default::default() };
    let stats = convert_with(module.op(), &target, &patterns, Mode::Full, options).expect("converts");
    assert_eq!(order, ["t.a", "t.b", "t.c", "t.b", "t.c", "t.a", "t.b", "t.c", "t.b", "t.c"]);
    assert_eq!((stats.patterns_applied, stats.casts_created), (10, 0));
    assert_eq!(names(module), ["t.d"; 4]);
}

#[test]
fn an_op_is_visited_before_its_regions() {
    let module = parse("\"t.a\"() ({\n  \"t.b\"() : () -> ()\n}) : () -> ()\n");
    let mut target = ConversionTarget::new();
    target.dynamically_legal_op("t.a", |op| op.attr("done").is_some()).illegal_op("t.b");
    let mut order = Vec::new();
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        rw.set_attr(op, "done", monopour_ir::Attr::unit(op.context()));
        Ok(())
    });
    patterns.add(rename("t.b", "t.c"));
    let mut hook = |event: &PatternEvent<'_, '_>| order.push(event.op_name.to_owned());
    let options = ConversionOptions { after_each_pattern: Some(&mut hook), verify_each: true, ..Default::default() };
    convert_with(module.op(), &target, &patterns, Mode::Full, options).expect("converts");
    assert_eq!(order, ["t.a", "t.b"]);
}

#[test]
fn erased_ops_are_never_visited_even_where_addresses_are_used_again() {
    // Each `t.eat` erases its body and creates ops, often at the same addresses.
    let text = "\"t.eat\"() ({\n  \"t.prey\"() : () -> ()\n  \"t.prey\"() : () -> ()\n}) : () -> ()\n".repeat(200);
    let module = parse(&text);
    let mut target = ConversionTarget::new();
    target.illegal_op("t.eat").illegal_op("t.prey");
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.eat", |op, _, rw| {
        let prey = op.body().and_then(|body| body.first_op()).ok_or_else(|| Declined::no_match("nothing to eat"))?;
        rw.erase(prey);
        make(rw, "t.fed", op, &[])?;
        rw.erase(op);
        Ok(())
    });
    // No pattern for t.prey: a visit of one would fail the conversion.
    let stats = convert(module.op(), &target, &patterns, Mode::Full).expect("converts");
    assert_eq!(stats.patterns_applied, 200);
    assert_eq!(names(module), ["t.fed"; 200]);
}

#[test]
fn a_replaced_root_is_allowed() {
    let module = parse("func.func @f() {\n  return\n}\n");
    let func = module.functions()[0];
    let mut target = ConversionTarget::new();
    target.illegal_op("func.func");
    let mut patterns = PatternSet::new();
    patterns.add_fn("func.func", |op, _, rw| {
        rw.create(OpSpec::new("t.gone", op.location()))?;
        rw.erase(op);
        Ok(())
    });
    convert(func, &target, &patterns, Mode::Partial).expect("converts");
    assert_eq!(names(module), ["t.gone"]);
}

#[test]
fn an_op_changed_by_a_later_pattern_is_visited_again() {
    // The walk passes t.use while it is legal; the pattern on t.old, further down, makes it illegal.
    let module =
        parse("\"t.outer\"() ({\n  \"t.use\"(%0) : (i32) -> ()\n  %0 = \"t.old\"() : () -> i32\n}) : () -> ()\n");
    let mut target = ConversionTarget::new();
    target.illegal_op("t.old");
    target.dynamically_legal_op("t.use", |op| op.attr("old").is_none());
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.old", |op, _, rw| {
        for user in op.result(0).uses() {
            rw.set_attr(user.op, "old", monopour_ir::Attr::unit(op.context()));
        }
        let new = make(rw, "t.new", op, &[])?;
        rw.replace_op(op, &new.results());
        Ok(())
    });
    patterns.add(rename("t.use", "t.used"));
    check(module, &target, &patterns, Mode::Full).expect("converts");
    assert_eq!(names(module), ["t.outer", "t.used", "t.new"]);
}
