//! Times of repeated runs, and the check of what they give.

use crate::Result;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How long a side is timed in a round, with at least `LEAST_RUNS` runs.
const BUDGET: Duration = Duration::from_millis(250);
const LEAST_RUNS: usize = 5;
const MOST_RUNS: usize = 2000;
/// The absolute error that every program is held to.
const TOLERANCE: f64 = 1e-3;

/// Seconds of each run, after one that is not timed.
pub fn seconds_of(mut run: impl FnMut()) -> Vec<f64> {
    run();
    let begin = Instant::now();
    let mut out = Vec::new();
    while out.len() < LEAST_RUNS || (begin.elapsed() < BUDGET && out.len() < MOST_RUNS) {
        let start = Instant::now();
        run();
        out.push(start.elapsed().as_secs_f64());
    }
    out
}

/// The median.
///
/// # Panics
/// Where there are no values.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The answer for a peer: checks `values` against `expected`, then times `run`.
///
/// # Errors
/// Where a value is wrong, or a run fails.
pub fn checked(values: &[f32], expected: &[f32], mut run: impl FnMut() -> Result<()>) -> Result<Value> {
    if values.len() != expected.len() {
        return Err(format!("{} values, expected {}", values.len(), expected.len()).into());
    }
    // A NaN is no error below the bound either.
    let error = values.iter().zip(expected).map(|(a, b)| (f64::from(*a) - f64::from(*b)).abs());
    let error = error.fold(0.0, |most: f64, e| if e > most || e.is_nan() { e } else { most });
    if error.is_nan() || error > TOLERANCE {
        return Err(format!("wrong values, max error {error}").into());
    }
    run()?;
    let mut failed = None;
    let times = seconds_of(|| failed = run().err().or(failed.take()));
    if let Some(error) = failed {
        return Err(error);
    }
    let runs = times.len();
    Ok(json!({"wall_ms": median(times) * 1e3, "error": error, "runs": runs}))
}
