//! Runs in flight.

use std::time::Duration;

use crate::session::{Session, SharedSession, lock};
use crate::status::{Failure, guard};
use crate::structs::{free, give, object};
use crate::tensor::{Results, Tensor, inputs_of};

/// No limit for a wait.
pub const MONOPOUR_FOREVER: u64 = u64::MAX;

/// A run that was submitted.
pub struct Run {
    run: monopour_runtime::Run,
    session: SharedSession,
}

/// # Safety
/// As [`monopour_session_submit`].
unsafe fn hand_over(
    session: *const Session,
    (inputs, inputs_len): (*const Tensor, usize),
    out: *mut *mut Run,
    begins: bool,
) -> Result<(), Failure> {
    // SAFETY: passed on.
    let session = unsafe { object(session, "session") }?;
    // SAFETY: passed on.
    let given = unsafe { inputs_of(inputs, inputs_len) }?;
    let submit = || {
        let mut locked = lock(&session.session);
        let inputs = locked.upload_from(&given)?;
        let run = if begins { locked.begin(&inputs)? } else { locked.submit(&inputs)? };
        Ok(Run { run, session: session.session.clone() })
    };
    // SAFETY: passed on.
    unsafe { give(out, submit) }
}

/// Hands a run to a thread of the session, and returns once the inputs are copied. Runs of a session run in order, on a
/// GPU with the next one recorded meanwhile.
///
/// # Safety
/// `session` is a session; `inputs` points to `inputs_len` tensors whose `size` is set and whose pointers hold what
/// they say; `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_session_submit(
    session: *const Session,
    inputs: *const Tensor,
    inputs_len: usize,
    out: *mut *mut Run,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's word.
        unsafe { hand_over(session, (inputs, inputs_len), out, false) }
    })
}

/// As `monopour_session_submit`, for a run that is spread over time: it makes no dispatch but those that
/// `monopour_run_advance` allows. The next call of the session, or a wait for the run, lets it go on to its end.
///
/// # Safety
/// As `monopour_session_submit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_session_begin(
    session: *const Session,
    inputs: *const Tensor,
    inputs_len: usize,
    out: *mut *mut Run,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's word.
        unsafe { hand_over(session, (inputs, inputs_len), out, true) }
    })
}

/// Lets a run that was begun make `dispatches` more, and returns when the device has them; on a CPU, when they are
/// done. Returns 1 if some may be left, else 0: `monopour_run_wait` is next, for errors too. 0 of null.
///
/// # Safety
/// `run` is null or a run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_run_advance(run: *const Run, dispatches: u64) -> i32 {
    let mut is_left = false;
    guard(|| {
        // SAFETY: the caller's word.
        is_left = unsafe { object(run, "run") }?.run.advance(dispatches);
        Ok(())
    });
    i32::from(is_left)
}

/// Waits for the results, `timeout_ms` milliseconds at most (`MONOPOUR_FOREVER`: without a limit), after which it
/// returns 24 (R0024) and the run goes on. Results can be taken once. 25 (R0025) after `monopour_run_cancel`.
///
/// # Safety
/// `run` is a run; `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_run_wait(run: *const Run, timeout_ms: u64, out: *mut *mut Results) -> i32 {
    guard(|| {
        // SAFETY: the caller's word.
        let run = unsafe { object(run, "run") }?;
        let timeout = (timeout_ms != MONOPOUR_FOREVER).then(|| Duration::from_millis(timeout_ms));
        let wait = || {
            let outputs = run.run.wait(timeout)?;
            Ok(Results::new(lock(&run.session).readback(&outputs)?))
        };
        // SAFETY: the caller's word.
        unsafe { give(out, wait) }
    })
}

/// 1 if a wait would return at once, else 0; 0 of null.
///
/// # Safety
/// `run` is null or a run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_run_is_done(run: *const Run) -> i32 {
    // SAFETY: the caller's word.
    unsafe { run.as_ref() }.map_or(0, |run| i32::from(run.run.is_done()))
}

/// Ends a run, and returns at once: on a CPU the tasks that run are the last ones; on a GPU what was submitted runs to
/// its end, and its results are dropped.
///
/// # Safety
/// `run` is null or a run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_run_cancel(run: *const Run) {
    // SAFETY: the caller's word.
    if let Some(run) = unsafe { run.as_ref() } {
        run.run.cancel();
    }
}

/// Frees a run, which goes on to its end.
///
/// # Safety
/// `run` is null, or a run that was not freed and that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_run_free(run: *mut Run) {
    // SAFETY: the caller's word.
    unsafe { free(run) };
}
