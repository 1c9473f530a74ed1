//! Options of models and sessions, and the application's threads.

use std::ffi::c_void;
use std::sync::Arc;

use monopour_runtime::{HostForm, TaskPool};

use crate::status::Failure;
use crate::structs::{Sized, read_sized};

/// The host function as native code where the program is trusted and was compiled for this architecture, else as data.
pub const MONOPOUR_HOST_AUTO: i32 = 0;
/// The host function as native code.
pub const MONOPOUR_HOST_NATIVE: i32 = 1;
/// The host function as data.
pub const MONOPOUR_HOST_DATA: i32 = 2;

/// Options of a session; 0 is the default of each.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Options {
    /// `sizeof(monopour_options)`.
    pub size: usize,
    /// Threads of the CPU device; 0: one per core.
    pub threads: usize,
    /// The most bytes to take from the device; 0: no limit.
    pub memory_limit: u64,
    /// The most steps of an interpreted host function in one run; 0: none for a trusted program.
    pub host_steps: u64,
    /// The form of the host function: one of `MONOPOUR_HOST_...`.
    pub host: i32,
    /// Threads of the application for the CPU device, or null; `threads` then does not count. Since version 2.
    pub pool: *const Pool,
}

// SAFETY: the first member of the struct is its size, and every pattern of bits is a value.
unsafe impl Sized for Options {
    const FIRST_VERSION: usize = std::mem::offset_of!(Options, pool);
}

/// Threads of the application, for the tasks of the CPU device. The thread that runs a program computes too, and waits
/// only for tasks that another one has begun: a pool that is busy costs time and nothing else.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Pool {
    /// `sizeof(monopour_pool)`.
    pub size: usize,
    /// The most threads that compute at once, that of the run among them.
    pub threads: usize,
    /// Passed to `share`. It lives as long as the models and sessions that have it.
    pub context: *mut c_void,
    /// Has `work(job)` called `others` times, each on another thread, at once or later, and returns without waiting for
    /// them. Called by any thread that runs a session. A call that never comes is a leak of some bytes.
    pub share: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            others: usize,
            work: extern "C" fn(job: *mut c_void),
            job: *mut c_void,
        ),
    >,
}

// SAFETY: the first member of the struct is its size, and every pattern of bits is a value: null is no function.
unsafe impl Sized for Pool {
    const FIRST_VERSION: usize = size_of::<Pool>();
}

type Share = unsafe extern "C" fn(*mut c_void, usize, extern "C" fn(*mut c_void), *mut c_void);

/// A pool of the caller.
#[derive(Debug)]
struct Lent {
    threads: usize,
    context: *mut c_void,
    share: Share,
}

// SAFETY: by the contract of `monopour_pool` any thread may call `share` with the context.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

/// What a call of the caller's threads is for.
struct Job(Arc<dyn Fn() + Send + Sync>);

impl TaskPool for Lent {
    fn threads(&self) -> usize {
        self.threads
    }

    fn share(&self, others: usize, work: Arc<dyn Fn() + Send + Sync>) {
        let job = Arc::new(Job(work));
        for _ in 1..others {
            // Each call takes a reference.
            let _ = Arc::into_raw(job.clone());
        }
        let job = Arc::into_raw(job).cast_mut().cast();
        // SAFETY: the caller's word; the job has a reference for each call.
        unsafe { (self.share)(self.context, others, run_job, job) };
    }
}

/// A call of [`Pool::share`].
extern "C" fn run_job(job: *mut c_void) {
    // SAFETY: the caller passes the job of `share`, at most as often as it has references.
    let job = unsafe { Arc::from_raw(job.cast::<Job>()) };
    (job.0)();
}

/// # Safety
/// `pool` is null, or a struct whose `size` is set and whose members are what it says.
unsafe fn pool_of(pool: *const Pool) -> Result<Option<Arc<dyn TaskPool>>, Failure> {
    if pool.is_null() {
        return Ok(None);
    }
    let none = Pool { size: 0, threads: 0, context: std::ptr::null_mut(), share: None };
    // SAFETY: passed on.
    let Pool { threads, context, share, .. } = unsafe { read_sized(pool, none) }?;
    let share = share.ok_or_else(|| Failure::argument("a pool has no function"))?;
    Ok(Some(Arc::new(Lent { threads, context, share })))
}

/// # Safety
/// `options` is null, or a struct whose `size` is set; its pool is null or as `monopour_pool` says.
pub(crate) unsafe fn options_of(options: *const Options) -> Result<monopour_runtime::Options, Failure> {
    if options.is_null() {
        return Ok(monopour_runtime::Options::default());
    }
    let (host, pool) = (MONOPOUR_HOST_AUTO, std::ptr::null());
    let defaults = Options { size: 0, threads: 0, memory_limit: 0, host_steps: 0, host, pool };
    // SAFETY: passed on.
    let given = unsafe { read_sized(options, defaults) }?;
    let host = match given.host {
        MONOPOUR_HOST_AUTO => HostForm::Auto,
        MONOPOUR_HOST_NATIVE => HostForm::Native,
        MONOPOUR_HOST_DATA => HostForm::Data,
        other => return Err(Failure::argument(format!("{other} is no form of the host function"))),
    };
    // SAFETY: passed on.
    let pool = unsafe { pool_of(given.pool) }?;
    Ok(monopour_runtime::Options {
        threads: given.threads.min(1024),
        memory_limit: Some(given.memory_limit).filter(|bytes| *bytes > 0),
        host_steps: Some(given.host_steps).filter(|steps| *steps > 0),
        host,
        pool,
        ..monopour_runtime::Options::default()
    })
}
