//! The optima of small programs: every order, every choice of memory, every copy.

use super::{Graph, Origin};
use crate::index::ValueId;

/// Memory that holds values one after the other.
#[derive(Clone)]
struct Buffer {
    /// The largest of its values: it does not grow.
    bytes: u64,
    holds: ValueId,
    /// The donated input that it is a part of.
    donated: Option<ValueId>,
    /// The steps at which it is taken, by their place in the order.
    first: usize,
    last: usize,
}

/// Calls `each` with every order of the steps in which values are made before they are read.
pub fn orders(graph: &Graph, each: &mut dyn FnMut(&[usize])) {
    fn extend(graph: &Graph, order: &mut Vec<usize>, each: &mut dyn FnMut(&[usize])) {
        if order.len() == graph.steps.len() {
            return each(order);
        }
        for step in 0..graph.steps.len() {
            let is_made = |value: ValueId| {
                let maker = graph.steps.iter().position(|step| step.makes.contains(&value));
                maker.is_none_or(|maker| order.contains(&maker))
            };
            if !order.contains(&step) && graph.steps[step].operands().all(is_made) {
                order.push(step);
                extend(graph, order, each);
                order.pop();
            }
        }
    }
    extend(graph, &mut vec![], each);
}

/// The least peak of an order.
pub fn least_peak(graph: &Graph, order: &[usize]) -> u64 {
    let mut least = u64::MAX;
    place(graph, order, 0, &mut vec![], &mut least);
    least
}

/// The place in the order of the last step that needs a value; the end for a result.
fn last_use(graph: &Graph, order: &[usize], value: ValueId) -> Option<usize> {
    if graph.values[value].is_result {
        return Some(order.len());
    }
    (0..order.len()).rev().find(|at| graph.steps[order[*at]].operands().any(|operand| operand == value))
}

fn place(graph: &Graph, order: &[usize], at: usize, buffers: &mut Vec<Buffer>, least: &mut u64) {
    if at == order.len() {
        *least = (*least).min(peak(graph, order, buffers));
        return;
    }
    let made = &graph.steps[order[at]].makes;
    put(graph, order, (at, made), buffers, least);
}

/// Puts each value that a step makes into memory, in every way.
fn put(graph: &Graph, order: &[usize], (at, made): (usize, &[ValueId]), buffers: &mut Vec<Buffer>, least: &mut u64) {
    let Some((value, rest)) = made.split_first() else { return place(graph, order, at + 1, buffers, least) };
    let (value, bytes) = (*value, graph.values[*value].bytes);
    let last = last_use(graph, order, value).map_or(at, |last| last.max(at));
    // In the memory of an operand that dies here, and that no other result has taken.
    let step = &graph.steps[order[at]];
    for i in 0..buffers.len() {
        let old = buffers[i].clone();
        let dies = last_use(graph, order, old.holds) == Some(at) && step.operands().any(|operand| operand == old.holds);
        if dies && old.last == at {
            buffers[i] = Buffer { bytes: old.bytes.max(bytes), holds: value, last, ..old.clone() };
            put(graph, order, (at, rest), buffers, least);
            buffers[i] = old;
        }
    }
    // In memory of its own, or in a donated input after its last use.
    let free = |(id, value): (ValueId, &super::Value)| {
        let is_free = value.origin == Origin::Donated && last_use(graph, order, id).is_none_or(|last| last <= at);
        is_free.then_some(Some(id))
    };
    let homes: Vec<Option<ValueId>> = graph.values.iter_enumerated().filter_map(free).chain([None]).collect();
    for donated in homes {
        buffers.push(Buffer { bytes, holds: value, donated, first: at, last });
        put(graph, order, (at, rest), buffers, least);
        buffers.pop();
    }
}

/// The most bytes outside of donated inputs; the most there are if one does not hold what is put into it.
fn peak(graph: &Graph, order: &[usize], buffers: &[Buffer]) -> u64 {
    let sum = |at: usize, home: Option<ValueId>| -> u64 {
        let alive = buffers.iter().filter(|b| b.first <= at && at <= b.last && b.donated == home);
        alive.map(|b| b.bytes).sum()
    };
    for at in 0..order.len() {
        let overflows = |(id, value): (ValueId, &super::Value)| sum(at, Some(id)) > value.bytes;
        if graph.values.iter_enumerated().any(overflows) {
            return u64::MAX;
        }
    }
    (0..order.len()).map(|at| sum(at, None)).max().unwrap_or(0)
}

/// The fewest bytes of copies over all orders.
pub fn fewest_bytes(graph: &Graph) -> u64 {
    let mut fewest = u64::MAX;
    orders(graph, &mut |order| fewest = fewest.min(cheapest(graph, order)));
    fewest
}

/// The fewest bytes of copies in an order. An update is in place, after a copy of what is read later of the old value; or it
/// copies what it keeps.
fn cheapest(graph: &Graph, order: &[usize]) -> u64 {
    let mut bytes = 0;
    for (at, step) in order.iter().enumerate() {
        for update in &graph.steps[*step].updates {
            let value = graph.values[update.old];
            let read = order[at + 1..].iter().flat_map(|later| {
                let later = &graph.steps[*later];
                let reads = later.reads.iter().filter(|read| read.value == update.old).map(|read| read.bytes);
                reads.chain(later.updates.iter().filter(|u| u.old == update.old).map(|u| u.kept_bytes))
            });
            let read = read.chain(value.is_result.then_some(value.bytes)).max().unwrap_or(0);
            let in_place = if value.origin == Origin::ReadOnly { u64::MAX } else { read };
            bytes += in_place.min(update.kept_bytes);
        }
    }
    bytes
}
