//! Sentences in, similarities out: how an application embeds monopour.
//!
//! ```text
//! monopour-embed MODEL.onnx tokenizer.json --device auto "A first sentence." "A second one."
//! ```
//! The model takes tokens and returns one vector per sentence (`sentence_embedding`), or one per token
//! (`last_hidden_state`, averaged here), as exports of sentence transformers do. `make embed` runs it on all-MiniLM-L6-v2.
//!
//! The steps, to copy:
//!
//! 1. `Device::open`: a GPU or the CPU.
//! 2. `cache`: compile once for this device, keep the artifact beside the model, reuse it at the next start.
//! 3. `Session::load`: the program on the device, with its weights.
//! 4. `embedder`: tokenize, `Session::run_named`, one vector per sentence; sizes that are symbols in the model take any value.
//!
//! `monopour::Error` is what each of them fails with; it is shown with its code and advice.

mod cache;
mod embedder;
#[cfg(test)]
mod tests;

use clap::Parser;
use clap::builder::RangedU64ValueParser;
use embedder::Embedder;
use monopour::CompileOptions;
use monopour::runtime::{Device, DeviceChoice, Options, Session};
use std::error::Error;
use std::io::BufRead;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use tokenizers::Tokenizer;

/// Print how similar sentences are, and the nearest to each.
#[derive(Parser)]
struct Arguments {
    /// The model: .onnx.
    model: PathBuf,
    /// Its tokenizer: tokenizer.json.
    tokenizer: PathBuf,
    /// The sentences; without any, the lines of standard input.
    sentences: Vec<String>,
    /// auto (the best hardware GPU, else the CPU), gpu, cpu, an index or a name.
    #[arg(long, default_value = "auto")]
    device: String,
    /// The most sentences of one run, where the model leaves their number open.
    #[arg(long, default_value_t = 32, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    batch: usize,
    /// Print the times of the steps to standard error.
    #[arg(long)]
    times: bool,
}

/// Errors of monopour, of the tokenizer, of standard input.
type AnyError = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The text to print.
fn run(arguments: &Arguments) -> Result<String, AnyError> {
    let start = Instant::now();
    let mut times = Times { shown: arguments.times, since: start };
    let mut embedder = open(arguments, &mut times)?;
    let sentences = match &arguments.sentences[..] {
        [] => lines(std::io::stdin().lock())?,
        given => given.to_vec(),
    };
    if let Some(first) = sentences.first().filter(|_| arguments.times) {
        embedder.embed(std::slice::from_ref(first))?;
        times.step("first run");
        eprintln!("{:9.1} ms  from start to first embedding", start.elapsed().as_secs_f64() * 1e3);
        times.since = Instant::now();
    }
    let embeddings = embedder.embed(&sentences)?;
    times.step(&format!("all {} sentences", sentences.len()));
    Ok(report(&sentences, &embeddings))
}

/// The lines that are not blank.
fn lines(text: impl BufRead) -> std::io::Result<Vec<String>> {
    text.lines().filter(|line| !line.as_ref().is_ok_and(|line| line.trim().is_empty())).collect()
}

fn open(arguments: &Arguments, times: &mut Times) -> Result<Embedder, AnyError> {
    let device = Device::open(&DeviceChoice::parse(&arguments.device)).map_err(monopour::Error::from)?;
    times.step(&format!("open {}", device.name()));
    let tokenizer = Tokenizer::from_file(&arguments.tokenizer)
        .map_err(|error| format!("error: cannot read {}: {error}", arguments.tokenizer.display()))?;
    times.step("tokenizer");
    let (program, origin) = cache::load(&arguments.model, &CompileOptions::for_device(&device))?;
    times.step(match origin {
        cache::Origin::Compiled => "compile, and write the artifact",
        cache::Origin::Cached => "artifact of an earlier start",
    });
    let session = Session::load(&device, Arc::new(program), &Options::default()).map_err(monopour::Error::from)?;
    times.step("load");
    Embedder::new(session, tokenizer, arguments.batch)
}

/// The times of steps that follow one another.
struct Times {
    shown: bool,
    since: Instant,
}

impl Times {
    fn step(&mut self, name: &str) {
        if self.shown {
            eprintln!("{:9.1} ms  {name}", self.since.elapsed().as_secs_f64() * 1e3);
        }
        self.since = Instant::now();
    }
}

/// The matrix of similarities, and the nearest other sentence of each.
fn report(sentences: &[String], embeddings: &[Vec<f64>]) -> String {
    let similarities: Vec<Vec<f64>> =
        embeddings.iter().map(|a| embeddings.iter().map(|b| embedder::similarity(a, b)).collect()).collect();
    let mut lines: Vec<String> = similarities
        .iter()
        .map(|row| row.iter().map(|value| format!("{value:8.4}")).collect::<Vec<_>>().join(""))
        .collect();
    for (at, row) in similarities.iter().enumerate() {
        lines.push(sentences[at].clone());
        if let Some(nearest) = nearest(row, at) {
            lines.push(format!("  {:.4}  {}", row[nearest], sentences[nearest]));
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The largest similarity of a row, except that of the sentence to itself.
fn nearest(row: &[f64], itself: usize) -> Option<usize> {
    (0..row.len()).filter(|at| *at != itself).max_by(|a, b| row[*a].total_cmp(&row[*b]))
}
