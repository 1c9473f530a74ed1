//! The arrays that `benches/gen.py` writes: f32, in C order.

use crate::Result;
use std::path::Path;

/// An array, and its sizes.
pub struct Array {
    /// Sizes, outermost first.
    pub shape: Vec<usize>,
    /// Elements in C order.
    pub values: Vec<f32>,
}

/// The inputs of a program in order, and what it should give.
///
/// # Errors
/// Where a file is missing or is no array of f32 in C order.
pub fn of_program(directory: &Path, program: &str) -> Result<(Vec<Array>, Array)> {
    let data = directory.join("data");
    let inputs = (0..)
        .map(|i| data.join(format!("{program}.in{i}.npy")))
        .take_while(|path| path.exists())
        .map(|path| read(&path))
        .collect::<Result<Vec<_>>>()?;
    Ok((inputs, read(&data.join(format!("{program}.ref.npy")))?))
}

fn read(path: &Path) -> Result<Array> {
    let named = |what: &str| format!("{}: {what}", path.display());
    let bytes = std::fs::read(path).map_err(|error| named(&error.to_string()))?;
    // Version 1 of the format: magic and version in 8 bytes, the header's length in 2, the header, the elements.
    let length = bytes.get(8..10).ok_or_else(|| named("too short"))?;
    let start = 10 + usize::from(u16::from_le_bytes([length[0], length[1]]));
    let header = String::from_utf8_lossy(bytes.get(10..start).ok_or_else(|| named("too short"))?);
    if !bytes.starts_with(b"\x93NUMPY\x01") || !header.contains("'<f4'") || !header.contains("'fortran_order': False") {
        return Err(named("no array of f32 in C order").into());
    }
    let sizes = header.split_once('(').and_then(|(_, rest)| rest.split_once(')')).ok_or_else(|| named("no shape"))?.0;
    let shape = sizes
        .split(',')
        .map(str::trim)
        .filter(|s| !s.is_empty())
        .map(str::parse)
        .collect::<std::result::Result<_, _>>()?;
    let values = bytes[start..].chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    Ok(Array { shape, values })
}
