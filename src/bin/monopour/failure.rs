//! Failures of a command: message and exit status.

use monopour::{program, runtime};
use std::fmt;

/// Longest line of a message, in characters: quoted input may be of any length.
const MAX_LINE: usize = 2_000;

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
        Self { text: format!("error: {}\n\nFor more information, try '--help'.", text.into()), status: 2 }
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
        f.write_str(&cut_lines(&self.text))
    }
}

/// The text with the middle of long lines left out.
pub fn cut_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(4 * MAX_LINE));
    for line in text.split_inclusive('\n') {
        if line.len() <= MAX_LINE {
            out.push_str(line);
            continue;
        }
        let head = line.floor_char_boundary(MAX_LINE * 3 / 4);
        let tail = line.ceil_char_boundary(line.len() - MAX_LINE / 4);
        out.push_str(&format!("{} [{} bytes] {}", &line[..head], tail - head, &line[tail..]));
    }
    out
}

impl From<monopour::Error> for Failure {
    fn from(error: monopour::Error) -> Self {
        let text = error.to_string();
        if error.is_machine_failure() { Self::machine(text) } else { Self::input(text) }
    }
}

impl From<runtime::Error> for Failure {
    fn from(error: runtime::Error) -> Self {
        monopour::Error::from(error).into()
    }
}

impl From<program::Error> for Failure {
    fn from(error: program::Error) -> Self {
        monopour::Error::from(error).into()
    }
}

impl From<monopour::npy::Error> for Failure {
    fn from(error: monopour::npy::Error) -> Self {
        monopour::Error::from(error).into()
    }
}

#[cfg(feature = "compiler")]
impl From<monopour::Diagnostics> for Failure {
    fn from(diagnostics: monopour::Diagnostics) -> Self {
        monopour::Error::from(diagnostics).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut_in_the_middle() {
        assert_eq!(cut_lines("a\nb\n"), "a\nb\n");
        let text = cut_lines(&format!("error[F0002]: op '{}é' is not supported\n  help: none", "é".repeat(1 << 20)));
        assert!(text.len() < 3_000 && text.starts_with("error[F0002]: op 'é"), "{}", text.len());
        assert!(text.ends_with("é' is not supported\n  help: none") && text.contains(" bytes] "));
    }
}
