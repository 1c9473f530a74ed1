//! Rows in other forms: several dimensions, strides, indices, integers, columns; declined bodies; the emitted text.

use crate::device::device;
use crate::program::{assert_close, compile, execute, lavapipe, numbers, outlined};
use crate::rows::{Case, Program};
use expect_test::expect_file;
use monopour_program::GpuDescription;

const SUBGROUP: &str = r#"class = "row", workgroup_size = array<i32: 8, 1, 1>, register_tile = array<i64: 1>, vector_width = 8 : i64, share = "subgroup", subgroup_size = 8 : i64"#;
const WORKGROUP: &str = r#"class = "row", workgroup_size = array<i32: 64, 1, 1>, register_tile = array<i64: 1>, vector_width = 4 : i64, share = "none""#;
const G: &str = "#gpu.address_space<global>";

/// Loops, some of them reductions, and the operands' maps.
struct Space<'a> {
    loops: &'a str,
    maps: &'a [&'a str],
    reductions: &'a [bool],
}

/// From rows to a value each.
const ROWS: Space = Space { loops: "i, j", maps: &["i, j", "i"], reductions: &[false, true] };

fn generic(Space { loops, maps, reductions }: Space, ins: &str, outs: &str, args: &str, ops: &str) -> String {
    // The results have the type of the last argument.
    let element = args.rsplit(": ").next().unwrap_or("f32");
    let maps: Vec<String> = maps.iter().map(|m| format!("affine_map<({loops}) -> ({m})>")).collect();
    let kinds: Vec<&str> = reductions.iter().map(|r| if *r { "\"reduction\"" } else { "\"parallel\"" }).collect();
    let ins = if ins.is_empty() { String::new() } else { format!("ins({ins}) ") };
    format!(
        "  linalg.generic {{indexing_maps = [{}], iterator_types = [{}]}} {ins}outs({outs}) {{\n  ^bb0({args}):\n{ops}\n    linalg.yield %r : {element}\n  }}\n",
        maps.join(", "),
        kinds.join(", ")
    )
}

/// Runs a kernel of one tile and compares its last buffer.
fn check(
    args: &[String],
    body: &str,
    kernel: &str,
    inputs: &[Vec<f32>],
    expected: &[f32],
    (strategy, reason): (&str, &str),
) {
    let Some(device) = device() else { return };
    let (out, report) = execute(device, &outlined(args, &[1], kernel, body), &[1], inputs);
    let report = &report.kernels[0];
    assert_eq!((report.strategy, report.declined.as_str()), (strategy, reason), "{body}");
    assert_close(out.last().expect("there are buffers"), expected, 2e-5, body);
}

#[test]
fn rows_of_several_dimensions() {
    let x = format!("memref<2x3x4x10xf32, {G}>");
    let y = format!("memref<2x3xf32, {G}>");
    // All of the last dimensions, and a part of them: their elements are then strided.
    for height in [4usize, 3] {
        let part = format!("memref<2x3x{height}x10xf32, strided<[120, 40, 10, 1]>, {G}>");
        let body = format!(
            "  %s = memref.subview %a0[0, 0, 0, 0] [2, 3, {height}, 10] [1, 1, 1, 1] : {x} to {part}\n{}",
            generic(
                Space { loops: "a, b, c, d", maps: &["a, b, c, d", "a, b"], reductions: &[false, false, true, true] },
                &format!("%s : {part}"),
                &format!("%a1 : {y}"),
                "%x: f32, %o: f32",
                "    %r = arith.addf %o, %x : f32"
            )
        );
        let (values, old) = (numbers(240, 3), numbers(6, 4));
        let sum = |row: usize| old[row] + values[row * 40..row * 40 + height * 10].iter().sum::<f32>();
        let expected: Vec<f32> = (0..6).map(sum).collect();
        for kernel in [SUBGROUP, WORKGROUP] {
            let inputs = [values.clone(), old.clone()];
            check(&[x.clone(), y.clone()], &body, kernel, &inputs, &expected, ("rows", ""));
        }
    }
}

#[test]
fn positions_in_a_row() {
    let (x, y) = (format!("memref<4x24xf32, {G}>"), format!("memref<4xf32, {G}>"));
    let ops = "    %i = linalg.index 0 : index\n    %j = linalg.index 1 : index\n    %k = arith.addi %i, %j : index\n    %m = arith.index_cast %k : index to i32\n    %f = arith.sitofp %m : i32 to f32\n    %p = arith.mulf %f, %x : f32\n    %r = arith.addf %o, %p : f32";
    let body = generic(ROWS, &format!("%a0 : {x}"), &format!("%a1 : {y}"), "%x: f32, %o: f32", ops);
    let values = numbers(96, 5);
    let row = |i: usize| (0..24).map(|j| (i + j) as f32 * values[i * 24 + j]).sum::<f32>();
    let expected: Vec<f32> = (0..4).map(row).collect();
    for kernel in [SUBGROUP, WORKGROUP] {
        check(&[x.clone(), y.clone()], &body, kernel, &[values.clone(), vec![0.0; 4]], &expected, ("rows", ""));
    }
}

/// Every associative op on integers, wide and narrow.
#[test]
fn integers() {
    let Some(device) = device() else { return };
    type Fold = fn(i32, i32) -> i32;
    let ops: [(&str, Fold); 10] = [
        ("addi", i32::wrapping_add),
        ("muli", i32::wrapping_mul),
        ("maxsi", i32::max),
        ("minsi", i32::min),
        ("maxui", |a, b| (a as u32).max(b as u32) as i32),
        ("minui", |a, b| (a as u32).min(b as u32) as i32),
        ("andi", |a, b| a & b),
        ("ori", |a, b| a | b),
        ("xori", |a, b| a ^ b),
        ("addi", i32::wrapping_add),
    ];
    for (n, (name, fold)) in [64usize, 7, 40, 33, 8, 21, 16, 3, 128, 1000].into_iter().zip(ops) {
        let (x, y) = (format!("memref<3x{n}xi32, {G}>"), format!("memref<3xi32, {G}>"));
        let body = generic(
            ROWS,
            &format!("%a0 : {x}"),
            &format!("%a1 : {y}"),
            "%x: i32, %o: i32",
            &format!("    %r = arith.{name} %x, %o : i32"),
        );
        let values: Vec<u32> = (0..3 * n as u32).map(|i| i.wrapping_mul(2_654_435_769) | 1).collect();
        let old = [5u32, 0x8000_0001, 77];
        let expected: Vec<u32> =
            (0..3).map(|r| values[r * n..][..n].iter().fold(old[r] as i32, |a, v| fold(a, *v as i32)) as u32).collect();
        for kernel in [SUBGROUP, WORKGROUP] {
            let text = outlined(&[x.clone(), y.clone()], &[1], kernel, &body);
            let (compiled, report, _) = compile(&text, &device.description).unwrap_or_else(|d| panic!("{d}"));
            assert_eq!(report.kernels[0].strategy, "rows", "{}", report.kernels[0].declined);
            let out = device.run(&compiled, [1, 1, 1], &[values.clone(), old.to_vec()]);
            assert_eq!(out[1], expected, "{name} of {n}");
        }
    }
}

/// Reductions down the columns are vectors of neighbours, one invocation each.
#[test]
fn columns() {
    for (rows, columns, lanes) in [(40usize, 64usize, 8), (17, 20, 4), (9, 7, 1), (300, 8, 8)] {
        let (x, y) = (format!("memref<{rows}x{columns}xf32, {G}>"), format!("memref<{columns}xf32, {G}>"));
        let body = format!(
            "  %z = arith.constant 0.0 : f32\n  linalg.fill ins(%z : f32) outs(%a1 : {y})\n{}",
            generic(
                Space { loops: "k, j", maps: &["k, j", "j"], reductions: &[true, false] },
                &format!("%a0 : {x}"),
                &format!("%a1 : {y}"),
                "%x: f32, %o: f32",
                "    %q = arith.mulf %x, %x : f32\n    %r = arith.addf %o, %q : f32"
            )
        );
        let values = numbers((rows * columns) as i64, 9);
        let sum = |j: usize| (0..rows).map(|k| values[k * columns + j].powi(2)).sum::<f32>();
        let expected: Vec<f32> = (0..columns).map(sum).collect();
        let kernel = SUBGROUP.replace("row", "generic");
        let inputs = [values.clone(), vec![0.0; columns]];
        check(&[x.clone(), y.clone()], &body, &kernel, &inputs, &expected, ("fallback", ""));
        let reason = "the rows are not contiguous, but their columns are";
        check(&[x.clone(), y.clone()], &body, SUBGROUP, &inputs, &expected, ("fallback", reason));
        let (_, report, _) = compile(&outlined(&[x, y], &[1], &kernel, &body), &lavapipe()).expect("it compiles");
        assert_eq!(report.kernels[0].lanes, lanes, "{rows}x{columns}");
    }
}

/// Partial results of one element pass through workgroup memory together, or the kernel is another one.
#[test]
fn columns_of_several_results() {
    let kernel = r#"class = "column", workgroup_size = array<i32: 1024, 1, 1>, register_tile = array<i64: 1>, vector_width = 1 : i64, share = "none""#;
    let (x, y) = (format!("memref<4096x8xf32, {G}>"), format!("memref<8xf32, {G}>"));
    // A result takes 4 KiB of the device's 16.
    for (results, expected) in
        [(4, ("columns", "")), (5, ("fallback", "partial results need 20480 bytes of workgroup memory"))]
    {
        let list = |part: &dyn Fn(usize) -> String| (1..=results).map(part).collect::<Vec<_>>();
        let body = format!(
            "  linalg.generic {{indexing_maps = [affine_map<(k, j) -> (k, j)>, {}], iterator_types = [\"reduction\", \"parallel\"]}} \
             ins(%a0 : {x}) outs({} : {}) {{\n  ^bb0(%x: f32, {}):\n{}    linalg.yield {} : {}\n  }}\n",
            list(&|_| "affine_map<(k, j) -> (j)>".to_owned()).join(", "),
            list(&|i| format!("%a{i}")).join(", "),
            list(&|_| y.clone()).join(", "),
            list(&|i| format!("%o{i}: f32")).join(", "),
            list(&|i| format!("    %r{i} = arith.addf %o{i}, %x : f32\n")).concat(),
            list(&|i| format!("%r{i}")).join(", "),
            list(&|_| "f32".to_owned()).join(", "),
        );
        let args: Vec<String> = [vec![x.clone()], list(&|_| y.clone())].concat();
        let (_, report, _) = compile(&outlined(&args, &[1], kernel, &body), &lavapipe()).expect("it compiles");
        assert_eq!((report.kernels[0].strategy, report.kernels[0].declined.as_str()), expected, "{results} results");
    }
}

/// Declined bodies are still computed.
#[test]
fn declined_bodies() {
    let (x, y) = (format!("memref<4x16xf32, {G}>"), format!("memref<4xf32, {G}>"));
    let (values, old) = (numbers(64, 7), numbers(4, 8));
    let reduce = |ops: &str| generic(ROWS, &format!("%a0 : {x}"), &format!("%a1 : {y}"), "%x: f32, %o: f32", ops);
    let fold = |f: fn(f32, f32) -> f32| -> Vec<f32> {
        (0..4).map(|i| values[i * 16..][..16].iter().fold(old[i], |a, x| f(a, *x))).collect()
    };
    let not_associative = "a reduction's body is not one associative op on each result";
    let cases: [(String, Vec<f32>, &str); 3] = [
        (reduce("    %r = arith.subf %o, %x : f32"), fold(|a, x| a - x), not_associative),
        (
            reduce("    %h = arith.mulf %o, %x : f32\n    %r = arith.addf %o, %h : f32"),
            fold(|a, x| a + a * x),
            not_associative,
        ),
        (
            reduce("    %q = arith.mulf %x, %x : f32\n    %r = arith.addf %q, %x : f32"),
            fold(|_, x| x * x + x),
            not_associative,
        ),
    ];
    for (body, expected, reason) in cases {
        let inputs = [values.clone(), old.clone()];
        check(&[x.clone(), y.clone()], &body, SUBGROUP, &inputs, &expected, ("fallback", reason));
    }
}

/// The second op reads, of what the first wrote, another element.
#[test]
fn a_buffer_that_is_accessed_in_two_ways() {
    let (x, y) = (format!("memref<4x16xf32, {G}>"), format!("memref<4xf32, {G}>"));
    let (values, old) = (numbers(64, 7), numbers(4, 8));
    let body = format!(
        "{}{}",
        generic(
            Space { loops: "i, j", maps: &["i, j"], reductions: &[false, false] },
            "",
            &format!("%a0 : {x}"),
            "%o: f32",
            "    %r = arith.addf %o, %o : f32"
        ),
        generic(
            Space { loops: "i, j", maps: &["i, 0", "i, j", "i"], reductions: &[false, true] },
            &format!("%a0, %a0 : {x}, {x}"),
            &format!("%a1 : {y}"),
            "%f: f32, %x: f32, %o: f32",
            "    %p = arith.mulf %f, %x : f32\n    %r = arith.addf %o, %p : f32"
        )
    );
    let expected: Vec<f32> =
        (0..4).map(|i| old[i] + values[i * 16..][..16].iter().map(|x| 4.0 * values[i * 16] * x).sum::<f32>()).collect();
    let reason = "a buffer that is written is accessed in two ways";
    check(&[x, y], &body, SUBGROUP, &[values, old], &expected, ("fallback", reason));
}

/// Lanes beyond a row's tail contribute nothing, and do not change a NaN.
#[test]
fn lanes_outside_of_a_row_add_nothing() {
    for columns in [9, 65, 100] {
        let case = Case { program: Program::MaxOnto, rows: 2, columns, tile: 2 };
        let Some(device) = device() else { return };
        let mut inputs = case.inputs();
        inputs[0].iter_mut().for_each(|x| *x = 0.0);
        inputs[1].iter_mut().for_each(|x| *x = 0.0);
        inputs[2] = vec![-5.0, -7.0];
        inputs[0][columns as usize - 1] = f32::NAN;
        for kernel in [SUBGROUP, WORKGROUP] {
            let (out, _) = execute(device, &case.text(kernel), &case.grid(), &inputs);
            assert!(out[2][0].is_nan() && out[2][1] == 0.0, "{columns}: {:?}", out[2]);
        }
    }
}

#[test]
fn text_of_both_geometries() {
    let softmax = Case { program: Program::Softmax, rows: 6, columns: 64, tile: 3 };
    let kernel = SUBGROUP.replace("array<i64: 1>", "array<i64: 2>");
    let (kernel, _, _) = compile(&softmax.text(&kernel), &lavapipe()).expect("it compiles");
    expect_file!["snapshots/softmax_subgroup.wgsl"].assert_eq(&kernel.wgsl);
    let (kernel, _, _) = compile(&softmax.text(WORKGROUP), &GpuDescription::portable()).expect("it compiles");
    assert!(kernel.features.is_empty(), "a portable kernel needs no feature");
    expect_file!["snapshots/softmax_workgroup.wgsl"].assert_eq(&kernel.wgsl);
    let sum = Case { program: Program::Sum, rows: 1, columns: 5000, tile: 1 };
    let (kernel, _, _) = compile(&sum.text(SUBGROUP), &lavapipe()).expect("it compiles");
    expect_file!["snapshots/sum_long_row.wgsl"].assert_eq(&kernel.wgsl);
}

/// A row longer than the loop limit of a software adapter: 65,535 iterations of all loops together.
#[test]
fn rows_beyond_the_loop_limit() {
    let columns = 3_000_001;
    let case = Case { program: Program::Sum, rows: 1, columns, tile: 1 };
    let Some(device) = device() else { return };
    let inputs = [vec![1.0f32; columns as usize], vec![0.0]];
    let kernel = SUBGROUP.replace("8, 1, 1", "1, 1, 1").replace("share = \"subgroup\"", "share = \"none\"");
    let (out, report) = execute(device, &case.text(&kernel), &case.grid(), &inputs);
    assert_eq!(report.kernels[0].strategy, "rows", "{}", report.kernels[0].declined);
    assert_eq!(out[1], [columns as f32]);
}

/// A dynamic extent of the tile: every vector is guarded.
#[test]
fn rows_of_dynamic_length() {
    let (x, y) = (format!("memref<3x50xf32, {G}>"), format!("memref<3xf32, {G}>"));
    let part = format!("memref<3x?xf32, strided<[50, 1]>, {G}>");
    let body = format!(
        "  %n = affine.min affine_map<(d0) -> (d0 * -30 + 41, 50)>(%i0)\n  %s = memref.subview %a0[0, 0] [3, %n] [1, 1] : {x} to {part}\n{}",
        generic(
            ROWS,
            &format!("%s : {part}"),
            &format!("%a1 : {y}"),
            "%x: f32, %o: f32",
            "    %r = arith.addf %o, %x : f32"
        )
    );
    let values = numbers(150, 3);
    let expected: Vec<f32> = (0..3).map(|i| values[i * 50..][..41].iter().sum()).collect();
    for kernel in [SUBGROUP, WORKGROUP] {
        check(&[x.clone(), y.clone()], &body, kernel, &[values.clone(), vec![0.0; 3]], &expected, ("rows", ""));
    }
}
