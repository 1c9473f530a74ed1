//! Constants: weights and other tensor data that a program carries.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::dtype::DType;
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
    Owned(Arc<[u8]>),
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
            ConstantData::Owned(bytes) => bytes,
            // A range outside the file cannot be built by the decoder; one built by hand reads as empty and fails `verify`.
            ConstantData::Mapped { map, range } => map.get(range.clone()).unwrap_or(&[]),
        }
    }
}

impl From<Vec<u8>> for ConstantData {
    fn from(bytes: Vec<u8>) -> Self {
        ConstantData::Owned(bytes.into())
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
