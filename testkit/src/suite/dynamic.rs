//! Dynamic dimensions.

use super::case::Case;
use crate::host_tensor::Dtype;
use crate::text::Input;

pub(super) fn cases() -> Vec<Case> {
    let mut out = vec![];
    for sizes in [[1, 1], [7, 65], [64, 100]] {
        out.push(pointwise(sizes));
        out.push(row_sum(sizes));
        out.push(softmax(sizes));
        out.push(transpose(sizes));
    }
    // Multiples of the widest vector have a kernel of their own.
    for [m, n, k] in
        [[0, 3, 5], [5, 0, 3], [5, 3, 0], [2, 3, 5], [1, 72, 40], [23, 136, 48], [37, 64, 31], [19, 29, 64]]
    {
        out.push(matmul([m, n, k], "?", "?", "?"));
    }
    for sizes in [[1, 1, 1, 1], [0, 4, 8, 8], [3, 0, 8, 8], [2, 7, 11, 13], [3, 17, 24, 40], [2, 70, 9, 16]] {
        out.extend(["", "_transpose_a", "_transpose_b"].map(|form| batch_matmul(form, sizes)));
        out.push(layer(sizes));
    }
    for [m, n, k] in [[1, 1, 1], [7, 17, 33], [64, 64, 64], [100, 9, 10]] {
        out.push(matmul([m, n, k], "?", "?", "?"));
        out.push(matmul([m, n, k], "?", &n.to_string(), &k.to_string()));
    }
    out.push(matmul([17, 9, 20], "17", "9", "?"));
    out.extend([size_as_result(), slice_to_size(), concat(), extent_of_result(), cast(), pad()]);
    out.extend([part_of_all("3", "3x4"), part_of_all("%n", "?x4"), part_of_all_by_iterations()]);
    out
}

fn inputs(shapes: &[&[usize]]) -> Vec<Input> {
    shapes.iter().map(|s| Input::new(Dtype::F32, s)).collect()
}

fn case(name: &str, text: &str, inputs: Vec<Input>) -> Case {
    Case::of_text(&format!("dynamic/{name}"), text, inputs)
}

const DIMS: &str =
    "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  %z = arith.constant 0.0 : f32\n";
const MM: &str = "affine_map<(i, j) -> (i, j)>";

fn pointwise([m, n]: [usize; 2]) -> Case {
    let text = format!(
        "func.func @main(%x: tensor<?x?xf32>, %y: tensor<?xf32>) -> tensor<?x?xf32> {{\n{DIMS}  %m = tensor.dim %x, %c0 : tensor<?x?xf32>\n  \
         %n = tensor.dim %x, %c1 : tensor<?x?xf32>\n  %e = tensor.empty(%m, %n) : tensor<?x?xf32>\n  \
         %r = linalg.generic {{indexing_maps = [{MM}, affine_map<(i, j) -> (j)>, {MM}], iterator_types = [\"parallel\", \"parallel\"]}} \
         ins(%x, %y : tensor<?x?xf32>, tensor<?xf32>) outs(%e : tensor<?x?xf32>) {{\n  ^bb0(%p: f32, %q: f32, %o: f32):\n    \
         %s = arith.addf %p, %q : f32\n    linalg.yield %s : f32\n  }} -> tensor<?x?xf32>\n  return %r : tensor<?x?xf32>\n}}\n"
    );
    case(&format!("pointwise/{m}x{n}"), &text, inputs(&[&[m, n], &[n]]))
}

fn row_sum([m, n]: [usize; 2]) -> Case {
    let text = format!(
        "func.func @main(%x: tensor<?x?xf32>) -> tensor<?xf32> {{\n{DIMS}  %m = tensor.dim %x, %c0 : tensor<?x?xf32>\n  \
         %e = tensor.empty(%m) : tensor<?xf32>\n  %f = linalg.fill ins(%z : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>\n  \
         %r = linalg.generic {{indexing_maps = [{MM}, affine_map<(i, j) -> (i)>], iterator_types = [\"parallel\", \"reduction\"]}} \
         ins(%x : tensor<?x?xf32>) outs(%f : tensor<?xf32>) {{\n  ^bb0(%p: f32, %o: f32):\n    %s = arith.addf %p, %o : f32\n    \
         linalg.yield %s : f32\n  }} -> tensor<?xf32>\n  return %r : tensor<?xf32>\n}}\n"
    );
    case(&format!("row_sum/{m}x{n}"), &text, inputs(&[&[m, n]]))
}

fn softmax([m, n]: [usize; 2]) -> Case {
    let text = format!(
        "func.func @main(%x: tensor<?x{n}xf32>) -> tensor<?x{n}xf32> {{\n{DIMS}  %m = tensor.dim %x, %c0 : tensor<?x{n}xf32>\n  \
         %e = tensor.empty(%m) : tensor<?x{n}xf32>\n  \
         %r = linalg.softmax dimension(1) ins(%x : tensor<?x{n}xf32>) outs(%e : tensor<?x{n}xf32>) -> tensor<?x{n}xf32>\n  \
         return %r : tensor<?x{n}xf32>\n}}\n"
    );
    case(&format!("softmax/{m}x{n}"), &text, inputs(&[&[m, n]]))
}

fn transpose([m, n]: [usize; 2]) -> Case {
    let text = format!(
        "func.func @main(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {{\n{DIMS}  %m = tensor.dim %x, %c0 : tensor<?x?xf32>\n  \
         %n = tensor.dim %x, %c1 : tensor<?x?xf32>\n  %e = tensor.empty(%n, %m) : tensor<?x?xf32>\n  \
         %r = linalg.transpose ins(%x : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) permutation = [1, 0]\n  return %r : tensor<?x?xf32>\n}}\n"
    );
    case(&format!("transpose/{m}x{n}"), &text, inputs(&[&[m, n]]))
}

/// A product whose dimensions are numbers or question marks.
fn matmul([m, n, k]: [usize; 3], tm: &str, tn: &str, tk: &str) -> Case {
    let ty = |a: &str, b: &str| format!("tensor<{a}x{b}xf32>");
    let (a, b, c) = (ty(tm, tk), ty(tk, tn), ty(tm, tn));
    let mut sizes = vec![];
    let mut dims = String::new();
    for (dynamic, name, line) in [
        (tm == "?", "%m", format!("  %m = tensor.dim %a, %c0 : {a}\n")),
        (tn == "?", "%n", format!("  %n = tensor.dim %b, %c1 : {b}\n")),
    ] {
        if dynamic {
            sizes.push(name);
            dims.push_str(&line);
        }
    }
    let text = format!(
        "func.func @main(%a: {a}, %b: {b}) -> {c} {{\n{DIMS}{dims}  %e = tensor.empty({}) : {c}\n  \
         %f = linalg.fill ins(%z : f32) outs(%e : {c}) -> {c}\n  %r = linalg.matmul ins(%a, %b : {a}, {b}) outs(%f : {c}) -> {c}\n  \
         return %r : {c}\n}}\n",
        sizes.join(", ")
    );
    let known = [tm, tn, tk].map(|d| if d == "?" { "d" } else { "s" }).concat();
    let made = case(&format!("matmul_{known}/{m}x{n}x{k}"), &text, inputs(&[&[m, k], &[k, n]]));
    Case { work: (m * n * k) as u64, ..made }.within(1e-5 + 2e-7 * k as f64, 1e-4)
}

/// A batched product in which all sizes are dynamic; transposed factors are generics.
fn batch_matmul(form: &str, [b, m, n, k]: [usize; 4]) -> Case {
    let (lhs, left) = if form == "_transpose_a" { ("(b, k, m)", [b, k, m]) } else { ("(b, m, k)", [b, m, k]) };
    let (rhs, right) = if form == "_transpose_b" { ("(b, n, k)", [b, n, k]) } else { ("(b, k, n)", [b, k, n]) };
    let (rows, columns) = (if form == "_transpose_a" { 2 } else { 1 }, if form == "_transpose_b" { 1 } else { 2 });
    let map = |dims: &str| format!("affine_map<(b, m, n, k) -> {dims}>");
    let maps = [lhs, rhs, "(b, m, n)"].map(map).join(", ");
    let t = "tensor<?x?x?xf32>";
    let text = format!(
        "func.func @main(%a: {t}, %b: {t}) -> {t} {{\n{DIMS}  %rows = arith.constant {rows} : index\n  \
         %columns = arith.constant {columns} : index\n  %d = tensor.dim %a, %c0 : {t}\n  %m = tensor.dim %a, %rows : {t}\n  \
         %n = tensor.dim %b, %columns : {t}\n  %e = tensor.empty(%d, %m, %n) : {t}\n  \
         %f = linalg.fill ins(%z : f32) outs(%e : {t}) -> {t}\n  \
         %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [\"parallel\", \"parallel\", \"parallel\", \"reduction\"]}} \
         ins(%a, %b : {t}, {t}) outs(%f : {t}) {{\n  ^bb0(%p: f32, %q: f32, %o: f32):\n    %s = arith.mulf %p, %q : f32\n    \
         %u = arith.addf %o, %s : f32\n    linalg.yield %u : f32\n  }} -> {t}\n  return %r : {t}\n}}\n"
    );
    let made = case(&format!("batch_matmul{form}/{b}x{m}x{n}x{k}"), &text, inputs(&[&left, &right]));
    Case { work: (b * m * n * k) as u64, ..made }.within(1e-5 + 2e-7 * k as f64, 1e-4)
}

/// A layer on a dynamic number of sequences of dynamic length: a product with static weights, a bias and a rectifier.
fn layer([b, m, n, k]: [usize; 4]) -> Case {
    let (x, w, y) = (format!("tensor<?x?x{k}xf32>"), format!("tensor<{k}x{n}xf32>"), format!("tensor<?x?x{n}xf32>"));
    let maps = "affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>";
    let all = "affine_map<(b, m, n) -> (b, m, n)>";
    let text = format!(
        "func.func @main(%x: {x}, %w: {w}, %v: tensor<{n}xf32>) -> {y} {{\n{DIMS}  %d = tensor.dim %x, %c0 : {x}\n  \
         %m = tensor.dim %x, %c1 : {x}\n  %e = tensor.empty(%d, %m) : {y}\n  %f = linalg.fill ins(%z : f32) outs(%e : {y}) -> {y}\n  \
         %p = linalg.generic {{indexing_maps = [{maps}], iterator_types = [\"parallel\", \"parallel\", \"parallel\", \"reduction\"]}} \
         ins(%x, %w : {x}, {w}) outs(%f : {y}) {{\n  ^bb0(%i: f32, %j: f32, %o: f32):\n    %s = arith.mulf %i, %j : f32\n    \
         %u = arith.addf %o, %s : f32\n    linalg.yield %u : f32\n  }} -> {y}\n  \
         %r = linalg.generic {{indexing_maps = [{all}, affine_map<(b, m, n) -> (n)>, {all}], iterator_types = [\"parallel\", \"parallel\", \"parallel\"]}} \
         ins(%p, %v : {y}, tensor<{n}xf32>) outs(%e : {y}) {{\n  ^bb0(%i: f32, %j: f32, %o: f32):\n    %s = arith.addf %i, %j : f32\n    \
         %u = arith.maximumf %s, %z : f32\n    linalg.yield %u : f32\n  }} -> {y}\n  return %r : {y}\n}}\n"
    );
    let made = case(&format!("layer/{b}x{m}x{n}x{k}"), &text, inputs(&[&[b, m, k], &[k, n], &[n]]));
    Case { work: (b * m * n * k) as u64, ..made }.within(1e-5 + 2e-7 * k as f64, 1e-4)
}

fn size_as_result() -> Case {
    let text = format!(
        "func.func @main(%x: tensor<?x5xf32>) -> (index, index) {{\n{DIMS}  %m = tensor.dim %x, %c0 : tensor<?x5xf32>\n  \
         %c3 = arith.constant 3 : index\n  %n = arith.muli %m, %c3 : index\n  return %m, %n : index, index\n}}\n"
    );
    case("size_as_result", &text, inputs(&[&[9, 5]]))
}

/// The number of rows of a slice is an argument.
fn slice_to_size() -> Case {
    let text = format!(
        "func.func @main(%x: tensor<20x6xf32>, %n: index) -> tensor<?x6xf32> {{\n{DIMS}  \
         %s = tensor.extract_slice %x[1, 0] [%n, 6] [1, 1] : tensor<20x6xf32> to tensor<?x6xf32>\n  %e = tensor.empty(%n) : tensor<?x6xf32>\n  \
         %r = linalg.exp ins(%s : tensor<?x6xf32>) outs(%e : tensor<?x6xf32>) -> tensor<?x6xf32>\n  return %r : tensor<?x6xf32>\n}}\n"
    );
    let inputs = vec![Input::new(Dtype::F32, &[20, 6]), Input::new(Dtype::Index, &[]).within(11.0, 12.0)];
    case("slice_to_size", &text, inputs)
}

fn concat() -> Case {
    let text = "func.func @main(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> tensor<?x4xf32> {\n  \
                %r = tensor.concat dim(0) %x, %y : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>\n  return %r : tensor<?x4xf32>\n}\n";
    case("concat", text, inputs(&[&[3, 4], &[6, 4]]))
}

/// The extent of a result is an argument.
fn extent_of_result() -> Case {
    let text = "func.func @main(%n: index, %v: f32) -> tensor<?xf32> {\n  %e = tensor.empty(%n) : tensor<?xf32>\n  \
                %r = linalg.fill ins(%v : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>\n  return %r : tensor<?xf32>\n}\n";
    let inputs = vec![Input::new(Dtype::Index, &[]).within(100.0, 200.0), Input::new(Dtype::F32, &[])];
    case("extent_of_result", text, inputs)
}

fn cast() -> Case {
    let text = format!(
        "func.func @main(%x: tensor<?x9xf32>) -> tensor<5x9xf32> {{\n  %c = tensor.cast %x : tensor<?x9xf32> to tensor<5x9xf32>\n  \
         %e = tensor.empty() : tensor<5x9xf32>\n  %r = linalg.generic {{indexing_maps = [{MM}, {MM}], iterator_types = [\"parallel\", \"parallel\"]}} \
         ins(%c : tensor<5x9xf32>) outs(%e : tensor<5x9xf32>) {{\n  ^bb0(%p: f32, %o: f32):\n    %s = math.absf %p : f32\n    \
         linalg.yield %s : f32\n  }} -> tensor<5x9xf32>\n  return %r : tensor<5x9xf32>\n}}\n"
    );
    case("cast", &text, inputs(&[&[5, 9]]))
}

fn pad() -> Case {
    let text = "func.func @main(%x: tensor<?xf32>, %h: index) -> tensor<?xf32> {\n  %z = arith.constant 1.5 : f32\n  \
                %r = tensor.pad %x low[2] high[%h] {\n  ^bb0(%i: index):\n    tensor.yield %z : f32\n  } : tensor<?xf32> to tensor<?xf32>\n  \
                return %r : tensor<?xf32>\n}\n";
    let inputs = vec![Input::new(Dtype::F32, &[7]), Input::new(Dtype::Index, &[]).within(3.0, 4.0)];
    case("pad", text, inputs)
}

/// An insertion keeps the elements that it does not overwrite, also where the types do not show that there are any. Finds an
/// insertion into a destination of dynamic sizes that counts as a full overwrite: its copy has no contents.
fn part_of_all(size: &str, source: &str) -> Case {
    let text = format!(
        "func.func @main(%x: tensor<?x4xf32>, %s: tensor<{source}xf32>, %n: index) -> (tensor<?x4xf32>, tensor<?x4xf32>) {{\n{DIMS}  \
         %m = tensor.dim %x, %c0 : tensor<?x4xf32>\n  %e = tensor.empty(%m) : tensor<?x4xf32>\n  \
         %d = linalg.exp ins(%x : tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>\n  \
         %r = tensor.insert_slice %s into %d[0, 0] [{size}, 4] [1, 1] : tensor<{source}xf32> into tensor<?x4xf32>\n  \
         return %r, %d : tensor<?x4xf32>, tensor<?x4xf32>\n}}\n"
    );
    let mut inputs = inputs(&[&[9, 4], &[3, 4]]);
    inputs.push(Input::new(Dtype::Index, &[]).within(3.0, 4.0));
    case(&format!("part_of_all/{source}"), &text, inputs)
}

/// As [`part_of_all`], of a loop's output.
fn part_of_all_by_iterations() -> Case {
    let text = format!(
        "func.func @main(%x: tensor<?xf32>, %s: tensor<?xf32>, %n: index) -> (tensor<?xf32>, tensor<?xf32>) {{\n{DIMS}  \
         %m = tensor.dim %x, %c0 : tensor<?xf32>\n  %e = tensor.empty(%m) : tensor<?xf32>\n  \
         %d = linalg.exp ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>\n  \
         %r = scf.forall (%i) in (1) shared_outs(%o = %d) -> (tensor<?xf32>) {{\n    scf.forall.in_parallel {{\n      \
         tensor.parallel_insert_slice %s into %o[0] [%n] [1] : tensor<?xf32> into tensor<?xf32>\n    }}\n  }}\n  \
         return %r, %d : tensor<?xf32>, tensor<?xf32>\n}}\n"
    );
    let mut inputs = inputs(&[&[9], &[3]]);
    inputs.push(Input::new(Dtype::Index, &[]).within(3.0, 4.0));
    case("part_of_all/by_iterations", &text, inputs)
}
