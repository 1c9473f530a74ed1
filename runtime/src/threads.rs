//! The threads of the CPU target.
//!
//! The caller of a run computes too; the others wait for its dispatches, awake for [`AWAKE_IN_RUN`] after the last one, or
//! [`AWAKE`] once the run has ended; then asleep. Waking a thread costs the caller 2 to 5 µs, and it takes the thread some
//! 50 µs to begin. So a dispatch is shared if its tasks, by their time in earlier runs, take longer than that, or little
//! longer than handing them over while the others are awake; and a run whose dispatches took long together wakes others when
//! it begins, as many as it may have work for. Each thread has its own range of a dispatch's tasks (`job`), and begins on
//! another core than the caller's (`placement`). Which thread computes a task never changes its result: tasks write disjoint
//! elements.

mod job;
mod placement;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use self::job::Job;
use self::placement::Placement;
use crate::error::Error;

/// Most threads: beyond it their stacks alone exhaust a machine.
const MAX_THREADS: usize = 1024;
/// How long a thread without work stays awake.
const AWAKE: Duration = Duration::from_micros(60);
/// The same during a run, whose next dispatch may be worth sharing: longer than most that one thread computes alone.
const AWAKE_IN_RUN: Duration = Duration::from_micros(300);
/// Least nanoseconds of a dispatch that is shared with threads that are awake.
const LEAST_AWAKE_NS: u64 = 6_000;
/// Least nanoseconds of a dispatch for which threads are woken.
const LEAST_ASLEEP_NS: u64 = 120_000;
/// Least nanoseconds of all dispatches that would be shared, in a run at whose begin threads are woken.
const LEAST_RUN_NS: u64 = 150_000;
/// Nanoseconds of work for each thread that is woken: some times what its waking costs the caller.
const NS_PER_WAKING: u64 = 30_000;

/// Threads of the application, for the tasks of the CPU target: [`Options::pool`](crate::Options::pool).
///
/// The thread that runs a program computes too, and waits only for tasks that another one has begun. So a pool that is
/// busy, or never calls, costs time and nothing else.
pub trait TaskPool: std::fmt::Debug + Send + Sync {
    /// The most threads that compute at once, that of the run among them; 1 is the least.
    fn threads(&self) -> usize;

    /// Has `work` called once on each of up to `others` threads, beside the one that calls this, at once or later;
    /// returns without waiting for them. `work` computes tasks of one dispatch until none is left, and never panics.
    fn share(&self, others: usize, work: Arc<dyn Fn() + Send + Sync>);
}

/// A fixed number of threads, the caller's own among them.
#[derive(Clone, Debug)]
pub(crate) struct Threads {
    others: Option<Arc<Others>>,
    /// In place of others of our own.
    pool: Option<Arc<dyn TaskPool>>,
}

/// The time of a kernel's tasks so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    ns_per_task: Option<f64>,
}

impl Cost {
    /// Nanoseconds of `tasks`; of a kernel that never ran, as many as there are.
    fn of(self, tasks: usize) -> u64 {
        self.ns_per_task.map_or(u64::MAX, |ns| (ns * tasks as f64) as u64)
    }

    /// Takes a measurement of `tasks` into the average.
    fn learn(&mut self, elapsed: Duration, tasks: usize) {
        let now = elapsed.as_nanos() as f64 / tasks as f64;
        self.ns_per_task = Some(self.ns_per_task.map_or(now, |before| before * 0.75 + now * 0.25));
    }
}

impl Threads {
    /// `count` threads, [`MAX_THREADS`] at most; 0 stands for one per core.
    pub fn new(count: usize) -> Result<Threads, Error> {
        let count = match count {
            0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
            _ => count.min(MAX_THREADS),
        };
        let others = (count > 1).then(|| Others::start(count - 1).map(Arc::new)).transpose();
        let others = others.map_err(|error| Error::native(format!("cannot start {count} threads: {error}")))?;
        Ok(Threads { others, pool: None })
    }

    /// The threads of a pool.
    pub fn of(pool: Arc<dyn TaskPool>) -> Threads {
        Threads { others: None, pool: Some(pool) }
    }

    /// Number of threads that run tasks.
    pub fn count(&self) -> usize {
        if let Some(pool) = &self.pool {
            return pool.threads().clamp(1, MAX_THREADS);
        }
        self.others.as_ref().map_or(1, |others| others.handles.len() + 1)
    }

    /// Brackets a run.
    pub fn enter<T>(&self, f: impl FnOnce() -> T) -> T {
        let Some(others) = &self.others else { return f() };
        let last_ns = others.shared.run_ns.swap(0, Ordering::Relaxed);
        let _run = Run::begin(&others.shared.runs);
        if last_ns >= LEAST_RUN_NS {
            others.announce(None, last_ns / NS_PER_WAKING);
        }
        f()
    }

    /// Runs `task` for every number below `tasks`, whose time so far is `cost`. The order is open.
    pub fn for_each(&self, tasks: usize, cost: &mut Cost, task: impl Fn(usize) + Send + Sync + 'static) {
        if let Some(pool) = self.pool.as_ref().filter(|_| tasks > 1) {
            return self.share(&**pool, tasks, cost, task);
        }
        let Some(others) = self.others.as_ref().filter(|_| tasks > 1) else {
            (0..tasks).for_each(task);
            return;
        };
        let expected_ns = cost.of(tasks);
        let start = Instant::now();
        if expected_ns >= LEAST_AWAKE_NS {
            others.shared.run_ns.fetch_add(expected_ns.min(u64::MAX / 1024), Ordering::Relaxed);
        }
        let least = if others.is_any_awake() { LEAST_AWAKE_NS } else { LEAST_ASLEEP_NS };
        if expected_ns < least {
            (0..tasks).for_each(task);
            cost.learn(start.elapsed(), tasks);
            return;
        }
        let job = Arc::new(Job::new(tasks, self.count(), task));
        let wakings = if expected_ns < LEAST_ASLEEP_NS { 0 } else { expected_ns / NS_PER_WAKING };
        others.announce(Some(job.clone()), wakings);
        let own = job.work(0);
        if own > 0 {
            cost.learn(start.elapsed(), own);
        }
        job.wait();
    }

    /// As [`Threads::for_each`], on the threads of a pool, which count as asleep.
    fn share(&self, pool: &dyn TaskPool, tasks: usize, cost: &mut Cost, task: impl Fn(usize) + Send + Sync + 'static) {
        let (expected_ns, start, count) = (cost.of(tasks), Instant::now(), self.count());
        let worth = usize::try_from(expected_ns / NS_PER_WAKING).unwrap_or(usize::MAX);
        let others = worth.min(count - 1).min(tasks - 1);
        if others == 0 || expected_ns < LEAST_ASLEEP_NS {
            (0..tasks).for_each(task);
            cost.learn(start.elapsed(), tasks);
            return;
        }
        let job = Arc::new(Job::new(tasks, count, task));
        let (shared, helpers) = (job.clone(), AtomicUsize::new(0));
        pool.share(
            others,
            Arc::new(move || {
                // The thread is the application's. The panic is told to the caller of the run.
                let number = helpers.fetch_add(1, Ordering::Relaxed) + 1;
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| shared.work(number)));
            }),
        );
        let own = job.work(0);
        if own > 0 {
            cost.learn(start.elapsed(), own);
        }
        job.wait();
    }
}

/// A run that goes on.
struct Run<'a>(&'a AtomicUsize);

impl Run<'_> {
    fn begin(runs: &AtomicUsize) -> Run<'_> {
        runs.fetch_add(1, Ordering::Relaxed);
        Run(runs)
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The threads but the caller's.
#[derive(Debug)]
struct Others {
    shared: Arc<Shared>,
    handles: Vec<(Thread, Option<JoinHandle<()>>)>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Number of announcements; it changes after `job`.
    news: AtomicU64,
    job: Mutex<Option<Arc<Job>>>,
    others: Vec<Other>,
    ends: AtomicBool,
    /// Runs that go on.
    runs: AtomicUsize,
    /// Nanoseconds of this run's dispatches that are worth sharing.
    run_ns: AtomicU64,
}

/// What is known of a thread.
#[derive(Debug, Default)]
struct Other {
    /// Whether it waits for news awake.
    state: AtomicU8,
    placement: Placement,
}

/// States of a thread. One that is being woken will look for a job.
const AWAKENED: u8 = 0;
const ASLEEP: u8 = 1;
const WAKING: u8 = 2;

impl Others {
    fn start(count: usize) -> std::io::Result<Others> {
        let known = (0..count).map(|_| Other::default()).collect();
        let mut others = Others { shared: Arc::new(Shared { others: known, ..Shared::default() }), handles: vec![] };
        for index in 0..count {
            let shared = others.shared.clone();
            let builder = std::thread::Builder::new().name(format!("monopour-{}", index + 1));
            let handle = builder.spawn(move || shared.serve(index))?;
            others.handles.push((handle.thread().clone(), Some(handle)));
        }
        Ok(others)
    }

    fn is_any_awake(&self) -> bool {
        self.shared.others.iter().any(|other| other.state.load(Ordering::Relaxed) != ASLEEP)
    }

    /// Gives the threads a job, or keeps them awake for one; wakes at most so many of those that sleep.
    fn announce(&self, job: Option<Arc<Job>>, wakings: u64) {
        *self.shared.job.lock().unwrap_or_else(PoisonError::into_inner) = job;
        self.shared.news.fetch_add(1, Ordering::SeqCst);
        let mut left = wakings;
        for ((thread, _), other) in self.handles.iter().zip(&self.shared.others) {
            if left == 0 {
                break;
            }
            if other.state.compare_exchange(ASLEEP, WAKING, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                left -= 1;
                other.placement.leave_out_this_core(|| other.state.load(Ordering::SeqCst) == WAKING);
                thread.unpark();
            }
        }
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::SeqCst);
        self.announce(None, 0);
        for (thread, handle) in &mut self.handles {
            thread.unpark();
            // A thread ends early only by a task's panic, which the caller of its run has seen.
            let _ = handle.take().map(JoinHandle::join);
        }
    }
}

impl Shared {
    /// Works on each job until the end.
    fn serve(&self, index: usize) {
        let mut seen = 0;
        self.others[index].placement.begin();
        while !self.ends.load(Ordering::SeqCst) {
            seen = self.next(seen, &self.others[index]);
            let job = self.job.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(job) = job {
                job.work(index + 1);
            }
        }
    }

    /// Waits until the number of announcements is not `seen`, and returns it.
    fn next(&self, seen: u64, this: &Other) -> u64 {
        let start = Instant::now();
        loop {
            for _ in 0..64 {
                let news = self.news.load(Ordering::SeqCst);
                if news != seen {
                    return news;
                }
                std::hint::spin_loop();
            }
            let limit = if self.runs.load(Ordering::Relaxed) > 0 { AWAKE_IN_RUN } else { AWAKE };
            if start.elapsed() >= limit {
                // Said before the last look, so that an announcement after it unparks this thread.
                this.state.store(ASLEEP, Ordering::SeqCst);
                while self.news.load(Ordering::SeqCst) == seen {
                    std::thread::park();
                }
                this.state.store(AWAKENED, Ordering::SeqCst);
                this.placement.awake();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    /// How often each task ran.
    fn hits(threads: &Threads, tasks: usize, cost: &mut Cost) -> Vec<u32> {
        let hits: Arc<Vec<AtomicU32>> = Arc::new((0..tasks).map(|_| AtomicU32::new(0)).collect());
        let counted = hits.clone();
        threads.enter(|| {
            threads.for_each(tasks, cost, move |n| {
                counted[n].fetch_add(1, Ordering::Relaxed);
            });
        });
        hits.iter().map(|hit| hit.load(Ordering::Relaxed)).collect()
    }

    #[test]
    fn every_task_runs_once_on_any_number_of_threads() {
        for count in [1, 2, 3, 7] {
            let threads = Threads::new(count).unwrap();
            assert_eq!(threads.count(), count);
            for tasks in [0, 1, 2, 5, 1000] {
                // Shared by its cost, computed alone by its cost, and asleep before.
                for ns in [None, Some(1e9), Some(1e-3)] {
                    assert_eq!(hits(&threads, tasks, &mut Cost { ns_per_task: ns }), vec![1; tasks], "{count} threads");
                }
                std::thread::sleep(AWAKE * 2);
                assert_eq!(hits(&threads, tasks, &mut Cost { ns_per_task: Some(1e9) }), vec![1; tasks]);
            }
        }
    }

    #[test]
    fn small_work_stays_with_the_caller_and_large_work_is_shared() {
        let threads = Threads::new(2).unwrap();
        let ids = |ns: f64| {
            let ids = Arc::new(Mutex::new(vec![]));
            let seen = ids.clone();
            threads.for_each(16, &mut Cost { ns_per_task: Some(ns) }, move |_| {
                std::thread::sleep(Duration::from_micros(200));
                seen.lock().unwrap().push(std::thread::current().id());
            });
            let mut ids = ids.lock().unwrap().clone();
            ids.sort_by_key(|id| format!("{id:?}"));
            ids.dedup();
            ids
        };
        assert_eq!(ids(1.0), [std::thread::current().id()]);
        // A thread that the machine starts late may miss a dispatch, not twenty of 3 ms.
        assert!((0..20).any(|_| ids(1e6).len() == 2));
    }

    /// Starts a thread per call, or keeps calls until it is dropped, or forgets them.
    #[derive(Debug)]
    struct Pool {
        runs: bool,
        kept: Mutex<Vec<Kept>>,
    }

    struct Kept(Arc<dyn Fn() + Send + Sync>);

    impl std::fmt::Debug for Kept {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("work")
        }
    }

    impl TaskPool for Pool {
        fn threads(&self) -> usize {
            3
        }

        fn share(&self, others: usize, work: Arc<dyn Fn() + Send + Sync>) {
            assert_eq!(others, 2);
            for _ in 0..others {
                let work = work.clone();
                if self.runs {
                    std::thread::spawn(move || work());
                } else {
                    self.kept.lock().unwrap().push(Kept(work));
                }
            }
        }
    }

    #[test]
    fn a_pool_of_the_application_computes_every_task_once() {
        for runs in [true, false] {
            let pool = Arc::new(Pool { runs, kept: Mutex::default() });
            let threads = Threads::of(pool.clone());
            assert_eq!(threads.count(), 3);
            for tasks in [3, 64, 1000] {
                assert_eq!(hits(&threads, tasks, &mut Cost::default()), vec![1; tasks]);
            }
            assert_eq!(hits(&threads, 1, &mut Cost::default()), [1]);
            // Calls that come after the run find nothing to do.
            let kept = std::mem::take(&mut *pool.kept.lock().unwrap());
            assert_eq!(kept.len(), if runs { 0 } else { 6 });
            kept.iter().for_each(|Kept(work)| work());
            // What is cheap is not worth a call.
            let mut cheap = Cost { ns_per_task: Some(1.0) };
            assert_eq!(hits(&threads, 100, &mut cheap), vec![1; 100]);
            assert!(pool.kept.lock().unwrap().is_empty());
        }
    }

    #[test]
    fn a_panic_on_a_thread_of_the_application_reaches_the_caller() {
        let threads = Threads::of(Arc::new(Pool { runs: true, kept: Mutex::default() }));
        let main = std::thread::current().id();
        let run = std::panic::AssertUnwindSafe(|| {
            let has_begun = AtomicBool::new(false);
            threads.for_each(1000, &mut Cost::default(), move |_| {
                has_begun.fetch_or(std::thread::current().id() != main, Ordering::Relaxed);
                if !has_begun.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                assert!(std::thread::current().id() == main, "a task");
            });
        });
        assert!(std::panic::catch_unwind(run).is_err());
        assert_eq!(hits(&threads, 10, &mut Cost::default()), vec![1; 10]);
    }

    #[test]
    fn costs_are_learnt() {
        let threads = Threads::new(2).unwrap();
        let mut cost = Cost::default();
        assert_eq!(cost.of(3), u64::MAX);
        threads.for_each(4, &mut cost, |_| std::thread::sleep(Duration::from_millis(1)));
        assert!(cost.of(1) >= 1_000_000, "{cost:?}");
    }

    #[test]
    fn a_panic_of_a_task_reaches_the_caller() {
        let threads = Threads::new(3).unwrap();
        let run = std::panic::AssertUnwindSafe(|| {
            threads.for_each(64, &mut Cost::default(), |n| {
                std::thread::sleep(Duration::from_micros(100));
                assert!(n < 60, "task {n}");
            });
        });
        assert!(std::panic::catch_unwind(run).is_err());
        assert_eq!(hits(&threads, 10, &mut Cost::default()), vec![1; 10], "the others still serve");
    }
}
