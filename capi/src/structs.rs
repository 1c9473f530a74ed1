//! Structs that begin with their size, so that later versions can add members: each side reads and writes what both know.

use std::ffi::{CStr, c_char};

use crate::status::Failure;

/// A struct of the interface.
///
/// # Safety
/// Its first member is a `usize`, its size in bytes; it is `repr(C)`, and every pattern of bits is a value of it.
pub(crate) unsafe trait Sized: Copy {
    /// Bytes of its first version: no caller has less.
    const FIRST_VERSION: usize;
}

/// Writes the members that the caller knows of. The caller's size stays.
///
/// # Safety
/// `out` is null or points to a struct whose first member is its size, and which is writable for that many bytes.
pub(crate) unsafe fn write_sized<T: Sized>(out: *mut T, value: T) -> Result<(), Failure> {
    // SAFETY: passed on.
    let size = unsafe { size_of_caller::<T>(out) }?;
    let skipped = size_of::<usize>();
    let bytes = size.min(size_of::<T>()) - skipped;
    let from = (&raw const value).cast::<u8>().wrapping_add(skipped);
    let to = out.cast::<u8>().wrapping_add(skipped);
    // SAFETY: `value` has `size_of::<T>()` bytes, `out` has `size` (the caller's word), and both sums are within.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
    Ok(())
}

/// Reads the members that the caller knows of; the others are those of `defaults`.
///
/// # Safety
/// As [`write_sized`], for reading.
pub(crate) unsafe fn read_sized<T: Sized>(from: *const T, defaults: T) -> Result<T, Failure> {
    // SAFETY: passed on.
    let size = unsafe { size_of_caller::<T>(from) }?;
    let mut value = defaults;
    let bytes = size.min(size_of::<T>());
    // SAFETY: both have that many bytes, and every pattern of bits is a value (the trait's contract).
    unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), (&raw mut value).cast::<u8>(), bytes) };
    Ok(value)
}

/// # Safety
/// `at` is null or points to a struct whose first member is its size.
unsafe fn size_of_caller<T: Sized>(at: *const T) -> Result<usize, Failure> {
    if at.is_null() || !at.is_aligned() {
        return Err(Failure::argument("a struct is null or not aligned"));
    }
    // SAFETY: checked above; the first member is a `usize` (the trait's contract).
    let size = unsafe { at.cast::<usize>().read() };
    if size < T::FIRST_VERSION { Err(Failure::struct_size(size, T::FIRST_VERSION)) } else { Ok(size) }
}

/// What a pointer of the caller points to.
///
/// # Safety
/// `at` is null, or points to a live object that no one changes meanwhile.
pub(crate) unsafe fn object<'a, T>(at: *const T, what: &str) -> Result<&'a T, Failure> {
    // SAFETY: passed on.
    unsafe { at.as_ref() }.ok_or_else(|| Failure::argument(format!("{what} is null")))
}

/// The elements that a pointer of the caller points to; none for null and 0.
///
/// # Safety
/// `at` is null, or points to `len` live elements that no one changes meanwhile.
pub(crate) unsafe fn slice<'a, T>(at: *const T, len: usize, what: &str) -> Result<&'a [T], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    check_range(at, len, what)?;
    // SAFETY: checked above, the rest is passed on.
    Ok(unsafe { std::slice::from_raw_parts(at, len) })
}

/// The elements that a pointer of the caller points to, to write; none for null and 0.
///
/// # Safety
/// `at` is null, or points to `len` elements that no one else reads or writes meanwhile.
pub(crate) unsafe fn slice_mut<'a, T>(at: *mut T, len: usize, what: &str) -> Result<&'a mut [T], Failure> {
    if len == 0 {
        return Ok(&mut []);
    }
    check_range(at, len, what)?;
    // SAFETY: checked above, the rest is passed on.
    Ok(unsafe { std::slice::from_raw_parts_mut(at, len) })
}

fn check_range<T>(at: *const T, len: usize, what: &str) -> Result<(), Failure> {
    let too_long = len.checked_mul(size_of::<T>()).is_none_or(|bytes| bytes > isize::MAX as usize);
    if at.is_null() || !at.is_aligned() || too_long {
        return Err(Failure::argument(format!("{what} is null, not aligned, or longer than any memory")));
    }
    Ok(())
}

/// A text of the caller.
///
/// # Safety
/// `at` is null, or points to bytes that end with a zero.
pub(crate) unsafe fn text<'a>(at: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if at.is_null() {
        return Err(Failure::argument(format!("{what} is null")));
    }
    // SAFETY: passed on.
    let text = unsafe { CStr::from_ptr(at) };
    text.to_str().map_err(|_| Failure::argument(format!("{what} is not UTF-8")))
}

/// Gives an object to the caller.
///
/// # Safety
/// `out` is null or writable.
pub(crate) unsafe fn give<T>(out: *mut *mut T, make: impl FnOnce() -> Result<T, Failure>) -> Result<(), Failure> {
    if out.is_null() || !out.is_aligned() {
        return Err(Failure::argument("out is null or not aligned"));
    }
    // So that a failed call leaves nothing to free.
    // SAFETY: checked above.
    unsafe { out.write(std::ptr::null_mut()) };
    let made = Box::into_raw(Box::new(make()?));
    // SAFETY: as above.
    unsafe { out.write(made) };
    Ok(())
}

/// Frees an object that [`give`] gave.
///
/// # Safety
/// `object` is null, or was given and not freed since.
pub(crate) unsafe fn free<T>(object: *mut T) {
    if !object.is_null() {
        // SAFETY: passed on. What the drop may panic with is no more than a leak to the caller.
        let owned = unsafe { Box::from_raw(object) };
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(owned)));
    }
}
