//! On which core a thread begins when it is woken.
//!
//! Linux looks for an idle core only where the machine is not busy. Where all cores work, as they do with a run on each of
//! them, it puts a woken thread behind the one that woke it, and both take turns on one core until the next balancing, some
//! runs later. So the core of the caller is left out when a thread is woken; awake, it may move again as the system sees
//! fit.

#[cfg(target_os = "linux")]
mod system {
    use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_getcpu, sched_setaffinity};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// The cores of a thread that serves others. What the system declines leaves them as they are.
    #[derive(Debug, Default)]
    pub struct Placement(Mutex<State>);

    #[derive(Debug, Default)]
    struct State {
        /// `None` before it runs.
        thread: Option<Pid>,
        /// The cores that it may use again when it is awake.
        before: Option<CpuSet>,
    }

    impl Placement {
        /// Called by the thread when it begins.
        pub fn begin(&self) {
            self.state().thread = Some(gettid());
        }

        /// Called by the thread that is about to wake it, if it still `sleeps`: not on this core, if it has another one.
        pub fn leave_out_this_core(&self, sleeps: impl Fn() -> bool) {
            let mut state = self.state();
            if state.thread.is_none() || state.before.is_some() || !sleeps() {
                return;
            }
            let (Ok(all), core) = (sched_getaffinity(state.thread), sched_getcpu()) else { return };
            if core >= CpuSet::MAX_CPU || !all.is_set(core) || all.count() < 2 {
                return;
            }
            let mut others = all;
            others.unset(core);
            state.before = sched_setaffinity(state.thread, &others).is_ok().then_some(all);
        }

        /// Called by the thread once it has said that it is awake: it may use all of its cores again.
        pub fn awake(&self) {
            if let Some(all) = self.state().before.take() {
                // Declined, it keeps the other cores.
                let _ = sched_setaffinity(None, &all);
            }
        }

        fn state(&self) -> MutexGuard<'_, State> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_thread_is_woken_on_another_core_and_has_all_of_them_again() {
            let placement = Placement::default();
            placement.leave_out_this_core(|| true);
            assert!(placement.state().before.is_none(), "a thread that has not begun");
            placement.begin();
            let all = sched_getaffinity(None).unwrap();
            placement.leave_out_this_core(|| false);
            assert_eq!(sched_getaffinity(None).unwrap(), all, "it is awake");
            placement.leave_out_this_core(|| true);
            let others = sched_getaffinity(None).unwrap();
            assert_eq!(others.count(), (all.count() - 1).max(1));
            placement.awake();
            assert_eq!(sched_getaffinity(None).unwrap(), all);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    /// Nothing is known of cores.
    #[derive(Debug, Default)]
    pub struct Placement;

    impl Placement {
        pub fn begin(&self) {}

        pub fn leave_out_this_core(&self, _sleeps: impl Fn() -> bool) {}

        pub fn awake(&self) {}
    }
}

pub(super) use system::Placement;
