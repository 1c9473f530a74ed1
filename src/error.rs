//! One error for all that an application calls.

use crate::{npy, program, runtime};
use std::fmt;

/// A failure of compiling, loading or running a model; what the crate's functions return converts into it by `?`.
///
/// `Display` is the form of the command line: `error[R0007]: ...`, and a line of advice.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The model cannot be compiled.
    #[cfg(feature = "compiler")]
    Compile(crate::Diagnostics),
    /// The program cannot be loaded or run.
    Run(runtime::Error),
    /// A file is no tensor.
    Npy(npy::Error),
}

impl Error {
    /// The stable code, of the first diagnostic if there are several; `docs/errors/` has a page for each.
    pub fn code(&self) -> &'static str {
        match self {
            #[cfg(feature = "compiler")]
            Error::Compile(diagnostics) => diagnostics.0.first().map_or("I0001", |diagnostic| diagnostic.code),
            Error::Run(error) => error.code(),
            Error::Npy(error) => error.code(),
        }
    }

    /// Whether the device or the machine failed, not the input.
    pub fn is_machine_failure(&self) -> bool {
        matches!(self, Error::Run(error) if error.is_machine_failure())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            #[cfg(feature = "compiler")]
            Error::Compile(diagnostics) => return fmt_diagnostics(f, self.code(), diagnostics),
            Error::Run(error) => program::error::render(error.code(), error, error.help()),
            Error::Npy(error) => program::error::render(error.code(), error, error.help()),
        };
        f.write_str(&text)
    }
}

#[cfg(feature = "compiler")]
fn fmt_diagnostics(f: &mut fmt::Formatter<'_>, code: &str, diagnostics: &crate::Diagnostics) -> fmt::Result {
    write!(f, "{diagnostics}")?;
    let has_hint = diagnostics.0.iter().any(|diagnostic| diagnostic.help.is_some());
    match code {
        _ if has_hint => Ok(()),
        // MLIR's own diagnostics have none.
        "I0001" => write!(f, "\n  help: give MLIR that `mlir-opt` of LLVM 22 accepts"),
        _ => write!(f, "\n  help: docs/errors/{code}.md says what to do"),
    }
}

impl std::error::Error for Error {}

#[cfg(feature = "compiler")]
impl From<crate::Diagnostics> for Error {
    fn from(diagnostics: crate::Diagnostics) -> Self {
        Self::Compile(diagnostics)
    }
}

impl From<runtime::Error> for Error {
    fn from(error: runtime::Error) -> Self {
        Self::Run(error)
    }
}

impl From<program::Error> for Error {
    fn from(error: program::Error) -> Self {
        Self::Run(error.into())
    }
}

impl From<npy::Error> for Error {
    fn from(error: npy::Error) -> Self {
        Self::Npy(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_shown_with_code_and_advice() {
        let error = Error::from(program::Error::NotAnArtifact);
        assert_eq!((error.code(), error.is_machine_failure()), ("P0001", false));
        let text = "error[P0001]: not a monopour artifact\n  help: give a file that `monopour compile -o` wrote";
        assert_eq!(error.to_string(), text);
        assert!(Error::from(runtime::Error::NoAdapter).is_machine_failure());
    }
}
