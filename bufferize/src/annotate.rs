//! Write the decisions into the IR as attributes, as `test-analysis-only` shows them.
//!
//! ```text
//! func.func @f(%arg0: tensor<4xf32> {bufferization.access = "read-write"}) -> tensor<4xf32>
//!     attributes {__bbarg_alias_set_attr__ = [[[["%0", "%arg0"]]]]} {
//!   %0 = linalg.fill {__inplace_operands_attr__ = ["none", "true"], __opresult_alias_set_attr__ = [["%0", "%arg0"]]} ..
//!   return {__equivalent_func_args__ = [0], __inplace_operands_attr__ = ["true"]} %0 : tensor<4xf32>
//! ```
//!
//! With `dump-alias-sets`, alias sets in the order in which the analysis joined them: each set is a
//! list, and joining appends the second to the first. The text is quadratic if one set holds many values.
//! With `print-conflicts`, the reasons for out-of-place operands: `C_0[READ: 0]`, `C_0[CONFL-WRITE: 1]` and `C_0[DEF: result 0]`
//! on the operations of the first conflict found, or `W_0[NOT-WRITABLE: bbArg 0]` on the value that is not writable.
//! Source: MLIR's One-Shot Bufferize, LLVM 22.
//! Differs: where several conflicts exclude an operand, upstream names any one of them.

use monopour_ir::ops;
use std::collections::HashSet;

use monopour_analysis::calls::Summary;
use monopour_analysis::facts::Facts;
use monopour_analysis::index::{Id, OperandId, ValueId};
use monopour_analysis::one_shot::{self, InPlaceAnalysis, Reason};
use monopour_ir::{Attr, Context, Op, Rewriter, Value, ValueNames};

use crate::boundary::{Callees, returns_of};
use crate::one_shot::{Unit, heuristic};
use crate::options::Options;
use crate::summaries::equivalent_arguments;

/// Attributes that bufferization reads or writes; none is left on memrefs.
const ATTRIBUTES: &[&str] = &[
    ops::attributes::bufferization::ACCESS,
    ops::attributes::bufferization::WRITABLE,
    ops::attributes::bufferization::BUFFER_LAYOUT,
];

/// Annotates the decisions.
pub(crate) fn run(root: Op, units: &[Unit], callees: &Callees, options: &Options) {
    let cx = root.context();
    let mut annotator = Annotator { cx, rw: Rewriter::new(cx), options, conflicts: 0, read_only: 0 };
    for unit in units.iter().filter(|u| u.is_analysed) {
        // Names from before attributes are added, which do not change them.
        let names = options.dump_alias_sets.then(|| ValueNames::new(unit.root));
        let sets = annotator.visit(unit);
        annotator.operands(unit);
        if let Some(names) = names {
            annotator.alias_sets(unit, &sets, &names);
        }
    }
    let mut hidden = HashSet::new();
    for unit in units.iter().filter(|u| u.root.is(ops::func::FUNC)) {
        if unit.has_boundary {
            annotator.returns(unit);
        } else {
            hidden.insert(unit.root);
        }
    }
    for function in callees.functions() {
        let is_known = !hidden.contains(function);
        if let Some(summary) = callees.summary(&function.symbol_name().unwrap_or_default()).filter(|_| is_known) {
            annotator.access(*function, summary);
        }
    }
}

struct Annotator<'c, 'a> {
    cx: Context<'c>,
    rw: Rewriter<'c>,
    options: &'a Options,
    conflicts: u64,
    read_only: u64,
}

impl<'c> Annotator<'c, '_> {
    fn operands(&mut self, unit: &Unit<'c>) {
        for op in unit.collected.ops.iter().filter(|op| op.operands().iter().any(|v| v.ty().is_tensor())) {
            let word = |i: usize| match unit.collected.operand_ids.get(&(*op, i)) {
                None => "none",
                Some(id) if unit.decisions.is_in_place(*id) => "true",
                Some(_) => "false",
            };
            let words: Vec<Attr> = (0..op.num_operands()).map(|i| Attr::string(self.cx, word(i))).collect();
            self.rw.set_attr(*op, "__inplace_operands_attr__", Attr::array(self.cx, &words));
        }
    }

    /// Visits the operands in the order of the analysis: joins sets, and marks conflicts against the sets at that point.
    fn visit(&mut self, unit: &Unit<'c>) -> Sets {
        let facts = &unit.collected.facts;
        let mut sets = Sets::new(facts);
        if !(self.options.dump_alias_sets || self.options.print_conflicts) {
            return sets;
        }
        let is_first = |id: &OperandId| facts.operands()[*id].must_in_place;
        for id in facts.operands().ids().filter(is_first) {
            sets.join_aliases(facts, id);
        }
        for id in one_shot::visiting_order(facts, heuristic(self.options)).into_iter().filter(|id| !is_first(id)) {
            if unit.decisions.is_in_place(id) {
                sets.join_aliases(facts, id);
            } else if let Some(reason) = unit.decisions.reason(id).filter(|_| self.options.print_conflicts) {
                self.conflict(unit, &sets, id, reason);
            }
        }
        sets
    }

    fn conflict(&mut self, unit: &Unit<'c>, sets: &Sets, id: OperandId, reason: Reason) {
        let facts = &unit.collected.facts;
        match reason {
            Reason::NotWritable { .. } => {
                let aliases = facts.aliasing_values(id).iter().map(|alias| alias.value);
                let joined = std::iter::once(facts.operands()[id].value).chain(aliases);
                let values: Vec<ValueId> = joined.flat_map(|v| sets.of(v).to_vec()).collect();
                for value in values.into_iter().filter(|v| !facts.values()[*v].info.buffer.writable) {
                    let label = format!("W_{}[NOT-WRITABLE: ", self.read_only);
                    self.mark_value(unit.collected.values[value], &label);
                    self.read_only += 1;
                }
            }
            Reason::ReadAfterWrite { read, write, definition } => {
                let number = self.conflicts;
                for (id, role) in [(read, "READ"), (write, "CONFL-WRITE")] {
                    let used = unit.collected.operands[id];
                    let name = format!("C_{number}[{role}: {}]", used.index);
                    self.rw.set_attr(used.op, &name, Attr::unit(self.cx));
                }
                self.mark_value(unit.collected.values[definition], &format!("C_{number}[DEF: "));
                self.conflicts += 1;
            }
            _ => {}
        }
    }

    fn mark_value(&mut self, value: Value<'c>, label: &str) {
        let (op, place) = match (value.defining_op(), value.as_block_arg()) {
            (Some(op), _) => (Some(op), format!("result {}", value.result_index().unwrap_or(0))),
            (None, Some((block, index))) => (block.parent_op(), format!("bbArg {index}")),
            (None, None) => return,
        };
        if let Some(op) = op {
            self.rw.set_attr(op, &format!("{label}{place}]"), Attr::unit(self.cx));
        }
    }

    fn alias_sets(&mut self, unit: &Unit<'c>, sets: &Sets, names: &ValueNames) {
        let cx = self.cx;
        let set_of = |value: &Value<'c>| {
            let id = *unit.collected.value_ids.get(value)?;
            let members = sets.of(id).iter().map(|v| Attr::string(cx, &names.of(unit.collected.values[*v])));
            Some(Attr::array(cx, &members.collect::<Vec<_>>()))
        };
        let sets_of = |values: &[Value<'c>]| values.iter().filter_map(set_of).collect::<Vec<_>>();
        for op in unit.collected.ops.iter().copied().chain(std::iter::once(unit.root)) {
            let results = sets_of(&op.results());
            if !results.is_empty() {
                self.rw.set_attr(op, "__opresult_alias_set_attr__", Attr::array(cx, &results));
            }
            let mut has_tensors = false;
            let mut block = |args: &[Value<'c>]| {
                let args = sets_of(args);
                has_tensors |= !args.is_empty();
                Attr::array(cx, &args)
            };
            let mut regions = Vec::new();
            for region in op.regions() {
                let blocks: Vec<Attr> = region.blocks().into_iter().map(|b| block(&b.args())).collect();
                regions.push(Attr::array(cx, &blocks));
            }
            if has_tensors {
                self.rw.set_attr(op, "__bbarg_alias_set_attr__", Attr::array(cx, &regions));
            }
        }
    }

    /// The arguments returned unchanged. A result on which two returns disagree has none in later ones.
    fn returns(&mut self, unit: &Unit<'c>) {
        let mut agreed: Vec<Option<Option<usize>>> = Vec::new();
        for returned in returns_of(unit.root) {
            let mut equivalent = equivalent_arguments(unit.root, returned, &unit.collected, &unit.decisions);
            agreed.resize(equivalent.len(), None);
            for (found, agreed) in equivalent.iter_mut().zip(&mut agreed) {
                if *agreed == Some(None) {
                    *found = None;
                }
                let first = agreed.unwrap_or(*found);
                *agreed = Some(first.filter(|_| first == *found));
            }
            if equivalent.iter().any(Option::is_some) {
                let number = |e: &Option<usize>| e.and_then(|i| i64::try_from(i).ok()).unwrap_or(-1);
                let numbers: Vec<Attr> = equivalent.iter().map(|e| Attr::i64(self.cx, number(e))).collect();
                self.rw.set_attr(returned, "__equivalent_func_args__", Attr::array(self.cx, &numbers));
            }
        }
    }

    fn access(&mut self, function: Op<'c>, summary: &Summary) {
        let (inputs, _) = function.function_type().unwrap_or_default();
        let words: Vec<Option<Attr>> = inputs
            .iter()
            .zip(&summary.arguments)
            .map(|(ty, argument)| {
                let word = match (argument.reads, argument.writes) {
                    (true, true) => "read-write",
                    (true, false) => "read",
                    (false, true) => "write",
                    (false, false) => "none",
                };
                ty.is_tensor().then(|| Attr::string(self.cx, word))
            })
            .collect();
        if words.iter().any(Option::is_some) {
            edit_arguments(&mut self.rw, function, |index, entries| {
                if let Some(word) = words.get(index).copied().flatten() {
                    entries.retain(|(name, _)| name != ATTRIBUTES[0]);
                    entries.push((ATTRIBUTES[0].to_owned(), word));
                }
            });
        }
    }
}

/// Alias sets, listed in the order of joining.
struct Sets {
    set_of: Vec<usize>,
    members: Vec<Vec<ValueId>>,
}

impl Sets {
    fn new(facts: &Facts) -> Self {
        Self {
            set_of: (0..facts.values().len()).collect(),
            members: facts.values().ids().map(|value| vec![value]).collect(),
        }
    }
    fn of(&self, value: ValueId) -> &[ValueId] {
        &self.members[self.set_of[value.index()]]
    }
    fn join_aliases(&mut self, facts: &Facts, id: OperandId) {
        for alias in facts.aliasing_values(id) {
            self.join(alias.value, facts.operands()[id].value);
        }
    }
    fn join(&mut self, first: ValueId, second: ValueId) {
        let (first, second) = (self.set_of[first.index()], self.set_of[second.index()]);
        if first == second {
            return;
        }
        let moved = std::mem::take(&mut self.members[second]);
        moved.iter().for_each(|value| self.set_of[value.index()] = first);
        self.members[first].extend(moved);
    }
}

/// Removes bufferization's attributes from a function's arguments.
pub(crate) fn strip(function: Op) {
    if function.attr("arg_attrs").is_none() {
        return;
    }
    let mut rw = Rewriter::new(function.context());
    edit_arguments(&mut rw, function, |_, entries| entries.retain(|(name, _)| !ATTRIBUTES.contains(&name.as_str())));
}

fn edit_arguments<'c>(rw: &mut Rewriter<'c>, function: Op<'c>, edit: impl Fn(usize, &mut Vec<(String, Attr<'c>)>)) {
    let cx = function.context();
    let count = function.function_type().map_or(0, |(inputs, _)| inputs.len());
    let old = function.attr("arg_attrs").and_then(|a| a.as_array()).unwrap_or_default();
    let new: Vec<Attr> = (0..count)
        .map(|i| {
            let mut entries = old.get(i).and_then(Attr::as_dict).unwrap_or_default();
            edit(i, &mut entries);
            let borrowed: Vec<(&str, Attr)> = entries.iter().map(|(name, value)| (name.as_str(), *value)).collect();
            Attr::dict(cx, &borrowed)
        })
        .collect();
    if new.iter().all(|a| a.as_dict().is_none_or(|d| d.is_empty())) {
        rw.remove_attr(function, "arg_attrs");
    } else {
        rw.set_attr(function, "arg_attrs", Attr::array(cx, &new));
    }
}
