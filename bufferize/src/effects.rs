//! The vocabulary of op models: the terms of the analysis ([`monopour_analysis::effects`]), over values of the IR.

use monopour_analysis::effects::{Alias, Reads, Relation, Slice, Subset, Use};
pub use monopour_analysis::effects::{BufferInfo, RegionInfo};
pub use monopour_ir::typed::Index;
use monopour_ir::{Op, Value};

/// Whether the contents of an operand may be loaded.
pub type ReadModel<'c> = Reads<Value<'c>>;

/// The use of one tensor operand.
pub type UseModel<'c> = Use<Value<'c>>;

/// The relation between the buffers of an operand in place and of an aliasing value.
pub type RelationModel<'c> = Relation<Value<'c>>;

/// A value that may alias an operand.
pub type AliasModel<'c> = Alias<Value<'c>>;

/// Offsets, sizes and strides of a slice.
pub type SliceModel<'c> = Slice<Index<'c>>;

/// A subset that an operation reads or overwrites; operands by position.
pub type SubsetModel<'c> = Subset<usize, Value<'c>, SliceModel<'c>>;

/// A tensor that a terminator of a loop carries to the loop's next region or iteration.
#[derive(Clone, Copy, Debug)]
pub struct LoopCarried<'c> {
    /// The terminator.
    pub terminator: Op<'c>,
    /// The position of the tensor among its operands.
    pub index: usize,
    /// Its position among the carried values, scalars included.
    pub position: usize,
    /// The argument of the same region that it may be equivalent to, if any.
    pub argument: Option<Value<'c>>,
    /// The kind of the terminator.
    pub from: LoopTerminator<'c>,
}

/// The terminators of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopTerminator<'c> {
    /// Of the only region, which runs again (`scf.for`).
    Body,
    /// Of the region that decides whether the loop goes on (`scf.condition`).
    Condition {
        /// Argument and yielded value at the same position of the other region, if both exist.
        other_region: Option<(Value<'c>, Value<'c>)>,
    },
    /// Of the region after a condition (the yield of `scf.while`).
    AfterCondition,
}
