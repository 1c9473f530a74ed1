//! Runs that repeat the calls of the run before: the values of each are its own, whatever changes between runs.

use std::sync::Arc;

use monopour_contract::RuntimeFunction as F;
use monopour_program::host::{HostType, ScalarOp};
use monopour_program::*;
use monopour_runtime::{BufferSlice, DeviceTensor, HostForm, HostTensor, Model, Options, RecordInput, Session};

use crate::engine::{Engine, engine};
use crate::support::*;
use crate::trust::trusted;

/// Most elements of the tensors.
const MOST: u64 = 256;
/// Adds a number to each element.
const STEP: &str = "
@group(0) @binding(0) var<storage, read_write> a: array<f32>;
@group(0) @binding(1) var<storage, read_write> b: array<f32>;
KIND k: u32;
@compute @workgroup_size(64)
fn step(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&b)) { b[id.x] = a[id.x] + f32(k); }
}
";

/// `result0 = x + 5 k + 1` but for its first element, `7 + 2 k`, and `result1 = 100 / k`: dispatches with the number, an
/// allocation that is freed, a fill, a copy and a write between them.
fn host() -> HostCode {
    let mut code = Code::constants(&[0, 1, 4, 8 * MOST, 7f32.to_bits().into(), 100, 4 * MOST, 63, 64]);
    let call = |code: &mut Code, function, arguments: &[u32]| code.call(0, function, arguments);
    let (x, k) = (call(&mut code, F::Input, &[0]), call(&mut code, F::InputScalar, &[1]));
    let rows = call(&mut code, F::InputDim, &[0, 0]);
    let bytes = code.scalar(0, ScalarOp::MulI, &[rows, 2], HostType::WORD);
    let more = code.scalar(0, ScalarOp::AddI, &[rows, 7], HostType::WORD);
    let groups = code.scalar(0, ScalarOp::DivU, &[more, 8], HostType::WORD);
    let t = call(&mut code, F::Arena, &[3]);
    let (y, u) = (call(&mut code, F::Alloc, &[bytes]), call(&mut code, F::Alloc, &[bytes]));
    let step = |code: &mut Code, (from, at): (u32, u32), (to, to_at): (u32, u32), number: u32| {
        code.call(0, F::Arg, &[from, at, bytes]);
        code.call(0, F::Arg, &[to, to_at, bytes]);
        code.call(0, F::Scalar, &[number]);
        code.call(0, F::Dispatch, &[0, groups, 1, 1]);
    };
    // The second half of the arena is at register 6, a constant.
    step(&mut code, (x, 0), (t, 0), k);
    step(&mut code, (t, 0), (t, 6), k);
    code.call(0, F::Fill, &[u, 0, bytes, 0]);
    code.call(0, F::Copy, &[t, 6, u, 0, bytes]);
    let quotient = code.scalar(0, ScalarOp::DivS, &[5, k], HostType::WORD);
    let next = code.scalar(0, ScalarOp::AddI, &[k, 1], HostType::WORD);
    step(&mut code, (u, 0), (y, 0), next);
    code.call(0, F::Write, &[y, 0, 2, 4]);
    step(&mut code, (y, 0), (t, 0), k);
    step(&mut code, (t, 0), (y, 0), k);
    code.call(0, F::Free, &[u]);
    code.call(0, F::ResultDim, &[0, 0, rows]);
    code.call(0, F::Result, &[0, y]);
    code.call(0, F::ResultScalar, &[1, quotient]);
    code.0
}

/// With the number as an immediate, or in a buffer.
fn program_of(is_immediate: bool) -> Program {
    let kind = if is_immediate { "var<immediate>" } else { "@group(0) @binding(2) var<uniform>" };
    let mut kernel = gpu_kernel("step", &STEP.replace("KIND", kind), &[Access::ReadWrite, Access::ReadWrite]);
    if let Kernel::Gpu(kernel) = &mut kernel {
        kernel.scalars = vec![4];
        kernel.bindings[0].is_written = false;
        if is_immediate {
            kernel.features = vec![GpuFeature::Immediates];
        }
    }
    let mut variant = gpu_variant(vec![], vec![kernel]);
    (variant.host, variant.host_data) = (NativeCode::default(), host());
    let mut program = program(&[], &[], variant);
    let number = |name: &str| TensorDesc { scalar: true, ..TensorDesc::tensor(name, DType::I64, vec![]) };
    let rows = |name: &str| TensorDesc::tensor(name, DType::F32, vec![DYNAMIC]);
    program.signature.inputs = vec![rows("x"), number("k")];
    program.signature.results = vec![rows("y"), number("q")];
    program
}

fn value(k: i64) -> HostTensor {
    HostTensor::new(DType::I64, vec![], k.to_le_bytes().to_vec()).unwrap()
}

fn values(len: u64, from: f32) -> Vec<f32> {
    (0..len).map(|i| from + i as f32).collect()
}

fn expected(x: &[f32], k: i64) -> Vec<f32> {
    let k = k as f32;
    let mut y: Vec<f32> = x.iter().map(|v| v + 5.0 * k + 1.0).collect();
    y[0] = 7.0 + 2.0 * k;
    y
}

/// What a run is given, and how it is made.
#[derive(Clone, Copy)]
struct Event {
    len: u64,
    from: f32,
    k: i64,
    kind: u64,
}

/// One session with the results that the test keeps.
struct Scene<'a> {
    engine: &'a Engine,
    session: Session,
    kept: Vec<(Vec<DeviceTensor>, Vec<f32>)>,
}

impl Scene<'_> {
    fn check_kept(&mut self, at: usize) {
        let (results, expected) = self.kept.swap_remove(at);
        assert_eq!(self.session.readback(&results).unwrap()[0].to_f32().unwrap(), expected);
    }

    fn record(&mut self, x: &[f32], k: i64) {
        // An input that kernels cannot be bound to is copied first, and a run may fail behind that copy.
        let given = self.engine.buffer(&[&[0.0], x].concat());
        let (aligned, y) = (self.engine.buffer(x), self.engine.buffer(&[0.0; MOST as usize]));
        let len = x.len() as u64;
        let mut encoder = self.engine.device.create_command_encoder(&Default::default());
        let whole = BufferSlice::whole(&y);
        let mut record = |slice: BufferSlice, k: i64| {
            let x = RecordInput::Buffer { dtype: DType::F32, shape: vec![len], slice };
            let inputs = [x, RecordInput::Scalar(value(k))];
            self.session.record(&mut encoder, &inputs, &[Some(whole.clone()), None])
        };
        let behind = BufferSlice::new(&given, 4..4 + 4 * len).unwrap();
        if k == 2 {
            assert_eq!(record(behind.clone(), 0).unwrap_err().code(), "R0019");
        }
        let found = record(if k == 3 { behind } else { BufferSlice::whole(&aligned) }, k).unwrap();
        assert_eq!(found[1].scalar.as_ref().map(HostTensor::data), Some(&(100 / k).to_le_bytes()[..]));
        self.engine.queue.submit([encoder.finish()]);
        assert_eq!(self.engine.read(&y)[..x.len()], expected(x, k));
    }

    fn make(&mut self, Event { len, from, k, kind }: Event) {
        let x = values(len, from);
        let inputs = [HostTensor::from_f32(vec![len], &x).unwrap(), value(k)];
        match kind {
            0 => {
                let results = self.session.run(&inputs).unwrap();
                assert_eq!(results[0].to_f32().unwrap(), expected(&x, k));
                assert_eq!(results[1].data(), (100 / k).to_le_bytes());
            }
            // Results stay with the caller: the next run has others.
            1 => {
                let uploaded = self.session.upload(&inputs).unwrap();
                let results = self.session.execute(&uploaded).unwrap();
                self.kept.push((results, expected(&x, k)));
            }
            2 => {
                let uploaded = self.session.upload(&inputs).unwrap();
                let runs = [(); 3].map(|()| self.session.submit(&uploaded).unwrap());
                for run in runs {
                    let results = run.wait(None).unwrap();
                    assert_eq!(self.session.readback(&results).unwrap()[0].to_f32().unwrap(), expected(&x, k));
                }
            }
            // Ends half-way, after the first dispatches.
            3 => {
                let error = self.session.run(&[inputs[0].clone(), value(0)]).unwrap_err();
                assert_eq!(error.code(), "R0019");
            }
            _ => self.record(&x, k),
        }
    }
}

#[test]
fn runs_that_repeat_calls_have_values_of_their_own() {
    let Some(engine) = engine() else { return };
    for is_immediate in [true, false] {
        let session = Session::load(&engine.device(), trusted(program_of(is_immediate)), &Options::default()).unwrap();
        assert_eq!(session.host_form(), HostForm::Data);
        let mut scene = Scene { engine: &engine, session, kept: vec![] };
        let mut random = 11u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(0x9e37_79b9_7f4a_7c15);
            (random >> 33) % below
        };
        for turn in 0..150 {
            let event =
                Event { len: [64, MOST][next(2) as usize], from: turn as f32, k: 1 + next(3) as i64, kind: next(5) };
            // Some in a row, so that calls are noted and repeated; each with values of its own.
            for again in 0..1 + next(5) {
                scene.make(Event { from: event.from + 0.5 * again as f32, ..event });
            }
            while scene.kept.len() > 3 {
                scene.check_kept(next(3) as usize);
            }
        }
        while !scene.kept.is_empty() {
            scene.check_kept(0);
        }
        let mut warm = || scene.make(Event { len: 64, from: 1.0, k: 2, kind: 0 });
        (0..5).for_each(|_| warm());
        let steady = scene.session.stats().steady_state;
        assert_eq!((steady.buffers_created, steady.bind_groups_created, steady.pipelines_created), (0, 0, 0));
        assert!(scene.session.close().is_clean());
    }
}

/// Counts how often it is called, which host code must not: so the third run is seen to do without it.
#[test]
fn host_code_with_the_answers_of_the_run_before_is_not_called() {
    let Some(device) = gpu() else { return };
    let source = "i64 monopour_rt_input_scalar(i64, i64); void monopour_rt_result_scalar(i64, i64, i64);
        static i64 calls;
        void entry(i64 cx) { ++calls; i64 k = monopour_rt_input_scalar(cx, 0); READ
            monopour_rt_result_scalar(cx, 0, 100 * k + calls); }";
    let found = |read: &str| {
        let object = compile_c(&source.replace("READ", read), &["-fPIC"])?;
        let mut program = program(&[], &[], gpu_variant(object, vec![]));
        let number = |name: &str| TensorDesc { scalar: true, ..TensorDesc::tensor(name, DType::I64, vec![]) };
        (program.signature.inputs, program.signature.results) = (vec![number("k")], vec![number("n")]);
        let mut session = Session::load(&device, trusted(program), &Options::default()).unwrap();
        let mut run = |k: i64| {
            let results = session.run(&[value(k)]).unwrap();
            i64::from_le_bytes(results[0].data().try_into().unwrap())
        };
        Some([1, 1, 1, 1, 2, 1, 1, 1, 1].map(&mut run))
    };
    let Some(found_without) = found("") else { return };
    assert_eq!(found_without, [101, 102, 102, 102, 203, 104, 105, 105, 105]);
    // What it reads may be another value each time.
    let reads = "i64 y = alloc(4); fill(y, 0, 4, 0); read(y, 0, 4); release(y);";
    assert_eq!(found(reads), Some([101, 102, 103, 104, 205, 106, 107, 108, 109]));
}

/// Memory is refused at every point of a run, from none at all to as much as it takes; the session goes on where it can.
#[test]
fn memory_that_is_refused_at_any_point_is_an_error() {
    let Some(device) = gpu() else { return };
    let model = Arc::new(Model::load(&device, trusted(program_of(true)), &Options::default()).unwrap());
    let (x, mut refused, mut ran) = (values(MOST, 1.0), 0, 0);
    let given = HostTensor::from_f32(vec![MOST], &x).unwrap();
    for limit in (0..16 << 10).step_by(256) {
        let options = Options { memory_limit: Some(limit), ..Options::default() };
        let mut session = Session::new(&model, &options).unwrap();
        for k in [1, 1, 1, 1, 2] {
            match session.run(&[given.clone(), value(k)]) {
                Ok(results) => assert_eq!(results[0].to_f32().unwrap(), expected(&x, k), "at most {limit} bytes"),
                Err(error) => assert_eq!(error.code(), "R0009", "{error}"),
            }
        }
        match session.run(&[given.clone(), value(3)]) {
            Ok(_) => ran += 1,
            Err(_) => refused += 1,
        }
        assert!(session.stats().peak_device_bytes <= limit);
        assert!(session.close().is_clean(), "at most {limit} bytes");
    }
    assert!(refused > 4 && ran > 4, "{refused} refused, {ran} ran");
}
