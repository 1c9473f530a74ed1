//! Fast paths of the conversion: one shim call each for the common case; the caller handles the rest.
//!
//! Each function here does all or nothing. None knows casts of the input or of patterns: callers check
//! [`Casts::is_plain`](super::casts::Casts::is_plain) first.

use super::casts::Casts;
use crate::{Block, Op, Region, Type, Value};
use mlir_sys::{MlirBlock, MlirOperation, MlirRegion, MlirType, MlirValue};
use std::ffi::{c_int, c_void};

/// An operand, and the value behind the driver's casts.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct OperandFacts<'c> {
    pub(super) value: Value<'c>,
    pub(super) ty: Type<'c>,
    source: MlirValue,
    source_ty: MlirType,
}

impl<'c> OperandFacts<'c> {
    /// The source of the cast and its type; `None` for an N:1 cast.
    pub(super) fn source(&self) -> Option<(Value<'c>, Type<'c>)> {
        (!self.source.ptr.is_null()).then(|| (Value::from_raw(self.source), Type::from_raw(self.source_ty)))
    }
}

/// Reads all operands of an op into a list.
pub(super) fn read_operands<'c>(op: Op<'c>, casts: &Casts<'c>, out: &mut Vec<OperandFacts<'c>>) {
    out.clear();
    loop {
        // SAFETY: defined in the shim; the op is live (crate invariant), and the list has that much room.
        let count = unsafe {
            monopour_shim_read_operands(op.raw(), casts.name_if_live(), out.capacity() as isize, out.as_mut_ptr())
        };
        if count as usize <= out.capacity() {
            // SAFETY: `count` elements were written.
            unsafe { out.set_len(count as usize) };
            return;
        }
        out.reserve(count as usize);
    }
}

/// The outcome of [`replace`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Replaced {
    /// Nothing was replaced.
    No,
    /// All uses of all results were.
    All,
    /// Nothing was replaced: only a cast to the old type of the one used result is missing.
    NeedsCast,
}

/// Replaces all uses of an op's results by values of the same types, unless the driver's casts are among the users or the values.
pub(super) fn replace(op: Op, values: &[Value], casts: &Casts) -> Replaced {
    // SAFETY: defined in the shim; all handles are live (crate invariant), and those of this crate are laid out like theirs.
    let done = unsafe {
        monopour_shim_replace_plainly(op.raw(), values.len() as isize, values.as_ptr().cast(), casts.name_if_live())
    };
    match done {
        1 => Replaced::All,
        2 => Replaced::NeedsCast,
        _ => Replaced::No,
    }
}

/// The op after a position, and its block.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Surroundings {
    pub(crate) op: MlirOperation,
    pub(crate) block: MlirBlock,
}

impl Surroundings {
    const NONE: Self =
        Self { op: MlirOperation { ptr: std::ptr::null_mut() }, block: MlirBlock { ptr: std::ptr::null_mut() } };
}

/// Most operands of an op that one call erases.
const MAX_OPERANDS: usize = 16;

/// Erases an unused op without blocks that is, or lies in, the running pattern's own; returns its position. Releases the casts
/// that define its operands.
pub(crate) fn erase<'c>(op: Op<'c>, root: Op<'c>, casts: &mut Casts<'c>) -> Option<Surroundings> {
    let mut around = Surroundings::NONE;
    let cast_name = casts.name_if_live();
    let pending = op.pending_erasure();
    let mut erase = |read: &mut [MlirOperation]| {
        let (room, read) = (read.len() as isize, read.as_mut_ptr());
        // SAFETY: defined in the shim; the op is live (crate invariant), the root is only compared, and the list has that much room.
        unsafe { monopour_shim_erase_plainly(op.raw(), root.raw_to_compare(), cast_name, room, read, &raw mut around) }
    };
    if cast_name.is_null() {
        if erase(&mut []) < 0 {
            return None;
        }
        pending.note_gone();
        return Some(around);
    }
    let mut read = [Surroundings::NONE.op; MAX_OPERANDS];
    let count = usize::try_from(erase(&mut read)).ok()?;
    pending.note_gone();
    read[..count].iter().for_each(|raw| casts.release_cast(Op::from_raw(*raw)));
    Some(around)
}

/// Replaces all uses of an op's results by values of the same types and erases the op, if no cast is live, under the conditions of
/// [`erase`]; returns its position.
pub(crate) fn replace_and_erase(op: Op, root: Op, values: &[Value]) -> Option<Surroundings> {
    let mut around = Surroundings::NONE;
    let (count, values) = (values.len() as isize, values.as_ptr().cast());
    let pending = op.pending_erasure();
    // SAFETY: defined in the shim; all handles are live (crate invariant) and laid out like theirs, and the root is only compared.
    let is_done =
        unsafe { monopour_shim_replace_and_erase(op.raw(), root.raw_to_compare(), count, values, &raw mut around) };
    if !is_done {
        return None;
    }
    pending.note_gone();
    Some(around)
}

/// Replaces an op without results by a copy of another op, with the old location and with the old operands after the given ones, if no
/// cast is live, under the conditions of [`erase`]; returns the new op and the old position.
pub(crate) fn turn_into<'c>(
    op: Op<'c>,
    root: Op<'c>,
    like: Op<'c>,
    lead: &[Value<'c>],
    successors: &[Block<'c>],
) -> Option<(Op<'c>, Surroundings)> {
    let mut around = Surroundings::NONE;
    let pending = op.pending_erasure();
    // SAFETY: defined in the shim; all handles are live (crate invariant) and laid out like theirs, and the root is only compared.
    let made = unsafe {
        monopour_shim_turn_into(
            op.raw(),
            root.raw_to_compare(),
            like.raw(),
            lead.len() as isize,
            lead.as_ptr().cast(),
            successors.len() as isize,
            successors.as_ptr().cast(),
            &raw mut around,
        )
    };
    let made = Op::non_null(made)?;
    pending.note_gone();
    Some((made, around))
}

/// Turns a pooled cast into one of a value to a type, right after the value's definition: the op, or the block whose argument it is.
pub(super) fn place_cast<'c>(cast: Op<'c>, source: Value<'c>, ty: Type<'c>) -> (Value<'c>, Surroundings) {
    let mut definition = Surroundings::NONE;
    // SAFETY: defined in the shim; all handles are live (crate invariant), and the cast is detached.
    let raw = unsafe { monopour_shim_place_cast(cast.raw(), source.raw(), ty.raw(), &raw mut definition) };
    assert!(!raw.ptr.is_null(), "what is cast is defined in a block");
    (Value::from_raw(raw), definition)
}

/// The outcome of [`retire_idle`].
#[derive(Clone, Copy, Debug)]
pub(super) enum Idle<'c> {
    /// It is still used, or was detached before.
    No,
    /// Undecided: it is N:1 or 1:N, or casts to the operand's own type.
    Perhaps,
    /// It was detached.
    Retired(Retired<'c>),
}

/// A detached cast.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retired<'c> {
    /// Its operand and result type.
    pub(super) key: (Value<'c>, Type<'c>),
    /// The cast that defines its operand.
    pub(super) before: Option<Op<'c>>,
    /// A pattern has set attributes on it.
    pub(super) is_marked: bool,
}

/// Detaches an unused 1:1 cast.
pub(super) fn retire_idle<'c>(cast: Op<'c>, casts: &Casts<'c>) -> Idle<'c> {
    let mut source = MlirValue { ptr: std::ptr::null() };
    let mut ty = MlirType { ptr: std::ptr::null() };
    let mut before = Surroundings::NONE.op;
    let mut is_marked = false;
    // SAFETY: defined in the shim; no cast is destroyed before the end of the conversion.
    let state = unsafe {
        monopour_shim_retire_idle_cast(
            cast.raw(),
            casts.name_address() as *const c_void,
            casts.nothing().raw(),
            &raw mut source,
            &raw mut ty,
            &raw mut before,
            &raw mut is_marked,
        )
    };
    match state {
        0 => Idle::No,
        1 => {
            let key = (Value::from_raw(source), Type::from_raw(ty));
            Idle::Retired(Retired { key, before: Op::non_null(before), is_marked })
        }
        _ => Idle::Perhaps,
    }
}

/// The outcome of [`retype`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Retyped {
    /// Nothing was changed: a cast uses the value.
    No,
    /// The value has no uses.
    Unused,
    /// All uses were redirected to the cast to the old type.
    Cast,
}

/// Changes the type of a value; its users read `cast`, a pooled cast, instead.
pub(super) fn retype(value: Value, ty: Type, cast: Op, casts: &Casts) -> Retyped {
    let name = casts.name_address() as *const c_void;
    // SAFETY: defined in the shim; all handles are live (crate invariant), and the cast is detached.
    match unsafe { monopour_shim_retype_plainly(value.raw(), ty.raw(), name, cast.raw()) } {
        0 => Retyped::No,
        1 => Retyped::Unused,
        _ => Retyped::Cast,
    }
}

/// Whether every branch of a region names its successor operands, one for each argument.
pub(super) fn branches_are_plain(region: Region) -> bool {
    // SAFETY: defined in the shim; the region is live (crate invariant).
    unsafe { monopour_shim_branches_are_plain(region.raw()) }
}

/// A successor operand whose type differs from the block argument's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mismatch<'c> {
    pub(super) branch: Op<'c>,
    /// Position among the branch's operands.
    pub(super) index: usize,
    pub(super) value: Value<'c>,
    /// Of the argument.
    pub(super) ty: Type<'c>,
}

/// All successor operands in a region whose type differs from the block argument's.
pub(super) fn branch_mismatches<'c>(region: Region<'c>) -> Vec<Mismatch<'c>> {
    extern "C" fn push(branch: MlirOperation, index: isize, value: MlirValue, ty: MlirType, user: *mut c_void) {
        // SAFETY: `user` is the list that is passed down below.
        let out = unsafe { &mut *user.cast::<Vec<Mismatch>>() };
        let (branch, value, ty) = (Op::from_raw(branch), Value::from_raw(value), Type::from_raw(ty));
        out.push(Mismatch { branch, index: index as usize, value, ty });
    }
    let mut out: Vec<Mismatch> = Vec::new();
    // SAFETY: defined in the shim; the region is live (crate invariant), and the list lives during the call.
    unsafe { monopour_shim_branch_mismatches(region.raw(), push, (&raw mut out).cast()) };
    out
}

/// Moves all blocks of regions before a block, and appends them to the list. The parent op, a null handle if there is none.
pub(crate) fn inline_regions<'c>(regions: &[Region<'c>], before: Block<'c>, moved: &mut Vec<Block<'c>>) -> Op<'c> {
    let mut around = Surroundings::NONE.op;
    loop {
        let room = moved.spare_capacity_mut();
        let (room, list) = (room.len(), room.as_mut_ptr().cast());
        let (count, first, room_for) = (regions.len() as isize, regions.as_ptr().cast(), room as isize);
        // SAFETY: defined in the shim; all are live (crate invariant) and laid out like their handles, the block is in a region, and the
        // list has that much room.
        let blocks =
            unsafe { monopour_shim_inline_regions(count, first, before.raw(), room_for, list, &raw mut around) };
        if blocks as usize <= room {
            // SAFETY: `blocks` elements were written.
            unsafe { moved.set_len(moved.len() + blocks as usize) };
            return Op::from_raw(around);
        }
        moved.reserve(blocks as usize);
    }
}

unsafe extern "C" {
    // Writes up to `capacity` operands, each with the value behind 1:1 casts; returns their number.
    // Without a name no cast is looked through.
    fn monopour_shim_read_operands(
        op: MlirOperation,
        cast_name: *const c_void,
        capacity: isize,
        out: *mut OperandFacts,
    ) -> isize;
    // 1: all uses of all results were replaced; 2: none was, for want of a cast to the type of the one result; 0: none was.
    fn monopour_shim_replace_plainly(
        op: MlirOperation,
        count: isize,
        values: *const MlirValue,
        cast_name: *const c_void,
    ) -> c_int;
    // Erases an unused op without blocks that is the root or lies in it, and writes the casts that define its operands, the op
    // after it, and its block. Returns the number of casts; -1 if nothing was erased. The root may be gone.
    fn monopour_shim_erase_plainly(
        op: MlirOperation,
        root: MlirOperation,
        cast_name: *const c_void,
        capacity: isize,
        casts: *mut MlirOperation,
        around: *mut Surroundings,
    ) -> isize;
    // As monopour_shim_erase_plainly without casts, after replacing all uses by values of the same types; whether it was done.
    fn monopour_shim_replace_and_erase(
        op: MlirOperation,
        root: MlirOperation,
        count: isize,
        values: *const MlirValue,
        around: *mut Surroundings,
    ) -> bool;
    // Creates a copy of an op before one without results, with its location and with its operands after the leading ones, and erases
    // it as monopour_shim_erase_plainly without casts; null if nothing was done.
    fn monopour_shim_turn_into(
        op: MlirOperation,
        root: MlirOperation,
        like: MlirOperation,
        num_lead: isize,
        lead: *const MlirValue,
        num_successors: isize,
        successors: *const MlirBlock,
        around: *mut Surroundings,
    ) -> MlirOperation;
    // Gives a detached 1:1 cast another operand, result type and location, and inserts it right after the
    // definition of the operand, which it writes. Returns its result; null if the definition is in no block.
    fn monopour_shim_place_cast(
        cast: MlirOperation,
        source: MlirValue,
        ty: MlirType,
        definition: *mut Surroundings,
    ) -> MlirValue;
    // 1: the 1:1 cast was unused in a block; it was detached, and its operand is now `nothing`. 0: it was not, and stays.
    // 2: it is not 1:1, or casts to its operand's type.
    fn monopour_shim_retire_idle_cast(
        cast: MlirOperation,
        cast_name: *const c_void,
        nothing: MlirValue,
        source: *mut MlirValue,
        ty: *mut MlirType,
        before: *mut MlirOperation,
        is_marked: *mut bool,
    ) -> c_int;
    // 2: the type was changed, and the detached cast replaces the value; 1: it was changed, and the value has no uses;
    // 0: nothing was done, because a cast uses it.
    fn monopour_shim_retype_plainly(
        value: MlirValue,
        ty: MlirType,
        cast_name: *const c_void,
        cast: MlirOperation,
    ) -> c_int;
    // Whether all ops with successors implement BranchOpInterface, produce no argument, and forward one value for each.
    fn monopour_shim_branches_are_plain(region: MlirRegion) -> bool;
    // Calls back for each forwarded operand whose type differs from the block argument's.
    fn monopour_shim_branch_mismatches(
        region: MlirRegion,
        each: extern "C" fn(MlirOperation, isize, MlirValue, MlirType, *mut c_void),
        user: *mut c_void,
    );
    // Splices all blocks of regions before the block, and writes them and the parent op.
    // Returns their number; nothing is moved if the list is too short.
    fn monopour_shim_inline_regions(
        num_regions: isize,
        regions: *const MlirRegion,
        before: MlirBlock,
        capacity: isize,
        moved: *mut MlirBlock,
        around: *mut MlirOperation,
    ) -> isize;
}
