//! Function boundaries: in which order functions are decided, and what callers know about a decided one.
//!
//! Callees come first, so that a call knows what its callee reads, writes and returns.
//! A callee without a summary (recursion, no body) reads and writes everything, and may return any argument.

use std::collections::{HashMap, HashSet};

use monopour_analysis::one_shot::{Decisions, InPlaceAnalysis};
use monopour_ir::{Attr, Op, Value};

use crate::collect::Collected;
use crate::options::Options;

/// What a caller knows about one argument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArgumentSummary {
    /// The contents may be loaded.
    pub read: bool,
    /// The buffer may be stored to.
    pub written: bool,
    /// Results that may share memory with it.
    pub aliases: Vec<usize>,
    /// The only result that certainly is its buffer.
    pub equivalent: Option<usize>,
}

/// What a caller knows about a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionSummary {
    /// By position of the argument.
    pub arguments: Vec<ArgumentSummary>,
    /// Pairs of results that may share memory though they share it with no argument.
    pub shared_results: Vec<(usize, usize)>,
    /// Results that may be memory that must not be written, such as a constant.
    pub frozen_results: Vec<usize>,
}

/// Decided functions by symbol name.
#[derive(Clone, Debug, Default)]
pub struct Callees {
    summaries: HashMap<String, FunctionSummary>,
    functions: HashMap<String, Op>,
}

impl Callees {
    pub(crate) fn new(functions: &[Op]) -> Self {
        let by_name = functions.iter().filter_map(|f| Some((f.symbol_name()?, *f))).collect();
        Self { summaries: HashMap::new(), functions: by_name }
    }
    /// What is known about an argument; none for a function that is not decided.
    pub fn argument(&self, callee: &str, index: usize) -> Option<&ArgumentSummary> {
        self.summary(callee)?.arguments.get(index)
    }
    /// What is known about a function; none for one that is not decided.
    pub fn summary(&self, callee: &str) -> Option<&FunctionSummary> {
        self.summaries.get(callee)
    }
    /// The function of a name.
    pub fn function(&self, callee: &str) -> Option<Op> {
        self.functions.get(callee).copied()
    }
    pub(crate) fn insert(&mut self, function: Op, summary: FunctionSummary) {
        if let Some(name) = function.symbol_name() {
            self.summaries.insert(name, summary);
        }
    }
}

/// The callee of a `func.call`.
pub(crate) fn callee_of(call: Op) -> Option<String> {
    call.attr("callee")?.as_symbol().map(str::to_owned)
}

/// Functions with callees before callers; those on or behind a cycle come last, in program order.
pub(crate) fn callees_first(functions: &[Op]) -> Vec<Op> {
    let names: HashSet<String> = functions.iter().filter_map(|f| f.symbol_name()).collect();
    let mut waiting: Vec<(Op, HashSet<String>)> = functions
        .iter()
        .map(|f| {
            let calls =
                f.find_all("func.call").into_iter().filter_map(callee_of).filter(|c| names.contains(c)).collect();
            (*f, calls)
        })
        .collect();
    let mut ordered = Vec::with_capacity(functions.len());
    loop {
        let ready: Vec<Op> = waiting.iter().filter(|(_, calls)| calls.is_empty()).map(|(f, _)| *f).collect();
        if ready.is_empty() {
            ordered.extend(waiting.iter().map(|(f, _)| *f));
            return ordered;
        }
        waiting.retain(|(f, _)| !ready.contains(f));
        let done: HashSet<String> = ready.iter().filter_map(|f| f.symbol_name()).collect();
        for (_, calls) in &mut waiting {
            calls.retain(|c| !done.contains(c));
        }
        ordered.extend(ready);
    }
}

/// An attribute of an argument of a function.
pub(crate) fn argument_attr(function: Op, index: usize, name: &str) -> Option<Attr> {
    function.attr("arg_attrs")?.as_array()?.get(index)?.get(name)
}

/// Whether the buffer of a function's argument may be stored to.
pub(crate) fn is_argument_writable(function: Op, index: usize, options: &Options) -> bool {
    // Without function boundaries the argument stays a tensor that somebody else made.
    if !options.bufferize_function_boundaries {
        return false;
    }
    if let Some(writable) = argument_attr(function, index, "bufferization.writable") {
        return writable.as_bool() == Some(true);
    }
    let entry = options.entry_abi && function.is_public();
    !entry || argument_attr(function, index, "monopour.donate").is_some()
}

/// What callers have to know about a decided function.
pub(crate) fn summarise(function: Op, collected: &Collected, decisions: &Decisions) -> FunctionSummary {
    let Some(body) = function.body() else { return FunctionSummary::default() };
    let returned: Vec<Value> = body.terminator().map(Op::operands).unwrap_or_default();
    let facts = &collected.facts;
    let written: HashSet<_> = facts
        .operands()
        .iter_enumerated()
        .filter(|(id, used)| used.writes && decisions.is_in_place(*id))
        .map(|(_, used)| decisions.alias_class(used.value))
        .collect();
    let summary = |index: usize, arg: Value| -> ArgumentSummary {
        let Some(&id) = collected.value_ids.get(&arg) else { return ArgumentSummary::default() };
        let ids = returned.iter().enumerate().filter_map(|(i, v)| Some((i, *collected.value_ids.get(v)?)));
        let aliases: Vec<_> = ids.filter(|(_, v)| decisions.may_alias(id, *v)).collect();
        let equivalent = aliases.iter().find(|(_, v)| decisions.are_equivalent(id, *v)).map(|(i, _)| *i);
        let mut read = facts.is_value_read(id);
        let mut is_written = written.contains(&decisions.alias_class(id));
        let declared = argument_attr(function, index, "bufferization.access");
        if let Some(access) = declared.as_ref().and_then(Attr::as_string) {
            (read, is_written) = (access.starts_with("read"), access.ends_with("write"));
        }
        ArgumentSummary {
            read,
            written: is_written,
            equivalent: equivalent.filter(|_| aliases.len() == 1),
            aliases: aliases.into_iter().map(|(i, _)| i).collect(),
        }
    };
    let arguments = body.args().into_iter().enumerate().map(|(i, arg)| summary(i, arg)).collect();
    FunctionSummary {
        arguments,
        shared_results: shared_results(collected, decisions, &returned),
        frozen_results: frozen_results(collected, decisions, &returned, &body.args()),
    }
}

/// Pairs of returned tensors that may share memory.
fn shared_results(collected: &Collected, decisions: &Decisions, returned: &[Value]) -> Vec<(usize, usize)> {
    let classes: Vec<_> = returned.iter().map(|v| Some(decisions.alias_class(*collected.value_ids.get(v)?))).collect();
    let mut pairs = Vec::new();
    for (second, class) in classes.iter().enumerate().filter(|(_, c)| c.is_some()) {
        // One pair is enough: sharing is taken as transitive.
        pairs.extend(classes[..second].iter().position(|c| c == class).map(|first| (first, second)));
    }
    pairs
}

/// Returned tensors that may be memory that is not writable, and is no argument's: callers know their arguments.
fn frozen_results(collected: &Collected, decisions: &Decisions, returned: &[Value], arguments: &[Value]) -> Vec<usize> {
    let values = collected.facts.values().iter_enumerated();
    let frozen: HashSet<_> = values
        .filter(|(id, v)| !v.info.writable && !arguments.contains(&collected.values[*id]))
        .map(|(id, _)| decisions.alias_class(id))
        .collect();
    let is_frozen =
        |v: &Value| collected.value_ids.get(v).is_some_and(|id| frozen.contains(&decisions.alias_class(*id)));
    (0..returned.len()).filter(|i| is_frozen(&returned[*i])).collect()
}

/// For each returned tensor the first argument that certainly is its buffer.
pub(crate) fn equivalent_arguments(function: Op, collected: &Collected, decisions: &Decisions) -> Vec<Option<usize>> {
    let Some(body) = function.body() else { return vec![] };
    let args = body.args();
    let same = |a: Value, b: Value| match (collected.value_ids.get(&a), collected.value_ids.get(&b)) {
        (Some(a), Some(b)) => decisions.are_equivalent(*a, *b),
        _ => false,
    };
    let returned = body.terminator().map(Op::operands).unwrap_or_default();
    returned.into_iter().map(|v| args.iter().position(|a| same(*a, v))).collect()
}
