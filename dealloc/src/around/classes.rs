//! Alias classes of memrefs, which only merge, and the ops that touch each, by number.
//!
//! Memory is of three kinds. *Private* memory is accessed through the values of its class alone. *Arguments* are memory of the caller;
//! each argument is a buffer of its own unless `arguments_may_alias`. All other memory is *foreign*: globals, results of calls,
//! values loaded from memory. Foreign memory may be an argument's. A call may touch both.

use monopour_ir::ops;
use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Unbounded};

use monopour_ir::control_flow::Traits;
use monopour_ir::interfaces::{EffectKind, has_recursive_effects, is_pure, memory_effects};
use monopour_ir::{HandleMap, Op, Value};

use super::aliases::{Aliases, MEASURES, is_escape};
use super::places::Places;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Private,
    Argument,
    Foreign,
}

/// The classes of one function.
pub(crate) struct Classes<'c> {
    ids: HandleMap<Value<'c>, usize>,
    parent: Vec<usize>,
    kind: Vec<Kind>,
    /// Numbers of the ops that touch memory of the class, by root.
    touches: Vec<BTreeSet<usize>>,
    /// Those of all foreign memory, and of foreign memory and arguments.
    foreign: BTreeSet<usize>,
    outside: BTreeSet<usize>,
    arguments_may_alias: bool,
}

impl<'c> Classes<'c> {
    /// Merges the aliases of [`Aliases`].
    pub fn new(function: Op<'c>, aliases: &Aliases<'c>, places: &Places<'c>, arguments_may_alias: bool) -> Self {
        let values = aliases.values();
        let count = values.len();
        let mut this = Self {
            ids: values.iter().enumerate().map(|(i, v)| (*v, i)).collect(),
            parent: (0..count).collect(),
            kind: vec![Kind::Private; count],
            touches: vec![BTreeSet::new(); count],
            foreign: BTreeSet::new(),
            outside: BTreeSet::new(),
            arguments_may_alias,
        };
        let mut is_target = vec![false; count];
        for (_, to) in aliases.edges() {
            is_target[to] = true;
        }
        for (id, value) in values.iter().enumerate() {
            let escapes = value.uses().into_iter().any(|used| is_escape(used) && !used.op.is(ops::func::RETURN));
            this.kind[id] = match kind_of(function, *value) {
                _ if escapes => Kind::Foreign,
                // Flows give its sources.
                Kind::Foreign if is_target[id] && !value.defining_op().is_some_and(is_unknown) => Kind::Private,
                kind => kind,
            };
            for used in value.uses().into_iter().filter(|used| is_touch(used.op)) {
                this.touches[id].insert(places.number(used.op));
            }
        }
        for (from, to) in aliases.edges() {
            this.join(from, to);
        }
        for id in 0..count {
            // Roots hold the numbers of the whole class.
            let kind = this.kind[id];
            if kind != Kind::Private {
                let touched: Vec<usize> = this.touches[id].iter().copied().collect();
                this.outside.extend(&touched);
                this.foreign.extend(touched.iter().filter(|_| kind == Kind::Foreign));
            }
        }
        function.walk(monopour_ir::WalkOrder::Pre, |op| {
            if is_unknown(op) && op != function {
                this.foreign.insert(places.number(op));
                this.outside.insert(places.number(op));
            }
        });
        this
    }

    fn root(&mut self, mut id: usize) -> usize {
        while self.parent[id] != id {
            self.parent[id] = self.parent[self.parent[id]];
            id = self.parent[id];
        }
        id
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return;
        }
        // The smaller set moves: each number moves a logarithmic number of times.
        let (into, from) = if self.touches[a].len() < self.touches[b].len() { (b, a) } else { (a, b) };
        let moved = std::mem::take(&mut self.touches[from]);
        self.touches[into].extend(moved);
        self.parent[from] = into;
        self.kind[into] = self.kind[into].max(self.kind[from]);
    }

    /// Whether two memrefs may alias within the function.
    pub fn are_joined(&mut self, a: Value<'c>, b: Value<'c>) -> bool {
        match (self.ids.get(&a).copied(), self.ids.get(&b).copied()) {
            (Some(a), Some(b)) => self.root(a) == self.root(b),
            _ => true,
        }
    }

    /// Merges two memrefs that became one.
    pub fn unite(&mut self, a: Value<'c>, b: Value<'c>) {
        if let (Some(a), Some(b)) = (self.ids.get(&a).copied(), self.ids.get(&b).copied()) {
            self.join(a, b);
        }
    }

    /// Forgets an erased op.
    pub fn forget(&mut self, number: usize, values: &[Value<'c>]) {
        for value in values {
            if let Some(id) = self.ids.get(value).copied() {
                let root = self.root(id);
                self.touches[root].remove(&number);
            }
        }
        self.foreign.remove(&number);
        self.outside.remove(&number);
    }

    /// The numbers of all ops that may touch the memory; `None` if there are more than `limit`.
    pub fn touches(&mut self, value: Value<'c>, limit: usize) -> Option<Vec<usize>> {
        let root = self.ids.get(&value).copied().map(|id| self.root(id))?;
        let lists = [Some(&self.touches[root]), self.beside(root)];
        let count: usize = lists.iter().flatten().map(|set| set.len()).sum();
        (count <= limit).then(|| lists.into_iter().flatten().flatten().copied().collect())
    }

    /// Ops that may touch memory of this class through other classes.
    fn beside(&self, root: usize) -> Option<&BTreeSet<usize>> {
        match self.kind[root] {
            Kind::Private => None,
            Kind::Argument if !self.arguments_may_alias => Some(&self.foreign),
            Kind::Argument | Kind::Foreign => Some(&self.outside),
        }
    }

    /// Whether an op with a number between these two may touch the memory; without an end, any later op.
    pub fn is_touched(&mut self, value: Value<'c>, after: usize, before: Option<usize>) -> bool {
        let Some(id) = self.ids.get(&value).copied() else { return true };
        let root = self.root(id);
        let end = before.map_or(Unbounded, Excluded);
        let any = |set: &BTreeSet<usize>| set.range((Excluded(after), end)).next().is_some();
        any(&self.touches[root]) || self.beside(root).is_some_and(any)
    }
}

/// The kind of memory of a value without sources in the function.
fn kind_of(function: Op, value: Value) -> Kind {
    if let Some((block, _)) = value.as_block_arg() {
        return if Some(block) == function.body() { Kind::Argument } else { Kind::Foreign };
    }
    let made = value.defining_op().and_then(memory_effects).unwrap_or_default();
    let is_fresh = made.iter().any(|e| e.kind == EffectKind::Allocate && e.value == Some(value));
    if is_fresh { Kind::Private } else { Kind::Foreign }
}

/// Whether the op may access memory.
fn is_touch(op: Op) -> bool {
    !MEASURES.contains(&op.name()) && !is_pure(op)
}

/// Whether the op may touch memory other than its operands'.
fn is_unknown(op: Op) -> bool {
    if Traits::of(op).is_call() {
        return true;
    }
    match memory_effects(op) {
        Some(effects) => effects.iter().any(|e| e.value.is_none() && !op.is(ops::memref::ALLOCA_SCOPE)),
        None => !has_recursive_effects(op) && !op.is_terminator(),
    }
}
