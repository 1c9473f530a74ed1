//! Runs a folder of file tests through one `#[test]`.

use crate::directive::FileTest;
use crate::oracle;
use monopour_ir::{Context, Module};
use std::path::{Path, PathBuf};

/// The outcome of a folder of file tests.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Files that ran.
    pub files: usize,
    /// One message per failure, the file's name first.
    pub failures: Vec<String>,
}

impl Report {
    /// Panics with all failures; also when nothing ran.
    pub fn assert_passed(&self) {
        assert!(
            self.failures.is_empty(),
            "{} of {} file tests failed\n\n{}",
            self.failures.len(),
            self.files,
            self.failures.join("\n\n")
        );
        assert!(self.files > 0, "the folder holds no file test");
    }
}

/// Runs every `.mlir` below `dir`: parses its input, gives it to `pass` (name, options, module), and compares the output
/// exactly with the expected one. Input that does not parse has its diagnostics as output. `BLESS=1` writes the output into
/// the files instead. An `oracle:` line also compares the decisions in the output with upstream's.
pub fn run(dir: &Path, pass: impl Fn(&str, &str, &Module) -> String) -> Report {
    run_on(dir, std::env::var_os("BLESS").is_some_and(|v| v == "1"), &pass)
}

fn run_on(dir: &Path, bless: bool, pass: &dyn Fn(&str, &str, &Module) -> String) -> Report {
    let mut report = Report::default();
    for file in files(dir) {
        report.files += 1;
        if let Err(message) = run_file(&file, bless, pass) {
            report.failures.push(format!("{}: {message}", file.display()));
        }
    }
    report
}

/// All `.mlir` files below a folder, sorted.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut out = vec![];
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            out.extend(files(&path));
        } else if path.extension().is_some_and(|e| e == "mlir") {
            out.push(path);
        }
    }
    out.sort();
    out
}

fn run_file(file: &Path, bless: bool, pass: &dyn Fn(&str, &str, &Module) -> String) -> Result<(), String> {
    let text = std::fs::read_to_string(file).map_err(|e| e.to_string())?;
    let test = FileTest::parse(&text)?;
    let cx = Context::new();
    cx.allow_unregistered_dialects(true);
    // The name, not the path: diagnostics must read the same on every machine.
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let output = match Module::parse(cx, test.input.as_bytes(), &name) {
        Ok(module) => pass(&test.pass, &test.options, &module),
        Err(diagnostics) => diagnostics.to_string(),
    };
    let output = format!("{}\n", output.trim_end());
    if bless {
        std::fs::write(file, test.with_expected(&output)).map_err(|e| e.to_string())?;
    } else if output != test.expected {
        return Err(format!(
            "the output is not the expected one; BLESS=1 rewrites it\n{}",
            difference(&test.expected, &output)
        ));
    }
    compare_with_oracle(&test, &output)
}

fn compare_with_oracle(test: &FileTest, output: &str) -> Result<(), String> {
    let Some(arguments) = &test.oracle else { return Ok(()) };
    let theirs = oracle::decisions(&oracle::mlir_opt(arguments, &test.input)?)?;
    if theirs.is_empty() {
        return Err("the oracle's output carries no decision".to_owned());
    }
    let ours = oracle::decisions(output)?;
    match (&test.differs, ours == theirs) {
        (None, false) => {
            Err(format!("decisions differ from upstream's\n{}", difference(&theirs.join("\n"), &ours.join("\n"))))
        }
        (Some(reason), true) => Err(format!("stale: decisions are upstream's, though they should differ ({reason})")),
        _ => Ok(()),
    }
}

/// The lines around the first difference.
fn difference(expected: &str, got: &str) -> String {
    let (expected, got): (Vec<_>, Vec<_>) = (expected.lines().collect(), got.lines().collect());
    let first = expected.iter().zip(&got).take_while(|(a, b)| a == b).count();
    let mut out = vec![];
    out.extend(got[first.saturating_sub(2)..first].iter().map(|l| format!("   {l}")));
    out.extend(expected.iter().skip(first).take(6).map(|l| format!("-  {l}")));
    out.extend(got.iter().skip(first).take(6).map(|l| format!("+  {l}")));
    format!("at line {} (- expected, + got)\n{}", first + 1, out.join("\n"))
}
