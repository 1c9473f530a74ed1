//! Enum attributes of the dialect `gpu`.

pub use super::enums::{AddressSpace, AllReduceOperation, Dimension, ShuffleMode};
use crate::{Attr, Context, Op, Type, ops};

/// The dimension of `gpu.thread_id`, `gpu.block_id` and the like.
pub fn dimension(op: Op) -> Option<Dimension> {
    op.attr("dimension").and_then(Dimension::of)
}

/// The mapping of a loop to the workgroups along a dimension.
pub fn block_mapping(cx: Context, dimension: Dimension) -> Option<Attr> {
    Attr::parse(cx, &format!("#gpu.block<{}>", dimension.keyword()))
}

/// Whether an op of a kernel loads from a buffer: an element, a vector or a matrix.
pub fn is_load(op: Op) -> bool {
    op.name().ends_with(".load") || op.is(ops::gpu::SUBGROUP_MMA_LOAD_MATRIX)
}

/// Likewise stores.
pub fn is_store(op: Op) -> bool {
    op.name().ends_with(".store") || op.is(ops::gpu::SUBGROUP_MMA_STORE_MATRIX)
}

/// The part of a cooperative matrix in `a * b + c`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MatrixRole {
    /// The left factor.
    A,
    /// The right factor.
    B,
    /// The sum.
    C,
}

impl MatrixRole {
    fn as_str(self) -> &'static str {
        match self {
            MatrixRole::A => "AOp",
            MatrixRole::B => "BOp",
            MatrixRole::C => "COp",
        }
    }
}

/// `!gpu.mma_matrix<16x16xf16, "AOp">`: a square matrix that a subgroup holds.
///
/// Melior and MLIR's C interface have no view of the type, so it is written and read as text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MatrixType<'c> {
    /// Rows and columns.
    pub size: i64,
    /// The type of its elements.
    pub element: Type<'c>,
    /// Its part in a product.
    pub role: MatrixRole,
}

impl<'c> MatrixType<'c> {
    /// The type; `None` for elements that MLIR has no matrix of.
    pub fn to_type(self) -> Option<Type<'c>> {
        let Self { size, element, role } = self;
        Type::parse(element.context(), &format!("!gpu.mma_matrix<{size}x{size}x{element}, \"{}\">", role.as_str()))
    }

    /// The matrix of a type.
    pub fn of(ty: Type<'c>) -> Option<Self> {
        let text = ty.to_string();
        let (shape, role) = text.strip_prefix("!gpu.mma_matrix<")?.strip_suffix("\">")?.split_once(", \"")?;
        let [rows, columns, element] = shape.splitn(3, 'x').collect::<Vec<_>>()[..] else { return None };
        let role = [MatrixRole::A, MatrixRole::B, MatrixRole::C].into_iter().find(|r| r.as_str() == role)?;
        let size = rows.parse().ok().filter(|_| rows == columns)?;
        Some(Self { size, element: Type::parse(ty.context(), element)?, role })
    }
}
