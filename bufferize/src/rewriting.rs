//! The state of the rewrite for op models: predicted types, options, and counts.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use monopour_ir::conversion::ConversionRewriter;
use monopour_ir::{Diagnostic, Diagnostics, Op, Region, Type};

use crate::buffer_type::BufferTypes;
use crate::globals::Globals;
use crate::options::Options;
use crate::remarks::Remarks;

/// The context of the rewrite of one op.
pub struct Rewriting<'c, 'a> {
    /// Predicted types.
    pub types: BufferTypes<'c, 'a>,
    pub(crate) module: Op<'c>,
    pub(crate) options: &'a Options,
    self_copies: HashSet<Op<'c>>,
    unverified: RefCell<Vec<Op<'c>>>,
    pub(crate) globals: RefCell<Globals<'c>>,
    pub(crate) allocs: Cell<u32>,
    pub(crate) copies: Cell<u32>,
    pub(crate) remarks: RefCell<Remarks>,
}

impl<'c, 'a> Rewriting<'c, 'a> {
    /// `self_copies`: inserts whose source already is the slice that they overwrite.
    pub(crate) fn new(
        module: Op<'c>,
        options: &'a Options,
        types: BufferTypes<'c, 'a>,
        self_copies: HashSet<Op<'c>>,
    ) -> Self {
        Self {
            types,
            module,
            options,
            self_copies,
            unverified: RefCell::default(),
            globals: RefCell::new(Globals::new(module, options)),
            allocs: Cell::new(0),
            copies: Cell::new(0),
            remarks: RefCell::default(),
        }
    }
}

impl<'c> Rewriting<'c, '_> {
    /// Gives the arguments of a region's blocks their memref types, except for the entry's; branches to them are converted.
    pub(crate) fn convert_blocks(&self, rw: &mut ConversionRewriter<'c>, region: Region<'c>) {
        for block in region.blocks().into_iter().skip(1) {
            let types: Vec<Type> = block.args().into_iter().map(|a| self.types.of(a)).collect();
            rw.convert_block_args(block, &types);
        }
    }
    /// The row-major memref of a tensor type.
    pub fn identity(&self, tensor: Type<'c>) -> Type<'c> {
        self.types.identity(tensor)
    }
    /// Types of a function's arguments after the rewrite.
    pub fn argument_types(&self, function: Op<'c>) -> Vec<Type<'c>> {
        self.types.signature(function).0
    }
    /// Whether the insert's source already is the slice that it overwrites.
    pub fn is_self_copy(&self, op: Op<'c>) -> bool {
        self.options.extensions && self.self_copies.contains(&op)
    }
    /// Whether the pass goes beyond upstream's.
    pub fn extensions(&self) -> bool {
        self.options.extensions
    }
    /// Whether operations of a dialect may take part, for rewrites that create some on tensors.
    pub fn dialect_takes_part(&self, dialect: &str) -> bool {
        self.options.dialect_filter.is_empty() || self.options.dialect_filter.iter().any(|d| d == dialect)
    }
    /// As [`Self::unsupported`], in upstream's words unless the pass goes beyond upstream's.
    pub fn refuse(&self, op: Op<'c>, upstream: &str, what: &str) -> Diagnostic {
        let mut refused = self.unsupported(op, what);
        if !self.options.extensions {
            upstream.clone_into(&mut refused.message);
        }
        refused
    }
    /// A diagnostic for a form of an op that is not handled (B0104).
    pub fn unsupported(&self, op: Op<'c>, what: &str) -> Diagnostic {
        Diagnostic::error("B0104", op.location(), format!("{} with {what} cannot be bufferized", op.name()))
            .with_help("rewrite it to the plain form of the operation")
    }

    /// Verifies an op at the end: only its verifier knows whether it has a form on memrefs.
    pub(crate) fn verify_later(&self, op: Op<'c>) {
        self.unverified.borrow_mut().push(op);
    }

    pub(crate) fn verify_made(&self) -> Result<(), Diagnostics> {
        let mut errors = Diagnostics::default();
        for op in self.unverified.take() {
            let Err(found) = op.verify_with_diagnostics() else { continue };
            let message = format!("{} has no form on memrefs without results", op.name());
            let mut error = Diagnostic::error("B0104", op.location(), message)
                .with_help("rewrite it to linalg or tensor operations, or register an op model");
            error.notes = found.0.into_iter().map(|d| d.message).collect();
            errors.0.push(error);
        }
        if errors.has_errors() { Err(errors) } else { Ok(()) }
    }
}
