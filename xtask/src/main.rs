//! Checks of the repository.
//!
//! * `tidy`: house rules; `layering`: dependencies and `unsafe`; `circles`, on `modules`: dependences between files.
//! * `source`: Rust files as tokens.

mod circles;
mod layering;
mod lengths;
mod modules;
mod source;
mod tidy;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo run -p monopour-xtask -- COMMAND

  tidy     check layering, `unsafe`, circles, file headers, names of ops and of the contract, error pages, lengths and unbound TODOs
  circles  print the largest circle between the files of each crate, and why it is one";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => finish(tidy::run(root())),
        ["circles"] => print(tidy::largest_circles(root())),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// The repository: the folder above this crate's.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository")
}

fn print(lines: Result<Vec<String>, String>) -> ExitCode {
    match lines {
        Ok(lines) => {
            lines.iter().for_each(|line| println!("{line}"));
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("circles could not run: {message}");
            ExitCode::FAILURE
        }
    }
}

fn finish(findings: Result<Vec<String>, String>) -> ExitCode {
    match findings {
        Ok(findings) if findings.is_empty() => {
            println!("tidy: nothing found");
            ExitCode::SUCCESS
        }
        Ok(findings) => {
            findings.iter().for_each(|f| println!("{f}"));
            println!("tidy: {} findings", findings.len());
            ExitCode::FAILURE
        }
        Err(message) => {
            eprintln!("tidy could not run: {message}");
            ExitCode::FAILURE
        }
    }
}
