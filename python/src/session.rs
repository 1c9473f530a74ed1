//! Devices and sessions.

use std::sync::{Mutex, PoisonError};

use monopour_program::TensorDesc;
use monopour_runtime::{DeviceChoice, HostForm, HostTensor, Options};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::failure;
use crate::program::Program;
use crate::tensor::{self, Tensor};

/// A device of this machine.
#[pyclass(frozen, module = "monopour")]
pub struct Device {
    device: monopour_runtime::Device,
}

#[pymethods]
impl Device {
    /// `auto` (the best hardware GPU, else the CPU), `gpu`, `cpu`, an index or a name.
    #[new]
    #[pyo3(signature = (choice = "auto"))]
    fn new(py: Python<'_>, choice: &str) -> PyResult<Device> {
        let choice = DeviceChoice::parse(choice);
        let device = py.detach(|| monopour_runtime::Device::open(&choice)).map_err(failure)?;
        Ok(Device { device })
    }

    #[getter]
    fn name(&self) -> &str {
        self.device.name()
    }

    /// `gpu` or `cpu`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.device.kind_name()
    }

    fn __repr__(&self) -> String {
        format!("<monopour.Device {} {}>", self.device.kind_name(), self.device.name())
    }
}

/// A program on a device. Threads may share it: one runs at a time.
#[pyclass(frozen, module = "monopour")]
pub struct Session {
    session: Mutex<monopour_runtime::Session>,
    host: &'static str,
    inputs: Vec<TensorDesc>,
}

#[pymethods]
impl Session {
    /// `limits`: bytes of the device, steps of the host function.
    #[new]
    fn new(
        py: Python<'_>,
        program: &Program,
        device: &Device,
        threads: usize,
        host: &str,
        limits: (Option<u64>, Option<u64>),
    ) -> PyResult<Session> {
        let (memory_limit, host_steps) = limits;
        let forms = [HostForm::Auto, HostForm::Native, HostForm::Data];
        let host = forms.into_iter().find(|form| form.as_str() == host);
        let host = host.ok_or_else(|| PyValueError::new_err("host is one of auto, native, data"))?;
        let options = Options { threads: threads.min(1024), memory_limit, host, host_steps, ..Options::default() };
        let program = program.get();
        let session = py.detach(|| monopour_runtime::Session::load(&device.device, program, &options));
        let session = session.map_err(failure)?;
        let (host, inputs) = (session.host_form().as_str(), session.signature().inputs.clone());
        Ok(Session { session: Mutex::new(session), host, inputs })
    }

    /// The form of the host function that runs: `native` or `data`.
    #[getter]
    fn host(&self) -> &'static str {
        self.host
    }

    /// Runs on arrays in the order of the inputs; the results are tensors in the order of the program's.
    fn run(&self, py: Python<'_>, inputs: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<Tensor>> {
        let given = inputs.iter().enumerate().map(|(at, array)| tensor::input(array, self.inputs.get(at)));
        let given = given.collect::<PyResult<Vec<HostTensor>>>()?;
        let run = || self.session.lock().unwrap_or_else(PoisonError::into_inner).run(&given);
        let results = py.detach(run).map_err(failure)?;
        Ok(results.into_iter().map(Tensor::new).collect())
    }

    /// What the runs so far cost.
    fn stats(&self, py: Python<'_>) -> PyResult<String> {
        let stats = py.detach(|| self.session.lock().unwrap_or_else(PoisonError::into_inner).stats());
        serde_json::to_string(&stats).map_err(|error| PyValueError::new_err(error.to_string()))
    }
}
