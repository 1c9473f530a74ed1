//! An order of the dispatches that takes less memory than the one of the list.
//!
//! ```text
//! p = f(x); q = f(y); r = g(p); s = g(q)      p and q are alive together
//! p = f(x); r = g(p); q = f(y); s = g(q)      one at a time
//! ```
//! Candidates are a walk depth first from the last dispatches, operands of more bytes first, and a list schedule, which
//! takes next the dispatch after which the fewest bytes are alive; for at most [`MOST_EXACT`] dispatches also an order
//! of the least peak. One is taken if it is better than that of the list by one of two measures, and not worse by the
//! other: the peak if each result is made in an operand that dies, where one does, and the peak if none is. What is
//! decided in place later is in between.

use super::{Graph, Origin, Uses, at_least, peaks};
use crate::index::{IndexVec, ValueId};

/// Most dispatches of which every order is looked at: 2^10 sets, each with its successors, in less than a millisecond.
const MOST_EXACT: usize = 10;

/// Most steps that a list schedule looks at, all together: beyond it, it is no candidate.
const MOST_LOOKS: usize = 4_000_000;

/// The steps in an order of less memory; `None` if none is known. `after`: by step, others that come before it besides
/// those that make what it reads. Both are so in the order of the list.
pub fn order_for_memory(graph: &Graph, after: &[Vec<usize>]) -> Option<Vec<usize>> {
    let needs = Needs::of(graph, after);
    let in_list: Vec<usize> = (0..graph.steps.len()).collect();
    let now = measure(graph, &in_list);
    let exact = if graph.steps.len() <= MOST_EXACT { needs.exact() } else { None };
    let candidates = [exact, Some(needs.depth_first()), needs.list()];
    let measured = candidates.into_iter().flatten().map(|order| (measure(graph, &order), order));
    let better =
        measured.filter(|((shared, apart), _)| *shared <= now.0 && *apart <= now.1 && (*shared, *apart) != now);
    better.min_by_key(|((shared, apart), _)| shared.saturating_add(*apart)).map(|(_, order)| order)
}

/// The peak with results in operands that die, and without.
fn measure(graph: &Graph, order: &[usize]) -> (u64, u64) {
    let steps = order.iter().map(|step| graph.steps[*step].clone()).collect();
    let graph = Graph { values: graph.values.clone(), steps };
    let most = |all: Vec<u64>| all.into_iter().max().unwrap_or(0);
    let apart = |dying: &[u64], made: &[u64]| dying.iter().chain(made).fold(0, |sum: u64, b| sum.saturating_add(*b));
    (most(peaks(&graph, at_least)), most(peaks(&graph, apart)))
}

struct Needs<'a> {
    graph: &'a Graph,
    uses: Uses,
    /// By step: the steps before it.
    before: Vec<Vec<usize>>,
}

impl<'a> Needs<'a> {
    fn of(graph: &'a Graph, after: &[Vec<usize>]) -> Self {
        let uses = Uses::of(graph);
        let before = |step: usize| {
            let makers = graph.steps[step].operands().filter_map(|value| uses.maker[value]);
            let mut before: Vec<usize> = makers.chain(after[step].iter().copied()).filter(|s| *s != step).collect();
            before.sort_unstable();
            before.dedup();
            before
        };
        let before = (0..graph.steps.len()).map(before).collect();
        Self { graph, uses, before }
    }

    /// Bytes that a step makes.
    fn made(&self, step: usize) -> u64 {
        self.graph.steps[step].makes.iter().fold(0, |sum, value| sum.saturating_add(self.graph.values[*value].bytes))
    }

    /// Each step behind what it needs, from the last step on.
    fn depth_first(&self) -> Vec<usize> {
        let count = self.graph.steps.len();
        let (mut order, mut is_done) = (Vec::with_capacity(count), vec![false; count]);
        let mut is_needed = vec![false; count];
        self.before.iter().flatten().for_each(|step| is_needed[*step] = true);
        let roots = (0..count).filter(|step| !is_needed[*step]);
        for root in roots {
            let mut stack = vec![(root, false)];
            while let Some((step, is_ready)) = stack.pop() {
                if is_done[step] {
                    continue;
                }
                if is_ready {
                    is_done[step] = true;
                    order.push(step);
                    continue;
                }
                stack.push((step, true));
                // The last on the stack comes first: what is larger, and of equals what is earlier.
                let mut needed: Vec<usize> = self.before[step].iter().copied().filter(|s| !is_done[*s]).collect();
                needed.sort_by_key(|step| (self.made(*step), std::cmp::Reverse(*step)));
                stack.extend(needed.into_iter().map(|step| (step, false)));
            }
        }
        order
    }

    /// Of the steps that can be next the one after which the fewest bytes more are alive; `None` where that takes too
    /// long.
    fn list(&self) -> Option<Vec<usize>> {
        let count = self.graph.steps.len();
        let mut left: Vec<usize> = self.before.iter().map(Vec::len).collect();
        let mut followers = vec![vec![]; count];
        for (step, before) in self.before.iter().enumerate() {
            before.iter().for_each(|other| followers[*other].push(step));
        }
        let mut readers: IndexVec<ValueId, usize> = self.uses.readers.iter().map(Vec::len).collect();
        let mut ready: Vec<usize> = (0..count).filter(|step| left[*step] == 0).collect();
        let (mut order, mut looks) = (Vec::with_capacity(count), 0);
        while !ready.is_empty() {
            looks += ready.len();
            if looks > MOST_LOOKS {
                return None;
            }
            let growth = |step: usize| i128::from(self.made(step)) - i128::from(self.freed(step, &readers));
            let at = (0..ready.len()).min_by_key(|at| (growth(ready[*at]), ready[*at]))?;
            let step = ready.swap_remove(at);
            order.push(step);
            self.each_operand(step, |value| readers[value] -= 1);
            for &next in &followers[step] {
                left[next] -= 1;
                if left[next] == 0 {
                    ready.push(next);
                }
            }
        }
        (order.len() == count).then_some(order)
    }

    /// Calls `each` once for each value that a step reads or updates.
    fn each_operand(&self, step: usize, mut each: impl FnMut(ValueId)) {
        let mut operands: Vec<ValueId> = self.graph.steps[step].operands().collect();
        operands.sort_unstable();
        operands.dedup();
        operands.into_iter().for_each(&mut each);
    }

    /// Bytes of values that no one reads behind the step. `readers`: how many steps of each value are left.
    fn freed(&self, step: usize, readers: &IndexVec<ValueId, usize>) -> u64 {
        let mut freed = 0_u64;
        self.each_operand(step, |id| {
            let value = self.graph.values[id];
            let is_ours = value.origin != Origin::ReadOnly && !value.is_result;
            if is_ours && readers[id] == 1 {
                freed = freed.saturating_add(value.bytes);
            }
        });
        freed
    }

    /// An order of the least peak, with results in operands that die.
    fn exact(&self) -> Option<Vec<usize>> {
        let count = self.graph.steps.len();
        let needs: Vec<u32> = self.before.iter().map(|b| b.iter().fold(0, |set, step| set | 1 << step)).collect();
        // By set of steps that are done: the least peak, and the last step.
        let mut least = vec![(u64::MAX, usize::MAX); 1 << count];
        least[0].0 = 0;
        for set in 0..1_u32 << count {
            let so_far = least[set as usize].0;
            if so_far == u64::MAX {
                continue;
            }
            let done: Vec<bool> = (0..count).map(|step| set >> step & 1 == 1).collect();
            for step in (0..count).filter(|step| set >> step & 1 == 0 && needs[*step] & !set == 0) {
                let peak = so_far.max(self.uses.bytes_at(self.graph, &done, step));
                let next = &mut least[(set | 1 << step) as usize];
                if peak < next.0 {
                    *next = (peak, step);
                }
            }
        }
        let mut set = (1_usize << count) - 1;
        let mut order = Vec::with_capacity(count);
        while set != 0 {
            let (peak, step) = least[set];
            if peak == u64::MAX {
                return None;
            }
            order.push(step);
            set &= !(1 << step);
        }
        order.reverse();
        Some(order)
    }
}
