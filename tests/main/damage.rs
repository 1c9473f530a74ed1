//! Artifacts that were changed, of which no one vouched for: loading and running them ends with results or with a code, in
//! bounded time, and leaves the device whole.

use crate::bad::{LIMIT, MEMORY_BYTES, high_water, run};
use monopour::program::{CpuTarget, DYNAMIC, GpuDescription, Kernel, Trust};
use monopour::runtime::{Device, DeviceChoice, HostTensor, Options, Session};
use monopour::{CompileOptions, Program, TargetDescription};
use monopour_testkit::device::{full_is_asked_for, skip_without_adapter};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Start of the header in a file, and of what its hash covers.
const HEADER_AT: usize = 64;
const HASHED_FROM: usize = 44;
/// Bytes of inputs above which a changed signature is loaded, not run.
const MOST_INPUT_BYTES: u64 = 1 << 20;

/// A loop of dispatches with a weight, a transient and a division on the host: kernels without loops, so that none of their
/// changes runs for ever.
fn source() -> String {
    let weights = (0..64).map(|i| format!("{i}.5")).collect::<Vec<_>>().join(", ");
    format!(
        "func.func @main(%a: tensor<64xf32>, %n: index, %s: f32) -> (tensor<64xf32>, index) {{
  %w = arith.constant dense<[{weights}]> : tensor<64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  %q = arith.divsi %c100, %n : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a) -> (tensor<64xf32>) {{
    %e = tensor.empty() : tensor<64xf32>
    %y = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
        iterator_types = [\"parallel\"]}}
        ins(%x, %w : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {{
    ^bb0(%p: f32, %t: f32, %o: f32):
      %m = arith.mulf %p, %s : f32
      %z = arith.addf %m, %t : f32
      linalg.yield %z : f32
    }} -> tensor<64xf32>
    scf.yield %y : tensor<64xf32>
  }}
  return %r, %q : tensor<64xf32>, index
}}
"
    )
}

fn compiled() -> Program {
    let targets = vec![TargetDescription::Gpu(GpuDescription::portable()), TargetDescription::Cpu(CpuTarget::host())];
    let options = CompileOptions { targets, ..CompileOptions::default() };
    monopour::compile(source().as_bytes(), "m.mlir", &options).unwrap_or_else(|d| panic!("{d}")).program
}

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(0x9e37_79b9_7f4a_7c15);
        ((self.0 >> 33) as usize) % end.max(1)
    }

    /// Changes one byte.
    fn change(&mut self, bytes: &mut [u8]) {
        let at = self.below(bytes.len());
        bytes[at] = match self.below(4) {
            0 => bytes[at] ^ (1 << self.below(8)),
            1 => bytes[at].wrapping_add(1),
            2 => [0, 1, 0x7f, 0x80, 0xff][self.below(5)],
            _ => self.below(256) as u8,
        };
    }
}

/// What is changed.
const CLASSES: [&str; 7] = ["hash", "metadata", "lengths", "wgsl", "constants", "spirv", "native code"];

/// An artifact with one change of its class; its hash is right, but for that of the class `hash`.
fn changed(class: &str, whole: &Program, random: &mut Random) -> Vec<u8> {
    let mut program = whole.clone();
    if matches!(class, "metadata" | "lengths") {
        // Nothing but metadata, host code and WGSL.
        for variant in &mut program.variants {
            variant.host = Default::default();
            kernels(variant).for_each(|kernel| kernel.spirv.clear());
        }
    }
    let variant = &mut program.variants[if class == "native code" { random.below(2) } else { 0 }];
    match class {
        "wgsl" => {
            let kernel = kernels(variant).next().expect("the program has a kernel");
            let mut text = kernel.wgsl.clone().into_bytes();
            random.change(&mut text);
            kernel.wgsl = String::from_utf8_lossy(&text).into_owned();
        }
        "constants" => {
            let mut data = program.constants[0].data.bytes().to_vec();
            random.change(&mut data);
            program.constants[0].data = data.into();
        }
        "spirv" => {
            let kernel = kernels(variant).next().expect("the program has a kernel");
            let at = random.below(kernel.spirv.len());
            kernel.spirv[at] ^= 1 << random.below(32);
        }
        // Of the host function on the GPU, of the kernels too on the CPU.
        "native code" => {
            let at = random.below(variant.host.objects.len());
            random.change(&mut variant.host.objects[at]);
        }
        _ => {}
    }
    let mut bytes = program.encode().expect("the changes keep it consistent");
    let header_len = u64::from_le_bytes(bytes[56..64].try_into().expect("8 bytes")) as usize;
    match class {
        "hash" => {
            random.change(&mut bytes[12..]);
            return bytes;
        }
        "metadata" => random.change(&mut bytes[HEADER_AT..HEADER_AT + header_len]),
        "lengths" => random.change(&mut bytes[48..64]),
        _ => {}
    }
    let hash = *blake3::hash(&bytes[HASHED_FROM..]).as_bytes();
    bytes[12..HASHED_FROM].copy_from_slice(&hash);
    bytes
}

fn kernels(variant: &mut monopour::program::Variant) -> impl Iterator<Item = &mut monopour::program::GpuKernel> {
    variant.kernels.iter_mut().filter_map(|kernel| if let Kernel::Gpu(kernel) = kernel { Some(kernel) } else { None })
}

/// Inputs for a signature; `None` if they would be large.
fn inputs(program: &Program) -> Option<Vec<HostTensor>> {
    let each = program.signature.inputs.iter().map(|input| {
        let shape: Vec<u64> = input.shape.iter().map(|size| if *size == DYNAMIC { 4 } else { *size }).collect();
        let bytes = shape.iter().try_fold(input.dtype.size_bytes(), |bytes, size| bytes.checked_mul(*size));
        let bytes = bytes.filter(|bytes| *bytes <= MOST_INPUT_BYTES)?;
        let mut data = vec![0; bytes as usize];
        data.iter_mut().step_by(8).for_each(|byte| *byte = 3);
        HostTensor::new(input.dtype, shape, data).ok()
    });
    each.collect()
}

/// The code of an artifact's error, or `ok`.
fn outcome(device: &Device, bytes: &[u8]) -> &'static str {
    let program = match Program::decode(bytes) {
        Ok(program) => Arc::new(program),
        Err(error) => return error.code(),
    };
    let options = Options { threads: 1, memory_limit: Some(64 << 20), host_steps: Some(1 << 20), ..Options::default() };
    let mut session = match Session::load(device, program.clone(), &options) {
        Ok(session) => session,
        Err(error) => return error.code(),
    };
    let Some(inputs) = inputs(&program) else { return "ok" };
    session.run(&inputs).map_or_else(|error| error.code(), |_| "ok")
}

fn gpu() -> Option<Device> {
    Device::open(&DeviceChoice::Gpu).map_err(|error| skip_without_adapter(&error.to_string())).ok()
}

/// Of every class, on both devices; `MONOPOUR_TEST_FULL=1` tries 10,000 of each.
#[test]
fn changed_artifacts_end_with_results_or_a_code() {
    let program = compiled();
    let whole = program.encode().unwrap();
    let count = if full_is_asked_for() { 10_000 } else { 200 };
    let mut devices = vec![Device::open(&DeviceChoice::Cpu).unwrap()];
    devices.extend(gpu());
    let mut longest = Duration::ZERO;
    for device in &devices {
        let intact = outcome(device, &whole);
        let is_gpu = device.description().is_some();
        assert_eq!(intact, if is_gpu { "ok" } else { "R0020" }, "kernels of a CPU are native code");
        for (seed, class) in CLASSES.iter().enumerate() {
            let mut random = Random(seed as u64 + 1);
            let mut codes: BTreeMap<&str, u32> = BTreeMap::new();
            for _ in 0..count {
                let bytes = changed(class, &program, &mut random);
                let start = Instant::now();
                *codes.entry(outcome(device, &bytes)).or_default() += 1;
                longest = start.elapsed().max(longest);
                assert!(longest < LIMIT, "{class}: {longest:?}");
            }
            println!("{} {class}: {codes:?}", device.kind_name());
            assert!(!codes.contains_key("R0012"), "{class} loses the device");
            expect_codes(class, &codes, count, intact);
        }
        assert_eq!(outcome(device, &whole), intact, "the device is as it was");
    }
    // Of all tests of this process, so that it is no bound.
    println!("at most {longest:?} each; {} bytes of this process", high_water(std::process::id()));
}

/// What the changes of a class must come to, at least; `intact`: what the program without one comes to on this device.
fn expect_codes(class: &str, codes: &BTreeMap<&str, u32>, count: u32, intact: &str) {
    let of = |code: &str| codes.get(code).copied().unwrap_or(0);
    // Without its native code a variant for CPUs is none.
    let unharmed = if intact == "ok" { of("ok") } else { of(intact) + of("R0004") };
    match class {
        // Few changes leave the byte as it is.
        "hash" => assert!(of("P0003") + of("P0004") + of("P0005") + of(intact) == count && of("P0004") > count / 2),
        "metadata" => assert!(of("P0005") + of("P0006") > count / 10 && unharmed > 0),
        "lengths" => assert!(of("P0003") > 0 && of("P0005") > 0),
        "wgsl" if intact == "ok" => assert!(of("R0021") > count / 4 && of("ok") > 0),
        "wgsl" | "constants" | "spirv" | "native code" => assert_eq!(of(intact), count),
        _ => unreachable!("there is no class {class}"),
    }
}

/// As a process, as a user starts it.
#[test]
fn changed_artifacts_end_the_command_with_status_0_or_1() {
    if gpu().is_none() {
        return;
    }
    let program = compiled();
    let folder = std::env::temp_dir().join(format!("monopour-damage-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let count = if full_is_asked_for() { 50 } else { 4 };
    let mut most = (Duration::ZERO, 0);
    for (seed, class) in CLASSES.iter().enumerate() {
        let mut random = Random(seed as u64 + 100);
        for number in 0..count {
            std::fs::write(folder.join("m.mpr"), changed(class, &program, &mut random)).unwrap();
            for device in ["gpu", "cpu"] {
                let line = format!("run m.mpr --untrusted --random 1 --device {device} --memory-limit 67108864");
                let start = Instant::now();
                let (status, text, memory) = run(&folder, &line.split(' ').map(OsString::from).collect::<Vec<_>>());
                let took = start.elapsed();
                let coded = text.contains("error[") && text.contains("help: ");
                let good = status == Some(0) || (status == Some(1) && coded);
                assert!(good && !text.contains("panicked"), "{class} {number} on {device}: {status:?}\n{text}");
                assert!(
                    took < LIMIT && memory < MEMORY_BYTES,
                    "{class} {number} on {device}: {took:?}, {memory} bytes"
                );
                most = (took.max(most.0), memory.max(most.1));
            }
        }
    }
    println!("at most {:?} and {} bytes", most.0, most.1);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Trust is what decides between the forms on the command line's way, too.
#[test]
fn what_is_compiled_here_is_trusted_and_a_file_is_not() {
    let program = compiled();
    assert!(program.is_trusted());
    let mut decoded = Program::decode(&program.encode().unwrap()).unwrap();
    assert!(!decoded.is_trusted() && decoded == program);
    decoded.trust = program.trust;
    assert!(decoded.is_trusted());
    decoded.trust = Trust::default();
    assert!(!decoded.is_trusted());
}
