//! Applying transform scripts.

use crate::{Diagnostic, Diagnostics, Module, Op};

/// Applies the named sequence `name` of `script` to `payload`, in place. Pass a clone if failure must leave the program unchanged.
///
/// # Errors
/// I0004 with the interpreter's diagnostics.
pub fn apply_named_sequence(payload: Op, script: &Module, name: &str) -> Result<(), Diagnostics> {
    let Some(sequence) = script.symbol(name) else {
        return Err(Diagnostic::global("I0004", format!("the transform script has no sequence @{name}")).into());
    };
    let (ok, diagnostics) = payload.context().with_diagnostics(|| {
        let options = c!(mlirTransformOptionsCreate());
        let result = c!(mlirTransformApplyNamedSequence(payload.raw(), sequence.raw(), script.op().raw(), options));
        c!(mlirTransformOptionsDestroy(options));
        result.value != 0
    });
    if ok {
        return Ok(());
    }
    if diagnostics.has_errors() {
        return Err(diagnostics);
    }
    Err(Diagnostic::error("I0004", payload.location(), format!("transform sequence @{name} failed")).into())
}
