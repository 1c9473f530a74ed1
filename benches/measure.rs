//! Measurements in processes of their own, for benches of passes.

use std::fmt::Write;
use std::process::{Command, ExitCode};

use rustix::time::{ClockId, clock_gettime};

/// CPU time in seconds, and the growth of the peak memory in MiB.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// CPU time of the process, all threads, in seconds.
    pub cpu_s: f64,
    /// Peak of the resident memory beyond that before, in MiB.
    pub peak_mib: f64,
}

/// Text that is printed line by line, and kept.
#[derive(Debug, Default)]
pub struct Output {
    /// Everything so far.
    pub text: String,
}

impl Output {
    /// Adds a line.
    pub fn line(&mut self, line: &str) {
        println!("{line}");
        writeln!(self.text, "{line}").expect("a string takes all text");
    }
    /// Date, machine and its load.
    pub fn place_and_date(&mut self) {
        let date =
            Command::new("date").arg("+%F").output().map(|run| String::from_utf8_lossy(&run.stdout).trim().to_owned());
        let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpus.lines().find_map(|l| l.strip_prefix("model name")?.split_once(':')).map_or("unknown", |m| m.1);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split(' ').next().unwrap_or_default().to_owned();
        let (date, arch) = (date.unwrap_or_default(), std::env::consts::ARCH);
        self.line(&format!("{date}, {arch},{model}, {cores} cores, load average {load}."));
        self.line("");
    }
}

/// The command line of a bench. If `part` handles it (a child, a repetition), that is all; else the report is made: in full
/// with `--full`, of one shape with `--only SHAPE`, into a file with `--write FILE`.
pub fn run(
    part: impl FnOnce(&[&str]) -> Option<ExitCode>,
    report: impl FnOnce(bool, Option<&str>) -> Result<(String, Vec<String>), String>,
) -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    if let Some(status) = part(&words) {
        return status;
    }
    let value = |name: &str| words.iter().position(|a| *a == name).and_then(|i| words.get(i + 1)).copied();
    let full = words.contains(&"--full");
    finish(report(full, value("--only")), value("--write"), full)
}

/// Ends a bench: writes the report to the file of `--write`, prints the missed limits, and fails on them where they count.
pub fn finish(report: Result<(String, Vec<String>), String>, write_to: Option<&str>, limits_count: bool) -> ExitCode {
    let (text, missed) = match report {
        Ok(report) => report,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::FAILURE;
        }
    };
    if let Some(Err(error)) = write_to.map(|file| std::fs::write(file, text)) {
        eprintln!("{}: {error}", write_to.unwrap_or_default());
        return ExitCode::FAILURE;
    }
    for line in &missed {
        eprintln!("missed: {line}");
    }
    if missed.is_empty() || !limits_count { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs this program again with these arguments, which must lead to [`print_measured`].
///
/// # Errors
/// The first line of the process's error.
pub fn in_child(args: &[&str]) -> Result<Measured, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let run = Command::new(program).args(args).output().map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&run.stdout);
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|w| w.parse().ok()).collect();
    match (run.status.success(), numbers.as_slice()) {
        (true, &[cpu_s, peak_mib]) => Ok(Measured { cpu_s, peak_mib }),
        _ => {
            let said = String::from_utf8_lossy(&run.stderr);
            Err(format!("{}: {}", args.join(" "), said.lines().next().unwrap_or("no message")))
        }
    }
}

/// Rounds where the first ones are inconclusive about a limit.
#[allow(dead_code, reason = "each bench takes a part")]
pub const MANY: usize = 41;

/// The medians of several processes.
///
/// # Errors
/// As [`in_child`].
#[allow(dead_code, reason = "each bench takes a part")]
pub fn median(args: &[&str], samples: usize) -> Result<Measured, String> {
    Ok(by_turns(&[args.to_vec()], samples)?.median(0))
}

/// Several sides that are measured in turn, round after round.
#[derive(Clone, Debug)]
pub struct Turns {
    /// Each side, in the order of the rounds.
    sides: Vec<Vec<Measured>>,
}

impl Turns {
    /// More rounds.
    fn add(&mut self, sides: &[Vec<&str>], rounds: usize) -> Result<(), String> {
        for _ in 0..rounds {
            for (measured, args) in self.sides.iter_mut().zip(sides) {
                measured.push(in_child(args)?);
            }
        }
        Ok(())
    }
    /// The medians of a side's CPU time and of its peaks, separately: an allocator returns memory by a clock, so a peak
    /// varies.
    pub fn median(&self, side: usize) -> Measured {
        let of = |field: fn(&Measured) -> f64| middle(self.sides[side].iter().map(field).collect());
        Measured { cpu_s: of(|m| m.cpu_s), peak_mib: of(|m| m.peak_mib) }
    }
    /// The median over all rounds of the ratio of one side's CPU time to another's: the speed of a shared machine varies
    /// between rounds, less within one. Times up to `least_s` are too short for a ratio.
    pub fn ratio(&self, side: usize, other: usize, least_s: f64) -> f64 {
        let rounds = self.sides[side].iter().zip(&self.sides[other]);
        middle(rounds.map(|(a, b)| a.cpu_s / b.cpu_s.max(least_s)).collect())
    }
}

fn middle(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Measures several sides in turn.
///
/// # Errors
/// As [`in_child`].
pub fn by_turns(sides: &[Vec<&str>], samples: usize) -> Result<Turns, String> {
    let mut turns = Turns { sides: vec![vec![]; sides.len()] };
    turns.add(sides, samples)?;
    Ok(turns)
}

/// Measures two sides in turn, with [`MANY`] rounds where the ratio of the second to the first is above 0.95 of its limit: a
/// few rounds on a shared machine are off by as much. All rounds count.
///
/// # Errors
/// As [`in_child`].
#[allow(dead_code, reason = "each bench takes a part")]
pub fn ratio_by_turns(sides: &[Vec<&str>; 2], samples: usize, least_s: f64, limit: f64) -> Result<Turns, String> {
    let mut turns = by_turns(sides, samples)?;
    // One round is a quick look.
    if samples > 1 && turns.ratio(1, 0, least_s) > 0.95 * limit {
        turns.add(sides, MANY.saturating_sub(samples))?;
    }
    Ok(turns)
}

/// Prints a child's measurement for its parent.
pub fn print_measured(measured: Result<Measured, String>) -> ExitCode {
    match measured {
        Ok(Measured { cpu_s, peak_mib }) => {
            println!("{cpu_s} {peak_mib}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// The cost of `run` alone.
///
/// # Errors
/// The error of `run`; no `/proc`.
pub fn measured(run: impl FnOnce() -> Result<(), String>) -> Result<Measured, String> {
    // Resets the peak, which an earlier one would hide.
    std::fs::write("/proc/self/clear_refs", "5").map_err(|e| e.to_string())?;
    let (before, start) = (memory_mib("VmRSS:")?, cpu_s());
    run()?;
    let end = cpu_s();
    Ok(Measured { cpu_s: end - start, peak_mib: memory_mib("VmHWM:")? - before })
}

/// CPU time of this process so far, in seconds.
pub fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// A line of `/proc/self/status`, in MiB.
fn memory_mib(field: &str) -> Result<f64, String> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(|e| e.to_string())?;
    let kib = status.lines().find_map(|l| l.strip_prefix(field)?.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    kib.map(|k| k / 1024.0).ok_or_else(|| format!("no {field} in /proc/self/status"))
}
