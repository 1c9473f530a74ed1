//! Tensors on the host and on a device.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use monopour_program::{DType, InputSize, Signature, TensorDesc};

use crate::error::Error;
use crate::memory::HostMemory;
use crate::pool::{Loan, Physical};

/// A tensor in host memory: row-major, contiguous, little-endian.
#[derive(Clone, Debug, PartialEq)]
pub struct HostTensor {
    dtype: DType,
    shape: Vec<u64>,
    data: Vec<u8>,
}

impl HostTensor {
    /// A tensor of `data`.
    ///
    /// # Errors
    /// [`Error::Tensor`] when `data` has another length than the type requires.
    pub fn new(dtype: DType, shape: Vec<u64>, data: Vec<u8>) -> Result<HostTensor, Error> {
        check_length(dtype, &shape, data.len())?;
        Ok(HostTensor { dtype, shape, data })
    }

    /// A tensor of `f32`.
    ///
    /// # Errors
    /// As [`HostTensor::new`].
    pub fn from_f32(shape: Vec<u64>, values: &[f32]) -> Result<HostTensor, Error> {
        HostTensor::new(DType::F32, shape, values.iter().flat_map(|value| value.to_le_bytes()).collect())
    }

    /// A tensor of `i64`, such as the ids of tokens.
    ///
    /// # Errors
    /// As [`HostTensor::new`].
    pub fn from_i64(shape: Vec<u64>, values: &[i64]) -> Result<HostTensor, Error> {
        HostTensor::new(DType::I64, shape, values.iter().flat_map(|value| value.to_le_bytes()).collect())
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Sizes of the dimensions.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The elements' bytes.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// The elements as `f32`; `None` for another element type.
    pub fn to_f32(&self) -> Option<Vec<f32>> {
        let values = self.data.as_chunks::<4>().0;
        (self.dtype == DType::F32).then(|| values.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }

    /// The elements as `f64`, whatever their type. Large 64-bit integers are rounded.
    pub fn to_f64(&self) -> Vec<f64> {
        let data = &self.data;
        match self.dtype {
            DType::F16 => each(data, |b| f16_to_f64(u16::from_le_bytes(b))),
            DType::F32 => each(data, |b| f64::from(f32::from_le_bytes(b))),
            DType::F64 => each(data, f64::from_le_bytes),
            DType::I1 => each(data, |[b]: [u8; 1]| f64::from(u8::from(b != 0))),
            DType::I8 => each(data, |b| f64::from(i8::from_le_bytes(b))),
            DType::I32 => each(data, |b| f64::from(i32::from_le_bytes(b))),
            DType::I64 | DType::Index => each(data, |b| i64::from_le_bytes(b) as f64),
            DType::Bf16 => each(data, |b| f64::from(f32::from_bits(u32::from(u16::from_le_bytes(b)) << 16))),
            DType::I16 => each(data, |b| f64::from(i16::from_le_bytes(b))),
            DType::U8 => each(data, |b| f64::from(u8::from_le_bytes(b))),
            DType::U16 => each(data, |b| f64::from(u16::from_le_bytes(b))),
            DType::U32 => each(data, |b| f64::from(u32::from_le_bytes(b))),
            DType::U64 => each(data, |b| u64::from_le_bytes(b) as f64),
        }
    }

    /// The tensor, borrowed.
    pub fn as_slice(&self) -> HostSlice<'_> {
        HostSlice { dtype: self.dtype, shape: &self.shape, data: &self.data }
    }

    /// The size of a dimension, or the value of a scalar.
    pub(crate) fn size(&self, dim: Option<u32>) -> Option<i64> {
        self.as_slice().size(dim)
    }

    /// Checks the tensor against `desc`.
    ///
    /// # Errors
    /// [`Error::InputType`].
    pub fn check(&self, desc: &TensorDesc) -> Result<(), Error> {
        check_type(self.dtype, &self.shape, desc)
    }
}

/// A tensor in memory of the caller: row-major, contiguous, little-endian.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostSlice<'a> {
    dtype: DType,
    shape: &'a [u64],
    data: &'a [u8],
}

impl<'a> HostSlice<'a> {
    /// A tensor of `data`.
    ///
    /// # Errors
    /// [`Error::Tensor`] when `data` has another length than the type requires.
    pub fn new(dtype: DType, shape: &'a [u64], data: &'a [u8]) -> Result<HostSlice<'a>, Error> {
        check_length(dtype, shape, data.len())?;
        Ok(HostSlice { dtype, shape, data })
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Sizes of the dimensions.
    pub fn shape(&self) -> &'a [u64] {
        self.shape
    }

    /// The elements' bytes.
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// The size of a dimension, or the value of a scalar.
    pub(crate) fn size(&self, dim: Option<u32>) -> Option<i64> {
        size(self.dtype, self.shape, dim, || {
            let mut bits = [0; 8];
            bits.iter_mut().zip(self.data).for_each(|(to, from)| *to = *from);
            Some(u64::from_le_bytes(bits))
        })
    }

    pub(crate) fn check(&self, desc: &TensorDesc) -> Result<(), Error> {
        check_type(self.dtype, self.shape, desc)
    }
}

/// Refuses data of another length than the type requires.
fn check_length(dtype: DType, shape: &[u64], len: usize) -> Result<(), Error> {
    let bytes = shape.iter().copied().fold(dtype.size_bytes(), u64::saturating_mul);
    if bytes == len as u64 {
        return Ok(());
    }
    let tensor = TensorDesc { name: String::new(), dtype, shape: shape.to_vec(), donated: false, scalar: false };
    Err(Error::Tensor { what: format!("{len} bytes of data for a {}", tensor.type_text()) })
}

fn each<const N: usize>(data: &[u8], f: impl Fn([u8; N]) -> f64) -> Vec<f64> {
    data.as_chunks::<N>().0.iter().map(|bytes| f(*bytes)).collect()
}

/// The value of an IEEE half.
fn f16_to_f64(bits: u16) -> f64 {
    let magnitude = match (bits >> 10 & 0x1f, f64::from(bits & 0x3ff)) {
        (0, fraction) => fraction * 2f64.powi(-24),
        (0x1f, 0.0) => f64::INFINITY,
        (0x1f, _) => f64::NAN,
        (exponent, fraction) => (1.0 + fraction / 1024.0) * 2f64.powi(i32::from(exponent) - 15),
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

fn size(dtype: DType, shape: &[u64], dim: Option<u32>, bits: impl FnOnce() -> Option<u64>) -> Option<i64> {
    let Some(dim) = dim else {
        let unused = 64 - 8 * dtype.size_bytes() as u32;
        return bits().map(|bits| (bits << unused).cast_signed() >> unused);
    };
    shape.get(dim as usize).map(|extent| extent.cast_signed())
}

/// Refuses inputs whose sizes break a rule of the program; `size` gives an input's size.
///
/// # Errors
/// [`Error::InputSize`].
pub(crate) fn check_sizes(signature: &Signature, size: impl Fn(InputSize) -> Option<i64>) -> Result<(), Error> {
    let wrong = |what: InputSize, found, expected, other: Option<InputSize>| {
        let other = other.map(|other| signature.size_text(other));
        Err(Error::InputSize { size: signature.size_text(what), found, expected, other })
    };
    for &(what, expected) in &signature.sizes.fixed {
        match size(what) {
            Some(found) if found != expected => return wrong(what, found, expected, None),
            _ => {}
        }
    }
    for class in &signature.sizes.equal {
        let mut sizes = class.iter().filter_map(|what| Some((*what, size(*what)?)));
        let Some((first, expected)) = sizes.next() else { continue };
        if let Some((what, found)) = sizes.find(|(_, found)| *found != expected) {
            return wrong(what, found, expected, Some(first));
        }
    }
    Ok(())
}

/// Signs are no part of a type here: the program's ops interpret the bits.
fn check_type(dtype: DType, shape: &[u64], desc: &TensorDesc) -> Result<(), Error> {
    if dtype.signless() == desc.dtype.signless() && desc.fits(shape) {
        return Ok(());
    }
    let found = TensorDesc { name: String::new(), dtype, shape: shape.to_vec(), donated: false, scalar: desc.scalar };
    Err(Error::InputType { name: desc.name.clone(), expected: desc.type_text(), found: found.type_text() })
}

/// A device buffer with an id, which keys the bind groups.
#[derive(Debug)]
pub(crate) struct GpuBuffer {
    pub buffer: wgpu::Buffer,
    pub uid: u64,
}

impl GpuBuffer {
    /// A buffer with an id of its own among all sessions: one may use the tensors of another.
    pub fn new(buffer: wgpu::Buffer) -> GpuBuffer {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        GpuBuffer { buffer, uid: NEXT.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Physical for GpuBuffer {
    fn bytes(&self) -> u64 {
        self.buffer.size()
    }

    fn uid(&self) -> u64 {
        self.uid
    }
}

/// A range of a buffer of the caller, for an input or a result of a recorded run.
#[derive(Clone, Debug)]
pub struct BufferSlice {
    buffer: wgpu::Buffer,
    offset_bytes: u64,
    size_bytes: u64,
}

impl BufferSlice {
    /// The bytes `range` of `buffer`, which is of the session's device.
    ///
    /// # Errors
    /// [`Error::Tensor`] for a range that is not within the buffer.
    pub fn new(buffer: &wgpu::Buffer, range: std::ops::Range<u64>) -> Result<BufferSlice, Error> {
        match range.end.checked_sub(range.start) {
            Some(size_bytes) if range.end <= buffer.size() => {
                Ok(BufferSlice { buffer: buffer.clone(), offset_bytes: range.start, size_bytes })
            }
            _ => {
                let what = format!("bytes {} to {} of a buffer of {} bytes", range.start, range.end, buffer.size());
                Err(Error::Tensor { what })
            }
        }
    }

    /// All of `buffer`.
    pub fn whole(buffer: &wgpu::Buffer) -> BufferSlice {
        BufferSlice { buffer: buffer.clone(), offset_bytes: 0, size_bytes: buffer.size() }
    }

    /// The buffer.
    pub fn buffer(&self) -> &wgpu::Buffer {
        &self.buffer
    }

    /// Where it begins.
    pub fn offset_bytes(&self) -> u64 {
        self.offset_bytes
    }

    /// Its length.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }
}

/// An input of a recorded run.
#[derive(Clone, Debug)]
pub enum RecordInput {
    /// A tensor in a buffer of the caller: row-major, contiguous, little-endian.
    ///
    /// It is bound as it is where the buffer has `STORAGE`, its size and the tensor's are multiples of 4 bytes, and the offset is
    /// one of the device's `min_storage_buffer_offset_alignment`; else it is copied, from a multiple of 4 bytes and a buffer
    /// with `COPY_SRC`. A donated one may be overwritten; it is copied too unless its bytes are a multiple of 32.
    Buffer {
        /// Element type.
        dtype: DType,
        /// Sizes of the dimensions.
        shape: Vec<u64>,
        /// Where it lies; may be longer.
        slice: BufferSlice,
    },
    /// A number, which host code takes by value: for an input that is a scalar.
    Scalar(HostTensor),
}

impl RecordInput {
    pub(crate) fn shape(&self) -> &[u64] {
        match self {
            RecordInput::Buffer { shape, .. } => shape,
            RecordInput::Scalar(number) => &number.shape,
        }
    }

    /// The size of a dimension, or the value of a scalar.
    pub(crate) fn size(&self, dim: Option<u32>) -> Option<i64> {
        match self {
            RecordInput::Buffer { dtype, shape, .. } => size(*dtype, shape, dim, || None),
            RecordInput::Scalar(number) => number.size(dim),
        }
    }

    /// Checks the input against `desc`, and returns its bytes.
    pub(crate) fn check(&self, desc: &TensorDesc) -> Result<u64, Error> {
        let unfit = |what: String| Err(Error::Tensor { what });
        match self {
            RecordInput::Scalar(number) if desc.scalar => number.check(desc).map(|()| number.data.len() as u64),
            RecordInput::Scalar(_) => unfit(format!("input `{}` is a tensor: it has to be in a buffer", desc.name)),
            RecordInput::Buffer { .. } if desc.scalar => {
                unfit(format!("input `{}` is a number, which a recorded run takes from the host", desc.name))
            }
            RecordInput::Buffer { dtype, shape, slice } => {
                check_type(*dtype, shape, desc)?;
                let bytes = shape.iter().copied().fold(dtype.size_bytes(), u64::saturating_mul);
                if bytes > slice.size_bytes {
                    let name = &desc.name;
                    return unfit(format!("input `{name}` has {bytes} bytes, its range {}", slice.size_bytes));
                }
                Ok(bytes)
            }
        }
    }
}

/// A result of a recorded run.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedResult {
    /// Element type.
    pub dtype: DType,
    /// Sizes of the dimensions, which may be known with the run only.
    pub shape: Vec<u64>,
    /// The value of a number, which is not in a buffer.
    pub scalar: Option<HostTensor>,
}

/// A buffer that the program's logical allocations can share.
pub(crate) type Shared<B> = Arc<Loan<B>>;

/// A tensor's memory.
#[derive(Clone, Debug)]
pub(crate) enum Storage {
    Gpu(Shared<GpuBuffer>),
    Cpu(Shared<HostMemory>),
    /// A scalar, by its bits: host code takes it by value.
    Scalar(u64),
}

impl Storage {
    /// Bytes taken from the device.
    pub fn taken_bytes(&self) -> u64 {
        match self {
            Storage::Gpu(buffer) => buffer.bytes(),
            Storage::Cpu(memory) => memory.bytes(),
            Storage::Scalar(_) => 0,
        }
    }
}

/// A tensor on a device: a loan from the session's pool, returned on drop.
///
/// As a donated input, a tensor is consumed: its memory passes into the program, and may return as a result.
#[derive(Debug)]
pub struct DeviceTensor {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<u64>,
    pub(crate) device: u64,
    /// Empty once donated. The lock keeps a reader and a run that consumes the memory apart.
    storage: Mutex<Option<Storage>>,
}

impl DeviceTensor {
    pub(crate) fn new(dtype: DType, shape: Vec<u64>, device: u64, storage: Storage) -> DeviceTensor {
        DeviceTensor { dtype, shape, device, storage: Mutex::new(Some(storage)) }
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Sizes of the dimensions.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Bytes of the tensor.
    pub fn size_bytes(&self) -> u64 {
        let extents = self.shape.iter().copied();
        extents.fold(self.dtype.size_bytes(), u64::saturating_mul)
    }

    /// The size of a dimension, or the value of a scalar.
    pub(crate) fn size(&self, dim: Option<u32>) -> Option<i64> {
        let bits = self.with(|storage| Ok(if let Storage::Scalar(bits) = storage { Some(*bits) } else { None }));
        size(self.dtype, &self.shape, dim, || bits.ok().flatten())
    }

    pub(crate) fn check(&self, desc: &TensorDesc, device: u64) -> Result<(), Error> {
        check_type(self.dtype, &self.shape, desc)?;
        if self.device != device {
            return Err(Error::Tensor { what: format!("input `{}` lies on another device", desc.name) });
        }
        Ok(())
    }

    /// Runs `f` on the memory, which stays where it is.
    pub(crate) fn with<T>(&self, f: impl FnOnce(&Storage) -> Result<T, Error>) -> Result<T, Error> {
        let guard = self.storage.lock().unwrap_or_else(PoisonError::into_inner);
        f(guard.as_ref().ok_or_else(consumed)?)
    }

    /// Takes the memory out, which must have no other holder.
    pub(crate) fn consume(&self) -> Result<Storage, Error> {
        self.storage.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or_else(consumed)
    }
}

fn consumed() -> Error {
    Error::Tensor { what: "the tensor was donated to an earlier run, or is given twice".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_convert() {
        for (bits, value) in [(0x3c00, 1.0), (0xc000, -2.0), (0x0001, 5.960_464_477_539_063e-8), (0x7bff, 65504.0)] {
            assert_eq!(f16_to_f64(bits), value);
        }
        assert!(f16_to_f64(0x7e00).is_nan() && f16_to_f64(0xfc00) == f64::NEG_INFINITY);
    }

    #[test]
    fn data_must_fit_the_type() {
        let error = HostTensor::new(DType::I32, vec![2, 2], vec![0; 15]).unwrap_err();
        assert_eq!(error.to_string(), "15 bytes of data for a tensor<2x2xi32>");
        let tensor = HostTensor::new(DType::I8, vec![2], vec![255, 1]).unwrap();
        assert_eq!(tensor.to_f64(), [-1.0, 1.0]);
    }
}
