//! Kernels of dynamic sizes on a GPU: one for rows of whole vectors where it gains something, no pipeline once loaded.

use crate::backend::{Monopour, from_runtime};
use crate::host::{devices, evaluated, f32s, ramp, source};
use monopour::program::Program;
use monopour::runtime::{Options, Session};
use monopour::{CompileOptions, compile};
use monopour_testkit::approx::{self, Tolerance};
use std::sync::Arc;

/// Names of the kernels for lavapipe; `None` without an adapter.
fn kernels(text: &str) -> Option<Vec<String>> {
    let targets = vec![Monopour::gpu()?.target().clone()];
    let compiled = compile(text.as_bytes(), "test.mlir", &CompileOptions { targets, ..Default::default() });
    let Program { variants, .. } = compiled.unwrap_or_else(|e| panic!("{e}\n{text}")).program;
    Some(variants[0].kernels.iter().map(|kernel| kernel.name().to_owned()).collect())
}

#[test]
fn a_product_has_a_kernel_for_rows_of_whole_vectors() {
    let Some(found) = kernels(&source("host/dyn_matmul")) else { return };
    assert_eq!(found, ["main_dispatch_0_whole", "main_dispatch_0"]);
}

#[test]
fn a_product_with_dynamic_rows_alone_has_one_kernel() {
    let text = "func.func @main(%a: tensor<?x24xf32>, %b: tensor<24x32xf32>, %c: tensor<?x32xf32>) -> tensor<?x32xf32> {\n\
                %r = linalg.matmul ins(%a, %b : tensor<?x24xf32>, tensor<24x32xf32>) outs(%c : tensor<?x32xf32>) -> tensor<?x32xf32>\n\
                return %r : tensor<?x32xf32>\n}\n";
    let Some(found) = kernels(text) else { return };
    assert_eq!(found, ["main_dispatch_0"]);
}

#[test]
fn kernels_that_gain_nothing_are_dropped() {
    // Elements of 64 bits are accessed one by one.
    let text = "func.func @main(%x: tensor<?x?xi64>, %y: tensor<?xi64>) -> tensor<?xi64> {\n\
                %r = linalg.reduce { arith.addi } ins(%x : tensor<?x?xi64>) outs(%y : tensor<?xi64>) dimensions = [1]\n\
                return %r : tensor<?xi64>\n}\n";
    let Some(found) = kernels(text) else { return };
    assert_eq!(found, ["main_dispatch_0"]);
}

#[test]
fn other_sizes_make_no_pipeline() {
    let text = source("host/dyn_matmul");
    for (device, target) in devices() {
        let options = CompileOptions { targets: vec![target], verify: true, ..Default::default() };
        let program = compile(text.as_bytes(), "test.mlir", &options).unwrap_or_else(|e| panic!("{e}\n{text}")).program;
        let mut session = Session::load(&device, Arc::new(program), &Options::default()).expect("loads");
        for [m, n, k] in [[16, 24, 32], [17, 24, 32], [5, 7, 3], [0, 8, 8], [64, 72, 80], [16, 25, 32], [16, 24, 31]] {
            let of = |rows: usize, columns: usize| f32s(&[rows as u64, columns as u64], &ramp(rows * columns));
            let inputs = [of(m, k), of(k, n)];
            let results = session.run(&inputs).unwrap_or_else(|e| panic!("{m}x{n}x{k}: {e}"));
            let expected = evaluated(&text, &inputs);
            let rounding = Tolerance { absolute: 1e-5, relative: 1e-5 };
            approx::compare(&from_runtime(&results[0]), &expected[0], rounding)
                .unwrap_or_else(|e| panic!("{m}x{n}x{k}: {e}"));
            let stats = session.stats();
            assert_eq!(stats.steady_state.pipelines_created, 0, "{m}x{n}x{k} on {}", stats.device);
            assert_eq!(stats.counts.dispatches, 1, "{m}x{n}x{k} on {}", stats.device);
        }
        assert!(session.close().is_clean());
    }
}
