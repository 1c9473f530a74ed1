//! `--trace`: a Chrome trace of compile phases, host steps and dispatches.

use std::path::Path;
use std::time::Instant;

use monopour::explain::Step;
use monopour::program::write_atomically;
use monopour::runtime::Span;
use serde_json::{Value, json};

use crate::failure::Failure;

/// Collects events since the command began.
pub struct Trace {
    origin: Instant,
    events: Vec<Value>,
}

/// Tracks of the trace, by thread number.
const TRACKS: [&str; 3] = ["compiler", "host", "device"];

impl Trace {
    /// An empty trace that begins now.
    pub fn new() -> Trace {
        let name = |(tid, track): (usize, &&str)| json!({ "name": "thread_name", "ph": "M", "pid": 1, "tid": tid, "args": { "name": track } });
        Trace { origin: Instant::now(), events: TRACKS.iter().enumerate().map(name).collect() }
    }

    /// Microseconds since the trace began.
    pub fn now_us(&self) -> f64 {
        self.origin.elapsed().as_secs_f64() * 1e6
    }

    /// Adds an event on the track called `track`.
    pub fn add(&mut self, track: &str, name: &str, start_us: f64, duration_us: f64) {
        self.add_with(track, name, (start_us, duration_us), json!({}));
    }

    fn add_with(&mut self, track: &str, name: &str, (start_us, duration_us): (f64, f64), args: Value) {
        let tid = TRACKS.iter().position(|known| *known == track).unwrap_or(1);
        self.events.push(json!({
            "name": name, "ph": "X", "pid": 1, "tid": tid, "ts": start_us, "dur": duration_us, "args": args,
        }));
    }

    /// Runs `f` as an event on the host's track.
    pub fn step<T>(&mut self, name: &str, f: impl FnOnce() -> T) -> T {
        let start = self.now_us();
        let value = f();
        self.add("host", name, start, self.now_us() - start);
        value
    }

    /// Adds the spans of a run that began at `start_us`.
    pub fn spans(&mut self, start_us: f64, spans: Vec<Span>) {
        for span in spans {
            let source =
                if span.op.is_empty() { json!({}) } else { json!({ "op": span.op, "location": span.location }) };
            self.add_with(span.track, &span.name, (start_us + span.start_us, span.duration_us), source);
        }
    }

    /// Adds the live bytes of a run that began at `start_us`, each with the dispatch from which on they are.
    pub fn live(&mut self, start_us: f64, spans: &[Span], steps: &[Step]) {
        let mut at = 0;
        for span in spans {
            // Dispatches of a loop or a branch, which is one step, have names of their own.
            let Some(next) = steps[at..].iter().position(|step| step.name == span.name) else { continue };
            let step = &steps[at + next];
            at += next + 1;
            let bytes = json!({ "live": step.live_bytes, "at least": step.bound_bytes });
            let ts = start_us + span.start_us;
            self.events.push(json!({ "name": "live bytes", "ph": "C", "pid": 1, "ts": ts, "args": bytes }));
        }
    }

    /// Writes the trace.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        let text = json!({ "displayTimeUnit": "ms", "traceEvents": self.events }).to_string();
        Ok(write_atomically(path, text.as_bytes())?)
    }
}
