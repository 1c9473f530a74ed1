//! The GPU target: values, one submit, nothing created once warm, faults as errors.

use monopour_program::*;
use monopour_runtime::{Device, Error, HostTensor, Options, Session};

use crate::support::*;
use crate::trust::trusted;

const ADD: &str = "
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;
@compute @workgroup_size(64)
fn add(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&c)) { c[id.x] = a[id.x] + b[id.x]; }
}
";

const DOUBLE: &str = "
@group(0) @binding(0) var<storage, read_write> a: array<f32>;
@group(0) @binding(1) var<storage, read_write> b: array<f32>;
@compute @workgroup_size(64)
fn double(@builtin(global_invocation_id) id: vec3<u32>) { b[id.x] = a[id.x] * 2.0; }
";

/// `result0 = 2 * (arg0 + arg1)`, through the arena, and in place at the end.
const HOST: &str = "
void entry(i64 cx) {
  i64 t = arena(2048), r = alloc(1024);
  arg(input(0), 0, 1024); arg(input(1), 0, 1024); arg(r, 0, 1024); dispatch(0, 4, 1, 1);
  arg(r, 0, 1024); arg(t, 1024, 1024); dispatch(1, 4, 1, 1);
  arg(t, 1024, 1024); arg(t, 0, 1024); dispatch(1, 4, 1, 1);
  arg(t, 0, 1024); arg(t, 0, 1024); dispatch(1, 4, 1, 1);
  arg(t, 0, 1024); arg(r, 0, 1024); dispatch(1, 4, 1, 1);
  result(0, r);
}
";

fn kernels() -> Vec<Kernel> {
    use Access::{Read, ReadWrite, Write};
    vec![gpu_kernel("add", ADD, &[Read, Read, Write]), gpu_kernel("double", DOUBLE, &[ReadWrite, ReadWrite])]
}

fn f32s(values: &[f32]) -> HostTensor {
    HostTensor::from_f32(vec![values.len() as u64], values).unwrap()
}

fn inputs() -> [HostTensor; 2] {
    let ramp: Vec<f32> = (0..256).map(|i| i as f32).collect();
    [f32s(&ramp), f32s(&[0.5; 256])]
}

fn expected() -> Vec<f32> {
    (0..256).map(|i| 16.0 * (i as f32 + 0.5)).collect()
}

fn load(device: &Device, program: Program, options: &Options) -> Session {
    Session::load(device, trusted(program), options).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn values_counts_and_a_warm_session() {
    let (Some(device), Some(object)) = (gpu(), compile_c(HOST, &["-fPIC"])) else { return };
    let before = device.internal_counters().unwrap();
    let options = Options { timing: true, ..Options::default() };
    let mut session = load(&device, program(&[256, 256], &[256], gpu_variant(object, kernels())), &options);
    let on_device = session.upload(&inputs()).unwrap();
    for _ in 0..4 {
        let outputs = session.execute(&on_device).unwrap();
        assert_eq!(session.readback(&outputs).unwrap()[0].to_f32().unwrap(), expected());
    }
    let warm = device.internal_counters().unwrap();
    let outputs = session.execute(&on_device).unwrap();
    let stats = session.stats();
    assert_eq!((stats.counts.dispatches, stats.counts.submits, stats.counts.copies), (5, 1, 0));
    assert_eq!((stats.counts.allocations, stats.counts.transfers, stats.runs), (1, 0, 4));
    let steady = stats.steady_state;
    assert_eq!((steady.buffers_created, steady.bind_groups_created, steady.pipelines_created), (0, 0, 0));
    // wgpu's own counters agree: a warm run leaves no new object.
    assert_eq!(device.internal_counters().unwrap(), warm);
    assert_eq!(warm.compute_pipelines - before.compute_pipelines, 2);
    assert_eq!(warm.bind_groups - before.bind_groups, 5);
    if device.description().unwrap().has(GpuFeature::Timestamps) {
        let gpu_ms = stats.gpu_ms.unwrap();
        assert!(gpu_ms.min > 0.0 && gpu_ms.min <= stats.run_ms.unwrap().max, "{stats:?}");
    }
    let json = serde_json::to_value(&stats).unwrap();
    for field in ["device", "adapter", "threads", "load_ms", "run_ms", "first_run_ms", "upload_bytes", "dispatches"] {
        assert!(!json[field].is_null(), "{field} in {json}");
    }
    drop((on_device, outputs));
    assert!(session.close().is_clean());
    assert_eq!(device.internal_counters().unwrap().bind_groups, before.bind_groups);
}

#[test]
fn wgsl_and_spirv_give_the_same() {
    let (Some(device), Some(object)) = (gpu(), compile_c(HOST, &["-fPIC"])) else { return };
    let mut kernels = kernels();
    for kernel in &mut kernels {
        let Kernel::Gpu(kernel) = kernel else { unreachable!() };
        kernel.spirv.clear();
    }
    let mut session = load(&device, program(&[256, 256], &[256], gpu_variant(object, kernels)), &Options::default());
    assert_eq!(session.run(&inputs()).unwrap()[0].to_f32().unwrap(), expected());
}

#[test]
fn outputs_that_are_kept_are_not_overwritten() {
    let (Some(device), Some(object)) = (gpu(), compile_c(HOST, &["-fPIC"])) else { return };
    let mut session = load(&device, program(&[256, 256], &[256], gpu_variant(object, kernels())), &Options::default());
    let first = session.upload(&inputs()).unwrap();
    let zeros = session.upload(&[f32s(&[0.0; 256]), f32s(&[0.0; 256])]).unwrap();
    let kept = session.execute(&first).unwrap();
    let other = session.execute(&zeros).unwrap();
    assert_eq!(session.readback(&kept).unwrap()[0].to_f32().unwrap(), expected());
    assert_eq!(session.readback(&other).unwrap()[0].to_f32().unwrap(), [0.0; 256]);
    // A result is a valid input.
    let chained = session.execute(&[kept, other].into_iter().flatten().collect::<Vec<_>>()).unwrap();
    let values = session.readback(&chained).unwrap()[0].to_f32().unwrap();
    assert_eq!(values[1], 16.0 * expected()[1]);
}

#[test]
fn copies_fills_and_constants() {
    let source = "
    void entry(i64 cx) {
      i64 t = arena(1024), r = alloc(64);
      fill(t, 0, 64, 0x3f800000);
      fill(t, 256, 64, 0);
      copy(t, 0, t, 256 + 32, 32);
      copy(constant(0), 0, t, 256, 12);
      copy(t, 256 + 16, t, 256 + 32, 32);
      copy(t, 256, r, 0, 64);
      result(0, r);
    }";
    let (Some(device), Some(object)) = (gpu(), compile_c(source, &["-fPIC"])) else { return };
    let mut program = program(&[], &[16], gpu_variant(object, vec![]));
    let data: Vec<u8> = [7f32, 8.0, 9.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    program.constants.push(Constant { name: "w".into(), dtype: DType::F32, shape: vec![3], data: data.into() });
    let mut session = load(&device, program, &Options::default());
    let found = session.run(&[]).unwrap()[0].to_f32().unwrap();
    assert_eq!(found, [[7.0, 8.0, 9.0, 0.0], [0.0; 4], [0.0; 4], [1.0; 4]].concat());
    let counts = session.stats().counts;
    // Within a buffer a kernel copies; what overlaps is copied twice.
    assert_eq!((counts.dispatches, counts.copies, counts.copied_bytes), (2, 5, 32 + 12 + 2 * 32 + 64));
    assert!(session.close().is_clean());
}

/// The error of running `body` as host code with both kernels.
fn error_of(body: &str) -> Option<Error> {
    let (Some(device), Some(object)) = (gpu(), compile_c(&format!("void entry(i64 cx) {{ {body} }}"), &["-fPIC"]))
    else {
        return None;
    };
    let program = program(&[256, 256], &[256], gpu_variant(object, kernels()));
    let mut session = load(&device, program, &Options::default());
    let error = session.run(&inputs()).unwrap_err();
    // A failed run leaves the session usable and without leaks.
    assert_eq!(session.run(&inputs()).unwrap_err(), error);
    assert!(session.close().is_clean());
    Some(error)
}

fn check_error(body: &str, code: &str, expected: &str) {
    if let Some(error) = error_of(body) {
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn conflicting_access_is_an_error_in_the_programs_words() {
    let written = "arg(input(0), 0, 1024); arg(input(1), 0, 1024); arg(input(0), 0, 1024); dispatch(0, 4, 1, 1);";
    check_error(written, "R0014", "kernel `add`: argument 2 is written and is an input that was not donated");
    let unaligned = "i64 t = arena(2048); arg(t, 4, 1024); arg(t, 1024, 1024); dispatch(1, 4, 1, 1);";
    check_error(unaligned, "R0014", "argument 0 begins at byte 4, which is not aligned");
}

#[test]
fn one_buffer_may_be_read_and_written_by_one_dispatch() {
    let body = "i64 t = alloc(2048); copy(input(0), 0, t, 0, 1024);
        arg(t, 0, 1024); arg(input(1), 0, 1024); arg(t, 1024, 1024); dispatch(0, 4, 1, 1);
        i64 r = alloc(1024); copy(t, 1024, r, 0, 1024); release(t); result(0, r);";
    let (Some(device), Some(object)) = (gpu(), compile_c(&format!("void entry(i64 cx) {{ {body} }}"), &["-fPIC"]))
    else {
        return;
    };
    let program = program(&[256, 256], &[256], gpu_variant(object, kernels()));
    let mut session = load(&device, program, &Options::default());
    let inputs = inputs();
    let sum: Vec<f32> =
        inputs[0].to_f32().unwrap().iter().zip(inputs[1].to_f32().unwrap()).map(|(a, b)| a + b).collect();
    for _ in 0..2 {
        assert_eq!(session.run(&inputs).unwrap()[0].to_f32().unwrap(), sum);
    }
    assert_eq!(session.stats().steady_state.pipelines_created, 0);
    assert!(session.close().is_clean());
}

/// Two kernels over the same arguments have a bind group each: the second binds a buffer twice, once for writing.
#[test]
fn kernels_over_the_same_arguments_do_not_mix() {
    use Access::{Read, ReadWrite, Write};
    let more = ADD
        .replace("fn add", "fn more")
        .replace("read> b", "read_write> b")
        .replace("c[id.x] = a[id.x] + b[id.x];", "let s = a[id.x] + b[id.x]; b[id.x] = s; c[id.x] = s + 1.0;");
    let kernels =
        vec![gpu_kernel("add", ADD, &[Read, Read, Write]), gpu_kernel("more", &more, &[Read, ReadWrite, Write])];
    let body = "i64 t = alloc(1024), r = alloc(1024), s = alloc(1024); copy(input(0), 0, t, 0, 1024);
        arg(t, 0, 1024); arg(t, 0, 1024); arg(r, 0, 1024); dispatch(0, 4, 1, 1);
        arg(t, 0, 1024); arg(t, 0, 1024); arg(r, 0, 1024); dispatch(1, 4, 1, 1);
        arg(r, 0, 1024); arg(t, 0, 1024); arg(s, 0, 1024); dispatch(1, 4, 1, 1);
        release(r); release(t); result(0, s);";
    let (Some(device), Some(object)) = (gpu(), compile_c(&format!("void entry(i64 cx) {{ {body} }}"), &["-fPIC"]))
    else {
        return;
    };
    let mut session = load(&device, program(&[256], &[256], gpu_variant(object, kernels)), &Options::default());
    let input: Vec<f32> = (0..256).map(|i| i as f32).collect();
    for _ in 0..2 {
        // The second dispatch makes t 2 * t and r 2 * t + 1, the third adds them.
        let expected: Vec<f32> = input.iter().map(|t| 4.0 * t + 2.0).collect();
        assert_eq!(session.run(&[f32s(&input)]).unwrap()[0].to_f32().unwrap(), expected);
    }
    assert!(session.close().is_clean());
}

/// A scalar is written by a pipeline of the runtime's own: its bind group is not that of a kernel over the same bytes.
#[test]
fn a_scalar_is_written_where_a_kernel_reads() {
    let wgsl = "
@group(0) @binding(0) var<storage, read> a: array<f32>;
@compute @workgroup_size(64)
fn look(@builtin(global_invocation_id) id: vec3<u32>) { if a[id.x] == 1.0 { return; } }
";
    let kernels = vec![gpu_kernel("look", wgsl, &[Access::Read])];
    let body = "i64 t = alloc(512); copy(input(0), 0, t, 0, 512);
        arg(t, 0, 512); dispatch(0, 2, 1, 1); write(t, 8, 4, 0x40a00000); result(0, t);";
    let (Some(device), Some(object)) = (gpu(), compile_c(&format!("void entry(i64 cx) {{ {body} }}"), &["-fPIC"]))
    else {
        return;
    };
    let mut session = load(&device, program(&[128], &[128], gpu_variant(object, kernels)), &Options::default());
    let input: Vec<f32> = (0..128).map(|i| i as f32).collect();
    let mut expected = input.clone();
    expected[2] = 5.0;
    assert_eq!(session.run(&[f32s(&input)]).unwrap()[0].to_f32().unwrap(), expected);
    assert!(session.close().is_clean());
}

/// A kernel without immediates: each dispatch finds its own scalars.
#[test]
fn scalars_in_a_buffer_are_those_of_the_dispatch() {
    let wgsl = "
struct Numbers { plus: u32, times: u32 }
@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@group(0) @binding(1) var<uniform> numbers: Numbers;
@compute @workgroup_size(64)
fn step(@builtin(global_invocation_id) id: vec3<u32>) { a[id.x] = (a[id.x] + numbers.plus) * numbers.times; }
";
    let Kernel::Gpu(kernel) = gpu_kernel("step", wgsl, &[Access::ReadWrite]) else { unreachable!() };
    let kernel = GpuKernel { scalars: vec![4, 4], ..kernel };
    assert!(kernel.takes_number_buffer());
    let body = "i64 t = alloc(1024); fill(t, 0, 1024, 1);
        arg(t, 0, 1024); monopour_rt_scalar(cx, 2); monopour_rt_scalar(cx, 5); dispatch(0, 4, 1, 1);
        arg(t, 0, 1024); monopour_rt_scalar(cx, 7); monopour_rt_scalar(cx, 3); dispatch(0, 4, 1, 1); result(0, t);";
    let source = format!("void monopour_rt_scalar(i64, i64); void entry(i64 cx) {{ {body} }}");
    let (Some(device), Some(object)) = (gpu(), compile_c(&source, &["-fPIC"])) else { return };
    let variant = gpu_variant(object, vec![Kernel::Gpu(kernel)]);
    let mut session = load(&device, program(&[], &[256], variant), &Options::default());
    for _ in 0..2 {
        let found = session.run(&[]).unwrap()[0].data().to_vec();
        assert_eq!(found, ((1u32 + 2) * 5 + 7).wrapping_mul(3).to_le_bytes().repeat(256));
    }
    assert!(session.close().is_clean());
}

/// Copies between bytes: within words, across words, within one buffer with overlap; neighbouring bytes are preserved.
#[test]
fn bytes_are_copied_between_any_places() {
    let body = "i64 t = alloc(64), u = alloc(40); fill(t, 0, 64, 0x55555555); copy(input(0), 0, u, 0, 40);
        copy(u, 1, t, 2, 1); copy(u, 3, t, 5, 11); copy(u, 0, t, 20, 7); copy(u, 8, t, 29, 3); copy(t, 5, t, 7, 9);
        copy(t, 11, t, 33, 5); copy(u, 2, t, 62, 2); release(u); result(0, t);";
    let (Some(device), Some(object)) = (gpu(), compile_c(&format!("void entry(i64 cx) {{ {body} }}"), &["-fPIC"]))
    else {
        return;
    };
    let mut session = load(&device, program(&[10], &[16], gpu_variant(object, kernels())), &Options::default());
    let source: Vec<u8> = (1..=40).collect();
    let input = HostTensor::new(DType::F32, vec![10], source.clone()).unwrap();
    let mut expected = [0x55u8; 64];
    for (from, to, len) in [(1, 2, 1), (3, 5, 11), (0, 20, 7), (8, 29, 3)] {
        expected[to..to + len].copy_from_slice(&source[from..from + len]);
    }
    expected.copy_within(5..14, 7);
    expected.copy_within(11..16, 33);
    expected[62..64].copy_from_slice(&source[2..4]);
    for _ in 0..2 {
        assert_eq!(session.run(std::slice::from_ref(&input)).unwrap()[0].data(), expected);
    }
    assert_eq!(session.stats().counts.submits, 1);
    assert!(session.close().is_clean());
}

/// Scalars of every width at even and odd offsets, read back one by one and as a whole.
#[test]
fn host_code_writes_and_reads_elements() {
    let body = "i64 t = alloc(64); fill(t, 0, 64, 0);
        write(t, 0, 4, 0x3f800000); write(t, 5, 1, 0xab); write(t, 6, 2, 0xcdef); write(t, 11, 8, 0x1122334455667788);
        write(t, 28, 8, read(t, 11, 8)); write(t, 40, 1, read(t, 5, 1)); write(t, 42, 2, read(t, 6, 2));
        write(t, 60, 4, read(t, 0, 4)); result(0, t);";
    let (Some(device), Some(object)) = (gpu(), compile_c(&format!("void entry(i64 cx) {{ {body} }}"), &["-fPIC"]))
    else {
        return;
    };
    let mut session = load(&device, program(&[], &[16], gpu_variant(object, kernels())), &Options::default());
    let mut expected = [0u8; 64];
    let number = 0x1122_3344_5566_7788u64.to_le_bytes();
    expected[0..4].copy_from_slice(&1f32.to_le_bytes());
    expected[5..8].copy_from_slice(&[0xab, 0xef, 0xcd]);
    expected[11..19].copy_from_slice(&number);
    expected[28..36].copy_from_slice(&number);
    (expected[40], expected[42], expected[43]) = (0xab, 0xef, 0xcd);
    expected[60..64].copy_from_slice(&1f32.to_le_bytes());
    for _ in 0..2 {
        assert_eq!(session.run(&[]).unwrap()[0].data(), expected);
    }
    let stats = session.stats();
    assert_eq!(stats.counts.scalar_reads, 4);
    assert_eq!((stats.steady_state.buffers_created, stats.steady_state.bind_groups_created), (0, 0));
    assert!(session.close().is_clean());
}

/// The last element of a buffer, after which nothing can be bound.
#[test]
fn host_code_writes_the_last_element() {
    let body = "i64 t = alloc(1024); fill(t, 0, 1024, 0); write(t, 1020, 4, 0x3f800000); result(0, t);";
    let (Some(device), Some(object)) = (gpu(), compile_c(&format!("void entry(i64 cx) {{ {body} }}"), &["-fPIC"]))
    else {
        return;
    };
    let mut session = load(&device, program(&[], &[256], gpu_variant(object, vec![])), &Options::default());
    let found = session.run(&[]).unwrap()[0].to_f32().unwrap();
    assert_eq!((found[..255].to_vec(), found[255]), (vec![0.0; 255], 1.0));
}

#[test]
fn fills_are_of_whole_words_but_for_zeros() {
    check_error("i64 t = alloc(64); fill(t, 0, 6, 0x3f800000);", "R0013", "fill: a range that is not whole words");
    check_error("i64 t = alloc(64); fill(t, 0, 6, 0);", "R0013", "result 0 was not set");
}

#[test]
fn limits_of_the_device_are_errors() {
    let grid = "i64 t = alloc(1024); arg(t, 0, 1024); arg(t, 0, 1024); dispatch(1, 65536, 1, 1);";
    check_error(
        grid,
        "R0015",
        "kernel `double` exceeds the device's workgroups per dimension: 65536 needed, 65535 offered",
    );
    let Some(device) = gpu() else { return };
    let limit = device.description().unwrap().limits.max_binding_bytes;
    if limit <= 128 << 20 {
        let big = format!("i64 t = alloc({0}); arg(t, 0, {0}); arg(t, 0, {0}); dispatch(1, 4, 1, 1);", limit + 256);
        check_error(&big, "R0015", "binding size");
    }
    check_error("alloc(1ll << 60);", "R0015", "buffer size");
}

#[test]
fn kernels_that_do_not_compile_are_errors() {
    let (Some(device), Some(object)) = (gpu(), compile_c(HOST, &["-fPIC"])) else { return };
    let broken = Kernel::Gpu(GpuKernel {
        name: "broken".into(),
        wgsl: "@compute @workgroup_size(1) fn broken() { let x: f32 = 1u; }".into(),
        workgroup_size: [1, 1, 1],
        ..GpuKernel::default()
    });
    let program = program(&[], &[], gpu_variant(object, vec![broken]));
    let error = Session::load(&device, trusted(program), &Options::default()).map(|_| ()).unwrap_err();
    assert_eq!(error.code(), "R0011");
    assert!(error.to_string().starts_with("the device rejects kernel `broken`"), "{error}");
}

#[test]
fn tensors_of_another_device_are_refused() {
    let (Some(device), Some(object)) = (gpu(), compile_c(HOST, &["-fPIC"])) else { return };
    let program = trusted(program(&[256, 256], &[256], gpu_variant(object, kernels())));
    let mut here = Session::load(&device, program.clone(), &Options::default()).unwrap();
    let mut there = Session::load(&gpu().unwrap(), program, &Options::default()).unwrap();
    let tensors = here.upload(&inputs()).unwrap();
    let error = there.execute(&tensors).unwrap_err();
    assert_eq!((error.code(), error.to_string().as_str()), ("R0016", "input `arg0` lies on another device"));
}

#[test]
fn traces_hold_device_spans() {
    let (Some(device), Some(object)) = (gpu(), compile_c(HOST, &["-fPIC"])) else { return };
    let options = Options { trace: true, ..Options::default() };
    let mut session = load(&device, program(&[256, 256], &[256], gpu_variant(object, kernels())), &options);
    session.run(&inputs()).unwrap();
    let spans = session.drain_trace();
    if device.description().unwrap().has(GpuFeature::Timestamps) && !spans.is_empty() {
        let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
        assert_eq!(names, ["add", "double", "double", "double", "double"]);
        assert!(spans.iter().all(|span| span.track == "device"));
    }
}

/// Freed buffers are really freed, although bind groups held them.
#[test]
fn the_memory_limit_holds_on_the_device_too() {
    let source = "void entry(i64 cx) {
      i64 a = alloc(1 << 20); arg(a, 0, 1024); arg(a, 0, 1024); dispatch(1, 4, 1, 1); release(a);
      i64 b = alloc(3 << 20); arg(b, 0, 1024); arg(b, 0, 1024); dispatch(1, 4, 1, 1); release(b);
      result(0, alloc(1024));
    }";
    let (Some(device), Some(object)) = (gpu(), compile_c(source, &["-fPIC"])) else { return };
    let before = device.internal_counters().unwrap();
    let options = Options { memory_limit: Some((3 << 20) + 4096), ..Options::default() };
    let mut session = load(&device, program(&[], &[256], gpu_variant(object, kernels())), &options);
    // The third run and later ones repeat the calls of the one before.
    for _ in 0..5 {
        drop(session.execute(&[]).unwrap());
    }
    // The first buffer is freed by waiting for its uses.
    assert_eq!(session.stats().counts.submits, 2);
    // At most one of the large buffers is alive at a time, and the small one.
    assert!(device.internal_counters().unwrap().buffers - before.buffers <= 3);
    assert!(session.stats().peak_device_bytes <= (3 << 20) + 4096);
    assert!(session.close().is_clean());
}

/// Through staging buffers, in several pieces, the last of them partial.
#[test]
fn large_tensors_arrive_whole() {
    let source = "void entry(i64 cx) { result(0, input(0)); }";
    let (Some(device), Some(object)) = (gpu(), compile_c(source, &["-fPIC"])) else { return };
    let len = (11 << 20) / 4 + 5;
    for memory_limit in [None, Some(13 << 20), Some(18 << 20)] {
        let mut program = program(&[len], &[len], gpu_variant(object.clone(), vec![]));
        program.signature.inputs[0].donated = true;
        let mut session = load(&device, program, &Options { memory_limit, ..Options::default() });
        let values: Vec<f32> = (0..len).map(|i| i as f32).collect();
        let inputs = session.upload(&[f32s(&values)]).unwrap();
        let outputs = session.execute(&inputs).unwrap();
        if memory_limit.is_none() {
            assert!(session.readback(&outputs).unwrap()[0].to_f32().unwrap() == values);
        }
        drop((inputs, outputs));
        assert!(session.close().is_clean());
    }
}
