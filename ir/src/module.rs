//! Modules: parsing from text and bytecode.

use crate::ops;
use crate::resources::{self, Shortened};
use crate::source_text::{self, Refusal};
use crate::{Block, Context, Diagnostic, Diagnostics, Location, Op, OpSpec, Region, string};
use melior::ir::operation::{Operation, OperationLike};
use mlir_sys::{MlirContext, MlirOperation, MlirStringRef};
use std::collections::HashMap;
use std::ffi::c_void;
use std::ops::Range;

/// The magic number of bytecode.
pub(crate) const BYTECODE: &[u8] = b"ML\xefR";

/// A module that owns its IR.
#[derive(Debug)]
pub struct Module<'c> {
    op: Operation<'c>,
}

unsafe extern "C" {
    fn monopour_shim_parse_module(cx: MlirContext, source: MlirStringRef, file: MlirStringRef) -> MlirOperation;
    fn monopour_shim_parse_in_place(
        cx: MlirContext,
        source: MlirStringRef,
        file: MlirStringRef,
        least: usize,
        visit: extern "C" fn(MlirStringRef, usize, usize, *mut c_void),
        user: *mut c_void,
    ) -> MlirOperation;
    fn monopour_shim_print_ops(
        module: MlirOperation,
        ops: *const MlirOperation,
        count: isize,
        append: mlir_sys::MlirStringCallback,
        user: *mut c_void,
    );
}

/// Least bytes of a resource that is left in its file: what is smaller may be folded into kernels.
const LEAST_IN_PLACE: usize = 1 << 10;

/// Where the blobs of a file's resources lie in it, by their keys.
pub type ResourceRanges = Vec<(String, Range<usize>)>;

extern "C" fn on_resource(key: MlirStringRef, offset: usize, length: usize, user: *mut c_void) {
    // SAFETY: `user` is the vector that `parse_in_place` passes down.
    let ranges = unsafe { &mut *user.cast::<ResourceRanges>() };
    ranges.push((string::from_ref(key).to_owned(), offset..offset + length));
}

impl<'c> Module<'c> {
    /// An empty module.
    pub fn empty(cx: Context<'c>) -> Self {
        let region = Region::new();
        region.append(Block::new(&[]));
        let op = OpSpec::new(ops::builtin::MODULE, Location::unknown(cx)).region(region).build(cx);
        Self::owning(op.expect("builtin.module always builds"))
    }

    /// A module of one op, which is in no block.
    pub fn of(op: Op<'c>) -> Self {
        let module = Self::empty(op.context());
        c!(mlirBlockAppendOwnedOperation(module.body().raw(), op.raw()));
        module
    }

    /// Parses MLIR text or bytecode; `file` is the name that locations carry. The module is verified.
    ///
    /// # Errors
    /// I0001 with the parser's and verifier's messages; I0002 for text that is refused before it is parsed (NUL bytes,
    /// absurd nesting and lengths).
    pub fn parse(cx: Context<'c>, source: &[u8], file: &str) -> Result<Self, Diagnostics> {
        Self::read(cx, source, file, true)
    }

    /// Reads bytecode that [`crate::Op::to_bytecode`] wrote of verified IR; only debug builds verify it again.
    ///
    /// # Errors
    /// I0001.
    pub fn from_bytecode(cx: Context<'c>, bytes: &[u8]) -> Result<Self, Diagnostics> {
        Self::read(cx, bytes, "<bytecode>", cfg!(debug_assertions))
    }

    /// As [`Module::parse`]. Blobs of resources, but small ones, are not parsed of text: the module has their keys alone,
    /// and the places of their hexadecimal digits in `source`, which are valid, are returned.
    ///
    /// # Errors
    /// Those of [`Module::parse`].
    pub fn parse_without_blobs(
        cx: Context<'c>,
        source: &[u8],
        file: &str,
    ) -> Result<(Self, ResourceRanges), Diagnostics> {
        if source.starts_with(BYTECODE) {
            return Ok((Self::parse(cx, source, file)?, vec![]));
        }
        let strings = source_text::check(source, false).map_err(|refusal| refusal_diagnostic(file, &refusal))?;
        let shortened = Shortened::new(source, strings, LEAST_IN_PLACE);
        let read = Self::read_checked(cx, shortened.text(), file);
        // After a failure too: another text may be parsed in this context.
        let ranges = shortened.take_blobs(cx);
        let module = read?;
        module.verify_first()?;
        Ok((module, ranges))
    }

    /// Puts the blob of a resource back whose place in `source` [`Module::parse_without_blobs`] returned.
    pub fn restore_blob(&self, source: &[u8], key: &str, digits: Range<usize>) {
        resources::restore(self.context(), source, key, digits);
    }

    fn read(cx: Context<'c>, source: &[u8], file: &str, verify: bool) -> Result<Self, Diagnostics> {
        if !source.starts_with(BYTECODE) {
            source_text::check(source, false).map_err(|refusal| refusal_diagnostic(file, &refusal))?;
        }
        let module = Self::read_checked(cx, source, file)?;
        if verify {
            module.verify_first()?;
        }
        Ok(module)
    }

    fn read_checked(cx: Context<'c>, source: &[u8], file: &str) -> Result<Self, Diagnostics> {
        let text = MlirStringRef { data: source.as_ptr().cast(), length: source.len() };
        let read = cx.with_diagnostics(|| {
            // SAFETY: defined in the shim; both strings live during the call.
            unsafe { monopour_shim_parse_module(cx.raw(), text, string::to_ref(file)) }
        });
        Self::of_parsed(read, file)
    }

    /// Verifies what was read, but for what upstream's verifier does not survive.
    fn verify_first(&self) -> Result<(), Diagnostics> {
        // LLVM 22 takes the inverse of its permutation, which has no context: a null pointer.
        let is_scalar =
            |op: &Op| op.attr("permutation").and_then(|a| a.as_ints()).is_some_and(|order| order.is_empty());
        if let Some(op) = self.op().find_all(ops::linalg::TRANSPOSE).into_iter().find(is_scalar) {
            let what = format!("{} of a tensor of rank 0", ops::linalg::TRANSPOSE);
            return Err(Diagnostic::error("I0001", op.location(), what).with_help("write linalg.copy").into());
        }
        self.op().verify_with_diagnostics()
    }

    /// Whether a file is bytecode, by its first bytes.
    pub fn is_bytecode(source: &[u8]) -> bool {
        source.starts_with(BYTECODE)
    }

    /// As [`Module::parse`], for bytecode at an address that is a multiple of its alignment, as that of a mapped file
    /// is. Blobs of resources, but small ones, are not copied: the module has their keys alone, and their places in
    /// `source` are returned.
    ///
    /// # Errors
    /// I0001.
    pub fn parse_in_place(cx: Context<'c>, source: &[u8], file: &str) -> Result<(Self, ResourceRanges), Diagnostics> {
        let mut ranges = ResourceRanges::new();
        let text = MlirStringRef { data: source.as_ptr().cast(), length: source.len() };
        let user = (&raw mut ranges).cast();
        let read = cx.with_diagnostics(|| {
            // SAFETY: defined in the shim; both strings and the vector live during the call, after which nothing refers
            // to them.
            unsafe {
                monopour_shim_parse_in_place(cx.raw(), text, string::to_ref(file), LEAST_IN_PLACE, on_resource, user)
            }
        });
        ranges.sort_by(|a, b| a.0.cmp(&b.0));
        let module = Self::of_parsed(read, file)?;
        module.verify_first()?;
        Ok((module, ranges))
    }

    /// The module that a parser returned, with what it said.
    fn of_parsed((raw, mut diagnostics): (MlirOperation, Diagnostics), file: &str) -> Result<Self, Diagnostics> {
        match Op::non_null(raw) {
            Some(op) => Ok(Self::owning(op)),
            None => {
                if !diagnostics.has_errors() {
                    diagnostics.0.push(Diagnostic::global("I0001", format!("{file} is not an MLIR module")));
                }
                Err(diagnostics)
            }
        }
    }

    /// The module op.
    ///
    /// No handle of its IR outlives the module:
    ///
    /// ```compile_fail
    /// use monopour_ir::{Context, Module};
    /// let body = Module::empty(Context::new()).body();
    /// println!("{}", body.ops().len());
    /// ```
    pub fn op(&self) -> Op<'_> {
        Op::from_raw(self.op.to_raw())
    }
    /// Its body block.
    pub fn body(&self) -> Block<'_> {
        self.op().body().expect("a module has a body")
    }
    /// The context.
    pub fn context(&self) -> Context<'c> {
        Context::from_raw(c!(mlirOperationGetContext(self.op.to_raw())))
    }
    /// Top-level op with this symbol name.
    pub fn symbol(&self, name: &str) -> Option<Op<'_>> {
        self.body().ops().into_iter().find(|op| op.symbol_name().as_deref() == Some(name))
    }
    /// Top-level ops by symbol name, for many look-ups.
    pub fn symbols(&self) -> HashMap<String, Op<'_>> {
        self.body().ops().into_iter().filter_map(|op| Some((op.symbol_name()?, op))).collect()
    }
    /// All top-level `func.func`.
    pub fn functions(&self) -> Vec<Op<'_>> {
        self.body().ops().into_iter().filter(|op| op.is(ops::func::FUNC)).collect()
    }
    /// The texts of ops of this module, each as it prints, one after another. Values are numbered once: MLIR numbers
    /// those of the whole module to print any op in it.
    pub fn print_ops(&self, ops: &[Op]) -> String {
        string::collect(|append, user| {
            // SAFETY: defined in the shim; the ops are live (crate invariant), and laid out like their handles.
            unsafe { monopour_shim_print_ops(self.op().raw(), ops.as_ptr().cast(), ops.len() as isize, append, user) }
        })
    }
    /// A deep copy.
    pub fn duplicate(&self) -> Self {
        Self { op: self.op.clone() }
    }
    /// Takes ownership of a detached op.
    fn owning(op: Op<'c>) -> Self {
        // SAFETY: the op is in no block and has no other owner.
        Self { op: unsafe { Operation::from_raw(op.raw()) } }
    }
}

impl Drop for Module<'_> {
    fn drop(&mut self) {
        self.op().note_erasing();
    }
}

/// I0002 at the refused line.
pub(crate) fn refusal_diagnostic(file: &str, refusal: &Refusal) -> Diagnostic {
    let mut d = Diagnostic::global("I0002", refusal.message.clone());
    d.location = format!("{file}:{}:1", refusal.line);
    d.with_help("give MLIR text or bytecode as mlir-opt writes it")
}
