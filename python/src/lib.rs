//! The native half of the Python package `monopour`; `python/monopour/__init__.py` is the other one.
//!
//! * `tensor`: results as Python objects, by the array interface and DLPack, and arrays as inputs.
//! * `program`, `session`: programs; devices, models, sessions, runs.

mod program;
mod session;
mod tensor;

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(_native, Error, PyException, "An error of monopour: `code`, `message` and `help`.");

/// An error of the runtime as an exception.
fn failure(error: monopour_runtime::Error) -> PyErr {
    Error::new_err((error.code(), error.to_string(), error.help()))
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("Error", module.py().get_type::<Error>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<program::Program>()?;
    module.add_class::<program::TensorInfo>()?;
    module.add_class::<session::Device>()?;
    module.add_class::<session::Model>()?;
    module.add_class::<session::Session>()?;
    module.add_class::<session::Run>()?;
    module.add_class::<tensor::Tensor>()?;
    Ok(())
}
