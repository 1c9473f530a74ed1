//! Pooled buffers: taken by size class, lent out, and returned on drop.
//!
//! A physical buffer is expensive to create and to touch for the first time, so none is freed while
//! the session lives, unless the memory limit requires it. Of the idle buffers of a size the oldest one is taken: the same
//! sequence of requests gets the same buffers, so that cached bind groups fit again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Error;

/// Base and size granularity of every buffer: covers any device's binding offsets and any vector load.
pub(crate) const GRANULARITY: u64 = 256;

/// The pool's view of its buffers.
pub(crate) trait Physical: Send + Sync + 'static {
    /// Bytes that the buffer takes from the device.
    fn bytes(&self) -> u64;
}

/// Memory taken from the device, shared by all pools of a session.
#[derive(Debug, Default)]
pub(crate) struct Account {
    pub limit: Option<u64>,
    pub used: u64,
    pub peak: u64,
    pub buffers_created: u64,
    pub buffers_alive: u64,
}

/// The account behind its lock, part of others: a session's is part of its model's, which is part of the device's.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedAccount {
    own: Arc<Mutex<Account>>,
    whole: Option<Arc<SharedAccount>>,
}

impl SharedAccount {
    /// An account with its own limit, that is also booked on this one.
    pub fn part(&self, limit: Option<u64>) -> SharedAccount {
        let own = Arc::new(Mutex::new(Account { limit, ..Account::default() }));
        SharedAccount { own, whole: Some(Arc::new(self.clone())) }
    }

    pub fn lock(&self) -> MutexGuard<'_, Account> {
        // Counters stay meaningful if another thread panicked between two of them.
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Books `bytes`, or returns the limit's error.
    pub fn reserve(&self, bytes: u64) -> Result<(), Error> {
        if let Some(whole) = &self.whole {
            whole.reserve(bytes)?;
        }
        let booked = self.lock().reserve(bytes);
        if let (Err(_), Some(whole)) = (&booked, &self.whole) {
            whole.cancel(bytes);
        }
        booked
    }

    pub fn release(&self, bytes: u64) {
        let mut account = self.lock();
        account.used -= bytes;
        account.buffers_alive -= 1;
        drop(account);
        if let Some(whole) = &self.whole {
            whole.release(bytes);
        }
    }

    /// Cancels a reservation whose buffer could not be created.
    fn cancel(&self, bytes: u64) {
        let mut account = self.lock();
        account.used -= bytes;
        account.buffers_alive -= 1;
        account.buffers_created -= 1;
        drop(account);
        if let Some(whole) = &self.whole {
            whole.cancel(bytes);
        }
    }
}

impl Account {
    fn reserve(&mut self, bytes: u64) -> Result<(), Error> {
        let used = self.used.saturating_add(bytes);
        if let Some(limit_bytes) = self.limit.filter(|&limit| used > limit) {
            return Err(Error::MemoryLimit { asked_bytes: bytes, used_bytes: self.used, limit_bytes });
        }
        self.used = used;
        self.peak = self.peak.max(used);
        self.buffers_created += 1;
        self.buffers_alive += 1;
        Ok(())
    }
}

/// Rounds a size up to its class, so that similar sizes share buffers: at most an eighth is wasted.
pub(crate) fn size_class(bytes: u64) -> u64 {
    let bytes = bytes.max(1);
    let step = (bytes.next_power_of_two() / 16).max(GRANULARITY);
    bytes.checked_next_multiple_of(step).unwrap_or(u64::MAX)
}

/// A pool of buffers of one kind.
#[derive(Debug)]
pub(crate) struct Pool<B: Physical> {
    account: SharedAccount,
    state: Mutex<State<B>>,
}

#[derive(Debug)]
struct State<B> {
    /// Idle buffers by size, then by age: a run that requests the same sizes in the same order gets the same buffers, whatever
    /// the order of their return, and finds their bind groups again.
    idle: BTreeMap<u64, BTreeMap<u64, B>>,
    /// Buffers lent for the first time so far; the age of the next one.
    made: u64,
    /// Loans not yet returned.
    outstanding: u64,
    /// A closed pool frees returned buffers.
    closed: bool,
}

impl<B: Physical> Pool<B> {
    pub fn new(account: SharedAccount) -> Arc<Pool<B>> {
        let state = State { idle: BTreeMap::new(), made: 0, outstanding: 0, closed: false };
        Arc::new(Pool { account, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State<B>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lends the oldest idle buffer of the size class of `bytes`, or a new one from `make` (given the size).
    /// At the memory limit, [`Pool::trim`] may help: the caller knows whether idle buffers are still referenced.
    pub fn take(self: &Arc<Self>, bytes: u64, make: impl FnOnce(u64) -> Result<B, Error>) -> Result<Loan<B>, Error> {
        let class = size_class(bytes);
        // A statement of its own: the lock must be free again when the buffer is lent.
        let idle = self.state().idle.get_mut(&class).and_then(BTreeMap::pop_first);
        if let Some((age, buffer)) = idle {
            return Ok(self.lend(age, buffer));
        }
        self.account.reserve(class)?;
        match make(class) {
            Ok(buffer) => {
                let age = self.next_age();
                Ok(self.lend(age, buffer))
            }
            Err(error) => {
                self.account.cancel(class);
                Err(error)
            }
        }
    }

    fn next_age(&self) -> u64 {
        let mut state = self.state();
        state.made += 1;
        state.made
    }

    fn lend(self: &Arc<Self>, age: u64, buffer: B) -> Loan<B> {
        self.state().outstanding += 1;
        Loan { buffer: Some(buffer), age, home: Some(self.clone()) }
    }

    /// Frees every idle buffer.
    pub fn trim(&self) {
        let idle = std::mem::take(&mut self.state().idle);
        for buffer in idle.into_values().flat_map(BTreeMap::into_values) {
            self.account.release(buffer.bytes());
        }
    }

    /// Frees idle buffers now, and the others on return.
    pub fn close(&self) {
        self.state().closed = true;
        self.trim();
    }

    /// Loans not yet returned.
    pub fn outstanding(&self) -> u64 {
        self.state().outstanding
    }

    fn give_back(&self, age: u64, buffer: B) {
        let mut state = self.state();
        state.outstanding -= 1;
        if state.closed {
            drop(state);
            self.account.release(buffer.bytes());
            return;
        }
        state.idle.entry(buffer.bytes()).or_default().insert(age, buffer);
    }
}

/// A buffer on loan; it returns to its pool on drop.
#[derive(Debug)]
pub(crate) struct Loan<B: Physical> {
    buffer: Option<B>,
    age: u64,
    home: Option<Arc<Pool<B>>>,
}

impl<B: Physical> Loan<B> {
    /// A buffer from elsewhere, which is on no account: a mapped constant, or the caller's.
    pub fn foreign(buffer: B) -> Loan<B> {
        Loan { buffer: Some(buffer), age: 0, home: None }
    }
}

impl<B: Physical> std::ops::Deref for Loan<B> {
    type Target = B;

    fn deref(&self) -> &B {
        self.buffer.as_ref().expect("a loan holds its buffer until it is dropped")
    }
}

impl<B: Physical> Drop for Loan<B> {
    fn drop(&mut self) {
        if let (Some(buffer), Some(home)) = (self.buffer.take(), self.home.take()) {
            home.give_back(self.age, buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Fake(u64);

    impl Physical for Fake {
        fn bytes(&self) -> u64 {
            self.0
        }
    }

    fn pool(limit: Option<u64>) -> (SharedAccount, Arc<Pool<Fake>>) {
        let account = SharedAccount::default().part(limit);
        (account.clone(), Pool::new(account))
    }

    #[test]
    fn size_classes_waste_at_most_an_eighth() {
        for bytes in (1..100_000).step_by(37) {
            let class = size_class(bytes);
            assert!(class >= bytes && class.is_multiple_of(GRANULARITY));
            assert!(class - bytes < GRANULARITY.max(bytes / 8 + 1), "{bytes} -> {class}");
        }
        assert_eq!(size_class(0), GRANULARITY);
    }

    #[test]
    fn the_order_in_which_buffers_come_back_does_not_matter() {
        let (_, pool) = pool(None);
        let make = |size| Ok(Fake(size));
        let (a, b) = (pool.take(1000, make).unwrap(), pool.take(1000, make).unwrap());
        let (first, second) = (a.age, b.age);
        drop(a);
        drop(b);
        let (a, b) = (pool.take(1000, make).unwrap(), pool.take(1000, make).unwrap());
        assert_eq!((a.age, b.age), (first, second));
        drop(b);
        drop(a);
        let (a, b) = (pool.take(1000, make).unwrap(), pool.take(1000, make).unwrap());
        assert_eq!((a.age, b.age), (first, second));
    }

    #[test]
    fn a_returned_buffer_is_taken_again() {
        let (account, pool) = pool(None);
        drop(pool.take(1000, |bytes| Ok(Fake(bytes))).unwrap());
        drop(pool.take(1001, |_| panic!("an idle buffer of the class exists")).unwrap());
        assert_eq!(account.lock().buffers_created, 1);
        assert_eq!(pool.outstanding(), 0);
    }

    #[test]
    fn the_limit_counts_idle_buffers_until_they_are_trimmed() {
        let (account, pool) = pool(Some(2048));
        drop(pool.take(1024, |bytes| Ok(Fake(bytes))).unwrap());
        assert_eq!(pool.take(2048, |bytes| Ok(Fake(bytes))).unwrap_err().code(), "R0009");
        pool.trim();
        let kept = pool.take(2048, |bytes| Ok(Fake(bytes))).unwrap();
        let refused = pool.take(1, |bytes| Ok(Fake(bytes))).unwrap_err();
        assert_eq!(refused.code(), "R0009");
        drop(kept);
        assert_eq!(account.lock().peak, 2048);
    }

    #[test]
    fn a_closed_pool_frees_what_comes_back() {
        let (account, pool) = pool(None);
        let loan = pool.take(10, |bytes| Ok(Fake(bytes))).unwrap();
        pool.close();
        assert_eq!((pool.outstanding(), account.lock().used), (1, 256));
        drop(loan);
        assert_eq!((pool.outstanding(), account.lock().used), (0, 0));
    }
}
