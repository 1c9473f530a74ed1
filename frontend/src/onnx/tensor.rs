//! Constant tensors: their elements in the mapped file, or decoded from the field of their type.
//!
//! Limits: elements in another file must lie in the model's folder or below it (F0044).

use super::proto::TensorProto;
use super::{DataType, narrow};
use bytes::Bytes;
use monopour_program::{ConstantData, Map};
use prost::Message;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Most elements of a tensor: an index has 48 bits.
pub(super) const MAX_ELEMENTS: i64 = 1 << 48;
/// `data_location` of elements in another file.
const EXTERNAL: i32 = 1;

/// A constant tensor.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// Name of the initializer; empty for others.
    pub name: String,
    /// Element type.
    pub dtype: DataType,
    /// Dimensions.
    pub shape: Vec<i64>,
    /// Elements, little endian, row-major; of less than a byte packed from the low bits on.
    pub data: ConstantData,
}

impl Tensor {
    /// A tensor of these bytes.
    pub fn new(dtype: DataType, shape: Vec<i64>, bytes: Vec<u8>) -> Self {
        Self { name: String::new(), dtype, shape, data: bytes.into() }
    }
    /// A tensor of 64-bit integers.
    pub fn ints(shape: Vec<i64>, values: &[i64]) -> Self {
        Self::new(DataType::I64, shape, values.iter().flat_map(|v| v.to_le_bytes()).collect())
    }
    /// Number of elements.
    pub fn elements(&self) -> usize {
        count(&self.shape).unwrap_or(usize::MAX)
    }
    /// The elements as numbers; `None` for types without a value in f64.
    pub fn to_f64(&self) -> Option<Vec<f64>> {
        let bytes = self.data.bytes();
        let width = self.dtype.size_bytes()?;
        let each = bytes.chunks_exact(width);
        Some(match self.dtype {
            DataType::F32 => each.map(|b| f64::from(f32::from_le_bytes(array(b)))).collect(),
            DataType::F64 => each.map(|b| f64::from_le_bytes(array(b))).collect(),
            DataType::F16 => each.map(|b| f16_to_f64(u16::from_le_bytes(array(b)))).collect(),
            DataType::Bf16 => {
                each.map(|b| f64::from(f32::from_bits(u32::from(u16::from_le_bytes(array(b))) << 16))).collect()
            }
            DataType::U64 => each.map(|b| u64::from_le_bytes(array(b)) as f64).collect(),
            _ => self.to_i64()?.into_iter().map(|v| v as f64).collect(),
        })
    }
    /// The shape at the boundary: of packed elements the number of their bytes.
    pub fn stored_shape(&self) -> Vec<i64> {
        if self.dtype.is_packed() { vec![self.data.bytes().len() as i64] } else { self.shape.clone() }
    }
    /// The elements as numbers, those of narrow types too.
    pub fn numbers(&self) -> Option<Vec<f64>> {
        if !self.dtype.is_narrow() {
            return self.to_f64();
        }
        let elements = narrow::unpacked(self.dtype, self.data.bytes(), self.elements());
        elements.into_iter().map(|byte| narrow::decoded(self.dtype, byte)).collect()
    }
    /// The elements as integers, unsigned 64-bit ones wrapped; `None` for floats and strings.
    pub fn to_i64(&self) -> Option<Vec<i64>> {
        let bytes = self.data.bytes();
        let each = bytes.chunks_exact(self.dtype.size_bytes()?);
        Some(match self.dtype {
            DataType::I64 | DataType::U64 => each.map(|b| i64::from_le_bytes(array(b))).collect(),
            DataType::I32 => each.map(|b| i64::from(i32::from_le_bytes(array(b)))).collect(),
            DataType::U32 => each.map(|b| i64::from(u32::from_le_bytes(array(b)))).collect(),
            DataType::I16 => each.map(|b| i64::from(i16::from_le_bytes(array(b)))).collect(),
            DataType::U16 => each.map(|b| i64::from(u16::from_le_bytes(array(b)))).collect(),
            DataType::I8 => each.map(|b| i64::from(b[0] as i8)).collect(),
            DataType::U8 | DataType::Bool => each.map(|b| i64::from(b[0])).collect(),
            _ => return None,
        })
    }
    /// A tensor of numbers, rounded to `dtype`; `None` for types that have no such numbers.
    pub fn from_f64(dtype: DataType, shape: Vec<i64>, values: &[f64]) -> Option<Self> {
        let bytes: Vec<u8> = match dtype {
            DataType::F32 => values.iter().flat_map(|v| (*v as f32).to_le_bytes()).collect(),
            DataType::F64 => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            DataType::F16 => values.iter().flat_map(|v| f16_bits(*v).to_le_bytes()).collect(),
            DataType::Bf16 => values.iter().flat_map(|v| bf16_bits(*v as f32).to_le_bytes()).collect(),
            DataType::U64 => values.iter().flat_map(|v| (*v as u64).to_le_bytes()).collect(),
            _ => return Self::from_i64(dtype, shape, &values.iter().map(|v| *v as i64).collect::<Vec<_>>()),
        };
        Some(Self::new(dtype, shape, bytes))
    }
    /// A tensor of integers, wrapped to `dtype`; truth values are 0 and 1.
    pub fn from_i64(dtype: DataType, shape: Vec<i64>, values: &[i64]) -> Option<Self> {
        if dtype.is_float() {
            return Self::from_f64(dtype, shape, &values.iter().map(|v| *v as f64).collect::<Vec<_>>());
        }
        let width = dtype.size_bytes().filter(|_| dtype.is_integer() || dtype == DataType::Bool)?;
        let value = |v: i64| if dtype == DataType::Bool { i64::from(v != 0) } else { v };
        let bytes = values.iter().flat_map(|v| value(*v).to_le_bytes().into_iter().take(width)).collect();
        Some(Self::new(dtype, shape, bytes))
    }
}

/// The bytes of one element.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(bytes);
    out
}

fn f16_to_f64(bits: u16) -> f64 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    sign * match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    }
}

/// The nearest f16, ties to even.
fn f16_bits(value: f64) -> u16 {
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let size = value.abs();
    if value.is_nan() {
        return 0x7e00;
    }
    if size >= 65_520.0 {
        return sign | 0x7c00;
    }
    // The unit of the last place: of a normal number by its exponent, of a subnormal one 2^-24.
    let exponent = (((size.to_bits() >> 52) & 0x7ff) as i32 - 1023).max(-14);
    let units = (size * 2f64.powi(10 - exponent)).round_ties_even() as u16;
    // A fraction that rounds up to 2^11 units carries into the exponent.
    let biased = if units < 1024 { 0 } else { (exponent + 15) as u16 };
    sign | if biased == 0 { units } else { (biased << 10) + (units - 1024) }
}

fn bf16_bits(value: f32) -> u16 {
    let bits = value.to_bits();
    if value.is_nan() { (bits >> 16) as u16 | 0x40 } else { ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16 }
}

/// Reads a file that holds one tensor.
///
/// # Errors
/// What is wrong with it.
pub fn read_tensor(path: &Path) -> Result<Tensor, String> {
    let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
    let proto = TensorProto::decode(Bytes::from(bytes)).map_err(|e| format!("it is not a tensor of ONNX: {e}"))?;
    let folder = path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
    Files::new(None, folder).tensor(&proto)
}

/// The mapped files of a model.
pub struct Files {
    model: Option<Arc<Map>>,
    folder: PathBuf,
    others: BTreeMap<PathBuf, Arc<Map>>,
}

impl Files {
    /// The mapped model, and the folder of its other files.
    pub fn new(model: Option<Arc<Map>>, folder: PathBuf) -> Self {
        Self { model, folder, others: BTreeMap::new() }
    }

    /// Paths of the opened files, the model's own excluded.
    pub fn into_external(self) -> Vec<PathBuf> {
        self.others.into_keys().collect()
    }

    /// Decodes a tensor.
    ///
    /// # Errors
    /// What is wrong with it, without its name.
    pub fn tensor(&mut self, proto: &TensorProto) -> Result<Tensor, String> {
        let dtype = DataType::from_number(proto.data_type)
            .ok_or_else(|| format!("element type {} does not exist", proto.data_type))?;
        let shape = &proto.dims;
        let elements = count(shape).ok_or_else(|| format!("its shape {shape:?} is negative or too large"))?;
        let data = if proto.data_location == EXTERNAL {
            self.external(proto, expected_bytes(dtype, elements)?)?
        } else if !proto.raw_data.is_empty() {
            self.raw(&proto.raw_data)
        } else {
            typed(proto, dtype)?.into()
        };
        let data = if dtype == DataType::Bool { truth_values(data) } else { data };
        let expected = expected_bytes(dtype, elements)?;
        let found = data.bytes().len();
        if found != expected {
            return Err(format!("{} elements of {dtype} take {expected} bytes, it has {found}", elements));
        }
        Ok(Tensor { name: proto.name.clone(), dtype, shape: proto.dims.clone(), data })
    }

    /// A slice of the mapped model, or a copy of bytes from elsewhere.
    fn raw(&self, raw: &Bytes) -> ConstantData {
        if let Some(map) = &self.model {
            let (base, at) = (map.as_ptr() as usize, raw.as_ptr() as usize);
            if let Some(start) = at.checked_sub(base).filter(|start| start + raw.len() <= map.len()) {
                return ConstantData::Mapped { map: map.clone(), range: start..start + raw.len() };
            }
        }
        raw.to_vec().into()
    }

    fn external(&mut self, proto: &TensorProto, expected: usize) -> Result<ConstantData, String> {
        let entry = |key: &str| proto.external_data.iter().find(|e| e.key == key).map(|e| e.value.as_str());
        let location = entry("location").ok_or("its elements are in another file, which is not named")?;
        let number =
            |key: &str| entry(key).map(|v| v.parse::<usize>().map_err(|_| format!("{key} '{v}' is no number")));
        let offset = number("offset").transpose()?.unwrap_or(0);
        let length = number("length").transpose()?.unwrap_or(expected);
        let map = self.open(location)?;
        let end = offset.checked_add(length).filter(|end| *end <= map.len());
        let end =
            end.ok_or_else(|| format!("{location} has {} bytes, it needs {length} from {offset} on", map.len()))?;
        Ok(ConstantData::Mapped { map, range: offset..end })
    }

    /// Maps a file of the model's folder.
    fn open(&mut self, location: &str) -> Result<Arc<Map>, String> {
        let relative = Path::new(location);
        let inside = relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        let path = self.folder.join(relative);
        if let Some(map) = self.others.get(&path) {
            return Ok(map.clone());
        }
        let refuse = || format!("its file {location} is not in the model's folder");
        let canonical = |p: &Path| p.canonicalize().map_err(|e| format!("its file {}: {e}", p.display()));
        let folder = if self.folder.as_os_str().is_empty() { Path::new(".") } else { &self.folder };
        // A link inside the folder may lead out of it.
        if !inside || !canonical(&path)?.starts_with(canonical(folder)?) {
            return Err(refuse());
        }
        let map = Arc::new(Map::open(&path).map_err(|e| format!("its file {location}: {e}"))?);
        self.others.insert(path, map.clone());
        Ok(map)
    }
}

/// Number of elements of a shape; `None` for one that is negative or too large.
pub(super) fn count(shape: &[i64]) -> Option<usize> {
    if shape.iter().any(|size| *size < 0) {
        return None;
    }
    if shape.contains(&0) {
        return Some(0);
    }
    let product = shape.iter().try_fold(1_i64, |n, size| n.checked_mul(*size)).filter(|n| *n <= MAX_ELEMENTS)?;
    usize::try_from(product).ok()
}

/// Truth values as 0 and 1.
fn truth_values(data: ConstantData) -> ConstantData {
    if data.bytes().iter().all(|byte| *byte <= 1) {
        return data;
    }
    data.bytes().iter().map(|byte| u8::from(*byte != 0)).collect::<Vec<u8>>().into()
}

fn expected_bytes(dtype: DataType, elements: usize) -> Result<usize, String> {
    let bits = dtype.bits().ok_or("strings are not supported")? as usize;
    Ok((elements * bits).div_ceil(8))
}

/// The elements in the field of their type.
fn typed(proto: &TensorProto, dtype: DataType) -> Result<Vec<u8>, String> {
    let narrow = |width: usize| proto.int32_data.iter().flat_map(|v| v.to_le_bytes().into_iter().take(width)).collect();
    Ok(match dtype {
        DataType::F32 | DataType::Complex64 => proto.float_data.iter().flat_map(|v| v.to_le_bytes()).collect(),
        DataType::F64 | DataType::Complex128 => proto.double_data.iter().flat_map(|v| v.to_le_bytes()).collect(),
        DataType::I64 => proto.int64_data.iter().flat_map(|v| v.to_le_bytes()).collect(),
        DataType::U64 => proto.uint64_data.iter().flat_map(|v| v.to_le_bytes()).collect(),
        DataType::U32 => proto.uint64_data.iter().flat_map(|v| (*v as u32).to_le_bytes()).collect(),
        DataType::I32 => narrow(4),
        DataType::F16 | DataType::Bf16 | DataType::I16 | DataType::U16 => narrow(2),
        DataType::Bool => proto.int32_data.iter().map(|v| u8::from(*v != 0)).collect(),
        DataType::String => return Err("strings are not supported".to_owned()),
        _ => narrow(1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(proto: &TensorProto) -> Result<Tensor, String> {
        Files::new(None, PathBuf::new()).tensor(proto)
    }

    #[test]
    fn typed_fields_and_raw_data_are_the_same_elements() {
        let raw = TensorProto {
            dims: vec![3],
            data_type: DataType::F32.number(),
            raw_data: [1.5f32, -2.0, 0.25].iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>().into(),
            ..TensorProto::default()
        };
        let typed = TensorProto { raw_data: Bytes::new(), float_data: vec![1.5, -2.0, 0.25], ..raw.clone() };
        assert_eq!(decode(&raw).unwrap().to_f64(), Some(vec![1.5, -2.0, 0.25]));
        assert_eq!(decode(&typed).unwrap().data, decode(&raw).unwrap().data);
        let short = TensorProto { dims: vec![4], ..raw };
        assert_eq!(decode(&short).unwrap_err(), "4 elements of f32 take 16 bytes, it has 12");
        let huge = TensorProto { dims: vec![1 << 40, 1 << 40], ..short };
        assert!(decode(&huge).unwrap_err().contains("too large"));
    }

    #[test]
    fn halves_round_to_nearest_even() {
        for bits in 0..=u16::MAX {
            let value = f16_to_f64(bits);
            if !value.is_nan() {
                assert_eq!(f16_bits(value), bits, "{value}");
            }
        }
        // Between 1 and the next f16, and just above the middle.
        assert_eq!(f16_bits(1.0 + 2f64.powi(-11)), 0x3c00);
        assert_eq!(f16_bits(1.0 + 2f64.powi(-11) + 1e-9), 0x3c01);
        assert_eq!(f16_bits(65_519.0), 0x7bff);
        assert_eq!(f16_bits(65_520.0), 0x7c00);
    }

    #[test]
    fn elements_outside_of_the_folder_are_refused() {
        let entry = |key: &str, value: &str| super::super::proto::StringStringEntryProto {
            key: key.to_owned(),
            value: value.to_owned(),
        };
        for location in ["../secret.bin", "/etc/hostname", "a/../../b"] {
            let proto = TensorProto {
                dims: vec![1],
                data_type: DataType::U8.number(),
                data_location: EXTERNAL,
                external_data: vec![entry("location", location)],
                ..TensorProto::default()
            };
            assert!(decode(&proto).unwrap_err().contains("not in the model's folder"), "{location}");
        }
    }
}
