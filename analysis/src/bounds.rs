//! Lower bounds on the memory and the copies of a program, whatever is decided in place.
//!
//! ```text
//! %a = f(%x); %b = g(%a); %c = h(%a, %b); return %c        all of 100 bytes; %x not donated
//! step  alive before, after    a result in a dying operand    at least
//! f     -        a             -                              100
//! g     a        a b           -                              200
//! h     a b      c             c in a (or in b)               200
//! ```
//! A program is a list of dispatches on values, each value written once: an update of a value makes a new one.
//! Proofs: `docs/lower-bounds.md`; its model is that of [`Graph`].
//! [`peak_in_order`] is for the order of the list, [`peak_in_any_order`] for all orders that the values allow, and
//! [`copies`] for the copies of updates. `exhaustive` has the optima of small programs, for tests.

#[cfg(test)]
mod exhaustive;
mod orders;

pub use orders::order_for_memory;

use crate::index::{IndexVec, ValueId};

/// Most dispatches for which every order is looked at: 2^14 sets, each with its successors, some milliseconds.
pub const MOST_ORDERED: usize = 14;
/// The memory that a value starts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A dispatch writes it.
    Made,
    /// An input that may be overwritten.
    Donated,
    /// An input or a constant that may not.
    ReadOnly,
}

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// Bytes that are read of it later.
    pub bytes: u64,
    /// Where it comes from.
    pub origin: Origin,
    /// Whether the program returns it.
    pub is_result: bool,
}

/// A value that a dispatch writes as an update of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    /// The value before.
    pub old: ValueId,
    /// The value after.
    pub new: ValueId,
    /// Bytes of the old value that the new one keeps.
    pub kept_bytes: u64,
}

/// A value that a dispatch reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The value.
    pub value: ValueId,
    /// Bytes of it that are read, and that each update of it overwrites in part; 0 where that is not certain.
    pub bytes: u64,
}

/// A dispatch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The values that it reads, those that it updates not included.
    pub reads: Vec<Read>,
    /// The values that it makes.
    pub makes: Vec<ValueId>,
    /// Those of them that are updates.
    pub updates: Vec<Update>,
}

impl Step {
    /// The values that it needs.
    fn operands(&self) -> impl Iterator<Item = ValueId> + '_ {
        self.reads.iter().map(|read| read.value).chain(self.updates.iter().map(|update| update.old))
    }
}

/// A program: each value is made by at most one step, before all that read it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The values.
    pub values: IndexVec<ValueId, Value>,
    /// The dispatches, in the order run.
    pub steps: Vec<Step>,
}

/// Copies that no decisions avoid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyBound {
    /// Updates that cost a copy.
    pub copies: u64,
    /// Bytes that they copy.
    pub bytes: u64,
}

/// By step: the least bytes of memory beyond inputs and constants while it runs, in the order of the list.
///
/// Memory of donated inputs is free from their last use on.
pub fn peak_in_order(graph: &Graph) -> Vec<u64> {
    peaks(graph, at_least)
}

/// As [`peak_in_order`]; `together`: the bytes of operands that die and of results at a step.
fn peaks(graph: &Graph, together: impl Fn(&[u64], &[u64]) -> u64) -> Vec<u64> {
    let uses = Uses::of(graph);
    let count = graph.steps.len();
    // By step: bytes of made values that stay, those of donated inputs that are free, the values that die.
    let (mut begin, mut end, mut freed) = (vec![0_u64; count + 1], vec![0_u64; count + 1], vec![0_u64; count + 1]);
    let mut dying: Vec<Vec<u64>> = vec![vec![]; count];
    for (id, value) in graph.values.iter_enumerated() {
        let last = uses.readers[id].last().copied();
        match (value.origin, uses.maker[id], last) {
            (Origin::Donated, _, last) if !value.is_result => add(&mut freed[last.unwrap_or(0)], value.bytes),
            (Origin::Made, Some(maker), last) if value.is_result || last.is_some() => {
                // Between the step that makes it and the one where it dies.
                add(&mut begin[maker + 1], value.bytes);
                if !value.is_result {
                    let last = last.unwrap_or(maker);
                    add(&mut end[last.max(maker + 1)], value.bytes);
                    dying[last].push(value.bytes);
                }
            }
            _ => {}
        }
    }
    let (mut stays, mut free) = (0_u64, 0_u64);
    let at = |step: usize| {
        stays = stays.saturating_add(begin[step]).saturating_sub(end[step]);
        add(&mut free, freed[step]);
        let made = bytes_of(graph, &graph.steps[step].makes);
        stays.saturating_add(together(&dying[step], &made)).saturating_sub(free)
    };
    (0..count).map(at).collect()
}

fn add(to: &mut u64, bytes: u64) {
    *to = to.saturating_add(bytes);
}

fn bytes_of(graph: &Graph, values: &[ValueId]) -> Vec<u64> {
    values.iter().map(|value| graph.values[*value].bytes).collect()
}

/// The least peak over all orders of the dispatches, and whether it is that of an order: of at most [`MOST_ORDERED`] dispatches
/// it is, else it is what the largest dispatch takes by itself.
pub fn peak_in_any_order(graph: &Graph) -> (u64, bool) {
    let uses = Uses::of(graph);
    let count = graph.steps.len();
    if count > MOST_ORDERED {
        return ((0..count).map(|step| uses.bytes_alone(graph, step)).max().unwrap_or(0), false);
    }
    let needs: Vec<u32> = (0..count).map(|step| uses.needs(graph, step)).collect();
    // The least peak on any way to each set of dispatches that are done.
    let mut least = vec![u64::MAX; 1 << count];
    least[0] = 0;
    for set in 0..1_u32 << count {
        let so_far = least[set as usize];
        if so_far == u64::MAX {
            continue;
        }
        let done: Vec<bool> = (0..count).map(|step| set >> step & 1 == 1).collect();
        for step in (0..count).filter(|step| set >> step & 1 == 0 && needs[*step] & !set == 0) {
            let next = &mut least[(set | 1 << step) as usize];
            *next = (*next).min(so_far.max(uses.bytes_at(graph, &done, step)));
        }
    }
    (least[(1 << count) - 1], true)
}

/// The copies of updates. Of the updates of a value one is free, if the value may be overwritten and no reader of it depends on
/// that update; each other one copies what it keeps, or what is read later.
pub fn copies(graph: &Graph) -> CopyBound {
    let uses = Uses::of(graph);
    let mut updates: IndexVec<ValueId, Vec<(usize, Update)>> = graph.values.iter().map(|_| vec![]).collect();
    let mut reads: IndexVec<ValueId, Vec<(usize, u64)>> = graph.values.iter().map(|_| vec![]).collect();
    for (number, step) in graph.steps.iter().enumerate() {
        step.updates.iter().for_each(|update| updates[update.old].push((number, *update)));
        let kept = step.updates.iter().map(|update| Read { value: update.old, bytes: update.kept_bytes });
        let all = step.reads.iter().copied().chain(kept).filter(|read| read.bytes > 0);
        all.for_each(|read| reads[read.value].push((number, read.bytes)));
    }
    let mut bound = CopyBound::default();
    for (old, of) in updates.iter_enumerated().filter(|(_, of)| !of.is_empty()) {
        let value = graph.values[old];
        let others = |step: usize| reads[old].iter().filter(move |(reader, _)| *reader != step);
        let cost = |(step, update): &(usize, Update)| {
            let read = others(*step).map(|(_, bytes)| *bytes).chain(value.is_result.then_some(value.bytes)).min();
            let is_fixed = value.origin == Origin::ReadOnly;
            if is_fixed { update.kept_bytes } else { read.map_or(0, |bytes| bytes.min(update.kept_bytes)) }
        };
        let is_free = |(step, update): &(usize, Update)| {
            value.origin != Origin::ReadOnly
                && !value.is_result
                && !others(*step).any(|(reader, _)| uses.depends(graph, *reader, update.new))
        };
        // The dearest of those that may be free.
        let free = (0..of.len()).filter(|at| is_free(&of[*at])).max_by_key(|at| cost(&of[*at]));
        let paid = (0..of.len()).filter(|at| Some(*at) != free).map(|at| cost(&of[at])).filter(|cost| *cost > 0);
        for cost in paid {
            bound.copies += 1;
            add(&mut bound.bytes, cost);
        }
    }
    bound
}

/// Who makes and who reads each value.
struct Uses {
    maker: IndexVec<ValueId, Option<usize>>,
    readers: IndexVec<ValueId, Vec<usize>>,
}

impl Uses {
    fn of(graph: &Graph) -> Uses {
        let mut maker: IndexVec<ValueId, Option<usize>> = graph.values.iter().map(|_| None).collect();
        let mut readers: IndexVec<ValueId, Vec<usize>> = graph.values.iter().map(|_| vec![]).collect();
        for (number, step) in graph.steps.iter().enumerate() {
            step.makes.iter().for_each(|value| maker[*value] = Some(number));
            for value in step.operands() {
                if readers[value].last() != Some(&number) {
                    readers[value].push(number);
                }
            }
        }
        Uses { maker, readers }
    }

    /// The steps that make what a step needs.
    fn needs(&self, graph: &Graph, step: usize) -> u32 {
        let makers = graph.steps[step].operands().filter_map(|value| self.maker[value]);
        makers.filter(|maker| *maker != step).fold(0, |set, maker| set | 1 << maker)
    }

    /// Whether a step needs a value, or what is made of it.
    fn depends(&self, graph: &Graph, step: usize, value: ValueId) -> bool {
        let mut work = vec![value];
        let mut seen: IndexVec<ValueId, bool> = graph.values.iter().map(|_| false).collect();
        while let Some(value) = work.pop() {
            if std::mem::replace(&mut seen[value], true) {
                continue;
            }
            for reader in &self.readers[value] {
                if *reader == step {
                    return true;
                }
                work.extend(&graph.steps[*reader].makes);
            }
        }
        false
    }

    /// The least bytes while `step` runs after those that are done.
    fn bytes_at(&self, graph: &Graph, done: &[bool], step: usize) -> u64 {
        let (mut stays, mut dying, mut freed) = (0_u64, vec![], 0_u64);
        for (id, value) in graph.values.iter_enumerated() {
            let unread = self.readers[id].iter().any(|reader| !done[*reader] && *reader != step);
            let is_needed = unread || value.is_result;
            match value.origin {
                Origin::ReadOnly => {}
                Origin::Donated if is_needed => {}
                Origin::Donated => freed = freed.saturating_add(value.bytes),
                Origin::Made => {
                    let is_made = self.maker[id].is_some_and(|maker| done[maker]);
                    if is_made && is_needed {
                        stays = stays.saturating_add(value.bytes);
                    } else if is_made && self.readers[id].contains(&step) {
                        dying.push(value.bytes);
                    }
                }
            }
        }
        let made = bytes_of(graph, &graph.steps[step].makes);
        stays.saturating_add(at_least(&dying, &made)).saturating_sub(freed)
    }

    /// The least bytes of a step whatever is alive besides.
    fn bytes_alone(&self, graph: &Graph, step: usize) -> u64 {
        let mut operands: Vec<ValueId> = graph.steps[step].operands().collect();
        operands.sort_unstable();
        operands.dedup();
        let (mut stays, mut dying) = (0_u64, vec![]);
        for id in operands {
            let value = graph.values[id];
            match value.origin {
                Origin::Made if value.is_result => stays = stays.saturating_add(value.bytes),
                Origin::Made => dying.push(value.bytes),
                Origin::Donated | Origin::ReadOnly => {}
            }
        }
        // A donated input may be free by then.
        let donated = graph.values.iter().filter(|value| value.origin == Origin::Donated);
        let freed = donated.fold(0_u64, |sum, value| sum.saturating_add(value.bytes));
        let made = bytes_of(graph, &graph.steps[step].makes);
        stays.saturating_add(at_least(&dying, &made)).saturating_sub(freed)
    }
}

/// The bytes of operands that die and of results, where a result may have the memory of one operand: their sum less a best
/// matching, in which a pair shares the smaller of the two.
fn at_least(dying: &[u64], made: &[u64]) -> u64 {
    let sum = |of: &[u64]| of.iter().fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
    let (operands, results) = (sum(dying), sum(made));
    // The largest with the largest, and so on: a matching of the most weight, where a pair weighs the smaller of two.
    let sorted = |of: &[u64]| {
        let mut of = of.to_vec();
        of.sort_unstable_by(|a, b| b.cmp(a));
        of
    };
    let shared = sorted(dying).into_iter().zip(sorted(made)).map(|(a, b)| a.min(b));
    operands.saturating_add(results).saturating_sub(shared.fold(0, u64::saturating_add))
}

#[cfg(test)]
mod tests;
