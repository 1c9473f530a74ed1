//! Vectors and buffers in a model: transfers with elementwise ops between them, a tensor's buffer read as a tensor.

use super::case::{Case, f32_of, index_of};
use crate::host_tensor::Dtype;
use crate::text::Input;

pub(super) fn cases() -> Vec<Case> {
    let mut out = vec![whole(), seen_through(), seen_through_twice(), in_a_loop(), halves()];
    out.extend([0.0, 3.0, 6.0, 8.0].map(row_at));
    out.extend([transposed(), broadcast(), scattered(2.0), scattered(7.0)]);
    out
}

fn case(name: &str, text: &str, inputs: Vec<Input>) -> Case {
    Case::of_text(&format!("vectors/{name}"), text, inputs)
}

/// Of whole tensors, with comparisons, selects, constants and functions.
fn whole() -> Case {
    let text = "func.func @main(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {\n  \
         %c0 = arith.constant 0 : index\n  %p = arith.constant 0.0 : f32\n  %k = arith.constant dense<0.5> : vector<4x8xf32>\n  \
         %v = vector.transfer_read %x[%c0, %c0], %p {in_bounds = [true, true]} : tensor<4x8xf32>, vector<4x8xf32>\n  \
         %w = vector.transfer_read %y[%c0, %c0], %p {in_bounds = [true, true]} : tensor<4x8xf32>, vector<4x8xf32>\n  \
         %c = arith.cmpf ogt, %v, %w : vector<4x8xf32>\n  %s = arith.select %c, %v, %k : vector<4x8xi1>, vector<4x8xf32>\n  \
         %t = math.tanh %s : vector<4x8xf32>\n  %f = math.fma %t, %w, %k : vector<4x8xf32>\n  %e = tensor.empty() : tensor<4x8xf32>\n  \
         %r = vector.transfer_write %f, %e[%c0, %c0] {in_bounds = [true, true]} : vector<4x8xf32>, tensor<4x8xf32>\n  \
         return %r : tensor<4x8xf32>\n}\n";
    case("whole", text, vec![f32_of(&[4, 8]), f32_of(&[4, 8])])
}

/// Of a row, from a dynamic offset: out-of-bounds elements are padding, and are not written.
fn row_at(first: f64) -> Case {
    let text = "func.func @main(%x: tensor<3x9xf32>, %y: tensor<3x9xf32>, %i: index) -> tensor<3x9xf32> {\n  \
         %c1 = arith.constant 1 : index\n  %p = arith.constant 7.0 : f32\n  \
         %v = vector.transfer_read %x[%c1, %i], %p : tensor<3x9xf32>, vector<4xf32>\n  %w = arith.addf %v, %v : vector<4xf32>\n  \
         %r = vector.transfer_write %w, %y[%c1, %i] : vector<4xf32>, tensor<3x9xf32>\n  return %r : tensor<3x9xf32>\n}\n";
    case(&format!("row_at/{first}"), text, vec![f32_of(&[3, 9]), f32_of(&[3, 9]), index_of(first)])
}

/// Rows of two dimensions, the last of which are out of bounds.
fn scattered(first: f64) -> Case {
    let text = "func.func @main(%x: tensor<2x3xi32>, %y: tensor<?x5xi32>, %i: index) -> tensor<?x5xi32> {\n  \
         %c0 = arith.constant 0 : index\n  %p = arith.constant 7 : i32\n  \
         %v = vector.transfer_read %x[%c0, %c0], %p : tensor<2x3xi32>, vector<3x4xi32>\n  \
         %r = vector.transfer_write %v, %y[%i, %c0] {in_bounds = [false, true]} : vector<3x4xi32>, tensor<?x5xi32>\n  \
         return %r : tensor<?x5xi32>\n}\n";
    let i32_of = |shape: &[usize]| Input::new(Dtype::Int(32), shape);
    case(&format!("scattered/{first}"), text, vec![i32_of(&[2, 3]), i32_of(&[8, 5]), index_of(first)]).within(0.0, 0.0)
}

fn transposed() -> Case {
    let text = "func.func @main(%x: tensor<6x5xf32>) -> tensor<4x3xf32> {\n  \
         %c0 = arith.constant 0 : index\n  %c2 = arith.constant 2 : index\n  %p = arith.constant 0.0 : f32\n  \
         %v = vector.transfer_read %x[%c2, %c0], %p {in_bounds = [true, true], permutation_map = affine_map<(i, j) -> (j, i)>} : \
         tensor<6x5xf32>, vector<4x3xf32>\n  %n = arith.negf %v : vector<4x3xf32>\n  %e = tensor.empty() : tensor<4x3xf32>\n  \
         %r = vector.transfer_write %n, %e[%c0, %c0] {in_bounds = [true, true]} : vector<4x3xf32>, tensor<4x3xf32>\n  \
         return %r : tensor<4x3xf32>\n}\n";
    case("transposed", text, vec![f32_of(&[6, 5])])
}

fn broadcast() -> Case {
    let text = "func.func @main(%x: tensor<8xf32>, %k: f32) -> tensor<8xf32> {\n  %c0 = arith.constant 0 : index\n  \
         %v = vector.transfer_read %x[%c0], %k {in_bounds = [true]} : tensor<8xf32>, vector<8xf32>\n  \
         %b = vector.broadcast %k : f32 to vector<8xf32>\n  %m = arith.mulf %v, %b : vector<8xf32>\n  \
         %r = vector.transfer_write %m, %x[%c0] {in_bounds = [true]} : vector<8xf32>, tensor<8xf32>\n  \
         return %r : tensor<8xf32>\n}\n";
    case("broadcast", text, vec![f32_of(&[8]), f32_of(&[])])
}

/// A loop carries a vector, and a tensor that it writes row by row.
fn in_a_loop() -> Case {
    let text = "func.func @main(%x: tensor<5x8xf32>) -> (tensor<5x8xf32>, tensor<8xf32>) {\n  \
         %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  %c5 = arith.constant 5 : index\n  \
         %p = arith.constant 0.0 : f32\n  %z = arith.constant dense<0.0> : vector<8xf32>\n  %e = tensor.empty() : tensor<5x8xf32>\n  \
         %r:2 = scf.for %i = %c0 to %c5 step %c1 iter_args(%t = %e, %sum = %z) -> (tensor<5x8xf32>, vector<8xf32>) {\n    \
         %v = vector.transfer_read %x[%i, %c0], %p {in_bounds = [true]} : tensor<5x8xf32>, vector<8xf32>\n    \
         %s = arith.addf %sum, %v : vector<8xf32>\n    \
         %w = vector.transfer_write %s, %t[%i, %c0] {in_bounds = [true]} : vector<8xf32>, tensor<5x8xf32>\n    \
         scf.yield %w, %s : tensor<5x8xf32>, vector<8xf32>\n  }\n  %f = tensor.empty() : tensor<8xf32>\n  \
         %y = vector.transfer_write %r#1, %f[%c0] {in_bounds = [true]} : vector<8xf32>, tensor<8xf32>\n  \
         return %r#0, %y : tensor<5x8xf32>, tensor<8xf32>\n}\n";
    case("in_a_loop", text, vec![f32_of(&[5, 8])])
}

fn halves() -> Case {
    let text = "func.func @main(%x: tensor<11xbf16>) -> tensor<11xbf16> {\n  %c3 = arith.constant 3 : index\n  \
         %p = arith.constant 0.5 : bf16\n  %v = vector.transfer_read %x[%c3], %p : tensor<11xbf16>, vector<9xbf16>\n  \
         %w = arith.mulf %v, %v : vector<9xbf16>\n  \
         %r = vector.transfer_write %w, %x[%c3] : vector<9xbf16>, tensor<11xbf16>\n  return %r : tensor<11xbf16>\n}\n";
    case("halves", text, vec![Input::new(Dtype::Bf16, &[11])]).within(4e-3, 4e-3)
}

/// The buffer of a computed tensor, and the tensor of that buffer.
fn seen_through() -> Case {
    let text = "func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {\n  %a = arith.addf %x, %x : tensor<8xf32>\n  \
         %m = bufferization.to_buffer %a : tensor<8xf32> to memref<8xf32>\n  \
         %t = bufferization.to_tensor %m restrict : memref<8xf32> to tensor<8xf32>\n  %r = math.tanh %t : tensor<8xf32>\n  \
         return %r : tensor<8xf32>\n}\n";
    case("seen_through", text, vec![f32_of(&[8])])
}

/// Of an input of dynamic size; one of the two tensors is written.
fn seen_through_twice() -> Case {
    let text = "func.func @main(%x: tensor<?xf32>, %v: f32, %i: index) -> (tensor<?xf32>, tensor<?xf32>) {\n  \
         %m = bufferization.to_buffer %x : tensor<?xf32> to memref<?xf32>\n  \
         %t = bufferization.to_tensor %m restrict : memref<?xf32> to tensor<?xf32>\n  \
         %w = tensor.insert %v into %t[%i] : tensor<?xf32>\n  %u = math.absf %t : tensor<?xf32>\n  \
         return %w, %u : tensor<?xf32>, tensor<?xf32>\n}\n";
    case("seen_through_dynamic", text, vec![f32_of(&[9]), f32_of(&[]), index_of(4.0)])
}
