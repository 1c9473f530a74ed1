//! Element types of the tensors that cross the boundary of a program.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The element type of a tensor in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DType {
    /// IEEE half precision.
    F16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// One byte per element on every target, 0 or 1; never packed to bits.
    I1,
    /// Signless 8-bit integer.
    I8,
    /// Signless 32-bit integer.
    I32,
    /// Signless 64-bit integer.
    I64,
    /// `index` at the boundary of a program: 64 bits on every target.
    Index,
}

impl DType {
    /// Every element type, in declaration order.
    pub const ALL: [DType; 8] =
        [DType::F16, DType::F32, DType::F64, DType::I1, DType::I8, DType::I32, DType::I64, DType::Index];

    /// Bytes that one element takes in a tensor's memory.
    pub const fn size_bytes(self) -> u64 {
        match self {
            DType::I1 | DType::I8 => 1,
            DType::F16 => 2,
            DType::F32 | DType::I32 => 4,
            DType::F64 | DType::I64 | DType::Index => 8,
        }
    }

    /// The MLIR spelling, such as `f32`.
    pub const fn as_str(self) -> &'static str {
        match self {
            DType::F16 => "f16",
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::I1 => "i1",
            DType::I8 => "i8",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::Index => "index",
        }
    }

    /// The element type that MLIR spells `text`.
    pub fn parse(text: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|dtype| dtype.as_str() == text)
    }

    /// Whether elements are floating-point numbers.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::F32 | DType::F64)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
