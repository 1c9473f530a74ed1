//! Device time by timestamps: one pair per pass, or per dispatch with a trace.

use crate::device::GpuDevice;
use crate::error::Error;
use crate::pool::SharedAccount;

/// Most timestamps of one run; a run with more passes or dispatches has no device time.
const MAX_STAMPS: u32 = 4096;
const STAMP_BYTES: u64 = 8;

/// Timestamp queries and the buffers to read them.
#[derive(Debug)]
pub(crate) struct Timing {
    pub set: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    mapped: wgpu::Buffer,
    /// Nanoseconds per tick.
    period: f64,
    /// Stamps used by this run.
    used: u32,
    overflowed: bool,
    /// Whether stamps can be written between dispatches.
    pub per_dispatch: bool,
    account: SharedAccount,
}

impl Timing {
    /// Queries on `gpu`, if it has timestamps. `per_dispatch` requests stamps between dispatches.
    pub fn new(gpu: &GpuDevice, per_dispatch: bool, account: &SharedAccount) -> Result<Option<Timing>, Error> {
        let features = gpu.device.features();
        if !features.contains(wgpu::Features::TIMESTAMP_QUERY) {
            return Ok(None);
        }
        let bytes = u64::from(MAX_STAMPS) * STAMP_BYTES;
        account.reserve(bytes)?;
        account.reserve(bytes)?;
        let buffer = |label, usage| {
            let label = Some(label);
            gpu.device.create_buffer(&wgpu::BufferDescriptor { label, size: bytes, usage, mapped_at_creation: false })
        };
        Ok(Some(Timing {
            set: gpu.device.create_query_set(&wgpu::QuerySetDescriptor {
                label: Some("timestamps"),
                ty: wgpu::QueryType::Timestamp,
                count: MAX_STAMPS,
            }),
            resolved: buffer("stamps", wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC),
            mapped: buffer("stamps to read", wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST),
            period: f64::from(gpu.queue.get_timestamp_period()),
            used: 0,
            overflowed: false,
            per_dispatch: per_dispatch && features.contains(wgpu::Features::TIMESTAMP_QUERY_INSIDE_PASSES),
            account: account.clone(),
        }))
    }

    /// Drops the stamps of the last run.
    pub fn reset(&mut self) {
        (self.used, self.overflowed) = (0, false);
    }

    /// The first of two stamps.
    pub fn pair(&mut self) -> Option<u32> {
        if self.used + 2 > MAX_STAMPS {
            self.overflowed = true;
            return None;
        }
        self.used += 2;
        Some(self.used - 2)
    }

    /// Records the copies of the stamps to the host.
    pub fn resolve(&self, encoder: &mut wgpu::CommandEncoder) {
        if self.used > 0 {
            let bytes = u64::from(self.used) * STAMP_BYTES;
            encoder.resolve_query_set(&self.set, 0..self.used, &self.resolved, 0);
            encoder.copy_buffer_to_buffer(&self.resolved, 0, &self.mapped, 0, Some(bytes));
        }
    }

    /// The pairs of the last run as (start, length) in nanoseconds from the first stamp. The run must be complete.
    pub fn read(&self, gpu: &GpuDevice) -> Result<Option<Vec<(f64, f64)>>, Error> {
        if self.used == 0 || self.overflowed {
            return Ok(None);
        }
        let bytes = u64::from(self.used) * STAMP_BYTES;
        let data = map_to_vec(gpu, &self.mapped, bytes)?;
        let stamps: Vec<u64> = data.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let origin = stamps[0];
        let ns = |ticks: u64| ticks as f64 * self.period;
        let pair = |pair: &[u64; 2]| (ns(pair[0].saturating_sub(origin)), ns(pair[1].saturating_sub(pair[0])));
        Ok(Some(stamps.as_chunks::<2>().0.iter().map(pair).collect()))
    }
}

impl Drop for Timing {
    fn drop(&mut self) {
        let bytes = u64::from(MAX_STAMPS) * STAMP_BYTES;
        self.account.release(bytes);
        self.account.release(bytes);
    }
}

/// Maps `bytes` of a buffer that the device has finished with, and copies them out.
pub(crate) fn map_to_vec(gpu: &GpuDevice, buffer: &wgpu::Buffer, bytes: u64) -> Result<Vec<u8>, Error> {
    map_with(gpu, buffer, bytes, <[u8]>::to_vec)
}

/// Maps `bytes` of a buffer that the device has finished with, for `read`.
pub(crate) fn map_with<T>(
    gpu: &GpuDevice,
    buffer: &wgpu::Buffer,
    bytes: u64,
    read: impl FnOnce(&[u8]) -> T,
) -> Result<T, Error> {
    let rejected = |message: String| Error::Rejected { doing: "reading a buffer back".into(), message };
    gpu.map(buffer, (wgpu::MapMode::Read, bytes)).map_err(rejected)?;
    let outcome = {
        let view = buffer.get_mapped_range(0..bytes).map_err(|error| rejected(error.to_string()))?;
        read(&view)
    };
    buffer.unmap();
    Ok(outcome)
}
