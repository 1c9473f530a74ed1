//! The vocabulary of op models: the terms of the analysis ([`monopour_analysis::effects`]), over values of the IR.

use monopour_analysis::effects::{Alias, Reads, Relation, Slice, Subset, Use};
pub use monopour_analysis::effects::{BufferInfo, RegionInfo};
use monopour_ir::{Op, Value};

/// Whether the contents of an operand may be loaded.
pub type ReadModel = Reads<Value>;

/// The use of one tensor operand.
pub type UseModel = Use<Value>;

/// How the buffers of an operand in place and of an aliasing value relate.
pub type RelationModel = Relation<Value>;

/// A value whose buffer may be that of an operand.
pub type AliasModel = Alias<Value>;

/// Offsets, sizes and strides of a slice.
pub type SliceModel = Slice<Index>;

/// How an operation reads or overwrites a part of a tensor; operands by position.
pub type SubsetModel = Subset<usize, Value, SliceModel>;

/// A number in a slice: written down or computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Index {
    /// Written down.
    Static(i64),
    /// Computed.
    Dynamic(Value),
}

/// A tensor that a terminator of a loop carries to the loop's next region or iteration.
#[derive(Clone, Copy, Debug)]
pub struct LoopCarried {
    /// The terminator.
    pub terminator: Op,
    /// The position of the tensor among its operands.
    pub index: usize,
    /// Its position among the tensors and scalars that are carried.
    pub position: usize,
    /// The argument of the same region whose buffer it may be, if there is one.
    pub argument: Option<Value>,
    /// Where the terminator stands in the loop.
    pub from: LoopTerminator,
}

/// The terminators of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopTerminator {
    /// Of the only region, which runs again (`scf.for`).
    Body,
    /// Of the region that decides whether the loop goes on (`scf.condition`).
    Condition {
        /// Argument and yielded value of the same position in the other region, if there are both.
        other_region: Option<(Value, Value)>,
    },
    /// Of the region behind a condition (the yield of `scf.while`).
    AfterCondition,
}
