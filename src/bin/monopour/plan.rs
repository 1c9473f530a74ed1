//! `monopour plan`: offsets for the buffers of an allocation trace.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum};
use monopour::program::write_atomically;
use monopour_analysis::index::{BufferId, IndexVec};
use monopour_analysis::liveness::Interval;
use monopour_analysis::plan::{Effort, MemoryPlan, Request, plan_with_effort};

use crate::failure::Failure;
use crate::stdout;

/// The first line of a trace.
const COLUMNS: &str = "id,lower,upper,size";

/// Place the buffers of an allocation trace in one arena.
#[derive(Args)]
#[command(after_help = "Example: monopour plan trace.csv --capacity 1048576 --placement offsets.csv")]
pub struct PlanArgs {
    /// Lines of id,lower,upper,size, and a first one that says so: live from lower to before upper, size in bytes.
    trace: PathBuf,
    /// Fail if the buffers do not fit into so many bytes.
    #[arg(long, value_name = "BYTES")]
    capacity: Option<u64>,
    /// Offsets are multiples of this; sizes are rounded up to it.
    #[arg(long, value_name = "BYTES", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    alignment: u64,
    /// Write lines of id,offset there.
    #[arg(long, value_name = "FILE.csv")]
    placement: Option<PathBuf>,
    /// How long to search: default, as a compilation does (0.1 s), or max (1 s).
    #[arg(long, value_enum, default_value_t = Search::Max)]
    effort: Search,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// [`Effort`] on the command line.
#[derive(Clone, Copy, ValueEnum)]
enum Search {
    Default,
    Max,
}

/// A buffer of a trace, as it stands there.
struct Traced {
    id: String,
    lower: u64,
    upper: u64,
    size_bytes: u64,
}

/// Runs the command.
pub fn run(args: &PlanArgs) -> Result<(), Failure> {
    let traced = read(&args.trace)?;
    let start = Instant::now();
    let effort = match args.effort {
        Search::Default => Effort::Compile,
        Search::Max => Effort::Thorough,
    };
    let plan = plan_with_effort(&requests(&traced), args.alignment, effort);
    let seconds = start.elapsed().as_secs_f64();
    stdout::print(&summary(args, &plan, seconds))?;
    if let Some(path) = &args.placement {
        let mut text = String::from("id,offset\n");
        for (buffer, offset) in traced.iter().zip(plan.offsets.iter()) {
            let _ = writeln!(text, "{},{offset}", buffer.id);
        }
        write_atomically(path, text.as_bytes())?;
    }
    match args.capacity.filter(|capacity| plan.peak_bytes > *capacity) {
        None => Ok(()),
        Some(capacity) => {
            let least = plan.lower_bound_bytes;
            let help = match least > capacity {
                true => format!("{least} bytes are alive at once: no placement fits"),
                false => {
                    format!("{least} bytes are alive at once: another placement may fit, this one was the best found")
                }
            };
            let found = format!("the buffers take {} bytes, the capacity is {capacity}", plan.peak_bytes);
            Err(Failure::input(format!("error[I0036]: {found}\n  help: {help}")))
        }
    }
}

fn summary(args: &PlanArgs, plan: &MemoryPlan, seconds: f64) -> String {
    let ratio = plan.peak_bytes as f64 / (plan.lower_bound_bytes as f64).max(1.0);
    if args.json {
        let object = serde_json::json!({
            "buffers": plan.offsets.len(), "peak_bytes": plan.peak_bytes, "lower_bound_bytes": plan.lower_bound_bytes,
            "sum_bytes": plan.sum_bytes, "ratio": ratio, "seconds": seconds,
        });
        return format!("{object:#}");
    }
    format!(
        "buffers      {}\npeak         {} bytes\nlower bound  {} bytes\nratio        {ratio:.4}\nseconds      {seconds:.3}",
        plan.offsets.len(),
        plan.peak_bytes,
        plan.lower_bound_bytes,
    )
}

/// The buffers with their positions in the order of all bounds.
fn requests(traced: &[Traced]) -> IndexVec<BufferId, Request> {
    let bounds = traced.iter().flat_map(|buffer| [buffer.lower, buffer.upper]);
    let places: BTreeMap<u64, ()> = bounds.map(|bound| (bound, ())).collect();
    let places: BTreeMap<u64, u32> = places.into_keys().zip(0..).collect();
    let request = |buffer: &Traced| {
        let live = Interval::new(places[&buffer.lower], places[&buffer.upper] - 1);
        Request { live, size_bytes: buffer.size_bytes }
    };
    traced.iter().map(request).collect()
}

fn read(path: &Path) -> Result<Vec<Traced>, Failure> {
    let failed = |line: usize, what: &str| {
        let help = format!("the first line is {COLUMNS}, each other one a buffer: 0,3,7,1024");
        Failure::input(format!("error[I0035]: {what}\n  --> {}:{line}\n  help: {help}", path.display()))
    };
    let text = std::fs::read(path).map_err(|error| {
        let help = "check the path and its permissions";
        Failure::input(format!("error[I0031]: cannot read {}: {error}\n  help: {help}", path.display()))
    })?;
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines().map(str::trim).zip(1..).filter(|(line, _)| !line.is_empty());
    let head: String = lines.next().map_or("", |(line, _)| line).split_whitespace().collect();
    if head != COLUMNS {
        return Err(failed(1, &format!("the trace does not begin with {COLUMNS}")));
    }
    let mut traced = vec![];
    for (line, number) in lines {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let &[id, lower, upper, size] = &fields[..] else {
            return Err(failed(number, &format!("a buffer has four columns, not {}", fields.len())));
        };
        let value = |name: &str, field: &str| {
            field.parse::<u64>().map_err(|_| failed(number, &format!("{name} is '{field}', not a number from 0 on")))
        };
        let (lower, upper, size_bytes) = (value("lower", lower)?, value("upper", upper)?, value("size", size)?);
        if lower >= upper {
            return Err(failed(number, &format!("the buffer lives from {lower} to before {upper}: never")));
        }
        traced.push(Traced { id: id.to_owned(), lower, upper, size_bytes });
    }
    Ok(traced)
}
