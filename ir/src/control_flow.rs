//! How values flow between regions, blocks and calls, as upstream's interfaces tell it.

use crate::{Attr, Change, Op, Rewriter, Value};
use mlir_sys::{MlirAttribute, MlirOperation, MlirValue};
use std::ffi::{c_uint, c_void};

type EachPair = extern "C" fn(MlirValue, MlirValue, *mut c_void);

unsafe extern "C" {
    // The interfaces and traits of an op as bits; their meaning is that of `Traits`.
    fn monopour_shim_traits(op: MlirOperation) -> c_uint;
    // What a RegionBranchOpInterface hands to its first successor. False without the interface or without a successor.
    fn monopour_shim_entry_operands(op: MlirOperation, first: *mut c_uint, count: *mut c_uint) -> bool;
    // What a RegionBranchTerminatorOpInterface hands to the op around it. False without the interface.
    fn monopour_shim_forwarded_operands(op: MlirOperation, first: *mut c_uint, count: *mut c_uint) -> bool;
    // Replaces those, sizes of segments included. False without the interface.
    fn monopour_shim_set_forwarded_operands(op: MlirOperation, count: isize, values: *const MlirValue) -> bool;
    // Calls back with each value that a RegionBranchOpInterface or a terminator in it hands on, and with what takes it over.
    fn monopour_shim_region_flows(op: MlirOperation, each: EachPair, user: *mut c_void) -> bool;
    // BranchOpInterface::getSuccessorOperands: the first forwarded operand, how many there are, and how many arguments the
    // op makes itself. False without the interface.
    fn monopour_shim_successor_operands(
        op: MlirOperation,
        successor: c_uint,
        first: *mut c_uint,
        count: *mut c_uint,
        produced: *mut c_uint,
    ) -> bool;
    // Replaces the forwarded operands, sizes of segments included. False without the interface.
    fn monopour_shim_set_successor_operands(
        op: MlirOperation,
        successor: c_uint,
        count: isize,
        values: *const MlirValue,
    ) -> bool;
    // The symbol that a CallOpInterface calls; null without the interface, or where a value is called.
    fn monopour_shim_callee(op: MlirOperation) -> MlirAttribute;
    // ViewLikeOpInterface::getViewSource; null without the interface.
    fn monopour_shim_view_source(op: MlirOperation) -> MlirValue;
    // BufferViewFlowOpInterface::populateDependencies; false without the interface.
    fn monopour_shim_view_flows(op: MlirOperation, each: EachPair, user: *mut c_void) -> bool;
    // BufferViewFlowOpInterface::mayBeTerminalBuffer; false without the interface.
    fn monopour_shim_may_be_terminal_buffer(op: MlirOperation, value: MlirValue) -> bool;
    // Whether the op allocates the value in AutomaticAllocationScopeResource.
    fn monopour_shim_allocates_in_scope(op: MlirOperation, value: MlirValue) -> bool;
    // applyPatternsGreedily without patterns. False where it does not come to an end.
    fn monopour_shim_fold(op: MlirOperation) -> bool;
}

/// Interfaces and traits of an op.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traits(c_uint);

impl Traits {
    /// Of an op.
    pub fn of(op: Op) -> Self {
        // SAFETY: defined in the shim; the op is live (crate invariant).
        Self(unsafe { monopour_shim_traits(op.raw()) })
    }
    /// `CallOpInterface`.
    pub fn is_call(self) -> bool {
        self.0 & 1 != 0
    }
    /// `FunctionOpInterface`.
    pub fn is_function(self) -> bool {
        self.0 & 2 != 0
    }
    /// `RegionBranchOpInterface`: says how control flows between its regions.
    pub fn is_region_branch(self) -> bool {
        self.0 & 4 != 0
    }
    /// `RegionBranchTerminatorOpInterface`: ends a region, and says what it hands on.
    pub fn is_region_branch_terminator(self) -> bool {
        self.0 & 8 != 0
    }
    /// `BranchOpInterface`: goes on in other blocks.
    pub fn is_branch(self) -> bool {
        self.0 & 16 != 0
    }
    /// `MemoryEffectOpInterface`: says what it does to memory.
    pub fn has_memory_effects(self) -> bool {
        self.0 & 32 != 0
    }
    /// Its effects are (also) those of the ops in its regions.
    pub fn has_recursive_effects(self) -> bool {
        self.0 & 64 != 0
    }
    /// Its blocks need no terminator.
    pub fn has_no_terminator(self) -> bool {
        self.0 & 128 != 0
    }
    /// Ends a block.
    pub fn is_terminator(self) -> bool {
        self.0 & 256 != 0
    }
    /// `BufferViewFlowOpInterface`: says whose memory its results are.
    pub fn has_view_flow(self) -> bool {
        self.0 & 512 != 0
    }
    /// Its regions use nothing from outside.
    pub fn is_isolated_from_above(self) -> bool {
        self.0 & 1024 != 0
    }
}

/// Some operands of an op, side by side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OperandRange {
    /// Position of the first.
    pub first: usize,
    /// How many.
    pub count: usize,
}

impl OperandRange {
    fn new(first: c_uint, count: c_uint) -> Self {
        Self { first: first as usize, count: count as usize }
    }
    /// The operands.
    pub fn of<'c>(self, op: Op<'c>) -> Vec<Value<'c>> {
        (self.first..self.first + self.count).map(|i| op.operand(i)).collect()
    }
}

extern "C" fn push_pair(from: MlirValue, to: MlirValue, user: *mut c_void) {
    // SAFETY: `user` is the vector that the query passes down, alive during the call.
    let out = unsafe { &mut *user.cast::<Vec<(Value, Value)>>() };
    out.push((Value::from_raw(from), Value::from_raw(to)));
}

/// What an op hands to the region that it enters first; `None` for an op that does not say how control flows.
pub fn entry_operands(op: Op) -> Option<OperandRange> {
    let (mut first, mut count) = (0, 0);
    // SAFETY: defined in the shim; the op is live (crate invariant).
    let known = unsafe { monopour_shim_entry_operands(op.raw(), &raw mut first, &raw mut count) };
    known.then(|| OperandRange::new(first, count))
}

/// What a terminator hands to the op around its region, as its results or to another of its regions.
pub fn forwarded_operands(terminator: Op) -> Option<OperandRange> {
    let (mut first, mut count) = (0, 0);
    // SAFETY: defined in the shim; the op is live (crate invariant).
    let known = unsafe { monopour_shim_forwarded_operands(terminator.raw(), &raw mut first, &raw mut count) };
    known.then(|| OperandRange::new(first, count))
}

/// Each value that the op, or a terminator in it, hands on, with the region argument or result that takes it over;
/// `None` for an op that does not say how control flows.
pub fn region_flows<'c>(op: Op<'c>) -> Option<Vec<(Value<'c>, Value<'c>)>> {
    let mut out = Vec::new();
    let user: *mut Vec<(Value, Value)> = &raw mut out;
    // SAFETY: defined in the shim; the vector lives during the call.
    let known = unsafe { monopour_shim_region_flows(op.raw(), push_pair, user.cast()) };
    known.then_some(out)
}

/// What a branch hands to one of its successors; `None` where it does not say, or makes some of it itself.
pub fn successor_operands(branch: Op, successor: usize) -> Option<OperandRange> {
    let (mut first, mut count, mut produced) = (0, 0, 0);
    let number = c_uint::try_from(successor).ok().filter(|_| successor < branch.successors().len())?;
    // SAFETY: defined in the shim; the op is live (crate invariant) and has the successor.
    let known = unsafe {
        monopour_shim_successor_operands(branch.raw(), number, &raw mut first, &raw mut count, &raw mut produced)
    };
    (known && produced == 0).then(|| OperandRange::new(first, count))
}

/// The symbol that a call names; `None` for what is no call, and where a value is called.
pub fn callee<'c>(op: Op<'c>) -> Option<Attr<'c>> {
    // SAFETY: defined in the shim; the op is live (crate invariant).
    Attr::non_null(unsafe { monopour_shim_callee(op.raw()) })
}

/// The memref that the op makes a view of; `None` for other ops.
pub fn view_source<'c>(op: Op<'c>) -> Option<Value<'c>> {
    // SAFETY: defined in the shim; the op is live (crate invariant).
    let raw = unsafe { monopour_shim_view_source(op.raw()) };
    (!raw.ptr.is_null()).then_some(Value::from_raw(raw))
}

/// What a memref is a view of, all the way.
pub fn viewed<'c>(mut value: Value<'c>) -> Value<'c> {
    while let Some(source) = value.defining_op().and_then(view_source) {
        value = source;
    }
    value
}

/// Each operand with a value of the op that may be its memory; `None` for an op that does not say so.
pub fn view_flows<'c>(op: Op<'c>) -> Option<Vec<(Value<'c>, Value<'c>)>> {
    let mut out = Vec::new();
    let user: *mut Vec<(Value, Value)> = &raw mut out;
    // SAFETY: defined in the shim; the vector lives during the call.
    let known = unsafe { monopour_shim_view_flows(op.raw(), push_pair, user.cast()) };
    known.then_some(out)
}

/// Whether an op with [`view_flows`] says that a value of its may be memory of its own.
pub fn may_be_terminal_buffer(op: Op, value: Value) -> bool {
    // SAFETY: defined in the shim; the handles are live (crate invariant).
    unsafe { monopour_shim_may_be_terminal_buffer(op.raw(), value.raw()) }
}

/// Whether the op allocates the value's memory for as long as the scope around it lasts (`memref.alloca`).
pub fn allocates_in_scope(op: Op, value: Value) -> bool {
    // SAFETY: defined in the shim; the handles are live (crate invariant).
    unsafe { monopour_shim_allocates_in_scope(op.raw(), value.raw()) }
}

/// Folds constants, uniques them per region, and drops what is dead in an op, whose regions are isolated: what any greedy
/// rewrite of MLIR does beside its patterns. Handles to what the op holds are invalid afterwards.
/// False if it stopped before it came to an end.
pub fn fold(op: Op) -> bool {
    // SAFETY: defined in the shim; the op is live (crate invariant).
    unsafe { monopour_shim_fold(op.raw()) }
}

impl<'c> Rewriter<'c> {
    /// Replaces what a terminator hands to the op around its region; false where it does not say what that is.
    pub fn set_forwarded_operands(&mut self, terminator: Op<'c>, values: &[Value<'c>]) -> bool {
        let Some(old) = forwarded_operands(terminator) else { return false };
        old.of(terminator).into_iter().for_each(|value| self.release(value));
        let raw: Vec<MlirValue> = values.iter().map(|v| v.raw()).collect();
        self.note([Change::Modified(terminator)]);
        // SAFETY: defined in the shim; the handles are live (crate invariant).
        unsafe { monopour_shim_set_forwarded_operands(terminator.raw(), raw.len() as isize, raw.as_ptr()) }
    }
    /// Replaces what a branch hands to one of its successors; false where it does not say what that is.
    pub fn set_successor_operands(&mut self, branch: Op<'c>, successor: usize, values: &[Value<'c>]) -> bool {
        let Some(old) = successor_operands(branch, successor) else { return false };
        old.of(branch).into_iter().for_each(|value| self.release(value));
        let raw: Vec<MlirValue> = values.iter().map(|v| v.raw()).collect();
        let number = c_uint::try_from(successor).expect("successors fit 32 bits");
        self.note([Change::Modified(branch)]);
        // SAFETY: defined in the shim; the handles are live (crate invariant), and the op has the successor.
        unsafe { monopour_shim_set_successor_operands(branch.raw(), number, raw.len() as isize, raw.as_ptr()) }
    }
}
