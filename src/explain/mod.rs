//! `explain`: every copy and allocation of a program, and memory over time.
//!
//! * `html`: it as a page, drawn by `page.js` with `page.css`.
//! * `scheduled`: what a run of the host function executes, how often, with how many bytes.

mod html;
mod scheduled;

use monopour_program::{Bounds, CopyNote, DYNAMIC, Life, LifeStep, Lives, Program, TensorDesc, Variant};
use scheduled::{Account, Kind, Owner};
use serde::Serialize;
use std::fmt::Write as _;

pub use html::page;
pub use scheduled::KnownInput;

/// The copies and allocations of one variant.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// The variant's target.
    pub target: String,
    /// Copies per run.
    pub copies: Vec<Copy>,
    /// Sum of their bytes, as far as they are known; a copy whose times are not known is counted once.
    pub copied_bytes: u64,
    /// Allocations per run, results included but for those in donated inputs.
    pub allocations: Vec<Allocation>,
    /// Results in the buffers of donated inputs, which are no allocations.
    pub donated: Vec<Donation>,
    /// Bytes of the arena, the most of the pool at once, and results outside of donated inputs; `None`: a run decides.
    pub fresh_bytes: Option<u64>,
    /// Bytes of the arena that holds the transients.
    pub planned_bytes: u64,
    /// Lower bound of any plan.
    pub lower_bound_bytes: u64,
    /// Lower bounds on copies and memory.
    pub bounds: Bounds,
    /// Live bytes and their bound at each step of the host function's body.
    pub memory_over_time: Vec<Step>,
    /// The buffers of these steps.
    pub buffers: Vec<Buffer>,
    /// Layers of steps that repeat.
    pub layers: Vec<Layer>,
    /// Whether the bytes copied are the lower bound.
    pub are_copies_proved_least: bool,
    /// Whether the fresh bytes are the lower bound of this order.
    pub is_memory_proved_least: bool,
}

/// A copy and its reason.
#[derive(Clone, Debug, Serialize)]
pub struct Copy {
    /// `file:line:column`.
    pub location: String,
    /// The conflicting read, write and definition.
    pub reason: String,
    /// Bytes per execution; `None`: dynamic.
    pub bytes: Option<u64>,
    /// Executions in a run; `None`: behind a condition or in a loop of dynamic length.
    pub times: Option<u64>,
    /// Bytes of all executions; `None`: a run decides.
    pub total_bytes: Option<u64>,
    /// The reason in its parts.
    pub why: Why,
}

/// The parts of a copy's reason; each with its source location.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Why {
    /// The rule that asks for the copy.
    pub rule: String,
    /// What made the contents.
    pub definition: Option<String>,
    /// What overwrites them.
    pub write: Option<String>,
    /// What reads them.
    pub read: Option<String>,
    /// What would avoid the copy.
    pub avoid: Option<String>,
}

/// Steps of the same kernels that come several times, one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Layer {
    /// The first step.
    pub first: u32,
    /// Steps of one layer.
    pub steps: u32,
    /// Layers.
    pub times: u32,
}

/// A result in the buffer of a donated input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Donation {
    /// The result.
    pub result: String,
    /// The input.
    pub input: String,
}

/// A buffer and its use.
#[derive(Clone, Debug, Serialize)]
pub struct Allocation {
    /// `transient` (in the arena), `pooled` or `result`.
    pub kind: &'static str,
    /// Source location, name of a result.
    pub name: String,
    /// Bytes; `None`: dynamic.
    pub bytes: Option<u64>,
    /// Times that a run asks the pool for it, 0 in the arena; `None`: a run decides.
    pub times: Option<u64>,
    /// Why it is not in the arena, and a remedy; empty for a result and in the arena.
    pub reason: String,
    /// Offset in the arena, for a transient.
    pub offset: Option<u64>,
}

/// Live bytes at a step of the host function's body: a dispatch, a copy, or a loop or branch as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Its position.
    pub step: u32,
    /// The kernel, or the op.
    pub name: String,
    /// `file:line:column`.
    pub location: String,
    /// Bytes of the buffers alive, inputs and constants not counted.
    pub live_bytes: u64,
    /// The least bytes that any decisions keep alive.
    pub bound_bytes: u64,
}

/// A buffer that the host function's body allocates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Buffer {
    /// `transient` (in the arena), `pooled` or `result`.
    pub kind: &'static str,
    /// Source location, name of a result.
    pub name: String,
    /// Bytes; `None`: dynamic.
    pub bytes: Option<u64>,
    /// Offset in the arena, for a transient.
    pub offset: Option<u64>,
    /// The first step that uses it.
    pub first: u32,
    /// The last one, inclusive.
    pub last: u32,
}

/// Explains each variant of a program: as much as is the same in every run.
pub fn explain(program: &Program) -> Vec<Explanation> {
    explain_for(program, &[])
}

/// Explains each variant of a program for runs whose inputs have these sizes and values, besides those that their types state.
pub fn explain_for(program: &Program, inputs: &[KnownInput]) -> Vec<Explanation> {
    let known = |(i, desc): (usize, &TensorDesc)| {
        let given = inputs.get(i);
        let size = |(dim, size): (usize, &u64)| {
            if *size == DYNAMIC { *given?.shape.get(dim)? } else { Some(*size) }
        };
        let shape = desc.shape.iter().enumerate().map(size).collect();
        KnownInput { shape, bits: given.and_then(|given| given.bits) }
    };
    let inputs: Vec<KnownInput> = program.signature.inputs.iter().enumerate().map(known).collect();
    program.variants.iter().map(|variant| explain_variant(program, variant, &inputs)).collect()
}

fn explain_variant(program: &Program, variant: &Variant, inputs: &[KnownInput]) -> Explanation {
    let account = scheduled::follow(program, variant, inputs);
    let copies = match &account {
        Some(account) => copies(variant, account),
        None => variant.copies.iter().map(Copy::noted).collect(),
    };
    let transients = variant.plan.transients.iter().map(|t| Allocation {
        kind: "transient",
        name: t.name.clone(),
        bytes: Some(t.size_bytes),
        times: Some(0),
        reason: String::new(),
        offset: Some(t.offset),
    });
    let account = account.unwrap_or_default();
    let made = allocations(program, variant, &account);
    let result_bytes = made.iter().filter(|a| a.kind == "result").map(|a| a.bytes).sum::<Option<u64>>();
    let fresh = result_bytes.zip(account.pool_bytes);
    let donated = program.signature.results.iter().zip(&account.results).filter_map(|(result, owner)| match owner {
        Some(Owner::Input(input)) => {
            let input = program.signature.inputs.get(usize::try_from(*input).ok()?)?;
            Some(Donation { result: result.name.clone(), input: input.name.clone() })
        }
        _ => None,
    });
    let fresh_bytes =
        fresh.map(|(results, pool)| variant.plan.arena_bytes.saturating_add(results).saturating_add(pool));
    let copied: Option<u64> = copies.iter().map(|copy| copy.total_bytes).sum();
    let memory_over_time = memory_over_time(&variant.lives);
    Explanation {
        target: variant.target.label(),
        copied_bytes: copies.iter().filter_map(|c| c.total_bytes.or(c.bytes)).sum(),
        copies,
        donated: donated.collect(),
        allocations: transients.chain(made).collect(),
        fresh_bytes,
        planned_bytes: variant.plan.planned_bytes,
        lower_bound_bytes: variant.plan.lower_bound_bytes,
        bounds: variant.lives.bounds,
        layers: layers(&memory_over_time),
        memory_over_time,
        are_copies_proved_least: copied == Some(variant.lives.bounds.copied_bytes),
        is_memory_proved_least: fresh_bytes == Some(variant.lives.bounds.peak_bytes),
        buffers: buffers(program, &variant.lives),
    }
}

impl Copy {
    /// A copy as the compiler noted it.
    fn noted(note: &CopyNote) -> Copy {
        let total_bytes = note.bytes.zip(note.times).and_then(|(bytes, times)| bytes.checked_mul(times));
        Copy {
            location: note.location.clone(),
            reason: note.reason.clone(),
            bytes: note.bytes,
            times: note.times,
            total_bytes,
            why: Why::of(&note.reason),
        }
    }
}

/// The copies of the host function, with the compiler's notes, which are in the same order.
fn copies(variant: &Variant, account: &Account) -> Vec<Copy> {
    let mut notes: Vec<Option<&CopyNote>> = variant.copies.iter().map(Some).collect();
    let mut note = |bytes: Option<u64>| {
        let fits = |note: &CopyNote| note.bytes.is_none() || bytes.is_none() || note.bytes == bytes;
        notes.iter_mut().find(|note| note.is_some_and(fits)).and_then(Option::take)
    };
    let mut out = vec![];
    for site in &account.sites {
        let (count, is_kernel) = match site.kind {
            Kind::Copy => (1, false),
            Kind::Dispatch { kernel } => (variant.kernels[kernel].copies().count, true),
            Kind::Alloc => continue,
        };
        for _ in 0..count {
            // Only the sum over the copies of a kernel is certain.
            let found = note(if is_kernel { None } else { site.bytes });
            let bytes = if is_kernel && count > 1 { found.and_then(|note| note.bytes) } else { site.bytes };
            let total_bytes = match is_kernel {
                true if count > 1 => bytes.zip(site.times).and_then(|(bytes, times)| bytes.checked_mul(times)),
                _ => site.total_bytes,
            };
            if site.times != Some(0) {
                let text = |of: fn(&CopyNote) -> &String| found.map(of).cloned().unwrap_or_default();
                let (location, reason) = (text(|n| &n.location), text(|n| &n.reason));
                let why = Why::of(&reason);
                out.push(Copy { location, reason, bytes, times: site.times, total_bytes, why });
            }
        }
    }
    out
}

/// The allocations that a run makes one by one: results, and what is in the pool.
fn allocations(program: &Program, variant: &Variant, account: &Account) -> Vec<Allocation> {
    let result_of = |site: usize| account.results.iter().position(|owner| *owner == Some(Owner::Site(site)));
    let made = account.sites.iter().enumerate().filter(|(_, site)| site.kind == Kind::Alloc);
    let mut without_note = made.clone().count().saturating_sub(variant.allocations.len());
    let mut notes = variant.allocations.iter();
    let mut out = vec![];
    for (at, site) in made {
        let result = result_of(at);
        // An allocation that is returned at once has no note.
        let note = if result.is_some() && without_note > 0 { None } else { notes.next() };
        without_note -= usize::from(result.is_some() && note.is_none() && without_note > 0);
        let location = note.map_or("", |note| note.location.as_str());
        out.push(Allocation {
            kind: if result.is_some() { "result" } else { "pooled" },
            name: result.map_or_else(|| place(location).to_owned(), |i| program.signature.results[i].name.clone()),
            bytes: site.bytes,
            times: site.times,
            reason: note.map(|note| note.reason.clone()).unwrap_or_default(),
            offset: None,
        });
    }
    // Pooled ones first, then results in the order of the signature.
    out.sort_by_key(|a| (a.kind == "result", program.signature.results.iter().position(|r| r.name == a.name)));
    out
}

impl Why {
    /// The parts of a remark's text.
    fn of(reason: &str) -> Why {
        let mut why = Why { rule: reason.lines().next().unwrap_or_default().to_owned(), ..Why::default() };
        for line in reason.lines().skip(1).map(str::trim) {
            let part = |prefix: &str| line.strip_prefix(prefix).map(str::to_owned);
            if let Some(text) = part("note: read by ") {
                why.read = Some(text);
            } else if let Some(text) = part("note: written by ") {
                why.write = Some(text);
            } else if let Some(text) = part("note: contents from ").or_else(|| part("note: not writable: ")) {
                why.definition = Some(text);
            } else if let Some(text) = part("help: ") {
                why.avoid = Some(text);
            }
        }
        why
    }
}

/// Longest layer that is looked for.
const MOST_LAYER_STEPS: usize = 64;

/// Layers that repeat, from the first step on: of those that begin at a step, the one that covers most.
fn layers(steps: &[Step]) -> Vec<Layer> {
    let mut layers = vec![];
    let mut at = 0;
    while at < steps.len() {
        let times = |len: usize| {
            let equal = (at + len..steps.len()).take_while(|i| steps[*i].name == steps[*i - len].name).count();
            1 + equal / len
        };
        let found = (1..=MOST_LAYER_STEPS.min(steps.len() - at)).map(|len| (len, times(len)));
        // One step twice is no layer.
        let found = found.filter(|(len, times)| *times > 1 && len * times > 3);
        let best = found.max_by_key(|(len, times)| (len * times, std::cmp::Reverse(*len)));
        let Some((len, times)) = best else {
            at += 1;
            continue;
        };
        layers.push(Layer { first: at as u32, steps: len as u32, times: times as u32 });
        at += len * times;
    }
    layers
}

/// Live bytes at each step: of the buffers whose size is known.
pub fn memory_over_time(lives: &Lives) -> Vec<Step> {
    let mut change = vec![0i128; lives.steps.len() + 1];
    for life in &lives.buffers {
        let bytes = i128::from(life.bytes.unwrap_or(0));
        change[life.first as usize] += bytes;
        change[life.last as usize + 1] -= bytes;
    }
    let mut live = 0;
    let at = |(step, (of, change)): (usize, (&LifeStep, i128))| {
        live += change;
        Step {
            step: step as u32,
            name: of.name.clone(),
            location: of.location.clone(),
            live_bytes: u64::try_from(live).unwrap_or(0),
            bound_bytes: of.bound_bytes,
        }
    };
    lives.steps.iter().zip(change).enumerate().map(at).collect()
}

fn buffers(program: &Program, lives: &Lives) -> Vec<Buffer> {
    let of = |life: &Life| Buffer {
        kind: if life.result.is_some() {
            "result"
        } else if life.offset.is_some() {
            "transient"
        } else {
            "pooled"
        },
        name: match life.result.and_then(|i| program.signature.results.get(i as usize)) {
            Some(result) => result.name.clone(),
            None => place(&life.location).to_owned(),
        },
        bytes: life.bytes,
        offset: life.offset,
        first: life.first,
        last: life.last,
    };
    lives.buffers.iter().map(of).collect()
}

/// The explanation as text.
pub fn render(explanations: &[Explanation]) -> String {
    let mut out = String::new();
    for e in explanations {
        render_one(&mut out, e);
    }
    out
}

fn render_one(out: &mut String, e: &Explanation) {
    let _ = writeln!(out, "target {}", e.target);
    let count: u64 = e.copies.iter().map(|c| c.times.unwrap_or(1)).sum();
    let _ = writeln!(out, "  copies: {count} ({} B)", e.copied_bytes);
    for copy in &e.copies {
        let _ = writeln!(out, "    {} at {}{}", size(copy.bytes), place(&copy.location), times(copy.times));
        for line in copy.reason.lines() {
            let _ = writeln!(out, "      {line}");
        }
    }
    let _ = writeln!(out, "  allocations: {}", e.allocations.len());
    for a in &e.allocations {
        let offset = a.offset.map(|o| format!(" at offset {o} of the arena")).unwrap_or_default();
        let count = if a.offset.is_some() { String::new() } else { times(a.times) };
        let _ = writeln!(out, "    {} {}: {}{offset}{count}", a.kind, a.name, size(a.bytes));
        if !a.reason.is_empty() {
            let _ = writeln!(out, "      {}", a.reason);
        }
    }
    for d in &e.donated {
        let _ = writeln!(out, "    result {} is in the buffer of input {}", d.result, d.input);
    }
    let fresh = e.fresh_bytes.map_or_else(|| "as a run decides".to_owned(), |bytes| format!("{bytes} B"));
    let _ = writeln!(out, "  fresh: {fresh} (arena, most of the pool, results outside of donated inputs)");
    let b = &e.bounds;
    let proved = |is_proved: bool| if is_proved { "proved the least" } else { "not proved the least" };
    let _ = writeln!(
        out,
        "  copies are {}, memory is {}",
        proved(e.are_copies_proved_least),
        proved(e.is_memory_proved_least)
    );
    let any = if b.is_any_order_exact { "in the best order" } else { "in any order" };
    let _ = writeln!(
        out,
        "  at least: {} copies ({} B), {} B alive, {any} {} B",
        b.copies, b.copied_bytes, b.peak_bytes, b.any_order_bytes
    );
    let _ = writeln!(out, "  arena: {} B planned, {} B at least", e.planned_bytes, e.lower_bound_bytes);
    let peak = e.memory_over_time.iter().map(|s| s.live_bytes).max().unwrap_or(0).max(1);
    for step in &e.memory_over_time {
        let bar = "#".repeat((step.live_bytes * 40 / peak) as usize);
        let (at, live, bound) = (step.step, step.live_bytes, step.bound_bytes);
        let _ = writeln!(out, "    step {at:>3} {live:>12} B, at least {bound:>12} B {bar}");
    }
}

fn times(times: Option<u64>) -> String {
    match times {
        Some(1) => String::new(),
        Some(times) => format!(", {times} times"),
        None => ", as often as a run comes by".to_owned(),
    }
}

fn size(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "dynamic".to_owned(), |bytes| format!("{bytes} B"))
}

fn place(location: &str) -> &str {
    if location.is_empty() { "an unknown location" } else { location }
}

#[cfg(test)]
mod tests {
    use super::{Layer, Step, Why, layers, memory_over_time};
    use monopour_program::{Life, LifeStep, Lives};

    #[test]
    fn equal_layers_are_found() {
        let steps = |names: &str| -> Vec<Step> {
            let step = |name: char| Step {
                step: 0,
                name: name.to_string(),
                location: String::new(),
                live_bytes: 0,
                bound_bytes: 0,
            };
            names.chars().map(step).collect()
        };
        let layer = |first, steps, times| Layer { first, steps, times };
        assert_eq!(layers(&steps("xabcabcabcabyy")), [layer(1, 3, 3)]);
        assert_eq!(layers(&steps("aaaa")), [layer(0, 1, 4)]);
        assert_eq!(layers(&steps("abcdef")), []);
    }

    #[test]
    fn reasons_have_parts() {
        let why = Why::of(
            "remark[B0201]: copied\n  --> a:1:2\n  note: read by x at a:3:4\n  note: written by y at a:2:1\n  help: do not",
        );
        assert_eq!((why.rule.as_str(), why.definition), ("remark[B0201]: copied", None));
        assert_eq!((why.read.as_deref(), why.write.as_deref()), (Some("x at a:3:4"), Some("y at a:2:1")));
        assert_eq!(why.avoid.as_deref(), Some("do not"));
    }

    #[test]
    fn memory_rises_and_falls_with_the_lives_of_buffers() {
        let life = |first, last, bytes| Life { bytes, first, last, ..Life::default() };
        let buffers = vec![life(0, 2, Some(100)), life(1, 3, Some(10)), life(0, 3, None)];
        let lives = Lives { steps: vec![LifeStep::default(); 4], buffers, ..Lives::default() };
        let live: Vec<u64> = memory_over_time(&lives).iter().map(|step| step.live_bytes).collect();
        assert_eq!(live, [100, 110, 110, 10]);
    }
}
