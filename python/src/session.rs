//! Devices, models, sessions, and runs in flight.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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

/// A program on a device: kernels and constants, once for any number of sessions.
#[pyclass(frozen, module = "monopour")]
pub struct Model {
    model: Arc<monopour_runtime::Model>,
}

#[pymethods]
impl Model {
    /// `memory_limit`: bytes of the model with all of its sessions.
    #[new]
    fn new(
        py: Python<'_>,
        program: &Program,
        device: &Device,
        host: &str,
        memory_limit: Option<u64>,
    ) -> PyResult<Model> {
        let options = Options { memory_limit, host: form(host)?, ..Options::default() };
        let program = program.get();
        let model = py.detach(|| monopour_runtime::Model::load(&device.device, program, &options));
        Ok(Model { model: Arc::new(model.map_err(failure)?) })
    }

    /// The form of the host function that runs: `native` or `data`.
    #[getter]
    fn host(&self) -> &'static str {
        self.model.host_form().as_str()
    }

    /// Bytes that the model and its sessions hold on the device.
    #[getter]
    fn used_bytes(&self) -> u64 {
        self.model.used_bytes()
    }
}

fn form(name: &str) -> PyResult<HostForm> {
    let forms = [HostForm::Auto, HostForm::Native, HostForm::Data];
    let found = forms.into_iter().find(|form| form.as_str() == name);
    found.ok_or_else(|| PyValueError::new_err("host is one of auto, native, data"))
}

/// A model with the memory of its runs. Threads may share it: one call runs at a time.
#[pyclass(frozen, module = "monopour")]
pub struct Session {
    session: SharedSession,
    inputs: Vec<TensorDesc>,
}

type SharedSession = Arc<Mutex<monopour_runtime::Session>>;

fn lock(session: &SharedSession) -> MutexGuard<'_, monopour_runtime::Session> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    fn of(session: monopour_runtime::Session) -> Session {
        let inputs = session.signature().inputs.clone();
        Session { session: Arc::new(Mutex::new(session)), inputs }
    }

    /// Arrays in the order of the inputs.
    fn given(&self, inputs: &[Bound<'_, PyAny>]) -> PyResult<Vec<HostTensor>> {
        inputs.iter().enumerate().map(|(at, array)| tensor::input(array, self.inputs.get(at))).collect()
    }
}

#[pymethods]
impl Session {
    /// `limits`: bytes of the device, steps of the host function.
    #[new]
    fn new(py: Python<'_>, model: &Model, threads: usize, limits: (Option<u64>, Option<u64>)) -> PyResult<Session> {
        let (memory_limit, host_steps) = limits;
        let options = Options { threads: threads.min(1024), memory_limit, host_steps, ..Options::default() };
        let session = py.detach(|| monopour_runtime::Session::new(&model.model, &options));
        Ok(Session::of(session.map_err(failure)?))
    }

    /// A session with a model of its own, which its measurements count too.
    #[staticmethod]
    fn load(
        py: Python<'_>,
        program: &Program,
        device: &Device,
        threads: usize,
        host: &str,
        limits: (Option<u64>, Option<u64>),
    ) -> PyResult<Session> {
        let (memory_limit, host_steps) = limits;
        let (threads, host) = (threads.min(1024), form(host)?);
        let options = Options { threads, memory_limit, host, host_steps, ..Options::default() };
        let program = program.get();
        let session = py.detach(|| monopour_runtime::Session::load(&device.device, program, &options));
        Ok(Session::of(session.map_err(failure)?))
    }

    /// The model that it runs.
    #[getter]
    fn model(&self) -> Model {
        Model { model: lock(&self.session).model().clone() }
    }

    /// Runs on arrays in the order of the inputs; the results are tensors in the order of the program's.
    fn run(&self, py: Python<'_>, inputs: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<Tensor>> {
        let given = self.given(&inputs)?;
        let results = py.detach(|| lock(&self.session).run(&given)).map_err(failure)?;
        Ok(results.into_iter().map(Tensor::new).collect())
    }

    /// Hands a run over; one that `begins` makes no dispatch but those that it is allowed.
    fn submit(&self, py: Python<'_>, inputs: Vec<Bound<'_, PyAny>>, begins: bool) -> PyResult<Run> {
        let given = self.given(&inputs)?;
        let submit = || {
            let mut session = lock(&self.session);
            let inputs = session.upload(&given)?;
            if begins { session.begin(&inputs) } else { session.submit(&inputs) }
        };
        let run = py.detach(submit).map_err(failure)?;
        Ok(Run { run, session: self.session.clone() })
    }

    /// What the runs so far cost.
    fn stats(&self, py: Python<'_>) -> PyResult<String> {
        let stats = py.detach(|| lock(&self.session).stats());
        serde_json::to_string(&stats).map_err(|error| PyValueError::new_err(error.to_string()))
    }
}

/// A run in flight.
#[pyclass(frozen, module = "monopour")]
pub struct Run {
    run: monopour_runtime::Run,
    session: SharedSession,
}

#[pymethods]
impl Run {
    /// The results, as tensors; waits for at most `timeout` seconds.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Vec<Tensor>> {
        let limit = timeout.map(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)));
        let limit = limit.transpose().map_err(|error| PyValueError::new_err(error.to_string()))?;
        let wait = || {
            let outputs = self.run.wait(limit)?;
            lock(&self.session).readback(&outputs)
        };
        let results = py.detach(wait).map_err(failure)?;
        Ok(results.into_iter().map(Tensor::new).collect())
    }

    fn cancel(&self) {
        self.run.cancel();
    }

    /// Whether some dispatches may be left.
    fn advance(&self, py: Python<'_>, dispatches: u64) -> bool {
        py.detach(|| self.run.advance(dispatches))
    }

    #[getter]
    fn is_done(&self) -> bool {
        self.run.is_done()
    }
}
