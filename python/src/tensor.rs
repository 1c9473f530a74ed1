//! Results as Python objects, by the array interface and DLPack, without a copy; arrays as inputs.
#![allow(unsafe_code, reason = "DLPack is a C interface, and arrays are addresses")]

use std::ffi::{CStr, c_void};

use monopour_program::{DType, TensorDesc};
use monopour_runtime::HostTensor;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// A tensor in the memory of the host.
#[pyclass(frozen, module = "monopour")]
pub struct Tensor {
    tensor: HostTensor,
    shape: Vec<i64>,
}

impl Tensor {
    pub fn new(tensor: HostTensor) -> Tensor {
        let shape = tensor.shape().iter().map(|size| i64::try_from(*size).unwrap_or(i64::MAX)).collect();
        Tensor { tensor, shape }
    }

    /// Its elements, or an address that no one reads if there are none.
    fn address(&self) -> *const u8 {
        self.tensor.data().as_ptr()
    }
}

/// NumPy's name of a type. It has none for bf16, which is two bytes: `.view(ml_dtypes.bfloat16)`.
fn typestr(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::Bf16 => "|V2",
        DType::I1 => "|b1",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 | DType::Index => "<i8",
        DType::U8 => "|u1",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
    }
}

#[pymethods]
impl Tensor {
    #[getter]
    fn dtype(&self) -> &'static str {
        self.tensor.dtype().as_str()
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    /// NumPy's view of the memory, which it keeps this object alive for. Read-only: the object is shared.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("shape", self.shape(py)?)?;
        interface.set_item("typestr", typestr(self.tensor.dtype()))?;
        interface.set_item("data", (self.address() as usize, true))?;
        interface.set_item("version", 3)?;
        Ok(interface)
    }

    /// The CPU, in DLPack's numbers.
    fn __dlpack_device__(&self) -> (i32, i32) {
        (dlpack::CPU, 0)
    }

    /// The memory as a DLPack capsule; consumers must not write to it.
    #[pyo3(signature = (**_keywords))]
    fn __dlpack__<'py>(slf: Bound<'py, Self>, _keywords: Option<Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let tensor = slf.get();
        let dtype = dlpack::dtype(tensor.tensor.dtype());
        let dtype = dtype.ok_or_else(|| PyBufferError::new_err("DLPack has no such element type"))?;
        let managed = Box::new(dlpack::Managed {
            tensor: dlpack::Tensor {
                data: tensor.address().cast_mut().cast(),
                device: dlpack::Device { kind: dlpack::CPU, id: 0 },
                ndim: tensor.shape.len() as i32,
                dtype,
                shape: tensor.shape.as_ptr().cast_mut(),
                strides: std::ptr::null_mut(),
                byte_offset: 0,
            },
            context: slf.clone().into_ptr().cast(),
            deleter: Some(dlpack::delete),
        });
        let managed = Box::into_raw(managed);
        // SAFETY: the capsule owns `managed` until a consumer takes it, which renames the capsule.
        let capsule = unsafe { ffi::PyCapsule_New(managed.cast(), dlpack::NAME.as_ptr(), Some(dlpack::drop_capsule)) };
        if capsule.is_null() {
            // SAFETY: no one else has it.
            unsafe { dlpack::delete(managed) };
        }
        // SAFETY: a new reference, or null with an exception set.
        unsafe { Bound::from_owned_ptr_or_err(py, capsule) }
    }

    fn __repr__(&self) -> String {
        format!("<monopour.Tensor {} {:?}>", self.tensor.dtype(), self.shape)
    }
}

/// A C-contiguous array as an input of this description: its elements are copied.
pub fn input(array: &Bound<'_, PyAny>, desc: Option<&TensorDesc>) -> PyResult<HostTensor> {
    let interface = array.getattr("__array_interface__")?;
    let interface = interface.cast::<PyDict>()?;
    let item = |name: &str| {
        interface.get_item(name)?.ok_or_else(|| PyValueError::new_err(format!("the array interface has no {name}")))
    };
    let shape: Vec<u64> = item("shape")?.extract()?;
    let text: String = item("typestr")?.extract()?;
    let is_contiguous = interface.get_item("strides")?.is_none_or(|strides| strides.is_none());
    if !is_contiguous {
        return Err(PyValueError::new_err("an array is not contiguous"));
    }
    let dtype = input_dtype(&text, desc)?;
    let (address, _): (usize, bool) = item("data")?.extract()?;
    let bytes = shape.iter().try_fold(dtype.size_bytes(), |bytes, size| bytes.checked_mul(*size));
    let bytes = bytes.and_then(|bytes| isize::try_from(bytes).ok()).unwrap_or(isize::MAX) as usize;
    let data = if bytes == 0 {
        Vec::new()
    } else if address == 0 {
        return Err(PyValueError::new_err("an array has no memory"));
    } else {
        // SAFETY: by the array interface, a contiguous array has its elements at this address as long as it lives, and
        // the caller holds it.
        unsafe { std::slice::from_raw_parts(address as *const u8, bytes) }.to_vec()
    };
    HostTensor::new(dtype, shape, data).map_err(crate::failure)
}

/// The element type of an array: that of the input where both have the same bits.
fn input_dtype(text: &str, desc: Option<&TensorDesc>) -> PyResult<DType> {
    if let Some(desc) = desc
        && typestr(desc.dtype) == text
    {
        return Ok(desc.dtype);
    }
    let found = DType::ALL.into_iter().find(|dtype| typestr(*dtype) == text);
    found.ok_or_else(|| PyValueError::new_err(format!("`{text}` is no element type of programs")))
}

/// DLPack's structs, version 0.
mod dlpack {
    use super::{CStr, DType, c_void, ffi};

    pub const CPU: i32 = 1;
    pub const NAME: &CStr = c"dltensor";

    #[repr(C)]
    pub struct Device {
        pub kind: i32,
        pub id: i32,
    }

    #[repr(C)]
    pub struct Type {
        pub code: u8,
        pub bits: u8,
        pub lanes: u16,
    }

    #[repr(C)]
    pub struct Tensor {
        pub data: *mut c_void,
        pub device: Device,
        pub ndim: i32,
        pub dtype: Type,
        pub shape: *mut i64,
        pub strides: *mut i64,
        pub byte_offset: u64,
    }

    #[repr(C)]
    pub struct Managed {
        pub tensor: Tensor,
        pub context: *mut c_void,
        pub deleter: Option<unsafe extern "C" fn(*mut Managed)>,
    }

    pub fn dtype(dtype: DType) -> Option<Type> {
        let (code, bits) = match dtype {
            DType::I8 => (0, 8),
            DType::I16 => (0, 16),
            DType::I32 => (0, 32),
            DType::I64 | DType::Index => (0, 64),
            DType::U8 => (1, 8),
            DType::U16 => (1, 16),
            DType::U32 => (1, 32),
            DType::U64 => (1, 64),
            DType::F16 => (2, 16),
            DType::F32 => (2, 32),
            DType::F64 => (2, 64),
            DType::Bf16 => (4, 16),
            DType::I1 => (6, 8),
        };
        Some(Type { code, bits, lanes: 1 })
    }

    /// Frees a tensor: consumers call it on any thread.
    ///
    /// # Safety
    /// `managed` is of `__dlpack__`, and was not freed.
    pub unsafe extern "C" fn delete(managed: *mut Managed) {
        // SAFETY: the caller's word: it was a box.
        let managed = unsafe { Box::from_raw(managed) };
        pyo3::Python::try_attach(|_| {
            // SAFETY: the reference is the capsule's, and this thread may touch objects.
            unsafe { ffi::Py_DECREF(managed.context.cast()) };
        });
    }

    /// Frees the tensor of a capsule that no one took.
    ///
    /// # Safety
    /// Called by Python with a capsule of `__dlpack__`.
    pub unsafe extern "C" fn drop_capsule(capsule: *mut ffi::PyObject) {
        // SAFETY: the caller's word. A consumer has renamed a capsule that it took.
        let is_ours = unsafe { ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) } == 1;
        if is_ours {
            // SAFETY: as above.
            let managed = unsafe { ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()) };
            // SAFETY: as above.
            unsafe { delete(managed.cast()) };
        }
    }
}
