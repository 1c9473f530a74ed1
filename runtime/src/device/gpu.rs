//! A wgpu device with the runtime's state of it: one of its own, or the caller's.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use monopour_program::GpuDescription;
use wgpu::Features;

use super::{describe_as, features_of, scopes};
use crate::disk_cache::DiskCache;
use crate::error::Error;
use crate::hal;

/// How long a mapping that another thread makes is awaited before a further poll, and how often.
const LOOK_AFTER: Duration = Duration::from_millis(5);
const MAX_LOOKS: u32 = 12_000;

/// A wgpu device with the runtime's state of it.
#[derive(Clone, Debug)]
pub(crate) struct GpuDevice {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub description: Arc<GpuDescription>,
    pub limits: wgpu::Limits,
    /// The driver's pipeline cache, if it has one.
    pub disk_cache: Option<Arc<DiskCache>>,
    /// The reason, once the device is lost.
    lost: Arc<Mutex<Option<String>>>,
    /// Whether it is the caller's.
    is_guest: bool,
}

impl GpuDevice {
    /// Requests a device with all [`FEATURES`] of the adapter, and its full limits.
    pub fn request(adapter: &wgpu::Adapter, description: GpuDescription) -> Result<GpuDevice, Error> {
        GpuDevice::request_with(adapter, description, features_of(adapter.features()), adapter.limits())
    }

    pub fn request_with(
        adapter: &wgpu::Adapter,
        description: GpuDescription,
        required_features: Features,
        required_limits: wgpu::Limits,
    ) -> Result<GpuDevice, Error> {
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("monopour"),
            required_features,
            required_limits,
            experimental_features: hal::experimental_features(),
            ..Default::default()
        };
        let (device, queue) = pollster::block_on(adapter.request_device(&descriptor))
            .map_err(|error| Error::DeviceRequest { adapter: description.name.clone(), message: error.to_string() })?;
        // Errors are caught by scopes; uncaught ones are logged, because wgpu's default is to panic.
        device.on_uncaptured_error(Arc::new(|error| log::error!("device error outside of any scope: {error}")));
        let lost = Arc::new(Mutex::new(None));
        let cell = lost.clone();
        device.set_device_lost_callback(move |reason, message| {
            *cell.lock().unwrap_or_else(PoisonError::into_inner) = Some(format!("{reason:?}: {message}"));
        });
        let limits = device.limits();
        let disk_cache = DiskCache::open(&device, &adapter.get_info()).map(Arc::new);
        Ok(GpuDevice { device, queue, description: Arc::new(description), limits, disk_cache, lost, is_guest: false })
    }

    /// The caller's device, of which nothing is changed: neither its callbacks nor its limits.
    ///
    /// # Errors
    /// [`Error::Limit`] when it has no compute shaders that write buffers.
    pub fn adopt(device: wgpu::Device, queue: wgpu::Queue) -> Result<GpuDevice, Error> {
        let (info, limits) = (device.adapter_info(), device.limits());
        let needed: [(&'static str, u64); 4] = [
            ("storage buffers", limits.max_storage_buffers_per_shader_stage.into()),
            ("binding size", limits.max_storage_buffer_binding_size),
            ("workgroups per dimension", limits.max_compute_workgroups_per_dimension.into()),
            ("invocations of a workgroup", limits.max_compute_invocations_per_workgroup.into()),
        ];
        if let Some((limit, offered)) = needed.into_iter().find(|(_, offered)| *offered == 0) {
            return Err(Error::Limit { subject: "a device for kernels".into(), limit, needed: 1, offered });
        }
        // Which matrices there are only the adapter knows.
        let features = device.features() - Features::EXPERIMENTAL_COOPERATIVE_MATRIX;
        let description = Arc::new(describe_as(&info, features, &limits));
        let lost = Arc::default();
        let mut gpu = GpuDevice { device, queue, description, limits, disk_cache: None, lost, is_guest: true };
        gpu.disk_cache = gpu.scoped("the pipeline cache", || Ok(DiskCache::open(&gpu.device, &info)))?.map(Arc::new);
        Ok(gpu)
    }

    /// Runs `f`; device errors meanwhile become [`Error`]s.
    pub fn scoped<T>(&self, doing: &str, f: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let (outcome, report) = scopes::scoped(&self.device, f);
        if let Some(message) = self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            return Err(Error::DeviceLost { message });
        }
        // An error from `f` itself is more precise than its consequences; but a failed wait follows from a rejection.
        let value = match outcome {
            Err(Error::DeviceLost { .. }) if report.is_some() => None,
            outcome => Some(outcome?),
        };
        match report {
            None => value.ok_or_else(|| Error::DeviceLost { message: "nothing was submitted".into() }),
            Some(wgpu::Error::OutOfMemory { .. }) => Err(Error::OutOfMemory { asked_bytes: 0 }),
            // What a lost device made is invalid, and refused where it is used.
            Some(error) if !self.is_alive() => Err(Error::DeviceLost { message: one_line(&error) }),
            Some(error) => Err(Error::Rejected { doing: doing.to_owned(), message: one_line(&error) }),
        }
    }

    /// Submits commands, unless the device has refused them.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], beside which the refusal is in this thread's error scopes.
    pub fn submit(&self, commands: Option<wgpu::CommandBuffer>) -> Result<wgpu::SubmissionIndex, Error> {
        if !self.is_guest {
            return Ok(self.queue.submit(commands));
        }
        // A submission runs callbacks that are due: the caller's must not make their errors in our scopes. What is wrong with
        // our commands was found when they were finished.
        let submit = |is_clean: bool| is_clean.then(|| self.queue.submit(commands));
        let refused = || Error::DeviceLost { message: "nothing was submitted".into() };
        scopes::unscoped(submit).ok_or_else(refused)
    }

    /// Polls the device, outside of this thread's error scopes.
    pub fn poll(&self, poll: wgpu::PollType) -> Result<wgpu::PollStatus, wgpu::PollError> {
        scopes::unscoped(|_| self.device.poll(poll))
    }

    /// Waits until a submission is done, outside of [`GpuDevice::scoped`]. Never with a time limit: wgpu 30.0.1 panics when
    /// another thread empties the queue as that runs out (gfx-rs/wgpu#9958).
    ///
    /// # Errors
    /// Those of [`GpuDevice::wait`].
    pub fn wait_for(&self, submission: &wgpu::SubmissionIndex) -> Result<(), Error> {
        let outcome = self.wait(Some(submission.clone()));
        // A wait for a lost device ends at once.
        match self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            Some(message) => Err(Error::DeviceLost { message }),
            None => outcome,
        }
    }

    /// Maps the first bytes of a buffer that the device has finished with.
    ///
    /// # Errors
    /// The device API's message.
    pub fn map(&self, buffer: &wgpu::Buffer, (mode, bytes): (wgpu::MapMode, u64)) -> Result<(), String> {
        let (sender, receiver) = mpsc::channel();
        buffer.map_async(mode, 0..bytes, move |outcome| {
            // A wait that ended has no receiver to inform.
            let _ = sender.send(outcome);
        });
        // The buffer is idle, so that a poll maps it; to wait for the queue would wait for others' work. But the poll of another
        // thread may be the one that maps, and calls back a little after ours returns.
        for _ in 0..MAX_LOOKS {
            let _ = self.poll(wgpu::PollType::Poll);
            match receiver.recv_timeout(LOOK_AFTER) {
                Ok(outcome) => return outcome.map_err(|error| error.to_string()),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Err("the buffer is not mapped".into())
    }

    /// Waits until a submission is done; without one, all of them.
    ///
    /// # Errors
    /// [`Error::DeviceLost`]; [`Error::Rejected`] where the device lives and has refused the submission.
    pub fn wait(&self, submission: Option<wgpu::SubmissionIndex>) -> Result<(), Error> {
        let poll = wgpu::PollType::Wait { submission_index: submission, timeout: None };
        let Err(error) = self.poll(poll) else { return Ok(()) };
        let message = error.to_string();
        if self.is_guest && self.is_alive() {
            return Err(Error::Rejected { doing: "a submission".into(), message });
        }
        Err(Error::DeviceLost { message })
    }

    /// Whether the device is not lost. The callback for that is the caller's; but only a lost device refuses to do nothing.
    fn is_alive(&self) -> bool {
        if !self.is_guest {
            return self.lost.lock().unwrap_or_else(PoisonError::into_inner).is_none();
        }
        let nothing = scopes::unscoped(|_| self.queue.submit([]));
        self.poll(wgpu::PollType::Wait { submission_index: Some(nothing), timeout: None }).is_ok()
    }
}

/// An error and its causes on one line.
fn one_line(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
