//! Products whose lines no vector divides: on a software adapter of padded factors, from some size on.

use crate::backend::Monopour;
use crate::host::{f32s, ramp, raw};
use monopour::program::DType;
use monopour::{CompileOptions, TargetDescription, compile};

/// `max(x y + bias, 0)`, or the product alone; `turned`: y is given by columns.
fn product([m, k, n]: [usize; 3], turned: bool, finished: bool) -> String {
    let (x, y) = (format!("tensor<{m}x{k}xf32>"), if turned { [n, k] } else { [k, n] });
    let (y, out, bias) =
        (format!("tensor<{}x{}xf32>", y[0], y[1]), format!("tensor<{m}x{n}xf32>"), format!("tensor<{n}xf32>"));
    let of_y = if turned { "n, k" } else { "k, n" };
    let map = |to: &str| format!("affine_map<(m, n, k) -> ({to})>");
    let maps = ["m, k", of_y, "m, n"].map(map).join(", ");
    let mut text = format!(
        "func.func @main(%x: {x}, %y: {y}, %b: {bias}) -> {out} {{\n  %z = arith.constant 0.0 : f32\n  %e = tensor.empty() : {out}\n  \
         %f = linalg.fill ins(%z : f32) outs(%e : {out}) -> {out}\n  \
         %p = linalg.generic {{indexing_maps = [{maps}], iterator_types = [\"parallel\", \"parallel\", \"reduction\"]}} ins(%x, %y : {x}, {y}) outs(%f : {out}) {{\n  \
         ^bb0(%a: f32, %c: f32, %o: f32):\n  %t = arith.mulf %a, %c : f32\n  %s = arith.addf %o, %t : f32\n  linalg.yield %s : f32\n  }} -> {out}\n"
    );
    if !finished {
        return format!("{text}  return %p : {out}\n}}\n");
    }
    let maps = ["m, n", "n", "m, n"].map(|to| format!("affine_map<(m, n) -> ({to})>")).join(", ");
    text += &format!(
        "  %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [\"parallel\", \"parallel\"]}} ins(%p, %b : {out}, {bias}) outs(%e : {out}) {{\n  \
         ^bb0(%a: f32, %c: f32, %o: f32):\n  %t = arith.addf %a, %c : f32\n  %s = arith.maximumf %t, %z : f32\n  linalg.yield %s : f32\n  }} -> {out}\n"
    );
    format!("{text}  return %r : {out}\n}}\n")
}

/// The kernels of the product, whose values are compared at some of its elements, the last ones of lines among them.
fn kernels(gpu: &Monopour, sizes: [usize; 3], turned: bool, finished: bool) -> usize {
    let [m, k, n] = sizes;
    let text = product(sizes, turned, finished);
    let options = CompileOptions { targets: vec![gpu.target().clone()], verify: true, ..Default::default() };
    let program = compile(text.as_bytes(), "odd.mlir", &options).unwrap_or_else(|d| panic!("{d}\n{text}")).program;
    let kernels = program.variants[0].kernels.len();
    let (x, y, bias) = (ramp(m * k), ramp(k * n + 7)[7..].to_vec(), ramp(n));
    let shape = if turned { [n, k] } else { [k, n] }.map(|extent| extent as u64);
    let inputs = [f32s(&[m as u64, k as u64], &x), f32s(&shape, &y), f32s(&[n as u64], &bias)];
    let results = gpu.results(program, &inputs, 2).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let found = results[0].to_f32().expect("floats");
    assert_eq!(found.len(), m * n);
    for at in (0..m * n).filter(|at| at % 61 == 0 || at % n == n - 1 || *at >= (m - 1) * n) {
        let (row, column) = (at / n, at % n);
        let y = |i: usize| if turned { y[column * k + i] } else { y[i * n + column] };
        let sum: f64 = (0..k).map(|i| f64::from(x[row * k + i]) * f64::from(y(i))).sum();
        let scale: f64 = (0..k).map(|i| (f64::from(x[row * k + i]) * f64::from(y(i))).abs()).sum::<f64>() + 1.0;
        let expected = if finished { (sum + f64::from(bias[column])).max(0.0) } else { sum };
        let error = (f64::from(found[at]) - expected).abs();
        // Half an ulp of 1 for each term.
        assert!(error <= k as f64 * 6e-8 * scale, "{row}, {column}: {}, expected {expected}", found[at]);
    }
    kernels
}

#[test]
fn large_products_of_odd_sizes_are_of_padded_factors() {
    let Some(gpu) = Monopour::gpu() else { return };
    let TargetDescription::Gpu(description) = gpu.target() else { unreachable!("a GPU") };
    let is_software = description.is_cpu_adapter();
    for (turned, finished) in [(false, false), (true, false), (false, true), (true, true)] {
        let count = kernels(&gpu, [501, 499, 503], turned, finished);
        assert_eq!(count > 1, is_software, "{turned} {finished}: {count} kernels");
        // Even lines, and a product that is too small for copies.
        assert_eq!(kernels(&gpu, [501, 512, 504], turned, finished), 1);
        assert_eq!(kernels(&gpu, [61, 127, 67], turned, finished), 1);
    }
}

#[test]
fn products_of_other_types_stay_as_they_are() {
    let Some(gpu) = Monopour::gpu() else { return };
    let integers = |text: String| {
        let names = [("f32", "i32"), ("arith.mulf", "arith.muli"), ("arith.addf", "arith.addi"), ("0.0", "0")];
        names.into_iter().fold(text, |text, (from, to)| text.replace(from, to))
    };
    let [m, k, n] = [501, 499, 503];
    let text = integers(product([m, k, n], false, false));
    let options = CompileOptions { targets: vec![gpu.target().clone()], verify: true, ..Default::default() };
    let program = compile(text.as_bytes(), "odd.mlir", &options).unwrap_or_else(|d| panic!("{d}\n{text}")).program;
    assert_eq!(program.variants[0].kernels.len(), 1);
    let tensor = |rows: usize, columns: usize| {
        let bytes = (0..rows * columns).flat_map(|i| ((i * 37 % 23) as i32 - 11).to_le_bytes()).collect::<Vec<_>>();
        raw(DType::I32, &[rows as u64, columns as u64], &bytes)
    };
    let results = gpu.results(program, &[tensor(m, k), tensor(k, n), raw(DType::I32, &[n as u64], &vec![0; 4 * n])], 1);
    let found = results.unwrap_or_else(|e| panic!("{e}")).remove(0).to_f64();
    for at in (0..m * n).step_by(997) {
        let number = |i: usize| ((i * 37 % 23) as i32 - 11) as f64;
        let sum: f64 = (0..k).map(|i| number(at / n * k + i) * number(i * n + at % n)).sum();
        assert_eq!(found[at], sum, "element {at}");
    }
}
