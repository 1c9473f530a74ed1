//! Sessions and their runs.

use std::ffi::{CString, c_char};

use monopour_program::DType;
use monopour_runtime::{HostForm, HostTensor};

use crate::device::Device;
use crate::program::Program;
use crate::status::{Failure, guard};
use crate::structs::{Sized, free, give, object, read_sized, slice, text, write_sized};

/// The host function as native code where the program is trusted and was compiled for this architecture, else as data.
pub const MONOPOUR_HOST_AUTO: i32 = 0;
/// The host function as native code.
pub const MONOPOUR_HOST_NATIVE: i32 = 1;
/// The host function as data.
pub const MONOPOUR_HOST_DATA: i32 = 2;

/// Options of a session; 0 is the default of each.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Options {
    /// `sizeof(monopour_options)`.
    pub size: usize,
    /// Threads of the CPU device; 0: one per core.
    pub threads: usize,
    /// The most bytes to take from the device; 0: no limit.
    pub memory_limit: u64,
    /// The most steps of an interpreted host function in one run; 0: none for a trusted program.
    pub host_steps: u64,
    /// The form of the host function: one of `MONOPOUR_HOST_...`.
    pub host: i32,
}

// SAFETY: the first member of the struct is its size, and every pattern of bits is a value.
unsafe impl Sized for Options {
    const FIRST_VERSION: usize = size_of::<Options>();
}

/// A tensor in the memory of the host: row-major, contiguous, little endian.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Tensor {
    /// `sizeof(monopour_tensor)`.
    pub size: usize,
    /// Its element type, as in `monopour_tensor_info`.
    pub dtype: *const c_char,
    /// Number of its dimensions.
    pub rank: usize,
    /// Its sizes.
    pub shape: *const u64,
    /// Its elements.
    pub data: *const u8,
    /// Bytes of its elements.
    pub bytes: usize,
}

// SAFETY: the first member of the struct is its size, and every pattern of bits is a value.
unsafe impl Sized for Tensor {
    const FIRST_VERSION: usize = size_of::<Tensor>();
}

/// A program on a device.
pub struct Session {
    session: monopour_runtime::Session,
}

/// The results of a run.
pub struct Results {
    tensors: Vec<(HostTensor, CString)>,
}

/// Loads a program on a device. `options` may be null. The session keeps what it needs of both.
///
/// # Safety
/// `device` and `program` are a device and a program; `options` is null or a `monopour_options` whose `size` is set; `out` is
/// writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_session_load(
    device: *const Device,
    program: *const Program,
    options: *const Options,
    out: *mut *mut Session,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's word.
        let device = unsafe { object(device, "device") }?;
        // SAFETY: the caller's word.
        let program = unsafe { object(program, "program") }?;
        // SAFETY: the caller's word.
        let options = unsafe { options_of(options) }?;
        let load = || {
            let session = monopour_runtime::Session::load(&device.device, program.program.clone(), &options)?;
            Ok(Session { session })
        };
        // SAFETY: the caller's word.
        unsafe { give(out, load) }
    })
}

/// # Safety
/// `options` is null, or a struct whose `size` is set.
unsafe fn options_of(options: *const Options) -> Result<monopour_runtime::Options, Failure> {
    if options.is_null() {
        return Ok(monopour_runtime::Options::default());
    }
    let defaults = Options { size: 0, threads: 0, memory_limit: 0, host_steps: 0, host: MONOPOUR_HOST_AUTO };
    // SAFETY: passed on.
    let given = unsafe { read_sized(options, defaults) }?;
    let host = match given.host {
        MONOPOUR_HOST_AUTO => HostForm::Auto,
        MONOPOUR_HOST_NATIVE => HostForm::Native,
        MONOPOUR_HOST_DATA => HostForm::Data,
        other => return Err(Failure::argument(format!("{other} is no form of the host function"))),
    };
    Ok(monopour_runtime::Options {
        threads: given.threads.min(1024),
        memory_limit: Some(given.memory_limit).filter(|bytes| *bytes > 0),
        host_steps: Some(given.host_steps).filter(|steps| *steps > 0),
        host,
        ..monopour_runtime::Options::default()
    })
}

/// Runs the program on its inputs, in their order, which are copied, and waits for the results.
///
/// # Safety
/// `session` is a session that no other thread uses; `inputs` points to `inputs_len` tensors whose `size` is set and whose
/// pointers hold what they say; `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_session_run(
    session: *mut Session,
    inputs: *const Tensor,
    inputs_len: usize,
    out: *mut *mut Results,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's word.
        let session = unsafe { session.as_mut() }.ok_or_else(|| Failure::argument("session is null"))?;
        // SAFETY: the caller's word.
        let given = unsafe { inputs_of(inputs, inputs_len) }?;
        let run = || {
            let results = session.session.run(&given)?;
            let dtype = |tensor: &HostTensor| CString::new(tensor.dtype().as_str()).unwrap_or_default();
            let tensors = results.into_iter().map(|tensor| (dtype(&tensor), tensor));
            Ok(Results { tensors: tensors.map(|(dtype, tensor)| (tensor, dtype)).collect() })
        };
        // SAFETY: the caller's word.
        unsafe { give(out, run) }
    })
}

/// The tensors of an array, whose elements may be longer than this version's.
///
/// # Safety
/// As of [`monopour_session_run`].
unsafe fn inputs_of(inputs: *const Tensor, len: usize) -> Result<Vec<HostTensor>, Failure> {
    let mut out = Vec::new();
    let null = std::ptr::null();
    let none = Tensor { size: 0, dtype: std::ptr::null(), rank: 0, shape: std::ptr::null(), data: null, bytes: 0 };
    let mut at = inputs;
    for index in 0..len {
        // SAFETY: the caller's word: the first `len` tensors exist.
        let tensor = unsafe { read_sized(at, none) }?;
        // The caller's elements are as far apart as they are long.
        at = at.cast::<u8>().wrapping_add(tensor.size).cast();
        // SAFETY: the caller's word.
        let name = unsafe { text(tensor.dtype, "a dtype") }?;
        let dtype = DType::parse(name).ok_or_else(|| Failure::argument(format!("`{name}` is no element type")))?;
        let what = format!("input {index}");
        // SAFETY: the caller's word.
        let shape = unsafe { slice(tensor.shape, tensor.rank, &what) }?;
        // SAFETY: the caller's word.
        let data = unsafe { slice(tensor.data, tensor.bytes, &what) }?;
        out.push(HostTensor::new(dtype, shape.to_vec(), data.to_vec())?);
    }
    Ok(out)
}

/// Number of results; 0 of null.
///
/// # Safety
/// `results` is null or the results of a run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_results_len(results: *const Results) -> usize {
    // SAFETY: the caller's word.
    unsafe { results.as_ref() }.map_or(0, |results| results.tensors.len())
}

/// A result, whose memory lives as long as the results.
///
/// # Safety
/// `results` are the results of a run; `out` is a `monopour_tensor` whose `size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_results_get(results: *const Results, index: usize, out: *mut Tensor) -> i32 {
    guard(|| {
        // SAFETY: the caller's word.
        let results = unsafe { object(results, "results") }?;
        let found = results.tensors.get(index);
        let (tensor, dtype) = found.ok_or_else(|| Failure::argument("there is no result of this index"))?;
        let (shape, data) = (tensor.shape(), tensor.data());
        let info = Tensor {
            size: 0,
            dtype: dtype.as_ptr(),
            rank: shape.len(),
            shape: shape.as_ptr(),
            data: data.as_ptr(),
            bytes: data.len(),
        };
        // SAFETY: the caller's word.
        unsafe { write_sized(out, info) }
    })
}

/// Frees the results of a run.
///
/// # Safety
/// `results` is null, or results that were not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_results_free(results: *mut Results) {
    // SAFETY: the caller's word.
    unsafe { free(results) };
}

/// Frees a session.
///
/// # Safety
/// `session` is null, or a session that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_session_free(session: *mut Session) {
    // SAFETY: the caller's word.
    unsafe { free(session) };
}
