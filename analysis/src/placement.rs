//! The options of the in-place analysis, and its decision on one operand with the reason for it.

use std::fmt;

use crate::alias_sets::AliasSets;
use crate::index::{OperandId, ValueId};

/// The order in which uses are visited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Heuristic {
    /// Operations last to first, an operation before its nested ones.
    #[default]
    BottomUp,
    /// First the operands of each region's terminator, and their origins; then the rest, last to first.
    BottomUpFromTerminators,
    /// Operations first to last, nested operations before their parent.
    TopDown,
    /// A shuffle from a seed: any order must give right programs, only the copies may differ.
    /// The reference's shuffle, from the low 32 bits.
    Fuzzer(u64),
}

/// How much is known about the memory that uses touch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// As One-Shot Bufferize: two parts of one buffer overlap, unless one is the slice that an insertion overwrites.
    #[default]
    Greedy,
    /// Parts without a common element do not conflict (`footprints`).
    Minimal,
}

/// Options of the decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The order of visits.
    pub heuristic: Heuristic,
    /// Every use that writes is copied, unless it must be in place; other uses are not, except those that would then see
    /// such a write (the reference analyses nothing, and lets them).
    pub copy_before_write: bool,
    /// Give each iteration of a parallel region its own copy of buffers that it writes and reads.
    pub check_parallel_regions: bool,
    /// Take operations of a graph region (`scf.forall.in_parallel`) as unordered, so that reads there never see writes
    /// there. The reference does, and then runs them in order: two insertions that exchange two slices of one output
    /// lose one. Off, they are ordered as in other regions, except that destinations of such insertions may share a tensor.
    pub unordered_graph_regions: bool,
    /// What is known about parts of buffers.
    pub strategy: Strategy,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            heuristic: Heuristic::BottomUp,
            copy_before_write: false,
            check_parallel_regions: true,
            unordered_graph_regions: false,
            strategy: Strategy::Greedy,
        }
    }
}

/// The decision on one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The operation uses the buffer of the value itself.
    InPlace,
    /// The operation uses a copy.
    OutOfPlace,
}

/// The reason why a use is out of place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The write would store to a buffer that may alias this value, which is not writable.
    NotWritable {
        /// The write: the use itself, or one that would join its alias class.
        write: OperandId,
        /// The value that is not writable.
        value: ValueId,
    },
    /// Parallel iterations would share the buffer that the write stores to, and something reads it.
    SharedByParallelIterations {
        /// The read.
        read: OperandId,
        /// The write.
        write: OperandId,
    },
    /// The read would see the contents that the write stores.
    ReadAfterWrite {
        /// The read.
        read: OperandId,
        /// The write.
        write: OperandId,
        /// A definition of the contents that the read expects.
        definition: ValueId,
    },
    /// No analysis: every write is copied.
    CopyBeforeWrite,
}

/// The copy for a use that is out of place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Copy this result of the operation instead of its operand (a slice is smaller than its container).
    pub result: Option<ValueId>,
    /// Whether the contents are needed; if not, an uninitialized buffer suffices.
    pub contents: bool,
}

/// Facts without valid decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecideError {
    /// An operand that cannot be copied cannot be in place either.
    MustBeInPlace {
        /// The operand.
        operand: OperandId,
        /// The reason.
        reason: Reason,
    },
    /// A use needs a copy of a tensor of unknown rank.
    UnrankedCopy {
        /// The operand.
        operand: OperandId,
        /// The reason why it cannot be in place.
        reason: Reason,
    },
}

impl DecideError {
    /// The operand in question.
    pub const fn operand(&self) -> OperandId {
        match self {
            Self::MustBeInPlace { operand, .. } | Self::UnrankedCopy { operand, .. } => *operand,
        }
    }

    /// The reason why the operand cannot be in place.
    pub const fn reason(&self) -> Reason {
        match self {
            Self::MustBeInPlace { reason, .. } | Self::UnrankedCopy { reason, .. } => *reason,
        }
    }
}

impl fmt::Display for DecideError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MustBeInPlace { operand, .. } => {
                write!(f, "operand {operand} must be in place and cannot be")
            }
            Self::UnrankedCopy { operand, .. } => {
                write!(f, "operand {operand} needs a copy of an unranked tensor")
            }
        }
    }
}

impl std::error::Error for DecideError {}

/// A test whether a use may be in place, given those that already are.
pub(crate) trait ConflictTest {
    /// The reason why the use cannot join the uses in place.
    fn test(&mut self, operand: OperandId) -> Result<(), Reason>;
    /// Two values may alias whatever is decided. Called before any use is accepted.
    fn join(&mut self, a: ValueId, b: ValueId);
    /// Put the use in place.
    fn accept(&mut self, operand: OperandId);
    /// The alias classes, and the steps taken. No use is in place from then on.
    fn finish(&mut self) -> (AliasSets, u64);
}
