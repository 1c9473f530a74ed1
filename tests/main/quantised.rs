//! Quantised products: factors of 8 bits less zero points, dequantised ones, and weights of 4 bits. Right values on all devices;
//! on CPUs as few dispatches as the same product of floats.

use crate::backend::{Monopour, from_runtime};
use crate::host::{devices, evaluated, f32s, ramp, raw, run};
use monopour::program::{CpuTarget, DType};
use monopour::runtime::HostTensor;
use monopour::{CompileOptions, TargetDescription, compile};
use monopour_testkit::approx::{Tolerance, compare};
use monopour_testkit::suite::Backend;

/// Bytes of all sizes, the same in every run.
fn bytes(count: usize, step: usize) -> Vec<u8> {
    (0..count).map(|i| (i * step % 251 + i / 7 % 5) as u8).collect()
}

/// Elements of a constant of 8 bits.
fn dense(shape: &str, bytes: &[u8]) -> String {
    let hex: String = bytes.iter().map(|b| format!("{b:02X}")).collect();
    format!("arith.constant dense<\"0x{hex}\"> : tensor<{shape}xi8>")
}

/// Compares with the evaluator on every device; returns the dispatches of a run on the CPU.
fn check(text: &str, inputs: &[HostTensor], rounding: f64) -> u64 {
    let expected = evaluated(text, inputs);
    let mut dispatches = vec![];
    for device in devices() {
        let (results, stats, leaks) = run(text, &[], &device, inputs);
        assert_eq!(results.len(), expected.len());
        for (found, expected) in results.iter().zip(&expected) {
            let tolerance = Tolerance { absolute: rounding, relative: rounding };
            let equal = compare(&from_runtime(found), expected, tolerance);
            equal.unwrap_or_else(|e| panic!("{}: {e}\n{text}", stats.device));
        }
        assert!(leaks.is_clean(), "{}: {leaks:?}", stats.device);
        dispatches.push(stats.counts.dispatches);
    }
    for cpu in Monopour::all_aarch64() {
        let options = CompileOptions { targets: vec![cpu.target().clone()], ..Default::default() };
        let program = compile(text.as_bytes(), "q.mlir", &options).unwrap_or_else(|e| panic!("{e}")).program;
        let results = cpu.results(program, inputs, 1).unwrap_or_else(|e| panic!("{e}"));
        for (found, expected) in results.iter().zip(&expected) {
            let equal = compare(&from_runtime(found), expected, Tolerance { absolute: rounding, relative: rounding });
            equal.unwrap_or_else(|e| panic!("{}: {e}\n{text}", cpu.name()));
        }
    }
    dispatches[0]
}

/// A product of bytes that are less a zero point each, in 32 bits. `weights` defines `%w`, `zero` the body's `%z`.
fn product(args: &str, weights: &str, [left, right]: [&str; 2], zeros: [&str; 2], zero: &str) -> String {
    format!(
        "
#id = affine_map<(i, j) -> (i, j)>
#none = affine_map<(i, j) -> ()>
func.func @main({args}) -> tensor<21x40xi32> {{
  %zero = arith.constant 0 : i32
  {weights}
  {zero}
  %ex = tensor.empty() : tensor<21x37xi32>
  %a = linalg.generic {{indexing_maps = [#id, #none, #id], iterator_types = [\"parallel\", \"parallel\"]}}
    ins(%x, %zx : tensor<21x37xi8>, tensor<i8>) outs(%ex : tensor<21x37xi32>) {{
  ^bb0(%b: i8, %z: i8, %o: i32):
    %c = arith.{left} %b : i8 to i32
    {}
    %r = arith.subi %c, %d : i32
    linalg.yield %r : i32
  }} -> tensor<21x37xi32>
  %ew = tensor.empty() : tensor<37x40xi32>
  %k = linalg.generic {{indexing_maps = [#id, #id], iterator_types = [\"parallel\", \"parallel\"]}}
    ins(%w : tensor<37x40xi8>) outs(%ew : tensor<37x40xi32>) {{
  ^bb0(%b: i8, %o: i32):
    %c = arith.{right} %b : i8 to i32
    {}
    %r = arith.subi %c, %d : i32
    linalg.yield %r : i32
  }} -> tensor<37x40xi32>
  %e = tensor.empty() : tensor<21x40xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<21x40xi32>) -> tensor<21x40xi32>
  %p = linalg.matmul ins(%a, %k : tensor<21x37xi32>, tensor<37x40xi32>) outs(%f : tensor<21x40xi32>) -> tensor<21x40xi32>
  return %p : tensor<21x40xi32>
}}",
        zeros[0], zeros[1]
    )
}

#[test]
fn zero_points_are_taken_off() {
    let x = raw(DType::I8, &[21, 37], &bytes(21 * 37, 89));
    let w = bytes(37 * 40, 151);
    let number = |n: i64| format!("%d = arith.constant {n} : i32");
    let given = "%d = arith.extui %z : i8 to i32";
    let zero = raw(DType::I8, &[], &[200]);
    let scalar = "%zx = arith.constant dense<0> : tensor<i8>";
    let constant = format!("%w = {}", dense("37x40", &w));
    for (left, right) in [("extui", "extsi"), ("extsi", "extsi"), ("extsi", "extui")] {
        // Weights that 8 bits hold with their zero point, and that they do not.
        for (zeros, dispatches) in [([0, 0], 1), ([128, 0], 1), ([0, 128], 1), ([7, 3], 1)] {
            let numbers = zeros.map(number);
            let numbers = [numbers[0].as_str(), numbers[1].as_str()];
            let text = product("%x: tensor<21x37xi8>", &constant, [left, right], numbers, scalar);
            assert_eq!(check(&text, std::slice::from_ref(&x), 0.0), dispatches, "{text}");
        }
        // A zero point that is known at run time alone; and factors of which none is a constant.
        let numbers = [given, &number(0)];
        let text = product("%x: tensor<21x37xi8>, %zx: tensor<i8>", &constant, [left, right], numbers, "");
        assert_eq!(check(&text, &[x.clone(), zero.clone()], 0.0), 1, "{text}");
        let args = "%x: tensor<21x37xi8>, %zx: tensor<i8>, %w: tensor<37x40xi8>";
        let text = product(args, "", [left, right], [given, &number(5)], "");
        let inputs = [x.clone(), zero.clone(), raw(DType::I8, &[37, 40], &w)];
        assert_eq!(check(&text, &inputs, 0.0), 3, "{text}");
    }
}

/// `rows` of floats times dequantised weights, stored as the right factor is, or transposed.
fn weight_only(rows: u64, (signed, zero): (bool, i64), is_transposed: bool, w: &[u8]) -> String {
    let (shape, map) = if is_transposed { ("50x37", "(n, k)") } else { ("37x50", "(k, n)") };
    let (conversion, w) = (if signed { "sitofp" } else { "uitofp" }, dense(shape, w));
    format!(
        "
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<{rows}x37xf32>) -> tensor<{rows}x50xf32> {{
  %zero = arith.constant 0.0 : f32
  %z = arith.constant {zero}.0 : f32
  %s = arith.constant 0.03125 : f32
  %w = {w}
  %ew = tensor.empty() : tensor<{shape}xf32>
  %d = linalg.generic {{indexing_maps = [#id, #id], iterator_types = [\"parallel\", \"parallel\"]}}
    ins(%w : tensor<{shape}xi8>) outs(%ew : tensor<{shape}xf32>) {{
  ^bb0(%b: i8, %o: f32):
    %c = arith.{conversion} %b : i8 to f32
    %l = arith.subf %c, %z : f32
    %r = arith.mulf %l, %s : f32
    linalg.yield %r : f32
  }} -> tensor<{shape}xf32>
  %e = tensor.empty() : tensor<{rows}x50xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<{rows}x50xf32>) -> tensor<{rows}x50xf32>
  %p = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> {map}>, affine_map<(m, n, k) -> (m, n)>], iterator_types = [\"parallel\", \"parallel\", \"reduction\"]}}
    ins(%x, %d : tensor<{rows}x37xf32>, tensor<{shape}xf32>) outs(%f : tensor<{rows}x50xf32>) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  }} -> tensor<{rows}x50xf32>
  return %p : tensor<{rows}x50xf32>
}}"
    )
}

#[test]
fn weights_of_eight_bits_are_dequantised_inside_of_the_product() {
    let w = bytes(37 * 50, 113);
    for rows in [1, 21, 130] {
        let x = f32s(&[rows, 37], &ramp((rows * 37) as usize));
        for kind in [(true, 0), (false, 128), (true, -3)] {
            for is_transposed in [false, true] {
                let text = weight_only(rows, kind, is_transposed, &w);
                assert_eq!(check(&text, std::slice::from_ref(&x), 1e-4), 1, "{text}");
            }
        }
    }
}

/// A constant that is taken off a factor is part of the product, whatever the factor's type.
#[test]
fn factors_less_a_constant_are_no_plain_factors() {
    let text = |element: &str, conversion: &str, factor: &str| {
        format!(
            "
func.func @main(%x: tensor<21x37xf32>, %w: tensor<37x50x{element}>) -> tensor<21x50xf32> {{
  %zero = arith.constant 0.0 : f32
  %seven = arith.constant 7.0 : f32
  %e = tensor.empty() : tensor<21x50xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<21x50xf32>) -> tensor<21x50xf32>
  %p = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = [\"parallel\", \"parallel\", \"reduction\"]}}
    ins(%x, %w : tensor<21x37xf32>, tensor<37x50x{element}>) outs(%f : tensor<21x50xf32>) {{
  ^bb0(%a: f32, %b: {element}, %o: f32):
    {conversion}
    %d = arith.subf {factor}, %seven : f32
    %m = arith.mulf %a, %d : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  }} -> tensor<21x50xf32>
  return %p : tensor<21x50xf32>
}}"
        )
    };
    let x = f32s(&[21, 37], &ramp(21 * 37));
    let floats = [x.clone(), f32s(&[37, 50], &ramp(37 * 50))];
    assert_eq!(check(&text("f32", "", "%b"), &floats, 1e-4), 1);
    let integers = [x, raw(DType::I8, &[37, 50], &bytes(37 * 50, 113))];
    for conversion in ["uitofp", "sitofp"] {
        let conversion = format!("%c = arith.{conversion} %b : i8 to f32");
        assert_eq!(check(&text("i8", &conversion, "%c"), &integers, 1e-4), 1);
    }
}

/// A padded convolution of dequantised factors with a bias, and its quantised result.
fn dequantized(zero: &str, filter: &str) -> String {
    format!(
        "
#image = affine_map<(c, y, x) -> (c, y, x)>
#filter = affine_map<(o, c, i, j) -> (o, c, i, j)>
#channel = affine_map<(o, c, i, j) -> (o)>
#bias = affine_map<(c, y, x) -> (c)>
func.func @main(%x: tensor<8x9x14xi8>, %b: tensor<20xf32>) -> tensor<20x9x14xf32> {{
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.0625 : f32
  %zx = arith.constant {zero} : f32
  %zw = arith.constant 0.0 : f32
  %w = {filter}
  %scales = arith.constant dense<[0.5, 0.25, 0.125, 0.75, 1.0, 0.5, 0.25, 0.125, 0.75, 1.0, 0.5, 0.25, 0.125, 0.75, 1.0, 0.5, 0.25, 0.125, 0.75, 1.0]> : tensor<20xf32>
  %ea = tensor.empty() : tensor<8x9x14xf32>
  %a = linalg.generic {{indexing_maps = [#image, #image], iterator_types = [\"parallel\", \"parallel\", \"parallel\"]}}
    ins(%x : tensor<8x9x14xi8>) outs(%ea : tensor<8x9x14xf32>) {{
  ^bb0(%q: i8, %o: f32):
    %u = arith.uitofp %q : i8 to f32
    %v = arith.subf %u, %zx : f32
    %r = arith.mulf %v, %scale : f32
    linalg.yield %r : f32
  }} -> tensor<8x9x14xf32>
  %ew = tensor.empty() : tensor<20x8x3x3xf32>
  %k = linalg.generic {{indexing_maps = [#filter, #channel, #filter], iterator_types = [\"parallel\", \"parallel\", \"parallel\", \"parallel\"]}}
    ins(%w, %scales : tensor<20x8x3x3xi8>, tensor<20xf32>) outs(%ew : tensor<20x8x3x3xf32>) {{
  ^bb0(%q: i8, %s: f32, %o: f32):
    %u = arith.sitofp %q : i8 to f32
    %v = arith.subf %u, %zw : f32
    %r = arith.mulf %v, %s : f32
    linalg.yield %r : f32
  }} -> tensor<20x8x3x3xf32>
  %ep = tensor.empty() : tensor<8x11x16xf32>
  %fp = linalg.fill ins(%zero : f32) outs(%ep : tensor<8x11x16xf32>) -> tensor<8x11x16xf32>
  %p = tensor.insert_slice %a into %fp[0, 1, 1] [8, 9, 14] [1, 1, 1] : tensor<8x9x14xf32> into tensor<8x11x16xf32>
  %e = tensor.empty() : tensor<20x9x14xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<20x9x14xf32>) -> tensor<20x9x14xf32>
  %c = linalg.generic {{indexing_maps = [affine_map<(o, y, x, c, i, j) -> (c, y + i, x + j)>,
      affine_map<(o, y, x, c, i, j) -> (o, c, i, j)>, affine_map<(o, y, x, c, i, j) -> (o, y, x)>],
      iterator_types = [\"parallel\", \"parallel\", \"parallel\", \"reduction\", \"reduction\", \"reduction\"]}}
    ins(%p, %k : tensor<8x11x16xf32>, tensor<20x8x3x3xf32>) outs(%f : tensor<20x9x14xf32>) {{
  ^bb0(%q: f32, %s: f32, %o: f32):
    %m = arith.mulf %q, %s : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  }} -> tensor<20x9x14xf32>
  %r = linalg.generic {{indexing_maps = [#image, #bias, #image], iterator_types = [\"parallel\", \"parallel\", \"parallel\"]}}
    ins(%c, %b : tensor<20x9x14xf32>, tensor<20xf32>) outs(%e : tensor<20x9x14xf32>) {{
  ^bb0(%q: f32, %s: f32, %o: f32):
    %m = arith.addf %q, %s : f32
    linalg.yield %m : f32
  }} -> tensor<20x9x14xf32>
  return %r : tensor<20x9x14xf32>
}}"
    )
}

#[test]
fn products_of_dequantised_factors_are_of_integers() {
    let x = raw(DType::I8, &[8, 9, 14], &bytes(8 * 9 * 14, 89));
    let filter = dense("20x8x3x3", &bytes(20 * 8 * 9, 151));
    for zero in ["0.0", "131.0"] {
        let inputs = [x.clone(), f32s(&[20], &ramp(20))];
        // Padding is done inside of tiles.
        assert_eq!(check(&dequantized(zero, &filter), &inputs, 1e-5), 1, "zero point {zero}");
    }
    // Half of a zero point is no integer.
    check(&dequantized("0.5", &filter), &[x, f32s(&[20], &ramp(20))], 1e-4);
}

/// The convolution of [`dequantized`] with an input that is quantised here, to 8 bits with a sign, and also read elsewhere.
fn quantized_here(zero: &str, filter: &str) -> String {
    let quantize = "
  %ei = tensor.empty() : tensor<8x9x14xi8>
  %x = linalg.generic {indexing_maps = [#image, #image], iterator_types = [\"parallel\", \"parallel\", \"parallel\"]}
    ins(%xf : tensor<8x9x14xf32>) outs(%ei : tensor<8x9x14xi8>) {
  ^bb0(%q: f32, %o: i8):
    %low = arith.constant -128.0 : f32
    %high = arith.constant 127.0 : f32
    %u = math.roundeven %q : f32
    %v = arith.maximumf %u, %low : f32
    %w = arith.minimumf %v, %high : f32
    %r = arith.fptosi %w : f32 to i8
    linalg.yield %r : i8
  } -> tensor<8x9x14xi8>
  %zero =";
    let text = dequantized(zero, filter).replace("%x: tensor<8x9x14xi8>", "%xf: tensor<8x9x14xf32>");
    let text = text.replace(
        "-> tensor<20x9x14xf32> {\n  %zero =",
        &format!("-> (tensor<20x9x14xf32>, tensor<8x9x14xf32>) {{{quantize}"),
    );
    let text = text.replace("uitofp", "sitofp");
    text.replace("return %r : tensor<20x9x14xf32>", "return %r, %a : tensor<20x9x14xf32>, tensor<8x9x14xf32>")
}

/// On x86 the input has 128 more, and no sign, between the dispatches.
#[test]
fn factors_with_a_sign_are_quantised_without() {
    let filter = dense("20x8x3x3", &bytes(20 * 8 * 9, 151));
    let x: Vec<f32> = (0..8 * 9 * 14).map(|n| (n * 37 % 301) as f32 - 150.5).collect();
    for zero in ["0.0", "-7.0"] {
        let inputs = [f32s(&[8, 9, 14], &x), f32s(&[20], &ramp(20))];
        assert_eq!(check(&quantized_here(zero, &filter), &inputs, 1e-5), 3, "zero point {zero}");
    }
    for cpu in ["x86-64-v4-vnni", "x86-64-v3-vnni"] {
        let target = TargetDescription::Cpu(CpuTarget::parse(cpu).unwrap());
        let options = CompileOptions { targets: vec![target], dump_after: vec!["llvm".into()], ..Default::default() };
        let compiled = compile(quantized_here("-7.0", &filter).as_bytes(), "q.mlir", &options).unwrap();
        let ir = &compiled.report.dumps[0].text;
        assert!(ir.contains("vpdpbusd") && !ir.contains("pmaddw"), "{cpu}: {ir}");
    }
}

/// A product with weights of 4 bits: two numbers in a byte, a scale for 32.
fn packed(rows: usize) -> String {
    format!(
        "
#bytes = affine_map<(n, b, k, h) -> (n, b, k)>
#scales = affine_map<(n, b, k, h) -> (n, b)>
#all = affine_map<(n, b, k, h) -> (n, b, k, h)>
func.func @main(%x: tensor<{rows}x96xf32>) -> tensor<{rows}x50xf32> {{
  %zero = arith.constant 0.0 : f32
  %w = {}
  %s = arith.constant dense<0.125> : tensor<50x3xf32>
  %eight = arith.constant 8.0 : f32
  %four = arith.constant 4 : i8
  %mask = arith.constant 15 : i8
  %e = tensor.empty() : tensor<50x3x16x2xf32>
  %q = linalg.generic {{indexing_maps = [#bytes, #scales, #all], iterator_types = [\"parallel\", \"parallel\", \"parallel\", \"parallel\"]}}
    ins(%w, %s : tensor<50x3x16xi8>, tensor<50x3xf32>) outs(%e : tensor<50x3x16x2xf32>) {{
  ^bb0(%b: i8, %t: f32, %o: f32):
    %h = linalg.index 3 : index
    %i = arith.index_cast %h : index to i8
    %m = arith.muli %i, %four : i8
    %v = arith.shrui %b, %m : i8
    %n = arith.andi %v, %mask : i8
    %f = arith.uitofp %n : i8 to f32
    %d = arith.subf %f, %eight : f32
    %r = arith.mulf %d, %t : f32
    linalg.yield %r : f32
  }} -> tensor<50x3x16x2xf32>
  %c = tensor.collapse_shape %q [[0], [1, 2, 3]] : tensor<50x3x16x2xf32> into tensor<50x96xf32>
  %o = tensor.empty() : tensor<{rows}x50xf32>
  %z = linalg.fill ins(%zero : f32) outs(%o : tensor<{rows}x50xf32>) -> tensor<{rows}x50xf32>
  %p = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = [\"parallel\", \"parallel\", \"reduction\"]}}
    ins(%x, %c : tensor<{rows}x96xf32>, tensor<50x96xf32>) outs(%z : tensor<{rows}x50xf32>) {{
  ^bb0(%a: f32, %b: f32, %s0: f32):
    %m = arith.mulf %a, %b : f32
    %r = arith.addf %s0, %m : f32
    linalg.yield %r : f32
  }} -> tensor<{rows}x50xf32>
  return %p : tensor<{rows}x50xf32>
}}",
        dense("50x3x16", &bytes(50 * 3 * 16, 151))
    )
}

#[test]
fn weights_of_four_bits_are_unpacked_once() {
    for (rows, dispatches) in [(1, 1), (20, 2)] {
        let x = f32s(&[rows, 96], &ramp(rows as usize * 96));
        assert_eq!(check(&packed(rows as usize), &[x], 1e-5), dispatches, "{rows} rows");
    }
}

/// A padded depthwise convolution of a dequantised image and filter, which is stored as bytes again.
fn depthwise(stride: usize) -> String {
    let (out, filter) = (if stride == 1 { "6x9x9" } else { "6x4x4" }, dense("6x3x3", &bytes(54, 29)));
    format!(
        r#"
#id = affine_map<(c, y, x) -> (c, y, x)>
#each = affine_map<(c, y, x) -> (c)>
func.func @main(%x: tensor<6x9x9xi8>) -> tensor<{out}xi8> {{
  %zero = arith.constant 0.0 : f32
  %q = {filter}
  %t = arith.constant dense<[0.25, 0.5, 0.125, 0.0625, 1.0, 0.03125]> : tensor<6xf32>
  %ex = tensor.empty() : tensor<6x9x9xf32>
  %a = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}} ins(%x : tensor<6x9x9xi8>) outs(%ex : tensor<6x9x9xf32>) {{
  ^bb0(%b: i8, %o: f32):
    %z = arith.constant 7.0 : f32
    %s = arith.constant 0.5 : f32
    %f = arith.uitofp %b : i8 to f32
    %d = arith.subf %f, %z : f32
    %m = arith.mulf %d, %s : f32
    linalg.yield %m : f32
  }} -> tensor<6x9x9xf32>
  %eq = tensor.empty() : tensor<6x3x3xf32>
  %w = linalg.generic {{indexing_maps = [#id, #each, #id], iterator_types = ["parallel", "parallel", "parallel"]}} ins(%q, %t : tensor<6x3x3xi8>, tensor<6xf32>) outs(%eq : tensor<6x3x3xf32>) {{
  ^bb0(%b: i8, %s: f32, %o: f32):
    %f = arith.sitofp %b : i8 to f32
    %m = arith.mulf %f, %s : f32
    linalg.yield %m : f32
  }} -> tensor<6x3x3xf32>
  %ep = tensor.empty() : tensor<6x11x11xf32>
  %fp = linalg.fill ins(%zero : f32) outs(%ep : tensor<6x11x11xf32>) -> tensor<6x11x11xf32>
  %p = tensor.insert_slice %a into %fp[0, 1, 1] [6, 9, 9] [1, 1, 1] : tensor<6x9x9xf32> into tensor<6x11x11xf32>
  %eo = tensor.empty() : tensor<{out}xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<{out}xf32>) -> tensor<{out}xf32>
  %c = linalg.generic {{indexing_maps = [affine_map<(c, y, x, i, j) -> (c, y * {stride} + i, x * {stride} + j)>, affine_map<(c, y, x, i, j) -> (c, i, j)>, affine_map<(c, y, x, i, j) -> (c, y, x)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}} ins(%p, %w : tensor<6x11x11xf32>, tensor<6x3x3xf32>) outs(%fo : tensor<{out}xf32>) {{
  ^bb0(%i: f32, %k: f32, %o: f32):
    %m = arith.mulf %i, %k : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  }} -> tensor<{out}xf32>
  %er = tensor.empty() : tensor<{out}xi8>
  %r = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}} ins(%c : tensor<{out}xf32>) outs(%er : tensor<{out}xi8>) {{
  ^bb0(%v: f32, %o: i8):
    %high = arith.constant 100.0 : f32
    %low = arith.constant -100.0 : f32
    %u = arith.constant 0.015625 : f32
    %d = arith.mulf %v, %u : f32
    %n = math.roundeven %d : f32
    %l = arith.maximumf %n, %low : f32
    %h = arith.minimumf %l, %high : f32
    %b = arith.fptosi %h : f32 to i8
    linalg.yield %b : i8
  }} -> tensor<{out}xi8>
  return %r : tensor<{out}xi8>
}}
"#
    )
}

#[test]
fn images_of_depthwise_convolutions_stay_bytes() {
    for stride in [1, 2] {
        let text = depthwise(stride);
        // All scales are powers of two: the sums are exact.
        check(&text, &[raw(DType::I8, &[6, 9, 9], &bytes(486, 73))], 0.0);
        let options = CompileOptions {
            targets: vec![TargetDescription::Cpu(CpuTarget::host())],
            dump_after: vec!["fuse".to_owned()],
            ..Default::default()
        };
        let compiled = compile(text.as_bytes(), "test.mlir", &options).expect("it compiles");
        let fused = &compiled.report.dumps[0].text;
        let padded = |element: &str| fused.contains(&format!("11x11x{element}>"));
        let by_channels = |element: &str| fused.contains(&format!("11x11x6x{element}>"));
        assert!(padded("i8") || by_channels("i8"), "{fused}");
        assert!(!padded("f32") && !by_channels("f32"), "{fused}");
    }
}
