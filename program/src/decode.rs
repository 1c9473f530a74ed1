//! Bytes to a program. No input panics; the hash is checked before anything is interpreted.

use std::path::Path;
use std::sync::Arc;

use crate::constants::{Constant, ConstantData};
use crate::encode::{
    ALIGNMENT, ConstantHeader, FILE_LEN_AT, HASH_AT, HASHED_FROM, HEADER_AT, HEADER_LEN_AT, Header, MAGIC, VERSION,
    content_hash,
};
use crate::error::Error;
use crate::map::Map;
use crate::program::Program;
use crate::trust::Trust;

impl Program {
    /// Maps the artifact at `path`. Constants stay in the file until they are uploaded.
    ///
    /// # Errors
    /// [`Error::Io`], and all of [`Program::decode`].
    pub fn open(path: &Path) -> Result<Program, Error> {
        let map = Arc::new(Map::open(path)?);
        decode(&map, |start, end| ConstantData::Mapped { map: map.clone(), range: start..end })
    }

    /// Decodes an artifact in memory; constants are copied out of it.
    ///
    /// # Errors
    /// [`Error::NotAnArtifact`], [`Error::Version`], [`Error::Truncated`], [`Error::Altered`], [`Error::Malformed`],
    /// [`Error::Inconsistent`].
    pub fn decode(bytes: &[u8]) -> Result<Program, Error> {
        decode(bytes, |start, end| bytes[start..end].into())
    }
}

/// Decodes `bytes`; `data` makes the data of a constant from the start and end of its bytes, which are within `bytes`.
fn decode(bytes: &[u8], data: impl Fn(usize, usize) -> ConstantData) -> Result<Program, Error> {
    let header_end = check_envelope(bytes)?;
    let header: Header = parse_header(&bytes[HEADER_AT..header_end])?;
    let sections_at = header_end.next_multiple_of(ALIGNMENT);
    let mut constants = Vec::with_capacity(header.constants.len());
    for constant in header.constants {
        let (start, end) = section(&constant, sections_at, bytes.len())?;
        let ConstantHeader { name, dtype, shape, .. } = constant;
        constants.push(Constant { name, dtype, shape, data: data(start, end) });
    }
    let Header { producer, entry, signature, variants, .. } = header;
    let program = Program { entry, signature, constants, variants, producer, trust: Trust::default() };
    program.verify()?;
    Ok(program)
}

/// Checks magic, version, lengths and hash. Returns the end of the header, which is within `bytes`.
fn check_envelope(bytes: &[u8]) -> Result<usize, Error> {
    let known = bytes.len().min(MAGIC.len());
    if known == 0 || bytes[..known] != MAGIC[..known] {
        return Err(Error::NotAnArtifact);
    }
    if bytes.len() < HEADER_AT {
        return Err(truncated(bytes, HEADER_AT as u64));
    }
    let found = u32::from_le_bytes(array(bytes, MAGIC.len()));
    if found != VERSION {
        return Err(Error::Version { found, expected: VERSION });
    }
    let file_len = u64::from_le_bytes(array(bytes, FILE_LEN_AT));
    if (bytes.len() as u64) < file_len {
        return Err(truncated(bytes, file_len));
    }
    if content_hash([&bytes[HASHED_FROM..]]) != bytes[HASH_AT..HASHED_FROM] {
        return Err(Error::Altered);
    }
    if bytes.len() as u64 != file_len {
        return Err(malformed("bytes after the end"));
    }
    let header_len = u64::from_le_bytes(array(bytes, HEADER_LEN_AT));
    usize::try_from(header_len)
        .ok()
        .and_then(|len| len.checked_add(HEADER_AT))
        .filter(|&end| end <= bytes.len())
        .ok_or_else(|| malformed("the header is longer than the file"))
}

fn parse_header(bytes: &[u8]) -> Result<Header, Error> {
    let (header, rest) = postcard::take_from_bytes(bytes).map_err(|e| malformed(&e.to_string()))?;
    if !rest.is_empty() {
        return Err(malformed("bytes after the header"));
    }
    Ok(header)
}

/// Start and end of a constant's bytes.
fn section(constant: &ConstantHeader, sections_at: usize, file_len: usize) -> Result<(usize, usize), Error> {
    let start = usize::try_from(constant.offset).ok().and_then(|offset| offset.checked_add(sections_at));
    let len = usize::try_from(constant.len).ok();
    let end = start.zip(len).and_then(|(start, len)| start.checked_add(len));
    match (start, end) {
        (Some(start), Some(end)) if end <= file_len => Ok((start, end)),
        _ => Err(malformed(&format!("constant `{}` lies outside the file", constant.name))),
    }
}

/// `N` bytes at `at`; the caller has checked the length.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("the slice has N bytes: sliced so")
}

fn truncated(bytes: &[u8], expected_bytes: u64) -> Error {
    Error::Truncated { found_bytes: bytes.len() as u64, expected_bytes }
}

fn malformed(what: &str) -> Error {
    Error::Malformed { what: what.to_owned() }
}
