//! Runs that make the calls of the run before, without host code.
//!
//! Host code has no state: it makes the same calls whenever the runtime's functions return the same values. Handles follow from
//! the calls before them, so that only what it asks of the inputs can differ: numbers and sizes. A run with the answers of the
//! run before notes its calls, and a third one makes them from the notes. Host code that reads from buffers is always called.
//!
//! Dispatches between two other calls are a segment. Where all buffers so far are those of the run before, what it recorded of
//! the segment is kept as it is; else each dispatch is checked and bound as host code's are.

use std::ops::Range as Positions;

use super::Backend;
use super::run::{Range, Run};
use crate::error::Error;
use crate::host::HostCalls;
use crate::stats::RunCounts;

/// Most calls, and most answers, that are noted: as many dispatches as have bind groups to repeat.
const MOST_NOTED: usize = 1 << 14;

/// Dispatches between two looks whether the run is cancelled.
const CHECK_DISPATCHES: usize = 256;

/// A position in what a backend records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    pub commands: usize,
    /// Position in the trail of bind groups.
    pub trail: usize,
    /// Bytes of immediates.
    pub numbers: usize,
    /// Bytes of scalars that are not immediates.
    pub placed: usize,
    /// Recordings that were given to the device before.
    pub encoded: u64,
}

/// What host code asks of the inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    Scalar(i64),
    Dim(i64, i64),
}

/// A call, without those that only return values.
#[derive(Clone, Debug)]
pub(super) enum Call {
    Dispatches(Segment),
    /// A dispatch that is made once per arena, by its position.
    Once(usize),
    Alloc(i64),
    Arena(i64),
    Request(i64, [i64; 2]),
    Place(i64),
    Free(i64),
    Result(i64, i64),
    ResultScalar(i64, i64),
    ResultDim(i64, i64, i64),
    Copy((i64, i64), (i64, i64), i64),
    Fill((i64, i64), i64, u32),
    Write([i64; 4]),
}

/// Dispatches without another call between them.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    dispatches: Positions<usize>,
    /// Where the last run recorded them.
    recorded: Positions<Mark>,
    /// Dispatches, copies and copied bytes.
    counts: [u64; 3],
}

impl Segment {
    /// Whether what was recorded are dispatches, each with a bind group of the trail and at most immediates.
    fn is_plain(&self) -> bool {
        let Positions { start, end } = self.recorded;
        end.commands - start.commands == end.trail - start.trail
            && (end.placed, end.encoded) == (start.placed, start.encoded)
    }
}

#[derive(Debug)]
struct Dispatch {
    kernel: i64,
    grid: [i64; 3],
    args: Positions<usize>,
    scalars: Positions<usize>,
}

/// How much is known of the last run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Known {
    #[default]
    Nothing,
    Answers,
    Calls,
}

/// What is noted of the runs before, and of this one.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    known: Known,
    /// What this run will know.
    next: Known,
    input_bytes: Vec<u64>,
    answers: Vec<(Question, i64)>,
    calls: Vec<Call>,
    dispatches: Vec<Dispatch>,
    args: Vec<Range>,
    scalars: Vec<u64>,
    /// The buffers by the order of their handles: ids and offsets.
    buffers: Vec<(u64, u64)>,
    /// How many of them this run has.
    buffers_len: usize,
    /// Whether this run makes the calls of the run before.
    is_repeated: bool,
    /// Whether what the run before recorded is still there, and is of the same buffers so far.
    is_followed: bool,
    /// Recordings given to the device before this run.
    encoded: u64,
}

impl Notes {
    /// Nothing of this run, or of runs before, can be repeated.
    pub(super) fn stop(&mut self) {
        *self = Notes::default();
    }

    /// Notes a call.
    pub(super) fn call(&mut self, call: Call) {
        if self.next == Known::Calls {
            self.calls.push(call);
            self.limit();
        }
    }

    /// Notes what an input was asked for.
    pub(super) fn answer(&mut self, question: Question, answer: i64) {
        if self.next != Known::Nothing {
            self.answers.push((question, answer));
            self.limit();
        }
    }

    fn limit(&mut self) {
        if self.calls.len().max(self.answers.len()).max(self.dispatches.len()) > MOST_NOTED {
            self.stop();
        }
    }

    /// The buffer of the next handle: its id, and an offset.
    pub(super) fn buffer(&mut self, id: (u64, u64)) {
        if !self.is_repeated && self.next != Known::Calls {
            return;
        }
        if self.buffers.get(self.buffers_len) != Some(&id) {
            self.is_followed = false;
            self.buffers.truncate(self.buffers_len);
            self.buffers.push(id);
        }
        self.buffers_len += 1;
    }

    /// Whether dispatches are noted.
    pub(super) fn takes_calls(&self) -> bool {
        self.next == Known::Calls
    }

    fn dispatch(&mut self, (kernel, grid): (i64, [i64; 3]), args: &[Range], scalars: &[u64]) {
        let (args_at, scalars_at) = (self.args.len(), self.scalars.len());
        self.args.extend_from_slice(args);
        self.scalars.extend_from_slice(scalars);
        let (args, scalars) = (args_at..self.args.len(), scalars_at..self.scalars.len());
        self.dispatches.push(Dispatch { kernel, grid, args, scalars });
    }

    /// Notes a dispatch that was made, with the backend's marks and the counts before and after it.
    pub(super) fn made(
        &mut self,
        call: (i64, [i64; 3]),
        (args, scalars): (&[Range], &[u64]),
        (marks, counts): (Positions<Mark>, [[u64; 3]; 2]),
    ) {
        self.dispatch(call, args, scalars);
        let [before, after] = counts;
        let made = std::array::from_fn(|at| after[at] - before[at]);
        if let Some(Call::Dispatches(segment)) = self.calls.last_mut() {
            segment.dispatches.end += 1;
            segment.recorded.end = marks.end;
            segment.counts = std::array::from_fn(|at| segment.counts[at] + made[at]);
            return self.limit();
        }
        let at = self.dispatches.len() - 1;
        self.call(Call::Dispatches(Segment { dispatches: at..at + 1, recorded: marks, counts: made }));
    }

    /// Notes a dispatch that is made once per arena.
    pub(super) fn once(&mut self, call: (i64, [i64; 3]), (args, scalars): (&[Range], &[u64])) {
        if self.takes_calls() {
            self.dispatch(call, args, scalars);
            self.call(Call::Once(self.dispatches.len() - 1));
        }
    }

    /// What is known for the next run; `encoded` recordings were given to the device.
    pub(super) fn end(mut self, encoded: u64) -> Notes {
        if !self.is_repeated {
            self.known = self.next;
        }
        self.next = Known::Nothing;
        self.buffers.truncate(self.buffers_len);
        // Of a run that was recorded in parts, only the recording of the last part is left.
        self.is_followed = self.encoded == encoded;
        (self.is_repeated, self.buffers_len) = (false, 0);
        self
    }
}

/// The counts of dispatches.
fn counted(counts: &RunCounts) -> [u64; 3] {
    [counts.dispatches, counts.copies, counts.copied_bytes]
}

impl<B: Backend> Run<'_, B> {
    /// Whether this run can make the calls of the run before. If not, what it asks and calls is noted.
    pub(super) fn is_known(&mut self) -> bool {
        let is_steered = self.engine.turns.is_on() || self.cancel.is_paced();
        let Some(mark) = self.engine.backend.mark().filter(|_| !is_steered) else {
            self.notes.stop();
            return false;
        };
        let inputs = self.slots[..self.inputs.len()].iter().map(|slot| slot.bytes).collect::<Vec<_>>();
        let is_same = self.notes.known != Known::Nothing
            && self.notes.input_bytes == inputs
            && self.notes.answers.iter().all(|(question, answer)| self.ask(*question) == Some(*answer));
        let notes = &mut self.notes;
        if is_same && notes.known == Known::Calls {
            notes.is_repeated = true;
        } else {
            notes.stop();
            notes.next = if is_same { Known::Calls } else { Known::Answers };
            notes.input_bytes = inputs;
        }
        notes.encoded = mark.encoded;
        self.slots.iter().for_each(|slot| notes.buffer(slot.id()));
        notes.is_repeated
    }

    /// Answers a question of host code again; `None` if it has no answer.
    fn ask(&self, question: Question) -> Option<i64> {
        let input = |position: i64| self.inputs.get(usize::try_from(position).ok()?);
        match question {
            Question::Scalar(position) => input(position)?.0.map(|bits| bits as i64),
            Question::Dim(position, dim) => {
                input(position)?.1.get(usize::try_from(dim).ok()?).and_then(|&size| size.try_into().ok())
            }
        }
    }

    /// Runs a kernel with the pushed arguments, and notes that.
    pub(super) fn dispatch_noted(&mut self, kernel: i64, grid: [i64; 3]) -> Result<(), Error> {
        let before = (self.engine.backend.mark().unwrap_or_default(), counted(&self.counts));
        self.dispatch_pushed(kernel, grid)?;
        let after = (self.engine.backend.mark().unwrap_or_default(), counted(&self.counts));
        self.notes.made((kernel, grid), (&self.args, &self.scalars), (before.0..after.0, [before.1, after.1]));
        Ok(())
    }

    /// Makes the calls of the run before.
    ///
    /// # Errors
    /// Those of the calls.
    pub(super) fn repeat(&mut self) -> Result<(), Error> {
        let mut calls = std::mem::take(&mut self.notes.calls);
        calls.iter_mut().try_for_each(|call| self.make(call))?;
        self.notes.calls = calls;
        Ok(())
    }

    fn make(&mut self, call: &mut Call) -> Result<(), Error> {
        match call {
            Call::Dispatches(segment) => self.make_segment(segment),
            Call::Once(at) => {
                let (kernel, grid) = self.push_noted(*at);
                self.dispatch_once(kernel, grid)
            }
            Call::Alloc(bytes) => self.alloc(*bytes).map(drop),
            Call::Arena(bytes) => self.arena(*bytes).map(drop),
            Call::Request(bytes, lives) => self.request(*bytes, *lives),
            Call::Place(request) => self.place(*request).map(drop),
            Call::Free(handle) => self.free(*handle),
            Call::Result(position, handle) => self.result(*position, *handle),
            Call::ResultScalar(position, bits) => self.result_scalar(*position, *bits),
            Call::ResultDim(position, dim, extent) => self.result_dim(*position, *dim, *extent),
            Call::Copy(src, dst, bytes) => self.copy(*src, *dst, *bytes),
            Call::Fill(dst, bytes, pattern) => self.fill(*dst, *bytes, *pattern),
            Call::Write([handle, offset, bytes, bits]) => self.write(*handle, *offset, *bytes, *bits),
        }
    }

    /// Pushes the arguments of a noted dispatch.
    fn push_noted(&mut self, at: usize) -> (i64, [i64; 3]) {
        let Dispatch { kernel, grid, args, scalars } = &self.notes.dispatches[at];
        self.args.clear();
        self.scalars.clear();
        self.args.extend_from_slice(&self.notes.args[args.clone()]);
        self.scalars.extend_from_slice(&self.notes.scalars[scalars.clone()]);
        (*kernel, *grid)
    }

    fn make_segment(&mut self, segment: &mut Segment) -> Result<(), Error> {
        self.cancel.check()?;
        let backend = &mut self.engine.backend;
        if self.notes.is_followed && segment.is_plain() && backend.repeat(&segment.recorded) {
            let counts = &mut self.counts;
            let each = [&mut counts.dispatches, &mut counts.copies, &mut counts.copied_bytes];
            each.into_iter().zip(segment.counts).for_each(|(count, more)| *count += more);
            return Ok(());
        }
        // What comes after it is elsewhere, too.
        self.notes.is_followed = false;
        let start = backend.mark().unwrap_or_default();
        for at in segment.dispatches.clone() {
            if at.is_multiple_of(CHECK_DISPATCHES) {
                self.cancel.check()?;
            }
            let (kernel, grid) = self.push_noted(at);
            self.dispatch_pushed(kernel, grid)?;
        }
        self.drop_pushed();
        segment.recorded = start..self.engine.backend.mark().unwrap_or_default();
        Ok(())
    }
}
