//! Upstream's `BufferizableOpInterface`, for ops whose model exists in C++ only.
//!
//! Queries run without an analysis state: the answers hold whatever is decided about other ops.
//! [`bufferize`] replaces an op; its tensor operands are read through `bufferization.to_buffer`, or behind `bufferization.to_tensor`.

use crate::{Change, Diagnostics, Op, Type, Value};
use mlir_sys::{MlirOperation, MlirType, MlirValue};
use std::ffi::{c_int, c_uint, c_void};

/// The options of One-Shot Bufferize that interfaces ask for.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct InterfaceOptions {
    /// `allow-unknown-ops`.
    pub allow_unknown_ops: bool,
    /// `bufferize-function-boundaries`.
    pub function_boundaries: bool,
    /// `unknown-type-conversion` is `identity-layout-map`.
    pub identity_layouts: bool,
    /// `must-infer-memory-space`.
    pub must_infer_memory_space: bool,
    /// `use-encoding-for-memory-space`.
    pub encoding_is_memory_space: bool,
    /// `buffer-alignment`, in bytes.
    pub alignment: c_uint,
}

/// How an op uses one tensor operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterfaceUse {
    /// The contents may be loaded.
    pub reads: bool,
    /// The buffer may be stored to.
    pub writes: bool,
    /// It must bufferize in place.
    pub must_in_place: bool,
    /// Bufferizes to elementwise access: each position is loaded before it is stored.
    pub elementwise: bool,
}

/// A value that may alias an operand's buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterfaceAlias<'c> {
    /// The value.
    pub value: Value<'c>,
    /// Equivalent: the same buffer, offset, sizes and strides.
    pub equivalent: bool,
    /// A definite alias, not a may-alias.
    pub definite: bool,
    /// The type changes though the op is not a cast.
    pub retypes: bool,
}

/// Properties of a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterfaceResult {
    /// May be stored to.
    pub writable: bool,
    /// The op defines the contents.
    pub defines: bool,
    /// The op allocates the buffer.
    pub allocates: bool,
}

/// Properties of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterfaceRegion {
    /// May run several times.
    pub repetitive: bool,
    /// Iterations may run in parallel.
    pub parallel: bool,
    /// Its tensor arguments may be stored to.
    pub writable_arguments: bool,
}

type Options = InterfaceOptions;
type EachAlias = extern "C" fn(MlirValue, bool, bool, bool, *mut c_void);
type EachChange = extern "C" fn(c_int, MlirOperation, *mut c_void);

unsafe extern "C" {
    // TensorLikeType::getBufferType; null for other types and on failure.
    fn monopour_shim_buffer_like_type(ty: MlirType, options: *const Options) -> MlirType;
    // isa<BufferizableOpInterface>. The functions below take only ops of which this is true.
    fn monopour_shim_is_bufferizable(op: MlirOperation) -> bool;
    // Bits: 1 reads, 2 writes, 4 must be in place, 8 elementwise.
    fn monopour_shim_use_of(op: MlirOperation, operand: c_uint, options: *const Options) -> c_uint;
    // Calls back with each value that may alias the operand: equivalent, definite, retyped.
    fn monopour_shim_aliasing_values(
        op: MlirOperation,
        operand: c_uint,
        options: *const Options,
        each: EachAlias,
        user: *mut c_void,
    );
    // Bits: 1 writable, 2 a definition, 4 allocates.
    fn monopour_shim_result_of(op: MlirOperation, result: c_uint, options: *const Options) -> c_uint;
    // Bits: 1 repetitive, 2 parallel, 4 arguments are writable.
    fn monopour_shim_region_of(op: MlirOperation, region: c_uint, options: *const Options) -> c_uint;
    // The buffer type of a value; null on failure.
    fn monopour_shim_buffer_type_of(value: MlirValue, options: *const Options) -> MlirType;
    // BufferizableOpInterface::bufferize; calls back with each change: 0 created, 1 modified, 2 moved, 3 erased.
    fn monopour_shim_bufferize(op: MlirOperation, options: *const Options, each: EachChange, user: *mut c_void)
    -> bool;
}

extern "C" fn push_alias(value: MlirValue, equivalent: bool, definite: bool, retypes: bool, user: *mut c_void) {
    // SAFETY: `user` is the vector that the query passes down, alive during the call.
    let out = unsafe { &mut *user.cast::<Vec<InterfaceAlias>>() };
    out.push(InterfaceAlias { value: Value::from_raw(value), equivalent, definite, retypes });
}

extern "C" fn push_change(kind: c_int, op: MlirOperation, user: *mut c_void) {
    // SAFETY: `user` is the vector that the call passes down, alive during the call.
    let out = unsafe { &mut *user.cast::<Vec<Change>>() };
    let op = Op::from_raw(op);
    out.push(match kind {
        0 => Change::Created(op),
        1 => Change::Modified(op),
        2 => Change::Moved(op),
        _ => Change::Erased(op),
    });
}

/// The buffer type of a tensor-like type, by its own interface.
pub fn buffer_like_type<'c>(ty: Type<'c>, options: &InterfaceOptions) -> Option<Type<'c>> {
    // SAFETY: defined in the shim; the type is live (crate invariant).
    let raw = unsafe { monopour_shim_buffer_like_type(ty.raw(), options) };
    (!raw.ptr.is_null()).then(|| Type::from_raw(raw))
}

/// Whether the op implements `BufferizableOpInterface`.
pub fn is_bufferizable(op: Op) -> bool {
    // SAFETY: defined in the shim; the op is live (crate invariant).
    unsafe { monopour_shim_is_bufferizable(op.raw()) }
}

fn check(op: Op, index: usize, count: usize) -> c_uint {
    assert!(is_bufferizable(op), "{} implements BufferizableOpInterface", op.name());
    assert!(index < count, "{} has a position {index}", op.name());
    c_uint::try_from(index).expect("positions fit into 32 bits")
}

/// How the op uses an operand. Panics unless [`is_bufferizable`].
pub fn use_of(op: Op, operand: usize, options: &InterfaceOptions) -> InterfaceUse {
    let operand = check(op, operand, op.num_operands());
    // SAFETY: defined in the shim; the op has the interface and the operand.
    let bits = unsafe { monopour_shim_use_of(op.raw(), operand, options) };
    InterfaceUse {
        reads: bits & 1 != 0,
        writes: bits & 2 != 0,
        must_in_place: bits & 4 != 0,
        elementwise: bits & 8 != 0,
    }
}

/// The values that may alias an operand's buffer. Panics unless [`is_bufferizable`].
pub fn aliasing_values<'c>(op: Op<'c>, operand: usize, options: &InterfaceOptions) -> Vec<InterfaceAlias<'c>> {
    let operand = check(op, operand, op.num_operands());
    let mut out = Vec::new();
    let user: *mut Vec<InterfaceAlias> = &raw mut out;
    // SAFETY: defined in the shim; the op has the interface and the operand, and the vector lives during the call.
    unsafe { monopour_shim_aliasing_values(op.raw(), operand, options, push_alias, user.cast()) };
    out
}

/// Properties of a result. Panics unless [`is_bufferizable`].
pub fn result_of(op: Op, result: usize, options: &InterfaceOptions) -> InterfaceResult {
    let result = check(op, result, op.num_results());
    // SAFETY: defined in the shim; the op has the interface and the result.
    let bits = unsafe { monopour_shim_result_of(op.raw(), result, options) };
    InterfaceResult { writable: bits & 1 != 0, defines: bits & 2 != 0, allocates: bits & 4 != 0 }
}

/// Properties of a region. Panics unless [`is_bufferizable`].
pub fn region_of(op: Op, region: usize, options: &InterfaceOptions) -> InterfaceRegion {
    let region = check(op, region, op.regions().len());
    // SAFETY: defined in the shim; the op has the interface and the region.
    let bits = unsafe { monopour_shim_region_of(op.raw(), region, options) };
    InterfaceRegion { repetitive: bits & 1 != 0, parallel: bits & 2 != 0, writable_arguments: bits & 4 != 0 }
}

/// The buffer type of a value by upstream's interface.
///
/// # Errors
/// Upstream's diagnostics.
pub fn buffer_type_of<'c>(value: Value<'c>, options: &InterfaceOptions) -> Result<Type<'c>, Diagnostics> {
    let context = value.ty().context();
    // SAFETY: defined in the shim; the value is live (crate invariant).
    let (raw, diagnostics) = context.with_diagnostics(|| unsafe { monopour_shim_buffer_type_of(value.raw(), options) });
    if raw.ptr.is_null() { Err(diagnostics) } else { Ok(Type::from_raw(raw)) }
}

/// Bufferizes the op by its interface, and returns the changes in order.
///
/// # Errors
/// Upstream's diagnostics. The IR may have changed then. Panics unless [`is_bufferizable`].
pub fn bufferize<'c>(op: Op<'c>, options: &InterfaceOptions) -> Result<Vec<Change<'c>>, Diagnostics> {
    assert!(is_bufferizable(op), "{} implements BufferizableOpInterface", op.name());
    let mut out = Vec::new();
    let user: *mut Vec<Change> = &raw mut out;
    // SAFETY: defined in the shim; the op has the interface, and the vector lives during the call.
    let (done, diagnostics) = op
        .context()
        .with_diagnostics(|| unsafe { monopour_shim_bufferize(op.raw(), options, push_change, user.cast()) });
    if done { Ok(out) } else { Err(diagnostics) }
}
