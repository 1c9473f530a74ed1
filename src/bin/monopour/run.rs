//! `monopour run`: compiles a source, and runs.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use clap::builder::{NonEmptyStringValueParser, RangedU64ValueParser};
use clap::{Args, ValueEnum};
use monopour::Program;
use monopour::explain;
use monopour::program::Trust;
use monopour::runtime::{self, Device, DeviceChoice, DeviceTensor, HostForm, HostTensor, Options, Session, Stats};

use crate::failure::Failure;
use crate::inputs::{self, Sources};
use crate::progress::Progress;
use crate::trace::Trace;
use crate::{model, outputs, stdout, trust};

/// Compile a model if need be, and run it.
#[derive(Args)]
#[command(after_help = "Example: monopour run mlp.mlir --random 1 --device gpu --repeat 10 --stats")]
pub struct RunArgs {
    /// The model: .mlir, .mlirbc, .onnx, or .mpr.
    model: PathBuf,
    /// An input; repeat for each. Element types are f2 f4 f8 b1 i1 i2 i4 i8 u1 u2 u4 u8 and V2, which is bf16 as ml_dtypes
    /// writes it. An integer of either sign fits an input of its width; f4 is rounded where the input is bf16.
    /// A file that ends in .pb is a tensor of ONNX.
    #[arg(long, value_name = "NAME=FILE")]
    input: Vec<OsString>,
    /// A folder with one NAME.npy per input.
    #[arg(long, value_name = "DIR")]
    inputs: Option<PathBuf>,
    /// Make inputs that have no file from a seed.
    #[arg(long, value_name = "SEED")]
    random: Option<u64>,
    /// This input may be overwritten, and may become a result; the program must have been compiled so.
    #[cfg(not(feature = "compiler"))]
    #[arg(long, value_name = "NAME")]
    donate: Vec<String>,
    /// Write one NAME.npy per result here, bf16 as V2 (`numpy.load(..).view(ml_dtypes.bfloat16)`); without it a summary of each is printed.
    #[arg(long, value_name = "DIR")]
    outputs: Option<PathBuf>,
    /// Compare each result with its NAME.npy here.
    #[arg(long, value_name = "DIR")]
    check: Option<PathBuf>,
    /// Allowed difference relative to the expected value.
    #[arg(long, value_name = "R", default_value_t = 1e-4)]
    rtol: f64,
    /// Allowed difference in absolute terms.
    #[arg(long, value_name = "A", default_value_t = 1e-5)]
    atol: f64,
    /// auto (the best hardware GPU, else the CPU), gpu (software adapters too), cpu, an index or a name.
    #[arg(long, value_name = "DEVICE", default_value = "auto", value_parser = NonEmptyStringValueParser::new())]
    device: String,
    /// Threads of the CPU target, 1024 at most; 0, the default: one per core.
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(0..=1024))]
    threads: Option<usize>,
    /// Time this many runs, after the first.
    #[arg(long, value_name = "N", default_value_t = 0)]
    repeat: usize,
    /// Run this many times, after the first, before timing.
    #[arg(long, value_name = "N", default_value_t = 0)]
    warmup: usize,
    /// Print what it cost: times (how much of loading and of the first run was building kernels), copies, transfers, memory.
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    stats: Option<StatsFormat>,
    /// Write a Chrome trace.
    #[arg(long, value_name = "FILE.json")]
    trace: Option<PathBuf>,
    /// The form of the host function: native code, data that is interpreted, or auto: native where the file is trusted and was
    /// compiled for this architecture, else data.
    #[arg(long, value_name = "FORM", default_value = "auto")]
    host: Form,
    /// Run nothing of the model as machine code, and hand no unvalidated code to the driver: kernels of a GPU are validated,
    /// and the host function is interpreted. Kernels of the CPU target are machine code, and refused.
    #[arg(long)]
    untrusted: bool,
    /// The most device memory to take.
    #[arg(long, value_name = "BYTES")]
    memory_limit: Option<u64>,
    /// Show no progress.
    #[arg(short, long)]
    quiet: bool,
    #[cfg(feature = "compiler")]
    #[command(flatten)]
    source: crate::source::SourceArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StatsFormat {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    Native,
    Data,
    Auto,
}

impl From<Form> for HostForm {
    fn from(form: Form) -> HostForm {
        match form {
            Form::Native => HostForm::Native,
            Form::Data => HostForm::Data,
            Form::Auto => HostForm::Auto,
        }
    }
}

/// Runs the command.
pub fn run(args: &RunArgs) -> Result<(), Failure> {
    let mut trace = Trace::new();
    // The device before any thread: opening it may set an environment variable.
    let device = trace.step("open device", || Device::open(&DeviceChoice::parse(&args.device)))?;
    let progress = Arc::new(Progress::new(steps(args), args.quiet));
    let (mut program, compile_ms) = load(args, &device, &mut trace, &progress)?;
    if args.untrusted {
        program.trust = Trust::default();
    }
    let options = Options {
        threads: args.threads.unwrap_or(0),
        memory_limit: args.memory_limit,
        timing: args.stats.is_some(),
        trace: args.trace.is_some(),
        host: args.host.into(),
        ..Options::default()
    };
    #[cfg(feature = "compiler")]
    check_donations(&program, &args.source.donate)?;
    #[cfg(not(feature = "compiler"))]
    check_donations(&program, &args.donate)?;
    let program = Arc::new(program);
    let descs = &program.signature;
    for folder in args.outputs.iter().chain(&args.check) {
        outputs::check_names(folder, &descs.results)?;
    }
    progress.step("building kernels");
    let fault = |error| fault(args, error);
    let mut session = trace.step("load", || Session::load(&device, program.clone(), &options)).map_err(fault)?;
    progress.step("inputs");
    let sources =
        Sources { named: &args.input, folder: args.inputs.as_deref(), seed: args.random, limit: args.memory_limit };
    let given = inputs::gather(&descs.inputs, &sources).map_err(|failure| blame(args, failure, false))?;
    let results = execute(args, &mut session, &given, (&mut trace, &progress)).map_err(fault)?;
    drop(progress);
    let mut stats = session.stats();
    stats.compile_ms = compile_ms;
    // Each run after the first got its donated inputs anew.
    let restored = descs.inputs.iter().zip(&given).filter(|(desc, _)| desc.donated && args.warmup + args.repeat > 0);
    stats.memory.restored = restored.map(|(_, tensor)| tensor.data().len() as u64).sum();
    drop(session);

    if let Some(folder) = &args.outputs {
        outputs::write(folder, &descs.results, &results)?;
    }
    let is_json = args.stats == Some(StatsFormat::Json);
    if args.outputs.is_none() && args.check.is_none() && !is_json {
        let lines = descs.results.iter().zip(&results).map(|(desc, tensor)| outputs::summary(desc, tensor));
        stdout::print(&lines.collect::<Vec<_>>().join("\n"))?;
    }
    print_stats(args.stats, &stats)?;
    if let Some(path) = &args.trace {
        trace.write(path)?;
    }
    if let Some(folder) = &args.check {
        let lines = outputs::check(folder, &descs.results, &results, (args.rtol, args.atol))?;
        lines.iter().for_each(|line| eprintln!("{line}"));
    }
    Ok(())
}

/// Steps of the bar: the phases of a compilation, kernels, inputs, the runs.
fn steps(args: &RunArgs) -> usize {
    #[cfg(feature = "compiler")]
    let phases = if model::is_artifact(&args.model) { 0 } else { crate::source::steps(1) };
    #[cfg(not(feature = "compiler"))]
    let phases = 0;
    phases + 3 + args.warmup.saturating_add(args.repeat)
}

/// Kernels that the device rejects are the fault of the artifact, if there is one: its hash is right, its contents are not.
/// Of an artifact that no one vouches for so is whatever else the machine refuses, memory for one.
fn fault(args: &RunArgs, error: runtime::Error) -> Failure {
    let is_rejected = matches!(error, runtime::Error::Rejected { .. });
    blame(args, error.into(), is_rejected)
}

/// The failure, of the input where it was rejected, or where no one vouches for it.
fn blame(args: &RunArgs, failure: Failure, is_rejected: bool) -> Failure {
    let is_at_fault = model::is_artifact(&args.model) && (is_rejected || args.untrusted);
    if is_at_fault { Failure::input(failure.to_string()) } else { failure }
}

/// The program, and the time to compile it in milliseconds.
#[cfg(feature = "compiler")]
fn load(
    args: &RunArgs,
    device: &Device,
    trace: &mut Trace,
    progress: &Arc<Progress>,
) -> Result<(Program, Option<f64>), Failure> {
    if model::is_artifact(&args.model) {
        return Ok((trust::named_by_the_user(Program::open(&args.model)?), None));
    }
    let mut targets = [monopour::options::target_of(device)];
    if let [monopour::TargetDescription::Gpu(gpu)] = &mut targets
        && args.untrusted
    {
        *gpu = gpu.clone().without_trust();
    }
    let start = trace.now_us();
    let compiled = model::compile_reported(&args.model, &args.source, &targets, progress)?;
    let elapsed = trace.now_us() - start;
    trace.add("compiler", "compile", start, elapsed);
    // Phases follow one another; the time between them counts to none.
    let mut at = start;
    for timing in &compiled.report.timings {
        trace.add("compiler", timing.phase, at, timing.elapsed_ms * 1e3);
        at += timing.elapsed_ms * 1e3;
    }
    Ok((compiled.program, Some(elapsed / 1e3)))
}

/// The program; this build has no compiler.
#[cfg(not(feature = "compiler"))]
fn load(
    args: &RunArgs,
    _device: &Device,
    _trace: &mut Trace,
    _progress: &Arc<Progress>,
) -> Result<(Program, Option<f64>), Failure> {
    Ok((trust::named_by_the_user(model::load_artifact(&args.model)?), None))
}

/// Donations are fixed at compile time: on an artifact the flag can only confirm them.
fn check_donations(program: &Program, names: &[String]) -> Result<(), Failure> {
    for name in names {
        match program.signature.inputs.iter().find(|input| input.name == *name) {
            None => {
                let what = format!("no input is named `{name}`");
                return Err(Failure::from(runtime::Error::Inputs { what }));
            }
            Some(input) if !input.donated => {
                return Err(Failure::input(format!(
                    "error[R0007]: input `{name}` is not donated by the program\n  help: compile it with `--donate {name}`, or mark the argument with `monopour.donate`; a number cannot be donated"
                )));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// The first run, the warm-up, the timed runs; the results are those of the last one.
fn execute(
    args: &RunArgs,
    session: &mut Session,
    given: &[HostTensor],
    (trace, progress): (&mut Trace, &Progress),
) -> Result<Vec<HostTensor>, runtime::Error> {
    let restores = session.signature().inputs.iter().any(|input| input.donated);
    let mut on_device = trace.step("upload", || session.upload(given))?;
    let mut outputs: Vec<DeviceTensor> = Vec::new();
    for number in 0..=args.warmup.saturating_add(args.repeat) {
        progress.step(if number == 0 { "first run".to_owned() } else { format!("run {}", number + 1) });
        if number == args.warmup + 1 {
            session.reset_times();
        }
        // A run consumes donated inputs: each run gets its own, outside of the timed part.
        if restores && number > 0 {
            on_device = session.upload(given)?;
        }
        // Dropped results return their buffers to the pool for the next run.
        drop(outputs);
        let start = trace.now_us();
        outputs = session.execute(&on_device)?;
        if args.trace.is_some() {
            trace.add("host", "run", start, trace.now_us() - start);
            let spans = session.drain_trace();
            trace.live(start, &spans, &explain::memory_over_time(&session.variant().lives));
            trace.spans(start, spans);
        }
    }
    trace.step("readback", || session.readback(&outputs))
}

fn print_stats(format: Option<StatsFormat>, stats: &Stats) -> Result<(), Failure> {
    match format {
        None => Ok(()),
        Some(StatsFormat::Text) => stdout::print(&stats_text(stats)),
        Some(StatsFormat::Json) => {
            let text = serde_json::to_string_pretty(stats).map_err(|e| Failure::machine(format!("error: {e}")))?;
            stdout::print(&text)
        }
    }
}

fn stats_text(stats: &Stats) -> String {
    let counts = &stats.counts;
    let threads = match stats.threads {
        _ if stats.device == "gpu" => String::new(),
        1 => ", 1 thread".to_owned(),
        several => format!(", {several} threads"),
    };
    let mut lines = vec![format!("device       {} {}{threads}", stats.device, stats.adapter)];
    let compile = stats.compile_ms.map_or(String::new(), |ms| format!("compile {ms:.3} ms, "));
    lines.push(format!("ready        {compile}load {:.3} ms", stats.load_ms));
    if let Some(ms) = stats.kernels_ms {
        let (built, read) = (stats.kernels_built, stats.pipeline_cache_bytes);
        lines.push(format!(
            "kernels      {ms:.3} ms of load and first run, {built} built, {read} B of the driver's cache"
        ));
    }
    if let Some(ms) = stats.first_run_ms {
        lines.push(format!("first run    {ms:.3} ms"));
    }
    if let Some(run) = stats.run_ms {
        lines.push(format!(
            "run          min {:.3} ms, median {:.3}, p95 {:.3}, max {:.3} ({} runs)",
            run.min, run.median, run.p95, run.max, stats.runs
        ));
    }
    if let Some(gpu) = stats.gpu_ms {
        lines.push(format!("gpu          min {:.3} ms, median {:.3}", gpu.min, gpu.median));
    }
    lines.push(format!("upload       {:.3} ms, {} B", stats.upload_ms, stats.upload_bytes));
    lines.push(format!("readback     {:.3} ms, {} B", stats.readback_ms, stats.readback_bytes));
    lines.push(format!("dispatches   {}, submits {}", counts.dispatches, counts.submits));
    lines.push(format!("copies       {} ({} B)", counts.copies, counts.copied_bytes));
    lines.push(format!(
        "transfers    {} ({} B), scalar reads {}",
        counts.transfers, counts.transfer_bytes, counts.scalar_reads
    ));
    lines.push(format!("allocations  {}", counts.allocations));
    lines.push(format!(
        "memory       peak {} B, planned {} B, lower bound {} B",
        stats.peak_device_bytes, stats.planned_bytes, stats.lower_bound_bytes
    ));
    let b = &stats.bounds;
    lines.push(format!(
        "bounds       copies {} ({} B), peak {} B, in any order {} B",
        b.copies, b.copied_bytes, b.peak_bytes, b.any_order_bytes
    ));
    let m = &stats.memory;
    lines.push(format!("fresh        {} B", counts.fresh_bytes));
    lines.push(format!(
        "taken        inputs {} B, constants {}, results {}, arena {}, pool {}, staging {}, restored {}",
        m.inputs, m.constants, m.results, m.arena, m.pool, m.staging, m.restored
    ));
    let steady = &stats.steady_state;
    lines.push(format!(
        "steady state buffers {}, bind groups {}, pipelines {}, memory plans {} created",
        steady.buffers_created, steady.bind_groups_created, steady.pipelines_created, steady.plans_made
    ));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stats_are_one_readable_block() {
        let stats = Stats { device: "cpu".into(), adapter: "test".into(), threads: 2, ..Stats::default() };
        let text = stats_text(&stats);
        assert!(text.contains("copies       0 (0 B)"), "{text}");
        assert!(!text.contains("gpu "), "{text}");
    }
}
