//! Diagnostics for ops that cannot be converted.

use super::OpMap;
use super::worklist::Visit;
use super::{ConversionTarget, Legality, Mode, PatternSet};
use crate::{Diagnostic, Location, Op};

/// How many steps of a chain a diagnostic shows.
const SHOWN_STEPS: usize = 8;

/// One pattern application, kept to explain chains.
#[derive(Clone, Copy, Debug)]
pub(super) struct Application<'c> {
    pub(super) pattern: u32,
    pub(super) op_name: &'c str,
    pub(super) origin: Option<u32>,
    pub(super) chain: u32,
    /// Of the op, before the pattern.
    pub(super) location: Location<'c>,
}

impl<'c> Application<'c> {
    pub(super) fn describe(&self, patterns: &PatternSet<'c, '_>) -> String {
        format!("pattern '{}' on '{}'", patterns.get(self.pattern).name(), self.op_name)
    }
}

/// An op that every pattern declined, with the reasons; no pattern if none could be tried.
#[derive(Debug)]
pub(super) struct Failure<'c> {
    pub(super) visit: Visit<'c>,
    pub(super) order: usize,
    pub(super) declined: Vec<(Option<u32>, String)>,
}

/// The applications from which others follow.
#[derive(Debug, Default)]
pub(super) struct Log<'c>(Vec<Application<'c>>);

impl<'c> Log<'c> {
    pub(super) fn get(&self, index: u32) -> &Application<'c> {
        &self.0[index as usize]
    }
    /// The index of the next application.
    pub(super) fn upcoming(&self) -> Option<u32> {
        u32::try_from(self.0.len()).ok()
    }
    pub(super) fn push(&mut self, application: Application<'c>) {
        self.0.push(application);
    }

    /// The diagnostic for patterns that do not terminate: the steps that repeat.
    pub(super) fn cycle(&self, visit: Visit<'c>, patterns: &PatternSet<'c, '_>) -> Diagnostic {
        let chain: Vec<Application> =
            std::iter::successors(visit.origin, |o| self.get(*o).origin).map(|o| *self.get(o)).collect();
        let message = format!(
            "patterns keep rewriting '{}' without reaching a legal op ({} steps)",
            visit.op.name(),
            chain.len()
        );
        let mut out = Diagnostic::error("I0011", visit.op.location(), message);
        let same = |a: &Application<'c>, b: &Application<'c>| (a.pattern, a.op_name) == (b.pattern, b.op_name);
        // The latest steps, up to the first repetition.
        let period = (1..=chain.len() / 2).find(|p| (0..*p).all(|i| same(&chain[i], &chain[i + p])));
        for step in chain.iter().take(period.unwrap_or(SHOWN_STEPS).min(SHOWN_STEPS)) {
            out = out.with_note(format!("created or changed by {}", step.describe(patterns)));
        }
        if let Some(period) = period {
            out = out.with_note(match period {
                1 => "this step repeats".to_owned(),
                _ => format!("these {period} steps repeat"),
            });
        }
        out.with_help(
            "the patterns named above undo each other, or one recreates its own root; \
             make the op legal in the target or let one of them decline",
        )
    }

    /// Adds the patterns that led to an op, the latest first.
    fn explain_chain(&self, mut out: Diagnostic, mut origin: Option<u32>, patterns: &PatternSet<'c, '_>) -> Diagnostic {
        for _ in 0..SHOWN_STEPS {
            let Some(index) = origin else { return out };
            out = out.with_note(format!("created or changed by {}", self.get(index).describe(patterns)));
            origin = self.get(index).origin;
        }
        if origin.is_some() { out.with_note("and so on") } else { out }
    }
}

/// A diagnostic for each op that no pattern converted and that may not remain.
pub(super) fn failures<'c>(
    failures: &OpMap<'c, Failure<'c>>,
    target: &ConversionTarget<'c, '_>,
    mode: Mode,
    patterns: &PatternSet<'c, '_>,
    log: &Log<'c>,
) -> Vec<Diagnostic> {
    in_order(failures).into_iter().filter_map(|f| explain(f, target, mode, patterns, log)).collect()
}

/// The ops of the input, by position in the walk, that are illegal at the end or became something illegal.
pub(super) fn failed_inputs<'c>(failures: &OpMap<'c, Failure<'c>>, target: &ConversionTarget<'c, '_>) -> Vec<u32> {
    let mut inputs: Vec<u32> =
        failures.values().filter(|f| target.legality(f.visit.op) == Legality::Illegal).map(|f| f.visit.input).collect();
    inputs.sort_unstable();
    inputs.dedup();
    inputs
}

/// The ops of the input, by position in the walk, that remain because their legality is unknown and no pattern converts them.
pub(super) fn kept_inputs<'c>(failures: &OpMap<'c, Failure<'c>>, target: &ConversionTarget<'c, '_>) -> Vec<u32> {
    let is_kept = |f: &&Failure<'c>| f.visit.origin.is_none() && target.legality(f.visit.op) == Legality::Unknown;
    failures.values().filter(is_kept).map(|f| f.visit.input).collect()
}

fn in_order<'c, 'a>(failures: &'a OpMap<'c, Failure<'c>>) -> Vec<&'a Failure<'c>> {
    let mut all: Vec<_> = failures.values().collect();
    all.sort_by_key(|f| f.order);
    all
}

fn explain<'c>(
    failure: &Failure<'c>,
    target: &ConversionTarget<'c, '_>,
    mode: Mode,
    patterns: &PatternSet<'c, '_>,
    log: &Log<'c>,
) -> Option<Diagnostic> {
    let op = failure.visit.op;
    if target.recursively_legal_around(op).is_some() {
        return None;
    }
    let what = match (target.legality(op), mode) {
        (Legality::Illegal, _) => "is illegal",
        (Legality::Unknown, Mode::Full) => "is not known to be legal",
        _ => return None,
    };
    let message = format!("'{}' {what} in the conversion target and no pattern converts it", op.name());
    let mut out = Diagnostic::error("I0010", op.location(), message);
    if failure.declined.is_empty() {
        out = out.with_note(format!("no pattern has '{}' as its root", op.name()));
    }
    for (pattern, reason) in &failure.declined {
        out = out.with_note(match pattern {
            Some(pattern) => format!("pattern '{}' declined: {reason}", patterns.get(*pattern).name()),
            None => reason.clone(),
        });
    }
    Some(log.explain_chain(out, failure.visit.origin, patterns))
}

/// The diagnostic for materializations that leave casts in every round.
pub(super) fn endless_casts(cast: Op) -> Diagnostic {
    let (from, to) = (types_of(&cast.operands()), types_of(&cast.results()));
    let text = format!("patterns keep undoing the materialization of a cast from {from} to {to}");
    Diagnostic::error("I0011", cast.location(), text)
        .with_help("make the op that the materialization creates legal in the target, or let the pattern decline")
}

fn types_of(values: &[crate::Value]) -> String {
    let types: Vec<_> = values.iter().map(|v| v.ty().to_string()).collect();
    if types.is_empty() { "nothing".to_owned() } else { types.join(", ") }
}

/// The diagnostic for a cast that is left after a full conversion.
pub(super) fn left_cast(cast: Op) -> Diagnostic {
    let (from, to) = (types_of(&cast.operands()), types_of(&cast.results()));
    let mut out = Diagnostic::error(
        "I0013",
        cast.location(),
        format!("a cast from {from} to {to} is left after a full conversion"),
    );
    for user in cast.results().into_iter().flat_map(|r| r.uses()).take(SHOWN_STEPS) {
        out =
            out.with_note(format!("'{}' reads it as operand {} at {}", user.op.name(), user.index, user.op.location()));
    }
    out.with_help("convert these users too, or call the conversion in partial mode")
}
