//! Every error code of this crate, by a program that triggers it.

use crate::support::{boundaries, bufferize, parse};
use monopour_bufferize::op_model::OpModels;
use monopour_bufferize::{Options, run_with_models};

fn fails(code: &str, text: &str, options: &Options) -> String {
    let Err(errors) = bufferize(text, options) else { panic!("{code} was expected") };
    let found = errors.0.iter().find(|d| d.code == code).unwrap_or_else(|| panic!("{code} was expected: {errors}"));
    assert!(found.help.is_some(), "{code} has a hint");
    found.to_string()
}

#[test]
fn options_that_exclude_each_other() {
    let text = "func.func @f() { return }";
    let filter = vec!["f".to_owned()];
    for (options, message) in [
        (Options { dump_alias_sets: true, ..boundaries() }, "'dump-alias-sets' requires 'test-analysis-only'"),
        (Options { print_conflicts: true, ..boundaries() }, "'print-conflicts' requires 'test-analysis-only'"),
        (
            Options { copy_before_write: true, test_analysis_only: true, ..boundaries() },
            "'copy-before-write' cannot be used with 'test-analysis-only'",
        ),
        (
            Options { no_analysis_func_filter: filter, ..Options::default() },
            "'no-analysis-func-filter' requires 'bufferize-function-boundaries'",
        ),
        (
            Options { must_infer_memory_space: true, use_encoding_for_memory_space: true, ..boundaries() },
            "only one of 'must-infer-memory-space' and 'use-encoding-for-memory-space'",
        ),
    ] {
        let found = fails("B0100", text, &options);
        assert!(found.contains(message), "{found}");
    }
}

#[test]
fn unknown_op() {
    let text = "func.func @f(%t: tensor<8xf32>) {
        \"tosa.custom\"(%t) {domain_name = \"x\", implementation_attrs = \"\", operator_name = \"y\"} : (tensor<8xf32>) -> ()
        return
    }";
    let message = fails("B0101", text, &Options { extensions: true, ..boundaries() });
    assert!(message.contains("tosa.custom has tensors") && message.contains("test.mlir:2:9"), "{message}");
    let message = fails("B0120", text, &boundaries());
    assert!(message.contains("op was not bufferized") && message.contains("test.mlir:2:9"), "{message}");
}

#[test]
fn several_blocks_where_the_model_expects_one() {
    let module = parse(
        "func.func @f(%t: tensor<8xf32>) -> tensor<8xf32> {
        %r = scf.execute_region -> tensor<8xf32> {
          cf.br ^next
        ^next:
          scf.yield %t : tensor<8xf32>
        }
        return %r : tensor<8xf32>
    }",
    );
    let mut models = OpModels::upstream();
    models.add("scf.execute_region", crate::support::WrongModel);
    let errors = run_with_models(module.op(), &boundaries(), &models).expect_err("the model expects one block");
    assert_eq!(errors.0[0].code, "B0102");
    assert!(errors.0[0].message.contains("does not support unstructured control flow"), "{errors}");
    let extensions = Options { extensions: true, ..boundaries() };
    let errors = run_with_models(module.op(), &extensions, &models).expect_err("the model expects one block");
    assert_eq!(errors.0[0].message, "a region of scf.execute_region has several blocks, and its model expects one");
}

#[test]
fn a_block_argument_without_a_type() {
    let text = "func.func @f() {
        return
      ^b(%t: tensor<8xf32>):
        cf.br ^b(%t : tensor<8xf32>)
    }";
    let message = fails("B0110", text, &boundaries());
    assert!(message.contains("'func.func' op could not infer buffer type of block argument"), "{message}");
    let message = fails("B0110", text, &Options { extensions: true, ..boundaries() });
    assert!(message.contains("it is passed nothing but itself"), "{message}");
}

#[test]
fn blocks_in_different_memory_spaces() {
    let text = "#g = #gpu.address_space<global>
      func.func @f(%c: i1) {
        %t = bufferization.alloc_tensor() : tensor<8xf32>
        %u = bufferization.alloc_tensor() {memory_space = #g} : tensor<8xf32>
        cf.cond_br %c, ^b(%t : tensor<8xf32>), ^b(%u : tensor<8xf32>)
      ^b(%a: tensor<8xf32>):
        return
    }";
    let message = fails("B0108", text, &boundaries());
    assert!(message.contains("incoming operands of block argument have inconsistent memory spaces"), "{message}");
}

#[test]
fn facts_that_do_not_fit() {
    let module = parse(
        "func.func @f(%t: tensor<8xf32>, %x: f32, %i: index) -> tensor<8xf32> {
        %a = tensor.insert %x into %t[%i] : tensor<8xf32>
        return %a : tensor<8xf32>
    }",
    );
    let mut models = OpModels::upstream();
    models.add("func.return", crate::support::WrongModel);
    let errors = run_with_models(module.op(), &boundaries(), &models).expect_err("the model is wrong");
    assert_eq!(errors.0[0].code, "B0103");
}

#[test]
fn unsupported_form() {
    let text = "func.func @f(%c: tensor<8xi1>, %t: tensor<8xf32>, %u: tensor<8xf32>) -> tensor<8xf32> {
        %a = arith.select %c, %t, %u : tensor<8xi1>, tensor<8xf32>
        return %a : tensor<8xf32>
    }";
    fails("B0104", text, &boundaries());
}

#[test]
fn must_be_in_place() {
    let text = "func.func @f(%t: tensor<8xf32>) -> tensor<8xf32> {
        %d = arith.constant dense<0.0> : tensor<8xf32>
        %m = bufferization.materialize_in_destination %t in %d : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
        return %m : tensor<8xf32>
    }";
    let message = fails("B0105", text, &boundaries());
    assert!(message.contains("given constraints: would write to read-only buffer"), "{message}");
    let message = fails("B0105", text, &Options { extensions: true, ..boundaries() });
    assert!(message.contains("not writable: arith.constant"), "{message}");
}

#[test]
fn loop_yields_another_buffer() {
    let text = "func.func @f(%t: tensor<8xf32>, %n: index) -> tensor<8xf32> {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %t) -> tensor<8xf32> {
          %e = tensor.empty() : tensor<8xf32>
          %s = linalg.exp ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
          scf.yield %s : tensor<8xf32>
        }
        return %r : tensor<8xf32>
    }";
    let message = fails("B0106", text, &boundaries());
    assert!(message.contains("Yield operand #0") && message.contains("test.mlir:7:11"), "{message}");
}

#[test]
fn memory_spaces_meet() {
    let text = "#g = #gpu.address_space<global>
      func.func @f(%c: i1) -> tensor<8xf32> {
        %t = bufferization.alloc_tensor() : tensor<8xf32>
        %u = bufferization.alloc_tensor() {memory_space = #g} : tensor<8xf32>
        %a = arith.select %c, %t, %u : tensor<8xf32>
        return %a : tensor<8xf32>
    }";
    fails("B0108", text, &boundaries());
}

#[test]
fn functions_as_values() {
    let text = "func.func private @g(%t: tensor<4xf32>) -> tensor<4xf32> { return %t : tensor<4xf32> }
    func.func @f(%t: tensor<4xf32>) -> tensor<4xf32> {
        %g = constant @g : (tensor<4xf32>) -> tensor<4xf32>
        %r = call_indirect %g(%t) : (tensor<4xf32>) -> tensor<4xf32>
        return %r : tensor<4xf32>
    }";
    let message = fails("B0130", text, &Options { extensions: true, ..boundaries() });
    assert!(message.contains("func.constant uses a function on tensors as a value"), "{message}");
}

#[test]
fn functions_that_never_return() {
    let text = "func.func @f(%t: tensor<4xf32>) { cf.br ^next\n^next:\ncf.br ^next }";
    let message = fails("B0131", text, &boundaries());
    assert!(message.contains("cannot bufferize func.func without func.return"), "{message}");
    assert!(bufferize(text, &Options { extensions: true, ..boundaries() }).is_ok());
}

#[test]
fn elements_that_no_memref_holds() {
    let text = "func.func @f() -> tensor<1x!quant.uniform<i8:f32, 1.0>> {
        %t = tensor.empty() : tensor<1x!quant.uniform<i8:f32, 1.0>>
        return %t : tensor<1x!quant.uniform<i8:f32, 1.0>>
    }";
    let message = fails("B0132", text, &boundaries());
    assert!(message.contains("is not a valid memref element type"), "{message}");
}
