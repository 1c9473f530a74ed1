//! Runs that are spread over time: as far as they are allowed, and no further.

use std::sync::Arc;
use std::time::Duration;

use monopour_runtime::{Options, Run, Session};

use crate::engine::*;
use crate::support::*;
use crate::trust::trusted;

fn values(session: &mut Session, run: &Run) -> Vec<f32> {
    let results = run.wait(None).unwrap();
    session.readback(&results).unwrap()[0].to_f32().unwrap()
}

/// Each frame the engine has dispatches of its own before and after those of the run.
#[test]
fn an_engine_spreads_a_run_over_frames() {
    let Some(engine) = engine() else { return };
    let scope = engine.device.push_error_scope(wgpu::ErrorFilter::Validation);
    let model = model(&engine.device(), adding(10, 0.5));
    let mut session = Session::new(&model, &Options::default()).unwrap();
    let mut other = Session::new(&model, &Options::default()).unwrap();
    let own = engine.buffer(&[1.0; 64]);
    for turn in 0..3u8 {
        let x = session.upload(&[tensor_of(&ramp(f32::from(turn)))]).unwrap();
        let run = session.begin(&x).unwrap();
        assert!(run.advance(0) && !run.is_done());
        // Dispatches 1 to 9 in four frames, each with a submission; the fifth makes the last.
        for allowed in [2, 3, 1, 3] {
            let before = engine.submissions();
            let mut encoder = engine.device.create_command_encoder(&Default::default());
            engine.double(&mut encoder, &own);
            engine.queue.submit([encoder.finish()]);
            assert!(run.advance(allowed) && !run.is_done());
            // The engine's, and the one of counting.
            assert_eq!(engine.submissions(), before + 3);
            // Meanwhile another session of the model has its runs.
            let y = other.run(&[tensor_of(&ramp(40.0))]).unwrap();
            assert_eq!(y[0].to_f32().unwrap(), ramp(45.0));
        }
        assert!(!run.advance(100) && !run.advance(1));
        assert_eq!(values(&mut session, &run), ramp(f32::from(turn) + 5.0));
        assert_eq!(session.stats().counts.submits, 5);
        let steady = session.stats().steady_state;
        assert!(turn == 0 || (steady.buffers_created, steady.bind_groups_created) == (0, 0));
    }
    assert_eq!(engine.read(&own), [4096.0; 64]);
    assert!(pollster::block_on(scope.pop()).is_none());
    assert_eq!(engine.uncaught(), 0);
    assert!(session.close().is_clean() && other.close().is_clean());
}

/// Whatever comes next lets the run go on: nothing waits for ever.
#[test]
fn a_run_that_was_begun_holds_no_one_up() {
    let Some(device) = gpu() else { return };
    let mut session = Session::load(&device, Arc::new(adding(6, 1.0)), &Options::default()).unwrap();
    let x = session.upload(&[tensor_of(&ramp(0.0))]).unwrap();
    // Earlier runs come first, later ones do not wait for frames.
    let earlier = session.submit(&x).unwrap();
    let run = session.begin(&x).unwrap();
    assert!(run.advance(2));
    assert_eq!(earlier.wait(Some(Duration::from_secs(60))).map(|results| results.len()), Ok(1));
    let later = session.submit(&x).unwrap();
    assert_eq!(values(&mut session, &later), ramp(6.0));
    assert_eq!(values(&mut session, &run), ramp(6.0));
    // A wait, a future, another call, a drop.
    let run = session.begin(&x).unwrap();
    assert_eq!(values(&mut session, &run), ramp(6.0));
    let run = session.begin(&x).unwrap();
    assert!(run.advance(1));
    assert_eq!(run.wait(Some(Duration::from_secs(60))).map(|results| results.len()), Ok(1));
    let run = session.begin(&x).unwrap();
    assert_eq!(pollster::block_on(run).map(|results| results.len()), Ok(1));
    let run = session.begin(&x).unwrap();
    assert!(run.advance(3));
    assert_eq!(session.execute(&x).map(|results| results.len()), Ok(1));
    assert_eq!(values(&mut session, &run), ramp(6.0));
    drop(session.begin(&x).unwrap());
    // A run that was given up makes no further dispatch.
    let run = session.begin(&x).unwrap();
    assert!(run.advance(1));
    run.cancel();
    assert!(!run.advance(1));
    assert_eq!(run.wait(None).unwrap_err().code(), "R0025");
    assert!(!session.submit(&x).unwrap().advance(1));
    let kept = session.begin(&x).unwrap();
    assert!(kept.advance(1));
    drop(x);
    session.close();
    assert!(kept.is_done());
}

/// Each of three kernels in turn adds 1, so that a result tells how many have run.
#[test]
fn on_the_cpu_the_dispatches_that_are_allowed_are_done() {
    let object = compile_c(
        "void add(void *const *args, const i64 *ids) {
           const float *x = args[0]; float *y = args[1];
           for (i64 i = 0; i < 4; ++i) y[4 * ids[0] + i] = x[4 * ids[0] + i] + 1.0f;
         }
         void entry(i64 cx) {
           i64 a = alloc(64), b = alloc(64);
           arg(input(0), 0, 64); arg(a, 0, 64); dispatch(0, 4, 1, 1);
           arg(a, 0, 64); arg(b, 0, 64); dispatch(0, 4, 1, 1);
           arg(b, 0, 64); arg(a, 0, 64); dispatch(0, 4, 1, 1);
           release(b); result(0, a);
         }",
        &["-fPIC"],
    );
    let Some(object) = object else { return };
    let program = trusted(program(&[16], &[16], cpu_variant(object, &[("add", 2, 1)])));
    let mut session = Session::load(&cpu(), program, &Options::default()).unwrap();
    let x = session.upload(&[tensor_of(&[1.0; 16])]).unwrap();
    let run = session.begin(&x).unwrap();
    assert!(run.advance(1) && run.advance(1) && !run.is_done());
    assert!(!run.advance(1));
    assert_eq!(values(&mut session, &run), [4.0; 16]);
    assert_eq!((session.stats().counts.dispatches, session.stats().first_run_ms), (3, None), "its time is no one's");
    drop(x);
    assert!(session.close().is_clean());
}
