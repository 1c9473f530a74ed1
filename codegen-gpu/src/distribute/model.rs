//! A kernel body as data: slices of buffers, and tile ops over them.

mod read;
mod views;

use super::code::{Facts, facts};
use super::stride::Linear;
use monopour_ir::{AffineExpr, Block, Op, Type, Value};
pub(super) use read::read;
use std::collections::HashMap;
use std::ops::Range;

/// The memory that a slice lies in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Base {
    /// A kernel argument, by position.
    Argument(usize),
    /// A local allocation, by position in [`Model::locals`].
    Local(usize),
}

/// An extent that may depend on the tile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size<'c> {
    pub(super) value: Value<'c>,
    pub(super) facts: Facts,
}

impl<'c> Size<'c> {
    pub(super) fn new(value: Value<'c>) -> Self {
        Self { value, facts: facts(value) }
    }
    pub(super) fn exact(&self) -> Option<i64> {
        self.value.constant_int()
    }
    pub(super) fn same(&self, other: &Size<'c>) -> bool {
        self.value == other.value || self.exact().is_some_and(|e| other.exact() == Some(e))
    }
}

/// A strided part of a buffer.
#[derive(Clone, Debug)]
pub(super) struct Slice<'c> {
    pub(super) base: Base,
    /// First element, counted from the start of the buffer.
    pub(super) offset: Value<'c>,
    /// Strides in elements.
    pub(super) strides: Vec<Value<'c>>,
    pub(super) sizes: Vec<Size<'c>>,
    pub(super) element: Type<'c>,
}

/// A local allocation.
#[derive(Clone, Debug)]
pub(super) struct Local<'c> {
    pub(super) op: Op<'c>,
    /// Upper bound of the elements; [`monopour_ir::DYNAMIC`] without one.
    pub(super) elements: i64,
    /// Extents as values.
    pub(super) sizes: Vec<Size<'c>>,
    pub(super) element: Type<'c>,
}

/// An operand of a tile op.
#[derive(Clone, Debug)]
pub(super) struct Operand<'c> {
    /// Index into [`Model::slices`], or a scalar.
    pub(super) source: Source<'c>,
    /// Indexing expressions over the loops.
    pub(super) map: Vec<AffineExpr<'c>>,
    /// For linear maps: the index in elements, with a stride per loop.
    pub(super) linear: Option<Linear<'c>>,
}

/// The source of an operand's values.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source<'c> {
    Slice(usize),
    Scalar(Value<'c>),
}

/// One op of the body.
#[derive(Clone, Debug)]
pub(super) struct TileOp<'c> {
    pub(super) op: Op<'c>,
    pub(super) sizes: Vec<Size<'c>>,
    pub(super) parallel: Vec<bool>,
    /// Inputs, then outputs, in the order of the body's arguments.
    pub(super) operands: Vec<Operand<'c>>,
    pub(super) num_inputs: usize,
    /// The computation; `None` copies input to output.
    pub(super) body: Option<Block<'c>>,
    /// Loops of the first output's indices, outermost first; `None` when two iterations of these may write one element.
    pub(super) outer: Option<Vec<usize>>,
    /// Slices that the body loads from at computed indices.
    pub(super) gathered: Vec<usize>,
}

/// A step of a body; steps run in order.
#[derive(Clone, Debug)]
pub(super) enum Step<'c> {
    /// A run of tile ops, by their positions in [`Model::ops`].
    Run(Range<usize>),
    /// A load or store of one element.
    Access(Op<'c>),
    /// A loop or condition, and the steps of each of its blocks.
    Region(Op<'c>, Vec<Vec<Step<'c>>>),
}

impl<'c> TileOp<'c> {
    pub(super) fn outputs(&self) -> &[Operand<'c>] {
        &self.operands[self.num_inputs..]
    }
    /// Loops that are not in [`TileOp::outer`]: sequential per output element.
    pub(super) fn inner(&self) -> Vec<usize> {
        let outer = self.outer.clone().unwrap_or_default();
        (0..self.sizes.len()).filter(|l| !outer.contains(l)).collect()
    }
    /// Whether the old value of operand `index` is read.
    pub(super) fn reads(&self, index: usize) -> bool {
        match self.body {
            Some(body) => !body.arg(index).is_unused(),
            None => index == 0,
        }
    }
}

/// A kernel body.
#[derive(Debug, Default)]
pub(super) struct Model<'c> {
    pub(super) slices: Vec<Slice<'c>>,
    pub(super) locals: Vec<Local<'c>>,
    pub(super) ops: Vec<TileOp<'c>>,
    /// The steps of the body, in order.
    pub(super) steps: Vec<Step<'c>>,
    /// Ops to erase after writing the code, in program order.
    pub(super) replaced: Vec<Op<'c>>,
    by_value: HashMap<Value<'c>, usize>,
}

impl<'c> Model<'c> {
    /// The slice of a memref of the body.
    pub(super) fn slice_named(&self, value: Value<'c>) -> Option<usize> {
        self.by_value.get(&value).copied()
    }
    /// The buffer of an operand's values; `None` for a scalar.
    pub(super) fn base(&self, source: Source<'c>) -> Option<Base> {
        match source {
            Source::Slice(slice) => Some(self.slices[slice].base),
            Source::Scalar(_) => None,
        }
    }
    /// Whether the body is one run of tile ops, without control flow or single accesses around them.
    pub(super) fn is_straight(&self) -> bool {
        matches!(self.steps.as_slice(), [] | [Step::Run(_)])
    }
}
