//! Values forwarded between regions, blocks and calls, by upstream's interfaces.

use crate::{Attr, Change, Op, Rewriter, Value};
use mlir_sys::{MlirAttribute, MlirOperation, MlirValue};
use std::ffi::{c_uint, c_void};

type EachPair = extern "C" fn(MlirValue, MlirValue, *mut c_void);

unsafe extern "C" {
    // The interfaces and traits of an op as the bits of `Traits`.
    fn monopour_shim_traits(op: MlirOperation) -> c_uint;
    // Entry successor operands of a RegionBranchOpInterface, for the first successor. False without the interface or a successor.
    fn monopour_shim_entry_operands(op: MlirOperation, first: *mut c_uint, count: *mut c_uint) -> bool;
    // Forwarded operands of a RegionBranchTerminatorOpInterface. False without the interface.
    fn monopour_shim_forwarded_operands(op: MlirOperation, first: *mut c_uint, count: *mut c_uint) -> bool;
    // Replaces those, operand segment sizes included. False without the interface.
    fn monopour_shim_set_forwarded_operands(op: MlirOperation, count: isize, values: *const MlirValue) -> bool;
    // Calls back with each value that a RegionBranchOpInterface or a terminator in it forwards, and its successor input.
    fn monopour_shim_region_flows(op: MlirOperation, each: EachPair, user: *mut c_void) -> bool;
    // BranchOpInterface::getSuccessorOperands: position and number of the forwarded operands, and the number of operands that
    // the op produces itself. False without the interface.
    fn monopour_shim_successor_operands(
        op: MlirOperation,
        successor: c_uint,
        first: *mut c_uint,
        count: *mut c_uint,
        produced: *mut c_uint,
    ) -> bool;
    // Replaces the forwarded operands, operand segment sizes included. False without the interface.
    fn monopour_shim_set_successor_operands(
        op: MlirOperation,
        successor: c_uint,
        count: isize,
        values: *const MlirValue,
    ) -> bool;
    // The callee symbol of a CallOpInterface; null without the interface, or for an indirect call.
    fn monopour_shim_callee(op: MlirOperation) -> MlirAttribute;
    // ViewLikeOpInterface::getViewSource; null without the interface.
    fn monopour_shim_view_source(op: MlirOperation) -> MlirValue;
    // BufferViewFlowOpInterface::populateDependencies; false without the interface.
    fn monopour_shim_view_flows(op: MlirOperation, each: EachPair, user: *mut c_void) -> bool;
    // BufferViewFlowOpInterface::mayBeTerminalBuffer; false without the interface.
    fn monopour_shim_may_be_terminal_buffer(op: MlirOperation, value: MlirValue) -> bool;
    // Whether the op allocates the value in AutomaticAllocationScopeResource.
    fn monopour_shim_allocates_in_scope(op: MlirOperation, value: MlirValue) -> bool;
    // applyPatternsGreedily without patterns. False if it does not converge.
    fn monopour_shim_fold(op: MlirOperation) -> bool;
}

/// Interfaces and traits of an op.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traits(c_uint);

impl Traits {
    /// Those of an op.
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
    /// `RegionBranchOpInterface`: control flow between its regions.
    pub fn is_region_branch(self) -> bool {
        self.0 & 4 != 0
    }
    /// `RegionBranchTerminatorOpInterface`: ends a region and forwards operands.
    pub fn is_region_branch_terminator(self) -> bool {
        self.0 & 8 != 0
    }
    /// `BranchOpInterface`: has successor blocks.
    pub fn is_branch(self) -> bool {
        self.0 & 16 != 0
    }
    /// `MemoryEffectOpInterface`.
    pub fn has_memory_effects(self) -> bool {
        self.0 & 32 != 0
    }
    /// `HasRecursiveMemoryEffects`: its effects are (also) those of the ops in its regions.
    pub fn has_recursive_effects(self) -> bool {
        self.0 & 64 != 0
    }
    /// `NoTerminator`.
    pub fn has_no_terminator(self) -> bool {
        self.0 & 128 != 0
    }
    /// `IsTerminator`.
    pub fn is_terminator(self) -> bool {
        self.0 & 256 != 0
    }
    /// `BufferViewFlowOpInterface`: the buffers that its results alias.
    pub fn has_view_flow(self) -> bool {
        self.0 & 512 != 0
    }
    /// `IsIsolatedFromAbove`.
    pub fn is_isolated_from_above(self) -> bool {
        self.0 & 1024 != 0
    }
}

/// Consecutive operands of an op.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OperandRange {
    /// Position of the first.
    pub first: usize,
    /// Number of operands.
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

/// The entry successor operands of an op; `None` without `RegionBranchOpInterface`.
pub fn entry_operands(op: Op) -> Option<OperandRange> {
    let (mut first, mut count) = (0, 0);
    // SAFETY: defined in the shim; the op is live (crate invariant).
    let known = unsafe { monopour_shim_entry_operands(op.raw(), &raw mut first, &raw mut count) };
    known.then(|| OperandRange::new(first, count))
}

/// The operands that a terminator forwards to its parent op, as results or as arguments of another region.
pub fn forwarded_operands(terminator: Op) -> Option<OperandRange> {
    let (mut first, mut count) = (0, 0);
    // SAFETY: defined in the shim; the op is live (crate invariant).
    let known = unsafe { monopour_shim_forwarded_operands(terminator.raw(), &raw mut first, &raw mut count) };
    known.then(|| OperandRange::new(first, count))
}

/// Each value that the op, or a terminator in it, forwards, with its successor input (region argument or result);
/// `None` without `RegionBranchOpInterface`.
pub fn region_flows<'c>(op: Op<'c>) -> Option<Vec<(Value<'c>, Value<'c>)>> {
    let mut out = Vec::new();
    let user: *mut Vec<(Value, Value)> = &raw mut out;
    // SAFETY: defined in the shim; the vector lives during the call.
    let known = unsafe { monopour_shim_region_flows(op.raw(), push_pair, user.cast()) };
    known.then_some(out)
}

/// The forwarded operands of one successor; `None` if unknown, or if the branch produces some of them itself.
pub fn successor_operands(branch: Op, successor: usize) -> Option<OperandRange> {
    let (mut first, mut count, mut produced) = (0, 0, 0);
    let number = c_uint::try_from(successor).ok().filter(|_| successor < branch.successors().len())?;
    // SAFETY: defined in the shim; the op is live (crate invariant) and has the successor.
    let known = unsafe {
        monopour_shim_successor_operands(branch.raw(), number, &raw mut first, &raw mut count, &raw mut produced)
    };
    (known && produced == 0).then(|| OperandRange::new(first, count))
}

/// The callee symbol; `None` for an op that is no call, and for an indirect call.
pub fn callee<'c>(op: Op<'c>) -> Option<Attr<'c>> {
    // SAFETY: defined in the shim; the op is live (crate invariant).
    Attr::non_null(unsafe { monopour_shim_callee(op.raw()) })
}

/// The source of a view-like op; `None` for other ops.
pub fn view_source<'c>(op: Op<'c>) -> Option<Value<'c>> {
    // SAFETY: defined in the shim; the op is live (crate invariant).
    let raw = unsafe { monopour_shim_view_source(op.raw()) };
    (!raw.ptr.is_null()).then_some(Value::from_raw(raw))
}

/// The source at the start of a chain of view-like ops.
pub fn viewed<'c>(mut value: Value<'c>) -> Value<'c> {
    while let Some(source) = value.defining_op().and_then(view_source) {
        value = source;
    }
    value
}

/// Each operand with a value of the op that may alias it; `None` without `BufferViewFlowOpInterface`.
pub fn view_flows<'c>(op: Op<'c>) -> Option<Vec<(Value<'c>, Value<'c>)>> {
    let mut out = Vec::new();
    let user: *mut Vec<(Value, Value)> = &raw mut out;
    // SAFETY: defined in the shim; the vector lives during the call.
    let known = unsafe { monopour_shim_view_flows(op.raw(), push_pair, user.cast()) };
    known.then_some(out)
}

/// Whether an op with [`view_flows`] says that the value may be a terminal buffer: one of its own.
pub fn may_be_terminal_buffer(op: Op, value: Value) -> bool {
    // SAFETY: defined in the shim; the handles are live (crate invariant).
    unsafe { monopour_shim_may_be_terminal_buffer(op.raw(), value.raw()) }
}

/// Whether the op allocates the value in the enclosing allocation scope (`memref.alloca`).
pub fn allocates_in_scope(op: Op, value: Value) -> bool {
    // SAFETY: defined in the shim; the handles are live (crate invariant).
    unsafe { monopour_shim_allocates_in_scope(op.raw(), value.raw()) }
}

/// Folds, uniques constants per region, and erases dead code in an op with isolated regions, as MLIR's greedy rewriter does beside
/// its patterns. Handles to nested ops are invalid afterwards. False if it does not converge.
pub fn fold(op: Op) -> bool {
    // SAFETY: defined in the shim; the op is live (crate invariant).
    unsafe { monopour_shim_fold(op.raw()) }
}

impl<'c> Rewriter<'c> {
    /// Replaces the operands that a terminator forwards; false if they are unknown.
    pub fn set_forwarded_operands(&mut self, terminator: Op<'c>, values: &[Value<'c>]) -> bool {
        let Some(old) = forwarded_operands(terminator) else { return false };
        old.of(terminator).into_iter().for_each(|value| self.release(value));
        let raw: Vec<MlirValue> = values.iter().map(|v| v.raw()).collect();
        self.note([Change::Modified(terminator)]);
        // SAFETY: defined in the shim; the handles are live (crate invariant).
        unsafe { monopour_shim_set_forwarded_operands(terminator.raw(), raw.len() as isize, raw.as_ptr()) }
    }
    /// Replaces the operands that a branch forwards to a successor; false if they are unknown.
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
