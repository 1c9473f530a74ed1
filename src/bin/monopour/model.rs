//! Loads a MODEL argument: an artifact, or a source that is compiled.

use crate::failure::Failure;
#[cfg(feature = "compiler")]
use crate::progress::Progress;
use monopour::program::Program;
#[cfg(feature = "compiler")]
use std::ffi::OsString;
use std::path::Path;
#[cfg(feature = "compiler")]
use std::sync::Arc;

/// Whether the file is a compiled artifact, by its name.
pub fn is_artifact(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "mpr")
}

/// Loads an artifact, or compiles a source for `targets` (names as `--target` takes them).
#[cfg(feature = "compiler")]
pub fn load(path: &Path, source: &crate::source::SourceArgs, targets: &[OsString]) -> Result<Program, Failure> {
    if is_artifact(path) {
        return Ok(Program::open(path)?);
    }
    let targets = crate::source::targets(targets)?;
    compile(path, source, &targets)
}

/// Compiles a source.
#[cfg(feature = "compiler")]
pub fn compile(
    path: &Path,
    source: &crate::source::SourceArgs,
    targets: &[monopour::TargetDescription],
) -> Result<Program, Failure> {
    let progress = Arc::new(Progress::new(crate::source::steps(targets.len()), false));
    Ok(compile_reported(path, source, targets, &progress)?.program)
}

/// Compiles a source, and returns the report.
#[cfg(feature = "compiler")]
pub fn compile_reported(
    path: &Path,
    source: &crate::source::SourceArgs,
    targets: &[monopour::TargetDescription],
    progress: &Arc<Progress>,
) -> Result<monopour::Compiled, Failure> {
    let known = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    if !["mlir", "mlirbc", "onnx"].contains(&known) {
        return Err(Failure::input(format!(
            "error[I0032]: {} is not a model that monopour reads\n  help: give .mlir, .mlirbc, .onnx, or a compiled .mpr",
            path.display()
        )));
    }
    let options = monopour::CompileOptions { watch: progress.watch(), ..crate::source::options(source, targets)? };
    Ok(monopour::compile_file(path, &options)?)
}

/// Loads an artifact; this build has no compiler.
#[cfg(not(feature = "compiler"))]
pub fn load_artifact(path: &Path) -> Result<Program, Failure> {
    if is_artifact(path) {
        return Ok(Program::open(path)?);
    }
    Err(Failure::input(format!(
        "error[I0032]: this monopour was built without its compiler and cannot read {}\n  help: compile it elsewhere with `monopour compile`, and run the .mpr",
        path.display()
    )))
}
