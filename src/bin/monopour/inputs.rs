//! Inputs of a run: from files, or made from a seed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use monopour::npy;
use monopour::program::{DType, TensorDesc};
use monopour::runtime::{self, HostTensor};

use crate::failure::Failure;
use crate::names::{file_in, split_once};

/// Sources of inputs: a file for one input precedes the folder, the folder the seed.
pub struct Sources<'a> {
    /// `NAME=FILE` each.
    pub named: &'a [OsString],
    /// A folder with one `NAME.npy` each.
    pub folder: Option<&'a Path>,
    /// The seed for inputs without a file.
    pub seed: Option<u64>,
    /// The most bytes that the device will take: larger inputs need not be made.
    pub limit: Option<u64>,
}

/// The inputs of `descs`, in order.
pub fn gather(descs: &[TensorDesc], sources: &Sources<'_>) -> Result<Vec<HostTensor>, Failure> {
    let named = named(descs, sources.named)?;
    if sources.seed.is_some() {
        check_memory(descs, sources.limit, |desc| {
            named.contains_key(desc.name.as_str())
                || in_folder(sources.folder, &desc.name).is_ok_and(|file| file.is_some())
        })?;
    }
    let tensors = descs.iter().enumerate().map(|(position, desc)| {
        if let Some(path) = named.get(desc.name.as_str()) {
            return read(path, desc);
        }
        if let Some(path) = in_folder(sources.folder, &desc.name)? {
            return Ok(npy::read_as(&path, desc.dtype)?);
        }
        match sources.seed {
            Some(_) if !desc.is_static() => Err(inputs_error(format!(
                "input `{desc}` has sizes that only a file can give: use --input {0}={0}.npy",
                desc.name
            ))),
            Some(seed) => Ok(random(desc, seed, position as u64)?),
            None => Err(inputs_error(format!("input `{desc}` is missing"))),
        }
    });
    tensors.collect()
}

/// The inputs of `descs`, all random.
#[cfg(feature = "compiler")]
pub fn random_all(descs: &[TensorDesc], seed: u64) -> Result<Vec<HostTensor>, runtime::Error> {
    let made = descs.iter().zip(0..).map(|(desc, position)| {
        if desc.is_static() {
            return random(desc, seed, position);
        }
        let what =
            format!("input `{desc}` has sizes that nothing gives: bind them with --dim, or in the model's types");
        Err(runtime::Error::Inputs { what })
    });
    made.collect()
}

/// One input from its file: an ONNX tensor by the name `.pb`, else NumPy's.
fn read(path: &Path, desc: &TensorDesc) -> Result<HostTensor, Failure> {
    #[cfg(feature = "compiler")]
    if path.extension().is_some_and(|e| e == "pb") {
        let tensor = monopour::onnx::read_tensor(path).and_then(|tensor| monopour::onnx::to_host(&tensor));
        return tensor.map_err(|what| inputs_error(format!("{}: {what}", path.display())));
    }
    Ok(npy::read_as(path, desc.dtype)?)
}

/// The files of `NAME=FILE` arguments by name.
fn named<'a>(descs: &[TensorDesc], arguments: &'a [OsString]) -> Result<BTreeMap<&'a str, PathBuf>, Failure> {
    let mut files = BTreeMap::new();
    for argument in arguments {
        let (name, file) = split_once(argument, '=')
            .ok_or_else(|| Failure::usage(format!("--input takes NAME=FILE, found `{}`", argument.display())))?;
        if !descs.iter().any(|desc| desc.name == name) {
            let names: Vec<&str> = descs.iter().map(|desc| desc.name.as_str()).collect();
            return Err(inputs_error(format!("no input is named `{name}`; there are {}", names.join(", "))));
        }
        if files.insert(name, file).is_some() {
            return Err(inputs_error(format!("input `{name}` is given twice")));
        }
    }
    Ok(files)
}

/// The input's file in the folder, if there is one.
fn in_folder(folder: Option<&Path>, name: &str) -> Result<Option<PathBuf>, Failure> {
    let Some(folder) = folder else { return Ok(None) };
    Ok(Some(file_in(folder, name)?).filter(|path| path.exists()))
}

/// Refuses random inputs that exceed the free memory or the limit, before the first is made.
fn check_memory(
    descs: &[TensorDesc],
    limit: Option<u64>,
    has_file: impl Fn(&TensorDesc) -> bool,
) -> Result<(), Failure> {
    let made: Vec<&TensorDesc> = descs.iter().filter(|desc| desc.is_static() && !has_file(desc)).collect();
    let total = made.iter().fold(0u64, |sum, desc| sum.saturating_add(desc.size_bytes()));
    if let Some(limit_bytes) = limit.filter(|limit| total > *limit) {
        return Err(runtime::Error::MemoryLimit { asked_bytes: total, used_bytes: 0, limit_bytes }.into());
    }
    let free = free_memory().unwrap_or(u64::MAX);
    if total <= free {
        return Ok(());
    }
    let largest = made.iter().max_by_key(|desc| desc.size_bytes()).map_or(String::new(), |desc| desc.to_string());
    Err(inputs_error(format!(
        "random inputs take {total} bytes, {free} bytes of memory are free; the largest is `{largest}`"
    )))
}

/// Bytes that can be allocated without swapping; `None` if unknown.
fn free_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib << 10)
}

fn inputs_error(what: String) -> Failure {
    Failure::from(runtime::Error::Inputs { what })
}

/// Numbers from a seed, the same on every machine: floats in [-1, 1), integers in 0..8, truth values.
fn random(desc: &TensorDesc, seed: u64, position: u64) -> Result<HostTensor, runtime::Error> {
    let mut state = seed ^ position.wrapping_mul(0xd134_2543_de82_ef95);
    let mut next = || {
        // SplitMix64: every 64-bit state gives another number, and a zero seed is as good as any.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    };
    let mut data = Vec::new();
    let bytes = desc.size_bytes();
    data.try_reserve_exact(bytes as usize).map_err(|_| runtime::Error::Inputs {
        what: format!("no memory for random input `{desc}` of {bytes} bytes"),
    })?;
    for _ in 0..desc.elements() {
        let bits = next();
        // 24 bits: exact in f32.
        let unit = (bits >> 40) as f32 / (1 << 23) as f32 - 1.0;
        match desc.dtype {
            DType::F16 => data.extend(f16_bits(unit).to_le_bytes()),
            DType::F32 => data.extend(unit.to_le_bytes()),
            DType::F64 => data.extend(f64::from(unit).to_le_bytes()),
            DType::I1 => data.push((bits >> 63) as u8),
            DType::Bf16 => data.extend(npy::bf16_bits(unit).to_le_bytes()),
            DType::I8 | DType::U8 => data.push((bits >> 61) as u8),
            DType::I16 | DType::U16 => data.extend(((bits >> 61) as u16).to_le_bytes()),
            DType::I32 | DType::U32 => data.extend(((bits >> 61) as u32).to_le_bytes()),
            DType::I64 | DType::U64 | DType::Index => data.extend((bits >> 61).to_le_bytes()),
        }
    }
    HostTensor::new(desc.dtype, desc.shape.clone(), data)
}

/// The nearest f16 towards zero of a number in [-1, 1).
fn f16_bits(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16 & 0x8000) as u16;
    let exponent = (bits >> 23 & 0xff) as i32 - 127 + 15;
    if exponent <= 0 {
        // Too small for a normal half: zero will do for test data.
        return sign;
    }
    sign | (exponent as u16) << 10 | (bits >> 13 & 0x3ff) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn desc(dtype: DType) -> TensorDesc {
        TensorDesc { name: "x".into(), dtype, shape: vec![64], donated: false, scalar: false }
    }

    #[test]
    fn seeds_make_the_same_numbers_and_other_seeds_others() {
        for dtype in DType::ALL {
            let make = |seed, position| random(&desc(dtype), seed, position).unwrap();
            assert_eq!(make(1, 0), make(1, 0));
            assert_ne!(make(1, 0), make(2, 0));
            assert_ne!(make(1, 0), make(1, 1));
            let values = make(7, 0).to_f64();
            assert!(values.iter().all(|value| (-1.0..8.0).contains(value)), "{dtype}: {values:?}");
        }
        assert_eq!(f16_bits(-0.75), 0xba00);
    }
}
