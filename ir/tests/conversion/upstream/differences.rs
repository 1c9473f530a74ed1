//! Deliberate differences from upstream.

use super::{FOLD, TO_LLVM, parse};
use crate::lowerings::to_llvm;
use monopour_ir::{Context, run_passes};

fn ours(text: &str) -> String {
    Context::scope(|cx| {
        let module = parse(cx, text);
        to_llvm::convert(module.op()).expect("converts");
        module.op().to_string()
    })
}

fn theirs(text: &str, first: &[&str]) -> String {
    Context::scope(|cx| {
        let module = parse(cx, text);
        for pipeline in first.iter().chain(&[TO_LLVM]) {
            run_passes(module.op(), pipeline).expect("upstream converts");
        }
        module.op().to_string()
    })
}

fn refused(text: &str) -> String {
    Context::scope(|cx| {
        let module = parse(cx, text);
        let errors = to_llvm::convert(module.op()).expect_err("is refused");
        module.op().verify_with_diagnostics().expect("what is left is valid");
        errors.to_string()
    })
}

#[test]
fn nothing_is_folded_on_the_way() {
    let text = "\
func.func @f(%a: index) -> index {
  %c0 = arith.constant 0 : index
  %0 = arith.addi %a, %c0 : index
  return %0 : index
}
";
    assert_eq!(
        ours(text),
        "\
module {
  llvm.func @f(%arg0: i64) -> i64 {
    %0 = llvm.mlir.constant(0 : index) : i64
    %1 = llvm.add %arg0, %0 : i64
    llvm.return %1 : i64
  }
}
"
    );
    let folded = "module {\n  llvm.func @f(%arg0: i64) -> i64 {\n    llvm.return %arg0 : i64\n  }\n}\n";
    assert_eq!(theirs(text, &[FOLD]), folded);
    assert!(!theirs(text, &[]).contains("llvm.add"), "upstream folds while it converts");
}

#[test]
fn blocks_that_nothing_reaches_are_converted_too() {
    let text = "\
func.func @f(%a: index) {
  return
^dead(%b: index):
  cf.br ^dead(%b : index)
}
";
    assert_eq!(
        ours(text),
        "\
module {
  llvm.func @f(%arg0: i64) {
    llvm.return
  ^bb1(%0: i64):  // pred: ^bb1
    llvm.br ^bb1(%0 : i64)
  }
}
"
    );
    assert!(theirs(text, &[]).contains("cf.br ^bb1(%0 : index)"), "upstream leaves them");
}

#[test]
fn extended_addition_of_index_works() {
    let text = "\
func.func @f(%a: index, %b: index) -> (index, i1) {
  %0:2 = arith.addui_extended %a, %b : index, i1
  return %0#0, %0#1 : index, i1
}
";
    let i64_text = text.replace("index", "i64");
    assert_eq!(ours(text), theirs(&i64_text, &[]));
    let errors = Context::scope(|cx| {
        let module = parse(cx, text);
        // Release builds run passes without the verifier.
        let run = run_passes(module.op(), TO_LLVM).and_then(|()| module.op().verify_with_diagnostics());
        run.expect_err("upstream fails").to_string()
    });
    assert!(errors.contains("'index'"), "{errors}");
}

#[test]
fn a_function_that_is_not_inlined_stays_so() {
    let text = "func.func @f() attributes {no_inline} {\n  return\n}\n";
    assert_eq!(ours(text), "module {\n  llvm.func @f() attributes {no_inline} {\n    llvm.return\n  }\n}\n");
    assert_eq!(theirs(text, &[]), "module {\n  llvm.func @f() {\n    llvm.return\n  }\n}\n");
}

#[test]
fn a_wrapper_for_c_is_refused() {
    assert_eq!(
        refused("func.func private @f(index) attributes {llvm.emit_c_interface}\n"),
        "\
error[I0010]: 'func.func' is illegal in the conversion target and no pattern converts it
  --> test.mlir:1:1
  note: pattern 'convert func.func' declined: 'llvm.emit_c_interface' needs more than a function"
    );
}

#[test]
fn types_without_a_counterpart_are_refused_with_their_users() {
    let errors = refused(
        "func.func @f(%v: vector<2x2xi32>) -> vector<2x2xi32> {\n  %0 = arith.addi %v, %v : vector<2x2xi32>\n  return %0 : vector<2x2xi32>\n}\n",
    );
    assert!(
        errors.contains("pattern 'convert func.func' declined: type vector<2x2xi32> has no counterpart"),
        "{errors}"
    );
    assert!(
        errors.contains("operand 0 has type vector<2x2xi32>, which the type converter does not convert"),
        "{errors}"
    );
}

#[test]
fn a_rounding_mode_is_refused() {
    let errors =
        refused("func.func @f(%d: f64) -> f32 {\n  %0 = arith.truncf %d downward : f64 to f32\n  return %0 : f32\n}\n");
    assert_eq!(
        errors,
        "\
error[I0010]: 'arith.truncf' is illegal in the conversion target and no pattern converts it
  --> test.mlir:2:8
  note: pattern 'arith.truncf to llvm.fptrunc' declined: a rounding mode needs a constrained intrinsic"
    );
}
