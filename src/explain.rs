//! `explain`: every copy and allocation of a program, and memory over time.

use monopour_program::{MemoryPlan, Program, Variant};
use serde::Serialize;
use std::fmt::Write as _;

/// The copies and allocations of one variant.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// The variant's target.
    pub target: String,
    /// Copies per run.
    pub copies: Vec<Copy>,
    /// Sum of their bytes, as far as they are known; a copy with an unknown count is counted once.
    pub copied_bytes: u64,
    /// Allocations per run, results included.
    pub allocations: Vec<Allocation>,
    /// Bytes of the arena that holds the transients.
    pub planned_bytes: u64,
    /// Lower bound of any plan.
    pub lower_bound_bytes: u64,
    /// Live transient bytes at each step of the host function at which they change.
    pub memory_over_time: Vec<Step>,
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
    /// Why it is not in the arena, and a remedy; empty for a result and in the arena.
    pub reason: String,
    /// Offset in the arena, for a transient.
    pub offset: Option<u64>,
}

/// Live bytes from a step of the host function on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Index among the host function's ops.
    pub step: u32,
    /// Live transient bytes.
    pub live_bytes: u64,
}

/// Explains each variant of a program.
pub fn explain(program: &Program) -> Vec<Explanation> {
    program.variants.iter().map(|v| explain_variant(program, v)).collect()
}

fn explain_variant(program: &Program, variant: &Variant) -> Explanation {
    let copies: Vec<Copy> = variant
        .copies
        .iter()
        .map(|c| Copy { location: c.location.clone(), reason: c.reason.clone(), bytes: c.bytes, times: c.times })
        .collect();
    let transients = variant.plan.transients.iter().map(|t| Allocation {
        kind: "transient",
        name: t.name.clone(),
        bytes: Some(t.size_bytes),
        reason: String::new(),
        offset: Some(t.offset),
    });
    let pooled = variant.allocations.iter().map(|a| Allocation {
        kind: "pooled",
        name: place(&a.location).to_owned(),
        bytes: a.bytes,
        reason: a.reason.clone(),
        offset: None,
    });
    let results = program.signature.results.iter().filter(|r| !r.scalar).map(|r| Allocation {
        kind: "result",
        name: r.name.clone(),
        bytes: r.is_static().then(|| r.size_bytes()),
        reason: String::new(),
        offset: None,
    });
    Explanation {
        target: variant.target.label(),
        copied_bytes: copies.iter().filter_map(|c| c.bytes?.checked_mul(c.times.unwrap_or(1))).sum(),
        copies,
        allocations: transients.chain(pooled).chain(results).collect(),
        planned_bytes: variant.plan.planned_bytes,
        lower_bound_bytes: variant.plan.lower_bound_bytes,
        memory_over_time: memory_over_time(&variant.plan),
    }
}

fn memory_over_time(plan: &MemoryPlan) -> Vec<Step> {
    let mut steps: Vec<u32> = plan.transients.iter().flat_map(|t| [t.first, t.last.saturating_add(1)]).collect();
    steps.sort_unstable();
    steps.dedup();
    let live =
        |step: u32| plan.transients.iter().filter(|t| t.first <= step && step <= t.last).map(|t| t.size_bytes).sum();
    steps.into_iter().map(|step| Step { step, live_bytes: live(step) }).collect()
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
        let times = match copy.times {
            Some(1) => String::new(),
            Some(times) => format!(", {times} times"),
            None => ", as often as a run comes by".to_owned(),
        };
        let _ = writeln!(out, "    {} at {}{times}", size(copy.bytes), place(&copy.location));
        for line in copy.reason.lines() {
            let _ = writeln!(out, "      {line}");
        }
    }
    let _ = writeln!(out, "  allocations: {}", e.allocations.len());
    for a in &e.allocations {
        let offset = a.offset.map(|o| format!(" at offset {o} of the arena")).unwrap_or_default();
        let _ = writeln!(out, "    {} {}: {}{offset}", a.kind, a.name, size(a.bytes));
        if !a.reason.is_empty() {
            let _ = writeln!(out, "      {}", a.reason);
        }
    }
    let _ = writeln!(out, "  arena: {} B planned, {} B at least", e.planned_bytes, e.lower_bound_bytes);
    let peak = e.memory_over_time.iter().map(|s| s.live_bytes).max().unwrap_or(0).max(1);
    for step in &e.memory_over_time {
        let bar = "#".repeat((step.live_bytes * 40 / peak) as usize);
        let _ = writeln!(out, "    step {:>3} {:>12} B {bar}", step.step, step.live_bytes);
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
    use super::{Step, memory_over_time};
    use monopour_program::{MemoryPlan, Transient};

    #[test]
    fn memory_rises_and_falls_with_the_lives_of_transients() {
        let transient = |first, last, size_bytes| Transient { name: String::new(), offset: 0, size_bytes, first, last };
        let plan = MemoryPlan { transients: vec![transient(1, 3, 100), transient(2, 5, 10)], ..MemoryPlan::default() };
        let step = |step, live_bytes| Step { step, live_bytes };
        assert_eq!(memory_over_time(&plan), [step(1, 100), step(2, 110), step(4, 10), step(6, 0)]);
    }
}
