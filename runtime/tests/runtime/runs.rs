//! Submitted runs: in flight together, awaited, given up, cancelled; the session works on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use monopour_contract::RuntimeFunction as F;
use monopour_program::host::{HostBlock, HostOp};
use monopour_program::*;
use monopour_runtime::{HostTensor, Options, Run, Session};

use crate::engine::*;
use crate::memory::resident_bytes;
use crate::support::*;
use crate::trust::trusted;

/// Time in which `cancel` and a wait with a limit return, and a cancelled run ends, beside the task that runs.
const PROMPT: Duration = Duration::from_millis(100);

fn values(session: &mut Session, run: &Run) -> Vec<f32> {
    let results = run.wait(None).unwrap();
    session.readback(&results).unwrap()[0].to_f32().unwrap()
}

/// Waits on a machine that others load are long now and then: one of five tries has to be prompt.
fn try_prompt(mut scenario: impl FnMut() -> Vec<(&'static str, Duration)>) {
    let mut found = Vec::new();
    for _ in 0..5 {
        found = scenario();
        if found.iter().all(|(_, took)| *took < PROMPT) {
            return;
        }
    }
    panic!("{found:?}");
}

#[test]
fn several_runs_are_in_flight_on_a_gpu() {
    let Some(device) = gpu() else { return };
    let model = model(&device, adding(50, 1.0));
    let mut session = Session::new(&model, &Options::default()).unwrap();
    for _ in 0..3 {
        let given: Vec<_> = (0..8).map(|n| session.upload(&[tensor_of(&ramp(n as f32))]).unwrap()).collect();
        let runs: Vec<Run> = given.iter().map(|x| session.submit(x).unwrap()).collect();
        // Others come between.
        let between = session.run(&[tensor_of(&ramp(100.0))]).unwrap();
        assert_eq!(between[0].to_f32().unwrap(), ramp(150.0));
        for (n, run) in runs.iter().enumerate().rev() {
            assert_eq!(values(&mut session, run), ramp(n as f32 + 50.0));
            assert!(run.is_done());
            assert_eq!(run.wait(None).unwrap_err().code(), "R0016", "its results were taken");
        }
    }
    let x = session.upload(&[tensor_of(&ramp(0.0))]).unwrap();
    let results = pollster::block_on(session.submit(&x).unwrap()).unwrap();
    assert_eq!(session.readback(&results).unwrap()[0].to_f32().unwrap(), ramp(50.0));
    let steady = session.stats().steady_state;
    assert_eq!((steady.buffers_created, steady.pipelines_created), (0, 0));
    // Runs that no one waits for end too.
    drop(session.submit(&x).unwrap());
    drop((x, results));
    assert!(session.close().is_clean());
}

/// More dispatches than are recorded at once, and than bind groups are kept for; and a loop, whose length its text does not say.
#[test]
fn a_long_run_is_submitted_in_parts() {
    let Some(device) = gpu() else { return };
    for (dispatches, in_text, submits) in [(65_536, 65_536, 1..=1), (65_537, 65_537, 2..=2), (30_000, 1, 3..=1_000)] {
        let mut program = adding(dispatches, 1.0);
        program.variants[0].dispatches = vec![in_text];
        let mut session = Session::new(&model(&device, program), &Options::default()).unwrap();
        for from in [0.0, 7.0] {
            let results = session.run(&[tensor_of(&ramp(from))]).unwrap();
            assert_eq!(results[0].to_f32().unwrap(), ramp(from + dispatches as f32));
        }
        let counts = session.stats().counts;
        assert!(counts.dispatches == dispatches && submits.contains(&counts.submits), "{in_text}: {counts:?}");
        assert_eq!(session.stats().steady_state.bind_groups_created, 0);
        assert!(session.close().is_clean());
    }
}

#[test]
fn faults_of_a_run_are_its_own() {
    let Some(device) = gpu() else { return };
    let model = model(&device, adding(3, 1.0));
    let limited = Options { memory_limit: Some(4 * BYTES), ..Options::default() };
    let mut session = Session::new(&model, &limited).unwrap();
    let x = session.upload(&[tensor_of(&ramp(0.0))]).unwrap();
    assert_eq!(session.submit(&[]).unwrap_err().code(), "R0007");
    let first = session.submit(&x).unwrap();
    let kept = first.wait(None).unwrap();
    assert_eq!(session.submit(&x).unwrap().wait(None).unwrap_err().code(), "R0009");
    drop(kept);
    let again = session.submit(&x).unwrap();
    again.wait(None).unwrap();
}

/// A run of about a second on a GPU: many dispatches that each take some milliseconds.
fn slow_program() -> Program {
    let mut program = adding(40, 1.0);
    let Kernel::Gpu(kernel) = &mut program.variants[0].kernels[0] else { unreachable!() };
    let slow = "var s = id.x; for (var i = 0u; i < 400000u; i++) { s = s * 1664525u + (i ^ (s >> 7u)); }
        if (id.x < arrayLength(&c)) { c[id.x] = a[id.x] + b[id.x]; if (s == 12345u) { c[id.x] = -1.0; } }";
    let fast = "if (id.x < arrayLength(&c)) { c[id.x] = a[id.x] + b[id.x]; }";
    assert!(kernel.wgsl.contains(fast));
    kernel.wgsl = kernel.wgsl.replace(fast, slow);
    program
}

#[test]
fn a_run_on_a_gpu_is_given_up_and_the_session_works_on() {
    let Some(device) = gpu() else { return };
    let model = model(&device, slow_program());
    let mut session = Session::new(&model, &Options::default()).unwrap();
    let x = session.upload(&[tensor_of(&ramp(0.0))]).unwrap();
    let start = Instant::now();
    session.execute(&x).unwrap();
    let alone = start.elapsed();
    try_prompt(|| {
        let runs: Vec<Run> = (0..12).map(|_| session.submit(&x).unwrap()).collect();
        let start = Instant::now();
        let waited = Duration::from_millis(5);
        assert_eq!(runs[0].wait(Some(waited)).unwrap_err().code(), "R0024");
        let given_up = start.elapsed();
        assert!(given_up >= waited);
        let start = Instant::now();
        for run in &runs[..11] {
            run.cancel();
            assert_eq!(run.wait(None).unwrap_err().code(), "R0025");
        }
        let cancelled = start.elapsed();
        // What was submitted runs to its end; what had not begun does not run.
        assert_eq!(values(&mut session, &runs[11]), ramp(40.0));
        assert!(start.elapsed() < alone * 8, "{:?}, one run takes {alone:?}", start.elapsed());
        vec![("a wait of 5 ms", given_up), ("eleven cancellations", cancelled)]
    });
    drop(x);
    assert!(session.close().is_clean());
}

/// `result0 = arg0 + 1` by 400 tasks of about a millisecond or more each.
fn slow_on_cpu() -> Option<Arc<Program>> {
    let object = compile_c(
        "void slow(void *const *args, const i64 *ids) {
           const float *x = args[0]; float *y = args[1];
           volatile unsigned s = 0;
           for (unsigned i = 0; i < 2000000; ++i) s = s * 1664525u + i;
           y[ids[0]] = x[ids[0]] + 1.0f;
         }
         void entry(i64 cx) {
           i64 r = alloc(1600);
           arg(input(0), 0, 1600); arg(r, 0, 1600); dispatch(0, 400, 1, 1);
           result(0, r);
         }",
        &["-fPIC"],
    )?;
    Some(trusted(program(&[400], &[400], cpu_variant(object, &[("slow", 2, 1)]))))
}

#[test]
fn a_run_on_the_cpu_ends_with_the_tasks_that_run() {
    let Some(program) = slow_on_cpu() else { return };
    for threads in [1, 2] {
        let options = Options { threads, ..Options::default() };
        let mut session = Session::load(&cpu(), program.clone(), &options).unwrap();
        let given: Vec<f32> = (0..400).map(|i| i as f32).collect();
        let x = session.upload(&[tensor_of(&given)]).unwrap();
        let expected: Vec<f32> = given.iter().map(|v| v + 1.0).collect();
        try_prompt(|| {
            let (first, second) = (session.submit(&x).unwrap(), session.submit(&x).unwrap());
            let start = Instant::now();
            assert_eq!(first.wait(Some(Duration::from_millis(20))).unwrap_err().code(), "R0024");
            let given_up = start.elapsed();
            let start = Instant::now();
            first.cancel();
            second.cancel();
            assert_eq!(first.wait(None).unwrap_err().code(), "R0025");
            assert_eq!(second.wait(None).unwrap_err().code(), "R0025");
            let cancelled = start.elapsed();
            // An upload needs the session: both runs are over.
            let y = session.upload(&[tensor_of(&given)]).unwrap();
            let over = start.elapsed();
            let third = session.submit(&y).unwrap();
            assert_eq!(values(&mut session, &third), expected);
            vec![("a wait of 20 ms", given_up), ("cancelling", cancelled), ("the end of the runs", over)]
        });
        drop(x);
        assert!(session.close().is_clean());
    }
}

/// Host code that counts for hours, and calls nothing.
#[test]
fn a_loop_of_host_code_is_cancelled() {
    let mut code = Code::constants(&[0, 1 << 60, 1, 4]);
    let counter = code.register(INT);
    let body = code.block(HostBlock { arguments: vec![counter], ..HostBlock::default() });
    let (lower, upper, step) = (0, 1, 2);
    let (inits, results) = (vec![], vec![]);
    code.add(0, HostOp::For { is_unsigned: false, lower, upper, step, inits, body, results, location: None });
    let y = code.call(0, F::Alloc, &[3]);
    code.call(0, F::Result, &[0, y]);
    let mut variant = cpu_variant(vec![], &[]);
    variant.host = NativeCode::default();
    variant.host_data = code.0;
    let options = Options { host_steps: Some(u64::MAX), ..Options::default() };
    let mut session = Session::load(&cpu(), Arc::new(program(&[], &[1], variant)), &options).unwrap();
    try_prompt(|| {
        let run = session.submit(&[]).unwrap();
        assert_eq!(run.wait(Some(Duration::from_millis(30))).unwrap_err().code(), "R0024");
        let start = Instant::now();
        run.cancel();
        assert_eq!(run.wait(None).unwrap_err().code(), "R0025");
        assert_eq!(session.upload(&[]).map(|inputs| inputs.len()), Ok(0));
        vec![("the end of the loop", start.elapsed())]
    });
    assert!(session.close().is_clean());
}

/// Two threads with two sessions each of one model, every run with values of its own.
#[test]
fn sessions_on_threads_keep_their_values_apart() {
    let Some(device) = gpu() else { return };
    let model = model(&device, adding(4, 0.25));
    let seconds = if std::env::var_os("MONOPOUR_TEST_FULL").is_some_and(|v| v == "1") { 300 } else { 1 };
    let end = Instant::now() + Duration::from_secs(seconds);
    let work = |thread: u32| {
        let mut sessions: Vec<_> = (0..4).map(|_| Session::new(&model, &Options::default()).unwrap()).collect();
        let (mut turn, mut resident) = (0u32, 0);
        while Instant::now() < end {
            let from = |at: usize| (thread * 5000 + turn % 1000 * 4 + at as u32) as f32;
            let inputs: Vec<HostTensor> = (0..4).map(|at| tensor_of(&ramp(from(at)))).collect();
            let mut runs = Vec::new();
            for (session, x) in sessions.iter_mut().zip(&inputs) {
                let x = session.upload(std::slice::from_ref(x)).unwrap();
                runs.push(session.submit(&x).unwrap());
            }
            for (at, (session, run)) in sessions.iter_mut().zip(&runs).enumerate() {
                assert_eq!(values(session, run), ramp(from(at) + 1.0));
            }
            turn += 1;
            if turn == 1000 {
                resident = resident_bytes();
            }
        }
        println!("{turn} turns; resident {resident} bytes after 1,000, {} at the end", resident_bytes());
        for session in sessions {
            assert!(turn < 3 || session.stats().steady_state.buffers_created == 0);
            assert!(session.close().is_clean());
        }
        turn
    };
    let work = &work;
    let turns = std::thread::scope(|scope| [0, 1].map(|thread| scope.spawn(move || work(thread))).map(|t| t.join()));
    assert!(turns.into_iter().all(|turns| turns.unwrap() > 0));
    assert_eq!(model.used_bytes(), BYTES);
}
