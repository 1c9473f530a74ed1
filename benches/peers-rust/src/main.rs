//! Times candle and tract on the benchmark programs, and measures what one core of the machine can do.
//!
//! `monopour-peers candle|tract DIR PROGRAM`: DIR is what `benches/gen.py` wrote. Prints the median wall milliseconds of a run,
//! inputs in place and the first run excluded, after a check of the values.
//! `monopour-peers machine fma [--narrow | --threads N]`, `machine read BYTES [--threads N]`, `machine copy BYTES`,
//! `machine chain ELEMENTS`: see `machine.rs`.
//! The answer is one line of JSON.

mod candle;
mod machine;
mod npy;
mod timing;
mod tract;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

/// Where the peers, the files or the command line fail, one message is all that a caller needs.
pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

const USAGE: &str = "usage: monopour-peers candle|tract DIR PROGRAM
       monopour-peers machine fma [--narrow | --threads N] | machine read BYTES [--threads N]
       monopour-peers machine copy BYTES | machine chain ELEMENTS";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(answer) => {
            println!("{answer}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Result<serde_json::Value> {
    match words {
        ["candle", directory, program] => candle::measure(Path::new(directory), program),
        ["tract", directory, program] => tract::measure(Path::new(directory), program),
        ["machine", "fma"] => Ok(machine::fma(1, false)),
        ["machine", "fma", "--narrow"] => Ok(machine::fma(1, true)),
        ["machine", "fma", "--threads", threads] => Ok(machine::fma(count(threads)?, false)),
        ["machine", "read", bytes] => Ok(machine::read(bytes.parse()?, 1)),
        ["machine", "read", bytes, "--threads", threads] => Ok(machine::read(bytes.parse()?, count(threads)?)),
        ["machine", "copy", bytes] => Ok(machine::copy(bytes.parse()?)),
        ["machine", "chain", elements] => Ok(machine::chain(elements.parse()?)),
        _ => Err(USAGE.into()),
    }
}

fn count(threads: &str) -> Result<usize> {
    let threads = threads.parse()?;
    if (1..=1024).contains(&threads) { Ok(threads) } else { Err("--threads takes 1 to 1024".into()) }
}
