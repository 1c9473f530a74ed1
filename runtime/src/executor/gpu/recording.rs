//! A run's commands that are not yet submitted.

use crate::device::GpuDevice;
use crate::timing::Timing;

/// The recorded commands of a run, not yet submitted.
pub(super) struct Recording {
    pub encoder: wgpu::CommandEncoder,
    pass: Option<wgpu::ComputePass<'static>>,
}

impl Recording {
    pub fn new(gpu: &GpuDevice) -> Recording {
        let descriptor = wgpu::CommandEncoderDescriptor { label: None };
        Recording { encoder: gpu.device.create_command_encoder(&descriptor), pass: None }
    }

    /// The encoder outside of a pass.
    pub fn commands(&mut self) -> &mut wgpu::CommandEncoder {
        self.pass = None;
        &mut self.encoder
    }

    /// The open pass; opens one if need be.
    pub fn pass(&mut self, timing: Option<&mut Timing>) -> &mut wgpu::ComputePass<'static> {
        let encoder = &mut self.encoder;
        self.pass.get_or_insert_with(|| {
            let timing = timing.filter(|timing| !timing.per_dispatch);
            let timestamp_writes = timing.and_then(|timing| {
                let at = timing.pair()?;
                Some(wgpu::ComputePassTimestampWrites {
                    query_set: &timing.set,
                    beginning_of_pass_write_index: Some(at),
                    end_of_pass_write_index: Some(at + 1),
                })
            });
            encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes }).forget_lifetime()
        })
    }
}
