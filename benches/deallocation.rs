//! CPU time, growth and peak memory of deallocation and of the passes around it, ours beside upstream's.
//!
//! Each measurement is a process of its own, which parses the module before the clock starts and calls the pass alone:
//! ours directly, upstream's through the pass manager without its verifier. Upstream's runs for the sizes that it finishes
//! in seconds.
//!
//! ```text
//! cargo bench -p monopour-dealloc --bench deallocation                 quick: a tenth of the sizes, one sample, no limits
//! cargo bench -p monopour-dealloc --bench deallocation -- --full       all; status 1 where a limit is missed
//!                                                       --only SHAPE  one shape
//!                                                       --write FILE  the table as Markdown
//!                                                       --repeat PASS SHAPE N SIDE TIMES   runs only, for a profiler
//! ```

mod allocator;
mod measure;

use std::process::ExitCode;

use measure::{Measured, Output};

use monopour_dealloc::around::{
    CopyRemovalOptions, PromoteOptions, hoist_buffers, hoist_buffers_out_of_loops, promote_buffers_to_stack,
    remove_copies, shorten_lifetimes,
};
use monopour_dealloc::lower::{LowerOptions, lower_deallocations};
use monopour_dealloc::simplify::simplify;
use monopour_dealloc::{Options, run_ownership};
use monopour_ir::{Context, Diagnostics, Module, Op, run_passes};

/// Largest allowed ratio of the times at N and at N/2.
const MAX_GROWTH: f64 = 2.4;
/// Times below this are too short for a ratio.
const LEAST_SECONDS: f64 = 0.002;
/// Processes of each size.
const SAMPLES: usize = 9;
/// Upstream's pass is run on a larger size while it takes less than this.
const UPSTREAM_SECONDS: f64 = 0.5;

/// A measurement: a program, a size, a pass, and the time limit of ours.
struct Case {
    shape: &'static str,
    text: fn(usize) -> String,
    n: usize,
    limit_s: f64,
    /// By upstream's name, as in a pipeline.
    pass: &'static str,
    ours: fn(Op) -> Result<(), String>,
    /// How upstream's size grows from one run to the next.
    next: fn(usize) -> usize,
}

const CASES: &[Case] = &[
    // The passes of `compile`, beside upstream's counterparts.
    case("allocations", allocations, 5_000, 0.3, PIPELINE, |op| {
        let options = Options { extensions: true, ..Options::default() };
        said(run_ownership(op, &options))?;
        said(lower_deallocations(op, &LowerOptions { extensions: true }))
    }),
    case("allocations, upstream's form", allocations, 5_000, 3.0, PASSES, upstreams_form),
    case("buffers of one deallocation", freed_at_once, 5_000, 1.0, "buffer-deallocation-simplification", |op| {
        said(simplify(op))
    }),
    Case {
        // Upstream's time is exponential.
        next: |n| n + 2,
        ..case("diamonds", diamonds, 200, 0.1, "ownership-based-buffer-deallocation", |op| {
            said(run_ownership(op, &Options::default()))
        })
    },
    case("chain of blocks", chain, 20_000, 1.0, "ownership-based-buffer-deallocation", |op| {
        said(run_ownership(op, &Options::default()))
    }),
    case("branches", branches, 40_000, 1.0, "func.func(buffer-hoisting)", |op| {
        hoist_buffers(op, false);
        Ok(())
    }),
    case("loops", loops, 40_000, 1.0, "func.func(buffer-loop-hoisting)", |op| {
        hoist_buffers_out_of_loops(op);
        Ok(())
    }),
    case("allocations", allocations, 40_000, 1.0, "func.func(promote-buffers-to-stack)", |op| {
        said(promote_buffers_to_stack(op, &PromoteOptions::default()))
    }),
    case("freed at the end", freed_at_the_end, 40_000, 1.0, "func.func(optimize-allocation-liveness)", |op| {
        shorten_lifetimes(op);
        Ok(())
    }),
    case("copies", copies, 40_000, 1.0, "copy-removal", |op| said(remove_copies(op, &CopyRemovalOptions::default()))),
];

const PIPELINE: &str = "buffer-deallocation-pipeline";
const PASSES: &str = "ownership-based-buffer-deallocation,canonicalize,buffer-deallocation-simplification,bufferization-lower-deallocations";

/// Our passes in the order and form of [`PASSES`].
fn upstreams_form(op: Op) -> Result<(), String> {
    said(run_ownership(op, &Options::default()))?;
    said(run_passes(op, "builtin.module(canonicalize)"))?;
    said(simplify(op))?;
    said(lower_deallocations(op, &LowerOptions { extensions: false }))
}

fn said<T>(result: Result<T, Diagnostics>) -> Result<(), String> {
    result.map(drop).map_err(|e| e.to_string())
}

const fn case(
    shape: &'static str,
    text: fn(usize) -> String,
    n: usize,
    limit_s: f64,
    pass: &'static str,
    ours: fn(Op) -> Result<(), String>,
) -> Case {
    Case { shape, text, n, limit_s, pass, ours, next: |n| 2 * n }
}

const TYPE: &str = "memref<8xf32>";

fn function(args: &str, body: &str) -> String {
    format!("func.func @f({args}) {{\n%i = arith.constant 0 : index\n%x = arith.constant 1.0 : f32\n{body}return\n}}\n")
}

/// A buffer that is written and read.
fn used(k: usize) -> String {
    format!(
        "%a{k} = memref.alloc() : {TYPE}\nmemref.store %x, %a{k}[%i] : {TYPE}\nmemref.copy %a{k}, %out : {TYPE} to {TYPE}\n"
    )
}

/// N buffers in one block.
fn allocations(n: usize) -> String {
    function(&format!("%out: {TYPE}"), &(0..n).map(used).collect::<String>())
}

/// N buffers, freed by one conditional deallocation that retains a select of two.
fn freed_at_once(n: usize) -> String {
    let list = |f: &dyn Fn(usize) -> String| (0..n).map(f).collect::<Vec<_>>().join(", ");
    let free = format!(
        "%e = arith.select %c, %a0, %a1 : {TYPE}\n%o = bufferization.dealloc ({} : {}) if ({}) retain (%e : {TYPE})\n\
         memref.store %x, %e[%i] : {TYPE}\nbufferization.dealloc (%e : {TYPE}) if (%o)\n",
        list(&|k| format!("%a{k}")),
        list(&|_| TYPE.to_owned()),
        list(&|_| "%c".to_owned())
    );
    function(&format!("%c: i1, %out: {TYPE}"), &((0..n).map(used).collect::<String>() + &free))
}

/// N branches that meet again, each with a buffer of its own.
fn diamonds(n: usize) -> String {
    let one = |k: usize| {
        format!(
            "{}cf.cond_br %c, ^l{k}, ^r{k}\n\
             ^l{k}:\ncf.br ^m{k}\n^r{k}:\ncf.br ^m{k}\n^m{k}:\n",
            used(k)
        )
    };
    function(&format!("%c: i1, %out: {TYPE}"), &(0..n).map(one).collect::<String>())
}

/// N blocks in a row, each with a buffer that the next one uses.
fn chain(n: usize) -> String {
    let one = |k: usize| {
        format!(
            "cf.br ^b{k}(%p{k} : {TYPE})\n^b{k}(%q{k}: {TYPE}):\nmemref.store %x, %q{k}[%i] : {TYPE}\n\
             %p{} = memref.alloc() : {TYPE}\n",
            k + 1
        )
    };
    function("", &(format!("%p0 = memref.alloc() : {TYPE}\n") + &(0..n).map(one).collect::<String>()))
}

/// N buffers in one block, all freed behind the last one.
fn freed_at_the_end(n: usize) -> String {
    let free = |k: usize| format!("memref.dealloc %a{k} : {TYPE}\n");
    function(&format!("%out: {TYPE}"), &((0..n).map(used).collect::<String>() + &(0..n).map(free).collect::<String>()))
}

/// N buffers, each allocated in one of two branches and used where they meet.
fn branches(n: usize) -> String {
    let branch = |k: usize| {
        format!(
            "cf.cond_br %c, ^m{k}, ^j{k}(%given : {TYPE})\n^m{k}:\n%a{k} = memref.alloc() : {TYPE}\ncf.br ^j{k}(%a{k} : {TYPE})\n\
             ^j{k}(%e{k}: {TYPE}):\nmemref.store %x, %e{k}[%i] : {TYPE}\n"
        )
    };
    function(&format!("%c: i1, %given: {TYPE}"), &(0..n).map(branch).collect::<String>())
}

/// N loops with a buffer in each.
fn loops(n: usize) -> String {
    let one = |k: usize| {
        format!(
            "scf.for %k{k} = %i to %n step %n {{\n%a{k} = memref.alloc() : {TYPE}\nmemref.store %x, %a{k}[%i] : {TYPE}\n}}\n"
        )
    };
    function("%n: index", &(0..n).map(one).collect::<String>())
}

/// N buffers, each a copy of the one before, which is freed.
fn copies(n: usize) -> String {
    let one = |k: usize| {
        format!(
            "%a{} = memref.alloc() : {TYPE}\nmemref.copy %a{k}, %a{} : {TYPE} to {TYPE}\nmemref.dealloc %a{k} : {TYPE}\n\
             memref.store %x, %a{}[%i] : {TYPE}\n",
            k + 1,
            k + 1,
            k + 1
        )
    };
    let first = format!("%a0 = memref.alloc() : {TYPE}\nmemref.store %x, %a0[%i] : {TYPE}\n");
    function("", &(first + &(0..n).map(one).collect::<String>() + &format!("memref.dealloc %a{n} : {TYPE}\n")))
}

fn main() -> ExitCode {
    let part = |words: &[&str]| match *words {
        ["--child", pass, shape, n, side] => Some(child(pass, shape, n, side)),
        ["--repeat", pass, shape, n, side, times] => {
            Some(measure::finish(repeat(pass, shape, n, side, times), None, false))
        }
        _ => None,
    };
    measure::run(part, report)
}

/// The whole report as Markdown, printed line by line, and the missed limits.
fn report(full: bool, only: Option<&str>) -> Result<(String, Vec<String>), String> {
    let mut out = Output::default();
    let mut missed = Vec::new();
    out.line("# Deallocation: time, growth and memory beside upstream's");
    out.line("");
    out.line("Written by `cargo bench -p monopour-dealloc --bench deallocation -- --full --write FILE`:");
    out.line("CPU seconds of the pass alone, MiB that it takes at most beyond the module; medians of nine processes, N/2 and N by turns; growth is the median of the ratios of the turns. Where that is within a twentieth of its limit or above it, 41 turns count.");
    out.line(
        "Upstream's column is the largest N that its pass, LLVM 22.1.8 in the same process form and with the same allocator, finishes in seconds; it has no copy-removal.",
    );
    out.place_and_date();
    out.line(
        "| shape | pass | N | s at N/2 | s at N | growth | limit s | MiB at N | upstream: N | upstream s | ours s |",
    );
    out.line("|---|---|---|---|---|---|---|---|---|---|---|");
    for case in CASES.iter().filter(|c| only.is_none_or(|o| o == c.shape)) {
        if let Err(message) = row(case, full, &mut out, &mut missed) {
            missed.push(message);
        }
    }
    Ok((out.text, missed))
}

fn row(case: &Case, full: bool, out: &mut Output, missed: &mut Vec<String>) -> Result<(), String> {
    let n = if full { case.n } else { case.n / 10 };
    let samples = if full { SAMPLES } else { 1 };
    let (half, whole) = ((n / 2).to_string(), n.to_string());
    // In turn, so that other load falls on both.
    let sides = [&half, &whole].map(|n| vec!["--child", case.pass, case.shape, n, "ours"]);
    let turns = measure::ratio_by_turns(&sides, samples, LEAST_SECONDS, MAX_GROWTH)?;
    let (at_half, at_n, growth) = (turns.median(0), turns.median(1), turns.ratio(1, 0, LEAST_SECONDS));
    let beside = match upstream(case, n)? {
        None => "none | | ".to_owned(),
        Some((size, seconds)) => {
            let ours = if size == n { at_n } else { median(case, size, "ours", samples)? };
            format!("{size} | {seconds:.3} | {:.3}", ours.cpu_s)
        }
    };
    if growth > MAX_GROWTH {
        missed.push(format!("{}: time grows {growth:.2}-fold from {} to {n}", case.shape, n / 2));
    }
    if at_n.cpu_s > case.limit_s {
        missed.push(format!("{}: {:.3} s at {n}, allowed are {} s", case.shape, at_n.cpu_s, case.limit_s));
    }
    out.line(&format!(
        "| {} | `{}` | {n} | {:.3} | {:.3} | {growth:.2} | {} | {:.0} | {beside} |",
        case.shape, case.pass, at_half.cpu_s, at_n.cpu_s, case.limit_s, at_n.peak_mib
    ));
    Ok(())
}

/// The largest size that upstream's pass finishes within seconds, and its time; `None` where it has no such pass.
fn upstream(case: &Case, n: usize) -> Result<Option<(usize, f64)>, String> {
    if case.pass == "copy-removal" {
        return Ok(None);
    }
    let mut size = 16.min(n);
    loop {
        let cpu_s = median(case, size, "upstream", 1)?.cpu_s;
        if cpu_s > UPSTREAM_SECONDS || size == n {
            return Ok(Some((size, cpu_s)));
        }
        size = (case.next)(size).min(n);
    }
}

fn median(case: &Case, n: usize, side: &str, samples: usize) -> Result<Measured, String> {
    measure::median(&["--child", case.pass, case.shape, &n.to_string(), side], samples)
}

fn prepare<'c>(pass: &str, shape: &str, n: &str) -> Result<(&'static Case, Module<'c>), String> {
    let n = n.parse().map_err(|_| format!("{n} is not a number"))?;
    let case = CASES.iter().find(|c| c.pass == pass && c.shape == shape).ok_or("no such case")?;
    let module = Module::parse(Context::new(), (case.text)(n).as_bytes(), shape).map_err(|d| d.to_string())?;
    Ok((case, module))
}

fn run(case: &Case, module: Op, side: &str) -> Result<(), String> {
    match side {
        "upstream" => run_passes(module, &format!("builtin.module({})", case.pass)).map_err(|d| d.to_string()),
        _ => (case.ours)(module),
    }
}

/// Measures one run and prints its CPU seconds and MiB.
fn child(pass: &str, shape: &str, n: &str, side: &str) -> ExitCode {
    let measured =
        prepare(pass, shape, n).and_then(|(case, module)| measure::measured(|| run(case, module.op(), side)));
    measure::print_measured(measured)
}

fn repeat(pass: &str, shape: &str, n: &str, side: &str, times: &str) -> Result<(String, Vec<String>), String> {
    let (case, module) = prepare(pass, shape, n)?;
    for _ in 0..times.parse().map_err(|_| format!("{times} is not a number"))? {
        run(case, module.duplicate().op(), side)?;
    }
    Ok(Default::default())
}
