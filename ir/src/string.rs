//! Strings across the C boundary.

use mlir_sys::MlirStringRef;
use std::ffi::c_void;

/// Borrows a Rust string for one call.
pub(crate) fn to_ref(text: &str) -> MlirStringRef {
    MlirStringRef { data: text.as_ptr().cast(), length: text.len() }
}

/// Borrows a string that MLIR returned; `'a` is chosen by the caller, who knows the owner (an identifier or attribute of a context).
pub(crate) fn from_ref<'a>(text: MlirStringRef) -> &'a str {
    if text.length == 0 {
        return "";
    }
    // SAFETY: MLIR returned a pointer and length of a live, uniqued string.
    let bytes = unsafe { std::slice::from_raw_parts(text.data.cast::<u8>(), text.length) };
    std::str::from_utf8(bytes).unwrap_or("<not UTF-8>")
}

/// Copies bytes that MLIR returned.
pub(crate) fn bytes_of<'a>(text: MlirStringRef) -> &'a [u8] {
    if text.length == 0 {
        return &[];
    }
    // SAFETY: as in `from_ref`.
    unsafe { std::slice::from_raw_parts(text.data.cast::<u8>(), text.length) }
}

/// The `MlirStringCallback` that appends to a `Vec<u8>`.
pub(crate) extern "C" fn append(chunk: MlirStringRef, user: *mut c_void) {
    // SAFETY: `user` is the `Vec<u8>` that `collect` passes down, alive during the call.
    let out = unsafe { &mut *user.cast::<Vec<u8>>() };
    out.extend_from_slice(bytes_of(chunk));
}

/// Runs a printer that takes (callback, user data) and returns its text.
pub(crate) fn collect(print: impl FnOnce(mlir_sys::MlirStringCallback, *mut c_void)) -> String {
    String::from_utf8_lossy(&collect_bytes(print)).into_owned()
}

/// As [`collect`], for bytecode.
pub(crate) fn collect_bytes(print: impl FnOnce(mlir_sys::MlirStringCallback, *mut c_void)) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::new();
    print(Some(append), (&raw mut out).cast());
    out
}
