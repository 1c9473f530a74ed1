//! The tasks of a dispatch, shared between threads.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// A thread takes this part of the tasks that are left in its own range: few takings, and enough left for others to help.
const PARTS: usize = 4;
/// How long the caller waits awake for the last tasks of others; then it sleeps, as its core may be the one that they
/// need.
const PATIENCE: Duration = Duration::from_micros(50);
/// Bits of a task's number.
const BITS: u32 = 32;

/// The tasks of a dispatch.
///
/// Each thread has a range of them, the same one in each dispatch with as many tasks: what it wrote lies in the caches of its
/// core, where a later dispatch that reads the same elements finds it. A thread whose range is empty takes from the ends of
/// the others'.
pub(super) struct Job {
    task: Box<dyn Fn(usize) + Send + Sync>,
    tasks: usize,
    /// What no thread has taken.
    ranges: Box<[Range]>,
    /// Tasks that are not done.
    left: AtomicUsize,
    /// Who waits for them, and whether it sleeps.
    caller: Thread,
    sleeps: AtomicBool,
    has_panicked: AtomicBool,
}

/// The first task and the one behind the last, in one word; alone on its lines of the caches, which are fetched in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Range(AtomicU64);

impl Range {
    fn new(first: usize, end: usize) -> Range {
        Range(AtomicU64::new(Range::pack(first, end)))
    }

    fn pack(first: usize, end: usize) -> u64 {
        (first as u64) << BITS | end as u64
    }

    /// Takes tasks as `part` says of the first and the end: what it takes, and what is left.
    fn take(&self, part: impl Fn(usize, usize) -> [std::ops::Range<usize>; 2]) -> Option<std::ops::Range<usize>> {
        let split = |word: u64| part((word >> BITS) as usize, (word & u64::from(u32::MAX)) as usize);
        let rest = |word: u64| {
            let [taken, left] = split(word);
            (!taken.is_empty()).then(|| Range::pack(left.start, left.end))
        };
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).ok().map(|before| split(before)[0].clone())
    }

    /// A part of the first tasks.
    fn first(&self) -> Option<std::ops::Range<usize>> {
        self.take(|first, end| {
            let middle = first + (end - first).div_ceil(PARTS);
            [first..middle, middle..end]
        })
    }

    /// Half of the tasks, the last ones.
    fn last(&self) -> Option<std::ops::Range<usize>> {
        self.take(|first, end| {
            let middle = first + (end - first) / 2;
            [middle..end, first..middle]
        })
    }
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Job({} of {} tasks left)", self.left.load(Ordering::Relaxed), self.tasks)
    }
}

impl Job {
    /// `tasks` of at most `u32::MAX`, in a range for each of `threads`.
    pub fn new(tasks: usize, threads: usize, task: impl Fn(usize) + Send + Sync + 'static) -> Job {
        let count = threads.min(tasks).max(1);
        let begin = |n: usize| (n * tasks).div_ceil(count);
        Job {
            task: Box::new(task),
            tasks,
            ranges: (0..count).map(|n| Range::new(begin(n), begin(n + 1))).collect(),
            left: AtomicUsize::new(tasks),
            caller: std::thread::current(),
            sleeps: AtomicBool::new(false),
            has_panicked: AtomicBool::new(false),
        }
    }

    /// Runs tasks as thread number `thread`, of which the caller's is 0, until none is open; returns how many it ran.
    pub fn work(&self, thread: usize) -> usize {
        /// Counts the tasks as done even if one panics, so that the caller does not wait for ever.
        struct Taken<'a>(&'a Job, usize);
        impl Drop for Taken<'_> {
            fn drop(&mut self) {
                if std::thread::panicking() {
                    self.0.has_panicked.store(true, Ordering::Relaxed);
                }
                let before = self.0.left.fetch_sub(self.1, Ordering::SeqCst);
                if before == self.1 && self.0.sleeps.load(Ordering::SeqCst) {
                    self.0.caller.unpark();
                }
            }
        }
        let count = self.ranges.len();
        let own = self.ranges.get(thread);
        let mut others = (0..count).map(|n| (thread + 1 + n) % count);
        let mut other = others.next();
        let mut ran = 0;
        loop {
            let taken = own.and_then(Range::first).or_else(|| {
                loop {
                    match self.ranges[other?].last() {
                        Some(taken) => break Some(taken),
                        None => other = others.next(),
                    }
                }
            });
            let Some(range) = taken else { return ran };
            let taken = Taken(self, range.len());
            range.for_each(&self.task);
            ran += taken.1;
        }
    }

    /// Waits until all tasks are done.
    ///
    /// # Panics
    /// If a task has.
    pub fn wait(&self) {
        let start = Instant::now();
        while self.left.load(Ordering::SeqCst) > 0 {
            if start.elapsed() < PATIENCE {
                std::hint::spin_loop();
                continue;
            }
            // Said before the next look, so that whoever ends the last task after it unparks this thread.
            if self.sleeps.swap(true, Ordering::SeqCst) {
                std::thread::park();
            }
        }
        assert!(!self.has_panicked.load(Ordering::Relaxed), "a task panicked on another thread");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn a_thread_has_its_own_tasks_in_order_and_then_the_last_of_the_others() {
        let order = |thread: usize, tasks: usize, threads: usize| {
            let seen = Arc::new(Mutex::new(vec![]));
            let ran = seen.clone();
            let job = Job::new(tasks, threads, move |task| ran.lock().unwrap().push(task));
            assert_eq!(job.work(thread), tasks);
            job.wait();
            seen.lock().unwrap().clone()
        };
        assert_eq!(order(0, 8, 2), [0, 1, 2, 3, 6, 7, 5, 4]);
        assert_eq!(order(1, 8, 2), [4, 5, 6, 7, 2, 3, 1, 0]);
        // The caller, which begins first, has one more.
        assert_eq!(order(1, 7, 2), [4, 5, 6, 2, 3, 1, 0]);
        // A thread without a range helps.
        assert_eq!(order(5, 2, 7), [0, 1]);
        assert_eq!(order(0, 1, 1), [0]);
    }
}
