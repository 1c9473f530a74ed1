//! Programs whose least number of copies is known: right values with and without donated inputs, on every kind of device,
//! and no more copies than are known to be needed.

use crate::backend::{explained_copies, from_runtime};
use crate::host::{compare, devices, evaluated, f32s, index, ramp, raw, run, source};
use monopour::program::DType;
use monopour::runtime::HostTensor;
use monopour_ir::{Context, Module};
use monopour_testkit::approx::{self, Tolerance};

/// Programs whose inputs have to be donated for their least bytes.
const GIVEN: [&str; 6] = ["q02", "q03", "q04", "q05", "q07", "q08"];

/// A program, its donated inputs, and the most that a run with them copies, in times and bytes, and takes for the arena and new
/// results.
fn check(name: &str, donate: &[&str], most: [u64; 3], inputs: &[HostTensor], expected: &[HostTensor]) {
    let meant = evaluated(&source(&format!("copies/{name}")), inputs);
    for (value, expected) in meant.iter().zip(expected) {
        let rounding = Tolerance { absolute: 1e-5, relative: 1e-5 };
        approx::compare(&from_runtime(expected), value, rounding).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    for device in devices() {
        for donate in [donate, &[]] {
            let (results, stats, leaks) = run(&source(&format!("copies/{name}")), donate, &device, inputs);
            compare(name, &results, expected);
            assert!(leaks.is_clean(), "{name} on {}: {leaks:?}", stats.device);
            // A run's allocations outside of the arena are results.
            let fresh = stats.planned_bytes + stats.counts.allocations * results[0].data().len() as u64;
            let made = [stats.counts.copies, stats.counts.copied_bytes, fresh];
            let is_given = !donate.is_empty() || !GIVEN.contains(&&name[..3]);
            if is_given {
                let [copies, bytes, fresh] = made;
                println!("{name} on {}: {copies} copies of {bytes} B, {fresh} B fresh; bound {most:?}", stats.device);
                assert!(
                    made.iter().zip(most).all(|(made, most)| *made <= most),
                    "{name} on {}: {made:?}",
                    stats.device
                );
            }
            let steady = stats.steady_state;
            assert_eq!((steady.buffers_created, steady.pipelines_created), (0, 0), "{name} on {}", stats.device);
        }
    }
}

#[test]
fn q01_concat_producers() {
    let (x, y) = (ramp(1024), ramp(2048)[1024..].to_vec());
    let parts = x.iter().map(|v| v + v).chain(y.iter().map(|v| v * v));
    let expected = f32s(&[2048], &parts.collect::<Vec<_>>());
    check("q01_concat_producers", &[], [0, 0, 8192], &[f32s(&[1024], &x), f32s(&[1024], &y)], &[expected]);
}

#[test]
fn q02_if_fresh_branches() {
    let d = ramp(2048);
    for (truth, value) in [(1u8, 1.5), (0, -2.0)] {
        let mut expected = d.clone();
        expected[512..1536].fill(value);
        let inputs = [f32s(&[2048], &d), raw(DType::I1, &[], &[truth]), f32s(&[], &[1.5]), f32s(&[], &[-2.0])];
        check("q02_if_fresh_branches", &["arg0"], [0, 0, 0], &inputs, &[f32s(&[2048], &expected)]);
    }
}

#[test]
fn q03_disjoint_slices_loop() {
    let t = ramp(2048);
    let expected: Vec<f32> =
        t.iter().enumerate().map(|(i, v)| if i < 1024 { v + 3.0 * t[i + 1024] } else { *v }).collect();
    check(
        "q03_disjoint_slices_loop",
        &["arg0"],
        [0, 0, 0],
        &[f32s(&[2048], &t), index(3)],
        &[f32s(&[2048], &expected)],
    );
}

#[test]
fn q04_kv_cache() {
    for p in [37usize, 2048] {
        let (cache, row, q, out) = (ramp(4096 * 128), ramp(128), ramp(300)[172..].to_vec(), ramp(p));
        let mut new = cache.clone();
        new[p * 128..(p + 1) * 128].copy_from_slice(&row);
        let dots = (0..p).map(|r| out[r] + q.iter().zip(&cache[r * 128..]).map(|(a, b)| a * b).sum::<f32>());
        let (dots, out) = (f32s(&[p as u64], &dots.collect::<Vec<_>>()), f32s(&[p as u64], &out));
        let inputs = [f32s(&[4096, 128], &cache), f32s(&[1, 128], &row), f32s(&[128], &q), out, index(p as i64)];
        // The new row.
        check("q04_kv_cache", &["arg0", "arg3"], [1, 512, 0], &inputs, &[f32s(&[4096, 128], &new), dots]);
    }
}

#[test]
fn q05_double_buffer() {
    let (x, y) = (ramp(1024), ramp(2048)[1024..].to_vec());
    for trips in [5, 100] {
        let inputs = [f32s(&[1024], &x), f32s(&[1024], &y), index(trips.into())];
        let scaled = |times: i32| f32s(&[1024], &x.iter().map(|v| v * 2f32.powi(times)).collect::<Vec<_>>());
        check("q05_double_buffer", &["arg0", "arg1"], [0, 0, 0], &inputs, &[scaled(trips), scaled(trips - 1)]);
    }
    let none = [f32s(&[1024], &x), f32s(&[1024], &y), index(0)];
    check("q05_double_buffer", &["arg0", "arg1"], [0, 0, 0], &none, &[f32s(&[1024], &x), f32s(&[1024], &y)]);
}

#[test]
fn q06_result_alias_call() {
    let (x, y) = (ramp(1024), ramp(2048)[1024..].to_vec());
    let inputs = [f32s(&[1024], &x), f32s(&[1024], &y), index(7)];
    check("q06_result_alias_call", &[], [0, 0, 4096], &inputs, &[f32s(&[], &[x[7]]), f32s(&[], &[x[7] + y[7]])]);
}

#[test]
fn q07_while_outer() {
    let mut t = vec![8.0; 1024];
    let inputs = [f32s(&[1024], &t), f32s(&[], &[0.3]), f32s(&[], &[0.5])];
    t[0] = 0.25;
    check("q07_while_outer", &["arg0"], [0, 0, 0], &inputs, &[f32s(&[1024], &t)]);
}

#[test]
fn q08_reorder_read() {
    let t = ramp(1024);
    let mut new = t.clone();
    new[5] = 3.0;
    let inputs = [f32s(&[1024], &t), f32s(&[], &[3.0]), index(5)];
    check("q08_reorder_read", &["arg0"], [0, 0, 0], &inputs, &[f32s(&[1024], &new), f32s(&[], &[t[5]])]);
}

#[test]
fn q09_chain_reuse() {
    let x = ramp(65536);
    let expected: Vec<f32> = x.iter().map(|v| (2.0 * (2.0 * v) * (2.0 * v)).powi(2)).collect();
    check("q09_chain_reuse", &[], [0, 0, 262144], &[f32s(&[65536], &x)], &[f32s(&[65536], &expected)]);
}

#[test]
fn q10_matmul_chain() {
    const N: usize = 256;
    let x = ramp(N * N);
    // Layer k moves the columns by k + 1 to the right.
    let shift = |by: usize| {
        let ones = (0..N * N).map(|i| f32::from(u8::from(i % N == (i / N + by) % N)));
        f32s(&[N as u64, N as u64], &ones.collect::<Vec<_>>())
    };
    let expected: Vec<f32> = (0..N * N).map(|i| x[i / N * N + (i % N + N - 10) % N]).collect();
    let inputs = [f32s(&[N as u64, N as u64], &x), shift(1), shift(2), shift(3), shift(4)];
    check("q10_matmul_chain", &[], [0, 0, 524288], &inputs, &[f32s(&[N as u64, N as u64], &expected)]);
}

/// As in `opt`, without donated inputs: deallocation allocates nothing but a copy of each argument that a public function
/// returns (a part of).
#[test]
fn deallocation_keeps_no_books() {
    // Results of `main` that alias its arguments, after bufferization.
    let programs = [
        ("q01_concat_producers", 0),
        ("q02_if_fresh_branches", 1),
        ("q03_disjoint_slices_loop", 1),
        ("q04_kv_cache", 2),
        ("q05_double_buffer", 2),
        ("q06_result_alias_call", 0),
        ("q07_while_outer", 1),
        ("q08_reorder_read", 0),
        ("q09_chain_reuse", 0),
        ("q10_matmul_chain", 0),
    ];
    for (name, returned) in programs {
        Context::scope(|cx| {
            let text = source(&format!("copies/{name}"));
            let module = Module::parse(cx, text.as_bytes(), "test.mlir").unwrap_or_else(|d| panic!("{d}"));
            let options = monopour_bufferize::Options {
                bufferize_function_boundaries: true,
                allow_return_allocs_from_loops: true,
                extensions: true,
                ..Default::default()
            };
            monopour_bufferize::run_one_shot(module.op(), &options).unwrap_or_else(|d| panic!("{name}: {d}"));
            let count = |op: &str| module.op().find_all(op).len();
            let before = (count("memref.alloc"), count("memref.copy"));
            let options = monopour_dealloc::Options { extensions: true, ..Default::default() };
            let stats =
                monopour_dealloc::run_ownership(module.op(), &options).unwrap_or_else(|d| panic!("{name}: {d}"));
            assert_eq!(stats.clones, returned, "{name}: {}", module.op());
            assert_eq!(count("memref.alloc"), before.0 + returned as usize, "{name}: {}", module.op());
            assert_eq!(count("memref.copy"), before.1 + returned as usize, "{name}: {}", module.op());
            assert_eq!(count("bufferization.clone") + count("bufferization.dealloc"), 0, "{name}: {}", module.op());
        });
    }
}

/// `explain` counts the copies and bytes of a run, also inside of kernels and in loops.
#[test]
fn what_is_explained_is_what_a_run_makes() {
    use monopour::{CompileOptions, compile, explain};
    let x = |rows: u64| f32s(&[rows, 5], &ramp(rows as usize * 5));
    let pad = |name: &str, of: &str, low: u64, rows: u64| {
        format!(
            "  %{name} = tensor.pad %{of} low[0, {low}] high[0, {}] {{\n  ^bb0(%i: index, %j: index):\n    tensor.yield %z : f32\n  \
             }} : tensor<{rows}x5xf32> to tensor<{rows}x8xf32>\n",
            3 - low
        )
    };
    let pads = format!(
        "func.func @main(%x: tensor<4x5xf32>, %y: tensor<3x5xf32>) -> tensor<7x8xf32> {{\n  %z = arith.constant 0.0 : f32\n\
         {}{}  %c = tensor.concat dim(0) %p, %q : (tensor<4x8xf32>, tensor<3x8xf32>) -> tensor<7x8xf32>\n  \
         return %c : tensor<7x8xf32>\n}}\n",
        pad("p", "x", 1, 4),
        pad("q", "y", 2, 3)
    );
    let row = "func.func @main(%x: tensor<64x5xf32>, %r: tensor<1x5xf32>, %p: index) -> tensor<64x5xf32> {\n  \
         %c = tensor.insert_slice %r into %x[%p, 0] [1, 5] [1, 1] : tensor<1x5xf32> into tensor<64x5xf32>\n  \
         return %c : tensor<64x5xf32>\n}\n";
    let column = "func.func @main(%x: tensor<64x5xf32>) -> tensor<64x1xf32> {\n  \
         %c = tensor.extract_slice %x[0, 2] [64, 1] [1, 1] : tensor<64x5xf32> to tensor<64x1xf32>\n  \
         return %c : tensor<64x1xf32>\n}\n";
    let rounds = "func.func @main(%x: tensor<64x5xf32>, %r: tensor<1x5xf32>) -> tensor<64x5xf32> {\n  \
         %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  %c6 = arith.constant 6 : index\n  \
         %l = scf.for %p = %c0 to %c6 step %c1 iter_args(%t = %x) -> (tensor<64x5xf32>) {\n    \
         %c = tensor.insert_slice %r into %t[%p, 0] [1, 5] [1, 1] : tensor<1x5xf32> into tensor<64x5xf32>\n    \
         scf.yield %c : tensor<64x5xf32>\n  }\n  return %l : tensor<64x5xf32>\n}\n";
    for (text, inputs, copies, bytes) in [
        (pads.as_str(), vec![x(4), x(3)], 2, 35 * 4),
        (row, vec![x(64), x(1), index(7)], 2, (64 + 1) * 20),
        (column, vec![x(64)], 1, 64 * 4),
        (rounds, vec![x(64), x(1)], 7, (64 + 6) * 20),
    ] {
        for device in devices() {
            let options = CompileOptions { targets: vec![device.1.clone()], ..Default::default() };
            let program = compile(text.as_bytes(), "test.mlir", &options).unwrap_or_else(|e| panic!("{e}")).program;
            let explained = explain::explain(&program).remove(0);
            let (_, stats, _) = run(text, &[], &device, &inputs);
            let made = (stats.counts.copies, stats.counts.copied_bytes);
            let name = &stats.device;
            assert_eq!((explained_copies(&program), explained.copied_bytes), (Some(copies), bytes), "{name}: {text}");
            assert_eq!(made, (copies, bytes), "{name}: {text}");
        }
    }
}

/// The copies of kernels whose sizes a run decides: `explain` leaves their bytes open, each run counts its own.
#[test]
fn copies_of_dynamic_sizes_count_what_a_run_moves() {
    use monopour::{CompileOptions, compile, explain};
    let beside = "func.func @main(%x: tensor<?x5xf32>, %y: tensor<?x3xf32>) -> tensor<?x8xf32> {\n  \
         %c = tensor.concat dim(1) %x, %y : (tensor<?x5xf32>, tensor<?x3xf32>) -> tensor<?x8xf32>\n  \
         return %c : tensor<?x8xf32>\n}\n";
    let column = "func.func @main(%x: tensor<?x5xf32>, %n: index) -> tensor<?x1xf32> {\n  \
         %c = tensor.extract_slice %x[1, 2] [%n, 1] [1, 1] : tensor<?x5xf32> to tensor<?x1xf32>\n  \
         return %c : tensor<?x1xf32>\n}\n";
    let x = |rows: i64, columns: u64| f32s(&[rows as u64, columns], &ramp(rows as usize * columns as usize));
    for device in devices() {
        for rows in [1, 7, 300] {
            let (_, stats, _) = run(beside, &[], &device, &[x(rows, 5), x(rows, 3)]);
            let made = (stats.counts.copies, stats.counts.copied_bytes);
            assert_eq!(made, (2, rows as u64 * 8 * 4), "{}: {rows} rows", stats.device);
            let (_, stats, _) = run(column, &[], &device, &[x(rows + 2, 5), index(rows)]);
            let made = (stats.counts.copies, stats.counts.copied_bytes);
            assert_eq!(made, (1, rows as u64 * 4), "{}: {rows} rows", stats.device);
        }
        for (text, copies) in [(beside, 2), (column, 1)] {
            let options = CompileOptions { targets: vec![device.1.clone()], ..Default::default() };
            let program = compile(text.as_bytes(), "test.mlir", &options).unwrap_or_else(|e| panic!("{e}")).program;
            let explained = explain::explain(&program).remove(0);
            assert_eq!(explained_copies(&program), Some(copies), "{text}");
            assert!(explained.copies.iter().all(|copy| copy.bytes.is_none()), "{:?}", explained.copies);
        }
    }
}

/// Every copy and allocation has its reason, location and size.
#[test]
fn what_is_left_is_explained() {
    use monopour::program::CpuTarget;
    use monopour::{CompileOptions, TargetDescription, compile, explain};
    let explained = |text: &str| {
        let targets = vec![TargetDescription::Cpu(CpuTarget::host())];
        let options = CompileOptions { targets, ..Default::default() };
        let program = compile(text.as_bytes(), "test.mlir", &options).unwrap_or_else(|e| panic!("{e}")).program;
        let explanations = explain::explain(&program);
        explain::render(&explanations)
    };
    let text = explained(&source("copies/q08_reorder_read"));
    assert!(text.contains("copies: 1 (4096 B)") && text.contains("B0201") && text.contains("test.mlir:"), "{text}");
    let text = explained(&source("host/while_fresh"));
    // Two buffers for all iterations.
    assert!(text.contains("pooled test.mlir:") && text.contains("passes through a loop or a branch"), "{text}");
    assert!(!text.contains("as often as a run comes by"), "{text}");
    let text = explained(&source("host/dyn_softmax"));
    assert!(text.contains("result result0: dynamic"), "{text}");
}
