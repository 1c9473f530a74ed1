//! Bufferization ops and special control flow in a model.

use super::case::{Case, f32_of, index_of};
use crate::text::Input;

pub(super) fn cases() -> Vec<Case> {
    let mut out =
        vec![alloc_copied(), alloc_of_size(), materialized(), materialized_cast(), reduced(), reduced_twice()];
    out.extend([0.0, 2.0, 5.0].map(switched));
    out
}

fn case(name: &str, text: &str, inputs: Vec<Input>) -> Case {
    Case::of_text(&format!("plain/{name}"), text, inputs)
}

/// The copy is written, and the original is returned as well.
fn alloc_copied() -> Case {
    let text = "func.func @main(%x: tensor<8xf32>, %i: index, %v: f32) -> (tensor<8xf32>, tensor<8xf32>) {\n  \
         %a = bufferization.alloc_tensor() copy(%x) : tensor<8xf32>\n  \
         %r = tensor.insert %v into %a[%i] : tensor<8xf32>\n  return %r, %x : tensor<8xf32>, tensor<8xf32>\n}\n";
    case("alloc_tensor_copy", text, vec![f32_of(&[8]), index_of(5.0), f32_of(&[])])
}

fn alloc_of_size() -> Case {
    let text = "func.func @main(%n: index, %v: f32) -> tensor<?xf32> {\n  \
         %a = bufferization.alloc_tensor(%n) : tensor<?xf32>\n  \
         %r = linalg.fill ins(%v : f32) outs(%a : tensor<?xf32>) -> tensor<?xf32>\n  return %r : tensor<?xf32>\n}\n";
    case("alloc_tensor_of_size", text, vec![index_of(9.0), f32_of(&[])])
}

fn materialized() -> Case {
    let text = "func.func @main(%x: tensor<8xf32>, %y: tensor<16xf32>) -> tensor<16xf32> {\n  \
         %o = tensor.empty() : tensor<8xf32>\n  \
         %e = linalg.exp ins(%x : tensor<8xf32>) outs(%o : tensor<8xf32>) -> tensor<8xf32>\n  \
         %s = tensor.extract_slice %y[4] [8] [1] : tensor<16xf32> to tensor<8xf32>\n  \
         %m = bufferization.materialize_in_destination %e in %s : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>\n  \
         %r = tensor.insert_slice %m into %y[4] [8] [1] : tensor<8xf32> into tensor<16xf32>\n  \
         return %r : tensor<16xf32>\n}\n";
    case("materialize_in_destination", text, vec![f32_of(&[8]), f32_of(&[16])])
}

/// A value materialized in a destination of dynamic size.
fn materialized_cast() -> Case {
    let text = "func.func @main(%x: tensor<8xf32>, %n: index) -> tensor<?xf32> {\n  \
         %d = tensor.empty(%n) : tensor<?xf32>\n  %c = tensor.cast %x : tensor<8xf32> to tensor<?xf32>\n  \
         %r = bufferization.materialize_in_destination %c in %d : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>\n  \
         return %r : tensor<?xf32>\n}\n";
    case("materialize_in_dynamic", text, vec![f32_of(&[8]), index_of(8.0)])
}

/// A case that computes, one that yields an input, and the default, which is a switch itself.
fn switched(which: f64) -> Case {
    let text = "func.func @main(%x: tensor<8xf32>, %i: index) -> (tensor<8xf32>, index) {\n  \
         %c1 = arith.constant 1 : index\n  %c7 = arith.constant 7 : index\n  %o = tensor.empty() : tensor<8xf32>\n  \
         %r:2 = scf.index_switch %i -> tensor<8xf32>, index\n  case 2 {\n    \
         %e = linalg.exp ins(%x : tensor<8xf32>) outs(%o : tensor<8xf32>) -> tensor<8xf32>\n    \
         scf.yield %e, %i : tensor<8xf32>, index\n  }\n  case 5 {\n    scf.yield %x, %c7 : tensor<8xf32>, index\n  }\n  \
         default {\n    %k = scf.index_switch %i -> index\n    default {\n      scf.yield %c1 : index\n    }\n    \
         %e = linalg.tanh ins(%x : tensor<8xf32>) outs(%o : tensor<8xf32>) -> tensor<8xf32>\n    \
         scf.yield %e, %k : tensor<8xf32>, index\n  }\n  return %r#0, %r#1 : tensor<8xf32>, index\n}\n";
    case(&format!("index_switch/{which}"), text, vec![f32_of(&[8]), index_of(which)])
}

fn reduced() -> Case {
    let text = "func.func @main(%x: tensor<8xf32>, %n: index) -> f32 {\n  %c0 = arith.constant 0 : index\n  \
         %c1 = arith.constant 1 : index\n  %z = arith.constant 2.0 : f32\n  \
         %r = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%z) -> f32 {\n    \
         %v = tensor.extract %x[%i] : tensor<8xf32>\n    scf.reduce(%v : f32) {\n    ^bb0(%a: f32, %b: f32):\n      \
         %s = arith.addf %a, %b : f32\n      scf.reduce.return %s : f32\n    }\n  }\n  return %r : f32\n}\n";
    case("parallel_reduce", text, vec![f32_of(&[8]), index_of(6.0)])
}

/// Two dimensions, two reductions; the inner bound is the argument.
fn reduced_twice() -> Case {
    let text = "func.func @main(%x: tensor<4x6xf32>, %n: index) -> (f32, f32) {\n  %c0 = arith.constant 0 : index\n  \
         %c1 = arith.constant 1 : index\n  %c4 = arith.constant 4 : index\n  %z = arith.constant 0.0 : f32\n  \
         %r:2 = scf.parallel (%i, %j) = (%c0, %c0) to (%c4, %n) step (%c1, %c1) init (%z, %z) -> (f32, f32) {\n    \
         %v = tensor.extract %x[%i, %j] : tensor<4x6xf32>\n    scf.reduce(%v, %v : f32, f32) {\n    \
         ^bb0(%a: f32, %b: f32):\n      %s = arith.addf %a, %b : f32\n      scf.reduce.return %s : f32\n    }, {\n    \
         ^bb0(%a: f32, %b: f32):\n      %s = arith.maximumf %a, %b : f32\n      scf.reduce.return %s : f32\n    }\n  }\n  \
         return %r#0, %r#1 : f32, f32\n}\n";
    case("parallel_reduce_twice", text, vec![f32_of(&[4, 6]), index_of(6.0)])
}
