//! Programs.

use std::ffi::{CString, c_char};
use std::path::Path;
use std::sync::Arc;

use monopour_program::TensorDesc;

use crate::status::{Failure, guard};
use crate::structs::{Sized, free, give, object, slice, text, write_sized};

/// A compiled program: an artifact (`.mpr`).
pub struct Program {
    pub(crate) program: Arc<monopour_program::Program>,
    /// Inputs, then results.
    infos: Vec<Info>,
}

/// What [`TensorInfo`] points to.
struct Info {
    name: CString,
    dtype: CString,
    shape: Vec<u64>,
}

/// An input or a result. Its texts and sizes live as long as the program.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TensorInfo {
    /// `sizeof(monopour_tensor_info)`.
    pub size: usize,
    /// Its name.
    pub name: *const c_char,
    /// Its element type: `f32`, `i64`, `bf16`, `ui8`, `i1` (a byte, 0 or 1), `index` (as i64), ...
    pub dtype: *const c_char,
    /// Number of its dimensions; 0 for a single element, and for a number.
    pub rank: usize,
    /// Its sizes; UINT64_MAX for one that varies by run.
    pub shape: *const u64,
    /// 1 if the program may overwrite it.
    pub is_donated: u8,
    /// 1 if it is a number rather than a tensor.
    pub is_scalar: u8,
}

// SAFETY: the first member of the struct is its size, and every pattern of bits is a value.
unsafe impl Sized for TensorInfo {
    const FIRST_VERSION: usize = size_of::<TensorInfo>();
}

fn wrap(program: monopour_program::Program) -> Program {
    let text = |text: &str| CString::new(text.replace('\0', " ")).unwrap_or_default();
    let tensors = program.signature.inputs.iter().chain(&program.signature.results);
    let info = |tensor: &TensorDesc| Info {
        name: text(&tensor.name),
        dtype: text(tensor.dtype.as_str()),
        shape: tensor.shape.clone(),
    };
    let infos = tensors.map(info).collect();
    Program { program: Arc::new(program), infos }
}

/// Opens an artifact; its constants stay in the mapped file. It is not trusted.
///
/// # Safety
/// `path` ends with a zero; `out` is writable. No one changes the file while the program lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_program_open(path: *const c_char, out: *mut *mut Program) -> i32 {
    guard(|| {
        // SAFETY: the caller's word, for both.
        let path = unsafe { text(path, "path") }?;
        // SAFETY: as above.
        unsafe { give(out, || Ok(wrap(monopour_program::Program::open(Path::new(path))?))) }
    })
}

/// Decodes an artifact in memory, which is copied. It is not trusted.
///
/// # Safety
/// `bytes` points to `len` bytes; `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_program_decode(bytes: *const u8, len: usize, out: *mut *mut Program) -> i32 {
    guard(|| {
        // SAFETY: the caller's word, for both.
        let bytes = unsafe { slice(bytes, len, "bytes") }?;
        // SAFETY: as above.
        unsafe { give(out, || Ok(wrap(monopour_program::Program::decode(bytes)?))) }
    })
}

/// Vouches for a program: its native code may run in this process, and its SPIR-V goes to the driver unchecked. Without it a
/// program runs on GPUs only. Call it for files that you know the origin of, before sessions are loaded.
///
/// # Safety
/// The file was written by monopour, and by no one else since; no other thread uses the program meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_program_trust(program: *mut Program) -> i32 {
    guard(|| {
        // SAFETY: the caller's word.
        let program = unsafe { program.as_mut() }.ok_or_else(|| Failure::argument("program is null"))?;
        let copy = (*program.program).clone();
        // SAFETY: the caller's word.
        program.program = Arc::new(unsafe { copy.trust() });
        Ok(())
    })
}

/// 1 if someone vouched for the program, else 0.
///
/// # Safety
/// `program` is null or a program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_program_is_trusted(program: *const Program) -> i32 {
    let mut trusted = false;
    guard(|| {
        // SAFETY: the caller's word.
        trusted = unsafe { object(program, "program") }?.program.is_trusted();
        Ok(())
    });
    i32::from(trusted)
}

/// Number of inputs; 0 of null.
///
/// # Safety
/// `program` is null or a program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_program_inputs(program: *const Program) -> usize {
    // SAFETY: the caller's word.
    unsafe { program.as_ref() }.map_or(0, |program| program.program.signature.inputs.len())
}

/// Number of results; 0 of null.
///
/// # Safety
/// `program` is null or a program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_program_results(program: *const Program) -> usize {
    // SAFETY: the caller's word.
    unsafe { program.as_ref() }.map_or(0, |program| program.program.signature.results.len())
}

/// Describes an input.
///
/// # Safety
/// `program` is a program; `out` is a `monopour_tensor_info` whose `size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_program_input(program: *const Program, index: usize, out: *mut TensorInfo) -> i32 {
    guard(|| {
        // SAFETY: the caller's word.
        let program = unsafe { object(program, "program") }?;
        let desc = program.program.signature.inputs.get(index).map(|desc| (desc, index));
        // SAFETY: the caller's word.
        unsafe { describe(program, desc, out) }
    })
}

/// Describes a result.
///
/// # Safety
/// `program` is a program; `out` is a `monopour_tensor_info` whose `size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_program_result(program: *const Program, index: usize, out: *mut TensorInfo) -> i32 {
    guard(|| {
        // SAFETY: the caller's word.
        let program = unsafe { object(program, "program") }?;
        let signature = &program.program.signature;
        let desc = signature.results.get(index).map(|desc| (desc, signature.inputs.len() + index));
        // SAFETY: the caller's word.
        unsafe { describe(program, desc, out) }
    })
}

/// # Safety
/// `out` is null, or a struct whose `size` is set.
unsafe fn describe(program: &Program, desc: Option<(&TensorDesc, usize)>, out: *mut TensorInfo) -> Result<(), Failure> {
    let (desc, at) = desc.ok_or_else(|| Failure::argument("there is no input or result of this index"))?;
    let Info { name, dtype, shape } = &program.infos[at];
    let info = TensorInfo {
        size: 0,
        name: name.as_ptr(),
        dtype: dtype.as_ptr(),
        rank: shape.len(),
        shape: shape.as_ptr(),
        is_donated: u8::from(desc.donated),
        is_scalar: u8::from(desc.scalar),
    };
    // SAFETY: passed on.
    unsafe { write_sized(out, info) }
}

/// Frees a program. Its sessions go on.
///
/// # Safety
/// `program` is null, or a program that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_program_free(program: *mut Program) {
    // SAFETY: the caller's word.
    unsafe { free(program) };
}
