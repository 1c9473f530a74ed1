//! Runs recorded into the caller's encoders: values between its own dispatches, no submit, nothing left behind by a fault.

use std::sync::Arc;

use monopour_contract::RuntimeFunction as F;
use monopour_program::*;
use monopour_runtime::{BufferSlice, Error, HostTensor, Options, RecordInput, RecordedResult, Session, wgpu};

use crate::engine::*;
use crate::support::*;

fn input(buffer: &wgpu::Buffer, offset_bytes: u64) -> RecordInput {
    let slice = BufferSlice::new(buffer, offset_bytes..offset_bytes + BYTES).unwrap();
    RecordInput::Buffer { dtype: DType::F32, shape: vec![LEN], slice }
}

fn place(buffer: &wgpu::Buffer, offset_bytes: u64) -> Option<BufferSlice> {
    Some(BufferSlice::new(buffer, offset_bytes..buffer.size()).unwrap())
}

fn session(engine: &Engine, program: Program) -> Session {
    Session::new(&model(&engine.device(), program), &Options::default()).unwrap()
}

fn encoder(engine: &Engine) -> wgpu::CommandEncoder {
    engine.device.create_command_encoder(&Default::default())
}

#[test]
fn a_run_stands_between_the_callers_dispatches() {
    let Some(engine) = engine() else { return };
    let mut session = session(&engine, adding(3, 0.5));
    let scope = engine.device.push_error_scope(wgpu::ErrorFilter::Validation);
    for turn in 0..4u8 {
        let values = [vec![9.0; 64], ramp(f32::from(turn))].concat();
        let (x, y) = (engine.buffer(&values), engine.buffer(&[7.0; 3 * LEN as usize]));
        let before = engine.submissions();
        let mut encoder = encoder(&engine);
        engine.double(&mut encoder, &x);
        let found = session.record(&mut encoder, &[input(&x, 256)], &[place(&y, 1028)]).unwrap();
        engine.double(&mut encoder, &y);
        // Counting makes one submission itself.
        assert_eq!(engine.submissions(), before + 1);
        assert_eq!(found, [RecordedResult { dtype: DType::F32, shape: vec![LEN], scalar: None }]);
        assert_eq!(session.stats().counts.submits, 0);
        engine.queue.submit([encoder.finish()]);
        let sum = ramp(f32::from(turn)).into_iter().map(|v| 2.0 * (2.0 * v + 1.5));
        let expected: Vec<f32> = [14.0; 257].into_iter().chain(sum).collect();
        let found = engine.read(&y);
        assert_eq!(found[..expected.len()], expected);
        assert!(found[expected.len()..].iter().all(|v| *v == 14.0), "beyond its place it writes nothing");
    }
    assert!(pollster::block_on(scope.pop()).is_none());
    assert_eq!(engine.uncaught(), 0);
    assert!(session.close().is_clean());
}

/// Recorded runs share memory with one another, and with none that is kept.
#[test]
fn recorded_runs_are_submitted_in_any_order_or_never() {
    let Some(engine) = engine() else { return };
    let mut session = session(&engine, adding(3, 1.0));
    let buffers = [10.0, 20.0, 30.0].map(|from| (engine.buffer(&ramp(from)), engine.buffer(&ramp(0.0))));
    let mut commands: Vec<_> = buffers
        .iter()
        .map(|(x, y)| {
            let mut encoder = encoder(&engine);
            session.record(&mut encoder, &[input(x, 0)], &[place(y, 0)]).unwrap();
            Some(encoder.finish())
        })
        .collect();
    let uploaded = session.upload(&[tensor_of(&ramp(40.0))]).unwrap();
    engine.queue.submit(commands[2].take());
    let kept = session.execute(&uploaded).unwrap();
    engine.queue.submit(commands[0].take());
    drop(commands);
    assert_eq!(session.readback(&kept).unwrap()[0].to_f32().unwrap(), ramp(43.0));
    assert_eq!(session.readback(&uploaded).unwrap()[0].to_f32().unwrap(), ramp(40.0));
    let found = buffers.each_ref().map(|(_, y)| engine.read(y));
    assert_eq!(found, [ramp(13.0), ramp(0.0), ramp(33.0)]);
}

/// Once warm, recording creates nothing, and the caller's buffers are let go.
#[test]
fn recording_reaches_a_steady_state() {
    let Some(engine) = engine() else { return };
    let mut session = session(&engine, adding(3, 1.0));
    let (x, y) = (engine.buffer(&ramp(1.0)), engine.buffer(&ramp(0.0)));
    let mut record = |x: &wgpu::Buffer| {
        let mut encoder = encoder(&engine);
        session.record(&mut encoder, &[input(x, 0)], &[place(&y, 0)]).unwrap();
        engine.queue.submit([encoder.finish()]);
        let _ = engine.device.poll(wgpu::PollType::wait_indefinitely());
        let counters = engine.device.get_internal_counters().hal;
        (counters.buffers.read(), counters.bind_groups.read(), counters.compute_pipelines.read())
    };
    record(&x);
    let warm = record(&x);
    assert_eq!(record(&x), warm);
    for _ in 0..3 {
        record(&engine.buffer(&ramp(2.0)));
    }
    assert!(record(&x).1 > warm.1);
    for _ in 0..200 {
        record(&x);
    }
    assert_eq!(record(&x), warm);
}

/// Host code that reads a number which a kernel wrote.
fn reading() -> Program {
    let mut program = adding(2, 1.0);
    let code = &mut program.variants[0].host_data;
    let mut ops = Code(std::mem::take(code));
    let dispatches = ops.0.blocks[0].ops.len() - 1;
    let result = ops.0.blocks[0].ops.split_off(dispatches);
    // Register 8 is the allocation of the result, after five constants, the input, the constant and the arena.
    ops.call(0, F::Read, &[8, 0, 3]);
    ops.0.blocks[0].ops.extend(result);
    *code = ops.0;
    program
}

#[test]
fn a_fault_leaves_the_encoder_as_it_was() {
    let Some(engine) = engine() else { return };
    let (x, y) = (engine.buffer(&ramp(0.0)), engine.buffer(&ramp(0.0)));
    let read_only = engine.device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: BYTES,
        usage: wgpu::BufferUsages::COPY_SRC,
        mapped_at_creation: false,
    });
    let mut reads = session(&engine, reading());
    let mut adds = session(&engine, adding(2, 1.0));
    let mut limited = Options { memory_limit: Some(BYTES), ..Options::default() };
    limited.timing = false;
    let mut limited = Session::new(adds.model(), &limited).unwrap();
    let mut encoder = encoder(&engine);
    engine.double(&mut encoder, &x);
    let mut refused = |session: &mut Session, input: RecordInput, place: Option<BufferSlice>| {
        let error = session.record(&mut encoder, &[input], &[place]).unwrap_err();
        (error.code(), error.to_string())
    };
    let text = "the run cannot be recorded: host code reads 1 bytes that kernel `add` writes";
    assert_eq!(refused(&mut reads, input(&x, 0), place(&y, 0)), ("R0023", text.to_owned()));
    assert_eq!(refused(&mut limited, input(&x, 0), place(&y, 0)).0, "R0009");
    assert_eq!(refused(&mut adds, input(&x, 0), place(&y, 4)).0, "R0016", "its place is too small");
    assert_eq!(refused(&mut adds, input(&x, 0), place(&read_only, 0)).0, "R0016", "no place for results");
    let shape = RecordInput::Buffer { dtype: DType::F32, shape: vec![LEN + 1], slice: BufferSlice::whole(&x) };
    assert_eq!(refused(&mut adds, shape, None).0, "R0008");
    let number = RecordInput::Scalar(HostTensor::from_f32(vec![], &[1.0]).unwrap());
    assert_eq!(refused(&mut adds, number, None).0, "R0016");
    assert_eq!(adds.record(&mut encoder, &[], &[None]).unwrap_err().code(), "R0007");
    assert_eq!(adds.record(&mut encoder, &[input(&x, 0)], &[]).unwrap_err().code(), "R0007");
    assert_eq!(BufferSlice::new(&x, 8..BYTES + 1).unwrap_err().code(), "R0016");
    // What the caller recorded before and records after is whole, and so is the session.
    adds.record(&mut encoder, &[input(&x, 0)], &[place(&y, 0)]).unwrap();
    engine.double(&mut encoder, &y);
    engine.queue.submit([encoder.finish()]);
    assert_eq!(engine.read(&y), ramp(0.0).iter().map(|v| 2.0 * (2.0 * v + 2.0)).collect::<Vec<_>>());
    assert_eq!(engine.uncaught(), 0);
    // The same program runs where it may wait.
    assert_eq!(reads.run(&[tensor_of(&ramp(0.0))]).unwrap()[0].to_f32().unwrap(), ramp(2.0));
}

#[test]
fn a_model_on_the_cpu_records_nothing() {
    let Some(engine) = engine() else { return };
    let mut code = Code::constants(&[0, 4]);
    let y = code.call(0, F::Alloc, &[1]);
    code.call(0, F::Result, &[0, y]);
    let mut variant = cpu_variant(vec![], &[]);
    variant.host = NativeCode::default();
    variant.host_data = code.0;
    let program = Arc::new(program(&[], &[1], variant));
    let mut session = Session::load(&cpu(), program, &Options::default()).unwrap();
    let error = session.record(&mut encoder(&engine), &[], &[None]).unwrap_err();
    assert_eq!(error, Error::Record { what: "its model is on the CPU".into() });
}

/// `result0 = arg0 + 1` in place, of a donated input of `bytes` bytes.
fn in_place(bytes: u64) -> Program {
    let mut program = adding(1, 1.0);
    program.signature.inputs[0] = TensorDesc { donated: true, ..tensor("x", bytes / 4) };
    program.signature.results[0] = tensor("y", bytes / 4);
    let mut code = Code::constants(&[0, bytes, LEN / 64, 1]);
    let (x, c) = (code.call(0, F::Input, &[0]), code.call(0, F::Constant, &[0]));
    for buffer in [x, c, x] {
        code.call(0, F::Arg, &[buffer, 0, 1]);
    }
    code.call(0, F::Dispatch, &[0, 2, 3, 3]);
    code.call(0, F::Result, &[0, x]);
    program.variants[0].host_data = code.0;
    program
}

/// State that is donated and returned stays in the caller's buffer: no copy, from call to call.
#[test]
fn donated_state_stays_where_it_is() {
    let Some(engine) = engine() else { return };
    let mut session = session(&engine, in_place(BYTES));
    let state = engine.buffer(&[vec![5.0; 64], ramp(0.0), vec![5.0; 64]].concat());
    for _ in 0..3 {
        let mut encoder = encoder(&engine);
        session.record(&mut encoder, &[input(&state, 256)], &[place(&state, 256)]).unwrap();
        session.record(&mut encoder, &[input(&state, 256)], &[place(&state, 256)]).unwrap();
        assert_eq!(session.stats().counts.copies, 0);
        engine.queue.submit([encoder.finish()]);
    }
    assert_eq!(engine.read(&state), [vec![5.0; 64], ramp(6.0), vec![5.0; 64]].concat());
}

/// A kernel that writes all that it is bound to: what lies behind donated state is not.
#[test]
fn nothing_behind_donated_state_is_written() {
    let Some(engine) = engine() else { return };
    let mut session = session(&engine, in_place(BYTES - 8));
    let state = engine.buffer(&ramp(0.0));
    let mut encoder = encoder(&engine);
    let slice = BufferSlice::new(&state, 0..BYTES - 8).unwrap();
    let given = RecordInput::Buffer { dtype: DType::F32, shape: vec![LEN - 2], slice: slice.clone() };
    session.record(&mut encoder, &[given], &[Some(slice)]).unwrap();
    engine.queue.submit([encoder.finish()]);
    let (changed, behind) = (&ramp(1.0)[..254], &ramp(0.0)[254..]);
    assert_eq!(engine.read(&state), [changed, behind].concat());
}

/// Offsets at which no kernel can be bound, and results that are not whole words.
#[test]
fn what_does_not_fit_a_binding_is_copied() {
    let Some(engine) = engine() else { return };
    let mut adds = session(&engine, adding(1, 1.0));
    let x = engine.buffer(&[vec![9.0; 3], ramp(4.0)].concat());
    let y = engine.buffer(&[7.0; LEN as usize + 5]);
    let mut commands = encoder(&engine);
    adds.record(&mut commands, &[input(&x, 12)], &[place(&y, 4)]).unwrap();
    engine.queue.submit([commands.finish()]);
    assert_eq!(engine.read(&y), [vec![7.0], ramp(5.0), vec![7.0; 4]].concat());
    assert_eq!(adds.stats().counts.copies, 2);
    // Five bytes to an odd place.
    let mut code = Code::constants(&[0, 5, 8, 0x0403_0201]);
    let t = code.call(0, F::Alloc, &[2]);
    code.call(0, F::Fill, &[t, 0, 2, 3]);
    code.call(0, F::Result, &[0, t]);
    let mut variant = gpu_variant(vec![], vec![]);
    variant.host = NativeCode::default();
    variant.host_data = code.0;
    let mut program = program(&[], &[1], variant);
    program.signature.results[0] = TensorDesc::tensor("y", DType::I8, vec![5]);
    let mut bytes = session(&engine, program);
    let z = engine.buffer(&[0.0; 4]);
    let mut commands = encoder(&engine);
    bytes.record(&mut commands, &[], &[place(&z, 3)]).unwrap();
    engine.queue.submit([commands.finish()]);
    let found: Vec<u8> = engine.read(&z).iter().flat_map(|v| v.to_le_bytes()).collect();
    assert_eq!(found, [0, 0, 0, 1, 2, 3, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
}

/// On a device without immediates scalars are in a buffer, and two recorded runs do not share their values.
#[test]
fn numbers_of_recorded_runs_are_their_own() {
    const SCALE: &str = "
        struct Numbers { factor: f32 }
        @group(0) @binding(0) var<storage, read> a: array<f32>;
        @group(0) @binding(1) var<storage, read_write> b: array<f32>;
        @group(0) @binding(2) var<uniform> numbers: Numbers;
        @compute @workgroup_size(64)
        fn scale(@builtin(global_invocation_id) id: vec3<u32>) { b[id.x] = numbers.factor * a[id.x]; }
    ";
    let Some(engine) = engine_with(|_| (wgpu::Features::empty(), wgpu::Limits::default())) else { return };
    let mut code = Code::constants(&[0, BYTES, LEN / 64, 1]);
    let (x, factor) = (code.call(0, F::Input, &[0]), code.call(0, F::InputScalar, &[3]));
    let y = code.call(0, F::Alloc, &[1]);
    code.call(0, F::Arg, &[x, 0, 1]);
    code.call(0, F::Arg, &[y, 0, 1]);
    code.call(0, F::Scalar, &[factor]);
    code.call(0, F::Dispatch, &[0, 2, 3, 3]);
    code.call(0, F::Result, &[0, y]);
    let mut kernel = gpu_kernel("scale", SCALE, &[Access::Read, Access::Write]);
    if let Kernel::Gpu(kernel) = &mut kernel {
        kernel.scalars = vec![4];
    }
    let mut variant = gpu_variant(vec![], vec![kernel]);
    variant.host = NativeCode::default();
    variant.host_data = code.0;
    let mut program = program(&[LEN, 0], &[LEN], variant);
    program.signature.inputs[1] =
        TensorDesc { name: "factor".into(), dtype: DType::F32, shape: vec![], donated: false, scalar: true };
    let mut session = session(&engine, program);
    let number = |value: f32| HostTensor::from_f32(vec![], &[value]).unwrap();
    let x = engine.buffer(&ramp(1.0));
    let places = [engine.buffer(&ramp(0.0)), engine.buffer(&ramp(0.0))];
    let mut commands = [2.0, 3.0].iter().zip(&places).map(|(factor, y)| {
        let mut encoder = encoder(&engine);
        let inputs = [input(&x, 0), RecordInput::Scalar(number(*factor))];
        session.record(&mut encoder, &inputs, &[place(y, 0)]).unwrap();
        encoder.finish()
    });
    let (first, second) = (commands.next().unwrap(), commands.next().unwrap());
    drop(commands);
    engine.queue.submit([second]);
    let y = session.run(&[tensor_of(&ramp(1.0)), number(5.0)]).unwrap()[0].to_f32().unwrap();
    engine.queue.submit([first]);
    let scaled = |factor: f32| ramp(1.0).iter().map(|v| factor * v).collect::<Vec<_>>();
    assert_eq!(y, scaled(5.0));
    assert_eq!(places.each_ref().map(|y| engine.read(y)), [scaled(2.0), scaled(3.0)]);
    assert_eq!(engine.uncaught(), 0);
}
