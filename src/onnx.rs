//! ONNX models, tensors and the registry of ops; tensors as inputs of a run.

use monopour_runtime::HostTensor;

pub use monopour_frontend::onnx::*;

/// A tensor as an input of a run; of packed elements, their bytes.
///
/// # Errors
/// For element types that programs do not have.
pub fn to_host(tensor: &Tensor) -> Result<HostTensor, String> {
    let dtype = tensor.dtype.dtype().ok_or_else(|| format!("elements of {} are not supported", tensor.dtype))?;
    let shape = tensor.stored_shape().iter().map(|d| d.unsigned_abs()).collect();
    HostTensor::new(dtype, shape, tensor.data.bytes().to_vec()).map_err(|e| e.to_string())
}
