//! Results of bufferized functions, compared with the evaluator, which knows values only and so cannot be wrong about memory.
//!
//! Random functions of all constructs are bufferized, lowered through LLVM, run on the CPU, and give bit for bit the evaluator's
//! results, whatever the order of decisions; and no read-only argument is written.

use monopour_bufferize::{AnalysisHeuristic, FunctionBoundaryTypeConversion, Options, run_one_shot};
use monopour_ir::{Context, Module};
use monopour_testkit::batch::{Batch, Outcome, bits};
use monopour_testkit::generate_functions::{self, Shape};
use monopour_testkit::random::{Rng, seeds};
use monopour_testkit::{Dtype, HostTensor, evaluate_in_type};
use std::fmt::Write as _;
use std::ops::Range;

/// Functions compiled together.
const BATCH: usize = 40;

/// A module of every construct that can be executed: without `linalg.pack`, which has no form on memrefs.
pub fn function(seed: u64) -> String {
    let mut texts = (0..).map(|again| generate_functions::module(seed + again * 1_000_003, Shape::whole(seed)));
    texts.find(|text| !text.contains("linalg.pack")).expect("most functions do without")
}

/// The same, with a function that returns parts of the results, of dynamic sizes.
///
/// Under the identity layout callers read rows without gaps, as the runtime does.
pub fn parts_of(text: &str) -> String {
    let start = text.find("func.func @main(").expect("the generator makes @main");
    let (before, main) = text.split_at(start);
    let (head, body) = main.split_once(" {\n").expect("a body");
    let (arguments, results) = head["func.func @main(".len()..].split_once(") -> (").expect("a signature");
    let results: Vec<&str> = results.trim_end_matches(')').split(", ").collect();
    let argument = |a: &str| {
        let (name, ty) = a.split_once(": ").expect("a name and a type");
        (name.to_owned(), ty.split(" {").next().unwrap_or(ty).to_owned())
    };
    let (names, types): (Vec<String>, Vec<String>) = split_arguments(arguments).into_iter().map(argument).unzip();
    let mut out = String::new();
    let (mut returned, mut returned_types) = (vec![], vec![]);
    for (i, ty) in results.iter().enumerate() {
        let value = if results.len() == 1 { "%whole".to_owned() } else { format!("%whole#{i}") };
        let shape = ty.strip_prefix("tensor<").map(|t| t.trim_end_matches("xf32>"));
        let sizes: Vec<u64> = shape.into_iter().flat_map(|s| s.split('x')).filter_map(|d| d.parse().ok()).collect();
        if sizes.is_empty() {
            returned.push(value);
            returned_types.push((*ty).to_owned());
            continue;
        }
        let kept: Vec<String> = sizes
            .iter()
            .enumerate()
            .map(|(dim, size)| {
                let _ = writeln!(out, "  %k{i}_{dim} = arith.constant {} : index", size.div_ceil(2));
                format!("%k{i}_{dim}")
            })
            .collect();
        let list = |item: &str| vec![item; sizes.len()].join(", ");
        let part = format!("tensor<{}f32>", "?x".repeat(sizes.len()));
        let (at, by) = (list("0"), list("1"));
        let _ =
            writeln!(out, "  %p{i} = tensor.extract_slice {value}[{at}] [{}] [{by}] : {ty} to {part}", kept.join(", "));
        returned.push(format!("%p{i}"));
        returned_types.push(part);
    }
    let count = if results.len() == 1 { String::new() } else { format!(":{}", results.len()) };
    format!(
        "{before}func.func private @whole({arguments}) -> ({}) {{\n{body}func.func @main({arguments}) -> ({}) {{\n  \
         %whole{count} = call @whole({}) : ({}) -> ({})\n{out}  return {} : {}\n}}\n",
        results.join(", "),
        returned_types.join(", "),
        names.join(", "),
        types.join(", "),
        results.join(", "),
        returned.join(", "),
        returned_types.join(", "),
    )
}

/// Splits at the commas outside of brackets.
fn split_arguments(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (vec![], 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '<' | '{' | '(' => depth += 1,
            '>' | '}' | ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

/// Options of the pass for a seed: the layouts of signatures vary.
pub fn options(seed: u64) -> Options {
    Options {
        allow_return_allocs_from_loops: true,
        bufferize_function_boundaries: true,
        extensions: true,
        function_boundary_type_conversion: if seed.is_multiple_of(2) {
            FunctionBoundaryTypeConversion::Infer
        } else {
            FunctionBoundaryTypeConversion::Identity
        },
        ..Options::default()
    }
}

/// [`options`], and for some seeds also upstream's form of the pass, or no analysis.
fn faces(seed: u64) -> Vec<Options> {
    let usual = options(seed);
    match seed % 6 {
        0 => vec![Options { copy_before_write: true, ..usual.clone() }, usual],
        1 => vec![Options { extensions: false, ..usual.clone() }, usual],
        _ => vec![usual],
    }
}

/// As [`options`], with the operands decided in an order of `fuzzer`'s.
fn shuffled(seed: u64, fuzzer: u64) -> Options {
    Options { analysis_heuristic: AnalysisHeuristic::Fuzzer, analysis_fuzzer_seed: fuzzer, ..options(seed) }
}

/// Values for the arguments of `@main`.
pub fn inputs(module: &Module, seed: u64) -> Vec<HostTensor> {
    let main = module.symbol("main").expect("the generator makes @main");
    let (types, _) = main.function_type().expect("a function has a type");
    let mut rng = Rng::new(seed ^ 0x1_0000);
    let mut make = |ty: &monopour_ir::Type| {
        let shape: Vec<usize> = ty.shape().unwrap_or_default().iter().map(|d| *d as usize).collect();
        let dtype = match (ty.element().is_index(), ty.element().integer_width()) {
            (true, _) => Dtype::Index,
            (_, Some(width)) => Dtype::Int(width),
            _ => Dtype::F32,
        };
        let (low, high) = match dtype {
            Dtype::Index => (0.0, 4.0),
            Dtype::Int(_) => (0.0, 2.0),
            _ => (-1.0, 1.0),
        };
        HostTensor::random_within(dtype, &shape, low, high, rng.next_u64())
    };
    types.iter().map(&mut make).collect()
}

/// Whether each argument of `@main` is read-only.
pub fn frozen(module: &Module) -> Vec<bool> {
    let main = module.symbol("main").expect("the generator makes @main");
    let attrs = main.attr("arg_attrs").and_then(|a| a.as_array()).unwrap_or_default();
    let count = main.function_type().map_or(0, |t| t.0.len());
    let writable = |i: usize| attrs.get(i).and_then(|a| a.get("bufferization.writable")).and_then(|w| w.as_bool());
    (0..count).map(|i| writable(i) == Some(false)).collect()
}

/// A function in a batch, with its expected results.
struct Expected {
    number: usize,
    what: String,
    values: Vec<Vec<i64>>,
}

/// Evaluates, bufferizes and adds a function under each of the options.
fn add(batch: &mut Batch, text: &str, seed: u64, all: &[Options]) -> Result<Vec<Expected>, String> {
    Context::scope(|cx| {
        let module = Module::parse(cx, text.as_bytes(), "random.mlir").map_err(|d| d.to_string())?;
        let (inputs, frozen) = (inputs(&module, seed), frozen(&module));
        let mut values = bits(&evaluate_in_type(&module, "main", &inputs).map_err(|e| e.to_string())?);
        let kept = inputs.iter().zip(&frozen).filter(|(_, f)| **f).map(|(i, _)| i.clone());
        values.extend(bits(&kept.collect::<Vec<_>>()));
        let mut out = vec![];
        for options in all {
            let module = module.duplicate();
            match run_one_shot(module.op(), options) {
                // Two ops that cannot copy their operand may require the impossible, which is an error.
                Err(e) if e.0.iter().any(|d| d.code == "B0105") => continue,
                done => done.map_err(|d| format!("{d}\nunder {options:?}"))?,
            };
            let number = batch.add(&module, &inputs, &frozen)?;
            let what = match options {
                Options { copy_before_write: true, .. } => "copy before write".to_owned(),
                Options { extensions: false, .. } => "no extensions".to_owned(),
                _ => format!("fuzzer {}", options.analysis_fuzzer_seed),
            };
            let what = format!("seed {seed}, {what}");
            out.push(Expected { number, what, values: values.clone() });
        }
        Ok(out)
    })
}

/// Differences of the functions of these seeds, and the number of runs.
fn differences(
    seeds: Range<u64>,
    text: &dyn Fn(u64) -> String,
    all: &dyn Fn(u64) -> Vec<Options>,
) -> (Vec<String>, usize) {
    let (mut wrong, mut run) = (vec![], 0);
    let seeds: Vec<u64> = seeds.collect();
    for some in seeds.chunks(BATCH) {
        let (mut batch, mut expected) = (Batch::default(), vec![]);
        for &seed in some {
            match add(&mut batch, &text(seed), seed, &all(seed)) {
                Ok(added) => expected.extend(added),
                Err(e) => wrong.push(format!("seed {seed}: {e}")),
            }
        }
        let outcomes = batch.run().unwrap_or_else(|e| panic!("seeds from {}: {e}", some[0]));
        run += outcomes.len();
        for Expected { number, what, values } in expected {
            for (outcome, time) in outcomes[number].iter().zip(["first", "second"]) {
                match outcome {
                    Outcome::Values(found) if *found == values => {}
                    Outcome::Values(found) => {
                        wrong.push(format!("{what}, {time} run: {}", first_difference(&values, found)))
                    }
                    Outcome::Crash(why) => wrong.push(format!("{what}, {time} run: {why}")),
                }
            }
        }
    }
    (wrong, run)
}

fn first_difference(expected: &[Vec<i64>], found: &[Vec<i64>]) -> String {
    let list = (0..expected.len()).find(|i| found.get(*i) != Some(&expected[*i])).unwrap_or(0);
    let (expected, found) = (&expected[list], found.get(list).cloned().unwrap_or_default());
    let at = (0..expected.len()).find(|i| found.get(*i) != Some(&expected[*i])).unwrap_or(0);
    let show = |v: Option<&i64>| v.map(|v| format!("{:?}", f32::from_bits(*v as u32)));
    format!("list {list}, element {at}: {:?}, expected {:?}", show(found.get(at)), show(expected.get(at)))
}

fn check(seeds: Range<u64>, at_least: usize, text: &dyn Fn(u64) -> String, all: &dyn Fn(u64) -> Vec<Options>) {
    let (wrong, run) = differences(seeds, text, all);
    println!("{run} functions run, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{} of {run} wrong\n{}", wrong.len(), wrong[..wrong.len().min(60)].join("\n"));
    assert!(run >= at_least, "only {run} functions were run");
}

#[test]
fn random_functions_compute_what_the_evaluator_says() {
    let seeds = seeds(150, 10_000);
    let count = (seeds.end - seeds.start) as usize;
    check(seeds, count * 99 / 100, &function, &faces);
}

#[test]
fn no_order_of_decisions_changes_a_value() {
    let seeds = seeds(6, 500);
    let count = 20 * (seeds.end - seeds.start) as usize * 9 / 10;
    check(seeds, count, &function, &|seed| (1..=20).map(|fuzzer| shuffled(seed, fuzzer)).collect());
}

#[test]
fn parts_of_results_are_row_major() {
    let identity =
        |seed| Options { function_boundary_type_conversion: FunctionBoundaryTypeConversion::Identity, ..options(seed) };
    let seeds = seeds(60, 2_000);
    let count = (seeds.end - seeds.start) as usize;
    check(seeds, count * 9 / 10, &|seed| parts_of(&function(seed)), &|seed| vec![identity(seed)]);
}
