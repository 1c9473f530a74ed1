//! A session: a program loaded on a device, ready to run.

use std::sync::Arc;
use std::time::Instant;

use choice::{Choice, choose, runs_native_kernels};
use monopour_program::{Program, Signature, Variant};

use crate::buffer::{DeviceTensor, GpuBuffer, HostTensor, Storage, check_sizes};
use crate::device::{Device, Opened};
use crate::error::Error;
use crate::executor::cpu::CpuBackend;
use crate::executor::gpu::GpuBackend;
use crate::executor::{Backend, Constant, Engine, Input, Value};
use crate::ffi::{self, HostFunction, NativeKernel, NativeModule};
use crate::host_function::{HostForm, LoadedHost};
use crate::interpret::Interpreter;
use crate::kernels;
use crate::memory::HostMemory;
use crate::pool::{Physical, Pool, SharedAccount};
use crate::readback;
use crate::stats::{GpuTimes, RunCounts, Stats, SteadyState, summarize};
use crate::threads::{Cost, Threads};
use crate::trace::{Recorder, Span};
use crate::upload::Uploader;

/// Options of a session.
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
    /// The form of the host function.
    pub host: HostForm,
    /// The most steps of an interpreted host function in one run, a call of the runtime counting as sixteen. Without it: no
    /// limit for a trusted program, 256 million for others.
    pub host_steps: Option<u64>,
}

/// The most steps of a host function that no one vouched for: some seconds.
const UNTRUSTED_STEPS: u64 = 1 << 28;

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

/// A program on a device.
///
/// A session owns its pools and pipelines, not the device: several sessions may share one, on any threads.
pub struct Session {
    device: Device,
    program: Arc<Program>,
    variant: usize,
    host: LoadedHost,
    engine: AnyEngine,
    account: SharedAccount,
    threads: usize,
    record: Record,
}

/// The two targets.
#[allow(clippy::large_enum_variant, reason = "there is one per session")]
enum AnyEngine {
    Gpu { engine: Engine<GpuBackend>, staging: Arc<Pool<GpuBuffer>> },
    Cpu(Engine<CpuBackend>),
}

/// The measurements so far.
#[derive(Default)]
struct Record {
    load_ms: f64,
    /// Time and number of the pipelines built for loading and the first run.
    kernels: Option<(f64, u64)>,
    first_run_ms: Option<f64>,
    run_ms: Vec<f64>,
    gpu_ms: Vec<f64>,
    upload: (f64, u64),
    readback: (f64, u64),
    counts: RunCounts,
    steady: SteadyState,
    unfreed: u64,
}

/// Counts of created objects, to compute those of one run.
#[derive(Clone, Copy)]
struct Created {
    buffers: u64,
    bind_groups: u64,
    pipelines: u64,
}

impl Session {
    /// Loads the first variant of `program` that fits `device`: host function, constants, pipelines.
    ///
    /// Native code and SPIR-V are used only if the program is trusted ([`Program::trust`](fn@Program::trust)); of others the
    /// kernels are validated and the host function is interpreted.
    ///
    /// # Errors
    /// [`Error::NoVariant`]; [`Error::Untrusted`], [`Error::Kernel`]; [`Error::NativeCode`], [`Error::UndefinedSymbol`]; [`Error::MemoryLimit`] and the device's
    /// errors; a P code for an inconsistent program.
    pub fn load(device: &Device, program: Arc<Program>, options: &Options) -> Result<Session, Error> {
        let start = Instant::now();
        program.verify()?;
        let is_trusted = program.is_trusted();
        let Choice { variant, form } = choose(device, &program, (options.host, is_trusted))?;
        let chosen = &program.variants[variant];
        let is_native = form == HostForm::Native || runs_native_kernels(chosen);
        let module = is_native.then(|| ffi::load(&chosen.host)).transpose()?;
        let host = match &module {
            Some(module) if form == HostForm::Native => {
                LoadedHost::Native(HostFunction::find(module, &chosen.host.entry)?)
            }
            _ => {
                let limit = options.host_steps.or((!is_trusted).then_some(UNTRUSTED_STEPS));
                LoadedHost::Data(Interpreter::new(program.clone(), variant, limit))
            }
        };
        let account = SharedAccount::new(options.memory_limit);
        let mut threads = 1;
        let engine = match &device.kind {
            Opened::Gpu(gpu) => {
                let wanted = (options.timing, options.trace);
                let backend = GpuBackend::new(gpu.clone(), account.clone(), wanted)?;
                let mut engine = engine(backend, &account);
                kernels::prepare(&mut engine, (&program, chosen, is_trusted), &account)?;
                AnyEngine::Gpu { engine, staging: Pool::new(account.clone()) }
            }
            Opened::Cpu => {
                let pool = Threads::new(options.threads)?;
                threads = pool.count();
                let mut engine = engine(cpu_backend(module.as_ref(), chosen, pool, options.trace)?, &account);
                place_cpu_constants(&mut engine, &program)?;
                AnyEngine::Cpu(engine)
            }
        };
        let record = Record { load_ms: elapsed_ms(start), ..Record::default() };
        Ok(Session { device: device.clone(), program, variant, host, engine, account, threads, record })
    }

    /// Inputs and results.
    pub fn signature(&self) -> &Signature {
        &self.program.signature
    }

    /// The variant that runs.
    pub fn variant(&self) -> &Variant {
        &self.program.variants[self.variant]
    }

    /// The form of the host function that runs: native code or data.
    pub fn host_form(&self) -> HostForm {
        match self.host {
            LoadedHost::Native(_) => HostForm::Native,
            LoadedHost::Data(_) => HostForm::Data,
        }
    }

    /// The device that it runs on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Puts inputs on the device, in the signature's order.
    ///
    /// # Errors
    /// [`Error::Inputs`], [`Error::InputType`], [`Error::InputSize`], and the device's errors.
    pub fn upload(&mut self, inputs: &[HostTensor]) -> Result<Vec<DeviceTensor>, Error> {
        let descs = &self.program.signature.inputs;
        check_count(descs.len(), inputs.len())?;
        descs.iter().zip(inputs).try_for_each(|(desc, input)| input.check(desc))?;
        check_sizes(&self.program.signature, |size| inputs.get(size.input as usize)?.size(size.dim))?;
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
        let device = self.device.id;
        let tensors = inputs.iter().zip(storages);
        let tensors = tensors.map(|(t, storage)| DeviceTensor::new(t.dtype(), t.shape().to_vec(), device, storage));
        Ok(tensors.collect())
    }

    /// Runs the program on device tensors, and waits until its last kernel is done.
    /// Donated inputs are consumed.
    ///
    /// # Errors
    /// [`Error::Inputs`], [`Error::InputType`], [`Error::InputSize`], [`Error::Tensor`]; errors of host code or the device.
    pub fn execute(&mut self, inputs: &[DeviceTensor]) -> Result<Vec<DeviceTensor>, Error> {
        let storages = self.claim(inputs)?;
        let descs = &self.program.signature.results;
        let before = self.created();
        match &mut self.engine {
            AnyEngine::Gpu { engine, .. } => engine.backend.recorder.begin_run(),
            AnyEngine::Cpu(engine) => engine.backend.recorder.begin_run(),
        }
        let start = Instant::now();
        let (results, counts, leaked) = match &mut self.engine {
            AnyEngine::Gpu { engine, .. } => {
                let inputs = unwrap(storages, |storage| match storage {
                    Storage::Gpu(buffer) => Some(Value::Buffer(buffer)),
                    Storage::Scalar(bits) => Some(Value::Scalar(bits)),
                    Storage::Cpu(_) => None,
                })?;
                let outcome = engine.run(&mut self.host, inputs, descs)?;
                (wrap(outcome.results, Storage::Gpu), outcome.counts, outcome.leaked)
            }
            AnyEngine::Cpu(engine) => {
                let inputs = unwrap(storages, |storage| match storage {
                    Storage::Cpu(buffer) => Some(Value::Buffer(buffer)),
                    Storage::Scalar(bits) => Some(Value::Scalar(bits)),
                    Storage::Gpu(_) => None,
                })?;
                let outcome = engine.run(&mut self.host, inputs, descs)?;
                (wrap(outcome.results, Storage::Cpu), outcome.counts, outcome.leaked)
            }
        };
        let run_ms = elapsed_ms(start);
        let gpu_ms = match &mut self.engine {
            AnyEngine::Gpu { engine, .. } => {
                engine.backend.after_run()?;
                engine.backend.last_gpu_ms
            }
            AnyEngine::Cpu(_) => None,
        };
        self.book_run(run_ms, gpu_ms, (counts, leaked), before);
        let (descs, device) = (&self.program.signature.results, self.device.id);
        let tensors = descs.iter().zip(results);
        Ok(tensors.map(|(d, (storage, shape))| DeviceTensor::new(d.dtype, shape, device, storage)).collect())
    }

    /// Copies tensors to the host.
    ///
    /// # Errors
    /// [`Error::Tensor`] for a donated tensor, and the device's errors.
    pub fn readback(&mut self, tensors: &[DeviceTensor]) -> Result<Vec<HostTensor>, Error> {
        let start = Instant::now();
        // A clone of the storage keeps the buffer while it is read, and prevents a later run from consuming it.
        let storages = tensors.iter().map(|tensor| tensor.with(|storage| Ok(storage.clone())));
        let storages = storages.collect::<Result<Vec<_>, Error>>()?;
        let sizes = tensors.iter().map(DeviceTensor::size_bytes);
        let mut data: Vec<Vec<u8>> = vec![Vec::new(); tensors.len()];
        for (i, (storage, bytes)) in storages.iter().zip(sizes.clone()).enumerate() {
            if let Storage::Scalar(bits) = storage {
                data[i] = bits.to_le_bytes()[..bytes as usize].to_vec();
            }
        }
        let in_memory = || storages.iter().zip(sizes.clone()).filter(|(s, _)| !matches!(s, Storage::Scalar(_)));
        let read = match &mut self.engine {
            AnyEngine::Gpu { engine, staging } => {
                let buffers = in_memory().map(|(storage, bytes)| match storage {
                    Storage::Gpu(buffer) => Ok((&***buffer, bytes)),
                    Storage::Cpu(_) | Storage::Scalar(_) => Err(elsewhere()),
                });
                let buffers = buffers.collect::<Result<Vec<_>, Error>>()?;
                let gpu = engine.backend.gpu.clone();
                let read = || gpu.scoped("reading results back", || readback::read(&gpu, staging, &buffers));
                match read() {
                    Err(Error::MemoryLimit { .. }) => {
                        engine.release_idle()?;
                        read()?
                    }
                    data => data?,
                }
            }
            AnyEngine::Cpu(_) => {
                let data = in_memory().map(|(storage, bytes)| match storage {
                    Storage::Cpu(memory) => {
                        let mut data = vec![0; bytes as usize];
                        memory.read(&mut data);
                        Ok(data)
                    }
                    Storage::Gpu(_) | Storage::Scalar(_) => Err(elsewhere()),
                });
                data.collect::<Result<Vec<_>, Error>>()?
            }
        };
        let slots = data.iter_mut().zip(&storages).filter(|(_, s)| !matches!(s, Storage::Scalar(_)));
        slots.zip(read).for_each(|((slot, _), read)| *slot = read);
        self.record.readback = (elapsed_ms(start), data.iter().map(|data| data.len() as u64).sum());
        tensors.iter().zip(data).map(|(t, data)| HostTensor::new(t.dtype, t.shape.clone(), data)).collect()
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
        self.record.run_ms.clear();
        self.record.gpu_ms.clear();
    }

    /// The measurements so far.
    pub fn stats(&self) -> Stats {
        let record = &self.record;
        let plan = &self.variant().plan;
        let gpu_ms = summarize(&record.gpu_ms).map(|times| GpuTimes { min: times.min, median: times.median });
        Stats {
            device: self.device.kind_name().to_owned(),
            adapter: self.device.name().to_owned(),
            threads: self.threads,
            compile_ms: None,
            load_ms: record.load_ms,
            kernels_ms: record.kernels.map(|kernels| kernels.0),
            kernels_built: record.kernels.map_or(0, |kernels| kernels.1),
            pipeline_cache_bytes: self.cache_bytes(),
            run_ms: summarize(&record.run_ms),
            runs: record.run_ms.len(),
            first_run_ms: record.first_run_ms,
            gpu_ms,
            upload_ms: record.upload.0,
            upload_bytes: record.upload.1,
            readback_ms: record.readback.0,
            readback_bytes: record.readback.1,
            counts: record.counts,
            peak_device_bytes: self.account.lock().peak,
            planned_bytes: plan.planned_bytes,
            lower_bound_bytes: plan.lower_bound_bytes,
            steady_state: record.steady,
        }
    }

    /// Takes the spans of the runs so far; empty unless [`Options::trace`] is set.
    pub fn drain_trace(&mut self) -> Vec<Span> {
        match &mut self.engine {
            AnyEngine::Gpu { engine, .. } => engine.backend.recorder.drain(),
            AnyEngine::Cpu(engine) => engine.backend.recorder.drain(),
        }
    }

    /// Ends the session and reports leaks.
    pub fn close(mut self) -> LeakReport {
        let buffers_alive = self.engine.shut();
        let account = self.account.clone();
        let unfreed_allocations = self.record.unfreed;
        drop(self);
        let bytes_alive = account.lock().used;
        LeakReport { buffers_alive, bytes_alive, unfreed_allocations }
    }

    /// Checks the inputs of a run and claims their memory.
    fn claim(&self, inputs: &[DeviceTensor]) -> Result<Vec<Claim>, Error> {
        let descs = &self.program.signature.inputs;
        check_count(descs.len(), inputs.len())?;
        descs.iter().zip(inputs).try_for_each(|(desc, input)| input.check(desc, self.device.id))?;
        check_sizes(&self.program.signature, |size| inputs.get(size.input as usize)?.size(size.dim))?;
        let claimed = descs.iter().zip(inputs).map(|(desc, input)| {
            let storage = if desc.donated { input.consume()? } else { input.with(|storage| Ok(storage.clone()))? };
            Ok(Claim { storage, bytes: input.size_bytes(), shape: input.shape.clone(), donated: desc.donated })
        });
        claimed.collect()
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

    fn book_run(&mut self, run_ms: f64, gpu_ms: Option<f64>, (counts, leaked): (RunCounts, u64), before: Created) {
        let after = self.created();
        let record = &mut self.record;
        record.counts = counts;
        record.unfreed += leaked;
        record.steady = SteadyState {
            buffers_created: after.buffers - before.buffers,
            bind_groups_created: after.bind_groups - before.bind_groups,
            pipelines_created: after.pipelines - before.pipelines,
        };
        // The first run compiles and touches memory for the first time: it is not typical.
        if let (AnyEngine::Gpu { engine, .. }, None) = (&self.engine, record.first_run_ms) {
            record.kernels = Some((engine.backend.kernels_ms, engine.backend.pipelines_created));
            if let Some(disk) = engine.backend.gpu.disk_cache.as_ref().filter(|_| record.steady.pipelines_created > 0) {
                disk.save();
            }
        }
        if record.first_run_ms.is_none() {
            record.first_run_ms = Some(run_ms);
            return;
        }
        record.run_ms.push(run_ms);
        record.gpu_ms.extend(gpu_ms);
    }
}

impl AnyEngine {
    /// Frees the session's buffers, and counts the remaining loans.
    fn shut(&mut self) -> u64 {
        match self {
            AnyEngine::Gpu { engine, staging } => {
                staging.close();
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

fn check_count(expected: usize, found: usize) -> Result<(), Error> {
    if expected == found {
        return Ok(());
    }
    Err(Error::Inputs { what: format!("the program takes {expected} inputs, {found} given") })
}

fn engine<B: Backend>(backend: B, account: &SharedAccount) -> Engine<B> {
    Engine { backend, pool: Pool::new(account.clone()), constants: Vec::new(), arena: None }
}

fn place_cpu_constants(engine: &mut Engine<CpuBackend>, program: &Program) -> Result<(), Error> {
    for constant in &program.constants {
        let data = constant.data.bytes();
        let bytes = data.len() as u64;
        // Constants of a mapped artifact are used in place.
        let loan = match HostMemory::constant(&constant.data) {
            Some(memory) => engine.pool.adopt(memory),
            None => {
                let loan = engine.take(bytes)?;
                loan.write(data);
                loan
            }
        };
        engine.constants.push(Constant { buffer: Arc::new(loan), bytes });
    }
    Ok(())
}

fn cpu_backend(
    module: Option<&Arc<NativeModule>>,
    variant: &Variant,
    threads: Threads,
    with_trace: bool,
) -> Result<CpuBackend, Error> {
    // Without a module there are no kernels.
    let kernels = module.into_iter().flat_map(|module| {
        CpuBackend::describe(&variant.kernels).into_iter().map(move |kernel| {
            let native = NativeKernel::find(module, &kernel.symbol)?;
            Ok((native, kernel.clone(), Cost::default()))
        })
    });
    let kernels = kernels.collect::<Result<Vec<_>, Error>>()?;
    Ok(CpuBackend { threads, kernels, recorder: Recorder::new(with_trace) })
}

/// An input of a run, on any device.
struct Claim {
    storage: Storage,
    bytes: u64,
    shape: Vec<u64>,
    donated: bool,
}

/// The bits of a scalar, in the low bytes.
fn bits(data: &[u8]) -> u64 {
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
        Value::Buffer(buffer) => (storage(buffer), shape),
        Value::Scalar(bits) => (Storage::Scalar(bits), shape),
    });
    each.collect()
}

/// The storages of a run as buffers of one backend.
fn unwrap<B: Physical>(claims: Vec<Claim>, take: impl Fn(Storage) -> Option<Value<B>>) -> Result<Vec<Input<B>>, Error> {
    let inputs = claims.into_iter().map(|Claim { storage, bytes, shape, donated }| {
        let value = take(storage).ok_or_else(elsewhere)?;
        if let Value::Buffer(buffer) = &value
            && donated
            && Arc::strong_count(buffer) > 1
        {
            return Err(Error::Tensor { what: "a donated tensor is in use elsewhere, or is another input too".into() });
        }
        Ok(Input { value, bytes, shape, donated })
    });
    inputs.collect()
}

/// Closes an engine's pool and counts the loans that the session does not hold itself.
fn shut<B: Backend>(engine: &mut Engine<B>) -> u64 {
    engine.constants.clear();
    engine.arena = None;
    engine.pool.close();
    engine.pool.outstanding()
}

mod choice;
mod named;
#[cfg(test)]
mod tests;
