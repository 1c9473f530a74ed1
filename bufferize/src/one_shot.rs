//! One-Shot Bufferize of a module: collect, decide, insert copies, rewrite.
//!
//! ```text
//! func.func @f(%t: tensor<4xf32>, %x: f32, %i: index)         func.func @f(%t: memref<4xf32>, %x: f32, %i: index)
//!     -> tensor<4xf32> {                                          -> memref<4xf32> {
//!   %0 = tensor.insert %x into %t[%i] : tensor<4xf32>    ==>    memref.store %x, %t[%i] : memref<4xf32>
//!   return %0 : tensor<4xf32>                                   return %t : memref<4xf32>
//! }                                                           }
//! ```
//!
//! Requires: every operation on tensors has a model (B0101), and one block in a region where the model expects one (B0102).
//! Ensures: no tensor values; every allocation and copy follows from a decision, with a remark for each copy.
//! Nothing is freed.
//! Source: MLIR's One-Shot Bufferize, LLVM 22.
//! Differs: with `extensions`, iterations of a parallel loop do not read other iterations' writes (`shared_outputs`), and
//! a slice that is already in its place is not copied onto itself.

use monopour_ir::ops;
use std::collections::HashSet;

use monopour_analysis::calls::{Recursion, Summary, fixpoint};
use monopour_analysis::facts::Facts;
use monopour_analysis::one_shot::{self, DecideError, Decisions, Heuristic, InPlaceAnalysis, Placement, Reason};
use monopour_ir::{Diagnostic, Diagnostics, Op, Use, WalkOrder};

use crate::analysis::{Analysis, Changed, CopyBeforeWrite, Greedy};
use crate::boundary::{Callees, Component, assumed, returns_of, weakened};
use crate::buffer_type::BufferTypes;
use crate::collect::{Collected, collect};
use crate::effects::{LoopCarried, LoopTerminator};
use crate::loaded_globals::GlobalStores;
use crate::op_model::OpModels;
use crate::options::{AnalysisHeuristic, Options};
use crate::own_place::inserts_in_place;
use crate::remarks::Remarks;
use crate::scope::{functions_of, has_loose_tensors, ops_in_scope};
use crate::summaries::summarise;
use crate::{annotate, insert_copies, loaded_globals, private_layouts, rewrite, shared_outputs};

/// Counts and remarks of the pass.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Operands in place (`num-tensor-in-place`).
    pub in_place: u32,
    /// Operands out of place (`num-tensor-out-of-place`).
    pub out_of_place: u32,
    /// `memref.alloc` operations made (`num-buffer-alloc`).
    pub allocs: u32,
    /// `memref.copy` operations made.
    pub copies: u32,
    /// The reason of each copy: B0201 a conflict, B0202 a layout, B0203 a loop's result.
    pub remarks: Diagnostics,
    /// Bytes that each remark's copy moves: `None` if known at run time only, 0 for a new buffer without contents.
    pub remark_bytes: Vec<Option<u64>>,
    /// Elementary steps of the decisions and the rewrite, which complexity tests count instead of seconds.
    pub steps: u64,
}

/// The facts and decisions of one function.
#[derive(Clone, Debug)]
pub struct FunctionAnalysis {
    /// The symbol name.
    pub name: String,
    /// Labels are positions in the order of collection.
    pub facts: Facts,
    /// The decision on each operand of the facts.
    pub decisions: Decisions,
}

/// Chooses the decisions to carry out: called once per function, callees first, with its name, facts and decisions.
pub type Chooser<'a> = dyn FnMut(&str, &Facts, Decisions) -> Decisions + 'a;

/// Bufferizes a module with the models of upstream's dialects.
///
/// # Errors
/// B0100 for an option that is not implemented; B0101 to B0108 for programs that cannot be bufferized.
/// The module may be partly rewritten then.
pub fn run_one_shot(module: Op, options: &Options) -> Result<Stats, Diagnostics> {
    run_with_models(module, options, &OpModels::upstream())
}

/// As [`run_one_shot`]; decisions before an error count in `stats`.
///
/// # Errors
/// As [`run_one_shot`].
pub fn run_one_shot_into(module: Op, options: &Options, stats: &mut Stats) -> Result<(), Diagnostics> {
    run(module, options, &OpModels::upstream(), &mut Greedy::new(options), stats)
}

/// As [`run_one_shot`], with other models.
///
/// # Errors
/// As [`run_one_shot`].
pub fn run_with_models(module: Op, options: &Options, models: &OpModels) -> Result<Stats, Diagnostics> {
    let mut stats = Stats::default();
    run(module, options, models, &mut Greedy::new(options), &mut stats).map(|()| stats)
}

/// As [`run_with_models`], with another analysis instead of the options' own.
///
/// Functions of [`Options::no_analysis_func_filter`] are copied before each write without it.
///
/// # Errors
/// As [`run_one_shot`]; B0109 for decisions on another number of operands than the function has.
pub fn run_with_analysis(
    module: Op,
    options: &Options,
    models: &OpModels,
    analysis: &mut dyn Analysis,
) -> Result<Stats, Diagnostics> {
    let mut stats = Stats::default();
    run(module, options, models, analysis, &mut stats).map(|()| stats)
}

/// As [`run_one_shot`], with the decisions that `choose` returns, by the number of the operand in the facts.
///
/// They are carried out unchecked: [`monopour_analysis::checker::check`] judges them.
/// The summary of such a function follows from its decisions.
///
/// # Errors
/// As [`run_one_shot`]; B0109 for decisions on another number of operands than the function has.
pub fn run_with_decisions(module: Op, options: &Options, choose: &mut Chooser<'_>) -> Result<Stats, Diagnostics> {
    let mut stats = Stats::default();
    let mut analysis = Changed::new(options, choose);
    run(module, options, &OpModels::upstream(), &mut analysis, &mut stats).map(|()| stats)
}

/// The facts and decisions of every function with a body, callees first. Nothing is bufferized.
///
/// # Errors
/// As [`run_one_shot`].
pub fn analyse(module: Op, options: &Options) -> Result<Vec<FunctionAnalysis>, Diagnostics> {
    options.check()?;
    let options = &options.effective();
    let models = OpModels::upstream();
    let analysed = analyse_all(module, options, &models, &mut Greedy::new(options), &mut Stats::default())?;
    let functions = analysed.units.into_iter().map(|unit| FunctionAnalysis {
        name: unit.root.symbol_name().unwrap_or_default(),
        facts: unit.collected.facts,
        decisions: unit.decisions,
    });
    Ok(functions.collect())
}

/// One function, decided; without function boundaries, the whole module.
pub(crate) struct Unit<'c> {
    pub(crate) root: Op<'c>,
    pub(crate) collected: Collected<'c>,
    pub(crate) decisions: Decisions,
    /// Whether it is analysed, not copied before each write.
    pub(crate) is_analysed: bool,
    /// Callers use its summary.
    pub(crate) has_boundary: bool,
}

/// The decisions, callees first, and the functions with their summaries.
pub(crate) struct Analysed<'c> {
    pub(crate) units: Vec<Unit<'c>>,
    callees: Callees<'c>,
}

/// The context of the analyses of all functions.
struct Analyser<'c, 'a> {
    options: &'a Options,
    models: &'a OpModels,
    analysis: &'a mut dyn Analysis,
    callees: Callees<'c>,
}

pub(crate) fn analyse_all<'c>(
    module: Op<'c>,
    options: &Options,
    models: &OpModels,
    analysis: &mut dyn Analysis,
    stats: &mut Stats,
) -> Result<Analysed<'c>, Diagnostics> {
    // By value semantics; upstream lets iterations see the writes of others.
    if options.extensions {
        shared_outputs::run(module);
    }
    let functions = if options.bufferize_function_boundaries { functions_of(module) } else { vec![] };
    let mut callees = Callees::new(&functions);
    callees.notice_outside(module, options);
    refuse_calls_of_values(&callees, options)?;
    // Upstream then reads no function, not even its declared accesses.
    if options.copy_before_write && !options.extensions {
        callees.forget();
    }
    let mut analyser = Analyser { options, models, analysis, callees };
    let mut units = Vec::new();
    for component in analyser.callees.components() {
        let decided = analyser.component(&component)?;
        decided.iter().try_for_each(|unit| finish(unit, options, models, stats))?;
        units.extend(decided);
    }
    // Ops outside of functions are analysed, too; upstream copies there without annotations.
    let has_boundaries = options.bufferize_function_boundaries;
    if !has_boundaries || has_loose_tensors(module, options) {
        let mut unit = analyser.unit(module)?;
        unit.is_analysed &= !has_boundaries;
        finish(&unit, options, models, stats)?;
        units.push(unit);
    }
    if options.test_analysis_only {
        annotate::run(module, &units, &analyser.callees, options);
    }
    Ok(Analysed { units, callees: analyser.callees })
}

/// Counts the decisions, and checks their effect on loops.
fn finish(unit: &Unit, options: &Options, models: &OpModels, stats: &mut Stats) -> Result<(), Diagnostics> {
    let Unit { collected, decisions, .. } = unit;
    for (id, used) in collected.operands.iter_enumerated() {
        debug_assert!(used.op.operand(used.index).ty().is_tensor(), "operands are tensors");
        let count = if decisions.is_in_place(id) { &mut stats.in_place } else { &mut stats.out_of_place };
        *count += 1;
    }
    if unit.is_analysed { verify_loops(collected, decisions, options, models) } else { Ok(()) }
}

impl<'c> Analyser<'c, '_> {
    /// Decides the functions of a component, and records their summaries.
    fn component(&mut self, component: &Component) -> Result<Vec<Unit<'c>>, Diagnostics> {
        let members: Vec<usize> =
            component.members.iter().copied().filter(|m| self.callees.at(*m).body().is_some()).collect();
        if !component.is_recursive {
            let mut units = Vec::new();
            for member in members {
                let (unit, summary) = self.member(member, component)?;
                self.callees.set_summary(member, summary);
                units.push(unit);
            }
            return Ok(units);
        }
        let start = |member: &usize| {
            let function = self.callees.at(*member);
            let nothing = assumed(function);
            if self.is_known(function, component) { nothing } else { weakened(function, &nothing) }
        };
        let starts: Vec<_> = members.iter().map(start).collect();
        let units = members.iter().map(|_| None).collect();
        let mut cycle = Cycle { analyser: self, component, members, units };
        fixpoint(starts, &mut cycle)?;
        Ok(cycle.units.into_iter().flatten().collect())
    }

    /// Whether callers use the summary of a function.
    ///
    /// Upstream has no summaries of functions that reach a cycle of calls, nor of those that it does not analyse.
    fn is_known(&self, function: Op<'c>, component: &Component) -> bool {
        self.options.extensions || !(component.reaches_recursion || self.is_copied(function))
    }

    /// Whether the function is excluded from the analysis.
    fn is_copied(&self, function: Op<'c>) -> bool {
        let filter = &self.options.no_analysis_func_filter;
        self.options.copy_before_write
            || (!filter.is_empty() && function.symbol_name().is_some_and(|name| filter.contains(&name)))
    }

    /// Decides one function with the current summaries, and summarises it.
    fn member(&mut self, member: usize, component: &Component) -> Result<(Unit<'c>, Summary), Diagnostics> {
        let function = self.callees.at(member);
        let mut unit = self.unit(function)?;
        unit.has_boundary = self.is_known(function, component);
        let mut summary = summarise(function, &unit.collected, &unit.decisions);
        if !unit.has_boundary {
            summary = weakened(function, &summary);
        }
        Ok((unit, summary))
    }

    fn unit(&mut self, root: Op<'c>) -> Result<Unit<'c>, Diagnostics> {
        let is_copied = self.is_copied(root);
        if !self.options.extensions && !is_copied && root.is(ops::func::FUNC) && returns_of(root).is_empty() {
            return Err(no_return(root));
        }
        let collected = collect(root, self.models, &self.callees, self.options)?;
        let name = root.symbol_name().unwrap_or_default();
        let mut copying = CopyBeforeWrite::new(self.options);
        let analysis: &mut dyn Analysis = if is_copied { &mut copying } else { &mut *self.analysis };
        if !is_copied {
            check_forced(&collected, self.options)?;
        }
        analysis.begin(&name, &collected.facts).map_err(|error| undecidable(&collected, self.options, &error))?;
        let decisions = chosen_decisions(root, &collected, analysis.decisions(&collected.facts))?;
        Ok(Unit { root, collected, decisions, is_analysed: !is_copied, has_boundary: false })
    }
}

/// The functions of a recursive component, with their latest decisions.
struct Cycle<'c, 'a, 'b> {
    analyser: &'a mut Analyser<'c, 'b>,
    component: &'a Component,
    members: Vec<usize>,
    units: Vec<Option<Unit<'c>>>,
}

impl Recursion for Cycle<'_, '_, '_> {
    type Error = Diagnostics;
    fn set(&mut self, position: usize, known: &Summary) {
        self.analyser.callees.set_summary(self.members[position], known.clone());
    }
    fn decide(&mut self, position: usize) -> Result<Summary, Diagnostics> {
        let (unit, summary) = self.analyser.member(self.members[position], self.component)?;
        self.units[position] = Some(unit);
        Ok(summary)
    }
}

fn no_return(function: Op) -> Diagnostics {
    let message = "cannot bufferize func.func without func.return";
    let help = "let some block of the function return; with `extensions`, it may as well never return";
    Diagnostic::error("B0131", function.location(), message).with_help(help).into()
}

/// Refuses calls of function values, which have no static signature on memrefs.
///
/// Upstream refuses the call, too (B0120), and its verifier the value: see [`refuse_converted_values`].
fn refuse_calls_of_values(callees: &Callees, options: &Options) -> Result<(), Diagnostics> {
    let Some(op) = callees.function_values().first().filter(|_| options.extensions) else { return Ok(()) };
    let message = format!("{} uses a function on tensors as a value; it has no signature on memrefs then", op.name());
    Err(function_value(*op, message))
}

/// Refuses values of functions whose type changed, as MLIR's verifier does after upstream's pass.
fn refuse_converted_values(module: Op, callees: &Callees, options: &Options) -> Result<(), Diagnostics> {
    // Those found before may be erased.
    if callees.function_values().is_empty() {
        return Ok(());
    }
    let is_converted = |op: &Op| {
        let function = op.attr("value").and_then(|a| callees.function(a.as_symbol()?));
        op.is(ops::func::CONSTANT) && function.is_some_and(|f| f.function_type() != op.result(0).ty().as_function())
    };
    let Some(op) = ops_in_scope(module, options, WalkOrder::Pre).into_iter().find(is_converted) else { return Ok(()) };
    Err(function_value(op, "'func.constant' op reference to function with mismatched type".to_owned()))
}

fn function_value(op: Op, message: String) -> Diagnostics {
    let help =
        "call the function by its name, with func.call; choose between functions with scf.if or scf.index_switch";
    Diagnostic::error("B0130", op.location(), message).with_help(help).into()
}

fn chosen_decisions(function: Op, collected: &Collected, chosen: Decisions) -> Result<Decisions, Diagnostics> {
    let (expected, found) = (collected.operands.len(), chosen.placements().len());
    if expected == found {
        return Ok(chosen);
    }
    let message = format!("decisions on {found} operands were given for a function that has {expected}");
    let help = "change placements of the decisions that the callback was given";
    Err(Diagnostic::error("B0109", function.location(), message).with_help(help).into())
}

fn run(
    module: Op,
    options: &Options,
    models: &OpModels,
    analysis: &mut dyn Analysis,
    stats: &mut Stats,
) -> Result<(), Diagnostics> {
    options.check()?;
    let options = &options.effective();
    let Analysed { units, callees } = analyse_all(module, options, models, analysis, stats)?;
    if options.test_analysis_only {
        return Ok(());
    }
    let mut remarks = Remarks::default();
    for Unit { collected, decisions, is_analysed, .. } in &units {
        // Without an analysis a memref of a tensor is always that tensor's buffer, as in upstream.
        let is_bridge = |op: Op| !is_analysed && op.is(ops::bufferization::TO_BUFFER);
        let takes_part = |op: Op| models.taking_part(op, options).is_some() && !is_bridge(op);
        remarks.append(insert_copies::run(collected, decisions, models, options, takes_part)?);
    }
    if let Some(mut stores) = GlobalStores::of(module) {
        for Unit { root, collected, decisions, .. } in &units {
            remarks.append(loaded_globals::copy(*root, collected, decisions, options, &mut stores)?);
        }
    }
    let roots: Vec<Op> = units.iter().map(|unit| unit.root).collect();
    let types = private_layouts::predict(module, &roots, (models, options, &callees))?;
    let mut self_copies = HashSet::new();
    for Unit { collected, decisions, .. } in &units {
        match relocated(collected, decisions, models, options, &types) {
            Some(decisions) => self_copies.extend(inserts_in_place(collected, &decisions)),
            None => self_copies.extend(inserts_in_place(collected, decisions)),
        }
    }
    let made = rewrite::run(module, models, options, types, self_copies)?;
    refuse_converted_values(module, &callees, options)?;
    // A function without a body keeps its attributes.
    for function in callees.functions().iter().filter(|f| f.body().is_some()) {
        annotate::strip(*function);
    }
    stats.allocs = made.allocs;
    stats.copies = made.copies;
    stats.steps = made.steps + units.iter().map(|unit| unit.decisions.steps()).sum::<u64>();
    remarks.append(made.remarks);
    (stats.remarks, stats.remark_bytes) = (remarks.diagnostics, remarks.bytes);
    Ok(())
}

/// The decisions with the operands out of place that the rewrite copies for their layout; `None` without any.
fn relocated<'c>(
    collected: &Collected<'c>,
    decisions: &Decisions,
    models: &OpModels,
    options: &Options,
    types: &BufferTypes<'c, '_>,
) -> Option<Decisions> {
    let moves = |used: &Use<'c>| {
        models.taking_part(used.op, options).is_some_and(|m| m.copies_for_layout(used.op, used.index, types))
    };
    let moved: Vec<_> = collected.operands.iter_enumerated().filter(|(_, u)| moves(u)).map(|(id, _)| id).collect();
    if moved.is_empty() {
        return None;
    }
    let mut placements = decisions.placements().clone();
    for id in moved {
        placements[id] = Placement::OutOfPlace;
    }
    Some(one_shot::decisions_from_placements(&collected.facts, placements))
}

pub(crate) fn heuristic(options: &Options) -> Heuristic {
    match options.analysis_heuristic {
        AnalysisHeuristic::TopDown => Heuristic::TopDown,
        AnalysisHeuristic::Fuzzer => Heuristic::Fuzzer(options.analysis_fuzzer_seed),
        AnalysisHeuristic::BottomUp => Heuristic::BottomUp,
        AnalysisHeuristic::BottomUpFromTerminators => Heuristic::BottomUpFromTerminators,
    }
}

pub(crate) fn settings(options: &Options) -> one_shot::Options {
    one_shot::Options {
        heuristic: heuristic(options),
        copy_before_write: options.copy_before_write,
        check_parallel_regions: options.check_parallel_regions,
        unordered_graph_regions: !options.extensions,
        strategy: options.strategy,
    }
}

/// The decisions of the options' own analysis.
pub(crate) fn decide(collected: &Collected, options: &Options) -> Result<Decisions, Diagnostics> {
    check_forced(collected, options)?;
    one_shot::decide(&collected.facts, &settings(options)).map_err(|error| undecidable(collected, options, &error))
}

/// Upstream fails if uses that must be in place conflict.
fn check_forced(collected: &Collected, options: &Options) -> Result<(), Diagnostics> {
    if options.extensions {
        return Ok(());
    }
    one_shot::check_forced(&collected.facts, &settings(options))
        .map_err(|error| undecidable(collected, options, &error))
}

fn undecidable(collected: &Collected, options: &Options, error: &DecideError) -> Diagnostics {
    let id = error.operand();
    let used = collected.operands[id];
    let why = insert_copies::explain(collected, id, error.reason(), used.op.operand(used.index).ty(), true);
    let name = used.op.name();
    let message = match (options.extensions, error.reason()) {
        (true, _) => format!("operand {} of {name} cannot be copied, and a conflict needs a copy of it", used.index),
        (false, Reason::NotWritable { .. }) => {
            format!("'{name}' op not bufferizable under the given constraints: would write to read-only buffer")
        }
        (false, _) => format!("'{name}' op not bufferizable under the given constraints: cannot avoid RaW conflict"),
    };
    let mut diagnostic = Diagnostic::error("B0105", used.op.location(), message);
    diagnostic.notes = why.notes;
    diagnostic.with_help("copy the tensor before, with bufferization.alloc_tensor copy(..)").into()
}

/// Without `allow-return-allocs-from-loops`, a loop must yield the buffer of its iteration argument: reports the first that differs.
fn verify_loops(
    collected: &Collected,
    decisions: &Decisions,
    options: &Options,
    models: &OpModels,
) -> Result<(), Diagnostics> {
    // Without an analysis no equivalence is known. With extensions a loop inserts its copies.
    if options.allow_return_allocs_from_loops || options.copy_before_write || options.extensions {
        return Ok(());
    }
    let models_of = collected.ops.iter().filter_map(|op| Some((*op, models.taking_part(*op, options)?)));
    for carried in models_of.flat_map(|(op, model)| model.loop_carried(op)) {
        let LoopCarried { terminator, index, position, argument, from } = carried;
        let (Some(value), argument) = (collected.id(terminator.operand(index)), argument.and_then(|a| collected.id(a)))
        else {
            continue;
        };
        if argument.is_some_and(|a| decisions.are_equivalent(a, value)) {
            continue;
        }
        let is_condition = matches!(from, LoopTerminator::Condition { .. });
        let what = if is_condition { "Condition arg" } else { "Yield operand" };
        let message = format!("{what} #{position} is not equivalent to the corresponding iter bbArg");
        let error = Diagnostic::error("B0106", terminator.location(), message)
            .with_help("yield the tensor that was updated in place, or allow allocations to leave loops");
        return Err(error.into());
    }
    Ok(())
}
