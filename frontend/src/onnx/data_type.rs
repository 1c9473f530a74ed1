//! Element types of ONNX tensors.

use monopour_ir::{Context, Type};
use monopour_program::DType;
use std::fmt;

/// An element type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are the types")]
pub enum DataType {
    F32,
    U8,
    I8,
    U16,
    I16,
    I32,
    I64,
    String,
    Bool,
    F16,
    F64,
    U32,
    U64,
    Complex64,
    Complex128,
    Bf16,
    F8E4M3FN,
    F8E4M3FNUZ,
    F8E5M2,
    F8E5M2FNUZ,
    U4,
    I4,
    F4E2M1,
    F8E8M0,
    U2,
    I2,
}

/// In the order of the format's numbers, from 1 on.
const ALL: [DataType; 26] = [
    DataType::F32,
    DataType::U8,
    DataType::I8,
    DataType::U16,
    DataType::I16,
    DataType::I32,
    DataType::I64,
    DataType::String,
    DataType::Bool,
    DataType::F16,
    DataType::F64,
    DataType::U32,
    DataType::U64,
    DataType::Complex64,
    DataType::Complex128,
    DataType::Bf16,
    DataType::F8E4M3FN,
    DataType::F8E4M3FNUZ,
    DataType::F8E5M2,
    DataType::F8E5M2FNUZ,
    DataType::U4,
    DataType::I4,
    DataType::F4E2M1,
    DataType::F8E8M0,
    DataType::U2,
    DataType::I2,
];

const NAMES: [&str; 26] = [
    "f32",
    "ui8",
    "i8",
    "ui16",
    "i16",
    "i32",
    "i64",
    "string",
    "bool",
    "f16",
    "f64",
    "ui32",
    "ui64",
    "complex64",
    "complex128",
    "bf16",
    "f8e4m3fn",
    "f8e4m3fnuz",
    "f8e5m2",
    "f8e5m2fnuz",
    "ui4",
    "i4",
    "f4e2m1",
    "f8e8m0",
    "ui2",
    "i2",
];

impl DataType {
    /// The type of this number in the format.
    pub fn from_number(number: i32) -> Option<Self> {
        ALL.get(usize::try_from(number).ok()?.checked_sub(1)?).copied()
    }
    /// Its number in the format.
    pub fn number(self) -> i32 {
        self as i32 + 1
    }
    /// Bits of an element; `None` for strings.
    pub fn bits(self) -> Option<u32> {
        Some(match self {
            DataType::String => return None,
            DataType::Complex128 => 128,
            DataType::F64 | DataType::I64 | DataType::U64 | DataType::Complex64 => 64,
            DataType::F32 | DataType::I32 | DataType::U32 => 32,
            DataType::F16 | DataType::Bf16 | DataType::I16 | DataType::U16 => 16,
            DataType::U4 | DataType::I4 | DataType::F4E2M1 => 4,
            DataType::U2 | DataType::I2 => 2,
            _ => 8,
        })
    }
    /// Bytes of an element of whole bytes.
    pub fn size_bytes(self) -> Option<usize> {
        self.bits().filter(|bits| *bits >= 8).map(|bits| bits as usize / 8)
    }
    /// Whether this is a float of at least 16 bits.
    pub fn is_float(self) -> bool {
        matches!(self, DataType::F16 | DataType::Bf16 | DataType::F32 | DataType::F64)
    }
    /// Whether this is an unsigned integer; truth values are none.
    pub fn is_unsigned(self) -> bool {
        matches!(self, DataType::U2 | DataType::U4 | DataType::U8 | DataType::U16 | DataType::U32 | DataType::U64)
    }
    /// Whether this is an integer; truth values are none.
    pub fn is_integer(self) -> bool {
        self.is_unsigned()
            || matches!(
                self,
                DataType::I2 | DataType::I4 | DataType::I8 | DataType::I16 | DataType::I32 | DataType::I64
            )
    }
    /// Whether this is a float of less than 16 bits, held as its bits.
    pub fn is_narrow_float(self) -> bool {
        matches!(
            self,
            DataType::F8E4M3FN
                | DataType::F8E4M3FNUZ
                | DataType::F8E5M2
                | DataType::F8E5M2FNUZ
                | DataType::F8E8M0
                | DataType::F4E2M1
        )
    }
    /// Whether several elements share a byte in files and at the boundary.
    pub fn is_packed(self) -> bool {
        self.bits().is_some_and(|bits| bits < 8)
    }
    /// Whether elements are held in bytes that are no numbers of their own.
    pub fn is_narrow(self) -> bool {
        self.is_narrow_float() || self.is_packed()
    }
    /// The element type of a program's boundary; `None` for types that cannot cross it. Narrow types are bytes.
    pub fn dtype(self) -> Option<DType> {
        Some(match self {
            DataType::F16 => DType::F16,
            DataType::Bf16 => DType::Bf16,
            DataType::F32 => DType::F32,
            DataType::F64 => DType::F64,
            DataType::Bool => DType::I1,
            DataType::I8 => DType::I8,
            DataType::I16 => DType::I16,
            DataType::I32 => DType::I32,
            DataType::I64 => DType::I64,
            DataType::U8 => DType::U8,
            DataType::U16 => DType::U16,
            DataType::U32 => DType::U32,
            DataType::U64 => DType::U64,
            _ if self.is_narrow() => DType::U8,
            _ => return None,
        })
    }
    /// The type of an element in the IR, signless; `None` for types without one.
    pub fn ir(self, cx: Context<'_>) -> Option<Type<'_>> {
        Type::parse(cx, self.dtype()?.signless().as_str())
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAMES[*self as usize])
    }
}
