//! Spans and events of the crate `tracing`, with the feature of that name. `no_spans` is in its place without it.
//!
//! All have the target `monopour`; spans are of level `DEBUG`, events of `TRACE`.

use tracing::field::Empty;
use tracing::{Level, Span, debug_span, enabled, trace};

use crate::error::Error;
use crate::stats::RunCounts;

const TARGET: &str = "monopour";

/// A piece of work on a model.
#[derive(Debug)]
pub(crate) struct Work(Span);

impl Work {
    /// Loading a model; what it is of is known later.
    pub fn load(entry: &str, device: &str) -> Work {
        Work(debug_span!(target: TARGET, "load", entry, device, variant = Empty, host = Empty, error = Empty))
    }

    /// A run, in the span that is current where it is made: another thread may do it.
    pub fn run(entry: &str, device: &str) -> Work {
        let span = debug_span!(
            target: TARGET, "run", entry, device,
            dispatches = Empty, copies = Empty, copied_bytes = Empty, submits = Empty, error = Empty
        );
        Work(span)
    }

    /// Recording a run into the caller's encoder.
    pub fn record(entry: &str, device: &str) -> Work {
        let span = debug_span!(
            target: TARGET, "record", entry, device,
            dispatches = Empty, copies = Empty, copied_bytes = Empty, submits = Empty, error = Empty
        );
        Work(span)
    }

    /// Does a part of it, in the span; a failure is noted.
    pub fn within<T>(&self, f: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        self.0.in_scope(f).inspect_err(|error| {
            self.0.record("error", error.code());
        })
    }

    /// Notes the variant that was loaded, with the form of its host function.
    pub fn loaded(&self, variant: impl FnOnce() -> String, host: &str) {
        if !self.0.is_disabled() {
            self.0.record("variant", variant()).record("host", host);
        }
    }

    /// Notes what a run did.
    pub fn ran(&self, counts: &RunCounts) {
        self.0
            .record("dispatches", counts.dispatches)
            .record("copies", counts.copies)
            .record("copied_bytes", counts.copied_bytes)
            .record("submits", counts.submits);
    }
}

/// Whether someone listens to dispatches.
pub(crate) fn follows_dispatches() -> bool {
    enabled!(target: TARGET, Level::TRACE)
}

/// A kernel was recorded, or has run.
pub(crate) fn dispatched(kernel: &str, (op, location): (&str, &str), [x, y, z]: [u64; 3]) {
    trace!(target: TARGET, kernel, op, location, grid = %format_args!("{x}x{y}x{z}"), "dispatch");
}
