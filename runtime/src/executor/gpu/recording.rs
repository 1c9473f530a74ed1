//! A run's commands that are not yet submitted: data, until they are encoded.
//!
//! So a run that fails half-way leaves no trace in an encoder, which may be the caller's.

use std::ops::Range;

use crate::timing::Timing;

/// The recorded commands of a run, in order.
#[derive(Debug, Default)]
pub(super) struct Recording {
    commands: Vec<Command>,
    /// Bytes of immediates.
    numbers: Vec<u8>,
    /// The pipeline of the last dispatch.
    last: Option<wgpu::ComputePipeline>,
}

/// A command.
#[derive(Debug)]
pub(super) enum Command {
    Dispatch(Dispatch),
    /// From one buffer to another.
    Copy {
        src: (wgpu::Buffer, u64),
        dst: (wgpu::Buffer, u64),
        bytes: u64,
    },
    /// Fills with zeros.
    Clear {
        dst: (wgpu::Buffer, u64),
        bytes: u64,
    },
}

/// A dispatch with all that it is bound to.
#[derive(Debug)]
pub(super) struct Dispatch {
    /// `None`: that of the dispatch before.
    pub pipeline: Option<wgpu::ComputePipeline>,
    pub group: wgpu::BindGroup,
    /// Where its scalars are in the buffer of numbers.
    pub offset: Option<u32>,
    /// Its immediates among all, from [`Recording::keep`].
    pub numbers: Range<usize>,
    pub grid: [u32; 3],
}

impl Recording {
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    pub fn add(&mut self, command: Command) {
        self.commands.push(command);
    }

    /// The pipeline of the next dispatch, if it is another than that of the last.
    pub fn changed(&mut self, pipeline: &wgpu::ComputePipeline) -> Option<wgpu::ComputePipeline> {
        if self.last.as_ref() == Some(pipeline) {
            return None;
        }
        self.last = Some(pipeline.clone());
        self.last.clone()
    }

    /// Keeps the bytes of immediates.
    pub fn keep(&mut self, numbers: &[u8]) -> Range<usize> {
        let start = self.numbers.len();
        self.numbers.extend_from_slice(numbers);
        start..self.numbers.len()
    }

    /// Copies between two buffers.
    pub fn copy(&mut self, src: (&wgpu::Buffer, u64), dst: (&wgpu::Buffer, u64), bytes: u64) {
        let owned = |(buffer, at): (&wgpu::Buffer, u64)| (buffer.clone(), at);
        self.add(Command::Copy { src: owned(src), dst: owned(dst), bytes });
    }

    /// Drops the commands.
    pub fn clear(&mut self) {
        self.commands.clear();
        self.numbers.clear();
        self.last = None;
    }

    /// Moves the commands into an encoder.
    pub fn encode(&mut self, encoder: &mut wgpu::CommandEncoder, mut timing: Option<&mut Timing>) {
        let (mut pass, mut bound, mut current) = (None, None, None);
        for command in &self.commands {
            match command {
                Command::Dispatch(dispatch) => {
                    let pass = pass.get_or_insert_with(|| {
                        bound = None;
                        begin(encoder, timing.as_deref_mut())
                    });
                    current = dispatch.pipeline.as_ref().or(current);
                    if let Some(pipeline) = current.filter(|_| bound != current) {
                        pass.set_pipeline(pipeline);
                        bound = current;
                    }
                    self.dispatch(pass, dispatch, timing.as_deref_mut());
                }
                Command::Copy { src, dst, bytes } => {
                    pass = None;
                    encoder.copy_buffer_to_buffer(&src.0, src.1, &dst.0, dst.1, Some(*bytes));
                }
                Command::Clear { dst, bytes } => {
                    pass = None;
                    encoder.clear_buffer(&dst.0, dst.1, Some(*bytes));
                }
            }
        }
        drop(pass);
        self.clear();
    }

    fn dispatch(&self, pass: &mut wgpu::ComputePass<'static>, dispatch: &Dispatch, timing: Option<&mut Timing>) {
        let stamps = timing.filter(|timing| timing.per_dispatch).and_then(|timing| {
            let at = timing.pair()?;
            pass.write_timestamp(&timing.set, at);
            Some((&timing.set, at + 1))
        });
        pass.set_bind_group(0, &dispatch.group, dispatch.offset.as_slice());
        if !dispatch.numbers.is_empty() {
            pass.set_immediates(0, &self.numbers[dispatch.numbers.clone()]);
        }
        let [x, y, z] = dispatch.grid;
        pass.dispatch_workgroups(x, y, z);
        if let Some((set, at)) = stamps {
            pass.write_timestamp(set, at);
        }
    }
}

/// Opens a pass.
fn begin(encoder: &mut wgpu::CommandEncoder, timing: Option<&mut Timing>) -> wgpu::ComputePass<'static> {
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
}
