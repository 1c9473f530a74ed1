//! Fuzzes the bufferization pipeline with MLIR text: mutated modules, each parsed and bufferized in a child process.
//!
//! ```text
//! cargo run --release -p monopour-fuzz -- --seconds 3600 --seed 1
//! cargo run --release -p monopour-fuzz -- --replay          every file of the corpus and every test program, once
//! cargo run --release -p monopour-fuzz -- onnx --cases 10000   ONNX models instead, see `onnx`
//! ```
//!
//! A *finding* is a panic of ours, a crash or a hang after parsing, or a result that MLIR's verifier rejects.
//! A crash while parsing is upstream's, and so is one that only follows invalid text: the parser left the process broken.
//! Both are counted, kept apart, and described in `docs/upstream-crashes.md`. Not libFuzzer: LLVM's libraries come without
//! coverage instrumentation. Novelty is judged by the child's report instead: the codes of the diagnostics and the names of
//! the resulting operations.
//!
//! The files: `mutate` (changes to text), `worker` (the child as its parent sees it), `child` (runs the cases), `link` (the pipe between
//! them); `onnx` is the same for ONNX models.

mod child;
mod link;
mod mutate;
mod onnx;
mod worker;

use monopour_testkit::random::Rng;
use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use worker::{Outcome, Worker};

/// Longest mutated text: a case should take milliseconds.
const MAX_BYTES: usize = 16 * 1024;
/// Most modules that are mutated at a time; the oldest is dropped first.
const MAX_POPULATION: usize = 4_000;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["--child"] => child::serve(),
        ["--replay"] => replay(),
        ["onnx", ref rest @ ..] => onnx::main(rest),
        ["--sequence", file] => sequence(Path::new(file)),
        [] => fuzz(60, 0),
        ["--seconds", seconds] => with_number(seconds, |s| fuzz(s, 0)),
        ["--seconds", seconds, "--seed", seed] => with_number(seconds, |s| with_number(seed, |seed| fuzz(s, seed))),
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: monopour-fuzz [--seconds N [--seed N] | --replay | --sequence FILE]");
    eprintln!("       monopour-fuzz onnx --cases N [--seed N] | onnx --file FILE");
    ExitCode::from(2)
}

fn with_number(text: &str, run: impl FnOnce(u64) -> ExitCode) -> ExitCode {
    text.parse().map_or_else(|_| usage(), run)
}

fn corpus_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// Folder of findings; not part of the repository.
fn findings_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from).join("fuzz")
}

/// The `.mlir` files of a folder, with their names, sorted.
fn corpus(folder: &Path) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries
        .filter(|e| e.path().extension().is_some_and(|x| x == "mlir"))
        .filter_map(|e| Some((e.file_name().to_string_lossy().into_owned(), std::fs::read_to_string(e.path()).ok()?)))
        .collect();
    files.sort();
    files
}

/// The seeds of mutation and replay: the corpus, and the test programs of bufferization.
fn seeds() -> Vec<(String, String)> {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bufferize/tests/programs");
    [corpus_folder(), programs.join("copies"), programs.join("meaning"), programs]
        .iter()
        .flat_map(|f| corpus(f))
        .collect()
}

/// Runs every seed once. Exit status 1 if one of them is a finding.
fn replay() -> ExitCode {
    let files = seeds();
    let (mut worker, mut findings) = (Worker::start(), 0);
    for (name, text) in &files {
        let outcome = worker.run(text);
        if outcome.is_finding() {
            findings += 1;
            println!("{name}: {outcome}");
        }
    }
    println!("{} files, {findings} findings", files.len());
    if findings == 0 && !files.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs the cases of one child again, as written by `keep`, and reports the failing ones.
fn sequence(file: &Path) -> ExitCode {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let mut worker = Worker::start();
    for (number, case) in text.split("\n// -----\n").enumerate() {
        let outcome = worker.run(case);
        if outcome.is_finding() || outcome.has_crashed() {
            println!("case {number}: {outcome}");
            return ExitCode::FAILURE;
        }
    }
    println!("nothing found");
    ExitCode::SUCCESS
}

/// Counts of a run.
#[derive(Default)]
struct Totals {
    cases: u64,
    parsed: u64,
    bufferized: u64,
    upstream: u64,
    findings: u64,
}

/// Mutates for some seconds. Exit status 1 if something was found.
fn fuzz(seconds: u64, seed: u64) -> ExitCode {
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut rng = Rng::new(seed);
    let mut population: VecDeque<String> = seeds().into_iter().map(|(_, text)| text).collect();
    population.extend((0..200).map(|s| monopour_testkit::generate_functions::function(seed.wrapping_mul(1_000) + s)));
    let (mut seen, mut totals) = (HashSet::new(), Totals::default());
    let mut worker = Worker::start();
    let mut report = Instant::now() + Duration::from_secs(60);
    while Instant::now() < end {
        let parent = &population[rng.below(population.len() as u64) as usize];
        let donor = &population[rng.below(population.len() as u64) as usize];
        let text = mutate::mutate(&mut rng, parent, donor);
        if text.len() > MAX_BYTES {
            continue;
        }
        let outcome = worker.run(&text);
        totals.count(&outcome);
        let is_new = seen.insert(outcome.signature());
        let has_crashed = outcome.has_crashed();
        if is_new && (outcome.is_finding() || has_crashed) {
            keep(worker.cases(), &outcome);
        }
        if has_crashed {
            worker.restart();
        } else if is_new && !outcome.is_finding() {
            if population.len() == MAX_POPULATION {
                population.pop_front();
            }
            population.push_back(text);
        }
        if Instant::now() > report {
            report += Duration::from_secs(60);
            println!("{totals}, {} kinds of result", seen.len());
        }
    }
    println!("{totals}, {} kinds of result", seen.len());
    if totals.findings == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Totals {
    fn count(&mut self, outcome: &Outcome) {
        self.cases += 1;
        match outcome {
            Outcome::NotParsed { .. } => {}
            Outcome::UpstreamCrash { .. } | Outcome::UpstreamHaunted { .. } => self.upstream += 1,
            Outcome::Refused { .. } => self.parsed += 1,
            Outcome::Bufferized { .. } => {
                self.parsed += 1;
                self.bufferized += 1;
            }
            _ => {
                self.parsed += 1;
                self.findings += 1;
            }
        }
    }
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { cases, parsed, bufferized, upstream, findings } = self;
        write!(f, "{cases} cases: {parsed} parsed, {bufferized} bufferized, {findings} findings, {upstream} upstream's")
    }
}

/// Writes a case to the folder of findings; with all cases of the child, if it does not fail alone.
fn keep(cases: &[String], outcome: &Outcome) {
    let folder = findings_folder();
    let name = format!("{}-{:016x}.mlir", outcome.kind(), outcome.signature());
    println!("{name}: {outcome}");
    let needs_all = matches!(outcome, Outcome::Haunted { .. } | Outcome::UpstreamHaunted { .. });
    let kept = if needs_all { cases } else { &cases[cases.len().saturating_sub(1)..] };
    let text = kept.join("\n// -----\n");
    let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(folder.join(&name), text));
    if let Err(error) = written {
        eprintln!("{}: {error}", folder.join(name).display());
    }
}
