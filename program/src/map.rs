//! Read-only mapped files.
#![allow(unsafe_code, reason = "mapping a file is unsafe: another process may change it while it is mapped")]

use std::fs::File;
use std::ops::Deref;
use std::path::Path;

use crate::error::Error;

/// The contents of a file, mapped read-only (or owned, for an empty file, which cannot be mapped).
#[derive(Debug)]
pub struct Map(Inner);

#[derive(Debug)]
enum Inner {
    Empty,
    Mapped(memmap2::Mmap),
}

impl Map {
    /// Maps the whole file at `path`.
    ///
    /// # Errors
    /// [`Error::Io`] when the file cannot be opened or mapped.
    pub fn open(path: &Path) -> Result<Map, Error> {
        let io = |source: std::io::Error| Error::io(path, &source);
        let file = File::open(path).map_err(io)?;
        if file.metadata().map_err(io)?.len() == 0 {
            return Ok(Map(Inner::Empty));
        }
        // SAFETY: `Mmap::map` requires that the file is not truncated or changed while it is mapped. The mapping is private and
        // only read as plain bytes; artifacts are written by rename (`write_atomically`), so that a mapped file is
        // replaced, never changed. Editing a file in place under a running program breaks this, as with any
        // mapped executable.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(io)?;
        Ok(Map(Inner::Mapped(map)))
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Inner::Empty => &[],
            Inner::Mapped(map) => map,
        }
    }
}
