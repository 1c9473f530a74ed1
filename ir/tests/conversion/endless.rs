//! Patterns that would go on for ever: stopped, with the steps that repeat.

use super::contracts::{TEXT, stops};
use super::lower::fails_with;
use super::{make, parse, rename};
use monopour_ir::Attr;
use monopour_ir::conversion::{ConversionTarget, PatternSet};

#[test]
fn recreates_its_own_root() {
    let mut patterns = PatternSet::new();
    patterns.add(rename("t.a", "t.a"));
    stops(
        TEXT,
        &patterns,
        r#"
error[I0011]: patterns keep rewriting 't.a' without reaching a legal op (513 steps)
  --> test.mlir:3:6
  note: created or changed by pattern 'rename to t.a' on 't.a'
  note: this step repeats
  help: the patterns named above undo each other, or one recreates its own root; make the op legal in the target or let one of them decline
"#,
    );
}

#[test]
fn two_that_undo_each_other() {
    let mut patterns = PatternSet::new();
    patterns.add(rename("t.a", "t.b")).add(rename("t.b", "t.a"));
    stops(
        TEXT,
        &patterns,
        r#"
error[I0011]: patterns keep rewriting 't.b' without reaching a legal op (513 steps)
  --> test.mlir:3:6
  note: created or changed by pattern 'rename to t.b' on 't.a'
  note: created or changed by pattern 'rename to t.a' on 't.b'
  note: these 2 steps repeat
  help: the patterns named above undo each other, or one recreates its own root; make the op legal in the target or let one of them decline
"#,
    );
}

#[test]
fn a_circle_of_three_is_shown_once() {
    let mut patterns = PatternSet::new();
    patterns.add(rename("t.a", "t.b")).add(rename("t.b", "t.c")).add(rename("t.c", "t.a"));
    stops(
        TEXT,
        &patterns,
        r#"
error[I0011]: patterns keep rewriting 't.a' without reaching a legal op (513 steps)
  --> test.mlir:3:6
  note: created or changed by pattern 'rename to t.a' on 't.c'
  note: created or changed by pattern 'rename to t.c' on 't.b'
  note: created or changed by pattern 'rename to t.b' on 't.a'
  note: these 3 steps repeat
  help: the patterns named above undo each other, or one recreates its own root; make the op legal in the target or let one of them decline
"#,
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
    stops(
        TEXT,
        &patterns,
        r#"
error[I0011]: patterns keep rewriting 't.a' without reaching a legal op (513 steps)
  --> test.mlir:3:6
  note: created or changed by pattern 'convert t.a' on 't.a'
  note: this step repeats
  help: the patterns named above undo each other, or one recreates its own root; make the op legal in the target or let one of them decline
"#,
    );
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
    fails_with(
        &module,
        &target,
        &patterns,
        r#"
error[I0011]: patterns keep rewriting 't.b' without reaching a legal op (513 steps)
  --> test.mlir:1:1
  note: created or changed by pattern 'convert t.c' on 't.c'
  note: this step repeats
  help: the patterns named above undo each other, or one recreates its own root; make the op legal in the target or let one of them decline
"#,
    );
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
    stops(
        TEXT,
        &patterns,
        r#"
error[I0011]: patterns keep rewriting 't.a' without reaching a legal op (513 steps)
  --> test.mlir:3:6
  note: created or changed by pattern 'convert t.a' on 't.a'
  note: this step repeats
  help: the patterns named above undo each other, or one recreates its own root; make the op legal in the target or let one of them decline
"#,
    );
}
