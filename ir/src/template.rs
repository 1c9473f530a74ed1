//! Templates of ops: names and attributes are looked up once per template, not once per op.
//!
//! ```text
//! let less = OpTemplate::new(cx, OpSpec::new("llvm.icmp", loc).attr("predicate", two))?;
//! rw.create_like(&less, op.location(), OpParts { operands: &[a, b], results: &[i1], ..OpParts::default() });
//! ```
//!
//! An op with attributes from [`OpSpec`] costs a look-up of each name; its properties are set one by one. Here they are copied as a whole.
//! Limits: ops without regions.

use crate::{
    Attr, Block, Builder, Change, Context, Diagnostics, InsertionPoint, Location, Op, OpSpec, Rewriter, Type, Value,
};
use std::ffi::{c_int, c_void};

/// The name, properties and attributes of new ops: a detached op, owned by the template.
#[derive(Debug)]
pub struct OpTemplate<'c> {
    op: Op<'c>,
    name: usize,
}

/// The parts that differ between ops of one [`OpTemplate`].
#[derive(Clone, Copy, Default, Debug)]
pub struct OpParts<'c, 'a> {
    /// Operands.
    pub operands: &'a [Value<'c>],
    /// Result types.
    pub results: &'a [Type<'c>],
    /// Successors.
    pub successors: &'a [Block<'c>],
}

impl Drop for OpTemplate<'_> {
    fn drop(&mut self) {
        c!(mlirOperationDestroy(self.op.raw()));
    }
}

impl<'c> OpTemplate<'c> {
    /// A template with the spec's name and attributes. Its operands, types and successors are ignored.
    ///
    /// # Errors
    /// As [`OpSpec::build`].
    pub fn new(cx: Context<'c>, spec: OpSpec<'c, '_>) -> Result<Self, Diagnostics> {
        let op = spec.build(cx)?;
        Ok(Self { op, name: op.name_address() })
    }
    /// Adds a property that is no attribute, as [`Rewriter::set_property`] does.
    ///
    /// # Errors
    /// MLIR's diagnostics for a value that does not fit.
    pub fn with_property(self, name: &str, value: Attr<'c>) -> Result<Self, Diagnostics> {
        Rewriter::new(self.op.context()).set_property(self.op, name, value)?;
        Ok(self)
    }
    /// The detached op to copy.
    pub(crate) fn op(&self) -> Op<'c> {
        self.op
    }
}

impl<'c> Builder<'c> {
    /// Creates and inserts an op like a template.
    pub fn create_like(&mut self, template: &OpTemplate<'c>, location: Location<'c>, parts: OpParts<'c, '_>) -> Op<'c> {
        let (place, anchor) = match self.point() {
            InsertionPoint::Before(at) => (BEFORE, at.raw().ptr),
            InsertionPoint::After(at) => (AFTER, at.raw().ptr),
            InsertionPoint::Start(block) => (START, block.raw().ptr),
            InsertionPoint::End(block) => (END, block.raw().ptr),
        };
        // SAFETY: defined in the shim; all handles are live (crate invariant), and the handles of this crate are laid out like theirs.
        let raw = unsafe {
            monopour_shim_create_like(
                template.op.raw(),
                location.raw(),
                parts.operands.len() as isize,
                parts.operands.as_ptr().cast(),
                parts.results.len() as isize,
                parts.results.as_ptr().cast(),
                parts.successors.len() as isize,
                parts.successors.as_ptr().cast(),
                place,
                anchor,
            )
        };
        let op = Op::from_raw(raw);
        if place == AFTER || place == START {
            self.set_point(InsertionPoint::After(op));
        }
        op
    }
}

impl<'c> Rewriter<'c> {
    /// Creates an op like a template at the insertion point.
    ///
    /// # Panics
    /// Without an insertion point.
    pub fn create_like(&mut self, template: &OpTemplate<'c>, location: Location<'c>, parts: OpParts<'c, '_>) -> Op<'c> {
        let op = self.builder_mut().create_like(template, location, parts);
        self.note_like(op, template);
        op
    }
    /// Notes an op that was created like a template.
    pub(crate) fn note_like(&mut self, op: Op<'c>, template: &OpTemplate<'c>) {
        if let Some(watch) = self.watch_mut() {
            if watch.casts.name_address() == template.name {
                watch.casts.note_foreign(op);
            }
            watch.aftermath.note_made(template.name);
        }
        self.note([Change::Created(op)]);
    }
}

const BEFORE: c_int = 1;
const AFTER: c_int = 2;
const START: c_int = 3;
const END: c_int = 4;

unsafe extern "C" {
    // Operation::create with the name, properties and attributes of another op, inserted at a place relative to an op or block.
    fn monopour_shim_create_like(
        like: mlir_sys::MlirOperation,
        location: mlir_sys::MlirLocation,
        num_operands: isize,
        operands: *const mlir_sys::MlirValue,
        num_results: isize,
        results: *const mlir_sys::MlirType,
        num_successors: isize,
        successors: *const mlir_sys::MlirBlock,
        place: c_int,
        anchor: *mut c_void,
    ) -> mlir_sys::MlirOperation;
}
