//! The CPU target and the native loader: all kinds of references of compiled code to data and to the runtime.

use monopour_program::*;
use monopour_runtime::{HostTensor, Options, Session};

use crate::support::*;
use crate::trust::trusted;

/// `c = (a + b) * scale[i % 4] + bias`: read-only and writable data, a call within the object, memset.
const ADD: &str = "
static const float scale[4] = {1, 2, 3, 4};
float bias = 0.5f;
const float *table = scale;
__attribute__((noinline)) float one(float a, float b, i64 i) { return (a + b) * scale[i & 3]; }
void add(void *const *args, const i64 *ids) {
  const float *a = args[0], *b = args[1];
  float *c = args[2];
  for (i64 i = 0; i < 16; i++) {
    i64 at = (ids[0] * 4 + ids[1]) * 16 + i;
    c[at] = one(a[at], b[at], at) + bias * (table == scale);
  }
}
void entry(i64 cx) {
  i64 c = alloc(1024);
  arg(input(0), 0, 1024); arg(input(1), 0, 1024); arg(c, 0, 1024);
  dispatch(0, 4, 4, 1);
  result(0, c);
}
";

fn ramp(len: usize, step: f32) -> Vec<f32> {
    (0..len).map(|i| i as f32 * step).collect()
}

fn f32s(values: &[f32]) -> HostTensor {
    HostTensor::from_f32(vec![values.len() as u64], values).unwrap()
}

fn load(program: Program, options: &Options) -> Session {
    Session::load(&cpu(), trusted(program), options).unwrap_or_else(|error| panic!("{error}"))
}

fn error_of(source: &str, kernels: &[(&str, u32, u32)]) -> Option<String> {
    let object = compile_c(source, &[])?;
    let program = program(&[16], &[16], cpu_variant(object, kernels));
    let error = match Session::load(&cpu(), trusted(program), &Options::default()) {
        Err(error) => error,
        Ok(mut session) => session.run(&[f32s(&[1.0; 16])]).unwrap_err(),
    };
    Some(format!("{} {error}", error.code()))
}

fn check_error(source: &str, kernels: &[(&str, u32, u32)], expected: &str) {
    if let Some(found) = error_of(source, kernels) {
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn every_code_model_loads_and_threads_do_not_change_results() {
    let models: &[&[&str]] = match std::env::consts::ARCH {
        "x86_64" => &[&["-fPIC"], &["-fno-pic"], &["-fPIE"], &["-fno-pic", "-mcmodel=large"], &["-fPIC", "-fno-plt"]],
        _ => &[&["-fPIC"], &["-fno-pic"]],
    };
    for flags in models {
        let Some(object) = compile_c(ADD, flags) else { return };
        let expected: Vec<f32> =
            (0..256).map(|i| (i as f32 * 0.5 + i as f32 * 2.0) * ((i % 4) + 1) as f32 + 0.5).collect();
        for threads in [1, 2, 3] {
            let variant = cpu_variant(object.clone(), &[("add", 3, 2)]);
            let options = Options { threads, ..Options::default() };
            let mut session = load(program(&[256, 256], &[256], variant), &options);
            let outputs = session.run(&[f32s(&ramp(256, 0.5)), f32s(&ramp(256, 2.0))]).unwrap();
            assert_eq!(outputs[0].to_f32().unwrap(), expected, "{flags:?}, {threads} threads");
            let stats = session.stats();
            assert_eq!((stats.threads, stats.counts.dispatches, stats.counts.submits), (threads, 1, 0));
            assert!(session.close().is_clean());
        }
    }
}

#[test]
fn warm_runs_create_nothing_and_give_everything_back() {
    let Some(object) = compile_c(ADD, &["-fPIC"]) else { return };
    let mut session = load(program(&[256, 256], &[256], cpu_variant(object, &[("add", 3, 2)])), &Options::default());
    let inputs = session.upload(&[f32s(&ramp(256, 1.0)), f32s(&ramp(256, 1.0))]).unwrap();
    for _ in 0..5 {
        session.execute(&inputs).unwrap();
    }
    let stats = session.stats();
    assert_eq!(stats.runs, 4);
    assert_eq!(stats.steady_state.buffers_created, 0);
    assert_eq!((stats.counts.allocations, stats.upload_bytes, stats.peak_device_bytes), (1, 2048, 3072));
    let kept = session.execute(&inputs).unwrap();
    drop(inputs);
    let report = session.close();
    assert_eq!((report.buffers_alive, report.bytes_alive, report.unfreed_allocations), (1, 1024, 0));
    drop(kept);
}

/// Arena, constants, copies, fills and a donated input, without any kernel.
const MOVES: &str = "
void entry(i64 cx) {
  i64 t = arena(512), r = alloc(64), d = input(1);
  fill(t, 0, 64, 0x3f800000);
  copy(t, 0, t, 256, 64);
  copy(constant(0), 0, t, 256 + 32, 32);
  copy(t, 256, r, 0, 64);
  copy(input(0), 0, d, 0, 4);
  result(0, r);
  result(1, d);
}
";

#[test]
fn copies_fills_constants_and_donated_inputs() {
    let Some(object) = compile_c(MOVES, &["-fPIC"]) else { return };
    let mut program = program(&[16, 16], &[16, 16], cpu_variant(object, &[]));
    program.signature.inputs[1].donated = true;
    let data: Vec<u8> = ramp(8, 1.0).iter().flat_map(|value| value.to_le_bytes()).collect();
    program.constants.push(Constant { name: "w".into(), dtype: DType::F32, shape: vec![8], data: data.into() });
    // Through a file, so that the constant is mapped.
    let path = std::env::temp_dir().join(format!("monopour-moves-{}.mpr", std::process::id()));
    program.save(&path).unwrap();
    let mut session = load(Program::open(&path).unwrap(), &Options::default());
    std::fs::remove_file(&path).unwrap();
    let inputs = session.upload(&[f32s(&[7.0; 16]), f32s(&[3.0; 16])]).unwrap();
    let outputs = session.execute(&inputs).unwrap();
    let read = session.readback(&outputs).unwrap();
    let expected: Vec<f32> = [1.0; 8].into_iter().chain(ramp(8, 1.0)).collect();
    assert_eq!(read[0].to_f32().unwrap(), expected);
    assert_eq!(read[1].to_f32().unwrap()[..2], [7.0, 3.0]);
    assert_eq!((session.stats().counts.copies, session.stats().counts.copied_bytes), (4, 64 + 32 + 64 + 4));
    let again = session.execute(&inputs).unwrap_err();
    assert_eq!(again.code(), "R0016", "{again}");
    drop((inputs, outputs));
    assert!(session.close().is_clean());
}

#[test]
fn kernels_get_tile_ids_outermost_first() {
    let source = "
    void ids(void *const *args, const i64 *ids) { float *r = args[0]; r[(ids[0] * 3 + ids[1]) * 4 + ids[2]] = ids[0] * 100 + ids[1] * 10 + ids[2]; }
    void entry(i64 cx) { i64 r = alloc(96); arg(r, 0, 96); dispatch(0, 4, 3, 2); result(0, r); }";
    let Some(object) = compile_c(source, &["-fPIC"]) else { return };
    let mut session = load(program(&[], &[24], cpu_variant(object, &[("ids", 1, 3)])), &Options::default());
    let found = session.run(&[]).unwrap()[0].to_f32().unwrap();
    let expected: Vec<f32> = (0..24).map(|i| (i / 12 * 100 + i / 4 % 3 * 10 + i % 4) as f32).collect();
    assert_eq!(found, expected);
}

#[test]
fn inputs_are_checked() {
    let Some(object) = compile_c(ADD, &["-fPIC"]) else { return };
    let mut session = load(program(&[256, 256], &[256], cpu_variant(object, &[("add", 3, 2)])), &Options::default());
    let error = session.run(&[f32s(&[1.0; 256])]).unwrap_err();
    assert_eq!((error.code(), error.to_string().as_str()), ("R0007", "the program takes 2 inputs, 1 given"));
    let error = session.run(&[f32s(&[1.0; 256]), f32s(&[1.0; 8])]).unwrap_err();
    let text = "input `arg1` has type tensor<8xf32>, expected tensor<256xf32>";
    assert_eq!((error.code(), error.to_string().as_str()), ("R0008", text));
}

#[test]
fn sizes_of_inputs_are_checked_against_each_other() {
    let Some(object) = compile_c("void entry(i64 cx) { i64 r = alloc(4); result(0, r); }", &["-fPIC"]) else { return };
    let mut program = program(&[DYNAMIC, DYNAMIC], &[1], cpu_variant(object, &[]));
    let number = |name: &str, dtype| TensorDesc { scalar: true, ..TensorDesc::tensor(name, dtype, vec![]) };
    program.signature.inputs.extend([number("n", DType::I8), number("m", DType::I32)]);
    let of = |input: u32, dim: Option<u32>| InputSize { input, dim };
    program.signature.sizes =
        SizeRules { equal: vec![vec![of(0, Some(0)), of(1, Some(0)), of(2, None)]], fixed: vec![(of(3, None), -2)] };
    let mut session = load(program, &Options::default());
    let mut run = |sizes: [usize; 2], n: i8, m: i32| {
        let number = |dtype, bytes: &[u8]| HostTensor::new(dtype, vec![], bytes.to_vec()).unwrap();
        let [x, y] = sizes.map(|len| f32s(&vec![1.0; len]));
        let inputs = [x, y, number(DType::I8, &n.to_le_bytes()), number(DType::I32, &m.to_le_bytes())];
        session.run(&inputs).map(|_| ()).map_err(|error| (error.code(), error.to_string()))
    };
    assert_eq!(run([3, 3], 3, -2), Ok(()));
    let equal = |text: &str| Err(("R0008", format!("{text}: the program needs them to be equal")));
    assert_eq!(run([3, 4], 3, -2), equal("dimension 0 of input `arg1` is 4, dimension 0 of input `arg0` is 3"));
    assert_eq!(run([3, 3], -3, -2), equal("input `n` is -3, dimension 0 of input `arg0` is 3"));
    let fixed = "input `m` is -1: the program needs it to be -2";
    assert_eq!(run([3, 3], 3, -1), Err(("R0008", fixed.to_owned())));
}

#[test]
fn the_memory_limit_is_an_error() {
    let Some(object) = compile_c(ADD, &["-fPIC"]) else { return };
    let options = Options { memory_limit: Some(2048), ..Options::default() };
    let mut session = load(program(&[256, 256], &[256], cpu_variant(object, &[("add", 3, 2)])), &options);
    let error = session.run(&[f32s(&[1.0; 256]), f32s(&[1.0; 256])]).unwrap_err();
    assert_eq!(error.code(), "R0009", "{error}");
}

#[test]
fn memory_that_the_system_lacks_is_an_error() {
    check_error(
        "void entry(i64 cx) { alloc(1ll << 60); }",
        &[],
        "R0010 out of device memory: 1152921504606846976 bytes",
    );
}

#[test]
fn undefined_symbols_are_named() {
    check_error(
        "void printf(const char *); void entry(i64 cx) { printf(\"x\"); }",
        &[],
        "R0006 native code needs `printf`",
    );
    check_error(
        "int x; void other(i64 cx) {}",
        &[],
        "R0005 native code cannot be loaded: the object does not define `entry`",
    );
}

#[test]
fn objects_that_cannot_be_loaded_are_refused() {
    check_error("__thread float x; void entry(i64 cx) { x = (float)cx; }", &[], "R0005 native code cannot be loaded");
    let source = "int x; __attribute__((constructor)) void start(void) { x = 1; } void entry(i64 cx) {}";
    check_error(source, &[], "holds constructors");
    let load = |object: Vec<u8>| {
        let program = program(&[], &[], cpu_variant(object, &[]));
        Session::load(&cpu(), trusted(program), &Options::default()).map(|_| ()).unwrap_err().code()
    };
    assert_eq!(load(vec![0; 64]), "R0005");
    assert_eq!(load(b"\x7fELF".to_vec()), "R0005");
}

/// Damaged objects are loaded, never run: loading must not panic, whatever their contents.
#[test]
fn damaged_objects_do_not_panic() {
    let Some(object) = compile_c(ADD, &["-fPIC"]) else { return };
    let load = |object: &[u8]| {
        let program = program(&[], &[], cpu_variant(object.to_vec(), &[]));
        Session::load(&cpu(), trusted(program), &Options { threads: 1, ..Options::default() }).is_ok()
    };
    assert!(load(&object));
    for len in (1..object.len()).step_by(7) {
        load(&object[..len]);
    }
    let mut damaged = object.clone();
    for at in 0..object.len() {
        damaged[at] ^= 0xff;
        load(&damaged);
        damaged[at] = object[at] ^ 0x01;
        load(&damaged);
        damaged[at] = object[at];
    }
}

#[test]
fn defective_host_code_is_an_error_not_a_crash() {
    let nop = ("nop", 1, 1);
    let check = |body: &str, expected: &str| {
        let source = format!("void nop(void *const *a, const i64 *i) {{}} void entry(i64 cx) {{ {body} }}");
        check_error(&source, &[nop], expected);
    };
    check("", "R0013 host code is defective: result 0 was not set");
    check("input(1);", "input 1 of 1");
    check("constant(0);", "constant 0 of 0");
    check("result(0, input(0));", "neither an allocation nor a donated input");
    check("i64 a = alloc(64); release(a); release(a);", "handle 2 was freed or returned before");
    // A slot is reused for the next allocation: a handle of the earlier one must not reach the later one. Detects a handle
    // that is accepted whatever the generation of its slot, and generations that do not grow.
    check("i64 a = alloc(64); release(a); i64 b = alloc(64); release(a); result(0, b);", "free: handle 2 was freed");
    check("i64 a = alloc(64); release(a); i64 b = alloc(64); fill(a, 0, 64, 0); result(0, b);", "fill: handle 2 was");
    check("release(99);", "handle 99 does not exist");
    check("release(input(0));", "handle 1 is not an allocation");
    check("alloc(-1);", "allocation of -1 bytes");
    check("arena(1); arena(1);", "asked for twice");
    check("arg(input(0), 60, 8); dispatch(0, 1, 1, 1);", "argument: 8 bytes at 60 of a buffer of 64 bytes");
    check("dispatch(0, 1, 1, 1);", "kernel `nop` takes 1 arguments, 0 given");
    check("dispatch(1, 1, 1, 1);", "kernel 1 does not exist");
    check("arg(input(0), 0, 64); dispatch(0, -1, 1, 1);", "negative grid");
    check("fill(input(0), 0, 64, 0);", "fill: writes an input that was not donated");
    check("i64 a = alloc(64); arg(a, 0, 64); release(a);", "is a pending argument");
    check("i64 a = alloc(64); arg(a, 0, 64); result(0, a); dispatch(0, 1, 1, 1);", "returned before its use");
    check("i64 a = alloc(8); result(0, a);", "too small");
    check("arg(input(0), 0, 64); dispatch(0, 65536, 65536, 2);", "R0015");
}

#[test]
fn allocations_that_host_code_forgets_are_reported() {
    let source = "void entry(i64 cx) { alloc(64); result(0, alloc(64)); }";
    let Some(object) = compile_c(source, &["-fPIC"]) else { return };
    let mut session = load(program(&[], &[16], cpu_variant(object, &[])), &Options::default());
    session.run(&[]).unwrap();
    assert_eq!(session.close().unfreed_allocations, 1);
}

#[test]
fn traces_hold_a_span_per_dispatch() {
    let Some(object) = compile_c(ADD, &["-fPIC"]) else { return };
    let options = Options { trace: true, ..Options::default() };
    let mut session = load(program(&[256, 256], &[256], cpu_variant(object, &[("add", 3, 2)])), &options);
    session.run(&[f32s(&[1.0; 256]), f32s(&[1.0; 256])]).unwrap();
    let spans = session.drain_trace();
    assert_eq!((spans.len(), spans[0].name.as_str(), spans[0].track), (1, "add", "host"));
    assert!(spans[0].start_us >= 0.0 && spans[0].duration_us >= 0.0, "{spans:?}");
}

/// Sizes of inputs reach the host code; of a scalar result only the bytes of its type count.
#[test]
fn sizes_and_numbers_pass_through_host_code() {
    let source = "
    i64 monopour_rt_input_dim(i64, i64, i64);
    void monopour_rt_result_scalar(i64, i64, i64);
    void entry(i64 cx) {
      i64 n = monopour_rt_input_dim(cx, 0, 0);
      result(0, alloc(8));
      monopour_rt_result_scalar(cx, 1, n);
      monopour_rt_result_scalar(cx, 2, n << 8 | 0x7f);
    }";
    let Some(object) = compile_c(source, &["-fPIC"]) else { return };
    let mut program = program(&[DYNAMIC], &[2], cpu_variant(object, &[]));
    let number = |name: &str, dtype| TensorDesc { scalar: true, ..TensorDesc::tensor(name, dtype, vec![]) };
    program.signature.results.extend([number("n", DType::I32), number("low", DType::I8)]);
    let mut session = load(program, &Options::default());
    let inputs = session.upload(&[f32s(&[1.0; 5])]).unwrap();
    let outputs = session.execute(&inputs).unwrap();
    assert_eq!((inputs[0].shape(), outputs[0].shape()), (&[5][..], &[2][..]));
    let read = session.readback(&outputs).unwrap();
    assert_eq!((read[1].data(), read[2].data()), (&[5, 0, 0, 0][..], &[0x7f][..]));
}

#[test]
fn failed_checks_say_what_they_found() {
    let texts = [
        (1, "an index lies outside of its tensor"),
        (2, "sizes of tensors do not fit together"),
        (4, "a size is negative, or a tensor larger than any memory"),
        (99, "a check of the program failed"),
    ];
    for (code, text) in texts {
        let source = format!("void monopour_rt_trap(i64, i64); void entry(i64 cx) {{ monopour_rt_trap(cx, {code}); }}");
        check_error(&source, &[], text);
    }
}

/// Code that ends with its page: the calls out of it need a page more, and none of the data behind it.
#[test]
fn a_full_page_of_code_calls_out() {
    let source = "
    __asm__(\".section .text.last,\\\"ax\\\"\\n.balign 4096\\n.skip 4096\\n.text\");
    const float table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    void entry(i64 cx) {
      i64 t = alloc(32);
      for (i64 i = 0; i < 8; i++) { union { float f; unsigned u; } v = {table[i]}; write(t, 4 * i, 4, v.u); }
      result(0, t);
    }";
    let Some(object) = compile_c(source, &["-fPIC", "-fno-unroll-loops"]) else { return };
    let mut session = load(program(&[], &[8], cpu_variant(object, &[])), &Options::default());
    assert_eq!(session.run(&[]).unwrap()[0].to_f32().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
}

/// More addresses in the loader's table than a page holds.
#[test]
fn a_thousand_variables_are_reached() {
    let (mut variables, mut sum) = (String::new(), String::new());
    for i in 0..1000 {
        variables += &format!("int v{i} = {i};\n");
        sum += &format!(" + v{i}");
    }
    let source = format!(
        "void monopour_rt_result_scalar(i64, i64, i64);\n{variables}\
         void entry(i64 cx) {{ v0 = 0; result(0, alloc(4)); monopour_rt_result_scalar(cx, 1, 0{sum}); }}"
    );
    let Some(object) = compile_c(&source, &["-fPIC"]) else { return };
    let mut program = program(&[], &[1], cpu_variant(object, &[]));
    let number = TensorDesc { scalar: true, ..TensorDesc::tensor("sum", DType::I32, vec![]) };
    program.signature.results.push(number);
    let read = load(program, &Options::default()).run(&[]).unwrap();
    assert_eq!(read[1].data(), 499_500_i32.to_le_bytes());
}
