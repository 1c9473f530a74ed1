//! Spans and events of the crate `tracing`, collected by a subscriber as an application has one.

use monopour::runtime::{HostForm, Options, Session};
use monopour::{CompileOptions, compile};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use crate::host::{devices, f32s, index, ramp};

/// A product, a loop of sums, which fusion makes generic, and the same product again: its kernel is shared.
const PROGRAM: &str = "\
func.func @main(%x: tensor<8x8xf32>, %n: index) -> tensor<8x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %a = linalg.matmul ins(%x, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = scf.for %i = %c0 to %n step %c1 iter_args(%s = %a) -> tensor<8x8xf32> {
    %t = linalg.add ins(%s, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
    scf.yield %t : tensor<8x8xf32>
  }
  %c = linalg.matmul ins(%b, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %c : tensor<8x8xf32>
}
";

/// A span or an event: its name, its level, the span around it, its fields.
#[derive(Clone, Debug, Default, PartialEq)]
struct Seen {
    name: &'static str,
    level: String,
    parent: Option<&'static str>,
    fields: BTreeMap<&'static str, String>,
}

#[derive(Clone, Default)]
struct Collected(Arc<Mutex<Found>>);

/// What was seen, spans with their ids.
type Found = Vec<(Option<Id>, Seen)>;

struct Fields<'a>(&'a mut BTreeMap<&'static str, String>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

fn seen(metadata: &'static Metadata<'static>, parent: Option<&'static str>) -> Seen {
    assert_eq!(metadata.target(), "monopour");
    Seen { name: metadata.name(), level: metadata.level().to_string(), parent, fields: BTreeMap::new() }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Collected {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        matches!(metadata.target(), "monopour" | "application")
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, cx: Context<'_, S>) {
        if attributes.metadata().target() == "application" {
            return;
        }
        let parent = cx.lookup_current().map(|span| span.name());
        let mut span = seen(attributes.metadata(), parent);
        attributes.record(&mut Fields(&mut span.fields));
        self.0.lock().unwrap().push((Some(id.clone()), span));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        let mut all = self.0.lock().unwrap();
        // Ids are used again: the last span of it.
        let (_, span) = all.iter_mut().rev().find(|(of, _)| of.as_ref() == Some(id)).expect("a known span");
        values.record(&mut Fields(&mut span.fields));
    }

    fn on_event(&self, event: &Event<'_>, cx: Context<'_, S>) {
        let mut found = seen(event.metadata(), cx.event_span(event).map(|span| span.name()));
        event.record(&mut Fields(&mut found.fields));
        // Events are named after their place in the source.
        found.name = "event";
        self.0.lock().unwrap().push((None, found));
    }
}

impl Collected {
    fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.0.lock().unwrap()).into_iter().map(|(_, seen)| seen).collect()
    }
}

/// The fields of a dispatch but for its grid, which is the target's choice.
fn dispatches(all: &[Seen]) -> Vec<(String, String)> {
    let events = all.iter().filter(|seen| seen.fields.get("message").is_some_and(|m| m == "dispatch"));
    let each = events.map(|event| {
        assert_eq!((event.level.as_str(), event.name), ("TRACE", "event"));
        assert_eq!(event.fields.keys().copied().collect::<Vec<_>>(), ["grid", "kernel", "location", "message", "op"]);
        assert_eq!(event.fields["grid"].split('x').filter(|n| n.parse::<u64>().is_ok_and(|n| n > 0)).count(), 3);
        assert!(event.fields["kernel"].starts_with("main_dispatch_"), "{event:?}");
        (event.fields["op"].clone(), event.fields["location"].clone())
    });
    each.collect()
}

fn fields(seen: &Seen) -> Vec<(&str, &str)> {
    seen.fields.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

#[test]
fn an_application_sees_loads_runs_and_dispatches() {
    for (device, target) in devices() {
        let options = CompileOptions { targets: vec![target], ..Default::default() };
        let program = Arc::new(compile(PROGRAM.as_bytes(), "traced.mlir", &options).expect("compiles").program);
        let collected = Collected::default();
        let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(collected.clone()));
        for host in [HostForm::Native, HostForm::Data] {
            let outer = tracing::info_span!(target: "application", "frame");
            let _frame = outer.enter();
            let options = Options { host, ..Options::default() };
            let session = Session::load(&device, program.clone(), &options).expect("loads");
            check_load(&session, &collected);
            check_run(session, &collected);
        }
        let mut wrong = (*program).clone();
        wrong.variants.clear();
        let refused = Session::load(&device, Arc::new(wrong), &Options::default()).map(drop).unwrap_err();
        let [load] = &collected.take()[..] else { panic!("one span of a load") };
        assert_eq!((load.name, load.fields["error"].as_str()), ("load", refused.code()));
    }
}

fn check_load(session: &Session, collected: &Collected) {
    let [load] = &collected.take()[..] else { panic!("one span of a load") };
    assert_eq!((load.name, load.level.as_str(), load.parent), ("load", "DEBUG", Some("frame")));
    let (device, host) = (session.device().name(), session.host_form().as_str());
    let label = session.variant().target.label();
    assert_eq!(fields(load), [("device", device), ("entry", "main"), ("host", host), ("variant", &label)]);
}

fn check_run(mut session: Session, collected: &Collected) {
    let x = f32s(&[8, 8], &ramp(64));
    let results = session.run(&[x.clone(), index(2)]).expect("runs");
    let all = collected.take();
    let run = &all[0];
    assert_eq!((run.name, run.level.as_str(), run.parent), ("run", "DEBUG", Some("frame")));
    let stats = session.stats().counts;
    let counts = [stats.copies, stats.copied_bytes, stats.submits].map(|count| count.to_string());
    let expected = [
        ("copied_bytes", counts[1].as_str()),
        ("copies", &counts[0]),
        ("device", session.device().name()),
        ("dispatches", "4"),
        ("entry", "main"),
        ("submits", &counts[2]),
    ];
    assert_eq!(fields(run), expected);
    assert!(all[1..].iter().all(|event| event.parent == Some("run")), "{all:?}");
    let at = |op: &str, line: u32| (op.to_owned(), format!("traced.mlir:{line}:8"));
    let sum = ("linalg.generic".to_owned(), "traced.mlir:9:10".to_owned());
    let expected = [at("linalg.matmul", 7), sum.clone(), sum, at("linalg.matmul", 12)];
    assert_eq!(dispatches(&all), expected, "{}", session.device().name());

    // A run of another thread is in the span where it was submitted.
    let given = session.upload(&[x.clone(), index(0)]).expect("uploads");
    session.submit(&given).expect("begins").wait(None).expect("runs");
    assert_eq!(runs(collected), [(Some("frame"), None)]);

    // A run that ends early names the code of its error, one that cannot begin is none.
    let run = session.begin(&given).expect("begins");
    run.cancel();
    assert_eq!(run.wait(None).unwrap_err().code(), "R0025");
    // It is over, which a cancelled run may not be yet.
    session.submit(&given).expect("begins").wait(None).expect("runs");
    assert_eq!(runs(collected), [(Some("frame"), Some("R0025".to_owned())), (Some("frame"), None)]);
    assert_eq!(session.run(&[x, results[0].clone()]).unwrap_err().code(), "R0008");
    assert!(collected.take().is_empty());
}

/// The spans of runs, by the span around them and their error.
fn runs(collected: &Collected) -> Vec<(Option<&'static str>, Option<String>)> {
    let spans = collected.take().into_iter().filter(|seen| seen.name == "run");
    spans.map(|span| (span.parent, span.fields.get("error").cloned())).collect()
}

/// `--trace` and the events name the same.
#[test]
fn spans_of_a_trace_have_their_sources() {
    for (device, target) in devices() {
        let options = CompileOptions { targets: vec![target], ..Default::default() };
        let program = Arc::new(compile(PROGRAM.as_bytes(), "traced.mlir", &options).expect("compiles").program);
        let options = Options { trace: true, ..Options::default() };
        let mut session = Session::load(&device, program, &options).expect("loads");
        for _ in 0..2 {
            session.run(&[f32s(&[8, 8], &ramp(64)), index(1)]).expect("runs");
            let spans = session.drain_trace();
            // A GPU may have no timestamps between dispatches.
            let found: Vec<_> = spans.iter().map(|span| (span.op.as_str(), span.location.as_str())).collect();
            let (first, second) = (("linalg.matmul", "traced.mlir:7:8"), ("linalg.matmul", "traced.mlir:12:8"));
            if device.description().is_none() || !found.is_empty() {
                assert_eq!(found, [first, ("linalg.generic", "traced.mlir:9:10"), second], "{}", device.name());
            }
        }
    }
}
