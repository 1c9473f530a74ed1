//! The evaluator against hand-computed values.

use monopour_ir::{Context, Module};
use monopour_testkit::{Data, Dtype, EvalError, HostTensor, Weights, evaluate, evaluate_with_weights};

fn run(text: &str, inputs: &[HostTensor]) -> Result<Vec<HostTensor>, EvalError> {
    let module = Module::parse(Context::new(), text.as_bytes(), "test.mlir").expect("the test's program parses");
    evaluate(&module, "main", inputs)
}

fn f32s(shape: &[usize], values: &[f32]) -> HostTensor {
    HostTensor::from_f32(shape, values).expect("as many values as the shape says")
}

/// Runs a program on inputs and compares its only result.
fn check(text: &str, inputs: &[HostTensor], shape: &[usize], values: &[f64]) {
    let results = run(text, inputs).expect("evaluates");
    assert_eq!(results.len(), 1);
    assert_eq!(results[0].shape, shape);
    let got = results[0].to_f64();
    assert!(
        got.iter().zip(values).all(|(a, b)| (a - b).abs() < 1e-12) && got.len() == values.len(),
        "{got:?} != {values:?}"
    );
}

#[test]
fn matmul_with_bias_and_relu() {
    let text = "func.func @main(%a: tensor<2x2xf32>, %b: tensor<2x2xf32>, %c: tensor<2xf32>) -> tensor<2x2xf32> {
      %z = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<2x2xf32>
      %f = linalg.fill ins(%z : f32) outs(%e : tensor<2x2xf32>) -> tensor<2x2xf32>
      %m = linalg.matmul ins(%a, %b : tensor<2x2xf32>, tensor<2x2xf32>) outs(%f : tensor<2x2xf32>) -> tensor<2x2xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = [\"parallel\", \"parallel\"]} ins(%m, %c : tensor<2x2xf32>, tensor<2xf32>) outs(%e : tensor<2x2xf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %s = arith.addf %p, %q : f32
        %t = arith.maximumf %s, %z : f32
        linalg.yield %t : f32
      } -> tensor<2x2xf32>
      return %r : tensor<2x2xf32>
    }";
    let inputs =
        [f32s(&[2, 2], &[1.0, 2.0, 3.0, 4.0]), f32s(&[2, 2], &[5.0, 6.0, 7.0, 8.0]), f32s(&[2], &[-30.0, 0.5])];
    check(text, &inputs, &[2, 2], &[0.0, 22.5, 13.0, 50.5]);
}

#[test]
fn matmul_with_a_transposed_operand() {
    let maps = "indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]";
    let text = format!(
        "func.func @main(%a: tensor<1x2xf32>, %b: tensor<3x2xf32>, %c: tensor<1x3xf32>) -> tensor<1x3xf32> {{
          %m = linalg.matmul {maps} ins(%a, %b : tensor<1x2xf32>, tensor<3x2xf32>) outs(%c : tensor<1x3xf32>) -> tensor<1x3xf32>
          return %m : tensor<1x3xf32>
        }}"
    );
    let inputs = [
        f32s(&[1, 2], &[1.0, 10.0]),
        f32s(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        f32s(&[1, 3], &[100.0, 200.0, 300.0]),
    ];
    check(&text, &inputs, &[1, 3], &[121.0, 243.0, 365.0]);
}

/// Extended factors in either order, a square, and a body that is no sum of products: it adds to a factor.
#[test]
fn products_of_extended_factors() {
    let text = |extensions: &str, factors: &str, sum: &str| {
        format!(
            "#a = affine_map<(m, n, k) -> (m, k)>
            #b = affine_map<(m, n, k) -> (k, n)>
            #c = affine_map<(m, n, k) -> (m, n)>
            func.func @main(%a: tensor<2x3xf16>, %b: tensor<3x2xf32>, %c: tensor<2x2xf32>) -> tensor<2x2xf32> {{
              %b16 = arith.truncf %b : tensor<3x2xf32> to tensor<3x2xf16>
              %0 = linalg.generic {{indexing_maps = [#a, #b, #c], iterator_types = [\"parallel\", \"parallel\", \"reduction\"]}}
                  ins(%a, %b16 : tensor<2x3xf16>, tensor<3x2xf16>) outs(%c : tensor<2x2xf32>) {{
              ^bb0(%x: f16, %y: f16, %z: f32):
                {extensions}
                %p = arith.mulf {factors} : f32
                %s = arith.addf {sum} : f32
                linalg.yield %s : f32
              }} -> tensor<2x2xf32>
              return %0 : tensor<2x2xf32>
            }}"
        )
    };
    let inputs = || {
        let a =
            HostTensor { dtype: Dtype::F16, shape: vec![2, 3], data: Data::Float(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.5]) };
        [a, f32s(&[3, 2], &[1.0, 0.5, -1.0, 2.0, 3.0, 0.25]), f32s(&[2, 2], &[10.0, 20.0, 30.0, 40.0])]
    };
    let both = "%i = arith.extf %x : f16 to f32\n %j = arith.extf %y : f16 to f32";
    let swapped = "%j = arith.extf %y : f16 to f32\n %i = arith.extf %x : f16 to f32";
    let sums = [18.0, 25.25, 48.5, 53.625];
    check(&text(both, "%i, %j", "%z, %p"), &inputs(), &[2, 2], &sums);
    check(&text(swapped, "%j, %i", "%p, %z"), &inputs(), &[2, 2], &sums);
    // The last square of the factor, and the factor itself.
    check(&text(both, "%j, %j", "%i, %p"), &inputs(), &[2, 2], &[12.0, 3.0625, 15.5, 6.5625]);
    check(&text(both, "%i, %i", "%z, %p"), &inputs(), &[2, 2], &[24.0, 34.0, 113.25, 123.25]);
}

#[test]
fn named_ops_are_generalised() {
    let text = "func.func @main(%a: tensor<2x3xf32>) -> tensor<3x2xf32> {
      %e = tensor.empty() : tensor<3x2xf32>
      %t = linalg.transpose ins(%a : tensor<2x3xf32>) outs(%e : tensor<3x2xf32>) permutation = [1, 0]
      %u = linalg.exp ins(%t : tensor<3x2xf32>) outs(%e : tensor<3x2xf32>) -> tensor<3x2xf32>
      %v = linalg.map { math.log } ins(%u : tensor<3x2xf32>) outs(%e : tensor<3x2xf32>)
      return %v : tensor<3x2xf32>
    }";
    check(text, &[f32s(&[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0])], &[3, 2], &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    let text = "func.func @main(%a: tensor<2x3xf32>, %i: tensor<2xf32>) -> tensor<2x2xf32> {
      %r = linalg.reduce { arith.addf } ins(%a : tensor<2x3xf32>) outs(%i : tensor<2xf32>) dimensions = [1]
      %e = tensor.empty() : tensor<2x2xf32>
      %b = linalg.broadcast ins(%r : tensor<2xf32>) outs(%e : tensor<2x2xf32>) dimensions = [0]
      return %b : tensor<2x2xf32>
    }";
    check(
        text,
        &[f32s(&[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), f32s(&[2], &[0.5, 0.25])],
        &[2, 2],
        &[3.5, 12.25, 3.5, 12.25],
    );
}

#[test]
fn generic_with_reversed_and_divided_maps() {
    let text = "func.func @main(%a: tensor<6xf32>, %b: tensor<3xf32>) -> tensor<6xf32> {
      %e = tensor.empty() : tensor<6xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (5 - i)>, affine_map<(i) -> (i floordiv 2)>, affine_map<(i) -> (i)>], iterator_types = [\"parallel\"]} ins(%a, %b : tensor<6xf32>, tensor<3xf32>) outs(%e : tensor<6xf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %i = linalg.index 0 : index
        %j = arith.index_cast %i : index to i32
        %k = arith.sitofp %j : i32 to f32
        %s = arith.addf %p, %q : f32
        %t = math.fma %k, %k, %s : f32
        linalg.yield %t : f32
      } -> tensor<6xf32>
      return %r : tensor<6xf32>
    }";
    let inputs = [f32s(&[6], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), f32s(&[3], &[10.0, 20.0, 30.0])];
    check(text, &inputs, &[6], &[15.0, 15.0, 27.0, 31.0, 47.0, 55.0]);
}

#[test]
fn a_gather_and_a_branch_in_a_body() {
    let text = "func.func @main(%a: tensor<4xf32>, %i: tensor<3xi32>) -> tensor<3xf32> {
      %e = tensor.empty() : tensor<3xf32>
      %z = arith.constant 0 : i32
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = [\"parallel\"]} ins(%i : tensor<3xi32>) outs(%e : tensor<3xf32>) {
      ^bb0(%p: i32, %o: f32):
        %n = arith.cmpi slt, %p, %z : i32
        %v = scf.if %n -> f32 {
          %c = arith.constant -1.0 : f32
          scf.yield %c : f32
        } else {
          %x = arith.index_cast %p : i32 to index
          %g = tensor.extract %a[%x] : tensor<4xf32>
          scf.yield %g : f32
        }
        linalg.yield %v : f32
      } -> tensor<3xf32>
      return %r : tensor<3xf32>
    }";
    let indices = HostTensor { dtype: Dtype::Int(32), shape: vec![3], data: Data::Int(vec![3, -5, 0]) };
    check(text, &[f32s(&[4], &[1.0, 2.0, 3.0, 4.0]), indices.clone()], &[3], &[4.0, -1.0, 1.0]);
    // An index out of range is clamped.
    let outside = HostTensor { data: Data::Int(vec![1, 4, 1000]), ..indices };
    check(text, &[f32s(&[4], &[1.0, 2.0, 3.0, 4.0]), outside], &[3], &[2.0, 4.0, 4.0]);
}

#[test]
fn forall_with_ragged_tiles() {
    let text = "#tile = affine_map<(d0) -> (-d0 + 5, 2)>
    func.func @main(%a: tensor<5xf32>, %d: tensor<5xf32>) -> tensor<5xf32> {
      %r = scf.forall (%i) = (0) to (5) step (2) shared_outs(%o = %d) -> (tensor<5xf32>) {
        %n = affine.min #tile(%i)
        %s = tensor.extract_slice %a[%i] [%n] [1] : tensor<5xf32> to tensor<?xf32>
        %e = tensor.extract_slice %o[%i] [%n] [1] : tensor<5xf32> to tensor<?xf32>
        %m = linalg.add ins(%s, %s : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
        scf.forall.in_parallel {
          tensor.parallel_insert_slice %m into %o[%i] [%n] [1] : tensor<?xf32> into tensor<5xf32>
        }
      }
      return %r : tensor<5xf32>
    }";
    check(text, &[f32s(&[5], &[1.0, 2.0, 3.0, 4.0, 5.0]), f32s(&[5], &[0.0; 5])], &[5], &[2.0, 4.0, 6.0, 8.0, 10.0]);
}

#[test]
fn loops_and_slices() {
    let text = "func.func @main(%a: tensor<2x4xf32>) -> tensor<4xf32> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %z = arith.constant dense<0.0> : tensor<4xf32>
      %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%acc = %z) -> (tensor<4xf32>) {
        %s = tensor.extract_slice %a[%i, 0] [1, 4] [1, 1] : tensor<2x4xf32> to tensor<4xf32>
        %t = arith.addf %acc, %s : tensor<4xf32>
        scf.yield %t : tensor<4xf32>
      }
      %w:2 = scf.while (%x = %r, %n = %c0) : (tensor<4xf32>, index) -> (tensor<4xf32>, index) {
        %go = arith.cmpi ult, %n, %c2 : index
        scf.condition(%go) %x, %n : tensor<4xf32>, index
      } do {
      ^bb0(%x: tensor<4xf32>, %n: index):
        %y = arith.mulf %x, %x : tensor<4xf32>
        %k = arith.addi %n, %c1 : index
        scf.yield %y, %k : tensor<4xf32>, index
      }
      return %w#0 : tensor<4xf32>
    }";
    check(text, &[f32s(&[2, 4], &[0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, -2.0])], &[4], &[1.0, 16.0, 0.0, 1.0]);
}

#[test]
fn tensor_dialect() {
    let text = "func.func @main(%a: tensor<2x2xf32>) -> tensor<14xf32> {
      %c = arith.constant 9.0 : f32
      %p = tensor.pad %a low[0, 1] high[1, 0] {
      ^bb0(%i: index, %j: index):
        tensor.yield %c : f32
      } : tensor<2x2xf32> to tensor<3x3xf32>
      %f = tensor.collapse_shape %p [[0, 1]] : tensor<3x3xf32> into tensor<9xf32>
      %g = tensor.generate {
      ^bb0(%i: index):
        %x = arith.index_cast %i : index to i64
        %y = arith.sitofp %x : i64 to f32
        tensor.yield %y : f32
      } : tensor<3xf32>
      %s = tensor.from_elements %c, %c : tensor<2xf32>
      %r = tensor.concat dim(0) %f, %g, %s : (tensor<9xf32>, tensor<3xf32>, tensor<2xf32>) -> tensor<14xf32>
      return %r : tensor<14xf32>
    }";
    let expected = [9.0, 1.0, 2.0, 9.0, 3.0, 4.0, 9.0, 9.0, 9.0, 0.0, 1.0, 2.0, 9.0, 9.0];
    check(text, &[f32s(&[2, 2], &[1.0, 2.0, 3.0, 4.0])], &[14], &expected);
}

#[test]
fn a_read_of_an_empty_tensor_shows() {
    let text = "func.func @main() -> tensor<2xf32> {
      %e = tensor.empty() : tensor<2xf32>
      return %e : tensor<2xf32>
    }";
    assert!(run(text, &[]).expect("evaluates")[0].to_f64().iter().all(|v| v.is_nan()));
}

#[test]
fn weights_come_from_the_blob_or_the_table() {
    let text = "func.func @main() -> tensor<2xf32> {
      %w = arith.constant dense_resource<w> : tensor<2xf32>
      return %w : tensor<2xf32>
    }";
    let blob =
        format!("{text}\n{{-#\n dialect_resources: {{ builtin: {{ w: \"0x040000000000803F00000040\" }} }}\n#-}}");
    check(&blob, &[], &[2], &[1.0, 2.0]);
    let module = Module::parse(Context::new(), text.as_bytes(), "test.mlir").expect("parses");
    let weights = Weights::from([("w".to_owned(), f32s(&[2], &[3.0, 4.0]).to_bytes())]);
    let results = evaluate_with_weights(&module, "main", &[], &weights).expect("evaluates");
    assert_eq!(results[0].to_f64(), [3.0, 4.0]);
    assert!(matches!(evaluate(&module, "main", &[]), Err(EvalError::Unsupported { .. })));
}

#[test]
fn wrong_inputs_and_division_by_zero_are_errors() {
    let text = "func.func @main(%a: i8, %b: i8) -> i8 {
      %q = arith.divsi %a, %b : i8
      return %q : i8
    }";
    let byte = |v| HostTensor { dtype: Dtype::Int(8), shape: vec![], data: Data::Int(vec![v]) };
    assert_eq!(run(text, &[byte(-7), byte(2)]).expect("evaluates")[0].data, Data::Int(vec![-3]));
    assert!(matches!(run(text, &[byte(1), byte(0)]), Err(EvalError::Undefined { .. })));
    assert!(matches!(run(text, &[byte(-128), byte(-1)]), Err(EvalError::Undefined { .. })));
    assert!(matches!(run(text, &[byte(1)]), Err(EvalError::Inputs(_))));
}

#[test]
fn an_unknown_op_is_named() {
    let cx = Context::new();
    cx.allow_unregistered_dialects(true);
    let text = "func.func @main() -> f32 {\n  %a = \"their.op\"() : () -> f32\n  return %a : f32\n}";
    let module = Module::parse(cx, text.as_bytes(), "their.mlir").expect("parses");
    let error = evaluate(&module, "main", &[]).expect_err("is refused");
    assert_eq!(error.to_string(), "the evaluator does not cover their.op at their.mlir:2:8");
}

#[test]
fn softmax_along_either_dimension() {
    let text = |dimension: usize| {
        format!(
            "func.func @main(%a: tensor<2x2xf32>) -> tensor<2x2xf32> {{
              %e = tensor.empty() : tensor<2x2xf32>
              %r = linalg.softmax dimension({dimension}) ins(%a : tensor<2x2xf32>) outs(%e : tensor<2x2xf32>) -> tensor<2x2xf32>
              return %r : tensor<2x2xf32>
            }}"
        )
    };
    // Of two equal numbers each gets a half; of numbers that differ by 1, e / (1 + e) and the rest.
    let share = std::f64::consts::E / (1.0 + std::f64::consts::E);
    let input = [f32s(&[2, 2], &[1.0, 1.0, 2.0, 2.0])];
    check(&text(1), &input, &[2, 2], &[0.5, 0.5, 0.5, 0.5]);
    check(&text(0), &input, &[2, 2], &[1.0 - share, 1.0 - share, share, share]);
}

#[test]
fn pack_pads_and_permutes_and_unpack_undoes_it() {
    let text = "func.func @main(%a: tensor<3x4xf32>) -> tensor<2x2x2x2xf32> {
      %p = arith.constant 9.0 : f32
      %e = tensor.empty() : tensor<2x2x2x2xf32>
      %r = linalg.pack %a padding_value(%p : f32) outer_dims_perm = [1, 0] inner_dims_pos = [0, 1] inner_tiles = [2, 2] into %e : tensor<3x4xf32> -> tensor<2x2x2x2xf32>
      return %r : tensor<2x2x2x2xf32>
    }";
    let plain = f32s(&[3, 4], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 10.0, 11.0, 12.0, 13.0]);
    // Blocks of the left half from top to bottom, then of the right half; the fourth row is padding.
    let packed = [0.0, 1.0, 4.0, 5.0, 10.0, 11.0, 9.0, 9.0, 2.0, 3.0, 6.0, 7.0, 12.0, 13.0, 9.0, 9.0];
    check(text, std::slice::from_ref(&plain), &[2, 2, 2, 2], &packed);
    let back = "func.func @main(%a: tensor<2x2x2x2xf32>) -> tensor<3x4xf32> {
      %e = tensor.empty() : tensor<3x4xf32>
      %r = linalg.unpack %a outer_dims_perm = [1, 0] inner_dims_pos = [0, 1] inner_tiles = [2, 2] into %e : tensor<2x2x2x2xf32> -> tensor<3x4xf32>
      return %r : tensor<3x4xf32>
    }";
    let input = f32s(&[2, 2, 2, 2], &packed.map(|v| v as f32));
    check(back, &[input], &[3, 4], &plain.to_f64());
}

#[test]
fn windows_of_strides_and_dilations() {
    let text = "func.func @main(%a: tensor<1x7x1xf32>, %k: tensor<2x1x1xf32>) -> tensor<1x3x1xf32> {
      %z = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<1x3x1xf32>
      %f = linalg.fill ins(%z : f32) outs(%e : tensor<1x3x1xf32>) -> tensor<1x3x1xf32>
      %r = linalg.conv_1d_nwc_wcf {dilations = dense<2> : tensor<1xi64>, strides = dense<2> : tensor<1xi64>} ins(%a, %k : tensor<1x7x1xf32>, tensor<2x1x1xf32>) outs(%f : tensor<1x3x1xf32>) -> tensor<1x3x1xf32>
      return %r : tensor<1x3x1xf32>
    }";
    let inputs = [f32s(&[1, 7, 1], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), f32s(&[2, 1, 1], &[1.0, 10.0])];
    check(text, &inputs, &[1, 3, 1], &[20.0, 42.0, 64.0]);
}

#[test]
fn scalars_go_in_and_come_out() {
    let text = "func.func @main(%a: f32, %n: index, %p: i1) -> (f32, index, i1) {
      %b = arith.select %p, %a, %a : f32
      %c = arith.addf %b, %b : f32
      %m = arith.addi %n, %n : index
      %t = arith.constant true
      %q = arith.xori %p, %t : i1
      return %c, %m, %q : f32, index, i1
    }";
    let scalar = |dtype, value| HostTensor { dtype, shape: vec![], data: Data::Int(vec![value]) };
    let inputs = [f32s(&[], &[1.25]), scalar(Dtype::Index, 21), scalar(Dtype::Int(1), 1)];
    let results = run(text, &inputs).expect("evaluates");
    assert_eq!(results.iter().map(|r| r.to_f64()[0]).collect::<Vec<_>>(), [2.5, 42.0, 0.0]);
    assert!(results.iter().all(|r| r.shape.is_empty()));
}

#[test]
fn sine_and_cosine_of_one_op() {
    let text = "func.func @main(%a: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      %s, %c = math.sincos %a : tensor<2xf32>
      return %s, %c : tensor<2xf32>, tensor<2xf32>
    }";
    let results = run(text, &[f32s(&[2], &[0.0, std::f32::consts::FRAC_PI_2])]).expect("evaluates");
    let [sine, cosine] = [0, 1].map(|i| results[i].to_f64());
    assert_eq!((sine[0], cosine[0]), (0.0, 1.0));
    assert!((sine[1] - 1.0).abs() < 1e-7 && cosine[1].abs() < 1e-7);
}
