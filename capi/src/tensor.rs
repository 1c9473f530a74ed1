//! Tensors, and the results of runs.

use std::ffi::{CString, c_char};

use monopour_program::DType;
use monopour_runtime::{HostSlice, HostTensor};

use crate::status::{Failure, guard};
use crate::structs::{Sized, free, object, read_sized, slice, text, write_sized};

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

/// Memory of the caller for a result: row-major, contiguous, little endian. It overlaps neither another place nor an
/// input.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Place {
    /// `sizeof(monopour_place)`.
    pub size: usize,
    /// Where the elements go.
    pub data: *mut u8,
    /// In: bytes that fit there; what the result does not need stays as it is. Out: bytes of the result.
    pub bytes: usize,
    /// Where the sizes of the dimensions go, or null.
    pub shape: *mut u64,
    /// In: sizes that fit there. Out: dimensions of the result.
    pub rank: usize,
}

// SAFETY: the first member of the struct is its size, and every pattern of bits is a value.
unsafe impl Sized for Place {
    const FIRST_VERSION: usize = size_of::<Place>();
}

/// The places of an array, with where they are.
///
/// # Safety
/// `places` points to `len` places whose `size` is set.
pub(crate) unsafe fn places_of(places: *mut Place, len: usize) -> Result<Vec<(*mut Place, Place)>, Failure> {
    let null = std::ptr::null_mut();
    let none = Place { size: 0, data: null, bytes: 0, shape: std::ptr::null_mut(), rank: 0 };
    let mut at = places;
    let mut out = Vec::new();
    for _ in 0..len {
        // SAFETY: the caller's word: the first `len` places exist.
        let place = unsafe { read_sized(at, none) }?;
        out.push((at, place));
        // The caller's elements are as far apart as they are long.
        at = at.cast::<u8>().wrapping_add(place.size).cast();
    }
    Ok(out)
}

/// The results of a run.
pub struct Results {
    tensors: Vec<(HostTensor, CString)>,
}

impl Results {
    pub(crate) fn new(tensors: Vec<HostTensor>) -> Results {
        let dtype = |tensor: &HostTensor| CString::new(tensor.dtype().as_str()).unwrap_or_default();
        Results { tensors: tensors.into_iter().map(|tensor| (dtype(&tensor), tensor)).map(|(d, t)| (t, d)).collect() }
    }
}

/// The tensors of an array, whose elements may be longer than this version's.
///
/// # Safety
/// `inputs` points to `len` tensors whose `size` is set, and whose pointers hold what they say for `'a`.
pub(crate) unsafe fn inputs_of<'a>(inputs: *const Tensor, len: usize) -> Result<Vec<HostSlice<'a>>, Failure> {
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
        out.push(HostSlice::new(dtype, shape, data)?);
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
