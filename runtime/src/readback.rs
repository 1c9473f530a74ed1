//! Device buffers to host data, through pooled staging memory.

use std::sync::Arc;

use crate::buffer::GpuBuffer;
use crate::device::GpuDevice;
use crate::error::Error;
use crate::pool::Pool;
use crate::timing::map_with;

const WORD_BYTES: u64 = 4;

/// Reads the first bytes of each of `buffers` into the slice beside it: one submission for all.
pub(crate) fn read(
    gpu: &GpuDevice,
    staging: &Arc<Pool<GpuBuffer>>,
    buffers: &mut [(&GpuBuffer, &mut [u8])],
) -> Result<(), Error> {
    let make = |size: u64| {
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let descriptor = wgpu::BufferDescriptor { label: Some("readback"), size, usage, mapped_at_creation: false };
        Ok(GpuBuffer::new(gpu.device.create_buffer(&descriptor)))
    };
    let descriptor = wgpu::CommandEncoderDescriptor { label: Some("readback") };
    let mut encoder = gpu.device.create_command_encoder(&descriptor);
    let mut staged = Vec::with_capacity(buffers.len());
    for (buffer, place) in &*buffers {
        let words = (place.len() as u64).next_multiple_of(WORD_BYTES);
        let loan = staging.take(words, make)?;
        if words > 0 {
            encoder.copy_buffer_to_buffer(&buffer.buffer, 0, &loan.buffer, 0, Some(words));
        }
        staged.push((loan, words));
    }
    let submission = gpu.submit(Some(encoder.finish()))?;
    gpu.wait(Some(submission))?;
    for ((loan, words), (_, place)) in staged.iter().zip(buffers) {
        if *words > 0 {
            map_with(gpu, &loan.buffer, *words, |data| place.copy_from_slice(&data[..place.len()]))?;
        }
    }
    Ok(())
}
