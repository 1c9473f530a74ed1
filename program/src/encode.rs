//! A program to bytes.
//!
//! ```text
//! offset  bytes  what
//!      0      8  "MONOPOUR"
//!      8      4  version, little endian
//!     12     32  BLAKE3 of everything from offset 44 on
//!     44      4  zero
//!     48      8  length of the file
//!     56      8  length of the header
//!     64      n  header: postcard of `Header`
//!      -      -  zeros up to a multiple of 256, then one constant's bytes; repeated for each constant
//! ```
//! Constants are raw and aligned, so that a mapped file can be handed to a device unchanged.
//! Same program, same bytes: the format holds no map, time or path.

use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::error::Error;
use crate::program::{Program, Signature, Variant};

/// The artifact version that this build writes and reads.
pub const VERSION: u32 = 9;

pub(crate) const MAGIC: &[u8; 8] = b"MONOPOUR";
/// End of the version field, start of the hash.
pub(crate) const HASH_AT: usize = 12;
/// The hash covers everything from here on.
pub(crate) const HASHED_FROM: usize = 44;
pub(crate) const FILE_LEN_AT: usize = 48;
pub(crate) const HEADER_LEN_AT: usize = 56;
pub(crate) const HEADER_AT: usize = 64;
/// Alignment of a constant in the file: enough for any device's binding offsets and any vector load.
pub(crate) const ALIGNMENT: usize = 256;

/// Everything but the constants' bytes. The order of fields is the wire format.
#[derive(Deserialize)]
pub(crate) struct Header {
    pub producer: String,
    pub entry: String,
    pub signature: Signature,
    pub constants: Vec<ConstantHeader>,
    pub variants: Vec<Variant>,
}

/// A [`Header`] to be written: the same fields in the same order.
#[derive(Serialize)]
struct HeaderOf<'a> {
    producer: &'a str,
    entry: &'a str,
    signature: &'a Signature,
    constants: Vec<ConstantHeader>,
    variants: &'a [Variant],
}

/// A constant without its bytes.
#[derive(Serialize, Deserialize)]
pub(crate) struct ConstantHeader {
    pub name: String,
    pub dtype: DType,
    pub shape: Vec<u64>,
    /// Offset after the header, rounded up: the position in the file does not change the header's length.
    pub offset: u64,
    pub len: u64,
}

impl Program {
    /// The artifact's bytes.
    ///
    /// # Errors
    /// [`Error::Inconsistent`] when [`Program::verify`] fails.
    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        Ok(self.parts(&self.envelope()?).concat())
    }

    /// Writes the artifact to `path`, atomically: at any moment `path` is either unchanged or complete. Mapped constants are
    /// written from where they are.
    ///
    /// # Errors
    /// As [`Program::encode`], and [`Error::Io`].
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        write_parts(path, &self.parts(&self.envelope()?))
    }

    /// The bytes before the constants.
    fn envelope(&self) -> Result<Envelope, Error> {
        self.verify()?;
        let (header, sections_len) = self.header()?;
        let sections_at = (HEADER_AT + header.len()).next_multiple_of(ALIGNMENT);
        let file_len = (sections_at + sections_len) as u64;
        let mut hashed = vec![0u8; HEADER_AT - HASHED_FROM];
        hashed[FILE_LEN_AT - HASHED_FROM..HEADER_LEN_AT - HASHED_FROM].copy_from_slice(&file_len.to_le_bytes());
        hashed[HEADER_LEN_AT - HASHED_FROM..].copy_from_slice(&(header.len() as u64).to_le_bytes());
        hashed.extend(header);
        hashed.resize(sections_at - HASHED_FROM, 0);
        let hash = content_hash(std::iter::once(hashed.as_slice()).chain(self.sections()));
        let unhashed = [MAGIC.as_slice(), &VERSION.to_le_bytes(), &hash].concat();
        Ok(Envelope { unhashed, hashed })
    }

    /// The header, and the length of all sections.
    fn header(&self) -> Result<(Vec<u8>, usize), Error> {
        let (constants, sections_len) = self.constant_headers();
        let header = HeaderOf {
            producer: &self.producer,
            entry: &self.entry,
            signature: &self.signature,
            constants,
            variants: &self.variants,
        };
        let header = postcard::to_stdvec(&header).map_err(|e| Error::Malformed { what: e.to_string() })?;
        Ok((header, sections_len))
    }

    /// The hash of everything but the constants' bytes: what decides which memory machine code touches.
    pub(crate) fn code_hash(&self) -> Option<[u8; 32]> {
        let (header, _) = self.header().ok()?;
        Some(content_hash([header.as_slice()]))
    }

    /// The whole artifact, in order.
    fn parts<'a>(&'a self, envelope: &'a Envelope) -> Vec<&'a [u8]> {
        let before = [envelope.unhashed.as_slice(), &envelope.hashed];
        before.into_iter().chain(self.sections()).collect()
    }

    /// Headers of the constants, and the length of all sections.
    fn constant_headers(&self) -> (Vec<ConstantHeader>, usize) {
        let mut end = 0;
        let mut headers = Vec::with_capacity(self.constants.len());
        for constant in &self.constants {
            let offset = end;
            let len = constant.data.bytes().len();
            headers.push(ConstantHeader {
                name: constant.name.clone(),
                dtype: constant.dtype,
                shape: constant.shape.clone(),
                offset: offset as u64,
                len: len as u64,
            });
            end = (offset + len).next_multiple_of(ALIGNMENT);
        }
        (headers, end)
    }

    /// The constants' bytes, each followed by zeros up to the next one.
    fn sections(&self) -> Vec<&[u8]> {
        const ZEROS: [u8; ALIGNMENT] = [0; ALIGNMENT];
        let pad = |len: usize| &ZEROS[..len.next_multiple_of(ALIGNMENT) - len];
        self.constants.iter().map(|c| c.data.bytes()).flat_map(|bytes| [bytes, pad(bytes.len())]).collect()
    }
}

/// The hash of an artifact's content, on all cores: constants may be gigabytes.
pub(crate) fn content_hash<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update_rayon(part);
    }
    *hasher.finalize().as_bytes()
}

/// An artifact up to its constants.
struct Envelope {
    /// Magic, version and hash.
    unhashed: Vec<u8>,
    /// Lengths and header, up to the first constant.
    hashed: Vec<u8>,
}

/// Writes `bytes` to `path` through a temporary file beside it, so that a partial file is never visible.
///
/// # Errors
/// [`Error::Io`].
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    write_parts(path, &[bytes])
}

fn write_parts(path: &Path, parts: &[&[u8]]) -> Result<(), Error> {
    let write = |mut file: std::fs::File| {
        parts.iter().try_for_each(|part| file.write_all(part))?;
        Ok(file)
    };
    // A device or a pipe is written directly: a rename would replace it by a file, `/dev/null` for one.
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        let written = std::fs::OpenOptions::new().write(true).truncate(true).open(path).and_then(write);
        return written.map(drop).map_err(|source| Error::io(path, &source));
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = std::fs::File::create(&temporary)
        .and_then(write)
        .and_then(|file| file.sync_all())
        .and_then(|()| std::fs::rename(&temporary, path));
    written.map_err(|source| {
        // The temporary is ours; if it does not exist, that is no second error.
        let _ = std::fs::remove_file(&temporary);
        Error::io(path, &source)
    })
}
