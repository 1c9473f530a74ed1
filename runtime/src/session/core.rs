//! What runs of a session work on: its host function, its memory, its measurements.

use std::sync::Arc;
use std::time::Instant;

use crate::buffer::{DeviceTensor, GpuBuffer, HostSlice, Storage, check_sizes};
use crate::cancel::Cancel;
use crate::device::{GpuDevice, Opened};
use crate::error::Error;
use crate::executor::cpu::CpuBackend;
use crate::executor::gpu::GpuBackend;
use crate::executor::{Arena, Backend, Constant, Engine, Input, Notes, Outcome, Place, Plans, Value};
use crate::ffi::NativeKernel;
use crate::host_function::LoadedHost;
use crate::model::{Model, Parts};
use crate::pool::{Physical, Pool, SharedAccount};
use crate::readback;
use crate::session::measured::{Created, Record};
use crate::session::{LeakReport, Options};
use crate::sites::Turns;
use crate::spans::Work;
use crate::stats::{GpuTimes, Memory as Usage, RunCounts, Stats, SteadyState};
use crate::threads::{Cost, Threads};
use crate::trace::{Recorder, Span};
use crate::upload::Uploader;

/// The state of a session.
pub(super) struct Core {
    pub(super) model: Arc<Model>,
    pub(super) host: LoadedHost,
    pub(super) engine: AnyEngine,
    /// What this session takes.
    account: SharedAccount,
    threads: usize,
    pub(super) record: Record,
}

/// The two targets.
#[allow(clippy::large_enum_variant, reason = "there is one per session")]
pub(super) enum AnyEngine {
    Gpu { engine: Engine<GpuBackend>, staging: Arc<Pool<GpuBuffer>>, recording: Memory },
    Cpu(Engine<CpuBackend>),
}

/// The memory of recorded runs. They may be submitted at any time, so that they share none with what is kept between runs:
/// neither inputs and results on loan, nor an arena that is prepared once.
pub(super) struct Memory {
    pool: Arc<Pool<GpuBuffer>>,
    arena: Option<Arena<GpuBuffer>>,
}

impl Memory {
    fn new(account: &SharedAccount) -> Memory {
        Memory { pool: Pool::new(account.clone()), arena: None }
    }

    /// Exchanges it with that of an engine.
    pub(super) fn swap(&mut self, engine: &mut Engine<GpuBackend>) {
        std::mem::swap(&mut self.pool, &mut engine.pool);
        std::mem::swap(&mut self.arena, &mut engine.arena);
    }
}

impl Core {
    pub fn new(model: Arc<Model>, account: SharedAccount, options: &Options) -> Result<Core, Error> {
        let host = model.host(options.host_steps)?;
        let turns = model.turns(options.trace);
        let mut threads = 1;
        let engine = match (&model.device().kind, model.parts()) {
            (Opened::Gpu(gpu), Parts::Gpu { kernels, constants, .. }) => {
                let wanted = (options.timing, options.trace);
                let dispatches = model.variant().dispatches.iter().map(|count| u64::from(*count)).sum();
                let backend = GpuBackend::new((gpu.clone(), kernels.clone(), dispatches), account.clone(), wanted)?;
                let engine = engine(backend, constants, (&account, turns));
                AnyEngine::Gpu { engine, staging: Pool::new(account.clone()), recording: Memory::new(&account) }
            }
            (_, Parts::Cpu { constants, .. }) => {
                let pool = match &options.pool {
                    Some(pool) => Threads::of(pool.clone()),
                    None => Threads::new(options.threads)?,
                };
                threads = pool.count();
                AnyEngine::Cpu(engine(cpu_backend(&model, pool, options.trace)?, constants, (&account, turns)))
            }
            (Opened::Cpu, Parts::Gpu { .. }) => return Err(elsewhere()),
        };
        Ok(Core { model, host, engine, account, threads, record: Record::default() })
    }

    /// Puts inputs on the device, in the signature's order.
    ///
    /// # Errors
    /// [`Error::Inputs`], [`Error::InputType`], [`Error::InputSize`], and the device's errors.
    pub fn upload(&mut self, inputs: &[HostSlice<'_>]) -> Result<Vec<DeviceTensor>, Error> {
        let descs = &self.model.signature().inputs;
        check_count(descs.len(), inputs.len())?;
        descs.iter().zip(inputs).try_for_each(|(desc, input)| input.check(desc))?;
        check_sizes(self.model.signature(), |size| inputs.get(size.input as usize)?.size(size.dim))?;
        let start = Instant::now();
        let data = descs.iter().zip(inputs).map(|(desc, input)| (desc.scalar, input.data()));
        let account = self.account.clone();
        let storages = match &mut self.engine {
            AnyEngine::Gpu { engine, .. } => {
                let gpu = engine.backend.gpu.clone();
                gpu.scoped("uploading inputs", || {
                    let mut uploader = Uploader::new(&gpu, &account);
                    let storages: Result<Vec<_>, Error> = data
                        .map(|(scalar, data)| {
                            if scalar {
                                return Ok(Storage::Scalar(bits(data)));
                            }
                            let loan = engine.take(data.len() as u64)?;
                            uploader.write(&loan, data)?;
                            Ok(Storage::Gpu(Arc::new(loan)))
                        })
                        .collect();
                    uploader.finish()?;
                    storages
                })?
            }
            AnyEngine::Cpu(engine) => {
                let storages: Result<Vec<_>, Error> = data
                    .map(|(scalar, data)| {
                        if scalar {
                            return Ok(Storage::Scalar(bits(data)));
                        }
                        let loan = engine.take(data.len() as u64)?;
                        loan.write(data);
                        Ok(Storage::Cpu(Arc::new(loan)))
                    })
                    .collect();
                storages?
            }
        };
        self.record.upload = (elapsed_ms(start), inputs.iter().map(|input| input.data().len() as u64).sum());
        let device = self.model.device().id;
        let tensors = inputs.iter().zip(storages);
        let tensors = tensors.map(|(t, storage)| DeviceTensor::new(t.dtype(), t.shape().to_vec(), device, storage));
        Ok(tensors.collect())
    }

    /// Runs the program on device tensors, and waits until its last kernel is done.
    pub fn execute(&mut self, inputs: &[DeviceTensor]) -> Result<Vec<DeviceTensor>, Error> {
        let claims = claim(&self.model, inputs)?;
        let work = self.model.work(Work::run);
        let started = self.start(claims, (&Cancel::default(), work))?;
        started.wait()?;
        self.complete(started)
    }

    /// Runs the host function, and gives the commands to the device.
    pub fn start(&mut self, claims: Vec<Claim>, (cancel, work): (&Cancel, Work)) -> Result<Started, Error> {
        let commands = work.within(|| self.give(claims, cancel))?;
        Ok(Started { commands, work })
    }

    fn give(&mut self, claims: Vec<Claim>, cancel: &Cancel) -> Result<Commands, Error> {
        let descs = &self.model.signature().results;
        let before = self.created();
        self.record.input_bytes = claims.iter().map(|claim| claim.storage.taken_bytes()).sum();
        match &mut self.engine {
            AnyEngine::Gpu { engine, .. } => engine.backend.recorder.begin_run(),
            AnyEngine::Cpu(engine) => engine.backend.recorder.begin_run(),
        }
        let start = (!cancel.is_paced()).then(Instant::now);
        match &mut self.engine {
            AnyEngine::Gpu { engine, .. } => {
                let inputs = unwrap(claims, |storage| match storage {
                    Storage::Gpu(buffer) => Some(Value::Buffer(Place::own(buffer))),
                    Storage::Scalar(bits) => Some(Value::Scalar(bits)),
                    Storage::Cpu(_) => None,
                })?;
                let (outcome, submission) = engine.start(&mut self.host, (inputs, descs), cancel)?;
                let Outcome { results, counts, leaked } = outcome;
                let submission = submission.map(|submission| (engine.backend.gpu.clone(), submission));
                Ok(Commands { results: wrap(results, Storage::Gpu), counts, leaked, submission, before, start })
            }
            AnyEngine::Cpu(engine) => {
                let inputs = unwrap(claims, |storage| match storage {
                    Storage::Cpu(buffer) => Some(Value::Buffer(Place::own(buffer))),
                    Storage::Scalar(bits) => Some(Value::Scalar(bits)),
                    Storage::Gpu(_) => None,
                })?;
                let (outcome, ()) = engine.start(&mut self.host, (inputs, descs), cancel)?;
                let Outcome { results, counts, leaked } = outcome;
                Ok(Commands { results: wrap(results, Storage::Cpu), counts, leaked, submission: None, before, start })
            }
        }
    }

    /// Drops the commands of a run that did not come to its end.
    pub fn abort(&mut self) {
        match &mut self.engine {
            AnyEngine::Gpu { engine, .. } => engine.backend.abort(),
            AnyEngine::Cpu(engine) => engine.backend.abort(),
        }
    }

    /// The results of a run that is done.
    pub fn complete(&mut self, started: Started) -> Result<Vec<DeviceTensor>, Error> {
        let Started { commands: started, work } = started;
        work.ran(&started.counts);
        let run_ms = started.start.map(elapsed_ms);
        let gpu_ms = match &mut self.engine {
            AnyEngine::Gpu { engine, .. } => {
                engine.backend.after_run()?;
                engine.backend.last_gpu_ms
            }
            AnyEngine::Cpu(_) => None,
        };
        self.book_run(run_ms, gpu_ms, (started.counts, started.leaked), started.before);
        self.end_run();
        let (descs, device) = (&self.model.signature().results, self.model.device().id);
        let tensors = descs.iter().zip(started.results);
        Ok(tensors.map(|(d, (storage, shape))| DeviceTensor::new(d.dtype, shape, device, storage)).collect())
    }

    /// Gives back memory that runs of late had no use for.
    fn end_run(&mut self) {
        match &mut self.engine {
            AnyEngine::Gpu { engine, staging, .. } => {
                staging.end_run();
                engine.backend.end_run(&engine.pool.end_run());
            }
            AnyEngine::Cpu(engine) => engine.backend.end_run(&engine.pool.end_run()),
        }
    }

    /// Whether several runs may be with the device: its times are of one.
    pub fn overlaps(&self) -> bool {
        matches!(&self.engine, AnyEngine::Gpu { engine, .. } if engine.backend.timing.is_none())
    }

    /// Copies tensors to `places`, each at least as long as its tensor.
    ///
    /// # Errors
    /// [`Error::Tensor`] for a donated tensor or a short place, and the device's errors.
    pub fn readback(&mut self, tensors: &[DeviceTensor], places: &mut [&mut [u8]]) -> Result<(), Error> {
        let start = Instant::now();
        check_places(tensors, places)?;
        // A clone of the storage keeps the buffer while it is read, and prevents a later run from consuming it.
        let storages = tensors.iter().map(|tensor| tensor.with(|storage| Ok(storage.clone())));
        let storages = storages.collect::<Result<Vec<_>, Error>>()?;
        let sizes: Vec<u64> = tensors.iter().map(DeviceTensor::size_bytes).collect();
        let sized = places.iter_mut().zip(&sizes).map(|(place, bytes)| &mut place[..*bytes as usize]);
        let mut in_buffers = Vec::new();
        for (storage, place) in storages.iter().zip(sized) {
            match (storage, &mut self.engine) {
                (Storage::Scalar(bits), _) => place.copy_from_slice(&bits.to_le_bytes()[..place.len()]),
                (Storage::Gpu(buffer), AnyEngine::Gpu { .. }) => in_buffers.push((&***buffer, place)),
                (Storage::Cpu(memory), AnyEngine::Cpu(_)) => memory.read(place),
                _ => return Err(elsewhere()),
            }
        }
        if let AnyEngine::Gpu { engine, staging, .. } = &mut self.engine {
            let gpu = engine.backend.gpu.clone();
            let mut read = || gpu.scoped("reading results back", || readback::read(&gpu, staging, &mut in_buffers));
            match read() {
                Err(Error::MemoryLimit { .. }) => {
                    engine.release_idle()?;
                    read()?;
                }
                outcome => outcome?,
            }
        }
        self.record.readback = (elapsed_ms(start), sizes.iter().sum());
        Ok(())
    }

    /// Drops the times of earlier runs, except that of the first.
    pub fn reset_times(&mut self) {
        self.record.reset_times();
    }

    /// The measurements so far; `peak` of this account, and with the time that the session took to load.
    pub fn stats(&self, peak: &SharedAccount, load_ms: f64) -> Stats {
        let record = &self.record;
        let plan = &self.model.variant().plan;
        let bounds = self.model.variant().lives.bounds;
        let gpu_ms = record.gpu_ms.summarize().map(|times| GpuTimes { min: times.min, median: times.median });
        Stats {
            device: self.model.device().kind_name().to_owned(),
            adapter: self.model.device().name().to_owned(),
            threads: self.threads,
            compile_ms: None,
            load_ms,
            kernels_ms: record.kernels.map(|kernels| kernels.0),
            kernels_built: record.kernels.map_or(0, |kernels| kernels.1),
            pipeline_cache_bytes: self.cache_bytes(),
            run_ms: record.run_ms.summarize(),
            runs: record.run_ms.count(),
            first_run_ms: record.first_run_ms,
            gpu_ms,
            upload_ms: record.upload.0,
            upload_bytes: record.upload.1,
            readback_ms: record.readback.0,
            readback_bytes: record.readback.1,
            counts: record.counts,
            memory: self.memory(),
            peak_device_bytes: peak.lock().peak,
            planned_bytes: plan.planned_bytes,
            lower_bound_bytes: plan.lower_bound_bytes,
            bounds,
            steady_state: record.steady,
        }
    }

    /// The memory of the last run by use.
    fn memory(&self) -> Usage {
        let RunCounts { pool_bytes, result_bytes, .. } = self.record.counts;
        let (constants, arena, staging) = match &self.engine {
            AnyEngine::Gpu { engine, staging, .. } => {
                let (constants, arena) = lasting(engine);
                (constants, arena, staging.held_bytes() + engine.backend.scratch_bytes())
            }
            AnyEngine::Cpu(engine) => {
                let (constants, arena) = lasting(engine);
                (constants, arena, 0)
            }
        };
        let inputs = self.record.input_bytes;
        Usage { inputs, constants, results: result_bytes, arena, pool: pool_bytes, staging, restored: 0 }
    }

    /// Takes the spans of the runs so far.
    pub fn drain_trace(&mut self) -> Vec<Span> {
        match &mut self.engine {
            AnyEngine::Gpu { engine, .. } => engine.backend.recorder.drain(),
            AnyEngine::Cpu(engine) => engine.backend.recorder.drain(),
        }
    }

    /// Ends the session; reports leaks, but for the bytes alive.
    pub fn close(mut self) -> LeakReport {
        let buffers_alive = self.engine.shut();
        LeakReport { buffers_alive, bytes_alive: 0, unfreed_allocations: self.record.unfreed }
    }

    /// Bytes of the driver's pipeline cache from an earlier process.
    fn cache_bytes(&self) -> u64 {
        match &self.engine {
            AnyEngine::Gpu { engine, .. } => engine.backend.gpu.disk_cache.as_ref().map_or(0, |disk| disk.read_bytes),
            AnyEngine::Cpu(_) => 0,
        }
    }

    fn created(&self) -> Created {
        let buffers = self.account.lock().buffers_created;
        match &self.engine {
            AnyEngine::Gpu { engine, .. } => Created {
                buffers,
                bind_groups: engine.backend.bind_groups.created,
                pipelines: engine.backend.pipelines_created,
            },
            AnyEngine::Cpu(_) => Created { buffers, bind_groups: 0, pipelines: 0 },
        }
    }

    fn book_run(
        &mut self,
        run_ms: Option<f64>,
        gpu_ms: Option<f64>,
        (counts, leaked): (RunCounts, u64),
        before: Created,
    ) {
        let after = self.created();
        let record = &mut self.record;
        record.counts = counts;
        record.unfreed += leaked;
        record.steady = SteadyState {
            buffers_created: after.buffers - before.buffers,
            bind_groups_created: after.bind_groups - before.bind_groups,
            pipelines_created: after.pipelines - before.pipelines,
            plans_made: counts.plans,
        };
        // The first run compiles and touches memory for the first time: it is not typical.
        if let (AnyEngine::Gpu { engine, .. }, None) = (&self.engine, record.first_run_ms) {
            record.kernels = Some((engine.backend.kernels_ms, engine.backend.pipelines_created));
            if let Some(disk) = engine.backend.gpu.disk_cache.as_ref().filter(|_| record.steady.pipelines_created > 0) {
                disk.save();
            }
        }
        let Some(run_ms) = run_ms else { return };
        if record.first_run_ms.is_none() {
            record.first_run_ms = Some(run_ms);
            return;
        }
        record.run_ms.push(run_ms);
        gpu_ms.into_iter().for_each(|ms| record.gpu_ms.push(ms));
    }
}

impl AnyEngine {
    /// Frees the session's buffers, and counts the remaining loans.
    fn shut(&mut self) -> u64 {
        match self {
            AnyEngine::Gpu { engine, staging, recording } => {
                staging.close();
                recording.arena = None;
                recording.pool.close();
                engine.backend.bind_groups.clear();
                engine.backend.release_staging();
                shut(engine) + staging.outstanding()
            }
            AnyEngine::Cpu(engine) => shut(engine),
        }
    }
}

impl Drop for AnyEngine {
    fn drop(&mut self) {
        // Tensors that outlive the session free their memory on drop, instead of returning it to an unused pool.
        self.shut();
    }
}

fn elapsed_ms(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

fn elsewhere() -> Error {
    Error::Tensor { what: "the tensor lies on another device".into() }
}

/// Each tensor needs a place that is long enough.
fn check_places(tensors: &[DeviceTensor], places: &[&mut [u8]]) -> Result<(), Error> {
    check_places_count(tensors.len(), places.len())?;
    let mut each = tensors.iter().zip(places).enumerate();
    match each.find(|(_, (tensor, place))| tensor.size_bytes() > place.len() as u64) {
        Some((at, (tensor, place))) => {
            let what = format!("result {at} has {} bytes, its place {}", tensor.size_bytes(), place.len());
            Err(Error::Tensor { what })
        }
        None => Ok(()),
    }
}

pub(super) fn check_places_count(expected: usize, found: usize) -> Result<(), Error> {
    if expected == found {
        return Ok(());
    }
    Err(Error::Inputs { what: format!("there are {expected} results, places for {found} given") })
}

pub(super) fn check_count(expected: usize, found: usize) -> Result<(), Error> {
    if expected == found {
        return Ok(());
    }
    Err(Error::Inputs { what: format!("the program takes {expected} inputs, {found} given") })
}

fn engine<B: Backend>(
    backend: B,
    constants: &[Constant<B::Buffer>],
    (account, turns): (&SharedAccount, Turns),
) -> Engine<B> {
    let (pool, constants) = (Pool::new(account.clone()), constants.to_vec());
    Engine { backend, pool, constants, arena: None, turns, notes: Notes::default(), plans: Plans::default() }
}

fn cpu_backend(model: &Model, threads: Threads, with_trace: bool) -> Result<CpuBackend, Error> {
    // Without a module there are no kernels.
    let kernels = model.module().into_iter().flat_map(|module| {
        CpuBackend::describe(&model.variant().kernels).into_iter().map(move |kernel| {
            let native = NativeKernel::find(module, &kernel.symbol)?;
            Ok((native, kernel.clone(), Cost::default()))
        })
    });
    let kernels = kernels.collect::<Result<Vec<_>, Error>>()?;
    Ok(CpuBackend { threads, kernels, recorder: Recorder::new(with_trace), cancel: Cancel::default() })
}

/// Checks the inputs of a run and claims their memory.
pub(super) fn claim(model: &Model, inputs: &[DeviceTensor]) -> Result<Vec<Claim>, Error> {
    let descs = &model.signature().inputs;
    check_count(descs.len(), inputs.len())?;
    descs.iter().zip(inputs).try_for_each(|(desc, input)| input.check(desc, model.device().id))?;
    check_sizes(model.signature(), |size| inputs.get(size.input as usize)?.size(size.dim))?;
    let claimed = descs.iter().zip(inputs).map(|(desc, input)| {
        let storage = if desc.donated { input.consume()? } else { input.with(|storage| Ok(storage.clone()))? };
        Ok(Claim { storage, bytes: input.size_bytes(), shape: input.shape.clone(), donated: desc.donated })
    });
    claimed.collect()
}

/// A run whose commands the device has.
pub(super) struct Started {
    commands: Commands,
    work: Work,
}

/// What a run gave to the device.
struct Commands {
    results: Vec<(Storage, Vec<u64>)>,
    counts: RunCounts,
    leaked: u64,
    /// On a GPU.
    submission: Option<(GpuDevice, wgpu::SubmissionIndex)>,
    before: Created,
    /// `None` of a run that was begun: its time is that of who advances it.
    start: Option<Instant>,
}

impl Started {
    /// Waits until the run is done. Other runs may start meanwhile.
    pub fn wait(&self) -> Result<(), Error> {
        let wait = |(gpu, submission): &(GpuDevice, _)| gpu.wait_for(submission);
        self.work.within(|| self.commands.submission.as_ref().map_or(Ok(()), wait))
    }
}

/// An input of a run, on any device.
pub(super) struct Claim {
    storage: Storage,
    bytes: u64,
    shape: Vec<u64>,
    donated: bool,
}

/// The bits of a scalar, in the low bytes.
pub(super) fn bits(data: &[u8]) -> u64 {
    let mut bits = [0; 8];
    bits[..data.len().min(8)].copy_from_slice(&data[..data.len().min(8)]);
    u64::from_le_bytes(bits)
}

/// Results with their sizes, as storages.
fn wrap<B: Physical>(
    results: Vec<(Value<B>, Vec<u64>)>,
    storage: impl Fn(crate::buffer::Shared<B>) -> Storage,
) -> Vec<(Storage, Vec<u64>)> {
    let each = results.into_iter().map(|(value, shape)| match value {
        Value::Buffer(place) => (storage(place.buffer), shape),
        Value::Scalar(bits) => (Storage::Scalar(bits), shape),
    });
    each.collect()
}

/// The storages of a run as buffers of one backend.
fn unwrap<B: Physical>(claims: Vec<Claim>, take: impl Fn(Storage) -> Option<Value<B>>) -> Result<Vec<Input<B>>, Error> {
    let inputs = claims.into_iter().map(|Claim { storage, bytes, shape, donated }| {
        let value = take(storage).ok_or_else(elsewhere)?;
        if let Value::Buffer(place) = &value
            && donated
            && Arc::strong_count(&place.buffer) > 1
        {
            return Err(Error::Tensor { what: "a donated tensor is in use elsewhere, or is another input too".into() });
        }
        Ok(Input { value, bytes, shape, donated })
    });
    inputs.collect()
}

/// Bytes of an engine's constants and of its arena.
fn lasting<B: Backend>(engine: &Engine<B>) -> (u64, u64) {
    let constants = engine.constants.iter().map(|constant| constant.buffer.bytes()).sum();
    (constants, engine.arena.as_ref().map_or(0, |arena| arena.buffer.bytes()))
}

/// Closes an engine's pool and counts the loans that the session does not hold itself.
fn shut<B: Backend>(engine: &mut Engine<B>) -> u64 {
    engine.constants.clear();
    engine.arena = None;
    engine.pool.close();
    engine.pool.outstanding()
}

#[cfg(test)]
mod tests;
