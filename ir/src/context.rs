//! The MLIR context with all dialects and passes registered.

use crate::diagnostic::{Diagnostics, Handler};
use mlir_sys::MlirContext;
use std::sync::Once;

static REGISTER_PASSES: Once = Once::new();

/// An MLIR context. Cheap to share by reference; freed only by [`Context::scope`] (see the crate invariant).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Context {
    pub(crate) raw: RawContext,
}

/// The context pointer, comparable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawContext(pub(crate) MlirContext);

impl PartialEq for RawContext {
    fn eq(&self, other: &Self) -> bool {
        c!(mlirContextEqual(self.0, other.0))
    }
}
impl Eq for RawContext {}

impl Default for Context {
    fn default() -> Self {
        Self::new()
    }
}

impl Context {
    /// A context with every upstream dialect, extension and pass, single-threaded so that equal input gives equal output.
    /// Unregistered ops are allowed because the schedule phase and user programs may carry them.
    pub fn new() -> Self {
        REGISTER_PASSES.call_once(|| {
            c!(mlirRegisterAllPasses());
        });
        let registry = c!(mlirDialectRegistryCreate());
        c!(mlirRegisterAllDialects(registry));
        let raw = c!(mlirContextCreateWithRegistry(registry, false));
        c!(mlirDialectRegistryDestroy(registry));
        c!(mlirRegisterAllLLVMTranslations(raw));
        c!(mlirContextLoadAllAvailableDialects(raw));
        Self { raw: RawContext(raw) }
    }

    /// Gives `body` a context of its own, and frees it and all that belongs to it afterwards.
    ///
    /// No handle of the context ([`crate::Op`], [`crate::Type`], [`crate::Attr`], ...) may leave `body`, not even in its
    /// result: plain data may. If `body` panics, the context is not freed.
    pub fn scope<T>(body: impl FnOnce(Context) -> T) -> T {
        let cx = Self::new();
        let result = body(cx);
        crate::pass::forget(cx.raw.0);
        c!(mlirContextDestroy(cx.raw.0));
        result
    }

    /// Registers passes that must come before upstream's, then upstream's; false if those were registered already.
    pub(crate) fn register_passes_after(ours: impl FnOnce()) -> bool {
        let mut first = false;
        REGISTER_PASSES.call_once(|| {
            first = true;
            ours();
            c!(mlirRegisterAllPasses());
        });
        first
    }

    pub(crate) fn from_raw(raw: MlirContext) -> Self {
        Self { raw: RawContext(raw) }
    }

    /// The raw C handle, for `codegen-cpu`, the other crate that may call LLVM.
    pub fn to_raw(self) -> MlirContext {
        self.raw.0
    }

    /// Lets ops of unknown dialects be parsed and created.
    pub fn allow_unregistered_dialects(&self, allow: bool) {
        c!(mlirContextSetAllowUnregisteredDialects(self.raw.0, allow));
    }

    /// Whether an op of this name is registered.
    pub fn is_registered(&self, op_name: &str) -> bool {
        c!(mlirContextIsRegisteredOperation(self.raw.0, crate::string::to_ref(op_name)))
    }

    /// Runs `body` and returns, besides its result, every diagnostic that MLIR emitted meanwhile.
    pub fn with_diagnostics<T>(&self, body: impl FnOnce() -> T) -> (T, Diagnostics) {
        let handler = Handler::attach(*self);
        let result = body();
        (result, handler.finish())
    }
}
