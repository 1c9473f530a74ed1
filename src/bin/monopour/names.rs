//! File names of inputs and results, and arguments that are part name, part path.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Longest name in a file system, in bytes, less those of `.npy` and of the temporary file beside it.
const MAX_NAME_BYTES: usize = 200;

/// The file of a tensor in a folder.
///
/// R0030 for a name that leads out of the folder, or that no file can have.
pub fn file_in(folder: &Path, name: &str) -> Result<PathBuf, Failure> {
    let is_plain = !name.is_empty() && !name.starts_with('.') && name.len() <= MAX_NAME_BYTES;
    let is_forbidden = |c: char| c.is_control() || ['/', '\\', ':'].contains(&c);
    if is_plain && !name.contains(is_forbidden) {
        return Ok(folder.join(format!("{name}.npy")));
    }
    Err(Failure::input(format!(
        "error[R0030]: {name:?} cannot be the name of a file in `{}`\n  help: give the argument or result another `monopour.name`, of at most {MAX_NAME_BYTES} bytes, without `/`, `\\`, `:`, and not beginning with a dot",
        folder.display()
    )))
}

/// An argument's text before the first `separator`, and the path behind it, which need not be UTF-8.
pub fn split_once(argument: &OsStr, separator: char) -> Option<(&str, PathBuf)> {
    let bytes = argument.as_encoded_bytes();
    let at = bytes.iter().position(|byte| char::from(*byte) == separator)?;
    let name = std::str::from_utf8(&bytes[..at]).ok()?;
    Some((name, path(&bytes[at + 1..])?))
}

#[cfg(unix)]
fn path(bytes: &[u8]) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    Some(PathBuf::from(OsStr::from_bytes(bytes)))
}

#[cfg(not(unix))]
fn path(bytes: &[u8]) -> Option<PathBuf> {
    std::str::from_utf8(bytes).ok().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_within_their_folder() {
        let folder = Path::new("out");
        assert_eq!(file_in(folder, "a b.c").unwrap(), Path::new("out/a b.c.npy"));
        for name in ["", "..", "../x", "/x", "a/b", "a\\b", ".x", "a\0", "a\nb", "C:x", &"n".repeat(201)] {
            let error = file_in(folder, name).unwrap_err();
            assert!(error.to_string().starts_with("error[R0030]: ") && error.status() == 1, "{error}");
        }
    }

    #[test]
    fn arguments_are_split_at_the_first_separator() {
        assert_eq!(split_once(OsStr::new("x=a=b"), '='), Some(("x", PathBuf::from("a=b"))));
        assert_eq!(split_once(OsStr::new("x"), '='), None);
    }
}
