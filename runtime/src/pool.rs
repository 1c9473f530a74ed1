//! Pooled buffers: taken by size class, lent out, and returned on drop.
//!
//! A physical buffer is expensive to create and to touch for the first time, so that idle ones are kept: until they are not used
//! for [`DISUSE_RUNS`] runs, or the pool holds more than [`MOST_NEEDS`] times what runs of late had at once. Of the idle buffers
//! of a size the oldest one is taken. Without one of its size a request gets the next larger one, up to twice as long: runs of many
//! sizes share their buffers. Buffers that a run has had go before others, as in the run that made them: the same sequence of
//! requests gets the same buffers, so that cached bind groups fit again.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Error;

/// Base and size granularity of every buffer: covers any device's binding offsets and any vector load.
pub(crate) const GRANULARITY: u64 = 256;

/// Runs after which an idle buffer is freed.
pub(crate) const DISUSE_RUNS: u64 = 256;
/// Runs between two looks for such buffers.
const LOOK_RUNS: u64 = 32;
/// Times the need of late that a pool holds at most. Less would make runs of two sizes in turn allocate each time.
const MOST_NEEDS: u64 = 2;
/// The longest idle buffer that a request gets, as a multiple of its class.
const MOST_WASTE: u64 = 2;

/// The pool's view of its buffers.
pub(crate) trait Physical: Send + Sync + 'static {
    /// Bytes that the buffer takes from the device.
    fn bytes(&self) -> u64;

    /// Its id, by which others know it.
    fn uid(&self) -> u64 {
        0
    }
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
    idle: BTreeMap<u64, BTreeMap<u64, Idle<B>>>,
    /// Bytes that were asked for and are lent, and the most of them in this and in the last period of [`DISUSE_RUNS`] runs.
    needed_bytes: u64,
    need: [u64; 2],
    /// Bytes of the buffers lent, and of those idle.
    lent_bytes: u64,
    idle_bytes: u64,
    /// Ids of buffers that were freed in this run.
    freed: HashSet<u64>,
    /// Runs so far.
    runs: u64,
    /// Buffers lent for the first time so far; the age of the next one.
    made: u64,
    /// The age behind that of the youngest buffer that this run has had.
    reached: u64,
    /// Loans not yet returned.
    outstanding: u64,
    /// A closed pool frees returned buffers.
    closed: bool,
}

#[derive(Debug)]
struct Idle<B> {
    buffer: B,
    /// The run after which it came back.
    since: u64,
}

impl<B: Physical> State<B> {
    /// Takes an idle buffer for a class: the oldest of the smallest that will do, first among those that this run had before.
    ///
    /// The first run had no other ones: if it took a longer one, every later run does, though there is one of the class by then.
    fn pop(&mut self, class: u64) -> Option<(u64, B)> {
        let (bytes, age) = self.fitting(class, self.reached).or_else(|| self.fitting(class, u64::MAX))?;
        self.reached = self.reached.max(age + 1);
        Some((age, self.remove(bytes, age)?))
    }

    /// Size and age of the oldest of the smallest idle buffers that will do and are older than `below`.
    fn fitting(&self, class: u64, below: u64) -> Option<(u64, u64)> {
        let sizes = self.idle.range(class..=class.saturating_mul(MOST_WASTE));
        sizes.filter_map(|(bytes, of)| Some((*bytes, *of.range(..below).next()?.0))).next()
    }

    fn remove(&mut self, bytes: u64, age: u64) -> Option<B> {
        let found = self.idle.get_mut(&bytes)?.remove(&age)?;
        self.prune(bytes);
        self.idle_bytes -= bytes;
        Some(found.buffer)
    }

    fn prune(&mut self, bytes: u64) {
        if self.idle.get(&bytes).is_some_and(BTreeMap::is_empty) {
            self.idle.remove(&bytes);
        }
    }

    /// The idle buffers, by size and age, with the run since which they are.
    fn all_idle(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.idle.iter().flat_map(|(bytes, of)| of.iter().map(|(age, idle)| (*bytes, *age, idle.since)))
    }

    /// The buffers that are kept no longer, by size and age.
    fn unneeded(&self) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        if self.runs.is_multiple_of(LOOK_RUNS) {
            let old = self.all_idle().filter(|(.., since)| since + DISUSE_RUNS < self.runs);
            found.extend(old.map(|(bytes, age, _)| (bytes, age)));
        }
        found.extend(self.excess(0));
        found
    }

    /// Idle buffers that are too many, once `further` bytes are lent besides, by size and age.
    fn excess(&self, further: u64) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        let needed = self.needed_bytes.saturating_add(further);
        let most = MOST_NEEDS.saturating_mul(needed.max(self.need[0]).max(self.need[1]));
        let mut held = self.lent_bytes.saturating_add(self.idle_bytes).saturating_add(further);
        if held > most {
            // Those unused for longest first; of equals, the largest.
            let mut idle: Vec<_> = self.all_idle().collect();
            idle.sort_by_key(|(bytes, age, since)| (*since, std::cmp::Reverse(*bytes), *age));
            for (bytes, age, _) in idle {
                if held <= most {
                    break;
                }
                held -= bytes;
                found.push((bytes, age));
            }
        }
        found
    }
}

impl<B: Physical> Pool<B> {
    pub fn new(account: SharedAccount) -> Arc<Pool<B>> {
        let state = State {
            idle: BTreeMap::new(),
            needed_bytes: 0,
            need: [0; 2],
            lent_bytes: 0,
            idle_bytes: 0,
            freed: HashSet::new(),
            runs: 0,
            made: 0,
            reached: 0,
            outstanding: 0,
            closed: false,
        };
        Arc::new(Pool { account, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State<B>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lends an idle buffer of the size class of `bytes` or a little more, or a new one from `make` (given the size).
    /// At the memory limit, [`Pool::trim`] may help: the caller knows whether idle buffers are still referenced.
    pub fn take(self: &Arc<Self>, bytes: u64, make: impl FnOnce(u64) -> Result<B, Error>) -> Result<Loan<B>, Error> {
        let class = size_class(bytes);
        // A statement of its own: the lock must be free again when the buffer is lent.
        let idle = self.state().pop(class);
        if let Some((age, buffer)) = idle {
            return Ok(self.lend((age, class), buffer));
        }
        let excess = self.state().excess(class);
        self.free(excess);
        self.account.reserve(class)?;
        match make(class) {
            Ok(buffer) => {
                let age = self.next_age();
                Ok(self.lend((age, class), buffer))
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
        state.reached = state.made + 1;
        state.made
    }

    fn lend(self: &Arc<Self>, (age, class): (u64, u64), buffer: B) -> Loan<B> {
        let mut state = self.state();
        state.outstanding += 1;
        state.lent_bytes += buffer.bytes();
        state.needed_bytes += class;
        state.need[0] = state.need[0].max(state.needed_bytes);
        drop(state);
        Loan { buffer: Some(buffer), age, class, home: Some(self.clone()) }
    }

    /// Frees every idle buffer.
    pub fn trim(&self) {
        let mut state = self.state();
        let idle = std::mem::take(&mut state.idle);
        state.idle_bytes = 0;
        drop(state);
        for idle in idle.into_values().flat_map(BTreeMap::into_values) {
            self.account.release(idle.buffer.bytes());
        }
    }

    /// Counts a run, and frees the idle buffers that are kept no longer. Returns their ids.
    pub fn end_run(&self) -> HashSet<u64> {
        let mut state = self.state();
        state.runs += 1;
        state.reached = 0;
        if state.runs.is_multiple_of(DISUSE_RUNS) {
            state.need = [state.needed_bytes, state.need[0]];
        }
        let unneeded = state.unneeded();
        drop(state);
        self.free(unneeded);
        std::mem::take(&mut self.state().freed)
    }

    /// Frees idle buffers, by size and age.
    fn free(&self, unneeded: Vec<(u64, u64)>) {
        if unneeded.is_empty() {
            return;
        }
        let mut state = self.state();
        let freed: Vec<B> = unneeded.into_iter().filter_map(|(bytes, age)| state.remove(bytes, age)).collect();
        state.freed.extend(freed.iter().map(Physical::uid));
        drop(state);
        freed.iter().for_each(|buffer| self.account.release(buffer.bytes()));
    }

    /// Frees idle buffers now, and the others on return.
    pub fn close(&self) {
        self.state().closed = true;
        self.trim();
    }

    /// Bytes of all buffers, lent and idle.
    pub fn held_bytes(&self) -> u64 {
        let state = self.state();
        state.lent_bytes + state.idle_bytes
    }

    /// Loans not yet returned.
    pub fn outstanding(&self) -> u64 {
        self.state().outstanding
    }

    fn give_back(&self, (age, class): (u64, u64), buffer: B) {
        let (mut state, bytes) = (self.state(), buffer.bytes());
        state.outstanding -= 1;
        state.lent_bytes -= bytes;
        state.needed_bytes -= class;
        if state.closed {
            drop(state);
            self.account.release(bytes);
            return;
        }
        let since = state.runs;
        state.idle_bytes += bytes;
        state.idle.entry(bytes).or_default().insert(age, Idle { buffer, since });
    }
}

/// A buffer on loan; it returns to its pool on drop.
#[derive(Debug)]
pub(crate) struct Loan<B: Physical> {
    buffer: Option<B>,
    age: u64,
    /// The bytes that were asked for, rounded up.
    class: u64,
    home: Option<Arc<Pool<B>>>,
}

impl<B: Physical> Loan<B> {
    /// A buffer from elsewhere, which is on no account: a mapped constant, or the caller's.
    pub fn foreign(buffer: B) -> Loan<B> {
        Loan { buffer: Some(buffer), age: 0, class: 0, home: None }
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
            home.give_back((self.age, self.class), buffer);
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

    /// The second request of a run gets the longer buffer, which was the only one: also once the third one has made a shorter.
    #[test]
    fn a_run_gets_the_buffers_of_the_run_before() {
        let (account, pool) = pool(None);
        let run = || {
            let made = |bytes| Ok(Fake(bytes));
            drop(pool.take(1024, made).unwrap());
            let loans = [600, 512].map(|bytes| pool.take(bytes, made).unwrap());
            pool.end_run();
            loans.map(|loan| loan.bytes())
        };
        assert_eq!(run(), [1024, 512]);
        assert_eq!([run(), run()], [[1024, 512]; 2]);
        assert_eq!(account.lock().buffers_created, 2);
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
    fn a_larger_idle_buffer_will_do_up_to_twice_as_long() {
        let (account, pool) = pool(None);
        drop(pool.take(4096, |bytes| Ok(Fake(bytes))).unwrap());
        assert_eq!(pool.take(2048, |_| panic!("half will do")).unwrap().bytes(), 4096);
        drop(pool.take(1792, |bytes| Ok(Fake(bytes))).unwrap());
        assert_eq!(account.lock().buffers_created, 2);
        // One of the size goes first.
        assert_eq!(pool.take(1792, |_| panic!("it is idle")).unwrap().bytes(), 1792);
    }

    #[test]
    fn idle_buffers_are_freed_after_disuse() {
        let (account, pool) = pool(None);
        let run = |bytes: u64| {
            drop(pool.take(bytes, |bytes| Ok(Fake(bytes))).unwrap());
            pool.end_run()
        };
        run(1000);
        run(100_000);
        for _ in 0..DISUSE_RUNS - 8 {
            assert!(run(1000).is_empty(), "two sizes fit");
        }
        assert_eq!(account.lock().used, size_class(1000) + size_class(100_000));
        let freed: usize = (0..2 * DISUSE_RUNS).map(|_| run(1000).len()).sum();
        assert_eq!((freed, account.lock().used), (1, size_class(1000)));
        assert_eq!(account.lock().buffers_created, 2);
    }

    /// Sizes at random: at most twice the largest need is held, and most requests find a buffer.
    #[test]
    fn many_sizes_share_their_buffers() {
        let (account, pool) = pool(None);
        let (mut random, mut most) = (1u64, 0);
        for _ in 0..10_000 {
            random = random.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(0x9e37_79b9_7f4a_7c15);
            let bytes = ((random >> 33) % 4096 + 1) * 1024;
            let loans = [bytes, 2 * bytes, bytes].map(|bytes| pool.take(bytes, |bytes| Ok(Fake(bytes))).unwrap());
            most = most.max(loans.iter().map(|loan| loan.bytes()).sum());
            drop(loans);
            pool.end_run();
            assert!(account.lock().used <= 2 * most, "{} held, {most} needed", account.lock().used);
        }
        let created = account.lock().buffers_created;
        println!("{created} buffers made for 30000 requests; {} of {most} bytes held", account.lock().used);
        assert!(created < 3000, "{created}");
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
