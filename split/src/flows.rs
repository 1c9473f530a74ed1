//! Which buffers a memref of the host function may be: through views, selections, loops and branches.

use crate::plan::VIEW_LIKE;
use monopour_ir::control_flow::region_flows;
use monopour_ir::ops;
use monopour_ir::{Op, Value, WalkOrder};
use std::collections::{HashMap, HashSet};

/// The memrefs of a host function, and where they come from.
pub(crate) struct Flows<'c> {
    /// Allocations, arguments, globals, and results of other ops, in the order of the text.
    pub(crate) roots: Vec<Value<'c>>,
    next: HashMap<Value<'c>, Vec<Value<'c>>>,
    before: HashMap<Value<'c>, Vec<Value<'c>>>,
}

impl<'c> Flows<'c> {
    /// Those of `host`.
    pub(crate) fn of(host: Op<'c>) -> Self {
        let mut flows = Flows { roots: vec![], next: HashMap::new(), before: HashMap::new() };
        let mut values: Vec<Value> = vec![];
        host.walk(WalkOrder::Pre, |op| {
            let forwarded = region_flows(op).unwrap_or_default().into_iter();
            forwarded.for_each(|(from, to)| flows.add(from, to));
            if let [first, ..] = op.operands()[..]
                && VIEW_LIKE.contains(&op.name())
            {
                flows.add(first, op.result(0));
            }
            if op.is(ops::arith::SELECT) {
                [1, 2].into_iter().for_each(|chosen| flows.add(op.operand(chosen), op.result(0)));
            }
            values.extend(op.results());
            values.extend(op.regions().into_iter().flat_map(|region| region.blocks()).flat_map(|block| block.args()));
        });
        let is_root = |value: &Value<'c>| value.ty().is_memref() && !flows.before.contains_key(value);
        flows.roots = values.into_iter().filter(is_root).collect();
        flows
    }

    fn add(&mut self, from: Value<'c>, to: Value<'c>) {
        if to.ty().is_memref() {
            self.next.entry(from).or_default().push(to);
            self.before.entry(to).or_default().push(from);
        }
    }

    /// All memrefs that may be one of these buffers, these included.
    pub(crate) fn reached(&self, from: impl IntoIterator<Item = Value<'c>>) -> HashSet<Value<'c>> {
        closure(&self.next, from)
    }

    /// The buffers that a memref may be, those in an arena by the views of it.
    pub(crate) fn places_of(&self, value: Value<'c>) -> HashSet<Value<'c>> {
        let (mut work, mut found, mut seen) = (vec![value], HashSet::new(), HashSet::from([value]));
        while let Some(value) = work.pop() {
            let before =
                self.before.get(&value).filter(|_| !value.defining_op().is_some_and(|op| op.is(ops::memref::VIEW)));
            match before {
                Some(before) => work.extend(before.iter().copied().filter(|before| seen.insert(*before))),
                None => _ = found.insert(value),
            }
        }
        found
    }

    /// The buffers that a memref may be.
    pub(crate) fn roots_of(&self, value: Value<'c>) -> Vec<Value<'c>> {
        closure(&self.before, [value]).into_iter().filter(|value| !self.before.contains_key(value)).collect()
    }
}

fn closure<'c>(
    steps: &HashMap<Value<'c>, Vec<Value<'c>>>,
    from: impl IntoIterator<Item = Value<'c>>,
) -> HashSet<Value<'c>> {
    let mut work: Vec<Value> = from.into_iter().collect();
    let mut found: HashSet<Value> = work.iter().copied().collect();
    while let Some(value) = work.pop() {
        work.extend(steps.get(&value).into_iter().flatten().copied().filter(|next| found.insert(*next)));
    }
    found
}
