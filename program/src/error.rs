//! Errors about artifacts, and the form in which errors are shown.

use std::fmt;
use std::path::{Path, PathBuf};

/// An error in an artifact or a program.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// P0001: the bytes do not begin with the magic number.
    NotAnArtifact,
    /// P0002: an artifact of a version that this build does not read.
    Version {
        /// The version in the file.
        found: u32,
        /// The version that this build reads.
        expected: u32,
    },
    /// P0003: the end of the file is missing.
    Truncated {
        /// Bytes found.
        found_bytes: u64,
        /// Bytes by the header.
        expected_bytes: u64,
    },
    /// P0004: the content does not match its hash.
    Altered,
    /// P0005: the hash is right, but the content cannot be read.
    Malformed {
        /// The unreadable part.
        what: String,
    },
    /// P0006: the content can be read, but its parts contradict each other.
    Inconsistent {
        /// The contradicting parts.
        what: String,
    },
    /// P0007: the operating system refused to read or write a file.
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's message.
        message: String,
    },
}

impl Error {
    /// An I/O error at `path`.
    pub fn io(path: &Path, source: &std::io::Error) -> Error {
        Error::Io { path: path.to_owned(), message: source.to_string() }
    }

    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Error::NotAnArtifact => "P0001",
            Error::Version { .. } => "P0002",
            Error::Truncated { .. } => "P0003",
            Error::Altered => "P0004",
            Error::Malformed { .. } => "P0005",
            Error::Inconsistent { .. } => "P0006",
            Error::Io { .. } => "P0007",
        }
    }

    /// Advice for the user.
    pub fn help(&self) -> &'static str {
        match self {
            Error::NotAnArtifact => "give a file that `monopour compile -o` wrote",
            Error::Version { .. } => "compile the model again with this version of monopour",
            Error::Truncated { .. } => "the download or copy was cut short: fetch the file again",
            Error::Altered => "the file was changed after it was written: fetch or compile it again",
            Error::Malformed { .. } | Error::Inconsistent { .. } => {
                "the file was not written by monopour, or by a defective one: compile it again"
            }
            Error::Io { .. } => "check the path and its permissions",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotAnArtifact => write!(f, "not a monopour artifact"),
            Error::Version { found, expected } => {
                write!(f, "artifact version {found} is not understood, expected {expected}")
            }
            Error::Truncated { found_bytes, expected_bytes } => {
                write!(f, "artifact is truncated: found {found_bytes} of {expected_bytes} bytes")
            }
            Error::Altered => write!(f, "artifact is altered: its content hash does not match"),
            Error::Malformed { what } => write!(f, "artifact is malformed: {what}"),
            Error::Inconsistent { what } => write!(f, "program is inconsistent: {what}"),
            Error::Io { path, message } => {
                write!(f, "cannot access `{}`: {message}", path.display())
            }
        }
    }
}

impl std::error::Error for Error {}

/// The form in which errors reach a user: `error[P0003]: ...` and a line of help.
pub fn render(code: &str, message: &dyn fmt::Display, help: &str) -> String {
    if help.is_empty() {
        return format!("error[{code}]: {message}");
    }
    format!("error[{code}]: {message}\n  help: {help}")
}
