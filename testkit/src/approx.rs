//! Comparison with tolerance.

use crate::host_tensor::HostTensor;
use std::fmt;

/// Allowed difference from the reference: `absolute + relative * |reference|`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tolerance {
    /// Part that does not depend on the size of the reference.
    pub absolute: f64,
    /// Part in proportion to it.
    pub relative: f64,
}

impl Tolerance {
    /// Both parts alike.
    pub const fn both(tolerance: f64) -> Self {
        Self { absolute: tolerance, relative: tolerance }
    }
    /// No difference.
    pub const EXACT: Self = Self::both(0.0);
}

/// The worst element of a comparison that failed.
#[derive(Clone, PartialEq, Debug)]
pub struct Mismatch {
    /// Its index.
    pub index: Vec<usize>,
    /// The value found.
    pub got: f64,
    /// The reference value.
    pub expected: f64,
    /// Number of elements out of tolerance.
    pub count: usize,
    /// Number of all elements.
    pub total: usize,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, got, expected, count, total } = self;
        write!(
            f,
            "{count} of {total} elements are out of tolerance; worst at {index:?}: got {got}, expected {expected}"
        )
    }
}

/// Compares element by element. NaN agrees with NaN only; infinities only with themselves.
///
/// # Errors
/// The worst element, or a difference in shape or type as text.
pub fn compare(got: &HostTensor, expected: &HostTensor, tolerance: Tolerance) -> Result<(), String> {
    if got.shape != expected.shape || got.dtype != expected.dtype {
        return Err(format!("got {:?} x {}, expected {:?} x {}", got.shape, got.dtype, expected.shape, expected.dtype));
    }
    worst(&got.to_f64(), &expected.to_f64(), tolerance).map_or(Ok(()), |(at, count)| {
        let mismatch = Mismatch {
            index: multi_index(&got.shape, at),
            got: got.to_f64()[at],
            expected: expected.to_f64()[at],
            count,
            total: got.len(),
        };
        Err(mismatch.to_string())
    })
}

/// The largest error relative to `1 + |reference|`, which is meaningful for small and for large values. Infinite where one
/// side is finite and the other is not.
pub fn worst_error(got: &HostTensor, expected: &HostTensor) -> f64 {
    let pairs = got.to_f64().into_iter().zip(expected.to_f64());
    pairs
        .map(|(g, e)| excess(g, e, Tolerance::EXACT) / (1.0 + if e.is_finite() { e.abs() } else { 0.0 }))
        .fold(0.0, f64::max)
}

/// Position of the element that exceeds its tolerance most, and the number of those that do.
fn worst(got: &[f64], expected: &[f64], tolerance: Tolerance) -> Option<(usize, usize)> {
    let mut worst = None;
    let mut count = 0;
    for (i, (g, e)) in got.iter().zip(expected).enumerate() {
        let excess = excess(*g, *e, tolerance);
        if excess > 0.0 {
            count += 1;
            if worst.is_none_or(|(_, w)| excess > w) {
                worst = Some((i, excess));
            }
        }
    }
    worst.map(|(i, _)| (i, count))
}

fn excess(got: f64, expected: f64, tolerance: Tolerance) -> f64 {
    if got == expected || (got.is_nan() && expected.is_nan()) {
        return 0.0;
    }
    let error = (got - expected).abs();
    if !error.is_finite() {
        return f64::INFINITY;
    }
    error - (tolerance.absolute + tolerance.relative * expected.abs())
}

fn multi_index(shape: &[usize], mut at: usize) -> Vec<usize> {
    let mut out = vec![0; shape.len()];
    for (slot, size) in out.iter_mut().zip(shape).rev() {
        *slot = at % size.max(&1);
        at /= size.max(&1);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(values: &[f32]) -> HostTensor {
        HostTensor::from_f32(&[2, values.len() / 2], values).expect("fits")
    }

    #[test]
    fn the_worst_element_is_named() {
        let message = compare(&tensor(&[1.0, 2.1, 3.0, 9.0]), &tensor(&[1.0, 2.0, 3.0, 4.0]), Tolerance::both(1e-3))
            .expect_err("differs");
        assert!(
            message.starts_with("2 of 4 elements are out of tolerance; worst at [1, 1]: got 9, expected 4"),
            "{message}"
        );
    }

    #[test]
    fn not_a_number_agrees_with_itself_only() {
        let nan = tensor(&[f32::NAN, 1.0]);
        assert!(compare(&nan, &nan, Tolerance::EXACT).is_ok());
        assert!(compare(&tensor(&[0.0, 1.0]), &nan, Tolerance::both(1e9)).is_err());
        assert!(compare(&nan, &tensor(&[0.0, 1.0]), Tolerance::both(1e9)).is_err());
    }
}
