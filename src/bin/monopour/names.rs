//! File names of inputs and results, and arguments that are part name, part path.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Longest name in a file system, in bytes, less those of `.npy` and of the temporary file beside it.
const MAX_NAME_BYTES: usize = 200;
/// Characters that some system takes for a separator of paths; ONNX's exporters use them.
const SEPARATORS: [char; 3] = ['/', '\\', ':'];

/// The file of a tensor in a folder: `NAME.npy`, with `_` for each character that separates paths.
///
/// R0030 for a name that leads out of the folder, or that no file can have.
pub fn file_in(folder: &Path, name: &str) -> Result<PathBuf, Failure> {
    let is_plain = !name.is_empty() && !name.starts_with('.') && name.len() <= MAX_NAME_BYTES;
    if is_plain && !name.contains(char::is_control) {
        return Ok(folder.join(format!("{}.npy", name.replace(SEPARATORS, "_"))));
    }
    Err(Failure::input(format!(
        "error[R0030]: {name:?} cannot be the name of a file in `{}`\n  help: give the argument or result another `monopour.name`, of at most {MAX_NAME_BYTES} bytes, and not beginning with a dot",
        folder.display()
    )))
}

/// Refuses names that no files in `folder` can have, or of which two would be one file.
pub fn check_files<'a>(folder: &Path, names: impl IntoIterator<Item = &'a str>) -> Result<(), Failure> {
    let mut files: HashMap<PathBuf, &str> = HashMap::new();
    for name in names {
        let file = file_in(folder, name)?;
        if let Some(other) = files.insert(file.clone(), name) {
            return Err(Failure::input(format!(
                "error[R0030]: {other:?} and {name:?} would both be `{}`\n  help: give one of them another `monopour.name`",
                file.display()
            )));
        }
    }
    Ok(())
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
        for (name, file) in [("/x", "_x"), ("a/../b", "a_.._b"), ("C:\\x", "C__x"), ("gpu_0/data_0", "gpu_0_data_0")] {
            assert_eq!(file_in(folder, name).unwrap(), folder.join(format!("{file}.npy")));
        }
        for name in ["", "..", "../x", ".x", "a\0", "a\nb", &"n".repeat(201)] {
            let error = file_in(folder, name).unwrap_err();
            assert!(error.to_string().starts_with("error[R0030]: ") && error.status() == 1, "{error}");
        }
    }

    #[test]
    fn two_names_are_two_files() {
        assert!(check_files(Path::new("out"), ["a/b", "a-b", "a"]).is_ok());
        let error = check_files(Path::new("out"), ["a/b", "x", "a_b"]).unwrap_err().to_string();
        assert!(error.starts_with("error[R0030]: \"a/b\" and \"a_b\" would both be `out/a_b.npy`"), "{error}");
    }

    #[test]
    fn arguments_are_split_at_the_first_separator() {
        assert_eq!(split_once(OsStr::new("x=a=b"), '='), Some(("x", PathBuf::from("a=b"))));
        assert_eq!(split_once(OsStr::new("x"), '='), None);
    }
}
