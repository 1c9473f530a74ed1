//! Statuses, the last error of a thread, and the wall that no panic crosses.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::structs::{Sized, write_sized};

/// Success.
pub const MONOPOUR_OK: i32 = 0;
/// Added to the number of a P code.
pub const MONOPOUR_P: i32 = 1000;
/// An argument is null, out of range, or a text that is not UTF-8.
pub const MONOPOUR_ARGUMENT: i32 = 2001;
/// A struct's size is less than that of its first version.
pub const MONOPOUR_STRUCT_SIZE: i32 = 2002;
/// A defect of the library: please report it.
pub const MONOPOUR_PANIC: i32 = 2003;

/// An error with its texts, which live until the next call of a function that can fail on this thread.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ErrorInfo {
    /// `sizeof(monopour_error)`.
    pub size: usize,
    /// The status that the function returned.
    pub status: i32,
    /// The code, such as `R0019`; of this interface's own errors, empty.
    pub code: *const c_char,
    /// What is wrong.
    pub message: *const c_char,
    /// What to do about it; may be empty.
    pub help: *const c_char,
}

// SAFETY: the first member of the struct is its size, and every pattern of bits is a value.
unsafe impl Sized for ErrorInfo {
    const FIRST_VERSION: usize = size_of::<ErrorInfo>();
}

/// A failed call.
pub(crate) struct Failure {
    status: i32,
    code: String,
    message: String,
    help: String,
}

impl Failure {
    /// An argument that the caller got wrong.
    pub(crate) fn argument(message: impl Into<String>) -> Failure {
        Failure::own(MONOPOUR_ARGUMENT, message, "see monopour.h")
    }

    pub(crate) fn struct_size(found: usize, expected: usize) -> Failure {
        let message = format!("a struct of {found} bytes, expected {expected} or more");
        Failure::own(MONOPOUR_STRUCT_SIZE, message, "set its member `size` to its `sizeof`")
    }

    fn own(status: i32, message: impl Into<String>, help: &str) -> Failure {
        Failure { status, code: String::new(), message: message.into(), help: help.into() }
    }
}

impl From<monopour_runtime::Error> for Failure {
    fn from(error: monopour_runtime::Error) -> Failure {
        Failure {
            status: number(error.code()),
            code: error.code().into(),
            message: error.to_string(),
            help: error.help().into(),
        }
    }
}

impl From<monopour_program::Error> for Failure {
    fn from(error: monopour_program::Error) -> Failure {
        monopour_runtime::Error::from(error).into()
    }
}

/// The status of a code.
fn number(code: &str) -> i32 {
    let digits = code.get(1..).and_then(|digits| digits.parse::<i32>().ok());
    match (code.chars().next(), digits) {
        (Some('R'), Some(number)) => number,
        (Some('P'), Some(number)) => MONOPOUR_P + number,
        _ => MONOPOUR_PANIC,
    }
}

#[derive(Default)]
struct Last {
    status: i32,
    texts: [CString; 3],
}

thread_local! {
    static LAST: RefCell<Last> = RefCell::default();
}

fn keep(failure: Failure) -> i32 {
    let text = |text: String| CString::new(text.replace('\0', " ")).unwrap_or_default();
    let last = Last { status: failure.status, texts: [failure.code, failure.message, failure.help].map(text) };
    LAST.with(|cell| cell.replace(last));
    failure.status
}

/// Runs `f`; its failure, or its panic, becomes the last error of the thread.
pub(crate) fn guard(f: impl FnOnce() -> Result<(), Failure>) -> i32 {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(())) => MONOPOUR_OK,
        Ok(Err(failure)) => keep(failure),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            keep(Failure::own(MONOPOUR_PANIC, format!("a defect of monopour: {text}"), "please report it"))
        }
    }
}

/// The last error of this thread. Until a call fails, its status is 0 and its texts are empty.
///
/// # Safety
/// `out` is a `monopour_error` whose `size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_last_error(out: *mut ErrorInfo) -> i32 {
    let info = LAST.with_borrow(|last| {
        let [code, message, help] = last.texts.each_ref().map(|text| text.as_ptr());
        ErrorInfo { size: 0, status: last.status, code, message, help }
    });
    // The error stays the last one if `out` is wrong: nothing is kept.
    // SAFETY: passed on.
    unsafe { write_sized(out, info) }.map_or_else(|failure| failure.status, |()| MONOPOUR_OK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_status_with_its_text() {
        assert_eq!(guard(|| panic!("row {}", 7)), MONOPOUR_PANIC);
        LAST.with_borrow(|last| {
            assert_eq!(last.status, MONOPOUR_PANIC);
            assert_eq!(last.texts[1].to_str(), Ok("a defect of monopour: row 7"));
        });
        assert_eq!(guard(|| Ok(())), MONOPOUR_OK);
    }

    #[test]
    fn statuses_are_the_numbers_of_the_codes() {
        assert_eq!((number("R0019"), number("P0004"), number("X1")), (19, 1004, MONOPOUR_PANIC));
    }
}
