//! `mlir-opt`'s command line with our passes in place of upstream's.
//!
//! An [`OverridePass`] is registered before upstream's passes under the same name and TypeID, so that it is found wherever that pass is named:
//! on the command line, in `--pass-pipeline=`, in transform scripts. A pass that upstream lacks is registered alike. Options have upstream's syntax.
//! Diagnostics go through MLIR's engine, so that they look as upstream's do and `-verify-diagnostics` sees them.
//!
//! Differs: `-mlir-pass-statistics` is answered here, after MLIR's own report: distributed MLIR libraries are built without statistics.
//! Differs: one thread. A pass of ours collects diagnostics on the context, and the output is the same in every run.

use crate::conversion::observe_conversions;
use crate::module::{BYTECODE, refusal_diagnostic};
use crate::{Context, Diagnostic, Diagnostics, Location, Op, Severity, source_text, string};
use mlir_sys::{MlirLocation, MlirOperation, MlirStringRef};
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, OnceLock, PoisonError};

/// One option of a pass.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// Name, as upstream spells it.
    pub name: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// Type and default.
    pub kind: OptionKind,
}

/// Type and default of an option.
#[derive(Clone, Copy, Debug)]
pub enum OptionKind {
    /// True or false.
    Flag(bool),
    /// A number, not negative.
    Number(u64),
    /// A text.
    Text(&'static str),
    /// Texts, separated by commas; empty by default.
    List,
    /// One of these; the first is the default.
    Choice(&'static [&'static str]),
}

/// One statistic of a pass.
#[derive(Clone, Copy, Debug)]
pub struct StatisticSpec {
    /// Name, as upstream spells it.
    pub name: &'static str,
    /// Its description.
    pub help: &'static str,
}

/// A pass of ours that replaces upstream's of the same name, or that upstream lacks.
#[derive(Clone, Copy, Debug)]
pub struct OverridePass {
    /// Upstream's name on the command line, `one-shot-bufferize`.
    pub argument: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// Options, upstream's and our own.
    pub options: &'static [OptionSpec],
    /// Statistics that `run` reports.
    pub statistics: &'static [StatisticSpec],
    /// The pass, on the op of the pass manager. It sets one value per statistic, in their order, which also count if it fails.
    pub run: fn(Op, &PassOptions, &mut [u64]) -> Result<(), Diagnostics>,
}

/// The option values of one run.
#[derive(Clone, Debug, Default)]
pub struct PassOptions {
    values: BTreeMap<&'static str, String>,
}

impl PassOptions {
    fn get(&self, name: &str) -> &str {
        self.values.get(name).map(String::as_str).expect("a pass asks for options of its own table only")
    }
    /// Value of a flag.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name) == "1"
    }
    /// Value of a number.
    pub fn number(&self, name: &str) -> u64 {
        self.get(name).parse().expect("the shim writes numbers in decimal")
    }
    /// Value of a text or a choice.
    pub fn text(&self, name: &str) -> &str {
        self.get(name)
    }
    /// Elements of a list.
    pub fn list(&self, name: &str) -> Vec<String> {
        self.get(name).split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect()
    }
}

/// [`OptionSpec`] as the shim reads it.
#[repr(C)]
struct RawOption {
    name: MlirStringRef,
    description: MlirStringRef,
    initial: MlirStringRef,
    kind: c_int,
    choices: *const MlirStringRef,
    num_choices: usize,
}

/// [`OverridePass`] as the shim reads it.
#[repr(C)]
struct RawPass {
    argument: MlirStringRef,
    description: MlirStringRef,
    options: *const RawOption,
    num_options: usize,
}

type Check = extern "C" fn(MlirStringRef, MlirStringRef) -> bool;
type Run = extern "C" fn(usize, MlirOperation, *const MlirStringRef) -> bool;

unsafe extern "C" {
    // Registers an override; the description must live until the process ends.
    fn monopour_shim_register_override(pass: *const RawPass, index: usize, run: Run);
    // Registers `buffer-deallocation-pipeline` over the passes that have the names of its parts at use.
    fn monopour_shim_register_pipelines();
    // mlir::MlirOptMain with all dialects and extensions.
    fn monopour_shim_opt_main(argc: c_int, argv: *mut *mut c_char, check: Check) -> c_int;
    // Emits a diagnostic with notes through MLIR's engine.
    fn monopour_shim_emit_diagnostic(
        location: MlirLocation,
        severity: c_int,
        message: MlirStringRef,
        note_locations: *const MlirLocation,
        notes: *const MlirStringRef,
        num_notes: usize,
    );
}

/// The registered overrides, by the index that the shim calls back with.
static PASSES: OnceLock<Vec<OverridePass>> = OnceLock::new();
/// Sums of the statistics of all runs, by pass index.
static STATISTICS: Mutex<BTreeMap<usize, Vec<u64>>> = Mutex::new(BTreeMap::new());

/// Errors that runs of our passes reported, by pass index.
static ERRORS: Mutex<BTreeMap<usize, u64>> = Mutex::new(BTreeMap::new());

/// Help on our own arguments, printed above MLIR's own help, which ends the process.
const OWN_HELP: &str = "\
Options beside mlir-opt's:

  --use-upstream=<pass,...>     - Run upstream's pass, and not ours of that name
  --statistics-to=<file>        - Write the statistics of our passes into a file
  --dump-after-each-pattern     - Print the IR after each conversion pattern of ours after which it is valid

";

/// Runs `mlir-opt` with these arguments (without the program's name) and the overrides, and returns its exit status.
/// `--use-upstream=PASS,...` leaves the named overrides out, `--statistics-to=FILE` writes our statistics into a file, and
/// `--dump-after-each-pattern` prints the IR after each conversion pattern of ours that leaves it valid.
/// Call it once, before any [`Context`] is made.
pub fn run(args: &[OsString], passes: &[OverridePass]) -> i32 {
    let Arguments { kept, upstream, statistics_to, dumps } = match split_arguments(args, passes) {
        Ok(split) => split,
        Err(message) => return usage_error(&message),
    };
    let ours: Vec<_> = passes.iter().filter(|p| !upstream.contains(&p.argument)).copied().collect();
    if !register(ours) {
        return usage_error("passes are registered already in this process");
    }
    if kept.iter().any(|a| ["help", "help-list", "help-hidden"].iter().any(|name| is_flag(a, name))) {
        print!("{OWN_HELP}");
    }
    let wants_statistics = kept.iter().any(|a| is_flag(a, "mlir-pass-statistics"));
    let status = if dumps { observe_conversions(|event| event.dump(), || call_main(kept)) } else { call_main(kept) };
    if wants_statistics {
        eprint!("{}", statistics_report());
    }
    if let Some(file) = statistics_to
        && let Err(error) = std::fs::write(&file, statistics_report())
    {
        return usage_error(&format!("--statistics-to: {file}: {error}"));
    }
    status
}

fn usage_error(message: &str) -> i32 {
    eprintln!("monopour opt: {message}");
    2
}

fn is_flag(argument: &OsStr, name: &str) -> bool {
    flag_text(argument) == Some(name)
}

/// The name of a flag after its dashes. File names need not be UTF-8, flags are.
fn flag_text(argument: &OsStr) -> Option<&str> {
    let argument = argument.to_str()?;
    argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'))
}

/// The command line: mlir-opt's arguments and our own.
#[derive(Default)]
struct Arguments {
    kept: Vec<OsString>,
    upstream: Vec<&'static str>,
    statistics_to: Option<String>,
    dumps: bool,
}

/// Extracts our own arguments, and checks the names of `--use-upstream`.
fn split_arguments(args: &[OsString], passes: &[OverridePass]) -> Result<Arguments, String> {
    let mut split = Arguments::default();
    for argument in args {
        let flag = flag_text(argument).unwrap_or_default();
        if let Some(file) = flag.strip_prefix("statistics-to=") {
            split.statistics_to = Some(file.to_owned());
            continue;
        }
        if flag == "dump-after-each-pattern" {
            split.dumps = true;
            continue;
        }
        let Some(names) = flag.strip_prefix("use-upstream=") else {
            split.kept.push(argument.clone());
            continue;
        };
        for name in names.split(',').filter(|n| !n.is_empty()) {
            let known = passes.iter().find(|p| p.argument == name).ok_or_else(|| {
                let ours: Vec<_> = passes.iter().map(|p| p.argument).collect();
                format!("--use-upstream: '{name}' is not a pass of monopour's; these are: {}", ours.join(", "))
            })?;
            split.upstream.push(known.argument);
        }
    }
    Ok(split)
}

/// Registers ours, then upstream's. False if upstream's were registered before.
fn register(ours: Vec<OverridePass>) -> bool {
    Context::register_passes_after(|| {
        let ours = PASSES.get_or_init(|| ours);
        for (index, pass) in ours.iter().enumerate() {
            let raw: &'static RawPass = Box::leak(Box::new(raw_pass(pass)));
            // SAFETY: defined in the shim; the description is leaked.
            unsafe { monopour_shim_register_override(raw, index, run_pass) };
        }
        // SAFETY: defined in the shim; registration happens once, here.
        unsafe { monopour_shim_register_pipelines() };
    })
}

/// The description of a pass for the shim, leaked, because LLVM's option tables keep it until the process ends.
fn raw_pass(pass: &OverridePass) -> RawPass {
    let options: &'static [RawOption] = Vec::leak(pass.options.iter().map(raw_option).collect());
    let help: &'static str = String::leak(format!("monopour: {}", pass.help));
    RawPass {
        argument: string::to_ref(pass.argument),
        description: string::to_ref(help),
        options: options.as_ptr(),
        num_options: options.len(),
    }
}

fn raw_option(option: &OptionSpec) -> RawOption {
    let mut choices: &'static [MlirStringRef] = &[];
    let (kind, initial): (c_int, &'static str) = match option.kind {
        OptionKind::Flag(value) => (0, if value { "1" } else { "0" }),
        OptionKind::Number(value) => (1, String::leak(value.to_string())),
        OptionKind::Text(value) => (2, value),
        OptionKind::List => (3, ""),
        OptionKind::Choice(names) => {
            choices = Vec::leak(names.iter().map(|n| string::to_ref(n)).collect());
            (4, names.first().copied().unwrap_or_default())
        }
    };
    RawOption {
        name: string::to_ref(option.name),
        description: string::to_ref(option.help),
        initial: string::to_ref(initial),
        kind,
        choices: choices.as_ptr(),
        num_choices: choices.len(),
    }
}

fn call_main(mut args: Vec<OsString>) -> i32 {
    args.insert(0, "monopour opt".into());
    if !args.iter().any(|a| is_flag(a, "mlir-disable-threading")) {
        args.push("--mlir-disable-threading".into());
    }
    let mut owned = Vec::new();
    for argument in args {
        match CString::new(argument.into_encoded_bytes()) {
            Ok(text) => owned.push(text.into_raw()),
            Err(_) => return usage_error("an argument contains a NUL byte"),
        }
    }
    let argc = owned.len() as c_int;
    // C programs may read one past the last argument.
    owned.push(std::ptr::null_mut());
    // LLVM's options keep pointers into the arguments, so these stay allocated.
    let argv = Vec::leak(owned);
    // SAFETY: defined in the shim; argv holds argc strings and a null.
    unsafe { monopour_shim_opt_main(argc, argv.as_mut_ptr(), may_be_parsed) }
}

/// Called back by the shim with the input. Refuses text that overflows the parser's stack; NUL bytes are treated as by upstream.
extern "C" fn may_be_parsed(source: MlirStringRef, file: MlirStringRef) -> bool {
    let source: &[u8] = match source.length {
        // The pointer may be null then.
        0 => &[],
        // SAFETY: the shim gives a buffer that lives during the call.
        length => unsafe { std::slice::from_raw_parts(source.data.cast(), length) },
    };
    if source.starts_with(BYTECODE) {
        return true;
    }
    match source_text::check(source, true) {
        Ok(_) => true,
        Err(refusal) => {
            eprintln!("{}", refusal_diagnostic(string::from_ref(file), &refusal));
            false
        }
    }
}

/// Called back by the shim for each run of an override.
extern "C" fn run_pass(index: usize, op: MlirOperation, values: *const MlirStringRef) -> bool {
    let op = Op::from_raw(op);
    let pass =
        PASSES.get().and_then(|passes| passes.get(index)).expect("the shim calls back with an index that it was given");
    let texts: &[MlirStringRef] = match pass.options.is_empty() {
        // The pointer is null then.
        true => &[],
        // SAFETY: the shim gives one text per option of the pass, alive during the call.
        false => unsafe { std::slice::from_raw_parts(values, pass.options.len()) },
    };
    let values = pass.options.iter().zip(texts).map(|(o, text)| (o.name, string::from_ref(*text).to_owned())).collect();
    let mut counts = vec![0; pass.statistics.len()];
    // A panic must not unwind into C++; it is reported like any failure.
    let result = catch_unwind(AssertUnwindSafe(|| (pass.run)(op, &PassOptions { values }, &mut counts)));
    let mut all = STATISTICS.lock().unwrap_or_else(PoisonError::into_inner);
    let sums = all.entry(index).or_insert_with(|| vec![0; counts.len()]);
    sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    drop(all);
    match result {
        Ok(Ok(())) => true,
        Ok(Err(diagnostics)) => {
            let errors = diagnostics.0.iter().filter(|d| d.severity == Severity::Error).count() as u64;
            *ERRORS.lock().unwrap_or_else(PoisonError::into_inner).entry(index).or_insert(0) += errors;
            diagnostics.0.iter().for_each(|d| emit(op, d));
            false
        }
        Err(_) => {
            let text = format!(
                "'{}' pass of monopour failed on a broken invariant; this is a defect of monopour",
                pass.argument
            );
            emit(op, &Diagnostic::error("I0014", op.location(), text));
            false
        }
    }
}

/// Emits a diagnostic through MLIR's engine. Only MLIR's own keep their notes: our notes and hints are beyond upstream's wording.
fn emit(op: Op, diagnostic: &Diagnostic) {
    let cx = op.context();
    let location = parse_location(cx, &diagnostic.location).unwrap_or_else(|| op.location());
    let notes: &[String] = if diagnostic.code == "I0001" { &diagnostic.notes } else { &[] };
    let split: Vec<(Location, &str)> = notes.iter().map(|note| split_note(cx, note)).collect();
    let places: Vec<_> = split.iter().map(|n| n.0.raw()).collect();
    let texts: Vec<_> = split.iter().map(|n| string::to_ref(n.1)).collect();
    let severity = match diagnostic.severity {
        Severity::Error => 0,
        Severity::Warning => 1,
        Severity::Remark | Severity::Note => 2,
    };
    let message = string::to_ref(&diagnostic.message);
    // SAFETY: defined in the shim; all arrays have `texts.len()` elements and live during the call.
    unsafe {
        monopour_shim_emit_diagnostic(location.raw(), severity, message, places.as_ptr(), texts.as_ptr(), texts.len())
    };
}

/// Reads `file:line:column`.
fn parse_location<'c>(cx: Context<'c>, text: &str) -> Option<Location<'c>> {
    let (rest, column) = text.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    Some(Location::file(cx, file, line.parse().ok()?, column.parse().ok()?))
}

/// Splits `text at file:line:column`, as captured notes are written.
fn split_note<'c, 'a>(cx: Context<'c>, note: &'a str) -> (Location<'c>, &'a str) {
    match note.rsplit_once(" at ") {
        Some((text, place)) => (parse_location(cx, place).unwrap_or_else(|| Location::unknown(cx)), text),
        None => (Location::unknown(cx), note),
    }
}

/// The pass name in upstream's reports: `OneShotBufferize`.
fn class_name(argument: &str) -> String {
    let word = |word: &str| word[..1].to_uppercase() + &word[1..];
    argument.split('-').filter(|part| !part.is_empty()).map(word).collect()
}

/// The sums of all runs, in the form of MLIR's list display.
fn statistics_report() -> String {
    let passes = PASSES.get().map_or(&[][..], Vec::as_slice);
    let all = STATISTICS.lock().unwrap_or_else(PoisonError::into_inner);
    let errors = ERRORS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut out = String::new();
    for (index, counts) in all.iter() {
        let pass = &passes[*index];
        let width = pass.statistics.iter().map(|s| s.name.len()).max().unwrap_or(0);
        out.push_str(&format!("{} ({})\n", class_name(pass.argument), pass.argument));
        for (statistic, count) in pass.statistics.iter().zip(counts) {
            out.push_str(&format!("  (S) {count:>8} {:width$} - monopour: {}\n", statistic.name, statistic.help));
        }
        if let Some(count) = errors.get(index) {
            out.push_str(&format!("  (S) {count:>8} {:width$} - monopour: errors reported\n", "num-errors"));
        }
    }
    out
}
