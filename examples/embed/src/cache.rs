//! The compiled artifact beside its model: `model.KEY.mpr`.
//!
//! The key is a hash of the model's files, the targets and monopour's version: a changed model, another device and an update of
//! monopour compile again, and leave the old artifact. Native code of the artifact runs in this process: the folder has to be as
//! trusted as the program itself.
#![allow(unsafe_code, reason = "vouches for the artifacts of earlier starts")]

use monopour::onnx::Model;
use monopour::program::Map;
use monopour::{CompileOptions, Error, Program};
use std::path::{Path, PathBuf};

/// The source of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Compiled now.
    Compiled,
    /// The artifact of an earlier start.
    Cached,
}

/// The program of a model for the targets of `options`.
///
/// # Errors
/// Those of opening and compiling the model. An artifact that cannot be read is compiled again; one that cannot be written is a
/// warning.
pub fn load(model: &Path, options: &CompileOptions) -> Result<(Program, Origin), Error> {
    let source = Model::open(model)?;
    let artifact = artifact(model, &source, options)?;
    if let Ok(program) = Program::open(&artifact) {
        // SAFETY: an earlier start wrote it into the model's folder, which is as trusted as this program.
        return Ok((unsafe { program.trust() }, Origin::Cached));
    }
    let program = monopour::compile_onnx(&source, options)?.program;
    if let Err(error) = program.save(&artifact) {
        eprintln!("warning: the next start compiles again\n{}", Error::from(error));
    }
    Ok((program, Origin::Compiled))
}

/// The artifact's path.
fn artifact(model: &Path, source: &Model, options: &CompileOptions) -> Result<PathBuf, Error> {
    let mut hash = blake3::Hasher::new();
    hash.update(format!("{} {:?}", monopour::VERSION, options.targets).as_bytes());
    hash.update_rayon(&Map::open(model)?[..]);
    // Weights that the model keeps in files of their own.
    for file in &source.external_files {
        hash.update_rayon(&Map::open(file)?[..]);
    }
    let key: String = hash.finalize().as_bytes()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(model.with_extension(format!("{key}.mpr")))
}
