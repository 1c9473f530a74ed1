//! The MLIR context with all dialects and passes registered.

use crate::diagnostic::{Diagnostics, Handler};
use crate::{Context, HandleMap};
use melior::ContextRef;
use melior::dialect::DialectRegistry;
use melior::utility::{register_all_dialects, register_all_llvm_translations, register_all_passes};
use std::cell::{Cell, RefCell};
use std::sync::Once;

static REGISTER_PASSES: Once = Once::new();

/// The dialects whose ops, types and attributes are built by name.
///
/// The parser loads others where a source names them, and passes those that they build: all of MLIR's take a quarter of
/// the time in which a small program is compiled.
const LOADED: [&str; 21] = [
    "affine",
    "arith",
    "async",
    "bufferization",
    "builtin",
    "cf",
    "func",
    "gpu",
    "index",
    "linalg",
    "llvm",
    "math",
    "memref",
    "ml_program",
    "scf",
    "shape",
    "sparse_tensor",
    "tensor",
    "transform",
    "ub",
    "vector",
];

impl Default for Context<'static> {
    fn default() -> Self {
        Self::new()
    }
}

impl Context<'static> {
    /// A context that is never freed, with all upstream dialects, extensions and passes; [`Context::scope`] frees its own.
    pub fn new() -> Self {
        let context: &'static melior::Context = Box::leak(Box::new(create()));
        Self::from_raw(context.to_raw())
    }
}

/// Single-threaded, so that equal input gives equal output.
fn create() -> melior::Context {
    REGISTER_PASSES.call_once(register_all_passes);
    let registry = DialectRegistry::new();
    register_all_dialects(&registry);
    let context = melior::Context::new_with_registry(&registry, false);
    register_all_llvm_translations(&context);
    for dialect in LOADED {
        context.get_or_load_dialect(dialect);
    }
    context
}

impl<'c> Context<'c> {
    /// Calls `body` with a new context, and frees the context afterwards.
    ///
    /// Plain data leaves `body`:
    ///
    /// ```
    /// use monopour_ir::{Context, Module};
    /// let name = Context::scope(|cx| Module::empty(cx).op().name().to_owned());
    /// assert_eq!(name, "builtin.module");
    /// ```
    ///
    /// No handle of the context does:
    ///
    /// ```compile_fail
    /// use monopour_ir::{Context, Type};
    /// let ty = Context::scope(|cx| Type::index(cx));
    /// ```
    ///
    /// Nor does a name that the context keeps, or a module:
    ///
    /// ```compile_fail
    /// use monopour_ir::{Context, Module};
    /// let name = Context::scope(|cx| Module::empty(cx).op().name());
    /// ```
    /// ```compile_fail
    /// use monopour_ir::{Context, Module};
    /// let module = Context::scope(|cx| Module::empty(cx));
    /// ```
    ///
    /// If `body` panics, the context is not freed.
    pub fn scope<T>(body: impl for<'s> FnOnce(Context<'s>) -> T) -> T {
        let context = std::mem::ManuallyDrop::new(create());
        let result = body(Context::from_raw(context.to_raw()));
        crate::pass::forget(context.to_raw());
        drop(std::mem::ManuallyDrop::into_inner(context));
        result
    }

    /// melior's context, for its constructors.
    pub fn to_melior(self) -> &'c melior::Context {
        thread_local! {
            /// melior lends a context from where a reference to it lies, so one is kept for ever per address.
            static KEPT: RefCell<HandleMap<usize, &'static ContextRef<'static>>> = RefCell::default();
            /// The latest lookup.
            static LAST: Cell<Option<(usize, &'static ContextRef<'static>)>> = const { Cell::new(None) };
        }
        let raw = self.raw();
        let address = raw.ptr as usize;
        let kept = match LAST.get() {
            Some((last, kept)) if last == address => kept,
            _ => {
                // SAFETY: the reference is lent for `'c` only, below.
                let keep = || &*Box::leak(Box::new(unsafe { ContextRef::from_raw(raw) }));
                let kept = KEPT.with_borrow_mut(|kept| *kept.entry(address).or_insert_with(keep));
                LAST.set(Some((address, kept)));
                kept
            }
        };
        // SAFETY: the reference stays where it is, and the context is live for `'c`.
        unsafe { kept.to_ref() }
    }

    /// Registers `ours` before upstream's passes; false if upstream's were registered already.
    pub(crate) fn register_passes_after(ours: impl FnOnce()) -> bool {
        let mut first = false;
        REGISTER_PASSES.call_once(|| {
            first = true;
            ours();
            register_all_passes();
        });
        first
    }

    /// Lets ops of unknown dialects be parsed and created.
    pub fn allow_unregistered_dialects(&self, allow: bool) {
        c!(mlirContextSetAllowUnregisteredDialects(self.raw(), allow));
    }

    /// Whether an op of this name is registered.
    pub fn is_registered(&self, op_name: &str) -> bool {
        c!(mlirContextIsRegisteredOperation(self.raw(), crate::string::to_ref(op_name)))
    }

    /// Runs `body`; returns its result and the diagnostics that MLIR emitted meanwhile.
    pub fn with_diagnostics<T>(&self, body: impl FnOnce() -> T) -> (T, Diagnostics) {
        let handler = Handler::attach(*self);
        let result = body();
        (result, handler.finish())
    }
}
