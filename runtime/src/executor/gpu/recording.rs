//! A run's commands that are not yet submitted: data, until they are encoded.
//!
//! So a run that fails half-way leaves no trace in an encoder, which may be the caller's.

use std::ops::Range;

use crate::pipeline_cache::BindGroups;
use crate::timing::Timing;

/// The recorded commands of a run, in order.
///
/// Commands are small, and copies of them few: a run of a thousand dispatches writes and reads all of them once.
#[derive(Debug, Default)]
pub(super) struct Recording {
    commands: Vec<Command>,
    /// Bytes of immediates.
    numbers: Vec<u8>,
    /// The pipelines of dispatches, each other than the one before.
    pipelines: Vec<wgpu::ComputePipeline>,
    /// The number of the last of them, and whether it is the shared one.
    last: Option<(u64, bool)>,
    /// Bind groups that the trail of [`BindGroups`] does not keep.
    own: Vec<wgpu::BindGroup>,
}

/// A command.
#[derive(Debug)]
pub(super) enum Command {
    Dispatch(Dispatch),
    Copy(Box<BufferCopy>),
    Clear(Box<Clear>),
}

/// A copy from one buffer to another.
#[derive(Debug)]
pub(super) struct BufferCopy {
    pub src: (wgpu::Buffer, u64),
    pub dst: (wgpu::Buffer, u64),
    pub bytes: u64,
}

/// A fill with zeros.
#[derive(Debug)]
pub(super) struct Clear {
    pub dst: (wgpu::Buffer, u64),
    pub bytes: u64,
}

/// A dispatch with all that it is bound to.
#[derive(Debug)]
pub(super) struct Dispatch {
    /// Its position among the pipelines.
    pipeline: u32,
    group: Group,
    /// Where its scalars are in the buffer of numbers.
    offset: Option<u32>,
    /// Its immediates among all, from [`Recording::keep`].
    numbers: Range<u32>,
    grid: [u32; 3],
}

/// Where a bind group is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Group {
    /// In the trail of [`BindGroups`].
    Trail(u32),
    /// In the recording.
    Own(u32),
}

impl Recording {
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Number of commands.
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    pub fn add(&mut self, command: Command) {
        self.commands.push(command);
    }

    /// Whether the last pipeline is that of this number, and is the shared one or not.
    pub fn is_next_of(&self, pipeline: (u64, bool)) -> bool {
        self.last == Some(pipeline)
    }

    /// Sets the pipeline of the next dispatches.
    pub fn set_pipeline(&mut self, number: (u64, bool), pipeline: &wgpu::ComputePipeline) {
        self.last = Some(number);
        self.pipelines.push(pipeline.clone());
    }

    /// Adds a dispatch of the last pipeline.
    pub fn dispatch(&mut self, group: Group, (offset, numbers): (Option<u32>, Range<u32>), grid: [u32; 3]) {
        let pipeline = self.pipelines.len() as u32 - 1;
        self.add(Command::Dispatch(Dispatch { pipeline, group, offset, numbers, grid }));
    }

    /// Keeps a bind group for one dispatch.
    pub fn own(&mut self, group: &wgpu::BindGroup) -> Group {
        self.own.push(group.clone());
        Group::Own(self.own.len() as u32 - 1)
    }

    /// Keeps the bytes of immediates.
    pub fn keep(&mut self, numbers: &[u8]) -> Range<u32> {
        let start = self.numbers.len() as u32;
        self.numbers.extend_from_slice(numbers);
        start..self.numbers.len() as u32
    }

    /// Copies between two buffers.
    pub fn copy(&mut self, src: (&wgpu::Buffer, u64), dst: (&wgpu::Buffer, u64), bytes: u64) {
        let owned = |(buffer, at): (&wgpu::Buffer, u64)| (buffer.clone(), at);
        self.add(Command::Copy(Box::new(BufferCopy { src: owned(src), dst: owned(dst), bytes })));
    }

    /// Drops the commands.
    pub fn clear(&mut self) {
        self.commands.clear();
        self.numbers.clear();
        self.pipelines.clear();
        self.last = None;
        self.own.clear();
    }

    /// Moves the commands into an encoder; `groups` has the bind groups of this run.
    pub fn encode(&mut self, encoder: &mut wgpu::CommandEncoder, groups: &BindGroups, mut timing: Option<&mut Timing>) {
        let (mut pass, mut bound) = (None, None);
        for command in &self.commands {
            match command {
                Command::Dispatch(dispatch) => {
                    let pass = pass.get_or_insert_with(|| {
                        bound = None;
                        begin(encoder, timing.as_deref_mut())
                    });
                    if bound != Some(dispatch.pipeline) {
                        pass.set_pipeline(&self.pipelines[dispatch.pipeline as usize]);
                        bound = Some(dispatch.pipeline);
                    }
                    self.encode_dispatch(pass, (dispatch, groups), timing.as_deref_mut());
                }
                Command::Copy(copy) => {
                    pass = None;
                    let BufferCopy { src, dst, bytes } = &**copy;
                    encoder.copy_buffer_to_buffer(&src.0, src.1, &dst.0, dst.1, Some(*bytes));
                }
                Command::Clear(clear) => {
                    pass = None;
                    encoder.clear_buffer(&clear.dst.0, clear.dst.1, Some(clear.bytes));
                }
            }
        }
        drop(pass);
        self.clear();
    }

    fn encode_dispatch(
        &self,
        pass: &mut wgpu::ComputePass<'static>,
        (dispatch, groups): (&Dispatch, &BindGroups),
        timing: Option<&mut Timing>,
    ) {
        let stamps = timing.filter(|timing| timing.per_dispatch).and_then(|timing| {
            let at = timing.pair()?;
            pass.write_timestamp(&timing.set, at);
            Some((&timing.set, at + 1))
        });
        let group = match dispatch.group {
            Group::Trail(at) => groups.group(at as usize),
            Group::Own(at) => &self.own[at as usize],
        };
        pass.set_bind_group(0, group, dispatch.offset.as_slice());
        if !dispatch.numbers.is_empty() {
            let Range { start, end } = dispatch.numbers;
            pass.set_immediates(0, &self.numbers[start as usize..end as usize]);
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
