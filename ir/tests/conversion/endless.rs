//! Patterns that do not terminate: stopped, with the steps that repeat.

use super::contracts::{TEXT, stops};
use super::lower::fails_with;
use super::{make, parse, rename};
use monopour_ir::Attr;
use monopour_ir::conversion::{ConversionTarget, PatternSet};

/// The diagnostic for an op and the steps, each a pattern and the op that it was applied to, that lead back to it.
fn never_ends(op: &str, at: &str, steps: &[(&str, &str)]) -> String {
    let notes: String = steps
        .iter()
        .map(|(pattern, on)| format!("  note: created or changed by pattern '{pattern}' on '{on}'\n"))
        .collect();
    let repeat = match steps.len() {
        1 => "this step repeats".to_owned(),
        count => format!("these {count} steps repeat"),
    };
    format!(
        "error[I0011]: patterns keep rewriting '{op}' without reaching a legal op (513 steps)\n  --> test.mlir:{at}\n{notes}  \
         note: {repeat}\n  help: the patterns named above undo each other, or one recreates its own root; make the op legal \
         in the target or let one of them decline"
    )
}

#[test]
fn recreates_its_own_root() {
    let mut patterns = PatternSet::new();
    patterns.add(rename("t.a", "t.a"));
    stops(TEXT, &patterns, &never_ends("t.a", "3:6", &[("rename to t.a", "t.a")]));
}

#[test]
fn two_that_undo_each_other() {
    let mut patterns = PatternSet::new();
    patterns.add(rename("t.a", "t.b")).add(rename("t.b", "t.a"));
    stops(TEXT, &patterns, &never_ends("t.b", "3:6", &[("rename to t.b", "t.a"), ("rename to t.a", "t.b")]));
}

#[test]
fn a_circle_of_three_is_shown_once() {
    let mut patterns = PatternSet::new();
    patterns.add(rename("t.a", "t.b")).add(rename("t.b", "t.c")).add(rename("t.c", "t.a"));
    stops(
        TEXT,
        &patterns,
        &never_ends("t.a", "3:6", &[("rename to t.a", "t.c"), ("rename to t.c", "t.b"), ("rename to t.b", "t.a")]),
    );
}

#[test]
fn changes_its_root_in_place_for_ever() {
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        let count = op.attr("count").and_then(|a| a.as_int()).unwrap_or(0);
        rw.set_attr(op, "count", Attr::i64(op.context(), count + 1));
        Ok(())
    });
    stops(TEXT, &patterns, &never_ends("t.a", "3:6", &[("convert t.a", "t.a")]));
}

#[test]
fn two_ops_that_change_each_other_for_ever() {
    let module = parse("\"t.b\"() : () -> ()\n\"t.c\"() : () -> ()\n");
    let mut target = ConversionTarget::new();
    let mut patterns = PatternSet::new();
    for name in ["t.b", "t.c"] {
        target.dynamically_legal_op(name, |op| op.attr("done").is_some());
        patterns.add_fn(name, |op, _, rw| {
            let mut others = op.block().expect("in a block").ops();
            others.retain(|other| *other != op);
            rw.remove_attr(others[0], "done");
            rw.set_attr(op, "done", Attr::unit(op.context()));
            Ok(())
        });
    }
    fails_with(module, &target, &patterns, &never_ends("t.b", "1:1", &[("convert t.c", "t.c")]));
}

#[test]
fn grows_for_ever() {
    let mut patterns = PatternSet::new();
    patterns.add_fn("t.a", |op, _, rw| {
        let first = make(rw, "t.a", op, &op.operands())?;
        let second = make(rw, "t.a", op, &first.results())?;
        rw.replace_op(op, &second.results());
        Ok(())
    });
    stops(TEXT, &patterns, &never_ends("t.a", "3:6", &[("convert t.a", "t.a")]));
}
