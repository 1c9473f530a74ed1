//! Mutated ONNX models, each read, imported and compiled in a child process.
//!
//! ```text
//! cargo run --release -p monopour-fuzz -- onnx --cases 10000 --seed 1
//! cargo run --release -p monopour-fuzz -- onnx --file model.onnx     one file
//! ```
//!
//! A *finding* is a panic, a crash, no end within the limit, more memory than the limit beyond an idle child's, or a
//! diagnostic that is not the importer's or has no hint. A case follows from the seed and its number alone.
//!
//! The files: `seeds` (models), `mutate` (changes to them), `child` (runs the cases).

mod child;
mod mutate;
mod seeds;

use crate::link::Link;
use monopour_frontend::onnx::proto::ModelProto;
use monopour_testkit::random::Rng;
use prost::Message;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Most memory of a case beyond that of an idle child.
const MEMORY_BYTES: u64 = 200 << 20;
/// Longest time of a case; debug builds run beside other tests.
const LIMIT: Duration = Duration::from_secs(if cfg!(debug_assertions) { 60 } else { 10 });
/// How often the memory of a running child is looked at.
const WATCH: Duration = Duration::from_millis(20);
/// Cases per child: MLIR keeps some memory of every context.
const CASES_PER_CHILD: u64 = 100;
/// Children at a time.
const CHILDREN: usize = 2;

/// The command line after `onnx`.
pub fn main(args: &[&str]) -> ExitCode {
    match args {
        ["--child", folder] => child::serve(PathBuf::from(folder)),
        ["--file", file] => one(Path::new(file)),
        ["--cases", cases] => crate::with_number(cases, |cases| many(cases, 0)),
        ["--cases", cases, "--seed", seed] => {
            crate::with_number(cases, |cases| crate::with_number(seed, |seed| many(cases, seed)))
        }
        _ => crate::usage(),
    }
}

/// The folder in which models lie, with a file of external data.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("monopour-fuzz-{}", std::process::id()));
        let (name, length) = seeds::EXTERNAL;
        let made = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(folder.join(name), vec![0; length]));
        made.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// How a case ended.
enum Outcome {
    Compiled,
    /// By these codes.
    Refused(String),
    Finding(String),
}

/// A child, with the memory that it has before any case.
struct Worker<'a> {
    folder: &'a Path,
    link: Link,
    idle_bytes: u64,
    cases: u64,
}

impl<'a> Worker<'a> {
    fn start(folder: &'a Path) -> Self {
        let link = Link::start(&[OsStr::new("onnx"), OsStr::new("--child"), folder.as_os_str()]);
        let mut worker = Self { folder, link, idle_bytes: u64::MAX, cases: 0 };
        // Code that a compilation touches counts as idle.
        let warm = seeds::seeds().swap_remove(0).encode_to_vec();
        let _ = worker.answer(&warm);
        worker.idle_bytes = worker.link.peak_bytes();
        worker
    }

    /// Runs a case; a finding counts if a fresh child has it too. Also its memory.
    fn run(&mut self, case: &[u8]) -> (Outcome, u64) {
        if self.cases >= CASES_PER_CHILD {
            *self = Self::start(self.folder);
        }
        self.cases += 1;
        match self.answer(case) {
            (Outcome::Finding(_), _) => {
                *self = Self::start(self.folder);
                let again = self.answer(case);
                *self = Self::start(self.folder);
                again
            }
            ended => ended,
        }
    }

    fn answer(&mut self, case: &[u8]) -> (Outcome, u64) {
        let most = self.idle_bytes.saturating_add(MEMORY_BYTES);
        let (start, mut phase, mut peak) = (Instant::now(), "start".to_owned(), 0);
        self.link.send(case);
        let finding = |what: String, phase: &str| Outcome::Finding(format!("{what} in phase {phase}"));
        loop {
            let line = match self.link.line(WATCH) {
                Ok(line) => line,
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                    let now = self.link.peak_bytes();
                    if now > most {
                        return (finding(format!("{} MB of memory", now >> 20), &phase), now - self.idle_bytes);
                    }
                    if start.elapsed() > LIMIT {
                        return (finding("no end".to_owned(), &phase), peak);
                    }
                    continue;
                }
                Err(_) => {
                    let how = self.link.status().map_or_else(|| "no answer".to_owned(), |status| status.to_string());
                    return (finding(how, &phase), peak);
                }
            };
            let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
            match word {
                "phase" => rest.clone_into(&mut phase),
                "peak" => peak = rest.parse::<u64>().unwrap_or(0).saturating_sub(self.idle_bytes),
                _ if peak > MEMORY_BYTES => return (finding(format!("{} MB of memory", peak >> 20), &phase), peak),
                "compiled" => return (Outcome::Compiled, peak),
                "refused" => return (Outcome::Refused(rest.to_owned()), peak),
                _ => return (finding(rest.to_owned(), &phase), peak),
            }
        }
    }
}

/// Runs one file.
fn one(file: &Path) -> ExitCode {
    let bytes = std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let folder = Folder::new();
    match Worker::start(&folder.0).run(&bytes) {
        (Outcome::Finding(what), _) => {
            println!("{what}");
            ExitCode::FAILURE
        }
        (Outcome::Compiled, peak) => ended("compiled", peak),
        (Outcome::Refused(codes), peak) => ended(&codes, peak),
    }
}

fn ended(how: &str, peak: u64) -> ExitCode {
    println!("{how}, {} KB of memory", peak >> 10);
    ExitCode::SUCCESS
}

/// The case of a number.
fn case(seeds: &[ModelProto], seed: u64, number: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed.wrapping_mul(1 << 32).wrapping_add(number));
    // The seeds come first as they are.
    match seeds.get(usize::try_from(number).unwrap_or(usize::MAX)) {
        Some(proto) => proto.encode_to_vec(),
        None => mutate::mutate(&mut rng, rng_pick(seeds, number), seeds),
    }
}

fn rng_pick(seeds: &[ModelProto], number: u64) -> &ModelProto {
    &seeds[(number % seeds.len() as u64) as usize]
}

/// What a run has seen.
#[derive(Default)]
struct Totals {
    compiled: u64,
    /// By their codes.
    refused: BTreeMap<String, u64>,
    findings: u64,
    peak: u64,
    slowest: Duration,
}

/// Runs the seeds and mutations of them. Exit status 1 if there are findings, or a seed does not compile.
fn many(cases: u64, seed: u64) -> ExitCode {
    let (seeds, folder) = (seeds::seeds(), Folder::new());
    let (next, totals) = (AtomicU64::new(0), Mutex::new(Totals::default()));
    let work = || {
        let mut worker = Worker::start(&folder.0);
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= cases {
                return;
            }
            let bytes = case(&seeds, seed, number);
            let start = Instant::now();
            let (mut outcome, peak) = worker.run(&bytes);
            let elapsed = start.elapsed();
            if let (Outcome::Refused(codes), true) = (&outcome, number < seeds.len() as u64) {
                outcome = Outcome::Finding(format!("seed {number} is refused: {codes}"));
            }
            let mut totals = totals.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            totals.add(outcome, peak, elapsed, || keep(&bytes, seed, number));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..CHILDREN {
            scope.spawn(work);
        }
    });
    let totals = totals.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    println!("{cases} cases: {totals}");
    if totals.findings == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Totals {
    fn add(&mut self, outcome: Outcome, peak: u64, elapsed: Duration, keep: impl FnOnce() -> PathBuf) {
        self.peak = self.peak.max(peak);
        self.slowest = self.slowest.max(elapsed);
        match outcome {
            Outcome::Compiled => self.compiled += 1,
            Outcome::Refused(codes) => *self.refused.entry(codes).or_default() += 1,
            Outcome::Finding(what) => {
                self.findings += 1;
                println!("{}: {what}", keep().display());
            }
        }
    }
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { compiled, refused, findings, peak, slowest } = self;
        let count: u64 = refused.values().sum();
        let codes: Vec<String> = refused.iter().map(|(codes, count)| format!("{codes} {count}")).collect();
        write!(f, "{compiled} compiled, {count} refused ({}), {findings} findings, ", codes.join("; "))?;
        write!(f, "at most {} KB of memory and {} ms", peak >> 10, slowest.as_millis())
    }
}

/// Writes a case to the folder of findings.
fn keep(bytes: &[u8], seed: u64, number: u64) -> PathBuf {
    let folder = crate::findings_folder();
    let file = folder.join(format!("{seed}-{number}.onnx"));
    if let Err(error) = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&file, bytes)) {
        eprintln!("{}: {error}", file.display());
    }
    file
}
