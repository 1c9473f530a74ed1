//! Types of a module: scalars and their places in values and in memory.

use super::error::Error;

/// A scalar type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Scalar {
    Bool,
    /// An integer of this many bits.
    Int(u32),
    /// A float of this many bits.
    Float(u32),
    /// A pointer.
    Pointer,
}

impl Scalar {
    /// Bits of a value in a register.
    pub fn bits(self) -> u32 {
        match self {
            Scalar::Bool => 1,
            Scalar::Int(bits) | Scalar::Float(bits) => bits,
            Scalar::Pointer => 64,
        }
    }

    /// Bytes in memory: a bool has no layout of its own and takes a word.
    pub fn bytes(self) -> u32 {
        match self {
            Scalar::Bool => 4,
            other => other.bits() / 8,
        }
    }

    /// The bits that a value may have.
    pub fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }
}

/// A matrix that a subgroup holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Matrix {
    pub scalar: Scalar,
    pub rows: u32,
    pub columns: u32,
    /// SPIR-V's number of its use: a factor, or a sum.
    pub role: u32,
}

/// A type.
#[derive(Clone, Debug)]
pub(super) enum Type {
    Void,
    Scalar(Scalar),
    /// Element type, number of elements, bytes between them.
    Array(u32, u32, u32),
    /// Element type and bytes between elements.
    RuntimeArray(u32, u32),
    /// Types and offsets of members.
    Struct(Vec<(u32, u32)>),
    /// The pointee.
    Pointer(u32),
    Matrix(Matrix),
    Function,
}

/// A scalar of a value: its offset in memory, and its type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Leaf {
    pub offset: u32,
    pub scalar: Scalar,
}

/// A type and what follows from it.
#[derive(Clone, Debug)]
pub(super) struct TypeInfo {
    pub ty: Type,
    /// The scalars of a value, in order; none of a type without a size.
    pub leaves: Vec<Leaf>,
    /// Bytes of a value in memory.
    pub bytes: u32,
}

/// The most scalars and bytes of one type, bounds against modules that are nonsense.
const MOST_LEAVES: usize = 1 << 16;
const MOST_BYTES: u64 = 1 << 20;

impl TypeInfo {
    pub fn scalar(scalar: Scalar) -> TypeInfo {
        let leaves = vec![Leaf { offset: 0, scalar }];
        TypeInfo { ty: Type::Scalar(scalar), leaves, bytes: scalar.bytes() }
    }

    /// A type without values.
    pub fn opaque(ty: Type) -> TypeInfo {
        TypeInfo { ty, leaves: vec![], bytes: 0 }
    }

    pub fn pointer(pointee: u32) -> TypeInfo {
        TypeInfo { ty: Type::Pointer(pointee), ..TypeInfo::scalar(Scalar::Pointer) }
    }

    /// An array or a vector; a stride of 0 is the element's size.
    pub fn array(element: (u32, &TypeInfo), count: u32, stride: u32, word: usize) -> Result<TypeInfo, Error> {
        let (id, element) = element;
        let stride = if stride == 0 { element.bytes } else { stride };
        let is_large = u64::from(stride.max(element.bytes)) * u64::from(count.max(1)) > MOST_BYTES;
        if is_large || element.leaves.len().saturating_mul(count as usize) > MOST_LEAVES {
            return Err(Error::Malformed { word, what: "a type is too large" });
        }
        let at = |index: u32| element.leaves.iter().map(move |leaf| shifted(leaf, index * stride));
        let leaves = (0..count).flat_map(at).collect();
        Ok(TypeInfo { ty: Type::Array(id, count, stride), leaves, bytes: stride * count })
    }

    /// A matrix; its scalars are those of one lane of so many.
    pub fn matrix(matrix: Matrix, lanes: u32, word: usize) -> Result<TypeInfo, Error> {
        let Matrix { scalar, rows, columns, .. } = matrix;
        let elements = rows.saturating_mul(columns);
        let is_known = rows.is_power_of_two() && columns.is_power_of_two() && elements as usize <= MOST_LEAVES;
        if !is_known || !elements.is_multiple_of(lanes) {
            return Err(Error::Unsupported { word, instruction: format!("a matrix of {rows} x {columns}") });
        }
        let bytes = scalar.bytes();
        let leaves = (0..elements / lanes).map(|at| Leaf { offset: at * bytes, scalar }).collect();
        Ok(TypeInfo { ty: Type::Matrix(matrix), leaves, bytes: elements / lanes * bytes })
    }

    /// A struct of members with their offsets.
    pub fn structure(members: &[(u32, u32, &TypeInfo)], word: usize) -> Result<TypeInfo, Error> {
        let is_large = |(_, offset, ty): &(u32, u32, &TypeInfo)| u64::from(*offset) + u64::from(ty.bytes) > MOST_BYTES;
        if members.iter().any(is_large) || members.iter().map(|m| m.2.leaves.len()).sum::<usize>() > MOST_LEAVES {
            return Err(Error::Malformed { word, what: "a type is too large" });
        }
        let leaves =
            members.iter().flat_map(|(_, offset, ty)| ty.leaves.iter().map(move |leaf| shifted(leaf, *offset)));
        let bytes = members.iter().map(|(_, offset, ty)| offset + ty.bytes).max().unwrap_or(0);
        let ty = Type::Struct(members.iter().map(|(id, offset, _)| (*id, *offset)).collect());
        Ok(TypeInfo { ty, leaves: leaves.collect(), bytes })
    }

    /// The type of the first scalar.
    pub fn first(&self) -> Option<Scalar> {
        self.leaves.first().map(|leaf| leaf.scalar)
    }
}

fn shifted(leaf: &Leaf, offset: u32) -> Leaf {
    Leaf { offset: leaf.offset + offset, ..*leaf }
}
