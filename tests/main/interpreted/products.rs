//! Values of products whose tiles are large, for an H200: whole and ragged ones, of small integers, whose sums are exact.

use super::costs::product;
use super::host::{self, Input, Settings};
use super::targets::h200;
use monopour::{CompileOptions, TargetDescription};

/// A number of -3 to 3.
fn element(i: usize) -> f32 {
    (i.wrapping_mul(2_654_435_761) >> 7) as u32 as f32 % 7.0 - 3.0
}

fn matrix([rows, columns]: [usize; 2], first: usize) -> (Vec<f32>, Input) {
    let values: Vec<f32> = (0..rows * columns).map(|i| element(first + i)).collect();
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    (values, Input { bytes, bits: 0, shape: vec![rows as u64, columns as u64] })
}

/// `lhs: [m, k]` times `rhs: [k, n]`, bit by bit.
fn check(m: usize, n: usize, k: usize) {
    let target = h200();
    let targets = vec![TargetDescription::Gpu(target.description)];
    let options = CompileOptions { targets, verify: true, ..Default::default() };
    let text = product(m, n, k, "f32");
    let program = monopour::compile(text.as_bytes(), "product", &options).unwrap_or_else(|d| panic!("{d}")).program;
    let (lhs, left) = matrix([m, k], 0);
    let (rhs, right) = matrix([k, n], 1_000_003);
    let settings = Settings { subgroup_size: target.sizes[0], seed: 0 };
    let outcome = host::run(&program, &[left, right], settings).unwrap_or_else(|e| panic!("{m}x{n}x{k}: {e}"));
    let mut expected = vec![0.0f32; m * n];
    for (row, sums) in lhs.chunks(k).zip(expected.chunks_mut(n)) {
        for (factor, line) in row.iter().zip(rhs.chunks(n)) {
            sums.iter_mut().zip(line).for_each(|(sum, value)| *sum += factor * value);
        }
    }
    let found = outcome.results[0].0.chunks(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    let wrong = found.zip(&expected).position(|(found, expected)| found != *expected);
    assert_eq!(wrong.map(|at| [at / n, at % n]), None, "{m}x{n}x{k}: the first wrong element");
}

#[test]
fn large_products_are_right() {
    check(2048, 1536, 48);
    check(2049, 1540, 36);
    check(2051, 1537, 21);
}
