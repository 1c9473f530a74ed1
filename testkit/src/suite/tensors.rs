//! Ops of the tensor dialect that import replaces: gathers and scatters, reshapes by data, bitcasts, negative pads, and
//! reshapes of dynamic sizes.

use super::case::{Case, by};
use crate::host_tensor::Dtype;
use crate::text::Input;

pub(super) fn cases() -> Vec<Case> {
    let mut out = vec![gather_rows(), gather_pairs(), gather_columns(), gather_dynamic()];
    out.extend([scatter_rows(), scatter_pairs(), scatter_dynamic()]);
    out.extend([bitcast(), bitcast_dynamic(), reshape(), reshape_by_data(), reshape_to_scalar()]);
    out.extend([crop(), crop_both(), crop_dynamic(2), crop_dynamic(-3)]);
    out.extend([nothing_left("tensor<1x4xf32>", "2, 0", "-1, 1"), nothing_left("tensor<1x4xf32>", "-1, -1", "2, 0")]);
    out.extend([nothing_left("tensor<3x4xf32>", "-4, 1", "3, -1"), nothing_left("tensor<2x3xf32>", "1, 0", "-2, 0")]);
    out.extend([expand(), expand_between(), collapse(), collapse_expand(), checked()]);
    out
}

fn case(name: &str, text: &str, inputs: Vec<Input>) -> Case {
    Case::of_text(&format!("tensors/{name}"), text, inputs).within(0.0, 0.0)
}

fn f32s(shape: &[usize]) -> Input {
    Input::new(Dtype::F32, shape)
}

fn numbers(dtype: Dtype, shape: &[usize], low: f64, high: f64) -> Input {
    Input::new(dtype, shape).within(low, high)
}

fn number(value: f64) -> Input {
    numbers(Dtype::Index, &[], value, value + 1.0)
}

/// Rows by index, some out of range; the slice keeps the indexed dimension.
fn gather_rows() -> Case {
    let text = "func.func @main(%x: tensor<6x5xf32>, %at: tensor<3x4x1xindex>) -> tensor<3x4x1x5xf32> {\n  \
         %y = tensor.gather %x[%at] gather_dims([0]) : (tensor<6x5xf32>, tensor<3x4x1xindex>) -> tensor<3x4x1x5xf32>\n  \
         return %y : tensor<3x4x1x5xf32>\n}\n";
    case("gather_rows", text, vec![f32s(&[6, 5]), numbers(Dtype::Index, &[3, 4, 1], -3.0, 10.0)])
}

/// Two coordinates, in another order than the dimensions; the slice has neither.
fn gather_pairs() -> Case {
    let text = "func.func @main(%x: tensor<4x5x6xf32>, %at: tensor<7x2xi32>) -> tensor<7x5xf32> {\n  \
         %y = tensor.gather %x[%at] gather_dims([0, 2]) : (tensor<4x5x6xf32>, tensor<7x2xi32>) -> tensor<7x5xf32>\n  \
         return %y : tensor<7x5xf32>\n}\n";
    case("gather_pairs", text, vec![f32s(&[4, 5, 6]), numbers(Dtype::Int(32), &[7, 2], -2.0, 8.0)])
}

fn gather_columns() -> Case {
    let text = "func.func @main(%x: tensor<4x9xi32>, %at: tensor<6x1xi64>) -> tensor<6x4xi32> {\n  \
         %y = tensor.gather %x[%at] gather_dims([1]) unique : (tensor<4x9xi32>, tensor<6x1xi64>) -> tensor<6x4xi32>\n  \
         return %y : tensor<6x4xi32>\n}\n";
    case(
        "gather_columns",
        text,
        vec![Input::new(Dtype::Int(32), &[4, 9]), numbers(Dtype::Int(64), &[6, 1], -1e12, 1e12)],
    )
}

fn gather_dynamic() -> Case {
    let text = "func.func @main(%x: tensor<?x?xf32>, %at: tensor<?x1xi32>) -> tensor<?x1x?xf32> {\n  \
         %y = tensor.gather %x[%at] gather_dims([0]) : (tensor<?x?xf32>, tensor<?x1xi32>) -> tensor<?x1x?xf32>\n  \
         return %y : tensor<?x1x?xf32>\n}\n";
    case("gather_dynamic", text, vec![f32s(&[6, 7]), numbers(Dtype::Int(32), &[9, 1], -4.0, 12.0)])
}

/// Updates of rows out of range are dropped; of several for one row the last one counts.
fn scatter_rows() -> Case {
    let text = "func.func @main(%v: tensor<5x1x4xf32>, %into: tensor<6x4xf32>, %at: tensor<5x1xi32>) -> tensor<6x4xf32> {\n  \
         %y = tensor.scatter %v into %into[%at] scatter_dims([0]) unique : \
         (tensor<5x1x4xf32>, tensor<6x4xf32>, tensor<5x1xi32>) -> tensor<6x4xf32>\n  return %y : tensor<6x4xf32>\n}\n";
    let at = numbers(Dtype::Int(32), &[5, 1], -3.0, 9.0);
    case("scatter_rows", text, vec![f32s(&[5, 1, 4]), f32s(&[6, 4]), at]).may_copy()
}

fn scatter_pairs() -> Case {
    let text = "func.func @main(%v: tensor<3x3xf32>, %into: tensor<5x7xf32>, %at: tensor<3x3x2xindex>) -> tensor<5x7xf32> {\n  \
         %y = tensor.scatter %v into %into[%at] scatter_dims([0, 1]) unique : \
         (tensor<3x3xf32>, tensor<5x7xf32>, tensor<3x3x2xindex>) -> tensor<5x7xf32>\n  return %y : tensor<5x7xf32>\n}\n";
    let at = numbers(Dtype::Index, &[3, 3, 2], -1.0, 6.0);
    case("scatter_pairs", text, vec![f32s(&[3, 3]), f32s(&[5, 7]), at]).may_copy()
}

fn scatter_dynamic() -> Case {
    let text = "func.func @main(%v: tensor<?x?xf32>, %into: tensor<?x?xf32>, %at: tensor<?x1xi32>) -> tensor<?x?xf32> {\n  \
         %y = tensor.scatter %v into %into[%at] scatter_dims([1]) unique : \
         (tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x1xi32>) -> tensor<?x?xf32>\n  return %y : tensor<?x?xf32>\n}\n";
    let at = numbers(Dtype::Int(32), &[4, 1], -2.0, 9.0);
    case("scatter_dynamic", text, vec![f32s(&[4, 3]), f32s(&[3, 8]), at]).may_copy()
}

fn bitcast() -> Case {
    let text = "func.func @main(%x: tensor<7x9xf32>) -> tensor<7x9xi32> {\n  \
         %y = tensor.bitcast %x : tensor<7x9xf32> to tensor<7x9xi32>\n  return %y : tensor<7x9xi32>\n}\n";
    case("bitcast", text, vec![f32s(&[7, 9])]).dispatches(1)
}

fn bitcast_dynamic() -> Case {
    let text = "func.func @main(%x: tensor<?x9xi32>) -> tensor<?x9xf32> {\n  \
         %y = tensor.bitcast %x : tensor<?x9xi32> to tensor<?x9xf32>\n  return %y : tensor<?x9xf32>\n}\n";
    case("bitcast_dynamic", text, vec![numbers(Dtype::Int(32), &[5, 9], 1e9, 1.1e9)])
}

fn reshape() -> Case {
    let text = "func.func @main(%x: tensor<4x6xf32>) -> tensor<3x8xf32> {\n  %s = arith.constant dense<[3, 8]> : tensor<2xindex>\n  \
         %y = tensor.reshape %x(%s) : (tensor<4x6xf32>, tensor<2xindex>) -> tensor<3x8xf32>\n  \
         %z = arith.addf %y, %y : tensor<3x8xf32>\n  return %z : tensor<3x8xf32>\n}\n";
    case("reshape", text, vec![f32s(&[4, 6])])
}

/// The sizes are elements of a tensor.
fn reshape_by_data() -> Case {
    let text = "func.func @main(%x: tensor<?x4xf32>, %s: tensor<3xi32>) -> tensor<?x?x2xf32> {\n  \
         %y = tensor.reshape %x(%s) : (tensor<?x4xf32>, tensor<3xi32>) -> tensor<?x?x2xf32>\n  \
         %z = arith.addf %y, %y : tensor<?x?x2xf32>\n  return %z : tensor<?x?x2xf32>\n}\n";
    case("reshape_by_data", text, vec![f32s(&[2, 4]), numbers(Dtype::Int(32), &[3], 2.0, 3.0)])
}

fn reshape_to_scalar() -> Case {
    let text = "func.func @main(%x: tensor<1x1xf32>, %s: tensor<0xi32>) -> tensor<f32> {\n  \
         %y = tensor.reshape %x(%s) : (tensor<1x1xf32>, tensor<0xi32>) -> tensor<f32>\n  \
         %z = arith.addf %y, %y : tensor<f32>\n  return %z : tensor<f32>\n}\n";
    case("reshape_to_scalar", text, vec![f32s(&[1, 1]), numbers(Dtype::Int(32), &[0], 0.0, 1.0)])
}

fn padded(ty: &str, low: &str, high: &str, args: &str, to: &str) -> String {
    let rank = ty.matches('x').count();
    let indices: Vec<_> = (0..rank).map(|d| format!("%i{d}: index")).collect();
    format!(
        "func.func @main(%x: {ty}{args}) -> {to} {{\n  %c = arith.constant 0.5 : f32\n  %y = tensor.pad %x low[{low}] high[{high}] {{\n  \
         ^bb0({}):\n    tensor.yield %c : f32\n  }} : {ty} to {to}\n  return %y : {to}\n}}\n",
        indices.join(", ")
    )
}

/// Two elements are removed at the front, two constants added at the end.
fn crop() -> Case {
    case("crop", &padded("tensor<6xf32>", "-2", "2", "", "tensor<6xf32>"), vec![f32s(&[6])])
}

fn crop_both() -> Case {
    let text = padded("tensor<6x9xf32>", "-1, 2", "-3, -4", "", "tensor<2x7xf32>");
    case("crop_both", &text, vec![f32s(&[6, 9])])
}

/// More is removed at one side than there is: the result is the padding of the other side.
fn nothing_left(ty: &str, low: &str, high: &str) -> Case {
    let shape: Vec<i64> = ty[7..].split('x').map_while(|d| d.parse().ok()).collect();
    let sides = |pads: &str| pads.split(", ").map_while(|p| p.parse().ok()).collect::<Vec<i64>>();
    let to: Vec<usize> =
        shape.iter().zip(sides(low)).zip(sides(high)).map(|((d, l), h)| (d + l + h) as usize).collect();
    let text = padded(ty, low, high, "", &crate::text::tensor(Dtype::F32, &to));
    let shape: Vec<usize> = shape.iter().map(|d| *d as usize).collect();
    case(&format!("nothing_left/{}/{low}/{high}", by(&shape)), &text, vec![f32s(&shape)]).may_copy()
}

fn crop_dynamic(pad: i64) -> Case {
    let text = padded("tensor<?xf32>", "%l", "1", ", %l: index", "tensor<?xf32>");
    let pad = pad as f64;
    let input = if pad < 0.0 { numbers(Dtype::Index, &[], pad, pad + 1.0) } else { number(pad) };
    case(&format!("crop_dynamic/{pad}"), &text, vec![f32s(&[7]), input]).may_copy()
}

const DOUBLED: &str = "iterator_types = [\"parallel\", \"parallel\"]";

/// Expands one dimension to two of dynamic sizes.
fn expand() -> Case {
    let text = format!(
        "func.func @main(%x: tensor<?xf32>, %n: index, %m: index) -> tensor<?x?xf32> {{\n  \
         %y = tensor.expand_shape %x [[0, 1]] output_shape [%n, %m] : tensor<?xf32> into tensor<?x?xf32>\n  \
         %e = tensor.empty(%m, %n) : tensor<?x?xf32>\n  \
         %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], {DOUBLED}}} \
         ins(%y : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) {{\n  ^bb0(%a: f32, %o: f32):\n    %s = arith.addf %a, %a : f32\n    \
         linalg.yield %s : f32\n  }} -> tensor<?x?xf32>\n  return %r : tensor<?x?xf32>\n}}\n"
    );
    case("expand", &text, vec![f32s(&[15]), number(3.0), number(5.0)])
}

/// Of a computed tensor, with a static size in between.
fn expand_between() -> Case {
    let text = "func.func @main(%x: tensor<?x3xf32>, %n: index, %m: index) -> tensor<?x2x?x3xf32> {\n  %b = math.absf %x : tensor<?x3xf32>\n  \
         %y = tensor.expand_shape %b [[0, 1, 2], [3]] output_shape [%n, 2, %m, 3] : tensor<?x3xf32> into tensor<?x2x?x3xf32>\n  \
         %r = arith.addf %y, %y : tensor<?x2x?x3xf32>\n  return %r : tensor<?x2x?x3xf32>\n}\n";
    case("expand_between", text, vec![f32s(&[30, 3]), number(3.0), number(5.0)])
}

fn collapse() -> Case {
    let text = "func.func @main(%x: tensor<?x?xf32>) -> tensor<?xf32> {\n  \
         %y = tensor.collapse_shape %x [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>\n  \
         %r = arith.addf %y, %y : tensor<?xf32>\n  return %r : tensor<?xf32>\n}\n";
    case("collapse", text, vec![f32s(&[5, 7])])
}

/// The sizes are swapped on the way.
fn collapse_expand() -> Case {
    let text = "func.func @main(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {\n  %c0 = arith.constant 0 : index\n  \
         %c1 = arith.constant 1 : index\n  %m = tensor.dim %x, %c0 : tensor<?x?xf32>\n  %n = tensor.dim %x, %c1 : tensor<?x?xf32>\n  \
         %f = tensor.collapse_shape %x [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>\n  %g = arith.addf %f, %f : tensor<?xf32>\n  \
         %y = tensor.expand_shape %g [[0, 1]] output_shape [%n, %m] : tensor<?xf32> into tensor<?x?xf32>\n  \
         %r = arith.mulf %y, %y : tensor<?x?xf32>\n  return %r : tensor<?x?xf32>\n}\n";
    case("collapse_expand", text, vec![f32s(&[5, 7])]).within(1e-5, 1e-5)
}

/// A check that holds has no effect.
fn checked() -> Case {
    let text = "func.func @main(%x: tensor<9xf32>, %n: index) -> tensor<?xf32> {\n  %c9 = arith.constant 9 : index\n  \
         %b = math.absf %x : tensor<9xf32>\n  %ok = arith.cmpi ule, %n, %c9 : index\n  cf.assert %ok, \"too many\"\n  \
         %s = tensor.extract_slice %b[0] [%n] [1] : tensor<9xf32> to tensor<?xf32>\n  %r = arith.addf %s, %s : tensor<?xf32>\n  \
         return %r : tensor<?xf32>\n}\n";
    case("checked", text, vec![f32s(&[9]), number(4.0)])
}
