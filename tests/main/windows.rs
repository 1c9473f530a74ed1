//! Tensors larger than a binding: dispatches over windows of them give the same values. The limits of a real device are
//! tested with `MONOPOUR_TEST_FULL=1`; otherwise programs are compiled for small bindings.

use crate::backend::Monopour;
use monopour::{CompileOptions, TargetDescription, compile};
use monopour_testkit::device::full_is_asked_for;
use monopour_testkit::suite::all;
use monopour_testkit::{Dtype, HostTensor};

/// Compiles for the GPU with bindings of at most `most_bytes`, runs, and returns the results and the number of dispatches.
fn run(backend: &Monopour, text: &str, most_bytes: u64, inputs: &[HostTensor]) -> (Vec<Vec<f64>>, u64) {
    let TargetDescription::Gpu(mut description) = backend.target().clone() else { unreachable!("a GPU") };
    description.limits.max_binding_bytes = description.limits.max_binding_bytes.min(most_bytes);
    let targets = vec![TargetDescription::Gpu(description)];
    let options = CompileOptions { targets, verify: true, ..Default::default() };
    let program = compile(text.as_bytes(), "windows.mlir", &options).unwrap_or_else(|d| panic!("{d}\n{text}")).program;
    let run = backend.run_program(program, inputs).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let cost = run.cost.expect("a device counts");
    assert_eq!((cost.copies, cost.created_when_warm, cost.leaks), (0, 0, 0), "{text}");
    (run.outputs.iter().map(HostTensor::to_f64).collect(), cost.dispatches)
}

fn tensor(shape: &[usize], value: impl Fn(usize) -> f32) -> HostTensor {
    let bytes: Vec<u8> = (0..shape.iter().product()).flat_map(|i| value(i).to_le_bytes()).collect();
    HostTensor::from_bytes(Dtype::F32, shape, &bytes).expect("the bytes are those of the shape")
}

fn sum_and_rows(rows: usize, columns: usize) -> String {
    let (x, y) = (format!("tensor<{rows}x{columns}xf32>"), format!("tensor<{rows}xf32>"));
    format!(
        "func.func @main(%a: {x}, %b: {x}) -> ({x}, {y}) {{\n  %z = arith.constant 0.0 : f32\n  %e = tensor.empty() : {x}\n\
         \x20 %s = linalg.add ins(%a, %b : {x}, {x}) outs(%e : {x}) -> {x}\n  %f = tensor.empty() : {y}\n  %g = linalg.fill ins(%z : f32) outs(%f : {y}) -> {y}\n\
         \x20 %r = linalg.reduce ins(%a : {x}) outs(%g : {y}) dimensions = [1] (%p: f32, %q: f32) {{\n    %t = arith.addf %p, %q : f32\n    linalg.yield %t : f32\n  }}\n  return %s, %r : {x}, {y}\n}}"
    )
}

fn check_sum_and_rows(backend: &Monopour, rows: usize, columns: usize, most_bytes: u64) -> u64 {
    let a = |i: usize| ((i * 7) % 23) as f32 - 11.0;
    let b = |i: usize| ((i / columns) % 5) as f32;
    let inputs = [tensor(&[rows, columns], a), tensor(&[rows, columns], b)];
    let (out, dispatches) = run(backend, &sum_and_rows(rows, columns), most_bytes, &inputs);
    for (i, found) in out[0].iter().enumerate() {
        assert_eq!(*found, f64::from(a(i) + b(i)), "element {i} of the sum");
    }
    for (r, found) in out[1].iter().enumerate() {
        let expected: f64 = (0..columns).map(|c| f64::from(a(r * columns + c))).sum();
        assert_eq!(*found, expected, "row {r}");
    }
    dispatches
}

#[test]
fn sums_of_large_tensors() {
    let Some(backend) = Monopour::gpu() else { return };
    // Three windows each of at most 16 rows.
    assert_eq!(check_sum_and_rows(&backend, 40, 64, 4096), 6);
    // A row of 100 elements begins at a multiple of 256 bytes every 16 rows.
    assert_eq!(check_sum_and_rows(&backend, 40, 100, 8192), 6);
    // It fits.
    assert_eq!(check_sum_and_rows(&backend, 10, 64, 4096), 2);
    if full_is_asked_for() {
        // 160 MiB each.
        assert!(check_sum_and_rows(&backend, 40_960, 1024, u64::MAX) >= 4);
    }
}

#[test]
fn products_and_row_groups_of_large_tensors() {
    let Some(backend) = Monopour::gpu() else { return };
    let (m, k, n) = (96usize, 16usize, 32usize);
    let text = format!(
        "func.func @main(%x: tensor<{m}x{k}xf32>, %w: tensor<{k}x{n}xf32>, %c: tensor<{n}xf32>) -> tensor<{m}x{n}xf32> {{\n  %z = arith.constant 0.0 : f32\n  %e = tensor.empty() : tensor<{m}x{n}xf32>\n  %f = linalg.fill ins(%z : f32) outs(%e : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>\n\
         \x20 %p = linalg.matmul ins(%x, %w : tensor<{m}x{k}xf32>, tensor<{k}x{n}xf32>) outs(%f : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>\n\
         \x20 %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = [\"parallel\", \"parallel\"]}} ins(%p, %c : tensor<{m}x{n}xf32>, tensor<{n}xf32>) outs(%e : tensor<{m}x{n}xf32>) {{\n  ^bb0(%a: f32, %b: f32, %d: f32):\n    %s = arith.addf %a, %b : f32\n    linalg.yield %s : f32\n  }} -> tensor<{m}x{n}xf32>\n  return %r : tensor<{m}x{n}xf32>\n}}"
    );
    let x = |i: usize| (i % 5) as f32 - 2.0;
    let w = |i: usize| (i % 7) as f32 - 3.0;
    let c = |i: usize| i as f32;
    let inputs = [tensor(&[m, k], x), tensor(&[k, n], w), tensor(&[n], c)];
    let (out, dispatches) = run(&backend, &text, 4096, &inputs);
    // The result has 12 KiB.
    assert_eq!(dispatches, 3);
    for (at, found) in out[0].iter().enumerate() {
        let (i, j) = (at / n, at % n);
        let expected: f32 = (0..k).map(|l| x(i * k + l) * w(l * n + j)).sum::<f32>() + c(j);
        assert_eq!(*found, f64::from(expected), "element {i}, {j}");
    }
}

#[test]
fn bodies_that_ask_for_their_row() {
    let Some(backend) = Monopour::gpu() else { return };
    let ty = "tensor<70x64xi32>";
    let text = format!(
        "func.func @main() -> {ty} {{\n  %e = tensor.empty() : {ty}\n  %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = [\"parallel\", \"parallel\"]}} outs(%e : {ty}) {{\n  ^bb0(%d: i32):\n    %i = linalg.index 0 : index\n    %j = linalg.index 1 : index\n    %c = arith.constant 100 : index\n    %s = arith.muli %i, %c : index\n    %t = arith.addi %s, %j : index\n    %u = arith.index_cast %t : index to i32\n    linalg.yield %u : i32\n  }} -> {ty}\n  return %r : {ty}\n}}"
    );
    let (out, dispatches) = run(&backend, &text, 8192, &[]);
    assert_eq!(dispatches, 3);
    let expected: Vec<f64> = (0..70 * 64).map(|at| f64::from(at / 64 * 100 + at % 64)).collect();
    assert_eq!(out[0], expected);
}

/// A function of `inputs` with this body, whose last value is `%r`, a `result`.
fn function(inputs: &[&str], body: &str, result: &str) -> String {
    let args: Vec<String> = inputs.iter().enumerate().map(|(i, ty)| format!("%{i}: {ty}")).collect();
    let zero = "  %z = arith.constant 0.0 : f32\n";
    format!("func.func @main({}) -> {result} {{\n{zero}{body}  return %r : {result}\n}}", args.join(", "))
}

/// No loop is along the outermost dimension of all of these: each large tensor is bound in parts.
#[test]
fn accesses_across_the_parts_of_a_tensor() {
    let Some(backend) = Monopour::gpu() else { return };
    transposed(&backend, (64, 48), 4096);
    column_sums(&backend, (64, 48), 4096);
    vector_times_matrix(&backend, (64, 48), 4096);
    gathered(&backend, (100, 24), 4096);
    if full_is_asked_for() {
        // Above 128 MiB.
        transposed(&backend, (6000, 6000), u64::MAX);
        column_sums(&backend, (6000, 6000), u64::MAX);
        vector_times_matrix(&backend, (6000, 6000), u64::MAX);
        gathered(&backend, (50_257, 768), u64::MAX);
    }
}

fn transposed(backend: &Monopour, (m, n): (usize, usize), most_bytes: u64) {
    let (x, y) = (format!("tensor<{m}x{n}xf32>"), format!("tensor<{n}x{m}xf32>"));
    let body = format!(
        "  %e = tensor.empty() : {y}\n  %r = linalg.transpose ins(%0 : {x}) outs(%e : {y}) permutation = [1, 0]\n"
    );
    let value = |i: usize| (i % 100_003) as f32;
    let (out, dispatches) = run(backend, &function(&[&x], &body, &y), most_bytes, &[tensor(&[m, n], value)]);
    assert_eq!(dispatches, 1);
    for (at, found) in out[0].iter().enumerate() {
        assert_eq!(*found, f64::from(value(at % m * n + at / m)), "element {at}");
    }
}

fn column_sums(backend: &Monopour, (m, n): (usize, usize), most_bytes: u64) {
    let (x, y) = (format!("tensor<{m}x{n}xf32>"), format!("tensor<{n}xf32>"));
    let body = format!(
        "  %e = tensor.empty() : {y}\n  %f = linalg.fill ins(%z : f32) outs(%e : {y}) -> {y}\n  \
         %r = linalg.reduce ins(%0 : {x}) outs(%f : {y}) dimensions = [0] (%p: f32, %q: f32) {{\n    \
         %t = arith.addf %p, %q : f32\n    linalg.yield %t : f32\n  }}\n"
    );
    let value = |i: usize| ((i / n * 7 + i % n) % 23) as f32 - 11.0;
    let (out, _) = run(backend, &function(&[&x], &body, &y), most_bytes, &[tensor(&[m, n], value)]);
    for (j, found) in out[0].iter().enumerate() {
        assert_eq!(*found, (0..m).map(|i| f64::from(value(i * n + j))).sum::<f64>(), "column {j}");
    }
}

fn vector_times_matrix(backend: &Monopour, (k, n): (usize, usize), most_bytes: u64) {
    let (v, w, y) = (format!("tensor<{k}xf32>"), format!("tensor<{k}x{n}xf32>"), format!("tensor<{n}xf32>"));
    let body = format!(
        "  %e = tensor.empty() : {y}\n  %f = linalg.fill ins(%z : f32) outs(%e : {y}) -> {y}\n  \
         %r = linalg.vecmat ins(%0, %1 : {v}, {w}) outs(%f : {y}) -> {y}\n"
    );
    let (left, right) = (|i: usize| (i % 3) as f32 - 1.0, |i: usize| ((i / n * 5 + i % n) % 7) as f32 - 3.0);
    let inputs = [tensor(&[k], left), tensor(&[k, n], right)];
    let (out, _) = run(backend, &function(&[&v, &w], &body, &y), most_bytes, &inputs);
    for (j, found) in out[0].iter().enumerate() {
        assert_eq!(*found, (0..k).map(|i| f64::from(left(i) * right(i * n + j))).sum::<f64>(), "column {j}");
    }
}

fn gathered(backend: &Monopour, (rows, columns): (usize, usize), most_bytes: u64) {
    const TOKENS: usize = 16;
    let (table, y) = (format!("tensor<{rows}x{columns}xf32>"), format!("tensor<{TOKENS}x{columns}xf32>"));
    let ids = format!("tensor<{TOKENS}xi32>");
    let body = format!(
        "  %e = tensor.empty() : {y}\n  %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], \
         iterator_types = [\"parallel\", \"parallel\"]}} ins(%1 : {ids}) outs(%e : {y}) {{\n  ^bb0(%t: i32, %o: f32):\n    \
         %row = arith.index_cast %t : i32 to index\n    %j = linalg.index 1 : index\n    \
         %x = tensor.extract %0[%row, %j] : {table}\n    linalg.yield %x : f32\n  }} -> {y}\n"
    );
    let value = |i: usize| (i % 100_003) as f32;
    let row = |t: usize| t * (rows - 1) / (TOKENS - 1);
    let bytes: Vec<u8> = (0..TOKENS).flat_map(|t| (row(t) as i32).to_le_bytes()).collect();
    let ids_value =
        HostTensor::from_bytes(Dtype::Int(32), &[TOKENS], &bytes).expect("the bytes are those of the shape");
    let inputs = [tensor(&[rows, columns], value), ids_value];
    let (out, dispatches) = run(backend, &function(&[&table, &ids], &body, &y), most_bytes, &inputs);
    assert_eq!(dispatches, 1);
    for (at, found) in out[0].iter().enumerate() {
        assert_eq!(*found, f64::from(value(row(at / columns) * columns + at % columns)), "element {at}");
    }
}

/// One dimension, whose windows are no whole number of tiles.
#[test]
fn one_long_dimension() {
    let Some(backend) = Monopour::gpu() else { return };
    long(&backend, 5000, 4096);
    long(&backend, 4099, 4096);
    if full_is_asked_for() {
        // One element more than 128 MiB.
        long(&backend, (1 << 25) + 1, u64::MAX);
    }
}

fn long(backend: &Monopour, n: usize, most_bytes: u64) {
    let x = format!("tensor<{n}xf32>");
    let body = format!("  %e = tensor.empty() : {x}\n  %r = linalg.add ins(%0, %0 : {x}, {x}) outs(%e : {x}) -> {x}\n");
    let value = |i: usize| (i % 100_003) as f32;
    let (out, _) = run(backend, &function(&[&x], &body, &x), most_bytes, &[tensor(&[n], value)]);
    for (at, found) in out[0].iter().enumerate() {
        assert_eq!(*found, f64::from(2.0 * value(at)), "element {at} of {n}");
    }
}

#[test]
fn more_parts_than_a_kernel_binds_are_a_diagnostic() {
    let Some(backend) = Monopour::gpu() else { return };
    let TargetDescription::Gpu(mut description) = backend.target().clone() else { return };
    description.limits.max_binding_bytes = 1024;
    description.limits.max_storage_buffers = 8;
    let text = "func.func @main(%a: tensor<64x64xf32>) -> tensor<64x64xf32> {\n  %e = tensor.empty() : tensor<64x64xf32>\n  %r = linalg.transpose ins(%a : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) permutation = [1, 0]\n  return %r : tensor<64x64xf32>\n}";
    let options = CompileOptions { targets: vec![TargetDescription::Gpu(description)], ..Default::default() };
    let Err(diagnostics) = compile(text.as_bytes(), "windows.mlir", &options) else { panic!("it cannot be bound") };
    assert_eq!(diagnostics.0[0].code, "G0008", "{diagnostics}");
    assert!(diagnostics.0[0].message.contains("32 storage buffers"), "{diagnostics}");
}

/// Scores of an attention have no binding, whatever their size.
#[test]
fn what_one_dispatch_alone_reads_takes_no_windows() {
    let Some(backend) = Monopour::gpu() else { return };
    let case = all().into_iter().find(|case| case.name == "attention/plain/4x64x64x32").expect("a case of the suite");
    let inputs = case.input_values();
    // Queries, keys and values have 32 KiB, the scores 64.
    let (out, dispatches) = run(&backend, &case.text, 40_000, &inputs);
    assert_eq!(dispatches, 1);
    let expected = case.reference(&inputs).unwrap_or_else(|e| panic!("{e}"))[0].to_f64();
    for (found, expected) in out[0].iter().zip(&expected) {
        assert!((found - expected).abs() <= case.tolerance.absolute + case.tolerance.relative * expected.abs());
    }
    assert_eq!(out[0].len(), expected.len());
}
