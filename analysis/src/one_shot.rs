//! Decide which operands are updated in place (One-Shot analysis).
//!
//! ```text
//! before                                        after
//! %1 = linalg.fill outs(%0)                     operand 0: in place
//! %2 = tensor.insert %f into %1[%c0]            operand 1: out of place, because ...
//! %3 = tensor.extract %1[%c0]                     ... this read of %1 would see the value of %2
//! ```
//!
//! Uses are visited in the order of a heuristic, operands left to right.
//! Each is put in place unless that would store to a buffer that is not writable, make parallel iterations share a
//! buffer that each must own, or let some read see a later write.
//! Decisions are never revised, so the order decides which of two conflicting uses is copied, never whether the result is right.
//! [`Strategy::Minimal`] searches the components of a function in which something is copied for placements of less [`cost`]
//! (`fewest`). Where a component is too large for it, other orders are tried: those that cost most if they are copied
//! first, and what [`Strategy::Greedy`] decides.
//!
//! Source: MLIR's One-Shot Bufferize (LLVM 22), in its decisions; the method is that of `classes`, near-linear, and
//! tested against the rules word by word.
//! Differs:
//! * An elementwise operation may overwrite a buffer that it may read only if both are whole buffers: two slices of one
//!   buffer may overlap.
//! * Inside a loop, the value that entered it is not written in place, even if its contents were undefined.
//! * Equality of slices is equality of normal forms, not a query to a constraint solver.
//! * The contents of a block argument may be lost by a write in any block that its block dominates, not only in its own.
//! * Blocks on a cycle also repeat operations nested in them.
//! * Values that alias one operand share memory even if the operand is copied: they share the copy.
//! * Of two writes of one operation that may both make its result, neither does if they may be to one buffer.
//! * A use that may be copied is copied where the reference stops because it "cannot avoid a RaW conflict"
//!   ([`check_forced`] finds those).

use crate::classes::{Classes, SMALL};
use crate::cost::{Cost, Costs, cost};
pub use crate::decisions::{Claim, Counts, Decisions, InPlaceAnalysis, decisions_from_placements};
use crate::decisions::{common_aliases, complete};
use crate::facts::{Facts, Label};
use crate::fewest::fewest_copies;
use crate::index::{IndexVec, OperandId};
pub use crate::order::visiting_order;
pub(crate) use crate::placement::ConflictTest;
pub use crate::placement::{Copy, DecideError, Heuristic, Options, Placement, Reason, Strategy};

/// Most operands of a function that is decided in several orders.
const MOST_REORDERED: usize = 20_000;

/// Decide every operand of a function.
///
/// # Errors
/// A use that must be in place cannot be, or a use of a tensor that cannot be copied must be copied.
pub fn decide(facts: &Facts, options: &Options) -> Result<Decisions, DecideError> {
    if options.copy_before_write && (options.unordered_graph_regions || !has_forced_write(facts)) {
        return Ok(copy_every_write(facts));
    }
    let order = visiting_order(facts, options.heuristic);
    let mut classes = Classes::new(facts, options, SMALL);
    let decisions = decide_in_order(facts, &order, &mut classes, options.copy_before_write)?;
    let is_minimal = options.strategy == Strategy::Minimal && !options.copy_before_write;
    if is_minimal { Ok(least(options, order, &mut classes, decisions)) } else { Ok(decisions) }
}

/// The decisions of least cost that are found; of equals those given.
fn least(options: &Options, order: Vec<OperandId>, classes: &mut Classes<'_>, decisions: Decisions) -> Decisions {
    let facts = classes.facts();
    let first = cost(facts, &decisions);
    if first == Cost::default() {
        return decisions;
    }
    let found = fewest_copies(facts, classes, &decisions);
    let mut steps = decisions.steps() + found.steps;
    let mut others = Vec::new();
    let mut again = |order: &[OperandId]| {
        classes.restart();
        decide_in_order(facts, order, classes, false)
    };
    if found.is_better {
        let (kept, copied): (Vec<_>, Vec<_>) =
            order.iter().partition(|operand| found.placements[**operand] == Placement::InPlace);
        others.extend(again(&[kept, copied].concat()));
    }
    if !found.is_least && facts.operands().len() <= MOST_REORDERED {
        others.extend(again(&dearest_first(facts, order.clone())));
        let greedy = Options { strategy: Strategy::Greedy, ..*options };
        others.extend(decide_in_order(facts, &order, &mut Classes::new(facts, &greedy, SMALL), false));
    }
    steps += others.iter().map(Decisions::steps).max().unwrap_or_default();
    let all = others.into_iter().map(|other| (cost(facts, &other), other));
    let (_, mut chosen) = all.fold((first, decisions), |least, other| if other.0 < least.0 { other } else { least });
    chosen.steps = steps;
    chosen
}

/// Operands whose copies would cost most before others.
fn dearest_first(facts: &Facts, mut order: Vec<OperandId>) -> Vec<OperandId> {
    let costs = Costs::new(facts);
    let whole = Copy { result: None, contents: true };
    order.sort_by_key(|id| std::cmp::Reverse(costs.of_copy(*id, whole)));
    order
}

/// Whether some use writes and must be in place.
fn has_forced_write(facts: &Facts) -> bool {
    facts.operands().iter().any(|used| used.must_in_place && used.writes)
}

/// Find conflicts among the uses that must be in place, before any decision.
///
/// The reference tests for each use in turn whether the uses in place would conflict if it were in place, too, even if it
/// may be copied, and stops at the first one. [`decide`] copies that use instead, so only a caller that wants the
/// reference's errors needs this.
///
/// # Errors
/// The first such use, in the order of the text, nested operations first. The reason is
/// [`Reason::NotWritable`] for a use in place that would write to a buffer that is not writable, else a conflict.
pub fn check_forced(facts: &Facts, options: &Options) -> Result<(), DecideError> {
    // The reference would copy the destination of an insertion without a result (and then does not).
    let must = |id: &OperandId| facts.operands()[*id].must_in_place && !facts.is_collected(*id);
    // Without a write in place there is no conflict.
    if options.copy_before_write || !facts.operands().ids().any(|id| must(&id) && facts.operands()[id].writes) {
        return Ok(());
    }
    let order = visiting_order(facts, Heuristic::TopDown);
    let mut classes = Classes::new(facts, options, SMALL);
    for &operand in order.iter().filter(|operand| must(operand)) {
        classes.force(operand);
    }
    order.into_iter().try_for_each(|operand| {
        classes.test_forced(operand).map_err(|reason| DecideError::MustBeInPlace { operand, reason })
    })
}

/// Decide the operands in a given order with a given test; `copies_writes`: copy those that write, if they can be.
pub(crate) fn decide_in_order(
    facts: &Facts,
    order: &[OperandId],
    classes: &mut impl ConflictTest,
    copies_writes: bool,
) -> Result<Decisions, DecideError> {
    let mut placements = IndexVec::filled(Placement::InPlace, facts.operands().len());
    let mut reasons = IndexVec::filled(None, facts.operands().len());
    for (a, b) in common_aliases(facts) {
        classes.join(a, b);
    }
    for operand in facts.operands().ids().filter(|&operand| facts.operands()[operand].must_in_place) {
        classes.test(operand).map_err(|reason| DecideError::MustBeInPlace { operand, reason })?;
        classes.accept(operand);
    }
    for &operand in order.iter().filter(|&&operand| !facts.operands()[operand].must_in_place) {
        if copies_writes && facts.operands()[operand].writes {
            placements[operand] = Placement::OutOfPlace;
            reasons[operand] = Some(Reason::CopyBeforeWrite);
            continue;
        }
        match classes.test(operand) {
            Ok(()) => classes.accept(operand),
            Err(reason) => {
                if !facts.values()[facts.operands()[operand].value].info.ranked {
                    return Err(DecideError::UnrankedCopy { operand, reason });
                }
                placements[operand] = Placement::OutOfPlace;
                reasons[operand] = Some(reason);
            }
        }
    }
    let (mut sets, steps) = classes.finish();
    Ok(complete(facts, placements, reasons, &mut sets, steps))
}

fn copy_every_write(facts: &Facts) -> Decisions {
    let keep = |writes: bool, must: bool| !writes || must;
    let placements: IndexVec<_, _> = facts
        .operands()
        .iter()
        .map(|used| if keep(used.writes, used.must_in_place) { Placement::InPlace } else { Placement::OutOfPlace })
        .collect();
    let mut decisions = decisions_from_placements(facts, placements);
    for operand in facts.operands().ids() {
        if !decisions.is_in_place(operand) {
            decisions.reasons[operand] = Some(Reason::CopyBeforeWrite);
        }
    }
    decisions
}

/// The label of an operand's operation, for messages.
pub fn label_of(facts: &Facts, operand: OperandId) -> Label {
    facts.ops()[facts.operands()[operand].op].label
}
