//! Memory and threads that the caller lends.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use monopour_program::*;
use monopour_runtime::{HostSlice, Options, Session, TaskPool};

use crate::engine::*;
use crate::support::*;
use crate::trust::trusted;

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn slice<'a>(shape: &'a [u64], data: &'a [u8]) -> HostSlice<'a> {
    HostSlice::new(DType::F32, shape, data).unwrap()
}

/// `result0 = arg0 + 1` by 64 tasks, `result1 = 7`.
fn on_the_cpu() -> Option<Program> {
    let object = compile_c(
        "i64 monopour_rt_result_scalar(i64, i64, i64);
         void add(void *const *args, const i64 *ids) {
           const float *x = args[0]; float *y = args[1];
           for (i64 i = 4 * ids[0]; i < 4 * ids[0] + 4; ++i) y[i] = x[i] + 1.0f;
         }
         void entry(i64 cx) {
           i64 y = alloc(1024);
           arg(input(0), 0, 1024); arg(y, 0, 1024); dispatch(0, 64, 1, 1);
           result(0, y); monopour_rt_result_scalar(cx, 1, 7);
         }",
        &["-fPIC"],
    )?;
    let mut program = program(&[LEN], &[LEN], cpu_variant(object, &[("add", 2, 1)]));
    let number = TensorDesc { name: "n".into(), dtype: DType::I32, shape: vec![], donated: false, scalar: true };
    program.signature.results.push(number);
    Some(program)
}

fn check_slices(session: &mut Session, added: f32, has_number: bool) {
    let mut place = vec![9; BYTES as usize + 3];
    let mut number = [9; 5];
    for turn in 0..3u8 {
        let x = bytes(&ramp(f32::from(turn)));
        let mut places: Vec<&mut [u8]> = vec![&mut place, &mut number];
        places.truncate(1 + usize::from(has_number));
        let sizes = session.run_into(&[slice(&[LEN], &x)], &mut places).unwrap();
        assert_eq!(sizes, [vec![LEN], vec![]][..1 + usize::from(has_number)]);
        assert_eq!(place[..BYTES as usize], bytes(&ramp(f32::from(turn) + added)));
        assert_eq!(place[BYTES as usize..], [9; 3], "behind a result nothing is written");
        assert_eq!(number, if has_number { [7, 0, 0, 0, 9] } else { [9; 5] });
    }
    let steady = session.stats().steady_state;
    assert_eq!((steady.buffers_created, steady.bind_groups_created), (0, 0));
    let x = bytes(&ramp(0.0));
    let code = |session: &mut Session, x: HostSlice<'_>, places: &mut [&mut [u8]]| {
        session.run_into(&[x], places).unwrap_err().code()
    };
    assert_eq!(code(session, slice(&[LEN], &x), &mut []), "R0007");
    let mut short = vec![5; BYTES as usize - 1];
    let mut places: Vec<&mut [u8]> = vec![&mut short, &mut number];
    places.truncate(1 + usize::from(has_number));
    assert_eq!(code(session, slice(&[LEN], &x), &mut places), "R0016");
    assert_eq!(code(session, slice(&[1], &x[..4]), &mut places), "R0008");
    assert!(short.iter().all(|byte| *byte == 5));
    assert_eq!(HostSlice::new(DType::F32, &[2], &x[..7]).unwrap_err().code(), "R0016");
    assert_eq!(HostSlice::new(DType::F32, &[u64::MAX, u64::MAX], &x).unwrap_err().code(), "R0016");
}

#[test]
fn runs_are_between_the_callers_slices() {
    if let Some(program) = on_the_cpu() {
        let mut session = Session::load(&cpu(), trusted(program), &Options::default()).unwrap();
        check_slices(&mut session, 1.0, true);
        assert!(session.close().is_clean());
    }
    let Some(device) = gpu() else { return };
    let mut session = Session::load(&device, Arc::new(adding(4, 0.5)), &Options::default()).unwrap();
    check_slices(&mut session, 2.0, false);
    assert!(session.close().is_clean());
}

/// The application's threads: they take work from a list.
#[derive(Debug, Default)]
struct Pool {
    calls: AtomicUsize,
    work: Mutex<Vec<Work>>,
}

struct Work(Arc<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("work")
    }
}

impl TaskPool for Pool {
    fn threads(&self) -> usize {
        2
    }

    fn share(&self, others: usize, work: Arc<dyn Fn() + Send + Sync>) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let mut list = self.work.lock().unwrap();
        list.extend((0..others).map(|_| Work(work.clone())));
    }
}

#[test]
fn tasks_run_on_the_callers_threads() {
    let Some(program) = on_the_cpu() else { return };
    let pool = Arc::new(Pool::default());
    let options = Options { threads: 9, pool: Some(pool.clone()), ..Options::default() };
    let mut session = Session::load(&cpu(), trusted(program), &options).unwrap();
    assert_eq!(session.stats().threads, 2);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let next = pool.work.lock().unwrap().pop();
                match next {
                    Some(Work(work)) => work(),
                    None => std::thread::yield_now(),
                }
            }
        });
        for turn in 0..20u8 {
            let y = session.run(&[tensor_of(&ramp(f32::from(turn)))]).unwrap();
            assert_eq!(y[0].to_f32().unwrap(), ramp(f32::from(turn) + 1.0));
        }
        done.store(true, Ordering::Relaxed);
    });
    // The first dispatch, of unknown cost; then 64 tasks of some nanoseconds are worth no call.
    assert!((1..20).contains(&pool.calls.load(Ordering::Relaxed)));
    assert!(session.close().is_clean());
}
