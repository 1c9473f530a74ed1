//! Tensors in NumPy's `.npy` files, format versions 1 to 3.
//!
//! Limits: little-endian, C order, and the element types that programs have (R0017 otherwise).

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use monopour_program::{DType, write_atomically};
use monopour_runtime::HostTensor;

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// NumPy pads the header so that the data begins at a multiple of this.
const ALIGNMENT: usize = 64;

/// A file that cannot be read or written as a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    path: PathBuf,
    what: String,
}

impl Error {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        "R0017"
    }

    /// A remedy.
    pub fn help(&self) -> &'static str {
        "write the array with `numpy.save(path, numpy.ascontiguousarray(array))`"
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.path.display(), self.what)
    }
}

impl std::error::Error for Error {}

/// Reads a tensor.
///
/// # Errors
/// R0017.
pub fn read(path: &Path) -> Result<HostTensor, Error> {
    let fail = |what: String| Error { path: path.to_owned(), what };
    let bytes = read_bytes(path).map_err(|error| fail(error.to_string()))?;
    parse(&bytes).map_err(fail)
}

/// Reads a tensor for an input of type `dtype`: integers of the same width pass bit by bit whatever their sign, 64-bit ones
/// stand for `index`, and f32 is rounded to bf16. Other types are returned as in the file.
///
/// # Errors
/// R0017.
pub fn read_as(path: &Path, dtype: DType) -> Result<HostTensor, Error> {
    let tensor = read(path)?;
    let data = match (tensor.dtype(), dtype) {
        (from, to) if from == to => return Ok(tensor),
        (from, to) if from.signless() == to.signless() => tensor.data().to_vec(),
        (DType::F32, DType::Bf16) => {
            let values = tensor.to_f32().unwrap_or_default();
            values.into_iter().flat_map(|value| bf16_bits(value).to_le_bytes()).collect()
        }
        _ => return Ok(tensor),
    };
    HostTensor::new(dtype, tensor.shape().to_vec(), data)
        .map_err(|error| Error { path: path.to_owned(), what: error.to_string() })
}

/// Rounds to bf16, to nearest even; a NaN stays one.
pub fn bf16_bits(value: f32) -> u16 {
    let bits = value.to_bits();
    if value.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

/// Writes a tensor, atomically.
///
/// # Errors
/// R0017.
pub fn write(path: &Path, tensor: &HostTensor) -> Result<(), Error> {
    let written = write_atomically(path, &format(tensor));
    written.map_err(|error| Error { path: path.to_owned(), what: error.to_string() })
}

/// The file's bytes; only the first ones of a device or pipe that does not begin like a tensor.
fn read_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    if file.metadata()?.is_file() {
        return std::fs::read(path);
    }
    let mut bytes = Vec::new();
    file.by_ref().take(MAGIC.len() as u64).read_to_end(&mut bytes)?;
    if bytes == MAGIC {
        file.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

fn parse(bytes: &[u8]) -> Result<HostTensor, String> {
    let rest = bytes.strip_prefix(MAGIC).ok_or("not a .npy file")?;
    let (&[major, _minor], rest) = rest.split_first_chunk::<2>().ok_or("the header is cut short")?;
    let (header_len, rest) = match major {
        1 => rest.split_first_chunk::<2>().map(|(len, rest)| (usize::from(u16::from_le_bytes(*len)), rest)),
        2 | 3 => rest.split_first_chunk::<4>().map(|(len, rest)| (u32::from_le_bytes(*len) as usize, rest)),
        _ => return Err(format!("format version {major} is not understood")),
    }
    .ok_or("the header is cut short")?;
    let header = rest.get(..header_len).ok_or("the header is cut short")?;
    let header = std::str::from_utf8(header).map_err(|_| "the header is not text")?;
    let data = &rest[header_len..];

    let descr = field(header, "descr").and_then(|text| quoted(text)).ok_or("the header has no plain `descr`")?;
    let dtype = dtype(descr).ok_or_else(|| {
        format!("element type `{descr}` is not one of f2 f4 f8 b1 i1 i2 i4 i8 u1 u2 u4 u8 and V2 (bf16), little-endian")
    })?;
    if !field(header, "fortran_order").is_some_and(|text| text.starts_with("False")) {
        return Err("the data is not in C order".into());
    }
    let shape = field(header, "shape").and_then(shape).ok_or("the header has no `shape`")?;
    HostTensor::new(dtype, shape, data.to_vec()).map_err(|error| error.to_string())
}

/// The text behind `'name':` in a Python dictionary.
fn field<'h>(header: &'h str, name: &str) -> Option<&'h str> {
    let at = header.find(&format!("'{name}'"))?;
    header[at + name.len() + 2..].trim_start().strip_prefix(':').map(str::trim_start)
}

fn quoted(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('\'')?;
    rest.split_once('\'').map(|(inside, _)| inside)
}

fn shape(text: &str) -> Option<Vec<u64>> {
    let (inside, _) = text.strip_prefix('(')?.split_once(')')?;
    let extents = inside.split(',').map(str::trim).filter(|extent| !extent.is_empty());
    extents.map(|extent| extent.parse().ok()).collect()
}

fn dtype(descr: &str) -> Option<DType> {
    Some(match descr {
        "<f2" => DType::F16,
        "<f4" => DType::F32,
        "<f8" => DType::F64,
        "|b1" => DType::I1,
        "|i1" => DType::I8,
        "<i2" => DType::I16,
        "<i4" => DType::I32,
        "<i8" => DType::I64,
        "|u1" => DType::U8,
        "<u2" => DType::U16,
        "<u4" => DType::U32,
        "<u8" => DType::U64,
        // NumPy has no bf16; the package ml_dtypes writes it as two opaque bytes.
        "<V2" | "|V2" | "bfloat16" => DType::Bf16,
        _ => return None,
    })
}

fn descr(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::I1 => "|b1",
        DType::I8 => "|i1",
        DType::I32 => "<i4",
        DType::I64 | DType::Index => "<i8",
        DType::Bf16 => "<V2",
        DType::I16 => "<i2",
        DType::U8 => "|u1",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
    }
}

fn format(tensor: &HostTensor) -> Vec<u8> {
    let extents: String = tensor.shape().iter().map(|extent| format!("{extent}, ")).collect();
    // Python writes `(2, 3)` but `(2,)`: a comma behind a single extent.
    let extents = if tensor.shape().len() == 1 { extents.trim_end() } else { extents.trim_end_matches(", ") };
    let descr = descr(tensor.dtype());
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({extents}), }}");
    let prefix = MAGIC.len() + 2 + 2;
    let padded = (prefix + header.len() + 1).next_multiple_of(ALIGNMENT);
    header.extend(std::iter::repeat_n(' ', padded - prefix - header.len() - 1));
    header.push('\n');
    // No shape is so long that the header exceeds 16 bits.
    let len = (header.len() as u16).to_le_bytes();
    [MAGIC, &[1u8, 0][..], &len, header.as_bytes(), tensor.data()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(dtype: DType, shape: &[u64]) -> HostTensor {
        let len = shape.iter().product::<u64>() * dtype.size_bytes();
        HostTensor::new(dtype, shape.to_vec(), (0..len).map(|i| i as u8).collect()).unwrap()
    }

    #[test]
    fn files_round_trip() {
        for shape in [&[][..], &[3], &[2, 3], &[0, 4]] {
            for dtype in DType::ALL.into_iter().filter(|dtype| *dtype != DType::Index) {
                let tensor = tensor(dtype, shape);
                let bytes = format(&tensor);
                assert_eq!((bytes.len() - tensor.data().len()) % ALIGNMENT, 0);
                assert_eq!(parse(&bytes), Ok(tensor));
            }
        }
    }

    /// The output of `numpy.save` for `numpy.array([1, 2], dtype="f4")`.
    #[test]
    fn numpys_own_header_is_read() {
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
        let mut bytes = [MAGIC, &[1u8, 0, 118, 0][..]].concat();
        bytes.extend(format!("{header:<117}\n").bytes());
        bytes.extend([1f32, 2.0].iter().flat_map(|value| value.to_le_bytes()));
        assert_eq!(parse(&bytes).unwrap().to_f32().unwrap(), [1.0, 2.0]);
        let ours = format(&HostTensor::from_f32(vec![2], &[1.0, 2.0]).unwrap());
        assert_eq!(ours, bytes);
    }

    #[test]
    fn damaged_files_are_errors() {
        let good = format(&tensor(DType::F32, &[2, 3]));
        for len in 0..good.len() {
            assert!(parse(&good[..len]).is_err(), "cut at {len}");
        }
        for at in 0..128 {
            let mut bytes = good.clone();
            bytes[at] = 0xff;
            // Padding may change; no panic.
            let _ = parse(&bytes);
        }
        let text = String::from_utf8(good[10..128].to_vec()).unwrap();
        let with = |from: &str, to: &str| {
            let header = text.replace(from, to);
            parse(&[&good[..10], header.as_bytes(), &good[128..]].concat()).unwrap_err()
        };
        assert!(with("'<f4'", "'>f4'").contains("element type `>f4`"));
        assert!(with("False", "True ").contains("C order"));
    }

    #[test]
    fn files_fit_places_of_the_same_bits_and_singles_are_rounded_to_bf16() {
        let path = std::env::temp_dir().join(format!("monopour-npy-as-{}.npy", std::process::id()));
        let bytes = HostTensor::new(DType::U8, vec![3], vec![0, 127, 255]).unwrap();
        write(&path, &bytes).unwrap();
        assert_eq!(read(&path).unwrap().to_f64(), [0.0, 127.0, 255.0]);
        let signless = read_as(&path, DType::I8).unwrap();
        assert_eq!((signless.dtype(), signless.data()), (DType::I8, &[0, 127, 255][..]));
        // Of another width: as it is, for the input check to refuse.
        assert_eq!(read_as(&path, DType::I16).unwrap(), bytes);
        // Ties to even, down and up; NaN and infinity are unchanged.
        let values = [1.0, f32::from_bits(0x3f80_8000), f32::from_bits(0x3f81_8000), f32::NAN, f32::INFINITY, 3.4e38];
        write(&path, &HostTensor::from_f32(vec![6], &values).unwrap()).unwrap();
        let rounded = read_as(&path, DType::Bf16).unwrap();
        let bits: Vec<u16> = rounded.data().as_chunks::<2>().0.iter().map(|b| u16::from_le_bytes(*b)).collect();
        assert_eq!(bits, [0x3f80, 0x3f80, 0x3f82, 0x7fc0, 0x7f80, 0x7f80]);
        write(&path, &rounded).unwrap();
        assert!(std::fs::read(&path).unwrap().windows(5).any(|w| w == b"'<V2'"), "as ml_dtypes writes it");
        assert_eq!(read(&path).unwrap(), rounded);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_missing_file_has_a_code_and_a_page() {
        let error = read(Path::new("/nonexistent/x.npy")).unwrap_err();
        assert_eq!(error.code(), "R0017");
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/errors/R0017.md");
        assert!(page.exists());
    }
}
