//! Indicators beside memrefs forwarded to blocks, regions, results, and callers.

use monopour_analysis::index::{Id, OpId};
use monopour_analysis::lifetimes::{Action, Kind, Place, Set};
use monopour_analysis::ownership::Ownership;
use monopour_ir::control_flow::successor_operands;
use monopour_ir::ops;
use monopour_ir::{Attr, Diagnostic, Diagnostics, InsertionPoint, Op, OpSpec, Type, Value};

use super::Insert;
use crate::frees::{copy_of, size_text};
use crate::indicators::{If, if_owned};
use crate::lifetimes::compare;

impl<'c> Insert<'c, '_> {
    /// Recreates an operation with regions, or a call, with an `i1` for each memref that needs one.
    pub(super) fn extend(&mut self, id: OpId) -> Result<(), Diagnostics> {
        let op = self.op_of(id);
        if op.is(ops::func::CALL) {
            return self.extend_call(id, op);
        }
        let regions = self.collected.regions_of.get(&id).cloned().unwrap_or_default();
        let results = self.result_slots.get(&id).cloned().unwrap_or_default();
        let inner: Vec<Vec<usize>> = regions.iter().map(|r| self.slots.get(r).cloned().unwrap_or_default()).collect();
        if results.is_empty() && inner.iter().all(Vec::is_empty) {
            return Ok(());
        }
        // The memrefs that it forwards into its regions on entry.
        let entry = self.flow(id);
        let passed = self.lifetimes.passed.get(&id).cloned().unwrap_or_default();
        let mut operands = op.operands();
        self.rw.set_point(InsertionPoint::Before(op));
        if let Some(flow) = entry.filter(|flow| !flow.sources.is_empty()) {
            let slots = flow.targets.iter().find_map(|(set, _)| match set {
                Set::Region(region) => self.slots.get(region).cloned(),
                _ => None,
            });
            for slot in slots.unwrap_or_default() {
                operands.push(self.indicator(op.location(), passed.get(slot).copied().unwrap_or(Ownership::NotOwned))?);
            }
        }
        let new = self.anew(op, &operands, results.len())?;
        let memrefs: Vec<Value> = op_memrefs(&new.results());
        let count = new.num_results() - results.len();
        for (extra, slot) in results.iter().enumerate() {
            self.is_beside(memrefs[*slot], new.result(count + extra));
        }
        for (region, slots) in new.regions().into_iter().zip(inner) {
            let Some(block) = region.entry() else { continue };
            let args = op_memrefs(&block.args());
            for slot in slots {
                let bit = compare::bit(&self.rw);
                let indicator = self.rw.add_block_arg(block, bit, new.location());
                self.is_beside(args[slot], indicator);
            }
        }
        self.collected.ops[id.index()] = new;
        Ok(())
    }

    fn extend_call(&mut self, id: OpId, op: Op<'c>) -> Result<(), Diagnostics> {
        let given =
            |v: &Value<'c>| self.collected.root(*v).filter(|root| self.collected.facts.kind(*root) == Kind::Given);
        let positions: Vec<usize> = op_memrefs(&op.results())
            .iter()
            .enumerate()
            .filter(|(_, v)| given(v).is_some())
            .map(|(slot, _)| slot)
            .collect();
        if positions.is_empty() {
            return Ok(());
        }
        self.rw.set_point(InsertionPoint::Before(op));
        let new = self.anew(op, &op.operands(), positions.len())?;
        let (memrefs, count) = (op_memrefs(&new.results()), new.num_results() - positions.len());
        for (extra, slot) in positions.into_iter().enumerate() {
            self.is_beside(memrefs[slot], new.result(count + extra));
        }
        self.collected.ops[id.index()] = new;
        Ok(())
    }

    /// Recreates an operation with other operands and additional `i1` results.
    fn anew(&mut self, op: Op<'c>, operands: &[Value<'c>], more: usize) -> Result<Op<'c>, Diagnostics> {
        let mut results: Vec<Type> = op.results().iter().map(|r| r.ty()).collect();
        results.extend(std::iter::repeat_n(compare::bit(&self.rw), more));
        let new = self.rw.recreate_extended(op, operands, &results)?;
        for (old, new) in op.results().into_iter().zip(new.results()) {
            self.collected.replace(old, new);
        }
        let kept: Vec<Value> = new.results()[..op.num_results()].to_vec();
        self.rw.replace_op(op, &kept);
        Ok(new)
    }

    fn is_beside(&mut self, memref: Value<'c>, indicator: Value<'c>) {
        let version = self.collected.root(memref).and_then(|root| self.lifetimes.beside.get(&root).copied());
        if let Some(version) = version {
            self.indicators[version as usize] = Some(indicator);
        }
    }

    /// The terminator of a block.
    pub(super) fn terminator(&mut self, id: OpId) -> Result<(), Diagnostics> {
        let op = self.op_of(id);
        for index in 0..op.successors().len() {
            self.edge(id, op, index)?;
        }
        let Some(flow) = self.flow(id) else { return Ok(()) };
        let passed =
            self.lifetimes.passed.get(&id).cloned().unwrap_or_else(|| vec![Ownership::NotOwned; flow.sources.len()]);
        self.rw.set_point(InsertionPoint::Before(op));
        if flow.targets.iter().any(|(set, _)| *set == Set::Caller) {
            return self.give(op, &passed);
        }
        let slots = flow.targets.first().and_then(|(set, _)| match set {
            Set::Region(region) => self.slots.get(region).cloned(),
            Set::Results(op) => self.result_slots.get(op).cloned(),
            Set::Caller => None,
        });
        let slots = slots.unwrap_or_default();
        if slots.is_empty() {
            return Ok(());
        }
        let mut operands = op.operands();
        for slot in slots {
            operands.push(self.indicator(op.location(), passed[slot])?);
        }
        self.rw.set_operands(op, &operands);
        Ok(())
    }

    /// The function's results: owned by the caller, statically or by indicators.
    fn give(&mut self, op: Op<'c>, passed: &[Ownership<u32>]) -> Result<(), Diagnostics> {
        let positions: Vec<usize> = (0..op.num_operands()).filter(|i| op.operand(*i).ty().is_memref()).collect();
        if let Some(summary) = self.summary.clone() {
            let mut operands = op.operands();
            for (own, (returned, _)) in passed.iter().zip(&summary.results) {
                if matches!(returned, Ownership::Indicator(_)) {
                    operands.push(self.indicator(op.location(), *own)?);
                }
            }
            self.rw.set_operands(op, &operands);
            return Ok(());
        }
        for (index, own) in positions.into_iter().zip(passed) {
            let value = op.operand(index);
            let new = match own {
                Ownership::Owned => continue,
                Ownership::NotOwned => {
                    self.rw.set_point(InsertionPoint::Before(op));
                    copy_of(&mut self.rw, op, value)?
                }
                Ownership::Indicator(_) => {
                    let point = InsertionPoint::Before(op);
                    self.rw.set_point(point);
                    let indicator = self.indicator(op.location(), *own)?;
                    let copy = |rw: &mut _| Ok(vec![copy_of(rw, op, value)?]);
                    let keep = |_: &mut _| Ok(vec![value]);
                    let results = [value.ty()];
                    let branch = If::new(point, op.location(), indicator, &results);
                    if_owned(&mut self.rw, branch, keep, copy)?.result(0)
                }
            };
            self.rw.set_operand(op, index, new);
            let unless = if *own == Ownership::NotOwned { "" } else { ", unless it turns out to be owned" };
            let message = format!(
                "copied {} for result {index}{unless}: a caller owns its results, and this one is an argument, a constant or another result",
                size_text(value.ty())
            );
            self.stats.remarks.0.push(Diagnostic::remark("D0201", op.location(), message));
            self.stats.remark_bytes.push(value.ty().static_size_bytes());
            self.stats.clones += 1;
        }
        Ok(())
    }

    /// An edge to a block: frees on it, and the additional operands.
    fn edge(&mut self, id: OpId, op: Op<'c>, index: usize) -> Result<(), Diagnostics> {
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        let place = Place::Edge(id, number);
        let Some(edge) = self.edge_at.get(&(id, number)) else { return Ok(()) };
        let edge = self.collected.facts.edges()[*edge].clone();
        let block = self.collected.blocks[edge.to.index()];
        let added = self.lifetimes.block_arguments.get(&edge.to).map_or(0, Vec::len);
        let passed = self
            .lifetimes
            .edge_operands
            .get(&(id, number))
            .cloned()
            .unwrap_or_else(|| vec![Ownership::NotOwned; added]);
        let actions = self.actions.get(&place).map_or(&[][..], |a| a);
        let only_frees = actions.iter().all(is_plain);
        let is_only = self.entering[edge.to.index()] == 1;
        let hands = successor_operands(op, index).map(|range| range.of(op));
        let loc = op.location();
        if op.successors().len() > 1 && !actions.is_empty() && is_only && only_frees && added == 0 {
            let first = block.first_op().expect("invariant: a block ends with a terminator");
            return self.act(place, first);
        }
        let is_single = op.successors().len() == 1;
        if let Some(mut operands) = hands.filter(|_| is_single || actions.is_empty()) {
            self.act(place, op)?;
            if added == 0 {
                return Ok(());
            }
            self.rw.set_point(InsertionPoint::Before(op));
            for own in passed {
                operands.push(self.indicator(loc, own)?);
            }
            self.rw.set_successor_operands(op, index, &operands);
            return Ok(());
        }
        if actions.is_empty() && added == 0 {
            return Ok(());
        }
        // A block for the edge, with the arguments of the successor.
        let types: Vec<_> = block.args()[..self.arguments[edge.to.index()]].iter().map(|a| (a.ty(), loc)).collect();
        let between = self.rw.create_block_before(block, &types);
        self.rw.set_point(InsertionPoint::End(between));
        let branch = self.rw.create(OpSpec::new(ops::cf::BR, loc).operands(&between.args()).successor(between))?;
        self.act(place, branch)?;
        self.rw.set_point(InsertionPoint::Before(branch));
        let mut operands = between.args();
        for own in passed {
            operands.push(self.indicator(loc, own)?);
        }
        self.rw.set_operands(branch, &operands);
        self.rw.set_successor(branch, 0, block);
        self.rw.set_successor(op, index, between);
        Ok(())
    }

    /// The type of a function with indicators among its results.
    pub(super) fn signature(&mut self) {
        let Some(summary) = &self.summary else { return };
        let more = summary.results.iter().filter(|(own, _)| matches!(own, Ownership::Indicator(_))).count();
        let function = self.collected.function;
        if let Some((inputs, mut results)) = function.function_type() {
            results.extend(std::iter::repeat_n(compare::bit(&self.rw), more));
            let ty = Type::function(self.rw.context(), &inputs, &results);
            self.rw.set_attr(function, "function_type", Attr::ty(ty));
            // One dictionary per result, if there are any.
            if let Some(mut attrs) = function.attr("res_attrs").and_then(|a| a.as_array()) {
                attrs.extend(std::iter::repeat_n(Attr::dict(self.rw.context(), &[]), more));
                self.rw.set_attr(function, "res_attrs", Attr::array(self.rw.context(), &attrs));
            }
        }
    }
}

/// A free without comparison.
fn is_plain(action: &Action) -> bool {
    matches!(action, Action::Release { to, .. } if to.is_empty())
}

fn op_memrefs<'c>(values: &[Value<'c>]) -> Vec<Value<'c>> {
    values.iter().copied().filter(|v| v.ty().is_memref()).collect()
}
