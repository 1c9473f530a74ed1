//! `monopour bench`: the same program under each strategy of bufferization.

use crate::failure::Failure;
use crate::inputs::{self, Sources};
use crate::source::SourceArgs;
use crate::stdout;
use clap::Args;
use monopour::options::{Strategy, target_of};
use monopour::program::write_atomically;
use monopour::runtime::{Device, DeviceChoice, HostTensor, Options, Session};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Compare a program under minimal, greedy, upstream's bufferization, and copy-before-write.
#[derive(Args)]
#[command(after_help = "Example: monopour bench benches/copies/*.mlir --device cpu")]
pub struct BenchArgs {
    /// The models: .mlir, .mlirbc, or .onnx.
    #[arg(required = true)]
    models: Vec<PathBuf>,
    /// auto, gpu, cpu, an index, or a name.
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: String,
    /// Timed runs of each mode; the modes take turns.
    #[arg(long, value_name = "N", default_value_t = 20)]
    repeat: usize,
    /// The seed of the inputs.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    random: u64,
    /// Threads of the CPU target; default all cores.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Write the table as a page.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    source: SourceArgs,
}

/// One program.
#[derive(Serialize)]
struct Measured {
    model: String,
    modes: Vec<Row>,
}

/// One program under one strategy.
#[derive(Serialize)]
struct Row {
    mode: &'static str,
    /// Why the mode has no figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    copies: u64,
    copied_bytes: u64,
    allocations: u64,
    /// Arena, the most of the pool, results outside of donated inputs.
    peak_bytes: u64,
    lower_bound_bytes: u64,
    lower_bound_copied_bytes: u64,
    /// Median of the runs, by the host's clock.
    run_ms: f64,
    /// Median by the device's timestamps.
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_ms: Option<f64>,
}

/// Runs the command.
pub fn run(args: &BenchArgs) -> Result<(), Failure> {
    let device = Device::open(&DeviceChoice::parse(&args.device))?;
    let measured = args.models.iter().map(|model| measure(args, &device, model)).collect::<Result<Vec<_>, _>>()?;
    if let Some(file) = &args.html {
        write_atomically(file, page(device.name(), &measured).as_bytes())?;
    }
    if args.json {
        let object = serde_json::json!({ "device": device.name(), "programs": measured });
        return stdout::print(&format!("{object:#}"));
    }
    stdout::print(&table(device.name(), &measured))
}

/// A session of one mode, with the times of its runs.
struct Mode {
    strategy: Strategy,
    session: Session,
    times_ms: Vec<f64>,
    results: Vec<HostTensor>,
}

fn measure(args: &BenchArgs, device: &Device, model: &Path) -> Result<Measured, Failure> {
    let mut rows: Vec<(Strategy, Result<Mode, String>)> = vec![];
    for strategy in Strategy::ALL {
        rows.push((strategy, prepare(args, device, model, strategy)?));
    }
    let given = match rows.iter().find_map(|(_, mode)| mode.as_ref().ok()) {
        Some(mode) => {
            let sources = Sources { named: &[], folder: None, seed: Some(args.random), limit: None };
            inputs::gather(&mode.session.signature().inputs, &sources)?
        }
        None => vec![],
    };
    // In turns, so that what else the machine does meets all modes alike, and back and forth, so that no mode always finds the
    // caches as the one that copies most leaves them; the first two rounds warm up.
    for round in 0..args.repeat + 2 {
        let mut turn: Vec<&mut Mode> = rows.iter_mut().filter_map(|(_, mode)| mode.as_mut().ok()).collect();
        if round % 2 == 1 {
            turn.reverse();
        }
        for mode in turn {
            let on_device = mode.session.upload(&given)?;
            let start = Instant::now();
            let results = mode.session.execute(&on_device)?;
            let elapsed_ms = start.elapsed().as_secs_f64() * 1e3;
            if round == 1 {
                mode.session.reset_times();
            }
            if round > 1 {
                mode.times_ms.push(elapsed_ms);
            }
            if round == args.repeat + 1 {
                mode.results = mode.session.readback(&results)?;
            }
        }
    }
    agree(model, &rows)?;
    let rows = rows.into_iter().map(|(strategy, mode)| row(strategy, mode)).collect();
    Ok(Measured { model: model.display().to_string(), modes: rows })
}

/// The session of a mode; `Err` with the reason where the program does not compile with its copies.
fn prepare(
    args: &BenchArgs,
    device: &Device,
    model: &Path,
    strategy: Strategy,
) -> Result<Result<Mode, String>, Failure> {
    let options = crate::source::options(&args.source, &[target_of(device)])?;
    let options = monopour::CompileOptions { strategy, ..options };
    let program = match monopour::compile_file(model, &options) {
        Ok(compiled) => compiled.program,
        // A buffer that is too much may be one that a kernel cannot have.
        Err(refused) if matches!(strategy, Strategy::Upstream | Strategy::CopyBeforeWrite) => {
            return Ok(Err(refused.to_string().lines().next().unwrap_or_default().to_owned()));
        }
        Err(wrong) => return Err(wrong.into()),
    };
    let options = Options { threads: args.threads, timing: true, ..Options::default() };
    let session = Session::load(device, Arc::new(program), &options)?;
    Ok(Ok(Mode { strategy, session, times_ms: vec![], results: vec![] }))
}

/// Every mode has to compute the same: the kernels are, only copies differ.
fn agree(model: &Path, rows: &[(Strategy, Result<Mode, String>)]) -> Result<(), Failure> {
    let mut modes = rows.iter().filter_map(|(_, mode)| mode.as_ref().ok());
    let Some(first) = modes.next() else { return Ok(()) };
    for other in modes {
        let values = |mode: &Mode| mode.results.iter().flat_map(HostTensor::to_f64).collect::<Vec<f64>>();
        let (expected, found) = (values(first), values(other));
        let differs = |(a, b): &(&f64, &f64)| !((*a - *b).abs() <= 1e-4 + 1e-4 * a.abs() || (a.is_nan() && b.is_nan()));
        let worst = expected.iter().zip(&found).position(|pair| differs(&pair));
        if expected.len() != found.len() || worst.is_some() {
            let (a, b) = (first.strategy.name(), other.strategy.name());
            return Err(Failure::machine(format!("error: {}: {b} computes another result than {a}", model.display())));
        }
    }
    Ok(())
}

fn row(strategy: Strategy, mode: Result<Mode, String>) -> Row {
    let (mode, refused) = match mode {
        Ok(mode) => (Some(mode), None),
        Err(refused) => (None, Some(refused)),
    };
    let stats = mode.as_ref().map(|mode| mode.session.stats()).unwrap_or_default();
    Row {
        mode: strategy.name(),
        refused,
        copies: stats.counts.copies,
        copied_bytes: stats.counts.copied_bytes,
        allocations: stats.counts.allocations,
        peak_bytes: stats.counts.fresh_bytes,
        lower_bound_bytes: stats.bounds.peak_bytes,
        lower_bound_copied_bytes: stats.bounds.copied_bytes,
        run_ms: median(mode.map(|mode| mode.times_ms).unwrap_or_default()),
        gpu_ms: stats.gpu_ms.map(|times| times.median),
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

const COLUMNS: [&str; 9] =
    ["program", "mode", "copies", "bytes copied", "at least", "allocations", "peak bytes", "at least", "run ms"];

fn cells(of: &Measured, row: &Row) -> Vec<String> {
    let name = Path::new(&of.model).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if let Some(refused) = &row.refused {
        return vec![name, row.mode.to_owned(), format!("refused: {refused}")];
    }
    // The bounds of the program as the first mode schedules it: a mode that copies more has more dispatches.
    let least = &of.modes[0];
    let time = row.gpu_ms.unwrap_or(row.run_ms);
    let numbers = [
        row.copies,
        row.copied_bytes,
        least.lower_bound_copied_bytes,
        row.allocations,
        row.peak_bytes,
        least.lower_bound_bytes,
    ];
    let mut cells = vec![name, row.mode.to_owned()];
    cells.extend(numbers.iter().map(u64::to_string));
    cells.push(format!("{time:.3}"));
    cells
}

/// The table in Markdown.
fn table(device: &str, measured: &[Measured]) -> String {
    let mut out = format!("{device}\n\n| {} |\n|---|---{}|\n", COLUMNS.join(" | "), "|---:".repeat(COLUMNS.len() - 2));
    for of in measured {
        for row in &of.modes {
            let _ = writeln!(out, "| {} |", cells(of, row).join(" | "));
        }
    }
    out
}

fn page(device: &str, measured: &[Measured]) -> String {
    let escape = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>bench</title></head><body><h1>{}</h1>\n<table><tr>",
        escape(device)
    );
    for column in COLUMNS {
        let _ = write!(out, "<th>{column}");
    }
    for of in measured {
        for row in &of.modes {
            out.push_str("\n<tr>");
            for cell in cells(of, row) {
                let _ = write!(out, "<td>{}", escape(&cell));
            }
        }
    }
    out.push_str("\n</table></body></html>\n");
    out
}
