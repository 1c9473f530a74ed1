//! Error scopes of this thread, which are closed while the device is polled.
//!
//! Polling runs callbacks, and on a device that is the caller's these are others' work: what they do wrong is not ours to
//! catch, and must reach the caller's scopes and handler.

use std::cell::RefCell;

thread_local! {
    /// The scopes that are open on this thread, outermost first.
    static OPEN: RefCell<Vec<Scopes>> = const { RefCell::new(Vec::new()) };
}

/// One scope per kind of error.
struct Scopes {
    device: wgpu::Device,
    /// Innermost first, the order in which they are popped; `None` while the device is polled.
    guards: Option<[wgpu::ErrorScopeGuard; 3]>,
    /// The first error of the guards that were popped.
    report: Option<wgpu::Error>,
}

impl Scopes {
    fn open(&mut self) {
        use wgpu::ErrorFilter::{Internal, OutOfMemory, Validation};
        let [memory, internal, validation] =
            [OutOfMemory, Internal, Validation].map(|filter| self.device.push_error_scope(filter));
        self.guards = Some([validation, internal, memory]);
    }

    fn close(&mut self) {
        // Natively the futures are ready at once.
        let reports = self.guards.take().map(|guards| guards.map(|guard| pollster::block_on(guard.pop())));
        let first = reports.into_iter().flatten().flatten().next();
        self.report = self.report.take().or(first);
    }
}

/// Runs `f` in error scopes, and returns the first error beside its outcome.
pub(super) fn scoped<T>(device: &wgpu::Device, f: impl FnOnce() -> T) -> (T, Option<wgpu::Error>) {
    let mut scopes = Scopes { device: device.clone(), guards: None, report: None };
    scopes.open();
    OPEN.with_borrow_mut(|open| open.push(scopes));
    let last = Innermost;
    let outcome = f();
    (outcome, last.close())
}

/// The innermost scopes of this thread, closed on unwinding too.
struct Innermost;

impl Innermost {
    fn close(self) -> Option<wgpu::Error> {
        std::mem::forget(self);
        close_innermost()
    }
}

impl Drop for Innermost {
    fn drop(&mut self) {
        close_innermost();
    }
}

fn close_innermost() -> Option<wgpu::Error> {
    let mut scopes = OPEN.with_borrow_mut(Vec::pop)?;
    scopes.close();
    scopes.report
}

/// Runs `f`, in which others' callbacks may run, outside of this thread's scopes; tells it whether they are without errors.
pub(super) fn unscoped<T>(f: impl FnOnce(bool) -> T) -> T {
    // From the innermost out, as they have to be popped.
    OPEN.with_borrow_mut(|open| open.iter_mut().rev().for_each(Scopes::close));
    let is_clean = OPEN.with_borrow(|open| open.iter().all(|scopes| scopes.report.is_none()));
    let _again = Reopen;
    f(is_clean)
}

/// Opens the scopes again, on unwinding too.
struct Reopen;

impl Drop for Reopen {
    fn drop(&mut self) {
        OPEN.with_borrow_mut(|open| open.iter_mut().for_each(Scopes::open));
    }
}
