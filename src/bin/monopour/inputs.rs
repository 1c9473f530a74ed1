//! Inputs of a run: from files, or made from a seed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use monopour::npy;
use monopour::program::{DType, TensorDesc};
use monopour::runtime::{self, HostTensor};

use crate::failure::Failure;

/// Where inputs come from; a file named for one input goes before the folder, the folder before the seed.
pub struct Sources<'a> {
    /// `NAME=FILE.npy` each.
    pub named: &'a [String],
    /// A folder with one `NAME.npy` each.
    pub folder: Option<&'a Path>,
    /// The seed for inputs without a file.
    pub seed: Option<u64>,
}

/// The inputs that `descs` ask for, in their order.
pub fn gather(descs: &[TensorDesc], sources: &Sources<'_>) -> Result<Vec<HostTensor>, Failure> {
    let named = named(descs, sources.named)?;
    let tensors = descs.iter().enumerate().map(|(position, desc)| {
        if let Some(path) = named.get(desc.name.as_str()) {
            return Ok(npy::read_as(path, desc.dtype)?);
        }
        if let Some(path) = sources.folder.map(|folder| file_in(folder, &desc.name)).filter(|path| path.exists()) {
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

/// The file of a tensor in a folder.
pub fn file_in(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.npy"))
}

/// The files of `NAME=FILE.npy` arguments by name.
fn named<'a>(descs: &[TensorDesc], arguments: &'a [String]) -> Result<BTreeMap<&'a str, PathBuf>, Failure> {
    let mut files = BTreeMap::new();
    for argument in arguments {
        let (name, file) = argument
            .split_once('=')
            .ok_or_else(|| Failure::usage(format!("--input takes NAME=FILE.npy, found `{argument}`")))?;
        if !descs.iter().any(|desc| desc.name == name) {
            let names: Vec<&str> = descs.iter().map(|desc| desc.name.as_str()).collect();
            return Err(inputs_error(format!("no input is named `{name}`; there are {}", names.join(", "))));
        }
        if files.insert(name, PathBuf::from(file)).is_some() {
            return Err(inputs_error(format!("input `{name}` is given twice")));
        }
    }
    Ok(files)
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
    let mut data = Vec::with_capacity(desc.size_bytes() as usize);
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

/// The half nearest to zero from a number in [-1, 1).
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
