//! Runs in flight: handed to a thread of the session, awaited or cancelled.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::core::{Claim, Core, Started};
use crate::buffer::DeviceTensor;
use crate::cancel::Cancel;
use crate::error::Error;
use crate::spans::Work;

/// Runs that the device has at once: one that it works on, and the next.
const MAX_FLYING: usize = 2;

/// A run that was submitted, which any thread may wait for or cancel. It goes on when this is dropped; its results are
/// then dropped too.
///
/// As a future it resolves to what [`Run::wait`] returns.
#[derive(Debug)]
pub struct Run {
    state: Arc<State>,
}

impl Run {
    /// Waits for the results, in the signature's order; with a time, no longer than that. What is left of a run that
    /// was begun goes on.
    ///
    /// # Errors
    /// [`Error::Timeout`] (R0024): the run goes on, and can be awaited again. [`Error::Cancelled`] (R0025) after
    /// [`Run::cancel`]. [`Error::Tensor`] once the results were taken. Errors of host code or the device.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<Vec<DeviceTensor>, Error> {
        self.state.cancel.release();
        let (start, mut inner) = (Instant::now(), self.state.lock());
        loop {
            if let Some(outcome) = inner.take() {
                return outcome;
            }
            let Some(timeout) = timeout else {
                inner = self.state.done.wait(inner).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let Some(left) = timeout.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) else {
                return Err(Error::Timeout { waited_ms: timeout.as_millis().try_into().unwrap_or(u64::MAX) });
            };
            inner = self.state.done.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Whether [`Run::wait`] would return at once.
    pub fn is_done(&self) -> bool {
        !matches!(self.state.lock().outcome, Outcome::Open)
    }

    /// Lets a run of [`Session::begin`](super::Session::begin) make `dispatches` more, and returns when the device has
    /// them; on a CPU, when they are done. Returns whether some may be left: if not, [`Run::wait`] is next, for errors
    /// too.
    ///
    /// On a GPU each call makes one submission of its own at most, beside those that the program reads back after.
    /// Runs that were submitted before come first. A run that was not begun but submitted has nothing to allow: false.
    pub fn advance(&self, dispatches: u64) -> bool {
        self.state.cancel.allow(dispatches)
    }

    /// Ends the run, and returns at once. A run that has not begun never does; on a CPU the tasks that run are the last
    /// ones; on a GPU what was submitted runs to its end, before later runs, and its results are dropped. Does nothing
    /// to a run that is done.
    pub fn cancel(&self) {
        self.state.cancel.set();
        self.state.finish(Err(Error::Cancelled));
    }
}

impl Future for Run {
    type Output = Result<Vec<DeviceTensor>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.state.cancel.release();
        let mut inner = self.state.lock();
        if let Some(outcome) = inner.take() {
            return Poll::Ready(outcome);
        }
        inner.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // No one else can let it go on.
        self.state.cancel.release();
    }
}

/// What a run and the thread that runs it share.
#[derive(Debug, Default)]
pub(super) struct State {
    cancel: Cancel,
    inner: Mutex<Inner>,
    done: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    outcome: Outcome,
    waker: Option<Waker>,
}

#[derive(Debug, Default)]
enum Outcome {
    #[default]
    Open,
    Done(Result<Vec<DeviceTensor>, Error>),
    Taken,
}

impl Inner {
    /// The outcome, once there is one.
    fn take(&mut self) -> Option<Result<Vec<DeviceTensor>, Error>> {
        if matches!(self.outcome, Outcome::Open) {
            return None;
        }
        match std::mem::replace(&mut self.outcome, Outcome::Taken) {
            Outcome::Done(outcome) => Some(outcome),
            _ => Some(Err(Error::Tensor { what: "the results of the run were taken before".into() })),
        }
    }
}

impl State {
    /// Lets a run go on that waits to be advanced.
    pub fn release(&self) {
        self.cancel.release();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the outcome, of which the first counts.
    fn finish(&self, outcome: Result<Vec<DeviceTensor>, Error>) {
        let mut inner = self.lock();
        if !matches!(inner.outcome, Outcome::Open) {
            // Tensors go back to their pool without the lock.
            drop(inner);
            drop(outcome);
            return;
        }
        inner.outcome = Outcome::Done(outcome);
        let waker = inner.waker.take();
        drop(inner);
        self.done.notify_all();
        waker.into_iter().for_each(Waker::wake);
    }
}

/// A run with its inputs.
struct Job {
    claims: Vec<Claim>,
    work: Work,
    state: Arc<State>,
}

/// The thread that runs a session's submitted runs, in order.
#[derive(Debug)]
pub(super) struct Worker {
    jobs: Sender<Job>,
    thread: JoinHandle<()>,
}

impl Worker {
    /// # Errors
    /// [`Error::NativeCode`] when there is no thread.
    pub fn start(core: &Arc<Mutex<Core>>) -> Result<Worker, Error> {
        let (jobs, received) = mpsc::channel();
        let core = core.clone();
        let builder = std::thread::Builder::new().name("monopour-runs".into());
        let thread = builder.spawn(move || serve(&core, &received));
        let thread = thread.map_err(|error| Error::native(format!("cannot start a thread: {error}")))?;
        Ok(Worker { jobs, thread })
    }

    /// Hands a run over, which ends with `cancel` and waits as that says.
    pub fn submit(&self, (claims, work): (Vec<Claim>, Work), cancel: Cancel) -> (Run, Arc<State>) {
        let state = Arc::new(State { cancel, ..State::default() });
        // The thread ends only after this sender.
        let _ = self.jobs.send(Job { claims, work, state: state.clone() });
        (Run { state: state.clone() }, state)
    }

    /// Waits until all runs are done.
    pub fn join(self) {
        drop(self.jobs);
        // A panic was caught and reported by its run.
        let _ = self.thread.join();
    }
}

pub(super) fn lock(core: &Mutex<Core>) -> MutexGuard<'_, Core> {
    core.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs that the device has, oldest first.
type Flying = VecDeque<(Started, Arc<State>)>;

fn serve(core: &Mutex<Core>, jobs: &Receiver<Job>) {
    let mut flying = Flying::new();
    loop {
        let job = match jobs.try_recv() {
            Ok(job) => Some(job),
            Err(TryRecvError::Disconnected) if flying.is_empty() => return,
            Err(_) if flying.is_empty() => match jobs.recv() {
                Ok(job) => Some(job),
                Err(_) => return,
            },
            Err(_) => None,
        };
        let is_new = job.is_some();
        if let Some(Job { claims, work, state }) = job {
            while state.cancel.is_paced() && !flying.is_empty() {
                // Who advances it may do so after an earlier run is done.
                land(core, &mut flying);
            }
            let begins = work.within(|| state.cancel.check());
            let started = begins.and_then(|()| caught(core, |core| core.start(claims, (&state.cancel, work))));
            match started {
                Ok(started) => flying.push_back((started, state.clone())),
                Err(error) => state.finish(Err(error)),
            }
            state.cancel.end();
        }
        let most = if lock(core).overlaps() { MAX_FLYING } else { 1 };
        // What is there already is recorded while the device works.
        if !is_new || flying.len() >= most {
            land(core, &mut flying);
        }
    }
}

/// Waits for the oldest run, and reports it.
fn land(core: &Mutex<Core>, flying: &mut Flying) {
    let Some((oldest, state)) = flying.pop_front() else { return };
    let waited = catch_unwind(AssertUnwindSafe(|| oldest.wait())).unwrap_or_else(|_| Err(panicked()));
    state.finish(waited.and_then(|()| caught(core, |core| core.complete(oldest))));
}

/// Runs `f`, whose panic is an error.
fn caught<T>(core: &Mutex<Core>, f: impl FnOnce(&mut Core) -> Result<T, Error>) -> Result<T, Error> {
    let mut core = lock(core);
    catch_unwind(AssertUnwindSafe(|| f(&mut core))).unwrap_or_else(|_| {
        core.abort();
        Err(panicked())
    })
}

fn panicked() -> Error {
    Error::host_code("a run panicked")
}
