//! Programs around kernels: loops, branches, calls, slices, scalars and dynamic sizes, on every kind of device; right
//! values, no leak, nothing created once warm.

use crate::backend::from_runtime;
use monopour::program::{CpuTarget, DType, Program};
use monopour::runtime::{Device, DeviceChoice, HostForm, HostTensor, LeakReport, Options, Session, Stats};
use monopour::{CompileOptions, TargetDescription, compile};
use monopour_ir::{Context, Module};
use monopour_testkit::{device, evaluate};
use std::path::Path;
use std::sync::Arc;

/// The CPU, and a GPU where there is one.
pub fn devices() -> Vec<(Device, TargetDescription)> {
    let cpu = Device::open(&DeviceChoice::Cpu).expect("there is always a CPU");
    let mut out = vec![(cpu, TargetDescription::Cpu(CpuTarget::host()))];
    match Device::open(&DeviceChoice::Gpu) {
        Ok(gpu) => {
            let target = TargetDescription::Gpu(gpu.description().expect("a GPU has a description").clone());
            out.push((gpu, target));
        }
        Err(error) => device::skip_without_adapter(&error.to_string()),
    }
    out
}

/// The text of a program of `tests/programs`.
pub fn source(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(format!("{name}.mlir"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

pub fn f32s(shape: &[u64], values: &[f32]) -> HostTensor {
    HostTensor::from_f32(shape.to_vec(), values).expect("as many values as the shape says")
}

/// A scalar, or a tensor of one byte type, by its bytes.
pub fn raw(dtype: DType, shape: &[u64], bytes: &[u8]) -> HostTensor {
    HostTensor::new(dtype, shape.to_vec(), bytes.to_vec()).expect("as many bytes as the type says")
}

pub fn index(value: i64) -> HostTensor {
    raw(DType::Index, &[], &value.to_le_bytes())
}

/// Distinct numbers between -1 and 1.
pub fn ramp(len: usize) -> Vec<f32> {
    (0..len).map(|i| ((i * 37 % 101) as f32 - 50.0) / 51.0).collect()
}

/// The evaluator's results.
pub fn evaluated(text: &str, inputs: &[HostTensor]) -> Vec<monopour_testkit::HostTensor> {
    let inputs: Vec<_> = inputs.iter().map(from_runtime).collect();
    Context::scope(|cx| {
        let module = Module::parse(cx, text.as_bytes(), "test.mlir").unwrap_or_else(|d| panic!("{d}"));
        evaluate(&module, "main", &inputs).unwrap_or_else(|e| panic!("{e}"))
    })
}

/// Compiles and runs several times; returns the results and cost of the last run, and the session's leaks.
pub fn run(
    text: &str,
    donate: &[&str],
    device: &(Device, TargetDescription),
    inputs: &[HostTensor],
) -> (Vec<HostTensor>, Stats, LeakReport) {
    // Buffers rotate from run to run; after some runs every combination has occurred.
    let (mut results, stats, leaks) = run_each(text, donate, device, &vec![inputs.to_vec(); 7]);
    (results.pop().unwrap_or_default(), stats, leaks)
}

/// The results of one run per list of inputs.
pub fn run_each(
    text: &str,
    donate: &[&str],
    (device, target): &(Device, TargetDescription),
    inputs: &[Vec<HostTensor>],
) -> (Vec<Vec<HostTensor>>, Stats, LeakReport) {
    let donate: Vec<String> = donate.iter().map(|d| (*d).to_owned()).collect();
    let compiled = |poison: bool| {
        let (targets, donate) = (vec![target.clone()], donate.clone());
        let options = CompileOptions { targets, verify: true, donate, poison, ..Default::default() };
        compile(text.as_bytes(), "test.mlir", &options).unwrap_or_else(|e| panic!("{e}\n{text}")).program
    };
    let by_form = |program: &Arc<Program>, host: HostForm| {
        let options = Options { threads: 2, host, ..Options::default() };
        let mut session = Session::load(device, program.clone(), &options).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(session.host_form(), host);
        let run = |inputs: &Vec<HostTensor>| session.run(inputs).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let results: Vec<_> = inputs.iter().map(run).collect();
        let stats = session.stats();
        (results, stats, session.close())
    };
    let program = Arc::new(compiled(false));
    let (native, data) = (by_form(&program, HostForm::Native), by_form(&program, HostForm::Data));
    let poisoned = by_form(&Arc::new(compiled(true)), HostForm::Data);
    assert!(native.0 == poisoned.0, "something reads a buffer before its first write or behind its last use\n{text}");
    assert!(native.0 == data.0, "the forms of the host function give other results\n{text}");
    let counts = |(_, stats, leaks): &(_, Stats, LeakReport)| (stats.counts, stats.steady_state, *leaks);
    assert_eq!(counts(&native), counts(&data), "{text}");
    native
}

/// Runs a program of `tests/programs/host` on every device and compares its results.
fn check(name: &str, inputs: &[HostTensor], expected: &[HostTensor]) {
    for device in devices() {
        let (results, stats, leaks) = run(&source(&format!("host/{name}")), &[], &device, inputs);
        compare(name, &results, expected);
        assert!(leaks.is_clean(), "{name} on {}: {leaks:?}", stats.device);
    }
}

pub fn compare(name: &str, results: &[HostTensor], expected: &[HostTensor]) {
    assert_eq!(results.len(), expected.len(), "{name}");
    for (i, (found, expected)) in results.iter().zip(expected).enumerate() {
        assert_eq!((found.dtype(), found.shape()), (expected.dtype(), expected.shape()), "{name}, result {i}");
        for (at, (f, e)) in found.to_f64().into_iter().zip(expected.to_f64()).enumerate() {
            assert!((f - e).abs() <= 1e-5 + 1e-5 * e.abs(), "{name}, result {i}, element {at}: {f}, expected {e}");
        }
    }
}

#[test]
fn loops_carry_fresh_tensors() {
    let t: Vec<f32> = ramp(16).iter().map(|v| v.abs() + 0.1).collect();
    let mut a = t.clone();
    while a[0] < 50.0 {
        a = (0..16).map(|i| a[15 - i] + a[i]).collect();
    }
    check("while_fresh", &[f32s(&[16], &t), f32s(&[], &[50.0])], &[f32s(&[16], &a)]);
}

#[test]
fn loops_exchange_tensors() {
    let (t, u) = (ramp(16), ramp(32)[16..].to_vec());
    let n = 3i32;
    let (mut a, mut b) = (t.clone(), u.clone());
    for _ in 0..n {
        let sum: Vec<f32> = a.iter().zip(&b).map(|(x, y)| x + y).collect();
        (a, b) = (sum, a);
    }
    let count = raw(DType::I32, &[], &n.to_le_bytes());
    check("while_swap", &[f32s(&[16], &t), f32s(&[16], &u), count.clone()], &[f32s(&[16], &b), f32s(&[16], &a), count]);
    let (mut a, mut b) = (t.clone(), t.clone());
    for i in 0..4 {
        let next = if i == 2 { a.iter().map(|x| x * 2.0).collect() } else { b };
        (a, b) = (next, a);
    }
    check("for_if", &[f32s(&[16], &t), index(4), index(2)], &[f32s(&[16], &a), f32s(&[16], &b)]);
}

#[test]
fn slices_move_with_a_loop() {
    let (x, y) = (ramp(64), ramp(16));
    let sums: Vec<f32> = x.iter().enumerate().map(|(i, v)| v + y[i % 16]).collect();
    let total = sums[0] + sums[16] + sums[32] + sums[48];
    check("slices", &[f32s(&[64], &x), f32s(&[16], &y)], &[f32s(&[64], &sums), f32s(&[], &[total])]);
    let t = ramp(8);
    let powers: Vec<f32> = t.iter().map(|v| v.powi(8)).collect();
    check("call", &[f32s(&[8], &t), index(3)], &[f32s(&[8], &powers)]);
    let doubled: Vec<f32> = t.iter().map(|v| v * 2.0).collect();
    check("forall", &[f32s(&[8], &t)], &[f32s(&[8], &doubled)]);
}

#[test]
fn slices_have_steps_and_computed_places() {
    let (x, y) = (ramp(48), ramp(60)[48..].to_vec());
    let (i, j) = (2usize, 1usize);
    let mut inserted = x.clone();
    let mut extracted = vec![];
    for r in 0..3 {
        for c in 0..4 {
            inserted[(i + r) * 8 + j + 2 * c] = y[r * 4 + c];
            extracted.push(x[(j + 2 * r) * 8 + i + c]);
        }
    }
    check(
        "strided_copy",
        &[f32s(&[6, 8], &x), f32s(&[3, 4], &y), index(i as i64), index(j as i64)],
        &[f32s(&[6, 8], &inserted), f32s(&[3, 4], &extracted)],
    );
}

#[test]
fn tensors_are_joined_padded_and_made() {
    let (x, y) = (ramp(12), ramp(20)[12..].to_vec());
    let a: Vec<f32> = x.iter().map(|v| v * 2.0).collect();
    let mut padded = vec![2.5; 42];
    for (at, v) in a.iter().enumerate() {
        padded[(1 + at / 4) * 7 + 2 + at % 4] = *v;
    }
    let sums: Vec<u8> = (0..5i32).flat_map(|i| (0..4i32).flat_map(move |j| (i + j).to_le_bytes())).collect();
    check(
        "concat_pad",
        &[f32s(&[3, 4], &x), f32s(&[2, 4], &y), f32s(&[], &[2.5])],
        &[
            f32s(&[5, 4], &[a, y].concat()),
            f32s(&[6, 7], &padded),
            f32s(&[2], &[2.5; 2]),
            f32s(&[3, 4], &[2.5; 12]),
            raw(DType::I32, &[5, 4], &sums),
        ],
    );
}

#[test]
fn pads_may_take_more_than_there_is() {
    let (x, half) = (f32s(&[4, 3], &ramp(12)), |rows: u64| f32s(&[rows, 3], &vec![0.5; rows as usize * 3]));
    for (low, high, rows) in [(-4, 1, 1), (-9, 7, 2), (3, -4, 3), (2, -5, 1), (-4, 4, 4)] {
        check("pad_takes_all", &[x.clone(), index(low), index(high)], &[half(rows)]);
    }
    let kept = f32s(&[2, 3], &[&ramp(12)[9..], &[0.5; 3]].concat());
    check("pad_takes_all", &[x, index(-3), index(1)], &[kept]);
}

#[test]
fn bytes_and_halves_are_joined_at_any_place() {
    let (x, y) = ([1u8, 250, 3, 4, 5, 6, 7], [8u8, 9, 10, 11, 12]);
    let (one, h) = ([0x00u8, 0x3c], [0x00u8, 0x40, 0x00, 0xbc, 0x00, 0x38]);
    let doubled: Vec<u8> = x.iter().map(|v| v.wrapping_mul(2)).collect();
    check(
        "bytes",
        &[
            raw(DType::I8, &[7], &x),
            raw(DType::I8, &[5], &y),
            raw(DType::I1, &[3], &[1, 0, 1]),
            raw(DType::I1, &[4], &[0, 1, 1, 0]),
            raw(DType::F16, &[3], &h),
        ],
        &[
            raw(DType::I8, &[12], &[&x[..], &y].concat()),
            raw(DType::I1, &[7], &[1, 0, 1, 0, 1, 1, 0]),
            raw(DType::I8, &[7], &doubled),
            raw(DType::F16, &[7], &[&one[..], &h, &one, &one, &one].concat()),
        ],
    );
}

#[test]
fn sizes_are_known_when_a_program_runs() {
    let (m, k, n) = (5usize, 7usize, 9usize);
    let (a, b) = (ramp(m * k), ramp(k * n));
    let product: Vec<f32> = (0..m * n).map(|at| (0..k).map(|i| a[at / n * k + i] * b[i * n + at % n]).sum()).collect();
    check("dyn_matmul", &[f32s(&[5, 7], &a), f32s(&[7, 9], &b)], &[f32s(&[5, 9], &product)]);
    let rows = a.chunks(k).flat_map(|row| {
        let sum: f32 = row.iter().map(|v| v.exp()).sum();
        row.iter().map(move |v| v.exp() / sum)
    });
    check("dyn_softmax", &[f32s(&[5, 7], &a)], &[f32s(&[5, 7], &rows.collect::<Vec<_>>())]);
    let x = ramp(30);
    let squares: Vec<f32> = x.iter().map(|v| 4.0 * v * v).collect();
    let doubled: Vec<f32> = x.iter().map(|v| 2.0 * v).collect();
    check("reshape_dyn", &[f32s(&[5, 6], &x)], &[f32s(&[30], &squares), f32s(&[5, 2, 3], &doubled), index(5)]);
}

#[test]
fn tensors_without_elements_are_values_too() {
    let y = ramp(12);
    check(
        "zero",
        &[f32s(&[0, 4], &[]), f32s(&[3, 4], &y), f32s(&[4, 0], &[])],
        &[f32s(&[0, 4], &[]), f32s(&[3, 4], &y), f32s(&[4, 4], &[2.0; 16])],
    );
}

#[test]
fn inputs_constants_and_numbers_are_results() {
    let x = ramp(5);
    let numbers = [
        raw(DType::I64, &[], &(-7i64).to_le_bytes()),
        raw(DType::F64, &[], &2.5f64.to_le_bytes()),
        raw(DType::I1, &[], &[1]),
        raw(DType::F16, &[], &[0x00, 0x3e]),
    ];
    let tensors = [f32s(&[5], &x), f32s(&[5], &x), f32s(&[5], &[2.0; 5])];
    check("result_input", &[&[f32s(&[5], &x)], &numbers[..]].concat(), &[&tensors[..], &numbers].concat());
    let y = ramp(9);
    let (sum, product): (Vec<f32>, Vec<f32>) = y.iter().map(|v| (v * 2.0, v * 2.0 * v)).unzip();
    let truth = raw(DType::I1, &[], &[1]);
    check("select", &[f32s(&[9], &y), f32s(&[9], &y), truth], &[f32s(&[9], &sum), f32s(&[9], &product)]);
    let places: Vec<u8> = [0i64, 8, 3, 3, 1].iter().flat_map(|i| i.to_le_bytes()).collect();
    let found = [y[0], y[8], y[3], y[3], y[1]];
    check("gather", &[f32s(&[9], &y), raw(DType::Index, &[5], &places)], &[f32s(&[5], &found)]);
}

#[test]
fn an_index_outside_of_its_tensor_ends_the_run() {
    let text = source("copies/q08_reorder_read");
    for (device, target) in devices() {
        let options = CompileOptions { targets: vec![target], ..Default::default() };
        let program = compile(text.as_bytes(), "test.mlir", &options).expect("compiles").program;
        let mut session = Session::load(&device, Arc::new(program), &Options::default()).expect("loads");
        for place in [1024, -1] {
            let error = session.run(&[f32s(&[1024], &[0.0; 1024]), f32s(&[], &[1.0]), index(place)]).unwrap_err();
            assert_eq!(error.code(), "R0019", "{error}");
        }
        let wrong = session.run(&[f32s(&[1023], &[0.0; 1023]), f32s(&[], &[1.0]), index(0)]).unwrap_err();
        assert_eq!(wrong.code(), "R0008", "{wrong}");
        assert!(session.close().is_clean());
    }
}
