//! The driver: visits illegal ops, applies patterns, holds them to their contract.

use super::OpMap;
use super::kinds::Kinds;
use super::observe;
use super::plain::OperandFacts;
use super::report::{self, Application, Failure, Log};
use super::type_converter::Materialization;
use super::worklist::{Visit, Worklist};
use super::{
    Adaptor, Bridges, ConversionOptions, ConversionRewriter, ConversionStats, ConversionTarget, Declined, Legality,
    Mode, PatternSet, TypeConverter, WorklistOrder,
};
use crate::op::{Descent, NameVisitor};
use crate::{Block, Diagnostic, Diagnostics, InsertionPoint, Op, Value, WalkOrder};

mod absorb;
mod adapt;

/// Longest chain of pattern applications that follow from one op of the input.
/// Real lowerings take a handful of steps; a chain this long repeats itself.
const MAX_CHAIN: u32 = 512;

/// Most rounds of materialization whose ops leave casts to materialize again. Real ones take one or two.
const MAX_MATERIALIZATION_ROUNDS: u32 = 16;

/// Converts `root` and its nested ops in place. On failure the IR is valid and partly converted.
///
/// # Errors
/// I0010 for each illegal op that no pattern converted, I0011 for patterns that undo each other, I0012 for a pattern that breaks
/// its contract, I0013 for each cast left in full mode, and the diagnostics of a pattern that failed.
pub fn convert<'c>(
    root: Op<'c>,
    target: &ConversionTarget<'c, '_>,
    patterns: &PatternSet<'c, '_>,
    mode: Mode,
) -> Result<ConversionStats, Diagnostics> {
    convert_with(root, target, patterns, mode, ConversionOptions::default())
}

/// As [`convert`], with options.
///
/// # Errors
/// As [`convert`].
pub fn convert_with<'c>(
    root: Op<'c>,
    target: &ConversionTarget<'c, '_>,
    patterns: &PatternSet<'c, '_>,
    mode: Mode,
    options: ConversionOptions<'_>,
) -> Result<ConversionStats, Diagnostics> {
    Driver::over_all(root, target, patterns, mode, options).run()?.outcome
}

/// As [`convert`] in partial mode, for these ops of `root` and the ops that patterns create, in this order.
/// Old and new types meet in ops of the bridges' names instead of casts: those are never shared, folded or dropped,
/// and operands are read through them. Created ops are not verified: an op and the terminators of its regions may be
/// rewritten one after the other, in the order of the ops.
///
/// # Errors
/// As [`convert`].
pub fn convert_bridged<'c>(
    root: Op<'c>,
    ops: Vec<Op<'c>>,
    bridges: Bridges,
    target: &ConversionTarget<'c, '_>,
    patterns: &PatternSet<'c, '_>,
) -> Result<ConversionStats, Diagnostics> {
    let rw = ConversionRewriter::bridging(root, bridges);
    let mut driver = Driver::new(root, rw, target, patterns, Mode::Partial, ConversionOptions::default());
    driver.work = Worklist::new(ops, WorklistOrder::default());
    driver.run()?.outcome
}

/// The result of a conversion that ran to its end.
pub(super) struct Ended {
    /// Ops of the input, by position in the walk, that are still illegal or became something illegal.
    pub(super) failed_inputs: Vec<u32>,
    /// Ops of the input of unknown legality that no pattern converts.
    pub(super) kept_inputs: Vec<u32>,
    pub(super) outcome: Result<ConversionStats, Diagnostics>,
}

/// As [`convert`] in partial mode; also calls back with the worklist before the conversion, and returns the failed ops.
pub(super) fn convert_and_blame<'c>(
    root: Op<'c>,
    target: &ConversionTarget<'c, '_>,
    patterns: &PatternSet<'c, '_>,
) -> Result<(Vec<Op<'c>>, Ended), Diagnostics> {
    let mut driver = Driver::over_all(root, target, patterns, Mode::Partial, ConversionOptions::default());
    driver.look_in(vec![root]);
    driver.collect();
    let visited = driver.work.ahead();
    Ok((visited, driver.run()?))
}

struct Driver<'c, 'a, 'o> {
    root: Option<Op<'c>>,
    target: &'a ConversionTarget<'c, 'a>,
    patterns: &'a PatternSet<'c, 'a>,
    mode: Mode,
    options: ConversionOptions<'o>,
    kinds: Kinds<'c, 'a>,
    rw: ConversionRewriter<'c>,
    work: Worklist<'c>,
    /// Ops not yet searched for illegal ones, the first one last. Those erased since are not in `is_ahead`.
    ahead: Vec<Op<'c>>,
    is_ahead: OpMap<'c, ()>,
    /// The current visit is one of the walk, so its op is not in `ahead`.
    is_root_listed: bool,
    log: Log<'c>,
    applied: usize,
    /// An observer is attached, besides the hook of the options.
    is_observed: bool,
    /// Each pattern is followed by a check or a callback, even if it needs no further visits.
    is_watched: bool,
    failures: OpMap<'c, Failure<'c>>,
    /// Recursively legal ops whose bodies were skipped.
    closed: OpMap<'c, ()>,
    /// Scratch memory, reused for every op.
    operands: Vec<OperandFacts<'c>>,
    values: Vec<Value<'c>>,
    ends: Vec<usize>,
    batch: Vec<Visit<'c>>,
    order: Vec<Option<(Op<'c>, bool)>>,
    survivors: Vec<(Op<'c>, bool)>,
    gone: Vec<Op<'c>>,
    unverified: Vec<Op<'c>>,
}

impl<'c, 'a, 'o> Driver<'c, 'a, 'o> {
    /// Over all ops in `root` that are illegal or may be.
    fn over_all(
        root: Op<'c>,
        target: &'a ConversionTarget<'c, 'a>,
        patterns: &'a PatternSet<'c, 'a>,
        mode: Mode,
        options: ConversionOptions<'o>,
    ) -> Self {
        let mut this = Self::new(root, ConversionRewriter::new(root), target, patterns, mode, options);
        let mut ahead = vec![root];
        if patterns.is_confined() && !target.is_recursively_legal(root) {
            ahead.extend(root.regions().into_iter().flat_map(|region| region.block_list()).flat_map(Block::ops));
        }
        this.look_in(ahead);
        this
    }
    /// Sets the ops to search for illegal ones, in this order.
    fn look_in(&mut self, mut ops: Vec<Op<'c>>) {
        self.is_ahead = ops.iter().map(|op| (*op, ())).collect();
        ops.reverse();
        self.ahead = ops;
    }
    /// Collects the illegal ops of the next part; whether there were any.
    fn collect(&mut self) -> bool {
        let next = std::iter::from_fn(|| self.ahead.pop()).find(|op| self.is_ahead.remove(op).is_some());
        let Some(op) = next else { return false };
        let (kinds, rw, closed) = (&mut self.kinds, &mut self.rw, &mut self.closed);
        // The root comes first, without its body if that is listed by itself.
        let is_around = self.root == Some(op) && !self.ahead.is_empty();
        self.work.walk_on(|walk| op.walk_listing(&mut Collector { is_around, kinds, rw, closed, walk }));
        true
    }
    fn new(
        root: Op<'c>,
        rw: ConversionRewriter<'c>,
        target: &'a ConversionTarget<'c, 'a>,
        patterns: &'a PatternSet<'c, 'a>,
        mode: Mode,
        options: ConversionOptions<'o>,
    ) -> Self {
        let work = Worklist::new(vec![], options.worklist_order);
        let is_observed = observe::is_observed();
        let is_watched = is_observed || options.after_each_pattern.is_some() || options.verify_each;
        Self {
            root: Some(root),
            target,
            patterns,
            mode,
            options,
            kinds: Kinds::new(target, patterns),
            rw,
            work,
            ahead: vec![],
            is_ahead: OpMap::default(),
            is_root_listed: false,
            log: Log::default(),
            applied: 0,
            is_observed,
            is_watched,
            failures: OpMap::default(),
            closed: OpMap::default(),
            operands: Vec::with_capacity(8),
            values: vec![],
            ends: vec![],
            batch: vec![],
            order: vec![],
            survivors: vec![],
            gone: vec![],
            unverified: vec![],
        }
    }

    fn run(mut self) -> Result<Ended, Diagnostics> {
        let converted = self.drain().and_then(|()| self.materialize()).and_then(|()| self.check_confined());
        if let Err(diagnostics) = converted {
            self.rw.settle();
            return Err(diagnostics);
        }
        super::order::order_casts(&self.rw, &self.rw.live_casts(self.root));
        let casts = &self.rw.state().casts;
        let stats = ConversionStats {
            patterns_applied: self.applied,
            casts_created: casts.created(),
            max_live_casts: casts.max_live(),
            casts_left: casts.live(),
        };
        let failed_inputs = report::failed_inputs(&self.failures, self.target);
        let kept_inputs = report::kept_inputs(&self.failures, self.target);
        Ok(Ended { failed_inputs, kept_inputs, outcome: self.report().map(|()| stats) })
    }

    fn drain(&mut self) -> Result<(), Diagnostics> {
        loop {
            while let Some(visit) = self.work.pop() {
                self.visit(visit)?;
            }
            if !self.collect() {
                return Ok(());
            }
        }
    }

    fn visit(&mut self, visit: Visit<'c>) -> Result<(), Diagnostics> {
        if !self.failures.is_empty() {
            self.failures.remove(&visit.op);
        }
        let kind = self.kinds.of(visit.op);
        if self.kinds.get(kind).legality(visit.op) == Legality::Legal {
            return Ok(());
        }
        if let Some(around) = self.target.recursively_legal_around(visit.op) {
            self.closed.insert(around, ());
            return Ok(());
        }
        self.legalize(visit, kind)
    }

    fn legalize(&mut self, visit: Visit<'c>, kind: u32) -> Result<(), Diagnostics> {
        let op = visit.op;
        let chain = visit.origin.map_or(0, |o| self.log.get(o).chain + 1);
        if chain > MAX_CHAIN {
            return Err(self.log.cycle(visit, self.patterns).into());
        }
        let location = op.location();
        self.is_root_listed = visit.origin.is_none();
        self.rw.begin(op);
        let before = self.fingerprint();
        let mut declined = Vec::new();
        let adapted = if self.kinds.get(kind).reads_adaptor { self.adapt(op) } else { self.adapt_nothing() };
        match adapted {
            Err(reason) => declined.push((None, reason)),
            Ok(()) => {
                for i in 0..self.kinds.get(kind).patterns.len() {
                    let pattern = self.kinds.get(kind).patterns[i];
                    let op_name = self.kinds.get(kind).name;
                    let application = Application { pattern, op_name, origin: visit.origin, chain, location };
                    match self.apply(&application, op, before.as_ref())? {
                        Some(reason) => declined.push((Some(pattern), reason)),
                        None => {
                            self.applied += 1;
                            return self.absorb(visit, &application);
                        }
                    }
                }
            }
        }
        // Drops the casts that were made for the operands.
        self.rw.settle();
        self.failures.insert(op, Failure { visit, order: self.failures.len(), declined });
        Ok(())
    }

    /// Applies one pattern; the reason if it declined, `None` if it converted the op.
    fn apply(
        &mut self,
        at: &Application<'c>,
        op: Op<'c>,
        before: Option<&String>,
    ) -> Result<Option<String>, Diagnostics> {
        let pattern = self.patterns.get(at.pattern);
        if !self.ends.is_empty() && !pattern.accepts_one_to_many() {
            return Ok(Some("an operand became several values, or none, which the pattern does not accept".to_owned()));
        }
        self.rw.set_point(InsertionPoint::Before(op));
        let outcome = pattern.rewrite(op, &Adaptor::new(&self.values, &self.ends), &mut self.rw);
        if let Some(violation) = self.rw.state().violations.first() {
            return Err(self.broken(at, &format!("{violation}, while it rewrites")));
        }
        match outcome {
            Ok(()) if self.rw.touched(op) => Ok(None),
            Ok(()) => Err(self.broken(at, "reports success but has not replaced, erased or changed")),
            Err(Declined::NoMatch(reason)) if !self.rw.is_untouched() => {
                Err(self.broken(at, &format!("declines ({reason}) after it changed the IR around")))
            }
            Err(Declined::NoMatch(reason)) if before.is_some_and(|before| !self.is_as_before(op, before)) => {
                Err(self
                    .broken(at, &format!("declines ({reason}) after it changed the IR, without the rewriter, around")))
            }
            Err(Declined::NoMatch(reason)) => Ok(Some(reason)),
            Err(Declined::Failed(diagnostics)) => Err(diagnostics),
        }
    }
    /// The diagnostic for a pattern that broke its contract.
    #[cold]
    fn broken(&self, at: &Application<'c>, what: &str) -> Diagnostics {
        let message = format!("pattern '{}' {what} '{}'", self.patterns.get(at.pattern).name(), at.op_name);
        Diagnostic::error("I0012", at.location, message).into()
    }

    /// Whether the IR is as it was before a pattern that declined.
    /// Drops the casts made for the operands and requested by the pattern; the operands are read again.
    fn is_as_before(&mut self, op: Op<'c>, before: &str) -> bool {
        self.rw.settle();
        let kind = self.kinds.of(op);
        let reads_adaptor = self.kinds.get(kind).reads_adaptor;
        self.fingerprint().as_deref() == Some(before) && (!reads_adaptor || self.adapt(op).is_ok())
    }

    /// The printed root, if changes that bypass the rewriter are to be detected.
    fn fingerprint(&self) -> Option<String> {
        let root = self.root.filter(|_| self.options.fingerprint)?;
        Some(root.print(&crate::PrintOptions { assume_verified: true, ..Default::default() }))
    }

    /// Replaces the casts that are left by materializations, and converts the ops of those.
    fn materialize(&mut self) -> Result<(), Diagnostics> {
        let Some(converter) = self.patterns.converter().filter(|c| c.materializes()) else { return Ok(()) };
        for round in 1.. {
            let mut made = 0;
            for cast in self.rw.live_casts(self.root) {
                let endless = (round > MAX_MATERIALIZATION_ROUNDS).then(|| report::endless_casts(cast));
                if self.materialize_cast(cast, converter)? {
                    made += 1;
                    endless.map_or(Ok(()), |diagnostic| Err(Diagnostics::from(diagnostic)))?;
                }
            }
            if made == 0 {
                break;
            }
            self.rw.settle();
            self.work.push(&mut self.batch);
            self.drain()?;
        }
        Ok(())
    }
    /// Whether a materialization replaced the cast.
    fn materialize_cast(&mut self, cast: Op<'c>, converter: &TypeConverter<'c, '_>) -> Result<bool, Diagnostics> {
        let (inputs, results) = (cast.operands(), cast.results());
        let types: Vec<_> = results.iter().map(|r| r.ty()).collect();
        let to_old = !types.iter().all(|ty| converter.is_legal(*ty));
        self.rw.begin(cast);
        self.rw.set_point(InsertionPoint::Before(cast));
        let wanted = Materialization { inputs: &inputs, types: &types, location: cast.location() };
        let made = converter.materialize(&mut self.rw, to_old, &wanted);
        if let Some(violation) = self.rw.state().violations.first() {
            let text = format!("a materialization {violation}");
            return Err(Diagnostic::error("I0012", cast.location(), text).into());
        }
        self.survive(cast);
        // They follow from no op of the input in particular.
        let made_ops = self.survivors.iter().map(|(op, _)| Visit { op: *op, origin: None, input: u32::MAX });
        self.batch.extend(made_ops);
        let fits = |made: &Vec<Value<'c>>| made.iter().map(|v| v.ty()).eq(types.iter().copied());
        // The cast's own results are not an answer.
        let made = made.filter(|made| fits(made) && !made.iter().any(|value| results.contains(value)));
        if let Some(made) = &made {
            self.rw.replace_cast(cast, made);
        }
        Ok(made.is_some())
    }

    /// I0012 for an illegal op that was never visited, because a pattern moved it out of an op that came later.
    fn check_confined(&self) -> Result<(), Diagnostics> {
        let Some(root) = self.root.filter(|_| cfg!(debug_assertions) && self.patterns.is_confined()) else {
            return Ok(());
        };
        let is_missed = |op: &Op<'c>| {
            self.target.legality(*op) == Legality::Illegal
                && !self.failures.contains_key(op)
                && !self.rw.state().casts.is_own(*op)
                && self.target.recursively_legal_around(*op).is_none()
        };
        let Some(op) = root.nested(WalkOrder::Pre).into_iter().find(is_missed) else { return Ok(()) };
        let text =
            format!("a pattern took '{}' out of an op that came later, which confined patterns must not", op.name());
        Err(Diagnostic::error("I0012", op.location(), text).into())
    }

    fn report(&self) -> Result<(), Diagnostics> {
        let mut out = report::failures(&self.failures, self.target, self.mode, self.patterns, &self.log);
        if self.mode == Mode::Full {
            out.extend(self.rw.live_casts(self.root).into_iter().map(report::left_cast));
        }
        if out.is_empty() { Ok(()) } else { Err(Diagnostics(out)) }
    }
}

/// Lists illegal and possibly illegal ops in pre-order, and recursively legal ops. Records casts of the input on the way.
struct Collector<'c, 'w, 'a> {
    /// Skips the body of the root op.
    is_around: bool,
    kinds: &'w mut Kinds<'c, 'a>,
    rw: &'w mut ConversionRewriter<'c>,
    closed: &'w mut OpMap<'c, ()>,
    walk: &'w mut Vec<Op<'c>>,
}

impl<'c> NameVisitor<'c> for Collector<'c, '_, '_> {
    fn visit(&mut self, op: Op<'c>, name: usize) -> Descent {
        let kind = self.kinds.of_name(name, op);
        let kind = self.kinds.get(kind);
        let is_cast = name == self.rw.state().casts.name_address();
        if is_cast {
            self.rw.state_mut().casts.note_foreign(op);
        }
        if kind.may_be_recursively_legal() && kind.is_recursively_legal(op) {
            self.closed.insert(op, ());
            // Nested ops are not visited, but their casts are casts of the input too.
            op.walk(WalkOrder::Pre, |inner| {
                if self.rw.state().casts.is_cast(inner) {
                    self.rw.state_mut().casts.note_foreign(inner);
                }
            });
            return Descent::Over;
        }
        if !kind.is_always_legal() {
            self.walk.push(op);
        }
        match self.is_around {
            true => Descent::Over,
            false if is_cast || kind.may_be_recursively_legal() => Descent::Into,
            // No op of this name needs a visit.
            false if kind.is_always_legal() => Descent::Unasked,
            false => Descent::Listed,
        }
    }
    fn list(&mut self, ops: &[Op<'c>]) {
        self.walk.extend_from_slice(ops);
    }
}
