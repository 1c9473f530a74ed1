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
    // The order is the wire format: new types are added here, at the end.
    /// The upper half of an IEEE single.
    Bf16,
    /// Signless 16-bit integer.
    I16,
    /// Unsigned 8-bit integer: to kernels the bits are those of [`DType::I8`].
    U8,
    /// Unsigned 16-bit integer.
    U16,
    /// Unsigned 32-bit integer.
    U32,
    /// Unsigned 64-bit integer.
    U64,
}

impl DType {
    /// Every element type, in declaration order.
    pub const ALL: [DType; 14] = [
        DType::F16,
        DType::F32,
        DType::F64,
        DType::I1,
        DType::I8,
        DType::I32,
        DType::I64,
        DType::Index,
        DType::Bf16,
        DType::I16,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
    ];

    /// Bytes of one element in memory.
    pub const fn size_bytes(self) -> u64 {
        match self {
            DType::I1 | DType::I8 | DType::U8 => 1,
            DType::F16 | DType::Bf16 | DType::I16 | DType::U16 => 2,
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::F64 | DType::I64 | DType::U64 | DType::Index => 8,
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
            DType::Bf16 => "bf16",
            DType::I16 => "i16",
            DType::U8 => "ui8",
            DType::U16 => "ui16",
            DType::U32 => "ui32",
            DType::U64 => "ui64",
        }
    }

    /// The element type with this MLIR spelling.
    pub fn parse(text: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|dtype| dtype.as_str() == text)
    }

    /// Whether elements are floating-point numbers.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::F32 | DType::F64 | DType::Bf16)
    }

    /// The type with the same bits in kernels, which know neither signs nor, in memory, `index`.
    pub const fn signless(self) -> DType {
        match self {
            DType::U8 => DType::I8,
            DType::U16 => DType::I16,
            DType::U32 => DType::I32,
            DType::U64 | DType::Index => DType::I64,
            other => other,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
