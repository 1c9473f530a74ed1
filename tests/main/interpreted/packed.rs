//! Few rows times weights of four bits, two numbers of a column in a byte, for GPUs: reduced by columns, with the right values.

use super::executed;
use super::host::Settings;
use super::targets::{h200, portable};
use crate::backend::from_runtime;
use crate::host::{evaluated, f32s, ramp, raw};
use monopour::program::DType;
use monopour::{CompileOptions, TargetDescription, compile};
use monopour_testkit::approx::{Tolerance, compare};

/// `rows` times `64 * groups` by `columns`; a scale per group and column, or one.
fn product(rows: usize, groups: usize, columns: usize, is_scaled_by_group: bool) -> String {
    let (scale, scales) = match is_scaled_by_group {
        true => ("g, n", format!("tensor<{groups}x{columns}xf32>")),
        false => ("", "tensor<f32>".to_owned()),
    };
    let depth = 64 * groups;
    let (x, y) = (format!("tensor<{rows}x{depth}xf32>"), format!("tensor<{rows}x{columns}xf32>"));
    let (bytes, parts) = (format!("tensor<{groups}x32x{columns}xi8>"), format!("tensor<{groups}x32x2x{columns}xf32>"));
    format!(
        "
func.func @main(%x: {x}, %w: {bytes}, %s: {scales}) -> {y} {{
  %zero = arith.constant 0.0 : f32
  %eight = arith.constant 8.0 : f32
  %four = arith.constant 4 : i8
  %mask = arith.constant 15 : i8
  %e = tensor.empty() : {parts}
  %q = linalg.generic {{indexing_maps = [affine_map<(g, j, h, n) -> (g, j, n)>, affine_map<(g, j, h, n) -> ({scale})>,
      affine_map<(g, j, h, n) -> (g, j, h, n)>], iterator_types = [\"parallel\", \"parallel\", \"parallel\", \"parallel\"]}}
    ins(%w, %s : {bytes}, {scales}) outs(%e : {parts}) {{
  ^bb0(%b: i8, %t: f32, %o: f32):
    %h = linalg.index 2 : index
    %i = arith.index_cast %h : index to i8
    %m = arith.muli %i, %four : i8
    %v = arith.shrui %b, %m : i8
    %n = arith.andi %v, %mask : i8
    %f = arith.uitofp %n : i8 to f32
    %d = arith.subf %f, %eight : f32
    %r = arith.mulf %d, %t : f32
    linalg.yield %r : f32
  }} -> {parts}
  %c = tensor.collapse_shape %q [[0, 1, 2], [3]] : {parts} into tensor<{depth}x{columns}xf32>
  %o = tensor.empty() : {y}
  %z = linalg.fill ins(%zero : f32) outs(%o : {y}) -> {y}
  %p = linalg.matmul ins(%x, %c : {x}, tensor<{depth}x{columns}xf32>) outs(%z : {y}) -> {y}
  return %p : {y}
}}"
    )
}

#[test]
fn few_rows_times_weights_of_four_bits_are_reduced_by_columns() {
    for (rows, groups, columns, is_scaled_by_group) in [(1, 4, 96, true), (5, 2, 96, false), (2, 3, 51, true)] {
        let text = product(rows, groups, columns, is_scaled_by_group);
        let bytes: Vec<u8> = (0..groups * 32 * columns).map(|i| (i * 151 % 251) as u8).collect();
        let (scale_shape, scales) = match is_scaled_by_group {
            true => (vec![groups as u64, columns as u64], groups * columns),
            false => (vec![], 1),
        };
        let inputs = [
            f32s(&[rows as u64, 64 * groups as u64], &ramp(rows * 64 * groups)),
            raw(DType::I8, &[groups as u64, 32, columns as u64], &bytes),
            f32s(&scale_shape, &ramp(scales)),
        ];
        let expected = evaluated(&text, &inputs);
        let inputs = inputs.each_ref().map(from_runtime);
        for target in [h200(), portable()] {
            let targets = vec![TargetDescription::Gpu(target.description)];
            let options = CompileOptions { targets, verify: true, ..Default::default() };
            let program = compile(text.as_bytes(), "packed", &options).unwrap_or_else(|d| panic!("{d}")).program;
            let settings = Settings { subgroup_size: target.sizes[0], seed: 0 };
            let run = executed(&program, &inputs, settings).unwrap_or_else(|e| panic!("{}: {e}", target.name));
            let (results, outcome) = run;
            let tolerance = Tolerance { absolute: 1e-4, relative: 1e-4 };
            compare(&results[0], &expected[0], tolerance).unwrap_or_else(|e| panic!("{}: {e}\n{text}", target.name));
            // The parts of a column pass through workgroup memory.
            let [counts] = &outcome.counts[..] else { panic!("one kernel: {text}") };
            assert!(counts.shared_loads.accesses > 0, "{}: {rows} rows, {columns} columns", target.name);
        }
    }
}
