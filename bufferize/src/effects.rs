//! The vocabulary of op models: the terms of the analysis ([`monopour_analysis::effects`]), over values of the IR.

use monopour_analysis::effects::{Alias, Reads, Relation, Slice, Subset, Use};
pub use monopour_analysis::effects::{BufferInfo, RegionInfo};
use monopour_ir::{Op, Value};

/// Whether the contents of an operand may be loaded.
pub type ReadModel<'c> = Reads<Value<'c>>;

/// The use of one tensor operand.
pub type UseModel<'c> = Use<Value<'c>>;

/// How the buffers of an operand in place and of an aliasing value relate.
pub type RelationModel<'c> = Relation<Value<'c>>;

/// A value whose buffer may be that of an operand.
pub type AliasModel<'c> = Alias<Value<'c>>;

/// Offsets, sizes and strides of a slice.
pub type SliceModel<'c> = Slice<Index<'c>>;

/// How an operation reads or overwrites a part of a tensor; operands by position.
pub type SubsetModel<'c> = Subset<usize, Value<'c>, SliceModel<'c>>;

/// A number in a slice: written down or computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Index<'c> {
    /// Written down.
    Static(i64),
    /// Computed.
    Dynamic(Value<'c>),
}

/// A tensor that a terminator of a loop carries to the loop's next region or iteration.
#[derive(Clone, Copy, Debug)]
pub struct LoopCarried<'c> {
    /// The terminator.
    pub terminator: Op<'c>,
    /// The position of the tensor among its operands.
    pub index: usize,
    /// Its position among the tensors and scalars that are carried.
    pub position: usize,
    /// The argument of the same region whose buffer it may be, if there is one.
    pub argument: Option<Value<'c>>,
    /// Where the terminator stands in the loop.
    pub from: LoopTerminator<'c>,
}

/// The terminators of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopTerminator<'c> {
    /// Of the only region, which runs again (`scf.for`).
    Body,
    /// Of the region that decides whether the loop goes on (`scf.condition`).
    Condition {
        /// Argument and yielded value of the same position in the other region, if there are both.
        other_region: Option<(Value<'c>, Value<'c>)>,
    },
    /// Of the region behind a condition (the yield of `scf.while`).
    AfterCondition,
}
