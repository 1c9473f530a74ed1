//! Host data to device buffers.
//!
//! Small tensors go through the queue, which stages them itself. For large ones that would touch fresh memory for each
//! piece, several times slower than the copy; they go through two alternating staging buffers, which are touched once.

use crate::buffer::GpuBuffer;
use crate::device::GpuDevice;
use crate::error::Error;
use crate::pool::SharedAccount;

/// Least size for which staging buffers pay off.
const STAGED_BYTES: usize = 1 << 20;
/// Bytes of one staging buffer: it stays in a CPU's cache, and its copy takes far longer than its submission.
const PIECE_BYTES: usize = 4 << 20;
/// Bytes in flight through the queue before waiting.
const FLIGHT_BYTES: usize = 64 << 20;
const WORD_BYTES: usize = 4;

/// Writes many buffers, with few bytes in flight.
pub(crate) struct Uploader<'d> {
    gpu: &'d GpuDevice,
    account: &'d SharedAccount,
    in_flight: usize,
    staging: Vec<Staging>,
    next: usize,
}

struct Staging {
    buffer: wgpu::Buffer,
    /// The submission that reads it; `None` while it is mapped.
    busy: Option<wgpu::SubmissionIndex>,
}

impl<'d> Uploader<'d> {
    pub fn new(gpu: &'d GpuDevice, account: &'d SharedAccount) -> Uploader<'d> {
        Uploader { gpu, account, in_flight: 0, staging: Vec::new(), next: 0 }
    }

    /// Writes `data` to the start of `buffer`, which is at least as long, in whole words.
    pub fn write(&mut self, buffer: &GpuBuffer, data: &[u8]) -> Result<(), Error> {
        let whole = data.len() / WORD_BYTES * WORD_BYTES;
        let (words, rest) = data.split_at(whole);
        if !self.stages(words.len())? {
            for (piece, at) in words.chunks(PIECE_BYTES).zip((0u64..).step_by(PIECE_BYTES)) {
                self.write_small(buffer, at, piece)?;
            }
        } else {
            for (piece, at) in words.chunks(PIECE_BYTES).zip((0u64..).step_by(PIECE_BYTES)) {
                self.write_staged(buffer, at, piece)?;
            }
        }
        if !rest.is_empty() {
            let mut word = [0; WORD_BYTES];
            word[..rest.len()].copy_from_slice(rest);
            self.write_small(buffer, whole as u64, &word)?;
        }
        Ok(())
    }

    /// Waits until all writes are done.
    pub fn finish(&mut self) -> Result<(), Error> {
        let submission = self.gpu.submit(None)?;
        self.in_flight = 0;
        self.gpu.wait(Some(submission))
    }

    /// Whether data of this size goes through staging buffers, which are created on first use.
    fn stages(&mut self, bytes: usize) -> Result<bool, Error> {
        // Two new ones are touched for the first time too: they pay off once both are used again.
        let reuses = !self.staging.is_empty() || self.in_flight + bytes > 2 * PIECE_BYTES;
        if bytes < STAGED_BYTES || !reuses {
            return Ok(false);
        }
        while self.staging.len() < 2 {
            // Without room for them under a memory limit, the queue is used.
            if self.account.reserve(PIECE_BYTES as u64).is_err() {
                return Ok(!self.staging.is_empty());
            }
            let buffer = self.gpu.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("upload"),
                size: PIECE_BYTES as u64,
                usage: wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC,
                mapped_at_creation: true,
            });
            self.staging.push(Staging { buffer, busy: None });
        }
        Ok(true)
    }

    fn write_small(&mut self, buffer: &GpuBuffer, at: u64, piece: &[u8]) -> Result<(), Error> {
        self.gpu.queue.write_buffer(&buffer.buffer, at, piece);
        self.in_flight += piece.len();
        if self.in_flight >= FLIGHT_BYTES { self.finish() } else { Ok(()) }
    }

    fn write_staged(&mut self, buffer: &GpuBuffer, at: u64, piece: &[u8]) -> Result<(), Error> {
        let rejected = |message: String| Error::Rejected { doing: "writing to a buffer".into(), message };
        let next = self.next % self.staging.len();
        self.next += 1;
        let staging = &mut self.staging[next];
        if let Some(submission) = staging.busy.take() {
            // The other buffer's copy runs while this one is awaited and filled.
            self.gpu.wait(Some(submission))?;
            let whole = (wgpu::MapMode::Write, PIECE_BYTES as u64);
            self.gpu.map(&staging.buffer, whole).map_err(rejected)?;
        }
        let bytes = piece.len() as u64;
        let mut view = staging.buffer.get_mapped_range_mut(0..bytes).map_err(|error| rejected(error.to_string()))?;
        view.copy_from_slice(piece);
        drop(view);
        staging.buffer.unmap();
        let descriptor = wgpu::CommandEncoderDescriptor { label: Some("upload") };
        let mut encoder = self.gpu.device.create_command_encoder(&descriptor);
        encoder.copy_buffer_to_buffer(&staging.buffer, 0, &buffer.buffer, at, Some(bytes));
        staging.busy = Some(self.gpu.submit(Some(encoder.finish()))?);
        Ok(())
    }
}

impl Drop for Uploader<'_> {
    fn drop(&mut self) {
        self.staging.iter().for_each(|_| self.account.release(PIECE_BYTES as u64));
    }
}
