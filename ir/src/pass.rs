//! Running upstream's passes.

use crate::{Diagnostic, Diagnostics, Op, string};

/// `canonicalize` for use in a pipeline, without the fold of a cast into a loop: it gives the loop's tensor the static size
/// that it begins with, also where the body makes it grow.
pub const CANONICALIZE_PROGRAM: &str = "canonicalize{disable-patterns={(anonymous namespace)::ForOpTensorCastFolder}}";

/// The same once dispatches are formed: the plain pass inlines an `scf.forall` of a single iteration, which is a dispatch like
/// any other.
pub const CANONICALIZE: &str = "canonicalize{disable-patterns={(anonymous namespace)::ForOpTensorCastFolder,\
    (anonymous namespace)::ForallOpSingleOrZeroIterationDimsFolder}}";

/// Runs a textual pass pipeline (`builtin.module(canonicalize,cse)`) on an op.
///
/// # Errors
/// I0003 when the pipeline text is wrong; else what the passes reported.
pub fn run_passes(op: Op, pipeline: &str) -> Result<(), Diagnostics> {
    let cx = op.context();
    let (result, diagnostics) = cx.with_diagnostics(|| run(op, pipeline));
    match result {
        Ok(true) => Ok(()),
        Ok(false) if diagnostics.has_errors() => Err(diagnostics),
        Ok(false) => Err(Diagnostic::error("I0003", op.location(), format!("pass pipeline failed: {pipeline}")).into()),
        Err(message) => Err(Diagnostic::global("I0003", format!("pass pipeline '{pipeline}': {message}")).into()),
    }
}

fn run(op: Op, pipeline: &str) -> Result<bool, String> {
    let cx = op.context();
    let anchor = string::to_ref(op.name());
    let manager = c!(mlirPassManagerCreateOnOperation(cx.raw.0, anchor));
    c!(mlirPassManagerEnableVerifier(manager, cfg!(debug_assertions)));
    let passes = c!(mlirPassManagerGetAsOpPassManager(manager));
    let mut parsed = mlir_sys::MlirLogicalResult { value: 0 };
    let message =
        string::collect(|cb, user| parsed = c!(mlirParsePassPipeline(passes, string::to_ref(pipeline), cb, user)));
    let result =
        if parsed.value == 0 { Err(message) } else { Ok(c!(mlirPassManagerRunOnOp(manager, op.raw)).value != 0) };
    c!(mlirPassManagerDestroy(manager));
    result
}
