//! Programs.
#![allow(unsafe_code, reason = "`trust` passes the caller's word on")]

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use monopour_program::{DYNAMIC, TensorDesc};
use pyo3::prelude::*;

use crate::failure;

/// A compiled program: an artifact.
#[pyclass(frozen, module = "monopour")]
pub struct Program {
    program: Mutex<Arc<monopour_program::Program>>,
}

impl Program {
    pub fn get(&self) -> Arc<monopour_program::Program> {
        self.program.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// An input or a result.
#[pyclass(frozen, module = "monopour")]
pub struct TensorInfo {
    desc: TensorDesc,
}

fn infos(tensors: &[TensorDesc]) -> Vec<TensorInfo> {
    tensors.iter().map(|desc| TensorInfo { desc: desc.clone() }).collect()
}

#[pymethods]
impl Program {
    /// Opens a file; constants stay in it.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Program> {
        let program = py.detach(|| monopour_program::Program::open(&path));
        let program = program.map_err(|error| failure(error.into()))?;
        Ok(Program { program: Mutex::new(Arc::new(program)) })
    }

    /// Decodes bytes.
    #[staticmethod]
    fn decode(data: &[u8]) -> PyResult<Program> {
        let program = monopour_program::Program::decode(data).map_err(|error| failure(error.into()))?;
        Ok(Program { program: Mutex::new(Arc::new(program)) })
    }

    /// Vouches for the program: its machine code may run in this process.
    fn trust(&self) {
        let mut program = self.program.lock().unwrap_or_else(PoisonError::into_inner);
        let copy = (**program).clone();
        // SAFETY: the caller vouches for the program: that is what the method says.
        *program = Arc::new(unsafe { copy.trust() });
    }

    #[getter]
    fn is_trusted(&self) -> bool {
        self.get().is_trusted()
    }

    #[getter]
    fn entry(&self) -> String {
        self.get().entry.clone()
    }

    #[getter]
    fn producer(&self) -> String {
        self.get().producer.clone()
    }

    #[getter]
    fn inputs(&self) -> Vec<TensorInfo> {
        infos(&self.get().signature.inputs)
    }

    #[getter]
    fn results(&self) -> Vec<TensorInfo> {
        infos(&self.get().signature.results)
    }

    /// The labels of the targets that it was compiled for.
    #[getter]
    fn targets(&self) -> Vec<String> {
        self.get().variants.iter().map(|variant| variant.target.label()).collect()
    }

    /// The host function of each variant as data.
    #[getter]
    fn host(&self) -> Vec<String> {
        self.get().variants.iter().map(|variant| variant.host_data.to_string()).collect()
    }
}

#[pymethods]
impl TensorInfo {
    #[getter]
    fn name(&self) -> &str {
        &self.desc.name
    }

    #[getter]
    fn dtype(&self) -> &'static str {
        self.desc.dtype.as_str()
    }

    /// The sizes; `None` for one that varies by run.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyTuple>> {
        let sizes = self.desc.shape.iter().map(|size| (*size != DYNAMIC).then_some(*size));
        pyo3::types::PyTuple::new(py, sizes.collect::<Vec<Option<u64>>>())
    }

    #[getter]
    fn is_donated(&self) -> bool {
        self.desc.donated
    }

    #[getter]
    fn is_scalar(&self) -> bool {
        self.desc.scalar
    }

    fn __repr__(&self) -> String {
        self.desc.to_string()
    }
}
