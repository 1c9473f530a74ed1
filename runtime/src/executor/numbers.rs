//! The numbers of kernels that get them in a uniform buffer: one buffer per session, a place in it per dispatch.
//!
//! What the dispatches of a submission ask for is collected on the host and written by one queue write in front of the
//! submission. The queue orders that write behind what was submitted before, so that the next submission begins at the front
//! again. A dispatch finds its place by the dynamic offset of its bind group: a warm run makes neither buffers nor groups.

use crate::device::GpuDevice;
use crate::error::Error;
use crate::pool::SharedAccount;

/// Bytes of the buffer: 1,024 dispatches of one submission where places lie 256 bytes apart.
const BYTES: u64 = 256 << 10;
/// Uniform bindings are multiples of a vector.
const GRANULARITY: usize = 16;

/// The buffer, and what the dispatches that are not submitted yet will find in it.
pub(crate) struct Numbers {
    pub buffer: wgpu::Buffer,
    written: Vec<u8>,
}

impl Numbers {
    /// Makes the buffer.
    ///
    /// # Errors
    /// The memory limit's.
    pub fn new(gpu: &GpuDevice, account: &SharedAccount) -> Result<Numbers, Error> {
        account.reserve(BYTES)?;
        let buffer = gpu.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("numbers"),
            size: BYTES,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        Ok(Numbers { buffer, written: Vec::new() })
    }

    /// Bytes of a binding of `bytes` numbers.
    pub fn bound_bytes(bytes: u32) -> u64 {
        u64::from(bytes).next_multiple_of(GRANULARITY as u64)
    }

    /// Gives `numbers` a place and returns its offset; `None` when the buffer is full.
    pub fn place(&mut self, gpu: &GpuDevice, numbers: &[u8]) -> Option<u32> {
        let at = self.written.len().next_multiple_of(gpu.limits.min_uniform_buffer_offset_alignment as usize);
        let end = (at + numbers.len()).next_multiple_of(GRANULARITY);
        if end as u64 > BYTES {
            return None;
        }
        self.written.resize(at, 0);
        self.written.extend_from_slice(numbers);
        self.written.resize(end, 0);
        Some(at as u32)
    }

    /// Writes what was placed; to be called right before what was recorded is submitted.
    pub fn flush(&mut self, queue: &wgpu::Queue) {
        if !self.written.is_empty() {
            queue.write_buffer(&self.buffer, 0, &self.written);
            self.written.clear();
        }
    }

    /// Forgets what was placed and will not be submitted.
    pub fn forget(&mut self) {
        self.written.clear();
    }

    /// Gives the memory back.
    pub fn release(self, account: &SharedAccount) {
        drop(self.buffer);
        account.release(BYTES);
    }
}
