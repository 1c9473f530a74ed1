//! Programs that run in a process of another architecture: an emulator with the runtime's example `serve`.

use crate::wire;
use monopour::runtime::HostTensor;
use std::process::{Child, Command, Stdio};

/// The variable with the command line of the process for aarch64, set by `make test-aarch64`.
const AARCH64: &str = "MONOPOUR_AARCH64_RUNNER";

/// Runs programs one after another in a process, which is started again when a program has ended it.
pub struct Emulator {
    command: Vec<String>,
    process: Option<Child>,
}

impl Emulator {
    /// That of [`AARCH64`]; `None` where the variable is not set.
    pub fn aarch64() -> Option<Self> {
        let Ok(line) = std::env::var(AARCH64) else {
            println!("skipped: {AARCH64} is not set (make test-aarch64)");
            return None;
        };
        Some(Self { command: line.split_whitespace().map(str::to_owned).collect(), process: None })
    }

    /// Runs an encoded program; see `measure::run` for the inputs and the costs.
    pub fn run(
        &mut self,
        program: Vec<u8>,
        threads: usize,
        first: &[HostTensor],
        inputs: &[HostTensor],
    ) -> Result<(Vec<HostTensor>, [u64; 6]), String> {
        let answer = self.ask(&wire::request(program, threads, first, inputs));
        match answer.map_err(|e| e.to_string()) {
            Ok(Some(answer)) => wire::parse_answer(&answer),
            Ok(None) => Err(self.stop("ended")),
            Err(error) => Err(self.stop(&error)),
        }
    }

    fn ask(&mut self, request: &[Vec<u8>]) -> std::io::Result<Option<Vec<Vec<u8>>>> {
        if self.process.is_none() {
            let (program, arguments) = self.command.split_first().expect("the command line has a program");
            let mut command = Command::new(program);
            command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
            self.process = Some(command.spawn()?);
        }
        let process = self.process.as_mut().expect("it has just been started");
        wire::write(process.stdin.as_mut().expect("it is a pipe"), request)?;
        wire::read(process.stdout.as_mut().expect("it is a pipe"))
    }

    fn stop(&mut self, why: &str) -> String {
        let status = self.process.take().map(|mut process| {
            // Without standard input it ends, if it has not.
            drop(process.stdin.take());
            process.wait().map_or_else(|e| e.to_string(), |status| status.to_string())
        });
        format!("the process of the program: {why} ({})", status.unwrap_or_default())
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // Without standard input it ends by itself.
            drop(process.stdin.take());
            let _ = process.wait();
        }
    }
}
