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

/// Found by fuzzing.
#[test]
fn constants_of_dynamic_shape() {
    for (name, text) in [
        ("arith.constant", "%w = arith.constant dense_resource<w> : tensor<4x?xf32>"),
        (
            "ml_program.global",
            "ml_program.global private mutable @w(dense_resource<w> : tensor<4x?xf32>) : tensor<4x?xf32>",
        ),
    ] {
        let message = fails("B0104", text, &boundaries());
        assert!(message.contains("should be static shaped memref, but got 'memref<4x?xf32>'"), "{message}");
        let message = fails("B0104", text, &Options { extensions: true, ..boundaries() });
        assert!(message.contains(&format!("{name} with a dynamic shape cannot be bufferized")), "{message}");
    }
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

/// Slices that only the rewrite computes: MLIR's verifier refuses them on memrefs.
#[test]
fn parts_that_are_not_in_the_whole() {
    let padded = |source: &str, low: &str, high: &str, result: &str| {
        format!(
            "func.func @f(%a: tensor<{source}xf32>, %x: f32) -> tensor<{result}xf32> {{
            %n = arith.constant -4 : index
            %ten = arith.constant 10 : index
            %least = arith.constant -9223372036854775808 : index
            %p = tensor.pad %a low[{low}] high[{high}] {{ ^bb0(%i: index): tensor.yield %x : f32 }}
              : tensor<{source}xf32> to tensor<{result}xf32>
            return %p : tensor<{result}xf32>
            }}"
        )
    };
    let parts = "func.func @f(%a: tensor<10xf32>, %b: tensor<?xf32>) -> tensor<8xf32> {
        %c = tensor.concat dim(0) %a, %b : (tensor<10xf32>, tensor<?xf32>) -> tensor<8xf32>
        return %c : tensor<8xf32>
    }";
    let extensions = Options { extensions: true, ..boundaries() };
    for (text, upstreams, ours) in [
        (padded("10", "-4", "1", "7"), "expected offsets to be non-negative, but got -4", "a negative offset"),
        (padded("10", "%n", "1", "?"), "expected offsets to be non-negative, but got -4", "a negative offset"),
        (padded("10", "%least", "1", "?"), "expected offsets to be non-negative, but got -92", "a negative offset"),
        (padded("4", "%ten", "1", "8"), "offset 0 is out-of-bounds: 10 >= 8", "a slice out of bounds"),
        (padded("10", "0", "-3", "7"), "slice along dimension 0 runs out-of-bounds: 9 >= 7", "a slice out of bounds"),
        (parts.to_owned(), "slice along dimension 0 runs out-of-bounds: 9 >= 8", "a slice out of bounds"),
    ] {
        let message = fails("B0104", &text, &boundaries());
        assert!(message.contains(upstreams), "{message}");
        let message = fails("B0104", &text, &extensions);
        assert!(message.contains(ours), "{message}");
    }
    // An empty slice may be after the end; upstream refuses that.
    let nothing = "func.func @f(%a: tensor<4xf32>, %b: tensor<0xf32>) -> tensor<4xf32> {
        %c = tensor.concat dim(0) %a, %b : (tensor<4xf32>, tensor<0xf32>) -> tensor<4xf32>
        return %c : tensor<4xf32>
    }";
    for text in [nothing.to_owned(), padded("0", "4", "0", "4")] {
        let message = fails("B0104", &text, &boundaries());
        assert!(message.contains("offset 0 is out-of-bounds: 4 >= 4"), "{message}");
        bufferize(&text, &extensions).unwrap_or_else(|e| panic!("{e}"));
    }
    // A dynamic offset is checked by MLIR at run time.
    let given = "func.func @f(%a: tensor<8xf32>) -> tensor<4xf32> {
        %n = arith.constant -4 : index
        %s = tensor.extract_slice %a[%n] [4] [1] : tensor<8xf32> to tensor<4xf32>
        return %s : tensor<4xf32>
    }";
    bufferize(given, &boundaries()).unwrap_or_else(|e| panic!("{e}"));
}

/// A new buffer is row-major: dynamic strides and offsets need a cast, or are refused.
#[test]
fn layouts_that_no_new_buffer_has() {
    let text = |to: &str| {
        format!(
            "func.func @f(%m: memref<4x4xf32, strided<[?, ?], offset: ?>>) -> memref<4x4xf32, {to}> {{
            %t = bufferization.to_tensor %m restrict
              : memref<4x4xf32, strided<[?, ?], offset: ?>> to tensor<4x4xf32>
            %b = bufferization.to_buffer %t : tensor<4x4xf32> to memref<4x4xf32, {to}>
            return %b : memref<4x4xf32, {to}>
            }}"
        )
    };
    let (module, stats) = bufferize(&text("strided<[?, 1]>"), &boundaries()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((stats.allocs, module.op().find_all("memref.cast").len()), (1, 1), "{}", module.op());
    let message = fails("B0104", &text("strided<[?, 2]>"), &boundaries());
    assert!(message.contains("whose layout is not known"), "{message}");
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
    // Upstream stops at the call.
    let message = fails("B0120", text, &boundaries());
    assert!(message.contains("op was not bufferized") && message.contains("test.mlir:4:14"), "{message}");
}

#[test]
fn values_of_functions_whose_type_changes() {
    let upstreams = "'func.constant' op reference to function with mismatched type";
    let inside = "func.func private @g(%t: tensor<4xf32>) -> tensor<4xf32> { return %t : tensor<4xf32> }
    func.func @f() -> ((tensor<4xf32>) -> tensor<4xf32>) {
        %g = constant @g : (tensor<4xf32>) -> tensor<4xf32>
        return %g : (tensor<4xf32>) -> tensor<4xf32>
    }";
    let outside = "func.func private @g(tensor<4xf32>)
    %g = func.constant @g : (tensor<4xf32>) -> ()";
    for (text, place) in [(inside, "test.mlir:3:14"), (outside, "test.mlir:2:10")] {
        for allow_unknown_ops in [false, true] {
            let message = fails("B0130", text, &Options { allow_unknown_ops, ..boundaries() });
            assert!(message.contains(upstreams) && message.contains(place), "{message}");
        }
        let message = fails("B0130", text, &Options { extensions: true, ..boundaries() });
        assert!(message.contains("func.constant uses a function on tensors as a value"), "{message}");
        // The function keeps its type.
        for options in [
            Options { test_analysis_only: true, ..boundaries() },
            Options { dialect_filter: vec!["tensor".to_owned()], ..boundaries() },
            Options::default(),
        ] {
            bufferize(text, &options).unwrap_or_else(|e| panic!("{e}"));
        }
    }
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
