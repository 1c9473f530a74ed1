//! Objects kept on disk from one compilation to the next.
//!
//! An object follows from the text of the functions in it, the globals that they read, the target, and the code that makes
//! it. These are its key, so that a function whose text is unchanged is not compiled again, whatever else of the model
//! changed, and no file is ever out of date.
//! Limits: a part that reads a constant whose values are not in its text (`dense_resource`) is not kept.

use crate::parts;
use monopour_ir::{Diagnostics, LlvmTarget, Module};
use monopour_program::cache::Files;
use std::path::PathBuf;

/// What made the objects: see `build.rs`.
const IDENTITY: &str = env!("MONOPOUR_OBJECTS_IDENTITY");
/// Objects that are kept: some thousand models' kernels.
const MOST_BYTES: u64 = 256 << 20;

/// Objects of earlier compilations.
#[derive(Debug)]
pub struct Objects(Files);

impl Objects {
    /// Those in `folder`, which need not exist.
    pub fn new(folder: PathBuf) -> Self {
        Self(Files::new(folder, MOST_BYTES))
    }

    /// The object of `part`: the one kept, else what `make` returns, which is kept.
    ///
    /// # Errors
    /// Those of `make`.
    pub(crate) fn get_or_make(
        &self,
        part: &Module,
        target: &LlvmTarget,
        make: impl FnOnce() -> Result<Vec<u8>, Diagnostics>,
    ) -> Result<Vec<u8>, Diagnostics> {
        let Some(key) = key(part, target) else { return make() };
        if let Some(object) = self.0.get(&key) {
            return Ok(object);
        }
        let object = make()?;
        self.0.put(&key, &object);
        Ok(object)
    }

    /// Drops the objects used longest ago, if new ones made the folder too large.
    pub(crate) fn trim(&self) {
        self.0.trim();
    }
}

fn key(part: &Module, target: &LlvmTarget) -> Option<String> {
    let ops = parts::with_references(&part.functions(), &part.symbols());
    let text = part.print_ops(&ops);
    if text.contains("dense_resource") {
        return None;
    }
    let target = format!("{target:?}");
    Some(Files::key(&[IDENTITY, &target, &text].map(str::as_bytes)))
}
