//! CPU time, growth and peak memory of One-Shot Bufferize and `eliminate-empty-tensors`, ours beside upstream's.
//!
//! Each measurement is a process of its own, which parses the module before the clock starts and calls the pass alone: ours
//! directly, upstream's through the pass manager without its verifier. Upstream's runs for the sizes that it finishes in
//! seconds. Reported are CPU time, because machines are shared, and the peak of the resident memory beyond the parsed
//! module.
//!
//! ```text
//! cargo bench -p monopour-bufferize --bench bufferize                 quick: a tenth of the sizes, one sample, no limits
//! cargo bench -p monopour-bufferize --bench bufferize -- --full       all; status 1 where a limit is missed
//!                                                     --only SHAPE  one shape
//!                                                     --write FILE  the table as Markdown
//!                                                     --repeat SHAPE N ours|upstream TIMES  runs only, for a profiler
//!                                                     --child SHAPE N ours PASS  one run: seconds and MiB
//! ```

mod allocator;
mod measure;

use std::process::ExitCode;

use measure::{Measured, Output, cpu_s};

use monopour_bufferize::{Options, Strategy, eliminate_empty_tensors, improve, order_dispatches, run_one_shot};
use monopour_ir::{Context, Diagnostics, Module, Op, run_passes};
use monopour_testkit::growing::shape;

/// Largest allowed ratio of the times (and of the memory) at N and at N/2.
const MAX_GROWTH: f64 = 2.3;
/// Largest allowed ratio of our time and upstream's on functions of about 100 operations.
const MAX_SMALL_RATIO: f64 = 2.0;
/// The shape that upstream is good at, where ours may not be slower.
const NOT_SLOWER: &str = "generics";
/// Upstream's pass is run on twice the size while it takes less than this: its worst growth is 16-fold.
const UPSTREAM_SECONDS: f64 = 0.5;

/// A measurement: a shape, a size, and the time limit.
struct Case {
    shape: &'static str,
    n: usize,
    limit_s: f64,
    pass: Pass,
    /// Whether the size doubles for the growth; a depth does not.
    grows: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    OneShot,
    /// With `extensions`: recursion.
    Extended,
    EliminateEmptyTensors,
    /// The compiler's phase with each strategy.
    Greedy,
    Minimal,
}

const fn case(shape: &'static str, n: usize, limit_s: f64) -> Case {
    Case { shape, n, limit_s, pass: Pass::OneShot, grows: true }
}

const CASES: &[Case] = &[
    case("insert_slice_chain", 50_000, 3.0),
    case("interleaved", 50_000, 3.0),
    case("stale_reads", 50_000, 3.0),
    case("reads", 50_000, 3.0),
    case("all_copied", 50_000, 3.0),
    case("if_branches", 50_000, 3.0),
    case("switch_cases", 50_000, 3.0),
    case("extract_fill_insert", 20_000, 3.0),
    case("loops", 10_000, 3.0),
    case("ifs", 10_000, 3.0),
    Case { grows: false, ..case("loop_nest", 60, 0.2) },
    Case { grows: false, ..case("if_nest", 400, 0.3) },
    case("call_chain", 5_000, 2.0),
    case("call_tree", 5_000, 2.0),
    Case { pass: Pass::Extended, ..case("call_cycles", 5_000, 2.0) },
    case("constants", 20_000, 2.0),
    Case { pass: Pass::EliminateEmptyTensors, ..case("concat", 5_000, 3.0) },
    case("generics", 20_000, 3.0),
    // Further shapes, to detect other superlinear growth.
    case("loop_arguments", 5_000, 3.0),
    case("casts", 20_000, 3.0),
    case("selects", 20_000, 3.0),
    case("old_reads", 20_000, 3.0),
    case("blocks", 20_000, 3.0),
];

/// Shapes and sizes of about 100 operations.
const SMALL: &[(&str, usize)] = &[
    ("insert_slice_chain", 100),
    ("interleaved", 50),
    ("stale_reads", 50),
    ("extract_fill_insert", 33),
    ("loops", 33),
    ("ifs", 33),
    ("switch_cases", 25),
    ("call_chain", 33),
    ("constants", 50),
    ("generics", 25),
];

/// Largest allowed ratio of the times of the strategies `minimal` and `greedy`; `--only strategies` measures these alone.
const MAX_MINIMAL_RATIO: f64 = 2.0;

/// Shapes whose functions have about 50,000 operations at this size.
const STRATEGIES: &[(&str, usize)] = &[
    ("generics", 25_000),
    ("products", 5_500),
    ("concat", 12_500),
    ("all_copied", 50_000),
    ("interleaved", 25_000),
    ("stale_reads", 25_000),
    ("extract_fill_insert", 16_000),
    ("loops", 12_500),
    ("ifs", 12_500),
    ("selects", 25_000),
    ("old_reads", 25_000),
];

fn main() -> ExitCode {
    let part = |words: &[&str]| match *words {
        ["--child", shape, n, side, pass] => Some(child(shape, n, side, pass)),
        ["--repeat", shape, n, side, times] => Some(repeat(shape, n, side, times)),
        _ => None,
    };
    measure::run(part, report)
}

/// The whole report as Markdown, printed line by line, and the missed limits.
fn report(full: bool, only: Option<&str>) -> Result<(String, Vec<String>), String> {
    let mut out = Output::default();
    let mut missed = Vec::new();
    head(&mut out);
    out.line("| shape | pass | N | s at N/2 | s at N | growth | limit s | MiB at N/2 | MiB at N | growth | upstream: N | upstream s | ours s |");
    out.line("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for case in CASES.iter().filter(|c| only.is_none_or(|o| o == c.shape)) {
        if let Err(message) = row(case, full, &mut out, &mut missed) {
            missed.push(message);
        }
    }
    out.line("");
    out.line("| about 50,000 operations | N | greedy s | minimal s | ratio |");
    out.line("|---|---|---|---|---|");
    for (name, n) in STRATEGIES.iter().filter(|s| only.is_none_or(|o| o == s.0 || o == "strategies")) {
        let n = if full { *n } else { n / 10 };
        let ratio = strategies(name, n, if full { 7 } else { 1 }, &mut out)?;
        if ratio > MAX_MINIMAL_RATIO {
            missed.push(format!("{name}: minimal takes {ratio:.2} times greedy's time at {n}"));
        }
    }
    out.line("");
    out.line("| about 100 operations | n | ours µs | upstream µs | ratio |");
    out.line("|---|---|---|---|---|");
    for (name, n) in SMALL.iter().filter(|s| only.is_none_or(|o| o == s.0)) {
        let (ours, upstream) = small(name, *n, if full { 101 } else { 21 })?;
        let ratio = ours / upstream;
        out.line(&format!("| {name} | {n} | {:.0} | {:.0} | {ratio:.2} |", ours * 1e6, upstream * 1e6));
        if ratio > MAX_SMALL_RATIO {
            missed.push(format!("{name}: {ratio:.2} times upstream's time on a small input"));
        }
    }
    Ok((out.text, missed))
}

/// The contents of the table, the machine and the date.
fn head(out: &mut Output) {
    out.line("# One-Shot Bufferize: time, growth and memory beside upstream's");
    out.line("");
    out.line("Written by `cargo bench -p monopour-bufferize --bench bufferize -- --full --write FILE`:");
    out.line("CPU seconds of the pass alone, MiB that it takes at most beyond the module; medians of seven processes (15 of less than 50,000), by turns; growth is the median of the ratios of the turns. Where that is within a twentieth of its limit or above it, 41 turns count.");
    out.line(
        "Upstream's column is the largest N that its pass, LLVM 22.1.8 in the same process form and with the same allocator, finishes in seconds.",
    );
    out.place_and_date();
}

fn row(case: &Case, full: bool, out: &mut Output, missed: &mut Vec<String>) -> Result<(), String> {
    let n = if full || !case.grows { case.n } else { case.n / 10 };
    let samples = match (full, case.n) {
        (false, _) => 1,
        // Short measurements vary most.
        (true, 50_000..) => 7,
        (true, _) => 15,
    };
    let (upstream_n, mut upstream_s) = upstream(case, n)?;
    let (mut half, mut growth, mut memory) = ([const { String::new() }; 2], String::new(), String::new());
    let at_n = if case.grows {
        let (at_half, at_n, time) = by_turns(case, (n / 2, "ours"), (n, "ours"), samples, MAX_GROWTH)?;
        let space = at_n.peak_mib / at_half.peak_mib.max(1.0);
        half = [format!("{:.3}", at_half.cpu_s), format!("{:.0}", at_half.peak_mib)];
        (growth, memory) = (format!("{time:.2}"), format!("{space:.2}"));
        for (what, ratio) in [("time", time), ("memory", space)].into_iter().filter(|(_, r)| *r > MAX_GROWTH) {
            missed.push(format!("{}: {what} grows {ratio:.2}-fold from {} to {n}", case.shape, n / 2));
        }
        at_n
    } else {
        median(case, n, "ours", samples)?
    };
    let beside = if upstream_n == n {
        let limit = if case.shape == NOT_SLOWER { 1.0 } else { f64::INFINITY };
        let (theirs, ours, ratio) = by_turns(case, (n, "upstream"), (n, "ours"), samples, limit)?;
        upstream_s = theirs.cpu_s;
        if ratio > limit {
            missed.push(format!("{}: {ratio:.2} times upstream's time at {n}", case.shape));
        }
        ours
    } else {
        median(case, upstream_n, "ours", samples)?
    };
    if at_n.cpu_s > case.limit_s {
        missed.push(format!("{}: {:.2} s at {n}, allowed are {} s", case.shape, at_n.cpu_s, case.limit_s));
    }
    let [half_s, half_mib] = half;
    out.line(&format!(
        "| {} | {} | {n} | {half_s} | {:.3} | {growth} | {} | {half_mib} | {:.0} | {memory} | {upstream_n} | {upstream_s:.3} | {:.3} |",
        case.shape, case.pass.name(), at_n.cpu_s, case.limit_s, at_n.peak_mib, beside.cpu_s
    ));
    Ok(())
}

/// The times of the strategies by turns, as a line; their ratio.
fn strategies(name: &str, n: usize, samples: usize, out: &mut Output) -> Result<f64, String> {
    let count = n.to_string();
    let sides = [Pass::Greedy, Pass::Minimal].map(|pass| vec!["--child", name, &count, "ours", pass.name()]);
    let turns = measure::ratio_by_turns(&sides, samples, 0.0, MAX_MINIMAL_RATIO)?;
    let (greedy, minimal, ratio) = (turns.median(0), turns.median(1), turns.ratio(1, 0, 0.0));
    out.line(&format!("| {name} | {n} | {:.3} | {:.3} | {ratio:.2} |", greedy.cpu_s, minimal.cpu_s));
    Ok(ratio)
}

/// The largest size that upstream's pass finishes within seconds, and its time.
fn upstream(case: &Case, n: usize) -> Result<(usize, f64), String> {
    // Nests are exponential there; the rest starts where a run is measurable.
    let mut size = if case.grows { 32.min(n) } else { 4 };
    loop {
        let cpu_s = median(case, size, "upstream", 1)?.cpu_s;
        let next = if case.grows { 2 * size } else { size + 2 };
        if cpu_s > UPSTREAM_SECONDS || size == n {
            return Ok((size, cpu_s));
        }
        size = next.min(n);
    }
}

/// Two sizes and sides in turn, and the ratio of the second's time to the first's, at most `limit`.
fn by_turns(
    case: &Case,
    first: (usize, &str),
    second: (usize, &str),
    samples: usize,
    limit: f64,
) -> Result<(Measured, Measured, f64), String> {
    let [(a, side_a), (b, side_b)] = [first, second].map(|(n, side)| (n.to_string(), side));
    let pass = case.pass.name();
    let sides = [vec!["--child", case.shape, &a, side_a, pass], vec!["--child", case.shape, &b, side_b, pass]];
    let turns = measure::ratio_by_turns(&sides, samples, 0.0, limit)?;
    Ok((turns.median(0), turns.median(1), turns.ratio(1, 0, 0.0)))
}

fn median(case: &Case, n: usize, side: &str, samples: usize) -> Result<Measured, String> {
    measure::median(&["--child", case.shape, &n.to_string(), side, case.pass.name()], samples)
}

/// Measures one run and prints its CPU seconds and MiB.
fn child(name: &str, n: &str, side: &str, pass: &str) -> ExitCode {
    let run = || {
        let n = n.parse().map_err(|_| format!("{n} is not a number"))?;
        let module = parse(Context::new(), name, n)?;
        measure::measured(|| Pass::named(pass).run(module.op(), side == "upstream"))
    };
    measure::print_measured(run())
}

/// Runs `ours` or `upstream` on copies of one module, for a profiler.
fn repeat(name: &str, n: &str, side: &str, times: &str) -> ExitCode {
    let result = || {
        let number = |text: &str| text.parse::<usize>().map_err(|_| format!("{text} is not a number"));
        let module = parse(Context::new(), name, number(n)?)?;
        let pass = CASES.iter().find(|c| c.shape == name).map_or(Pass::OneShot, |c| c.pass);
        for _ in 0..number(times)? {
            pass.run(module.duplicate().op(), side == "upstream")?;
        }
        Ok(())
    };
    match result() {
        Ok(()) => ExitCode::SUCCESS,
        Err::<(), String>(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// The median times of ours and upstream's pass, in turn, on copies of one module.
fn small(name: &str, n: usize, samples: usize) -> Result<(f64, f64), String> {
    let cx = Context::new();
    let module = parse(cx, name, n)?;
    let mut times = [vec![], vec![]];
    for _ in 0..samples {
        for (side, times) in times.iter_mut().enumerate() {
            let copy = module.duplicate();
            let start = cpu_s();
            Pass::OneShot.run(copy.op(), side == 1)?;
            times.push(cpu_s() - start);
        }
    }
    let [ours, upstream] = times.map(|mut side| {
        side.sort_by(f64::total_cmp);
        side[samples / 2]
    });
    Ok((ours, upstream))
}

fn parse<'c>(cx: Context<'c>, name: &str, n: usize) -> Result<Module<'c>, String> {
    let shape = shape(name).ok_or_else(|| format!("{name} is not a shape"))?;
    Module::parse(cx, (shape.text)(n).as_bytes(), name).map_err(|d| d.to_string())
}

impl Pass {
    fn name(self) -> &'static str {
        match self {
            Self::OneShot => "one-shot-bufferize",
            Self::Extended => "one-shot-bufferize{extensions}",
            Self::EliminateEmptyTensors => "eliminate-empty-tensors",
            Self::Greedy => "greedy",
            Self::Minimal => "minimal",
        }
    }

    fn named(name: &str) -> Self {
        let all = [Self::OneShot, Self::Extended, Self::EliminateEmptyTensors, Self::Greedy, Self::Minimal];
        all.into_iter().find(|p| p.name() == name).unwrap_or(Self::OneShot)
    }

    fn run(self, module: Op, upstream: bool) -> Result<(), String> {
        let done = match (self, upstream) {
            (Self::EliminateEmptyTensors, true) => run_passes(module, "builtin.module(eliminate-empty-tensors)"),
            (_, true) => run_passes(
                module,
                "builtin.module(one-shot-bufferize{bufferize-function-boundaries allow-return-allocs-from-loops})",
            ),
            (Self::EliminateEmptyTensors, false) => eliminate_empty_tensors(module, &Options::default()).map(drop),
            (Self::Greedy | Self::Minimal, false) => phase(module, self == Self::Minimal),
            (_, false) => {
                let options = Options {
                    bufferize_function_boundaries: true,
                    allow_return_allocs_from_loops: true,
                    extensions: self == Self::Extended,
                    ..Options::default()
                };
                run_one_shot(module, &options).map(drop)
            }
        };
        done.map_err(|d| d.to_string())
    }
}

/// The phase of the compiler.
fn phase(module: Op, is_minimal: bool) -> Result<(), Diagnostics> {
    let strategy = if is_minimal { Strategy::Minimal } else { Strategy::Greedy };
    let options = Options { entry_abi: false, strategy, ..Options::pipeline() };
    if is_minimal {
        order_dispatches(module, &options);
        improve(module, &options)?;
    } else {
        eliminate_empty_tensors(module, &options)?;
    }
    run_one_shot(module, &options).map(drop)
}
