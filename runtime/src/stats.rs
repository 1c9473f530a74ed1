//! Measurements of a session. Every number comes from the runs of this session, on this device.

use monopour_program::Bounds;
use serde::Serialize;

/// Counts of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RunCounts {
    /// Kernels run, utility kernels included.
    pub dispatches: u64,
    /// Submissions to the device; 0 on the CPU.
    pub submits: u64,
    /// Copies between buffers or within one, by command or by kernel.
    pub copies: u64,
    /// Bytes that those copies write.
    pub copied_bytes: u64,
    /// Transfers between host and device within the run.
    pub transfers: u64,
    /// Bytes of those transfers.
    pub transfer_bytes: u64,
    /// Scalars read back by host code.
    pub scalar_reads: u64,
    /// Logical allocations, results included; the transients of the arena and those that a run plans together count as one each.
    pub allocations: u64,
    /// Memory plans made, for sizes that did not come before.
    #[serde(skip)]
    pub plans: u64,
    /// Bytes of memory that the run asked for beyond inputs and constants: the arena, the most that it had of the pool at
    /// once, and results that are not in donated buffers.
    pub fresh_bytes: u64,
    /// By size class: the most that it had of the pool at once, results not counted.
    #[serde(skip)]
    pub pool_bytes: u64,
    /// By size class: results that are not in donated buffers.
    #[serde(skip)]
    pub result_bytes: u64,
}

/// Device memory of the last run, in bytes as taken from the device, by size class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Inputs, numbers not counted.
    pub inputs: u64,
    /// Constants; 0 on the CPU, where they stay in the mapped file.
    pub constants: u64,
    /// Results, those in donated inputs not counted.
    pub results: u64,
    /// The arena of the transients.
    pub arena: u64,
    /// The most that the run had at once of the pool, without results.
    pub pool: u64,
    /// Buffers for readback, and between two places of one buffer; 0 on the CPU.
    pub staging: u64,
    /// Donated inputs that were uploaded again for the last run.
    pub restored: u64,
}

/// Objects created by a run; all zero once the session is warm and earlier outputs are dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SteadyState {
    /// Buffers made.
    pub buffers_created: u64,
    /// Bind groups made.
    pub bind_groups_created: u64,
    /// Pipelines made.
    pub pipelines_created: u64,
    /// Memory plans made.
    pub plans_made: u64,
}

/// Times of several runs in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RunTimes {
    /// The fastest run.
    pub min: f64,
    /// The median.
    pub median: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The slowest run.
    pub max: f64,
}

/// Device times of several runs in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct GpuTimes {
    /// The fastest run.
    pub min: f64,
    /// The median.
    pub median: f64,
}

/// The object that `--stats=json` prints.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stats {
    /// `gpu` or `cpu`.
    pub device: String,
    /// The adapter's or CPU's name.
    pub adapter: String,
    /// Threads of the CPU target; 1 on a GPU.
    pub threads: usize,
    /// Source to program; absent for a program that was compiled before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compile_ms: Option<f64>,
    /// Program to ready session: pipelines built, constants uploaded.
    pub load_ms: f64,
    /// The part of `load_ms` and `first_run_ms` for building kernels, while constants are uploaded. Absent on the CPU,
    /// whose kernels are compiled, and before the first run. A driver may defer a part until kernels first run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernels_ms: Option<f64>,
    /// Pipelines built in that time; equal kernels are built once.
    pub kernels_built: u64,
    /// Bytes of the driver's pipeline cache from an earlier process.
    pub pipeline_cache_bytes: u64,
    /// Times of the runs after the first; absent until there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_ms: Option<RunTimes>,
    /// Number of runs in `run_ms`.
    pub runs: usize,
    /// Time of the first run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_run_ms: Option<f64>,
    /// Sum of the dispatches by the device's timestamps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_ms: Option<GpuTimes>,
    /// Inputs to the device, the last time.
    pub upload_ms: f64,
    /// Bytes of the inputs.
    pub upload_bytes: u64,
    /// Outputs to the host, the last time.
    pub readback_ms: f64,
    /// Bytes of the outputs.
    pub readback_bytes: u64,
    /// Counts of the last run.
    #[serde(flatten)]
    pub counts: RunCounts,
    /// Memory of the last run by use.
    pub memory: Memory,
    /// High-water mark of device memory.
    pub peak_device_bytes: u64,
    /// Transients as planned.
    pub planned_bytes: u64,
    /// Largest sum of sizes of transients live at once.
    pub lower_bound_bytes: u64,
    /// Lower bounds of the program, whatever is decided: peak bytes beyond inputs and constants, copies and their bytes.
    pub bounds: Bounds,
    /// Objects created by the last run.
    pub steady_state: SteadyState,
}

/// Most times kept: a session that runs for days does not grow.
const MAX_SAMPLES: usize = 4096;

/// Times of runs: all of them up to a number, then a fair choice. The number, the fastest and the slowest are exact.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples {
    kept: Vec<f64>,
    seen: usize,
    range: Option<(f64, f64)>,
    random: u64,
}

impl Samples {
    pub fn push(&mut self, time: f64) {
        self.seen += 1;
        let (min, max) = self.range.unwrap_or((time, time));
        self.range = Some((min.min(time), max.max(time)));
        if self.kept.len() < MAX_SAMPLES {
            self.kept.push(time);
            return;
        }
        // Each time of all so far is kept with the same chance.
        self.random = self.random.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let at = (self.random >> 33) as usize % self.seen;
        if let Some(kept) = self.kept.get_mut(at) {
            *kept = time;
        }
    }

    /// The number of times.
    pub fn count(&self) -> usize {
        self.seen
    }

    /// The order statistics; `None` without any time.
    pub fn summarize(&self) -> Option<RunTimes> {
        let (min, max) = self.range?;
        let mut sorted = self.kept.clone();
        sorted.sort_by(f64::total_cmp);
        // Nearest rank: a percentile is always a measured time.
        let rank = |percent: usize| sorted[(sorted.len() * percent).div_ceil(100).clamp(1, sorted.len()) - 1];
        Some(RunTimes { min, median: rank(50), p95: rank(95), max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: impl IntoIterator<Item = f64>) -> Samples {
        let mut samples = Samples::default();
        times.into_iter().for_each(|time| samples.push(time));
        samples
    }

    #[test]
    fn order_statistics_are_measured_times() {
        assert_eq!(of([]).summarize(), None);
        assert_eq!(of([3.0]).summarize(), Some(RunTimes { min: 3.0, median: 3.0, p95: 3.0, max: 3.0 }));
        let times = RunTimes { min: 1.0, median: 50.0, p95: 95.0, max: 100.0 };
        assert_eq!(of((1..=100).rev().map(f64::from)).summarize(), Some(times));
    }

    #[test]
    fn many_times_are_a_fair_choice_of_constant_size() {
        let samples = of((1..=1_000_000).map(f64::from));
        assert_eq!((samples.count(), samples.kept.len()), (1_000_000, MAX_SAMPLES));
        let times = samples.summarize().unwrap();
        assert_eq!((times.min, times.max), (1.0, 1e6));
        assert!((480e3..520e3).contains(&times.median) && (940e3..960e3).contains(&times.p95), "{times:?}");
    }
}
