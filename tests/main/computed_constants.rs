//! What a program computes of constants alone is computed when it is compiled, unless that takes more bytes than the constants.

use crate::backend::from_runtime;
use crate::host::{devices, evaluated, f32s, ramp, run};
use monopour::runtime::HostTensor;
use monopour::{CompileOptions, compile as compile_program};
use monopour_testkit::approx::{Tolerance, compare};

const NOTHING: [&str; 2] = [""; 2];

/// Of the rows and the weights.
const PRODUCT: &str = r#"  %pe = tensor.empty() : tensor<8x32xf32>
  %p = linalg.fill ins(%zero : f32) outs(%pe : tensor<8x32xf32>) -> tensor<8x32xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %weights : tensor<8x64xf32>, tensor<32x64xf32>) outs(%p : tensor<8x32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<8x32xf32>
  return %r : tensor<8x32xf32>"#;

/// A product of 8 rows and weights that are divided by the sums of their rows; `stored` and `widen` say how the weights are stored, `more` what is
/// returned too.
fn normalised((stored, widen): (&str, &str), more: [&str; 2]) -> String {
    let element = if widen.is_empty() { "f32" } else { "i8" };
    let (wide, w) = (format!("tensor<32x64x{element}>"), "tensor<32x64xf32>");
    let (read, convert) = if widen.is_empty() { ("%v", "") } else { ("%f", widen) };
    let also = |text: &str| if text.is_empty() { String::new() } else { format!(", {text}") };
    let [more, ty] = more.map(also);
    format!(
        r#"#w = affine_map<(n, k) -> (n, k)>
#s = affine_map<(n, k) -> (n)>
func.func @main(%x: tensor<8x64xf32>) -> (tensor<8x32xf32>{ty}) {{
  %zero = arith.constant 0.0 : f32
  %stored = arith.constant {stored} : {wide}
  %e = tensor.empty() : tensor<32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<32xf32>) -> tensor<32xf32>
  %sums = linalg.generic {{indexing_maps = [#w, #s], iterator_types = ["parallel", "reduction"]}} ins(%stored : {wide}) outs(%z : tensor<32xf32>) {{
  ^bb0(%v: {element}, %o: f32):
    {convert}
    %a = arith.addf %o, {read} : f32
    linalg.yield %a : f32
  }} -> tensor<32xf32>
  %we = tensor.empty() : {w}
  %weights = linalg.generic {{indexing_maps = [#w, #s, #w], iterator_types = ["parallel", "parallel"]}} ins(%stored, %sums : {wide}, tensor<32xf32>) outs(%we : {w}) {{
  ^bb0(%v: {element}, %t: f32, %o: f32):
    {convert}
    %a = arith.divf {read}, %t : f32
    linalg.yield %a : f32
  }} -> {w}
  %pe = tensor.empty() : tensor<8x32xf32>
  %p = linalg.fill ins(%zero : f32) outs(%pe : tensor<8x32xf32>) -> tensor<8x32xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}} ins(%x, %weights : tensor<8x64xf32>, {w}) outs(%p : tensor<8x32xf32>) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  }} -> tensor<8x32xf32>
  return %r{more} : tensor<8x32xf32>{ty}
}}"#
    )
}

fn f32_weights() -> String {
    let bytes: String =
        (0..32 * 64).flat_map(|i| (1.0 + (i % 7) as f32).to_le_bytes()).map(|b| format!("{b:02X}")).collect();
    format!("dense<\"0x{bytes}\">")
}

/// Values by the evaluator; the dispatches of a run, and the bytes of its constants, on each device.
fn check(text: &str, inputs: &[HostTensor]) -> Vec<(u64, u64)> {
    let expected = evaluated(text, inputs);
    let on = |device| {
        let (results, stats, leaks) = run(text, &[], &device, inputs);
        for (found, expected) in results.iter().zip(&expected) {
            compare(&from_runtime(found), expected, Tolerance { absolute: 1e-5, relative: 1e-5 })
                .unwrap_or_else(|e| panic!("{}: {e}\n{text}", stats.device));
        }
        assert!(leaks.is_clean(), "{}: {leaks:?}", stats.device);
        (stats.counts.dispatches, stats.memory.constants)
    };
    devices().into_iter().map(on).collect()
}

fn rows() -> [HostTensor; 1] {
    [f32s(&[8, 64], &ramp(8 * 64))]
}

/// The sums of rows and the quotients are no dispatches: the product reads weights as if the model had stored them so.
#[test]
fn weights_are_normalised_when_they_are_compiled() {
    let counts = check(&normalised((&f32_weights(), ""), NOTHING), &rows());
    assert!(counts.iter().all(|(dispatches, _)| *dispatches == 1), "{counts:?}");
}

/// A result of the program is computed by it, and so is what is computed of constants that are read elsewhere too.
#[test]
fn results_and_shared_constants_are_left() {
    for more in [["%sums", "tensor<32xf32>"], ["%stored", "tensor<32x64xf32>"]] {
        let counts = check(&normalised((&f32_weights(), ""), more), &rows());
        assert!(counts.iter().all(|(dispatches, _)| *dispatches > 1), "{more:?}: {counts:?}");
    }
}

/// Weights of a byte each would take four.
#[test]
fn weights_of_bytes_stay_bytes() {
    let bytes: String = (0..32 * 64).map(|i| format!("{:02X}", 1 + i % 7)).collect();
    let widen = "%f = arith.sitofp %v : i8 to f32";
    let counts = check(&normalised((&format!("dense<\"0x{bytes}\">"), widen), NOTHING), &rows());
    assert!(counts.iter().all(|(dispatches, bytes)| *dispatches > 1 && *bytes < 4 * 32 * 64), "{counts:?}");
}

/// Weights that the graph rounds to bytes and widens again are stored as those bytes.
#[test]
fn rounded_weights_are_stored_as_they_were_rounded() {
    let text = format!(
        r#"#w = affine_map<(n, k) -> (n, k)>
func.func @main(%x: tensor<8x64xf32>) -> tensor<8x32xf32> {{
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.5 : f32
  %stored = arith.constant {} : tensor<32x64xf32>
  %be = tensor.empty() : tensor<32x64xi8>
  %bytes = linalg.generic {{indexing_maps = [#w, #w], iterator_types = ["parallel", "parallel"]}} ins(%stored : tensor<32x64xf32>) outs(%be : tensor<32x64xi8>) {{
  ^bb0(%v: f32, %o: i8):
    %d = arith.divf %v, %scale : f32
    %r = math.roundeven %d : f32
    %i = arith.fptosi %r : f32 to i8
    linalg.yield %i : i8
  }} -> tensor<32x64xi8>
  %we = tensor.empty() : tensor<32x64xf32>
  %weights = linalg.generic {{indexing_maps = [#w, #w], iterator_types = ["parallel", "parallel"]}} ins(%bytes : tensor<32x64xi8>) outs(%we : tensor<32x64xf32>) {{
  ^bb0(%v: i8, %o: f32):
    %f = arith.sitofp %v : i8 to f32
    %m = arith.mulf %f, %scale : f32
    linalg.yield %m : f32
  }} -> tensor<32x64xf32>
{PRODUCT}
}}"#,
        f32_weights()
    );
    check(&text, &rows());
    for (_, target) in devices() {
        let options = CompileOptions { targets: vec![target], ..CompileOptions::default() };
        let program = compile_program(text.as_bytes(), "test.mlir", &options).unwrap_or_else(|e| panic!("{e}")).program;
        let bytes: u64 = program.constants.iter().filter_map(|constant| constant.size_bytes()).sum();
        assert!(bytes <= 2 * 32 * 64, "{bytes}");
    }
}

/// Halves of the weights that change places, as gates of recurrent layers do, are put together once.
#[test]
fn parts_of_weights_are_put_together_when_they_are_compiled() {
    let text = format!(
        r#"func.func @main(%x: tensor<8x64xf32>) -> tensor<8x32xf32> {{
  %zero = arith.constant 0.0 : f32
  %stored = arith.constant {} : tensor<32x64xf32>
  %first = tensor.extract_slice %stored[0, 0] [16, 64] [1, 1] : tensor<32x64xf32> to tensor<16x64xf32>
  %second = tensor.extract_slice %stored[16, 0] [16, 64] [1, 1] : tensor<32x64xf32> to tensor<16x64xf32>
  %weights = tensor.concat dim(0) %second, %first : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<32x64xf32>
{PRODUCT}
}}"#,
        f32_weights()
    );
    let expected = evaluated(&text, &rows());
    for device in devices() {
        let (results, stats, _) = run(&text, &[], &device, &rows());
        compare(&from_runtime(&results[0]), &expected[0], Tolerance { absolute: 1e-5, relative: 1e-5 })
            .unwrap_or_else(|e| panic!("{}: {e}", stats.device));
        assert_eq!((stats.counts.dispatches, stats.counts.copies), (1, 0), "{}", stats.device);
        assert!(stats.memory.constants <= 4 * 32 * 64, "{}: {:?}", stats.device, stats.memory);
    }
}
