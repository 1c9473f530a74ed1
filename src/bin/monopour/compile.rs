//! `monopour compile`: a model to an artifact, or to the IR after a phase.

use crate::failure::Failure;
use crate::inputs;
use crate::progress::Progress;
use crate::source::{self, SourceArgs};
use clap::{Args, ValueEnum};
use monopour::options::{Effort, OnDump, Tuning};
use monopour::pipeline::{Compiled, PHASES};
use monopour::program::{GpuDescription, Signature};
use monopour::runtime::{Device, DeviceChoice};
use monopour::tune::{self, TunedKernel};
use monopour::{CompileOptions, TargetDescription};
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Values of `--emit` besides the phases.
const PRODUCTS: [&str; 6] = ["transforms", "wgsl", "spirv", "host", "llvm", "object"];

/// Compile a model.
#[derive(Args)]
#[command(after_help = "Example: monopour compile mlp.mlir -o mlp.mpr --target gpu:portable --target cpu:x86-64-v3")]
pub struct CompileArgs {
    /// The model: .mlir, .mlirbc, or .onnx.
    model: PathBuf,
    /// The artifact to write.
    #[arg(short, long, value_name = "OUT.mpr", required_unless_present = "emit")]
    output: Option<PathBuf>,
    /// gpu[:FILE.json|portable] or cpu[:CPU,...]; several make one artifact with a variant each. CPU: host, x86-64, -v2, -v3,
    /// -v3-vnni, -v4, -v4-vnni or -v4-amx behind it, aarch64, -dotprod or -i8mm behind it, generic.
    /// Default: the device that `--device auto` takes here.
    #[arg(long, value_name = "TARGET")]
    target: Vec<OsString>,
    #[arg(long, value_name = "PHASE", help = emit_help())]
    emit: Option<String>,
    /// Also print the IR after these phases to standard error.
    #[arg(long, value_name = "PHASE,...", value_delimiter = ',')]
    dump_after: Vec<String>,
    /// Print the IR after each pattern of each conversion of ours to standard error: much text, all of it valid.
    #[arg(long)]
    dump_after_each_pattern: bool,
    /// A transform script, with the sequence @__transform_main, that replaces the generated one.
    #[arg(long, value_name = "FILE.mlir")]
    schedule: Option<PathBuf>,
    /// Choose the kernels of the GPU at hand by measurement, in about so many seconds (60 without a number): those beside the cost
    /// model's that are clearly faster. What was measured before is not measured again. Inputs are random.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "60")]
    tune: Option<u64>,
    /// How long drivers may take to compile a kernel: with `max` about twice as long where it runs faster for it.
    #[arg(long, value_enum, default_value_t = Work::Default)]
    effort: Work,
    /// Verify the IR after every phase.
    #[arg(long)]
    verify: bool,
    /// Print how long each phase took to standard error.
    #[arg(long)]
    time_phases: bool,
    /// Show no progress.
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    source: SourceArgs,
}

/// The effort, by its name on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Work {
    Default,
    Max,
}

fn emit_help() -> String {
    format!("Print the IR after a phase, or a product: {}; {}", phases().join(", "), PRODUCTS.join(", "))
}

/// The names of the phases that leave IR.
fn phases() -> Vec<&'static str> {
    PHASES.iter().filter(|p| p.leaves_ir()).map(|p| p.name).collect()
}

/// Runs the command.
pub fn run(args: &CompileArgs) -> Result<(), Failure> {
    for name in args.dump_after.iter().chain(&args.emit) {
        check_phase(name)?;
    }
    let mut options = source::options(&args.source, &source::targets(&args.target)?)?;
    options.schedule = args.schedule.clone();
    options.verify = args.verify;
    options.effort = match args.effort {
        Work::Default => Effort::Default,
        Work::Max => Effort::Max,
    };
    options.dump_after = args.dump_after.iter().chain(&args.emit).cloned().collect();
    // Dumps are printed where the bar would be, and also where a later phase fails.
    let dumps = args.dump_after_each_pattern || !args.dump_after.is_empty();
    let printed = args.dump_after.clone();
    options.on_dump = Some(OnDump::new(move |dump| {
        if printed.contains(&dump.phase) {
            eprintln!("// after {} for {}\n{}", dump.phase, dump.target, dump.text);
        }
    }));
    let progress = Progress::new(source::steps(options.targets.len()), args.quiet || dumps);
    let progress = Arc::new(progress);
    options.watch = progress.watch();
    if let Some(seconds) = args.tune {
        options.tuning = Some(tuning(args, &options, Duration::from_secs(seconds))?);
    }
    let compile = || monopour::compile_file(&args.model, &options);
    let compiled = if args.dump_after_each_pattern {
        monopour_ir::conversion::observe_conversions(|event| event.dump(), compile)
    } else {
        compile()
    };
    options.watch = None;
    drop(progress);
    let compiled = compiled.map_err(Failure::from)?;
    print_report(args, &compiled)?;
    if let Some(output) = &args.output {
        compiled.program.save(output)?;
        eprintln!("wrote {} ({} variants)", output.display(), compiled.program.variants.len());
    }
    Ok(())
}

/// Measures the kernels of the first target that is a GPU of this machine.
fn tuning(args: &CompileArgs, options: &CompileOptions, limit: Duration) -> Result<Tuning, Failure> {
    let opened = [DeviceChoice::Auto, DeviceChoice::Gpu].iter().filter_map(|choice| Device::open(choice).ok());
    let described = opened.filter_map(|device| Some((device.description()?.clone(), device)));
    let is_target = |gpu: &GpuDescription| {
        options.targets.iter().any(|target| matches!(target, TargetDescription::Gpu(of) if of == gpu))
    };
    let Some((description, device)) = described.into_iter().find(|(gpu, _)| is_target(gpu)) else {
        return Err(Failure::usage("--tune measures on the device of a target: no target is a GPU of this machine"));
    };
    let target = vec![TargetDescription::Gpu(description.clone())];
    // What is printed, is printed by the last compilation.
    let quiet = CompileOptions { targets: target, dump_after: vec![], watch: None, on_dump: None, ..options.clone() };
    let compile =
        |tuning| monopour::compile_file(&args.model, &CompileOptions { tuning: Some(tuning), ..quiet.clone() });
    let made = |signature: &Signature| inputs::random_all(&signature.inputs, 1).map_err(monopour::Error::from);
    let known = tune::saved(&description);
    let begins = |round: usize, of: usize| {
        if !args.quiet {
            eprintln!("measuring kernels: round {round} of {of}");
        }
    };
    let tuned = tune::tune((&device, limit), &known, (&compile, &made), &begins).map_err(Failure::from)?;
    // Without all candidates the next run should measure again.
    if tuned.is_complete {
        tune::save(&description, &tuned.choices);
    }
    let faster: Vec<&TunedKernel> = tuned.kernels.iter().filter(|kernel| kernel.ratio < 1.0).collect();
    let rest = if tuned.is_complete {
        ""
    } else {
        "; not all candidates were measured: no time, no timestamps, or a branch not taken"
    };
    eprintln!("tuned {} kinds of kernels, {} of them faster{rest}", tuned.kernels.len(), faster.len());
    for kernel in faster {
        eprintln!("  {:.2} of its time: {}: {}", kernel.ratio, kernel.location, kernel.choice);
    }
    Ok(Tuning { device: description, choices: tuned.choices, measures: false })
}

fn check_phase(name: &str) -> Result<(), Failure> {
    let known = [phases(), PRODUCTS.to_vec()].concat();
    if known.contains(&name) {
        return Ok(());
    }
    Err(Failure::usage(format!("no phase is called '{name}'; there are {}", known.join(", "))))
}

fn print_report(args: &CompileArgs, compiled: &Compiled) -> Result<(), Failure> {
    for dump in &compiled.report.dumps {
        if args.emit.as_ref() == Some(&dump.phase) {
            crate::stdout::print(&dump.text)?;
        }
    }
    for (text, times) in counted(compiled.report.remarks.0.iter().map(ToString::to_string)) {
        let repeated = if times > 1 { format!("\n  note: {times} remarks like this one") } else { String::new() };
        eprintln!("{}{repeated}", crate::failure::cut_lines(&text));
    }
    if args.time_phases {
        for timing in &compiled.report.timings {
            let cpu = timing.cpu_ms.map(|ms| format!(" {ms:>10.3} ms cpu")).unwrap_or_default();
            eprintln!("{:<12} {:<4} {:>10.3} ms{cpu}", timing.phase, timing.target, timing.elapsed_ms);
        }
    }
    Ok(())
}

/// Each text once, in order of first appearance, with its count: equal layers of a model have equal remarks.
fn counted(texts: impl Iterator<Item = String>) -> Vec<(String, usize)> {
    let mut found: Vec<(String, usize)> = vec![];
    let mut at: HashMap<String, usize> = HashMap::new();
    for text in texts {
        match at.get(&text) {
            Some(index) => found[*index].1 += 1,
            None => {
                at.insert(text.clone(), found.len());
                found.push((text, 1));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn equal_texts_are_counted_where_the_first_one_is() {
        let texts = ["copied", "allocated", "copied", "copied", "moved", "allocated"].map(str::to_owned);
        let expected = [("copied", 3), ("allocated", 2), ("moved", 1)].map(|(text, times)| (text.to_owned(), times));
        assert_eq!(counted(texts.into_iter()), expected);
    }
}
