//! Function boundaries: the call graph, the order of functions, and their summaries for callers.
//!
//! Callees come first, so that a call knows which operands its callee reads, writes and returns. Mutually recursive functions
//! form one component ([`Component`]) and are decided together.
//! A function without a body has the effects of its arguments' `bufferization.access`; without one it reads and writes all
//! arguments, and may return any of them.
//!
//! Only functions of one symbol table take part; those of nested ones (a module in a module) are skipped.
//! Building the graph is linear in the number of operations; a call finds its callee without comparing names.

use monopour_analysis::calls::Summary;
use monopour_analysis::components::components;
use monopour_contract::attributes;
use monopour_ir::ops;
use monopour_ir::{Attr, CallGraph, Op, WalkOrder};

use crate::options::Options;
use crate::scope::{is_apart, top};

/// The functions of a symbol table, with their summaries.
#[derive(Clone, Debug, Default)]
pub struct Callees<'c> {
    graph: CallGraph<'c>,
    /// For each function the functions that it calls, with tensors in their signature.
    called: Vec<Vec<usize>>,
    summaries: Vec<Option<Summary>>,
    /// Operations that take a function on tensors as a value, or call such a value.
    function_values: Vec<Op<'c>>,
}

/// Functions that are decided together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Component {
    /// Positions among the functions, callees first as far as there is such an order.
    pub(crate) members: Vec<usize>,
    /// Some member is recursive, directly or through others.
    pub(crate) is_recursive: bool,
    /// Recursive, or with a recursive callee.
    pub(crate) reaches_recursion: bool,
}

impl<'c> Callees<'c> {
    /// The call graph of these functions, without summaries.
    pub(crate) fn new(functions: &[Op<'c>]) -> Self {
        let summaries = functions.iter().map(|f| f.body().is_none().then(|| external(*f))).collect();
        let mut function_values = Vec::new();
        let graph = CallGraph::new(functions, |op| function_values.extend(is_function_value(op).then_some(op)));
        let has_tensors: Vec<bool> = functions.iter().map(|f| has_tensor_signature(*f)).collect();
        let on_tensors = |f: usize| graph.callees(f).iter().copied().filter(|callee| has_tensors[*callee]).collect();
        let called = (0..functions.len()).map(on_tensors).collect();
        Self { graph, called, summaries, function_values }
    }

    /// The callee of a `func.call`.
    pub fn callee(&self, call: Op<'c>) -> Option<Op<'c>> {
        self.graph.callee_of(call).map(|position| self.at(position))
    }
    /// The summary of a `func.call`'s callee; `None` if it is not decided.
    pub fn summary_of(&self, call: Op<'c>) -> Option<&Summary> {
        self.summaries[self.graph.callee_of(call)?].as_ref()
    }
    /// The summary of a function; `None` if it is not decided.
    pub fn summary(&self, name: &str) -> Option<&Summary> {
        self.summaries[self.graph.position(name)?].as_ref()
    }
    /// The function of a name.
    pub fn function(&self, name: &str) -> Option<Op<'c>> {
        self.graph.position(name).map(|position| self.at(position))
    }
    /// Adds function values outside of functions.
    pub(crate) fn notice_outside(&mut self, root: Op<'c>, options: &Options) {
        let outside: Vec<Op> = top(root).filter(|op| !is_apart(*op, options)).collect();
        for op in outside {
            op.walk(WalkOrder::Pre, |op| self.function_values.extend(is_function_value(op).then_some(op)));
        }
    }
    /// Operations that take a function on tensors as a value, or call such a value.
    pub(crate) fn function_values(&self) -> &[Op<'c>] {
        &self.function_values
    }
    /// Drops all summaries.
    pub(crate) fn forget(&mut self) {
        self.summaries.fill(None);
    }
    pub(crate) fn functions(&self) -> &[Op<'c>] {
        self.graph.functions()
    }
    pub(crate) fn at(&self, position: usize) -> Op<'c> {
        self.graph.functions()[position]
    }
    pub(crate) fn set_summary(&mut self, position: usize, summary: Summary) {
        self.summaries[position] = Some(summary);
    }
    pub(crate) fn insert(&mut self, function: Op<'c>, summary: Summary) {
        if let Some(position) = function.symbol_name().and_then(|name| self.graph.position(&name)) {
            self.set_summary(position, summary);
        }
    }

    /// The strongly connected components of the call graph, callees first.
    pub(crate) fn components(&self) -> Vec<Component> {
        let mut reaches = vec![false; self.called.len()];
        let component = |mut members: Vec<usize>| {
            let is_recursive = members.len() > 1 || self.called[members[0]].contains(&members[0]);
            let mut called = members.iter().flat_map(|m| &self.called[*m]);
            let reaches_recursion = is_recursive || called.any(|callee| reaches[*callee]);
            members.iter().for_each(|m| reaches[*m] = reaches_recursion);
            // A function visited later is called by an earlier one.
            members.reverse();
            Component { members, is_recursive, reaches_recursion }
        };
        let found = components(self.called.len(), |function, at| self.called[function].get(at).copied());
        found.into_iter().map(component).collect()
    }
}

/// Functions with callees before callers; recursive ones in any order.
pub(crate) fn callees_first<'c>(functions: &[Op<'c>]) -> Vec<Op<'c>> {
    let callees = Callees::new(functions);
    callees.components().into_iter().flat_map(|c| c.members).map(|member| callees.at(member)).collect()
}

/// Whether the op takes a function on tensors as a value, or calls such a value.
fn is_function_value(op: Op) -> bool {
    let ty = match op.name() {
        ops::func::CONSTANT => op.result(0).ty(),
        ops::func::CALL_INDIRECT => op.operand(0).ty(),
        _ => return false,
    };
    ty.as_function().is_some_and(|(inputs, results)| inputs.iter().chain(&results).any(|t| t.is_tensor()))
}

fn has_tensor_signature(function: Op) -> bool {
    function.function_type().is_some_and(|(inputs, results)| inputs.iter().chain(&results).any(|t| t.is_tensor()))
}

/// For each argument of a function whether its buffer is writable.
pub(crate) fn writable_arguments(function: Op, options: &Options) -> Vec<bool> {
    let (inputs, _) = function.function_type().unwrap_or_default();
    // Without function boundaries the argument stays a tensor of the caller.
    if !options.bufferize_function_boundaries {
        return vec![false; inputs.len()];
    }
    let attrs = function.attr("arg_attrs").and_then(|a| a.as_array()).unwrap_or_default();
    let is_entry = options.entry_abi && function.is_public();
    let attr = |index: usize, name: &str| attrs.get(index).and_then(|a: &Attr| a.get(name));
    let is_writable = |index: usize| match attr(index, ops::attributes::bufferization::WRITABLE) {
        Some(writable) => writable.as_bool() == Some(true),
        None => !is_entry || attr(index, attributes::DONATE).is_some(),
    };
    (0..inputs.len()).map(is_writable).collect()
}

/// The returns of a function.
pub(crate) fn returns_of<'c>(function: Op<'c>) -> Vec<Op<'c>> {
    let terminators = function.region(0).blocks().into_iter().filter_map(|b| b.terminator());
    terminators.filter(|op| op.is(ops::func::RETURN)).collect()
}

/// The worst case, except for aliases among results, and their writability.
pub(crate) fn weakened(function: Op, summary: &Summary) -> Summary {
    let mut unknown = unknown(function);
    unknown.result_classes.clone_from(&summary.result_classes);
    unknown.read_only_results.clone_from(&summary.read_only_results);
    unknown
}

/// The first summary of a recursive function: no effects, and each result is equivalent to the first argument that fits by type.
pub(crate) fn assumed(function: Op) -> Summary {
    let (inputs, results) = function.function_type().unwrap_or_default();
    let mut summary = Summary::nothing(inputs.len(), results.len());
    let mut next = 0;
    for (result, ty) in results.iter().enumerate().filter(|(_, ty)| ty.is_tensor()) {
        if let Some(argument) = (next..inputs.len()).find(|i| inputs[*i] == *ty) {
            summary.guess(number(argument), number(result));
            next = argument + 1;
        }
    }
    summary
}

/// The worst case for the type, with the declared accesses.
pub(crate) fn unknown(function: Op) -> Summary {
    let (inputs, results) = function.function_type().unwrap_or_default();
    let tensors = |types: &[monopour_ir::Type]| types.iter().map(|t| t.is_tensor()).collect::<Vec<_>>();
    let mut summary = Summary::unknown(&tensors(&inputs), &tensors(&results));
    declared_access(function, &mut summary);
    summary
}

/// A function without a body. Its results may alias; that they are writable is part of its contract.
fn external(function: Op) -> Summary {
    let mut summary = unknown(function);
    let (_, results) = function.function_type().unwrap_or_default();
    if let Some(first) = results.iter().position(|t| t.is_tensor()) {
        for (index, _) in results.iter().enumerate().filter(|(_, t)| t.is_tensor()) {
            summary.result_classes[index] = number(first);
        }
    }
    summary
}

/// `bufferization.access` overrides the analysis.
pub(crate) fn declared_access(function: Op, summary: &mut Summary) {
    let attrs = function.attr("arg_attrs").and_then(|a| a.as_array()).unwrap_or_default();
    for (argument, attrs) in summary.arguments.iter_mut().zip(attrs) {
        let declared = attrs.get(ops::attributes::bufferization::ACCESS);
        if let Some(access) = declared.and_then(Attr::as_string) {
            (argument.reads, argument.writes) = (access.starts_with("read"), access.ends_with("write"));
        }
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
