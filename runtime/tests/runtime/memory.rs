//! Memory of runs of many sizes.

use std::sync::Arc;

use monopour_contract::RuntimeFunction as F;
use monopour_program::host::{HostType, ScalarOp};
use monopour_program::*;
use monopour_runtime::{Device, HostForm, HostTensor, Options, Session};

use crate::counting::{heap_bytes, rust_bytes};
use crate::support::*;
use crate::trust::trusted;

/// Elements of a row.
const ROW: u64 = 64;
const MOST_ROWS: u64 = 4096;
const ADD: &str = "
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read_write> b: array<f32>;
@compute @workgroup_size(64)
fn add(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) id: vec3<u32>) {
    let at = 64u * group.x + id.x;
    b[at] = a[at] + 1.0;
}
";

/// `result0 = arg0 + 2` of rows whose number the run knows, through an allocation of their size.
fn host() -> HostCode {
    let mut code = Code::constants(&[0, 4 * ROW, 1]);
    let x = code.call(0, F::Input, &[0]);
    let rows = code.call(0, F::InputDim, &[0, 0]);
    let bytes = code.scalar(0, ScalarOp::MulI, &[rows, 1], HostType::WORD);
    let (t, y) = (code.call(0, F::Alloc, &[bytes]), code.call(0, F::Alloc, &[bytes]));
    for (from, to) in [(x, t), (t, y)] {
        code.call(0, F::Arg, &[from, 0, bytes]);
        code.call(0, F::Arg, &[to, 0, bytes]);
        code.call(0, F::Dispatch, &[0, rows, 2, 2]);
    }
    code.call(0, F::Free, &[t]);
    code.call(0, F::ResultDim, &[0, 0, rows]);
    code.call(0, F::Result, &[0, y]);
    code.0
}

fn program_of(mut variant: Variant) -> Program {
    variant.host_data = host();
    let mut program = program(&[1], &[1], variant);
    let rows = |name: &str| TensorDesc::tensor(name, DType::F32, vec![DYNAMIC, ROW]);
    program.signature.inputs = vec![rows("x")];
    program.signature.results = vec![rows("y")];
    program
}

fn check_sizes(device: &Device, program: &Arc<Program>) {
    let options = Options { threads: 1, host: HostForm::Data, ..Options::default() };
    let run = |session: &mut Session, rows: u64, from: f32| {
        let x: Vec<f32> = (0..rows * ROW).map(|i| from + (i % 1000) as f32).collect();
        let y = session.run(&[HostTensor::from_f32(vec![rows, ROW], &x).unwrap()]).unwrap();
        assert_eq!(y[0].shape(), [rows, ROW]);
        assert!(y[0].to_f32().unwrap().iter().zip(&x).all(|(y, x)| *y == x + 2.0), "{rows} rows");
    };
    let mut session = Session::load(device, program.clone(), &options).unwrap();
    run(&mut session, MOST_ROWS, 0.0);
    let most = session.stats().peak_device_bytes;
    // An input, two allocations and what a readback goes through: staging buffers for uploads are larger than all of them.
    assert!(most <= 4 * 4 * ROW * MOST_ROWS, "{most} bytes for tensors of {}", 4 * ROW * MOST_ROWS);
    assert!(session.close().is_clean());
    let is_full = std::env::var_os("MONOPOUR_TEST_FULL").is_some_and(|v| v == "1");
    let mut session = Session::load(device, program.clone(), &options).unwrap();
    let (mut random, mut most_resident, mut by_thousand, mut ours) = (1u64, 0, Vec::new(), Vec::new());
    for turn in 0..if is_full { 10_000 } else { 200 } {
        random = random.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(0x9e37_79b9_7f4a_7c15);
        run(&mut session, (random >> 33) % MOST_ROWS + 1, turn as f32);
        most_resident = resident_bytes().max(most_resident);
        if turn % 1000 == 999 {
            by_thousand.push(std::mem::take(&mut most_resident));
            ours.push(rust_bytes());
            println!(
                "{} runs: bytes of Rust {}, of the heap in use and kept {:?}",
                turn + 1,
                rust_bytes(),
                heap_bytes()
            );
        }
    }
    let peak = session.stats().peak_device_bytes;
    println!(
        "{peak} bytes at most, {most} for the largest run; most resident bytes of each 1,000 runs {by_thousand:?}"
    );
    // The pool holds up to twice the largest need, more or less from run to run; beside it nothing grows.
    if let [_, second, .., last] = by_thousand[..] {
        assert!(last <= second + 2 * most, "resident bytes grow: {by_thousand:?}");
    }
    // What Rust code holds does not: the rest is the driver's. The bound is for the tests beside this one.
    if let [_, second, .., last] = ours[..] {
        assert!(last <= second + (8 << 20), "bytes of Rust grow: {ours:?}");
    }
    assert!(peak <= 2 * most, "{peak} bytes at most, {most} for the largest run");
    // After many small runs the memory of the large ones is given back, and what they were bound with.
    (0..1100).for_each(|_| run(&mut session, 1, 0.0));
    let bound = device.internal_counters().map_or(0, |counters| counters.bind_groups);
    assert!(bound <= 16, "{bound} bind groups for two dispatches of equal size");
    let small = session.model().used_bytes();
    assert!(small <= 64 << 10, "{small} bytes for a row");
    assert!(session.close().is_clean());
}

/// Bytes of this process in memory, where the system says so.
pub fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    pages.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}

#[test]
fn runs_of_many_sizes_share_memory_on_a_gpu() {
    let Some(device) = gpu() else { return };
    let mut variant = gpu_variant(vec![], vec![gpu_kernel("add", ADD, &[Access::Read, Access::Write])]);
    variant.host = NativeCode::default();
    check_sizes(&device, &Arc::new(program_of(variant)));
}

#[test]
fn runs_of_many_sizes_share_memory_on_the_cpu() {
    let add = "void add(void *const *args, const i64 *ids) {
        const float *a = args[0]; float *b = args[1];
        for (i64 i = 64 * ids[0]; i < 64 * ids[0] + 64; ++i) b[i] = a[i] + 1.0f;
    }
    void entry(i64 cx) {}";
    let Some(object) = compile_c(add, &["-fPIC"]) else { return };
    let mut variant = cpu_variant(object, &[("add", 2, 1)]);
    variant.host_data = host();
    check_sizes(&cpu(), &trusted(program_of(variant)));
}
