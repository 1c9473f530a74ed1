//! Decisions on random functions equal upstream's, except for its known errors.
//!
//! Many functions go through one process of `mlir-opt -one-shot-bufferize="test-analysis-only ..."`; its annotations are
//! compared with ours: the decision on each tensor operand, the equivalent arguments of returned tensors, the access of
//! arguments. The generator avoids constructs that upstream 22.1.8 is known to decide wrongly. Where it cannot
//! (blocks, elementwise operations on parts), a difference is explained by the first operand with a different decision,
//! in the order of visits, and by its conflict in our decisions; an unexplained one fails.

use crate::differences::{Difference, explain};
use monopour_analysis::one_shot::Heuristic;
use monopour_bufferize::{AnalysisHeuristic, Options, analyse, run_one_shot};
use monopour_ir::{Context, Module, Op, WalkOrder};
use monopour_testkit::device::full_is_asked_for;
use monopour_testkit::generate_functions::{self, More, Shape};
use monopour_testkit::oracle::mlir_opt;
use monopour_testkit::random::asked_seeds;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// A comparison: the functions, and the order of the analysis.
#[derive(Clone, Copy)]
struct Comparison {
    name: &'static str,
    blocks: bool,
    heuristic: AnalysisHeuristic,
    heuristic_name: &'static str,
    /// The first seed: each comparison has functions of its own.
    first: u64,
    /// Modules in a short run and in a full one.
    modules: (u64, u64),
    /// Modules per process.
    batch: u64,
}

const BOTTOM_UP: Comparison = Comparison {
    name: "bottom-up",
    blocks: false,
    heuristic: AnalysisHeuristic::BottomUp,
    heuristic_name: "bottom-up",
    first: 0,
    modules: (100, 6_000),
    batch: 100,
};

const COMPARISONS: &[Comparison] = &[
    BOTTOM_UP,
    Comparison {
        name: "top-down",
        heuristic: AnalysisHeuristic::TopDown,
        first: 100_000,
        heuristic_name: "top-down",
        modules: (25, 1_000),
        ..BOTTOM_UP
    },
    Comparison {
        name: "from terminators",
        heuristic: AnalysisHeuristic::BottomUpFromTerminators,
        first: 200_000,
        heuristic_name: "bottom-up-from-terminators",
        modules: (25, 1_000),
        ..BOTTOM_UP
    },
    Comparison {
        name: "fuzzer",
        heuristic: AnalysisHeuristic::Fuzzer,
        first: 300_000,
        heuristic_name: "fuzzer",
        modules: (25, 1_000),
        ..BOTTOM_UP
    },
    Comparison { name: "blocks", blocks: true, modules: (30, 1_500), batch: 10, ..BOTTOM_UP },
];

impl Comparison {
    /// The shuffle seed for a seed.
    fn shuffle(&self, seed: u64) -> u64 {
        seed / self.batch + 1
    }

    fn options(&self, seed: u64) -> Options {
        Options {
            allow_return_allocs_from_loops: true,
            bufferize_function_boundaries: true,
            analysis_heuristic: self.heuristic,
            analysis_fuzzer_seed: self.shuffle(seed),
            ..Options::default()
        }
    }

    fn arguments(&self, seed: u64) -> String {
        format!(
            "-one-shot-bufferize=\"test-analysis-only bufferize-function-boundaries allow-return-allocs-from-loops \
             analysis-heuristic={} analysis-fuzzer-seed={}\"",
            self.heuristic_name,
            self.shuffle(seed)
        )
    }

    fn order(&self, seed: u64) -> Heuristic {
        match self.heuristic {
            AnalysisHeuristic::BottomUp => Heuristic::BottomUp,
            AnalysisHeuristic::TopDown => Heuristic::TopDown,
            AnalysisHeuristic::BottomUpFromTerminators => Heuristic::BottomUpFromTerminators,
            AnalysisHeuristic::Fuzzer => Heuristic::Fuzzer(self.shuffle(seed)),
        }
    }

    /// The module of a seed, with names of its own.
    fn module(&self, seed: u64) -> String {
        let shape = Shape::comparable(seed, self.blocks);
        // A seed has as many kinds of callees as one order of analysis allows.
        let more = More { external: shape.more.external && !shape.more.recursion, ..shape.more };
        generate_functions::module(seed, Shape { more, ..shape }).replace('@', &format!("@s{seed}_"))
    }
}

/// The annotations of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    /// Per operation: its name, and a word for each operand.
    pub decisions: Vec<(String, Vec<String>)>,
    /// For each tensor operand, in the order of the text, the parent of its operation.
    pub around: Vec<String>,
    /// For each tensor operand whether a vector is written to it under a mask.
    pub masked: Vec<bool>,
    /// On arguments and returned values.
    boundary: Vec<String>,
}

impl Annotations {
    /// Whether each tensor operand is in place, in the order of the text.
    pub fn in_place(&self) -> Vec<bool> {
        self.decisions.iter().flat_map(|(_, words)| words).filter(|w| *w != "none").map(|w| w == "true").collect()
    }
}

fn annotations(module: &Module) -> BTreeMap<String, Annotations> {
    let functions = module.body().ops().into_iter().filter(|op| op.is("func.func"));
    functions.map(|f| (f.symbol_name().unwrap_or_default(), annotations_of(f))).collect()
}

fn annotations_of(function: Op) -> Annotations {
    let mut found = Annotations::default();
    found.boundary.extend(function.attr("arg_attrs").map(|a| a.to_string()));
    function.walk(WalkOrder::Pre, |op| {
        if let Some(words) = op.attr("__inplace_operands_attr__").and_then(|a| a.as_array()) {
            let words: Vec<_> = words.iter().map(|a| a.as_string().unwrap_or("?").to_owned()).collect();
            let around = op.parent().map_or("", |parent| parent.name());
            let rank = || op.operand(1).ty().shape().map_or(0, |s| s.len());
            let masked = op.is("vector.transfer_write") && op.operands().len() > 2 + rank();
            found.masked.extend(words.iter().filter(|w| *w != "none").map(|_| masked));
            found.around.extend(words.iter().filter(|w| *w != "none").map(|_| around.to_owned()));
            found.decisions.push((op.name().to_owned(), words));
        }
        found.boundary.extend(op.attr("__equivalent_func_args__").map(|a| a.to_string()));
    });
    found
}

/// Counts over many functions.
#[derive(Default, Debug)]
struct Totals {
    functions: usize,
    decisions: usize,
    out_of_place: usize,
    /// Modules that both refuse.
    refused: usize,
    differences: BTreeMap<String, usize>,
}

impl Totals {
    fn add(&mut self, other: Self) {
        self.functions += other.functions;
        self.decisions += other.decisions;
        self.out_of_place += other.out_of_place;
        self.refused += other.refused;
        for (why, count) in other.differences {
            *self.differences.entry(why).or_default() += count;
        }
    }
}

struct Run<'c> {
    cx: Context<'c>,
    comparison: Comparison,
    totals: Totals,
    unexplained: Vec<String>,
}

impl<'c> Run<'c> {
    fn compare(&mut self, seeds: Range<u64>) {
        let arguments = self.comparison.arguments(seeds.start);
        let text: String = seeds.clone().map(|seed| self.comparison.module(seed)).collect();
        match mlir_opt(&arguments, &text) {
            Ok(annotated) => self.check(seeds.start, &text, &annotated),
            // One of them is refused: each is run alone.
            Err(_) => {
                for seed in seeds.clone() {
                    let text = self.comparison.module(seed);
                    match mlir_opt(&arguments, &text) {
                        Ok(annotated) => self.check(seeds.start, &text, &annotated),
                        Err(message) => self.check_refused(seeds.start, seed, &text, &message),
                    }
                }
            }
        }
    }

    fn parse(&self, text: &str) -> Module<'c> {
        Module::parse(self.cx, text.as_bytes(), "random.mlir").unwrap_or_else(|e| panic!("{e}\n{text}"))
    }

    /// A program that upstream refuses because it needs a copy may be refused or copied.
    fn check_refused(&mut self, start: u64, seed: u64, text: &str, message: &str) {
        let ours = run_one_shot(
            self.parse(text).op(),
            &Options { test_analysis_only: true, ..self.comparison.options(start) },
        );
        let refusals = ["cannot avoid RaW conflict", "would write to read-only buffer"];
        let why = match ours {
            Err(_) if refusals.iter().any(|m| message.contains(m)) => return self.totals.refused += 1,
            Ok(_) if refusals.iter().any(|m| message.contains(m)) => "upstream refuses, we copy",
            Ok(_) if message.contains("PLEASE submit a bug report") => "upstream crashes",
            _ => return self.unexplained.push(format!("seed {seed}: upstream refuses: {message}")),
        };
        *self.totals.differences.entry(why.to_owned()).or_default() += 1;
    }

    fn check(&mut self, start: u64, text: &str, annotated: &str) {
        let options = self.comparison.options(start);
        let module = self.parse(text);
        let marked = run_one_shot(module.op(), &Options { test_analysis_only: true, ..options.clone() });
        if let Err(refused) = marked {
            return self.unexplained.push(format!("seeds from {start}: only we refuse: {refused}"));
        }
        let (ours, theirs) = (annotations(&module), annotations(&self.parse(annotated)));
        assert_eq!(ours.len(), theirs.len(), "the same functions");
        let mut differing: BTreeSet<String> = BTreeSet::new();
        for (name, theirs) in &theirs {
            let in_place = theirs.in_place();
            self.totals.functions += 1;
            self.totals.decisions += in_place.len();
            self.totals.out_of_place += in_place.iter().filter(|w| !**w).count();
            if ours.get(name) != Some(theirs) {
                differing.insert(name.clone());
            }
        }
        if differing.is_empty() {
            return;
        }
        let module = self.parse(text);
        let analysed = analyse(module.op(), &options).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let callers = callers_of(&module, &differing);
        for name in &differing {
            let function = analysed.iter().find(|f| f.name == *name);
            let difference = match function {
                _ if callers.contains(name) => Difference::Known("calls a function that differs"),
                Some(function) => explain(function, &theirs[name], self.comparison.order(start)),
                None => Difference::Unknown("a declaration".to_owned()),
            };
            match difference {
                Difference::Known(why) => *self.totals.differences.entry(why.to_owned()).or_default() += 1,
                Difference::Unknown(why) => {
                    let lines = ours[name].decisions.iter().zip(&theirs[name].decisions);
                    let first = lines.filter(|(a, b)| a != b).map(|(a, b)| format!("{a:?}, upstream {b:?}")).next();
                    let boundary = (&ours[name].boundary, &theirs[name].boundary);
                    let first = first.unwrap_or_else(|| format!("{boundary:?}"));
                    let found = format!("{}, @{name}: {why}: {first}", self.comparison.name);
                    println!("{found}");
                    self.unexplained.push(found);
                }
            }
        }
    }
}

/// The functions that call one of these.
fn callers_of(module: &Module, called: &BTreeSet<String>) -> BTreeSet<String> {
    let mut callers = BTreeSet::new();
    for function in module.body().ops().into_iter().filter(|op| op.is("func.func")) {
        let calls = function.find_all("func.call");
        let name = function.symbol_name().unwrap_or_default();
        let callee = |op: &Op| op.attr("callee").map(|a| a.to_string().trim_start_matches('@').to_owned());
        if calls.iter().filter_map(callee).any(|c| c != name && called.contains(&c)) {
            callers.insert(name);
        }
    }
    callers
}

/// The results for all functions of a comparison, batch by batch on all processors.
fn run(comparison: Comparison) -> (Totals, Vec<String>) {
    let (first, (few, all)) = (comparison.first, comparison.modules);
    let seeds = asked_seeds().unwrap_or(first..first + if full_is_asked_for() { all } else { few });
    let next = AtomicU64::new(seeds.start);
    let work = || {
        let mut run = Run { cx: Context::new(), comparison, totals: Totals::default(), unexplained: vec![] };
        loop {
            let start = next.fetch_add(comparison.batch, Ordering::Relaxed);
            if start >= seeds.end {
                return (run.totals, run.unexplained);
            }
            run.compare(start..seeds.end.min(start + comparison.batch));
        }
    };
    let (mut totals, mut unexplained) = (Totals::default(), vec![]);
    std::thread::scope(|scope| {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            let (some, others) = worker.join().unwrap_or_else(|e| std::panic::resume_unwind(e));
            totals.add(some);
            unexplained.extend(others);
        }
    });
    (totals, unexplained)
}

#[test]
fn decisions_equal_upstreams() {
    let mut unexplained = Vec::new();
    let mut functions = 0;
    for comparison in COMPARISONS {
        let (totals, others) = run(*comparison);
        println!("{}: {totals:?}, {} unexplained", comparison.name, others.len());
        let (decisions, copied) = (totals.decisions, totals.out_of_place);
        assert!(copied * 12 > decisions && copied * 2 < decisions, "{copied} of {decisions} are out of place");
        let known: usize = totals.differences.values().sum();
        assert!(comparison.blocks || known * 50 <= totals.functions, "{:?}", totals.differences);
        functions += totals.functions;
        unexplained.extend(others);
    }
    let shown: Vec<_> = unexplained.iter().take(40).map(String::as_str).collect();
    assert!(unexplained.is_empty(), "{} of {functions} functions differ\n{}", unexplained.len(), shown.join("\n"));
}

/// Constructs that a short run must contain, to compare them at all.
const CONSTRUCTS: &[&str] = &[
    "arith.constant dense",
    "arith.select",
    "bufferization.alloc_tensor() :",
    "bufferization.alloc_tensor() copy",
    "bufferization.materialize_in_destination",
    "cf.br",
    "cf.cond_br",
    "cf.switch",
    "func.call",
    "func.func private @s3_e0(",
    "linalg.broadcast",
    "linalg.copy",
    "linalg.fill",
    "linalg.generic",
    "linalg.map",
    "linalg.matmul",
    "linalg.reduce",
    "linalg.softmax",
    "linalg.transpose",
    "scf.execute_region",
    "scf.for ",
    "scf.for unsigned",
    "scf.forall",
    "scf.if",
    "scf.index_switch",
    "scf.while",
    "tensor.cast",
    "tensor.collapse_shape",
    "tensor.concat",
    "tensor.expand_shape",
    "tensor.extract ",
    "tensor.extract_slice",
    "tensor.from_elements",
    "tensor.generate",
    "tensor.insert ",
    "tensor.insert_slice",
    "tensor.pad",
    "tensor.parallel_insert_slice",
    "tensor.reshape",
    "tensor.splat",
    "vector.transfer_read",
    "vector.transfer_write",
];

#[test]
fn functions_that_are_compared_are_valid_and_contain_every_construct() {
    let cx = Context::new();
    let mut all = String::new();
    for comparison in COMPARISONS.iter().filter(|c| c.blocks || c.modules == BOTTOM_UP.modules) {
        for seed in 0..comparison.modules.0 {
            let text = comparison.module(seed);
            assert_eq!(text, comparison.module(seed), "the same text for the same seed");
            let module = Module::parse(cx, text.as_bytes(), "random.mlir").unwrap_or_else(|e| panic!("{e}\n{text}"));
            module.op().verify_with_diagnostics().unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
            all += &text;
        }
    }
    let missing: Vec<_> = CONSTRUCTS.iter().filter(|c| !all.contains(**c)).collect();
    assert!(missing.is_empty(), "{missing:?} do not occur");
}
