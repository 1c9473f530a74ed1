//! `mlir-opt` with a pass of ours under upstream's name. Each run is its own process, because passes are registered once per process.

use monopour_ir::opt::{self, OptionKind, OptionSpec, OverridePass, PassOptions, StatisticSpec};
use monopour_ir::{Attr, Diagnostic, Diagnostics, Op, Rewriter};
use std::io::Write;
use std::process::{Command, Stdio};

const OPTIONS: &[OptionSpec] = &[
    OptionSpec { name: "bufferize-function-boundaries", help: "a flag", kind: OptionKind::Flag(false) },
    OptionSpec { name: "check-parallel-regions", help: "a flag that is set", kind: OptionKind::Flag(true) },
    OptionSpec { name: "buffer-alignment", help: "a number", kind: OptionKind::Number(64) },
    OptionSpec { name: "analysis-heuristic", help: "a text", kind: OptionKind::Text("bottom-up") },
    OptionSpec { name: "dialect-filter", help: "a list", kind: OptionKind::List },
    OptionSpec {
        name: "unknown-type-conversion",
        help: "a choice",
        kind: OptionKind::Choice(&["fully-dynamic-layout-map", "identity-layout-map"]),
    },
];

const OVERRIDE: OverridePass = OverridePass {
    argument: "one-shot-bufferize",
    help: "writes its options down",
    options: OPTIONS,
    statistics: &[StatisticSpec { name: "num-functions", help: "functions seen" }],
    run: write_options,
};

/// Writes the options into an attribute of the module; fails at `t.bad`.
fn write_options(op: Op, options: &PassOptions, statistics: &mut [u64]) -> Result<(), Diagnostics> {
    if let Some(bad) = op.find_all("t.bad").first() {
        return Err(Diagnostic::error("I0010", bad.location(), "this is bad").with_help("be good").into());
    }
    if !op.find_all("t.panic").is_empty() {
        panic!("as the test wants");
    }
    let text = format!(
        "{} {} {} {} {} {}",
        options.flag("bufferize-function-boundaries"),
        options.flag("check-parallel-regions"),
        options.number("buffer-alignment"),
        options.text("analysis-heuristic"),
        options.list("dialect-filter").join("+"),
        options.text("unknown-type-conversion"),
    );
    let mut rw = Rewriter::new(op.context());
    rw.set_attr(op, "t.options", Attr::string(op.context(), &text));
    statistics[0] = op.find_all("func.func").len() as u64;
    Ok(())
}

/// Not a test: the process that `opt` starts.
#[test]
fn child() {
    let Ok(args) = std::env::var("MONOPOUR_TEST_OPT") else { return };
    let args: Vec<std::ffi::OsString> = args.split('\n').map(Into::into).collect();
    std::process::exit(opt::run(&args, &[OVERRIDE]));
}

struct Outcome {
    status: i32,
    out: String,
    err: String,
}

fn opt(input: &str, args: &[&str]) -> Outcome {
    let exe = std::env::current_exe().expect("has a path");
    let mut child = Command::new(exe)
        .args(["--exact", "opt::child", "--nocapture", "--test-threads=1"])
        .env("MONOPOUR_TEST_OPT", args.join("\n"))
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    child.stdin.take().expect("is piped").write_all(input.as_bytes()).expect("takes the input");
    let output = child.wait_with_output().expect("ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Outcome { status: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) }
}

const EMPTY: &str = "func.func @f() {\n  return\n}\n";

#[test]
fn options_have_upstreams_text_and_defaults() {
    let defaults = opt(EMPTY, &["-", "-one-shot-bufferize"]);
    assert!(
        defaults.out.contains("\"false true 64 bottom-up  fully-dynamic-layout-map\""),
        "{}{}",
        defaults.out,
        defaults.err
    );
    let text = "-one-shot-bufferize=bufferize-function-boundaries check-parallel-regions=0 buffer-alignment=8 \
        analysis-heuristic=top-down dialect-filter=tensor,scf unknown-type-conversion=identity-layout-map";
    let set = opt(EMPTY, &["-", text]);
    assert!(set.out.contains("\"true false 8 top-down tensor+scf identity-layout-map\""), "{}{}", set.out, set.err);
    let pipeline = opt(EMPTY, &["-", "--pass-pipeline=builtin.module(one-shot-bufferize{buffer-alignment=16})"]);
    assert!(pipeline.out.contains("\"false true 16 "), "{}{}", pipeline.out, pipeline.err);
}

#[test]
fn a_wrong_choice_is_refused() {
    let wrong = opt(EMPTY, &["-", "-one-shot-bufferize=unknown-type-conversion=nonsense"]);
    assert_ne!(wrong.status, 0);
    assert!(wrong.err.contains("nonsense"), "{}", wrong.err);
}

#[test]
fn upstreams_pass_comes_back_on_request() {
    let input = "func.func @f(%t: tensor<4xf32>) -> tensor<4xf32> {\n  return %t : tensor<4xf32>\n}\n";
    let upstream =
        opt(input, &["-", "--use-upstream=one-shot-bufferize", "-one-shot-bufferize=bufferize-function-boundaries"]);
    assert!(
        upstream.out.contains("memref<4xf32") && !upstream.out.contains("t.options"),
        "{}{}",
        upstream.out,
        upstream.err
    );
    let unknown = opt(input, &["-", "--use-upstream=canonicalize"]);
    assert_eq!(unknown.status, 2);
    assert!(unknown.err.contains("'canonicalize' is not a pass of monopour's"), "{}", unknown.err);
}

#[test]
fn statistics_are_summed() {
    let two = format!("{EMPTY}// -----\n{EMPTY}");
    let run = opt(&two, &["-", "-split-input-file", "-one-shot-bufferize", "-mlir-pass-statistics"]);
    assert!(
        run.err.contains(
            "OneShotBufferize (one-shot-bufferize)\n  (S)        2 num-functions - monopour: functions seen\n"
        ),
        "{}",
        run.err
    );
}

#[test]
fn diagnostics_are_mlirs() {
    let input = "\"t.bad\"() : () -> ()\n";
    let failed = opt(input, &["-", "-allow-unregistered-dialect", "-one-shot-bufferize"]);
    assert_eq!(failed.status, 1);
    assert!(failed.err.contains("<stdin>:1:1: error: this is bad\n\"t.bad\"() : () -> ()\n^\n"), "{}", failed.err);
    let expected = format!("// expected-error @below {{{{this is bad}}}}\n{input}");
    let verified = opt(&expected, &["-", "-allow-unregistered-dialect", "-one-shot-bufferize", "-verify-diagnostics"]);
    assert_eq!(verified.status, 0, "{}", verified.err);
}

#[test]
fn a_panic_is_a_diagnostic() {
    // I0014; upstream's form has no codes.
    let input = "\"t.panic\"() : () -> ()\n";
    let failed = opt(input, &["-", "-allow-unregistered-dialect", "-one-shot-bufferize"]);
    assert_eq!(failed.status, 1);
    assert!(failed.err.contains("failed on a broken invariant; this is a defect of monopour"), "{}", failed.err);
}

#[test]
fn other_passes_are_upstreams() {
    let input = "func.func @f() -> index {\n  %a = arith.constant 1 : index\n  %b = arith.addi %a, %a : index\n  return %b : index\n}\n";
    let folded = opt(input, &["-", "-canonicalize"]);
    assert!(folded.out.contains("arith.constant 2 : index") && folded.status == 0, "{}{}", folded.out, folded.err);
    let help = opt("", &["--help"]);
    assert!(
        help.out.contains("monopour: writes its options down") && help.out.contains("--canonicalize"),
        "{}",
        help.err
    );
}
