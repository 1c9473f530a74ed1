//! How a command fails: what to print and with which exit status.

use monopour::{program, runtime};
use std::fmt;

/// A failed command.
#[derive(Debug)]
pub struct Failure {
    text: String,
    status: u8,
}

impl Failure {
    /// The input is wrong: status 1.
    pub fn input(text: impl Into<String>) -> Self {
        Self { text: text.into(), status: 1 }
    }
    /// The command line is wrong: status 2.
    pub fn usage(text: impl Into<String>) -> Self {
        Self { text: format!("error: {}", text.into()), status: 2 }
    }
    /// The device or the machine failed: status 3.
    pub fn machine(text: impl Into<String>) -> Self {
        Self { text: text.into(), status: 3 }
    }
    /// The exit status.
    pub fn status(&self) -> u8 {
        self.status
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<runtime::Error> for Failure {
    fn from(error: runtime::Error) -> Self {
        let text = program::error::render(error.code(), &error, error.help());
        if error.is_machine_failure() { Self::machine(text) } else { Self::input(text) }
    }
}

impl From<program::Error> for Failure {
    fn from(error: program::Error) -> Self {
        Self::input(program::error::render(error.code(), &error, error.help()))
    }
}

impl From<monopour::npy::Error> for Failure {
    fn from(error: monopour::npy::Error) -> Self {
        Self::input(program::error::render(error.code(), &error, error.help()))
    }
}

#[cfg(feature = "compiler")]
impl From<monopour::Diagnostics> for Failure {
    fn from(diagnostics: monopour::Diagnostics) -> Self {
        Self::input(diagnostics.to_string())
    }
}
