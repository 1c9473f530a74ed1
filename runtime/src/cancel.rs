//! The signs by which others steer a run: that it is to end, and how far it may go.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::Error;

/// Shared by a run and by who may cancel it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancel {
    is_set: Arc<AtomicBool>,
    /// For a run that goes on as far as it is allowed to.
    pace: Option<Arc<Pace>>,
}

impl Cancel {
    /// The sign of a run that waits for [`Cancel::allow`] before each dispatch.
    pub fn paced() -> Cancel {
        Cancel { is_set: Arc::default(), pace: Some(Arc::default()) }
    }

    pub fn set(&self) {
        self.is_set.store(true, Ordering::Relaxed);
        // A run that waits has to see it.
        self.release();
    }

    pub fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }

    /// # Errors
    /// [`Error::Cancelled`] once it is set.
    pub fn check(&self) -> Result<(), Error> {
        if self.is_set() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Whether the run waits for allowances.
    pub fn is_paced(&self) -> bool {
        self.pace.is_some()
    }

    /// Takes the allowance of one dispatch; false if there is none.
    #[inline]
    pub fn take(&self) -> bool {
        self.pace.as_ref().is_none_or(|pace| pace.take())
    }

    /// Waits until there is an allowance for the next dispatch, and takes it.
    pub fn wait(&self) {
        if let Some(pace) = &self.pace {
            pace.wait();
        }
    }

    /// Allows `dispatches` more, and waits until the run has made them or has ended; whether it has not.
    pub fn allow(&self, dispatches: u64) -> bool {
        self.pace.as_ref().is_some_and(|pace| pace.allow(dispatches))
    }

    /// Allows all dispatches that are left.
    pub fn release(&self) {
        if let Some(pace) = &self.pace {
            pace.change(|allowance| allowance.is_free = true);
        }
    }

    /// Tells who allows that the run has made all of its dispatches, or makes no more.
    pub fn end(&self) {
        if let Some(pace) = &self.pace {
            pace.change(|allowance| allowance.is_over = true);
        }
    }
}

/// The allowance of a run, with those that wait for it or for its use.
#[derive(Debug, Default)]
struct Pace {
    allowance: Mutex<Allowance>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Allowance {
    /// Dispatches that may be made.
    left: u64,
    /// Whether all may be.
    is_free: bool,
    /// Whether the run waits for more.
    waits: bool,
    /// Whether there is nothing left to allow.
    is_over: bool,
}

impl Allowance {
    fn take(&mut self) -> bool {
        let has_some = self.is_free || self.left > 0;
        self.left = self.left.saturating_sub(1);
        has_some
    }
}

impl Pace {
    fn lock(&self) -> MutexGuard<'_, Allowance> {
        self.allowance.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Allowance)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn take(&self) -> bool {
        self.lock().take()
    }

    fn wait(&self) {
        let mut allowance = self.lock();
        while !allowance.take() {
            allowance.waits = true;
            self.changed.notify_all();
            allowance = self.changed.wait(allowance).unwrap_or_else(PoisonError::into_inner);
        }
        allowance.waits = false;
    }

    fn allow(&self, dispatches: u64) -> bool {
        let mut allowance = self.lock();
        allowance.left = allowance.left.saturating_add(dispatches);
        // A run that waits sees the allowance only after this thread has let go of the lock.
        allowance.waits &= dispatches == 0;
        self.changed.notify_all();
        while !allowance.waits && !allowance.is_over {
            allowance = self.changed.wait(allowance).unwrap_or_else(PoisonError::into_inner);
        }
        !allowance.is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_goes_as_far_as_it_is_allowed_to() {
        let sign = Cancel::paced();
        let made = Arc::new(Mutex::new(0));
        let (theirs, count) = (sign.clone(), made.clone());
        let run = std::thread::spawn(move || {
            for _ in 0..10 {
                if !theirs.take() {
                    theirs.wait();
                }
                *count.lock().unwrap() += 1;
            }
            theirs.end();
        });
        let made = || *made.lock().unwrap();
        assert!(sign.allow(0) && made() == 0);
        assert!(sign.allow(3) && made() == 3);
        assert!(sign.allow(0) && made() == 3);
        assert!(sign.allow(6) && made() == 9);
        assert!(!sign.allow(6) && made() == 10);
        run.join().unwrap();
        assert!(!Cancel::default().allow(1) && Cancel::default().take());
    }

    #[test]
    fn a_run_that_waits_ends_when_it_is_cancelled_or_let_go() {
        for is_cancelled in [true, false] {
            let sign = Cancel::paced();
            let theirs = sign.clone();
            let run = std::thread::spawn(move || {
                (0..5).for_each(|_| theirs.wait());
                theirs.check().is_err()
            });
            assert!(sign.allow(1));
            if is_cancelled {
                sign.set()
            } else {
                sign.release()
            }
            assert_eq!(run.join().unwrap(), is_cancelled);
        }
    }
}
