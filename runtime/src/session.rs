//! A session: a model with the memory and the state of its runs.

use std::sync::Arc;
use std::time::Instant;

use core::Core;
use monopour_program::{Program, Signature, Variant};

use crate::buffer::{DeviceTensor, HostTensor};
use crate::device::Device;
use crate::error::Error;
use crate::host_function::HostForm;
use crate::model::Model;
use crate::pool::SharedAccount;
use crate::stats::Stats;
use crate::trace::Span;

/// Options of a model and its sessions.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Threads of the CPU target; 0: one per core.
    pub threads: usize,
    /// The most bytes to take from the device.
    pub memory_limit: Option<u64>,
    /// Whether to measure device time, which costs a few microseconds per run.
    pub timing: bool,
    /// Whether to keep a span per dispatch.
    pub trace: bool,
    /// The form of the host function, for a model.
    pub host: HostForm,
    /// The most steps of an interpreted host function in one run, a call of the runtime counting as sixteen. Without it: no
    /// limit for a trusted program, 256 million for others.
    pub host_steps: Option<u64>,
}

/// Memory still held when a session is closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeakReport {
    /// Buffers that are neither free nor held by the session: tensors of the caller.
    pub buffers_alive: u64,
    /// Bytes of the device that are not freed.
    pub bytes_alive: u64,
    /// Allocations of all runs that host code neither freed nor returned.
    pub unfreed_allocations: u64,
}

impl LeakReport {
    /// Whether there are no leaks.
    pub fn is_clean(&self) -> bool {
        *self == LeakReport::default()
    }
}

/// A model ready to run, with a pool of buffers and an arena of its own.
///
/// A session owns its memory, not the device or the model: many may share one, on any threads.
pub struct Session {
    model: Arc<Model>,
    core: Core,
    /// What this session takes.
    account: SharedAccount,
    /// Whether the model is this session's own: what it takes counts for both.
    owns_model: bool,
    load_ms: f64,
}

impl Session {
    /// Loads a model of its own: [`Model::load`], then [`Session::new`].
    ///
    /// # Errors
    /// Those of both.
    pub fn load(device: &Device, program: Arc<Program>, options: &Options) -> Result<Session, Error> {
        let start = Instant::now();
        let model = Arc::new(Model::load(device, program, options)?);
        let account = model.account().part(None);
        let core = Core::new(model.clone(), account.clone(), options)?;
        Ok(Session { model, core, account, owns_model: true, load_ms: elapsed_ms(start) })
    }

    /// A further session of a model. [`Options::host`] is the model's; [`Options::memory_limit`] bounds this session alone.
    ///
    /// # Errors
    /// [`Error::NativeCode`]; [`Error::MemoryLimit`], and the device's errors.
    pub fn new(model: &Arc<Model>, options: &Options) -> Result<Session, Error> {
        let start = Instant::now();
        let account = model.account().part(options.memory_limit);
        let core = Core::new(model.clone(), account.clone(), options)?;
        Ok(Session { model: model.clone(), core, account, owns_model: false, load_ms: elapsed_ms(start) })
    }

    /// The model that it runs.
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// Inputs and results.
    pub fn signature(&self) -> &Signature {
        self.model.signature()
    }

    /// The variant that runs.
    pub fn variant(&self) -> &Variant {
        self.model.variant()
    }

    /// The form of the host function that runs: native code or data.
    pub fn host_form(&self) -> HostForm {
        self.model.host_form()
    }

    /// The device that it runs on.
    pub fn device(&self) -> &Device {
        self.model.device()
    }

    /// Puts inputs on the device, in the signature's order.
    ///
    /// # Errors
    /// [`Error::Inputs`], [`Error::InputType`], [`Error::InputSize`], and the device's errors.
    pub fn upload(&mut self, inputs: &[HostTensor]) -> Result<Vec<DeviceTensor>, Error> {
        self.core.upload(inputs)
    }

    /// Runs the program on device tensors, and waits until its last kernel is done.
    /// Donated inputs are consumed.
    ///
    /// # Errors
    /// [`Error::Inputs`], [`Error::InputType`], [`Error::InputSize`], [`Error::Tensor`]; errors of host code or the device.
    pub fn execute(&mut self, inputs: &[DeviceTensor]) -> Result<Vec<DeviceTensor>, Error> {
        self.core.execute(inputs)
    }

    /// Copies tensors to the host.
    ///
    /// # Errors
    /// [`Error::Tensor`] for a donated tensor, and the device's errors.
    pub fn readback(&mut self, tensors: &[DeviceTensor]) -> Result<Vec<HostTensor>, Error> {
        self.core.readback(tensors)
    }

    /// Uploads, executes and reads back.
    ///
    /// # Errors
    /// Those of the three steps.
    pub fn run(&mut self, inputs: &[HostTensor]) -> Result<Vec<HostTensor>, Error> {
        let inputs = self.upload(inputs)?;
        let outputs = self.execute(&inputs)?;
        self.readback(&outputs)
    }

    /// Drops the times of earlier runs, except that of the first: call it after warming up.
    pub fn reset_times(&mut self) {
        self.core.reset_times();
    }

    /// The measurements so far. The bytes are those of this session, and of its model if [`Session::load`] made that.
    pub fn stats(&self) -> Stats {
        let peak = if self.owns_model { self.model.account() } else { &self.account };
        self.core.stats(peak, self.load_ms)
    }

    /// Takes the spans of the runs so far; empty unless [`Options::trace`] is set.
    pub fn drain_trace(&mut self) -> Vec<Span> {
        self.core.drain_trace()
    }

    /// Ends the session and reports leaks.
    pub fn close(self) -> LeakReport {
        let Session { model, core, account, owns_model, .. } = self;
        let account = if owns_model { model.account().clone() } else { account };
        drop(model);
        let report = core.close();
        LeakReport { bytes_alive: account.lock().used, ..report }
    }
}

fn elapsed_ms(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

mod core;
mod named;
mod record;
