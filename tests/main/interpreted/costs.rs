//! What kernels for an H200 cost by the interpreter's counts, as snapshots: sectors, bank conflicts, products,
//! barriers.

use super::host::{self, Input, Settings};
use super::targets::h200;
use expect_test::{Expect, expect};
use monopour::program::Kernel;
use monopour::{CompileOptions, TargetDescription};
use monopour_testkit::spirv::Counts;
use std::fmt::Write;

/// The counts of a program's kernels, in the order of their numbers, by name.
fn measured(name: &str, text: &str) -> Vec<(String, Counts)> {
    let target = h200();
    let targets = vec![TargetDescription::Gpu(target.description)];
    let options = CompileOptions { targets, ..Default::default() };
    let program = monopour::compile(text.as_bytes(), name, &options).unwrap_or_else(|d| panic!("{d}\n{text}")).program;
    let zeros = |desc: &monopour::program::TensorDesc| Input {
        bytes: vec![0; desc.size_bytes() as usize],
        bits: 0,
        shape: desc.shape.clone(),
    };
    let inputs: Vec<Input> = program.signature.inputs.iter().map(zeros).collect();
    let settings = Settings { subgroup_size: target.sizes[0], seed: 0 };
    let outcome = host::run(&program, &inputs, settings).unwrap_or_else(|e| panic!("{name}: {e}"));
    let names = program.variants[0].kernels.iter().map(|kernel| kernel.name().to_owned());
    names.zip(outcome.counts).collect()
}

/// A line for each kernel; `needed` is the number of multiply-adds of the whole program, 0 for none.
fn check(name: &str, text: &str, needed: u64, expect: &Expect) {
    let mut out = String::new();
    for (kernel, counts) in measured(name, text) {
        let _ = write!(out, "{kernel}: sectors {:.2} in, {:.2} out", counts.loads.ratio(), counts.stores.ratio());
        let shared = counts.shared_loads.accesses + counts.shared_stores.accesses;
        if shared > 0 {
            let (loads, stores) = (counts.shared_loads.ratio(), counts.shared_stores.ratio());
            let _ = write!(out, "; banks {loads:.2} in, {stores:.2} out");
        }
        if needed > 0 && counts.products > 0 {
            let _ = write!(out, "; products {:.2} of the needed", counts.products as f64 / needed as f64);
        }
        if counts.products > 0 && counts.shared_loads.elements > 0 {
            let _ = write!(out, ", {:.2} per element", counts.products as f64 / counts.shared_loads.elements as f64);
        }
        for ((_, scope, semantics), count) in &counts.barriers {
            let _ = write!(out, "; {count} barriers of memory scope {scope}, semantics {semantics:#x}");
        }
        out.push('\n');
    }
    expect.assert_eq(&out);
}

/// A function of tensors of one element type.
fn function(inputs: &[&str], result: &str, body: &str) -> String {
    let inputs: Vec<String> = inputs.iter().enumerate().map(|(i, ty)| format!("%{i}: tensor<{ty}>")).collect();
    format!("func.func @main({}) -> tensor<{result}> {{\n{body}}}\n", inputs.join(", "))
}

pub fn product(m: usize, n: usize, k: usize, element: &str) -> String {
    let body = format!(
        "%z = arith.constant 0.0 : f32\n%e = tensor.empty() : tensor<{m}x{n}xf32>\n\
         %f = linalg.fill ins(%z : f32) outs(%e : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>\n\
         %r = linalg.matmul ins(%0, %1 : tensor<{m}x{k}x{element}>, tensor<{k}x{n}x{element}>) outs(%f : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>\n\
         return %r : tensor<{m}x{n}xf32>\n"
    );
    function(&[&format!("{m}x{k}x{element}"), &format!("{k}x{n}x{element}")], &format!("{m}x{n}xf32"), &body)
}

#[test]
fn costs_of_elementwise_kernels() {
    let body = |ty: &str| {
        format!("%s = arith.addf %0, %1 : tensor<{ty}>\n%t = math.tanh %s : tensor<{ty}>\nreturn %t : tensor<{ty}>\n")
    };
    let f32s = function(&["256x512xf32", "256x512xf32"], "256x512xf32", &body("256x512xf32"));
    check(
        "add_tanh_f32",
        &f32s,
        0,
        &expect![[r#"
        main_dispatch_0: sectors 1.00 in, 1.00 out
    "#]],
    );
    let f16s = function(&["256x512xf16", "256x512xf16"], "256x512xf16", &body("256x512xf16"));
    check(
        "add_tanh_f16",
        &f16s,
        0,
        &expect![[r#"
        main_dispatch_0: sectors 1.00 in, 1.00 out
    "#]],
    );
    let odd = function(&["255x511xf32", "255x511xf32"], "255x511xf32", &body("255x511xf32"));
    check(
        "add_tanh_odd",
        &odd,
        0,
        &expect![[r#"
        main_dispatch_0: sectors 1.19 in, 1.19 out
    "#]],
    );
}

/// Beyond 65,535 tiles of the least size, too, all accesses are of four elements, four of them in flight.
#[test]
fn large_elementwise_kernels_access_vectors() {
    for n in [1u64 << 24, 1 << 26, (1 << 26) + 4, 5 << 26] {
        let ty = format!("{n}xf32");
        let text = function(&[&ty], &ty, &format!("%r = arith.negf %0 : tensor<{ty}>\nreturn %r : tensor<{ty}>\n"));
        let targets = vec![TargetDescription::Gpu(h200().description)];
        let options = CompileOptions { targets, ..Default::default() };
        let program =
            monopour::compile(text.as_bytes(), "neg", &options).unwrap_or_else(|d| panic!("{d}\n{text}")).program;
        let [Kernel::Gpu(kernel)] = &program.variants[0].kernels[..] else { panic!("one kernel") };
        let wgsl = &kernel.wgsl;
        assert_eq!(wgsl.matches("array<vec4<f32>>").count(), 2, "{n}\n{wgsl}");
        let first_store = wgsl.find("arg1_[").unwrap_or_else(|| panic!("it stores\n{wgsl}"));
        assert_eq!(wgsl[..first_store].matches("= arg0_[").count(), 4, "{n}\n{wgsl}");
    }
}

#[test]
fn costs_of_row_kernels() {
    let softmax = "\
        %e = tensor.empty() : tensor<64x1024xf32>\n\
        %r = linalg.softmax dimension(1) ins(%0 : tensor<64x1024xf32>) outs(%e : tensor<64x1024xf32>) -> tensor<64x1024xf32>\n\
        return %r : tensor<64x1024xf32>\n";
    check(
        "softmax",
        &function(&["64x1024xf32"], "64x1024xf32", softmax),
        0,
        &expect![[r#"
        main_dispatch_0: sectors 1.00 in, 1.00 out
    "#]],
    );
    let rows = sum("256x1024xf32", "i", "\"parallel\", \"reduction\"", "256xf32");
    check(
        "row_sum",
        &function(&["256x1024xf32"], "256xf32", &rows),
        0,
        &expect![[r#"
        main_dispatch_0: sectors 1.00 in, 1.00 out
    "#]],
    );
}

/// The sums of a tensor, by the results of its map.
fn sum(of: &str, map: &str, loops: &str, result: &str) -> String {
    let element = result.rsplit('x').next().unwrap_or_default();
    format!(
        "%z = arith.constant 0.0 : {element}\n%e = tensor.empty() : tensor<{result}>\n\
         %f = linalg.fill ins(%z : {element}) outs(%e : tensor<{result}>) -> tensor<{result}>\n\
         %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ({map})>], \
         iterator_types = [{loops}]}} ins(%0 : tensor<{of}>) outs(%f : tensor<{result}>) {{\n\
         ^bb0(%a: {element}, %o: {element}):\n%s = arith.addf %o, %a : {element}\nlinalg.yield %s : {element}\n}} -> tensor<{result}>\n\
         return %r : tensor<{result}>\n"
    )
}

/// Sums of the columns of f64, each times another number: so many results of one op.
fn scaled_sums(results: usize, rows: usize, columns: usize) -> String {
    let (of, each) = (format!("tensor<{rows}x{columns}xf64>"), format!("tensor<{columns}xf64>"));
    let list = |part: &dyn Fn(usize) -> String| (0..results).map(part).collect::<Vec<_>>().join(", ");
    let lines = |part: &dyn Fn(usize) -> String| (0..results).map(part).collect::<String>();
    let types = list(&|_| each.clone());
    format!(
        "func.func @main(%0: {of}) -> ({types}) {{\n%z = arith.constant 0.0 : f64\n{}%e = tensor.empty() : {each}\n\
         %f = linalg.fill ins(%z : f64) outs(%e : {each}) -> {each}\n\
         %r:{results} = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, {}], \
         iterator_types = [\"reduction\", \"parallel\"]}} ins(%0 : {of}) outs({} : {types}) {{\n\
         ^bb0(%a: f64, {}):\n{}linalg.yield {} : {}\n}} -> ({types})\nreturn {} : {types}\n}}\n",
        lines(&|i| format!("%c{i} = arith.constant {i}.5 : f64\n")),
        list(&|_| "affine_map<(i, j) -> (j)>".to_owned()),
        list(&|_| "%f".to_owned()),
        list(&|i| format!("%o{i}: f64")),
        lines(&|i| format!("%m{i} = arith.mulf %a, %c{i} : f64\n%s{i} = arith.addf %o{i}, %m{i} : f64\n")),
        list(&|i| format!("%s{i}")),
        list(&|_| "f64".to_owned()),
        list(&|i| format!("%r#{i}")),
    )
}

#[test]
fn costs_of_column_sums() {
    let check = |name: &str, of: &str, result: &str, expect: &Expect| {
        let body = sum(of, "j", "\"reduction\", \"parallel\"", result);
        check(name, &function(&[of], result, &body), 0, expect);
    };
    check(
        "column_sum",
        "256x1024xf32",
        "1024xf32",
        &expect![[r#"
            main_dispatch_0: sectors 1.00 in, 1.00 out; banks 1.00 in, 1.00 out; 512 barriers of memory scope 2, semantics 0x108
        "#]],
    );
    check(
        "column_sum_long",
        "8192x64xf32",
        "64xf32",
        &expect![[r#"
            main_dispatch_0: sectors 1.00 in, 1.00 out; banks 1.00 in, 1.00 out; 48 barriers of memory scope 2, semantics 0x108
        "#]],
    );
    check(
        "column_sum_f16",
        "2048x128xf16",
        "128xf16",
        &expect![[r#"
            main_dispatch_0: sectors 1.00 in, 1.00 out; banks 1.00 in, 1.00 out; 40 barriers of memory scope 2, semantics 0x108
        "#]],
    );
    // As many invocations as their partial results have room in workgroup memory.
    self::check(
        "column_sums_of_seven_f64",
        &scaled_sums(7, 1024, 63),
        0,
        &expect![[r#"
            main_dispatch_0: sectors 1.17 in, 1.00 out; banks 1.00 in, 1.00 out, 13.84 per element; 16 barriers of memory scope 2, semantics 0x108
        "#]],
    );
    check(
        "column_sum_odd",
        "1021x67xf32",
        "67xf32",
        &expect![[r#"
            main_dispatch_0: sectors 1.22 in, 1.00 out; banks 1.00 in, 1.00 out; 12 barriers of memory scope 2, semantics 0x108
        "#]],
    );
}

#[test]
fn costs_of_transposes() {
    let body = "\
        %e = tensor.empty() : tensor<512x256xf32>\n\
        %r = linalg.transpose ins(%0 : tensor<256x512xf32>) outs(%e : tensor<512x256xf32>) permutation = [1, 0]\n\
        return %r : tensor<512x256xf32>\n";
    check(
        "transpose",
        &function(&["256x512xf32"], "512x256xf32", body),
        0,
        &expect![[r#"
            main_dispatch_0: sectors 1.00 in, 1.00 out; banks 1.00 in, 1.00 out; 128 barriers of memory scope 2, semantics 0x108
        "#]],
    );
}

#[test]
fn costs_of_products() {
    check(
        "matmul_f32",
        &product(256, 256, 128, "f32"),
        256 * 256 * 128,
        &expect![[r#"
            main_dispatch_0: sectors 1.00 in, 1.00 out; banks 1.00 in, 1.00 out; products 1.00 of the needed, 2.00 per element; 256 barriers of memory scope 2, semantics 0x108
        "#]],
    );
    check(
        "matmul_large",
        &product(2048, 2048, 16, "f32"),
        2048 * 2048 * 16,
        &expect![[r#"
            main_dispatch_0: sectors 1.00 in, 1.00 out; banks 1.00 in, 1.00 out; products 1.00 of the needed, 4.00 per element; 1024 barriers of memory scope 2, semantics 0x108
        "#]],
    );
    check(
        "matmul_f16",
        &product(256, 256, 128, "f16"),
        256 * 256 * 128,
        &expect![[r#"
            main_dispatch_0: sectors 1.00 in, 1.00 out; banks 1.00 in, 1.50 out; products 1.00 of the needed, 16.00 per element; 128 barriers of memory scope 2, semantics 0x108
        "#]],
    );
    check(
        "matmul_odd",
        &product(125, 131, 127, "f32"),
        125 * 131 * 127,
        &expect![[r#"
            main_dispatch_0: sectors 1.58 in, 1.47 out; banks 1.00 in, 1.00 out; products 1.50 of the needed, 2.00 per element; 96 barriers of memory scope 2, semantics 0x108
        "#]],
    );
    check(
        "matvec",
        &product(512, 1, 1024, "f32"),
        512 * 1024,
        &expect![[r#"
        main_dispatch_0: sectors 1.00 in, 1.00 out; products 1.00 of the needed
    "#]],
    );
    check(
        "vecmat",
        &product(1, 512, 1024, "f32"),
        512 * 1024,
        &expect![[r#"
            main_dispatch_0: sectors 1.00 in, 1.00 out; banks 1.00 in, 1.00 out; products 1.00 of the needed, 1.72 per element; 320 barriers of memory scope 2, semantics 0x108
        "#]],
    );
}

/// The sums of `x[m, k] * w[n, k]`: rows of `w` are contiguous along the reduction.
fn transposed_product(m: usize, n: usize, k: usize, element: &str) -> String {
    let extend = if element == "f32" { ["%a", "%b"] } else { ["%x", "%y"] };
    let ops = match element {
        "f32" => String::new(),
        _ => format!("%x = arith.extf %a : {element} to f32\n%y = arith.extf %b : {element} to f32\n"),
    };
    let (rows, row) = if m == 1 { (String::new(), "") } else { (format!("{m}x"), "m, ") };
    let (x, w, out) = (format!("{rows}{k}x{element}"), format!("{n}x{k}x{element}"), format!("{rows}{n}xf32"));
    let (loops, kinds) = (format!("({row}n, k)"), if m == 1 { "" } else { "\"parallel\", " });
    let body = format!(
        "%z = arith.constant 0.0 : f32\n%e = tensor.empty() : tensor<{out}>\n\
         %f = linalg.fill ins(%z : f32) outs(%e : tensor<{out}>) -> tensor<{out}>\n\
         %r = linalg.generic {{indexing_maps = [affine_map<{loops} -> ({row}k)>, affine_map<{loops} -> (n, k)>, affine_map<{loops} -> ({row}n)>], \
         iterator_types = [{kinds}\"parallel\", \"reduction\"]}} ins(%0, %1 : tensor<{x}>, tensor<{w}>) outs(%f : tensor<{out}>) {{\n\
         ^bb0(%a: {element}, %b: {element}, %o: f32):\n{ops}%p = arith.mulf {}, {} : f32\n%s = arith.addf %o, %p : f32\nlinalg.yield %s : f32\n}} -> tensor<{out}>\n\
         return %r : tensor<{out}>\n",
        extend[0], extend[1]
    );
    function(&[&x, &w], &out, &body)
}

#[test]
fn costs_of_few_rows_times_columns() {
    check(
        "few_rows",
        &product(4, 512, 1024, "f32"),
        4 * 512 * 1024,
        &expect![[r#"
            main_dispatch_0: sectors 1.00 in, 1.00 out; banks 1.00 in, 1.00 out; products 1.00 of the needed, 3.44 per element; 320 barriers of memory scope 2, semantics 0x108
        "#]],
    );
    check(
        "eight_rows_f16",
        &product(8, 256, 512, "f16"),
        8 * 256 * 512,
        &expect![[r#"
            main_dispatch_0: sectors 1.00 in, 1.00 out; banks 1.00 in, 1.00 out; products 1.00 of the needed, 3.46 per element; 64 barriers of memory scope 2, semantics 0x108
        "#]],
    );
    check(
        "vecmat_odd",
        &product(1, 131, 1021, "f32"),
        131 * 1021,
        &expect![[r#"
            main_dispatch_0: sectors 1.17 in, 1.00 out; banks 1.00 in, 1.00 out; products 1.22 of the needed, 13.84 per element; 20 barriers of memory scope 2, semantics 0x108
        "#]],
    );
}

#[test]
fn costs_of_a_vector_times_rows() {
    check(
        "rows_f32",
        &transposed_product(1, 4096, 512, "f32"),
        4096 * 512,
        &expect![[r#"
        main_dispatch_0: sectors 1.00 in, 1.00 out; products 1.00 of the needed
    "#]],
    );
    check(
        "rows_f16",
        &transposed_product(1, 4096, 512, "f16"),
        4096 * 512,
        &expect![[r#"
        main_dispatch_0: sectors 1.00 in, 1.00 out; products 1.00 of the needed
    "#]],
    );
    check(
        "few_long_rows",
        &transposed_product(1, 64, 8192, "f32"),
        64 * 8192,
        &expect![[r#"
        main_dispatch_0: sectors 1.00 in, 1.00 out; banks 1.00 in, 1.00 out; products 1.00 of the needed, 13.74 per element; 320 barriers of memory scope 2, semantics 0x108
    "#]],
    );
}

#[test]
fn costs_of_attention() {
    let body = "\
        %z = arith.constant 0.0 : f32\n\
        %es = tensor.empty() : tensor<2x128x128xf32>\n%eo = tensor.empty() : tensor<2x128x64xf32>\n\
        %fs = linalg.fill ins(%z : f32) outs(%es : tensor<2x128x128xf32>) -> tensor<2x128x128xf32>\n\
        %fo = linalg.fill ins(%z : f32) outs(%eo : tensor<2x128x64xf32>) -> tensor<2x128x64xf32>\n\
        %s = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, \
        affine_map<(b, m, n, k) -> (b, m, n)>] ins(%0, %1 : tensor<2x128x64xf32>, tensor<2x128x64xf32>) outs(%fs : tensor<2x128x128xf32>) -> tensor<2x128x128xf32>\n\
        %p = linalg.softmax dimension(2) ins(%s : tensor<2x128x128xf32>) outs(%es : tensor<2x128x128xf32>) -> tensor<2x128x128xf32>\n\
        %r = linalg.batch_matmul ins(%p, %2 : tensor<2x128x128xf32>, tensor<2x128x64xf32>) outs(%fo : tensor<2x128x64xf32>) -> tensor<2x128x64xf32>\n\
        return %r : tensor<2x128x64xf32>\n";
    let qkv = ["2x128x64xf32"; 3];
    check(
        "attention",
        &function(&qkv, "2x128x64xf32", body),
        2 * 2 * 128 * 128 * 64,
        &expect![[r#"
            main_dispatch_0: sectors 1.56 in, 1.00 out; banks 1.00 in, 1.00 out; products 1.02 of the needed, 16.28 per element; 128 barriers of memory scope 2, semantics 0x108
        "#]],
    );
}

/// A convolution of `n` images by windows of 3 x 3, channels last or first.
fn convolution(op: &str, [n, size, c, f]: [usize; 4]) -> String {
    let padded = size + 2;
    let (x, filter, out) = match op {
        "conv_2d_nhwc_hwcf" => {
            (format!("{n}x{padded}x{padded}x{c}"), format!("3x3x{c}x{f}"), format!("{n}x{size}x{size}x{f}"))
        }
        _ => (format!("{n}x{c}x{padded}x{padded}"), format!("{f}x{c}x3x3"), format!("{n}x{f}x{size}x{size}")),
    };
    let body = format!(
        "%z = arith.constant 0.0 : f32\n%e = tensor.empty() : tensor<{out}xf32>\n\
         %f = linalg.fill ins(%z : f32) outs(%e : tensor<{out}xf32>) -> tensor<{out}xf32>\n\
         %r = linalg.{op} {{dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}} \
         ins(%0, %1 : tensor<{x}xf32>, tensor<{filter}xf32>) outs(%f : tensor<{out}xf32>) -> tensor<{out}xf32>\n\
         return %r : tensor<{out}xf32>\n"
    );
    function(&[&format!("{x}xf32"), &format!("{filter}xf32")], &format!("{out}xf32"), &body)
}

/// Images of few lines leave no invocation idle.
#[test]
fn costs_of_convolutions() {
    let cost = |name: &str, op: &str, sizes: [usize; 4], expect: &Expect| {
        let [n, size, c, f] = sizes;
        check(name, &convolution(op, sizes), (n * size * size * c * f * 9) as u64, expect);
    };
    cost(
        "conv_28",
        "conv_2d_nhwc_hwcf",
        [32, 28, 8, 128],
        &expect![[r#"
            main_dispatch_0: sectors 1.00 in, 1.00 out; banks 1.00 in, 1.00 out; products 1.00 of the needed, 4.00 per element; 2352 barriers of memory scope 2, semantics 0x108
        "#]],
    );
    cost(
        "conv_14",
        "conv_2d_nhwc_hwcf",
        [32, 14, 16, 64],
        &expect![[r#"
            main_dispatch_0: sectors 1.00 in, 1.00 out; banks 1.00 in, 1.00 out; products 1.00 of the needed, 2.00 per element; 7056 barriers of memory scope 2, semantics 0x108
        "#]],
    );
    cost(
        "conv_7",
        "conv_2d_nhwc_hwcf",
        [32, 7, 16, 128],
        &expect![[r#"
        main_dispatch_0: sectors 1.00 in, 1.00 out; banks 1.00 in, 1.00 out; products 1.00 of the needed, 1.33 per element; 1764 barriers of memory scope 2, semantics 0x108
    "#]],
    );
    cost(
        "conv_13",
        "conv_2d_nhwc_hwcf",
        [3, 13, 16, 64],
        &expect![[r#"
        main_dispatch_0: sectors 1.00 in, 1.00 out; banks 1.00 in, 1.67 out; products 1.64 of the needed, 0.80 per element; 1872 barriers of memory scope 2, semantics 0x108
    "#]],
    );
    cost(
        "conv_channels_first",
        "conv_2d_nchw_fchw",
        [8, 14, 16, 128],
        &expect![[r#"
            main_dispatch_0: sectors 3.98 in, 2.12 out; banks 1.00 in, 1.00 out; products 1.14 of the needed, 1.33 per element; 2016 barriers of memory scope 2, semantics 0x108
        "#]],
    );
}
