//! Outputs of a run: writes, summarises and compares them.

use std::path::Path;

use monopour::npy;
use monopour::program::{self, TensorDesc};
use monopour::runtime::HostTensor;

use crate::failure::Failure;
use crate::names::{check_files, file_in};

/// Values shown of each output.
const SHOWN: usize = 8;

/// Writes one `NAME.npy` each.
pub fn write(folder: &Path, descs: &[TensorDesc], tensors: &[HostTensor]) -> Result<(), Failure> {
    let failed = |error: std::io::Error| program::Error::io(folder, &error);
    std::fs::create_dir_all(folder).map_err(failed)?;
    for (desc, tensor) in descs.iter().zip(tensors) {
        npy::write(&file_in(folder, &desc.name)?, tensor)?;
    }
    Ok(())
}

/// Refuses names that no file in `folder` can have, before the run.
pub fn check_names(folder: &Path, descs: &[TensorDesc]) -> Result<(), Failure> {
    check_files(folder, descs.iter().map(|desc| desc.name.as_str()))
}

/// A line per output: type, range, mean, first values.
pub fn summary(desc: &TensorDesc, tensor: &HostTensor) -> String {
    let values = tensor.to_f64();
    if let (true, [value]) = (desc.scalar, &values[..]) {
        return format!("{desc} = {}", short(*value));
    }
    // The sizes of this run in place of dynamic ones.
    let desc = &TensorDesc { shape: tensor.shape().to_vec(), ..desc.clone() };
    if values.is_empty() {
        return format!("{desc}  empty");
    }
    let finite: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    let nans = values.len() - finite.len();
    let min = finite.iter().copied().fold(f64::INFINITY, f64::min);
    let max = finite.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mean = finite.iter().sum::<f64>() / finite.len().max(1) as f64;
    let first: Vec<String> = values.iter().take(SHOWN).map(|value| short(*value)).collect();
    let more = if values.len() > SHOWN { " ..." } else { "" };
    let nans = if nans > 0 { format!("  nan {nans}") } else { String::new() };
    let (min, max, mean) = (short(min), short(max), short(mean));
    format!("{desc}  min {min}  max {max}  mean {mean}{nans}  [{}{more}]", first.join(" "))
}

/// Six significant digits.
fn short(value: f64) -> String {
    if value == 0.0 || (1e-4..1e9).contains(&value.abs()) {
        let digits = if value == 0.0 { 0 } else { (5 - value.abs().log10().floor() as i32).clamp(0, 9) as usize };
        let text = format!("{value:.digits$}");
        return if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text };
    }
    format!("{value:.5e}")
}

/// Compares each output with its `NAME.npy`: `|found - expected| <= atol + rtol * |expected|`, NaN equal to NaN. Reports
/// each output's worst element.
pub fn check(
    folder: &Path,
    descs: &[TensorDesc],
    tensors: &[HostTensor],
    (rtol, atol): (f64, f64),
) -> Result<Vec<String>, Failure> {
    let mut matches = Vec::new();
    let mut failures = Vec::new();
    for (desc, tensor) in descs.iter().zip(tensors) {
        let expected = npy::read_as(&file_in(folder, &desc.name)?, desc.dtype)?;
        match compare(desc, tensor, &expected, (rtol, atol)) {
            Ok(line) => matches.push(line),
            Err(line) => failures.push(line),
        }
    }
    if failures.is_empty() { Ok(matches) } else { Err(mismatch(&failures)) }
}

fn mismatch(failures: &[String]) -> Failure {
    Failure::input(format!("{}\n  help: check the reference, or widen `--rtol` and `--atol`", failures.join("\n")))
}

fn compare(
    desc: &TensorDesc,
    found: &HostTensor,
    expected: &HostTensor,
    (rtol, atol): (f64, f64),
) -> Result<String, String> {
    let name = &desc.name;
    let fail = |what: String| Err(format!("error[R0018]: output `{name}` {what}"));
    if expected.dtype() != found.dtype() || expected.shape() != found.shape() {
        return fail(format!(
            "has type {:?} {}, expected {:?} {}",
            found.shape(),
            found.dtype(),
            expected.shape(),
            expected.dtype()
        ));
    }
    let shape = found.shape();
    let (found, expected) = (found.to_f64(), expected.to_f64());
    let (mut worst, mut worst_at, mut wrong, mut largest) = (0.0, 0, 0, 0.0f64);
    for (at, (&f, &e)) in found.iter().zip(&expected).enumerate() {
        if f == e || (f.is_nan() && e.is_nan()) {
            continue;
        }
        let difference = (f - e).abs();
        let allowed = atol + rtol * e.abs();
        // Infinity or NaN on one side only is worse than any number.
        let measure = if difference.is_finite() { difference / allowed } else { f64::INFINITY };
        largest = largest.max(if difference.is_finite() { difference } else { f64::INFINITY });
        wrong += usize::from(measure > 1.0);
        if measure > worst {
            (worst, worst_at) = (measure, at);
        }
    }
    if wrong > 0 {
        let place = indices(worst_at as u64, shape);
        let (f, e) = (short(found[worst_at]), short(expected[worst_at]));
        let count = format!("{wrong} of {} elements differ", found.len());
        return fail(format!("differs at {place:?}: found {f}, expected {e} ({count})"));
    }
    Ok(format!("output `{name}` matches, largest difference {}", short(largest)))
}

/// The index of element `at` of a row-major tensor.
fn indices(mut at: u64, shape: &[u64]) -> Vec<u64> {
    let mut indices: Vec<u64> = shape
        .iter()
        .rev()
        .map(|&extent| {
            let index = at % extent.max(1);
            at /= extent.max(1);
            index
        })
        .collect();
    indices.reverse();
    indices
}

#[cfg(test)]
mod tests {
    use super::*;
    use monopour::program::DType;

    fn tensor(values: &[f32]) -> HostTensor {
        HostTensor::from_f32(vec![2, values.len() as u64 / 2], values).unwrap()
    }

    fn desc() -> TensorDesc {
        TensorDesc { name: "y".into(), dtype: DType::F32, shape: vec![2, 2], donated: false, scalar: false }
    }

    #[test]
    fn the_worst_element_is_named() {
        let expected = tensor(&[1.0, 2.0, 3.0, f32::NAN]);
        let check = |values: &[f32]| compare(&desc(), &tensor(values), &expected, (0.01, 0.0));
        assert_eq!(check(&[1.0, 2.01, 3.0, f32::NAN]).unwrap(), "output `y` matches, largest difference 0.00999999");
        let text = check(&[1.0, 2.1, 4.0, f32::NAN]).unwrap_err();
        assert_eq!(text, "error[R0018]: output `y` differs at [1, 0]: found 4, expected 3 (2 of 4 elements differ)");
        assert!(check(&[1.0, 2.0, f32::NAN, f32::NAN]).unwrap_err().contains("found NaN"));
        let other = compare(&desc(), &tensor(&[0.0; 4]), &tensor(&[0.0; 2]), (0.0, 0.0)).unwrap_err();
        assert!(other.contains("expected [2, 1] f32"), "{other}");
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/errors/R0018.md");
        assert!(page.exists());
    }

    #[test]
    fn summaries_are_short() {
        let text = summary(&desc(), &tensor(&[1.0, -2.5, 3.25e-7, 1.0 / 3.0]));
        assert_eq!(text, "y: tensor<2x2xf32>  min -2.5  max 1  mean -0.291667  [1 -2.5 3.25000e-7 0.333333]");
    }
}
