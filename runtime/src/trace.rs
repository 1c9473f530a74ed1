//! Spans of time for `--trace`, on the host and on the device.

use std::time::Instant;

use serde::Serialize;

use crate::sites::Site;

/// A span on one of two tracks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Span {
    /// Its name.
    pub name: String,
    /// `host` or `device`.
    pub track: &'static str,
    /// Start in microseconds after the start of the run; on the device track, after that of its first dispatch.
    pub start_us: f64,
    /// Length in microseconds.
    pub duration_us: f64,
    /// The op that the kernel was made of, such as `linalg.matmul`; empty for what the runtime does itself.
    pub op: String,
    /// Its source location, `file:line:column`, or the name of a node of ONNX; empty when unknown.
    pub location: String,
}

impl Span {
    /// A span with its source.
    pub(crate) fn at(
        name: String,
        track: &'static str,
        (start_us, duration_us): (f64, f64),
        site: Option<&Site>,
    ) -> Span {
        let (op, location) = site.map(|site| (site.op.clone(), site.location.clone())).unwrap_or_default();
        Span { name, track, start_us, duration_us, op, location }
    }
}

/// Collects spans if tracing is on; free if it is off.
#[derive(Debug)]
pub(crate) struct Recorder {
    origin: Option<Instant>,
    spans: Vec<Span>,
}

impl Recorder {
    pub fn new(is_on: bool) -> Recorder {
        Recorder { origin: is_on.then(Instant::now), spans: Vec::new() }
    }

    /// Marks the start of a run, the origin of its spans.
    pub fn begin_run(&mut self) {
        self.origin = self.origin.map(|_| Instant::now());
    }

    /// Whether spans are kept.
    pub fn is_on(&self) -> bool {
        self.origin.is_some()
    }

    /// Microseconds since the origin; `None` when off.
    pub fn start(&self) -> Option<f64> {
        self.origin.map(|origin| origin.elapsed().as_secs_f64() * 1e6)
    }

    /// Ends a span on the host's track.
    pub fn end(&mut self, start: Option<f64>, name: &str, site: Option<&Site>) {
        if let (Some(start_us), Some(end)) = (start, self.start()) {
            self.spans.push(Span::at(name.to_owned(), "host", (start_us, end - start_us), site));
        }
    }

    /// Adds a span that the device measured.
    pub fn add(&mut self, span: Span) {
        if self.is_on() {
            self.spans.push(span);
        }
    }

    /// Takes the spans so far.
    pub fn drain(&mut self) -> Vec<Span> {
        std::mem::take(&mut self.spans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_the_device_are_kept_where_tracing_is_on() {
        for is_on in [true, false] {
            let mut recorder = Recorder::new(is_on);
            let span = Span::at("add".to_owned(), "device", (1.0, 2.0), None);
            recorder.add(span.clone());
            assert_eq!(recorder.drain(), if is_on { vec![span] } else { vec![] });
        }
    }
}
