//! Which changes of a function change its structural key.

use monopour_ir::{Context, Module, StructuralKey};

/// A loop over an element read from `%m`, which is captured from outside the op.
const LOOP: &str = r#"
func.func @f(%m: memref<4xf32>, %n: memref<4xf32>, %l: index, %u: index, %s: index) {
  scf.for %i = %l to %u step %s {
    %a = memref.load %m[%i] : memref<4xf32>
    %b = arith.addf %a, %a {tag = 1 : i64} : f32
    memref.store %b, %m[%i] : memref<4xf32>
  }
  return
}
"#;

fn keys(cx: Context, text: &str, without: &[&str]) -> StructuralKey {
    let module = Module::parse(cx, text.as_bytes(), "test.mlir").expect("parses");
    StructuralKey::of(module.op().find_all("scf.for")[0], without)
}

#[test]
fn a_key_sees_what_an_op_does_and_not_on_what() {
    let cx = Context::new();
    let key = |from: &str, to: &str| {
        assert!(LOOP.contains(from), "the text has {from}");
        keys(cx, &LOOP.replace(from, to), &[])
    };
    let own = keys(cx, LOOP, &[]);
    // Ignored: value names, locations and which values are captured.
    assert_eq!(own, key("%a", "%other"));
    assert_eq!(own, key("    ", "\n\n      "));
    assert_eq!(own, key("%m[", "%n["));
    assert_eq!(own, key("%l to %u step %s", "%s to %l step %u"));
    // Compared: ops, attributes, types, operands and which of them are equal.
    assert_ne!(own, key("arith.addf", "arith.mulf"));
    assert_ne!(own, key("tag = 1", "tag = 2"));
    assert_ne!(own, key("memref<4xf32>", "memref<5xf32>"));
    assert_ne!(own, key("store %b, %m", "store %b, %n"));
    assert_ne!(own, key("%l to %u step %s", "%l to %u step %u"));
    assert_ne!(own, key("store %b", "store %a"));
}

#[test]
fn attributes_can_be_left_out() {
    let cx = Context::new();
    let other = LOOP.replace("tag = 1", "tag = 2");
    assert_eq!(keys(cx, LOOP, &["tag"]), keys(cx, &other, &["tag"]));
    assert_ne!(keys(cx, LOOP, &["tug"]), keys(cx, &other, &["tug"]));
    assert_ne!(keys(cx, LOOP, &["tag"]), keys(cx, &LOOP.replace("tag = 1", "b = 2 : i64, tag = 1"), &["tag"]));
}
