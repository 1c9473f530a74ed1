//! The walk, the worklist, and what is said when an op cannot be converted.

use super::rewriter::OpMap;
use super::{Adaptor, ConversionRewriter, ConversionTarget, Declined, Legality, PatternSet};
use crate::{Change, Diagnostic, Diagnostics, InsertionPoint, Op, Value, WalkOrder};

/// Longest chain of patterns that lead from one op of the input to another pattern application.
/// Real lowerings take a handful of steps; a chain this long repeats itself.
const MAX_CHAIN: u32 = 512;
/// How many steps of a chain a diagnostic shows.
const SHOWN_STEPS: usize = 8;

/// What must be gone at the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Ops that the target calls illegal. Unknown ops and casts to ops that were not converted may remain.
    Partial,
    /// Ops that the target calls illegal, unknown ops, and all casts of the driver's.
    Full,
}

/// What a conversion cost.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ConversionStats {
    /// Successful pattern applications.
    pub patterns_applied: usize,
    /// Casts created.
    pub casts_created: usize,
    /// Most casts that were alive at one time.
    pub max_live_casts: usize,
}

/// One successful pattern application, as [`ConversionOptions::after_each_pattern`] sees it.
#[derive(Debug)]
pub struct PatternEvent<'a> {
    /// The pattern.
    pub pattern: &'a str,
    /// Name of the op that it was applied to.
    pub op_name: &'a str,
    /// What is being converted, unless a pattern replaced it as a whole.
    pub root: Option<Op>,
}

/// What a conversion does besides converting.
#[derive(Default)]
pub struct ConversionOptions<'a> {
    /// Called after each successful pattern; the IR is valid then (`--dump-after-each-pattern` prints it).
    pub after_each_pattern: Option<&'a mut dyn FnMut(&PatternEvent<'_>)>,
    /// Verify the root after each pattern and stop at the first that breaks it (I0012). Quadratic: for tests and debugging.
    pub verify_each: bool,
}

impl std::fmt::Debug for ConversionOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConversionOptions").field("verify_each", &self.verify_each).finish_non_exhaustive()
    }
}

/// Converts `root` and everything in it. On failure the IR is valid and partly converted.
///
/// # Errors
/// I0010 for each illegal op that no pattern converted, I0011 for patterns that undo each other, I0012 for a pattern that breaks its contract,
/// I0013 for each cast left in full mode, and what a pattern failed with.
pub fn convert(
    root: Op,
    target: &ConversionTarget<'_>,
    patterns: &PatternSet<'_>,
    mode: Mode,
) -> Result<ConversionStats, Diagnostics> {
    convert_with(root, target, patterns, mode, ConversionOptions::default())
}

/// As [`convert`], with options.
///
/// # Errors
/// As [`convert`].
pub fn convert_with(
    root: Op,
    target: &ConversionTarget<'_>,
    patterns: &PatternSet<'_>,
    mode: Mode,
    options: ConversionOptions<'_>,
) -> Result<ConversionStats, Diagnostics> {
    let rw = ConversionRewriter::new(root.context());
    let driver = Driver {
        root: Some(root),
        target,
        patterns,
        mode,
        options,
        rw,
        pending: OpMap::default(),
        stack: vec![],
        visits: 0,
        log: vec![],
        failures: OpMap::default(),
    };
    driver.run(root)
}

/// One scheduled visit of an op. It is valid while `pending` holds its number: erasing the op, or visiting it, takes that away,
/// so that a later op at the same address is never mistaken for it.
#[derive(Clone, Copy)]
struct Visit {
    op: Op,
    number: usize,
    /// The application that created or changed the op.
    origin: Option<usize>,
}

/// One pattern application, kept to explain chains.
struct Application {
    pattern: usize,
    op_name: &'static str,
    origin: Option<usize>,
    chain: u32,
}

/// An op that every pattern declined.
struct Failure {
    visit: Visit,
    declined: Vec<(usize, String)>,
}

struct Driver<'a, 'o> {
    root: Option<Op>,
    target: &'a ConversionTarget<'a>,
    patterns: &'a PatternSet<'a>,
    mode: Mode,
    options: ConversionOptions<'o>,
    rw: ConversionRewriter,
    pending: OpMap<usize>,
    stack: Vec<Visit>,
    visits: usize,
    log: Vec<Application>,
    failures: OpMap<Failure>,
}

impl Driver<'_, '_> {
    fn run(mut self, root: Op) -> Result<ConversionStats, Diagnostics> {
        let walk: Vec<Visit> = root.nested(WalkOrder::Pre).into_iter().map(|op| self.schedule(op, None)).collect();
        for visit in walk {
            self.visit(visit)?;
            while let Some(next) = self.stack.pop() {
                self.visit(next)?;
            }
        }
        self.report()?;
        Ok(ConversionStats {
            patterns_applied: self.log.len(),
            casts_created: self.rw.casts_created(),
            max_live_casts: self.rw.max_live_casts(),
        })
    }

    fn schedule(&mut self, op: Op, origin: Option<usize>) -> Visit {
        self.visits += 1;
        self.pending.insert(op, self.visits);
        Visit { op, number: self.visits, origin }
    }

    fn visit(&mut self, visit: Visit) -> Result<(), Diagnostics> {
        if self.pending.get(&visit.op) != Some(&visit.number) {
            // Erased meanwhile.
            return Ok(());
        }
        self.pending.remove(&visit.op);
        self.failures.remove(&visit.op);
        if self.rw.is_cast(visit.op) || self.target.legality(visit.op) == Legality::Legal {
            return Ok(());
        }
        self.legalize(visit)
    }

    fn legalize(&mut self, visit: Visit) -> Result<(), Diagnostics> {
        let (op, op_name) = (visit.op, visit.op.name());
        let chain = visit.origin.map_or(0, |o| self.log[o].chain + 1);
        if chain > MAX_CHAIN {
            return Err(self.cycle(visit).into());
        }
        let operands: Vec<Value> = op.operands().into_iter().map(|v| self.rw.converted(v)).collect();
        let mut declined = Vec::new();
        for pattern in self.patterns.of(op_name) {
            match self.apply(pattern, op, &operands)? {
                Some(reason) => declined.push((pattern, reason)),
                None => {
                    self.log.push(Application { pattern, op_name, origin: visit.origin, chain });
                    return self.absorb();
                }
            }
        }
        self.failures.insert(op, Failure { visit, declined });
        Ok(())
    }

    /// Tries one pattern; why it declined, or `None` when it converted the op.
    fn apply(&mut self, index: usize, op: Op, operands: &[Value]) -> Result<Option<String>, Diagnostics> {
        let pattern = self.patterns.get(index);
        let (location, name) = (op.location(), op.name());
        self.rw.set_point(InsertionPoint::Before(op));
        let broken = |what: &str| {
            Diagnostics::from(Diagnostic::error(
                "I0012",
                location,
                format!("pattern '{}' {what} '{name}'", pattern.name()),
            ))
        };
        match pattern.rewrite(op, &Adaptor::new(operands), &mut self.rw) {
            Ok(()) if touches(self.rw.journal(), op) => Ok(None),
            Ok(()) => Err(broken("reports success but has not replaced, erased or changed")),
            Err(Declined::NoMatch(reason)) if self.rw.journal().is_empty() => Ok(Some(reason)),
            Err(Declined::NoMatch(reason)) => {
                Err(broken(&format!("declines ({reason}) after it changed the IR around")))
            }
            Err(Declined::Failed(diagnostics)) => Err(diagnostics),
        }
    }

    /// After a successful pattern: tidies the casts, then schedules what was created or changed.
    fn absorb(&mut self) -> Result<(), Diagnostics> {
        self.rw.settle();
        let survivors = self.survivors();
        self.rw.forget_journal();
        let origin = self.log.len().checked_sub(1);
        let mut batch = Vec::new();
        for (op, created) in survivors {
            // What a new op holds may be new too; what a changed op holds is in the journal itself.
            let ops = if created { op.nested(WalkOrder::Pre) } else { vec![op] };
            for nested in ops {
                if !self.pending.contains_key(&nested) && !self.rw.is_cast(nested) {
                    batch.push(self.schedule(nested, origin));
                }
            }
        }
        // A stack: what was changed first is visited first, with all that follows from it.
        self.stack.extend(batch.into_iter().rev());
        self.tell()
    }

    /// Ops that the journal says were created, changed or moved and not erased afterwards, in that order.
    /// Only these may be read: a handle of an erased op stands for its identity, until a new op takes its address.
    /// The flag says whether the op is new.
    fn survivors(&mut self) -> Vec<(Op, bool)> {
        let mut order: Vec<Option<(Op, bool)>> = Vec::new();
        let mut position: OpMap<usize> = OpMap::default();
        for change in self.rw.journal() {
            match *change {
                Change::Erased(op) => {
                    self.pending.remove(&op);
                    self.failures.remove(&op);
                    if self.root == Some(op) {
                        self.root = None;
                    }
                    if let Some(index) = position.remove(&op) {
                        order[index] = None;
                    }
                }
                Change::Created(op) | Change::Modified(op) | Change::Moved(op) => {
                    position.entry(op).or_insert_with(|| {
                        order.push(Some((op, matches!(change, Change::Created(_)))));
                        order.len() - 1
                    });
                }
            }
        }
        order.into_iter().flatten().collect()
    }

    /// Calls the hook and, where asked for, the verifier.
    fn tell(&mut self) -> Result<(), Diagnostics> {
        let Some(last) = self.log.last() else { return Ok(()) };
        if let Some(hook) = &mut self.options.after_each_pattern {
            let pattern = self.patterns.get(last.pattern).name();
            hook(&PatternEvent { pattern: &pattern, op_name: last.op_name, root: self.root });
        }
        let Some(root) = self.root.filter(|_| self.options.verify_each) else { return Ok(()) };
        root.verify_with_diagnostics().map_err(|mut diagnostics| {
            let text = format!("the IR is invalid after {}", self.step(self.log.len() - 1));
            diagnostics.0.push(Diagnostic::error("I0012", root.location(), text));
            diagnostics
        })
    }

    fn report(&self) -> Result<(), Diagnostics> {
        let mut failures: Vec<_> = self.failures.values().collect();
        failures.sort_by_key(|f| f.visit.number);
        let mut out: Vec<Diagnostic> = failures.into_iter().filter_map(|f| self.explain(f)).collect();
        if self.mode == Mode::Full {
            out.extend(self.rw.live_casts().into_iter().map(left_cast));
        }
        if out.is_empty() { Ok(()) } else { Err(Diagnostics(out)) }
    }

    /// The diagnostic for an op that no pattern converted, if it may not remain.
    fn explain(&self, failure: &Failure) -> Option<Diagnostic> {
        let op = failure.visit.op;
        let what = match (self.target.legality(op), self.mode) {
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
            out = out.with_note(format!("pattern '{}' declined: {reason}", self.patterns.get(*pattern).name()));
        }
        Some(self.with_chain(out, failure.visit.origin))
    }

    fn cycle(&self, visit: Visit) -> Diagnostic {
        let message =
            format!("patterns keep rewriting '{}' without reaching a legal op ({MAX_CHAIN} steps)", visit.op.name());
        let out = Diagnostic::error("I0011", visit.op.location(), message);
        self.with_chain(out, visit.origin).with_help("the patterns named above undo each other, or one recreates its own root;             make the op legal in the target or let one of them decline")
    }

    /// Adds the patterns that led to an op, the latest first.
    fn with_chain(&self, mut out: Diagnostic, mut origin: Option<usize>) -> Diagnostic {
        for _ in 0..SHOWN_STEPS {
            let Some(index) = origin else { return out };
            out = out.with_note(format!("created or changed by {}", self.step(index)));
            origin = self.log[index].origin;
        }
        if origin.is_some() { out.with_note("and so on") } else { out }
    }

    fn step(&self, index: usize) -> String {
        let application = &self.log[index];
        format!("pattern '{}' on '{}'", self.patterns.get(application.pattern).name(), application.op_name)
    }
}

/// Whether a journal says that the op was erased or changed.
fn touches(journal: &[Change], op: Op) -> bool {
    journal.iter().any(|change| matches!(change, Change::Erased(o) | Change::Modified(o) if *o == op))
}

fn left_cast(cast: Op) -> Diagnostic {
    let (from, to) = (cast.operand(0).ty(), cast.result(0).ty());
    let mut out = Diagnostic::error(
        "I0013",
        cast.location(),
        format!("a cast from {from} to {to} is left after a full conversion"),
    );
    for user in cast.result(0).uses().into_iter().take(SHOWN_STEPS) {
        out =
            out.with_note(format!("'{}' reads it as operand {} at {}", user.op.name(), user.index, user.op.location()));
    }
    out.with_help("convert these users too, or call the conversion in partial mode")
}
