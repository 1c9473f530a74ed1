//! Running upstream's passes.

use crate::{Diagnostic, Diagnostics, Op, string};
use mlir_sys::{MlirContext, MlirPassManager};
use std::cell::RefCell;
use std::collections::HashMap;

/// `canonicalize` for use in a pipeline, without the fold of a cast into a loop: it gives the loop's tensor its initial static size,
/// even if the body makes it grow.
pub const CANONICALIZE_PROGRAM: &str = "canonicalize{disable-patterns={(anonymous namespace)::ForOpTensorCastFolder}}";

/// The same once dispatches are formed: the plain pass inlines an `scf.forall` of a single iteration, which is a dispatch too.
pub const CANONICALIZE: &str = "canonicalize{disable-patterns={(anonymous namespace)::ForOpTensorCastFolder,\
    (anonymous namespace)::ForallOpSingleOrZeroIterationDimsFolder}}";

/// Runs a textual pass pipeline (`builtin.module(canonicalize,cse)`) on an op.
///
/// # Errors
/// I0003 when the pipeline text is wrong; else the diagnostics of the passes.
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
    let key = Key { cx: op.context().raw().ptr as usize, anchor: op.name().to_owned(), pipeline: pipeline.to_owned() };
    let used = MANAGERS.with_borrow_mut(|managers| managers.get_mut(&key).map(std::mem::take));
    // Taken out of the map while it runs: a pass may run another.
    let (is_first, kept) = (used.is_none(), used.flatten());
    let manager = kept.map_or_else(|| create(op, pipeline), Ok)?;
    let succeeded = c!(mlirPassManagerRunOnOp(manager, op.raw())).value != 0;
    // A manager that runs once would only hold memory.
    let (keep, free) = if is_first { (None, Some(manager)) } else { (Some(manager), None) };
    let other = MANAGERS.with_borrow_mut(|managers| managers.insert(key, keep).flatten());
    for manager in free.into_iter().chain(other) {
        c!(mlirPassManagerDestroy(manager));
    }
    Ok(succeeded)
}

fn create(op: Op, pipeline: &str) -> Result<MlirPassManager, String> {
    let manager = c!(mlirPassManagerCreateOnOperation(op.context().raw(), string::to_ref(op.name())));
    c!(mlirPassManagerEnableVerifier(manager, cfg!(debug_assertions)));
    let passes = c!(mlirPassManagerGetAsOpPassManager(manager));
    let mut parsed = mlir_sys::MlirLogicalResult { value: 0 };
    let message =
        string::collect(|cb, user| parsed = c!(mlirParsePassPipeline(passes, string::to_ref(pipeline), cb, user)));
    if parsed.value == 0 {
        c!(mlirPassManagerDestroy(manager));
        return Err(message);
    }
    Ok(manager)
}

/// A pipeline on ops of one name in one context.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    cx: usize,
    anchor: String,
    pipeline: String,
}

thread_local! {
    /// Pipelines that ran in this thread's contexts, with the pass managers of those that ran again: creating `canonicalize` collects
    /// the patterns of every registered op.
    static MANAGERS: RefCell<HashMap<Key, Option<MlirPassManager>>> = RefCell::default();
}

/// Frees the pass managers of a context that is about to be freed.
pub(crate) fn forget(cx: MlirContext) {
    let of = MANAGERS
        .with_borrow_mut(|managers| managers.extract_if(|key, _| key.cx == cx.ptr as usize).collect::<Vec<_>>());
    for manager in of.into_iter().filter_map(|(_, manager)| manager) {
        c!(mlirPassManagerDestroy(manager));
    }
}
