//! A way to distribute a body, as a trait: it plans from data and changes nothing, or gives a reason to decline
//! ([`Declined`]); the first plan is written.

use super::code::Code;
use super::evaluate::Evaluator;
use super::fitted::FittedChoice;
use super::locals::{Place, Scratch};
use monopour_ir::{Diagnostics, Op};
use monopour_program::GpuDescription;
use std::fmt;

/// A way to distribute a body over the invocations of a workgroup.
pub(super) trait Strategy: Sync {
    /// Plans the code of a body, or declines.
    fn plan<'c, 'm>(
        &self,
        body: &Evaluator<'c, 'm>,
        kernel: &FittedChoice,
        device: &GpuDescription,
    ) -> Result<Box<dyn KernelPlan<'c, 'm> + 'm>, Declined>;
}

/// A planned body.
pub(super) trait KernelPlan<'c, 'm> {
    /// The strategy, for the report.
    fn strategy(&self) -> &'static str;
    /// Elements per access of the results.
    fn lanes(&self) -> u32;
    /// Emits the code at the insertion point; returns the scratch that the kernel needs.
    fn write(&self, code: &mut Code<'c, '_>, site: &Site<'c, '_, 'm>) -> Result<Vec<Scratch>, Diagnostics>;
}

/// The kernel of a plan.
pub(super) struct Site<'c, 'a, 'm> {
    pub(super) func: Op<'c>,
    pub(super) body: &'a Evaluator<'c, 'm>,
    pub(super) kernel: &'a FittedChoice,
    pub(super) place: &'a Place<'c, 'a>,
}

/// Why a strategy declines a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Declined {
    /// The kernel's class, or the form of its body, is another strategy's. Not reported.
    NotAsked,
    /// Control flow, or loads and stores of single elements, around the tile ops.
    ControlFlow,
    /// Ops of a contraction fall into several groups.
    SeparateGroups,
    /// No op has reductions, or several have.
    NotOneReduction,
    /// A body of a contraction with several results, or with ops of other dialects.
    NotPlain,
    /// An input of a contraction is written in the tile.
    InputComputed,
    /// An input of a contraction has an index that is no sum of loops.
    InputNotLinear,
    /// A contraction reads no buffer.
    NoInput,
    /// The result of a contraction has an index that is no loop.
    ResultNotIndexed,
    /// A parallel loop of a contraction is missing in its result.
    InnerNotReduction,
    /// A tile without a static bound.
    UnboundedTile,
    /// More accumulators than an invocation holds.
    RegisterTile,
    /// A product of other factors than halves, or summed in another type than f32.
    NotHalves,
    /// A factor whose neighbours do not lie side by side, four at a time.
    NotInVectors,
    /// A tile that the subgroups do not share evenly.
    UnevenSubgroups,
    /// A body of the class attention that is no softmax between two products.
    NotAttention,
    /// No op of a row kernel has reductions.
    NoReduction,
    /// A row of one element.
    UnitRow,
    /// A row without elements.
    EmptyRow,
    /// An output of a row kernel has an index that is not made of distinct loops.
    OutputNotIndexed,
    /// A body of a row kernel with ops of other dialects.
    NotArithmetic,
    /// Two reductions over different extents.
    DifferentReductions,
    /// An op over neither the rows nor the elements of the rows.
    ForeignExtents,
    /// A reduction by anything but one associative op per result.
    NotAssociative,
    /// An operand of a row kernel has an index that is no sum of loops.
    OperandNotLinear,
    /// An output of a row kernel is a scalar.
    OutputNotBuffer,
    /// A buffer that is written is accessed through several slices.
    MixedAccess,
    /// A local buffer is read before it is written.
    ReadBeforeWrite,
    /// A row of several dimensions, one of them dynamic.
    DynamicRow,
    /// Neighbours in memory belong to different rows.
    StridedRows,
    /// A tile without a static bound on its rows.
    UnboundedRows,
    /// A local row that fits in no registers.
    RowNotResident,
    /// A workgroup that is no multiple of the team of a row.
    PartialTeams,
    /// More iterations than the device runs.
    LongRows,
    /// Partial results of so many bytes, more than workgroup memory has.
    WorkgroupMemory(u64),
}

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Declined::NotAsked => "the kernel asks for another strategy",
            Declined::ControlFlow => "the body has control flow or single accesses",
            Declined::SeparateGroups => "the body's ops cannot share their iterations",
            Declined::NotOneReduction => "the body has not exactly one reduction",
            Declined::NotPlain => "a body has more than one result, or is not plain arithmetic",
            Declined::InputComputed => "an input is computed in the same tile",
            Declined::InputNotLinear => "an input is not indexed by sums of loops",
            Declined::NoInput => "no input lies in memory",
            Declined::ResultNotIndexed => "the result is not indexed by loops",
            Declined::InnerNotReduction => "its inner loops are not reductions",
            Declined::UnboundedTile => "the tile has no known bound",
            Declined::RegisterTile => "the register tile is too large",
            Declined::NotHalves => "the factors are not f16, or the sums not f32",
            Declined::NotInVectors => "a factor is not contiguous in vectors of four",
            Declined::UnevenSubgroups => "the subgroups do not share the tile evenly",
            Declined::NotAttention => {
                "the body is not a softmax between two products, with one row loop of several rows"
            }
            Declined::NoReduction => "the body has no reduction",
            Declined::UnitRow => "a row has one element",
            Declined::EmptyRow => "a row has no element",
            Declined::OutputNotIndexed => "an output is not indexed by distinct loops",
            Declined::NotArithmetic => "a body does more than arithmetic",
            Declined::DifferentReductions => "two reductions have different extents",
            Declined::ForeignExtents => {
                "an op's extents are neither those of the rows nor those of the reductions' results"
            }
            Declined::NotAssociative => "a reduction's body is not one associative op on each result",
            Declined::OperandNotLinear => "an operand's index is not linear",
            Declined::OutputNotBuffer => "an output is not a buffer",
            Declined::MixedAccess => "a buffer that is written is accessed in two ways",
            Declined::ReadBeforeWrite => "a local buffer is read before it is written",
            Declined::DynamicRow => "a row of several dimensions has a dynamic extent",
            Declined::StridedRows => "the rows are not contiguous, but their columns are",
            Declined::UnboundedRows => "the tile has no known number of rows",
            Declined::RowNotResident => "an intermediate row has no memory and does not fit in registers",
            Declined::PartialTeams => "the workgroup is not made of whole teams",
            Declined::LongRows => "the rows are too long for the loops of the device",
            Declined::WorkgroupMemory(needed) => {
                return write!(f, "partial results need {needed} bytes of workgroup memory");
            }
        })
    }
}
