//! Queries of upstream's op interfaces: the fallback for ops that no model of ours describes.

use crate::{AffineMap, Attr, Op, Type, Value};
use mlir_sys::{MlirOperation, MlirType, MlirValue};
use std::ffi::{c_int, c_uint, c_void};

/// Kind of a memory effect.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EffectKind {
    /// Reads it.
    Read,
    /// Writes it.
    Write,
    /// Allocates it.
    Allocate,
    /// Frees it.
    Free,
}

/// One memory effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effect<'c> {
    /// The kind.
    pub kind: EffectKind,
    /// The operand or result with that memory; `None` where the op names none.
    pub value: Option<Value<'c>>,
}

type EachIndex = extern "C" fn(usize, *mut c_void);
type EachEffect = extern "C" fn(c_int, MlirValue, *mut c_void);

unsafe extern "C" {
    // Calls back with the position of each `outs` operand; false without DestinationStyleOpInterface.
    fn monopour_shim_dps_inits(op: MlirOperation, each: EachIndex, user: *mut c_void) -> bool;
    // Calls back with each effect's kind (0 read, 1 write, 2 allocate, 3 free) and value, which may be null; false without MemoryEffectOpInterface.
    fn monopour_shim_memory_effects(op: MlirOperation, each: EachEffect, user: *mut c_void) -> bool;
    // LinalgOp: all loops are parallel.
    fn monopour_shim_has_parallel_loops_only(op: MlirOperation) -> bool;
    // mlir::isPure.
    fn monopour_shim_is_pure(op: MlirOperation) -> bool;
    // mlir::isMemoryEffectFree.
    fn monopour_shim_is_memory_effect_free(op: MlirOperation) -> bool;
    // HasRecursiveMemoryEffects.
    fn monopour_shim_has_recursive_effects(op: MlirOperation) -> bool;
    // RegionBranchOpInterface.
    fn monopour_shim_is_region_branch(op: MlirOperation) -> bool;
    // RegionBranchOpInterface::isRepetitiveRegion; false without the interface.
    fn monopour_shim_is_repetitive_region(op: MlirOperation, index: c_uint) -> bool;
    // LoopLikeOpInterface.
    fn monopour_shim_is_loop_like(op: MlirOperation) -> bool;
    // AutomaticAllocationScope.
    fn monopour_shim_is_allocation_scope(op: MlirOperation) -> bool;
    // HasParallelRegion.
    fn monopour_shim_has_parallel_region(op: MlirOperation) -> bool;
    // Bits of an integer, index, float, or a complex number or fixed vector of such, by the data layout around the op; 0 for other types.
    fn monopour_shim_type_bits(op: MlirOperation, ty: MlirType) -> u64;
    // SubsetInsertionOpInterface.
    fn monopour_shim_is_subset_insertion(op: MlirOperation) -> bool;
    // OpTrait::hasElementwiseMappableTraits.
    fn monopour_shim_is_elementwise(op: MlirOperation) -> bool;
    // SubsetExtractionOpInterface.
    fn monopour_shim_is_subset_extraction(op: MlirOperation) -> bool;
}

extern "C" fn push_index(index: usize, user: *mut c_void) {
    // SAFETY: `user` is the vector that the query passes down, alive during the call.
    let out = unsafe { &mut *user.cast::<Vec<usize>>() };
    out.push(index);
}

extern "C" fn push_effect(kind: c_int, value: MlirValue, user: *mut c_void) {
    // SAFETY: `user` is the vector that the query passes down, alive during the call.
    let out = unsafe { &mut *user.cast::<Vec<Effect>>() };
    let kind = match kind {
        0 => EffectKind::Read,
        1 => EffectKind::Write,
        2 => EffectKind::Allocate,
        _ => EffectKind::Free,
    };
    out.push(Effect { kind, value: (!value.ptr.is_null()).then_some(Value::from_raw(value)) });
}

/// Declares a yes-or-no query of the shim.
macro_rules! query {
    ($(#[$doc:meta])* $name:ident, $shim:ident) => {
        $(#[$doc])*
        pub fn $name(op: Op) -> bool {
            // SAFETY: defined in the shim; the op is live (crate invariant).
            unsafe { $shim(op.raw()) }
        }
    };
}

/// Positions of the `outs` operands of a destination-style op; empty for other ops.
pub fn dps_inits(op: Op) -> Vec<usize> {
    dps_inits_if_any(op).unwrap_or_default()
}

/// Positions of the `outs` operands; `None` for an op that is not in destination style.
pub fn dps_inits_if_any(op: Op) -> Option<Vec<usize>> {
    let mut out = Vec::new();
    let user: *mut Vec<usize> = &raw mut out;
    // SAFETY: defined in the shim; the vector lives during the call.
    let known = unsafe { monopour_shim_dps_inits(op.raw(), push_index, user.cast()) };
    known.then_some(out)
}

/// The op's own memory effects, those of its regions not included; `None` without `MemoryEffectOpInterface`.
pub fn memory_effects<'c>(op: Op<'c>) -> Option<Vec<Effect<'c>>> {
    let mut out = Vec::new();
    let user: *mut Vec<Effect> = &raw mut out;
    // SAFETY: defined in the shim; the vector lives during the call.
    let known = unsafe { monopour_shim_memory_effects(op.raw(), push_effect, user.cast()) };
    known.then_some(out)
}

/// The indexing maps of a structured linalg op, named or generic, one per operand; `None` for any other op.
pub fn indexing_maps<'c>(op: Op<'c>) -> Option<Vec<AffineMap<'c>>> {
    let raw = c!(mlirLinalgGetIndexingMapsAttribute(op.raw()));
    if raw.ptr.is_null() {
        return None;
    }
    Attr::from_raw(raw).as_array()?.iter().map(|map| map.as_affine_map()).collect()
}

query! {
    /// Whether the op is a structured linalg op, named or generic, without reductions.
    has_parallel_loops_only, monopour_shim_has_parallel_loops_only
}
query! {
    /// Whether the op, its regions included, has no memory effect and may be executed speculatively.
    is_pure, monopour_shim_is_pure
}
query! {
    /// Whether the op, its regions included, has no memory effect.
    is_memory_effect_free, monopour_shim_is_memory_effect_free
}
query! {
    /// Whether the op's effects are (also) those of the ops in its regions.
    has_recursive_effects, monopour_shim_has_recursive_effects
}
query! {
    /// Whether the op implements `RegionBranchOpInterface`.
    is_region_branch, monopour_shim_is_region_branch
}
query! {
    /// Whether the op is a loop.
    is_loop_like, monopour_shim_is_loop_like
}
query! {
    /// Whether stack allocations in the op are freed when it ends.
    is_allocation_scope, monopour_shim_is_allocation_scope
}
query! {
    /// Whether the op's region may run concurrently with itself.
    has_parallel_region, monopour_shim_has_parallel_region
}
query! {
    /// Whether the op inserts a subset into a tensor (`tensor.insert_slice`, ...).
    is_subset_insertion, monopour_shim_is_subset_insertion
}
query! {
    /// Whether the op is elementwise mappable: scalars, vectors and tensors alike, position by position.
    is_elementwise, monopour_shim_is_elementwise
}
query! {
    /// Whether the op extracts a subset of a tensor (`tensor.extract_slice`, ...).
    is_subset_extraction, monopour_shim_is_subset_extraction
}

/// Bits of a scalar or vector type by the op's data layout; `None` for other types.
pub fn type_bits(op: Op, ty: Type) -> Option<u64> {
    // SAFETY: defined in the shim; the handles are live (crate invariant).
    let bits = unsafe { monopour_shim_type_bits(op.raw(), ty.raw()) };
    (bits > 0).then_some(bits)
}

/// Whether control may flow from the op's region back into it. False without `RegionBranchOpInterface`.
pub fn is_repetitive_region(op: Op, region: usize) -> bool {
    // SAFETY: defined in the shim; the op is live (crate invariant).
    region < op.regions().len() && unsafe { monopour_shim_is_repetitive_region(op.raw(), region as c_uint) }
}
