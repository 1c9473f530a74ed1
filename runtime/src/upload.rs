//! Host data to device buffers.

use crate::buffer::GpuBuffer;
use crate::device::GpuDevice;
use crate::error::Error;

/// Bytes written at once. The device API stages each write in memory of its own; pieces bound how much that is.
const PIECE_BYTES: usize = 8 << 20;
/// Bytes in flight before waiting.
const FLIGHT_BYTES: usize = 64 << 20;
const WORD_BYTES: usize = 4;

/// Writes many buffers, few bytes in flight at a time.
pub(crate) struct Uploader<'d> {
    gpu: &'d GpuDevice,
    in_flight: usize,
}

impl<'d> Uploader<'d> {
    pub fn new(gpu: &'d GpuDevice) -> Uploader<'d> {
        Uploader { gpu, in_flight: 0 }
    }

    /// Writes `data` to the start of `buffer`, which is at least as long, in whole words.
    pub fn write(&mut self, buffer: &GpuBuffer, data: &[u8]) -> Result<(), Error> {
        let whole = data.len() / WORD_BYTES * WORD_BYTES;
        let (words, rest) = data.split_at(whole);
        for (piece, at) in words.chunks(PIECE_BYTES).zip((0u64..).step_by(PIECE_BYTES)) {
            self.gpu.queue.write_buffer(&buffer.buffer, at, piece);
            self.in_flight += piece.len();
            if self.in_flight >= FLIGHT_BYTES {
                self.finish()?;
            }
        }
        if !rest.is_empty() {
            let mut word = [0; WORD_BYTES];
            word[..rest.len()].copy_from_slice(rest);
            self.gpu.queue.write_buffer(&buffer.buffer, whole as u64, &word);
        }
        Ok(())
    }

    /// Waits until everything that was written is there.
    pub fn finish(&mut self) -> Result<(), Error> {
        let submission = self.gpu.queue.submit([]);
        self.in_flight = 0;
        self.gpu.wait(Some(submission))
    }
}
