//! Cost of models of many layers: each dispatch is tiled alone, and equal ones once.

use crate::support::{cpu, dispatches, import_text, lavapipe};
use monopour_frontend::{TargetDescription, TileOptions, TileReport, fuse, tile};
use std::fmt::Write;

/// Products with `tanh`; layer `i` has `sizes[i]` columns.
fn chain(sizes: &[usize]) -> String {
    let mut args = String::from("%x: tensor<32x64xf32>");
    let (mut body, mut current, mut columns) = (String::new(), "%x".to_owned(), 64);
    for (i, n) in sizes.iter().enumerate() {
        let (from, w, to) =
            (format!("tensor<32x{columns}xf32>"), format!("tensor<{columns}x{n}xf32>"), format!("tensor<32x{n}xf32>"));
        let _ = write!(args, ", %w{i}: {w}");
        let _ = write!(
            body,
            "  %e{i} = tensor.empty() : {to}\n  %f{i} = linalg.fill ins(%z : f32) outs(%e{i} : {to}) -> {to}\n  \
             %m{i} = linalg.matmul ins({current}, %w{i} : {from}, {w}) outs(%f{i} : {to}) -> {to}\n  \
             %t{i} = linalg.tanh ins(%m{i} : {to}) outs(%e{i} : {to}) -> {to}\n"
        );
        (current, columns) = (format!("%t{i}"), *n);
    }
    let ty = format!("tensor<32x{columns}xf32>");
    format!(
        "func.func @main({args}) -> {ty} {{\n  %z = arith.constant 0.0 : f32\n{body}  return {current} : {ty}\n}}\n"
    )
}

fn tiled(sizes: &[usize], target: &TargetDescription) -> TileReport {
    let module = import_text(&chain(sizes)).expect("imports").module;
    fuse::run(&module).expect("fuses");
    let report = tile::run(
        &module,
        &TileOptions { target: target.clone(), schedule: None, tuning: None, effort: Default::default() },
    )
    .expect("tiles");
    assert_eq!(dispatches(&module).len(), sizes.len(), "a dispatch per layer");
    report
}

#[test]
fn equal_layers_are_tiled_once() {
    for target in [cpu("x86-64-v3"), lavapipe()] {
        let [few, many] = [3, 30].map(|n| tiled(&vec![64; n], &target));
        assert_eq!((few.distinct, many.distinct), (1, 1));
        assert_eq!(few.payload_ops, many.payload_ops, "transforms look at one layer");
        assert_eq!(few.scripts, many.scripts);
    }
}

/// A transform over the whole model would walk all layers for each: 30 layers would cost a hundred times three.
#[test]
fn a_dispatch_is_tiled_apart_from_the_others() {
    for target in [cpu("x86-64-v3"), lavapipe()] {
        let sizes = |n: usize| (0..n).map(|i| 16 * (i + 1)).collect::<Vec<_>>();
        let [few, many] = [3, 30].map(|n| tiled(&sizes(n), &target));
        assert_eq!((few.distinct, many.distinct), (3, 30));
        let per_dispatch = |report: &TileReport| report.payload_ops / report.distinct;
        assert!(
            per_dispatch(&many) <= 2 * per_dispatch(&few),
            "{} ops for 30 layers, {} for 3",
            many.payload_ops,
            few.payload_ops
        );
    }
}
