//! Loops, ifs, functions and calls whose values change their types: 1:1, 1:N and 1:0.

use super::lower::{
    assert_ir, converter, converts_fully, functions, functions_target, retarget, structured, structured_target,
};
use super::parse;
use monopour_ir::Module;
use monopour_ir::conversion::{ConversionTarget, PatternSet};

/// Converts `t` ops to `n` ops, and the structured ops around them, in full mode; no cast is left.
#[track_caller]
fn becomes(text: &str, expected: &str) {
    let module = parse(text);
    let again = convert_all(module);
    assert_ir(module, expected);
    // The result is legal: a second conversion applies no pattern.
    assert_eq!((again, convert_all(module)), (again, 0));
}

/// The number of patterns applied.
fn convert_all(module: &Module) -> usize {
    let converter = converter(module.context());
    let mut target = ConversionTarget::new();
    target.illegal_dialect("t");
    structured_target(&mut target, &converter);
    functions_target(&mut target, &converter);
    let mut patterns = PatternSet::with_converter(&converter);
    for (from, to) in [("t.a", "n.a"), ("t.b", "n.b"), ("t.c", "n.c")] {
        retarget(&mut patterns, &converter, from, to);
    }
    structured(&mut patterns, &converter);
    functions(&mut patterns, &converter);
    converts_fully(module, &target, &patterns).patterns_applied
}

#[test]
fn a_loop_carries_one_value_for_one() {
    becomes(
        r#"
func.func @f(%n: index, %x: index) -> index {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %c1 step %c1 iter_args(%acc = %x) -> (index) : i32 {
    %s = "t.a"(%acc, %i, %n) : (index, i32, index) -> index
    scf.yield %s : index
  }
  return %r : index
}
"#,
        r#"
func.func @f(%arg0: i64, %arg1: i64) -> i64 {
  %c0_i32 = arith.constant 0 : i32
  %c1_i32 = arith.constant 1 : i32
  %0 = scf.for %arg2 = %c0_i32 to %c1_i32 step %c1_i32 iter_args(%arg3 = %arg1) -> (i64)  : i32 {
    %1 = "n.a"(%arg3, %arg2, %arg0) : (i64, i32, i64) -> i64
    scf.yield %1 : i64
  }
  return %0 : i64
}
"#,
    );
}

#[test]
fn a_loop_carries_several_values_for_one_and_none_for_another() {
    becomes(
        r#"
func.func @f(%lb: i32, %x: complex<f32>, %y: none) -> complex<f32> {
  %r:3 = scf.for %i = %lb to %lb step %lb iter_args(%p = %x, %q = %y, %k = %lb) -> (complex<f32>, none, i32) : i32 {
    %s:2 = "t.a"(%p, %q) : (complex<f32>, none) -> (none, complex<f32>)
    scf.yield %s#1, %s#0, %i : complex<f32>, none, i32
  }
  "t.b"(%r#0, %r#1, %r#2) : (complex<f32>, none, i32) -> ()
  return %r#0 : complex<f32>
}
"#,
        r#"
func.func @f(%arg0: i32, %arg1: f32, %arg2: f32) -> (f32, f32) {
  %0:3 = scf.for %arg3 = %arg0 to %arg0 step %arg0 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %arg0) -> (f32, f32, i32)  : i32 {
    %1:2 = "n.a"(%arg4, %arg5) : (f32, f32) -> (f32, f32)
    scf.yield %1#0, %1#1, %arg3 : f32, f32, i32
  }
  "n.b"(%0#0, %0#1, %0#2) : (f32, f32, i32) -> ()
  return %0#0, %0#1 : f32, f32
}
"#,
    );
}

#[test]
fn nested_loops_hand_values_in_and_out_of_each_other() {
    becomes(
        r#"
func.func @f(%lb: i32, %x: complex<f32>, %y: index) -> index {
  %r:2 = scf.for %i = %lb to %lb step %lb iter_args(%p = %x, %q = %y) -> (complex<f32>, index) : i32 {
    %s:2 = scf.for %j = %lb to %lb step %lb iter_args(%v = %q, %u = %p) -> (index, complex<f32>) : i32 {
      %z = "t.a"(%u, %q, %y) : (complex<f32>, index, index) -> index
      scf.yield %z, %x : index, complex<f32>
    }
    scf.yield %s#1, %s#0 : complex<f32>, index
  }
  return %r#1 : index
}
"#,
        r#"
func.func @f(%arg0: i32, %arg1: f32, %arg2: f32, %arg3: i64) -> i64 {
  %0:3 = scf.for %arg4 = %arg0 to %arg0 step %arg0 iter_args(%arg5 = %arg1, %arg6 = %arg2, %arg7 = %arg3) -> (f32, f32, i64)  : i32 {
    %1:3 = scf.for %arg8 = %arg0 to %arg0 step %arg0 iter_args(%arg9 = %arg7, %arg10 = %arg5, %arg11 = %arg6) -> (i64, f32, f32)  : i32 {
      %2 = "n.a"(%arg10, %arg11, %arg7, %arg3) : (f32, f32, i64, i64) -> i64
      scf.yield %2, %arg1, %arg2 : i64, f32, f32
    }
    scf.yield %1#1, %1#2, %1#0 : f32, f32, i64
  }
  return %0#2 : i64
}
"#,
    );
}

#[test]
fn a_while_loop_changes_both_of_its_regions() {
    becomes(
        r#"
func.func @f(%x: complex<f32>, %n: none) -> index {
  %r:2 = scf.while (%a = %x, %b = %n) : (complex<f32>, none) -> (index, complex<f32>) {
    %go = "t.a"(%a, %b) : (complex<f32>, none) -> i1
    %i = "t.b"(%a) : (complex<f32>) -> index
    scf.condition(%go) %i, %a : index, complex<f32>
  } do {
  ^bb0(%i: index, %c: complex<f32>):
    %m = "t.c"(%i) : (index) -> none
    scf.yield %c, %m : complex<f32>, none
  }
  return %r#0 : index
}
"#,
        r#"
func.func @f(%arg0: f32, %arg1: f32) -> i64 {
  %0:3 = scf.while (%arg2 = %arg0, %arg3 = %arg1) : (f32, f32) -> (i64, f32, f32) {
    %1 = "n.a"(%arg2, %arg3) : (f32, f32) -> i1
    %2 = "n.b"(%arg2, %arg3) : (f32, f32) -> i64
    scf.condition(%1) %2, %arg2, %arg3 : i64, f32, f32
  } do {
  ^bb0(%arg2: i64, %arg3: f32, %arg4: f32):
    "n.c"(%arg2) : (i64) -> ()
    scf.yield %arg3, %arg4 : f32, f32
  }
  return %0#0 : i64
}
"#,
    );
}

#[test]
fn an_if_changes_its_results() {
    becomes(
        r#"
func.func @f(%c: i1, %x: complex<f32>, %y: index, %z: none) -> complex<f32> {
  %r:3 = scf.if %c -> (index, complex<f32>, none) {
    %s = "t.a"(%y) : (index) -> complex<f32>
    scf.yield %y, %s, %z : index, complex<f32>, none
  } else {
    %t = "t.b"(%x, %z) : (complex<f32>, none) -> none
    scf.yield %y, %x, %t : index, complex<f32>, none
  }
  scf.if %c {
    "t.c"(%r#0, %r#2) : (index, none) -> ()
  }
  return %r#1 : complex<f32>
}
"#,
        r#"
func.func @f(%arg0: i1, %arg1: f32, %arg2: f32, %arg3: i64) -> (f32, f32) {
  %0:3 = scf.if %arg0 -> (i64, f32, f32) {
    %1:2 = "n.a"(%arg3) : (i64) -> (f32, f32)
    scf.yield %arg3, %1#0, %1#1 : i64, f32, f32
  } else {
    "n.b"(%arg1, %arg2) : (f32, f32) -> ()
    scf.yield %arg3, %arg1, %arg2 : i64, f32, f32
  }
  scf.if %arg0 {
    "n.c"(%0#0) : (i64) -> ()
  }
  return %0#1, %0#2 : f32, f32
}
"#,
    );
}

#[test]
fn functions_change_with_their_calls_and_returns() {
    becomes(
        r#"
func.func private @extern(index, complex<f32>) -> none
func.func @f(%x: complex<f32>, %y: index) -> (index, none) {
  %a = call @extern(%y, %x) : (index, complex<f32>) -> none
  %b:2 = call @f(%x, %y) : (complex<f32>, index) -> (index, none)
  %c = call @g(%b#1, %a) : (none, none) -> complex<f32>
  %d:2 = call @f(%c, %b#0) : (complex<f32>, index) -> (index, none)
  return %d#0, %a : index, none
}
func.func @g(%x: none, %y: none) -> complex<f32> {
  %a = "t.a"(%x, %y) : (none, none) -> complex<f32>
  return %a : complex<f32>
}
"#,
        r#"
func.func private @extern(i64, f32, f32)
func.func @f(%arg0: f32, %arg1: f32, %arg2: i64) -> i64 {
  call @extern(%arg2, %arg0, %arg1) : (i64, f32, f32) -> ()
  %0 = call @f(%arg0, %arg1, %arg2) : (f32, f32, i64) -> i64
  %1:2 = call @g() : () -> (f32, f32)
  %2 = call @f(%1#0, %1#1, %0) : (f32, f32, i64) -> i64
  return %2 : i64
}
func.func @g() -> (f32, f32) {
  %0:2 = "n.a"() : () -> (f32, f32)
  return %0#0, %0#1 : f32, f32
}
"#,
    );
}

#[test]
fn a_call_in_a_loop_in_an_if() {
    becomes(
        r#"
func.func @f(%c: i1, %lb: i32, %x: complex<f32>) -> complex<f32> {
  %r = scf.if %c -> (complex<f32>) {
    %s = scf.for %i = %lb to %lb step %lb iter_args(%p = %x) -> (complex<f32>) : i32 {
      %q = func.call @f(%c, %i, %p) : (i1, i32, complex<f32>) -> complex<f32>
      scf.yield %q : complex<f32>
    }
    scf.yield %s : complex<f32>
  } else {
    scf.yield %x : complex<f32>
  }
  return %r : complex<f32>
}
"#,
        r#"
func.func @f(%arg0: i1, %arg1: i32, %arg2: f32, %arg3: f32) -> (f32, f32) {
  %0:2 = scf.if %arg0 -> (f32, f32) {
    %1:2 = scf.for %arg4 = %arg1 to %arg1 step %arg1 iter_args(%arg5 = %arg2, %arg6 = %arg3) -> (f32, f32)  : i32 {
      %2:2 = func.call @f(%arg0, %arg4, %arg5, %arg6) : (i1, i32, f32, f32) -> (f32, f32)
      scf.yield %2#0, %2#1 : f32, f32
    }
    scf.yield %1#0, %1#1 : f32, f32
  } else {
    scf.yield %arg2, %arg3 : f32, f32
  }
  return %0#0, %0#1 : f32, f32
}
"#,
    );
}
