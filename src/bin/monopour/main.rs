//! The command line: one file per command.
//!
//! Exit status: 0 done; 1 the input is wrong; 2 the command line is wrong; 3 the device or the machine failed.
//! Results go to standard output, everything else to standard error.

#[cfg(feature = "compiler")]
mod bench;
#[cfg(feature = "compiler")]
mod compile;
mod devices;
#[cfg(feature = "compiler")]
mod explain;
mod failure;
mod inputs;
mod inspect;
#[cfg(feature = "compiler")]
mod inspect_onnx;
#[cfg(feature = "compiler")]
mod log;
mod model;
mod names;
#[cfg(feature = "compiler")]
mod opt;
mod outputs;
mod plan;
mod progress;
mod run;
#[cfg(feature = "compiler")]
mod source;
mod stdout;
mod trace;
mod trust;

#[cfg(feature = "compiler")]
use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use failure::Failure;

/// MLIR's C++ uses it, too: passes take a fifth less time than with the system's, and grow more evenly.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const AFTER_HELP: &str = "\
MODEL is .mlir, .mlirbc, .onnx, or a compiled artifact .mpr.

MONOPOUR_LOG=PHASE=trace,...  print what phases decide, and where: fuse, tile, bufferize, dealloc, distribute, plan
MONOPOUR_CACHE_DIR=DIR        keep native code of kernels and the driver's pipeline cache there; empty: keep none";

/// Compiles tensor programs and runs them on GPUs and CPUs.
#[derive(Parser)]
#[command(name = "monopour", version, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(Box<run::RunArgs>),
    #[cfg(feature = "compiler")]
    Compile(compile::CompileArgs),
    /// Run passes on MLIR: mlir-opt's flags, with monopour's own passes in their places.
    #[cfg(feature = "compiler")]
    #[command(after_help = "Example: monopour opt -one-shot-bufferize=\"bufferize-function-boundaries\" input.mlir")]
    Opt {
        /// As mlir-opt takes them.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    #[cfg(feature = "compiler")]
    Explain(explain::ExplainArgs),
    #[cfg(feature = "compiler")]
    Bench(bench::BenchArgs),
    Inspect(inspect::InspectArgs),
    Plan(plan::PlanArgs),
    Devices(devices::DevicesArgs),
    /// Print a completion script for a shell.
    #[command(after_help = "Example: monopour completions bash > /etc/bash_completion.d/monopour")]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    // `opt` gets its arguments as they are, `--help` included: mlir-opt's flags are not clap's.
    #[cfg(feature = "compiler")]
    {
        if let Err(failure) = log::install() {
            eprintln!("{failure}");
            return ExitCode::from(failure.status());
        }
        let args: Vec<OsString> = std::env::args_os().skip(1).collect();
        if args.first().is_some_and(|command| command == "opt") {
            return ExitCode::from(u8::try_from(opt::run(&args[1..])).unwrap_or(1));
        }
    }
    // clap ends the process itself: status 2 for a wrong command line, 0 for help.
    match dispatch(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(failure.status())
        }
    }
}

fn dispatch(command: Command) -> Result<(), Failure> {
    match command {
        Command::Run(args) => run::run(&args),
        #[cfg(feature = "compiler")]
        Command::Compile(args) => compile::run(&args),
        // Unreachable: `main` handles `opt` before clap.
        #[cfg(feature = "compiler")]
        Command::Opt { args } => match opt::run(&args) {
            0 => Ok(()),
            _ => Err(Failure::input("error: a pass failed")),
        },
        #[cfg(feature = "compiler")]
        Command::Explain(args) => explain::run(&args),
        #[cfg(feature = "compiler")]
        Command::Bench(args) => bench::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Devices(args) => devices::run(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "monopour", &mut script);
            stdout::print(&String::from_utf8_lossy(&script))
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        super::Cli::command().debug_assert();
    }
}
