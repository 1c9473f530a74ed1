//! Compositions of conversions: in stages, on a clone, or as an analysis.

use super::driver::convert_and_blame;
use super::{ConversionOptions, ConversionStats, ConversionTarget, Mode, PatternSet, convert_with};
use crate::{Diagnostics, Op, WalkOrder};
use std::collections::HashSet;

/// One conversion of several: at best, one change of the type system.
#[derive(Clone, Copy, Debug)]
pub struct Stage<'c, 'a> {
    /// Name for diagnostics.
    pub name: &'a str,
    /// The legal ops.
    pub target: &'a ConversionTarget<'c, 'a>,
    /// The patterns for the rest.
    pub patterns: &'a PatternSet<'c, 'a>,
    /// The ops that must be gone at the end.
    pub mode: Mode,
}

/// Converts in stages, in place. Casts that a stage leaves are ordinary ops to the next, which looks through none of them:
/// leave none, or reconcile them there.
///
/// # Errors
/// Those of the first stage that fails, with a note that names it; later stages are not run.
pub fn convert_in_stages<'c>(
    root: Op<'c>,
    stages: &[Stage<'c, '_>],
    mut options: impl FnMut() -> ConversionOptions<'static>,
) -> Result<Vec<ConversionStats>, Diagnostics> {
    let mut out = Vec::with_capacity(stages.len());
    for stage in stages {
        let stats = convert_with(root, stage.target, stage.patterns, stage.mode, options());
        out.push(stats.map_err(|mut errors| {
            for error in &mut errors.0 {
                error.notes.push(format!("in the stage '{}'", stage.name));
            }
            errors
        })?);
    }
    Ok(out)
}

/// Converts a clone of a top-level op, and replaces the op's attributes and regions by the clone's only if that succeeds.
/// On failure the op is untouched, bit for bit. Handles to nested ops are invalid after a success.
///
/// Costs one copy of the IR, in time and memory.
///
/// # Errors
/// Those of the conversion, which replaces no top-level op.
///
/// # Panics
/// If the op is nested in another.
pub fn on_clone<'c, T>(root: Op<'c>, convert: impl FnOnce(Op<'c>) -> Result<T, Diagnostics>) -> Result<T, Diagnostics> {
    assert!(root.block().is_none(), "'{}' is a top-level op", root.name());
    let clone = Clone::of(root);
    let result = convert(clone.0)?;
    for name in root.attrs().into_iter().map(|(name, _)| name).filter(|name| clone.0.attr(name).is_none()) {
        c!(mlirOperationRemoveAttributeByName(root.raw(), crate::string::to_ref(name)));
    }
    for (name, value) in clone.0.attrs() {
        c!(mlirOperationSetAttributeByName(root.raw(), crate::string::to_ref(name), value.raw()));
    }
    for (to, from) in root.regions().into_iter().zip(clone.0.regions()) {
        c!(mlirRegionTakeBody(to.raw(), from.raw()));
    }
    Ok(result)
}

/// The result of an analysis that changes nothing.
#[derive(Clone, Debug)]
pub struct ConversionAnalysis<'c> {
    /// Ops of illegal or unknown legality that would be converted.
    pub convertible: Vec<Op<'c>>,
    /// Ops that would stay illegal, or become something illegal.
    pub blocked: Vec<Op<'c>>,
    /// Why they are blocked.
    pub diagnostics: Diagnostics,
}

/// Reports which ops of a top-level op a conversion would convert, without changing any.
///
/// # Errors
/// Diagnostics of patterns that break their contract, do not terminate, or fail.
pub fn analyze_conversion<'c>(
    root: Op<'c>,
    target: &ConversionTarget<'c, '_>,
    patterns: &PatternSet<'c, '_>,
) -> Result<ConversionAnalysis<'c>, Diagnostics> {
    let clone = Clone::of(root);
    let originals = root.nested(WalkOrder::Pre);
    let copies = clone.0.nested(WalkOrder::Pre);
    let original_of: crate::HandleMap<Op, Op> = copies.into_iter().zip(originals).collect();
    let (visited, ended) = convert_and_blame(clone.0, target, patterns)?;
    let failed: HashSet<u32> = ended.failed_inputs.into_iter().collect();
    let kept: HashSet<u32> = ended.kept_inputs.into_iter().collect();
    let mut out = ConversionAnalysis { convertible: vec![], blocked: vec![], diagnostics: Diagnostics::default() };
    for (i, op) in visited.iter().enumerate() {
        let (original, position) = (original_of[op], u32::try_from(i).expect("ops fit 32 bits"));
        if failed.contains(&position) {
            out.blocked.push(original);
        } else if !kept.contains(&position) && target.legality(original) != super::Legality::Legal {
            out.convertible.push(original);
        }
    }
    out.diagnostics = ended.outcome.err().unwrap_or_default();
    Ok(out)
}

/// A detached copy, erased on drop.
struct Clone<'c>(Op<'c>);

impl<'c> Clone<'c> {
    fn of(op: Op<'c>) -> Self {
        Self(Op::from_raw(c!(mlirOperationClone(op.raw()))))
    }
}

impl Drop for Clone<'_> {
    fn drop(&mut self) {
        let raw = self.0.raw();
        self.0.note_erasing();
        c!(mlirOperationDestroy(raw));
    }
}
