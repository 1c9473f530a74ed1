//! Standard output, which a reader may close: `monopour inspect m.mpr | head` ends quietly.

use std::fmt::Display;
use std::io::{ErrorKind, Write};

use crate::failure::Failure;

/// Prints `text` with a newline at its end.
pub fn print(text: &impl Display) -> Result<(), Failure> {
    let mut text = text.to_string();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // The reader has closed the pipe: not a failure.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::machine(format!("error: cannot write to standard output: {error}"))),
        Ok(()) => Ok(()),
    }
}
