//! A session: a model with the memory and the state of its runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use core::{Core, claim};
use monopour_program::{Program, Signature, Variant};
use run::{State, Worker, lock};

use crate::buffer::{BufferSlice, DeviceTensor, HostTensor, RecordInput, RecordedResult};
use crate::cancel::Cancel;
use crate::device::Device;
use crate::error::Error;
use crate::host_function::HostForm;
use crate::model::Model;
use crate::pool::SharedAccount;
use crate::spans::Work;
use crate::stats::Stats;
use crate::threads::TaskPool;
use crate::trace::Span;

pub use run::Run;

/// Options of a model and its sessions.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Threads of the CPU target; 0: one per core.
    pub threads: usize,
    /// The application's threads, in place of threads of the session's own; `threads` then does not count.
    pub pool: Option<Arc<dyn TaskPool>>,
    /// The most bytes to take from the device.
    pub memory_limit: Option<u64>,
    /// Whether to measure device time, which costs a few microseconds per run.
    pub timing: bool,
    /// Whether to keep a span per dispatch.
    pub trace: bool,
    /// The form of the host function, for a model.
    pub host: HostForm,
    /// The most steps of an interpreted host function in one run, a call of the runtime counting as sixteen. Without
    /// it: no limit for a trusted program, 256 million for others.
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
    core: Arc<Mutex<Core>>,
    /// Runs what was submitted; from the first such run on.
    worker: Option<Worker>,
    /// The last run that was begun, which has the session to itself.
    begun: Option<Arc<State>>,
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
        Ok(Session::of((model, true), core, (account, start)))
    }

    /// A further session of a model. [`Options::host`] is the model's; [`Options::memory_limit`] bounds this session
    /// alone.
    ///
    /// # Errors
    /// [`Error::NativeCode`]; [`Error::MemoryLimit`], and the device's errors.
    pub fn new(model: &Arc<Model>, options: &Options) -> Result<Session, Error> {
        let start = Instant::now();
        let account = model.account().part(options.memory_limit);
        let core = Core::new(model.clone(), account.clone(), options)?;
        Ok(Session::of((model.clone(), false), core, (account, start)))
    }

    fn of((model, owns_model): (Arc<Model>, bool), core: Core, (account, start): (SharedAccount, Instant)) -> Session {
        let core = Arc::new(Mutex::new(core));
        Session { model, core, worker: None, begun: None, account, owns_model, load_ms: elapsed_ms(start) }
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
        let slices: Vec<_> = inputs.iter().map(HostTensor::as_slice).collect();
        self.core().upload(&slices)
    }

    /// Runs the program on device tensors, and waits until its last kernel is done.
    /// Donated inputs are consumed.
    ///
    /// # Errors
    /// [`Error::Inputs`], [`Error::InputType`], [`Error::InputSize`], [`Error::Tensor`]; errors of host code or the
    /// device.
    pub fn execute(&mut self, inputs: &[DeviceTensor]) -> Result<Vec<DeviceTensor>, Error> {
        self.core().execute(inputs)
    }

    /// Hands a run on device tensors to a thread of the session, and returns at once. Donated inputs are consumed.
    ///
    /// Submitted runs run in order; on a GPU the next one is recorded while the device works on one. Meanwhile the
    /// session takes further runs; [`Session::execute`] and [`Session::record`] come before those that have not begun.
    /// Where a run is with the CPU, other calls wait for it, but not `submit`.
    ///
    /// # Errors
    /// [`Error::Inputs`], [`Error::InputType`], [`Error::InputSize`], [`Error::Tensor`]; further ones are those of
    /// [`Run::wait`].
    pub fn submit(&mut self, inputs: &[DeviceTensor]) -> Result<Run, Error> {
        self.release();
        self.hand_over(inputs, Cancel::default()).map(|(run, _)| run)
    }

    /// As [`Session::submit`], for callers that spread a run over time, such as an engine over frames: the run makes no
    /// dispatch but those that [`Run::advance`] allows.
    ///
    /// While it is under way it has the session to itself: the next call of the session, or [`Run::wait`], lets it go
    /// on to its end. Other work goes to further sessions of the model.
    ///
    /// # Errors
    /// Those of [`Session::submit`].
    pub fn begin(&mut self, inputs: &[DeviceTensor]) -> Result<Run, Error> {
        self.release();
        let (run, state) = self.hand_over(inputs, Cancel::paced())?;
        self.begun = Some(state);
        Ok(run)
    }

    fn hand_over(&mut self, inputs: &[DeviceTensor], cancel: Cancel) -> Result<(Run, Arc<State>), Error> {
        let claims = claim(&self.model, inputs)?;
        let worker = match self.worker.take() {
            Some(worker) => worker,
            None => Worker::start(&self.core)?,
        };
        let work = self.model.work(Work::run);
        Ok(self.worker.insert(worker).submit((claims, work), cancel))
    }

    /// Lets a run go on that was begun.
    fn release(&self) {
        self.begun.iter().for_each(|state| state.release());
    }

    /// The state, once no run has it.
    fn core(&self) -> MutexGuard<'_, Core> {
        self.release();
        lock(&self.core)
    }

    /// Records a run into `encoder`, after what the caller has recorded and before what it will; neither submits nor
    /// waits.
    ///
    /// Inputs are in the signature's order, in the caller's buffers or numbers. A result goes to its place in a buffer
    /// of the caller with `COPY_DST` (`STORAGE` for ranges that are not whole words), or nowhere; the place may be
    /// longer, and may be that of an input that was donated for it. Returns the results' sizes, and the values of those
    /// that are numbers. Recorded runs have buffers and an arena of their own in the session, which all of them share:
    /// submit each command buffer as a whole, on the device's one queue, in any order, once or never.
    ///
    /// # Errors
    /// [`Error::Record`] (R0023) for a program that has to read back, or on a CPU; [`Error::Tensor`] for a buffer or an
    /// offset that does not fit; those of [`Session::execute`]. The encoder is then as it was.
    pub fn record(
        &mut self,
        encoder: &mut wgpu::CommandEncoder,
        inputs: &[RecordInput],
        results: &[Option<BufferSlice>],
    ) -> Result<Vec<RecordedResult>, Error> {
        self.core().record(encoder, inputs, results)
    }

    /// Copies tensors to the host.
    ///
    /// # Errors
    /// [`Error::Tensor`] for a donated tensor, and the device's errors.
    pub fn readback(&mut self, tensors: &[DeviceTensor]) -> Result<Vec<HostTensor>, Error> {
        let zeros = |tensor: &DeviceTensor| vec![0; tensor.size_bytes() as usize];
        let mut data: Vec<Vec<u8>> = tensors.iter().map(zeros).collect();
        let mut places: Vec<&mut [u8]> = data.iter_mut().map(Vec::as_mut_slice).collect();
        self.core().readback(tensors, &mut places)?;
        let read = tensors.iter().zip(data);
        read.map(|(tensor, data)| HostTensor::new(tensor.dtype(), tensor.shape().to_vec(), data)).collect()
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
        self.core().reset_times();
    }

    /// The measurements so far. The bytes are those of this session, and of its model if [`Session::load`] made that.
    pub fn stats(&self) -> Stats {
        let peak = if self.owns_model { self.model.account() } else { &self.account };
        self.core().stats(peak, self.load_ms)
    }

    /// Takes the spans of the runs so far; empty unless [`Options::trace`] is set.
    pub fn drain_trace(&mut self) -> Vec<Span> {
        self.core().drain_trace()
    }

    /// Waits for submitted runs, ends the session and reports leaks.
    pub fn close(self) -> LeakReport {
        self.release();
        let Session { model, core, worker, account, owns_model, .. } = self;
        worker.into_iter().for_each(Worker::join);
        let core = Arc::into_inner(core).expect("invariant: only the thread that has ended shared it");
        let core = core.into_inner().unwrap_or_else(PoisonError::into_inner);
        let account = if owns_model { model.account().clone() } else { account };
        drop(model);
        let report = core.close();
        LeakReport { bytes_alive: account.lock().used, ..report }
    }
}

fn elapsed_ms(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

mod borrowed;
mod core;
mod measured;
mod named;
mod record;
mod run;
