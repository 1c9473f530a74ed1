//! Device buffers to host data, through pooled staging memory.

use std::sync::Arc;

use crate::buffer::GpuBuffer;
use crate::device::GpuDevice;
use crate::error::Error;
use crate::pool::Pool;
use crate::timing::map_to_vec;

const WORD_BYTES: u64 = 4;

/// Reads the first bytes of each of `buffers`: one submission for all.
pub(crate) fn read(
    gpu: &GpuDevice,
    staging: &Arc<Pool<GpuBuffer>>,
    buffers: &[(&GpuBuffer, u64)],
) -> Result<Vec<Vec<u8>>, Error> {
    let make = |size: u64| {
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let descriptor = wgpu::BufferDescriptor { label: Some("readback"), size, usage, mapped_at_creation: false };
        Ok(GpuBuffer::new(gpu.device.create_buffer(&descriptor)))
    };
    let descriptor = wgpu::CommandEncoderDescriptor { label: Some("readback") };
    let mut encoder = gpu.device.create_command_encoder(&descriptor);
    let mut staged = Vec::with_capacity(buffers.len());
    for &(buffer, bytes) in buffers {
        let words = bytes.next_multiple_of(WORD_BYTES);
        let loan = staging.take(words, make)?;
        if words > 0 {
            encoder.copy_buffer_to_buffer(&buffer.buffer, 0, &loan.buffer, 0, Some(words));
        }
        staged.push((loan, bytes, words));
    }
    let submission = gpu.submit(Some(encoder.finish()))?;
    gpu.wait(Some(submission))?;
    let read = staged.iter().map(|(loan, bytes, words)| {
        if *words == 0 {
            return Ok(Vec::new());
        }
        let mut data = map_to_vec(gpu, &loan.buffer, *words)?;
        data.truncate(*bytes as usize);
        Ok(data)
    });
    read.collect()
}
