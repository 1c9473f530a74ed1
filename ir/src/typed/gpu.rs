//! Enum attributes of the dialect `gpu`.

pub use super::enums::{AddressSpace, AllReduceOperation, Dimension, ShuffleMode};
use crate::{Attr, Context, Op};

/// The dimension of `gpu.thread_id`, `gpu.block_id` and the like.
pub fn dimension(op: Op) -> Option<Dimension> {
    op.attr("dimension").and_then(Dimension::of)
}

/// The mapping of a loop to the workgroups along a dimension.
pub fn block_mapping(cx: Context, dimension: Dimension) -> Option<Attr> {
    Attr::parse(cx, &format!("#gpu.block<{}>", dimension.keyword()))
}
