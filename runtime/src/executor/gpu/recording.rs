//! A run's commands that are not yet submitted: data, until they are encoded.
//!
//! So a run that fails half-way leaves no trace in an encoder, which may be the caller's.

use std::collections::HashMap;
use std::ops::Range;

use crate::executor::Mark;
use crate::pipeline_cache::BindGroups;
use crate::timing::Timing;

/// The recorded commands of a run, in order.
///
/// Commands are small, and copies of them few: a run of a thousand dispatches writes and reads all of them once. Those of the
/// run before stay until others take their places, so that a run that repeats them does not write them again.
#[derive(Debug, Default)]
pub(super) struct Recording {
    commands: Vec<Command>,
    /// How many of them are of this run.
    len: usize,
    /// Bytes of immediates.
    numbers: Vec<u8>,
    /// How many of them are of this run.
    numbers_len: usize,
    /// The pipelines of all dispatches so far, with their numbers and whether each is the shared one.
    pipelines: Vec<(PipelineKey, wgpu::ComputePipeline)>,
    known: HashMap<PipelineKey, u32>,
    /// The position of the last dispatch's among them.
    last: Option<u32>,
    /// Bind groups that the trail of [`BindGroups`] does not keep.
    own: Vec<wgpu::BindGroup>,
    transfers: Vec<Transfer>,
    /// Recordings that were moved into encoders.
    encoded: u64,
}

/// A pipeline's number, and whether it is the shared one.
type PipelineKey = (u64, bool);

/// A command.
#[derive(Debug)]
enum Command {
    Dispatch(Dispatch),
    /// By its position.
    Transfer(u32),
}

/// What ends a pass.
#[derive(Debug)]
pub(super) enum Transfer {
    Copy(BufferCopy),
    Clear(Clear),
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
        self.len == 0
    }

    /// Number of commands.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Numbers of commands, of bytes of immediates, and of recordings before.
    pub fn position(&self) -> (usize, usize, u64) {
        (self.len, self.numbers_len, self.encoded)
    }

    /// Takes over what the run before recorded up to a mark, behind a dispatch; false if it is no longer there.
    pub fn repeat(&mut self, end: &Mark) -> bool {
        let last = end.commands.checked_sub(1).and_then(|last| self.commands.get(last));
        let (Some(Command::Dispatch(last)), true) = (last, end.numbers <= self.numbers.len()) else { return false };
        (self.len, self.numbers_len, self.last) = (end.commands, end.numbers, Some(last.pipeline));
        true
    }

    fn add(&mut self, command: Command) {
        match self.commands.get_mut(self.len) {
            Some(place) => *place = command,
            None => self.commands.push(command),
        }
        self.len += 1;
    }

    /// Adds a copy or a fill.
    pub fn transfer(&mut self, transfer: Transfer) {
        self.transfers.push(transfer);
        self.add(Command::Transfer(self.transfers.len() as u32 - 1));
    }

    /// Whether the last pipeline is that of this number, and is the shared one or not.
    pub fn is_next_of(&self, pipeline: PipelineKey) -> bool {
        self.last.is_some_and(|last| self.pipelines[last as usize].0 == pipeline)
    }

    /// Sets the pipeline of the next dispatches.
    pub fn set_pipeline(&mut self, key: PipelineKey, pipeline: &wgpu::ComputePipeline) {
        let pipelines = &mut self.pipelines;
        self.last = Some(*self.known.entry(key).or_insert_with(|| {
            pipelines.push((key, pipeline.clone()));
            pipelines.len() as u32 - 1
        }));
    }

    /// Adds a dispatch of the last pipeline.
    pub fn dispatch(&mut self, group: Group, (offset, numbers): (Option<u32>, Range<u32>), grid: [u32; 3]) {
        let pipeline = self.last.expect("invariant: the pipeline is set before the dispatch");
        self.add(Command::Dispatch(Dispatch { pipeline, group, offset, numbers, grid }));
    }

    /// Keeps a bind group for one dispatch.
    pub fn own(&mut self, group: &wgpu::BindGroup) -> Group {
        self.own.push(group.clone());
        Group::Own(self.own.len() as u32 - 1)
    }

    /// Keeps the bytes of immediates.
    pub fn keep(&mut self, numbers: &[u8]) -> Range<u32> {
        let (start, end) = (self.numbers_len, self.numbers_len + numbers.len());
        if end > self.numbers.len() {
            self.numbers.resize(end, 0);
        }
        self.numbers[start..end].copy_from_slice(numbers);
        self.numbers_len = end;
        start as u32..end as u32
    }

    /// Copies between two buffers.
    pub fn copy(&mut self, src: (&wgpu::Buffer, u64), dst: (&wgpu::Buffer, u64), bytes: u64) {
        let owned = |(buffer, at): (&wgpu::Buffer, u64)| (buffer.clone(), at);
        self.transfer(Transfer::Copy(BufferCopy { src: owned(src), dst: owned(dst), bytes }));
    }

    /// Drops the commands, those of the run before too.
    pub fn clear(&mut self) {
        self.commands.clear();
        self.numbers.clear();
        self.rewind();
    }

    /// Begins anew, with the commands so far as those of the run before.
    fn rewind(&mut self) {
        (self.len, self.numbers_len, self.last) = (0, 0, None);
        self.own.clear();
        self.transfers.clear();
    }

    /// Moves the commands into an encoder; `groups` has the bind groups of this run.
    pub fn encode(&mut self, encoder: &mut wgpu::CommandEncoder, groups: &BindGroups, mut timing: Option<&mut Timing>) {
        let (mut pass, mut bound) = (None, None);
        for command in &self.commands[..self.len] {
            match command {
                Command::Dispatch(dispatch) => {
                    let pass = pass.get_or_insert_with(|| {
                        bound = None;
                        begin(encoder, timing.as_deref_mut())
                    });
                    if bound != Some(dispatch.pipeline) {
                        pass.set_pipeline(&self.pipelines[dispatch.pipeline as usize].1);
                        bound = Some(dispatch.pipeline);
                    }
                    self.encode_dispatch(pass, (dispatch, groups), timing.as_deref_mut());
                }
                Command::Transfer(at) => {
                    pass = None;
                    match &self.transfers[*at as usize] {
                        Transfer::Copy(BufferCopy { src, dst, bytes }) => {
                            encoder.copy_buffer_to_buffer(&src.0, src.1, &dst.0, dst.1, Some(*bytes));
                        }
                        Transfer::Clear(Clear { dst, bytes }) => encoder.clear_buffer(&dst.0, dst.1, Some(*bytes)),
                    }
                }
            }
        }
        drop(pass);
        self.encoded += 1;
        self.rewind();
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
