//! Blocks and regions.

use crate::{Block, Location, Op, Region, Type, Value};
use mlir_sys::{MlirBlock, MlirRegion};
use smallvec::SmallVec;

impl<'c> Block<'c> {
    /// A detached block with arguments of these types, to be appended to a region.
    pub fn new(args: &[(Type<'c>, Location<'c>)]) -> Self {
        let raw = c!(mlirBlockCreate(0, std::ptr::null(), std::ptr::null()));
        for (ty, location) in args {
            c!(mlirBlockAddArgument(raw, ty.raw(), location.raw()));
        }
        Self::from_raw(raw)
    }
    /// Arguments.
    pub fn args(self) -> Vec<Value<'c>> {
        let value = |i| Value::from_raw(c!(mlirBlockGetArgument(self.raw(), i as isize)));
        (0..self.num_args()).map(value).collect()
    }
    /// As [`Self::args`], without the heap for up to eight.
    pub fn arg_values(self) -> SmallVec<[Value<'c>; 8]> {
        // SAFETY: defined in the shim; the block is live (crate invariant), and the list has that much room.
        Value::list(|room, out| unsafe { monopour_shim_arguments(self.raw(), room, out) })
    }
    /// Iterates over the arguments without allocating a list.
    pub(crate) fn arg_list(self) -> impl Iterator<Item = Value<'c>> {
        (0..self.num_args()).map(move |i| Value::from_raw(c!(mlirBlockGetArgument(self.raw(), i as isize))))
    }
    /// Number of arguments.
    pub fn num_args(self) -> usize {
        c!(mlirBlockGetNumArguments(self.raw())) as usize
    }
    /// Argument by position.
    pub fn arg(self, index: usize) -> Value<'c> {
        assert!(index < self.num_args(), "block argument {index} exists");
        Value::from_raw(c!(mlirBlockGetArgument(self.raw(), index as isize)))
    }
    /// Ops in order, the terminator included.
    pub fn ops(self) -> Vec<Op<'c>> {
        let mut out = Vec::new();
        let mut raw = c!(mlirBlockGetFirstOperation(self.raw()));
        while !raw.ptr.is_null() {
            out.push(Op::from_raw(raw));
            raw = c!(mlirOperationGetNextInBlock(raw));
        }
        out
    }
    /// First op.
    pub fn first_op(self) -> Option<Op<'c>> {
        Op::non_null(c!(mlirBlockGetFirstOperation(self.raw())))
    }
    /// Terminator, if the last op is one.
    pub fn terminator(self) -> Option<Op<'c>> {
        Op::non_null(c!(mlirBlockGetTerminator(self.raw())))
    }
    /// Last op, a terminator or not.
    pub fn last_op(self) -> Option<Op<'c>> {
        // SAFETY: defined in the shim; the block is live (crate invariant).
        Op::non_null(unsafe { monopour_shim_last_op(self.raw()) })
    }
    /// Region that holds the block.
    pub fn region(self) -> Option<Region<'c>> {
        let raw = c!(mlirBlockGetParentRegion(self.raw()));
        (!raw.ptr.is_null()).then_some(Region::from_raw(raw))
    }
    /// Op that holds the block's region.
    pub fn parent_op(self) -> Option<Op<'c>> {
        Op::non_null(c!(mlirBlockGetParentOperation(self.raw())))
    }
    /// Successor blocks.
    pub fn successors(self) -> Vec<Block<'c>> {
        let n = c!(mlirBlockGetNumSuccessors(self.raw()));
        (0..n).map(|i| Block::from_raw(c!(mlirBlockGetSuccessor(self.raw(), i)))).collect()
    }
}

impl<'c> Region<'c> {
    /// A detached region, to be attached to an op.
    pub fn new() -> Self {
        Self::from_raw(c!(mlirRegionCreate()))
    }
    /// Blocks in order.
    pub fn blocks(self) -> Vec<Block<'c>> {
        self.block_list().collect()
    }
    /// Iterates over the blocks without allocating a list. None may be moved meanwhile.
    pub(crate) fn block_list(self) -> impl Iterator<Item = Block<'c>> {
        let next = |block: &Block| {
            let raw = c!(mlirBlockGetNextInRegion(block.raw()));
            (!raw.ptr.is_null()).then_some(Block::from_raw(raw))
        };
        std::iter::successors(self.entry(), next)
    }
    /// Entry block.
    pub fn entry(self) -> Option<Block<'c>> {
        let raw = c!(mlirRegionGetFirstBlock(self.raw()));
        (!raw.ptr.is_null()).then_some(Block::from_raw(raw))
    }
    /// Last block.
    pub fn last(self) -> Option<Block<'c>> {
        // SAFETY: defined in the shim; the region is live (crate invariant).
        let raw = unsafe { monopour_shim_last_block(self.raw()) };
        (!raw.ptr.is_null()).then_some(Block::from_raw(raw))
    }
    /// Appends a detached block.
    pub fn append(self, block: Block<'c>) {
        c!(mlirRegionAppendOwnedBlock(self.raw(), block.raw()));
    }
}

impl Default for Region<'_> {
    fn default() -> Self {
        Self::new()
    }
}

unsafe extern "C" {
    // Writes up to `capacity` arguments; returns their number.
    fn monopour_shim_arguments(block: MlirBlock, capacity: isize, out: *mut mlir_sys::MlirValue) -> isize;
    // The last block of a region, or null.
    fn monopour_shim_last_block(region: MlirRegion) -> MlirBlock;
    // The last op of a block, or null.
    fn monopour_shim_last_op(block: MlirBlock) -> mlir_sys::MlirOperation;
}
