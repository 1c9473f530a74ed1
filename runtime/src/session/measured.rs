//! The measurements of a session.

use crate::stats::{RunCounts, Samples, SteadyState};

/// The measurements so far.
#[derive(Default)]
pub(super) struct Record {
    /// Time and number of the pipelines built for loading and the first run.
    pub kernels: Option<(f64, u64)>,
    pub first_run_ms: Option<f64>,
    pub run_ms: Samples,
    pub gpu_ms: Samples,
    pub upload: (f64, u64),
    pub readback: (f64, u64),
    pub counts: RunCounts,
    /// Bytes of the last run's inputs on the device.
    pub input_bytes: u64,
    pub steady: SteadyState,
    pub unfreed: u64,
}

impl Record {
    /// Drops the times of earlier runs, except that of the first.
    pub fn reset_times(&mut self) {
        self.run_ms = Samples::default();
        self.gpu_ms = Samples::default();
    }
}

/// Counts of created objects, to compute those of one run.
#[derive(Clone, Copy)]
pub(super) struct Created {
    pub buffers: u64,
    pub bind_groups: u64,
    pub pipelines: u64,
}
