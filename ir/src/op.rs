//! Operations: reading, walking, printing.

use crate::erased::{self, Pending};
use crate::{Attr, Block, Context, Location, Op, Region, Type, Value, string};
use mlir_sys::{MlirOperation, MlirWalkResult};
use smallvec::SmallVec;
use std::ffi::c_void;
use std::fmt;

/// How a walk continues after an op.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub(crate) enum Descent {
    /// Skips its regions.
    Over,
    /// Walks its regions.
    Into,
    /// Walks its regions, and those of all later ops of its name without a call of the visitor.
    Unasked,
    /// As [`Self::Unasked`]; the later ops are listed ([`NameVisitor::list`]).
    Listed,
}

/// The visitor of a walk that passes the name of each op.
pub(crate) trait NameVisitor<'c> {
    /// How to continue after an op; `name` is [`Op::name_address`].
    fn visit(&mut self, op: Op<'c>, name: usize) -> Descent;
    /// Ops, in pre-order, of names for which the answer was [`Descent::Listed`], before the next visited op.
    fn list(&mut self, ops: &[Op<'c>]);
}

/// A visitor that lists nothing.
struct Each<F>(F);

impl<'c, F: FnMut(Op<'c>, usize) -> Descent> NameVisitor<'c> for Each<F> {
    fn visit(&mut self, op: Op<'c>, name: usize) -> Descent {
        (self.0)(op, name)
    }
    fn list(&mut self, ops: &[Op<'c>]) {
        debug_assert!(ops.is_empty(), "no name is listed");
    }
}

/// Whether a walk visits an op before or after its regions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WalkOrder {
    /// The op before its regions.
    Pre,
    /// The op after its regions.
    Post,
}

/// Printing flags.
#[derive(Clone, Copy, Default, Debug)]
pub struct PrintOptions {
    /// Print `loc(...)` after each op.
    pub locations: bool,
    /// Elide `dense` constants and resources longer than this many elements or characters.
    pub elide_larger_than: Option<usize>,
    /// Print without verifying first, for IR in the middle of a rewrite.
    pub assume_verified: bool,
}

impl<'c> Op<'c> {
    /// The context.
    pub fn context(self) -> Context<'c> {
        Context::from_raw(c!(mlirOperationGetContext(self.raw())))
    }
    /// Full name, `linalg.matmul`.
    pub fn name(self) -> &'c str {
        // Identifiers are uniqued in the context.
        string::from_ref(c!(mlirIdentifierStr(c!(mlirOperationGetName(self.raw())))))
    }
    /// The address of the name, which MLIR uniques per context: names are compared by address.
    pub(crate) fn name_address(self) -> usize {
        c!(mlirOperationGetName(self.raw())).ptr as usize
    }
    /// As [`Self::name_address`]; `None` for an op with regions.
    pub(crate) fn name_if_flat(self) -> Option<usize> {
        // SAFETY: defined in the shim; the op is live (crate invariant).
        let name = unsafe { monopour_shim_name_if_flat(self.raw()) };
        (!name.is_null()).then_some(name as usize)
    }
    /// Whether the op has this name.
    pub fn is(self, name: &str) -> bool {
        // The most frequent query: bytes are compared, without a UTF-8 check.
        string::bytes_of(c!(mlirIdentifierStr(c!(mlirOperationGetName(self.raw()))))) == name.as_bytes()
    }
    /// Dialect prefix, `linalg`.
    pub fn dialect(self) -> &'c str {
        self.name().split_once('.').map_or("builtin", |(d, _)| d)
    }
    /// Source location.
    pub fn location(self) -> Location<'c> {
        Location::from_raw(c!(mlirOperationGetLocation(self.raw())))
    }
    /// Number of operands.
    pub fn num_operands(self) -> usize {
        c!(mlirOperationGetNumOperands(self.raw())) as usize
    }
    /// Operand by position.
    pub fn operand(self, index: usize) -> Value<'c> {
        // SAFETY: defined in the shim; the op is live (crate invariant).
        let raw = unsafe { monopour_shim_operand(self.raw(), index) };
        assert!(!raw.ptr.is_null(), "operand {index} of {} exists", self.name());
        Value::from_raw(raw)
    }
    /// All operands.
    pub fn operands(self) -> Vec<Value<'c>> {
        let value = |i| Value::from_raw(c!(mlirOperationGetOperand(self.raw(), i as isize)));
        (0..self.num_operands()).map(value).collect()
    }
    /// All operands, read by one call; without the heap for up to eight.
    pub fn operand_values(self) -> SmallVec<[Value<'c>; 8]> {
        // SAFETY: defined in the shim; the op is live (crate invariant), and the list has that much room.
        Value::list(|room, out| unsafe { monopour_shim_operands(self.raw(), room, out) })
    }
    /// Iterates over all operands without allocating a list.
    pub(crate) fn operand_list(self) -> impl Iterator<Item = Value<'c>> {
        (0..self.num_operands()).map(move |i| Value::from_raw(c!(mlirOperationGetOperand(self.raw(), i as isize))))
    }
    /// Number of results.
    pub fn num_results(self) -> usize {
        c!(mlirOperationGetNumResults(self.raw())) as usize
    }
    /// Iterates over all results without allocating a list.
    pub(crate) fn result_list(self) -> impl Iterator<Item = Value<'c>> {
        (0..self.num_results()).map(move |i| Value::from_raw(c!(mlirOperationGetResult(self.raw(), i as isize))))
    }
    /// Result by position.
    pub fn result(self, index: usize) -> Value<'c> {
        self.get_result(index).unwrap_or_else(|| panic!("result {index} of {} exists", self.name()))
    }
    /// Result by position, if there is one.
    pub fn get_result(self, index: usize) -> Option<Value<'c>> {
        // SAFETY: defined in the shim; the op is live (crate invariant).
        let raw = unsafe { monopour_shim_result(self.raw(), index) };
        (!raw.ptr.is_null()).then_some(Value::from_raw(raw))
    }
    /// All results.
    pub fn results(self) -> Vec<Value<'c>> {
        let value = |i| Value::from_raw(c!(mlirOperationGetResult(self.raw(), i as isize)));
        (0..self.num_results()).map(value).collect()
    }
    /// Regions in order.
    pub fn regions(self) -> Vec<Region<'c>> {
        let n = c!(mlirOperationGetNumRegions(self.raw()));
        (0..n).map(|i| Region::from_raw(c!(mlirOperationGetRegion(self.raw(), i)))).collect()
    }
    /// Region by position.
    pub fn region(self, index: usize) -> Region<'c> {
        // SAFETY: defined in the shim; the op is live (crate invariant).
        let raw = unsafe { monopour_shim_region(self.raw(), index) };
        assert!(!raw.ptr.is_null(), "region {index} of {} exists", self.name());
        Region::from_raw(raw)
    }
    /// Number of regions.
    pub fn num_regions(self) -> usize {
        c!(mlirOperationGetNumRegions(self.raw())) as usize
    }
    /// Entry block of the first region.
    pub fn body(self) -> Option<Block<'c>> {
        if self.num_regions() == 0 { None } else { self.region(0).entry() }
    }
    /// Successor blocks of a terminator.
    pub fn successors(self) -> Vec<Block<'c>> {
        let n = c!(mlirOperationGetNumSuccessors(self.raw()));
        (0..n).map(|i| Block::from_raw(c!(mlirOperationGetSuccessor(self.raw(), i)))).collect()
    }
    /// Successor block by position.
    pub fn successor(self, index: usize) -> Block<'c> {
        let count = c!(mlirOperationGetNumSuccessors(self.raw())) as usize;
        assert!(index < count, "successor {index} of {} exists", self.name());
        Block::from_raw(c!(mlirOperationGetSuccessor(self.raw(), index as isize)))
    }
    /// The parent block.
    pub fn block(self) -> Option<Block<'c>> {
        let raw = c!(mlirOperationGetBlock(self.raw()));
        (!raw.ptr.is_null()).then_some(Block::from_raw(raw))
    }
    /// The parent op.
    pub fn parent(self) -> Option<Op<'c>> {
        Self::non_null(c!(mlirOperationGetParentOperation(self.raw())))
    }
    /// Nearest enclosing op of this name (not the op itself).
    pub fn ancestor(self, name: &str) -> Option<Op<'c>> {
        let mut op = self.parent();
        while let Some(o) = op {
            if o.is(name) {
                return Some(o);
            }
            op = o.parent();
        }
        None
    }
    /// Whether `self` is `other` or is nested in it.
    pub fn is_inside(self, other: Op<'c>) -> bool {
        let mut op = Some(self);
        while let Some(o) = op {
            if o == other {
                return true;
            }
            op = o.parent();
        }
        false
    }
    /// The op of the block of `other` that is or contains this one; `None` if the block does not contain it.
    pub fn beside(self, other: Op<'c>) -> Option<Op<'c>> {
        let mut op = self;
        while op.block() != other.block() {
            op = op.parent()?;
        }
        Some(op)
    }
    /// Next op of the block.
    pub fn next(self) -> Option<Op<'c>> {
        Self::non_null(c!(mlirOperationGetNextInBlock(self.raw())))
    }
    /// Whether this op comes before `other`; both must be in one block.
    pub fn is_before_in_block(self, other: Op) -> bool {
        c!(mlirOperationIsBeforeInBlock(self.raw(), other.raw()))
    }
    /// Attribute by name, inherent ones included.
    pub fn attr(self, name: &str) -> Option<Attr<'c>> {
        Attr::non_null(c!(mlirOperationGetAttributeByName(self.raw(), string::to_ref(name))))
    }
    /// All attributes, inherent ones included, sorted by name.
    pub fn attrs(self) -> Vec<(&'c str, Attr<'c>)> {
        self.attr_dictionary().entries().unwrap_or_default()
    }
    /// All attributes, inherent ones included, as a uniqued dictionary.
    pub(crate) fn attr_dictionary(self) -> Attr<'c> {
        // SAFETY: defined in the shim; the op is live (crate invariant).
        Attr::from_raw(unsafe { monopour_shim_attributes(self.raw()) })
    }
    /// Discardable attributes, sorted by name; cheap if the op has none.
    pub fn discardable_attrs(self) -> Vec<(&'c str, Attr<'c>)> {
        let entry = |i| {
            let entry = c!(mlirOperationGetDiscardableAttribute(self.raw(), i));
            // Identifiers are uniqued in the context, as in [`Op::name`].
            (string::from_ref(c!(mlirIdentifierStr(entry.name))), Attr::from_raw(entry.attribute))
        };
        // SAFETY: defined in the shim; the op is live (crate invariant).
        if !unsafe { monopour_shim_has_attributes(self.raw()) } {
            return vec![];
        }
        (0..c!(mlirOperationGetNumDiscardableAttributes(self.raw()))).map(entry).collect()
    }
    /// `sym_name`.
    pub fn symbol_name(self) -> Option<String> {
        self.attr("sym_name").and_then(|a| a.as_string().map(str::to_owned))
    }
    /// `callee`, where it is a flat symbol reference: the function that a direct call names.
    pub fn callee(self) -> Option<&'c str> {
        self.attr("callee")?.as_symbol()
    }
    /// Whether a symbol is public (no `sym_visibility`, or "public").
    pub fn is_public(self) -> bool {
        self.attr("sym_visibility").is_none_or(|v| v.as_string() == Some("public"))
    }
    /// Type of a function-like op.
    pub fn function_type(self) -> Option<(Vec<Type<'c>>, Vec<Type<'c>>)> {
        self.attr("function_type")?.as_type()?.as_function()
    }
    /// Whether the op is a terminator of its block.
    pub fn is_terminator(self) -> bool {
        self.block().and_then(Block::terminator) == Some(self)
    }
    /// Runs MLIR's verifier; diagnostics go to the attached handler.
    pub fn verify(self) -> bool {
        c!(mlirOperationVerify(self.raw()))
    }
    /// Verifies and returns the diagnostics.
    ///
    /// # Errors
    /// The verifier's diagnostics (I0001).
    pub fn verify_with_diagnostics(self) -> Result<(), crate::Diagnostics> {
        let (ok, diagnostics) = self.context().with_diagnostics(|| self.verify());
        if ok { Ok(()) } else { Err(diagnostics) }
    }

    /// Visits this op and all ops nested in it.
    pub fn walk(self, order: WalkOrder, mut visit: impl FnMut(Op<'c>)) {
        let mut visit: &mut dyn FnMut(Op<'c>) = &mut visit;
        let order = match order {
            WalkOrder::Pre => mlir_sys::MlirWalkOrder_MlirWalkPreOrder,
            WalkOrder::Post => mlir_sys::MlirWalkOrder_MlirWalkPostOrder,
        };
        let user: *mut c_void = (&raw mut visit).cast();
        c!(mlirOperationWalk(self.raw(), Some(on_walk), user, order));
    }
    /// Visits this op and its nested ops in pre-order; regions only of ops for which the visitor returns true.
    pub fn walk_selected(self, mut visit: impl FnMut(Op<'c>) -> bool) {
        self.walk_names(|op, _| if visit(op) { Descent::Into } else { Descent::Over });
    }
    /// Visits this op and its nested ops in pre-order, with [`Self::name_address`] of each; the visitor says how to continue.
    pub(crate) fn walk_names(self, visit: impl FnMut(Op<'c>, usize) -> Descent) {
        self.walk_listing(&mut Each(visit));
    }
    /// As [`Self::walk_names`]; ops of names that skip the visitor are listed in batches.
    pub(crate) fn walk_listing<V: NameVisitor<'c>>(self, visitor: &mut V) {
        let user: *mut c_void = (&raw mut *visitor).cast();
        // SAFETY: defined in the shim; the op is live (crate invariant), and the visitor lives during the call.
        unsafe { monopour_shim_walk_names(self.raw(), on_name::<V>, on_listed::<V>, user) };
    }
    /// Verifies this op without its regions.
    ///
    /// # Errors
    /// The verifier's diagnostics (I0001).
    pub fn verify_shallow(self) -> Result<(), crate::Diagnostics> {
        // SAFETY: defined in the shim; the op is live (crate invariant).
        let (ok, diagnostics) = self.context().with_diagnostics(|| unsafe { monopour_shim_verify_shallow(self.raw()) });
        if ok { Ok(()) } else { Err(diagnostics) }
    }
    /// All nested ops (this one included) of a name, in pre-order.
    pub fn find_all(self, name: &str) -> Vec<Op<'c>> {
        let mut out = Vec::new();
        self.walk(WalkOrder::Pre, |op| {
            if op.is(name) {
                out.push(op);
            }
        });
        out
    }
    /// All nested ops (this one included), in the given order.
    pub fn nested(self, order: WalkOrder) -> Vec<Op<'c>> {
        let mut out = Vec::new();
        self.walk(order, |op| out.push(op));
        out
    }
    /// Records that this op is about to be erased, with its nested ops; release builds record nothing.
    #[inline]
    pub(crate) fn note_erasing(self) {
        if cfg!(debug_assertions) {
            self.walk(WalkOrder::Pre, |op| erased::erasing(op.address(), op.name()));
        }
    }
    /// The record of a call that may erase this op, which has no regions.
    #[inline]
    pub(crate) fn pending_erasure(self) -> Pending {
        Pending::new(self.address(), || self.name())
    }
    /// Prints with options.
    pub fn print(self, options: &PrintOptions) -> String {
        let flags = c!(mlirOpPrintingFlagsCreate());
        if options.locations {
            c!(mlirOpPrintingFlagsEnableDebugInfo(flags, true, false));
        }
        if let Some(limit) = options.elide_larger_than {
            c!(mlirOpPrintingFlagsElideLargeElementsAttrs(flags, limit as isize));
            c!(mlirOpPrintingFlagsElideLargeResourceString(flags, limit as isize));
        }
        if options.assume_verified {
            c!(mlirOpPrintingFlagsAssumeVerified(flags));
        }
        let text = string::collect(|cb, user| c!(mlirOperationPrintWithFlags(self.raw(), flags, cb, user)));
        c!(mlirOpPrintingFlagsDestroy(flags));
        text
    }
    /// MLIR bytecode of the op.
    pub fn to_bytecode(self) -> Vec<u8> {
        string::collect_bytes(|cb, user| c!(mlirOperationWriteBytecode(self.raw(), cb, user)))
    }
}

unsafe extern "C" {
    // By position; null if out of range.
    fn monopour_shim_operand(op: MlirOperation, index: usize) -> mlir_sys::MlirValue;
    fn monopour_shim_result(op: MlirOperation, index: usize) -> mlir_sys::MlirValue;
    fn monopour_shim_region(op: MlirOperation, index: usize) -> mlir_sys::MlirRegion;
    // Writes up to `capacity` operands; returns their number.
    fn monopour_shim_operands(op: MlirOperation, capacity: isize, out: *mut mlir_sys::MlirValue) -> isize;
    // Whether the op has attributes beside its properties: for an op without properties, inherent ones too.
    fn monopour_shim_has_attributes(op: MlirOperation) -> bool;
    // The address of the name; null for an op with regions.
    fn monopour_shim_name_if_flat(op: MlirOperation) -> *const c_void;
    // A walk in pre-order that passes the address of each name; the visitor says how to continue.
    fn monopour_shim_walk_names(
        op: MlirOperation,
        each: extern "C" fn(MlirOperation, *const c_void, *mut c_void) -> Descent,
        list: extern "C" fn(*const MlirOperation, isize, *mut c_void),
        user: *mut c_void,
    );
    // Operation::getAttrDictionary: built anew by each call for an op with properties, so it is called once.
    fn monopour_shim_attributes(op: MlirOperation) -> mlir_sys::MlirAttribute;
    // mlir::verify of the op alone, its region invariants included.
    fn monopour_shim_verify_shallow(op: MlirOperation) -> bool;
}

extern "C" fn on_walk(op: MlirOperation, user: *mut c_void) -> MlirWalkResult {
    // SAFETY: `user` is the `&mut dyn FnMut` that `walk` passes down.
    let visit = unsafe { &mut *user.cast::<&mut dyn FnMut(Op)>() };
    visit(Op::from_raw(op));
    mlir_sys::MlirWalkResult_MlirWalkResultAdvance
}

extern "C" fn on_name<'c, V: NameVisitor<'c>>(op: MlirOperation, name: *const c_void, user: *mut c_void) -> Descent {
    // SAFETY: `user` is the visitor that `walk_listing` passes down.
    let visitor = unsafe { &mut *user.cast::<V>() };
    visitor.visit(Op::from_raw(op), name as usize)
}

extern "C" fn on_listed<'c, V: NameVisitor<'c>>(ops: *const MlirOperation, count: isize, user: *mut c_void) {
    // SAFETY: `user` is the visitor that `walk_listing` passes down.
    let visitor = unsafe { &mut *user.cast::<V>() };
    // SAFETY: an op is laid out like its handle, and the shim lists as many.
    let ops = unsafe { std::slice::from_raw_parts(ops.cast::<Op>(), count as usize) };
    ops.iter().for_each(|op| erased::made(op.address()));
    visitor.list(ops);
}

impl fmt::Display for Op<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.print(&PrintOptions::default()))
    }
}
