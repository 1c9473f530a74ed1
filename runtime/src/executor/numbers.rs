//! Scalars of kernels that read them from a uniform buffer: one buffer per session, a range in it per dispatch.
//!
//! The scalars of a submission's dispatches are collected on the host and written by one queue write before the
//! submission. The queue orders that write after the earlier submissions, so that the next submission starts at offset 0
//! again. A dispatch finds its range by the dynamic offset of its bind group: a warm run creates neither buffers nor groups.

use crate::device::GpuDevice;
use crate::error::Error;
use crate::pool::SharedAccount;

/// Uniform bindings are multiples of a vector.
const GRANULARITY: usize = 16;

/// The buffer, and its contents for the dispatches that are not submitted yet.
pub(crate) struct Numbers {
    pub buffer: wgpu::Buffer,
    written: Vec<u8>,
}

impl Numbers {
    /// Bytes of the buffer: 1,024 dispatches of one submission at an alignment of 256 bytes.
    pub const BYTES: u64 = 256 << 10;

    /// Creates the buffer.
    ///
    /// # Errors
    /// The memory limit's.
    pub fn new(gpu: &GpuDevice, account: &SharedAccount) -> Result<Numbers, Error> {
        account.reserve(Self::BYTES)?;
        let buffer = gpu.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("numbers"),
            size: Self::BYTES,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        Ok(Numbers { buffer, written: Vec::new() })
    }

    /// Bytes of a binding of `bytes` numbers.
    pub fn bound_bytes(bytes: u32) -> u64 {
        u64::from(bytes).next_multiple_of(GRANULARITY as u64)
    }

    /// Places `numbers` and returns their offset; `None` when the buffer is full.
    pub fn place(&mut self, gpu: &GpuDevice, numbers: &[u8]) -> Option<u32> {
        let at = self.written.len().next_multiple_of(gpu.limits.min_uniform_buffer_offset_alignment as usize);
        let end = (at + numbers.len()).next_multiple_of(GRANULARITY);
        if end as u64 > Self::BYTES {
            return None;
        }
        self.written.resize(at, 0);
        self.written.extend_from_slice(numbers);
        self.written.resize(end, 0);
        Some(at as u32)
    }

    /// Bytes that are placed.
    pub fn placed(&self) -> usize {
        self.written.len()
    }

    /// Writes the placed scalars; called right before the submission.
    pub fn flush(&mut self, queue: &wgpu::Queue) {
        if !self.written.is_empty() {
            queue.write_buffer(&self.buffer, 0, &self.written);
            self.written.clear();
        }
    }

    /// Moves the placed scalars to a buffer from which commands copy them, whenever those are submitted; `None` without any.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn stage(&mut self, gpu: &GpuDevice) -> Result<Option<wgpu::Buffer>, Error> {
        if self.written.is_empty() {
            return Ok(None);
        }
        let size = self.written.len() as u64;
        let staging = gpu.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("recorded numbers"),
            size,
            usage: wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: true,
        });
        let view = staging.get_mapped_range_mut(..);
        view.map_err(|_| Error::OutOfMemory { asked_bytes: size })?.copy_from_slice(&self.written);
        staging.unmap();
        self.written.clear();
        Ok(Some(staging))
    }

    /// Drops placed scalars that will not be submitted.
    pub fn forget(&mut self) {
        self.written.clear();
    }

    /// Frees the memory.
    pub fn release(self, account: &SharedAccount) {
        drop(self.buffer);
        account.release(Self::BYTES);
    }
}
