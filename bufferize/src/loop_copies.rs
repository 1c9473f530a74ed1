//! Copies of tensors that a loop carries.
//!
//! ```text
//! scf.for .. iter_args(%a = %x, %b = %y) {           scf.for .. iter_args(%a = %x, %b = %y) {
//!   scf.yield %b, %a                           ==>     %c = bufferization.alloc_tensor() copy(%b)
//! }                                                    %d = bufferization.alloc_tensor() copy(%a)
//!                                                      scf.yield %c, %d
//! ```
//!
//! A loop's result may alias its own initial value only, and an iteration may write to its arguments.
//! So a tensor is copied if it may alias a value outside of the loop or an argument other than its own, read-only
//! memory, or another carried tensor. A condition of `scf.while` is copied, too, unless it and the yield both
//! forward their own arguments; a yield may then forward any argument, for each is a buffer of its own.
//!
//! With the strategy `minimal`, a loop may yield its arguments in another order, each in place of one: the buffers of the
//! initial values change places. Nothing may use an initial value behind the loop, whose buffer may be any of them then.
//!
//! One pass over the values summarises each alias class by the positions of definitions; a query costs a binary search.
//! Source: the copies that MLIR's One-Shot Bufferize makes in loops.
//! Differs: read-only memory, tensors carried twice, and yields of `scf.while` are copied, which upstream omits;
//! with `extensions`, a condition is copied like a yield: only if it may alias another value.

use std::collections::{HashMap, HashSet};

use monopour_analysis::facts::{Span, ValueDef};
use monopour_analysis::index::{OpId, ValueId};
use monopour_analysis::one_shot::{Decisions, InPlaceAnalysis};
use monopour_ir::{Op, Use, Value};

use crate::collect::Collected;
use crate::effects::{LoopCarried, LoopTerminator};
use crate::op_model::OpModels;
use crate::options::{Options, Strategy};

/// The operands of loops' terminators that need a copy. `takes_part`: whether an operation has a model.
pub(crate) fn copied_in_loops<'c>(
    collected: &Collected<'c>,
    decisions: &Decisions,
    models: &OpModels,
    options: &Options,
    takes_part: impl Fn(Op<'c>) -> bool,
) -> Vec<Use<'c>> {
    // Without an analysis no equivalence is known; the loop's initial values are copies.
    if options.copy_before_write {
        return vec![];
    }
    let carried = |op: Op<'c>| models.get(op, options).map(|model| model.loop_carried(op)).unwrap_or_default();
    let loops = collected.ops.iter_enumerated().map(|(id, op)| (id, carried(*op)));
    let loops: Vec<_> = loops.filter(|(_, carried)| !carried.is_empty()).collect();
    if loops.is_empty() {
        return vec![];
    }
    let classes = Classes::new(collected, decisions, takes_part);
    let mut last_uses = None;
    let mut found = Vec::new();
    for (id, carried) in loops {
        let span = collected.facts.span(id);
        let exchanges = options.strategy == Strategy::Minimal
            && is_permuted(collected, decisions, &carried)
            && !last_uses
                .get_or_insert_with(|| LastUses::new(collected, decisions))
                .are_stale(collected, decisions, id);
        let mut kept: HashSet<(Op, ValueId)> = HashSet::new();
        for carried in carried {
            let terminator = carried.terminator;
            let Some(value) = collected.id(terminator.operand(carried.index)) else { continue };
            let class = decisions.alias_class(value);
            let argument = carried.argument.and_then(|a| collected.id(a));
            let own = argument.filter(|a| decisions.alias_class(*a) == class);
            let escapes = match carried.from {
                LoopTerminator::Condition { other_region } if !options.extensions => {
                    !keeps_its_own(collected, decisions, &carried, other_region)
                }
                from => {
                    let any_argument = from == LoopTerminator::AfterCondition && !options.extensions || exchanges;
                    classes.escapes(class, span, own, any_argument)
                }
            };
            if escapes || !kept.insert((terminator, class)) {
                found.push(Use { op: terminator, index: carried.index });
            }
        }
    }
    found
}

/// Whether a loop yields buffers of its arguments, each once, and not all in their order. A condition forwards its own.
fn is_permuted(collected: &Collected, decisions: &Decisions, carried: &[LoopCarried]) -> bool {
    let class_of = |value: Option<Value>| value.and_then(|v| collected.id(v)).map(|id| decisions.alias_class(id));
    let classes = |c: &LoopCarried| class_of(c.argument).zip(class_of(Some(c.terminator.operand(c.index))));
    let is_condition = |c: &&LoopCarried| matches!(c.from, LoopTerminator::Condition { .. });
    let is_forwarded = |c: &LoopCarried| classes(c).is_some_and(|(argument, forwarded)| argument == forwarded);
    if !carried.iter().filter(is_condition).all(is_forwarded) {
        return false;
    }
    let pairs: Option<Vec<(ValueId, ValueId)>> = carried.iter().filter(|c| !is_condition(c)).map(classes).collect();
    let Some(pairs) = pairs.filter(|pairs| pairs.iter().any(|(argument, yielded)| argument != yielded)) else {
        return false;
    };
    let arguments: HashSet<ValueId> = pairs.iter().map(|pair| pair.0).collect();
    let yielded: HashSet<ValueId> = pairs.iter().map(|pair| pair.1).collect();
    // Each a class, and a buffer, of its own.
    arguments == yielded && arguments.len() == pairs.len()
}

/// The last use of the values of each alias class.
struct LastUses {
    /// By class: positions behind which values are defined, sorted, and the last use of those defined before.
    by_class: HashMap<ValueId, Vec<(u32, u32)>>,
}

impl LastUses {
    fn new(collected: &Collected, decisions: &Decisions) -> Self {
        let facts = &collected.facts;
        let mut by_class: HashMap<ValueId, Vec<(u32, u32)>> = HashMap::new();
        for (value, info) in facts.values().iter_enumerated() {
            let last = facts.uses(value).iter().map(|used| facts.span(facts.operands()[*used].op).first).max();
            let defined = match info.def {
                ValueDef::Result(op) => facts.span(op).first + 1,
                // Those of the loop itself are used inside of it.
                ValueDef::Argument(_) => 0,
            };
            let class = by_class.entry(decisions.alias_class(value)).or_default();
            class.extend(last.map(|last| (defined, last)));
        }
        for uses in by_class.values_mut() {
            uses.sort_unstable();
            let mut most = 0;
            for (_, last) in uses {
                most = most.max(*last);
                *last = most;
            }
        }
        Self { by_class }
    }

    /// Whether something uses an initial value of a loop behind it.
    fn are_stale(&self, collected: &Collected, decisions: &Decisions, id: OpId) -> bool {
        let (facts, span) = (&collected.facts, collected.facts.span(id));
        facts.operands_of(id).iter().any(|operand| {
            let uses = self.by_class.get(&decisions.alias_class(facts.operands()[*operand].value));
            let uses = uses.map_or(&[][..], |uses| uses);
            let before = uses.partition_point(|(defined, _)| *defined <= span.first);
            before.checked_sub(1).is_some_and(|at| uses[at].1 > span.last)
        })
    }
}

/// Whether a condition and the yield of the same position both carry the arguments of their own regions.
fn keeps_its_own(
    collected: &Collected,
    decisions: &Decisions,
    carried: &LoopCarried,
    other_region: Option<(Value, Value)>,
) -> bool {
    let same =
        |a: Value, b: Value| collected.id(a).zip(collected.id(b)).is_some_and(|(a, b)| decisions.are_equivalent(a, b));
    let value = carried.terminator.operand(carried.index);
    carried.argument.is_some_and(|a| same(a, value)) && other_region.is_some_and(|(a, b)| same(a, b))
}

/// The definitions of an alias class, as positions of the parent operation; 0: the function.
#[derive(Clone, Debug, Default)]
struct Class {
    /// Smallest and largest of the results.
    results: Option<(u32, u32)>,
    /// All of the block arguments, sorted.
    arguments: Vec<u32>,
    /// Read-only values: one of them, and whether there are others.
    read_only: Option<(ValueId, bool)>,
}

struct Classes {
    by_value: HashMap<ValueId, Class>,
}

impl Classes {
    fn new<'c>(collected: &Collected<'c>, decisions: &Decisions, takes_part: impl Fn(Op<'c>) -> bool) -> Self {
        let facts = &collected.facts;
        let around = |op| facts.parent_of(op).map_or(0, |parent| facts.span(parent).first + 1);
        let mut by_value: HashMap<ValueId, Class> = HashMap::new();
        for (id, value) in facts.values().iter_enumerated() {
            let class = by_value.entry(decisions.alias_class(id)).or_default();
            let maker = match value.def {
                ValueDef::Result(op) => {
                    let key = around(op);
                    let (low, high) = class.results.unwrap_or((key, key));
                    class.results = Some((low.min(key), high.max(key)));
                    Some(op)
                }
                ValueDef::Argument(block) => {
                    let owner = facts.regions()[facts.blocks()[block].region].op;
                    class.arguments.push(owner.map_or(0, |owner| facts.span(owner).first + 1));
                    owner
                }
            };
            // Ops that stay on tensors define new tensors.
            let is_ours = maker.is_none_or(|op| takes_part(collected.ops[op]));
            if !value.info.buffer.writable && is_ours {
                class.read_only = Some((class.read_only.map_or(id, |(other, _)| other), class.read_only.is_some()));
            }
        }
        for class in by_value.values_mut() {
            class.arguments.sort_unstable();
        }
        Self { by_value }
    }

    /// Whether a value of the class may alias memory that the loop must not carry. `own`: the argument that it may alias,
    /// if that is in the class; `any_argument`: it may alias any argument of the loop.
    fn escapes(&self, class: ValueId, span: Span, own: Option<ValueId>, any_argument: bool) -> bool {
        let Some(class) = self.by_value.get(&class) else { return false };
        if class.read_only.is_some_and(|(value, others)| others || Some(value) != own) {
            return true;
        }
        let (first, last) = (span.first + 1, span.last + 1);
        if class.results.is_some_and(|(low, high)| low < first || high > last) {
            return true;
        }
        let below = |limit: u32| class.arguments.partition_point(|key| *key < limit);
        let (before, of_loop, inside) = (below(first), below(first + 1), below(last + 1));
        let others = (of_loop - before) - usize::from(own.is_some()).min(of_loop - before);
        before > 0 || inside < class.arguments.len() || (!any_argument && others > 0)
    }
}
