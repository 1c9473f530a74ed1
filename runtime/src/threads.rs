//! The threads of the CPU target.

use std::sync::Arc;

use rayon::prelude::*;

use crate::error::Error;

/// Chunks per thread of one dispatch: enough to balance unequal tasks, few enough to be cheap.
const CHUNKS_PER_THREAD: usize = 8;

/// Most threads: beyond it their stacks alone exhaust a machine.
const MAX_THREADS: usize = 1024;

/// A fixed number of threads. One thread means the caller's own, without a pool.
#[derive(Clone, Debug)]
pub(crate) struct Threads {
    pool: Option<Arc<rayon::ThreadPool>>,
}

impl Threads {
    /// `count` threads, [`MAX_THREADS`] at most; 0 stands for one per core.
    pub fn new(count: usize) -> Result<Threads, Error> {
        let count = match count {
            0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
            _ => count.min(MAX_THREADS),
        };
        if count == 1 {
            return Ok(Threads { pool: None });
        }
        let builder = rayon::ThreadPoolBuilder::new().num_threads(count).thread_name(|n| format!("monopour-{n}"));
        let pool = builder.build().map_err(|error| Error::native(format!("cannot start {count} threads: {error}")))?;
        Ok(Threads { pool: Some(Arc::new(pool)) })
    }

    /// Number of threads that run tasks.
    pub fn count(&self) -> usize {
        self.pool.as_ref().map_or(1, |pool| pool.current_num_threads())
    }

    /// Runs `f` on a thread of the pool, so that each [`Threads::for_each`] in it starts without waking one first.
    pub fn enter<T: Send>(&self, f: impl FnOnce() -> T + Send) -> T {
        match &self.pool {
            None => f(),
            Some(pool) => pool.install(f),
        }
    }

    /// Runs `task` for every number below `tasks`. The order is open: tasks write disjoint elements.
    pub fn for_each(&self, tasks: usize, task: impl Fn(usize) + Send + Sync) {
        match &self.pool {
            Some(pool) if tasks > 1 => {
                let chunk = tasks.div_ceil(pool.current_num_threads() * CHUNKS_PER_THREAD);
                pool.install(|| (0..tasks).into_par_iter().with_min_len(chunk).for_each(task));
            }
            _ => (0..tasks).for_each(task),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn every_task_runs_once_on_any_number_of_threads() {
        for count in [1, 2, 5] {
            let threads = Threads::new(count).unwrap();
            assert_eq!(threads.count(), count);
            let hits: Vec<AtomicU32> = (0..1000).map(|_| AtomicU32::new(0)).collect();
            threads.enter(|| {
                threads.for_each(hits.len(), |n| {
                    hits[n].fetch_add(1, Ordering::Relaxed);
                });
            });
            assert!(hits.iter().all(|hit| hit.load(Ordering::Relaxed) == 1));
        }
    }
}
