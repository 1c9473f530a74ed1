//! Pointwise bodies and the fallback on the device against plain loops.

use crate::device::device;
use crate::program::{assert_close, buffer, compile, execute, execute_as, lavapipe, numbers, outlined};
use monopour_program::{DeviceType, GpuDescription};

const VECTORS: &str = r#"class = "elementwise", workgroup_size = array<i32: 8, 1, 1>, vector_width = 8 : i64"#;
const FOURS: &str = r#"class = "elementwise", workgroup_size = array<i32: 64, 1, 1>, vector_width = 4 : i64"#;
const SCALARS: &str = r#"class = "generic", workgroup_size = array<i32: 32, 1, 1>, vector_width = 1 : i64"#;

const G: &str = "#gpu.address_space<global>";

/// Inputs, result, strategy, lanes.
type Run = (Vec<Vec<f32>>, Vec<f32>, &'static str, u32);

/// Runs a kernel whose last buffer is the result; returns it with the strategy and the lanes.
fn run(args: &[Vec<i64>], grid: &[i64], kernel: &str, body: &str) -> Option<Run> {
    let device = device()?;
    let types: Vec<String> = args.iter().map(|s| buffer(s)).collect();
    let inputs: Vec<Vec<f32>> =
        args.iter().enumerate().map(|(i, s)| numbers(s.iter().product(), i as u64 + 1)).collect();
    let (mut out, report) = execute(device, &outlined(&types, grid, kernel, body), grid, &inputs);
    let entry = &report.kernels[0];
    Some((inputs, out.pop().unwrap_or_default(), entry.strategy, entry.lanes))
}

/// `out = relu(a * b + a)` over `n` elements in tiles of `tile`.
fn chain(n: i64, tile: i64) -> String {
    let (size, extent) =
        if n % tile == 0 { (tile.to_string(), tile.to_string()) } else { ("%s".to_owned(), "?".to_owned()) };
    let view = format!("memref<{extent}xf32, strided<[1], offset: ?>, {G}>");
    let whole = buffer(&[n]);
    let subview = |i: usize| format!("  %v{i} = memref.subview %a{i}[%o] [{size}] [1] : {whole} to {view}\n");
    format!(
        "  %z = arith.constant 0.0 : f32\n  %o = affine.apply affine_map<(d0) -> (d0 * {tile})>(%i0)\n  %s = affine.min affine_map<(d0) -> (d0 * -{tile} + {n}, {tile})>(%i0)\n{}{}{}\
         linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = [\"parallel\"]}} ins(%v0, %v1 : {view}, {view}) outs(%v2 : {view}) {{\n\
         ^bb0(%p: f32, %q: f32, %r: f32):\n  %1 = arith.mulf %p, %q : f32\n  %2 = arith.addf %1, %p : f32\n  linalg.yield %2 : f32\n  }}\n\
         linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>], iterator_types = [\"parallel\"]}} outs(%v2 : {view}) {{\n^bb0(%r: f32):\n  %1 = arith.maximumf %r, %z : f32\n  linalg.yield %1 : f32\n  }}",
        subview(0),
        subview(1),
        subview(2)
    )
}

#[test]
fn chains_of_every_length() {
    for (n, tile, kernel, lanes) in [
        (1, 1, VECTORS, 1),
        (7, 7, VECTORS, 1),
        (10, 10, VECTORS, 2),
        (63, 16, VECTORS, 1),
        (64, 16, VECTORS, 8),
        (1000, 64, VECTORS, 8),
        (1000, 64, FOURS, 4),
        (4096, 4096, VECTORS, 8),
        (65, 32, SCALARS, 1),
    ] {
        let shapes = vec![vec![n]; 3];
        let grid = [(n + tile - 1) / tile];
        let Some((inputs, out, strategy, found)) = run(&shapes, &grid, kernel, &chain(n, tile)) else { return };
        let expected: Vec<f32> = inputs[0].iter().zip(&inputs[1]).map(|(a, b)| (a * b + a).max(0.0)).collect();
        assert_eq!((strategy, found), ("elementwise", lanes), "n = {n}, tile = {tile}");
        assert_close(&out, &expected, 1e-6, &format!("chain of {n} in tiles of {tile}"));
    }
}

#[test]
fn several_vectors_are_in_flight_on_hardware() {
    let Some(device) = device() else { return };
    let hardware = GpuDescription { device_type: DeviceType::Discrete, ..device.description.clone() };
    for (n, tile, width, loads) in [
        (4096, 1024, 4, 4),
        (4096, 512, 4, 2),
        (4100, 1024, 4, 4),
        (1000, 1000, 4, 3),
        (4095, 1024, 1, 4),
        (64, 64, 4, 1),
    ] {
        let kernel = format!(
            "class = \"elementwise\", workgroup_size = array<i32: 64, 1, 1>, vector_width = {width} : i64, register_tile = array<i64: {}>",
            4 * width
        );
        let grid = [(n + tile - 1) / tile];
        let text = outlined(&vec![buffer(&[n]); 3], &grid, &kernel, &chain(n, tile));
        let (compiled, ..) = compile(&text, &hardware).unwrap_or_else(|d| panic!("{d}\n{text}"));
        let wgsl = &compiled.wgsl;
        let first_store = wgsl.find("arg2_[").unwrap_or_else(|| panic!("it stores\n{wgsl}"));
        assert_eq!(wgsl[..first_store].matches("= arg0_[").count(), loads, "{n} in tiles of {tile}\n{wgsl}");
        let inputs: Vec<Vec<f32>> = (1..=3).map(|seed| numbers(n, seed)).collect();
        let (out, _) = execute_as(device, &hardware, &text, &grid, &inputs);
        let expected: Vec<f32> = inputs[0].iter().zip(&inputs[1]).map(|(a, b)| (a * b + a).max(0.0)).collect();
        assert_close(&out[2], &expected, 1e-6, &format!("chain of {n} in tiles of {tile}"));
    }
}

/// One generic over whole buffers in a single workgroup.
fn whole(shapes: &[&[i64]], maps: &[&str], iterators: &[&str], ops: &str) -> String {
    let types: Vec<String> = shapes.iter().map(|s| buffer(s)).collect();
    let inputs = shapes.len() - 1;
    let names = |range: std::ops::Range<usize>| range.map(|i| format!("%a{i}")).collect::<Vec<_>>().join(", ");
    let maps: Vec<String> = maps.iter().map(|m| format!("affine_map<{m}>")).collect();
    let iterators: Vec<String> = iterators.iter().map(|i| format!("\"{i}\"")).collect();
    let args: Vec<String> = (0..=inputs).map(|i| format!("%p{i}: f32")).collect();
    let ins =
        if inputs == 0 { String::new() } else { format!("ins({} : {})", names(0..inputs), types[..inputs].join(", ")) };
    format!(
        "  linalg.generic {{indexing_maps = [{}], iterator_types = [{}]}} {ins} outs(%a{inputs} : {}) {{\n  ^bb0({}):\n{ops}\n  }}",
        maps.join(", "),
        iterators.join(", "),
        types[inputs],
        args.join(", ")
    )
}

fn check(shapes: &[&[i64]], body: &str, kernel: &str, strategy: &str, expected: impl Fn(&[Vec<f32>]) -> Vec<f32>) {
    let owned: Vec<Vec<i64>> = shapes.iter().map(|s| s.to_vec()).collect();
    let Some((inputs, out, found, _)) = run(&owned, &[1], kernel, body) else { return };
    assert_eq!(found, strategy);
    assert_close(&out, &expected(&inputs), 1e-5, body);
}

#[test]
fn broadcast_and_transposed_operands() {
    let shapes: [&[i64]; 4] = [&[16], &[12], &[16, 12], &[12, 16]];
    let maps = ["(i, j) -> (j)", "(i, j) -> (i)", "(i, j) -> (j, i)", "(i, j) -> (i, j)"];
    let ops = "    %1 = arith.addf %p0, %p1 : f32\n    %2 = arith.mulf %1, %p2 : f32\n    linalg.yield %2 : f32";
    let body = whole(&shapes, &maps, &["parallel", "parallel"], ops);
    for kernel in [VECTORS, SCALARS] {
        check(&shapes, &body, kernel, "elementwise", |x| {
            (0..12 * 16).map(|e| (x[0][e % 16] + x[1][e / 16]) * x[2][(e % 16) * 12 + e / 16]).collect()
        });
    }
}

#[test]
fn reductions_run_in_the_fallback() {
    let shapes: [&[i64]; 2] = [&[9, 20], &[9]];
    let ops = "    %1 = arith.addf %p0, %p1 : f32\n    linalg.yield %1 : f32";
    let body = whole(&shapes, &["(i, j) -> (i, j)", "(i, j) -> (i)"], &["parallel", "reduction"], ops);
    check(&shapes, &body, SCALARS, "fallback", |x| {
        (0..9).map(|i| x[1][i] + x[0][i * 20..][..20].iter().sum::<f32>()).collect()
    });
}

#[test]
fn a_reduction_to_one_number() {
    let shapes: [&[i64]; 2] = [&[33], &[]];
    let ops = "    %1 = arith.maximumf %p0, %p1 : f32\n    linalg.yield %1 : f32";
    let body = whole(&shapes, &["(i) -> (i)", "(i) -> ()"], &["reduction"], ops);
    check(&shapes, &body, SCALARS, "fallback", |x| vec![x[0].iter().copied().fold(x[1][0], f32::max)]);
}

#[test]
fn ragged_tiles_of_a_matrix() {
    let x = buffer(&[10, 40]);
    let view = "memref<?x?xf32, strided<[40, 1], offset: ?>, #gpu.address_space<global>>";
    let id = "affine_map<(i, j) -> (i, j)>";
    let body = format!(
        "  %m = affine.apply affine_map<(d0) -> (d0 * 4)>(%i0)\n  %n = affine.apply affine_map<(d0) -> (d0 * 16)>(%i1)\n  %r = affine.min affine_map<(d0) -> (d0 * -4 + 10, 4)>(%i0)\n  %c = affine.min affine_map<(d0) -> (d0 * -16 + 40, 16)>(%i1)\n\
         \x20 %v = memref.subview %a0[%m, %n] [%r, %c] [1, 1] : {x} to {view}\n  %w = memref.subview %a1[%m, %n] [%r, %c] [1, 1] : {x} to {view}\n\
         linalg.generic {{indexing_maps = [{id}, {id}], iterator_types = [\"parallel\", \"parallel\"]}} ins(%v : {view}) outs(%w : {view}) {{\n^bb0(%p: f32, %q: f32):\n  %1 = arith.addf %p, %q : f32\n  linalg.yield %1 : f32\n}}"
    );
    for (kernel, lanes) in [(VECTORS, 8), (FOURS, 4), (SCALARS, 1)] {
        let Some((inputs, out, strategy, found)) = run(&[vec![10, 40], vec![10, 40]], &[3, 3], kernel, &body) else {
            return;
        };
        let expected: Vec<f32> = inputs[0].iter().zip(&inputs[1]).map(|(a, b)| a + b).collect();
        assert_eq!((strategy, found), ("elementwise", lanes));
        assert_close(&out, &expected, 1e-6, "ragged tiles");
    }
}

#[test]
fn a_window_of_an_input() {
    let shapes: [&[i64]; 3] = [&[20], &[3], &[18]];
    let ops = "    %1 = arith.mulf %p0, %p1 : f32\n    %2 = arith.addf %p2, %1 : f32\n    linalg.yield %2 : f32";
    let body =
        whole(&shapes, &["(i, j) -> (i + j)", "(i, j) -> (j)", "(i, j) -> (i)"], &["parallel", "reduction"], ops);
    check(&shapes, &body, SCALARS, "fallback", |x| {
        (0..18).map(|i| x[2][i] + (0..3).map(|j| x[0][i + j] * x[1][j]).sum::<f32>()).collect()
    });
}

#[test]
fn indices_of_iterations_and_integer_arithmetic() {
    let shapes: [&[i64]; 1] = [&[6, 7]];
    let ops = "    %i = linalg.index 0 : index\n    %j = linalg.index 1 : index\n    %k = affine.apply affine_map<(a, b) -> (a * 100 + b mod 3)>(%i, %j)\n\
               \x20   %1 = arith.index_cast %k : index to i32\n    %c = arith.constant 50 : i32\n    %big = arith.cmpi sgt, %1, %c : i32\n    %2 = arith.subi %c, %1 : i32\n\
               \x20   %3 = arith.select %big, %1, %2 : i32\n    %4 = arith.sitofp %3 : i32 to f32\n    linalg.yield %4 : f32";
    let body = whole(&shapes, &["(i, j) -> (i, j)"], &["parallel", "parallel"], ops);
    check(&shapes, &body, VECTORS, "elementwise", |_| {
        (0..42).map(|e| (e / 7 * 100 + e % 7 % 3) as f32).map(|v| if v > 50.0 { v } else { 50.0 - v }).collect()
    });
}

/// Softmax of rows: two local intermediates pass values between invocations.
#[test]
fn groups_pass_values_through_workgroup_memory() {
    let (x, y) = (buffer(&[5, 12]), buffer(&[5, 12]));
    let row = "affine_map<(i, j) -> (i)>";
    let id = "affine_map<(i, j) -> (i, j)>";
    let local = "memref<5xf32>";
    let iterators = r#"iterator_types = ["parallel", "reduction"]"#;
    let body = format!(
        "  %low = arith.constant 0xFF800000 : f32\n  %z = arith.constant 0.0 : f32\n  %max = memref.alloc() : {local}\n  %sum = memref.alloc() : {local}\n\
         linalg.fill ins(%low : f32) outs(%max : {local})\n\
         linalg.generic {{indexing_maps = [{id}, {row}], {iterators}}} ins(%a0 : {x}) outs(%max : {local}) {{\n^bb0(%p: f32, %q: f32):\n  %1 = arith.maximumf %p, %q : f32\n  linalg.yield %1 : f32\n}}\n\
         linalg.generic {{indexing_maps = [{id}, {row}, {id}], iterator_types = [\"parallel\", \"parallel\"]}} ins(%a0, %max : {x}, {local}) outs(%a1 : {y}) {{\n^bb0(%p: f32, %q: f32, %r: f32):\n  %1 = arith.subf %p, %q : f32\n  %2 = math.exp %1 : f32\n  linalg.yield %2 : f32\n}}\n\
         linalg.fill ins(%z : f32) outs(%sum : {local})\n\
         linalg.generic {{indexing_maps = [{id}, {row}], {iterators}}} ins(%a1 : {y}) outs(%sum : {local}) {{\n^bb0(%p: f32, %q: f32):\n  %1 = arith.addf %p, %q : f32\n  linalg.yield %1 : f32\n}}\n\
         linalg.generic {{indexing_maps = [{row}, {id}], iterator_types = [\"parallel\", \"parallel\"]}} ins(%sum : {local}) outs(%a1 : {y}) {{\n^bb0(%p: f32, %q: f32):\n  %1 = arith.divf %q, %p : f32\n  linalg.yield %1 : f32\n}}\n\
         memref.dealloc %max : {local}\n  memref.dealloc %sum : {local}"
    );
    check(&[&[5, 12], &[5, 12]], &body, SCALARS, "fallback", |x| {
        x[0].chunks(12)
            .flat_map(|r| {
                let sum: f32 = r.iter().map(|v| v.exp()).sum();
                r.iter().map(move |v| v.exp() / sum).collect::<Vec<_>>()
            })
            .collect()
    });
}

#[test]
fn an_intermediate_of_one_group_needs_no_memory() {
    let (x, y) = (buffer(&[32]), buffer(&[32]));
    let id = "affine_map<(i) -> (i)>";
    let generic = |ins: &str, out: &str, op: &str| {
        format!(
            "linalg.generic {{indexing_maps = [{id}, {id}], iterator_types = [\"parallel\"]}} ins({ins}) outs({out}) {{\n^bb0(%p: f32, %q: f32):\n  %1 = {op} %p : f32\n  linalg.yield %1 : f32\n}}\n"
        )
    };
    let local = "memref<32xf32>";
    let body = format!(
        "  %t = memref.alloc() : {local}\n{}{}",
        generic(&format!("%a0 : {x}"), &format!("%t : {local}"), "math.exp"),
        generic(&format!("%t : {local}"), &format!("%a1 : {y}"), "math.log")
    );
    let text = outlined(&[x, y], &[1], VECTORS, &body);
    let (_, report, ir) = compile(&text, &lavapipe()).expect("it compiles");
    assert_eq!((report.kernels[0].strategy, report.kernels[0].lanes), ("elementwise", 8));
    assert!(!ir.contains("alloca") && !ir.contains("gpu.barrier"), "{ir}");
}

#[test]
fn a_copy_is_counted() {
    let (x, y) = (buffer(&[4, 8]), buffer(&[4, 8]));
    let text = outlined(&[x.clone(), y.clone()], &[1], VECTORS, &format!("  memref.copy %a0, %a1 : {x} to {y}"));
    let (kernel, report, _) = compile(&text, &lavapipe()).expect("it compiles");
    assert_eq!((kernel.copies.count, kernel.copies.bytes, report.kernels[0].lanes), (1, 128, 8));
    // A value of a local allocation is in registers: storing it is not a copy.
    let local = "memref<4x8xf32>";
    let body = format!(
        "  %z = arith.constant 0.0 : f32\n  %t = memref.alloc() : {local}\n  linalg.fill ins(%z : f32) outs(%t : {local})\n  memref.copy %t, %a1 : {local} to {y}"
    );
    let (kernel, _, ir) = compile(&outlined(&[x, y], &[1], VECTORS, &body), &lavapipe()).expect("it compiles");
    assert_eq!((kernel.copies.count, ir.contains("alloca")), (0, false), "{ir}");
}

#[test]
fn nan_passes_through_maximumf() {
    let Some(device) = device() else { return };
    let inputs = vec![
        vec![f32::NAN, 1.0, f32::NEG_INFINITY, -2.0, f32::INFINITY, 0.0, -0.5, 3.0],
        vec![2.0, f32::NAN, -1.0, f32::NAN, 0.0, 1.0, 2.0, 3.0],
        vec![0.0; 8],
    ];
    let shapes: [&[i64]; 3] = [&[8], &[8], &[8]];
    for (op, expected) in [
        ("arith.maximumf", [f32::NAN, f32::NAN, -1.0, f32::NAN, f32::INFINITY, 1.0, 2.0, 3.0]),
        ("arith.minimumf", [f32::NAN, f32::NAN, f32::NEG_INFINITY, f32::NAN, 0.0, 0.0, -0.5, 3.0]),
    ] {
        let body = whole(
            &shapes,
            &["(i) -> (i)"; 3],
            &["parallel"],
            &format!("    %1 = {op} %p0, %p1 : f32\n    linalg.yield %1 : f32"),
        );
        for kernel in [VECTORS, SCALARS] {
            let types: Vec<String> = shapes.iter().map(|s| buffer(s)).collect();
            let (out, _) = execute(device, &outlined(&types, &[1], kernel, &body), &[1], &inputs);
            assert_close(&out[2], &expected, 0.0, op);
        }
    }
}
