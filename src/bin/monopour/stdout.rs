//! Standard output, where a reader may stop reading: `monopour inspect m.mpr | head` ends quietly.

use std::fmt::Display;
use std::io::{ErrorKind, Write};

use crate::failure::Failure;

/// Prints `text` and ends the line, unless it ends one itself.
pub fn print(text: &impl Display) -> Result<(), Failure> {
    let mut text = text.to_string();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // Nobody reads any more: all that was asked for was given.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::machine(format!("error: cannot write to standard output: {error}"))),
        Ok(()) => Ok(()),
    }
}
