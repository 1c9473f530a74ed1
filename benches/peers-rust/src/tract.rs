//! The programs in tract: the ONNX file, optimized, on one thread.

use crate::Result;
use crate::{npy, timing};
use serde_json::Value;
use std::path::Path;
use tract_onnx::prelude::*;

/// Median time of a run of `program`, after a check of its values.
///
/// # Errors
/// Where a file is missing, tract refuses the program, or a value is wrong.
pub fn measure(directory: &Path, program: &str) -> Result<Value> {
    let (inputs, expected) = npy::of_program(directory, program)?;
    let mut arrays = inputs.iter().map(|a| Tensor::from_shape(&a.shape, &a.values)).collect::<TractResult<Vec<_>>>()?;
    // The ONNX program has ONNX's layouts, NCHW and FCHW; the data is NHWC and HWCF.
    if program == "conv" {
        let turned = arrays.into_iter().zip([[0, 3, 1, 2], [3, 2, 0, 1]]);
        arrays = turned.map(|(array, axes)| array.permute_axes(&axes)).collect::<TractResult<_>>()?;
    }
    let model = tract_onnx::onnx()
        .model_for_path(directory.join(format!("onnx/{program}.onnx")))?
        .into_optimized()?
        .into_runnable()?;
    let inputs: TVec<TValue> = arrays.into_iter().map(Tensor::into_tvalue).collect();
    let mut result = model.run(inputs.clone())?.remove(0).into_tensor();
    if program == "conv" {
        result = result.permute_axes(&[0, 2, 3, 1])?;
    }
    let values: Vec<f32> = result.to_plain_array_view::<f32>()?.iter().copied().collect();
    timing::checked(&values, &expected.values, || {
        model.run(inputs.clone())?;
        Ok(())
    })
}
