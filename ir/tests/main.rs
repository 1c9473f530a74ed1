//! One binary for all tests of `monopour-ir`.

mod conversion;
mod interfaces;
mod lowerings;
mod opt;
mod structure;
mod templates;
mod typed;

use monopour_ir::{Context, Module, WalkOrder, apply_named_sequence, run_passes};

const ADD: &str = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n  %0 = arith.addf %a, %a : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n";

#[test]
fn parses_text_walks_and_prints() {
    let cx = Context::new();
    let module = Module::parse(cx, ADD.as_bytes(), "add.mlir").expect("parses");
    let names: Vec<_> = module.op().nested(WalkOrder::Pre).iter().map(|op| op.name()).collect();
    assert_eq!(names, ["builtin.module", "func.func", "arith.addf", "func.return"]);
    let add = module.op().find_all("arith.addf")[0];
    assert_eq!(add.location().position(), Some(("add.mlir".to_owned(), 2, 8)));
    assert_eq!(add.operand(0).uses().len(), 2);
    assert_eq!(add.operand(0).ty().as_tensor().expect("tensor").shape, [4]);
}

#[test]
fn ops_of_a_module_print_together_as_each_does() {
    let cx = Context::new();
    let two = format!(
        "memref.global \"private\" constant @t : memref<2xf32> = dense<[1.0, 2.0]>\n{ADD}{}",
        ADD.replace("main", "other")
    );
    let module = Module::parse(cx, two.as_bytes(), "two.mlir").expect("parses");
    let ops = module.body().ops();
    let each = |ops: &[monopour_ir::Op]| ops.iter().map(|op| format!("{op}\n")).collect::<String>();
    assert_eq!(module.print_ops(&ops), each(&ops));
    assert_eq!(module.print_ops(&ops[1..2]), each(&ops[1..2]));
    assert_eq!(module.print_ops(&[]), "");
}

/// The panic message of `f`, in debug builds.
#[cfg(debug_assertions)]
fn panic_of<T: std::fmt::Debug>(f: impl FnOnce() -> T) -> String {
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).expect_err("panics");
    panic.downcast_ref::<String>().expect("has a message").clone()
}

#[cfg(debug_assertions)]
#[test]
fn a_use_after_erase_names_the_op() {
    let module = Module::parse(Context::new(), ADD.as_bytes(), "add.mlir").expect("parses");
    let (function, add) = (module.op().find_all("func.func")[0], module.op().find_all("arith.addf")[0]);
    let mut rw = monopour_ir::Rewriter::new(module.context());
    rw.erase(function);
    assert_eq!(panic_of(|| function.num_results()), "'func.func' is used after it was erased");
    assert_eq!(panic_of(|| add.num_results()), "'arith.addf' is used after it was erased");
    // Identity may be compared.
    assert_ne!(function, add);
}

#[cfg(debug_assertions)]
#[test]
fn an_op_at_the_address_of_an_erased_one_is_live() {
    let cx = Context::new();
    for _ in 0..64 {
        let module = Module::parse(cx, ADD.as_bytes(), "add.mlir").expect("parses");
        assert_eq!(module.op().nested(WalkOrder::Pre).len(), 4);
    }
}

#[test]
fn bytecode_gives_the_same_module() {
    let cx = Context::new();
    let module = Module::parse(cx, ADD.as_bytes(), "add.mlir").expect("parses");
    let again = Module::parse(cx, &module.op().to_bytecode(), "add.mlirbc").expect("parses");
    assert_eq!(module.op().to_string(), again.op().to_string());
}

#[test]
fn a_syntax_error_has_a_location() {
    let cx = Context::new();
    let errors = Module::parse(cx, b"func.func @f( {", "bad.mlir").expect_err("is refused");
    assert!(errors.has_errors());
    assert_eq!(errors.0[0].location, "bad.mlir:1:14");
}

#[test]
fn absurd_nesting_and_nul_are_refused() {
    let cx = Context::new();
    assert_eq!(Module::parse(cx, "(".repeat(2_000).as_bytes(), "deep.mlir").expect_err("refused").0[0].code, "I0002");
    assert_eq!(Module::parse(cx, b"\0", "nul.mlir").expect_err("refused").0[0].code, "I0002");
}

#[test]
fn passes_run() {
    let cx = Context::new();
    let text = "func.func @f() -> index {\n  %a = arith.constant 1 : index\n  %b = arith.constant 2 : index\n  %c = arith.addi %a, %b : index\n  return %c : index\n}\n";
    let module = Module::parse(cx, text.as_bytes(), "f.mlir").expect("parses");
    run_passes(module.op(), "builtin.module(canonicalize)").expect("runs");
    assert_eq!(module.op().find_all("arith.addi").len(), 0);
    assert_eq!(run_passes(module.op(), "builtin.module(nonsense)").expect_err("refused").0[0].code, "I0003");
}

#[test]
fn a_transform_script_without_its_sequence_is_refused() {
    let cx = Context::new();
    let module = Module::parse(cx, ADD.as_bytes(), "add.mlir").expect("parses");
    let script =
        Module::parse(cx, b"module attributes {transform.with_named_sequence} {}", "script.mlir").expect("parses");
    let errors = apply_named_sequence(module.op(), &script, "__monopour_tile").expect_err("refused");
    assert_eq!(errors.0[0].code, "I0004");
}
