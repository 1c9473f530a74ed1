//! Upstream's conversions as patterns of ours: the same IR, op for op.

use crate::lowerings::to_llvm;
use monopour_ir::{Context, Module, PrintOptions, run_passes};

const TO_LLVM: &str =
    "builtin.module(convert-arith-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts)";

const FUNCTIONS: &str = include_str!("upstream/functions_and_branches.mlir");
const ARITH: &str = include_str!("upstream/arith.mlir");

/// What is left has the same text as what upstream's passes leave.
fn same_as_upstream(text: &str) {
    let cx = Context::new();
    let parse = || Module::parse(cx, text.as_bytes(), "test.mlir").expect("parses");
    let (ours, theirs) = (parse(), parse());
    to_llvm::convert(ours.op()).expect("converts");
    run_passes(theirs.op(), TO_LLVM).expect("upstream converts");
    ours.op().verify_with_diagnostics().expect("is valid");
    assert_eq!(ours.op().print(&PrintOptions::default()), theirs.op().print(&PrintOptions::default()));
    assert!(ours.op().find_all(to_llvm::CAST).is_empty());
}

#[test]
fn functions_and_branches_to_llvm() {
    same_as_upstream(FUNCTIONS);
}

#[test]
fn arithmetic_to_llvm() {
    same_as_upstream(ARITH);
}
