//! A guest on the caller's device: constants once, others' scopes and callbacks intact.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use monopour_contract::RuntimeFunction as F;
use monopour_program::*;
use monopour_runtime::{BufferSlice, Device, Error, HostTensor, Model, Options, RecordInput, Session, wgpu};

use crate::engine::*;
use crate::support::{Code, gpu};

#[test]
fn sessions_share_kernels_and_constants_of_their_model() {
    let Some(engine) = engine() else { return };
    let device = engine.device();
    let model = model(&device, adding(3, 0.5));
    let (constants, built) = (device.used_bytes(), device.internal_counters().unwrap());
    assert_eq!(constants, BYTES);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let model = &model;
            scope.spawn(move || {
                let mut sessions = [0, 1].map(|_| Session::new(model, &Options::default()).unwrap());
                for turn in 0..20 {
                    let x = ramp((thread * 100 + turn) as f32);
                    for session in &mut sessions {
                        let y = session.run(&[tensor_of(&x)]).unwrap()[0].to_f32().unwrap();
                        assert_eq!(y, x.iter().map(|v| v + 1.5).collect::<Vec<_>>());
                    }
                }
                for session in sessions {
                    let stats = session.stats();
                    assert_eq!(stats.steady_state.buffers_created, 0);
                    // An arena, an input, a result, and what brings the result back.
                    assert_eq!(stats.peak_device_bytes, 5 * BYTES);
                    assert!(session.close().is_clean());
                }
            });
        }
    });
    assert_eq!(device.used_bytes(), constants);
    assert_eq!(device.internal_counters().unwrap().compute_pipelines, built.compute_pipelines);
    drop(model);
    assert_eq!((device.used_bytes(), engine.uncaught()), (0, 0));
}

/// A tensor of one session is an input of another, whose own buffers have other ids.
#[test]
fn tensors_pass_between_sessions() {
    let Some(device) = gpu() else { return };
    let model = model(&device, adding(1, 1.0));
    let [mut a, mut b] = [0, 1].map(|_| Session::new(&model, &Options::default()).unwrap());
    for turn in 0..4 {
        let x = ramp(turn as f32);
        let from_a = a.upload(&[tensor_of(&x)]).unwrap();
        let in_b = b.upload(&[tensor_of(&ramp(-1000.0))]).unwrap();
        let (y, own) = (b.execute(&from_a).unwrap(), b.execute(&in_b).unwrap());
        let z = a.execute(&y).unwrap();
        assert_eq!(a.readback(&z).unwrap()[0].to_f32().unwrap(), x.iter().map(|v| v + 2.0).collect::<Vec<_>>());
        assert_eq!(b.readback(&own).unwrap()[0].to_f32().unwrap(), ramp(-999.0));
    }
}

#[test]
fn limits_count_for_a_session_a_model_and_a_device() {
    let Some(engine) = engine() else { return };
    let device = engine.device();
    let run = |session: &mut Session| session.run(&[tensor_of(&ramp(0.0))]).map(|_| ());
    let model = model(&device, adding(2, 1.0));
    let small = Options { memory_limit: Some(4 * BYTES), ..Options::default() };
    let mut limited = Session::new(&model, &small).unwrap();
    let error = run(&mut limited).unwrap_err();
    assert_eq!(error, Error::MemoryLimit { asked_bytes: BYTES, used_bytes: 4 * BYTES, limit_bytes: 4 * BYTES });
    let mut free = Session::new(&model, &Options::default()).unwrap();
    run(&mut free).unwrap();
    device.limit_memory(Some(device.used_bytes()));
    assert_eq!(run(&mut free), Ok(()), "a warm run takes nothing");
    let mut late = Session::new(&model, &Options::default()).unwrap();
    assert_eq!(run(&mut late).unwrap_err().code(), "R0009");
    device.limit_memory(None);
    run(&mut late).unwrap();
    assert_eq!(engine.uncaught(), 0);
}

#[test]
fn a_device_without_what_a_program_needs_is_a_typed_error() {
    let small = wgpu::Limits { max_storage_buffers_per_shader_stage: 2, ..wgpu::Limits::downlevel_defaults() };
    let Some(engine) = engine_with(|_| (wgpu::Features::empty(), small)) else { return };
    let device = engine.device();
    assert!(device.description().unwrap().features.is_empty());
    let load = |program: Program| Model::load(&device, Arc::new(program), &Options::default()).map(|_| ()).unwrap_err();
    // What the program states is checked by its variant's requirements, what it does not by its kernels.
    assert_eq!(load(adding(1, 1.0)).code(), "R0015");
    let mut needs = adding(1, 1.0);
    let Target::Gpu(target) = &mut needs.variants[0].target else { unreachable!() };
    target.requires.features.push(GpuFeature::F64);
    let error = load(needs);
    assert!(error.code() == "R0004" && error.to_string().contains("f64"), "{error}");
    let none = wgpu::Limits { max_storage_buffers_per_shader_stage: 0, ..wgpu::Limits::downlevel_webgl2_defaults() };
    let Some(engine) = engine_with(|_| (wgpu::Features::empty(), none)) else { return };
    let error = Device::from_wgpu(engine.device.clone(), engine.queue.clone()).unwrap_err();
    assert_eq!(error.code(), "R0015", "{error}");
    assert_eq!((engine.uncaught(), engine.lost.load(Ordering::Relaxed)), (0, 0));
}

#[test]
fn the_callers_scopes_and_callbacks_see_its_own_errors_only() {
    let Some(engine) = engine() else { return };
    let device = engine.device();
    let mut session = Session::new(&model(&device, adding(2, 1.0)), &Options::default()).unwrap();
    let scope = engine.device.push_error_scope(wgpu::ErrorFilter::Validation);
    engine.mistake();
    // A callback of the caller that runs while ours waits, and makes a mistake, which the caller's scope gets.
    let called = Arc::new(AtomicUsize::new(0));
    let (count, again) = (called.clone(), engine.device.clone());
    engine.queue.submit([]);
    engine.queue.on_submitted_work_done(move || {
        count.fetch_add(1, Ordering::Relaxed);
        let wrong = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::STORAGE;
        let size = again.limits().max_buffer_size + 4;
        let _ =
            again.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage: wrong, mapped_at_creation: false });
    });
    let y = session.run(&[tensor_of(&ramp(0.0))]).unwrap()[0].to_f32().unwrap();
    assert_eq!(y, ramp(2.0));
    assert_eq!(called.load(Ordering::Relaxed), 1);
    assert!(pollster::block_on(scope.pop()).is_some());
    assert_eq!(engine.uncaught(), 0);
    engine.mistake();
    assert_eq!(engine.uncaught(), 1, "the caller's handler is still its own");
    // Faults of ours are ours.
    let limited = Options { memory_limit: Some(BYTES), ..Options::default() };
    let mut limited = Session::new(session.model(), &limited).unwrap();
    assert_eq!(limited.run(&[tensor_of(&ramp(0.0))]).unwrap_err().code(), "R0009");
    assert_eq!((engine.uncaught(), engine.lost.load(Ordering::Relaxed)), (1, 0));
    engine.device.destroy();
    assert_eq!(session.run(&[tensor_of(&ramp(0.0))]).unwrap_err().code(), "R0012");
    let _ = engine.device.poll(wgpu::PollType::Poll);
    assert_eq!((engine.uncaught(), engine.lost.load(Ordering::Relaxed)), (1, 1));
}

/// What a fault of ours must not touch: the engine's own dispatches, scopes and callbacks around it.
fn check_intact(engine: &Engine, what: &str, fault: impl FnOnce()) {
    let buffer = engine.buffer(&ramp(3.0));
    let called = Arc::new(AtomicUsize::new(0));
    let scopes = [wgpu::ErrorFilter::OutOfMemory, wgpu::ErrorFilter::Internal, wgpu::ErrorFilter::Validation]
        .map(|filter| engine.device.push_error_scope(filter));
    let own_work = || {
        let mut encoder = engine.device.create_command_encoder(&Default::default());
        engine.double(&mut encoder, &buffer);
        engine.queue.submit([encoder.finish()]);
        let count = called.clone();
        engine.queue.on_submitted_work_done(move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
    };
    own_work();
    fault();
    own_work();
    assert_eq!(engine.read(&buffer), ramp(3.0).iter().map(|v| 4.0 * v).collect::<Vec<_>>(), "{what}");
    assert_eq!(called.load(Ordering::Relaxed), 2, "{what}: its callbacks");
    for scope in scopes.into_iter().rev() {
        let error = pollster::block_on(scope.pop());
        assert!(error.is_none(), "{what}: {error:?}");
    }
    assert_eq!(engine.uncaught(), 0, "{what}: {:?}", engine.uncaught);
    // And the handler is still the engine's.
    engine.mistake();
    assert_eq!(engine.uncaught.lock().unwrap().drain(..).count(), 1, "{what}: its handler");
}

/// `adding(2, 1.0)` that traps at its end.
fn trapping() -> Program {
    let mut program = adding(2, 1.0);
    let mut code = Code(std::mem::take(&mut program.variants[0].host_data));
    code.call(0, F::Trap, &[3]);
    program.variants[0].host_data = code.0;
    program
}

#[test]
fn an_engine_is_intact_after_each_fault() {
    let Some(engine) = engine() else { return };
    let device = engine.device();
    let model = model(&device, adding(3, 1.0));
    let mut session = Session::new(&model, &Options::default()).unwrap();
    let x = || [tensor_of(&ramp(0.0))];
    let code = |outcome: Result<Vec<HostTensor>, Error>| outcome.unwrap_err().code();
    check_intact(&engine, "no fault", || {
        assert_eq!(session.run(&x()).unwrap()[0].to_f32().unwrap(), ramp(3.0));
    });
    check_intact(&engine, "a limit of memory", || {
        let limited = Options { memory_limit: Some(2 * BYTES), ..Options::default() };
        assert_eq!(code(Session::new(&model, &limited).unwrap().run(&x())), "R0009");
    });
    check_intact(&engine, "a trap", || {
        let mut session = Session::load(&device, Arc::new(trapping()), &Options::default()).unwrap();
        assert_eq!(code(session.run(&x())), "R0019");
    });
    check_intact(&engine, "a limit of steps", || {
        let limited = Options { host_steps: Some(40), ..Options::default() };
        assert_eq!(code(Session::new(&model, &limited).unwrap().run(&x())), "R0022");
    });
    for (what, from, to) in [("WGSL that is wrong", "vec3<u32>", "vec3<i31>"), ("a workgroup", "(64)", "(65536)")] {
        check_intact(&engine, what, || {
            let mut program = adding(2, 1.0);
            let Kernel::Gpu(kernel) = &mut program.variants[0].kernels[0] else { unreachable!() };
            kernel.wgsl = kernel.wgsl.replace(from, to);
            if to == "(65536)" {
                kernel.workgroup_size = [65536, 1, 1];
            }
            let error = Model::load(&device, Arc::new(program), &Options::default()).unwrap_err();
            assert_eq!(error.code(), "R0021", "{error}");
        });
    }
    check_intact(&engine, "a buffer too large for the device", || {
        let mut program = adding(2, 1.0);
        // The size of the arena.
        program.variants[0].host_data.constants[4].bits = engine.device.limits().max_buffer_size + 1;
        let mut session = Session::load(&device, Arc::new(program), &Options::default()).unwrap();
        assert_eq!(code(session.run(&x())), "R0015");
    });
    check_intact(&engine, "a cancelled run", || {
        let x = session.upload(&x()).unwrap();
        let runs = [0; 8].map(|_| session.submit(&x).unwrap());
        runs.iter().for_each(monopour_runtime::Run::cancel);
        assert_eq!(runs[7].wait(None).unwrap_err().code(), "R0025");
    });
    check_intact(&engine, "a panic in a callback that runs while ours waits", || {
        engine.queue.submit([]);
        engine.queue.on_submitted_work_done(|| panic!("the engine's own"));
        let panics = || session.run(&x()).map(|_| ());
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics));
        assert_eq!(outcome.unwrap_err().downcast_ref::<&str>(), Some(&"the engine's own"));
    });
    check_intact(&engine, "no fault, again", || {
        assert_eq!(session.run(&x()).unwrap()[0].to_f32().unwrap(), ramp(3.0));
    });
    assert!(session.close().is_clean());
}

/// A buffer that the caller destroys under a recorded run is the caller's error; a lost device is no end of the next one.
#[test]
fn what_the_caller_destroys_is_its_own_error() {
    let Some(engine) = engine() else { return };
    let model = model(&engine.device(), adding(1, 1.0));
    let mut session = Session::new(&model, &Options::default()).unwrap();
    let (x, y) = (engine.buffer(&ramp(0.0)), engine.buffer(&ramp(0.0)));
    let mut encoder = engine.device.create_command_encoder(&Default::default());
    let slice = BufferSlice::whole(&x);
    let input = RecordInput::Buffer { dtype: DType::F32, shape: vec![LEN], slice };
    session.record(&mut encoder, &[input], &[Some(BufferSlice::whole(&y))]).unwrap();
    x.destroy();
    let scope = engine.device.push_error_scope(wgpu::ErrorFilter::Validation);
    engine.queue.submit([encoder.finish()]);
    assert!(pollster::block_on(scope.pop()).is_some());
    assert_eq!(session.run(&[tensor_of(&ramp(0.0))]).unwrap()[0].to_f32().unwrap(), ramp(1.0));
    engine.device.destroy();
    let error = session.run(&[tensor_of(&ramp(0.0))]).unwrap_err();
    assert_eq!(error.code(), "R0012", "{error}");
    let mut run = session.submit(&[]).unwrap_err();
    assert_eq!(run.code(), "R0007");
    run = Model::load(&engine.device(), model.program().clone(), &Options::default()).unwrap_err();
    assert_eq!(run.code(), "R0012", "{run}");
    let next = self::engine().unwrap();
    let mut session = Session::load(&next.device(), model.program().clone(), &Options::default()).unwrap();
    assert_eq!(session.run(&[tensor_of(&ramp(0.0))]).unwrap()[0].to_f32().unwrap(), ramp(1.0));
    assert_eq!((engine.uncaught(), next.uncaught()), (0, 0));
}
