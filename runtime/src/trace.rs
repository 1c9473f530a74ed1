//! Spans of time for `--trace`, on the host and on the device.

use std::time::Instant;

use serde::Serialize;

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
    pub fn end(&mut self, start: Option<f64>, name: &str) {
        if let (Some(start_us), Some(end)) = (start, self.start()) {
            let duration_us = end - start_us;
            self.spans.push(Span { name: name.to_owned(), track: "host", start_us, duration_us });
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
            let span = Span { name: "add".to_owned(), track: "device", start_us: 1.0, duration_us: 2.0 };
            recorder.add(span.clone());
            assert_eq!(recorder.drain(), if is_on { vec![span] } else { vec![] });
        }
    }
}
