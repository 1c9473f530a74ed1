//! Facts about a buffer and all its aliases.

use monopour_ir::interfaces::{EffectKind, memory_effects};
use monopour_ir::ops;
use monopour_ir::{Op, Use, Value};

use super::aliases::{Aliases, Sums, is_escape};
use super::places::Places;
use crate::collect::hands_over;

/// The ops that may free a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Frees<'c> {
    /// None.
    Never,
    /// One op alone.
    By(Op<'c>),
    /// Several.
    Several,
}

impl Frees<'_> {
    fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Never, known) | (known, Self::Never) => known,
            (a, b) if a == b => a,
            _ => Self::Several,
        }
    }
}

/// Facts about a value and all its aliases.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach<'c> {
    /// The common dominator of the definitions.
    pub dominator: Option<usize>,
    /// The smallest number of a definition ([`Places::definition`]).
    pub first_definition: usize,
    /// The largest number of a user that does not free it.
    pub last_use: Option<usize>,
    /// The ops that free it.
    pub frees: Frees<'c>,
    /// Whether an alias is returned, or stored in memory.
    pub escapes: bool,
}

/// Computes [`Reach`] for all memrefs of a function.
pub(crate) fn reaches<'c, 'a>(aliases: &'a Aliases<'c>, places: &Places<'c>) -> Sums<'c, 'a, Reach<'c>> {
    aliases.sum(
        |value| own(places, value),
        |all, more| {
            all.dominator = match (all.dominator, more.dominator) {
                (Some(a), Some(b)) => Some(places.common_dominator(a, b)),
                (a, b) => a.or(b),
            };
            all.first_definition = all.first_definition.min(more.first_definition);
            all.last_use = all.last_use.max(more.last_use);
            all.frees = all.frees.join(more.frees);
            all.escapes |= more.escapes;
        },
    )
}

fn own<'c>(places: &Places<'c>, value: Value<'c>) -> Reach<'c> {
    let mut reach = Reach {
        dominator: value.ty().is_memref().then(|| places.node_of(value)),
        first_definition: places.definition(value),
        last_use: None,
        frees: Frees::Never,
        escapes: false,
    };
    for used in value.uses() {
        if is_free(used, value) {
            reach.frees = reach.frees.join(Frees::By(used.op));
        } else {
            reach.last_use = reach.last_use.max(Some(places.number(used.op)));
            reach.escapes |= is_escape(used);
        }
    }
    reach
}

/// Whether the use may free the memory.
pub(crate) fn is_free(used: Use, value: Value) -> bool {
    if used.op.is(ops::memref::DEALLOC) || hands_over(used.op, used.index) {
        return true;
    }
    let effects = memory_effects(used.op).unwrap_or_default();
    effects.iter().any(|e| e.kind == EffectKind::Free && e.value == Some(value))
}

/// The ops of a function that allocate a buffer on the heap, with the buffer, in order.
pub(crate) fn allocations<'c>(function: Op<'c>) -> Vec<(Op<'c>, Value<'c>)> {
    let mut found = Vec::new();
    function.walk(monopour_ir::WalkOrder::Pre, |op| {
        if op.is(ops::memref::ALLOCA) || op.num_results() == 0 {
            return;
        }
        let effects = memory_effects(op).unwrap_or_default();
        let made = |r: &Value<'c>| {
            r.ty().is_memref() && effects.iter().any(|e| e.kind == EffectKind::Allocate && e.value == Some(*r))
        };
        let buffers: Vec<Value> = op.results().into_iter().filter(made).collect();
        if let [buffer] = buffers[..] {
            found.push((op, buffer));
        }
    });
    found
}
