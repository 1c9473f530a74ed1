//! Constants: weights and other tensor data that a program carries.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::dtype::DType;
use crate::encode::ALIGNMENT;
use crate::map::Map;
use crate::program::tensor_bytes;

/// Tensor data of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    /// The user's name if there is one (a `dense_resource` key), else a generated one.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Sizes of the dimensions; empty for a scalar.
    pub shape: Vec<u64>,
    /// Row-major, contiguous, little-endian data.
    pub data: ConstantData,
}

impl Constant {
    /// Bytes by shape and element type; `None` if that overflows 64 bits.
    pub fn size_bytes(&self) -> Option<u64> {
        tensor_bytes(self.dtype, &self.shape)
    }
}

/// Storage of a constant's bytes.
#[derive(Clone)]
pub enum ConstantData {
    /// In memory.
    Owned(Arc<OwnedBytes>),
    /// In a mapped file: the artifact itself, or a file of weights.
    Mapped {
        /// The file.
        map: Arc<Map>,
        /// The byte range of this constant.
        range: Range<usize>,
    },
}

impl ConstantData {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            ConstantData::Owned(bytes) => bytes.get(),
            // A range outside the file cannot be built by the decoder; one built by hand reads as empty and fails `verify`.
            ConstantData::Mapped { map, range } => map.get(range.clone()).unwrap_or(&[]),
        }
    }

    /// As many bytes in memory, written by `fill`, which gets zeros.
    pub fn filled(len: usize, fill: impl FnOnce(&mut [u8])) -> Self {
        ConstantData::Owned(Arc::new(OwnedBytes::filled(len, fill)))
    }
}

impl From<&[u8]> for ConstantData {
    fn from(bytes: &[u8]) -> Self {
        ConstantData::Owned(Arc::new(OwnedBytes::of(bytes)))
    }
}

impl From<Vec<u8>> for ConstantData {
    /// Without a copy where the bytes are aligned, as large ones of mimalloc are, and have no room to spare.
    fn from(bytes: Vec<u8>) -> Self {
        let is_tight = bytes.capacity() - bytes.len() <= bytes.len() / 8;
        if is_tight && bytes.as_ptr().align_offset(ALIGNMENT) == 0 {
            return ConstantData::Owned(Arc::new(OwnedBytes { room: bytes, start: 0 }));
        }
        bytes.as_slice().into()
    }
}

/// Bytes in memory from an address on that is a multiple of the artifact's alignment: a device of the CPU takes them in place, as
/// those of a mapped artifact.
pub struct OwnedBytes {
    room: Vec<u8>,
    start: usize,
}

impl OwnedBytes {
    fn of(bytes: &[u8]) -> Self {
        let mut room: Vec<u8> = Vec::with_capacity(bytes.len() + ALIGNMENT - 1);
        let start = room.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT - 1);
        // Within the capacity: the address stays.
        room.resize(start, 0);
        room.extend_from_slice(bytes);
        Self { room, start }
    }

    fn filled(len: usize, fill: impl FnOnce(&mut [u8])) -> Self {
        let mut room = vec![0; len + ALIGNMENT - 1];
        let start = room.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT - 1);
        room.truncate(start + len);
        fill(&mut room[start..]);
        Self { room, start }
    }

    /// The bytes.
    pub fn get(&self) -> &[u8] {
        &self.room[self.start..]
    }
}

impl PartialEq for ConstantData {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for ConstantData {}

impl fmt::Debug for ConstantData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            ConstantData::Owned(_) => "Owned",
            ConstantData::Mapped { .. } => "Mapped",
        };
        write!(f, "{kind}({} bytes)", self.bytes().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligned_bytes_are_kept_where_they_are() {
        let vectors: Vec<(Vec<u8>, usize)> = (1024..4096)
            .step_by(16)
            .flat_map(|len| [(len, 0), (len, len)])
            .map(|(len, spare)| {
                let mut bytes = Vec::with_capacity(len + spare);
                bytes.resize(len, 7);
                (bytes, spare)
            })
            .collect();
        let mut aligned = 0;
        for (bytes, spare) in vectors {
            let (at, len, is_aligned) = (bytes.as_ptr(), bytes.len(), bytes.as_ptr().align_offset(ALIGNMENT) == 0);
            let data = ConstantData::from(bytes);
            assert_eq!(data.bytes(), vec![7; len]);
            assert_eq!(data.bytes().as_ptr().align_offset(ALIGNMENT), 0);
            assert_eq!(data.bytes().as_ptr() == at, is_aligned && spare == 0, "{len} bytes, {spare} to spare");
            aligned += usize::from(is_aligned && spare == 0);
        }
        assert!(aligned > 0, "of 192 places");
    }

    #[test]
    fn owned_bytes_are_aligned() {
        for len in [0, 1, 255, 256, 1000, 1 << 20] {
            let bytes: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            let data = ConstantData::from(bytes.clone());
            assert_eq!(data.bytes(), bytes);
            assert_eq!(data.bytes().as_ptr().align_offset(ALIGNMENT), 0, "{len} bytes");
            let filled = ConstantData::filled(len, |room| room.copy_from_slice(&bytes));
            assert_eq!(filled, data);
            assert_eq!(filled.bytes().as_ptr().align_offset(ALIGNMENT), 0, "{len} bytes");
            assert_eq!(data.clone().bytes().as_ptr(), data.bytes().as_ptr(), "a clone is no copy");
        }
    }
}
