//! Models of so many dispatches that their host function is compiled in parts.

use crate::host::{devices, f32s, run};
use monopour::{CompileOptions, TargetDescription, compile};
use std::collections::BTreeMap;
use std::process::Command;

/// Layers of the model: about 2,900 calls of the runtime.
const LAYERS: usize = 721;

/// `%x` times `%w`, `LAYERS` times; `%0` is read again at the end. `%n`, whose size only the run knows, is doubled there.
fn text() -> String {
    let mut body = String::new();
    let mut current = "%x".to_owned();
    for i in 0..LAYERS {
        body += &format!(
            "  %{i} = linalg.matmul ins({current}, %w : tensor<2x4xf32>, tensor<4x4xf32>) outs(%zeros : tensor<2x4xf32>) -> tensor<2x4xf32>\n"
        );
        current = format!("%{i}");
    }
    format!(
        "func.func @main(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>, %n: tensor<?xf32>) -> (tensor<2x4xf32>, tensor<?xf32>) {{
  %zero = arith.constant 0.0 : f32
  %first = arith.constant 0 : index
  %size = tensor.dim %n, %first : tensor<?xf32>
  %e = tensor.empty() : tensor<2x4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
{body}  %sum = linalg.add ins({current}, %0 : tensor<2x4xf32>, tensor<2x4xf32>) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
  %d = tensor.empty(%size) : tensor<?xf32>
  %twice = linalg.add ins(%n, %n : tensor<?xf32>, tensor<?xf32>) outs(%d : tensor<?xf32>) -> tensor<?xf32>
  return %sum, %twice : tensor<2x4xf32>, tensor<?xf32>
}}
"
    )
}

/// Whether the host code for a target has functions beside `@main`.
fn is_in_parts(target: &TargetDescription) -> bool {
    let options = CompileOptions { targets: vec![target.clone()], ..Default::default() };
    let program = compile(text().as_bytes(), "test.mlir", &options).unwrap_or_else(|d| panic!("{d}")).program;
    let name = b"main.part1";
    program.variants[0].host.objects.iter().any(|object| object.windows(name.len()).any(|bytes| bytes == name))
}

/// `%w` moves each column to the right, so that the model moves those of `%x` by `LAYERS` of 4.
#[test]
fn values_are_carried_through_all_parts() {
    let x: Vec<f32> = (1..=8_u8).map(f32::from).collect();
    let w: Vec<f32> = (0..16).map(|at| f32::from(u8::from((at / 4 + 1) % 4 == at % 4))).collect();
    let moved = |by: usize| (0..8).map(|at| x[at / 4 * 4 + (at % 4 + 4 - by % 4) % 4]).collect::<Vec<_>>();
    let sum: Vec<f32> = moved(LAYERS).iter().zip(moved(1)).map(|(a, b)| a + b).collect();
    let inputs = [f32s(&[2, 4], &x), f32s(&[4, 4], &w), f32s(&[3], &[1.0, -2.0, 0.5])];
    for device in devices() {
        assert!(is_in_parts(&device.1));
        let (results, stats, leaks) = run(&text(), &[], &device, &inputs);
        assert_eq!(results, [f32s(&[2, 4], &sum), f32s(&[3], &[2.0, -4.0, 1.0])]);
        assert!(stats.counts.dispatches >= LAYERS as u64 && leaks.is_clean(), "{stats:?} {leaks:?}");
    }
}

/// The CPU time of each phase in a process of its own, in ms; the least of two.
fn phases(target: &str, products: usize) -> BTreeMap<String, f64> {
    const T: &str = "tensor<16x16xf32>";
    let mut body = String::new();
    for i in 0..products {
        body += &format!(
            "  %e{i} = tensor.empty() : {T}\n  %f{i} = linalg.fill ins(%zero : f32) outs(%e{i} : {T}) -> {T}\n  %{} = linalg.matmul ins(%{i}, %w : {T}, {T}) outs(%f{i} : {T}) -> {T}\n",
            i + 1
        );
    }
    let text = format!(
        "func.func @main(%x: {T}, %w: {T}) -> {T} {{\n  %zero = arith.constant 0.0 : f32\n  %0 = linalg.add ins(%x, %w : {T}, {T}) outs(%x : {T}) -> {T}\n{body}  return %{products} : {T}\n}}\n"
    );
    let folder = std::env::temp_dir().join(format!("monopour-phases-{products}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("m.mlir"), text).unwrap();
    let mut least: BTreeMap<String, f64> = BTreeMap::new();
    for _ in 0..2 {
        let args = ["compile", "m.mlir", "-o", "m.mpr", "--time-phases", "--target", target];
        let output = Command::new(env!("CARGO_BIN_EXE_monopour")).args(args).current_dir(&folder).output().unwrap();
        let table = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{table}");
        for line in table.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [phase, _, _, "ms", cpu_ms, "ms", "cpu"] = words[..] else { continue };
            let found = least.entry(phase.to_owned()).or_insert(f64::INFINITY);
            *found = found.min(cpu_ms.parse().unwrap());
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
    least
}

/// A tensor that all dispatches read makes no phase slower than the program is longer: eight times as many products take less
/// than 20 times as long, where a look at all of its readers per dispatch would take 64.
#[test]
fn phases_grow_with_the_readers_of_a_tensor() {
    for target in ["cpu:x86-64-v3", "gpu:portable"] {
        let (few, many) = (phases(target, 100), phases(target, 800));
        assert!(few.len() > 8 && few.len() == many.len(), "{few:?}");
        for (phase, ms) in &many {
            // What takes no time varies.
            assert!(*ms <= 20.0 * few[phase].max(2.0), "{target}, {phase}: {} ms for 100, {ms} for 800", few[phase]);
        }
    }
}
