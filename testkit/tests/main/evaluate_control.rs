//! The evaluator on blocks, structured control flow, vectors and variables, against values worked out by hand.

use monopour_ir::{Context, Module};
use monopour_testkit::{Dtype, HostTensor, evaluate, evaluate_in_type};

/// Runs `@main`, which takes no arguments, and compares all results.
fn check(text: &str, values: &[&[f64]]) {
    let module = Module::parse(Context::new(), text.as_bytes(), "test.mlir").expect("the test's program parses");
    let found: Vec<_> = evaluate(&module, "main", &[]).expect("evaluates").iter().map(HostTensor::to_f64).collect();
    assert_eq!(found, values);
}

#[test]
fn blocks_loop_and_pass_values() {
    let text = "func.func @main() -> (index, index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      cf.br ^loop(%c0, %c0, %c1 : index, index, index)
    ^loop(%i: index, %a: index, %b: index):
      %s = arith.addi %a, %b : index
      %n = arith.addi %i, %c1 : index
      %more = arith.cmpi ult, %n, %c4 : index
      cf.cond_br %more, ^loop(%n, %b, %s : index, index, index), ^done(%s : index)
    ^done(%r: index):
      return %r, %n : index, index
    }";
    check(text, &[&[5.0], &[4.0]]);
}

#[test]
fn a_switch_takes_the_edge_of_its_case() {
    let text = |flag: i64| {
        format!(
            "func.func @main() -> index {{
              %flag = arith.constant {flag} : i32
              %a = arith.constant 10 : index
              %b = arith.constant 20 : index
              cf.switch %flag : i32, [
                default: ^one(%a : index),
                -3: ^two(%a, %b : index, index),
                7: ^one(%b : index)
              ]
            ^one(%x: index):
              return %x : index
            ^two(%y: index, %z: index):
              %s = arith.addi %y, %z : index
              return %s : index
            }}"
        )
    };
    for (flag, value) in [(0, 10.0), (-3, 30.0), (7, 20.0)] {
        check(&text(flag), &[&[value]]);
    }
}

#[test]
fn a_region_of_several_blocks_yields_from_the_one_it_ends_in() {
    let text = "func.func @main() -> f32 {
      %yes = arith.constant true
      %a = arith.constant 1.0 : f32
      %r = scf.execute_region -> f32 {
        cf.cond_br %yes, ^first, ^second
      ^first:
        %b = arith.addf %a, %a : f32
        scf.yield %b : f32
      ^second:
        scf.yield %a : f32
      }
      return %r : f32
    }";
    check(text, &[&[2.0]]);
}

#[test]
fn index_switch_and_unsigned_loops() {
    let text = "func.func @main() -> (f32, f32, f32) {
      %c1 = arith.constant 1 : index
      %c5 = arith.constant 5 : index
      %low = arith.constant -2 : index
      %a = arith.constant 1.0 : f32
      %b = arith.constant 2.0 : f32
      %s = scf.index_switch %c5 -> f32
      case 5 { scf.yield %b : f32 }
      default { scf.yield %a : f32 }
      %never = scf.for unsigned %i = %low to %c5 step %c1 iter_args(%x = %a) -> f32 {
        %y = arith.addf %x, %b : f32
        scf.yield %y : f32
      }
      %seven = scf.for %i = %low to %c5 step %c1 iter_args(%x = %a) -> f32 {
        %y = arith.addf %x, %b : f32
        scf.yield %y : f32
      }
      return %s, %never, %seven : f32, f32, f32
    }";
    check(text, &[&[2.0], &[1.0], &[15.0]]);
}

#[test]
fn a_parallel_loop_reduces() {
    let text = "func.func @main() -> f32 {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %init = arith.constant 10.0 : f32
      %r = scf.parallel (%i, %j) = (%c0, %c0) to (%c3, %c3) step (%c1, %c1) init(%init) -> f32 {
        %p = arith.muli %i, %j : index
        %q = arith.index_cast %p : index to i32
        %v = arith.sitofp %q : i32 to f32
        scf.reduce(%v : f32) {
        ^bb0(%a: f32, %b: f32):
          %s = arith.addf %a, %b : f32
          scf.reduce.return %s : f32
        }
      }
      return %r : f32
    }";
    check(text, &[&[19.0]]);
}

#[test]
fn transfers_pad_mask_and_skip() {
    let text = "func.func @main() -> (tensor<3xf32>, tensor<2x3xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %pad = arith.constant -1.0 : f32
      %t = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
      %e = arith.constant dense<0.0> : tensor<3xf32>
      %v = vector.transfer_read %t[%c1, %c1], %pad : tensor<2x3xf32>, vector<3xf32>
      %r = vector.transfer_write %v, %e[%c0] {in_bounds = [true]} : vector<3xf32>, tensor<3xf32>
      %m = vector.create_mask %c2 : vector<3xi1>
      %w = vector.transfer_write %v, %t[%c0, %c1], %m : vector<3xf32>, tensor<2x3xf32>
      return %r, %w : tensor<3xf32>, tensor<2x3xf32>
    }";
    check(text, &[&[5.0, 6.0, -1.0], &[1.0, 5.0, 6.0, 4.0, 5.0, 6.0]]);
}

/// MLIR would fold all three writes to the tensor that was read.
#[test]
fn masks_of_whole_transfers_count() {
    let text = "func.func @main() -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %pad = arith.constant -1.0 : f32
      %t = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
      %e = arith.constant dense<0.0> : tensor<3xf32>
      %m = vector.create_mask %c2 : vector<3xi1>
      %v = vector.transfer_read %t[%c0], %pad, %m : tensor<3xf32>, vector<3xf32>
      %a = vector.transfer_write %v, %e[%c0] : vector<3xf32>, tensor<3xf32>
      %w = vector.transfer_read %t[%c0], %pad : tensor<3xf32>, vector<3xf32>
      %b = vector.transfer_write %w, %e[%c0], %m : vector<3xf32>, tensor<3xf32>
      %c = vector.mask %m { vector.transfer_write %w, %e[%c0] : vector<3xf32>, tensor<3xf32> } : vector<3xi1> -> tensor<3xf32>
      return %a, %b, %c : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
    }";
    check(text, &[&[1.0, 2.0, -1.0], &[1.0, 2.0, 0.0], &[1.0, 2.0, 0.0]]);
}

#[test]
fn gather_and_scatter_under_a_mask() {
    let text = "func.func @main() -> (tensor<3xf32>, tensor<4xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %t = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
      %e = arith.constant dense<0.0> : tensor<3xf32>
      %at = arith.constant dense<[2, 0, 1]> : vector<3xindex>
      %m = vector.constant_mask [2] : vector<3xi1>
      %other = arith.constant dense<9.0> : vector<3xf32>
      %g = vector.gather %t[%c1] [%at], %m, %other : tensor<4xf32>, vector<3xindex>, vector<3xi1>, vector<3xf32> into vector<3xf32>
      %r = vector.transfer_write %g, %e[%c0] {in_bounds = [true]} : vector<3xf32>, tensor<3xf32>
      %s = vector.scatter %t[%c0] [%at], %m, %other : tensor<4xf32>, vector<3xindex>, vector<3xi1>, vector<3xf32> -> tensor<4xf32>
      return %r, %s : tensor<3xf32>, tensor<4xf32>
    }";
    check(text, &[&[4.0, 2.0, 9.0], &[9.0, 2.0, 9.0, 4.0]]);
}

#[test]
fn a_loaded_variable_keeps_its_value() {
    let text = "ml_program.global private mutable @g(dense<1.0> : tensor<2xf32>) : tensor<2xf32>
    func.func @main() -> (tensor<2xf32>, tensor<2xf32>) {
      %a = ml_program.global_load @g : tensor<2xf32>
      %c = arith.constant dense<[5.0, 6.0]> : tensor<2xf32>
      ml_program.global_store @g = %c : tensor<2xf32>
      %b = ml_program.global_load @g : tensor<2xf32>
      return %a, %b : tensor<2xf32>, tensor<2xf32>
    }";
    check(text, &[&[1.0, 1.0], &[5.0, 6.0]]);
}

#[test]
fn floats_round_to_their_type_where_asked() {
    let text = "func.func @main(%a: f32) -> f32 {
      %b = arith.addf %a, %a : f32
      %one = arith.constant 16777216.0 : f32
      %s = arith.addf %one, %a : f32
      %d = arith.subf %s, %one : f32
      return %d : f32
    }";
    let module = Module::parse(Context::new(), text.as_bytes(), "test.mlir").expect("the test's program parses");
    let one = HostTensor::random_within(Dtype::F32, &[], 1.0, 1.0, 0);
    let exact = evaluate(&module, "main", std::slice::from_ref(&one)).expect("evaluates");
    let rounded = evaluate_in_type(&module, "main", &[one]).expect("evaluates");
    assert_eq!((exact[0].to_f64(), rounded[0].to_f64()), (vec![1.0], vec![0.0]));
}
