//! The time until an artifact is ready to run on the CPU, beside that of hashing it on all cores.
//!
//! `cargo bench -p monopour-runtime --bench load -- ARTIFACT`; exit status 1 where it takes 10 ms more. Without an artifact
//! nothing is measured.
#![allow(clippy::print_stdout, reason = "it prints what it measures")]

#[path = "../tests/runtime/trust.rs"]
mod trust;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use monopour_program::{Map, Program};
use monopour_runtime::{Device, DeviceChoice, Options, Session};

/// Loads and hashes, in turns.
const TURNS: usize = 21;
/// What a load may take beside the hash.
const BESIDE: Duration = Duration::from_millis(10);

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn main() -> ExitCode {
    let Some(path) = std::env::args().skip(1).find(|argument| !argument.starts_with('-')) else {
        return ExitCode::SUCCESS;
    };
    let device = Device::open(&DeviceChoice::Cpu).expect("there is always a CPU");
    let (mut loads, mut hashes) = (vec![], vec![]);
    for _ in 0..TURNS {
        let start = Instant::now();
        let program = trust::trusted(Program::open(path.as_ref()).unwrap_or_else(|e| panic!("{e}")));
        let session = Session::load(&device, program, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
        loads.push(start.elapsed());
        drop(session);
        let bytes = Map::open(path.as_ref()).unwrap_or_else(|e| panic!("{e}"));
        let start = Instant::now();
        std::hint::black_box(blake3::Hasher::new().update_rayon(&bytes).finalize());
        hashes.push(start.elapsed());
    }
    let (load, hash) = (median(loads), median(hashes));
    println!("load {load:.1?}, of it the hash alone {hash:.1?}; medians of {TURNS}");
    if load <= hash + BESIDE { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
